/* analyze explain DIR ID: all that is known of one operation. */
#include "analyze/command.h"

#include "analyze/explain/explain.h"
#include "analyze/study/study.h"
#include "common/version.h"

#include <string.h>

enum { WIDTH = 100 }; /* of what is no terminal */

typedef struct settings {
    int64_t top;
    verdict_thresholds thresholds;
    cli_positionals words;
} settings;

#define AT(field) offsetof(settings, field)

static const cli_option options[] = {
    {.name = "top",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(top),
     .min = 0,
     .max = 1000000,
     .help = "number of layers, and of candidates without a time, that are listed (30); 0: all"},
    THRESHOLDS_OPTIONS(settings, thresholds),
};

static const char after[] =
    "examples:\n"
    "  analyze explain out/bert attention                     the only id that begins so\n"
    "  analyze explain out/bert layer.3/attention/self/query  the one with this layer of the model\n"
    "  analyze explain out/bert gemm_1024x768 --top 0        with every candidate\n"
    "  analyze explain out/bert attention --ceiling 0.8       what if 80 % of the ceiling were enough?\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but files were left out and are missing from the model's time\n"
    "  2  wrong usage, or ID names no operation or several\n"
    "  3  there are no reports, or this one is invalid\n"
    "  4  memory, disk or another condition of this machine\n";

/* ---- which one is meant ---- */

/* How much of what was asked for is in an id: its start, then all of it anywhere, then a common start. */
static size_t likeness(const char *id, const char *asked) {
    const size_t all = strlen(asked);
    size_t n = 0;
    while (id[n] && id[n] == asked[n]) n++;
    return n == all ? all + 2 : strstr(id, asked) ? all + 1 : n;
}

typedef struct nearest {
    const char *asked;
    const char *ids[5]; /* the most alike first */
    size_t likeness[5];
    size_t count, starts; /* of ids; operations that start as asked */
} nearest;

static void look_at(nearest *near, const study_report *reports, size_t count) {
    enum { ROOM = sizeof near->ids / sizeof near->ids[0] };
    for (size_t k = 0; k < count; k++) {
        const char *id = reports[k].operation;
        const size_t like = likeness(id, near->asked);
        size_t at = near->count < ROOM ? near->count++ : ROOM;
        near->starts += like == strlen(near->asked) + 2;
        for (; at > 0 && like > near->likeness[at - 1]; at--) {
            if (at == ROOM) continue;
            near->ids[at] = near->ids[at - 1];
            near->likeness[at] = near->likeness[at - 1];
        }
        if (at == ROOM) continue;
        near->ids[at] = id;
        near->likeness[at] = like;
    }
}

static status_code fail_unknown(const study *s, const char *asked, status *st) {
    nearest near = {.asked = asked};
    char list[640] = "";
    size_t used = 0;
    for (size_t k = 0; k < s->group_count; k++) {
        look_at(&near, s->groups[k].reports, s->groups[k].count);
        look_at(&near, s->groups[k].fusions, s->groups[k].fusion_count);
    }
    if (near.starts > 1 && near.starts < near.count) near.count = near.starts;
    for (size_t k = 0; k < near.count && used < sizeof list; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.100s", k > 0 ? ", " : "", near.ids[k]);
    if (near.starts > 1)
        return status_set(st, STATUS_USAGE, "%zu operations begin with '%.100s'; give more of the id: %s%s",
                          near.starts, asked, list, near.starts > near.count ? ", …" : "");
    return status_set(st, STATUS_USAGE,
                      "no operation begins with '%.100s', no layer has it in its name; the nearest are %s", asked,
                      list);
}

static status_code fail_several(const study_group *g, const char *asked, size_t count, status *st) {
    char list[640] = "";
    size_t used = 0, told = 0;
    for (size_t k = 0; k < g->count && used < sizeof list && told < 5; k++) {
        const study_report *one = NULL;
        const study_group alone = {.reports = &g->reports[k], .count = 1};
        if (study_find_layer(&alone, asked, &one) == 0) continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.100s", told++ > 0 ? ", " : "", one->operation);
    }
    return status_set(st, STATUS_USAGE, "%zu operations have layers with '%.100s'; give one of their ids: %s%s", count,
                      asked, list, count > told ? ", …" : "");
}

/* ---- the command ---- */

static status_code explain_one(study *s, const study_group *group, const study_report *r, size_t most, status *st) {
    status left_out = {0};
    json_t *report = study_detail(r, st), *run = study_beside_report(r->path, "run", &left_out),
           *plan = study_beside_report(r->path, "plan", &left_out);
    const explain e = {.to = terminal_of(stdout, WIDTH),
                       .arena = &s->arena,
                       .group = group,
                       .r = r,
                       .thresholds = &s->options.thresholds,
                       .report = report,
                       .run = run,
                       .plan = plan,
                       .most = most};
    if (report) {
        if (guard_enter(&s->guard))
            explain_write(&e);
        else
            *st = s->guard.st;
    }
    json_decref(report);
    json_decref(run);
    json_decref(plan);
    return st->code;
}

/* In every group that has it: the same operation on two devices, or in two regimes. */
static status_code explain_all(study *s, const settings *with, status *st) {
    const char *asked = with->words.items[1];
    size_t found = 0;
    for (size_t k = 0; k < s->group_count; k++) {
        const study_report *r = study_find(&s->groups[k], asked);
        const size_t layers = r ? 0 : study_find_layer(&s->groups[k], asked, &r);
        if (layers > 1) return fail_several(&s->groups[k], asked, layers, st);
        if (!r) continue;
        if (found++ > 0) fputs("\n\n", stdout);
        if (explain_one(s, &s->groups[k], r, (size_t)with->top, st) != STATUS_OK) return st->code;
    }
    if (found == 0) return fail_unknown(s, asked, st);
    if (s->skipped_count == 0) return STATUS_OK;
    return status_set(st, STATUS_INCOMPLETE, "%zu file%s left out of the model's time; analyze %s names them",
                      s->skipped_count, s->skipped_count == 1 ? " was" : "s were", with->words.items[0]);
}

static status_code run(const settings *with, status *st) {
    study s;
    const study_options how = {.folders = with->words.items,
                               .folder_count = 1,
                               .thresholds = with->thresholds,
                               .told = left_out_tell,
                               .layers = true,
                               .group = true};
    if (!study_open(&s, &how, st)) return st->code;
    const status_code code = explain_all(&s, with, st);
    study_close(&s);
    return code;
}

status_code command_explain(int argc, char **argv, status *st) {
    const char *words[2] = {NULL, NULL};
    settings s = {.top = 30, .thresholds = verdict_defaults, .words.items = words};
    const cli_spec spec = {
        .program = "analyze explain",
        .version = version_text,
        .usage = "DIR ID [--top N] [thresholds]",
        .about =
            "Explains one operation: its ceilings and what bounds it, the candidates and their times, why one "
            "was\nchosen, the rule that made the verdict, the distance to every threshold, and what would change "
            "the\nverdict. ID is the id of an operation or a fusion, a beginning of it that no other id has, or the\n"
            "name of a layer of the model, or a part of that.",
        .after = after,
        .options = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .positional = "DIR or ID",
        .least = 2,
        .most = 2,
        .positionals = AT(words),
    };
    switch (cli_parse(&spec, argc, argv, &s, st)) {
    case CLI_RUN: return thresholds_check(&s.thresholds, st) ? run(&s, st) : st->code;
    case CLI_DONE: return STATUS_OK;
    case CLI_WRONG: break;
    }
    return st->code;
}
