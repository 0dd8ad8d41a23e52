/* Opening oneDNN, and the differences of its major versions. */
#include "scout/cpu/onednn/cpu_onednn.h"

#include "scout/cpu/device/cpu_team.h"
#include "scout/device/libraries.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if DNNL_VERSION_MAJOR >= 3
#define LIBRARY_NAME "libdnnl.so.3"
#define PACKAGE_NAME "libdnnl3"
#else
#define LIBRARY_NAME "libdnnl.so.2"
#define PACKAGE_NAME "libdnnl2"
#endif

/* Opened once for the process: libraries are never closed, and the engine has no state that changes. */
static cpu_onednn the_library;
static scout_why the_why;
static bool usable;
static pthread_once_t the_once = PTHREAD_ONCE_INIT;

static bool fill_table(void *handle, cpu_onednn *l) {
#define FIND(name)                                                                                                     \
    *(void **)&l->name = libraries_symbol(handle, #name, &the_why);                                                    \
    if (!l->name) return false;
    CPU_ONEDNN_ALL(FIND)
#undef FIND
    return true;
}

static void open_once(void) {
    static const char *const names[] = {LIBRARY_NAME, NULL};
    cpu_onednn *l = &the_library;
    cpu_team_start(); /* before the library brings its runtime of threads */
    void *handle = libraries_open(names, false, l->path, sizeof l->path, &the_why);
    if (!handle) {
        const size_t used = strlen(the_why.text);
        snprintf(the_why.text + used, sizeof the_why.text - used, " (package %s)", PACKAGE_NAME);
        return;
    }
    if (!fill_table(handle, l)) return;
    const dnnl_version_t *v = l->dnnl_version();
    snprintf(l->version, sizeof l->version, "%d.%d.%d", v->major, v->minor, v->patch);
    if (v->major != DNNL_VERSION_MAJOR) {
        scout_say(&the_why, SCOUT_NO, "library", "%.120s is version %s; this program was built for version %d", l->path,
                  l->version, DNNL_VERSION_MAJOR);
    } else if (v->cpu_runtime != DNNL_RUNTIME_OMP) {
        scout_say(&the_why, SCOUT_NO, "library",
                  "%.120s does not use OpenMP: its threads would compete with ours; install a build that does",
                  l->path);
    } else if (l->dnnl_engine_create(&l->engine, dnnl_cpu, 0) != dnnl_success ||
               l->dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags) != dnnl_success) {
        scout_say(&the_why, SCOUT_NO, "library", "%.120s could not make an engine for this processor", l->path);
    } else {
        usable = true;
    }
}

const cpu_onednn *cpu_onednn_get(scout_why *why) {
    (void)pthread_once(&the_once, open_once);
    if (usable) return &the_library;
    if (why) *why = the_why;
    return NULL;
}

/* A set's number has the bits of every set that it contains. */
bool cpu_onednn_uses(dnnl_cpu_isa_t isa) {
    const cpu_onednn *l = cpu_onednn_get(NULL);
    return l && ((unsigned)l->dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}

/* --- differences of versions --- */

#if DNNL_VERSION_MAJOR >= 3

bool cpu_onednn_md_strided(cpu_onednn_md *m, int rank, const int64_t *dims, dnnl_data_type_t type,
                           const int64_t *strides) {
    m->there = the_library.dnnl_memory_desc_create_with_strides(&m->md, rank, dims, type, strides) == dnnl_success;
    return m->there;
}

bool cpu_onednn_md_any(cpu_onednn_md *m, int rank, const int64_t *dims, dnnl_data_type_t type) {
    m->there =
        the_library.dnnl_memory_desc_create_with_tag(&m->md, rank, dims, type, dnnl_format_tag_any) == dnnl_success;
    return m->there;
}

static bool md_of(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index) {
    const_dnnl_memory_desc_t found = the_library.dnnl_primitive_desc_query_md(pd, what, index);
    m->there = found && the_library.dnnl_memory_desc_clone(&m->md, found) == dnnl_success;
    return m->there;
}

void cpu_onednn_md_free(cpu_onednn_md *m) {
    if (m->there) the_library.dnnl_memory_desc_destroy(m->md);
    m->there = false;
}

#define HANDLE(m) ((m)->md)

dnnl_status_t cpu_onednn_matmul(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *weights,
                                const cpu_onednn_md *bias, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_matmul_primitive_desc_create(pd, the_library.engine, src->md, weights->md,
                                                         bias && bias->there ? bias->md : NULL, dst->md, attr);
}

#else

bool cpu_onednn_md_strided(cpu_onednn_md *m, int rank, const int64_t *dims, dnnl_data_type_t type,
                           const int64_t *strides) {
    m->there = the_library.dnnl_memory_desc_init_by_strides(&m->md, rank, dims, type, strides) == dnnl_success;
    return m->there;
}

bool cpu_onednn_md_any(cpu_onednn_md *m, int rank, const int64_t *dims, dnnl_data_type_t type) {
    m->there = the_library.dnnl_memory_desc_init_by_tag(&m->md, rank, dims, type, dnnl_format_tag_any) == dnnl_success;
    return m->there;
}

static bool md_of(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index) {
    const dnnl_memory_desc_t *found = the_library.dnnl_primitive_desc_query_md(pd, what, index);
    m->there = found != NULL;
    if (found) m->md = *found;
    return m->there;
}

void cpu_onednn_md_free(cpu_onednn_md *m) { m->there = false; }

#define HANDLE(m) (&(m)->md)

dnnl_status_t cpu_onednn_matmul(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *weights,
                                const cpu_onednn_md *bias, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr) {
    dnnl_matmul_desc_t d;
    dnnl_status_t status =
        the_library.dnnl_matmul_desc_init(&d, &src->md, &weights->md, bias && bias->there ? &bias->md : NULL, &dst->md);
    if (status != dnnl_success) return status;
    return the_library.dnnl_primitive_desc_create(pd, &d, attr, the_library.engine, NULL);
}

#endif

bool cpu_onednn_md_of(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what) {
    return md_of(m, pd, what, 0);
}

bool cpu_onednn_md_of_arg(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, int arg) {
    return md_of(m, pd, dnnl_query_exec_arg_md, arg);
}

size_t cpu_onednn_md_bytes(const cpu_onednn_md *m) {
    return m->there ? the_library.dnnl_memory_desc_get_size(HANDLE(m)) : 0;
}

bool cpu_onednn_md_same(const cpu_onednn_md *a, const cpu_onednn_md *b) {
    return the_library.dnnl_memory_desc_equal(HANDLE(a), HANDLE(b)) != 0;
}

bool cpu_onednn_memory(dnnl_memory_t *memory, const cpu_onednn_md *m, void *data) {
    return the_library.dnnl_memory_create(memory, HANDLE(m), the_library.engine, data) == dnnl_success;
}

dnnl_status_t cpu_onednn_reorder(dnnl_primitive_desc_t *pd, const cpu_onednn_md *from, const cpu_onednn_md *to) {
    return the_library.dnnl_reorder_primitive_desc_create(pd, HANDLE(from), the_library.engine, HANDLE(to),
                                                          the_library.engine, NULL);
}
