/* Running sums and products and the largest of each line, by own loops over lines of one dimension. Running sums take
 * neighbouring lines together, so that memory is read in order; a search keeps the best so far in a heap. The baseline,
 * as no library here has them. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/reduce.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 64, BLOCK = 512 };

typedef struct place {
    int64_t key; /* in the order of the values */
    int64_t at;
} place;

struct scout_plan {
    reduce_lines l;
    uint32_t type;
    place *heaps; /* of a search: k of every thread */
};

/* --- running sums --- */

#define RUN(type, sum_type, load, store)                                                                               \
    do {                                                                                                               \
        sum_type sums[COLUMNS];                                                                                        \
        for (int j = 0; j < COLUMNS; j++) sums[j] = l->products ? 1 : 0;                                               \
        for (int64_t k = 0; k < l->length; k++) {                                                                      \
            const int64_t row = from + (l->backward ? l->length - 1 - k : k) * l->inner;                               \
            for (int64_t j = 0; j < count; j++) {                                                                      \
                const sum_type before = sums[j];                                                                       \
                const sum_type one = (sum_type)load(((const type *)x)[row + j]);                                       \
                sums[j] = l->products ? sums[j] * one : sums[j] + one;                                                 \
                ((type *)y)[row + j] = (type)store(l->exclusive ? before : sums[j]);                                   \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* Sums of integers wrap around. */
static void run_lines(const reduce_lines *l, uint32_t type, const void *x, void *y, int64_t from, int64_t count) {
    switch (type) {
    case SCOUT_FP32: RUN(float, double, , (float)); break;
    case SCOUT_FP64: RUN(double, double, , ); break;
    case SCOUT_FP16: RUN(uint16_t, float, cpu_number_from_fp16, cpu_number_to_fp16); break;
    case SCOUT_BF16: RUN(uint16_t, float, cpu_number_from_bf16, cpu_number_to_bf16); break;
    case SCOUT_UINT32:
    case SCOUT_INT32: RUN(uint32_t, uint32_t, , ); break;
    default: RUN(uint64_t, uint64_t, , ); break;
    }
}

static void run_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const reduce_lines *l = &job->plan->l;
    const int64_t parts = (l->inner + COLUMNS - 1) / COLUMNS;
    int64_t from, to;
    cpu_team_share(l->outer * parts, thread, threads, &from, &to);
    for (int64_t unit = from; unit < to; unit++) {
        const int64_t first = unit % parts * COLUMNS, left = l->inner - first;
        run_lines(l, job->plan->type, job->args->tensors[REDUCE_X], job->args->tensors[REDUCE_Y],
                  unit / parts * l->length * l->inner + first, left < COLUMNS ? left : COLUMNS);
    }
}

/* --- searches --- */

/* A double's bits, the ones below 0 turned around; -0 is 0. */
static int64_t key_of(double x) {
    const double value = x + 0.0;
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

/* Integers of 64 bits are keys themselves, without a sign less half of their range; a double holds all others. */
static void load_keys(uint32_t type, const void *x, int64_t at, int64_t step, int64_t count, int64_t *keys) {
    const int64_t half = type == SCOUT_UINT64 ? INT64_MIN : 0;
    if (type == SCOUT_INT64 || type == SCOUT_UINT64) {
        for (int64_t k = 0; k < count; k++) keys[k] = ((const int64_t *)x)[at + k * step] ^ half;
        return;
    }
    double block[BLOCK];
    cpu_number_load(type, x, at, step, count, block);
    for (int64_t k = 0; k < count; k++) keys[k] = key_of(block[k]);
}

/* Of equal values the first one is better. */
static bool is_worse(const reduce_lines *l, const place *a, const place *b) {
    if (a->key != b->key) return l->largest ? a->key < b->key : a->key > b->key;
    return a->at > b->at;
}

/* The worst of `count` stands at the top. */
static void sift(const reduce_lines *l, place *heap, int64_t count, int64_t k) {
    const place moved = heap[k];
    for (int64_t child = 2 * k + 1; child < count; k = child, child = 2 * k + 1) {
        if (child + 1 < count && is_worse(l, &heap[child + 1], &heap[child])) child++;
        if (!is_worse(l, &heap[child], &moved)) break;
        heap[k] = heap[child];
    }
    heap[k] = moved;
}

static void search_line(const reduce_lines *l, uint32_t type, const void *x, int64_t base, place *heap) {
    int64_t keys[BLOCK], held = 0;
    for (int64_t at = 0; at < l->length; at += BLOCK) {
        const int64_t here = l->length - at < BLOCK ? l->length - at : BLOCK;
        load_keys(type, x, base + at * l->inner, l->inner, here, keys);
        for (int64_t k = 0; k < here; k++) {
            if (held == l->kept && (l->largest ? keys[k] <= heap[0].key : keys[k] >= heap[0].key)) continue;
            const place found = {keys[k], at + k};
            if (held < l->kept) {
                heap[held++] = found;
                for (int64_t i = held / 2 - 1; held == l->kept && i >= 0; i--) sift(l, heap, held, i);
            } else {
                heap[0] = found;
                sift(l, heap, held, 0);
            }
        }
    }
    for (; held > 1; held--) { /* the worst goes to the end */
        const place worst = heap[0];
        heap[0] = heap[held - 1];
        sift(l, heap, held - 1, 0);
        heap[held - 1] = worst;
    }
}

static void search_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const reduce_lines *l = &job->plan->l;
    place *const heap = job->plan->heaps + thread * l->kept;
    int64_t from, to;
    const size_t size = (size_t)cpu_number_bits(job->plan->type) / 8;
    const char *const x = job->args->tensors[REDUCE_X];
    char *const y = job->args->tensors[REDUCE_Y];
    cpu_team_share(l->outer * l->inner, thread, threads, &from, &to);
    for (int64_t line = from; line < to; line++) {
        const int64_t outer = line / l->inner, column = line % l->inner, base = outer * l->length * l->inner + column;
        search_line(l, job->plan->type, x, base, heap);
        for (int64_t k = 0; k < l->kept; k++) {
            const int64_t to_at = (outer * l->kept + k) * l->inner + column;
            memcpy(y + (size_t)to_at * size, x + (size_t)(base + heap[k].at * l->inner) * size, size);
            ((int64_t *)job->args->tensors[REDUCE_PLACES])[to_at] = heap[k].at;
        }
    }
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (reduce_goes_along(op)) {
        const reduce_lines l = reduce_lines_of(op);
        if (!l.searches || (double)l.kept * sizeof(place) * cpu_team_size() <= (double)op->workspace_limit)
            return SCOUT_OK;
        return scout_say(why, SCOUT_NO, "memory", "the best of a line do not fit into the workspace of all threads");
    }
    return scout_say(why, SCOUT_NO, "feature", "only running sums and searches are its work");
}

static void destroy(scout_plan *plan) { free(plan->heaps); }

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs;
    plan->l = reduce_lines_of(op);
    plan->type = op->input;
    if (!plan->l.searches) return SCOUT_OK;
    plan->heaps = calloc((size_t)cpu_team_size() * (size_t)plan->l.kept, sizeof *plan->heaps);
    if (!plan->heaps) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    cpu_job job = {plan, args};
    cpu_team_run(plan->l.searches ? search_share : run_share, &job);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"%s\", \"threads\": \"%s\"}", plan->l.searches ? "heap" : "running sums",
                    cpu_team_about());
}

const scout_candidate cpu_reduce_lines = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "cpu_lines",
    .about = "running sums and products and the largest of each line, by own loops",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int64", "int32", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
