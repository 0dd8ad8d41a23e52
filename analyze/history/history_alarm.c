/* Owns the alarms: which figures of a night are suspect, and what the repetitions make of them. What all operations of
 * a device share is the machine's, and is told once. */
#include "analyze/history/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const history_states[] = {"suspect", "slower", "faster", "chance", "open"};

static const double least_machine = 0.01; /* a change of the machine that is worth a word */

/* ---- a night is screened ---- */

typedef struct screened {
    history_tonight *of;
    double z, net; /* net of the machine */
} screened;

typedef struct device {
    history *h;
    int64_t place;
    history_tonight *rows;
    size_t count;
    double common, over, alone; /* the usual spread; what all moved by over their ceilings, and by the clock */
    screened *order;            /* the most suspect first */
} device;

static int by_place(const void *a, const void *b) {
    const history_tonight *x = a, *y = b;
    const int order = (x->place > y->place) - (x->place < y->place);
    return order ? order : (x->series > y->series) - (x->series < y->series);
}

static int by_z(const void *a, const void *b) {
    const screened *x = a, *y = b;
    const double one = fabs(x->z), other = fabs(y->z);
    return one != other ? (one < other) - (one > other)
                        : (x->of->series > y->of->series) - (x->of->series < y->of->series);
}

static int by_net(const void *a, const void *b) {
    const double x = fabs(((const screened *)a)->net), y = fabs(((const screened *)b)->net);
    return (x > y) - (x < y);
}

static bool is_known(const history_tonight *t) { return t->base.nights > 0 && t->base.all >= SCREEN_LEAST; }

static void measure_device(device *d) {
    arena *a = d->h->a;
    double *spread = arena_array(a, double, d->count), *over = arena_array(a, double, d->count),
           *alone = arena_array(a, double, d->count);
    size_t n = 0;
    for (size_t k = 0; k < d->count; k++) {
        const history_tonight *t = &d->rows[k];
        if (!is_known(t)) continue;
        spread[n] = t->base.spread;
        over[n] = t->x - t->base.middle;
        alone[n++] = t->alone - t->alone_base.middle;
    }
    d->common = screen_median(spread, n);
    d->over = n >= SCREEN_MACHINE ? screen_median(over, n) : 0;
    d->alone = n >= SCREEN_MACHINE ? screen_median(alone, n) : NAN;
}

static void add_suspect(device *d, int64_t series, bool witness, double z, const screen_base *base, double before_us) {
    history_do(d->h,
               "INSERT INTO change(night, series, state, witness, z, middle, spread, nights, machine, before_us) "
               "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO UPDATE SET witness = 1",
               "iiiidddidd", d->h->night, series, (int64_t)HISTORY_SUSPECT, (int64_t)witness, z, base->middle,
               base->spread, (int64_t)base->nights, d->over, before_us);
}

/* A series like any other, whose figures are what all operations of the device moved by: over their ceilings, which is
 * known best, or with them. */
static bool screen_machine(device *d) {
    history *h = d->h;
    history_window w;
    if (!isfinite(d->alone)) return false;
    const int64_t series = history_series(h, d->place, history_machine, history_machine);
    history_look(h, series, series, h->night, &w);
    history_do(
        h, "INSERT INTO point(series, night, taken, us, ceiling_us, best, setting) VALUES(?1, ?2, ?3, ?4, ?5, 0, 0)",
        "iiddd", series, h->night, h->night_at, exp(d->alone), exp(d->alone - d->over));
    const double moved[] = {d->over, d->alone};
    const double *const nights[] = {w.x, w.alone};
    for (int k = 0; k < 2; k++) {
        const screen_base b = screen_base_of(nights[k], NULL, w.count);
        const double z = screen_z(&b, moved[k]);
        if (fabs(z) <= screen_limit || fabs(moved[k]) < least_machine) continue;
        add_suspect(d, series, k == 1, z, &b, 1);
        return true;
    }
    return false;
}

static void screen_device(device *d, size_t *left) {
    arena *a = d->h->a;
    const arena_mark mark = arena_save(a);
    measure_device(d);
    d->order = arena_array(a, screened, d->count);
    for (size_t k = 0; k < d->count; k++) {
        history_tonight *t = &d->rows[k];
        t->base.spread = screen_blend(&t->base, d->common);
        const double net = t->x - d->over;
        d->order[k] = (screened){t, screen_z(&t->base, net), net - t->base.middle};
    }
    const bool machine = screen_machine(d);
    qsort(d->order, d->count, sizeof *d->order, by_z);
    for (size_t k = 0; k<d->count && * left> 0 && fabs(d->order[k].z) > screen_limit; k++) {
        const history_tonight *t = d->order[k].of;
        add_suspect(d, t->series, false, d->order[k].z, &t->base, exp(t->alone_base.middle));
        --*left;
    }
    /* Its witnesses are those that moved with it. */
    qsort(d->order, d->count, sizeof *d->order, by_net);
    for (size_t k = 0, n = 0; machine && k < d->count && n < SCREEN_WITNESSES; k++) {
        const history_tonight *t = d->order[k].of;
        if (!is_known(t)) continue;
        add_suspect(d, t->series, true, d->order[k].z, &t->base, exp(t->alone_base.middle));
        n++;
    }
    arena_rewind(a, mark);
}

void history_end(history *h) {
    const size_t share = h->tonight_count / HISTORY_SHARE;
    size_t left = share > HISTORY_SUSPECTS ? share : HISTORY_SUSPECTS;
    if (h->night) {
        history_do(h, "UPDATE night SET at = ?2 WHERE id = ?1", "id", h->night, h->night_at);
        history_do(h, "DELETE FROM change WHERE state = 0 AND witness = 1 AND abs(z) <= ?1", "d", screen_limit);
        history_do(h, "UPDATE change SET state = 4 WHERE state = 0", ""); /* its night is over */
        qsort(h->tonight, h->tonight_count, sizeof *h->tonight, by_place);
    }
    for (size_t k = 0, n; h->night && k < h->tonight_count; k += n) {
        device d = {.h = h, .place = h->tonight[k].place, .rows = &h->tonight[k]};
        for (n = 1; k + n < h->tonight_count && h->tonight[k + n].place == d.place;) n++;
        d.count = n;
        screen_device(&d, &left);
    }
    history_keep(h, HISTORY_NIGHTS);
    history_commit(h);
}

/* ---- what is to be measured again ---- */

size_t history_suspects(history *h, history_suspect **to) {
    size_t n = 0, cap = 0;
    sqlite3_stmt *s = history_ask(
        h,
        "SELECT change.series, series.place, night, model.folder, model.name, part.operation FROM change JOIN series "
        "ON series.id = change.series" HISTORY_PART
        "WHERE state = 0 ORDER BY part.operation IS NULL, model.name, part.operation",
        "");
    *to = NULL;
    while (history_next(h, s)) {
        arena_grow(h->a, (void **)to, &cap, n, sizeof **to);
        const bool part = sqlite3_column_type(s, 5) != SQLITE_NULL;
        (*to)[n++] = (history_suspect){.series = sqlite3_column_int64(s, 0),
                                       .place = sqlite3_column_int64(s, 1),
                                       .night = sqlite3_column_int64(s, 2),
                                       .folder = part ? history_text(h, s, 3) : NULL,
                                       .model = part ? history_text(h, s, 4) : NULL,
                                       .operation = part ? history_text(h, s, 5) : NULL};
    }
    return n;
}

/* ---- what the repetitions say ---- */

/* What of a night is not as it was the night before: "driver 580.1 to 580.2"; "": nothing that is known. */
static const char *differs(history *h, int64_t series, int64_t night) {
    static const char *const names[] = {"driver", "libraries", "program", "runs"};
    sqlite3_stmt *s = history_ask(
        h,
        "SELECT driver, libraries, program, text.text FROM point JOIN setting ON setting.id = setting JOIN text ON "
        "text.id = best WHERE series = ?1 AND night <= ?2 ORDER BY night DESC LIMIT 2",
        "ii", series, night);
    const char *now[4], *told = "";
    const bool any = history_next(h, s);
    for (int k = 0; any && k < 4; k++) now[k] = history_text(h, s, k);
    if (any && history_next(h, s))
        for (int k = 0; k < 4; k++) {
            const char *const was = history_text(h, s, k);
            if (strcmp(was, now[k]) != 0)
                told = arena_printf(h->a, "%s%s%s %s to %s", told, *told ? "; " : "", names[k], *was ? was : "none",
                                    *now[k] ? now[k] : "none");
        }
    sqlite3_reset(s);
    return told;
}

static const char *cause_of(history *h, int64_t series, int64_t night, const char *more) {
    const char *const told = differs(h, series, night);
    return arena_printf(h->a, "%s%s", *told ? told : "driver, libraries, program and what runs are the same", more);
}

typedef struct row { /* of a suspect, as it was screened */
    screen_base base;
    double machine, before_us, us, ceiling_us;
    bool witness; /* of the machine; of the machine itself: its ceilings moved with it */
} row;

static row row_of(history *h, const history_suspect *suspect) {
    sqlite3_stmt *s = history_ask(h,
                                  "SELECT middle, spread, nights, machine, before_us, us, ceiling_us, witness FROM "
                                  "change JOIN point USING(series, "
                                  "night) WHERE series = ?1 AND night = ?2",
                                  "ii", suspect->series, suspect->night);
    row r = {.us = NAN};
    if (history_next(h, s))
        r = (row){.base = {.middle = history_real(s, 0),
                           .spread = history_real(s, 1),
                           .nights = (size_t)sqlite3_column_int64(s, 2),
                           .all = SCREEN_NIGHTS},
                  .machine = history_real(s, 3),
                  .before_us = history_real(s, 4),
                  .us = history_real(s, 5),
                  .ceiling_us = history_real(s, 6),
                  .witness = sqlite3_column_int(s, 7) != 0};
    sqlite3_reset(s);
    return r;
}

static void decide(history *h, const history_suspect *s, screen_again a, size_t again, const char *cause) {
    const history_state state = again == 0     ? HISTORY_OPEN
                                : !a.confirmed ? HISTORY_CHANCE
                                : a.change > 0 ? HISTORY_SLOWER
                                               : HISTORY_FASTER;
    history_do(h,
               "UPDATE change SET state = ?3, size = ?4, again = ?5, cause = ?6, witness = 0 WHERE series = ?1 AND "
               "night = ?2",
               "iiidit", s->series, s->night, (int64_t)state, again ? a.change : 0.0, (int64_t)again, cause);
}

/* The program of the night before, run beside the present one in the same night, says whether it is the program. */
static const char *bisected(const history_repeated *r, const screen_base *base, double change) {
    enum { ENOUGH = 3 };
    double x[SCREEN_REPEATS];
    if (r->before_count < ENOUGH) return "";
    for (size_t k = 0; k < r->before_count; k++) x[k] = history_value(r->before[k].us, r->before[k].ceiling_us);
    const double before = screen_median(x, r->before_count) - base->middle;
    return fabs(before) < fabs(change) / 2 ? "; with the program of the night before it is as it was"
                                           : "; with the program of the night before it is the same: not the program";
}

/* What one witness says of the machine; not-a-number: nothing. */
typedef struct moved {
    double over, alone;
} moved;
static const moved unmoved = {NAN, NAN};

static moved settle_one(history *h, const history_suspect *suspect, const history_repeated *r) {
    double x[SCREEN_REPEATS], us[SCREEN_REPEATS], ceilings[SCREEN_REPEATS];
    const row is = row_of(h, suspect);
    const size_t n = r->now_count;
    for (size_t k = 0; k < n; k++) {
        us[k] = r->now[k].us;
        ceilings[k] = r->now[k].ceiling_us;
        x[k] = history_value(us[k], ceilings[k]);
    }
    const screen_again a = screen_settle(&is.base, history_value(is.us, is.ceiling_us), x, n, is.machine);
    decide(h, suspect, a, n,
           a.confirmed ? cause_of(h, suspect->series, suspect->night, bisected(r, &is.base, a.change)) : "");
    if (n == 0) return unmoved;
    const double middle = screen_median(us, n);
    history_do(h, "UPDATE point SET again_us = ?3, again_ceiling_us = ?4 WHERE series = ?1 AND night = ?2", "iidd",
               suspect->series, suspect->night, middle, screen_median(ceilings, n));
    if (!is.witness) return unmoved;
    if (!a.confirmed)
        history_do(h, "DELETE FROM change WHERE series = ?1 AND night = ?2 AND abs(z) <= ?3", "iid", suspect->series,
                   suspect->night, screen_limit);
    return (moved){screen_median(x, n) - is.base.middle, log(middle / is.before_us)};
}

static void settle_machine(history *h, const history_suspect *suspect, const history_suspect *all, const moved *by,
                           size_t count) {
    const row is = row_of(h, suspect);
    const double over = log(is.us / is.ceiling_us), alone = log(is.us);
    double seen[SCREEN_WITNESSES];
    int64_t witness = 0;
    size_t n = 0;
    for (size_t k = 0; k < count && n < SCREEN_WITNESSES; k++) {
        if (all[k].place != suspect->place || !isfinite(by[k].over)) continue;
        seen[n++] = is.witness ? by[k].alone : by[k].over;
        witness = all[k].series;
    }
    const screen_again a = screen_settle(&is.base, is.witness ? alone : over, seen, n, 0);
    const char *const more = is.witness ? "; its ceilings moved with it" : "; its ceilings did not move";
    decide(h, suspect, a, n, a.confirmed ? cause_of(h, witness, suspect->night, more) : "");
    if (a.confirmed) /* all operations begin anew at this level, and so does what they move by */
        history_do(h, "UPDATE point SET us = 1, ceiling_us = 1 WHERE series = ?1 AND night = ?2", "ii", suspect->series,
                   suspect->night);
}

void history_settle(history *h, history_repeat *repeat, void *context) {
    history_suspect *all;
    const size_t n = history_suspects(h, &all);
    moved *by = arena_array(h->a, moved, n + 1);
    for (size_t k = 0; k < n; k++) { /* devices stand behind their witnesses */
        history_repeated r = {.now_count = 0};
        by[k] = unmoved;
        if (!all[k].folder) {
            settle_machine(h, &all[k], all, by, k);
        } else {
            repeat(context, &all[k], &r);
            by[k] = settle_one(h, &all[k], &r);
        }
    }
}
