/* Fusions as a table: what the parts take, what doing them at once takes, and whether it is worth it. */
#include "scout/show/show.h"

#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 9 };

typedef struct row {
    const char *cells[COLUMNS];
    double saved_us, parts_us;
    int order;
} row;

static const struct {
    const char *head;
    bool right;
} columns[COLUMNS] = {{"fusion", false},  {"shape", false},  {"count", true},  {"parts", true}, {"as one", true},
                      {"speed-up", true}, {"kernels", true}, {"worth", false}, {"by", false}};

static const char *time_cell(arena *a, double us) {
    char text[32];
    show_time(us, text, sizeof text);
    return arena_printf(a, "%s", text);
}

static const char *kernels_cell(arena *a, int count) { return count < 0 ? "?" : arena_printf(a, "%d", count); }

static row make_row(arena *a, const report_input *in, const report_figures *f, int order) {
    const report_fused *x = &f->fused;
    const bool sum = in->fusion.of->how == FUSION_SUM;
    row r = {.saved_us = x->saved_us, .parts_us = (double)in->fusion.of->count * x->parts_us, .order = order};
    r.cells[0] = in->fusion.of->pattern;
    r.cells[1] = show_shape(a, in->operation, "x");
    r.cells[2] = arena_printf(a, "%" PRId64, in->fusion.of->count);
    r.cells[3] = arena_printf(a, "%s%s", time_cell(a, x->parts_us), sum ? " +" : "");
    r.cells[4] = time_cell(a, x->fused_us);
    r.cells[5] = arena_printf(a, "%.2fx", 1 / x->ratio);
    r.cells[6] = x->kernels_parts < 0 && x->kernels_fused < 0
                     ? "-"
                     : arena_printf(a, "%s > %s", kernels_cell(a, x->kernels_parts), kernels_cell(a, x->kernels_fused));
    r.cells[7] = strcmp(x->worth, "borderline") == 0 ? "?" : x->worth;
    r.cells[8] = arena_printf(a, "%s%s%s", x->name ? x->name : "", x->variant && *x->variant ? " " : "",
                              x->variant ? x->variant : "");
    return r;
}

static int by_saving(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->saved_us != y->saved_us) return x->saved_us < y->saved_us ? 1 : -1;
    if (x->parts_us != y->parts_us) return x->parts_us < y->parts_us ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static void print_line(FILE *out, arena *a, const char *const *cells, const int *widths, int width) {
    const char *line = "";
    for (int c = 0; c < COLUMNS; c++)
        line = arena_printf(a, "%s%s%s", line, c > 0 ? " " : "", show_cell(a, cells[c], widths[c], columns[c].right));
    const char *whole = plain_cell(a, line, width);
    size_t n = strlen(whole);
    while (n > 0 && whole[n - 1] == ' ') n--;
    fprintf(out, "%.*s\n", (int)n, whole);
}

static void print_rows(FILE *out, arena *a, const row *rows, int count) {
    const int width = show_width(out);
    const char *heads[COLUMNS];
    int widths[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        heads[c] = columns[c].head;
        widths[c] = plain_columns(heads[c]);
        for (int k = 0; k < count; k++) {
            const int n = plain_columns(plain_cell(a, rows[k].cells[c], width));
            if (n > widths[c]) widths[c] = n;
        }
    }
    print_line(out, a, heads, widths, width);
    for (int k = 0; k < count; k++) print_line(out, a, rows[k].cells, widths, width);
}

/* Those without a comparison, by what they say. */
static void print_others(FILE *out, arena *a, const report_input *inputs, const report_figures *figures, int count) {
    bool *told = arena_array(a, bool, count + 1);
    for (int k = 0; k < count; k++) {
        const report_fused *x = &figures[k].fused;
        if (told[k] || x->worth) continue;
        int same = 0;
        for (int j = k; j < count; j++) {
            const report_fused *y = &figures[j].fused;
            if (y->worth || strcmp(inputs[j].fusion.of->pattern, inputs[k].fusion.of->pattern) != 0 || !x->text ||
                !y->text || strcmp(x->text, y->text) != 0)
                continue;
            told[j] = true;
            same++;
        }
        const char *line =
            arena_printf(a, "%d %s not compared (%s): %s", same > 0 ? same : 1, inputs[k].fusion.of->pattern,
                         x->code ? x->code : "error", x->text ? x->text : "");
        fprintf(out, "%s\n", plain_cell(a, line, show_width(out)));
    }
}

void show_fusions(FILE *out, arena *a, const report_input *inputs, int count) {
    row *rows = arena_array(a, row, count + 1);
    report_figures *figures = arena_array(a, report_figures, count + 1);
    double saved_us = 0;
    int timed = 0;
    bool sum = false;
    if (count == 0) return;
    for (int k = 0; k < count; k++) {
        report_read(&inputs[k], &figures[k]);
        if (!figures[k].fused.worth) continue;
        rows[timed++] = make_row(a, &inputs[k], &figures[k], k);
        sum = sum || inputs[k].fusion.of->how == FUSION_SUM;
        if (inputs[k].fusion.of->selected > 0 && inputs[k].fusion.of->how == FUSION_SEQUENCE)
            saved_us += figures[k].fused.saved_us;
    }
    fputc('\n', out);
    if (timed > 0) {
        qsort(rows, (size_t)timed, sizeof *rows, by_saving);
        print_rows(out, a, rows, timed);
    }
    print_others(out, a, inputs, figures, count);
    if (sum) fprintf(out, "+ sum of the parts' times, each measured alone\n");
    if (saved_us > 0) fprintf(out, "the fusions that do not overlap save %s a run\n", time_cell(a, saved_us));
}
