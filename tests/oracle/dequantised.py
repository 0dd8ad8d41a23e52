"""Small products whose weight stands behind a DequantizeLinear: by axis, in blocks or by channel, with zero points or without,
as stored, behind a Transpose, or read the other way round by a Gemm. Squares too, whose sizes do not tell the axes apart."""

import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROWS, BLOCK = 3, 4
OPSET = 21  # blocks


def models(rng):
    """Each as (name, model, input, what numpy makes of it, whether its scales must be told)."""
    sizes, ways = [(8, 8), (8, 16), (16, 8), (1, 8), (8, 4)], ["MatMul", "Transpose", "Einsum", "transB"]
    for (n, k), way, axis, block, zeros, kind in itertools.product(sizes, ways, (0, 1), (0, BLOCK), (False, True), (np.int8, np.uint8)):
        n_first = way != "MatMul"
        stored = (n, k) if n_first else (k, n)
        if block and stored[axis] % block:
            continue
        if block:
            size = [d // block if at == axis else d for at, d in enumerate(stored)]
        else:
            size = [stored[axis]]
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        given = {"w": rng.integers(low, high, stored, kind, True), "scales": rng.uniform(0.1, 2, size).astype(np.float32)}
        if zeros:
            given["zeros"] = rng.integers(low, high, size, kind, True)
        x = rng.standard_normal((ROWS, k)).astype(np.float32)
        nodes = [helper.make_node("DequantizeLinear", list(given), ["weight"], "d", axis=axis - (2 if zeros else 0),
                                  **({"block_size": block} if block else {}))]
        if way in ("Transpose", "Einsum"):
            nodes.append(helper.make_node("Transpose", ["weight"], ["turned"], "t", perm=[1, 0]))
        product, options = {"transB": ("Gemm", {"transB": 1}), "Einsum": ("Einsum", {"equation": "mk,kn->mn"})}.get(way, ("MatMul", {}))
        nodes.append(helper.make_node(product, ["x", nodes[-1].output[0]], ["y"], "product", **options))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, (ROWS, n))],
                                  [numpy_helper.from_array(v, name) for name, v in given.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        each = [np.repeat(given[name], block, axis) if block else given[name].reshape([-1, 1] if axis == 0 else [1, -1])
                for name in given if name != "w"]
        weight = (given["w"].astype(np.float64) - (each[1].astype(np.float64) if zeros else 0)) * each[0]
        along = axis == (1 if n_first else 0) if block else axis == (0 if n_first else 1)
        must = along and (not block or n_first or k == block) and n > 1  # of one column axes and a Transpose tell little
        name = f"{way} of {n}x{k} {np.dtype(kind)} along {axis} in blocks of {block}{' with zero points' if zeros else ''}"
        yield name, model, x, x @ (weight.T if n_first else weight), must


def dynamic_convolution(channels):
    """As onnxruntime's dynamic quantisation writes it, with a scale for each channel or one."""
    nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["bytes", "scale", "zero"]),
             helper.make_node("ConvInteger", ["bytes", "w", "zero"], ["sums"], "conv"),
             helper.make_node("Cast", ["sums"], ["floats"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["scale", "w_scale"], ["factor"]), helper.make_node("Mul", ["floats", "factor"], ["y"])]
    given = {"w": np.ones((6, 4, 3, 3), np.int8), "w_scale": np.ones((1, 6, 1, 1) if channels else (), np.float32)}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 8, 8))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 6, 6, 6))],
                              [numpy_helper.from_array(v, name) for name, v in given.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
