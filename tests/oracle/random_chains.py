"""Chains behind dimensions that depend on data: sizes are taken of what only data decides, reckoned with, and given to the
operators whose shapes follow from values."""

import numpy as np

from random_graph import Graph, Refused
from random_nodes import (F32, I64, MAKERS, SIMPLE, axis, body_of, chance, fits, fresh, grow, last_of, numbers, one, random_shape,
                          rank, shape, some)

SOURCES, NUMBERS, USES = {}, {}, {}


def maker(table, *operators):
    def note(function):
        for operator in " ".join(operators).split():
            table[operator] = function
        return function
    return note


def data(g, shape_, kind=F32):
    """Truth and integers are now and then all or almost all 0, or none is: a count then is the least or the most."""
    value = numbers(g, shape_, kind)
    if kind in (I64, np.bool_) and chance(g, 0.6):
        value = (value if kind == I64 else np.ones_like(value)) * (g.rng.random(value.shape) < one(g, [0, 0.1, 0.9, 1]))
    return g.input(value.astype(kind))


def small(g, low, high):
    return g.constant(I64(some(g, low, high)))


# ---- what only data decides ----

@maker(SOURCES, "NonZero")
def nonzero(g, op):
    return g.add(op, [data(g, random_shape(g, some(g, 1, 3)), one(g, [I64, np.bool_]))], data=True)


@maker(SOURCES, "Compress")
def compress(g, op):
    x = data(g, random_shape(g, some(g, 1, 3)))
    along = {"axis": axis(g, x)} if chance(g, 0.8) else {}
    size = shape(g, x)[along["axis"]] if along else g.values[x].size
    return g.add(op, [x, data(g, [size], np.bool_)], data=True, **along)


@maker(SOURCES, "Unique")
def unique(g, op):
    x = data(g, [some(g, 1, 5) for _ in range(some(g, 1, 3))], I64)
    return one(g, g.add(op, [x], 4, data=True, **({"axis": axis(g, x)} if chance(g, 0.5) else {})))


@maker(SOURCES, "TopK")
def top_k(g, op):
    x = data(g, [some(g, 1, 6) for _ in range(some(g, 1, 3))])
    at = axis(g, x)
    k = g.input(np.asarray([some(g, 0, shape(g, x)[at])], I64))
    return one(g, g.add(op, [x, k], 2, data=True, axis=at))


@maker(SOURCES, "NonMaxSuppression")
def nms(g, op):
    b, n, k = some(g, 1, 2), some(g, 1, 6), some(g, 1, 2)
    boxes = np.sort(g.rng.random([b, n, 4]).astype(F32), -1)
    return g.add(op, [g.input(boxes), data(g, [b, k, n]), small(g, 0, 4)], data=True)


@maker(SOURCES, "Slice")
def slice_to(g, op):
    x = data(g, random_shape(g, some(g, 1, 3)))
    return g.add(op, [x, g.constant(np.zeros([1], I64)), g.input(np.asarray([some(g, -2, 6)], I64)),
                      g.constant(np.asarray([axis(g, x)], I64))], data=True)


@maker(SOURCES, "If")
def branches(g, op):
    bodies, results = [], []
    for _ in range(2):
        body = Graph(g.rng, g.opset, g)
        results.append(body.add("Identity", [fresh(body, random_shape(g, 2))]))
        bodies.append(body)
    return g.add(op, [g.input(np.asarray(chance(g, 0.5)))], data=True, then_branch=body_of(bodies[0], [], results[:1], "then"),
                 else_branch=body_of(bodies[1], [], results[1:], "else"))


# ---- reckoning with sizes ----

def latest(g, good):
    return one(g, [n for n in g.values if n in g.by_data and isinstance(g.values[n], np.ndarray) and good(g.values[n])]
               [-1 if chance(g, 0.4) else -6:])


def tensor(g, low=0, high=5):
    return latest(g, lambda v: low <= v.ndim <= high and v.dtype in (F32, I64))


def is_number(v):
    return fits(v, I64, 0, 1) and 0 < v.size < 6 and np.all(np.abs(v) < 1000)


def number(g):
    """An integer, or a few, that follow from a size."""
    return latest(g, is_number)


def single(g):
    return latest(g, lambda v: is_number(v) and v.size == 1)


def line(g, n):
    return n if rank(g, n) == 1 else g.add("Reshape", [n, g.constant(np.asarray([-1], I64))])


def scalar(g, n):
    return n if rank(g, n) == 0 else g.add("Reshape", [n, g.constant(np.zeros([0], I64))])


def other(g, n):
    return small(g, -3, 12) if chance(g, 0.7) else single(g)


@maker(NUMBERS, "Shape")
def shape_of(g, op):
    g.add(op, [tensor(g)])


@maker(NUMBERS, "Size")
def size_of(g, op):
    g.add(op, [tensor(g)])


@maker(NUMBERS, "Gather")
def pick(g, op):
    s = g.add("Shape", [tensor(g, 1)])
    g.add(op, [s, small(g, -1, g.values[s].size - 1)])


@maker(NUMBERS, "Table")
def table(g, op):
    g.add("Gather", [fresh(g, [8], I64) if chance(g, 0.3) else g.constant(numbers(g, [8], I64)), number(g)])


@maker(NUMBERS, "Add Sub Mul Div Mod Min Max Pow BitwiseAnd BitwiseOr BitwiseXor")
def binary(g, op):
    n = number(g)
    pair = [n, other(g, n)]
    values = [g.values[p] for p in pair]
    if op in ("Div", "Mod") and (np.any(values[0] == 0) or np.any(values[1] == 0)):
        raise Refused("a division by 0 ends onnxruntime")
    if op == "Pow" and np.any(np.abs(np.stack(np.broadcast_arrays(*values))) > 6):
        raise Refused("too large")
    g.add(op, pair if chance(g, 0.6) else pair[::-1])


@maker(NUMBERS, "Abs Neg Sign Identity")
def unary(g, op):
    g.add(op, [number(g)])


@maker(NUMBERS, "Clip")
def clip(g, op):
    g.add(op, [number(g), small(g, 0, 2), small(g, 2, 5)])


@maker(NUMBERS, "Equal Less Greater LessOrEqual GreaterOrEqual")
def compare(g, op):
    n = number(g)
    test = g.add(op, [n, other(g, n)] if chance(g, 0.6) else [other(g, n), n])
    if chance(g, 0.3):
        test = g.add("Not", [test])
    if chance(g, 0.4):
        g.add("Cast", [test], to=7)
    else:
        g.add("Where", [test, small(g, 0, 6), other(g, n)])


@maker(NUMBERS, "Cast")
def cast(g, op):
    kinds = [1, 6, 7, 9, 10, 11, 2, 3]  # float, int32, int64, bool, float16, double, uint8, int8
    real = g.add(op, [number(g)], to=one(g, kinds))
    if g.values[real].dtype == F32 and chance(g, 0.7):
        real = g.add(one(g, ["Sqrt", "Floor", "Ceil", "Neg", "Sin", "Reciprocal", "Abs"]), [real])
        if chance(g, 0.6):
            real = g.add(one(g, ["Mul", "Div", "Sub"]), [real, g.constant(F32(one(g, [-1, 0.3, 0.5, 2, 3])))])
        if not np.all(np.isfinite(g.values[real])):
            raise Refused("no number")
    g.add(op, [real], to=7)


@maker(NUMBERS, "ReduceProd ReduceSum ReduceMax ReduceMin ReduceMean ReduceL1 ArgMax")
def reduce(g, op):
    g.add(op, [line(g, number(g))], keepdims=some(g, 0, 1))


@maker(NUMBERS, "Concat")
def concat(g, op):
    g.add(op, [line(g, number(g)), line(g, other(g, None))][::one(g, [1, -1])], axis=0)


@maker(NUMBERS, "CumSum")
def running(g, op):
    g.add(op, [line(g, number(g)), g.constant(I64(0))])


@maker(NUMBERS, "Values")
def values_of(g, op):
    """Values of another kind than sizes: positions, of which no more is known than that they are data."""
    n = g.add("NonZero", [line(g, number(g))], data=True)
    g.add("Shape", [n])


# ---- operators whose shapes follow from values ----

@maker(USES, "ConstantOfShape")
def constant_of_shape(g, op):
    g.add(op, [line(g, number(g))])


@maker(USES, "Expand")
def expand(g, op):
    x = tensor(g, 0, 3) if chance(g, 0.5) else fresh(g, [1] * some(g, 1, 2))
    g.add(op, [x, line(g, number(g))])


@maker(USES, "Tile")
def tile(g, op):
    n = line(g, number(g))
    r = g.values[n].size
    x = tensor(g, r, r) if chance(g, 0.5) else fresh(g, random_shape(g, r))
    g.add(op, [x, n])


@maker(USES, "Range")
def range_of(g, op):
    parts = [g.constant(I64(some(g, -2, 3))), scalar(g, single(g)), g.constant(I64(one(g, [1, 1, 2, -1])))]
    if chance(g, 0.5):
        parts = [parts[k] for k in g.rng.permutation(3)]
    if g.values[parts[2]] == 0:
        raise Refused("counts in steps of 0")
    g.add(op, parts)


@maker(USES, "OneHot")
def one_hot(g, op):
    g.add(op, [fresh(g, [3], I64) if chance(g, 0.6) else number(g), scalar(g, single(g)), g.constant(np.asarray([0, 1], F32))])


@maker(USES, "Pad")
def pad(g, op):
    n = line(g, number(g))
    if g.values[n].size % 2:
        n = g.add("Concat", [n, line(g, small(g, -1, 2))], axis=0)
    r = g.values[n].size // 2
    g.add(op, [tensor(g, r, r) if chance(g, 0.5) else fresh(g, random_shape(g, r)), n])


@maker(USES, "Reshape")
def reshape(g, op):
    if chance(g, 0.5):
        x = tensor(g, 1, 4)
        at = g.add("Gather", [g.add("Shape", [x]), g.constant(np.asarray([some(g, 0, rank(g, x) - 1)], I64))])
    else:
        x, at = tensor(g, 1, 4) if chance(g, 0.5) else fresh(g, random_shape(g, 3)), line(g, number(g))
    parts = [at, line(g, g.constant(I64(one(g, [-1, -1, 1, 2]))))]
    g.add(op, [x, g.add("Concat", parts[::one(g, [1, -1])], axis=0)])


@maker(USES, "Slice")
def slice_of(g, op):
    x = tensor(g, 1, 4) if chance(g, 0.8) else fresh(g, random_shape(g, 3))
    ends = [line(g, single(g) if chance(g, 0.3) else small(g, -5, 5)) for _ in range(2)]
    g.add(op, [x, *ends, g.constant(np.asarray([axis(g, x)], I64)), g.constant(np.asarray([one(g, [1, 1, 2, -1, -2])], I64))])


@maker(USES, "Split")
def split(g, op):
    x, count = tensor(g, 1, 4), some(g, 1, 4)
    g.add(op, [x], count, axis=axis(g, x), **({"num_outputs": count} if g.opset >= 18 else {}))


@maker(USES, "SplitSizes")
def split_sizes(g, op):
    x = tensor(g, 1, 4)
    at = axis(g, x)
    first = some(g, 0, shape(g, x)[at])
    sizes = g.constant(np.asarray([first, shape(g, x)[at] - first], I64))
    g.add("Split", [x, sizes], 2, axis=at)


@maker(USES, "Resize")
def resize(g, op):
    x = latest(g, lambda v: v.dtype == F32 and v.ndim > 0 and 0 not in v.shape)
    r = rank(g, x)
    options = {"keep_aspect_ratio_policy": one(g, ["not_larger", "not_smaller", "stretch"])} if g.opset >= 18 else {}
    if chance(g, 0.4):
        g.add(op, [x, "", g.constant(np.asarray([one(g, [1, 0.5, 1.5]) for _ in range(r)], F32))], mode="nearest")
        return
    n = line(g, single(g))
    sizes = [n] + [line(g, small(g, 1, 5)) for _ in range(r - 1)]
    g.add(op, [x, "", "", g.add("Concat", sizes, axis=0)], mode="nearest", **options)


@maker(USES, "CenterCropPad")
def center(g, op):
    x, n = tensor(g, 1, 4), line(g, single(g))
    if np.any(g.values[n] < 0):
        raise Refused("onnxruntime runs it")
    g.add(op, [x, n], axes=[axis(g, x)])


@maker(USES, "TopK")
def top_of(g, op):
    x = latest(g, lambda v: v.dtype == F32 and v.ndim > 0)
    g.add(op, [x, line(g, single(g) if chance(g, 0.6) else small(g, 0, 3))], 2, axis=axis(g, x))


@maker(USES, "Squeeze")
def squeeze(g, op):
    g.add(op, [tensor(g)])


@maker(USES, "SqueezeAxes")
def squeeze_axes(g, op):
    x = tensor(g, 1)
    axes = [k for k, d in enumerate(shape(g, x)) if d == 1]
    g.add("Squeeze", [x, g.constant(np.asarray([one(g, axes)], I64))])


@maker(USES, "GatherND")
def gather_nd(g, op):
    x = latest(g, lambda v: fits(v, I64, 1, 3) and v.shape[-1] > 0)
    g.add(op, [fresh(g, [9] * max(1, min(3, shape(g, x)[-1]))), x])


@maker(USES, "If")
def choose(g, op):
    bodies, results = [], []
    for _ in range(2):
        body = Graph(g.rng, g.opset, g)
        body.add("Identity", [tensor(body, 0, 3)])
        grow(body, some(g, 0, 2), SIMPLE)
        results.append(last_of(body, one(g, [F32, I64])))
        bodies.append(body)
    n = single(g)
    g.add(op, [scalar(g, g.add("Less", [n, other(g, n)]))], data=True, then_branch=body_of(bodies[0], [], results[:1], "then"),
          else_branch=body_of(bodies[1], [], results[1:], "else"))


@maker(USES, "Loop")
def loop(g, op):
    x = latest(g, lambda v: fits(v, F32, 1, 3))
    body = Graph(g.rng, g.opset, g)
    i, go, carried = body.name(), body.name(), body.name()
    body.values.update({i: np.asarray(0, I64), go: np.asarray(True), carried: g.values[x]})
    body.by_data.add(carried)
    grow(body, some(g, 0, 2), SIMPLE)
    keeps = chance(g, 0.6)
    after = body.add("Abs", [carried]) if keeps else body.add("Concat", [carried, carried], axis=0)
    limit = small(g, 0, 3) if chance(g, 0.5) else scalar(g, single(g))
    if g.values[limit] > 6:
        raise Refused("what doubles so often takes too long")
    # Of a scan that has no iterations onnxruntime knows no more than what is stated; of one without elements it does not see
    # that they change their shape.
    scanned = body.add("Identity", [carried if keeps and g.values[limit] > 0 else i])
    result = body.add("Identity", [go])
    inner = body_of(body, [i, go, carried], [result, after, scanned], "loop")
    g.add(op, [limit, g.constant(np.asarray(True)), x], 2, data=True, body=inner)


@maker(USES, "Scan")
def scan(g, op):
    x = latest(g, lambda v: fits(v, F32, 2, 3) and len(v))
    state = g.add("ReduceSum", [x, g.constant(np.asarray([0], I64))], keepdims=0)
    body = Graph(g.rng, g.opset, g)
    s, part = body.name(), body.name()
    body.values.update({s: g.values[state], part: g.values[x][0]})
    body.by_data.update([s, part])
    after = body.add("Add", [s, part])
    g.add(op, [state, x], 2, num_scan_inputs=1, body=body_of(body, [s, part], [after, body.add("Abs", [part])], "scan"))


@maker(USES, "Sequence")
def sequence(g, op):
    x = tensor(g, 1, 3)
    if chance(g, 0.5):
        s = g.add("SequenceConstruct", [x, tensor(g, 1, 3)])
    else:
        s = g.add("SplitToSequence", [x, small(g, 1, 3) if chance(g, 0.7) else scalar(g, single(g))], axis=axis(g, x))
    if chance(g, 0.3):
        s = g.add("SequenceInsert", [s, tensor(g, 1, 3), *([g.input(I64(0))] if chance(g, 0.5) else [])])
    g.add("SequenceLength", [s])
    if chance(g, 0.5):
        if any(0 in part.shape for part in g.values[s]):
            raise Refused("onnxruntime dies of it")
        g.add("ConcatFromSequence", [s], axis=0, new_axis=some(g, 0, 1))
    else:
        g.add("SequenceAt", [s, one(g, [small(g, -1, 0), g.input(I64(0))])])


@maker(USES, "Conv")
def conv(g, op):
    x = latest(g, lambda v: fits(v, F32, 3, 4) and 0 not in v.shape)
    kernel = latest(g, lambda v: fits(v, F32, rank(g, x), rank(g, x))) if chance(g, 0.2) else \
        fresh(g, [2, shape(g, x)[1]] + [some(g, 1, 2)] * (rank(g, x) - 2))
    g.add(op, [x, kernel], strides=[some(g, 1, 2)] * (rank(g, x) - 2))


@maker(USES, "MatMul")
def product(g, op):
    x = latest(g, lambda v: fits(v, F32, 2, 3))
    g.add(op, [x, fresh(g, [shape(g, x)[-1], 3])] if chance(g, 0.5) else [fresh(g, [3, shape(g, x)[-2]]), x])


@maker(USES, "Where")
def where(g, op):
    x = tensor(g, 1, 3)
    test = g.add("Less", [x, x])
    g.add(op, [test, x, x])


# ---- every count of a few that go astray where only the largest is looked at ----

MOST = 6


class Counted:
    """n of MOST numbers are not 0: `found` tells where, `n` is the [1] of how many; short words for what is done with them."""

    def __init__(self, g, n):
        self.g = g
        self.found = g.add("NonZero", [g.input(np.arange(MOST) < n)], data=True)
        self.n = g.add("Gather", [g.add("Shape", [self.found]), self.c(1)])
        self.x = fresh(g, [10])

    def c(self, *values):
        return self.g.constant(np.asarray(values, I64))

    def of(self, op, *inputs, **attributes):
        return self.g.add(op, list(inputs), **attributes)

    def dim(self, n):
        return self.of("ConstantOfShape", n)

    def run(self, start, limit, delta):
        return self.of("Range", *[self.of("Squeeze", v) for v in (start, limit, delta)])

    def cut(self, x, start, end, step=1):
        """Along the last axis."""
        return self.of("Slice", x, start, end, self.c(-1), self.c(step))

    def row(self):
        return self.of("Reshape", self.found, self.c(-1))

    def either(self, test, yes, no):
        return self.dim(self.of("Where", test, yes, no))

    def cast(self, x, to):
        return self.of("Cast", x, to=to)

    def loop(self, trips):
        body = Graph(self.g.rng, self.g.opset, self.g)
        i, go = body.name(), body.name()
        body.values.update({i: np.asarray(0, I64), go: np.asarray(True)})
        inner = body_of(body, [i, go], [body.add("Identity", [go]), body.add("Identity", [i])], "loop")
        return self.g.add("Loop", [self.of("Squeeze", trips), ""], data=True, body=inner)


def by_number(op):
    return [lambda c: c.dim(c.of(op, c.n, c.c(4))), lambda c: c.dim(c.of(op, c.c(7), c.n)),
            lambda c: c.dim(c.of(op, c.n, c.of("Sub", c.c(MOST), c.n))), lambda c: c.dim(c.of(op, c.n, c.n))]


def by_test(op):
    return [lambda c: c.either(c.of(op, c.n, c.c(3)), c.c(8), c.n), lambda c: c.either(c.of(op, c.c(3), c.n), c.c(1), c.c(9)),
            lambda c: c.dim(c.cast(c.of("Not", c.of(op, c.n, c.c(2))), 7))]


def by_cut(start, end, step=1):
    return lambda c: c.cut(c.found, c.c(start), c.c(end), step)


FAR = 2**62
DIRECTED = [case for op in "Add Sub Mul Div Mod Min Max Pow".split() for case in by_number(op)] + [
    case for op in "Equal Less Greater LessOrEqual GreaterOrEqual".split() for case in by_test(op)] + [
    by_cut(*ends) for ends in ((-3, FAR), (0, -3), (-4, 2), (-2, 5), (2, -1), (1, 4), (3, 1), (-5, -2), (0, FAR, 2), (-1, -FAR, -1),
                               (4, -FAR, -1), (-2, 1, -1), (4, -3, -1), (-4, 3, 2), (5, 0, -2), (1, FAR, 3))] + [
    lambda c: c.dim(c.of("Abs", c.of("Sub", c.n, c.c(3)))),
    lambda c: c.dim(c.of("Neg", c.of("Sub", c.n, c.c(8)))),
    lambda c: c.dim(c.of("Pow", c.of("Sub", c.n, c.c(3)), c.c(2))),
    lambda c: c.dim(c.of("Clip", c.n, c.g.constant(I64(2)), c.g.constant(I64(4)))),
    lambda c: c.dim(c.of("Mul", c.of("Sub", c.n, c.c(2)), c.of("Sub", c.n, c.c(4)))),
    lambda c: c.dim(c.of("Sub", c.n, c.of("Transpose", c.n))),
    lambda c: c.dim(c.of("Gather", c.c(5, 1, 9, 2, 8, 3, 7), c.n)),
    lambda c: c.dim(c.cast(c.cast(c.of("Mul", c.n, c.c(100)), 2), 7)),
    lambda c: c.dim(c.cast(c.cast(c.of("Sub", c.n, c.c(3)), 9), 7)),
    lambda c: c.dim(c.cast(c.of("Sqrt", c.cast(c.n, 1)), 7)),
    lambda c: c.dim(c.cast(c.of("Div", c.g.constant(np.asarray([9], F32)), c.of("Add", c.cast(c.n, 1), c.g.constant(F32(1)))), 7)),
    lambda c: c.dim(c.of("ReduceProd", c.of("Concat", c.n, c.of("Sub", c.c(MOST), c.n), axis=0))),
    lambda c: c.dim(c.of("ReduceProd", c.of("Concat", c.of("Sub", c.n, c.c(5)), c.of("Sub", c.n, c.c(5)), axis=0))),
    lambda c: c.dim(c.of("CumSum", c.n, c.g.constant(I64(0)))),
    lambda c: c.of("NonZero", c.of("Sub", c.n, c.c(3))),
    lambda c: c.of("NonZero", c.dim(c.n)),
    lambda c: c.run(c.c(0), c.n, c.c(1)),
    lambda c: c.run(c.n, c.c(9), c.c(2)),
    lambda c: c.run(c.c(9), c.n, c.c(-1)),
    lambda c: c.run(c.c(0), c.c(10), c.of("Max", c.n, c.c(1))),
    lambda c: c.run(c.c(0), c.c(-5), c.of("Sub", c.n, c.c(7))),
    lambda c: c.run(c.c(0), c.c(8), c.of("Sub", c.of("Mul", c.n, c.c(2)), c.c(5))),
    lambda c: c.of("Tile", c.x, c.of("Sub", c.c(7), c.n)),
    lambda c: c.of("Tile", c.row(), c.of("Sub", c.c(7), c.n)),
    lambda c: c.of("OneHot", c.c(1, 2), c.of("Squeeze", c.of("Sub", c.c(7), c.n)), c.c(0, 1)),
    lambda c: c.of("Pad", c.x, c.of("Concat", c.n, c.c(1), axis=0)),
    lambda c: c.of("Pad", c.x, c.of("Concat", c.of("Neg", c.n), c.c(-1), axis=0)),
    lambda c: c.of("Pad", c.row(), c.of("Concat", c.of("Neg", c.n), c.n, axis=0)),
    lambda c: c.of("Expand", c.g.constant(np.ones([1], F32)), c.of("Sub", c.c(7), c.n)),
    lambda c: c.of("Expand", c.x, c.of("Concat", c.of("Sub", c.c(7), c.n), c.c(1), axis=0)),
    lambda c: c.of("Resize", c.x, "", "", c.of("Sub", c.c(7), c.n), mode="nearest"),
    lambda c: c.of("Resize", c.cast(c.found, 1), "", c.g.constant(np.asarray([1, 1.5], F32)), mode="nearest"),
    lambda c: c.of("Resize", c.cast(c.of("Tile", c.found, c.c(3, 1)), 1), "", "", c.c(4, 2), mode="nearest",
                   keep_aspect_ratio_policy="not_larger"),
    lambda c: c.of("Resize", c.cast(c.of("Tile", c.found, c.c(3, 1)), 1), "", "", c.c(4, 2), mode="nearest",
                   keep_aspect_ratio_policy="not_smaller"),
    *[lambda c, parts=parts: c.of("Split", c.found, outputs=parts, axis=1, **({"num_outputs": parts} if c.g.opset >= 18 else {}))
      for parts in (1, 2, 3, 4, 5)],
    lambda c: c.of("Split", c.found, c.c(1, 2), outputs=2, axis=1),
    lambda c: c.of("Split", c.x, c.of("Concat", c.n, c.of("Sub", c.c(10), c.n), axis=0), outputs=2),
    lambda c: c.cut(c.x, c.n, c.c(FAR)),
    lambda c: c.cut(c.x, c.of("Neg", c.n), c.c(FAR)),
    lambda c: c.cut(c.x, c.c(0), c.n),
    lambda c: c.cut(c.x, c.c(0), c.of("Neg", c.n)),
    lambda c: c.cut(c.x, c.c(0), c.of("Sub", c.n, c.c(3))),
    lambda c: c.cut(c.x, c.n, c.of("Mul", c.n, c.c(2))),
    lambda c: c.cut(c.x, c.c(9), c.n, -1),
    lambda c: c.cut(c.row(), c.of("Sub", c.n, c.c(2)), c.n),
    lambda c: c.of("Squeeze", c.found),
    lambda c: c.of("Squeeze", c.cut(c.found, c.c(0), c.c(1))),
    lambda c: c.of("Squeeze", c.found, c.c(1)),
    lambda c: c.of("Reshape", c.found, c.of("Concat", c.n, c.c(-1), axis=0)),
    lambda c: c.of("Reshape", c.found, c.of("Concat", c.c(-1), c.n, axis=0)),
    lambda c: c.of("Reshape", fresh(c.g, [MOST, 10]), c.of("Concat", c.n, c.c(-1), axis=0)),
    lambda c: c.of("Reshape", fresh(c.g, [10, 0]), c.of("Concat", c.n, c.c(5), axis=0)),
    lambda c: c.of("Reshape", fresh(c.g, [4, 6]), c.of("Concat", c.of("Add", c.n, c.c(1)), c.c(-1), axis=0)),
    lambda c: c.of("Reshape", c.of("Tile", c.found, c.c(3, 2)), c.of("Concat", c.n, c.c(-1, 2), axis=0)),
    lambda c: c.of("Reshape", c.of("Tile", c.found, c.c(2, 2)), c.of("Concat", c.n, c.n, c.c(-1), axis=0)),
    lambda c: c.of("Reshape", c.of("Tile", c.of("Transpose", c.found), c.c(1, MOST)), c.of("Concat", c.c(-1), c.n, axis=0)),
    lambda c: c.of("Reshape", c.of("Expand", c.found, c.c(MOST, 1, 1)), c.of("Concat", c.n, c.c(-1), axis=0)),
    lambda c: c.of("TopK", c.x, c.of("Sub", c.c(9), c.n), outputs=2),
    lambda c: c.of("TopK", c.cast(c.found, 1), c.of("Min", c.n, c.c(3)), outputs=2),
    lambda c: c.of("Conv", fresh(c.g, [1, 1, 9]), c.of("Reshape", c.cast(c.found, 1), c.c(1, 1, -1))),
    lambda c: c.of("Conv", c.of("Reshape", c.cast(c.found, 1), c.c(1, 1, -1)), fresh(c.g, [2, 1, 2])),
    lambda c: c.of("GatherND", fresh(c.g, [7] * 5), c.found),
    lambda c: c.of("GatherND", c.x, c.of("Transpose", c.found)),
    lambda c: c.of("CenterCropPad", c.x, c.of("Sub", c.c(9), c.n), axes=[0]),
    lambda c: c.of("ConcatFromSequence", c.of("SplitToSequence", c.of("Concat", c.found, c.of("Reshape", c.n, c.c(1, 1)), axis=1),
                                               c.g.constant(I64(2)), axis=1), axis=1),
    lambda c: c.of("SequenceAt", c.of("SplitToSequence", c.of("Concat", c.found, c.of("Reshape", c.n, c.c(1, 1)), axis=1),
                                      c.g.constant(I64(2)), axis=1), c.g.constant(I64(-1))),
    lambda c: c.loop(c.n),
    lambda c: c.loop(c.of("Sub", c.c(MOST), c.n)),
    lambda c: c.of("MatMul", c.cast(c.found, 1), c.cast(c.of("Transpose", c.found), 1)),
    lambda c: c.of("Add", c.found, c.c(1, 2, 3)),
    lambda c: c.of("Add", c.found, c.of("Transpose", c.found)),
    lambda c: c.of("ReduceMax", c.of("Concat", c.found, c.of("Reshape", c.n, c.c(1, 1)), axis=1), keepdims=0),
    lambda c: c.of("EyeLike", c.found),
    lambda c: c.of("Flatten", c.of("Tile", c.found, c.c(2, 3)), axis=2),
]


def directed(g, k):
    """The k-th of those, or False where there are no more."""
    if k >= len(DIRECTED) * (MOST + 1):
        return False
    g.opset = 13 if g.opset < 13 else max(18, g.opset)
    try:
        DIRECTED[k // (MOST + 1)](Counted(g, k % (MOST + 1)))
    except Refused:
        pass
    return True


# ---- the chain ----

PLAIN = [o for o in MAKERS if o in ("Abs Transpose Flatten Unsqueeze Concat ReduceSum ReduceMax Softmax Gather MaxPool Mul Add Sub "
                                    "Cast CumSum ArgMax Pad Tile Trilu Reshape Expand Slice GlobalMaxPool Einsum Gemm Compress "
                                    "LayerNormalization InstanceNormalization DepthToSpace OneHot EyeLike Resize").split()]


def chain(g, count):
    """Adds about `count` nodes behind data."""
    made = {name: USES[name] for name in ("ConstantOfShape", "Expand", "Tile", "Range")}
    rounds = [[SOURCES], [NUMBERS, NUMBERS, made], [NUMBERS, NUMBERS, NUMBERS, made], [NUMBERS, USES, USES], [MAKERS, MAKERS, USES]]
    for attempt in range(2 * count):
        if len(g.nodes) >= count:
            return
        for table_ in rounds[0] if attempt == 0 else one(g, rounds):
            operator = one(g, PLAIN if table_ is MAKERS else table_)
            try:
                table_[operator](g, operator)
            except Refused:
                pass
