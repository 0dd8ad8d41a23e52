/* Owns the commands that stand beneath a summary: what to type next, and what it is for. They follow from what is
 * partial, from run.json beside the reports, which tells how these were measured, and from the folders beside this one.
 */
#include "analyze/study/study_internal.h"
#include "analyze/study/summary.h"

#include "common/files.h"
#include "common/json.h"
#include "common/plain.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NEXT = 4, MOST_BESIDE = 64, LONGEST_WORD = 1000 };
static const double usual_early_exit = 0.97;

typedef struct maker {
    study *s;
    summary_group *to;
    const char *folder; /* that the reports are in, as it can be opened */
    json_t *run, *other;
    DIR *beside;
} maker;

/* ---- words of a shell ---- */

static bool is_plain(const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@,:+-=%";
    return *word && strspn(word, plain) == strlen(word);
}

/* One word, whatever is in it (can_type): what is not plain stands between single quotes. */
static const char *word(maker *m, const char *text) {
    arena *a = &m->s->arena;
    const char *quoted = "'";
    if (is_plain(text)) return text;
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "'");
        quoted = arena_printf(a, "%s%.*s%s", quoted, (int)n, at, at[n] ? "'\\''" : "");
        at += n + (at[n] == '\'');
    }
    return arena_printf(a, "%s'", quoted);
}

/* Nothing that would be cut or changed, or be taken for an option. */
static bool can_type(maker *m, const char *text) {
    return *text && *text != '-' && strcmp(plain_cell(&m->s->arena, text, LONGEST_WORD), text) == 0;
}

static void say(maker *m, const char *command, const char *why) {
    summary_next *next = (summary_next *)m->to->next; /* of MOST_NEXT, which make_next took */
    next[m->to->next_count++] = (summary_next){command, why};
}

/* The thresholds of this summary, where they are not the usual ones: with others a verdict may be another one. */
static const char *thresholds(maker *m) {
    typedef struct holder {
        verdict_thresholds all;
    } holder;
    static const cli_option rows[] = {THRESHOLDS_OPTIONS(holder, all)};
    const holder used = {m->s->options.thresholds}, usual = {verdict_defaults};
    const char *options = "";
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const double x = *(const double *)((const char *)&used + rows[k].offset),
                     y = *(const double *)((const char *)&usual + rows[k].offset);
        if (x != y) options = arena_printf(&m->s->arena, "%s --%s %.15g", options, rows[k].name, x);
    }
    return options;
}

/* ---- measuring again ---- */

/* "burst-cold-graph" as options; what is usual is not said. */
static const char *regime_options(maker *m) {
    static const struct {
        const char *is, *option;
    } parts[] = {{"burst-", " --regime burst"},
                 {"-cold-", " --cache cold"},
                 {"-hot-", " --cache hot"},
                 {"-direct", " --launch direct"}};
    const char *options = "";
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
        if (strstr(m->to->group->regime, parts[k].is))
            options = arena_printf(&m->s->arena, "%s%s", options, parts[k].option);
    return options;
}

/* The shared objects beside which was measured; NULL: one of them cannot be typed. */
static const char *plugin_options(maker *m, const json_t *options) {
    const json_t *plugins = json_object_get(options, "plugins");
    const char *all = "";
    for (size_t k = 0; k < json_array_size(plugins); k++) {
        const char *file = json_string_value(json_array_get(plugins, k));
        if (!file || !can_type(m, file)) return NULL;
        all = arena_printf(&m->s->arena, "%s --custom-kernel %s", all, word(m, file));
    }
    return all;
}

/* Figures of how it was measured, where they were asked for. */
static const char *figure_options(maker *m, const json_t *options) {
    arena *a = &m->s->arena;
    const double target = json_get_positive(options, "target_ci"), least = json_get_positive(options, "min_time_s"),
                 early = json_get_positive(options, "early_exit");
    const char *all = "";
    if (json_is_false(json_object_get(options, "fusions"))) all = " --no-fusions";
    if (json_is_true(json_object_get(options, "exhaustive"))) all = arena_printf(a, "%s --exhaustive", all);
    if (target < 1) all = arena_printf(a, "%s --target-ci %.6g%%", all, 100 * target);
    if (least < 1e6) all = arena_printf(a, "%s --min-time %.6gs", all, least);
    if (early < 1 && early != usual_early_exit) all = arena_printf(a, "%s --early-exit %.6g", all, early);
    return all;
}

/* As these reports were measured; NULL: not of a file of operations, or not known. */
static const char *scout_command(maker *m) {
    static const struct {
        const char *member, *option;
    } kept[] = {{"device", "device"},
                {"precision", "precision"},
                {"only", "only"},
                {"candidate", "candidate"},
                {"library_path", "library-path"}};
    arena *a = &m->s->arena;
    const json_t *options = json_object_get(m->run, "options");
    const char *ops = arena_printf(a, "%s/ops.json", m->folder);
    if (access(ops, F_OK) != 0) ops = json_get_text(options, "operations");
    const char *plugins = plugin_options(m, options);
    if (!plugins || !can_type(m, ops) || !can_type(m, m->folder) || access(ops, F_OK) != 0) return NULL;
    const char *command = arena_printf(a, "ceiling-scout measure %s -o %s", word(m, ops), word(m, m->folder));
    for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++) {
        const char *value = json_get_text(options, kept[k].member);
        if (can_type(m, value)) command = arena_printf(a, "%s --%s %s", command, kept[k].option, word(m, value));
    }
    return arena_printf(a, "%s%s%s%s", command, plugins, regime_options(m), figure_options(m, options));
}

/* Twice what there was. */
static const char *more_time(maker *m) {
    const double budget_s = json_get_positive(json_object_get(m->run, "options"), "budget_s");
    const double seconds = fmax(budget_s, isfinite(budget_s) ? 0 : json_get_positive(m->run, "seconds"));
    return seconds > 0 && seconds < 1e6 ? arena_printf(&m->s->arena, " --budget %.0f", ceil(2 * seconds / 10) * 10)
                                        : NULL;
}

static void say_scout(maker *m) {
    const study_group *g = m->to->group;
    const char *command = scout_command(m), *time = more_time(m);
    const int64_t wide = json_get_int(m->run, "wide", 0);
    arena *a = &m->s->arena;
    if (!command) return;
    if (g->course.absent + g->course.unread + g->course.absent_fusions > 0)
        say(m, arena_printf(a, "%s --resume", command), "measures what was not reached; analyze it again then");
    else if (g->course.state)
        say(m, arena_printf(a, "%s --resume", command), "ends the run; analyze it again then");
    else if (g->partial.late > 0 && time)
        say(m, arena_printf(a, "%s --resume%s", command, time), "measures what there was no time for");
    else if (wide > 0 && time)
        say(m, arena_printf(a, "%s%s", command, time),
            arena_printf(a, "narrows the intervals of %lld operation%s", (long long)wide, wide == 1 ? "" : "s"));
}

/* ---- the run before ---- */

static bool has_operation(const json_t *run, const char *id) {
    const json_t *list = json_object_get(run, "operations");
    for (size_t k = 0; k < json_array_size(list); k++)
        if (strcmp(json_get_text(json_array_get(list, k), "operation"), id) == 0) return true;
    return false;
}

/* Of the same model under the same regime, with the operation that comes first here. */
static bool is_before(const maker *m, const char *latest) {
    static const char *const same[] = {"model", "regime"};
    for (size_t k = 0; k < sizeof same / sizeof same[0]; k++)
        if (!plain_same(json_get_text_or_null(m->run, same[k]), json_get_text_or_null(m->other, same[k]))) return false;
    const char *started = json_get_text(m->other, "started");
    return strcmp(started, json_get_text(m->run, "started")) < 0 && strcmp(started, latest) > 0 &&
           json_get_int(m->other, "method", -1) == m->to->group->method &&
           has_operation(m->other, m->to->rows[0].report->operation);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* In an order that no file system decides. */
static size_t names_in(maker *m, const char *folder, void **names) {
    size_t count = 0, room = 0;
    m->beside = opendir(folder);
    for (const struct dirent *e; m->beside && (e = readdir(m->beside));) {
        if (e->d_name[0] == '.' || e->d_name[0] == '-') continue;
        arena_grow(&m->s->arena, names, &room, count, sizeof(const char *));
        ((const char **)*names)[count++] = arena_strndup(&m->s->arena, e->d_name, strlen(e->d_name));
    }
    if (count > 0) qsort(*names, count, sizeof(const char *), by_name);
    return count;
}

/* The latest of those that began earlier. */
static void say_compare(maker *m) {
    arena *a = &m->s->arena;
    const char *parent = arena_printf(a, "%s/..", m->folder), *found = NULL, *latest = "";
    const char *name = files_base(m->folder);
    int looked = 0;
    if (*name == '.' || !can_type(m, m->folder)) return;
    if (name > m->folder) parent = arena_strndup(a, m->folder, (size_t)(name - m->folder) - (name - m->folder > 1));
    if (!*parent || name == m->folder) parent = ".";
    void *names = NULL;
    const size_t count = names_in(m, parent, &names);
    for (size_t k = 0; k < count && looked < MOST_BESIDE; k++) {
        const char *beside = ((const char **)names)[k];
        const char *one = name == m->folder ? beside : arena_printf(a, "%s/%s", parent, beside);
        status st = {0};
        if (strcmp(beside, name) == 0) continue;
        const char *reports = arena_printf(a, "%s/reports", one);
        if (access(reports, F_OK) != 0) continue;
        looked++;
        m->other = study_beside_report(arena_printf(a, "%s/", reports), "run", &st);
        if (m->other && is_before(m, latest)) {
            const char *started = json_get_text(m->other, "started");
            latest = arena_strndup(a, started, strlen(started));
            found = arena_strndup(a, one, strlen(one));
        }
        json_decref(m->other);
        m->other = NULL;
    }
    if (found && can_type(m, found))
        say(m, arena_printf(a, "ceiling-scout compare %s %s%s", word(m, found), word(m, m->folder), thresholds(m)),
            "what became slower or faster since the run before");
}

/* ---- all ---- */

static void say_explain(maker *m) {
    const summary_row *row = &m->to->rows[0];
    if (m->to->row_count == 0 || row->outcome == SUMMARY_OUTSIDE || !can_type(m, m->folder) ||
        !can_type(m, row->report->operation))
        return;
    say(m,
        arena_printf(&m->s->arena, "ceiling-scout explain %s %s%s", word(m, m->folder), word(m, row->report->operation),
                     thresholds(m)),
        summary_to_do(row->outcome) ? "why this comes first, and what would change it"
                                    : "all that is known of the first");
}

/* A model's folder, also where its folder of reports was named. */
static const char *folder_of(study *s, const char *path) {
    size_t n = (size_t)(files_base(path) - path);
    while (n > 1 && path[n - 1] == '/') n--;
    const char *folder = arena_strndup(&s->arena, path, n), *name = files_base(folder);
    if (strcmp(name, "reports") != 0) return folder;
    for (n = (size_t)(name - folder); n > 1 && folder[n - 1] == '/';) n--;
    return n > 0 ? arena_strndup(&s->arena, folder, n) : ".";
}

static void make(maker *m) {
    status st = {0};
    const study_group *g = m->to->group;
    m->to->next = arena_array(&m->s->arena, summary_next, MOST_NEXT);
    if (g->count == 0) return;
    m->folder = folder_of(m->s, m->to->rows[0].report->path);
    m->run = g->models == 1 ? study_beside_report(m->to->rows[0].report->path, "run", &st) : NULL;
    if (m->run) say_scout(m);
    say_explain(m);
    if (m->run) say_compare(m);
}

static bool make_guarded(maker *m, guard *own) {
    if (!guard_enter(own)) return false;
    make(m);
    return true;
}

void summary_make_next(study *s, summary_group *to) {
    maker m = {.s = s, .to = to};
    guard *const outer = s->arena.guard;
    guard own;
    guard_init(&own);
    s->arena.guard = &own;
    const bool good = make_guarded(&m, &own);
    s->arena.guard = outer;
    json_decref(m.run);
    json_decref(m.other);
    if (m.beside) closedir(m.beside);
    if (!good) guard_fail(outer, own.st.code, "%s", own.st.text);
}
