/* Convolutions by oneDNN: the baseline of this device. Variants:
 *
 * - packed: the weight in the format that the library likes best for activations as they lie; it stays as it is where
 * the library prefers that. The default of the library's guide.
 * - as_is: the weight as it lies; only where that is another thing, and more than the library's reference loop.
 * - blocked: activations too in the library's format, brought there and back within each launch. A model that keeps
 *   them so all the way does not pay for that; one layer alone does. The default where the library has nothing but its
 *   reference loop for activations as they lie. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/onednn/cpu_onednn_conv.h"

#include <limits.h>

static const char *const forms[CPU_ONEDNN_CONV_FORMS] = {"packed", "as_is", "blocked"};

enum { ALIGN = 4096 };

struct scout_plan {
    cpu_onednn_plan conv, before, behind; /* reorders, where blocked */
    cpu_onednn_conv_form form;
    cpu_onednn_conv_moves moves;
};

static void destroy(scout_plan *plan) {
    cpu_onednn_plan_free(&plan->conv);
    if (plan->before.lib) cpu_onednn_plan_free(&plan->before);
    if (plan->behind.lib) cpu_onednn_plan_free(&plan->behind);
}

/* Everything but the compiled primitive. */
static scout_answer describe_plan(const scout_op *op, int64_t form, scout_plan *plan, scout_why *why) {
    plan->form = (cpu_onednn_conv_form)form;
    return cpu_onednn_conv_describe(&plan->conv, op, plan->form, &plan->moves, why);
}

/* Kernels count in int. */
static bool fits(const conv_problem *p) {
    bool good = p->n <= INT_MAX && p->cin <= INT_MAX && p->cout <= INT_MAX;
    for (int k = 0; k < WINDOW_AXES; k++) {
        const window_axis *a = &p->w.axes[k];
        const int64_t all[] = {a->in + a->begin + a->end, a->out, a->stride, window_reach(a)};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) good = good && all[i] <= INT_MAX / 4;
    }
    return good;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    scout_plan plan = {.form = CPU_ONEDNN_CONV_PACKED};
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (!fits(&p)) return scout_say(why, SCOUT_NO, "shape", "a dimension exceeds the limit of oneDNN's kernels");
    if (cpu_onednn_plan_type(p.type_in) == dnnl_data_type_undef ||
        cpu_onednn_plan_type(p.type_weight) == dnnl_data_type_undef ||
        cpu_onednn_plan_type(p.type_out) == dnnl_data_type_undef)
        return scout_say(why, SCOUT_NO, "type", "oneDNN's convolution does not support these types");
    if (!cpu_onednn_plan_multiplies(p.type_in, why)) return SCOUT_NO;
    const scout_answer answer = describe_plan(op, CPU_ONEDNN_CONV_PACKED, &plan, why);
    destroy(&plan);
    return answer;
}

static bool is_reference(const scout_plan *plan) {
    const char *name = NULL;
    const cpu_onednn *l = plan->conv.lib;
    return l->dnnl_primitive_desc_query(plan->conv.pd, dnnl_query_impl_info_str, 0, (void *)&name) == dnnl_success &&
           name && strncmp(name, "ref", 3) == 0;
}

/* For activations as they are the library may have only its reference loop (bytes in nchw), which takes a thousand
 * times as long. No model is run so, and the default is then the library's own format. */
static cpu_onednn_conv_form first_form(const scout_op *op) {
    scout_plan packed = {.form = CPU_ONEDNN_CONV_PACKED}, blocked = packed;
    scout_why why;
    const bool slow = describe_plan(op, CPU_ONEDNN_CONV_PACKED, &packed, &why) == SCOUT_OK && is_reference(&packed) &&
                      describe_plan(op, CPU_ONEDNN_CONV_BLOCKED, &blocked, &why) == SCOUT_OK && !is_reference(&blocked);
    destroy(&packed);
    destroy(&blocked);
    return slow ? CPU_ONEDNN_CONV_BLOCKED : CPU_ONEDNN_CONV_PACKED;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    const int first = first_form(op);
    (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    scout_parameter *form = &out->parameters[0];
    snprintf(form->name, sizeof form->name, "form");
    form->count = (uint32_t)(CPU_ONEDNN_CONV_FORMS - first);
    for (int k = first; k < CPU_ONEDNN_CONV_FORMS; k++) form->values[k - first] = k;
    form->labels = forms + first;
    return SCOUT_OK;
}

/* Whether this form differs from those before it. */
static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    scout_plan packed = {.form = CPU_ONEDNN_CONV_PACKED}, plan = packed;
    scout_why why;
    (void)device;
    if (values[0] == CPU_ONEDNN_CONV_PACKED) return 1;
    bool good = op->tensors[CONV_WEIGHT].role == SCOUT_WEIGHT || values[0] == CPU_ONEDNN_CONV_BLOCKED;
    good = good && describe_plan(op, CPU_ONEDNN_CONV_PACKED, &packed, &why) == SCOUT_OK &&
           describe_plan(op, values[0], &plan, &why) == SCOUT_OK && !is_reference(&plan);
    if (good) good = values[0] == CPU_ONEDNN_CONV_AS_IS ? packed.conv.packed >= 0 : plan.moves.in || plan.moves.out;
    destroy(&packed);
    destroy(&plan);
    return good;
}

/* --- preparing --- */

/* A reorder between a tensor and its place in the workspace, from `at` on, where the convolution then has it. */
static scout_answer prepare_move(scout_plan *plan, const scout_op *op, bool in, uint64_t *at, scout_why *why) {
    cpu_onednn_plan *move = in ? &plan->before : &plan->behind;
    cpu_onednn_part *part = &plan->conv.parts[in ? CPU_ONEDNN_CONV_SRC : CPU_ONEDNN_CONV_DST];
    cpu_onednn_md plain = {.there = false}, blocked = {.there = false};
    scout_plan_needs needs = {.size = sizeof needs};
    const scout_answer answer = cpu_onednn_plan_begin(move, why);
    if (answer != SCOUT_OK) return answer;
    dnnl_status_t status = dnnl_out_of_memory;
    if (cpu_onednn_conv_activations(&plain, op, part->tensor) &&
        cpu_onednn_md_of(&blocked, plan->conv.pd, in ? dnnl_query_src_md : dnnl_query_dst_md))
        status = cpu_onednn_reorder(&move->pd, in ? &plain : &blocked, in ? &blocked : &plain);
    if (status != dnnl_success) {
        cpu_onednn_md_free(&plain);
        cpu_onednn_md_free(&blocked);
        return cpu_onednn_plan_refuse(move, "reorder", status, why);
    }
    const uint64_t bytes = cpu_onednn_md_bytes(&blocked);
    const int theirs = cpu_onednn_plan_part(move, in ? DNNL_ARG_TO : DNNL_ARG_FROM, -1, blocked);
    (void)cpu_onednn_plan_part(move, in ? DNNL_ARG_FROM : DNNL_ARG_TO, part->tensor, plain); /* both have room */
    move->parts[theirs].offset = part->offset = *at;
    part->tensor = -1;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return cpu_onednn_plan_finish(move, 0, &needs, why); /* without scratch memory of its own */
}

static scout_answer prepare_moves(scout_plan *plan, const scout_op *op, scout_plan_needs *needs, scout_why *why) {
    uint64_t at = (needs->workspace_bytes + ALIGN - 1) / ALIGN * ALIGN; /* behind the convolution's scratch memory */
    scout_answer answer = SCOUT_OK;
    if (!plan->moves.in && !plan->moves.out) return answer;
    if (plan->moves.in) answer = prepare_move(plan, op, true, &at, why);
    if (answer == SCOUT_OK && plan->moves.out) answer = prepare_move(plan, op, false, &at, why);
    needs->workspace_bytes = at;
    if (answer == SCOUT_OK && at > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "needs %.1f MB of workspace for blocked activations",
                         (double)at / 1e6);
    return answer;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device;
    scout_answer answer = describe_plan(op, values ? values[0] : CPU_ONEDNN_CONV_PACKED, plan, why);
    if (answer == SCOUT_OK) answer = cpu_onednn_plan_finish(&plan->conv, op->workspace_limit, needs, why);
    return answer == SCOUT_OK ? prepare_moves(plan, op, needs, why) : answer;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    (void)stream;
    return cpu_onednn_plan_pack(&plan->conv, weight, packed, why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    if (plan->moves.in) answer = cpu_onednn_plan_launch(&plan->before, args, why);
    if (answer == SCOUT_OK) answer = cpu_onednn_plan_launch(&plan->conv, args, why);
    if (answer == SCOUT_OK && plan->moves.out) answer = cpu_onednn_plan_launch(&plan->behind, args, why);
    return answer;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const char *name = NULL;
    if (plan->conv.lib->dnnl_primitive_desc_query(plan->conv.pd, dnnl_query_impl_info_str, 0, (void *)&name) !=
        dnnl_success)
        name = NULL;
    return snprintf(json, room,
                    "{\"library\": \"onednn\", \"version\": \"%s\", \"implementation\": \"%s\", \"form\": \"%s\", "
                    "\"weight\": \"%s\", \"threads\": \"%s\"}",
                    plan->conv.lib->version, name ? name : "", forms[plan->form],
                    plan->conv.packed >= 0 ? "packed" : "as_is", cpu_team_about());
}

const scout_candidate cpu_conv_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_conv",
    .about = "oneDNN's convolution, the weight packed or as it is, activations as they are or blocked",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", "bf16", "int8", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
