"""Operators that are taken apart, as models of one node: their parts are run, and held against what onnxruntime makes of the
whole, or against the operator's formula where it has no kernel for the CPU."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

DOMAINS = {"": 21, "com.microsoft": 1}


class Stored(np.ndarray):
    """An input that the model has."""


def as_stored(values, dtype=None):
    return np.array(values, dtype).view(Stored)


def normal(rng, *dims, dtype=np.float32, scale=1.0):
    return (rng.standard_normal(dims) * scale).astype(dtype)


def products(rng):
    """Batches that broadcast in part, without the matrices; rows, depth and columns of these."""
    for left, right in (([2, 3, 2], [2, 3, 1]), ([2, 3], [1, 3]), ([2, 3], [3]), ([3, 2], [3, 1]), ([2, 1], [2, 3]), ([2, 1, 4], [1, 3, 4]),
                        ([2, 1, 4], [3, 1]), ([1, 3, 1], [2, 1, 4]), ([3], [2, 3]), ([2, 3, 4, 2], [3, 1, 2]), ([5, 1], [1, 6]), ([9, 3], [3])):
        for m, k, n in ((4, 5, 3), (1, 6, 7)):
            a, b, turned = [*left, m, k], [*right, k, n], [*right, n, k]
            where = f"{a} by {b}"
            yield f"MatMul, {where}", "MatMul", [normal(rng, *a), normal(rng, *b)], {}
            yield f"FusedMatMul, {where}", "com.microsoft:FusedMatMul", [normal(rng, *a), normal(rng, *turned)], {"transB": 1, "alpha": 0.5}
            bytes_of = [rng.integers(0, 255, dims).astype(np.uint8) for dims in (a, b)]
            yield f"MatMulInteger, {where}", "MatMulInteger", [*bytes_of, as_stored(7, np.uint8), as_stored(130, np.uint8)], {}
    yield "MatMul of a weight", "MatMul", [normal(rng, 2, 3, 2, 4, 5), as_stored(normal(rng, 2, 3, 1, 5, 3))], {}


CASES = (products,)


def models(rng):
    for cases in CASES:
        for name, op, inputs, attributes, *formula in cases(rng):
            yield name, *model(op, inputs, attributes, len(formula[0](*inputs)) if formula else 1), *formula


def model(op, inputs, attributes, outputs):
    """The model, and what to feed it."""
    domain, op = op.split(":") if ":" in op else ("", op)
    names = ["" if x is None else f"in{k}" for k, x in enumerate(inputs)]
    stored = [numpy_helper.from_array(np.asarray(x), n) for n, x in zip(names, inputs) if isinstance(x, Stored)]
    feeds = {n: x for n, x in zip(names, inputs) if n and not isinstance(x, Stored)}
    formal = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
    results = [f"out{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, "whole", domain=domain, **attributes)
    graph = helper.make_graph([node], "parts", formal, [onnx.ValueInfoProto(name=r) for r in results], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in DOMAINS.items()], ir_version=10), feeds


def expected(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
