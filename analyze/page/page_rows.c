/* The candidates of one operation: those with a time side by side, the fastest first, their intervals on one scale, and
 * all the others with the reason why they have none. */
#include "analyze/page/page_internal.h"

#include "common/plain.h"
#include "common/rows_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct scale {
    double low, high;
    amount_unit unit; /* of all times in a column */
} scale;

static bool is_ok(const json_t *row) { return strcmp(page_string(row, "status"), "OK") == 0; }
static const json_t *time_of(const json_t *row) { return json_object_get(row, "time_us"); }

static double place_of(const scale *s, double us) { return 100 * (us - s->low) / (s->high - s->low); }

typedef struct timed {
    const json_t *row;
    double us;
    size_t at;
} timed;

static int by_time(const void *a, const void *b) {
    const timed *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Those with a time, the fastest first. */
static size_t sort_rows(page *p, const json_t *rows, timed **to) {
    size_t count = 0, k;
    const json_t *row;
    *to = arena_array(&p->arena, timed, json_array_size(rows) + 1);
    json_array_foreach(rows, k, row) {
        const double us = page_real(time_of(row), "median");
        if (k < PAGE_ROWS && is_ok(row) && us > 0) (*to)[count++] = (timed){row, us, k};
    }
    qsort(*to, count, sizeof **to, by_time);
    return count;
}

/* From the ceiling to the slowest that is drawn, and some room. */
static bool scale_of(const study_report *r, const timed *rows, size_t count, scale *s) {
    *s = (scale){.low = r->ceiling_us > 0 ? r->ceiling_us : INFINITY};
    for (size_t k = 0; k < count && k < PAGE_DRAWN; k++) {
        s->low = fmin(s->low, fmin(rows[k].us, page_real(time_of(rows[k].row), "p05")));
        s->high = fmax(s->high, fmax(rows[k].us, page_real(time_of(rows[k].row), "p95")));
    }
    if (!(s->high > 0) || !isfinite(s->high)) return false;
    s->high = fmax(s->high, r->ceiling_us > 0 ? r->ceiling_us : 0);
    const double room = fmax(0.06 * (s->high - s->low), 1e-6 * s->high);
    s->low -= room, s->high += room;
    s->unit = amount_unit_of(s->high);
    return true;
}

/* The middle nine tenths as a line, the interval of the median as a block, the ceiling across. */
static void picture(page *p, const study_report *r, const json_t *time, const scale *s) {
    const double median = page_real(time, "median"), ci = page_real(time, "rel_ci95");
    const double half = verdict_width(ci) * median, from = place_of(s, median - half), to = place_of(s, median + half);
    fprintf(p->out, "<td class=\"draw\"><svg class=\"iv\" role=\"img\" aria-label=\"%s to %s\">",
            page_time_in(s->unit, median - half).s, page_time_in(s->unit, median + half).s);
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

/* Why this one, or why not; most are only slower. */
static void decision(page *p, const study_report *r, const json_t *row) {
    const bool best = is_named(row, r->best, r->best_variant),
               baseline = is_named(row, r->baseline, r->baseline_variant);
    const double pack = page_real(row, "pack_us"), factor = page_real(json_object_get(row, "addresses"), "worst") /
                                                            page_real(json_object_get(row, "addresses"), "best");
    fputs("<td class=\"wide\">", p->out);
    if (best && baseline) {
        fputs("<strong>the default, and no candidate is proven to be faster</strong>", p->out);
    } else if (best) {
        const bool proven = r->count <= 0 || r->verdict.proven_gain_us > 0;
        fputs(proven ? "<strong>chosen</strong>" : "<strong>the fastest</strong>, but not by enough to be proven",
              p->out);
    } else if (baseline) {
        fputs("the default", p->out);
    }
    if (pack > 0) fprintf(p->out, "; repacks the weight once, %s", page_time(pack).s);
    if (factor > 1) fprintf(p->out, "; depends on memory addresses, by %s", page_percent(factor - 1).s);
    const char *throttle = page_string(row, "throttle");
    if (*throttle) {
        fputs("; clock held back by ", p->out);
        page_say_cut(p, throttle, 40);
    }
    fputs("</td>", p->out);
}

typedef struct pair {
    double x, ci;
} pair;

/* Its time over the default's: from neighbouring blocks, or of a report that does not tell that the two times'. */
static pair ratio_of(const study_report *r, const timed *t) {
    const double own = page_real(t->row, "ratio");
    if (is_named(t->row, r->baseline, r->baseline_variant)) return (pair){1, 0};
    if (own > 0) return (pair){own, page_real(t->row, "ratio_ci")};
    if (is_named(t->row, r->best, r->best_variant) && r->ratio > 0) return (pair){r->ratio, r->ratio_ci};
    return (pair){t->us / r->baseline_us, NAN};
}

/* "0.924" and, after `between`, "± 0.3 %". */
static void ratio(page *p, const study_report *r, const timed *t, const char *between, const char *end) {
    const pair is = ratio_of(r, t);
    if (is.x == 1 && is.ci == 0)
        fputs("1", p->out);
    else if (is.x > 0 && isfinite(is.x) && verdict_has_interval(is.ci))
        fprintf(p->out, "%.3f%s%s%s", is.x, between, amount_within(is.ci).s, end);
    else if (is.x > 0 && isfinite(is.x))
        fprintf(p->out, "%.3f", is.x);
}

static page_word within(const json_t *row) {
    const double ci = page_real(time_of(row), "rel_ci95");
    page_word w;
    snprintf(w.s, sizeof w.s, "%s", verdict_has_interval(ci) ? amount_within(ci).s : "one pass");
    return w;
}

static void name(page *p, const json_t *row) {
    fputs("<th scope=\"row\" class=\"wide\">", p->out);
    page_say_cut(p, page_string(row, "name"), PAGE_NAME);
    fputs("<div class=\"soft\">", p->out);
    page_variant(p, page_string(row, "variant"), 2 * PAGE_NAME, true);
    fputs("</div></th>", p->out);
}

static void figure(page *p, double x) {
    fprintf(p->out, "<td class=\"n\">%s</td>", isfinite(x) ? page_figure(x).s : "");
}

static void full_row(page *p, const study_report *r, const timed *t, const scale *s) {
    const json_t *row = t->row;
    const double tflops = page_real(row, "tflops");
    fputs("<tr>", p->out);
    name(p, row);
    fprintf(p->out, "<td class=\"n\">%s<br><span class=\"soft\">%s</span></td>", page_time_in(s->unit, t->us).s,
            within(row).s);
    picture(p, r, time_of(row), s);
    fputs("<td class=\"n\">", p->out);
    ratio(p, r, t, "<br><span class=\"soft\">", "</span>");
    fputs("</td>", p->out);
    figure(p, tflops > 0 ? tflops : NAN);
    figure(p, page_real(row, "tbps"));
    fputs("<td>", p->out);
    page_say_cut(p, page_string(row, "quality"), 16);
    fputs("</td>", p->out);
    decision(p, r, row);
    figure(p, page_real(row, "clock_mhz"));
    figure(p, page_real(row, "power_w"));
    fputs("</tr>\n", p->out);
}

/* A line that is short: there may be dozens of them for each operation. */
static void short_row(page *p, const study_report *r, const timed *t, amount_unit unit) {
    const double tflops = page_real(t->row, "tflops"), tbps = page_real(t->row, "tbps");
    fputs("<tr><th scope=\"row\">", p->out);
    page_say_cut(p, page_string(t->row, "name"), PAGE_NAME);
    fputs(" ", p->out);
    page_variant(p, page_string(t->row, "variant"), 2 * PAGE_NAME, false);
    fprintf(p->out, "</th><td>%s %s</td><td>", page_time_in(unit, t->us).s, within(t->row).s);
    ratio(p, r, t, " ", "");
    fprintf(p->out, "</td><td>%s</td><td>%s</td><td>", tflops > 0 ? page_figure(tflops).s : "",
            isfinite(tbps) ? page_figure(tbps).s : "");
    page_say_cut(p, page_string(t->row, "quality"), 16);
    fputs("</td></tr>\n", p->out);
}

static void slower_ones(page *p, const study_report *r, const timed *rows, size_t count) {
    static const char *const heads[] = {"slower ones", "#median", "#of the default", "#TFLOP/s", "#TB/s", "#quality"};
    if (count <= PAGE_DRAWN) return;
    const amount_unit unit = amount_unit_of(rows[(count < PAGE_TIMED ? count : PAGE_TIMED) - 1].us);
    page_table_open(p, "rest", "Slower candidates", NULL, heads, sizeof heads / sizeof heads[0]);
    for (size_t k = PAGE_DRAWN; k < count && k < PAGE_TIMED; k++) short_row(p, r, &rows[k], unit);
    page_table_close(p);
    if (count > PAGE_TIMED)
        fprintf(p->out, "<p class=\"small soft\">%zu more are in its report.</p>\n", count - PAGE_TIMED);
}

static void with_a_time(page *p, const study_report *r, const json_t *rows) {
    static const char *const heads[] = {"candidate", "#median", "on one scale", "#of the default",
                                        "#TFLOP/s",  "#TB/s",   "quality",      "what it is",
                                        "#MHz",      "#W"};
    scale s;
    timed *sorted;
    const size_t count = sort_rows(p, rows, &sorted);
    if (!scale_of(r, sorted, count, &s)) return;
    char caption[256];
    snprintf(caption, sizeof caption,
             "Block: where the median lies with 95 %% certainty. Thin line: nine tenths of all launches. Dashed: the "
             "ceiling. From %s to %s.",
             page_time(s.low).s, page_time(s.high).s);
    fputs("<h4>All variants, fastest first</h4>\n", p->out);
    page_table_open(p, "", "Candidates with a time", caption, heads, sizeof heads / sizeof heads[0]);
    for (size_t k = 0; k < count && k < PAGE_DRAWN; k++) full_row(p, r, &sorted[k], &s);
    page_table_close(p);
    slower_ones(p, r, sorted, count);
}

/* ---- the others: one line for all variants of a candidate that have the same reason */
static const char *code_of(const json_t *row) { return page_string(json_object_get(row, "reason"), "code"); }
static const char *text_of(const json_t *row) { return page_string(json_object_get(row, "reason"), "text"); }

static bool alike(const json_t *a, const json_t *b) {
    return strcmp(page_string(a, "name"), page_string(b, "name")) == 0 && strcmp(code_of(a), code_of(b)) == 0 &&
           strcmp(rows_table_status(page_string(a, "status")), rows_table_status(page_string(b, "status"))) == 0;
}

static void variant_line(page *p, const json_t *row, bool first) {
    if (!first) fputc('\n', p->out);
    if (*page_string(row, "variant")) {
        page_variant(p, page_string(row, "variant"), 2 * PAGE_NAME, false);
        fputs(": ", p->out);
    }
    page_say_cut(p, text_of(row), 200);
}

static void other(page *p, const json_t *rows, size_t from, size_t count, bool *told) {
    const json_t *first = json_array_get(rows, from);
    const char *state = rows_table_status(page_string(first, "status"));
    static const char *const bad[] = {"WRONG", "CRASHED", "TIMEOUT", "ERROR"};
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
            fputs("<h4>Without a time, and why</h4>\n", p->out);
            page_table_open(p, "why", "Candidates without a time", NULL, heads, sizeof heads / sizeof heads[0]);
        }
        any = true;
        other(p, rows, k, count, told);
    }
    if (any) page_table_close(p);
    if (json_array_size(rows) > PAGE_ROWS)
        fprintf(p->out, "<p class=\"small soft\">%zu more candidates are in its report.</p>\n",
                json_array_size(rows) - PAGE_ROWS);
}

void page_rows(page *p, const study_report *r, const json_t *detail) {
    const json_t *rows = json_object_get(detail, "candidates");
    if (!json_array_size(rows)) return;
    with_a_time(p, r, rows);
    others(p, rows);
}
