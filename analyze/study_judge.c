/* Owns what follows for one group: the model's time, and the verdict of each report with the thresholds of the study.
 * The facts are those that scout_batch judges by (scout/report.c), as far as a report tells them: with the same
 * thresholds the verdicts are the same. */
#include "analyze/study_internal.h"

#include <math.h>
#include <string.h>

static bool same(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }
static bool is_ok(const study_report *r) { return same(r->status, "OK") && r->baseline_us > 0; }

static bool is_excused(const study_report *r) {
    return same(r->reason_code, "no_work") || same(r->reason_code, "not_asked");
}

static void sum_model(study_group *g) {
    double baseline_us = 0, missing_us = 0, squares = 0;
    for (size_t k = 0; k < g->count; k++) {
        const study_report *r = &g->reports[k];
        const double count = (double)r->count;
        if (is_ok(r)) {
            baseline_us += count * r->baseline_us;
            squares += pow(count * r->baseline_us * r->baseline_ci, 2);
        } else if (!is_excused(r) && r->count > 0) {
            g->without_baseline++;
            if (r->ceiling_us > 0) missing_us += count * r->ceiling_us;
        }
    }
    g->model_us = baseline_us + missing_us;
    if (g->model_us > 0) g->model_ci = hypot(sqrt(squares), missing_us) / g->model_us;
}

static void judge(const study *s, const study_group *g, study_report *r) {
    char best[512];
    const bool alike = same(r->baseline, r->best) && same(r->baseline_variant, r->best_variant);
    if (r->best)
        snprintf(best, sizeof best, "%s%s%s", r->best, r->best_variant && *r->best_variant ? " " : "",
                 r->best_variant ? r->best_variant : "");
    const verdict_facts facts = {
        .op = r->op,
        .pattern = r->pattern,
        .device = r->device,
        .bound = r->bound,
        .best_family = alike ? NULL : r->best_approach,
        .reason = r->reason_code,
        .no_work = same(r->reason_code, "no_work"),
        .measured = is_ok(r),
        .fusion = r->fusion,
        .ceiling_us = r->ceiling_us,
        .baseline_us = r->baseline_us,
        .best_us = r->best_us,
        .ceiling_ci = isnan(r->ceiling_ci) ? INFINITY : r->ceiling_ci,
        .baseline_ci = r->baseline_ci,
        .best_ci = r->best_ci,
        .launch_us = r->launch_us,
        .ratio = alike ? 0 : r->ratio,
        .ratio_ci = r->ratio_ci,
        .rival_ratio = r->rival_ratio,
        .rival_ratio_ci = r->rival_ratio_ci,
        .rival_family = r->rival_approach,
        .count = (double)r->count,
        .model_us = g->model_us,
        .model_ci = g->model_ci,
        .shape = {r->shape[0], r->shape[1], r->shape[2]},
        .batch = r->batch,
        .units = (int)g->units,
        .baseline_name = r->fusion ? "the parts" : r->baseline,
        .best_name = r->best ? best : NULL,
    };
    r->verdict = verdict_of(&facts, &s->options.thresholds);
}

void study_judge(study *s, study_group *g) {
    sum_model(g);
    for (size_t k = 0; k < g->count; k++) judge(s, g, &g->reports[k]);
    for (size_t k = 0; k < g->fusion_count; k++) judge(s, g, &g->fusions[k]);
}
