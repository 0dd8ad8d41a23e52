/* Opening oneDNN, and the one place that knows how its major versions differ. */
#include "scout/cpu/cpu_onednn.h"

#include "scout/cpu/cpu_team.h"
#include "scout/libraries.h"

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

/* --- what the versions do differently --- */

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

bool cpu_onednn_md_of(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what) {
    const_dnnl_memory_desc_t found = the_library.dnnl_primitive_desc_query_md(pd, what, 0);
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

dnnl_status_t cpu_onednn_convolution(dnnl_primitive_desc_t *pd, bool transposed, const cpu_onednn_md *src,
                                     const cpu_onednn_md *weights, const cpu_onednn_md *bias, const cpu_onednn_md *dst,
                                     const cpu_onednn_window *w, const_dnnl_primitive_attr_t attr) {
    const_dnnl_memory_desc_t b = bias && bias->there ? bias->md : NULL;
    if (transposed)
        return the_library.dnnl_deconvolution_forward_primitive_desc_create(
            pd, the_library.engine, dnnl_forward_inference, dnnl_deconvolution_direct, src->md, weights->md, b, dst->md,
            w->strides, w->dilates, w->begin, w->end, attr);
    return the_library.dnnl_convolution_forward_primitive_desc_create(
        pd, the_library.engine, dnnl_forward_inference, dnnl_convolution_direct, src->md, weights->md, b, dst->md,
        w->strides, w->dilates, w->begin, w->end, attr);
}

dnnl_status_t cpu_onednn_pooling(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t how, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, const cpu_onednn_window *w,
                                 const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_pooling_forward_primitive_desc_create(pd, the_library.engine, dnnl_forward_inference, how,
                                                                  src->md, dst->md, w->strides, w->kernel, w->dilates,
                                                                  w->begin, w->end, attr);
}

dnnl_status_t cpu_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t how, float alpha, float beta) {
    const bool hardswish = how == dnnl_eltwise_hardswish; /* has parameters since version 3 */
    return the_library.dnnl_post_ops_append_eltwise(ops, how, hardswish ? 1.0F / 6 : alpha, hardswish ? 0.5F : beta);
dnnl_status_t cpu_onednn_softmax(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, int axis, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_softmax_forward_primitive_desc_create(pd, the_library.engine, dnnl_forward_inference,
                                                                  algorithm, src->md, dst->md, axis, attr);
}

dnnl_status_t cpu_onednn_layer_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_layer_normalization_forward_primitive_desc_create(
        pd, the_library.engine, dnnl_forward_inference, src->md, dst->md, NULL, epsilon, flags, attr);
}

dnnl_status_t cpu_onednn_batch_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_batch_normalization_forward_primitive_desc_create(
        pd, the_library.engine, dnnl_forward_inference, src->md, dst->md, epsilon, flags, attr);
}

dnnl_status_t cpu_onednn_lrn(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                             int64_t size, float alpha, float beta, float k, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_lrn_forward_primitive_desc_create(pd, the_library.engine, dnnl_forward_inference,
                                                              dnnl_lrn_across_channels, src->md, dst->md, size, alpha,
                                                              beta, k, attr);
dnnl_status_t cpu_onednn_eltwise(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, float alpha, float beta, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_eltwise_forward_primitive_desc_create(pd, the_library.engine, dnnl_forward_inference,
                                                                  algorithm, src->md, dst->md, alpha, beta, attr);
}

dnnl_status_t cpu_onednn_binary(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src0,
                                const cpu_onednn_md *src1, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_binary_primitive_desc_create(pd, the_library.engine, algorithm, src0->md, src1->md, dst->md,
                                                         attr);
}

dnnl_status_t cpu_onednn_reduction(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                   const cpu_onednn_md *dst, float p, const_dnnl_primitive_attr_t attr) {
    return the_library.dnnl_reduction_primitive_desc_create(pd, the_library.engine, algorithm, src->md, dst->md, p, 0,
                                                            attr);
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

bool cpu_onednn_md_of(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what) {
    const dnnl_memory_desc_t *found = the_library.dnnl_primitive_desc_query_md(pd, what, 0);
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

dnnl_status_t cpu_onednn_convolution(dnnl_primitive_desc_t *pd, bool transposed, const cpu_onednn_md *src,
                                     const cpu_onednn_md *weights, const cpu_onednn_md *bias, const cpu_onednn_md *dst,
                                     const cpu_onednn_window *w, const_dnnl_primitive_attr_t attr) {
    const dnnl_memory_desc_t *b = bias && bias->there ? &bias->md : NULL;
    dnnl_convolution_desc_t d; /* of both: dnnl_deconvolution_desc_t is the same type */
    const dnnl_status_t status = transposed ? the_library.dnnl_dilated_deconvolution_forward_desc_init(
                                                  &d, dnnl_forward_inference, dnnl_deconvolution_direct, &src->md,
                                                  &weights->md, b, &dst->md, w->strides, w->dilates, w->begin, w->end)
                                            : the_library.dnnl_dilated_convolution_forward_desc_init(
                                                  &d, dnnl_forward_inference, dnnl_convolution_direct, &src->md,
                                                  &weights->md, b, &dst->md, w->strides, w->dilates, w->begin, w->end);
/* Version 2 has one md for source and destination. */
dnnl_status_t cpu_onednn_eltwise(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, float alpha, float beta, const_dnnl_primitive_attr_t attr) {
    dnnl_eltwise_desc_t d;
    (void)dst;
    const dnnl_status_t status =
        the_library.dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, algorithm, &src->md, alpha, beta);
    if (status != dnnl_success) return status;
    return the_library.dnnl_primitive_desc_create(pd, &d, attr, the_library.engine, NULL);
}

dnnl_status_t cpu_onednn_pooling(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t how, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, const cpu_onednn_window *w,
                                 const_dnnl_primitive_attr_t attr) {
    dnnl_pooling_v2_desc_t d;
    const dnnl_status_t status = the_library.dnnl_pooling_v2_forward_desc_init(
        &d, dnnl_forward_inference, how, &src->md, &dst->md, w->strides, w->kernel, w->dilates, w->begin, w->end);
dnnl_status_t cpu_onednn_binary(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src0,
                                const cpu_onednn_md *src1, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr) {
    dnnl_binary_desc_t d;
    const dnnl_status_t status = the_library.dnnl_binary_desc_init(&d, algorithm, &src0->md, &src1->md, &dst->md);
    if (status != dnnl_success) return status;
    return the_library.dnnl_primitive_desc_create(pd, &d, attr, the_library.engine, NULL);
}

dnnl_status_t cpu_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t how, float alpha, float beta) {
    return the_library.dnnl_post_ops_append_eltwise(ops, 1, how, alpha, beta);
/* Version 2 describes an operation first; most have one descriptor for source and destination. */
static dnnl_status_t create(dnnl_primitive_desc_t *pd, dnnl_status_t described, const void *d,
                            const_dnnl_primitive_attr_t attr) {
    if (described != dnnl_success) return described;
    return the_library.dnnl_primitive_desc_create(pd, d, attr, the_library.engine, NULL);
}

dnnl_status_t cpu_onednn_softmax(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, int axis, const_dnnl_primitive_attr_t attr) {
    dnnl_softmax_v2_desc_t d;
    const dnnl_status_t described =
        the_library.dnnl_softmax_v2_forward_desc_init(&d, dnnl_forward_inference, algorithm, &src->md, &dst->md, axis);
    return create(pd, described, &d, attr);
}

dnnl_status_t cpu_onednn_layer_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    dnnl_layer_normalization_desc_t d;
    (void)dst;
    const dnnl_status_t described = the_library.dnnl_layer_normalization_forward_desc_init(
        &d, dnnl_forward_inference, &src->md, NULL, epsilon, flags);
    return create(pd, described, &d, attr);
}

dnnl_status_t cpu_onednn_batch_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    dnnl_batch_normalization_desc_t d;
    (void)dst;
    const dnnl_status_t described =
        the_library.dnnl_batch_normalization_forward_desc_init(&d, dnnl_forward_inference, &src->md, epsilon, flags);
    return create(pd, described, &d, attr);
}

dnnl_status_t cpu_onednn_lrn(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                             int64_t size, float alpha, float beta, float k, const_dnnl_primitive_attr_t attr) {
    dnnl_lrn_desc_t d;
    (void)dst;
    const dnnl_status_t described = the_library.dnnl_lrn_forward_desc_init(
        &d, dnnl_forward_inference, dnnl_lrn_across_channels, &src->md, size, alpha, beta, k);
    return create(pd, described, &d, attr);
dnnl_status_t cpu_onednn_reduction(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                   const cpu_onednn_md *dst, float p, const_dnnl_primitive_attr_t attr) {
    dnnl_reduction_desc_t d;
    const dnnl_status_t status = the_library.dnnl_reduction_desc_init(&d, algorithm, &src->md, &dst->md, p, 0);
    if (status != dnnl_success) return status;
    return the_library.dnnl_primitive_desc_create(pd, &d, attr, the_library.engine, NULL);
}

#endif

dnnl_status_t cpu_onednn_append_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t how, const cpu_onednn_md *other) {
    return the_library.dnnl_post_ops_append_binary(ops, how, HANDLE(other));
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
