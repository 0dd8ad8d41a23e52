/* The candidate "cudnn_attention": cuDNN's fused attention, described in one of two ways. As one node ("whole"), which
 * serves attention without masks and with lengths; or as the products, the softmax and the arithmetic between them
 * ("parts"), which the library also compiles to one kernel, and which serves every mask that is arithmetic on scores.
 * A block mask becomes a tensor of numbers that are added, as frameworks hand it over: all scores are computed.
 * Nodes have the order of the library's patterns: another order may be right and slower. */
#include "scout/cuda/dnn/dnn.h"

#include "kernels/attention/attention_kernels.h"
#include "scout/cuda/own/own.h"
#include "scout/op/attention.h"

#include <stdlib.h>
#include <string.h>

enum { WHOLE, PARTS, WAYS };

/* Numbers of tensors in both graphs: the operation's by place plus 1, then the scalars. */
enum { UID_SCALE = 20, UID_CAP, UID_UNCAP, UID_END, UID_QUERIES, UID_WINDOW, UID_HIDDEN, UID_PASSED, UID_COUNTS };

enum { MOST_UIDS = 16 };

static const uint64_t most_mask_bytes = (uint64_t)4 << 30;

/* Scalars that a launch passes by address. */
typedef struct scalars {
    float scale, cap, uncap, hidden;
    int32_t end, queries, window; /* end: one behind the place of the last query */
} scalars;

struct scout_plan {
    dnn_plan plan;
    attention_problem p;
    scalars numbers;
    int64_t way;
    void *blocks;          /* owned: the block mask as numbers to add; NULL: there is none */
    uint64_t counts_bytes; /* twice at the beginning of the workspace: how many queries, how many keys */
};

/* --- what an operation is made of --- */

/* Whether a query sees less than all keys before its sequence's end: a causal mask, a window. */
static bool masks_later(const attention_problem *p) { return p->causal && p->past + 1 < p->keys; }

static bool masks_earlier(const attention_problem *p) {
    return p->causal && p->window > 0 && p->past + p->queries - p->window > 0;
}

/* Whether arithmetic on positions has to shift queries to their positions among the keys. */
static bool moved(const attention_problem *p) { return p->past > 0 && (masks_later(p) || masks_earlier(p)); }

/* The library recognises this arithmetic, and assumes the last query at the last key, whatever the scalars are. */
static bool stands_elsewhere(const attention_problem *p) { return moved(p) && p->past + p->queries != p->keys; }

static bool serves(const attention_problem *p, int64_t way) {
    if (way == PARTS) return p->lengths < 0 && !stands_elsewhere(p);
    return p->mask < 0 && !p->block_mask && !(p->softcap > 0) && !masks_later(p) && !masks_earlier(p);
}

static scalars scalars_of(const attention_problem *p) {
    scalars s = {.scale = (float)p->scale, .hidden = -INFINITY};
    s.cap = (float)p->softcap;
    s.uncap = p->softcap > 0 ? (float)(1 / p->softcap) : 0;
    s.end = (int32_t)(p->past + p->queries);
    s.queries = (int32_t)p->queries;
    s.window = (int32_t)p->window;
    return s;
}

/* The place of the mask that is added, which is no tensor of the operation where it is a block mask; -1: there is none.
 */
static int mask_place(const attention_problem *p) { return p->block_mask ? ATTENTION_OUT + 1 : p->mask; }

/* --- its graph --- */

typedef struct sketch { /* a graph under way */
    dnn_graph *g;
    attention_problem p;
    cudnnDataType_t type;
    int64_t scores[4], rows[4];
    dnn_desc end, queries; /* numbers that place queries among the keys; NULL: query i stands at key i */
} sketch;

static dnn_desc tensor_of(const sketch *s, int place) {
    const scout_tensor *const t = &s->p.tensors[place];
    return dnn_tensor(s->g, place + 1, s->type, 4, t->dims, t->strides);
}

static dnn_desc between(const sketch *s, cudnnDataType_t type) { return dnn_virtual(s->g, type, 4, s->scores, NULL); }

static dnn_desc number(const sketch *s, int64_t uid, cudnnDataType_t type) { return dnn_scalar(s->g, uid, type, 4); }

/* One step of arithmetic on what has the shape of the scores; b may be NULL. */
static dnn_desc step(const sketch *s, cudnnPointwiseMode_t mode, dnn_desc x, dnn_desc b, cudnnDataType_t type) {
    const dnn_pointwise_how how = {.math = type};
    const dnn_desc y = between(s, type);
    dnn_pointwise(s->g, mode, x, b, NULL, y, &how);
    return y;
}

/* Each score's own row (dimension 2) or column (3). */
static dnn_desc place_of(const sketch *s, dnn_desc x, int64_t dimension) {
    const dnn_pointwise_how how = {.math = CUDNN_DATA_FLOAT, .axis = dimension + 1};
    const dnn_desc y = between(s, CUDNN_DATA_INT32);
    dnn_pointwise(s->g, CUDNN_POINTWISE_GEN_INDEX, x, NULL, NULL, y, &how);
    return y;
}

/* Keeps scores where the comparison holds. */
static dnn_desc keep(const sketch *s, dnn_desc x, cudnnPointwiseMode_t mode, dnn_desc a, dnn_desc b, int64_t uid) {
    const dnn_desc holds = step(s, mode, a, b, CUDNN_DATA_BOOLEAN), y = between(s, CUDNN_DATA_FLOAT);
    dnn_pointwise(s->g, CUDNN_POINTWISE_BINARY_SELECT, x, number(s, uid, CUDNN_DATA_FLOAT), holds, y, NULL);
    return y;
}

/* key <= past + query, where past is written as end - queries. */
static dnn_desc hide_later(const sketch *s, dnn_desc x) {
    const cudnnDataType_t whole = CUDNN_DATA_INT32;
    dnn_desc row = place_of(s, x, 2);
    const dnn_desc col = place_of(s, x, 3);
    if (s->end) {
        row = step(s, CUDNN_POINTWISE_ADD, row, s->end, whole);
        row = step(s, CUDNN_POINTWISE_SUB, row, s->queries, whole);
    }
    return keep(s, x, CUDNN_POINTWISE_CMP_GE, row, col, UID_HIDDEN);
}

/* key + window > past + query */
static dnn_desc hide_earlier(const sketch *s, dnn_desc x) {
    const cudnnDataType_t whole = CUDNN_DATA_INT32;
    const dnn_desc row = place_of(s, x, 2);
    dnn_desc col = place_of(s, x, 3);
    col = step(s, CUDNN_POINTWISE_ADD, col, number(s, UID_WINDOW, whole), whole);
    if (s->end) {
        col = step(s, CUDNN_POINTWISE_SUB, col, s->end, whole);
        col = step(s, CUDNN_POINTWISE_ADD, col, s->queries, whole);
    }
    return keep(s, x, CUDNN_POINTWISE_CMP_GT, col, row, UID_PASSED);
}

static dnn_desc add_mask(const sketch *s, dnn_desc x) {
    const scout_tensor *const t = s->p.block_mask ? NULL : &s->p.tensors[s->p.mask];
    int64_t dims[4], strides[4], stride = 1;
    for (int d = 3; d >= 0; d--) { /* a broadcast dimension has one element, which the library repeats */
        const bool all = t ? t->strides[d] != 0 : d >= 2; /* a block mask is the same for all sequences and heads */
        dims[d] = all ? s->scores[d] : 1;
        strides[d] = stride;
        stride *= dims[d];
    }
    return step(s, CUDNN_POINTWISE_ADD, x, dnn_tensor(s->g, mask_place(&s->p) + 1, s->type, 4, dims, strides),
                CUDNN_DATA_FLOAT);
}

static dnn_desc soft_cap(const sketch *s, dnn_desc x) {
    const cudnnDataType_t real = CUDNN_DATA_FLOAT;
    x = step(s, CUDNN_POINTWISE_MUL, x, number(s, UID_UNCAP, real), real);
    x = step(s, CUDNN_POINTWISE_TANH_FWD, x, NULL, real);
    return step(s, CUDNN_POINTWISE_MUL, x, number(s, UID_CAP, real), real);
}

/* The statistics for training are computed too and not used: the library has no softmax without them. */
static dnn_desc softmax(const sketch *s, dnn_desc x) {
    dnn_graph *const g = s->g;
    const cudnnDataType_t real = CUDNN_DATA_FLOAT;
    const dnn_desc most = dnn_virtual(g, real, 4, s->rows, NULL), sum = dnn_virtual(g, real, 4, s->rows, NULL);
    const dnn_desc logs = dnn_virtual(g, real, 4, s->rows, NULL), kept = dnn_virtual(g, real, 4, s->rows, NULL);
    const dnn_desc shares = between(s, s->type);
    dnn_reduce(g, CUDNN_REDUCE_TENSOR_MAX, x, most);
    x = step(s, CUDNN_POINTWISE_SUB, x, most, real);
    x = step(s, CUDNN_POINTWISE_EXP, x, NULL, real);
    dnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, x, sum);
    dnn_pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, NULL, logs, NULL);
    dnn_pointwise(g, CUDNN_POINTWISE_ADD, most, logs, NULL, kept, NULL);
    dnn_pointwise(g, CUDNN_POINTWISE_DIV, x, sum, NULL, shares, NULL);
    return shares;
}

static void draw_parts(sketch *s) {
    const scout_tensor *const k = &s->p.tensors[ATTENTION_K];
    const int64_t dims[4] = {k->dims[0], k->dims[1], k->dims[3], k->dims[2]};
    const int64_t strides[4] = {k->strides[0], k->strides[1], k->strides[3], k->strides[2]};
    const dnn_desc across = dnn_tensor(s->g, ATTENTION_K + 1, s->type, 4, dims, strides);
    dnn_desc x = between(s, CUDNN_DATA_FLOAT);
    if (moved(&s->p)) {
        s->end = number(s, UID_END, CUDNN_DATA_INT32);
        s->queries = number(s, UID_QUERIES, CUDNN_DATA_INT32);
    }
    dnn_matmul(s->g, tensor_of(s, ATTENTION_Q), across, x);
    x = step(s, CUDNN_POINTWISE_MUL, x, number(s, UID_SCALE, CUDNN_DATA_FLOAT), CUDNN_DATA_FLOAT);
    if (s->p.softcap > 0) x = soft_cap(s, x);
    if (mask_place(&s->p) >= 0) x = add_mask(s, x);
    if (masks_later(&s->p)) x = hide_later(s, x);
    if (masks_earlier(&s->p)) x = hide_earlier(s, x);
    dnn_matmul(s->g, softmax(s, x), tensor_of(s, ATTENTION_V), tensor_of(s, ATTENTION_OUT));
}

static void draw_whole(const sketch *s) {
    const int64_t dims[4] = {s->p.batch, 1, 1, 1}, strides[4] = {1, 1, 1, 1};
    const bool counted = s->p.lengths >= 0;
    const dnn_desc q = tensor_of(s, ATTENTION_Q), k = tensor_of(s, ATTENTION_K), v = tensor_of(s, ATTENTION_V);
    const dnn_desc out = tensor_of(s, ATTENTION_OUT), scale = number(s, UID_SCALE, CUDNN_DATA_FLOAT);
    dnn_desc queries = NULL, keys = NULL;
    if (counted) {
        queries = dnn_tensor(s->g, UID_COUNTS, CUDNN_DATA_INT32, 4, dims, strides);
        keys = dnn_tensor(s->g, UID_COUNTS + 1, CUDNN_DATA_INT32, 4, dims, strides);
    }
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &q},
        {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &k},
        {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &v},
        {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &out},
        {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &scale},
        {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &queries},
        {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &keys},
    };
    dnn_node(s->g, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, attributes, sizeof attributes / sizeof attributes[0],
             "cuDNN's attention");
}

static scout_answer build(dnn_graph *g, const scout_op *op, int64_t way, scout_why *why) {
    sketch s = {.g = g, .p = attention_problem_of(op)};
    if (!serves(&s.p, way) || !dnn_type(s.p.type, &s.type))
        return scout_say(why, SCOUT_NO, "feature", "this graph does not express this attention");
    const int64_t scores[4] = {s.p.batch, s.p.heads, s.p.queries, s.p.keys};
    memcpy(s.scores, scores, sizeof scores);
    memcpy(s.rows, scores, sizeof scores);
    s.rows[3] = 1;
    if (way == WHOLE)
        draw_whole(&s);
    else
        draw_parts(&s);
    return SCOUT_OK;
}

/* --- the candidate --- */

/* A hidden score has 65504 less: of those that are seen none may be so far below it. */
static const double half_hidden = 32000;

/* Elements are at most 6 either way, as inputs are made. */
static double most_score(const attention_problem *p) {
    return p->softcap > 0 ? p->softcap : fabs(p->scale) * (double)p->dim * 36;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (op->kind != SCOUT_ATTENTION || op->rank != 4 || op->tensor_count < 4)
        return scout_say(why, SCOUT_NO, "feature", "this is no attention");
    const attention_problem p = attention_problem_of(op);
    if (p.type != SCOUT_FP16 && p.type != SCOUT_BF16)
        return scout_say(why, SCOUT_NO, "type", "cuDNN's fused attention is for fp16 and bf16");
    if (stands_elsewhere(&p) && p.lengths < 0)
        return scout_say(why, SCOUT_NO, "feature", "cuDNN assumes that the last query is at the last key");
    if (p.block_mask && !(most_score(&p) < half_hidden))
        return scout_say(why, SCOUT_NO, "feature",
                         "scores may be as large as the number that hides others; give a smaller scale or soft cap");
    if (!serves(&p, WHOLE) && !serves(&p, PARTS))
        return scout_say(why, SCOUT_NO, "feature", "lengths with a mask or a soft cap are not supported with cuDNN");
    if (p.past + p.queries > INT32_MAX || p.keys > INT32_MAX || p.window > INT32_MAX)
        return scout_say(why, SCOUT_NO, "shape", "positions of keys do not fit into 32 bits");
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "cuDNN's fused attention needs compute capability 8.0");
    return dnn_open(why) ? SCOUT_OK : SCOUT_NO;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const names[WAYS] = {"whole", "parts"};
    const attention_problem p = attention_problem_of(op);
    int64_t first = -1, ways = 0;
    scout_answer answer = SCOUT_NO;
    memset(out, 0, sizeof *out);
    scout_parameter *const graph = &out->parameters[0];
    snprintf(graph->name, sizeof graph->name, "graph");
    out->count = 1;
    for (int64_t way = 0; way < WAYS; way++) {
        if (!serves(&p, way)) continue;
        dnn_offer *const offer = dnn_offer_get(device, op, build, way, why);
        if (!offer) continue;
        if (first < 0)
            answer = dnn_offer_domain(offer, exhaustive, out, why);
        else if (dnn_offer_first(offer, NULL) < 0)
            continue;
        if (answer != SCOUT_OK) continue;
        if (first < 0) first = way;
        graph->values[ways++] = way;
    }
    if (first < 0) return answer;
    graph->count = (uint32_t)ways;
    graph->labels = names + first;
    return SCOUT_OK;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const dnn_offer *const offer = dnn_offer_get(device, op, build, values[0], NULL);
    return offer && dnn_offer_allows(offer, values[1]);
}

static void destroy(scout_plan *plan) {
    dnn_plan_free(&plan->plan);
    cuda_device_release(NULL, plan->blocks);
}

/* Once, as a framework keeps it between calls. */
static scout_answer make_blocks(const scout_op *op, scout_device *device, scout_plan *plan, scout_why *why) {
    const attention_problem *const p = &plan->p;
    const attention_shape s = own_attention_shape(op);
    const uint64_t bytes = (uint64_t)p->queries * (uint64_t)p->keys * sizeof(uint16_t);
    uint32_t *bits = NULL;
    if (bytes > most_mask_bytes)
        return scout_say(why, SCOUT_NO, "memory", "its block mask as a tensor would take %.1f GB", (double)bytes / 1e9);
    scout_answer answer = own_attention_blocks(op, device, &bits, why);
    if (answer == SCOUT_OK && bits) answer = cuda_device_alloc(device, bytes, &plan->blocks, why);
    if (answer == SCOUT_OK && bits) {
        const int error = attention_block_mask(plan->blocks, (int)p->type, bits, s.block, s.block_words, p->queries,
                                               p->keys, device->stream);
        answer = cuda_device_answer((cudaError_t)error, "making the mask", why);
    }
    if (answer == SCOUT_OK && bits) answer = cuda_device_wait(device, "making the mask", why);
    if (answer != SCOUT_LOST) cuda_device_release(device, bits);
    return answer;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    p->p = attention_problem_of(op);
    p->way = values[0];
    p->numbers = scalars_of(&p->p);
    if (p->p.lengths >= 0) p->counts_bytes = ((uint64_t)p->p.batch * sizeof(int32_t) + 255) / 256 * 256;
    dnn_offer *const offer = dnn_offer_get(device, op, build, p->way, why);
    scout_answer answer = offer ? dnn_plan_make(offer, values[1], &p->plan, why) : SCOUT_NO;
    if (answer == SCOUT_OK && p->p.block_mask) answer = make_blocks(op, device, p, why);
    if (answer != SCOUT_OK) return answer;
    needs->workspace_bytes = 2 * p->counts_bytes + p->plan.workspace;
    return SCOUT_OK;
}

typedef struct handed { /* scalars of a launch */
    int64_t uids[MOST_UIDS];
    void *pointers[MOST_UIDS];
    int count;
} handed;

static void hand(handed *h, bool used, int64_t uid, void *pointer) {
    if (!used) return;
    h->uids[h->count] = uid;
    h->pointers[h->count++] = pointer;
}

static void hand_numbers(handed *h, const attention_problem *p, scalars *n) {
    const bool cap = p->softcap > 0, later = masks_later(p), earlier = masks_earlier(p);
    hand(h, true, UID_SCALE, &n->scale);
    hand(h, cap, UID_CAP, &n->cap);
    hand(h, cap, UID_UNCAP, &n->uncap);
    hand(h, moved(p), UID_END, &n->end);
    hand(h, moved(p), UID_QUERIES, &n->queries);
    hand(h, earlier, UID_WINDOW, &n->window);
    hand(h, later, UID_HIDDEN, &n->hidden);
    hand(h, earlier, UID_PASSED, &n->hidden);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const attention_problem *const p = &plan->p;
    char *const workspace = args->workspace;
    handed h = {.count = 0};
    for (int place = ATTENTION_Q; place <= ATTENTION_OUT; place++) hand(&h, true, place + 1, args->tensors[place]);
    if (mask_place(p) >= 0) hand(&h, true, mask_place(p) + 1, plan->blocks ? plan->blocks : args->tensors[p->mask]);
    hand_numbers(&h, p, &plan->numbers);
    if (p->lengths >= 0) {
        void *const queries = workspace, *const keys = workspace + plan->counts_bytes;
        const int error = attention_lengths(queries, keys, args->tensors[p->lengths], p->batch, (int32_t)p->queries,
                                            (int32_t)p->keys, args->stream);
        const scout_answer answer = cuda_device_answer((cudaError_t)error, "counting the keys", why);
        if (answer != SCOUT_OK) return answer;
        hand(&h, true, UID_COUNTS, queries);
        hand(&h, true, UID_COUNTS + 1, keys);
    }
    return dnn_plan_launch(&plan->plan, h.count, h.uids, h.pointers,
                           workspace ? workspace + 2 * plan->counts_bytes : NULL, args->stream, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    char engine[900];
    dnn_plan_describe(&plan->plan, engine, sizeof engine);
    return snprintf(json, room, "{%s,\"graph\":\"%s\"}", engine, plan->way == WHOLE ? "whole" : "parts");
}

const scout_candidate dnn_attention = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ATTENTION,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "cudnn_attention",
    .about = "cuDNN's fused attention, as one node and as a graph: its ranked engines",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
