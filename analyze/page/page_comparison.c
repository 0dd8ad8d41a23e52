/* comparison.html: two runs beside each other, as one page that needs nothing else. The machine comes first, then every
 * operation with the interval of its change around 0, those first that a reader wants to see. What the figures mean is
 * comparison.h's; this shows them. */
#include "analyze/page/page.h"
#include "analyze/page/page_internal.h"

#include "common/plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAYERS_TOLD = 300, /* rows whose layers are all named, the first */
    LISTED = 1000      /* names in a list of what was not compared */
};

typedef struct sheet {
    page p;
    const comparison *c;
    const comparison_shown *shown;
    double most; /* what a scale ends at, either way: a change of the time */
} sheet;

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static void say_state(page *p, drift_state state) {
    fprintf(p->out, "<span class=\"chip %s\">%s</span>", drift_state_name(state), drift_state_name(state));
}

/* ---- intervals around 0 ---- */

typedef struct interval {
    double low, middle, high; /* changes of the time */
} interval;

/* 95 of 100, of a logarithm. */
static interval interval_of(drift_judgement is) {
    return (interval){expm1(is.net - 1.96 * is.sd), expm1(is.net), expm1(is.net + 1.96 * is.sd)};
}

static bool is_known(const interval *i) { return isfinite(i->low) && isfinite(i->high); }

static double reach_of(const interval *i) { return is_known(i) ? fmax(fabs(i->low), fabs(i->high)) : NAN; }

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double round_up(double x) {
    const double power = pow(10, floor(log10(x))), part = x / power;
    return power * (part <= 1.001 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* So that nine of ten of those that changed fit, and that what counts as no change can still be seen. */
static double scale_of(sheet *s, const comparison_list *list) {
    const double margin = s->c->options.drift.margin;
    double *reach = arena_array(&s->p.arena, double, list->row_count + 1);
    size_t n = 0;
    for (int all = 0; all < 2 && n == 0; all++)
        for (size_t k = 0; k < list->row_count; k++) {
            const interval i = interval_of(list->rows[k].best);
            if (is_known(&i) && (all || comparison_is_news(&list->rows[k]))) reach[n++] = reach_of(&i);
        }
    if (n > 0) qsort(reach, n, sizeof *reach, by_size);
    const double most = n > 0 ? fmin(reach[(n - 1) * 9 / 10], fmax(10 * margin, 0.1)) : 0.1;
    return round_up(fmax(most, fmax(2 * margin, 0.005)));
}

static double place_of(const sheet *s, double change) { return 50 + 50 * change / s->most; }

/* The block is the interval, the pale band what counts as no change. What lies beyond an end of the scale has an arrow
 * there. The figures stand beside it, so that nothing has to be read from the picture. */
static void draw(sheet *s, const interval *i, drift_state state) {
    static const double least = 1.5; /* of its width, so that it can be seen */
    FILE *out = s->p.out;
    const double margin = s->c->options.drift.margin, wide = place_of(s, i->high) - place_of(s, i->low),
                 from = place_of(s, i->low) - fmax(least - wide, 0) / 2, to = from + fmax(wide, least),
                 low = fmin(fmax(from, 0), 100 - least), high = fmax(fmin(to, 100), low + least);
    fprintf(out,
            "<td class=\"draw\" data-v=\"%.6g\"><svg class=\"iv\" aria-hidden=\"true\"><rect class=\"band\" x=\"%s\" "
            "width=\"%s\" height=\"100%%\"/><line class=\"zero\" x1=\"50%%\" x2=\"50%%\" y1=\"0\" y2=\"100%%\"/>",
            is_known(i) ? i->middle : -1e30, page_place(fmax(place_of(s, -margin), 0)).s,
            page_place(fmin(100 * margin / s->most, 100)).s);
    if (is_known(i)) {
        fprintf(out, "<rect class=\"is-%s\" x=\"%s\" width=\"%s\" y=\"25%%\" height=\"50%%\"/>",
                drift_state_name(state), page_place(low).s, page_place(high - low).s);
        if (i->low < -s->most)
            fprintf(out, "<text class=\"is-%s\" x=\"0\" dx=\"-2\" y=\"75%%\" text-anchor=\"end\">◂</text>",
                    drift_state_name(state));
        if (i->high > s->most)
            fprintf(out, "<text class=\"is-%s\" x=\"100%%\" dx=\"2\" y=\"75%%\">▸</text>", drift_state_name(state));
    }
    fputs("</svg></td>", out);
}

/* ---- what the two runs are ---- */

static void head(sheet *s) {
    page *p = &s->p;
    static const char *const links[][2] = {{"machine", "What happened"},
                                           {"operations", "Operations"},
                                           {"fusions", "Fusions"},
                                           {"runs", "The two runs"},
                                           {"rest", "What was not compared"}};
    const study_group *const groups[] = {s->c->before, s->c->after};
    fputs("<header>\n<h1>", p->out);
    page_say_cut(p, s->c->folders[1], PAGE_NAME);
    fputs(" beside ", p->out);
    page_say_cut(p, s->c->folders[0], PAGE_NAME);
    fputs("</h1>\n<p class=\"meta\">", p->out);
    page_say_cut(p, groups[1]->device, PAGE_NAME);
    fputs(" · ", p->out);
    page_regime(p, groups[1]->regime);
    fprintf(p->out, " · %zu operation%s in both</p>\n", s->c->operations.row_count, plural(s->c->operations.row_count));
    for (int k = 0; k < 2; k++)
        if (groups[k]->partial.text)
            fprintf(p->out, "<p class=\"partial\" role=\"note\">%s: %s</p>\n", k ? "after" : "before",
                    groups[k]->partial.text);
    fputs("<nav aria-label=\"Contents\"><ul>", p->out);
    for (size_t k = 0; k < sizeof links / sizeof links[0]; k++)
        if (strcmp(links[k][0], "fusions") != 0 || comparison_has_any(&s->c->fusions))
            fprintf(p->out, "<li><a href=\"#%s1\">%s</a></li>", links[k][0], links[k][1]);
    fputs("</ul></nav>\n</header>\n<main id=\"main\">\n", p->out);
}

static void two_cells(page *p, const char *what, const char *before, const char *after) {
    fputs("<tr><th scope=\"row\">", p->out);
    page_say_cut(p, what, PAGE_NAME);
    fputs("</th><td class=\"wide\">", p->out);
    page_say_cut(p, before, PAGE_SENTENCE);
    fputs("</td><td class=\"wide\">", p->out);
    page_say_cut(p, after, PAGE_SENTENCE);
    fputs("</td></tr>\n", p->out);
}

static void runs(sheet *s) {
    static const char *const heads[] = {"what", "before", "after"};
    const comparison *c = s->c;
    page *p = &s->p;
    page_section(p, "runs", "The two runs");
    page_table_open(p, "", "The two runs", NULL, heads, sizeof heads / sizeof heads[0]);
    two_cells(p, "run", c->folders[0], c->folders[1]);
    two_cells(p, "model", c->before->model, c->after->model);
    two_cells(p, "device", c->before->device, c->after->device);
    if (isfinite(c->clock_mhz[0]) && isfinite(c->clock_mhz[1]))
        two_cells(p, "clock", arena_printf(&p->arena, "%.0f MHz", c->clock_mhz[0]),
                  arena_printf(&p->arena, "%.0f MHz", c->clock_mhz[1]));
    for (size_t k = 0; k < c->difference_count; k++) {
        const comparison_difference *d = &c->differences[k];
        two_cells(p, arena_printf(&p->arena, "differs: %s", d->what), *d->before ? d->before : "not given",
                  *d->after ? d->after : "not given");
    }
    page_table_close(p);
    fputs("</section>\n", p->out);
}

/* ---- the machine ---- */

static void machine_row(sheet *s, const char *what, const drift *d, drift_judgement is) {
    page *p = &s->p;
    const interval i = interval_of((drift_judgement){is.state, d->machine, is.sd});
    fprintf(p->out, "<tr><th scope=\"row\">%s</th>", what);
    if (!d->machine_known) {
        fprintf(p->out, "<td colspan=\"4\">%s</td></tr>\n", comparison_machine_text(d, is.state));
        return;
    }
    fputs("<td>", p->out);
    say_state(p, is.state);
    fputs("</td>", p->out);
    draw(s, &i, is.state);
    fprintf(p->out, "<td class=\"n\">%s<br><span class=\"soft\">%s</span></td><td class=\"n\">%zu</td></tr>\n",
            comparison_percent(i.middle).s, amount_within(1.96 * is.sd).s, d->rows);
}

static void machine(sheet *s) {
    static const char *const heads[] = {"what moved together", "how", "its time", "#change of the time", "#operations"};
    const comparison *c = s->c;
    page *p = &s->p;
    double reach = fmax(2 * c->options.drift.margin, 0.005);
    if (c->drift.machine_known) reach = fmax(reach, fabs(expm1(c->drift.machine)));
    for (size_t k = 0; k < c->part_count; k++) reach = fmax(reach, fabs(expm1(c->parts[k].drift.machine)));
    s->most = round_up(fmin(1.2 * reach, 1e6));
    char says[200];
    snprintf(
        says, sizeof says,
        "What all operations share is the machine's, and is taken out of each of them below. The picture goes from "
        "−%g %% to +%g %%.",
        100 * s->most, 100 * s->most);
    page_table_open(p, "", "The machine", says, heads, sizeof heads / sizeof heads[0]);
    machine_row(s, c->part_count > 0 ? "the machine, all else" : "the machine", &c->drift, c->machine);
    for (size_t k = 0; k < c->part_count; k++) {
        const comparison_part *part = &c->parts[k];
        machine_row(s, arena_printf(&p->arena, "what %s bounds", part->bound), &part->drift, part->machine);
    }
    page_table_close(p);
    const bool moved = c->machine.state == DRIFT_SLOWER || c->machine.state == DRIFT_FASTER;
    if (moved && *comparison_ceilings_text(c->ceilings_say))
        fprintf(p->out, "<p>About the machine: %s.</p>\n", comparison_ceilings_text(c->ceilings_say));
    if (c->ceilings_say == COMPARISON_CEILINGS_STORED) return;
    for (size_t k = 0; k < c->ceiling_count && k < 8; k++) {
        const comparison_ceiling *kind = &c->ceilings[k];
        fputs(k ? ", " : "<p class=\"small soft\">The ceilings' times: ", p->out);
        page_say_cut(p, *kind->bound ? kind->bound : "unknown", 16);
        fputs(" ", p->out);
        page_say_cut(p, kind->precision, 12);
        fprintf(p->out, " %s", comparison_percent(kind->change).s);
    }
    if (c->ceiling_count > 0) fputs(".</p>\n", p->out);
}

static amount_words sum_within(const verdict_sum *s) {
    return amount_within_of(verdict_sum_ci(s), verdict_sum_unknown(s));
}

/* The model by the best of what both measured. */
static void model(sheet *s) {
    const comparison *c = s->c;
    verdict_sum sums[2] = {{0}};
    double longest = 0;
    char note[128];
    for (size_t k = 0; k < c->operations.row_count; k++) {
        const comparison_row *r = &c->operations.rows[k];
        if (!isfinite(r->change)) continue;
        verdict_sum_add(&sums[0], (double)r->after->count * r->before->best_us, r->before->best_ci);
        verdict_sum_add(&sums[1], (double)r->after->count * r->after->best_us, r->after->best_ci);
    }
    if (!(sums[0].us > 0)) return;
    for (int k = 0; k < 2; k++) longest = fmax(longest, sums[k].us * (1 + verdict_sum_ci(&sums[k])));
    fputs("<h3>One run of the model, by the best of what both measured</h3>\n<dl class=\"bars\">", s->p.out);
    snprintf(note, sizeof note, " <span class=\"soft\">%s</span>", sum_within(&sums[0]).s);
    page_bar(&s->p, "before", "now", sums[0].us, verdict_sum_ci(&sums[0]), longest, note);
    snprintf(note, sizeof note, " <span class=\"soft\">%s, %s</span>", sum_within(&sums[1]).s,
             comparison_percent(sums[1].us / sums[0].us - 1).s);
    page_bar(&s->p, "after", "ceiling", sums[1].us, verdict_sum_ci(&sums[1]), longest, note);
    fputs("</dl>\n", s->p.out);
}

static void count_line(sheet *s, const char *what, const comparison_list *list) {
    static const drift_state order[] = {DRIFT_SLOWER, DRIFT_FASTER, DRIFT_AMBIGUOUS, DRIFT_SAME};
    page *p = &s->p;
    fprintf(p->out, "<p class=\"counts\">%zu %s%s compared:", list->measured, what, plural(list->measured));
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
        fprintf(p->out, " <b>%zu</b> ", list->states[order[k]]);
        say_state(p, order[k]);
    }
    fprintf(p->out, " · verdicts: %zu worse, %zu better, %zu changed otherwise · %zu new, %zu gone</p>\n",
            list->verdicts[COMPARISON_WORSE], list->verdicts[COMPARISON_BETTER], list->verdicts[COMPARISON_OTHER],
            list->fresh_count, list->gone_count);
}

static void happened(sheet *s) {
    const comparison *c = s->c;
    page *p = &s->p;
    char found[160];
    page_section(p, "machine", "What happened");
    count_line(s, "operation", &c->operations);
    if (comparison_has_any(&c->fusions)) count_line(s, "fusion", &c->fusions);
    if (c->drift.rows > 0)
        fprintf(p->out, "<p class=\"small soft\">%s.</p>\n", comparison_found(c, found, sizeof found));
    machine(s);
    model(s);
    fputs("</section>\n", p->out);
}

/* ---- the rows ---- */

static void say_layers(page *p, const study_report *r, bool all) {
    char layers[STUDY_LAYERS];
    if (r->layer_count == 0) return;
    const char *short_one = study_layers(r, layers);
    if (!all || r->layer_count == 1) {
        fputs("<span class=\"soft\">", p->out);
        page_say(p, short_one);
        fputs("</span>", p->out);
        return;
    }
    fputs("<details class=\"more soft\" open><summary>", p->out);
    page_say(p, short_one);
    fputs("</summary><span class=\"layers\">", p->out);
    for (size_t k = 0; k < r->layer_count && k < PAGE_LAYERS; k++) {
        if (k > 0) fputc('\n', p->out);
        page_say(p, r->layers[k]);
    }
    fputs("</span></details>", p->out);
}

static void name_cell(page *p, const comparison_row *r, bool all) {
    fputs("<th scope=\"row\">", p->out);
    if (r->after->fusion) {
        fputs("fusion ", p->out);
        page_say_cut(p, r->after->fusion_pattern, PAGE_NAME);
    } else
        page_say(p, page_title(p, r->after));
    fputs("<span class=\"soft\">", p->out);
    page_shape(p, r->after);
    fputs("</span>", p->out);
    say_layers(p, r->after, all);
    fputs("</th>", p->out);
}

static void number_cell(page *p, double value, const char *text) {
    fprintf(p->out, "<td class=\"n\" data-v=\"%.6g\">%s", isfinite(value) ? value : -1e30, isfinite(value) ? text : "");
}

static void time_cell(page *p, double us, double ci) {
    number_cell(p, us, page_figure(us).s);
    if (isfinite(us)) fprintf(p->out, "<br><span class=\"soft\">%s</span>", amount_within(ci).s);
    fputs("</td>", p->out);
}

static void verdict_cell(sheet *s, const comparison_row *r) {
    static const char *const classes[] = {"", " SLOWER", " FASTER", ""};
    page *p = &s->p;
    const bool changed = r->verdict != COMPARISON_KEPT;
    char text[160];
    const char *became = comparison_verdict_text(r, text, sizeof text), *behind = strchr(became, ':');
    fputs("<td class=\"wide\">", p->out);
    if (comparison_fails(r, s->shown->fail)) fputs("<span class=\"chip bad\">fails</span> ", p->out);
    if (changed)
        fprintf(p->out, "<span class=\"chip%s\">verdict %s</span> ", classes[r->verdict],
                comparison_verdict_names[r->verdict]);
    if (changed && behind) page_say_cut(p, behind + 2, PAGE_SENTENCE);
    if (changed && r->note) fputs("; ", p->out);
    page_say_wrapped(p, r->note, PAGE_SENTENCE);
    fputs("</td>", p->out);
}

static void write_row(sheet *s, const comparison_row *r, size_t rank) {
    page *p = &s->p;
    const interval i = interval_of(r->best);
    const double lost = r->lost_us;
    fprintf(p->out, "<tr data-f=\"s-%s v-%s k-%s\"><td class=\"n soft\" data-v=\"%zu\">%zu</td>",
            drift_state_name(r->best.state), comparison_verdict_names[r->verdict], page_kind(r->after->op), rank, rank);
    name_cell(p, r, rank <= LAYERS_TOLD);
    fprintf(p->out, "<td data-v=\"%d\">", (int)r->best.state);
    say_state(p, r->best.state);
    fputs("</td>", p->out);
    draw(s, &i, r->best.state);
    number_cell(p, i.middle, comparison_net(r).s);
    fputs("</td>", p->out);
    number_cell(p, r->change, comparison_percent(r->change).s);
    fputs("</td>", p->out);
    time_cell(p, r->before->best_us, r->before->best_ci);
    time_cell(p, r->after->best_us, r->after->best_ci);
    number_cell(p, lost, arena_printf(&p->arena, "%s%s", lost > 0 ? "+" : "", page_figure(lost).s));
    fputs("</td>", p->out);
    verdict_cell(s, r);
    fputs("</tr>\n", p->out);
}

static void option(page *p, const char *prefix, const char *value, const char *text) {
    fprintf(p->out, "<option value=\"%s%s\">%s</option>", prefix, value, text);
}

static void tools(page *p, const char *table) {
    fprintf(p->out,
            "<form class=\"tools\" data-table=\"%s\" hidden><label>search<input type=\"search\" placeholder=\"name, "
            "layer, shape\" autocomplete=\"off\"></label><label>change<select><option value=\"\">all</option>",
            table);
    for (int k = 0; k < COMPARISON_STATES; k++)
        option(p, "s-", drift_state_name((drift_state)k), drift_state_name((drift_state)k));
    fputs("</select></label><label>verdict<select><option value=\"\">all</option>", p->out);
    for (int k = 0; k < COMPARISON_VERDICTS; k++)
        option(p, "v-", comparison_verdict_names[k], comparison_verdict_names[k]);
    fputs("</select></label><button type=\"reset\">clear</button><button type=\"button\" hidden>show "
          "all</button><output aria-live=\"polite\"></output></form>\n",
          p->out);
}

static void list_rows(sheet *s, const char *id, const char *title, const comparison_list *list) {
    static const char *const heads[] = {"##",        "operation",  "change",    "drawn",       "#net of the machine",
                                        "#measured", "#before µs", "#after µs", "#per run µs", "what became of it"};
    page *p = &s->p;
    s->most = scale_of(s, list);
    page_section(p, id, title);
    if (list->measured == 0) fputs("<p>None has a figure.</p>\n", p->out);
    if (list->measured > 0) {
        fprintf(
            p->out,
            "<p class=\"soft\">By the best of each run, what is worst first. Block: where the change lies with 95 %% "
            "certainty, without the machine's; the line is 0, and in the pale band lies what is no change. The "
            "picture goes from −%g %% to +%g %%, and an arrow says that there is more. Per run: what the model loses "
            "by it.</p>\n",
            100 * s->most, 100 * s->most);
        tools(p, arena_printf(&p->arena, "t-%s", id));
        fprintf(p->out,
                "<div class=\"scroll long\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table class=\"ranked\" "
                "id=\"t-%s\"><caption class=\"hidden\">%s, what is worst first</caption><thead><tr>",
                title, id, title);
        for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) {
            const bool number = heads[k][0] == '#';
            fprintf(p->out, "<th scope=\"col\"%s>%s</th>", number ? " class=\"n\"" : "", heads[k] + number);
        }
        fputs("</tr></thead><tbody>\n", p->out);
        size_t rank = 0;
        for (size_t k = 0; k < list->row_count; k++) {
            const arena_mark mark = arena_save(&p->arena);
            if (list->rows[k].measured) write_row(s, &list->rows[k], ++rank);
            arena_rewind(&p->arena, mark);
        }
        fputs("</tbody></table></div>\n", p->out);
    }
    fputs("</section>\n", p->out);
}

/* ---- what was not compared ---- */

static void say_names(page *p, const char *title, const study_report *const *list, size_t count) {
    if (count == 0) return;
    fprintf(p->out, "<details class=\"more\" open><summary>%zu %s</summary><ul class=\"small\">\n", count, title);
    for (size_t k = 0; k < count && k < LISTED; k++) {
        const arena_mark mark = arena_save(&p->arena);
        char layers[STUDY_LAYERS];
        fputs("<li><code>", p->out);
        page_say_cut(p, list[k]->operation, 2 * PAGE_NAME);
        fputs("</code>", p->out);
        if (list[k]->reason_text) fputs(": ", p->out);
        page_say_cut(p, list[k]->reason_text, PAGE_SENTENCE);
        if (list[k]->layer_count > 0) {
            fputs(" <span class=\"soft\">", p->out);
            page_say(p, study_layers(list[k], layers));
            fputs("</span>", p->out);
        }
        fputs("</li>\n", p->out);
        arena_rewind(&p->arena, mark);
    }
    fputs("</ul>", p->out);
    if (count > LISTED) fprintf(p->out, "<p>and %zu more</p>", count - LISTED);
    fputs("</details>\n", p->out);
}

static size_t without_figure(sheet *s, const comparison_list *list, const study_report ***to) {
    size_t n = 0;
    *to = arena_array(&s->p.arena, const study_report *, list->row_count + 1);
    for (size_t k = 0; k < list->row_count; k++)
        if (comparison_without_figure(&list->rows[k])) (*to)[n++] = list->rows[k].after;
    return n;
}

static void rest(sheet *s) {
    const comparison *c = s->c;
    const comparison_list *const o = &c->operations, *const f = &c->fusions;
    page *p = &s->p;
    const study_report **operations, **fusions;
    const size_t without = without_figure(s, o, &operations), without_fusions = without_figure(s, f, &fusions);
    page_section(p, "rest", "What was not compared");
    if (o->fresh_count + o->gone_count + f->fresh_count + f->gone_count + without + without_fusions +
            c->skipped_count ==
        0)
        fputs("<p>Nothing: all of both runs was compared.</p>\n", p->out);
    say_names(p, "without a figure in either run", operations, without);
    say_names(p, "fusions without a figure in either run", fusions, without_fusions);
    say_names(p, "new: the run before has none of these", o->fresh, o->fresh_count);
    say_names(p, "gone: the run after has none of these", o->gone, o->gone_count);
    say_names(p, "new fusions", f->fresh, f->fresh_count);
    say_names(p, "gone fusions", f->gone, f->gone_count);
    if (c->skipped_count > 0)
        fprintf(p->out, "<details class=\"more\" open><summary>%zu file%s left out</summary><ul class=\"small\">\n",
                c->skipped_count, plural(c->skipped_count));
    for (size_t k = 0; k < c->skipped_count && k < LISTED; k++) {
        fputs("<li><code>", p->out);
        page_say_cut(p, c->skipped[k].path, 2 * PAGE_NAME);
        fputs("</code>: ", p->out);
        page_say_cut(p, c->skipped[k].why, PAGE_SENTENCE);
        fputs("</li>\n", p->out);
    }
    if (c->skipped_count > 0) fputs("</ul></details>\n", p->out);
    fputs("</section>\n", p->out);
}

bool page_comparison(const comparison *c, const comparison_shown *shown, FILE *out, status *st) {
    sheet s = {.p = {.out = out, .number = 1}, .c = c, .shown = shown};
    page *p = &s.p;
    guard_init(&p->guard);
    arena_init(&p->arena, &p->guard, PAGE_MEMORY);
    const bool good = guard_enter(&p->guard);
    if (good) {
        page_begin(p, c->folders[1], "what changed");
        head(&s);
        happened(&s);
        list_rows(&s, "operations", "Operations", &c->operations);
        if (comparison_has_any(&c->fusions)) list_rows(&s, "fusions", "Fusions", &c->fusions);
        runs(&s);
        rest(&s);
        page_end(p, "An operation is SLOWER or FASTER where chance alone would seldom say so.");
    } else
        *st = p->guard.st;
    arena_free(&p->arena);
    return good;
}
