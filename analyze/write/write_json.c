/* The summary for programs: summary.json (docs/formats.md). What is not known is absent. */
#include "analyze/write/formats.h"

#include "common/json_stream.h"
#include "common/plain.h"

#include <math.h>
#include <string.h>

static void put_known(json_stream *s, const char *key, double x) {
    if (isfinite(x)) json_stream_real(s, key, x);
}

static void put_text(json_stream *s, const char *key, const char *text) {
    if (text) json_stream_text(s, key, text);
}

static void put_thresholds(json_stream *s, const verdict_thresholds *t) {
    json_stream_open(s, "thresholds", '{', false);
    json_stream_real(s, "ceiling", t->ceiling);
    json_stream_real(s, "ceiling_ci", t->ceiling_ci);
    json_stream_real(s, "high_proven", t->high_proven);
    json_stream_real(s, "high_potential", t->high_potential);
    json_stream_real(s, "medium_proven", t->medium_proven);
    json_stream_real(s, "medium_potential", t->medium_potential);
    json_stream_real(s, "margin", t->margin);
    json_stream_close(s);
}

static void put_device(json_stream *s, const study_group *g) {
    json_stream_open(s, "device", '{', false);
    json_stream_text(s, "model", g->device);
    json_stream_text(s, "class", g->device_class);
    put_text(s, "instance", g->device_instance);
    put_text(s, "driver", g->driver);
    json_stream_int(s, "units", g->units);
    json_stream_close(s);
}

/* ---- sums ---- */

static void put_sum(json_stream *s, const summary_sum *sum) {
    json_stream_int(s, "operations", (int64_t)sum->operations);
    json_stream_int(s, "occurrences", sum->occurrences);
    json_stream_real(s, "baseline_us", sum->baseline_us);
    json_stream_real(s, "best_us", sum->best_us);
    json_stream_real(s, "ceiling_us", sum->ceiling_us);
    json_stream_real(s, "share", sum->share);
    json_stream_real(s, "proven_us", sum->proven_us);
    json_stream_real(s, "proven_share", sum->proven_share);
    json_stream_real(s, "own_us", sum->own_us);
    json_stream_real(s, "own_share", sum->own_share);
    json_stream_real(s, "potential_us", sum->potential_us);
    json_stream_real(s, "potential_share", sum->potential_share);
    json_stream_int(s, "borderline", (int64_t)sum->borderline);
}

static void put_partial(json_stream *s, const study_group *g) {
    const study_partial *p = &g->partial;
    if (!p->text) return;
    json_stream_open(s, "partial", '{', false);
    json_stream_text(s, "text", p->text);
    json_stream_int(s, "operations", (int64_t)p->operations);
    json_stream_int(s, "measured", (int64_t)p->measured);
    put_known(s, "share", p->share);
    put_text(s, "state", g->course.state);
    json_stream_close(s);
}

static void put_memory(json_stream *s, const study_memory *m) {
    if (!m->at) return;
    json_stream_open(s, "memory", '{', false);
    json_stream_int(s, "weight_bytes", m->weight_bytes);
    json_stream_int(s, "activation_bytes", m->activation_bytes);
    json_stream_text(s, "at", m->at);
    if (m->least) json_stream_bool(s, "least", true);
    json_stream_close(s);
}

static void put_totals(json_stream *s, const summary_group *g) {
    json_stream_open(s, "totals", '{', false);
    json_stream_real(s, "model_us", g->group->model_us);
    json_stream_real(s, "model_ci", g->group->model_ci);
    json_stream_real(s, "measured_us", g->group->measured_us);
    json_stream_real(s, "missing_us", g->missing_us);
    put_sum(s, &g->all);
    json_stream_real(s, "borderline_share", g->borderline_share);
    json_stream_int(s, "with_bad_rows", (int64_t)g->bad_rows);
    json_stream_int(s, "without_baseline", (int64_t)g->group->without_baseline);
    json_stream_int(s, "said_otherwise", (int64_t)g->said_otherwise);
    json_stream_close(s);
    json_stream_open(s, "outcomes", '{', false);
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) {
        json_stream_open(s, summary_outcomes[k].name, '{', false);
        put_sum(s, &g->outcomes[k]);
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void put_categories(json_stream *s, const summary_group *g) {
    json_stream_open(s, "categories", '[', false);
    for (size_t k = 0; k < g->category_count; k++) {
        const summary_category *c = &g->categories[k];
        json_stream_open(s, NULL, '{', false);
        json_stream_text(s, "op", c->op);
        put_sum(s, &c->sum);
        json_stream_open(s, "optimal", '{', false);
        json_stream_int(s, "operations", (int64_t)c->optimal.operations);
        json_stream_real(s, "baseline_us", c->optimal.baseline_us);
        json_stream_real(s, "share", c->optimal.share);
        json_stream_close(s);
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void put_missing(json_stream *s, const summary_group *g) {
    json_stream_open(s, "missing", '[', false);
    for (size_t k = 0; k < g->missing_count; k++) {
        const summary_missing *m = &g->missing[k];
        json_stream_open(s, NULL, '{', false);
        json_stream_text(s, "status", m->status);
        json_stream_text(s, "code", m->code);
        json_stream_text(s, "text", m->text);
        json_stream_int(s, "operations", (int64_t)m->operations);
        json_stream_int(s, "occurrences", m->occurrences);
        json_stream_text(s, "first", m->first->operation);
        json_stream_close(s);
    }
    json_stream_close(s);
}

/* ---- operations ---- */

static void put_layers(json_stream *s, const study_report *r) {
    json_stream_open(s, "layers", '[', false);
    for (size_t k = 0; k < r->layer_count; k++) json_stream_text(s, NULL, r->layers[k]);
    json_stream_close(s);
    if (r->layers_among) json_stream_bool(s, "layers_among", true);
}

static void put_what(json_stream *s, const study_report *r) {
    json_stream_text(s, "operation", r->operation);
    put_text(s, "name", r->name);
    if (r->layer_count > 0) put_layers(s, r);
    json_stream_text(s, "op", r->op);
    put_text(s, "what", r->what);
    json_stream_ints(s, "shape", r->rank, r->shape);
    put_text(s, "dtype", r->dtype);
    put_text(s, "precision", r->precision);
    put_text(s, "pattern", r->pattern);
    put_known(s, "sparsity", r->sparsity);
    put_text(s, "block_mask", r->block_mask);
    if (r->block_density > 0) put_known(s, "block_density", r->block_density);
    json_stream_int(s, "count", r->count);
    json_stream_text(s, "status", r->status);
    put_text(s, "reason", r->reason_code);
    put_text(s, "baseline", r->baseline);
    put_text(s, "baseline_variant", r->baseline_variant);
    put_text(s, "best", r->best);
    put_text(s, "best_variant", r->best_variant);
    put_known(s, "baseline_time_us", r->baseline_us);
    put_known(s, "baseline_ci", r->baseline_ci);
    put_known(s, "best_time_us", r->best_us);
    put_known(s, "best_ci", r->best_ci);
    put_known(s, "ceiling_time_us", r->ceiling_us);
    put_known(s, "ceiling_ci", r->ceiling_ci);
    if (!isfinite(r->baseline_us)) put_known(s, "least_time_us", r->least_us);
    put_text(s, "bound", r->bound);
}

/* What is gained of something without a figure is not known. */
static void put_verdict(json_stream *s, const study_report *r, bool figure) {
    const verdict *v = &r->verdict;
    put_known(s, "efficiency", v->efficiency);
    put_known(s, "proven_gain_us", figure ? v->proven_gain_us : NAN);
    put_known(s, "potential_gain_us", figure ? v->potential_gain_us : NAN);
    json_stream_text(s, "priority", v->priority);
    json_stream_text(s, "approach", v->approach);
    json_stream_bool(s, "borderline", v->borderline);
    json_stream_text(s, "recommendation", v->recommendation);
    if (r->said && strcmp(r->said, v->approach) != 0) json_stream_text(s, "said", r->said);
}

static void put_operations(json_stream *s, const summary_group *g) {
    json_stream_open(s, "operations", '[', false);
    for (size_t k = 0; k < g->row_count; k++) {
        const summary_row *row = &g->rows[k];
        json_stream_open(s, NULL, '{', false);
        json_stream_int(s, "rank", (int64_t)row->rank);
        json_stream_text(s, "outcome", summary_outcomes[row->outcome].name);
        put_what(s, row->report);
        const bool figure = row->outcome != SUMMARY_MISSING;
        put_known(s, "weight_us", figure ? row->weight_us : NAN);
        put_known(s, "share", figure ? row->share : NAN);
        put_known(s, "proven_share", figure ? row->proven_share : NAN);
        put_known(s, "potential_us", figure ? row->potential_us : NAN);
        put_known(s, "potential_share", figure ? row->potential_share : NAN);
        put_verdict(s, row->report, figure);
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void put_fusions(json_stream *s, const summary_group *g) {
    const summary_fusions *f = &g->fusions;
    json_stream_open(s, "fusions", '{', false);
    json_stream_int(s, "measured", (int64_t)f->all);
    json_stream_int(s, "worth", (int64_t)f->worth);
    json_stream_int(s, "borderline", (int64_t)f->borderline);
    json_stream_int(s, "unknown", (int64_t)f->unknown);
    json_stream_real(s, "saved_us", f->saved_us);
    json_stream_real(s, "saved_share", f->saved_share);
    json_stream_open(s, "rows", '[', false);
    for (size_t k = 0; k < f->count; k++) {
        const study_report *r = f->rows[k];
        json_stream_open(s, NULL, '{', false);
        json_stream_text(s, "fusion", r->operation);
        json_stream_text(s, "pattern", r->fusion_pattern);
        json_stream_int(s, "count", r->count);
        json_stream_int(s, "selected", r->selected);
        json_stream_text(s, "worth", r->worth);
        json_stream_real(s, "speedup", r->speedup);
        put_known(s, "speedup_ci", r->speedup_ci);
        put_known(s, "parts_time_us", r->parts_us);
        put_known(s, "fused_time_us", r->fused_us);
        json_stream_real(s, "saved_us", r->saved_us);
        json_stream_close(s);
    }
    json_stream_close(s);
    json_stream_close(s);
}

static void put_whole_time(json_stream *s, const char *name, const study_whole_time *t) {
    json_stream_open(s, name, '{', false);
    json_stream_real(s, "time_us", t->us);
    put_known(s, "ci", t->ci);
    if (t->sum_us > 0) {
        json_stream_real(s, "sum_us", t->sum_us);
        put_known(s, "sum_ci", t->sum_ci);
    }
    json_stream_close(s);
}

static void put_whole(json_stream *s, const study_whole *w) {
    if (!w->known) return;
    json_stream_open(s, "whole", '{', false);
    put_whole_time(s, "default", &w->first);
    if (!w->same) {
        put_whole_time(s, "best", &w->best);
        json_stream_real(s, "ratio", w->ratio);
        put_known(s, "ratio_ci", w->ratio_ci);
        if (w->elsewhere) json_stream_bool(s, "elsewhere", true);
        json_stream_bool(s, "proven", w->proven);
    }
    if (w->operations > 0) {
        json_stream_open(s, "groups", '{', true);
        json_stream_int(s, "operations", w->operations);
        json_stream_int(s, "groups", w->groups);
        json_stream_int(s, "fused", w->fused);
        if (w->turned > 0) json_stream_int(s, "turned", w->turned);
        json_stream_close(s);
    }
    if (w->left_out > 0) json_stream_int(s, "left_out", w->left_out);
    json_stream_close(s);
}

static void put_group(json_stream *s, const summary_group *g) {
    json_stream_open(s, NULL, '{', false);
    json_stream_text(s, "model", g->group->model);
    json_stream_int(s, "models", (int64_t)g->group->models);
    put_device(s, g->group);
    json_stream_text(s, "regime", g->group->regime);
    json_stream_int(s, "method", g->group->method);
    put_partial(s, g->group);
    put_memory(s, &g->group->memory);
    put_whole(s, &g->group->whole);
    put_totals(s, g);
    put_categories(s, g);
    put_missing(s, g);
    put_operations(s, g);
    put_fusions(s, g);
    json_stream_close(s);
}

/* The paths are those of the file system, which may hold any bytes. */
static void put_skipped(json_stream *s, const study *of, arena *a) {
    json_stream_open(s, "skipped", '[', false);
    for (size_t k = 0; k < of->skipped_count; k++) {
        json_stream_open(s, NULL, '{', false);
        json_stream_text(s, "path", plain_utf8(a, of->skipped[k].path));
        json_stream_text(s, "why", of->skipped[k].why);
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void put_all(json_stream *s, const summary *m, arena *a) {
    json_stream_open(s, NULL, '{', false);
    json_stream_text(s, "schema", "ceiling-scout/summary/1");
    json_stream_bool(s, "incomplete", m->incomplete);
    put_thresholds(s, &m->study->options.thresholds);
    json_stream_open(s, "groups", '[', false);
    for (size_t k = 0; k < m->group_count; k++) put_group(s, &m->groups[k]);
    json_stream_close(s);
    put_skipped(s, m->study, a);
    json_stream_close(s);
}

bool write_json(const summary *m, FILE *out, status *st) {
    json_stream s;
    guard g;
    arena a;
    guard_init(&g);
    arena_init(&a, &g, (size_t)1 << 30);
    json_stream_begin_on(&s, out);
    if (guard_enter(&g))
        put_all(&s, m, &a);
    else
        *st = g.st;
    arena_free(&a);
    return g.st.code == STATUS_OK && json_stream_end(&s, st);
}
