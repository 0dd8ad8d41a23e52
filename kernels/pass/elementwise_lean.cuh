/* One minimal kernel for each operator of floats. A launch of microseconds shows every instruction and every parameter
 * that a thread waits for; large ones gain too. A thread has one piece of 16 bytes; operands lie as the output does, or
 * the same in every row, or one number for each row. */
#pragma once

#include "kernels/pass/elementwise_operators.cuh"
#include "kernels/pass/pass.cuh"

namespace lean {

struct job {
    const void *in[2];
    void *out;
    uint32_t count;
    pass::divisor row;         /* by the elements of a row */
    uint32_t step[2], next[2]; /* of operands, in elements: from one place to the next (0 or 1), and from row to row */
    operators::numbers numbers;
};

enum { most_threads = 512 };

/* Where operand k has what output element `at` is made of. */
template <bool ROWS> __device__ __forceinline__ uint32_t find(const job &p, int k, uint32_t at) {
    if (!ROWS) return at;
    const uint32_t row = pass::divide(at, p.row);
    return (at - row * p.row.by) * p.step[k] + row * p.next[k];
}

/* All loads are on their way before the first number is needed. */
template <int TYPE, int WHAT, int N, bool ROWS> __device__ __forceinline__ void piece(const job &p, uint32_t at) {
    constexpr int size = TYPE == PASS_FP32 ? 4 : 2, vec = 16 / size;
    pass::bits<size, vec> raw[N];
    pass::bits<size, 1> one[N];
    float x[N][vec];
#pragma unroll
    for (int k = 0; k < N; k++) {
        const uint32_t from = find<ROWS>(p, k, at);
        raw[k] = {}, one[k] = {};
        if (ROWS && p.step[k] == 0)
            one[k] = pass::load<size, 1>(p.in[k], from);
        else
            raw[k] = pass::load<size, vec>(p.in[k], from);
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
#pragma unroll
        for (int i = 0; i < vec && ROWS; i++) raw[k].at[i] = p.step[k] == 0 ? one[k].at[0] : raw[k].at[i];
        pass::widen<vec>(TYPE, raw[k], x[k]);
    }
    operators::apply<vec>(WHAT, p.numbers, x);
    pass::narrow<vec>(TYPE, x[0], raw[0]);
    pass::store<size, vec>(p.out, at, raw[0]);
}

template <int TYPE, int WHAT, int N, bool ROWS> __device__ __forceinline__ void single(const job &p, uint32_t at) {
    constexpr int size = TYPE == PASS_FP32 ? 4 : 2;
    pass::bits<size, 1> raw;
    float x[N][1];
#pragma unroll
    for (int k = 0; k < N; k++) {
        raw = pass::load<size, 1>(p.in[k], find<ROWS>(p, k, at));
        pass::widen<1>(TYPE, raw, x[k]);
    }
    operators::apply<1>(WHAT, p.numbers, x);
    pass::narrow<1>(TYPE, x[0], raw);
    pass::store<size, 1>(p.out, at, raw);
}

/* ROWS: operands lie as step and next say; else as the output. */
template <int TYPE, int WHAT, int N, bool ROWS> __global__ void __launch_bounds__(most_threads, 2) kernel(const job p) {
    constexpr uint32_t vec = TYPE == PASS_FP32 ? 4 : 8;
    const uint32_t stride = gridDim.x * blockDim.x * vec;
    for (uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) * vec; at < p.count; at += stride) {
        if (at + vec <= p.count)
            piece<TYPE, WHAT, N, ROWS>(p, at);
        else
            for (uint32_t i = at; i < p.count; i++) single<TYPE, WHAT, N, ROWS>(p, i);
    }
}

/* --- choosing --- */

enum { types = 3 };

struct choice {
    int what, inputs;
    const void *dense[types], *rows[types]; /* NULL: there is none */
};

#define LEAN_OF(name, inputs, is)                                                                                      \
    {                                                                                                                  \
        (const void *)kernel<PASS_FP16, ELEMENTWISE_PASS_##name, inputs, is>,                                          \
            (const void *)kernel<PASS_BF16, ELEMENTWISE_PASS_##name, inputs, is>,                                      \
            (const void *)kernel<PASS_FP32, ELEMENTWISE_PASS_##name, inputs, is>                                       \
    }
#define ONE(name)                                                                                                      \
    {                                                                                                                  \
        ELEMENTWISE_PASS_##name, 1, LEAN_OF(name, 1, false), {}                                                        \
    }
#define TWO(name)                                                                                                      \
    { ELEMENTWISE_PASS_##name, 2, LEAN_OF(name, 2, false), LEAN_OF(name, 2, true) }

const choice choices[] = {
    ONE(abs),          ONE(neg),        ONE(relu),        ONE(relu6),
    ONE(squared_relu), ONE(sign),       ONE(clip),        ONE(ceil),
    ONE(floor),        ONE(round),      ONE(sqrt),        ONE(reciprocal),
    ONE(exp),          ONE(log),        ONE(sin),         ONE(cos),
    ONE(tanh),         ONE(erf),        ONE(sigmoid),     ONE(silu),
    ONE(swish),        ONE(quickgelu),  ONE(gelu),        ONE(gelu_tanh),
    ONE(mish),         ONE(softplus),   ONE(softsign),    ONE(elu),
    ONE(celu),         ONE(selu),       ONE(leakyrelu),   ONE(thresholdedrelu),
    ONE(hardsigmoid),  ONE(hardswish),  ONE(pow),         TWO(add),
    TWO(sub),          TWO(mul),        TWO(div),         TWO(min),
    TWO(max),          TWO(sum),        TWO(prelu),       TWO(swiglu),
    TWO(geglu),        TWO(geglu_tanh), TWO(quick_geglu), TWO(reglu),
    TWO(biasgelu),     TWO(fastgelu),
};
#undef ONE
#undef TWO
#undef LEAN_OF

inline int type_of(int type) { return type == PASS_FP16 ? 0 : type == PASS_BF16 ? 1 : type == PASS_FP32 ? 2 : -1; }

/* The kernel and its parameters; NULL: these operands do not fit. Only of operands that are found in pieces: pointers
 * at multiples of 16 bytes, and rows that are whole pieces where there are any. */
inline const void *choose(const elementwise_pass *s, const void *const *in, void *out, job *j) {
    const int type = type_of(s->type);
    if (type < 0 || s->truth || s->quant.is || s->inputs > 2 || s->rank > 2 || s->count >= (int64_t)1 << 30)
        return NULL;
    bool dense = true;
    j->out = out;
    j->count = (uint32_t)s->count;
    j->row = pass::divisor_of(s->dims[0]);
    j->numbers = {(float)s->alpha, (float)s->beta, s->low, s->high};
    for (int k = 0; k < s->inputs; k++) {
        const int64_t next = s->rank == 2 ? s->strides[k][1] : 0, step = s->strides[k][0];
        if (next < 0 || next > s->dims[0] || (step != 0 && step != 1)) return NULL;
        j->in[k] = in ? in[k] : NULL;
        j->step[k] = (uint32_t)step, j->next[k] = (uint32_t)next;
        dense = dense && step == 1 && (s->rank == 1 || next == s->dims[0]);
    }
    for (const choice &c : choices)
        if (c.what == s->what && c.inputs == s->inputs) return (dense ? c.dense : c.rows)[type];
    return NULL;
}

} // namespace lean
