/* Attention in one pass over keys and values by an own kernel: scores never leave a thread's cache. A task is a block
 * of up to 64 queries (of all heads that share keys and values) of one sequence; keys come in blocks of 64, and blocks
 * that none of the queries sees are left out, which is what makes a block mask worth it. The softmax is computed
 * online: sums so far are rescaled when a larger score is found. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/products/cpu_attention_kernel.h"
#include "scout/op/attention.h"

enum { KEYS = CPU_ATTENTION_KEYS, MOST_LANES = 64 };

static const float unseen = -1e30f; /* finite, so that a difference of two of them is 0 */

struct scout_plan {
    attention_problem p;
    block_mask blocks;
    const cpu_attention_kernel *kernel;
    int64_t rows, lanes, tasks; /* queries of a task's heads in all, of one task, and how many tasks they make */
};

typedef struct scratch {
    float *q, *scores, *out, *k, *v, *line, *most, *sum, *change; /* q, scores, out: [..][lanes] */
    int32_t first[MOST_LANES], end[MOST_LANES], heads[MOST_LANES], queries[MOST_LANES];
} scratch;

typedef struct task {
    const scout_plan *plan;
    const scout_args *args;
    scratch *room;
    int64_t batch, kv_head, row, rows; /* rows: as many lanes as are in use */
    int64_t begin, end;                /* keys that any of them sees */
    bool whole;                        /* every query sees all of them, as far as blocks allow */
} task;

static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t lanes_of(int64_t rows) { return rows <= 16 ? 16 : rows <= 32 ? 32 : MOST_LANES; }

/* Of one thread. Dimensions are those of tensors that fit into memory: no product overflows. */
static int64_t scratch_floats(const attention_problem *p, int64_t lanes) {
    return lanes * (p->dim + p->v_dim + KEYS + 3) + KEYS * (p->dim + p->v_dim) + most_of(p->dim, p->v_dim) + 64;
}

static void share_scratch(const scout_plan *plan, float *at, scratch *s) {
    const attention_problem *p = &plan->p;
    s->q = at, at += plan->lanes * p->dim;
    s->scores = at, at += plan->lanes * KEYS;
    s->out = at, at += plan->lanes * p->v_dim;
    s->k = at, at += KEYS * p->dim;
    s->v = at, at += KEYS * p->v_dim;
    s->most = at, at += plan->lanes;
    s->sum = at, at += plan->lanes;
    s->change = at, at += plan->lanes;
    s->line = at;
}

/* --- one task --- */

static const char *row_of(const task *t, int tensor, int64_t head, int64_t row) {
    const scout_tensor *x = &t->plan->p.tensors[tensor];
    return (const char *)t->args->tensors[tensor] + attention_at(x, t->batch, head, row) * cpu_convert_size(x->type);
}

/* Which keys each lane sees, and the queries themselves, transposed and scaled. Lanes beyond the last row repeat it. */
static void begin_task(task *t) {
    const attention_problem *p = &t->plan->p;
    const int64_t lanes = t->plan->lanes;
    scratch *s = t->room;
    int64_t last = p->keys - 1, latest = 0, earliest = p->keys;
    if (p->lengths >= 0) last = ((const int32_t *)t->args->tensors[p->lengths])[t->batch];
    t->begin = p->keys, t->end = 0;
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t row = t->row + least_of(lane, t->rows - 1), query = row % p->queries;
        const int64_t head = t->kv_head * p->group + row / p->queries;
        int64_t first, end;
        attention_visible(p, query, last, &first, &end);
        s->first[lane] = (int32_t)first, s->end[lane] = (int32_t)end;
        s->heads[lane] = (int32_t)head, s->queries[lane] = (int32_t)query;
        t->begin = least_of(t->begin, first), t->end = most_of(t->end, end);
        latest = most_of(latest, first), earliest = least_of(earliest, end);
        s->most[lane] = unseen, s->sum[lane] = 0;
        t->plan->kernel->load(p->type, row_of(t, ATTENTION_Q, head, query), p->dim, s->line);
        for (int64_t d = 0; d < p->dim; d++) s->q[d * lanes + lane] = s->line[d] * (float)p->scale;
    }
    t->whole = t->begin == latest && t->end == earliest;
    _Static_assert(64 % KEYS == 0, "a block of keys is of one block of the mask, of 64 keys or 128");
    if (t->plan->blocks.block) { /* and begins where one does */
        t->whole = t->whole && t->begin % KEYS == 0;
        t->begin = t->begin / KEYS * KEYS;
    }
    memset(s->out, 0, (size_t)(lanes * p->v_dim) * sizeof *s->out);
}

/* A block of keys or values as fp32: where it lies, or converted into scratch memory. */
static const float *block_of(const task *t, int tensor, int64_t key, int64_t keys, float *room, int64_t *stride) {
    const attention_problem *p = &t->plan->p;
    const int64_t dim = p->tensors[tensor].dims[3];
    *stride = p->tensors[tensor].strides[2];
    if (p->type == SCOUT_FP32) return (const float *)(const void *)row_of(t, tensor, t->kv_head, key);
    for (int64_t k = 0; k < keys; k++)
        t->plan->kernel->load(p->type, row_of(t, tensor, t->kv_head, key + k), dim, room + k * dim);
    *stride = dim;
    return room;
}

static void add_mask(const task *t, int64_t key, int64_t keys) {
    const attention_problem *p = &t->plan->p;
    const scout_tensor *m = &p->tensors[p->mask];
    const int64_t lanes = t->plan->lanes, size = cpu_convert_size(m->type);
    scratch *s = t->room;
    float line[KEYS];
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t at = attention_at(m, t->batch, s->heads[lane], s->queries[lane]) + key * m->strides[3];
        const bool again = lane > 0 && m->strides[1] == 0 && m->strides[2] == 0;
        if (!again)
            t->plan->kernel->load(m->type, (const char *)t->args->tensors[p->mask] + at * size,
                                  m->strides[3] ? keys : 1, line);
        for (int64_t k = 0; k < keys; k++) s->scores[k * lanes + lane] += line[m->strides[3] ? k : 0];
    }
}

/* Which lanes see a block of keys by the block mask, as bits; neighbours mostly ask for the same. */
static uint64_t lanes_that_see(const task *t, int64_t key) {
    const block_mask *blocks = &t->plan->blocks;
    uint64_t seen = 0;
    int64_t row = -1;
    bool sees = true;
    if (blocks->block == 0) return UINT64_MAX;
    for (int64_t lane = 0; lane < MOST_LANES; lane++) {
        const int64_t mine = t->room->queries[least_of(lane, t->plan->lanes - 1)] / blocks->block;
        if (mine != row) sees = block_mask_sees(blocks, mine, key / blocks->block), row = mine;
        if (sees) seen |= UINT64_C(1) << lane;
    }
    return seen;
}

/* Scores between the product and the softmax: soft cap and mask. `lanes_seen`: as lanes_that_see gives them. */
static void adjust(const task *t, int64_t key, int64_t keys, uint64_t lanes_seen) {
    const attention_problem *p = &t->plan->p;
    const int64_t lanes = t->plan->lanes;
    const float cap = (float)p->softcap;
    scratch *s = t->room;
    for (int64_t k = 0; cap > 0 && k < keys * lanes; k++) s->scores[k] = cap * tanhf(s->scores[k] / cap);
    if (p->mask >= 0) add_mask(t, key, keys);
    const bool all = t->whole && lanes_seen == UINT64_MAX;
    for (int64_t k = 0; !all && k < keys; k++)
        for (int64_t lane = 0; lane < lanes; lane++) {
            const bool seen = key + k >= s->first[lane] && key + k < s->end[lane] && lanes_seen >> lane & 1;
            s->scores[k * lanes + lane] = seen ? s->scores[k * lanes + lane] : unseen;
        }
}

static void do_block(const task *t, int64_t key, int64_t keys) {
    const attention_problem *p = &t->plan->p;
    const int64_t lanes = t->plan->lanes;
    const uint64_t lanes_seen = lanes_that_see(t, key);
    scratch *s = t->room;
    if (lanes_seen == 0) return;
    int64_t stride;
    const float *k = block_of(t, ATTENTION_K, key, keys, s->k, &stride);
    const cpu_attention_product scores = {k, s->q, s->scores, keys, p->dim, lanes, stride, 1, 0};
    t->plan->kernel->multiply(&scores);
    adjust(t, key, keys, lanes_seen);
    const cpu_attention_soften soften = {s->scores, s->most, s->sum, s->out, s->change, keys, lanes, p->v_dim};
    t->plan->kernel->soften(&soften);
    const float *v = block_of(t, ATTENTION_V, key, keys, s->v, &stride);
    const cpu_attention_product values = {v, s->scores, s->out, p->v_dim, keys, lanes, 1, stride, 1};
    t->plan->kernel->multiply(&values);
}

static void end_task(const task *t) {
    const attention_problem *p = &t->plan->p;
    const int64_t lanes = t->plan->lanes;
    const scout_tensor *out = &p->tensors[ATTENTION_OUT];
    scratch *s = t->room;
    for (int64_t lane = 0; lane < t->rows; lane++) {
        const int64_t at = attention_at(out, t->batch, s->heads[lane], s->queries[lane]);
        const float scale = 1 / s->sum[lane];
        for (int64_t d = 0; d < p->v_dim; d++) s->line[d] = s->out[d * lanes + lane] * scale;
        t->plan->kernel->store(p->type, s->line, p->v_dim,
                               (char *)t->args->tensors[ATTENTION_OUT] + at * cpu_convert_size(p->type));
    }
}

/* --- all tasks --- */

/* Threads take every threads-th task: under a causal mask neighbours cost alike, and shares of them would not. */
static void tiled_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const scout_plan *plan = job->plan;
    const attention_problem *p = &plan->p;
    scratch room;
    memset(&room, 0, sizeof room);
    share_scratch(plan, (float *)job->args->workspace + thread * scratch_floats(p, plan->lanes), &room);
    for (int64_t k = thread; k < p->batch * p->kv_heads * plan->tasks; k += threads) {
        const int64_t lane = k / plan->tasks;
        task t = {.plan = plan, .args = job->args, .room = &room, .batch = lane / p->kv_heads};
        t.kv_head = lane % p->kv_heads;
        t.row = k % plan->tasks * plan->lanes;
        t.rows = least_of(plan->lanes, plan->rows - t.row);
        begin_task(&t);
        for (int64_t key = t.begin; key < t.end; key += KEYS) do_block(&t, key, least_of(KEYS, t.end - key));
        end_task(&t);
    }
}

/* --- the candidate --- */

static double workspace_bytes(const attention_problem *p) {
    return (double)cpu_team_size() * (double)scratch_floats(p, lanes_of(p->group * p->queries)) * sizeof(float);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const attention_problem p = attention_problem_of(op);
    (void)device;
    if (!cpu_convert_known(p.type)) return scout_say(why, SCOUT_NO, "type", "takes fp32, fp16 and bf16");
    if (p.keys > INT32_MAX || p.queries > INT32_MAX || p.heads > INT32_MAX)
        return scout_say(why, SCOUT_NO, "shape", "keys, queries and heads exceed 32-bit counters");
    if (workspace_bytes(&p) > (double)op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "needs %.1f MB of workspace for %d threads",
                         workspace_bytes(&p) / 1e6, cpu_team_size());
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)why;
    plan->p = attention_problem_of(op);
    plan->blocks = attention_blocks(&plan->p);
    plan->kernel = cpu_attention_kernel_get();
    plan->rows = plan->p.group * plan->p.queries;
    plan->lanes = lanes_of(plan->rows);
    plan->tasks = (plan->rows + plan->lanes - 1) / plan->lanes;
    needs->workspace_bytes = (uint64_t)workspace_bytes(&plan->p);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(tiled_share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(
        json, room,
        "{\"kernel\": \"tiled\", \"vectors\": \"%s\", \"queries\": %lld, \"keys\": %d, \"threads\": \"%s\"}",
        plan->kernel->name, (long long)plan->lanes, KEYS, cpu_team_about());
}

/* Also the baseline where oneDNN is not here, or cannot hold a row of scores. */
const scout_candidate cpu_attention_tiled = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ATTENTION,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "attention_tiled",
    .about = "own attention in one pass over keys and values, every mask and type",
    .approach = "CUSTOM_ATTENTION",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
