/* Opening cuDNN, and the meaning of its statuses. Workers have one device each, but several threads: those that prepare
 * ahead have handles of their own, for a handle serves one thread at a time. */
#include "scout/cuda/dnn/dnn.h"

#include "scout/device/libraries.h"

#include <pthread.h>
#include <string.h>

typedef struct dnn_state {
    pthread_mutex_t opening;
    bool opened, complete; /* complete: all of its parts were looked for */
    dnn_table table;
} dnn_state;

/* The library is loaded once: two copies in a process would not work together. */
static dnn_state state = {.opening = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local cudnnHandle_t own; /* of this thread, as long as the process: plans outlive those that made them */

static const libraries_place functions[] = {
#define DNN_PLACE(name) {#name, offsetof(dnn_table, name)},
    DNN_FUNCTIONS(DNN_PLACE)
#undef DNN_PLACE
};

/* What it opens by itself, by name, in its own folder and where the loader looks. In our order they are found where
 * only --library-path names the folder, and a name that is loaded already is not looked for again. The first one is
 * always needed; the others are large, and a query for the version does not need them. */
static const char *const needed[] = {
    "libcudnn_graph.so.9",
    "libcudnn_ops.so.9",
    "libcublasLt.so.13",
    "libnvrtc.so.13",
    "libcudnn_heuristic.so.9",
    "libcudnn_engines_precompiled.so.9",
    "libcudnn_engines_runtime_compiled.so.9",
};

enum { NEEDED = sizeof needed / sizeof needed[0] };

/* cuDNN itself reports a missing one: not every operation needs all. */
static void open_part(const char *name) {
    const char *const slash = strrchr(state.table.path, '/');
    char beside[512];
    const char *names[] = {name, NULL, NULL};
    if (slash && strncmp(name, "libcudnn", 8) == 0) {
        snprintf(beside, sizeof beside, "%.*s/%s", (int)(slash - state.table.path), state.table.path, name);
        names[0] = beside;
        names[1] = name;
    }
    libraries_open(names, false, NULL, 0, NULL);
}

static void open_needed(int from, int to) {
    for (int k = from; k < to; k++) open_part(needed[k]);
}

static const dnn_table *open_once(scout_why *why) {
    static const char *const names[] = {"libcudnn.so.9", NULL};
    if (state.opened) return &state.table;
    void *const library = libraries_open(names, false, state.table.path, sizeof state.table.path, why);
    if (!library) return NULL;
    if (!libraries_bind(library, functions, sizeof functions / sizeof functions[0], &state.table, why)) return NULL;
    open_needed(0, 1);
    const size_t version = state.table.cudnnGetVersion();
    snprintf(state.table.version, sizeof state.table.version, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    state.opened = true;
    return &state.table;
}

const dnn_table *dnn_open(scout_why *why) {
    pthread_mutex_lock(&state.opening);
    const dnn_table *const dnn = open_once(why);
    pthread_mutex_unlock(&state.opening);
    return dnn;
}

static void open_rest(void) {
    pthread_mutex_lock(&state.opening);
    if (!state.complete) open_needed(1, NEEDED);
    state.complete = true;
    pthread_mutex_unlock(&state.opening);
}

/* Launches come this way: a thread that has a handle takes no lock. */
const dnn_table *dnn_ready(cudnnHandle_t *handle, scout_why *why) {
    if (!own) {
        const dnn_table *const dnn = dnn_open(why);
        if (!dnn) return NULL;
        open_rest();
        const cudnnStatus_t status = dnn->cudnnCreate(&own);
        if (status != CUDNN_STATUS_SUCCESS) {
            own = NULL;
            dnn_answer(status, "cudnnCreate", why);
            return NULL;
        }
    }
    *handle = own;
    return &state.table;
}

const dnn_table *dnn_ready_for(cudnnHandle_t *handle, const char *part, scout_why *why) {
    const dnn_table *const dnn = dnn_ready(handle, why);
    if (!dnn) return NULL;
    pthread_mutex_lock(&state.opening);
    open_part(part);
    pthread_mutex_unlock(&state.opening);
    return dnn;
}

cudnnStatus_t dnn_on(void *stream, cudnnHandle_t *handle) {
    const dnn_table *const dnn = dnn_ready(handle, NULL);
    return dnn ? dnn->cudnnSetStream(*handle, stream) : CUDNN_STATUS_NOT_INITIALIZED;
}

/* Single statuses before the thousands that they belong to. */
static const struct {
    int first, last;
    scout_answer answer;
    const char *code;
} meanings[] = {
    {CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, SCOUT_NO, "library"},
    {CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, SCOUT_NO, "library"},
    {CUDNN_STATUS_NOT_SUPPORTED_SHAPE, CUDNN_STATUS_NOT_SUPPORTED_SHAPE, SCOUT_NO, "shape"},
    {CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, SCOUT_NO, "type"},
    {CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, SCOUT_NO, "layout"},
    {CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART, SCOUT_NO,
     "library"},
    {CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, SCOUT_NO, "hardware"},
    {CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE,
     SCOUT_NO, "library"},
    {CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED + 999, SCOUT_NO, "feature"},
    {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
     SCOUT_NO_MEMORY, "memory"},
};

/* Its messages are long and may have line breaks; the end is the useful part. */
static void last_words(char *text, size_t room) {
    char all[2048] = "";
    state.table.cudnnGetLastErrorString(all, sizeof all);
    all[sizeof all - 1] = '\0';
    for (char *at = all; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    size_t length = strlen(all);
    while (length > 0 && all[length - 1] == ' ') all[--length] = '\0';
    snprintf(text, room, "%s", length < room ? all : all + (length - room + 1));
}

scout_answer dnn_answer(cudnnStatus_t status, const char *doing, scout_why *why) {
    char words[140];
    if (status == CUDNN_STATUS_SUCCESS) return SCOUT_OK;
    last_words(words, sizeof words);
    const scout_answer lost = cuda_device_answer(cudaGetLastError(), doing, why);
    if (lost == SCOUT_LOST) return lost;
    for (size_t k = 0; k < sizeof meanings / sizeof meanings[0]; k++)
        if ((int)status >= meanings[k].first && (int)status <= meanings[k].last)
            return scout_say(why, meanings[k].answer, meanings[k].code, "%.30s: %.60s %s", doing,
                             state.table.cudnnGetErrorString(status), words);
    return scout_say(why, SCOUT_FAILED, "error", "%.30s: %.60s %s", doing, state.table.cudnnGetErrorString(status),
                     words);
}

bool dnn_type(uint32_t type, cudnnDataType_t *out) {
    static const struct {
        uint32_t type;
        cudnnDataType_t name;
    } types[] = {
        {SCOUT_FP32, CUDNN_DATA_FLOAT},       {SCOUT_FP16, CUDNN_DATA_HALF},       {SCOUT_BF16, CUDNN_DATA_BFLOAT16},
        {SCOUT_FP64, CUDNN_DATA_DOUBLE},      {SCOUT_INT8, CUDNN_DATA_INT8},       {SCOUT_UINT8, CUDNN_DATA_UINT8},
        {SCOUT_INT32, CUDNN_DATA_INT32},      {SCOUT_INT64, CUDNN_DATA_INT64},     {SCOUT_BOOL, CUDNN_DATA_BOOLEAN},
        {SCOUT_FP8E4M3, CUDNN_DATA_FP8_E4M3}, {SCOUT_FP8E5M2, CUDNN_DATA_FP8_E5M2}};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (types[k].type == type) {
            *out = types[k].name;
            return true;
        }
    return false;
}
