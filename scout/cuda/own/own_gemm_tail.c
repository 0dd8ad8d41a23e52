/* A product by another candidate, and an own kernel for bias, residual and activation: "cublaslt_tail", and the same of
 * own kernels without an epilogue. Two kernels are the default where the library has no such epilogue; where it has
 * one, this shows what the epilogue gains. The product is an operation of its own here: the same tensors without those
 * of the epilogue; a factor of the product stays with it, one of the bias does not. */
#include "kernels/product/tail.h"
#include "scout/cuda/lt/lt.h"
#include "scout/cuda/own/own_activate.h"

#include <string.h>

/* Of the product's first parameter: the other candidate measures all its values. */
enum { TAIL_VALUES = 8, TAIL_FIELDS = 48 };

typedef struct bare { /* the product alone */
    scout_op op;
    scout_field fields[TAIL_FIELDS];
    scout_tensor tensors[SCOUT_MAX_TENSORS];
    int from[SCOUT_MAX_TENSORS]; /* where its tensors are among the operation's */
    char key[512];
} bare;

struct scout_plan {
    bare product;
    const scout_candidate *by;
    scout_plan *multiply; /* of `by` */
    uint32_t packs;       /* as `by` says it */
    tail tail;
    int bias, residual; /* places in op->tensors; -1: none */
};

/* --- the product alone --- */

static bool stands_behind(const char *name) {
    static const char *const names[] = {"bias", "beta", "residual"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strcmp(names[k], name) == 0) return true;
    return strncmp(name, "activation", strlen("activation")) == 0;
}

static scout_answer bare_of(const scout_op *op, bare *out, scout_why *why) {
    memset(out, 0, sizeof *out);
    out->op = *op;
    out->op.field_count = out->op.tensor_count = 0;
    if (op->field_count > TAIL_FIELDS || op->tensor_count > SCOUT_MAX_TENSORS)
        return scout_say(why, SCOUT_NO, "feature", "the operation has too many fields");
    for (uint32_t k = 0; k < op->field_count; k++)
        if (!stands_behind(op->fields[k].name)) out->fields[out->op.field_count++] = op->fields[k];
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        if (stands_behind(op->tensors[k].name)) continue;
        out->from[out->op.tensor_count] = (int)k;
        out->tensors[out->op.tensor_count++] = op->tensors[k];
    }
    snprintf(out->key, sizeof out->key, "bare;%s", op->key);
    out->op.fields = out->fields;
    out->op.tensors = out->tensors;
    out->op.key = out->key;
    return SCOUT_OK;
}

/* Borrowed: of `args`, those that the product has. */
static void bare_tensors(const bare *b, void *const *all, void **own) {
    for (uint32_t k = 0; k < b->op.tensor_count; k++) own[k] = all[b->from[k]];
}

/* --- the epilogue --- */

static scout_answer tail_of(const scout_op *op, tail *out, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const int bias = op_tensor(op, "bias");
    const int64_t all = p.m * p.n * p.batch;
    if (!gemm_has_epilogue(&p)) return scout_say(why, SCOUT_NO, "epilogue", "no epilogue to fuse");
    if (p.type_c != SCOUT_FP32 && p.type_c != SCOUT_FP16 && p.type_c != SCOUT_BF16)
        return scout_say(why, SCOUT_NO, "type", "the epilogue kernel is for fp32, fp16 and bf16");
    if (p.ldc != p.n || (p.batch > 1 && p.stride_c != p.m * p.n))
        return scout_say(why, SCOUT_NO, "layout", "the epilogue kernel needs a dense output");
    if (p.bias && (bias < 0 || op->tensors[bias].type != p.type_c))
        return scout_say(why, SCOUT_NO, "type", "the bias must be of the output's type");
    if (p.bias && strcmp(p.bias, "each") == 0 && p.batch > 1)
        return scout_say(why, SCOUT_NO, "epilogue", "the epilogue kernel has one bias for all products of a batch");
    *out = (tail){.elements = all,
                  .step = 1,
                  .channels = p.n,
                  .type = (int)p.type_c,
                  .factor = (float)p.beta,
                  .function = own_activate(p.activation.function),
                  .alpha = (float)p.activation.alpha,
                  .beta = (float)p.activation.beta};
    if (p.bias && strcmp(p.bias, "m") == 0) out->step = p.n, out->channels = p.m;
    if (p.bias && strcmp(p.bias, "scalar") == 0) out->step = all, out->channels = 1;
    if (p.bias && strcmp(p.bias, "full") == 0) out->channels = p.m * p.n;
    return SCOUT_OK;
}

/* --- the candidate --- */

static scout_answer tail_supports(const scout_candidate *by, const scout_op *op, scout_device *device, scout_why *why) {
    tail behind;
    bare product;
    scout_answer answer = tail_of(op, &behind, why);
    if (answer == SCOUT_OK) answer = bare_of(op, &product, why);
    return answer == SCOUT_OK ? by->supports(&product.op, device, why) : answer;
}

static scout_answer tail_domain(const scout_candidate *by, const scout_op *op, scout_device *device, int exhaustive,
                                scout_domain *out, scout_why *why) {
    bare product;
    memset(out, 0, sizeof *out);
    scout_answer answer = bare_of(op, &product, why);
    if (answer == SCOUT_OK) answer = by->domain(&product.op, device, exhaustive, out, why);
    if (answer == SCOUT_OK && !exhaustive && out->count > 0 && out->parameters[0].count > TAIL_VALUES)
        out->parameters[0].count = TAIL_VALUES;
    return answer;
}

static int tail_allows(const scout_candidate *by, const scout_op *op, scout_device *device, const int64_t *values) {
    bare product;
    return bare_of(op, &product, NULL) == SCOUT_OK && (!by->allows || by->allows(&product.op, device, values));
}

static void tail_destroy(scout_plan *plan) {
    if (plan->multiply) scout_destroy(plan->by, plan->multiply);
}

static scout_answer tail_prepare(const scout_candidate *by, const scout_op *op, scout_device *device,
                                 const int64_t *values, scout_plan **out, scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    plan->by = by;
    plan->bias = op_tensor(op, "bias");
    plan->residual = op_tensor(op, "residual");
    scout_answer answer = tail_of(op, &plan->tail, why);
    if (answer == SCOUT_OK) answer = bare_of(op, &plan->product, why);
    if (answer == SCOUT_OK) answer = scout_prepare(by, &plan->product.op, device, values, &plan->multiply, needs, why);
    if (answer != SCOUT_OK) return answer;
    plan->packs = needs->packs;
    if (needs->packs) needs->packs = (uint32_t)plan->product.from[needs->packs - 1] + 1;
    return SCOUT_OK;
}

static scout_answer tail_pack(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why) {
    void *own[SCOUT_MAX_TENSORS] = {NULL};
    bare_tensors(&plan->product, tensors, own);
    if (plan->by->pack_tensors) return plan->by->pack_tensors(plan->multiply, own, packed, stream, why);
    if (!plan->packs) return scout_say(why, SCOUT_FAILED, "error", "this plan packs nothing");
    return plan->by->pack(plan->multiply, own[plan->packs - 1], packed, stream, why);
}

static scout_answer tail_launch_both(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *own[SCOUT_MAX_TENSORS] = {NULL};
    const scout_args product = {sizeof product, own, args->workspace, args->stream};
    bare_tensors(&plan->product, args->tensors, own);
    const scout_answer answer = plan->by->launch(plan->multiply, &product, why);
    if (answer != SCOUT_OK) return answer;
    return cuda_device_answer(
        (cudaError_t)tail_launch(&plan->tail, args->tensors[GEMM_C], plan->bias >= 0 ? args->tensors[plan->bias] : NULL,
                                 plan->residual >= 0 ? args->tensors[plan->residual] : NULL, args->stream),
        "the epilogue of a product", why);
}

/* The product's own, with the name of the epilogue kernel. */
static int tail_describe(const scout_plan *plan, char *json, size_t room) {
    char product[2048];
    const int n = scout_describe(plan->by, plan->multiply, product, sizeof product);
    const bool whole = n > 1 && (size_t)n < sizeof product && product[0] == '{';
    return snprintf(json, room, "{\"behind\":\"tail\"%s%s", whole ? "," : "}", whole ? product + 1 : "");
}

/* A candidate's functions do not get the candidate, so each of these has functions of its own, which name the
 * product's. */
#define TAIL_OF(candidate, asked, called, how, said, rank, loaded, won)                                                \
    static scout_answer candidate##_supports(const scout_op *op, scout_device *device, scout_why *why) {               \
        return tail_supports(&(asked), op, device, why);                                                               \
    }                                                                                                                  \
    static scout_answer candidate##_domain(const scout_op *op, scout_device *device, int exhaustive,                   \
                                           scout_domain *out, scout_why *why) {                                        \
        return tail_domain(&(asked), op, device, exhaustive, out, why);                                                \
    }                                                                                                                  \
    static int candidate##_allows(const scout_op *op, scout_device *device, const int64_t *values) {                   \
        return tail_allows(&(asked), op, device, values);                                                              \
    }                                                                                                                  \
    static scout_answer candidate##_prepare(const scout_op *op, scout_device *device, const int64_t *values,           \
                                            scout_plan **out, scout_plan_needs *needs, scout_why *why) {               \
        return tail_prepare(&(asked), op, device, values, out, needs, why);                                            \
    }                                                                                                                  \
    const scout_candidate candidate = {                                                                                \
        .size = sizeof(scout_candidate),                                                                               \
        .kind = SCOUT_GEMM,                                                                                            \
        .flags = (how),                                                                                                \
        .priority = (rank),                                                                                            \
        .name = (called),                                                                                              \
        .about = (said),                                                                                               \
        .library = (loaded),                                                                                           \
        .approach = (won),                                                                                             \
        .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", "fp8", "int4", NULL},                      \
        .supports = candidate##_supports,                                                                              \
        .domain = candidate##_domain,                                                                                  \
        .allows = candidate##_allows,                                                                                  \
        .prepare = candidate##_prepare,                                                                                \
        .launch = tail_launch_both,                                                                                    \
        .describe = tail_describe,                                                                                     \
        .destroy = tail_destroy,                                                                                       \
        .plan_bytes = sizeof(scout_plan),                                                                              \
        .pack_tensors = tail_pack,                                                                                     \
    };

TAIL_OF(own_gemm_tail, lt_candidate, "cublaslt_tail", SCOUT_BASELINE,
        "cuBLASLt's product, and an own kernel for bias, residual and activation in a second pass", 80, "cublaslt",
        "LIBRARY_TUNE")
TAIL_OF(own_gemm_stream_tail, own_gemm_stream, "gemm_stream_tail", SCOUT_OWN,
        "gemm_stream, and an own kernel for bias, residual and activation in a second pass", 49, NULL, "CUSTOM_KERNEL")
TAIL_OF(own_gemm_int4_tail, own_gemm_int4, "gemm_int4_tail", SCOUT_OWN,
        "gemm_int4, and an own kernel for bias, residual and activation in a second pass", 49, NULL, "CUSTOM_KERNEL")
