/* The reference of quantising and dequantising. */
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/move.h"
#include "scout/op/quantize.h"

#include <math.h>
#include <stdbool.h>

static const double half_a_step = 0.5 + 0x1p-9, within = 0x1p-10; /* within: the kind's tolerance */

/* The range of a dynamic quantiser is looked for once: all at a time. */
static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    (void)state;
    return op_is(op, "dynamic") ? op_elements(&op->tensors[output]) : 1;
}

/* Scale and zero point are found in fp32, as ONNX has it, so that no rounding of theirs is in doubt. */
static scout_answer compute_dynamic(const scout_op *op, void *const *tensors, uint32_t output, double *want,
                                    double *spread) {
    const int64_t all = op_elements(&op->tensors[0]);
    double least = 0, greatest = 0, x;
    for (int64_t k = 0; k < all; k++) {
        cpu_number_load(op->input, tensors[0], k, 1, 1, &x);
        least = fmin(least, x), greatest = fmax(greatest, x);
    }
    const float scale = quantize_scale((float)least, (float)greatest), zero = quantize_zero((float)least, scale);
    if (output != 1) {
        want[0] = output == 2 ? (double)scale : (double)zero;
        spread[0] = output == 2 ? want[0] * (0x1p-13 - 1) : 0;
        return SCOUT_OK;
    }
    for (int64_t k = 0; k < all; k++) {
        cpu_number_load(op->input, tensors[0], k, 1, 1, &x);
        want[k] = fmin(255, fmax(0, x / (double)scale + (double)zero));
        spread[k] = half_a_step / within - fabs(want[k]);
    }
    return SCOUT_OK;
}

static const struct {
    uint32_t type;
    double low, high;
} ranges[] = {{SCOUT_INT8, -128, 127},
              {SCOUT_UINT8, 0, 255},
              {SCOUT_INT16, -32768, 32767},
              {SCOUT_UINT16, 0, 65535},
              {SCOUT_INT4, -8, 7},
              {SCOUT_UINT4, 0, 15},
              {SCOUT_FP8E4M3, -448, 448},
              {SCOUT_FP8E5M2, -57344, 57344},
              {SCOUT_INT2, -2, 1},
              {SCOUT_UINT2, 0, 3},
              {SCOUT_FP4E2M1, -6, 6},
              {SCOUT_FP8E4M3FNUZ, -240, 240},
              {SCOUT_FP8E5M2FNUZ, -57344, 57344}};

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch) {
    if (op_is(op, "dynamic")) return compute_dynamic(op, tensors, output, want, spread);
    const quantize_problem p = quantize_problem_of(op);
    const bool whole = cpu_number_whole(p.to);
    double low = 0, high = 0;
    for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++)
        if (ranges[k].type == p.to) low = ranges[k].low, high = ranges[k].high;
    (void)state, (void)output, (void)scratch;
    for (int64_t k = 0; k < count; k++) {
        const int64_t channel = quantize_side(&p, from + k);
        double x, scale, zero = 0;
        cpu_number_load(p.from, tensors[0], from + k, 1, 1, &x);
        cpu_number_load(p.scale_type, tensors[p.scales], channel, 1, 1, &scale);
        if (p.zero_points >= 0)
            cpu_number_load(op->tensors[p.zero_points].type, tensors[p.zero_points], channel, 1, 1, &zero);
        want[k] = p.quantizes ? fmin(high, fmax(low, x / scale + zero)) : (x - zero) * scale;
        const double step = whole ? 1 : move_step_at(p.to, want[k]);
        spread[k] = p.quantizes && step > 0 ? half_a_step * step / within - fabs(want[k]) : move_least(p.to);
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {NULL, grain, compute, NULL};
CPU_WHOLE_REFERENCE(cpu_reference_quantize, SCOUT_QUANTIZE, whole);
