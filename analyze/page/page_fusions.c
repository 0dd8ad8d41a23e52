/* What could run as one: apart and at once, measured side by side, and whether it is worth it. */
#include "analyze/page/page_internal.h"

#include <math.h>
#include <string.h>

static const char *const worths[] = {"yes", "borderline", "no"};
enum { WORTHS = 3 };

static bool worth_is(const study_report *r, const char *worth) { return r->worth && strcmp(r->worth, worth) == 0; }

/* Two bars on one scale: the parts one after another, and all at once. */
static void pair(page *p, const study_report *r) {
    const double longest = fmax(r->parts_us, r->fused_us * (1 + (verdict_known(r->speedup_ci) ? r->speedup_ci : 0)));
    if (!(longest > 0)) {
        fputs("<td></td>", p->out);
        return;
    }
    fprintf(p->out,
            "<td class=\"draw\"><svg class=\"iv\" aria-hidden=\"true\"><rect class=\"apart\" y=\"8%%\" height=\"36%%\" "
            "width=\"%s\"/>",
            page_place(100 * r->parts_us / longest).s);
    if (r->fused_us > 0)
        fprintf(p->out, "<rect class=\"sure\" y=\"56%%\" height=\"36%%\" width=\"%s\"/>",
                page_place(100 * r->fused_us / longest).s);
    page_spread(p, 100 * fmax(r->fused_us, 0) / longest, r->speedup_ci, 74, 14);
    fputs("</svg></td>", p->out);
}

static void row(page *p, const study_report *r, amount_unit unit) {
    fputs("<tr><th scope=\"row\">", p->out);
    page_say_cut(p, r->fusion_pattern, PAGE_NAME);
    fputs("<br><span class=\"soft\">", p->out);
    page_shape(p, r);
    fprintf(p->out, "</span></th><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>",
            page_whole((double)r->count).s, page_time_in(unit, r->parts_us).s, page_time_in(unit, r->fused_us).s);
    pair(p, r);
    fprintf(p->out, "<td class=\"n\">%s × <span class=\"soft\">%s</span></td><td class=\"n\">%lld to %lld</td><td>",
            page_figure(r->speedup).s, amount_within(r->speedup_ci).s, (long long)r->kernels_parts,
            (long long)r->kernels_fused);
    if (worth_is(r, "yes"))
        fprintf(p->out, "<span class=\"chip proven\">yes</span> saves %s a run", page_time(r->saved_us).s);
    else
        page_say_cut(p, r->worth, 16);
    fputs("</td></tr>\n", p->out);
}

static void compared(page *p) {
    static const char *const heads[] = {"fusion",       "#count",    "#apart",   "#at once",
                                        "side by side", "#speed-up", "#kernels", "worth it"};
    const study_group *g = p->g->group;
    double longest = 0;
    for (size_t k = 0; k < g->fusion_count; k++)
        longest = fmax(longest, fmax(g->fusions[k].parts_us, g->fusions[k].fused_us));
    const amount_unit unit = amount_unit_of(longest);
    page_table_open(p, "", "Fusions compared",
                    "Pale: the parts one after another. Strong: fused, with the interval of the speed-up.", heads,
                    sizeof heads / sizeof heads[0]);
    for (size_t w = 0; w < WORTHS; w++)
        for (size_t k = 0; k < g->fusion_count; k++)
            if (worth_is(&g->fusions[k], worths[w])) row(p, &g->fusions[k], unit);
    page_table_close(p);
}

static void not_compared(page *p, size_t count) {
    const study_group *g = p->g->group;
    if (!count) return;
    fprintf(p->out, "<details open class=\"more\"><summary>%zu could not be compared</summary><ul class=\"small\">\n",
            count);
    for (size_t k = 0; k < g->fusion_count; k++) {
        const study_report *r = &g->fusions[k];
        if (r->worth) continue;
        const arena_mark mark = arena_save(&p->arena);
        status st = {0};
        json_t *detail = study_detail(r, &st);
        const json_t *why = json_object_get(json_object_get(detail, "fusion"), "why");
        fputs("<li>", p->out);
        page_say_cut(p, r->fusion_pattern, PAGE_NAME);
        fputs(" <span class=\"soft\">", p->out);
        page_shape(p, r);
        fputs("</span>: ", p->out);
        page_say_cut(p, *page_string(why, "text") ? page_string(why, "text") : r->reason_text, PAGE_SENTENCE);
        fputs("</li>\n", p->out);
        json_decref(detail);
        arena_rewind(&p->arena, mark);
    }
    fputs("</ul></details>\n", p->out);
}

void page_fusions(page *p) {
    const study_group *g = p->g->group;
    size_t known = 0;
    if (!g->fusion_count) return;
    for (size_t k = 0; k < g->fusion_count; k++)
        for (size_t w = 0; w < WORTHS; w++) known += worth_is(&g->fusions[k], worths[w]);
    page_section(p, "fusions", "Fusions");
    fprintf(p->out, "<p>%zu of %zu are proven to be worth it", p->g->fusions.worth, g->fusion_count);
    if (p->g->fusions.worth)
        fprintf(p->out, "; those that do not overlap save %s a run (%s)", page_time(p->g->fusions.saved_us).s,
                page_percent(p->g->fusions.saved_share).s);
    fputs(". These are in no other sum of this page.</p>\n", p->out);
    if (known) compared(p);
    not_compared(p, g->fusion_count - known);
    fputs("</section>\n", p->out);
}
