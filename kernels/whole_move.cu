/* The reference of moves: a thread asks where its element comes from, fetches it and converts it. */
#include "kernels/whole_move.h"

#include "kernels/values.cuh"
#include "kernels/whole_each.cuh"

namespace {

constexpr double least_half = 1.0 / 16384; /* below it the steps of fp16 grow no smaller */

struct origin {
    int input;
    int64_t at; /* -1: none, a zero */
};

__device__ origin from_places(const whole_move_problem &p, int64_t k) {
    int64_t at = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
        const whole_move_dim &dim = p.dims[d];
        int64_t from = k % dim.count * dim.step - dim.before;
        k /= dim.count;
        if (p.how == WHOLE_MOVE_PADDED && (from < 0 || from >= dim.length)) return {0, -1};
        at += from % dim.length * dim.stride;
    }
    return {0, at};
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
        const int64_t i = which * p.parts + part;
        const int64_t index =
            p.index_type == SCOUT_INT64 ? (int64_t)((const long long *)p.indices)[i] : ((const int32_t *)p.indices)[i];
        place = place * p.part_lengths[part] + index;
    }
    return {0, (outer * p.length + place) * p.inner + low};
}

__device__ bool cut_off(uint32_t to) {
    return to == SCOUT_INT32 || to == SCOUT_INT64 || to == SCOUT_INT8 || to == SCOUT_UINT8;
}

__global__ void __launch_bounds__(whole_each_threads)
    move(const whole_move_problem p, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t k = whole_each_first(); k < p.count; k += whole_each_step()) {
        const origin o = p.how == WHOLE_MOVE_JOINED     ? from_joined(p, k)
                         : p.how == WHOLE_MOVE_GATHERED ? from_gathered(p, k)
                                                        : from_places(p, k);
        double x = o.at < 0 ? 0 : values_at(p.inputs[o.input], p.from, o.at);
        if (p.to == SCOUT_BOOL) x = x != 0;
        want[k] = cut_off(p.to) ? trunc(x) : x;
        spread[k] = p.to == SCOUT_FP16 ? (float)least_half : 0;
    }
}

} // namespace

cudaError_t whole_move(const whole_move_problem *p, double *want, float *spread, cudaStream_t stream) {
    move<<<whole_each_blocks(p->count), whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
