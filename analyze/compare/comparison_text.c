/* A comparison for a terminal: the machine first, then what changed, worst first, then what was not compared. As wide
 * as the terminal, at most 100 columns elsewhere; nothing but names is cut. */
#include "analyze/compare/comparison_formats.h"

#include "common/amount.h"
#include "common/plain.h"
#include "common/terminal.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 100, INDENT = 12, MOST = 4000, BESIDE = 58 /* columns of a row before its name */ };

typedef struct text {
    terminal to;
    arena a;
    const comparison *c;
    size_t top;
} text;

static void put_line(text *t, terminal_style style, const char *whole) {
    const bool apart = whole[0] == '\n'; /* from the line before */
    if (apart) fputc('\n', t->to.out);
    terminal_put(&t->to, style, INDENT, plain_cell(&t->a, whole + apart, MOST));
}
#define line(t, ...)          put_line(t, TERMINAL_PLAIN, arena_printf(&(t)->a, __VA_ARGS__))
#define styled(t, style, ...) put_line(t, style, arena_printf(&(t)->a, __VA_ARGS__))

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static void write_runs(text *t) {
    static const char *const names[] = {"before", "after"};
    const comparison *c = t->c;
    for (int k = 0; k < 2; k++) {
        const study_group *g = k ? c->after : c->before;
        styled(t, TERMINAL_BOLD, "%-10s  %s  %s", names[k], c->folders[k], g->device);
        if (g->partial.text) styled(t, TERMINAL_YELLOW, "            %s", g->partial.text);
    }
    line(t, "regime      %s", c->after->regime);
    for (size_t k = 0; k < c->difference_count; k++) {
        const comparison_difference *d = &c->differences[k];
        line(t, "%s%s: %s -> %s", k == 0 ? "differs     " : "            ", d->what,
             *d->before ? d->before : "not given", *d->after ? d->after : "not given");
    }
}

static void write_ceilings(text *t) {
    const comparison *c = t->c;
    const bool moved = c->machine.state == DRIFT_SLOWER || c->machine.state == DRIFT_FASTER;
    if (moved && *comparison_ceilings_text(c->ceilings_say))
        line(t, "            %s", comparison_ceilings_text(c->ceilings_say));
    if (c->ceilings_say == COMPARISON_CEILINGS_STORED) return;
    for (size_t k = 0; k < c->ceiling_count && k < 8; k++) {
        const comparison_ceiling *kind = &c->ceilings[k];
        line(t, "%s%s %s: %s of the time (%zu operation%s)", k == 0 ? "ceilings    " : "            ",
             *kind->bound ? kind->bound : "unknown", kind->precision, comparison_percent(kind->change).s,
             kind->operations, plural(kind->operations));
    }
}

static void write_change(text *t, const char *what, const drift *d, drift_judgement machine) {
    if (!d->machine_known)
        line(t, "%s%s", what, comparison_machine_text(d, machine.state));
    else
        line(t, "%s%s: %s of the time, %s; %s", what, comparison_machine_text(d, machine.state),
             comparison_percent(expm1(d->machine)).s, amount_within(1.96 * machine.sd).s,
             drift_state_name(machine.state));
}

static void write_machine(text *t) {
    const comparison *c = t->c;
    write_change(t, "\nmachine     ", &c->drift, c->machine);
    for (size_t k = 0; k < c->part_count; k++) {
        const comparison_part *part = &c->parts[k];
        const char *what =
            arena_printf(&t->a, "            but what %s bounds (%zu operations): ", part->bound, part->drift.rows);
        write_change(t, what, &part->drift, part->machine);
    }
    write_ceilings(t);
    if (isfinite(c->clock_mhz[0]) && isfinite(c->clock_mhz[1]))
        line(t, "clock       %.0f -> %.0f MHz", c->clock_mhz[0], c->clock_mhz[1]);
}

static void write_states(text *t, const char *what, const comparison_list *list) {
    const char *states = "";
    for (int k = 0; k < COMPARISON_STATES; k++)
        states = arena_printf(&t->a, "%s%s %zu %s", states, k > 0 ? "," : "", list->states[k],
                              drift_state_name((drift_state)k));
    line(t, "%-10s  %zu compared:%s; %zu new, %zu gone", what, list->measured, states, list->fresh_count,
         list->gone_count);
}

static void write_counts(text *t) {
    const comparison *c = t->c;
    const amount_unit unit = amount_unit_of(fmax(c->model_us[0], c->model_us[1]));
    if (c->model_us[0] > 0)
        line(t, "model       %s -> %s %s by the best of what both measured", amount_in(unit, c->model_us[0]).s,
             amount_in(unit, c->model_us[1]).s, unit.name);
    write_states(t, "operations", &c->operations);
    if (comparison_has_any(&c->fusions)) write_states(t, "fusions", &c->fusions);
    const comparison_list *const o = &c->operations, *const f = &c->fusions;
    line(t, "verdicts    %zu worse, %zu better, %zu changed otherwise",
         o->verdicts[COMPARISON_WORSE] + f->verdicts[COMPARISON_WORSE],
         o->verdicts[COMPARISON_BETTER] + f->verdicts[COMPARISON_BETTER],
         o->verdicts[COMPARISON_OTHER] + f->verdicts[COMPARISON_OTHER]);
    if (c->drift.rows == 0) return;
    char found[160];
    line(t, "seen        %s", comparison_found(c, found, sizeof found));
}

/* ---- what changed ---- */

/* Columns of times, of which all have the unit that the largest asks for. */
typedef struct row_units {
    amount_unit time, lost;
} row_units;

static row_units units_of(const comparison_list *list, size_t count) {
    double us = 0, lost_us = 0;
    for (size_t k = 0; k < count; k++) {
        const comparison_row *r = &list->rows[k];
        us = fmax(us, fmax(r->before->best_us, r->after->best_us));
        lost_us = fmax(lost_us, fabs(r->lost_us));
    }
    return (row_units){amount_unit_of(us), amount_unit_of(lost_us)};
}

/* With its sign; "-" where it is not known. */
static const char *lost_of(text *t, amount_unit unit, double us) {
    if (!isfinite(us)) return "-";
    const char *size = arena_printf(&t->a, "%s", amount_in(unit, fabs(us)).s);
    return *size == '<' ? size : arena_printf(&t->a, "%s%s", us < 0 ? "-" : "+", size);
}

/* The sign of ± takes two bytes. A name that has no room stands beneath. */
static void write_row(text *t, const comparison_row *r, const row_units *units) {
    const comparison_figure net = comparison_net(r);
    const char *name = r->after->operation, *state = drift_state_name(r->best.state);
    const terminal_style style = r->best.state == DRIFT_SLOWER   ? TERMINAL_YELLOW
                                 : r->best.state == DRIFT_FASTER ? TERMINAL_GREEN
                                                                 : TERMINAL_PLAIN;
    const char *figures =
        arena_printf(&t->a, "%-10s%*s %9s %9s %10s", state, strchr(net.s, '%') ? 16 : 15, net.s,
                     amount_in(units->time, r->before->best_us).s, amount_in(units->time, r->after->best_us).s,
                     lost_of(t, units->lost, r->lost_us));
    char layers[STUDY_LAYERS], became[128];
    if (t->to.columns >= WIDTH) {
        styled(t, style, "%s  %s", figures, plain_cell(&t->a, name, t->to.columns - BESIDE));
    } else {
        styled(t, style, "%s", figures);
        line(t, "            %s", name);
    }
    if (r->after->layer_count > 0) styled(t, TERMINAL_DIM, "            %s", study_layers(r->after, layers));
    if (r->note) line(t, "            %s", r->note);
    if (r->verdict != COMPARISON_KEPT) line(t, "            %s", comparison_verdict_text(r, became, sizeof became));
}

/* How many have changed. */
static size_t write_rows(text *t, const char *what, const comparison_list *list) {
    size_t news = 0;
    while (news < list->row_count && comparison_is_news(&list->rows[news])) news++;
    const size_t shown = t->top > 0 && t->top < news ? t->top : news;
    const row_units units = units_of(list, shown);
    if (news > 0) {
        styled(t, TERMINAL_BOLD, "\n%-10s%15s %9s %9s %10s%s%s", "", "change",
               arena_printf(&t->a, "before %s", units.time.name), arena_printf(&t->a, "after %s", units.time.name),
               arena_printf(&t->a, "per run %s", units.lost.name), t->to.columns >= WIDTH ? "  " : "",
               t->to.columns >= WIDTH ? what : "");
        line(t, "            net of the machine, by the best of each; per run: what the model loses by it");
    }
    for (size_t k = 0; k < shown; k++) {
        const arena_mark mark = arena_save(&t->a);
        write_row(t, &list->rows[k], &units);
        arena_rewind(&t->a, mark);
    }
    if (news > shown) line(t, "and %zu more; --top 0 shows all", news - shown);
    return news;
}

static void write_changes(text *t) {
    const comparison *c = t->c;
    const size_t operations = write_rows(t, "operation", &c->operations);
    const size_t fusions = write_rows(t, "fusion", &c->fusions);
    if (operations + fusions > 0 || c->operations.measured == 0) return;
    line(t, "%s", c->machine.state == DRIFT_SAME ? "\nNothing changed." : "\nNo operation changed by itself.");
}

/* ---- what was not compared ---- */

static void write_without(text *t, const char *what, const comparison_list *list) {
    size_t count = 0;
    for (size_t k = 0; k < list->row_count; k++) count += comparison_without_figure(&list->rows[k]);
    if (count > 0)
        line(t, "\n%zu %s%s %s no figure in either run", count, what, plural(count), count == 1 ? "has" : "have");
}

static void write_list(text *t, const char *title, const study_report *const *list, size_t count) {
    if (count == 0) return;
    styled(t, TERMINAL_BOLD, "\n%s", title);
    for (size_t k = 0; k < count; k++) {
        if (t->top > 0 && k == t->top) {
            line(t, "  and %zu more", count - k);
            return;
        }
        line(t, "  %s", list[k]->operation);
    }
}

static void write_skipped(text *t) {
    const comparison *c = t->c;
    if (c->skipped_count > 0) line(t, "\n%zu file%s left out", c->skipped_count, plural(c->skipped_count));
    for (size_t k = 0; k < c->skipped_count && (t->top == 0 || k < t->top); k++)
        line(t, "  %s: %s", c->skipped[k].path, c->skipped[k].why);
}

static void write_all(void *of) {
    text *const t = of;
    const comparison_list *const o = &t->c->operations, *const f = &t->c->fusions;
    write_runs(t);
    write_machine(t);
    write_counts(t);
    write_changes(t);
    write_without(t, "operation", o);
    write_without(t, "fusion", f);
    write_list(t, "New", o->fresh, o->fresh_count);
    write_list(t, "Gone", o->gone, o->gone_count);
    write_list(t, "New fusions", f->fresh, f->fresh_count);
    write_list(t, "Gone fusions", f->gone, f->gone_count);
    write_skipped(t);
}

bool comparison_text(const comparison *c, const comparison_shown *shown, FILE *out, status *st) {
    text t = {.to = terminal_of(out, WIDTH), .c = c, .top = shown->top};
    if (t.to.columns > TERMINAL_MOST) t.to.columns = TERMINAL_MOST;
    return arena_within(&t.a, write_all, &t, st);
}
