/* Operations that were measured along axes (`along` of run.json): how near each is to its ceiling, over the first axis
 * of numbers, a picture for each combination of the others. */
#include "analyze/page/page_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 8, POINTS = 1024, MOST = 20, DECADES = 30 /* from one end to the other: in logarithms */ };

/* A point's value on an axis; "": it has none. */
static const char *value_of(const json_t *point, size_t axis) {
    const char *text = json_string_value(json_array_get(json_object_get(point, "at"), axis));
    return text ? text : "";
}

static double number_of(const json_t *point, size_t axis) {
    char *end = NULL;
    const char *text = value_of(point, axis);
    const double x = strtod(text, &end);
    return *text && !*end && x > 0 && x < 1e15 ? x : NAN;
}

static size_t count_of(const json_t *axes) { return json_array_size(axes) < AXES ? json_array_size(axes) : AXES; }

/* The first on which all points have numbers; `axes` where there is none. */
static size_t over(const json_t *points, size_t axes) {
    for (size_t axis = 0; axis < axes; axis++) {
        size_t k = 0;
        while (k < json_array_size(points) && isfinite(number_of(json_array_get(points, k), axis))) k++;
        if (k > 0 && k == json_array_size(points)) return axis;
    }
    return axes;
}

/* In everything but the axis of x. */
static bool alike(const json_t *one, const json_t *other, size_t axes, size_t x) {
    for (size_t axis = 0; axis < axes; axis++)
        if (axis != x && strcmp(value_of(one, axis), value_of(other, axis)) != 0) return false;
    return true;
}

static void title(page *p, const json_t *axes, const json_t *point, size_t x) {
    for (size_t axis = 0; axis < count_of(axes); axis++) {
        const char *name = json_string_value(json_array_get(axes, axis));
        if (axis > 0) fputs(", ", p->out);
        if (axis == x) fputs("over ", p->out);
        page_say_cut(p, name ? name : "", PAGE_NAME);
        if (axis == x) continue;
        fputs(" = ", p->out);
        page_say_cut(p, value_of(point, axis), PAGE_NAME);
    }
}

static int by_x(const void *a, const void *b) {
    const page_point *one = a, *other = b;
    return one->x != other->x ? (one->x > other->x) - (one->x < other->x) : (one->y > other->y) - (one->y < other->y);
}

static void chart(page *p, const json_t *axes, const json_t *points, size_t from, size_t x) {
    page_point curve[PAGE_POINTS];
    size_t count = 0;
    double least = INFINITY, most = 0;
    const json_t *const first = json_array_get(points, from);
    for (size_t k = from; k < json_array_size(points) && count < PAGE_POINTS; k++) {
        const json_t *one = json_array_get(points, k);
        const double efficiency = page_real(one, "efficiency"), at = number_of(one, x);
        if (!alike(first, one, count_of(axes), x) || !(efficiency > 0 && efficiency < 1e3)) continue;
        curve[count++] = (page_point){at, 100 * efficiency, page_real(one, "baseline_ci")};
        least = fmin(least, at), most = fmax(most, at);
    }
    if (count < 2) return;
    qsort(curve, count, sizeof *curve, by_x); /* values are in the order in which they were typed */
    fputs("<figure><h3>", p->out);
    title(p, axes, first, x);
    fputs("</h3>", p->out);
    page_chart_alone(p, "How near the baseline is to its ceiling", curve, count, most > DECADES * least, "",
                     "% of the ceiling");
    fputs("</figure>\n", p->out);
}

void page_along(page *p) {
    const json_t *along = json_object_get(p->run, "along");
    const json_t *axes = json_object_get(along, "axes"), *points = json_object_get(along, "points");
    const size_t all = json_array_size(points), count = all < POINTS ? all : POINTS;
    const size_t x = over(points, count_of(axes));
    int drawn = 0;
    if (x == count_of(axes)) return;
    page_section(p, "along", "How near to the ceiling, shape by shape");
    fputs("<div class=\"charts\">\n", p->out);
    for (size_t k = 0; k < count && drawn < MOST; k++) {
        size_t before = 0;
        while (before < k && !alike(json_array_get(points, before), json_array_get(points, k), count_of(axes), x))
            before++;
        if (before < k) continue;
        const arena_mark mark = arena_save(&p->arena);
        chart(p, axes, points, k, x);
        arena_rewind(&p->arena, mark);
        drawn++;
    }
    fputs("</div></section>\n", p->out);
}
