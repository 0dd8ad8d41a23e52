/* Elementwise operations by oneDNN: its eltwise primitive for one operand, its binary primitive for two, where that is
 * the whole operation. bool is bytes of 0 and 1. */
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/cpu/onednn/cpu_onednn_single.h"
#include "scout/op/elementwise.h"

/* --- which primitive --- */

typedef enum numbers { ARE_GIVEN, ARE_FIXED, ARE_SLOPE, ARE_EXPONENT } numbers;

typedef struct row {
    dnnl_alg_kind_t algorithm; /* undef: the library has none */
    int operands;
    numbers numbers; /* given by the operation, as it has them; fixed: alpha and beta below; … */
    float alpha, beta;
} row;

#define ONE(name, algorithm, alpha, beta) [ELEMENTWISE_##name] = {dnnl_eltwise_##algorithm, 1, ARE_FIXED, alpha, beta}
#define TWO(name, algorithm)              [ELEMENTWISE_##name] = {dnnl_binary_##algorithm, 2, ARE_FIXED, 0, 0}
static const row rows[ELEMENTWISE_COUNT] = {
    ONE(relu, relu, 0, 0),
    ONE(abs, abs, 0, 0),
    ONE(neg, linear, -1, 0),
    ONE(not, linear, -1, 1),
    ONE(sqrt, sqrt, 0, 0),
    ONE(exp, exp, 0, 0),
    ONE(log, log, 0, 0),
    ONE(tanh, tanh, 0, 0),
    ONE(sigmoid, logistic, 0, 0),
    ONE(gelu, gelu_erf, 0, 0),
    ONE(gelu_tanh, gelu_tanh, 0, 0),
    ONE(silu, swish, 1, 0),
    ONE(round, round, 0, 0),
    ONE(mish, mish, 0, 0),
    ONE(hardswish, hardswish, 1.0F / 6, 0.5F),
    ONE(softplus, soft_relu, 1, 0),
    ONE(reciprocal, pow, 1, -1),
    [ELEMENTWISE_quickgelu] = {dnnl_eltwise_swish, 1, ARE_GIVEN, 0, 0},
    [ELEMENTWISE_swish] = {dnnl_eltwise_swish, 1, ARE_GIVEN, 0, 0},
    [ELEMENTWISE_elu] = {dnnl_eltwise_elu, 1, ARE_GIVEN, 0, 0},
    [ELEMENTWISE_clip] = {dnnl_eltwise_clip_v2, 1, ARE_GIVEN, 0, 0},
    [ELEMENTWISE_leakyrelu] = {dnnl_eltwise_relu, 1, ARE_SLOPE, 0, 0},
    [ELEMENTWISE_pow] = {dnnl_eltwise_pow, 1, ARE_EXPONENT, 0, 0},
#if DNNL_VERSION_MAJOR >= 3
    [ELEMENTWISE_hardsigmoid] = {dnnl_eltwise_hardsigmoid, 1, ARE_GIVEN, 0, 0},
#endif
    TWO(add, add),
    TWO(sub, sub),
    TWO(mul, mul),
    TWO(div, div),
    TWO(min, min),
    TWO(max, max),
    TWO(equal, eq),
    TWO(less, lt),
    TWO(lessorequal, le),
    TWO(greater, gt),
    TWO(greaterorequal, ge),
    TWO(and, mul),
    TWO(or, max),
    TWO(xor, ne),
};

static const row *row_of(const scout_op *op) {
    const elementwise_id id = elementwise_id_of(op);
    return id < ELEMENTWISE_COUNT && rows[id].operands > 0 ? &rows[id] : NULL;
}

static void numbers_of(const scout_op *op, const row *r, float *alpha, float *beta) {
    const elementwise_numbers n = elementwise_numbers_of(op);
    *alpha = r->alpha, *beta = r->beta;
    if (r->numbers == ARE_GIVEN) *alpha = (float)n.alpha, *beta = (float)n.beta;
    if (r->numbers == ARE_SLOPE) *alpha = (float)n.alpha;
    if (r->numbers == ARE_EXPONENT) *alpha = 1, *beta = (float)n.alpha;
}

/* --- the primitive --- */

static bool add_part(cpu_onednn_plan *p, const scout_op *op, int arg, int tensor) {
    scout_tensor t = op->tensors[tensor];
    cpu_onednn_md md = {.there = false};
    if (t.type == SCOUT_BOOL) t.type = SCOUT_UINT8;
    for (uint32_t d = t.rank; d-- > 0;) /* the library wants strides that grow, where dimensions are 1 as well */
        if (t.strides[d] == 0) t.strides[d] = d + 1 < t.rank ? t.strides[d + 1] * t.dims[d + 1] : 1;
    return cpu_onednn_plan_md(&md, &t, NULL) && cpu_onednn_plan_part(p, arg, tensor, md) >= 0;
}

static dnnl_status_t describe_primitive(const scout_op *op, const row *r, cpu_onednn_plan *p) {
    const int out = (int)op->tensor_count - 1;
    int sources[ELEMENTWISE_MAX_OPERANDS] = {0};
    const int operands = elementwise_sources(op, sources);
    float alpha, beta;
    dnnl_primitive_attr_t attr = NULL;
    bool good = add_part(p, op, operands == 2 ? DNNL_ARG_SRC_0 : DNNL_ARG_SRC, sources[0]);
    if (operands == 2) good = good && add_part(p, op, DNNL_ARG_SRC_1, sources[1]);
    if (!good || !add_part(p, op, DNNL_ARG_DST, out)) return dnnl_invalid_arguments;
    dnnl_status_t status = cpu_onednn_plan_attr(p, &attr);
    numbers_of(op, r, &alpha, &beta);
    const requantize quant = requantize_elements(op);
    const op_activation activation = activation_of(op);
    if (status == dnnl_success) status = cpu_onednn_post_sum(p->lib, attr, &quant, operands, &activation);
    const cpu_onednn_md *a = &p->parts[0].md, *b = &p->parts[1].md;
    if (status == dnnl_success && operands == 1)
        status = cpu_onednn_eltwise(&p->pd, r->algorithm, a, b, alpha, beta, attr);
    if (status == dnnl_success && operands == 2)
        status = cpu_onednn_binary(&p->pd, r->algorithm, a, b, &p->parts[2].md, attr);
    if (attr) p->lib->dnnl_primitive_attr_destroy(attr);
    return status;
}

/* The library reports unsupported broadcasts as invalid arguments. */
static scout_answer refuse(const cpu_onednn_plan *p, dnnl_status_t status, scout_why *why) {
    if (status != dnnl_invalid_arguments) return cpu_onednn_plan_refuse(p, "eltwise or binary primitive", status, why);
    return scout_say(why, SCOUT_NO, "feature", "oneDNN %s has no binary primitive with this broadcast",
                     p->lib->version);
}

static scout_answer describe(cpu_onednn_plan *p, const scout_op *op, scout_why *why) {
    const dnnl_status_t status = describe_primitive(op, row_of(op), p);
    return status == dnnl_success ? cpu_onednn_single_optimised(p, "broadcast or type", why) : refuse(p, status, why);
}

/* --- the candidate --- */

/* A sum of zero points can be corrected, no other operator; the eltwise primitive has one type. */
static bool quantised_fits(const scout_op *op, const requantize *quant) {
    return op_is(op, "add") || (!quant->zero_in && (op_is(op, "mul") || op->input == op->output));
}

/* Integers wrap around in ONNX and saturate in the library, as quantised numbers do. */
static bool type_fits(const scout_op *op) {
    static const uint32_t types[] = {SCOUT_FP32, SCOUT_BF16, SCOUT_FP16, SCOUT_BOOL};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (op->input == types[k]) return true;
    return false;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const row *r = row_of(op);
    int sources[ELEMENTWISE_MAX_OPERANDS] = {0};
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (!r || elementwise_sources(op, sources) != r->operands)
        return scout_say(why, SCOUT_NO, "feature", "oneDNN has no single primitive for this operation");
    const requantize quant = requantize_elements(op);
    if (quant.is && !quantised_fits(op, &quant))
        return scout_say(why, SCOUT_NO, "feature", "oneDNN's primitive has no zero points, or needs equal types");
    if (!quant.is && !type_fits(op))
        return scout_say(why, SCOUT_NO, "type", "oneDNN's primitives do not wrap integers around");
    return cpu_onednn_single_supports(describe, op, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    return cpu_onednn_single_prepare(describe, op, *out, needs, why);
}

const scout_candidate cpu_elementwise_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_elementwise",
    .about = "oneDNN's eltwise or binary primitive",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int8", "uint8", "bool", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = cpu_onednn_single_launch,
    .describe = cpu_onednn_single_json,
    .destroy = cpu_onednn_single_destroy,
    .plan_bytes = sizeof(scout_plan),
};
