/* All operations, those first that are worth doing something about. One row an operation and one cell a column of the
 * table here; page.js sorts by data-v, filters by data-f. */
#include "analyze/page/page_internal.h"

#include <math.h>

typedef struct column {
    const char *head, *means;
    bool number;
    void (*cell)(page *p, const summary_row *row);
} column;

/* A number with what it is sorted by; what is not known sorts below all that is. */
static void number(page *p, double value, const char *text, const char *class) {
    fprintf(p->out, "<td class=\"n%s\" data-v=\"%.6g\">%s</td>", class, isfinite(value) ? value : -1, text);
}

static void time_cell(page *p, double us) { number(p, us, page_figure(us).s, ""); }

static void rank_cell(page *p, const summary_row *row) {
    fprintf(p->out, "<td class=\"n soft\" data-v=\"%zu\">%zu</td>", row->rank, row->rank);
}
static void name_cell(page *p, const summary_row *row) {
    const study_report *r = row->report;
    fprintf(p->out, "<th scope=\"row\"><a href=\"#o%zu-%zu\">", p->number, row->rank);
    page_say(p, page_title(p, r));
    fputs("</a><span class=\"soft\">", p->out);
    page_shape(p, r);
    fputs("</span>", p->out);
    if (r->layer_count > 0) {
        char layers[STUDY_LAYERS];
        fputs("<span class=\"soft\">", p->out);
        page_say(p, study_layers(r, layers));
        fputs("</span>", p->out);
    }
    fputs("</th>", p->out);
}
static void kind_cell(page *p, const summary_row *row) {
    const study_report *r = row->report;
    fputs("<td>", p->out);
    page_say_cut(p, r->op, 16);
    fputs("<br><span class=\"soft\">", p->out);
    page_say_cut(p, r->precision ? r->precision : r->dtype, 12);
    if (r->sparsity > 0) fprintf(p->out, ", %s zero", page_percent(r->sparsity).s);
    fputs("</span></td>", p->out);
}
static void count_cell(page *p, const summary_row *row) {
    number(p, (double)row->report->count, page_whole((double)row->report->count).s, "");
}
static void default_cell(page *p, const summary_row *row) {
    const study_report *r = row->report;
    if (isfinite(r->baseline_us)) {
        time_cell(p, r->baseline_us);
        return;
    }
    fputs("<td class=\"n\" data-v=\"-1\">", p->out);
    page_say_cut(p, r->status, 16);
    fputs("</td>", p->out);
}
static void best_cell(page *p, const summary_row *row) {
    const study_report *r = row->report;
    const bool same = isfinite(r->best_us) && r->best_us == r->baseline_us;
    number(p, r->best_us, same ? "=" : page_figure(r->best_us).s, same ? " soft" : "");
}
static void ceiling_cell(page *p, const summary_row *row) { time_cell(p, row->report->ceiling_us); }
static void efficiency_cell(page *p, const summary_row *row) {
    const double e = row->report->verdict.efficiency;
    number(p, e > 0 ? e : NAN, page_percent(e > 0 ? e : NAN).s, "");
}
/* A bar beneath the figure: its length is one of the style sheet's classes, as no element has a style of its own. */
static void share_cell(page *p, const summary_row *row) {
    char class[16];
    snprintf(class, sizeof class, " part p%d", (int)(5 * fmin(20, fmax(0, ceil(20 * row->share)))));
    const double share = study_has_baseline(row->report) && row->outcome != SUMMARY_OUTSIDE ? row->share : NAN;
    number(p, share, page_percent(share).s, class);
}
static void proven_cell(page *p, const summary_row *row) {
    const double us = row->report->verdict.proven_gain_us;
    number(p, us, us > 0 ? page_figure(us).s : "", " is-proven");
}
static void potential_cell(page *p, const summary_row *row) {
    const bool open = summary_to_do(row->outcome);
    number(p, row->potential_us, row->potential_us > 0 ? page_figure(row->potential_us).s : "",
           open ? " is-potential" : " soft");
}
static void priority_cell(page *p, const summary_row *row) {
    if (row->outcome == SUMMARY_OUTSIDE || row->outcome == SUMMARY_MISSING) {
        fputs("<td data-v=\"-1\"></td>", p->out);
        return;
    }
    const char *priority = row->report->verdict.priority;
    const int value = priority[0] == 'H' ? 3 : priority[0] == 'M' ? 2 : priority[0] == 'L';
    fprintf(p->out, "<td data-v=\"%d\"><span class=\"chip %s\">%s</span></td>", value, priority, priority);
}
static void approach_cell(page *p, const summary_row *row) {
    const verdict *v = &row->report->verdict;
    if (row->outcome == SUMMARY_OUTSIDE)
        fputs("<td class=\"soft\">no time of its own</td>", p->out);
    else
        fprintf(p->out, "<td>%s%s</td>", v->approach, v->borderline ? " <abbr title=\"borderline\">?</abbr>" : "");
}

static const column columns[] = {
    {"#", "The order of worth: the largest proven gains first, then the largest potential ones.", true, rank_cell},
    {"operation",
     "Its name, or its kind, its shape, and the first layer of the model that it stands for. The link leads to its "
     "section, which names all of them.",
     false, name_cell},
    {"priority", "HIGH from 5 % of the model's time proven or 10 % potential, MEDIUM from 1 % or 3 % (by default).",
     false, priority_cell},
    {"approach", "What to do. A ? says that the next run may decide otherwise.", false, approach_cell},
    {"proven µs", "The time that the best saves in a run. It was measured, so it can be had today.", true, proven_cell},
    {"potential µs", "The time in a run between the best and the ceiling. Nothing has shown that it can be had.", true,
     potential_cell},
    {"share", "Its share of the model's time, by the defaults.", true, share_cell},
    {"default µs", "The median time of one with the library's default, or the reason why it is not known.", true,
     default_cell},
    {"best µs", "The time of one with the fastest checked candidate; = is the default itself.", true, best_cell},
    {"ceiling µs", "The time of one at the device's measured limits: no kernel can be faster.", true, ceiling_cell},
    {"efficiency", "The ceiling's time over the default's. From 90 % on (by default) nothing can be gained.", true,
     efficiency_cell},
    {"count", "Its number in a run of the model. All gains and shares are of all these together.", true, count_cell},
    {"kind", "Its kind, its precision, and the zeros of its weight where they matter.", false, kind_cell},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void option(page *p, const char *prefix, const char *value, const char *text) {
    fprintf(p->out, "<option value=\"%s%s\">%s</option>", prefix, value, text);
}

static void tools(page *p) {
    static const char *const priorities[] = {"HIGH", "MEDIUM", "LOW", "NONE"};
    const summary_group *g = p->g;
    fprintf(p->out,
            "<form class=\"tools\" data-table=\"ops%zu\" hidden><label>search<input type=\"search\" "
            "placeholder=\"name, layer, shape\" autocomplete=\"off\"></label>"
            "<label>kind<select><option value=\"\">all</option>",
            p->number);
    const char *seen[16] = {0};
    size_t n = 0;
    for (size_t k = 0; k < g->category_count && n < 16; k++) {
        const char *kind = page_kind(g->categories[k].op);
        size_t at = 0;
        while (at < n && seen[at] != kind) at++;
        if (at < n) continue;
        seen[n++] = kind;
        option(p, "k-", kind, kind);
    }
    fputs("</select></label><label>outcome<select><option value=\"\">all</option>", p->out);
    for (int k = 0; k < SUMMARY_OUTCOMES; k++)
        if (g->outcomes[k].operations) option(p, "o-", summary_outcomes[k].name, summary_outcomes[k].title);
    fputs("</select></label><label>priority<select><option value=\"\">all</option>", p->out);
    for (size_t k = 0; k < sizeof priorities / sizeof priorities[0]; k++) option(p, "p-", priorities[k], priorities[k]);
    fputs("</select></label><button type=\"reset\">clear</button><button type=\"button\" hidden>show "
          "all</button><output aria-live=\"polite\"></output></form>\n",
          p->out);
}

static void explain(page *p) {
    fputs("<details><summary>What the columns mean</summary><dl class=\"columns\">", p->out);
    for (size_t k = 0; k < COLUMNS; k++) fprintf(p->out, "<dt>%s</dt><dd>%s</dd>\n", columns[k].head, columns[k].means);
    fputs("</dl></details>\n", p->out);
}

void page_table(page *p) {
    const summary_group *g = p->g;
    page_section(p, "all", "All operations");
    explain(p);
    tools(p);
    fprintf(p->out,
            "<div class=\"scroll long\" tabindex=\"0\" role=\"group\" aria-label=\"All operations\"><table "
            "class=\"ranked\" "
            "id=\"ops%zu\"><caption class=\"hidden\">All operations, "
            "ranked</caption><thead><tr>",
            p->number);
    for (size_t k = 0; k < COLUMNS; k++)
        fprintf(p->out, "<th scope=\"col\" title=\"%s\"%s>%s</th>", columns[k].means,
                columns[k].number ? " class=\"n\"" : "", columns[k].head);
    fputs("</tr></thead><tbody>\n", p->out);
    for (size_t k = 0; k < g->row_count; k++) {
        const summary_row *row = &g->rows[k];
        const arena_mark mark = arena_save(&p->arena);
        fprintf(p->out, "<tr data-f=\"k-%s o-%s p-%s\">", page_kind(row->report->op),
                summary_outcomes[row->outcome].name, row->report->verdict.priority);
        for (size_t c = 0; c < COLUMNS; c++) columns[c].cell(p, row);
        fputs("</tr>\n", p->out);
        arena_rewind(&p->arena, mark);
    }
    fputs("</tbody></table></div></section>\n", p->out);
}
