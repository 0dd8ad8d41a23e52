/* Bias, residual and activation of a row in one pass. Activations that need an exponential are left to the library. */
#include "scout/cpu/products/cpu_conv_epilogue.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_vector.h"

#include <float.h>

scout_answer cpu_conv_epilogue_covers(const conv_problem *p, scout_why *why) {
    if (p->type_in != SCOUT_FP32 || p->type_weight != SCOUT_FP32 || p->type_out != SCOUT_FP32)
        return scout_say(why, SCOUT_NO, "type", "convolves fp32 with fp32");
    if (p->w.last) return scout_say(why, SCOUT_NO, "layout", "needs channels before space (nchw)");
    if (p->transposed) return scout_say(why, SCOUT_NO, "feature", "transposed convolutions are not supported");
    if (activation_is_special(&p->activation))
        return scout_say(why, SCOUT_NO, "epilogue", "activations with exponentials are not supported");
    return SCOUT_OK;
}

/* All others are one formula: a clipped line, times x for hardswish. No branches, so that it becomes vector code. */
typedef struct formula {
    float scale, shift, low, high, below; /* below: slope for x < 0 of what is not clipped */
    bool times_x, slope;
} formula;

static float narrow(double x) { return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : (float)x; }

static formula formula_of(const op_activation *a) {
    formula f = {1, 0, -FLT_MAX, FLT_MAX, 1, false, false};
    switch (a->function) {
    case ACTIVATION_RELU: f.below = (float)a->alpha, f.slope = true; break;
    case ACTIVATION_CLIP: f.low = narrow(a->alpha), f.high = narrow(a->beta); break;
    case ACTIVATION_HARDSIGMOID: f.scale = (float)a->alpha, f.shift = (float)a->beta, f.low = 0, f.high = 1; break;
    case ACTIVATION_HARDSWISH: f.scale = 1.0F / 6, f.shift = 0.5F, f.low = 0, f.high = 1, f.times_x = true; break;
    default: break;
    }
    return f;
}

FAST_BODY float clipped(const formula *f, float x) {
    float y = x * f->scale + f->shift;
    y = y < f->low ? f->low : y;
    return y > f->high ? f->high : y;
}

FAST_BODY void row_body(const formula *f, float bias, const float *residual, float *out, int64_t count) {
    if (residual)
        for (int64_t k = 0; k < count; k++) out[k] += residual[k];
    if (f->slope)
        for (int64_t k = 0; k < count; k++) {
            const float x = out[k] + bias;
            out[k] = x < 0 ? f->below * x : x;
        }
    else if (f->times_x)
        for (int64_t k = 0; k < count; k++) {
            const float x = out[k] + bias;
            out[k] = x * clipped(f, x);
        }
    else
        for (int64_t k = 0; k < count; k++) out[k] = clipped(f, out[k] + bias);
}

FAST_WIDTHS(row, (const formula *f, float bias, const float *residual, float *out, int64_t count),
            (f, bias, residual, out, count))

void cpu_conv_epilogue_row(const op_activation *a, float bias, const float *residual, float *out, int64_t count) {
    const formula f = formula_of(a);
    FAST_WIDEST(row, cpu_info_get())(&f, bias, residual, out, count);
}
