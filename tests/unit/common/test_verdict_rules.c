/* What a verdict says of itself: which rule decided, and every threshold with the figure that it was compared with. */
#include "common/amount.h"
#include "tests/unit/common/verdict_fixture.h"

static const char *rule_of(const verdict_facts *f) {
    const verdict v = judge(f);
    return verdict_rule(v.rule);
}

static void every_rule_has_its_name(void) {
    verdict_facts f = product(95);
    UNIT_TEXT(rule_of(&f), "at the ceiling");
    f.baseline_ci = 0.06;
    UNIT_TEXT(rule_of(&f), "at the ceiling or not: open");
    f = product(50);
    UNIT_TEXT(rule_of(&f), "dense product");
    f.op = "attention";
    UNIT_TEXT(rule_of(&f), "attention");
    f.op = "norm";
    UNIT_TEXT(rule_of(&f), "worth a kernel");
    f.model_us = 1e6;
    UNIT_TEXT(rule_of(&f), "anything else");
    f.ceiling_ci = 0.2;
    UNIT_TEXT(rule_of(&f), "ceiling not known well enough");
    f.bound = "launch";
    UNIT_TEXT(rule_of(&f), "bound by launching");
    f.bound = "data";
    UNIT_TEXT(rule_of(&f), "bound by its data");
    f.bound = "launch";
    f.fusion = true;
    UNIT_TEXT(rule_of(&f), "fusion without a gain");
    f.fusion = false, f.ratio = 0.5;
    UNIT_TEXT(rule_of(&f), "proven, and bound by launching");
    f.bound = "compute";
    UNIT_TEXT(rule_of(&f), "proven");
    f.measured = false;
    UNIT_TEXT(rule_of(&f), "not measured");
    f.no_work = true;
    UNIT_TEXT(rule_of(&f), "nothing to do");
    int count = 0;
    while (verdict_rule(count)) count++;
    UNIT_INT(count, 14);
    UNIT_CHECK(!verdict_rule(-1));
}

static bool near(double x, double want) { return fabs(x - want) < 1e-12; }

static void checks_are_what_was_compared(void) {
    verdict_thresholds t = verdict_defaults;
    verdict_check checks[VERDICT_CHECKS];
    verdict_facts f = product(89.8);
    f.baseline_ci = 0.005, f.ratio = 0.985, f.ratio_ci = 0.01, f.rival_ratio = 0.99, f.launch_us = 8.98;
    t.high_potential = 0.2;
    const verdict v = verdict_of(&f, &t);
    verdict_checks(&v, &t, checks);
    static const struct {
        const char *what, *effect;
        double x, half, threshold;
        bool touches, nearby;
    } want[VERDICT_CHECKS] = {
        {"saved by the best", "proven", 0.015, 0.00985, 0.02, true, true},
        {"saved by its rival", "might win", 0.01, 0, 0.02, false, false},
        {"launching in the ceiling", "bound by launching", 0.1, 0, 0.5, false, false},
        {"efficiency", "at the ceiling", 0.898, 0.898 * 0.005, 0.9, true, true},
        {"proven gain", "HIGH", 0, 0, 0.05, false, false},
        {"proven gain", "MEDIUM", 0, 0, 0.01, false, false},
        {"potential gain", "HIGH", 0.102, 0.005 * 0.898, 0.2, false, false},
        {"potential gain", "MEDIUM", 0.102, 0.005 * 0.898, 0.03, false, false},
    };
    for (int k = 0; k < VERDICT_CHECKS; k++) {
        const verdict_figure figure = v.figures[checks[k].figure];
        UNIT_TEXT(checks[k].what, want[k].what);
        UNIT_TEXT(checks[k].effect, want[k].effect);
        UNIT_CHECK(near(figure.x, want[k].x));
        UNIT_CHECK(near(figure.half, want[k].half));
        UNIT_CHECK(near(checks[k].threshold, want[k].threshold));
        UNIT_INT(checks[k].touches, want[k].touches);
        UNIT_INT(checks[k].near, want[k].nearby);
    }
    UNIT_CHECK(v.borderline);
}

/* Whatever place a long name is cut at, characters stay whole; a sentence that fits loses nothing. */
static void sentences_end_at_a_character(void) {
    static const char *const letters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    char name[512];
    for (size_t k = 0; k < sizeof letters / sizeof letters[0]; k++) {
        for (int shift = 0; shift < 4; shift++) {
            int used = snprintf(name, sizeof name, "%.*s", shift, "xyz");
            while (used < 400) used += snprintf(name + used, sizeof name - (size_t)used, "%s", letters[k]);
            verdict_facts f = product(95);
            f.ratio = 0.5, f.best_name = name;
            const verdict v = judge(&f);
            const size_t n = strlen(v.recommendation), front = strlen("Use ") + (size_t)shift,
                         width = strlen(letters[k]);
            UNIT_CHECK(n <= 319 && n > 319 - width);
            UNIT_INT((n - front) % width, 0);
            UNIT_TEXT(v.recommendation + n - width, letters[k]);
        }
    }
    verdict_facts f = product(95);
    f.ratio = 0.5, f.best_name = "caf\xc3\xa9", f.baseline_name = "\xe2\x82\xac";
    UNIT_TEXT(judge(&f).recommendation, "Use caf\xc3\xa9: proven to take 50.0 % less time than \xe2\x82\xac.");
}

/* The winner, the totals and the verdict ask the same: whether all of the ratio's interval is below 0.98. */
static void one_rule_of_a_gain(void) {
    static const struct {
        double ratio, ci;
        verdict_gain gain;
    } cases[] = {{0.9799, 0, VERDICT_PROVEN_GAIN}, {0.9801, 0, VERDICT_NO_GAIN},     {0.97, 0.01, VERDICT_PROVEN_GAIN},
                 {0.97, 0.011, VERDICT_OPEN_GAIN}, {0.99, 0.011, VERDICT_OPEN_GAIN}, {0.99, 0.009, VERDICT_NO_GAIN},
                 {1.2, 0.1, VERDICT_NO_GAIN},      {1.2, 0.2, VERDICT_OPEN_GAIN},    {0.3, NAN, VERDICT_OPEN_GAIN},
                 {0.3, 1, VERDICT_OPEN_GAIN},      {1.9, NAN, VERDICT_OPEN_GAIN},    {NAN, 0.01, VERDICT_NO_GAIN},
                 {0, 0, VERDICT_NO_GAIN},          {0.3, 0.99, VERDICT_PROVEN_GAIN}, {0.3, -0.1, VERDICT_OPEN_GAIN}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        verdict_facts f = product(95);
        f.ratio = cases[k].ratio, f.ratio_ci = cases[k].ci;
        UNIT_INT(verdict_gain_of(f.ratio, f.ratio_ci, verdict_defaults.margin), cases[k].gain);
        UNIT_INT(judge(&f).proven_gain_us > 0, cases[k].gain == VERDICT_PROVEN_GAIN);
    }
}

/* What is independent adds up as the root of squares, what is common or not known as it is. */
static void sums_have_an_interval(void) {
    verdict_sum s = {0};
    UNIT_CHECK(verdict_sum_ci(&s) == 0);
    for (int k = 0; k < 4; k++) verdict_sum_add(&s, 25, 0.02);
    UNIT_CHECK(near(s.us, 100) && near(verdict_sum_ci(&s), 0.01));
    verdict_sum_add(&s, 60, NAN);
    UNIT_CHECK(near(verdict_sum_ci(&s), 61.0 / 160) && near(verdict_sum_unknown(&s), 60.0 / 160));
    verdict_sum_allow(&s, 40);
    UNIT_CHECK(near(s.us, 200) && near(verdict_sum_ci(&s), 101.0 / 200));
    UNIT_TEXT(amount_within_of(verdict_sum_ci(&s), verdict_sum_unknown(&s)).s, "± 0.5 % (50 % without interval)");
    UNIT_TEXT(amount_within_of(0.03, 0.02).s, "± 1.0 % (2.0 % without interval)");
    UNIT_TEXT(amount_within_of(0.03, 0).s, "± 3.0 %");
    UNIT_TEXT(amount_within_of(1, 1).s, "± ?");
    UNIT_TEXT(amount_within_of(NAN, 0.5).s, "± ?");
}

static void what_is_open_is_said_beside_the_rule(void) {
    verdict_facts f = product(95);
    f.ratio = 0.975, f.ratio_ci = 0.01, f.best_us = 97.5, f.best_name = "lib algo=6";
    UNIT_CHECK(strstr(judge(&f).recommendation, ". Open: lib algo=6 takes between 1.5 and 3.5 % less.") != NULL);
    f.ratio_ci = 0.04;
    UNIT_CHECK(strstr(judge(&f).recommendation, ". Open: lib algo=6 takes between 1.4 % more and 6.4 % less.") != NULL);
    f.ratio = 0.9, f.ratio_ci = 0.01, f.address_best = 0.86, f.address_worst = 0.97;
    UNIT_TEXT(judge(&f).recommendation, "Use lib algo=6: proven to take 10.0 % less time than lib. Its time "
                                        "depends on memory addresses: between 0.860 and 0.970 of the default's time.");
    f.ratio = 0;
    f.best_us = 0;
    UNIT_CHECK(strstr(judge(&f).recommendation, "between 0.860 and 0.970 of its usual time.") != NULL);
    f = product(95); /* the baseline is the best, for what came near it is not proven */
    f.rival_ratio = 0.975, f.rival_ratio_ci = 0.01, f.rival_name = "own v=1";
    UNIT_CHECK(strstr(judge(&f).recommendation, ". Open: own v=1 takes between 1.5 and 3.5 % less.") != NULL);
    f.rival_ratio_ci = NAN;
    UNIT_CHECK(strstr(judge(&f).recommendation, ". Open: own v=1 took 2.5 % less in one pass.") != NULL);
    f.rival_ratio = 1.3;
    UNIT_CHECK(!strstr(judge(&f).recommendation, "Open"));
    f.rival_ratio_ci = 0.01;
    UNIT_CHECK(!strstr(judge(&f).recommendation, "Open"));
    f.ratio = 0.9, f.best_us = 90, f.rival_ratio = 0.975; /* another one is proven */
    UNIT_CHECK(!strstr(judge(&f).recommendation, "Open"));
}

int main(void) {
    UNIT_RUN(one_rule_of_a_gain);
    UNIT_RUN(sums_have_an_interval);
    UNIT_RUN(what_is_open_is_said_beside_the_rule);
    UNIT_RUN(sentences_end_at_a_character);
    UNIT_RUN(every_rule_has_its_name);
    UNIT_RUN(checks_are_what_was_compared);
    return unit_end();
}
