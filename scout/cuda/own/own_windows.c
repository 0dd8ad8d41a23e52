/* windows_any as a candidate: norms of windows, and maxima that tell their places (scout/op/pool.h). */
#include "kernels/pass/pool_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/pool.h"

struct scout_plan {
    windows_any_shape shape;
    int indices;
};

static int plan_of(const scout_op *op, scout_plan *plan) {
    const pool_problem p = pool_problem_of(op);
    plan->indices = p.indices;
    plan->shape = (windows_any_shape){.type = (int)p.type,
                                      .order = (float)p.order,
                                      .columns = p.columns,
                                      .n = p.n,
                                      .channels = p.channels,
                                      .in_n = p.in_n,
                                      .in_c = p.in_c,
                                      .in_step = p.in_step,
                                      .out_n = p.out_n,
                                      .out_c = p.out_c,
                                      .out_step = p.out_step};
    for (int k = 0; k < POOL_AXES; k++) {
        const window_axis *const a = &p.w.axes[k];
        const int64_t all[] = {a->in, a->out, a->kernel, a->stride, a->dilation, a->begin, a->end};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            if (all[i] > POOL_LARGEST) return 0;
        plan->shape.axes[k] = (pool_axis){(int)a->in,       (int)a->out,   (int)a->kernel, (int)a->stride,
                                          (int)a->dilation, (int)a->begin, (int)a->end};
    }
    return windows_any_fits(&plan->shape);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan plan;
    (void)device;
    if (!pool_is_rare(op))
        return scout_say(why, SCOUT_NO, "feature", "only norms of windows and places of maxima are its work");
    if (plan_of(op, &plan)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "windows_any counts along each axis in 32 bits");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)needs, (void)why;
    (void)plan_of(op, *out);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error =
        windows_any_launch(&p->shape, t[POOL_INPUT], t[POOL_OUTPUT], p->indices ? t[POOL_INDICES] : NULL, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching windows_any", why) : SCOUT_OK;
}

const scout_candidate own_windows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 40,
    .name = "windows_any",
    .about = "own kernel for norms of windows, and maxima that tell their places",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .plan_bytes = sizeof(scout_plan),
};
