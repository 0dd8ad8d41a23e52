/* The reference of moves: a thread computes the source of its element, loads it and converts it. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

/* Below it the steps of a short float grow no smaller. */
__device__ float least_of(uint32_t to) {
    if (to == DTYPE_FP8E4M3FN) return 1.0f / 64;
    return to == DTYPE_FP16 || to == DTYPE_FP8E5M2 ? 1.0f / 16384 : 0;
}

struct origin {
    int input;
    int64_t at; /* -1: none, a zero */
};

/* As a walk to and fro between the ends, in circles, or one that stays at the end. */
__device__ int64_t from_beyond(int beyond, int64_t from, int64_t length) {
    if (beyond == WHOLE_MOVE_EDGE) return from < 0 ? 0 : from < length ? from : length - 1;
    const int64_t last = length - 1, round = beyond == WHOLE_MOVE_WRAPPED ? length : last > 0 ? 2 * last : 1;
    while (from < 0) from += round;
    from %= round;
    return beyond == WHOLE_MOVE_WRAPPED || from <= last ? from : round - from;
}

__device__ origin from_places(const whole_move_problem &p, int64_t k) {
    int64_t at = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
        const whole_move_dim &dim = p.dims[d];
        int64_t from = k % dim.count * dim.step - dim.before;
        k /= dim.count;
        if (p.how == WHOLE_MOVE_PADDED && (from < 0 || from >= dim.length)) {
            if (p.beyond == WHOLE_MOVE_ZEROS) return {0, -1};
            from = from_beyond(p.beyond, from, dim.length);
        }
        at += from % dim.length * dim.stride;
    }
    return {0, at};
}

__device__ int64_t index_at(const whole_move_problem &p, int64_t i) {
    return p.index_type == DTYPE_INT64 ? (int64_t)((const long long *)p.indices)[i] : ((const int32_t *)p.indices)[i];
}

__device__ origin from_elements(const whole_move_problem &p, int64_t k) {
    int64_t at = 0, rest = k;
    for (int d = p.rank - 1; d >= 0; d--) {
        at += (d == p.axis ? index_at(p, k) : rest % p.dims[d].count) * p.dims[d].stride;
        rest /= p.dims[d].count;
    }
    return {0, at};
}

__device__ origin from_triangle(const whole_move_problem &p, int64_t k) {
    const int64_t cols = p.dims[p.rank - 1].count, behind = k % cols - k / cols % p.dims[p.rank - 2].count;
    return {0, (p.upper ? behind >= p.diagonal : behind <= p.diagonal) ? k : -1};
}

__device__ double marked(const whole_move_problem &p, int64_t k) {
    int64_t inner = 1; /* elements behind a place along the axis */
    for (int d = p.axis + 1; d < p.rank; d++) inner *= p.dims[d].count;
    const int64_t depth = p.dims[p.axis].count, place = k / inner % depth;
    return index_at(p, k / inner / depth * inner + k % inner) == place;
}

__device__ origin from_joined(const whole_move_problem &p, int64_t k) {
    int64_t inner = 1; /* elements behind a place along the axis */
    for (int d = p.axis + 1; d < p.rank; d++) inner *= p.dims[d].count;
    const int64_t low = k % inner, outer = k / inner / p.dims[p.axis].count;
    int64_t place = k / inner % p.dims[p.axis].count;
    int input = 0;
    while (place >= p.lengths[input]) place -= p.lengths[input++];
    return {input, (outer * p.lengths[input] + place) * inner + low};
}

__device__ origin from_gathered(const whole_move_problem &p, int64_t k) {
    const int64_t low = k % p.inner, which = k / p.inner % p.gathered, outer = k / p.inner / p.gathered;
    int64_t place = 0;
    for (int part = 0; part < p.parts; part++) {
        place = place * p.part_lengths[part] + index_at(p, which * p.parts + part);
    }
    return {0, (outer * p.length + place) * p.inner + low};
}

/* Whole numbers lose their upper bits, floats their fraction and what is beyond the range. */
__device__ double cast(uint32_t from, uint32_t to, double x) {
    const bool whole = from == DTYPE_INT64 || from == DTYPE_INT32 || from == DTYPE_INT8 || from == DTYPE_UINT8;
    const double range = to == DTYPE_INT8 || to == DTYPE_UINT8 ? 256.0
                         : to == DTYPE_INT32                   ? 4294967296.0
                         : to == DTYPE_INT64                   ? 18446744073709551616.0
                                                               : 0;
    const double least = to == DTYPE_UINT8 ? 0 : -range / 2;
    if (to == DTYPE_BOOL) return x != 0;
    if (range == 0) return x;
    x = trunc(x);
    if (whole) return x - floor((x - least) / range) * range;
    return fmin(fmax(x, least), least + range - 1);
}

__global__ void __launch_bounds__(whole_each_threads)
    move(const whole_move_problem p, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t k = whole_each_first(); k < p.count; k += whole_each_step()) {
        if (p.how == WHOLE_MOVE_MARKED) {
            want[k] = marked(p, k), spread[k] = 0;
            continue;
        }
        const origin o = p.how == WHOLE_MOVE_JOINED     ? from_joined(p, k)
                         : p.how == WHOLE_MOVE_ELEMENTS ? from_elements(p, k)
                         : p.how == WHOLE_MOVE_TRIANGLE ? from_triangle(p, k)
                         : p.how == WHOLE_MOVE_GATHERED ? from_gathered(p, k)
                                                        : from_places(p, k);
        const double x = o.at < 0 ? 0 : values_at(p.inputs[o.input], p.from, o.at);
        want[k] = p.from == p.to ? x : cast(p.from, p.to, x);
        spread[k] = least_of(p.to);
    }
}

} // namespace

cudaError_t whole_move(const whole_move_problem *p, double *want, float *spread, cudaStream_t stream) {
    move<<<whole_each_blocks(p->count), whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
