/* What it was measured on and how: the device, its libraries, its ceilings with the shapes that reached them, the
 * regime. */
#include "analyze/page/page_internal.h"

#include <math.h>
#include <string.h>

static size_t peaks_of_reports(const page *p, page_peak *peaks, size_t room) {
    size_t count = 0;
    for (size_t k = 0; k < p->g->row_count; k++) {
        const study_report *r = p->g->rows[k].report;
        size_t at = 0;
        if (!(r->peak_tflops > 0) || !isfinite(r->peak_tflops) || !r->precision) continue;
        while (at < count && strcmp(peaks[at].precision, r->precision) != 0) at++;
        if (at == count && count < room)
            peaks[count++] = (page_peak){r->precision, "", r->peak_tflops, NAN, NAN, NAN, NULL};
        if (at < count) peaks[at].tflops = fmax(peaks[at].tflops, r->peak_tflops);
    }
    return count;
}

size_t page_peaks(const page *p, page_peak *peaks, size_t room) {
    const json_t *all = json_object_get(json_object_get(p->device, "ceilings"), "peaks"), *one;
    size_t count = 0, k;
    json_array_foreach(all, k, one) {
        const double tflops = page_real(one, "tflops");
        if (count < room && tflops > 0 && tflops < 1e9)
            peaks[count++] = (page_peak){page_string(one, "precision"),
                                         page_string(one, "how"),
                                         tflops,
                                         page_real(one, "rel_ci95"),
                                         page_real(one, "datasheet_tflops"),
                                         page_real(one, "clock_mhz"),
                                         json_object_get(one, "shape")};
    }
    return count ? count : peaks_of_reports(p, peaks, room);
}

static void shape_of(page *p, const json_t *shape) {
    size_t k;
    const json_t *one;
    if (!(json_integer_value(json_array_get(shape, 0)) > 0)) return;
    json_array_foreach(shape, k, one) if (k < STUDY_RANK)
        fprintf(p->out, k ? " × %lld" : "%lld", (long long)json_integer_value(one));
}

static void peak_rows(page *p) {
    static const char *const heads[] = {"precision", "#TFLOP/s", "within", "reached by", "#MHz", "#datasheet"};
    page_peak peaks[16];
    const size_t count = page_peaks(p, peaks, sizeof peaks / sizeof peaks[0]);
    if (!count) return;
    page_table_open(p, "", "Peaks", "The measured peak of each precision", heads, sizeof heads / sizeof heads[0]);
    for (size_t k = 0; k < count; k++) {
        fputs("<tr><th scope=\"row\">", p->out);
        page_say_cut(p, peaks[k].precision, 16);
        fprintf(p->out, "</th><td class=\"n\">%s</td><td>%s</td><td>", page_figure(peaks[k].tflops).s,
                amount_within(peaks[k].ci).s);
        page_say_cut(p, peaks[k].how, 40);
        fputc(' ', p->out);
        shape_of(p, peaks[k].shape);
        fprintf(p->out, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n", page_whole(peaks[k].clock_mhz).s,
                page_figure(peaks[k].datasheet).s);
    }
    page_table_close(p);
}

static size_t bandwidths(const json_t *table, double read_fraction, bool resident, page_point *points) {
    size_t count = 0, k;
    const json_t *one;
    json_array_foreach(table, k, one) {
        const double bytes = page_real(one, "bytes"), tbps = page_real(one, "tbps");
        if (count < PAGE_POINTS && bytes > 0 && tbps > 0 && page_real(one, "read_fraction") == read_fraction &&
            json_is_true(json_object_get(one, "resident")) == resident)
            points[count++] = (page_point){bytes, tbps, NAN};
    }
    return count;
}

static void bandwidth_chart(page *p, const json_t *table) {
    page_point cold[PAGE_POINTS], warm[PAGE_POINTS];
    const size_t colds = bandwidths(table, 1, false, cold), warms = bandwidths(table, 1, true, warm);
    double highest = 0, first = INFINITY, last = 0;
    for (size_t k = 0; k < colds; k++)
        highest = fmax(highest, cold[k].y), first = fmin(first, cold[k].x), last = fmax(last, cold[k].x);
    for (size_t k = 0; k < warms; k++) highest = fmax(highest, warm[k].y);
    if (colds < 2 || !(highest < 1e6)) return;
    const page_chart c = {page_axis_of(first, last, true), page_axis_of(0, highest, false), NULL, "TB/s"};
    fputs("<figure><h3>Read bandwidth by size</h3><svg class=\"chart\" role=\"img\" aria-label=\"Read bandwidth over "
          "the size of the data, cold and from the cache\">",
          p->out);
    page_chart_grid(p, &c);
    page_chart_curve(p, &c, "", cold, colds);
    page_chart_curve(p, &c, "b", warm, warms);
    fputs("</svg><figcaption>Solid: cold. Dashed: the same bytes again, from the cache while they "
          "fit.</figcaption></figure>\n",
          p->out);
}

static void sweep_chart(page *p, const json_t *sweep) {
    const json_t *points = json_object_get(sweep, "points"), *one;
    page_point curve[PAGE_POINTS];
    size_t count = 0, k;
    json_array_foreach(points, k, one) {
        const double depth = json_number_value(json_array_get(json_object_get(one, "shape"), 2)),
                     tflops = page_real(one, "tflops");
        if (count < PAGE_POINTS && depth > 0 && tflops > 0)
            curve[count++] = (page_point){depth, tflops, page_real(one, "rel_ci95")};
    }
    if (count < 2) return;
    fputs("<figure><h3>Peak by depth K</h3>", p->out);
    page_chart_alone(p, "TFLOP/s of the largest products over their depth K", curve, count, false, "K", "TFLOP/s");
    fputs("</figure>\n", p->out);
}

static void pair(page *p, const char *term, double x, const char *unit) {
    if (!(x > 0)) return;
    fprintf(p->out, "<div><dt>%s</dt><dd>%s%s</dd></div>\n", term, page_figure(x).s, unit);
}

static void text_pair(page *p, const char *term, const char *text) {
    if (!text || !*text) return;
    fprintf(p->out, "<div><dt>%s</dt><dd>", term);
    page_say_cut(p, text, 200);
    fputs("</dd></div>\n", p->out);
}

static void ceilings(page *p) {
    const json_t *c = json_object_get(p->device, "ceilings");
    fputs("<h3>Measured ceilings</h3>\n", p->out);
    peak_rows(p);
    if (!json_is_object(c)) {
        fputs("<p class=\"soft\">Bandwidths and floors are in run.json, which is not beside these reports.</p>\n",
              p->out);
        return;
    }
    fputs("<dl class=\"facts\">\n", p->out);
    pair(p, "reading", page_real(c, "read_tbps"), " TB/s");
    pair(p, "copying", page_real(c, "copy_tbps"), " TB/s");
    pair(p, "writing", page_real(c, "write_tbps"), " TB/s");
    pair(p, "datasheet", page_real(c, "datasheet_tbps"), " TB/s");
    pair(p, "an empty launch", page_real(c, "launch_us"), " µs");
    pair(p, "special functions (exp)", page_real(c, "special_per_s") / 1e12, " × 10¹² a second");
    text_pair(p, "taken", page_string(c, "taken"));
    fputs("</dl>\n<div class=\"charts\">", p->out);
    bandwidth_chart(p, json_object_get(c, "bandwidths"));
    sweep_chart(p, json_object_get(c, "sweep"));
    fputs("</div>\n", p->out);
}

static void libraries(page *p) {
    const json_t *all = json_object_get(p->device, "libraries"), *one;
    size_t k;
    if (!json_array_size(all)) return;
    fputs("<div><dt>libraries</dt><dd>", p->out);
    json_array_foreach(all, k, one) {
        if (k >= 40) break;
        if (k) fputs(", ", p->out);
        page_say_cut(p, page_string(one, "name"), 40);
        fputc(' ', p->out);
        page_say_cut(p, page_string(one, "version"), 40);
    }
    fputs("</dd></div>\n", p->out);
}

/* "name=…;capability=…;…", with room for lines to break at. */
static void class_pair(page *p, const char *class) {
    fputs("<div><dt>device class</dt><dd>", p->out);
    for (const char *at = class; at && *at;) {
        const size_t n = strcspn(at, ";");
        page_say_cut(p, arena_strndup(&p->arena, at, n), 100);
        at += n + (at[n] == ';');
        if (*at) fputs("; ", p->out);
    }
    fputs("</dd></div>\n", p->out);
}

/* By what the verdicts of this page were made; a run may ask for others. */
static void thresholds(page *p) {
    const verdict_thresholds *t = &p->m->study->options.thresholds;
    fprintf(p->out,
            "<p class=\"soft\">Verdicts: nothing can be gained from an efficiency of %s on. HIGH is %s of the model's "
            "time proven or %s potential, MEDIUM %s or %s. A winner saves more than %s. A ceiling with an interval "
            "wider than %s decides nothing.</p>\n",
            page_percent(t->ceiling).s, page_percent(t->high_proven).s, page_percent(t->high_potential).s,
            page_percent(t->medium_proven).s, page_percent(t->medium_potential).s, page_percent(t->margin).s,
            page_percent(t->ceiling_ci).s);
}

void page_device(page *p) {
    const study_group *g = p->g->group;
    const double seconds = page_real(p->run, "seconds");
    page_section(p, "device", "Method and device");
    fputs("<dl class=\"facts\">\n", p->out);
    text_pair(p, "device", g->device);
    text_pair(p, "regime", g->regime);
    text_pair(p, "driver", g->driver);
    libraries(p);
    text_pair(p, "measured by", page_string(p->run, "program"));
    fprintf(p->out, "<div><dt>version of the method</dt><dd>%lld</dd></div>\n", (long long)g->method);
    text_pair(p, "started", page_string(p->run, "started"));
    if (seconds > 0) fprintf(p->out, "<div><dt>took</dt><dd>%s</dd></div>\n", page_time(1e6 * seconds).s);
    text_pair(p, "state", page_string(p->run, "state"));
    class_pair(p, g->device_class);
    fputs("</dl>\n<p class=\"soft\">All times are medians under one regime: the load of the device (sustained or "
          "burst), the state of its cache, and the way of launching. A candidate is checked against a reference before "
          "and after it is timed. It replaces the default only where it wins by more than a fiftieth and more than its "
          "interval, in neighbouring blocks. Ceilings are measured on this device, not quoted.</p>\n",
          p->out);
    thresholds(p);
    ceilings(p);
    fputs("</section>\n", p->out);
}
