"""The com.microsoft operators of real exports: each as a model of one node, run in onnxruntime and compared. For those that
the runtime has for no CPU, the outputs are written down here from the operator's documentation."""

import os
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import oracle
import zero_run

B, S, P, H, KV, D = 2, 5, 3, 4, 2, 16  # batch, sequence, past, heads, heads of keys and values, head size
W = H * D  # width


class Const:
    """An input whose value is part of the model."""

    def __init__(self, array):
        self.array = array


def f32(*dims):
    return np.zeros(dims, np.float32)


def full(dims, value, kind):
    return np.full(dims, value, kind)


def u8(*dims):
    return np.zeros(dims, np.uint8)


def i32(value, *dims):
    return np.full(dims, value, np.int32)


def i64(value, *dims):
    return np.full(dims, value, np.int64)


ONE, ZERO = full([], 1, np.float32), u8()
QUANT = (ONE, ZERO)


def attention_rows():
    past = f32(2, B, H, P, D)
    yield "Attention", {"num_heads": H}, [f32(B, S, W), f32(W, 3 * W), f32(3 * W)], 1
    yield "Attention", {"num_heads": H}, [f32(B, S, 24), f32(24, 3 * W), f32(3 * W), i32(S, B)], 1
    yield "Attention", {"num_heads": H, "unidirectional": 1}, [f32(B, S, W), f32(W, 3 * W), f32(3 * W), i32(1, B, S)], 2
    yield "Attention", {"num_heads": H}, [f32(B, S, W), f32(W, 3 * W), f32(3 * W), None, past], 2
    yield "Attention", {"num_heads": H, "qkv_hidden_sizes": [W, W, 2 * W]}, [f32(B, S, W), f32(W, 4 * W), f32(4 * W)], 1
    mha = {"num_heads": H}
    yield "MultiHeadAttention", mha, [f32(B, S, W), f32(B, 7, W), f32(B, 7, W)], 1
    yield "MultiHeadAttention", mha, [f32(B, S, W), f32(B, 7, W), f32(B, 7, 2 * W), f32(4 * W)], 3
    yield "MultiHeadAttention", mha, [f32(B, S, W), f32(B, H, 7, D), f32(B, H, 7, D)], 1
    yield "MultiHeadAttention", mha, [f32(B, S, W), f32(B, S, W), f32(B, S, W), None, None, None, f32(B, H, P, D), f32(B, H, P, D)], 3
    yield "MultiHeadAttention", mha, [f32(B, S, W), f32(B, 7, W), f32(B, 7, W), f32(3 * W), i32(1, B, 7), f32(B, H, S, 7)], 1
    yield "MultiHeadAttention", mha, [f32(B, S, H, 3, D)], 1
    yield "MultiHeadAttention", mha, [f32(B, S, W), f32(B, S, H, 2, D)], 1
    gqa = {"num_heads": H, "kv_num_heads": KV}
    cache = [f32(B, KV, P, D), f32(B, KV, P, D)]
    lengths = [i32(P + S - 1, B), Const(i32(P + S))]
    yield "GroupQueryAttention", gqa, [f32(B, S, W), f32(B, S, KV * D), f32(B, S, KV * D), None, None, i32(S - 1, B), Const(i32(S))], 3
    yield "GroupQueryAttention", gqa, [f32(B, 1, W), f32(B, 1, KV * D), f32(B, 1, KV * D), *cache, i32(P, B), Const(i32(P + 1))], 3
    yield "GroupQueryAttention", gqa, [f32(1, S, W), f32(1, S, KV * D), f32(1, S, KV * D), f32(1, KV, P, D), f32(1, KV, P, D), i32(P + S - 1, 1), Const(i32(P + S))], 3
    yield "GroupQueryAttention", gqa, [f32(B, S, (H + 2 * KV) * D), None, None, None, None, i32(S - 1, B), Const(i32(S))], 3
    rotary = [f32(32, D // 2), f32(32, D // 2)]
    yield "GroupQueryAttention", {**gqa, "do_rotary": 1}, [f32(B, 1, W), f32(B, 1, KV * D), f32(B, 1, KV * D), *cache, i32(P, B), Const(i32(P + 1)), *rotary], 3
    yield "RotaryEmbedding", {}, [f32(B, H, S, D), i64(0, 1), *rotary], 1
    yield "RotaryEmbedding", {"num_heads": H, "rotary_embedding_dim": D // 2}, [f32(B, S, W), i64(0, B, S), f32(32, D // 4), f32(32, D // 4)], 1
    linear = {"q_num_heads": H, "kv_num_heads": H, "update_rule": "linear"}
    yield "LinearAttention", linear, [f32(B, S, W), f32(B, S, W), f32(B, S, 2 * W)], 2
    yield "LinearAttention", linear, [f32(B, S, W), f32(B, S, W), f32(B, S, W), f32(B, H, D, D)], 2
    yield "QAttention", {"num_heads": H}, [u8(B, S, W), u8(W, 3 * W), f32(3 * W), ONE, ONE, None, ZERO, ZERO], 1


def norm_rows():
    x, g = f32(B, S, W), f32(W)
    yield "SkipLayerNormalization", {}, [x, x, g], 1
    yield "SkipLayerNormalization", {}, [x, x, g, g, g], 4
    yield "SkipLayerNormalization", {}, [x, f32(S, W), g, g], 1
    yield "SkipLayerNormalization", {}, [f32(S, W), f32(S, W), g, g], 1
    yield "SkipSimplifiedLayerNormalization", {}, [x, x, g], 1
    yield "SkipSimplifiedLayerNormalization", {}, [x, x, g, g], 4
    yield "SimplifiedLayerNormalization", {"axis": -1}, [x, g], 2
    yield "SimplifiedLayerNormalization", {"axis": -1, "stash_type": 1}, [x, g], 1
    ids, tables = i32(0, B, S), [f32(30, W), f32(20, W)]
    yield "EmbedLayerNormalization", {}, [ids, ids, *tables, f32(2, W), g, g], 2
    yield "EmbedLayerNormalization", {}, [ids, None, *tables, None, g, g, i32(1, B, S)], 3
    yield "BiasGelu", {}, [x, g], 1
    yield "FastGelu", {}, [x, g], 1
    yield "FastGelu", {}, [x], 1
    yield "Gelu", {}, [x], 1
    yield "QuickGelu", {"alpha": 1.5}, [x], 1


def product_rows():
    for ta in (0, 1):
        for tb in (0, 1):
            shapes = ([B, 6, S] if ta else [B, S, 6], [B, 7, 6] if tb else [B, 6, 7])
            yield "FusedMatMul", {"transA": ta, "transB": tb, "alpha": 0.5}, [f32(*shapes[0]), f32(*shapes[1])], 1
    yield "FusedMatMul", {"transBatchA": 1, "transBatchB": 1}, [f32(S, B, 6), f32(6, B, 7)], 1
    yield "FusedMatMul", {}, [f32(6), f32(B, 6, 7)], 1
    yield "TransposeMatMul", {"transB": 1}, [f32(B, S, 6), f32(7, 6)], 1
    yield "FusedGemm", {"transB": 1, "activation": "Relu"}, [f32(S, 6), f32(7, 6), f32(7)], 1
    conv = {"activation": "Relu", "kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    yield "FusedConv", conv, [f32(B, 3, 9, 9), f32(8, 3, 3, 3), f32(8)], 1
    yield "FusedConv", {"activation": "Relu", "group": 4, "auto_pad": "SAME_UPPER"}, [f32(B, 4, 9, 9), f32(8, 1, 3, 3)], 1
    for bits in (4, 8):
        blob = Const(u8(24, 2, 32 * bits // 8))
        yield "MatMulNBits", {"K": 64, "N": 24, "bits": bits, "block_size": 32}, [f32(B, S, 64), blob, Const(f32(48))], 1
    yield "MatMulNBits", {"K": 40, "N": 24, "block_size": 32}, [f32(S, 40), Const(u8(24, 2, 16)), Const(f32(48)), Const(u8(24))], 1
    yield "MatMulIntegerToFloat", {}, [u8(B, S, 6), u8(6, 7), ONE, ONE, ZERO, ZERO, f32(7)], 1
    yield "DynamicQuantizeMatMul", {}, [f32(B, S, 6), u8(6, 7), ONE, ZERO, f32(7)], 1
    yield "MatMulInteger16", {}, [np.zeros([B, S, 6], np.int16), np.zeros([6, 7], np.int16)], 1
    yield "QGemm", {"transB": 1}, [u8(S, 6), ONE, ZERO, u8(7, 6), ONE, ZERO, i32(0, 7), ONE, ZERO], 1
    yield "QGemm", {}, [u8(S, 6), ONE, ZERO, u8(6, 7), ONE, ZERO], 1
    hidden = 6
    for direction, n in (("forward", 1), ("bidirectional", 2)):
        quant = [Const(f32(n) + 1), Const(u8(n))]
        yield "DynamicQuantizeLSTM", {"hidden_size": hidden, "direction": direction}, [
            f32(S, B, 3), Const(u8(n, 3, 4 * hidden)), Const(u8(n, hidden, 4 * hidden)), f32(n, 8 * hidden), None, None, None, None,
            *quant, *quant], 3
    experts, inner, rows = 4, 24, f32(S, W)
    moe = {"k": 2, "activation_type": "gelu"}
    yield "MoE", moe, [rows, f32(S, experts), f32(experts, inner, W), f32(experts, inner), f32(experts, W, inner), f32(experts, W)], 1
    yield "MoE", moe, [f32(B, S, W), f32(B * S, experts), f32(experts, inner, W), None, f32(experts, W, inner)], 1
    yield "QMoE", {**moe, "expert_weight_bits": 4}, [
        f32(B * S, W), f32(B * S, experts), u8(experts, inner, W // 2), f32(experts, inner), None, u8(experts, W, inner // 2),
        f32(experts, W), None], 1


def quantized_rows():
    x = u8(B, 3, 8, 8)
    yield "QLinearAdd", {}, [x, *QUANT, u8(3, 1, 1), *QUANT, *QUANT], 1
    yield "QLinearMul", {}, [u8(3, 1), *QUANT, u8(B, 1, 4), *QUANT, *QUANT], 1
    yield "QLinearSoftmax", {"axis": -1, "opset": 13}, [x, *QUANT, *QUANT], 1
    yield "QLinearSigmoid", {}, [x, *QUANT, *QUANT], 1
    yield "QLinearLeakyRelu", {"alpha": 0.1}, [x, *QUANT, *QUANT], 1
    yield "QLinearGlobalAveragePool", {}, [x, *QUANT, *QUANT], 1
    yield "QLinearAveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, [x, *QUANT, *QUANT], 1
    yield "QLinearConcat", {"axis": 1}, [*QUANT, x, *QUANT, u8(B, 5, 8, 8), *QUANT], 1
    yield "QLinearWhere", {}, [np.ones([3, 1, 1], bool), x, *QUANT, u8(), *QUANT, *QUANT], 1
    yield "QuantizeLinear", {}, [f32(B, S), *QUANT], 1
    yield "DequantizeLinear", {}, [u8(B, S), *QUANT], 1
    blocks = {"block_size": 32, "quantize_axis": 1, "gather_axis": 0, "bits": 8}
    yield "GatherBlockQuantized", blocks, [Const(u8(30, 64)), i64(0, B, S), Const(f32(30, 2)), Const(u8(30, 2))], 1
    yield "GatherBlockQuantized", {**blocks, "bits": 4}, [Const(u8(30, 32)), i64(0, B, S), Const(f32(30, 2))], 1


# Not on the CPU: outputs as documented, (dtype, shape).
DOCUMENTED = [
    ("BiasSplitGelu", {}, [f32(B, S, 2 * W), f32(2 * W)], [("fp32", [B, S, W])]),
    ("GroupNorm", {"activation": 0, "groups": 4, "channels_last": 1}, [f32(B, 8, 8, W), f32(W), f32(W)], [("fp32", [B, 8, 8, W])]),
    ("SkipGroupNorm", {"activation": 1, "groups": 4, "channels_last": 1}, [f32(B, 8, 8, W), f32(W), f32(W), f32(B, W), f32(W)],
     [("fp32", [B, 8, 8, W]), ("fp32", [B, 8, 8, W])]),
    ("NhwcConv", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, [f32(B, 9, 9, 4), f32(8, 3, 3, 4), f32(8)],
     [("fp32", [B, 5, 5, 8])]),
    ("NhwcFusedConv", {"activation": "Relu", "kernel_shape": [3, 3]}, [f32(B, 9, 9, 4), f32(8, 4, 3, 3), f32(8)],
     [("fp32", [B, 7, 7, 8])]),
    ("PackedAttention", {"num_heads": H}, [f32(7, W), f32(W, 3 * W), f32(3 * W), i32(0, B, S), i32(0, B + 1)], [("fp32", [7, W])]),
]


def make_model(op_type, attributes, inputs, output_count):
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    outputs = [f"o{k}" for k in range(output_count)]
    domain = "" if op_type == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(op_type, names, outputs, name="alone", domain=domain, **attributes)
    graph_inputs, initializers, feeds = [], [], {}
    for name, x in zip(names, inputs):
        if isinstance(x, Const):
            initializers.append(numpy_helper.from_array(x.array, name))
        elif x is not None:
            graph_inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
            feeds[name] = x
    graph = helper.make_graph([node], "alone", graph_inputs, [onnx.ValueInfoProto(name=o) for o in outputs], initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def run_here(model, feeds):
    runner = zero_run.session(model)
    outputs = runner.get_outputs()
    results = runner.run([o.name for o in outputs], feeds)
    return {o.name: (oracle.DTYPES[zero_run.RUNTIME_DTYPES[o.type]], list(r.shape)) for o, r in zip(outputs, results)}


def compare(tally, where, model, want):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        run = oracle.Run(oracle.program(), path)
    got = {name: (run.tensors.get(name, {}).get("dtype"), run.tensors.get(name, {}).get("shape")) for name in want}
    tally.check(run.code == 0 and got == want, f"{where}: exit {run.code} {run.last_line()}; {got}, should be {want}")


def main():
    tally = oracle.Tally()
    for rows in (attention_rows, norm_rows, product_rows, quantized_rows):
        for op_type, attributes, inputs, count in rows():
            where = f"{op_type} {attributes} of {[list(getattr(x, 'array', x).shape) if x is not None else None for x in inputs]}"
            model, feeds = make_model(op_type, attributes, inputs, count)
            try:
                want = run_here(model, feeds)
            except Exception as problem:  # what the runtime does not run is no verdict on us
                tally.skip(f"{where}: {str(problem).splitlines()[0][:300]}")
                continue
            compare(tally, where, model, want)
    for op_type, attributes, inputs, outputs in DOCUMENTED:
        model, _ = make_model(op_type, attributes, inputs, len(outputs))
        compare(tally, op_type, model, {f"o{k}": o for k, o in enumerate(outputs)})
    tally.end()


main()
