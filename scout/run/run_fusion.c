/* Fusions in a run: which are measured and when, what their parts run as, and what becomes of those that are operations
 * of the list already. */
#include "scout/run/run_internal.h"

#include "scout/measure/figures.h"

#include <math.h>
#include <string.h>

static run_item *item_of(const run *r, const operation *o) { return &r->items[o - r->list.items]; }

/* ---- setting up ---- */

static bool is_asked(const run *r, const fusion *f) {
    const char *only = r->options->only;
    if (r->options->output_is_file && !only) return false; /* it holds one report */
    return !only || strcmp(only, "fusion") == 0 || strcmp(only, f->id) == 0 || strcmp(only, f->pattern) == 0;
}

static void skip(run_item *i, const char *code, const char *text) {
    i->source = RUN_SKIPPED;
    i->status = ROW_SKIPPED;
    i->code = code;
    snprintf(i->text, sizeof i->text, "%.230s", text);
}

/* What needs to be measured without a request: parts that are in no model's time. */
static void need(run_item *i, double weight) {
    const bool idle =
        i->source == RUN_LEFT || (i->source == RUN_SKIPPED && i->code && strcmp(i->code, "not_asked") == 0);
    if (i->for_fusion && i->weight < weight) i->weight = weight;
    if (!idle || i->measurement || i->operation->skip_code) return;
    i->source = RUN_PENDING;
    i->stage = RUN_PARTS;
    i->for_fusion = true;
    i->weight = weight;
}

static double weight_of(const fusion *f) {
    return (double)f->saved_bytes * (double)(f->selected > 0 ? f->selected : f->count);
}

static void set_up(run *r, run_item *i) {
    fusion *f = i->fusion;
    i->status = ROW_SKIPPED;
    i->stage = f->turned ? RUN_TURNED_FUSIONS : f->selected > 0 ? RUN_FUSIONS : RUN_OTHER_FUSIONS;
    i->weight = weight_of(f);
    i->derived = f->recognised != NULL;
    if (!is_asked(r, f))
        i->source = RUN_LEFT;
    else if (f->how == FUSION_SKIPPED)
        skip(i, f->skip_code, f->skip_text);
    else if (f->count == 0)
        skip(i, "not_asked", "in a branch that is not taken");
    if (i->source != RUN_PENDING) i->derived = false;
    if (i->derived) i->source = RUN_LEFT; /* until the operation that it is was measured */
    if (!i->derived && (i->source != RUN_PENDING || f->how != FUSION_SUM)) return;
    for (int k = 0; k < f->op_count; k++) need(item_of(r, f->ops[k]), i->weight);
    if (f->recognised && item_of(r, f->recognised)->source == RUN_LEFT) need(item_of(r, f->recognised), i->weight);
}

/* What regions would run as: with channels last alone, or a part of others in the file's order. */
static void need_turned(run *r, int item, double times) {
    run_item *i = &r->items[item];
    const oprec *rec = &i->operation->rec;
    if (item < r->layouts->own && i->operation->count > 0) return;
    i->stands += times;
    need(i, i->stands * ((double)rec->bytes_read + (double)rec->bytes_written));
    if (item < r->layouts->own) return;
    i->for_fusion = true; /* in an exhaustive run it was asked for before */
    i->stage = RUN_TURNED;
}

static void set_up_turned(run *r) {
    const layouts *l = r->layouts;
    const operation_flow *f = r->list.flow;
    if (l->region_count == 0 || r->options->only) return;
    for (int k = 0; k < f->occurrence_count; k++)
        if (l->turned[k] >= 0) need_turned(r, l->turned[k], (double)f->occurrences[k].times);
    for (int k = 0; k < f->tensor_count; k++) {
        if (l->images[k].there >= 0) need_turned(r, l->images[k].there, 1);
        if (l->images[k].back >= 0) need_turned(r, l->images[k].back, 1);
    }
}

int run_fusion_set_up(run *r) {
    int asked = 0;
    set_up_turned(r);
    for (int k = 0; k < r->fusions.count; k++) {
        run_item *i = &r->items[r->list.count + k];
        i->fusion = &r->fusions.items[k];
        i->operation = &i->fusion->fused;
        i->key = fusion_key(i->fusion, &r->arena);
        set_up(r, i);
        asked += i->source != RUN_LEFT || i->derived;
    }
    return asked;
}

/* ---- measuring ---- */

bool run_fusion_ready(const run *r, const run_item *i) {
    for (int k = 0; i->fusion && k < i->fusion->op_count; k++)
        if (item_of(r, i->fusion->ops[k])->busy || item_of(r, i->fusion->ops[k])->again) return false;
    return true;
}

bool run_fusion_known(const run *r, const run_item *i) {
    const bool parts = i->fusion && i->fusion->how == FUSION_SEQUENCE;
    for (int k = 0; parts && k < i->fusion->op_count; k++)
        if (item_of(r, i->fusion->ops[k])->source == RUN_PENDING || item_of(r, i->fusion->ops[k])->again) return false;
    return true;
}

/* A name of its own: the part may be searched again, which gives its measurement back. */
static const char *keep(run *r, const char *was, const char *text) {
    if (!text || (was && strcmp(was, text) == 0)) return text ? was : NULL;
    return arena_printf(&r->arena, "%s", text);
}

void run_fusion_choose(run *r, run_item *i) {
    for (int k = 0; k < i->fusion->op_count; k++) {
        const run_item *part = item_of(r, i->fusion->ops[k]);
        fusion_part *p = &i->fusion->parts[k];
        const json_t *row = part->operation->sparsity > 0 ? NULL : figures_leader(part->measurement);
        p->candidate = keep(r, p->candidate, json_string_value(json_object_get(row, "name")));
        p->variant = keep(r, p->variant, json_string_value(json_object_get(row, "variant")));
    }
}

bool run_fusion_left(const run *r) {
    for (int k = 0; k < r->item_count; k++)
        if (r->items[k].stage > RUN_OPERATIONS && r->items[k].source == RUN_PENDING) return true;
    return false;
}

bool run_fusion_is_turned(const run_item *i) { return i->stands > 0 || (i->fusion && i->fusion->turned); }

void run_fusion_skip(run_item *i) {
    if (i->stage == RUN_TURNED_FUSIONS)
        skip(i, "not_asked", "with channels last its region takes longer, or there was no time to measure it");
    else if (i->for_fusion)
        skip(i, "not_asked",
             "a part of another operation, or one with its channels last; there was no time to measure it");
    else
        skip(i, "budget",
             "fusions have a quarter of the run's time, or what operations leave of it; give --only fusion --resume, "
             "or a larger --budget");
}

/* ---- the end ---- */

void run_fusion_derive(run *r) {
    for (int k = r->list.count; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        if (!i->derived) continue;
        const run_item *from = item_of(r, i->fusion->recognised);
        if (from->source == RUN_PENDING || (from->source == RUN_LEFT && !from->measurement)) continue;
        i->source = from->source == RUN_LEFT ? RUN_KEPT : from->source;
        i->status = from->status;
        i->code = from->code;
        memcpy(i->text, from->text, sizeof i->text);
        i->device = from->device;
        json_decref(i->measurement);
        i->measurement = json_incref(from->measurement);
    }
}

report_fusion run_fusion_about(const run *r, const run_item *i) {
    report_fusion to = {.of = i->fusion, .sum_us = NAN, .sum_ci = NAN, .sum_kernels = -1};
    verdict_sum sum = {0};
    int kernels = 0;
    if (!i->fusion || i->fusion->how != FUSION_SUM) return to;
    for (int k = 0; k < i->fusion->op_count; k++) {
        const report_input in = run_input(r, item_of(r, i->fusion->ops[k]), -1);
        report_figures f;
        report_read(&in, &f);
        const json_t *own = json_object_get(f.best_row, "kernels");
        if (!f.best_row) {
            to.code = f.code;
            to.text = f.text;
            return to;
        }
        verdict_sum_add(&sum, f.best_us, f.best_ci);
        kernels = json_is_integer(own) && kernels >= 0 ? kernels + (int)json_integer_value(own) : -1;
    }
    to.sum_us = sum.us;
    to.sum_ci = verdict_sum_ci(&sum);
    to.sum_kernels = kernels;
    return to;
}

/* ---- later passes ---- */

static const run_item *fused_of(const run *r, const run_item *i) {
    return i->fusion->recognised ? item_of(r, i->fusion->recognised) : i;
}

static int passes_of(const run *r, const run_item *i) {
    int passes = figures_passes(fused_of(r, i)->measurement);
    for (int k = 0; k < i->fusion->op_count; k++) passes += figures_passes(item_of(r, i->fusion->ops[k])->measurement);
    return passes;
}

/* It has no figure, and gets none. */
static bool is_void(const run_item *i) {
    const bool pending = i->source == RUN_PENDING || i->busy || i->again;
    return !pending && !figures_leader(i->measurement);
}

/* Whether the sum of its parts takes longer; asked once after each pass of one of them. */
static bool is_sum_open(const run *r, run_item *i) {
    const run_item *const fused = fused_of(r, i);
    const int passes = passes_of(r, i);
    bool never = is_void(fused);
    for (int k = 0; k < i->fusion->op_count && !never; k++) never = is_void(item_of(r, i->fusion->ops[k]));
    if (never || i->summed == passes) return !never && i->sum_open;
    report_figures f;
    const report_input in = run_input(r, fused, -1);
    const report_fusion sum = run_fusion_about(r, i);
    report_read(&in, &f);
    const double ratio = f.best_us / sum.sum_us, ci = hypot(f.best_ci, sum.sum_ci);
    i->summed = passes;
    i->sum_open =
        !f.best_row || !isfinite(ci) || verdict_gain_of(ratio, ci, verdict_defaults.margin) == VERDICT_OPEN_GAIN;
    return i->sum_open;
}

bool run_fusion_decides(const run *r, const run_item *part) {
    for (int k = r->list.count; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        for (int n = 0; i->fusion->how == FUSION_SUM && n < i->fusion->op_count; n++)
            if (i->fusion->ops[n] == part->operation && is_sum_open(r, i)) return true;
    }
    return false;
}
