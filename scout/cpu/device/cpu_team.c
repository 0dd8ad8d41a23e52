/* One team of threads for everything that computes here; cpu_team.h says why it is libgomp's. */
#include "scout/cpu/device/cpu_team.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/device/libraries.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As documented in libgomp's manual, "The libgomp ABI"; unchanged since GCC 4.9. */
typedef void gomp_parallel_fn(void (*work)(void *), void *data, unsigned threads, unsigned flags);
typedef int gomp_number_fn(void);
typedef void gomp_set_fn(int count);

/* Written once by start_once, read afterwards. A process has one runtime of threads, so this is one per process. */
static struct {
    gomp_parallel_fn *parallel;
    gomp_number_fn *number, *count, *most; /* most and set: threads of regions that do not say how many */
    gomp_set_fn *set;
    int size;
    bool pinned;
    char about[160];
    char library[256];
} team;
static pthread_once_t team_prepared = PTHREAD_ONCE_INIT;
static pthread_once_t team_once = PTHREAD_ONCE_INIT;
static _Thread_local bool is_alone;

/* The leak checker of gcc 12 and clang 14 crashes on thread-local memory of libraries opened at run time; only builds
 * that have the checker have this function, which it asks for its options. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_LEAK_CHECKER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_LEAK_CHECKER
#endif
#ifdef HAS_LEAK_CHECKER
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void) { return "use_tls=0:print_suppressions=0"; }
/* Without thread-local memory it takes the loader's own lists, its last error, what a thread keeps by keys and what
 * OpenMP keeps of it for lost. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:ld-linux\nleak:_dlerror_run\nleak:pthread_setspecific\nleak:libgomp";
}
#endif

typedef struct team_call {
    cpu_team_work *work;
    void *context;
} team_call;

static void enter(void *data) {
    const team_call *call = data;
    call->work(call->context, team.number(), team.count());
}

/* Without libgomp: threads that live for one call. Slow to start, but right. */
typedef struct lone_thread {
    pthread_t id;
    cpu_team_work *work;
    void *context;
    int number, count;
    bool started;
} lone_thread;

static void *lone_enter(void *data) {
    lone_thread *t = data;
    t->work(t->context, t->number, t->count);
    return NULL;
}

static void lone_run(cpu_team_work *work, void *context, int count) {
    lone_thread *threads = calloc((size_t)count, sizeof *threads);
    if (!threads) {
        for (int k = 0; k < count; k++) work(context, k, count);
        return;
    }
    for (int k = 1; k < count; k++) {
        threads[k] = (lone_thread){.work = work, .context = context, .number = k, .count = count};
        threads[k].started = pthread_create(&threads[k].id, NULL, lone_enter, &threads[k]) == 0;
    }
    work(context, 0, count);
    for (int k = 1; k < count; k++) {
        if (threads[k].started)
            (void)pthread_join(threads[k].id, NULL);
        else
            work(context, k, count);
    }
    free(threads);
}

void cpu_team_run(cpu_team_work *work, void *context) {
    if (is_alone) {
        work(context, 0, 1);
        return;
    }
    cpu_team_start();
    team_call call = {work, context};
    if (team.size == 1)
        work(context, 0, 1);
    else if (team.parallel)
        team.parallel(enter, &call, (unsigned)team.size, 0);
    else
        lone_run(work, context, team.size);
}

void cpu_team_share(int64_t count, int thread, int threads, int64_t *from, int64_t *to) {
    if (threads == 1) {
        *from = 0, *to = count;
        return;
    }
    const int64_t each = count / threads, rest = count % threads;
    *from = each * thread + (thread < rest ? thread : rest);
    *to = *from + each + (thread < rest);
}

/* --- start --- */

/* "{0},{2}" for OMP_PLACES, "0,2" for people. */
static void list_cores(const cpu_info *c, const char *before, const char *after, char *text, size_t room) {
    size_t used = 0;
    for (int k = 0; k < c->core_count && used < room; k++) {
        const char *comma = k > 0 ? "," : "";
        used += (size_t)snprintf(text + used, room - used, "%s%s%d%s", comma, before, c->cores[k], after);
    }
}

/* libgomp reads its environment once, when it is loaded, so everything is set before. The user's settings are
 * overridden: the device is all allowed cores, and a figure must not depend on a forgotten variable. */
static void set_environment(const cpu_info *c) {
    char number[16], *places = malloc((size_t)CPU_INFO_MAX_CORES * 16);
    snprintf(number, sizeof number, "%d", c->core_count);
    (void)setenv("OMP_NUM_THREADS", number, 1);
    (void)setenv("OMP_DYNAMIC", "false", 1);
    (void)setenv("OMP_PROC_BIND", "close", 1);
    (void)setenv("GOMP_SPINCOUNT", "10000", 1);
    (void)setenv("OPENBLAS_NUM_THREADS", number, 1);
    static const char *const others[] = {"GOMP_CPU_AFFINITY", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY", "OMP_DISPLAY_ENV",
                                         "KMP_AFFINITY",      "GOTO_NUM_THREADS", "OMP_SCHEDULE"};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) (void)unsetenv(others[k]);
    if (!places) return;
    list_cores(c, "{", "}", places, (size_t)CPU_INFO_MAX_CORES * 16);
    (void)setenv("OMP_PLACES", places, 1);
    free(places);
}

typedef struct where {
    int cpu[CPU_INFO_MAX_CORES]; /* the one processor of its mask; -1: several */
} where;

static void look_where(void *context, int thread, int threads) {
    where *w = context;
    cpu_set_t set;
    (void)threads;
    w->cpu[thread] = -1;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) w->cpu[thread] = cpu;
}

static bool all_apart(const where *w, int count) {
    for (int k = 0; k < count; k++) {
        if (w->cpu[k] < 0) return false;
        for (int other = 0; other < k; other++)
            if (w->cpu[other] == w->cpu[k]) return false;
    }
    return true;
}

static void open_runtime(void) {
    static const char *const names[] = {"libgomp.so.1", NULL};
    scout_why why;
    void *handle = libraries_open(names, false, team.library, sizeof team.library, &why);
    if (!handle) return;
    /* POSIX lets a symbol's address become a function's only through such a detour. */
    *(void **)&team.parallel = libraries_symbol(handle, "GOMP_parallel", &why);
    *(void **)&team.number = libraries_symbol(handle, "omp_get_thread_num", &why);
    *(void **)&team.count = libraries_symbol(handle, "omp_get_num_threads", &why);
    *(void **)&team.most = libraries_symbol(handle, "omp_get_max_threads", &why);
    *(void **)&team.set = libraries_symbol(handle, "omp_set_num_threads", &why);
    if (!team.number || !team.count || !team.most || !team.set) team.parallel = NULL;
}

static void prepare_once(void) { set_environment(cpu_info_get()); }

void cpu_team_prepare(void) { (void)pthread_once(&team_prepared, prepare_once); }

static void start_once(void) {
    const cpu_info *c = cpu_info_get();
    where *w = calloc(1, sizeof *w);
    char list[96] = "";
    set_environment(c); /* again: a program may have put its own variables back since */
    open_runtime();
    team.size = c->core_count;
    if (w) {
        team_call call = {look_where, w};
        if (team.parallel && team.size > 1) team.parallel(enter, &call, (unsigned)team.size, 0);
        if (team.size == 1) look_where(w, 0, 1);
        team.pinned = (team.parallel || team.size == 1) && all_apart(w, team.size);
    }
    free(w);
    list_cores(c, "", "", list, sizeof list);
    snprintf(team.about, sizeof team.about, "%d thread%s, %s%s", team.size, team.size == 1 ? "" : "s",
             team.pinned ? "pinned to cpus " : "not pinned", team.pinned ? list : "");
}

void cpu_team_start(void) { (void)pthread_once(&team_once, start_once); }

int cpu_team_size(void) {
    cpu_team_start();
    return is_alone ? 1 : team.size;
}

int cpu_team_cores(void) {
    cpu_team_start();
    return team.size;
}

cpu_team_state cpu_team_begin(bool alone, const char *library) {
    cpu_team_state before = {.alone = is_alone};
    if (!alone) return before;
    is_alone = true;
    if (!library) return before;
    cpu_team_start();
    if (!team.parallel) return before;
    before.threads = team.most();
    team.set(1);
    return before;
}

void cpu_team_end(cpu_team_state before) {
    is_alone = before.alone;
    if (before.threads > 0) team.set(before.threads);
}

bool cpu_team_pinned(void) {
    cpu_team_start();
    return team.pinned;
}

const char *cpu_team_about(void) {
    cpu_team_start();
    return is_alone ? "1 thread" : team.about;
}

const char *cpu_team_library(void) {
    cpu_team_start();
    return team.library;
}

scout_answer cpu_team_launch(cpu_team_work *work, scout_plan *plan, const scout_args *args) {
    cpu_job job = {plan, args};
    cpu_team_run(work, &job);
    return SCOUT_OK;
}

scout_answer cpu_team_room(uint64_t bytes, uint64_t limit, scout_why *why) {
    if (bytes <= limit) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "needs %.1f MB of workspace for %d threads", (double)bytes / 1e6,
                     cpu_team_size());
}
