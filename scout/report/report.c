/* Owns what a report knows: reads a measurement (from a worker, from the cache or from an older report, none of which
 * is trusted), sets it beside its ceiling, and has the verdict spoken. */
#include "scout/report/report.h"

#include "common/json.h"
#include "common/opcost.h"
#include "common/plain.h"

#include <math.h>
#include <string.h>

static double at_least_0(double x) { return isfinite(x) && x > 0 ? x : 0; }

static bool says(const json_t *object, const char *key, const char *wanted) {
    return plain_same(json_get_text_or_null(object, key), wanted);
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

/* A relative half width; not-a-number: not known. */
static double width_in(const json_t *object, const char *key) {
    const double ci = json_get_number(object, key);
    return ci >= 0 ? ci : NAN;
}

/* The row's figures where it is OK and has them. */
static const json_t *read_row(const json_t *row, double *us, double *ci) {
    const json_t *time = json_object_get(row, "time_us");
    *us = *ci = NAN;
    if (!row || row_status_of(row) != ROW_OK || isnan(json_get_positive(time, "median"))) return NULL;
    *us = json_get_positive(time, "median");
    *ci = width_in(time, "rel_ci95");
    return row;
}

double report_fetch_us(const json_t *row) {
    static const double most_us = 1000; /* it is microseconds: more is none */
    const double us = json_get_number(row, "fetch_us");
    return us >= 0 && us < most_us ? us : NAN;
}

/* Older rows do not say it. */
static bool is_wide(const json_t *row, double ci) {
    static const double target = 0.01;
    const char *quality = json_get_text_or_null(row, "quality");
    return row && (quality ? strcmp(quality, "good") != 0 : !(ci <= target));
}

static void take_reason(report_figures *out, const json_t *row) {
    const json_t *reason = json_object_get(row, "reason");
    const char *code = json_get_text_or_null(reason, "code"), *text = json_get_text_or_null(reason, "text");
    out->status = row_status_of(row);
    out->code = code ? code : "error";
    out->text = text ? text : "";
}

/* Where no baseline is named: the worst row tells, and where there is none, there was no candidate. */
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
    out->baseline_fetch_us = report_fetch_us(out->baseline_row);
    out->best_fetch_us = report_fetch_us(out->best_row);
    if (!out->best_row) out->best = NULL;
    if (out->best && out->best_row != out->baseline_row) {
        out->ratio = json_get_positive(m, "ratio");
        out->ratio_ci = width_in(m, "ratio_ci");
        out->family = json_get_text_or_null(m, "best_approach");
    }
    const json_t *rival = json_object_get(m, "rival");
    out->rival_ratio = json_get_positive(rival, "ratio");
    out->rival_ratio_ci = width_in(rival, "ratio_ci");
    out->rival_family = json_get_text_or_null(rival, "approach");
    for (size_t k = 0; k < json_array_size(rows); k++)
        out->bad_rows += reason_status_bad(row_status_of(json_array_get(rows, k)));
    out->own = json_is_true(json_object_get(m, "baseline_own"));
    out->wide = is_wide(out->baseline_row, out->baseline_ci) || is_wide(out->best_row, out->best_ci);
    read_status(rows, variant, out);
}

/* What ran here is attainable at this size, whatever the streaming kernels did that the table of bandwidths was made
 * with. Not of a host, whose table may have had a bad minute, nor of what leaves zeros out. */
static void take_what_ran(const json_t *m, report_figures *out) {
    const bool told = json_get_positive(m, "clock_mhz") > 0 && !verdict_is_sparse(out->family);
    if (!told || !(out->best_us < out->ceiling_us) || !(out->best_us >= out->physical_us)) return;
    out->ceiling_us = out->best_us;
    out->ceiling_ci = verdict_known(out->best_ci) ? out->best_ci : INFINITY;
    out->ceiling_from = "measured";
}

/* A ceiling that is known to less than 5 % is no excuse: it is to be measured again. It is that of dense work: a
 * candidate that skips zeros may be faster. */
static bool outruns(const report_figures *f, double ceiling_us, double ceiling_ci) {
    const bool best = (f->best_us < f->baseline_us || isnan(f->baseline_us)) && !verdict_is_sparse(f->family);
    const double fastest = best ? f->best_us : f->baseline_us;
    const double most = verdict_defaults.ceiling_ci;
    const double own = verdict_known(f->baseline_ci) ? f->baseline_ci : most;
    const double intervals = own + fmin(ceiling_ci, most);
    return fastest > 0 && ceiling_us > fastest * (1.01 + intervals);
}

/* A probe that the operation outran is no ceiling: its bytes lay in the cache less well than the operation's. Where
 * another part is the larger one beside what it saw, that one is as it is stored. */
static void read_beside(const json_t *m, ceilings_time *t, report_figures *out) {
    const json_t *probe = json_object_get(m, "probe");
    const char *bound = json_get_text_or_null(probe, "bound");
    const double seconds = 1e-6 * json_get_positive(probe, "bound_us"), ci = json_get_number(probe, "bound_ci");
    if (isnan(seconds) || !bound || json_is_false(json_object_get(probe, "among"))) return;
    ceilings_time beside = ceilings_time_beside(*t, bound, seconds, ci);
    const bool set = strcmp(beside.bound, bound) == 0;
    if (set && !verdict_known(ci)) beside.rel_ci95 = INFINITY;
    if (beside.seconds > t->seconds && outruns(out, 1e6 * beside.seconds, beside.rel_ci95)) return;
    if (set) {
        out->stored_ceiling_us = 1e6 * t->seconds;
        out->ceiling_from = "probe";
    }
    *t = beside;
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
    if (opcost_by_data(r)) {
        out->bound = "data"; /* a ceiling of its bytes alone would say nothing */
        return;
    }
    if (!c || !out->precision || !m) return;
    out->peak = ceilings_find_peak(c, out->precision);
    ceilings_time t = ceilings_time_of(c, out->precision, out->flops, out->bytes_read, out->bytes_written,
                                       at_least_0(json_get_positive(m, "resident_bytes")),
                                       at_least_0(json_get_positive(m, "specials")));
    if (!isfinite(t.seconds) || t.seconds <= 0) return;
    t = ceilings_time_at(t, c, out->precision, json_get_positive(m, "clock_mhz"));
    if (json_get_positive(m, "clock_mhz") > 0 && strcmp(t.bound, "memory") != 0) out->ceiling_from = "clock";
    read_beside(m, &t, out);
    out->ceiling_us = 1e6 * t.seconds;
    if (isfinite(t.physical_s) && t.physical_s > 0) out->physical_us = 1e6 * fmin(t.physical_s, t.seconds);
    out->ceiling_ci = t.rel_ci95;
    take_what_ran(m, out);
    out->launch_us = 1e6 * t.launch_s;
    out->bound = t.bound;
    out->above_ceiling = verdict_known(out->baseline_ci) && verdict_known(out->ceiling_ci) &&
                         outruns(out, out->ceiling_us, out->ceiling_ci);
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

static const char *row_name(const json_t *row, char text[VERDICT_NAME]) {
    return verdict_name(json_get_text_or_null(row, "name"), json_get_text_or_null(row, "variant"), text);
}

static void judge(const report_input *in, report_figures *out) {
    const operation *o = in->operation;
    const bool another = out->best_row && out->best_row != out->baseline_row;
    const json_t *addresses = json_object_get(another ? out->best_row : out->baseline_row, "addresses");
    const json_t *rival = json_object_get(in->measurement, "rival");
    char best[VERDICT_NAME], beside[VERDICT_NAME];
    verdict_facts facts = {
        .op = oprec_kind_name(o->rec.kind),
        .pattern = o->pattern,
        .device = in->device ? in->device->name : NULL,
        .bound = out->bound,
        .best_family = out->family,
        .reason = out->code,
        .no_work = plain_same(out->code, "no_work"),
        .measured = out->baseline_row != NULL,
        .ceiling_us = out->ceiling_us,
        .baseline_us = out->baseline_us,
        .best_us = out->best_us,
        .ceiling_ci = out->ceiling_ci,
        .baseline_ci = out->baseline_ci,
        .best_ci = out->best_ci,
        .ceiling_beside = strcmp(out->ceiling_from, "probe") == 0,
        .ratio = another ? out->ratio : 0,
        .ratio_ci = out->ratio_ci,
        .launch_us = in->ceilings ? 1e6 * in->ceilings->launch_s : 0,
        .rival_ratio = out->rival_ratio,
        .rival_ratio_ci = out->rival_ratio_ci,
        .rival_family = out->rival_family,
        .rival_name = row_name(rival, beside),
        .count = (double)o->count,
        .model_us = in->model_us,
        .model_ci = in->model_ci,
        .shape = {o->rec.rank > 0 ? o->rec.shape[0] : 0, o->rec.rank > 1 ? o->rec.shape[1] : 0,
                  o->rec.rank > 2 ? o->rec.shape[2] : 0},
        .batch = oprec_int(&o->rec, "batch", 1),
        .units = in->device ? in->device->identity.units : 0,
        .baseline_name = out->baseline,
        .baseline_own = out->own,
        .best_name = row_name(out->best_row, best),
        .address_best = json_get_positive(addresses, "best"),
        .address_worst = json_get_positive(addresses, "worst"),
    };
    if (in->fusion.of) {
        const verdict_fused fused = report_fusion_facts(in, out);
        verdict_fuse(&facts, &fused);
    }
    out->verdict = verdict_of(&facts, NULL);
    out->efficiency = out->verdict.efficiency;
    out->proven_us = !out->baseline_row || out->verdict.figures[VERDICT_PROVEN].x > 0 ? out->best_us : out->baseline_us;
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
                            .physical_us = NAN,
                            .stored_ceiling_us = NAN,
                            .estimate_us = NAN,
                            .efficiency = NAN};
    if (in->measurement) read_measurement(in->measurement, out);
    read_ceiling(in, out);
    estimate(in, out);
    if (in->fusion.of) report_fusion_read(in, out);
    judge(in, out);
}

/* A kill from outside says nothing about the running candidate. */
static bool was_killed(const json_t *measurement) {
    const json_t *rows = json_object_get(measurement, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++)
        if (strcmp(json_get_text(json_object_get(json_array_get(rows, k), "reason"), "code"), "killed") == 0)
            return true;
    return false;
}

bool report_may_serve(const json_t *measurement, bool later) {
    static const char *const passing[] = {"budget", "memory", "device_lost"};
    report_figures f = {.status = ROW_ERROR};
    if (!json_is_array(json_object_get(measurement, "candidates")) || was_killed(measurement)) return false;
    read_measurement(measurement, &f);
    if (f.status == ROW_OK) return true;
    if (later) return f.status == ROW_UNSUPPORTED;
    for (size_t k = 0; k < sizeof passing / sizeof passing[0]; k++)
        if (plain_same(f.code, passing[k])) return false;
    return true;
}
