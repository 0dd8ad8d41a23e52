/* The summary for a terminal: as wide as it is, whatever the names are, and at most 100 columns elsewhere. Lines are
 * put together in an arena, cleaned and wrapped as they are printed; nothing but names is cut. Of a column of times all
 * have one unit. */
#include "analyze/write/formats.h"
#include "common/amount.h"
#include "common/plain.h"
#include "common/terminal.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 100, INDENT = 5, MOST = 4000, FEW = 10 };

typedef struct text {
    terminal to;
    bool wide;        /* a table has all its columns */
    int name;         /* columns of an operation's name in the ranked list */
    amount_unit unit; /* of the times of a group */
    arena a;
    const summary *m;
} text;

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static void put_line(text *t, terminal_style style, const char *whole) {
    const bool apart = whole[0] == '\n'; /* from the line before */
    if (apart) fputc('\n', t->to.out);
    terminal_put(&t->to, style, INDENT, plain_cell(&t->a, whole + apart, MOST));
}
#define line(t, ...)          put_line(t, TERMINAL_PLAIN, arena_printf(&(t)->a, __VA_ARGS__))
#define styled(t, style, ...) put_line(t, style, arena_printf(&(t)->a, __VA_ARGS__))

/* Cleaned, cut, and filled up to so many columns: printf counts bytes. */
static const char *cell(text *t, const char *from, int columns) {
    const char *clean = plain_cell(&t->a, from ? from : "", columns);
    return arena_printf(&t->a, "%s%*s", clean, columns - plain_columns(clean), "");
}

static const char *head_of(text *t, const char *what) { return arena_printf(&t->a, "%s, %s", what, t->unit.name); }
static const char *time_of(text *t, double us) { return arena_printf(&t->a, "%s", amount_in(t->unit, us).s); }
static const char *share_of(text *t, double share) { return arena_printf(&t->a, "%s", amount_percent(share).s); }
static const char *gain_of(text *t, double us) { return us > 0 ? time_of(t, us) : ""; }
static const char *gain_share_of(text *t, double us, double share) { return us > 0 ? share_of(t, share) : ""; }

/* ---- sums ---- */

/* Of what was measured alone; where that is not all, how much it is comes before everything else. */
static void write_head(text *t, const summary_group *g) {
    const study_group *of = g->group;
    const summary_sum *optimal = &g->outcomes[SUMMARY_OPTIMAL], *open = &g->outcomes[SUMMARY_OPEN];
    if (of->partial.text) styled(t, TERMINAL_YELLOW, "%s", of->partial.text);
    styled(t, TERMINAL_BOLD, "%s · %s · %s", of->model, of->device, of->regime);
    if (of->whole.known) {
        char said[STUDY_WHOLE_TEXT];
        study_whole_say(&of->whole, said, sizeof said);
        styled(t, TERMINAL_BOLD, "%s", said);
    }
    if (of->memory.at)
        line(t, "weights %s, activations %s %s (at %s)", amount_bytes((double)of->memory.weight_bytes).s,
             of->memory.least ? "at least" : "at most", amount_bytes((double)of->memory.activation_bytes).s,
             plain_cell(&t->a, of->memory.at, MOST));
    if (g->all.measured == 0) return;
    line(t, "%s %s a run (%zu operation%s in %" PRId64 " places)", amount_time(of->measured_us).s,
         amount_within_of(verdict_sum_ci(&of->measured), verdict_sum_unknown(&of->measured)).s, g->all.measured,
         plural(g->all.measured), g->all.occurrences - g->outcomes[SUMMARY_MISSING].occurrences);
    const bool refuted = study_whole_refutes(&of->whole);
    line(t, "%s with what is proven%s, %s at ceilings", amount_time(of->measured_us - g->all.proven_us).s,
         refuted ? " operation by operation" : "", amount_time(g->all.measured_ceiling_us).s);
    const char *whole = summary_whole(g), *part = of->partial.text;
    line(t, "\nalready optimal: %zu of %s%zu %soperations, %s of %s", optimal->operations, part ? "the " : "",
         g->all.measured, part ? "measured " : "", amount_percent(optimal->measured_share).s, whole);
    styled(t, g->all.proven_us > 0 && !refuted ? TERMINAL_GREEN : TERMINAL_PLAIN, "%s: %s (%s of %s)",
           refuted ? "proven operation by operation, and not of the model as a whole" : "proven to be recoverable",
           amount_time(g->all.proven_us).s, amount_percent(g->all.proven_share).s, whole);
    if (g->all.own_us > 0)
        line(t, "besides, over the project's own kernels where no library has one: %s (%s)",
             amount_time(g->all.own_us).s, amount_percent(g->all.own_share).s);
    line(t, "only potential, beyond that: %s (%s); of it %s (%s) worth trying", amount_time(g->all.potential_us).s,
         amount_percent(g->all.potential_share).s, amount_time(open->potential_us).s,
         amount_percent(open->potential_share).s);
}

/* Cells of a row: what, how many, and where there is room the shares of gains too. */
static void write_outcome(text *t, terminal_style style, const char *title, const char *const c[7]) {
    if (t->wide)
        styled(t, style, "%s %10s %11s %8s %11s %8s %11s %8s", cell(t, title, 26), c[0], c[1], c[2], c[3], c[4], c[5],
               c[6]);
    else
        styled(t, style, "%s %6s %9s %7s %11s %14s", cell(t, title, 26), c[0], c[1], c[2], c[3], c[5]);
}

static const char *number(text *t, size_t n) { return arena_printf(&t->a, "%zu", n); }

/* How many there are, what share of the model's time they take, and what can be had of it: proven and potential stand
 * in columns of their own, and are never added; what is gained over own kernels has a line of its own. */
static void write_outcomes(text *t, const summary_group *g) {
    const summary_sum *all = &g->all;
    fputc('\n', t->to.out);
    if (t->wide)
        styled(t, TERMINAL_BOLD, "%-26s %10s %11s %8s %20s %20s", "", "operations", head_of(t, "time"), "share",
               head_of(t, "proven gain"), head_of(t, "only potential"));
    else
        write_outcome(t, TERMINAL_BOLD, "",
                      (const char *[]){"number", head_of(t, "time"), "share", head_of(t, "proven"), "",
                                       head_of(t, "potential"), ""});
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) {
        const summary_sum *s = &g->outcomes[k];
        const double gain_us = s->proven_us + s->own_us; /* of an outcome one of them is 0 */
        const bool known = s->measured > 0;
        if (s->operations == 0) continue;
        write_outcome(t, TERMINAL_PLAIN, summary_outcomes[k].title,
                      (const char *[]){number(t, s->operations), known ? time_of(t, s->measured_us) : "",
                                       known ? share_of(t, s->measured_share) : "", gain_of(t, gain_us),
                                       gain_share_of(t, gain_us, s->proven_share + s->own_share),
                                       gain_of(t, s->potential_us),
                                       gain_share_of(t, s->potential_us, s->potential_share)});
    }
    if (all->measured > 0)
        write_outcome(t, TERMINAL_PLAIN, "together",
                      (const char *[]){number(t, all->measured), time_of(t, all->measured_us), "",
                                       time_of(t, all->proven_us), share_of(t, all->proven_share),
                                       time_of(t, all->potential_us), share_of(t, all->potential_share)});
}

static void write_category(text *t, terminal_style style, const char *kind, const char *const c[6]) {
    styled(t, style, "%s %*s %11s %8s %8s %12s %*s", cell(t, kind, t->wide ? 16 : 13), t->wide ? 10 : 6, c[0], c[1],
           c[2], c[3], c[4], t->wide ? 15 : 14, c[5]);
}

static void write_categories(text *t, const summary_group *g) {
    if (g->category_count < 2 || g->all.measured == 0) return;
    fputc('\n', t->to.out);
    write_category(t, TERMINAL_BOLD, "kind",
                   (const char *[]){t->wide ? "operations" : "number", head_of(t, "time"), "share", "optimal",
                                    "proven gain", "only potential"});
    for (size_t k = 0; k < g->category_count; k++) {
        const summary_category *c = &g->categories[k];
        const summary_sum *s = &c->sum;
        const char *const unknown[] = {number(t, s->operations), "-", "", "", "", ""};
        write_category(t, TERMINAL_PLAIN, c->op,
                       s->measured == 0
                           ? unknown
                           : (const char *[]){unknown[0], time_of(t, s->measured_us), share_of(t, s->measured_share),
                                              share_of(t, c->optimal.share), share_of(t, s->proven_share),
                                              share_of(t, s->potential_share)});
    }
}

/* ---- the ranked list ---- */

/* The id, by which analyze explain knows it; it holds kind, shape and type where it has no given name. */
static const char *name_of(text *t, const study_report *r) {
    const size_t n = strlen(r->op);
    char shape[256];
    if (strncmp(r->operation, r->op, n) == 0 && r->operation[n] == '_') return r->operation;
    const char *type = r->precision ? r->precision : r->dtype;
    return arena_printf(&t->a, "%s %s %s %s", plain_cell(&t->a, r->operation, t->name / 2), r->op,
                        study_shape(r, shape, sizeof shape), type ? type : "");
}

static bool is_told(const summary_row *row) {
    return row->outcome != SUMMARY_OUTSIDE && row->outcome != SUMMARY_MISSING;
}

/* The sentence says what to do, so a narrow terminal does without the approach. */
static void write_cells(text *t, terminal_style style, const char *const c[8]) {
    const char *fixed = arena_printf(&t->a, "%4s %s %6s %8s %8s", c[0], cell(t, c[1], t->name), c[2], c[3], c[4]);
    if (t->wide)
        styled(t, style, "%s  %-8s %s%s", fixed, c[5], c[6], c[7]);
    else
        styled(t, style, "%s %s%s", fixed, c[5], c[7]);
}

static void write_row(text *t, const summary_row *row) {
    const study_report *r = row->report;
    const verdict *v = &r->verdict;
    char layers[STUDY_LAYERS];
    const terminal_style style = plain_same(v->priority, "HIGH")   ? TERMINAL_BOLD
                                 : plain_same(v->priority, "NONE") ? TERMINAL_DIM
                                                                   : TERMINAL_PLAIN;
    write_cells(t, style,
                (const char *[]){number(t, row->rank), name_of(t, r), arena_printf(&t->a, "%" PRId64, r->count),
                                 share_of(t, row->share), share_of(t, v->efficiency), v->priority, v->approach,
                                 v->borderline ? " ?" : ""});
    if (r->layer_count > 0) styled(t, TERMINAL_DIM, "     %s", study_layers(r, layers));
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
        if (told++ == 0) {
            fputc('\n', t->to.out);
            write_cells(t, TERMINAL_BOLD,
                        (const char *[]){"", "operation", "count", "share", "eff.", "priority", "approach", ""});
        }
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
         f->borderline, f->unknown, f->saved_us > 0 ? "; together they save " : "",
         f->saved_us > 0 ? amount_percent(f->saved_share).s : "", f->saved_us > 0 ? " of the time" : "");
    const amount_unit unit = amount_unit_of(f->worth > 0 ? f->rows[0]->saved_us : 0);
    const int most = t->to.columns - 48; /* what stands behind the name */
    for (size_t k = 0; k < f->count; k++) {
        const study_report *r = f->rows[k];
        const bool worth = plain_same(r->worth, "yes");
        if (t->m->top > 0 && k == t->m->top) {
            line(t, "     … %zu more", f->count - k);
            break;
        }
        line(t, "     %s %6" PRId64 " %7.2fx faster%s%s%s%s", cell(t, r->operation, t->name < most ? t->name : most),
             r->count, r->speedup, worth ? ", saves " : " ?", worth ? amount_in(unit, r->saved_us).s : "",
             worth ? " " : "", worth ? unit.name : "");
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

/* ---- what to type next ---- */

/* A command goes on behind a backslash, so that it can be copied: never between quotes. */
static const char *end_of_words(const char *from, int width) {
    const char *blank = NULL, *at = from;
    bool quoted = false;
    for (int columns = 0; *at && (columns <= width || !blank); at++) {
        columns += ((unsigned char)*at & 0xc0) != 0x80;
        quoted ^= *at == '\'' && !(at > from && at[-1] == '\\' && !quoted);
        if (*at == ' ' && !quoted) blank = at;
    }
    return *at ? blank : at;
}

static void write_command(text *t, const char *command) {
    const char *end;
    int indent = INDENT;
    for (const char *rest = command; *rest; rest = end, indent = 2 * INDENT) {
        while (*rest == ' ') rest++;
        end = end_of_words(rest, t->to.columns - indent - 2);
        fprintf(t->to.out, "%*s%s%.*s%s%s\n", indent, "", terminal_on(&t->to, TERMINAL_BOLD), (int)(end - rest), rest,
                *end ? " \\" : "", terminal_off(&t->to, TERMINAL_BOLD));
    }
}

static void write_next(text *t) {
    size_t told = 0;
    for (size_t k = 0; k < t->m->group_count; k++) {
        const summary_group *g = &t->m->groups[k];
        for (size_t n = 0; n < g->next_count; n++) {
            if (told++ == 0) line(t, "\nnext:");
            write_command(t, g->next[n].command);
            line(t, "       %s", g->next[n].why);
        }
    }
}

static void write_all(void *of) {
    text *const t = of;
    for (size_t k = 0; k < t->m->group_count; k++) {
        const summary_group *g = &t->m->groups[k];
        t->unit = amount_unit_of(g->all.measured_us);
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
    write_next(t);
}

bool write_text(const summary *m, FILE *out, status *st) {
    text t = {.to = terminal_of(out, WIDTH), .m = m};
    if (t.to.columns > TERMINAL_MOST) t.to.columns = TERMINAL_MOST;
    t.wide = t.to.columns >= WIDTH;
    t.name = t.wide ? t.to.columns - 59 : t.to.columns - 42;
    if (t.name < 16) t.name = 16;
    if (t.name > 64) t.name = 64;
    return arena_within(&t.a, write_all, &t, st);
}
