"""Masks that need more than a look at their own positions, what of a mask has to be read, and softmax written out."""

import itertools

import numpy as np

import pattern_attention as attention
from pattern_attention import B, H, LEFT_OVER, S, D, additive, causal_by_range, padding, plain, rows_and_columns
from pattern_graph import FLOAT, INT64, Graph, expect

INT32 = 6
OPERANDS = 3 * 4 * B * H * S * D


# ---- lengths: one number per sequence ----

def keys(g, dtype=INT64):
    return g.cast(rows_and_columns(g)[1], dtype)  # [1, S]


def by_column(g):
    return g.unsqueeze(g.Less(keys(g), g.unsqueeze(g.input([B], INT64), 1)), 1, 2)


def by_column_given(g):
    return g.unsqueeze(g.Less(keys(g), g.input([B, 1], INT64)), 1, 2)


def by_four_dimensions(g):
    return g.Less(g.reshape(keys(g), 1, 1, 1, S), g.reshape(g.input([B], INT64), B, 1, 1, 1))


def by_cast(g):
    return g.unsqueeze(g.Less(keys(g), g.unsqueeze(g.cast(g.input([B], INT32), INT64), 1)), 1, 2)


def by_float(g):
    return g.unsqueeze(g.Greater(g.unsqueeze(g.cast(g.input([B], INT64), FLOAT), 1), keys(g, FLOAT)), 1, 2)


def by_expand(g):
    return g.Expand(by_column(g), g.ints(B, 1, S, S))


def by_last(g):
    """The position of the last key, not how many there are."""
    return g.unsqueeze(g.LessOrEqual(keys(g), g.unsqueeze(g.input([B], INT64), 1)), 1, 2)


def by_both(g):
    """Padded queries see nothing either."""
    inside = g.Less(keys(g), g.unsqueeze(g.input([B], INT64), 1))
    return g.unsqueeze(g.And(g.unsqueeze(inside, 2), g.unsqueeze(inside, 1)), 1)


def hidden_from_left(g):
    """Padding at the other end: this is not what kernels mean by lengths."""
    short = g.Sub(g.const(np.array(S)), g.unsqueeze(g.input([B], INT64), 1))
    return g.unsqueeze(g.GreaterOrEqual(keys(g), short), 1, 2)


LENGTHS = {f.__name__: f for f in (by_column, by_column_given, by_four_dimensions, by_cast, by_float, by_expand, by_last, by_both)}


def decode(batch, kv_len=65):
    """One query against a cache of fixed size, of which so many places are in use."""
    g = Graph()
    q, k, v = g.Relu(g.input([batch, H, 1, D])), g.input([batch, H, kv_len, D]), g.input([batch, H, kv_len, D])
    keep = g.Less(rows_and_columns(g, 1, kv_len)[1], g.unsqueeze(g.input([batch], INT64), 1))
    s = g.Add(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), g.Where(g.unsqueeze(keep, 1, 2), 0.0, -65504.0))
    return g.out(g.MatMul(g.Softmax(s, axis=-1), v))


def check_lengths(tally, usual):
    for name, keep in LENGTHS.items():
        size = 4 if keep is by_cast else 8
        expect(tally, f"lengths {name}", plain(Graph(), mask=additive(keep)), "attention", **usual, mask="lengths", mask_shape=None,
               bytes_read=OPERANDS + B * size)
    hide = lambda g, s: g.Where(g.Not(by_column(g)), -1e9, s)
    expect(tally, "lengths, masked_fill", plain(Graph(), mask=hide), "attention", **usual, mask="lengths")
    arithmetic = lambda g, s: g.Add(s, g.Mul(g.Sub(1.0, g.cast(by_column(g), FLOAT)), -10000.0))
    expect(tally, "lengths, by arithmetic", plain(Graph(), mask=arithmetic), "attention", **usual, mask="lengths")
    both = additive(lambda g: g.And(causal_by_range(g), by_column(g)))
    expect(tally, "causal and lengths", plain(Graph(), mask=both), "attention", **usual, mask="causal+padding")
    expect(tally, "lengths from the right", plain(Graph(), mask=additive(hidden_from_left)), "attention", **usual, mask="additive")
    padded = additive(lambda g: g.And(padding(g), by_column(g)))
    expect(tally, "lengths and padding", plain(Graph(), mask=padded), "attention", **usual, mask="additive")
    two = additive(lambda g: g.And(by_column(g), by_column(g)))
    expect(tally, "two lengths", plain(Graph(), mask=two), "attention", **usual, mask="additive")
    for batch in (1, B):
        expect(tally, f"decode with lengths, batch {batch}", decode(batch), "attention", shape=[batch, H, 1, D], kv_len=65, mask="lengths",
               mask_shape=None, absent=LEFT_OVER)
    g = attention.attention_operator(by_column)
    expect(tally, "Attention with lengths", g, "attention", **usual, mask="lengths", bytes_read=OPERANDS + B * 8)


# ---- masks by CumSum and ScatterND ----

def counted(g, source):
    """Positions counted by a CumSum over ones, compared with each other."""
    at = g.CumSum(source, g.const(np.array(1)))
    return g.unsqueeze(g.LessOrEqual(g.unsqueeze(at, 1), g.unsqueeze(at, 2)), 1)


def scattered(g, s):
    """A causal mask assigned to all of a buffer."""
    grid = np.stack(np.meshgrid(np.arange(S), np.arange(S), indexing="ij"), axis=-1).astype(np.int64)
    mask = g.Where(g.LessOrEqual(*reversed(rows_and_columns(g))), 0.0, -10000.0)
    return g.Add(s, g.ScatterND(g.ConstantOfShape(g.ints(S, S)), g.const(grid), mask))


def check_made(tally, usual):
    ones = additive(lambda g: counted(g, g.const(np.ones((1, S), dtype=np.int64))))
    expect(tally, "causal by CumSum", plain(Graph(), mask=ones), "attention", **usual, mask="causal")
    given = additive(lambda g: counted(g, g.input([B, S], INT64)))
    expect(tally, "causal by CumSum of an input", plain(Graph(), mask=given), "attention", **usual, mask="causal+padding")
    expect(tally, "causal by ScatterND", plain(Graph(), mask=scattered), "attention", **usual, mask="causal")


# ---- what of a mask has to be read ----

def check_bytes(tally):
    cases = {
        "none": (lambda g, s: g.Add(s, g.weight(1, 1, S, S)), 0),
        "causal": (lambda g, s: g.Add(s, g.const(np.triu(np.full((S, S), -1e9, dtype=np.float32), 1))), 0),
        "causal+padding": (additive(lambda g: g.And(causal_by_range(g), padding(g))), B * S),
        "additive": (lambda g, s: g.Add(s, g.input([B, 1, S, S])), 4 * B * S * S),
    }
    for kind, (mask, size) in cases.items():
        expect(tally, f"bytes of a mask: {kind}", plain(Graph(), mask=mask), "attention", mask=kind, bytes_read=OPERANDS + size)
    apart = lambda g, s: attention.padding_arithmetic(g, additive(attention.causal_by_trilu)(g, s))
    expect(tally, "bytes of a mask: causal, then padding", plain(Graph(), mask=apart), "attention", mask="causal+padding",
           bytes_read=OPERANDS + 4 * B * S)
    causal = attention.attention_operator(lambda g: g.const(np.tril(np.ones((S, S), dtype=bool))))
    expect(tally, "bytes of Attention's causal mask", causal, "attention", mask="causal", bytes_read=OPERANDS)


# ---- softmax written out ----

def written_out(shifted, reciprocal):
    def softmax(self, x, axis=-1):
        z = self.Sub(x, self.ReduceMax(x, self.ints(axis), keepdims=1)) if shifted else x
        e = self.Exp(z)
        total = self.ReduceSum(e, self.ints(axis), keepdims=1)
        return self.Mul(self.Reciprocal(total), e) if reciprocal else self.Div(e, total)
    return type("Spelled", (Graph,), {"Softmax": softmax})


def check_softmax(tally, usual):
    left = ("elementwise:exp", "elementwise:div", "elementwise:sub", "elementwise:mul", "reduce")
    for shifted, reciprocal in itertools.product((False, True), (False, True)):
        spelled = written_out(shifted, reciprocal)
        g = spelled()
        g.out(g.Tanh(g.Softmax(g.Relu(g.input([2, 24, 64])))))
        name = f"softmax written out, shifted {shifted}, reciprocal {reciprocal}"
        expect(tally, name, g, "softmax", shape=[48, 64], inner=None, absent=left, bytes_read=4 * 48 * 64, flops=12 * 48 * 64)
        g = plain(spelled(), mask=additive(causal_by_range))
        expect(tally, f"{name}, in an attention", g, "attention", **(usual | {"absent": LEFT_OVER + left}), mask="causal")
    g = written_out(True, False)()
    g.out(g.Relu(g.Softmax(g.Relu(g.input([2, 24, 64])), axis=1)))
    expect(tally, "softmax written out along another dimension", g, "elementwise", "exp", absent=("softmax",))


def check(tally):
    usual = {"shape": [B, H, S, D], "kv_heads": H, "kv_len": S, "scale": None, "absent": LEFT_OVER, "macs": B * H * S * S * 2 * D}
    check_lengths(tally, usual)
    check_made(tally, usual)
    check_bytes(tally)
    check_softmax(tally, usual)
