/* The process's list of devices and candidates. It is filled once, by plugins_load, and borrowed from until the process
 * ends; hence static. Nothing that a shared object says is believed before plugins_check.c has looked at it. */
#include "scout/device/plugins.h"

#include "scout/device/cpu.h"
#include "scout/device/libraries.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_FILES = 32 };

typedef struct source { /* one shared object */
    char *file;         /* real path, owned */
    const scout_plugin *plugin;
    uint64_t content; /* hash of the file's bytes */
    bool built_in;    /* the CUDA device's own object: its candidates are not a plugin's */
} source;

static const scout_device_api *devices[PLUGINS_MAX_DEVICES];
static int device_count;
static source sources[MAX_FILES];
static int source_count;
static scout_why cuda_why;

/* ---- looking ---- */

int plugins_device_count(void) { return device_count; }
const scout_device_api *plugins_device(int index) { return index >= 0 && index < device_count ? devices[index] : NULL; }

const scout_device_api *plugins_device_named(const char *name) {
    for (int k = 0; k < device_count; k++)
        if (strcmp(devices[k]->name, name) == 0) return devices[k];
    return NULL;
}

const char *plugins_device_why(const char *name) {
    const scout_device_api *device = plugins_device_named(name);
    if (!device && strcmp(name, "cuda") == 0) return cuda_why.text;
    if (!device) return "no device of that name is known; a plugin's device needs --custom-kernel FILE";
    static scout_why why; /* valid until the next call */
    why = (scout_why){.code = ""};
    if (device->count(&why) > 0) return NULL;
    return why.text[0] ? why.text : "there is none";
}

const scout_device_api *plugins_device_of(const char *word, int32_t *ordinal, scout_why *why) {
    char name[32];
    const char *colon = strchr(word, ':');
    const size_t n = colon ? (size_t)(colon - word) : strlen(word);
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    const scout_device_api *api = plugins_device_named(name);
    const char *missing = api ? NULL : plugins_device_why(name);
    *ordinal = colon ? (int32_t)strtol(colon + 1, NULL, 10) : 0;
    if (missing) {
        scout_say(why, SCOUT_NO, "hardware", "there is no device %.40s: %.170s", name, missing);
        return NULL;
    }
    scout_why none = {.code = ""};
    const int32_t count = api->count(&none);
    if (*ordinal >= 0 && *ordinal < count) return api;
    if (count <= 0) {
        scout_say(why, SCOUT_NO, "hardware", "there is no device %.40s: %.170s", name,
                  none.text[0] ? none.text : "none was found");
    } else {
        scout_say(why, SCOUT_NO, "hardware", "there is no device %.40s: the last one is %s:%d", word, name,
                  (int)count - 1);
    }
    return NULL;
}

static int by_priority(const void *a, const void *b) {
    const scout_candidate *x = ((const plugins_candidate *)a)->candidate,
                          *y = ((const plugins_candidate *)b)->candidate;
    if (x->priority != y->priority) return x->priority > y->priority ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int take(const scout_candidate *const *from, uint32_t n, const source *plugin, uint32_t kind,
                plugins_candidate *out, int count, int room) {
    for (uint32_t k = 0; k < n && count < room; k++)
        if (kind == 0 || from[k]->kind == kind)
            out[count++] = (plugins_candidate){from[k], plugin ? plugin->file : NULL, plugin ? plugin->content : 0};
    return count;
}

int plugins_candidates(const scout_device_api *device, uint32_t kind, plugins_candidate *out, int room) {
    int count = take(device->candidates, device->candidate_count, NULL, kind, out, 0, room);
    const bool listed = plugins_device_named(device->name) == device;
    for (int k = 0; listed && k < source_count; k++) {
        const scout_plugin *p = sources[k].plugin;
        if (!p->for_device || strcmp(p->for_device, device->name) != 0) continue;
        const bool own = sources[k].built_in || p->device == device;
        count = take(p->candidates, p->candidate_count, own ? NULL : &sources[k], kind, out, count, room);
    }
    qsort(out, (size_t)count, sizeof *out, by_priority);
    return count;
}

static const scout_library *library_of(const scout_identity *identity, const char *name) {
    for (uint32_t k = 0; name && k < identity->library_count && k < 8; k++)
        if (strcmp(identity->libraries[k].name, name) == 0) return &identity->libraries[k];
    return NULL;
}

static void hash_text(XXH3_state_t *state, const char *text) {
    XXH3_64bits_update(state, text ? text : "", text ? strlen(text) + 1 : 1);
}

uint32_t plugins_kinds(const scout_device_api *device) {
    static plugins_candidate all[PLUGINS_MAX_CANDIDATES];
    const int n = plugins_candidates(device, 0, all, PLUGINS_MAX_CANDIDATES);
    uint32_t kinds = 0;
    for (int k = 0; k < n; k++)
        if (all[k].candidate->kind < 32) kinds |= UINT32_C(1) << all[k].candidate->kind;
    return kinds;
}

/* What the built-in device's kernels are compiled into: this program, or a library that it opened. */
static uint64_t program_content(void) {
    static uint64_t hash;
    Dl_info here;
    if (hash == 0 && dladdr(devices, &here) != 0 && here.dli_fname && strstr(here.dli_fname, ".so"))
        hash = plugins_file_content(here.dli_fname);
    if (hash == 0) hash = plugins_file_content("/proc/self/exe");
    return hash;
}

uint64_t plugins_candidates_hash(const scout_device_api *device, const scout_identity *identity) {
    static plugins_candidate all[PLUGINS_MAX_CANDIDATES];
    const int n = plugins_candidates(device, 0, all, PLUGINS_MAX_CANDIDATES);
    XXH3_state_t *state = XXH3_createState();
    if (!state) return 0;
    XXH3_64bits_reset(state);
    for (int k = 0; k < n; k++) {
        const scout_candidate *c = all[k].candidate;
        const scout_library *library = library_of(identity, c->library);
        const int64_t numbers[3] = {c->kind, c->flags, c->priority};
        hash_text(state, c->name);
        hash_text(state, c->library);
        hash_text(state, library ? library->version : NULL);
        XXH3_64bits_update(state, numbers, sizeof numbers);
    }
    const uint64_t own = device == cpu_device_api() ? program_content() : 0; /* its own kernels have no version else */
    XXH3_64bits_update(state, &own, sizeof own);
    for (int k = 0; k < source_count; k++) {
        const scout_plugin *p = sources[k].plugin;
        if (p->device != device && !(p->for_device && strcmp(p->for_device, device->name) == 0)) continue;
        hash_text(state, p->name);
        hash_text(state, p->version);
        XXH3_64bits_update(state, &sources[k].content, sizeof sources[k].content);
    }
    const uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

/* ---- loading ---- */

static bool add_device(const scout_device_api *api, const char *file, status *st) {
    scout_why why = {.code = ""};
    if (!plugins_check_device(api, &why)) {
        status_set(st, STATUS_INPUT, "%s: its device cannot be used: %s", file, why.text);
    } else if (plugins_device_named(api->name)) {
        status_set(st, STATUS_INPUT, "%s: there is a device \"%s\" already", file, api->name);
    } else if (device_count == PLUGINS_MAX_DEVICES) {
        status_set(st, STATUS_INPUT, "%s: more than %d devices", file, PLUGINS_MAX_DEVICES);
    } else {
        devices[device_count++] = api;
        return true;
    }
    return false;
}

/* Asks an opened object for its plugin, checks all of it, and puts it on the list. The path is copied. */
static bool add_source(void *handle, const char *path, uint64_t content, bool built_in, status *st) {
    scout_why why = {.code = ""};
    scout_plugin_entry_fn *entry;
    void *symbol = dlsym(handle, SCOUT_PLUGIN_ENTRY);
    if (!symbol)
        return status_fail(st, STATUS_INPUT, "%s: is not a plugin: it exports no %s", path, SCOUT_PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function */
    const scout_plugin *plugin = entry(SCOUT_ABI);
    if (!plugin)
        return status_fail(st, STATUS_INPUT,
                           "%s: cannot serve version %u of the plugin interface: build it against this "
                           "program's scout/plugin.h",
                           path, SCOUT_ABI);
    if (!plugins_check_plugin(plugin, &why))
        return status_fail(st, STATUS_INPUT, "%s: cannot be used: %s", path, why.text);
    if (source_count == MAX_FILES) return status_fail(st, STATUS_INPUT, "%s: more than %d plugins", path, MAX_FILES);
    char *copy = strdup(path);
    if (!copy) return status_fail(st, STATUS_ENVIRONMENT, "out of memory");
    if (plugin->device && !add_device(plugin->device, path, st)) {
        free(copy);
        return false;
    }
    sources[source_count++] = (source){copy, plugin, content, built_in};
    return true;
}

static bool open_file(const char *file, const plugins_file *looked, status *st) {
    void *handle = dlopen(looked->path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        return status_fail(st, STATUS_INPUT, "%s: is not a plugin: %s", file, why ? why : "it cannot be loaded");
    }
    return add_source(handle, looked->path, looked->content, false, st);
}

static bool load_file(const char *file, plugins_watch *watch, void *context, status *st) {
    plugins_file looked;
    if (!plugins_file_look(file, &looked, st)) return false;
    for (int k = 0; k < source_count; k++)
        if (strcmp(sources[k].file, looked.path) == 0) return true; /* said twice */
    watch(context, file);
    const bool good = open_file(file, &looked, st);
    watch(context, NULL);
    return good;
}

/* Its absence is no error, and neither is one that is unfit: the machine then has no CUDA device, and the reason is
 * there on request. */
static void load_cuda(void) {
    static const char *const names[] = {"scout_cuda.so", NULL};
    char path[PATH_MAX];
    status st = {0};
    void *handle = libraries_open(names, false, path, sizeof path, &cuda_why);
    if (handle && !add_source(handle, path, plugins_file_content(path), true, &st))
        scout_say(&cuda_why, SCOUT_NO, "library", "%.200s", st.text);
}

/* Names are unique within a device's list, its plugins' included, and the device of a plugin must be known. */
static bool check_lists(status *st) {
    static plugins_candidate all[PLUGINS_MAX_CANDIDATES + 1];
    for (int d = 0; d < device_count; d++) {
        const int n = plugins_candidates(devices[d], 0, all, PLUGINS_MAX_CANDIDATES + 1);
        if (n > PLUGINS_MAX_CANDIDATES)
            return status_fail(st, STATUS_INPUT, "more than %d candidates for one device", PLUGINS_MAX_CANDIDATES);
        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++) {
                if (strcmp(all[a].candidate->name, all[b].candidate->name) != 0) continue;
                const char *file = all[b].plugin ? all[b].plugin : all[a].plugin;
                return status_fail(st, STATUS_INPUT, "%s: there is a candidate \"%s\" for %s already",
                                   file ? file : "built in", all[a].candidate->name, devices[d]->name);
            }
    }
    for (int k = 0; k < source_count; k++) {
        const char *name = sources[k].plugin->for_device;
        if (!name || plugins_device_named(name) || strcmp(name, "cuda") == 0) continue;
        return status_fail(st, STATUS_INPUT, "%s: is for a device \"%s\" that is not known", sources[k].file, name);
    }
    return true;
}

bool plugins_load(const char *const *files, int count, plugins_watch *watch, void *context, status *st) {
    if (device_count == 0) {
        if (!add_device(cpu_device_api(), "the built-in CPU device", st)) return false;
        load_cuda();
    }
    cpu_device_prepare();
    for (int k = 0; k < count; k++)
        if (!load_file(files[k], watch, context, st)) return false;
    return check_lists(st);
}
