/* The own direct loop over windows as a candidate: an alternative to the library, and the baseline where that refuses
 * (dilation, ceil_mode, uneven padding). Variants: how many threads share a window, and whether nhwc channels are read
 * 16 bytes at a time. The likely best comes first. */

#include "kernels/pass/pool_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/pool.h"

#include <stdbool.h>

struct scout_plan {
    pool_shape shape;
    pool_config config;
};

/* Whether all numbers are small enough for the kernel's. */
static bool shape_of(const scout_op *op, pool_shape *out) {
    const pool_problem p = pool_problem_of(op);
    memset(out, 0, sizeof *out);
    out->n = p.n, out->channels = p.channels;
    out->last = p.w.last, out->type = (int)p.type, out->average = p.average, out->padded = p.padded;
    if (p.quant.is) {
        double least, most;
        requantize_bounds(&p.quant, &p.activation, &least, &most);
        out->quant = (pool_quant){.is = 1,
                                  .zero = p.quant.zero_in,
                                  .factor = (float)p.quant.factor,
                                  .least = (float)least,
                                  .most = (float)most};
    }
    for (int k = 0; k < POOL_AXES; k++) {
        const window_axis *const a = &p.w.axes[k];
        const int64_t all[] = {a->in, a->out, a->kernel, a->stride, a->dilation, a->begin, a->end};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            if (all[i] > POOL_LARGEST) return false;
        out->axes[k] = (pool_axis){(int)a->in,       (int)a->out,   (int)a->kernel, (int)a->stride,
                                   (int)a->dilation, (int)a->begin, (int)a->end};
    }
    return true;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const pool_config plain = {.lanes = 1, .vector = 0};
    pool_shape shape;
    (void)device;
    if (!pool_has_windows(op)) return scout_say(why, SCOUT_NO, "feature", "interpolation is not its work");
    if (shape_of(op, &shape) && pool_direct_fits(&shape, &plain)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "a plane or image of this pool exceeds the kernel's 32-bit counters");
}

static void add(scout_domain *out, const char *name, int count, const int64_t *values) {
    scout_parameter *const p = &out->parameters[out->count++];
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", name);
    for (int k = 0; k < count; k++) p->values[p->count++] = values[k];
}

/* Lanes pay where a window is large, or where there are too few windows for all threads of a GPU. */
static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const int64_t few_first[] = {1, 8, 32}, many_first[] = {32, 8, 1}, vector_first[] = {1, 0};
    const pool_problem p = pool_problem_of(op);
    (void)device, (void)exhaustive, (void)why;
    memset(out, 0, sizeof *out);
    add(out, "lanes", 3, window_kernel(&p.w) >= 32 ? many_first : few_first);
    pool_shape shape;
    const pool_config vector = {.lanes = 1, .vector = 1};
    const bool both = shape_of(op, &shape) && pool_direct_fits(&shape, &vector);
    add(out, "vector", both ? 2 : 1, both ? vector_first : vector_first + 1);
    return SCOUT_OK;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const pool_config config = {.lanes = (int)values[0], .vector = (int)values[1]};
    pool_shape shape;
    (void)device;
    return shape_of(op, &shape) && pool_direct_fits(&shape, &config);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)needs;
    plan->config = (pool_config){.lanes = (int)values[0], .vector = (int)values[1]};
    if (!shape_of(op, &plan->shape) || !pool_direct_fits(&plan->shape, &plan->config))
        return scout_say(why, SCOUT_NO, "feature", "this variant does not fit the pool");
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    return cuda_device_answer((cudaError_t)pool_direct_launch(&plan->shape, &plan->config, args->tensors[POOL_INPUT],
                                                              args->tensors[POOL_OUTPUT], args->stream),
                              "launching pool_direct", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"pool_direct\",\"lanes\":%d,\"vector\":%d}", plan->config.lanes,
                    plan->config.vector);
}

const scout_candidate own_pool_direct = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "pool_direct",
    .about = "own direct loop for maximum and average",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", "int8", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
