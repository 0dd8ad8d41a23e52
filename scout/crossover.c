/* Finds, tells and shows where sparse products overtake dense ones. */
#include "scout/crossover.h"

#include "common/json_get.h"
#include "common/plain.h"
#include "scout/show.h"
#include "scout/sparsity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double fractions[] = {0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97};
enum { FRACTIONS = sizeof fractions / sizeof fractions[0], WIDE = 80 };

void crossover_operations(const char *shape, const char *precision, const char *pattern, int block, arena *a,
                          operation_list *list) {
    operation *const items = arena_array(a, operation, FRACTIONS);
    operation_from_words("gemm", shape, precision, fractions[0], pattern, a, list);
    for (int k = 0; k < FRACTIONS; k++) {
        items[k] = list->items[0];
        items[k].id = items[k].name = arena_printf(a, "%s_zeros%.0f", items[k].id, 100 * fractions[k]);
        items[k].sparsity = fractions[k];
        items[k].sparse_block = block == sparsity_block ? 0 : block;
    }
    list->items = items;
    list->count = FRACTIONS;
}

/* --- what was measured --- */

static bool leaves_zeros_out(const json_t *row) {
    const double real = json_get_number(row, "tflops"), whole = json_get_number(row, "dense_equivalent_tflops");
    return isfinite(real) && isfinite(whole) && real < whole;
}

/* The fastest of both sorts. The dense one may be another than the baseline. */
static crossover_point read_point(const report_input *in) {
    const json_t *rows = json_object_get(in->measurement, "candidates");
    crossover_point p = {.zeros = json_get_number(json_object_get(in->measurement, "weight"), "zeros"),
                         .dense_us = NAN,
                         .sparse_us = NAN};
    if (!isfinite(p.zeros)) p.zeros = in->operation->sparsity;
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        const bool sparse = leaves_zeros_out(row);
        const double us = json_get_number(json_object_get(row, "time_us"), "median");
        double *const best = sparse ? &p.sparse_us : &p.dense_us;
        if (!isfinite(us) || us >= (isfinite(*best) ? *best : INFINITY)) continue;
        *best = us;
        if (!sparse) continue;
        p.real_tflops = json_get_number(row, "tflops");
        p.dense_equivalent_tflops = json_get_number(row, "dense_equivalent_tflops");
        p.name = json_get_text_or_null(row, "name");
        p.variant = json_get_text_or_null(row, "variant");
    }
    return p;
}

static int by_zeros(const void *a, const void *b) {
    const double x = ((const crossover_point *)a)->zeros, y = ((const crossover_point *)b)->zeros;
    return (x > y) - (x < y);
}

/* What is not measured to the end was behind. */
static bool wins(const crossover_point *p) { return p->sparse_us < p->dense_us; }

/* The fewest zeros from which on it wins at all of them; between two that were measured, times are taken as lines. */
static void judge(crossover *c) {
    int first = c->count;
    while (first > 0 && wins(&c->points[first - 1])) first--;
    c->from = first < c->count ? c->points[first].zeros : NAN;
    c->behind = first > 0 ? c->points[first - 1].zeros : NAN;
    if (first == 0 || first == c->count) return;
    const crossover_point *p = &c->points[first - 1], *q = &c->points[first];
    const double behind = p->sparse_us - p->dense_us, ahead = q->dense_us - q->sparse_us;
    if (isfinite(behind) && isfinite(ahead) && behind + ahead > 0)
        c->from = p->zeros + (q->zeros - p->zeros) * behind / (behind + ahead);
}

/* --- which belong together --- */

static bool alike(const operation *a, const operation *b, arena *r) {
    return a->sparse_block == b->sparse_block && strcmp(a->pattern, b->pattern) == 0 &&
           strcmp(oprec_key(&a->rec, r), oprec_key(&b->rec, r)) == 0;
}

static bool counts(const report_input *in) {
    const operation *o = in->operation;
    return o->rec.kind == OP_GEMM && o->sparsity > 0 && !o->weight && strcmp(o->pattern, "STRUCTURED_24") != 0;
}

int crossover_find(const report_input *inputs, int count, arena *a, crossover **found) {
    crossover *const to = *found = arena_array(a, crossover, count + 1);
    bool *const taken = arena_array(a, bool, count + 1);
    int n = 0;
    for (int k = 0; k < count; k++) {
        const operation *o = inputs[k].operation;
        if (taken[k] || !counts(&inputs[k])) continue;
        crossover c = {.operation = o, .points = arena_array(a, crossover_point, count - k)};
        c.block = strcmp(o->pattern, "BLOCK_SPARSE") != 0 ? 0 : o->sparse_block ? o->sparse_block : sparsity_block;
        for (int j = k; j < count; j++) {
            if (taken[j] || !counts(&inputs[j]) || !alike(o, inputs[j].operation, a)) continue;
            taken[j] = true;
            c.points[c.count] = read_point(&inputs[j]);
            c.count += isfinite(c.points[c.count].dense_us); /* without a baseline there is nothing to overtake */
        }
        if (c.count < 2) continue;
        qsort(c.points, (size_t)c.count, sizeof *c.points, by_zeros);
        judge(&c);
        to[n++] = c;
    }
    return n;
}

/* --- telling it --- */

json_t *crossover_json(const crossover *found, int count, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < count; k++) {
        const crossover *c = &found[k];
        json_t *to = json_new_object(b), *points = json_new_array(b);
        json_put_text(b, to, "operation", c->operation->id);
        json_put_text(b, to, "pattern", c->operation->pattern);
        json_put_int(b, to, "block", c->block);
        json_put_known(b, to, "from", c->from);
        json_put_known(b, to, "behind", c->behind);
        for (int p = 0; p < c->count; p++) {
            const crossover_point *at = &c->points[p];
            json_t *point = json_new_object(b);
            json_put_real(b, point, "zeros", at->zeros);
            json_put_real(b, point, "dense_us", at->dense_us);
            json_put_known(b, point, "sparse_us", at->sparse_us);
            if (at->name) {
                json_put_text(b, point, "name", at->name);
                json_put_text(b, point, "variant", at->variant);
                json_put_known(b, point, "tflops", at->real_tflops);
                json_put_known(b, point, "dense_equivalent_tflops", at->dense_equivalent_tflops);
            }
            json_push(b, points, point);
        }
        json_put(b, to, "points", points);
        json_push(b, list, to);
    }
    return list;
}

static void show_point(FILE *out, arena *a, const crossover_point *p, const char *label) {
    char dense[32], sparse[32];
    show_time(p->dense_us, dense, sizeof dense);
    if (!p->name) {
        fprintf(out, "  %-11s %5.1f %%  dense %10s  sparse: none came near\n", label, 100 * p->zeros, dense);
        return;
    }
    show_time(p->sparse_us, sparse, sizeof sparse);
    fprintf(out, "  %-11s %5.1f %%  dense %10s  sparse %10s  %s real, %s as if dense  %s\n", label, 100 * p->zeros,
            dense, sparse, show_rate(a, p->real_tflops * 1e12, "FLOP/s"),
            show_rate(a, p->dense_equivalent_tflops * 1e12, "FLOP/s"), plain_cell(a, p->name, WIDE));
}

void crossover_show(FILE *out, arena *a, const crossover *found, int count) {
    for (int k = 0; k < count; k++) {
        const crossover *c = &found[k];
        const char *what = c->block ? arena_printf(a, "blocks of %d", c->block) : "single numbers";
        fprintf(out, "%s, zeros as %s\n", show_shape(a, c->operation, " x "), what);
        for (int p = 0; p < c->count; p++) show_point(out, a, &c->points[p], p == 0 ? "zeros" : "");
        if (!isfinite(c->from))
            fprintf(out, "  %-11s none: dense is faster at all of them\n", "crossover");
        else
            fprintf(out, "  %-11s %.1f %% zeros%s: from there on leaving them out is faster than dense\n", "crossover",
                    100 * c->from,
                    isfinite(c->behind) ? arena_printf(a, " (at %.1f %% it is not)", 100 * c->behind) : " or fewer");
    }
}
