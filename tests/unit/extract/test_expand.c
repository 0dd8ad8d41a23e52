/* Taking operators apart: what stands where afterwards, under which names, and what stays as it is. */
#include "extract/expand/expand.h"

#include "extract/graph/operators.h"
#include "tests/unit/extract/lowering_fixture.h"

#include <math.h>

static tensor *f(int rank, const int64_t *dims) { return bench_tensor(DTYPE_FP32, rank, dims); }

static node *attention(int64_t bias) {
    node *n = NODE("com.microsoft", "Attention", f(DIMS(2, 5, 32)), f(DIMS(2, 5, 16)), f(DIMS(16, 96)), f(DIMS(bias)));
    bench_int(n, "num_heads", 4);
    return n;
}

static void expand(void) {
    graph_link_users(&b.model);
    for (int k = 0; k < b.model.graph_count; k++)
        b.graphs[k]->nodes = arena_array(&b.arena, node *, b.model.node_count);
    for (int64_t k = 0; k < b.model.node_count; k++) {
        graph *g = b.nodes[k]->home;
        g->nodes[g->node_count++] = b.nodes[k];
    }
    expand_model(&b.model);
    expand_products(&b.model);
}

static void is_node(int64_t k, const char *op_type, const char *name) {
    if (!UNIT_CHECK(k < b.model.node_count)) return;
    UNIT_TEXT(b.model.nodes[k]->op_type, op_type);
    UNIT_TEXT(b.model.nodes[k]->name, name);
    UNIT_INT(b.model.nodes[k]->id, k);
}

/* Each part before what reads it, and every tensor knows its maker and its users. */
static void check_order(void) {
    int64_t uses = 0, listed = 0;
    for (int64_t k = 0; k < b.model.node_count; k++) {
        const node *n = b.model.nodes[k];
        for (int i = 0; i < n->in_count; i++) {
            uses += n->in[i] != NULL;
            if (n->in[i] && n->in[i]->producer) UNIT_CHECK(n->in[i]->producer->id < k);
        }
        for (int o = 0; o < n->out_count; o++) UNIT_CHECK(n->out[o]->producer == n && n->out[o]->producer_slot == o);
    }
    for (int64_t k = 0; k < b.model.tensor_count; k++) {
        listed += b.model.tensors[k]->user_count;
        UNIT_INT(b.model.tensors[k]->place, k);
    }
    UNIT_INT(listed, uses);
}

static void parts_stand_before_the_node(void) {
    bench_begin();
    tensor *x = f(DIMS(2, 5, 16));
    NODE("", "Relu", f(DIMS(2, 5, 16)), x);
    node *n = attention(96);
    tensor *result = n->out[0];
    n->in[0] = b.nodes[0]->out[0];
    NODE("", "Relu", f(DIMS(2, 5, 32)), result);
    expand();
    UNIT_INT(b.model.node_count, 6);
    is_node(0, "Relu", "Relu_0");
    is_node(1, "MatMul", "Attention_1/MatMul");
    is_node(2, "Add", "Attention_1/Add");
    is_node(3, "Split", "Attention_1/Split");
    is_node(4, "Attention", "Attention_1");
    is_node(5, "Relu", "Relu_2");
    UNIT_INT(b.graph.node_count, 6);
    UNIT_CHECK(b.model.nodes[4] == n && n->out[0] == result && result->user_count == 1);
    const tensor *projected = b.model.nodes[1]->out[0];
    UNIT_CHECK(projected->info->rank == 3 && projected->info->dims[2] == 96 && projected->user_count == 1);
    check_order();
    bench_end();
}

static void names_of_the_model_are_not_taken_again(void) {
    bench_begin();
    NODE("", "Relu", f(DIMS(4)), f(DIMS(4)))->name = "Attention_1/MatMul";
    attention(96);
    expand();
    is_node(1, "MatMul", "Attention_1/MatMul_2");
    bench_end();
}

static void a_projection_that_does_not_fit_is_none(void) {
    bench_begin();
    node *n = attention(95), *bare = attention(96);
    bare->in[0] = f(0, NULL);
    expand();
    UNIT_INT(b.model.node_count, 2);
    UNIT_CHECK(n->whole && n->unresolved && bare->whole && n->in_count == 3);
    bench_end();
}

/* What is absent leaves a node its inputs, and what it has done for itself counts for nothing. */
static void a_node_stays_without_what_its_parts_need(void) {
    bench_begin();
    node *n =
        NODE("com.microsoft", "GroupQueryAttention", f(DIMS(2, 5, 32)), f(DIMS(2, 5, 64)), NULL, NULL, NULL, NULL);
    bench_int(n, "num_heads", 4);
    bench_int(n, "kv_num_heads", 2);
    bench_int(n, "do_rotary", 1);
    const int64_t tensors = b.model.tensor_count;
    expand();
    UNIT_INT(b.model.node_count, 1);
    UNIT_INT(b.model.tensor_count, tensors);
    UNIT_CHECK(n->whole && n->unresolved && n->in[0]->user_count == 1 && !n->in[1]);
    bench_end();
}

static void parts_stand_in_the_body_of_their_node(void) {
    bench_begin();
    b.model.graph_count = 2;
    node *loop = NODE("", "Loop", f(DIMS(2, 5, 32)), f(DIMS(2, 5, 16))), *n = attention(96);
    b.body.owner = loop;
    n->home = &b.body;
    expand();
    UNIT_INT(b.graph.node_count, 1);
    UNIT_INT(b.body.node_count, 4);
    UNIT_CHECK(b.body.nodes[3] == n && b.body.nodes[0]->home == &b.body && b.body.nodes[0]->out[0]->home == &b.body);
    check_order();
    bench_end();
}

/* Three outputs come from three parts, and each keeps its tensor. */
static void every_output_keeps_its_tensor(void) {
    bench_begin();
    tensor *outs[] = {f(DIMS(2, 5, 16)), bench_tensor(DTYPE_INT32, DIMS(2)), f(DIMS(2, 5, 16))};
    tensor *ids = bench_tensor(DTYPE_INT32, DIMS(2, 5));
    node *n = NODE("com.microsoft", "EmbedLayerNormalization", outs[0], ids, NULL, f(DIMS(9, 16)), f(DIMS(7, 16)), NULL,
                   f(DIMS(16)), f(DIMS(16)), bench_tensor(DTYPE_INT32, DIMS(2, 5)));
    n->out = outs;
    n->out_count = 3;
    expand();
    UNIT_TEXT(n->op_type, "LayerNormalization");
    UNIT_TEXT(n->domain, "");
    UNIT_CHECK(n->out_count == 1 && outs[0]->producer == n && n->in[0] == outs[2]);
    UNIT_TEXT(outs[1]->producer->op_type, "ReduceSum");
    UNIT_TEXT(outs[2]->producer->op_type, "Add");
    check_order();
    bench_end();
}

/* What is the same for several matrices of the left makes more rows of them; what is for some of a batch is repeated.
 */
static void batches_that_broadcast_in_part(void) {
    static const struct {
        int64_t left[5], right[5];
        const char *parts[6];
    } rows[] = {
        {{2, 3, 2, 4, 5}, {2, 3, 1, 5, 6}, {"Reshape", "Reshape", "MatMul", "Reshape"}},
        {{1, 2, 3, 4, 5}, {1, 2, 1, 5, 6}, {"Reshape", "Reshape", "MatMul", "Reshape"}},
        {{2, 1, 4, 4, 5}, {1, 3, 4, 5, 6}, {"Expand", "Expand", "MatMul"}},
        {{9, 1, 3, 1, 5}, {1, 1, 3, 5, 6}, {"Transpose", "Reshape", "Reshape", "MatMul", "Reshape", "Transpose"}},
        {{2, 3, 2, 4, 5}, {1, 1, 1, 5, 6}, {"MatMul"}},
        {{2, 3, 2, 4, 5}, {2, 3, 2, 5, 6}, {"MatMul"}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int64_t out[5], count = 0;
        bench_begin();
        for (int d = 0; d < 3; d++) out[d] = rows[k].left[d] > 1 ? rows[k].left[d] : rows[k].right[d];
        out[3] = rows[k].left[3], out[4] = rows[k].right[4];
        NODE("", "MatMul", f(5, out), f(5, rows[k].left), f(5, rows[k].right));
        expand();
        while (count < 6 && rows[k].parts[count]) count++;
        UNIT_INT(b.model.node_count, count);
        for (int64_t n = 0; n < count && n < b.model.node_count; n++)
            UNIT_TEXT(b.model.nodes[n]->op_type, rows[k].parts[n]);
        check_order();
        bench_end();
    }
}

static void products_of_an_attention_stay(void) {
    for (int attends = 0; attends < 2; attends++) {
        bench_begin();
        node *n = NODE("", "MatMul", f(DIMS(2, 4, 3, 6)), f(DIMS(2, 4, 3, 5)), f(DIMS(2, 1, 5, 6)));
        n->attends = attends != 0;
        expand();
        UNIT_INT(b.model.node_count, attends ? 1 : 4);
        bench_end();
    }
}

/* Each time nodes become works, for they do so twice where a product is taken apart. */
static void works_are_the_same_again(void) {
    for (int again = 0; again < 2; again++) {
        if (again == 0) bench_begin();
        node *n = again ? b.nodes[0] : NODE("com.microsoft", "SparseAttention", f(DIMS(2, 5, 16)), f(DIMS(2, 5, 16)));
        bench_shape(bench_lower(n, DTYPE_NONE), 3, (const int64_t[]){2, 5, 16});
    }
    bench_end();
}

/* What the graph says of an output, the last part has to make. */
static void a_part_that_makes_something_else_is_none(void) {
    static const struct {
        dtype type;
        int64_t width;
        const char *becomes;
    } rows[] = {{DTYPE_FP32, 4, "Add"}, {DTYPE_FP32, 5, "GatedAdd"}, {DTYPE_FP16, 4, "GatedAdd"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bench_begin();
        node *n = NODE("com.microsoft", "GatedAdd", bench_tensor(rows[k].type, DIMS(2, 3, rows[k].width)),
                       f(DIMS(2, 3, 4)), f(DIMS(2, 3, 4)), f(DIMS(2, 3, 1)));
        expand();
        UNIT_TEXT(n->op_type, rows[k].becomes);
        UNIT_INT(b.model.node_count, k == 0 ? 2 : 1);
        bench_end();
    }
}

/* Both domains have an Attention: of one the projection is a part, of the other a mask that ends before the keys. */
static void operators_of_one_name_have_a_row_each(void) {
    bench_begin();
    node *n = NODE("", "Attention", f(DIMS(1, 2, 3, 8)), f(DIMS(1, 2, 3, 8)), f(DIMS(1, 2, 6, 8)), f(DIMS(1, 2, 6, 8)),
                   f(DIMS(3, 4)));
    expand();
    UNIT_INT(b.model.node_count, 2);
    is_node(0, "Pad", "Attention_0/Pad");
    UNIT_TEXT(n->op_type, "Attention");
    UNIT_INT(n->in[3]->info->dims[1], 6);
    check_order();
    bench_end();
}

static node *experts(int64_t tokens, int64_t count, int64_t k) {
    node *n = NODE("com.microsoft", "MoE", f(DIMS(tokens, 16)), f(DIMS(tokens, 16)), f(DIMS(tokens, count)),
                   bench_weight(DTYPE_FP32, DIMS(count, 24, 16)), NULL, bench_weight(DTYPE_FP32, DIMS(count, 16, 24)));
    bench_int(n, "k", k);
    return n;
}

/* Five choices of two tokens each, of twelve experts: no more than ten are used. */
static void experts_get_as_many_tokens_each(void) {
    bench_begin();
    node *n = experts(2, 12, 5);
    tensor *result = n->out[0];
    const tensor *const router = n->in[1];
    expand();
    UNIT_INT(b.model.node_count, 13);
    UNIT_TEXT(n->op_type, "ReduceSum");
    UNIT_CHECK(!n->unresolved && n->out[0] == result && b.model.nodes[12] == n);
    is_node(0, "Softmax", "MoE_0/Softmax");
    UNIT_CHECK(b.model.nodes[0]->in[0] == router);
    int assumed = 0;
    for (int64_t k = 0; k < b.model.tensor_count; k++) {
        const tensor *t = b.model.tensors[k];
        if (t->source != TENSOR_ASSUMED) continue;
        assumed++;
        UNIT_CHECK(!t->producer && t->user_count == 1 && graph_is(t->users[0], "Gather"));
        UNIT_INT(info_count(t->info), 10);
    }
    UNIT_INT(assumed, 2);
    check_order();
    bench_end();
}

static void experts_that_do_not_fit_stay(void) {
    bench_begin();
    node *const none = experts(2, 4, 0), *const few = experts(2, 4, 5), *const of_others = experts(2, 4, 2),
                *const wide = experts(2, 4, 2), *const bare = experts(2, 4, 2), *const empty = experts(0, 4, 2),
                *const without = experts(2, 0, 1), *const computed = experts(1, 4, 2), *const open = experts(2, 4, 2),
                *const huge = experts((int64_t)1 << 54, (int64_t)1 << 50, (int64_t)1 << 50);
    info *upper = info_tensor(&b.arena, DTYPE_FP32, DIMS(2, 16));
    upper->inexact = true;
    of_others->in[1] = f(DIMS(2, 5));
    wide->in[4] = bench_weight(DTYPE_FP32, DIMS(4, 16, 25));
    bare->in[0] = f(0, NULL);
    computed->in[4] = f(DIMS(4, 16, 24));
    open->in[0] = f(DIMS(2, 16));
    open->in[0]->info = upper;
    const int64_t nodes = b.model.node_count;
    expand();
    UNIT_INT(b.model.node_count, nodes);
    const node *const all[] = {none, few, of_others, wide, bare, empty, without, computed, open, huge};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        UNIT_TEXT(all[k]->op_type, "MoE");
        UNIT_CHECK(!all[k]->unresolved && !all[k]->whole);
    }
    bench_end();
}

static node *loss(const char *op_type, const char *reduction, tensor *weights, tensor *out) {
    node *n = NODE("", op_type, out, f(DIMS(2, 5, 3)), bench_tensor(DTYPE_INT64, DIMS(2, 3)), weights);
    bench_attr(n, (attr){.name = "reduction", .kind = ATTR_STRING, .s = reduction});
    return n;
}

static void is_made_of(int count, const char *const *op_types) {
    UNIT_INT(b.model.node_count, count);
    for (int k = 0; k < count && k < b.model.node_count; k++) UNIT_TEXT(b.model.nodes[k]->op_type, op_types[k]);
    check_order();
}

static void a_loss_is_the_score_of_its_target(void) {
    static const char *const plain[] = {"Unsqueeze", "GatherElements", "Squeeze", "Neg"}, *const mean[] = {
                                                                                              "Unsqueeze",
                                                                                              "GatherElements",
                                                                                              "Squeeze", "Neg",
                                                                                              "ReduceMean"};
    bench_begin();
    loss("NegativeLogLikelihoodLoss", "none", NULL, f(DIMS(2, 3)));
    expand();
    is_made_of(4, plain);
    bench_end();
    bench_begin();
    loss("NegativeLogLikelihoodLoss", "mean", NULL, f(0, NULL));
    expand();
    is_made_of(5, mean);
    bench_end();
}

/* A mean is over what counts, and by how much. */
static void losses_are_weighed_and_left_out(void) {
    static const char *const parts[] = {"LogSoftmax", "Equal",     "Where", "Unsqueeze", "GatherElements",
                                        "Squeeze",    "Gather",    "Where", "Neg",       "Mul",
                                        "ReduceSum",  "ReduceSum", "Div"};
    bench_begin();
    tensor *outs[] = {f(0, NULL), f(DIMS(2, 5, 3))};
    node *n = loss("SoftmaxCrossEntropyLoss", "mean", f(DIMS(5)), outs[0]);
    bench_int(n, "ignore_index", -1);
    n->out = outs;
    n->out_count = 2;
    expand();
    is_made_of(13, parts);
    UNIT_CHECK(n->out_count == 1 && outs[0]->producer == n && n->in[0] != n->in[1]);
    UNIT_TEXT(outs[1]->producer->op_type, "LogSoftmax");
    UNIT_CHECK(b.model.nodes[4]->in[0] == outs[1]);
    const node *gathered = b.model.nodes[6], *which = b.model.nodes[2];
    UNIT_CHECK(gathered->in[1] == which->out[0] && which->in[0] == b.model.nodes[1]->out[0]);
    bench_end();
}

static tensor *bytes(int rank, const int64_t *dims) { return bench_tensor(DTYPE_UINT8, rank, dims); }

static void bytes_are_computed_in_floats(void) {
    static const char *const sigmoid[] = {"DequantizeLinear", "Sigmoid", "QuantizeLinear"}, *const concat[] = {
                                                                                                "DequantizeLinear",
                                                                                                "DequantizeLinear",
                                                                                                "Concat",
                                                                                                "QuantizeLinear"};
    tensor *zero, *scale;
    bench_begin();
    zero = bytes(0, NULL), scale = f(0, NULL);
    node *n = NODE("com.microsoft", "QLinearSigmoid", bytes(DIMS(2, 8)), bytes(DIMS(2, 8)), scale, zero, scale, zero);
    expand();
    is_made_of(3, sigmoid);
    UNIT_CHECK(n->in[1] == scale && n->in[2] == zero && !*n->domain);
    bench_end();
    bench_begin();
    zero = bytes(0, NULL), scale = f(0, NULL);
    n = NODE("com.microsoft", "QLinearConcat", bytes(DIMS(2, 8)), scale, zero, bytes(DIMS(2, 3)), scale, zero,
             bytes(DIMS(2, 5)), scale, zero);
    bench_int(n, "axis", 1);
    expand();
    is_made_of(4, concat);
    bench_end();
}

/* Before opset 13 a softmax is of all dimensions from its axis on. */
static void a_softmax_of_bytes_has_the_rows_of_its_opset(void) {
    static const char *const joined[] = {"DequantizeLinear", "Reshape", "Softmax", "Reshape", "QuantizeLinear"},
                             *const plain[] = {"DequantizeLinear", "Softmax", "QuantizeLinear"};
    for (int64_t opset = 12; opset <= 13; opset++) {
        bench_begin();
        tensor *zero = bytes(0, NULL), *scale = f(0, NULL);
        node *n = NODE("com.microsoft", "QLinearSoftmax", bytes(DIMS(2, 3, 8)), bytes(DIMS(2, 3, 8)), scale, zero,
                       scale, zero);
        bench_int(n, "axis", 1);
        bench_int(n, "opset", opset);
        expand();
        is_made_of(opset < 13 ? 5 : 3, opset < 13 ? joined : plain);
        bench_end();
    }
}

/* Without a zero point a result is bytes without a sign. */
static void bytes_of_another_type_than_their_zero_point_stay(void) {
    bench_begin();
    tensor *scale = f(0, NULL), *out = bench_tensor(DTYPE_INT8, DIMS(8));
    node *n = NODE("com.microsoft", "QLinearLeakyRelu", out, bench_tensor(DTYPE_INT8, DIMS(8)), scale, NULL, scale);
    expand();
    UNIT_INT(b.model.node_count, 1);
    UNIT_TEXT(n->op_type, "QLinearLeakyRelu");
    bench_end();
}

static node *ordered(int64_t from, int64_t to) {
    tensor *const scale = f(0, NULL);
    node *n = NODE("com.microsoft", "QOrderedGelu", bench_tensor(DTYPE_INT8, DIMS(4, 32)),
                   bench_tensor(DTYPE_INT8, DIMS(4, 32)), scale, scale);
    bench_int(n, "order_X", from);
    bench_int(n, "order_Y", to);
    return n;
}

static void a_gelu_of_bytes_keeps_their_order(void) {
    static const char *const parts[] = {"DequantizeLinear", "Gelu", "QuantizeLinear"};
    bench_begin();
    ordered(2, 2);
    expand();
    is_made_of(3, parts);
    bench_end();
    bench_begin();
    const node *n = ordered(1, 2);
    expand();
    UNIT_INT(b.model.node_count, 1);
    UNIT_TEXT(n->op_type, "QOrderedGelu");
    bench_end();
}

static double neutral(const char *op_type, dtype type) {
    double told = NAN;
    bench_begin();
    node *n = NODE("", op_type, bench_tensor(type, DIMS(2, 1)), bench_tensor(type, DIMS(2, 0)));
    bench_ints(n, "axes", DIMS(1));
    expand();
    UNIT_INT(b.model.node_count, 1);
    UNIT_TEXT(n->op_type, "Expand");
    if (UNIT_CHECK(n->in_count == 2 && n->in[0]->info->val && n->in[1]->info->val)) {
        UNIT_INT(value_at(n->in[1]->info->val, 0), 2);
        told = value_at(n->in[0]->info->val, 0);
    }
    UNIT_INT(n->in[0]->info->type, type);
    bench_end();
    return told;
}

static void nothing_is_reduced_to_what_changes_nothing(void) {
    UNIT_CHECK(neutral("ReduceSum", DTYPE_FP32) == 0 && neutral("ReduceL2", DTYPE_INT32) == 0);
    UNIT_CHECK(neutral("ReduceProd", DTYPE_FP16) == 1 && neutral("ReduceProd", DTYPE_UINT8) == 1);
    UNIT_CHECK(isinf(neutral("ReduceMax", DTYPE_FP32)) && neutral("ReduceMax", DTYPE_FP32) < 0);
    UNIT_CHECK(isinf(neutral("ReduceLogSumExp", DTYPE_FP64)) && neutral("ReduceMin", DTYPE_BF16) > 0);
    UNIT_CHECK(neutral("ReduceMax", DTYPE_INT8) == -128 && neutral("ReduceMin", DTYPE_INT8) == 127);
    UNIT_CHECK(neutral("ReduceMax", DTYPE_UINT8) == 0 && neutral("ReduceMin", DTYPE_UINT8) == 255);
    UNIT_CHECK(neutral("ReduceMax", DTYPE_BOOL) == 0 && neutral("ReduceMin", DTYPE_BOOL) == 1);
    UNIT_CHECK(neutral("ReduceMax", DTYPE_INT32) == INT32_MIN && neutral("ReduceMin", DTYPE_UINT32) == UINT32_MAX);
}

/* Something is reduced, nothing comes out, or there is no logarithm of 0. */
static void other_reductions_stay(void) {
    bench_begin();
    node *const all[] = {
        NODE("", "ReduceSum", f(DIMS(2, 1)), f(DIMS(2, 3))), NODE("", "ReduceSum", f(DIMS(0, 1)), f(DIMS(0, 3))),
        NODE("", "ReduceLogSum", bench_tensor(DTYPE_INT32, DIMS(2, 1)), bench_tensor(DTYPE_INT32, DIMS(2, 0)))};
    expand();
    UNIT_INT(b.model.node_count, 3);
    for (int k = 0; k < 3; k++) UNIT_CHECK(strncmp(all[k]->op_type, "Reduce", 6) == 0 && all[k]->in_count == 1);
    bench_end();
}

static node *masked_pool(int rank, const int64_t *dims) {
    node *n = NODE("com.microsoft", "MaxpoolWithMask", f(DIMS(1, 3, 7, 6)), f(DIMS(1, 3, 9, 8)),
                   bench_tensor(DTYPE_INT32, rank, dims));
    bench_ints(n, "kernel_shape", DIMS(3, 3));
    return n;
}

static void a_mask_is_applied_before_its_pool(void) {
    static const char *const parts[] = {"Equal", "Where", "MaxPool"};
    bench_begin();
    node *n = masked_pool(DIMS(1, 1, 9, 8));
    tensor *const in = n->in[0];
    expand();
    is_made_of(3, parts);
    UNIT_CHECK(n->in_count == 1 && n->attr_count == 1 && n->in[0]->producer == b.model.nodes[1]);
    UNIT_CHECK(b.model.nodes[1]->in[2] == in && b.model.nodes[1]->in[0] == b.model.nodes[0]->out[0]);
    bench_end();
    bench_begin();
    n = masked_pool(DIMS(2, 3, 9, 8));
    expand();
    UNIT_INT(b.model.node_count, 1);
    UNIT_TEXT(n->op_type, "MaxpoolWithMask");
    bench_end();
}

/* No axis is computed from one that is not there: of no tensor, and of the least number. */
static void a_transform_along_no_axis_stays(void) {
    static const int64_t axes[] = {INT64_MIN, INT64_MAX, -4, 3, 2, (int64_t)1 << 32};
    for (size_t k = 0; k < sizeof axes / sizeof axes[0] + 1; k++) {
        bench_begin();
        node *n = NODE("", "DFT", f(DIMS(2, 8, 2)), f(DIMS(2, 8, 1)));
        n->opset = 17;
        bench_int(n, "axis", k == 0 ? 1 : axes[k - 1]);
        expand();
        UNIT_CHECK((strcmp(b.model.nodes[0]->op_type, "DFT") == 0) == (k > 0));
        check_order();
        bench_end();
    }
}

/* It makes nothing that its parts could make. */
static void a_node_without_outputs_stays(void) {
    bench_begin();
    node *n = NODE("com.microsoft", "Irfft", f(DIMS(2, 8)), f(DIMS(2, 5, 2)));
    bench_int(n, "signal_ndim", 1);
    n->out_count = 0;
    expand();
    UNIT_INT(b.model.node_count, 1);
    bench_end();
}

int main(void) {
    UNIT_RUN(parts_stand_before_the_node);
    UNIT_RUN(names_of_the_model_are_not_taken_again);
    UNIT_RUN(a_projection_that_does_not_fit_is_none);
    UNIT_RUN(a_node_stays_without_what_its_parts_need);
    UNIT_RUN(parts_stand_in_the_body_of_their_node);
    UNIT_RUN(every_output_keeps_its_tensor);
    UNIT_RUN(a_part_that_makes_something_else_is_none);
    UNIT_RUN(operators_of_one_name_have_a_row_each);
    UNIT_RUN(batches_that_broadcast_in_part);
    UNIT_RUN(products_of_an_attention_stay);
    UNIT_RUN(works_are_the_same_again);
    UNIT_RUN(experts_get_as_many_tokens_each);
    UNIT_RUN(experts_that_do_not_fit_stay);
    UNIT_RUN(a_loss_is_the_score_of_its_target);
    UNIT_RUN(losses_are_weighed_and_left_out);
    UNIT_RUN(bytes_are_computed_in_floats);
    UNIT_RUN(a_softmax_of_bytes_has_the_rows_of_its_opset);
    UNIT_RUN(bytes_of_another_type_than_their_zero_point_stay);
    UNIT_RUN(nothing_is_reduced_to_what_changes_nothing);
    UNIT_RUN(other_reductions_stay);
    UNIT_RUN(a_gelu_of_bytes_keeps_their_order);
    UNIT_RUN(a_mask_is_applied_before_its_pool);
    UNIT_RUN(a_transform_along_no_axis_stays);
    UNIT_RUN(a_node_without_outputs_stays);
    return unit_end();
}
