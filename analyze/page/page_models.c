/* Several models, devices or regimes on one page: all of them beside each other before each is told. Their times are
 * not added up, and no bar is longer for a longer time: it is what could be had of each that is held side by side. */
#include "analyze/page/page_internal.h"

#include <math.h>

static void head(page *p) {
    const summary *m = p->m;
    fprintf(p->out, "<header>\n<h1 id=\"group0\">%zu %s beside each other</h1>\n<nav aria-label=\"Contents\"><ul>",
            m->group_count, m->study->options.each ? "models" : "groups");
    for (size_t k = 0; k < m->group_count; k++) {
        fprintf(p->out, "<li><a href=\"#group%zu\">", k + 1);
        page_say_cut(p, m->groups[k].group->model, PAGE_NAME);
        fputs("</a></li>", p->out);
    }
    fputs("</ul></nav>\n</header>\n<main id=\"main\">\n", p->out);
}

/* The whole bar is the time by the defaults. Its end is what is proven to be saved, what lies before that is only
 * potential, and the dashed line is at the ceilings. */
static void bar(page *p, const summary_sum *s) {
    const double all = s->measured_us, won = 100 * (1 - s->proven_us / all),
                 open = fmax(won - 100 * s->potential_us / all, 0), least = 100 * s->measured_ceiling_us / all;
    fprintf(
        p->out,
        "<td class=\"draw\"><svg class=\"bar\" aria-hidden=\"true\"><rect class=\"now\" width=\"%s\" height=\"100%%\"/>"
        "<rect class=\"lost\" x=\"%s\" width=\"%s\" height=\"100%%\"/><rect class=\"proven\" x=\"%s\" width=\"%s\" "
        "height=\"100%%\"/>",
        page_place(open).s, page_place(open).s, page_place(won - open).s, page_place(won).s, page_place(100 - won).s);
    page_spread(p, won, verdict_sum_ci(&s->won), 50, 25);
    fprintf(p->out, "<line class=\"target\" x1=\"%s\" x2=\"%s\" y1=\"0\" y2=\"100%%\"/></svg></td>",
            page_place(least).s, page_place(least).s);
}

static void number(page *p, double value, const char *text) {
    fprintf(p->out, "<td class=\"n\">%s</td>", value > 0 ? text : "");
}

static void row(page *p, size_t k, amount_unit unit) {
    const summary_group *g = &p->m->groups[k];
    const summary_sum *s = &g->all;
    fprintf(p->out, "<tr><th scope=\"row\" class=\"wide\"><a href=\"#group%zu\">", k + 1);
    page_say_cut(p, g->group->model, PAGE_NAME);
    fputs("</a><br><span class=\"soft\">", p->out);
    page_say_cut(p, g->group->device, PAGE_NAME);
    fputs(", ", p->out);
    page_regime(p, g->group->regime);
    fputs("</span>", p->out);
    if (g->group->partial.text) fputs("<br><span class=\"chip bad\">PARTIAL</span>", p->out);
    fprintf(p->out, "</th><td class=\"n\">%zu</td>", s->measured);
    if (!(s->measured_us > 0)) {
        fputs("<td colspan=\"6\">nothing has a figure</td></tr>\n", p->out);
        return;
    }
    /* Models differ by orders of magnitude: four digits of each. */
    fprintf(p->out, "<td class=\"n\">%s %s<br><span class=\"soft\">%s</span></td>",
            page_figure(s->measured_us / unit.us).s, unit.us > 1 ? unit.name : "µs",
            amount_within_of(verdict_sum_ci(&s->now), verdict_sum_unknown(&s->now)).s);
    bar(p, s);
    number(p, s->proven_us, page_percent(s->proven_us / s->measured_us).s);
    number(p, s->potential_us, page_percent(s->potential_us / s->measured_us).s);
    number(p, 1, page_percent(s->measured_ceiling_us / s->measured_us).s);
    fputs("<td class=\"wide\">", p->out);
    if (g->row_count > 0 && summary_to_do(g->rows[0].outcome)) {
        fprintf(p->out, "<a href=\"#o%zu-1\">", k + 1);
        page_say(p, page_title(p, g->rows[0].report));
        fputs("</a> ", p->out);
        page_shape(p, g->rows[0].report);
    } else
        fputs(g->group->partial.text ? "not known yet" : "nothing", p->out);
    fputs("</td></tr>\n", p->out);
}

void page_models(page *p) {
    static const char *const heads[] = {"model",   "#operations", "#time of a run", "of it",
                                        "#proven", "#potential",  "#ceilings",      "what to do first"};
    const summary *m = p->m;
    double longest = 0;
    for (size_t k = 0; k < m->group_count; k++) longest = fmax(longest, m->groups[k].all.measured_us);
    head(p);
    page_section(p, "models", "Beside each other");
    page_table_open(
        p, "models", "Models beside each other",
        "A whole bar is the time by the library's defaults. Green: proven to be saved, with the interval of "
        "what is left. Pale: only potential. Dashed: at the ceilings. Shares are of the measured time.",
        heads, sizeof heads / sizeof heads[0]);
    for (size_t k = 0; k < m->group_count; k++) {
        const arena_mark mark = arena_save(&p->arena);
        row(p, k, amount_unit_of(longest));
        arena_rewind(&p->arena, mark);
    }
    page_table_close(p);
    fputs("</section>\n", p->out);
}
