/* Opening cuBLASLt. Its handle belongs to the process: workers have one device each. */
#include "scout/cuda/lt/lt.h"

#include "scout/device/libraries.h"

#include <pthread.h>

typedef struct lt_state {
    bool opened;
    lt_table table;
    cublasLtHandle_t handle;
} lt_state;

/* The library and its handle are opened once: two copies in a process would not work together. */
static lt_state state;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* any of the worker's threads may be the first */

static const libraries_place functions[] = {
#define LT_PLACE(name) {#name, offsetof(lt_table, name)},
    LT_FUNCTIONS(LT_PLACE)
#undef LT_PLACE
};

static const lt_table *open_once(scout_why *why) {
    static const char *const names[] = {"libcublasLt.so.13", NULL};
    if (state.opened) return &state.table;
    void *const library = libraries_open(names, false, state.table.path, sizeof state.table.path, why);
    if (!library) return NULL;
    if (!libraries_bind(library, functions, sizeof functions / sizeof functions[0], &state.table, why)) return NULL;
    const size_t version = state.table.cublasLtGetVersion();
    snprintf(state.table.version, sizeof state.table.version, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    state.opened = true;
    return &state.table;
}

const lt_table *lt_open(scout_why *why) {
    pthread_mutex_lock(&opening);
    const lt_table *const table = open_once(why);
    pthread_mutex_unlock(&opening);
    return table;
}

static const lt_table *ready_once(scout_why *why) {
    const lt_table *const lt = open_once(why);
    if (lt && !state.handle) {
        const cublasStatus_t status = lt->cublasLtCreate(&state.handle);
        if (status != CUBLAS_STATUS_SUCCESS) {
            state.handle = NULL;
            scout_say(why, SCOUT_FAILED, "error", "cublasLtCreate: %s", lt->cublasLtGetStatusString(status));
            return NULL;
        }
    }
    return lt;
}

/* Any thread may use the one handle. */
const lt_table *lt_ready(cublasLtHandle_t *handle, scout_why *why) {
    pthread_mutex_lock(&opening);
    const lt_table *const lt = ready_once(why);
    pthread_mutex_unlock(&opening);
    *handle = state.handle;
    return lt;
}
