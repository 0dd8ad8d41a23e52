/* Opening cuSPARSELt. Its handle belongs to the process: workers have one device each. */
#include "scout/cuda/sparse/sparse_lt.h"

#include "scout/cuda/device/cuda_device.h"
#include "scout/device/libraries.h"

#include <pthread.h>

/* Versions with checked declarations. */
enum { MAJOR = 0, OLDEST_MINOR = 8, NEWEST_MINOR = 10 };

typedef struct sparse_lt_state {
    bool opened, ready;
    sparse_lt_table table;
    sparse_lt_object handle;
} sparse_lt_state;

/* Loaded once: a process can hold only one copy of the library in a sensible way. */
static sparse_lt_state state;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* any of the worker's threads may be the first */

static const libraries_place functions[] = {
#define SPARSE_LT_PLACE(name, parameters) {#name, offsetof(sparse_lt_table, name)},
    SPARSE_LT_FUNCTIONS(SPARSE_LT_PLACE)
#undef SPARSE_LT_PLACE
        {"cusparseLtGetErrorString", offsetof(sparse_lt_table, cusparseLtGetErrorString)},
};

/* The version is asked of the only function that no version has changed; only then are the others looked for. */
static bool known_version(void *library, scout_why *why) {
    static const libraries_place first[] = {
        {"cusparseLtGetProperty", offsetof(sparse_lt_table, cusparseLtGetProperty)}};
    int major = -1, minor = -1, patch = -1;
    if (!libraries_bind(library, first, 1, &state.table, why)) return false;
    state.table.cusparseLtGetProperty(MAJOR_VERSION, &major);
    state.table.cusparseLtGetProperty(MINOR_VERSION, &minor);
    state.table.cusparseLtGetProperty(PATCH_LEVEL, &patch);
    snprintf(state.table.version, sizeof state.table.version, "%d.%d.%d", major, minor, patch);
    if (major == MAJOR && minor >= OLDEST_MINOR && minor <= NEWEST_MINOR) return true;
    scout_say(why, SCOUT_NO, "library", "%.120s is cuSPARSELt %s: %d.%d to %d.%d are known here", state.table.path,
              state.table.version, MAJOR, OLDEST_MINOR, MAJOR, NEWEST_MINOR);
    return false;
}

static const sparse_lt_table *open_once(scout_why *why) {
    static const char *const names[] = {"libcusparseLt.so.0", NULL};
    if (state.opened) return &state.table;
    void *const library = libraries_open(names, false, state.table.path, sizeof state.table.path, why);
    if (!library || !known_version(library, why)) return NULL;
    if (!libraries_bind(library, functions, sizeof functions / sizeof functions[0], &state.table, why)) return NULL;
    state.opened = true;
    return &state.table;
}

const sparse_lt_table *sparse_lt_open(scout_why *why) {
    pthread_mutex_lock(&opening);
    const sparse_lt_table *const table = open_once(why);
    pthread_mutex_unlock(&opening);
    return table;
}

const sparse_lt_table *sparse_lt_ready(const sparse_lt_object **handle, scout_why *why) {
    const sparse_lt_table *const table = sparse_lt_open(why);
    if (!table) return NULL;
    if (!state.ready) {
        const cusparseStatus_t status = table->cusparseLtInit(&state.handle);
        if (status != CUSPARSE_STATUS_SUCCESS) {
            sparse_lt_answer(table, status, "cusparseLtInit", "hardware", why);
            return NULL;
        }
        state.ready = true;
    }
    *handle = &state.handle;
    return table;
}

scout_answer sparse_lt_answer(const sparse_lt_table *table, cusparseStatus_t status, const char *doing,
                              const char *code, scout_why *why) {
    static const struct {
        cusparseStatus_t status;
        scout_answer answer;
        const char *code; /* NULL: the caller's */
    } meanings[] = {{CUSPARSE_STATUS_ALLOC_FAILED, SCOUT_NO_MEMORY, "memory"},
                    {CUSPARSE_STATUS_INSUFFICIENT_RESOURCES, SCOUT_NO_MEMORY, "memory"},
                    {CUSPARSE_STATUS_NOT_SUPPORTED, SCOUT_NO, NULL},
                    {CUSPARSE_STATUS_INVALID_VALUE, SCOUT_NO, NULL},
                    {CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED, SCOUT_NO, "type"},
                    {CUSPARSE_STATUS_ARCH_MISMATCH, SCOUT_NO, "hardware"}};
    const scout_answer lost = cuda_device_answer(cudaGetLastError(), doing, why);
    if (lost == SCOUT_LOST) return lost;
    for (size_t k = 0; code && k < sizeof meanings / sizeof meanings[0]; k++)
        if (meanings[k].status == status)
            return scout_say(why, meanings[k].answer, meanings[k].code ? meanings[k].code : code, "%s: %s", doing,
                             table->cusparseLtGetErrorString(status));
    return scout_say(why, SCOUT_FAILED, "error", "%s: %s", doing, table->cusparseLtGetErrorString(status));
}
