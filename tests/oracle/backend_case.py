"""One of onnx's own test cases: a model of mostly one operator, inputs for it, and what must come out.

A case is tried twice. As it is: shapes must follow from the model alone. Where that fails, with the inputs' values made
constants of the model: if it then succeeds, and the operator is one whose output's shape is documented to depend on the
value of an input (SHAPED_BY_VALUE), or an input is a sequence, whose length no model can state, the case is counted
apart. What depends on data so that it takes the operator's whole computation to know (SHAPED_BY_DATA) must be bounded
from above, and said to be only a bound."""

import os
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import oracle

# Operators whose outputs' shapes depend on the value of an input that says a size, a position, axes or a length.
SHAPED_BY_VALUE = frozenset("""
    AffineGrid BlackmanWindow CenterCropPad Col2Im Compress ConstantOfShape DFT Expand HammingWindow HannWindow If
    Loop MaxUnpool MelWeightMatrix NonMaxSuppression NonZero OneHot OptionalGetElement Pad Range ReduceL1 ReduceL2
    ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Reshape Resize STFT
    SequenceAt SequenceErase SequenceInsert Slice Split SplitToSequence Squeeze Tile TopK Unique Unsqueeze Upsample
""".split())

# Operators whose outputs' shapes are a result of the computation itself.
SHAPED_BY_DATA = frozenset(
    "Compress ImageDecoder Loop NonMaxSuppression NonZero StringNormalizer StringSplit Unique".split())


class Case:
    """name; model (ModelProto); inputs and outputs (arrays, lists of arrays, or None for an empty optional)."""

    def __init__(self, name, model, inputs, outputs):
        self.name, self.model, self.inputs, self.outputs = name, model, inputs, outputs

    def options(self):
        """Symbols of the inputs bound to what the data has."""
        found = {}
        for i, value in zip(self.model.graph.input, self.inputs):
            if isinstance(value, np.ndarray) and i.type.HasField("tensor_type"):
                for d, size in zip(i.type.tensor_type.shape.dim, value.shape):
                    if d.dim_param:
                        found[d.dim_param] = size
        return [o for name, size in found.items() for o in ("--dim", f"{name}={size}")]

    def with_constants(self):
        """The model with its inputs given: tensors as initializers, sequences and optionals built from such."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        inputs = list(zip(model.graph.input, self.inputs))
        del model.graph.input[:]
        made = []
        for i, value in inputs:
            if not _give(model.graph, made, i.name, i.type, value):
                model.graph.input.append(i)
        nodes = made + list(model.graph.node)
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        return model

    def has_sequences(self):
        return any(not i.type.HasField("tensor_type") for i in self.model.graph.input)


def _give(graph, made, name, kind, value):
    """Defines `name` in the graph as the value; False where that cannot be done."""
    if kind.HasField("tensor_type"):
        number = kind.tensor_type.elem_type
        if not isinstance(value, np.ndarray) or not _same_kind(number, value):
            return False
        graph.initializer.append(numpy_helper.from_array(value, name))
        return True
    if kind.HasField("sequence_type") and isinstance(value, list):
        elem = kind.sequence_type.elem_type
        parts = [f"{name}_element_{k}" for k in range(len(value))]
        if not all(_give(graph, made, p, elem, np.asarray(v)) for p, v in zip(parts, value)):
            return False
        if parts:
            made.append(helper.make_node("SequenceConstruct", parts, [name]))
        else:
            made.append(helper.make_node("SequenceEmpty", [], [name], dtype=elem.tensor_type.elem_type))
        return True
    if kind.HasField("optional_type"):
        if value is None:
            made.append(helper.make_node("Optional", [], [name], type=kind.optional_type.elem_type))
            return True
        if not _give(graph, made, name + "_held", kind.optional_type.elem_type, value):
            return False
        made.append(helper.make_node("Optional", [name + "_held"], [name]))
        return True
    return False


def _same_kind(kind, value):
    try:
        return helper.np_dtype_to_tensor_dtype(value.dtype) == kind
    except (KeyError, ValueError):
        return False


def _tensor_differs(got, kind, shape):
    want = (oracle.DTYPES[kind], list(shape))
    if got is None:
        return f"absent, should be {want[0]}{want[1]}"
    if (got.get("dtype"), got.get("shape")) != want:
        return f"{got.get('dtype')}{got.get('shape')}, should be {want[0]}{want[1]}"
    return None


def _output_differs(got, value_info, value):
    """None, or how one output differs from what is stored."""
    t = value_info.type
    if t.HasField("tensor_type") and isinstance(value, (np.ndarray, np.generic)):
        return _tensor_differs(got, t.tensor_type.elem_type, np.asarray(value).shape)
    if got is None:
        return "absent"
    if t.HasField("optional_type"):
        return _optional_differs(got, t.optional_type.elem_type, value)
    return _sequence_differs(got, t.sequence_type.elem_type, value)


def _sequence_differs(got, elem_type, value):
    """A sequence says its length and what its first element is like."""
    if got.get("form") != "sequence" or got.get("length") != len(value):
        return f"{got.get('form')} of {got.get('length')} elements, should be a sequence of {len(value)}"
    if not value:
        return None
    return _tensor_differs(got, elem_type.tensor_type.elem_type, np.asarray(value[0]).shape)


def _optional_differs(got, elem_type, value):
    """An optional says that it is one, and what it would hold."""
    if got.get("form") != "optional":
        return f"{got.get('form')}, should be an optional"
    if value is None or not elem_type.HasField("tensor_type"):
        return None
    return _tensor_differs(got, elem_type.tensor_type.elem_type, np.asarray(value).shape)


def _is_bound(got, value):
    """Whether what is said of a tensor is honest: unknown, or a bound that the value keeps."""
    if not isinstance(value, (np.ndarray, np.generic)) or got is None or "shape" not in got:
        return True
    size = np.asarray(value).shape
    return got.get("exact") is False and len(got["shape"]) == len(size) and all(a >= b for a, b in zip(got["shape"], size))


def _only_bodies_vary(ops):
    """A node in a loop's body may have another shape in each iteration, which is said; the outputs are exact all the same."""
    return all("from one iteration to the next" in u["why"] for u in ops["coverage"]["unresolved"])


def _try(program, model, case):
    """What is wrong with the outputs, and whether everything that is wrong was said to be only a bound."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as f:
            f.write(model.SerializeToString())
        run = oracle.Run(program, path, *case.options())
    fine = run.code == 0 or (run.code == 1 and _only_bodies_vary(run.ops))
    problems = [] if fine else [f"exit {run.code} {run.last_line()}".strip()]
    honest = run.code in (0, 1)
    if run.tensors_text:
        for info, value in zip(model.graph.output, case.outputs):
            wrong = _output_differs(run.tensors.get(info.name), info, value)
            if wrong:
                problems.append(f"{info.name}: {wrong}")
                honest = honest and _is_bound(run.tensors.get(info.name), value)
    return problems, honest and run.code == 1


def judge(program, case):
    """(verdict, problems); the verdict is "matched", "by value", "by data" or "wrong"."""
    problems, honest = _try(program, case.model, case)
    if not problems:
        return "matched", []
    if not honest and not case.has_sequences():
        return "wrong", problems
    later, honest_later = _try(program, case.with_constants(), case)
    operators = {n.op_type for n in case.model.graph.node}
    if not later:
        if case.has_sequences() or operators & SHAPED_BY_VALUE:
            return "by value", problems
        return "wrong", problems + ["with constant inputs it is right, but the operator's shapes do not depend on values"]
    if honest_later and operators & SHAPED_BY_DATA:
        return "by data", later
    return "wrong", problems + ["with constant inputs: " + p for p in later]
