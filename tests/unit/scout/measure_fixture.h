/* The fixture of the tests of a measurement, a header because each of their programs has its own: begin, change the
 * request, USE candidates, measure (four passes), look, end (nothing may be left on the device). */
#ifndef TESTS_MEASURE_FIXTURE_H
#define TESTS_MEASURE_FIXTURE_H

#include "scout/measure/figures.h"
#include "scout/measure/measure.h"
#include "tests/fakes/fake_device.h"
#include "tests/unit/unit.h"

#include <math.h>

static guard g;
static arena a;
static operation_list list;
static scout_device *d;
static measure_request request;
static ceilings known;
static struct measurement *session;
static uint64_t seed;
static double budget_s; /* of the first pass */
static double hold_s;
static bool cut; /* the budget of the run leaves a pass no more */
static json_t *result;
static scout_answer answer;
static scout_why why;
static int steps;
static char last_step[256], all_steps[1 << 16];

static inline void step(void *context, const char *candidate, const char *variant, const char *what, double seconds) {
    (void)context;
    steps++;
    snprintf(last_step, sizeof last_step, "%s|%s|%s", candidate ? candidate : "", variant ? variant : "", what);
    if (!UNIT_CHECK(seconds > 0 && seconds <= 3600 && what)) printf("%s %g\n", last_step, seconds);
    const size_t used = strlen(all_steps);
    if (!strstr(all_steps, last_step)) snprintf(all_steps + used, sizeof all_steps - used, "%s\n", last_step);
}

static const measure_watcher watcher = {.step = step};

static inline void begin(const char *shape, const char *precision) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    operation_from_words("gemm", shape, precision, 0, NULL, &a, &list);
    d = fake_open();
    steps = 0;
    *last_step = *all_steps = 0;
    memset(&known, 0, sizeof known);
    request = (measure_request){.operation = &list.items[0],
                                .regime = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_GRAPH},
                                .early_exit = 0.97,
                                .workspace_limit = 1 << 16};
    budget_s = 20;
    hold_s = 0;
    seed = 5;
}

static inline void end(void) {
    json_decref(result);
    result = NULL;
    if (!d->lost) {
        UNIT_INT(d->live_allocations, 0);
        UNIT_INT(d->live_sequences, 0);
        UNIT_INT(d->live_plans, 0);
        UNIT_INT(d->live_checks, 0);
    }
    fake_close(d);
    operation_list_free(&list);
    arena_free(&a);
    fake_api.has_graphs = 1;
}

static scout_identity identity = {.size = sizeof(scout_identity), .name = "fake", .cache_bytes = 4096};

static inline void measure_opens(void) {
    session = measure_open(&fake_api, d, &identity, &request, &watcher);
    UNIT_CHECK(session != NULL);
}

/* The next one, of what the figures so far ask for. What failed leaves no result. */
static inline void measure_pass_of(int number) {
    enum { MOST = 8 };
    measure_choice rows[MOST];
    json_t *chosen = number > 1 ? figures_choose(result, request.only, request.beside) : NULL;
    measure_pass pass = {.number = number,
                         .seed = seed * 64 + (uint64_t)number,
                         .budget_s = budget_s,
                         .cut = cut,
                         .hold_s = hold_s,
                         .rows = rows,
                         .fetch = number <= 2};
    for (; pass.row_count < (int)json_array_size(chosen) && pass.row_count < MOST; pass.row_count++) {
        const json_t *one = json_array_get(chosen, (size_t)pass.row_count);
        rows[pass.row_count] = (measure_choice){json_string_value(json_object_get(one, "name")),
                                                json_string_value(json_object_get(one, "variant"))};
    }
    if (number > 1 && !chosen) return; /* without a baseline one pass is all */
    json_t *seen = measure_run(session, &pass, &answer, &why);
    measure_rest(session);
    json_decref(chosen);
    if (seen) {
        result = figures_add(result, seen);
    } else {
        json_decref(result);
        result = NULL;
    }
    json_decref(seen);
    UNIT_CHECK((seen != NULL) == (answer == SCOUT_OK) && (seen == NULL || !*why.text));
}

static inline void measure(void) {
    enum { PASSES = 4 };
    measure_opens();
    for (int k = 1; k <= PASSES && (k == 1 || result); k++) measure_pass_of(k);
    measure_close(session);
}

#define USE(...)                                                                                                       \
    do {                                                                                                               \
        static const scout_candidate *const used[] = {__VA_ARGS__};                                                    \
        fake_use((int)(sizeof used / sizeof *used), used);                                                             \
    } while (0)

static inline const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static inline double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

static inline const json_t *row(const char *name, const char *variant) {
    const json_t *rows = json_object_get(result, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *one = json_array_get(rows, k);
        if (strcmp(text(one, "name"), name) == 0 && strcmp(text(one, "variant"), variant) == 0) return one;
    }
    return NULL;
}

static inline void row_is(const char *name, const char *variant, const char *status_name, const char *code) {
    const json_t *one = row(name, variant), *reason = json_object_get(one, "reason");
    if (!UNIT_CHECK(one != NULL)) return;
    UNIT_TEXT(text(one, "status"), status_name);
    if (code) UNIT_TEXT(text(reason, "code"), code);
    if (!code) UNIT_CHECK(json_is_null(reason));
    UNIT_CHECK((json_object_get(one, "time_us") != NULL) == (strcmp(status_name, "OK") == 0));
    UNIT_CHECK((json_object_get(one, "tflops") != NULL) == (strcmp(status_name, "OK") == 0));
    if (code) UNIT_CHECK(text(reason, "text") && *text(reason, "text"));
}

static inline int rows_of(const char *status_name) {
    const json_t *rows = json_object_get(result, "candidates");
    int count = 0;
    for (size_t k = 0; k < json_array_size(rows); k++)
        count += strcmp(text(json_array_get(rows, k), "status"), status_name) == 0;
    return count;
}

static inline void near(double got, double want) {
    if (!(fabs(got / want - 1) < 0.01)) {
        printf("got %g, want %g\n", got, want);
        UNIT_CHECK(false);
    }
}

#endif
