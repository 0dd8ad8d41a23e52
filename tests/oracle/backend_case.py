"""One of onnx's own test cases: a model of mostly one operator, inputs for it, and what must come out.

A case is tried twice. As it is: shapes must follow from the model alone. Where that fails, with the inputs' values made
constants of the model: if it then succeeds, and the operator is one whose output's shape is documented to depend on the
value of an input (SHAPED_BY_VALUE), the case is counted apart."""

import os
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import oracle

# Operators whose outputs' shapes depend on values, and by which inputs.
SHAPED_BY_VALUE = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Col2Im": [1, 2], "Compress": [1], "ConstantOfShape": [0],
    "DFT": [1, 2], "Expand": [1], "HammingWindow": [0], "HannWindow": [0], "If": [0], "ImageDecoder": [0], "Loop": [0, 1],
    "MaxUnpool": [2], "MelWeightMatrix": [0, 1], "NonMaxSuppression": [0, 1, 2, 3, 4], "NonZero": [0], "OneHot": [1],
    "Pad": [1, 3], "Range": [0, 1, 2], "ReduceL1": [1], "ReduceL2": [1], "ReduceLogSum": [1], "ReduceLogSumExp": [1],
    "ReduceMax": [1], "ReduceMean": [1], "ReduceMin": [1], "ReduceProd": [1], "ReduceSum": [1], "ReduceSumSquare": [1],
    "Reshape": [1], "Resize": [2, 3], "STFT": [1, 3], "SequenceAt": [1], "SequenceErase": [1], "SequenceInsert": [2],
    "Slice": [1, 2, 3, 4], "Split": [1], "SplitToSequence": [1], "Squeeze": [1], "StringSplit": [0], "Tile": [1],
    "TopK": [1], "Unique": [0], "Unsqueeze": [1], "Upsample": [1], "StringNormalizer": [0], "TfIdfVectorizer": [],
    "RegexFullMatch": [], "ArrayFeatureExtractor": [1], "OptionalGetElement": [0], "TensorScatter": [], "Scan": [],
}


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
        """The model with its tensors given as initializers."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        inputs = list(zip(model.graph.input, self.inputs))
        del model.graph.input[:]
        for i, value in inputs:
            kind = i.type.tensor_type.elem_type if i.type.HasField("tensor_type") else 0
            if isinstance(value, np.ndarray) and kind and _same_kind(kind, value):
                model.graph.initializer.append(numpy_helper.from_array(value, i.name))
            else:
                model.graph.input.append(i)
        return model


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


def _try(program, model, case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as f:
            f.write(model.SerializeToString())
        run = oracle.Run(program, path, *case.options())
    problems = [] if run.code == 0 else [f"exit {run.code} {run.last_line()}"]
    if run.tensors_text:
        for info, value in zip(model.graph.output, case.outputs):
            wrong = _output_differs(run.tensors.get(info.name), info, value)
            if wrong:
                problems.append(f"{info.name}: {wrong}")
    return run, problems


def judge(program, case):
    """(verdict, problems); the verdict is "matched", "by value" or "wrong"."""
    run, problems = _try(program, case.model, case)
    if not problems:
        return "matched", []
    if run.code not in (0, 1):
        return "wrong", problems
    _, later = _try(program, case.with_constants(), case)
    if later:
        return "wrong", problems + ["with constant inputs: " + p for p in later]
    if any(n.op_type in SHAPED_BY_VALUE for n in case.model.graph.node):
        return "by value", problems
    return "wrong", problems + ["with constant inputs it is right, but the operator's shapes do not depend on values"]
