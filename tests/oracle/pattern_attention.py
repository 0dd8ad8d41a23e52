"""Attention in the spellings that exporters and hand-written models use."""

import math

import numpy as np

from pattern_graph import BOOL, FLOAT, INT64, Graph, expect, expect_none

B, H, S, D = 2, 4, 48, 16
SCALE = 1 / math.sqrt(D)
ROOT = math.sqrt(SCALE)
LEFT_OVER = ("softmax", "gemm")


def heads(g, b=B, h=H, s=S, d=D):
    """Activations in [B, H, S, D] that are no inputs of the model, so that something stands before them."""
    return g.Relu(g.input([b, h, s, d]))


def finish(g, p, v):
    return g.out(g.MatMul(p, v))


def plain(g, scale=lambda g, s: g.Mul(s, SCALE), mask=lambda g, s: s, after=lambda g, p: p, k_heads=H, s_kv=S):
    q, k, v = heads(g), heads(g, h=k_heads, s=s_kv), heads(g, h=k_heads, s=s_kv)
    s = g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2]))
    p = g.Softmax(mask(g, scale(g, s)), axis=-1)
    return finish(g, after(g, p), v)


# ---- scales ----

def scaled_operands(g):
    q, k, v = heads(g), heads(g), heads(g)
    kt = g.Transpose(k, perm=[0, 1, 3, 2])
    return finish(g, g.Softmax(g.MatMul(g.Mul(q, ROOT), g.Mul(kt, ROOT)), axis=-1), v)


def scaled_before_transpose(g):
    q, k, v = heads(g), heads(g), heads(g)
    kt = g.Transpose(g.Mul(k, ROOT), perm=[0, 1, 3, 2])
    return finish(g, g.Softmax(g.MatMul(g.Div(q, 1 / ROOT), kt), axis=-1), v)


def scale_by_shape(g):
    """1 / sqrt of the last dimension, computed from the shape."""
    q, k, v = heads(g), heads(g), heads(g)
    size = g.cast(g.Gather(g.Shape(q), g.const(np.array(-1, dtype=np.int64))), FLOAT)
    s = g.Div(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), g.Sqrt(size))
    return finish(g, g.Softmax(s, axis=-1), v)


SCALES = {
    "scores times a scalar": lambda: plain(Graph()),
    "scalar times scores": lambda: plain(Graph(), scale=lambda g, s: g.Mul(SCALE, s)),
    "scores over a scalar": lambda: plain(Graph(), scale=lambda g, s: g.Div(s, math.sqrt(D))),
    "query and key both scaled": lambda: scaled_operands(Graph()),
    "scaled before the transpose": lambda: scaled_before_transpose(Graph()),
    "scale from the shape": lambda: scale_by_shape(Graph()),
    "opset 11": lambda: opset_11(),
    "softmax in another type": lambda: plain(Graph(), mask=lambda g, s: g.cast(s, 11), after=lambda g, p: g.cast(p, FLOAT)),
    "NaN guard": lambda: plain(Graph(), after=lambda g, p: g.Where(g.IsNaN(p), 0.0, p)),
    "dropout": lambda: plain(Graph(), after=lambda g, p: g.Dropout(p)),
}


def opset_11():
    g = Graph(11)
    q, k, v = heads(g), heads(g), heads(g)
    s = g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), SCALE)
    return finish(g, g.Softmax(s, axis=3), v)


# ---- masks ----

def rows_and_columns(g, q_len=S, kv_len=S):
    r = g.Range(g.const(np.array(kv_len - q_len)), g.const(np.array(kv_len)), g.const(np.array(1)))
    c = g.Range(g.const(np.array(0)), g.const(np.array(kv_len)), g.const(np.array(1)))
    return g.unsqueeze(r, 1), g.unsqueeze(c, 0)


def additive(keep, low=-np.inf):
    """Where(keep, 0, low) added to the scores."""
    return lambda g, s: g.Add(s, g.Where(keep(g), 0.0, float(low)))


def causal_by_range(g):
    r, c = rows_and_columns(g)
    return g.unsqueeze(g.LessOrEqual(c, r), 0, 1)


def causal_by_trilu(g):
    return g.cast(g.Trilu(g.const(np.ones((1, 1, S, S), dtype=np.float32)), upper=0), BOOL)


def causal_by_upper_trilu(g):
    ones = g.ConstantOfShape(g.ints(S, S))
    full = g.Sub(ones, 10000.0)
    return g.Trilu(full, g.const(np.array(1, dtype=np.int64)), upper=1)


def causal_buffer(g):
    buffer = g.const(np.tril(np.ones((1, 1, 256, 256), dtype=bool)))
    return g.slice(g.slice(buffer, 0, S, 2), 0, S, 3)


def window(width):
    def make(g):
        r, c = rows_and_columns(g)
        return g.And(g.LessOrEqual(c, r), g.Less(g.Sub(r, c), g.const(np.array(width))))
    return make


def padding(g):
    return g.unsqueeze(g.cast(g.input([B, S], INT64), BOOL), 1, 2)


def padding_arithmetic(g, s):
    mask = g.cast(g.unsqueeze(g.input([B, S], INT64), 1, 2), FLOAT)
    return g.Add(s, g.Mul(g.Sub(1.0, mask), -10000.0))


def legacy_gpt2(g, s):
    b = g.cast(causal_by_trilu(g), FLOAT)
    return g.Sub(g.Mul(s, b), g.Mul(g.Sub(1.0, b), 10000.0))


MASKS = {
    "no mask": (lambda g, s: s, "none", {}),
    "zeros": (lambda g, s: g.Add(s, g.weight(1, 1, S, S)), "none", {}),
    "causal by comparing ranges": (additive(causal_by_range), "causal", {}),
    "causal by comparing ranges, half precision's lowest": (additive(causal_by_range, -65504), "causal", {}),
    "causal by Trilu": (additive(causal_by_trilu), "causal", {}),
    "causal by upper Trilu": (lambda g, s: g.Add(s, causal_by_upper_trilu(g)), "causal", {}),
    "causal buffer, sliced": (additive(causal_buffer), "causal", {}),
    "causal Where on the scores": (lambda g, s: g.Where(causal_by_range(g), s, -10000.0), "causal", {}),
    "causal masked_fill": (lambda g, s: g.Where(g.Not(causal_by_range(g)), -1e9, s), "causal", {}),
    "causal product and difference": (legacy_gpt2, "causal", {}),
    "causal constant": (lambda g, s: g.Add(s, g.const(np.triu(np.full((S, S), -1e9, dtype=np.float32), 1))), "causal", {}),
    "sliding window": (additive(window(9)), "causal", {"window": 9}),
    "wide sliding window": (additive(window(47)), "causal", {"window": 47}),
    "padding": (additive(padding), "additive", {"mask_shape": [B, 1, 1, S]}),
    "padding by arithmetic": (padding_arithmetic, "additive", {"mask_shape": [B, 1, 1, S]}),
    "padding, flags of what to hide": (lambda g, s: g.Where(padding(g), -1e9, s), "additive", {"mask_shape": [B, 1, 1, S]}),
    "an input that is added": (lambda g, s: g.Add(s, g.input([B, 1, S, S])), "additive", {"mask_shape": [B, 1, S, S]}),
    "causal and padding": (additive(lambda g: g.And(causal_by_range(g), padding(g))), "causal+padding", {}),
    "causal, then padding": (lambda g, s: padding_arithmetic(g, additive(causal_by_trilu)(g, s)), "causal+padding", {}),
    "causal and padding, expanded": (additive(lambda g: g.Expand(g.And(causal_by_range(g), padding(g)), g.ints(B, 1, S, S))), "causal+padding", {}),
    "position bias": (lambda g, s: g.Add(s, g.const(np.random.default_rng(1).normal(size=(1, H, S, S)).astype(np.float32))), "additive",
                      {"mask_shape": [1, H, S, S]}),
    "anticausal": (additive(lambda g: g.LessOrEqual(*rows_and_columns(g))), "additive", {"mask_shape": [S, S]}),
}


# ---- forms of the products ----

def merged_heads(g):
    """[B * H, S, D] between reshapes."""
    q, k, v = (g.reshape(heads(g), B * H, S, D) for _ in range(3))
    s = g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 2, 1])), SCALE)
    return g.out(g.reshape(g.MatMul(g.Softmax(s, axis=-1), v), B, H, S, D))


def merged_with_bias(g, bias=(B * H, S, S), mask=None):
    """A bias that has batch and heads in one dimension, as ALiBi's; in some models a mask [B, 1, S, S] is added between reshapes."""
    q, k, v = (g.reshape(heads(g), B * H, S, D) for _ in range(3))
    s = g.Add(g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 2, 1])), SCALE), g.input(list(bias)))
    if mask:
        p = g.Softmax(g.Add(g.reshape(s, B, H, S, S), g.input(list(mask))), axis=-1)
        return g.out(g.reshape(g.MatMul(g.reshape(p, B * H, S, S), v), B, H, S, D))
    return g.out(g.reshape(g.MatMul(g.Softmax(s, axis=-1), v), B, H, S, D))


def merged_from_sequence_first(g):
    """[S, B, H * D] seen as [S, B * H, D], then transposed."""
    parts = [g.Transpose(g.reshape(g.Relu(g.input([S, B, H * D])), S, B * H, D), perm=[1, 0, 2]) for _ in range(3)]
    q, k, v = parts
    return finish(g, g.Softmax(g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 2, 1])), SCALE), axis=-1), v)


def whole_block(g):
    """Projections, head splits, one transpose for keys that also splits heads."""
    x = g.input([B, S, H * D])
    split = [g.reshape(g.linear(x, H * D, H * D), 0, 0, H, D) for _ in range(3)]
    q, v = (g.Transpose(t, perm=[0, 2, 1, 3]) for t in (split[0], split[2]))
    k = g.Transpose(split[1], perm=[0, 2, 3, 1])
    s = g.Div(g.MatMul(q, k), math.sqrt(D))
    o = g.Transpose(g.MatMul(g.Softmax(s, axis=-1), v), perm=[0, 2, 1, 3])
    return g.out(g.linear(g.reshape(o, 0, 0, H * D), H * D, H * D))


def reshaped_transpose(g):
    """The keys' transpose between reshapes to three dimensions."""
    q, k, v = heads(g), heads(g), heads(g)
    kt = g.reshape(g.Transpose(g.reshape(k, -1, S, D), perm=[0, 2, 1]), B, H, D, S)
    return finish(g, g.Softmax(g.MatMul(g.Mul(q, ROOT), g.Mul(kt, ROOT)), axis=-1), v)


def key_first(g):
    """K Q' transposed, and V' P' transposed."""
    q, k, v = heads(g), heads(g), heads(g)
    s = g.Transpose(g.MatMul(k, g.Transpose(q, perm=[0, 1, 3, 2])), perm=[0, 1, 3, 2])
    p = g.Softmax(g.Mul(s, SCALE), axis=-1)
    o = g.MatMul(g.Transpose(v, perm=[0, 1, 3, 2]), g.Transpose(p, perm=[0, 1, 3, 2]))
    return g.out(g.Transpose(o, perm=[0, 1, 3, 2]))


def einsum(g, first="bhqd,bhkd->bhqk", second="bhqk,bhkd->bhqd", layout=(B, H, S, D)):
    q, k, v = (g.Relu(g.input(list(layout))) for _ in range(3))
    p = g.Softmax(g.Mul(g.Einsum(q, k, equation=first), SCALE), axis=-1)
    return g.out(g.Einsum(p, v, equation=second))


def fused_matmul(g):
    q, k, v = heads(g), heads(g), heads(g)
    s = g.FusedMatMul(q, k, domain="com.microsoft", transB=1, alpha=SCALE)
    return finish(g, g.Softmax(s, axis=-1), v)


def shared_projection(g):
    """Q, K and V split out of one product, stacked before the heads."""
    x = g.reshape(g.linear(g.input([B, S, H * D]), H * D, 3 * H * D), B, S, 3, H, D)
    parts = g.Split(g.Transpose(x, perm=[2, 0, 3, 1, 4]), outputs=3, axis=0, num_outputs=3)
    q, k, v = (g.Squeeze(p, g.ints(0)) for p in parts)
    return finish(g, g.Softmax(g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), SCALE), axis=-1), v)


FORMS = {
    "merged heads": lambda: merged_heads(Graph()),
    "merged heads, sequence first": lambda: merged_from_sequence_first(Graph()),
    "whole block": lambda: whole_block(Graph()),
    "transpose between reshapes": lambda: reshaped_transpose(Graph()),
    "key first": lambda: key_first(Graph()),
    "Einsum": lambda: einsum(Graph()),
    "Einsum, heads third": lambda: einsum(Graph(), "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", (B, S, H, D)),
    "Einsum, key first": lambda: einsum(Graph(), "bkhd,bqhd->bhqk", "bhqk,bkhd->bqhd", (B, S, H, D)),
    "FusedMatMul": lambda: fused_matmul(Graph()),
    "one projection": lambda: shared_projection(Graph()),
}


# ---- grouped queries, caches ----

def repeat_expand(g, x, kv, s):
    return g.reshape(g.Expand(g.unsqueeze(x, 2), g.ints(B, kv, H // kv, s, D)), B, H, s, D)


def repeat_tile(g, x, kv, s):
    return g.reshape(g.Tile(g.unsqueeze(x, 2), g.ints(1, 1, H // kv, 1, 1)), B, H, s, D)


def repeat_concat(g, x, kv, s):
    return g.reshape(g.Concat(*[g.unsqueeze(x, 2)] * (H // kv), axis=2), B, H, s, D)


def repeat_gather(g, x, kv, s):
    return g.Gather(x, g.ints(*[h // (H // kv) for h in range(H)]), axis=1)


def grouped(repeat, kv):
    g = Graph()
    k, v = (repeat(g, heads(g, h=kv), kv, S) for _ in range(2))
    s = g.Mul(g.MatMul(heads(g), g.Transpose(k, perm=[0, 1, 3, 2])), SCALE)
    return finish(g, g.Softmax(s, axis=-1), v)


def grouped_before_split(kv=2):
    """Repeated while heads are still the third dimension."""
    g = Graph()

    def side():
        x = g.unsqueeze(g.Relu(g.input([B, S, kv, D])), 3)
        x = g.reshape(g.Expand(x, g.ints(B, S, kv, H // kv, D)), B, S, H, D)
        return g.Transpose(x, perm=[0, 2, 1, 3])

    s = g.Mul(g.MatMul(heads(g), g.Transpose(side(), perm=[0, 1, 3, 2])), SCALE)
    return finish(g, g.Softmax(s, axis=-1), side())


def grouped_broadcast(kv=2):
    """[B, KV, G, S, D] against [B, KV, 1, S, D]."""
    g = Graph()
    q = g.reshape(heads(g), B, kv, H // kv, S, D)
    k, v = (g.unsqueeze(heads(g, h=kv), 2) for _ in range(2))
    s = g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 2, 4, 3])), SCALE)
    return g.out(g.reshape(g.MatMul(g.Softmax(s, axis=-1), v), B, H, S, D))


def grouped_reshaped(kv=2):
    """By broadcast, where the scores have all heads beside each other until values come."""
    g = Graph()
    q, k, v = g.input([B, kv, H // kv, S, D]), g.input([B, kv, 1, D, S]), g.input([B, kv, 1, S, D])
    s = g.Add(g.reshape(g.MatMul(q, k), B, H, S, S), g.input([B, 1, S, S]))
    return g.out(g.MatMul(g.reshape(g.Softmax(s, axis=-1), B, kv, H // kv, S, S), v))


def shared_by_batches(*batch):
    g = Graph()
    q, k, v = g.input([*batch, H, S, D]), g.input([1, *batch[1:], H, D, S]), g.input([1, *batch[1:], H, S, D])
    return g.out(g.MatMul(g.Softmax(g.MatMul(q, k), axis=-1), v))


def multi_query():
    g = Graph()
    s = g.Mul(g.MatMul(heads(g), g.Transpose(heads(g, h=1), perm=[0, 1, 3, 2])), SCALE)
    return finish(g, g.Softmax(s, axis=-1), heads(g, h=1))


def decode(kv=2, past=64):
    g = Graph()
    k, v = (repeat_expand(g, g.Concat(g.input([B, kv, past, D]), heads(g, h=kv, s=1), axis=2), kv, past + 1) for _ in range(2))
    s = g.Mul(g.MatMul(heads(g, s=1), g.Transpose(k, perm=[0, 1, 3, 2])), SCALE)
    mask = g.unsqueeze(g.cast(g.input([B, past + 1], INT64), BOOL), 1, 2)
    return finish(g, g.Softmax(g.Add(s, g.Where(mask, 0.0, -65504.0)), axis=-1), v)


def decode_folded(kv=2, past=64, mask=(B, 1, 1, 65), fold=1):
    """Heads that share keys and values stand where the query's length does."""
    g = Graph()
    k, v = (g.Concat(g.input([B, kv, past, D]), heads(g, h=kv, s=1), axis=2) for _ in range(2))
    q = g.Mul(g.reshape(heads(g, h=H // fold, s=fold), B, kv, H // kv, D), SCALE)
    s = g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2]))
    p = g.Softmax(g.Add(s, g.input(list(mask))) if mask else s, axis=-1)
    return g.out(g.reshape(g.MatMul(p, v), B, H, 1, D))


def chunk_with_past(q_len=16, past=32):
    """Several queries at the end of a cache, causal among themselves."""
    g = Graph()
    k, v = (g.Concat(g.input([B, H, past, D]), heads(g, s=q_len), axis=2) for _ in range(2))
    s = g.Mul(g.MatMul(heads(g, s=q_len), g.Transpose(k, perm=[0, 1, 3, 2])), SCALE)
    r, c = rows_and_columns(g, q_len, q_len + past)
    return finish(g, g.Softmax(g.Add(s, g.Where(g.LessOrEqual(c, r), 0.0, -1e9)), axis=-1), v)


REPEATS = {"Expand": repeat_expand, "Tile": repeat_tile, "Concat": repeat_concat, "Gather": repeat_gather}


def softcapped():
    return plain(Graph(), mask=lambda g, s: g.Mul(g.Tanh(g.Div(s, 30.0)), 30.0))


def weights_returned():
    """The probabilities are an output too: nothing may be joined."""
    g = Graph()
    q, k, v = heads(g), heads(g), heads(g)
    p = g.Softmax(g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), SCALE), axis=-1)
    return g.out(p, g.MatMul(p, v))


def classifier():
    """A softmax over the result of a weight is no attention."""
    g = Graph()
    p = g.Softmax(g.linear(g.input([B, S, 64]), 64, S), axis=-1)
    return g.out(g.MatMul(p, g.Relu(g.input([B, S, D]))))


def attention_operator(mask):
    g = Graph(23)
    q, k, v = heads(g), heads(g), heads(g)
    return g.out(g.Attention(q, k, v, mask(g)))


def check(tally):
    full, pairs = B * H * S * S * 2 * D, S * (S + 1) // 2
    usual = {"shape": [B, H, S, D], "kv_heads": H, "kv_len": S, "scale": None, "absent": LEFT_OVER, "macs": full}
    for name, make in SCALES.items():
        expect(tally, name, make(), "attention", **usual, mask="none")
    for name, (mask, kind, fields) in MASKS.items():
        entry = expect(tally, name, plain(Graph(), mask=mask), "attention", **usual, mask=kind, **fields)
        if entry and kind.startswith("causal") and "window" not in fields:
            tally.check(entry["flops"] == 2 * B * H * pairs * 2 * D, f"{name}: {entry['flops']} flops are not those of half the pairs")
    for name, make in FORMS.items():
        entry = expect(tally, name, make(), "attention", **(usual | {"absent": ("softmax",)}), mask="none")
        tally.check(entry is None or name == "merged heads, sequence first" or entry["bytes_written"] == 4 * B * H * S * D, f"{name}: bytes")
    for bias, mask, shape in (((B * H, S, S), None, [B, H, S, S]), ((B * H, 1, S), None, [B, H, 1, S]), ((B * H, 1, S), (B, 1, S, S), [B, H, S, S])):
        expect(tally, f"merged heads, bias {bias}, mask {mask}", merged_with_bias(Graph(), bias, mask), "attention", **(usual | {"absent": ("softmax",)}),
               mask="additive", mask_shape=shape)
    for name, repeat in REPEATS.items():
        for kv in (1, 2):
            entry = expect(tally, f"{kv} heads repeated by {name}", grouped(repeat, kv), "attention", **(usual | {"kv_heads": kv}))
            if entry:
                want = 4 * S * D * B * (H + 2 * kv)
                tally.check(want <= entry["bytes_read"] <= want + 64, f"{name}: reads {entry['bytes_read']}, should be {want}")
    expect(tally, "repeated before the split", grouped_before_split(), "attention", **(usual | {"kv_heads": 2}))
    expect(tally, "grouped by broadcast", grouped_broadcast(), "attention", **(usual | {"kv_heads": 2}))
    unscaled = {"scale": 1.0}
    expect(tally, "grouped by broadcast, scores by heads", grouped_reshaped(), "attention", **(usual | unscaled | {"kv_heads": 2}))
    for batch in ((B,), (B, 3)):
        expect_none(tally, f"keys that {batch[0]} of {batch} share", shared_by_batches(*batch), *LEFT_OVER, "move:expand")
    expect(tally, "multi-query by broadcast", multi_query(), "attention", **(usual | {"kv_heads": 1}))
    expect(tally, "decode", decode(), "attention", shape=[B, H, 1, D], kv_heads=2, kv_len=65, mask="additive",
           mask_shape=[B, 1, 1, 65], absent=LEFT_OVER)
    folded = {"kv_heads": 2, "kv_len": 65, "absent": LEFT_OVER, "macs": 2 * B * H * 65 * D}
    expect(tally, "decode, heads folded", decode_folded(), "attention", shape=[B, H, 1, D], mask="additive", mask_shape=[B, 1, 1, 65], **folded)
    expect(tally, "decode, heads folded, no mask", decode_folded(mask=None), "attention", shape=[B, H, 1, D], mask="none", **folded)
    expect(tally, "decode, heads folded, a mask for each", decode_folded(mask=(B, 2, H // 2, 65)), "attention", shape=[B, 2, H // 2, D], **folded)
    expect(tally, "two queries in one head", decode_folded(fold=2), "attention", shape=[B, 2, H // 2, D], **folded)
    expect(tally, "chunk with past", chunk_with_past(), "attention", shape=[B, H, 16, D], kv_len=48, mask="causal", absent=LEFT_OVER,
           flops=2 * B * H * 2 * D * (16 * 32 + 16 * 17 // 2))
    expect(tally, "softcap", softcapped(), "attention", **usual, softcap=30.0)
    expect(tally, "other scale", plain(Graph(), scale=lambda g, s: g.Mul(s, 0.5)), "attention", **(usual | {"scale": 0.5}))
    expect(tally, "probabilities returned", weights_returned(), "softmax", absent=("attention",))
    expect(tally, "classifier", classifier(), "softmax", absent=("attention",))
    expect(tally, "Attention with a causal mask", attention_operator(causal_by_trilu), "attention", **usual, mask="causal")
    expect(tally, "Attention with padding", attention_operator(padding), "attention", **usual, mask="additive")
