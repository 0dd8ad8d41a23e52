/* The summary for a terminal: at most 100 columns wide, whatever the names are. Lines are put together in an arena,
 * cleaned and wrapped as they are printed. */
#include "analyze/write/formats.h"
#include "common/amount.h"

#include "common/plain.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 100, INDENT = 5, MOST = 8 * WIDTH, FEW = 10, NAME = 41 };

typedef struct text {
    FILE *out;
    arena a;
    const summary *m;
} text;

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

/* Where a line that begins here and may be so wide has to end: at a blank where there is one. */
static const char *end_of_line(const char *from, int width) {
    const char *at = from, *blank = NULL;
    for (int columns = 0; *at; at++) {
        columns += ((unsigned char)*at & 0xc0) != 0x80;
        if (columns > width + (*at == ' ')) return blank ? blank : at;
        if (*at == ' ' && at > from && at[-1] != ' ') blank = at;
    }
    return at;
}

/* Over as many lines as it needs, those after the first one indented. */
static void put_line(text *t, const char *whole) {
    const bool apart = whole[0] == '\n'; /* from the line before */
    const char *rest = plain_cell(&t->a, whole + apart, MOST);
    int indent = 0;
    if (apart) fputc('\n', t->out);
    do {
        const char *end = end_of_line(rest, WIDTH - indent), *last = end;
        while (last > rest && last[-1] == ' ') last--;
        fprintf(t->out, "%*s%.*s\n", last > rest ? indent : 0, "", (int)(last - rest), rest);
        for (rest = end; *rest == ' ';) rest++;
        indent = INDENT;
    } while (*rest);
}
#define line(t, ...) put_line(t, arena_printf(&(t)->a, __VA_ARGS__))

/* Cleaned, cut, and filled up to so many columns: printf counts bytes. */
static const char *cell(text *t, const char *from, int columns) {
    const char *clean = plain_cell(&t->a, from ? from : "", columns);
    return arena_printf(&t->a, "%s%*s", clean, columns - plain_columns(clean), "");
}

/* ---- sums ---- */

/* Of what was measured alone; where that is not all, how much it is comes before everything else. */
static void write_head(text *t, const summary_group *g) {
    const study_group *of = g->group;
    const summary_sum *optimal = &g->outcomes[SUMMARY_OPTIMAL], *open = &g->outcomes[SUMMARY_OPEN];
    if (of->partial.text) line(t, "%s", of->partial.text);
    line(t, "%s · %s · %s", of->model, of->device, of->regime);
    if (g->all.measured == 0) return;
    line(t, "%s %s a run (%zu operation%s in %" PRId64 " places)", amount_time(of->measured_us).s,
         amount_within(of->measured_ci).s, g->all.measured, plural(g->all.measured),
         g->all.occurrences - g->outcomes[SUMMARY_MISSING].occurrences);
    line(t, "%s with what is proven, %s at ceilings", amount_time(of->measured_us - g->all.proven_us).s,
         amount_time(g->all.measured_ceiling_us).s);
    const double all_us = of->measured_us; /* the time above */
    line(t, "\nalready optimal: %zu of %zu operations, %s of the time", optimal->operations, g->all.measured,
         amount_percent(optimal->measured_us / all_us).s);
    line(t, "proven to be recoverable: %s (%s of the time)", amount_time(g->all.proven_us).s,
         amount_percent(g->all.proven_us / all_us).s);
    if (g->all.own_us > 0)
        line(t, "besides, over the project's own kernels where no library has one: %s (%s)",
             amount_time(g->all.own_us).s, amount_percent(g->all.own_us / all_us).s);
    line(t, "only potential, beyond that: %s (%s); of it %s (%s) worth trying", amount_time(g->all.potential_us).s,
         amount_percent(g->all.potential_us / all_us).s, amount_time(open->potential_us).s,
         amount_percent(open->potential_us / all_us).s);
}

/* How many there are, what share of the model's time they take, and what can be had of it: proven and potential stand
 * in columns of their own, and are never added; what is gained over own kernels has a line of its own. */
static void write_outcomes(text *t, const summary_group *g) {
    line(t, "\n%-26s %10s %11s %8s %20s %20s", "", "operations", "time", "share", "proven gain", "only potential");
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) {
        const summary_sum *s = &g->outcomes[k];
        const double gain_us = s->proven_us + s->own_us; /* of an outcome one of them is 0 */
        if (s->operations == 0) continue;
        line(t, "%s %10zu %11s %8s %11s %8s %11s %8s", cell(t, summary_outcomes[k].title, 26), s->operations,
             s->measured > 0 ? amount_time(s->measured_us).s : "",
             s->measured > 0 ? amount_percent(s->measured_share).s : "", gain_us > 0 ? amount_time(gain_us).s : "",
             gain_us > 0 ? amount_percent(s->proven_share + s->own_share).s : "",
             s->potential_us > 0 ? amount_time(s->potential_us).s : "",
             s->potential_us > 0 ? amount_percent(s->potential_share).s : "");
    }
    if (g->all.measured == 0) return;
    line(t, "%-26s %10zu %11s %8s %11s %8s %11s %8s", "together", g->all.measured, amount_time(g->all.measured_us).s,
         "", amount_time(g->all.proven_us).s, amount_percent(g->all.proven_share).s, amount_time(g->all.potential_us).s,
         amount_percent(g->all.potential_share).s);
}

static void write_categories(text *t, const summary_group *g) {
    if (g->category_count < 2 || g->all.measured == 0) return;
    line(t, "\n%-16s %10s %11s %8s %8s %12s %15s", "kind", "operations", "time", "share", "optimal", "proven gain",
         "only potential");
    for (size_t k = 0; k < g->category_count; k++) {
        const summary_category *c = &g->categories[k];
        const summary_sum *s = &c->sum;
        if (s->measured == 0)
            line(t, "%s %10zu %11s", cell(t, c->op, 16), s->operations, "-");
        else
            line(t, "%s %10zu %11s %8s %8s %12s %15s", cell(t, c->op, 16), s->operations, amount_time(s->measured_us).s,
                 amount_percent(s->measured_share).s, amount_percent(c->optimal.share).s,
                 amount_percent(s->proven_share).s, amount_percent(s->potential_share).s);
    }
}

/* ---- the ranked list ---- */

/* The id, by which analyze explain knows it; it holds kind, shape and type where it has no given name. */
static const char *name_of(text *t, const study_report *r) {
    const size_t n = strlen(r->op);
    char shape[256];
    if (strncmp(r->operation, r->op, n) == 0 && r->operation[n] == '_') return r->operation;
    const char *type = r->precision ? r->precision : r->dtype;
    return arena_printf(&t->a, "%s %s %s %s", plain_cell(&t->a, r->operation, NAME / 2), r->op,
                        study_shape(r, shape, sizeof shape), type ? type : "");
}

static bool is_told(const summary_row *row) {
    return row->outcome != SUMMARY_OUTSIDE && row->outcome != SUMMARY_MISSING;
}

static void write_row(text *t, const summary_row *row) {
    const study_report *r = row->report;
    const verdict *v = &r->verdict;
    char layers[STUDY_LAYERS];
    line(t, "%4zu %s %6" PRId64 " %8s %8s  %-8s %s%s", row->rank, cell(t, name_of(t, r), NAME), r->count,
         amount_percent(row->share).s, amount_percent(v->efficiency).s, v->priority, v->approach,
         v->borderline ? " ?" : "");
    if (r->layer_count > 0) line(t, "     %s", study_layers(r, layers));
    line(t, "     %s", v->recommendation);
}

static void write_rows(text *t, const summary_group *g) {
    size_t told = 0, left = 0;
    for (size_t k = 0; k < g->row_count; k++) {
        if (!is_told(&g->rows[k])) continue;
        if (t->m->top > 0 && told == t->m->top) {
            left++;
            continue;
        }
        if (told++ == 0)
            line(t, "\n     %s %6s %8s %8s  %-8s %s", cell(t, "operation", NAME), "count", "share", "eff.", "priority",
                 "approach");
        const arena_mark mark = arena_save(&t->a);
        write_row(t, &g->rows[k]);
        arena_rewind(&t->a, mark);
    }
    if (left > 0) line(t, "     … %zu more (--top 0 shows all)", left);
    if (g->all.borderline > 0)
        line(t, "\n? %zu of %zu (%s) are borderline: a threshold is within two intervals, the next run may differ",
             g->all.borderline, g->all.operations - g->outcomes[SUMMARY_MISSING].operations,
             amount_percent(g->borderline_share).s);
}

/* ---- fusions ---- */

static void write_fusions(text *t, const summary_group *g) {
    const summary_fusions *f = &g->fusions;
    if (f->all == 0) return;
    line(t, "\nfusions: %zu of %zu are worth it, %zu borderline, %zu not compared%s%s%s", f->worth, f->all,
         f->borderline, f->unknown, f->worth > 0 ? "; together they save " : "",
         f->worth > 0 ? amount_percent(f->saved_share).s : "", f->worth > 0 ? " of the time" : "");
    for (size_t k = 0; k < f->count; k++) {
        const study_report *r = f->rows[k];
        if (t->m->top > 0 && k == t->m->top) {
            line(t, "     … %zu more", f->count - k);
            break;
        }
        line(t, "     %s %6" PRId64 " %7.2fx faster%s%s", cell(t, r->operation, NAME), r->count, r->speedup,
             plain_same(r->worth, "yes") ? ", saves " : " ?",
             plain_same(r->worth, "yes") ? amount_time(r->saved_us).s : "");
    }
}

/* ---- what is not in it ---- */

static void write_missing(text *t, const summary_group *g) {
    if (g->missing_count == 0) return;
    line(t, "\nwithout a baseline, and in no figure above:");
    for (size_t k = 0; k < g->missing_count; k++) {
        const summary_missing *m = &g->missing[k];
        if (k == FEW) {
            line(t, "     … %zu more reasons", g->missing_count - k);
            break;
        }
        line(t, "     %zu %s (%s): %s%s, %s", m->operations, m->status, m->code, m->operations > 1 ? "such as " : "",
             m->first->operation, m->text);
    }
}

static void write_notes(text *t, const summary_group *g) {
    if (g->bad_rows == 0 && g->said_otherwise == 0) return;
    line(t, "%s", "");
    if (g->bad_rows > 0)
        line(t, "%zu operation%s had a candidate that failed (analyze explain shows which)", g->bad_rows,
             plural(g->bad_rows));
    if (g->said_otherwise > 0)
        line(t, "%zu report%s hold another verdict: thresholds or the model's time differed then", g->said_otherwise,
             plural(g->said_otherwise));
}

/* A command goes on behind a backslash, so that it can be copied: never between quotes. */
static const char *end_of_words(const char *from, int width) {
    const char *blank = NULL, *at = from;
    bool quoted = false;
    for (int columns = 0; *at && (columns <= width || !blank); at++) {
        columns += ((unsigned char)*at & 0xc0) != 0x80;
        quoted ^= *at == '\'';
        if (*at == ' ' && !quoted) blank = at;
    }
    return *at ? blank : at;
}

static void write_next(text *t, const summary_group *g) {
    for (size_t k = 0; k < g->next_count; k++) {
        const char *rest = plain_cell(&t->a, g->next[k].command, MOST);
        for (int indent = INDENT;; indent = 2 * INDENT) {
            const char *end = end_of_words(rest, WIDTH - indent - 2);
            const bool last = !*end;
            fprintf(t->out, "%*s%.*s%s\n", indent, "", (int)(end - rest), rest, last ? "" : " \\");
            if (last) break;
            for (rest = end; *rest == ' ';) rest++;
        }
        line(t, "       %s", g->next[k].why);
    }
}

static void write_skipped(text *t) {
    const study *s = t->m->study;
    if (s->skipped_count == 0) return;
    line(t, "\n%zu file%s left out:", s->skipped_count, plural(s->skipped_count));
    for (size_t k = 0; k < s->skipped_count; k++) {
        if (k == FEW) {
            line(t, "     … %zu more", s->skipped_count - k);
            break;
        }
        line(t, "     %s: %s", s->skipped[k].path, s->skipped[k].why);
    }
}

static void write_all(text *t) {
    for (size_t k = 0; k < t->m->group_count; k++) {
        const summary_group *g = &t->m->groups[k];
        if (k > 0) line(t, "%s", "");
        write_head(t, g);
        write_outcomes(t, g);
        write_categories(t, g);
        write_rows(t, g);
        write_fusions(t, g);
        write_missing(t, g);
        write_notes(t, g);
    }
    write_skipped(t);
    size_t told = 0;
    for (size_t k = 0; k < t->m->group_count; k++) {
        if (t->m->groups[k].next_count > 0 && told++ == 0) line(t, "\nnext:");
        write_next(t, &t->m->groups[k]);
    }
}

bool write_text(const summary *m, FILE *out, status *st) {
    guard g;
    text t = {.out = out, .m = m};
    guard_init(&g);
    arena_init(&t.a, &g, (size_t)1 << 30);
    if (guard_enter(&g))
        write_all(&t);
    else
        *st = g.st;
    arena_free(&t.a);
    return g.st.code == STATUS_OK;
}
