/* A row is added up in 32 lanes, so that neither order nor error depends on the processor. */
#include "scout/cpu/kernels/cpu_reduce_kernels.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_math.h"

#include <math.h>

enum { LANES = 32 };

/* expression: of the accumulator s and an element x; merge: of two sums a and b. */
#define STEP(name, type, member, identity, expression, merge)                                                          \
    FAST_BODY type name##_merge(type a, type b) { return merge; }                                                      \
    FAST_BODY type name##_step(type s, type x) { return expression; }                                                  \
    FAST_BODY void name##_row(const void *data, int64_t count, cpu_reduce_value *sum) {                                \
        const type *const x = data;                                                                                    \
        type lanes[LANES];                                                                                             \
        int64_t k = 0;                                                                                                 \
        for (int u = 0; u < LANES; u++) lanes[u] = identity;                                                           \
        for (; k + LANES <= count; k += LANES)                                                                         \
            for (int u = 0; u < LANES; u++) lanes[u] = name##_step(lanes[u], x[k + u]);                                \
        for (int u = 0; k < count; k++, u++) lanes[u] = name##_step(lanes[u], x[k]);                                   \
        for (int half = LANES / 2; half > 0; half /= 2)                                                                \
            for (int u = 0; u < half; u++) lanes[u] = name##_merge(lanes[u], lanes[u + half]);                         \
        sum->member = name##_merge(sum->member, lanes[0]);                                                             \
    }                                                                                                                  \
    FAST_BODY void name##_column(const void *data, int64_t count, void *sums) {                                        \
        const type *const x = data;                                                                                    \
        __typeof__(type) *restrict const s = sums;                                                                     \
        for (int64_t k = 0; k < count; k++) s[k] = name##_step(s[k], x[k]);                                            \
    }                                                                                                                  \
    WIDTH(name, _any, )                                                                                                \
    WIDTH(name, _avx2, WIDE_AVX2)                                                                                      \
    WIDTH(name, _avx512, WIDE_AVX512)
#define WIDTH(name, suffix, target)                                                                                    \
    FAST target static void name##_row##suffix(const void *x, int64_t count, cpu_reduce_value *sum) {                  \
        name##_row(x, count, sum);                                                                                     \
    }                                                                                                                  \
    FAST target static void name##_column##suffix(const void *x, int64_t count, void *sums, int64_t *places,           \
                                                  int64_t which) {                                                     \
        (void)places, (void)which;                                                                                     \
        name##_column(x, count, sums);                                                                                 \
    }

/* Where a better one was found; the first of equal ones stays. */
#define PLACE(name, type, better)                                                                                      \
    FAST_BODY void name##_place(const void *data, int64_t count, void *sums, int64_t *places, int64_t which) {         \
        const type *const x = data;                                                                                    \
        __typeof__(type) *restrict const s = sums;                                                                     \
        for (int64_t k = 0; k < count; k++) {                                                                          \
            places[k] = x[k] better s[k] ? which : places[k];                                                          \
            s[k] = x[k] better s[k] ? x[k] : s[k];                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    PLACE_WIDTH(name, _any, )                                                                                          \
    PLACE_WIDTH(name, _avx2, WIDE_AVX2)                                                                                \
    PLACE_WIDTH(name, _avx512, WIDE_AVX512)
#define PLACE_WIDTH(name, suffix, target)                                                                              \
    FAST target static void name##_place##suffix(const void *x, int64_t count, void *sums, int64_t *places,            \
                                                 int64_t which) {                                                      \
        name##_place(x, count, sums, places, which);                                                                   \
    }

STEP(f_sum, float, f, 0, s + x, a + b)
STEP(f_l1, float, f, 0, s + cpu_math_abs(x), a + b)
STEP(f_squares, float, f, 0, s + x * x, a + b)
STEP(f_prod, float, f, 1, s *x, a *b)
STEP(f_max, float, f, -INFINITY, cpu_math_max(s, x), cpu_math_max(a, b))
STEP(f_min, float, f, INFINITY, cpu_math_min(s, x), cpu_math_min(a, b))
PLACE(f_max, float, >)
PLACE(f_min, float, <)

STEP(i_sum, int64_t, i, 0, (int64_t)((uint64_t)s + (uint64_t)x), (int64_t)((uint64_t)a + (uint64_t)b))
STEP(i_l1, int64_t, i, 0, (int64_t)((uint64_t)s + (x < 0 ? 0 - (uint64_t)x : (uint64_t)x)),
     (int64_t)((uint64_t)a + (uint64_t)b))
STEP(i_squares, int64_t, i, 0, (int64_t)((uint64_t)s + (uint64_t)x * (uint64_t)x), (int64_t)((uint64_t)a + (uint64_t)b))
STEP(i_prod, int64_t, i, 1, (int64_t)((uint64_t)s *(uint64_t)x), (int64_t)((uint64_t)a *(uint64_t)b))
STEP(i_max, int64_t, i, INT64_MIN, s > x ? s : x, a > b ? a : b)
STEP(i_min, int64_t, i, INT64_MAX, s < x ? s : x, a < b ? a : b)
PLACE(i_max, int64_t, >)
PLACE(i_min, int64_t, <)

typedef struct row {
    cpu_reduce_row *row[3], *join[3];
    cpu_reduce_column *column[3];
    cpu_reduce_value start;
    int order;
} row;

#define ALL(name)                                                                                                      \
    { name##_any, name##_avx2, name##_avx512 }
#define SUM_ROW(step, join, ...)                                                                                       \
    { ALL(step##_row), ALL(join##_row), ALL(step##_column), {__VA_ARGS__}, 0 }
#define PLACE_ROW(step, way, ...)                                                                                      \
    { ALL(step##_row), ALL(step##_row), ALL(step##_place), {__VA_ARGS__}, way }

static const row floats[REDUCE_COUNT] = {
    [REDUCE_sum] = SUM_ROW(f_sum, f_sum, .f = 0),          [REDUCE_mean] = SUM_ROW(f_sum, f_sum, .f = 0),
    [REDUCE_max] = SUM_ROW(f_max, f_max, .f = -INFINITY),  [REDUCE_min] = SUM_ROW(f_min, f_min, .f = INFINITY),
    [REDUCE_prod] = SUM_ROW(f_prod, f_prod, .f = 1),       [REDUCE_l1] = SUM_ROW(f_l1, f_sum, .f = 0),
    [REDUCE_l2] = SUM_ROW(f_squares, f_sum, .f = 0),       [REDUCE_sumsquare] = SUM_ROW(f_squares, f_sum, .f = 0),
    [REDUCE_logsum] = SUM_ROW(f_sum, f_sum, .f = 0),       [REDUCE_argmax] = PLACE_ROW(f_max, 1, .f = -INFINITY),
    [REDUCE_argmin] = PLACE_ROW(f_min, -1, .f = INFINITY),
};

static const row wholes[REDUCE_COUNT] = {
    [REDUCE_sum] = SUM_ROW(i_sum, i_sum, .i = 0),           [REDUCE_mean] = SUM_ROW(i_sum, i_sum, .i = 0),
    [REDUCE_max] = SUM_ROW(i_max, i_max, .i = INT64_MIN),   [REDUCE_min] = SUM_ROW(i_min, i_min, .i = INT64_MAX),
    [REDUCE_prod] = SUM_ROW(i_prod, i_prod, .i = 1),        [REDUCE_l1] = SUM_ROW(i_l1, i_sum, .i = 0),
    [REDUCE_sumsquare] = SUM_ROW(i_squares, i_sum, .i = 0), [REDUCE_argmax] = PLACE_ROW(i_max, 1, .i = INT64_MIN),
    [REDUCE_argmin] = PLACE_ROW(i_min, -1, .i = INT64_MAX),
};

int cpu_reduce_kernels_of(reduce_id id, int in_wholes, cpu_reduce_kernels *out) {
    const cpu_info *c = cpu_info_get();
    const int width = c->avx512 ? 2 : c->avx2 ? 1 : 0;
    if (id >= REDUCE_COUNT) return 0;
    const row *r = in_wholes ? &wholes[id] : &floats[id];
    *out = (cpu_reduce_kernels){r->row[width], r->join[width], r->column[width], r->start, r->order};
    return out->row != NULL;
}

cpu_reduce_value cpu_reduce_finish(reduce_id id, int in_wholes, cpu_reduce_value sum, int64_t count) {
    if (in_wholes && id == REDUCE_mean) return (cpu_reduce_value){.i = sum.i / count};
    if (in_wholes) return sum;
    switch (id) {
    case REDUCE_mean: return (cpu_reduce_value){.f = sum.f / (float)count};
    case REDUCE_l2: return (cpu_reduce_value){.f = sqrtf(sum.f)};
    case REDUCE_logsum: return (cpu_reduce_value){.f = logf(sum.f)};
    default: return sum;
    }
}
