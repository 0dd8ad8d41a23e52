/* Convolutions as primitives of oneDNN: tensors are described by strides, groups are a dimension of the weight, a
 * residual and an activation are post-operations. */
#include "scout/cpu/onednn/cpu_onednn_conv.h"

#include "scout/cpu/onednn/cpu_onednn_post.h"

/* --- descriptors --- */

bool cpu_onednn_conv_activations(cpu_onednn_md *md, const scout_op *op, int tensor) {
    const scout_tensor *t = &op->tensors[tensor];
    int order[SCOUT_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    const bool last = op->layout && strcmp(op->layout, "nhwc") == 0;
    if (last) order[1] = (int)t->rank - 1;
    for (int d = 2; d < (int)t->rank && last; d++) order[d] = d - 1;
    return cpu_onednn_plan_md(md, t, order);
}

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
    const dnnl_data_type_t type = cpu_onednn_plan_type(p->type_weight);
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
        if (status == dnnl_success) status = cpu_onednn_post(l, attr, &m->residual, &p->activation);
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
    if (good && !same) {
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

scout_answer cpu_onednn_conv_describe(cpu_onednn_plan *c, const scout_op *op, cpu_onednn_conv_form form,
                                      cpu_onednn_conv_moves *moves, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    parts m = {.src = {.there = false}};
    scout_answer answer = cpu_onednn_plan_begin(c, why);
    if (answer != SCOUT_OK) return answer;
    const bool keep = form == CPU_ONEDNN_CONV_AS_IS || op->tensors[CONV_WEIGHT].role != SCOUT_WEIGHT;
    dnnl_status_t status = dnnl_invalid_arguments;
    if (describe_parts(op, &p, form, &m)) status = create(c, &p, &m, keep, op->workspace_limit);
    if (status == dnnl_success && !add_parts(c, op, &p, &m, moves)) status = dnnl_out_of_memory;
    free_parts(&m);
    return status == dnnl_success ? SCOUT_OK : refuse(c, &p, status, why);
}
