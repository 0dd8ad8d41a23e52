/* The reference of convolutions: a thread adds up one output, product by product. */
#include "kernels/reference/whole.h"

#include "kernels/pass/activate.cuh"
#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

struct sums {
    double sum, squares;
};

__device__ void add(sums &s, double term) { s.sum += term, s.squares += term * term; }

/* Place of the input that output `out` sees through a tap; -1: none. */
__device__ int64_t seen(const whole_conv_axis &a, int transposed, int64_t out, int64_t tap) {
    int64_t at = out * a.stride - a.begin + tap * a.dilation;
    if (transposed) {
        at = out + a.begin - tap * a.dilation;
        if (at < 0 || at % a.stride != 0) return -1;
        at /= a.stride;
    }
    return at >= 0 && at < a.in ? at : -1;
}

/* What all input channels bring through one tap. */
__device__ void add_channels(const whole_conv_problem &p, int64_t channel, int64_t input, int64_t weight, sums &s) {
    const int64_t channels = p.cin / p.group;
    const double zero_in = p.zeros_in ? values_at(p.zeros_in, p.type_in, 0) : p.zero_in;
    const double zero_weight =
        p.zeros_weight ? values_at(p.zeros_weight, p.type_weight, p.zeros_weight_each ? channel : 0) : p.zero_weight;
    for (int64_t c = 0; c < channels; c++)
        add(s, (values_at(p.input, p.type_in, input + c * p.in_c) - zero_in) *
                   (values_at(p.weight, p.type_weight, weight + c * p.w_i) - zero_weight));
}

__device__ void add_taps(const whole_conv_problem &p, int64_t image, int64_t channel, int64_t place, sums &s) {
    const whole_conv_axis &d = p.axes[0], &h = p.axes[1], &w = p.axes[2];
    const int64_t x = place % w.out, y = place / w.out % h.out, z = place / w.out / h.out;
    const int64_t each = p.cout / p.group, group = channel / each;
    const int64_t input = image * p.in_n + group * (p.cin / p.group) * p.in_c;
    const int64_t weight = group * p.w_g + channel % each * p.w_o;
    for (int64_t kd = 0; kd < d.kernel; kd++) {
        const int64_t in_d = seen(d, p.transposed, z, kd);
        for (int64_t kh = 0; kh < h.kernel && in_d >= 0; kh++) {
            const int64_t in_h = seen(h, p.transposed, y, kh);
            for (int64_t kw = 0; kw < w.kernel && in_h >= 0; kw++) {
                const int64_t in_w = seen(w, p.transposed, x, kw);
                if (in_w < 0) continue;
                add_channels(p, channel, input + ((in_d * h.in + in_h) * w.in + in_w) * p.in_step,
                             weight + (kd * h.kernel + kh) * w.kernel + kw, s);
            }
        }
    }
}

/* As requantize_apply and requantize_spread of scout/op/requantize.h. */
__device__ void finish_bytes(const whole_conv_problem &p, double sum, double *want, float *spread) {
    const double y = activate_exactly(p.activation, p.alpha, p.beta, p.factor * sum) + p.zero_out;
    *want = p.rounds ? fmin(p.most, fmax(p.least, y)) : y;
    *spread = (float)(p.rounds ? (0.5 + 1.0 / 512) * 1024 - fabs(*want) : p.factor);
}

__global__ void __launch_bounds__(whole_each_threads)
    convolve(const whole_conv_problem p, int64_t places, double *__restrict__ want, float *__restrict__ spread) {
    const int64_t count = p.images * p.cout * places;
    for (int64_t k = whole_each_first(); k < count; k += whole_each_step()) {
        const int64_t rest = k % (p.cout * places), image = k / (p.cout * places); /* neighbours lie side by side */
        const int64_t channel = p.last ? rest % p.cout : rest / places;
        const int64_t place = p.last ? rest / p.cout : rest % places;
        const int64_t at = image * p.out_n + channel * p.out_c + place * p.out_step;
        sums s = {0, 0};
        add_taps(p, image, channel, place, s);
        if (p.scales) {
            const double scale = values_at(p.scales, p.type_scales, p.scales_each ? channel : 0);
            s.sum *= scale, s.squares *= scale * scale;
        }
        if (p.bias) add(s, values_at(p.bias, p.type_bias, channel));
        if (p.residual) add(s, values_at(p.residual, p.type_out, at));
        if (p.quantised) {
            finish_bytes(p, s.sum, &want[at], &spread[at]);
            continue;
        }
        want[at] = activate_exactly(p.activation, p.alpha, p.beta, s.sum);
        spread[at] = (float)(p.steepest * sqrt(s.squares));
    }
}

} // namespace

cudaError_t whole_conv(const whole_conv_problem *p, double *want, float *spread, cudaStream_t stream) {
    const int64_t places = p->axes[0].out * p->axes[1].out * p->axes[2].out;
    const unsigned blocks = whole_each_blocks(p->images * p->cout * places);
    convolve<<<blocks, whole_each_threads, 0, stream>>>(*p, places, want, spread);
    return cudaGetLastError();
}
