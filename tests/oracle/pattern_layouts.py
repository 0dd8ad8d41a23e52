"""How the tensors of an attention lie: what strides tell is no copy, and what the record says of the strides is true. Each model
is run by onnxruntime. Then the attention is computed from the memory that the dataflow names, by the strides that the record has,
and what it writes by them must be the tensor that the model makes there."""

import math
import random

import numpy as np
import onnx
import onnxruntime

from pattern_graph import Found, Graph

B, H, S, D = 2, 3, 6, 8
SCALE = 1 / math.sqrt(D)
RANDOM_MODELS = 150


def attend(g, q, k, v):
    """Queries, keys and values in [B, H, S, D] (or with the first two in one)."""
    turned = list(range(g.rank))
    turned[-2:] = turned[:-3:-1]
    p = g.Softmax(g.Mul(g.MatMul(q, g.Transpose(k, perm=turned)), SCALE), axis=-1)
    return g.MatMul(p, v)


def graph(rank=4, opset=20):
    g = Graph(opset)
    g.rank = rank
    return g


def made(g, *shape):
    return g.Relu(g.input(list(shape)))


def end(g, *tensors):
    for t in tensors:
        g.out(g.Neg(t))
    return g


def split(g, x, perm=(0, 2, 1, 3), heads=H):
    return g.Transpose(g.reshape(x, 0, 0, heads, D), perm=list(perm))


def merge(g, o):
    return g.reshape(g.Transpose(o, perm=[0, 2, 1, 3]), B, S, H * D)


def head_splits(g, k_perm=(0, 2, 1, 3)):
    q, k, v = (split(g, made(g, B, S, H * D)) for _ in range(3))
    return end(g, merge(g, attend(g, q, k, v)))


def one_transpose_for_keys(g):
    q, v = (split(g, made(g, B, S, H * D)) for _ in range(2))
    k = g.Mul(split(g, made(g, B, S, H * D), (0, 2, 3, 1)), SCALE)
    return end(g, merge(g, g.MatMul(g.Softmax(g.MatMul(q, k), axis=-1), v)))


def packed_by_split(g):
    parts = g.Split(made(g, B, S, 3 * H * D), outputs=3, axis=2, num_outputs=3)
    return end(g, merge(g, attend(g, *(split(g, p) for p in parts))))


def packed_by_slices(g, first=0, width=3 * H * D):
    x = made(g, B, S, width)
    parts = [g.slice(x, first + k * H * D, first + (k + 1) * H * D, 2) for k in range(3)]
    return end(g, merge(g, attend(g, *(split(g, p) for p in parts))))


def stacked(g, pick):
    x = g.Transpose(g.reshape(made(g, B, S, 3 * H * D), B, S, 3, H, D), perm=[2, 0, 3, 1, 4])
    return end(g, merge(g, attend(g, *pick(g, x))))


def by_gather(g, x):
    return [g.Gather(x, g.const(np.array(k, dtype=np.int64)), axis=0) for k in range(3)]


def by_split(g, x):
    return [g.Squeeze(p, g.ints(0)) for p in g.Split(x, outputs=3, axis=0, num_outputs=3)]


def heads_packed(g):
    """[B, S, H, 3, D]"""
    x = g.Transpose(g.reshape(made(g, B, S, 3 * H * D), B, S, H, 3, D), perm=[3, 0, 2, 1, 4])
    return end(g, merge(g, attend(g, *by_gather(g, x))))


def heads_in_the_batch(g):
    """[B * H, S, D] of transposes, which no strides of three dimensions tell."""
    q, k, v = (g.reshape(split(g, made(g, B, S, H * D)), B * H, S, D) for _ in range(3))
    return end(g, merge(g, g.reshape(attend(g, q, k, v), B, H, S, D)))


def sequence_first(g):
    q, k, v = (g.Transpose(g.reshape(made(g, S, B, H * D), S, B * H, D), perm=[1, 0, 2]) for _ in range(3))
    o = g.Transpose(attend(g, q, k, v), perm=[1, 0, 2])
    return end(g, g.reshape(o, S, B, H * D))


def grouped(g, before):
    """One head of keys and values for all."""
    def side():
        x = g.unsqueeze(made(g, B, S, 1, D), 3)
        if before:
            return g.Transpose(g.reshape(g.Expand(x, g.ints(B, S, 1, H, D)), B, S, H, D), perm=[0, 2, 1, 3])
        x = g.unsqueeze(g.Transpose(g.Squeeze(x, g.ints(3)), perm=[0, 2, 1, 3]), 2)
        return g.reshape(g.Expand(x, g.ints(B, 1, H, S, D)), B, H, S, D)
    return end(g, merge(g, attend(g, split(g, made(g, B, S, H * D)), side(), side())))


def keys_are_an_output(g):
    q, k, v = (split(g, made(g, B, S, H * D)) for _ in range(3))
    return end(g, merge(g, attend(g, q, k, v)), k)


def slices_are_used_elsewhere(g):
    parts = g.Split(made(g, B, S, 3 * H * D), outputs=3, axis=2, num_outputs=3)
    return end(g, merge(g, attend(g, *(split(g, p) for p in parts))), parts[1])


def the_packed_tensor_is_used_elsewhere(g):
    x = made(g, B, S, 3 * H * D)
    parts = g.Split(x, outputs=3, axis=2, num_outputs=3)
    return end(g, merge(g, attend(g, *(split(g, p) for p in parts))), x)


def output_is_used_twice(g):
    q, k, v = (made(g, B, H, S, D) for _ in range(3))
    o = attend(g, q, k, v)
    return end(g, merge(g, o), o)


def shared_keys(g):
    """Two attentions that read one transpose."""
    k, v = (split(g, made(g, B, S, H * D)) for _ in range(2))
    return end(g, *(merge(g, attend(g, split(g, made(g, B, S, H * D)), k, v)) for _ in range(2)))


def every_second_row(g):
    k, v = (g.slice(made(g, B, H, 2 * S, D), 0, 2 * S, 2, 2) for _ in range(2))
    return end(g, merge(g, attend(g, made(g, B, H, S, D), k, v)))


def backward_rows(g):
    k = g.slice(made(g, B, H, S, D), -1, -1000, 2, -1)
    return end(g, merge(g, attend(g, made(g, B, H, S, D), k, made(g, B, H, S, D))))


def every_second_number(g):
    k = g.slice(made(g, B, H, S, 2 * D), 0, 2 * D, 3, 2)
    return end(g, merge(g, attend(g, made(g, B, H, S, D), k, made(g, B, H, S, D))))


def operator(g, packed=False):
    sides = g.Split(made(g, B, S, 3 * H * D), outputs=3, axis=2, num_outputs=3) if packed else [made(g, B, S, H * D) for _ in range(3)]
    return end(g, merge(g, g.Attention(*(split(g, x) for x in sides))))


def operator_of_rows(g):
    parts = g.Split(made(g, B, S, 3 * H * D), outputs=3, axis=2, num_outputs=3)
    return end(g, g.Attention(*parts, q_num_heads=H, kv_num_heads=H))


def cross(g):
    """Keys and values of another length, in rows."""
    q, k, v = made(g, B, S, H * D), made(g, B, 5, H * D), made(g, B, 5, H * D)
    return end(g, g.Attention(q, k, v, q_num_heads=H, kv_num_heads=H))


ROW = 3 * H * D
QKV = {f"{side}_layout": [S * ROW, D, ROW] for side in "qkv"}
FIRST = {f"{side}_layout": [H * D, D, B * H * D] for side in ("q", "k", "v", "out")}
SEQUENCE = {"layout": "bshd"}

# Of each model: what the record says, and how many moves stay.
MODELS = {
    "head splits": (lambda: head_splits(graph()), SEQUENCE, 0),
    "one transpose for keys": (lambda: one_transpose_for_keys(graph()), SEQUENCE, 0),
    "packed, by a split": (lambda: packed_by_split(graph()), SEQUENCE | QKV, 0),
    "packed, by slices": (lambda: packed_by_slices(graph()), SEQUENCE | QKV, 0),
    "packed, where no row begins": (lambda: packed_by_slices(graph(), 4, ROW + 8), SEQUENCE, 3),
    "stacked, by gathers": (lambda: stacked(graph(), by_gather), SEQUENCE | QKV, 0),
    "stacked, by a split": (lambda: stacked(graph(), by_split), SEQUENCE | QKV, 0),
    "heads packed": (lambda: heads_packed(graph()), SEQUENCE | {f"{s}_layout": [S * ROW, 3 * D, ROW] for s in "qkv"}, 0),
    "heads in the batch": (lambda: heads_in_the_batch(graph(3)), SEQUENCE, 0),
    "sequence first": (lambda: sequence_first(graph(3)), FIRST, 0),
    "keys shared by all heads": (lambda: grouped(graph(), False), SEQUENCE, 0),
    "keys repeated before the split": (lambda: grouped(graph(), True), SEQUENCE, 0),
    "keys are an output": (lambda: keys_are_an_output(graph()), SEQUENCE | {"k_layout": "bhsd"}, 1),
    "a slice is used elsewhere": (lambda: slices_are_used_elsewhere(graph()), SEQUENCE, 1),
    "the packed tensor is used elsewhere": (lambda: the_packed_tensor_is_used_elsewhere(graph()), SEQUENCE | QKV, 0),
    "the output is used twice": (lambda: output_is_used_twice(graph()), {}, 1),
    "keys of two attentions": (lambda: shared_keys(graph()), SEQUENCE | {"k_layout": "bhsd", "v_layout": "bhsd"}, 2),
    "every second row": (lambda: every_second_row(graph()), SEQUENCE | {"q_layout": "bhsd"} |
                         {f"{s}_layout": [2 * H * S * D, 2 * S * D, 2 * D] for s in "kv"}, 0),
    "rows backward": (lambda: backward_rows(graph()), SEQUENCE | {f"{s}_layout": "bhsd" for s in "qkv"}, 1),
    "every second number": (lambda: every_second_number(graph()), SEQUENCE | {f"{s}_layout": "bhsd" for s in "qkv"}, 1),
    "Attention": (lambda: operator(graph(opset=23)), SEQUENCE, 0),
    "Attention, packed": (lambda: operator(graph(opset=23), True), SEQUENCE | QKV, 0),
    "Attention of packed rows": (lambda: operator_of_rows(graph(opset=23)), SEQUENCE | QKV, 0),
    "Attention of rows of another length": (lambda: cross(graph(opset=23)), SEQUENCE | {"k_layout": "bshd", "v_layout": "bshd"}, 0),
}


def values(g):
    """Every tensor of the model, of random inputs."""
    model, rng = g.model(), np.random.default_rng(1)
    names = [o for n in model.graph.node for o in n.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    feeds = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32) for i in model.graph.input}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return feeds | dict(zip(names, session.run(names, feeds)))


def strides(entry, side):
    """What docs/formats.md says of it: from sequence to sequence, head to head, row to row."""
    _, h, s, d = entry["shape"]
    if side in "kv":
        h, s = entry["kv_heads"], entry["kv_len"]
    usual = "bshd" if entry.get("layout") == "bshd" and (side not in "kv" or entry["kv_len"] == entry["shape"][2]) else "bhsd"
    said = entry.get(f"{side}_layout", usual)
    return {"bhsd": [h * s * d, s * d, d], "bshd": [h * s * d, d, h * d]}.get(said, said) if isinstance(said, str) else said


def looked_at(memory, offset, dims, steps):
    flat = np.ascontiguousarray(memory).reshape(-1)
    at = np.full(dims, offset)
    for k, (n, step) in enumerate(zip(dims, steps)):
        at += np.arange(n).reshape([-1] + [1] * (len(dims) - k - 1)) * step
    return flat[at]


def views_are_true(ops, found):
    """Whether each tensor that the dataflow has as strides over another one is that."""
    rows = ops["graph"]["tensors"]
    return all(np.array_equal(looked_at(found[rows[row[8]][0]], row[9], row[3], row[10]), found[row[0]]) for row in rows if len(row) > 9)


def attention(entry, q, k, v):
    group = entry["shape"][1] // entry["kv_heads"]
    k, v = (np.repeat(x, group, axis=1) for x in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * SCALE
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def true(ops, entry, index, found):
    """Whether the record's strides, over the memory that the dataflow names, give what the model makes."""
    rows = ops["graph"]["tensors"]
    b, h, s, d = entry["shape"]
    for op, _, _, _, _, makes, operands in ops["graph"]["occurrences"]:
        if op != index:
            continue
        if min(operands) < 0:
            return False
        memory = []
        for r in operands[:3]:
            source = rows[r][8] if len(rows[r]) > 8 and rows[r][4] < 0 else r
            memory.append((found[rows[source][0]], rows[r][9] if len(rows[r]) > 9 and source != r else 0))
        wanted = np.ascontiguousarray(found[rows[makes[0]][0]]).reshape(-1)
        kv = [b, entry["kv_heads"], entry["kv_len"], d]
        try:
            views = [looked_at(m, at, [b, h, s, d] if side == "q" else kv, [*strides(entry, side), 1]) for side, (m, at) in zip("qkv", memory)]
        except IndexError:
            return False
        got = np.full(wanted.shape, np.nan, np.float32)
        at = looked_at(np.arange(wanted.size), 0, [b, h, s, d], [*strides(entry, "out"), 1])
        got[at] = attention(entry, *views)
        if not np.allclose(got, wanted, rtol=1e-4, atol=1e-5):
            return False
    return True


def judge(tally, name, g):
    """The single attention of the model, of which all that is said of strides is true; None: there is none."""
    found = Found(g)
    entries = found.of("attention")
    if not tally.check(len(entries) == 1, f"layouts, {name}: no single attention in {found.left()}"):
        return None, found
    ops, made_values = found.run.ops, values(g)
    tally.check(true(ops, entries[0], ops["ops"].index(entries[0]), made_values), f"layouts, {name}: by its strides it is another attention")
    tally.check(views_are_true(ops, made_values), f"layouts, {name}: a tensor is not what its strides say")
    return entries[0], found


# ---- any moves in any order ----

def random_operand(g, r, sizes):
    """[B, H, L, D] of a tensor whose dimensions lie in any order, with others around them, some of them merged."""
    axes = r.sample("bhl", 3) + ["d"] if r.random() < 0.7 else r.sample("bhld", 4)
    whole, cut = dict(sizes), None
    if r.random() < 0.4:
        cut, step, start = r.choice(axes), r.choice([1, 1, 2]), r.randrange(5)
        whole[cut] = start + sizes[cut] * step + r.randrange(3)
    if r.random() < 0.4:
        axes.insert(r.randrange(5), "x")
        whole["x"] = r.randrange(2, 4)
    shape = [whole[a] for a in axes]
    at = r.randrange(len(shape) - 1)
    merged = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2:]] if r.random() < 0.7 else shape
    t = g.reshape(made(g, *merged), *shape)

    def pick(t):
        k, n = axes.index("x"), r.randrange(whole["x"])
        axes.remove("x")
        return r.choice([lambda: g.Gather(t, g.const(np.array(n, dtype=np.int64)), axis=k),
                         lambda: g.Squeeze(g.Split(t, outputs=whole["x"], axis=k, num_outputs=whole["x"])[n], g.ints(k)),
                         lambda: g.Squeeze(g.slice(t, n, n + 1, k), g.ints(k))])()

    if "x" in axes and r.random() < 0.5:
        t = pick(t)
    if cut:
        t = g.slice(t, start, start + (sizes[cut] - 1) * step + 1, axes.index(cut), step)
    if r.random() < 0.3:
        turned = r.sample(range(len(axes)), len(axes))
        t, axes = g.Transpose(t, perm=turned), [axes[k] for k in turned]
    if "x" in axes:
        t = pick(t)
    return t if axes == list("bhld") else g.Transpose(t, perm=[axes.index(a) for a in "bhld"])


def random_model(seed):
    r = random.Random(seed)
    merged = r.random() < 0.4
    g = graph(3 if merged else 4)
    b, h, rows, d = r.choice([(2, 3, 5, 8), (1, 2, 4, 8), (2, 2, 2, 2), (3, 1, 4, 4), (2, 4, 1, 8), (1, 1, 1, 4)])
    keys = r.choice([rows, 7])
    q, k, v = (random_operand(g, r, {"b": b, "h": h, "l": n, "d": d}) for n in (rows, keys, keys))
    if r.random() < 0.2:
        v = k
    o = attend(g, *((g.reshape(t, b * h, n, d) for t, n in ((q, rows), (k, keys), (v, keys))) if merged else (q, k, v)))
    if merged:
        o = g.reshape(o, b, h, rows, d)
    if r.random() < 0.8:
        o = g.Transpose(o, perm=r.choice([[0, 2, 1, 3], r.sample(range(4), 4)]))
    return end(g, o, *([k] if r.random() < 0.1 else []))


def check(tally):
    for name, (make, fields, moves) in MODELS.items():
        entry, found = judge(tally, name, make())
        if not entry:
            continue
        said = {x: entry[x] for x in ("layout", "q_layout", "k_layout", "v_layout", "out_layout") if x in entry}
        tally.check(said == fields, f"layouts, {name}: {said}, should be {fields}")
        left = sum(o["count"] for o in found.of("move") if o.get("what") not in ("view", "folded"))
        tally.check(left == moves, f"layouts, {name}: {left} moves stay, should be {moves}: {found.left()}")
    for seed in range(RANDOM_MODELS):
        judge(tally, f"random {seed}", random_model(seed))
