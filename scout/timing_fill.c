/* From blocks to what is reported: figures, telemetry, and why they are not to be trusted where they are not. */
#include "scout/stats.h"
#include "scout/timing_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double telemetry_median(const timing_series *s, size_t offset) {
    double *all = s->block_count ? calloc(s->block_count, sizeof *all) : NULL;
    if (!all) return NAN;
    for (size_t k = 0; k < s->block_count; k++)
        memcpy(&all[k], (const char *)&s->blocks[k].telemetry + offset, sizeof all[0]);
    const double median = stats_median(all, s->block_count);
    free(all);
    return median;
}

static void fill_telemetry(const timing_series *s, timing_result *out) {
    out->clock_mhz = telemetry_median(s, offsetof(scout_telemetry, clock_mhz));
    out->memory_clock_mhz = telemetry_median(s, offsetof(scout_telemetry, memory_clock_mhz));
    out->power_w = telemetry_median(s, offsetof(scout_telemetry, power_w));
    out->temperature_c = telemetry_median(s, offsetof(scout_telemetry, temperature_c));
    for (size_t k = 0; k < s->block_count; k++) {
        const scout_telemetry *t = &s->blocks[k].telemetry;
        out->throttle |= t->throttle;
        const size_t used = strlen(out->throttle_text);
        if (!t->throttle_text[0] || strstr(out->throttle_text, t->throttle_text)) continue;
        snprintf(out->throttle_text + used, sizeof out->throttle_text - used, "%s%s", used ? ", " : "",
                 t->throttle_text);
    }
}

static void verdict(const timing_rules *rules, const timing_entrant *e, timing_result *out) {
    const timing_opinion *o = &e->opinion;
    const double target = e->series.steered ? rules->steered_target : rules->target;
    const double limit = e->relaxed || e->brief ? rules->acceptable : fmax(target, rules->last);
    const size_t blocks = e->series.block_count;
    out->settled = false;
    if (o->drifts && o->by_clock)
        scout_say(&out->why, SCOUT_OK, "clock", "the clock moved and launches became %.1f %% %s over %zu blocks",
                  100 * fabs(o->drift), o->drift > 0 ? "slower" : "faster", blocks);
    else if (o->drifts)
        scout_say(&out->why, SCOUT_OK, "drift", "launches became %.1f %% %s over %zu blocks", 100 * fabs(o->drift),
                  o->drift > 0 ? "slower" : "faster", blocks);
    else if (!isfinite(o->rel_ci95))
        scout_say(&out->why, SCOUT_OK, "interval", "about %.4g us by %zu block%s, too little to know how well",
                  1e6 * o->median_s, blocks, blocks == 1 ? "" : "s");
    else if (!(o->rel_ci95 <= limit))
        scout_say(&out->why, SCOUT_OK, "interval",
                  "about %.4g us, known to +- %.2f %% after %zu blocks; +- %.2f %% were wanted", 1e6 * o->median_s,
                  100 * o->rel_ci95, blocks, 100 * limit);
    else if (!e->relaxed && timing_plan_launches(e) < timing_plan_least(rules, e))
        scout_say(&out->why, SCOUT_OK, "interval", "the budget ended after %llu launches, at least %u were wanted",
                  (unsigned long long)timing_plan_launches(e), rules->launches);
    else if (!e->relaxed && !e->brief && !e->enough)
        scout_say(&out->why, SCOUT_OK, "interval", "intervals spread by %.1f %% and the budget ended after %zu blocks",
                  100 * o->spread, blocks);
    else
        out->settled = true;
}

void timing_fill(const timing_rules *rules, const timing_entrant *e, timing_result *out) {
    const double *x = e->series.x + e->series.blocks[e->opinion.first_block].first;
    const size_t n = e->opinion.n;
    out->answer = SCOUT_OK;
    out->why = (scout_why){.code = ""};
    out->median_s = e->opinion.median_s;
    out->mean_s = stats_mean(x, n);
    out->min_s = stats_quantile(x, n, 0);
    out->p05_s = stats_quantile(x, n, 0.05);
    out->p95_s = stats_quantile(x, n, 0.95);
    out->rel_ci95 = e->opinion.rel_ci95;
    out->batches = (uint32_t)n;
    out->launches = timing_plan_launches(e);
    fill_telemetry(&e->series, out);
    verdict(rules, e, out);
}
