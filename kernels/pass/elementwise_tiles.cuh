/* How elementwise_pass finds, reads and writes elements: some of a thread's, in pieces of 16 bytes where they lie
 * together, brought to what is computed in (float, int, long long) and back. */
#pragma once

#include "kernels/pass/elementwise_operators.cuh"
#include "kernels/pass/pass.cuh"

namespace tiles {

/* How operands are found. flat: they lie as the output does, or are one number. rows: the same along the innermost
 * dimension, in whole pieces. single: anywhere, one by one. */
enum { flat, rows, single };

struct job {
    int what, inputs, type, size, truth;
    int64_t count, tiles;
    operators::numbers numbers;
    elementwise_pass_quant quant;
    const void *in[ELEMENTWISE_PASS_INPUTS];
    void *out;
    pass::radix places;
    int64_t strides[ELEMENTWISE_PASS_INPUTS][PASS_RANK];
};

/* Where `n` operands from `first` on lie for output element `at`. */
template <int N> __device__ __forceinline__ void find(const job &p, int mode, int first, int64_t at, int64_t *to) {
    if (mode == flat) {
#pragma unroll
        for (int k = 0; k < N; k++) to[k] = at * p.strides[first + k][0];
        return;
    }
#pragma unroll
    for (int k = 0; k < N; k++) to[k] = 0;
    for (int d = 0; d < p.places.rank; d++) {
        const int64_t place = pass::radix_next(p.places, d, at);
#pragma unroll
        for (int k = 0; k < N; k++) to[k] += place * p.strides[first + k][d];
    }
}

/* Output element that a thread's piece `j` begins with. */
template <int VEC> __device__ __forceinline__ int64_t begin(int64_t tile, int elements, int j) {
    return (tile * elements + (int64_t)j * VEC) * blockDim.x + (int64_t)threadIdx.x * VEC;
}

/* The pieces of one operand. `whole`: no piece of this tile reaches beyond the end. */
template <int SIZE, int VEC, int S>
__device__ __forceinline__ void fetch(const void *in, bool dense, bool whole, int64_t count, const int64_t *at,
                                      const int64_t *from, int step, pass::bits<SIZE, VEC> *to) {
    if (whole && (dense || VEC == 1)) {
#pragma unroll
        for (int j = 0; j < S; j++) to[j] = pass::load<SIZE, VEC>(in, from[j * step]);
    } else if (dense || VEC == 1) {
#pragma unroll
        for (int j = 0; j < S; j++) to[j] = pass::load_some<SIZE, VEC>(in, from[j * step], count - at[j]);
    } else {
#pragma unroll
        for (int j = 0; j < S; j++)
            to[j] = at[j] < count ? pass::splat<SIZE, VEC>(in, from[j * step]) : pass::bits<SIZE, VEC>{};
    }
}

template <int SIZE, int VEC, int S>
__device__ __forceinline__ void put(const job &p, bool whole, const int64_t *at, const pass::bits<SIZE, VEC> *x) {
#pragma unroll
    for (int j = 0; j < S; j++) {
        if (whole)
            pass::store<SIZE, VEC>(p.out, at[j], x[j]);
        else
            pass::store_some<SIZE, VEC>(p.out, at[j], p.count - at[j], x[j]);
    }
}

/* --- the three arithmetics --- */

template <int VEC> __device__ __forceinline__ void to_values(int type, const pass::bits<1, VEC> &x, int *to) {
#pragma unroll
    for (int i = 0; i < VEC; i++) to[i] = type == PASS_INT8 ? (int)(int8_t)x.at[i] : (int)x.at[i];
}
template <int VEC> __device__ __forceinline__ void to_values(int, const pass::bits<4, VEC> &x, int *to) {
#pragma unroll
    for (int i = 0; i < VEC; i++) to[i] = (int)x.at[i];
}
template <int VEC> __device__ __forceinline__ void to_values(int, const pass::bits<8, VEC> &x, long long *to) {
#pragma unroll
    for (int i = 0; i < VEC; i++) to[i] = (long long)x.at[i];
}
template <int SIZE, int VEC>
__device__ __forceinline__ void to_values(int type, const pass::bits<SIZE, VEC> &x, float *to) {
    pass::widen<VEC>(type, x, to);
}

template <int SIZE, int VEC, class C>
__device__ __forceinline__ void from_values(int, const C *x, pass::bits<SIZE, VEC> &to) {
#pragma unroll
    for (int i = 0; i < VEC; i++) to.at[i] = (typename pass::unit<SIZE>::type)x[i];
}
template <int SIZE, int VEC>
__device__ __forceinline__ void from_values(int type, const float *x, pass::bits<SIZE, VEC> &to) {
    pass::narrow<VEC>(type, x, to);
}

template <class C> struct widths;
template <> struct widths<float> {
    enum { small = 2, large = 4 };
};
template <> struct widths<int> {
    enum { small = 1, large = 4 };
};
template <> struct widths<long long> {
    enum { small = 8, large = 8 };
};

template <int SIZE, int MODE> struct piece {
    enum { elements = MODE == single ? 1 : 16 / SIZE };
};

/* Operands `first` to first + N - 1 as values. */
template <int SIZE, class C, int N, int E, int MODE>
__device__ __forceinline__ void read(const job &p, int64_t tile, int first, C (&x)[N][E]) {
    constexpr int vec = piece<SIZE, MODE>::elements, pieces = E / vec;
    const bool whole = (tile + 1) * E * blockDim.x <= p.count;
    pass::bits<SIZE, vec> raw[N][pieces];
    int64_t at[pieces], from[pieces][N];
#pragma unroll
    for (int j = 0; j < pieces; j++) {
        at[j] = begin<vec>(tile, E, j);
        find<N>(p, MODE, first, at[j] < p.count ? at[j] : 0, from[j]);
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        fetch<SIZE, vec, pieces>(p.in[first + k], p.strides[first + k][0] == 1, whole, p.count, at, &from[0][k], N,
                                 raw[k]);
#pragma unroll
    for (int k = 0; k < N; k++) {
#pragma unroll
        for (int j = 0; j < pieces; j++) to_values(p.type, raw[k][j], &x[k][j * vec]);
    }
}

template <int SIZE, class C, int E, int MODE>
__device__ __forceinline__ void write(const job &p, int64_t tile, const C (&x)[E]) {
    constexpr int vec = piece<SIZE, MODE>::elements, pieces = E / vec;
    const bool whole = (tile + 1) * E * blockDim.x <= p.count;
    int64_t at[pieces];
#pragma unroll
    for (int j = 0; j < pieces; j++) at[j] = begin<vec>(tile, E, j);
    if (p.truth) {
        pass::bits<1, vec> y[pieces];
#pragma unroll
        for (int k = 0; k < E; k++) y[k / vec].at[k % vec] = x[k] != 0;
        put<1, vec, pieces>(p, whole, at, y);
    } else {
        pass::bits<SIZE, vec> y[pieces];
#pragma unroll
        for (int j = 0; j < pieces; j++) from_values(p.type, &x[j * vec], y[j]);
        put<SIZE, vec, pieces>(p, whole, at, y);
    }
}

template <class C, int N, int E, int MODE>
__device__ __forceinline__ void read_any(const job &p, int64_t tile, int first, C (&x)[N][E]) {
    if (p.size == widths<C>::small)
        read<widths<C>::small, C, N, E, MODE>(p, tile, first, x);
    else if constexpr ((int)widths<C>::small != (int)widths<C>::large)
        read<widths<C>::large, C, N, E, MODE>(p, tile, first, x);
}

template <class C, int E, int MODE>
__device__ __forceinline__ void write_any(const job &p, int64_t tile, const C (&x)[E]) {
    if (p.size == widths<C>::small)
        write<widths<C>::small, C, E, MODE>(p, tile, x);
    else if constexpr ((int)widths<C>::small != (int)widths<C>::large)
        write<widths<C>::large, C, E, MODE>(p, tile, x);
}

} // namespace tiles
