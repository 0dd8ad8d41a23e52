/* Finds and tells where sparse products overtake dense ones. */
#include "scout/report/crossover.h"

#include "common/json.h"
#include "common/map.h"
#include "scout/input/sparsity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double fractions[] = {0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97};
enum { FRACTIONS = sizeof fractions / sizeof fractions[0] };

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
    crossover_point p = {.rows = rows,
                         .zeros = json_get_number(json_object_get(in->measurement, "weight"), "zeros"),
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

/* Whether the row's candidate skips zeros at any of the points. */
static bool is_sparse(const crossover *c, const json_t *row) {
    for (int k = 0; k < c->count; k++)
        if (c->points[k].name && strcmp(c->points[k].name, json_get_text(row, "name")) == 0) return true;
    return false;
}

/* What leaves zeros out has no time: its turn did not come. */
static bool is_open(const crossover *c, const crossover_point *p) {
    bool waited = false;
    for (size_t k = 0; !p->name && k < json_array_size(p->rows); k++) {
        const json_t *row = json_array_get(p->rows, k);
        const char *code = json_get_text(json_object_get(row, "reason"), "code");
        if (is_sparse(c, row) && strcmp(code, "outraced") == 0) return false; /* it ran, and was behind */
        waited = waited || (is_sparse(c, row) && strcmp(code, "budget") == 0);
    }
    return waited;
}

/* The fewest zeros from which on it wins at all of them; between two that were measured, times are taken as lines. */
static void judge(crossover *c) {
    const crossover_point *won = NULL, *lost = NULL;
    for (int k = c->count - 1; k >= 0 && !lost; k--) {
        const crossover_point *p = &c->points[k];
        if (p->open) continue;
        if (wins(p))
            won = p;
        else
            lost = p;
    }
    c->from = won ? won->zeros : NAN;
    c->behind = lost ? lost->zeros : NAN;
    if (!won || !lost) return;
    const double behind = lost->sparse_us - lost->dense_us, ahead = won->dense_us - won->sparse_us;
    if (isfinite(behind) && isfinite(ahead) && behind + ahead > 0)
        c->from = lost->zeros + (won->zeros - lost->zeros) * behind / (behind + ahead);
}

/* --- which belong together --- */

static bool counts(const report_input *in) {
    const operation *o = in->operation;
    return o->rec.kind == OP_GEMM && o->sparsity > 0 && !o->weight && strcmp(o->pattern, "STRUCTURED_24") != 0;
}

/* Equal where nothing but the number of zeros differs. */
static const char *family_of(const operation *o, arena *a) {
    return arena_printf(a, "%d %s %s", o->sparse_block, o->pattern, oprec_key(&o->rec, a));
}

/* The crossover that each input belongs to (NULL: none), in the order of their first ones, with the number of inputs.
 */
static int sort_out(const report_input *inputs, int count, arena *a, crossover *to, crossover **of) {
    map families;
    int n = 0;
    map_init(&families, a);
    for (int k = 0; k < count; k++) {
        const operation *o = inputs[k].operation;
        if (!counts(&inputs[k])) continue;
        void **family = map_put(&families, family_of(o, a));
        if (!*family) {
            const bool blocks = strcmp(o->pattern, "BLOCK_SPARSE") == 0;
            to[n].operation = o;
            to[n].block = !blocks ? 0 : o->sparse_block ? o->sparse_block : sparsity_block;
            *family = &to[n++];
        }
        of[k] = *family;
        of[k]->count++;
    }
    return n;
}

int crossover_find(const report_input *inputs, int count, arena *a, crossover **found) {
    crossover *const to = *found = arena_array(a, crossover, count + 1);
    crossover **const of = arena_array(a, crossover *, count + 1);
    const int families = sort_out(inputs, count, a, to, of);
    int n = 0;
    for (int k = 0; k < families; k++) {
        to[k].points = arena_array(a, crossover_point, to[k].count);
        to[k].count = 0;
    }
    for (int k = 0; k < count; k++) {
        if (!of[k]) continue;
        const crossover_point p = read_point(&inputs[k]);
        if (isfinite(p.dense_us)) of[k]->points[of[k]->count++] = p; /* else there is nothing to overtake */
    }
    for (int k = 0; k < families; k++) {
        if (to[k].count < 2) continue;
        qsort(to[k].points, (size_t)to[k].count, sizeof *to[k].points, by_zeros);
        for (int p = 0; p < to[k].count; p++) to[k].points[p].open = is_open(&to[k], &to[k].points[p]);
        judge(&to[k]);
        to[n++] = to[k];
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
            if (at->open) json_put_bool(b, point, "open", true);
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
