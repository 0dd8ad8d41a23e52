/* attention_tiled as a candidate: fp16 and bf16 attention of heads of at most 128. Its variants: the queries and keys
 * of a tile, and the warps that share it. */
#include "scout/cuda/own/own.h"
#include "scout/op/attention.h"

struct scout_plan {
    attention_tiled_plan tiled;
    const scout_op *op;
    uint32_t *blocks; /* owned, on the device; NULL: it has no block mask */
};

/* A variant's number is its index here. */
static const attention_tiled_config tiles[] = {{128, 64, 4}, {128, 64, 8}, {64, 64, 4}, {128, 128, 8}};
static const char *const labels[] = {"128x64x4", "128x64x8", "64x64x4", "128x128x8"};
enum { TILES = sizeof tiles / sizeof *tiles };

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer plain = own_attention_copies(op, device, "attention_tiled", why);
    if (plain != SCOUT_OK) return plain;
    const attention_problem p = attention_problem_of(op);
    if (p.dim > ATTENTION_TILED_DIM || p.v_dim > ATTENTION_TILED_DIM)
        return scout_say(why, SCOUT_NO, "shape", "attention_tiled is for heads of at most %d",
                         (int)ATTENTION_TILED_DIM);
    if (!(p.scale > 0))
        return scout_say(why, SCOUT_NO, "feature",
                         "attention_tiled needs a scale above 0, as it finds the largest score before scaling");
    return SCOUT_OK;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "tile", .count = TILES, .values = {0, 1, 2, 3}, .labels = labels};
    return SCOUT_OK;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const attention_shape s = own_attention_shape(op);
    return attention_tiled_fits(&s, &tiles[values ? values[0] : 0], own_shared_limit(device));
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    (void)needs;
    const attention_shape s = own_attention_shape(op);
    if (!allows(op, device, values))
        return scout_say(why, SCOUT_NO, "hardware", "this variant does not fit into shared memory here");
    scout_plan *const p = *plan;
    const int error = attention_tiled_prepare(&s, &tiles[values ? values[0] : 0], own_shared_limit(device), &p->tiled);
    if (error) return cuda_device_answer((cudaError_t)error, "preparing attention_tiled", why);
    p->op = op;
    return own_attention_blocks(op, device, &p->blocks, why);
}

static void destroy(scout_plan *plan) { cuda_device_release(NULL, plan->blocks); }

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const attention_tensors tensors = own_attention_tensors(plan->op, args->tensors, plan->blocks);
    const int error = attention_tiled_launch(&plan->tiled, &tensors, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching attention_tiled", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const attention_tiled_config *c = &plan->tiled.config;
    return snprintf(json, room,
                    "{\"kernel\":\"attention_tiled\",\"rows\":%d,\"keys\":%d,\"warps\":%d,\"shared_bytes\":%zu}",
                    c->rows, c->keys, c->warps, plan->tiled.shared_bytes);
}

const scout_candidate own_attention_tiled = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ATTENTION,
    .flags = SCOUT_OWN,
    .priority = 40,
    .name = "attention_tiled",
    .about = "own attention in tiles for many queries: tensor cores, in one pass over keys and values",
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
