"""Hostile structure: well-formed messages whose names, references, tensors or attributes make no sense."""
from case import BAD, FINE, LOOSE, ODD, Case
from wire import (BOOL, DOUBLE, FLOAT, INT64, STRING, Type, attribute, blob, external, f32, floats, graph, ints,
                  many, model, net, node, num, sparse, tensor, tensor_type, value)

RELU = node("Relu")

# What any string of a model may hold. None of it may reach a terminal or a log as it is.
NASTY = [
    ("newline", b"a\nextract_ops: all is well", FINE),
    ("carriage_return", b"a\rb", FINE),
    ("nul", b"a\0b", LOOSE),
    ("quotes", b"a\"b'c`d", FINE),
    ("comment_end", b"*/ evil(); /*", FINE),
    ("terminal", b"\x1b]0;owned\x07\x1b[2J\x1b[31m", FINE),
    ("c1_control", "a\u009b31mb".encode(), FINE),
    ("broken_utf8", b"a\xff\xfe\xc3(", LOOSE),
    ("overlong_utf8", b"a\xc0\xafb\xe0\x80\xaf", LOOSE),
    ("surrogate_utf8", b"a\xed\xa0\x80b", LOOSE),
    ("cut_utf8", b"a\xe2\x82", LOOSE),
    ("bidi", "a\u202egnp.exe".encode(), FINE),
    ("html", b"<script>alert(1)</script>", FINE),
    ("format", b"%s%s%n%x%99999d", FINE),
    ("path", b"../../../../etc/passwd", FINE),
    ("backslash", b"a\\u0000\\\"b\\", FINE),
    ("only_space", b" ", FINE),
    ("megabyte", b"n" * 1000000, FINE),
    ("megabyte_controls", b"\x1b" * 1000000, FINE),
]


def named(x, failing):
    """A model with x wherever a string can stand; failing: a node of that name whose shapes do not fit."""
    nodes = [node("Add", ["x", b"w" + x], [b"t" + x], name=x)]
    if failing:
        nodes.append(node("MatMul", [b"t" + x, b"w" + x], ["y"], name=x))
    else:
        nodes.append(node("Relu", [b"t" + x], ["y"], name=x + b"2"))
    body = graph(nodes, [value("x")], [value("y", None)], [floats(b"w" + x, [1.0] * 5 if failing else [1.0])], name=x)
    return model(body, extra=blob(2, x) + blob(3, x) + blob(6, x) + blob(14, blob(1, x) + blob(2, x)))


def names():
    cases = [Case("name_%s" % n, exits, lambda x=x: named(x, False)) for n, x, exits in NASTY]
    cases += [Case("name_%s_refused" % n, BAD, lambda x=x: named(x, True), pattern="Add|UTF-8|NUL|name")
              for n, x, _ in NASTY]
    nasty = b"\x1b[31m\n*/\"\xff"
    cases += [
        Case("op_type_nasty", (1, 3), net([node(nasty)])),
        Case("op_type_megabyte", (1, 3), lambda: net([node(b"Op" * 500000)])),
        Case("domain_nasty", (1, 3), net([node("Relu", domain=nasty)])),
        Case("dim_param_nasty", LOOSE, net([RELU], inputs=[value("x", (nasty, 3))])),
        Case("dim_param_megabyte", LOOSE, lambda: net([RELU], inputs=[value("x", (b"N" * 1000000, 3))])),
        Case("dim_params_10k", FINE, lambda: net([RELU], inputs=[value("x")] + [
            value("in%d" % i, ("sym%d" % i,)) for i in range(10000)])),
        Case("attribute_name_nasty", LOOSE, net([node("Relu", extra=blob(5, attribute(nasty, 1)))])),
        Case("attribute_string_nasty", BAD, net([node("Conv", "x w", auto_pad=nasty)], [floats("w", [1.0], [1, 3, 1])])),
        Case("producer_nasty", LOOSE, model(graph([RELU], [value("x")], [value("y", None)]), extra=blob(2, nasty))),
    ]
    return cases


def cycles():
    c = node("Constant", "", "c", value=tensor("", [], BOOL, [1]))
    inner = lambda name: graph([node("Relu", name, "r")], outputs=[value("r", None)])
    return [
        Case("self_reference", BAD, net([node("Relu", "y", "y")]), pattern="cycl|itself|before|undefined|order|y"),
        Case("cycle_of_2", BAD, net([node("Relu", "b", "a"), node("Relu", "a", "b"), RELU]), pattern="cycl"),
        Case("cycle_of_100k", BAD, lambda: net([RELU] + [
            node("Relu", "t%d" % i, "t%d" % ((i + 1) % 100000)) for i in range(100000)]), pattern="cycl"),
        Case("cycle_through_body", BAD, net([c, node("If", "c", "y", then_branch=inner("y"), else_branch=inner("x"))]),
             pattern="cycl|undefined|y"),
        Case("unsorted_nodes", ODD, net([node("Relu", "t"), node("Relu", "x", "t")])),
        Case("unsorted_100k", ODD, lambda: net([node("Relu", "t0")] + [
            node("Relu", "t%d" % (i + 1), "t%d" % i) for i in range(99999)] + [node("Relu", "x", "t99999")]), seconds=3.0),
        Case("chain_100k", FINE, lambda: net([node("Relu", "x", "t0")] + [
            node("Relu", "t%d" % i, "t%d" % (i + 1)) for i in range(99999)] + [node("Relu", "t99999")]), seconds=3.0),
        Case("fan_out_100k", FINE, lambda: net([node("Relu", "x", "t%d" % i) for i in range(100000)] + [RELU]),
             seconds=3.0),
    ]


def references():
    dup = [floats("w", [1.0]), floats("w", [2.0])]
    return [
        Case("output_twice", BAD, net([node("Relu", "x", "t"), node("Abs", "x", "t"), node("Relu", "t")]), pattern="t"),
        Case("output_twice_in_node", BAD, net([node("Split", "x", "t t", axis=0), node("Relu", "t")])),
        Case("output_is_input", BAD, net([node("Relu", "x", "x"), RELU])),
        Case("output_is_initializer", BAD, net([node("Relu", "x", "w"), node("Add", "x w")], [floats("w", [1.0])])),
        Case("initializer_twice", BAD, net([node("Add", "x w")], dup), pattern="w"),
        Case("initializer_without_name", LOOSE, net([RELU], [floats("", [1.0])])),
        Case("input_twice", BAD, net([RELU], inputs=[value("x"), value("x")]), pattern="x"),
        Case("input_without_name", LOOSE, net([RELU], inputs=[value("x"), value("")])),
        Case("graph_output_twice", ODD, net([RELU], outputs=[value("y", None), value("y", None)])),
        Case("graph_output_undefined", BAD, net([RELU], outputs=[value("nowhere", None)]), pattern="nowhere"),
        Case("graph_output_without_name", LOOSE, net([RELU], outputs=[value("", None)])),
        Case("graph_without_outputs", ODD, net([RELU], outputs=[])),
        Case("input_undefined", BAD, net([node("Relu", "nowhere")]), pattern="nowhere"),
        Case("input_left_out", BAD, net([node("Relu", [""])])),
        Case("input_left_out_add", BAD, net([node("Add", ["x", ""])])),
        Case("node_without_inputs", BAD, net([node("Relu", [])])),
        Case("node_without_outputs", LOOSE, net([node("Relu", "x", []), RELU])),
        Case("node_with_unnamed_outputs", LOOSE, net([node("Relu", "x", [""]), RELU])),
        Case("node_without_op_type", BAD, net([blob(1, "x") + blob(2, "y")])),
        Case("node_unknown_op", (1,), net([node("NoSuchOperator")])),
        Case("node_unknown_op_without_tensors", (1,), net([node("NoSuchOperator", [], [])], inputs=[], outputs=[])),
        Case("node_too_few_inputs", BAD, net([node("Conv")]), pattern="Conv"),
        Case("node_too_many_inputs", BAD, net([node("Relu", "x x x")]), pattern="Relu"),
        Case("node_too_many_outputs", BAD, net([node("Relu", "x", "y z")]), pattern="Relu"),
        Case("add_million_inputs", BAD, lambda: net([node("Add", ["x"] * 10 ** 6)]), pattern="Add"),
        Case("sum_million_inputs", ODD, lambda: net([node("Sum", ["x"] * 10 ** 6)]), seconds=3.0),
        Case("split_million_outputs", BAD, lambda: net([node("Split", "x", ["o%d" % i for i in range(10 ** 6)], axis=0)],
                                                       outputs=[value("o1", None)]), seconds=3.0),
        Case("node_names_twice", FINE, net([node("Relu", "x", "t", name="n"), node("Relu", "t", name="n")])),
        Case("node_name_like_a_made_one", FINE, net([node("Relu", "x", "t", name="Relu_1"), node("Relu", "t")])),
        Case("value_info_contradicts", ODD, net([node("Relu", "x", "t"), node("Relu", "t")],
                                                infos=[value("t", (9, 9))])),
        Case("value_info_other_type", LOOSE, net([node("Relu", "x", "t"), node("Relu", "t")],
                                                 infos=[value("t", (2, 3, 4), INT64)])),
        Case("value_info_for_nothing", FINE, net([RELU], infos=[value("ghost", (9, 9))])),
        Case("value_info_twice", LOOSE, net([node("Relu", "x", "t"), node("Relu", "t")],
                                            infos=[value("t"), value("t", (1,))])),
        Case("output_contradicts", ODD, net([RELU], outputs=[value("y", (7, 7))])),
    ]


def dims():
    big = 1 << 40
    inp = lambda d, kind=FLOAT: net([RELU], inputs=[value("x", d, kind)])
    return [
        Case("dims_product_overflows", BAD, inp((big, big)), pattern="x"),
        Case("dims_product_wraps_to_0", BAD, inp((1 << 32, 1 << 32)), pattern="x"),
        Case("dims_bytes_overflow", BAD, inp((1 << 62,))),
        Case("dims_huge_times_0", LOOSE, inp((big, big, 0))),
        Case("dim_max", BAD, inp(((1 << 63) - 1,))),
        Case("dim_negative", ODD, inp((-1, 3)), pattern="x"),
        Case("dim_min", BAD, inp((-(1 << 63),)), pattern="x"),
        Case("dim_0", FINE, inp((0, 3))),
        Case("rank_65", BAD, inp([1] * 65), pattern="rank|dim|x"),
        Case("rank_10k", BAD, lambda: inp([1] * 10000), pattern="rank|dim|x"),
        Case("rank_0", FINE, inp(())),
        Case("rank_unknown", LOOSE, net([RELU], inputs=[value("x", kind=tensor_type(None))])),
        Case("dim_nothing", FINE, inp((None, None))),
        Case("dim_param_empty", FINE, inp(("", 3))),
        Case("elem_type_0", LOOSE, inp((2,), 0)),
        Case("elem_type_99", BAD, inp((2,), 99), pattern="type"),
        Case("elem_type_negative", BAD, inp((2,), -1), pattern="type"),
        Case("elem_type_2_62", ODD, inp((2,), 1 << 62), pattern="type"),
        Case("input_without_type", LOOSE, net([RELU], inputs=[blob(1, "x")])),
        Case("input_type_empty", LOOSE, net([RELU], inputs=[blob(1, "x") + blob(2, b"")])),
        Case("input_sequence_into_relu", (1, 3), net([RELU], inputs=[value("x", kind=Type(
            blob(4, blob(1, tensor_type([2])))))])),
        Case("input_map_into_relu", (1, 3), net([RELU], inputs=[value("x", kind=Type(
            blob(5, num(1, 7) + blob(2, tensor_type([2])))))])),
    ]


def tensors():
    w = lambda t: net([node("Add", "x w")], [t])
    big = 1 << 40
    return [
        Case("raw_too_short", BAD, w(tensor("w", [4], raw=bytes(15))), pattern="w"),
        Case("raw_too_long", BAD, w(tensor("w", [4], raw=bytes(17))), pattern="w"),
        Case("raw_empty", BAD, w(tensor("w", [4], raw=b"")), pattern="w"),
        Case("raw_4_bit_too_short", BAD, w(tensor("w", [5], 22, raw=bytes(2))), pattern="w"),
        Case("typed_too_short", BAD, w(tensor("w", [4], data=[1.0] * 3)), pattern="w"),
        Case("typed_too_long", BAD, w(tensor("w", [4], data=[1.0] * 5)), pattern="w"),
        Case("typed_and_raw", ODD, w(tensor("w", [4], data=[1.0] * 4, raw=bytes(16)))),
        Case("typed_of_another_type", BAD, w(tensor("w", [1], DOUBLE, data=[7]))),
        Case("no_data", LOOSE, w(tensor("w", [4]))),
        Case("tensor_type_0", BAD, w(tensor("w", [4], 0, raw=bytes(16))), pattern="w"),
        Case("tensor_type_27", BAD, w(tensor("w", [4], 27, raw=bytes(16))), pattern="w"),
        Case("tensor_type_99", BAD, w(tensor("w", [4], 99, raw=bytes(16))), pattern="w"),
        Case("tensor_type_negative", BAD, w(tensor("w", [4], -1, raw=bytes(16))), pattern="w"),
        Case("tensor_type_2_40", BAD, w(tensor("w", [4], big, raw=bytes(16))), pattern="w"),
        Case("tensor_dims_overflow", BAD, w(tensor("w", [big, big], raw=bytes(16))), pattern="w"),
        Case("tensor_dims_wrap", BAD, w(tensor("w", [1 << 32, 1 << 32], raw=b"")), pattern="w"),
        Case("tensor_dims_wrap_bytes", BAD, w(tensor("w", [1 << 62], raw=b"")), pattern="w"),
        Case("tensor_dim_negative", BAD, w(tensor("w", [-4], raw=bytes(16))), pattern="w"),
        Case("tensor_dims_negative_pair", BAD, w(tensor("w", [-2, -2], raw=bytes(16))), pattern="w"),
        Case("tensor_rank_65", BAD, w(tensor("w", [1] * 65, raw=bytes(4))), pattern="w"),
        Case("tensor_segment", LOOSE, w(tensor("w", [4], raw=bytes(16), extra=blob(3, num(1, 5) + num(2, 1))))),
        Case("string_tensor", (0, 1, 3), w(tensor("w", [2], STRING, [b"a\0b", b"\xff"]))),
        Case("string_tensor_raw", BAD, w(tensor("w", [2], STRING, raw=b"ab"))),
        Case("string_tensor_short", (0, 1, 3), w(tensor("w", [20], STRING, [b"a"]))),
        Case("strings_as_shape", LOOSE, net([node("Reshape", "x s")], [tensor("s", [2], STRING, [b"6", b"4"])])),
        Case("location_7", LOOSE, w(tensor("w", [4], raw=bytes(16), extra=num(14, 7)))),
        Case("constant_without_value", BAD, net([node("Constant", "", "w"), node("Add", "x w")]), pattern="Constant"),
        Case("constant_two_values", LOOSE, net([node("Constant", "", "w", value_int=1, value_float=1.0),
                                                node("Add", "x w")])),
        Case("constant_dims_overflow", BAD, net([node("Constant", "", "w", value=tensor("", [big, big])),
                                                 node("Add", "x w")])),
    ]


def sparses():
    body = lambda s: model(graph([node("Add", "x w")], [value("x")], [value("y", None)], sparse_inits=[s]))
    one = floats("w", [1.0])
    as_shape = lambda at, dims, index=None: net([node("Reshape", "x s")], sparse_inits=[
        sparse(ints("s", [6, 4]), ints("", at, index), dims)])
    return [
        Case("sparse_right", FINE, body(sparse(one, ints("", [2]), [4]))),
        Case("sparse_index_past_end_in_weight", ODD, body(sparse(one, ints("", [4]), [4])), pattern="w"),
        Case("sparse_right_as_shape", FINE, as_shape([0, 1], [2])),
        Case("sparse_index_past_end", BAD, as_shape([0, 2], [2]), pattern="s"),
        Case("sparse_index_negative", BAD, as_shape([-1, 0], [2]), pattern="s"),
        Case("sparse_index_2_62", BAD, as_shape([0, 1 << 62], [2]), pattern="s"),
        Case("sparse_index_min", BAD, as_shape([0, -(1 << 63)], [2]), pattern="s"),
        Case("sparse_index_2d_past_end", LOOSE, as_shape([0, 1, 0, 2], [1, 2], [2, 2])),
        Case("sparse_counts_differ", BAD, body(sparse(one, ints("", [0, 1]), [4])), pattern="w"),
        Case("sparse_more_values_than_places", BAD, body(sparse(floats("w", [1.0] * 5), ints("", [0, 1, 2, 3, 3]), [4]))),
        Case("sparse_unsorted", ODD, body(sparse(floats("w", [1.0, 2.0]), ints("", [3, 1]), [4]))),
        Case("sparse_dims_overflow", BAD, body(sparse(one, ints("", [0]), [1 << 40, 1 << 40]))),
        Case("sparse_dim_negative", BAD, body(sparse(one, ints("", [0]), [-4]))),
        Case("sparse_without_values", BAD, body(b"")),
        Case("sparse_without_indices", BAD, body(blob(1, one) + num(3, 4))),
        Case("sparse_indices_float", BAD, body(sparse(one, floats("", [0.0]), [4]))),
        Case("sparse_indices_overflow", BAD, body(sparse(one, tensor("", [1 << 40, 1 << 40], INT64), [4]))),
        Case("sparse_huge_as_shape", LOOSE, net([node("Reshape", "x s")], sparse_inits=[
            sparse(tensor("s", [1], INT64, [6]), ints("", [0]), [1 << 40])])),
        Case("sparse_attribute_empty", BAD, net([blob(2, "w") + blob(4, "Constant") + blob(
            5, blob(1, "sparse_value") + blob(22, b"") + num(20, 11)), node("Add", "x w")])),
    ]


def attributes():
    soft = lambda raw: net([node("Softmax", extra=blob(5, raw))])
    conv = lambda **a: net([node("Conv", "x w", **a)], [floats("w", [1.0] * 9, [1, 3, 3])])
    return [
        Case("attribute_float_for_int", BAD, soft(blob(1, "axis") + f32(2, 1.0) + num(20, 1)), pattern="axis"),
        Case("attribute_string_for_int", BAD, soft(attribute("axis", "1")), pattern="axis"),
        Case("attribute_ints_for_int", BAD, soft(attribute("axis", [1, 2])), pattern="axis"),
        Case("attribute_int_for_ints", BAD, conv(strides=2), pattern="strides"),
        Case("attribute_tensor_for_ints", BAD, conv(strides=ints("", [2])), pattern="strides"),
        Case("attribute_graph_for_ints", BAD, conv(strides=graph([RELU])), pattern="."),
        Case("attribute_twice", BAD, net([node("Softmax", extra=blob(5, attribute("axis", 1)) + blob(
            5, attribute("axis", 2)))]), pattern="axis"),
        Case("attribute_without_name", ODD, soft(num(3, 1) + num(20, 2))),
        Case("attribute_without_type", ODD, soft(blob(1, "axis") + num(3, 1))),
        Case("attribute_type_lies", ODD, soft(blob(1, "axis") + num(3, 1) + num(20, 3))),
        Case("attribute_type_99", BAD, soft(blob(1, "axis") + num(3, 1) + num(20, 99))),
        Case("attribute_type_without_value", LOOSE, net([node("Constant", "", "w", extra=blob(
            5, blob(1, "value") + num(20, 4))), node("Add", "x w")])),
        Case("attribute_ref_outside_function", BAD, soft(blob(1, "axis") + num(20, 2) + blob(21, "axis"))),
        Case("attribute_all_fields", LOOSE, soft(blob(1, "axis") + f32(2, 1.0) + num(3, 1) + blob(4, "s") + blob(
            5, floats("", [1.0])) + blob(6, graph([RELU])) + num(20, 2))),
        Case("attribute_ints_million", BAD, lambda: conv(strides=[1] * 10 ** 6)),
        Case("attribute_graph_on_relu", LOOSE, net([node("Relu", body=graph([RELU]))])),
        Case("attribute_graphs_list", LOOSE, net([node("Relu", extra=blob(
            5, blob(1, "bodies") + many(11, [graph([RELU])] * 1000) + num(20, 10)))])),
        Case("constant_of_two_values", BAD, net([node("Constant", "", "w", value=floats("", [1.0]), value_ints=[1, 2]),
                                                 node("Add", "x w")]), pattern="value"),
        Case("constant_dense_and_sparse", BAD, net([node("Constant", "", "w", value=floats("", [1.0]), sparse_value=sparse(
            floats("", [1.0]), ints("", [0]), [1])), node("Add", "x w")]), pattern="value"),
        Case("constant_with_another_tensor", LOOSE, net([node("Constant", "", "a", value=external(
            "a", [4], "missing.bin", INT64), zz=ints("q", [1])), node("Add", "a b", "c"), node("Reshape", "x c")],
            [ints("b", [1, 2, 3, 4])])),
        Case("attribute_external_tensor", LOOSE, net([node("Constant", "", "w", value=external(
            "", [1 << 20], "../w.bin")), node("Add", "x w")])),
    ]


def cases():
    return names() + cycles() + references() + dims() + tensors() + sparses() + attributes()
