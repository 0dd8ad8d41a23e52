"""Hostile bytes: files that are no protobuf, or protobuf that is no ONNX model."""
import os
import struct

from case import BAD, FINE, LOOSE, ODD, Case
from wire import (Type, attribute, blob, f32, floats, function, graph, many, model, nest, net, node, num, opset, shape,
                  tag, tensor, tensor_type, value, varint)

RELU = node("Relu")
PLAIN = net([RELU])
GRAPH = graph([RELU], [value("x")], [value("y", None)])


IF_LAYERS = [(1, b""), (5, node("If", "c")), (6, blob(1, "then_branch") + num(20, 5))]
LOOP_LAYERS = [(5, node("Loop", "x c")), (6, blob(1, "body") + num(20, 5)), (1, b"")]


def nested_graphs(depth):
    """A node's attribute holds a graph that holds a node that holds a graph …"""
    return model(nest(depth, IF_LAYERS, blob(1, RELU)) + blob(2, "g") + blob(11, value("x")) + blob(12, value("y")))


def nested_function_graphs(depth):
    body = nest(depth, LOOP_LAYERS, RELU)
    return net([node("F", domain="local")], functions=[function("F", "x", "y", [body])])


def nested_types(depth, field):
    """sequence(sequence(…)), map(…) or optional(…) as the type of an input."""
    inner = (2, num(1, 7)) if field == 5 else (1, b"")
    deep = Type(nest(depth, [(field, b""), inner], tensor_type([1])))
    return net([RELU], inputs=[value("x"), value("deep", kind=deep)])


def groups(depth, ended=True):
    """An unknown field written as groups in groups."""
    return PLAIN + tag(99, 3) * depth + (tag(99, 4) * depth if ended else b"")


def sparse_file(size, front=PLAIN):
    """A file of holes: huge to look at, nothing on the disk."""
    def layout(folder):
        with open(os.path.join(folder, "model.onnx"), "wb") as out:
            out.write(front)
            out.truncate(size)

    return layout


def huge_weight(folder):
    """One initializer of 5 GB inside the file: right, and its bytes are never touched."""
    size = 5 * 1000 * 1000 * 1000
    weight = b"".join(num(1, d) for d in (50000, 25000)) + num(2, 1) + blob(8, "w") + tag(9, 2) + varint(size)
    body_front = many(1, [node("MatMul", "x w")]) + blob(2, "g") + many(11, [value("x", (4, 50000))]) + \
        many(12, [value("y", None)])
    weight_front = tag(5, 2) + varint(len(weight) + size)
    front = num(1, 8) + blob(8, opset()) + tag(7, 2) + \
        varint(len(body_front) + len(weight_front) + len(weight) + size) + body_front + weight_front + weight
    with open(os.path.join(folder, "model.onnx"), "wb") as out:
        out.write(front)
        out.truncate(len(front) + size)


def varints():
    return [
        Case("varint_11_bytes", BAD, PLAIN + tag(1, 0) + b"\x80" * 10 + b"\x01"),
        Case("varint_100k_bytes", BAD, PLAIN + tag(1, 0) + b"\xff" * 100000 + b"\x01"),
        Case("varint_unterminated", BAD, PLAIN + tag(1, 0) + b"\xff\xff"),
        Case("varint_tag_unterminated", BAD, PLAIN + b"\x88"),
        Case("varint_too_many_bits", ODD, PLAIN + tag(1, 0) + b"\xff" * 9 + b"\x7f"),
        Case("varint_not_shortest", FINE, PLAIN + tag(1, 0) + b"\x88\x80\x80\x00"),
        Case("varint_tag_64_bits", BAD, PLAIN + b"\xf8" + b"\xff" * 8 + b"\x01" + b"\x00"),
        Case("all_ones", BAD, b"\xff" * 1000),
        Case("all_zeros", BAD, b"\x00" * 1000),
        Case("field_0", BAD, PLAIN + tag(0, 0) + b"\x01"),
        Case("field_0_length", BAD, PLAIN + tag(0, 2) + b"\x01x"),
        Case("field_max", FINE, num((1 << 29) - 1, 7) + PLAIN),
        Case("fields_unknown", FINE, PLAIN + num(77, 5) + blob(78, "bytes") + f32(79, 1.0) + tag(80, 1) + b"8 bytes!"),
        Case("wire_type_6", BAD, PLAIN + tag(5, 6) + b"\x01"),
        Case("wire_type_7", BAD, PLAIN + tag(5, 7) + b"\x01"),
        Case("fixed32_cut", BAD, PLAIN + tag(70, 5) + b"\x01\x02"),
        Case("fixed64_cut", BAD, PLAIN + tag(70, 1) + b"\x01\x02\x03"),
    ]


def lengths():
    front = num(1, 8) + blob(8, opset())
    return [
        Case("length_past_end", BAD, front + tag(7, 2) + varint(1000) + GRAPH),
        Case("length_one_past_end", BAD, front + tag(7, 2) + varint(len(GRAPH) + 1) + GRAPH),
        Case("length_2_31", BAD, front + tag(7, 2) + varint(1 << 31) + GRAPH),
        Case("length_2_63", BAD, front + tag(7, 2) + varint(1 << 63) + GRAPH),
        Case("length_2_64", BAD, front + tag(7, 2) + varint((1 << 64) - 1) + GRAPH),
        Case("length_wraps", BAD, front + tag(7, 2) + varint((1 << 64) - len(front)) + GRAPH),
        Case("length_inner_past_outer", BAD, front + blob(7, tag(1, 2) + varint(500) + RELU) + b"\x00" * 600),
        Case("length_inner_name", BAD, net([tag(3, 2) + varint(1 << 40) + b"n"])),
        Case("length_missing", BAD, front + tag(7, 2)),
        Case("packed_floats_of_7_bytes", BAD, net([node("Add", "x w")],
                                                  [tensor("w", [2], extra=blob(4, b"1234567"))])),
        Case("packed_ints_cut", BAD, net([node("Reshape", "x s")],
                                         [tensor("s", [2], 7, extra=blob(7, b"\x01\xff"))])),
        Case("packed_dims", FINE, net([node("Add", "x w")],
                                      [blob(1, varint(3) + varint(4)) + num(2, 1) + blob(8, "w") + blob(9, bytes(48))])),
        Case("unpacked_int64_data", FINE, net([node("Reshape", "x s")],
                                              [num(1, 2) + num(2, 7) + blob(8, "s") + num(7, 6) + num(7, 4)])),
        Case("sparse_file_300_mb", BAD, None, layout=sparse_file(300 << 20)),
        Case("sparse_file_8_gb", BAD, None, layout=sparse_file(8 << 30)),
        Case("sparse_file_only_holes", BAD, None, layout=sparse_file(8 << 30, b"")),
        Case("weight_of_5_gb", FINE, None, layout=huge_weight),
    ]


def wrong_types():
    double = tag(1, 1) + struct.pack("<d", 2.0)
    return [
        Case("graph_is_varint", BAD, num(1, 8) + blob(8, opset()) + num(7, 5)),
        Case("graph_is_fixed64", BAD, num(1, 8) + blob(8, opset()) + tag(7, 1) + b"12345678"),
        Case("graph_is_group", BAD, num(1, 8) + blob(8, opset()) + tag(7, 3) + GRAPH + tag(7, 4)),
        Case("dims_are_doubles", BAD, net([node("Add", "x w")], [double + num(2, 1) + blob(8, "w")])),
        Case("name_is_varint", BAD, net([RELU + num(3, 5)])),
        Case("op_type_is_varint", BAD, net([blob(1, "x") + blob(2, "y") + num(4, 5)])),
        Case("input_is_fixed32", BAD, net([RELU + tag(1, 5) + b"1234"])),
        Case("data_type_is_bytes", BAD, net([node("Add", "x w")], [num(1, 4) + blob(2, "one") + blob(8, "w")])),
        Case("raw_data_is_varint", BAD, net([node("Add", "x w")], [num(1, 4) + num(2, 1) + blob(8, "w") + num(9, 4)])),
        Case("dim_value_is_bytes", BAD, net([RELU], inputs=[blob(1, "x") + blob(2, blob(1, num(1, 1) + blob(2, blob(1, blob(1, "2")))))])),
        Case("attribute_int_is_bytes", BAD, net([node("Softmax") + blob(5, blob(1, "axis") + blob(3, "1") + num(20, 2))]),
             pattern="axis|Softmax|attribute"),
        Case("ir_version_is_bytes", BAD, blob(1, "8") + PLAIN),
        Case("opset_import_is_varint", BAD, PLAIN + num(8, 17)),
    ]


def depths():
    cases = []
    for depth, exits in ((100, LOOSE), (10 ** 4, BAD), (10 ** 6, BAD)):
        cases += [
            Case("graphs_%d_deep" % depth, exits, lambda d=depth: nested_graphs(d)),
            Case("sequence_types_%d_deep" % depth, exits, lambda d=depth: nested_types(d, 4)),
            Case("map_types_%d_deep" % depth, exits, lambda d=depth: nested_types(d, 5)),
            Case("groups_%d_deep" % depth, ODD, lambda d=depth: groups(d)),
            Case("groups_%d_open" % depth, BAD, lambda d=depth: groups(d, False)),
        ]
    for depth, exits in ((100, LOOSE), (10 ** 4, BAD)):
        cases += [
            Case("function_graphs_%d_deep" % depth, exits, lambda d=depth: nested_function_graphs(d)),
            Case("optional_types_%d_deep" % depth, exits, lambda d=depth: nested_types(d, 9)),
        ]
    return cases


def masses():
    """Very many of something small."""
    million = 10 ** 6
    return [
        Case("metadata_million", FINE, lambda: PLAIN + (blob(14, blob(1, "k") + blob(2, "v"))) * million),
        Case("nodes_million_empty", BAD, lambda: net([b""] * million)),
        Case("initializers_million_empty", BAD, lambda: net([RELU], [b""] * million)),
        Case("functions_million_empty", LOOSE, lambda: net([RELU], functions=[b""] * million)),
        Case("inputs_million_empty", BAD, lambda: net([RELU], inputs=[value("x")] + [b""] * million)),
        Case("opsets_million", LOOSE, lambda: PLAIN + blob(8, opset()) * million),
        Case("attributes_100k", ODD, lambda: net([RELU + b"".join(
            blob(5, attribute("a%d" % i, i)) for i in range(100000))])),
        Case("doc_string_30_mb", FINE, lambda: PLAIN + blob(6, b"d" * 30000000)),
        Case("dims_million", BAD, lambda: net([node("Add", "x w")], [tensor("w", [1] * million)])),
        Case("shape_dims_million", BAD, lambda: net([RELU], inputs=[blob(1, "x") + blob(2, tensor_type([1]) + blob(
            1, num(1, 1) + blob(2, shape([1]) * million)))])),
        Case("initializers_100k", FINE, lambda: net([RELU], [floats("w%d" % i, [1.0]) for i in range(100000)])),
        Case("graph_twice", LOOSE, lambda: PLAIN + blob(7, GRAPH)),
        Case("graph_million_times", LOOSE, lambda: PLAIN + blob(7, b"") * million),
    ]


def versions():
    body = GRAPH
    return [
        Case("empty_file", BAD, b""),
        Case("text_file", BAD, b"This is not a model.\nIt is two lines of text.\n"),
        Case("png_file", BAD, b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
        Case("json_file", BAD, b'{"graph": {"node": []}}'),
        Case("no_graph", BAD, num(1, 8) + blob(8, opset()), pattern="graph"),
        Case("no_opset", BAD, model(body, imports=[]), pattern="opset"),
        Case("opset_0", ODD, model(body, [opset(0)]), pattern="opset"),
        Case("opset_6", ODD, model(body, [opset(6)]), pattern="opset"),
        Case("opset_negative", BAD, model(body, [opset(-1)]), pattern="opset"),
        Case("opset_2_62", LOOSE, model(body, [opset(1 << 62)])),
        Case("opset_twice", ODD, model(body, [opset(17), opset(11)])),
        Case("opset_only_other_domain", LOOSE, model(body, [opset(1, "com.microsoft")])),
        Case("opset_domain_10k_times", ODD, lambda: model(body, [opset()] + [opset(1, "d%d" % i) for i in range(10000)])),
        Case("ir_version_missing", ODD, blob(8, opset()) + blob(7, body)),
        Case("ir_version_negative", ODD, num(1, -5) + blob(8, opset()) + blob(7, body)),
        Case("ir_version_huge", ODD, num(1, 1 << 62) + blob(8, opset()) + blob(7, body)),
        Case("graph_empty", LOOSE, model(b"")),
        Case("graph_without_nodes", LOOSE, net([], outputs=[value("x")])),
    ]


def cases():
    return varints() + lengths() + wrong_types() + depths() + masses() + versions()
