#!/usr/bin/env python3
"""Grows each repeated field of a model, and of a list of operations, from 15,000 to 60,000 and sees that the time to
read it grows with it, not with its square.

    growth.py PROGRAM [NAME]…    NAME: only the fields whose names begin so

A model four times as long may take seven times as long; its square would take sixteen. What is below a fiftieth of a
second is taken as that: it says nothing.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

from cases_control import body, call
from wire import (BOOL, FLOAT, INT64, STRING, UINT8, blob, external, floats, function, ints, many, net, node, num, opset,
                  sparse, tensor, value)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from taken import SCOUT

SMALL, FACTOR, WORST = 15000, 4, 7.0
FLOOR = 0.02
PATIENCE = 10
RELU = node("Relu")
TRUE = tensor("c", [], BOOL, [1])
MATRIX = [value("x", (4, 4))]
BRANCHES = {"then_branch": body([node("Relu", "x", "r")], [], ["r"]), "else_branch": body([node("Abs", "x", "r")], [], ["r"])}


def names(n, stem="t"):
    return ["%s%d" % (stem, i) for i in range(n)]


def each(n, make, *more):
    """A net of the nodes that make(k) gives, and a Relu."""
    return net([make(k) for k in range(n)] + [RELU], *more)


def chain(n, op, last="t%d", **attrs):
    return [node(op, "x" if k == 0 else last % (k - 1), last % k, **attrs) for k in range(n)]


def of_x(n):
    return [value("x", (n, 2))]


def all_out(n):
    return [value(t, None) for t in names(n)]


def loop_states(n):
    states = names(n, "s")
    inner = body([node("Identity", "k", "k2")] + [node("Add", [s, s], "o" + s) for s in states],
                 [("i", (), INT64), ("k", (), BOOL)] + states, ["k2"] + ["o" + s for s in states])
    return net([node("Loop", ["n", "c"] + ["x"] * n, names(n), body=inner)], [ints("n", [3], []), TRUE], outputs=all_out(n))


def loop_scans(n):
    inner = body([node("Identity", "k", "k2")], [("i", (), INT64), ("k", (), BOOL)], ["k2"] + ["i"] * n)
    return net([node("Loop", ["n", "c"], names(n), body=inner)], [ints("n", [3], []), TRUE], outputs=all_out(n))


def scan_states(n):
    states = names(n, "s")
    inner = body([node("Relu", s, "o" + s) for s in states], states, ["o" + s for s in states])
    return net([node("Scan", ["x"] * n, names(n), body=inner, num_scan_inputs=n)], outputs=all_out(n))


def captured(n):
    inner = body([node("Sum", names(n), "r")], [], ["r"])
    return net([node("Relu", "x", t) for t in names(n)] + [node("If", "c", "y", then_branch=inner, else_branch=inner)], [TRUE])


def four_splits(n):
    parts = [["%s%d" % (s, k) for k in range(n)] for s in "abcd"]
    return net([node("Split", "x", p, axis=0) for p in parts] + [RELU], inputs=of_x(n), version=13)


def tagged(field, count, *keys):
    return many(field, [blob(1, key % k if "%" in key else key) + blob(2, "v") for k in range(count) for key in keys])


FIELDS = {
    # outputs of a node: read, not read, the last one read, of an operator that is not known
    "outputs_read": lambda n: net([node("Split", "x", names(n), axis=0)], [], of_x(n), all_out(n), 18),
    "outputs_unread": four_splits,
    "outputs_last_read": lambda n: net([node("Split", "x", names(n), axis=0), node("Relu", "t%d" % (n - 1), "y")], [], of_x(n),
                                       version=13),
    "outputs_unknown": lambda n: net([node("Nope", "x", names(n))] + [node("Relu", t, "r" + t) for t in names(n)] + [RELU]),
    "outputs_sizes": lambda n: net([node("Split", "x", names(n), axis=0, split=[1] * n), RELU], [], of_x(n), version=11),
    "outputs_of_body": lambda n: net([node("If", "c", names(n), then_branch=body([node("Relu", "x", "r")], [], ["r"] * n),
                                           else_branch=body([], [], ["x"] * n))], [TRUE], outputs=all_out(n)),
    "outputs_of_function": lambda n: net([call("F", "x", names(n)), RELU], functions=[
        function("F", "x", names(n, "o"), [node("Relu", "x", o) for o in names(n, "o")])]),
    "outputs_of_graph": lambda n: net([node("Relu", "x", t) for t in names(n)], outputs=all_out(n)),
    # inputs
    "inputs_same": lambda n: net([node("Concat", ["x"] * n, "y", axis=0)]),
    "inputs_distinct": lambda n: net([node("Concat", names(n), "y", axis=0)], inputs=[value(t) for t in names(n)]),
    "inputs_summed": lambda n: net([node("Sum", ["x"] * n, "y")]),
    "inputs_of_einsum": lambda n: net([node("Einsum", ["x"] * n, "y", equation=",".join(["abc"] * n) + "->a")]),
    "inputs_of_sequence": lambda n: net([node("SequenceConstruct", ["x"] * n, "q"), node("ConcatFromSequence", "q", axis=0)]),
    "inputs_of_function": lambda n: net([call("F", ["x"] * n, "z"), RELU], functions=[
        function("F", names(n, "i"), "y", [node("Relu", "i0", "y")])]),
    "inputs_of_graph": lambda n: net([RELU], [], [value("x")] + [value(t, (2,)) for t in names(n)]),
    # attributes, and what they hold
    "attributes": lambda n: each(n // 4000, lambda k: node("Relu", "x", "z%d" % k, **{"a%d" % j: j for j in range(4000)})),
    "attribute_ints": lambda n: net([node("Constant", "", "s", value_ints=[1] * n), node("Reshape", "x s")]),
    "attribute_axes": lambda n: net([node("ReduceSum", axes=[0] * n)], version=11),
    "attribute_strings": lambda n: net([node("LabelEncoder", domain="ai.onnx.ml", keys_strings=names(n),
                                             values_int64s=list(range(n)))]),
    # dimensions
    "dims_symbols": lambda n: net([RELU], [], [value("x")] + [value("i%d" % k, ("s%d" % k, 4)) for k in range(n)]),
    "dims_sums": lambda n: net([RELU], [], [value("x")] + [value("i%d" % k, ("s%d+s%d" % (k, k + 1), 4)) for k in range(n)]),
    "dims_different": lambda n: each(n, lambda k: node("Reshape", "i%d s" % k, "z%d" % k), [ints("s", [-1])],
                                     [value("x")] + [value("i%d" % k, (k + 1, 2)) for k in range(n)]),
    "dims_one_after_another": lambda n: net([node("Shape", "x", "s0")] + [
        node("Concat", ["s%d" % k, "s0"], "s%d" % (k + 1), axis=0) for k in range(n)] + [RELU]),
    # bodies; an If has two, and memory for 40,000
    "subgraphs": lambda n: each(n // 3, lambda k: node("If", "c", "z%d" % k, **BRANCHES), [TRUE]),
    "subgraphs_not_known": lambda n: each(n // 3, lambda k: node("If", "c", "z%d" % k, **BRANCHES), [],
                                          [value("x"), value("c", (), BOOL)]),
    "subgraphs_of_unknown": lambda n: each(n // 4000, lambda k: node("Nope", "x", "z%d" % k, **{
        "g%d" % j: BRANCHES["then_branch"] for j in range(4000)})),
    "loop_states": loop_states, "loop_scans": loop_scans, "scan_states": scan_states, "captured": captured,
    # nodes and what reads them
    "nodes_chained": lambda n: net(chain(n, "Relu") + [RELU]),
    "nodes_backwards": lambda n: net(chain(n, "Relu")[::-1] + [RELU]),
    "nodes_beside": lambda n: each(n, lambda k: node("Relu", "x", "t%d" % k)),
    "nodes_different": lambda n: each(n, lambda k: node("Slice", "x z e%d" % k, "z%d" % k), [ints("z", [0])] + [
        ints("e%d" % k, [k + 1]) for k in range(n)], [value("x", (n + 5, 2))]),
    "nodes_of_experts": lambda n: net(
        [node("MoE", ["x" if k == 0 else "m%d" % (k - 1), "r", "w", "", "w"], "m%d" % k, domain="com.microsoft", k=1)
         for k in range(n // 20)] + [RELU], [tensor("w", [2, 4, 4], FLOAT, raw=bytes(128))],
        [value("x", (4, 4)), value("r", (4, 2))]),
    "nodes_unknown": lambda n: each(n, lambda k: node("Nope%d" % k, "x", "z%d" % k)),
    "nodes_behind_unknown": lambda n: net([node("NonZero", "x", "x0")] + [
        node("Relu", "x%d" % k, "x%d" % (k + 1)) for k in range(n)] + [RELU]),
    "nodes_gated": lambda n: net([m for k in range(n // 2) for m in (
        node("Sigmoid", "t%d" % k, "s%d" % k), node("Mul", "t%d s%d" % (k, k), "t%d" % (k + 1)))], [], [value("t0", (4, 4))],
        [value("t%d" % (n // 2), None)]),
    "users_of_softmax": lambda n: net([node("Softmax", "x", "p")] + [node("MatMul", "p x", "z%d" % k) for k in range(n)] +
                                      [RELU], [], MATRIX),
    "users_of_sum": lambda n: net([node("Add", "x x", "p")] + [node("Relu", "p", t) for t in names(n)] + [RELU], [], MATRIX),
    "users_of_bytes": lambda n: net([node("QuantizeLinear", "x s z", "q")] + [
        node("DequantizeLinear", "q s z", t) for t in names(n)] + [RELU], [floats("s", [0.5], []), tensor("z", [], UINT8, [0])],
        MATRIX),
    "users_of_weight": lambda n: each(n, lambda k: node("MatMul", "x w", "z%d" % k), [external("w", [4, 4], "w.bin")], MATRIX),
    "users_of_sequence": lambda n: net([node("SequenceConstruct", ["x"] * n, "q")] + [
        node("SequenceAt", "q i", t) for t in names(n)] + [RELU], [ints("i", [0], [])]),
    # names
    "names_same": lambda n: each(n, lambda k: node("Relu", "x", "t%d" % k, name="n")),
    "names_numbered": lambda n: each(n, lambda k: node("Relu", "x", "t%d" % k, name="n_%d" % (k // 2))),
    "values": lambda n: net([RELU], infos=[value("v%d" % k) for k in range(n)]),
    "values_same": lambda n: net([RELU], infos=[value("v")] * n),
    # what a model has beside its graph
    "metadata": lambda n: net([RELU]) + tagged(14, n, "k%d"),
    "metadata_same": lambda n: net([RELU]) + tagged(14, n, "k"),
    "opsets": lambda n: net([RELU]) + many(8, [opset(1, "d%d" % k) for k in range(n)]),
    "functions": lambda n: each(n, lambda k: call("f%d" % k, "x", "z%d" % k), (), None, None, 17, [
        function("f%d" % k, "x", "y", [RELU]) for k in range(n)]),
    "functions_unused": lambda n: net([RELU], functions=[function("f%d" % k, "x", "y", [RELU]) for k in range(n)]),
    "function_calls": lambda n: each(n, lambda k: call("F", "x", "z%d" % k), (), None, None, 17, [
        function("F", "x", "y", [RELU])]),
    "function_attributes": lambda n: net([call("F", "x", "z"), RELU], functions=[
        function("F", "x", "y", [RELU], attrs=names(n))]),
    "function_opsets": lambda n: net([call("F", "x", "z"), RELU], functions=[
        function("F", "x", "y", [RELU], imports=[opset()] + [opset(1, "d%d" % k) for k in range(n)])]),
    # initializers
    "initializers": lambda n: net([RELU], [floats("w%d" % k, [0.5]) for k in range(n)]),
    "initializers_used": lambda n: each(n, lambda k: node("Add", "x w%d" % k, "z%d" % k), [
        floats("w%d" % k, [0.5]) for k in range(n)]),
    "initializers_elsewhere": lambda n: each(n, lambda k: node("Add", "x w%d" % k, "z%d" % k), [
        external("w%d" % k, [4], "f%d.bin" % k) for k in range(n)]),
    "initializers_sparse": lambda n: net([RELU], sparse_inits=[
        sparse(floats("w%d" % k, [0.5]), ints("", [1]), [4]) for k in range(n)]),
    "initializer_entries": lambda n: net([RELU], [tensor("w", [4], FLOAT, extra=tagged(13, 1, "location") + tagged(13, n, "k%d") +
                                                         num(14, 1))]),
    "initializer_strings": lambda n: net([RELU], [tensor("w", [n], STRING, ["a"] * n)]),
}


def gemm(k=0, **more):
    return {"id": "g%d" % k, "op": "gemm", "shape": [4, 4, 4], "dtype": "fp32", **more}


def listed(ops, fusions=()):
    return {"schema": "ceiling-scout/ops/1", "model": {"name": "m", "path": "m.onnx"}, "ops": ops, "fusions": list(fusions)}


def fused(k, ops):
    return {"pattern": "p%d" % k, "ops": ops, "count": 1, "selected": 1, "saved_bytes": 0}


WEIGHT = {"name": "w", "file": "w.bin", "offset": 0, "length": 64, "dims": [4, 4], "dtype": "fp32"}
LISTS = {
    "list_names": lambda n: {"a name %d" % k: {"op": "gemm", "shape": [4, 4, 4]} for k in range(n)},
    "list_ids": lambda n: listed([gemm(k) for k in range(n)]),
    "list_fusions": lambda n: listed([gemm(k) for k in range(n)], [fused(k, ["g%d" % k, "g0"]) for k in range(n)]),
    "list_parts": lambda n: listed([gemm(k, parts=["g%d" % (k + 1), "g%d" % (k + 1)]) for k in range(n)] + [gemm(n)], [
        fused(k, ["g%d" % k, "g%d" % n]) for k in range(n)]),
    "list_weights": lambda n: listed([gemm(weight_side="b", count=n, weights=[WEIGHT] * n)]),
    "list_nodes": lambda n: listed([gemm(nodes=names(n))]),
}


def impatient():
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))


def seconds(program, field, n):
    """Processor time of one run; None, and the line it said, where it was killed or refuses what it reads."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        path = os.path.join(folder, "input")
        content = json.dumps(LISTS[field](n)).encode() if field in LISTS else FIELDS[field](n)
        with open(path, "wb") as f:
            f.write(content)
        outputs = ["-o", os.path.join(folder, "ops.json"), "--tensors", os.path.join(folder, "tensors.json"), "-q"]
        command = [SCOUT, path, "--only", "no such name"] if field in LISTS else [program, path] + outputs
        with open(os.path.join(folder, "stderr"), "w+b") as stderr:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr, preexec_fn=impatient)
            _, status, used = os.wait4(child.pid, 0)
            stderr.seek(0)
            said = ascii(stderr.read().decode("utf-8", "replace")[-200:])
    if os.waitstatus_to_exitcode(status) not in ((2,) if field in LISTS else (0, 1)):
        return None, "exit %d, %s" % (os.waitstatus_to_exitcode(status), said)
    return used.ru_utime + used.ru_stime, ""


def wrong(program, field):
    for _ in range(3):  # a neighbour may have taken the time
        (a, said), (b, more) = seconds(program, field, SMALL), seconds(program, field, SMALL * FACTOR)
        if a is None or b is None:
            return (said or more)
        if b <= WORST * max(a, FLOOR):
            return None
    return "%.2f s for %d, %.2f s for %d" % (a, SMALL, b, SMALL * FACTOR)


def main(args):
    if not args:
        print(__doc__, file=sys.stderr)
        return 2
    program, wanted = os.path.abspath(args[0]), tuple(args[1:])
    fields = [f for f in (*FIELDS, *LISTS) if not wanted or f.startswith(wanted)]
    failed = 0
    with ProcessPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        for field, why in zip(fields, pool.map(wrong, [program] * len(fields), fields)):
            if why:
                failed += 1
                print("FAILED growth of %s: %s" % (field, why), flush=True)
    print("%d passed, %d failed" % (len(fields) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
