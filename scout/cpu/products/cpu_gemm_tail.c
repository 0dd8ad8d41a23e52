/* Factors, bias, residual and activation of a product's sums: threads share the rows, and of each a piece at a time
 * goes through a buffer in fp32 that stays in the first cache. */
#include "scout/cpu/products/cpu_gemm_tail.h"

#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"

enum { PIECE = CPU_GEMM_TAIL_MOST };

static const elementwise_id functions[ACTIVATION_UNKNOWN] = {
    [ACTIVATION_RELU] = ELEMENTWISE_leakyrelu,
    [ACTIVATION_CLIP] = ELEMENTWISE_clip,
    [ACTIVATION_HARDSIGMOID] = ELEMENTWISE_hardsigmoid,
    [ACTIVATION_HARDSWISH] = ELEMENTWISE_hardswish,
    [ACTIVATION_SIGMOID] = ELEMENTWISE_sigmoid,
    [ACTIVATION_TANH] = ELEMENTWISE_tanh,
    [ACTIVATION_SILU] = ELEMENTWISE_swish,
    [ACTIVATION_GELU] = ELEMENTWISE_gelu,
    [ACTIVATION_GELU_TANH] = ELEMENTWISE_gelu_tanh,
};

/* --- widths of this processor --- */

FAST_BODY void add_body(const float *from, float constant, int64_t count, float *restrict to) {
    if (from)
        for (int64_t k = 0; k < count; k++) to[k] += from[k];
    else
        for (int64_t k = 0; k < count; k++) to[k] += constant;
}

FAST_BODY void scale_body(float by, int64_t count, float *to) {
    for (int64_t k = 0; k < count; k++) to[k] *= by;
}

#define WAY(name, width)                                                                                               \
    FAST width static void load_##name(uint32_t type, const void *from, int64_t count, float *to) {                    \
        cpu_convert_load(type, from, count, to);                                                                       \
    }                                                                                                                  \
    FAST width static void store_##name(uint32_t type, const float *from, int64_t count, void *to) {                   \
        cpu_convert_store(type, from, count, to);                                                                      \
    }                                                                                                                  \
    FAST width static void add_##name(const float *from, float constant, int64_t count, float *to) {                   \
        add_body(from, constant, count, to);                                                                           \
    }                                                                                                                  \
    FAST width static void scale_##name(float by, int64_t count, float *to) { scale_body(by, count, to); }             \
    static const cpu_gemm_tail_way way_##name = {load_##name, store_##name, scale_##name, add_##name};

WAY(any, )
WAY(avx2, WIDE_AVX2)
WAY(avx512, WIDE_AVX512)

/* --- the pass --- */

scout_answer cpu_gemm_tail_of(const scout_op *op, cpu_gemm_tail *out, scout_why *why) {
    static const char *const forms[] = {"n", "m", "scalar", "full", "each"};
    const cpu_info *c = cpu_info_get();
    *out = (cpu_gemm_tail){.p = gemm_problem_of(op), .bias = op_tensor(op, "bias")};
    const gemm_problem *p = &out->p;
    bool known = !p->bias;
    if (p->quant.is) return scout_say(why, SCOUT_NO, "epilogue", "the epilogue pass does not quantise");
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        known = known || (out->bias >= 0 && strcmp(forms[k], p->bias) == 0);
    if (!known) return scout_say(why, SCOUT_NO, "epilogue", "the epilogue pass has no such bias");
    if (out->bias >= 0) out->type_bias = op->tensors[out->bias].type;
    if (!cpu_convert_known(p->type_c) || (out->bias >= 0 && !cpu_convert_known(out->type_bias)))
        return scout_say(why, SCOUT_NO, "type", "the epilogue pass is for fp32, fp16 and bf16");
    if (p->activation.function != ACTIVATION_PLAIN)
        out->activate = cpu_elementwise_kernel_of(functions[p->activation.function], ELEMENTWISE_FLOAT);
    if (p->activation.function != ACTIVATION_PLAIN && !out->activate)
        return scout_say(why, SCOUT_NO, "epilogue", "the epilogue pass has no such activation");
    out->way = c->avx512 ? &way_avx512 : c->avx2 ? &way_avx2 : &way_any;
    return SCOUT_OK;
}

static const void *at(const void *base, uint32_t type, int64_t element) {
    return (const char *)base + element * cpu_convert_size(type);
}

static void add_bias(const cpu_gemm_tail *t, const void *bias, int64_t product, int64_t row, int64_t first,
                     int64_t count, float *sums) {
    const char form = t->p.bias[0];
    const bool by_row = form == 'm' || form == 'f', each = form == 'e', by_column = form == 'n' || form == 'f' || each;
    const int64_t line = each ? product : by_row ? row : 0;
    const int64_t from = line * (by_column ? t->p.n : 1) + (by_column ? first : 0);
    float values[PIECE];
    t->way->load(t->type_bias, at(bias, t->type_bias, from), by_column ? count : 1, values);
    if (t->p.beta != 1) t->way->scale((float)t->p.beta, by_column ? count : 1, values);
    t->way->add(by_column ? values : NULL, values[0], count, sums);
}

void cpu_gemm_tail_row(const cpu_gemm_tail *t, void *const *tensors, int64_t product, int64_t row, int64_t first,
                       int64_t count, float *sums) {
    const gemm_problem *p = &t->p;
    const int64_t place = product * p->stride_c + row * p->ldc + first;
    float other[PIECE];
    if (p->alpha != 1) t->way->scale((float)p->alpha, count, sums);
    if (t->bias >= 0) add_bias(t, tensors[t->bias], product, row, first, count, sums);
    if (p->residual >= 0) {
        t->way->load(p->type_c, at(tensors[p->residual], p->type_c, place), count, other);
        t->way->add(other, 0, count, sums);
    }
    const cpu_elementwise_call call = {.in = {sums, sums, sums},
                                       .out = other,
                                       .count = count,
                                       .operands = 1,
                                       .alpha = (float)p->activation.alpha,
                                       .beta = (float)p->activation.beta};
    if (t->activate) t->activate(&call);
    t->way->store(p->type_c, t->activate ? other : sums, count,
                  (char *)tensors[GEMM_C] + place * cpu_convert_size(p->type_c));
}

typedef struct pass {
    const cpu_gemm_tail *tail;
    void *const *tensors;
} pass;

static void run_share(void *context, int thread, int threads) {
    const pass *w = context;
    const gemm_problem *p = &w->tail->p;
    const int64_t pieces = (p->n + PIECE - 1) / PIECE;
    int64_t from, to;
    cpu_team_share(p->batch * p->m * pieces, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t first = k % pieces * PIECE, left = p->n - first, line = k / pieces;
        const int64_t product = line / p->m, row = line % p->m, count = left < PIECE ? left : PIECE;
        float sums[PIECE];
        w->tail->way->load(p->type_c, at(w->tensors[GEMM_C], p->type_c, product * p->stride_c + row * p->ldc + first),
                           count, sums);
        cpu_gemm_tail_row(w->tail, w->tensors, product, row, first, count, sums);
    }
}

void cpu_gemm_tail_run(const cpu_gemm_tail *tail, void *const *tensors) {
    pass w = {tail, tensors};
    cpu_team_run(run_share, &w);
}
