"""Small valid models: what fuzzing starts from, and what is cut and flipped. One per operator family, a few richer ones."""
import os

from cases_control import COND, body, call, loop, scan
from wire import (BOOL, INT32, INT64, STRING, UINT8, blob, external, floats, function, graph, ints, model, net,
                  node, num, sparse, tag, tensor, value)

MS = "com.microsoft"
X4 = [value("x", (1, 4, 8, 8))]
IDS = [value("x", (2, 3), INT64)]


def w(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return floats(name, [0.5] * count, list(dims))


def quantized(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return tensor(name, list(dims), UINT8, raw=bytes(count))


def one(op, ins="x", inits=(), inputs=None, outs="y", version=17, domain="", **attrs):
    return net([node(op, ins, outs, domain=domain, **attrs)], inits, inputs, version=version)


def plain():
    unary = "Abs Relu Erf Tanh Softmax Identity Shape Size Dropout Clip Round IsNaN GlobalAveragePool Flatten".split()
    table = [(op, one(op)) for op in unary]
    table += [
        ("Add", one("Add", "x w", [w("w", 3, 1)])),
        ("Where", one("Where", "c x w", [tensor("c", [4], BOOL, [1, 0, 1, 0]), w("w", 4)])),
        ("MatMul", one("MatMul", "x w", [w("w", 4, 5)])),
        ("Gemm", one("Gemm", "x w b", [w("w", 5, 4), w("b", 5)], [value("x", ("N", 4))], transB=1, alpha=0.5)),
        ("Conv", one("Conv", "x w b", [w("w", 2, 4, 3, 3), w("b", 2)], X4, pads=[1, 1, 1, 1], strides=[2, 2])),
        ("ConvTranspose", one("ConvTranspose", "x w", [w("w", 4, 1, 2, 2)], X4, strides=[2, 2])),
        ("MaxPool", one("MaxPool", "x", [], X4, kernel_shape=[2, 2], ceil_mode=1)),
        ("AveragePool", one("AveragePool", "x", [], X4, kernel_shape=[3, 3], auto_pad="SAME_UPPER")),
        ("Reshape", one("Reshape", "x s", [ints("s", [0, -1])])),
        ("Transpose", one("Transpose", perm=[2, 0, 1])),
        ("Concat", one("Concat", "x x", axis=-1)),
        ("Split", one("Split", "x s", [ints("s", [1, 3])], outs="y z", axis=2)),
        ("Slice", one("Slice", "x a b c d", [ints("a", [-1]), ints("b", [0]), ints("c", [2]), ints("d", [-1])])),
        ("Gather", one("Gather", "w x", [w("w", 7, 5)], IDS)),
        ("GatherND", one("GatherND", "x i", [ints("i", [0, 1], [1, 2])])),
        ("ScatterND", one("ScatterND", "x i u", [ints("i", [0], [1, 1]), w("u", 1, 3, 4)])),
        ("Unsqueeze", one("Unsqueeze", "x a", [ints("a", [0, -1])])),
        ("Squeeze", one("Squeeze", "x", [], [value("x", (1, 3, 1))])),
        ("Expand", one("Expand", "x s", [ints("s", [5, 1, 3, 4])])),
        ("Tile", one("Tile", "x s", [ints("s", [2, 1, 3])])),
        ("Pad", one("Pad", "x s", [ints("s", [1, 0, 0, 0, 0, 2])], mode="constant")),
        ("Resize", one("Resize", ["x", "", "s"], [floats("s", [1.0, 1.0, 2.0, 0.5])], X4, mode="linear")),
        ("Range", one("Range", "a b c", [ints("a", [0], []), ints("b", [9], []), ints("c", [2], [])])),
        ("ConstantOfShape", one("ConstantOfShape", "s", [ints("s", [2, 5])], value=ints("", [3]))),
        ("OneHot", one("OneHot", "x d v", [ints("d", [6], []), floats("v", [0.0, 1.0])], IDS)),
        ("TopK", one("TopK", "x k", [ints("k", [2])], outs="y z")),
        ("NonZero", one("NonZero")),
        ("ReduceMean", one("ReduceMean", "x", axes=[-1], keepdims=0)),
        ("ReduceSum", one("ReduceSum", "x a", [ints("a", [1])])),
        ("ArgMax", one("ArgMax", axis=1)),
        ("CumSum", one("CumSum", "x a", [ints("a", [1], [])])),
        ("Einsum", one("Einsum", "x w", [w("w", 4, 5)], equation="abc,cd->abd")),
        ("LayerNormalization", one("LayerNormalization", "x w b", [w("w", 4), w("b", 4)])),
        ("BatchNormalization", one("BatchNormalization", "x w w w w", [w("w", 4)], X4)),
        ("GroupNormalization", one("GroupNormalization", "x w w", [w("w", 4)], X4, version=21, num_groups=2)),
        ("LSTM", one("LSTM", "x w r", [w("w", 1, 8, 4), w("r", 1, 8, 2)], outs="y h c", hidden_size=2)),
        ("GRU", one("GRU", "x w r", [w("w", 2, 6, 4), w("r", 2, 6, 2)], hidden_size=2, direction="bidirectional")),
        ("QuantizeLinear", one("QuantizeLinear", "x s z", [w("s"), tensor("z", [], UINT8, [3])])),
        ("DequantizeLinear", one("DequantizeLinear", "q s", [quantized("q", 4, 8), w("s", 4, 2)], version=21, axis=1,
                                 block_size=4)),
        ("QLinearMatMul", one("QLinearMatMul", "q s z q s z s z", [quantized("q", 4, 4), w("s"), quantized("z")])),
        ("Attention", one("Attention", "x k k", version=23, q_num_heads=2, kv_num_heads=1, is_causal=1,
                          inputs=[value("x", (2, 3, 4)), value("k", (2, 3, 2))])),
        ("RotaryEmbedding", one("RotaryEmbedding", "x c c", [w("c", 2, 3, 1)], version=23, num_heads=2)),
        ("SequenceAt", net([node("SequenceConstruct", "x x", "q"), node("SequenceAt", "q i")], [ints("i", [1], [])])),
        ("SplitToSequence", net([node("SplitToSequence", "x", "q", axis=2), node("ConcatFromSequence", "q", axis=0)])),
        ("DFT", one("DFT", inputs=[value("x", (1, 8, 1))], axis=1)),
        ("STFT", one("STFT", ["x", "s", "", "l"], [ints("s", [2], []), ints("l", [4], [])], [value("x", (1, 16, 1))])),
        ("GridSample", one("GridSample", "x g", [w("g", 1, 2, 2, 2)], X4)),
        ("RoiAlign", one("RoiAlign", "x r i", [w("r", 1, 4), ints("i", [0])], X4, output_height=2, output_width=2)),
        ("DepthToSpace", one("DepthToSpace", inputs=X4, blocksize=2)),
        ("Cast", one("Cast", to=10)),
        ("StringSplit", one("StringSplit", inputs=[value("x", (2,), STRING)], outs="y z", version=20)),
    ]
    return table


def vendor():
    ms = lambda op, *more, **attrs: one(op, *more, domain=MS, **attrs)
    return [
        ("ms_Attention", ms("Attention", "x w b", [w("w", 4, 12), w("b", 12)], num_heads=2)),
        ("ms_MultiHeadAttention", ms("MultiHeadAttention", "x x x", num_heads=2)),
        ("ms_GroupQueryAttention", ms("GroupQueryAttention", "q k k p p s t", [ints("s", [2]), tensor("t", [], INT32, [3])],
                                      [value("q", (1, 3, 16)), value("k", (1, 3, 8)), value("p", (1, 1, 8, 8))],
                                      num_heads=2, kv_num_heads=1)),
        ("ms_SkipLayerNormalization", ms("SkipLayerNormalization", "x x w", [w("w", 4)])),
        ("ms_EmbedLayerNormalization", ms("EmbedLayerNormalization", ["x", "", "e", "p", "", "w", "w"],
                                          [w("e", 7, 4), w("p", 9, 4), w("w", 4)],
                                          [value("x", (2, 3), INT32)], "y m")),
        ("ms_MatMulNBits", ms("MatMulNBits", "x b s", [quantized("b", 5, 1, 16), w("s", 5)],
                              [value("x", (2, 32))], K=32, N=5, bits=4, block_size=32)),
        ("ms_FusedMatMul", ms("FusedMatMul", "x x", transB=1)),
        ("ms_BiasGelu", ms("BiasGelu", "x b", [w("b", 4)])),
        ("ms_DynamicQuantizeMatMul", ms("DynamicQuantizeMatMul", "x q s", [quantized("q", 4, 5), w("s")])),
        ("ms_MoE", ms("MoE", ["x", "g", "w", "", "v"], [w("g", 2, 3), w("w", 3, 4, 8), w("v", 3, 8, 4)],
                      [value("x", (2, 4))], k=1)),
    ]


def attention_written_out():
    """Two heads by MatMul, scale, mask and Softmax: what the patterns look for."""
    split = lambda t, perm: [node("Reshape", t + " s", t + "r"), node("Transpose", t + "r", t + "t", perm=perm)]
    nodes = [node("MatMul", "x " + t, t + "p") for t in "qkv"]
    for t in "qkv":
        nodes += split(t + "p", [0, 2, 3, 1] if t == "k" else [0, 2, 1, 3])
    nodes += [node("MatMul", "qpt kpt", "a"), node("Div", "a d", "b"), node("Add", "b m", "c"), node("Softmax", "c", "p"),
              node("MatMul", "p vpt", "o"), node("Transpose", "o", "u", perm=[0, 2, 1, 3]), node("Reshape", "u f", "h"),
              node("MatMul", "h out", "y")]
    inits = [w(n, 8, 8) for n in ("q", "k", "v", "out")] + [ints("s", [0, 0, 2, 4]), ints("f", [0, 0, 8]), w("d"),
                                                            w("m", 3, 3)]
    return net(nodes, inits, [value("x", ("batch", 3, 8))])


def norms_written_out():
    nodes = [node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x m", "d"), node("Mul", "d d", "q"),
             node("ReduceMean", "q", "v", axes=[-1]), node("Add", "v e", "ve"), node("Sqrt", "ve", "sd"),
             node("Div", "d sd", "n"), node("Mul", "n w", "nw"), node("Add", "nw b", "l"), node("Div", "l r", "g0"),
             node("Erf", "g0", "g1"), node("Add", "g1 one", "g2"), node("Mul", "l g2", "g3"), node("Mul", "g3 half", "g"),
             node("Sigmoid", "g", "si"), node("Mul", "g si", "sw"), node("Mul", "sw x", "y")]
    return net(nodes, [w("e"), w("w", 4), w("b", 4), w("r"), floats("one", [1.0], []), w("half")])


def rich():
    """A bit of everything the reader reads: body, function, sparse, external, every kind of stored tensor, value_info."""
    branch = lambda op: body([node(op, "t", "r")], [], ["r"])
    scale = function("Scale", "a", "b", [node("Constant", "", "k", value=w("", 4)), node("Mul", "a k", "c"), node(
        "Softmax", "c", "b", extra=blob(5, blob(1, "axis") + num(20, 2) + blob(21, "axis")))], attrs=["axis"])
    nodes = [node("Shape", "x", "sh"), node("Gather", "sh i", "n"), node("Concat", "n m", "s", axis=0),
             node("Reshape", "x s", "t0"), node("Reshape", "t0 sh", "t"), call("Scale", "t", "u", axis=1),
             COND, node("If", "c", "v", then_branch=branch("Relu"), else_branch=branch("Abs")),
             node("Add", "u v", "p"), node("Add", "p sp", "q"), node("Add", "q far", "y", name="last")]
    sp = sparse(floats("sp", [1.0]), ints("", [2]), [4])
    inits = [ints("i", [0]), tensor("m", [1], INT64, raw=b"\xff" * 8), external("far", [4], "w.bin", offset=0, length=16)]
    body_ = graph(nodes, [value("x", ("batch", "seq", 4))], [value("y", ("batch", "seq", 4))], inits, [sp],
                  [value("t", ("batch", None, 4))])
    return model(body_, functions=[scale], extra=blob(2, "seed") + blob(14, blob(1, "key") + blob(2, "value")))


def values():
    """Arithmetic on known numbers, nearly all of it on one line per operator; every result is a tensor of its own."""
    binary = "Add Sub Mul Div Mod Pow Min Max Equal Less Greater LessOrEqual GreaterOrEqual Sum".split()
    unary = "Neg Abs Sign Identity".split()
    floating = "Ceil Floor Round Sqrt Reciprocal Exp Log Erf Sin Cos Tanh Sigmoid Relu LeakyRelu HardSigmoid Neg Abs".split()
    logic = "And Or Xor".split()
    reduce = "ReduceSum ReduceProd ReduceMax ReduceMin ReduceMean ReduceL1 ReduceL2 ReduceSumSquare".split()
    nodes = [node(op, "a b", "i_%s" % op) for op in binary] + [node(op, "a", "u_%s" % op) for op in unary]
    nodes += [node("Cast", "a", "af", to=1), node("Cast", "b", "bf", to=10), node("Cast", "bf", "bg", to=1),
              node("Cast", "a", "t", to=9), node("Not", "t", "nt")]
    nodes += [node(op, "af bg", "f_%s" % op) for op in binary] + [node(op, "af", "v_%s" % op) for op in floating]
    nodes += [node(op, "t nt", "l_%s" % op) for op in logic] + [node(op, "a", "r_%s" % op) for op in reduce[:4]]
    nodes += [node(op, "af", "q_%s" % op) for op in reduce]
    nodes += [node("Where", "t a b", "wh"), node("Gather", "a z", "ga"), node("Slice", "a z one", "sl"),
              node("Tile", "a one", "ti"), node("Expand", "a ex", "xp"), node("Transpose", "xp", "tr"),
              node("Unsqueeze", "a z", "un"), node("Squeeze", "un z", "sq"), node("CumSum", "a z0", "cu"),
              node("NonZero", "a", "nz"), node("TopK", "a one", "tv ti2"), node("ArgMax", "a", "am", axis=0),
              node("Trilu", "xp", "tu"), node("Clip", "a lo hi", "cl"), node("Split", "a", "s0 s1 s2", axis=0),
              node("Pad", "a pd", "pa"), node("ScatterND", "a in up", "sc"), node("OneHot", "z dp ov", "oh"),
              node("MatMul", "a b", "mm"), node("Flatten", "xp", "fl"), node("Range", "z0 lo hi", "ra"),
              node("Concat", "ga one", "sh", axis=0), node("ConstantOfShape", "sh", "y")]
    inits = [ints("a", [2, 3, 4]), ints("b", [1, 2, 3]), ints("z", [0]), ints("z0", [0], []), ints("one", [1]),
             ints("ex", [3, 1]), ints("lo", [1], []), ints("hi", [3], []), ints("pd", [1, 1]), ints("in", [0], [1, 1]),
             ints("up", [9]), ints("dp", [3], []), floats("ov", [0.0, 1.0])]
    return net(nodes, inits)


def masked():
    """A causal mask made by arithmetic on positions, as exporters spell it, into attention."""
    nodes = [node("Shape", "x", "sh"), node("Gather", "sh one", "n", axis=0), node("Range", "zero n step", "pos"),
             node("Unsqueeze", "pos a0", "row"), node("Unsqueeze", "pos a1", "col"), node("Greater", "row col", "later"),
             node("Where", "later low zerof", "mask"), node("Transpose", "x", "k", perm=[0, 2, 1]), node("MatMul", "x k", "s"),
             node("Mul", "s scale", "ss"), node("Add", "ss mask", "sm"), node("Softmax", "sm", "p", axis=-1),
             node("MatMul", "p x", "y")]
    inits = [ints("one", [1], []), ints("zero", [0], []), ints("step", [1], []), ints("a0", [0]), ints("a1", [1]),
             floats("low", [-3.4e38], []), floats("zerof", [0.0], []), floats("scale", [0.125], [])]
    return net(nodes, inits, [value("x", ("batch", "seq", 8))])


def outside():
    """Shapes that come from external data, and weights in it."""
    return net([node("Reshape", "x s", "t"), node("Add", "t w")],
               [external("s", [2], "w.bin", INT64, offset=0, length=16), external("w", [4], "w.bin", offset=16, length=16)])


def small():
    """The model that is cut at every byte."""
    return net([node("Reshape", "x s", "t", name="r"), node("MatMul", "t w", "y", name="m")],
               [ints("s", [6, -1]), w("w", 4, 2)], [value("x", ("n", 6, 4))], [value("y", (6, 2))])


def fields(data):
    """(number, wire type, payload) of each field of a right message; a varint's payload is its own bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind, start = key & 7, at
        if kind == 0:
            _, at = read_varint(data, at)
        elif kind == 2:
            size, start = read_varint(data, at)
            at = start + size
        else:
            at += 8 if kind == 1 else 4
        yield key >> 3, kind, data[start:at]


def read_varint(data, at):
    x = shift = 0
    while True:
        byte = data[at]
        at += 1
        x |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return x, at


def without_weights(data, path=(7, 5)):
    """A model whose large initializers lie in a file that is missing: small enough to fuzz, and it still means the same."""
    out = b""
    for number, kind, payload in fields(data):
        if path and number == path[0] and kind == 2:
            payload = without_weights(payload, path[1:])
        if not path and number in (4, 5, 7, 9) and len(payload) > 64:
            out += blob(13, blob(1, "location") + blob(2, "gone")) + num(14, 1)
        else:
            out += blob(number, payload) if kind == 2 else tag(number, kind) + payload
    return out


def project_models(folder):
    table = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".onnx"):
            with open(os.path.join(folder, name), "rb") as f:
                table.append(("model_" + name[:-5], without_weights(f.read())))
    return table


def seeds():
    table = plain() + vendor() + project_models(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models"))
    table += [
        ("attention_written_out", attention_written_out()), ("norms_written_out", norms_written_out()),
        ("rich", rich()), ("small", small()), ("values", values()),
        ("masked", masked()), ("outside", outside()), ("loop", loop([node("Relu", "s", "s2")], 3)),
        ("scan", scan(num_scan_inputs=1)),
        ("old_opset", one("Unsqueeze", "x", [], version=7, axes=[0])),
        ("optional", net([node("Optional", "x", "o"), node("OptionalGetElement", "o")])),
        ("symbols", net([node("Relu")], inputs=[value("x", ("batch", "sequence_length", "anything"))])),
    ]
    return table
