#!/usr/bin/env python3
"""Makes the small models of models/: one of each kind of graph that extract_ops must see through.

Deterministic: running it again writes the same bytes. Needs the tests' Python (scripts/setup.sh makes out/venv):
    out/venv/bin/python scripts/make_models.py [FOLDER]
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Builder:
    """Collects nodes and initializers; every method returns the name of what it made."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes = []
        self.initializers = []
        self.count = 0

    def op(self, kind, *inputs, outputs=1, name=None, **attributes):
        self.count += 1
        name = name or f"{kind.lower()}_{self.count}"
        made = [name] if outputs == 1 else [f"{name}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, name=f"/{name}", **attributes))
        return made[0] if outputs == 1 else made

    def weight(self, name, *dims, scale=0.05):
        values = (self.random.standard_normal(dims) * scale).astype(np.float32)
        return self.const(name, values)

    def const(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def ints(self, name, *values):
        return self.const(name, np.asarray(values, dtype=np.int64))

    def real(self, name, value):
        return self.const(name, np.asarray(value, dtype=np.float32))


def value(name, kind, *dims):
    return helper.make_tensor_value_info(name, kind, list(dims))


def save(folder, name, graph, opsets=(("", OPSET),), functions=()):
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets],
        functions=list(functions),
        producer_name="make_models",
        ir_version=8,
    )
    onnx.checker.check_model(model, full_check=False)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


def spelled_out_norm(b, x, name, width):
    """A layer norm as older exporters write it: nine nodes, no LayerNormalization."""
    centred = b.op("Sub", x, b.op("ReduceMean", x, axes=[-1], keepdims=1))
    variance = b.op("ReduceMean", b.op("Pow", centred, "two"), axes=[-1], keepdims=1)
    scaled = b.op("Div", centred, b.op("Sqrt", b.op("Add", variance, "epsilon")))
    weighted = b.op("Mul", scaled, b.const(f"{name}.weight", np.ones(width, np.float32)))
    return b.op("Add", weighted, b.const(f"{name}.bias", np.zeros(width, np.float32)))


def split_heads(b, x, sizes, order):
    """[B, S, H*D] to heads, with B and S taken from the running shape as traced exports do."""
    shape = b.op("Concat", sizes[0], sizes[1], "heads", "head_size", axis=0)
    return b.op("Transpose", b.op("Reshape", x, shape), perm=order)


def transformer_block(folder):
    """Two pre-norm decoder blocks in primitive operators: dynamic batch and sequence, causal and padding mask."""
    width, heads, inner, words = 32, 4, 64, 64
    b = Builder(1)
    b.real("two", 2.0), b.real("epsilon", 1e-5), b.real("root_two", np.sqrt(2.0)), b.real("one", 1.0)
    b.real("half", 0.5), b.real("scale", 1.0 / np.sqrt(width / heads)), b.real("lowest", -1e9), b.real("zero", 0.0)
    b.ints("heads", heads), b.ints("head_size", width // heads), b.ints("width", width)
    b.const("at_0", np.int64(0)), b.const("at_1", np.int64(1)), b.ints("axis_0", 0), b.ints("axis_12", 1, 2)

    shape = b.op("Shape", "tokens")
    sizes = [b.op("Unsqueeze", b.op("Gather", shape, at, axis=0), "axis_0") for at in ("at_0", "at_1")]
    square = b.op("Concat", sizes[1], sizes[1], axis=0)
    allowed = b.op("Trilu", b.op("Expand", "one", square), upper=0)
    causal = b.op("Where", b.op("Cast", allowed, to=TensorProto.BOOL), "zero", "lowest")
    kept = b.op("Cast", b.op("Unsqueeze", "attention_mask", "axis_12"), to=TensorProto.FLOAT)
    padding = b.op("Mul", b.op("Sub", "one", kept), "lowest")
    mask = b.op("Add", causal, padding, name="mask")

    x = b.op("Gather", b.weight("embedding", words, width), "tokens", axis=0)
    for layer in range(2):
        prefix = f"layer{layer}"
        normed = spelled_out_norm(b, x, f"{prefix}.norm1", width)
        q, k, v = (
            b.op("Add", b.op("MatMul", normed, b.weight(f"{prefix}.{part}.weight", width, width)),
                 b.weight(f"{prefix}.{part}.bias", width))
            for part in ("query", "key", "value")
        )
        q = split_heads(b, q, sizes, [0, 2, 1, 3])
        k = split_heads(b, k, sizes, [0, 2, 3, 1])
        v = split_heads(b, v, sizes, [0, 2, 1, 3])
        scores = b.op("Add", b.op("Mul", b.op("MatMul", q, k), "scale"), mask)
        mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        flat = b.op("Reshape", mixed, b.op("Concat", sizes[0], sizes[1], "width", axis=0))
        out = b.op("MatMul", flat, b.weight(f"{prefix}.out.weight", width, width))
        x = b.op("Add", x, b.op("Add", out, b.weight(f"{prefix}.out.bias", width)))

        normed = spelled_out_norm(b, x, f"{prefix}.norm2", width)
        up = b.op("Add", b.op("MatMul", normed, b.weight(f"{prefix}.up.weight", width, inner)),
                  b.weight(f"{prefix}.up.bias", inner))
        erf = b.op("Add", b.op("Erf", b.op("Div", up, "root_two")), "one")
        gelu = b.op("Mul", b.op("Mul", up, erf), "half")
        down = b.op("MatMul", gelu, b.weight(f"{prefix}.down.weight", inner, width))
        x = b.op("Add", x, b.op("Add", down, b.weight(f"{prefix}.down.bias", width)))
    b.op("Identity", x, name="hidden")

    graph = helper.make_graph(
        b.nodes, "transformer_block",
        [value("tokens", TensorProto.INT64, "batch_size", "sequence_length"),
         value("attention_mask", TensorProto.INT64, "batch_size", "sequence_length")],
        [value("hidden", TensorProto.FLOAT, "batch_size", "sequence_length", width)], b.initializers)
    save(folder, "transformer_block.onnx", graph)


def small_conv(folder):
    """Stem, depthwise-separable block with a residual, pooling and a classifier; batch norms left unfused."""
    b = Builder(2)

    def conv(x, name, out, inside, size, **attributes):
        return b.op("Conv", x, b.weight(f"{name}.weight", out, inside, size, size), name=name, **attributes)

    def batch_norm(x, name, channels):
        parts = [b.const(f"{name}.{part}", np.full(channels, start, np.float32))
                 for part, start in (("scale", 1), ("bias", 0), ("mean", 0), ("var", 1))]
        return b.op("BatchNormalization", x, *parts, name=name)

    x = conv("image", "stem", 16, 3, 3, strides=[2, 2], pads=[1, 1, 1, 1])
    x = b.op("Relu", batch_norm(x, "stem_norm", 16))
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    wide = b.op("HardSwish", batch_norm(conv(x, "expand", 48, 16, 1), "expand_norm", 48))
    deep = conv(wide, "depthwise", 48, 1, 3, group=48, pads=[1, 1, 1, 1])
    deep = b.op("HardSwish", batch_norm(deep, "depthwise_norm", 48))
    x = b.op("Add", x, batch_norm(conv(deep, "project", 16, 48, 1), "project_norm", 16))
    x = b.op("Relu", conv(x, "grouped", 32, 8, 3, group=2, strides=[2, 2], pads=[1, 1, 1, 1]))
    x = b.op("ConvTranspose", x, b.weight("widen.weight", 32, 16, 2, 2), strides=[2, 2], name="widen")
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    b.op("Gemm", x, b.weight("classifier.weight", 10, 16), b.weight("classifier.bias", 10), transB=1, name="scores")
    graph = helper.make_graph(
        b.nodes, "small_conv", [value("image", TensorProto.FLOAT, "N", 3, 64, 64)],
        [value("scores", TensorProto.FLOAT, "N", 10)], b.initializers)
    save(folder, "small_conv.onnx", graph)


def control_flow(folder):
    """An LSTM, a Loop with a known trip count, an If on an input, and a local function that calls another one."""
    width = 32
    b = Builder(3)
    b.ints("axis_1", 1), b.const("trips", np.int64(3)), b.const("always", np.array(True))
    sequence, _, _ = b.op("LSTM", "steps", b.weight("lstm.w", 1, 4 * width, 16), b.weight("lstm.r", 1, 4 * width, width),
                          b.weight("lstm.b", 1, 8 * width), hidden_size=width, outputs=3, name="lstm")
    x = b.op("Squeeze", sequence, "axis_1", name="sequence")
    b.weight("loop.weight", width, width)

    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "loop.weight"], ["moved"], name="step_matmul"),
         helper.make_node("Tanh", ["moved"], ["next"], name="step_tanh"),
         helper.make_node("ReduceSum", ["next"], ["total"], name="step_sum", keepdims=0),
         helper.make_node("Identity", ["going"], ["go_on"], name="step_go_on")],
        "step", [value("i", TensorProto.INT64), value("going", TensorProto.BOOL),
                 value("state", TensorProto.FLOAT, "T", "N", width)],
        [value("go_on", TensorProto.BOOL), value("next", TensorProto.FLOAT, "T", "N", width),
         value("total", TensorProto.FLOAT)])
    x, totals = b.op("Loop", "trips", "always", x, body=body, outputs=2, name="loop")

    b.weight("then.weight", width, width)
    branches = {}
    for name, nodes in (
        ("then_branch", [helper.make_node("MatMul", [x, "then.weight"], ["then_out"], name="then_matmul")]),
        ("else_branch", [helper.make_node("Relu", [x], ["else_out"], name="else_relu")]),
    ):
        out = nodes[-1].output[0]
        branches[name] = helper.make_graph(nodes, name, [], [value(out, TensorProto.FLOAT, "T", "N", width)])
    x = b.op("If", "choose", name="branch", **branches)

    b.nodes.append(helper.make_node("Gated", [x, b.weight("gate.weight", width, width)], ["gated"], name="/gated",
                                    domain="local"))
    opset = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
    silu = helper.make_function(
        "local", "Silu", ["x"], ["y"],
        [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])], opset)
    gated = helper.make_function(
        "local", "Gated", ["x", "w"], ["y"],
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Silu", ["m"], ["g"], domain="local"),
         helper.make_node("Mul", ["g", "x"], ["y"])], opset)
    graph = helper.make_graph(
        b.nodes, "control_flow",
        [value("steps", TensorProto.FLOAT, "T", "N", 16), value("choose", TensorProto.BOOL)],
        [value("gated", TensorProto.FLOAT, "T", "N", width), value(totals, TensorProto.FLOAT, 3)], b.initializers)
    save(folder, "control_flow.onnx", graph, opsets=(("", OPSET), ("local", 1)), functions=[silu, gated])


def quantised_mlp(folder):
    """QDQ around a product and a convolution-free head: int8 weights, uint8 activations."""
    width = 64
    b = Builder(4)
    b.real("x.scale", 0.02), b.const("x.zero", np.uint8(128)), b.const("w.zero", np.int8(0))
    x = "features"
    for layer in range(2):
        b.real(f"w{layer}.scale", 0.01)
        weight = b.const(f"w{layer}", b.random.integers(-127, 128, (width, width), dtype=np.int8))
        quantised = b.op("QuantizeLinear", x, "x.scale", "x.zero")
        product = b.op("MatMul", b.op("DequantizeLinear", quantised, "x.scale", "x.zero"),
                       b.op("DequantizeLinear", weight, f"w{layer}.scale", "w.zero"))
        x = b.op("Relu", b.op("Add", product, b.weight(f"b{layer}", width)))
    b.op("Softmax", x, axis=-1, name="probabilities")
    graph = helper.make_graph(
        b.nodes, "quantised_mlp", [value("features", TensorProto.FLOAT, "batch", width)],
        [value("probabilities", TensorProto.FLOAT, "batch", width)], b.initializers)
    save(folder, "quantised_mlp.onnx", graph)


def pruned_mlp(folder):
    """Three products whose weights are pruned: 2 of 4, blocks of 64 (seven of eight are zero), and one by one."""
    b = Builder(5)

    def layer(x, name, weight):
        biased = b.op("Add", b.op("MatMul", x, b.const(f"{name}.weight", weight)), b.weight(f"{name}.bias", weight.shape[1]))
        return b.op("Relu", biased)

    def values(rows, columns):
        return (b.random.standard_normal((rows, columns)) * 0.05).astype(np.float32)

    halved = values(64, 128).reshape(16, 4, 128)
    np.put_along_axis(halved, np.argsort(np.abs(halved), axis=1, kind="stable")[:, :2], 0, axis=1)
    halved = halved.reshape(64, 128)
    blocks = np.zeros((128, 256), np.float32)
    blocks[64:, 128:192] = values(64, 64)
    thinned = values(256, 32) * (b.random.random((256, 32)) < 0.1)
    x = "features"
    for name, weight in (("two_of_four", halved), ("blocks", blocks), ("thinned", thinned)):
        x = layer(x, name, weight)
    b.op("Softmax", x, axis=-1, name="probabilities")
    graph = helper.make_graph(
        b.nodes, "pruned_mlp", [value("features", TensorProto.FLOAT, "batch", 64)],
        [value("probabilities", TensorProto.FLOAT, "batch", 32)], b.initializers)
    save(folder, "pruned_mlp.onnx", graph)


def small_resnet(folder):
    """A stem and three residual blocks, one of them strided with a projection; batch norms left unfused."""
    b = Builder(6)

    def conv_norm(x, name, out, inside, size, stride=1):
        edge = size // 2
        x = b.op("Conv", x, b.weight(f"{name}.weight", out, inside, size, size), name=name, strides=[stride, stride],
                 pads=[edge] * 4)
        parts = [b.const(f"{name}.norm.{part}", np.full(out, start, np.float32))
                 for part, start in (("scale", 1), ("bias", 0), ("mean", 0), ("var", 1))]
        return b.op("BatchNormalization", x, *parts, name=f"{name}_norm")

    def block(x, name, inside, out, stride=1):
        y = b.op("Relu", conv_norm(x, f"{name}_first", out, inside, 3, stride))
        y = conv_norm(y, f"{name}_second", out, out, 3)
        if stride > 1:
            x = conv_norm(x, f"{name}_project", out, inside, 1, stride)
        return b.op("Relu", b.op("Add", y, x))

    x = b.op("Relu", conv_norm("image", "stem", 16, 3, 3))
    x = block(x, "block1", 16, 16)
    x = block(x, "block2", 16, 32, stride=2)
    x = block(x, "block3", 32, 32)
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    b.op("Gemm", x, b.weight("classifier.weight", 10, 32), b.weight("classifier.bias", 10), transB=1, name="scores")
    graph = helper.make_graph(
        b.nodes, "small_resnet", [value("image", TensorProto.FLOAT, "batch", 3, 32, 32)],
        [value("scores", TensorProto.FLOAT, "batch", 10)], b.initializers)
    save(folder, "small_resnet.onnx", graph)


def decoder_step(folder):
    """One token through a decoder block with a cache of keys and values: grouped queries, RMS norm, a gated product."""
    width, heads, groups, size, inner = 64, 4, 2, 16, 128
    b = Builder(7)
    b.real("two", 2.0), b.real("epsilon", 1e-6), b.real("scale", 1.0 / np.sqrt(size))
    b.ints("of_queries", 0, 1, heads, size), b.ints("of_keys", 0, 1, groups, size), b.ints("axis_2", 2)
    b.ints("repeated", 1, 1, heads // groups, 1, 1), b.ints("per_head", 0, heads, -1, size), b.ints("flat", 0, 1, width)

    def norm(x, name):
        mean = b.op("ReduceMean", b.op("Pow", x, "two"), axes=[-1], keepdims=1)
        scaled = b.op("Div", x, b.op("Sqrt", b.op("Add", mean, "epsilon")))
        return b.op("Mul", scaled, b.const(f"{name}.weight", np.ones(width, np.float32)))

    def project(x, name, out, inside=width):
        return b.op("MatMul", x, b.weight(f"{name}.weight", inside, out))

    def heads_of(x, sizes):
        return b.op("Transpose", b.op("Reshape", x, sizes), perm=[0, 2, 1, 3])

    def cached(x, past, present):
        whole = b.op("Concat", past, heads_of(x, "of_keys"), axis=2, name=present)
        wide = b.op("Expand", b.op("Unsqueeze", whole, "axis_2"), "repeated")
        return b.op("Reshape", wide, "per_head")

    normed = norm("hidden", "norm1")
    queries = heads_of(project(normed, "query", heads * size), "of_queries")
    keys = cached(project(normed, "key", groups * size), "past_key", "present_key")
    values = cached(project(normed, "value", groups * size), "past_value", "present_value")
    scores = b.op("Mul", b.op("MatMul", queries, b.op("Transpose", keys, perm=[0, 1, 3, 2])), "scale")
    mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), values), perm=[0, 2, 1, 3])
    flat = b.op("Reshape", mixed, "flat")
    x = b.op("Add", "hidden", project(flat, "out", width))

    normed = norm(x, "norm2")
    gate = project(normed, "gate", inner)
    silu = b.op("Mul", gate, b.op("Sigmoid", gate))
    gated = b.op("Mul", silu, project(normed, "up", inner))
    b.op("Add", x, project(gated, "down", width, inner), name="next_hidden")

    cache = ("batch_size", groups, "past_sequence_length", size)
    grown = ("batch_size", groups, "total_sequence_length", size)
    graph = helper.make_graph(
        b.nodes, "decoder_step",
        [value("hidden", TensorProto.FLOAT, "batch_size", 1, width), value("past_key", TensorProto.FLOAT, *cache),
         value("past_value", TensorProto.FLOAT, *cache)],
        [value("next_hidden", TensorProto.FLOAT, "batch_size", 1, width),
         value("present_key", TensorProto.FLOAT, *grown), value("present_value", TensorProto.FLOAT, *grown)],
        b.initializers)
    save(folder, "decoder_step.onnx", graph)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "models")
    os.makedirs(folder, exist_ok=True)
    for make in (transformer_block, small_conv, control_flow, quantised_mlp, pruned_mlp, small_resnet, decoder_step):
        make(folder)


if __name__ == "__main__":
    main()
