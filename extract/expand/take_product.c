/* Products whose batches broadcast in part, those that quantise their input by themselves, and what is made of one. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

enum { LEFT, RIGHT, SIDES, WIDEST = INFO_MAX_RANK };

typedef struct batches { /* as the output has them */
    expansion *x;
    int rank;
    int64_t dims[SIDES][WIDEST], out[WIDEST];
    int order[WIDEST], kept; /* axes that stay a batch come first; the others become rows of the left side */
} batches;

static bool read_batches(batches *b, tensor *const sides[SIDES]) {
    b->rank = 0;
    for (int s = 0; s < SIDES; s++) {
        const int rank = tensor_rank(sides[s]) - 2;
        if (rank < 0) return false;
        if (rank > b->rank) b->rank = rank;
    }
    for (int k = 0; k < b->rank; k++) {
        for (int s = 0; s < SIDES; s++) {
            const int at = k - b->rank + tensor_rank(sides[s]) - 2;
            b->dims[s][k] = at < 0 ? 1 : tensor_dim(sides[s], at);
        }
        b->out[k] = b->dims[LEFT][k] == 1 ? b->dims[RIGHT][k] : b->dims[LEFT][k];
        b->order[k] = k;
    }
    return true;
}

/* Whether a side has a matrix for some of these axes, but not for all. */
static bool is_partial(const batches *b, int side, int axes) {
    int64_t own = 1, all = 1;
    for (int k = 0; k < axes; k++) {
        own = checked_mul(own, b->dims[side][b->order[k]]);
        all = checked_mul(all, b->out[b->order[k]]);
    }
    return own != 1 && own != all;
}

/* Whether one matrix of the right is for all of that axis. */
static bool shares(const batches *b, int axis) { return b->dims[RIGHT][axis] == 1 && b->dims[LEFT][axis] != 1; }

/* To bring the left side and the result into another order costs as much as they are long, and to repeat the right side
 * as much as it becomes. */
static void set_order(batches *b, const tensor *left, const tensor *right) {
    int64_t repeats = 1;
    bool turns = false;
    b->kept = 0;
    for (int k = 0; k < b->rank; k++)
        if (!shares(b, k)) {
            turns |= b->kept != k;
            b->order[b->kept++] = k;
        }
    for (int k = 0, last = b->kept; k < b->rank; k++)
        if (shares(b, k)) {
            repeats = checked_mul(repeats, b->out[k]);
            b->order[last++] = k;
        }
    const int64_t moved = checked_add(tensor_count(left), tensor_count(part_out(b->x, 0)));
    if (!turns || moved < checked_mul(repeats, tensor_count(right))) return;
    b->kept = b->rank;
    for (int k = 0; k < b->rank; k++) b->order[k] = k;
}

/* Its axes in that order, the matrix last; back: from that order. */
static tensor *ordered(const batches *b, tensor *t, bool back) {
    int64_t *const perm = arena_array(b->x->e->m->arena, int64_t, b->rank + 2);
    bool turns = false;
    for (int k = 0; k < b->rank; k++) {
        perm[back ? b->order[k] : k] = back ? k : b->order[k];
        turns |= b->order[k] != k;
    }
    perm[b->rank] = b->rank, perm[b->rank + 1] = b->rank + 1;
    if (!turns) return t;
    return *part_make(b->x,
                      &(step){.op_type = "Transpose", .in = {t}, .attrs = {ints_attr("perm", b->rank + 2, perm)}});
}

/* Beside the matrix's rows stand those of the axes that are not kept. */
static tensor *side(const batches *b, int which, tensor *t) {
    const bool repeats = is_partial(b, which, b->kept);
    int64_t dims[WIDEST + 2], rows = tensor_dim(t, -2);
    for (int k = b->kept; k < b->rank; k++) rows = checked_mul(rows, b->dims[which][b->order[k]]);
    for (int k = 0; k < b->kept; k++) dims[k] = b->dims[which][b->order[k]];
    dims[b->kept] = rows;
    dims[b->kept + 1] = tensor_dim(t, -1);
    t = part_reshaped(b->x, t, b->kept + 2, dims);
    if (!repeats) return t;
    for (int k = 0; k < b->kept; k++) dims[k] = b->out[b->order[k]];
    return *part_make(b->x, &(step){.op_type = "Expand", .in = {t, part_numbers(b->x, "shape", b->kept + 2, dims)}});
}

static tensor *left_side(const batches *b, tensor *t) {
    int64_t dims[WIDEST + 2];
    memcpy(dims, b->dims[LEFT], (size_t)b->rank * sizeof *dims);
    dims[b->rank] = tensor_dim(t, -2), dims[b->rank + 1] = tensor_dim(t, -1);
    return side(b, LEFT, ordered(b, part_reshaped(b->x, t, b->rank + 2, dims), false));
}

static const struct product {
    const char *op_type;
    int right;            /* slot */
    unsigned each_column; /* bits of the slots that may count for each column of the right side */
} products[] = {
    /* sorted by names */
    {"FusedMatMul", 1, 0},
    {"FusedMatMulActivation", 1, 0},
    {"MatMul", 1, 0},
    {"MatMulInteger", 1, 1U << 3},
    {"MatMulInteger16", 1, 0},
    {"MatMulIntegerToFloat", 1, 1U << 3 | 1U << 5 | 1U << 6},
    {"QLinearMatMul", 3, 1U << 4 | 1U << 5},
    {"TransposeMatMul", 1, 0},
};

/* What lies otherwise cannot become rows, and what counts for each row alone has no place for more. */
static bool is_plain(const expansion *x, const struct product *of) {
    static const char *const turns[] = {"transA", "transBatchA", "transBatchB"};
    bool plain = true;
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) plain &= graph_attr_int(x->n, turns[k], 0) == 0;
    for (int k = 1; k < x->n->in_count; k++) {
        const tensor *const t = part_in(x, k);
        const bool columns = (of->each_column >> k & 1U) != 0 && tensor_rank(t) == 1;
        if (t && k != of->right) plain &= columns || tensor_count(t) == 1;
    }
    return plain;
}

void take_product(expansion *x) {
    const struct product *of = graph_row(products, sizeof products / sizeof *products, sizeof *products, x->n->op_type);
    tensor *const sides[SIDES] = {part_in(x, 0), part_in(x, of->right)}, *const out = part_out(x, 0);
    batches b = {.x = x};
    step product = {.domain = x->n->domain, .op_type = x->n->op_type};
    x->failed = x->failed || !read_batches(&b, sides) || tensor_count(out) == 0 ||
                !(is_partial(&b, LEFT, b.rank) || is_partial(&b, RIGHT, b.rank)) || !is_plain(x, of);
    if (x->failed) return;
    set_order(&b, sides[LEFT], sides[RIGHT]);
    part_like_node(x, &product);
    for (int k = 0; k < x->n->in_count && k < STEP_INPUTS; k++) product.in[k] = part_in(x, k);
    product.in[0] = left_side(&b, sides[LEFT]);
    product.in[of->right] = side(&b, RIGHT, sides[RIGHT]);
    if (b.kept == b.rank) {
        part_end(x, &product);
        return;
    }
    int64_t dims[WIDEST + 2];
    for (int k = 0; k < b.rank; k++) dims[k] = b.out[b.order[k]];
    dims[b.rank] = tensor_dim(out, -2), dims[b.rank + 1] = tensor_dim(out, -1);
    tensor *const made = part_reshaped(x, *part_make(x, &product), b.rank + 2, dims);
    ordered(&b, made, true);
    part_end_made(x);
}

void take_dynamic_product(expansion *x) {
    tensor *const *found =
        part_make(x, &(step){.op_type = "DynamicQuantizeLinear", .in = {part_in(x, 0)}, .outputs = 3});
    part_end(x,
             &(step){.domain = "com.microsoft",
                     .op_type = "MatMulIntegerToFloat",
                     .in = {found[0], part_in(x, 1), found[1], part_in(x, 2), found[2], part_in(x, 3), part_in(x, 4)}});
}

/* Of rows to rows: |a|^2 + |b|^2 - 2 a b, which rounding may bring below zero. */
void take_distances(expansion *x) {
    const char *const metric = graph_attr_string(x->n, "metric", "sqeuclidean");
    const bool root = strcmp(metric, "euclidean") == 0;
    tensor *squares[SIDES];
    if (!root && strcmp(metric, "sqeuclidean") != 0) x->failed = true;
    for (int k = 0; k < SIDES; k++)
        squares[k] = *part_make(x, &(step){.op_type = "ReduceSumSquare",
                                           .in = {part_in(x, k), part_number(x, "axes", 1)},
                                           .attrs = {int_attr("keepdims", k == LEFT)}});
    tensor *const product = *part_make(x, &(step){.domain = "com.microsoft",
                                                  .op_type = "FusedMatMul",
                                                  .in = {part_in(x, LEFT), part_in(x, RIGHT)},
                                                  .attrs = {int_attr("transB", 1), real_attr("alpha", -2)}});
    tensor *const sum = part_add(x, part_add(x, product, squares[LEFT]), squares[RIGHT]);
    const step least = {.op_type = "Max", .in = {sum, part_real(x, sum, "least", 0)}};
    part_end(x, root ? &(step){.op_type = "Sqrt", .in = {*part_make(x, &least)}} : &least);
}

/* Whole numbers of 16 bits, which no library multiplies: in floats that hold each product and sum of them. No cast
 * knows them, but what turns them into floats of 32 bits does. */
void take_short_product(expansion *x) {
    static const double one = 1;
    const tensor *const out = part_out(x, 0);
    tensor *wide[SIDES];
    for (int k = 0; k < SIDES; k++) {
        tensor *const scale =
            part_constant(x, "one", info_of_floats(x->e->m->arena, DTYPE_FP32, 0, info_no_dims, &one, 1));
        tensor *const made = *part_make(x, &(step){.op_type = "DequantizeLinear", .in = {part_in(x, k), scale}});
        wide[k] = part_cast(x, made, DTYPE_FP64);
        /* a constant becomes so once, and is read as it is then: no product has a weight of 16 bits */
        if (wide[k] && wide[k]->is_constant) wide[k] = part_do(x, "Mul", wide[k], part_real(x, wide[k], "same", 1));
    }
    tensor *const made = part_do(x, "MatMul", wide[LEFT], wide[RIGHT]);
    part_end(x, &(step){.op_type = "Cast", .in = {made}, .attrs = {int_attr("to", out->info->type)}});
}

/* Of floats of one type into another: what is not scaled is a product like any other. */
void take_turned_product(expansion *x) {
    enum { ADDED = 2, SCALES = 3 };
    const tensor *const left = part_in(x, LEFT), *const right = part_in(x, RIGHT), *const out = part_out(x, 0);
    static const char *const names[] = {"alpha", "beta", "transA", "transB"};
    step s = {.op_type = "Gemm", .in = {part_in(x, LEFT), part_in(x, RIGHT), part_in(x, ADDED)}};
    bool plain = left && right && left->info->type == right->info->type && out->info->type != left->info->type &&
                 (left->info->type == DTYPE_FP32 || left->info->type == DTYPE_FP16 || left->info->type == DTYPE_BF16) &&
                 strcmp(graph_attr_string(x->n, "activation", "NONE"), "NONE") == 0;
    for (int k = SCALES; k < x->n->in_count; k++) plain = plain && !part_in(x, k);
    int count = 0;
    for (int k = 0; k < x->n->attr_count; k++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (strcmp(x->n->attrs[k].name, names[j]) == 0 && count < (int)(sizeof s.attrs / sizeof *s.attrs))
                s.attrs[count++] = x->n->attrs[k];
    if (!plain) x->failed = true;
    if (x->failed) return;
    tensor *const made = *part_make(x, &s);
    part_end(x, &(step){.op_type = "Cast", .in = {made}, .attrs = {int_attr("to", out->info->type)}});
}
