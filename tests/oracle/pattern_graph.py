"""A small builder of models, and what the pattern checks ask of a run."""

import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle

FLOAT, HALF, BOOL, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL, TensorProto.INT64


class Graph:
    """Nodes are added by calling their operator: g.MatMul(a, b), g.Softmax(x, axis=-1). Numbers and arrays become
    constants; an operator of com.microsoft is called with domain="com.microsoft"; outputs=2 gives a list."""

    def __init__(self, opset=20):
        self.opset, self.nodes, self.inits, self.inputs, self.outputs = opset, [], [], [], []
        self.names = 0

    def name(self, prefix):
        self.names += 1
        return f"{prefix}_{self.names}"

    def input(self, shape, dtype=FLOAT, name=None):
        name = name or self.name("in")
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def const(self, value, dtype=np.float32):
        array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=dtype)
        name = self.name("c")
        self.inits.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, dtype=np.int64))

    def weight(self, *shape, dtype=np.float32):
        return self.const(np.zeros(shape, dtype=dtype))

    def out(self, *tensors):
        for t in tensors:
            name = self.name("out")
            self.nodes.append(helper.make_node("Identity", [t], [name]))
            self.outputs.append(helper.make_tensor_value_info(name, FLOAT, None))
        return self

    def __getattr__(self, op):
        if op.startswith("_"):
            raise AttributeError(op)

        def add(*inputs, outputs=1, domain="", **attrs):
            ins = [i if isinstance(i, str) else self.const(i) for i in inputs]
            outs = [self.name(op.lower()) for _ in range(outputs)]
            self.nodes.append(helper.make_node(op, ins, outs, domain=domain, **attrs))
            return outs if outputs > 1 else outs[0]

        return add

    # ---- what several patterns are made of ----

    def reshape(self, x, *shape):
        return self.Reshape(x, self.ints(*shape))

    def slice(self, x, start, end, axis, step=1):
        return self.Slice(x, self.ints(start), self.ints(end), self.ints(axis), self.ints(step))

    def unsqueeze(self, x, *axes):
        return self.Unsqueeze(x, self.ints(*axes))

    def mean(self, x, *axes):
        return self.ReduceMean(x, self.ints(*axes), keepdims=1)

    def cast(self, x, to):
        return self.Cast(x, to=to)

    def linear(self, x, *shape):
        return self.MatMul(x, self.weight(*shape))

    def model(self):
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        outputs = [onnx.ValueInfoProto(name=o.name) for o in self.outputs]
        for o in outputs:
            o.type.tensor_type.elem_type = 0
        graph = helper.make_graph(self.nodes, "pattern", self.inputs, outputs, self.inits)
        for o in graph.output:
            o.ClearField("type")
        return helper.make_model(graph, opset_imports=imports, ir_version=9)


class Found:
    """The entries that a model of this graph gives: `ops` those that count and cost something."""

    def __init__(self, graph, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pattern.onnx")
            with open(path, "wb") as f:
                f.write(graph.model().SerializeToString())
            self.run = oracle.Run(oracle.program(), path, *options)
        self.ops = [o for o in (self.run.ops or {}).get("ops", []) if o["count"] > 0]

    def of(self, kind, what=None):
        return [o for o in self.ops if o["op"] == kind and what in (None, o.get("what"))]

    def left(self):
        """What costs something, by kind, for messages."""
        return [(o["count"], o["op"], o.get("what"), o.get("shape")) for o in self.ops if o.get("what") not in ("view", "folded")]


def operand_bytes(entry):
    """Queries, keys and values of an attention."""
    batch, heads, rows, width = entry["shape"]
    kv = entry["kv_heads"] * entry["kv_len"] * (width + entry.get("v_head", width))
    return batch * (heads * rows * width + kv) * {"fp32": 4, "fp16": 2, "bf16": 2}[entry["dtype"]]


def expect_none(tally, name, graph, *kinds):
    """The run ends well, and nothing was taken for one of these (kind or kind:what)."""
    found = Found(graph)
    if tally.check(found.run.ops is not None and found.run.code == 0, f"{name}: exit {found.run.code} {found.run.last_line()}"):
        for kind, _, what in (k.partition(":") for k in kinds):
            tally.check(not found.of(kind, what or None), f"{name}: taken for {kind} {what}: {found.left()}")
    return found


def expect(tally, name, graph, kind, what=None, count=1, absent=(), **fields):
    """One entry of a kind (and what) that occurs `count` times, with these fields; no entry of the kinds in `absent`."""
    found = Found(graph)
    if not tally.check(found.run.ops is not None and found.run.code == 0, f"{name}: exit {found.run.code} {found.run.last_line()}"):
        return None
    entries = found.of(kind, what)
    if not tally.check(len(entries) == 1 and entries[0]["count"] == count, f"{name}: no single {kind} {what or ''} of count {count} in {found.left()}"):
        return None
    entry = entries[0]
    if kind == "attention":
        needed = operand_bytes(entry)
        tally.check(entry["bytes_read"] >= needed, f"{name}: reads {entry['bytes_read']}, its operands alone are {needed}")
    for field, want in fields.items():
        got = entry.get(field)
        near = isinstance(want, float) and isinstance(got, (int, float)) and abs(got - want) <= 1e-3 * abs(want)
        if field == "bytes_read":  # a few scalars more
            near = want <= got <= want + 64
        tally.check(got == want or near, f"{name}: {field} is {got}, should be {want}")
    for other in absent:
        kind_of, _, what_of = other.partition(":")
        tally.check(not found.of(kind_of, what_of or None), f"{name}: {other} is left over: {found.left()}")
    return entry
