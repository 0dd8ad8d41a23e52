"""Hostile size: graphs that are right but large or tangled, to find work that grows faster than the file."""
from case import BAD, FINE, LOOSE, ODD, OPEN, Case
from cases_control import COND, body, call
from seeds import w
from wire import BOOL, INT64, Graph, blob, floats, function, graph, ints, model, net, node, num, opset, value

MANY = 20000
TRAINING = "ai.onnx.preview.training"
RELU = node("Relu")


def chain(op, count, first="x", stem="t", more="", **attrs):
    return [node(op, (first if i == 0 else "%s%d" % (stem, i - 1)) + more, "%s%d" % (stem, i), **attrs) for i in range(count)]


def tangled():
    """Long ways that patterns look through, with many that look."""
    last = "t%d" % (MANY - 1)
    looks = lambda op, ins: [node(op, ins, "z%d" % i) for i in range(MANY)]
    square = [value("x", (4, 4))]
    same_names = [node("Relu", "x", "t%d" % i, name="n") for i in range(100000)]
    near_names = [node("Relu", "x", "t%d" % i, name="n_%d" % (i // 2)) for i in range(50000)]
    fibonacci = [node("Add", "x x", "t0"), node("Mul", "t0 x", "t1")] + [
        node("Add" if i % 2 else "Mul", "t%d t%d" % (i - 1, i - 2), "t%d" % i) for i in range(2, 30000)]
    return [
        Case("identities_seen_by_matmuls", FINE, lambda: net(
            chain("Identity", MANY) + looks("MatMul", [last, last]) + [RELU], inputs=square), seconds=2.0),
        Case("transposes_seen_by_matmuls", FINE, lambda: net(
            chain("Transpose", MANY, perm=[1, 0]) + looks("MatMul", [last, last]) + [RELU], inputs=square), seconds=2.0),
        Case("reshapes_seen_by_softmaxes", FINE, lambda: net(
            [node("Reshape", "x s" if i == 0 else "t%d s" % (i - 1), "t%d" % i) for i in range(MANY)] +
            looks("Softmax", [last]) + [RELU], [ints("s", [4, 4])], square), seconds=2.0),
        Case("softmax_with_20k_users", FINE, lambda: net(
            [node("Softmax", "x", last)] + looks("MatMul", [last, "x"]) + [RELU], inputs=square), seconds=2.0),
        Case("divisions_by_20k_sums", FINE, lambda: net(
            [node("Mul", "x x", "q"), node("ReduceMean", "q", "m", axes=[-1])] +
            [n for i in range(MANY // 4) for n in (node("Add", "m e", "a%d" % i), node("Sqrt", "a%d" % i, "b%d" % i),
                                                   node("Div", "x b%d" % i, "z%d" % i))] + [RELU],
            [w("e")], square), seconds=2.0),
        Case("elementwise_fibonacci", FINE, lambda: net(fibonacci + [RELU]), seconds=2.0),
        Case("casts_20k", FINE, lambda: net(
            [node("Cast", "x" if i == 0 else "t%d" % (i - 1), "t%d" % i, to=1 + 9 * (i % 2)) for i in range(MANY)] +
            looks("Relu", [last]) + [RELU]), seconds=2.0),
        Case("names_same_100k", FINE, lambda: net(same_names + [RELU]), seconds=3.0),
        Case("names_near_50k", FINE, lambda: net(near_names + [RELU]), seconds=3.0),
        Case("residual_gemms_10k", FINE, lambda: net(
            [n for i in range(10000) for n in (
                node("MatMul", "%s w" % ("x" if i == 0 else "t%d" % (i - 1)), "m%d" % i),
                node("Add", "m%d b" % i, "a%d" % i), node("Relu", "a%d" % i, "r%d" % i),
                node("Add", "r%d x" % i, "t%d" % i))] + [RELU], [w("w", 4, 4), w("b", 4)], square), seconds=3.0),
        Case("projections_inside_5k", FINE, lambda: net(
            chain("Attention", 5000, more=" w b", domain="com.microsoft", num_heads=1) + [node("Relu", "t4999")],
            [w("w", 4, 12), w("b", 12)], [value("x", (2, 3, 4))]), seconds=2.0),
        Case("names_of_parts_taken_20k", FINE, lambda: net(
            [node("Relu", "x", "z%d" % i, name="n/Split" + ("_%d" % i if i else "")) for i in range(MANY)] +
            [node("MultiHeadAttention", "x", "y", name="n", domain="com.microsoft", num_heads=1)],
            inputs=[value("x", (2, 3, 12))]), seconds=2.0),
        Case("steps_of_training_400", FINE, lambda: model(graph(
            [node("Adam", "r s" + " x" * 96, " ".join("t%d_%d" % (i, k) for k in range(72)), domain=TRAINING) for i in range(400)] + [RELU],
            [value("r", ()), value("s", (), INT64), value("x")], [value("y", None)]), [opset(17), opset(1, TRAINING)]), seconds=3.0),
        Case("projections_share_an_input_20k", FINE, lambda: net(looks("MatMul", ["x", "w"]) + [RELU], [w("w", 4, 4)], square),
             seconds=2.0),
    ]


def varied():
    """Many different operations, so that nothing is counted together."""
    slices = [node("Slice", "x z e%d" % i, "z%d" % i) for i in range(10000)]
    ends = [ints("e%d" % i, [i + 1]) for i in range(10000)]
    ifs = [node("If", "c", "z%d" % i, then_branch=body([node("Relu", "x", "r")], [], ["r"]),
                else_branch=body([node("Abs", "x", "r")], [], ["r"])) for i in range(5000)]
    mapped = node("SequenceMap", "q", "p", body=body([node("Relu", "e", "o")], ["e"], ["o"]))
    return [
        Case("slices_10k_different", FINE, lambda: net(slices + [RELU], ends + [ints("z", [0])], [value("x", (20000, 2))]),
             seconds=2.0),
        Case("ifs_5000", FINE, lambda: net([COND] + ifs + [RELU]), seconds=2.0),
        Case("attributes_100_of_1000_nodes", ODD, lambda: net([node("Relu", "x", "z%d" % i, **{
            "a%d" % k: k for k in range(100)}) for i in range(1000)] + [RELU])),
        Case("opsets_and_functions_5000", FINE, lambda: net([call("f4999", "x", "z")] + [RELU], functions=[
            function("f%d" % i, "x", "y", [RELU]) for i in range(5000)])),
        Case("function_body_of_1000_called_1000_times", LOOSE, lambda: net(
            [call("F", "x", "z%d" % i) for i in range(1000)] + [RELU],
            functions=[function("F", "x", "y", chain("Relu", 1000) + [node("Relu", "t999")])]), seconds=6.0),
        Case("names_of_a_megabyte_called_deep", LOOSE, lambda: net([call("f0", "x", "y")], functions=[
            function("f%d" % i, "x", "y", [node("f%d" % (i + 1), domain="local", name="n" * 50000)]) for i in range(99)] +
            [function("f99", "x", "y", [RELU])])),
        Case("concat_50k_inputs", FINE, lambda: net([node("Concat", ["x"] * 50000, ["y"], axis=0)])),
        Case("einsum_10k_inputs", LOOSE, lambda: net([node("Einsum", ["x"] * 10000, ["y"], equation=",".join(["abc"] * 10000) + "->a")])),
        Case("sequence_map_4000", LOOSE, lambda: net([node("SequenceConstruct", ["x"] * 4000, ["q"]), mapped,
                                                      node("ConcatFromSequence", "p", axis=0)])),
        Case("loop_of_1000_with_body_of_1000", LOOSE, lambda: net(
            [COND, node("Loop", "n c v", "u", body=body(
                [node("Identity", "k", "k2")] + [node("Add", "s s" if i == 0 else "t%d one" % (i - 1), "t%d" % i) for i in range(1000)] +
                [node("Concat", "t999 one", "s2", axis=0)],
                [("i", (), INT64), ("k", (), BOOL), "s"], ["k2", "s2"])), node("ReduceSum", "u", "y")],
            [ints("n", [1000], []), ints("v", [1]), ints("one", [1])]), seconds=2.0),
        Case("external_ints_2000", FINE, lambda: net(
            [node("Reshape", "x s%d" % i, "z%d" % i) for i in range(2000)] + [RELU],
            [ints("s%d" % i, [6, 4]) for i in range(2000)])),
    ]


def causal_attention(length):
    """Attention with a causal mask by arithmetic on positions, for so many positions."""
    nodes = [node("Range", "zero n step", "pos"), node("Unsqueeze", "pos a0", "row"), node("Unsqueeze", "pos a1", "col"),
             node("Greater", "row col", "later"), node("Where", "later low zerof", "mask"),
             node("Transpose", "x", "k", perm=[0, 2, 1]), node("MatMul", "x k", "s"), node("Mul", "s scale", "ss"),
             node("Add", "ss mask", "sm"), node("Softmax", "sm", "p", axis=-1), node("MatMul", "p x", "y")]
    inits = [ints("n", [length], []), ints("zero", [0], []), ints("step", [1], []), ints("a0", [0]), ints("a1", [1]),
             floats("low", [-3.4e38], []), floats("zerof", [0.0], []), floats("scale", [0.125], [])]
    return net(nodes, inits, [value("x", (1, length, 8))])


def references(count):
    """A call of a function whose nodes all refer to the last of so many attributes."""
    last = blob(5, blob(1, "k") + blob(21, "z%d" % (count - 1)) + num(20, 2))
    return net([call("F", "x", "y", **{"z%d" % i: 1 for i in range(count)})], functions=[
        function("F", "a", "b", [node("Foo", "a", "t%d" % i, extra=last) for i in range(3000)] + [node("Relu", "a", "b")])])


def called(count, *nodes, attrs=(), outs="y", **more):
    """A function of these nodes that is called so many times."""
    return net([call("F", "x", "z%d" % i, **more) for i in range(count)] + [RELU],
               functions=[function("F", "x", outs, list(nodes) + [node("Relu", "x", "y")])])


def read_again():
    """Small functions called so often, or parts of a call referred to so often, that reading them again takes the time."""
    junk = num(31, 1) * 1000000
    body_of_junk = Graph(graph([node("Relu", "x", "q")], [], [value("q", None)]) + junk)
    refers = blob(5, blob(1, "then_branch") + blob(21, "g") + num(20, 5))
    many_ints = blob(5, blob(1, "k") + blob(8, bytes(1000000)) + num(20, 7))
    again = "read repeatedly"
    return [
        Case("call_4096_attributes_3000_references", OPEN, lambda: references(4096)),
        Case("call_100k_attributes_3000_references", BAD, lambda: references(100000), pattern="100000 attributes"),
        Case("call_attribute_twice", BAD, net([call("F", "x", "y", extra=blob(5, blob(1, "k") + num(3, 1)) * 2)], functions=[
            function("F", "x", "y", [RELU])]), pattern="'k' is given twice"),
        Case("function_unknown_fields_called_2000", BAD, lambda: called(2000, node("Relu", "x", "t", extra=junk)), pattern=again),
        Case("function_text_of_a_megabyte_called_2000", BAD, lambda: called(2000, node("Relu", "x", "t" * 1000000)),
             pattern=again + "|memory|needed"),
        Case("function_ints_of_a_megabyte_called_2000", BAD, lambda: called(2000, node("Foo", "x", "t", extra=many_ints)),
             pattern=again + "|memory|needed"),
        Case("function_tensors_called_20k", BAD, lambda: called(20000, node("Constant", "", "t", value=ints("", [1] * 60000))),
             pattern=again + "|memory|needed"),
        Case("function_200k_formals_called_2000", BAD, lambda: net(
            [call("F", "x", "z%d" % i) for i in range(2000)] + [RELU],
            functions=[function("F", ["x"] + ["f%d" % i for i in range(200000)], "y", [RELU])]), pattern=again),
        Case("call_graph_of_a_megabyte_2000_references", BAD, lambda: net(
            [call("F", "x", "y", g=body_of_junk)], functions=[function("F", "a", "b", [
                node("If", "a", "t%d" % i, extra=refers) for i in range(2000)] + [node("Relu", "a", "b")])]), pattern=again),
        Case("function_weights_called_100", FINE, lambda: called(
            100, node("Constant", "", "w", value=floats("", [0.5] * 100000, [100, 1000])))),
    ]


def spellings():
    """Inputs named like the sum of two lengths, each in another case."""
    letters = "total_sequence_length"
    small = [i for i, c in enumerate(letters) if c != "_"][:16]
    names = ["".join(c.upper() if i in small and n >> small.index(i) & 1 else c for i, c in enumerate(letters))
             for n in range(40000)]
    return net([RELU], inputs=[value("x")] + [value("i%d" % n, (name,)) for n, name in enumerate(names)])


def masks():
    return [Case("attention_of_%d" % n, FINE if n < 1 << 26 else ODD, causal_attention(n))
            for n in (64, 4095, 4096, 4097, 1 << 20, 1 << 26, 1 << 30)] + [
        Case("attention_of_2_40", BAD, causal_attention(1 << 40))]


def cases():
    return tangled() + varied() + masks() + read_again() + [
        Case("sums_spelt_in_40k_ways", FINE, spellings),
        Case("attributes_100k_of_softmax", BAD, lambda: net([node("Softmax", **{"a%d" % k: k for k in range(100000)})]),
             pattern="100000 attributes")]
