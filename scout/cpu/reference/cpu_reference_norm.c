/* Norms in fp64: every element of the normalised output, and of the sum where that is written too. */
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/norm.h"

#include <math.h>

static scout_answer open_norm(const scout_op *op, void **state, scout_why *why) {
    norm_problem *p = malloc(sizeof *p);
    *state = p;
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
    *p = norm_problem_of(op);
    if (p->form != NORM_NONE) return SCOUT_OK;
    free(p);
    *state = NULL;
    return scout_say(why, SCOUT_NO, "feature", "no reference for this form of norm");
}

/* All rows that lie within each other: everything behind the first level. */
static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    const norm_problem *p = state;
    (void)op, (void)output;
    return p->r0 * p->k1 * p->r1 * p->k2;
}

static size_t scratch(const void *state, const scout_op *op) {
    const norm_problem *p = state;
    (void)op;
    return (size_t)p->cols;
}

/* One element of a tensor; `otherwise` where the operation has none. */
static double element(const scout_op *op, void *const *tensors, int tensor, int64_t at, double otherwise) {
    double x = otherwise;
    if (tensor >= 0) cpu_number_load(op->tensors[tensor].type, tensors[tensor], at, 1, 1, &x);
    return x;
}

typedef struct place { /* what compute is at */
    const norm_problem *p;
    const scout_op *op;
    void *const *tensors;
    uint32_t type; /* of the output */
    int64_t a, from;
    double *want, *spread; /* of the first element of this a */
} place;

/* Where element (i, b, j, c) of this a lies behind the first one. */
static int64_t behind(const norm_problem *p, int64_t i, int64_t b, int64_t j, int64_t c) {
    return ((i * p->k1 + b) * p->r1 + j) * p->k2 + c;
}

/* x + residual + input_bias, and the squares of these three. */
static double added(const place *w, int64_t at, int64_t side, double *squares) {
    const double x = element(w->op, w->tensors, NORM_X, at, 0);
    const double residual = element(w->op, w->tensors, w->p->residual, at, 0);
    const double bias = element(w->op, w->tensors, w->p->input_bias, side, 0);
    *squares = x * x + residual * residual + bias * bias;
    return x + residual + bias;
}

static double activated(const norm_problem *p, double x) {
    if (p->activation == NORM_RELU) return x > 0 ? x : 0;
    return p->activation == NORM_SILU ? x / (1 + exp(-x)) : x;
}

/* y = (x - mean) * factor * scale + bias is made of x, which may be a sum that was rounded itself (`size`: the root of
 * its terms' squares' sum), the mean and the terms that make it up (`terms`: alike), and bias; an activation is no
 * steeper than 1.1. What is below fp16's smallest normal number is
 * not rounded relative to itself. */
static void put(const place *w, int64_t at, int64_t side, double x, double size, double mean, double terms,
                double factor) {
    const double scale = factor * element(w->op, w->tensors, w->p->scale, side, 1);
    const double bias = element(w->op, w->tensors, w->p->bias, side, 0);
    const double a = size * scale, b = mean * scale, c = terms * scale, least = w->type == SCOUT_FP16 ? 0x1p-14 : 0;
    w->want[at] = activated(w->p, (x - mean) * scale + bias);
    w->spread[at] = fmax(sqrt(a * a + b * b + c * c + bias * bias), least);
}

static double factor_of(const norm_problem *p, const double *row, double mean) {
    double sum = 0;
    for (int64_t k = 0; k < p->cols; k++)
        sum += p->form == NORM_LP && p->power == 1 ? fabs(row[k]) : (row[k] - mean) * (row[k] - mean);
    if (p->form == NORM_LP) return 1 / (p->power == 1 ? sum : sqrt(sum));
    return 1 / sqrt(sum / (double)p->cols + p->epsilon);
}

static void do_row(const place *w, int64_t b, int64_t c, double *row) {
    const norm_problem *p = w->p;
    double mean = 0, terms = 0, squares;
    for (int64_t k = 0; k < p->cols; k++) {
        const int64_t i = k / p->r1, j = k % p->r1;
        row[k] = added(w, w->from + behind(p, i, b, j, c), norm_side(p, w->a, i, b, j), &squares);
        mean += row[k] / (double)p->cols;
        terms += squares;
    }
    terms = p->form == NORM_CENTRED ? sqrt(terms) / (double)p->cols : 0;
    if (p->form != NORM_CENTRED) mean = 0;
    const double factor = factor_of(p, row, mean);
    for (int64_t k = 0; k < p->cols; k++) {
        const int64_t i = k / p->r1, j = k % p->r1;
        const int64_t at = behind(p, i, b, j, c), side = norm_side(p, w->a, i, b, j);
        (void)added(w, w->from + at, side, &squares);
        put(w, at, side, row[k], sqrt(squares), mean, terms, factor);
    }
}

static void do_batch(const place *w) {
    const norm_problem *p = w->p;
    for (int64_t at = 0; at < p->r0 * p->r1; at++) {
        const int64_t side = norm_side(p, w->a, at / p->r1, 0, at % p->r1);
        const double mean = element(w->op, w->tensors, p->mean, side, 0);
        const double variance = element(w->op, w->tensors, p->variance, side, 1);
        double squares;
        const double x = added(w, w->from + at, side, &squares);
        put(w, at, side, x, sqrt(squares), mean, 0, 1 / sqrt(variance + p->epsilon));
    }
}

/* The neighbours of a channel are (size - 1) / 2 before it, rounded down, and as many behind, rounded up. */
static void do_position(const place *w, int64_t c, double *row) {
    const norm_problem *p = w->p;
    const int64_t before = (p->size - 1) / 2, after = p->size - 1 - before;
    for (int64_t j = 0; j < p->cols; j++) row[j] = element(w->op, w->tensors, NORM_X, w->from + j * p->k2 + c, 0);
    for (int64_t j = 0; j < p->cols; j++) {
        double sum = 0;
        for (int64_t n = j > before ? j - before : 0; n <= j + after && n < p->cols; n++) sum += row[n] * row[n];
        put(w, j * p->k2 + c, 0, row[j], row[j], 0, 0, pow(p->offset + p->alpha / (double)p->size * sum, -p->beta));
    }
}

/* x with its residual, before it is normalised. */
static void do_sum(const place *w) {
    const norm_problem *p = w->p;
    const int64_t all = p->r0 * p->k1 * p->r1 * p->k2;
    for (int64_t at = 0; at < all; at++) {
        const int64_t j = at / p->k2 % p->r1, b = at / p->k2 / p->r1 % p->k1, i = at / p->k2 / p->r1 / p->k1;
        double squares;
        w->want[at] = added(w, w->from + at, norm_side(p, w->a, i, b, j), &squares);
        w->spread[at] = fmax(sqrt(squares), w->type == SCOUT_FP16 ? 0x1p-14 : 0);
    }
}

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *room) {
    const norm_problem *p = state;
    const int64_t each = grain(state, op, output);
    for (int64_t at = 0; at < count; at += each) {
        const place w = {p,         op,        tensors,    op->tensors[output].type, (from + at) / each,
                         from + at, want + at, spread + at};
        if ((int)output == p->sum)
            do_sum(&w);
        else if (p->form == NORM_BATCH)
            do_batch(&w);
        else
            for (int64_t k = 0; k < p->k1 * p->k2; k++) {
                if (p->form == NORM_LRN)
                    do_position(&w, k, room);
                else
                    do_row(&w, k / p->k2, k % p->k2, room);
            }
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {open_norm, grain, compute, scratch};
CPU_WHOLE_REFERENCE(cpu_reference_norm, SCOUT_NORM, whole);
