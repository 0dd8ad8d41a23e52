/* A comparison for programs: ceiling-scout/comparison/1 (docs/formats.md). What is not known is absent. */
#include "analyze/compare/comparison_formats.h"

#include "common/json_stream.h"

#include <math.h>

static void real(json_stream *s, const char *key, double x) {
    if (isfinite(x)) json_stream_real(s, key, x);
}

static void write_run(const comparison *c, json_stream *s, int which) {
    const study_group *g = which ? c->after : c->before;
    json_stream_open(s, which ? "after" : "before", '{', false);
    json_stream_text(s, "folder", c->folders[which]);
    json_stream_text(s, "model", g->model);
    json_stream_text(s, "device", g->device);
    json_stream_text(s, "device_class", g->device_class);
    json_stream_text(s, "driver", g->driver);
    real(s, "clock_mhz", c->clock_mhz[which]);
    real(s, "model_us", c->model_us[which]);
    json_stream_close(s);
}

static void write_differences(const comparison *c, json_stream *s) {
    json_stream_open(s, "differs", '[', false);
    for (size_t k = 0; k < c->difference_count; k++) {
        json_stream_open(s, NULL, '{', true);
        json_stream_text(s, "what", c->differences[k].what);
        json_stream_text(s, "before", c->differences[k].before);
        json_stream_text(s, "after", c->differences[k].after);
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void write_change(json_stream *s, const drift *d, drift_judgement machine) {
    json_stream_bool(s, "known", d->machine_known);
    json_stream_text(s, "state", drift_state_name(machine.state));
    if (d->machine_known) real(s, "change", expm1(d->machine));
    real(s, "change_sd", machine.sd);
    json_stream_int(s, "operations", (int64_t)d->members);
}

static void write_machine(const comparison *c, json_stream *s) {
    static const char *const says[] = {"unknown", "stored", "alike", "apart"};
    json_stream_open(s, "machine", '{', false);
    write_change(s, &c->drift, c->machine);
    json_stream_open(s, "parts", '[', false);
    for (size_t k = 0; k < c->part_count; k++) {
        json_stream_open(s, NULL, '{', true);
        json_stream_text(s, "bound", c->parts[k].bound);
        write_change(s, &c->parts[k].drift, c->parts[k].machine);
        json_stream_close(s);
    }
    json_stream_close(s);
    json_stream_text(s, "ceilings", says[c->ceilings_say]);
    json_stream_open(s, "ceiling_changes", '[', false);
    for (size_t k = 0; k < c->ceiling_count; k++) {
        json_stream_open(s, NULL, '{', true);
        json_stream_text(s, "bound", c->ceilings[k].bound);
        json_stream_text(s, "precision", c->ceilings[k].precision);
        json_stream_int(s, "operations", (int64_t)c->ceilings[k].operations);
        real(s, "change", c->ceilings[k].change);
        json_stream_close(s);
    }
    json_stream_close(s);
    json_stream_close(s);
}

static void write_test(const comparison *c, json_stream *s) {
    const drift *d = &c->drift;
    json_stream_open(s, "test", '{', false);
    json_stream_real(s, "alarms", d->options.alarms);
    json_stream_real(s, "least_change", d->options.margin);
    json_stream_bool(s, "learned", d->learned);
    json_stream_real(s, "spread", d->spread);
    json_stream_real(s, "trust", d->trust);
    json_stream_real(s, "normal", d->normal);
    json_stream_real(s, "limit", d->limit);
    real(s, "found_in_99_of_100", drift_detectable(d));
    json_stream_close(s);
}

static void write_counts(const comparison_list *list, json_stream *s) {
    json_stream_open(s, "counts", '{', false);
    json_stream_int(s, "matched", (int64_t)list->row_count);
    json_stream_int(s, "compared", (int64_t)list->measured);
    for (int k = 0; k < COMPARISON_STATES; k++)
        json_stream_int(s, drift_state_name((drift_state)k), (int64_t)list->states[k]);
    json_stream_int(s, "verdicts_worse", (int64_t)list->verdicts[COMPARISON_WORSE]);
    json_stream_int(s, "verdicts_better", (int64_t)list->verdicts[COMPARISON_BETTER]);
    json_stream_int(s, "verdicts_other", (int64_t)list->verdicts[COMPARISON_OTHER]);
    json_stream_close(s);
}

static void write_side(json_stream *s, const char *key, const study_report *r) {
    json_stream_open(s, key, '{', true);
    json_stream_text(s, "operation", r->operation);
    json_stream_text(s, "status", r->status);
    json_stream_text(s, "baseline", r->baseline);
    json_stream_text(s, "best", r->best);
    json_stream_text(s, "best_variant", r->best_variant);
    real(s, "baseline_time_us", r->baseline_us);
    real(s, "baseline_ci", r->baseline_ci);
    real(s, "best_time_us", r->best_us);
    real(s, "best_ci", r->best_ci);
    real(s, "ceiling_time_us", r->ceiling_us);
    real(s, "efficiency", r->verdict.efficiency);
    json_stream_text(s, "approach", r->verdict.approach);
    json_stream_text(s, "priority", r->verdict.priority);
    json_stream_bool(s, "borderline", r->verdict.borderline);
    if (r->fusion) {
        real(s, "parts_time_us", r->parts_us);
        real(s, "fused_time_us", r->fused_us);
        real(s, "speedup", r->speedup);
        real(s, "speedup_ci", r->speedup_ci);
        if (r->worth) json_stream_text(s, "worth", r->worth);
    }
    json_stream_close(s);
}

static void write_row(json_stream *s, const comparison_row *r, comparison_fail fail) {
    json_stream_open(s, NULL, '{', false);
    json_stream_text(s, "operation", r->after->operation);
    json_stream_text(s, "op", r->after->op);
    if (r->after->fusion) json_stream_text(s, "pattern", r->after->fusion_pattern);
    json_stream_int(s, "count", r->after->count);
    json_stream_text(s, "state", drift_state_name(r->best.state));
    json_stream_text(s, "baseline_state", drift_state_name(r->baseline.state));
    json_stream_text(s, "verdict", comparison_verdict_names[r->verdict]);
    json_stream_bool(s, "failed", comparison_fails(r, fail));
    real(s, "change", r->change);
    real(s, "baseline_change", r->baseline_change);
    real(s, "net_change", expm1(r->best.net));
    if (isfinite(r->best.net)) real(s, "net_sd", r->best.sd);
    real(s, "lost_us", r->lost_us);
    if (r->note) json_stream_text(s, "note", r->note);
    write_side(s, "before", r->before);
    write_side(s, "after", r->after);
    json_stream_close(s);
}

static void write_names(json_stream *s, const char *key, const study_report *const *list, size_t count) {
    json_stream_open(s, key, '[', false);
    for (size_t k = 0; k < count; k++) json_stream_text(s, NULL, list[k]->operation);
    json_stream_close(s);
}

static void write_rows(json_stream *s, const char *key, const comparison_list *list, comparison_fail fail) {
    json_stream_open(s, key, '[', false);
    for (size_t k = 0; k < list->row_count; k++)
        if (list->rows[k].measured) write_row(s, &list->rows[k], fail);
    json_stream_close(s);
}

static void write_fusions(const comparison *c, json_stream *s, comparison_fail fail) {
    json_stream_open(s, "fusions", '{', false);
    write_counts(&c->fusions, s);
    write_rows(s, "rows", &c->fusions, fail);
    write_names(s, "new", c->fusions.fresh, c->fusions.fresh_count);
    write_names(s, "gone", c->fusions.gone, c->fusions.gone_count);
    json_stream_close(s);
}

static void write_skipped(const comparison *c, json_stream *s) {
    json_stream_open(s, "skipped", '[', false);
    for (size_t k = 0; k < c->skipped_count; k++) {
        json_stream_open(s, NULL, '{', false);
        json_stream_text(s, "path", c->skipped[k].path);
        json_stream_text(s, "why", c->skipped[k].why);
        json_stream_close(s);
    }
    json_stream_close(s);
}

bool comparison_json(const comparison *c, const comparison_shown *shown, FILE *out, status *st) {
    json_stream s;
    json_stream_begin_on(&s, out);
    json_stream_open(&s, NULL, '{', false);
    json_stream_text(&s, "schema", "ceiling-scout/comparison/1");
    json_stream_text(&s, "regime", c->after->regime);
    json_stream_int(&s, "method", c->after->method);
    write_run(c, &s, 0);
    write_run(c, &s, 1);
    write_differences(c, &s);
    write_machine(c, &s);
    write_test(c, &s);
    write_counts(&c->operations, &s);
    write_rows(&s, "operations", &c->operations, shown->fail);
    write_names(&s, "new", c->operations.fresh, c->operations.fresh_count);
    write_names(&s, "gone", c->operations.gone, c->operations.gone_count);
    write_fusions(c, &s, shown->fail);
    write_skipped(c, &s);
    json_stream_close(&s);
    return json_stream_end(&s, st);
}
