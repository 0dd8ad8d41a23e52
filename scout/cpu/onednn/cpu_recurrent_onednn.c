/* Recurrent layers by oneDNN's own primitives: the baseline of this device. Its gates have another order, so both
 * weights and the bias are packed as one: gates reordered, then in the library's preferred format. Where its output's
 * layout differs from ONNX's, the output goes to the workspace first and is copied. */
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/op/recurrent.h"

#include <limits.h>

/* What is packed, one behind the other. */
enum { W, R, BIAS, PACKED };

struct scout_plan {
    recurrent_problem p;
    cpu_onednn_plan onednn;
    cpu_onednn_md plain[BIAS]; /* weights with their gates in the library's order */
    dnnl_primitive_desc_t order_pd[BIAS];
    dnnl_primitive_t order[BIAS];
    uint64_t pack_bytes;
    int parts[PACKED]; /* places in onednn.parts */
    int y_part;        /* of the output, where it is staged; -1: it is written in place */
    bool linear;       /* a gru with a bias of its own for the reset product */
    uint64_t staged;   /* bytes of the workspace before the library's */
};

typedef struct describing {
    scout_plan *plan;
    dnnl_data_type_t type;
    cpu_onednn_recurrent r;
} describing;

/* ---- support ---- */

static scout_answer covers(const scout_op *op, const recurrent_problem *p, scout_why *why) {
    const bool plain = p->cell == RECURRENT_RNN && (p->activations[0][0].function == RECURRENT_RELU ||
                                                    p->activations[0][0].function == RECURRENT_SIGMOID);
    const bool alike = p->directions == 1 || p->activations[0][0].function == p->activations[1][0].function;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (p->lengths >= 0) return scout_say(why, SCOUT_NO, "feature", "oneDNN has no sequence lengths");
    if (p->clip > 0 || p->input_forget)
        return scout_say(why, SCOUT_NO, "feature", "oneDNN has no clipping and no coupled gates");
    if (p->peephole >= 0) return scout_say(why, SCOUT_NO, "feature", "peepholes are not supported with oneDNN");
    if (!p->customary && !(plain && alike))
        return scout_say(why, SCOUT_NO, "feature", "oneDNN's gates have the default activations alone");
    for (uint32_t k = 0; k < op->rank; k++)
        if (op->shape[k] > INT_MAX / 8)
            return scout_say(why, SCOUT_NO, "shape", "a dimension exceeds the limit of oneDNN's kernels");
    return SCOUT_OK;
}

/* ---- describing it ---- */

static bool part(describing *d, int arg, int tensor, int rank, const int64_t *dims, const int64_t *strides,
                 cpu_onednn_md **out) {
    cpu_onednn_plan *o = &d->plan->onednn;
    cpu_onednn_md md = {.there = false};
    if (!cpu_onednn_md_strided(&md, rank, dims, d->type, strides)) return false;
    const int at = cpu_onednn_plan_part(o, arg, tensor, md);
    if (at < 0) return false;
    if (out) *out = &o->parts[at].md;
    return true;
}

/* Room in the workspace, in whole lines of the cache. */
static uint64_t stage(scout_plan *plan, int64_t elements) {
    const uint64_t at = plan->staged;
    plan->staged += ((uint64_t)elements * 4 + 63) / 64 * 64;
    return at;
}

/* A state, [1, directions, batch, hidden]; one that the library requires and the operation lacks is in the workspace.
 */
static bool add_state(describing *d, int arg, int tensor, cpu_onednn_md **out) {
    const recurrent_problem *p = &d->plan->p;
    const int64_t dims[] = {1, p->directions, p->batch, p->hidden};
    const int64_t dense[] = {p->directions * p->batch * p->hidden, p->batch * p->hidden, p->hidden, 1};
    const int64_t ours[] = {dense[0], p->state_direction, p->state_row, 1};
    if (!part(d, arg, tensor, 4, dims, tensor < 0 ? dense : ours, out)) return false;
    if (tensor < 0) d->plan->onednn.parts[d->plan->onednn.count - 1].offset = stage(d->plan, dense[0]);
    return true;
}

static bool add_states(describing *d) {
    const recurrent_problem *p = &d->plan->p;
    const bool lstm = p->cell == RECURRENT_LSTM, ends = p->y_h >= 0 || p->y_c >= 0;
    return (p->h0 < 0 || (add_state(d, DNNL_ARG_SRC_ITER, p->h0, &d->r.src_iter) &&
                          (!lstm || add_state(d, DNNL_ARG_SRC_ITER_C, p->c0, &d->r.src_iter_c)))) &&
           (!ends || (add_state(d, DNNL_ARG_DST_ITER, p->y_h, &d->r.dst_iter) &&
                      (!lstm || add_state(d, DNNL_ARG_DST_ITER_C, p->y_c, &d->r.dst_iter_c))));
}

/* The library's output is [steps, batch, directions * hidden]. */
static bool add_y(describing *d) {
    scout_plan *plan = d->plan;
    const recurrent_problem *p = &plan->p;
    const int64_t wide = p->directions * p->hidden, dims[] = {p->steps, p->batch, wide};
    const bool direct = p->y >= 0 && (p->directions == 1 || p->y_direction == p->hidden || p->batch == 1);
    const int64_t ours[] = {p->y_step, p->batch == 1 ? wide : p->y_row, 1}, dense[] = {p->batch * wide, wide, 1};
    plan->y_part = -1;
    if (!part(d, DNNL_ARG_DST_LAYER, direct ? p->y : -1, 3, dims, direct ? ours : dense, &d->r.dst_layer)) return false;
    if (direct) return true;
    if (p->y >= 0) plan->y_part = plan->onednn.count - 1;
    plan->onednn.parts[plan->onednn.count - 1].offset = stage(plan, p->steps * p->batch * wide);
    return true;
}

/* [1, directions, in, gates, hidden]; the copy has the gates in the library's order and is as in ONNX otherwise. */
static bool add_weight(describing *d, int which, int arg, int tensor, int64_t in, cpu_onednn_md **out) {
    scout_plan *plan = d->plan;
    const recurrent_problem *p = &plan->p;
    const int64_t dims[] = {1, p->directions, in, p->gates, p->hidden}, each = p->gates * p->hidden * in;
    const int64_t strides[] = {p->directions * each, each, 1, p->hidden * in, in};
    cpu_onednn_md any = {.there = false};
    if (!cpu_onednn_md_strided(&plan->plain[which], 5, dims, d->type, strides) ||
        !cpu_onednn_md_any(&any, 5, dims, d->type))
        return false;
    plan->parts[which] = cpu_onednn_plan_part(&plan->onednn, arg, tensor, any);
    if (plan->parts[which] >= 0) *out = &plan->onednn.parts[plan->parts[which]].md;
    return plan->parts[which] >= 0;
}

/* Biases are fp32, whatever the type; those of input and state are added up but for the last one of such a gru. Missing
 * ones are zeros: optimised kernels require them. */
static bool add_bias(describing *d) {
    scout_plan *plan = d->plan;
    const recurrent_problem *p = &plan->p;
    const int64_t gates = p->gates + plan->linear, dims[] = {1, p->directions, gates, p->hidden};
    const int64_t strides[] = {p->directions * gates * p->hidden, gates * p->hidden, p->hidden, 1};
    cpu_onednn_md md = {.there = false};
    if (!cpu_onednn_md_strided(&md, 4, dims, dnnl_f32, strides)) return false;
    plan->parts[BIAS] = cpu_onednn_plan_part(&plan->onednn, DNNL_ARG_BIAS, RECURRENT_W, md);
    if (plan->parts[BIAS] >= 0) d->r.bias = &plan->onednn.parts[plan->parts[BIAS]].md;
    return plan->parts[BIAS] >= 0;
}

static bool add_all(describing *d) {
    const recurrent_problem *p = &d->plan->p;
    const int64_t dims[] = {p->steps, p->batch, p->input}, strides[] = {p->x_step, p->x_row, 1};
    return part(d, DNNL_ARG_SRC_LAYER, RECURRENT_X, 3, dims, strides, &d->r.src_layer) && add_states(d) && add_y(d) &&
           add_weight(d, W, DNNL_ARG_WEIGHTS_LAYER, RECURRENT_W, p->input, &d->r.weights_layer) &&
           add_weight(d, R, DNNL_ARG_WEIGHTS_ITER, RECURRENT_W, p->hidden, &d->r.weights_iter) && add_bias(d);
}

static dnnl_status_t describe_recurrent(describing *d) {
    const recurrent_problem *p = &d->plan->p;
    const recurrent_function f = p->activations[0][0].function;
    dnnl_primitive_attr_t attr = NULL;
    d->r.cell = p->cell == RECURRENT_LSTM  ? dnnl_vanilla_lstm
                : p->cell == RECURRENT_RNN ? dnnl_vanilla_rnn
                : d->plan->linear          ? dnnl_lbr_gru
                                           : dnnl_vanilla_gru;
    d->r.activation = f == RECURRENT_RELU      ? dnnl_eltwise_relu
                      : f == RECURRENT_SIGMOID ? dnnl_eltwise_logistic
                                               : dnnl_eltwise_tanh;
    d->r.direction = p->directions == 2 ? dnnl_bidirectional_concat
                     : p->reverse       ? dnnl_unidirectional_right2left
                                        : dnnl_unidirectional_left2right;
    dnnl_status_t status = cpu_onednn_plan_attr(&d->plan->onednn, &attr);
    if (status == dnnl_success) status = cpu_onednn_recurrence(&d->plan->onednn.pd, &d->r, attr);
    if (attr) d->plan->onednn.lib->dnnl_primitive_attr_destroy(attr);
    return status;
}

static void destroy(scout_plan *plan) {
    const cpu_onednn *l = plan->onednn.lib;
    for (int k = 0; k < BIAS; k++) {
        cpu_onednn_md_free(&plan->plain[k]);
        if (l && plan->order[k]) l->dnnl_primitive_destroy(plan->order[k]);
        if (l && plan->order_pd[k]) l->dnnl_primitive_desc_destroy(plan->order_pd[k]);
    }
    cpu_onednn_plan_free(&plan->onednn);
}

static scout_answer describe_plan(const scout_op *op, scout_plan *plan, scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    scout_answer answer = covers(op, &p, why);
    if (answer != SCOUT_OK) return answer;
    plan->p = p;
    plan->linear = p.cell == RECURRENT_GRU && p.linear_before_reset;
    answer = cpu_onednn_plan_begin(&plan->onednn, why);
    if (answer != SCOUT_OK) return answer;
    describing d = {.plan = plan, .type = cpu_onednn_plan_type(p.type)};
    const dnnl_status_t status = add_all(&d) ? describe_recurrent(&d) : dnnl_unimplemented;
    if (status == dnnl_success) return SCOUT_OK;
    /* what it does not have it calls unimplemented or, where strides are too odd for it, an invalid argument */
    return cpu_onednn_plan_refuse(&plan->onednn, "recurrent layer",
                                  status == dnnl_invalid_arguments ? dnnl_unimplemented : status, why);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan plan = {.linear = false};
    (void)device;
    const scout_answer answer = describe_plan(op, &plan, why);
    destroy(&plan);
    return answer;
}

/* ---- packing ---- */

/* Places the weights in the primitive's formats, in one piece of memory. */
static dnnl_status_t place_weights(scout_plan *plan) {
    static const int args[PACKED] = {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER, DNNL_ARG_BIAS};
    cpu_onednn_plan *o = &plan->onednn;
    dnnl_status_t status = dnnl_success;
    for (int k = 0; k < PACKED && status == dnnl_success; k++) {
        cpu_onednn_part *at = &o->parts[plan->parts[k]];
        if (k != BIAS) {
            cpu_onednn_md_free(&at->md);
            if (!cpu_onednn_md_of_arg(&at->md, o->pd, args[k])) return dnnl_runtime_error;
            status = cpu_onednn_reorder(&plan->order_pd[k], &plan->plain[k], &at->md);
            if (status == dnnl_success) status = o->lib->dnnl_primitive_create(&plan->order[k], plan->order_pd[k]);
        }
        at->offset = plan->pack_bytes;
        plan->pack_bytes += (cpu_onednn_md_bytes(&at->md) + 63) / 64 * 64;
    }
    return status;
}

/* The gate of ONNX at a place of the library's. */
static int gate_at(const scout_plan *plan, int place) {
    static const int lstm[] = {0, 2, 3, 1};
    return plan->p.cell == RECURRENT_LSTM ? lstm[place] : place;
}

static void order_gates(const scout_plan *plan, const char *from, int64_t in, char *to) {
    const recurrent_problem *p = &plan->p;
    const size_t gate = (size_t)(p->hidden * in) * (p->type == SCOUT_FP32 ? 4 : 2);
    for (int d = 0; d < p->directions; d++)
        for (int g = 0; g < p->gates; g++)
            memcpy(to + (size_t)(d * p->gates + g) * gate, from + (size_t)(d * p->gates + gate_at(plan, g)) * gate,
                   gate);
}

static dnnl_status_t pack_weight(const scout_plan *plan, int which, const void *weight, void *room, void *packed) {
    const cpu_onednn_part *part = &plan->onednn.parts[plan->parts[which]];
    order_gates(plan, weight, which == W ? plan->p.input : plan->p.hidden, room);
    return cpu_onednn_plan_reorder(plan->onednn.lib, plan->order[which], &plan->plain[which], room, &part->md,
                                   (char *)packed + part->offset);
}

static double bias_of(const recurrent_problem *p, const void *bias, int64_t at) {
    double x = 0;
    if (bias) cpu_number_load(p->type, bias, at, 1, 1, &x);
    return x;
}

static void pack_bias(const scout_plan *plan, const void *bias, float *to) {
    const recurrent_problem *p = &plan->p;
    const int64_t wide = p->gates * p->hidden;
    for (int d = 0; d < p->directions; d++)
        for (int g = 0; g < p->gates + plan->linear; g++)
            for (int64_t k = 0; k < p->hidden; k++) {
                const bool apart = plan->linear && g >= 2; /* the last gate has one for x and one for the state */
                const int64_t at = d * 2 * wide + (apart ? 2 : gate_at(plan, g)) * p->hidden + k;
                const double x = bias_of(p, bias, at), state = bias_of(p, bias, at + wide);
                *to++ = (float)(!apart ? x + state : g == 2 ? x : state);
            }
}

static scout_answer pack_tensors(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why) {
    const recurrent_problem *p = &plan->p;
    const size_t w = cpu_onednn_md_bytes(&plan->plain[W]), r = cpu_onednn_md_bytes(&plan->plain[R]);
    void *room = malloc(w > r ? w : r);
    (void)stream;
    if (!room) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory to reorder gates");
    dnnl_status_t status = pack_weight(plan, W, tensors[RECURRENT_W], room, packed);
    if (status == dnnl_success) status = pack_weight(plan, R, tensors[RECURRENT_R], room, packed);
    free(room);
    if (status != dnnl_success)
        return scout_say(why, SCOUT_FAILED, "error", "oneDNN could not pack the weights: status %d", (int)status);
    pack_bias(plan, p->bias >= 0 ? tensors[p->bias] : NULL,
              (float *)((char *)packed + plan->onednn.parts[plan->parts[BIAS]].offset));
    return SCOUT_OK;
}

/* ---- the candidate ---- */

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values;
    scout_answer answer = describe_plan(op, plan, why);
    if (answer != SCOUT_OK) return answer;
    const dnnl_status_t status = place_weights(plan);
    answer = status == dnnl_success ? cpu_onednn_plan_finish(&plan->onednn, op->workspace_limit, needs, why)
                                    : cpu_onednn_plan_refuse(&plan->onednn, "packing", status, why);
    const uint64_t scratch = (plan->onednn.workspace_bytes + 63) / 64 * 64;
    if (answer == SCOUT_OK && scratch + plan->staged > op->workspace_limit)
        answer = scout_say(why, SCOUT_NO, "memory",
                           "oneDNN's outputs have another layout, and %llu bytes are too many to copy",
                           (unsigned long long)plan->staged);
    if (answer != SCOUT_OK) return answer;
    for (int k = 0; k < plan->onednn.count; k++) {
        cpu_onednn_part *part = &plan->onednn.parts[k];
        if (part->tensor < 0 && part->arg != DNNL_ARG_SCRATCHPAD) part->offset += scratch;
    }
    needs->workspace_bytes = scratch + plan->staged;
    needs->packs = RECURRENT_W + 1;
    needs->pack_bytes = plan->pack_bytes;
    return SCOUT_OK;
}

typedef struct copying {
    const scout_plan *plan;
    const char *from;
    char *to;
} copying;

/* From [steps, batch, directions * hidden] to where y has them. */
static void copy_share(void *context, int thread, int threads) {
    const copying *c = context;
    const recurrent_problem *p = &c->plan->p;
    const int64_t size = p->type == SCOUT_FP32 ? 4 : 2;
    int64_t from, to;
    cpu_team_share(p->steps * p->batch * p->directions, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t d = k % p->directions, row = k / p->directions % p->batch, time = k / p->directions / p->batch;
        memcpy(c->to + (time * p->y_step + d * p->y_direction + row * p->y_row) * size, c->from + k * p->hidden * size,
               (size_t)(p->hidden * size));
    }
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const scout_answer answer = cpu_onednn_plan_launch(&plan->onednn, args, why);
    if (answer != SCOUT_OK || plan->y_part < 0) return answer;
    copying c = {plan, (const char *)args->workspace + plan->onednn.parts[plan->y_part].offset,
                 args->tensors[plan->p.y]};
    cpu_team_run(copy_share, &c);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return cpu_onednn_plan_describe(&plan->onednn, json, room);
}

const scout_candidate cpu_recurrent_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_RECURRENT,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_recurrent",
    .about = "oneDNN's LSTM, GRU and plain recurrent layer, weights packed",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
    .pack_tensors = pack_tensors,
};
