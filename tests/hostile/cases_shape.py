"""Hostile arithmetic: operators whose numbers do not fit, explode, or divide by nothing."""
from case import BAD, FINE, LOOSE, ODD, OPEN, Case
from wire import BOOL, INT64, INT8, STRING, UINT8, floats, ints, net, node, tensor, value

MIN, MAX = -(1 << 63), (1 << 63) - 1
NUMBERS = [("2_40", 1 << 40), ("2_62", 1 << 62), ("max", MAX), ("min", MIN), ("minus_1", -1)]


def one(op, ins="x", inits=(), inputs=None, outs="y", version=17, domain="", **attrs):
    return net([node(op, ins, outs, domain=domain, **attrs)], inits, inputs, version=version)


def axes():
    """Every operator with an axis, at axes that no tensor has."""
    takers = [
        ("Softmax", one, {}), ("LogSoftmax", one, {}), ("Hardmax", one, {}), ("ArgMax", one, {}), ("Flatten", one, {}),
        ("Concat", lambda op, **a: one(op, "x x", **a), {}), ("LayerNormalization", lambda op, **a: one(
            op, "x w", [floats("w", [1.0])], **a), {}),
        ("Gather", lambda op, **a: one(op, "x i", [ints("i", [0])], **a), {}),
        ("GatherElements", lambda op, **a: one(op, "x i", [ints("i", [0], [1, 1, 1])], **a), {}),
        ("Split", lambda op, **a: one(op, outs="y z", **a), {}),
        ("Compress", lambda op, **a: one(op, "x c", [tensor("c", [2], BOOL, [1, 0])], **a), {}),
        ("TopK", lambda op, **a: one(op, "x k", [ints("k", [1])], outs="y z", **a), {}),
        ("QuantizeLinear", lambda op, **a: one(op, "x s", [floats("s", [1.0, 2.0])], **a), {}),
        ("OneHot", lambda op, **a: one(op, "i d v", [ints("i", [0]), ints("d", [3], []), floats("v", [0.0, 1.0])], **a), {}),
    ]
    cases = []
    for op, make, more in takers:
        for label, axis in (("min", MIN), ("max", MAX), ("9", 9)):
            cases.append(Case("axis_%s_%s" % (label, op.lower()), BAD, make(op, axis=axis, **more), pattern=op))
    lists = [("Unsqueeze", 13), ("Squeeze", 13), ("ReduceMean", 18), ("ReduceSum", 13)]
    for op, version in lists:
        for label, axis in (("min", MIN), ("max", MAX)):
            cases.append(Case("axes_%s_%s" % (label, op.lower()), BAD, one(op, "x a", [ints("a", [axis])], version=version),
                              pattern=op))
    cases += [
        Case("axes_twice_unsqueeze", BAD, one("Unsqueeze", "x a", [ints("a", [0, 0])])),
        Case("axes_1000_unsqueeze", BAD, one("Unsqueeze", "x a", [ints("a", list(range(1000)))])),
        Case("axis_cumsum_min", BAD, one("CumSum", "x a", [ints("a", [MIN], [])])),
        Case("axes_twice_reduce", LOOSE, one("ReduceSum", "x a", [ints("a", [1, 1])])),
    ]
    return cases


def permutations():
    return [
        Case("perm_short", BAD, one("Transpose", perm=[0, 1]), pattern="perm"),
        Case("perm_twice", BAD, one("Transpose", perm=[0, 0, 1]), pattern="perm"),
        Case("perm_far", BAD, one("Transpose", perm=[0, 1, 3]), pattern="perm"),
        Case("perm_negative", ODD, one("Transpose", perm=[0, 1, -1]), pattern="perm"),
        Case("perm_max", BAD, one("Transpose", perm=[0, MAX, MIN]), pattern="perm"),
        Case("perm_long", BAD, one("Transpose", perm=list(range(1000))), pattern="perm"),
        Case("concat_ranks", BAD, one("Concat", "x w", [floats("w", [1.0])], axis=0), pattern="Concat"),
        Case("concat_dims", BAD, one("Concat", "x w", [floats("w", [1.0], [1, 1, 1])], axis=0), pattern="Concat"),
        Case("concat_no_axis", BAD, one("Concat", "x x"), pattern="axis"),
        Case("broadcast_misfit", BAD, one("Add", "x w", [floats("w", [1.0] * 5)]), pattern="Add"),
        Case("matmul_misfit", BAD, one("MatMul", "x w", [floats("w", [1.0] * 10, [5, 2])]), pattern="MatMul"),
        Case("matmul_scalar", BAD, one("MatMul", "x w", [floats("w", [1.0], [])])),
        Case("gemm_rank_3", BAD, one("Gemm", "x x"), pattern="Gemm"),
        Case("gemm_misfit", BAD, one("Gemm", "w w", [floats("w", [1.0] * 6, [2, 3])])),
    ]


def convolutions():
    def conv(op="Conv", w=(1, 3, 3), image=(2, 3, 4), **attrs):
        n = 1
        for d in w:
            n *= d
        return one(op, "x w", [floats("w", [1.0] * n, list(w))], [value("x", image)], **attrs)

    cases = [
        Case("conv_kernel_too_big", BAD, conv(w=(1, 3, 9)), pattern="Conv"),
        Case("conv_channels", BAD, conv(w=(1, 2, 1)), pattern="Conv"),
        Case("conv_rank", BAD, conv(w=(1, 3))),
        Case("conv_rank_1", BAD, conv(w=(3,), image=(3,))),
        Case("conv_pads_short", BAD, conv(pads=[1])),
        Case("conv_pads_long", BAD, conv(pads=[1] * 100)),
        Case("conv_strides_long", BAD, conv(strides=[1] * 100)),
        Case("conv_kernel_shape_lies", BAD, conv(kernel_shape=[2])),
        Case("conv_kernel_shape_long", BAD, conv(kernel_shape=[3] * 100)),
        Case("conv_auto_pad_unknown", BAD, conv(auto_pad="SAME_SOMEHOW")),
        Case("conv_empty_weight", LOOSE, conv(w=(0, 3, 3))),
        Case("conv_empty_kernel", BAD, conv(w=(1, 3, 0))),
        Case("conv_transpose_output_shape", LOOSE, conv("ConvTranspose", w=(3, 1, 3), output_shape=[MAX])),
        Case("conv_transpose_output_padding", BAD, conv("ConvTranspose", w=(3, 1, 3), output_padding=[MIN])),
        Case("conv_transpose_group_0", BAD, conv("ConvTranspose", w=(3, 1, 3), group=0)),
        Case("pool_no_kernel", BAD, one("MaxPool"), pattern="kernel"),
        Case("pool_kernel_0", BAD, one("MaxPool", kernel_shape=[0])),
        Case("pool_kernel_long", BAD, one("MaxPool", kernel_shape=[1] * 100)),
        Case("pool_kernel_too_big", BAD, one("MaxPool", kernel_shape=[100])),
        Case("pool_stride_0", BAD, one("MaxPool", kernel_shape=[2], strides=[0])),
        Case("pool_pads_huge", BAD, one("MaxPool", kernel_shape=[2], pads=[MAX, MAX])),
        Case("pool_ceil_max", LOOSE, one("MaxPool", kernel_shape=[2], strides=[MAX], ceil_mode=1)),
        Case("pool_dilation_max", BAD, one("MaxPool", kernel_shape=[2], dilations=[MAX])),
        Case("global_pool_rank_1", BAD, one("GlobalAveragePool", inputs=[value("x", (3,))])),
        Case("lp_pool_p_0", LOOSE, one("LpPool", kernel_shape=[2], p=0)),
        Case("roi_align_output_max", BAD, one("RoiAlign", "z r i", [floats("r", [0.0] * 4, [1, 4]), ints("i", [0])],
                                              [value("z", (1, 3, 8, 8))], output_height=MAX, output_width=MAX)),
    ]
    for name, attr in (("stride", "strides"), ("dilation", "dilations"), ("group", "group")):
        for label, x in [("0", 0)] + NUMBERS[1:]:
            exits = LOOSE if (name, label) in (("stride", "2_62"), ("stride", "max")) else BAD
            cases.append(Case("conv_%s_%s" % (name, label), exits, conv(**{attr: x if attr == "group" else [x]})))
    for label, x in NUMBERS:
        exits = LOOSE if label in ("minus_1", "2_40") else BAD
        cases.append(Case("conv_pads_%s" % label, exits, conv(pads=[x, x])))
    return cases


def sizes():
    """Operators that are told how large their output is."""
    cases = []
    for label, x in NUMBERS:
        two = [ints("s", [x, x])]
        fits = ODD if label in ("2_40", "minus_1") else BAD  # 24 * 2^40 elements are many, but a number
        cases += [
            Case("constant_of_shape_%s" % label, BAD, one("ConstantOfShape", "s", two)),
            Case("expand_%s" % label, fits, one("Expand", "x s", [ints("s", [x, 2, 3, 4])])),
            Case("tile_%s" % label, BAD, one("Tile", "x s", [ints("s", [x, x, x])])),
            Case("reshape_%s" % label, LOOSE if label == "minus_1" else BAD, one("Reshape", "x s", [ints("s", [x])])),
            Case("pad_%s" % label, fits, one("Pad", "x s", [ints("s", [x, 0, 0, x, 0, 0])])),
            Case("resize_sizes_%s" % label, BAD, one("Resize", ["x", "", "", "s"], [ints("s", [x, x, x])])),
            Case("topk_%s" % label, BAD, one("TopK", "x s", [ints("s", [x])], outs="y z")),
            Case("one_hot_%s" % label, ODD if label == "2_40" else BAD, one("OneHot", "i d v", [ints("i", [0] * 4), ints("d", [x], []),
                                                                    floats("v", [0.0, 1.0])])),
            Case("range_%s" % label, LOOSE, one("Range", "a b c", [ints("a", [0], []), ints("b", [x], []), ints("c", [1], [])])),
            Case("range_back_%s" % label, LOOSE, one("Range", "a b c", [ints("a", [x], []), ints("b", [0], []),
                                                                       ints("c", [-1], [])])),
            Case("range_step_%s" % label, LOOSE, one("Range", "a b c", [ints("a", [MIN], []), ints("b", [MAX], []),
                                                                       ints("c", [x], [])])),
            Case("split_num_outputs_%s" % label, BAD, one("Split", "x", num_outputs=x, version=18, outs="y z")),
            Case("split_parts_%s" % label, BAD, one("Split", "x s", two, outs="y z")),
            Case("slice_start_%s" % label, LOOSE, one("Slice", "x a b", [ints("a", [x]), ints("b", [MAX])])),
            Case("slice_step_%s" % label, LOOSE, one("Slice", "x a b c d", [
                ints("a", [MAX]), ints("b", [MIN]), ints("c", [0]), ints("d", [x])])),
            Case("slice_axis_%s" % label, LOOSE if label == "minus_1" else BAD, one(
                "Slice", "x a b c", [ints("a", [0]), ints("b", [1]), ints("c", [x])])),
            Case("depth_to_space_%s" % label, BAD, one("DepthToSpace", inputs=[value("x", (1, 4, 2, 2))], blocksize=x)),
            Case("space_to_depth_%s" % label, BAD, one("SpaceToDepth", inputs=[value("x", (1, 4, 2, 2))], blocksize=x)),
            Case("eye_like_%s" % label, LOOSE, one("EyeLike", inputs=[value("x", (3, 3))], k=x)),
            Case("random_normal_%s" % label, BAD, one("RandomNormal", [], shape=[x, x])),
            Case("cast_to_%s" % label, BAD, one("Cast", to=x)),
            Case("trilu_%s" % label, LOOSE, one("Trilu", "x k", [ints("k", [x], [])])),
            Case("center_crop_pad_%s" % label, BAD, one("CenterCropPad", "x s", [ints("s", [x, x, x])], version=18)),
            Case("window_%s" % label, LOOSE if label == "2_40" else BAD, one("HannWindow", "s", [ints("s", [x], [])])),
            Case("dft_length_%s" % label, BAD, one("DFT", "x n", [ints("n", [x], [])], axis=1)),
            Case("stft_step_%s" % label, LOOSE, one("STFT", ["z", "s", "", "l"], [ints("s", [x], []), ints("l", [x], [])],
                                                    [value("z", (1, 8, 1))])),
            Case("shape_start_%s" % label, LOOSE, one("Shape", start=x, end=x)),
            Case("hidden_size_%s" % label, BAD, one("LSTM", "x w r", [floats("w", [1.0] * 16, [1, 4, 4]), floats(
                "r", [1.0] * 4, [1, 4, 1])], hidden_size=x)),
            Case("multinomial_%s" % label, ODD if label == "2_40" else BAD, one("Multinomial", inputs=[value("x", (2, 3))], sample_size=x)),
        ]
    return cases


def zeros():
    nan = float("nan")
    inf = float("inf")
    rng = lambda a, b, c: one("Range", "a b c", [floats("a", [a], []), floats("b", [b], []), floats("c", [c], [])])
    scale = lambda v: one("Resize", ["x", "", "s"], [floats("s", v)])
    arithmetic = lambda op, a, b: net([node(op, "a b", "n"), node("Expand", "x n")], [ints("a", a), ints("b", b)])
    return [
        Case("range_step_0", BAD, rng(0.0, 5.0, 0.0), pattern="Range"),
        Case("range_int_step_0", BAD, one("Range", "a a a", [ints("a", [0], [])]), pattern="Range"),
        Case("range_nan", ODD, rng(0.0, nan, 1.0), pattern="Range"),
        Case("range_step_nan", ODD, rng(0.0, 5.0, nan), pattern="Range"),
        Case("range_inf", BAD, rng(0.0, inf, 1.0), pattern="Range"),
        Case("range_tiny_step", LOOSE, rng(0.0, 1e30, 1e-30)),
        Case("range_vector", BAD, one("Range", "a a a", [ints("a", [0, 1])])),
        Case("slice_step_0", BAD, one("Slice", "x a a a a", [ints("a", [0])]), pattern="Slice"),
        Case("slice_counts_differ", BAD, one("Slice", "x a b", [ints("a", [0, 0]), ints("b", [1])])),
        Case("slice_too_many", BAD, one("Slice", "x a a", [ints("a", [0] * 100)])),
        Case("reshape_two_unknown", BAD, one("Reshape", "x s", [ints("s", [-1, -1])]), pattern="Reshape"),
        Case("reshape_misfit", BAD, one("Reshape", "x s", [ints("s", [5, -1])]), pattern="Reshape"),
        Case("reshape_wrong_count", BAD, one("Reshape", "x s", [ints("s", [5, 5])]), pattern="Reshape"),
        Case("reshape_copy_past_end", BAD, one("Reshape", "x s", [ints("s", [1, 1, 1, 0])]), pattern="Reshape"),
        Case("reshape_0_and_unknown", LOOSE, one("Reshape", "x s", [ints("s", [0, -1])], allowzero=1)),
        Case("reshape_1000_dims", BAD, one("Reshape", "x s", [ints("s", [1] * 1000 + [24])])),
        Case("reshape_product_overflows", BAD, one("Reshape", "x s", [ints("s", [1 << 32, 1 << 32, 24])])),
        Case("reshape_by_float", BAD, one("Reshape", "x s", [floats("s", [6.0, 4.0])])),
        Case("reshape_by_matrix", BAD, one("Reshape", "x s", [ints("s", [6, 4], [1, 2])])),
        Case("split_0_parts", BAD, one("Split", "x", num_outputs=0, version=18)),
        Case("split_sum_wrong", BAD, one("Split", "x s", [ints("s", [1, 2])], outs="y z"), pattern="Split"),
        Case("split_sum_overflows", BAD, one("Split", "x s", [ints("s", [MAX, MAX, 4])], outs="y z q")),
        Case("split_to_sequence_0", BAD, net([node("SplitToSequence", "x s", "q"), node("ConcatFromSequence", "q", axis=0)],
                                             [ints("s", [0], [])])),
        Case("split_to_sequence_huge", LOOSE, net([node("SplitToSequence", "x s", "q"), node("ConcatFromSequence", "q", axis=0)],
                                                [ints("s", [1], [])], [value("x", (1 << 40, 2))])),
        Case("gather_out_of_range", LOOSE, one("Gather", "x i", [ints("i", [5])], axis=0)),
        Case("gather_shape_out_of_range", BAD, net([node("Shape", "x", "s"), node("Gather", "s i", "n"),
                                                    node("Expand", "x n")], [ints("i", [7])]), pattern="Gather"),
        Case("gather_shape_min", BAD, net([node("Shape", "x", "s"), node("Gather", "s i", "n"),
                                           node("Expand", "x n")], [ints("i", [MIN])]), pattern="Gather"),
        Case("gather_nd_deep", BAD, one("GatherND", "x i", [ints("i", [0] * 9, [1, 9])])),
        Case("gather_nd_batch_dims", BAD, one("GatherND", "x i", [ints("i", [0], [1, 1])], batch_dims=MAX)),
        Case("scatter_nd_misfit", BAD, one("ScatterND", "x i u", [ints("i", [0] * 9, [1, 9]), floats("u", [1.0])])),
        Case("resize_scale_inf", BAD, scale([inf, 1.0, 1.0])),
        Case("resize_scale_nan", BAD, scale([nan, 1.0, 1.0])),
        Case("resize_scale_negative", BAD, scale([-1.0, 1.0, 1.0])),
        Case("resize_scale_0", BAD, scale([0.0, 1.0, 1.0])),
        Case("resize_scale_huge", BAD, scale([1e30, 1e30, 1e30])),
        Case("resize_scale_count", BAD, scale([1.0])),
        Case("resize_nothing_given", BAD, one("Resize", ["x"])),
        Case("upsample_scales_9", BAD, one("Upsample", "x", scales=[float("inf")] * 3, version=7)),
        Case("div_by_0", LOOSE, arithmetic("Div", [1, 1, 1], [0, 0, 0])),
        Case("div_min_by_minus_1", BAD, arithmetic("Div", [MIN] * 3, [-1] * 3)),
        Case("mod_by_0", LOOSE, arithmetic("Mod", [1, 1, 1], [0, 0, 0])),
        Case("mod_min_by_minus_1", LOOSE, arithmetic("Mod", [MIN] * 3, [-1] * 3)),
        Case("mul_overflows", LOOSE, arithmetic("Mul", [MAX] * 3, [MAX] * 3)),
        Case("add_overflows", BAD, arithmetic("Add", [MAX] * 3, [MAX] * 3)),
        Case("sub_overflows", ODD, arithmetic("Sub", [MIN] * 3, [MAX] * 3)),
        Case("pow_overflows", LOOSE, arithmetic("Pow", [10] * 3, [1000] * 3)),
        Case("pow_max", LOOSE, arithmetic("Pow", [2] * 3, [MAX] * 3)),
        Case("pow_negative", LOOSE, arithmetic("Pow", [2] * 3, [MIN] * 3)),
        Case("shift_64", LOOSE, one("BitShift", "a b", [tensor("a", [1], 13, extra=b""), tensor("b", [1], 13)], direction="LEFT")),
        Case("shift_values_200", LOOSE, net([node("BitShift", "a b", "u", direction="LEFT"), node("Cast", "u", "n", to=7),
                                             node("Expand", "x n")], [tensor("a", [1], 12, raw=b"\1\0\0\0"),
                                                                      tensor("b", [1], 12, raw=b"\xc8\0\0\0")])),
        Case("neg_min", LOOSE, net([node("Neg", "a", "n"), node("Expand", "x n")], [ints("a", [MIN])])),
        Case("abs_min", LOOSE, net([node("Abs", "a", "n"), node("Expand", "x n")], [ints("a", [MIN])])),
        Case("cast_nan_to_int", LOOSE, net([node("Cast", "f", "n", to=7), node("Expand", "x n")], [floats("f", [nan, inf, -inf])])),
        Case("cast_1e300", BAD, net([node("Cast", "f", "n", to=7), node("ConstantOfShape", "n")], [floats("f", [1e38, 1e38])])),
        Case("reduce_prod_overflows", ODD, net([node("ReduceProd", "a", "n"), node("ConstantOfShape", "n")],
                                               [ints("a", [1 << 40] * 5)])),
        Case("cumsum_overflows", LOOSE, net([node("CumSum", "a k", "n"), node("Expand", "x n")],
                                            [ints("a", [MAX] * 5), ints("k", [0], [])])),
        Case("dot_overflows", LOOSE, net([node("MatMul", "a a", "n"), node("Unsqueeze", "n k", "m"), node("Expand", "x m")],
                                         [ints("a", [MAX] * 5), ints("k", [0])])),
    ]


def explosions():
    """Sixty nodes that double something."""
    def repeated(op, first, last, inits, step=lambda i: {}, ins="t%d t%d", count=60):
        nodes = [node("Identity", first, "t0")]
        nodes += [node(op, ins.replace("%d", str(i)), "t%d" % (i + 1), **step(i)) for i in range(count)]
        return net(nodes + [node(last[0], last[1] % count if "%" in last[1] else last[1], "y")], inits)

    grow = [ints("r", [2, 1, 1]), ints("one", [1])]
    unsq = net([node("Identity", "x", "t0")] + [node("Unsqueeze", "t%d a" % i, "t%d" % (i + 1)) for i in range(100)] +
               [node("Relu", "t100")], [ints("a", [0])])
    return [
        Case("tile_doubles_60", BAD, repeated("Tile", "x", ("Relu", "t%d"), grow, ins="t%d r")),
        Case("concat_doubles_60", BAD, repeated("Concat", "x", ("Relu", "t%d"), [], lambda i: {"axis": 0})),
        Case("value_concat_doubles_60", BAD, repeated("Concat", "v", ("Cast", "t%d"), [ints("v", [1])], lambda i: {"axis": 0})),
        Case("value_concat_doubles_30", LOOSE, net(
            [node("Identity", "v", "t0")] + [node("Concat", "t%d t%d" % (i, i), "t%d" % (i + 1), axis=0) for i in range(30)] +
            [node("Relu")], [ints("v", [1])])),
        Case("value_add_doubles_70", ODD, net(
            [node("Identity", "v", "t0")] + [node("Add", "t%d t%d" % (i, i), "t%d" % (i + 1)) for i in range(70)] +
            [node("ConstantOfShape", "t70")], [ints("v", [1, 1])])),
        Case("value_mul_squares_70", ODD, net(
            [node("Identity", "v", "t0")] + [node("Mul", "t%d t%d" % (i, i), "t%d" % (i + 1)) for i in range(70)] +
            [node("ConstantOfShape", "t70")], [ints("v", [3, 3])])),
        Case("values_4096_in_20k_nodes", LOOSE, lambda: net(
            [node("Identity", "v", "t0")] + [node("Add", "t%d one" % i, "t%d" % (i + 1)) for i in range(20000)] +
            [node("Relu")], [ints("v", [1] * 4096), ints("one", [1])]), seconds=2.0),
        Case("unsqueeze_100_times", BAD, unsq),
        Case("add_outer_60", BAD, net(
            [node("Identity", "x", "t0")] + [n for i in range(60) for n in (
                node("Unsqueeze", "t%d a" % i, "u%d" % i), node("Add", "u%d t%d" % (i, i), "t%d" % (i + 1)))] +
            [node("Relu", "t60")], [ints("a", [1])])),
        Case("sequence_of_10k", FINE, lambda: net([node("SequenceConstruct", ["x"] * 10000, "q"),
                                                   node("ConcatFromSequence", "q", axis=0)])),
        Case("sequence_inserts_5000", LOOSE, lambda: net(
            [node("SequenceConstruct", "x", "q0")] + [node("SequenceInsert", "q%d x" % i, "q%d" % (i + 1)) for i in range(5000)] +
            [node("ConcatFromSequence", "q5000", axis=0)]), seconds=2.0),
        Case("sequence_at_far", BAD, net([node("SequenceConstruct", "x", "q"), node("SequenceAt", "q i")],
                                         [ints("i", [MAX], [])])),
        Case("sequence_erase_far", BAD, net([node("SequenceConstruct", "x", "q"), node("SequenceErase", "q i", "p"),
                                             node("ConcatFromSequence", "p", axis=0)], [ints("i", [MIN], [])])),
        Case("sequence_concat_ranks", BAD, net([node("SequenceConstruct", "x w", "q"), node(
            "ConcatFromSequence", "q", axis=0)], [floats("w", [1.0])])),
    ]


def einsums():
    equation = lambda e, ins="x x": one("Einsum", ins, equation=e)
    return [Case("einsum_%s" % name, exits, equation(e, *more), pattern="Einsum") for name, exits, e, *more in (
        ("empty", BAD, ""),
        ("arrow_only", BAD, "->"),
        ("two_arrows", BAD, "abc,abc->a->b"),
        ("digits", BAD, "123,456->1"),
        ("short_term", BAD, "ab,abc->a"),
        ("long_term", BAD, "abcd,abc->a"),
        ("too_few_terms", BAD, "abc->a"),
        ("too_many_terms", BAD, "abc,abc,abc->a"),
        ("unknown_output", BAD, "abc,abc->z"),
        ("output_twice", BAD, "abc,abc->aa"),
        ("sizes_differ", BAD, "abc,bca->a"),
        ("two_ellipses", BAD, "......,abc->a"),
        ("two_dots", BAD, "a..c,abc->a"),
        ("control", BAD, "a\x1b[c,abc->a"),
        ("commas", BAD, "," * 10000),
        ("megabyte", BAD, "a" * 1000000),
        ("diagonal_misfit", BAD, "aab,abc->a"),
        ("ellipsis_right", FINE, "...c,...c->..."),
    )]


def oddities():
    """Operators with inputs of nonsense types, ranks or counts."""
    f = lambda n, dims: floats(n, [1.0] * max(1, dims[0] * (dims[1] if len(dims) > 1 else 1)), dims)
    four = [value("x", (1, 4, 8, 8))]
    ms = "com.microsoft"
    return [
        Case("batch_norm_scale", BAD, one("BatchNormalization", "x w w w w", [f("w", [7])])),
        Case("layer_norm_scale", BAD, one("LayerNormalization", "x w", [f("w", [7])])),
        Case("instance_norm_scale", LOOSE, one("InstanceNormalization", "x w w", [f("w", [7])])),
        Case("group_norm_0", LOOSE, one("GroupNormalization", "x w w", [f("w", [4])], four, version=21, num_groups=0)),
        Case("lrn_size_0", LOOSE, one("LRN", "x", [], four, size=0)),
        Case("lstm_misfit", BAD, one("LSTM", "x w r", [f("w", [4, 5]), f("r", [4, 1])], hidden_size=1)),
        Case("gru_rank", BAD, one("GRU", "x w r", [f("w", [4]), f("r", [4])], hidden_size=1)),
        Case("linear_window_of_one_state", LOOSE,
             one("LinearAttention", "x x x s g", inputs=[value("x", (1, 2, 8)), value("s", (3, 1, 8, 8)), value("g", (1, 2, 1))], outs="y z", domain=ms,
                 q_num_heads=1, kv_num_heads=1, update_rule="gated", state_window=3)),
        Case("det_not_square", BAD, one("Det")),
        Case("strings_into_add", ODD, one("Add", "x w", [tensor("w", [1], STRING, [b"a"])])),
        Case("where_by_float", LOOSE, one("Where", "x x x")),
        Case("cast_to_0", BAD, one("Cast", to=0)),
        Case("cast_to_27", BAD, one("Cast", to=27)),
        Case("cast_without_to", BAD, one("Cast")),
        Case("constant_of_shape_negative", BAD, one("ConstantOfShape", "s", [ints("s", [-5])])),
        Case("constant_of_shape_rank_1000", BAD, one("ConstantOfShape", "s", [ints("s", [1] * 1000)])),
        Case("pad_negative_all", BAD, one("Pad", "x s", [ints("s", [-5] * 6)])),
        Case("pad_count", BAD, one("Pad", "x s", [ints("s", [1] * 5)])),
        Case("tile_count", BAD, one("Tile", "x s", [ints("s", [1] * 100)])),
        Case("expand_misfit", BAD, one("Expand", "x s", [ints("s", [5])])),
        Case("expand_rank_1000", BAD, one("Expand", "x s", [ints("s", [1] * 1000)])),
        Case("squeeze_not_1", BAD, one("Squeeze", "x a", [ints("a", [0])])),
        Case("depth_to_space_0", BAD, one("DepthToSpace", inputs=four, blocksize=0)),
        Case("space_to_depth_0", BAD, one("SpaceToDepth", inputs=four, blocksize=0)),
        Case("grid_sample_ranks", BAD, one("GridSample", "x x", inputs=four)),
        Case("affine_grid_size", BAD, one("AffineGrid", "t s", [f("t", [2, 3]), ints("s", [MAX] * 4)], version=20)),
        Case("col2im_nonsense", BAD, one("Col2Im", "x s k", [ints("s", [MAX, MAX]), ints("k", [0, 0])], version=18)),
        Case("unique_axis_9", BAD, one("Unique", axis=9)),
        Case("nms_shapes", LOOSE, one("NonMaxSuppression", "x x")),
        Case("nonzero", OPEN, one("NonZero")),
        Case("tfidf_nonsense", LOOSE, one("TfIdfVectorizer", "s", inputs=[value("s", (3,), INT64)], ngram_indexes=[MAX, MIN],
                                          ngram_counts=[MIN], max_gram_length=MAX, min_gram_length=MIN, max_skip_count=MAX,
                                          mode="TF", pool_int64s=[1])),
        Case("attention_heads_0", LOOSE, one("Attention", "x x x", version=23, q_num_heads=0, kv_num_heads=0)),
        Case("attention_heads_max", BAD, one("Attention", "x x x", version=23, q_num_heads=MAX, kv_num_heads=MAX)),
        Case("attention_heads_3_of_4", BAD, one("Attention", "x x x", version=23, q_num_heads=3, kv_num_heads=3)),
        Case("attention_ranks", BAD, one("Attention", "x q x", [f("q", [2, 2])], version=23)),
        Case("rotary_nonsense", BAD, one("RotaryEmbedding", "x c c", [f("c", [2, 7])], version=23, num_heads=MAX)),
        Case("ms_attention_heads_0", BAD, one("Attention", "x w b", [f("w", [4, 12]), f("b", [12])], domain=ms, num_heads=0)),
        Case("ms_attention_heads_min", BAD, one("Attention", "x w b", [f("w", [4, 12]), f("b", [12])], domain=ms, num_heads=MIN)),
        Case("ms_attention_qkv_sizes", BAD, one("Attention", "x w b", [f("w", [4, 12]), f("b", [12])], domain=ms, num_heads=2,
                                                qkv_hidden_sizes=[MAX, MAX, MIN])),
        Case("ms_multi_head_heads_0", BAD, one("MultiHeadAttention", "x x x", domain=ms, num_heads=0)),
        Case("ms_group_query_heads", BAD, one("GroupQueryAttention", "x x x x x s s", [ints("s", [1])], domain=ms,
                                              num_heads=MAX, kv_num_heads=MIN)),
        Case("ms_nbits_k_max", BAD, one("MatMulNBits", "x b s", [tensor("b", [1, 1, 16], UINT8, raw=bytes(16)), f("s", [1])],
                                        domain=ms, K=MAX, N=MAX, bits=4, block_size=32)),
        Case("ms_nbits_bits_0", ODD, one("MatMulNBits", "x b s", [tensor("b", [1, 1, 16], UINT8, raw=bytes(16)), f("s", [1])],
                                         domain=ms, K=4, N=1, bits=0, block_size=0)),
        Case("ms_gather_block_0", LOOSE, one("GatherBlockQuantized", "b i s", [
            tensor("b", [2, 16], UINT8, raw=bytes(32)), ints("i", [0]), f("s", [2, 1])], domain=ms, block_size=0,
            gather_axis=MIN, quantize_axis=MAX)),
        Case("ms_moe_ranks", LOOSE, one("MoE", "x w w w w", [f("w", [1])], domain=ms, k=MAX)),
        *(Case("ms_moe_%s" % name, LOOSE, net(
            [node(op, ["x", "r", "w", *more, "w", *more], domain=ms, **attrs)],
            [floats("w", [1.0] * (dims[0] * dims[1] * dims[2]), dims), floats("s", [1.0] * (dims[0] * dims[1]), dims[:2])],
            [value("x", (2, 4)), value("r", (2, 4))]))
          for op, more in (("MoE", [""]), ("QMoE", ["s", ""]))
          for name, dims, attrs in (
              (op + "_no_experts", [0, 4, 4], {}), (op + "_no_width", [4, 0, 4], {}), (op + "_k_min", [4, 4, 4], {"k": MIN}),
              (op + "_k_0", [4, 4, 4], {"k": 0}), (op + "_k_max", [4, 4, 4], {"k": MAX}), (op + "_other_experts", [5, 4, 4], {"k": 2}),
              (op + "_bits", [4, 4, 4], {"expert_weight_bits": 0}), (op + "_bits_min", [4, 4, 4], {"expert_weight_bits": MIN}),
              (op + "_block", [4, 4, 4], {"block_size": MIN}), (op + "_fusion", [4, 4, 4], {"activation_type": "swiglu", "swiglu_fusion": MAX}))),
        Case("dequantize_block_0", LOOSE, one("DequantizeLinear", "q s", [tensor("q", [4], INT8, [1] * 4), f("s", [2])],
                                              version=21, block_size=0, axis=0)),
        Case("dequantize_block_max", BAD, one("DequantizeLinear", "q s", [tensor("q", [4], INT8, [1] * 4), f("s", [2])],
                                              version=21, block_size=MAX, axis=0)),
    ]


def cases():
    return (axes() + permutations() + convolutions() + sizes() + zeros() + explosions() + einsums() + oddities())
