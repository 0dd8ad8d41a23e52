/* What the page does not know, and why: a total is only as good as what is in it. */
#include "analyze/page/page_internal.h"

#include "common/files.h"

static void missing_rows(page *p) {
    static const char *const heads[] = {"#how many", "status", "why", "for example"};
    const summary_group *g = p->g;
    if (!g->missing_count) return;
    fputs("<h3>Operations without a time of their own</h3>\n", p->out);
    page_table_open(p, "", "Operations without a time", NULL, heads, sizeof heads / sizeof heads[0]);
    for (size_t k = 0; k < g->missing_count; k++) {
        const summary_missing *m = &g->missing[k];
        fprintf(p->out, "<tr><td class=\"n\">%zu</td><td><span class=\"chip\">", m->operations);
        page_say_cut(p, m->status, 16);
        fputs("</span> ", p->out);
        page_say_cut(p, m->code, 24);
        fputs("</td><td class=\"wide\">", p->out);
        page_say_cut(p, m->text, PAGE_SENTENCE);
        fputs("</td><td class=\"wide\"><code>", p->out);
        if (m->first) page_say_cut(p, m->first->operation, PAGE_NAME);
        fputs("</code></td></tr>\n", p->out);
    }
    page_table_close(p);
}

static void skipped_files(page *p) {
    enum { MOST = 100 };
    const study *s = p->m->study;
    if (!s->skipped_count) return;
    fprintf(p->out, "<h3>%zu %s could not be read</h3><ul class=\"small\">\n", s->skipped_count,
            s->skipped_count == 1 ? "file" : "files");
    for (size_t k = 0; k < s->skipped_count && k < MOST; k++) {
        fputs("<li><code>", p->out);
        page_say_cut(p, files_base(s->skipped[k].path), 2 * PAGE_NAME);
        fputs("</code>: ", p->out);
        page_say_cut(p, s->skipped[k].why, PAGE_SENTENCE);
        fputs("</li>\n", p->out);
    }
    fputs("</ul>\n", p->out);
    if (s->skipped_count > MOST) fprintf(p->out, "<p>and %zu more</p>\n", s->skipped_count - MOST);
}

static void remarks(page *p) {
    const summary_group *g = p->g;
    const size_t lost = g->outcomes[SUMMARY_MISSING].operations;
    fputs("<ul>\n", p->out);
    if (lost)
        fprintf(p->out,
                "<li>%zu operation%s no measured default, and no part in any total; for shares of the model's time an "
                "estimate stands in.</li>\n",
                lost, lost == 1 ? " has" : "s have");
    else if (!g->group->partial.text)
        fputs("<li>Every operation that takes time has a measured default.</li>\n", p->out);
    if (g->bad_rows)
        fprintf(p->out,
                "<li>Of %zu operation%s some candidate failed (WRONG, CRASHED, TIMEOUT or ERROR); none of "
                "these was chosen.</li>\n",
                g->bad_rows, g->bad_rows == 1 ? "" : "s");
    if (g->all.borderline)
        fprintf(p->out, "<li>%zu verdict%s borderline (%s of the rows): the next run may decide otherwise.</li>\n",
                g->all.borderline, g->all.borderline == 1 ? " is" : "s are", page_percent(g->borderline_share).s);
    if (g->said_otherwise)
        fprintf(p->out, "<li>%zu report%s another approach, by other thresholds than these.</li>\n", g->said_otherwise,
                g->said_otherwise == 1 ? " says" : "s say");
    if (!p->run)
        fputs("<li>run.json is not beside the reports: bandwidths, libraries and the course of the run are not "
              "known.</li>\n",
              p->out);
    fputs("</ul>\n", p->out);
}

void page_missing(page *p) {
    page_section(p, "missing", "What is missing, and why");
    remarks(p);
    missing_rows(p);
    if (p->number == p->m->group_count) skipped_files(p);
    fputs("</section>\n", p->out);
}
