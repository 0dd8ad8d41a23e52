/* The roofline: what each operation reaches (TFLOP/s) over how much it computes on every byte that it has to move,
 * under what the device was measured to be able to do. */
#include "analyze/page/page_internal.h"

#include <math.h>
#include <string.h>

enum { PEAKS = 12, LABELS = 7, SLOPE = 40, KEPT_CLEAR = 60 };
/* The picture that labels are placed for, in pixels, and the narrowest that has any (paper); a phone's has none. */
static const double width = 1150, height = 440, narrow = 640;

typedef struct spot {
    const summary_row *row;
    double x, y, best; /* FLOP per byte; TFLOP/s of the default, and of the best */
} spot;

static bool spot_of(const summary_row *row, spot *s) {
    const study_report *r = row->report;
    const double bytes = r->bytes_read + r->bytes_written;
    *s = (spot){row, r->flops / bytes, r->flops / r->baseline_us / 1e6, r->flops / r->best_us / 1e6};
    return row->outcome != SUMMARY_OUTSIDE && r->flops > 0 && bytes > 0 && r->baseline_us > 0 && s->y > 1e-12 &&
           s->y < 1e9 && s->x > 1e-9 && s->x < 1e9;
}

static double radius(const spot *s) { return fmin(28, 3.5 + 30 * sqrt(fmax(0, s->row->share))); }

static page_chart chart_of(const spot *spots, size_t count, const page_peak *peaks, size_t peak_count,
                           double read_tbps) {
    double x0 = INFINITY, x1 = 0, y0 = INFINITY, y1 = 0;
    for (size_t k = 0; k < count; k++) {
        x0 = fmin(x0, spots[k].x), x1 = fmax(x1, spots[k].x);
        y0 = fmin(y0, spots[k].y), y1 = fmax(y1, spots[k].y);
    }
    for (size_t k = 0; k < peak_count; k++) {
        y1 = fmax(y1, peaks[k].tflops);
        if (read_tbps > 0) x1 = fmax(x1, 3 * peaks[k].tflops / read_tbps);
    }
    y0 = fmax(y0, y1 * 1e-6);
    return (page_chart){page_axis_of(x0 / 1.6, x1 * 2, true), page_axis_of(y0 / 1.8, y1 * 1.7, true), "FLOP/byte",
                        "TFLOP/s"};
}

/* The words of a roof stand where nothing else can: left of its ridge, above the slope. Roofs that are as good as one
 * share theirs. */
static void roof_words(page *p, const page_chart *c, const page_peak *peaks, size_t count, size_t k, double ridge) {
    const double y = page_chart_y(c, peaks[k].tflops), x = page_chart_x(c, ridge);
    for (size_t j = 0; j < k; j++)
        if (fabs(page_chart_y(c, peaks[j].tflops) - y) < 4) return;
    const bool before = x > 45;
    fprintf(p->out, "<text class=\"strong halo\" x=\"%s\" y=\"%s\" dy=\"-6\" text-anchor=\"%s\">", page_place(x).s,
            page_place(y).s, before ? "end" : "start");
    for (size_t j = k; j < count; j++) {
        if (fabs(page_chart_y(c, peaks[j].tflops) - y) >= 4) continue;
        if (j > k) fputs(", ", p->out);
        page_say_cut(p, peaks[j].precision, 12);
        fprintf(p->out, " %s", page_figure(peaks[j].tflops).s);
    }
    fputs(" TFLOP/s</text>\n", p->out);
}

static void roofs(page *p, const page_chart *c, const page_peak *peaks, size_t count, double read_tbps) {
    double highest = 0;
    for (size_t k = 0; k < count; k++) {
        const double ridge = read_tbps > 0 ? fmin(fmax(c->x.low, peaks[k].tflops / read_tbps), c->x.high) : c->x.low;
        highest = fmax(highest, peaks[k].tflops);
        page_chart_line(p, c, "roof", ridge, peaks[k].tflops, c->x.high, peaks[k].tflops);
        roof_words(p, c, peaks, count, k, ridge);
    }
    if (!(read_tbps > 0) || !count) return;
    const double from = fmax(c->x.low, c->y.low / read_tbps), to = fmin(c->x.high, highest / read_tbps);
    if (!(to > from)) return;
    page_chart_line(p, c, "roof", from, from * read_tbps, to, to * read_tbps);
    const double at = from * pow(to / from, 0.55);
    fprintf(p->out,
            "<text class=\"strong halo\" x=\"%s\" y=\"%s\" dx=\"-8\" dy=\"-4\" text-anchor=\"end\">reading %s "
            "TB/s</text>\n",
            page_place(page_chart_x(c, at)).s, page_place(page_chart_y(c, at * read_tbps)).s, page_figure(read_tbps).s);
}

static void dot(page *p, const page_chart *c, const spot *s, bool alone) {
    const study_report *r = s->row->report;
    const page_word x = page_place(page_chart_x(c, s->x));
    if (alone) {
        fprintf(p->out, "<a href=\"#o%zu-%zu\"><title>", p->number, s->row->rank);
        page_say(p, page_title(p, r));
        fputc(' ', p->out);
        page_shape(p, r);
        fprintf(p->out, "\n%s, %s of the model's time\n%s TFLOP/s at %s FLOP/byte\n%s of its ceiling, %s %s</title>",
                page_time(r->baseline_us).s, page_percent(s->row->share).s, page_figure(s->y).s, page_figure(s->x).s,
                page_percent(r->verdict.efficiency).s, r->verdict.priority, r->verdict.approach);
        if (s->best > s->y * 1.005)
            fprintf(p->out,
                    "<line class=\"won\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/><circle class=\"won k-%s\" cx=\"%s\" "
                    "cy=\"%s\" r=\"2.5\"/>",
                    x.s, x.s, page_place(page_chart_y(c, s->y)).s, page_place(page_chart_y(c, s->best)).s,
                    page_kind(r->op), x.s, page_place(page_chart_y(c, s->best)).s);
    }
    fprintf(p->out, "<circle class=\"dot k-%s\" cx=\"%s\" cy=\"%s\" r=\"%.1f\"/>%s\n", page_kind(r->op), x.s,
            page_place(page_chart_y(c, s->y)).s, radius(s), alone ? "</a>" : "");
}

/* ---- names beside the largest dots, where they cover no other */
typedef struct box {
    double x0, y0, x1, y1;
} box;

static bool apart(const box *a, const box *b) {
    return a->x1 < b->x0 || b->x1 < a->x0 || a->y1 < b->y0 || b->y1 < a->y0;
}

static bool place(const box *wanted, const box *taken, size_t count) {
    if (wanted->x0 < 0 || wanted->x1 > width || wanted->y0 < 0) return false;
    for (size_t k = 0; k < count; k++)
        if (!apart(wanted, &taken[k])) return false;
    return true;
}

static void label(page *p, const page_chart *c, const spot *s, box *taken, size_t *count) {
    const study_report *r = s->row->report;
    char text[64];
    char shape[48];
    snprintf(text, sizeof text, "%.20s %.30s", r->op, study_shape(r, shape, sizeof shape));
    const double x = page_chart_x(c, s->x) * width / 100, y = page_chart_y(c, s->y) * height / 100;
    const double long_px = 6.6 * (double)strlen(text), away = radius(s) + 5;
    const struct {
        double x, y;
        const char *anchor;
    } tries[] = {{x + away, y + 4, "start"},
                 {x - away - long_px, y + 4, "end"},
                 {x - long_px / 2, y + away + 10, "middle"},
                 {x - long_px / 2, y - away - 2, "middle"}};
    for (size_t k = 0; k < sizeof tries / sizeof tries[0]; k++) {
        const box wanted = {tries[k].x, tries[k].y - 11, tries[k].x + long_px, tries[k].y + 3};
        const double left = x * narrow / width + tries[k].x - x; /* there */
        if (left < 0 || left + long_px > narrow || !place(&wanted, taken, *count)) continue;
        taken[(*count)++] = wanted;
        fprintf(p->out,
                "<text class=\"label halo\" aria-hidden=\"true\" x=\"%s\" y=\"%s\" dx=\"%.0f\" dy=\"%.0f\" "
                "text-anchor=\"%s\">",
                page_place(page_chart_x(c, s->x)).s, page_place(page_chart_y(c, s->y)).s,
                k == 0   ? away
                : k == 1 ? -away
                         : 0,
                tries[k].y - y, tries[k].anchor);
        page_say(p, text);
        fputs("</text>\n", p->out);
        return;
    }
}

/* The slope, in pieces. */
static size_t slope_boxes(const page_chart *c, double read_tbps, box *taken) {
    size_t n = 0;
    for (int k = 0; k < SLOPE; k++) {
        const double at = c->x.low * pow(c->x.high / c->x.low, (k + 0.5) / SLOPE);
        const double x = page_chart_x(c, at) * width / 100, y = page_chart_y(c, at * read_tbps) * height / 100;
        if (read_tbps > 0 && y > 0 && y < height) taken[n++] = (box){x - 12, y - 7, x + 12, y + 7};
    }
    return n;
}

static void labels(page *p, const page_chart *c, const spot *spots, size_t count, const page_peak *peaks,
                   size_t peak_count, double read_tbps) {
    box taken[KEPT_CLEAR + LABELS + PEAKS + SLOPE];
    size_t n = slope_boxes(c, read_tbps, taken);
    for (size_t k = 0; k < peak_count && k < PEAKS; k++) { /* a roof's own words */
        const double y = page_chart_y(c, peaks[k].tflops) * height / 100;
        taken[n++] = (box){0, y - 20, width, y + 2};
    }
    const size_t most = count < LABELS ? count : LABELS, clear = count < KEPT_CLEAR ? count : KEPT_CLEAR;
    for (size_t k = 0; k < clear; k++) { /* the largest dots, and their lines up to the best */
        const double x = page_chart_x(c, spots[k].x) * width / 100, y = page_chart_y(c, spots[k].y) * height / 100;
        const double r = radius(&spots[k]), best = page_chart_y(c, spots[k].best) * height / 100;
        taken[n++] = (box){x - r, fmin(y - r, best), x + r, y + r};
    }
    for (size_t k = 0; k < most; k++) label(p, c, &spots[k], taken, &n);
}

static void legend(page *p, const spot *spots, size_t count) {
    const char **kinds = arena_array(&p->arena, const char *, count);
    for (size_t k = 0; k < count; k++) kinds[k] = page_kind(spots[k].row->report->op);
    page_legend(p, kinds, count);
}

static int by_share(const void *a, const void *b) {
    const spot *x = a, *y = b;
    if (x->row->weight_us != y->row->weight_us) return x->row->weight_us < y->row->weight_us ? 1 : -1;
    return (x->row->rank > y->row->rank) - (x->row->rank < y->row->rank);
}

static void caption(page *p, size_t drawn, size_t left_out) {
    fputs("<figcaption>Each dot is an operation by its default; its area is its share of the model's time. A thin line "
          "leads up to the best measured candidate. The heavy lines are the measured ceilings: on the slope memory "
          "bandwidth limits, at the top arithmetic does. An operation with its bytes in the cache may lie above the "
          "slope. ",
          p->out);
    if (left_out)
        fprintf(p->out, "%zu operation%s left out: %s no floating-point work, or no measured default. ", left_out,
                left_out == 1 ? " is" : "s are", left_out == 1 ? "it has" : "they have");
    if (drawn > PAGE_DOTS)
        fprintf(p->out, "Of %zu dots the %d that take most time are named; all are in the table below.", drawn,
                PAGE_DOTS);
    fputs("</figcaption></figure></section>\n", p->out);
}

void page_roofline(page *p) {
    const summary_group *g = p->g;
    page_peak peaks[PEAKS];
    const size_t peak_count = page_peaks(p, peaks, PEAKS);
    const double read_tbps = page_real(json_object_get(p->device, "ceilings"), "read_tbps");
    const arena_mark mark = arena_save(&p->arena);
    spot *spots = arena_array(&p->arena, spot, g->row_count ? g->row_count : 1);
    size_t count = 0, counted = 0;
    for (size_t k = 0; k < g->row_count; k++) {
        if (g->rows[k].outcome == SUMMARY_OUTSIDE) continue;
        counted++;
        if (spot_of(&g->rows[k], &spots[count])) count++;
    }
    qsort(spots, count, sizeof *spots, by_share);
    page_section(p, "roof", "Roofline");
    if (!count) {
        fputs("<p>There is nothing to draw: no measured operation has floating-point work.</p></section>\n", p->out);
        arena_rewind(&p->arena, mark);
        return;
    }
    const page_chart c = chart_of(spots, count, peaks, peak_count, read_tbps);
    fputs("<figure>", p->out);
    legend(p, spots, count);
    fprintf(
        p->out,
        "<svg class=\"roofline dots\" role=\"group\" aria-label=\"Roofline: %zu operations by arithmetic intensity and "
        "TFLOP/s, under the measured ceilings. Arrow keys go from one to the next.\">\n",
        count);
    page_chart_grid(p, &c);
    roofs(p, &c, peaks, peak_count, read_tbps);
    /* Small ones over large ones, so that all can be reached; but the tab key begins with the largest. */
    for (size_t k = 0; k < count; k++) dot(p, &c, &spots[k], k < PAGE_DOTS);
    labels(p, &c, spots, count, peaks, peak_count, read_tbps);
    fputs("</svg>\n", p->out);
    caption(p, count, counted - count);
    arena_rewind(&p->arena, mark);
}
