/* For the tests of libscout_run: a run on this processor, what it says counted, numbers in every type, tables made of
 * entries in one line each. */
#ifndef TESTS_RUN_FIXTURE_H
#define TESTS_RUN_FIXTURE_H

#include "runtime/scout_run.h"
#include "scout/plugin.h"

#include <stdbool.h>

typedef struct run_said { /* by options.say */
    int lines;
    char last[1600];
} run_said;

void run_say(void *context, const char *line);
/* On the processor, with the table in that file (NULL: none). A test that gets none aborts. */
scout_run *run_open(const char *table, run_said *said);

/* `count` numbers of a type in memory of their own, normal by the seed; free gives them back. */
void *run_numbers(int32_t type, int64_t count, uint64_t seed);
double run_at(int32_t type, const void *numbers, int64_t at);
void run_put(int32_t type, void *numbers, int64_t at, double value);
scout_run_tensor run_tensor(int32_t type, int rank, const int64_t *dims, uint64_t seed); /* dense; run_free */
void run_free(scout_run_tensor *t);
double run_of(const scout_run_tensor *t, const int64_t *at); /* by its strides */
/* Half a step of the type, and what sums of `depth` products in fp32 lose. */
double run_tolerance(int32_t type, int64_t depth);

/* A table of this processor with these entries (JSON texts with commas between), in a file that is removed when the
 * next one is made; its path is borrowed. `name` NULL: this device's. */
const char *run_table(const char *entries, const char *name);
const char *run_table_of(const scout_identity *id, const char *entries); /* of another device */
/* One entry: key, choice, implementation, variant; library NULL: no library's. */
const char *run_entry(const char *key, const char *choice, const char *implementation, const char *variant,
                      const char *library);

#endif
