/* index.html: the nights of a zoo on one page. What changed comes first, with what is known of the cause; then all
 * models by the time of a run, with what could be had of it and their nights as a line. Reports are linked, and nothing
 * else leads out of the page. */
#include "analyze/page/page.h"
#include "analyze/page/page_internal.h"

#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sheet {
    page p;
    const history_shown *shown;
    char *here; /* the page's folder, without links in its path; NULL: it is printed */
} sheet;

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

/* ---- small pictures ---- */

/* The nights of one thing, scaled to themselves, at least to 4 % of the time: noise alone is no mountain. The newest is
 * a dot. */
static void sparkline(page *p, const index_line *line) {
    double low = INFINITY, high = -INFINITY;
    for (size_t k = 0; k < line->count; k++)
        if (isfinite(line->us[k])) low = fmin(low, line->us[k]), high = fmax(high, line->us[k]);
    if (!(high >= low) || line->count < 2) return;
    const double middle = (low + high) / 2, range = fmax(high - low, 0.04 * middle), least = middle - range / 2;
    fprintf(p->out, "<svg class=\"spark\" role=\"img\" aria-label=\"%zu nights, from %s to %s\">", line->count,
            page_time(line->us[0]).s, page_time(line->us[line->count - 1]).s);
    double before_x = NAN, before_y = NAN;
    for (size_t k = 0; k < line->count; k++) {
        const double x = 2 + 96 * (double)k / (double)(line->count - 1), y = 90 - 80 * (line->us[k] - least) / range;
        if (!isfinite(y)) continue;
        if (isfinite(before_x))
            fprintf(p->out, "<line class=\"line\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>", page_place(before_x).s,
                    page_place(x).s, page_place(before_y).s, page_place(y).s);
        before_x = x, before_y = y;
    }
    fprintf(p->out, "<circle class=\"mark\" cx=\"%s\" cy=\"%s\" r=\"3\"/></svg>", page_place(before_x).s,
            page_place(before_y).s);
}

static void time_cell(page *p, double us) {
    fprintf(p->out, "<td class=\"n\" data-v=\"%.6g\">%s</td>", isfinite(us) ? us : -1, page_time(us).s);
}

static void share_cell(page *p, double us, double all) {
    const double share = us / all;
    fprintf(p->out, "<td class=\"n\" data-v=\"%.6g\">%s</td>", isfinite(share) ? share : -1,
            isfinite(share) && share > 0 ? page_percent(share).s : "");
}

/* ---- links ---- */

/* From the page's folder to a model's, both without links in their paths: "../bert@b8". NULL: it is not there. */
static const char *way_to(sheet *s, const char *folder) {
    arena *a = &s->p.arena;
    char *const there = s->here ? realpath(folder, NULL) : NULL;
    if (!there) return NULL;
    const char *const to = arena_strndup(a, there, strlen(there)), *const from = s->here, *up = "";
    free(there);
    size_t same = 0;
    for (size_t k = 0; from[k] == to[k] || (!from[k] && to[k] == '/') || (from[k] == '/' && !to[k]); k++) {
        if (!from[k] || !to[k] || from[k] == '/') same = k;
        if (!from[k] || !to[k]) break;
    }
    for (size_t k = same; from[k]; k++)
        if (from[k] == '/') up = arena_printf(a, "%s../", up);
    return arena_printf(a, "%s%s", up, to[same] == '/' ? to + same + 1 : to + same);
}

/* As a URL writes it: names of folders hold blanks, commas, and what would end a link. */
static void say_way(page *p, const char *way) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    if (way[0] != '.') fputs("./", p->out);
    for (const char *c = way; *c; c++) fprintf(p->out, strchr(plain, *c) ? "%c" : "%%%02X", (unsigned char)*c);
}

static void say_model(sheet *s, const char *name, const char *folder) {
    page *p = &s->p;
    const char *const way = folder ? way_to(s, folder) : NULL;
    if (way) {
        fputs("<a href=\"", p->out);
        say_way(p, way);
        fputs("/report.html\">", p->out);
    }
    page_say_cut(p, name, PAGE_NAME);
    if (way) fputs("</a>", p->out);
}

/* ---- what changed ---- */

static void change(sheet *s, const index_change *c) {
    page *p = &s->p;
    const char *const state = c->state == HISTORY_SLOWER ? "SLOWER" : "FASTER";
    fprintf(p->out, "<tr><td><span class=\"chip %s\">%s</span></td><td class=\"n\" data-v=\"%.6g\">%s</td>", state,
            state, c->change, index_change_of(c->change).s);
    fputs("<th scope=\"row\" class=\"wide\">", p->out);
    page_say_cut(p, c->operation ? c->operation : "the device as a whole", PAGE_NAME);
    fputs("<br><span class=\"soft\">", p->out);
    page_say_cut(p, c->device, PAGE_NAME);
    fputs("</span></th><td class=\"wide\">", p->out);
    if (c->model) say_model(s, c->model, c->folder);
    if (c->models > 1) fprintf(p->out, " and %" PRId64 " more", c->models - 1);
    fputs("</td><td class=\"wide\">", p->out);
    page_say_cut(p, c->cause, PAGE_SENTENCE);
    fprintf(p->out, "</td><td class=\"n\">%" PRId64 "</td>", c->again);
    fprintf(p->out, "<td class=\"n\" data-v=\"%.6g\">%s%s</td>", isfinite(c->lost_us) ? c->lost_us : 0,
            c->lost_us < 0 ? "−" : "", page_time(fabs(c->lost_us)).s);
    fprintf(p->out, "<td class=\"draw\">");
    sparkline(p, &c->line);
    fprintf(p->out, "</td><td class=\"n\">%s</td></tr>\n", index_date_of(c->at).s);
}

static void changes(sheet *s, bool last) {
    static const char *const heads[] = {"state",  "#change",       "operation", "model", "what changed beside it",
                                        "#times", "#lost per run", "nights",    "#night"};
    page *p = &s->p;
    const history_index *i = s->shown->index;
    size_t n = 0;
    for (size_t k = 0; k < i->change_count; k++) n += i->changes[k].last == last;
    if (n == 0) return;
    page_table_open(p, "changes", last ? "What changed last night" : "What changed before",
                    last ? "Each was measured again in the same night; times says how often. Lost per run: over all "
                           "models that have it."
                         : NULL,
                    heads, sizeof heads / sizeof heads[0]);
    for (size_t k = 0; k < i->change_count; k++) {
        const arena_mark mark = arena_save(&p->arena);
        if (i->changes[k].last == last) change(s, &i->changes[k]);
        arena_rewind(&p->arena, mark);
    }
    page_table_close(p);
}

static void last_night(sheet *s) {
    page *p = &s->p;
    const history_index *i = s->shown->index;
    page_section(p, "changes", "What changed");
    fputs("<p>", p->out);
    page_say(p, i->night ? index_sum(s->shown) : "There is no night yet.");
    fputs("</p>\n", p->out);
    changes(s, true);
    size_t earlier = 0;
    for (size_t k = 0; k < i->change_count; k++) earlier += !i->changes[k].last;
    if (earlier > 0) {
        fprintf(p->out, "<details class=\"more\" open><summary>%zu change%s of earlier nights", earlier,
                plural((int64_t)earlier));
        if (i->change_total > i->change_count) fprintf(p->out, ", of %zu in all", i->change_total);
        fputs("</summary>\n", p->out);
        changes(s, false);
        fputs("</details>\n", p->out);
    }
    fputs("</section>\n", p->out);
}

/* ---- models ---- */

static void model(sheet *s, size_t rank, const index_model *m) {
    page *p = &s->p;
    fprintf(p->out, "<tr data-f=\"\"><td class=\"n\">%zu</td>", rank);
    fputs("<th scope=\"row\" class=\"wide\">", p->out);
    say_model(s, m->name, m->folder);
    fputs("<br><span class=\"soft\">", p->out);
    page_say_cut(p, m->device, PAGE_NAME);
    fputs(", ", p->out);
    page_regime(p, m->regime);
    fputs("</span></th>", p->out);
    time_cell(p, m->us);
    fprintf(p->out, "<td class=\"n\" data-v=\"%.6g\">%s</td>", isfinite(m->change) ? m->change : 0,
            isfinite(m->change) ? index_change_of(m->change).s : "");
    fputs("<td class=\"draw\">", p->out);
    sparkline(p, &m->line);
    fputs("</td>", p->out);
    share_cell(p, m->proven_us, m->us);
    share_cell(p, m->potential_us, m->us);
    time_cell(p, m->proven_us + m->potential_us);
    fprintf(p->out, "<td class=\"n\" data-v=\"%zu\">", m->slower);
    if (m->slower) fprintf(p->out, "<span class=\"chip SLOWER\">%zu</span>", m->slower);
    fprintf(p->out, "</td><td class=\"n\" data-v=\"%" PRId64 "\">%" PRId64 "</td><td class=\"n\">%s</td></tr>\n",
            m->count, m->count, index_date_of(m->at).s);
}

static void models(sheet *s) {
    static const char *const heads[] = {"##",      "model",       "#time of a run", "#since",
                                        "nights",  "#proven",     "#potential",     "#recoverable",
                                        "#slower", "#operations", "#measured"};
    page *p = &s->p;
    const history_index *i = s->shown->index;
    page_section(p, "models", "Models");
    fputs(
        "<p class=\"soft\">By the time of a run; a click on a head sorts by it. Since: against the night before. "
        "Proven: something that was measured is faster. Potential: the rest of the way to the measured ceilings. "
        "Recoverable: both, in time.</p>\n"
        "<form class=\"tools\" data-table=\"t-models\" hidden><label>search<input type=\"search\" placeholder=\"model, "
        "device\" autocomplete=\"off\"></label><button type=\"reset\">clear</button><button type=\"button\" "
        "hidden>show "
        "all</button><output aria-live=\"polite\"></output></form>\n"
        "<div class=\"scroll long\" tabindex=\"0\" role=\"group\" aria-label=\"Models\"><table class=\"ranked\" "
        "id=\"t-models\"><caption class=\"hidden\">Models, the longest time of a run first</caption><thead><tr>",
        p->out);
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) {
        const bool number = heads[k][0] == '#';
        fprintf(p->out, "<th scope=\"col\"%s>%s</th>", number ? " class=\"n\"" : "", heads[k] + number);
    }
    fputs("</tr></thead><tbody>\n", p->out);
    for (size_t k = 0; k < i->model_count; k++) {
        const arena_mark mark = arena_save(&p->arena);
        model(s, k + 1, &i->models[k]);
        arena_rewind(&p->arena, mark);
    }
    fputs("</tbody></table></div>\n</section>\n", p->out);
}

static void head(sheet *s) {
    page *p = &s->p;
    const history_index *i = s->shown->index;
    fprintf(p->out, "<header>\n<h1>%zu model%s over %" PRId64 " night%s</h1>\n<p class=\"meta\">", i->model_count,
            plural((int64_t)i->model_count), i->nights, plural(i->nights));
    if (i->night) fprintf(p->out, "last night: %s · ", index_date_of(i->at).s);
    fprintf(p->out, "%s operation%s · history of %s</p>\n", page_whole((double)i->series).s, plural(i->series),
            page_bytes((double)i->bytes).s);
    fputs("<nav aria-label=\"Contents\"><ul><li><a href=\"#changes1\">What changed</a></li><li><a "
          "href=\"#models1\">Models</a></li></ul></nav>\n</header>\n<main id=\"main\">\n",
          p->out);
}

bool page_index(const history_shown *shown, FILE *out, status *st) {
    sheet s = {.p = {.out = out, .number = 1}, .shown = shown};
    page *p = &s.p;
    guard_init(&p->guard);
    arena_init(&p->arena, &p->guard, PAGE_MEMORY);
    const bool good = guard_enter(&p->guard);
    if (good) {
        s.here = shown->folder ? realpath(shown->folder, NULL) : NULL;
        page_begin(p, "zoo", "what changed");
        head(&s);
        last_night(&s);
        models(&s);
        page_end(p, "An operation is SLOWER or FASTER where eight repetitions in the same night said so, too.");
    } else
        *st = p->guard.st;
    free(s.here);
    arena_free(&p->arena);
    return good;
}
