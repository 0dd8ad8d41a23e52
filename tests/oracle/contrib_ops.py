#!/usr/bin/env python3
"""Operators of com.microsoft, one node at a time: what extract_ops infers must equal what a run in onnxruntime gives,
or, where it has no kernel for the CPU, what the operator's documentation says.

Each case is a line of the table below. Usage: contrib_ops.py [EXTRACT_OPS] [NAME...]
The last line is "N passed, N failed, N skipped"; a case that onnxruntime cannot run here is skipped with its reason.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

import numpy as np

from oracle import refusal

try:
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"{missing.name} is not installed")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

F32, F16 = np.float32, np.float16
FP8 = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.FLOAT8E4M3FN)
NAMES = {
    "float32": "fp32", "float16": "fp16", "float64": "fp64", "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16",
    "int32": "int32", "int64": "int64", "uint32": "uint32", "uint64": "uint64", "bool": "bool", "object": "string", "str": "string",
}


def f(*shape):
    """A float input."""
    return np.zeros(shape, F32)


def h(*shape):
    return np.zeros(shape, F16)


def u8(*shape):
    return np.zeros(shape, np.uint8)


def i8(*shape):
    return np.zeros(shape, np.int8)


def i32(*shape):
    return np.zeros(shape, np.int32)


def i64(*shape):
    return np.zeros(shape, np.int64)


class Const:
    """An input that is stored in the model, because shapes or the kernel need its values."""

    def __init__(self, values, dtype):
        self.array = np.array(values, dtype)


def c64(*values):
    return Const(values, np.int64)


def c32(*values):
    return Const(values, np.int32)


ONE = Const(1.0, F32)
Z8 = Const(0, np.uint8)
S8 = Const(0, np.int8)

# name, operator, inputs (None: left out), outputs wanted ("-": left out), attributes, and what the operator's documentation says of the
# outputs, for cases that the runtime cannot run on a CPU
CASES = [
    ("attention", "Attention", [f(2, 5, 16), f(16, 96), f(96)], "ab", {"num_heads": 4}),
    ("attention_past", "Attention", [f(2, 5, 16), f(16, 96), f(96), None, f(2, 2, 4, 7, 8)], "ab", {"num_heads": 4}),
    ("attention_no_bias", "Attention", [f(2, 5, 16), f(16, 96), None], "a", {"num_heads": 4},
     {"a": ("fp32", [2, 5, 32])}),
    ("attention_sizes", "Attention", [f(2, 5, 16), f(16, 80), f(80)], "a", {"num_heads": 4, "qkv_hidden_sizes": [32, 32, 16]}),
    ("attention_mask", "Attention", [f(2, 5, 16), f(16, 96), f(96), i32(2, 5)], "a", {"num_heads": 4}),
    ("qattention", "QAttention", [u8(2, 5, 32), u8(32, 96), f(96), ONE, ONE, None, Z8, Z8], "a", {"num_heads": 4}),
    ("qattention_past", "QAttention", [u8(2, 5, 32), u8(32, 96), f(96), ONE, ONE, None, Z8, Z8, f(2, 2, 4, 3, 8)], "ab",
     {"num_heads": 4, "unidirectional": 1}),
    ("mha", "MultiHeadAttention", [f(2, 5, 32), f(2, 7, 32), f(2, 7, 32)], "abc", {"num_heads": 4}),
    ("mha_wide_values", "MultiHeadAttention", [f(2, 5, 32), f(2, 7, 32), f(2, 7, 64)], "a", {"num_heads": 4}),
    ("mha_bias", "MultiHeadAttention", [f(2, 5, 32), f(2, 5, 32), f(2, 5, 32), f(96)], "a", {"num_heads": 4}),
    ("mha_packed_kv", "MultiHeadAttention", [f(2, 5, 32), f(2, 7, 4, 2, 8)], "a", {"num_heads": 4},
     {"a": ("fp32", [2, 5, 32])}),
    ("mha_packed_qkv", "MultiHeadAttention", [f(2, 5, 4, 3, 8)], "a", {"num_heads": 4},
     {"a": ("fp32", [2, 5, 32])}),
    ("mha_past", "MultiHeadAttention", [f(2, 5, 32), f(2, 5, 32), f(2, 5, 32), None, None, None, f(2, 4, 6, 8), f(2, 4, 6, 8)], "abc",
     {"num_heads": 4}),
    ("mha_cross_cache", "MultiHeadAttention", [f(2, 5, 32), f(2, 4, 7, 8), f(2, 4, 7, 8)], "a", {"num_heads": 4}),
    ("mha_qk", "MultiHeadAttention", [f(2, 5, 32), f(2, 7, 32), f(2, 7, 32)], "a--d", {"num_heads": 4},
     {"a": ("fp32", [2, 5, 32]), "d": ("fp32", [2, 4, 5, 7])}),
    ("decoder_mha", "DecoderMaskedMultiHeadAttention",
     [f(2, 1, 32), f(2, 1, 32), f(2, 1, 32), None, None, f(2, 4, 9, 8), f(2, 4, 9, 8), c32(3)], "abc",
     {"num_heads": 4, "past_present_share_buffer": 1}),
    ("decoder_mha_cross", "DecoderMaskedMultiHeadAttention", [f(2, 1, 32), f(2, 4, 7, 8), f(2, 4, 7, 8)], "a", {"num_heads": 4}),
    ("gqa_prompt", "GroupQueryAttention", [f(2, 5, 64), f(2, 5, 32), f(2, 5, 32), None, None, Const([4, 4], np.int32), Const(5, np.int32)],
     "abc", {"num_heads": 8, "kv_num_heads": 4}),
    ("gqa_decode", "GroupQueryAttention",
     [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 4, 6, 8), f(2, 4, 6, 8), Const([6, 6], np.int32), Const(7, np.int32)], "abc",
     {"num_heads": 8, "kv_num_heads": 4}),
    ("gqa_long_cache", "GroupQueryAttention",
     [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 4, 16, 8), f(2, 4, 16, 8), Const([6, 6], np.int32), Const(7, np.int32)], "abc",
     {"num_heads": 8, "kv_num_heads": 4}),
    ("gqa_packed_rotary", "GroupQueryAttention",
     [f(2, 5, 256), None, None, None, None, Const([4, 4], np.int32), Const(5, np.int32), f(16, 8), f(16, 8)], "abc",
     {"num_heads": 8, "kv_num_heads": 4, "do_rotary": 1}),
    ("sparse_attention", "SparseAttention",
     [f(1, 16, 64), f(1, 16, 32), f(1, 16, 32), f(1, 2, 32, 16), f(1, 2, 32, 16), Const([[0, 1, 2]], np.int32), Const([[0, 1]], np.int32),
      Const(16, np.int32), Const([16], np.int32)], "abc", {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 16},
     {"a": ("fp32", [1, 16, 64]), "b": ("fp32", [1, 2, 32, 16]), "c": ("fp32", [1, 2, 32, 16])}),
    ("rotary", "RotaryEmbedding", [f(2, 5, 32), i64(2, 5), f(16, 4), f(16, 4)], "a", {"num_heads": 4, "rotary_embedding_dim": 0}),
    ("rotary_4d", "RotaryEmbedding", [f(2, 4, 5, 8), i64(1), f(16, 4), f(16, 4)], "a", {}),
    ("linear_attention", "LinearAttention", [f(2, 5, 32), f(2, 5, 32), f(2, 5, 64)], "ab",
     {"q_num_heads": 4, "kv_num_heads": 4, "update_rule": "linear"}),
    ("causal_conv", "CausalConvWithState", [f(2, 6, 9), f(6, 1, 4)], "ab", {}),
    ("causal_conv_state", "CausalConvWithState", [f(2, 6, 9), f(6, 1, 4), f(6), f(2, 6, 3)], "ab", {"activation": "silu"}),
    ("embed", "EmbedLayerNormalization", [i32(2, 5), i32(2, 5), f(9, 16), f(7, 16), f(2, 16), f(16), f(16), i32(2, 5)], "abc", {}),
    ("embed_no_segment", "EmbedLayerNormalization", [i32(2, 5), None, f(9, 16), f(7, 16), None, f(16), f(16)], "ab", {}),
    ("skip_norm", "SkipLayerNormalization", [f(2, 5, 16), f(2, 5, 16), f(16), f(16), f(16)], "a--d", {}),
    ("skip_norm_broadcast", "SkipLayerNormalization", [f(2, 5, 16), f(5, 16), f(16), f(16)], "a", {}),
    ("skip_rms", "SkipSimplifiedLayerNormalization", [f(2, 5, 16), f(2, 5, 16), f(16)], "a--d", {}),
    ("skip_rms_2d", "SkipSimplifiedLayerNormalization", [f(5, 16), f(5, 16), f(16)], "a--d", {}),
    ("bias_gelu", "BiasGelu", [f(2, 5, 16), f(16)], "a", {}),
    ("fast_gelu", "FastGelu", [f(2, 5, 16), f(16)], "a", {}),
    ("gelu", "Gelu", [f(2, 5)], "a", {}),
    ("quick_gelu", "QuickGelu", [f(2, 5)], "a", {}),
    ("fused_matmul", "FusedMatMul", [f(2, 3, 5, 4), f(2, 3, 5, 6)], "a", {"transA": 1}),
    ("fused_matmul_tb", "FusedMatMul", [f(2, 3, 4, 5), f(2, 3, 6, 5)], "a", {"transB": 1, "alpha": 0.5}),
    ("fused_matmul_batch_a", "FusedMatMul", [f(4, 2, 3, 5), f(2, 3, 5, 6)], "a", {"transBatchA": 1}),
    ("fused_matmul_batch_ab", "FusedMatMul", [f(4, 2, 3, 5), f(6, 2, 3, 5)], "a", {"transBatchA": 1, "transBatchB": 1, "transB": 1}),
    ("fused_matmul_batch_ta", "FusedMatMul", [f(5, 2, 3, 4), f(2, 3, 5, 6)], "a", {"transBatchA": 1, "transA": 1}),
    ("fused_matmul_vector", "FusedMatMul", [f(5), f(2, 5, 6)], "a", {}),
    ("transpose_matmul", "TransposeMatMul", [f(5, 4), f(5, 6)], "a", {"transA": 1}),
    ("fused_gemm", "FusedGemm", [f(4, 5), f(6, 5), f(6)], "a", {"transB": 1, "activation": "Relu"}),
    ("matmul_nbits", "MatMulNBits", [f(2, 5, 64), u8(24, 2, 16), f(48)], "a", {"K": 64, "N": 24, "bits": 4, "block_size": 32}),
    ("matmul_nbits_zero", "MatMulNBits", [f(5, 64), u8(24, 2, 16), f(48), u8(24)], "a", {"K": 64, "N": 24, "bits": 4, "block_size": 32}),
    ("matmul_bnb4", "MatMulBnb4", [f(5, 64), u8(768), f(24)], "a", {"K": 64, "N": 24, "block_size": 64, "quant_type": 1}),
    ("matmul_fpq4", "MatMulFpQ4", [f(5, 32), u8(480), c64(32, 24)], "a", {"blk_quant_type": 1},
     {"a": ("fp32", [5, 24])}),
    ("matmul_integer_float", "MatMulIntegerToFloat", [u8(2, 5, 8), i8(8, 6), ONE, ONE], "a", {}),
    ("matmul_integer_16", "MatMulInteger16", [np.zeros((5, 8), np.int16), np.zeros((8, 6), np.int16)], "a", {}),
    ("dynamic_matmul", "DynamicQuantizeMatMul", [f(2, 5, 8), u8(8, 6), ONE, Z8], "a", {}),
    ("qgemm_float", "QGemm", [u8(5, 8), ONE, Z8, u8(6, 8), ONE, Z8], "a", {"transB": 1}),
    ("qgemm_byte", "QGemm", [u8(8, 5), ONE, Z8, u8(8, 6), ONE, Z8, i32(6), ONE, Z8], "a", {"transA": 1}),
    ("qlinear_add", "QLinearAdd", [u8(2, 5, 8), ONE, Z8, u8(5, 1), ONE, Z8, ONE, Z8], "a", {}),
    ("qlinear_mul", "QLinearMul", [i8(1, 8), ONE, S8, i8(5, 1), ONE, S8, ONE, S8], "a", {}),
    ("qlinear_where", "QLinearWhere", [np.zeros((5, 1), bool), u8(1, 8), ONE, Z8, u8(2, 1, 1), ONE, Z8, ONE, Z8], "a", {}),
    ("qlinear_softmax", "QLinearSoftmax", [u8(2, 8), ONE, Z8, Const(1 / 256, F32), Z8], "a", {"opset": 13}),
    ("qlinear_sigmoid", "QLinearSigmoid", [u8(2, 8), ONE, Z8, ONE, Z8], "a", {}),
    ("qlinear_leaky", "QLinearLeakyRelu", [u8(2, 8), ONE, Z8, ONE, Z8], "a", {}),
    ("qlinear_concat", "QLinearConcat", [ONE, Z8, u8(2, 3), ONE, Z8, u8(2, 5), ONE, Z8], "a", {"axis": 1}),
    ("qlinear_average", "QLinearAveragePool", [u8(1, 3, 9, 8), ONE, Z8, ONE, Z8], "a", {"kernel_shape": [3, 3], "strides": [2, 2]}),
    ("qlinear_average_last", "QLinearAveragePool", [u8(1, 9, 8, 3), ONE, Z8, ONE, Z8], "a",
     {"kernel_shape": [3, 2], "channels_last": 1, "ceil_mode": 1, "strides": [2, 2]}),
    ("qlinear_global", "QLinearGlobalAveragePool", [u8(1, 3, 9, 8), ONE, Z8, ONE, Z8], "a", {}),
    ("qlinear_global_last", "QLinearGlobalAveragePool", [u8(1, 9, 8, 3), ONE, Z8, ONE, Z8], "a", {"channels_last": 1}),
    ("qlinear_conv", "QLinearConv", [u8(1, 4, 9, 8), ONE, Z8, u8(6, 2, 3, 3), ONE, Z8, ONE, Z8], "a", {"group": 2, "pads": [1, 0, 1, 0]}),
    ("qlinear_conv_last", "QLinearConv", [u8(1, 9, 8, 4), ONE, Z8, u8(6, 4, 3, 3), ONE, Z8, ONE, Z8], "a", {"channels_last": 1}),
    ("qlinear_reduce_mean", "QLinearReduceMean", [u8(2, 5, 8), ONE, Z8, ONE, Z8], "a", {"axes": [1], "keepdims": 0},
     {"a": ("uint8", [2, 8])}),
    ("mul_integer", "MulInteger", [u8(2, 8), Z8, u8(8), Z8], "a", {},
     {"a": ("int32", [2, 8])}),
    ("quantize", "QuantizeLinear", [f(2, 8), ONE, S8], "a", {}),
    ("quantize_16", "QuantizeLinear", [f(2, 8), ONE, Const(0, np.uint16)], "a", {}),
    ("dequantize", "DequantizeLinear", [u8(2, 8), ONE, Z8], "a", {}),
    ("gather_block", "GatherBlockQuantized", [u8(10, 16), i64(2, 3), f(10, 2)], "a", {"block_size": 16, "bits": 4}),
    ("gather_block_8", "GatherBlockQuantized", [u8(10, 32), i64(2, 3), f(10, 2)], "a", {"block_size": 16, "bits": 8}),
    ("moe", "MoE", [f(6, 16), f(6, 4), f(4, 32, 16), None, f(4, 16, 32)], "a", {"k": 2, "activation_type": "gelu"}),
    ("qmoe", "QMoE", [f(6, 32), f(6, 4), u8(4, 64, 16), f(4, 64), None, u8(4, 32, 32), f(4, 32)], "a",
     {"k": 2, "activation_type": "silu", "expert_weight_bits": 4}),
    ("lstm", "DynamicQuantizeLSTM",
     [f(3, 2, 4), Const(np.zeros((1, 4, 20)), np.uint8), Const(np.zeros((1, 5, 20)), np.uint8), None, None, None, None, None,
      Const([1], F32), Const([0], np.uint8), Const([1], F32), Const([0], np.uint8)], "abc", {"hidden_size": 5}),
    ("attn_lstm", "AttnLSTM", [f(3, 2, 4), f(1, 20, 7), f(1, 20, 5), None, None, None, None, None, f(1, 5, 6), f(1, 3, 6), f(1, 6), f(2, 8, 3)],
     "abc", {"hidden_size": 5}),
    ("fused_conv", "FusedConv", [f(1, 4, 9, 8), f(6, 4, 3, 3), f(6)], "a", {"activation": "Relu", "strides": [2, 2]}),
    ("nhwc_fused_conv", "NhwcFusedConv", [f(1, 9, 8, 4), f(6, 4, 3, 3), f(6)], "a", {"pads": [1, 1, 1, 1]},
     {"a": ("fp32", [1, 9, 8, 6])}),
    ("nhwc_max_pool", "NhwcMaxPool", [u8(1, 9, 8, 4)], "a", {"kernel_shape": [3, 3], "strides": [2, 2]}),
    ("conv_transpose_pads", "ConvTransposeWithDynamicPads", [f(1, 4, 5, 5), f(4, 3, 3, 3), c64(1, 1, 1, 1)], "a", {"strides": [2, 2]}),
    ("max_pool_mask", "MaxpoolWithMask", [f(1, 3, 9, 8), i32(1, 3, 9, 8)], "a", {"kernel_shape": [3, 3]}),
    ("grid_sample", "GridSample", [f(1, 3, 9, 8), f(1, 4, 5, 2)], "a", {}),
    ("crop_and_resize", "CropAndResize", [f(2, 3, 9, 8), f(5, 4), i32(5), c32(4, 6)], "a", {}),
    ("pad", "Pad", [f(2, 3), c64(1, 0, 0, 2)], "a", {}),
    ("trilu", "Trilu", [f(2, 3, 3)], "a", {}),
    ("unique", "Unique", [Const([1, 1, 1], F32)], "abc", {}),
    ("range", "Range", [Const(1, np.int32), Const(9, np.int32), Const(3, np.int32)], "a", {}),
    ("gather_nd", "GatherND", [f(2, 3, 4), i64(5, 2)], "a", {}),
    ("expand_dims", "ExpandDims", [f(2, 3), Const(-1, np.int32)], "a", {}),
    ("inverse", "Inverse", [np.eye(3, dtype=F32)], "a", {}),
    ("bias_softmax", "BiasSoftmax", [f(2, 3, 4), f(1, 3, 4)], "a", {"axis": 2, "is_inner_broadcast": 0},
     {"a": ("fp32", [2, 3, 4])}),
    ("bias_add", "BiasAdd", [f(2, 3, 4), f(4), f(2, 3, 4)], "a", {},
     {"a": ("fp32", [2, 3, 4])}),
    ("bias_split_gelu", "BiasSplitGelu", [f(2, 3, 8), f(8)], "a", {},
     {"a": ("fp32", [2, 3, 4])}),
    ("group_norm", "GroupNorm", [f(2, 4, 4, 8), f(8), f(8)], "a", {"groups": 2, "activation": 0},
     {"a": ("fp32", [2, 4, 4, 8])}),
    ("skip_group_norm", "SkipGroupNorm", [f(2, 4, 4, 8), f(8), f(8), f(2, 4, 4, 8)], "ab", {"groups": 2, "activation": 0},
     {"a": ("fp32", [2, 4, 4, 8]), "b": ("fp32", [2, 4, 4, 8])}),
    ("cdist", "CDist", [f(3, 4), f(5, 4)], "a", {"metric": "sqeuclidean"}),
    ("complex_mul", "ComplexMul", [f(3, 2), f(3, 2)], "a", {},
     {"a": ("fp32", [3, 2])}),
    ("rfft", "Rfft", [f(3, 8)], "a", {"signal_ndim": 1},
     {"a": ("fp32", [3, 5, 2])}),
    ("irfft", "Irfft", [f(3, 5, 2)], "a", {"signal_ndim": 1},
     {"a": ("fp32", [3, 8])}),
    ("murmur", "MurmurHash3", [i32(3)], "a", {}),
    ("murmur_signed", "MurmurHash3", [i32(3)], "a", {"positive": 0}),
    ("ngram", "NGramRepeatBlock", [i64(2, 6), f(2, 10)], "a", {"ngram_size": 3}),
    ("sample_op", "SampleOp", [f(3)], "a", {}),
    ("unfold", "UnfoldTensor", [f(3, 10)], "a", {"size": 4, "step": 2}),
    ("word_conv", "WordConvEmbedding", [i32(2, 9), f(5, 1, 3, 4), f(5), f(11, 4)], "a", {}),
    ("is_all_finite", "IsAllFinite", [f(3), f(2, 2)], "a", {},
     {"a": ("bool", [])}),
    ("bias_dropout", "BiasDropout", [f(2, 5), f(5)], "ab", {},
     {"a": ("fp32", [2, 5]), "b": ("bool", [2, 5])}),
    ("bitmask_dropout", "BitmaskDropout", [f(5, 9)], "ab", {},
     {"a": ("fp32", [5, 9]), "b": ("uint32", [2])}),
    ("bitmask_bias_dropout", "BitmaskBiasDropout", [f(5, 9), f(9)], "ab", {},
     {"a": ("fp32", [5, 9]), "b": ("uint32", [2])}),
    ("quantize_order", "QuantizeWithOrder", [f(2, 32), ONE], "a", {"order_input": 1, "order_output": 1},
     {"a": ("int8", [2, 32])}),
    ("scaled_silu", "ScaledSiLU", [f(2, 5)], "a", {}),
    ("gated_rms", "GatedRMSNorm", [f(2, 3, 16), f(8), f(2, 3, 16)], "a", {}),
    ("gated_add", "GatedAdd", [f(2, 3, 16), f(2, 3, 16), f(2, 3, 1)], "a", {}),
    ("branchwise_rms", "BranchwiseRMSNorm", [f(2, 3, 4, 8), f(4, 8)], "a", {}),
    ("linear_gate", "LinearAttentionGate", [f(2, 3, 4), f(4), f(4), f(2, 3, 4)], "ab", {}),
    ("engram", "EngramGate", [f(2, 3, 4, 8), f(2, 3, 4, 8), f(2, 3, 8), f(4, 8), f(4, 8)], "a", {}),
    ("mrope", "MRotaryEmbedding", [f(2, 4, 5, 8), i64(3, 2, 5), f(16, 4), f(16, 4)], "a", {"mrope_section": [2, 1, 1]}),
    ("relative_bias", "RelativePositionBias", [f(8, 4), Const(5, np.int64), Const(5, np.int64)], "a", {"max_distance": 8},
     {"a": ("fp32", [1, 4, 5, 5])}),
    ("decoder_attention", "DecoderAttention",
     [f(3, 2, 16), f(3, 2, 16), f(16, 16), f(16, 32), f(48), None, None, None, Const([False], bool), Const([False], bool), Const([False], bool),
      Const([False], bool)], "abc", {"num_heads": 2},
     {"a": ("fp32", [3, 2, 16]), "b": ("fp32", [2, 2, 3, 8]), "c": ("fp32", [2, 2, 3, 8])}),
    ("packed_attention", "PackedAttention", [f(7, 16), f(16, 96), f(96), i32(2, 5), i32(3)], "a", {"num_heads": 4},
     {"a": ("fp32", [7, 32])}),
    ("packed_mha", "PackedMultiHeadAttention", [f(7, 32), f(7, 32), f(7, 64), None, i32(2, 5), i32(3)], "a", {"num_heads": 4},
     {"a": ("fp32", [7, 64])}),
    ("packed_mha_qkv", "PackedMultiHeadAttention", [f(7, 4, 3, 8), None, None, None, i32(2, 5), i32(3)], "a", {"num_heads": 4},
     {"a": ("fp32", [7, 32])}),
    ("gqa_half", "GroupQueryAttention",
     [h(2, 1, 64), h(2, 1, 32), h(2, 1, 32), h(2, 4, 6, 8), h(2, 4, 6, 8), c32(6, 6), c32(7)], "abc", {"num_heads": 8, "kv_num_heads": 4}),
    ("paged_attention", "PagedAttention",
     [h(7, 64), h(7, 32), h(7, 32), h(3, 256, 4, 8), h(3, 256, 4, 8), i32(3), i32(2), i32(2, 2)], "abc", {"num_heads": 8, "kv_num_heads": 4},
     {"a": ("fp16", [7, 64]), "b": ("fp16", [3, 256, 4, 8]), "c": ("fp16", [3, 256, 4, 8])}),
    ("decoder_self_attention", "DecoderMaskedSelfAttention", [f(2, 1, 16), f(16, 96), f(96), None, f(2, 2, 4, 9, 8), None, c32(3)], "ab",
     {"num_heads": 4, "past_present_share_buffer": 1}, {"a": ("fp32", [2, 1, 32]), "b": ("fp32", [2, 2, 4, 9, 8])}),
    ("longformer", "LongformerAttention", [f(1, 8, 16), f(16, 48), f(48), f(1, 8), f(16, 48), f(48), i32(1, 8)], "a",
     {"num_heads": 2, "window": 4}, {"a": ("fp32", [1, 8, 16])}),
    ("gemma_rotary", "GemmaRotaryEmbedding", [f(2, 5, 8), h(2, 4, 5, 8), h(2, 4, 5, 8), h(2, 1, 5, 8), h(2, 1, 5, 8)], "ab", {},
     {"a": ("fp16", [2, 4, 5, 8]), "b": ("fp16", [2, 1, 5, 8])}),
    ("gated_relative_bias", "GatedRelativePositionBias",
     [f(2, 5, 32), f(32), f(1, 4, 5, 5), f(8, 6), f(6), f(1, 4, 1, 1)], "a", {"num_heads": 4}, {"a": ("fp32", [2, 4, 5, 5])}),
    ("gemm_float8", "GemmFloat8", [f(4, 5), f(6, 5)], "a", {"transB": 1, "dtype": 10}, {"a": ("fp16", [4, 6])}),
    ("gemm_fast_gelu", "GemmFastGelu", [f(4, 5), f(5, 6), f(6)], "a", {}, {"a": ("fp32", [4, 6])}),
    ("matmul_fp8_blocks", "MatMulBlockQuantizedFp8Weight", [h(2, 5, 128), np.zeros((24, 128), FP8), f(24, 1)], "a", {},
     {"a": ("fp16", [2, 5, 24])}),
    ("nbits_mlp", "MatMulNBitsMlp", [f(2, 5, 64), None, None, u8(24, 2, 16), f(48), None, u8(24, 2, 16), f(48)], "a",
     {"K": 64, "N": 24, "block_size": 32, "activation": "silu"}, {"a": ("fp32", [2, 5, 24])}),
    ("nbits_qkv", "MatMulNBitsQkv",
     [f(2, 5, 64), None, f(64), u8(64, 2, 16), f(128), None, u8(32, 2, 16), f(64), None, u8(32, 2, 16), f(64)], "abc",
     {"K": 64, "Nq": 64, "Nkv": 32, "block_size": 32}, {"a": ("fp32", [2, 5, 64]), "b": ("fp32", [2, 5, 32]), "c": ("fp32", [2, 5, 32])}),
    ("qordered_matmul", "QOrderedMatMul", [i8(1, 4, 32), ONE, i8(32, 64), ONE, ONE], "a", {"order_A": 1, "order_B": 1, "order_Y": 1},
     {"a": ("int8", [1, 4, 64])}),
    ("nhwc_conv", "NhwcConv", [f(1, 9, 8, 4), f(6, 3, 3, 4)], "a", {"strides": [2, 2]}, {"a": ("fp32", [1, 4, 3, 6])}),
    ("nhwc_conv_depth_first", "NhwcConv", [f(1, 9, 8, 4), f(6, 4, 3, 3)], "a", {"strides": [2, 2]}, {"a": ("fp32", [1, 4, 3, 6])}),
    ("nhwc_conv_either", "NhwcConv", [f(1, 9, 8, 3), f(6, 3, 5, 3)], "a", {}, {"a": ("fp32", [1, 7, 4, 6])}),
    ("nhwc_conv_stated", "NhwcConv", [f(1, 9, 8, 3), f(6, 3, 5, 3)], "a", {"kernel_shape": [5, 3]}, {"a": ("fp32", [1, 5, 6, 6])}),
    ("linear_window", "LinearAttention", [f(2, 5, 32), f(2, 5, 64), f(2, 5, 128)], "ab",
     {"q_num_heads": 4, "kv_num_heads": 8, "update_rule": "linear", "state_window": 3},
     {"a": ("fp32", [2, 5, 128]), "b": ("fp32", [3, 2, 8, 8, 16])}),
    ("restore_padding", "RestorePadding", [f(7, 16), i32(2, 5)], "a", {}, {"a": ("fp32", [2, 5, 16])}),
    ("torch_embedding", "TorchEmbedding", [f(9, 16), i64(2, 5)], "a", {}, {"a": ("fp32", [2, 5, 16])}),
    ("simplified_norm", "SimplifiedLayerNormalization", [f(2, 5, 16), f(16)], "ab", {},
     {"a": ("fp32", [2, 5, 16]), "b": ("fp32", [2, 5, 1])}),
    ("block_conv", "com.microsoft.nchwc:Conv", [f(1, 32, 9, 8), f(48, 32, 3, 3), f(48)], "a",
     {"activation": "Relu", "strides": [2, 2], "pads": [1, 1, 1, 1]}, {"a": ("fp32", [1, 48, 5, 4])}),
    ("block_conv_sum", "com.microsoft.nchwc:Conv", [f(1, 32, 9, 8), f(32, 32, 1, 1), f(32), f(1, 32, 9, 8)], "a", {},
     {"a": ("fp32", [1, 32, 9, 8])}),
    ("block_conv_plain_input", "com.microsoft.nchwc:Conv", [f(1, 3, 9, 8), f(32, 3, 3, 3)], "a", {}, {"a": ("fp32", [1, 32, 7, 6])}),
    ("block_conv_depthwise", "com.microsoft.nchwc:Conv", [f(1, 32, 9, 8), f(32, 1, 3, 3)], "a", {"group": 32}, {"a": ("fp32", [1, 32, 7, 6])}),
    ("block_max_pool", "com.microsoft.nchwc:MaxPool", [f(1, 32, 9, 8)], "a", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
     {"a": ("fp32", [1, 32, 4, 4])}),
    ("block_average_pool", "com.microsoft.nchwc:AveragePool", [f(1, 32, 9, 8)], "a", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]},
     {"a": ("fp32", [1, 32, 10, 9])}),
    ("block_global_average", "com.microsoft.nchwc:GlobalAveragePool", [f(1, 32, 9, 8)], "a", {}, {"a": ("fp32", [1, 32, 1, 1])}),
    ("block_global_max", "com.microsoft.nchwc:GlobalMaxPool", [f(1, 32, 9, 8)], "a", {}, {"a": ("fp32", [1, 32, 1, 1])}),
    ("block_upsample", "com.microsoft.nchwc:Upsample", [f(1, 32, 9, 8)], "a", {"scales": [1, 1, 2, 3]}, {"a": ("fp32", [1, 32, 18, 24])}),
    ("block_upsample_linear", "com.microsoft.nchwc:Upsample", [f(1, 32, 9, 8)], "a",
     {"scales": [1, 1, 2, 2], "mode": "linear", "coordinate_transformation_mode": "half_pixel"}, {"a": ("fp32", [1, 32, 18, 16])}),
    ("block_input", "com.microsoft.nchwc:ReorderInput", [f(1, 28, 9, 8)], "a", {}, {"a": ("fp32", [1, 32, 9, 8])}),
    ("block_input_last", "com.microsoft.nchwc:ReorderInput", [f(1, 9, 8, 28)], "a", {"channels_last": 1}, {"a": ("fp32", [1, 32, 9, 8])}),
    ("block_output", "com.microsoft.nchwc:ReorderOutput", [f(1, 32, 9, 8)], "a", {"channels": 27}, {"a": ("fp32", [1, 27, 9, 8])}),
    ("block_output_last", "com.microsoft.nchwc:ReorderOutput", [f(1, 32, 9, 8)], "a", {"channels": 27, "channels_last": 1},
     {"a": ("fp32", [1, 9, 8, 27])}),
    ("quick_gelu_half", "QuickGelu", [h(2, 5)], "a", {"alpha": 1.0}, {"a": ("fp16", [2, 5])}),
]


def build(name, op, inputs, outputs, attributes):
    """The model, and the arrays to feed."""
    names, stored, formal, feeds = [], [], [], {}
    for k, x in enumerate(inputs):
        if x is None:
            names.append("")
            continue
        names.append(f"in{k}")
        if isinstance(x, Const):
            stored.append(numpy_helper.from_array(x.array, names[-1]))
        else:
            formal.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
            feeds[names[-1]] = x
    results = [f"out_{letter}" if letter != "-" else "" for letter in outputs]
    domain, op = op.split(":") if ":" in op else ("com.microsoft", op)
    node = helper.make_node(op, names, results, name, domain=domain, **attributes)
    graph = helper.make_graph([node], name, formal, [onnx.ValueInfoProto(name=r) for r in results if r], stored)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("com.microsoft.nchwc", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def run_real(model, feeds):
    """Type and shape of every output as a run gives them."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    arrays = session.run(None, feeds)
    return {o.name: (NAMES.get(a.dtype.name, a.dtype.name), list(a.shape)) for o, a in zip(session.get_outputs(), arrays)}


def expected(model, feeds):
    """The same from a process of its own, for a kernel may take its process down."""
    ours, theirs = multiprocessing.Pipe(False)

    def child():
        try:
            theirs.send(run_real(model, feeds))
        except Exception as error:  # whatever the runtime throws: it cannot run this one here
            theirs.send(str(error).splitlines()[0])

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return "the runtime crashed"
    finally:
        process.join()


def inferred(program, model, folder):
    """What the program says of every tensor, and what it said on stderr."""
    path, result = os.path.join(folder, "m.onnx"), os.path.join(folder, "t.json")
    if os.path.exists(result):
        os.remove(result)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    ops = os.path.join(folder, "o.json")
    run = subprocess.run([program, path, "-o", ops, "--tensors", result, "--quiet"], capture_output=True, text=True)
    if not os.path.exists(result):
        return None, f"exit {run.returncode}: {run.stderr.strip()}"
    if why := refusal(ops):
        return None, why
    with open(result) as file:
        return {t["name"]: (t["dtype"], t["shape"]) for t in json.load(file)["tensors"]}, run.stderr.strip()


def check(program, case, folder):
    """None where all is well, ("skip" or "fail", why) otherwise."""
    model, feeds = build(*case[:5])
    want = expected(model, feeds)
    got, message = inferred(program, model, folder)
    if isinstance(want, str) and len(case) > 5:
        want = {f"out_{letter}": stated for letter, stated in case[5].items()}
    if isinstance(want, str):
        return "skip", f"{want} [here: {[v for k, v in (got or {}).items() if k.startswith('out_')] or message}]"
    if got is None:
        return "fail", f"{message}, expected {want}"
    wrong = {k: (got.get(k), v) for k, v in want.items() if got.get(k) != v}
    return ("fail", f"inferred and expected: {wrong}") if wrong else None


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "bin/extract_ops")
    wanted = set(sys.argv[2:])
    count = {"pass": 0, "fail": 0, "skip": 0}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if wanted and case[0] not in wanted:
                continue
            result = check(program, case, folder)
            count[result[0] if result else "pass"] += 1
            if result:
                print(f"{result[0]} {case[0]}: {result[1][:400]}")
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    return 1 if count["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
