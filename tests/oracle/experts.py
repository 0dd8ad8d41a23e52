"""Mixtures of experts whose routing is even, so that what extract_ops assumes of it can be told: with the assumed tensors
as inputs their parts must compute what onnxruntime makes of the whole."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

EXPERTS, HIDDEN, INNER = 4, 16, 24
# name, tokens, k, attributes, whether it has biases, a matrix beside the first, three dimensions
FORMS = [
    ("relu", 12, 2, {}, True, False, False),
    ("gelu, shares among the chosen", 12, 2, {"activation_type": "gelu", "normalize_routing_weights": 1}, False, False, True),
    ("one each", 12, 1, {"activation_type": "silu"}, True, False, False),
    ("identity", 12, 4, {"activation_type": "identity"}, False, False, False),
    ("gate and values by turns", 12, 2, {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0,
                                     "swiglu_limit": 0.4, "normalize_routing_weights": 1}, True, False, False),
    ("gate and values in blocks", 12, 2, {"activation_type": "swiglu", "swiglu_fusion": 2, "activation_alpha": 1.25}, False, False, True),
    ("gated", 12, 2, {"activation_type": "silu"}, False, True, False),
    ("sparse mixer", 12, 2, {"use_sparse_mixer": 1, "activation_type": "silu"}, True, False, False),
    ("fewer choices than experts", 1, 2, {"normalize_routing_weights": 1}, True, False, False),
    ("of few tokens one each", 2, 1, {"activation_type": "silu"}, True, True, False),
]


def model(tokens, k, attributes, bias, beside, deep, rng):
    """A node of this form, the shape of its input, and its weights."""
    wide = 2 * INNER if attributes.get("swiglu_fusion") else INNER
    weights = {"first": (EXPERTS, wide, HIDDEN), "second": (EXPERTS, HIDDEN, INNER)}
    if bias:
        weights |= {"first_bias": (EXPERTS, wide), "second_bias": (EXPERTS, HIDDEN)}
    if beside:
        weights["beside"] = (EXPERTS, INNER, HIDDEN)
    values = {n: (rng.standard_normal(s) / 2).astype(np.float32) for n, s in weights.items()}
    shape = (2, tokens // 2, HIDDEN) if deep else (tokens, HIDDEN)
    return of_weights(values, shape, k, attributes), shape, values


def by_turns(values, attributes):
    """The same in the one form with a gate that onnxruntime has on a CPU: rows of gate and values by turns."""
    turned = dict(values)
    if attributes.get("swiglu_fusion") == 2:
        for name in ("first", "first_bias"):
            if name in values:
                turned[name] = np.stack(np.split(values[name], 2, axis=1), axis=2).reshape(values[name].shape)
        return turned, attributes | {"swiglu_fusion": 1}
    if "beside" in values:
        turned["first"] = np.stack([values["first"], turned.pop("beside")], axis=2).reshape(EXPERTS, 2 * INNER, HIDDEN)
        if "first_bias" in values:
            turned["first_bias"] = np.stack([values["first_bias"], np.zeros_like(values["first_bias"])], axis=2).reshape(EXPERTS, 2 * INNER)
        return turned, {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.0, "activation_beta": 0.0}
    return turned, attributes


def of_weights(values, shape, k, attributes):
    names = ["x", "router", "first", "first_bias", "second", "second_bias", "beside"]
    inputs = [n if n in values or n in ("x", "router") else "" for n in names]
    node = helper.make_node("MoE", inputs, ["y"], "moe", domain="com.microsoft", k=k, **attributes)
    graph = helper.make_graph(
        [node], "experts",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), helper.make_tensor_value_info("router", TensorProto.FLOAT, (int(np.prod(shape[:-1])), EXPERTS))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def mixed(router):
    """SparseMixer: two rounds, each (what is added to the router's scores to have one expert alone, how much it counts)."""
    scores, rounds = router.astype(np.float64), []
    for _ in range(2):
        best = scores.argmax(1)[:, None]
        most = np.take_along_axis(scores, best, 1)
        near = (most - scores) / np.maximum(abs(router), most) <= 0.02
        shares = near * np.exp(np.where(near, scores - most, 0))
        alone = np.zeros_like(router)
        np.put_along_axis(alone, best, 99, 1)
        rounds.append((alone, np.take_along_axis(shares / shares.sum(1, keepdims=True), best, 1)))
        scores = np.where(alone > 0, -np.inf, scores)
    return rounds


def feeds(tokens, k, shape, rng, spread=1.0):
    """Inputs whose routing is even, to the first experts where not all are used, and what is assumed of them. Scores of the
    chosen differ by `spread`."""
    used = min(tokens * k, EXPERTS)
    router = (rng.standard_normal((tokens, EXPERTS)) * spread).astype(np.float32)
    chosen = (np.arange(tokens)[:, None] + rng.permutation(used)[:k]) % used
    for t in range(tokens):
        router[t, chosen[t]] += 8
    order = np.argsort(-router, axis=1)[:, :k]
    taken, places = [[] for _ in range(used)], np.zeros((tokens, k), np.int32)
    rows = tokens * k // used
    for t in range(tokens):
        for j, e in enumerate(order[t]):
            places[t, j] = e * rows + len(taken[e])
            taken[e].append(t)
    assert all(len(of) == rows for of in taken)
    places = places.reshape(*shape[:-1], k) if k > 1 else places.reshape(shape[:-1])
    return {"x": rng.standard_normal(shape).astype(np.float32), "router": router,
            "moe/tokens_of_experts": np.array(taken, np.int32), "moe/rows_of_tokens": places}
