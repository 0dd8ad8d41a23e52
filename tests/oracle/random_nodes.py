"""How a random node of each operator is made: a function by name takes a Graph and adds one, or raises Refused. What values a
node gets is left to chance, and to what the graph already has."""

import numpy as np
from onnx import TensorProto, helper

from random_graph import LOCAL, Graph, Refused, free_names, value_info

F32, I64 = np.float32, np.int64
MAKERS = {}  # operator -> function(graph, operator)


def maker(*operators):
    def note(function):
        for operator in " ".join(operators).split():
            MAKERS[operator] = function
        return function
    return note


# ---- choosing ----

def chance(g, of):
    return g.rng.random() < of


def some(g, low, high):
    return int(g.rng.integers(low, high + 1))


def one(g, things):
    things = list(things)
    if not things:
        raise Refused("nothing to choose from")
    return things[some(g, 0, len(things) - 1)]


def fits(value, kind, low, high):
    return isinstance(value, np.ndarray) and value.dtype == kind and low <= value.ndim <= high


def random_shape(g, rank):
    return [some(g, 1, 6) if chance(g, 0.95) else 0 for _ in range(rank)]


def numbers(g, shape, kind=F32):
    if kind == np.bool_:
        return g.rng.random(shape) < 0.5
    if np.issubdtype(kind, np.integer):
        return g.rng.integers(-3 if np.issubdtype(kind, np.signedinteger) else 0, 7, shape).astype(kind)
    return g.rng.standard_normal(shape).astype(kind)


def fresh(g, shape, kind=F32):
    """A new constant or a new input."""
    value = numbers(g, shape, kind)
    return g.constant(value) if chance(g, 0.5) else g.input(value)


def tensor(g, low=0, high=5, kind=F32):
    """A tensor of this type and of a rank in [low, high]; one of the latest, where there is one."""
    there = [n for n, v in g.values.items() if fits(v, kind, low, high)]
    if there and chance(g, 0.85):
        return one(g, there[-6:] if chance(g, 0.7) else there)
    return fresh(g, random_shape(g, some(g, max(low, 1), max(low, min(high, 4)))), kind)


def any_tensor(g, low=0, high=5):
    return tensor(g, low, high, one(g, [F32, F32, F32, I64, np.bool_, np.int32, np.float64]))


def shape(g, name):
    return g.values[name].shape


def rank(g, name):
    return g.values[name].ndim


def axis(g, name):
    r = rank(g, name)
    return some(g, -r, r - 1) if r else 0


def ints(g, values):
    """Sizes as a constant, rarely as data."""
    value = np.asarray(values, I64)
    return g.input(value) if chance(g, 0.06) else g.constant(value)


def beside(g, name):
    """Something that broadcasts with a tensor."""
    value = g.values[name]
    there = [n for n, v in g.values.items() if fits(v, value.dtype, 0, 5) and n != name and broadcasts(v, value)]
    if there and chance(g, 0.6):
        return one(g, there[-5:])
    size = [1 if chance(g, 0.3) else d for d in value.shape][some(g, 0, value.ndim):]
    return fresh(g, size, value.dtype.type)


def broadcasts(a, b):
    try:
        np.broadcast_shapes(a.shape, b.shape)
        return True
    except ValueError:
        return False


# ---- elementwise ----

@maker("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish Identity IsInf "
       "IsNaN LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh "
       "ThresholdedRelu Gelu Swish")
def unary(g, op):
    g.add(op, [tensor(g)])


@maker("Hardmax Softmax LogSoftmax LpNormalization")
def along(g, op):
    x = tensor(g, 1)
    g.add(op, [x], axis=axis(g, x))


@maker("Not")
def invert(g, op):
    g.add(op, [tensor(g, kind=np.bool_)])


@maker("BitwiseNot")
def bits(g, op):
    g.add(op, [tensor(g, kind=I64)])


@maker("Dropout")
def dropout(g, op):
    g.add(op, [tensor(g)], some(g, 1, 2))


@maker("Clip")
def clip(g, op):
    x = tensor(g)
    g.add(op, [x, g.constant(F32(-1)), "" if chance(g, 0.3) else g.constant(F32(1))])


@maker("Add Sub Mul Div Pow PRelu")
def binary(g, op):
    x = tensor(g, kind=one(g, [F32, F32, I64]))
    y = g.constant(np.asarray(2, g.values[x].dtype)) if op in ("Div", "Pow") and g.values[x].dtype == I64 else beside(g, x)
    g.add(op, [x, y] if op == "PRelu" or chance(g, 0.5) else [y, x])


@maker("Mod")
def modulo(g, op):
    g.add(op, [tensor(g, kind=I64), g.constant(I64(some(g, 1, 4)))])


@maker("Equal Greater GreaterOrEqual Less LessOrEqual")
def compare(g, op):
    x = tensor(g, kind=one(g, [F32, I64]))
    g.add(op, [x, beside(g, x)])


@maker("And Or Xor")
def logic(g, op):
    x = tensor(g, kind=np.bool_)
    g.add(op, [x, beside(g, x)])


@maker("BitwiseAnd BitwiseOr BitwiseXor")
def bit_logic(g, op):
    x = tensor(g, kind=I64)
    g.add(op, [x, beside(g, x)])


@maker("BitShift")
def shift(g, op):
    x = fresh(g, random_shape(g, 2), np.uint8)
    g.add(op, [x, beside(g, x)], direction=one(g, ["LEFT", "RIGHT"]))


@maker("Sum Mean Max Min")
def variadic(g, op):
    x = tensor(g)
    g.add(op, [x] + [beside(g, x) for _ in range(some(g, 0, 2))])


@maker("Where")
def where(g, op):
    x = tensor(g)
    y = beside(g, x)
    size = np.broadcast_shapes(shape(g, x), shape(g, y))
    g.add(op, [fresh(g, [d if chance(g, 0.8) else 1 for d in size], np.bool_), x, y])


# ---- reductions ----

@maker("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare")
def reduce(g, op):
    x = tensor(g, 0, 5)
    r = rank(g, x)
    if 0 in shape(g, x):
        raise Refused("onnxruntime keeps a reduced axis of 0, where ONNX and numpy say 1")
    axes = [int(a) - (r if chance(g, 0.3) else 0) for a in g.rng.permutation(r)[:some(g, 0, r)]]
    options = {"keepdims": some(g, 0, 1)} if chance(g, 0.8) else {}
    if not axes:
        if chance(g, 0.3) and g.opset >= 18:
            options["noop_with_empty_axes"] = 1
        g.add(op, [x], **options)
    elif g.opset >= 18 or (op == "ReduceSum" and g.opset >= 13):
        given = ints(g, axes)
        g.add(op, [x, given], by=[given], **options)
    else:
        g.add(op, [x], axes=axes, **options)


@maker("ArgMax ArgMin")
def arg(g, op):
    x = tensor(g, 1)
    if 0 in shape(g, x):
        raise Refused("as of the other reductions")
    g.add(op, [x], axis=axis(g, x), keepdims=some(g, 0, 1))


@maker("CumSum CumProd")
def running(g, op):
    x = tensor(g, 1)
    g.add(op, [x, g.constant(np.int64(axis(g, x)))], exclusive=some(g, 0, 1), reverse=some(g, 0, 1))


# ---- moving ----

@maker("Cast")
def cast(g, op):
    g.add(op, [any_tensor(g)], to=one(g, [TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE,
                                         TensorProto.INT32, TensorProto.FLOAT16]))


@maker("CastLike")
def cast_like(g, op):
    g.add(op, [any_tensor(g), any_tensor(g)])


@maker("Concat")
def concat(g, op):
    x = any_tensor(g, 1)
    at, parts = axis(g, x), [x]
    for _ in range(some(g, 0, 2)):
        size = list(shape(g, x))
        size[at] = some(g, 0, 4)
        parts.append(x if chance(g, 0.3) else fresh(g, size, g.values[x].dtype.type))
    g.add(op, parts, axis=at)


@maker("Expand")
def expand(g, op):
    x = any_tensor(g, 0, 4)
    size = [some(g, 1, 4) if d == 1 and chance(g, 0.7) else d if chance(g, 0.7) else 1 for d in shape(g, x)]
    to = ints(g, [some(g, 1, 3)] * some(g, 0, 1) + size)
    g.add(op, [x, to], by=[to])


@maker("Flatten")
def flatten(g, op):
    x = any_tensor(g, 0)
    g.add(op, [x], axis=some(g, -rank(g, x), rank(g, x)))


@maker("Gather")
def gather(g, op):
    x = any_tensor(g, 1, 4)
    at = axis(g, x)
    high = shape(g, x)[at]
    if high == 0:
        raise Refused("nothing to gather")
    chosen = g.rng.integers(-high, high, random_shape(g, some(g, 0, 2))).astype(I64)
    g.add(op, [x, g.constant(chosen) if chance(g, 0.7) else g.input(chosen)], axis=at)


@maker("GatherElements")
def gather_elements(g, op):
    x = any_tensor(g, 1, 4)
    at = axis(g, x)
    size = list(shape(g, x))
    if size[at] == 0:
        raise Refused("nothing to gather")
    chosen = [some(g, 1, d) if d else 0 for d in size]
    chosen[at] = some(g, 0, 5)
    g.add(op, [x, g.constant(g.rng.integers(-size[at], size[at], chosen).astype(I64))], axis=at)


@maker("GatherND")
def gather_nd(g, op):
    x = any_tensor(g, 1, 4)
    batch = some(g, 0, rank(g, x) - 1)
    depth = some(g, 1, rank(g, x) - batch)
    if 0 in shape(g, x):
        raise Refused("nothing to gather")
    lead = list(shape(g, x)[:batch]) + random_shape(g, some(g, 0 if batch else 1, 2))
    columns = [g.rng.integers(0, shape(g, x)[batch + k], lead) for k in range(depth)]
    g.add(op, [x, g.constant(np.stack(columns, -1).astype(I64))], batch_dims=batch)


@maker("ScatterElements Scatter")
def scatter_elements(g, op):
    x = tensor(g, 1, 4)
    at = axis(g, x)
    size = [some(g, 0, d) for d in shape(g, x)]
    if shape(g, x)[at] == 0:
        raise Refused("nowhere to scatter")
    chosen = g.rng.integers(0, shape(g, x)[at], size).astype(I64)
    g.add(op, [x, g.constant(chosen), fresh(g, size)], axis=at)


@maker("ScatterND")
def scatter_nd(g, op):
    x = tensor(g, 1, 4)
    depth = some(g, 1, rank(g, x))
    if 0 in shape(g, x):
        raise Refused("nowhere to scatter")
    lead = random_shape(g, some(g, 1, 2))
    columns = [g.rng.integers(0, shape(g, x)[k], lead) for k in range(depth)]
    g.add(op, [x, g.constant(np.stack(columns, -1).astype(I64)), fresh(g, lead + list(shape(g, x)[depth:]))])


@maker("Pad")
def pad(g, op):
    x = tensor(g, 1, 4)
    mode = one(g, ["constant", "constant", "reflect", "edge", "wrap"])
    low = -1 if mode == "constant" else 0
    amounts = [some(g, low, 2) for _ in range(2 * rank(g, x))]
    if g.opset < 11:
        g.add(op, [x], mode=mode, pads=amounts)
        return
    more = []
    if g.opset >= 18 and chance(g, 0.3):
        axes = [int(a) for a in g.rng.permutation(rank(g, x))[:some(g, 1, rank(g, x))]]
        amounts = amounts[:2 * len(axes)]
        more = ["", g.constant(np.asarray(axes, I64))]
    pads = ints(g, amounts)
    g.add(op, [x, pads] + more, by=[pads], mode=mode)


@maker("Reshape")
def reshape(g, op):
    x = any_tensor(g, 0, 5)
    left, size = g.values[x].size, []
    for _ in range(some(g, 0, 3)):
        part = one(g, [d for d in range(1, 7) if left % d == 0] or [1])
        size.append(part)
        left //= part
    size.append(left)
    if chance(g, 0.5):
        size[some(g, 0, len(size) - 1)] = -1
    for d in range(min(len(size), rank(g, x))):
        if size[d] == shape(g, x)[d] and chance(g, 0.4):
            size[d] = 0
    to = ints(g, size)
    g.add(op, [x, to], by=[to])


@maker("Resize Upsample")
def resize(g, op):
    x = tensor(g, 2, 5)
    r = rank(g, x)
    scales = g.constant(np.asarray([one(g, [1, 1, 0.5, 1.5, 2]) for _ in range(r)], F32))
    if op == "Upsample" or g.opset < 11:
        g.add(op, [x, scales], mode="nearest")
    elif chance(g, 0.5):
        g.add(op, [x, "", scales], mode=one(g, ["nearest", "linear"]))
    else:
        options = {}
        if g.opset >= 18 and chance(g, 0.4):
            options["keep_aspect_ratio_policy"] = one(g, ["not_larger", "not_smaller"])
        sizes = ints(g, [some(g, 1, 6) for _ in range(r)])
        g.add(op, [x, "", "", sizes], by=[sizes], mode="nearest", **options)


@maker("Slice")
def slice_of(g, op):
    x = any_tensor(g, 1, 4)
    axes = [int(a) for a in g.rng.permutation(rank(g, x))[:some(g, 1, rank(g, x))]]
    starts, ends = [some(g, -7, 7) for _ in axes], [one(g, [some(g, -7, 7), 2**63 - 1, -2**63 + 1]) for _ in axes]
    if g.opset < 10:
        g.add(op, [x], axes=axes, starts=starts, ends=ends)
        return
    inputs = [x, ints(g, starts), ints(g, ends), ints(g, axes), ints(g, [one(g, [1, 1, 2, -1, -2]) for _ in axes])]
    inputs = inputs[:5 if chance(g, 0.6) else 4]
    g.add(op, inputs, by=inputs[1:])


@maker("SpaceToDepth")
def space_to_depth(g, op):
    b = some(g, 1, 3)
    g.add(op, [fresh(g, [some(g, 1, 2), some(g, 1, 3), b * some(g, 1, 3), b * some(g, 1, 3)])], blocksize=b)


@maker("DepthToSpace")
def depth_to_space(g, op):
    b = some(g, 1, 3)
    g.add(op, [fresh(g, [some(g, 1, 2), b * b * some(g, 1, 3), some(g, 1, 3), some(g, 1, 3)])], blocksize=b,
          mode=one(g, ["DCR", "CRD"]))


@maker("Split")
def split(g, op):
    x = any_tensor(g, 1, 4)
    at = axis(g, x)
    size, count = shape(g, x)[at], some(g, 1, 3)
    cuts = sorted(some(g, 0, size) for _ in range(count - 1))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    if chance(g, 0.5):
        g.add(op, [x], count, axis=at, **({"num_outputs": count} if g.opset >= 18 else {}))
    elif g.opset >= 13:
        given = ints(g, parts)
        g.add(op, [x, given], count, by=[given], axis=at)
    else:
        g.add(op, [x], count, axis=at, split=parts)


@maker("Squeeze")
def squeeze(g, op):
    x = any_tensor(g, 0)
    axes = [k for k, d in enumerate(shape(g, x)) if d == 1]
    axes = [a - (rank(g, x) if chance(g, 0.4) else 0) for a in axes if chance(g, 0.6)]
    if not axes or chance(g, 0.3):
        g.add(op, [x])
    elif g.opset >= 13:
        given = ints(g, axes)
        g.add(op, [x, given], by=[given])
    else:
        g.add(op, [x], axes=axes)


@maker("Unsqueeze")
def unsqueeze(g, op):
    x = any_tensor(g, 0, 4)
    count = some(g, 1, 2)
    axes = [int(a) for a in g.rng.permutation(rank(g, x) + count)[:count]]
    if g.opset >= 13:
        given = ints(g, [a - (rank(g, x) + count if chance(g, 0.4) else 0) for a in axes])
        g.add(op, [x, given], by=[given])
    else:
        g.add(op, [x], axes=axes)


@maker("Tile")
def tile(g, op):
    x = any_tensor(g, 1, 4)
    repeats = ints(g, [some(g, 0 if chance(g, 0.1) else 1, 3) for _ in range(rank(g, x))])
    g.add(op, [x, repeats], by=[repeats])


@maker("Transpose")
def transpose(g, op):
    x = any_tensor(g, 0)
    g.add(op, [x], **({} if not rank(g, x) or chance(g, 0.4) else {"perm": [int(p) for p in g.rng.permutation(rank(g, x))]}))


@maker("Trilu")
def trilu(g, op):
    g.add(op, [tensor(g, 2)], upper=some(g, 0, 1))


@maker("ReverseSequence")
def reverse_sequence(g, op):
    x = tensor(g, 2)
    time, batch = shape(g, x)[:2]
    g.add(op, [x, g.input(g.rng.integers(0, time + 1, [batch]).astype(I64))], batch_axis=1, time_axis=0)


@maker("CenterCropPad")
def center(g, op):
    x = tensor(g, 1)
    axes = [int(a) for a in g.rng.permutation(rank(g, x))[:some(g, 1, rank(g, x))]]
    size = ints(g, [some(g, 0, 6) for _ in axes])
    g.add(op, [x, size], by=[size], axes=axes)


@maker("Compress")
def compress(g, op):
    x = any_tensor(g, 1)
    options = {"axis": axis(g, x)} if chance(g, 0.7) else {}
    size = shape(g, x)[options["axis"]] if options else g.values[x].size
    keep = fresh(g, [some(g, 0, size)], np.bool_)
    g.add(op, [x, keep], by=[keep], **options)


@maker("OneHot")
def one_hot(g, op):
    x = tensor(g, 0, 3, I64)
    depth = ints(g, some(g, 1, 5))
    g.add(op, [x, depth, g.constant(np.asarray([0, 1], F32))], by=[depth], axis=some(g, -1, rank(g, x)))


@maker("Range")
def range_of(g, op):
    kind = one(g, [I64, F32, np.int32])
    step = one(g, [1, 1, 2, -1, -3])
    given = [g.constant(np.asarray(v, kind)) for v in (some(g, -3, 3), some(g, -5, 9), step)]
    g.add(op, given, by=given)


@maker("ConstantOfShape")
def constant_of_shape(g, op):
    size = ints(g, random_shape(g, some(g, 0, 3)))
    fill = {} if chance(g, 0.3) else {"value": helper.make_tensor("value", TensorProto.INT64, [1], [some(g, 0, 3)])}
    g.add(op, [size], by=[size], **fill)


@maker("Constant")
def constant(g, op):
    g.add(op, [], **one(g, [{"value_int": 3}, {"value_ints": [1, 2]}, {"value_float": 0.5}, {"value_floats": [1.0]},
                            {"value_string": "a"}, {"value_strings": ["a", "b"]}]))


@maker("Shape")
def shape_of(g, op):
    x = any_tensor(g)
    options = {} if chance(g, 0.6) or g.opset < 15 else {"start": some(g, -5, 5), "end": some(g, -5, 5)}
    s = g.add(op, [x], **options)
    if g.values[s].size and chance(g, 0.6):  # sizes that are computed: what exporters write
        part = g.add("Gather", [s, g.constant(I64(some(g, 0, g.values[s].size - 1)))])
        more = g.add("Mul", [part, g.constant(I64(some(g, 1, 2)))])
        line = g.add("Reshape", [more, g.constant(np.asarray([1], I64))])
        g.add("ConstantOfShape", [line], by=[line])


@maker("Size")
def size_of(g, op):
    g.add(op, [any_tensor(g)])


@maker("EyeLike")
def eye_like(g, op):
    g.add(op, [tensor(g, 2, 2)], k=some(g, -1, 1))


@maker("NonZero")
def nonzero(g, op):
    x = any_tensor(g, 1)
    g.add(op, [x], by=[x])


@maker("Unique")
def unique(g, op):
    x = tensor(g, 1, 3, one(g, [F32, I64]))
    if 0 in shape(g, x):
        raise Refused("onnxruntime dies of it")
    g.add(op, [x], some(g, 1, 4), by=[x], **({"axis": axis(g, x)} if chance(g, 0.5) else {}))


@maker("TopK")
def top_k(g, op):
    x = tensor(g, 1)
    at = axis(g, x)
    k = ints(g, [some(g, 0, shape(g, x)[at])])
    g.add(op, [x, k], 2, by=[k], axis=at)


# ---- windows ----

def window(g, dims, kernel=None):
    n = len(dims)
    options = {"strides": [some(g, 1, 3) for _ in range(n)]} if chance(g, 0.7) else {}
    if chance(g, 0.4):
        options["dilations"] = [some(g, 1, 2) for _ in range(n)]
    how = some(g, 0, 4)
    if how == 0:
        options["auto_pad"] = one(g, ["SAME_UPPER", "SAME_LOWER", "VALID"])
        options.pop("dilations", None)
    elif how < 3:
        options["pads"] = [some(g, 0, 1) for _ in range(2 * n)]
    if kernel:
        options["kernel_shape"] = kernel
    return options


@maker("MaxPool AveragePool LpPool")
def pool(g, op):
    x = tensor(g, 3, 5)
    dims = shape(g, x)[2:]
    options = window(g, dims, [some(g, 1, 3) for _ in dims])
    if op != "LpPool" or g.opset >= 18:
        if chance(g, 0.4):
            options["ceil_mode"] = 1
    g.add(op, [x], some(g, 1, 2) if op == "MaxPool" else 1, **options)


@maker("GlobalAveragePool GlobalMaxPool GlobalLpPool")
def pool_global(g, op):
    g.add(op, [tensor(g, 3, 5)])


@maker("Conv ConvTranspose ConvInteger")
def conv(g, op):
    integer = op == "ConvInteger"
    x = fresh(g, [some(g, 1, 2), some(g, 1, 4), *[some(g, 1, 6) for _ in range(some(g, 1, 2))]],
              np.uint8) if integer else tensor(g, 3, 5)
    dims, channels = shape(g, x)[2:], shape(g, x)[1]
    if 0 in shape(g, x):
        raise Refused("onnxruntime hangs at some of them")
    group = one(g, [d for d in (1, 1, 2, 3) if channels % d == 0])
    kernel = [some(g, 1, 3) for _ in dims]
    options = window(g, dims)
    if op == "ConvTranspose":
        size = [channels, some(g, 1, 2), *kernel]
        if chance(g, 0.3):
            options["output_padding"] = [some(g, 0, 1) for _ in dims]
    else:
        size = [group * some(g, 1, 2), channels // group, *kernel]
    zeros = [g.constant(np.uint8(some(g, 0, 9))) for _ in range(some(g, 0, 2))] if integer else []
    g.add(op, [x, fresh(g, size, np.uint8 if integer else F32), *zeros], group=group, **options)


@maker("MaxUnpool")
def unpool(g, op):
    x = tensor(g, 4, 4)
    kernel = [some(g, 1, 2), some(g, 1, 2)]
    values, where_from = g.add("MaxPool", [x], 2, kernel_shape=kernel, strides=kernel)
    g.add(op, [values, where_from], kernel_shape=kernel, strides=kernel)


@maker("MaxRoiPool RoiAlign")
def roi(g, op):
    x = tensor(g, 4, 4)
    n = some(g, 1, 3)
    if op == "MaxRoiPool":
        g.add(op, [x, g.constant(np.tile(np.asarray([0, 0, 0, 1, 1], F32), (n, 1)))], pooled_shape=[2, some(g, 1, 3)])
    else:
        g.add(op, [x, g.constant(np.tile(np.asarray([0, 0, 1, 1], F32), (n, 1))), g.constant(np.zeros([n], I64))],
              output_height=2, output_width=some(g, 1, 3))


@maker("NonMaxSuppression")
def nms(g, op):
    b, n, k = some(g, 1, 2), some(g, 1, 6), some(g, 1, 2)
    g.add(op, [fresh(g, [b, n, 4]), fresh(g, [b, k, n]), g.constant(np.asarray([some(g, 0, 4)], I64))], data=True)


@maker("GridSample")
def grid_sample(g, op):
    x = tensor(g, 4, 4)
    g.add(op, [x, fresh(g, [shape(g, x)[0], some(g, 1, 4), some(g, 1, 4), 2])])


@maker("AffineGrid")
def affine_grid(g, op):
    n = some(g, 1, 2)
    size = ints(g, [n, 2, some(g, 1, 4), some(g, 1, 4)])
    g.add(op, [fresh(g, [n, 2, 3]), size], by=[size])


@maker("Col2Im")
def col2im(g, op):
    image, block = [some(g, 3, 5), some(g, 3, 5)], [some(g, 1, 3), some(g, 1, 3)]
    columns = int(np.prod([i - b + 1 for i, b in zip(image, block)]))
    sizes = [ints(g, image), ints(g, block)]
    g.add(op, [fresh(g, [some(g, 1, 2), some(g, 1, 2) * int(np.prod(block)), columns]), *sizes], by=sizes)


# ---- norms, products, layers ----

@maker("BatchNormalization InstanceNormalization GroupNormalization LRN MeanVarianceNormalization")
def norm(g, op):
    x = tensor(g, 3, 5) if op != "MeanVarianceNormalization" else tensor(g, 4, 4)
    c = [shape(g, x)[1]]
    if op == "BatchNormalization":
        g.add(op, [x, *[g.constant(np.abs(numbers(g, c))) for _ in range(4)]])
    elif op == "LRN":
        g.add(op, [x], size=some(g, 1, 3))
    elif op == "MeanVarianceNormalization":
        g.add(op, [x])
    elif op == "GroupNormalization":
        groups = one(g, [d for d in (1, 2, 3) if c[0] % d == 0])
        per = c if g.opset >= 21 else [groups]
        g.add(op, [x, fresh(g, per), fresh(g, per)], num_groups=groups)
    else:
        g.add(op, [x, fresh(g, c), fresh(g, c)])


@maker("LayerNormalization RMSNormalization")
def norm_last(g, op):
    x = tensor(g, 1)
    at = axis(g, x)
    outputs = some(g, 1, 3) if op == "LayerNormalization" else 1
    g.add(op, [x, fresh(g, list(shape(g, x)[at:]))], outputs, axis=at)


@maker("MatMul MatMulInteger")
def matmul(g, op):
    x = fresh(g, random_shape(g, some(g, 1, 3)), np.uint8) if op == "MatMulInteger" else tensor(g, 1, 4)
    value = g.values[x]
    lead = list(value.shape[:-2][some(g, 0, 1):]) if value.ndim > 2 else []
    y = fresh(g, [some(g, 1, 3) if d == 1 and value.size else 1 if chance(g, 0.3) else d for d in lead] + [value.shape[-1]] + ([some(g, 1, 5)] if lead or chance(g, 0.7) else []),
              value.dtype.type)
    g.add(op, [x, y])


@maker("Gemm")
def gemm(g, op):
    x = tensor(g, 2, 2)
    a, b, n = some(g, 0, 1), some(g, 0, 1), some(g, 1, 5)
    m, k = shape(g, x)[::-1] if a else shape(g, x)
    bias = [fresh(g, one(g, [[n], [1], [m, n], [m, 1], []]))] if chance(g, 0.5) else []
    g.add(op, [x, fresh(g, [n, k] if b else [k, n]), *bias], transA=a, transB=b)


@maker("Einsum")
def einsum(g, op):
    x = tensor(g, 3, 3)
    i, j, k = shape(g, x)
    how, size = one(g, [("ijk,kl->ijl", [k, 3]), ("ijk,ijk->i", [i, j, k]), ("...k,k->...", [k]), ("ijk,jl", [j, 2]),
                        ("iji,k->ik", [2])])
    g.add(op, [x, fresh(g, size)], equation=how)


@maker("Det")
def det(g, op):
    n = some(g, 1, 3)
    g.add(op, [fresh(g, random_shape(g, some(g, 0, 2)) + [n, n])])


@maker("LSTM GRU RNN")
def recurrent(g, op):
    x = tensor(g, 3, 3)
    if 0 in shape(g, x):
        raise Refused("onnxruntime dies of it")
    hidden, both, gates = some(g, 1, 3), some(g, 0, 1), {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    directions = 1 + both
    weight = fresh(g, [directions, gates * hidden, shape(g, x)[2]])
    again = fresh(g, [directions, gates * hidden, hidden])
    g.add(op, [x, weight, again], some(g, 1, 3 if op == "LSTM" else 2), hidden_size=hidden,
          direction="bidirectional" if both else "forward")


@maker("QuantizeLinear")
def quantize(g, op):
    g.add(op, [tensor(g), g.constant(F32(0.1)), g.constant(np.uint8(128))])


@maker("DequantizeLinear")
def dequantize(g, op):
    g.add(op, [fresh(g, random_shape(g, 2), np.uint8), g.constant(F32(0.1)), g.constant(np.uint8(128))])


@maker("DynamicQuantizeLinear")
def quantize_dynamic(g, op):
    g.add(op, [tensor(g)], 3)


@maker("QLinearMatMul")
def quantized_matmul(g, op):
    m, k, n = some(g, 1, 4), some(g, 1, 4), some(g, 1, 4)
    scale, zero = g.constant(F32(0.1)), g.constant(np.uint8(128))
    g.add(op, [fresh(g, [m, k], np.uint8), scale, zero, fresh(g, [k, n], np.uint8), scale, zero, scale, zero])


@maker("QLinearConv")
def quantized_conv(g, op):
    scale, zero = g.constant(F32(0.1)), g.constant(np.uint8(128))
    c, dims = some(g, 1, 3), [some(g, 3, 6), some(g, 3, 6)]
    g.add(op, [fresh(g, [1, c, *dims], np.uint8), scale, zero, fresh(g, [2, c, 2, 2], np.uint8), scale, zero, scale, zero],
          **window(g, dims))


@maker("Attention")
def attention(g, op):
    b, h, s, t, d = some(g, 1, 2), some(g, 1, 3), some(g, 1, 4), some(g, 1, 4), some(g, 1, 4)
    inputs = [fresh(g, [b, h, s, d]), fresh(g, [b, h, t, d]), fresh(g, [b, h, t, d])]
    g.add(op, inputs, **({"is_causal": 1} if chance(g, 0.4) else {}))


@maker("RotaryEmbedding")
def rotary(g, op):
    b, h, s, d = some(g, 1, 2), some(g, 1, 3), some(g, 1, 4), 2 * some(g, 1, 3)
    g.add(op, [fresh(g, [b, h, s, d]), fresh(g, [b, s, d // 2]), fresh(g, [b, s, d // 2])])


# ---- signals, losses, random numbers ----

@maker("DFT")
def dft(g, op):
    g.add(op, [fresh(g, [1, some(g, 2, 6), 1])], **({"onesided": 1} if chance(g, 0.5) else {}))


@maker("STFT")
def stft(g, op):
    length = some(g, 2, 4)
    step = g.constant(I64(some(g, 1, 3)))
    g.add(op, [fresh(g, [1, some(g, 6, 12), 1]), step, "", g.constant(I64(length))], onesided=some(g, 0, 1))


@maker("HannWindow HammingWindow BlackmanWindow")
def signal_window(g, op):
    size = ints(g, some(g, 1, 8))
    g.add(op, [size], by=[size])


@maker("MelWeightMatrix")
def mel(g, op):
    g.add(op, [g.constant(I64(some(g, 1, 4))), g.constant(I64(16)), g.constant(I64(8000)), g.constant(F32(0)),
               g.constant(F32(4000))])


@maker("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss")
def loss(g, op):
    n, c, rest = some(g, 1, 3), some(g, 1, 4), random_shape(g, some(g, 0, 2))
    outputs = some(g, 1, 2) if op[0] == "S" else 1
    g.add(op, [fresh(g, [n, c, *rest]), g.constant(g.rng.integers(0, c, [n, *rest]).astype(I64))], outputs,
          reduction=one(g, ["none", "mean", "sum"]))


@maker("RandomNormal RandomUniform")
def random_numbers(g, op):
    g.add(op, [], shape=random_shape(g, some(g, 1, 3)))


@maker("RandomNormalLike RandomUniformLike Bernoulli")
def random_like(g, op):
    g.add(op, [tensor(g)])


@maker("Multinomial")
def multinomial(g, op):
    g.add(op, [fresh(g, [some(g, 1, 3), some(g, 1, 4)])], sample_size=some(g, 1, 4))


# ---- text ----

def text(g, size):
    return g.input(np.asarray(g.rng.choice(["a b", "the", "x,y", ""], size), object))


@maker("StringConcat")
def string_concat(g, op):
    size = random_shape(g, 2)
    g.add(op, [text(g, size), text(g, size)])


@maker("StringSplit")
def string_split(g, op):
    g.add(op, [text(g, [some(g, 1, 3)])], 2, data=True)


@maker("RegexFullMatch")
def regex(g, op):
    g.add(op, [text(g, random_shape(g, 1))], pattern="a.*")


@maker("StringNormalizer")
def normalizer(g, op):
    g.add(op, [text(g, [some(g, 1, 3)])], data=True, case_change_action="UPPER", locale="C", stopwords=["the"])


@maker("LabelEncoder")
def label(g, op):
    g.add(op, [tensor(g, kind=I64)], domain="ai.onnx.ml", keys_int64s=[1, 2], values_floats=[1.0, 2.0])


@maker("TfIdfVectorizer")
def tf_idf(g, op):
    g.add(op, [tensor(g, 1, 2, I64)], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
          ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[1, 2])


# ---- sequences ----

def sequence(g):
    there = [n for n, v in g.values.items() if isinstance(v, list)]
    if not there or chance(g, 0.3):
        return sequence_construct(g, "SequenceConstruct")
    return one(g, there[-3:])


def place(g, name, more=0):
    n = len(g.values[name]) + more
    if n == 0:
        raise Refused("an empty sequence")
    return g.constant(I64(some(g, -n if not more else 0, n - 1)))


@maker("SequenceConstruct")
def sequence_construct(g, op):
    x = tensor(g, 1, 3)
    return g.add(op, [x] + [x if chance(g, 0.3) else tensor(g, 1, 3) for _ in range(some(g, 0, 2))])


@maker("SequenceEmpty")
def sequence_empty(g, op):
    g.add(op, [])


@maker("SequenceAt")
def sequence_at(g, op):
    s = sequence(g)
    g.add(op, [s, place(g, s)])


@maker("SequenceErase")
def sequence_erase(g, op):
    s = sequence(g)
    g.add(op, [s, place(g, s)])


@maker("SequenceInsert")
def sequence_insert(g, op):
    s = sequence(g)
    g.add(op, [s, tensor(g, 1, 3), place(g, s, 1)])


@maker("SequenceLength")
def sequence_length(g, op):
    g.add(op, [sequence(g)])


@maker("SplitToSequence")
def split_to_sequence(g, op):
    x = tensor(g, 1, 3)
    at = axis(g, x)
    part = ints(g, some(g, 1, 3))
    g.add(op, [x, part] if chance(g, 0.7) else [x], by=[part], axis=at)


@maker("ConcatFromSequence")
def concat_from_sequence(g, op):
    x = tensor(g, 1, 3)
    s = g.add("SequenceConstruct", [x] * some(g, 1, 3))
    g.add(op, [s], axis=axis(g, x), new_axis=some(g, 0, 1))


@maker("Optional OptionalHasElement OptionalGetElement")
def optional(g, op):
    x = tensor(g)
    g.add(op if op != "Optional" else "OptionalHasElement", [x])


# ---- control flow and functions ----

SIMPLE = ("Abs Add Mul Relu Sub Concat Transpose Reshape Slice Shape Gather ReduceSum Squeeze Unsqueeze Softmax Tile Cast Pad "
          "Identity MatMul Expand MaxPool NonZero").split()


def grow(g, count, operators):
    """Adds about `count` nodes; what onnxruntime refuses is left out."""
    for _ in range(3 * count):
        if len(g.nodes) >= count:
            return
        operator = one(g, operators)
        try:
            MAKERS[operator](g, operator)
        except Refused:
            pass


def body_of(g, inputs, results, name):
    """Scalars are stated as such: onnxruntime wants to know a loop's counter."""
    infos = [[value_info(n, g.values[n], g.values[n].ndim == 0) for n in names] for names in (inputs, results)]
    return helper.make_graph(g.nodes, name, *infos)


def last_of(g, kind=F32):
    return one(g, [o for n in g.nodes for o in n.output if o and fits(g.values[o], kind, 0, 5)])


@maker("If")
def branch(g, op):
    take = bool(some(g, 0, 1))
    bodies, results = [], []
    for _ in range(2):
        body = Graph(g.rng, g.opset, g)
        x = body.add("Identity", [tensor(body, 0, 3)])
        grow(body, some(g, 1, 3), SIMPLE)
        results.append(last_of(body))
        bodies.append(body)
    condition = g.constant(np.asarray(take)) if chance(g, 0.6) else g.input(np.asarray(take))
    alike = bodies[0].values[results[0]].shape == bodies[1].values[results[1]].shape
    tainted = any(r in b.by_data for r, b in zip(results, bodies))
    g.add(op, [condition], by=[] if alike and not tainted else [condition], data=tainted,
          then_branch=body_of(bodies[0], [], [results[0]], "then"), else_branch=body_of(bodies[1], [], [results[1]], "else"))


@maker("Loop")
def loop(g, op):
    """What runs not at all may contradict itself: its body is made for something else."""
    x = tensor(g, 1, 3)
    trips = some(g, 0, 3)
    never = trips == 0 and chance(g, 0.5)
    body = Graph(g.rng, g.opset, g)
    i, go, carried = body.name(), body.name(), body.name()
    inside = numbers(g, random_shape(g, some(g, 1, 3))) if never else g.values[x]
    body.values.update({i: np.asarray(0, I64), go: np.asarray(True), carried: inside})
    grow(body, some(g, 1, 3), SIMPLE)
    keeps = chance(g, 0.5)
    after = body.add("Abs", [carried]) if keeps else body.add("Concat", [carried, carried], axis=0)
    # Of a scan that has no iterations onnxruntime knows no more than what is stated.
    scanned = body.add("Identity", [one(g, [carried, after])] if keeps and trips else [i])
    result = body.add("Identity", [go])
    limit = ints(g, trips)
    inner = body_of(body, [i, go, carried], [result, after, scanned], "loop")
    g.add(op, [limit, g.constant(np.asarray(True)) if chance(g, 0.8) else "", x], 2, by=[limit], data=never, body=inner)


@maker("Scan")
def scan(g, op):
    x = tensor(g, 2, 3)
    state = fresh(g, list(shape(g, x)[1:]))
    body = Graph(g.rng, g.opset, g)
    s, part = body.name(), body.name()
    if shape(g, x)[0] == 0:
        raise Refused("nothing to scan")
    body.values.update({s: g.values[state], part: g.values[x][0]})
    after = body.add("Add", [s, part])
    grow(body, some(g, 1, 2), SIMPLE)
    out = last_of(body)
    g.add(op, [state, x], 2, data=out in body.by_data, num_scan_inputs=1, body=body_of(body, [s, part], [after, out], "scan"))


@maker("SequenceMap")
def sequence_map(g, op):
    s = sequence(g)
    if not g.values[s]:
        raise Refused("an empty sequence")
    body = Graph(g.rng, g.opset, g)
    part = body.name()
    body.values[part] = g.values[s][0]
    out = body.add(one(g, ["Abs", "Relu", "Transpose", "Shape"]), [part])
    g.add(op, [s], body=body_of(body, [part], [out], "map"))


@maker("Function")
def function(g, op):
    """A function of the model's own, called once or twice."""
    x = tensor(g, 1, 3)
    outer = Graph(g.rng, g.opset)
    outer.count, outer.functions = g.count, g.functions
    body = Graph(g.rng, g.opset, outer)
    given = body.name()
    body.values[given] = outer.values[given] = g.values[x]
    body.add("Abs", [given])
    grow(body, some(g, 1, 3), [o for o in SIMPLE if o != "NonZero"])
    if set(free_names(body.nodes)) - {given}:
        raise Refused("a function has no inputs of the model's")
    out = last_of(body)
    name = f"f{len(g.functions)}"
    g.functions.append(helper.make_function(LOCAL, name, [given], [out], body.nodes, [helper.make_opsetid("", g.opset)]))
    try:
        for _ in range(some(g, 1, 2)):
            g.add(name, [x], domain=LOCAL, data=out in body.by_data)
    except Refused:
        if not any(n.op_type == name for n in g.nodes):
            g.functions.pop()
        raise
