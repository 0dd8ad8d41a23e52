"""Hostile output: long names that are said read repeatedly, and numbers that no file may hold.

The runner holds every file to its bound and gives every ops.json to scout_batch; the cases here are those that once grew
to gigabytes, went below zero or could not be written.
"""
import os

from case import BAD, FINE, OPEN, Case
from cases_control import body, call
from seeds import w
from wire import BOOL, INT64, blob, external, floats, function, ints, net, node, tensor, value

LONG = "n" * 1000000
MANY = 20000
RELU = node("Relu")
MS = "com.microsoft"
TRUE = tensor("c", [], BOOL, [1])
FOLDERS = "/".join(["f" * 240] * 12)
INFINITE, NONE = float("inf"), float("nan")


def users(op, *ins):
    return [node(op, list(ins), "z%d" % k) for k in range(MANY)] + [RELU]


def behind(first):
    return net([first] + [node("Relu", "t%d" % k, "t%d" % (k + 1)) for k in range(MANY)] + [RELU])


def branch(name, nodes):
    return node("If", "c", "z", name=name, then_branch=body(nodes, [], ["r0"]), else_branch=body([node("Abs", "x", "r")], [], ["r"]))


def nested(depth):
    inner = [node("Relu", "x", "r0")]
    for k in range(depth):
        inner = [node("If", "c", "r0", name="%d" % k + LONG[:20000], then_branch=body(inner, [], ["r0"]),
                      else_branch=body([node("Relu", "x", "q%d" % i) for i in range(200)] + [node("Abs", "x", "r0")], [], ["r0"]))]
    return net(inner + [RELU], [TRUE])


def called(times, nodes, **more):
    return net([call("F", "x", "z%d" % k, **more) for k in range(times)] + [RELU],
               functions=[function("F", "x", "y", nodes + [node("Relu", "x", "y")])])


def deep_file(home):
    folder = os.path.join(home, FOLDERS)
    os.makedirs(folder)
    with open(os.path.join(folder, "w.bin"), "wb") as out:
        out.write(bytes(64))


def names():
    relus = [node("Relu", "x", "r%d" % k) for k in range(MANY)]
    return [
        Case("long_node_before_unknown", OPEN, lambda: behind(node("Nope", "x", "t0", name=LONG))),
        Case("long_node_before_bound", OPEN, lambda: behind(node("NonZero", "x", "t0", name=LONG))),
        Case("long_input_without_shape", OPEN, lambda: net(
            [node("Identity", [LONG], "i")] + users("Relu", "i"), [], [value("x"), value(LONG, None)])),
        Case("long_region", FINE, lambda: net([branch(LONG, relus), RELU], [TRUE])),
        Case("long_regions_nested", FINE, lambda: nested(60), seconds=2.0),
        Case("long_weight", FINE, lambda: net([node("Identity", [LONG], "w")] + users("MatMul", "x", "w"), [w(LONG, 4, 4)])),
        Case("long_weight_of_different", FINE, lambda: net(
            [node("Identity", [LONG], "w")] + [node("MatMul", "x%d w" % k, "z%d" % k) for k in range(MANY // 2)] + [RELU],
            [w(LONG, 4, 4)], [value("x")] + [value("x%d" % k, (k + 1, 4, 4)) for k in range(MANY // 2)]), seconds=2.0),
        Case("long_bias", FINE, lambda: net([node("Identity", [LONG], "b")] + users("Gemm", "x", "w", "b"), [
            w("w", 4, 4), w(LONG, 4)], [value("x", (4, 4))])),
        Case("long_file_missing", FINE, lambda: net(users("MatMul", "x", "w"), [external("w", [4, 4], LONG)])),
        Case("long_file_there", BAD, lambda: net(
            [node("MatMul", "x w", "z%d" % k) for k in range(60000)] + [RELU], [external("w", [4, 4], FOLDERS + "/w.bin")]),
            layout=deep_file, pattern="would be longer than [0-9]+ MB.*shorten", seconds=3.0),
        Case("long_operator_called", OPEN, lambda: called(200, [node("O" * 100000, "x", "t")])),
        Case("long_domain_called", OPEN, lambda: called(200, [node("O", "x", "t", domain="d" * 100000)])),
        Case("long_path_of_calls", FINE, lambda: called(200, [node("Relu", "x", "t%d" % k) for k in range(200)],
                                                        extra=blob(3, LONG[:10000])), seconds=2.0),
        Case("long_names_cut_apart", FINE, lambda: net([node("Relu", "x", "x" * 500 + "%d" % k + "x" * 500, name="y" * 500 +
                                                             "%d" % k + "y" * 500) for k in range(1000)] + [RELU])),
        # cut between two bytes of a character
        Case("long_name_of_letters", OPEN, lambda: net([
            node("Nope", "x", "x" + "\u00e9" * 999, name="\u00e9" * 999 + "x"), node("Relu", "x" + "\u00e9" * 999, "r"),
            node("MatMul", "x w", "z"), RELU], [external("w", [4, 4], "x" + "\u00e9" * 110)])),
        Case("names_of_controls", OPEN, lambda: net([
            node("Nope", "x", "\x01" * 200 + "%d" % k, name="\x01" * 230 + "%d" % k) for k in range(3000)] + [RELU])),
    ]


def numbers():
    heads, past, angles = value("q", (1, 2, 4, 8)), value("p", (1, 2, 16, 8)), value("c", (5000, 4))
    attention = lambda outs, **attrs: net([node("Attention", ["q", "q", "q", "", "p", "p"], outs, **attrs)], [], [heads, past],
                                          version=23)
    reals = {"alpha": INFINITE, "beta": NONE}
    return [
        Case("present_named_but_not_read", FINE, attention(["y", "k", "v"])),
        Case("past_of_keys_and_values_the_same", FINE, attention(["y"])),
        Case("past_stored_in_bytes", FINE, net([
            node("DequantizeLinear", "b s", "p"), node("Attention", ["q", "q", "q", "", "p", "p"], ["y", "k", "v"])], [
                tensor("b", (1, 2, 16, 8), 2, raw=bytes(256)), floats("s", [0.5], [])], [heads], version=23)),
        Case("experts_stored_in_bytes", FINE, net([
            node("DequantizeLinear", "b s", "e"), node("MoE", ["x", "r", "e", "", "e"], "y", domain=MS, k=1)], [
                tensor("b", (8, 4, 4), 2, raw=bytes(128)), floats("s", [0.5], [])], [value("x", (2, 4)), value("r", (2, 8))])),
        Case("angles_of_both_the_same", FINE, net([node("RotaryEmbedding", "x i c c", domain=MS)], [], [
            value("x", (1, 2, 2, 8)), value("i", (1, 2), INT64), angles])),
        Case("scale_infinite", FINE, attention(["y"], scale=INFINITE, softcap=INFINITE)),
        Case("scale_no_number", FINE, attention(["y"], scale=NONE, softcap=NONE)),
        Case("reals_infinite", FINE, net([
            node("LeakyRelu", "x", "a", alpha=INFINITE), node("Elu", "x", "b", alpha=NONE), node("Gemm", "m m", "g", **reals),
            node("LRN", "f", "l", size=3, bias=-INFINITE, **reals), node("HardSigmoid", "x", "h", **reals), RELU], [], [
                value("x"), value("m", (4, 4)), value("f", (1, 3, 4, 4))])),
        Case("rows_beyond_any_device", FINE, net([RELU, node("Softmax", "x", "s", axis=-1)], [], [value("x", (1 << 45, 4))])),
    ]


def cases():
    return names() + numbers()
