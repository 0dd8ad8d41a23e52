/* Softmax in fp64: every element. */
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/softmax.h"

#include <math.h>

static scout_answer open_softmax(const scout_op *op, void **state, scout_why *why) {
    softmax_problem *p = malloc(sizeof *p);
    *state = p;
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
    *p = softmax_problem_of(op);
    return SCOUT_OK;
}

/* All rows that lie within each other. */
static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    const softmax_problem *p = state;
    (void)op, (void)output;
    return p->cols * p->inner;
}

static size_t scratch(const void *state, const scout_op *op) {
    const softmax_problem *p = state;
    (void)op;
    return 2 * (size_t)p->cols;
}

/* An exponential only rounds, relative to itself; but fp16 is not relative below its smallest normal number. A
 * logarithm is a difference of what may be far larger, and takes over as it is what a sum lost relative to itself. */
static double spread_of(const softmax_problem *p, uint32_t type, double want, double x, double largest,
                        double log_sum) {
    if (p->logarithm) return sqrt(1 + x * x + largest * largest + log_sum * log_sum);
    return type == SCOUT_FP16 ? fmax(want, 0x1p-14) : want;
}

static void do_row(const softmax_problem *p, uint32_t type, const double *x, double *want, double *spread) {
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < p->cols; k++) largest = fmax(largest, x[k]);
    for (int64_t k = 0; k < p->cols; k++) sum += exp(x[k] - largest);
    for (int64_t k = 0; k < p->cols; k++) {
        const int64_t to = k * p->inner;
        want[to] = p->logarithm ? x[k] - largest - log(sum) : exp(x[k] - largest) / sum;
        spread[to] = spread_of(p, type, want[to], x[k], largest, log(sum));
    }
}

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *room) {
    const softmax_problem *p = state;
    const int64_t each = p->cols * p->inner;
    (void)output;
    for (int64_t at = 0; at < count; at += each)
        for (int64_t c = 0; c < p->inner; c++) {
            double *bias = room + p->cols;
            cpu_number_load(op->input, tensors[SOFTMAX_X], from + at + c, p->inner, p->cols, room);
            for (int64_t k = 0; k < p->cols; k++) room[k] *= p->scale;
            if (p->bias >= 0) {
                const int64_t row = (from + at) / p->cols;
                cpu_number_load(op->input, tensors[p->bias], softmax_bias_row(p, row) * p->cols, 1, p->cols, bias);
                for (int64_t k = 0; k < p->cols; k++) room[k] += bias[k];
            }
            do_row(p, op->output, room, want + at + c, spread + at + c);
        }
    return SCOUT_OK;
}

static const cpu_whole whole = {open_softmax, grain, compute, scratch};
CPU_WHOLE_REFERENCE(cpu_reference_softmax, SCOUT_SOFTMAX, whole);
