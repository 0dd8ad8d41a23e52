/* Owns what becomes of a night's figures: to which series each belongs, whether it is new, and what the nights before
 * it were. */
#include "analyze/history/history.h"

#include <math.h>
#include <string.h>

double history_value(double us, double ceiling_us) { return log(us) - (ceiling_us > 0 ? log(ceiling_us) : 0); }

/* ---- names to numbers ---- */

static int64_t number_of(history *h, sqlite3_stmt *found) {
    const int64_t id = history_next(h, found) ? sqlite3_column_int64(found, 0) : 0;
    sqlite3_reset(found);
    return id;
}

static int64_t text_of(history *h, const char *text) {
    const int64_t id = number_of(h, history_ask(h, "SELECT id FROM text WHERE text = ?1", "t", text));
    if (id) return id;
    history_do(h, "INSERT INTO text(text) VALUES(?1)", "t", text);
    return sqlite3_last_insert_rowid(h->db);
}

static int64_t place_of(history *h, const history_place *p) {
    const int64_t id =
        number_of(h, history_ask(h, "SELECT id FROM place WHERE device = ?1 AND regime = ?2 AND method = ?3", "tti",
                                 p->device, p->regime, p->method));
    if (id) return id;
    history_do(h, "INSERT INTO place(device, name, regime, method) VALUES(?1, ?2, ?3, ?4)", "ttti", p->device, p->name,
               p->regime, p->method);
    return sqlite3_last_insert_rowid(h->db);
}

static int64_t setting_of(history *h, const history_setting *s) {
    const int64_t id =
        number_of(h, history_ask(h, "SELECT id FROM setting WHERE driver = ?1 AND libraries = ?2 AND program = ?3",
                                 "ttt", s->driver, s->libraries, s->program));
    if (id) return id;
    history_do(h, "INSERT INTO setting(driver, libraries, program) VALUES(?1, ?2, ?3)", "ttt", s->driver, s->libraries,
               s->program);
    return sqlite3_last_insert_rowid(h->db);
}

static int64_t model_of(history *h, const char *name, const char *folder) {
    sqlite3_stmt *s = history_ask(h, "SELECT id, folder = ?2 FROM model WHERE name = ?1", "tt", name, folder);
    const bool there = history_next(h, s), same = there && sqlite3_column_int(s, 1) != 0;
    const int64_t id = there ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    if (there && !same) history_do(h, "UPDATE model SET folder = ?2 WHERE id = ?1", "it", id, folder);
    if (there) return id;
    history_do(h, "INSERT INTO model(name, folder) VALUES(?1, ?2)", "tt", name, folder);
    return sqlite3_last_insert_rowid(h->db);
}

int64_t history_series(history *h, int64_t place, const char *key, const char *op) {
    const int64_t id =
        number_of(h, history_ask(h, "SELECT id FROM series WHERE place = ?1 AND key = ?2", "it", place, key));
    if (id) return id;
    history_do(h, "INSERT INTO series(place, key, op) VALUES(?1, ?2, ?3)", "itt", place, key, op);
    return sqlite3_last_insert_rowid(h->db);
}

/* ---- the nights before ---- */

/* The nights in which it changed, the newest first. */
static size_t changed(history *h, int64_t series, int64_t machine, int64_t before, int64_t nights[SCREEN_NIGHTS]) {
    size_t n = 0;
    sqlite3_stmt *s = history_ask(h,
                                  "SELECT night FROM change WHERE series IN (?1, ?2) AND state IN (1, 2) AND night < "
                                  "?3 ORDER BY night DESC LIMIT ?4",
                                  "iiii", series, machine, before, (int64_t)SCREEN_NIGHTS);
    while (history_next(h, s)) nights[n++] = sqlite3_column_int64(s, 0);
    return n;
}

void history_look(history *h, int64_t series, int64_t machine, int64_t before, history_window *w) {
    int64_t nights[SCREEN_NIGHTS];
    const size_t changes = changed(h, series, machine, before, nights);
    sqlite3_stmt *s = history_ask(h,
                                  "SELECT night, taken, us, ceiling_us, again_us, again_ceiling_us FROM point WHERE "
                                  "series = ?1 AND night < ?2 ORDER BY night DESC LIMIT ?3",
                                  "iii", series, before, (int64_t)SCREEN_NIGHTS);
    size_t n = 0, gone = 0;
    while (history_next(h, s)) {
        const bool again = sqlite3_column_type(s, 4) != SQLITE_NULL;
        const double us = history_real(s, again ? 4 : 2), ceiling = history_real(s, again ? 5 : 3);
        const size_t to = SCREEN_NIGHTS - 1 - n++;
        while (gone < changes && nights[gone] > sqlite3_column_int64(s, 0)) gone++;
        w->taken[to] = sqlite3_column_double(s, 1);
        w->level[to] = (int)(changes - gone);
        w->x[to] = history_value(us, ceiling);
        w->alone[to] = history_value(us, NAN);
    }
    w->count = n;
    for (size_t k = 0; k < n; k++) {
        const size_t from = SCREEN_NIGHTS - n + k;
        w->taken[k] = w->taken[from];
        w->level[k] = w->level[from];
        w->x[k] = w->x[from];
        w->alone[k] = w->alone[from];
    }
}

/* ---- a figure ---- */

static void begin_night(history *h, double taken) {
    if (!h->night) {
        history_do(h, "INSERT INTO night(at) VALUES(?1)", "d", taken);
        h->night = sqlite3_last_insert_rowid(h->db);
        h->night_at = taken;
    }
    if (taken > h->night_at) h->night_at = taken;
}

static void keep_for_tonight(history *h, int64_t series, int64_t place, const history_figure *f,
                             const history_window *w) {
    arena_grow(h->a, (void **)&h->tonight, &h->tonight_cap, h->tonight_count, sizeof *h->tonight);
    h->tonight[h->tonight_count++] = (history_tonight){.series = series,
                                                       .place = place,
                                                       .x = history_value(f->us, f->ceiling_us),
                                                       .alone = history_value(f->us, NAN),
                                                       .base = screen_base_of(w->x, w->level, w->count),
                                                       .alone_base = screen_base_of(w->alone, w->level, w->count)};
}

/* ---- a figure's circumstances: mostly those of the figure before ---- */

static const char *copy(history *h, const char *text) { return arena_strndup(h->a, text, strlen(text)); }

static bool same_place(const history_place *a, const history_place *b) {
    return a->method == b->method && strcmp(a->device, b->device) == 0 && strcmp(a->regime, b->regime) == 0;
}

static bool same_setting(const history_setting *a, const history_setting *b) {
    return strcmp(a->driver, b->driver) == 0 && strcmp(a->libraries, b->libraries) == 0 &&
           strcmp(a->program, b->program) == 0;
}

static void settle_last(history *h, const history_place *p, const history_setting *s, const char *model,
                        const char *folder) {
    if (!h->last.place_id || !same_place(&h->last.place, p)) {
        h->last.place = (history_place){copy(h, p->device), copy(h, p->name), copy(h, p->regime), p->method};
        h->last.place_id = place_of(h, p);
        h->last.machine = history_series(h, h->last.place_id, history_machine, history_machine);
    }
    if (!h->last.setting_id || !same_setting(&h->last.setting, s)) {
        h->last.setting = (history_setting){copy(h, s->driver), copy(h, s->libraries), copy(h, s->program)};
        h->last.setting_id = setting_of(h, s);
    }
    if (!h->last.model_id || strcmp(h->last.model, model) != 0) {
        h->last.model = copy(h, model);
        h->last.model_id = model_of(h, model, folder);
    }
}

bool history_put(history *h, const history_figure *f) {
    history_window w;
    settle_last(h, f->place, f->setting, f->model, f->folder);
    const int64_t place = h->last.place_id, series = history_series(h, place, f->key, f->op);
    history_do(h,
               "INSERT INTO part(series, model, operation, count) VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET "
               "operation = excluded.operation, count = excluded.count WHERE operation <> excluded.operation OR count "
               "<> excluded.count",
               "iiti", series, h->last.model_id, f->operation, f->count);
    if (h->night) {
        sqlite3_stmt *s =
            history_ask(h, "SELECT 1 FROM point WHERE series = ?1 AND night = ?2", "ii", series, h->night);
        if (number_of(h, s)) { /* another model has it, too; both are of this night, now and later */
            history_do(h, "UPDATE point SET taken = ?3 WHERE series = ?1 AND night = ?2 AND taken < ?3", "iid", series,
                       h->night, f->taken);
            return false;
        }
    }
    history_look(h, series, h->last.machine, INT64_MAX, &w);
    if (w.count > 0 && f->taken <= w.taken[w.count - 1]) return false;
    begin_night(h, f->taken);
    history_do(h,
               "INSERT INTO point(series, night, taken, us, ci, default_us, ceiling_us, clock_mhz, best, setting) "
               "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
               "iiddddddii", series, h->night, f->taken, f->us, f->ci, f->default_us, f->ceiling_us, f->clock,
               text_of(h, f->best), h->last.setting_id);
    keep_for_tonight(h, series, place, f, &w);
    return true;
}

void history_put_run(history *h, const history_run *r) {
    if (!h->night) return;
    settle_last(h, r->place, r->setting, r->model, r->folder);
    history_do(h,
               "INSERT OR REPLACE INTO run(place, model, night, setting, operations, count, us, ci, proven_us, "
               "potential_us, ceiling_us, clock_mhz) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
               "iiiitidddddd", h->last.place_id, h->last.model_id, h->night, h->last.setting_id, r->operations,
               r->count, r->us, r->ci, r->proven_us, r->potential_us, r->ceiling_us, r->clock);
}

void history_put_ceiling(history *h, const history_place *place, const char *name, double value) {
    if (!h->night || !isfinite(value)) return;
    history_do(h, "INSERT OR REPLACE INTO ceiling(place, name, night, value) VALUES(?1, ?2, ?3, ?4)", "iiid",
               place_of(h, place), text_of(h, name), h->night, value);
}
