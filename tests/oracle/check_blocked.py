#!/usr/bin/env python3
"""Models whose channels onnxruntime put into blocks, as it saves them for a processor: every shape must be the one that a
run gives, and the multiply-accumulates those of the model before, with its channels padded.

Usage: check_blocked.py [EXTRACT_OPS]
"""

import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from oracle import Run, Tally, program

BLOCKED = "com.microsoft.nchwc"


def plain(channels):
    """An image net with whatever onnxruntime takes into blocks; its inner tensors have so many channels."""
    stored, nodes = [], []

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))

    def conv(x, output, shape, **attributes):
        stored.append(numpy_helper.from_array(np.full(shape, 0.01, np.float32), output + "_w"))
        add("Conv", [x, output + "_w"], output, pads=[shape[2] // 2] * 4, **attributes)

    conv("x", "a", (channels, 3, 3, 3), strides=[2, 2])
    add("Relu", ["a"], "b")
    add("MaxPool", ["b"], "c", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    conv("c", "d", (channels, 1, 3, 3), group=channels)
    add("HardSigmoid", ["d"], "e")
    conv("e", "f", (channels, channels, 1, 1))
    add("Add", ["f", "c"], "g")
    stored.append(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "twice"))
    add("Resize", ["g", "", "twice"], "h", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    conv("h", "i", (2 * channels, channels, 3, 3))
    add("AveragePool", ["i"], "j", kernel_shape=[2, 2])
    add("Softsign", ["j"], "k")
    conv("k", "l", (channels, 2 * channels, 1, 1))
    add("GlobalAveragePool", ["l"], "y")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "blocked", [value("x", 1, [1, 3, 32, 28])], [value("y", 1, [1, channels, 1, 1])], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def session(model, level, saved=None, names=()):
    """A session of the model, with these inner tensors as outputs too."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    if saved:
        options.optimized_model_filepath = saved
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])


def shapes_of(model):
    """Every tensor's shape in a run."""
    outputs = {o.name for o in model.graph.output}
    names = [o for n in model.graph.node for o in n.output if o and o not in outputs]
    run = session(model, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, names=names)
    arrays = run.run(None, {"x": np.ones((1, 3, 32, 28), np.float32)})
    shapes = {o.name: list(a.shape) for o, a in zip(run.get_outputs(), arrays)}
    shapes.update((i.name, list(i.dims)) for i in model.graph.initializer)
    return shapes


def macs_of(model, shapes):
    """Each weight once for each place of the output."""
    convs = [n for n in model.graph.node if n.op_type in ("Conv", "FusedConv")]
    return sum(int(np.prod(shapes[n.output[0]])) * int(np.prod(shapes[n.input[1]][1:])) for n in convs)


def check(tally, folder, channels):
    saved = os.path.join(folder, f"blocked_{channels}.onnx")
    before = plain(channels)
    session(before, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, saved)
    model = onnx.load(saved)
    found = {n.op_type for n in model.graph.node if n.domain == BLOCKED}
    if "Conv" not in found:
        tally.skip("onnxruntime has no blocks on this processor")
        return
    shapes, run = shapes_of(model), Run(program(), saved)
    tally.check(run.code == 0, f"{channels} channels, {sorted(found)}: exit {run.code}: {run.stderr}")
    if not run.ops:
        return
    wrong = {name: (t.get("shape"), shapes[name]) for name, t in run.tensors.items() if name in shapes and t.get("shape") != shapes[name]}
    tally.check(not wrong, f"{channels} channels: shapes, and those of a run: {wrong}")
    macs, real, least = run.ops["totals"]["macs"], macs_of(model, shapes), macs_of(before, shapes_of(before))
    tally.check(macs == real, f"{channels} channels: {macs} MACs, {real} by the weights")
    tally.check(macs == least if channels % 16 == 0 else macs >= least, f"{channels} channels: {macs} MACs, {least} of the model before")


def check_unknown(tally, folder):
    """An operator of a domain that is not known is told with it, for its name alone may be one that is known."""
    path, value = os.path.join(folder, "unknown.onnx"), helper.make_tensor_value_info
    nodes = [helper.make_node("Conv", ["x"], ["t"], "first", domain="com.example"), helper.make_node("Conv", ["t"], ["y"], "second", domain="com.example")]
    graph = helper.make_graph(nodes, "unknown", [value("x", 1, [1])], [value("y", 1, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)], ir_version=8), path)
    run = Run(program(), path)
    told = [(u["op_type"], u["why"]) for u in run.ops["coverage"]["unresolved"]]
    want = [("com.example.Conv", "the operator com.example.Conv is not known and the model states no shape"),
            ("com.example.Conv", "the operator is not known")]
    tally.check(told == want, f"unknown operators: {told}")
    tally.check({o["what"] for o in run.ops["ops"]} == {"com.example.Conv"}, f"what they are: {run.ops['ops']}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        check_unknown(tally, folder)
        for channels in (16, 24, 32, 40, 72, 96):
            check(tally, folder, channels)
    tally.end()


if __name__ == "__main__":
    main()
