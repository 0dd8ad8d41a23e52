"""Writes models for the benchmark straight in the wire format: files beyond 2 GiB, which python onnx can not write, whose
zero weights are holes that take no disk; and long graphs."""
import os

FLOAT, INT64 = 1, 7


def varint(number):
    out = bytearray()
    number &= (1 << 64) - 1
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field, number):
    return varint(field << 3) + varint(number)


def chunk(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def dims_of(dims):
    return b"".join(chunk(1, integer(1, d) if isinstance(d, int) else chunk(2, d)) for d in dims)


def value(name, kind, dims):
    return chunk(1, name) + chunk(2, chunk(1, integer(1, kind) + chunk(2, dims_of(dims))))


def node(op_type, name, inputs, output, *attributes):
    parts = [chunk(1, i) for i in inputs] + [chunk(2, output), chunk(3, name), chunk(4, op_type)]
    return chunk(1, b"".join(parts) + b"".join(chunk(5, a) for a in attributes))


def int_attribute(name, number):
    return chunk(1, name) + integer(3, number) + integer(20, 2)


def tensor(name, kind, dims, raw):
    return chunk(5, b"".join(integer(1, d) for d in dims) + integer(2, kind) + chunk(8, name) + chunk(9, raw))


def hollow_tensor(name, dims, size):
    """A float tensor as (bytes before its raw data, length of the raw data)."""
    head = b"".join(integer(1, d) for d in dims) + integer(2, FLOAT) + chunk(8, name) + varint(9 << 3 | 2) + varint(size)
    return varint(5 << 3 | 2) + varint(len(head) + size) + head, size


def int64s(*numbers):
    return b"".join(n.to_bytes(8, "little", signed=True) for n in numbers)


def write_model(path, pieces):
    """pieces of the graph: bytes, or (bytes, zeros that follow)."""
    pieces = [p if isinstance(p, tuple) else (p, 0) for p in pieces]
    size = sum(len(head) + zeros for head, zeros in pieces)
    with open(path + ".new", "wb") as file:
        file.write(integer(1, 8) + chunk(8, chunk(1, "") + integer(2, 17)) + varint(7 << 3 | 2) + varint(size))
        for head, zeros in pieces:
            file.write(head)
            file.seek(zeros, os.SEEK_CUR)
        file.truncate()
    os.rename(path + ".new", path)


def big_file(path, layers, first, second):
    """A chain of products with weights [first, second] and [second, first] in turn, all inside the file."""
    pieces, x, width = [chunk(2, "big")], "x", first
    for layer in range(layers):
        other = second if width == first else first
        pieces.append(node("MatMul", f"product{layer}", [x, f"w{layer}"], f"y{layer}"))
        x, width = f"y{layer}", other
    width = first
    for layer in range(layers):
        other = second if width == first else first
        pieces.append(hollow_tensor(f"w{layer}", [width, other], width * other * 4))
        width = other
    pieces += [chunk(11, value("x", FLOAT, ["batch", first])), chunk(12, value(x, FLOAT, ["batch", width]))]
    write_model(path, pieces)


def long_graph(path, nodes):
    """Blocks of ten nodes with a weight of their own, in which a shape is computed and used, so that values must flow."""
    width, x = 8, "x"
    pieces = [chunk(2, "long")]
    weights = [tensor("zero", INT64, [], int64s(0)), tensor("axis", INT64, [1], int64s(0)),
               tensor("rest", INT64, [2], int64s(-1, width)), tensor("scale", FLOAT, [], b"\0\0\0\x3f")]
    for block in range(nodes // 10):
        b = f"b{block}."
        weights.append(tensor(b + "w", FLOAT, [width, width], bytes(4 * width * width)))
        weights.append(tensor(b + "bias", FLOAT, [width], bytes(4 * width)))
        steps = (
            ("MatMul", [x, b + "w"], "product"), ("Add", [b + "product", b + "bias"], "sum"), ("Relu", [b + "sum"], "relu"),
            ("Shape", [b + "relu"], "shape"), ("Gather", [b + "shape", "zero"], "size", int_attribute("axis", 0)),
            ("Unsqueeze", [b + "size", "axis"], "first"),
            ("Concat", [b + "first", "rest"], "target", int_attribute("axis", 0)),
            ("Reshape", [b + "relu", b + "target"], "view"), ("Add", [b + "view", x], "residual"),
            ("Mul", [b + "residual", "scale"], "out"))
        for op_type, inputs, output, *attributes in steps:
            pieces.append(node(op_type, b + output, inputs, b + output, *attributes))
        x = b + "out"
    pieces += weights
    pieces += [chunk(11, value("x", FLOAT, ["batch", "seq", width])), chunk(12, value(x, FLOAT, ["batch", "seq", width]))]
    write_model(path, pieces)


MADE = {
    "made_2gb": lambda path: big_file(path, 8, 8192, 7424),
    "made_3gb": lambda path: big_file(path, 12, 8192, 8192),
    "made_10k_nodes": lambda path: long_graph(path, 10_000),
    "made_30k_nodes": lambda path: long_graph(path, 30_000),
    "made_100k_nodes": lambda path: long_graph(path, 100_000),
}


def make_all(folder):
    os.makedirs(folder, exist_ok=True)
    for name, make in MADE.items():
        path = os.path.join(folder, name + ".onnx")
        if not os.path.exists(path):
            make(path)
        yield path
