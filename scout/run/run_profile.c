/* One operation under a profiler: --run-once has a worker launch one candidate a few times and measure nothing,
 * --counters puts what the profiler counted into the report. The report in the folder names the best and the
 * baseline. */
#include "scout/run/run_internal.h"

#include "common/files.h"
#include "common/json.h"
#include "common/rows_table.h"
#include "scout/input/weights.h"
#include "scout/report/counters.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAUNCHES = 3, REPORT_BYTES = 64 << 20, COUNTERS_BYTES = 64 << 20 };
static const size_t MOST_MEMORY = (size_t)2 << 30;

typedef struct profile {
    const options *options;
    guard guard;
    arena arena;
    operation_list list;
    const operation *operation;
    char path[4096]; /* of its report */
    json_t *report;  /* owned */
    show_progress progress;
    run_wait wait;
    run_lock lock, device; /* of the folder; while it launches */
    char name[64], variant[256];
    bool given;     /* the one job */
    json_t *result; /* owned */
    status failure;
} profile;

/* ---- which operation, and which row ---- */

/* Fails through the guard. */
static void find_operation(profile *p) {
    const options *o = p->options;
    operation_read(o->ops_path, o->precision, &p->arena, &p->list);
    weights_split(&p->list, json_string_value(json_object_get(json_object_get(p->list.root, "model"), "path")),
                  o->weight_threshold, &p->arena);
    weights_ask(&p->list, o->weight_threshold);
    for (int k = 0; k < p->list.count && !p->operation; k++)
        if (strcmp(p->list.items[k].id, o->only) == 0 || strcmp(p->list.items[k].name, o->only) == 0)
            p->operation = &p->list.items[k];
    if (!p->operation)
        guard_fail(&p->guard, STATUS_USAGE, "--only: %s has no operation of the id or name '%s'", o->ops_path, o->only);
}

/* What goes into a report stays in its folder, and no other run writes there meanwhile. */
static bool is_taken(profile *p, status *st) {
    const char *output = p->options->output;
    if (p->options->counters_count == 0) return false;
    const char *reports = arena_printf(&p->arena, "%s/reports", output);
    return run_files_refuse_link(reports, st) || run_files_refuse_link(p->path, st) ||
           (access(p->path, F_OK) == 0 && !run_lock_folder(&p->wait, output, &p->lock, st));
}

static void read_report(profile *p) {
    const json_limits limits = {.bytes = REPORT_BYTES};
    const char *id = p->operation->id;
    status st = {0};
    if (snprintf(p->path, sizeof p->path, "%s/reports/%s.json", p->options->output, id) >= (int)sizeof p->path)
        guard_fail(&p->guard, STATUS_USAGE, "--output: the folder's name is too long");
    if (is_taken(p, &st)) guard_fail(&p->guard, st.code, "%s", st.text);
    p->report = json_read(p->path, &limits, &st);
    if (!p->report || !json_check_schema(p->report, "report", 1, p->path, &st))
        guard_fail(&p->guard, st.code, "%s; measure it first, without --run-once and --counters", st.text);
    if (strcmp(json_get_text(p->report, "operation"), id) != 0)
        guard_fail(&p->guard, STATUS_INPUT, "%s: is the report of another operation; measure this one again", p->path);
}

/* "best", "baseline", or "NAME:VARIANT" up to `end`. */
static void choose_row(profile *p, const char *text, size_t length) {
    static const char *const roles[] = {"best", "baseline"};
    const char *colon = memchr(text, ':', length);
    const size_t name = colon ? (size_t)(colon - text) : length;
    snprintf(p->name, sizeof p->name, "%.*s", (int)name, text);
    snprintf(p->variant, sizeof p->variant, "%.*s", colon ? (int)(length - name - 1) : 0, colon ? colon + 1 : "");
    for (size_t k = 0; k < sizeof roles / sizeof roles[0]; k++) {
        char key[32];
        if (strcmp(p->name, roles[k]) != 0) continue;
        snprintf(key, sizeof key, "%s_variant", roles[k]);
        snprintf(p->name, sizeof p->name, "%s", json_get_text(p->report, roles[k]));
        snprintf(p->variant, sizeof p->variant, "%s", json_get_text(p->report, key));
        if (!p->name[0]) guard_fail(&p->guard, STATUS_INPUT, "%s: names no %s", p->path, roles[k]);
    }
}

/* ---- launching ---- */

/* Hot, for a profiler empties the caches itself; launched directly, so that each kernel is seen by itself. */
static json_t *next(void *context, int device, int *job) {
    static const regime launched = {REGIME_BURST, REGIME_HOT, REGIME_DIRECT};
    profile *p = context;
    json_builder b = {0};
    char key[64];
    (void)device;
    if (p->given) return NULL;
    p->given = true;
    *job = 0;
    json_t *to = json_new_object(&b);
    regime_key(&launched, key, sizeof key);
    json_put_text(&b, to, "what", "qualify");
    json_put_int(&b, to, "job", 0);
    json_put(&b, to, "operation", operation_to_json(p->operation, &b));
    json_put_text(&b, to, "regime", key);
    json_put_bool(&b, to, "exhaustive", true);
    json_put_int(&b, to, "workspace_limit", REGIME_WORKSPACE_BYTES);
    json_put_int(&b, to, "seed", 1);
    json_put_text(&b, to, "candidate", p->name);
    json_put_text(&b, to, "variant", p->variant);
    json_put_int(&b, to, "launches", LAUNCHES);
    return json_finish(&b, to, &p->failure);
}

static void done(void *context, int device, int job, const json_t *result, const status *st) {
    profile *p = context;
    (void)device, (void)job;
    p->result = result ? json_deep_copy(result) : NULL;
    if (!result) p->failure = *st;
}

static void judge(profile *p, status *st) {
    const json_t *row = json_array_get(p->result, 0);
    if (p->failure.code != STATUS_OK)
        *st = p->failure;
    else if (!row)
        status_set(st, STATUS_USAGE, "--run-once: %s has no variant '%s' here; --custom-kernel may be missing", p->name,
                   p->variant);
    else if (strcmp(json_get_text(row, "status"), "OK") != 0)
        status_set(st, STATUS_INCOMPLETE, "%s %s: %s: %s", p->name, p->variant, json_get_text(row, "status"),
                   json_get_text(json_object_get(row, "reason"), "text"));
}

static void launch(profile *p, const volatile int *stop, status *st) {
    const options *o = p->options;
    const char *measured_on = json_get_text(json_object_get(p->report, "device"), "name");
    const bool told = strcmp(o->devices, "auto") != 0;
    const supervisor_options with = {.program = "/proc/self/exe",
                                     .library_path = o->library_path,
                                     .plugins = o->plugins,
                                     .plugin_count = o->plugin_count,
                                     .devices = told || !measured_on[0] ? o->devices : measured_on,
                                     .start_seconds = 60};
    supervisor *s = supervisor_new(&with, st);
    if (!s) return;
    if (run_lock_device(&p->wait, supervisor_device_at(s, 0), &p->device, st) &&
        supervisor_run(s, next, done, NULL, p, stop, st))
        judge(p, st);
    run_lock_end(&p->device);
    supervisor_free(s);
}

/* ---- reading back ---- */

static bool take_counters(profile *p, const char *argument, status *st) {
    const char *file = strchr(argument, '=') + 1;
    json_builder b = {0};
    counters c;
    size_t size = 0;
    choose_row(p, argument, (size_t)(file - 1 - argument));
    json_t *row = rows_table_find(p->report, p->name, p->variant);
    if (!row) return status_fail(st, STATUS_USAGE, "--counters: %s has no row %s %s", p->path, p->name, p->variant);
    char *text = files_read(file, COUNTERS_BYTES, &size, st);
    const bool good = text && counters_read(text, size, file, &c, st);
    free(text);
    if (!good) return false;
    json_put(&b, row, "counters", counters_json(&c, &b));
    if (b.why) return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    if (!p->options->quiet) show_counters(stdout, &p->arena, row, &c);
    return true;
}

static void work(profile *p, const volatile int *stop, status *st) {
    const options *o = p->options;
    find_operation(p);
    read_report(p);
    if (o->run_once) {
        choose_row(p, o->run_once, strlen(o->run_once));
        launch(p, stop, st);
    }
    for (int k = 0; k < o->counters_count && st->code == STATUS_OK; k++)
        if (!take_counters(p, o->counters[k], st)) return;
    if (o->counters_count > 0 && st->code == STATUS_OK) json_save(p->path, p->report, st);
}

status_code run_profile(const options *o, const volatile int *stop, status *st) {
    profile *p = calloc(1, sizeof *p);
    if (!p) return status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    p->options = o;
    show_progress_init(&p->progress, o->quiet);
    p->wait = (run_wait){.options = o, .stop = stop, .progress = &p->progress};
    guard_init(&p->guard);
    arena_init(&p->arena, &p->guard, MOST_MEMORY);
    if (guard_enter(&p->guard))
        work(p, stop, st);
    else
        *st = p->guard.st;
    run_lock_end(&p->lock);
    show_progress_free(&p->progress);
    json_decref(p->report);
    json_decref(p->result);
    operation_list_free(&p->list);
    arena_free(&p->arena);
    free(p);
    return st->code;
}
