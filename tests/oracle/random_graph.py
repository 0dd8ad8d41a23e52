"""A graph that grows node by node: each node is run by onnxruntime as soon as it is there, so that the next one can be chosen
to fit what it gave. What onnxruntime does not run is not taken."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MOST_ELEMENTS = 20000
FLOATS_READ = 256  # extract_ops reads no longer list of floating numbers for a shape
IR = 10
LOCAL = "local"  # the domain of a model's own functions

# What a value is made of before a size may follow from it; all else is data to a reader of the model.
FOLLOWED = frozenset("Add Sub Mul Neg Abs Min Max Concat Gather Slice Squeeze Unsqueeze Identity Constant Cast".split())


class Refused(Exception):
    """onnxruntime does not run this node."""


def _session_options():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return options


OPTIONS = _session_options()


def dtype_of(array):
    return TensorProto.STRING if array.dtype.kind in "OUT" else helper.np_dtype_to_tensor_dtype(array.dtype)


def value_info(name, value, shape=True):
    """The type of a value as a graph's input; of sequences, tensors of any shape."""
    if isinstance(value, list):
        kind = dtype_of(value[0]) if value else TensorProto.FLOAT
        return helper.make_tensor_sequence_value_info(name, kind, None)
    return helper.make_tensor_value_info(name, dtype_of(value), value.shape if shape else None)


def free_names(nodes):
    """What nodes (and their bodies) read from outside."""
    made, free = set(), []
    for node in nodes:
        read = list(node.input)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                body = attribute.g
                inner = {i.name for i in body.input} | {i.name for i in body.initializer}
                results = [o.name for o in body.output]
                read += [n for n in free_names(body.node) if n not in inner]
                inside = inner | {o for n in body.node for o in n.output}
                read += [n for n in results if n not in inside]
        free += [n for n in read if n and n not in made and n not in free]
        made |= set(node.output)
    return free


class Graph:
    """nodes in order; values: what each name holds. A body is a graph with an outer one."""

    def __init__(self, rng, opset, outer=None):
        self.rng, self.opset, self.outer = rng, opset, outer
        self.nodes, self.functions = [], outer.functions if outer else []
        self.values = dict(outer.values) if outer else {}
        self.known = set(outer.known) if outer else set()  # values that follow from the model alone
        self.by_data = set(outer.by_data) if outer else set()  # shapes that do not
        self.count = outer.count if outer else [0]

    def name(self):
        self.count[0] += 1
        return f"t{self.count[0]}"

    def constant(self, value):
        """A constant: an initializer, in a body a node."""
        value = np.asarray(value)
        if self.outer:
            return self.add("Constant", [], value=numpy_helper.from_array(value, "value"))
        name = self.name()
        self.values[name] = value
        if value.dtype.kind != "f" or value.size <= FLOATS_READ:
            self.known.add(name)
        return name

    def input(self, value):
        """Data: an input of the main graph."""
        name = self.name()
        at = self
        while at:
            at.values[name] = value
            at = at.outer
        return name

    def add(self, op, inputs, outputs=1, domain="", by=(), data=False, **attributes):
        """Appends a node and runs it. `by`: inputs whose values say the shape; data: the shape follows from no model."""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, domain=domain, name=f"n_{names[0]}", **attributes)
        results = run([node], {n: self.values[n] for n in free_names([node])}, names, self.opset, self.functions)
        for result in results:
            parts = result if isinstance(result, list) else [result]
            if not isinstance(result, (np.ndarray, list)) or sum(p.size for p in parts) > MOST_ELEMENTS:
                raise Refused("too large, or no tensor")
        self.nodes.append(node)
        self.values.update(zip(names, results))
        reads = free_names([node])
        if data or any(n in self.by_data for n in reads) or any(n not in self.known for n in by if n):
            self.by_data.update(names)
        elif op in ("Shape", "Size", "Constant") or (op in FOLLOWED and all(n in self.known for n in reads)):
            self.known.update(names)
        return names[0] if outputs == 1 else names

    def model(self, keep=None):
        """The whole as a model; keep: only these nodes, what they read from others is data or, where it is known, constant."""
        nodes = self.nodes if keep is None else keep
        reads = free_names(nodes)
        given = [n for n in reads if n in self.known and isinstance(self.values[n], np.ndarray)]
        return build(nodes, {n: self.values[n] for n in reads if n not in given},
                     {n: self.values[n] for n in given}, [o for n in nodes for o in n.output if o], self.opset,
                     self.functions, self.values)


def build(nodes, inputs, constants, outputs, opset, functions, values=None):
    """Outputs without a value get no type: onnxruntime infers it."""
    found = values or {}
    graph = helper.make_graph(
        nodes, "random", [value_info(n, v) for n, v in inputs.items()],
        [value_info(n, found[n], False) if n in found else onnx.ValueInfoProto(name=n) for n in outputs],
        [numpy_helper.from_array(v, n) for n, v in constants.items()])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid(LOCAL, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR, functions=functions)


def run(nodes, inputs, outputs, opset, functions):
    """What onnxruntime gives for these nodes alone."""
    model = build(nodes, inputs, {}, outputs, opset, functions if any(n.domain == LOCAL for n in nodes) else [])
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
        return session.run(outputs, inputs)
    except Exception as problem:  # its exceptions share no base class
        raise Refused(str(problem).splitlines()[0]) from None
