/* Operations along axes: a line for each, in the order of the axes, with a bar of how near it is to its ceiling. */
#include "scout/show/show.h"

#include "common/amount.h"
#include "common/plain.h"

#include <math.h>
#include <string.h>

enum { FIGURES = 7, COLUMNS = OPERATION_AXES + FIGURES, BAR = 20, EIGHTHS = 8 };

typedef struct line {
    const char *cells[COLUMNS];
} line;

/* Of so many columns, in eighths of one. */
static const char *bar(arena *a, double share) {
    static const char *const parts[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int eighths = isfinite(share) ? (int)lround(EIGHTHS * BAR * fmin(fmax(share, 0), 1)) : 0;
    const char *text = "";
    for (int k = 0; k < eighths / EIGHTHS; k++) text = arena_printf(a, "%s█", text);
    return arena_printf(a, "%s%s", text, parts[eighths % EIGHTHS]);
}

static const char *rate(arena *a, double work, double us) {
    const double tera = work / us * 1e-6;
    return work > 0 && us > 0 ? arena_printf(a, tera < 0.1 ? "%.4f" : tera < 9.9995 ? "%.3f" : "%.1f", tera) : "-";
}

static const char *best(arena *a, const report_figures *f) {
    if (!f->best_row || f->best_row == f->baseline_row) return "=";
    const char *name = show_row_name(a, f->best_row);
    return isfinite(f->ratio) ? arena_printf(a, "%.2fx %s", 1 / f->ratio, name) : name;
}

static line make_line(arena *a, const operation_axes *axes, int item, const report_figures *f, amount_unit unit) {
    const double work = f->bytes_read + f->bytes_written;
    line l = {{NULL}};
    int n = 0;
    for (; n < axes->count; n++) l.cells[n] = operation_axis_value(axes, n, item);
    const double us = f->baseline_row ? f->baseline_us : f->best_us, ci = f->baseline_row ? f->baseline_ci : f->best_ci;
    l.cells[n++] = us > 0 ? arena_printf(a, "%s", amount_in(unit, us).s) : reason_status_name(f->status);
    l.cells[n++] = us > 0 ? show_within(a, ci) : "";
    l.cells[n++] = rate(a, f->flops, us);
    l.cells[n++] = rate(a, work, us);
    l.cells[n++] = us > 0 ? best(a, f) : f->code;
    l.cells[n++] = isfinite(f->efficiency) ? arena_printf(a, "%.1f %%", 100 * f->efficiency) : "-";
    l.cells[n] = bar(a, f->efficiency);
    return l;
}

static void print(FILE *out, arena *a, const line *l, const int *widths, int count, int axes, int width) {
    const char *text = "";
    for (int c = 0; c < count; c++) {
        const bool right = c != axes + 1 && c != axes + 4 && c != count - 1;
        text = arena_printf(a, "%s%s%s", text, c > 0 ? "  " : "", show_cell(a, l->cells[c], widths[c], right));
    }
    size_t n = strlen(text = plain_cell(a, text, width));
    while (n > 0 && text[n - 1] == ' ') n--;
    fprintf(out, "%.*s\n", (int)n, text);
}

void show_axes(FILE *out, arena *a, const report_input *inputs, int count, const operation_axes *axes,
               const operation *first, int width) {
    report_figures *figures = arena_array(a, report_figures, count + 1);
    line *lines = arena_array(a, line, count + 1);
    const int columns = axes->count + FIGURES;
    int widths[COLUMNS] = {0};
    double most_us = 0;
    if (count == 0) return;
    for (int k = 0; k < count; k++) {
        report_read(&inputs[k], &figures[k]);
        most_us = fmax(most_us, figures[k].baseline_row ? figures[k].baseline_us : 0);
    }
    const amount_unit unit = amount_unit_of(most_us);
    const char *const heads[FIGURES] = {
        arena_printf(a, "time, %s", unit.name), "", "TFLOP/s", "TB/s", "best", "of its ceiling", ""};
    for (int c = 0; c < columns; c++)
        lines[0].cells[c] = c < axes->count ? axes->items[c].name : heads[c - axes->count];
    for (int k = 0; k < count; k++)
        lines[k + 1] = make_line(a, axes, (int)(inputs[k].operation - first), &figures[k], unit);
    for (int k = 0; k <= count; k++)
        for (int c = 0; c < columns; c++) {
            const int n = plain_columns(plain_cell(a, lines[k].cells[c], width));
            if (n > widths[c]) widths[c] = n;
        }
    show_head(out, a, &inputs[0], width);
    for (int k = 0; k <= count; k++) print(out, a, &lines[k], widths, columns, axes->count, width);
    show_failures(out, a, inputs, figures, count, width);
}
