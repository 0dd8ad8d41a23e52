/* Passes in, figures out. The baseline's time is that of its passes; every other row is known by its ratio to the
 * baseline within a pass, and the pass that chose a row among others says nothing of it once there are later ones. */
#include "scout/measure/figures.h"

#include "common/json.h"
#include "common/verdict.h"
#include "scout/terms/variants.h"
#include "scout/timing/estimate.h"

#include <math.h>
#include <string.h>

enum {
    MOST_PASSES = 63,
    MOST_CHOSEN = 4,
    MOST_BESIDE = 16,
    FEW_PASSES = 4,  /* of which none can be spared: that which chose a baseline among its like favours it by little */
    KNOWN_BEHIND = 3 /* passes after which a rival that lost is left out */
};

static const double target = 0.01, host_target = 0.02;
static const double address_spread = 0.02;
static const double first_doubt = 0.04; /* of a ratio that one pass saw */
static const double drift = 0.02;
static const double clock_spread = 0.005, held_well = 0.01;

static json_t *rows_of(const json_t *m) { return json_object_get(m, "candidates"); }

static bool is_row(const json_t *row, const char *name, const char *variant) {
    return strcmp(json_get_text(row, "name"), name) == 0 && strcmp(json_get_text(row, "variant"), variant) == 0;
}

static json_t *find_row(const json_t *m, const char *name, const char *variant) {
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        json_t *row = json_array_get(rows_of(m), k);
        if (is_row(row, name, variant)) return row;
    }
    return NULL;
}

static json_t *baseline_of(const json_t *m) {
    const char *name = json_get_text_or_null(m, "baseline");
    return name ? find_row(m, name, json_get_text(m, "baseline_variant")) : NULL;
}

static bool is_ok(const json_t *row) { return strcmp(json_get_text(row, "status"), "OK") == 0; }

int figures_passes(const json_t *m) { return (int)json_integer_value(json_object_get(m, "passes")); }

/* ---- passes ---- */

static const json_t *pass_of(const json_t *owner, int number) {
    const json_t *list = json_object_get(owner, "passes");
    for (size_t k = 0; k < json_array_size(list); k++)
        if (json_integer_value(json_object_get(json_array_get(list, k), "pass")) == number)
            return json_array_get(list, k);
    return NULL;
}

/* A row's or the yardstick's, of which a pass holds one more. */
static void append(json_t *to, const json_t *from) {
    json_t *list = json_object_get(to, "passes");
    if (!json_is_array(list)) {
        list = json_array();
        if (json_object_set_new(to, "passes", list) != 0) return;
    }
    json_t *const pass = json_array_size(list) < MOST_PASSES ? json_deep_copy(from) : NULL;
    json_object_del(pass, "samples"); /* of --samples alone */
    if (pass) json_array_append_new(list, pass);
}

/* What a later pass had no room or no time for keeps the figures that it has. */
static bool takes_away(const json_t *seen) {
    const char *code = json_get_text(json_object_get(seen, "reason"), "code");
    return !is_ok(seen) && strcmp(code, "memory") != 0 && strcmp(json_get_text(seen, "status"), "SKIPPED") != 0;
}

static void add_row(json_t *m, const json_t *seen) {
    json_t *row = find_row(m, json_get_text(seen, "name"), json_get_text(seen, "variant"));
    if (!row) { /* a worker that began anew may have found what an earlier one left out */
        row = json_deep_copy(seen);
        if (!json_is_object(row) || json_array_append(rows_of(m), row) != 0) {
            json_decref(row);
            return;
        }
        json_decref(row);
    } else if (takes_away(seen)) {
        json_object_set(row, "status", json_object_get(seen, "status"));
        json_object_set(row, "reason", json_object_get(seen, "reason"));
    }
    const json_t *pass = json_object_get(seen, "pass");
    if (json_is_object(pass)) append(row, pass);
    json_object_del(row, "pass");
}

static void add_yardstick(json_t *m, const json_t *seen, int number) {
    json_t *probe = json_object_get(m, "probe");
    if (!json_is_object(seen)) return;
    if (!json_is_object(probe)) {
        probe = json_deep_copy(seen);
        json_object_set_new(m, "probe", probe);
    }
    json_t *pass = json_object();
    static const char *const figures[] = {"launch_us", "bound_ratio"};
    json_object_set_new(pass, "pass", json_integer(number));
    for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++) {
        json_t *x = json_object_get(seen, figures[k]);
        if (x) json_object_set(pass, figures[k], x);
        json_object_del(probe, figures[k]);
    }
    append(probe, pass);
    json_decref(pass);
}

static void add_spent(json_t *m, const json_t *pass) {
    json_t *spent = json_object_get(m, "spent_s");
    const char *name;
    json_t *x;
    json_object_foreach(json_object_get(pass, "spent_s"), name, x) {
        const double sum = json_number_value(x) + json_number_value(json_object_get(spent, name));
        json_object_set_new(spent, name, json_real(sum));
    }
    const double sum =
        json_number_value(json_object_get(m, "seconds")) + json_number_value(json_object_get(pass, "seconds"));
    json_object_set_new(m, "seconds", json_real(sum));
}

/* ---- figures ---- */

static void put(json_t *to, const char *key, double x) {
    if (isfinite(x))
        json_object_set_new(to, key, json_real(x));
    else
        json_object_del(to, key);
}

/* Hardly a block of it was undisturbed, and it is slower than a pass on this host that had some. */
static bool was_disturbed(const json_t *m, const json_t *base, const json_t *pass) {
    const json_t *list = json_object_get(base, "passes");
    double calm = INFINITY;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *other = json_array_get(list, k);
        if (!json_is_true(json_object_get(other, "disturbed"))) calm = fmin(calm, json_get_positive(other, "time_us"));
    }
    return json_is_true(json_object_get(m, "host")) && json_is_true(json_object_get(pass, "disturbed")) &&
           json_get_positive(pass, "time_us") > estimate_agreement * calm;
}

/* By the baseline's time; infinite: all count. */
static double slowest_that_counts(const json_t *m, const json_t *base) {
    const json_t *list = json_object_get(base, "passes");
    double x[MOST_PASSES];
    size_t n = 0;
    if (!json_is_true(json_object_get(m, "host"))) return INFINITY;
    for (size_t k = 0; k < json_array_size(list) && n < MOST_PASSES; k++) {
        const double value = json_get_positive(json_array_get(list, k), "time_us");
        if (value > 0 && !was_disturbed(m, base, json_array_get(list, k))) x[n++] = value;
    }
    return estimate_slowest(x, n);
}

/* Marks the passes that do not count. */
static void mark_slow(json_t *m, json_t *base) {
    const double most = slowest_that_counts(m, base);
    const json_t *list = json_object_get(base, "passes");
    uint64_t slow = 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *pass = json_array_get(list, k);
        const json_int_t number = json_integer_value(json_object_get(pass, "pass"));
        const bool slower = json_get_positive(pass, "time_us") > most || was_disturbed(m, base, pass);
        if (slower && number > 0 && number < MOST_PASSES) slow |= UINT64_C(1) << number;
    }
    json_object_set_new(m, "slow_passes", json_integer((json_int_t)slow));
}

static bool counts(const json_t *m, const json_t *pass) {
    const uint64_t slow = (uint64_t)json_integer_value(json_object_get(m, "slow_passes"));
    const json_int_t number = json_integer_value(json_object_get(pass, "pass"));
    return number < 0 || number >= MOST_PASSES || !(slow >> number & 1);
}

/* What disturbs only adds: where it disturbed all passes that count, the time may lie below what they say by what the
 * best of them missed, however well they agree. */
static double missed_of(const json_t *m) {
    const json_t *list = json_object_get(baseline_of(m), "passes");
    double least = INFINITY;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *pass = json_array_get(list, k);
        if (counts(m, pass))
            least = fmin(least, fmax(json_get_number(pass, "missed"), 0)); /* 0: it was not disturbed */
    }
    return isfinite(least) && json_is_true(json_object_get(m, "host")) ? least : 0;
}

/* More passes do not make it better than that. */
static double least_ci(const json_t *m) {
    return json_integer_value(json_object_get(m, "slow_passes")) != 0 ? estimate_floor : 0;
}

bool figures_lost(const json_t *m) {
    const json_t *pass = pass_of(baseline_of(m), figures_passes(m));
    const bool later = pass && figures_passes(m) > 1 && json_is_true(json_object_get(m, "host"));
    return later && (json_is_true(json_object_get(pass, "disturbed")) || !counts(m, pass));
}

/* A row that ran in slow passes alone has the figure of these. */
static bool all_slow(const json_t *m, const json_t *owner) {
    const json_t *list = json_object_get(owner, "passes");
    for (size_t k = 0; k < json_array_size(list); k++)
        if (counts(m, json_array_get(list, k))) return false;
    return true;
}

/* Of a figure of the passes; `first`: the pass that chose counts as well. */
static estimate over_passes(const json_t *m, const json_t *owner, const char *key, bool first) {
    const json_t *list = json_object_get(owner, "passes");
    const bool slow = all_slow(m, owner);
    double x[MOST_PASSES];
    size_t n = 0;
    for (size_t k = 0; k < json_array_size(list) && n < MOST_PASSES; k++) {
        const json_t *pass = json_array_get(list, k);
        if (!first && json_integer_value(json_object_get(pass, "pass")) == 1) continue;
        if (!slow && !counts(m, pass)) continue;
        const double value = json_get_positive(pass, key);
        if (value > 0) x[n++] = value;
    }
    return estimate_of(x, n);
}

/* A chosen row's figure is that of later passes where there are any. */
static estimate unchosen(const json_t *m, const json_t *owner, const char *key) {
    const estimate later = over_passes(m, owner, key, false);
    return later.passes > 0 ? later : over_passes(m, owner, key, true);
}

/* Within a pass, where the clock was the same. */
static void put_ratios(json_t *row, const json_t *base) {
    json_t *list = json_object_get(row, "passes");
    for (size_t k = 0; k < json_array_size(list); k++) {
        json_t *pass = json_array_get(list, k);
        const json_t *beside = pass_of(base, (int)json_integer_value(json_object_get(pass, "pass")));
        put(pass, "ratio", json_get_positive(pass, "time_us") / json_get_positive(beside, "time_us"));
    }
}

/* Behind a library's choice, which is a variant's first parameter. */
static const char *form_of(const char *variant) {
    const char *comma = strchr(variant, ',');
    return comma ? comma : "";
}

/* Own kernels beside one, or a library's other choices in the same form. */
static bool is_akin(const json_t *m, const json_t *row) {
    if (json_object_get(row, "plugin")) return false;
    if (json_is_true(json_object_get(m, "baseline_own"))) return json_is_true(json_object_get(row, "own"));
    return strcmp(json_get_text(row, "name"), json_get_text(m, "baseline")) == 0 &&
           strcmp(form_of(json_get_text(row, "variant")), form_of(json_get_text(m, "baseline_variant"))) == 0;
}

/* Among these the baseline is the best, where none was named. */
static bool is_like(const json_t *m, const json_t *row) {
    return json_is_true(json_object_get(m, "baseline_elected")) && is_akin(m, row);
}

/* The clock that the baseline's load holds, where it moved least while it was looked at; returns how often it was. Also
 * that of its like, which was the baseline before it was elected. */
static int held_of(const json_t *m, double *mhz, double *error) {
    int times = 0;
    *mhz = *error = 0;
    for (size_t r = 0; r < json_array_size(rows_of(m)); r++) {
        const json_t *row = json_array_get(rows_of(m), r), *list = json_object_get(row, "passes");
        if (row != baseline_of(m) && !is_like(m, row)) continue;
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *pass = json_array_get(list, k);
            const double held = json_get_positive(pass, "held_mhz"),
                         moved = fmax(json_get_number(pass, "held_error"), 0);
            if (!(held > 0)) continue;
            if (times++ == 0 || moved < *error) *mhz = held, *error = moved;
        }
    }
    return times;
}

/* Passes of a device that tells its clock; 0: one of those that count does not know it. `first`: the pass that chose
 * counts as well; what its own load holds it says in any case. */
static size_t clocked_passes(const json_t *m, const json_t *row, bool first, estimate_pass *out) {
    const json_t *list = json_object_get(row, "passes");
    size_t n = 0;
    for (size_t k = 0; k < json_array_size(list) && n < MOST_PASSES; k++) {
        const json_t *pass = json_array_get(list, k);
        if (!first && json_integer_value(json_object_get(pass, "pass")) == 1) continue;
        const estimate_pass p = {.x = json_get_positive(pass, "time_us"),
                                 .clock = json_get_positive(pass, "clock_mhz"),
                                 .xx = json_get_number(pass, "clock_xx"),
                                 .xy = json_get_number(pass, "clock_xy"),
                                 .yy = json_get_number(pass, "clock_yy"),
                                 .n = json_get_number(pass, "clock_blocks")};
        if (!(p.x > 0) || !(p.clock > 0) || !(p.xx >= 0) || !isfinite(p.xy) || !(p.yy >= 0) || !(p.n >= 0)) return 0;
        out[n++] = p;
    }
    if (n > 0) held_of(m, &out[0].held, &out[0].held_error);
    return n;
}

double figures_usual_target(bool host) { return host ? host_target : target; }

static double target_of(const json_t *m) {
    const double asked = json_get_positive(m, "target_ci");
    return asked > 0 ? asked : figures_usual_target(json_is_true(json_object_get(m, "host")));
}

static const char *quality_of(const json_t *m, const json_t *row, const estimate *e) {
    const json_t *list = json_object_get(row, "passes");
    const size_t n = json_array_size(list), half = n / 2;
    double sums[2] = {0, 0};
    for (size_t k = 0; n >= 4 && k < n; k++)
        if (k < half || k >= n - half)
            sums[k >= half] += log(json_get_positive(json_array_get(list, k), "time_us")) / (double)half;
    const bool drifts = fabs(sums[1] - sums[0]) > drift && !json_object_get(m, "clock_mhz");
    if (n >= 4 && drifts && e->ci > target_of(m)) return "drifting";
    return e->ci <= target_of(m) ? "good" : "wide";
}

/* Quartiles of its blocks, and how many lie far from them: means and sums over passes, where these tell it. */
static void put_blocks(const json_t *m, const json_t *row, bool slow, double scale, json_t *time) {
    static const char *const names[][2] = {{"p25_us", "p25"}, {"p50_us", "p50"}, {"p75_us", "p75"}};
    const json_t *list = json_object_get(row, "passes");
    double sums[] = {0, 0, 0}, outliers = 0, n = 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *pass = json_array_get(list, k);
        if (!slow && !counts(m, pass)) continue;
        n++;
        for (size_t q = 0; q < 3; q++) sums[q] += json_get_positive(pass, names[q][0]);
        outliers += fmax(json_get_number(pass, "outliers"), 0);
    }
    for (size_t q = 0; q < 3; q++) put(time, names[q][1], sums[q] / n * scale);
    if (isfinite(sums[0])) json_object_set_new(time, "outliers", json_integer((json_int_t)outliers));
}

static void put_time(const json_t *m, json_t *row, const estimate *e, const char *from) {
    const json_t *list = json_object_get(row, "passes"), *last = json_array_get(list, json_array_size(list) - 1);
    static const char *const copied[] = {"clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "throttle"};
    double mean = 0, least = INFINITY, p05 = 0, p95 = 0, plain = 0, blocks = 0, launches = 0;
    const bool slow = all_slow(m, row);
    double n = 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *pass = json_array_get(list, k);
        const double own = json_get_positive(pass, "time_us");
        if (!slow && !counts(m, pass)) continue;
        n++;
        plain += own;
        mean += json_object_get(pass, "mean_us") ? json_get_positive(pass, "mean_us") : own;
        p05 += json_object_get(pass, "p05_us") ? json_get_positive(pass, "p05_us") : own;
        p95 += json_object_get(pass, "p95_us") ? json_get_positive(pass, "p95_us") : own;
        least = fmin(least, json_object_get(pass, "min_us") ? json_get_positive(pass, "min_us") : own);
        blocks += json_number_value(json_object_get(pass, "blocks"));
        launches += json_number_value(json_object_get(pass, "launches"));
    }
    const double scale = n * e->x / plain; /* of a clock that was steered: all of them at the long run's */
    json_t *time = json_object();
    put(time, "median", e->x);
    put(time, "mean", mean / n * scale);
    put(time, "min", least * scale);
    put(time, "p05", p05 / n * scale);
    put(time, "p95", p95 / n * scale);
    put_blocks(m, row, slow, scale, time);
    put(time, "rel_ci95", e->ci);
    json_object_set_new(time, "batches", json_integer((json_int_t)blocks));
    json_object_set_new(time, "launches", json_integer((json_int_t)launches));
    json_object_set_new(row, "time_us", time);
    json_object_set_new(row, "time_from", json_string(from));
    json_object_set_new(row, "interval_from", json_sprintf("%zu pass%s", e->passes, e->passes == 1 ? "" : "es"));
    json_object_set_new(row, "quality", json_string(quality_of(m, row, e)));
    const double zeros = json_get_positive(row, "zeros"), dense = json_get_positive(m, "flops") / e->x / 1e6;
    const double bytes =
        json_number_value(json_object_get(m, "bytes_read")) + json_number_value(json_object_get(m, "bytes_written"));
    put(row, "tflops", isnan(dense) ? 0 : zeros > 0 ? dense * (1 - zeros) : dense);
    if (zeros > 0) put(row, "dense_equivalent_tflops", dense);
    put(row, "tbps", bytes / e->x / 1e6);
    for (size_t k = 0; k < sizeof copied / sizeof copied[0]; k++)
        if (json_object_get(last, copied[k])) json_object_set(row, copied[k], json_object_get(last, copied[k]));
    if (json_object_get(m, "clock_mhz")) json_object_set(row, "clock_mhz", json_object_get(m, "clock_mhz"));
}

static void forget_time(json_t *row) {
    static const char *const names[] = {"time_us",  "time_from", "interval_from", "quality", "ratio",
                                        "ratio_ci", "fetch_us",  "tflops",        "tbps",    "addresses",
                                        "passes",   "clock_mhz", "power_w"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) json_object_del(row, names[k]);
}

static void put_addresses(json_t *row, const estimate *ratio) {
    json_object_del(row, "addresses");
    if (ratio->passes < 3 || !(ratio->most / ratio->least - 1 > address_spread)) return;
    json_t *o = json_object();
    put(o, "best", ratio->least);
    put(o, "worst", ratio->most);
    json_object_set_new(row, "addresses", o);
}

/* The baseline's, and the clock that it is for: nothing where none is known. */
static estimate baseline_time(const json_t *m, const json_t *base, estimate_clock *at) {
    const bool chosen = /* among others, by its time */
        json_is_true(json_object_get(m, "baseline_own")) || json_is_true(json_object_get(m, "baseline_moved"));
    const bool first = !chosen || json_array_size(json_object_get(base, "passes")) <= FEW_PASSES;
    estimate_pass passes[MOST_PASSES];
    const size_t n = clocked_passes(m, base, first, passes);
    if (n > 0) {
        estimate time = estimate_at_clock(passes, n, at);
        time.ci = hypot(time.ci, at->ci);
        return time;
    }
    /* of a host whose later passes were all disturbed, the one that chose is what there is */
    estimate time = first ? over_passes(m, base, "time_us", true) : unchosen(m, base, "time_us");
    time.ci = hypot(time.ci, fmax(least_ci(m), missed_of(m)));
    return time;
}

/* Where no pass was far from the clock that the time is for, it is what was seen. */
static const char *time_from(const json_t *base, double mhz) {
    const json_t *list = json_object_get(base, "passes");
    for (size_t k = 0; mhz > 0 && k < json_array_size(list); k++)
        if (fabs(json_get_positive(json_array_get(list, k), "clock_mhz") / mhz - 1) > clock_spread) return "clock";
    return "plain";
}

/* What a launch takes more among others, as the passes that looked for it tell. */
static double fetch_of(const json_t *row) {
    const json_t *list = json_object_get(row, "passes");
    double sum = 0, n = 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const double us = json_get_number(json_array_get(list, k), "fetch_us");
        if (isfinite(us)) sum += us, n++;
    }
    return n > 0 ? fmax(sum / n, 0) : NAN; /* below nothing by what blocks differ */
}

json_t *figures_without_fetch(const json_t *m) {
    json_t *copy = json_deep_copy(m);
    const json_t *rows = json_object_get(copy, "candidates");
    json_object_del(copy, "distant");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        json_t *row = json_array_get(rows, k);
        const json_t *passes = json_object_get(row, "passes");
        json_object_del(row, "fetch_us");
        for (size_t n = 0; n < json_array_size(passes); n++) json_object_del(json_array_get(passes, n), "fetch_us");
    }
    return copy;
}

/* A row beside the baseline: its time is the ratio of theirs. */
static void settle_row(const json_t *m, json_t *row, json_t *base, const estimate *base_time, const char *from) {
    if (!is_ok(row) || json_array_size(json_object_get(row, "passes")) == 0) {
        forget_time(row);
        return;
    }
    put(row, "fetch_us", fetch_of(row));
    if (!base) {
        const estimate own = over_passes(m, row, "time_us", true);
        put_time(m, row, &own, "plain");
        return;
    }
    put_ratios(row, base);
    if (row == base) {
        estimate own = *base_time;
        own.least /= own.x, own.most /= own.x;
        put_time(m, row, base_time, from);
        put(row, "ratio", NAN); /* of before it was elected */
        put(row, "ratio_ci", NAN);
        if (!json_is_true(json_object_get(m, "host")))
            put_addresses(row, &own); /* whose passes differ for other reasons */
        return;
    }
    const estimate ratio = unchosen(m, row, "ratio");
    estimate time = {ratio.x * base_time->x, hypot(ratio.ci, base_time->ci), 0, 0, ratio.passes};
    put_time(m, row, &time, from);
    put(row, "ratio", ratio.x);
    put(row, "ratio_ci", ratio.ci);
    put_addresses(row, &ratio);
}

/* ---- the winner ---- */

static double ratio_of(const json_t *row) { return json_get_positive(row, "ratio"); }

/* Infinite: one pass tells nothing of it. */
static double ci_of(const json_t *row) {
    const double ci = json_get_number(row, "ratio_ci");
    return ci >= 0 ? ci : INFINITY;
}

static bool rivals(const json_t *row, const json_t *base) { return row != base && is_ok(row) && ratio_of(row) > 0; }

static bool proven(const json_t *row) { return ratio_of(row) * (1 + ci_of(row)) < 1 - verdict_defaults.margin; }

static json_t *find_best(const json_t *m, json_t *base) {
    json_t *best = base;
    double least = INFINITY;
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        json_t *row = json_array_get(rows_of(m), k);
        const double rank = base ? ratio_of(row) : json_get_positive(json_object_get(row, "time_us"), "median");
        if (!is_ok(row) || row == base || !(rank < least) || (base && !proven(row))) continue;
        least = rank;
        best = row;
    }
    return best;
}

/* Of all that are not the best, the one that came nearest to winning: what is known of it reaches deepest. */
static const json_t *find_rival(const json_t *m, const json_t *base, const json_t *best) {
    const json_t *rival = NULL;
    double deepest = INFINITY;
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        const json_t *row = json_array_get(rows_of(m), k);
        if (!rivals(row, base) || row == best) continue;
        const double ci = ci_of(row), depth = ratio_of(row) * (1 - (isfinite(ci) ? fmin(ci, 1) : first_doubt));
        if (depth < deepest) deepest = depth, rival = row;
    }
    return rival;
}

static void put_summary(json_t *m, json_t *base, const estimate *base_time) {
    json_t *best = find_best(m, base);
    const json_t *rival = base ? find_rival(m, base, best) : NULL;
    static const char *const names[] = {"baseline_time_us", "best_time_us", "ratio", "ratio_ci", "rival"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) json_object_del(m, names[k]);
    json_object_set_new(m, "best", best ? json_string(json_get_text(best, "name")) : json_null());
    json_object_set_new(m, "best_variant", best ? json_string(json_get_text(best, "variant")) : json_null());
    json_object_set_new(m, "best_approach",
                        !best          ? json_null()
                        : best == base ? json_string("NONE")
                                       : json_string(json_get_text(best, "approach")));
    if (base) put(m, "baseline_time_us", base_time->x);
    if (best) put(m, "best_time_us", json_get_positive(json_object_get(best, "time_us"), "median"));
    if (base && best != base) {
        put(m, "ratio", ratio_of(best));
        put(m, "ratio_ci", ci_of(best));
    }
    if (!rival) return;
    json_t *o = json_object();
    json_object_set(o, "name", json_object_get(rival, "name"));
    json_object_set(o, "variant", json_object_get(rival, "variant"));
    json_object_set(o, "approach", json_object_get(rival, "approach"));
    put(o, "ratio", ratio_of(rival));
    put(o, "ratio_ci", ci_of(rival));
    json_object_set_new(m, "rival", o);
}

static void put_yardstick(json_t *m, const estimate *base_time) {
    json_t *probe = json_object_get(m, "probe");
    if (!json_is_object(probe)) return;
    const estimate bound = over_passes(m, probe, "bound_ratio", true),
                   launch = over_passes(m, probe, "launch_us", true);
    const bool special = json_object_get(probe, "stored_specials_per_s") != NULL;
    const bool stream = json_object_get(probe, "read_fraction") != NULL;
    const char *unit = special ? "specials_per_s" : stream ? "tbps" : "tflops";
    put(probe, unit, json_get_positive(probe, "work") / launch.x * 1e6);
    put(probe, "bound_us", bound.x * base_time->x);
    put(probe, "bound_ci", bound.ci);
    json_object_set_new(probe, "among", json_true());
}

static bool was_raced_out(const json_t *row) { return json_is_true(json_object_get(pass_of(row, 1), "race")); }

/* Of those that take part in later passes; NULL: there is none. */
static const json_t *best_rival(const json_t *m, const json_t *base) {
    const json_t *best = NULL;
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        const json_t *row = json_array_get(rows_of(m), k);
        if (rivals(row, base) && !was_raced_out(row) && (!best || ratio_of(row) < ratio_of(best))) best = row;
    }
    return best;
}

static bool may_win(const json_t *row, const json_t *best) {
    const double ci = isfinite(ci_of(row)) ? ci_of(row) : first_doubt;
    const double lead_ci = best && isfinite(ci_of(best)) ? ci_of(best) : first_doubt;
    const double lead = best ? ratio_of(best) * (1 + lead_ci) : 1;
    return ratio_of(row) * (1 - ci) < 1 && ratio_of(row) * (1 - ci) <= lead;
}

/* What a winner that is not decided may gain over the baseline; 0: all is decided. */
static double gain_open(const json_t *m, const json_t *base) {
    const json_t *best = best_rival(m, base);
    double most = 0;
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        const json_t *row = json_array_get(rows_of(m), k);
        if (!rivals(row, base) || was_raced_out(row) || proven(row) || !may_win(row, best)) continue;
        const double doubt = isfinite(ci_of(row)) ? fmin(ci_of(row), 1) : first_doubt;
        const double gain = 1 - ratio_of(row) * (1 - doubt);
        if (gain > verdict_defaults.margin) most = fmax(most, gain);
    }
    return most;
}

/* The time is not known as it is wanted. */
static bool time_open(const json_t *m, double ci) { return !(ci <= hypot(target_of(m), least_ci(m))); }

/* What is not decided: texts for people. */
static void put_undecided(json_t *m, const json_t *base) {
    json_t *list = json_array();
    const double ci = json_get_number(json_object_get(base, "time_us"), "rel_ci95");
    if (base && time_open(m, ci)) json_array_append_new(list, json_string("time"));
    if (base && gain_open(m, base) > 0) json_array_append_new(list, json_string("winner"));
    json_object_set_new(m, "undecided", list);
}

/* The yardstick's bound is known within a pass, beside the baseline that was. */
static void move_bound(json_t *m, const json_t *from, const json_t *to) {
    const json_t *list = json_object_get(json_object_get(m, "probe"), "passes");
    for (size_t k = 0; k < json_array_size(list); k++) {
        json_t *pass = json_array_get(list, k);
        const int number = (int)json_integer_value(json_object_get(pass, "pass"));
        put(pass, "bound_ratio",
            json_get_positive(pass, "bound_ratio") * json_get_positive(pass_of(from, number), "time_us") /
                json_get_positive(pass_of(to, number), "time_us"));
    }
}

/* An elected baseline is the best of its like: where later passes know a better one, that takes its place. A plugin's
 * runs in a process of its own, and has no place beside others. */
static bool elect(json_t *m) {
    const json_t *best = NULL, *base = baseline_of(m);
    if (!estimate_look((size_t)figures_passes(m))) return false;
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        const json_t *row = json_array_get(rows_of(m), k);
        const bool better = is_like(m, row) && rivals(row, base) && ratio_of(row) * (1 + ci_of(row)) < 1 &&
                            json_array_size(json_object_get(row, "passes")) >= FEW_PASSES;
        if (better && (!best || ratio_of(row) < ratio_of(best))) best = row;
    }
    if (!best) return false;
    move_bound(m, base, best);
    json_object_set_new(m, "baseline_moved", json_true());
    json_object_set(m, "baseline", json_object_get(best, "name"));
    json_object_set(m, "baseline_variant", json_object_get(best, "variant"));
    return true;
}

static void settle_all(json_t *m) {
    json_t *base = baseline_of(m);
    if (base && (!is_ok(base) || json_array_size(json_object_get(base, "passes")) == 0)) base = NULL;
    if (base) mark_slow(m, base);
    estimate_clock at = {.clock = NAN, .slope = NAN};
    const estimate time = base ? baseline_time(m, base, &at) : estimate_of(NULL, 0);
    put(m, "clock_mhz", at.clock);
    put(m, "clock_slope", at.slope);
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++)
        settle_row(m, json_array_get(rows_of(m), k), base, &time, time_from(base, at.clock));
    put_yardstick(m, &time);
    put_summary(m, base, &time);
    put_undecided(m, base);
}

static bool is_off(const json_t *row) {
    return strcmp(json_get_text(row, "status"), "WRONG") == 0 ||
           strcmp(json_get_text(json_object_get(row, "reason"), "code"), "precision") == 0;
}

/* A baseline may come out off after it was timed: the fastest of its kin takes its place, unless it was named. */
static void replace_baseline(json_t *m) {
    const json_t *base = baseline_of(m), *best = NULL;
    if (!base || !is_off(base) || json_is_true(json_object_get(m, "baseline_named"))) return;
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        const json_t *row = json_array_get(rows_of(m), k);
        const double us = json_get_positive(pass_of(row, 1), "time_us");
        if (!is_ok(row) || !is_akin(m, row) || !(us > 0)) continue;
        if (!best || us < json_get_positive(pass_of(best, 1), "time_us")) best = row;
    }
    if (!best) return;
    json_object_set_new(m, "baseline_elected", json_true());
    json_object_set_new(m, "probe", json_null()); /* what it bounds is known beside the one that was */
    json_object_set(m, "baseline", json_object_get(best, "name"));
    json_object_set(m, "baseline_variant", json_object_get(best, "variant"));
}

static void settle(json_t *m) {
    replace_baseline(m);
    settle_all(m);
    if (elect(m)) settle_all(m);
}

json_t *figures_add(json_t *m, const json_t *pass) {
    const int number = (int)json_integer_value(json_object_get(pass, "pass"));
    const bool first = !m;
    if (first) {
        m = json_deep_copy(pass);
        if (!m) return NULL;
        json_object_del(m, "pass");
        json_object_del(m, "passes");
        json_object_set_new(m, "probe", json_null());
        json_object_del(m, "candidates");
    }
    if (!json_is_array(rows_of(m))) json_object_set_new(m, "candidates", json_array());
    const json_t *rows = rows_of(pass);
    for (size_t k = 0; k < json_array_size(rows); k++) add_row(m, json_array_get(rows, k));
    add_yardstick(m, json_object_get(pass, "probe"), number);
    if (!first) add_spent(m, pass);
    if (number > figures_passes(m)) json_object_set_new(m, "passes", json_integer(number));
    settle(m);
    return m;
}

void figures_aim(json_t *m, double target_ci) {
    const double before = json_get_positive(m, "target_ci");
    if (target_ci > 0 ? before == target_ci : !(before > 0)) return;
    put(m, "target_ci", target_ci > 0 ? target_ci : NAN);
    settle(m);
}

/* ---- what comes next ---- */

static bool asked(const json_t *row, const char *only) {
    return only && filter_takes(only, json_get_text(row, "name"));
}

static void choose(json_t *to, const json_t *row) {
    json_array_append_new(
        to, json_pack("{s:s, s:s}", "name", json_get_text(row, "name"), "variant", json_get_text(row, "variant")));
}

/* The fastest of its candidate's rows that the race left in. */
static bool leads(const json_t *m, const json_t *row) {
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        const json_t *other = json_array_get(rows_of(m), k);
        if (strcmp(json_get_text(other, "name"), json_get_text(row, "name")) == 0 && is_ok(other) &&
            !was_raced_out(other) && ratio_of(other) < ratio_of(row))
            return false;
    }
    return true;
}

json_t *figures_choose(const json_t *m, const char *only, bool beside) {
    const json_t *base = baseline_of(m), *rows = rows_of(m);
    if (!base || !is_ok(base)) return NULL;
    const json_t *best = best_rival(m, base);
    json_t *to = json_array();
    choose(to, base);
    const bool early = figures_passes(m) < KNOWN_BEHIND;
    const int most = beside ? MOST_BESIDE : MOST_CHOSEN;
    for (int left = most - 1; left > 0 && best; left--) {
        const json_t *next = NULL;
        for (size_t k = 0; k < json_array_size(rows); k++) {
            const json_t *row = json_array_get(rows, k);
            bool taken = false;
            for (size_t c = 0; c < json_array_size(to); c++)
                taken = taken || is_row(row, json_get_text(json_array_get(to, c), "name"),
                                        json_get_text(json_array_get(to, c), "variant"));
            if (taken || !rivals(row, base) || was_raced_out(row)) continue;
            const bool told = beside ? leads(m, row) : row == best;
            if (!may_win(row, best) && !(told && (early || asked(row, only)))) continue;
            if (!next || ratio_of(row) < ratio_of(next)) next = row;
        }
        if (next) choose(to, next);
    }
    return to;
}

bool figures_hold_again(const json_t *m) {
    enum { TIMES = 3 };
    double mhz, error;
    const int times = held_of(m, &mhz, &error);
    return times > 0 && times < TIMES && error > held_well && figures_passes(m) >= FEW_PASSES && figures_wide(m);
}

const json_t *figures_leader(const json_t *m) {
    const json_t *leader = baseline_of(m);
    if (leader && !is_ok(leader)) leader = NULL;
    for (size_t k = 0; k < json_array_size(rows_of(m)); k++) {
        const json_t *row = json_array_get(rows_of(m), k);
        const double lead = leader && ratio_of(leader) > 0 ? ratio_of(leader) : 1;
        if (is_ok(row) && ratio_of(row) > 0 && ratio_of(row) < lead) leader = row;
    }
    return leader;
}

double figures_timed_s(const json_t *m) { return fmax(json_get_number(json_object_get(m, "spent_s"), "timing"), 0); }

double figures_ci(const json_t *m) {
    const double ci = json_get_number(json_object_get(baseline_of(m), "time_us"), "rel_ci95");
    return ci >= 0 ? ci : INFINITY;
}

bool figures_wide(const json_t *m) {
    const json_t *base = baseline_of(m);
    return base && is_ok(base) && time_open(m, figures_ci(m));
}

bool figures_guessed(const json_t *m) {
    double mhz, error;
    const bool held = figures_passes(m) >= FEW_PASSES && held_of(m, &mhz, &error) > 0 && error > held_well;
    const double limit = hypot(target_of(m), least_ci(m)), ci = figures_ci(m);
    const double guess = held ? error : 0;
    return guess > limit && ci * ci - guess * guess <= limit * limit;
}

/* Nothing is where more passes would decide nothing. */
double figures_gain_open(const json_t *m) {
    const json_t *base = baseline_of(m);
    return base && is_ok(base) && figures_passes(m) < (int)estimate_decided ? gain_open(m, base) : 0;
}

double figures_open(const json_t *m) {
    const json_t *base = baseline_of(m);
    if (!base || !is_ok(base)) return 0;
    const double ci = figures_ci(m);
    if (!isfinite(ci)) return INFINITY;
    const bool host = json_is_true(json_object_get(m, "host"));
    const bool to_last =
        !host || json_get_positive(m, "target_ci") > 0; /* a host's passes take long: unless it is asked */
    const int most = to_last ? (int)estimate_last_look() : (int)estimate_decided;
    return fmax(figures_passes(m) < most && figures_wide(m) ? ci : 0, figures_gain_open(m));
}
