/* Owns the order of an explanation: what it is, its verdict, its times; and how lines of it look. */
#include "analyze/explain/explain.h"

#include "common/amount.h"
#include "common/checked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME = 46, LONGEST = 4000 };

/* ---- lines ---- */

void explain_title(const explain *e, const char *text) {
    fputc('\n', e->to.out);
    terminal_put(&e->to, TERMINAL_BOLD, 2, text);
}

void explain_say(const explain *e, const char *first, const char *text) {
    terminal_put(&e->to, TERMINAL_PLAIN, 2 + plain_columns(first),
                 arena_printf(e->arena, "  %s%s", first, plain_cell(e->arena, text, LONGEST)));
}

void explain_tell(const explain *e, const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    explain_say(e, "- ", text);
}

/* ---- what a report holds ---- */

const char *explain_points(const explain *e, verdict_figure f) {
    const int digits = f.half < 0.0005 ? 2 : 1;
    if (!isfinite(f.x)) return "not known";
    if (!isfinite(f.half)) return arena_printf(e->arena, "%s, or any other", amount_percent(f.x).s);
    if (f.half < 0.00005) return arena_printf(e->arena, "%s", amount_percent(f.x).s);
    return arena_printf(e->arena, "%.*f ± %.*f %%", digits, 100 * f.x, digits, 100 * f.half);
}

const char *explain_unit(const explain *e, double x, const char *unit) {
    static const struct {
        double unit;
        const char *prefix;
    } steps[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "K"}, {1, ""}};
    size_t k = 0;
    while (x < 0.9999 * steps[k].unit && k + 1 < sizeof steps / sizeof steps[0]) k++;
    const double scaled = x / steps[k].unit;
    return arena_printf(e->arena, scaled >= 1000 && scaled < 1e6 ? "%.0f %s%s" : "%.4g %s%s", scaled, steps[k].prefix,
                        unit);
}

const char *explain_time(const explain *e, amount_unit unit, double us) {
    return isfinite(us) ? arena_printf(e->arena, "%s %s", amount_in(unit, us).s, unit.name) : "-";
}

const char *explain_rate(const explain *e, double us) {
    const bool memory = e->r->bound && strcmp(e->r->bound, "memory") == 0;
    const double work = memory ? e->r->bytes_read + e->r->bytes_written : e->r->flops;
    const double rate = work / us * 1e6;
    return isfinite(rate) && rate > 0 ? explain_unit(e, rate, memory ? "B/s" : "FLOP/s") : "";
}

const char *explain_shape_of(const explain *e, const json_t *shape) {
    const char *text = "";
    for (size_t k = 0; k < json_array_size(shape) && k < STUDY_RANK; k++)
        text = arena_printf(e->arena, "%s%s%" JSON_INTEGER_FORMAT, text, k > 0 ? "x" : "",
                            json_integer_value(json_array_get(shape, k)));
    return text;
}

/* ---- what it is ---- */

/* How many groups of the plan are of an implementation. */
static size_t groups_of(const json_t *plan, int64_t implementation) {
    const json_t *groups = json_object_get(plan, "groups");
    size_t count = 0;
    for (size_t k = 0; k < json_array_size(groups); k++) {
        const json_t *of = json_array_get(json_array_get(groups, k), 0);
        count += json_is_integer(of) && json_integer_value(of) == implementation;
    }
    return count;
}

/* Of a fusion: whether the plan of the same device and regime has it. */
static void write_planned(const explain *e) {
    const json_t *plan = e->plan, *list = json_object_get(plan, "implementations"),
                 *out = json_object_get(plan, "left_out");
    const bool same = plain_same(json_get_text(plan, "regime"), e->group->regime) &&
                      plain_same(json_get_text(json_object_get(plan, "device"), "class"), e->group->device_class);
    if (!e->r->fusion || !plan || !same) return;
    if (strcmp(json_get_text(plan, "taken"), json_get_text(e->report, "taken")) < 0)
        explain_say(e, "", "plan.json is older than this report; scout_batch --replay makes it anew");
    for (size_t k = 0; k < json_array_size(list); k++)
        if (plain_same(json_get_text(json_array_get(list, k), "fusion"), e->r->operation)) {
            const size_t count = groups_of(plan, (int64_t)k);
            explain_say(e, "", arena_printf(e->arena, "the plan does it at %zu place%s", count, count == 1 ? "" : "s"));
            return;
        }
    for (size_t k = 0; k < json_array_size(out); k++)
        if (plain_same(json_get_text(json_array_get(out, k), "fusion"), e->r->operation)) {
            explain_say(e, "",
                        arena_printf(e->arena, "the plan does without it: %s",
                                     plain_cell(e->arena, json_get_text(json_array_get(out, k), "text"), 200)));
            return;
        }
    explain_say(e, "",
                plain_same(e->r->worth, "yes")
                    ? "the plan does without it: alone, or in other fusions, its operations take less"
                    : "the plan does without it: it is not proven to be worth it, nor far ahead");
}

static void write_head(const explain *e) {
    const study_report *r = e->r;
    const char *const words[] = {r->op,        r->what,   study_shape(r, arena_alloc(e->arena, 128), 128),
                                 r->layout,    r->mask,   r->block_mask,
                                 r->precision, r->pattern};
    const char *line = "";
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        if (words[k] && *words[k]) line = arena_printf(e->arena, "%s%s%s", line, *line ? " " : "", words[k]);
    terminal_put(&e->to, TERMINAL_BOLD, 2, plain_cell(e->arena, r->operation, LONGEST));
    if (r->name && strcmp(r->name, r->operation) != 0) explain_say(e, "", r->name);
    explain_say(e, "", line);
    if (r->block_mask && r->block_density > 0)
        explain_say(e, "",
                    arena_printf(e->arena, "%s of its blocks are seen, and its work is counted in these alone",
                                 amount_percent(r->block_density).s));
    const char *model = e->group->model ? e->group->model : "-", *times = r->count == 1 ? "" : "s";
    if (r->count > 0 && r->baseline_us > 0 && e->group->model_us > 0)
        line = arena_printf(e->arena, "%s: run %" PRId64 " time%s, %s of its %s", model, r->count, times,
                            amount_percent((double)r->count * r->baseline_us / e->group->model_us).s,
                            e->group->partial.text ? "time as far as it is known"
                                                   : arena_printf(e->arena, "%s", amount_time(e->group->model_us).s));
    else
        line = arena_printf(e->arena, "%s: run %" PRId64 " time%s, %s", model, r->count, times,
                            r->count > 0 ? "without a figure" : "in no sum");
    explain_say(e, "", line);
    if (e->group->partial.text) explain_say(e, "", e->group->partial.text);
    if (r->fusion)
        explain_say(e, "",
                    arena_printf(e->arena, "fusion %s: %sworth it: %s", r->fusion_pattern ? r->fusion_pattern : "-",
                                 r->kernels_parts > 0 && r->kernels_fused > 0
                                     ? arena_printf(e->arena, "%" PRId64 " kernels become %" PRId64 ", ",
                                                    r->kernels_parts, r->kernels_fused)
                                     : "",
                                 r->worth ? r->worth : "not known"));
    write_planned(e);
    const char *taken = json_get_text(e->report, "taken");
    explain_say(e, "",
                arena_printf(e->arena, "%s (%s), %s, driver %s, %s%s", e->group->device ? e->group->device : "-",
                             r->device ? r->device : "-", e->group->regime,
                             e->group->driver ? e->group->driver : "not known", *taken ? "measured " : "not measured",
                             taken));
}

/* Whole, as the model's file has them. */
static void write_layers(const explain *e) {
    const study_report *r = e->r;
    if (r->layer_count == 0) return;
    explain_title(e, r->layers_among ? "Layers of the model, among which it is" : "Layers of the model");
    for (size_t k = 0; k < r->layer_count; k++) {
        if (e->most > 0 && k == e->most) {
            explain_say(e, "", arena_printf(e->arena, "… %zu more (--top 0 shows all)", r->layer_count - k));
            return;
        }
        explain_say(e, "", r->layers[k]);
    }
}

/* Of a fusion: what it joins, and where that is in the model. */
static void write_joined(const explain *e) {
    const json_t *ops = json_object_get(json_object_get(e->report, "fusion"), "ops");
    for (size_t k = 0; k < json_array_size(ops); k++) {
        const char *id = json_string_value(json_array_get(ops, k));
        const study_report *part = id ? study_find(e->group, id) : NULL;
        char layers[STUDY_LAYERS];
        if (k == 0) explain_title(e, "Joins");
        if (id) explain_say(e, "", id);
        if (part && part->layer_count > 0)
            explain_say(e, "  ",
                        arena_printf(e->arena, "%s%s", part->count > e->r->count && !part->layers_among ? "among " : "",
                                     study_layers(part, layers)));
    }
}

/* ---- times ---- */

/* On one line where it fits, else its name and beneath it the figures. */
static void write_time(const explain *e, const char *what, const char *name, double us, double ci, const json_t *row) {
    const amount_unit unit = amount_unit_of(fmax(fmax(e->r->baseline_us, e->r->best_us), e->r->ceiling_us));
    enum { FIGURES = 66 }; /* columns of all but the name */
    const double clock = json_get_number(row, "clock_mhz"), power = json_get_number(row, "power_w");
    const char *first = arena_printf(e->arena, "%-9s ", what);
    const char *figures = arena_printf(e->arena, "%11s %s %14s", explain_time(e, unit, us),
                                       plain_padded(e->arena, amount_within(ci).s, 9), explain_rate(e, us));
    if (clock > 0) figures = arena_printf(e->arena, "%s  %.0f MHz", figures, clock);
    if (power > 0) figures = arena_printf(e->arena, "%s, %.0f W", figures, power);
    const int room = e->to.columns - FIGURES < NAME ? e->to.columns - FIGURES : NAME;
    if (plain_columns(plain_cell(e->arena, name, NAME)) <= room) {
        explain_say(e, first, arena_printf(e->arena, "%s %s", plain_padded(e->arena, name, room), figures));
        return;
    }
    explain_say(e, first, name);
    explain_say(e, arena_printf(e->arena, "%*s", 10, ""), figures + strspn(figures, " "));
}

static void write_times(const explain *e) {
    const study_report *r = e->r;
    explain_title(e, "Times");
    const json_t *baseline = rows_table_find(e->report, r->baseline, r->baseline_variant),
                 *best = rows_table_find(e->report, r->best, r->best_variant);
    if (baseline && r->baseline_us > 0)
        write_time(e, "baseline", rows_table_name(e->arena, baseline), r->baseline_us, r->baseline_ci, baseline);
    else
        explain_say(e, "baseline  ",
                    arena_printf(e->arena, "%s: %s", r->status, r->reason_text ? r->reason_text : "it has no time"));
    if (best && best != baseline && r->best_us > 0)
        write_time(e, "best", rows_table_name(e->arena, best), r->best_us, r->best_ci, best);
    if (plain_same(r->op, "attention") && r->rank == 4 && r->best_us > 0 && r->shape[0] > 0 && r->shape[1] > 0)
        explain_say(e, "per head  ",
                    arena_printf(e->arena, "%s of %" PRId64 " heads",
                                 amount_time(r->best_us / (double)r->shape[0] / (double)r->shape[1]).s,
                                 checked_mul(r->shape[0], r->shape[1])));
    if (r->ceiling_us > 0) write_time(e, "ceiling", r->bound ? r->bound : "", r->ceiling_us, r->ceiling_ci, NULL);
    if (isfinite(r->verdict.efficiency))
        explain_say(e, "",
                    arena_printf(e->arena, "The baseline reaches %s of its ceiling%s.",
                                 explain_points(e, r->verdict.figures[VERDICT_EFFICIENCY]),
                                 study_skips_zeros(r) ? ", which counts the zeros that the best skips"
                                 : r->above_ceiling   ? ", which was measured twice: one of the two is wrong"
                                                      : ""));
}

void explain_write(const explain *e) {
    const verdict *v = &e->r->verdict;
    write_head(e);
    explain_title(e, arena_printf(e->arena, "  %s · %s%s", v->priority, plain_cell(e->arena, v->approach, NAME),
                                  v->borderline ? " · borderline" : ""));
    explain_say(e, "", v->recommendation);
    write_layers(e);
    write_joined(e);
    write_times(e);
    explain_ceiling(e);
    explain_candidates(e);
    explain_verdict(e);
    explain_changes(e);
}
