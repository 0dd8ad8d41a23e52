/* The reference of reductions: fp64 for floats, 64-bit integers that wrap around for integers. */
#include "scout/cpu/reference/cpu_reference_reduce.h"
#include "common/checked.h"
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/reduce.h"

#include <math.h>
#include <stdlib.h>

enum { RUN = 512 };

typedef struct state {
    bool suppresses; /* boxes: nothing else of this counts */
    bool matrices;   /* nor of these */
    bool along;      /* running sums and searches: `lines` */
    reduce_lines lines;
    reduce_problem p;
    reduce_id id;
    bool wholes;
    uint32_t type; /* of the output */
} state;

/* An element of a line that is searched. Of equal values the first one is better. */
typedef struct found {
    double value;
    int64_t at;
} found;

static scout_answer open(const scout_op *op, void **out, scout_why *why) {
    reduce_id id = REDUCE_COUNT;
    const bool along = reduce_goes_along(op), suppresses = suppress_is(op), matrices = matrix_is(op);
    if (!along && !suppresses && !matrices && !reduce_operator_of(op, &id))
        return scout_say(why, SCOUT_NO, "feature", "no reference for this reduction");
    state *s = calloc(1, sizeof *s);
    if (!s) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
    *s = (state){.suppresses = suppresses,
                 .matrices = matrices,
                 .along = along,
                 .p = suppresses || matrices ? (reduce_problem){.last = 0} : reduce_problem_of(op),
                 .id = id,
                 .wholes = cpu_number_whole(op->input),
                 .type = op->output};
    if (along) s->lines = reduce_lines_of(op);
    *out = s;
    return SCOUT_OK;
}

/* All lines of one place of the dimensions before them, as one number follows from others. */
static int64_t grain(const void *context, const scout_op *op, uint32_t output) {
    const state *s = context;
    if (s->suppresses) return op_elements(&op->tensors[output]);
    if (s->matrices) return matrix_each(op);
    return s->along ? s->lines.kept * s->lines.inner : 1;
}

static size_t scratch(const void *context, const scout_op *op) {
    const state *s = context;
    if (s->along && s->lines.searches) return (size_t)s->lines.length * sizeof(found) / sizeof(double);
    return s->suppresses ? (size_t)suppress_problem_of(op).boxes * sizeof(bool) / sizeof(double) + 1 : RUN;
}

/* All that any of the reductions needs of a row. */
typedef struct sums {
    double sum, absolute, squares, product, exponentials, least, most;
    bool last; /* of equal places the last one */
    int64_t whole_sum, whole_absolute, whole_squares, whole_product;
    int64_t least_at, most_at, count;
} sums;

static void take(sums *s, double x) {
    const uint64_t w = (uint64_t)checked_from_double(x);
    if (s->count == 0 || x < s->least || (s->last && x == s->least)) s->least = x, s->least_at = s->count;
    if (s->count == 0 || x > s->most || (s->last && x == s->most)) s->most = x, s->most_at = s->count;
    s->exponentials += exp(x);
    s->sum += x, s->absolute += fabs(x), s->squares += x * x, s->product *= x;
    s->whole_sum = (int64_t)((uint64_t)s->whole_sum + w);
    s->whole_absolute = (int64_t)((uint64_t)s->whole_absolute + (x < 0 ? 0 - w : w));
    s->whole_squares = (int64_t)((uint64_t)s->whole_squares + w * w);
    s->whole_product = (int64_t)((uint64_t)s->whole_product * w);
    s->count++;
}

static double wrapped(uint32_t type, int64_t value) {
    switch (type) {
    case SCOUT_INT32: return (double)(int32_t)(uint32_t)(uint64_t)value;
    case SCOUT_UINT32: return (double)(uint32_t)(uint64_t)value;
    case SCOUT_UINT64: return (double)(uint64_t)value;
    case SCOUT_INT8: return (double)(int8_t)(uint8_t)(uint64_t)value;
    case SCOUT_UINT8: return (double)(uint8_t)(uint64_t)value;
    default: return (double)value;
    }
}

static double of_floats(reduce_id id, const sums *s) {
    const double all[REDUCE_COUNT] = {
        [REDUCE_sum] = s->sum,
        [REDUCE_mean] = s->sum / (double)s->count,
        [REDUCE_max] = s->most,
        [REDUCE_min] = s->least,
        [REDUCE_prod] = s->product,
        [REDUCE_l1] = s->absolute,
        [REDUCE_l2] = sqrt(s->squares),
        [REDUCE_sumsquare] = s->squares,
        [REDUCE_logsum] = log(s->sum),
        [REDUCE_argmax] = (double)s->most_at,
        [REDUCE_argmin] = (double)s->least_at,
        [REDUCE_logsumexp] = log(s->exponentials),
    };
    return all[id];
}

static double of_wholes(const state *s, const sums *of) {
    const int64_t all[REDUCE_COUNT] = {
        [REDUCE_sum] = of->whole_sum,
        [REDUCE_mean] = of->count > 0 ? of->whole_sum / of->count : 0,
        [REDUCE_max] = checked_from_double(of->most),
        [REDUCE_min] = checked_from_double(of->least),
        [REDUCE_prod] = of->whole_product,
        [REDUCE_l1] = of->whole_absolute,
        [REDUCE_sumsquare] = of->whole_squares,
        [REDUCE_argmax] = of->most_at,
        [REDUCE_argmin] = of->least_at,
    };
    return wrapped(s->type, all[s->id]);
}

/* A sum may cancel: its terms count. A mean of them likewise; a logarithm may be near 0. Below the smallest normal
 * number of its type an output is coarse; products come there within a hundred factors, and go through it in another
 * order in every implementation. */
static double spread_of(const state *s, const sums *of) {
    const double smallest = s->type == SCOUT_FP16 ? 0x1p-14 : s->id == REDUCE_prod ? 0x1p-100 : 0x1p-126;
    if (s->id == REDUCE_sum) return sqrt(of->squares) + smallest;
    if (s->id == REDUCE_mean) return sqrt(of->squares) / (double)of->count + smallest;
    return s->id == REDUCE_logsum || s->id == REDUCE_logsumexp ? 1 : smallest;
}

static double in_range(uint32_t type, double want) {
    const double largest = type == SCOUT_FP16   ? 0x1.ffep15
                           : type == SCOUT_BF16 ? 0x1.ffp127
                           : type == SCOUT_FP32 ? 0x1.ffffffp127
                                                : INFINITY;
    return fabs(want) >= largest ? copysign(INFINITY, want) : want;
}

/* By definition: the product of all that comes before. Below its type's normal numbers one is coarse. */
static void multiply_along(const state *s, const void *x, int64_t base, double *want, double *spread) {
    const reduce_lines *l = &s->lines;
    const double smallest = s->type == SCOUT_FP16 ? 0x1p-14 : s->type == SCOUT_FP64 ? 0x1p-1000 : 0x1p-100;
    double product = 1;
    uint64_t whole = 1;
    for (int64_t k = 0; k < l->length; k++) {
        const int64_t at = (l->backward ? l->length - 1 - k : k) * l->inner;
        const double before = product;
        const uint64_t whole_before = whole;
        double value;
        cpu_number_load(s->type, x, base + at, 1, 1, &value);
        product *= value, whole *= (uint64_t)checked_from_double(value);
        want[at] = s->wholes ? wrapped(s->type, (int64_t)(l->exclusive ? whole_before : whole))
                             : in_range(s->type, l->exclusive ? before : product);
        spread[at] = s->wholes ? 0 : smallest;
    }
}

/* By definition: the sum of all that comes before. */
static void sum_along(const state *s, const void *x, int64_t base, double *want, double *spread) {
    const reduce_lines *l = &s->lines;
    double sum = 0, squares = 0;
    uint64_t whole = 0;
    for (int64_t k = 0; k < l->length; k++) {
        const int64_t at = (l->backward ? l->length - 1 - k : k) * l->inner;
        const double before = s->wholes ? wrapped(s->type, (int64_t)whole) : sum, squares_before = squares;
        double value;
        cpu_number_load(s->type, x, base + at, 1, 1, &value);
        sum += value, squares += value * value, whole += (uint64_t)checked_from_double(value);
        want[at] = l->exclusive ? before : s->wholes ? wrapped(s->type, (int64_t)whole) : in_range(s->type, sum);
        spread[at] = s->wholes ? 0 : sqrt(l->exclusive ? squares_before : squares) + 0x1p-14;
    }
}

static int by_least(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_largest(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* All of a line in order, of which the first `kept` are told. */
static void search_along(const state *s, const void *x, int64_t base, bool places, double *want, found *room) {
    const reduce_lines *l = &s->lines;
    for (int64_t i = 0; i < l->length; i++) {
        cpu_number_load(s->type, x, base + i * l->inner, 1, 1, &room[i].value);
        room[i].at = i;
    }
    qsort(room, (size_t)l->length, sizeof *room, l->largest ? by_largest : by_least);
    for (int64_t k = 0; k < l->kept; k++) want[k * l->inner] = places ? (double)room[k].at : room[k].value;
}

static scout_answer compute(const void *context, const scout_op *op, void *const *tensors, uint32_t output,
                            int64_t from, int64_t count, double *want, double *spread, double *room) {
    const state *s = context;
    const reduce_side *reduced = &s->p.reduced;
    if (s->matrices) {
        cpu_reference_matrix(op, tensors, from / matrix_each(op), count / matrix_each(op), want, spread);
        return SCOUT_OK;
    }
    if (s->suppresses) {
        cpu_reference_suppress(op, tensors, want, spread, (bool *)room);
        return SCOUT_OK;
    }
    for (int64_t k = 0; s->along && k < count; k++) {
        const int64_t kept = s->lines.kept * s->lines.inner, line = k % kept;
        const int64_t base = (from + k) / kept * s->lines.length * s->lines.inner + line;
        if (line >= s->lines.inner) continue; /* one call makes the whole line */
        if (s->lines.searches)
            search_along(s, tensors[REDUCE_X], base, output == REDUCE_PLACES, want + k, (found *)(void *)room);
        else if (s->lines.products)
            multiply_along(s, tensors[REDUCE_X], base, want + k, spread + k);
        else
            sum_along(s, tensors[REDUCE_X], base, want + k, spread + k);
    }
    if (s->along) {
        for (int64_t k = 0; s->lines.searches && k < count; k++) spread[k] = 0;
        return SCOUT_OK;
    }
    for (int64_t k = 0; k < count; k++) {
        sums all = {.product = 1, .whole_product = 1, .last = s->p.last != 0};
        int64_t base, offset;
        (void)reduce_to(&s->p.kept, from + k, &base);
        for (int64_t at = 0; at < reduced->count;) {
            int64_t run = reduce_to(reduced, at, &offset);
            if (run > RUN) run = RUN;
            cpu_number_load(op->input, tensors[REDUCE_X], base + offset, reduced->strides[0], run, room);
            for (int64_t i = 0; i < run; i++) take(&all, room[i]);
            at += run;
        }
        const double plain = s->wholes ? 0 : of_floats(s->id, &all);
        want[k] = s->wholes ? of_wholes(s, &all) : in_range(s->type, plain);
        spread[k] = s->wholes ? 0 : spread_of(s, &all);
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {.open = open, .grain = grain, .compute = compute, .scratch = scratch};
CPU_WHOLE_REFERENCE(cpu_reference_reduce, SCOUT_REDUCE, whole);
