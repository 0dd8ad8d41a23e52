/* Owns what a report says: reads a measurement (from a worker, from the cache or from an older report, none of which is
 * trusted), sets it beside its ceiling, and has the verdict spoken. */
#include "scout/report.h"

#include "common/json_get.h"
#include "common/plain.h"
#include "scout/compare.h"
#include "scout/report_beside.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What is taken over from a measurement as it is, in this order. A report holds all of it under the same names, so that
 * it can stand for its measurement. */
static const char *const taken_over[] = {
    "baseline_variant", "best_variant",   "best_approach",  "ratio",    "ratio_ci",  "rival",     "variants_left_out",
    "settle",           "rotation_bytes", "resident_bytes", "specials", "weight",    "probe",     "settled",
    "seconds",          "spent_s",        "budget_s",       "taken",    "libraries", "candidates"};

/* ---- reading ---- */

static double at_least_0(double x) { return isfinite(x) && x > 0 ? x : 0; }

static bool same_text(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }

static bool says(const json_t *object, const char *key, const char *wanted) {
    return same_text(json_get_text_or_null(object, key), wanted);
}

static row_status row_status_of(const json_t *row) {
    row_status found = ROW_ERROR;
    const char *name = json_get_text_or_null(row, "status");
    if (name) reason_status_from_name(name, &found);
    return found;
}

static const json_t *find_row(const json_t *rows, const char *name, const char *variant) {
    for (size_t k = 0; name && k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        if (!says(row, "name", name)) continue;
        if (!variant || says(row, "variant", variant)) return row;
    }
    return NULL;
}

/* The row's figures where it is OK and has them. */
static const json_t *read_row(const json_t *row, double *us, double *ci) {
    const json_t *time = json_object_get(row, "time_us");
    *us = *ci = NAN;
    if (!row || row_status_of(row) != ROW_OK || isnan(json_get_positive(time, "median"))) return NULL;
    *us = json_get_positive(time, "median");
    *ci = at_least_0(json_get_positive(time, "rel_ci95"));
    return row;
}

static void take_reason(report_figures *out, const json_t *row) {
    const json_t *reason = json_object_get(row, "reason");
    const char *code = json_get_text_or_null(reason, "code"), *text = json_get_text_or_null(reason, "text");
    out->status = row_status_of(row);
    out->code = code ? code : "error";
    out->text = text ? text : "";
}

/* Where no baseline is named: the worst row tells, and where there is none, nobody was there to run it. */
static void read_status(const json_t *rows, const char *variant, report_figures *out) {
    const json_t *told = find_row(rows, out->baseline, variant);
    if (out->baseline_row) {
        out->status = ROW_OK;
        out->code = out->text = NULL;
        return;
    }
    for (size_t k = 0; !told && k < json_array_size(rows); k++)
        if (reason_status_bad(row_status_of(json_array_get(rows, k)))) told = json_array_get(rows, k);
    for (size_t k = 0; !told && k < json_array_size(rows); k++)
        if (row_status_of(json_array_get(rows, k)) != ROW_OK) told = json_array_get(rows, k);
    if (told && row_status_of(told) != ROW_OK) {
        take_reason(out, told);
    } else {
        out->status = ROW_SKIPPED;
        out->code = "no_candidate";
        out->text = json_array_size(rows) > 0 ? "no library's default is known here to compare with"
                                              : "no implementation of this kind is known here yet";
    }
}

static void read_measurement(const json_t *m, report_figures *out) {
    const json_t *rows = json_object_get(m, "candidates");
    const char *variant = json_get_text_or_null(m, "baseline_variant");
    out->baseline = json_get_text_or_null(m, "baseline");
    out->best = json_get_text_or_null(m, "best");
    out->baseline_row = read_row(find_row(rows, out->baseline, variant), &out->baseline_us, &out->baseline_ci);
    out->best_row =
        read_row(find_row(rows, out->best, json_get_text_or_null(m, "best_variant")), &out->best_us, &out->best_ci);
    if (!out->best_row) out->best = NULL;
    if (out->best && out->best_row != out->baseline_row) {
        out->ratio = json_get_positive(m, "ratio");
        out->ratio_ci = at_least_0(json_get_positive(m, "ratio_ci"));
        out->family = json_get_text_or_null(m, "best_approach");
    }
    const json_t *rival = json_object_get(m, "rival");
    out->rival_ratio = json_get_positive(rival, "ratio");
    const double ci = json_get_number(rival, "ratio_ci");
    out->rival_ratio_ci = isnan(ci) ? NAN : at_least_0(ci); /* absent: not known */
    out->rival_family = json_get_text_or_null(rival, "approach");
    for (size_t k = 0; k < json_array_size(rows); k++)
        out->bad_rows += reason_status_bad(row_status_of(json_array_get(rows, k)));
    read_status(rows, variant, out);
}

static void read_ceiling(const report_input *in, report_figures *out) {
    const ceilings *c = in->ceilings;
    const oprec *r = &in->operation->rec;
    const json_t *m = in->measurement;
    const double flops = json_get_positive(m, "flops"), read = json_get_positive(m, "bytes_read"),
                 written = json_get_positive(m, "bytes_written");
    out->flops = isnan(flops) ? (double)r->flops : flops;
    out->bytes_read = isnan(read) ? (double)r->bytes_read : read;
    out->bytes_written = isnan(written) ? (double)r->bytes_written : written;
    out->precision = operation_precision(in->operation);
    if (!c || !out->precision || !m) return;
    out->peak = ceilings_find_peak(c, out->precision);
    ceilings_time t = ceilings_time_of(c, out->precision, out->flops, out->bytes_read, out->bytes_written,
                                       at_least_0(json_get_positive(m, "resident_bytes")),
                                       at_least_0(json_get_positive(m, "specials")));
    if (!isfinite(t.seconds) || t.seconds <= 0) return;
    report_beside_read(m, &t, out);
    out->ceiling_us = 1e6 * t.seconds;
    out->ceiling_ci = t.rel_ci95;
    out->launch_us = 1e6 * t.launch_s;
    out->bound = t.bound;
    out->above_ceiling = report_beside_outruns(out, out->ceiling_us, out->ceiling_ci);
}

/* What an operation takes at least, for the model's time where its baseline has none. Without a peak or a precision,
 * its bytes alone. */
static void estimate(const report_input *in, report_figures *out) {
    const double resident = at_least_0(json_get_positive(in->measurement, "resident_bytes"));
    if (!in->ceilings) return;
    const ceilings *c = in->ceilings;
    ceilings_time t = {.seconds = NAN};
    if (out->precision)
        t = ceilings_time_of(c, out->precision, out->flops, out->bytes_read, out->bytes_written, resident, 0);
    if (!isfinite(t.seconds)) t = ceilings_time_of(c, "", 0, out->bytes_read, out->bytes_written, resident, 0);
    if (isfinite(t.seconds) && t.seconds > 0) out->estimate_us = 1e6 * t.seconds;
}

static const char *row_name(const json_t *row, char *text, size_t room) {
    const char *name = json_get_text_or_null(row, "name"), *variant = json_get_text_or_null(row, "variant");
    if (!name) return NULL;
    snprintf(text, room, "%s%s%s", name, variant && *variant ? " " : "", variant ? variant : "");
    plain_end(text);
    return text;
}

static void judge(const report_input *in, report_figures *out) {
    const operation *o = in->operation;
    char best[160];
    verdict_facts facts = {
        .op = oprec_kind_name(o->rec.kind),
        .pattern = o->pattern,
        .device = in->device ? in->device->name : NULL,
        .bound = out->bound,
        .best_family = out->family,
        .reason = out->code,
        .no_work = same_text(out->code, "no_work"),
        .measured = out->baseline_row != NULL,
        .ceiling_us = out->ceiling_us,
        .baseline_us = out->baseline_us,
        .best_us = out->best_us,
        .ceiling_ci = out->ceiling_ci,
        .baseline_ci = out->baseline_ci,
        .best_ci = out->best_ci,
        .ratio = out->best_row == out->baseline_row ? 0 : out->ratio,
        .ratio_ci = out->ratio_ci,
        .launch_us = in->ceilings ? 1e6 * in->ceilings->launch_s : 0,
        .rival_ratio = out->rival_ratio,
        .rival_ratio_ci = out->rival_ratio_ci,
        .rival_family = out->rival_family,
        .count = (double)o->count,
        .model_us = in->model_us,
        .model_ci = in->model_ci,
        .shape = {o->rec.rank > 0 ? o->rec.shape[0] : 0, o->rec.rank > 1 ? o->rec.shape[1] : 0,
                  o->rec.rank > 2 ? o->rec.shape[2] : 0},
        .batch = oprec_int(&o->rec, "batch", 1),
        .units = in->device ? in->device->identity.units : 0,
        .baseline_name = out->baseline,
        .best_name = row_name(out->best_row, best, sizeof best),
    };
    if (in->fusion.of) report_fusion_facts(in, out, &facts);
    out->verdict = verdict_of(&facts, NULL);
    out->efficiency = out->verdict.efficiency;
}

void report_read(const report_input *in, report_figures *out) {
    *out = (report_figures){.status = in->status,
                            .code = in->code,
                            .text = in->text,
                            .baseline_us = NAN,
                            .baseline_ci = NAN,
                            .best_us = NAN,
                            .best_ci = NAN,
                            .ratio = NAN,
                            .ratio_ci = NAN,
                            .rival_ratio = NAN,
                            .ceiling_us = NAN,
                            .launch_us = NAN,
                            .ceiling_from = "stored",
                            .stored_ceiling_us = NAN,
                            .estimate_us = NAN,
                            .efficiency = NAN};
    if (in->measurement) read_measurement(in->measurement, out);
    read_ceiling(in, out);
    estimate(in, out);
    if (in->fusion.of) report_fusion_read(in, out);
    judge(in, out);
}

bool report_is_excused(const report_figures *f) {
    static const char *const codes[] = {"no_work", "not_asked"};
    for (size_t k = 0; f->code && k < sizeof codes / sizeof codes[0]; k++)
        if (same_text(f->code, codes[k])) return true;
    return false;
}

/* ---- writing ---- */

static double rate(double work, double us, double unit) { return us > 0 ? work / us * 1e6 / unit : NAN; }

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

static void put_figures(const report_figures *f, json_t *to, json_builder *b) {
    json_put_text(b, to, "baseline", f->baseline);
    json_put_text(b, to, "best", f->best);
    json_put_real(b, to, "flops", f->flops);
    json_put_real(b, to, "bytes_read", f->bytes_read);
    json_put_real(b, to, "bytes_written", f->bytes_written);
    json_put_known(b, to, "ceiling_time_us", f->ceiling_us);
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
           same_text(c->sweep_precision, operation_precision(in->operation)) && c->sweep[0].shape[0] == r->shape[0] &&
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

bool report_is_of(const json_t *report, const report_input *in) {
    char key[64];
    const json_t *search = json_object_get(report, "search"), *candidate = json_object_get(search, "candidate");
    regime_key(in->regime, key, sizeof key);
    if (!says(report, "schema", "ceiling-scout/report/1") || !says(report, "operation", in->operation->id) ||
        !says(report, "key", in->key) || !says(report, "regime", key) ||
        json_integer_value(json_object_get(report, "method")) != REGIME_METHOD)
        return false;
    if (!in->device || !says(json_object_get(report, "device"), "class", in->device->device_class)) return false;
    if (!says(search, "candidates_hash", candidates_text(in->device, key, sizeof key))) return false;
    if (json_is_true(json_object_get(search, "exhaustive")) != in->search->exhaustive ||
        json_integer_value(json_object_get(search, "workspace_limit")) != (json_int_t)in->search->workspace_limit ||
        fabs(json_number_value(json_object_get(search, "early_exit")) - in->search->early_exit) > 1e-9)
        return false;
    const char *before = json_get_text_or_null(search, "before");
    const bool same_before = in->search->before ? same_text(before, in->search->before) : !before;
    const bool same_candidate = in->search->candidate ? same_text(json_string_value(candidate), in->search->candidate)
                                                      : json_is_null(candidate);
    return same_candidate && same_before && json_array_size(json_object_get(report, "candidates")) > 0;
}

bool report_may_serve(const json_t *measurement, bool later) {
    static const char *const passing[] = {"budget", "memory", "device_lost"};
    report_figures f = {.status = ROW_ERROR};
    if (!json_is_array(json_object_get(measurement, "candidates"))) return false;
    read_measurement(measurement, &f);
    if (f.status == ROW_OK) return true;
    if (later) return f.status == ROW_UNSUPPORTED;
    for (size_t k = 0; k < sizeof passing / sizeof passing[0]; k++)
        if (same_text(f.code, passing[k])) return false;
    return true;
}
