/* Opening a device with its table, closing, errors and counts. */
#include "runtime/runtime_internal.h"

#include "common/status.h"
#include "scout/device/identity.h"
#include "scout/device/libraries.h"
#include "scout/device/plugins.h"
#include "scout/terms/regime.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* cuBLASLt's heuristic and our kernels may count on what cudaMalloc gives. */
static const uint64_t device_alignment = 256;

/* ---- errors ---- */

int32_t runtime_say(scout_run_error *error, scout_run_status code, const char *format, ...) {
    va_list args;
    if (!error) return code;
    error->status = code;
    error->text[0] = 0;
    if (code == SCOUT_RUN_OK) return code;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    for (char *c = error->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    return code;
}

int32_t runtime_answer(scout_run *run, scout_answer answer, const scout_why *why, const char *doing,
                       scout_run_error *error) {
    static const scout_run_status statuses[] = {[SCOUT_OK] = SCOUT_RUN_OK,
                                                [SCOUT_NO] = SCOUT_RUN_UNSUPPORTED,
                                                [SCOUT_NO_MEMORY] = SCOUT_RUN_NO_MEMORY,
                                                [SCOUT_FAILED] = SCOUT_RUN_FAILED,
                                                [SCOUT_LOST] = SCOUT_RUN_LOST};
    const bool known = (unsigned)answer < sizeof statuses / sizeof *statuses;
    if (answer == SCOUT_LOST && run) atomic_store(&run->lost, 1);
    return runtime_say(error, known ? statuses[answer] : SCOUT_RUN_FAILED, "%s: %s", doing, why->text);
}

void runtime_tell(const scout_run *run, const char *format, ...) {
    char line[1536];
    va_list args;
    if (!run->say) return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    run->say(run->context, line);
}

/* ---- the caller's thread ---- */

/* OpenMP pins a thread once, when it starts its first team. */
static _Thread_local bool was_pinned;

runtime_cores runtime_cores_of(const scout_run *run) {
    runtime_cores cores = {.known = false};
    if (run->alignment == 1 && !was_pinned) cores.known = sched_getaffinity(0, sizeof cores.set, &cores.set) == 0;
    return cores;
}

void runtime_cores_restore(const runtime_cores *cores) {
    cpu_set_t now;
    if (!cores->known || sched_getaffinity(0, sizeof now, &now) != 0 || CPU_EQUAL(&now, &cores->set)) return;
    was_pinned = sched_setaffinity(0, sizeof cores->set, &cores->set) == 0;
}

/* ---- options ---- */

/* Members beyond the caller's size are as usual. What lies behind the size known here must not be set: a demand that
 * this library does not know would else be dropped without a word. */
static bool read_options(scout_run_options *to, const scout_run_options *from, scout_run_error *error) {
    memset(to, 0, sizeof *to);
    if (from && (from->size < offsetof(scout_run_options, table) || from->size > 1 << 16)) {
        runtime_say(error, SCOUT_RUN_INVALID, "expected options.size to be sizeof(scout_run_options)");
        return false;
    }
    for (uint32_t k = sizeof *to; from && k < from->size; k++)
        if (((const unsigned char *)from)[k] != 0) {
            runtime_say(error, SCOUT_RUN_INVALID,
                        "expected no options that this library does not know; use a newer one");
            return false;
        }
    if (from) memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    if (!to->device) to->device = "cpu";
    return true;
}

/* ---- the device ---- */

static void watch_nothing(void *context, const char *file) { (void)context, (void)file; }

/* The process's list of devices, once. */
static bool load_devices(const char *library_path, status *st) {
    static bool loaded;
    if (!loaded) loaded = libraries_pass_path(library_path) && plugins_load(NULL, 0, watch_nothing, NULL, st);
    return loaded;
}

static int32_t open_device(scout_run *run, scout_run_error *error) {
    scout_why why = {.code = ""};
    run->identity.size = sizeof run->identity;
    run->alignment = strcmp(run->api->name, "cpu") == 0 ? 1 : device_alignment;
    const runtime_cores cores = runtime_cores_of(run);
    scout_answer answer = run->api->identify(run->ordinal, &run->identity, &why);
    identity_clean(&run->identity);
    if (answer == SCOUT_OK) answer = run->api->open(run->ordinal, &run->device, &why);
    runtime_cores_restore(&cores);
    if (answer != SCOUT_OK)
        return runtime_say(error, SCOUT_RUN_NO_DEVICE, "device %s:%d: %s", run->api->name, (int)run->ordinal, why.text);
    return SCOUT_RUN_OK;
}

/* ---- the table ---- */

static void open_table(scout_run *run, const char *path, const char *signers) {
    const scout_identity *id = &run->identity;
    scout_dispatch_library libraries[8];
    scout_dispatch_device device = {.name = id->name,
                                    .capability = id->capability,
                                    .driver = id->driver,
                                    .units = id->units,
                                    .memory_mib = (int64_t)(id->memory_bytes >> 20),
                                    .power_limit_w = (int64_t)rint(id->power_limit_w),
                                    .libraries = libraries,
                                    .library_count = (int)id->library_count};
    for (uint32_t k = 0; k < id->library_count; k++)
        libraries[k] = (scout_dispatch_library){id->libraries[k].name, id->libraries[k].version};
    if (signers)
        (void)scout_dispatch_open_signed(&run->table, path, signers, &device, &run->table_note);
    else
        (void)scout_dispatch_open(&run->table, path, &device, &run->table_note);
    if (run->table_note.text[0]) runtime_tell(run, "%s", run->table_note.text);
}

/* ---- opening and closing ---- */

int32_t runtime_open_on(scout_run **out, const scout_device_api *api, int32_t ordinal, const scout_run_options *options,
                        scout_run_error *error) {
    *out = NULL;
    scout_run *run = aligned_alloc(RUNTIME_LINE, sizeof *run);
    if (!run) return runtime_say(error, SCOUT_RUN_NO_MEMORY, "the host has no memory left");
    memset(run, 0, sizeof *run);
    run->api = api, run->ordinal = ordinal;
    run->near_shapes = options->near_shapes != 0;
    run->workspace_limit = options->workspace_bytes ? options->workspace_bytes : REGIME_WORKSPACE_BYTES;
    run->say = options->say, run->context = options->context;
    run->tune_s = options->tune_ms / 1e3;
    run->cache_dir = options->cache_dir ? strdup(options->cache_dir) : NULL;
    if (pthread_mutex_init(&run->lock, NULL) != 0) {
        free(run->cache_dir);
        free(run);
        return runtime_say(error, SCOUT_RUN_NO_MEMORY, "no lock can be made");
    }
    const int32_t code = open_device(run, error);
    if (code != SCOUT_RUN_OK) {
        scout_run_close(run);
        return code;
    }
    if (options->table) open_table(run, options->table, options->signers);
    *out = run;
    return runtime_say(error, SCOUT_RUN_OK, "%s", "");
}

static int32_t open_named(scout_run **out, const scout_run_options *options, scout_run_error *error) {
    scout_why why = {.code = ""};
    status st = {.code = STATUS_OK};
    int32_t ordinal = 0;
    if (!load_devices(options->library_path, &st)) return runtime_say(error, SCOUT_RUN_NO_DEVICE, "%s", st.text);
    const scout_device_api *api = plugins_device_of(options->device, &ordinal, &why);
    if (!api) return runtime_say(error, SCOUT_RUN_NO_DEVICE, "%s", why.text);
    return runtime_open_on(out, api, ordinal, options, error);
}

/* One at a time: devices and libraries are loaded once, and what the variables were is known. */
int32_t scout_run_open(scout_run **out, const scout_run_options *given, scout_run_error *error) {
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    scout_run_options options;
    runtime_environment kept;
    *out = NULL;
    if (!read_options(&options, given, error)) return SCOUT_RUN_INVALID;
    pthread_mutex_lock(&opening);
    runtime_environment_keep(&kept);
    const int32_t code = open_named(out, &options, error);
    runtime_environment_restore(&kept);
    pthread_mutex_unlock(&opening);
    return code;
}

void scout_run_close(scout_run *run) {
    if (!run) return;
    runtime_calls_free(run);
    runtime_ops_free(run);
    runtime_lanes_free(run);
    scout_dispatch_close(run->table);
    if (run->device && !atomic_load(&run->lost)) run->api->close(run->device);
    pthread_mutex_destroy(&run->lock);
    free(run->cache_dir);
    free(run);
}

/* ---- what is told of it ---- */

const char *scout_run_device(const scout_run *run) { return run->identity.name; }
int32_t scout_run_has_table(const scout_run *run) { return run->table != NULL; }
const char *scout_run_table_note(const scout_run *run) { return run->table_note.text; }
uint64_t scout_run_alignment(const scout_run *run) { return run->alignment; }

void scout_run_count(const scout_run *run, scout_run_counts *counts) {
    uint64_t sums[RUNTIME_WHYS] = {0};
    const int lanes = atomic_load((atomic_int *)(uintptr_t)&run->lane_count);
    for (int k = 0; k < lanes; k++)
        for (int n = 0; n < RUNTIME_WHYS; n++)
            sums[n] += atomic_load_explicit(&run->lanes[k].counts[n], memory_order_relaxed);
    *counts = (scout_run_counts){.listed = sums[RUNTIME_LISTED],
                                 .unlisted = sums[RUNTIME_UNLISTED],
                                 .refused = sums[RUNTIME_REFUSED],
                                 .unpacked = sums[RUNTIME_UNPACKED]};
}
