/* Tuning on a miss, on this processor: one race however many threads ask, one entry of the cache, which the next run
 * finds; what runs is right, whatever was found. */
#include "scout/cache/cache.h"
#include "tests/unit/runtime/run_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ASKING = 64, M = 4, N = 96, K = 160 };

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

static void nothing_is_tuned_unless_it_is_asked(void) {
    asking one = {.run = open_tuned(0)};
    (void)ask(&one);
    UNIT_INT(one.bad, 0);
    UNIT_TEXT(note_of(one.run), "the table does not have it");
    scout_run_close(one.run);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/scout_run_tune_XXXXXX");
    if (!mkdtemp(folder)) abort();
    UNIT_RUN(nothing_is_tuned_unless_it_is_asked);
    UNIT_INT(entries(), 0);
    UNIT_RUN(one_race_for_all_that_ask);
    UNIT_RUN(the_next_run_finds_it);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) abort();
    return unit_end();
}
