/* Owns what the index is made of: the changes with what they cost, and the models with their nights. */
#include "analyze/history/index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

index_date index_date_of(int64_t at) {
    index_date d = {"-"};
    const time_t seconds = (time_t)at;
    struct tm broken;
    if (gmtime_r(&seconds, &broken)) strftime(d.s, sizeof d.s, "%Y-%m-%d %H:%M", &broken);
    return d;
}

index_date index_change_of(double change) {
    index_date d;
    if (isfinite(change))
        snprintf(d.s, sizeof d.s, "%+.1f %%", 100 * change);
    else
        snprintf(d.s, sizeof d.s, "-");
    return d;
}

static int64_t one_number(history *h, sqlite3_stmt *s) {
    const int64_t x = history_next(h, s) ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return x;
}

/* The newest first, as they come; told the oldest first. */
static index_line line_of(history *h, sqlite3_stmt *s) {
    double *us = arena_array(h->a, double, INDEX_NIGHTS);
    size_t n = 0;
    while (history_next(h, s)) {
        if (n < INDEX_NIGHTS) us[n++] = history_real(s, 0);
    }
    for (size_t k = 0; k < n / 2; k++) {
        const double x = us[k];
        us[k] = us[n - 1 - k];
        us[n - 1 - k] = x;
    }
    return (index_line){us, n};
}

/* ---- changes ---- */

static index_change change_of(history *h, sqlite3_stmt *s, int64_t last) {
    const double size = history_real(s, 4), before = history_real(s, 5);
    const bool machine = sqlite3_column_int(s, 16) != 0;
    index_change c = {.night = sqlite3_column_int64(s, 0),
                      .at = sqlite3_column_int64(s, 1),
                      .state = (history_state)sqlite3_column_int(s, 3),
                      .change = expm1(size),
                      .before_us = machine ? NAN : before,
                      .again = sqlite3_column_int64(s, 6),
                      .cause = history_text(h, s, 7),
                      .op = history_text(h, s, 8),
                      .device = history_text(h, s, 9),
                      .regime = history_text(h, s, 10),
                      .models = sqlite3_column_int64(s, 14),
                      .lost_us = NAN};
    c.last = c.night == last;
    if (machine || sqlite3_column_type(s, 11) == SQLITE_NULL) return c;
    c.operation = history_text(h, s, 11);
    c.model = history_text(h, s, 12);
    c.folder = history_text(h, s, 13);
    c.lost_us = before * c.change * history_real(s, 15);
    return c;
}

static int by_loss(const void *a, const void *b) {
    const index_change *x = a, *y = b;
    if (x->night != y->night) return (x->night < y->night) - (x->night > y->night);
    if (!x->operation != !y->operation) return x->operation ? 1 : -1; /* the machine first */
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    const double one = isfinite(x->lost_us) ? fabs(x->lost_us) : 0, other = isfinite(y->lost_us) ? fabs(y->lost_us) : 0;
    if (one != other) return (one < other) - (one > other);
    return x->operation && y->operation ? strcmp(x->operation, y->operation) : 0;
}

static void read_changes(history *h, history_index *to) {
    size_t cap = 0, n = 0;
    index_change *all = NULL;
    sqlite3_stmt *s = history_ask(
        h,
        "SELECT change.night, night.at, change.series, state, size, before_us, again, cause, series.op, place.name, "
        "place.regime, part.operation, model.name, model.folder, (SELECT count(*) FROM part WHERE part.series = "
        "change.series), (SELECT sum(count) FROM part WHERE part.series = change.series), series.key = ?1 FROM change "
        "JOIN night ON "
        "night.id = change.night JOIN series ON series.id = change.series JOIN place ON place.id = "
        "series.place" HISTORY_PART "WHERE state IN (1, 2) ORDER BY change.night DESC, "
        "change.series",
        "t", history_machine);
    while (history_next(h, s)) {
        to->change_total++;
        if (sqlite3_column_int64(s, 0) != to->night && n >= 4 * INDEX_CHANGES) continue;
        arena_grow(h->a, (void **)&all, &cap, n, sizeof *all);
        all[n] = change_of(h, s, to->night);
        if (all[n].last && !all[n].operation && all[n].state == HISTORY_SLOWER) to->machines_slower++;
        all[n++].line.count = (size_t)sqlite3_column_int64(s, 2); /* for now, the series */
    }
    if (n > 0) qsort(all, n, sizeof *all, by_loss);
    if (n > INDEX_CHANGES) n = INDEX_CHANGES;
    for (size_t k = 0; k < n; k++) {
        const int64_t series = (int64_t)all[k].line.count;
        all[k].line = (index_line){NULL, 0};
        if (!all[k].last || !all[k].operation) continue;
        all[k].line = line_of(h, history_ask(h,
                                             "SELECT coalesce(again_us, us) FROM point WHERE series = ?1 ORDER BY "
                                             "night DESC LIMIT ?2",
                                             "ii", series, (int64_t)INDEX_NIGHTS));
    }
    to->changes = all;
    to->change_count = n;
}

/* ---- models ---- */

static int by_time(const void *a, const void *b) {
    const index_model *x = a, *y = b;
    const double one = isfinite(x->us) ? x->us : 0, other = isfinite(y->us) ? y->us : 0;
    return one != other ? (one < other) - (one > other) : strcmp(x->name, y->name);
}

static void read_models(history *h, history_index *to) {
    size_t cap = 0, n = 0;
    index_model *all = NULL;
    sqlite3_stmt *s = history_ask(
        h,
        "SELECT run.place, run.model, run.night, model.name, model.folder, place.name, place.regime, night.at, "
        "run.count, "
        "us, ci, proven_us, potential_us, ceiling_us FROM run JOIN model ON model.id = run.model JOIN place ON "
        "place.id "
        "= run.place JOIN night ON night.id = run.night WHERE run.night = (SELECT max(night) FROM run AS other WHERE "
        "other.place = run.place AND other.model = run.model)",
        "");
    while (history_next(h, s)) {
        arena_grow(h->a, (void **)&all, &cap, n, sizeof *all);
        const int64_t place = sqlite3_column_int64(s, 0), model = sqlite3_column_int64(s, 1);
        index_model *m = &all[n++];
        *m = (index_model){.night = sqlite3_column_int64(s, 2),
                           .name = history_text(h, s, 3),
                           .folder = history_text(h, s, 4),
                           .device = history_text(h, s, 5),
                           .regime = history_text(h, s, 6),
                           .at = sqlite3_column_int64(s, 7),
                           .count = sqlite3_column_int64(s, 8),
                           .us = history_real(s, 9),
                           .ci = history_real(s, 10),
                           .proven_us = history_real(s, 11),
                           .potential_us = history_real(s, 12),
                           .ceiling_us = history_real(s, 13),
                           .change = NAN};
        m->line =
            line_of(h, history_ask(h, "SELECT us FROM run WHERE place = ?1 AND model = ?2 ORDER BY night DESC LIMIT ?3",
                                   "iii", place, model, (int64_t)INDEX_NIGHTS));
        if (m->line.count > 1) m->change = m->us / m->line.us[m->line.count - 2] - 1;
        sqlite3_stmt *of = history_ask(h,
                                       "SELECT sum(state = 1), sum(state = 2) FROM change JOIN part USING(series) JOIN "
                                       "series ON series.id = change.series WHERE night = ?1 AND part.model = ?2 AND "
                                       "series.place = ?3",
                                       "iii", to->night, model, place);
        if (history_next(h, of)) {
            m->slower = (size_t)sqlite3_column_int64(of, 0);
            m->faster = (size_t)sqlite3_column_int64(of, 1);
        }
        sqlite3_reset(of);
    }
    if (n > 0) qsort(all, n, sizeof *all, by_time);
    to->models = all;
    to->model_count = n;
}

void index_make(history *h, history_index *to) {
    *to = (history_index){.bytes = history_bytes(h)};
    to->nights = one_number(h, history_ask(h, "SELECT count(*) FROM night", ""));
    to->series = one_number(h, history_ask(h, "SELECT count(*) FROM series WHERE key <> ?1", "t", history_machine));
    to->points = one_number(
        h, history_ask(h, "SELECT count(*) FROM point WHERE series NOT IN (SELECT id FROM series WHERE key = ?1)", "t",
                       history_machine));
    to->night = one_number(h, history_ask(h, "SELECT max(id) FROM night", ""));
    to->at = one_number(h, history_ask(h, "SELECT at FROM night WHERE id = ?1", "i", to->night));
    sqlite3_stmt *s = history_ask(h,
                                  "SELECT state, count(*) FROM change JOIN series ON series.id = change.series WHERE "
                                  "night = ?1 AND witness = 0 AND key <> ?2 GROUP BY state",
                                  "it", to->night, history_machine);
    while (history_next(h, s)) {
        const int64_t state = sqlite3_column_int64(s, 0);
        if (state >= 0 && state < HISTORY_STATES) to->of_last[state] = (size_t)sqlite3_column_int64(s, 1);
    }
    read_changes(h, to);
    read_models(h, to);
    history_suspect *suspects;
    to->suspect_count = history_suspects(h, &suspects);
    to->suspects = suspects;
}
