/* Products that read the same rows (queries, keys and values; gate and up) as one: of equal widths as a batch that
 * shares its rows, so that each one's weight, bias and result is whole and lies behind the one before; else as one
 * wider product, with their weights side by side in its weight and their results in its result. */
#include "scout/fusion/fusion_internal.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/op/gemm.h"

#include <string.h>

/* How the parts lie in the whole. */
typedef struct wide {
    int products;
    bool biased; /* each is followed by the addition of its bias */
    bool batch;  /* else they lie side by side */
    int64_t width;
} wide;

/* Equal but for the width. */
static bool alike(fusion_maker *m, int part) {
    oprec one = m->f->ops[part]->rec, first = m->f->ops[0]->rec;
    int64_t shape[3], shape_0[3];
    if (m->ops[part].kind != SCOUT_GEMM)
        return fusion_refuse(m, "feature", "one of its operations is not a product of these rows");
    memcpy(shape, one.shape, sizeof shape);
    memcpy(shape_0, first.shape, sizeof shape_0);
    shape[1] = shape_0[1] = 1;
    one.shape = shape, first.shape = shape_0;
    if (strcmp(oprec_key(&one, m->a), oprec_key(&first, m->a)) != 0)
        return fusion_refuse(m, "layout", "its products differ in more than their width");
    const gemm_problem p = gemm_problem_of(&m->ops[part]);
    if (p.batch != 1 || p.weight != GEMM_B || (p.bias && strcmp(p.bias, "n") != 0) ||
        op_number(&m->ops[part], "residual", 0) != 0)
        return fusion_refuse(m, "feature", "only plain products with a weight on the right side can lie side by side");
    if ((p.type_b == SCOUT_INT4 || p.type_b == SCOUT_UINT4) && p.n % 2 != 0)
        return fusion_refuse(m, "layout", "its products' weights would begin within a byte");
    return true;
}

/* Part k's slices begin behind `before` columns; result: where its own goes, NULL: into the wide one. */
static void put_product(fusion_maker *m, const wide *w, int part, int64_t before, const char *result) {
    const gemm_problem p = gemm_problem_of(&m->ops[part]);
    static const char *const of_blocks[] = {"scales", "b_zero"};
    const int bias = op_tensor(&m->ops[part], "bias");
    if (w->batch || p.trans_b) /* all of it, or [N,K]: whole rows */
        fusion_put(m, part, GEMM_B, "b", checked_mul(before, p.k), 0);
    else
        fusion_put(m, part, GEMM_B, "b", before, w->width);
    if (bias >= 0) fusion_put(m, part, bias, "bias", before, 0);
    for (int k = 0; k < 2 && p.block_size > 0; k++) {
        const int tensor = op_tensor(&m->ops[part], of_blocks[k]);
        if (tensor >= 0) fusion_put(m, part, tensor, of_blocks[k], checked_mul(before, p.k / p.block_size), 0);
    }
    if (result)
        fusion_put(m, part, GEMM_C, result, 0, 0);
    else if (w->batch)
        fusion_put(m, part, GEMM_C, "c", checked_mul(before, p.m), 0);
    else
        fusion_put(m, part, GEMM_C, "c", before, p.m > 1 ? w->width : 0);
    fusion_put_rest(m, part);
}

/* The bias of product k, added by an operation of its own. */
static bool put_bias(fusion_maker *m, const wide *w, int product, int64_t before) {
    const int part = w->products + product;
    const scout_op *op = &m->ops[part], *from = &m->ops[product];
    if (op->kind != SCOUT_ELEMENTWISE || !op_is(op, "add") || op->tensor_count != 3 ||
        op_elements(&op->tensors[1]) != from->shape[1] || op->output != from->output || op->input != from->output)
        return fusion_refuse(m, "epilogue", "a product is followed by something other than its bias");
    fusion_put(m, part, 0, fusion_between(m, product), 0, 0);
    fusion_put(m, part, 1, "bias", before, 0);
    fusion_put(m, part, 2, "c", w->batch ? checked_mul(before, from->shape[0]) : before, 0);
    return true;
}

/* Whether every slice begins where candidates expect a tensor to begin. */
static bool is_aligned(const fusion_maker *m, int products) {
    for (int k = 0; k < products; k++)
        for (int t = 0; t < m->f->parts[k].place_count; t++) {
            const fusion_place *p = &m->f->parts[k].places[t];
            if (dtype_bytes((dtype)m->ops[k].tensors[t].type, p->offset) % FUSION_ALIGNMENT != 0) return false;
        }
    return true;
}

static bool has_any(const oprec *rec, const char *const *fields) {
    for (; *fields; fields++)
        if (oprec_field(rec, *fields)) return true;
    return false;
}

/* Numbers that are quantised have scales of their own, which no batch has; a bias of each and an activation have hardly
 * a candidate. What means nothing of a single product would say something of a batch. */
static bool is_batch(const fusion_maker *m, const wide *w) {
    static const char *const of_batches[] = {"batch_inside", "batch_stride_a", "batch_stride_b",
                                             "batch_a",      "batch_b",        NULL};
    const gemm_problem p = gemm_problem_of(&m->ops[0]);
    const bool narrow = p.type_c == SCOUT_FP32 || p.type_c == SCOUT_FP16 || p.type_c == SCOUT_BF16;
    for (int k = 1; k < w->products; k++)
        if (m->ops[k].shape[1] != m->ops[0].shape[1]) return false;
    if (has_any(&m->f->ops[0]->rec, of_batches)) return false; /* and so in all: they are alike */
    if ((p.bias || w->biased) && (!narrow || p.activation.function != ACTIVATION_PLAIN)) return false;
    return p.block_size == 0 && !p.quant.is && !gemm_has_zeros(&p);
}

static void tell(const fusion_maker *m, const wide *w, bool bias) {
    oprec *to = &m->f->fused.rec;
    int64_t *shape = arena_array(m->a, int64_t, 3);
    memcpy(shape, m->f->ops[0]->rec.shape, 3 * sizeof *shape);
    to->shape = shape;
    if (w->batch)
        oprec_set_int(to, "batch", w->products), oprec_set_int(to, "batch_stride_a", 0);
    else
        shape[1] = w->width;
    if (bias) oprec_set_text(to, "bias", w->batch ? "each" : "n");
}

/* Passes write densely: a bias that is added into a slice of several rows cannot be told them. Each part is measured by
 * itself then, and where slices would not be aligned. */
bool fusion_wide(fusion_maker *m) {
    oprec *to = &m->f->fused.rec;
    wide w = {0};
    *to = m->f->ops[0]->rec;
    while (w.products < m->f->op_count && m->ops[w.products].kind == SCOUT_GEMM) w.products++;
    w.biased = w.products < m->f->op_count;
    if (w.products < 2 || (w.biased && m->f->op_count != 2 * w.products))
        return fusion_refuse(m, "feature", "it is not a row of products, each with a bias or none");
    for (int k = 0; k < w.products; k++) {
        if (!alike(m, k)) return false;
        w.width = checked_add(w.width, m->ops[k].shape[1]);
    }
    if (w.biased && oprec_field(to, "bias")) return fusion_refuse(m, "epilogue", "a second bias is not covered");
    w.batch = is_batch(m, &w);
    int64_t before = 0;
    for (int k = 0; k < w.products; k++) {
        put_product(m, &w, k, before, w.biased ? fusion_between(m, k) : NULL);
        if (w.biased && !put_bias(m, &w, k, before)) return false;
        before += m->ops[k].shape[1];
    }
    tell(m, &w, w.biased || oprec_field(to, "bias"));
    if ((w.biased && !w.batch && to->shape[0] > 1) || !is_aligned(m, m->f->op_count)) m->f->how = FUSION_SUM;
    fusion_costs(m, w.biased ? ((1U << w.products) - 1) << w.products : (1U << w.products) - 1);
    return true;
}
