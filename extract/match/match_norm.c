/* Norms spelled out. What stands between a row and its normalised form is tried out on numbers (match_eval.c), so that
 * powers and products, divisions and reciprocals, casts to a wider type and back all count the same; weight and bias
 * are then taken along the flow. */
#include "extract/match/match_patterns.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/match/match_eval.h"
#include "extract/ops/cost.h"

#include <math.h>
#include <string.h>

enum { NORM_MAX_ROWS = 8, NORM_MAX_DOWN = 5, NORM_MAX_UP = 10 };

static const double norm_lanes[EVAL_LANES] = {0.37, -1.21, 2.53, 0.94, -0.68, 1.75};

/* In the order in which they are tried: from its centred row on, a layer norm is an RMS norm too. */
typedef enum norm_form { NORM_LAYER, NORM_RMS, NORM_L2, NORM_FORMS } norm_form;

static const char *const norm_forms[NORM_FORMS] = {"layer", "rms", "l2"};

static void expected(norm_form form, int64_t cols, double *out) {
    double mean = 0, square = 0;
    for (int k = 0; k < EVAL_LANES && form == NORM_LAYER; k++) mean += norm_lanes[k] / EVAL_LANES;
    for (int k = 0; k < EVAL_LANES; k++) square += (norm_lanes[k] - mean) * (norm_lanes[k] - mean) / EVAL_LANES;
    if (form == NORM_L2) square *= (double)cols;
    for (int k = 0; k < EVAL_LANES; k++) out[k] = (norm_lanes[k] - mean) / sqrt(square);
}

/* Tensors above the root that may be the row: what is larger than the root's own one number per row. */
static int find_rows(node *root, tensor **rows) {
    int count = 0;
    tensor *t = flow_in(root, 0);
    int64_t reduced = flow_count(flow_out(root, 0));
    if (t && flow_count(t) > reduced) rows[count++] = t;
    for (int step = 0; step < NORM_MAX_UP && t && t->producer && eval_follows(t->producer, true); step++) {
        node *n = t->producer;
        tensor *next = NULL;
        for (int i = 0; i < n->in_count; i++) {
            if (n->in[i] && !flow_constant(n->in[i]) && (!next || flow_count(n->in[i]) > flow_count(next)))
                next = n->in[i];
        }
        t = next;
        if (!t || flow_count(t) <= reduced) continue;
        if (count < NORM_MAX_ROWS) rows[count++] = t;
    }
    return count;
}

/* The reduction takes whole rows: one number is left where a row was. */
static bool is_rows(const tensor *x, const tensor *root) {
    int rank = flow_rank(x), root_rank = flow_rank(root);
    if (rank < 1 || root_rank < 0 || root_rank > rank) return false;
    return flow_dim(x, -1) >= 1 && flow_count(x) > flow_count(root);
}

typedef struct norm_found {
    tensor *x, *y; /* the row, and the normalised one before weight and bias */
    norm_form form;
    int64_t cols;
    uint32_t axes; /* as in eval_cone */
    flow_set set;
} norm_found;

static bool try_pair(match *m, tensor *x, tensor *y, norm_form form, norm_found *f) {
    double got[EVAL_LANES], want[EVAL_LANES];
    eval_cone c = {.m = m, .x = x, .lanes = norm_lanes, .rows = true, .steps = EVAL_MAX_STEPS, .set = &f->set};
    memset(&f->set, 0, sizeof f->set);
    if (!flow_same_shape(x, y) || !eval_lanes(&c, y, 0, got) || c.cols < 1) return false;
    expected(form, c.cols, want);
    if (f->set.full || !eval_near(got, want, 0.01)) return false;
    f->x = x;
    f->y = y;
    f->form = form;
    f->cols = c.cols;
    f->axes = c.axes;
    return true;
}

/* Each form is tried for all rows before the next one is. What is no more than an L2 norm may become an RMS norm by a
 * factor that follows. */
static bool find_core(match *m, node *root, norm_found *f) {
    tensor *rows[NORM_MAX_ROWS], *y = flow_out(root, 0);
    int count = find_rows(root, rows);
    norm_found tried;
    bool found = false;
    for (int down = 0; count > 0 && down < NORM_MAX_DOWN; down++) {
        node *n = flow_user(y);
        if (!n || !eval_follows(n, false)) return found;
        y = flow_out(n, 0);
        if (flow_count(y) == flow_count(root->out[0]) && flow_count(rows[0]) != flow_count(y)) continue;
        for (int k = 0; k < (found ? NORM_L2 : NORM_FORMS) * count; k++) {
            tensor *x = rows[k % count];
            if (!is_rows(x, root->out[0]) || !try_pair(m, x, y, (norm_form)(k / count), &tried)) continue;
            *f = tried;
            found = true;
            if (f->form != NORM_L2) return true;
            break;
        }
    }
    return found;
}

static bool is_reduced(const norm_found *f, int from_end) { return f->axes >> (from_end - 1) & 1u; }

/* One factor or addend per element of a row, along the dimensions that the rows lie along. */
static bool is_vector(const norm_found *f, const tensor *t, const tensor *y) {
    if (!t || flow_count(t) != f->cols || !(f->cols < flow_count(y) || flow_constant(t))) return false;
    for (int k = 1; k <= flow_rank(t); k++) {
        if (flow_dim(t, -k) != 1 && !(k <= flow_rank(y) && is_reduced(f, k))) return false;
    }
    return true;
}

/* The rows lie together: nothing but reduced dimensions stands behind the first one. */
static bool is_last(const norm_found *f) {
    bool last = true;
    for (int k = 1; k <= flow_rank(f->x); k++) {
        if (!last && is_reduced(f, k)) return false;
        last = last && (is_reduced(f, k) || flow_dim(f->x, -k) == 1);
    }
    return true;
}

/* Takes Casts, then n of the given operator with a vector beside y, into the set; the vector, or NULL and no change. */
static tensor *take_vector(norm_found *f, const char *op_type, node **last) {
    node *passed[4], *n = flow_user(f->y);
    tensor *t = f->y;
    int count = 0;
    while (n && flow_renames(n) && count < 4) {
        passed[count++] = n;
        t = flow_out(n, 0);
        n = flow_user(t);
    }
    if (!n || !graph_is(n, op_type) || n->in_count != 2 || !flow_same_shape(t, flow_out(n, 0))) return NULL;
    tensor *other = n->in[0] == t ? n->in[1] : n->in[0];
    if (other == t || !is_vector(f, other, t)) return NULL;
    for (int k = 0; k < count; k++) flow_add(&f->set, passed[k]);
    flow_add(&f->set, n);
    f->y = n->out[0];
    *last = n;
    return other;
}

/* A Cast that only widens the row for this norm is part of it; so is the one that narrows the result. */
static void take_casts(norm_found *f, node **last) {
    while (flow_in(f->x->producer, 0) && graph_is(f->x->producer, "Cast") && flow_closed(&f->set, f->x)) {
        flow_add(&f->set, f->x->producer);
        f->x = f->x->producer->in[0];
    }
    node *n = flow_user(f->y);
    if (graph_is(n, "Cast") && flow_out(n, 0) && f->y->info->type != f->x->info->type &&
        n->out[0]->info->type == f->x->info->type) {
        flow_add(&f->set, n);
        *last = n;
        f->y = n->out[0];
    }
}

/* Which dimensions of what tensor the rows are. */
static void set_axes(work *w, const norm_found *f) {
    int64_t axes[INFO_MAX_RANK];
    int count = 0, rank = flow_rank(f->x);
    for (int k = 0; k < rank; k++) {
        if (is_reduced(f, rank - k)) axes[count++] = k;
    }
    oprec_set_ints(&w->rec, w->arena, "input", rank, f->x->info->dims);
    oprec_set_ints(&w->rec, w->arena, "axes", count, axes);
}

static void fill_norm(work *w, const norm_found *f, tensor *weight, tensor *bias) {
    int64_t rows = f->cols > 0 ? flow_count(f->x) / f->cols : 0;
    memset(&w->rec, 0, sizeof w->rec);
    cost_set_rows(w, OP_NORM, norm_forms[f->form], rows, f->cols, opcost_per_element(OP_NORM, norm_forms[f->form]));
    if (bias) oprec_set_int(&w->rec, "bias", 1);
    if (!is_last(f)) set_axes(w, f);
    cost_weight found;
    if (weight && cost_trace(w, weight, &found)) {
        w->weight = found.root;
        w->rec.weight_type = found.type;
    }
    cost_set_types(w, f->x, f->y);
    cost_boundary(w);
    work_tell(w, "x", f->x);
    work_tell_made(w, "y", f->y);
    if (weight) work_tell(w, "scale", weight);
    if (bias) work_tell(w, "bias", bias);
}

/* What is added below the root, and nowhere else; a length takes none. */
static void tell_epsilon(match *m, work *w, const norm_found *f, const node *root) {
    const node *sum = flow_producer(root->in[0]);
    double epsilon = 0, other;
    int sums = 0;
    for (int k = 0; k < f->set.count; k++) {
        const node *n = f->set.nodes[k];
        const bool adds =
            graph_is(n, "Add") && (flow_scalar(m, flow_in(n, 0), &other) || flow_scalar(m, flow_in(n, 1), &other));
        sums += adds || graph_is(n, "Max") || graph_is(n, "Clip");
        if (adds && n == sum) epsilon = cost_real(other);
    }
    if (sums != (epsilon != 0))
        work_tell_unknown(w, "epsilon");
    else if (epsilon != (f->form == NORM_L2 ? 0 : 1e-5))
        work_tell_number(w, "epsilon", epsilon);
}

bool match_norm_root(match *m, node *root) {
    norm_found f;
    double exponent;
    if (graph_is(root, "Pow") && (!flow_scalar(m, flow_in(root, 1), &exponent) || exponent != -0.5)) return false;
    if (graph_is(root, "ReduceL2") && flow_count(flow_in(root, 0)) <= flow_count(flow_out(root, 0))) return false;
    if (!flow_in(root, 0) || !flow_out(root, 0) || !flow_free(m, root) || !find_core(m, root, &f)) return false;
    node *last = f.y->producer;
    tensor *weight = take_vector(&f, "Mul", &last);
    tensor *bias = take_vector(&f, "Add", &last);
    take_casts(&f, &last);
    work *w = flow_join(m, &f.set, last);
    if (!w) return false;
    fill_norm(w, &f, weight, bias);
    tell_epsilon(m, w, &f, root);
    return true;
}
