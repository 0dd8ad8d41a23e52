/* The whole output of an attention in fp64: sixteen queries that share keys and values at a time, so that a loaded key
 * serves all of them and compilers vectorise the loops. */
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, ROWS = 256 };

/* About a minute and a half on a core; beyond it a check would cost more than the measurement. */
static const double most_flops = 1e12;

/* s[lane] = sum over d of k[d] * q[d][lane] */
FAST_BODY void dots_body(const double *k, const double *q, int64_t dim, double *s) {
    double sum[LANES] = {0};
    for (int64_t d = 0; d < dim; d++)
        for (int lane = 0; lane < LANES; lane++) sum[lane] += k[d] * q[d * LANES + lane];
    memcpy(s, sum, sizeof sum);
}

/* o[d][lane] += p[lane] * v[d], and the squares of that beside it */
FAST_BODY void adds_body(const double *p, const double *v, int64_t dim, double *o) {
    for (int64_t d = 0; d < dim; d++)
        for (int lane = 0; lane < LANES; lane++) {
            const double term = p[lane] * v[d];
            o[2 * d * LANES + lane] += term;
            o[(2 * d + 1) * LANES + lane] += term * term;
        }
}

typedef void dots_kernel(const double *k, const double *q, int64_t dim, double *s);
typedef void adds_kernel(const double *p, const double *v, int64_t dim, double *o);
FAST_WIDTHS(dots, (const double *k, const double *q, int64_t dim, double *s), (k, q, dim, s))
FAST_WIDTHS(adds, (const double *p, const double *v, int64_t dim, double *o), (p, v, dim, o))

typedef struct state {
    attention_problem p;
    block_mask blocks;
    dots_kernel *dots;
    adds_kernel *adds;
} state;

typedef struct row {
    int64_t batch, head, query, first, end; /* the keys that it sees */
    int64_t at;                             /* among the rows that were asked for */
    bool done;
} row;

static scout_answer open_whole(const scout_op *op, void **out, scout_why *why) {
    const cpu_info *c = cpu_info_get();
    if (op->flops > most_flops)
        return scout_say(why, SCOUT_NO, "shape", "checking an attention of %.3g TFLOP in fp64 takes too long",
                         op->flops / 1e12);
    state *s = calloc(1, sizeof *s);
    *out = s;
    if (!s) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
    s->p = attention_problem_of(op);
    s->blocks = attention_blocks(&s->p);
    s->dots = FAST_WIDEST(dots, c);
    s->adds = FAST_WIDEST(adds, c);
    return SCOUT_OK;
}

static int64_t grain(const void *context, const scout_op *op, uint32_t output) {
    (void)op, (void)output;
    return ((const state *)context)->p.v_dim;
}

static size_t scratch_doubles(const void *context, const scout_op *op) {
    const attention_problem *p = &((const state *)context)->p;
    (void)op;
    return (size_t)(LANES * (p->dim + p->keys + 2 * p->v_dim) + p->dim + p->v_dim);
}

/* Output rows in the order of storage: the step of each dimension is as many rows, which leave no gaps. */
static row row_at(const attention_problem *p, void *const *tensors, int64_t number) {
    const scout_tensor *out = &p->tensors[ATTENTION_OUT];
    int64_t place[3];
    for (int d = 0; d < 3; d++) place[d] = number / (out->strides[d] / p->v_dim) % out->dims[d];
    row r = {.batch = place[0], .head = place[1], .query = place[2]};
    int64_t last = p->keys - 1;
    if (p->lengths >= 0) last = ((const int32_t *)tensors[p->lengths])[r.batch];
    attention_visible(p, r.query, last, &r.first, &r.end);
    return r;
}

static void load_queries(const state *s, void *const *tensors, row *const *rows, int count, double *q, double *room) {
    const attention_problem *p = &s->p;
    memset(q, 0, (size_t)(LANES * p->dim) * sizeof *q);
    for (int lane = 0; lane < count; lane++) {
        const row *r = rows[lane];
        cpu_number_load(p->type, tensors[ATTENTION_Q],
                        attention_at(&p->tensors[ATTENTION_Q], r->batch, r->head, r->query), 1, p->dim, room);
        for (int64_t d = 0; d < p->dim; d++) q[d * LANES + lane] = room[d] * p->scale;
    }
}

static double mask_of(const state *s, void *const *tensors, const row *r, int64_t key) {
    const attention_problem *p = &s->p;
    double x = 0;
    if (p->mask < 0) return 0;
    const scout_tensor *t = &p->tensors[p->mask];
    cpu_number_load(t->type, tensors[p->mask], attention_at(t, r->batch, r->head, r->query) + key * t->strides[3], 1, 1,
                    &x);
    return x;
}

/* Scores of all keys become probabilities; those that are not seen get 0. */
static void weigh(const state *s, void *const *tensors, const row *r, int lane, double *scores) {
    const double cap = s->p.softcap;
    const int64_t block = s->blocks.block;
    double most = -INFINITY, sum = 0;
    bool seen = true;
    for (int64_t key = r->first; key < r->end; key++) {
        double *x = &scores[key * LANES + lane];
        if (block > 0 && (key == r->first || key % block == 0))
            seen = block_mask_sees(&s->blocks, r->query / block, key / block);
        if (!seen) {
            *x = -INFINITY;
            continue;
        }
        if (cap > 0) *x = cap * tanh(*x / cap);
        *x += mask_of(s, tensors, r, key);
        most = fmax(most, *x);
    }
    for (int64_t key = 0; key < s->p.keys; key++) {
        double *x = &scores[key * LANES + lane];
        *x = key >= r->first && key < r->end ? exp(*x - most) : 0;
        sum += *x;
    }
    for (int64_t key = r->first; key < r->end; key++) scores[key * LANES + lane] /= sum;
}

/* The end of the keys from `key` on that are of its block; *seen: whether any of the rows sees that. */
static int64_t end_of_block(const state *s, row *const *rows, int count, int64_t key, bool *seen) {
    const int64_t block = s->blocks.block, end = block > 0 ? (key / block + 1) * block : s->p.keys;
    int64_t before = -1;
    *seen = block == 0;
    for (int lane = 0; lane < count && !*seen; lane++) {
        if (rows[lane]->query / block == before) continue;
        before = rows[lane]->query / block;
        *seen = block_mask_sees(&s->blocks, before, key / block);
    }
    return end < s->p.keys ? end : s->p.keys;
}

/* Up to LANES rows of one sequence that share keys and values. */
static void compute_rows(const state *s, void *const *tensors, row *const *rows, int count, double *want,
                         double *spread, double *room) {
    const attention_problem *p = &s->p;
    const scout_tensor *k = &p->tensors[ATTENTION_K], *v = &p->tensors[ATTENTION_V];
    double *q = room, *scores = q + LANES * p->dim, *o = scores + LANES * p->keys, *line = o + 2 * LANES * p->v_dim;
    const int64_t batch = rows[0]->batch, head = rows[0]->head / p->group;
    load_queries(s, tensors, rows, count, q, line);
    bool seen;
    for (int64_t from = 0, end; from < p->keys; from = end) {
        end = end_of_block(s, rows, count, from, &seen);
        for (int64_t key = from; seen && key < end; key++) {
            cpu_number_load(p->type, tensors[ATTENTION_K], attention_at(k, batch, head, key), 1, p->dim, line);
            s->dots(line, q, p->dim, scores + key * LANES);
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        const row nothing = {.first = 0, .end = 0};
        weigh(s, tensors, lane < count ? rows[lane] : &nothing, lane, scores);
    }
    memset(o, 0, (size_t)(2 * LANES * p->v_dim) * sizeof *o);
    for (int64_t from = 0, end; from < p->keys; from = end) {
        end = end_of_block(s, rows, count, from, &seen);
        for (int64_t key = from; seen && key < end; key++) {
            cpu_number_load(p->type, tensors[ATTENTION_V], attention_at(v, batch, head, key), 1, p->v_dim, line);
            s->adds(scores + key * LANES, line, p->v_dim, o);
        }
    }
    for (int lane = 0; lane < count; lane++)
        for (int64_t d = 0; d < p->v_dim; d++) {
            want[rows[lane]->at * p->v_dim + d] = o[2 * d * LANES + lane];
            spread[rows[lane]->at * p->v_dim + d] = sqrt(o[(2 * d + 1) * LANES + lane]);
        }
}

static scout_answer compute(const void *context, const scout_op *op, void *const *tensors, uint32_t output,
                            int64_t from, int64_t count, double *want, double *spread, double *scratch) {
    const state *s = context;
    const attention_problem *p = &s->p;
    row rows[ROWS], *group[LANES];
    (void)op, (void)output;
    for (int64_t at = 0, all = count / p->v_dim; at < all; at += ROWS) {
        const int here = (int)(all - at < ROWS ? all - at : ROWS);
        for (int k = 0; k < here; k++) {
            rows[k] = row_at(p, tensors, from / p->v_dim + at + k);
            rows[k].at = at + k;
        }
        for (int k = 0; k < here; k++) {
            int together = 0;
            for (int i = k; i < here && together < LANES; i++) {
                if (rows[i].done || rows[i].batch != rows[k].batch ||
                    rows[i].head / p->group != rows[k].head / p->group)
                    continue;
                rows[i].done = true;
                group[together++] = &rows[i];
            }
            if (together > 0) compute_rows(s, tensors, group, together, want, spread, scratch);
        }
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {open_whole, grain, compute, scratch_doubles};
CPU_WHOLE_REFERENCE(cpu_reference_attention, SCOUT_ATTENTION, whole);
