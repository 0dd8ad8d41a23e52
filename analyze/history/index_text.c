/* A history on a terminal: the last night, what changed before, and the models; of what is asked for, every night. */
#include "analyze/history/index.h"

#include "analyze/write/escape.h"
#include "common/amount.h"
#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME = 60, CAUSE = 200, TOLD = 20, DATES = 32 };

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

const char *index_sum(const history_shown *shown) {
    const history_index *i = shown->index;
    const size_t slower = i->of_last[HISTORY_SLOWER], faster = i->of_last[HISTORY_FASTER],
                 chance = i->of_last[HISTORY_CHANCE], open = i->of_last[HISTORY_OPEN] + i->of_last[HISTORY_SUSPECT];
    const char *text = arena_printf(shown->h->a, "%s%zu operation%s got slower, %zu faster",
                                    i->machines_slower ? "a device got slower as a whole, " : "", slower,
                                    plural((int64_t)slower), faster);
    if (chance) text = arena_printf(shown->h->a, "%s; %zu measured again and as before", text, chance);
    if (open) text = arena_printf(shown->h->a, "%s; %zu suspect and not measured again", text, open);
    return text;
}

static void draw(FILE *out, const double *us, size_t n) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { WIDE = 40 };
    double low = INFINITY, high = -INFINITY;
    if (n > WIDE) us += n - WIDE, n = WIDE;
    for (size_t k = 0; k < n; k++) low = fmin(low, us[k]), high = fmax(high, us[k]);
    for (size_t k = 0; k < n; k++) {
        const double part = high > low ? (us[k] - low) / fmax(high - low, 0.02 * high) : 0; /* noise is no mountain */
        fputs(isfinite(us[k]) ? bars[(int)fmin(7.99, 8 * part)] : " ", out);
    }
}

static void say(FILE *out, const char *text, size_t most) { escape_print_cut(out, ESCAPE_TERMINAL, text, most); }

static void write_change(const index_change *c, FILE *out) {
    fprintf(out, "  %-6s %8s  ", c->state == HISTORY_SLOWER ? "SLOWER" : "FASTER", index_change_of(c->change).s);
    if (!c->last) fprintf(out, "%s  ", index_date_of(c->at).s);
    say(out, c->operation ? c->operation : "the device as a whole", NAME);
    fputs(" on ", out);
    say(out, c->device, NAME);
    if (c->model) {
        fputs(", in ", out);
        say(out, c->model, NAME);
        if (c->models > 1) fprintf(out, " and %" PRId64 " more", c->models - 1);
    }
    fputs("\n         ", out);
    say(out, c->cause, CAUSE);
    fputc('\n', out);
}

static void write_models(const history_index *i, FILE *out) {
    for (size_t k = 0; k < i->model_count; k++) {
        const index_model *m = &i->models[k];
        if (k == 0) fputs("\nmodels by the time of a run:\n", out);
        fprintf(out, "  %10s %-8s %8s  ", amount_time(m->us).s, amount_within(m->ci).s, index_change_of(m->change).s);
        draw(out, m->line.us, m->line.count);
        fputs("  ", out);
        say(out, m->name, NAME);
        fputc('\n', out);
    }
}

/* ---- of what is asked for, every night ---- */

static void write_series(history *h, int64_t series, FILE *out) {
    sqlite3_stmt *s = history_ask(
        h,
        "SELECT night.at, coalesce(again_us, us), coalesce(again_ceiling_us, ceiling_us), clock_mhz, text.text, "
        "driver, "
        "program, state, cause FROM point JOIN night ON night.id = point.night JOIN text ON text.id = best JOIN "
        "setting "
        "ON setting.id = setting LEFT JOIN change ON change.series = point.series AND change.night = point.night AND "
        "state IN (1, 2) WHERE point.series = ?1 ORDER BY point.night",
        "i", series);
    size_t n = 0, cap = 0, dates, at[DATES];
    double *us = arena_array(h->a, double, HISTORY_NIGHTS), *x = arena_array(h->a, double, HISTORY_NIGHTS);
    const char **lines = NULL;
    while (history_next(h, s) && n < HISTORY_NIGHTS) {
        const double ceiling = history_real(s, 2);
        us[n] = history_real(s, 1);
        x[n] = history_value(us[n], ceiling);
        arena_grow(h->a, (void **)&lines, &cap, n, sizeof *lines);
        lines[n] = arena_printf(
            h->a, "  %s  %11s  %6s of its ceiling  %5.0f MHz  %s; driver %s; %s",
            index_date_of(sqlite3_column_int64(s, 0)).s, amount_time(us[n]).s, amount_percent(ceiling / us[n]).s,
            fmax(history_real(s, 3), 0), plain_cell(h->a, history_text(h, s, 4), NAME),
            plain_cell(h->a, history_text(h, s, 5), NAME), plain_cell(h->a, history_text(h, s, 6), NAME));
        if (sqlite3_column_type(s, 7) != SQLITE_NULL)
            lines[n] = arena_printf(h->a, "%s  <- %s: %s", lines[n], history_states[sqlite3_column_int(s, 7)],
                                    plain_cell(h->a, history_text(h, s, 8), CAUSE));
        n++;
    }
    sqlite3_reset(s);
    fputs("  ", out);
    draw(out, us, n);
    fputc('\n', out);
    dates = screen_changes(x, n, at, DATES);
    for (size_t k = 0, d = 0; k < n; k++) {
        const bool changed = d < dates && at[d] == k;
        d += changed;
        fprintf(out, "%s%s\n", lines[k], changed ? "  <- a new level" : "");
    }
}

static void write_asked(history *h, const char *only, FILE *out) {
    sqlite3_stmt *s = history_ask(
        h,
        "SELECT series.id, coalesce(min(part.operation), series.op), place.name, place.regime FROM series JOIN place "
        "ON "
        "place.id = series.place LEFT JOIN part ON part.series = series.id LEFT JOIN model ON model.id = part.model "
        "WHERE instr(part.operation, ?1) OR instr(model.name, ?1) OR instr(series.key, ?1) OR instr(place.name, ?1) "
        "GROUP BY series.id ORDER BY 2, series.id",
        "t", only);
    size_t n = 0;
    for (; history_next(h, s); n++) {
        if (n >= TOLD) continue;
        const arena_mark mark = arena_save(h->a);
        fputc('\n', out);
        say(out, history_text(h, s, 1), 2 * NAME);
        fputs(" on ", out);
        say(out, history_text(h, s, 2), NAME);
        fputs(", ", out);
        say(out, history_text(h, s, 3), NAME);
        fputc('\n', out);
        write_series(h, sqlite3_column_int64(s, 0), out);
        arena_rewind(h->a, mark);
    }
    if (n > TOLD) fprintf(out, "\nand %zu more; name one, or say --format csv\n", n - TOLD);
    if (n == 0) fputs("\nnothing has that in its name\n", out);
}

bool history_write_text(const history_shown *shown, FILE *out, status *st) {
    const history_index *i = shown->index;
    (void)st;
    fprintf(out, "%" PRId64 " night%s, %" PRId64 " operation%s, %" PRId64 " figures, %s\n", i->nights,
            plural(i->nights), i->series, plural(i->series), i->points, amount_bytes((double)i->bytes).s);
    if (shown->only) {
        write_asked(shown->h, shown->only, out);
        return true;
    }
    if (i->nights == 0) return true;
    fprintf(out, "last night (%s): %s\n", index_date_of(i->at).s, index_sum(shown));
    bool earlier = false;
    for (size_t k = 0; k < i->change_count && k < TOLD; k++) {
        if (!i->changes[k].last && !earlier) fputs("\nbefore that:\n", out);
        earlier = earlier || !i->changes[k].last;
        write_change(&i->changes[k], out);
    }
    write_models(i, out);
    return true;
}
