/* Opening cuSPARSE. A handle has one stream at a time, so each thread has its own. */
#include "scout/cuda/sparse/sparse.h"

#include "scout/cuda/device/cuda_device.h"
#include "scout/device/libraries.h"

#include <pthread.h>

typedef struct sparse_state {
    bool opened;
    sparse_table table;
} sparse_state;

/* Loaded once: a process can hold only one copy of the library in a sensible way. */
static sparse_state state;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* any of the worker's threads may be the first */

static const libraries_place functions[] = {
#define SPARSE_PLACE(name) {#name, offsetof(sparse_table, name)},
    SPARSE_FUNCTIONS(SPARSE_PLACE)
#undef SPARSE_PLACE
};

static const sparse_table *open_once(scout_why *why) {
    static const char *const names[] = {"libcusparse.so.12", NULL};
    int major = 0, minor = 0, patch = 0;
    if (state.opened) return &state.table;
    void *const library = libraries_open(names, false, state.table.path, sizeof state.table.path, why);
    if (!library) return NULL;
    if (!libraries_bind(library, functions, sizeof functions / sizeof functions[0], &state.table, why)) return NULL;
    state.table.cusparseGetProperty(MAJOR_VERSION, &major);
    state.table.cusparseGetProperty(MINOR_VERSION, &minor);
    state.table.cusparseGetProperty(PATCH_LEVEL, &patch);
    snprintf(state.table.version, sizeof state.table.version, "%d.%d.%d", major, minor, patch);
    state.opened = true;
    return &state.table;
}

const sparse_table *sparse_open(scout_why *why) {
    pthread_mutex_lock(&opening);
    const sparse_table *const table = open_once(why);
    pthread_mutex_unlock(&opening);
    return table;
}

cusparseHandle_t sparse_handle(const sparse_table *table) {
    static _Thread_local cusparseHandle_t own;
    if (!own && table->cusparseCreate(&own) != CUSPARSE_STATUS_SUCCESS) own = NULL;
    return own;
}

void sparse_beside(void) {
    pthread_mutex_lock(&opening);
    const bool opened = state.opened;
    pthread_mutex_unlock(&opening);
    if (opened) (void)sparse_handle(&state.table);
}

scout_answer sparse_answer(const sparse_table *table, cusparseStatus_t status, const char *doing, scout_why *why) {
    static const struct {
        cusparseStatus_t status;
        scout_answer answer;
        const char *code;
    } meanings[] = {{CUSPARSE_STATUS_ALLOC_FAILED, SCOUT_NO_MEMORY, "memory"},
                    {CUSPARSE_STATUS_INSUFFICIENT_RESOURCES, SCOUT_NO_MEMORY, "memory"},
                    {CUSPARSE_STATUS_NOT_SUPPORTED, SCOUT_NO, "feature"},
                    {CUSPARSE_STATUS_ARCH_MISMATCH, SCOUT_NO, "hardware"}};
    const scout_answer lost = cuda_device_answer(cudaGetLastError(), doing, why);
    if (lost == SCOUT_LOST) return lost;
    for (size_t k = 0; k < sizeof meanings / sizeof meanings[0]; k++)
        if (meanings[k].status == status)
            return scout_say(why, meanings[k].answer, meanings[k].code, "%s: %s", doing,
                             table->cusparseGetErrorString(status));
    return scout_say(why, SCOUT_FAILED, "error", "%s: %s", doing, table->cusparseGetErrorString(status));
}
