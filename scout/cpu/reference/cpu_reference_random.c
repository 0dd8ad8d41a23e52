/* Right random numbers: the same words as everywhere, and all else in fp64. */
#include "scout/cpu/reference/cpu_reference_operators.h"

#include "scout/cpu/device/cpu_number.h"
#include "scout/op/random.h"

#include <math.h>

static double fraction(const uint32_t *w, int at) { return (double)(w[at] >> 8) * 0x1p-24; }

/* The fractions that a number is made of: of a normal one two, first the one of its distance. */
static void fractions(const random_problem *p, int64_t at, double *first, double *second) {
    const bool wide = p->how != RANDOM_BERNOULLI && p->to == SCOUT_FP64, normal = p->how == RANDOM_NORMAL;
    uint32_t w[4];
    random_words((uint64_t)(!wide ? at / 4 : normal ? at : at / 2), RANDOM_KEY, w);
    const int word = (int)(!wide ? at % 4 - (normal ? at % 2 : 0) : normal ? 0 : at % 2 * 2);
    *first = wide ? random_fraction(w[word], w[word + 1]) : fraction(w, word);
    *second = wide ? random_fraction(w[2], w[3]) : fraction(w, word | 1);
}

void cpu_reference_random(const scout_op *op, void *const *tensors, int64_t from, int64_t count, double *want,
                          double *spread) {
    const random_problem p = random_problem_of(op);
    const double turn = 6.283185307179586, step = p.to == SCOUT_FP64 ? 0x1p-53 : 0x1p-24;
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = from + k;
        double first, second, probability = 0;
        fractions(&p, at, &first, &second);
        if (p.how == RANDOM_BERNOULLI) {
            cpu_number_load(p.from, tensors[0], at, 1, 1, &probability);
            want[k] = first < probability, spread[k] = 0;
            continue;
        }
        const double angle = turn * second, side = at % 2 == 0 || p.to == SCOUT_FP64 ? cos(angle) : sin(angle);
        want[k] = p.how == RANDOM_NORMAL ? p.alpha + p.beta * sqrt(-2 * log(first + step)) * side
                                         : p.alpha + first * (p.beta - p.alpha);
        spread[k] = fabs(p.alpha) + fabs(p.beta) * (p.how == RANDOM_NORMAL ? 6 : 1);
    }
}
