"""What looks like a pattern and is none: one step of the formula is missing, turned round or about other data."""

import oracle
from pattern_attention import B, D, H, S, causal_by_range, plain
from pattern_formulas import S as LENGTH, alone, rotary
from pattern_graph import BOOL, FLOAT, Graph, expect, expect_none, operand_bytes

INT32 = 6
ROWS = [8, 8]


# ---- attention ----

def data(g, dtype=FLOAT):
    return g.input([B, H, S, S], dtype)


NO_ATTENTION = {
    "probabilities times data": {"after": lambda g, p: g.Mul(p, data(g))},
    "data times probabilities": {"after": lambda g, p: g.Mul(data(g), p), "mask": lambda g, s: g.Add(s, data(g))},
    "probabilities times a scalar": {"after": lambda g, p: g.Mul(p, 0.5)},
    "probabilities or data": {"after": lambda g, p: g.Where(data(g, BOOL), p, data(g))},
    "probabilities or zeros by other data": {"after": lambda g, p: g.Where(data(g, BOOL), p, 0.0)},
    "probabilities where they are hidden": {"mask": lambda g, s: g.Where(causal_by_range(g), s, -1e9),
                                            "after": lambda g, p: g.Where(causal_by_range(g), 0.0, p)},
    "scores or data": {"mask": lambda g, s: g.Where(data(g, BOOL), s, data(g))},
    "scores or ones": {"mask": lambda g, s: g.Where(data(g, BOOL), s, 1.0)},
    "scores times data": {"mask": lambda g, s: g.Mul(s, data(g))},
    "clipped scores": {"mask": lambda g, s: g.Clip(s, -1.0, 1.0)},
    "scores at least": {"mask": lambda g, s: g.Max(s, 0.0)},
    "scores at most": {"mask": lambda g, s: g.Min(s, 1.0)},
    "scores or data, the larger": {"mask": lambda g, s: g.Max(s, data(g))},
    "scores as integers": {"mask": lambda g, s: g.cast(g.cast(s, INT32), FLOAT)},
    "probabilities as booleans": {"after": lambda g, p: g.cast(g.cast(p, BOOL), FLOAT)},
}


def check_attention(tally):
    for name, parts in NO_ATTENTION.items():
        expect_none(tally, name, plain(Graph(), **parts), "attention")
    keep = []

    def masked(g, s):
        keep.append(g.input([B, 1, S, S], BOOL))
        return g.Where(keep[-1], s, -1e9)
    usual = {"shape": [B, H, S, D], "absent": ("softmax", "gemm")}
    expect(tally, "zeros where hidden", plain(Graph(), mask=masked, after=lambda g, p: g.Where(keep[-1], p, 0.0)), "attention", **usual)
    expect(tally, "overflow guard", plain(Graph(), mask=lambda g, s: g.Clip(s, -50000.0, 50000.0)), "attention", **usual, mask="none")
    expect(tally, "lowest number", plain(Graph(), mask=lambda g, s: g.Max(g.Where(causal_by_range(g), s, -3e38), -3.4e38)), "attention", **usual,
           mask="causal")


# ---- norms ----

def layer(mean_axis=-1, variance_axis=-1, keep=1, weight=None, shape=tuple(ROWS)):
    g = Graph()
    x = g.Relu(g.input(list(shape)))
    centred = g.Sub(x, g.ReduceMean(x, g.ints(mean_axis), keepdims=keep))
    variance = g.ReduceMean(g.Mul(centred, centred), g.ints(variance_axis), keepdims=keep)
    y = g.Div(centred, g.Sqrt(g.Add(variance, 1e-5)))
    return g.out(g.Relu(g.Mul(y, g.weight(*weight)) if weight else y))


def check_norms(tally):
    expect_none(tally, "mean and variance over different axes", layer(0, 1), "norm:layer")
    expect_none(tally, "mean and variance over other different axes", layer(1, 0), "norm:layer")
    expect_none(tally, "statistics that do not line up", layer(keep=0), "norm")
    expect(tally, "one factor per row", layer(weight=(8, 1)), "norm", "layer", weight_dtype=None)
    expect(tally, "one factor per column", layer(weight=(8,)), "norm", "layer", weight_dtype="fp32", axes=None, absent=("elementwise:mul",))
    expect(tally, "norm over columns", layer(0, 0), "norm", "layer", axes=[0], input=ROWS)
    expect(tally, "norm over columns, weight per row", layer(0, 0, weight=(8,)), "norm", "layer", axes=[0], weight_dtype=None)
    expect(tally, "norm over columns, weight", layer(0, 0, weight=(8, 1)), "norm", "layer", axes=[0], weight_dtype="fp32")
    ids = set()
    for axis in (1, 2):
        entry = expect(tally, f"norm over axis {axis}", layer(axis, axis, shape=(2, 8, 8, 4)), "norm", "layer", axes=[axis], input=[2, 8, 8, 4])
        ids.add(entry and entry["id"])
    tally.check(len(ids) == 2, "norms over different axes share a record")


# ---- activations ----

def check_casts(tally):
    for to, name in ((INT32, "integer"), (BOOL, "boolean")):
        expect_none(tally, f"silu by an {name}", alone(lambda g, x, to=to: g.Mul(x, g.cast(g.cast(g.Sigmoid(x), to), FLOAT))), "elementwise:silu")
        expect_none(tally, f"silu of an {name}", alone(lambda g, x, to=to: g.Mul(x, g.Sigmoid(g.cast(g.cast(x, to), FLOAT)))), "elementwise:silu")
    expect(tally, "silu in half precision", alone(lambda g, x: g.Mul(x, g.cast(g.Sigmoid(g.cast(x, 10)), FLOAT))), "elementwise", "silu")


# ---- rotary ----

def turned(first, second, negate=0, axis=3):
    """Concat of two slices (start, end) of x, one of them negated."""
    def make(g, x, _width):
        parts = [g.slice(x, start, end, axis) for start, end in (first, second)]
        parts[negate] = g.Neg(parts[negate])
        return g.Concat(*parts, axis=axis)
    return make


def pairs(order, concat_axis=-1):
    def make(g, x, d):
        parts = [g.unsqueeze(g.slice(x, k, 2**62, 3, 2), -1) for k in order]
        parts[0] = g.Neg(parts[0])
        return g.reshape(g.Concat(*parts, axis=concat_axis), 0, 0, 0, d)
    return make


def by_halves(less, more, flip=False, angles="cscs"):
    """Concat(a t - b t, c t + d t): which halves (less, more) and which angles."""
    g = Graph()
    x = g.Relu(g.input([B, H, S, D]))
    halves = [g.slice(x, 0, D // 2, 3), g.slice(x, D // 2, 2**62, 3)]
    table = {"c": g.Cos(g.input([1, 1, S, D // 2])), "s": g.Sin(g.input([1, 1, S, D // 2]))}
    products = [g.Mul(halves[part], table[angle]) for part, angle in zip(less + more, angles)]
    both = [g.Sub(*products[:2]), g.Add(*products[2:])]
    return g.out(g.Concat(*(both[::-1] if flip else both), axis=-1))


def check_rotary(tally):
    low, high = (0, D // 2), (D // 2, D)
    good = {"halves": turned(high, low), "halves, the other way": turned(high, low, 1), "from the end": turned((-D // 2, 2**62), low),
            "pairs": pairs((1, 0))}
    for name, rotate in good.items():
        expect(tally, f"rotary, {name}", rotary(rotate), "rotary", shape=[B, H, LENGTH, D])
    bad = {"halves that stay": turned(low, high), "halves that stay, second negated": turned(low, high, 1), "the same half twice": turned(high, high),
           "halves that overlap": turned((D // 2 - 1, D - 1), low), "a shifted half": turned(high, (1, D // 2 + 1)), "pairs that stay": pairs((0, 1))}
    for name, rotate in bad.items():
        expect_none(tally, f"rotary, {name}", rotary(rotate), "rotary")
    expect_none(tally, "rotary along the length", rotary(turned((LENGTH // 2, LENGTH), (0, LENGTH // 2), axis=2)), "rotary")
    for flip in (False, True):
        less = [1, 0] if flip else [0, 1]
        expect(tally, f"rotary by halves, flipped {flip}", by_halves(less, less[::-1], flip), "rotary", shape=[B, H, S, D])
        expect_none(tally, f"rotary by halves exchanged, flipped {flip}", by_halves(less[::-1], less, flip), "rotary")
        expect_none(tally, f"rotary by one half, flipped {flip}", by_halves([less[0]] * 2, less, flip), "rotary")
        expect_none(tally, f"rotary by halves, angles alike, flipped {flip}", by_halves(less, less[::-1], flip, "cssc"), "rotary")


def check_models(tally):
    """However an attention's mask is made, its operands are read."""
    for name in ("gpt2_ts", "llama2_7b"):
        path = oracle.model(name)
        if path is None:
            tally.skip(f"no {name}")
            continue
        run = oracle.Run(oracle.program(), path, "--batch", "1", "--seq", "128")
        for entry in (o for o in (run.ops or {"ops": []})["ops"] if o["op"] == "attention" and o["count"]):
            tally.check(entry["bytes_read"] >= operand_bytes(entry), f"{name}: {entry['id']} reads {entry['bytes_read']}")


def check(tally):
    check_attention(tally)
    check_norms(tally)
    check_casts(tally)
    check_rotary(tally)
    check_models(tally)
