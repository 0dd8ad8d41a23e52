/* Measuring one operation: the frame of its passes. Sets up the operation, its candidates and its tensors, and tells
 * the watcher what runs. Every choice is a function of the seed and of what was timed. */
#include "scout/measure/measure_internal.h"

#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const size_t arena_bytes = (size_t)64 << 20;

/* ---- telling the watcher ---- */

static double steady_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void measure_tell(measurement *m, const void *row, const char *candidate, const char *variant, const char *what,
                  double seconds) {
    const double now = steady_s();
    if (!m->watcher || !m->watcher->step) return;
    if (row == m->at_it && now + 0.5 * seconds < m->promised_s) return;
    m->at_it = row;
    m->promised_s = now + seconds;
    m->watcher->step(m->watcher->context, candidate, variant, what, seconds);
}

/* A step of its own each time: something was done since. */
void measure_tell_row(measure_row *row, const char *what, double seconds) {
    measurement *m = row->owner;
    m->at_it = NULL;
    measure_tell(m, row, row->candidate->name, row->variant, what, seconds);
}

/* Everything that runs foreign code tells its own name and time; left for this are the pauses in between. */
static void beat(void *context, double seconds) {
    measurement *m = context;
    (void)seconds;
    if (m->promised_s > steady_s() + 8) return;
    m->at_it = NULL;
    measure_tell(m, m, NULL, NULL, "time", 30);
}

static void playing(void *context, double seconds) {
    measurement *m = context;
    measure_tell(m, &m->clock, NULL, NULL, "time", seconds);
}

double measure_elapsed(const measurement *m) { return m->api->now(m->device) - m->started_s; }

void measure_spend(measurement *m, measure_phase on) {
    const double now_s = measure_elapsed(m);
    m->spent_s[on] += now_s - m->spent_until_s;
    m->spent_until_s = now_s;
}

bool measure_stopped(const measurement *m) { return m->answer != SCOUT_OK; }

void measure_stop(measurement *m, scout_answer answer, const scout_why *why) {
    if (measure_stopped(m)) return;
    m->answer = answer;
    m->why = *why;
}

/* ---- the whole ---- */

/* For one launch of whatever speed: 2 GFLOP/s and 0.2 GB/s are less than any device has. */
static double patience(const scout_op *op) {
    return fmin(15 + op->flops / 2e9 + (op->bytes_read + op->bytes_written) / 2e8, 600);
}

static double plateau(const measurement *m) {
    const ceilings *c = m->request->ceilings;
    if (c && c->plateau_bytes > 0) return c->plateau_bytes;
    const double cache = m->identity ? (double)m->identity->cache_bytes : 0;
    return cache > 0 ? 4 * cache : 256e6;
}

static void decide_all(measurement *m, scout_answer answer, const scout_why *why) {
    for (int k = 0; k < m->row_count; k++)
        if (!m->rows[k].decided) measure_rows_decide(&m->rows[k], answer, why);
}

/* The operation as candidates see it, and its rows. False: nothing can run, the rows say why. */
static bool open_operation(measurement *m) {
    const measure_request *r = m->request;
    const kind *k = kinds_find(r->operation->rec.kind);
    scout_why why = {.code = ""};
    const weights_counter counter = {m->api, m->device};
    m->opened = true;
    m->built = kinds_build(r->operation, r->workspace_limit, &m->arena, &m->op, &why) &&
               weights_make(r->operation, &m->op, 1, &counter, &m->arena, &m->weights, &why);
    m->made_s = m->api->now(m->device) - m->started_s;
    if (!m->built && m->op.kind == 0) m->op.kind = (uint32_t)r->operation->rec.kind;
    if (m->built && r->parts.count > 0) m->layout = parts_open(m->api, &m->op, &r->parts, m->ahead, &m->arena);
    m->parts = parts_use(m->layout);
    measure_spend(m, MEASURE_FILLING);
    measure_rows_list(m);
    measure_spend(m, MEASURE_LISTING);
    if (!m->built) {
        decide_all(m, SCOUT_NO, &why);
        return false;
    }
    m->tolerance.projection = k->tolerance(&m->op);
    m->tolerance.element = m->tolerance.projection + kind_in_parts(&m->op) + parts_tolerance(m->layout);
    m->specials = k->specials ? k->specials(&m->op) : 0;
    m->patience_s = patience(&m->op);
    return m->row_count > 0; /* a device without candidates of this kind: no tensors are needed */
}

/* Its tensors, at other places than in any pass before. */
static bool open_memory(measurement *m) {
    const measure_request *r = m->request;
    scout_why why = {.code = ""};
    scout_answer answer = SCOUT_NO;
    measure_tell(m, &m->op, NULL, NULL, "fill", 300);
    const double start = m->api->now(m->device);
    const bench_given given = {m->weights.tensor, m->weights.bytes};
    m->set = bench_set_new(m->api, m->device, &m->op, &r->regime, plateau(m), m->pass.seed, m->tolerance, &given,
                           &answer, &why);
    m->refresh_s = m->api->now(m->device) - start;
    measure_spend(m, MEASURE_FILLING);
    if (!m->set && answer == SCOUT_LOST) measure_stop(m, answer, &why);
    if (!m->set) decide_all(m, answer, &why);
    if (!m->set) return false;
    m->rotation_bytes = bench_set_rotation_bytes(m->set);
    m->copies = bench_set_copies(m->set);
    m->resident_bytes = bench_set_resident_bytes(m->set);
    if (r->ceilings)
        m->ceiling = ceilings_time_of(r->ceilings, operation_precision(r->operation), m->op.flops, m->op.bytes_read,
                                      m->op.bytes_written, m->resident_bytes, m->specials);
    return true;
}

/* What no later pass needs. A lost device is not touched any more: what it holds goes with the process. */
static void close_memory(measurement *m) {
    bench_set *const sets[] = {m->set, m->probe.set};
    for (int k = 0; k < 2; k++)
        if (sets[k] && m->answer == SCOUT_LOST) sets[k]->lost = true;
    measure_probe_close(&m->probe);
    for (int k = 0; k < m->row_count; k++) {
        measure_row *row = &m->rows[k];
        const bool stays = row->plan && row->timed && !row->decided && !row->lane.raced_out;
        if (stays && m->answer == SCOUT_OK)
            row->kept = bench_plan_keep(row->plan);
        else
            bench_plan_free(row->plan);
        row->plan = NULL;
    }
    bench_set_free(m->set);
    m->set = NULL;
}

/* Guarded: what is set between here and a failure lies in *m. */
static void run_guarded(measurement *m, void (*work)(measurement *m)) {
    if (guard_enter(&m->guard)) {
        work(m);
    } else {
        m->answer = SCOUT_NO_MEMORY;
        scout_say(&m->why, SCOUT_NO_MEMORY, "memory", "%.200s", m->guard.st.text);
    }
}

/* Set up once; later passes begin with what they have chosen. */
static bool set_up(measurement *m) {
    if (!m->opened && !open_operation(m)) return false;
    if (!m->built || m->row_count == 0) return false;
    m->parts = parts_use(m->layout);
    return open_memory(m);
}

static void pass_work(measurement *m) {
    if (set_up(m)) measure_pass_run(m);
}

measurement *measure_open(const scout_device_api *api, scout_device *device, const scout_identity *identity,
                          const measure_request *request, const measure_watcher *watcher) {
    measurement *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->api = api;
    m->device = device;
    m->identity = identity;
    m->request = request;
    m->watcher = watcher;
    m->baseline = -1;
    m->ceiling.seconds = NAN;
    m->on = (device_lanes){.api = api, .device = device, .context = m, .beat = beat, .play = playing};
    m->clock = device_lanes_clock(&m->on);
    guard_init(&m->guard);
    arena_init(&m->arena, &m->guard, arena_bytes);
    return m;
}

static void begin(measurement *m, const measure_pass *pass) {
    m->pass = *pass;
    m->started_s = m->api->now(m->device) - pass->waited_s;
    memset(m->spent_s, 0, sizeof m->spent_s);
    m->spent_s[MEASURE_WAITING] = m->spent_until_s = pass->waited_s;
    for (int k = 0; k < m->row_count; k++) {
        measure_row *row = &m->rows[k];
        row->timed = row->chosen = row->lane.raced_out = false; /* an earlier pass may choose what lost its race */
        row->fetch_s = NAN;
    }
}

/* What a device's clock says goes into every budget and every figure of where the time went. */
static void check_clock(measurement *m) {
    const double now_s = m->api->now(m->device);
    if (measure_stopped(m) || isfinite(now_s - m->started_s)) return;
    m->answer = scout_say(&m->why, SCOUT_FAILED, "error", "the device's clock says that it is %g s", now_s);
}

void measure_rest(measurement *m) {
    parts_use(m->layout);
    close_memory(m);
    parts_use(NULL);
}

json_t *measure_run(measurement *m, const measure_pass *pass, scout_answer *answer, scout_why *why) {
    if (m->set) measure_rest(m);
    begin(m, pass);
    check_clock(m);
    if (!measure_stopped(m)) run_guarded(m, pass_work);
    check_clock(m);
    *why = m->why;
    *answer = m->answer;
    json_t *result = m->answer == SCOUT_OK ? measure_json_result(m) : NULL;
    if (!result && m->answer == SCOUT_OK)
        *answer = scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    parts_use(NULL);
    return result;
}

static void ahead_work(measurement *m) {
    if (open_operation(m)) measure_pass_prepare(m);
}

bool measure_ahead(measurement *m, const measure_pass *pass) {
    m->ahead = true;
    begin(m, pass);
    run_guarded(m, ahead_work);
    parts_use(NULL);
    m->ahead = false;
    return m->answer == SCOUT_OK;
}

void measure_take(measurement *m, scout_device *device, const measure_watcher *watcher) {
    m->device = m->on.device = device;
    m->watcher = watcher;
    m->at_it = NULL;
    m->promised_s = 0;
}

void measure_close(measurement *m) {
    if (!m) return;
    parts_use(m->layout);
    close_memory(m);
    for (int k = 0; k < m->row_count; k++) {
        const measure_row *row = &m->rows[k];
        if (row->kept.plan && m->answer != SCOUT_LOST) scout_destroy(row->candidate, row->kept.plan);
    }
    parts_use(NULL);
    weights_free(&m->weights);
    arena_free(&m->arena);
    free(m);
}

/* ---- qualifying ---- */

/* As it would be timed, on all copies; or for a profiler, which shall see these launches and nothing else. */
static scout_answer run_unmeasured(measurement *m, measure_row *row, scout_why *why) {
    enum { TRIALS = 4 };
    double seconds[TRIALS];
    const timing_subject subject = measure_pass_subject(row);
    const uint32_t launches = m->request->launches;
    const bool marks = launches > 0 && SCOUT_HAS(m->api, profile) && m->api->profile;
    const uint32_t whole = bench_plan_whole(row->plan);
    if (launches == 0) return subject.run(subject.context, whole > TRIALS ? whole : TRIALS, TRIALS, seconds, why);
    if (marks) m->api->profile(m->device, 1);
    const scout_answer answer = subject.run(subject.context, launches, 1, seconds, why);
    if (marks) m->api->profile(m->device, 0);
    return answer;
}

static void qualify_work(measurement *m) {
    if (!set_up(m)) return;
    for (int k = 0; k < m->row_count && !measure_stopped(m); k++) {
        measure_row *row = &m->rows[k];
        if (row->decided) continue;
        row->status = ROW_OK;
        if (!measure_rows_prepare(row, true)) measure_stop(m, SCOUT_LOST, &row->why);
        if (measure_stopped(m) || !row->plan) continue;
        scout_why why = {.code = ""};
        const scout_answer answer = run_unmeasured(m, row, &why);
        if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
        if (answer != SCOUT_OK) measure_rows_decide(row, answer, &why);
        if (answer == SCOUT_OK) {
            measure_tell_row(row, "verify", m->patience_s);
            bench_verdict verdict = bench_plan_verify(row->plan);
            row->status = verdict.status;
            row->why = verdict.why;
            if (verdict.lost) measure_stop(m, SCOUT_LOST, &verdict.why);
        }
        if (measure_stopped(m)) continue;
        bench_plan_free(row->plan);
        row->plan = NULL;
    }
}

json_t *measure_qualify(const scout_device_api *api, scout_device *device, const measure_request *request,
                        const char *candidate, const measure_watcher *watcher, scout_answer *answer, scout_why *why) {
    const measure_pass pass = {.number = 1, .seed = 1, .budget_s = INFINITY};
    json_builder b = {NULL};
    json_t *result = NULL;
    status st;
    measurement *m = measure_open(api, device, NULL, request, watcher);
    *answer = scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    if (!m) return NULL;
    m->qualify = candidate;
    begin(m, &pass);
    run_guarded(m, qualify_work);
    if (m->answer == SCOUT_OK) {
        result = json_new_array(&b);
        for (int k = 0; k < m->row_count; k++) {
            const measure_row *row = &m->rows[k];
            if (request->launches > 0 || reason_status_bad(row->status))
                json_push(&b, result, measure_json_row(m, row, &b));
        }
        result = json_finish(&b, result, &st);
    }
    if (result || m->answer != SCOUT_OK) *answer = m->answer, *why = m->why;
    measure_close(m);
    return result;
}
