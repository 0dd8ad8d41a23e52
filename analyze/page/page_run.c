/* Clock and power over the run: each operation's default, at the time when it was measured. */
#include "analyze/page/page_internal.h"

#include <math.h>
#include <stdlib.h>

static int by_time(const void *a, const void *b) {
    const page_moment *x = a, *y = b;
    if (x->at_s != y->at_s) return x->at_s < y->at_s ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void chart(page *p, const char *what, const char *member, const char *unit, size_t offset) {
    const arena_mark mark = arena_save(&p->arena);
    page_point *points = arena_array(&p->arena, page_point, p->moment_count);
    size_t count = 0;
    for (size_t k = 0; k < p->moment_count; k++) {
        const double y = *(const double *)((const char *)&p->moments[k] + offset);
        if (y > 0) points[count++] = (page_point){p->moments[k].at_s - p->moments[0].at_s, y, NAN};
    }
    if (count > 1) {
        const json_t *all = json_object_get(p->run, member);
        fprintf(p->out, "<figure><h3>%s</h3>", what);
        page_chart_alone(p, what, points, count, false, "s", unit);
        if (json_is_object(all))
            fprintf(p->out, "<figcaption>Over all timed rows %s to %s %s, median %s.</figcaption>",
                    page_whole(page_real(all, "min")).s, page_whole(page_real(all, "max")).s, unit,
                    page_whole(page_real(all, "median")).s);
        fputs("</figure>\n", p->out);
    }
    arena_rewind(&p->arena, mark);
}

void page_over_time(page *p) {
    if (p->moment_count < 2) return;
    qsort(p->moments, p->moment_count, sizeof *p->moments, by_time);
    page_section(p, "clock", "Clock and power over the run");
    fprintf(p->out,
            "<p class=\"soft\">Each dot is the default of an operation, at the time when it was measured. Scales do "
            "not begin at 0.%s</p>"
            "<div class=\"charts\">\n",
            p->g->row_count > PAGE_FULL ? " Of those first in the table." : "");
    chart(p, "Clock", "clock_mhz", "MHz", offsetof(page_moment, clock_mhz));
    chart(p, "Power", "power_w", "W", offsetof(page_moment, power_w));
    fputs("</div></section>\n", p->out);
}
