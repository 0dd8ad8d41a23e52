/* Owns einsum: an equation of two operands is a matrix product whose letters fall into batch, M, N and K. Where the
 * letters stand in the plain order of a product the record is a plain one; else it says the equation. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <inttypes.h>
#include <string.h>

enum { EINSUM_LETTERS = 64, EINSUM_OPERANDS = 8, EINSUM_NAMED = 52 };

/* Letters as small numbers: a-z, A-Z, then the dimensions of an ellipsis counted from the right. */
typedef struct einsum_term {
    int letters[INFO_MAX_RANK];
    int rank;
} einsum_term;

typedef struct einsum {
    einsum_term in[EINSUM_OPERANDS], out;
    int count;
    int64_t size[EINSUM_LETTERS + INFO_MAX_RANK];
    bool good;
} einsum;

static int letter_of(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* One operand's letters; `rank` tells how many dimensions an ellipsis stands for. */
static bool read_term(const char *text, const char *end, int rank, einsum_term *term) {
    int named = 0;
    for (const char *c = text; c < end; c++) named += letter_of(*c) >= 0;
    term->rank = 0;
    for (const char *c = text; c < end; c++) {
        if (*c == '.') {
            if (c + 2 >= end || c[1] != '.' || c[2] != '.') return false;
            for (int k = rank - named; k > 0 && term->rank < INFO_MAX_RANK; k--)
                term->letters[term->rank++] = EINSUM_NAMED + k - 1;
            c += 2;
        } else if (letter_of(*c) >= 0) {
            if (term->rank == INFO_MAX_RANK) return false;
            term->letters[term->rank++] = letter_of(*c);
        } else if (*c != ' ') {
            return false;
        }
    }
    return term->rank == rank;
}

static void read_equation(const work *w, einsum *e) {
    const char *text = graph_attr_string(w->node, "equation", ""), *arrow = strstr(text, "->");
    const tensor *out = cost_out(w, 0);
    e->count = w->node->in_count;
    e->good = arrow && e->count >= 1 && e->count <= EINSUM_OPERANDS && cost_shaped(out);
    for (int k = 0; k < e->count && e->good; k++) {
        const tensor *t = cost_in(w, k);
        const char *end = text + strcspn(text, ",-");
        e->good = cost_shaped(t) && end <= arrow && read_term(text, end, cost_rank(t), &e->in[k]);
        for (int i = 0; e->good && i < e->in[k].rank; i++) {
            int64_t *size = &e->size[e->in[k].letters[i]];
            if (*size < 2) *size = t->info->dims[i];
        }
        text = end + (*end == ',');
    }
    if (e->good) e->good = read_term(arrow + 2, arrow + strlen(arrow), cost_rank(out), &e->out);
}

static bool has(const einsum_term *t, int letter) {
    for (int k = 0; k < t->rank; k++) {
        if (t->letters[k] == letter) return true;
    }
    return false;
}

/* An equation alone does not say how long its letters are. */
static void set_equation(work *w) {
    const char *dims = "";
    for (int k = 0; k < w->node->in_count && k < EINSUM_OPERANDS; k++) {
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

static einsum_roles find_roles(const einsum *e) {
    einsum_roles r = {1, 1, 1, 1, true};
    for (int letter = 0; letter < EINSUM_LETTERS + INFO_MAX_RANK; letter++) {
        const bool a = has(&e->in[0], letter), b = has(&e->in[1], letter), out = has(&e->out, letter);
        int64_t *role = a && b ? (out ? &r.batch : &r.k) : a && out ? &r.m : b && out ? &r.n : NULL;
        if (role)
            *role = checked_mul(*role, e->size[letter]);
        else if (a || b)
            r.plain = false;
    }
    return r;
}

/* Which role a letter plays, as its place in the order of a plain product's left operand, right operand and output. */
static int role_of(const einsum *e, int letter) {
    const bool a = has(&e->in[0], letter), b = has(&e->in[1], letter), out = has(&e->out, letter);
    return a && b ? (out ? 0 : 3) : a ? 1 : 2;
}

/* Do the roles of a term come in this order, and the letters of each role in the same order as in the output? */
static bool in_order(const einsum *e, const einsum_term *t, const char *order) {
    const char *at = order;
    for (int k = 0; k < t->rank; k++) {
        const char *place = strchr(at, '0' + role_of(e, t->letters[k]));
        if (!place) return false;
        at = place;
    }
    return true;
}

static const char *plain_layout(const einsum *e) {
    if (!in_order(e, &e->out, "012")) return NULL;
    const bool an = in_order(e, &e->in[0], "013"), at = in_order(e, &e->in[0], "031");
    const bool bn = in_order(e, &e->in[1], "032"), bt = in_order(e, &e->in[1], "023");
    if ((!an && !at) || (!bn && !bt)) return NULL;
    return an ? (bn ? "nn" : "nt") : (bn ? "tn" : "tt");
}

/* As the weight lies in the file. */
static const char *turned(const char *layout, int side) {
    const bool a = (layout[0] == 't') != (side == 0), b = (layout[1] == 't') != (side == 1);
    return a ? (b ? "tt" : "tn") : (b ? "nt" : "nn");
}

static void set_product(work *w, const einsum *e) {
    const einsum_roles r = find_roles(e);
    const int64_t shape[3] = {r.m, r.n, r.k};
    w->rec.kind = OP_GEMM;
    w->rec.layout = r.plain ? plain_layout(e) : NULL;
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
static void set_other(work *w, const einsum *e) {
    const tensor *out = cost_out(w, 0);
    int64_t all = 1;
    for (int letter = 0; letter < EINSUM_LETTERS + INFO_MAX_RANK; letter++) {
        bool used = false;
        for (int k = 0; k < e->count; k++) used = used || has(&e->in[k], letter);
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
    einsum e = {.count = 0};
    w->rec.kind = OP_GEMM;
    w->rec.what = "einsum";
    cost_set_types(w, cost_in(w, 0), cost_out(w, 0));
    cost_boundary(w);
    read_equation(w, &e);
    if (!e.good) {
        set_equation(w);
        return;
    }
    w->rec.what = NULL;
    const einsum_roles roles = e.count == 2 ? find_roles(&e) : (einsum_roles){1, 1, 1, 1, false};
    bool contracts = false;
    for (int k = 0; e.count == 2 && k < e.in[0].rank; k++)
        contracts = contracts || role_of(&e, e.in[0].letters[k]) == 3;
    if (contracts && roles.plain)
        set_product(w, &e);
    else
        set_other(w, &e);
}
