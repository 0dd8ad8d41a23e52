/* Concat and split in one launch, however many pieces there are. */
#include "kernels/pass/joined_kernels.h"
#include "scout/cuda/own/own.h"
#include "scout/op/move.h"

struct scout_plan {
    joined_pass pass;
    int whole, first; /* tensors: the whole one, and the first piece */
};

_Static_assert((int)JOINED_MOST >= (int)SCOUT_MAX_TENSORS, "the pass takes as many pieces as an operation may have");

static bool plan_of(const scout_op *op, const int64_t *values, scout_plan *p) {
    const int axis = (int)op_number(op, "axis", 0), pieces = (int)op->tensor_count - 1;
    *p = (scout_plan){.pass = {.count = pieces, .parted = op_is(op, "split"), .outer = 1}};
    p->pass.config = own_pass_config(values);
    p->whole = p->pass.parted ? 0 : pieces, p->first = p->pass.parted ? 1 : 0;
    for (int d = 0; d < axis; d++) p->pass.outer *= op->tensors[p->whole].dims[d];
    for (int k = 0; k < pieces; k++) {
        const scout_tensor *const t = &op->tensors[p->first + k];
        p->pass.bytes[k] = op_elements(t) / p->pass.outer * own_pass_size(t);
    }
    return joined_fits(&p->pass);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (!op_is(op, "concat") && !op_is(op, "split"))
        return scout_say(why, SCOUT_NO, "feature", "it joins and parts tensors, and nothing else");
    if (plan_of(op, NULL, &p)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "it takes less than 2 GB, in elements of whole bytes");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs;
    if (plan_of(op, values, *out)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "move_joined does not support this operation");
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    const void *pieces[JOINED_MOST];
    for (int k = 0; k < p->pass.count; k++) pieces[k] = args->tensors[p->first + k];
    const int error = joined_launch(&p->pass, pieces, args->tensors[p->whole], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching a move", why) : SCOUT_OK;
}

static int describe(const scout_plan *p, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"move_joined\",\"pieces\":%d,\"threads\":%d,\"resident\":%d}",
                    p->pass.count, p->pass.config.threads, p->pass.config.resident);
}

const scout_candidate own_move_joined = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_MOVE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 51,
    .name = "move_joined",
    .about = "own kernel: joins tensors along an axis, or parts one, in one launch",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int8", NULL},
    .supports = supports,
    .domain = own_pass_domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
