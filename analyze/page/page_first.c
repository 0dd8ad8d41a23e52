/* The top of the page: what to do first, what it would give back, and where the time goes. */
#include "analyze/page/page_internal.h"

#include <math.h>

enum { ACTIONS = 3 };

static void gain(page *p, double us, double share, bool proven) {
    fprintf(p->out, "<p class=\"gain\">%s <small>a run, %s of the model's time%s</small></p>", page_time(us).s,
            page_percent(share).s, proven ? "" : ", at most");
}

static void action(page *p, const summary_row *row) {
    const study_report *r = row->report;
    const bool proven = row->outcome == SUMMARY_PROVEN;
    const char *sort = proven ? "proven" : "potential";
    fprintf(p->out, "<li class=\"action is-%s\"><span class=\"chip %s\">%s</span> <span class=\"chip %s\">%s</span>",
            sort, sort, proven ? "proven: it was measured" : "potential: nobody has done it yet", r->verdict.priority,
            r->verdict.priority);
    if (r->verdict.borderline) fputs(" <span class=\"chip\">borderline</span>", p->out);
    fprintf(p->out, "<h3><a href=\"#o%zu-%zu\">", p->number, row->rank);
    page_say(p, page_title(p, r));
    fputs("</a> <span class=\"soft\">", p->out);
    page_shape(p, r);
    fputs("</span></h3>", p->out);
    gain(p, proven ? r->verdict.proven_gain_us : row->potential_us, proven ? row->proven_share : row->potential_share,
         proven);
    if (proven && row->potential_us > 0)
        fprintf(p->out, "<p class=\"small soft\">Up to %s more is potential.</p>", page_time(row->potential_us).s);
    fputs("<p>", p->out);
    page_say(p, r->verdict.recommendation);
    fputs("</p></li>\n", p->out);
}

static void fusions_line(page *p) {
    const summary_fusions *f = &p->g->fusions;
    if (!f->worth) return;
    fprintf(p->out, "<p>Beside these, %zu <a href=\"#fusions%zu\">%s</a> to be worth it: %s a run (%s).</p>\n",
            f->worth, p->number, f->worth == 1 ? "fusion is proven" : "fusions are proven", page_time(f->saved_us).s,
            page_percent(f->saved_share).s);
}

/* One line of bars: its whole length is `all`, painted up to `us`. */
static void bar(page *p, const char *name, const char *class, double us, double all, const char *note) {
    const double part = all > 0 ? 100 * us / all : 0;
    fprintf(p->out,
            "<div><dt>%s</dt><dd class=\"draw\"><svg class=\"bar\" aria-hidden=\"true\"><rect class=\"all\" "
            "width=\"100%%\" "
            "height=\"100%%\"/>",
            name);
    fprintf(p->out, "<rect class=\"%s\" width=\"%s\" height=\"100%%\"/></svg></dd><dd class=\"end\">%s%s</dd></div>\n",
            class, page_place(part).s, page_time(us).s, note);
}

static void totals(page *p) {
    const summary_sum *t = &p->g->all;
    char best[96], ceiling[96];
    const double all = t->baseline_us;
    snprintf(best, sizeof best, " <span class=\"soft\">%s less</span>",
             page_percent(all > 0 ? 1 - t->best_us / all : 0).s);
    snprintf(ceiling, sizeof ceiling, " <span class=\"soft\">%s less</span>",
             page_percent(all > 0 ? 1 - t->ceiling_us / all : 0).s);
    fputs("<h3>One run of the model, all operations added up</h3>\n<dl class=\"bars\">", p->out);
    bar(p, "by the default", "now", t->baseline_us, all, "");
    bar(p, "with the best measured", "proven", t->best_us, all, best);
    bar(p, "at the ceilings", "ceiling", t->ceiling_us, all, ceiling);
    fputs("</dl>\n<p class=\"small soft\">The default is what the library does unasked. The best was measured and "
          "checked on this "
          "device. The ceilings are what the device could do at most, measured as well.",
          p->out);
    if (p->g->missing_us > 0)
        fprintf(
            p->out,
            " %s of the default's time are of operations without a measurement, counted as what they take at least.",
            page_time(p->g->missing_us).s);
    fputs("</p>\n", p->out);
}

void page_first(page *p) {
    size_t told = 0;
    fprintf(p->out, "<section aria-labelledby=\"first%zu\"><h2 id=\"first%zu\">What to do first</h2>\n", p->number,
            p->number);
    for (size_t k = 0; k < p->g->row_count && told < ACTIONS; k++) {
        const summary_outcome o = p->g->rows[k].outcome;
        if (o != SUMMARY_PROVEN && o != SUMMARY_OPEN) continue;
        if (!told++) fputs("<ol class=\"actions\">\n", p->out);
        action(p, &p->g->rows[k]);
    }
    fputs(told
              ? "</ol>\n"
              : "<p>Nothing: no measured alternative is faster, and no operation is far enough from its ceiling.</p>\n",
          p->out);
    fusions_line(p);
    totals(p);
    fputs("</section>\n", p->out);
}

static void outcome_row(page *p, summary_outcome k) {
    const summary_sum *s = &p->g->outcomes[k];
    if (!s->operations) return;
    fprintf(p->out,
            "<tr><th scope=\"row\">%s</th><td class=\"n\">%zu</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
            "<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
            summary_outcomes[k].title, s->operations, s->baseline_us > 0 ? page_time(s->baseline_us).s : "",
            s->baseline_us > 0 ? page_percent(s->share).s : "", s->proven_us > 0 ? page_time(s->proven_us).s : "",
            s->potential_us > 0 ? page_time(s->potential_us).s : "");
}

static void category(page *p, const summary_category *c, double longest) {
    const summary_sum *s = &c->sum;
    const double whole = longest > 0 ? 100 / longest : 0;
    fputs("<div><dt><span class=\"kind\">", p->out);
    page_key(p, page_kind(c->op));
    page_say_cut(p, c->op, PAGE_NAME);
    fprintf(
        p->out,
        "</span> <span class=\"soft small\">%zu</span></dt><dd class=\"draw\"><svg class=\"bar\" aria-hidden=\"true\">"
        "<rect class=\"k-%s\" width=\"%s\" height=\"100%%\"/>",
        s->operations, page_kind(c->op), page_place(whole * s->baseline_us).s);
    fprintf(p->out, "<rect class=\"veil\" x=\"%s\" width=\"%s\" height=\"100%%\"/></svg></dd>",
            page_place(whole * s->ceiling_us).s, page_place(whole * fmax(0, s->baseline_us - s->ceiling_us)).s);
    fprintf(p->out, "<dd class=\"end\">%s <span class=\"soft\">%s</span></dd></div>\n", page_time(s->baseline_us).s,
            page_percent(s->share).s);
}

void page_categories(page *p) {
    static const char *const heads[] = {"operations", "#how many", "#time of a run", "#share", "#proven", "#potential"};
    const summary_group *g = p->g;
    double longest = 0;
    for (size_t k = 0; k < g->category_count; k++) longest = fmax(longest, g->categories[k].sum.baseline_us);
    fprintf(p->out,
            "<section aria-labelledby=\"time%zu\"><h2 id=\"time%zu\">Where the time goes</h2>\n"
            "<p class=\"soft\">By kind of operation, each as often as a run of the model needs it. The pale end of a "
            "bar is what "
            "lies above the ceilings.</p>\n<dl class=\"bars\">\n",
            p->number, p->number);
    for (size_t k = 0; k < g->category_count; k++)
        if (g->categories[k].sum.baseline_us > 0) category(p, &g->categories[k], longest);
    fputs("</dl>\n<h3>What came out of it</h3>\n", p->out);
    page_table_open(p, "", "Time by outcome", NULL, heads, sizeof heads / sizeof heads[0]);
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) outcome_row(p, (summary_outcome)k);
    page_table_close(p);
    fputs("</section>\n", p->out);
}
