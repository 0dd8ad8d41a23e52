"""Makes tests/unit/cpu/recurrent_values.h: what onnxruntime computes for small recurrent layers with every option, which the
unit tests hold against the reference. Inputs come from a formula that both sides know. Run it again where a case is
added: out/venv/bin/python tests/oracle/recurrent_values.py > tests/unit/cpu/recurrent_values.h"""

import json

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

STEPS, BATCH, INPUT, HIDDEN = 4, 3, 5, 2
SALT = {"x": 1, "w": 2, "r": 3, "bias": 4, "h0": 5, "c0": 6, "peephole": 7}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
PROPER = {
    "hardsigmoid": "HardSigmoid", "leakyrelu": "LeakyRelu", "scaledtanh": "ScaledTanh", "sigmoid": "Sigmoid",
    "tanh": "Tanh", "relu": "Relu", "affine": "Affine", "elu": "Elu", "softsign": "Softsign", "softplus": "Softplus",
}

CASES = [
    dict(op="lstm", returns="y,y_h,y_c"),
    dict(op="lstm", bias=1, initial_state=1, directions=2, returns="y,y_h,y_c"),
    dict(op="lstm", bias=1, peephole=1, direction="reverse", returns="y,y_c"),
    dict(op="lstm", bias=1, lengths=1, directions=2, initial_state=1, returns="y,y_h,y_c"),
    dict(op="lstm", bias=1, clip=0.5, input_forget=1, peephole=1, returns="y,y_h"),
    dict(op="lstm", order="batch_first", directions=2, initial_state=1, bias=1, returns="y,y_h,y_c"),
    dict(op="lstm", activations="hardsigmoid,softsign,scaledtanh", activation_alpha="0.3,0.8",
         activation_beta="0.4,0.9", returns="y"),
    dict(op="gru", bias=1, returns="y,y_h"),
    dict(op="gru", bias=1, linear_before_reset=1, initial_state=1, directions=2, returns="y,y_h"),
    dict(op="gru", direction="reverse", lengths=1, linear_before_reset=1, returns="y,y_h"),
    dict(op="gru", order="batch_first", clip=0.6, bias=1, returns="y_h"),
    dict(op="gru", activations="sigmoid,relu,hardsigmoid,leakyrelu", activation_alpha="0.25,0.05",
         activation_beta="0.5", directions=2, bias=1, returns="y"),
    dict(op="rnn", bias=1, initial_state=1, returns="y,y_h"),
    dict(op="rnn", bias=1, lengths=1, directions=2, activations="relu,elu", activation_alpha="0.7", returns="y,y_h"),
    dict(op="rnn", activations="affine", activation_alpha="0.5", activation_beta="0.25", returns="y_h"),
    dict(op="rnn", activations="softplus", direction="reverse", returns="y"),
]


def values(name, shape):
    k = np.arange(int(np.prod(shape)), dtype=np.int64)
    scale = 64 if name in ("w", "r", "peephole") else 16
    return (((k * 29 + SALT[name] * 17) % 41 - 20) / scale).astype(np.float32).reshape(shape)


def node_of(case, present):
    attributes = {"hidden_size": HIDDEN}
    directions = case.get("directions", 1)
    attributes["direction"] = "bidirectional" if directions == 2 else case.get("direction", "forward")
    if "activations" in case:
        attributes["activations"] = [PROPER[a] for a in case["activations"].split(",")]
    for name in ("activation_alpha", "activation_beta"):
        if name in case:
            attributes[name] = [float(v) for v in case[name].split(",")]
    for name in ("clip", "input_forget", "linear_before_reset"):
        if name in case:
            attributes[name] = case[name]
    names = ["x", "w", "r", "bias", "lengths", "h0"] + (["c0", "peephole"] if case["op"] == "lstm" else [])
    outputs = ["y", "y_h"] + (["y_c"] if case["op"] == "lstm" else [])
    return helper.make_node(case["op"].upper(), [n if n in present else "" for n in names], outputs, **attributes)


def run(case):
    d, wide = case.get("directions", 1), GATES[case["op"]] * HIDDEN
    first = case.get("order") == "batch_first"
    x = values("x", (BATCH, STEPS, INPUT) if first else (STEPS, BATCH, INPUT))
    feed = {"x": x, "w": values("w", (d, wide, INPUT)), "r": values("r", (d, wide, HIDDEN))}
    if "bias" in case:
        feed["bias"] = values("bias", (d, 2 * wide))
    if "lengths" in case:
        feed["lengths"] = np.array([4, 1, 3], np.int32)
    if "initial_state" in case:
        for name in ("h0", "c0") if case["op"] == "lstm" else ("h0",):
            feed[name] = values(name, (BATCH, d, HIDDEN) if first else (d, BATCH, HIDDEN))
    if "peephole" in case:
        feed["peephole"] = values("peephole", (d, 3 * HIDDEN))
    if first:  # onnxruntime has no such layout: the same layer with its steps in front
        for name in feed.keys() & {"x", "h0", "c0"}:
            feed[name] = np.ascontiguousarray(feed[name].swapaxes(0, 1))
    node = node_of(case, feed)
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feed.items()]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in node.output]
    model = helper.make_model(helper.make_graph([node], "one", inputs, outputs), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 14)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = dict(zip(node.output, session.run(None, feed)))
    if first:  # [steps, directions, batch, hidden] to [batch, steps, directions, hidden]; states alike
        found = {n: v.transpose(2, 0, 1, 3) if n == "y" else v.swapaxes(0, 1) for n, v in found.items()}
    return {n: found[n] for n in case["returns"].split(",")}


def main():
    print("/* What onnxruntime computes for small recurrent layers: made by tests/oracle/recurrent_values.py. */")
    print("#ifndef TESTS_UNIT_RECURRENT_VALUES_H\n#define TESTS_UNIT_RECURRENT_VALUES_H\n")
    print("/* clang-format off */")
    print("static const struct recurrent_case {\n    const char *text; /* of the short form */")
    print("    float y[48], y_h[12], y_c[12];\n} recurrent_cases[] = {")
    for case in CASES:
        text = json.dumps({"op": case["op"], "shape": [STEPS, BATCH, INPUT, HIDDEN],
                           **{n: v for n, v in case.items() if n != "op"}})
        quoted = text.replace('"', '\\"')
        print(f'    {{"{quoted}"')
        for name, found in run(case).items():
            flat = [f"{v:.8g}" for v in np.ravel(found)]
            numbers = ", ".join((v if "." in v or "e" in v else v + ".0") + "F" for v in flat)
            print(f"     , .{name} = {{{numbers}}}")
        print("    },")
    print("};\n/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
