/* The candidates of one operation: those with a confirmed time side by side, their intervals on one scale, and all the
 * others with the reason why they have none. */
#include "analyze/page/page_internal.h"

#include "analyze/write/amount.h"
#include "common/plain.h"

#include <math.h>
#include <string.h>

typedef struct scale {
    double low, high;
} scale;

static bool is_ok(const json_t *row) { return strcmp(page_string(row, "status"), "OK") == 0; }
static const json_t *time_of(const json_t *row) { return json_object_get(row, "time_us"); }

static double place_of(const scale *s, double us) { return 100 * (us - s->low) / (s->high - s->low); }

/* From the ceiling to the slowest that was confirmed, and some room. */
static bool scale_of(const study_report *r, const json_t *rows, scale *s) {
    size_t k;
    const json_t *row;
    *s = (scale){r->ceiling_us > 0 ? r->ceiling_us : INFINITY, 0};
    json_array_foreach(rows, k, row) {
        if (k >= PAGE_ROWS || !is_ok(row)) continue;
        const double median = page_real(time_of(row), "median");
        s->low = fmin(s->low, fmin(median, page_real(time_of(row), "p05")));
        s->high = fmax(s->high, fmax(median, page_real(time_of(row), "p95")));
    }
    if (!(s->high > 0) || !isfinite(s->high)) return false;
    s->high = fmax(s->high, r->ceiling_us > 0 ? r->ceiling_us : 0);
    const double room = fmax(0.06 * (s->high - s->low), 1e-6 * s->high);
    s->low -= room, s->high += room;
    return true;
}

/* The middle nine tenths as a line, the interval of the median as a block, the ceiling across. */
static void picture(page *p, const study_report *r, const json_t *time, const scale *s) {
    const double median = page_real(time, "median"), ci = page_real(time, "rel_ci95");
    const double half = isfinite(ci) ? fmin(ci, 1) * median : 0, from = place_of(s, median - half),
                 to = place_of(s, median + half);
    fprintf(p->out, "<td class=\"draw\"><svg class=\"iv\" role=\"img\" aria-label=\"%s to %s\">",
            page_time(median - half).s, page_time(median + half).s);
    if (r->ceiling_us > 0) {
        const page_word at = page_place(place_of(s, r->ceiling_us));
        fprintf(p->out, "<line class=\"target\" x1=\"%s\" x2=\"%s\" y1=\"0\" y2=\"100%%\"/>", at.s, at.s);
    }
    const double p05 = page_real(time, "p05"), p95 = page_real(time, "p95");
    if (isfinite(p05) && isfinite(p95))
        fprintf(p->out, "<line class=\"whisker\" x1=\"%s\" x2=\"%s\" y1=\"50%%\" y2=\"50%%\"/>",
                page_place(place_of(s, p05)).s, page_place(place_of(s, p95)).s);
    fprintf(p->out, "<rect class=\"sure\" x=\"%s\" width=\"%s\" y=\"25%%\" height=\"50%%\"/></svg></td>",
            page_place(fmin(from, to - 0.8)).s, page_place(fmax(to - from, 0.8)).s);
}

static bool is_named(const json_t *row, const char *name, const char *variant) {
    return name && strcmp(page_string(row, "name"), name) == 0 &&
           strcmp(page_string(row, "variant"), variant ? variant : "") == 0;
}

/* Why this one, or why not. */
static void decision(page *p, const study_report *r, const json_t *row) {
    const bool best = is_named(row, r->best, r->best_variant),
               baseline = is_named(row, r->baseline, r->baseline_variant);
    const double median = page_real(time_of(row), "median");
    fputs("<td class=\"wide\">", p->out);
    if (best && baseline)
        fputs("<strong>the default, and nothing is proven to be faster</strong>", p->out);
    else if (best) {
        const bool proven = r->count <= 0 || r->verdict.proven_gain_us > 0;
        fputs(proven ? "<strong>chosen</strong>" : "<strong>the fastest</strong>, but not by enough to be proven",
              p->out);
        if (r->ratio > 0)
            fprintf(p->out, ": in neighbouring blocks it takes %s less time than the default (%s)",
                    page_percent(1 - r->ratio).s, amount_within(r->ratio_ci).s);
    } else {
        if (baseline) fputs("the default: ", p->out);
        if (r->best_us > 0 && median > r->best_us)
            fprintf(p->out, "%s slower than the one chosen", page_percent(median / r->best_us - 1).s);
        else
            fputs("not certain to be faster than the one chosen", p->out);
    }
    const double pack = page_real(row, "pack_us");
    if (pack > 0) fprintf(p->out, "; repacks the weight once, %s", page_time(pack).s);
    const char *throttle = page_string(row, "throttle");
    if (*throttle) {
        fputs("; clock held back by ", p->out);
        page_say_cut(p, throttle, 40);
    }
    fputs("</td>", p->out);
}

static void name(page *p, const json_t *row) {
    fputs("<th scope=\"row\" class=\"wide\">", p->out);
    page_say_cut(p, page_string(row, "name"), PAGE_NAME);
    fputs("<br><span class=\"soft\">", p->out);
    page_say_wrapped(p, page_string(row, "variant"), 2 * PAGE_NAME);
    fputs("</span></th>", p->out);
}

static void figure(page *p, double x) {
    fprintf(p->out, "<td class=\"n\">%s</td>", isfinite(x) ? page_figure(x).s : "");
}

static void confirmed(page *p, const study_report *r, const json_t *rows) {
    static const char *const heads[] = {"candidate", "#median", "on one scale", "why, or why not",
                                        "#TFLOP/s",  "#TB/s",   "#MHz",         "#W"};
    scale s;
    size_t k;
    const json_t *row;
    if (!scale_of(r, rows, &s)) return;
    char caption[256];
    snprintf(caption, sizeof caption,
             "Block: where the median lies with 95 %% certainty. Thin line: nine tenths of all launches. Dashed: the "
             "ceiling. From %s to %s.",
             page_time(s.low).s, page_time(s.high).s);
    fputs("<h4>Confirmed</h4>\n", p->out);
    page_table_open(p, "", "Confirmed candidates", caption, heads, sizeof heads / sizeof heads[0]);
    json_array_foreach(rows, k, row) {
        if (k >= PAGE_ROWS || !is_ok(row)) continue;
        const json_t *time = time_of(row);
        fputs("<tr>", p->out);
        name(p, row);
        fprintf(p->out, "<td class=\"n\">%s<br><span class=\"soft\">%s</span></td>",
                page_time(page_real(time, "median")).s, amount_within(page_real(time, "rel_ci95")).s);
        picture(p, r, time, &s);
        decision(p, r, row);
        const double tflops = page_real(row, "tflops");
        figure(p, tflops > 0 ? tflops : NAN);
        figure(p, page_real(row, "tbps"));
        figure(p, page_real(row, "clock_mhz"));
        figure(p, page_real(row, "power_w"));
        fputs("</tr>\n", p->out);
    }
    page_table_close(p);
}

/* ---- the others: one line for all variants of a candidate that have the same reason */
static const char *code_of(const json_t *row) { return page_string(json_object_get(row, "reason"), "code"); }
static const char *text_of(const json_t *row) { return page_string(json_object_get(row, "reason"), "text"); }

static bool alike(const json_t *a, const json_t *b) {
    return strcmp(page_string(a, "name"), page_string(b, "name")) == 0 && strcmp(code_of(a), code_of(b)) == 0 &&
           strcmp(page_string(a, "status"), page_string(b, "status")) == 0;
}

static void variant_line(page *p, const json_t *row, bool first) {
    if (!first) fputc('\n', p->out);
    if (*page_string(row, "variant")) {
        page_say_wrapped(p, page_string(row, "variant"), PAGE_NAME);
        fputs(": ", p->out);
    }
    page_say_cut(p, text_of(row), 200);
}

static void other(page *p, const json_t *rows, size_t from, size_t count, bool *told) {
    const json_t *first = json_array_get(rows, from);
    const char *state = page_string(first, "status");
    static const char *const bad[] = {"WRONG", "CRASHED", "TIMEOUT", "ERROR", "UNSTABLE"};
    bool is_bad = false;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) is_bad = is_bad || strcmp(state, bad[k]) == 0;
    fputs("<tr><th scope=\"row\">", p->out);
    page_say_cut(p, page_string(first, "name"), PAGE_NAME);
    fprintf(p->out, "<br><span class=\"chip%s\">", is_bad ? " bad" : "");
    page_say_cut(p, state, 16);
    fputs("</span> <span class=\"soft\">", p->out);
    page_say_cut(p, code_of(first), 24);
    fputs("</span></th><td class=\"lines\">", p->out);
    for (size_t k = from; k < count; k++) {
        const json_t *row = json_array_get(rows, k);
        if (told[k] || !alike(first, row)) continue;
        told[k] = true;
        variant_line(p, row, k == from);
    }
    fputs("</td></tr>\n", p->out);
}

static void others(page *p, const json_t *rows) {
    static const char *const heads[] = {"candidate", "reason"};
    size_t count = json_array_size(rows);
    if (count > PAGE_ROWS) count = PAGE_ROWS;
    bool *told = arena_array(&p->arena, bool, count + 1), any = false;
    for (size_t k = 0; k < count; k++) {
        const json_t *row = json_array_get(rows, k);
        if (told[k] || is_ok(row)) continue;
        if (!any) {
            fputs("<h4>Not chosen, and why</h4>\n", p->out);
            page_table_open(p, "why", "Candidates without a confirmed time", NULL, heads,
                            sizeof heads / sizeof heads[0]);
        }
        any = true;
        other(p, rows, k, count, told);
    }
    if (any) page_table_close(p);
    if (json_array_size(rows) > PAGE_ROWS)
        fprintf(p->out, "<p class=\"small soft\">%zu more candidates stand in its report.</p>\n",
                json_array_size(rows) - PAGE_ROWS);
}

void page_rows(page *p, const study_report *r, const json_t *detail) {
    const json_t *rows = json_object_get(detail, "candidates");
    if (!json_array_size(rows)) return;
    confirmed(p, r, rows);
    others(p, rows);
}
