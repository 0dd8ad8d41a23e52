/* Owns what follows for one group: the model's time, and the verdict of each report with the thresholds of the study.
 * The facts are those that scout_batch judges by (scout/report/report.c), as far as a report tells them: with the same
 * thresholds the verdicts are the same. */
#include "analyze/study/study_internal.h"

#include "common/plain.h"

#include <math.h>

/* As run.json has it. What is missing takes its ceiling's time at least, and how much more is not known. */
static void sum_model(study_group *g) {
    verdict_sum sum = {0}, measured = {0};
    for (size_t k = 0; k < g->count; k++) {
        const study_report *r = &g->reports[k];
        const double count = (double)r->count;
        if (study_has_baseline(r)) {
            verdict_sum_add(&sum, count * r->baseline_us, r->baseline_ci);
            verdict_sum_add(&measured, count * r->baseline_us, r->baseline_ci);
        } else if (!verdict_is_excused(r->reason_code) && r->count > 0) {
            g->without_baseline++;
            if (isfinite(r->least_us)) verdict_sum_allow(&sum, count * r->least_us);
        }
    }
    g->model_us = sum.us;
    g->model_ci = verdict_sum_ci(&sum);
    g->measured_us = measured.us;
    g->measured = measured;
}

/* Of a sum: what of its ratio's interval is not the fused one's. */
static verdict_fused fused_of(const study_report *r) {
    const double rest = r->speedup_ci * r->speedup_ci - r->best_ci * r->best_ci;
    return (verdict_fused){.sum = r->sum,
                           .parts_us = r->parts_us,
                           .ratio = 1 / r->speedup,
                           .ratio_ci = r->speedup_ci,
                           .sum_ci = rest > 0      ? sqrt(rest)
                                     : isnan(rest) ? NAN
                                                   : 0};
}

bool study_skips_zeros(const study_report *r) {
    return verdict_is_sparse(r->best_approach) && r->best_us < r->ceiling_us && r->baseline_us >= r->ceiling_us;
}

static void judge(const study *s, const study_group *g, study_report *r) {
    char best[VERDICT_NAME], beside[VERDICT_NAME];
    const verdict_fused fused = fused_of(r);
    const bool alike = plain_same(r->baseline, r->best) && plain_same(r->baseline_variant, r->best_variant);
    const bool won = !alike && isfinite(r->best_us);
    verdict_facts facts = {
        .op = r->op,
        .pattern = r->pattern,
        .device = r->device,
        .bound = r->bound,
        .best_family = won ? r->best_approach : NULL,
        .reason = r->reason_code,
        .no_work = plain_same(r->reason_code, "no_work"),
        .measured = study_has_baseline(r),
        .ceiling_us = r->ceiling_us,
        .baseline_us = r->baseline_us,
        .best_us = r->best_us,
        .ceiling_ci = isnan(r->ceiling_ci) ? INFINITY : r->ceiling_ci, /* unknown */
        .baseline_ci = r->baseline_ci,
        .best_ci = r->best_ci,
        .ceiling_beside = plain_same(r->ceiling_from, "probe"),
        .launch_us = r->launch_us,
        .ratio = won ? r->ratio : 0,
        .ratio_ci = r->ratio_ci,
        .rival_ratio = r->rival_ratio,
        .rival_ratio_ci = r->rival_ratio_ci,
        .rival_family = r->rival_approach,
        .rival_name = verdict_name(r->rival, r->rival_variant, beside),
        .count = (double)r->count,
        .model_us = g->model_us,
        .model_ci = g->model_ci,
        .shape = {r->shape[0], r->shape[1], r->shape[2]},
        .batch = r->batch,
        .units = (int)g->units,
        .baseline_name = r->baseline,
        .baseline_own = r->baseline_own,
        .best_name = isfinite(r->best_us) ? verdict_name(r->best, r->best_variant, best) : NULL,
        .address_best = r->address_best,
        .address_worst = r->address_worst,
    };
    if (r->fusion) verdict_fuse(&facts, &fused);
    r->verdict = verdict_of(&facts, &s->options.thresholds);
    if (r->fusion && r->worth)
        r->worth = verdict_worth(&fused, (double)r->count, s->options.thresholds.margin, &r->saved_us);
}

void study_judge(study *s, study_group *g) {
    sum_model(g);
    study_make_partial(s, g);
    for (size_t k = 0; k < g->count; k++) judge(s, g, &g->reports[k]);
    for (size_t k = 0; k < g->fusion_count; k++) judge(s, g, &g->fusions[k]);
}
