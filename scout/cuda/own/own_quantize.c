/* quantize_rows as a candidate: to 8 bits and back; dynamic quantising runs quantize_range first, for scale and zero
 * point. Other types, and blocks, are quantize_any's. */
#include "scout/cuda/own/own.h"
#include "scout/op/quantize.h"

struct scout_plan {
    quantize_rows rows;
    quantize_any any; /* where `plain` */
    int plain;
    int scales, zero_points, y; /* tensors; zero_points -1: none */
    int dynamic;
    int64_t count;
};

static int plan_of(const scout_op *op, scout_plan *p) {
    const quantize_problem q = quantize_problem_of(op);
    const int from = (int)q.from, to = (int)q.to, scale = (int)q.scale_type;
    *p = (scout_plan){.rows = {from, to, scale, q.outer, q.channels, q.inner, own_pass_config(NULL)},
                      .any = {from, to, scale, q.block > 0, q.outer, q.channels, q.inner, q.block > 0 ? q.block : 1},
                      .scales = q.scales,
                      .zero_points = q.zero_points,
                      .y = q.y,
                      .dynamic = q.dynamic,
                      .count = op_elements(&op->tensors[0])};
    p->plain = q.block > 0 || !quantize_rows_fits(&p->rows);
    return !p->plain || (!q.dynamic && quantize_any_fits(&p->any));
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (plan_of(op, &p)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "quantize_rows takes fp32, fp16 and bf16 to 2, 4, 8 and 16 bits, and back");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)why;
    scout_plan *const p = *out;
    (void)plan_of(op, p);
    p->rows.config = own_pass_config(values);
    if (p->dynamic) needs->workspace_bytes = quantize_range_workspace();
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    if (p->dynamic) {
        const int found = quantize_range_launch(p->rows.from, p->count, t[0], args->workspace, t[p->scales],
                                                t[p->zero_points], args->stream);
        if (found) return cuda_device_answer((cudaError_t)found, "launching quantize_range", why);
    }
    const void *const zeros = p->zero_points < 0 ? NULL : t[p->zero_points];
    const int error = p->plain ? quantize_any_launch(&p->any, t[0], t[p->scales], zeros, t[p->y], args->stream)
                               : quantize_rows_launch(&p->rows, t[0], t[p->scales], zeros, t[p->y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching quantize_rows", why) : SCOUT_OK;
}

static int describe(const scout_plan *p, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"%s\",\"range\":%d,\"scales\":%lld,\"threads\":%d,\"resident\":%d}",
                    p->plain ? "quantize_any" : "quantize_rows", p->dynamic, (long long)p->rows.channels,
                    p->rows.config.threads, p->rows.config.resident);
}

const scout_candidate own_quantize = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_QUANTIZE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "quantize_rows",
    .about =
        "own kernels, to few bits and back, also dynamically; the baseline, as no library here takes scales as tensors",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .domain = own_pass_domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
