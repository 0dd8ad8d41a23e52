/* Lanes: what one launch at a time has to itself. A launch takes one by an exchange and never waits: where all that
 * are ready are taken, another one is made, under the run's lock. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

/* ---- ready ones ---- */

/* Threads begin at different ones: their stacks lie some pages apart. */
static int first_of(int count) {
    const char here = 0;
    const uintptr_t page = (uintptr_t)&here >> 12;
    return count > 1 ? (int)((page ^ page >> 4 ^ page >> 8 ^ page >> 12) % (unsigned)count) : 0;
}

static bool taken(runtime_lane *lane) { return atomic_exchange_explicit(&lane->busy, 1, memory_order_acquire) == 0; }

static runtime_lane *take_ready(scout_run *run, const runtime_way *way, const void *stream) {
    const int count = atomic_load_explicit(&run->lane_count, memory_order_acquire), first = first_of(count);
    for (int k = 0; k < count; k++) {
        const int at = first + k < count ? first + k : first + k - count;
        runtime_lane *lane = &run->lanes[at];
        if (lane->stream == stream && atomic_load_explicit(&way->plans[at], memory_order_acquire) && taken(lane))
            return lane;
    }
    return NULL;
}

/* ---- making them: under the lock ---- */

static runtime_lane *take_any(scout_run *run, void *stream) {
    const int count = atomic_load(&run->lane_count);
    for (int k = 0; k < count; k++)
        if (run->lanes[k].stream == stream && taken(&run->lanes[k])) return &run->lanes[k];
    if (count == RUNTIME_LANES) return NULL;
    runtime_lane *lane = &run->lanes[count];
    lane->stream = stream;
    (void)taken(lane);
    atomic_store(&run->lane_count, count + 1);
    return lane;
}

/* One that was too small stays until the end: the device may still be at work in it, or a graph hold it. Sizes double,
 * so all that stay are no larger than the one in use. */
static scout_answer need_workspace(scout_run *run, runtime_lane *lane, uint64_t bytes, scout_why *why) {
    uint64_t size = 1 << 16;
    void *memory = NULL;
    if (bytes <= lane->workspace_bytes) return SCOUT_OK;
    while (size < bytes) size *= 2;
    if (lane->workspace) {
        void **grown = realloc(run->retired, (run->retired_count + 1) * sizeof *grown);
        if (!grown) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
        run->retired = grown;
    }
    const scout_answer answer = run->api->alloc(run->device, size, &memory, why);
    if (answer != SCOUT_OK) return answer;
    if (lane->workspace) run->retired[run->retired_count++] = lane->workspace;
    lane->workspace = memory;
    lane->workspace_bytes = size;
    return SCOUT_OK;
}

static scout_answer make_ready(const scout_run_op *op, runtime_way *way, runtime_lane *lane, scout_why *why) {
    const int at = (int)(lane - op->run->lanes);
    scout_plan *plan = atomic_load(&way->plans[at]);
    scout_answer answer = need_workspace(op->run, lane, way->needs.workspace_bytes, why);
    if (answer != SCOUT_OK || plan) return answer;
    plan = way->spare;
    way->spare = NULL;
    if (!plan) answer = runtime_way_prepare(op, way, &plan, why);
    if (answer == SCOUT_OK) atomic_store_explicit(&way->plans[at], plan, memory_order_release);
    return answer;
}

static runtime_lane *make(const scout_run_op *op, runtime_way *way, void *stream, scout_answer *answer,
                          scout_why *why) {
    scout_run *run = op->run;
    pthread_mutex_lock(&run->lock);
    runtime_lane *lane = take_any(run, stream);
    *answer = lane ? make_ready(op, way, lane, why)
                   : scout_say(why, SCOUT_FAILED, "limit", "more than %d launches at once and streams", RUNTIME_LANES);
    pthread_mutex_unlock(&run->lock);
    if (*answer == SCOUT_OK || !lane) return lane;
    atomic_store_explicit(&lane->busy, 0, memory_order_release);
    return NULL;
}

runtime_lane *runtime_lane_take(const scout_run_op *op, runtime_way *way, void *stream, scout_answer *answer,
                                scout_why *why) {
    runtime_lane *lane = take_ready(op->run, way, stream);
    *answer = SCOUT_OK;
    return lane ? lane : make(op, way, stream, answer, why);
}

void runtime_lane_give(runtime_lane *lane, runtime_why counted) {
    if (counted < RUNTIME_WHYS) { /* only this launch writes it now */
        const uint64_t before = atomic_load_explicit(&lane->counts[counted], memory_order_relaxed);
        atomic_store_explicit(&lane->counts[counted], before + 1, memory_order_relaxed);
    }
    atomic_store_explicit(&lane->busy, 0, memory_order_release);
}

void runtime_lanes_free(scout_run *run) {
    const bool lost = atomic_load(&run->lost) != 0;
    for (int k = 0; k < RUNTIME_LANES && !lost; k++)
        if (run->lanes[k].workspace) run->api->release(run->device, run->lanes[k].workspace);
    for (size_t k = 0; k < run->retired_count && !lost; k++) run->api->release(run->device, run->retired[k]);
    free(run->retired);
}
