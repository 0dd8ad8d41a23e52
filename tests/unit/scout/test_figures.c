/* What passes say together, on passes that are made up: times, ratios within a pass, what wins and what stays open. */
#include "scout/measure/figures.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 16 };

static json_t *m;

typedef struct made { /* a row of a pass */
    const char *name;
    double us;
    bool race, disturbed, own;
    double missed;             /* of a disturbed pass */
    const char *status, *code; /* NULL: OK */
    const char *variant;       /* NULL: "" */
} made;

#define ROWS(...) ((const made[MOST]){__VA_ARGS__})

static bool host;
static double launch_us;           /* of the yardstick; 0: there is none */
static const double goes = 0.8;    /* a time with the clock, as its exponent */
static double clock_mhz, held_mhz; /* that the device tells of a pass; 0: it tells none */
static double held_error = 0.001;
static double few_xx;   /* blocks say so little of the clock; 0: enough */
static bool odd_blocks; /* or the wrong thing */
static const char *own; /* the name of a baseline that was chosen among others */
static bool stands_in;  /* for a library's default that was off */

static json_t *row_of(int number, const made *r) {
    json_t *row = json_pack("{s:s, s:s, s:s, s:s}", "name", r->name, "variant", r->variant ? r->variant : "", "status",
                            r->status ? r->status : "OK", "approach", "CUSTOM_KERNEL");
    if (r->code) json_object_set_new(row, "reason", json_pack("{s:s, s:s}", "code", r->code, "text", "made up"));
    if (r->us > 0)
        json_object_set_new(row, "pass",
                            json_pack("{s:i, s:f, s:i, s:i, s:f}", "pass", number, "time_us", r->us, "blocks", 4,
                                      "launches", 100, "clock_mhz", 1500.0));
    json_t *pass = json_object_get(row, "pass");
    if (clock_mhz > 0) { /* blocks in which the time goes with the clock as from pass to pass */
        const double xx = odd_blocks ? 0.006 : few_xx > 0 ? few_xx : 0.04;
        json_object_set_new(pass, "clock_mhz", json_real(clock_mhz));
        json_object_set_new(pass, "clock_xx", json_real(xx));
        json_object_set_new(pass, "clock_xy", json_real(odd_blocks ? 0.024 : -xx * goes));
        json_object_set_new(pass, "clock_yy", json_real(odd_blocks ? 0.106 : xx * goes * goes));
        json_object_set_new(pass, "clock_blocks", json_real(4));
    }
    if (held_mhz > 0) {
        json_object_set_new(pass, "held_mhz", json_real(held_mhz));
        json_object_set_new(pass, "held_error", json_real(held_error));
    }
    if (r->own) json_object_set_new(row, "own", json_true());
    if (r->us > 0 && r->race) json_object_set_new(json_object_get(row, "pass"), "race", json_true());
    if (r->us > 0 && r->disturbed) json_object_set_new(json_object_get(row, "pass"), "disturbed", json_true());
    if (r->us > 0 && r->disturbed) json_object_set_new(json_object_get(row, "pass"), "missed", json_real(r->missed));
    return row;
}

/* Adds a pass; the first row is the baseline. */
static void add(int number, const made *rows) {
    json_t *list = json_array();
    for (int k = 0; k < MOST && rows[k].name; k++) json_array_append_new(list, row_of(number, &rows[k]));
    json_t *pass = json_pack("{s:i, s:s, s:s, s:i, s:i, s:i, s:f, s:{s:f, s:f}, s:o}", "pass", number, "baseline",
                             own ? own : rows[0].name, "baseline_variant", "", "flops", 1000000, "bytes_read", 3000,
                             "bytes_written", 1000, "seconds", 0.5, "spent_s", "timing", 0.25, "checking", 0.125,
                             "candidates", list);
    if (host) json_object_set_new(pass, "host", json_true());
    if (own) json_object_set_new(pass, "baseline_own", json_true());
    if (own || stands_in) json_object_set_new(pass, "baseline_elected", json_true());
    if (launch_us > 0)
        json_object_set_new(pass, "probe",
                            json_pack("{s:s, s:s, s:[iii], s:f, s:f, s:f, s:f}", "bound", "compute", "precision",
                                      "fp16", "shape", 8, 8, 8, "work", 1e-6, "launch_us", launch_us, "bound_ratio",
                                      0.5, "stored_tflops", 0.01));
    m = figures_add(m, pass);
    json_decref(pass);
    UNIT_CHECK(m != NULL);
}

static void end(void) {
    json_decref(m);
    m = NULL;
    launch_us = clock_mhz = held_mhz = 0;
    held_error = 0.001;
    host = stands_in = false;
    own = NULL;
}

static const json_t *row(const char *name) {
    const json_t *rows = json_object_get(m, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++)
        if (strcmp(json_string_value(json_object_get(json_array_get(rows, k), "name")), name) == 0)
            return json_array_get(rows, k);
    return NULL;
}

static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static double time_of(const char *name) { return number(json_object_get(row(name), "time_us"), "median"); }
static double ci_of(const char *name) { return number(json_object_get(row(name), "time_us"), "rel_ci95"); }

static void near(double got, double want) {
    if (!UNIT_CHECK(fabs(got / want - 1) < 1e-9)) printf("got %.12g, want %.12g\n", got, want);
}

/* The names that figures_choose gives, commas between. */
static bool beside;
static void chosen(const char *only, const char *want) {
    char names[256] = "";
    json_t *list = figures_choose(m, only, beside);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", k ? "," : "", text(json_array_get(list, k), "name"));
    }
    UNIT_TEXT(list ? names : "none", want);
    json_decref(list);
}

/* ---- times and ratios ---- */

static void one_pass_gives_figures_without_intervals(void) {
    add(1, ROWS({.name = "base", .us = 100}, {.name = "fast", .us = 80}));
    UNIT_INT(figures_passes(m), 1);
    near(time_of("base"), 100);
    near(time_of("fast"), 80);
    near(number(row("fast"), "ratio"), 0.8);
    UNIT_CHECK(!json_object_get(row("fast"), "ratio_ci") &&
               !json_object_get(json_object_get(row("base"), "time_us"), "rel_ci95"));
    UNIT_TEXT(text(row("fast"), "interval_from"), "1 pass");
    UNIT_TEXT(text(row("fast"), "quality"), "wide");
    near(number(row("fast"), "tflops"), 1e6 / 80e-6 / 1e12);
    near(number(row("fast"), "tbps"), 4e3 / 80e-6 / 1e12);
    UNIT_CHECK(json_object_get(row("fast"), "pass") == NULL && json_object_get(m, "pass") == NULL);
    UNIT_TEXT(text(m, "best"), "base"); /* one pass proves nothing */
    UNIT_TEXT(text(figures_leader(m), "name"), "fast");
    UNIT_CHECK(isinf(figures_open(m)));
    chosen(NULL, "base,fast");
    end();
}

/* The clock was another one in each pass: ratios do not see it. */
static void ratios_are_within_a_pass(void) {
    static const double clock[] = {1, 1.2, 1.1, 1.1};
    for (int k = 0; k < 4; k++)
        add(k + 1, ROWS({.name = "base", .us = 100 * clock[k]}, {.name = "fast", .us = 80 * clock[k]}));
    near(number(row("fast"), "ratio"), 0.8);
    UNIT_CHECK(number(row("fast"), "ratio_ci") < 1e-6);
    near(time_of("base"), 100 * pow(1.2 * 1.1 * 1.1, 0.25));
    near(time_of("fast"), 0.8 * time_of("base")); /* by the ratio, with the baseline's interval */
    near(ci_of("fast"), ci_of("base"));
    UNIT_TEXT(text(row("base"), "quality"), "wide");
    UNIT_TEXT(text(m, "best"), "fast");
    near(number(m, "ratio"), 0.8);
    near(number(m, "best_time_us"), time_of("fast"));
    near(number(m, "baseline_time_us"), time_of("base"));
    UNIT_CHECK(figures_open(m) > 0.01);
    UNIT_TEXT(json_string_value(json_array_get(json_object_get(m, "undecided"), 0)), "time");
    near(number(m, "seconds"), 2);
    near(number(json_object_get(m, "spent_s"), "timing"), 1);
    end();
}

static void a_pass_that_chose_says_nothing_of_the_chosen(void) {
    add(1, ROWS({.name = "base", .us = 100}, {.name = "lucky", .us = 70}, {.name = "loser", .us = 150, .race = true}));
    for (int k = 2; k <= 4; k++)
        add(k, ROWS({.name = "base", .us = 100 + 0.01 * k}, {.name = "lucky", .us = 90 + 0.02 * k}));
    UNIT_CHECK(fabs(number(row("lucky"), "ratio") - 0.9) < 0.001);
    UNIT_TEXT(text(row("lucky"), "interval_from"), "3 passes");
    UNIT_TEXT(text(row("base"), "interval_from"), "4 passes");
    UNIT_TEXT(text(row("base"), "quality"), "good");
    near(number(row("loser"), "ratio"), 1.5); /* of the race, which is all there is */
    UNIT_TEXT(text(row("loser"), "interval_from"), "1 pass");
    UNIT_TEXT(text(row("loser"), "status"), "OK");
    chosen(NULL, "base,lucky");
    UNIT_CHECK(figures_open(m) == 0);
    end();
}

/* Several by name: each has all passes, whichever wins. */
static void those_beside_each_other_are_all_chosen(void) {
    for (int k = 1; k <= 4; k++)
        add(k, ROWS({.name = "base", .us = 100}, {.name = "slow", .us = 300}, {.name = "slower", .us = 500},
                    {.name = "other", .us = 400}, {.name = "fast", .us = 50}));
    chosen("slow,slower", "base,fast");
    beside = true;
    chosen("slow,slower", "base,fast,slow,slower");
    beside = false;
    end();
}

/* Quartiles of the blocks, as means over passes, and outliers as their sum; none where a pass does not tell. */
static void blocks_are_told(void) {
    add(1, ROWS({.name = "base", .us = 100}));
    UNIT_CHECK(!json_object_get(json_object_get(row("base"), "time_us"), "p25"));
    end();
    for (int k = 1; k <= 2; k++) {
        json_t *pass = json_pack("{s:i, s:s, s:s, s:[{s:s, s:s, s:s, s:{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, "
                                 "s:i, s:i, s:[{s:f}]}}]}",
                                 "pass", k, "baseline", "base", "baseline_variant", "", "candidates", "name", "base",
                                 "variant", "", "status", "OK", "pass", "pass", k, "time_us", 100.0, "mean_us", 100.0,
                                 "min_us", 90.0, "p05_us", 91.0, "p25_us", 94.0 + k, "p50_us", 100.0, "p75_us", 105.0,
                                 "blocks", 10, "launches", 50, "outliers", k, "samples", "time_us", 100.0);
        m = figures_add(m, pass);
        json_decref(pass);
    }
    const json_t *time = json_object_get(row("base"), "time_us");
    near(number(time, "p25"), 95.5);
    near(number(time, "p50"), 100);
    near(number(time, "p75"), 105);
    UNIT_INT(json_integer_value(json_object_get(time, "outliers")), 3);
    for (size_t k = 0; k < 2; k++) /* blocks go to a file of their own */
        UNIT_CHECK(!json_object_get(json_array_get(json_object_get(row("base"), "passes"), k), "samples"));
    end();
}

/* What is wanted decides what is good and what is open, and no figure. */
static void a_target_decides_what_is_open(void) {
    static const double times[] = {100, 102, 101, 99};
    for (int k = 0; k < 4; k++) add(k + 1, ROWS({.name = "base", .us = times[k]}));
    const double ci = ci_of("base"), us = time_of("base");
    UNIT_CHECK(ci > 0.01 && ci < 0.05 && figures_wide(m) && figures_open(m) > 0);
    figures_aim(m, 0.05);
    UNIT_CHECK(!figures_wide(m) && figures_open(m) == 0);
    UNIT_TEXT(text(row("base"), "quality"), "good");
    UNIT_INT(json_array_size(json_object_get(m, "undecided")), 0);
    near(number(m, "target_ci"), 0.05);
    near(ci_of("base"), ci);
    near(time_of("base"), us);
    add(5, ROWS({.name = "base", .us = 100})); /* a later pass keeps it */
    UNIT_CHECK(!figures_wide(m));
    figures_aim(m, 0);
    UNIT_CHECK(figures_wide(m) && !json_object_get(m, "target_ci"));
    UNIT_TEXT(text(row("base"), "quality"), "wide");
    near(figures_timed_s(m), 5 * 0.25);
    end();
}

/* Where no library has such a kernel, the baseline too was chosen for its time. */
static void an_own_baseline_was_chosen_too(void) {
    own = "base";
    add(1, ROWS({.name = "base", .us = 90}, {.name = "other", .us = 101}));
    for (int k = 2; k <= 5; k++) {
        near(time_of("base"), exp((log(90) + (k - 2) * log(100)) / (k - 1))); /* of few passes none can be spared */
        add(k, ROWS({.name = "base", .us = 100}, {.name = "other", .us = 101}));
        near(number(row("other"), "ratio"), 1.01);
    }
    near(time_of("base"), 100);
    end();
}

/* The first pass chose the worse one: later ones elect the better, and what is of another library never. */
static void a_better_own_baseline_is_elected(void) {
    for (int better = 0; better < 2; better++) {
        own = "base";
        for (int k = 1; k <= 6; k++) {
            const double other = k > 1 && better ? 97 + 0.1 * k : 101;
            launch_us = 50;
            add(k, ROWS({.name = "base", .us = 100}, {.name = "other", .us = other, .own = true},
                        {.name = "foreign", .us = 90 + 0.1 * k}));
            UNIT_TEXT(text(m, "baseline"), k >= 4 && better ? "other" : "base");
            /* whichever it is, within a pass the bound is the same time */
            if (k == 4) UNIT_CHECK(fabs(number(json_object_get(m, "probe"), "bound_us") / 50 - 1) < 0.01);
        }
        UNIT_CHECK(json_object_get(row(better ? "other" : "base"), "ratio") == NULL);
        if (better) UNIT_CHECK(number(row("base"), "ratio") > 1.02 && number(row("base"), "ratio") < 1.03);
        UNIT_TEXT(text(m, "best"), "foreign");
        end();
    }
}

/* Where a library's default was off, the best of its other choices is the baseline: none of them is a gain over
 * another. */
static void a_stand_in_is_the_best_of_its_library(void) {
    stands_in = true;
    for (int k = 1; k <= 6; k++) {
        add(k,
            ROWS({.name = "base", .us = 100}, {.name = "base", .variant = "engine=4", .us = k > 1 ? 60 + 0.01 * k : 50},
                 {.name = "foreign", .us = 59.5 + 0.01 * k, .own = true},
                 {.name = "base", .variant = "engine=2,form=fused", .us = 50 + 0.01 * k}));
        UNIT_TEXT(text(m, "baseline_variant"), k >= 4 ? "engine=4" : "");
    }
    UNIT_TEXT(text(m, "baseline"), "base");
    UNIT_CHECK(fabs(number(m, "baseline_time_us") - 60.04) < 0.001); /* without the pass that had chosen it */
    UNIT_TEXT(text(m, "best_variant"),
              "engine=2,form=fused"); /* another form is a gain, an own kernel 0.8 % ahead none */
    end();
    for (int k = 1; k <= 6; k++) /* where it was right, its own other choices are gains */
        add(k, ROWS({.name = "base", .us = 100}, {.name = "base", .variant = "engine=4", .us = 60 + 0.01 * k}));
    UNIT_TEXT(text(m, "baseline_variant"), "");
    UNIT_TEXT(text(m, "best_variant"), "engine=4");
    end();
}

/* Where it is not known well enough that a load holds, and the time therefore, later passes ask again: for whole
 * seconds, three times at most. What is known best is believed. */
static void a_clock_that_is_not_known_is_asked_for_again(void) {
    static const double error[] = {0.03, 0.03, 0.03, 0.03, 0.004}, mhz[] = {1400, 1400, 1400, 1400, 1500};
    clock_mhz = 1600;
    for (int k = 0; k < 5; k++) {
        held_mhz = k == 0 || k == 4 ? mhz[k] : 0, held_error = error[k];
        add(k + 1, ROWS({.name = "base", .us = 100 * pow(1600.0 / clock_mhz, 0.9)}));
        UNIT_CHECK(figures_hold_again(m) == (k == 3)); /* of fewer passes none can say */
        UNIT_CHECK(figures_guessed(m) == (k == 3));    /* and no other pass would narrow it */
        near(number(m, "clock_mhz"), mhz[k]);
        clock_mhz -= 20;
    }
    end();
    for (int holds = 2; holds <= 3; holds++) { /* three times are enough */
        clock_mhz = 1600, held_error = 0.03;
        for (int k = 0; k < 4; k++) {
            held_mhz = k < holds ? 1500 : 0;
            add(k + 1, ROWS({.name = "base", .us = 100}));
        }
        UNIT_CHECK(figures_hold_again(m) == (holds < 3));
        end();
    }
    add(1, ROWS({.name = "base", .us = 100}));
    UNIT_CHECK(!figures_hold_again(m)); /* none was asked for */
    end();
}

static void a_yardstick_says_what_bounds(void) {
    static const double clock[] = {1, 1.2, 1.1, 1.1};
    const double mean = pow(1.2 * 1.1 * 1.1, 0.25);
    for (int k = 0; k < 4; k++) {
        launch_us = 50 * clock[k];
        add(k + 1, ROWS({.name = "base", .us = 100 * clock[k]}, {.name = "fast", .us = 80 * clock[k]}));
    }
    near(time_of("base"), 100 * mean);
    const json_t *probe = json_object_get(m, "probe");
    near(number(probe, "bound_us"), 0.5 * 100 * mean);
    near(number(probe, "tflops"), 1 / (50 * mean));
    UNIT_INT(json_array_size(json_object_get(probe, "passes")), 4);
    end();
}

/* What a pass saw is brought to one clock: that which the first pass saw held, or the highest. */
static void a_time_belongs_to_a_clock(void) {
    static const double mhz[] = {1400, 1980, 1600, 1750};
    for (int held = 0; held < 2; held++) {
        for (int k = 0; k < 4; k++) {
            clock_mhz = mhz[k], held_mhz = held && k == 0 ? 1500 : 0;
            const double us = 100 * pow(1500 / mhz[k], goes);
            add(k + 1, ROWS({.name = "base", .us = us}, {.name = "fast", .us = 0.8 * us}));
        }
        const double at = held ? 1500 : 1980, want = 100 * pow(1500 / at, goes);
        UNIT_CHECK(fabs(time_of("base") / want - 1) < 0.002 && fabs(time_of("fast") / want / 0.8 - 1) < 0.002);
        UNIT_CHECK(ci_of("base") < 0.005);
        UNIT_TEXT(text(row("base"), "time_from"), "clock");
        UNIT_TEXT(text(row("base"), "quality"), "good");
        near(number(m, "clock_mhz"), at);
        UNIT_CHECK(fabs(number(m, "clock_slope") - goes) < 0.02);
        near(number(row("fast"), "clock_mhz"), at);
        end();
    }
    for (int k = 0; k < 5;
         k++) { /* a light load overshoots its clock in one pass: the long run is that of the others */
        clock_mhz = k == 0 ? 2080 : 1990 + k;
        add(k + 1, ROWS({.name = "base", .us = 100 * pow(1990 / clock_mhz, goes)}));
    }
    UNIT_CHECK(number(m, "clock_mhz") < 1996 && fabs(time_of("base") / 100 - 1) < 0.002 && ci_of("base") < 0.005);
    end();
    for (int k = 0; k < 26; k++) { /* something else happened in one pass: it does not tell how the time goes */
        clock_mhz = k == 1 ? 1595 : 1440 + 80 * (k % 7) / 6.0, held_mhz = k == 0 ? 1330 : 0;
        few_xx = 1e-5, odd_blocks = k == 1;
        const double us = 100 * pow(1500 / clock_mhz, goes);
        add(k + 1, ROWS({.name = "base", .us = k == 1 ? 1.33 * us : us}));
    }
    UNIT_CHECK(fabs(number(m, "clock_slope") - goes) < 0.05);
    UNIT_CHECK(fabs(time_of("base") / (100 * pow(1500 / 1330.0, goes)) - 1) < 0.015);
    few_xx = 0, odd_blocks = false;
    end();
    for (int k = 0; k < 4; k++) { /* it hardly moved: the time is what was seen */
        clock_mhz = 1980 - k;
        add(k + 1, ROWS({.name = "base", .us = 100}, {.name = "fast", .us = 80}));
    }
    UNIT_TEXT(text(row("base"), "time_from"), "plain");
    end();
    add(1, ROWS({.name = "base", .us = 100})); /* a pass that knows no clock: none is told */
    clock_mhz = 1500;
    add(2, ROWS({.name = "base", .us = 100}));
    UNIT_CHECK(!json_object_get(m, "clock_mhz"));
    end();
}

/* A host that was lent to others for some passes: what disturbs only adds, so these do not count. */
static void slow_passes_of_a_host_do_not_count(void) {
    static const double at[] = {1, 1.4, 1.01, 1.6, 1.02, 1.3};
    for (int k = 0; k < 6; k++) {
        host = true;
        add(k + 1, ROWS({.name = "base", .us = 100 * at[k]}, {.name = "fast", .us = (k % 2 ? 90 : 80) * at[k]}));
        UNIT_CHECK(figures_lost(m) == (k == 5)); /* which of the first are slow, three that agree tell */
    }
    near(time_of("base"), 100 * pow(1.01 * 1.02, 1.0 / 3));
    near(number(row("fast"), "ratio"), 0.8);
    UNIT_CHECK(ci_of("base") > 0.03 && figures_open(m) > 0); /* nothing tells that these were undisturbed */
    UNIT_TEXT(text(row("base"), "interval_from"), "3 passes");
    UNIT_INT(json_array_size(json_object_get(row("base"), "passes")), 6); /* they are kept */
    end();
    for (int k = 0; k < 3; k++) { /* no three agree */
        host = true;
        add(k + 1, ROWS({.name = "base", .us = 100 * (1 + k)}));
    }
    UNIT_TEXT(text(row("base"), "interval_from"), "3 passes");
    end();
}

/* An own baseline's first pass chose it, and is left out of five; where it alone was undisturbed, it is the figure. */
static void a_chosen_baseline_has_a_figure_beside_disturbed_passes(void) {
    host = true, own = "base";
    for (int k = 0; k < 5; k++)
        add(k + 1, ROWS({.name = "base", .us = k > 0 ? 240 : 100, .disturbed = k > 0, .own = true}));
    near(time_of("base"), 100);
    UNIT_TEXT(text(row("base"), "interval_from"), "1 pass");
    end();
}

/* Nor do passes that hardly had an undisturbed block, where others had some: of two passes one is the figure. */
static void disturbed_passes_of_a_host_do_not_count(void) {
    host = true;
    add(1, ROWS({.name = "base", .us = 250, .disturbed = true}));
    near(time_of("base"), 250);   /* there is nothing better */
    UNIT_CHECK(!figures_lost(m)); /* a first pass is none of the later ones */
    add(2, ROWS({.name = "base", .us = 100}));
    near(time_of("base"), 100);
    UNIT_CHECK(!figures_lost(m));
    UNIT_TEXT(text(row("base"), "interval_from"), "1 pass");
    UNIT_CHECK(isinf(figures_open(m)));
    host = true;
    add(3, ROWS({.name = "base", .us = 104, .disturbed = true})); /* no slower than what was not disturbed */
    UNIT_CHECK(figures_lost(m));
    UNIT_TEXT(text(row("base"), "interval_from"), "2 passes");
    end();
    for (int k = 0; k < 2; k++) add(k + 1, ROWS({.name = "base", .us = 100 + 2 * k, .disturbed = k == 0}));
    UNIT_TEXT(text(row("base"), "interval_from"), "2 passes"); /* of a device they do */
    end();
}

/* All were disturbed alike: that they agree says nothing of what they have in common. */
static void where_all_were_disturbed_the_interval_reaches_to_what_was_missed(void) {
    for (int k = 0; k < 4; k++) {
        host = true;
        add(k + 1, ROWS({.name = "base", .us = 100 + k % 2, .disturbed = true, .missed = 0.5 - 0.05 * k}));
    }
    UNIT_CHECK(ci_of("base") > 0.35 && ci_of("base") < 0.36 && figures_open(m) > 0);
    host = true;
    add(5, ROWS({.name = "base", .us = 100}));
    UNIT_CHECK(ci_of("base") < 0.03);
    end();
    for (int k = 0; k < 4; k++) /* a device says that of itself */
        add(k + 1, ROWS({.name = "base", .us = 100 + k % 2, .disturbed = true, .missed = 0.5}));
    UNIT_CHECK(ci_of("base") < 0.03);
    end();
}

/* Nor are they taken away from what ran in these alone. */
static void what_ran_in_a_slow_pass_has_its_figure(void) {
    for (int k = 0; k < 4; k++) {
        host = true;
        if (k == 0) add(1, ROWS({.name = "base", .us = 150}, {.name = "late", .us = 300, .race = true}));
        if (k > 0) add(k + 1, ROWS({.name = "base", .us = 100}));
    }
    near(time_of("base"), 100);
    near(number(row("late"), "ratio"), 2);
    near(time_of("late"), 200);
    UNIT_CHECK(number(json_object_get(row("late"), "time_us"), "batches") >= 1);
    end();
}

static void what_drifts_says_so(void) {
    for (int k = 0; k < 6; k++) add(k + 1, ROWS({.name = "base", .us = 100 + 2 * k}));
    UNIT_TEXT(text(row("base"), "quality"), "drifting");
    end();
}

static void addresses_are_told_where_they_decide(void) {
    static const double at[] = {0.9, 0.91, 0.95, 0.92};
    for (int k = 0; k < 4; k++)
        add(k + 1,
            ROWS({.name = "base", .us = 100}, {.name = "moves", .us = 100 * at[k]}, {.name = "stays", .us = 97}));
    const json_t *a = json_object_get(row("moves"), "addresses");
    near(number(a, "best"), 0.91); /* the first pass chose it */
    near(number(a, "worst"), 0.95);
    UNIT_CHECK(json_object_get(row("stays"), "addresses") == NULL);
    end();
}

/* ---- what wins ---- */

/* All of the interval is below the margin, or it is not proven. */
static void proven_with_all_of_its_interval(void) {
    static const double spread[] = {0, 0.005, -0.005, 0};
    for (int wide = 0; wide < 2; wide++) {
        for (int k = 0; k < 4; k++)
            add(k + 1,
                ROWS({.name = "base", .us = 100}, {.name = "fast", .us = 97 * (1 + spread[k] * (wide ? 4 : 1) / 2)}));
        const double reach = number(row("fast"), "ratio") * (1 + number(row("fast"), "ratio_ci"));
        UNIT_CHECK((reach < 0.98) == !wide);
        UNIT_TEXT(text(m, "best"), wide ? "base" : "fast");
        UNIT_TEXT(text(m, "best_approach"), wide ? "NONE" : "CUSTOM_KERNEL");
        UNIT_CHECK((json_object_get(m, "ratio") != NULL) == !wide);
        UNIT_INT(json_array_size(json_object_get(m, "undecided")), wide);
        UNIT_TEXT(text(json_object_get(m, "rival"), "name") ? text(json_object_get(m, "rival"), "name") : "none",
                  wide ? "fast" : "none");
        UNIT_CHECK(wide ? figures_open(m) > 0.02 : figures_open(m) == 0);
        end();
    }
}

static void a_small_lead_is_none(void) {
    for (int k = 1; k <= 4; k++) add(k, ROWS({.name = "base", .us = 100}, {.name = "near", .us = 98.5 + 0.01 * k}));
    UNIT_TEXT(text(m, "best"), "base");
    UNIT_TEXT(text(json_object_get(m, "rival"), "name"), "near");
    UNIT_INT(json_array_size(json_object_get(m, "undecided")), 0);
    UNIT_CHECK(figures_open(m) == 0);
    UNIT_TEXT(text(figures_leader(m), "name"), "near");
    end();
}

/* Of two that beat the baseline the faster one wins, the other one is told as its rival. */
static void the_second_is_the_rival(void) {
    for (int k = 1; k <= 4; k++)
        add(k, ROWS({.name = "base", .us = 100}, {.name = "a", .us = 80 + 0.01 * k}, {.name = "b", .us = 81 - 0.01 * k},
                    {.name = "c", .us = 95}));
    UNIT_TEXT(text(m, "best"), "a");
    UNIT_TEXT(text(json_object_get(m, "rival"), "name"), "b");
    near(number(json_object_get(m, "rival"), "ratio"), number(row("b"), "ratio"));
    end();
}

/* A rival that lost is seen often enough that it is known how far behind it is, and left out then. */
static void what_lost_is_left_out(void) {
    add(1, ROWS({.name = "base", .us = 100}, {.name = "slow", .us = 120}, {.name = "slower", .us = 125},
                {.name = "out", .us = 300, .race = true}));
    chosen(NULL, "base,slow");
    add(2, ROWS({.name = "base", .us = 100}, {.name = "slow", .us = 120}));
    chosen(NULL, "base,slow");
    add(3, ROWS({.name = "base", .us = 100}, {.name = "slow", .us = 121}));
    chosen(NULL, "base");
    chosen("slow,other", "base,slow"); /* it was asked for */
    end();
}

/* Proven or not, it is too far behind the one that leads: nothing is open. */
static void what_cannot_win_any_more_is_not_open(void) {
    add(1, ROWS({.name = "base", .us = 100}, {.name = "behind", .us = 87}, {.name = "fast", .us = 79}));
    for (int k = 2; k <= 4; k++) add(k, ROWS({.name = "base", .us = 100}, {.name = "fast", .us = 79 + 0.01 * k}));
    UNIT_INT(json_array_size(json_object_get(m, "undecided")), 0);
    UNIT_CHECK(figures_open(m) == 0);
    chosen(NULL, "base,fast");
    end();
}

static void no_more_than_a_few_are_chosen(void) {
    add(1, ROWS({.name = "base", .us = 100}, {.name = "e", .us = 84}, {.name = "d", .us = 83}, {.name = "c", .us = 82},
                {.name = "b", .us = 81}, {.name = "a", .us = 80}));
    chosen(NULL, "base,a,b,c");
    end();
}

/* ---- what fails ---- */

static void a_row_that_goes_wrong_loses_its_time(void) {
    for (int k = 1; k <= 3; k++) add(k, ROWS({.name = "base", .us = 100}, {.name = "bad", .us = 50}));
    UNIT_TEXT(text(m, "best"), "bad");
    add(4, ROWS({.name = "base", .us = 100}, {.name = "bad", .status = "WRONG", .code = "samples"}));
    UNIT_TEXT(text(m, "best"), "base");
    UNIT_TEXT(text(row("bad"), "status"), "WRONG");
    UNIT_CHECK(!json_object_get(row("bad"), "time_us") && !json_object_get(row("bad"), "passes") &&
               !json_object_get(row("bad"), "ratio"));
    chosen(NULL, "base");
    end();
}

/* No memory for it, this time: what was seen of it stays. */
static void what_a_pass_had_no_room_for_keeps_its_time(void) {
    for (int k = 1; k <= 3; k++) add(k, ROWS({.name = "base", .us = 100}, {.name = "fast", .us = 50}));
    add(4, ROWS({.name = "base", .us = 100}, {.name = "fast", .status = "ERROR", .code = "memory"}));
    add(5, ROWS({.name = "base", .us = 100}, {.name = "fast", .status = "SKIPPED", .code = "budget"}));
    UNIT_TEXT(text(m, "best"), "fast");
    UNIT_TEXT(text(row("fast"), "status"), "OK");
    UNIT_INT(json_array_size(json_object_get(row("fast"), "passes")), 3);
    end();
}

static void without_a_baseline(void) {
    add(1, ROWS({.name = "base", .status = "CRASHED", .code = "signal"}, {.name = "a", .us = 80},
                {.name = "b", .us = 70}));
    UNIT_TEXT(text(m, "best"), "b");
    UNIT_CHECK(!json_object_get(m, "ratio") && !json_object_get(m, "baseline_time_us") && !json_object_get(m, "rival"));
    near(time_of("a"), 80);
    chosen(NULL, "none");
    UNIT_CHECK(figures_open(m) == 0);
    end();
}

/* ---- what cannot have been meant ---- */

static json_t *parsed(const char *what) {
    json_t *x = json_loads(what, JSON_DECODE_ANY, NULL);
    UNIT_CHECK(x != NULL);
    return x;
}

/* All that can be asked. */
static void ask_everything(void) {
    json_t *list = figures_choose(m, "x", false);
    (void)figures_leader(m);
    UNIT_CHECK(!isnan(figures_open(m)));
    (void)figures_passes(m);
    json_decref(list);
    char *dump = json_dumps(m, JSON_ENCODE_ANY);
    UNIT_CHECK(dump != NULL);
    free(dump);
}

static void hostile_json_does_no_harm(void) {
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"pass\":\"one\",\"candidates\":{},\"probe\":[],\"baseline\":7}",
        "{\"pass\":1e300,\"candidates\":[1,null,[],\"x\",{}],\"baseline\":\"\"}",
        "{\"pass\":-9223372036854775808,\"candidates\":[{\"name\":\"x\",\"status\":\"OK\",\"pass\":7}]}",
        "{\"pass\":1,\"baseline\":\"x\",\"candidates\":[{\"name\":\"x\",\"variant\":\"\",\"status\":\"OK\",\"pass\":"
        "{\"pass\":1,\"time_us\":\"NaN\"},\"passes\":{}}]}",
        "{\"pass\":2,\"baseline\":\"x\",\"candidates\":[{\"name\":\"x\",\"status\":\"OK\",\"pass\":{\"pass\":1,"
        "\"time_us\":-1}},{\"name\":\"y\",\"status\":\"OK\",\"passes\":[1,{},null],\"pass\":{\"pass\":1,\"time_us\":"
        "1e308,\"throttle\":[]}}],\"probe\":{\"launch_us\":{},\"launches\":\"x\",\"passes\":3}}",
        "{\"pass\":3,\"baseline\":\"x\",\"spent_s\":[],\"seconds\":\"x\",\"probe\":{\"launches\":1e-300,\"shape\":3},"
        "\"candidates\":[{\"name\":\"x\",\"status\":\"OK\",\"time_us\":5,\"pass\":{\"pass\":3,\"time_us\":1e-300,"
        "\"throttle\":\"power\"}},{\"name\":\"y\",\"status\":[],\"reason\":3}]}",
        "{\"passes\":[[]],\"candidates\":\"x\",\"probe\":{\"passes\":[{\"launches\":1}],\"run_us\":-1},\"baseline\":"
        "\"x\"}"};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    for (int a = 0; a < TEXTS; a++)
        for (int b = 0; b < TEXTS; b++) {
            json_t *first = parsed(texts[a]), *second = parsed(texts[b]);
            m = figures_add(NULL, first);
            ask_everything();
            m = figures_add(m, second);
            ask_everything();
            end();
            m = json_deep_copy(first); /* as it comes from a file */
            ask_everything();
            m = figures_add(m, second);
            ask_everything();
            json_decref(first);
            json_decref(second);
            end();
        }
}

static void very_many_of_all(void) {
    enum { ROWS = 10000, PASSES = 100 };
    json_t *pass = json_pack("{s:i, s:s, s:s}", "pass", 1, "baseline", "r0", "baseline_variant", ""),
           *rows = json_array();
    for (int k = 0; k < ROWS; k++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", k);
        json_array_append_new(rows, row_of(1, &(made){.name = name, .us = 100 + k % 7}));
    }
    json_object_set_new(pass, "candidates", rows);
    m = figures_add(NULL, pass);
    ask_everything();
    UNIT_INT(json_array_size(json_object_get(m, "candidates")), ROWS);
    json_decref(pass);
    end();
    for (int k = 1; k <= PASSES; k++) add(k, ROWS({.name = "base", .us = 100 + k % 3}, {.name = "fast", .us = 80}));
    ask_everything();
    UNIT_INT(figures_passes(m), PASSES);
    UNIT_TEXT(text(m, "best"), "fast");
    end();
}

int main(void) {
    UNIT_RUN(one_pass_gives_figures_without_intervals);
    UNIT_RUN(a_target_decides_what_is_open);
    UNIT_RUN(those_beside_each_other_are_all_chosen);
    UNIT_RUN(blocks_are_told);
    UNIT_RUN(ratios_are_within_a_pass);
    UNIT_RUN(a_pass_that_chose_says_nothing_of_the_chosen);
    UNIT_RUN(an_own_baseline_was_chosen_too);
    UNIT_RUN(a_better_own_baseline_is_elected);
    UNIT_RUN(a_stand_in_is_the_best_of_its_library);
    UNIT_RUN(a_clock_that_is_not_known_is_asked_for_again);
    UNIT_RUN(a_time_belongs_to_a_clock);
    UNIT_RUN(a_yardstick_says_what_bounds);
    UNIT_RUN(slow_passes_of_a_host_do_not_count);
    UNIT_RUN(disturbed_passes_of_a_host_do_not_count);
    UNIT_RUN(a_chosen_baseline_has_a_figure_beside_disturbed_passes);
    UNIT_RUN(where_all_were_disturbed_the_interval_reaches_to_what_was_missed);
    UNIT_RUN(what_ran_in_a_slow_pass_has_its_figure);
    UNIT_RUN(what_drifts_says_so);
    UNIT_RUN(addresses_are_told_where_they_decide);
    UNIT_RUN(proven_with_all_of_its_interval);
    UNIT_RUN(a_small_lead_is_none);
    UNIT_RUN(the_second_is_the_rival);
    UNIT_RUN(what_lost_is_left_out);
    UNIT_RUN(what_cannot_win_any_more_is_not_open);
    UNIT_RUN(no_more_than_a_few_are_chosen);
    UNIT_RUN(a_row_that_goes_wrong_loses_its_time);
    UNIT_RUN(what_a_pass_had_no_room_for_keeps_its_time);
    UNIT_RUN(without_a_baseline);
    UNIT_RUN(hostile_json_does_no_harm);
    UNIT_RUN(very_many_of_all);
    return unit_end();
}
