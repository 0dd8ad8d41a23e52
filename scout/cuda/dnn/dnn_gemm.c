/* The candidate "cudnn_gemm": a product with its epilogue as one graph, which cuDNN compiles to one kernel. It covers
 * epilogues that cuBLASLt lacks: gelu by the error function, silu, a residual with an activation. A plain product is
 * left to cuBLASLt. */
#include "scout/cuda/dnn/dnn.h"
#include "scout/op/gemm.h"

#include <stdlib.h>

/* Each takes part of a second to compile; the heuristic ranks the best first. */
enum { RANKED = 6 };

struct scout_plan {
    dnn_plan plan;
    int tensor_count, constant_count;
    float constants[DNN_ACTIVATE_CONSTANTS];
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    cudnnDataType_t type;
    (void)device;
    if (!gemm_has_epilogue(&p))
        return scout_say(why, SCOUT_NO, "epilogue", "no epilogue to fuse: cublaslt covers the plain product");
    if (gemm_has_factors(&p)) return scout_say(why, SCOUT_NO, "feature", "no factors of the product or the bias");
    if (!dnn_open(why)) return SCOUT_NO;
    const bool half = p.type_a == SCOUT_FP16 || p.type_a == SCOUT_BF16;
    if (p.type_a != p.type_b || (!half && !(p.type_a == SCOUT_FP32 && p.tf32)) || !dnn_type(p.type_c, &type))
        return scout_say(why, SCOUT_NO, "type", "cuDNN fuses products of fp16, bf16 and tf32");
    for (uint32_t k = 0; k < op->tensor_count; k++)
        for (uint32_t d = 0; d < op->tensors[k].rank; d++)
            if (op->tensors[k].dims[d] > INT32_MAX)
                return scout_say(why, SCOUT_NO, "shape", "a dimension exceeds cuDNN's limit");
    return SCOUT_OK;
}

/* --- the graph --- */

/* [batch, rows, cols] as the product sees it; of a matrix that the batch shares the batch is 1. */
static dnn_desc tell_matrix(dnn_graph *g, const scout_op *op, int place, cudnnDataType_t type, bool flipped) {
    const scout_tensor *const t = &op->tensors[place];
    const int row = flipped ? 2 : 1, col = flipped ? 1 : 2;
    const int64_t batch = t->strides[0] ? t->dims[0] : 1;
    const int64_t dims[] = {batch, t->dims[row], t->dims[col]};
    const int64_t strides[] = {t->strides[0] ? t->strides[0] : t->dims[1] * t->strides[1], t->strides[row],
                               t->strides[col]};
    return dnn_tensor(g, place + 1, type, 3, dims, strides);
}

static dnn_desc tell_bias(dnn_graph *g, const scout_op *op, const gemm_problem *p, cudnnDataType_t type) {
    const int place = op_tensor(op, "bias");
    const bool rows = p->bias[0] == 'm' || p->bias[0] == 'f', each = p->bias[0] == 'e',
               cols = p->bias[0] == 'n' || p->bias[0] == 'f' || each;
    const int64_t dims[] = {each ? p->batch : 1, rows ? p->m : 1, cols ? p->n : 1};
    const int64_t strides[] = {dims[1] * dims[2], dims[2], 1};
    return place < 0 ? NULL : dnn_tensor(g, place + 1, type, 3, dims, strides);
}

static scout_answer build(dnn_graph *g, const scout_op *op, int64_t way, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    cudnnDataType_t in = CUDNN_DATA_FLOAT, out = CUDNN_DATA_FLOAT;
    (void)way;
    if (!dnn_type(p.type_a, &in) || !dnn_type(p.type_c, &out))
        return scout_say(why, SCOUT_NO, "type", "cuDNN's products do not support these types");
    const int64_t dims[] = {p.batch, p.m, p.n}, strides[] = {p.batch > 1 ? p.stride_c : p.m * p.ldc, p.ldc, 1};
    g->refused = dnn_activate_refused(op);
    const dnn_desc a = tell_matrix(g, op, GEMM_A, in, p.trans_a != 0),
                   b = tell_matrix(g, op, GEMM_B, in, p.trans_b != 0);
    const dnn_desc sums = dnn_virtual(g, CUDNN_DATA_FLOAT, 3, dims, strides);
    const dnn_desc y = dnn_tensor(g, GEMM_C + 1, out, 3, dims, strides);
    const dnn_behind behind = {.residual =
                                   p.residual >= 0 ? dnn_tensor(g, p.residual + 1, out, 3, dims, strides) : NULL,
                               .bias = p.bias ? tell_bias(g, op, &p, out) : NULL,
                               .activation = p.activation,
                               .rank = 3,
                               .dims = dims,
                               .strides = strides};
    dnn_matmul(g, a, b, sums);
    dnn_activate(g, &behind, sums, y);
    return SCOUT_OK;
}

/* --- the candidate --- */

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    dnn_offer *const offer = dnn_offer_get(device, op, build, 0, why);
    memset(out, 0, sizeof *out);
    if (!offer) return SCOUT_NO;
    const scout_answer answer = dnn_offer_domain(offer, exhaustive, out, why);
    if (answer == SCOUT_OK && !exhaustive && out->parameters[0].count > RANKED) out->parameters[0].count = RANKED;
    return answer;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const dnn_offer *const offer = dnn_offer_get(device, op, build, 0, NULL);
    return offer && dnn_offer_allows(offer, values[0]);
}

static void destroy(scout_plan *plan) { dnn_plan_free(&plan->plan); }

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    dnn_offer *const offer = dnn_offer_get(device, op, build, 0, why);
    if (!offer) return SCOUT_NO;
    scout_plan *const plan = *out;
    plan->tensor_count = (int)op->tensor_count;
    plan->constant_count = dnn_activate_constants(&p.activation, plan->constants);
    const scout_answer answer = dnn_plan_make(offer, values[0], &plan->plan, why);
    if (answer != SCOUT_OK) return answer;
    needs->workspace_bytes = plan->plan.workspace;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    int64_t uids[SCOUT_MAX_TENSORS + DNN_ACTIVATE_CONSTANTS];
    void *pointers[SCOUT_MAX_TENSORS + DNN_ACTIVATE_CONSTANTS];
    int n = 0;
    for (int k = 0; k < plan->tensor_count; k++, n++) uids[n] = k + 1, pointers[n] = args->tensors[k];
    for (int k = 0; k < plan->constant_count; k++, n++)
        uids[n] = DNN_ACTIVATE_FIRST + k, pointers[n] = &plan->constants[k];
    return dnn_plan_launch(&plan->plan, n, uids, pointers, args->workspace, args->stream, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    char members[700];
    dnn_plan_describe(&plan->plan, members, sizeof members);
    return snprintf(json, room, "{%s}", members);
}

const scout_candidate dnn_gemm = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .priority = 70,
    .name = "cudnn_gemm",
    .about = "cuDNN's fused products: bias, residual and any activation in the kernel that multiplies",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"tf32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
