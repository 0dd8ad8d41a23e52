/* The reference of rotary embeddings. */
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/rotary.h"

#include <math.h>

static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    (void)state, (void)output;
    return op->shape[3];
}

static size_t scratch_doubles(const void *state, const scout_op *op) {
    (void)state;
    return (size_t)(3 * op->shape[3]);
}

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch) {
    const rotary_problem p = rotary_problem_of(op);
    const int64_t half = p.rotated / 2;
    const double least = p.type == SCOUT_FP16 ? 0x1p-14 : 0; /* below, its steps grow no smaller */
    double *x = scratch, *cosine = x + p.dim, *sine = cosine + p.dim;
    (void)state, (void)output;
    for (int64_t k = 0; k < count; k += p.dim) {
        const int64_t row = (from + k) / p.dim, step = rotary_step(&p, row);
        cpu_number_load(p.type, tensors[ROTARY_X], row * p.dim, 1, p.dim, x);
        cpu_number_load(p.type, tensors[ROTARY_COS], step * p.angles, 1, p.angles, cosine);
        cpu_number_load(p.type, tensors[ROTARY_SIN], step * p.angles, 1, p.angles, sine);
        for (int64_t d = 0; d < p.dim; d++) want[k + d] = x[d], spread[k + d] = fabs(x[d]);
        for (int64_t i = 0; i < half; i++) {
            const int64_t first = p.interleaved ? 2 * i : i, second = p.interleaved ? 2 * i + 1 : i + half;
            const int64_t a = p.angles == half ? i : first, b = p.angles == half ? i : second;
            want[k + first] = x[first] * cosine[a] - x[second] * sine[a];
            want[k + second] = x[second] * cosine[b] + x[first] * sine[b];
            spread[k + first] = fmax(hypot(x[first] * cosine[a], x[second] * sine[a]), least);
            spread[k + second] = fmax(hypot(x[second] * cosine[b], x[first] * sine[b]), least);
        }
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {NULL, grain, compute, scratch_doubles};
CPU_WHOLE_REFERENCE(cpu_reference_rotary, SCOUT_ROTARY, whole);
