/* Convolutions by oneDNN: the baseline of this device. Variants:
 *
 * - packed: the weight in the format that the library likes best for activations as they lie; it stays as it is where
 * the library prefers that. The default of the library's guide.
 * - as_is: the weight as it lies; only where that is another thing, and more than the library's reference loop.
 * - blocked: activations too in the library's format, brought there and back within each launch. A model that keeps
 *   them so all the way does not pay for that; one layer alone does. The default where the library has nothing but its
 *   reference loop for activations as they lie, or a product for each channel alone. */
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/op/conv.h"

#include <limits.h>

/* Convolutions as primitives of oneDNN: tensors are described by strides, groups are a dimension of the weight, a
 * residual and an activation are post-operations. */

typedef enum cpu_onednn_conv_form {
    CPU_ONEDNN_CONV_PACKED,  /* the weight in the library's format, activations as they are */
    CPU_ONEDNN_CONV_AS_IS,   /* the weight as it lies too */
    CPU_ONEDNN_CONV_BLOCKED, /* all in the library's format */
    CPU_ONEDNN_CONV_FORMS
} cpu_onednn_conv_form;

enum { CPU_ONEDNN_CONV_SRC, CPU_ONEDNN_CONV_WEIGHT, CPU_ONEDNN_CONV_DST }; /* the first parts of the plan */

typedef struct cpu_onednn_conv_moves { /* which activations the primitive has in another format than the tensors */
    bool in, out;
} cpu_onednn_conv_moves;

/* --- descriptors --- */

/* The md of an input or output as it lies, in dnnl's order of dimensions. */
static bool cpu_onednn_conv_activations(cpu_onednn_md *md, const scout_op *op, int tensor) {
    const scout_tensor *t = &op->tensors[tensor];
    int order[SCOUT_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    const bool last = op->layout && strcmp(op->layout, "nhwc") == 0;
    if (last) order[1] = (int)t->rank - 1;
    for (int d = 2; d < (int)t->rank && last; d++) order[d] = d - 1;
    return cpu_onednn_plan_md(md, t, order);
}

/* The library has no unsigned weight. One whose zero point is 128 is a signed one with the highest bit turned, which
 * packing does. */
static bool is_turned(const conv_problem *p) { return p->quant.zero_weight != 0; }

/* [group,] output, input, kernel: whatever order the first two lie in. */
static bool filters(cpu_onednn_md *plain, cpu_onednn_md *any, const conv_problem *p) {
    int64_t dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK], stride = 1;
    const int grouped = p->group > 1, rank = grouped + 2 + p->w.spatial;
    dims[0] = p->group, strides[0] = p->w_g;
    dims[grouped] = p->cout / p->group, strides[grouped] = p->w_o;
    dims[grouped + 1] = p->cin / p->group, strides[grouped + 1] = p->w_i;
    for (int k = 0; k < p->w.spatial; k++) {
        const window_axis *a = &p->w.axes[WINDOW_AXES - 1 - k];
        dims[rank - 1 - k] = a->kernel, strides[rank - 1 - k] = stride;
        stride *= a->kernel;
    }
    const dnnl_data_type_t type = is_turned(p) ? dnnl_s8 : cpu_onednn_plan_type(p->type_weight);
    return cpu_onednn_md_strided(plain, rank, dims, type, strides) && cpu_onednn_md_any(any, rank, dims, type);
}

static bool any_of(cpu_onednn_md *md, const scout_op *op, int tensor, const conv_problem *p) {
    int64_t dims[SCOUT_MAX_RANK] = {p->n, tensor == CONV_INPUT ? p->cin : p->cout};
    for (int k = 0; k < p->w.spatial; k++) {
        const window_axis *a = &p->w.axes[WINDOW_AXES - p->w.spatial + k];
        dims[2 + k] = tensor == CONV_INPUT ? a->in : a->out;
    }
    return cpu_onednn_md_any(md, (int)op->rank, dims, cpu_onednn_plan_type(op->tensors[tensor].type));
}

static cpu_onednn_window window_as_told(const conv_problem *p) {
    cpu_onednn_window w;
    for (int k = 0; k < p->w.spatial; k++) {
        const window_axis *a = &p->w.axes[WINDOW_AXES - p->w.spatial + k];
        w.kernel[k] = a->kernel, w.strides[k] = a->stride, w.dilates[k] = a->dilation - 1;
        w.begin[k] = a->begin, w.end[k] = a->end;
    }
    return w;
}

/* --- one primitive --- */

typedef struct parts {
    cpu_onednn_md src, dst, plain, wanted, bias, residual;
} parts;

static void free_parts(parts *m) {
    cpu_onednn_md *const all[] = {&m->src, &m->dst, &m->plain, &m->wanted, &m->bias, &m->residual};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) cpu_onednn_md_free(all[k]);
}

static bool describe_parts(const scout_op *op, const conv_problem *p, cpu_onednn_conv_form form, parts *m) {
    const bool free_form = form == CPU_ONEDNN_CONV_BLOCKED;
    bool good = filters(&m->plain, &m->wanted, p);
    good =
        good && (free_form ? any_of(&m->src, op, CONV_INPUT, p) : cpu_onednn_conv_activations(&m->src, op, CONV_INPUT));
    good = good &&
           (free_form ? any_of(&m->dst, op, CONV_OUTPUT, p) : cpu_onednn_conv_activations(&m->dst, op, CONV_OUTPUT));
    if (p->bias >= 0) good = good && cpu_onednn_plan_md(&m->bias, &op->tensors[p->bias], NULL);
    if (p->residual >= 0) good = good && cpu_onednn_conv_activations(&m->residual, op, p->residual);
    return good;
}

/* The harness owns the scratch memory, unless it would be more than a plan may ask for. */
static dnnl_status_t create(cpu_onednn_plan *c, const conv_problem *p, const parts *m, bool keep, uint64_t limit) {
    const cpu_onednn *l = c->lib;
    const cpu_onednn_window w = window_as_told(p);
    dnnl_status_t status = dnnl_success;
    for (int ours = 1; ours >= 0; ours--) {
        dnnl_primitive_attr_t attr = NULL;
        status = ours ? cpu_onednn_plan_attr(c, &attr) : l->dnnl_primitive_attr_create(&attr);
        if (status == dnnl_success) status = cpu_onednn_post_quantise(l, attr, &p->quant);
        if (status == dnnl_success) status = cpu_onednn_post(l, attr, 1, &m->residual, &p->activation);
        if (status == dnnl_success)
            status = cpu_onednn_convolution(&c->pd, p->transposed != 0, &m->src, keep ? &m->plain : &m->wanted,
                                            &m->bias, &m->dst, &w, attr);
        if (attr) l->dnnl_primitive_attr_destroy(attr);
        if (status != dnnl_success || !ours || cpu_onednn_plan_scratch_fits(c, limit)) return status;
    }
    return status;
}

/* The md that the primitive has chosen, as a part; *same: it is `plain`. */
static bool add_part(cpu_onednn_plan *c, int arg, dnnl_query_t what, int tensor, const cpu_onednn_md *plain,
                     bool *same) {
    cpu_onednn_md md = {.there = false};
    if (!cpu_onednn_md_of(&md, c->pd, what)) return false;
    *same = cpu_onednn_md_same(&md, plain);
    return cpu_onednn_plan_part(c, arg, tensor, md) >= 0;
}

static bool add_parts(cpu_onednn_plan *c, const scout_op *op, const conv_problem *p, parts *m,
                      cpu_onednn_conv_moves *moves) {
    cpu_onednn_md in = {.there = false}, out = {.there = false};
    bool same_in = false, same_out = false, same = false;
    bool good = cpu_onednn_conv_activations(&in, op, CONV_INPUT) &&
                cpu_onednn_conv_activations(&out, op, CONV_OUTPUT) &&
                add_part(c, DNNL_ARG_SRC, dnnl_query_src_md, CONV_INPUT, &in, &same_in) &&
                add_part(c, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, CONV_WEIGHT, &m->plain, &same) &&
                add_part(c, DNNL_ARG_DST, dnnl_query_dst_md, CONV_OUTPUT, &out, &same_out);
    cpu_onednn_md_free(&in);
    cpu_onednn_md_free(&out);
    moves->in = !same_in, moves->out = !same_out;
    if (good && (!same || is_turned(p))) {
        c->packed = CPU_ONEDNN_CONV_WEIGHT;
        c->plain = m->plain;
        m->plain.there = false; /* the plan's now */
    }
    const bool biased = good && m->bias.there;
    if (biased) good = cpu_onednn_plan_part(c, DNNL_ARG_BIAS, p->bias, m->bias) >= 0, m->bias.there = false;
    const bool residual = good && m->residual.there;
    if (residual) {
        good = cpu_onednn_plan_part(c, CPU_ONEDNN_POST_RESIDUAL, p->residual, m->residual) >= 0;
        m->residual.there = false;
    }
    return good;
}

static scout_answer refuse(const cpu_onednn_plan *c, const conv_problem *p, dnnl_status_t status, scout_why *why) {
    const bool more = p->residual >= 0 || p->activation.function != ACTIVATION_PLAIN;
    if (status == dnnl_invalid_arguments)
        return scout_say(why, SCOUT_NO, "shape", "oneDNN %s has no such window", c->lib->version);
    if (status == dnnl_unimplemented && more)
        return scout_say(why, SCOUT_NO, "epilogue",
                         "oneDNN %s has no convolution with this residual or activation here", c->lib->version);
    return cpu_onednn_plan_refuse(c, p->transposed ? "deconvolution" : "convolution", status, why);
}

/* c->packed is set where the weight comes in another format than it lies. cpu_onednn_plan_free also where it is not
 * SCOUT_OK. */
static scout_answer cpu_onednn_conv_describe(cpu_onednn_plan *c, const scout_op *op, cpu_onednn_conv_form form,
                                             cpu_onednn_conv_moves *moves, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    parts m = {.src = {.there = false}};
    scout_answer answer = cpu_onednn_plan_begin(c, why);
    if (answer != SCOUT_OK) return answer;
    const bool keep = form == CPU_ONEDNN_CONV_AS_IS || op->tensors[CONV_WEIGHT].role != SCOUT_WEIGHT;
    if (keep && is_turned(&p))
        return scout_say(why, SCOUT_NO, "feature", "an unsigned weight must be a constant, and is packed");
    c->turned_bytes = is_turned(&p) ? op->tensors[CONV_WEIGHT].bytes : 0;
    dnnl_status_t status = dnnl_invalid_arguments;
    if (describe_parts(op, &p, form, &m)) status = create(c, &p, &m, keep, op->workspace_limit);
    if (status == dnnl_success && !add_parts(c, op, &p, &m, moves)) status = dnnl_out_of_memory;
    free_parts(&m);
    return status == dnnl_success ? SCOUT_OK : refuse(c, &p, status, why);
}

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
    if (p.scales >= 0) return scout_say(why, SCOUT_NO, "type", "oneDNN convolves floats with floats");
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
    return strncmp(cpu_onednn_plan_implementation(&plan->conv), "ref", 3) == 0;
}

/* A depthwise convolution as products of one column each. */
static bool is_by_channel(const scout_plan *plan, const scout_op *op) {
    const conv_problem p = conv_problem_of(op);
    return p.group > 1 && p.group == p.cin && strstr(cpu_onednn_plan_implementation(&plan->conv), "gemm");
}

/* For activations as they are the library may have only its reference loop (bytes in nchw), which takes a thousand
 * times as long, or a product by channel (depthwise in nchw): five times. No model is run so, and the default is then
 * the library's own format. *others: there is more than a reference loop for them. */
static bool is_blocked_first(const scout_op *op, bool *others) {
    scout_plan packed = {.form = CPU_ONEDNN_CONV_PACKED}, blocked = packed;
    scout_why why;
    const bool slow = describe_plan(op, CPU_ONEDNN_CONV_PACKED, &packed, &why) == SCOUT_OK &&
                      (is_reference(&packed) || is_by_channel(&packed, op)) &&
                      describe_plan(op, CPU_ONEDNN_CONV_BLOCKED, &blocked, &why) == SCOUT_OK &&
                      !is_reference(&blocked) &&
                      (blocked.moves.in || blocked.moves.out); /* on a weight as it lies there may be none */
    *others = !slow || !is_reference(&packed);
    destroy(&packed);
    destroy(&blocked);
    return slow;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    enum { FORMS = CPU_ONEDNN_CONV_FORMS };
    static const char *const turned[FORMS] = {"blocked", "packed", "as_is"};
    bool others = true;
    const int first = is_blocked_first(op, &others) ? CPU_ONEDNN_CONV_BLOCKED : CPU_ONEDNN_CONV_PACKED;
    (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    scout_parameter *form = &out->parameters[0];
    snprintf(form->name, sizeof form->name, "form");
    form->count = others ? FORMS : 1;
    for (int k = 0; k < FORMS; k++) form->values[k] = (first + k) % FORMS;
    form->labels = first == CPU_ONEDNN_CONV_BLOCKED ? turned : forms;
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
    return snprintf(json, room,
                    "{\"library\": \"onednn\", \"version\": \"%s\", \"implementation\": \"%s\", \"form\": \"%s\", "
                    "\"weight\": \"%s\", \"threads\": \"%s\"}",
                    plan->conv.lib->version, cpu_onednn_plan_implementation(&plan->conv), forms[plan->form],
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
