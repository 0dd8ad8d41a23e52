/* Attention composed of oneDNN's primitives, as users of the library build it: scores by a batched matmul with a scale,
 * a softmax in place, another matmul. Scores are in the workspace, so work is divided into chunks of heads, or of
 * queries, with scores that fit. Masks by position and soft caps, for which the library has no primitive, are applied
 * to the scores by a loop on all threads. Half types that its matmul does not take are converted by its reorder. */
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/cpu/products/cpu_attention_kernel.h"
#include "scout/op/attention.h"

#include <stdlib.h>

/* What primitives work on: pointers into tensors, and places in the workspace. */
enum { Q, K, V, OUT, WIDE_Q, WIDE_K, WIDE_V, WIDE_OUT, SCORES, PROBS, SLOTS };

/* In the order of execution; those that the types need. */
enum { LOAD_K, LOAD_V, LOAD_Q, PRODUCT, SOFTMAX, NARROW, WEIGHTED, STORE, STEPS };

typedef struct step {
    cpu_onednn_plan plan;
    bool used; /* the plan */
    bool converts;
    cpu_attention_rows rows; /* what is converted, between these slots */
    int from, to;
} step;

struct scout_plan {
    attention_problem p;
    block_mask blocks;
    step steps[2][STEPS];        /* of a chunk with all its rows, and of the last one */
    int64_t lanes, rows, tail;   /* heads of keys in a chunk; queries of each, of the last one (0: none is shorter) */
    bool convert;                /* everything is computed in fp32 */
    uint64_t offset[SLOTS], end; /* in the workspace; end: where scratch memory begins */
    uint64_t scratch;
};

/* --- chunks --- */

/* Bytes of the workspace for so many heads and queries of each. */
static double chunk_bytes(const attention_problem *p, bool convert, double lanes, double rows) {
    const double scores = lanes * (double)p->group * rows * (double)p->keys;
    const double halves = p->type == SCOUT_FP32 || convert ? 0 : 2 * scores;
    const double wide = (double)(p->dim + p->v_dim) * 4 * lanes * ((double)p->group * rows + (double)p->keys);
    return 4 * scores + halves + (convert ? wide : 0) + SLOTS * 64;
}

/* As many heads as fit, evenly; or one, and as many of its queries as fit. false: not even one. */
static bool cut(scout_plan *plan, double room) {
    const attention_problem *p = &plan->p;
    const double each = chunk_bytes(p, plan->convert, 1, (double)p->queries);
    plan->lanes = 1, plan->rows = p->queries, plan->tail = 0;
    if (each <= room) {
        plan->lanes = room / each < (double)p->kv_heads ? (int64_t)(room / each) : p->kv_heads;
        while (p->kv_heads % plan->lanes != 0) plan->lanes--;
        return true;
    }
    const double first = chunk_bytes(p, plan->convert, 1, 1), second = chunk_bytes(p, plan->convert, 1, 2);
    if (first > room) return false;
    plan->rows = 1 + (int64_t)((room - first) / (second - first));
    if (plan->rows >= 8) plan->rows = plan->rows / 8 * 8;
    if (plan->rows > p->queries) plan->rows = p->queries;
    plan->tail = p->queries % plan->rows;
    return true;
}

/* Of the workspace, the rest is scratch memory of the library; or of a core's cache. */
static double room_of(const scout_op *op, bool small) {
    const double all = 0.75 * (double)op->workspace_limit, cache = 1 << 20;
    return small && cache < all ? cache : all;
}

/* --- descriptors --- */

typedef struct view { /* [lanes, heads of a group, rows, cols] */
    int64_t dims[4], strides[4];
} view;

static view view_of(const scout_plan *plan, int tensor, int64_t rows) {
    const scout_tensor *t = &plan->p.tensors[tensor];
    const int64_t head = t->strides[1], group = plan->p.group;
    return (view){{plan->lanes, group, rows, t->dims[3]}, {head * group, head, t->strides[2], 1}};
}

static view dense_of(int64_t lanes, int64_t group, int64_t rows, int64_t cols) {
    return (view){{lanes, group, rows, cols}, {group * rows * cols, rows * cols, cols, 1}};
}

/* Keys and values: one for the group; keys are read across. */
static view shared_of(const scout_plan *plan, int tensor, bool across) {
    const scout_tensor *t = &plan->p.tensors[tensor];
    const int64_t row = plan->convert ? t->dims[3] : t->strides[2],
                  head = plan->convert ? row * t->dims[2] : t->strides[1];
    view v = {{plan->lanes, 1, t->dims[2], t->dims[3]}, {head, head, row, 1}};
    if (across) v = (view){{plan->lanes, 1, t->dims[3], t->dims[2]}, {head, head, 1, row}};
    return v;
}

/* Whether heads of a group are rows of one matrix, with one step between all of them. */
static bool joins(const view *v) {
    return v->dims[1] == 1 || v->dims[2] == 1 || v->strides[1] == v->dims[2] * v->strides[2];
}

/* Three dimensions where the group can be rows, else four. */
static bool describe_view(cpu_onednn_md *md, const view *v, bool joined, bool shared, dnnl_data_type_t type) {
    if (!joined) return cpu_onednn_md_strided(md, 4, v->dims, type, v->strides);
    const bool single = v->dims[2] == 1 && !shared;
    const int64_t dims[3] = {v->dims[0], shared ? v->dims[2] : v->dims[1] * v->dims[2], v->dims[3]};
    const int64_t strides[3] = {v->strides[0], single ? v->strides[1] : v->strides[2], v->strides[3]};
    return cpu_onednn_md_strided(md, 3, dims, type, strides);
}

/* --- steps --- */

static dnnl_status_t part(step *s, int arg, int slot, cpu_onednn_md md) {
    return cpu_onednn_plan_part(&s->plan, arg, slot, md) < 0 ? dnnl_out_of_memory : dnnl_success;
}

static dnnl_status_t add_matmul(scout_plan *plan, step *s, const view *a, const view *b, const view *c,
                                const int *slots, float scale) {
    const dnnl_data_type_t type = plan->convert ? dnnl_f32 : cpu_onednn_plan_type(plan->p.type);
    const dnnl_data_type_t result = slots[2] == SCORES ? dnnl_f32 : type;
    const bool joined = joins(a) && joins(c);
    cpu_onednn_md left = {.there = false}, right = {.there = false}, to = {.there = false};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = dnnl_invalid_arguments;
    if (describe_view(&left, a, joined, false, type) && describe_view(&right, b, joined, true, type) &&
        describe_view(&to, c, joined, false, result))
        status = cpu_onednn_plan_attr(&s->plan, &attr);
    if (status == dnnl_success && scale != 1) status = cpu_onednn_scaled(attr, scale);
    if (status == dnnl_success) status = cpu_onednn_matmul(&s->plan.pd, &left, &right, NULL, &to, attr);
    if (attr) s->plan.lib->dnnl_primitive_attr_destroy(attr);
    const dnnl_status_t added[] = {part(s, DNNL_ARG_SRC, slots[0], left), part(s, DNNL_ARG_WEIGHTS, slots[1], right),
                                   part(s, DNNL_ARG_DST, slots[2], to)};
    for (int k = 0; k < 3 && status == dnnl_success; k++) status = added[k];
    return status;
}

static dnnl_status_t add_softmax(step *s, int64_t rows, int64_t keys) {
    const int64_t dims[2] = {rows, keys}, strides[2] = {keys, 1};
    cpu_onednn_md from = {.there = false}, to = {.there = false};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = cpu_onednn_plan_attr(&s->plan, &attr);
    if (status == dnnl_success && !(cpu_onednn_md_strided(&from, 2, dims, dnnl_f32, strides) &&
                                    cpu_onednn_md_strided(&to, 2, dims, dnnl_f32, strides)))
        status = dnnl_invalid_arguments;
    if (status == dnnl_success) status = cpu_onednn_softmax(&s->plan.pd, dnnl_softmax_accurate, &from, &from, 1, attr);
    if (attr) s->plan.lib->dnnl_primitive_attr_destroy(attr);
    const dnnl_status_t added[] = {part(s, DNNL_ARG_SRC, SCORES, from), part(s, DNNL_ARG_DST, SCORES, to)};
    for (int k = 0; k < 2 && status == dnnl_success; k++) status = added[k];
    return status;
}

/* By an own loop: oneDNN's reference reorder of half types takes 100 ns for a number.
 */
static dnnl_status_t add_rows(step *s, const view *a, uint32_t type_a, int slot_a, const view *b, uint32_t type_b,
                              int slot_b) {
    s->converts = true;
    s->from = slot_a, s->to = slot_b;
    s->rows = (cpu_attention_rows){.from_type = type_a, .to_type = type_b, .cols = a->dims[3]};
    for (int d = 0; d < 3; d++) {
        s->rows.dims[d] = a->dims[d];
        s->rows.from_strides[d] = a->strides[d], s->rows.to_strides[d] = b->strides[d];
    }
    return dnnl_success;
}

static dnnl_status_t add_step(scout_plan *plan, step *s, int which, int64_t rows) {
    const attention_problem *p = &plan->p;
    const bool convert = plan->convert;
    const uint32_t type = p->type;
    const view q = view_of(plan, ATTENTION_Q, rows), out = view_of(plan, ATTENTION_OUT, rows);
    const view k = shared_of(plan, ATTENTION_K, true), v = shared_of(plan, ATTENTION_V, false);
    const view scores = dense_of(plan->lanes, p->group, rows, p->keys);
    const view wide_q = dense_of(plan->lanes, p->group, rows, p->dim),
               wide_out = dense_of(plan->lanes, p->group, rows, p->v_dim);
    const view wide_k = dense_of(plan->lanes, 1, p->keys, p->dim), wide_v = dense_of(plan->lanes, 1, p->keys, p->v_dim);
    const scout_tensor *tk = &p->tensors[ATTENTION_K], *tv = &p->tensors[ATTENTION_V];
    const view own_k = {{plan->lanes, 1, p->keys, p->dim}, {tk->strides[1], tk->strides[1], tk->strides[2], 1}};
    const view own_v = {{plan->lanes, 1, p->keys, p->v_dim}, {tv->strides[1], tv->strides[1], tv->strides[2], 1}};
    const int first[3] = {convert ? WIDE_Q : Q, convert ? WIDE_K : K, SCORES};
    const int last[3] = {p->type == SCOUT_FP32 || convert ? SCORES : PROBS, convert ? WIDE_V : V,
                         convert ? WIDE_OUT : OUT};
    switch (which) {
    case LOAD_K: return add_rows(s, &own_k, type, K, &wide_k, SCOUT_FP32, WIDE_K);
    case LOAD_V: return add_rows(s, &own_v, type, V, &wide_v, SCOUT_FP32, WIDE_V);
    case LOAD_Q: return add_rows(s, &q, type, Q, &wide_q, SCOUT_FP32, WIDE_Q);
    case PRODUCT: return add_matmul(plan, s, convert ? &wide_q : &q, &k, &scores, first, (float)p->scale);
    case SOFTMAX: return add_softmax(s, plan->lanes * p->group * rows, p->keys);
    case NARROW: return add_rows(s, &scores, SCOUT_FP32, SCORES, &scores, type, PROBS);
    case WEIGHTED: return add_matmul(plan, s, &scores, &v, convert ? &wide_out : &out, last, 1);
    default: return add_rows(s, &wide_out, SCOUT_FP32, WIDE_OUT, &out, type, OUT);
    }
}

static bool needed(const scout_plan *plan, int which) {
    if (which == NARROW) return plan->p.type != SCOUT_FP32 && !plan->convert;
    return plan->convert || which == PRODUCT || which == SOFTMAX || which == WEIGHTED;
}

static void free_steps(scout_plan *plan) {
    for (int set = 0; set < 2; set++)
        for (int k = 0; k < STEPS; k++) {
            if (plan->steps[set][k].used) cpu_onednn_plan_free(&plan->steps[set][k].plan);
            plan->steps[set][k].used = plan->steps[set][k].converts = false;
        }
}

static scout_answer build_steps(scout_plan *plan, uint64_t limit, scout_why *why) {
    plan->scratch = 0;
    for (int set = 0; set < (plan->tail > 0 ? 2 : 1); set++)
        for (int k = 0; k < STEPS; k++) {
            step *s = &plan->steps[set][k];
            scout_plan_needs needs = {.size = sizeof needs};
            if (!needed(plan, k)) continue;
            if (k != PRODUCT && k != SOFTMAX && k != WEIGHTED) {
                (void)add_step(plan, s, k, set ? plan->tail : plan->rows);
                continue;
            }
            scout_answer answer = cpu_onednn_plan_begin(&s->plan, why);
            if (answer != SCOUT_OK) return answer;
            s->used = true;
            const dnnl_status_t status = add_step(plan, s, k, set ? plan->tail : plan->rows);
            if (status != dnnl_success) return cpu_onednn_plan_refuse(&s->plan, "part of an attention", status, why);
            answer = cpu_onednn_plan_finish(&s->plan, limit, &needs, why);
            if (answer != SCOUT_OK) return answer;
            if (needs.workspace_bytes > plan->scratch) plan->scratch = needs.workspace_bytes;
        }
    return SCOUT_OK;
}

/* --- the workspace --- */

static void place(scout_plan *plan) {
    const attention_problem *p = &plan->p;
    const uint64_t lanes = (uint64_t)plan->lanes, rows = lanes * (uint64_t)(p->group * plan->rows);
    const uint64_t keys = lanes * (uint64_t)p->keys, dim = (uint64_t)p->dim, v_dim = (uint64_t)p->v_dim;
    const uint64_t scores = rows * (uint64_t)p->keys, wide = plan->convert ? 4 : 0;
    const uint64_t bytes[SLOTS] = {[WIDE_Q] = wide * rows * dim,   [WIDE_K] = wide * keys * dim,
                                   [WIDE_V] = wide * keys * v_dim, [WIDE_OUT] = wide * rows * v_dim,
                                   [SCORES] = 4 * scores,          [PROBS] = needed(plan, NARROW) ? 2 * scores : 0};
    plan->end = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        plan->offset[slot] = plan->end;
        plan->end += (bytes[slot] + 63) / 64 * 64;
    }
}

/* --- the candidate --- */

static void destroy(scout_plan *plan) { free_steps(plan); }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan plan = {.p = attention_problem_of(op)};
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (!cpu_convert_known(plan.p.type)) return scout_say(why, SCOUT_NO, "type", "takes fp32, fp16 and bf16");
    plan.convert = plan.p.type != SCOUT_FP32; /* the costlier way */
    if (cut(&plan, room_of(op, false))) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "the scores of one query do not fit into the workspace");
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const labels[] = {"workspace", "cache"};
    scout_plan large = {.p = attention_problem_of(op)}, small = large;
    (void)device, (void)exhaustive, (void)why;
    out->count = 0;
    if (!cut(&large, room_of(op, false)) || !cut(&small, room_of(op, true))) return SCOUT_OK;
    if (large.lanes == small.lanes && large.rows == small.rows) return SCOUT_OK;
    scout_parameter *scores = &out->parameters[0];
    snprintf(scores->name, sizeof scores->name, "scores");
    scores->count = 2;
    scores->values[0] = 0, scores->values[1] = 1;
    scores->labels = labels;
    out->count = 1;
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    scout_answer answer = SCOUT_NO;
    (void)device;
    plan->p = attention_problem_of(op);
    plan->blocks = attention_blocks(&plan->p);
    for (int convert = 0; convert < (plan->p.type == SCOUT_FP32 ? 1 : 2) && answer == SCOUT_NO; convert++) {
        plan->convert = convert != 0;
        free_steps(plan);
        if (cut(plan, room_of(op, values && values[0] == 1)))
            answer = build_steps(plan, op->workspace_limit, why);
        else
            scout_say(why, SCOUT_NO, "memory", "the scores of one query do not fit into the workspace");
    }
    place(plan);
    if (answer == SCOUT_OK && plan->end + plan->scratch > op->workspace_limit)
        answer = scout_say(why, SCOUT_NO, "memory", "oneDNN needs %llu bytes of scratch memory beside the scores",
                           (unsigned long long)plan->scratch);
    if (answer != SCOUT_OK) return answer;
    needs->workspace_bytes = plan->end + plan->scratch;
    return SCOUT_OK;
}

static scout_answer run_steps(step *steps, int from, int to, const scout_args *args, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (int k = from; k <= to && answer == SCOUT_OK; k++) {
        if (steps[k].used) answer = cpu_onednn_plan_launch(&steps[k].plan, args, why);
        if (!steps[k].converts) continue;
        cpu_attention_rows rows = steps[k].rows;
        rows.from = args->tensors[steps[k].from], rows.to = args->tensors[steps[k].to];
        cpu_attention_convert(&rows);
    }
    return answer;
}

static void *pointer(const scout_plan *plan, const scout_args *args, int tensor, int64_t batch, int64_t head,
                     int64_t row) {
    const scout_tensor *t = &plan->p.tensors[tensor];
    return (char *)args->tensors[tensor] + attention_at(t, batch, head, row) * cpu_convert_size(t->type);
}

static scout_answer run_chunk(scout_plan *plan, const scout_args *args, int64_t batch, int64_t lane, int64_t row,
                              scout_why *why) {
    const attention_problem *p = &plan->p;
    const bool shorter = p->queries - row < plan->rows;
    step *steps = plan->steps[shorter];
    void *slots[SLOTS];
    for (int slot = 0; slot < SLOTS; slot++) slots[slot] = (char *)args->workspace + plan->offset[slot];
    slots[Q] = pointer(plan, args, ATTENTION_Q, batch, lane * p->group, row);
    slots[K] = pointer(plan, args, ATTENTION_K, batch, lane, 0);
    slots[V] = pointer(plan, args, ATTENTION_V, batch, lane, 0);
    slots[OUT] = pointer(plan, args, ATTENTION_OUT, batch, lane * p->group, row);
    const scout_args inner = {sizeof inner, slots, (char *)args->workspace + plan->end, args->stream};
    scout_answer answer = run_steps(steps, row == 0 ? LOAD_K : LOAD_Q, PRODUCT, &inner, why);
    if (answer == SCOUT_OK && cpu_attention_masked(p)) {
        const cpu_attention_scores scores = {p,
                                             &plan->blocks,
                                             args->tensors,
                                             slots[SCORES],
                                             batch,
                                             lane * p->group,
                                             plan->lanes * p->group,
                                             row,
                                             shorter ? plan->tail : plan->rows};
        cpu_attention_mask(&scores);
    }
    return answer == SCOUT_OK ? run_steps(steps, SOFTMAX, STORE, &inner, why) : answer;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const attention_problem *p = &plan->p;
    scout_answer answer = SCOUT_OK;
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t lane = 0; lane < p->kv_heads; lane += plan->lanes)
            for (int64_t row = 0; row < p->queries && answer == SCOUT_OK; row += plan->rows)
                answer = run_chunk(plan, args, batch, lane, row, why);
    return answer;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\": \"onednn\", \"version\": \"%s\", \"calls\": \"matmul, softmax, matmul\", "
                    "\"heads\": %lld, \"queries\": %lld, \"computes_in\": \"%s\", \"threads\": \"%s\"}",
                    plan->steps[0][PRODUCT].plan.lib->version, (long long)plan->lanes * (long long)plan->p.group,
                    (long long)plan->rows, plan->convert ? "fp32" : "its type", cpu_team_about());
}

const scout_candidate cpu_attention_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ATTENTION,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_composed",
    .about = "oneDNN's matmul, softmax and matmul, the scores in the workspace",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
