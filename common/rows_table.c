/* Owns how a table of all variants looks, in scout_batch and in analyze alike. */
#include "common/rows_table.h"

#include "common/amount.h"
#include "common/json.h"
#include "common/plain.h"
#include "common/terminal.h"
#include "common/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 4096, NAME = 46, REASON = 2000, FIGURES = 68, FEWER = 48 };

const char *rows_table_status(const char *name) { return name && strcmp(name, "UNSTABLE") == 0 ? "SKIPPED" : name; }

typedef struct line {
    const json_t *row;
    double us; /* infinite: it has no time */
    const char *status, *code;
    size_t at; /* among the rows; of a line without a time, where the first of its reason is */
    size_t order;
} line;

static double time_of(const json_t *row) {
    const double us = json_get_positive(json_object_get(row, "time_us"), "median");
    return strcmp(json_get_text(row, "status"), "OK") == 0 && us > 0 ? us : INFINITY;
}

size_t rows_table_timed(const json_t *rows) {
    size_t timed = 0;
    for (size_t k = 0; k < json_array_size(rows); k++) timed += isfinite(time_of(json_array_get(rows, k)));
    return timed;
}

static int by_time(const void *a, const void *b) {
    const line *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? -1 : 1;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

bool rows_table_is(const json_t *row, const char *name, const char *variant) {
    return name && strcmp(json_get_text(row, "name"), name) == 0 &&
           strcmp(json_get_text(row, "variant"), variant ? variant : "") == 0;
}

json_t *rows_table_find(const json_t *report, const char *name, const char *variant) {
    const json_t *rows = json_object_get(report, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++)
        if (rows_table_is(json_array_get(rows, k), name, variant)) return json_array_get(rows, k);
    return NULL;
}

/* ---- cells ---- */

const char *rows_table_name(arena *a, const json_t *row) {
    const char *variant = json_get_text(row, "variant");
    return arena_printf(a, "%s%s%s", json_get_text(row, "name"), *variant ? " " : "", variant);
}

static const char *rate(arena *a, const json_t *row, const char *key) {
    const double x = json_get_positive(row, key);
    return isnan(x) ? "-" : arena_printf(a, x < 0.001 ? "%.2g" : x < 9.9995 ? "%.3f" : "%.1f", x);
}

static const char *within(arena *a, double ci) {
    return verdict_has_interval(ci) ? arena_printf(a, "%s", amount_within(ci).s) : "± ?";
}

/* Its own ratio is that of neighbouring blocks; else the two times'. */
static const char *ratio(arena *a, const rows_table *t, const json_t *row, double us) {
    const double own = json_get_positive(row, "ratio"), times = us / t->baseline_us;
    if (rows_table_is(row, t->baseline, t->baseline_variant)) return "1";
    if (own > 0) return arena_printf(a, "%.3f %s", own, within(a, json_get_number(row, "ratio_ci")));
    return times > 0 && isfinite(times) ? arena_printf(a, "%.3f", times) : "-";
}

/* ---- those with a time ---- */

static void print_line(FILE *out, const rows_table *t, int indent, const char *text) {
    const terminal to = {.out = out, .columns = t->columns > 0 ? t->columns : 1 << 20};
    terminal_put(&to, TERMINAL_PLAIN, indent, text);
}

/* In few columns without what follows from the rest; what is said of a row stands beneath it where it is too long. */
static void print_cells(FILE *out, arena *a, const rows_table *t, const char *name, int wide, const char *const c[6],
                        const char *note) {
    const bool few = t->columns > 0 && t->columns < wide + FIGURES;
    const char *text =
        few ? arena_printf(a, "  %s %11s %s  %s", plain_padded(a, name, wide), c[0], plain_padded(a, c[1], 9), c[4])
            : arena_printf(a, "  %s %11s %s %9s %8s  %s %s", plain_padded(a, name, wide), c[0],
                           plain_padded(a, c[1], 9), c[2], c[3], plain_padded(a, c[4], 14), plain_padded(a, c[5], 8));
    const bool beneath = t->columns > 0 && plain_columns(text) + 2 + plain_columns(note) > t->columns;
    print_line(out, t, 4, beneath ? text : arena_printf(a, "%s  %s", text, note));
    if (beneath && *note) print_line(out, t, 6, arena_printf(a, "      %s", note));
}

static void print_timed(FILE *out, arena *a, const rows_table *t, const line *lines, size_t count) {
    const amount_unit unit = amount_unit_of(lines[0].us); /* of the fastest */
    const char *const heads[] = {
        arena_printf(a, "time, %s", unit.name), "interval", "TFLOP/s", "TB/s", "ratio", "quality"};
    int wide = 9;
    for (size_t k = 0; k < count; k++) {
        const int columns = plain_columns(plain_cell(a, rows_table_name(a, lines[k].row), NAME));
        if (columns > wide) wide = columns;
    }
    if (t->columns > 0 && wide > t->columns - FEWER) wide = t->columns > FEWER + 9 ? t->columns - FEWER : 9;
    print_cells(out, a, t, "candidate", wide, heads, "");
    for (size_t k = 0; k < count; k++) {
        const json_t *row = lines[k].row;
        const char *const c[] = {arena_printf(a, "%s", amount_in(unit, lines[k].us).s),
                                 within(a, json_get_number(json_object_get(row, "time_us"), "rel_ci95")),
                                 rate(a, row, "tflops"),
                                 rate(a, row, "tbps"),
                                 ratio(a, t, row, lines[k].us),
                                 json_get_text(row, "quality")};
        const char *note = t->note ? plain_cell(a, t->note(t->context, row, lines[k].us), REASON) : "";
        print_cells(out, a, t, rows_table_name(a, row), wide, c, note);
    }
}

/* ---- the fastest against each ---- */

/* How long it takes, as a part of the baseline's time in neighbouring blocks, and how surely that is known. False: its
 * interval is not known, or there is no baseline. */
static bool paired(const rows_table *t, const json_t *row, double *part, double *ci) {
    const bool base = rows_table_is(row, t->baseline, t->baseline_variant);
    *part = base ? 1 : json_get_positive(row, "ratio");
    *ci = base ? 0 : json_get_number(row, "ratio_ci");
    return *part > 0 && verdict_known(*ci);
}

static void print_against(FILE *out, arena *a, const rows_table *t, const json_t *row, double times, double ci) {
    const char *name = plain_cell(a, rows_table_name(a, row), REASON), *text;
    const double half = times * ci;
    if (isnan(times))
        text = arena_printf(a, "    %s: not known well enough (%s)", name, within(a, ci));
    else
        text = arena_printf(
            a, half < 0.005 ? "    %.3f ± %.3f times faster than %s%s" : "    %.2f ± %.2f times faster than %s%s",
            times, half, name, times - half > 1 ? "" : ", which is not proven");
    print_line(out, t, 6, text);
}

/* Rows of one pass, as all that lost a race, are only counted. */
static void print_versus(FILE *out, arena *a, const rows_table *t, const line *lines, size_t count) {
    enum { MOST = 10 };
    const line *best = NULL;
    double least = 0, least_ci = 0, part, ci;
    size_t told = 0, more = 0, once = 0;
    for (size_t k = 0; k < count; k++) {
        if (!paired(t, lines[k].row, &part, &ci) || (best && part >= least)) continue;
        best = &lines[k], least = part, least_ci = ci;
    }
    if (!best || count < 2) return;
    print_line(out, t, 2, arena_printf(a, "  %s ran", plain_cell(a, rows_table_name(a, best->row), REASON)));
    for (size_t k = 0; k < count; k++) {
        if (&lines[k] == best) continue;
        const bool known = paired(t, lines[k].row, &part, &ci);
        if (!known && !verdict_has_interval(ci))
            once++;
        else if (told++ >= MOST)
            more++;
        else
            print_against(out, a, t, lines[k].row, known ? part / least : NAN, known ? hypot(ci, least_ci) : ci);
    }
    if (more > 0) print_line(out, t, 4, arena_printf(a, "    and %zu more", more));
    if (once > 0)
        print_line(out, t, 4, arena_printf(a, "    %zu more: known from one pass alone, which proves nothing", once));
}

const char *rows_table_counted(arena *a, const json_t *row) {
    static const char *const shares[][2] = {{"warps_active_pct", "warps active"},
                                            {"tensor_active_pct", "tensor cores"},
                                            {"dram_pct", "DRAM"},
                                            {"l2_pct", "L2"}};
    const json_t *const counted = json_object_get(row, "counters");
    const char *text;
    bool any = false;
    if (!json_is_object(counted)) return NULL;
    text = arena_printf(a, "%s: %s", json_get_text(counted, "bottleneck"), json_get_text(counted, "text"));
    for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
        const double share = json_get_number(counted, shares[k][0]);
        if (!isfinite(share)) continue;
        text = arena_printf(a, "%s%s %s %.0f %%", text, any ? "," : ";", shares[k][1], share);
        any = true;
    }
    const int64_t kernels = json_get_int(counted, "kernels", 0);
    return kernels > 1 ? arena_printf(a, "%s; %" PRId64 " kernels, the slowest %s", text, kernels,
                                      json_get_text(counted, "slowest"))
                       : text;
}

const char *rows_table_blocks(arena *a, const json_t *row) {
    static const char *const names[] = {"min", "p05", "p25", "p50", "p75", "p95"};
    enum { NAMES = sizeof names / sizeof names[0] };
    const json_t *time = json_object_get(row, "time_us");
    double x[NAMES];
    amount t[NAMES];
    for (int k = 0; k < NAMES; k++)
        if (!((x[k] = json_get_positive(time, names[k])) > 0)) return NULL;
    const amount_unit unit = amount_unit_of(x[NAMES - 1]);
    for (int k = 0; k < NAMES; k++) t[k] = amount_in(unit, x[k]);
    return arena_printf(a, "min %s, 5 %% %s, quartiles %s, %s, %s, 95 %% %s %s; %lld of %lld are outliers", t[0].s,
                        t[1].s, t[2].s, t[3].s, t[4].s, t[5].s, unit.name, (long long)json_get_int(time, "outliers", 0),
                        (long long)json_get_int(time, "batches", 0));
}

/* ---- the others ---- */

static size_t count_alike(const line *lines, size_t from, size_t count) {
    size_t n = 1;
    while (from + n < count && lines[from + n].at == lines[from].at) n++;
    return n;
}

/* A heading for each reason, and behind it the variants that have it. */
static void print_others(FILE *out, arena *a, const rows_table *t, const line *lines, size_t count) {
    enum { LEAST = 2 }; /* of each reason, however many were listed before */
    size_t listed = 0;
    for (size_t from = 0, n; from < count; from += n) {
        n = count_alike(lines, from, count);
        fprintf(out, "  %s %s: %zu\n", plain_cell(a, lines[from].status, NAME), plain_cell(a, lines[from].code, NAME),
                n);
        for (size_t k = from; k < from + n; k++, listed++) {
            if (t->most > 0 && listed >= t->most && k >= from + LEAST) {
                fprintf(out, "    and %zu more\n", from + n - k);
                break;
            }
            const json_t *reason = json_object_get(lines[k].row, "reason");
            const char *text = plain_cell(a, json_get_text(reason, "text"), REASON);
            if (t->columns == 0 || t->columns >= 2 * NAME)
                print_line(
                    out, t, NAME + 3,
                    arena_printf(a, "    %s %s", plain_padded(a, rows_table_name(a, lines[k].row), NAME - 2), text));
            else
                print_line(
                    out, t, 6,
                    arena_printf(a, "    %s: %s", plain_cell(a, rows_table_name(a, lines[k].row), REASON), text));
        }
    }
}

/* The first line that has no time for the same reason. */
static size_t first_alike(const line *lines, size_t k) {
    for (size_t j = 0; j < k; j++)
        if (!isfinite(lines[j].us) && plain_same(lines[j].status, lines[k].status) &&
            plain_same(lines[j].code, lines[k].code))
            return lines[j].at;
    return k;
}

void rows_table_print(FILE *out, arena *a, const rows_table *t) {
    const size_t all = json_array_size(t->rows), count = all < MOST_ROWS ? all : MOST_ROWS;
    line *lines = arena_array(a, line, count + 1);
    size_t timed = 0;
    for (size_t k = 0; k < count; k++) {
        const json_t *row = json_array_get(t->rows, k);
        const char *code = json_get_text(json_object_get(row, "reason"), "code");
        lines[k] = (line){row, time_of(row), rows_table_status(json_get_text(row, "status")), code, k, k};
        if (isfinite(lines[k].us))
            timed++;
        else
            lines[k].at = first_alike(lines, k);
    }
    qsort(lines, count, sizeof *lines, by_time);
    if (timed > 0) print_timed(out, a, t, lines, timed);
    print_versus(out, a, t, lines, timed);
    print_others(out, a, t, lines + timed, count - timed);
    if (all > count) fprintf(out, "  %zu more rows were not looked at\n", all - count);
}
