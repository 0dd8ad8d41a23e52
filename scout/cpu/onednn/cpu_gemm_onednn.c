/* Products by oneDNN's matmul: the baseline of this device. Layouts are strides of its memory descriptors, a matrix
 * that the batch shares is a dimension of 1, a bias is matmul's own; a factor, a residual and an activation are
 * post-operations. Variants: the weight as it is, or packed once into the library's preferred format; and the epilogue
 * within the primitive, where the library has it, or by a pass of the project's own. */
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/cpu/products/cpu_gemm_tail.h"
#include "scout/op/gemm.h"

#include <stdlib.h>
#include <string.h>

enum { SRC, WEIGHTS, DST, BIAS, RESIDUAL, PARTS };

typedef struct way { /* a variant */
    bool packed, pass;
} way;

struct scout_plan {
    cpu_onednn_plan p;
    way way;
    cpu_gemm_tail tail; /* where way.pass */
};

static const int arg_of[PARTS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS,
                                  CPU_ONEDNN_POST_RESIDUAL};

/* --- descriptors --- */

typedef struct matrix { /* [batch, rows, cols] as matmul sees it; a batch of 1 in all of them is left out */
    int64_t dims[3], strides[3];
} matrix;

static matrix operand(int64_t batch, int64_t step, int64_t rows, int64_t cols, int transposed, int64_t ld) {
    matrix m = {{step ? batch : 1, rows, cols}, {step ? step : rows * cols, ld, 1}};
    if (transposed) m.strides[1] = 1, m.strides[2] = ld;
    return m;
}

static bool strided(cpu_onednn_md *md, const matrix *m, bool batched, uint32_t type) {
    return cpu_onednn_md_strided(md, batched ? 3 : 2, m->dims + !batched, cpu_onednn_plan_type(type),
                                 m->strides + !batched);
}

static bool describe_bias(const scout_op *op, const gemm_problem *p, int bias, cpu_onednn_md *md) {
    if (bias < 0) return false;
    const scout_tensor *t = &op->tensors[bias];
    const bool rows = strcmp(p->bias, "m") == 0 || strcmp(p->bias, "full") == 0;
    const bool cols = strcmp(p->bias, "n") == 0 || strcmp(p->bias, "full") == 0;
    const int64_t height = rows ? p->m : 1, width = cols ? p->n : 1;
    const bool full = rows && cols;
    const matrix m = operand(p->batch, full && t->rank == 3 ? t->strides[0] : 0, height, width, 0, width);
    return cpu_onednn_plan_type(t->type) != dnnl_data_type_undef && strided(md, &m, p->batch > 1, t->type);
}

static bool describe_all(const scout_op *op, const gemm_problem *p, scout_plan *plan, int bias, cpu_onednn_md *md) {
    const bool batched = p->batch > 1, packed = plan->way.packed;
    const matrix a = operand(p->batch, p->stride_a, p->m, p->k, p->trans_a, p->lda);
    const matrix b = operand(p->batch, p->stride_b, p->k, p->n, p->trans_b, p->ldb);
    const matrix c = operand(p->batch, p->stride_c, p->m, p->n, 0, p->ldc);
    bool good = strided(&md[SRC], &a, batched, p->type_a) && strided(&md[DST], &c, batched, p->type_c) &&
                strided(packed ? &plan->p.plain : &md[WEIGHTS], &b, batched, p->type_b);
    if (packed)
        good = good &&
               cpu_onednn_md_any(&md[WEIGHTS], batched ? 3 : 2, b.dims + !batched, cpu_onednn_plan_type(p->type_b));
    if (plan->way.pass) return good;
    if (p->residual >= 0) good = good && strided(&md[RESIDUAL], &c, batched, p->type_c);
    return good && (!p->bias || describe_bias(op, p, bias, &md[BIAS]));
}

/* The harness owns the scratch memory, unless it would be more than a plan may ask for. */
static dnnl_status_t describe_product(scout_plan *plan, const gemm_problem *p, const cpu_onednn_md *md,
                                      uint64_t limit) {
    const op_activation none = {.function = ACTIVATION_PLAIN};
    const cpu_onednn *l = plan->p.lib;
    for (bool ours = true;; ours = false) {
        dnnl_primitive_attr_t attr = NULL;
        dnnl_status_t status = ours ? cpu_onednn_plan_attr(&plan->p, &attr) : l->dnnl_primitive_attr_create(&attr);
        if (status == dnnl_success) status = cpu_onednn_post_quantise(l, attr, &p->quant);
        if (status == dnnl_success)
            status = cpu_onednn_post(l, attr, plan->way.pass ? 1 : p->alpha, &md[RESIDUAL],
                                     plan->way.pass ? &none : &p->activation);
        if (status == dnnl_success)
            status = cpu_onednn_matmul(&plan->p.pd, &md[SRC], &md[WEIGHTS], &md[BIAS], &md[DST], attr);
        if (attr) l->dnnl_primitive_attr_destroy(attr);
        if (status != dnnl_success || !ours || cpu_onednn_plan_scratch_fits(&plan->p, limit)) return status;
    }
}

/* --- the candidate --- */

static void destroy(scout_plan *plan) { cpu_onednn_plan_free(&plan->p); }

static scout_answer refuse(const cpu_onednn *l, const gemm_problem *p, bool fused, dnnl_status_t status,
                           scout_why *why) {
    if (status == dnnl_out_of_memory)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "oneDNN has no memory for this product");
    if (status != dnnl_unimplemented)
        return scout_say(why, SCOUT_FAILED, "error", "oneDNN %s refuses this product with status %d", l->version,
                         (int)status);
    if (fused && cpu_gemm_tail_wanted(p))
        return scout_say(why, SCOUT_NO, "epilogue",
                         "oneDNN %s has no matmul with these factors, bias, residual or activation here", l->version);
    return scout_say(why, SCOUT_NO, "type", "oneDNN %s has no matmul for these types on this processor", l->version);
}

/* A factor is a post-operation, and matmul adds its bias before those. Version 2.6 takes one linear function alone. */
static bool factors_fuse(const gemm_problem *p) {
    return !gemm_has_factors(p) || (!p->bias && p->activation.function != ACTIVATION_HARDSIGMOID);
}

static scout_answer describe_plan(const scout_op *op, way w, scout_plan *plan, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const int bias = op_tensor(op, "bias"), tensors[PARTS] = {GEMM_A, GEMM_B, GEMM_C, bias, p.residual};
    cpu_onednn_md md[PARTS] = {{.there = false}};
    scout_answer answer = cpu_onednn_plan_begin(&plan->p, why);
    plan->way = w;
    if (answer == SCOUT_OK && w.pass) answer = cpu_gemm_tail_of(op, &plan->tail, why);
    if (answer != SCOUT_OK) return answer;
    if (!w.pass && !factors_fuse(&p)) return refuse(plan->p.lib, &p, true, dnnl_unimplemented, why);
    if (!w.pass && p.bias && strcmp(p.bias, "each") == 0) /* the library's reference adds it: 400 times as slow */
        return refuse(plan->p.lib, &p, true, dnnl_unimplemented, why);
    dnnl_status_t status = dnnl_invalid_arguments;
    if (describe_all(op, &p, plan, bias, md)) status = describe_product(plan, &p, md, op->workspace_limit);
    for (int k = 0; k < PARTS; k++) {
        if (md[k].there && status == dnnl_success)
            (void)cpu_onednn_plan_part(&plan->p, arg_of[k], tensors[k], md[k]); /* all have room */
        else
            cpu_onednn_md_free(&md[k]);
    }
    if (w.packed) plan->p.packed = WEIGHTS;
    return status == dnnl_success ? SCOUT_OK : refuse(plan->p.lib, &p, !w.pass, status, why);
}

/* Asks the library; compiles nothing yet. */
static bool can(const scout_op *op, way w, scout_why *why) {
    scout_plan plan = {.way = w};
    const scout_answer answer = describe_plan(op, w, &plan, why);
    destroy(&plan);
    return answer == SCOUT_OK;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (p.block_size > 0) return scout_say(why, SCOUT_NO, "feature", "weights with scales are not supported");
    if (gemm_has_zeros(&p) || p.quant.zero_weight)
        return scout_say(why, SCOUT_NO, "feature", "zero points and scales as tensors are not supported");
    if (cpu_onednn_plan_type(p.type_a) == dnnl_data_type_undef ||
        cpu_onednn_plan_type(p.type_b) == dnnl_data_type_undef ||
        cpu_onednn_plan_type(p.type_c) == dnnl_data_type_undef)
        return scout_say(why, SCOUT_NO, "type", "oneDNN's matmul does not support these types");
    if (!cpu_onednn_plan_multiplies(p.type_a, why)) return SCOUT_NO;
    if (can(op, (way){false, false}, why)) return SCOUT_OK;
    return cpu_gemm_tail_wanted(&p) && can(op, (way){false, true}, why) ? SCOUT_OK : SCOUT_NO;
}

static bool packable(const gemm_problem *p) { return p->weight == GEMM_B && (p->batch == 1 || p->stride_b == 0); }

static void add_parameter(scout_domain *out, const char *name, const char *const *labels, int first, int count) {
    scout_parameter *p = &out->parameters[out->count++];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->count = (uint32_t)count;
    for (int k = 0; k < count; k++) p->values[k] = first + k;
    p->labels = labels + first;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const weights[] = {"as_is", "packed"}, *const epilogues[] = {"fused", "pass"};
    const gemm_problem p = gemm_problem_of(op);
    (void)device, (void)exhaustive, (void)why;
    out->count = 0;
    if (packable(&p)) add_parameter(out, "weight", weights, 0, 2);
    if (!cpu_gemm_tail_wanted(&p)) return SCOUT_OK;
    const bool fused = can(op, (way){false, false}, NULL), pass = can(op, (way){false, true}, NULL);
    add_parameter(out, "epilogue", epilogues, !fused, fused + pass);
    return SCOUT_OK;
}

static way way_of(const gemm_problem *p, const int64_t *values) {
    way w = {false, false};
    if (!values) return w;
    if (packable(p)) w.packed = *values++ == 1;
    if (cpu_gemm_tail_wanted(p)) w.pass = *values == 1;
    return w;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    scout_plan *const plan = *out;
    (void)device;
    const scout_answer answer = describe_plan(op, way_of(&p, values), plan, why);
    return answer == SCOUT_OK ? cpu_onednn_plan_finish(&plan->p, op->workspace_limit, needs, why) : answer;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    (void)stream;
    return cpu_onednn_plan_pack(&plan->p, weight, packed, why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const scout_answer answer = cpu_onednn_plan_launch(&plan->p, args, why);
    if (answer == SCOUT_OK && plan->way.pass) cpu_gemm_tail_run(&plan->tail, args->tensors);
    return answer;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\": \"onednn\", \"version\": \"%s\", \"implementation\": \"%s\", \"weight\": \"%s\", "
                    "\"passes\": %d, \"threads\": \"%s\"}",
                    plan->p.lib->version, cpu_onednn_plan_implementation(&plan->p),
                    plan->way.packed ? "packed" : "as_is", 1 + plan->way.pass, cpu_team_about());
}

const scout_candidate cpu_gemm_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn",
    .about = "oneDNN's matmul, the weight as it is or packed once; factor, bias, residual and activation fused or in a "
             "second pass",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", "bf16", "int8", "fp16", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
