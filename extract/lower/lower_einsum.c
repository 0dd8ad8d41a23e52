/* Owns einsums that are not taken apart: an equation of two operands is a matrix product whose letters fall into batch,
 * M, N and K. Where the letters stand in the plain order of a product the record is a plain one; else it says the
 * equation. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/graph/equation.h"
#include "extract/ops/cost.h"

#include <inttypes.h>
#include <string.h>

/* An equation alone does not say how long its letters are. */
static void set_equation(work *w) {
    const char *dims = "";
    for (int k = 0; k < w->node->in_count && k < EQUATION_OPERANDS; k++) {
        const tensor *t = cost_in(w, k);
        if (k > 0) dims = arena_printf(w->arena, "%s,", dims);
        for (int i = 0; i < cost_rank(t); i++)
            dims = arena_printf(w->arena, "%s%s%" PRId64, dims, i ? "x" : "", t->info->dims[i]);
    }
    oprec_set_text(&w->rec, "operands", dims);
    oprec_set_text(&w->rec, "equation", cost_text(w, graph_attr_string(w->node, "equation", ""), false));
}

typedef struct einsum_roles {
    int64_t batch, m, n, k;
    bool plain; /* no letter summed in one operand alone */
} einsum_roles;

static einsum_roles find_roles(const equation *e) {
    einsum_roles r = {1, 1, 1, 1, true};
    for (int letter = 0; letter < EQUATION_LETTERS; letter++) {
        const bool a = equation_has(&e->in[0], letter), b = equation_has(&e->in[1], letter),
                   out = equation_has(&e->out, letter);
        int64_t *role = a && b ? (out ? &r.batch : &r.k) : a && out ? &r.m : b && out ? &r.n : NULL;
        if (role)
            *role = checked_mul(*role, e->size[letter]);
        else if (a || b)
            r.plain = false;
    }
    return r;
}

/* As the weight lies in the file. */
static const char *turned(const char *layout, int side) {
    const bool a = (layout[0] == 't') != (side == 0), b = (layout[1] == 't') != (side == 1);
    return a ? (b ? "tt" : "tn") : (b ? "nt" : "nn");
}

static void set_product(work *w, const equation *e) {
    const einsum_roles r = find_roles(e);
    const int64_t shape[3] = {r.m, r.n, r.k};
    w->rec.kind = OP_GEMM;
    w->rec.layout = r.plain ? equation_layout(e) : NULL;
    if (!w->rec.layout) {
        w->rec.what = "einsum";
        set_equation(w);
    }
    oprec_set_shape(&w->rec, w->arena, 3, shape);
    if (r.batch != 1) oprec_set_int(&w->rec, "batch", r.batch);
    opcost_macs(&w->rec, checked_mul(checked_mul(r.batch, r.m), checked_mul(r.n, r.k)));
    for (int side = 1; side >= 0; side--) {
        cost_weight found;
        if (w->weight || !cost_trace(w, w->node->in[side], &found)) continue;
        w->weight = found.root;
        w->rec.weight_type = found.type;
        if (w->rec.layout && found.transposed && !found.rearranged) w->rec.layout = turned(w->rec.layout, side);
        oprec_set_text(&w->rec, "weight_side", side ? "b" : "a");
    }
}

/* No letter is summed, or there is one operand, or more than two. */
static void set_other(work *w, const equation *e) {
    const tensor *out = cost_out(w, 0);
    int64_t all = 1;
    for (int letter = 0; letter < EQUATION_LETTERS; letter++) {
        bool used = false;
        for (int k = 0; k < e->count; k++) used = used || equation_has(&e->in[k], letter);
        if (used) all = checked_mul(all, e->size[letter]);
    }
    const int64_t made = info_count(out->info);
    const bool sums = all != made;
    w->rec.kind = e->count == 1 ? (sums ? OP_REDUCE : OP_MOVE) : sums ? OP_GEMM : OP_ELEMENTWISE;
    w->rec.what = "einsum";
    set_equation(w);
    cost_set_shape(w, out);
    if (w->rec.kind == OP_GEMM) {
        const int64_t shape[3] = {made, 1, made > 0 ? all / made : 0};
        oprec_set_shape(&w->rec, w->arena, 3, shape);
        w->rec.macs = checked_mul(all, e->count - 1);
    }
    w->rec.flops = w->rec.kind == OP_GEMM ? checked_mul(2, w->rec.macs) : w->rec.kind == OP_MOVE ? 0 : all;
}

void lower_einsum(work *w) {
    equation e;
    w->rec.kind = OP_GEMM;
    w->rec.what = "einsum";
    cost_set_types(w, cost_in(w, 0), cost_out(w, 0));
    cost_boundary(w);
    if (!equation_read(w->node, &e)) {
        set_equation(w);
        return;
    }
    w->rec.what = NULL;
    const einsum_roles roles = e.count == 2 ? find_roles(&e) : (einsum_roles){1, 1, 1, 1, false};
    bool contracts = false;
    for (int k = 0; e.count == 2 && k < e.in[0].rank; k++)
        contracts = contracts || equation_role_of(&e, e.in[0].letters[k]) == EQUATION_K;
    if (contracts && roles.plain)
        set_product(w, &e);
    else
        set_other(w, &e);
}
