/* The reference of rotary embeddings, in fp64, as scout/cpu/reference/cpu_reference_rotary.c. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_lanes.cuh"

namespace {

__device__ void turn(const whole_rotary_problem &w, int64_t row, int64_t d, double *want, float *spread) {
    const rotary_problem &p = w.p;
    const int64_t half = p.rotated / 2, from = row * p.dim;
    const double x = values_at(w.x, p.type, from + d);
    if (d >= p.rotated) {
        *want = x;
        *spread = (float)fabs(x);
        return;
    }
    const bool first = p.interleaved ? d % 2 == 0 : d < half;
    const int64_t pair = p.interleaved ? d / 2 : d % half, other = p.interleaved ? d ^ 1 : first ? d + half : d - half;
    const int64_t angle = rotary_step(&p, row) * p.angles + (p.angles == half ? pair : d);
    const double a = x * values_at(w.cosine, p.type, angle);
    const double b = values_at(w.x, p.type, from + other) * values_at(w.sine, p.type, angle);
    *want = first ? a - b : a + b;
    *spread = (float)fmax(hypot(a, b), p.type == DTYPE_FP16 ? 0x1p-14 : 0); /* below, its steps grow no smaller */
}

__global__ void rotary_elements(whole_rotary_problem w, int64_t count, double *want, float *spread) {
    const int64_t step = (int64_t)gridDim.x * whole_threads;
    for (int64_t at = blockIdx.x * (int64_t)whole_threads + threadIdx.x; at < count; at += step)
        turn(w, at / w.p.dim, at % w.p.dim, &want[at], &spread[at]);
}

} // namespace

cudaError_t whole_rotary(const whole_rotary_problem *w, double *want, float *spread, cudaStream_t stream) {
    const int64_t count = w->p.batch * w->p.heads * w->p.steps * w->p.dim;
    rotary_elements<<<whole_blocks(count, 1), whole_threads, 0, stream>>>(*w, count, want, spread);
    return cudaGetLastError();
}
