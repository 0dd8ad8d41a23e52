/* What one node is and costs, against numbers worked out by hand. */
#include "tests/unit/extract/lowering_fixture.h"

static void matmul_folds_the_batch_into_rows(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(2, 8, 16)), *w = bench_weight(DTYPE_FP32, DIMS(16, 4));
    const work *k = bench_lower(NODE("", "MatMul", bench_tensor(DTYPE_FP32, DIMS(2, 8, 4)), x, w), DTYPE_NONE);
    bench_shape(k, DIMS(16, 4, 16));
    bench_costs(k, 1024, 2048, 4 * (256 + 64), 4 * 64);
    UNIT_TEXT(k->rec.layout, "nn");
    UNIT_TEXT(bench_text(k, "weight_side"), "b");
    UNIT_CHECK(k->weight == w && k->rec.weight_type == DTYPE_FP32);
    UNIT_CHECK(!oprec_field(&k->rec, "batch"));
    bench_end();
}

static void matmul_of_two_activations_keeps_the_batch(void) {
    bench_begin();
    tensor *q = bench_tensor(DTYPE_FP16, DIMS(2, 3, 8, 16)), *k = bench_tensor(DTYPE_FP16, DIMS(3, 16, 5));
    const work *w = bench_lower(NODE("", "MatMul", bench_tensor(DTYPE_FP16, DIMS(2, 3, 8, 5)), q, k), DTYPE_FP32);
    bench_shape(w, DIMS(8, 5, 16));
    UNIT_INT(oprec_int(&w->rec, "batch", 1), 6);
    UNIT_CHECK(oprec_field(&w->rec, "batch_a") && oprec_field(&w->rec, "batch_b"));
    bench_costs(w, 6 * 640, 12 * 640, 4 * (768 + 240), 4 * 240);
    UNIT_CHECK(w->rec.type == DTYPE_FP32 && !w->weight && !bench_text(w, "weight_side"));
    bench_end();
}

static void a_weight_on_the_left_is_shared(void) {
    bench_begin();
    tensor *w = bench_weight(DTYPE_FP32, DIMS(4, 16)), *x = bench_tensor(DTYPE_FP32, DIMS(2, 16, 8));
    const work *k = bench_lower(NODE("", "MatMul", bench_tensor(DTYPE_FP32, DIMS(2, 4, 8)), w, x), DTYPE_NONE);
    bench_shape(k, DIMS(4, 8, 16));
    UNIT_INT(oprec_int(&k->rec, "batch", 1), 2);
    UNIT_INT(oprec_int(&k->rec, "batch_stride_a", -1), 0);
    UNIT_TEXT(bench_text(k, "weight_side"), "a");
    UNIT_INT(k->rec.macs, 1024);
    bench_end();
}

static void gemm_folds_transposes_and_epilogue(void) {
    bench_begin();
    tensor *a = bench_tensor(DTYPE_FP32, DIMS(16, 8)), *w = bench_weight(DTYPE_FP32, DIMS(4, 16)),
           *c = bench_weight(DTYPE_FP32, DIMS(4));
    node *n = NODE("", "Gemm", bench_tensor(DTYPE_FP32, DIMS(8, 4)), a, w, c);
    bench_int(n, "transA", 1);
    bench_int(n, "transB", 1);
    bench_attr(n, (attr){.name = "alpha", .kind = ATTR_FLOAT, .f = 0.5});
    const work *k = bench_lower(n, DTYPE_NONE);
    bench_shape(k, DIMS(8, 4, 16));
    UNIT_TEXT(k->rec.layout, "tt");
    UNIT_TEXT(bench_text(k, "bias"), "n");
    const opfield *alpha = oprec_field(&k->rec, "alpha");
    UNIT_CHECK(alpha && alpha->real == 0.5);
    bench_costs(k, 512, 1024, 4 * (128 + 64 + 4), 4 * 32);
    bench_end();
}

/* The trail from a product to its weight: a transpose turns the layout, a DequantizeLinear shows the stored type. */
static void a_weight_is_seen_where_it_lies(void) {
    bench_begin();
    tensor *stored = bench_weight(DTYPE_INT8, DIMS(4, 16)), *scale = bench_weight(DTYPE_FP32, DIMS(1)),
           *x = bench_tensor(DTYPE_FP32, DIMS(8, 16));
    tensor *real = bench_tensor(DTYPE_FP32, DIMS(4, 16)), *turned = bench_tensor(DTYPE_FP32, DIMS(16, 4));
    node *dequantize = NODE("", "DequantizeLinear", real, stored, scale),
         *transpose = NODE("", "Transpose", turned, real);
    real->is_constant = turned->is_constant = true;
    node *product = NODE("", "MatMul", bench_tensor(DTYPE_FP32, DIMS(8, 4)), x, turned);
    const work *k = bench_lower(product, DTYPE_FP16);
    UNIT_CHECK(k->weight == stored && k->rec.weight_type == DTYPE_INT8 && k->rec.type == DTYPE_FP16);
    UNIT_TEXT(k->rec.layout, "nt");
    bench_costs(k, 512, 1024, 2 * 128 + 64 + 2, 2 * 32); /* with its scale */
    UNIT_CHECK(k->more_count == 1 && k->more[0].t == scale);
    UNIT_TEXT(k->more[0].role, "scales");
    UNIT_CHECK(!oprec_field(&k->rec, "weight_scales"));
    UNIT_CHECK(work_of(&b.list, dequantize)->folded && work_of(&b.list, transpose)->folded);
    bench_end();
}

/* Each number that comes back, whichever tensor it is of: the rate and the count come first. */
static void training_counts_all_tensors(void) {
    bench_begin();
    tensor *ins[10], *outs[6];
    for (int k = 0; k < 10; k++)
        ins[k] = k < 2 ? bench_tensor(DTYPE_FP32, 0, info_no_dims) : bench_tensor(DTYPE_FP32, DIMS(3, 5));
    for (int k = 0; k < 6; k++) outs[k] = bench_tensor(DTYPE_FP32, DIMS(3, 5));
    node *n = bench_node("ai.onnx.preview.training", "Adam", outs[0], 10, ins);
    n->out = outs;
    n->out_count = 6;
    UNIT_INT(bench_lower(n, DTYPE_NONE)->rec.flops, 6 * 6 * 15);
    bench_end();
}

static void conv_resolves_padding(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(1, 4, 9, 9)), *w = bench_weight(DTYPE_FP32, DIMS(8, 2, 3, 3));
    node *n = NODE("", "Conv", bench_tensor(DTYPE_FP32, DIMS(1, 8, 5, 5)), x, w);
    bench_int(n, "group", 2);
    bench_ints(n, "strides", DIMS(2, 2));
    bench_attr(n, (attr){.name = "auto_pad", .kind = ATTR_STRING, .s = "SAME_UPPER", .n = 10});
    const work *k = bench_lower(n, DTYPE_NONE);
    bench_shape(k, DIMS(1, 8, 5, 5));
    const opfield *pads = oprec_field(&k->rec, "pads");
    UNIT_CHECK(pads && pads->n == 4 && pads->ints[0] == 1 && pads->ints[3] == 1);
    UNIT_INT(oprec_int(&k->rec, "group", 1), 2);
    bench_costs(k, 200 * 18, 400 * 18, 4 * (324 + 144), 4 * 200);
    bench_end();
}

/* As onnxruntime saves it: 40 channels are padded to 48, and what is added comes before the activation. */
static void conv_in_blocks_counts_what_is_padded(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(1, 32, 9, 9)), *w = bench_weight(DTYPE_FP32, DIMS(48, 32, 3, 3)),
           *bias = bench_weight(DTYPE_FP32, DIMS(48)), *sum = bench_tensor(DTYPE_FP32, DIMS(1, 48, 7, 7));
    node *n = NODE("com.microsoft.nchwc", "Conv", bench_tensor(DTYPE_FP32, DIMS(1, 48, 7, 7)), x, w, bias, sum);
    bench_attr(n, (attr){.name = "activation", .kind = ATTR_STRING, .s = "HardSigmoid", .n = 11});
    bench_attr(n, (attr){.name = "activation_params", .kind = ATTR_FLOATS, .floats = (double[]){0.25, 0.5}, .n = 2});
    const work *k = bench_lower(n, DTYPE_NONE);
    bench_shape(k, DIMS(1, 48, 7, 7));
    UNIT_TEXT(bench_text(k, "activation"), "hardsigmoid");
    UNIT_TEXT(bench_text(k, "activation_params"), "0.25,0.5");
    UNIT_TEXT(bench_text(k, "bias"), "channel");
    UNIT_INT(oprec_int(&k->rec, "residual", 0), 1);
    bench_costs(k, 2352 * 288, 4704 * 288, 4 * (2592 + 13824 + 48 + 2352), 4 * 2352);
    bench_end();
}

static void is_transpose(const work *k, int rank, const int64_t *input, const int64_t *perm) {
    const opfield *in = oprec_field(&k->rec, "input"), *order = oprec_field(&k->rec, "perm");
    UNIT_TEXT(k->rec.what, "transpose");
    if (!unit_check(in && order && in->n == rank && order->n == rank, "input and perm", __FILE__, __LINE__)) return;
    for (int d = 0; d < rank; d++) UNIT_CHECK(in->ints[d] == input[d] && order->ints[d] == perm[d]);
}

/* A reorder of x with one attribute of 1 or none. */
static const work *reorder(const char *op_type, tensor *x, tensor *y, bool last) {
    node *n = NODE("com.microsoft.nchwc", op_type, y, x);
    if (last) bench_int(n, "channels_last", 1);
    return bench_lower(n, DTYPE_NONE);
}

static void blocks_are_transposes_where_nothing_is_padded(void) {
    bench_begin();
    const work *k = reorder("ReorderInput", bench_tensor(DTYPE_FP32, DIMS(2, 32, 3, 5)),
                            bench_tensor(DTYPE_FP32, DIMS(2, 32, 3, 5)), false);
    bench_shape(k, DIMS(2, 2, 15, 16));
    is_transpose(k, DIMS(2, 2, 16, 15), (const int64_t[]){0, 1, 3, 2});
    k = reorder("ReorderOutput", bench_tensor(DTYPE_FP32, DIMS(2, 32, 3, 5)),
                bench_tensor(DTYPE_FP32, DIMS(2, 3, 5, 32)), true);
    bench_shape(k, DIMS(2, 15, 2, 16));
    is_transpose(k, DIMS(2, 2, 15, 16), (const int64_t[]){0, 2, 1, 3});
    k = reorder("ReorderInput", bench_tensor(DTYPE_FP32, DIMS(2, 3, 5, 16)),
                bench_tensor(DTYPE_FP32, DIMS(2, 16, 3, 5)), true);
    UNIT_CHECK(k->free); /* one block is channels last */
    k = reorder("ReorderOutput", bench_tensor(DTYPE_FP32, DIMS(2, 32, 1, 1)),
                bench_tensor(DTYPE_FP32, DIMS(2, 32, 1, 1)), false);
    UNIT_CHECK(k->free);
    k = reorder("ReorderOutput", bench_tensor(DTYPE_FP32, DIMS(2, 32, 3, 5)),
                bench_tensor(DTYPE_FP32, DIMS(2, 24, 3, 5)), false);
    UNIT_TEXT(k->rec.what, "reorderoutput");
    bench_shape(k, DIMS(2, 24, 3, 5));
    bench_costs(k, 0, 0, 4 * 720, 4 * 720);
    bench_end();
}

/* A weight of 24 channels was padded to blocks of 8; one of 8 behind a plain tensor was not padded at all. */
static void the_block_is_what_weights_are_padded_to(void) {
    for (int odd = 0; odd < 2; odd++) {
        bench_begin();
        tensor *x = bench_tensor(DTYPE_FP32, DIMS(1, 8, 4, 4)), *t = bench_tensor(DTYPE_FP32, DIMS(1, 48, 4, 4));
        NODE("com.microsoft.nchwc", "Conv", bench_tensor(DTYPE_FP32, DIMS(1, odd ? 24 : 32, 4, 4)), x,
             bench_weight(DTYPE_FP32, DIMS(odd ? 24 : 32, 8, 1, 1)));
        const work *k = reorder("ReorderOutput", t, bench_tensor(DTYPE_FP32, DIMS(1, 48, 4, 4)), false);
        bench_shape(k, DIMS(1, odd ? 6 : 3, odd ? 8 : 16, 16));
        bench_end();
    }
}

static void an_unknown_operator_is_told_with_its_domain(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(4, 4));
    UNIT_TEXT(bench_lower(NODE("com.example", "Conv", bench_tensor(DTYPE_FP32, DIMS(4, 4)), x), DTYPE_NONE)->rec.what,
              "com.example.Conv");
    UNIT_TEXT(bench_lower(NODE("", "Nope", bench_tensor(DTYPE_FP32, DIMS(4, 4)), x), DTYPE_NONE)->rec.what, "Nope");
    bench_end();
}

static void transposed_conv_counts_its_input(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(1, 4, 3, 3)), *w = bench_weight(DTYPE_FP32, DIMS(4, 6, 2, 2));
    node *n = NODE("", "ConvTranspose", bench_tensor(DTYPE_FP32, DIMS(1, 6, 6, 6)), x, w);
    bench_ints(n, "strides", DIMS(2, 2));
    const work *k = bench_lower(n, DTYPE_NONE);
    bench_costs(k, 36 * 24, 72 * 24, 4 * (36 + 96), 4 * 216);
    UNIT_INT(oprec_int(&k->rec, "transposed", 0), 1);
    bench_end();
}

static void causal_attention_needs_half(void) {
    bench_begin();
    tensor *q = bench_tensor(DTYPE_FP16, DIMS(1, 4, 8, 16)), *k = bench_tensor(DTYPE_FP16, DIMS(1, 2, 8, 16)),
           *v = bench_tensor(DTYPE_FP16, DIMS(1, 2, 8, 32));
    node *n = NODE("", "Attention", bench_tensor(DTYPE_FP16, DIMS(1, 4, 8, 32)), q, k, v);
    bench_int(n, "is_causal", 1);
    const work *w = bench_lower(n, DTYPE_NONE);
    bench_shape(w, DIMS(1, 4, 8, 16));
    UNIT_TEXT(w->rec.mask, "causal");
    UNIT_INT(oprec_int(&w->rec, "kv_heads", 0), 2);
    UNIT_INT(oprec_int(&w->rec, "v_head", 0), 32);
    bench_costs(w, 4 * 64 * 48, 2 * 4 * 36 * 48, 2 * (512 + 256 + 512), 2 * 1024);
    bench_end();
}

static void attention_pairs(void) {
    static const struct {
        int64_t q_len, kv_len, past, window, pairs;
        const char *mask;
    } cases[] = {
        {1, 65, -1, 0, 65, "causal"},
        {4, 10, -1, 0, 7 + 8 + 9 + 10, "causal"},
        {4, 10, 0, 0, 1 + 2 + 3 + 4, "causal+padding"},
        {4, 4, -1, 2, 1 + 2 + 2 + 2, "causal"},
        {4, 4, -1, 0, 16, "additive"},
        {5, 3, -1, 0, 1 + 2 + 3, "causal"},
        {3, 5, -1, 2, 6, "none"},
    };
    bench_begin();
    tensor *q = bench_tensor(DTYPE_FP32, DIMS(1, 1, 1, 1));
    NODE("", "Relu", bench_tensor(DTYPE_FP32, DIMS(1, 1, 1, 1)), q);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        work_list(&b.list, &b.model, DTYPE_NONE);
        work *w = b.list.items[0];
        cost_set_attention(w, &(cost_attention){.batch = 1,
                                                .heads = 1,
                                                .head = 1,
                                                .q_len = cases[k].q_len,
                                                .kv_len = cases[k].kv_len,
                                                .past = cases[k].past,
                                                .window = cases[k].window,
                                                .mask = cases[k].mask});
        UNIT_INT(w->rec.flops, 2 * 2 * cases[k].pairs);
        UNIT_INT(w->rec.macs, 2 * cases[k].q_len * cases[k].kv_len);
    }
    bench_end();
}

static void rows_of_norm_and_softmax(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), *scale = bench_weight(DTYPE_FP32, DIMS(8));
    node *norm = NODE("", "LayerNormalization", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), x, scale);
    node *softmax = NODE("", "Softmax", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), x);
    bench_int(softmax, "axis", 1);
    const work *w = bench_lower(norm, DTYPE_NONE);
    bench_shape(w, DIMS(6, 8));
    UNIT_TEXT(w->rec.what, "layer");
    bench_costs(w, 0, 48 * 8, 4 * (48 + 8), 4 * 48);
    w = work_of(&b.list, softmax);
    bench_shape(w, DIMS(16, 3));
    UNIT_INT(oprec_int(&w->rec, "inner", 1), 8);
    softmax->opset = 11; /* everything from the axis on */
    w = bench_lower(softmax, DTYPE_NONE);
    bench_shape(w, DIMS(2, 24));
    bench_end();
}

static void operands_of_elementwise(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), *row = bench_weight(DTYPE_FP32, DIMS(8)),
           *column = bench_tensor(DTYPE_FP32, DIMS(2, 3, 1)), *plane = bench_weight(DTYPE_FP32, DIMS(1, 3, 8)),
           *one_row = bench_weight(DTYPE_FP32, DIMS(1, 8));
    node *plain = NODE("", "Relu", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), x),
         *bias = NODE("", "Add", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), row, x);
    node *other = NODE("", "Sub", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), column, x),
         *square = NODE("", "Mul", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), x, x),
         *places = NODE("", "Add", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), x, plane),
         *flat = NODE("", "Add", bench_tensor(DTYPE_FP32, DIMS(2, 3, 8)), x, one_row);
    UNIT_CHECK(!bench_text(bench_lower(plain, DTYPE_NONE), "inputs"));
    UNIT_TEXT(bench_text(work_of(&b.list, bias), "inputs"), "tensor,vector");
    UNIT_TEXT(bench_text(work_of(&b.list, other), "inputs"), "2x3x1,tensor");
    UNIT_TEXT(bench_text(work_of(&b.list, places), "inputs"), "tensor,3x8"); /* other work than a vector */
    UNIT_TEXT(bench_text(work_of(&b.list, flat), "inputs"), "tensor,vector");
    UNIT_TEXT(bench_text(work_of(&b.list, square), "inputs"), "tensor,same");
    bench_costs(work_of(&b.list, bias), 0, 48, 4 * 56, 4 * 48);
    bench_costs(work_of(&b.list, square), 0, 48, 4 * 48, 4 * 48);
    bench_end();
}

static void gathers_read_what_they_take(void) {
    bench_begin();
    tensor *table = bench_weight(DTYPE_FP16, DIMS(1000, 8)), *ids = bench_tensor(DTYPE_INT64, DIMS(2, 3)),
           *x = bench_tensor(DTYPE_FP16, DIMS(4, 100));
    tensor *one = bench_weight(DTYPE_INT64, DIMS(1));
    node *look_up = NODE("", "Gather", bench_tensor(DTYPE_FP16, DIMS(2, 3, 8)), table, ids),
         *pick = NODE("", "Gather", bench_tensor(DTYPE_FP16, DIMS(4, 1)), x, one);
    bench_int(pick, "axis", 1);
    const work *w = bench_lower(look_up, DTYPE_NONE);
    UNIT_CHECK(w->rec.kind == OP_EMBEDDING && w->weight == table);
    bench_shape(w, DIMS(6, 8));
    bench_costs(w, 0, 0, 2 * 48 + 8 * 6, 2 * 48);
    w = work_of(&b.list, pick);
    UNIT_CHECK(w->rec.kind == OP_MOVE);
    bench_costs(w, 0, 0, 8, 8);
    bench_end();
}

static void what_moves_nothing_is_free(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(2, 1, 3, 4)), *flat = bench_tensor(DTYPE_FP32, DIMS(24)),
           *kept = bench_tensor(DTYPE_FP32, DIMS(2, 3, 1, 4));
    tensor *turned = bench_tensor(DTYPE_FP32, DIMS(4, 3, 1, 2)), *cast = bench_tensor(DTYPE_FP16, DIMS(24));
    node *flatten = NODE("", "Flatten", flat, x), *swap = NODE("", "Transpose", kept, x),
         *turn = NODE("", "Transpose", turned, x);
    node *half = NODE("", "Cast", cast, flat);
    bench_ints(swap, "perm", DIMS(0, 2, 1, 3));
    const work *w = bench_lower(flatten, DTYPE_NONE);
    UNIT_CHECK(w->free && !w->rec.bytes_read && !w->rec.shape);
    UNIT_CHECK(work_of(&b.list, swap)->free);
    UNIT_CHECK(!work_of(&b.list, turn)->free);
    bench_costs(work_of(&b.list, half), 0, 0, 96, 48);
    UNIT_CHECK(bench_lower(half, DTYPE_FP16)->free); /* nothing to convert then */
    bench_end();
}

static void einsum_is_a_product(void) {
    bench_begin();
    tensor *q = bench_tensor(DTYPE_FP32, DIMS(2, 5, 3, 8)), *k = bench_tensor(DTYPE_FP32, DIMS(2, 7, 3, 8));
    node *scores = NODE("", "Einsum", bench_tensor(DTYPE_FP32, DIMS(2, 3, 5, 7)), q, k);
    bench_attr(scores, (attr){.name = "equation", .kind = ATTR_STRING, .s = "bqhd,bkhd->bhqk"});
    const work *w = bench_lower(scores, DTYPE_NONE);
    bench_shape(w, DIMS(5, 7, 8));
    UNIT_INT(oprec_int(&w->rec, "batch", 1), 6);
    UNIT_INT(w->rec.macs, 6 * 5 * 7 * 8);
    UNIT_TEXT(w->rec.what, "einsum");
    scores->attrs[0].s = "...ij , ...kj -> ...ik";
    q->info = info_tensor(&b.arena, DTYPE_FP32, DIMS(2, 5, 8));
    k->info = info_tensor(&b.arena, DTYPE_FP32, DIMS(2, 7, 8));
    scores->out[0]->info = info_tensor(&b.arena, DTYPE_FP32, DIMS(2, 5, 7));
    w = bench_lower(scores, DTYPE_NONE);
    UNIT_CHECK(!w->rec.what);
    UNIT_TEXT(w->rec.layout, "nt");
    UNIT_INT(oprec_int(&w->rec, "batch", 1), 2);
    bench_end();
}

static void recurrent_layers(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(5, 2, 3)), *w = bench_weight(DTYPE_FP32, DIMS(2, 16, 3)),
           *r = bench_weight(DTYPE_FP32, DIMS(2, 16, 4));
    node *n = NODE("", "LSTM", bench_tensor(DTYPE_FP32, DIMS(5, 2, 2, 4)), x, w, r);
    bench_int(n, "hidden_size", 4);
    bench_attr(n, (attr){.name = "direction", .kind = ATTR_STRING, .s = "bidirectional", .n = 13});
    const work *k = bench_lower(n, DTYPE_NONE);
    bench_shape(k, DIMS(5, 2, 3, 4));
    UNIT_INT(k->rec.macs, 5 * 2 * 2 * 16 * 7);
    UNIT_INT(oprec_int(&k->rec, "directions", 1), 2);
    UNIT_CHECK(k->weight == w && k->more_count == 1 && k->more[0].t == r);
    bench_end();
}

/* Attributes that change the result are fields, defaults are not, and other names of one thing are one. */
static void attributes_tell_apart(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(2, 8));
    node *leaky = NODE("", "LeakyRelu", bench_tensor(DTYPE_FP32, DIMS(2, 8)), x),
         *plain = NODE("", "LeakyRelu", bench_tensor(DTYPE_FP32, DIMS(2, 8)), x);
    node *swish = NODE("", "Swish", bench_tensor(DTYPE_FP32, DIMS(2, 8)), x),
         *other = NODE("", "Swish", bench_tensor(DTYPE_FP32, DIMS(2, 8)), x),
         *gelu = NODE("", "Gelu", bench_tensor(DTYPE_FP32, DIMS(2, 8)), x);
    bench_attr(leaky, (attr){.name = "alpha", .kind = ATTR_FLOAT, .f = (double)0.3F});
    bench_attr(plain, (attr){.name = "alpha", .kind = ATTR_FLOAT, .f = (double)0.01F});
    bench_attr(other, (attr){.name = "alpha", .kind = ATTR_FLOAT, .f = 1.5});
    bench_attr(gelu, (attr){.name = "approximate", .kind = ATTR_STRING, .s = "tanh", .n = 4});
    const opfield *alpha = oprec_field(&bench_lower(leaky, DTYPE_NONE)->rec, "alpha");
    UNIT_CHECK(alpha && alpha->real == 0.3); /* not what single precision makes of it */
    UNIT_CHECK(!oprec_field(&work_of(&b.list, plain)->rec, "alpha"));
    UNIT_TEXT(work_of(&b.list, swish)->rec.what, "silu");
    UNIT_TEXT(work_of(&b.list, other)->rec.what, "swish");
    UNIT_CHECK(oprec_field(&work_of(&b.list, other)->rec, "alpha"));
    UNIT_TEXT(work_of(&b.list, gelu)->rec.what, "gelu_tanh");
    bench_end();
}

static void a_table_is_read_once(void) {
    bench_begin();
    tensor *table = bench_weight(DTYPE_FP32, DIMS(2, 8)), *ids = bench_tensor(DTYPE_INT64, DIMS(100));
    const work *w = bench_lower(NODE("", "Gather", bench_tensor(DTYPE_FP32, DIMS(100, 8)), table, ids), DTYPE_NONE);
    bench_shape(w, DIMS(100, 8));
    bench_costs(w, 0, 0, 64 + 800, 3200);
    bench_end();
}

static void output_shape_becomes_padding(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(1, 1, 3)), *w = bench_weight(DTYPE_FP32, DIMS(1, 2, 3));
    node *larger = NODE("", "ConvTranspose", bench_tensor(DTYPE_FP32, DIMS(1, 2, 10)), x, w),
         *smaller = NODE("", "ConvTranspose", bench_tensor(DTYPE_FP32, DIMS(1, 2, 8)), x, w);
    bench_ints(larger, "strides", DIMS(3));
    bench_ints(larger, "output_shape", DIMS(10));
    bench_ints(smaller, "strides", DIMS(3));
    bench_ints(smaller, "output_shape", DIMS(8));
    const opfield *extra = oprec_field(&bench_lower(larger, DTYPE_NONE)->rec, "output_padding");
    UNIT_CHECK(extra && extra->n == 1 && extra->ints[0] == 1);
    UNIT_CHECK(!oprec_field(&work_of(&b.list, larger)->rec, "pads"));
    const opfield *pads = oprec_field(&work_of(&b.list, smaller)->rec, "pads");
    UNIT_CHECK(pads && pads->ints[0] + pads->ints[1] == 1);
    bench_end();
}

static void nonsense_saturates(void) {
    bench_begin();
    const int64_t huge = INT64_C(1) << 31;
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(huge, huge)), *y = bench_tensor(DTYPE_FP32, DIMS(huge, huge));
    const work *w = bench_lower(NODE("", "MatMul", bench_tensor(DTYPE_FP32, DIMS(huge, huge)), x, y), DTYPE_NONE);
    UNIT_INT(w->rec.macs, INT64_MAX);
    UNIT_INT(w->rec.flops, INT64_MAX);
    UNIT_INT(w->rec.bytes_read, INT64_MAX);
    bench_end();
}

int main(void) {
    UNIT_RUN(matmul_folds_the_batch_into_rows);
    UNIT_RUN(matmul_of_two_activations_keeps_the_batch);
    UNIT_RUN(a_weight_on_the_left_is_shared);
    UNIT_RUN(gemm_folds_transposes_and_epilogue);
    UNIT_RUN(a_weight_is_seen_where_it_lies);
    UNIT_RUN(training_counts_all_tensors);
    UNIT_RUN(conv_resolves_padding);
    UNIT_RUN(conv_in_blocks_counts_what_is_padded);
    UNIT_RUN(blocks_are_transposes_where_nothing_is_padded);
    UNIT_RUN(the_block_is_what_weights_are_padded_to);
    UNIT_RUN(an_unknown_operator_is_told_with_its_domain);
    UNIT_RUN(transposed_conv_counts_its_input);
    UNIT_RUN(causal_attention_needs_half);
    UNIT_RUN(attention_pairs);
    UNIT_RUN(rows_of_norm_and_softmax);
    UNIT_RUN(operands_of_elementwise);
    UNIT_RUN(gathers_read_what_they_take);
    UNIT_RUN(what_moves_nothing_is_free);
    UNIT_RUN(einsum_is_a_product);
    UNIT_RUN(recurrent_layers);
    UNIT_RUN(attributes_tell_apart);
    UNIT_RUN(a_table_is_read_once);
    UNIT_RUN(output_shape_becomes_padding);
    UNIT_RUN(nonsense_saturates);
    return unit_end();
}
