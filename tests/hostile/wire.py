"""A protobuf wire writer of a few lines: enough to write ONNX models, right and wrong ones, with plain Python.

Every function returns bytes. The lower half knows the field numbers of ONNX; nothing here checks anything, because most
of what is written with it is meant to be wrong.
"""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, FP16, DOUBLE = 1, 2, 3, 6, 7, 8, 9, 10, 11


class Tensor(bytes):
    """A TensorProto; as an attribute it becomes field t."""


class Graph(bytes):
    """A GraphProto; as an attribute it becomes field g."""


class Sparse(bytes):
    """A SparseTensorProto."""


class Type(bytes):
    """A TypeProto."""


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def tag(field, wire):
    return varint(field << 3 | wire)


def num(field, n):
    return tag(field, 0) + varint(n)


def text(data):
    return data.encode() if isinstance(data, str) else data


def blob(field, data):
    data = text(data)
    return tag(field, 2) + varint(len(data)) + data


def f32(field, x):
    return tag(field, 5) + struct.pack("<f", x)


def many(field, parts):
    return b"".join(blob(field, p) for p in parts)


def nest(depth, layers, inner):
    """inner inside `depth` times the layers, outermost first: each a field's number and the bytes that stand before it in
    its message. Linear in the size of the result."""
    fronts = [before + tag(field, 2) for field, before in reversed(layers)]
    heads, length = [], len(inner)
    for _ in range(depth):
        for front in fronts:
            heads.append(front + varint(length))
            length += len(heads[-1])
    return b"".join(reversed(heads)) + inner


# ---- ONNX ----

def words(names):
    return names.split(" ") if isinstance(names, str) and names else list(names)


def shape(dims):
    out = b""
    for d in dims:
        out += blob(1, b"" if d is None else blob(2, d) if isinstance(d, (str, bytes)) else num(1, d))
    return out


def tensor_type(dims, kind=FLOAT):
    return Type(blob(1, num(1, kind) + (b"" if dims is None else blob(2, shape(dims)))))


def value(name, dims=(2, 3, 4), kind=FLOAT):
    """A named type; dims None: only a name, as bodies of control flow often have it."""
    if dims is None and not isinstance(kind, Type):
        return blob(1, name)
    return blob(1, name) + blob(2, kind if isinstance(kind, Type) else tensor_type(dims, kind))


def tensor(name, dims, kind=FLOAT, data=None, raw=None, extra=b""):
    out = b"".join(num(1, d) for d in dims) + num(2, kind) + blob(8, name) + extra
    if raw is not None:
        out += blob(9, raw)
    if data is not None:
        out += typed(kind, data)
    return Tensor(out)


def typed(kind, data):
    if kind == FLOAT:
        return blob(4, struct.pack("<%df" % len(data), *data))
    if kind == INT64:
        return blob(7, b"".join(varint(x) for x in data))
    if kind == STRING:
        return many(6, data)
    return blob(5, b"".join(varint(x) for x in data))


def ints(name, data, dims=None):
    return tensor(name, [len(data)] if dims is None else dims, INT64, data)


def floats(name, data, dims=None):
    return tensor(name, [len(data)] if dims is None else dims, FLOAT, data)


def external(name, dims, location, kind=FLOAT, **more):
    """A tensor whose bytes lie in another file."""
    entries = [("location", location)] + [(k, str(v)) for k, v in more.items()]
    extra = b"".join(blob(13, blob(1, k) + blob(2, v)) for k, v in entries) + num(14, 1)
    return tensor(name, dims, kind, extra=extra)


def sparse(values, indices, dims):
    return Sparse(blob(1, values) + blob(2, indices) + b"".join(num(3, d) for d in dims))


def attribute(name, x):
    head = blob(1, name)
    for kind, field, code in ((Tensor, 5, 4), (Graph, 6, 5), (Sparse, 22, 11), (Type, 14, 13), ((str, bytes), 4, 3)):
        if isinstance(x, kind):
            return head + blob(field, x) + num(20, code)
    if isinstance(x, float):
        return head + f32(2, x) + num(20, 1)
    if isinstance(x, int):
        return head + num(3, x) + num(20, 2)
    if x and isinstance(x[0], float):
        return head + b"".join(f32(7, v) for v in x) + num(20, 6)
    if x and isinstance(x[0], (str, bytes)):
        return head + many(9, x) + num(20, 8)
    return head + b"".join(num(8, v) for v in x) + num(20, 7)


def node(op, ins="x", outs="y", name="", domain="", extra=b"", **attrs):
    out = many(1, words(ins)) + many(2, words(outs))
    out += (blob(3, name) if name else b"") + blob(4, op) + (blob(7, domain) if domain else b"")
    return out + many(5, [attribute(k, v) for k, v in attrs.items()]) + extra


def graph(nodes, inputs=(), outputs=(), inits=(), sparse_inits=(), infos=(), name="g"):
    return Graph(many(1, nodes) + blob(2, name) + many(5, inits) + many(11, inputs) + many(12, outputs) +
                 many(13, infos) + many(15, sparse_inits))


def opset(version=17, domain=""):
    return (blob(1, domain) if domain else b"") + num(2, version)


def model(body, imports=None, functions=(), extra=b""):
    imports = [opset(), opset(1, "local"), opset(1, "com.microsoft")] if imports is None else imports
    return num(1, 8) + many(8, imports) + blob(7, body) + many(25, functions) + extra


def function(name, ins, outs, nodes, imports=None, attrs=(), domain="local", extra=b""):
    imports = [opset(), opset(1, "local")] if imports is None else imports
    return (blob(1, name) + many(4, words(ins)) + many(5, words(outs)) + many(6, attrs) + many(7, nodes) +
            many(9, imports) + blob(10, domain) + extra)


def net(nodes, inits=(), inputs=None, outputs=None, version=17, functions=(), **more):
    """The usual model: x is float[2,3,4], y is the result of whatever shape."""
    inputs = [value("x")] if inputs is None else inputs
    outputs = [value("y", None)] if outputs is None else outputs
    imports = [opset(version), opset(1, "local"), opset(1, "com.microsoft")]
    return model(graph(nodes, inputs, outputs, inits, **more), imports, functions)
