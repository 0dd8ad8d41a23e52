"""Runs a model in onnxruntime with weights of zeros where they are missing, and says what every tensor was.

Two ways. `whole` runs the model as it is with every tensor made an output. `node_by_node` runs each node alone and
remembers results by everything that goes into them, so that a model far larger than memory, whose layers do the same
work again and again, is run too. Both give {tensor name: (dtype number, shape)}."""

import hashlib
import os

import numpy as np
import onnx
import onnxruntime
from onnx import external_data_helper, helper

# The newest version of the file format that the runtime reads; the newer ones add nothing that these models use.
_IR_LIMIT = 11

RUNTIME_DTYPES = {
    "tensor(float)": 1, "tensor(uint8)": 2, "tensor(int8)": 3, "tensor(uint16)": 4, "tensor(int16)": 5,
    "tensor(int32)": 6, "tensor(int64)": 7, "tensor(string)": 8, "tensor(bool)": 9, "tensor(float16)": 10,
    "tensor(double)": 11, "tensor(uint32)": 12, "tensor(uint64)": 13, "tensor(bfloat16)": 16,
}


def _options():
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return options


def session(model):
    """A session without optimizations, for a path or a ModelProto."""
    source = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, _options(), providers=["CPUExecutionProvider"])


def weight_bytes(model):
    """Bytes of all weights that lie outside the model's file."""
    total = 0
    for t in model.graph.initializer:
        if external_data_helper.uses_external_data(t):
            total += int(np.prod(t.dims, dtype=np.int64)) * helper.tensor_dtype_to_np_dtype(t.data_type).itemsize
    return total


def graph_inputs(model):
    """The inputs that are not initializers."""
    given = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in given]


def feeds(model, binding):
    """Arrays for the inputs: ones for masks of attention, zeros for everything else; symbols bound by name."""
    arrays = {}
    for i in graph_inputs(model):
        t = i.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else binding[d.dim_param] for d in t.shape.dim]
        make = np.ones if "mask" in i.name else np.zeros
        arrays[i.name] = make(dims, dtype=helper.tensor_dtype_to_np_dtype(t.elem_type))
    return arrays


def write_with_zeros(model, folder):
    """Writes the model, every tensor an output and nothing stated about any, with weights of zeros in sparse files."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = min(model.ir_version, _IR_LIMIT)
    graph = changed.graph
    sizes = {}
    for t in graph.initializer:
        if not external_data_helper.uses_external_data(t):
            continue
        info = external_data_helper.ExternalDataInfo(t)
        length = int(np.prod(t.dims, dtype=np.int64)) * helper.tensor_dtype_to_np_dtype(t.data_type).itemsize
        sizes[info.location] = max(sizes.get(info.location, 0), (info.offset or 0) + (info.length or length))
    for location, size in sizes.items():
        with open(os.path.join(folder, location), "wb") as f:
            f.truncate(size)
    del graph.value_info[:]
    del graph.output[:]
    names = {o for n in graph.node for o in n.output if o}
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names))
    path = os.path.join(folder, "zeros.onnx")
    with open(path, "wb") as f:
        f.write(changed.SerializeToString())
    return path


def _known(model):
    """What needs no run: inputs are added by the caller, initializers are stated by the file."""
    return {t.name: (t.data_type, list(t.dims)) for t in model.graph.initializer}


def whole(path, model, binding):
    """`path` is what write_with_zeros wrote of `model`."""
    runner = session(path)
    arrays = feeds(model, binding)
    outputs = runner.get_outputs()
    results = runner.run([o.name for o in outputs], arrays)
    found = _known(model)
    for o, value in zip(outputs, results):
        found[o.name] = (RUNTIME_DTYPES[o.type], list(value.shape))
    for name, value in arrays.items():
        found[name] = (helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape))
    return found


class _Value:
    """An array and what it is recognised by. Missing weights are zeros of their shape and nothing else."""

    def __init__(self, array, kind, key=None):
        self.array, self.kind = array, kind
        if key is None:
            digest = hashlib.blake2b(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data, digest_size=16)
            key = (kind, array.shape, digest.digest())
        self.key = key


def _constants(model):
    values = {}
    for t in model.graph.initializer:
        if external_data_helper.uses_external_data(t):
            dims = tuple(t.dims)
            zeros = np.zeros(dims, dtype=helper.tensor_dtype_to_np_dtype(t.data_type))
            values[t.name] = _Value(zeros, t.data_type, ("zeros", t.data_type, dims))
        else:
            values[t.name] = _Value(onnx.numpy_helper.to_array(t), t.data_type)
    return values


def _run_alone(node, inputs, opsets, ir_version):
    names = [f"i{k}" if value else "" for k, value in enumerate(inputs)]
    outputs = [f"o{k}" if name else "" for k, name in enumerate(node.output)]
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    del alone.input[:], alone.output[:]
    alone.input.extend(names)
    alone.output.extend(outputs)
    given = [(n, v) for n, v in zip(names, inputs) if v]
    graph = helper.make_graph(
        [alone], "alone", [helper.make_tensor_value_info(n, v.kind, v.array.shape) for n, v in given],
        [onnx.ValueInfoProto(name=o) for o in outputs if o])
    runner = session(helper.make_model(graph, opset_imports=opsets, ir_version=min(ir_version, _IR_LIMIT)))
    wanted = runner.get_outputs()
    results = runner.run([o.name for o in wanted], {n: v.array for n, v in given})
    by_name = {o.name: _Value(r, RUNTIME_DTYPES[o.type]) for o, r in zip(wanted, results)}
    return [by_name.get(o) for o in outputs]


def node_by_node(model, binding):
    values = _constants(model)
    for name, array in feeds(model, binding).items():
        values[name] = _Value(array, helper.np_dtype_to_tensor_dtype(array.dtype))
    uses = {}
    for node in model.graph.node:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    found = {name: (v.kind, list(v.array.shape)) for name, v in values.items()}
    remembered = {}
    for node in model.graph.node:
        inputs = [values[name] if name else None for name in node.input]
        plain = onnx.NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
        key = (plain.SerializeToString(), tuple(bool(o) for o in node.output), tuple(v.key if v else None for v in inputs))
        if key not in remembered:
            remembered[key] = _run_alone(node, inputs, model.opset_import, model.ir_version)
        for name, value in zip(node.output, remembered[key]):
            if name:
                values[name] = value
                found[name] = (value.kind, list(value.array.shape))
        for name in node.input:
            uses[name] = uses.get(name, 0) - 1
            if name and uses[name] == 0:
                del values[name]  # its array lives on only where a result is remembered
    return found, len(remembered)
