/* The parts of a fusion in sequence, beside what does all of it at once, on a device whose clock only launches move. */
#include "tests/unit/scout/measure_fixture.h"
#include "tests/unit/unit.h"

static fusion_part parts[FUSION_PARTS];
static fusion_place places[FUSION_PARTS][3];
static operation_list widths[2];
enum { WIDTH = 70 };

/* Two products side by side: their columns behind `before` of WIDTH, each 12 rows by 8. */
static void part_of(int k, const char *shape, int64_t before) {
    operation_from_words("gemm", shape, "fp32", 0, NULL, &a, &widths[k]);
    places[k][0] = (fusion_place){"a", "a", 0, 0};
    places[k][1] = (fusion_place){"b", "b", before, WIDTH};
    places[k][2] = (fusion_place){"c", "c", before, WIDTH};
    parts[k] = (fusion_part){.operation = &widths[k].items[0], .place_count = 3, .places = places[k]};
}

static void begin_fusion(void) {
    begin("12,70,8", "fp32");
    part_of(0, "12,64,8", 0);
    part_of(1, "12,6,8", 64);
    request.parts = (parts_request){.count = 2, .items = parts};
}

static void end_fusion(void) {
    operation_list_free(&widths[0]);
    operation_list_free(&widths[1]);
    end();
}

static void as_runs(int part, const char *candidate, const char *variant) {
    parts[part].candidate = candidate;
    parts[part].variant = variant;
}

static const char *ran_as(size_t part, const char *what) {
    const json_t *config = json_object_get(row("parts", ""), "config");
    return text(json_array_get(json_object_get(config, "parts"), part), what);
}

static void at_once_is_faster(void) {
    begin_fusion();
    USE(&fake_right, &fake_fast);
    measure();
    UNIT_TEXT(text(result, "baseline"), "parts");
    UNIT_TEXT(text(result, "best"), "fast");
    UNIT_TEXT(text(result, "best_approach"), "FUSION");
    near(number(result, "baseline_time_us"), 400); /* the library's default twice */
    near(number(result, "ratio"), 150.0 / 400);
    row_is("parts", "", "OK", NULL);
    UNIT_INT(number(row("parts", ""), "kernels"), 2);
    UNIT_INT(number(row("fast", ""), "kernels"), 1);
    UNIT_TEXT(ran_as(0, "candidate"), "right");
    UNIT_CHECK(number(json_object_get(row("parts", ""), "error"), "worst") > 0);
    end_fusion();
}

static void each_part_runs_as_it_is_best(void) {
    begin_fusion();
    USE(&fake_right, &fake_fast, &fake_tuned);
    as_runs(0, "fast", "");
    as_runs(1, "tuned", "algo=3,split=1");
    measure();
    near(number(result, "baseline_time_us"), 330);
    UNIT_TEXT(ran_as(0, "candidate"), "fast");
    UNIT_TEXT(ran_as(1, "variant"), "algo=3,split=1");
    end_fusion();
}

/* What is not here, or has no such variant, or cannot be prepared: the library's default takes its place. */
static void the_default_is_there_for_all(void) {
    static const char *const names[][2] = {
        {"gone", ""}, {"tuned", "algo=9,split=1"}, {"tuned", "algo=5,split=2"}, {"fails", ""}, {"refuses", ""}};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        begin_fusion();
        USE(&fake_right, &fake_tuned, &fake_fails, &fake_refuses);
        as_runs(0, names[k][0], names[k][1]);
        measure();
        near(number(result, "baseline_time_us"), 400);
        UNIT_TEXT(ran_as(0, "candidate"), "right");
        end_fusion();
    }
}

/* A fusion that is slower is confirmed like any other, however far behind it is. */
static void at_once_is_slower(void) {
    static const measure_exclusion without[] = {{"right", "", ROW_SKIPPED, {.code = "not_asked", .text = "left out"}}};
    begin_fusion();
    USE(&fake_right, &fake_slow);
    request.exclusions = without;
    request.exclusion_count = 1;
    measure();
    UNIT_TEXT(text(result, "baseline"), "parts");
    UNIT_TEXT(text(result, "best"), "parts");
    const json_t *rival = json_object_get(result, "rival");
    UNIT_TEXT(text(rival, "name"), "slow");
    UNIT_TEXT(text(rival, "approach"), "FUSION");
    near(number(rival, "ratio"), 1.25);
    row_is("slow", "", "OK", NULL);
    end_fusion();
}

static void weights_are_packed_once(void) {
    begin_fusion();
    USE(&fake_right, &fake_packs);
    as_runs(0, "packs", "order=1");
    as_runs(1, "packs", "order=0");
    measure();
    row_is("parts", "", "OK", NULL);
    UNIT_TEXT(ran_as(0, "candidate"), "packs");
    UNIT_CHECK(number(row("parts", ""), "pack_bytes") >= 4.0 * 8 * WIDTH);
    near(number(result, "baseline_time_us"), 401);
    end_fusion();
}

/* The harness packs a tensor or not: nothing copies what one part wants as it lies. */
static void who_packs_alone_does_not(void) {
    begin_fusion();
    USE(&fake_right, &fake_packs);
    as_runs(0, "packs", "order=1");
    measure();
    row_is("parts", "", "OK", NULL);
    UNIT_TEXT(ran_as(0, "candidate"), "right");
    end_fusion();
}

static void wrong_parts_are_wrong(void) {
    begin_fusion();
    USE(&fake_right, &fake_wrong);
    as_runs(1, "wrong", "");
    measure();
    row_is("parts", "", "WRONG", "samples");
    UNIT_TEXT(text(result, "baseline"), "right");
    end_fusion();
}

static void slices_are_where_they_should_be(void) {
    begin_fusion();
    USE(&fake_right);
    parts[1].places[2].offset = 0; /* over the other one's first columns */
    measure();
    row_is("parts", "", "WRONG", "samples");
    end_fusion();
}

static void what_cannot_be_laid_out_is_refused(void) {
    static const struct {
        int tensor;
        fusion_place place;
        const char *code;
    } cases[] = {{1, {"b", "weight", 0, 0}, "feature"}, {1, {"b", "b", 512, WIDTH}, "shape"},
                 {2, {"c", "a", 0, 0}, "feature"},      {1, {"x", "b", 0, WIDTH}, "feature"},
                 {0, {"a", "@1", 0, 0}, "shape"},       {0, {"a", "@7", 0, 0}, "feature"},
                 {0, {"a", "=2", 0, 0}, "feature"},     {2, {"c", "=1", 0, 0}, "feature"},
                 {1, {"b", "#8", 0, WIDTH}, "feature"}, {1, {"b", "b", 6, WIDTH}, "alignment"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        begin_fusion();
        USE(&fake_right);
        parts[1].places[cases[k].tensor] = cases[k].place;
        measure();
        row_is("parts", "", "UNSUPPORTED", cases[k].code);
        UNIT_TEXT(text(result, "baseline"), "right");
        end_fusion();
    }
}

/* What the device still has belongs to no plan any more: it is not touched. */
static void a_part_that_loses_the_device(void) {
    begin_fusion();
    USE(&fake_right, &fake_lost);
    as_runs(1, "lost", "");
    measure();
    UNIT_CHECK(result == NULL && answer == SCOUT_LOST);
    end_fusion();
}

int main(void) {
    UNIT_RUN(at_once_is_faster);
    UNIT_RUN(each_part_runs_as_it_is_best);
    UNIT_RUN(the_default_is_there_for_all);
    UNIT_RUN(at_once_is_slower);
    UNIT_RUN(weights_are_packed_once);
    UNIT_RUN(who_packs_alone_does_not);
    UNIT_RUN(wrong_parts_are_wrong);
    UNIT_RUN(slices_are_where_they_should_be);
    UNIT_RUN(what_cannot_be_laid_out_is_refused);
    UNIT_RUN(a_part_that_loses_the_device);
    return unit_end();
}
