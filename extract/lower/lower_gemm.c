/* Owns matrix products. Whatever an operator calls its inputs, the record says M, N, K, how often (batch), how both
 * sides lie in memory (n or t each), which side is a weight, and what is done with the result in passing. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

/* Where an operator has its two sides, its bias, zero points of both sides and the right side's scales. */
static const struct {
    const char *op_type;
    int a, b, bias; /* slots; bias -1: none */
    bool bias_is_row;
    const char *quant;            /* how its bytes are meant; NULL: nothing is quantised */
    int a_zero, b_zero, b_scales; /* slots; 0: none */
} products[] = {
    {"FusedGemm", 0, 1, 2, false, NULL, 0, 0, 0},
    {"FusedMatMul", 0, 1, -1, false, NULL, 0, 0, 0},
    {"FusedMatMulActivation", 0, 1, -1, false, NULL, 0, 0, 0},
    {"Gemm", 0, 1, 2, false, NULL, 0, 0, 0},
    {"GemmFastGelu", 0, 1, 2, true, NULL, 0, 0, 0},
    {"GemmFloat8", 0, 1, 2, false, NULL, 0, 0, 0},
    {"MatMul", 0, 1, -1, false, NULL, 0, 0, 0},
    {"MatMulInteger", 0, 1, -1, false, NULL, 2, 3, 0},
    {"MatMulInteger16", 0, 1, -1, false, NULL, 2, 3, 0},
    {"MatMulIntegerToFloat", 0, 1, 6, true, "dynamic", 4, 5, 3},
    {"QGemm", 0, 3, 6, false, "qdq", 0, 0, 4},
    {"QLinearMatMul", 0, 3, -1, false, "qdq", 0, 0, 4},
    {"TransposeMatMul", 0, 1, -1, false, NULL, 0, 0, 0},
};

typedef struct gemm_side {
    int64_t rows, cols;           /* as used: a is rows x k, b is k x cols */
    int64_t batch[INFO_MAX_RANK]; /* leading dimensions */
    int rank;                     /* of them */
    bool transposed;
    bool batch_inside; /* its batch lies between the matrix's dimensions */
} gemm_side;

static void side_read(gemm_side *s, const tensor *t, bool transposed, bool trans_batch, bool is_left) {
    const int rank = cost_rank(t);
    const int64_t *dims = t->info->dims;
    *s = (gemm_side){.rows = 1, .cols = 1};
    if (rank == 1) {
        if (is_left)
            s->cols = dims[0];
        else
            s->rows = dims[0];
        return;
    }
    if (rank < 1) return;
    const bool inside = trans_batch && rank >= 3;
    s->batch_inside = inside;
    s->transposed = transposed;
    s->rank = rank - 2;
    for (int k = 0; k < s->rank; k++) s->batch[k] = dims[inside ? k + 1 : k];
    const int64_t first = dims[inside ? 0 : rank - 2], second = dims[rank - 1];
    s->rows = transposed ? second : first;
    s->cols = transposed ? first : second;
}

static int64_t broadcast_batch(const gemm_side *a, const gemm_side *b) {
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t product = 1;
    for (int k = 1; k <= rank; k++) {
        const int64_t x = k <= a->rank ? a->batch[a->rank - k] : 1, y = k <= b->rank ? b->batch[b->rank - k] : 1;
        product = checked_mul(product, x == 1 ? y : x);
    }
    return product;
}

/* A matrix on the right that is the same for the whole batch makes the batch more rows. Otherwise the batch stays, and
 * a side that is the same for all of it has stride 0. */
static void gemm_set_batch(work *w, gemm_side *a, const gemm_side *b) {
    const int64_t in_a = cost_product(a->batch, 0, a->rank), in_b = cost_product(b->batch, 0, b->rank);
    const int64_t batch = broadcast_batch(a, b);
    if (in_b == 1 && !a->transposed && !a->batch_inside) {
        a->rows = checked_mul(a->rows, in_a);
        return;
    }
    if (batch == 1) return;
    oprec_set_int(&w->rec, "batch", batch);
    if (in_a == 1) oprec_set_int(&w->rec, "batch_stride_a", 0);
    if (in_b == 1) oprec_set_int(&w->rec, "batch_stride_b", 0);
    if ((in_a != 1 && in_a != batch) || (in_b != 1 && in_b != batch)) {
        oprec_set_ints(&w->rec, w->arena, "batch_a", a->rank, a->batch);
        oprec_set_ints(&w->rec, w->arena, "batch_b", b->rank, b->batch);
    }
    if (a->batch_inside || b->batch_inside)
        oprec_set_text(&w->rec, "batch_inside", !a->batch_inside ? "b" : b->batch_inside ? "ab" : "a");
}

static const char *layout_name(bool a, bool b) { return a ? (b ? "tt" : "tn") : (b ? "nt" : "nn"); }

/* The side that is a weight, seen as it lies in the file. */
static void gemm_set_weight(work *w, int slot, const char *side, bool *transposed) {
    cost_weight found;
    if (w->weight || !cost_trace(w, w->node->in[slot], &found)) return;
    w->weight = found.root;
    w->rec.weight_type = found.type;
    oprec_set_text(&w->rec, "weight_side", side);
    if (found.rearranged)
        oprec_set_int(&w->rec, "weight_rearranged", 1);
    else if (found.transposed)
        *transposed = !*transposed;
}

static const char *bias_kind(const tensor *bias, int64_t m, int64_t n) {
    if (!cost_shaped(bias)) return "full";
    const int64_t count = info_count(bias->info);
    if (count == 1) return "scalar";
    if (count == n && cost_dim(bias, -1) == n) return "n";
    return count == m && cost_rank(bias) == 2 && cost_dim(bias, 0) == m ? "m" : "full";
}

static void gemm_set_epilogue(work *w, int bias_slot, bool bias_is_row) {
    const node *n = w->node;
    const tensor *bias = bias_slot >= 0 ? cost_in(w, bias_slot) : NULL;
    const double alpha = graph_attr_float(n, "alpha", 1),
                 beta = graph_attr_float(n, "beta", strcmp(n->op_type, "GemmFloat8") == 0 ? 0 : 1);
    if (alpha != 1) oprec_set_real(&w->rec, "alpha", cost_real(alpha));
    if (bias) oprec_set_text(&w->rec, "bias", bias_is_row ? "n" : bias_kind(bias, w->rec.shape[0], w->rec.shape[1]));
    if (bias && beta != 1) oprec_set_real(&w->rec, "beta", cost_real(beta));
    const char *activation = graph_attr_string(n, "activation", "");
    if (strcmp(n->op_type, "GemmFastGelu") == 0) activation = "fastgelu";
    if (!*activation) return;
    oprec_set_text(&w->rec, "activation", cost_text(w, activation, true));
}

static void gemm_set_shape(work *w, int64_t m, int64_t n, int64_t k) {
    const int64_t shape[3] = {m, n, k};
    oprec_set_shape(&w->rec, w->arena, 3, shape);
    opcost_gemm(&w->rec);
}

static void gemm_set_quant(work *w, const char *quant, int a_zero, int b_zero, int b_scales) {
    const tensor *const b = b_zero ? cost_in(w, b_zero) : NULL;
    if (quant) oprec_set_text(&w->rec, "quant", quant);
    if (a_zero && cost_has_zero(w, cost_in(w, a_zero))) oprec_set_int(&w->rec, "a_zero", 1);
    if (cost_has_zero(w, b)) oprec_set_text(&w->rec, "b_zero", cost_is_each(b) ? "channel" : "one");
    if (b_scales && cost_is_each(cost_in(w, b_scales))) oprec_set_text(&w->rec, "weight_scales", "channel");
}

static void gemm_product(work *w, int slot_a, int slot_b, int slot_bias, bool bias_is_row) {
    const tensor *left = cost_in(w, slot_a), *right = cost_in(w, slot_b);
    w->rec.kind = OP_GEMM;
    cost_set_types(w, left, cost_out(w, 0));
    cost_boundary(w);
    if (!cost_shaped(left) || !cost_shaped(right)) return;
    gemm_side a, b;
    const node *n = w->node;
    side_read(&a, left, graph_attr_int(n, "transA", 0) != 0, graph_attr_int(n, "transBatchA", 0) != 0, true);
    side_read(&b, right, graph_attr_int(n, "transB", 0) != 0, graph_attr_int(n, "transBatchB", 0) != 0, false);
    gemm_set_batch(w, &a, &b);
    bool ta = a.transposed, tb = b.transposed;
    gemm_set_weight(w, slot_b, "b", &tb);
    gemm_set_weight(w, slot_a, "a", &ta);
    w->rec.layout = layout_name(ta, tb);
    gemm_set_shape(w, a.rows, b.cols, a.cols);
    gemm_set_epilogue(w, slot_bias, bias_is_row);
}

void lower_gemm(work *w) {
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        if (strcmp(products[k].op_type, w->node->op_type) != 0) continue;
        gemm_product(w, products[k].a, products[k].b, products[k].bias, products[k].bias_is_row);
        gemm_set_quant(w, products[k].quant, products[k].a_zero, products[k].b_zero, products[k].b_scales);
        return;
    }
    gemm_product(w, 0, 1, -1, false);
}

void lower_matmul(work *w) { lower_gemm(w); }

static dtype packed_type(const node *n) {
    if (strcmp(n->op_type, "MatMulBnb4") == 0) return DTYPE_FP4E2M1;
    switch (graph_attr_int(n, "bits", 4)) {
    case 2: return DTYPE_INT2;
    case 8: return DTYPE_INT8;
    default: return DTYPE_INT4;
    }
}

/* The weight comes packed in blocks along K, each with a scale of its own. One of four dimensions is a batch of them
 * (expand/). */
void lower_matmul_nbits(work *w) {
    const node *n = w->node;
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    w->rec.kind = OP_GEMM;
    w->rec.layout = "nt";
    w->rec.weight_type = packed_type(n);
    cost_set_types(w, in, out);
    cost_boundary(w);
    if (n->in_count > 1 && n->in[1] && cost_known(n->in[1])) {
        cost_weight found;
        w->weight = cost_trace(w, n->in[1], &found) ? found.root : n->in[1];
    }
    oprec_set_text(&w->rec, "weight_side", "b");
    const int64_t block = graph_attr_int(n, "block_size", 0);
    if (block > 0) oprec_set_int(&w->rec, "block_size", block);
    if (strcmp(n->op_type, "MatMulNBits") == 0 && cost_in(w, 3)) oprec_set_int(&w->rec, "zero_points", 1);
    if (strcmp(n->op_type, "MatMulNBits") == 0 && cost_in(w, 4)) oprec_set_int(&w->rec, "group_index", 1);
    if (strcmp(n->op_type, "MatMulBnb4") == 0 && graph_attr_int(n, "transB", 1) == 0) w->rec.layout = "nn";
    if (!cost_shaped(in) || cost_rank(in) < 1) return;
    const int64_t k = graph_attr_int(n, "K", cost_dim(in, -1)), cols = graph_attr_int(n, "N", cost_dim(out, -1));
    const bool stack =
        cost_rank(in) == 3 && cost_rank(cost_in(w, 1)) == 4 && cost_dim(cost_in(w, 1), 0) == cost_dim(in, 0);
    if (stack && cost_dim(in, 0) > 1) oprec_set_int(&w->rec, "batch", cost_dim(in, 0));
    gemm_set_shape(w, cost_product(in->info->dims, stack, in->info->rank - 1), cols, k);
    gemm_set_epilogue(w, strcmp(n->op_type, "MatMulNBits") == 0 ? 5 : -1, true);
}
