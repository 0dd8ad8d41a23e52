/* Owns what the ceilings did between two runs. They are figures of the device alone, taken apart from the operations:
 * where they moved as these did it was the device, and where they did not it was something else that all operations
 * share (a library, a driver). Ceilings that were only taken once say nothing. */
#include "analyze/compare/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double equal = 1e-9;                /* figures that are the same ones, computed twice */
static const double alike = 0.02, in_part = 0.3; /* how near to the machine's factor counts as moved alike */

typedef struct sample {
    size_t kind; /* place in c->ceilings */
    bool apart;  /* of an operation of a part */
    double change;
} sample;

static int by_kind(const void *a, const void *b) {
    const sample *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return (x->change > y->change) - (x->change < y->change);
}

static int by_change(const void *a, const void *b) {
    const sample *x = a, *y = b;
    return (x->change > y->change) - (x->change < y->change);
}

static double median(const sample *samples, size_t n) {
    return (samples[(n - 1) / 2].change + samples[n / 2].change) / 2;
}

static size_t kind_of(comparison *c, map *kinds, const study_report *r) {
    const char *bound = r->bound ? r->bound : "", *precision = r->precision ? r->precision : "";
    void **place = map_put(kinds, arena_printf(&c->arena, "%s\n%s", bound, precision));
    if (!*place) {
        c->ceilings[c->ceiling_count] = (comparison_ceiling){.bound = bound, .precision = precision};
        *place = &c->ceilings[c->ceiling_count++];
    }
    return (size_t)((comparison_ceiling *)*place - c->ceilings);
}

static size_t take_samples(comparison *c, sample *samples) {
    map kinds;
    size_t n = 0;
    map_init(&kinds, &c->arena);
    for (size_t k = 0; k < c->operations.row_count; k++) {
        const study_report *b = c->operations.rows[k].before, *a = c->operations.rows[k].after;
        if (!(b->ceiling_us > 0) || !(a->ceiling_us > 0)) continue;
        const double change = log(a->ceiling_us / b->ceiling_us);
        if (isfinite(change))
            samples[n++] = (sample){kind_of(c, &kinds, a), c->operations.rows[k].part != NULL, change};
    }
    return n;
}

static comparison_ceilings weigh(const comparison *c, sample *samples, size_t n) {
    size_t moved = 0, kept = 0;
    for (size_t k = 0; k < n; k++) {
        moved += fabs(samples[k].change) > equal;
        if (!samples[k].apart) samples[kept++] = samples[k];
    }
    n = kept;
    if (n == 0 || !c->drift.machine_known) return COMPARISON_CEILINGS_UNKNOWN;
    if (moved == 0) return COMPARISON_CEILINGS_STORED;
    qsort(samples, n, sizeof *samples, by_change);
    const double apart = fabs(median(samples, n) - c->drift.machine);
    return apart <= fmax(alike, in_part * fabs(c->drift.machine)) ? COMPARISON_CEILINGS_ALIKE
                                                                  : COMPARISON_CEILINGS_APART;
}

void comparison_weigh(comparison *c) {
    sample *samples = arena_array(&c->arena, sample, c->operations.row_count + 1);
    c->ceilings = arena_array(&c->arena, comparison_ceiling, c->operations.row_count + 1);
    const size_t n = take_samples(c, samples);
    qsort(samples, n, sizeof *samples, by_kind);
    for (size_t first = 0, end = 0; first < n; first = end) {
        while (end < n && samples[end].kind == samples[first].kind) end++;
        comparison_ceiling *kind = &c->ceilings[samples[first].kind];
        kind->operations = end - first;
        kind->change = expm1(median(samples + first, end - first));
    }
    c->ceilings_say = weigh(c, samples, n);
}

const char *comparison_ceilings_text(comparison_ceilings say) {
    static const char *const texts[] = {
        "",
        "both runs have the same stored ceilings, which do not tell whether it is the device",
        "the ceilings changed alike: it is the device",
        "the ceilings did not change alike: it is not the device, but something else that all operations share",
    };
    return texts[say];
}
