/* Products that differ in nothing but the zeros of their weights (a sparsity sweep, in run.json): what dense and sparse
 * ones take, and from how many zeros on leaving them out is faster. */
#include "analyze/page/page_internal.h"

#include <math.h>

static size_t curve(const json_t *points, const char *member, page_point *to) {
    const json_t *one;
    size_t count = 0, k;
    json_array_foreach(points, k, one) {
        const double zeros = page_real(one, "zeros"), us = page_real(one, member);
        if (count < PAGE_POINTS && zeros >= 0 && zeros <= 1 && us > 0 && us < 1e12)
            to[count++] = (page_point){100 * zeros, us, NAN};
    }
    return count;
}

static void extent(const page_point *points, size_t count, page_axis *x, double *highest) {
    for (size_t k = 0; k < count; k++) {
        x->low = fmin(x->low, points[k].x);
        x->high = fmax(x->high, points[k].x);
        *highest = fmax(*highest, points[k].y);
    }
}

static void caption(page *p, const json_t *sweep) {
    const double from = page_real(sweep, "from"), block = page_real(sweep, "block");
    fputs("<figcaption>Solid: dense. Dashed: the fastest that skips zeros. ", p->out);
    page_say_cut(p, page_string(sweep, "pattern"), 24);
    if (block > 0) fprintf(p->out, ", blocks of %s", page_whole(block).s);
    if (isfinite(from))
        fprintf(p->out, ": from %s zeros on skipping them is faster.", page_percent(from).s);
    else
        fputs(": skipping them is never faster here.", p->out);
    fputs("</figcaption>", p->out);
}

static void chart(page *p, const json_t *sweep) {
    page_point dense[PAGE_POINTS], sparse[PAGE_POINTS];
    const json_t *points = json_object_get(sweep, "points");
    const size_t denses = curve(points, "dense_us", dense), sparses = curve(points, "sparse_us", sparse);
    page_chart c = {.x = {100, 0, false}, .x_unit = "% zeros", .y_unit = "µs"};
    double highest = 0;
    extent(dense, denses, &c.x, &highest);
    extent(sparse, sparses, &c.x, &highest);
    if (denses < 2) return;
    const double room = fmax(0.06 * (c.x.high - c.x.low), 1e-3);
    c.x.low -= room, c.x.high += room / 4;
    c.y = page_axis_of(0, highest, false);
    fputs("<figure><h3>", p->out);
    page_say_cut(p, page_string(sweep, "operation"), PAGE_NAME);
    fputs("</h3><svg class=\"chart\" role=\"img\" aria-label=\"Time over the fraction of zeros, dense and sparse\">",
          p->out);
    page_chart_grid(p, &c);
    page_chart_curve(p, &c, "", dense, denses);
    page_chart_curve(p, &c, "b", sparse, sparses);
    fputs("</svg>", p->out);
    caption(p, sweep);
    fputs("</figure>\n", p->out);
}

void page_crossover(page *p) {
    enum { MOST = 20 };
    const json_t *all = json_object_get(p->run, "crossovers"), *one;
    size_t k;
    if (!json_array_size(all)) return;
    page_section(p, "zeros", "From how many zeros on sparse is faster");
    fputs("<div class=\"charts\">\n", p->out);
    json_array_foreach(all, k, one) {
        const arena_mark mark = arena_save(&p->arena);
        if (k < MOST) chart(p, one);
        arena_rewind(&p->arena, mark);
    }
    fputs("</div></section>\n", p->out);
}
