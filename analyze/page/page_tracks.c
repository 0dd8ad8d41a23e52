/* The model as it ran: kernel after kernel by the defaults, and beneath it by the plan, at one scale of time.
 * trace.json tells it; it is read as if a stranger had written it. */
#include "analyze/page/page_internal.h"

#include "common/map.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 2,
    DRAWN = 4000 /* kernels of a lane */,
    LINE = 48 /* of them in a line, where they are alike */,
    LINES = 40
};
static const double most_us = 1e12, least_gain = 0.02; /* that is drawn */

typedef struct kernel {
    const json_t *event;
    const summary_row *row; /* of its operation; NULL: it is a fusion's, or unknown */
    const char *kind;
    double from, to; /* us */
} kernel;

typedef struct tracks {
    kernel *kernels[LANES];
    size_t count[LANES], left_out[LANES];
    double end; /* of the longer lane */
} tracks;

static const char *const lanes[LANES] = {"defaults", "plan"};

/* Of an operation its own; of a fusion that of its first part, whose name its own begins with. */
static const char *kind_of(page *p, const summary_row *row, const char *name) {
    if (row) return page_kind(row->report->op);
    return page_kind(arena_strndup(&p->arena, name, strcspn(name, "_")));
}

/* As they come: a trace that is out of order is drawn as it is. */
static void collect(page *p, const json_t *events, tracks *t) {
    size_t k;
    json_t *one;
    map rows;
    map_init(&rows, &p->arena);
    for (size_t n = 0; n < p->g->row_count; n++)
        *map_put(&rows, p->g->rows[n].report->operation) = (void *)(uintptr_t)&p->g->rows[n];
    for (int lane = 0; lane < LANES; lane++) t->kernels[lane] = arena_array(&p->arena, kernel, DRAWN);
    json_array_foreach(events, k, one) {
        const json_int_t lane = json_integer_value(json_object_get(one, "tid")) - 1;
        const double from = page_real(one, "ts"), us = page_real(one, "dur");
        if (strcmp(page_string(one, "ph"), "X") != 0 || lane < 0 || lane >= LANES) continue;
        if (!(from >= 0 && us >= 0 && from + us < most_us)) continue;
        if (t->count[lane] == DRAWN) {
            t->left_out[lane]++;
            continue;
        }
        const summary_row *row = map_get(&rows, page_string(one, "name"));
        t->kernels[lane][t->count[lane]++] =
            (kernel){one, row, kind_of(p, row, page_string(one, "name")), from, from + us};
        t->end = fmax(t->end, from + us);
    }
}

static void legend(page *p, const tracks *t) {
    const char **kinds = arena_array(&p->arena, const char *, t->count[0] + t->count[1]);
    size_t n = 0;
    for (int lane = 0; lane < LANES; lane++)
        for (size_t k = 0; k < t->count[lane]; k++) kinds[n++] = t->kernels[lane][k].kind;
    page_legend(p, kinds, n);
}

/* The part of its time that lies above its ceiling; 0: none, or it is not known. */
static double gain_of(const kernel *k, int lane) {
    const study_report *r = k->row ? k->row->report : NULL;
    if (!r || !(r->ceiling_us > 0)) return 0;
    return fmax(1 - r->ceiling_us / (lane == 0 ? r->baseline_us : r->best_us), 0);
}

/* The part of it that lies in a line. It leads to its operation, or to the fusions where there are any. */
static void draw(page *p, const kernel *k, int lane, bool alone, double from, double to) {
    static const double tops[LANES] = {0, 54};
    const double height = alone ? 100 : 46;
    const double x = 100 * (fmax(k->from, from) - from) / (to - from),
                 width = 100 * (fmin(k->to, to) - fmax(k->from, from)) / (to - from);
    const char *section = k->row ? "all" : p->g->group->fusion_count > 0 ? "fusions" : "run";
    if (k->row && k->row->rank <= PAGE_FULL)
        fprintf(p->out, "<a href=\"#o%zu-%zu\">", p->number, k->row->rank);
    else
        fprintf(p->out, "<a href=\"#%s%zu\">", section, p->number);
    fprintf(p->out, "<title>%s: ", lanes[lane]);
    page_say_cut(p, page_string(k->event, "name"), PAGE_NAME);
    fprintf(p->out, "\n%s at %s</title><rect class=\"run k-%s\" x=\"%s\" y=\"%g%%\" width=\"%s\" height=\"%g%%\"/>",
            page_time(k->to - k->from).s, page_time(k->from).s, k->kind, page_place(x).s, tops[lane],
            page_place(fmax(width, 0.02)).s, height);
    if (gain_of(k, lane) > least_gain)
        fprintf(p->out, "<rect class=\"above\" x=\"%s\" y=\"%g%%\" width=\"%s\" height=\"%s\"/>", page_place(x).s,
                tops[lane], page_place(fmax(width, 0.02)).s, page_place(height * gain_of(k, lane)).s);
    fputs("</a>\n", p->out);
}

static void line(page *p, const tracks *t, double from, double to, size_t *at) {
    const bool alone = at[1] == t->count[1]; /* the plan has ended */
    fprintf(
        p->out,
        "<p class=\"soft\">%s to %s</p><svg class=\"track dots%s\" role=\"group\" aria-label=\"From %s to %s: kernels "
        "of the defaults%s. Arrow keys go from one to the next.\">\n",
        page_time(from).s, page_time(to).s, alone ? " alone" : "", page_time(from).s, page_time(to).s,
        alone ? "" : " above, of the plan below");
    for (int lane = 0; lane < LANES; lane++) {
        size_t k = at[lane];
        for (; k < t->count[lane] && t->kernels[lane][k].from < to; k++) {
            if (t->kernels[lane][k].to > from) draw(p, &t->kernels[lane][k], lane, alone, from, to);
            if (t->kernels[lane][k].to <= to && k == at[lane]) at[lane]++; /* none is drawn there any more */
        }
    }
    fputs("</svg>\n", p->out);
}

static void caption(page *p, const tracks *t) {
    const double first = t->count[0] ? t->kernels[0][t->count[0] - 1].to : 0,
                 plan = t->count[1] ? t->kernels[1][t->count[1] - 1].to : 0;
    fprintf(p->out, "<figcaption>Above: by the libraries' defaults, %zu kernels in %s. ", t->count[0] + t->left_out[0],
            page_time(first).s);
    if (t->count[1] > 0)
        fprintf(p->out, "Below: by the plan, %zu in %s. ", t->count[1] + t->left_out[1], page_time(plan).s);
    fputs("The pale part of a block is what lies above its ceiling. One run of each was traced, and takes longer than "
          "one "
          "that is timed. A block leads to its operation.",
          p->out);
    if (t->left_out[0] + t->left_out[1] > 0) fprintf(p->out, " Of each run the first %d are drawn.", DRAWN);
    fputs("</figcaption></figure></section>\n", p->out);
}

void page_tracks(page *p) {
    const summary_group *g = p->g;
    status left_out = {0}; /* study_open has said what is wrong beside the reports */
    const arena_mark mark = arena_save(&p->arena);
    if (!g->group->whole.known || g->group->count == 0) return;
    json_t *const root = study_beside_report(g->group->reports[0].path, "trace", &left_out);
    tracks t = {.end = 0};
    p->trace = root; /* goes with the page where memory runs out */
    collect(p, json_object_get(root, "traceEvents"), &t);
    if (t.count[0] > 0 && t.end > 0) {
        size_t at[LANES] = {0, 0};
        const double wanted = ceil((double)fmax((double)t.count[0], (double)t.count[1]) / LINE);
        const int lines = (int)fmin(fmax(wanted, 1), LINES);
        page_section(p, "run", "The model as it runs");
        fputs("<figure>\n", p->out);
        legend(p, &t);
        for (int k = 0; k < lines; k++) line(p, &t, k * t.end / lines, (k + 1) * t.end / lines, at);
        caption(p, &t);
    }
    json_decref(root);
    p->trace = NULL;
    arena_rewind(&p->arena, mark);
}
