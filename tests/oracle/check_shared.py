#!/usr/bin/env python3
"""What an occurrence reads where several works take the result of one dequantisation: what takes stored numbers reads
these, in this order and with a scale that is computed, also within the bodies of a branch and a loop.

Usage: check_shared.py [EXTRACT_OPS] [NAME...]
The last line is "N passed, N failed, N skipped".
"""

import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"{missing.name} is not installed")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

MS = "com.microsoft"
STORED = ["xq", "s", "z"]
WEIGHT = ["w", "ws", "wz"]


def value(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def node(kind, reads, makes, **attributes):
    return helper.make_node(kind, reads, [makes], name=makes, **attributes)


def dequantize(makes, reads, domain=""):
    return node("DequantizeLinear", reads, makes, domain=domain)


def product(makes, left="D"):
    return [dequantize(makes + "_w", WEIGHT), node("MatMul", [left, makes + "_w"], makes)]


def branch(makes):
    return helper.make_graph(product(makes), makes, [], [value(makes, [4, 8])])


def misfit(makes):
    """It would cost more, and cannot run."""
    nodes = [*product(makes + "_1"), *product(makes + "_2", makes + "_1"), node("MatMul", [makes + "_2", "s"], makes)]
    return helper.make_graph(nodes, makes, [], [value(makes, [4, 8])])


def loop():
    nodes = [node("Identity", ["going"], "goes"), *product("in_loop"), node("Add", ["in_loop", "sum"], "sums")]
    reads = [value("turn", [], TensorProto.INT64), value("going", [], TensorProto.BOOL), value("sum", [4, 8])]
    return helper.make_graph(nodes, "turn", reads, [value("goes", [], TensorProto.BOOL), value("sums", [4, 8])])


def begin(domain=""):
    quantize = node("QuantizeLinear", ["x", "s", "z"], "xq", domain=domain)
    return [quantize, dequantize("D", STORED, domain)]


SCALED = [
    *begin(),
    node("ReduceMax", ["x"], "most", keepdims=0),
    node("Mul", ["most", "s"], "scale"),
    dequantize("E", ["y8", "scale", "z"]),
    node("Add", ["D", "E"], "added"),
    node("QuantizeLinear", ["added", "s", "z"], "added8"),
    node("Relu", ["E"], "positive"),
]
# name: nodes, outputs, and what the maker of a tensor reads
CASES = {
    "two products": ([*begin(), *product("a"), *product("b")], ["a", "b"], {"a": STORED + WEIGHT, "b": STORED + WEIGHT}),
    "com.microsoft": ([*begin(MS), *product("a"), *product("b")], ["a", "b"], {"a": STORED + WEIGHT, "b": STORED + WEIGHT}),
    "one that computes": (
        [*begin(), *product("a"), node("Relu", ["D"], "b")],
        ["a", "b"],
        {"a": STORED + WEIGHT, "D": STORED, "b": ["D"]},
    ),
    "one that is quantised within": (
        [*begin(), *product("a"), node("DynamicQuantizeMatMul", ["D", *WEIGHT], "b", domain=MS)],
        ["a", "b"],
        {"a": STORED + WEIGHT, "b/DynamicQuantizeLinear_output_0": ["D"]},
    ),
    "branches": (
        [*begin(), *product("a"), node("If", ["if"], "b", then_branch=branch("b_1"), else_branch=branch("b_2"))],
        ["a", "b"],
        {"a": STORED + WEIGHT, "b_2": STORED + WEIGHT, "b": ["if", "xq"]},  # of equal ones the first in the file, else_branch
    ),
    "a branch that cannot run": (
        [*begin(), *product("a"), node("If", ["if"], "b", then_branch=misfit("b_1"), else_branch=branch("b_2"))],
        ["a", "b"],
        {"a": STORED + WEIGHT, "b_2": STORED + WEIGHT, "b": ["if", "xq"]},
    ),
    "a loop": (
        [*begin(), *product("a"), node("Loop", ["four", "true", "a"], "b", body=loop())],
        ["b"],
        {"in_loop": STORED + WEIGHT, "b": ["true", "a", "xq", "goes", "sums"]},
    ),
    "a computed scale": (SCALED, ["added8", "positive"], {"added8": [*STORED, "y8", "scale"], "positive": ["E"]}),
}
CONSTANTS = {
    "s": np.float32(0.02),
    "z": np.int8(0),
    "w": np.ones((8, 8), np.int8),
    "ws": np.float32(0.1),
    "wz": np.int8(0),
    "four": np.int64(4),
    "true": np.bool_(True),
}


def look(program, folder, nodes, outputs, wanted):
    """None, or what is not so."""
    reads = [value("x", [4, 8]), value("y8", [4, 8], TensorProto.INT8), value("if", [], TensorProto.BOOL)]
    kinds = {"added8": TensorProto.INT8}
    graph = helper.make_graph(
        nodes,
        "shared",
        reads,
        [value(name, [4, 8], kinds.get(name, TensorProto.FLOAT)) for name in outputs],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in CONSTANTS.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)])
    model.ir_version = 8
    path, ops = os.path.join(folder, "m.onnx"), os.path.join(folder, "ops.json")
    onnx.save(model, path)
    said = subprocess.run([program, path, "-q", "-o", ops], capture_output=True, text=True)
    if said.returncode > 1:
        return said.stderr
    with open(ops) as file:
        flow = json.load(file)["graph"]
    names = [tensor[0] for tensor in flow["tensors"]]
    found = {}
    for _, _, _, _, rows, makes, _ in flow["occurrences"]:
        found.update({names[made]: [names[row] for row in rows] for made in makes})
    if flow["cuts"]:
        return f"cuts: {flow['cuts']}"
    for name, rows in wanted.items():
        if found.get(name, [])[: len(rows)] != rows:
            return f"{name} reads {found.get(name)}, not {rows}"
    for tensor in flow["tensors"]:
        if tensor[1] == "activation" and tensor[7] == 0:
            return f"nothing reads {tensor[0]}"
    return None


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "bin/extract_ops")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            why = look(program, folder, *case)
            failed += why is not None
            passed += why is None
            if why:
                print(f"FAILED {name}: {why}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
