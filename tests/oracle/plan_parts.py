"""Operators that are taken apart, as models of one node: their parts are run, and held against what onnxruntime makes of the
whole, or against the operator's formula where it has no kernel for the CPU."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

DOMAINS = {"": 23, "com.microsoft": 1, "ai.onnx.preview.training": 1}


class Stored(np.ndarray):
    """An input that the model has."""


def as_stored(values, dtype=None):
    return np.array(values, dtype).view(Stored)


def normal(rng, *dims, dtype=np.float32, scale=1.0):
    return (rng.standard_normal(dims) * scale).astype(dtype)


def products(rng):
    """Batches that broadcast in part, without the matrices; rows, depth and columns of these."""
    for left, right in (([2, 3, 2], [2, 3, 1]), ([2, 3], [1, 3]), ([2, 3], [3]), ([3, 2], [3, 1]), ([2, 1], [2, 3]), ([2, 1, 4], [1, 3, 4]),
                        ([2, 1, 4], [3, 1]), ([1, 3, 1], [2, 1, 4]), ([3], [2, 3]), ([2, 3, 4, 2], [3, 1, 2]), ([5, 1], [1, 6]), ([9, 3], [3])):
        for m, k, n in ((4, 5, 3), (1, 6, 7)):
            a, b, turned = [*left, m, k], [*right, k, n], [*right, n, k]
            where = f"{a} by {b}"
            yield f"MatMul, {where}", "MatMul", [normal(rng, *a), normal(rng, *b)], {}
            yield f"FusedMatMul, {where}", "com.microsoft:FusedMatMul", [normal(rng, *a), normal(rng, *turned)], {"transB": 1, "alpha": 0.5}
            bytes_of = [rng.integers(0, 255, dims).astype(np.uint8) for dims in (a, b)]
            yield f"MatMulInteger, {where}", "MatMulInteger", [*bytes_of, as_stored(7, np.uint8), as_stored(130, np.uint8)], {}
    yield "MatMul of a weight", "MatMul", [normal(rng, 2, 3, 2, 4, 5), as_stored(normal(rng, 2, 3, 1, 5, 3))], {}


def short_products(rng):
    """Of 16 bits into 32, and of floats into others. Numbers are as large as their type lets them be."""
    for kind, wide, shapes in ((np.int16, np.int32, ((5, 8), (8, 6))), (np.int16, np.int32, ((2, 3, 5, 8), (3, 8, 6)))):
        info = np.iinfo(kind)
        a, b = (rng.integers(info.min, info.max, shape).astype(kind) for shape in shapes)
        a[..., 1:], b[..., 1:, :] = a[..., 1:] // 3000, b[..., 1:, :] // 3000  # so that sums fit
        a[..., 0] //= 2
        yield (f"MatMulInteger16, {shapes}", "com.microsoft:MatMulInteger16", [a, b], {},
               lambda a, b, wide=wide: [(a.astype(np.int64) @ b.astype(np.int64)).astype(wide)])
    yield ("MatMulInteger16 of a weight", "com.microsoft:MatMulInteger16", [a[0, 0], as_stored(b[0])], {},
           ["quantize:dequantize", "move:cast", "gemm", "move:cast"], 1)
    yield ("GemmFloat8 of floats", "com.microsoft:GemmFloat8", [normal(rng, 4, 5), normal(rng, 6, 5)], {"transB": 1, "alpha": 0.5, "dtype": 10},
           lambda a, b: [(a @ b.T * np.float32(0.5)).astype(np.float16)])
    yield ("GemmFloat8 of floats, with more", "com.microsoft:GemmFloat8", [normal(rng, 5, 4), normal(rng, 5, 6), normal(rng, 4, 6)],
           {"transA": 1, "dtype": 10}, lambda a, b, c: [(a.T @ b + c).astype(np.float16)])


def silu(x):
    return x / (1 + np.exp(-x))


def packed(rng, n, k, block):
    """A weight of 4 bits, and its scales."""
    return as_stored(rng.integers(0, 255, (n, k // block, block // 2)), np.uint8), as_stored(normal(rng, n, k // block))


def packed_products(rng):
    """Gates and projections of packed weights, with what stands before them."""
    k, block = 64, 32
    for skipped, normed, biased in ((False, False, False), (False, True, True), (True, True, False)):
        front = [normal(rng, 2, 5, k), normal(rng, 2, 5, k) if skipped else None, as_stored(normal(rng, k)) if normed else None]
        norm, told = ["norm:rms"] * normed, {"K": k, "block_size": block, "bits": 4}
        name = f"skip {skipped}, norm {normed}, bias {biased}"

        def inputs(*widths):
            return front + [i for n in widths for i in (*packed(rng, n, k, block), as_stored(normal(rng, n)) if biased else None)]

        yield (f"MatMulNBitsMlp, {name}", "com.microsoft:MatMulNBitsMlp", inputs(24, 24), {**told, "N": 24, "activation": "silu"},
               [*norm, "gemm", "gemm", "elementwise:swiglu"], 1 + skipped)
        if normed:
            yield (f"MatMulNBitsQkv, {name}", "com.microsoft:MatMulNBitsQkv", inputs(64, 32, 32), {**told, "Nq": 64, "Nkv": 32},
                   [*norm, "gemm", "gemm", "gemm"], 3 + skipped)


def distances(rng):
    for metric in ("euclidean", "sqeuclidean"):
        yield f"CDist, {metric}", "com.microsoft:CDist", [normal(rng, 7, 12), normal(rng, 5, 12)], {"metric": metric}


def ordered(rng):
    """Rows of bytes, or columns of the right side."""
    for column, biased, more in ((False, False, False), (True, False, False), (False, True, False), (False, True, True), (True, False, True)):
        a, b = rng.integers(-9, 9, (2, 4, 32)).astype(np.int8), as_stored(rng.integers(-9, 9, (32, 8)), np.int8)
        scales = [as_stored(s, np.float32) for s in (0.5, 0.25, 16.0)]
        parts = ["gemm"] + ["quantize:dequantize", "elementwise:add"] * more + ["quantize:quantize"] * (biased or more)
        yield (f"QOrderedMatMul, by columns {column}, bias {biased}, more {more}", "com.microsoft:QOrderedMatMul",
               [a, scales[0], b, scales[1], scales[2], as_stored(normal(rng, 8)) if biased else None,
                rng.integers(-9, 9, (2, 4, 8)).astype(np.int8) if more else None, scales[0] if more else None],
               {"order_A": 1, "order_B": 0 if column else 1, "order_Y": 1}, parts, 1)


def convolutions(rng):
    for pads in ([1, 1, 1, 1], [0, 1, 1, 0]):
        yield (f"ConvTransposeWithDynamicPads, {pads}", "com.microsoft:ConvTransposeWithDynamicPads",
               [normal(rng, 1, 4, 5, 5), as_stored(normal(rng, 4, 3, 3, 3)), as_stored(pads, np.int64)], {"strides": [2, 2]})
    for length, past, activation, dilation, last in ((9, True, "silu", 1, False), (9, False, "none", 1, False), (1, True, "swish", 1, False),
                                                     (2, False, "silu", 2, False), (9, True, "silu", 2, True), (2, False, "none", 1, True)):
        kept = 3 * dilation
        x, weight, bias, before = normal(rng, 2, 6, length), normal(rng, 6, 1, 4), normal(rng, 6), normal(rng, 2, 6, kept) if past else None

        def made(x, weight, bias, before=None, dilation=dilation, activation=activation, last=last, kept=kept):
            if last:
                x, before = x.swapaxes(1, 2), None if before is None else before.swapaxes(1, 2)
            seen = np.concatenate([np.zeros((*x.shape[:2], kept), x.dtype) if before is None else before, x], 2)
            y = sum(seen[..., j * dilation:j * dilation + x.shape[2]] * weight[None, :, :, j] for j in range(4)) + bias[:, None]
            outs = [y if activation == "none" else silu(y), seen[..., -kept:]]
            return [o.swapaxes(1, 2) for o in outs] if last else outs

        turned = [t if t is None or not last else np.ascontiguousarray(t.swapaxes(1, 2)) for t in (x, before)]
        yield (f"CausalConvWithState of {length}, past {past}, {activation}, dilation {dilation}, channels last {last}",
               "com.microsoft:CausalConvWithState", [turned[0], as_stored(weight), as_stored(bias), turned[1]],
               {"activation": activation, "dilation": dilation, "channels_last": int(last)}, made)


def decoder_attention(rng):
    heads, size = 2, 8
    width = heads * size
    for fixed, uses, padded in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)):
        query, source = normal(rng, 3, 2, width), normal(rng, 4, 2, width)
        cache = [normal(rng, 2, heads, 5, size) if uses else None for _ in range(2)]
        total = 5 if fixed and uses else (4 if fixed else 3) + (5 if uses else 0)
        hidden = rng.random((2, total)) < 0.4

        def split(t):
            return t.reshape(t.shape[0], t.shape[1], heads, size).transpose(1, 2, 0, 3)

        def made(query, source, wq, wkv, bias, _, key=None, value=None, *flags, fixed=fixed, uses=uses):
            q = split(query @ wq + bias[:width])
            if not uses:
                key, value = [split(t) for t in np.split((source if fixed else query) @ wkv + bias[width:], 2, -1)]
            scores = q @ key.swapaxes(2, 3) / np.sqrt(size)
            p = np.exp(scores - scores.max(-1, keepdims=True))
            y = (p / p.sum(-1, keepdims=True)) @ value
            return [np.ascontiguousarray(y.transpose(2, 0, 1, 3)).reshape(3, 2, width).astype(np.float32)]

        parts = (["move:transpose"] * (2 + fixed) + ["gemm", "elementwise:add"] * 2 + ["move:split"] * 2 + ["elementwise:not", "move:cast", "attention:additive"],
                 3) if padded else (made,)
        flags = [as_stored([bool(f)], bool) for f in (fixed, uses, uses, padded)]
        yield (f"DecoderAttention, fixed {fixed}, uses {uses}, padded {padded}", "com.microsoft:DecoderAttention",
               [query, source, as_stored(normal(rng, width, width)), as_stored(normal(rng, width, 2 * width)), normal(rng, 3 * width),
                hidden if padded else None, *cache, *flags], {"num_heads": heads}, *parts)


def rotary(rng):
    """Positions in three streams, each for some of the angles; and angles that come as numbers."""
    for layout, sections, shape, told in ((0, [2, 1, 1], (2, 4, 5, 8), {}), (0, [4, 0, 0], (2, 4, 5, 8), {"rotary_embedding_dim": 8}), (1, [2, 1, 1], (2, 4, 5, 8), {}),
                                          (1, [4, 2, 2], (2, 3, 5, 20), {"rotary_embedding_dim": 16, "num_heads": 3}),
                                          (0, [2, 3, 3], (2, 3, 5, 20), {"rotary_embedding_dim": 16, "num_heads": 3})):
        half = sum(sections)
        tables, places = [normal(rng, 16, half) for _ in range(2)], rng.integers(0, 16, (3, 2, 5)).astype(np.int64)

        def made(x, places, cosine, sine, sections=sections, half=half):
            stream = np.repeat(np.arange(3), sections)
            c, s = ([table[places[stream[j], :, :], j] for j in range(half)] for table in (cosine, sine))
            c, s = (np.moveaxis(np.array(t), 0, -1)[:, None] for t in (c, s))
            a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
            return [np.concatenate([a * c - b * s, b * c + a * s, rest], -1)]

        yield (f"MRotaryEmbedding, layout {layout}, sections {sections}, {shape}", "com.microsoft:MRotaryEmbedding",
               [normal(rng, *shape), places, *tables], {"mrope_section": sections, "mrope_layout": layout, **told},
               *((["move:split"] * 3 + ["move:gather"] * 4 + ["embedding"] * 6 + ["move:concat"] * 2 + ["rotary"], 1) if layout else (made,)))

    for heads, length in ((3, 5), (1, 5), (3, 1)):  # heads and tokens lie as no record says, unless there is one of either
        given = [normal(rng, 2, length, heads * 8), *(normal(rng, 2, length, 4) for _ in range(2))]
        yield (f"RotaryEmbedding of rank 3, {heads} heads, {length} tokens", "RotaryEmbedding", given, {"num_heads": heads},
               *(("or one that lies otherwise", 1) if heads > 1 and length > 1 else ()))
    places = [as_stored(rng.integers(0, 16, (3, 2, 5)), np.int64), *(as_stored(normal(rng, 16, 4)) for _ in range(2))]
    yield ("MRotaryEmbedding of rank 3", "com.microsoft:MRotaryEmbedding", [normal(rng, 2, 5, 24), *places],
           {"mrope_section": [2, 1, 1], "num_heads": 3}, "or one that lies otherwise", 1)

    def gemma(angles, q, q_across, k, k_across):
        c, s = (f(angles.astype(np.float64)).astype(np.float16)[:, None] for f in (np.cos, np.sin))
        return [q * c + q_across * s, k * c + k_across * s]

    yield ("GemmaRotaryEmbedding", "com.microsoft:GemmaRotaryEmbedding",
           [normal(rng, 2, 5, 8)] + [normal(rng, 2, h, 5, 8, dtype=np.float16) for h in (4, 4, 1, 1)], {}, gemma)


def training(rng):
    def adagrad(rate, count, *t, norm=0.0, decay_factor=0.0, epsilon=1e-6):
        n, values, states = len(t) // 3, [], []
        for x, g, h in zip(t[:n], t[n:2 * n], t[2 * n:]):
            g = norm * x + g
            states.append(h + g * g)
            values.append(x - rate / (1 + count * decay_factor) * g / (np.sqrt(states[-1]) + epsilon))
        return values + states

    def adam(rate, count, *t, norm=0.0, post=0.0, alpha=0.9, beta=0.999, epsilon=1e-6):
        n, values, means, squares = len(t) // 4, [], [], []
        by = rate * np.sqrt(1 - beta ** float(count)) / (1 - alpha ** float(count)) if count > 0 else rate
        for x, g, v, h in zip(t[:n], t[n:2 * n], t[2 * n:3 * n], t[3 * n:]):
            g = norm * x + g
            means.append(alpha * v + (1 - alpha) * g)
            squares.append(beta * h + (1 - beta) * g * g)
            values.append((1 - post) * (x - by * means[-1] / (np.sqrt(squares[-1]) + epsilon)))
        return values + means + squares

    def momentum(rate, count, *t, norm=0.0, alpha=0.9, beta=0.5, mode="standard"):
        n, values, states = len(t) // 3, [], []
        for x, g, v in zip(t[:n], t[n:2 * n], t[2 * n:]):
            g = norm * x + g
            states.append(alpha * v + (beta if count > 0 else 1) * g)
            values.append(x - rate * (states[-1] if mode == "standard" else g + alpha * states[-1]))
        return values + states

    attributes = {"norm": "norm_coefficient", "post": "norm_coefficient_post"}
    for op, made, groups, forms in (("Adagrad", adagrad, 3, ({}, {"norm": 0.1, "decay_factor": 0.25})),
                                    ("Adam", adam, 4, ({}, {"norm": 0.1, "post": 0.2, "alpha": 0.5, "beta": 0.75})),
                                    ("Momentum", momentum, 3, ({"mode": "standard"}, {"norm": 0.1, "mode": "nesterov"}))):
        for form in forms:
            for tensors, count in ((1, 0), (2, 3), (50, 3)):
                told = ({"norm": 0.0, "alpha": 0.9, "beta": 0.5} if op == "Momentum" else {}) | form
                inputs = [abs(normal(rng, 3, k + 4)) for _ in range(groups) for k in range(tensors)]
                yield (f"{op} of {tensors} tensors, {form}", f"ai.onnx.preview.training:{op}",
                       [as_stored(0.125, np.float32), as_stored(count, np.int64), *inputs], {attributes.get(k, k): v for k, v in told.items()},
                       lambda *t, made=made, told=told: [y.astype(np.float32) for y in made(*t, **told)])


def attentions(rng):
    """Scores that are given back, masks that end before the keys, and what a query sees to both sides."""
    def made(q, k, v, mask=None, past_k=None, past_v=None, *, heads=0, groups=0, mode=None, cap=0.0, band=None):
        packed = q.ndim == 3
        q, k, v = (t.reshape(*t.shape[:2], n, -1).swapaxes(1, 2) if packed else t for t, n in ((q, heads), (k, groups), (v, groups)))
        k, v = (t if past is None else np.concatenate([past, t], 2) for t, past in ((k, past_k), (v, past_v)))
        wide = [np.repeat(t, q.shape[1] // t.shape[1], 1) for t in (k, v)]
        said = [q @ wide[0].swapaxes(2, 3) / np.sqrt(q.shape[-1])]
        said.append(cap * np.tanh(said[0] / cap) if cap else said[0])
        bias = np.zeros(1)
        if mask is not None:
            bias = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask
            bias = np.pad(bias, [(0, 0)] * (bias.ndim - 1) + [(0, k.shape[2] - bias.shape[-1])], constant_values=-np.inf)
        if band:
            far = np.arange(k.shape[2]) - np.arange(q.shape[2])[:, None] - (0 if past_k is None else past_k.shape[2])
            bias = bias + np.where((far >= -band[0]) & (far <= band[1]), 0, -np.inf)
        said.append(said[1] + bias)
        p = np.exp(said[2] - said[2].max(-1, keepdims=True))
        said.append(p / p.sum(-1, keepdims=True))
        y = said[3] @ wide[1]
        y = y.swapaxes(1, 2).reshape(y.shape[0], y.shape[2], -1) if packed else y
        return [t.astype(q.dtype) for t in [y, k, v, *([] if mode is None else [said[mode]])]]

    b, h, g, d, far = 2, 4, 2, 8, 1 << 20
    for packed, mode, cap, past, kind, band in (
            (0, 0, 0, 0, "float", None), (0, 1, 2, 0, "none", None), (1, 2, 2, 1, "float", None), (1, 3, 0, 0, "bool", None), (0, 3, 0, 1, "none", None),
            (0, None, 0, 0, "short", None), (1, None, 0, 1, "short bool", None), (0, None, 0, 1, "none", (1, 0)),
            (1, None, 0, 0, "none", (1, 2)), (0, None, 2, 1, "none", (2, 1)), (0, None, 0, 0, "float", (far, 2)), (1, None, 0, 0, "bool", (far, 2)),
            (0, None, 0, 1, "short", (7, far)), (0, 0, 0, 0, "none", (2, 1)), (0, 3, 0, 1, "float", (4, 0)), (1, 1, 2, 0, "none", (far, 0)),
            (1, None, 0, 0, "long", (20, 10)), (0, None, 2, 0, "long", (30, 2)), (0, None, 0, 0, "long", (0, 32)), (1, None, 0, 0, "long", (900, 2))):
        s, t = (300, 300) if kind == "long" else (5, 5) if band and "bool" in kind else (3, 6)
        dtype = np.float16 if kind == "long" else np.float32  # whose masks are small enough to be told
        q, k, v = (normal(rng, *([b, n, n_heads * d] if packed else [b, n_heads, n, d]), dtype=dtype) for n, n_heads in ((s, h), (t, g), (t, g)))
        before = [normal(rng, b, g, 5, d) if past else None for _ in range(2)]
        width = t + 5 * past - 2 * ("short" in kind)
        mask = None if kind in ("none", "long") else rng.random((s, width)) < 0.6 if "bool" in kind else normal(rng, s, width)
        if mask is not None and mask.dtype == bool:
            mask[:, 0] = True
        told = {"softcap": float(cap)} | ({"q_num_heads": h, "kv_num_heads": g} if packed else {})
        parts = {"short": ["move:pad", "attention:additive"], "short bool": ["move:pad", "attention:additive"], "none": ["attention:causal"]}.get(kind)
        parts = ["elementwise:and", "attention:additive"] if band and kind == "bool" else "only data decide" if kind == "bool" else parts
        if band and kind != "bool" and band != (1, 0):
            behind = {"short": ["move:pad", "elementwise:add"]}.get(kind, [])
            parts = [*behind, "attention:additive"] if mode is None and (past or band == (900, 2)) else None
        elif kind == "none" and not band:
            parts = None
        alone = band and not past and mode is None
        told |= {name: n for name, n in zip(("left_window_size", "right_window_size"), band) if n < far} if band else {}
        yield (f"Attention, packed {packed}, mode {mode}, cap {cap}, past {past}, mask {kind}, band {band}", "Attention", [q, k, v, mask, *before],
               told | ({} if mode is None else {"qk_matmul_output_mode": mode}),
               *([parts, 1 if alone else 3 if mode is None else 4] if parts
                 else [lambda *t, mode=mode, cap=cap, band=band, alone=alone: made(*t, heads=h, groups=g, mode=mode, cap=cap, band=band)[:1 if alone else None]]))


    given = [normal(rng, b, h, 3, d), normal(rng, b, g, 6, d), normal(rng, b, g, 6, d), None, None, None, np.array([6, 4])]
    scores = ["gemm", "gemm", "elementwise:add", "softmax"]
    for told, outs, parts in (({"left_window_size": 1, "right_window_size": 1}, 1, ["attention:additive"]), ({"is_causal": 1}, 1, ["attention:causal+padding"]),
                              ({"is_causal": 1, "qk_matmul_output_mode": 3}, 4, scores), ({"softmax_precision": 11}, 1, ["move:cast", "move:cast", *scores])):
        yield f"Attention of lengths, {told}", "Attention", given, told, parts, outs


def others(rng):
    words = rng.integers(1, 11, (4, 9)).astype(np.int32)
    for k, length in enumerate((9, 6, 3, 1)):
        words[k, length:] = 0
    yield ("WordConvEmbedding", "com.microsoft:WordConvEmbedding",
           [words, as_stored(normal(rng, 5, 1, 3, 4)), as_stored(normal(rng, 5)), as_stored(normal(rng, 11, 4))], {})
    numbers = rng.integers(0, 2**32, (3, 7), dtype=np.uint32)
    yield "MurmurHash3", "com.microsoft:MurmurHash3", [numbers], {"seed": 42}
    steps = {"mul": 5, "bitshift": 7, "bitwiseor": 2, "bitwisexor": 5, "add": 1}
    yield ("MurmurHash3 of signed numbers", "com.microsoft:MurmurHash3", [numbers.view(np.int32)], {"positive": 0},
           [f"elementwise:{op}" for op, times in steps.items() for _ in range(times)], 1)
    order = {"order_input": 1, "order_output": 1}
    for op, what, x in (("Quantize", ["quantize:quantize"], normal(rng, 2, 32)),
                        ("Dequantize", ["quantize:dequantize", "move:cast"], rng.integers(-128, 127, (2, 32)).astype(np.int8))):
        yield f"{op}WithOrder", f"com.microsoft:{op}WithOrder", [x, as_stored(0.5, np.float32)], order, what, 1
    eight = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.FLOAT8E4M3FN)
    yield ("MatMulBlockQuantizedFp8Weight", "com.microsoft:MatMulBlockQuantizedFp8Weight",
           [normal(rng, 2, 5, 256, dtype=np.float16), normal(rng, 24, 256).astype(eight), normal(rng, 24, 2), None, normal(rng, 24, dtype=np.float16)],
           {"block_size": 128}, ["quantize:dequantize", "move:cast", "gemm", "elementwise:add"], 1)


def linear_attentions(rng):
    """By one step after the other, as the rules are written."""
    b, size, width = 2, 8, 6
    for rule, length, heads, groups, past, window, per_key, *of in (("linear", 1, 4, 4, 1, 0, 0), ("gated", 1, 4, 2, 1, 0, 1), ("delta", 1, 4, 4, 1, 0, 0),
                                                              ("gated_delta", 1, 8, 2, 1, 0, 0), ("gated_delta", 1, 4, 4, 0, 0, 0),
                                                              ("gated_delta", 4, 4, 4, 1, 0, 1), ("delta", 4, 4, 2, 0, 0, 0), ("linear", 5, 4, 8, 1, 3, 0),
                                                              ("gated", 2, 4, 4, 1, 3, 0), ("linear", 4, 4, 1, 0, 1, 0), ("linear", 7, 4, 2, 1, 0, 0),
                                                              ("gated", 7, 4, 2, 1, 0, 0), ("gated", 5, 4, 4, 0, 0, 0), ("linear", 192, 8, 4, 1, 0, 0),
                                                              ("gated", 192, 8, 4, 1, 0, 0), ("gated", 128, 4, 4, 0, 0, 0),
                                                              ("delta", 7, 4, 2, 1, 0, 0), ("gated_delta", 7, 8, 2, 1, 0, 0), ("gated_delta", 64, 4, 4, 0, 0, 0),
                                                              ("delta", 192, 8, 4, 0, 0, 0), ("gated_delta", 2304, 4, 2, 1, 0, 0),
                                                              ("linear", 127, 4, 4, 1, 0, 0), ("gated", 134, 8, 4, 0, 0, 0), ("gated_delta", 67, 4, 2, 1, 0, 0),
                                                              ("linear", 70, 4, 8, 1, 0, 0), ("gated_delta", 70, 2, 8, 0, 0, 0),
                                                              ("delta", 100, 4, 4, 1, 3, 0), ("gated", 131, 8, 4, 0, 5, 1),
                                                              ("gated", 128, 8, 4, 1, 0, 1), ("gated", 201, 4, 4, 0, 0, 1), ("gated_delta", 136, 8, 4, 1, 0, 1),
                                                              ("gated_delta", 40, 4, 4, 0, 0, 1), ("gated_delta", 40, 8, 2, 1, 0, 1),
                                                              ("gated", 64, 4, 4, 1, 0, 1, np.float16, -5), ("gated", 64, 4, 2, 0, 0, 0, np.float16, -5),
                                                              ("gated", 130, 8, 4, 0, 0, 1, np.float16, -2),
                                                              ("gated_delta", 100, 4, 4, 1, 0, 1, np.float16, -5),
                                                              ("gated", 192, 8, 4, 1, 0, 1, np.float32, -20), ("gated", 64, 4, 4, 1, 0, 0, np.float32, -20),
                                                              ("gated_delta", 128, 8, 4, 1, 0, 1, np.float32, -20),
                                                              ("gated_delta", 72, 4, 4, 1, 0, 0, np.float32, -np.inf),
                                                              ("gated", 72, 4, 4, 1, 0, 1, np.float32, -np.inf), ("gated", 4500, 4, 4, 1, 0, 1),
                                                              ("gated", 2304, 8, 4, 0, 0, 0), ("gated", 70, 4, 4, 1, 0, 1, np.float32, 0.05),
                                                              ("delta", 100, 4, 4, 1, 64, 0)):
        kind, gate = of or (np.float32, None)  # what each gate is, and where it is not finite every eighth step's

        def made(q, k, v, state=None, decay=None, beta=None, length=length, heads=heads, groups=groups, window=window, rule=rule):
            state = np.zeros((b, groups, size, width)) if state is None else state[-1] if window else state
            states, outs = [], []
            for t in range(length):
                q_t, k_t, v_t = (x[:, t].reshape(b, n, -1).astype(np.float64) for x, n in ((q, heads), (k, groups), (v, groups)))
                if "gated" in rule:
                    state = state * np.exp(decay[:, t].reshape(b, groups, -1, 1))
                rate = beta[:, t].reshape(b, -1, 1) if "delta" in rule else 1
                seen = np.einsum("bgk,bgkv->bgv", k_t, state) if "delta" in rule else 0
                state = state + np.einsum("bgk,bgv->bgkv", k_t, rate * (v_t - seen))
                states.append(state)
                q_all, s_all = (np.repeat(x, max(heads, groups) // x.shape[1], 1) for x in (q_t, state))
                outs.append(np.einsum("bhk,bhkv->bhv", q_all, s_all) / np.sqrt(size))
            kept = np.stack(([np.zeros_like(state)] * window + states)[-window:]) if window else state
            return [np.stack(outs, 1).reshape(b, length, -1).astype(q.dtype), kept.astype(q.dtype)]

        state = [b, groups, size, width]
        gates = -abs(normal(rng, b, length, groups * (size if per_key else 1))) if "gated" in rule else None
        if gate is not None:
            gates[:, :: 1 if np.isfinite(gate) else 8] = gate
        inputs = [normal(rng, b, length, heads * size), normal(rng, b, length, groups * size, scale=0.5), normal(rng, b, length, groups * width),
                  normal(rng, *([window] if window else []), *state) if past else None, gates,
                  abs(normal(rng, b, length, groups if heads > 4 else 1, scale=0.3)) if "delta" in rule else None]
        yield (f"LinearAttention, {rule}, {length} steps, {heads} heads, {groups} groups, past {past}, window {window}, per key {per_key}, "
               f"{kind.__name__}, gates {gate}", "com.microsoft:LinearAttention", [x if x is None else x.astype(kind) for x in inputs],
               {"q_num_heads": heads, "kv_num_heads": groups, "update_rule": rule, "state_window": window}, made)


def recurrent(rng):
    """Steps of layers with products of bytes, and with an attention to a memory."""
    for ways, steps, batch, biased, given, each in ((1, 5, 1, True, True, True), (2, 3, 1, True, False, True), (1, 70, 1, False, False, True)):
        size, hidden = 6, 8
        weights = [as_stored(rng.integers(90, 166, (ways, n, 4 * hidden)), np.uint8) for n in (size, hidden)]
        scales = [as_stored(abs(normal(rng, *([ways, 4 * hidden] if each else [ways]), scale=0.02)) + 0.01) for _ in range(2)]
        zeros = [as_stored(np.full(s.shape, 128), np.uint8) for s in scales]
        states = [normal(rng, ways, batch, hidden, scale=0.3) if given else None for _ in range(2)]
        before = ways * (steps - (not given))  # steps that have a state
        parts = ["quantize:dynamic", "gemm"] * (ways + before) + ["elementwise:add"] * 2 * before + ["elementwise:mul"] * (2 * ways * steps + before)
        parts += ["move:slice", "move:split", "elementwise:sigmoid", "move:split", "elementwise:tanh", "elementwise:tanh"] * ways * steps
        parts += ["move:concat"] * ((1 if steps <= 64 else 3) * ways + (3 if ways > 1 else 0))
        yield (f"DynamicQuantizeLSTM, {ways} ways, {steps} steps, bias {biased}, states {given}, by column {each}", "com.microsoft:DynamicQuantizeLSTM",
               [normal(rng, steps, batch, size), *weights, as_stored(normal(rng, ways, 8 * hidden, scale=0.2)) if biased else None, None, *states, None,
                scales[0], zeros[0], scales[1], zeros[1]],
               {"hidden_size": hidden, "direction": "bidirectional" if ways > 1 else "reverse" if given else "forward"}, parts, 3)
    for ways, steps, batch, biased, lengths, mixed in ((1, 4, 2, True, True, False), (2, 5, 3, False, False, True), (1, 3, 2, True, True, True)):
        size, hidden, depth, inner, places, wide = 6, 8, 5, 7, 9, 4
        seen = wide if mixed else depth
        told = np.array([9, 4, 6][:batch], np.int32) if lengths else None
        yield (f"AttnLSTM, {ways} ways, {steps} steps, bias {biased}, lengths {lengths}, mixed {mixed}", "com.microsoft:AttnLSTM",
               [normal(rng, steps, batch, size), normal(rng, ways, 4 * hidden, size + seen, scale=0.4),
                normal(rng, ways, 4 * hidden, hidden, scale=0.4), normal(rng, ways, 8 * hidden) if biased else None,
                None, None, None, None, normal(rng, ways, hidden, inner), normal(rng, ways, depth, inner),
                normal(rng, ways, inner), normal(rng, batch, places, depth), told,
                normal(rng, ways, depth + hidden, wide) if mixed else None],
               {"hidden_size": hidden, "direction": "bidirectional" if ways > 1 else "forward"}, 3)


def packed_tokens(rng):
    """Sequences of 5 and 2 tokens, without the padding between them."""
    heads, size, wide = 4, 8, 16
    offsets, ends = np.array([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], np.int32), np.array([0, 5, 7], np.int32)
    places = [("move:slice"), "move:cast"] + ["move:slice"] * 2 + ["elementwise:sub"]
    parts = [*places, *["move:scatternd"] * 3, "attention:lengths", "embedding"]
    yield ("PackedMultiHeadAttention", "com.microsoft:PackedMultiHeadAttention",
           [normal(rng, 7, heads * size), normal(rng, 7, heads * size), normal(rng, 7, heads * wide), None, offsets, ends], {"num_heads": heads},
           parts, 1)
    yield ("PackedMultiHeadAttention of all in one", "com.microsoft:PackedMultiHeadAttention",
           [normal(rng, 7, heads, 3, size), None, None, None, offsets, ends], {"num_heads": heads}, ["move:split", *parts], 1)
    yield ("PackedAttention", "com.microsoft:PackedAttention",
           [normal(rng, 7, 16), normal(rng, 16, 3 * heads * size), normal(rng, 3 * heads * size), offsets, ends], {"num_heads": heads},
           ["gemm", "elementwise:add", "move:split", *parts], 1)


def paged(rng):
    """Sequences of one token each, and of several; with places of their own, and with those that their pages tell. Plans know no
    lengths of 64 bits."""
    heads, groups, size, page = 4, 2, 8, 16
    for tokens, packed, slots, turns in ((3, False, False, True), (3, True, True, False), (11, False, False, True), (3, False, True, False)):
        widths = [heads * size, groups * size, groups * size]
        fresh = [normal(rng, tokens, n, dtype=np.float16) for n in ([sum(widths)] if packed else widths)] + [None, None] * packed
        caches = [normal(rng, 7, page, groups, size, dtype=np.float16) for _ in range(2)]
        pasts, table = np.array([20, 3, 31], np.int32), np.array([[4, 1], [0, 2], [6, 3]], np.int32)
        places = np.array([1 * page + 4, 0 * page + 3, 3 * page + 15], np.int32)
        angles = [normal(rng, 64, size // 2, dtype=np.float16) for _ in range(2)] if turns else [None, None]
        sums = ["move:slice", "move:slice", "elementwise:sub", "elementwise:add", "move:cast"]
        at = ["move:cast"] if slots else [] if tokens > 3 else ["elementwise:div", "move:gatherelements", "elementwise:mul", "elementwise:mod", "elementwise:add", "move:cast"]
        parts = [*(["move:split"] * packed), *at, *(["rotary", "rotary"] + ["move:cast"] * (tokens == 3) if turns else []), "move:scatternd", "move:scatternd",
                 "embedding", "embedding", *sums, "attention:causal+padding" if tokens > 3 else "attention:lengths", *(["embedding"] * 2 if tokens > 3 else [])]

        yield (f"PagedAttention, {tokens} tokens, packed {packed}, slots {slots}, turns {turns}", "com.microsoft:PagedAttention",
               [*fresh, *caches, np.array([0, 1, 2, tokens], np.int32), pasts, table, *angles, places if slots else None],
               {"num_heads": heads, "kv_num_heads": groups, "do_rotary": int(turns)},
               parts, 3)


def banned(rng):
    """Few tokens, so that they repeat."""
    for size in (1, 2, 3, 9, 10):
        ids = rng.integers(0, 3, (4, 9)).astype(np.int64)
        yield f"NGramRepeatBlock of {size}", "com.microsoft:NGramRepeatBlock", [ids, normal(rng, 4, 5)], {"ngram_size": size}, *(([], 1) if size > 9 else ())


def sparse(rng):
    """A record keeps how many blocks there are, but not which: no plan may run it."""
    q, k, cache = normal(rng, 1, 128, 64), [normal(rng, 1, 128, 32) for _ in range(2)], [normal(rng, 1, 2, 128, 16) for _ in range(2)]
    yield ("SparseAttention", "com.microsoft:SparseAttention",
           [q, *k, *cache, *(as_stored(n, np.int32) for n in ([[0, 1, 2]], [[0, 1]], 128, [128]))],
           {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 64}, "does not tell its operands", 3)


CASES = (products, packed_products, distances, ordered, convolutions, decoder_attention, rotary, training, attentions, others, linear_attentions,
         recurrent, packed_tokens, paged, banned, sparse, short_products)


def models(rng):
    """Name, model, what to feed it; then a formula, or, where no plan runs such work, the parts or the words of the refusal, and how
    many outputs there are. A number alone is that of the outputs, held against onnxruntime's."""
    for cases in CASES:
        for name, op, inputs, attributes, *more in cases(rng):
            outputs = more.pop() if more and isinstance(more[0], int) else more[1] if len(more) > 1 else len(more[0](*inputs)) if more else 1
            yield name, *model(op, inputs, attributes, outputs), *more


def model(op, inputs, attributes, outputs):
    """The model, and what to feed it."""
    domain, op = op.split(":") if ":" in op else ("", op)
    names = ["" if x is None else f"in{k}" for k, x in enumerate(inputs)]
    stored = [numpy_helper.from_array(np.asarray(x), n) for n, x in zip(names, inputs) if isinstance(x, Stored)]
    feeds = {n: x for n, x in zip(names, inputs) if n and not isinstance(x, Stored)}
    formal = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
    results = [f"out{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, "whole", domain=domain, **attributes)
    graph = helper.make_graph([node], "parts", formal, [onnx.ValueInfoProto(name=r) for r in results], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in DOMAINS.items()], ir_version=10), feeds


def expected(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
