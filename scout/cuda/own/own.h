/* The project's own kernels as candidates of the CUDA device, and what their files share. */
#pragma once

#include "kernels/attention/attention_kernels.h"
#include "kernels/pass/pass_kernels.h"
#include "kernels/pass/recurrent_kernels.h"
#include "kernels/product/gemm_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/gemm.h"
#include "scout/op/recurrent.h"
#include "scout/plugin.h"

/* The shape as the kernels take it. */
gemm_shape own_gemm_shape(const scout_op *op);

/* Common refusals: another kind, a bias, an activation. SCOUT_OK or SCOUT_NO with the reason. */
scout_answer own_gemm_plain(const scout_op *op, scout_why *why);

/* The shared memory of a block in bytes, and the number of multiprocessors; those of an H200 where there is no device
 * yet. */
size_t own_shared_limit(const scout_device *device);
int own_units(const scout_device *device);
/* Whether blocks can form clusters (compute capability 9.0). */
int own_has_clusters(const scout_device *device);

/* ---- passes over memory: no CUDA library is in use for these kinds, so their first variants are the baseline ---- */

/* Two parameters: threads of a block, and blocks that stay on a multiprocessor (0: one block for every tile). */
scout_answer own_pass_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                             scout_why *why);
int own_pass_size(const scout_tensor *t);           /* bytes of an element; 0: several in a byte */
pass_config own_pass_config(const int64_t *values); /* NULL: the default */

/* ---- attention ---- */

/* Common refusals: another kind, rows that are not contiguous. SCOUT_OK or SCOUT_NO with the reason. */
scout_answer own_attention_plain(const scout_op *op, scout_why *why);

/* What the kernels that copy 16 bytes at once need beyond that: a half type, rows in multiples of 16 bytes, compute
 * capability 8.0. `name`: the kernel's, for the reason. */
scout_answer own_attention_copies(const scout_op *op, const scout_device *device, const char *name, scout_why *why);

/* The shape and the pointers as the kernels take them; `blocks`: what own_attention_blocks gave. */
attention_shape own_attention_shape(const scout_op *op);
attention_tensors own_attention_tensors(const scout_op *op, void *const *tensors, const uint32_t *blocks);

/* The bits of its block mask on the device, as kernels take them; *out is NULL where it has none. The caller releases
 * them: cuda_device_release. It takes some ms and waits, so plans have it made once. */
scout_answer own_attention_blocks(const scout_op *op, scout_device *device, uint32_t **out, scout_why *why);

recurrent_layer own_recurrent_layer(const recurrent_problem *p);
recurrent_layer_tensors own_recurrent_tensors(const recurrent_problem *p, void *const *tensors);
