/* The top of the page: what to do first, what it would give back, and where the time goes. */
#include "analyze/page/page_internal.h"

#include <math.h>
#include <string.h>

enum { ACTIONS = 3 };

/* Something that a person can do: about an operation, or a fusion. Times are of a run. */
typedef struct deed {
    const study_report *report;
    size_t rank; /* of an operation */
    double proven_us, proven_share, potential_us, potential_share;
} deed;

static deed deed_of_row(const summary_row *row) {
    return (deed){row->report,       row->rank,         row->report->verdict.proven_gain_us,
                  row->proven_share, row->potential_us, row->potential_share};
}

/* Of as many as are in the set that saves most without overlap. */
static deed deed_of_fusion(const summary_group *g, const study_report *r) {
    const double part = r->count > 0 ? fmin((double)r->selected / (double)r->count, 1) : 0;
    const double us = r->saved_us * part, model = g->group->model_us;
    return (deed){.report = r, .proven_us = us, .proven_share = model > 0 ? us / model : 0};
}

/* As operations are ranked: by priority, then by what is proven. */
static int level(const deed *d) {
    static const char *const names[] = {"NONE", "LOW", "MEDIUM", "HIGH"};
    for (int k = 3; k > 0; k--)
        if (strcmp(names[k], d->report->verdict.priority) == 0) return k;
    return 0;
}

static bool before(const deed *a, const deed *b) {
    return level(a) != level(b) ? level(a) > level(b) : a->proven_us > b->proven_us;
}

static size_t insert(deed *deeds, size_t count, deed one) {
    size_t at = count;
    while (at > 0 && before(&one, &deeds[at - 1])) at--;
    if (at == ACTIONS) return count;
    if (count < ACTIONS) count++;
    for (size_t k = count - 1; k > at; k--) deeds[k] = deeds[k - 1];
    deeds[at] = one;
    return count;
}

static size_t find_deeds(const summary_group *g, deed deeds[ACTIONS]) {
    size_t count = 0;
    for (size_t k = 0; k < g->row_count; k++)
        if (summary_to_do(g->rows[k].outcome)) count = insert(deeds, count, deed_of_row(&g->rows[k]));
    for (size_t k = 0; k < g->fusions.count; k++) {
        const deed one = deed_of_fusion(g, g->fusions.rows[k]);
        if (one.proven_us > 0) count = insert(deeds, count, one);
    }
    return count;
}

static void gain(page *p, double us, double share, bool proven) {
    fprintf(p->out, "<p class=\"gain\">%s <small>a run, %s of the model's time%s</small></p>", page_time(us).s,
            page_percent(share).s, proven ? "" : ", at most");
}

static void action(page *p, const deed *d) {
    const study_report *r = d->report;
    const bool proven = d->proven_us > 0;
    const char *sort = proven ? "proven" : "potential";
    fprintf(p->out, "<li class=\"action is-%s\"><span class=\"chip %s\">%s</span> <span class=\"chip %s\">%s</span>",
            sort, sort,
            proven ? r->baseline_own ? "proven over the project's own kernel" : "proven: it was measured"
                   : "potential: not done yet",
            r->verdict.priority, r->verdict.priority);
    if (r->verdict.borderline) fputs(" <span class=\"chip\">borderline</span>", p->out);
    if (r->fusion)
        fprintf(p->out, "<h3><a href=\"#fusions%zu\">fusion ", p->number);
    else
        fprintf(p->out, "<h3><a href=\"#o%zu-%zu\">", p->number, d->rank);
    if (r->fusion)
        page_say_cut(p, r->fusion_pattern, PAGE_NAME);
    else
        page_say(p, page_title(p, r));
    fputs("</a> <span class=\"soft\">", p->out);
    page_shape(p, r);
    fputs("</span></h3>", p->out);
    if (r->layer_count > 0) {
        char layers[STUDY_LAYERS];
        fputs("<p class=\"small soft\">", p->out);
        page_say(p, study_layers(r, layers));
        fputs("</p>", p->out);
    }
    gain(p, proven ? d->proven_us : d->potential_us, proven ? d->proven_share : d->potential_share, proven);
    if (proven && d->potential_us > 0)
        fprintf(p->out, "<p class=\"small soft\">Up to %s more is potential.</p>", page_time(d->potential_us).s);
    fputs("<p>", p->out);
    page_advice(p, r);
    fputs("</p></li>\n", p->out);
}

static void fusions_line(page *p) {
    const summary_fusions *f = &p->g->fusions;
    if (!f->worth) return;
    fprintf(p->out, "<p><a href=\"#fusions%zu\">%zu %s</a> proven to be worth it: %s a run (%s).</p>\n", p->number,
            f->worth, f->worth == 1 ? "fusion is" : "fusions are", page_time(f->saved_us).s,
            page_percent(f->saved_share).s);
}

/* In the page's sign for microseconds. */
static void whole(page *p) {
    char said[STUDY_WHOLE_TEXT];
    study_whole_say(&p->g->group->whole, said, sizeof said);
    fputs("<h3>One run of the model</h3>\n<p class=\"whole\">", p->out);
    for (char *at = said, *us; at; at = us ? us + 3 : NULL) {
        us = strstr(at, " us");
        if (us) *us = 0;
        page_say(p, at);
        if (us) fputs(" µs", p->out);
    }
    fputs("</p>\n", p->out);
}

static void totals(page *p) {
    const summary_sum *t = &p->g->all;
    char now[96], proven[96], ceiling[96];
    const double all = t->measured_us;
    if (t->measured == 0) return;
    snprintf(now, sizeof now, " <span class=\"soft\">%s</span>",
             amount_within_of(verdict_sum_ci(&t->now), verdict_sum_unknown(&t->now)).s);
    snprintf(proven, sizeof proven, " <span class=\"soft\">%s less</span>", page_percent(t->proven_us / all).s);
    snprintf(ceiling, sizeof ceiling, " <span class=\"soft\">%s less</span>",
             page_percent(1 - t->measured_ceiling_us / all).s);
    if (p->g->group->whole.known) whole(p);
    fprintf(p->out, "<h3>One run of the model, %s operations added up</h3>\n<dl class=\"bars\">",
            p->g->group->partial.text ? "the measured" : "all");
    const double now_ci = verdict_sum_ci(&t->now), won_ci = verdict_sum_ci(&t->won), longest = all * (1 + now_ci);
    page_bar(p, "by the default", "now", all, now_ci, longest, now);
    page_bar(p, "with what is proven", "proven", all - t->proven_us, won_ci, longest, proven);
    page_bar(p, "at the ceilings", "ceiling", t->measured_ceiling_us, verdict_sum_ci(&t->least), longest, ceiling);
    fprintf(p->out,
            "</dl>\n<p class=\"small soft\">The default is the library's own choice. A proven gain was measured and "
            "checked on this device, %s. The ceilings are the most that the device can do, measured as well. The "
            "whisker at a bar is where its end lies with 95 %% certainty.",
            study_whole_refutes(&p->g->group->whole)
                ? "operation by operation; the model as a whole does not confirm it"
                : "and is certain");
    if (t->own_us > 0)
        fprintf(p->out,
                " Over the project's own kernels, where no library has one, %s (%s) are gained besides; they are in no "
                "bar.",
                page_time(t->own_us).s, page_percent(t->own_us / all).s);
    fputs("</p>\n", p->out);
}

static void next(page *p) {
    const summary_group *g = p->g;
    if (g->next_count == 0) return;
    fputs("<h3>What to type next</h3>\n<ul class=\"next\">\n", p->out);
    for (size_t k = 0; k < g->next_count; k++) {
        fputs("<li><code>", p->out);
        page_say(p, g->next[k].command);
        fprintf(p->out, "</code> <span class=\"soft\">%s</span></li>\n", g->next[k].why);
    }
    fputs("</ul>\n", p->out);
}

void page_first(page *p) {
    deed deeds[ACTIONS];
    const size_t count = find_deeds(p->g, deeds);
    page_section(p, "first", "What to do first");
    if (count) fputs("<ol class=\"actions\">\n", p->out);
    for (size_t k = 0; k < count; k++) action(p, &deeds[k]);
    fputs(count                       ? "</ol>\n"
          : p->g->group->partial.text ? "<p>Not known yet: too little was measured.</p>\n"
                                      : "<p>Nothing: no measured alternative is faster, and no operation is far enough "
                                        "from its ceiling.</p>\n",
          p->out);
    fusions_line(p);
    totals(p);
    next(p);
    fputs("</section>\n", p->out);
}

static void outcome_row(page *p, summary_outcome k, amount_unit unit) {
    const summary_sum *s = &p->g->outcomes[k];
    if (!s->operations) return;
    fprintf(p->out,
            "<tr><th scope=\"row\">%s</th><td class=\"n\">%zu</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
            "<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
            summary_outcomes[k].title, s->operations, s->measured > 0 ? page_time_in(unit, s->measured_us).s : "",
            s->measured > 0 ? page_percent(s->measured_share).s : "",
            s->proven_us + s->own_us > 0 ? page_time_in(unit, s->proven_us + s->own_us).s : "",
            s->potential_us > 0 ? page_time_in(unit, s->potential_us).s : "");
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
        s->measured, page_kind(c->op), page_place(whole * s->measured_us).s);
    fprintf(p->out, "<rect class=\"veil\" x=\"%s\" width=\"%s\" height=\"100%%\"/>",
            page_place(whole * s->measured_ceiling_us).s,
            page_place(whole * fmax(0, s->measured_us - s->measured_ceiling_us)).s);
    page_spread(p, whole * s->measured_us, verdict_sum_ci(&s->now), 50, 25);
    fprintf(p->out, "</svg></dd><dd class=\"end\">%s <span class=\"soft\">%s</span></dd></div>\n",
            page_time_in(amount_unit_of(longest), s->measured_us).s, page_percent(s->measured_share).s);
}

void page_categories(page *p) {
    static const char *const heads[] = {"operations", "#how many", "#time of a run", "#share", "#proven", "#potential"};
    const summary_group *g = p->g;
    double longest = 0;
    for (size_t k = 0; k < g->category_count; k++) {
        const summary_sum *s = &g->categories[k].sum;
        longest = fmax(longest, s->measured_us * (1 + verdict_sum_ci(&s->now)));
    }
    page_section(p, "time", "Where the time goes");
    fputs("<p class=\"soft\">By kind of operation, each as often as a run of the model needs it. The pale end of a bar "
          "is what lies above the ceilings, and the whisker at it is where its end lies with 95 % certainty.</p>\n<dl "
          "class=\"bars\">\n",
          p->out);
    for (size_t k = 0; k < g->category_count; k++)
        if (g->categories[k].sum.measured > 0) category(p, &g->categories[k], longest);
    fputs("</dl>\n<h3>What came out of it</h3>\n", p->out);
    if (g->group->partial.text) fprintf(p->out, "<p class=\"soft\">Shares are of %s.</p>\n", summary_whole(g));
    page_table_open(p, "", "Time by outcome", NULL, heads, sizeof heads / sizeof heads[0]);
    double most = 0;
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) most = fmax(most, g->outcomes[k].measured_us);
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) outcome_row(p, (summary_outcome)k, amount_unit_of(most));
    page_table_close(p);
    fputs("</section>\n", p->out);
}
