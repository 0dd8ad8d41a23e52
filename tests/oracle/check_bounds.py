#!/usr/bin/env python3
"""Sizes that depend on data, as torch writes them: with data that reach the most, every bound must be what a run gives.

Usage: check_bounds.py [EXTRACT_OPS]
"""

import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from oracle import Run, Tally, program

MOST = 12


class Made:
    """A model of one input of 12 numbers, each of which may be a row."""

    def __init__(self):
        self.nodes, self.stored = [], []

    def add(self, op, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def constant(self, *values, dtype=np.int64):
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def weight(self, *dims):
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.ones(dims, np.float32), name))
        return name

    def rows(self):
        """As many rows of 8 as the input has numbers that are not 0, and what they were made from."""
        places = self.add("Transpose", self.add("NonZero", "x"), perm=[1, 0])
        return places, self.add("MatMul", self.add("Cast", places, to=1), self.weight(1, 8))

    def size(self, x):
        return self.add("Gather", self.add("Shape", x), self.constant(0), axis=0)

    def model(self, result):
        self.add("Identity", result)
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "bounds", [value("x", 1, [MOST])], [value(self.nodes[-1].output[0], 1, None)], self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expanded(m):
    """expand(-1, 4) behind index_put: sizes of -1 are replaced where there are any."""
    places, _ = m.rows()
    wanted = m.add("Concat", m.size(places), m.constant(4), axis=0)
    chosen = m.add("Where", m.add("Equal", wanted, m.constant(-1, -1)), m.constant(1, 1), wanted)
    return m.add("MatMul", m.add("Expand", m.weight(1, 1), chosen), m.weight(4, 3))


def regrouped(m):
    """Rows that are computed of others are grouped by the number of those."""
    places, rows = m.rows()
    boxes = m.add("Mul", m.add("Sub", rows, rows), m.add("Relu", rows))
    shape = m.add("Concat", m.size(places), m.constant(-1), m.constant(4), axis=0)
    return m.add("MatMul", m.add("Reshape", boxes, shape), m.weight(4, 3))


def of_another(m):
    """The number of other rows says nothing: each group may be as large as all."""
    _, rows = m.rows()
    fewer = m.add("NonZero", m.add("Floor", "x"))
    shape = m.add("Concat", m.size(m.add("Transpose", fewer, perm=[1, 0])), m.constant(-1), axis=0)
    return m.add("Reshape", rows, shape)


def run_shapes(model):
    inner = [o for n in model.graph.node for o in n.output if o != model.graph.output[0].name]
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    arrays = session.run(None, {"x": np.full(MOST, 1.5, np.float32)})
    return {o.name: list(a.shape) for o, a in zip(session.get_outputs(), arrays)}


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for make in (expanded, regrouped, of_another):
            m, path = Made(), os.path.join(folder, make.__name__ + ".onnx")
            model = m.model(make(m))
            onnx.save(model, path)
            run = Run(program(), path)
            told = {name: t.get("shape") for name, t in run.tensors.items()}
            wrong = {name: (told.get(name), shape) for name, shape in run_shapes(model).items() if told.get(name) != shape}
            if make is of_another:
                reshaped, last = [n.output[0] for n in model.graph.node[-2:]]
                tally.check(set(wrong) == {reshaped, last} and told[reshaped] is None, f"{make.__name__}: {wrong}")
            else:
                tally.check(run.code == 1 and not wrong, f"{make.__name__}: exit {run.code}, told and of a run: {wrong}")
    tally.end()


if __name__ == "__main__":
    main()
