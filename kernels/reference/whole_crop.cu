/* The reference of crops: a thread mixes one element, by the weights that its distance from all places beside it tells. */
#include "kernels/reference/whole_crop.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

/* false: beyond the image. */
__device__ bool place(const whole_crop_problem &p, int64_t region, const int64_t *of, double *at) {
    for (int d = 0; d < 2; d++) {
        const double from = values_at(p.rois, p.type, 4 * region + d), to = values_at(p.rois, p.type, 4 * region + 2 + d);
        const double last = (double)(p.in[d] - 1), size = __dmul_rn(to - from, last), start = __dmul_rn(from, last);
        at[d] = p.out[d] > 1 ? __dadd_rn(start, __dmul_rn((double)of[d], size / (double)(p.out[d] - 1)))
                             : __dadd_rn(start, size / 2);
        if (!(at[d] >= 0) || !(at[d] <= last)) return false;
        if (p.nearest) at[d] = round(at[d]);
    }
    return true;
}

__global__ void __launch_bounds__(whole_each_threads)
    crop(const whole_crop_problem p, int64_t count, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t k = whole_each_first(); k < count; k += whole_each_step()) {
        const int64_t of[2] = {k / p.out[1] % p.out[0], k % p.out[1]}, rest = k / p.out[1] / p.out[0];
        const int64_t plane = p.batches[rest / p.channels] * p.channels + rest % p.channels;
        double at[2], sum = 0, squares = 0;
        const bool inside = place(p, rest / p.channels, of, at);
        for (int n = 0; inside && n < 4; n++) {
            const double row = floor(at[0]) + (double)(n / 2), col = floor(at[1]) + (double)(n % 2);
            const double weight = fmax(0.0, 1 - fabs(at[0] - row)) * fmax(0.0, 1 - fabs(at[1] - col));
            if (weight == 0) continue;
            const double x = weight * values_at(p.input, p.type, (plane * p.in[0] + (int64_t)row) * p.in[1] + (int64_t)col);
            sum += x, squares += x * x;
        }
        want[k] = inside ? sum : p.outside;
        spread[k] = (float)(fmax(sqrt(squares), p.type == DTYPE_FP16 ? 0x1p-14 : 0.0) + 0x1p-24);
    }
}

} // namespace

cudaError_t whole_crop(const whole_crop_problem *p, double *want, float *spread, cudaStream_t stream) {
    const int64_t count = p->count * p->channels * p->out[0] * p->out[1];
    crop<<<whole_each_blocks(count), whole_each_threads, 0, stream>>>(*p, count, want, spread);
    return cudaGetLastError();
}
