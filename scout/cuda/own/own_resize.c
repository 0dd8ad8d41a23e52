/* resize_taps as a candidate: every way to interpolate of scout/op/resize.h. */
#include "kernels/pass/pool_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/pool.h"
#include "scout/op/resize.h"

struct scout_plan {
    resize_taps_shape shape;
};

_Static_assert((int)RESIZE_CUBIC == (int)RESIZE_PASS_CUBIC && (int)RESIZE_ASYMMETRIC == (int)RESIZE_PASS_ASYMMETRIC &&
                   (int)RESIZE_CEIL == (int)RESIZE_PASS_CEIL && (int)RESIZE_AXES == (int)POOL_AXES,
               "the kernel numbers as the operation does");

static resize_taps_shape shape_of(const scout_op *op) {
    const resize_problem p = resize_problem_of(op, op->tensors[POOL_INPUT].dims);
    resize_taps_shape s = {.type = (int)op->input,
                           .mode = (int)p.mode,
                           .way = (int)p.way,
                           .rounding = (int)p.rounding,
                           .inside = p.inside,
                           .cubic = p.cubic,
                           .planes = p.planes};
    for (int k = 0; k < RESIZE_AXES; k++) {
        s.in[k] = p.in[k], s.out[k] = p.out[k];
        s.over[k] = p.over[k], s.under[k] = p.under[k];
    }
    return s;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!resize_is(op)) return scout_say(why, SCOUT_NO, "feature", "only interpolation is its work");
    const resize_taps_shape s = shape_of(op);
    if (!resize_taps_fits(&s)) return scout_say(why, SCOUT_NO, "type", "resize_taps interpolates fp32, fp16 and bf16");
    if (resize_taps_workspace(&s) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory",
                         "places and weights of so long an axis do not fit into the workspace");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)why;
    (*out)->shape = shape_of(op);
    needs->workspace_bytes = resize_taps_workspace(&(*out)->shape);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    const int error = resize_taps_launch(&p->shape, args->tensors[POOL_INPUT], args->tensors[POOL_OUTPUT],
                                         args->workspace, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching resize_taps", why) : SCOUT_OK;
}

const scout_candidate own_resize = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "resize_taps",
    .about = "own kernel for interpolation; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .plan_bytes = sizeof(scout_plan),
};
