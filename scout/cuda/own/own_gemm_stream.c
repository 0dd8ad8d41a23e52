/* gemm_stream as a candidate: fp16 and bf16 products of at most 16 rows, with a weight of that type or of 8 bits. Its
 * variants: the weight as it is or transposed from [K,N] to [N,K] once, the outputs and steps of a warp, and blocks
 * that share a range of outputs. Scales in blocks, and zero points, are packed once: as they lie, an output's are far
 * from the next one's. */
#include "scout/cuda/own/own.h"

enum { WEIGHT, TILE, DEPTH, SPLIT, PARAMETERS };

struct scout_plan {
    gemm_stream_plan stream;
    int packs, scales, zeros; /* tensors; -1: none */
};

static int is_bytes(const gemm_shape *s) { return s->type_b == GEMM_INT8 || s->type_b == GEMM_UINT8; }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer plain = own_gemm_plain(op, why);
    if (plain != SCOUT_OK) return plain;
    const gemm_shape s = own_gemm_shape(op);
    const int bytes = is_bytes(&s);
    if ((s.type_a != GEMM_FP16 && s.type_a != GEMM_BF16) || (s.type_b != s.type_a && !bytes) || s.type_c != s.type_a)
        return scout_say(why, SCOUT_NO, "type", "gemm_stream multiplies fp16 and bf16 with their own type or 8 bits");
    if (s.m > GEMM_STREAM_MAX_M)
        return scout_say(why, SCOUT_NO, "shape", "gemm_stream is for at most %d rows", (int)GEMM_STREAM_MAX_M);
    if (s.batch != 1) return scout_say(why, SCOUT_NO, "shape", "gemm_stream takes no batches");
    if (s.trans_a) return scout_say(why, SCOUT_NO, "layout", "gemm_stream needs A as [M,K]");
    if (s.k % 8 != 0 || s.lda % 8 != 0)
        return scout_say(why, SCOUT_NO, "alignment", "gemm_stream needs K in multiples of 8");
    const int packs = !s.trans_b && gemm_problem_of(op).weight == GEMM_B;
    if (!packs && (s.ldb % (bytes ? 16 : 8) != 0 || (!s.trans_b && s.n % 8 != 0)))
        return scout_say(why, SCOUT_NO, "alignment", "gemm_stream needs the weight's rows in multiples of 16 bytes");
    if (bytes && (op_tensor(op, "scales") < 0 || (!packs && !s.trans_b)))
        return scout_say(why, SCOUT_NO, "layout", "gemm_stream needs 8 bits with scales, and as [N,K] or constant");
    if (bytes && s.block_size != s.k && s.block_size != 32 && s.block_size != 64 && s.block_size % 128 != 0)
        return scout_say(why, SCOUT_NO, "alignment", "gemm_stream needs blocks of 32, 64 or a multiple of 128");
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "gemm_stream needs compute capability 8.0");
    return SCOUT_OK;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const weights[] = {"as_is", "packed"};
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    out->parameters[WEIGHT] = (scout_parameter){.name = "weight", .count = 2, .values = {0, 1}, .labels = weights};
    out->parameters[TILE] = (scout_parameter){.name = "tile", .count = 3, .values = {2, 1, 3}};
    out->parameters[DEPTH] = (scout_parameter){.name = "depth", .count = 5, .values = {3, 4, 6, 5, 2}};
    out->parameters[SPLIT] = (scout_parameter){.name = "split", .count = 3, .values = {1, 2, 4}};
    return SCOUT_OK;
}

static gemm_stream_config config_of(const scout_op *op, const int64_t *values) {
    gemm_stream_config config = {.zeros = op_tensor(op, "b_zero") >= 0, .split = 1, .tile = 2, .depth = 3};
    if (!values) return config;
    config.packed = (int)values[WEIGHT], config.tile = (int)values[TILE];
    config.depth = (int)values[DEPTH], config.split = (int)values[SPLIT];
    return config;
}

/* Blocks share a range of outputs where there are too few outputs for all of them, or where half of A stays in a block
 * and all of it does not: repeated reads come from L2 beside the weight, over the same narrow path. Elsewhere the
 * exchange at the end cost more than it gained; there, the deepest of each tile are enough. */
static int allows_split(const gemm_shape *s, const gemm_stream_config *config, scout_device *device) {
    const int units = own_units(device), few = s->n < (int64_t)16 * units;
    const size_t limit = own_shared_limit(device);
    if (config->split == 1) return !few || config->tile == 1;
    if (!own_has_clusters(device)) return 0;
    if (!few) {
        gemm_stream_config alone = *config;
        alone.split = 1;
        if (config->split > 2 || !gemm_stream_rereads(s, &alone, units, limit)) return 0;
        if (gemm_stream_rereads(s, config, units, limit)) return 0;
    }
    return (config->tile == 1 && config->depth == 6) || (config->tile == 2 && config->depth == 4);
}

/* A product of two activations has nothing to pack. */
static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const gemm_shape s = own_gemm_shape(op);
    const gemm_stream_config config = config_of(op, values);
    if (!allows_split(&s, &config, device)) return 0;
    if (config.packed && gemm_problem_of(op).weight != GEMM_B) return 0;
    return gemm_stream_fits(&s, &config, own_units(device), own_shared_limit(device));
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    const gemm_shape s = own_gemm_shape(op);
    const gemm_stream_config config = config_of(op, values);
    if (!allows(op, device, values))
        return scout_say(why, SCOUT_NO, "hardware", "this variant does not fit into shared memory here");
    scout_plan *const p = *plan;
    const int error = gemm_stream_prepare(&s, &config, &p->stream);
    if (error) return cuda_device_answer((cudaError_t)error, "preparing gemm_stream", why);
    p->scales = op_tensor(op, "scales"), p->zeros = op_tensor(op, "b_zero");
    p->packs = !p->stream.pack_bytes ? -1 : config.packed ? GEMM_B : p->scales;
    needs->packs = (uint32_t)(p->packs + 1);
    needs->pack_bytes = p->stream.pack_bytes;
    return SCOUT_OK;
}

static void *at(void *const *tensors, int which) { return which < 0 ? NULL : tensors[which]; }

static scout_answer pack(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why) {
    const int error = gemm_stream_pack(&plan->stream, tensors[GEMM_B], at(tensors, plan->scales),
                                       at(tensors, plan->zeros), packed, stream);
    return error ? cuda_device_answer((cudaError_t)error, "packing for gemm_stream", why) : SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = gemm_stream_launch(&plan->stream, t[GEMM_A], t[GEMM_B], at(t, plan->scales), at(t, plan->packs),
                                         t[GEMM_C], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gemm_stream", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const gemm_stream_plan *s = &plan->stream;
    return snprintf(json, room,
                    "{\"kernel\":\"gemm_stream\",\"packed\":%s,\"split\":%d,\"tile\":%d,\"depth\":%d,\"blocks\":%d,"
                    "\"threads\":%d,\"shared_bytes\":%zu}",
                    s->config.packed ? "true" : "false", s->config.split, s->config.tile, s->config.depth, s->blocks,
                    (int)GEMM_STREAM_THREADS, s->shared_bytes);
}

const scout_candidate own_gemm_stream = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN,
    .priority = 50,
    .name = "gemm_stream",
    .about = "own kernel for at most 16 rows: reads a weight of 16 or 8 bits once, at memory speed",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
    .pack_tensors = pack,
};
