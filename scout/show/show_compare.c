/* A comparison as a person reads it. */
#include "scout/report/compare.h"
#include "scout/show/show.h"

#include "common/json.h"
#include "common/plain.h"

#include <math.h>

enum { WIDE = 400 };

static const char *const words[] = {"nothing", "undecided", "revert", "keep"};

static void print_side(FILE *out, arena *a, const char *label, const json_t *row, const report_figures *f, double us,
                       double ci) {
    char time[32];
    if (!row) {
        fprintf(out, "  %-11s none\n", label);
    } else if (!isfinite(us)) {
        fprintf(out, "  %-11s %-28s %s\n", label, show_row_name(a, row),
                plain_cell(a, json_get_text(row, "status"), WIDE));
    } else {
        show_time(us, time, sizeof time);
        fprintf(out, "  %-11s %-28s %14s %12s %s\n", label, show_row_name(a, row), show_rate_of(a, f, us), time,
                show_within(a, ci));
    }
}

void show_comparison(FILE *out, arena *a, const report_input *in, const report_figures *f) {
    compare c;
    compare_read(in, f, &c);
    print_side(out, a, "before", c.before, f, c.before_us, c.before_ci);
    print_side(out, a, "after", c.after, f, c.after_us, c.after_ci);
    if (json_get_text(c.after, "plugin")[0])
        fprintf(out, "  %-11s %s (xxh3 %s)\n", "", plain_cell(a, json_get_text(c.after, "plugin"), WIDE),
                plain_cell(a, json_get_text(c.after, "plugin_hash"), WIDE));
    if (isfinite(c.ratio)) fprintf(out, "  %-11s %.3f %s\n", "ratio", c.ratio, show_within(a, c.ratio_ci));
    fprintf(out, "  %-11s %s\n", words[c.decision], plain_cell(a, c.text, WIDE));
}

void show_comparisons(FILE *out, arena *a, const report_input *inputs, int count) {
    for (int k = 0; k < count; k++) {
        report_figures f;
        compare c;
        report_read(&inputs[k], &f);
        compare_read(&inputs[k], &f, &c);
        if (inputs[k].measurement && c.decision != COMPARE_NONE)
            fprintf(out, "%s: %s: %s\n", plain_cell(a, inputs[k].operation->name, 60), words[c.decision],
                    plain_cell(a, c.text, WIDE));
    }
}
