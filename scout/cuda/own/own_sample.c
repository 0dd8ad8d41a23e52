/* sample_points as a candidate: gridsample, roi_align and cropandresize (scout/op/sample.h). */
#include "scout/op/sample.h"

#include "kernels/pass/pool_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"

struct scout_plan {
    sample_points_shape shape;
    int regions, output;
};

_Static_assert((int)SAMPLE_MAX == (int)SAMPLE_POINTS_MAX && (int)SAMPLE_CUBIC == (int)SAMPLE_POINTS_CUBIC &&
                   (int)SAMPLE_REFLECTION == (int)SAMPLE_POINTS_REFLECTION,
               "the kernel numbers as the operation does");

static void plan_of(const scout_op *op, scout_plan *plan) {
    const sample_problem p = sample_problem_of(op, op->tensors[SAMPLE_INPUT].dims);
    plan->shape = (sample_points_shape){.type = (int)op->input,
                                        .side_type = (int)op->tensors[SAMPLE_GRID].type,
                                        .mode = (int)p.mode,
                                        .beyond = (int)p.beyond,
                                        .corners = p.corners,
                                        .half = p.half,
                                        .sampling = p.sampling,
                                        .scale = p.scale,
                                        .count = p.count,
                                        .channels = p.channels,
                                        .in = {p.in[0], p.in[1]},
                                        .out = {p.out[0], p.out[1]},
                                        .crops = p.crops,
                                        .outside = (float)p.outside};
    plan->regions = p.regions || p.crops, plan->output = (int)op->tensor_count - 1;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan plan;
    (void)device;
    if (!sample_is(op)) return scout_say(why, SCOUT_NO, "feature", "only points and regions of images are its work");
    plan_of(op, &plan);
    if (sample_points_fits(&plan.shape)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "sample_points takes fp32, fp16 and bf16");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)needs, (void)why;
    plan_of(op, *out);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = sample_points_launch(&p->shape, t[SAMPLE_INPUT], t[SAMPLE_GRID],
                                           p->regions ? t[SAMPLE_BATCHES] : NULL, t[p->output], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching sample_points", why) : SCOUT_OK;
}

const scout_candidate own_sample = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "sample_points",
    .about = "own kernel for points of a grid and bins of regions; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .plan_bytes = sizeof(scout_plan),
};
