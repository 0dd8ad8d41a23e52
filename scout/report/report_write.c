/* Owns how a report is written, and whether one that was written before is of the same. */
#include "scout/report/report.h"

#include "common/json.h"
#include "common/plain.h"
#include "scout/report/compare.h"

#include <inttypes.h>
#include <math.h>

/* What is taken over from a measurement as it is, in this order. A report holds all of it under the same names, so that
 * it can stand for its measurement. */
static const char *const taken_over[] = {"baseline_variant",
                                         "baseline_own",
                                         "best_variant",
                                         "best_approach",
                                         "ratio",
                                         "ratio_ci",
                                         "rival",
                                         "passes",
                                         "undecided",
                                         "target_ci",
                                         "host",
                                         "card",
                                         "clock_mhz",
                                         "clock_slope",
                                         "slow_passes",
                                         "variants_left_out",
                                         "settle",
                                         "rotation_bytes",
                                         "resident_bytes",
                                         "specials",
                                         "distant",
                                         "weight",
                                         "probe",
                                         "settled",
                                         "seconds",
                                         "spent_s",
                                         "budget_s",
                                         "taken",
                                         "libraries",
                                         "candidates"};

static bool says(const json_t *object, const char *key, const char *wanted) {
    return plain_same(json_get_text_or_null(object, key), wanted);
}

/* ---- its members ---- */

/* Not a number: nothing ran, or what was kept from before tells a work that nothing does. */
static double rate(double work, double us, double unit) {
    const double x = us > 0 ? work / us * 1e6 / unit : NAN;
    return isfinite(x) ? x : NAN;
}

/* As it was asked for, and the share of the blocks that it comes to. */
static void put_block_mask(const operation *o, json_t *to, json_builder *b) {
    operation_block_mask m;
    if (!operation_blocks(o, &m)) return;
    json_put_text(b, to, "block_mask", m.text);
    json_put_real(b, to, "block_density", m.density);
}

static void put_operation(const report_input *in, json_t *to, json_builder *b) {
    const operation *o = in->operation;
    const oprec *r = &o->rec;
    json_put_text(b, to, "schema", "ceiling-scout/report/1");
    json_put_text(b, to, "operation", o->id);
    json_put_text(b, to, "name", o->name);
    json_put_text(b, to, "op", oprec_kind_name(r->kind));
    if (r->what) json_put_text(b, to, "what", r->what);
    json_put(b, to, "shape", json_new_ints(b, r->rank, r->shape));
    if (r->layout) json_put_text(b, to, "layout", r->layout);
    if (r->mask) json_put_text(b, to, "mask", r->mask);
    put_block_mask(o, to, b);
    if (r->type != DTYPE_NONE) json_put_text(b, to, "dtype", dtype_get(r->type)->name);
    if (r->weight_type != DTYPE_NONE) json_put_text(b, to, "weight_dtype", dtype_get(r->weight_type)->name);
    if (r->out_type != DTYPE_NONE && r->out_type != r->type)
        json_put_text(b, to, "out_dtype", dtype_get(r->out_type)->name);
    const char *precision = operation_precision(o);
    if (precision) json_put_text(b, to, "precision", precision);
    json_put_int(b, to, "count", o->count);
    json_put_int(b, to, "batch", oprec_int(r, "batch", 1));
    json_put_text(b, to, "pattern", o->pattern ? o->pattern : "DENSE");
    json_put_real(b, to, "sparsity", o->sparsity);
    json_put_text(b, to, "key", in->key);
}

/* The set that there was to choose from, with the versions of its libraries. */
static const char *candidates_text(const supervisor_device *d, char *text, size_t room) {
    snprintf(text, room, "%016" PRIx64, d->candidates_hash);
    return text;
}

static void put_device(const report_input *in, json_t *to, json_builder *b) {
    const supervisor_device *d = in->device;
    char key[64];
    if (d) {
        json_t *device = json_new_object(b);
        json_put_text(b, device, "name", d->name);
        json_put_text(b, device, "model", d->identity.name);
        json_put_text(b, device, "class", d->device_class);
        json_put_text(b, device, "instance", d->device_instance);
        json_put_text(b, device, "capability", d->identity.capability);
        json_put_int(b, device, "units", d->identity.units);
        json_put_text(b, device, "driver", d->identity.driver);
        json_put(b, to, "device", device);
    }
    regime_key(in->regime, key, sizeof key);
    json_put_text(b, to, "regime", key);
    json_put_int(b, to, "method", REGIME_METHOD);
    json_t *search = json_new_object(b);
    json_put_bool(b, search, "exhaustive", in->search->exhaustive);
    json_put_text(b, search, "candidate", in->search->candidate);
    if (in->search->before) json_put_text(b, search, "before", in->search->before);
    json_put_real(b, search, "early_exit", in->search->early_exit);
    json_put_int(b, search, "workspace_limit", (int64_t)in->search->workspace_limit);
    if (d) json_put_text(b, search, "candidates_hash", candidates_text(d, key, sizeof key));
    json_put(b, to, "search", search);
}

static void put_status(const report_figures *f, json_t *to, json_builder *b) {
    json_put_text(b, to, "status", reason_status_name(f->status));
    if (f->status == ROW_OK) {
        json_put(b, to, "reason", json_null());
        return;
    }
    json_t *reason = json_new_object(b);
    json_put_text(b, reason, "code", f->code ? f->code : "error");
    json_put_text(b, reason, "text", f->text ? f->text : "");
    json_put(b, to, "reason", reason);
}

/* What engineers of attention kernels compare. */
static void put_per_head(const report_input *in, const report_figures *f, json_t *to, json_builder *b) {
    const int64_t heads = operation_heads(in->operation);
    if (heads < 1) return;
    json_put_known(b, to, "baseline_per_head_us", f->baseline_us / (double)heads);
    json_put_known(b, to, "best_per_head_us", f->best_us / (double)heads);
}

static void put_figures(const report_figures *f, json_t *to, json_builder *b) {
    json_put_text(b, to, "baseline", f->baseline);
    json_put_text(b, to, "best", f->best);
    json_put_real(b, to, "flops", f->flops);
    json_put_real(b, to, "bytes_read", f->bytes_read);
    json_put_real(b, to, "bytes_written", f->bytes_written);
    json_put_known(b, to, "ceiling_time_us", f->ceiling_us);
    json_put_known(b, to, "physical_time_us", f->physical_us);
    if (isfinite(f->ceiling_us)) json_put_text(b, to, "ceiling_from", f->ceiling_from);
    if (isfinite(f->ceiling_us)) json_put_known(b, to, "ceiling_ci", f->ceiling_ci); /* an infinite one is not known */
    json_put_known(b, to, "stored_ceiling_time_us", f->stored_ceiling_us);
    json_put_known(b, to, "launch_us", f->launch_us);
    if (!f->baseline_row) json_put_known(b, to, "least_time_us", f->estimate_us); /* its part of the model's time */
    json_put_known(b, to, "baseline_time_us", f->baseline_us);
    json_put_known(b, to, "best_time_us", f->best_us);
    json_put_real(b, to, "baseline_tflops", fmax(0, rate(f->flops, f->baseline_us, 1e12))); /* 0: nothing ran, or */
    json_put_known(b, to, "best_tflops", rate(f->flops, f->best_us, 1e12));
    json_put_real(b, to, "ceiling_tflops", fmax(0, rate(f->flops, f->ceiling_us, 1e12))); /* nothing is known */
    if (f->peak) {
        json_put_known(b, to, "peak_tflops", f->peak->tflops);
        json_put(b, to, "peak_shape", json_new_ints(b, 3, f->peak->shape));
        json_put_text(b, to, "peak_how", f->peak->how);
    }
    json_put_known(b, to, "efficiency", f->efficiency);
    if (f->bound) json_put_text(b, to, "bound", f->bound);
    if (isfinite(f->ceiling_us) && (f->baseline_row || f->best_row))
        json_put_bool(b, to, "above_ceiling", f->above_ceiling);
}

static void put_verdict(const report_figures *f, json_t *to, json_builder *b) {
    const verdict *v = &f->verdict;
    json_put_real(b, to, "proven_gain_us", v->proven_gain_us);
    json_put_real(b, to, "potential_gain_us", v->potential_gain_us);
    json_put_text(b, to, "priority", v->priority);
    json_put_text(b, to, "approach", v->approach);
    json_put_bool(b, to, "borderline", v->borderline);
    json_put_text(b, to, "recommendation", v->recommendation);
}

bool report_has_sweep(const report_input *in) {
    const ceilings *c = in->ceilings;
    const oprec *r = &in->operation->rec;
    return in->sweep && c && c->sweep_count > 0 && r->rank == 3 &&
           plain_same(c->sweep_precision, operation_precision(in->operation)) && c->sweep[0].shape[0] == r->shape[0] &&
           c->sweep[0].shape[1] == r->shape[1];
}

json_t *report_build(const report_input *in, json_builder *b) {
    report_figures f;
    report_read(in, &f);
    json_t *to = json_new_object(b);
    put_operation(in, to, b);
    put_device(in, to, b);
    put_status(&f, to, b);
    put_figures(&f, to, b);
    put_per_head(in, &f, to, b);
    if (in->model_us >= 0) put_verdict(&f, to, b);
    if (in->search->compare) compare_put(in, &f, to, b);
    if (in->fusion.of) json_put(b, to, "fusion", report_fusion_json(in, &f, b));
    if (report_has_sweep(in)) json_put(b, to, "sweep", ceilings_sweep_to_json(in->ceilings, b));
    const json_t *config = json_object_get(f.best_row ? f.best_row : f.baseline_row, "config");
    if (config) json_put(b, to, "config", json_deep_copy(config));
    for (size_t k = 0; in->measurement && k < sizeof taken_over / sizeof taken_over[0]; k++) {
        const json_t *value = json_object_get(in->measurement, taken_over[k]);
        if (value) json_put(b, to, taken_over[k], json_deep_copy(value));
    }
    if (!json_is_array(json_object_get(to, "candidates"))) json_put(b, to, "candidates", json_new_array(b));
    return to;
}

/* ---- reusing ---- */

bool report_is_like(const json_t *report, const report_input *in) {
    char key[64];
    regime_key(in->regime, key, sizeof key);
    if (!says(report, "schema", "ceiling-scout/report/1") || !says(report, "operation", in->operation->id) ||
        !says(report, "key", in->key) || !says(report, "regime", key) ||
        json_integer_value(json_object_get(report, "method")) != REGIME_METHOD)
        return false;
    return in->device && says(json_object_get(report, "device"), "class", in->device->device_class);
}

bool report_is_of(const json_t *report, const report_input *in) {
    char key[64];
    const json_t *search = json_object_get(report, "search"), *candidate = json_object_get(search, "candidate");
    if (!report_is_like(report, in)) return false;
    if (!says(search, "candidates_hash", candidates_text(in->device, key, sizeof key))) return false;
    if (json_is_true(json_object_get(search, "exhaustive")) != in->search->exhaustive ||
        json_integer_value(json_object_get(search, "workspace_limit")) != (json_int_t)in->search->workspace_limit ||
        fabs(json_number_value(json_object_get(search, "early_exit")) - in->search->early_exit) > 1e-9)
        return false;
    const char *before = json_get_text_or_null(search, "before");
    const bool same_before = in->search->before ? plain_same(before, in->search->before) : !before;
    const bool same_candidate = in->search->candidate ? plain_same(json_string_value(candidate), in->search->candidate)
                                                      : json_is_null(candidate);
    return same_candidate && same_before && json_array_size(json_object_get(report, "candidates")) > 0;
}
