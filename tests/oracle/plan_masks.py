"""Attentions whose scores get masks in views of their own, for check_plans.py: heads apart or within the batch, keys that
groups of heads share, windows, padding before the first token. What ops.json cannot tell of one is refused."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LOW = np.float32(-1e4)


def attention(q, kv, steps, inputs, constants):
    """q and kv: dimensions of queries, of keys and values; steps: nodes from "s0" to the last scores, whose name is given."""
    nodes, last = steps
    turn = [*range(len(kv) - 2), len(kv) - 1, len(kv) - 2]
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=turn), helper.make_node("MatMul", ["q", "kt"], ["s0"]), *nodes,
             helper.make_node("Softmax", [last], ["p0"], axis=-1)]
    constants = dict(constants)
    if "back" in constants:
        nodes.append(helper.make_node("Reshape", ["p0", "back"], ["p"]))
    nodes.append(helper.make_node("MatMul", ["p" if "back" in constants else "p0", "v"], ["o"]))
    feeds = {"q": q, "k": kv, "v": kv} | {name: value.shape for name, value in inputs.items()}
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
    graph = helper.make_graph(
        nodes, "masks", [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), d) for n, d in feeds.items()],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, q)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def chain(*steps):
    """(operator, what stands beside the scores) … as nodes; a Reshape in front of it changes the view."""
    nodes, last = [], "s0"
    for k, (op, *beside) in enumerate(steps):
        slot = {"Where": [beside[0], last, *beside[1:]]}.get(op, [last, *beside])
        nodes.append(helper.make_node(op, slot, [f"s{k + 1}"]))
        last = f"s{k + 1}"
    return nodes, last


def models(rng):
    """(name, model, inputs beside q, k and v, whether it has to run)."""
    def real(*dims):
        return rng.standard_normal(dims).astype(np.float32)

    triangle = np.tril(np.ones((4, 4), bool))
    heads = {"apart": np.array([2, 3, 4, 4]), "back": np.array([6, 4, 4])}
    left = np.where([[1, 1, 0, 0], [0, 0, 0, 0]], LOW, np.float32(0)).reshape(2, 1, 1, 4)
    causal = np.where(triangle, np.float32(0), LOW)
    both = helper.make_node("Where", ["shown", "nothing", "low"], ["chosen"])
    add = chain(("Add", "a"), ("Add", "b"))
    yield ("a mask apart, a bias behind", attention((6, 4, 6), (6, 4, 6), chain(("Reshape", "apart"), ("Add", "a"), ("Reshape", "back"), ("Add", "b")),
           ins := {"a": real(2, 1, 1, 4), "b": real(4, 4)}, {"apart": heads["apart"], "back": heads["back"]}) , ins, False)
    for a, b in (((2, 1, 1, 4), (4, 4)), ((2, 1, 4, 4), (1, 1, 4, 4)), ((2, 1, 1, 4), (4,)), ((2, 1, 1, 4), (3, 1, 4))):
        ins = {"a": real(*a), "b": real(*b)}
        yield (f"heads in the batch, {a} and {b}", attention((6, 4, 6), (6, 4, 6), chain(("Reshape", "apart"), ("Add", "a"), ("Add", "b")), ins, heads), ins, False)
        yield (f"heads apart, {a} and {b}", attention((2, 3, 4, 6), (2, 3, 4, 6), add, ins, {}), ins, True)
    shown = np.ones((2, 1, 1, 4), bool)
    shown[0, ..., 2:] = False
    scalars = {"nothing": np.float32(0), "low": LOW}
    for q, more in (((6, 4, 6), heads), ((2, 3, 4, 6), {})):
        nodes, last = chain(*[("Reshape", "apart")] * bool(more), ("Add", "chosen"))
        yield (f"a choice, queries {q}", attention(q, q, ([both, *nodes], last), {"shown": shown}, scalars | more), {"shown": shown}, not more)
    for batch, groups, each in ((2, 2, 3), (4, 2, 3), (4, 2, 2), (2, 3, 2)):
        for a in ((groups, 1, 1, 4), (batch, 1, 1, 1, 4), (each, 4, 4)):
            ins = {"a": real(*a), "b": real(1, 4)}
            yield (f"{each} heads share keys, {a}", attention((batch, groups, each, 4, 6), (batch, groups, 1, 4, 6), add, ins, {}), ins, False)
            yield (f"{each} heads share keys, {a} alone", attention((batch, groups, each, 4, 6), (batch, groups, 1, 4, 6), chain(("Add", "a")),
                   one := {"a": ins["a"]}, {}), one, False)
    yield ("padding before the first token", attention((2, 3, 4, 6), (2, 3, 4, 6), chain(("Add", "causal"), ("Add", "a")), ins := {"a": left},
           {"causal": causal}), ins, True)
    yield ("padding behind a choice", attention((2, 3, 4, 6), (2, 3, 4, 6), chain(("Where", "tri", "low"), ("Add", "a")), ins := {"a": left},
           {"tri": triangle, "low": LOW}), ins, False)
    twice = helper.make_node("Reshape", ["a", "sizes"], ["m"])
    nodes, last = chain(("Add", "m"), ("Add", "m"))
    yield ("one view twice", attention((2, 3, 4, 6), (2, 3, 4, 6), ([twice, *nodes], last), ins := {"a": real(2, 4)}, {"sizes": np.array([2, 1, 1, 4])}), ins, True)
    yield ("windows", attention((4, 3, 4, 6), (4, 3, 4, 6), chain(("Add", "b"), ("Reshape", "split"), ("Add", "a")),
           ins := {"a": real(1, 2, 1, 4, 4), "b": real(1, 3, 4, 4)}, {"split": np.array([2, 2, 3, 4, 4]), "back": np.array([4, 3, 4, 4])}), ins, True)
