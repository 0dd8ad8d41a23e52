/* gemm_block_sparse as a candidate: fp16 and bf16 products with a weight of blocks, most of which are zeros. Its
 * variants: the side of the blocks, the rows of A for each thread block, and the steps in flight. */
#include "scout/cuda/own/own.h"
#include "scout/cuda/sparse/sparse_weight.h"

enum { BLOCK, ROWS, DEPTH, PARAMETERS };

struct scout_plan {
    gemm_block_sparse_plan product;
    int bias; /* place in op->tensors; -1: none */
};

static gemm_block_sparse_config config_of(const int64_t *values) {
    return (gemm_block_sparse_config){
        .side = (int)values[BLOCK], .rows = (int)values[ROWS], .depth = (int)values[DEPTH]};
}

/* Tiles taller than the rows would only compute zeros. */
static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const gemm_shape s = own_gemm_shape(op);
    const gemm_block_sparse_config config = config_of(values);
    if (!sparse_weight_has_empty(op, config.side)) return 0;
    if (config.rows > 64 && s.m <= config.rows / 2) return 0;
    return gemm_block_sparse_fits(&s, &config, own_shared_limit(device));
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer answer = sparse_weight_supports(op, why);
    if (answer != SCOUT_OK) return answer;
    if (op->input != SCOUT_FP16 && op->input != SCOUT_BF16)
        return scout_say(why, SCOUT_NO, "type", "gemm_block_sparse multiplies fp16 with fp16 and bf16 with bf16");
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "gemm_block_sparse needs compute capability 8.0");
    for (int k = 0; k < SPARSE_WEIGHT_SIDES; k++)
        if (allows(op, device, (const int64_t[]){sparse_weight_sides[k], 64, 2})) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "pattern", "no block of side %lld is all zeros",
                     (long long)sparse_weight_sides[SPARSE_WEIGHT_SIDES - 1]);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    out->parameters[BLOCK] = (scout_parameter){.name = "block", .count = SPARSE_WEIGHT_SIDES};
    for (int k = 0; k < SPARSE_WEIGHT_SIDES; k++) out->parameters[BLOCK].values[k] = sparse_weight_sides[k];
    out->parameters[ROWS] = (scout_parameter){.name = "rows", .count = 3, .values = {128, 256, 64}};
    out->parameters[DEPTH] = (scout_parameter){.name = "depth", .count = 3, .values = {3, 2, 4}};
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    const gemm_shape s = own_gemm_shape(op);
    const gemm_block_sparse_config config = config_of(values);
    if (!allows(op, device, values))
        return scout_say(why, SCOUT_NO, "shape", "this variant does not fit the product or the shared memory here");
    scout_plan *const p = *plan;
    p->bias = op_tensor(op, "bias");
    const int error = gemm_block_sparse_prepare(&s, &config, sparse_weight_blocks(op, config.side), &p->product);
    if (error) return cuda_device_answer((cudaError_t)error, "preparing gemm_block_sparse", why);
    needs->packs = GEMM_B + 1;
    needs->pack_bytes = p->product.pack_bytes;
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    int32_t blocks = 0;
    const int error = gemm_block_sparse_pack(&plan->product, weight, packed, &blocks, stream);
    if (error) return cuda_device_answer((cudaError_t)error, "packing for gemm_block_sparse", why);
    if (blocks <= plan->product.blocks) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "the weight has %d blocks that are not all zeros, not %lld",
                     (int)blocks, (long long)plan->product.blocks);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const void *const bias = plan->bias < 0 ? NULL : args->tensors[plan->bias];
    const int error = gemm_block_sparse_launch(&plan->product, args->tensors[GEMM_A], args->tensors[GEMM_B], bias,
                                               args->tensors[GEMM_C], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gemm_block_sparse", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const gemm_block_sparse_plan *p = &plan->product;
    return snprintf(json, room,
                    "{\"kernel\":\"gemm_block_sparse\",\"block\":%d,\"rows\":%d,\"depth\":%d,\"blocks\":%lld,"
                    "\"thread_blocks\":%lld,\"threads\":%d,\"shared_bytes\":%zu}",
                    p->config.side, p->config.rows, p->config.depth, (long long)p->blocks, (long long)p->thread_blocks,
                    p->threads, p->shared_bytes);
}

const scout_candidate own_gemm_block_sparse = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN,
    .priority = 60,
    .name = "gemm_block_sparse",
    .about = "own kernel for a block-sparse weight: skips zero blocks",
    .approach = "SPARSE_BLOCK",
    .precisions = (const char *const[]){"fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
