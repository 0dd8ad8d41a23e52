/* One operation in full: device, shape, sweep, baseline, best, ceiling, and what to do. */
#include "scout/show/show.h"

#include "common/json.h"
#include "common/plain.h"
#include "common/rows_table.h"
#include "scout/report/report.h"
#include "scout/terms/variants.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_REASONS = 8, WIDE = 200 };

static const char *clean(arena *a, const char *text) { return plain_cell(a, text ? text : "", WIDE); }

static void print_device(FILE *out, arena *a, const report_input *in, const report_figures *f) {
    char words[96];
    const json_t *row = f->baseline_row ? f->baseline_row : f->best_row;
    const double clock = json_get_number(row, "clock_mhz"), power = json_get_number(row, "power_w");
    regime_say(in->regime, words, sizeof words);
    fprintf(out, "%s · %s", in->device ? clean(a, in->device->identity.name) : "no device", words);
    if (clock > 0) fprintf(out, " · %.0f MHz", clock);
    if (power > 0) fprintf(out, ", %.0f W", power);
    fputc('\n', out);
}

static const char *types_of(const char *precision) {
    static const struct {
        const char *precision, *text;
    } types[] = {{"tf32", "fp32 in, tf32 products"},    {"fp16", "fp16 in, fp32 accumulate"},
                 {"bf16", "bf16 in, fp32 accumulate"},  {"fp8", "fp8 in, bf16 out, fp32 accumulate"},
                 {"int8", "int8 in, int32 accumulate"}, {"int4", "fp16 x int4, fp32 accumulate"}};
    for (size_t k = 0; precision && k < sizeof types / sizeof types[0]; k++)
        if (strcmp(types[k].precision, precision) == 0) return types[k].text;
    return precision ? precision : "";
}

static void print_block_mask(FILE *out, const operation *o) {
    operation_block_mask m;
    if (!operation_blocks(o, &m)) return;
    fprintf(out, ", %s blocks of %" PRId64 ": %.4g %% of them seen", m.pattern, m.block, 100 * m.density);
}

static void print_head(FILE *out, arena *a, const report_input *in, const report_figures *f) {
    const operation *o = in->operation;
    const int64_t batch = oprec_int(&o->rec, "batch", 1);
    fprintf(out, "%s %s", oprec_kind_name(o->rec.kind), show_shape(a, o, " x "));
    if (batch > 1) fprintf(out, ", %" PRId64 " at once", batch);
    if (o->rec.layout && strcmp(o->rec.layout, "nn") != 0) fprintf(out, " %s", clean(a, o->rec.layout));
    if (o->rec.mask) fprintf(out, " %s", clean(a, o->rec.mask));
    print_block_mask(out, o);
    fprintf(out, ", %s", types_of(f->precision));
    if (o->sparsity > 0) fprintf(out, ", %.4g %% of the weight zero (%s)", 100 * o->sparsity, clean(a, o->pattern));
    fputc('\n', out);
}

/* Each depth, and what it comes to: the peak, and the range of all. */
void show_sweep(FILE *out, const ceilings *c) {
    const ceilings_point *peak = NULL, *least = NULL;
    for (int k = 0; c && k < c->sweep_count; k++) {
        const ceilings_point *p = &c->sweep[k];
        const bool small = p->tflops < 1;
        fprintf(out, "  %-11s %-9" PRId64 " %8.*f %s ± %.1f %%\n", k == 0 ? "K sweep" : "", p->shape[2], small ? 2 : 1,
                small ? 1000 * p->tflops : p->tflops, small ? "GFLOP/s" : "TFLOP/s", 100 * p->rel_ci95);
        if (!peak || p->tflops > peak->tflops) peak = p;
        if (!least || p->tflops < least->tflops) least = p;
    }
    if (!peak) return;
    const bool small = peak->tflops < 1;
    const double unit = small ? 1000 : 1;
    const char *name = small ? "GFLOP/s" : "TFLOP/s";
    fprintf(out, "  K sweep peak %.*f %s ± %.1f %% at K = %" PRId64 "\n", 1 + small, unit * peak->tflops, name,
            100 * peak->rel_ci95, peak->shape[2]);
    fprintf(out, "  %" PRId64 " to %" PRId64 ": between %.*f and %.*f %s\n", c->sweep[0].shape[2],
            c->sweep[c->sweep_count - 1].shape[2], 1 + small, unit * least->tflops, 1 + small, unit * peak->tflops,
            name);
}

static bool is_by_memory(const report_figures *f) {
    return f->flops <= 0 || (f->bound && strcmp(f->bound, "memory") == 0);
}

const char *show_rate_of(arena *a, const report_figures *f, double us) {
    if (is_by_memory(f)) return show_rate(a, (f->bytes_read + f->bytes_written) / us * 1e6, "B/s");
    return show_rate(a, f->flops / us * 1e6, "FLOP/s");
}

const char *show_row_name(arena *a, const json_t *row) {
    const char *name = json_get_text_or_null(row, "name");
    const char *variant = json_get_text_or_null(row, "variant");
    return clean(a,
                 arena_printf(a, "%s%s%s", name ? name : "", variant && *variant ? " " : "", variant ? variant : ""));
}

static void print_row(FILE *out, arena *a, const char *label, const char *name, const report_figures *f,
                      const json_t *row, double us, double ci) {
    const char *quality = json_get_text(row, "quality");
    char time[32];
    show_time(us, time, sizeof time);
    fprintf(out, "  %-11s %-28s %14s %12s %s", label, name, show_rate_of(a, f, us), time, show_within(a, ci));
    if (*quality && strcmp(quality, "good") != 0) fprintf(out, ", %s", clean(a, quality));
    fputc('\n', out);
    const char *const blocks = rows_table_blocks(a, row);
    if (blocks) fprintf(out, "  %-11s %s\n", "  blocks", blocks);
}

static void print_times(FILE *out, arena *a, const report_figures *f) {
    if (f->baseline_row)
        print_row(out, a, "baseline", arena_printf(a, "%s default", clean(a, f->baseline)), f, f->baseline_row,
                  f->baseline_us, f->baseline_ci);
    else
        fprintf(out, "  %-11s %s %s: %s\n", "baseline", clean(a, f->baseline ? f->baseline : "none"),
                reason_status_name(f->status), clean(a, f->text));
    if (f->best_row && f->best_row != f->baseline_row)
        print_row(out, a, "best", show_row_name(a, f->best_row), f, f->best_row, f->best_us, f->best_ci);
    else if (f->best_row)
        fprintf(out, "  %-11s the baseline: no candidate beats it by more than 2 %%\n", "best");
}

static void print_per_head(FILE *out, const report_input *in, const report_figures *f) {
    const int64_t heads = operation_heads(in->operation);
    char best[32], baseline[32];
    if (heads < 1 || !isfinite(f->baseline_us) || !isfinite(f->best_us)) return;
    show_time(f->best_us / (double)heads, best, sizeof best);
    show_time(f->baseline_us / (double)heads, baseline, sizeof baseline);
    fprintf(out, "  %-11s %s of %" PRId64, "per head", best, heads);
    if (f->best_row != f->baseline_row) fprintf(out, "; by default %s", baseline);
    fputc('\n', out);
}

static void print_ceiling(FILE *out, arena *a, const report_figures *f) {
    char time[32];
    if (!isfinite(f->ceiling_us)) {
        fprintf(out, "  %-11s not known\n", "ceiling");
        return;
    }
    show_time(f->ceiling_us, time, sizeof time);
    fprintf(out, "  %-11s %s, %s, bound by %s", "ceiling", show_rate_of(a, f, f->ceiling_us), time, f->bound);
    const ceilings_peak *p = f->peak;
    if (strcmp(f->ceiling_from, "probe") == 0)
        fprintf(out, "; measured beside it");
    else if (p && !is_by_memory(f) && p->shape[0] > 0)
        fprintf(out, "; %s measured at %" PRId64 " x %" PRId64 " x %" PRId64, show_rate(a, p->tflops * 1e12, "FLOP/s"),
                p->shape[0], p->shape[1], p->shape[2]);
    else if (p && !is_by_memory(f))
        fprintf(out, "; %s measured in %s", show_rate(a, p->tflops * 1e12, "FLOP/s"), clean(a, p->how));
    fprintf(out, "%s\n",
            f->above_ceiling                                             ? "  (the operation is faster than it)"
            : verdict_is_sparse(f->family) && f->best_us < f->ceiling_us ? "  (it counts the zeros that the best skips)"
                                                                         : "");
}

/* What a row's configuration says, one level deep. */
static void print_config(FILE *out, arena *a, const report_figures *f) {
    const json_t *config = json_object_get(f->best_row ? f->best_row : f->baseline_row, "config");
    const char *key, *text = "";
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)config, key, value) {
        if (json_is_string(value) && json_string_length(value) <= 40)
            text = arena_printf(a, "%s%s%s=%s", text, *text ? ", " : "", key, json_string_value(value));
        else if (json_is_integer(value))
            text = arena_printf(a, "%s%s%s=%" JSON_INTEGER_FORMAT, text, *text ? ", " : "", key,
                                json_integer_value(value));
    }
    if (*text) fprintf(out, "  %-11s %s\n", "config", clean(a, text));
}

void show_counters(FILE *out, arena *a, const json_t *row, const counters *c) {
    fprintf(out, "%s: %s: %s\n", show_row_name(a, row), c->bottleneck, clean(a, c->text));
}

/* By --candidate. */
static bool is_asked(const report_input *in, const json_t *row) {
    const char *name = json_get_text_or_null(row, "name"), *asked = in->search->candidate;
    return name && asked && filter_takes(asked, name);
}

/* What has no time, and why; of those that were only slower the number. */
static void print_others(FILE *out, arena *a, const report_input *in, const report_figures *f) {
    const json_t *rows = json_object_get(in->measurement, "candidates");
    int slower = 0, shown = 0, more = 0;
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k), *reason = json_object_get(row, "reason");
        const char *state = rows_table_status(json_get_text_or_null(row, "status"));
        const char *code = json_get_text(reason, "code");
        const bool ok = state && strcmp(state, "OK") == 0;
        if (!state || row == f->baseline_row || row == f->best_row) continue;
        if (in->search->compare && (ok || strcmp(code, "not_asked") == 0)) continue;
        if (ok || (strcmp(code, "outraced") == 0 && !is_asked(in, row))) {
            slower++;
        } else if (shown < MOST_REASONS) {
            fprintf(out, "  %-11s %s %s: %s\n", shown == 0 ? "not timed" : "", show_row_name(a, row), clean(a, state),
                    clean(a, json_get_text_or_null(reason, "text")));
            shown++;
        } else {
            more++;
        }
    }
    if (more > 0) fprintf(out, "  %-11s and %d more\n", "", more);
    if (slower > 0)
        fprintf(out, "  %-11s %d variant%s not chosen; --table lists all\n", "others", slower, slower > 1 ? "s" : "");
}

/* What more time would settle. */
static void print_undecided(FILE *out, arena *a, const report_input *in) {
    const json_t *list = json_object_get(in->measurement, "undecided");
    const char *text = "";
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *one = json_string_value(json_array_get(list, k));
        if (one) text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", one);
    }
    if (*text) fprintf(out, "  %-11s %s; --target-ci 0.5%% goes on until it is\n", "undecided", clean(a, text));
}

/* Without a verdict (the run was interrupted, or its report could not be written) there may be nothing to say. */
static void print_verdict(FILE *out, const report_input *in, const report_figures *f) {
    const bool judged = in->model_us >= 0, known = isfinite(f->efficiency);
    if (known) fprintf(out, "  %-11s %.1f %%%s", "efficiency", 100 * f->efficiency, judged ? "   " : "\n");
    if (!judged) return;
    fprintf(out, "  priority %s     approach %s%s\n", f->verdict.priority, f->verdict.approach,
            f->verdict.borderline ? "     borderline" : "");
}

void show_variants(FILE *out, arena *a, const report_input *in, bool named) {
    report_figures f;
    if (json_array_size(json_object_get(in->measurement, "candidates")) == 0) return;
    report_read(in, &f);
    fprintf(out, "\n%s%s\n", named ? clean(a, in->operation->name) : "all variants", named ? ", all variants" : "");
    rows_table_print(out, a,
                     &(rows_table){.rows = json_object_get(in->measurement, "candidates"),
                                   .baseline = f.baseline,
                                   .baseline_variant = json_get_text_or_null(in->measurement, "baseline_variant"),
                                   .baseline_us = f.baseline_us});
}

void show_operation(FILE *out, arena *a, const report_input *in) {
    report_figures f;
    report_read(in, &f);
    print_device(out, a, in, &f);
    print_head(out, a, in, &f);
    if (in->sweep && !report_has_sweep(in))
        fprintf(out, "  %-11s not measured: too large or too slow for this device, or without an implementation\n",
                "K sweep");
    else if (in->sweep)
        show_sweep(out, in->ceilings);
    if (in->search->compare)
        show_comparison(out, a, in, &f);
    else
        print_times(out, a, &f);
    print_per_head(out, in, &f);
    if (f.baseline_row || f.best_row) print_ceiling(out, a, &f);
    show_weight(out, a, in);
    print_verdict(out, in, &f);
    print_config(out, a, &f);
    print_others(out, a, in, &f);
    print_undecided(out, a, in);
    if (in->model_us >= 0) fprintf(out, "  %s\n", clean(a, f.verdict.recommendation));
}
