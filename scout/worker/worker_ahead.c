/* The pool of preparing threads. An announced job is read by the worker's own thread, prepared by one of the pool with
 * a device of its own, and taken by the worker's own thread again: only the plans' libraries see two threads at a time.
 */
#include "scout/worker/worker_jobs.h"

#include "common/clock.h"
#include "scout/input/weights.h"
#include "scout/kinds/kinds.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Threads, and cores of the machine for each of them; the thread that measures needs a core to itself, and libraries
 * have threads of their own. NICE: where cores are short all the same, the one that measures goes first. */
enum { THREADS = 8, CORES_EACH = 2, NICE = 10, MOST_ANNOUNCED = 80, PATIENCE_MS = 200, SPARE = 64 << 20 };

/* Beside its budget, for it keeps nothing waiting: so many seconds, more where few others wait for a thread, and on a
 * thread that is new to the libraries so many more. Of a short budget no more than these multiples. */
static const double beside_s = 0.3, beside_few_s = 1, beside_all_s = 15, beside_most = 3, first_s = 1, first_most = 10;

typedef enum stage { WAITING, UNDER_WAY, READY } stage;

typedef struct announced {
    struct worker_ahead *pool;
    json_t *body; /* owned, as what follows; for the worker's own thread alone */
    worker_request *request;
    struct measurement *measurement; /* NULL: not begun, or of no use */
    measure_pass pass;
    measure_watcher watcher;
    stage stage;
    bool again;    /* passes are withheld from it until it is prepared */
    bool fused;    /* a sequence, for which operations have made room */
    bool dear;     /* a library generates code for it, for a second or two */
    bool unwanted; /* its job came and was another one */
    bool told;     /* that it is ready */
    struct {       /* what its thread is at */
        char candidate[64], variant[256], what[64];
        double seconds;
    } step;
    uint64_t steps; /* how many there were */
    struct announced *next;
} announced;

struct worker_ahead {
    const scout_device_api *api;
    const scout_identity *identity;
    int32_t ordinal;
    cpu_set_t cores;       /* of the threads */
    pthread_mutex_t mutex; /* guards all below, and the stages and steps of what is announced */
    pthread_cond_t changed;
    announced *first; /* in the order of their announcement */
    int count;
    scout_device *devices[THREADS]; /* of the threads; they stay open as long as the pool, for plans lean on them */
    int opened;                     /* of these */
    int alive;                      /* threads */
    bool ended;
    bool asked, ready; /* the thread that measures, for what libraries have prepared; its own */
};

/* ---- whether ---- */

/* CEILING_SCOUT_AHEAD: so many threads and no more, 0: none; to see what they do to the figures. */
static int threads_allowed(void) {
    const char *text = getenv("CEILING_SCOUT_AHEAD");
    const long n = text ? strtol(text, NULL, 10) : THREADS;
    return n < 0 ? 0 : n < THREADS ? (int)n : THREADS;
}

static int threads_here(const worker *w) {
    const int cores = CPU_COUNT(&w->cores);
    const int most = threads_allowed(), n = cores / CORES_EACH > 1 ? cores / CORES_EACH : 1;
    return cores < 2 ? 0 : n < most ? n : most;
}

static bool has_plugins(const scout_device_api *api) {
    plugins_candidate *all = malloc(PLUGINS_MAX_CANDIDATES * sizeof *all);
    bool found = !all;
    const int n = all ? plugins_candidates(api, 0, all, PLUGINS_MAX_CANDIDATES) : 0;
    for (int k = 0; k < n; k++) found = found || all[k].plugin;
    free(all);
    return found;
}

int worker_ahead_threads(const worker *w) {
    const bool may = SCOUT_HAS(w->api, beside) && w->api->beside && threads_here(w) > 0 && !has_plugins(w->api);
    return may ? threads_here(w) : 0;
}

/* ---- the threads ---- */

static void note_step(void *context, const char *candidate, const char *variant, const char *what, double seconds) {
    announced *a = context;
    pthread_mutex_lock(&a->pool->mutex);
    snprintf(a->step.candidate, sizeof a->step.candidate, "%s", candidate ? candidate : "");
    snprintf(a->step.variant, sizeof a->step.variant, "%s", variant ? variant : "");
    snprintf(a->step.what, sizeof a->step.what, "%s", what ? what : "");
    a->step.seconds = seconds;
    a->steps++;
    pthread_cond_broadcast(&a->pool->changed);
    pthread_mutex_unlock(&a->pool->mutex);
}

/* What did not come to its end is closed by the thread that measures, as all the rest. */
static bool prepare(announced *a, scout_device *device) {
    const worker_ahead *p = a->pool;
    a->measurement = measure_open(p->api, device, p->identity, &a->request->measure, &a->watcher);
    return a->measurement && measure_ahead(a->measurement, &a->pass);
}

/* The first one, or what takes longest of those that are measured at about the same time: else that would be waited for
 * when all others are done. */
static announced *next_waiting(const worker_ahead *p) {
    announced *first = NULL;
    for (announced *a = p->first; a; a = a->next) {
        if (a->stage != WAITING || a->unwanted) continue;
        if (!first) first = a;
        if (first->again || first->dear) break;
        if (a->dear && a->fused == first->fused) return a;
    }
    return first;
}

static double beside_of(const worker_ahead *p, const announced *of) {
    int waiting = 1;
    for (const announced *a = p->first; a; a = a->next) waiting += a->stage == WAITING && !a->unwanted;
    const double seconds = fmax(beside_s, fmin(beside_all_s / waiting, beside_few_s));
    return fmin(seconds, beside_most * of->pass.budget_s);
}

/* In zeros, whatever is read from them as a place is one. */
static void *spare_of(const worker_ahead *p, scout_device *device) {
    void *memory = NULL;
    scout_why why;
    if (!SCOUT_HAS(p->api, load) || !p->api->load) return NULL;
    if (p->api->alloc(device, SPARE, &memory, &why) != SCOUT_OK) return NULL;
    if (p->api->fill(device, memory, SPARE, SCOUT_NONE, SCOUT_FILL_BYTE, 0, &why) == SCOUT_OK) return memory;
    p->api->release(device, memory);
    return NULL;
}

static void *work(void *context) {
    worker_ahead *p = context;
    scout_device *device = NULL;
    scout_why why;
    /* both of this thread alone, and of those that it starts */
    sched_setaffinity(0, sizeof p->cores, &p->cores);
    setpriority(PRIO_PROCESS, 0, NICE);
    if (p->api->open(p->ordinal, &device, &why) != SCOUT_OK) device = NULL;
    void *const spare = device ? spare_of(p, device) : NULL;
    bool used = false;
    pthread_mutex_lock(&p->mutex);
    if (device) p->devices[p->opened++] = device;
    while (device && !p->ended) {
        announced *a = next_waiting(p);
        if (!a) {
            pthread_cond_wait(&p->changed, &p->mutex);
            continue;
        }
        a->stage = UNDER_WAY;
        a->pass.start_s = beside_of(p, a);
        if (!used) a->pass.start_s += fmin(first_s, first_most * a->pass.budget_s);
        used = true;
        a->pass.spare = spare;
        a->pass.spare_bytes = SPARE;
        pthread_mutex_unlock(&p->mutex);
        const bool good = prepare(a, device);
        pthread_mutex_lock(&p->mutex);
        a->stage = READY;
        a->unwanted = a->unwanted || !good;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    if (spare) p->api->release(device, spare);
    pthread_mutex_lock(&p->mutex);
    p->alive--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* Where the thread that measures is bound to a core, all others. */
static cpu_set_t cores_beside(const worker *w) {
    cpu_set_t set = w->cores, own;
    if (sched_getaffinity(0, sizeof own, &own) == 0 && CPU_COUNT(&own) == 1) CPU_XOR(&set, &set, &own);
    return set;
}

static worker_ahead *pool_new(worker *w) {
    worker_ahead *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->api = w->api;
    p->identity = &w->identity;
    p->ordinal = w->ordinal;
    p->cores = cores_beside(w);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    pthread_mutex_lock(&p->mutex);
    for (int k = 0; k < threads_here(w); k++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, p) != 0) break;
        pthread_detach(thread);
        p->alive++;
    }
    pthread_mutex_unlock(&p->mutex);
    return p;
}

/* ---- announcements ---- */

static void drop(announced *a) {
    measure_close(a->measurement);
    worker_request_free(a->request);
    json_decref(a->body);
    free(a);
}

/* Takes out what no thread is at and nothing wants any more. The mutex is held. */
static announced *take_out(worker_ahead *p) {
    announced *out = NULL;
    for (announced **at = &p->first; *at;) {
        announced *a = *at;
        if (a->stage == UNDER_WAY || !a->unwanted) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        p->count--;
        a->next = out;
        out = a;
    }
    return out;
}

static void drop_all(announced *list) {
    while (list) {
        announced *next = list->next;
        drop(list);
        list = next;
    }
}

/* NULL: it is done when it comes. A weight's zeros are counted by the device, and what works on them has a handle of
 * one thread. A block mask is made on the device, which would disturb what is measured. */
static announced *read_announced(worker_ahead *p, json_t *body) {
    status ignored;
    announced *a = calloc(1, sizeof *a);
    if (a) a->request = worker_request_new(body, &ignored);
    const operation *o = a && a->request ? a->request->measure.operation : NULL;
    if (!o || weights_matter(o) || oprec_field(&o->rec, "block_mask")) {
        if (a) worker_request_free(a->request);
        free(a);
        return NULL;
    }
    a->pool = p;
    a->body = json_incref(body);
    a->again = json_is_true(json_object_get(body, "again"));
    a->fused = json_object_get(body, "parts") != NULL;
    a->dear = kinds_dear(&o->rec);
    a->pass = (measure_pass){.number = 1, .budget_s = worker_request_number(body, "budget_s", 20)};
    a->watcher = (measure_watcher){.context = a, .step = note_step};
    return a;
}

static bool announce(worker *w, json_t *body) {
    worker_ahead *const p = w->ahead;
    announced *const a = p && p->count < MOST_ANNOUNCED ? read_announced(p, body) : NULL;
    if (!a) return false;
    pthread_mutex_lock(&p->mutex);
    announced **end = &p->first;
    for (; *end; end = &(*end)->next)
        if (json_equal(json_object_get((*end)->body, "session"), json_object_get(body, "session")))
            (*end)->unwanted = true;
    if (a->again) {
        a->next = p->first;
        p->first = a;
    } else {
        *end = a;
    }
    p->count++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    return true;
}

void worker_ahead_hear(worker *w, const json_t *list) {
    if (json_array_size(list) == 0) return;
    if (!w->ahead && worker_ahead_threads(w) > 0) w->ahead = pool_new(w);
    if (!w->declined) w->declined = json_array();
    for (size_t k = 0; k < json_array_size(list); k++) {
        json_t *const body = json_array_get(list, k);
        if (!announce(w, body)) json_array_append(w->declined, json_object_get(body, "session"));
    }
}

json_t *worker_ahead_ready(worker *w) {
    worker_ahead *const p = w->ahead;
    json_t *const sessions = w->declined ? w->declined : json_array();
    w->declined = NULL;
    if (!p) return sessions;
    pthread_mutex_lock(&p->mutex);
    for (announced *a = p->first; a; a = a->next) {
        if ((a->stage != READY && p->alive > 0) || a->told || a->unwanted) continue;
        a->told = true;
        json_array_append(sessions, json_object_get(a->body, "session"));
    }
    pthread_mutex_unlock(&p->mutex);
    return sessions;
}

/* ---- taking ---- */

/* All that listing and preparing depend on; a budget that has changed meanwhile changes only how wide the search is. */
static bool is_same(const json_t *body, const json_t *was) {
    static const char *const keys[] = {"session", "operation", "regime", "exhaustive", "workspace_limit",
                                       "only",    "before",    "parts",  "exclusions"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const json_t *now = json_object_get(body, keys[k]), *then = json_object_get(was, keys[k]);
        if (now != then && !json_equal(now, then)) return false;
    }
    return true;
}

static announced *find(const worker_ahead *p, const json_t *body) {
    const json_t *session = json_object_get(body, "session");
    for (announced *a = p->first; a; a = a->next)
        if (!a->unwanted && json_equal(json_object_get(a->body, "session"), session)) return a;
    return NULL;
}

/* Each step of the thread's is told as this one's own: it is what is waited for. The mutex is held. */
static void wait_for(worker *w, const announced *a) {
    worker_ahead *p = a->pool;
    uint64_t told = 0;
    while (a->stage == UNDER_WAY) {
        if (a->steps == told) {
            pthread_cond_wait(&p->changed, &p->mutex);
            continue;
        }
        const announced seen = {.step = a->step};
        told = a->steps;
        pthread_mutex_unlock(&p->mutex);
        worker_step(w, seen.step.candidate[0] ? seen.step.candidate : NULL, seen.step.variant, seen.step.what,
                    seen.step.seconds);
        pthread_mutex_lock(&p->mutex);
    }
}

/* Libraries take their time to be ready for this thread, too: only when something needs them. The mutex is held. */
static bool is_ready(worker *w, const measure_request *request) {
    worker_ahead *p = w->ahead;
    scout_why why;
    if (request->parts.count == 0 && kinds_light(request->operation->rec.kind)) return true;
    if (p->asked) return p->ready;
    p->asked = true;
    pthread_mutex_unlock(&p->mutex);
    p->ready = w->api->beside(w->device, &why) == SCOUT_OK;
    pthread_mutex_lock(&p->mutex);
    return p->ready;
}

struct measurement *worker_ahead_take(worker *w, const json_t *body, worker_request **request, double *waited_s) {
    worker_ahead *p = w->ahead;
    struct measurement *m = NULL;
    status ignored;
    const double began_s = clock_seconds();
    *waited_s = 0;
    if (!p) return NULL;
    pthread_mutex_lock(&p->mutex);
    announced *a = find(p, body);
    if (a && is_same(body, a->body)) wait_for(w, a);
    if (a && a->stage == READY && !a->unwanted && is_same(body, a->body) && is_ready(w, &a->request->measure) &&
        worker_request_tell_ceilings(a->request, body, &ignored)) {
        m = a->measurement;
        *request = a->request;
        a->measurement = NULL;
        a->request = NULL;
        measure_take(m, w->device, &w->watcher);
    }
    if (a) a->unwanted = true;
    announced *out = take_out(p);
    pthread_mutex_unlock(&p->mutex);
    drop_all(out);
    *waited_s = clock_seconds() - began_s;
    return m;
}

/* ---- the end ---- */

bool worker_ahead_end(worker *w) {
    worker_ahead *p = w->ahead;
    struct timespec until;
    json_decref(w->declined);
    w->declined = NULL;
    if (!p) return true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&p->mutex);
    p->ended = true;
    pthread_cond_broadcast(&p->changed);
    int waited = 0;
    while (p->alive > 0 && waited == 0) waited = pthread_cond_timedwait(&p->changed, &p->mutex, &until);
    const bool gone = p->alive == 0;
    pthread_mutex_unlock(&p->mutex);
    if (!gone) return false;
    w->ahead = NULL;
    drop_all(p->first);
    for (int k = 0; k < p->opened; k++) p->api->close(p->devices[k]);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    free(p);
    return true;
}
