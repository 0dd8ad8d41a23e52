/* Where leaving zeros out overtakes a dense product. */
#include "scout/show/show.h"

#include "common/plain.h"

#include <math.h>

enum { WIDE = 80 };

static bool any_open(const crossover *c) {
    bool open = false;
    for (int k = 0; k < c->count; k++) open = open || c->points[k].open;
    return open;
}

static void show_point(FILE *out, arena *a, const crossover_point *p, const char *label) {
    char dense[32], sparse[32];
    show_time(p->dense_us, dense, sizeof dense);
    if (!p->name) {
        fprintf(out, "  %-11s %5.1f %%  dense %10s  sparse: %s\n", label, 100 * p->zeros, dense,
                p->open ? "not measured" : "none was faster");
        return;
    }
    show_time(p->sparse_us, sparse, sizeof sparse);
    fprintf(out, "  %-11s %5.1f %%  dense %10s  sparse %10s  %s real, %s as if dense  %s\n", label, 100 * p->zeros,
            dense, sparse, show_rate(a, p->real_tflops * 1e12, "FLOP/s"),
            show_rate(a, p->dense_equivalent_tflops * 1e12, "FLOP/s"), plain_cell(a, p->name, WIDE));
}

void show_crossovers(FILE *out, arena *a, const crossover *found, int count) {
    for (int k = 0; k < count; k++) {
        const crossover *c = &found[k];
        const char *what = c->block ? arena_printf(a, "blocks of %d", c->block) : "single numbers";
        fprintf(out, "%s, zeros as %s\n", show_shape(a, c->operation, " x "), what);
        for (int p = 0; p < c->count; p++) show_point(out, a, &c->points[p], p == 0 ? "zeros" : "");
        if (!isfinite(c->from))
            fprintf(out, "  %-11s none: dense is faster at every measured fraction\n", "crossover");
        else
            fprintf(out, "  %-11s %.1f %% zeros%s: from there on sparse is faster than dense\n", "crossover",
                    100 * c->from,
                    isfinite(c->behind) ? arena_printf(a, " (at %.1f %% it is not)", 100 * c->behind)
                    : any_open(c)       ? ""
                                        : " or fewer");
    }
}
