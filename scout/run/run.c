/* The sequence of a run: read the operations, start the workers, take what is known, measure the rest, write every
 * report at once, and write the verdicts when the model's time is known. Owns the state of the run. */
#include "scout/run/run_internal.h"

#include "common/clock.h"
#include "scout/input/sparsity.h"
#include "scout/input/weights.h"
#include "scout/kinds/kinds.h"
#include "scout/plan/distances.h"
#include "scout/report/crossover.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

static const size_t MOST_MEMORY = (size_t)2 << 30; /* of everything that the operations need here */

double run_now(void) { return clock_seconds(); }

void run_utc(char *text, size_t room) {
    struct timespec now = {0};
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    const size_t n = gmtime_r(&now.tv_sec, &parts) ? strftime(text, room, "%Y-%m-%dT%H:%M:%S", &parts) : 0;
    if (n > 0)
        snprintf(text + n, room - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
    else
        snprintf(text, room, "-");
}

void run_warn(run *r, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->options->quiet) return;
    show_progress_end(&r->progress);
    status_print(stderr, "scout_batch", "warning: ", text);
}

void run_warn_once(run *r, const char *text) {
    const uint64_t hash = XXH3_64bits(text, strlen(text));
    for (int k = 0; k < r->heard_count; k++)
        if (r->heard[k] == hash) return;
    if (r->heard_count < RUN_HEARD) r->heard[r->heard_count++] = hash;
    run_warn(r, "%s", text);
}

/* Every worker says it for itself: once is enough. */
static void hear(void *context, const char *text) { run_warn_once(context, text); }

/* ---- devices ---- */

bool run_start(run *r, status *st) {
    const options *o = r->options;
    const supervisor_options with = {.program = "/proc/self/exe",
                                     .library_path = o->library_path,
                                     .plugins = o->plugins,
                                     .plugin_count = o->plugin_count,
                                     .devices = o->devices,
                                     .warn = hear,
                                     .warn_context = r,
                                     .start_seconds = 60};
    show_progress_set(&r->progress, &(show_progress_state){.left_s = NAN,
                                                           .phases = "starting",
                                                           .phase = "starting",
                                                           .what = "the worker looks for devices"});
    r->supervisor = supervisor_new(&with, st);
    show_progress_end(&r->progress);
    if (!r->supervisor) return false;
    r->device_count = supervisor_device_count(r->supervisor);
    if (r->device_count > RUN_MOST_DEVICES) r->device_count = RUN_MOST_DEVICES;
    for (int k = 0; k < r->device_count; k++) {
        r->devices[k].about = supervisor_device_at(r->supervisor, k);
        if (strcmp(r->devices[k].about->device_class, r->devices[0].about->device_class) == 0) continue;
        return status_fail(st, STATUS_USAGE, "%s and %s are devices of different classes; measure each in its own run",
                           r->devices[0].about->name, r->devices[k].about->name);
    }
    if (r->device_count == 0)
        return status_fail(st, STATUS_ENVIRONMENT, "there is no device %s; scout_batch --list-devices lists them",
                           o->devices);
    if (!run_compare_names(r, &with, st)) return false;
    status bad = {0};
    if (!cache_open(&r->cache, o->cache_dir, r->devices[0].about->class_folder, 0, &bad)) run_warn(r, "%s", bad.text);
    for (int k = 0; k < r->device_count; k++) run_ceilings_load(r, &r->devices[k]);
    return true;
}

/* gives everything back */
static void run_end(run *r) {
    show_progress_free(&r->progress);
    supervisor_free(r->supervisor);
    run_samples_end(r, false); /* where that was not reached */
    for (int k = 0; k < r->device_count; k++) {
        free(r->devices[k].ceilings);
        json_decref(r->devices[k].json);
        json_decref(r->devices[k].audit);
    }
    for (int k = 0; r->items && k < r->item_count; k++) json_decref(r->items[k].measurement);
    for (int k = 0; k < r->device_count; k++) run_lock_end(&r->devices[k].lock);
    free(r->faults);
    run_lock_end(&r->lock);
    cache_close(&r->cache);
    operation_list_free(&r->list);
    arena_free(&r->arena);
}

/* ---- operations ---- */

static bool is_asked(const run *r, const operation *o) {
    const char *only = r->options->only;
    op_kind asked = OP_UNKNOWN;
    if (!only || strcmp(only, o->id) == 0 || strcmp(only, o->name) == 0) return true;
    return oprec_kind_from_name(only, &asked) && asked == o->rec.kind;
}

static void skip_item(run_item *i, const char *code, const char *text) {
    i->source = RUN_SKIPPED;
    i->status = ROW_SKIPPED;
    i->code = code;
    snprintf(i->text, sizeof i->text, "%.230s", text);
}

static void set_up_item(run *r, run_item *i) {
    const operation *o = i->operation;
    const bool turned = i - r->items >= r->layouts->own; /* of the model's kinds the file's are asked for */
    const bool named =
        r->options->only && (strcmp(r->options->only, o->id) == 0 || strcmp(r->options->only, o->name) == 0);
    i->key = operation_key(o, &r->arena);
    i->status = ROW_SKIPPED;
    if (!is_asked(r, o) || (turned && r->options->only && !named))
        i->source = RUN_LEFT;
    else if (o->skip_code)
        skip_item(i, o->skip_code, o->skip_text ? o->skip_text : "");
    else if (o->count == 0 && !r->search.exhaustive && !named)
        skip_item(i, "not_asked",
                  "a part of another operation, or in a branch that is not taken; --exhaustive measures it");
    else if (!kinds_find(o->rec.kind))
        skip_item(i, "no_candidate", "no implementation of this kind is known here yet");
}

/* All devices of a run are of one class, and have the same implementations. */
static void skip_foreign_kinds(run *r) {
    const supervisor_device *d = r->devices[0].about;
    for (int k = 0; k < r->list.count; k++) {
        run_item *i = &r->items[k];
        const op_kind of = i->operation->rec.kind;
        char text[128];
        if (i->source != RUN_PENDING || (d->kinds >> of & 1)) continue;
        snprintf(text, sizeof text, "no implementation of %s on %s is known yet", oprec_kind_name(of), d->name);
        skip_item(i, "no_candidate", text);
    }
}

static void read_model(run *r) {
    operation_read(r->options->ops_path, r->options->precision, &r->arena, &r->list);
    const char *const model = json_string_value(json_object_get(json_object_get(r->list.root, "model"), "path"));
    if (model && access(model, F_OK) != 0 && weights_wanted(&r->list))
        run_warn(r,
                 "%s, the model of these operations, cannot be read here (%s): the sparsity of its weights is unknown, "
                 "and they count as dense",
                 model, strerror(errno));
    weights_split(&r->list, model, r->options->weight_threshold, &r->arena);
}

static void read_words(run *r) {
    const options *o = r->options;
    operation_from_axes(&(operation_words){.kind = o->op,
                                           .shape = o->shape,
                                           .precision = o->precision,
                                           .pattern = o->pattern,
                                           .sparsity = o->sparsity,
                                           .sets = o->sets,
                                           .axes = o->axes,
                                           .set_count = o->sets_count,
                                           .axis_count = o->axes_count},
                        &r->arena, &r->list, &r->axes);
    for (int k = 0; o->sparse_block != sparsity_block && k < r->list.count; k++)
        r->list.items[k].sparse_block = (int)o->sparse_block;
}

/* A model whose dataflow is told, in a folder. */
static bool may_replay(const options *o, const operation_list *list) {
    return !o->no_replay && !o->compare && list->flow && o->output && !o->output_is_file;
}

/* All of it. */
static bool wants_replay(const options *o, const operation_list *list) { return may_replay(o, list) && !o->only; }

static void find_layouts(run *r) {
    r->layouts = arena_array(&r->arena, layouts, 1);
    r->layouts->own = r->list.count;
    if (may_replay(r->options, &r->list) && r->list.flow->occurrence_count <= RUN_MOST_OCCURRENCES)
        r->layouts = layouts_find(&r->list, REGIME_WORKSPACE_BYTES, &r->arena);
}

static void read_operations(run *r) {
    const options *o = r->options;
    if (o->sparsity_sweep)
        crossover_operations(o->shape, o->precision, o->pattern, (int)o->sparse_block, &r->arena, &r->list);
    else if (o->op)
        read_words(r);
    else
        read_model(r);
    weights_ask(&r->list, o->weight_threshold);
    find_layouts(r);
    if (!o->op && !o->no_fusions && !o->compare) fusion_read(&r->list, o->ops_path, &r->arena, &r->fusions);
    layouts_fusions(r->layouts, &r->list, &r->fusions, &r->arena);
    r->items = arena_array(&r->arena, run_item, r->list.count + r->fusions.count + 1);
    r->order = arena_array(&r->arena, int, r->list.count + r->fusions.count + 1);
    r->item_count = r->list.count + r->fusions.count;
    int asked = 0;
    for (int k = 0; k < r->list.count; k++) {
        r->items[k].operation = &r->list.items[k];
        set_up_item(r, &r->items[k]);
        asked += r->items[k].source != RUN_LEFT;
    }
    asked += run_fusion_set_up(r);
    if (o->only && asked == 0)
        guard_fail(&r->guard, STATUS_USAGE, "--only: %s has no operation, name, kind or fusion '%s'", o->ops_path,
                   o->only);
    if (o->output && o->output_is_file && asked != 1)
        guard_fail(&r->guard, STATUS_USAGE, "%s can hold one report, not %d; name a folder, or one operation by --only",
                   o->output, asked);
    if (o->k_sweep) {
        const oprec *rec = &r->list.items[0].rec;
        r->sweep_precision = operation_precision(&r->list.items[0]);
        r->sweep_m = rec->shape[0], r->sweep_n = rec->shape[1];
    }
}

/* ---- the end ---- */

static void show_all(run *r, double model_us) {
    report_input *inputs = arena_array(&r->arena, report_input, r->item_count + 1);
    int count = 0;
    for (int k = 0; k < r->layouts->own; k++) {
        const run_item *i = &r->items[k];
        if (i->source != RUN_LEFT && i->source != RUN_PENDING) inputs[count++] = run_input(r, i, model_us);
    }
    const bool alone = r->options->op && count == 1;
    if (alone)
        show_operation(stdout, &r->arena, &inputs[0]);
    else if (r->axes.count > 0)
        show_axes(stdout, &r->arena, inputs, count, &r->axes, r->list.items, show_width(stdout));
    else
        show_table(stdout, &r->arena, inputs, count, show_width(stdout));
    for (int k = 0; count > 1 && k < count; k++)
        if (inputs[k].operation->weight) show_weight_of(stdout, &r->arena, &inputs[k]);
    crossover *found;
    const int crossovers = crossover_find(inputs, count, &r->arena, &found);
    show_crossovers(stdout, &r->arena, found, crossovers);
    for (int k = 0; r->options->table && k < count; k++) show_variants(stdout, &r->arena, &inputs[k], !alone);
    if (r->options->compare && !alone) show_comparisons(stdout, &r->arena, inputs, count);
    count = 0;
    for (int k = r->list.count; k < r->item_count; k++) {
        const run_item *i = &r->items[k];
        const bool shown = i->source != RUN_LEFT && i->source != RUN_PENDING && !i->fusion->turned;
        if (shown) inputs[count++] = run_input(r, i, model_us);
    }
    show_fusions(stdout, &r->arena, inputs, count);
    for (int k = 0; r->options->table && k < count; k++) show_variants(stdout, &r->arena, &inputs[k], true);
}

/* Of a host: how much other work was in the way. */
static void show_dropped(const run_counts *c) {
    if (c->dropped > 0)
        printf("%.0f of %.0f blocks (%.1f %%) were disturbed by other work and dropped\n", c->dropped,
               c->blocks + c->dropped, 100 * c->dropped / (c->blocks + c->dropped));
}

/* Reports that were only cached are written here too, so that nothing finished is lost however the run ended. */
static void finish(run *r, bool good, status *st) {
    status saving = {0};
    run_fusion_derive(r);
    const run_counts counts = run_count(r);
    r->model_ci = counts.model_ci;
    r->interrupted = *r->stop != 0 && run_queue_pending(r) > 0;
    /* stopped in a later pass: every operation has its figure */
    const bool late = !good && *r->stop != 0 && !r->interrupted && st->code == STATUS_INCOMPLETE;
    const bool whole = (good || late) && !r->interrupted && r->failure.code == STATUS_OK;
    r->stopped = late;
    show_progress_end(&r->progress);
    run_files_reports(r, whole ? counts.model_us : -1);
    if (whole && r->options->ops_path) run_files_clean(r); /* one operation says nothing about what else is there */
    if (!run_json_save(r,
                       r->interrupted ? "interrupted"
                       : whole        ? "complete"
                                      : "failed",
                       &saving) &&
        r->failure.code == STATUS_OK)
        r->failure = saving;
    run_samples_end(r, true);
    cache_trim(&r->cache);
    if (!r->options->quiet) show_all(r, whole ? counts.model_us : -1);
    if (!r->options->quiet) show_dropped(&counts);
    if (r->failure.code != STATUS_OK) {
        *st = r->failure;
    } else if (r->interrupted) {
        const int left = run_queue_pending(r);
        status_set(st, STATUS_INCOMPLETE, "interrupted with %d operation%s left%s", left, left == 1 ? "" : "s",
                   r->options->output && !r->options->output_is_file && r->options->ops_path
                       ? "; the same command with --resume continues"
                       : "");
    } else if (late) {
        status_set(st, STATUS_INCOMPLETE,
                   "stopped while figures were refined: every operation has one, %d of them are wide%s", counts.wide,
                   r->options->output && !r->options->output_is_file && r->options->ops_path
                       ? "; the same command with --resume goes on"
                       : "");
    } else if (good) {
        st->text[0] = 0;
        const bool wide = r->options->strict && counts.wide > 0;
        st->code = counts.bad > 0 || counts.empty > 0 || wide ? STATUS_INCOMPLETE : STATUS_OK;
        run_compare_end(r, st);
    }
}

/* All reports are there. What was said of the model as a whole before them is no longer true. Operations without a
 * figure take no part, and are named. */
static void replay_model(run *r, bool good, status *st) {
    const options *o = r->options;
    status failed = {0};
    if (!good || r->interrupted || r->failure.code != STATUS_OK || !o->ops_path || o->only || o->compare) return;
    if (!r->replays) {
        run_replay_forget(r);
        return;
    }
    if (!run_replay(r, budget_replay_end(&r->budget, run_now()), false, &failed)) {
        r->stopped = *r->stop != 0;
        r->no_whole = r->stopped ? "a signal ended the run" : arena_printf(&r->arena, "%s", failed.text);
        if (st->code == STATUS_OK) st->code = STATUS_INCOMPLETE;
    } else if (st->code == STATUS_OK) {
        st->code = failed.code;
    }
    if (!r->no_whole) return;
    if (r->stopped)
        status_set(st, STATUS_INCOMPLETE,
                   "stopped while the model was measured as a whole; the same command with --resume goes on");
    else
        run_warn(r, "the model was not measured as a whole: %s", r->no_whole);
    if (!run_json_save(r, "complete", &failed)) *st = failed;
}

/* A folder that is not there belongs to no other run: it is made once the devices are. */
static bool is_new(const options *o) { return o->output && access(o->output, F_OK) != 0; }

/* A host's caches are those of its cores, too, and what its operations find there is told otherwise. */
static void find_distances(run *r) {
    const uint64_t cache_bytes = r->devices[0].about->identity.cache_bytes;
    const regime *g = &r->options->regime;
    const bool told = g->launch == REGIME_GRAPH && g->load != REGIME_BURST; /* what a launch takes more */
    r->left_known = told && r->list.flow && cache_bytes > 0 && !run_on_host(r) &&
                    r->list.flow->occurrence_count <= RUN_MOST_OCCURRENCES;
    if (!r->left_known) return;
    distances_find(&r->list, r->layouts, &r->fusions, cache_bytes, REGIME_WORKSPACE_BYTES, &r->arena);
}

bool run_set_up(run *r, status *st) {
    const options *o = r->options;
    r->search = (report_search){.exhaustive = o->exhaustive,
                                .candidate = o->candidate,
                                .before = o->before,
                                .compare = o->compare,
                                .early_exit = o->exhaustive ? 1 : o->early_exit,
                                .workspace_limit = REGIME_WORKSPACE_BYTES};
    run_utc(r->taken, sizeof r->taken);
    read_operations(r);
    const bool good =
        is_new(o) ? run_start(r, st) && run_files_prepare(r, st) : run_files_prepare(r, st) && run_start(r, st);
    if (good) find_distances(r);
    return good;
}

static void operations_work(run *r, status *st) {
    const options *o = r->options;
    if (!run_set_up(r, st)) return;
    r->replays = wants_replay(o, &r->list);
    if (r->replays) budget_reserve(&r->budget);
    if (!run_samples_begin(r, st)) return;
    skip_foreign_kinds(r);
    run_files_resume(r);
    run_queue_fill(r);
    if (o->ops_path && !o->output && !o->quiet) status_print(stderr, "scout_batch", "", "no -o: no report is kept");
    if (!run_queue_begin(r, st) || !run_json_save(r, "running", st)) return;
    const bool good = run_queue_work(r, st);
    finish(r, good, st);
    run_queue_rest(r);
    replay_model(r, good, st);
}

status_code run_whole(const options *o, const volatile int *stop, size_t most_memory, run_work *work, status *st) {
    run *r = calloc(1, sizeof *r);
    if (!r) return status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    r->options = o;
    r->stop = stop;
    r->budget = budget_of(o, run_now());
    guard_init(&r->guard);
    arena_init(&r->arena, &r->guard, most_memory);
    show_progress_init(&r->progress, o->quiet);
    r->wait = (run_wait){.options = o, .stop = stop, .progress = &r->progress};
    if (guard_enter(&r->guard))
        work(r, st);
    else
        *st = r->guard.st;
    run_end(r);
    free(r);
    return st->code;
}

status_code run_operations(const options *o, const volatile int *stop, status *st) {
    return run_whole(o, stop, MOST_MEMORY, operations_work, st);
}
