/* Axes and curves as SVG. All places are percents of a picture whose size is the style sheet's: a chart is as wide as
 * the screen lets it, and its text as large as other text. Scales stand inside, above the lines that they belong to. */
#include "analyze/page/page_internal.h"

#include <math.h>

/* The plot within the picture, in percents: below it is room for the scale of x. */
static const double top = 6, bottom = 89, left = 0, right = 100;
enum { TICKS = 5, DECADES = 16 };

static double step_of(double range) {
    const double rough = range / TICKS, power = pow(10, floor(log10(rough))), part = rough / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

page_axis page_axis_of(double low, double high, bool log) {
    if (!isfinite(high - low)) return (page_axis){log ? 1 : 0, 10, log};
    if (log) {
        high = high > 0 ? high : 1;
        low = fmax(low, high * pow(10, -DECADES));
        return (page_axis){low, fmax(high, 2 * low), true};
    }
    if (!(high > low)) high = low + fmax(fabs(low) * 0.1, 1e-9);
    const double step = step_of(high - low);
    return (page_axis){floor(low / step) * step, ceil(high / step) * step, false};
}

static double part_of(const page_axis *a, double value) {
    if (a->log) return value > 0 ? log(value / a->low) / log(a->high / a->low) : 0;
    return (value - a->low) / (a->high - a->low);
}

double page_chart_x(const page_chart *c, double value) { return left + (right - left) * part_of(&c->x, value); }
double page_chart_y(const page_chart *c, double value) { return bottom - (bottom - top) * part_of(&c->y, value); }

static page_word tick_text(const page_axis *a, double value, bool bytes) {
    page_word w;
    if (bytes) return page_bytes(value);
    if (fabs(value) >= 1e6 || (value != 0 && fabs(value) < 1e-3))
        snprintf(w.s, sizeof w.s, "%.0e", value);
    else if (a->log || fabs(value) >= 1000)
        return value >= 1000 ? page_whole(value) : (snprintf(w.s, sizeof w.s, "%g", value), w);
    else
        snprintf(w.s, sizeof w.s, "%.4g", value);
    return w;
}

static double first_tick(const page_axis *a) {
    const double step = a->log ? 0 : step_of(a->high - a->low);
    return a->log ? pow(10, ceil(log10(a->low) - 1e-9)) : step * ceil(a->low / step - 1e-9) + 0.0; /* no -0 */
}

static double next_tick(const page_axis *a, double value) {
    return a->log ? value * 10 : value + step_of(a->high - a->low);
}

static void y_tick(page *p, const page_chart *c, double value, bool last) {
    const page_word y = page_place(page_chart_y(c, value));
    fprintf(p->out,
            "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%s\" y2=\"%s\"/><text x=\"0\" y=\"%s\" "
            "dy=\"-3\">%s%s%s</text>",
            y.s, y.s, y.s, tick_text(&c->y, value, false).s, last ? " " : "", last ? c->y_unit : "");
}

static void x_tick(page *p, const page_chart *c, double value) {
    const double at = page_chart_x(c, value);
    const page_word x = page_place(at), below = page_place(bottom);
    fprintf(p->out, "<line class=\"axis\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>", x.s, x.s, below.s,
            page_place(bottom + 1.5).s);
    fprintf(p->out, "<text x=\"%s\" y=\"%s\" dy=\"18\" text-anchor=\"%s\">%s</text>", x.s, below.s,
            at < 3    ? "start"
            : at > 97 ? "end"
                      : "middle",
            tick_text(&c->x, value, !c->x_unit).s);
}

void page_chart_grid(page *p, const page_chart *c) {
    const double x_end = c->x.high * (1 + 1e-9), y_end = c->y.high * (1 + 1e-9);
    int steps = 0;
    for (double y = first_tick(&c->y); y <= y_end && steps++ < 2 * DECADES; y = next_tick(&c->y, y))
        y_tick(p, c, y, next_tick(&c->y, y) > y_end);
    steps = 0;
    for (double x = first_tick(&c->x); x <= x_end && steps++ < 2 * DECADES; x = next_tick(&c->x, x)) x_tick(p, c, x);
    const page_word base = page_place(bottom);
    fprintf(p->out, "<line class=\"axis\" x1=\"0\" x2=\"100%%\" y1=\"%s\" y2=\"%s\"/>", base.s, base.s);
    fprintf(p->out, "<text class=\"halo\" x=\"100%%\" y=\"%s\" dy=\"-5\" text-anchor=\"end\">%s</text>\n", base.s,
            c->x_unit ? c->x_unit : "bytes");
}

void page_chart_line(page *p, const page_chart *c, const char *class, double x1, double y1, double x2, double y2) {
    fprintf(p->out, "<line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>", class,
            page_place(page_chart_x(c, x1)).s, page_place(page_chart_y(c, y1)).s, page_place(page_chart_x(c, x2)).s,
            page_place(page_chart_y(c, y2)).s);
}

void page_chart_curve(page *p, const page_chart *c, const char *class, const page_point *points, size_t count) {
    char text[40];
    for (size_t k = 0; k < count; k++) {
        const page_point *a = &points[k];
        snprintf(text, sizeof text, "line %s", class);
        if (k + 1 < count) page_chart_line(p, c, text, a->x, a->y, points[k + 1].x, points[k + 1].y);
        if (isfinite(a->ci) && a->ci > 0 && a->ci < 1)
            page_chart_line(p, c, "whisker", a->x, a->y * (1 - a->ci), a->x, a->y * (1 + a->ci));
        fprintf(p->out, "<circle class=\"mark %s\" cx=\"%s\" cy=\"%s\" r=\"3\"/>", class,
                page_place(page_chart_x(c, a->x)).s, page_place(page_chart_y(c, a->y)).s);
    }
}

/* Twice: what is beneath it may be of any colour. */
void page_spread(page *p, double percent, double ci, double middle, double half_height) {
    static const char *const classes[] = {"behind", "spread"};
    const double half = percent * verdict_width(ci);
    const page_word low = page_place(fmax(percent - half, 0)), high = page_place(fmin(percent + half, 100));
    const page_word y = page_place(middle), top_of = page_place(middle - half_height),
                    end = page_place(middle + half_height);
    if (!(half > 0) || !verdict_known(ci)) return;
    for (int k = 0; k < 2; k++) {
        const char *class = classes[k];
        fprintf(p->out, "<line class=\"%s\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>", class, low.s, high.s, y.s, y.s);
        fprintf(p->out, "<line class=\"%s\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>", class, low.s, low.s, top_of.s,
                end.s);
        fprintf(p->out, "<line class=\"%s\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>", class, high.s, high.s, top_of.s,
                end.s);
    }
}

void page_bar(page *p, const char *name, const char *class, double us, double ci, double longest, const char *note) {
    const double part = longest > 0 ? 100 * us / longest : 0;
    fprintf(p->out,
            "<div><dt>%s</dt><dd class=\"draw\"><svg class=\"bar\" aria-hidden=\"true\"><rect class=\"all\" "
            "width=\"100%%\" height=\"100%%\"/><rect class=\"%s\" width=\"%s\" height=\"100%%\"/>",
            name, class, page_place(part).s);
    page_spread(p, part, ci, 50, 25);
    fprintf(p->out, "</svg></dd><dd class=\"end\">%s%s</dd></div>\n", page_time_in(amount_unit_of(longest), us).s,
            note);
}

void page_chart_alone(page *p, const char *says, const page_point *points, size_t count, bool log_x, const char *x_unit,
                      const char *y_unit) {
    double low = INFINITY, high = -INFINITY, first = INFINITY, last = -INFINITY;
    for (size_t k = 0; k < count; k++) {
        low = fmin(low, points[k].y), high = fmax(high, points[k].y);
        first = fmin(first, points[k].x), last = fmax(last, points[k].x);
    }
    if (!count) return;
    const double room = fmax(high - low, 0.02 * fabs(high)); /* noise alone shall not look like a mountain */
    const double before = fmax(0.06 * (last - first), 1e-9); /* for the scale of y, which stands inside */
    const page_chart c = {.x = log_x ? page_axis_of(first, last, true)
                                     : (page_axis){first - before, last + before / 4, false},
                          .y = page_axis_of(low - 0.2 * room, high + 0.1 * room, false),
                          .x_unit = x_unit,
                          .y_unit = y_unit};
    fputs("<svg class=\"chart\" role=\"img\" aria-label=\"", p->out);
    page_say(p, says);
    fputs("\">", p->out);
    page_chart_grid(p, &c);
    page_chart_curve(p, &c, "", points, count);
    fputs("</svg>\n", p->out);
}
