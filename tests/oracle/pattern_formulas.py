"""Activations, norms, rotary embeddings and quantised products in the spellings that exporters use."""

import itertools
import math

import numpy as np
import onnxruntime

from pattern_graph import FLOAT, HALF, Found, Graph, expect, expect_none

B, S, C = 2, 24, 64
SHAPE = [B, S, C]


def alone(make, dtype=FLOAT, opset=20):
    """A formula of one tensor, with something before and after it."""
    g = Graph(opset)
    return g.out(g.Relu(make(g, g.Relu(g.input(SHAPE, dtype)))))


def products(g, parts):
    """The product of parts in every association of a chain: ((a b) c), (a (b c)), …"""
    if len(parts) == 1:
        yield lambda: parts[0]()
        return
    for cut in range(1, len(parts)):
        for left in products(g, parts[:cut]):
            for right in products(g, parts[cut:]):
                yield lambda l=left, r=right: g.Mul(l(), r())


def product_forms(parts_of):
    """Every order and association of the factors that parts_of(g, x) gives, as functions of (g, x)."""
    count = len(parts_of(Graph(), "x"))
    for order in itertools.permutations(range(count)):
        for k in range(len(list(products(None, [None] * count)))):
            def make(g, x, order=order, k=k):
                parts = parts_of(g, x)
                return list(products(g, [parts[i] for i in order]))[k]()
            yield f"order {order} association {k}", make


# ---- GELU and its kin ----

ERF_INNER = {
    "x / sqrt 2": lambda g, x: g.Div(x, math.sqrt(2)),
    "x * 1/sqrt 2": lambda g, x: g.Mul(x, math.sqrt(0.5)),
    "1/sqrt 2 * x": lambda g, x: g.Mul(math.sqrt(0.5), x),
    "x / Sqrt(2)": lambda g, x: g.Div(x, g.Sqrt(2.0)),
}
TANH_INNER = {
    "Pow": lambda g, x: g.Mul(g.Add(x, g.Mul(g.Pow(x, 3.0), 0.044715)), math.sqrt(2 / math.pi)),
    "x x x": lambda g, x: g.Mul(math.sqrt(2 / math.pi), g.Add(g.Mul(0.044715, g.Mul(g.Mul(x, x), x)), x)),
    "x (1 + c x x)": lambda g, x: g.Mul(g.Mul(x, math.sqrt(2 / math.pi)), g.Add(1.0, g.Mul(g.Mul(x, 0.044715), x))),
    "folded constants": lambda g, x: g.Add(g.Mul(x, math.sqrt(2 / math.pi)), g.Mul(g.Mul(x, g.Mul(x, x)), 0.044715 * math.sqrt(2 / math.pi))),
}


def check_gelu(tally):
    for inner, kind, op, forms in (("x / sqrt 2", "gelu", "Erf", ERF_INNER), ("Pow", "gelu_tanh", "Tanh", TANH_INNER)):
        def parts(g, x, inner=forms[inner], op=op):
            return [lambda: x, lambda: g.const(0.5), lambda: g.Add(getattr(g, op)(inner(g, x)), 1.0)]
        for name, make in product_forms(parts):
            expect(tally, f"{kind}, {name}", alone(make), "elementwise", kind, shape=SHAPE, absent=("elementwise:mul", "elementwise:add"))
        for name, form in forms.items():
            def whole(g, x, form=form, op=op):
                return g.Mul(x, g.Mul(0.5, g.Add(1.0, getattr(g, op)(form(g, x)))))
            expect(tally, f"{kind}, {name}", alone(whole), "elementwise", kind, bytes_read=4 * B * S * C, bytes_written=4 * B * S * C)
            expect(tally, f"{kind}, {name}, inner half", alone(lambda g, x, f=form, o=op: g.Mul(x, g.Add(0.5, g.Mul(0.5, getattr(g, o)(f(g, x)))))),
                   "elementwise", kind)
    def widened(g, x):
        y = g.cast(x, FLOAT)
        return g.cast(g.Mul(g.Mul(y, 0.5), g.Add(g.Erf(g.Div(y, math.sqrt(2))), 1.0)), HALF)
    expect(tally, "gelu inside casts", alone(widened, HALF), "elementwise", "gelu")
    expect(tally, "not gelu", alone(lambda g, x: g.Mul(x, g.Add(g.Erf(x), 1.0))), "elementwise", "erf")


ACTIVATIONS = {
    "silu": [lambda g, x: g.Mul(x, g.Sigmoid(x)), lambda g, x: g.Mul(g.Sigmoid(x), x), lambda g, x: g.Div(x, g.Add(1.0, g.Exp(g.Neg(x))))],
    "quickgelu": [lambda g, x: g.Mul(x, g.Sigmoid(g.Mul(x, 1.702))), lambda g, x: g.Mul(g.Sigmoid(g.Mul(1.702, x)), x)],
    "hardswish": [lambda g, x: g.Mul(x, g.HardSigmoid(x, alpha=1 / 6, beta=0.5)),
                  lambda g, x: g.Div(g.Mul(x, g.Clip(g.Add(x, 3.0), 0.0, 6.0)), 6.0),
                  lambda g, x: g.Mul(x, g.Mul(g.Clip(g.Add(x, 3.0), 0.0, 6.0), 1 / 6)),
                  lambda g, x: g.Mul(x, g.Div(g.Min(g.Relu(g.Add(x, 3.0)), 6.0), 6.0))],
    "mish": [lambda g, x: g.Mul(x, g.Tanh(g.Softplus(x))), lambda g, x: g.Mul(g.Tanh(g.Log(g.Add(g.Exp(x), 1.0))), x)],
}


def check_activations(tally):
    for what, forms in ACTIVATIONS.items():
        for k, form in enumerate(forms):
            expect(tally, f"{what}, form {k}", alone(form), "elementwise", what, shape=SHAPE, absent=("elementwise:mul", "elementwise:sigmoid"))
    expect(tally, "sigmoid of something else", alone(lambda g, x: g.Mul(x, g.Sigmoid(g.Tanh(x)))), "elementwise", "mul")


def gated(activation, swap=False, split=False):
    g = Graph()
    x = g.Relu(g.input(SHAPE))
    if split:
        gate, up = g.Split(g.linear(x, C, 256), outputs=2, axis=-1, num_outputs=2)
    else:
        gate, up = g.linear(x, C, 128), g.linear(x, C, 128)
    a = activation(g, gate)
    return g.out(g.linear(g.Mul(up, a) if swap else g.Mul(a, up), 128, C))


def check_gated(tally):
    gelu = lambda g, x: g.Mul(g.Mul(x, 0.5), g.Add(g.Erf(g.Div(x, math.sqrt(2))), 1.0))
    silu = lambda g, x: g.Mul(x, g.Sigmoid(x))
    forms = {"swiglu": [silu], "geglu": [gelu, lambda g, x: g.Gelu(x)], "geglu_tanh": [lambda g, x: g.Gelu(x, approximate="tanh")],
             "reglu": [lambda g, x: g.Relu(x)]}
    for what, activations in forms.items():
        for activation, swap, split in itertools.product(activations, (False, True), (False, True)):
            expect(tally, f"{what}, swapped {swap}, split {split}", gated(activation, swap, split), "elementwise", what,
                   shape=[B, S, 128], bytes_read=2 * 4 * B * S * 128, absent=("elementwise:mul", "elementwise:silu", "elementwise:gelu"))


# ---- norms ----

SQUARES = {"Pow": lambda g, x: g.Pow(x, 2.0), "Mul": lambda g, x: g.Mul(x, x)}
DIVIDES = {
    "Div": lambda g, x, v: g.Div(x, g.Sqrt(v)),
    "Reciprocal": lambda g, x, v: g.Mul(x, g.Reciprocal(g.Sqrt(v))),
    "Reciprocal first": lambda g, x, v: g.Mul(g.Reciprocal(g.Sqrt(v)), x),
    "1 over": lambda g, x, v: g.Mul(x, g.Div(1.0, g.Sqrt(v))),
    "Pow": lambda g, x, v: g.Mul(x, g.Pow(v, -0.5)),
    "Sqrt of Reciprocal": lambda g, x, v: g.Mul(x, g.Sqrt(g.Reciprocal(v))),
}
MEANS = {
    "ReduceMean": lambda g, x: g.mean(x, -1),
    "ReduceSum": lambda g, x: g.Div(g.ReduceSum(x, g.ints(-1), keepdims=1), float(C)),
}


def norm(square, divide, mean, centred, weight=True, bias=True, twice=False, outside=None):
    def make(g, x):
        if outside:
            x = g.cast(x, FLOAT)
        d = g.Sub(x, mean(g, x)) if centred else x
        e = g.Sub(x, mean(g, x)) if centred and twice else d
        y = divide(g, d, g.Add(mean(g, square(g, e)), 1e-6))
        if outside == "before the weight":
            y = g.cast(y, HALF)
        if weight:
            kind = np.float16 if outside == "before the weight" else np.float32
            y = g.Mul(g.const(np.ones(C, dtype=kind)), y)
        if bias and centred:
            y = g.Add(y, g.weight(C))
        return g.cast(y, HALF) if outside == "after the weight" else y
    return make


def check_norms(tally):
    rows = {"shape": [B * S, C], "absent": ("reduce", "elementwise:sqrt", "elementwise:mul", "elementwise:add", "elementwise:sub")}
    for (s, square), (d, divide), (m, mean) in itertools.product(SQUARES.items(), DIVIDES.items(), MEANS.items()):
        for centred in (False, True):
            what = "layer" if centred else "rms"
            for weight, bias, twice in ((True, True, False), (True, False, True), (False, False, False)):
                name = f"{what} norm, {s}, {d}, {m}, weight {weight}, bias {bias}, twice {twice}"
                make = norm(square, divide, mean, centred, weight, bias, twice)
                expect(tally, name, alone(make), "norm", what, **rows, weight_dtype="fp32" if weight else None,
                       bias=1 if bias and centred else None)
    for outside in ("before the weight", "after the weight"):
        make = norm(SQUARES["Pow"], DIVIDES["Reciprocal"], MEANS["ReduceMean"], False, outside=outside)
        entry = expect(tally, f"rms norm, cast {outside}", alone(make, HALF), "norm", "rms", **rows, dtype="fp16")
        if entry:
            tally.check(not [o for o in entry["nodes"] if "relu" in o], "the norm takes what is before it")
            size = 2 * 2 * B * S * C
            tally.check(size <= entry["bytes_read"] + entry["bytes_written"] <= size + 4 * C + 64, f"rms norm, cast {outside}: bytes")
    # a residual that is added to a norm of a single row is no bias
    g = Graph()
    x = g.Relu(g.input([1, 1, C]))
    y = norm(SQUARES["Mul"], DIVIDES["Div"], MEANS["ReduceMean"], True, bias=False)(g, x)
    expect(tally, "residual after a norm of one row", g.out(g.Relu(g.Add(y, g.Tanh(x)))), "norm", "layer", bias=None)
    check_group_norm(tally)
    check_l2(tally)


def check_l2(tally):
    """A row over its length; times the root of its size it is an RMS norm."""
    root = math.sqrt(C)
    lengths = {
        "ReduceL2": lambda g, x: g.ReduceL2(x, g.ints(-1), keepdims=1),
        "sum of squares": lambda g, x: g.Sqrt(g.ReduceSumSquare(x, g.ints(-1), keepdims=1)),
        "at least": lambda g, x: g.Max(g.ReduceL2(x, g.ints(-1), keepdims=1), 1e-6),
        "clipped, expanded": lambda g, x: g.Expand(g.Clip(g.ReduceL2(x, g.ints(-1), keepdims=1), 1e-12), g.Shape(x)),
    }
    forms = {
        "plain": ("l2", lambda g, x, n: g.Div(x, n(g, x))),
        "by reciprocal": ("l2", lambda g, x, n: g.Mul(x, g.Reciprocal(n(g, x)))),
        "times root": ("rms", lambda g, x, n: g.Mul(g.Div(x, n(g, x)), root)),
        "root times row": ("rms", lambda g, x, n: g.Div(g.Mul(root, x), n(g, x))),
        "length over root": ("rms", lambda g, x, n: g.Div(x, g.Div(n(g, x), root))),
    }
    absent = ("reduce", "elementwise:mul", "elementwise:div", "elementwise:clip", "elementwise:sqrt")
    for (n, length), (f, (what, form)) in itertools.product(lengths.items(), forms.items()):
        for weight in (False, True):
            def make(g, x, form=form, length=length, weight=weight):
                y = form(g, x, length)
                return g.Mul(y, g.weight(C)) if weight else y
            expect(tally, f"{n}, {f}, weight {weight}", alone(make), "norm", what, shape=[B * S, C], flops=5 * B * S * C, absent=absent,
                   weight_dtype="fp32" if weight else None)


def check_group_norm(tally):
    for weight in (True, False):
        g = Graph()
        x = g.Relu(g.input([B, 32, 8, 8]))
        y = g.InstanceNormalization(g.reshape(x, 0, 4, -1), g.const(np.ones(4, dtype=np.float32)), g.weight(4))
        y = g.reshape(y, B, 32, 8, 8)
        if weight:
            y = g.Add(g.Mul(y, g.weight(32, 1, 1)), g.weight(32, 1, 1))
        expect(tally, f"group norm, weight {weight}", g.out(g.Relu(y)), "norm", "group", shape=[B * 4, 8 * 64], channels=32)


# ---- rotary ----

H, D = 4, 16


def rotate_slices(g, x, d):
    return g.Concat(g.Neg(g.slice(x, d // 2, 2**62, 3)), g.slice(x, 0, d // 2, 3), axis=-1)


def rotate_back(g, x, d):
    return g.Concat(g.slice(x, d // 2, 2**62, 3), g.Neg(g.slice(x, 0, d // 2, 3)), axis=-1)


def rotate_by_factor(g, x, d):
    return g.Concat(g.Mul(g.slice(x, d // 2, 2**62, 3), -1.0), g.slice(x, 0, d // 2, 3), axis=-1)


def rotate_split(g, x, d):
    a, b = g.Split(x, outputs=2, axis=-1, num_outputs=2)
    return g.Concat(g.Neg(b), a, axis=-1)


def rotate_pairs(g, x, d):
    a, b = g.slice(x, 0, 2**62, 3, 2), g.slice(x, 1, 2**62, 3, 2)
    return g.reshape(g.Concat(g.unsqueeze(g.Neg(b), -1), g.unsqueeze(a, -1), axis=-1), 0, 0, 0, d)


def rotate_stacked(g, x, d):
    a, b = g.Split(g.reshape(x, 0, 0, 0, d // 2, 2), outputs=2, axis=-1, num_outputs=2)
    return g.reshape(g.Concat(g.Neg(b), a, axis=-1), 0, 0, 0, d)


def halves(g, x, cos, sin, d):
    a, b = g.slice(x, 0, d // 2, 3), g.slice(x, d // 2, 2**62, 3)
    return g.Concat(g.Sub(g.Mul(a, cos), g.Mul(b, sin)), g.Add(g.Mul(b, cos), g.Mul(a, sin)), axis=-1)


def rotary(rotate, swap=False, heads_last=False, partial=D, tables=1):
    g = Graph()
    x = g.Relu(g.input([B, S, H, D] if heads_last else [B, H, S, D]))
    angle = [tables, S, 1, partial] if heads_last else [tables, 1, S, partial]
    part = x if partial == D else g.slice(x, 0, partial, 3)
    cos, sin = g.Cos(g.input(angle)), g.Sin(g.input(angle))
    straight, turned = g.Mul(part, cos), g.Mul(sin, rotate(g, part, partial))
    y = g.Add(turned, straight) if swap else g.Add(straight, turned)
    return g.out(y if partial == D else g.Concat(y, g.slice(x, partial, 2**62, 3), axis=-1))


def check_rotary(tally):
    absent = ("elementwise:mul", "elementwise:neg", "elementwise:add")
    for rotate, inside in ((rotate_slices, None), (rotate_by_factor, None), (rotate_split, None), (rotate_pairs, 1)):
        for swap, last in itertools.product((False, True), (False, True)):
            expect(tally, f"{rotate.__name__}, swapped {swap}, heads last {last}", rotary(rotate, swap, last), "rotary",
                   shape=[B, H, S, D], interleaved=inside, angle_dim=D, absent=absent + ("move:slice", "move:split", "move:concat"))
    expect(tally, "rotate_stacked", rotary(rotate_stacked), "rotary", shape=[B, H, S, D], interleaved=1, angle_dim=D, absent=absent)
    expect(tally, "rotate_back", rotary(rotate_back), "rotary", shape=[B, H, S, D], angle_dim=D, absent=absent)
    expect(tally, "angles of each sequence", rotary(rotate_slices, tables=B), "rotary", shape=[B, H, S, D], angle_dim=D, angle_batch=B, absent=absent)
    expect(tally, "partial rotary", rotary(rotate_slices, partial=8), "rotary", shape=[B, H, S, 8], angle_dim=8, absent=absent)
    g = Graph()
    x = g.Relu(g.input([B, H, S, D]))
    cos, sin = g.Cos(g.input([1, 1, S, D // 2])), g.Sin(g.input([1, 1, S, D // 2]))
    expect(tally, "rotary by halves", g.out(halves(g, x, cos, sin, D)), "rotary", shape=[B, H, S, D], angle_dim=None, absent=absent + ("move:concat",))


# ---- quantised ----

def dequantize(g, x, scale=0.1):
    return g.DequantizeLinear(x, scale, g.const(np.array(0, dtype=np.int8)))


def quantize(g, x, scale=0.1):
    return g.QuantizeLinear(x, scale, g.const(np.array(0, dtype=np.int8)))


def check_quantised(tally):
    for result in (True, False):
        g = Graph()
        x = dequantize(g, quantize(g, g.input(SHAPE)))
        y = g.MatMul(x, dequantize(g, g.weight(C, 32, dtype=np.int8)))
        g.out(dequantize(g, quantize(g, y)) if result else y)
        expect(tally, f"QDQ MatMul, result quantised {result}", g, "gemm", shape=[B * S, 32, C], dtype="int8", weight_dtype="int8", quant="qdq",
               out_dtype=None if result else "fp32", bytes_written=B * S * 32 * (1 if result else 4))
    g = Graph()
    g.out(g.MatMul(g.input(SHAPE), dequantize(g, g.weight(C, 32, dtype=np.int8))))
    expect(tally, "weight-only", g, "gemm", dtype="fp32", weight_dtype="int8", quant=None)
    g = Graph()
    q, scale, zero = g.DynamicQuantizeLinear(g.input(SHAPE), outputs=3)
    y = g.cast(g.MatMulInteger(q, g.weight(C, 32, dtype=np.int8), zero, g.const(np.array(0, dtype=np.int8))), FLOAT)
    g.out(g.Mul(y, g.Mul(scale, g.const(0.02))))
    expect(tally, "dynamic", g, "gemm", shape=[B * S, 32, C], weight_dtype="int8", quant="dynamic", absent=("elementwise", "move:cast"))
    g = Graph()
    q, scale, zero = g.DynamicQuantizeLinear(g.input(SHAPE), outputs=3)
    for _ in range(2):
        y = g.cast(g.MatMulInteger(q, g.weight(C, 32, dtype=np.int8), zero), FLOAT)
        g.out(g.Mul(y, g.Mul(scale, g.const(0.02))))
    expect(tally, "dynamic, input shared", g, "gemm", count=2, quant="dynamic", absent=("elementwise", "move:cast"))


def check_quantised_activations(tally):
    """What follows a product or a sum on its way to be quantised is done in passing."""
    weight = lambda g: dequantize(g, g.weight(8, 3, 3, 3, dtype=np.int8))
    image = lambda g: dequantize(g, quantize(g, g.input([1, 3, 8, 8])))
    rows = lambda g: dequantize(g, quantize(g, g.input([32, C])))
    works = {
        "Conv": ("conv", None, lambda g: g.Conv(image(g), weight(g), dequantize(g, g.weight(8, dtype=np.int32), 0.01))),
        "MatMul": ("gemm", None, lambda g: g.MatMul(rows(g), dequantize(g, g.weight(C, 16, dtype=np.int8)))),
        "Gemm": ("gemm", None, lambda g: g.Gemm(rows(g), dequantize(g, g.weight(C, 16, dtype=np.int8)))),
        "Add": ("elementwise", "add", lambda g: g.Add(rows(g), rows(g))),
    }
    activations = {
        "relu": (lambda g, x: g.Relu(x), {}),
        "relu6": (lambda g, x: g.Clip(x, 0.0, 6.0), {}),
        "clip": (lambda g, x: g.Clip(x, -1.0, 2.5), {"activation_min": -1.0, "activation_max": 2.5}),
        None: (lambda g, x: x, {}),
    }
    for (name, (kind, what, work)), (activation, (apply, fields)) in itertools.product(works.items(), activations.items()):
        g = Graph()
        g.out(dequantize(g, quantize(g, apply(g, work(g)))))
        quantised = 2 if name == "Add" else 1
        entry = expect(tally, f"QDQ {name} and {activation}", g, kind, what, quant="qdq", dtype="int8", out_dtype=None, activation=activation,
                       absent=("elementwise:relu", "elementwise:clip"), **fields)
        found = Found(g).of("quantize", "quantize")
        tally.check(entry is None or sum(o["count"] for o in found) == quantised, f"QDQ {name} and {activation}: a QuantizeLinear is left over")
    g = Graph()
    y = g.Relu(g.MatMul(rows(g), dequantize(g, g.weight(C, 16, dtype=np.int8))))
    expect(tally, "QDQ, activation used twice", g.out(dequantize(g, quantize(g, y)), y), "gemm", quant="qdq", activation=None, out_dtype="fp32")


def check_quantised_moves(tally):
    """Bytes are moved where they mean the same before and behind; else what dequantises and quantises stays work of its own."""
    moves = {"transpose": lambda g, x: g.Transpose(x, perm=[1, 0]), "concat": lambda g, x: g.Concat(x, x, axis=0)}
    for (what, move), scale, shared in itertools.product(moves.items(), (0.1, 0.2), (False, True)):
        g = Graph()
        x = dequantize(g, quantize(g, g.input([C, S])))
        y = dequantize(g, quantize(g, move(g, x), scale), scale)
        more = [dequantize(g, quantize(g, g.MatMul(x, dequantize(g, g.weight(S, 16, dtype=np.int8)))))] if shared else []
        name = f"QDQ {what}, scale {scale}, shared {shared}"
        same = scale == 0.1
        expect(tally, name, g.out(y, *more), "move", what, dtype="int8" if same else "fp32", quant=None)
        found = Found(g).of("quantize", "dequantize")
        wanted = 1 + (not same) + shared
        tally.check(sum(o["count"] for o in found) == wanted, f"{name}: {wanted} DequantizeLinear are work of their own: {found}")


    g = Graph()
    x = g.DequantizeLinear(g.QuantizeLinear(g.input([C, S]), 0.1, g.const(np.array(0, dtype=np.uint8))), 0.1, g.const(np.array(0, dtype=np.uint8)))
    g.out(dequantize(g, quantize(g, g.Transpose(x, perm=[1, 0]))))
    expect(tally, "QDQ transpose into another type", g, "move", "transpose", dtype="fp32", quant=None)


def check_transposed_weighted(tally, rank, left, right):
    """A weight on the right keeps the batch apart only where the left side is read by columns."""
    lead = [B, 3][:rank - 2]
    batch, perm = math.prod(lead), [*range(rank - 2), rank - 1, rank - 2]
    g = Graph()
    a = g.Relu(g.input(lead + ([C, S] if left else [S, C])))
    a = g.Transpose(a, perm=perm) if left else a
    b = g.Transpose(g.weight(32, C), perm=[1, 0]) if right else g.weight(C, 32)
    apart = left and rank > 2
    expect(tally, f"transposed activation of rank {rank}, weight transposed {right}", g.out(g.MatMul(a, b)), "gemm",
           shape=[S if apart else batch * S, 32, C], batch=batch if apart else None, batch_stride_b=0 if apart else None,
           layout="nt"[left] + "nt"[right], macs=batch * S * 32 * C, bytes_read=4 * (batch * S * C + 32 * C), absent=("move:transpose",))


def check_transposes(tally):
    for left, right in itertools.product((False, True), (False, True)):
        g = Graph()
        a = g.Relu(g.input([B, C, S] if left else [B, S, C]))
        b = g.Relu(g.input([B, 32, C] if right else [B, C, 32]))
        a = g.Transpose(a, perm=[0, 2, 1]) if left else a
        b = g.Transpose(b, perm=[0, 2, 1]) if right else b
        expect(tally, f"transposes {left} {right}", g.out(g.MatMul(a, b)), "gemm", shape=[S, 32, C], batch=B,
               layout="nt"[left] + "nt"[right], absent=("move:transpose",))
    for rank, (left, right) in itertools.product((2, 3, 4), ((True, False), (False, True), (True, True))):
        check_transposed_weighted(tally, rank, left, right)
    g = Graph()
    a = g.Transpose(g.Relu(g.input([B, C, S])), perm=[0, 2, 1])
    expect(tally, "transpose used twice", g.out(g.linear(a, C, 32), a), "gemm", layout="nn", shape=[B * S, 32, C], batch=None)
    g = Graph()
    a = g.Transpose(g.Relu(g.input([C, S])), perm=[1, 0])
    expect(tally, "Gemm of a transpose", g.out(g.Gemm(a, g.weight(C, 32), g.weight(32))), "gemm", layout="tn", shape=[S, 32, C], bias="n",
           absent=("move:transpose",))
    g = Graph()
    expect(tally, "transposed weight", g.out(g.MatMul(g.input(SHAPE), g.Transpose(g.weight(32, C), perm=[1, 0]))), "gemm", layout="nt",
           shape=[B * S, 32, C])


# resized by the nearest: coordinates, rounding, scale of the last two dimensions, and whether each element only repeats
RESIZED = [
    ("asymmetric", "floor", 2, True), ("asymmetric", "floor", 3, True), ("asymmetric", "round_prefer_floor", 2, True), ("asymmetric", "round_prefer_floor", 3, False),
    ("asymmetric", "ceil", 2, False), ("half_pixel", "round_prefer_floor", 2, True), ("half_pixel", "round_prefer_floor", 4, True), ("half_pixel", "round_prefer_ceil", 3, True),
    ("half_pixel", "floor", 2, False), ("pytorch_half_pixel", "round_prefer_ceil", 2, True), ("align_corners", "round_prefer_floor", 3, False), ("asymmetric", "floor", 1.5, False),
    ("asymmetric", "floor", 0.5, False), ("asymmetric", "floor", 2.05, False),
]


def check_resized(tally):
    """Compared with what onnxruntime makes of it, so that no entry of the table is only believed."""
    for coordinates, rounding, scale, repeats in RESIZED:
        x = np.arange(1, 1 + 2 * 3 * 8 * 6, dtype=np.float32).reshape(2, 3, 8, 6)
        g = Graph()
        y = g.Resize(g.input(x.shape), "", g.const([1, 1, scale, scale]), mode="nearest", coordinate_transformation_mode=coordinates, nearest_mode=rounding)
        name = f"resize {coordinates} {rounding} {scale}"
        expect(tally, name, g.out(y), *(("move", "repeat") if repeats else ("pool", "resize")), input=[2, 3, 8, 6])
        found = onnxruntime.InferenceSession(g.model().SerializeToString()).run(None, {g.inputs[0].name: x})[0]
        times = [round(to / at) if to % at == 0 else 0 for at, to in zip(x.shape[2:], found.shape[2:])]
        same = all(times) and np.array_equal(found, x.repeat(times[0], 2).repeat(times[1], 3))
        tally.check(same == repeats, f"{name}: onnxruntime {'repeats' if same else 'does not repeat'} each element")
    g = Graph()
    same = g.Resize(g.Relu(g.input([2, 3, 8, 6])), "", g.const([1, 1, 1, 1]), mode="nearest")
    expect_none(tally, "resize to the same size", g.out(g.Exp(same)), "pool", "move:repeat")


# scales or sizes, and for which axes: how places are computed, `scales` says
SCALED = [
    ("axes", [1.3, 1.7], None, {"axes": [3, 2]}), ("all axes", [1, 1, 1.7, 1.3], None, {"axes": [0, 1, 3, 2]}), ("in order", [1, 1, 1.7, 1.3], None, {}),
    ("not larger", None, [8, 8], {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}),
    ("not smaller", None, [8, 8], {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}),
]


def interpolated(x, axis, scale, size):
    at = np.clip((np.arange(size) + 0.5) / scale - 0.5, 0, x.shape[axis] - 1)
    low = np.floor(at).astype(int)
    part = (at - low).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    return np.take(x, low, axis) * (1 - part) + np.take(x, np.minimum(low + 1, x.shape[axis] - 1), axis) * part


def check_scaled(tally):
    """Interpolated by the scales of the entry it is what onnxruntime makes of it."""
    for name, scales, sizes, attributes in SCALED:
        x = np.random.default_rng(7).standard_normal((1, 2, 5, 7)).astype(np.float32)
        g = Graph()
        given = ["", g.const(scales)] if scales else ["", "", g.const(sizes, np.int64)]
        y = g.Resize(g.input(x.shape), *given, mode="linear", **attributes)
        entry = expect(tally, f"resize, {name}", g.out(y), "pool", "resize")
        found = onnxruntime.InferenceSession(g.model().SerializeToString()).run(None, {g.inputs[0].name: x})[0]
        if not tally.check(entry is not None and "scales" in entry, f"resize, {name}: no scales in {entry}"):
            continue
        made = x.astype(np.float64)
        for axis, scale in enumerate(map(float, entry["scales"].split(","))):
            made = interpolated(made, axis, scale, found.shape[axis])
        tally.check(np.abs(made - found).max() < 1e-4, f"resize, {name}: by scales {entry['scales']} {np.abs(made - found).max()} off")


def check(tally):
    check_resized(tally)
    check_scaled(tally)
    check_gelu(tally)
    check_activations(tally)
    check_gated(tally)
    check_norms(tally)
    check_rotary(tally)
    check_quantised(tally)
    check_quantised_activations(tally)
    check_quantised_moves(tally)
    check_transposes(tally)
