/* Tuning on a miss, on this processor: one race however many threads ask, one entry of the cache, which the next run
 * finds, also where a process was killed as it raced; what runs is right, whatever was found. */
#include "scout/cache/cache.h"
#include "tests/unit/runtime/run_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ASKING = 64, KILLS = 8, M = 4, N = 96, K = 160 };

static char folder[64];
static scout_run_error error;
static atomic_int lines;

static void count_line(void *context, const char *line) {
    (void)context, (void)line;
    lines++;
}

static scout_run *open_tuned(uint32_t tune_ms) {
    const scout_run_options options = {.size = sizeof options,
                                       .table = run_table("", NULL),
                                       .say = count_line,
                                       .tune_ms = tune_ms,
                                       .cache_dir = folder};
    scout_run *run;
    lines = 0;
    if (scout_run_open(&run, &options, &error) != SCOUT_RUN_OK) abort();
    return run;
}

static const char *note_of(scout_run *run) {
    static scout_run_op_info info;
    const scout_run_op *op;
    info.size = sizeof info;
    if (scout_run_find(run, "gemm;shape=4,96,160;layout=nn;type=fp32;weight=fp32;weight_side=b", &op, &error) !=
        SCOUT_RUN_OK)
        return error.text;
    scout_run_op_describe(op, &info);
    return info.note;
}

static uint64_t entries(void) {
    char used[4096];
    status st;
    cache_info *rows = NULL;
    int count = 0;
    uint64_t sum = 0;
    if (!cache_list(folder, used, sizeof used, &rows, &count, &st)) return 0;
    for (int k = 0; k < count; k++) sum += rows[k].entries;
    free(rows);
    return sum;
}

typedef struct asking {
    pthread_t id;
    scout_run *run;
    int bad;
} asking;

static void *ask(void *context) {
    asking *me = context;
    const int64_t a_dims[2] = {M, K}, b_dims[2] = {K, N}, c_dims[2] = {M, N};
    scout_run_tensor a = run_tensor(SCOUT_RUN_FP32, 2, a_dims, 1), b = run_tensor(SCOUT_RUN_FP32, 2, b_dims, 2),
                     c = run_tensor(SCOUT_RUN_FP32, 2, c_dims, 3);
    const scout_run_gemm_more more = {.size = sizeof more, .weight = 'b'};
    double sum = 0;
    if (scout_run_gemm(me->run, &a, &b, &c, &more, NULL, NULL) != SCOUT_RUN_OK) me->bad++;
    for (int64_t k = 0; k < K; k++)
        sum += run_at(a.type, a.data, (M - 1) * K + k) * run_at(b.type, b.data, k * N + N - 1);
    if (!(fabs(run_at(c.type, c.data, M * N - 1) - sum) < 1e-3)) me->bad++;
    run_free(&a), run_free(&b), run_free(&c);
    return NULL;
}

static void one_race_for_all_that_ask(void) {
    asking all[ASKING];
    scout_run *run = open_tuned(60000);
    for (int k = 0; k < ASKING; k++) {
        all[k] = (asking){.run = run};
        if (pthread_create(&all[k].id, NULL, ask, &all[k]) != 0) abort();
    }
    for (int k = 0; k < ASKING; k++) {
        pthread_join(all[k].id, NULL);
        UNIT_INT(all[k].bad, 0);
    }
    UNIT_CHECK(strncmp(note_of(run), "tuned here: ", 12) == 0);
    UNIT_INT(lines, 1);
    UNIT_INT(entries(), 2); /* of this card, and of any of its class */
    scout_run_close(run);
}

static void the_next_run_finds_it(void) {
    asking one = {.run = open_tuned(60000)};
    (void)ask(&one);
    UNIT_INT(one.bad, 0);
    UNIT_CHECK(strncmp(note_of(one.run), "tuned here before: ", 19) == 0);
    UNIT_INT(entries(), 2);
    scout_run_close(one.run);
}

/* As a run leaves it that was killed between its two files: the card's own, which is the last one, is not there. */
static void what_a_killed_run_left_out_is_completed(void) {
    char command[256];
    asking one = {0};
    snprintf(command, sizeof command, "grep -L 'card=any' %s/*/*.json | xargs rm", folder);
    UNIT_INT(system(command), 0);
    UNIT_INT(entries(), 1);
    one.run = open_tuned(60000);
    (void)ask(&one);
    UNIT_INT(one.bad, 0);
    UNIT_CHECK(strncmp(note_of(one.run), "tuned here before: ", 19) == 0);
    UNIT_INT(entries(), 2);
    scout_run_close(one.run);
}

static void nothing_is_tuned_unless_it_is_asked(void) {
    asking one = {.run = open_tuned(0)};
    (void)ask(&one);
    UNIT_INT(one.bad, 0);
    UNIT_TEXT(note_of(one.run), "the table does not have it");
    scout_run_close(one.run);
}

/* This program in a process of its own, which tunes once into `folder` and ends with 0 where all was right. */
static pid_t start_child(void) {
    const pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        execl("/proc/self/exe", "test_run_tune", folder, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int end_of(pid_t pid) {
    int state = 0;
    if (waitpid(pid, &state, 0) != pid) abort();
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* At moments from the first to the last that a race takes; after each, the next process gets on with what is there. */
static void a_killed_race_leaves_nothing_torn(void) {
    char whole[sizeof folder];
    double took_s = 0;
    int killed = 0;
    memcpy(whole, folder, sizeof whole);
    for (int k = -2; k < KILLS;
         k++) { /* first two that end by themselves: the shorter tells how long there is to kill */
        snprintf(folder, sizeof folder, "%.40s/%d", whole, k + 2);
        if (mkdir(folder, 0777) != 0) abort();
        const double begun_s = now_s();
        const pid_t pid = start_child();
        if (k >= 0) {
            const double wait_s = took_s * (k + 0.5) / KILLS;
            const struct timespec wait = {(time_t)wait_s, (long)(1e9 * fmod(wait_s, 1))};
            nanosleep(&wait, NULL);
            kill(pid, SIGKILL);
            const bool late = end_of(pid) != -SIGKILL; /* other work was in the way while the time was taken */
            killed += !late;
            if (late) took_s /= 2;
            UNIT_CHECK(entries() <= 2);
            UNIT_INT(end_of(start_child()), 0);
        } else {
            UNIT_INT(end_of(pid), 0);
            took_s = k == -2 ? now_s() - begun_s : fmin(took_s, now_s() - begun_s);
        }
        UNIT_INT(entries(), 2);
    }
    UNIT_CHECK(killed >= KILLS / 2);
    memcpy(folder, whole, sizeof folder);
}

static int tune_once(void) {
    asking one = {.run = open_tuned(60000)};
    (void)ask(&one);
    const bool tuned = strncmp(note_of(one.run), "tuned here", 10) == 0;
    scout_run_close(one.run);
    return tuned && one.bad == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 2) {
        snprintf(folder, sizeof folder, "%s", argv[1]);
        return tune_once();
    }
    snprintf(folder, sizeof folder, "/tmp/scout_run_tune_XXXXXX");
    if (!mkdtemp(folder)) abort();
    UNIT_RUN(nothing_is_tuned_unless_it_is_asked);
    UNIT_INT(entries(), 0);
    UNIT_RUN(one_race_for_all_that_ask);
    UNIT_RUN(the_next_run_finds_it);
    UNIT_RUN(what_a_killed_run_left_out_is_completed);
    UNIT_RUN(a_killed_race_leaves_nothing_torn);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) abort();
    return unit_end();
}
