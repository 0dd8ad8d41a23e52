/* How scout_batch, from what it measured, and analyze, from a report, come to the same facts. */
#include "common/verdict.h"

#include "common/plain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool verdict_is_excused(const char *reason) {
    return reason && (strcmp(reason, "no_work") == 0 || strcmp(reason, "not_asked") == 0);
}

bool verdict_is_sparse(const char *family) { return family && strncmp(family, "SPARSE_", 7) == 0; }

const char *verdict_name(const char *name, const char *variant, char text[VERDICT_NAME]) {
    if (!name) return NULL;
    snprintf(text, VERDICT_NAME, "%s%s%s", name, variant && *variant ? " " : "", variant ? variant : "");
    plain_end(text);
    return text;
}

void verdict_fuse(verdict_facts *facts, const verdict_fused *x) {
    facts->fusion = true;
    facts->baseline_name = "the parts";
    facts->measured = facts->measured && isfinite(x->parts_us);
    facts->baseline_us = x->parts_us;
    if (!x->sum) return;
    facts->best_family = facts->rival_family = "FUSION";
    facts->ceiling_beside = false; /* that was beside another baseline */
    facts->baseline_ci = x->sum_ci;
    facts->ratio = x->ratio < 1 ? x->ratio : 0;
    facts->rival_ratio = x->ratio < 1 ? NAN : x->ratio;
    facts->ratio_ci = facts->rival_ratio_ci = x->ratio_ci;
    facts->rival_name = facts->best_name;
}

const char *verdict_worth(const verdict_fused *x, double count, double margin, double *saved_us) {
    static const char *const words[] = {"no", "borderline", "yes"};
    const verdict_gain gain = verdict_gain_of(x->ratio, x->ratio_ci, margin);
    const bool proven = gain == VERDICT_PROVEN_GAIN && isfinite(x->parts_us);
    *saved_us = proven ? count * x->parts_us * (1 - x->ratio) : 0;
    return words[gain];
}
