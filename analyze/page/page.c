/* Owns the page as a whole: what comes before what, and that nothing in it can fetch or run anything but its own sheet
 * and script, which are let through by their hashes. */
#include "analyze/page/page.h"
#include "analyze/page/page_assets.h"
#include "analyze/page/page_internal.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    void (*write)(page *p);
    const char *id, *title; /* in the list of contents; NULL: not there */
} sections[] = {
    {page_first, "first", "What to do first"},
    {page_tracks, NULL, NULL},
    {page_roofline, "roof", "Roofline"},
    {page_categories, "time", "Where the time goes"},
    {page_table, "all", "All operations"},
    {page_operations, "each", "Each operation"},
    {page_over_time, NULL, NULL},
    {page_fusions, NULL, NULL},
    {page_crossover, NULL, NULL},
    {page_along, NULL, NULL},
    {page_device, "device", "Method and device"},
    {page_missing, "missing", "What is missing"},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

void page_begin(page *p, const char *name, const char *what) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\" class=\"plain\">\n<head>\n<meta charset=\"utf-8\">\n", p->out);
    fprintf(p->out,
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-%s'; "
            "script-src 'sha256-%s'; "
            "base-uri 'none'; form-action 'none'\">\n",
            page_css_hash, page_js_hash);
    fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
          "content=\"light dark\">\n"
          "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"robots\" content=\"noindex\">\n<title>",
          p->out);
    page_say_cut(p, name, PAGE_NAME);
    fprintf(p->out, ": %s</title>\n<style>", what);
    fputs(page_css, p->out);
    fputs("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">to the contents</a>\n", p->out);
}

/* The words of a regime, as people say them: "sustained load, model cache, graph launch". */
void page_regime(page *p, const char *text) {
    static const char *const behind[] = {" load", " cache", " launch"};
    const char *at = text;
    for (size_t k = 0; at && *at; k++) {
        const char *end = strchr(at, '-');
        const size_t n = end ? (size_t)(end - at) : strlen(at);
        if (k) fputs(", ", p->out);
        page_say_cut(p, arena_strndup(&p->arena, at, n), 40);
        if (k < sizeof behind / sizeof behind[0]) fputs(behind[k], p->out);
        at = end ? end + 1 : NULL;
    }
}

static void title(page *p) {
    const study_group *g = p->g->group;
    const summary_sum *all = &p->g->all; /* as every other format counts them */
    fprintf(p->out, "<h1 id=\"group%zu\">", p->number);
    page_say_cut(p, g->model, PAGE_NAME);
    fputs(" on ", p->out);
    page_say_cut(p, g->device, PAGE_NAME);
    fputs("</h1>\n<p class=\"meta\">", p->out);
    page_regime(p, g->regime);
    const int64_t places = all->occurrences - p->g->outcomes[SUMMARY_MISSING].occurrences;
    fprintf(p->out, " · %zu operation%s in %" PRId64 " place%s", all->measured, all->measured == 1 ? "" : "s", places,
            places == 1 ? "" : "s");
    if (*page_string(p->run, "started")) {
        fputs(" · measured ", p->out);
        page_say_cut(p, page_string(p->run, "started"), 24);
    }
    fputs("</p>\n", p->out);
    if (g->partial.text) fprintf(p->out, "<p class=\"partial\" role=\"note\">%s</p>\n", g->partial.text);
}

static void contents(page *p) {
    char contents_of[32] = "Contents";
    if (p->m->group_count > 1) snprintf(contents_of, sizeof contents_of, "Contents, %zu", p->number);
    fprintf(p->out, "<nav aria-label=\"%s\"><ul>", contents_of);
    for (size_t k = 0; k < SECTIONS; k++)
        if (sections[k].id)
            fprintf(p->out, "<li><a href=\"#%s%zu\">%s</a></li>", sections[k].id, p->number, sections[k].title);
    fputs("</ul></nav>\n", p->out);
}

/* The device of run.json that this group was measured on. */
static json_t *device_of(const page *p) {
    size_t k;
    json_t *one, *all = json_object_get(p->run, "devices");
    const char *wanted = p->g->group->device_class;
    json_array_foreach(all, k, one) if (wanted && strcmp(page_string(one, "class"), wanted) == 0) return one;
    return NULL;
}

static void group(page *p, size_t k) {
    const arena_mark mark = arena_save(&p->arena);
    p->g = &p->m->groups[k];
    p->number = k + 1;
    status left_out = {0};
    p->run = p->g->group->count ? study_beside_report(p->g->group->reports[0].path, "run", &left_out) : NULL;
    p->device = device_of(p);
    p->moments = arena_array(&p->arena, page_moment, p->g->row_count + 1);
    p->moment_count = 0;
    if (p->m->group_count == 1) {
        fputs("<header>\n", p->out);
        title(p);
        contents(p);
        fputs("</header>\n<main id=\"main\">\n", p->out);
    } else {
        fputs("<div class=\"group\">\n", p->out);
        title(p);
        contents(p);
        fputs("</div>\n", p->out);
    }
    for (size_t s = 0; s < SECTIONS; s++) sections[s].write(p);
    json_decref(p->run);
    p->run = p->device = NULL;
    arena_rewind(&p->arena, mark);
}

void page_end(page *p, const char *says) {
    fprintf(p->out,
            "</main>\n<footer>Written by ceiling-scout from the reports alone: the same reports give the same page. "
            "%s</footer>\n<script>",
            says);
    fputs(page_js, p->out);
    fputs("</script>\n</body>\n</html>\n", p->out);
}

bool page_write(const summary *m, FILE *out, status *st) {
    page p = {.out = out, .m = m};
    guard_init(&p.guard);
    arena_init(&p.arena, &p.guard, PAGE_MEMORY);
    const bool good = guard_enter(&p.guard);
    if (good) {
        page_begin(&p,
                   m->group_count > 1    ? arena_printf(&p.arena, "%zu beside each other", m->group_count)
                   : m->group_count == 1 ? m->groups[0].group->model
                                         : "",
                   "what to do first");
        if (m->group_count > 1) page_models(&p);
        for (size_t k = 0; k < m->group_count; k++) group(&p, k);
        page_end(&p, "Proven gains were measured; potential ones are the distance to a measured ceiling, and the two "
                     "are never added up.");
    } else
        *st = p.guard.st;
    json_decref(p.run);
    json_decref(p.trace);
    arena_free(&p.arena);
    return good;
}
