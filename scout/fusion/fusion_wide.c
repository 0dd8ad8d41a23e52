/* Products that read the same rows (queries, keys and values; gate and up) as one wider product: their weights lie side
 * by side in its weight, their results in its result. */
#include "scout/fusion/fusion_internal.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/op/gemm.h"

#include <string.h>

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
    return true;
}

/* Part k's slices begin behind `before` columns; result: where its own goes, NULL: into the wide one. */
static void put_product(fusion_maker *m, int part, int64_t before, int64_t width, const char *result) {
    const gemm_problem p = gemm_problem_of(&m->ops[part]);
    const int bias = op_tensor(&m->ops[part], "bias"), scales = op_tensor(&m->ops[part], "scales");
    if (p.trans_b) /* [N,K]: whole rows */
        fusion_put(m, part, GEMM_B, "b", checked_mul(before, p.k), 0);
    else
        fusion_put(m, part, GEMM_B, "b", before, width);
    if (bias >= 0) fusion_put(m, part, bias, "bias", before, 0);
    if (scales >= 0 && p.block_size > 0)
        fusion_put(m, part, scales, "scales", checked_mul(before, p.k / p.block_size), 0);
    if (result)
        fusion_put(m, part, GEMM_C, result, 0, 0);
    else
        fusion_put(m, part, GEMM_C, "c", before, p.m > 1 ? width : 0);
    fusion_put_rest(m, part);
}

/* The bias of product k, added by an operation of its own. */
static bool put_bias(fusion_maker *m, int part, int product, int64_t before) {
    const scout_op *op = &m->ops[part], *from = &m->ops[product];
    if (op->kind != SCOUT_ELEMENTWISE || !op_is(op, "add") || op->tensor_count != 3 ||
        op_elements(&op->tensors[1]) != from->shape[1] || op->output != from->output || op->input != from->output)
        return fusion_refuse(m, "epilogue", "a product is followed by something other than its bias");
    fusion_put(m, part, 0, fusion_between(m, product), 0, 0);
    fusion_put(m, part, 1, "bias", before, 0);
    fusion_put(m, part, 2, "c", before, 0);
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

/* Passes write densely: a bias that is added into a slice of several rows cannot be told them. Each part is measured by
 * itself then, and where slices would not be aligned. */
bool fusion_wide(fusion_maker *m) {
    oprec *to = &m->f->fused.rec;
    int64_t *shape = arena_array(m->a, int64_t, 3), before = 0;
    int products = 0;
    *to = m->f->ops[0]->rec;
    while (products < m->f->op_count && m->ops[products].kind == SCOUT_GEMM) products++;
    const bool biased = products < m->f->op_count;
    if (products < 2 || (biased && m->f->op_count != 2 * products))
        return fusion_refuse(m, "feature", "it is not a row of products, each with a bias or none");
    for (int k = 0; k < products; k++) {
        if (!alike(m, k)) return false;
        before = checked_add(before, m->ops[k].shape[1]);
    }
    const int64_t width = before;
    memcpy(shape, to->shape, 3 * sizeof *shape);
    shape[1] = width;
    to->shape = shape;
    before = 0;
    for (int k = 0; k < products; k++) {
        put_product(m, k, before, width, biased ? fusion_between(m, k) : NULL);
        if (biased && !put_bias(m, products + k, k, before)) return false;
        before += m->ops[k].shape[1];
    }
    if (biased && oprec_field(to, "bias")) return fusion_refuse(m, "epilogue", "a second bias is not covered");
    if (biased) oprec_set_text(to, "bias", "n");
    if ((biased && to->shape[0] > 1) || !is_aligned(m, products)) m->f->how = FUSION_SUM;
    fusion_costs(m, biased ? ((1U << products) - 1) << products : (1U << products) - 1);
    return true;
}
