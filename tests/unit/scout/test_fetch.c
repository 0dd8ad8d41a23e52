/* What fetching its program and its tensors takes in a model, beside the time of a launch alone. */
#include "scout/measure/figures.h"
#include "scout/measure/measure_key.h"
#include "tests/unit/scout/measure_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

static double fetch_us(const char *name) {
    const json_t *x = json_object_get(row(name, ""), "fetch_us");
    return x ? json_number_value(x) : NAN;
}

/* Passes that looked for it. */
static int looks(const char *name) {
    const json_t *passes = json_object_get(row(name, ""), "passes");
    int n = 0;
    for (size_t k = 0; k < json_array_size(passes); k++)
        n += json_object_get(json_array_get(passes, k), "fetch_us") != NULL;
    return n;
}

static void begin_telling(double fetch_s) {
    begin("16,24,8", "fp32");
    d->fetch_s = d->tensors_s = fetch_s;
    fake_api.play = fake_play;
    fake_api.forget = fake_forget;
}

static void end_telling(void) {
    end();
    fake_api.play = NULL;
    fake_api.forget = NULL;
}

static void it_is_told_beside_the_time(void) {
    begin_telling(4e-7);
    USE(&fake_brief, &fake_brisk);
    measure();
    UNIT_CHECK(fabs(fetch_us("brief") - 0.4) < 0.05 && fabs(fetch_us("brisk") - 0.4) < 0.05);
    UNIT_CHECK(fabs(number(result, "baseline_time_us") - 20) < 0.2); /* as without it */
    UNIT_INT(looks("brief"), 1);                                     /* one tells it */
    UNIT_INT(looks("brisk"), 1);
    end_telling();
}

/* Of tensors that a run of the model leaves otherwise, at that share of its occurrences. The device is told how. */
static void what_a_run_leaves_otherwise_counts_by_its_share(void) {
    begin_telling(4e-7);
    d->tensors_s = 2e-6;
    list.items[0].written = 1;
    list.items[0].handed = 0.25;
    list.items[0].crowd_written = 0.7;
    USE(&fake_brief);
    measure();
    UNIT_CHECK(fabs(fetch_us("brief") - 0.9) < 0.06);
    UNIT_CHECK(d->left == SCOUT_LEFT_WRITTEN && d->crowd_written == 0.7);
    end_telling();
}

/* To change from one kernel to another takes time by itself: that is there once, not for the program and for tensors.
 */
static void a_change_of_kernels_counts_once(void) {
    begin_telling(4e-7);
    d->tensors_s = 2e-6;
    d->change_s = 5e-7;
    list.items[0].written = 1;
    list.items[0].handed = 0.5;
    USE(&fake_brief);
    measure();
    UNIT_CHECK(fabs(fetch_us("brief") - 1.9) < 0.06);
    end_telling();
}

/* Of an operation of 200 us a program is nothing, and tensors are something. */
static void tensors_are_looked_at_for_longer(void) {
    begin_telling(4e-6);
    list.items[0].distant = 2;
    list.items[0].handed = 1;
    USE(&fake_right);
    measure();
    UNIT_CHECK(fabs(fetch_us("right") - 4) < 0.4);
    end_telling();
}

static bool same_key(const measure_key *one, const measure_key *two) {
    return strcmp(measure_key_text(one, &a), measure_key_text(two, &a)) == 0;
}

static void a_cache_tells_runs_apart_by_it(void) {
    begin("16,24,8", "fp32");
    const measure_key plain = {.operation = "gemm"}, none = {.operation = "gemm", .left = true},
                      first = {.operation = "gemm", .left = true, .written = 1, .handed = 0.25},
                      second = {.operation = "gemm", .left = true, .distant = 1, .handed = 0.25},
                      third = {.operation = "gemm", .left = true, .distant = 1, .handed = 0.25, .crowd_written = 0.7};
    UNIT_CHECK(!same_key(&plain, &none) && !same_key(&none, &first) && !same_key(&first, &second));
    UNIT_CHECK(!same_key(&second, &third) && same_key(&first, &first));
    end();
}

static void others_are_served_without_it(void) {
    begin_telling(4e-7);
    USE(&fake_brief);
    measure();
    json_t *kept = result, *without = figures_without_fetch(result);
    UNIT_INT(looks("brief"), 1);
    result = without;
    UNIT_CHECK(isnan(fetch_us("brief")) && looks("brief") == 0 && number(result, "baseline_time_us") > 19);
    result = kept;
    json_decref(without);
    end_telling();
}

/* It is below nothing by what blocks differ alone. */
static void it_is_never_less_than_nothing(void) {
    begin_telling(-3e-7);
    USE(&fake_brief);
    measure();
    UNIT_CHECK(fetch_us("brief") == 0);
    UNIT_INT(looks("brief"), 1);
    end_telling();
}

static void begin_telling_directly(double fetch_s) {
    begin_telling(fetch_s);
    fake_api.has_graphs = 0;
    fake_api.play = NULL;
}

static void end_telling_directly(void) {
    end_telling();
    fake_api.has_graphs = 1;
}

/* Without graphs each launch is timed by itself, and each of two passes looks. */
static void a_device_without_graphs_tells_it_launch_by_launch(void) {
    begin_telling_directly(4e-6);
    USE(&fake_brief, &fake_brisk);
    measure_opens();
    measure_pass_of(1);
    UNIT_CHECK(fabs(fetch_us("brief") - 4) < 0.05 && fabs(fetch_us("brisk") - 4) < 0.05);
    UNIT_CHECK(fabs(number(result, "baseline_time_us") - 20) < 0.2);
    d->tensors_s = 3e-6;
    measure_pass_of(2);
    UNIT_CHECK(fabs(fetch_us("brief") - 3.5) < 0.05);
    UNIT_INT(looks("brief"), 2);
    measure_close(session);
    end_telling_directly();
}

static double all_stolen(scout_device *of) { return of->now_s; }

static void what_other_work_took_tells_nothing(void) {
    begin_telling_directly(4e-6);
    fake_api.stolen = all_stolen;
    USE(&fake_brief);
    measure();
    UNIT_CHECK(isnan(fetch_us("brief")) && looks("brief") == 0);
    UNIT_TEXT(text(row("brief", ""), "status"), "OK");
    fake_api.stolen = NULL;
    end_telling_directly();
}

static void a_device_that_cannot_tell_says_nothing(void) {
    begin_telling(4e-7);
    fake_api.forget = NULL;
    USE(&fake_brief);
    measure();
    UNIT_CHECK(isnan(fetch_us("brief")));
    end_telling();
}

static void long_launches_bursts_and_calls_have_none(void) {
    for (int k = 0; k < 3; k++) {
        begin_telling(4e-7);
        if (k == 1) request.regime.load = REGIME_BURST;
        if (k == 2) request.regime.launch = REGIME_DIRECT;
        if (k == 0)
            USE(&fake_right);
        else
            USE(&fake_brief);
        measure();
        UNIT_CHECK(isnan(fetch_us(k == 0 ? "right" : "brief")) && looks(k == 0 ? "right" : "brief") == 0);
        end_telling();
    }
}

static void intervals_that_differ_tell_nothing(void) {
    begin_telling(4e-7);
    d->noise = 1;
    USE(&fake_brief);
    measure();
    UNIT_CHECK(looks("brief") == 0 && isnan(fetch_us("brief")));
    UNIT_TEXT(text(row("brief", ""), "status"), "OK");
    end_telling();
}

static scout_answer fails(scout_device *of, scout_forget what, const scout_op *op, void *const *tensors, void *stream,
                          scout_why *reason) {
    (void)of, (void)what, (void)op, (void)tensors, (void)stream;
    return scout_say(reason, SCOUT_FAILED, "error", "on purpose");
}

/* A figure beside the figure: what goes wrong there takes none away. */
static void a_failure_leaves_the_row_as_it_is(void) {
    begin_telling(4e-7);
    fake_api.forget = fails;
    USE(&fake_brief, &fake_brisk);
    measure();
    UNIT_TEXT(text(row("brisk", ""), "status"), "OK");
    UNIT_CHECK(isnan(fetch_us("brief")) && number(result, "ratio") < 0.8);
    end_telling();
}

static scout_answer loses(scout_device *of, scout_forget what, const scout_op *op, void *const *tensors, void *stream,
                          scout_why *reason) {
    (void)what, (void)op, (void)tensors, (void)stream;
    of->lost = true;
    return scout_say(reason, SCOUT_LOST, "poisoned", "on purpose");
}

static void a_lost_device_ends_it(void) {
    begin_telling(4e-7);
    fake_api.forget = loses;
    USE(&fake_brief);
    measure_opens();
    measure_pass_of(1);
    UNIT_CHECK(!result && answer == SCOUT_LOST);
    measure_close(session);
    end_telling();
}

int main(void) {
    UNIT_RUN(it_is_told_beside_the_time);
    UNIT_RUN(what_a_run_leaves_otherwise_counts_by_its_share);
    UNIT_RUN(a_change_of_kernels_counts_once);
    UNIT_RUN(tensors_are_looked_at_for_longer);
    UNIT_RUN(a_cache_tells_runs_apart_by_it);
    UNIT_RUN(others_are_served_without_it);
    UNIT_RUN(it_is_never_less_than_nothing);
    UNIT_RUN(a_device_without_graphs_tells_it_launch_by_launch);
    UNIT_RUN(what_other_work_took_tells_nothing);
    UNIT_RUN(a_device_that_cannot_tell_says_nothing);
    UNIT_RUN(long_launches_bursts_and_calls_have_none);
    UNIT_RUN(intervals_that_differ_tell_nothing);
    UNIT_RUN(a_failure_leaves_the_row_as_it_is);
    UNIT_RUN(a_lost_device_ends_it);
    return unit_end();
}
