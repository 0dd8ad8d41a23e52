/* Every body is compiled once for each width of vectors. */
#include "scout/cpu/kernels/cpu_recurrent_gates.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_math.h"
#include "scout/cpu/device/cpu_vector.h"

#include <math.h>

/* As FAST of cpu_vector.h; products and sums are joined where the processor can, as clang does by itself. */
#if defined(__GNUC__) && !defined(__clang__)
#define JOINED      __attribute__((optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=fast")))
#define JOINED_BODY static inline __attribute__((always_inline)) JOINED
#else
#define JOINED
#define JOINED_BODY FAST_BODY
#endif

enum { LANES = 16, ROWS = 4 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

JOINED_BODY float lanes_sum(const lanes *v) {
    float all = 0;
    for (int k = 0; k < LANES; k++) all += (*v)[k];
    return all;
}

/* Four rows at once: a vector of w is loaded for all of them. */
JOINED_BODY void four_rows(const float *w, const float *x, int64_t count, int64_t apart, float *out,
                           int64_t out_apart) {
    lanes a[ROWS] = {{0}};
    int64_t k = 0;
    for (; k + LANES <= count; k += LANES) {
        const lanes v = *(const lanes *)(w + k);
        for (int r = 0; r < ROWS; r++) a[r] += v * *(const lanes *)(x + r * apart + k);
    }
    for (int r = 0; r < ROWS; r++) {
        float all = lanes_sum(&a[r]);
        for (int64_t rest = k; rest < count; rest++) all += w[rest] * x[r * apart + rest];
        out[r * out_apart] = all;
    }
}

/* One row: four sums at once, so that none waits for the one before. */
JOINED_BODY float one_row(const float *w, const float *x, int64_t count) {
    lanes a[ROWS] = {{0}};
    int64_t k = 0;
    for (; k + ROWS * LANES <= count; k += ROWS * LANES)
        for (int r = 0; r < ROWS; r++)
            a[r] += *(const lanes *)(w + k + r * LANES) * *(const lanes *)(x + k + r * LANES);
    for (; k + LANES <= count; k += LANES) a[0] += *(const lanes *)(w + k) * *(const lanes *)(x + k);
    a[0] = (a[0] + a[1]) + (a[2] + a[3]);
    float all = lanes_sum(&a[0]);
    for (; k < count; k++) all += w[k] * x[k];
    return all;
}

JOINED_BODY void dots_body(const float *w, const float *x, int64_t count, int64_t rows, int64_t apart, float *out,
                           int64_t out_apart) {
    int64_t row = 0;
    for (; row + ROWS <= rows; row += ROWS)
        four_rows(w, x + row * apart, count, apart, out + row * out_apart, out_apart);
    for (; row < rows; row++) out[row * out_apart] = one_row(w, x + row * apart, count);
}

FAST_BODY void sigmoid_body(float *x, int64_t count) {
    for (int64_t k = 0; k < count; k++) x[k] = cpu_math_sigmoid(x[k]);
}

FAST_BODY void tangent_body(float *x, int64_t count) {
    for (int64_t k = 0; k < count; k++) x[k] = cpu_math_tanh(x[k]);
}

#define VERSION(name, wide)                                                                                            \
    JOINED wide static void dots_##name(const float *w, const float *x, int64_t count, int64_t rows, int64_t apart,    \
                                        float *out, int64_t out_apart) {                                               \
        dots_body(w, x, count, rows, apart, out, out_apart);                                                           \
    }                                                                                                                  \
    FAST wide static void sigmoid_##name(float *x, int64_t count) { sigmoid_body(x, count); }                          \
    FAST wide static void tangent_##name(float *x, int64_t count) { tangent_body(x, count); }                          \
    static const cpu_recurrent_kernels name = {#name, dots_##name, sigmoid_##name, tangent_##name};
VERSION(portable, )
VERSION(avx2, WIDE_AVX2)
VERSION(avx512, WIDE_AVX512)
#undef VERSION

const cpu_recurrent_kernels *cpu_recurrent_kernels_best(void) {
    const cpu_info *c = cpu_info_get();
    return c->avx512 ? &avx512 : c->avx2 ? &avx2 : &portable;
}

/* ---- activations that are rare ---- */

static float rare(const recurrent_activation *a, float x) {
    const float alpha = (float)a->alpha, beta = (float)a->beta;
    switch (a->function) {
    case RECURRENT_RELU: return fmaxf(x, 0);
    case RECURRENT_AFFINE: return alpha * x + beta;
    case RECURRENT_LEAKYRELU: return x < 0 ? alpha * x : x;
    case RECURRENT_SCALEDTANH: return alpha * tanhf(beta * x);
    case RECURRENT_HARDSIGMOID: return fminf(fmaxf(alpha * x + beta, 0), 1);
    case RECURRENT_ELU: return x < 0 ? alpha * expm1f(x) : x;
    case RECURRENT_SOFTSIGN: return x / (1 + fabsf(x));
    default: return fmaxf(x, 0) + log1pf(expf(-fabsf(x))); /* softplus */
    }
}

void cpu_recurrent_activate(const cpu_recurrent_kernels *k, const recurrent_activation *a, float clip, float *x,
                            int64_t count) {
    for (int64_t i = 0; i < count && clip > 0; i++) x[i] = fminf(fmaxf(x[i], -clip), clip);
    if (a->function == RECURRENT_SIGMOID) {
        k->sigmoid(x, count);
    } else if (a->function == RECURRENT_TANH) {
        k->tangent(x, count);
    } else {
        for (int64_t i = 0; i < count; i++) x[i] = rare(a, x[i]);
    }
}
