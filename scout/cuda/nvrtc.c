/* Opening NVRTC and compiling with it. */
#include "scout/cuda/nvrtc.h"

#include "scout/libraries.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A process has one copy of it. */
static struct {
    bool opened;
    nvrtc_table table;
} state;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* any of the worker's threads may be the first */

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
    (void)libraries_open(names, false, NULL, 0, NULL); /* one that is missing is its own to complain about */
}

static const nvrtc_table *open_once(scout_why *why) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
    int major = 0, minor = 0;
    if (state.opened) return &state.table;
    void *const library = libraries_open(names, false, state.table.path, sizeof state.table.path, why);
    if (!library) return NULL;
    if (!libraries_bind(library, functions, sizeof functions / sizeof functions[0], &state.table, why)) return NULL;
    if (state.table.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) major = 0;
    snprintf(state.table.version, sizeof state.table.version, "%d.%d", major, minor);
    open_builtins(major, minor);
    state.opened = true;
    return &state.table;
}

const nvrtc_table *nvrtc_open(scout_why *why) {
    pthread_mutex_lock(&opening);
    const nvrtc_table *const table = open_once(why);
    pthread_mutex_unlock(&opening);
    return table;
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
        return scout_say(why, SCOUT_NO, "library", "NVRTC %s gives no code", nvrtc->version);
    out->cubin = malloc(out->bytes);
    if (!out->cubin) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a kernel");
    if (nvrtc->nvrtcGetCUBIN(program, out->cubin) == NVRTC_SUCCESS) return SCOUT_OK;
    nvrtc_code_free(out);
    return scout_say(why, SCOUT_NO, "library", "NVRTC %s gives no code", nvrtc->version);
}

scout_answer nvrtc_compile(const nvrtc_source *source, int major, int minor, nvrtc_code *out, scout_why *why) {
    char arch[48], line[160];
    const char *const options[] = {arch, "--std=c++17"};
    nvrtcProgram program = NULL;
    *out = (nvrtc_code){NULL, 0};
    const nvrtc_table *const nvrtc = nvrtc_open(why);
    if (!nvrtc) return SCOUT_NO;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", major, minor);
    nvrtcResult result = nvrtc->nvrtcCreateProgram(&program, source->text, "generated.cu", source->include_count,
                                                   source->includes, source->include_names);
    if (result != NVRTC_SUCCESS)
        return scout_say(why, SCOUT_NO, "library", "NVRTC %s takes no source: %s", nvrtc->version,
                         nvrtc->nvrtcGetErrorString(result));
    result = nvrtc->nvrtcCompileProgram(program, 2, options);
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

void nvrtc_code_free(nvrtc_code *code) {
    free(code->cubin);
    *code = (nvrtc_code){NULL, 0};
}
