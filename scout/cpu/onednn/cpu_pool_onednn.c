/* Pools by oneDNN: the baseline of this device. */
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/cpu/onednn/cpu_onednn_single.h"
#include "scout/op/pool.h"

#include <limits.h>

static bool activations(cpu_onednn_md *md, const scout_tensor *t, bool last) {
    int order[SCOUT_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (last) order[1] = (int)t->rank - 1;
    for (int d = 2; d < (int)t->rank && last; d++) order[d] = d - 1;
    return cpu_onednn_plan_md(md, t, order);
}

/* Padding behind, as the library counts: up to where the last window ends. */
static int64_t padding_behind(const window_axis *a) {
    const int64_t used = (a->out - 1) * a->stride + window_reach(a) - a->in - a->begin;
    return used > a->end ? used : a->end;
}

static dnnl_status_t create(cpu_onednn_plan *c, const pool_problem *p, const cpu_onednn_md *src,
                            const cpu_onednn_md *dst, uint64_t limit) {
    const dnnl_alg_kind_t how = !p->average ? dnnl_pooling_max
                                : p->padded ? dnnl_pooling_avg_include_padding
                                            : dnnl_pooling_avg_exclude_padding;
    cpu_onednn_window w;
    for (int k = 0; k < p->w.spatial; k++) {
        const window_axis *a = &p->w.axes[WINDOW_AXES - p->w.spatial + k];
        w.kernel[k] = a->kernel, w.strides[k] = a->stride, w.dilates[k] = a->dilation - 1;
        w.begin[k] = a->begin, w.end[k] = padding_behind(a);
    }
    dnnl_status_t status = dnnl_success;
    for (int ours = 1; ours >= 0; ours--) { /* scratch memory is the harness's, unless it would be too much */
        dnnl_primitive_attr_t attr = NULL;
        status = ours ? cpu_onednn_plan_attr(c, &attr) : c->lib->dnnl_primitive_attr_create(&attr);
        if (status == dnnl_success) status = cpu_onednn_post_sum(c->lib, attr, &p->quant, 1, &p->activation);
        if (status == dnnl_success) status = cpu_onednn_pooling(&c->pd, how, src, dst, &w, attr);
        if (attr) c->lib->dnnl_primitive_attr_destroy(attr);
        if (status != dnnl_success || !ours || cpu_onednn_plan_scratch_fits(c, limit)) return status;
    }
    return status;
}

static scout_answer describe(cpu_onednn_plan *c, const scout_op *op, scout_why *why) {
    const pool_problem p = pool_problem_of(op);
    cpu_onednn_md src = {.there = false}, dst = {.there = false};
    dnnl_status_t status = dnnl_invalid_arguments;
    if (activations(&src, &op->tensors[POOL_INPUT], p.w.last) && activations(&dst, &op->tensors[POOL_OUTPUT], p.w.last))
        status = create(c, &p, &src, &dst, op->workspace_limit);
    (void)cpu_onednn_plan_part(c, DNNL_ARG_SRC, POOL_INPUT, src); /* there is room for both */
    (void)cpu_onednn_plan_part(c, DNNL_ARG_DST, POOL_OUTPUT, dst);
    if (status == dnnl_invalid_arguments)
        return scout_say(why, SCOUT_NO, "shape", "oneDNN %s has no such window", c->lib->version);
    return status == dnnl_success ? cpu_onednn_single_optimised(c, "pooling", why)
                                  : cpu_onednn_plan_refuse(c, "pooling", status, why);
}

static bool fits(const pool_problem *p) {
    bool good = p->n <= INT_MAX && p->channels <= INT_MAX;
    for (int k = 0; k < WINDOW_AXES; k++) {
        const window_axis *a = &p->w.axes[k];
        good =
            good && a->in + a->begin + a->end <= INT_MAX / 4 && a->stride <= INT_MAX / 4 && a->dilation <= INT_MAX / 4;
    }
    return good;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (!pool_has_windows(op)) return scout_say(why, SCOUT_NO, "feature", "interpolation is not its work");
    const pool_problem p = pool_problem_of(op);
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (!fits(&p)) return scout_say(why, SCOUT_NO, "shape", "a dimension exceeds the limit of oneDNN's kernels");
    for (int k = 0; k < WINDOW_AXES && p.padded && p.quant.zero_in; k++)
        if (p.w.axes[k].begin > 0 || p.w.axes[k].end > 0)
            return scout_say(why, SCOUT_NO, "feature",
                             "oneDNN would average padding as bytes of 0, which is not the zero point");
    for (int k = 0; k < WINDOW_AXES && p.padded; k++)
        if (padding_behind(&p.w.axes[k]) > p.w.axes[k].end)
            return scout_say(why, SCOUT_NO, "feature",
                             "oneDNN would count the window's overhang beyond the padding (ceil_mode)");
    return cpu_onednn_single_supports(describe, op, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    return cpu_onednn_single_prepare(describe, op, *out, needs, why);
}

const scout_candidate cpu_pool_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_pool",
    .about = "oneDNN's pooling: maximum and average",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "bf16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = cpu_onednn_single_launch,
    .describe = cpu_onednn_single_json,
    .destroy = cpu_onednn_single_destroy,
    .plan_bytes = sizeof(scout_plan),
};
