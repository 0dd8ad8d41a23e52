/* What a person is told of a sparse weight: its zeros, what they are good for, and what leaving them out reaches. */
#include "common/json.h"
#include "common/plain.h"
#include "scout/input/sparsity.h"
#include "scout/show/show.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WIDE = 200 };

static int64_t count(const json_t *o, const char *key) { return json_integer_value(json_object_get(o, key)); }
static bool is_true(const json_t *o, const char *key) { return json_is_true(json_object_get(o, key)); }

static void show_zeros(FILE *out, arena *a, const json_t *w) {
    const bool row = is_true(w, "two_of_four_by_row"), col = is_true(w, "two_of_four_by_col");
    const char *halves = row && col ? ", 2:4 along rows and columns"
                         : row      ? ", 2:4 along rows"
                         : col      ? ", 2:4 along columns"
                                    : "";
    const char *name = json_get_text_or_null(w, "name");
    const double balance = json_get_number(w, "balance");
    fprintf(out, "  %-11s %s%s: %.1f %% zeros%s; rows keep %" PRId64 " to %" PRId64 " of %" PRId64, "weight",
            name ? "" : "made up", name ? plain_cell(a, name, WIDE) : "", 100 * json_get_number(w, "zeros"), halves,
            count(w, "fewest_in_row"), count(w, "most_in_row"), count(w, "cols"));
    if (isfinite(balance)) fprintf(out, ", the fullest %.2f times the mean", balance);
    if (count(w, "same_rows") > 0) fprintf(out, "; %" PRId64 " rows repeat others", count(w, "same_rows"));
    fputc('\n', out);
}

/* What it would be as blocks. */
static void show_blocks(FILE *out, arena *a, const json_t *w) {
    const json_t *c = json_object_get(w, "convert_to_bsr"), *work = json_object_get(c, "work");
    const json_t *lost = json_object_get(c, "norm_lost");
    const double threshold = json_get_number(c, "threshold");
    const char *text = "";
    char side[16];
    if (!json_is_object(c)) return;
    for (int k = 0; k < SPARSITY_SIZES; k++) {
        snprintf(side, sizeof side, "%d", sparsity_sizes[k]);
        text = arena_printf(a, "%s%s %s: %.1f %%", text, k > 0 ? "," : "", side, 100 * json_get_number(work, side));
        if (threshold > 0)
            text = arena_printf(a, "%s (%.2g %% of the norm lost)", text, 100 * json_get_number(lost, side));
    }
    fprintf(out, "  %-11s work left with blocks of%s; ", "as blocks", text);
    if (count(c, "largest") > 0)
        fprintf(out, "the largest that save work are %" PRId64 "\n", count(c, "largest"));
    else
        fprintf(out, "none saves a tenth of it\n");
    if (threshold > 0)
        fprintf(out,
                "  %-11s as if values below %g in magnitude (%.1f %%) were zero; the weight is measured as it is\n", "",
                threshold, 100 * json_get_number(c, "below"));
}

static const char *name_of(const json_t *row) { return json_get_text(row, "name"); }

static bool leaves_zeros_out(const json_t *rates) {
    return json_get_number(rates, "tflops") < json_get_number(rates, "dense_equivalent_tflops");
}

static double time_of(const json_t *row) { return json_get_positive(json_object_get(row, "time_us"), "median"); }

/* The fastest variant of its candidate. */
static bool is_fastest(const json_t *rows, const json_t *row) {
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *other = json_array_get(rows, k);
        if (strcmp(name_of(other), name_of(row)) == 0 && time_of(other) < time_of(row)) return false;
    }
    return true;
}

/* Of each that leaves zeros out its fastest variant: flops on numbers that are not zero, and those of the dense
 * product. */
static void show_rates(FILE *out, arena *a, const json_t *rows) {
    for (size_t k = 0, shown = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        if (!leaves_zeros_out(row) || !is_fastest(rows, row)) continue;
        fprintf(out, "  %-11s %-28s %14s real, %14s as if dense\n", shown++ == 0 ? "sparse" : "",
                plain_cell(a, arena_printf(a, "%s %s", name_of(row), json_get_text(row, "variant")), WIDE),
                show_rate(a, 1e12 * json_get_number(row, "tflops"), "FLOP/s"),
                show_rate(a, 1e12 * json_get_number(row, "dense_equivalent_tflops"), "FLOP/s"));
    }
}

void show_weight(FILE *out, arena *a, const report_input *in) {
    const json_t *w = json_object_get(in->measurement, "weight");
    if (!json_is_object(w)) return;
    show_zeros(out, a, w);
    show_blocks(out, a, w);
    show_rates(out, a, json_object_get(in->measurement, "candidates"));
}

void show_weight_of(FILE *out, arena *a, const report_input *in) {
    if (!json_is_object(json_object_get(in->measurement, "weight"))) return;
    fprintf(out, "%s\n", plain_cell(a, in->operation->name, WIDE));
    show_weight(out, a, in);
}
