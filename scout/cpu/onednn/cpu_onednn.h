/* oneDNN, opened at run time, in the two major versions that distributions carry (2: Debian 12, 3: Ubuntu 24.04). What
 * differs between them (memory descriptors, creation of matmul) is hidden by the functions below; everything else is
 * called through the table, with the types of dnnl.h. */
#pragma once

#include "scout/plugin.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

#define CPU_ONEDNN_BOTH(X)                                                                                             \
    X(dnnl_version)                                                                                                    \
    X(dnnl_get_effective_cpu_isa)                                                                                      \
    X(dnnl_engine_create)                                                                                              \
    X(dnnl_stream_create)                                                                                              \
    X(dnnl_stream_wait)                                                                                                \
    X(dnnl_memory_desc_get_size)                                                                                       \
    X(dnnl_memory_desc_equal)                                                                                          \
    X(dnnl_memory_create)                                                                                              \
    X(dnnl_memory_destroy)                                                                                             \
    X(dnnl_memory_set_data_handle)                                                                                     \
    X(dnnl_primitive_attr_create)                                                                                      \
    X(dnnl_primitive_attr_destroy)                                                                                     \
    X(dnnl_primitive_attr_set_scratchpad_mode)                                                                         \
    X(dnnl_primitive_attr_set_post_ops)                                                                                \
    X(dnnl_post_ops_create)                                                                                            \
    X(dnnl_post_ops_destroy)                                                                                           \
    X(dnnl_post_ops_append_eltwise)                                                                                    \
    X(dnnl_post_ops_append_binary)                                                                                     \
    X(dnnl_primitive_desc_destroy)                                                                                     \
    X(dnnl_primitive_desc_query)                                                                                       \
    X(dnnl_primitive_desc_query_md)                                                                                    \
    X(dnnl_reorder_primitive_desc_create)                                                                              \
    X(dnnl_primitive_create)                                                                                           \
    X(dnnl_primitive_execute)                                                                                          \
    X(dnnl_primitive_destroy)
#if DNNL_VERSION_MAJOR >= 3
#define CPU_ONEDNN_ONE(X)                                                                                              \
    X(dnnl_memory_desc_create_with_strides)                                                                            \
    X(dnnl_memory_desc_create_with_tag)                                                                                \
    X(dnnl_memory_desc_clone)                                                                                          \
    X(dnnl_memory_desc_destroy)                                                                                        \
    X(dnnl_matmul_primitive_desc_create)                                                                               \
    X(dnnl_convolution_forward_primitive_desc_create)                                                                  \
    X(dnnl_deconvolution_forward_primitive_desc_create)                                                                \
    X(dnnl_pooling_forward_primitive_desc_create)                                                                      \
    X(dnnl_softmax_forward_primitive_desc_create)                                                                      \
    X(dnnl_layer_normalization_forward_primitive_desc_create)                                                          \
    X(dnnl_batch_normalization_forward_primitive_desc_create)                                                          \
    X(dnnl_lrn_forward_primitive_desc_create)                                                                          \
    X(dnnl_eltwise_forward_primitive_desc_create)                                                                      \
    X(dnnl_binary_primitive_desc_create)                                                                               \
    X(dnnl_reduction_primitive_desc_create)                                                                            \
    X(dnnl_vanilla_rnn_forward_primitive_desc_create)                                                                  \
    X(dnnl_lstm_forward_primitive_desc_create)                                                                         \
    X(dnnl_gru_forward_primitive_desc_create)                                                                          \
    X(dnnl_lbr_gru_forward_primitive_desc_create)
#else
#define CPU_ONEDNN_ONE(X)                                                                                              \
    X(dnnl_memory_desc_init_by_strides)                                                                                \
    X(dnnl_memory_desc_init_by_tag)                                                                                    \
    X(dnnl_matmul_desc_init)                                                                                           \
    X(dnnl_dilated_convolution_forward_desc_init)                                                                      \
    X(dnnl_dilated_deconvolution_forward_desc_init)                                                                    \
    X(dnnl_pooling_v2_forward_desc_init)                                                                               \
    X(dnnl_primitive_desc_create)                                                                                      \
    X(dnnl_softmax_v2_forward_desc_init)                                                                               \
    X(dnnl_layer_normalization_forward_desc_init)                                                                      \
    X(dnnl_batch_normalization_forward_desc_init)                                                                      \
    X(dnnl_lrn_forward_desc_init)                                                                                      \
    X(dnnl_eltwise_forward_desc_init)                                                                                  \
    X(dnnl_binary_desc_init)                                                                                           \
    X(dnnl_reduction_desc_init)                                                                                        \
    X(dnnl_vanilla_rnn_forward_desc_init)                                                                              \
    X(dnnl_lstm_forward_desc_init)                                                                                     \
    X(dnnl_gru_forward_desc_init)                                                                                      \
    X(dnnl_lbr_gru_forward_desc_init)                                                                                  \
    X(dnnl_primitive_attr_set_output_scales)                                                                           \
    X(dnnl_primitive_attr_set_zero_points)
#endif
#define CPU_ONEDNN_ALL(X) CPU_ONEDNN_BOTH(X) CPU_ONEDNN_ONE(X)

typedef struct cpu_onednn {
#define CPU_ONEDNN_MEMBER(name) __typeof__(&(name)) name;
    CPU_ONEDNN_ALL(CPU_ONEDNN_MEMBER)
#undef CPU_ONEDNN_MEMBER
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    char version[48];
    char path[256];
} cpu_onednn;

const cpu_onednn *cpu_onednn_get(scout_why *why); /* borrowed, for the life of the process; NULL: why says */

/* Whether the library uses this instruction set (dnnl_cpu_isa_…). The user may limit it below the processor's. */
bool cpu_onednn_uses(dnnl_cpu_isa_t isa);

/* A memory descriptor that owns what it holds: cpu_onednn_md_free, also of a zeroed one. */
typedef struct cpu_onednn_md {
    dnnl_memory_desc_t md;
    bool there;
} cpu_onednn_md;

bool cpu_onednn_md_strided(cpu_onednn_md *m, int rank, const int64_t *dims, dnnl_data_type_t type,
                           const int64_t *strides);
bool cpu_onednn_md_any(cpu_onednn_md *m, int rank, const int64_t *dims, dnnl_data_type_t type);
bool cpu_onednn_md_of(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what); /* a copy */
bool cpu_onednn_md_of_arg(cpu_onednn_md *m, const_dnnl_primitive_desc_t pd, int arg);       /* DNNL_ARG_… */
void cpu_onednn_md_free(cpu_onednn_md *m);
size_t cpu_onednn_md_bytes(const cpu_onednn_md *m);
bool cpu_onednn_md_same(const cpu_onednn_md *a, const cpu_onednn_md *b);
bool cpu_onednn_memory(dnnl_memory_t *memory, const cpu_onednn_md *m, void *data);

/* bias: NULL or not `there`: none. */
dnnl_status_t cpu_onednn_matmul(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *weights,
                                const cpu_onednn_md *bias, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_reorder(dnnl_primitive_desc_t *pd, const cpu_onednn_md *from, const cpu_onednn_md *to);

/* --- cpu_onednn_primitives.c --- */

/* How a window slides, in dnnl's words: a dilation of 0 is none. `kernel` is for pools alone. */
typedef struct cpu_onednn_window {
    dnnl_dims_t kernel, strides, dilates, begin, end;
} cpu_onednn_window;

/* transposed: a deconvolution. Weights are [output, input, …] or [group, output, input, …] for both. */
dnnl_status_t cpu_onednn_convolution(dnnl_primitive_desc_t *pd, bool transposed, const cpu_onednn_md *src,
                                     const cpu_onednn_md *weights, const cpu_onednn_md *bias, const cpu_onednn_md *dst,
                                     const cpu_onednn_window *w, const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_pooling(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t how, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, const cpu_onednn_window *w,
                                 const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t how, float alpha, float beta);
dnnl_status_t cpu_onednn_append_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t how, const cpu_onednn_md *other);
/* In inference, src and dst of one type and layout; flags: dnnl_use_scale, dnnl_use_shift, dnnl_use_global_stats. */
dnnl_status_t cpu_onednn_softmax(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, int axis, const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_layer_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_batch_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr);
/* Across channels: over (k + alpha / size * sum of squares) ^ beta. */
dnnl_status_t cpu_onednn_lrn(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                             int64_t size, float alpha, float beta, float k, const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_eltwise(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, float alpha, float beta, const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_binary(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src0,
                                const cpu_onednn_md *src1, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr);
dnnl_status_t cpu_onednn_reduction(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                   const cpu_onednn_md *dst, float p, const_dnnl_primitive_attr_t attr);
/* A recurrent layer in inference; those of its arguments that are NULL it has not. `activation` is that of a plain one.
 */
typedef struct cpu_onednn_recurrent {
    dnnl_alg_kind_t cell, activation;
    dnnl_rnn_direction_t direction;
    cpu_onednn_md *src_layer, *src_iter, *src_iter_c, *weights_layer, *weights_iter, *bias;
    cpu_onednn_md *dst_layer, *dst_iter, *dst_iter_c;
} cpu_onednn_recurrent;
dnnl_status_t cpu_onednn_recurrence(dnnl_primitive_desc_t *pd, const cpu_onednn_recurrent *r,
                                    const_dnnl_primitive_attr_t attr);
/* What comes out is multiplied by a number. */
dnnl_status_t cpu_onednn_scaled(dnnl_primitive_attr_t attr, float scale);
