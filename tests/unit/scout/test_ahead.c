/* The pool of preparing threads, on a device whose plans are counted: what was announced is there when it is taken,
 * what has changed is not, and nothing is left behind. For a build with a thread sanitizer, too. */
#include "scout/measure/measure_internal.h"
#include "scout/worker/worker_jobs.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { JOBS = 24, VARIANTS = 6 };

static atomic_int live_plans, live_devices, made, measuring_made;
static atomic_bool held; /* plans wait until it is over */
static pthread_t measuring;
static atomic_int entered, begun[JOBS], begun_count; /* rows of what was prepared, one after another */

/* ---- the device ---- */

static scout_answer open_one(int32_t ordinal, scout_device **out, scout_why *why) {
    (void)ordinal, (void)why;
    *out = calloc(1, 1);
    live_devices++;
    return SCOUT_OK;
}

static void close_one(scout_device *d) {
    free(d);
    live_devices--;
}

static double now(scout_device *d) {
    (void)d;
    return 0;
}

static scout_answer beside(scout_device *d, scout_why *why) {
    (void)d, (void)why;
    return SCOUT_OK;
}

static atomic_int live_memory, noted;

static scout_answer alloc(scout_device *d, uint64_t bytes, void **out, scout_why *why) {
    (void)d, (void)why;
    *out = malloc(bytes);
    live_memory++;
    return SCOUT_OK;
}

static void release(scout_device *d, void *memory) {
    (void)d;
    free(memory);
    live_memory--;
}

static scout_answer fill(scout_device *d, void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed,
                         scout_why *why) {
    (void)d, (void)type, (void)how, (void)why;
    memset(to, (int)seed, bytes);
    return SCOUT_OK;
}

static void load(scout_device *d, scout_enqueue enqueue, void *context) {
    scout_why why;
    (void)enqueue(context, 0, d, &why);
}

/* ---- its candidate ---- */

static scout_answer supports(const scout_op *op, scout_device *d, scout_why *why) {
    (void)d;
    return op->shape[0] == 13 ? scout_say(why, SCOUT_NO, "shape", "not this one") : SCOUT_OK;
}

static scout_answer domain(const scout_op *op, scout_device *d, int exhaustive, scout_domain *out, scout_why *why) {
    (void)op, (void)d, (void)exhaustive, (void)why;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "algo", .count = VARIANTS, .values = {0, 1, 2, 3, 4, 5}};
    return SCOUT_OK;
}

/* The last one fails, as libraries do for want of memory: the thread that measures is to try it again. */
static scout_answer prepare(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    (void)d, (void)needs;
    entered++;
    while (held) usleep(100);
    if (values[0] == 0 && begun_count < JOBS) begun[begun_count++] = (int)op->shape[0];
    if (values[0] == VARIANTS - 1) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory");
    if (values[0] == VARIANTS - 2) return scout_say(why, SCOUT_NO, "feature", "no such algorithm");
    *plan = malloc(1);
    live_plans++;
    made++;
    measuring_made += pthread_equal(pthread_self(), measuring) != 0;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)plan;
    for (int k = 0; k < 3; k++) noted += args->tensors[k] != NULL && args->stream != NULL;
    return scout_say(why, SCOUT_FAILED, "error", "on purpose");
}

static void destroy(scout_plan *plan) {
    free(plan);
    live_plans--;
}

static const char *const precisions[] = {"fp32", NULL};
static const scout_candidate candidate = {.size = sizeof candidate,
                                          .kind = SCOUT_GEMM,
                                          .flags = SCOUT_BASELINE,
                                          .name = "counted",
                                          .precisions = precisions,
                                          .supports = supports,
                                          .domain = domain,
                                          .prepare = prepare,
                                          .launch = launch,
                                          .destroy = destroy};
static const scout_candidate *const candidates[] = {&candidate};
static scout_device_api api = {.size = sizeof api,
                               .name = "counted",
                               .open = open_one,
                               .close = close_one,
                               .now = now,
                               .beside = beside,
                               .alloc = alloc,
                               .release = release,
                               .fill = fill,
                               .candidate_count = 1,
                               .candidates = candidates};

/* ---- the worker ---- */

static worker w;

static void begin(void) {
    scout_why why;
    w = (worker){.out = -1, .gone = true, .api = &api};
    for (int k = 0; k < 16; k++) CPU_SET(k, &w.cores); /* whatever machine this is */
    unsetenv("CEILING_SCOUT_AHEAD");
    measuring = pthread_self();
    made = measuring_made = 0;
    open_one(0, &w.device, &why);
}

static void end(void) {
    int times = 1; /* as other work lets them */
    while (times < 100 && !worker_ahead_end(&w)) times++;
    UNIT_CHECK(times < 100);
    close_one(w.device);
    UNIT_INT(live_plans, 0);
    UNIT_INT(live_devices, 0);
    UNIT_INT(live_memory, 0);
    UNIT_INT(measuring_made, 0);
}

static json_t *body_of(int session, int rows, double sparsity, const char *activation) {
    char shape[32];
    guard g;
    arena a;
    operation_list list;
    json_builder b = {0};
    guard_init(&g);
    arena_init(&a, &g, (size_t)1 << 20);
    snprintf(shape, sizeof shape, "%d,64,64", rows);
    operation_from_words("gemm", shape, "fp32", sparsity, NULL, &a, &list);
    if (activation) oprec_set_text(&list.items[0].rec, "activation", activation);
    json_t *to = json_pack("{s:s, s:i, s:i, s:f, s:s, s:[], s:o}", "what", "measure", "session", session, "pass", 1,
                           "budget_s", 5.0, "regime", "sustained-model-graph", "exclusions", "operation",
                           operation_to_json(&list.items[0], &b));
    UNIT_CHECK(to != NULL);
    operation_list_free(&list);
    arena_free(&a);
    return to;
}

static json_t *body(int session, int rows, double sparsity) { return body_of(session, rows, sparsity, NULL); }

static void announce(json_t *one) {
    json_t *list = json_array();
    json_array_append(list, one);
    worker_ahead_hear(&w, list);
    json_decref(list);
}

static struct measurement *take(const json_t *job, worker_request **request) {
    double waited_s = -1;
    struct measurement *m = worker_ahead_take(&w, job, request, &waited_s);
    UNIT_CHECK(waited_s >= 0);
    return m;
}

static void give_back(struct measurement *m, worker_request *request) {
    measure_close(m);
    worker_request_free(request);
}

/* ---- */

static void what_is_announced_is_prepared(void) {
    json_t *jobs[JOBS];
    int taken = 0;
    begin();
    held = true; /* so that some of them wait, and one is under way */
    for (int k = 0; k < JOBS; k++) announce(jobs[k] = body(k, k + 1, 0));
    while (live_devices == 1) usleep(100);
    usleep(10000);
    held = false;
    for (int k = 0; k < JOBS; k++) {
        worker_request *request = NULL;
        struct measurement *m = take(jobs[k], &request);
        json_decref(jobs[k]);
        if (!m) continue; /* it was not begun: its job does it */
        taken++;
        if (m->op.shape[0] == 13) {
            UNIT_INT(m->row_count, 1);
            UNIT_TEXT(m->rows[0].why.code, "shape");
        } else {
            UNIT_INT(m->row_count, VARIANTS);
            for (int r = 0; r < VARIANTS; r++) {
                UNIT_CHECK((m->rows[r].kept.plan != NULL) == (r < VARIANTS - 2));
                UNIT_CHECK(m->rows[r].decided == (r == VARIANTS - 2));
            }
        }
        UNIT_CHECK(m->device == w.device && m->watcher == &w.watcher && m->request == &request->measure);
        give_back(m, request);
    }
    UNIT_CHECK(taken > 0 && made > 0);
    end();
}

static void what_has_changed_is_not_taken(void) {
    worker_request *request = NULL;
    json_t *job = body(1, 4, 0);
    begin();
    announce(job);
    while (made < VARIANTS - 2) usleep(100);
    json_t *changed = json_deep_copy(job);
    json_array_append_new(json_object_get(changed, "exclusions"), json_pack("{s:s}", "name", "counted"));
    UNIT_CHECK(take(changed, &request) == NULL && request == NULL);
    UNIT_CHECK(take(job, &request) == NULL); /* and it is not kept for another time */
    json_decref(changed);
    json_decref(job);
    end();
}

static void another_budget_is_no_change(void) {
    worker_request *request = NULL;
    json_t *job = body(1, 4, 0);
    begin();
    announce(job);
    while (made < VARIANTS - 2) usleep(100);
    json_t *changed = json_deep_copy(job);
    json_object_set_new(changed, "budget_s", json_real(1));
    struct measurement *m = take(changed, &request);
    if (UNIT_CHECK(m != NULL)) give_back(m, request);
    json_decref(changed);
    json_decref(job);
    end();
}

static void what_nobody_takes_is_given_back(void) {
    begin();
    for (int k = 0; k < JOBS; k++) {
        json_t *job = body(k, k + 1, 0);
        announce(job);
        json_decref(job);
    }
    end();
}

static void sparse_weights_are_left_to_the_job(void) {
    worker_request *request = NULL;
    json_t *job = body(1, 64, 0.5), *other = body(2, 4, 0);
    begin();
    announce(job);
    announce(other);
    while (made < VARIANTS - 2) usleep(100); /* the other one's */
    UNIT_CHECK(take(job, &request) == NULL);
    json_decref(job);
    json_decref(other);
    end();
}

/* The list of sessions, until it has so many. */
static json_t *ready(size_t wanted) {
    json_t *all = json_array();
    for (int k = 0; k < 100000 && json_array_size(all) < wanted; k++) {
        json_t *more = worker_ahead_ready(&w);
        json_array_extend(all, more);
        json_decref(more);
        usleep(100);
    }
    return all;
}

static void it_says_once_what_is_ready(void) {
    json_t *job = body(7, 4, 0), *sparse = body(8, 64, 0.5);
    begin();
    held = true;
    announce(job);
    announce(sparse); /* left to its job: there is nothing to wait for */
    json_t *first = ready(1);
    UNIT_INT(json_integer_value(json_array_get(first, 0)), 8);
    held = false;
    json_t *second = ready(1);
    UNIT_INT(json_integer_value(json_array_get(second, 0)), 7);
    json_t *rest = worker_ahead_ready(&w);
    UNIT_INT(json_array_size(rest), 0);
    json_t *const all[] = {job, sparse, first, second, rest};
    for (int k = 0; k < 5; k++) json_decref(all[k]);
    end();
}

/* The one for which code is generated goes before what came before it, but for what is under way; so does what is asked
 * again, before both. */
static void what_takes_longest_is_prepared_first(void) {
    json_t *jobs[] = {body(1, 1, 0), body(2, 2, 0), body_of(3, 3, 0, "gelu"), body_of(4, 4, 0, "gelu"), body(5, 5, 0)};
    static const int order[] = {1, 5, 3, 4, 2};
    json_object_set_new(jobs[4], "again", json_true());
    begin();
    setenv("CEILING_SCOUT_AHEAD", "1", 1);
    held = true;
    begun_count = entered = 0;
    announce(jobs[0]);
    while (entered == 0) usleep(100); /* until it is under way */
    for (int k = 1; k < 5; k++) announce(jobs[k]);
    held = false;
    json_decref(ready(5));
    if (UNIT_CHECK(begun_count == 5))
        for (int k = 0; k < 5; k++) UNIT_INT(begun[k], order[k]);
    for (int k = 0; k < 5; k++) json_decref(jobs[k]);
    end();
}

/* Each plan's launch is noted once, on memory that is there; what it answers changes nothing. */
static void kernels_are_loaded_ahead(void) {
    worker_request *request = NULL;
    json_t *job = body(1, 4, 0);
    begin();
    api.load = load;
    noted = 0;
    announce(job);
    json_decref(ready(1));
    UNIT_INT(noted, 3 * (VARIANTS - 2));
    struct measurement *m = take(job, &request);
    if (UNIT_CHECK(m != NULL)) {
        UNIT_CHECK(m->rows[0].kept.plan && !m->rows[0].decided);
        give_back(m, request);
    }
    json_decref(job);
    end();
    api.load = NULL;
}

static void a_device_without_is_never_shared(void) {
    begin();
    UNIT_CHECK(worker_ahead_threads(&w) > 0);
    api.beside = NULL;
    UNIT_INT(worker_ahead_threads(&w), 0);
    api.beside = beside;
    CPU_ZERO(&w.cores);
    CPU_SET(0, &w.cores);
    UNIT_INT(worker_ahead_threads(&w), 0); /* the one core is the measuring thread's */
    end();
}

int main(void) {
    UNIT_RUN(what_is_announced_is_prepared);
    UNIT_RUN(it_says_once_what_is_ready);
    UNIT_RUN(what_takes_longest_is_prepared_first);
    UNIT_RUN(kernels_are_loaded_ahead);
    UNIT_RUN(what_has_changed_is_not_taken);
    UNIT_RUN(another_budget_is_no_change);
    UNIT_RUN(what_nobody_takes_is_given_back);
    UNIT_RUN(sparse_weights_are_left_to_the_job);
    UNIT_RUN(a_device_without_is_never_shared);
    return unit_end();
}
