"""Every small valid model bent in the same few ways: nodes lose their inputs or outputs, tensors become scalars, empty, of
high rank, huge or of another type. Any verdict is right, as long as it is one."""
from case import LOOSE, Case
from seeds import fields, plain, read_varint, vendor
from wire import INT64, STRING, tag, value, varint


def rewrite(data, path, change):
    """The message with every field at the path replaced by change(payload); None takes the field out."""
    out = b""
    for number, kind, payload in fields(data):
        if number == path[0] and len(path) > 1 and kind == 2:
            payload = rewrite(payload, path[1:], change)
        elif number == path[0]:
            payload = change(payload)
        if payload is not None:
            out += tag(number, kind) + (varint(len(payload)) if kind == 2 else b"") + payload
    return out


def count(data, path):
    seen = []
    rewrite(data, path, lambda p: seen.append(p) or p)
    return len(seen)


def at(index, new):
    """A change of the index-th of all only."""
    left = [index]

    def change(payload):
        left[0] -= 1
        return new(payload) if left[0] == -1 else payload

    return change


def new_input(dims, kind=1):
    """The graph's input keeps its name and becomes another tensor."""
    def change(payload):
        name = [p for number, _, p in fields(payload) if number == 1][0]
        return value(name, dims, kind)

    return change


def scalar(tensor):
    return b"".join(tag(n, k) + (varint(len(p)) if k == 2 else b"") + p for n, k, p in fields(tensor) if n != 1)


def negative(payload):
    number, _ = read_varint(payload, 0)
    return varint(-number)


NODE, NODE_IN, NODE_OUT, INPUT, INITIALIZER = (7, 1), (7, 1, 1), (7, 1, 2), (7, 11), (7, 5)
ATTRIBUTE, ATTRIBUTE_INT, ATTRIBUTE_INTS, TENSOR_DIM = (7, 1, 5), (7, 1, 5, 3), (7, 1, 5, 8), (7, 5, 1)

BENDS = [
    ("no_outputs", NODE_OUT, lambda p: None), ("unnamed_outputs", NODE_OUT, lambda p: b""),
    ("no_inputs", NODE_IN, lambda p: None), ("unnamed_inputs", NODE_IN, lambda p: b""),
    ("no_attributes", ATTRIBUTE, lambda p: None), ("negative_ints", ATTRIBUTE_INT, negative),
    ("huge_ints", ATTRIBUTE_INT, lambda p: varint((1 << 63) - 1)), ("least_ints", ATTRIBUTE_INT, lambda p: varint(-(1 << 63))),
    ("zero_ints", ATTRIBUTE_INT, lambda p: varint(0)), ("zero_lists", ATTRIBUTE_INTS, lambda p: varint(0)),
    ("huge_lists", ATTRIBUTE_INTS, lambda p: varint(1 << 62)), ("least_lists", ATTRIBUTE_INTS, lambda p: varint(-(1 << 63))),
    ("no_lists", ATTRIBUTE_INTS, lambda p: None),
    ("scalar_input", INPUT, new_input(())), ("empty_input", INPUT, new_input((0, 0, 0))),
    ("empty_4d_input", INPUT, new_input((0, 4, 0, 8))), ("vector_input", INPUT, new_input((4,))),
    ("rank_60_input", INPUT, new_input([1] * 60)), ("huge_input", INPUT, new_input((1 << 20, 1 << 20, 1 << 15))),
    ("string_input", INPUT, new_input((2, 3, 4), STRING)), ("int_input", INPUT, new_input((2, 3, 4), INT64)),
    ("scalar_weights", INITIALIZER, scalar), ("no_weights", INITIALIZER, lambda p: None),
    ("empty_weights", TENSOR_DIM, lambda p: varint(0)),
]


def cases():
    found = []
    for seed, data in plain() + vendor():
        for name, path, change in BENDS:
            bent = rewrite(data, path, change)
            if bent != data:
                found.append(Case("bent_%s_%s" % (seed, name), LOOSE, bent))
        for k in range(count(data, NODE_IN)):
            found.append(Case("bent_%s_without_%d" % (seed, k), LOOSE, rewrite(data, NODE_IN, at(k, lambda p: b""))))
        for k in range(count(data, NODE_OUT)):
            found.append(Case("bent_%s_unwanted_%d" % (seed, k), LOOSE, rewrite(data, NODE_OUT, at(k, lambda p: b""))))
    return found
