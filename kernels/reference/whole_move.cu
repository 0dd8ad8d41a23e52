/* The reference of moves: a thread computes the source of its element, loads it and converts it. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

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

struct whole_range {
    double count, least;
};

__device__ whole_range range_of(uint32_t type) {
    switch (type) {
    case DTYPE_INT2: return {4, -2};
    case DTYPE_UINT2: return {4, 0};
    case DTYPE_INT4: return {16, -8};
    case DTYPE_UINT4: return {16, 0};
    case DTYPE_INT8: return {256, -128};
    case DTYPE_UINT8: return {256, 0};
    case DTYPE_INT32: return {0x1p32, -0x1p31};
    case DTYPE_INT64: return {0x1p64, -0x1p63};
    default: return {0, 0};
    }
}

/* The power of two that is kept of a number, within those that there are. */
__device__ double power_of(double x, int64_t up) {
    const double size = fabs(x);
    if (size == 0) return 0x1p-127;
    const int exponent = ilogb(size);
    const bool above = scalbn(size, 23 - exponent) + (double)up >= 0x1p24;
    return scalbn(1.0, min(127, max(-127, exponent + above)));
}

/* Whole numbers lose their upper bits, floats their fraction and what is beyond the range; of fp4 the end is no longer
 * beyond what inputs reach. */
__device__ double cast(const whole_move_problem &p, double x) {
    const whole_range r = range_of(p.to);
    if (p.to == DTYPE_BOOL) return x != 0;
    if (p.to == DTYPE_FP4E2M1) x = fmin(fmax(x, -6.0), 6.0);
    const double step = values_step(p.to, x);
    if (step > 0) return rint(x / step) * step;
    if (p.to == DTYPE_FP8E8M0) return power_of(x, p.up);
    if (r.count == 0) return x;
    x = trunc(x);
    if (range_of(p.from).count > 0) return x - floor((x - r.least) / r.count) * r.count;
    return fmin(fmax(x, r.least), r.least + r.count - 1);
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
        want[k] = p.from == p.to ? x : cast(p, x);
        spread[k] = (float)values_least(p.to);
    }
}

} // namespace

cudaError_t whole_move(const whole_move_problem *p, double *want, float *spread, cudaStream_t stream) {
    move<<<whole_each_blocks(p->count), whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
