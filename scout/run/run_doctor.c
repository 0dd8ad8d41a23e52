/* --doctor: what of this machine stands in the way of measuring. Each check prints one line: how it is, and what to do
 * where it is not good. What only makes figures worse is a note; what makes them impossible fails, and so does the
 * program then. Devices are asked, opened and closed in a worker, as for a run. */
#include "scout/run/run_internal.h"

#include "common/json.h"
#include "common/plain.h"
#include "common/version.h"
#include "scout/device/host.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const size_t MOST_MEMORY = (size_t)64 << 20;
static const double LITTLE_MEMORY = 1 << 30, LEAST_MEMORY = 64 << 20; /* bytes that are free */
static const double LITTLE_DISK = 1 << 30, LEAST_DISK = 16 << 20;
static const double LOOK_SECONDS = 0.5; /* at what else runs */

typedef enum mark { GOOD, NOTE, FAILED } mark;
static const char *const mark_names[] = {"ok", "note", "FAILED"};

typedef struct doctor {
    const options *o;
    arena *a;
    const json_t *devices, *candidates;
    const json_t *used; /* of the devices: those of --device */
    int notes, failed;
} doctor;

/* "note    governor   powersave; …": the remedy may be NULL. Names come cleaned or from this program. */
__attribute__((format(printf, 5, 6))) static void line(doctor *d, mark m, const char *what, const char *remedy,
                                                       const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->notes += m == NOTE;
    d->failed += m == FAILED;
    printf("%-7s %-10s %s%s%s\n", mark_names[m], what, plain_cell(d->a, text, INT_MAX), remedy ? "; " : "",
           remedy ? remedy : "");
    (void)fflush(stdout);
}

/* ---- what was built ---- */

/* A file beside this program. */
static bool is_beside(const char *name) {
    char path[PATH_MAX + 64];
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0) return false;
    path[n] = 0;
    char *const slash = strrchr(path, '/');
    if (!slash) return false;
    snprintf(slash + 1, 64, "%s", name);
    return access(path, X_OK) == 0;
}

static void check_build(doctor *d) {
    const bool extract = is_beside("extract_ops"), analyze = is_beside("analyze");
    if (extract && analyze)
        line(d, GOOD, "build", NULL, "%s, all programs are there", version_text);
    else
        line(d, NOTE, "build", "run make, or install it again", "%s is not there", extract ? "analyze" : "extract_ops");
}

/* ---- devices ---- */

static bool is_used(const doctor *d, const json_t *device) {
    for (size_t k = 0; k < json_array_size(d->used); k++)
        if (plain_same(json_get_text(json_array_get(d->used, k), "device"), json_get_text(device, "device")))
            return true;
    return false;
}

static const char *cell_of(const doctor *d, const json_t *o, const char *key) {
    return plain_cell(d->a, json_get_text(o, key), 240);
}

static void check_missing_device(doctor *d, const json_t *device, const host *h) {
    const bool cuda = strncmp(json_get_text(device, "device"), "cuda", 4) == 0;
    if (cuda && !h->nvidia)
        line(d, GOOD, "device", NULL, "%s: none, and no NVIDIA GPU is plugged in (%s)", cell_of(d, device, "device"),
             cell_of(d, device, "why"));
    else
        line(d, NOTE, "device", cuda ? "docs/install.md says what a GPU needs" : NULL, "%s: %s",
             cell_of(d, device, "device"), cell_of(d, device, "why"));
}

static const char *libraries_text(const doctor *d, const json_t *libraries) {
    const char *text = "";
    for (size_t k = 0; k < json_array_size(libraries); k++) {
        const json_t *l = json_array_get(libraries, k);
        text =
            arena_printf(d->a, "%s%s%s %s", text, k > 0 ? ", " : "", cell_of(d, l, "name"), cell_of(d, l, "version"));
    }
    return *text ? text : "none";
}

static bool has_library(const json_t *libraries, const char *name) {
    for (size_t k = 0; k < json_array_size(libraries); k++)
        if (strcmp(json_get_text(json_array_get(libraries, k), "name"), name) == 0) return true;
    return false;
}

/* Libraries that candidates of this device want and that were not found, each once. */
static const char *missing_text(const doctor *d, const char *device, const json_t *libraries) {
    json_t *missing = json_object();
    const char *text = "", *name;
    json_t *unused;
    for (size_t k = 0; k < json_array_size(d->candidates); k++) {
        const json_t *c = json_array_get(d->candidates, k);
        const char *const of = json_get_text(c, "device"), *const library = json_get_text(c, "library");
        if (*library && strncmp(device, of, strlen(of)) == 0 && !has_library(libraries, library))
            (void)json_object_set_new(missing, library, json_true());
    }
    json_object_foreach(missing, name, unused) {
        (void)unused;
        text = arena_printf(d->a, "%s%s%s", text, *text ? ", " : "", plain_cell(d->a, name, 48));
    }
    json_decref(missing);
    return text;
}

static void check_libraries(doctor *d, const char *name, const json_t *identity) {
    const json_t *const found = json_object_get(identity, "libraries");
    const char *const missing = missing_text(d, name, found);
    if (*missing)
        line(d, NOTE, "libraries",
             "their candidates are left out: install them, or name their folder by --library-path",
             "%s: %s; not found: %s", name, libraries_text(d, found), missing);
    else
        line(d, GOOD, "libraries", NULL, "%s: %s", name, libraries_text(d, found));
}

static void check_memory(doctor *d, const char *name, bool used, const json_t *opened) {
    const double left = json_get_number(opened, "memory_free_bytes"), all = json_get_positive(opened, "memory_bytes");
    if (isnan(left) || isnan(all)) return;
    const mark m = left < LEAST_MEMORY && used ? FAILED : left < LITTLE_MEMORY ? NOTE : GOOD;
    line(d, m, "memory",
         m == GOOD     ? NULL
         : m == FAILED ? "end what holds it: nothing fits into so little"
                       : "end what holds it, or larger operations are SKIPPED",
         "%s: %s of %s are free", name, show_bytes(d->a, left), show_bytes(d->a, all));
}

static void check_clock(doctor *d, const char *name, const json_t *opened) {
    const double mhz = json_get_positive(opened, "clock_mhz"), most = json_get_positive(opened, "most_clock_mhz");
    const double hot = json_get_positive(opened, "temperature_c"), power = json_get_positive(opened, "power_w");
    const char *const throttle = json_get_text(opened, "throttle");
    if (isnan(mhz)) {
        line(d, NOTE, "clock", "figures are times alone, without a clock beside them", "%s: not told", name);
        return;
    }
    const char *text = arena_printf(d->a, "%s: %.0f MHz", name, mhz);
    if (!isnan(most)) text = arena_printf(d->a, "%s of %.0f", text, most);
    if (!isnan(hot)) text = arena_printf(d->a, "%s, %.0f °C", text, hot);
    if (!isnan(power)) text = arena_printf(d->a, "%s, %.0f W", text, power);
    if (*throttle && strcmp(throttle, "idle") != 0)
        line(d, NOTE, "clock", "wait until it is cool and idle", "%s, held back by %s", text, throttle);
    else
        line(d, GOOD, "clock", NULL, "%s now", text);
}

static void check_device(doctor *d, const json_t *device) {
    const json_t *const opened = json_object_get(device, "opened"), *const identity =
                                                                        json_object_get(device, "identity");
    const char *const name = cell_of(d, device, "device"), *const why = json_get_text(opened, "why");
    const bool cuda = strncmp(name, "cuda", 4) == 0;
    if (*why) {
        line(d, is_used(d, device) ? FAILED : NOTE, "device", "end what holds it, or restart its driver",
             "%s: %s cannot be opened: %s", name, cell_of(d, device, "name"), why);
        return;
    }
    line(d, GOOD, "device", NULL, "%s: %s%s", name, cell_of(d, device, "name"),
         is_used(d, device) ? ", which a run takes" : "");
    if (cuda) line(d, GOOD, "driver", NULL, "%s: %s", name, cell_of(d, identity, "driver"));
    check_libraries(d, name, identity);
    check_memory(d, name, is_used(d, device), opened);
    check_clock(d, name, opened);
}

static void check_devices(doctor *d, const host *h, const status *why) {
    for (size_t k = 0; k < json_array_size(d->devices); k++) {
        const json_t *device = json_array_get(d->devices, k);
        if (json_object_get(device, "why"))
            check_missing_device(d, device, h);
        else
            check_device(d, device);
    }
    if (!d->used) line(d, FAILED, "device", NULL, "%s", why->text);
}

/* ---- the host ---- */

static void check_host(doctor *d, const host *h) {
    others beside;
    char text[256];
    if (!h->governor[0])
        line(d, GOOD, "governor", NULL, "none to set here: a virtual machine, or a fixed clock");
    else if (strcmp(h->governor, "performance") == 0)
        line(d, GOOD, "governor", NULL, "performance");
    else
        line(d, NOTE, "governor", "for steadier figures, as root: cpupower frequency-set -g performance",
             "%s: the clock follows the load", h->governor);
    if (h->turbo == HOST_TURBO_ON)
        line(d, NOTE, "turbo",
             "it is part of what a user gets; switched off in /sys/devices/system/cpu, figures repeat better",
             "on: the clock depends on heat and on how many cores work");
    else
        line(d, GOOD, "turbo", NULL, "%s", h->turbo == HOST_TURBO_OFF ? "off" : "none to switch here");
    if (!others_look("/proc", LOOK_SECONDS, &beside))
        line(d, NOTE, "load", "mount /proc", "not told: /proc cannot be read");
    else if (*others_words(&beside, text, sizeof text))
        line(d, NOTE, "load", "end it or wait: beside it intervals are wider, and a run takes longer", "%s", text);
    else
        line(d, GOOD, "load", NULL, "hardly anything else runs");
}

/* ---- folders ---- */

/* The folder, or the nearest one above it that is there. */
static void nearest(char *path) {
    while (access(path, F_OK) != 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        while (slash && slash > path && slash[-1] == '/') slash--;
        if (!slash) {
            snprintf(path, PATH_MAX, ".");
            return;
        }
        slash[slash == path] = 0;
    }
}

static bool may_write(const char *folder, char *there) {
    snprintf(there, PATH_MAX, "%s", folder);
    nearest(there);
    return access(there, W_OK | X_OK) == 0;
}

static void check_cache(doctor *d) {
    char folder[PATH_MAX] = "", there[PATH_MAX];
    cache_info *rows = NULL;
    int count = 0;
    status st = {0};
    uint64_t bytes = 0, entries = 0;
    const char *const remedy = "results are measured again each time: name a folder that can be written by --cache-dir";
    if (!cache_list(d->o->cache_dir, folder, sizeof folder, &rows, &count, &st)) {
        line(d, NOTE, "cache", remedy, "%s", st.text);
        return;
    }
    for (int k = 0; k < count; k++) bytes += rows[k].bytes, entries += rows[k].entries;
    free(rows);
    if (!may_write(folder, there))
        line(d, NOTE, "cache", remedy, "%s: %s", there, strerror(errno));
    else
        line(d, GOOD, "cache", NULL, "%s: %s in %llu entries", folder, show_bytes(d->a, (double)bytes),
             (unsigned long long)entries);
}

static void check_disk(doctor *d) {
    const char *const out = d->o->output ? d->o->output : "out";
    char there[PATH_MAX];
    struct statvfs about;
    if (!may_write(out, there)) {
        line(d, FAILED, "disk", "go to a folder that can be written, or name one by -o", "%s: %s", there,
             strerror(errno));
        return;
    }
    if (statvfs(there, &about) != 0) {
        line(d, NOTE, "disk", NULL, "%s: what is free is not told: %s", out, strerror(errno));
        return;
    }
    const double left = (double)about.f_bavail * (double)about.f_frsize;
    const mark m = left < LEAST_DISK ? FAILED : left < LITTLE_DISK ? NOTE : GOOD;
    line(d, m, "disk", m == GOOD ? NULL : "make room, or name another folder by -o", "%s are free where %s is",
         show_bytes(d->a, left), out);
}

/* ---- all of it ---- */

static void look(doctor *d, const status *why) {
    host h;
    host_look("/sys", &h);
    check_build(d);
    check_devices(d, &h, why);
    check_host(d, &h);
    check_cache(d);
    check_disk(d);
}

status_code run_doctor(const options *o, status *st) {
    status why = {0};
    json_t *ask = json_pack("{s:b}", "open", 1);
    json_t *devices = run_list_ask(o, "devices", ask, st), *candidates = NULL, *used = NULL;
    guard g;
    arena a;
    json_decref(ask);
    if (devices) candidates = run_list_ask(o, "candidates", NULL, st);
    if (candidates) used = supervisor_only_named(json_incref(devices), o->devices, &why);
    guard_init(&g);
    arena_init(&a, &g, MOST_MEMORY);
    if (why.code == STATUS_USAGE) {
        *st = why; /* no device of this or any machine: a slip */
    } else if (candidates && guard_enter(&g)) {
        doctor d = {.o = o, .a = &a, .devices = devices, .candidates = candidates, .used = used};
        look(&d, &why);
        if (d.failed > 0)
            status_set(st, STATUS_ENVIRONMENT, "nothing can be measured here before what FAILED is mended");
    } else if (candidates) {
        *st = g.st;
    }
    arena_free(&a);
    json_decref(used);
    json_decref(candidates);
    json_decref(devices);
    return st->code;
}
