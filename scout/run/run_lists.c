/* The runs that measure no operation: a device's ceilings, and the lists. */
#include "scout/run/run_internal.h"

#include "common/files.h"

#include <stdlib.h>
#include <string.h>

static const size_t MOST_MEMORY = (size_t)256 << 20;

/* ---- ceilings ---- */

/* "DIR/ceilings_cuda0_sustained-graph.json", or the one file that was named. */
static bool save_ceilings(const run *r, const run_device *d, status *st) {
    const options *o = r->options;
    char path[4096], name[40];
    size_t n = 0;
    if (!o->output || !d->json) return true;
    for (const char *s = d->about->name; *s && n + 1 < sizeof name; s++)
        if (*s != ':' && *s != '/') name[n++] = *s;
    name[n] = 0;
    if (!o->output_is_file && !files_make_folders(o->output, st)) return false;
    const int length = o->output_is_file
                           ? snprintf(path, sizeof path, "%s", o->output)
                           : snprintf(path, sizeof path, "%s/ceilings_%s_%s-%s.json", o->output, name,
                                      regime_load_names[o->regime.load], regime_launch_names[o->regime.launch]);
    if (length >= (int)sizeof path) return status_fail(st, STATUS_USAGE, "--output: the name is too long");
    if (!o->output_is_file && run_files_refuse_link(path, st)) return false;
    json_builder b = {0};
    json_t *root = json_deep_copy(d->json);
    if (d->audit) json_put(&b, root, "audit", json_deep_copy(d->audit));
    root = json_finish(&b, root, st);
    const bool good = root && json_save(path, root, st);
    json_decref(root);
    return good;
}

static void ceilings_end(run *r, bool good, status *st) {
    show_progress_end(&r->progress);
    bool kept = false;
    for (int k = 0; k < r->device_count; k++) kept = kept || r->devices[k].kept;
    if (*r->stop)
        status_set(st, STATUS_INCOMPLETE,
                   kept ? "interrupted; the parts that were done are kept, and the same command measures the rest"
                        : "interrupted before a part was done; nothing of it is kept");
    for (int k = 0; k < r->device_count; k++) {
        const run_device *d = &r->devices[k];
        status bad = {0};
        if (d->ceilings && !r->options->quiet)
            show_ceilings(stdout, &r->arena, d->about, &r->options->regime, d->ceilings, d->audit);
        if (!*r->stop && !save_ceilings(r, d, &bad)) *st = bad; /* a file has all of them */
        if (d->why[0] && good && st->code == STATUS_OK)
            status_set(st, STATUS_ENVIRONMENT, "%s: %s", d->about->name, d->why);
    }
    cache_trim(&r->cache);
}

static void ceilings_work(run *r, status *st) {
    const options *o = r->options;
    const unsigned all = (1U << RUN_PRECISIONS) - 1;
    r->wanted = o->precision ? run_precision_bit(o->precision) : all;
    if (!run_start(r, st)) return;
    if (o->output_is_file && r->device_count > 1) {
        status_set(st, STATUS_USAGE, "%s can hold the ceilings of one device, not of %d; name a folder", o->output,
                   r->device_count);
        return;
    }
    if (o->k_sweep) {
        /* such products take too long on a CPU at half precision */
        const bool gpu = strncmp(r->devices[0].about->name, "cpu", 3) != 0;
        r->sweep_precision = o->precision ? o->precision : gpu ? "fp16" : "fp32";
        r->sweep_m = r->sweep_n = 8192;
    }
    if (!run_queue_begin(r, st)) return;
    ceilings_end(r, run_queue_work(r, st), st);
    run_queue_rest(r);
}

status_code run_ceilings(const options *o, const volatile int *stop, status *st) {
    return run_whole(o, stop, MOST_MEMORY, ceilings_work, st);
}

/* ---- lists ---- */

typedef void list_show(FILE *out, arena *a, const json_t *list);

static void warn(void *context, const char *text) {
    const options *o = context;
    if (!o->quiet) status_print(stderr, "scout_batch", "warning: ", text);
}

json_t *run_list_ask(const options *o, const char *what, const json_t *body, status *st) {
    const supervisor_options with = {.program = "/proc/self/exe",
                                     .library_path = o->library_path,
                                     .plugins = o->plugins,
                                     .plugin_count = o->plugin_count,
                                     .devices = "auto",
                                     .warn = warn,
                                     .warn_context = (void *)(uintptr_t)o,
                                     .start_seconds = 60};
    return supervisor_ask(&with, what, body, st);
}

static status_code ask_and_show(const options *o, const char *what, list_show *show, status *st) {
    json_t *list = run_list_ask(o, what, NULL, st);
    guard g;
    arena a;
    const bool named = o->mode == OPTIONS_DEVICES && o->devices && strcmp(o->devices, "auto") != 0;
    if (list && named) list = supervisor_only_named(list, o->devices, st);
    if (!list) return st->code;
    guard_init(&g);
    arena_init(&a, &g, MOST_MEMORY);
    if (guard_enter(&g))
        show(stdout, &a, list);
    else
        *st = g.st;
    arena_free(&a);
    json_decref(list);
    return st->code;
}

status_code run_list_devices(const options *o, status *st) { return ask_and_show(o, "devices", show_devices, st); }

status_code run_list_candidates(const options *o, status *st) {
    return ask_and_show(o, "candidates", show_candidates, st);
}

status_code run_cache_info(const options *o, status *st) {
    char folder[4096];
    cache_info *rows = NULL;
    int count = 0;
    guard g;
    arena a;
    if (!cache_list(o->cache_dir, folder, sizeof folder, &rows, &count, st)) return st->code;
    guard_init(&g);
    arena_init(&a, &g, MOST_MEMORY);
    if (guard_enter(&g))
        show_cache(stdout, &a, folder, rows, count);
    else
        *st = g.st;
    arena_free(&a);
    free(rows);
    return st->code;
}
