/* gemm_int4 as a candidate: fp16 x 4 bits with scales, and zero points, in blocks along K. Its variants: the weight
 * streamed once for every 16 rows, or tiles. */
#include "scout/cuda/own/own.h"

enum { STREAMING_ROWS = 128, TILED_ROWS = 33 }; /* streaming up to, tiles from; between them both are tried */

struct scout_plan {
    gemm_int4_plan int4;
    int scales, zeros; /* indices of their tensors; -1: none */
};

static gemm_int4_config config_of(const scout_op *op, int tiled) {
    return (gemm_int4_config){.tiled = tiled, .zeros = op_tensor(op, "b_zero") >= 0};
}

static int fits(const scout_op *op, const scout_device *device, int tiled) {
    const gemm_shape s = own_gemm_shape(op);
    const gemm_int4_config config = config_of(op, tiled);
    return gemm_int4_fits(&s, &config, own_shared_limit(device));
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer plain = own_gemm_plain(op, why);
    if (plain != SCOUT_OK) return plain;
    const gemm_shape s = own_gemm_shape(op);
    if (s.type_a != GEMM_FP16 || (s.type_b != GEMM_INT4 && s.type_b != GEMM_UINT4) || s.type_c != GEMM_FP16)
        return scout_say(why, SCOUT_NO, "type", "gemm_int4 multiplies fp16 with int4 or uint4 into fp16");
    if (s.batch != 1) return scout_say(why, SCOUT_NO, "shape", "gemm_int4 takes no batches");
    if (s.trans_a || !s.trans_b || op_tensor(op, "scales") < 0)
        return scout_say(why, SCOUT_NO, "layout", "gemm_int4 needs A as [M,K], the weight as [N,K], and scales");
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "gemm_int4 needs compute capability 8.0");
    if (!fits(op, device, 0) && !fits(op, device, 1))
        return scout_say(why, SCOUT_NO, "alignment", "gemm_int4 needs blocks and K in multiples of 16");
    return SCOUT_OK;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const ways[] = {"streaming", "tiled"};
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "way", .count = 2, .values = {0, 1}, .labels = ways};
    return SCOUT_OK;
}

static int tiled_of(const int64_t *values) { return values && values[0] == 1; }

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const int64_t rows = op->shape[0];
    if (!tiled_of(values)) return rows <= STREAMING_ROWS && fits(op, device, 0);
    return fits(op, device, 1) && (rows >= TILED_ROWS || !fits(op, device, 0));
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    const gemm_shape s = own_gemm_shape(op);
    const gemm_int4_config config = config_of(op, tiled_of(values));
    if (!fits(op, device, config.tiled))
        return scout_say(why, SCOUT_NO, "shape", "streaming needs K in multiples of 256 and blocks of 32, 64 or 128");
    scout_plan *const p = *plan;
    p->scales = op_tensor(op, "scales"), p->zeros = op_tensor(op, "b_zero");
    if (config.zeros) needs->packs = (uint32_t)p->zeros + 1;
    if (config.zeros) needs->pack_bytes = (uint64_t)(s.n * (s.k / s.block_size)) * 2;
    const int error = gemm_int4_prepare(&s, &config, &p->int4);
    if (error) return cuda_device_answer((cudaError_t)error, "preparing gemm_int4", why);
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *plan, const void *zeros, void *packed, void *stream, scout_why *why) {
    const int error = gemm_int4_zeros(&plan->int4, zeros, packed, stream);
    return error ? cuda_device_answer((cudaError_t)error, "turning zero points into halves", why) : SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const int error =
        gemm_int4_launch(&plan->int4, args->tensors[GEMM_A], args->tensors[GEMM_B], args->tensors[plan->scales],
                         plan->zeros < 0 ? NULL : args->tensors[plan->zeros], args->tensors[GEMM_C], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gemm_int4", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const gemm_int4_plan *p = &plan->int4;
    return snprintf(json, room, "{\"kernel\":\"gemm_int4\",\"tiled\":%s,\"blocks\":%d,\"shared_bytes\":%zu}",
                    p->config.tiled ? "true" : "false", p->blocks, p->shared_bytes);
}

const scout_candidate own_gemm_int4 = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN,
    .priority = 50,
    .name = "gemm_int4",
    .about = "own kernel for fp16 x int4 and uint4, with zero points: dequantises the weight in registers",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"int4", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
