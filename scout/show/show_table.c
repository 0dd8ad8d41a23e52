/* Many operations as a table, those that take most of the model's time first. */
#include "scout/show/show.h"

#include "common/amount.h"
#include "common/plain.h"
#include "common/terminal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 10, MOST_NAMES = 6, MOST_TEXT = 4096 };

typedef struct row {
    const char *cells[COLUMNS];
    double weight;
    int order;
} row;

static const struct {
    const char *head;
    bool right;
} columns[COLUMNS] = {{"operation", false}, {"shape", false},   {"dtype", false},  {"count", true},
                      {"baseline", true},   {"best", true},     {"ceiling", true}, {"eff.", true},
                      {"priority", false},  {"approach", false}};

static const char *time_cell(arena *a, double us) {
    char text[32];
    show_time(us, text, sizeof text);
    return arena_printf(a, "%s", text);
}

static const char *dtype_cell(arena *a, const report_input *in, const report_figures *f) {
    const oprec *r = &in->operation->rec;
    if (in->operation->sparsity > 0)
        return arena_printf(a, "%s %.3g%%0", f->precision ? f->precision : "", 100 * in->operation->sparsity);
    return f->precision ? f->precision : dtype_get(r->type)->name;
}

/* A given name, or the kind where the name is only an id made of it. */
static const char *name_cell(const operation *o) {
    const char *made_of = oprec_kind_name(o->rec.kind);
    const size_t n = strlen(made_of);
    return strncmp(o->name, made_of, n) == 0 && o->name[n] == '_' ? made_of : o->name;
}

static row make_row(arena *a, const report_input *in, const report_figures *f, int order) {
    const operation *o = in->operation;
    const bool judged = in->model_us >= 0;
    row r = {.weight = (double)o->count * (f->baseline_row ? f->baseline_us : f->best_us), .order = order};
    r.cells[0] = name_cell(o);
    r.cells[1] = show_shape(a, o, "x");
    r.cells[2] = dtype_cell(a, in, f);
    r.cells[3] = arena_printf(a, "%" PRId64, o->count);
    r.cells[4] = f->baseline_row ? time_cell(a, f->baseline_us) : reason_status_name(f->status);
    r.cells[5] = f->best_row && f->best_row != f->baseline_row ? time_cell(a, f->best_us) : "=";
    r.cells[6] = time_cell(a, f->ceiling_us);
    r.cells[7] = isfinite(f->efficiency) ? arena_printf(a, "%.1f %%", 100 * f->efficiency) : "-";
    r.cells[8] = judged ? f->verdict.priority : "";
    r.cells[9] = judged ? arena_printf(a, "%s%s", f->verdict.approach, f->verdict.borderline ? " ?" : "") : "";
    return r;
}

static int by_weight(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static void measure_columns(arena *a, const row *rows, int count, int width, int *widths) {
    int all = COLUMNS - 1;
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = plain_columns(columns[c].head);
        for (int k = 0; k < count; k++) {
            const int n = plain_columns(plain_cell(a, rows[k].cells[c], width));
            if (n > widths[c]) widths[c] = n;
        }
        all += widths[c];
    }
    /* figures are shown whole or not at all: first names are cut, but not below their head, then types and counts go,
     * then shapes are cut, and then these columns go; what is left over goes to those that were cut */
    static const struct {
        int column;
        bool cut;
    } gives[] = {{0, true}, {2, false}, {3, false}, {1, true}, {6, false}, {5, false}, {8, false}, {9, false}};
    const int wanted[] = {widths[0], widths[1]};
    for (size_t k = 0; k < sizeof gives / sizeof gives[0] && all > width; k++) {
        const int c = gives[k].column, most = widths[c] - plain_columns(columns[c].head);
        const int cut = !gives[k].cut ? widths[c] + 1 : most < all - width ? most : all - width;
        widths[c] = gives[k].cut ? widths[c] - cut : 0;
        all -= cut;
    }
    for (int c = 1; c >= 0 && all < width; c--) {
        const int back = wanted[c] - widths[c] < width - all ? wanted[c] - widths[c] : width - all;
        widths[c] += back;
        all += back;
    }
}

static void print_line(FILE *out, arena *a, const char *const *cells, const int *widths, int width) {
    const char *line = "";
    for (int c = 0; c < COLUMNS; c++)
        if (widths[c] > 0)
            line =
                arena_printf(a, "%s%s%s", line, c > 0 ? " " : "", show_cell(a, cells[c], widths[c], columns[c].right));
    const char *whole = plain_cell(a, line, width);
    size_t n = strlen(whole);
    while (n > 0 && whole[n - 1] == ' ') n--;
    fprintf(out, "%.*s\n", (int)n, whole);
}

void show_head(FILE *out, arena *a, const report_input *in, int width) {
    char words[96];
    regime_say(in->regime, words, sizeof words);
    const char *line = arena_printf(a, "%s · %s", in->device ? in->device->identity.name : "no device", words);
    fprintf(out, "%s\n", plain_cell(a, line, width));
}

/* Over as many lines as it needs. */
static void print_text(FILE *out, arena *a, const char *text, int width) {
    const terminal to = {.out = out, .columns = width};
    terminal_put(&to, TERMINAL_PLAIN, 2, plain_cell(a, text, MOST_TEXT));
}

/* "31 SKIPPED (no_candidate)", …; of those that failed, which. */
static void print_untimed(FILE *out, arena *a, const report_input *inputs, const report_figures *figures, int count,
                          int width) {
    bool *told = arena_array(a, bool, count + 1);
    for (int k = 0; k < count; k++) {
        const report_figures *f = &figures[k];
        if (told[k] || f->baseline_row || f->best_row) continue;
        const char *names = "";
        const bool counted = inputs[k].operation->count > 0; /* what is not is missing in no sum */
        bool alike = true;                                   /* all of them say the same */
        int same = 0;
        for (int j = k; j < count; j++) {
            const report_figures *g = &figures[j];
            if (g->baseline_row || g->best_row || g->status != f->status || strcmp(g->code, f->code) != 0) continue;
            if ((inputs[j].operation->count > 0) != counted) continue;
            told[j] = true;
            same++;
            alike = alike && f->text && g->text && strcmp(f->text, g->text) == 0;
            if (reason_status_bad(f->status) && same <= MOST_NAMES)
                names = arena_printf(a, "%s%s %s", names, same > 1 ? "," : ":", inputs[j].operation->name);
        }
        if (*names && same > MOST_NAMES) names = arena_printf(a, "%s and %d more", names, same - MOST_NAMES);
        const char *text = alike ? f->text : reason_about(f->code);
        const char *of = counted || strcmp(f->code, "not_asked") == 0 ? "" : " (not counted)";
        const char *line = arena_printf(a, "%d %s%s (%s): %s%s%s%s", same, reason_status_name(f->status), of, f->code,
                                        same > 1 ? "" : inputs[k].operation->name, same > 1 ? "" : ", ",
                                        text ? text : "", same > 1 ? names : "");
        print_text(out, a, line, width);
    }
}

/* The candidates that failed beside a baseline that did not: what makes the exit code 1 where every row has its times.
 */
static void print_failed(FILE *out, arena *a, const report_input *inputs, const report_figures *figures, int count,
                         int width) {
    for (int k = 0; k < count; k++) {
        const json_t *rows = json_object_get(inputs[k].measurement, "candidates");
        const char *names = "";
        int told = 0;
        if (figures[k].bad_rows == 0 || (!figures[k].baseline_row && !figures[k].best_row)) continue;
        for (size_t n = 0; n < json_array_size(rows); n++) {
            const json_t *from = json_array_get(rows, n);
            const char *name = json_string_value(json_object_get(from, "name"));
            const char *state = json_string_value(json_object_get(from, "status"));
            row_status is = ROW_OK;
            if (!name || !state || !reason_status_from_name(state, &is) || !reason_status_bad(is)) continue;
            if (told++ < MOST_NAMES) names = arena_printf(a, "%s%s %s %s", names, *names ? "," : "", name, state);
        }
        if (told > MOST_NAMES) names = arena_printf(a, "%s and %d more", names, told - MOST_NAMES);
        print_text(out, a, arena_printf(a, "%s:%s", inputs[k].operation->name, names), width);
    }
}

void show_failures(FILE *out, arena *a, const report_input *inputs, const report_figures *figures, int count,
                   int width) {
    print_untimed(out, a, inputs, figures, count, width);
    print_failed(out, a, inputs, figures, count, width);
}

/* With commas between; where a terminal is too narrow, lines end at them. */
static void print_parts(FILE *out, arena *a, const char *const *parts, size_t count, int width) {
    const char *line = parts[0];
    for (size_t k = 1; k < count; k++) {
        if (!*parts[k]) continue;
        const char *longer = arena_printf(a, "%s, %s", line, parts[k]);
        if (plain_columns(longer) < width) {
            line = longer;
        } else {
            print_text(out, a, arena_printf(a, "%s,", line), width);
            line = arena_printf(a, "  %s", parts[k]);
        }
    }
    print_text(out, a, line, width);
}

/* Whose time is not in the sum, and by what it counts in the shares that priorities follow. */
static void print_missing(FILE *out, arena *a, int missing, double missing_us, int width) {
    if (missing == 0) return;
    const char *line =
        arena_printf(a, "missing in it: %d operation%s without a baseline", missing, missing == 1 ? "" : "s");
    if (missing_us > 0) line = arena_printf(a, "%s, counted as %s (at the ceilings)", line, time_cell(a, missing_us));
    print_text(out, a, line, width);
}

void show_table(FILE *out, arena *a, const report_input *inputs, int count, int width) {
    row *rows = arena_array(a, row, count + 1);
    report_figures *figures = arena_array(a, report_figures, count + 1);
    const char *heads[COLUMNS];
    int widths[COLUMNS], timed = 0;
    double best_us = 0, ceiling_us = 0, missing_us = 0, own_us = 0;
    verdict_sum sum = {0};
    bool borderline = false, skips = false;
    int missing = 0;
    if (count == 0) return;
    for (int k = 0; k < count; k++) {
        report_figures *f = &figures[k];
        report_read(&inputs[k], f);
        const double n = (double)inputs[k].operation->count;
        if (!f->baseline_row && !verdict_is_excused(f->code) && n > 0) {
            missing++;
            missing_us += isfinite(f->estimate_us) ? n * f->estimate_us : 0;
        }
        if (!f->baseline_row && !f->best_row) continue;
        rows[timed++] = make_row(a, &inputs[k], f, k);
        borderline = borderline || (inputs[k].model_us >= 0 && f->verdict.borderline);
        if (!f->baseline_row) continue;
        verdict_sum_add(&sum, n * f->baseline_us, f->baseline_ci);
        best_us += n * f->proven_us;
        own_us += f->own ? f->verdict.proven_gain_us : 0;
        ceiling_us += n * (isfinite(f->ceiling_us) ? f->ceiling_us : f->baseline_us);
        skips = skips || (verdict_is_sparse(f->family) && f->best_us < f->ceiling_us);
    }
    show_head(out, a, &inputs[0], width);
    if (timed > 0) {
        qsort(rows, (size_t)timed, sizeof *rows, by_weight);
        for (int c = 0; c < COLUMNS; c++) heads[c] = columns[c].head;
        measure_columns(a, rows, timed, width, widths);
        print_line(out, a, heads, widths, width);
        for (int k = 0; k < timed; k++) print_line(out, a, rows[k].cells, widths, width);
    }
    show_failures(out, a, inputs, figures, count, width);
    if (sum.us > 0) {
        const char *const parts[] = {
            arena_printf(a, "together %s %s", time_cell(a, sum.us),
                         amount_within_of(verdict_sum_ci(&sum), verdict_sum_unknown(&sum)).s),
            arena_printf(a,
                         own_us > 0 ? "with what is proven %s (%s saved over the project's own kernels"
                                    : "with what is proven %s",
                         time_cell(a, best_us), time_cell(a, own_us)),
            own_us > 0 ? "where no library has one)" : "",
            arena_printf(a, "at the ceilings %s", time_cell(a, ceiling_us)),
            skips ? "which count the skipped zeros" : ""};
        print_parts(out, a, parts, sizeof parts / sizeof parts[0], width);
    }
    print_missing(out, a, missing, missing_us, width);
    if (borderline) fprintf(out, "%s\n", plain_cell(a, "? borderline: the next run may decide otherwise", width));
}
