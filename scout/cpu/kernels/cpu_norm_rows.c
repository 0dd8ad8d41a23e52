/* Norms by own loops: a thread takes whole rows, and passes over each three times (its sum, its squares, its output)
 * while it is in L1. Rows of 16-bit types, and those that a residual is added to, become a row of floats first. Where
 * elements of a row lie apart, neighbouring rows are taken together, column by column. Needs no library; nothing else
 * has rms norms, group norms or a residual here. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/kernels/cpu_rows.h"
#include "scout/op/norm.h"

#include <math.h>
#include <stdbool.h>

enum { SLAB = 256 };

struct scout_plan {
    norm_problem p;
    const cpu_rows *v;
    uint32_t type_x, type_y, type_side;
    bool gathers;    /* a row is made in scratch memory before it is normalised */
    int64_t items;   /* what threads share: rows, or slabs of neighbouring ones */
    int64_t slabs;   /* k2 cut into pieces */
    int64_t scratch; /* floats of one thread */
};

typedef struct hands { /* what a thread works with */
    const scout_plan *plan;
    void *const *tensors;
    const float *scale, *bias, *input_bias, *mean, *variance;
    float *row; /* scratch */
} hands;

static int64_t size_of(uint32_t type) { return cpu_number_bits(type) / 8; }

static const void *at_const(const void *data, uint32_t type, int64_t element) {
    return (const char *)data + element * size_of(type);
}

static void *at(void *data, uint32_t type, int64_t element) { return (char *)data + element * size_of(type); }

static void activate(const scout_plan *plan, float *y, int64_t count) {
    if (plan->p.activation == NORM_RELU) plan->v->relu(y, count, y);
    if (plan->p.activation == NORM_SILU) plan->v->silu(y, count, y);
}

/* One over the deviation, the root of the mean square, or the length. */
static float factor_of(const norm_problem *p, double sum) {
    if (p->form != NORM_LP) return (float)(1 / sqrt(sum / (double)p->cols + p->epsilon));
    return (float)(1 / (p->power == 1 ? sum : sqrt(sum)));
}

/* --- contiguous rows, whole or in segments of r1 --- */

static int64_t segment_at(const norm_problem *p, int64_t a, int64_t i, int64_t b) {
    return ((a * p->r0 + i) * p->k1 + b) * p->r1;
}

/* x, or x + residual + input_bias, as floats; what is added up is written where it is wanted. */
static void gather(const hands *h, int64_t a, int64_t b) {
    const scout_plan *plan = h->plan;
    const norm_problem *p = &plan->p;
    for (int64_t i = 0; i < p->r0; i++) {
        const int64_t from = segment_at(p, a, i, b), side = norm_side(p, a, i, b, 0);
        float *to = h->row + i * p->r1, *other = h->row + p->cols;
        plan->v->load(plan->type_x, at_const(h->tensors[NORM_X], plan->type_x, from), p->r1, to);
        if (p->residual >= 0) {
            const void *residual = at_const(h->tensors[p->residual], plan->type_x, from);
            if (plan->type_x != SCOUT_FP32) plan->v->load(plan->type_x, residual, p->r1, other);
            plan->v->add(to, plan->type_x == SCOUT_FP32 ? residual : other, p->r1, to);
        }
        if (h->input_bias && p->step_j) plan->v->add(to, h->input_bias + side, p->r1, to);
        if (h->input_bias && !p->step_j) plan->v->add_one(to, h->input_bias[side], p->r1, to);
        if (p->sum >= 0) plan->v->store(plan->type_y, to, p->r1, at(h->tensors[p->sum], plan->type_y, from));
    }
}

typedef struct row_view { /* segments of r1 floats each; `whole`: they touch, and are one of all columns */
    const float *x;
    int64_t stride;
    bool whole;
} row_view;

static double over_row(const norm_problem *p, const row_view *r, double (*sum)(const float *, int64_t)) {
    double total = 0;
    if (r->whole) return sum(r->x, p->cols);
    for (int64_t i = 0; i < p->r0; i++) total += sum(r->x + i * r->stride, p->r1);
    return total;
}

static double squares_of_row(const hands *h, const row_view *r, float mean) {
    const norm_problem *p = &h->plan->p;
    double total = 0;
    if (r->whole) return h->plan->v->squares(r->x, p->cols, mean);
    for (int64_t i = 0; i < p->r0; i++) total += h->plan->v->squares(r->x + i * r->stride, p->r1, mean);
    return total;
}

static void write_segment(const hands *h, const float *x, float mean, float factor, int64_t side, int64_t to) {
    const scout_plan *plan = h->plan;
    const int64_t count = plan->p.r1;
    const bool direct = plan->type_y == SCOUT_FP32;
    void *y = at(h->tensors[NORM_Y], plan->type_y, to);
    float *out = direct ? y : h->row; /* an earlier segment, or this one: read already */
    if (plan->p.step_j || (!h->scale && !h->bias))
        plan->v->scaled(x, count, mean, factor, h->scale ? h->scale + side : NULL, h->bias ? h->bias + side : NULL,
                        out);
    else
        plan->v->affine(x, count, mean, h->scale ? factor * h->scale[side] : factor, h->bias ? h->bias[side] : 0, out);
    activate(plan, out, count);
    if (!direct) plan->v->store(plan->type_y, out, count, y);
}

static void do_row(const hands *h, int64_t item) {
    const scout_plan *plan = h->plan;
    const norm_problem *p = &plan->p;
    const int64_t a = item / p->k1, b = item % p->k1;
    row_view r = {h->row, p->r1, true};
    float mean = 0;
    double sum;
    if (plan->gathers) {
        gather(h, a, b);
    } else {
        r.x = (const float *)h->tensors[NORM_X] + segment_at(p, a, 0, b);
        r.stride = p->k1 * p->r1;
        r.whole = p->k1 == 1;
    }
    if (p->form == NORM_CENTRED) mean = (float)(over_row(p, &r, plan->v->sum) / (double)p->cols);
    if (p->form == NORM_LP && p->power == 1)
        sum = over_row(p, &r, plan->v->magnitudes);
    else
        sum = squares_of_row(h, &r, mean);
    const float factor = factor_of(p, sum);
    for (int64_t i = 0; i < p->r0; i++)
        write_segment(h, r.x + i * r.stride, mean, factor, norm_side(p, a, i, b, 0), segment_at(p, a, i, b));
}

/* --- rows side by side: element (i, j) of row c lies c behind that of row 0 --- */

/* The columns of one place of all rows of a slab, as floats. */
static const float *columns(const hands *h, int64_t from, int64_t count, float *room) {
    const uint32_t type = h->plan->type_x;
    if (type == SCOUT_FP32) return (const float *)h->tensors[NORM_X] + from;
    h->plan->v->load(type, at_const(h->tensors[NORM_X], type, from), count, room);
    return room;
}

typedef struct slab {
    int64_t a, b, c, count;
    float *mean, *factor, *room;
} slab;

static int64_t slab_at(const norm_problem *p, const slab *s, int64_t place) {
    return (segment_at(p, s->a, place / p->r1, s->b) + place % p->r1) * p->k2 + s->c;
}

static void slab_statistics(const hands *h, const slab *s) {
    const norm_problem *p = &h->plan->p;
    const cpu_rows *v = h->plan->v;
    for (int64_t k = 0; k < s->count; k++) s->mean[k] = s->factor[k] = 0;
    for (int64_t place = 0; p->form == NORM_CENTRED && place < p->cols; place++)
        v->sum_columns(columns(h, slab_at(p, s, place), s->count, s->room), s->count, s->mean);
    for (int64_t k = 0; k < s->count; k++) s->mean[k] /= (float)p->cols;
    for (int64_t place = 0; place < p->cols; place++) {
        const float *x = columns(h, slab_at(p, s, place), s->count, s->room);
        if (p->form == NORM_LP && p->power == 1)
            v->magnitude_columns(x, s->count, s->factor);
        else
            v->square_columns(x, s->mean, s->count, s->factor);
    }
    for (int64_t k = 0; k < s->count; k++) s->factor[k] = factor_of(p, (double)s->factor[k]);
}

static void do_slab(const hands *h, int64_t item) {
    const scout_plan *plan = h->plan;
    const norm_problem *p = &plan->p;
    const bool direct = plan->type_y == SCOUT_FP32;
    const int64_t row = item / plan->slabs, c = item % plan->slabs * SLAB;
    slab s = {row / p->k1,   row % p->k1,      c, p->k2 - c < SLAB ? p->k2 - c : SLAB, h->row,
              h->row + SLAB, h->row + 2 * SLAB};
    slab_statistics(h, &s);
    for (int64_t place = 0; place < p->cols; place++) {
        const int64_t from = slab_at(p, &s, place);
        const int64_t side = norm_side(p, s.a, place / p->r1, s.b, place % p->r1);
        float *out = direct ? (float *)h->tensors[NORM_Y] + from : s.room;
        plan->v->scale_columns(columns(h, from, s.count, s.room), s.mean, s.factor, s.count, out);
        if (h->scale || h->bias)
            plan->v->affine(out, s.count, 0, h->scale ? h->scale[side] : 1, h->bias ? h->bias[side] : 0, out);
        activate(plan, out, s.count);
        if (!direct) plan->v->store(plan->type_y, out, s.count, at(h->tensors[NORM_Y], plan->type_y, from));
    }
}

/* --- batch norms: nothing to sum up --- */

static float batch_factor(const hands *h, int64_t channel) {
    const float scale = h->scale ? h->scale[channel] : 1;
    return scale / sqrtf(h->variance[channel] + (float)h->plan->p.epsilon);
}

static const float *segment(const hands *h, int64_t from, int64_t count) { return columns(h, from, count, h->row); }

static void do_batch(const hands *h, int64_t item) {
    const scout_plan *plan = h->plan;
    const norm_problem *p = &plan->p;
    const int64_t from = item * p->r1;
    const bool direct = plan->type_y == SCOUT_FP32;
    float *out = direct ? (float *)h->tensors[NORM_Y] + from : h->row;
    const float *x = segment(h, from, p->r1);
    if (p->step_j) { /* a channel for each element */
        plan->v->scale_columns(x, h->mean, h->row + p->r1, p->r1, out);
        if (h->bias) plan->v->add(out, h->bias, p->r1, out);
    } else {
        const int64_t c = item % p->r0;
        plan->v->affine(x, p->r1, h->mean[c], batch_factor(h, c), h->bias ? h->bias[c] : 0, out);
    }
    activate(plan, out, p->r1);
    if (!direct) plan->v->store(plan->type_y, out, p->r1, at(h->tensors[NORM_Y], plan->type_y, from));
}

/* --- threads --- */

/* A vector of the sides as floats: where it lies, or a copy of it at *free. */
static const float *side_of(const hands *h, int tensor, float **free) {
    const scout_plan *plan = h->plan;
    if (tensor < 0) return NULL;
    if (plan->type_side == SCOUT_FP32) return h->tensors[tensor];
    float *copy = *free;
    *free += plan->p.sides;
    plan->v->load(plan->type_side, h->tensors[tensor], plan->p.sides, copy);
    return copy;
}

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const scout_plan *plan = j->plan;
    const norm_problem *p = &plan->p;
    int64_t from, to;
    cpu_team_share(plan->items, thread, threads, &from, &to);
    if (from == to) return;
    float *scratch = (float *)j->args->workspace + thread * plan->scratch;
    hands h = {.plan = plan, .tensors = j->args->tensors};
    h.scale = side_of(&h, p->scale, &scratch), h.bias = side_of(&h, p->bias, &scratch);
    h.mean = side_of(&h, p->mean, &scratch), h.variance = side_of(&h, p->variance, &scratch);
    h.input_bias = side_of(&h, p->input_bias, &scratch);
    h.row = scratch;
    for (int64_t c = 0; p->form == NORM_BATCH && p->step_j && c < p->sides; c++) h.row[p->r1 + c] = batch_factor(&h, c);
    for (int64_t item = from; item < to; item++) {
        if (p->form == NORM_BATCH)
            do_batch(&h, item);
        else if (p->k2 > 1)
            do_slab(&h, item);
        else
            do_row(&h, item);
    }
}

/* --- the candidate --- */

static scout_plan plan_of(const scout_op *op) {
    scout_plan plan = {.p = norm_problem_of(op), .v = cpu_rows_best()};
    const norm_problem *p = &plan.p;
    const int sides[] = {p->scale, p->bias, p->mean, p->variance, p->input_bias};
    int64_t floats = 0;
    plan.type_x = op->input, plan.type_y = op->output;
    plan.type_side = op->weight != SCOUT_NONE ? op->weight : op->input;
    plan.gathers = plan.type_x != SCOUT_FP32 || p->residual >= 0 || p->input_bias >= 0;
    for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++)
        if (sides[k] >= 0 && plan.type_side != SCOUT_FP32) floats += p->sides;
    plan.slabs = (p->k2 + SLAB - 1) / SLAB;
    plan.items = p->k0 * p->k1 * plan.slabs;
    if (p->form == NORM_BATCH) {
        plan.items = p->k0 * p->r0;
        floats += p->r1 + (p->step_j ? p->sides : 0);
    } else if (p->k2 > 1) {
        floats += 3 * SLAB;
    } else if (plan.gathers || plan.type_y != SCOUT_FP32) {
        floats += p->cols + (p->residual >= 0 && plan.type_x != SCOUT_FP32 ? p->r1 : 0);
    }
    plan.scratch = cpu_rows_scratch(floats);
    return plan;
}

static uint64_t workspace_of(const scout_plan *plan) {
    return (uint64_t)cpu_team_size() * (uint64_t)plan->scratch * sizeof(float);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_plan plan = plan_of(op);
    const norm_problem *p = &plan.p;
    (void)device;
    if (p->form == NORM_NONE || p->form == NORM_LRN) return scout_say(why, SCOUT_NO, "feature", "lrn is not supported");
    if ((p->k2 > 1 || p->form == NORM_BATCH) && (p->residual >= 0 || p->input_bias >= 0 || p->sum >= 0))
        return scout_say(why, SCOUT_NO, "feature", "adds a residual only to contiguous rows");
    return cpu_team_room(workspace_of(&plan), op->workspace_limit, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)why;
    *plan = plan_of(op);
    needs->workspace_bytes = workspace_of(plan);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    if (plan->items > 1) return cpu_team_launch(share, plan, args);
    share(&(cpu_job){plan, args}, 0, 1); /* nothing to share: no other thread is woken */
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"norm_%s\", \"vectors\": \"%s\", \"threads\": \"%s\"}",
                    plan->p.form == NORM_BATCH ? "batch"
                    : plan->p.k2 > 1           ? "columns"
                                               : "rows",
                    plan->v->name, cpu_team_about());
}

const scout_candidate cpu_norm_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_NORM,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 50,
    .name = "cpu_norm",
    .about = "own norms (layer, rms, group, batch and more), with residual, bias and activation; needs no library",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
