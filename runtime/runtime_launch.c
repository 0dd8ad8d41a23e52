/* The path of a launch, and packing. Nothing here allocates or locks once a lane is ready (runtime_lanes.c). */
#include "runtime/runtime_internal.h"

#include "common/dtype.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a launch is given ---- */

uint64_t runtime_alignment_of(const scout_run *run, uint32_t type) {
    const int bits = dtype_get((dtype)type)->bits;
    if (run->alignment > 1) return run->alignment;
    return bits > 8 ? (uint64_t)bits / 8 : 1;
}

/* Whether an output shares memory with another tensor: what is written would be read. */
static bool overlap(const scout_run_op *op, void *const *tensors, uint32_t output, uint32_t other) {
    const uintptr_t a = (uintptr_t)tensors[output], b = (uintptr_t)tensors[other];
    return output != other && a < b + op->op.tensors[other].bytes && b < a + op->op.tensors[output].bytes;
}

static int32_t check(const scout_run_op *op, void *const *tensors, uint32_t packs, scout_run_error *error) {
    for (uint32_t k = 0; k < op->op.tensor_count; k++) {
        const scout_tensor *t = &op->op.tensors[k];
        const uint64_t alignment = runtime_alignment_of(op->run, t->type);
        if (k + 1 == packs) continue;
        if (!tensors[k]) return runtime_say(error, SCOUT_RUN_INVALID, "%s: its data is NULL", t->name);
        if ((uintptr_t)tensors[k] & (alignment - 1))
            return runtime_say(error, SCOUT_RUN_INVALID, "%s: expected data that begins at a multiple of %llu bytes",
                               t->name, (unsigned long long)alignment);
    }
    for (uint32_t k = 0; k < op->op.tensor_count; k++)
        for (uint32_t n = 0; op->op.tensors[k].role == SCOUT_OUTPUT && n < op->op.tensor_count; n++)
            if (n + 1 != packs && overlap(op, tensors, k, n))
                return runtime_say(error, SCOUT_RUN_INVALID, "%s: expected memory of its own, it shares some with %s",
                                   op->op.tensors[k].name, op->op.tensors[n].name);
    return SCOUT_RUN_OK;
}

/* Libraries have handles for each thread, which cannot be made while a launch is captured. */
static scout_answer greet(const scout_run *run, scout_why *why) {
    static _Thread_local const scout_device *known;
    const scout_device_api *api = run->api;
    if (known == run->device || !SCOUT_HAS(api, beside) || !api->beside) return SCOUT_OK;
    const scout_answer answer = api->beside(run->device, why);
    if (answer == SCOUT_OK) known = run->device;
    return answer == SCOUT_NO ? SCOUT_OK : answer;
}

static runtime_way *way_of(const scout_run_op *op, const scout_run_weight *packed, runtime_why *why) {
    if (!packed) return runtime_op_plain(op, why);
    *why = packed->op->why;
    return packed->asked == op ? (runtime_way *)(uintptr_t)packed->way : NULL;
}

/* ---- launches ---- */

static scout_answer enqueue_launch(runtime_way *way, const runtime_lane *lane, void *const *tensors,
                                   const scout_run_op *op, const scout_run_weight *packed, void *stream,
                                   scout_why *why) {
    scout_plan *plan = atomic_load_explicit(&way->plans[lane - op->run->lanes], memory_order_relaxed);
    void *own[SCOUT_MAX_TENSORS];
    scout_args args = {sizeof args, tensors, lane->workspace, stream};
    if (packed) {
        memcpy(own, tensors, op->op.tensor_count * sizeof *own);
        own[way->needs.packs - 1] = packed->memory;
        args.tensors = own;
    }
    return way->candidate->launch(plan, &args, why);
}

static int32_t launch(runtime_way *way, runtime_why counted, void *const *tensors, const scout_run_op *op,
                      const scout_run_weight *packed, void *stream, scout_run_error *error) {
    scout_run *run = op->run;
    scout_why why;
    why.text[0] = 0;
    scout_answer answer = greet(run, &why);
    runtime_lane *lane = answer == SCOUT_OK ? runtime_lane_take(op, way, stream, &answer, &why) : NULL;
    if (!lane) return runtime_answer(run, answer, &why, "preparing a launch", error);
    answer = enqueue_launch(way, lane, tensors, op, packed, stream, &why);
    runtime_lane_give(lane, answer == SCOUT_OK ? counted : RUNTIME_WHYS);
    return answer == SCOUT_OK ? runtime_say(error, SCOUT_RUN_OK, "%s", "")
                              : runtime_answer(run, answer, &why, way->candidate->name, error);
}

static int32_t find_and_launch(const scout_run_op *op, void *const *tensors, const scout_run_weight *packed,
                               void *stream, bool checked, scout_run_error *error) {
    runtime_why counted;
    runtime_way *way = way_of(op, packed, &counted);
    if (!way)
        return runtime_say(error, SCOUT_RUN_INVALID,
                           packed ? "expected a weight that was packed for this very operation"
                                  : "expected a packed weight (scout_pack_weight): nothing here takes a plain one");
    if (packed) op = packed->op;
    const int32_t code = checked ? SCOUT_RUN_OK : check(op, tensors, packed ? way->needs.packs : 0, error);
    if (code != SCOUT_RUN_OK) return code;
    if (atomic_load_explicit(&op->run->lost, memory_order_relaxed))
        return runtime_say(error, SCOUT_RUN_LOST, "the device was lost before");
    return launch(way, counted, tensors, op, packed, stream, error);
}

/* What makes a plan, and what runs one, may start the thread's team. */
int32_t runtime_launch(const scout_run_op *op, void *const *tensors, const scout_run_weight *packed, void *stream,
                       scout_run_error *error) {
    const runtime_cores cores = runtime_cores_of(op->run);
    const int32_t code = find_and_launch(op, tensors, packed, stream, false, error);
    runtime_cores_restore(&cores);
    return code;
}

int32_t runtime_launch_checked(const scout_run_op *op, void *const *tensors, const scout_run_weight *packed,
                               void *stream, scout_run_error *error) {
    return find_and_launch(op, tensors, packed, stream, true, error);
}

int32_t scout_run_launch(const scout_run_op *op, void *const *tensors, int32_t count, const scout_run_weight *packed,
                         void *stream, scout_run_error *error) {
    if (count != (int32_t)op->op.tensor_count)
        return runtime_say(error, SCOUT_RUN_INVALID, "expected %u tensors, got %d", (unsigned)op->op.tensor_count,
                           (int)count);
    return runtime_launch(op, tensors, packed, stream, error);
}

/* ---- packing ---- */

typedef struct packing {
    const scout_run_op *op;
    runtime_way *way;
    scout_plan *plan;
    void *const *tensors;
    void *to;
} packing;

static scout_answer enqueue(void *context, uint32_t number, void *stream, scout_why *why) {
    const packing *p = context;
    const scout_candidate *c = p->way->candidate;
    (void)number;
    if (SCOUT_HAS(c, pack_tensors) && c->pack_tensors) return c->pack_tensors(p->plan, p->tensors, p->to, stream, why);
    return c->pack(p->plan, p->tensors[p->way->needs.packs - 1], p->to, stream, why);
}

/* On the device's own stream, and waited for. */
static scout_answer run_packing(packing *p, scout_why *why) {
    const scout_run *run = p->op->run;
    scout_sequence *sequence = NULL;
    double seconds;
    scout_answer answer = run->api->record(run->device, 0, 1, enqueue, p, &sequence, why);
    if (answer != SCOUT_OK) return answer;
    answer = run->api->run(run->device, sequence, 1, &seconds, why);
    if (answer != SCOUT_LOST) run->api->drop(run->device, sequence);
    return answer;
}

static scout_answer pack_into(scout_run_weight *w, void *const *tensors, scout_why *why) {
    scout_run *run = w->op->run;
    runtime_way *way = (runtime_way *)(uintptr_t)w->way;
    packing p = {.op = w->op, .way = way, .tensors = tensors};
    pthread_mutex_lock(&run->lock);
    scout_answer answer = run->api->alloc(run->device, w->bytes, &w->memory, why);
    p.to = w->memory;
    if (answer == SCOUT_OK && !way->spare) answer = runtime_way_prepare(w->op, way, &way->spare, why);
    p.plan = way->spare;
    if (answer == SCOUT_OK) answer = run_packing(&p, why);
    pthread_mutex_unlock(&run->lock);
    return answer;
}

/* Weights and what goes with them have to be there; all else is not looked at. */
static int32_t check_sides(const scout_run_op *op, void *const *tensors, scout_run_error *error) {
    for (uint32_t k = 0; k < op->op.tensor_count; k++) {
        const scout_tensor *t = &op->op.tensors[k];
        if ((t->role == SCOUT_WEIGHT || strcmp(t->name, "scales") == 0 || strcmp(t->name, "b_zero") == 0) &&
            (!tensors[k] || (uintptr_t)tensors[k] & (runtime_alignment_of(op->run, t->type) - 1)))
            return runtime_say(error, SCOUT_RUN_INVALID, "%s: expected data that begins at a multiple of %llu bytes",
                               t->name, (unsigned long long)runtime_alignment_of(op->run, t->type));
    }
    return SCOUT_RUN_OK;
}

static int32_t pack(scout_run_weight *w, void *const *tensors, scout_run_error *error) {
    scout_why why = {.code = ""};
    w->op = runtime_sparse_of(w->asked, tensors, error);
    if (!w->op) return SCOUT_RUN_INVALID;
    if (w->op->chosen.needs.packs == 0)
        return runtime_say(error, SCOUT_RUN_UNSUPPORTED, "%s %s takes the weight as it is: it is not packed",
                           w->op->chosen.candidate->name, w->op->chosen.variant);
    w->way = &w->op->chosen;
    w->bytes = w->way->needs.pack_bytes;
    const scout_answer answer = pack_into(w, tensors, &why);
    return answer == SCOUT_OK ? runtime_say(error, SCOUT_RUN_OK, "%s", "")
                              : runtime_answer(w->op->run, answer, &why, "packing a weight", error);
}

int32_t runtime_pack(const scout_run_op *op, void *const *tensors, scout_run_weight **packed, scout_run_error *error) {
    *packed = NULL;
    int32_t code = check_sides(op, tensors, error);
    if (code != SCOUT_RUN_OK) return code;
    scout_run_weight *w = calloc(1, sizeof *w);
    if (!w) return runtime_say(error, SCOUT_RUN_NO_MEMORY, "the host has no memory left");
    const runtime_cores cores = runtime_cores_of(op->run);
    w->asked = op;
    code = pack(w, tensors, error);
    runtime_cores_restore(&cores);
    if (code == SCOUT_RUN_OK)
        *packed = w;
    else
        scout_run_weight_free(w);
    return code;
}

int32_t scout_pack_weight(const scout_run_op *op, void *const *tensors, int32_t count, scout_run_weight **packed,
                          scout_run_error *error) {
    *packed = NULL;
    if (count != (int32_t)op->op.tensor_count)
        return runtime_say(error, SCOUT_RUN_INVALID, "expected %u tensors, got %d", (unsigned)op->op.tensor_count,
                           (int)count);
    return runtime_pack(op, tensors, packed, error);
}

uint64_t scout_run_weight_bytes(const scout_run_weight *weight) { return weight->bytes; }

void scout_run_weight_free(scout_run_weight *w) {
    if (!w) return;
    scout_run *run = w->asked->run;
    if (w->memory && !atomic_load(&run->lost)) run->api->release(run->device, w->memory);
    free(w);
}
