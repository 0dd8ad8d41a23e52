/* Candidates at fault, and what keeps an operation from being measured at all: each gets its row. */
#include "tests/unit/scout/measure_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

static void every_fault_gets_its_row(void) {
    begin("16,24,8", "fp32");
    USE(&fake_wrong, &fake_outside, &fake_before, &fake_changes, &fake_partial, &fake_fails, &fake_refuses,
        &fake_hungry, &fake_uncapturable, &fake_right, &fake_fast);
    measure();
    row_is("wrong", "", "WRONG", "samples");
    row_is("outside", "", "WRONG", "canary");
    row_is("before", "", "WRONG", "canary");
    row_is("changes", "", "WRONG", "input_changed");
    row_is("partial", "", "WRONG", "projection");
    row_is("fails", "", "ERROR", "error");
    row_is("refuses", "", "UNSUPPORTED", "shape");
    row_is("hungry", "", "ERROR", "memory");
    row_is("uncapturable", "", "UNSUPPORTED", "capture");
    row_is("right", "", "OK", NULL);
    row_is("fast", "", "OK", NULL);
    near(number(result, "best_time_us"), 150); /* as without them */
    UNIT_CHECK(json_object_get(result, "baseline_elected") == NULL);
    end();
}

static void a_wrong_default_leaves_its_place_to_the_next(void) {
    begin("16,24,8", "fp32");
    USE(&fake_coarse, &fake_fast);
    measure();
    row_is("coarse", "engine=0,form=0", "UNSUPPORTED", "precision");
    row_is("coarse", "engine=1,form=0", "WRONG", "samples");
    row_is("coarse", "engine=2,form=0", "OK", NULL);
    UNIT_TEXT(text(result, "baseline"), "coarse");
    UNIT_TEXT(text(result, "baseline_variant"), "engine=2,form=0");
    UNIT_CHECK(
        json_is_true(json_object_get(result, "baseline_elected"))); /* other engines may be what frameworks take */
    end();
}

/* What a library rounds on its way is no fault of it, and leaves no kernel of ours as far off. */
static void sums_that_are_rounded_on_the_way(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right, &fake_rounded, &fake_rounded_own, &fake_wrong);
    measure();
    row_is("rounded", "", "UNSUPPORTED", "precision");
    row_is("rounded_own", "", "WRONG", "samples");
    row_is("wrong", "", "WRONG", "samples");
    const json_t *error = json_object_get(row("rounded", ""), "error");
    UNIT_CHECK(number(error, "worst") > number(error, "tolerance"));
    UNIT_CHECK(json_object_get(json_object_get(row("rounded", ""), "config"), "order"));
    end();
}

/* The next choice had crashed when the operation was measured before: it is the turn of the one behind. */
static void a_place_is_not_left_to_a_culprit(void) {
    const measure_exclusion exclusion = {"coarse", "engine=1,form=0", ROW_CRASHED, {.code = "signal", .text = "ended"}};
    begin("16,24,8", "fp32");
    request.exclusions = &exclusion;
    request.exclusion_count = 1;
    USE(&fake_coarse, &fake_fast);
    measure();
    row_is("coarse", "engine=0,form=0", "UNSUPPORTED", "precision");
    row_is("coarse", "engine=1,form=0", "CRASHED", "signal");
    row_is("coarse", "engine=2,form=0", "OK", NULL);
    UNIT_TEXT(text(result, "baseline_variant"), "engine=2,form=0");
    end();
}

static void a_late_fault_loses_its_time(void) {
    begin("16,24,8", "fp32");
    USE(&fake_late, &fake_right);
    measure_opens();
    measure_pass_of(1);
    row_is("late", "", "OK", NULL); /* its launches are not that many yet */
    UNIT_TEXT(text(figures_leader(result), "name"), "late");
    for (int k = 2; k <= 4; k++) measure_pass_of(k);
    measure_close(session);
    row_is("late", "", "WRONG", "projection");
    UNIT_TEXT(text(result, "best"), "right");
    UNIT_CHECK(json_object_get(row("late", ""), "passes") == NULL);
    UNIT_INT(json_array_size(json_object_get(row("right", ""), "passes")), 4);
    end();
    begin("16,24,8", "fp32");
    request.regime.cache = REGIME_COLD;
    USE(&fake_late_outside, &fake_right);
    measure();
    row_is("late_outside", "", "WRONG", "canary");
    row_is("right", "", "OK", NULL);
    end();
}

/* An operation whose default comes out wrong after it was timed has the best of its like. */
static void a_late_default_leaves_its_place(void) {
    begin("16,24,8", "fp32");
    USE(&fake_late_default, &fake_right);
    measure_opens();
    for (int k = 1; k <= 4; k++) measure_pass_of(k);
    measure_close(session);
    row_is("late_default", "engine=0,form=0", "WRONG", "projection");
    UNIT_TEXT(text(result, "baseline"), "late_default");
    UNIT_TEXT(text(result, "baseline_variant"), "engine=2,form=0");
    near(number(result, "baseline_time_us"), 200);
    UNIT_CHECK(json_is_true(json_object_get(result, "baseline_elected")));
    end();
    begin("16,24,8", "fp32"); /* one that was named keeps its place, and has no figure */
    request.before = "late_default";
    USE(&fake_late_default, &fake_right);
    measure_opens();
    for (int k = 1; k <= 4; k++) measure_pass_of(k);
    measure_close(session);
    UNIT_TEXT(text(result, "baseline_variant"), "engine=0,form=0");
    UNIT_CHECK(!(number(result, "baseline_time_us") > 0));
    end();
}

static void a_lost_device_ends_it(void) {
    begin("16,24,8", "fp32");
    USE(&fake_lost, &fake_right);
    measure();
    UNIT_CHECK(result == NULL);
    UNIT_INT(answer, SCOUT_LOST);
    UNIT_TEXT(last_step, "lost||verify"); /* what the supervisor will blame */
    end();
}

static void the_culprit_is_left_out(void) {
    const measure_exclusion exclusions[] = {
        {"lost", "", ROW_CRASHED, {.code = "poisoned", .text = "left the device unusable"}},
        {"tuned", "algo=3,split=1", ROW_TIMEOUT, {.code = "deadline", .text = "did not answer"}}};
    begin("16,24,8", "fp32");
    request.exclusions = exclusions;
    request.exclusion_count = 2;
    USE(&fake_lost, &fake_right, &fake_tuned);
    measure();
    row_is("lost", "", "CRASHED", "poisoned");
    row_is("tuned", "algo=3,split=1", "TIMEOUT", "deadline");
    row_is("right", "", "OK", NULL);
    UNIT_TEXT(text(result, "best"), "right");
    UNIT_CHECK(strstr(all_steps, "lost|") == NULL && strstr(all_steps, "algo=3,split=1") == NULL);
    end();
}

static void without_a_baseline_there_is_none(void) {
    const measure_exclusion exclusion = {"right", "", ROW_CRASHED, {.code = "signal", .text = "ended"}};
    begin("16,24,8", "fp32");
    request.exclusions = &exclusion;
    request.exclusion_count = 1;
    USE(&fake_right, &fake_fast);
    measure();
    UNIT_CHECK(json_is_null(json_object_get(result, "baseline")));
    UNIT_TEXT(text(result, "best"), "fast");
    UNIT_CHECK(json_object_get(result, "ratio") == NULL && json_object_get(result, "baseline_time_us") == NULL);
    end();
}

static void nobody_for_these_types(void) {
    begin("16,24,8", "fp16");
    USE(&fake_right, &fake_fast);
    measure();
    UNIT_CHECK(result != NULL);
    row_is("right", "", "UNSUPPORTED", "type");
    UNIT_CHECK(json_is_null(json_object_get(result, "best")));
    end();
}

static void a_product_that_cannot_be_told(void) {
    begin("16,24,8", "fp32");
    oprec_set_text(&list.items[0].rec, "quant", "mystery");
    USE(&fake_right, &fake_fast);
    measure();
    row_is("right", "", "UNSUPPORTED", "feature");
    row_is("fast", "", "UNSUPPORTED", "feature");
    end();
}

static void too_large_for_the_memory(void) {
    begin("4096,4096,4096", "fp32");
    USE(&fake_right);
    measure();
    row_is("right", "", "ERROR", "memory");
    end();
}

static void everybody_is_announced(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right, &fake_fast, &fake_tuned);
    measure();
    static const char *const said[] = {"right||supports",
                                       "right||prepare",
                                       "right||verify",
                                       "right||time",
                                       "fast||time",
                                       "tuned|algo=3,split=1|prepare",
                                       "tuned|algo=3,split=1|verify",
                                       "tuned|algo=3,split=1|time",
                                       "||fill"};
    for (size_t k = 0; k < sizeof said / sizeof *said; k++)
        if (!strstr(all_steps, said[k])) unit_check(false, said[k], __FILE__, __LINE__);
    UNIT_CHECK(steps < 100000);
    end();
}

static void qualifying_names_the_faulty(void) {
    static const struct {
        const char *name, *status, *code;
    } rows[] = {{"wrong", "WRONG", "samples"}, {"outside", "WRONG", "canary"}, {"fails", "ERROR", "error"}};
    USE(&fake_wrong, &fake_outside, &fake_fails, &fake_right, &fake_refuses, &fake_late_outside);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        begin("16,24,8", "fp32");
        result = measure_qualify(&fake_api, d, &request, rows[k].name, &watcher, &answer, &why);
        UNIT_INT(answer, SCOUT_OK);
        UNIT_INT(json_array_size(result), 1);
        UNIT_TEXT(text(json_array_get(result, 0), "status"), rows[k].status);
        UNIT_TEXT(text(json_object_get(json_array_get(result, 0), "reason"), "code"), rows[k].code);
        UNIT_CHECK(strstr(all_steps, "right|") == NULL); /* nothing else ran */
        end();
    }
    static const char *const fine[] = {"right", "refuses"};
    for (int k = 0; k < 2; k++) {
        begin("16,24,8", "fp32");
        result = measure_qualify(&fake_api, d, &request, fine[k], &watcher, &answer, &why);
        UNIT_INT(json_array_size(result), 0);
        UNIT_CHECK(json_is_array(result) && answer == SCOUT_OK && !*why.text);
        end();
    }
    begin("16,24,8", "fp32");
    request.regime.cache = REGIME_COLD;
    result = measure_qualify(&fake_api, d, &request, "late_outside", &watcher, &answer, &why);
    UNIT_INT(json_array_size(result), 1);
    end();
}

int main(void) {
    UNIT_RUN(every_fault_gets_its_row);
    UNIT_RUN(a_wrong_default_leaves_its_place_to_the_next);
    UNIT_RUN(sums_that_are_rounded_on_the_way);
    UNIT_RUN(a_place_is_not_left_to_a_culprit);
    UNIT_RUN(a_late_fault_loses_its_time);
    UNIT_RUN(a_late_default_leaves_its_place);
    UNIT_RUN(a_lost_device_ends_it);
    UNIT_RUN(the_culprit_is_left_out);
    UNIT_RUN(without_a_baseline_there_is_none);
    UNIT_RUN(nobody_for_these_types);
    UNIT_RUN(a_product_that_cannot_be_told);
    UNIT_RUN(too_large_for_the_memory);
    UNIT_RUN(everybody_is_announced);
    UNIT_RUN(qualifying_names_the_faulty);
    return unit_end();
}
