/* What a report says of a fusion: the parts against what does all of them at once, and whether it is worth it. */
#include "scout/report/report.h"

#include "common/json.h"

#include <math.h>
#include <string.h>

static const char parts_name[] = "parts"; /* the candidate that runs one after another */

static bool is_parts(const char *name) { return name && strcmp(name, parts_name) == 0; }

static int kernels_of(const json_t *row) { return (int)json_get_int(row, "kernels", -1); }

/* What came nearest to the parts, where nothing beat them. */
static const json_t *rival_row(const json_t *m) {
    const json_t *rows = json_object_get(m, "candidates"), *rival = json_object_get(m, "rival");
    const char *name = json_get_text_or_null(rival, "name"), *variant = json_get_text_or_null(rival, "variant");
    for (size_t k = 0; name && variant && k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        const char *is = json_get_text_or_null(row, "name"), *form = json_get_text_or_null(row, "variant");
        if (is && form && strcmp(is, name) == 0 && strcmp(form, variant) == 0) return row;
    }
    return NULL;
}

/* Why nothing did all at once: what the last row says that is no part. */
static void read_why(const json_t *m, report_fused *to) {
    const json_t *rows = json_object_get(m, "candidates");
    to->code = "no_candidate";
    to->text = "no fused implementation is known here";
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k), *reason = json_object_get(row, "reason");
        if (is_parts(json_get_text_or_null(row, "name")) || !json_get_text_or_null(reason, "code") ||
            !json_get_text_or_null(reason, "text"))
            continue;
        to->code = json_get_text_or_null(reason, "code");
        to->text = json_get_text_or_null(reason, "text");
    }
}

static void read_sequence(const json_t *m, const report_figures *f, report_fused *to) {
    const json_t *row = NULL;
    if (!is_parts(f->baseline) || !f->baseline_row) {
        to->code = f->code ? f->code : "no_candidate"; /* the baseline is OK, but another one: they could not run */
        to->text = f->code ? f->text : "the parts in sequence did not run";
        return;
    }
    to->parts_us = f->baseline_us;
    to->kernels_parts = kernels_of(f->baseline_row);
    if (f->best_row && f->best_row != f->baseline_row) {
        row = f->best_row;
        to->ratio = f->ratio, to->ratio_ci = f->ratio_ci;
    } else if ((row = rival_row(m))) {
        to->ratio = f->rival_ratio, to->ratio_ci = f->rival_ratio_ci;
    } else {
        read_why(m, to);
        return;
    }
    to->fused_us = json_get_positive(json_object_get(row, "time_us"), "median");
    to->fetch_us = report_fetch_us(row);
    to->kernels_fused = kernels_of(row);
    to->name = json_get_text_or_null(row, "name");
    to->variant = json_get_text_or_null(row, "variant");
}

static void read_sum(const report_fusion *in, const json_t *m, const report_figures *f, report_fused *to) {
    to->parts_us = in->sum_us;
    to->kernels_parts = in->sum_kernels;
    to->code = in->code;
    to->text = in->text;
    if (!f->best_row) {
        to->code = f->code, to->text = f->text;
        return;
    }
    to->fused_us = f->best_us;
    to->fetch_us = report_fetch_us(f->best_row);
    to->kernels_fused = kernels_of(f->best_row);
    to->name = f->best;
    to->variant = f->best_row == f->baseline_row ? json_get_text_or_null(m, "baseline_variant")
                                                 : json_get_text_or_null(m, "best_variant");
    if (!isfinite(in->sum_us)) return;
    to->ratio = f->best_us / in->sum_us;
    if (verdict_known(f->best_ci) && verdict_known(in->sum_ci)) to->ratio_ci = hypot(f->best_ci, in->sum_ci);
}

verdict_fused report_fusion_facts(const report_input *in, const report_figures *f) {
    return (verdict_fused){.sum = in->fusion.of->how == FUSION_SUM,
                           .parts_us = f->fused.parts_us,
                           .ratio = f->fused.ratio,
                           .ratio_ci = f->fused.ratio_ci,
                           .sum_ci = in->fusion.sum_ci};
}

void report_fusion_read(const report_input *in, report_figures *out) {
    report_fused *to = &out->fused;
    *to = (report_fused){.parts_us = NAN,
                         .fused_us = NAN,
                         .ratio = NAN,
                         .ratio_ci = NAN,
                         .fetch_us = NAN,
                         .kernels_parts = -1,
                         .kernels_fused = -1,
                         .code = out->code,
                         .text = out->text};
    if (!in->measurement) return;
    if (in->fusion.of->how == FUSION_SUM)
        read_sum(&in->fusion, in->measurement, out, to);
    else
        read_sequence(in->measurement, out, to);
    if (!isfinite(to->ratio)) return;
    const verdict_fused fused = report_fusion_facts(in, out);
    to->worth = verdict_worth(&fused, (double)in->fusion.of->count, verdict_defaults.margin, &to->saved_us);
}

json_t *report_fusion_json(const report_input *in, const report_figures *f, json_builder *b) {
    const fusion *of = in->fusion.of;
    const report_fused *x = &f->fused;
    json_t *to = json_new_object(b), *ops = json_new_array(b);
    json_put_text(b, to, "pattern", of->pattern);
    for (int k = 0; k < of->op_count; k++) json_push_text(b, ops, of->ops[k]->id);
    json_put(b, to, "ops", ops);
    json_put_int(b, to, "count", of->count);
    json_put_int(b, to, "selected", of->selected);
    json_put_int(b, to, "saved_bytes", of->saved_bytes);
    if (of->how != FUSION_SKIPPED) json_put_text(b, to, "how", of->how == FUSION_SUM ? "sum" : "sequence");
    if (of->recognised) json_put_text(b, to, "recognised", of->recognised->id);
    json_put_known(b, to, "parts_time_us", x->parts_us);
    json_put_known(b, to, "fused_time_us", x->fused_us);
    if (x->name) json_put_text(b, to, "fused", x->name);
    if (x->variant) json_put_text(b, to, "fused_variant", x->variant);
    json_put_known(b, to, "speedup", 1 / x->ratio);
    if (isfinite(x->ratio) && verdict_known(x->ratio_ci)) json_put_real(b, to, "speedup_ci", x->ratio_ci);
    if (x->kernels_parts >= 0) json_put_int(b, to, "kernels_parts", x->kernels_parts);
    if (x->kernels_fused >= 0) json_put_int(b, to, "kernels_fused", x->kernels_fused);
    if (x->worth) {
        json_put_text(b, to, "worth", x->worth);
        json_put_real(b, to, "saved_us", x->saved_us);
    } else {
        json_t *why = json_new_object(b);
        json_put_text(b, why, "code", x->code ? x->code : "error");
        json_put_text(b, why, "text", x->text ? x->text : "");
        json_put(b, to, "why", why);
    }
    return to;
}
