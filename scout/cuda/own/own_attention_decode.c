/* attention_decode as a candidate: fp16 and bf16 attention of at most 8 queries. Its variants: how a warp walks over
 * its keys, the blocks that share the keys of a head, the warps of a block, and what a warp has in flight. */
#include "scout/cuda/own/own.h"
#include "scout/op/attention.h"

#include <string.h>

enum { WALK, SPLITS, WARPS, DEPTH, PARAMETERS };

struct scout_plan {
    attention_decode_plan decode;
    const scout_op *op;
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer plain = own_attention_copies(op, device, "attention_decode", why);
    if (plain != SCOUT_OK) return plain;
    const attention_problem p = attention_problem_of(op);
    if (p.queries > ATTENTION_DECODE_QUERIES)
        return scout_say(why, SCOUT_NO, "shape", "attention_decode is for at most %d queries",
                         (int)ATTENTION_DECODE_QUERIES);
    if (p.block_mask) return scout_say(why, SCOUT_NO, "feature", "attention_decode knows no block masks");
    if (p.dim > ATTENTION_DECODE_DIM || p.v_dim > ATTENTION_DECODE_DIM)
        return scout_say(why, SCOUT_NO, "shape", "attention_decode is for heads of at most %d",
                         (int)ATTENTION_DECODE_DIM);
    return SCOUT_OK;
}

/* The likely fastest comes first. */
static const int64_t walks[] = {ATTENTION_DECODE_DENSE, ATTENTION_DECODE_VECTOR, ATTENTION_DECODE_TENSOR};
static const char *const walk_names[] = {"dense", "vector", "tensor"};
enum { WALKS = sizeof walks / sizeof walks[0] };

static const char *walk_name(int walk) {
    for (int k = 0; k < WALKS; k++)
        if (walks[k] == walk) return walk_names[k];
    return "";
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const splits[] = {"auto", "1", "2", "4", "8", "16", "32"};

    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    out->parameters[WALK] = (scout_parameter){.name = "walk", .count = WALKS, .labels = walk_names};
    memcpy(out->parameters[WALK].values, walks, sizeof walks);
    out->parameters[SPLITS] =
        (scout_parameter){.name = "splits", .count = 7, .values = {0, 1, 2, 4, 8, 16, 32}, .labels = splits};
    out->parameters[WARPS] = (scout_parameter){.name = "warps", .count = 3, .values = {4, 8, 16}};
    out->parameters[DEPTH] = (scout_parameter){.name = "depth", .count = 4, .values = {3, 4, 8, 2}};
    return SCOUT_OK;
}

static attention_decode_config config_of(const int64_t *values) {
    attention_decode_config config = {.splits = 0, .warps = 4, .depth = 3};
    if (!values) return config;
    config.walk = (int)values[WALK], config.splits = (int)values[SPLITS];
    config.warps = (int)values[WARPS], config.depth = (int)values[DEPTH];
    return config;
}

/* Where there are enough blocks already, more of them only add merging; and half a device does not keep memory busy. */
static int hopeless(const attention_shape *s, const attention_decode_config *config, const scout_device *device) {
    const int64_t blocks = s->batch * s->kv_heads * config->splits, units = own_units(device);
    return config->splits > 0 && ((config->splits > 1 && blocks > 16 * units) || 2 * blocks <= units);
}

/* Where few rows share keys, tensor cores are slower: one variant of them is enough. */
static int idle(const attention_shape *s, const attention_decode_config *config) {
    const attention_decode_config vector = {.warps = 4, .depth = 4, .walk = ATTENTION_DECODE_VECTOR};
    const int first = config->splits == 0 && config->warps == 4 && config->depth == 3;
    return config->walk == ATTENTION_DECODE_TENSOR && !first && attention_decode_fits(s, &vector, SIZE_MAX);
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const attention_shape s = own_attention_shape(op);
    const attention_decode_config config = config_of(values);
    if (hopeless(&s, &config, device) || idle(&s, &config)) return 0;
    return attention_decode_fits(&s, &config, own_shared_limit(device));
}

static void destroy(scout_plan *plan) { attention_decode_close(&plan->decode); }

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    (void)needs;
    const attention_shape s = own_attention_shape(op);
    const attention_decode_config config = config_of(values);
    if (!allows(op, device, values))
        return scout_say(why, SCOUT_NO, "hardware", "this variant does not fit these keys, or shared memory here");
    scout_plan *const p = *plan;
    const int error = attention_decode_prepare(&s, &config, own_units(device), own_shared_limit(device), &p->decode);
    if (error) return cuda_device_answer((cudaError_t)error, "preparing attention_decode", why);
    if (p->decode.parts_bytes > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory",
                         "the partial results of this variant's blocks exceed the workspace limit");
    p->op = op;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const attention_tensors tensors = own_attention_tensors(plan->op, args->tensors, NULL);
    const int error = attention_decode_launch(&plan->decode, &tensors, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching attention_decode", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const attention_decode_plan *d = &plan->decode;
    return snprintf(json, room,
                    "{\"kernel\":\"attention_decode\",\"walk\":\"%s\",\"splits\":%d,\"warps\":%d,\"depth\":%d,"
                    "\"shared_bytes\":%zu,\"parts_bytes\":%zu}",
                    walk_name(d->config.walk), d->splits, d->config.warps, d->config.depth, d->shared_bytes,
                    d->parts_bytes);
}

const scout_candidate own_attention_decode = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ATTENTION,
    .flags = SCOUT_OWN,
    .priority = 50,
    .name = "attention_decode",
    .about = "own attention of at most 8 queries: reads keys and values once, at memory speed",
    .approach = "CUSTOM_ATTENTION",
    .precisions = (const char *const[]){"fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
