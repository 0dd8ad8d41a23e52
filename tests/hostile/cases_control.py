"""Hostile functions and control flow: what grows, loops or calls itself."""
from case import BAD, FINE, LOOSE, ODD, Case
from wire import BOOL, INT64, Graph, blob, floats, function, graph, ints, net, node, num, opset, tensor, value

HUGE = 1 << 62


def call(name, ins="x", outs="y", **attrs):
    return node(name, ins, outs, domain="local", **attrs)


def doubling(levels, width=2):
    """f0 calls f1 twice, f1 calls f2 twice …: 2^levels nodes from a few lines."""
    fs = []
    for i in range(levels):
        body = [call("f%d" % (i + 1), "x" if k == 0 else "t%d" % (k - 1), "y" if k == width - 1 else "t%d" % k)
                for k in range(width)]
        fs.append(function("f%d" % i, "x", "y", body))
    return net([call("f0")], functions=fs + [function("f%d" % levels, "x", "y", [node("Relu")])])


def chain(levels):
    fs = [function("f%d" % i, "x", "y", [call("f%d" % (i + 1))]) for i in range(levels)]
    return net([call("f0")], functions=fs + [function("f%d" % levels, "x", "y", [node("Relu")])])


def functions():
    relu = [node("Relu")]
    in_body = graph([call("F", "x", "r")], outputs=[value("r", None)])
    use = lambda *fs, **more: net([call("F")], functions=fs, **more)
    ref = lambda name, to, kind: blob(5, blob(1, name) + num(20, kind) + blob(21, to))
    return [
        Case("function_calls_itself", BAD, use(function("F", "x", "y", [call("F")])), pattern="F"),
        Case("function_mutual", BAD, use(function("F", "x", "y", [call("G")]), function("G", "x", "y", [call("F")])),
             pattern="F|G"),
        Case("function_cycle_of_1000", BAD, lambda: use(
            function("F", "x", "y", [call("f0")]),
            *[function("f%d" % i, "x", "y", [call("f%d" % ((i + 1) % 1000))]) for i in range(1000)])),
        Case("function_cycle_through_body", BAD, use(function("F", "x", "y", [
            node("Constant", "", "c", value=tensor("", [], BOOL, [1])),
            node("If", "c", "y", then_branch=in_body, else_branch=in_body)]))),
        Case("function_cycle_unused", LOOSE, net(relu, functions=[function("F", "x", "y", [call("F")])])),
        Case("functions_double_30", BAD, doubling(30)),
        Case("functions_double_1000", BAD, lambda: doubling(1000)),
        Case("functions_times_1000_cubed", BAD, lambda: doubling(3, 1000)),
        Case("functions_double_10", FINE, doubling(10)),
        Case("function_chain_100", LOOSE, chain(100)),
        Case("function_chain_10k", (0, 3), lambda: chain(10000)),
        Case("function_chain_100k", (0, 3), lambda: chain(100000)),
        Case("function_twice", BAD, use(function("F", "x", "y", relu), function("F", "x", "y", [node("Abs")]))),
        Case("function_without_name", LOOSE, net(relu, functions=[function("", "x", "y", relu)])),
        Case("function_too_many_arguments", BAD, net([call("F", "x x x")], functions=[function("F", "x", "y", relu)])),
        Case("function_too_few_arguments", LOOSE, net([call("F")], functions=[
            function("F", "x z", "y", [node("Add", "x z")])])),
        Case("function_too_many_results", BAD, net([call("F", "x", "y z")], functions=[function("F", "x", "y", relu)])),
        Case("function_undefined_inside", BAD, use(function("F", "x", "y", [node("Add", "x nowhere")]))),
        Case("function_reads_outer_name", BAD, net([call("F")], [floats("w", [1.0])], functions=[
            function("F", "x", "y", [node("Add", "x w")])])),
        Case("function_output_undefined", BAD, use(function("F", "x", "y", [node("Relu", "x", "t")]))),
        Case("function_output_is_input", ODD, use(function("F", "x", "x", relu))),
        Case("function_formals_twice", BAD, net([call("F", "x x")], functions=[function("F", "x x", "y", relu)])),
        Case("function_writes_formal", BAD, use(function("F", "x", "y", [node("Relu", "x", "x"), node("Relu")]))),
        Case("function_empty", BAD, use(function("F", "x", "y", []))),
        Case("function_opset_0", LOOSE, use(function("F", "x", "y", relu, imports=[opset(0)]))),
        Case("function_no_opset", LOOSE, use(function("F", "x", "y", relu, imports=[]))),
        Case("function_named_like_relu", LOOSE, net(relu, functions=[function("Relu", "x", "y", [node("Abs")], domain="")])),
        Case("function_ref_missing", LOOSE, use(function("F", "x", "y", [
            node("Softmax", extra=ref("axis", "nowhere", 2))]))),
        Case("function_ref_wrong_type", BAD, net([call("F", axis="text")], functions=[
            function("F", "x", "y", [node("Softmax", extra=ref("axis", "axis", 2))], attrs=["axis"])])),
        Case("function_ref_to_graph", LOOSE, net([call("F", g=graph(relu))], functions=[
            function("F", "x", "y", [node("Softmax", extra=ref("axis", "g", 5))], attrs=["g"])])),
        Case("function_cycle_in_nodes", BAD, use(function("F", "x", "y", [
            node("Relu", "b", "a"), node("Relu", "a", "b"), node("Add", "x a")]))),
        Case("functions_10k_unused", FINE, lambda: net(relu, functions=[
            function("f%d" % i, "x", "y", relu) for i in range(10000)])),
        Case("function_called_10k_times", FINE, lambda: net([call("F", "x", "t%d" % i) for i in range(10000)] + relu,
                                                            functions=[function("F", "x", "y", relu)])),
    ]


COND = node("Constant", "", "c", value=tensor("", [], BOOL, [1]))


def body(nodes, ins, outs):
    return graph(nodes, [value(*i) if isinstance(i, tuple) else value(i, None) for i in ins],
                 [value(o, None) for o in outs])


def step(nodes, state="s", result="s2"):
    """A Loop's body with one carried tensor."""
    return body(nodes + [node("Identity", "k", "k2")], [("i", (), INT64), ("k", (), BOOL), state], ["k2", result])


def loop(nodes, trips, ins="n c x", **more):
    return net([COND, node("Loop", ins, "y", body=step(nodes))], [ints("n", [trips], [])], **more)


def nested_loops(depth, trips, inmost="Relu", **attrs):
    inner = [node(inmost, "s s" if inmost == "Concat" else "s", "s2", **attrs)]
    for level in range(depth):
        inner = [node("Identity", "k", "kk%d" % level),
                 node("Loop", "n kk%d s" % level, "s2", body=Graph(step(inner)))]
    return net([COND, node("Loop", "n c x", "y", body=step(inner))], [ints("n", [trips], [])])


def nested_ifs(depth):
    """Both branches hold the next level, written out: doubles with every level."""
    branch = body([node("Relu", "x", "r")], [], ["r"])
    for _ in range(depth):
        branch = body([node("If", "c", "r", then_branch=branch, else_branch=branch)], [], ["r"])
    return net([COND, node("If", "c", "y", then_branch=branch, else_branch=branch)])


def tall_ifs(depth):
    branch = body([node("Relu", "x", "r")], [], ["r"])
    flat = branch
    for _ in range(depth):
        branch = body([node("If", "c", "r", then_branch=branch, else_branch=flat)], [], ["r"])
    return net([COND, node("If", "c", "y", then_branch=branch, else_branch=flat)])


def loops():
    keep = [node("Relu", "s", "s2")]
    grow = [node("Concat", "s s", "s2", axis=0)]
    deep = [node("Unsqueeze", "s a", "s2")]
    return [
        Case("loop_trips_2_62", LOOSE, loop(keep, HUGE)),
        Case("loop_trips_max", LOOSE, loop(keep, (1 << 63) - 1)),
        Case("loop_trips_negative", LOOSE, loop(keep, -1)),
        Case("loop_trips_0", LOOSE, loop(keep, 0)),
        Case("loop_grows_2_62_times", (1, 3), loop(grow, HUGE)),
        Case("loop_grows_100_times", (1, 3), loop(grow, 100)),
        Case("loop_rank_grows", (1, 3), net([COND, node("Loop", "n c x", "y", body=step(deep))],
                                            [ints("n", [100], []), ints("a", [0])])),
        Case("loop_trips_vector", LOOSE, net([COND, node("Loop", "n c x", "y", body=step(keep))], [ints("n", [1, 2])])),
        Case("loop_trips_float", LOOSE, net([COND, node("Loop", "n c x", "y", body=step(keep))], [floats("n", [1.0], [])])),
        Case("loop_without_body", BAD, net([COND, node("Loop", "n c x")], [ints("n", [3], [])]), pattern="Loop"),
        Case("loop_body_is_int", BAD, net([COND, node("Loop", "n c x", "y", body=3)], [ints("n", [3], [])])),
        Case("loop_body_empty", BAD, net([COND, node("Loop", "n c x", "y", body=graph([]))], [ints("n", [3], [])])),
        Case("loop_body_few_inputs", BAD, net([COND, node("Loop", "n c x", "y", body=body(
            [node("Relu", "x", "r")], [], ["r"]))], [ints("n", [3], [])])),
        Case("loop_too_many_outputs", BAD, net([COND, node("Loop", "n c x", "y z zz", body=step(keep))],
                                               [ints("n", [3], [])])),
        Case("loop_endless", LOOSE, net([COND, node("Loop", ["", "", "x"], ["y"], body=step(keep))])),
        Case("loops_50_deep", LOOSE, nested_loops(50, HUGE)),
        Case("loops_20_deep_of_1000", LOOSE, nested_loops(20, 1000)),
        Case("loops_8_deep_of_1000", LOOSE, nested_loops(8, 1000)),
        Case("loops_30_deep_growing", LOOSE, nested_loops(30, 1, "Concat", axis=0)),
        Case("loops_30_deep_growing_5_times", LOOSE, nested_loops(30, 5, "Concat", axis=0)),
        Case("loops_30_deep_growing_endless", LOOSE, nested_loops(30, HUGE, "Concat", axis=0)),
        Case("loops_30_deep_on_data", LOOSE, nested_loops(30, 2, "NonZero")),
        Case("loop_scan_output_2_62", LOOSE, net([COND, node("Loop", "n c x", "z y", body=body(
            keep + [node("Identity", "k", "k2"), node("Relu", "s", "o")],
            [("i", (), INT64), ("k", (), BOOL), "s"], ["k2", "s2", "o"]))], [ints("n", [HUGE], [])])),
        Case("ifs_10_deep_both_sides", FINE, nested_ifs(10)),
        Case("ifs_50_deep", LOOSE, tall_ifs(50)),
        Case("ifs_1000_deep", BAD, lambda: tall_ifs(1000)),
        Case("if_without_else", BAD, net([COND, node("If", "c", "y", then_branch=body([node("Relu", "x", "r")], [], ["r"]))]),
             pattern="If|else"),
        Case("if_branches_differ_in_count", BAD, net([COND, node("If", "c", "y", then_branch=body(
            [node("Relu", "x", "r")], [], ["r"]), else_branch=body([], [], []))])),
        Case("if_branches_differ_in_shape", LOOSE, net([node("If", "c", "y", then_branch=body(
            [node("Relu", "x", "r")], [], ["r"]), else_branch=body([node("ReduceSum", "x", "r")], [], ["r"]))],
            inputs=[value("x"), value("c", (), BOOL)])),
        Case("if_branch_has_inputs", LOOSE, net([COND, node("If", "c", "y", then_branch=body(
            [node("Relu", "q", "r")], ["q"], ["r"]), else_branch=body([node("Relu", "x", "r")], [], ["r"]))])),
        Case("if_on_float", LOOSE, net([node("If", "x", "y", then_branch=body([node("Relu", "x", "r")], [], ["r"]),
                                             else_branch=body([node("Relu", "x", "r")], [], ["r"]))])),
        Case("body_shadows_outer", LOOSE, net([COND, node("Relu", "x", "t"), node("If", "c", "y", then_branch=body(
            [node("Relu", "x", "t")], [], ["t"]), else_branch=body([node("Abs", "x", "t")], [], ["t"]))])),
        Case("body_undefined", BAD, net([COND, node("If", "c", "y", then_branch=body(
            [node("Relu", "nowhere", "r")], [], ["r"]), else_branch=body([node("Abs", "x", "r")], [], ["r"]))]),
            pattern="nowhere"),
        Case("body_reads_sibling", BAD, net([COND, node("If", "c", "y", then_branch=body(
            [node("Relu", "x", "a"), node("Relu", "a", "r")], [], ["r"]), else_branch=body(
            [node("Abs", "a", "r")], [], ["r"]))]), pattern="a"),
    ]


def scan(**attrs):
    b = body([node("Add", "s e", "s2"), node("Identity", "s2", "o")], ["s", "e"], ["s2", "o"])
    return net([node("Scan", "z x", "f y", body=b, **attrs)], inputs=[value("z", (3, 4)), value("x")])


def scans():
    return [
        Case("scan_right", FINE, scan(num_scan_inputs=1)),
        Case("scan_no_count", ODD, scan()),
        Case("scan_count_0", (1, 3), scan(num_scan_inputs=0)),
        Case("scan_count_negative", BAD, scan(num_scan_inputs=-1)),
        Case("scan_count_2_62", BAD, scan(num_scan_inputs=HUGE)),
        Case("scan_count_min", BAD, scan(num_scan_inputs=-(1 << 63))),
        Case("scan_axis_9", BAD, scan(num_scan_inputs=1, scan_input_axes=[9])),
        Case("scan_axis_min", BAD, scan(num_scan_inputs=1, scan_input_axes=[-(1 << 63)])),
        Case("scan_axes_too_many", LOOSE, scan(num_scan_inputs=1, scan_input_axes=[0, 0, 0])),
        Case("scan_directions_7", LOOSE, scan(num_scan_inputs=1, scan_input_directions=[7])),
        Case("scan_output_axis_9", BAD, scan(num_scan_inputs=1, scan_output_axes=[9])),
        Case("scan_without_body", BAD, net([node("Scan", "x", "y", num_scan_inputs=1)])),
    ]


def cases():
    return functions() + loops() + scans()
