/* Launches from many threads on many streams of a made-up device, whose plans and workspaces tell when two launches
 * have them at once. For a build with a thread sanitizer, too. What a ready launch may not do (allocate, lock) is
 * counted where the linker leads these calls. */
#include "runtime/runtime_internal.h"
#include "tests/unit/runtime/run_fixture.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

enum { THREADS = 8, STREAMS = 4, LAUNCHES = 10000, ASKING = 64, WORKSPACE = 4096, VARIANTS = 4 };

/* ---- what is counted ---- */

static _Thread_local int allocations, locks;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

void *__wrap_malloc(size_t size) {
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    allocations++;
    return __real_realloc(memory, size);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock) {
    locks++;
    return __real_pthread_mutex_lock(lock);
}

/* ---- the device ---- */

struct scout_device {
    int open;
};

struct scout_plan {
    atomic_int busy;
    int64_t variant;
    float add;
};

static atomic_int prepared, live_plans, live_memory, shared;
static atomic_int next_answer; /* of launches */

/* Of a lost device nothing is released: what was made is still known here, so that no leak checker takes it for lost.
 */
static _Atomic(void *) remembered[64];
static atomic_int remembered_count;

static void remember(void *what) { atomic_store(&remembered[remembered_count++ % 64], what); }

static int32_t count_devices(scout_why *why) {
    (void)why;
    return 1;
}

/* It starts no team of threads, whose locks a sanitizer does not see. */
static const scout_identity made_up = {.size = sizeof(scout_identity),
                                       .name = "made up",
                                       .capability = "1.0",
                                       .driver = "1.0",
                                       .units = 1,
                                       .memory_bytes = 1 << 30};

static scout_answer identify(int32_t ordinal, scout_identity *out, scout_why *why) {
    (void)ordinal, (void)why;
    *out = made_up;
    return SCOUT_OK;
}

static scout_answer open_fake(int32_t ordinal, scout_device **out, scout_why *why) {
    (void)ordinal, (void)why;
    *out = calloc(1, sizeof **out);
    remember(*out);
    return SCOUT_OK;
}

static void close_fake(scout_device *device) { free(device); }

static scout_answer alloc(scout_device *device, uint64_t bytes, void **out, scout_why *why) {
    (void)device, (void)why;
    live_memory++;
    *out = aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (!*out) return SCOUT_NO_MEMORY;
    remember(*out);
    memset(*out, 0, bytes);
    return SCOUT_OK;
}

static void release(scout_device *device, void *memory) {
    (void)device;
    live_memory--;
    free(memory);
}

/* ---- the candidate: c[0] = a[0] + b[0] + what the plan adds ---- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)op, (void)device, (void)why;
    return SCOUT_OK;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    snprintf(out->parameters[0].name, sizeof out->parameters[0].name, "algo");
    out->parameters[0].count = VARIANTS;
    for (int k = 0; k < VARIANTS; k++) out->parameters[0].values[k] = k;
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)why;
    prepared++;
    live_plans++;
    remember(*plan);
    (*plan)->variant = values[0];
    (*plan)->add = (float)values[0] * 100;
    needs->workspace_bytes = (uint64_t)WORKSPACE * (uint64_t)op->shape[0];
    return SCOUT_OK;
}

static void destroy(scout_plan *plan) {
    (void)plan;
    live_plans--;
}

/* The workspace knows its stream, and whether another launch has it. */
static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void **stream = args->workspace;
    atomic_int *taken = (atomic_int *)(void *)(stream + 1);
    const int answer = next_answer;
    if (atomic_exchange(&plan->busy, 1) != 0 || atomic_exchange(taken, 1) != 0) shared++;
    if (*stream && *stream != args->stream) shared++;
    *stream = args->stream;
    *(float *)args->tensors[2] = *(float *)args->tensors[0] + *(float *)args->tensors[1] + plan->add;
    atomic_store(taken, 0);
    atomic_store(&plan->busy, 0);
    return answer == SCOUT_OK ? SCOUT_OK : scout_say(why, (scout_answer)answer, "error", "made up");
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"library\": \"onednn\", \"algo\": \"42ff0%d\"}",
                    (int)(plan->variant + 2) % VARIANTS);
}

static const scout_candidate fake = {.size = sizeof fake,
                                     .kind = SCOUT_GEMM,
                                     .flags = SCOUT_BASELINE,
                                     .name = "fake",
                                     .supports = supports,
                                     .domain = domain,
                                     .prepare = prepare,
                                     .launch = launch,
                                     .describe = describe,
                                     .destroy = destroy,
                                     .plan_bytes = sizeof(scout_plan)};
static const scout_candidate *const candidates[] = {&fake};
static const scout_device_api api = {.size = sizeof api,
                                     .name = "fake",
                                     .count = count_devices,
                                     .identify = identify,
                                     .open = open_fake,
                                     .close = close_fake,
                                     .alloc = alloc,
                                     .release = release,
                                     .candidate_count = 1,
                                     .candidates = candidates};

/* ---- threads ---- */

static scout_run *run;

static void begin(const char *table, run_said *said) {
    scout_run_options options = {.size = sizeof options, .table = table, .say = said ? run_say : NULL, .context = said};
    scout_run_error error;
    prepared = shared = next_answer = 0;
    if (runtime_open_on(&run, &api, 0, &options, &error) != SCOUT_RUN_OK) abort();
}

static void end(void) {
    scout_run_close(run);
    UNIT_INT(live_plans, 0);
    UNIT_INT(live_memory, 0);
}

typedef struct worker {
    pthread_t id;
    float *data;                                                  /* three tensors, 256 bytes apart */
    int number, launches, wrong, bad, making, allocations, locks; /* making: what the first half allocated */
    int64_t rows;
} worker;

static int32_t launch_once(worker *w, int64_t rows, void *stream, scout_run_error *error) {
    const int64_t dims[2] = {rows, 4};
    const int64_t square[2] = {4, 4};
    const scout_run_tensor a = scout_run_dense(w->data, SCOUT_RUN_FP32, 2, dims),
                           b = scout_run_dense(w->data + 64, SCOUT_RUN_FP32, 2, square),
                           c = scout_run_dense(w->data + 128, SCOUT_RUN_FP32, 2, dims);
    return scout_run_gemm(run, &a, &b, &c, NULL, stream, error);
}

static void *work(void *context) {
    static int streams[STREAMS];
    worker *w = context;
    scout_run_error error;
    for (int k = 0; k < w->launches; k++) {
        w->data[0] = (float)k, w->data[64] = (float)w->number, w->data[128] = -1;
        const int64_t rows = w->rows ? w->rows : 1 + k % 4;
        if (k == w->launches / 2) w->making = w->allocations = allocations, w->locks = locks;
        if (launch_once(w, rows, &streams[(k / 4) % STREAMS], &error) != SCOUT_RUN_OK) w->bad++;
        if (w->data[128] != (float)(k + w->number)) w->wrong++;
    }
    w->allocations = allocations - w->allocations, w->locks = locks - w->locks;
    return NULL;
}

static void all_at_once(worker *workers, int count, int launches, int64_t rows) {
    int wrong = 0, bad = 0;
    for (int k = 0; k < count; k++) {
        workers[k] = (worker){.number = k, .launches = launches, .rows = rows, .data = aligned_alloc(256, 1024)};
        if (!workers[k].data || pthread_create(&workers[k].id, NULL, work, &workers[k]) != 0) abort();
    }
    for (int k = 0; k < count; k++) {
        pthread_join(workers[k].id, NULL);
        free(workers[k].data);
        wrong += workers[k].wrong, bad += workers[k].bad;
    }
    UNIT_INT(wrong, 0);
    UNIT_INT(bad, 0);
    UNIT_INT(shared, 0);
}

static void threads_and_streams_share_nothing(void) {
    worker workers[THREADS];
    scout_run_counts counts;
    begin(NULL, NULL);
    all_at_once(workers, THREADS, LAUNCHES, 0);
    scout_run_count(run, &counts);
    UNIT_INT(counts.unlisted, THREADS * LAUNCHES);
    UNIT_CHECK(prepared <= 4 * THREADS * STREAMS);
    end();
}

/* One thread: what it launched before needs nothing more. */
static void a_ready_launch_neither_allocates_nor_locks(void) {
    worker one;
    begin(NULL, NULL);
    all_at_once(&one, 1, 64, 0);
    UNIT_CHECK(one.making > 0);
    UNIT_INT(one.allocations, 0);
    UNIT_INT(one.locks, 0);
    UNIT_INT(prepared, 4 * STREAMS);
    end();
}

static void one_shape_that_many_ask_for_is_one_operation(void) {
    worker workers[ASKING];
    run_said said = {0};
    begin(run_table_of(&made_up, ""), &said);
    all_at_once(workers, ASKING, 1, 3);
    UNIT_CHECK(run->ops && !run->ops->next);
    UNIT_INT(said.lines, 1);
    end();
}

/* ---- what fails ---- */

static void a_launch_that_fails_and_a_device_that_is_lost(void) {
    worker w = {.data = aligned_alloc(256, 1024)};
    scout_run_error error;
    scout_run_counts counts;
    begin(NULL, NULL);
    if (!w.data) abort();
    UNIT_INT(launch_once(&w, 1, NULL, &error), SCOUT_RUN_OK);
    next_answer = SCOUT_FAILED;
    UNIT_INT(launch_once(&w, 1, NULL, &error), SCOUT_RUN_FAILED);
    UNIT_TEXT(error.text, "fake: made up");
    next_answer = SCOUT_OK;
    UNIT_INT(launch_once(&w, 1, NULL, &error), SCOUT_RUN_OK);
    w.data[128] = -1;
    UNIT_INT(launch_once(&(worker){.data = (float *)(void *)((char *)w.data + 16)}, 1, NULL, &error),
             SCOUT_RUN_INVALID);
    UNIT_TEXT(error.text, "a: expected data that begins at a multiple of 256 bytes");
    scout_run_count(run, &counts);
    UNIT_INT(counts.unlisted, 2);
    end();
    begin(NULL, NULL);
    next_answer = SCOUT_LOST;
    UNIT_INT(launch_once(&w, 1, NULL, &error), SCOUT_RUN_LOST);
    next_answer = SCOUT_OK;
    UNIT_INT(launch_once(&w, 1, NULL, &error), SCOUT_RUN_LOST);
    UNIT_CHECK(w.data[128] != -1);
    const int plans = live_plans;
    scout_run_close(run); /* nothing on it is released any more */
    UNIT_INT(live_plans, plans);
    live_plans = live_memory = 0;
    free(w.data);
}

/* An algorithm is the one with the table's bytes, whatever its rank is in this process. */
static void an_algorithm_is_found_by_its_bytes(void) {
    static const char key[] = "gemm;shape=2,4,4;layout=nn;type=fp32";
    char entry[2048];
    const scout_run_op *op;
    scout_run_op_info info = {.size = sizeof info};
    scout_run_error error;
    static const struct {
        const char *algo, *variant;
        int listed;
    } rows[] = {{"42ff01", "algo=3", 1}, {"42ff03", "algo=1", 1}, {"42ff09", "algo=0", 0}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const char *made = run_entry(key, "tuned", "fake", "algo=1", NULL);
        snprintf(entry, sizeof entry, "%.*s, \"algo\": \"%s\"}", (int)strlen(made) - 1, made, rows[k].algo);
        begin(run_table_of(&made_up, entry), NULL);
        UNIT_TEXT(scout_run_table_note(run), "");
        UNIT_INT(scout_run_find(run, key, &op, &error), SCOUT_RUN_OK);
        scout_run_op_describe(op, &info);
        UNIT_TEXT(info.variant, rows[k].variant);
        UNIT_INT(info.listed, rows[k].listed);
        UNIT_CHECK((info.note[0] == 0) == (rows[k].listed == 1));
        end();
    }
}

int main(void) {
    UNIT_RUN(a_ready_launch_neither_allocates_nor_locks);
    UNIT_RUN(threads_and_streams_share_nothing);
    UNIT_RUN(one_shape_that_many_ask_for_is_one_operation);
    UNIT_RUN(a_launch_that_fails_and_a_device_that_is_lost);
    UNIT_RUN(an_algorithm_is_found_by_its_bytes);
    return unit_end();
}
