#!/usr/bin/env python3
"""What a record says: operations that differ in an attribute must not be merged, those that only spell a default must be,
and bytes, parameters, weights and padding are compared with figures worked out here.

Usage: check_records.py [EXTRACT_OPS] [NAME...]
The last line is "N passed, N failed, N skipped".
"""

import json
import os
import subprocess
import sys
import tempfile

from oracle import refusal

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"{missing.name} is not installed")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

MS = "com.microsoft"
NCHWC = "com.microsoft.nchwc"
TYPES = {np.dtype(np.float16): 10, np.dtype(np.float32): 1, np.dtype(np.uint8): 2, np.dtype(np.int8): 3, np.dtype(np.int32): 6, np.dtype(np.int64): 7, np.dtype(np.bool_): 9}


def x(*shape, dtype=np.float32):
    """An input of the model."""
    return ("input", np.zeros(shape, dtype))


def w(*shape, dtype=np.float32):
    """A constant in the file."""
    return ("constant", np.ones(shape, dtype))


def c(values, dtype=np.int64):
    return ("constant", np.array(values, dtype))


def model(nodes, opset):
    """Nodes are (operator, inputs, outputs, attributes, domain); inputs are made by x, w and c, or name an earlier output;
    outputs are a count, or a count and which of them are read."""
    inputs, constants, made, outs = [], [], [], []
    for k, (op, operands, outputs, attributes, domain) in enumerate(nodes):
        names = []
        for i, operand in enumerate(operands):
            name = f"n{k}_{i}"
            if operand is None or isinstance(operand, str):
                name = operand or ""
            elif operand[0] == "input":
                inputs.append(helper.make_tensor_value_info(name, TYPES[operand[1].dtype], operand[1].shape))
            else:
                constants.append(numpy_helper.from_array(operand[1], name))
            names.append(name)
        count, read = outputs if isinstance(outputs, tuple) else (outputs, range(outputs))
        results = [f"n{k}_out{o}" for o in range(count)]
        made.append(helper.make_node(op, names, results, domain=domain, **attributes))
        outs += [helper.make_empty_tensor_value_info(results[o]) for o in read]
    graph = helper.make_graph(made, "records", inputs, outs, constants)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1), helper.make_opsetid(NCHWC, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def extract(program, nodes, opset, folder):
    path, result = os.path.join(folder, "m.onnx"), os.path.join(folder, "o.json")
    with open(path, "wb") as file:
        file.write(model(nodes, opset).SerializeToString())
    if os.path.exists(result):
        os.remove(result)
    run = subprocess.run([program, path, "-o", result, "--quiet"], capture_output=True, text=True)
    if not os.path.exists(result):
        raise AssertionError(f"exit {run.returncode}: {run.stderr.strip()}")
    if why := refusal(result):
        raise AssertionError(why)
    with open(result) as file:
        return json.load(file)


F = x(2, 16, 64)
IMAGE = x(1, 3, 8, 8)
LSTM = [x(5, 2, 4), w(1, 32, 4), w(1, 32, 8)]
GRU = [x(5, 2, 4), w(1, 24, 4), w(1, 24, 8)]
RESIZE = [IMAGE, None, c([1, 1, 2, 2], np.float32)]
SAME = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
THREE = [x(10, 8), x(10), None]

# name, operator, inputs, attributes that all mean something else ({} among them: the default), attributes that mean the default
APART = [
    ("gelu", "Gelu", [F], [{}, dict(approximate="tanh")], dict(approximate="none")),
    ("swish", "Swish", [F], [{}, dict(alpha=1.5), dict(alpha=1.702)], dict(alpha=1.0)),
    ("leaky", "LeakyRelu", [F], [{}, dict(alpha=0.1), dict(alpha=0.3)], dict(alpha=0.01)),
    ("elu", "Elu", [F], [{}, dict(alpha=0.5)], dict(alpha=1.0)),
    ("celu", "Celu", [F], [{}, dict(alpha=0.5)], dict(alpha=1.0)),
    ("selu", "Selu", [F], [{}, dict(alpha=1.5), dict(gamma=1.5)], dict(alpha=1.67326319217681884765625, gamma=1.05070102214813232421875)),
    ("hardsigmoid", "HardSigmoid", [F], [{}, dict(alpha=0.25), dict(beta=0.25)], dict(alpha=0.2, beta=0.5)),
    ("thresholded", "ThresholdedRelu", [F], [{}, dict(alpha=2.0)], dict(alpha=1.0)),
    ("shrink", "Shrink", [F], [{}, dict(lambd=0.1), dict(bias=0.1)], dict(lambd=0.5, bias=0.0)),
    ("mod", "Mod", [F, F], [dict(fmod=1)], None),
    ("mod_int", "Mod", [x(8, dtype=np.int32), x(8, dtype=np.int32)], [{}, dict(fmod=1)], dict(fmod=0)),
    ("shift", "BitShift", [x(8, dtype=np.uint8), x(8, dtype=np.uint8)], [dict(direction="LEFT"), dict(direction="RIGHT")], None),
    ("isinf", "IsInf", [F], [{}, dict(detect_negative=0), dict(detect_positive=0)], dict(detect_negative=1, detect_positive=1)),
    ("softmax", "Softmax", [F], [{}, dict(axis=1), dict(axis=0)], dict(axis=2)),
    ("average", "AveragePool", [IMAGE], [SAME, dict(SAME, count_include_pad=1), dict(SAME, dilations=[2, 2], pads=[2, 2, 2, 2])],
     dict(SAME, count_include_pad=0, ceil_mode=0, strides=[1, 1])),
    ("max", "MaxPool", [IMAGE], [SAME, dict(SAME, ceil_mode=1), dict(SAME, storage_order=1)], dict(SAME, dilations=[1, 1], storage_order=0)),
    ("lp", "LpPool", [IMAGE], [SAME, dict(SAME, p=1)], dict(SAME, p=2)),
    ("global_lp", "GlobalLpPool", [IMAGE], [{}, dict(p=1)], dict(p=2)),
    ("resize", "Resize", RESIZE,
     [{}, dict(mode="linear"), dict(mode="cubic"), dict(mode="cubic", cubic_coeff_a=-0.5), dict(mode="linear", antialias=1),
      dict(mode="linear", coordinate_transformation_mode="align_corners"), dict(nearest_mode="floor"), dict(mode="cubic", exclude_outside=1)],
     dict(mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor", antialias=0)),
    ("grid", "GridSample", [IMAGE, x(1, 4, 4, 2)], [{}, dict(mode="nearest"), dict(mode="cubic"), dict(padding_mode="border"), dict(align_corners=1)],
     dict(mode="linear", padding_mode="zeros", align_corners=0)),
    ("roi", "RoiAlign", [IMAGE, x(2, 4), x(2, dtype=np.int64)],
     [{}, dict(mode="max"), dict(sampling_ratio=2), dict(spatial_scale=0.5), dict(coordinate_transformation_mode="output_half_pixel")],
     dict(mode="avg", coordinate_transformation_mode="half_pixel")),
    ("lstm", "LSTM", LSTM,
     [dict(hidden_size=8), dict(hidden_size=8, direction="reverse"), dict(hidden_size=8, clip=1.0), dict(hidden_size=8, input_forget=1),
      dict(hidden_size=8, activations=["Tanh", "Tanh", "Tanh"]),
      dict(hidden_size=8, activations=["HardSigmoid", "Tanh", "Tanh"], activation_alpha=[0.3]),
      dict(hidden_size=8, activations=["HardSigmoid", "Tanh", "Tanh"], activation_alpha=[0.4])],
     dict(hidden_size=8, direction="forward", activations=["Sigmoid", "Tanh", "Tanh"], input_forget=0)),
    ("gru", "GRU", GRU, [dict(hidden_size=8), dict(hidden_size=8, linear_before_reset=1)], dict(hidden_size=8, linear_before_reset=0)),
    ("cumsum", "CumSum", [F, c(2)], [{}, dict(exclusive=1), dict(reverse=1)], dict(exclusive=0, reverse=0)),
    ("topk", "TopK", [F, c([4])], [{}, dict(largest=0), dict(sorted=0), dict(axis=1)], dict(axis=2, largest=1, sorted=1)),
    ("argmax", "ArgMax", [F], [{}, dict(axis=1), dict(select_last_index=1)], dict(axis=-3)),
    ("trilu", "Trilu", [F], [{}, dict(upper=0)], dict(upper=1)),
    ("pad", "Pad", [F, c([0, 0, 1, 0, 0, 1])], [{}, dict(mode="reflect"), dict(mode="edge")], dict(mode="constant")),
    ("depth", "DepthToSpace", [x(1, 8, 2, 2)], [dict(blocksize=2), dict(blocksize=2, mode="CRD")], dict(blocksize=2, mode="DCR")),
    ("gather", "Gather", [x(8, 8), x(8, dtype=np.int64)], [dict(axis=1)], dict(axis=-1)),
    ("onehot", "OneHot", [x(8, dtype=np.int64), c([8]), c([0, 1])], [{}, dict(axis=0)], dict(axis=1)),
    ("scatter", "ScatterElements", [x(4, 4), x(4, 4, dtype=np.int64), x(4, 4)], [{}, dict(axis=1), dict(reduction="add")], dict(axis=-2, reduction="none")),
    ("scatter_nd", "ScatterND", [x(4, 4), x(2, 1, dtype=np.int64), x(2, 4)], [{}, dict(reduction="mul")], dict(reduction="none")),
    ("lrn", "LRN", [IMAGE], [dict(size=3), dict(size=5), dict(size=3, alpha=0.1), dict(size=3, beta=0.5), dict(size=3, bias=2.0)],
     dict(size=3, alpha=0.0001, beta=0.75, bias=1.0)),
    ("lp_norm", "LpNormalization", [x(8, 8)], [{}, dict(p=1), dict(axis=0)], dict(axis=1, p=2)),
    ("mvn", "MeanVarianceNormalization", [x(4, 4, 4, 4)], [{}, dict(axes=[0, 1, 2])], dict(axes=[0, 2, 3])),
    ("nms", "NonMaxSuppression", [x(1, 8, 4), x(1, 1, 8)], [{}, dict(center_point_box=1)], dict(center_point_box=0)),
    ("hann", "HannWindow", [("input", np.zeros((), np.int64))], [{}, dict(periodic=0)], dict(periodic=1)),
]

# the same where not an attribute but an input or the opset says it: name, opset, nodes of which all are apart
BY_INPUT = [
    ("clip bounds", 21, [("Clip", [F, c(0, np.float32), c(k, np.float32)], 1, {}, "") for k in (1, 6)]),
    ("clip attributes", 10, [("Clip", [F], 1, dict(min=0.0, max=float(k)), "") for k in (1, 6)]),
    ("pow", 21, [("Pow", [F, c(k, np.float32)], 1, {}, "") for k in (2, 0.5)]),
    ("trilu diagonal", 21, [("Trilu", [F, c(k)], 1, {}, "") for k in (0, 1)]),
    ("slice steps", 21, [("Slice", [x(16), c([0]), c([k]), c([0]), c([s])], 1, {}, "") for k, s in ((8, 1), (16, 2))]),
    ("pads", 21, [("Pad", [x(8), c(p)], 1, {}, "") for p in ([2, 0], [1, 1])]),
    ("concat sizes", 21, [("Concat", [x(4, a), x(4, 8 - a)], 1, dict(axis=1), "") for a in (4, 1)]),
    ("split sizes", 21, [("Split", [x(8), c(s)], 2, {}, "") for s in ([4, 4], [2, 6])]),
    ("upsample and resize", 10, [("Resize", [IMAGE, c([1, 1, 2, 2], np.float32)], 1, dict(mode=m), "") for m in ("nearest", "linear")]),
    ("max pool with indices", 21, [("MaxPool", [IMAGE], n, SAME, "") for n in (1, 2)]),
    ("rnn states", 21, [("LSTM", [*LSTM, *more], 1, dict(hidden_size=8), "") for more in ([], [w(1, 64)], [None, x(2, dtype=np.int32)], [None, None, x(1, 2, 8)])]),
    ("einsum sizes", 21, [("Einsum", [x(4, a, 8), x(b, 8)], 1, dict(equation="iaj,bj->bia"), "") for a, b in ((2, 6), (3, 4))]),
    ("blocks of columns", 21, [("GatherBlockQuantized", [x(8, 32, 64, dtype=np.uint8), x(3, dtype=np.int64), x(*scales), *more], 1, dict(gather_axis=1, bits=8, **how), MS)
                               for how, scales, more in ((dict(block_size=32, quantize_axis=2), (8, 32, 2), []), (dict(block_size=16, quantize_axis=2), (8, 32, 4), []),
                                                         (dict(block_size=16, quantize_axis=0), (1, 32, 64), []),
                                                         (dict(block_size=16, quantize_axis=0), (1, 32, 64), [x(1, 32, 64, dtype=np.uint8)]))]),
    ("bias softmax", 21, [("Softmax", [x(4, 8)], 1, {}, ""), ("BiasSoftmax", [x(4, 8), x(4, 8)], 1, dict(axis=1, is_inner_broadcast=1), MS)]),
]

# another operator, the same operation
ONE = [
    ("gelu_tanh", [("Gelu", [F], 1, dict(approximate="tanh"), ""), ("FastGelu", [F], 1, {}, MS)]),
    ("quickgelu", [("QuickGelu", [F], 1, {}, MS), ("Swish", [F], 1, dict(alpha=1.702), "")]),
    ("silu", [("QuickGelu", [F], 1, dict(alpha=1.0), MS), ("Swish", [F], 1, {}, "")]),
]

# name, opset, nodes, which entry, what it must say; "more": roles of further weights; "parameters": of the model
ATTENTION = [x(1, 8, 128, dtype=np.float32), x(1, 8, 128), x(1, 8, 128)]
I8 = dict(dtype=np.int8)
U8 = dict(dtype=np.uint8)
SAYS = [
    ("table smaller than look-ups", 21, [("Gather", [w(2, 64), x(1000, dtype=np.int64)], 1, {}, "")], "embedding", dict(bytes_read=512 + 8000)),
    ("gather of few", 21, [("Gather", [x(2, 4), x(100, dtype=np.int64)], 1, dict(axis=1), "")], "move", dict(bytes_read=32 + 800, axis=1)),
    ("block table", 21, [("GatherBlockQuantized", [w(1000, 32, **U8), x(16, dtype=np.int64), w(1000, 2)], 1, dict(block_size=32, bits=4), MS)],
     "embedding", dict(bytes_read=512 + 128 + 128, block_size=32, parameters=66000, more=["scales"])),
    ("block table of bytes", 21, [("GatherBlockQuantized", [x(10, 64, **U8), x(6, dtype=np.int64), x(10, 2), x(10, 2, **U8)], 1, dict(block_size=32, bits=8), MS)],
     "embedding", dict(bytes_read=6 * 64 + 6 * 8 + 6 * 2 + 48, weight_dtype="int8", zero_points=1, quantize_axis=None)),
    ("block table, blocks down", 21, [("GatherBlockQuantized", [x(10, 32, 8, dtype=np.int8), x(6, dtype=np.int64), x(10, 1, 8)], 1, dict(block_size=32, quantize_axis=-2), MS)],
     "embedding", dict(weight_dtype="int8", quantize_axis=1)),
    ("columns in blocks", 21, [("GatherBlockQuantized", [x(8, 32, **U8), x(3, dtype=np.int64), x(1, 64)], 1, dict(block_size=16, bits=4, gather_axis=1, quantize_axis=0), MS)],
     "move", dict(axis=1, block_size=16, quantize_axis=0, weight_dtype="int4")),
    ("nms", 21, [("NonMaxSuppression", [x(2, 9, 4), x(2, 5, 9), c(3, np.int64), c(0.5, np.float32), c(0.25, np.float32)], 1, {}, "")],
     "reduce", dict(shape=[30, 3], channels=5, iou_threshold=0.5, threshold=0.25, flops=2 * 5 * 9 * (10 + 4))),
    ("nms by data", 21, [("NonMaxSuppression", [x(2, 9, 4), x(2, 5, 9), c(3, np.int64), x(1)], 1, {}, "")],
     "reduce", dict(channels=5, iou_threshold=None, threshold=None)),
    ("random", 21, [("RandomUniformLike", [x(2, 9)], 1, dict(low=2.0, high=3.0, seed=4.5), "")],
     "elementwise", dict(alpha=2, beta=3, seed=None, bytes_read=0, bytes_written=72)),
    ("embed norm", 21, [("EmbedLayerNormalization",
                         [x(2, 8, dtype=np.int32), x(2, 8, dtype=np.int32), w(1000, 64), w(512, 64), w(2, 64), w(64), w(64)], 2, {}, MS)],
     "norm", dict(what="layer", bias=1, shape=[16, 64], more=["bias"])),
    ("weight per channel", 21, [("DequantizeLinear", [w(64, 32, **I8), w(32), w(32, **I8)], 1, {}, ""), ("MatMul", [x(8, 64), "n0_out0"], 1, {}, "")],
     "gemm", dict(weight_scales="channel", zero_points=1, bytes_read=8 * 64 * 4 + 64 * 32 + 32 * 5, more=["scales", "zero_points"])),
    ("weight per channel, no zeros", 21, [("DequantizeLinear", [w(64, 32, **I8), w(32), c([0] * 32, np.int8)], 1, {}, ""), ("MatMul", [x(8, 64), "n0_out0"], 1, {}, "")],
     "gemm", dict(weight_scales="channel", zero_points=None)),
    *((f"convolution per channel, zeros {z}", 21,
       [("QLinearConv", [x(1, 4, 8, 8, **U8), c(1, np.float32), c(0, np.uint8), w(6, 4, 3, 3, **I8), w(6), c([z] * 6, np.int8), c(1, np.float32), c(0, np.uint8)], 1, {}, "")],
       "conv", dict(weight_scales="channel", zero_points=z or None)) for z in (0, 1)),
    ("weight in blocks", 21, [("DequantizeLinear", [w(64, 32, **I8), w(4, 32)], 1, dict(axis=0, block_size=16), ""), ("MatMul", [x(8, 64), "n0_out0"], 1, {}, "")],
     "gemm", dict(block_size=16, weight_scales=None, bytes_read=8 * 64 * 4 + 64 * 32 + 4 * 4 * 32, more=["scales"])),
    ("dynamic product", 21, [("DynamicQuantizeMatMul", [x(8, 64), w(64, 32, **I8), w(1)], 1, {}, MS)], "gemm", dict(quant="dynamic", more=["scales"])),
    ("integer to float", 21, [("MatMulIntegerToFloat", [x(8, 64, **U8), w(64, 32, **U8), x(1), w(1)], 1, {}, MS)], "gemm", dict(quant="dynamic")),
    ("lstm weights", 21, [("LSTM", [*LSTM, w(1, 64), None, None, None, w(1, 24)], 1, dict(hidden_size=8), "")],
     "recurrent", dict(bias=1, peephole=1, returns="y", more=["recurrence", "bias", "peephole"])),
    *((f"experts {what}", 21, [("MoE", [x(12, 64), x(12, 8), *weights], 1, dict(k=2), MS)], "gemm",
       dict(batch=8, layout=layout, shape=[3, 128, 64], weight_dtype="fp32", all_macs=24 * 2 * 64 * 128, parameters=8 * (2 * 64 * 128 + 128 + 64),
            bytes_read=8 * (128 + 3) * 64 * 4))
      for what, layout, weights in (("by width", "nt", [w(8, 128, 64), w(8, 128), w(8, 64, 128), w(8, 64)]),
                                    ("by depth", "nn", [w(8, 64, 128), w(8, 128), w(8, 128, 64), w(8, 64)]))),
    ("more experts than choices", 21, [("MoE", [x(3, 64), x(3, 8), w(8, 128, 64), None, w(8, 64, 128)], 1, dict(k=2), MS)], "gemm",
     dict(batch=6, shape=[1, 128, 64], all_macs=6 * 2 * 64 * 128, parameters=8 * 2 * 64 * 128, bytes_read=6 * (128 + 1) * 64 * 4)),
    ("experts stored in bytes", 21,
     [("DequantizeLinear", [w(8, 128, 64, **I8), w(8, 128, 2)], 1, dict(axis=2, block_size=32), ""),
      ("MoE", [x(3, 64), x(3, 8), "n0_out0", None, w(8, 64, 128)], 1, dict(k=2), MS)], "gemm",
     dict(batch=6, weight_dtype="int8", block_size=32, bytes_read=6 * (128 * 64 + 128 * 2 * 4 + 64 * 4))),
    *((f"experts {what}", 21, [("MoE", [x(*rows, 64), x(12, 8), *weights], 1, attributes, MS)], "gemm",
       dict(what="moe", shape=shape, experts=8, top_k=2, more=["fc2"], all_macs=24 * 2 * 64 * 128))
      for what, rows, weights, attributes, shape in (
          ("of another choice", [12], [w(8, 128, 64), None, w(8, 64, 128)], dict(k=2, use_sparse_mixer=1, normalize_routing_weights=1), [24, 128, 64]),
          ("of an activation that is not known", [12], [w(8, 128, 64), None, w(8, 64, 128)], dict(k=2, activation_type="snake"), [24, 128, 64]))),
    ("packed experts", 21, [("QMoE", [x(10, 64), x(10, 8), w(8, 128, 32, **U8), w(8, 128), None, w(8, 64, 64, **U8), w(8, 64)], 1, dict(k=2), MS)],
     "gemm", dict(batch=8, shape=[3, 128, 64], layout="nt", weight_dtype="int4", all_macs=24 * 2 * 128 * 64, parameters=2 * 8 * 128 * 64 + 8 * 192,
                  more=["scales"], bytes_read=8 * (128 * 32 + 128 * 4 + 3 * 64 * 4))),
    ("packed experts in blocks, more than choices", 21,
     [("QMoE", [x(3, 64), x(3, 8), w(8, 128, 32, **U8), w(8, 128, 2), None, w(8, 64, 64, **U8), w(8, 64, 4), None, None, None, None,
                w(8, 128, 1, **U8), w(8, 64, 2, **U8)], 1, dict(k=2, block_size=32), MS)],
     "gemm", dict(batch=6, shape=[1, 128, 64], block_size=32, zero_points=1, all_macs=6 * 2 * 128 * 64, parameters=8 * (2 * 128 * 64 + 128 * 2 + 64 * 4),
                  more=["scales", "zero_points"], bytes_read=6 * (128 * 32 + 128 * 2 * 4 + 128 + 64 * 4))),
    ("one packed expert of many", 21, [("QMoE", [x(1, 64), x(1, 8), w(8, 128, 64, **U8), w(8, 128), None, w(8, 64, 128, **U8), w(8, 64)], 1,
                                        dict(expert_weight_bits=8), MS)],
     "gemm", dict(batch=None, shape=[1, 128, 64], weight_dtype="int8", parameters=8 * (2 * 128 * 64 + 192), bytes_read=128 * 64 + 128 * 4 + 64 * 4)),
    *((f"packed experts {what}", 21, [("QMoE", [x(10, 64), x(10, 8), *weights], 1, dict(k=2, **more), MS)], "gemm",
       dict(what="moe", shape=[20, 128, 64], experts=8, all_macs=20 * 2 * 128 * 64))
      for what, weights, more in (
          ("by depth", [w(8, 64, 64, **U8), w(8, 128), None, w(8, 128, 32, **U8), w(8, 64)], {}),
          ("of floats", [w(8, 128, 32, **U8), w(8, 128), None, w(8, 64, 64, **U8), w(8, 64)], dict(quant_type="fp4")),
          ("of several widths", [w(8, 128, 32, **U8), w(8, 128), None, w(8, 64, 64, **U8), w(8, 64)], dict(fc1_expert_weight_bits=2)),
          ("without scales", [w(8, 128, 32, **U8), None, None, w(8, 64, 64, **U8), w(8, 64)], {}))),
    ("product with bias", 21, [("Gemm", [x(8, 64), w(64, 32), w(32)], 1, {}, "")], "gemm", dict(bias="n", more=["bias"])),
    ("batch norm", 21, [("BatchNormalization", [IMAGE, w(3), w(3), w(3), w(3)], 1, {}, "")], "norm", dict(bias=1, more=["bias", "mean", "variance"])),
    ("instance norm", 21, [("InstanceNormalization", [IMAGE, w(3), w(3)], 1, {}, "")], "norm", dict(bias=1)),
    ("group norm", 21, [("GroupNormalization", [x(1, 4, 8), w(4), w(4)], 1, dict(num_groups=2), "")], "norm", dict(bias=1)),
    ("group norm, nhwc", 21, [("GroupNorm", [x(1, 4, 4, 8), w(8), w(8)], 1, dict(groups=2), MS)], "norm", dict(bias=1, layout="nhwc")),
    ("window", 24, [("Attention", ATTENTION, 1, dict(q_num_heads=4, kv_num_heads=4), "")], "attention", dict(layout="bshd", mask="none")),
    *((f"blocks of {queries} queries", 21,
       [("SparseAttention", [x(1, queries, 64), x(1, queries, 32), x(1, queries, 32), x(1, 2, 512, 16), x(1, 2, 512, 16),
                             c([[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]], np.int32), c([[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]], np.int32),
                             c(total, np.int32), c([total], np.int32)],
         3, dict(num_heads=4, kv_num_heads=2, sparse_block_size=side), MS)], kind, made)
      for queries, total, side, kind, made in (
          (256, 256, 64, "attention", dict(mask="causal+blocks", block_mask="random,0.85,64,0", kv_len=256, kv_heads=2, flops=4 * 4 * 16 * 27961)),
          (1, 200, 64, "attention", dict(mask="causal+blocks", block_mask="random,0.75,64,0", kv_len=200, flops=4 * 4 * 16 * 150)),
          (16, 60, 16, "unknown", {}),  # blocks of which a record knows none
          (1, 300, 64, "unknown", {}))),
    ("numbers are short", 21, [("LeakyRelu", [F], 1, dict(alpha=0.1), "")], "elementwise", dict(alpha=0.1)),
    ("unread indices", 21, [("MaxPool", [IMAGE], (2, [0]), SAME, "")], "pool", dict(indices_out=None, bytes_written=768)),
    ("unread states", 21, [("LSTM", LSTM, (3, [0]), dict(hidden_size=8), "")], "recurrent", dict(returns="y", bytes_written=5 * 2 * 8 * 4)),
    ("only the last state", 21, [("GRU", GRU, (2, [1]), dict(hidden_size=8), "")], "recurrent", dict(returns="y_h", bytes_written=2 * 8 * 4)),
    ("unread statistics", 21, [("LayerNormalization", [F, w(64)], (3, [0]), {}, "")], "norm", dict(bytes_written=2 * 16 * 64 * 4)),
    ("tables of a grouped attention", 21,
     [("GroupQueryAttention", [x(1, 1, 64), x(1, 1, 32), x(1, 1, 32), x(1, 2, 7, 16), x(1, 2, 7, 16), x(1, dtype=np.int32), c(8, np.int32), w(512, 8), w(512, 8)],
       3, dict(num_heads=4, kv_num_heads=2, do_rotary=1), MS)],
     "rotary", dict(shape=[1, 4, 1, 16], bytes_read=4 * (64 + 2 * 8))),
    ("tensors of a sequence", 21,
     [("SequenceConstruct", [x(4, 3), x(2, 3)], (1, []), {}, ""), ("SequenceInsert", ["n0_out0", x(1, 3), c(0)], (1, []), {}, ""),
      ("ConcatFromSequence", ["n1_out0"], 1, dict(axis=0), "")],
     "move", dict(what="concat", shape=[7, 3], axis=0, inputs=3, sizes=[1, 4, 2])),
    ("pieces of a sequence", 21,
     [("SplitToSequence", [x(4, 3)], (1, []), dict(keepdims=0), ""), ("ConcatFromSequence", ["n0_out0"], 1, dict(axis=-1, new_axis=1), "")],
     "move", dict(what="slice", shape=[1, 3], count=4)),
    ("rotary tables", 21, [("RotaryEmbedding", [x(1, 4, 8, 16), x(1, 8, dtype=np.int64), w(512, 8), w(512, 8)], 1, {}, MS)],
     "rotary", dict(bytes_read=4 * 4 * 8 * 16 + 8 * 8 + 2 * 4 * 8 * 8)),
]

# operators that are several in one, of com.microsoft where no other domain is named here: name, operator, inputs, outputs, attributes, the parts that they become with their
# shapes (a view does no work), and what the last one says
WIDE = [x(2, 5, 16), w(16, 96), w(96)]
GROUPED = [None, None, x(2, 4, 3, 16), x(2, 4, 3, 16), x(2, dtype=np.int32), c(8, np.int32), w(64, 8), w(64, 8)]
ROTARY = ["rotary [2, 8, 5, 16]", "rotary [2, 4, 5, 16]", "attention [2, 8, 5, 16]"]
STRIDES = dict(q_layout=[480, 8, 96], k_layout=[480, 8, 96], v_layout=[480, 8, 96])
U8_INPUT = [x(2, 5, 32, **U8), w(32, 96, **U8), w(96), w(1), w(1), None, c(0, np.uint8), c(0, np.uint8)]
TABLES = [w(9, 16), w(7, 16), w(2, 16), w(16), w(16)]
BYTES = [w(9, 16, **U8), w(7, 16, **U8), w(2, 16, **U8), w(16, **U8), w(16, **U8), None]
CHOSEN, BACK = "reduce.topk [12, 2]", ["embedding [24, 64]", "elementwise.mul [12, 2, 64]", "reduce.sum [768, 2]"]
MATRICES = [w(4, 128, 64), None, w(4, 64, 128)]
IDS = [x(2, 5, dtype=np.int32), x(2, 5, dtype=np.int32)]
EMBEDDED = ["embedding [10, 16]", "elementwise.add [2, 5, 16]", "embedding [10, 16]", "elementwise.add [2, 5, 16]"]
DOMAINS = {"Binarizer": "ai.onnx.ml", "ArrayFeatureExtractor": "ai.onnx.ml", "ReorderInput": NCHWC, "ReorderOutput": NCHWC} | dict.fromkeys(
    ("AffineGrid", "CenterCropPad", "Col2Im", "Compress", "DFT", "DeformConv", "EyeLike", "GatherND", "Hardmax", "MaxUnpool", "ReverseSequence", "STFT", "TensorScatter", "Unique"), "")
PARTS = [
    ("projection", "Attention", WIDE, 1, dict(num_heads=4), ["gemm [10, 96, 16]", "elementwise.add [2, 5, 96]", "attention [2, 4, 5, 8]"],
     dict(STRIDES, layout="bshd", mask="none", macs=2 * 2 * 4 * 5 * 5 * 8)),
    ("projection, no bias", "Attention", WIDE[:2], 1, dict(num_heads=4), ["gemm [10, 96, 16]", "attention [2, 4, 5, 8]"], STRIDES),
    ("projection, narrow values", "Attention", [x(2, 5, 16), w(16, 80), w(80)], 1, dict(num_heads=4, qkv_hidden_sizes=[32, 32, 16]),
     ["gemm [10, 80, 16]", "elementwise.add [2, 5, 80]", "attention [2, 4, 5, 8]"], dict(v_head=4, v_layout=[400, 4, 80])),
    ("projection, mask", "Attention", [*WIDE, x(2, 5, dtype=np.int32)], 1, dict(num_heads=4),
     ["gemm [10, 96, 16]", "elementwise.add [2, 5, 96]", "attention [2, 4, 5, 8]"], dict(STRIDES, mask="additive", mask_shape=[2, 1, 1, 5])),
    ("projection, past", "Attention", [*WIDE, None, x(2, 2, 4, 7, 8)], 2, dict(num_heads=4),
     ["gemm [10, 96, 16]", "elementwise.add [2, 5, 96]", "move.split [2, 5, 96]", "attention [2, 4, 5, 8]"], dict(kv_len=12)),
    ("projection of bytes", "QAttention", U8_INPUT, 1, dict(num_heads=4), ["gemm [10, 96, 32]", "attention [2, 4, 5, 8]"], STRIDES),
    ("bias of heads", "MultiHeadAttention", [x(2, 5, 32), x(2, 7, 32), x(2, 7, 64), w(128)], 1, dict(num_heads=4),
     ["elementwise.add [2, 5, 32]", "elementwise.add [2, 7, 32]", "elementwise.add [2, 7, 64]", "attention [2, 4, 5, 8]"], dict(v_head=16)),
    ("bias of queries alone", "MultiHeadAttention", [x(2, 5, 32), x(2, 4, 7, 8), x(2, 4, 7, 8), w(96)], 1, dict(num_heads=4),
     ["elementwise.add [2, 5, 32]", "attention [2, 4, 5, 8]"], dict(kv_len=7)),
    ("packed heads", "MultiHeadAttention", [x(2, 5, 4, 3, 8)], 1, dict(num_heads=4), ["attention [2, 4, 5, 8]"],
     dict(layout="bshd", q_layout=[480, 24, 96], k_layout=[480, 24, 96], v_layout=[480, 24, 96])),
    ("packed heads, bias", "MultiHeadAttention", [x(2, 5, 4, 3, 8), None, None, w(96)], 1, dict(num_heads=4),
     ["elementwise.add [2, 5, 4, 3, 8]", "attention [2, 4, 5, 8]"], dict(q_layout=[480, 24, 96])),
    ("packed keys and values", "MultiHeadAttention", [x(2, 5, 32), x(2, 8, 2, 2, 16)], 1, dict(num_heads=2), ["move.split [2, 8, 2, 2, 16]", "attention [2, 2, 5, 16]"],
     dict(kv_len=8)),
    ("packed columns", "GroupQueryAttention", [x(2, 5, 256), *GROUPED], 1, dict(num_heads=8, kv_num_heads=4),
     ["move.split [2, 5, 256]", "attention [2, 8, 5, 16]"], dict(kv_len=8, kv_heads=4, mask="causal+padding", mask_shape=None)),
    ("packed columns of blocks", "SparseAttention",
     [x(1, 128, 256), None, None, x(1, 4, 128, 16), x(1, 4, 128, 16), c([[0, 1, 2]], np.int32), c([[0, 1]], np.int32), c(128, np.int32), c([128], np.int32),
      w(128, 8), w(128, 8)], 3, dict(num_heads=8, kv_num_heads=4, sparse_block_size=64, do_rotary=1),
     ["move.split [1, 128, 256]", "rotary [1, 8, 128, 16]", "rotary [1, 4, 128, 16]", "attention [1, 8, 128, 16]"], dict(kv_heads=4, mask="causal+blocks")),
    ("rotary inside", "GroupQueryAttention", [x(2, 5, 128), x(2, 5, 64), x(2, 5, 64), *GROUPED[2:]], 1,
     dict(num_heads=8, kv_num_heads=4, do_rotary=1), ROTARY, dict(kv_len=8)),
    ("rotary of packed columns", "GroupQueryAttention", [x(2, 5, 256), *GROUPED], 1, dict(num_heads=8, kv_num_heads=4, do_rotary=1),
     ["move.split [2, 5, 256]", *ROTARY], dict(kv_len=8)),
    ("embedding", "EmbedLayerNormalization", [*IDS, *TABLES, x(2, 5, dtype=np.int32)], 2, {}, [*EMBEDDED, "reduce.sum [2, 5]", "norm.layer [10, 16]"],
     dict(bias=1)),
    ("embedding, sum", "EmbedLayerNormalization", [*IDS, *TABLES], 3, {}, [*EMBEDDED, "norm.layer [10, 16]"], dict(bias=1, bytes_written=640)),
    ("embedding, no segments", "EmbedLayerNormalization", [IDS[0], None, *TABLES[:2], None, *TABLES[3:]], 1, {}, [*EMBEDDED[:2], "norm.layer [10, 16]"],
     dict(bias=1)),
    ("embedding of bytes", "QEmbedLayerNormalization", [*IDS, *BYTES, *[w(1)] * 5, *[c([0], np.uint8)] * 5], 2, {}, [*EMBEDDED, "norm.layer [10, 16]"],
     dict(bias=1)),
    ("dynamic product", "DynamicQuantizeMatMul", [x(2, 5, 8), w(8, 6, **U8), w(1), c([0], np.uint8), w(6)], 1, {},
     ["quantize.dynamic [2, 5, 8]", "gemm [10, 6, 8]"], dict(quant="dynamic", bias="n", macs=480)),
    ("experts", "MoE", [x(12, 64), x(12, 4), *MATRICES], 1, dict(k=2),
     ["softmax [12, 4]", CHOSEN, "embedding [24, 64]", "gemm [6, 128, 64]", "elementwise.relu [4, 6, 128]", "gemm [6, 64, 128]", *BACK], {}),
    ("experts, shares among the chosen", "MoE", [x(3, 4, 64), x(12, 4), *MATRICES], 1, dict(k=2, normalize_routing_weights=1, activation_type="identity"),
     [CHOSEN, "softmax [12, 2]", "embedding [24, 64]", "gemm [6, 128, 64]", "gemm [6, 64, 128]", BACK[0], "elementwise.mul [3, 4, 2, 64]", BACK[2]], {}),
    ("experts, gated", "MoE", [x(12, 64), x(12, 4), *MATRICES, None, w(4, 128, 64)], 1, dict(k=2, activation_type="silu"),
     ["softmax [12, 4]", CHOSEN, "embedding [24, 64]", "gemm [6, 128, 64]", "gemm [6, 128, 64]", "elementwise.swiglu [4, 6, 128]", "gemm [6, 64, 128]", *BACK], {}),
    *((f"experts, gate and values in one {what}", "MoE", [x(12, 64), x(12, 4), w(4, 256, 64), w(4, 256), w(4, 64, 128)], 1,
       dict(k=2, activation_type="swiglu", swiglu_fusion=fusion, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0),
       ["softmax [12, 4]", CHOSEN, "embedding [24, 64]", "gemm [6, 256, 64]", "elementwise.add [4, 6, 256]", f"move.split {split}",
        *["elementwise.clip [4, 6, 128]"] * 2, "elementwise.add [4, 6, 128]", "elementwise.quick_geglu [4, 6, 128]", "gemm [6, 64, 128]", *BACK], {})
      for what, fusion, split in (("by turns", 1, [4, 6, 128, 2]), ("in blocks", 2, [4, 6, 256]))),
    ("packed experts with shares of their own", "QMoE",
     [x(12, 64), x(12, 4), w(4, 128, 32, **U8), w(4, 128), None, w(4, 64, 64, **U8), w(4, 64), None, w(4, 128, 32, **U8), w(4, 128), w(4, 128), None, None,
      None, x(12, 4)], 1, dict(k=2, activation_type="silu", normalize_routing_weights=1),
     [CHOSEN, "move.gatherelements [12, 2]", "reduce.sum [12, 2]", "elementwise.div [12, 2]", "embedding [24, 64]", "gemm [6, 128, 64]", "gemm [6, 128, 64]",
      "elementwise.add [4, 6, 128]", "elementwise.swiglu [4, 6, 128]", "gemm [6, 64, 128]", *BACK], {}),
    ("bias and dropout", "BiasDropout", [x(2, 5, 8), w(8), x(2, 5, 8)], 1, {}, ["elementwise.add [2, 5, 8]"] * 2, {}),
    ("bias and dropout, mask", "BiasDropout", [x(2, 5, 8), w(8)], 2, {},
     ["elementwise.add [2, 5, 8]"], {}),
    ("bias and gate", "BiasSplitGelu", [x(2, 5, 16), w(16)], 1, {},
     ["elementwise.add [2, 5, 16]", "move.split [2, 5, 16]", "elementwise.geglu [2, 5, 8]"], {}),
    *((f"complex{name}", f"ComplexMul{name}", [x(5, 2), x(3, 5, 2)], 1, {},
       ["move.split [5, 2]", "move.split [3, 5, 2]", *["elementwise.mul [3, 5, 1]"] * 4, "elementwise.sub [3, 5, 1]", "elementwise.add [3, 5, 1]",
        "move.concat [3, 5, 2]"], {}) for name in ("", "Conj")),
    ("integers", "MulInteger", [x(2, 8, **U8), c(3, np.uint8), x(8, **U8)], 1, {},
     ["move.cast [2, 8]", "elementwise.sub [2, 8]", "move.cast [8]", "elementwise.mul [2, 8]"], {}),
    ("all finite", "IsAllFinite", [x(2, 8), x(3)], 1, {},
     [*(f"elementwise.{each} [{shape}]" for shape in ("2, 8", "3") for each in ("isinf", "isnan", "or")), "reduce.max [1, 16]", "reduce.max [1, 3]",
      "elementwise.or []", "elementwise.not []"], {}),
    ("no infinity", "IsAllFinite", [x(2, 8)], 1, dict(isinf_only=1), ["elementwise.isinf [2, 8]", "reduce.max [1, 16]", "elementwise.not []"], {}),
    ("binarizer", "Binarizer", [x(2, 8)], 1, dict(threshold=0.5), ["elementwise.greater [2, 8]", "move.cast [2, 8]"], {}),
    ("hardmax", "Hardmax", [x(2, 8, 3)], 1, dict(axis=1), ["reduce.argmax [6, 8]", "move.onehot [2, 8, 3]"], {}),
    ("gelu of bytes", "QOrderedGelu", [x(2, 32, dtype=np.int8), w(), w()], 1, dict(order_X=1, order_Y=1),
     ["quantize.dequantize [2, 32]", "elementwise.gelu [2, 32]", "quantize.quantize [2, 32]"], {}),
    ("gated norm", "GatedRMSNorm", [x(2, 3, 16), w(8), x(2, 3, 16)], 1, {}, ["norm.rms [12, 8]", "elementwise.swiglu [2, 3, 16]"], {}),
    ("gated norm, plain", "GatedRMSNorm", [x(2, 3, 16), w(8), x(2, 3, 16)], 1, dict(activation="sigmoid"),
     ["elementwise.sigmoid [2, 3, 16]", "norm.rms [12, 8]", "elementwise.mul [2, 3, 16]"], {}),
    ("norm of branches", "BranchwiseRMSNorm", [x(2, 3, 32), w(4, 8)], 1, dict(num_branches=4), ["norm.rms [24, 8]", "elementwise.mul [2, 3, 4, 8]"], {}),
    ("norm of grouped branches", "BranchwiseRMSNorm", [x(2, 3, 4, 8), w(8)], 1, {}, ["norm.rms [24, 8]"], {}),
    ("gated sum", "GatedAdd", [x(2, 3, 16), x(2, 3, 16), x(2, 3, 1)], 1, {}, ["elementwise.mul [2, 3, 16]", "elementwise.add [2, 3, 16]"], {}),
    ("scaled silu", "ScaledSiLU", [x(2, 5)], 1, dict(alpha=1.5), ["elementwise.mul [2, 5]", "elementwise.silu [2, 5]"], {}),
    ("linear gate", "LinearAttentionGate", [x(2, 3, 4), w(4), w(4), x(2, 3, 4)], 2, {},
     [f"elementwise.{each} [2, 3, 4]" for each in ("sigmoid", "add", "softplus", "mul")], {}),
    ("linear gate, half", "LinearAttentionGate", [x(2, 3, 4, dtype=np.float16), w(4), w(4)], 1, {},
     ["move.cast [2, 3, 4]", *[f"elementwise.{each} [2, 3, 4]" for each in ("add", "softplus", "mul")], "move.cast [2, 3, 4]"], {}),
    ("engram gate", "EngramGate", [x(2, 3, 4, 8), x(2, 3, 4, 8), x(2, 3, 8), w(4, 8), w(4, 8)], 1, {},
     [*["norm.rms [24, 8]"] * 2, *["elementwise.mul [2, 3, 4, 8]"] * 3, "reduce.sum [24, 8]",
      *[f"elementwise.{each} [2, 3, 4, 1]" for each in ("div", "abs", "max", "sign", "sqrt", "mul", "sigmoid")], "elementwise.mul [2, 3, 4, 8]"], {}),
    ("position bias", "RelativePositionBias", [x(8, 4), c(5, np.int64), c(5, np.int64)], 1, dict(max_distance=8), ["move.gather [4, 5, 5]"], {}),
    ("gated position bias", "GatedRelativePositionBias", [x(2, 5, 32), w(32), x(1, 4, 5, 5), w(8, 6), w(6), w(1, 4, 1, 1)], 1, dict(num_heads=4),
     ["elementwise.add [2, 5, 32]", "move.transpose [2, 4, 5, 8]", "gemm [40, 6, 8]", "elementwise.add [2, 4, 5, 6]", "reduce.sum [80, 3]",
      "elementwise.sigmoid [2, 4, 5, 2]", "move.split [2, 4, 5, 2]",
      *[f"elementwise.{each} [2, 4, 5, 1]" for each in ("mul", "sub", "mul", "add")], "elementwise.mul [2, 4, 5, 5]"], {}),
    ("features", "ArrayFeatureExtractor", [x(3, 8), x(2, dtype=np.int64)], 1, {}, ["move.gather [3, 2]"], {}),
    ("rows of a table", "TorchEmbedding", [w(9, 16), x(2, 5, dtype=np.int64)], 1, {}, ["embedding [10, 16]"], {}),
    *((f"turned sequences, {what}", "ReverseSequence", [x(*shape, 16), x(3, dtype=np.int64)], 1, attributes,
       [f"elementwise.{each} {list(shape)}" for each in ("less", "sub", "where", *more)] + [f"elementwise.sub {lengths}", "embedding [15, 16]"], {})
      for what, shape, lengths, attributes, more in (("time first", (5, 3), [1, 3], {}, ("mul", "add")),
                                                     ("batch first", (3, 5), [3, 1], dict(batch_axis=0, time_axis=1), ("add",)))),
    ("gathered in batches", "GatherND", [x(2, 3, 4, 5), x(2, 6, 2, dtype=np.int64)], 1, dict(batch_dims=1),
     ["elementwise.mod [2, 6, 2]", "elementwise.mul [2, 6, 2]", "reduce.sum [12, 2]", "elementwise.add [2, 6]", "embedding [12, 5]"], {}),
    ("gathered in batches by one index", "GatherND", [x(2, 3, 4), x(2, 6, 1, dtype=np.int64)], 1, dict(batch_dims=1),
     ["elementwise.mod [2, 6, 1]", "elementwise.add [2, 6]", "embedding [12, 4]"], {}),
    ("cache", "TensorScatter", [x(2, 3, 9, 8), x(2, 3, 2, 8), x(2, dtype=np.int64)], 1, {},
     ["elementwise.add [2, 1, 2]", "elementwise.add [2, 3, 2]", "move.scatternd [54, 8]"], {}),
    ("ring", "TensorScatter", [x(2, 3, 9, 8), x(2, 3, 2, 8), x(2, dtype=np.int64)], 1, dict(mode="circular"),
     ["elementwise.add [2, 1, 2]", "elementwise.mod [2, 1, 2]", "elementwise.add [2, 3, 2]", "move.scatternd [54, 8]"], {}),
    ("windows of the last axis", "UnfoldTensor", [x(3, 10)], 1, dict(size=4, step=2), ["move.gather [3, 4, 4]"], {}),
    ("windows of an inner axis", "UnfoldTensor", [x(3, 10, 5)], 1, dict(size=4, step=2, dim=1), ["move.gather [3, 4, 4, 5]", "move.transpose [3, 4, 5, 4]"], {}),
    ("padding back", "RestorePadding", [x(7, 16), x(2, 5, dtype=np.int32)], 1, {},
     ["move.slice [7]", "move.cast [7]", "move.scatternd [10, 16]"], {}),
    ("diagonal", "EyeLike", [x(99, 80)], 1, {}, [], {}),
    ("affine grid", "AffineGrid", [x(2, 2, 3), c([2, 3, 5, 6], np.int64)], 1, {}, ["gemm [30, 2, 3]"], {}),
    ("centre", "CenterCropPad", [x(9, 8), c([6, 11], np.int64)], 1, {}, ["move.slice [6, 8]", "move.pad [6, 11]"], {}),
    *((f"transform {what}", "DFT", [x(*shape), None, c(axis, np.int64)], 1, attributes, parts, {})
      for what, shape, axis, attributes, parts in (
          ("of a real signal", (2, 16, 1), 1, dict(onesided=1), ["gemm [2, 18, 16]"]), ("back", (2, 16, 2), -2, dict(inverse=1), ["gemm [2, 32, 32]"]),
          ("of an outer axis", (2, 6, 5, 1), 1, {}, ["move.transpose [2, 5, 6, 1]", "gemm [10, 12, 6]", "move.transpose [2, 6, 5, 2]"]))),
    ("rfft", "Rfft", [x(3, 8)], 1, dict(signal_ndim=1, onesided=1), ["gemm [3, 10, 8]"], {}),
    ("irfft", "Irfft", [x(3, 5, 2)], 1, dict(signal_ndim=1, onesided=1), ["gemm [3, 8, 10]"], {}),
    ("frames of a signal", "STFT", [x(2, 64, 1), c(8, np.int64), w(16)], 1, {},
     ["move.gather [2, 7, 16]", "elementwise.mul [2, 7, 16]", "gemm [14, 18, 16]"], {}),
    ("chosen rows", "Compress", [x(5, 4), x(5, dtype=np.bool_)], 1, dict(axis=0), ["move.nonzero [1, 5]", "embedding [5, 4]"], {}),
    ("tokens without padding", "RemovePadding", [x(2, 5, 16), x(2, dtype=np.int32)], 4, {},
     ["elementwise.less [2, 5]", "move.cast [10]", "reduce.cumsum [1, 10]", "reduce.sum [1, 2]", "move.cast [1]", "elementwise.sub [10]", "elementwise.add [10]",
      "elementwise.sub [10]", "elementwise.where [10]", "move.scatterelements [10]", "move.cast [10]", "reduce.cumsum [1, 2]", "move.concat [3]",
      "reduce.max [1, 2]", "move.nonzero [1, 10]", "embedding [10, 16]"], {}),
    ("each once, in order", "Unique", [x(7)], 1, {},
     ["reduce.topk [7]", "move.slice [6]", "move.slice [6]", "elementwise.equal [6]", "elementwise.not [6]", "move.concat [7]", "move.nonzero [1, 7]",
      "move.gather [7]"], {}),
    ("slices once", "Unique", [x(7, 2)], 1, dict(axis=0), ["reduce.unique [7, 2]"], {}),
    ("one token banned", "NGramRepeatBlock", [x(2, 9, dtype=np.int64), x(2, 50)], 1, dict(ngram_size=3),
     ["move.slice [2, 7]", "move.slice [2, 1]", "elementwise.equal [2, 7]", "move.slice [2, 7]", "move.slice [2, 1]", "elementwise.equal [2, 7]",
      "elementwise.and [2, 7]", "elementwise.where [2, 7]", "move.slice [2, 7]", "move.scatterelements [2, 50]"], {}),
    ("largest back", "MaxUnpool", [x(1, 2, 3, 4), x(1, 2, 3, 4, dtype=np.int64)], 1, dict(kernel_shape=[2, 2], strides=[2, 2]),
     ["move.scatterelements [96]"], {}),
    *((f"blocks of an image{what}", "Col2Im", [x(2, 12, 12 + more), c([5, 6], np.int64), c([2, 2], np.int64)], 1, attributes, parts, {})
      for what, more, attributes, parts in (
          ("", 8, {}, ["move.scatterelements [6, 30]"]),
          (", padded", 30, dict(pads=[1, 1, 1, 1]), ["move.scatterelements [6, 56]", "move.slice [2, 3, 5, 6]"]))),
    ("channels to blocks, padded", "ReorderInput", [x(2, 28, 4, 5)], 1, {}, ["move.pad [2, 32, 4, 5]", "move.transpose [2, 2, 20, 16]"], {}),
    ("last channels to blocks, padded", "ReorderInput", [x(2, 4, 5, 28)], 1, dict(channels_last=1),
     ["move.pad [2, 4, 5, 32]", "move.transpose [2, 2, 20, 16]"], {}),
    ("channels from blocks, cut", "ReorderOutput", [x(2, 32, 4, 5)], 1, dict(channels=27), ["move.transpose [2, 2, 16, 20]", "move.slice [2, 27, 4, 5]"], {}),
    ("last channels from blocks, cut", "ReorderOutput", [x(2, 32, 4, 5)], 1, dict(channels=27, channels_last=1),
     ["move.transpose [2, 20, 2, 16]", "move.slice [2, 4, 5, 27]"], {}),
    ("channels to blocks", "ReorderInput", [x(2, 32, 4, 5)], 1, {}, ["move.transpose [2, 2, 20, 16]"], {}),
    *((f"deformed{what}", "DeformConv", [x(2, 4, 6, 7), w(6, 2, 3, 2), x(2, 12 * groups, 3, 7), w(6), *mask], 1,
       dict(group=2, offset_group=groups, pads=[1, 0, 1, 1], strides=[2, 1]),
       [f"move.gather [{2 * groups}, 6, 2, 3, 7]", f"move.transpose [{2 * groups}, 6, 3, 7, 2]",
        *[f"elementwise.{name} [{2 * groups}, 6, 3, 7, 2]" for name in ("mul", "add")], f"pool.gridsample [{2 * groups}, {4 // groups}, 18, 7]",
        *[f"elementwise.mul [{2 * groups}, {4 // groups}, 18, 7]" for _ in mask], "conv [2, 6, 3, 7]"], dict(group=2))
      for what, groups, mask in ((", masked, in groups", 2, [x(2, 12, 3, 7)]), ("", 1, []))),
    ("sample", "SampleOp", [x(3)], 1, {}, [], {}),
    ("one expert each", "MoE", [x(12, 64), x(12, 4), *MATRICES], 1, dict(activation_type="gelu"),
     ["softmax [12, 4]", "reduce.topk [12, 1]", "embedding [12, 64]", "gemm [3, 128, 64]", "elementwise.gelu_tanh [4, 3, 128]", "gemm [3, 64, 128]",
      "embedding [12, 64]", "elementwise.mul [12, 64]"], {}),
]

# input size, kernel, stride, dilation, attributes of a transposed convolution: its output must follow from the record
TRANSPOSED = [
    (3, 3, 3, 1, dict(output_shape=[10, 10])), (3, 3, 2, 1, dict(output_shape=[5, 5])), (3, 3, 2, 1, dict(output_shape=[6, 6])),
    (4, 3, 2, 1, dict(auto_pad="SAME_UPPER")), (4, 2, 3, 1, dict(auto_pad="SAME_LOWER")), (4, 3, 2, 2, dict(pads=[1, 1, 1, 1], output_padding=[1, 1])),
]


def entries(found):
    return [o for o in found["ops"] if o["count"] and o.get("what") not in ("view", "folded")]


def check_apart(run, opset, nodes):
    ops = entries(run(nodes, opset))
    if len(ops) != len(nodes):
        return f"{len(nodes)} operations became {len(ops)}: {[o['id'] for o in ops]}"
    return None


def check_one(run, opset, nodes):
    ops = entries(run(nodes, opset))
    return None if len(ops) == 1 and ops[0]["count"] == len(nodes) else f"not one operation: {[o['id'] for o in ops]}"


def check_says(run, opset, nodes, kind, wanted):
    found = run(nodes, opset)
    op = next((o for o in entries(found) if o["op"] == kind), None)
    if op is None:
        return f"no {kind}"
    got = dict(op, parameters=found["totals"]["parameters"], all_macs=found["totals"]["macs"])
    got["more"] = [m["role"] for m in (op.get("weights") or [{}])[0].get("more", [])]
    wrong = {k: (got.get(k), v) for k, v in wanted.items() if got.get(k) != v}
    return f"is and should be: {wrong}" if wrong else None


def check_parts(run, operator, operands, outputs, attributes, parts, wanted):
    ops = [o for o in entries(run([(operator, operands, outputs, attributes, DOMAINS.get(operator, MS))], 24)) for _ in range(o["count"])]
    got = [f"{o['op']}{'.' + o['what'] if 'what' in o else ''} {o['shape']}" for o in ops]
    if sorted(got) != sorted(parts):
        return f"its parts are {got}"
    wrong = {k: (ops[-1].get(k), v) for k, v in wanted.items() if ops[-1].get(k) != v}
    return f"the last one is and should be: {wrong}" if wrong else None


def check_transposed(run, size, kernel, stride, dilation, attributes):
    attributes = dict(attributes, strides=[stride] * 2, dilations=[dilation] * 2)
    op = entries(run([("ConvTranspose", [x(1, 1, size, size), w(1, 2, kernel, kernel)], 1, attributes, "")], 21))[0]
    pads, extra = op.get("pads", [0] * 4), op.get("output_padding", [0, 0])
    made = [stride * (size - 1) + extra[k] + (kernel - 1) * dilation + 1 - pads[k] - pads[k + 2] for k in range(2)]
    return None if made == op["shape"][2:] else f"the record gives {made}, the shape is {op['shape']}"


def checks(run):
    for name, op, operands, apart, default in APART:
        opset = 24
        yield f"{name} apart", lambda: check_apart(run, opset, [(op, operands, 2 if op == "TopK" else 1, a, "") for a in apart])
        if default is not None:
            yield f"{name} default", lambda: check_one(run, opset, [(op, operands, 2 if op == "TopK" else 1, a, "") for a in (apart[0], default)])
    for name, opset, nodes in BY_INPUT:
        yield f"{name} apart", lambda: check_apart(run, opset, nodes)
    for name, nodes in ONE:
        yield f"{name} one", lambda: check_one(run, 24, nodes)
    for name, opset, nodes, kind, wanted in SAYS:
        yield name, lambda: check_says(run, opset, nodes, kind, wanted)
    for name, *case in PARTS:
        yield f"{name}, taken apart", lambda: check_parts(run, *case)
    for case in TRANSPOSED:
        yield f"transposed {case}", lambda: check_transposed(run, *case)


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "bin/extract_ops")
    wanted = sys.argv[2:]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, check in checks(lambda nodes, opset: extract(program, nodes, opset, folder)):
            if wanted and not any(part in name for part in wanted):
                continue
            try:
                why = check()
            except AssertionError as error:
                why = str(error)
            failed += why is not None
            passed += why is None
            if why:
                print(f"FAILED {name}: {why}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
