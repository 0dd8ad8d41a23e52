/* gemm_naive and gemm_tiled as candidates: references for the build, which run only where nothing faster applies. */
#include "scout/cuda/own/own.h"

struct scout_plan {
    gemm_shape shape;
    int scales, zeros; /* of a weight of few bits: indices of their tensors; -1: none */
};

/* Types that the kernels have; tf32 operations are computed in fp32, which is more than they ask for. */
static const struct {
    int a, b, c, naive, tiled;
} types[] = {
    {GEMM_FP32, GEMM_FP32, GEMM_FP32, 1, 1},  {GEMM_FP16, GEMM_FP16, GEMM_FP16, 1, 1},
    {GEMM_BF16, GEMM_BF16, GEMM_BF16, 1, 1},  {GEMM_FP8E4M3, GEMM_FP8E4M3, GEMM_BF16, 1, 0},
    {GEMM_INT8, GEMM_INT8, GEMM_INT32, 1, 0},
};

static scout_answer supports(const scout_op *op, int tiled, scout_why *why) {
    const scout_answer plain = own_gemm_plain(op, why);
    if (plain != SCOUT_OK) return plain;
    const gemm_shape s = own_gemm_shape(op);
    const int widens = gemm_widens((uint32_t)s.type_a, (uint32_t)s.type_b);
    int known = widens && !tiled && s.type_c == s.type_a;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k].a == s.type_a && types[k].b == s.type_b && types[k].c == s.type_c)
            known = tiled ? types[k].tiled : types[k].naive;
    if (!known)
        return scout_say(why, SCOUT_NO, "type", "%s is not for these types", tiled ? "gemm_tiled" : "gemm_naive");
    if (widens && (s.block_size < 1 || s.k % s.block_size || op_tensor(op, "scales") < 0))
        return scout_say(why, SCOUT_NO, "layout", "a weight of few bits must be in whole blocks, with scales");
    return SCOUT_OK;
}

static scout_answer tiled_supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "gemm_tiled needs compute capability 8.0");
    return supports(op, 1, why);
}

/* Where gemm_tiled can run, too: of so large a product a launch takes from milliseconds to tenths of a second. */
static const double naive_flops = 4e9;

static scout_answer naive_supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_why ignored;
    if (op->flops > naive_flops && tiled_supports(op, device, &ignored) == SCOUT_OK)
        return scout_say(why, SCOUT_NO, "shape", "for so large a product gemm_tiled is always faster");
    return supports(op, 0, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    (void)device, (void)values, (void)needs, (void)why;
    p->shape = own_gemm_shape(op);
    p->scales = op_tensor(op, "scales"), p->zeros = op_tensor(op, "b_zero");
    return SCOUT_OK;
}

static scout_answer naive_launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = gemm_naive_launch(&plan->shape, t[GEMM_A], t[GEMM_B], plan->scales < 0 ? NULL : t[plan->scales],
                                        plan->zeros < 0 ? NULL : t[plan->zeros], t[GEMM_C], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gemm_naive", why) : SCOUT_OK;
}

static scout_answer tiled_launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = gemm_tiled_launch(&plan->shape, t[GEMM_A], t[GEMM_B], t[GEMM_C], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gemm_tiled", why) : SCOUT_OK;
}

const scout_candidate own_gemm_naive = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN | SCOUT_LAST,
    .priority = -100,
    .name = "gemm_naive",
    .about = "own kernel, one thread for each output: a reference for the build",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", NULL},
    .supports = naive_supports,
    .prepare = prepare,
    .launch = naive_launch,
    .plan_bytes = sizeof(scout_plan),
};

const scout_candidate own_gemm_tiled = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN | SCOUT_LAST,
    .priority = -50,
    .name = "gemm_tiled",
    .about = "own kernel, tiles in shared memory: a reference for the build",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", NULL},
    .supports = tiled_supports,
    .prepare = prepare,
    .launch = tiled_launch,
    .plan_bytes = sizeof(scout_plan),
};
