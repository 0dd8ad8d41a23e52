"""Hostile size: graphs that are right but large or tangled, to find work that grows faster than the file."""
from case import BAD, FINE, LOOSE, ODD, Case
from cases_control import COND, body, call
from seeds import w
from wire import BOOL, INT64, floats, function, ints, net, node, value

MANY = 20000
RELU = node("Relu")


def chain(op, count, first="x", stem="t", **attrs):
    return [node(op, first if i == 0 else "%s%d" % (stem, i - 1), "%s%d" % (stem, i), **attrs) for i in range(count)]


def tangled():
    """Long ways that patterns look through, with many who look."""
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


def masks():
    return [Case("attention_of_%d" % n, FINE if n < 1 << 26 else ODD, causal_attention(n))
            for n in (64, 4095, 4096, 4097, 1 << 20, 1 << 26, 1 << 30)] + [
        Case("attention_of_2_40", BAD, causal_attention(1 << 40))]


def cases():
    return tangled() + varied() + masks()
