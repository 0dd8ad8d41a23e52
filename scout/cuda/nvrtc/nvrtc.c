/* Opening NVRTC, compiling with it, and caching its code. */
#include "scout/cuda/nvrtc/nvrtc.h"

#include "scout/device/libraries.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A process has one copy of it. */
static struct {
    bool opened;
    nvrtc_table table;
} state;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static const libraries_place functions[] = {
#define NVRTC_PLACE(name) {#name, offsetof(nvrtc_table, name)},
    NVRTC_FUNCTIONS(NVRTC_PLACE)
#undef NVRTC_PLACE
};

/* What it opens by itself, by name, where the loader looks: found beside it only if it is loaded already. */
static void open_builtins(int major, int minor) {
    const char *const slash = strrchr(state.table.path, '/');
    char beside[512], name[64];
    snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.%d", major, minor);
    snprintf(beside, sizeof beside, "%.*s/%s", slash ? (int)(slash - state.table.path) : 0, state.table.path, name);
    const char *const names[] = {slash ? beside : name, name, NULL};
    (void)libraries_open(names, false, NULL, 0, NULL); /* NVRTC itself reports a missing one */
}

static bool open_library(scout_why *why) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
    int major = 0, minor = 0;
    void *const library = libraries_open(names, false, state.table.path, sizeof state.table.path, why);
    if (!library) return false;
    if (!libraries_bind(library, functions, sizeof functions / sizeof functions[0], &state.table, why)) return false;
    if (state.table.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) major = 0;
    snprintf(state.table.version, sizeof state.table.version, "%d.%d", major, minor);
    open_builtins(major, minor);
    return true;
}

const nvrtc_table *nvrtc_open(scout_why *why) {
    (void)pthread_mutex_lock(&opening);
    state.opened = state.opened || open_library(why);
    const bool opened = state.opened;
    (void)pthread_mutex_unlock(&opening);
    return opened ? &state.table : NULL;
}

static void drop(nvrtc_code *code) {
    free(code->cubin);
    *code = (nvrtc_code){NULL, 0};
}

/* The first line of what the compiler says. */
static void first_line(const nvrtc_table *nvrtc, nvrtcProgram program, char *line, size_t room) {
    size_t size = 0;
    char *log = NULL;
    *line = '\0';
    if (nvrtc->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) log = malloc(size);
    if (log && nvrtc->nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS)
        snprintf(line, room, ": %.*s", (int)strcspn(log, "\n"), log);
    free(log);
}

static scout_answer take_code(const nvrtc_table *nvrtc, nvrtcProgram program, nvrtc_code *out, scout_why *why) {
    if (nvrtc->nvrtcGetCUBINSize(program, &out->bytes) != NVRTC_SUCCESS || out->bytes == 0)
        return scout_say(why, SCOUT_NO, "library", "NVRTC %s returned no code", nvrtc->version);
    out->cubin = malloc(out->bytes);
    if (!out->cubin) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a kernel");
    if (nvrtc->nvrtcGetCUBIN(program, out->cubin) == NVRTC_SUCCESS) return SCOUT_OK;
    drop(out);
    return scout_say(why, SCOUT_NO, "library", "NVRTC %s returned no code", nvrtc->version);
}

static scout_answer compile(const nvrtc_source *source, int major, int minor, nvrtc_code *out, scout_why *why) {
    char arch[48], line[160];
    /* no declarations that nothing here reads, and kernels of one program beside each other: they come out the same */
    const char *const options[] = {arch, "--std=c++17", "--minimal", "--split-compile=4"};
    int count = sizeof options / sizeof options[0];
    nvrtcProgram program = NULL;
    *out = (nvrtc_code){NULL, 0};
    const nvrtc_table *const nvrtc = nvrtc_open(why);
    if (!nvrtc) return SCOUT_NO;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", major, minor);
    nvrtcResult result = nvrtc->nvrtcCreateProgram(&program, source->text, "generated.cu", source->include_count,
                                                   source->includes, source->include_names);
    if (result != NVRTC_SUCCESS)
        return scout_say(why, SCOUT_NO, "library", "NVRTC %s refuses the source: %s", nvrtc->version,
                         nvrtc->nvrtcGetErrorString(result));
    do /* the last ones are younger than NVRTC is */
        result = nvrtc->nvrtcCompileProgram(program, count, options);
    while (result == NVRTC_ERROR_INVALID_OPTION && --count >= 2);
    scout_answer answer;
    if (result == NVRTC_SUCCESS) {
        answer = take_code(nvrtc, program, out, why);
    } else {
        first_line(nvrtc, program, line, sizeof line);
        answer = scout_say(why, SCOUT_NO, "library", "NVRTC %s for sm_%d%d: %s%.100s", nvrtc->version, major, minor,
                           nvrtc->nvrtcGetErrorString(result), line);
    }
    (void)nvrtc->nvrtcDestroyProgram(&program);
    return answer;
}

/* --- the cache --- */

typedef struct kept {
    nvrtc_code code; /* at its beginning: what is returned is found by it */
    char *text;      /* NULL: nothing is kept here */
    int major, minor;
    int users;
    bool done;
    uint64_t turn; /* when it was asked for last */
    scout_answer answer;
    scout_why why;
} kept;

enum { KEPT = 64 }; /* of some ten to a few hundred KB */
static kept all[KEPT];
static uint64_t turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held while something is compiled */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static kept *find(const char *text, int major, int minor) {
    for (int k = 0; k < KEPT; k++)
        if (all[k].text && all[k].major == major && all[k].minor == minor && strcmp(all[k].text, text) == 0)
            return &all[k];
    return NULL;
}

/* A place not in use: an empty one, or the least recently used. */
static kept *oldest(void) {
    kept *found = NULL;
    for (int k = 0; k < KEPT; k++)
        if (all[k].users == 0 && (!found || all[k].turn < found->turn)) found = &all[k];
    return found;
}

/* Called with the lock, which is held again on return. A failure that may be temporary is not cached. */
static void fill(kept *k, const nvrtc_source *source, int major, int minor) {
    free(k->text);
    drop(&k->code);
    k->text = strdup(source->text);
    k->major = major, k->minor = minor;
    k->done = false;
    (void)pthread_mutex_unlock(&lock);
    k->answer = compile(source, major, minor, &k->code, &k->why);
    (void)pthread_mutex_lock(&lock);
    k->done = true;
    if (k->answer == SCOUT_NO_MEMORY) k->major = -1;
    (void)pthread_cond_broadcast(&changed);
}

scout_answer nvrtc_borrow(const nvrtc_source *source, int major, int minor, const nvrtc_code **out, scout_why *why) {
    kept *k = NULL;
    (void)pthread_mutex_lock(&lock);
    for (;;) {
        const bool known = (k = find(source->text, major, minor)) != NULL;
        if (known || (k = oldest())) {
            k->users++;
            k->turn = ++turns;
            if (!known) fill(k, source, major, minor);
            break;
        }
        (void)pthread_cond_wait(&changed, &lock);
    }
    while (!k->done) (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
    const scout_answer answer = k->answer;
    *out = answer == SCOUT_OK ? &k->code : NULL;
    if (answer == SCOUT_OK) return answer;
    if (why) *why = k->why;
    nvrtc_return(&k->code);
    return answer;
}

void nvrtc_return(const nvrtc_code *code) {
    kept *const k = (kept *)code;
    (void)pthread_mutex_lock(&lock);
    k->users--;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}
