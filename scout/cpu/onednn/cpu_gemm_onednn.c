/* Products by oneDNN's matmul: the baseline of this device. Layouts are strides of its memory descriptors, a matrix
 * that the batch shares is a dimension of 1, a bias is matmul's own, a residual and an activation are post-operations.
 * Variants: the weight as it is, or packed once into the library's preferred format; and the epilogue within the
 * primitive, where the library has it, or by a pass of the project's own. */
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/cpu/onednn/cpu_onednn_post.h"
#include "scout/cpu/products/cpu_gemm_tail.h"
#include "scout/op/gemm.h"

#include <stdlib.h>
#include <string.h>

enum { SRC, WEIGHTS, DST, BIAS, RESIDUAL, SCRATCH, PARTS };

typedef struct way { /* a variant */
    bool packed, pass;
} way;

struct scout_plan {
    const cpu_onednn *lib;
    dnnl_primitive_desc_t pd, pack_pd;
    dnnl_primitive_t primitive, pack;
    cpu_onednn_md md[PARTS], plain; /* plain: the weight before packing */
    dnnl_memory_t memory[PARTS];
    dnnl_exec_arg_t args[PARTS];
    int arg_count, bias, residual; /* the last two: their tensors; -1: none */
    way way;
    bool scratch_is_ours;
    op_activation activation; /* within the primitive */
    requantize quant;
    cpu_gemm_tail tail; /* where way.pass */
};

static const int arg_of[PARTS] = {DNNL_ARG_SRC,  DNNL_ARG_WEIGHTS,         DNNL_ARG_DST,
                                  DNNL_ARG_BIAS, CPU_ONEDNN_POST_RESIDUAL, DNNL_ARG_SCRATCHPAD};

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

static bool describe_bias(const scout_op *op, const gemm_problem *p, scout_plan *plan) {
    plan->bias = op_tensor(op, "bias");
    if (plan->bias < 0) return false;
    const scout_tensor *t = &op->tensors[plan->bias];
    const bool rows = strcmp(p->bias, "m") == 0 || strcmp(p->bias, "full") == 0;
    const bool cols = strcmp(p->bias, "n") == 0 || strcmp(p->bias, "full") == 0;
    const int64_t height = rows ? p->m : 1, width = cols ? p->n : 1;
    const bool full = rows && cols;
    const matrix m = operand(p->batch, full && t->rank == 3 ? t->strides[0] : 0, height, width, 0, width);
    return cpu_onednn_plan_type(t->type) != dnnl_data_type_undef && strided(&plan->md[BIAS], &m, p->batch > 1, t->type);
}

static bool describe_all(const scout_op *op, const gemm_problem *p, scout_plan *plan) {
    const bool batched = p->batch > 1;
    const matrix a = operand(p->batch, p->stride_a, p->m, p->k, p->trans_a, p->lda);
    const matrix b = operand(p->batch, p->stride_b, p->k, p->n, p->trans_b, p->ldb);
    const matrix c = operand(p->batch, p->stride_c, p->m, p->n, 0, p->ldc);
    plan->bias = -1, plan->residual = -1;
    bool good = strided(&plan->md[SRC], &a, batched, p->type_a) && strided(&plan->plain, &b, batched, p->type_b) &&
                strided(&plan->md[DST], &c, batched, p->type_c);
    if (plan->way.packed)
        good = good && cpu_onednn_md_any(&plan->md[WEIGHTS], batched ? 3 : 2, b.dims + !batched,
                                         cpu_onednn_plan_type(p->type_b));
    else
        good = good && strided(&plan->md[WEIGHTS], &b, batched, p->type_b);
    plan->quant = p->quant;
    if (plan->way.pass) return good;
    plan->activation = p->activation;
    plan->residual = p->residual;
    if (p->residual >= 0) good = good && strided(&plan->md[RESIDUAL], &c, batched, p->type_c);
    return good && (!p->bias || describe_bias(op, p, plan));
}

/* The harness owns the scratch memory, unless it would be more than a plan may ask for. */
static dnnl_status_t describe_product(scout_plan *plan, uint64_t limit) {
    const cpu_onednn *l = plan->lib;
    dnnl_status_t status = dnnl_success;
    for (int ours = 1; ours >= 0; ours--) {
        dnnl_primitive_attr_t attr = NULL;
        status = l->dnnl_primitive_attr_create(&attr);
        if (status == dnnl_success && ours)
            status = l->dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
        if (status == dnnl_success) status = cpu_onednn_post_quantise(l, attr, &plan->quant);
        if (status == dnnl_success) status = cpu_onednn_post(l, attr, &plan->md[RESIDUAL], &plan->activation);
        if (status == dnnl_success)
            status =
                cpu_onednn_matmul(&plan->pd, &plan->md[SRC], &plan->md[WEIGHTS], &plan->md[BIAS], &plan->md[DST], attr);
        if (attr) l->dnnl_primitive_attr_destroy(attr);
        if (status != dnnl_success) return status;
        plan->scratch_is_ours = ours != 0;
        if (!ours) return status;
        if (!cpu_onednn_md_of(&plan->md[SCRATCH], plan->pd, dnnl_query_scratchpad_md)) return dnnl_runtime_error;
        if (cpu_onednn_md_bytes(&plan->md[SCRATCH]) <= limit) return status;
        l->dnnl_primitive_desc_destroy(plan->pd);
        plan->pd = NULL;
        cpu_onednn_md_free(&plan->md[SCRATCH]);
    }
    return status;
}

/* --- the candidate --- */

static void destroy(scout_plan *plan) {
    const cpu_onednn *l = plan->lib;
    for (int k = 0; k < PARTS; k++) {
        if (plan->memory[k]) l->dnnl_memory_destroy(plan->memory[k]);
        cpu_onednn_md_free(&plan->md[k]);
    }
    cpu_onednn_md_free(&plan->plain);
    if (plan->primitive) l->dnnl_primitive_destroy(plan->primitive);
    if (plan->pack) l->dnnl_primitive_destroy(plan->pack);
    if (plan->pd) l->dnnl_primitive_desc_destroy(plan->pd);
    if (plan->pack_pd) l->dnnl_primitive_desc_destroy(plan->pack_pd);
}

static scout_answer refuse(const cpu_onednn *l, const gemm_problem *p, bool fused, dnnl_status_t status,
                           scout_why *why) {
    if (status == dnnl_out_of_memory)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "oneDNN has no memory for this product");
    if (status != dnnl_unimplemented)
        return scout_say(why, SCOUT_FAILED, "error", "oneDNN %s refuses this product with status %d", l->version,
                         (int)status);
    if (fused && gemm_has_epilogue(p))
        return scout_say(why, SCOUT_NO, "epilogue",
                         "oneDNN %s has no matmul with this bias, residual or activation here", l->version);
    return scout_say(why, SCOUT_NO, "type", "oneDNN %s has no matmul for these types on this processor", l->version);
}

static scout_answer describe_plan(const scout_op *op, way w, scout_plan *plan, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const cpu_onednn *l = cpu_onednn_get(why);
    if (!l) return SCOUT_NO;
    plan->lib = l;
    plan->way = w;
    const scout_answer tail = w.pass ? cpu_gemm_tail_of(op, &plan->tail, why) : SCOUT_OK;
    if (tail != SCOUT_OK) return tail;
    dnnl_status_t status = dnnl_invalid_arguments;
    if (describe_all(op, &p, plan)) status = describe_product(plan, op->workspace_limit);
    return status == dnnl_success ? SCOUT_OK : refuse(l, &p, !w.pass, status, why);
}

/* Asks the library; compiles nothing yet. */
static bool can(const scout_op *op, way w, scout_why *why) {
    scout_plan plan = {.lib = NULL};
    const scout_answer answer = describe_plan(op, w, &plan, why);
    destroy(&plan);
    return answer == SCOUT_OK;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (p.block_size > 0) return scout_say(why, SCOUT_NO, "feature", "weights quantised in blocks are not supported");
    if (gemm_has_zeros(&p) || p.quant.zero_weight)
        return scout_say(why, SCOUT_NO, "feature", "zero points and scales as tensors are not supported");
    if (cpu_onednn_plan_type(p.type_a) == dnnl_data_type_undef ||
        cpu_onednn_plan_type(p.type_b) == dnnl_data_type_undef ||
        cpu_onednn_plan_type(p.type_c) == dnnl_data_type_undef)
        return scout_say(why, SCOUT_NO, "type", "oneDNN's matmul does not support these types");
    if (!cpu_onednn_plan_multiplies(p.type_a, why)) return SCOUT_NO;
    if (can(op, (way){false, false}, why)) return SCOUT_OK;
    return gemm_has_epilogue(&p) && can(op, (way){false, true}, why) ? SCOUT_OK : SCOUT_NO;
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
    if (!gemm_has_epilogue(&p)) return SCOUT_OK;
    const bool fused = can(op, (way){false, false}, NULL), pass = can(op, (way){false, true}, NULL);
    add_parameter(out, "epilogue", epilogues, !fused, fused + pass);
    return SCOUT_OK;
}

static way way_of(const gemm_problem *p, const int64_t *values) {
    way w = {false, false};
    if (!values) return w;
    if (packable(p)) w.packed = *values++ == 1;
    if (gemm_has_epilogue(p)) w.pass = *values == 1;
    return w;
}

static bool add_arg(scout_plan *plan, int part) {
    if (!plan->md[part].there) return true;
    if (!cpu_onednn_memory(&plan->memory[part], &plan->md[part], DNNL_MEMORY_NONE)) return false;
    plan->args[plan->arg_count++] = (dnnl_exec_arg_t){arg_of[part], plan->memory[part]};
    return true;
}

static dnnl_status_t compile(scout_plan *plan) {
    const cpu_onednn *l = plan->lib;
    dnnl_status_t status = l->dnnl_primitive_create(&plan->primitive, plan->pd);
    if (status == dnnl_success && plan->way.packed) {
        cpu_onednn_md_free(&plan->md[WEIGHTS]);
        if (!cpu_onednn_md_of(&plan->md[WEIGHTS], plan->pd, dnnl_query_weights_md)) return dnnl_runtime_error;
        status = cpu_onednn_reorder(&plan->pack_pd, &plan->plain, &plan->md[WEIGHTS]);
        if (status == dnnl_success) status = l->dnnl_primitive_create(&plan->pack, plan->pack_pd);
    }
    for (int part = 0; part < PARTS && status == dnnl_success; part++)
        if (!add_arg(plan, part)) status = dnnl_out_of_memory;
    return status;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    scout_plan *const plan = *out;
    (void)device;
    const scout_answer answer = describe_plan(op, way_of(&p, values), plan, why);
    if (answer != SCOUT_OK) return answer;
    const dnnl_status_t status = compile(plan);
    if (status != dnnl_success) return refuse(plan->lib, &p, !plan->way.pass, status, why);
    if (plan->way.packed && cpu_onednn_md_same(&plan->md[WEIGHTS], &plan->plain))
        return scout_say(why, SCOUT_NO, "feature", "oneDNN keeps this weight's layout: nothing to pack");
    needs->packs = plan->way.packed ? GEMM_B + 1 : 0;
    needs->pack_bytes = plan->way.packed ? cpu_onednn_md_bytes(&plan->md[WEIGHTS]) : 0;
    needs->workspace_bytes = cpu_onednn_md_bytes(&plan->md[SCRATCH]);
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    const cpu_onednn *l = plan->lib;
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_status_t status = dnnl_out_of_memory;
    (void)stream;
    /* the library takes no pointer to const; a reorder only reads its source */
    if (cpu_onednn_memory(&from, &plan->plain, (void *)(uintptr_t)weight) &&
        cpu_onednn_memory(&to, &plan->md[WEIGHTS], packed)) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        status = l->dnnl_primitive_execute(plan->pack, l->stream, 2, args);
        if (status == dnnl_success) status = l->dnnl_stream_wait(l->stream);
    }
    if (from) l->dnnl_memory_destroy(from);
    if (to) l->dnnl_memory_destroy(to);
    if (status == dnnl_success) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "oneDNN could not pack the weight: status %d", (int)status);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const cpu_onednn *l = plan->lib;
    void *const parts[PARTS] = {args->tensors[GEMM_A],
                                args->tensors[GEMM_B],
                                args->tensors[GEMM_C],
                                plan->bias >= 0 ? args->tensors[plan->bias] : NULL,
                                plan->residual >= 0 ? args->tensors[plan->residual] : NULL,
                                args->workspace};
    dnnl_status_t status = dnnl_success;
    for (int part = 0; part < PARTS && status == dnnl_success; part++)
        if (plan->memory[part]) status = l->dnnl_memory_set_data_handle(plan->memory[part], parts[part]);
    if (status == dnnl_success)
        status = l->dnnl_primitive_execute(plan->primitive, l->stream, plan->arg_count, plan->args);
    if (status == dnnl_success) status = l->dnnl_stream_wait(l->stream);
    if (status == dnnl_success && plan->way.pass) cpu_gemm_tail_run(&plan->tail, args->tensors);
    if (status == dnnl_success) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "oneDNN's matmul failed with status %d", (int)status);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const char *implementation = NULL;
    if (plan->lib->dnnl_primitive_desc_query(plan->pd, dnnl_query_impl_info_str, 0, (void *)&implementation) !=
        dnnl_success)
        implementation = NULL;
    return snprintf(json, room,
                    "{\"library\": \"onednn\", \"version\": \"%s\", \"implementation\": \"%s\", \"weight\": \"%s\", "
                    "\"passes\": %d, \"threads\": \"%s\"}",
                    plan->lib->version, implementation ? implementation : "", plan->way.packed ? "packed" : "as_is",
                    1 + plan->way.pass, cpu_team_about());
}

const scout_candidate cpu_gemm_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn",
    .about = "oneDNN's matmul, the weight as it is or packed once; bias, residual and activation fused or in a "
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
