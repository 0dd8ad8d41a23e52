/* A section for each operation: the advice, what was measured, and what it was held against. The report is read again
 * for it, and let go before the next one. */
#include "analyze/page/page_internal.h"

#include "common/plain.h"
#include "common/rows_table.h"

#include <math.h>
#include <string.h>

static void fact(page *p, const char *term) { fprintf(p->out, "<div><dt>%s</dt><dd>", term); }
static void end_fact(page *p) { fputs("</dd></div>\n", p->out); }

static void text_fact(page *p, const char *term, const char *text) {
    if (!text || !*text) return;
    fact(p, term);
    page_say_cut(p, text, PAGE_NAME);
    end_fact(p);
}

static void block_fact(page *p, const study_report *r) {
    if (!r->block_mask) return;
    fact(p, "block mask");
    page_say_cut(p, r->block_mask, PAGE_NAME);
    if (r->block_density > 0) fprintf(p->out, ": %s of the blocks are seen", page_percent(r->block_density).s);
    end_fact(p);
}

static void work_facts(page *p, const study_report *r) {
    const double bytes = r->bytes_read + r->bytes_written;
    text_fact(p, "layout", r->layout);
    text_fact(p, "mask", r->mask);
    block_fact(p, r);
    if (r->flops > 0) {
        fact(p, "work");
        fprintf(p->out, "%s GFLOP", page_figure(r->flops / 1e9).s);
        if (bytes > 0) fprintf(p->out, ", %s FLOP/byte", page_figure(r->flops / bytes).s);
        end_fact(p);
    }
    if (bytes > 0) {
        fact(p, "compulsory bytes");
        fprintf(p->out, "%s read, %s written", page_bytes(r->bytes_read).s, page_bytes(r->bytes_written).s);
        end_fact(p);
    }
}

static void ceiling_fact(page *p, const study_report *r, const json_t *detail) {
    if (!(r->ceiling_us > 0)) return;
    const double probe = page_real(json_object_get(detail, "probe"), "tflops");
    fact(p, "ceiling");
    const amount within = amount_within(r->ceiling_ci);
    fprintf(p->out, "%s%s%s, set by ", page_time(r->ceiling_us).s, *within.s ? " " : "", within.s);
    page_say_cut(p, r->bound, 16);
    if (r->peak_tflops > 0 && r->bound && strcmp(r->bound, "compute") == 0) {
        fprintf(p->out, "; the device's peak is %s TFLOP/s", page_figure(r->peak_tflops).s);
        if (probe > 0) fprintf(p->out, ", beside this operation it was %s", page_figure(probe).s);
    }
    if (study_skips_zeros(r))
        fputs("; with all its zeros: the best skips them and may be faster", p->out);
    else if (r->above_ceiling)
        fputs(". <strong>The measured time is below this ceiling: do not trust either</strong>", p->out);
    end_fact(p);
}

static void power_fact(page *p, const study_report *r) {
    if (!(r->clock_mhz > 0) && !(r->power_w > 0)) return;
    fact(p, "clock and power, default");
    if (r->clock_mhz > 0) fprintf(p->out, "%s MHz", page_whole(r->clock_mhz).s);
    if (r->power_w > 0) fprintf(p->out, "%s%s W", r->clock_mhz > 0 ? ", " : "", page_whole(r->power_w).s);
    end_fact(p);
}

/* What the verdict does not hold for, and what would need more time. */
static void open_fact(page *p, const study_report *r, const json_t *detail) {
    const json_t *undecided = json_object_get(detail, "undecided");
    if (r->address_best > 0 && r->address_worst > 0) {
        fact(p, "depends on addresses");
        fprintf(p->out, "between %.3f and %.3f of %s, by the placement of its memory; the verdict holds for the middle",
                r->address_best, r->address_worst, r->ratio > 0 ? "the default's time" : "its usual time");
        end_fact(p);
    }
    if (json_array_size(undecided) == 0) return;
    fact(p, "not decided within the budget");
    for (size_t k = 0; k < json_array_size(undecided); k++) {
        const char *text = json_string_value(json_array_get(undecided, k));
        if (k > 0) fputs(", ", p->out);
        page_say_cut(p, text ? text : "", PAGE_NAME);
    }
    end_fact(p);
}

static void gain_fact(page *p, const summary_row *row) {
    const double proven = row->report->verdict.proven_gain_us;
    const bool open = summary_to_do(row->outcome);
    fact(p, "gain in a run");
    if (proven > 0)
        fprintf(p->out, "<span class=\"is-proven\">%s proven%s</span>", page_time(proven).s,
                row->report->baseline_own ? " over an own kernel" : "");
    if (row->potential_us > 0 && open)
        fprintf(p->out, "%s<span class=\"is-potential\">%s%s potential</span>", proven > 0 ? ", " : "",
                proven > 0 ? "up to " : "", page_time(row->potential_us).s);
    if (!(proven > 0) && !(row->potential_us > 0 && open)) fputs("nothing that pays", p->out);
    if (row->potential_us > 0 && !open) fprintf(p->out, "; %s are left to the ceiling", page_time(row->potential_us).s);
    end_fact(p);
}

static void facts(page *p, const summary_row *row, const json_t *detail) {
    const study_report *r = row->report;
    fputs("<dl class=\"facts\">\n", p->out);
    gain_fact(p, row);
    if (r->verdict.efficiency > 0) {
        fact(p, "efficiency");
        fprintf(p->out, "%s of the ceiling%s", page_percent(r->verdict.efficiency).s,
                r->verdict.borderline ? "; borderline: the next run may decide otherwise" : "");
        end_fact(p);
    }
    ceiling_fact(p, r, detail);
    open_fact(p, r, detail);
    work_facts(p, r);
    power_fact(p, r);
    fact(p, "in a run of the model");
    fprintf(p->out, "%s %s", page_whole((double)r->count).s, r->count == 1 ? "time" : "times");
    if (row->share > 0) fprintf(p->out, ", %s in all, %s", page_time(row->weight_us).s, page_percent(row->share).s);
    end_fact(p);
    fact(p, "report");
    fputs("<code>", p->out);
    page_say_cut(p, r->operation, 2 * PAGE_NAME);
    fputs("</code>", p->out);
    end_fact(p);
    fputs("</dl>\n", p->out);
    if (r->name && strcmp(r->name, r->operation) != 0) {
        fputs("<p class=\"small soft\">Its full name: <bdi>", p->out);
        page_say_cut(p, r->name, PAGE_WHOLE);
        fputs("</bdi></p>\n", p->out);
    }
}

/* What the best needs to be run again. */
static void configuration(page *p, const json_t *detail) {
    const json_t *config = json_object_get(detail, "config");
    if (!json_is_object(config) || !json_object_size(config)) return;
    char *text = json_dumps(config, JSON_COMPACT);
    if (!text) return;
    fputs("<p class=\"small\">To run the best again: <code>", p->out);
    page_say_cut(p, text, 1000);
    fputs("</code></p>\n", p->out);
    free(text);
}

static void sweep(page *p, const json_t *detail) {
    const json_t *points = json_object_get(json_object_get(detail, "sweep"), "points"), *one;
    page_point curve[PAGE_POINTS];
    size_t count = 0, k;
    json_array_foreach(points, k, one) {
        const double depth = json_number_value(json_array_get(json_object_get(one, "shape"), 2));
        const double tflops = page_real(one, "tflops");
        if (count < PAGE_POINTS && depth > 0 && tflops > 0)
            curve[count++] = (page_point){depth, tflops, page_real(one, "rel_ci95")};
    }
    if (count < 2) return;
    fputs("<h4>K sweep</h4><figure>", p->out);
    page_chart_alone(p, "TFLOP/s over the depth K of the product", curve, count, false, "K", "TFLOP/s");
    page_point peak = curve[0], least = curve[0];
    for (k = 1; k < count; k++) {
        if (curve[k].y > peak.y) peak = curve[k];
        if (curve[k].y < least.y) least = curve[k];
    }
    fprintf(
        p->out,
        "<figcaption>Peak %s TFLOP/s at K = %.0f; %.0f to %.0f: between %s and %s TFLOP/s. The scale does not begin "
        "at 0.</figcaption></figure>\n",
        page_figure(peak.y).s, peak.x, curve[0].x, curve[count - 1].x, page_figure(least.y).s, page_figure(peak.y).s);
}

/* The same operation under other regimes or on other devices, where the study holds these. */
static void elsewhere(page *p, const study_report *r) {
    static const char *const heads[] = {"where", "#default", "#best", "#efficiency"};
    const amount_unit unit = amount_unit_of(fmax(r->baseline_us, 0));
    bool any = false;
    for (size_t k = 0; k < p->m->group_count; k++) {
        const study_group *g = p->m->groups[k].group;
        const study_report *other = g == p->g->group ? NULL : study_find(g, r->operation);
        if (!other || strcmp(other->operation, r->operation) != 0 || !(other->baseline_us > 0)) continue;
        if (!any) {
            fputs("<h4>Elsewhere</h4>\n", p->out);
            page_table_open(p, "", "The same operation elsewhere", NULL, heads, sizeof heads / sizeof heads[0]);
        }
        any = true;
        fputs("<tr><th scope=\"row\">", p->out);
        page_say_cut(p, g->device, PAGE_NAME);
        fputs(", ", p->out);
        page_say_cut(p, g->regime, PAGE_NAME);
        fprintf(p->out, "</th><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>",
                page_time_in(unit, other->baseline_us).s, page_time_in(unit, other->best_us).s,
                page_percent(other->verdict.efficiency).s);
    }
    if (any) page_table_close(p);
}

static void remember(page *p, const summary_row *row, const json_t *detail) {
    const study_report *r = row->report;
    const double at = study_moment(page_string(detail, "taken"));
    if (isfinite(at) && (r->clock_mhz > 0 || r->power_w > 0))
        p->moments[p->moment_count++] = (page_moment){at, r->clock_mhz, r->power_w, row->rank};
}

static void head(page *p, const summary_row *row) {
    const study_report *r = row->report;
    fprintf(p->out, "<details class=\"op\" id=\"o%zu-%zu\" open><summary><h3>", p->number, row->rank);
    page_say(p, page_title(p, r));
    fputs(" <span>", p->out);
    page_shape(p, r);
    if (r->precision) fputs(" ", p->out);
    page_say_cut(p, r->precision, 12);
    fputs("</span></h3><span class=\"soft\">", p->out);
    if (r->baseline_us > 0) {
        fprintf(p->out, "%s", page_time(r->baseline_us).s);
        if (row->share > 0) fprintf(p->out, " · %s", page_percent(row->share).s);
    } else
        page_say_cut(p, r->status, 16);
    fputs("</span>", p->out);
    if (row->outcome != SUMMARY_MISSING)
        fprintf(p->out, " <span class=\"chip %s\">%s</span>", r->verdict.priority, r->verdict.priority);
    fputs("</summary><div>\n", p->out);
}

/* Their names as they are in the model's file, a line each; one element, however many they are. page.js searches them.
 * Many are folded. */
static void layers(page *p, const study_report *r, bool fold) {
    enum { FEW = 6 };
    const char *some = r->layers_among ? "Some of " : "", *more = r->layer_count == 1 ? "" : "s";
    if (r->layer_count == 0) return;
    fold = fold && r->layer_count > FEW;
    if (fold)
        fprintf(p->out, "<details class=\"more\" open><summary>%s%zu layers of the model</summary><p class=\"layers\">",
                some, r->layer_count);
    else
        fprintf(p->out, "<p class=\"layers\">%s%zu layer%s of the model:", some, r->layer_count, more);
    for (size_t k = 0; k < r->layer_count && k < PAGE_LAYERS; k++) {
        fputs(k > 0 || !fold ? "\n" : "", p->out);
        page_say(p, r->layers[k]);
    }
    if (r->layer_count > PAGE_LAYERS)
        fprintf(p->out, "\n… and %zu more, which are in ops.json", r->layer_count - PAGE_LAYERS);
    fputs(fold ? "</p></details>\n" : "</p>\n", p->out);
}

/* What the study itself knows, for those that are far down. */
static void in_short(page *p, const summary_row *row) {
    const study_report *r = row->report;
    fprintf(
        p->out,
        "<p class=\"small\">%s of its ceiling, %s; the best takes %s; %s times a run. All else is in its report <code>",
        page_percent(r->verdict.efficiency).s, page_time(r->ceiling_us).s, page_time(r->best_us).s,
        page_whole((double)r->count).s);
    page_say_cut(p, r->operation, 2 * PAGE_NAME);
    fputs("</code>.</p>\n", p->out);
    layers(p, r, false);
}

static void counted(page *p, const json_t *detail) {
    const json_t *row;
    size_t k;
    json_array_foreach(json_object_get(detail, "candidates"), k, row) {
        const char *const text = rows_table_counted(&p->arena, row);
        if (!text) continue;
        fputs("<p class=\"soft\">Nsight Compute on ", p->out);
        page_say_cut(p, rows_table_name(&p->arena, row), 200);
        fputs(": ", p->out);
        page_say_cut(p, text, PAGE_SENTENCE);
        fputs("</p>\n", p->out);
    }
}

static void in_full(page *p, const summary_row *row) {
    const study_report *r = row->report;
    status st = {0};
    json_t *detail = study_detail(r, &st);
    facts(p, row, detail);
    layers(p, r, true);
    if (!detail) {
        fputs("<p>Its report cannot be read again: ", p->out);
        page_say_cut(p, st.text, PAGE_SENTENCE);
        fputs("</p>\n", p->out);
    }
    page_rows(p, r, detail);
    counted(p, detail);
    configuration(p, detail);
    page_weight(p, detail);
    sweep(p, detail);
    elsewhere(p, r);
    remember(p, row, detail);
    json_decref(detail);
}

static void section(page *p, const summary_row *row) {
    const study_report *r = row->report;
    head(p, row);
    fputs("<p class=\"advice\">", p->out);
    page_advice(p, r);
    fputs("</p>\n", p->out);
    if (r->reason_text && *r->reason_text) {
        fputs("<p>The default: ", p->out);
        page_say_cut(p, r->reason_text, PAGE_SENTENCE);
        fputs("</p>\n", p->out);
    }
    if (row->rank <= PAGE_FULL)
        in_full(p, row);
    else
        in_short(p, row);
    fputs("</div></details>\n", p->out);
}

/* What takes no time of its own and was not measured has nothing to tell but why. */
static bool is_idle(const summary_row *row) { return row->outcome == SUMMARY_OUTSIDE && !(row->report->best_us > 0); }

static void idle_line(page *p, const summary_row *row) {
    const study_report *r = row->report;
    fprintf(p->out, "<li id=\"o%zu-%zu\">", p->number, row->rank);
    page_say(p, page_title(p, r));
    fputs(" <span class=\"soft\">", p->out);
    page_shape(p, r);
    fputs("</span>", p->out);
    if (r->reason_text) fputs(": ", p->out);
    page_say_cut(p, r->reason_text, 200);
    layers(p, r, false);
    fputs("</li>\n", p->out);
}

static void idle(page *p) {
    const summary_group *g = p->g;
    size_t count = 0;
    for (size_t k = 0; k < g->row_count; k++) count += is_idle(&g->rows[k]);
    if (!count) return;
    fprintf(p->out,
            "<details class=\"op\" open><summary><h3>%zu without a time of their own <span>views, folded constants, "
            "parts of others</span></h3></summary><div><ul class=\"small\">\n",
            count);
    for (size_t k = 0; k < g->row_count; k++) {
        const arena_mark mark = arena_save(&p->arena);
        if (is_idle(&g->rows[k])) idle_line(p, &g->rows[k]);
        arena_rewind(&p->arena, mark);
    }
    fputs("</ul></div></details>\n", p->out);
}

void page_operations(page *p) {
    page_section(p, "each", "Each operation");
    fputs("<p class=\"soft\">In the order of the table: the candidates, their times, and the reasons why they were not "
          "chosen.</p>\n",
          p->out);
    for (size_t k = 0; k < p->g->row_count; k++) {
        const arena_mark mark = arena_save(&p->arena);
        if (!is_idle(&p->g->rows[k])) section(p, &p->g->rows[k]);
        arena_rewind(&p->arena, mark);
    }
    idle(p);
    fputs("</section>\n", p->out);
}
