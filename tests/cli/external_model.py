"""Makes a model whose weight and whose integer shape lie in files of external data, without making those files.
Usage: external_model.py MODEL.onnx WEIGHT_FILE SHAPE_FILE"""
import sys


def varint(x):
    return bytes([x]) if x < 128 else bytes([x & 127 | 128]) + varint(x >> 7)


def number(field, x):
    return varint(field << 3) + varint(x)


def part(field, *content):
    content = b"".join(c.encode() if isinstance(c, str) else c for c in content)
    return varint(field << 3 | 2) + varint(len(content)) + content


def constant(name, kind, dims, file):
    entry = part(13, part(1, "location"), part(2, file))
    return part(5, *(number(1, d) for d in dims), number(2, kind), part(8, name), entry, number(14, 1))


def float_tensor(field, name, *dims):
    shape = part(2, *(part(1, number(1, d)) for d in dims))
    return part(field, part(1, name), part(2, part(1, number(1, 1), shape)))


def node(op_type, first, second, result):
    return part(1, part(1, first), part(1, second), part(2, result), part(4, op_type))


def main(path, weight_file, shape_file):
    graph = part(7, node("MatMul", "x", "w", "h"), node("Reshape", "h", "shape", "r"), node("Add", "r", "r", "y"), part(2, "external"),
                 constant("w", 1, (3, 4), weight_file), constant("shape", 7, (2,), shape_file), float_tensor(11, "x", 2, 3),
                 part(12, part(1, "y")))
    with open(path, "wb") as file:
        file.write(number(1, 8) + graph + part(8, number(2, 17)))


if __name__ == "__main__":
    main(*sys.argv[1:])
