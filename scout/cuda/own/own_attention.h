/* The project's own attention kernels (kernels/attention/attention_kernels.h) as candidates of the CUDA device, and
 * what their files share. */
#ifndef SCOUT_CUDA_OWN_OWN_ATTENTION_H
#define SCOUT_CUDA_OWN_OWN_ATTENTION_H

#include "kernels/attention/attention_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/plugin.h"

/* Common refusals: another kind, rows that are not contiguous. SCOUT_OK or SCOUT_NO with the reason. */
scout_answer own_attention_plain(const scout_op *op, scout_why *why);

/* What the kernels that copy 16 bytes at once need beyond that: a half type, rows in multiples of 16 bytes, compute
 * capability 8.0. `name`: the kernel's, for the reason. */
scout_answer own_attention_copies(const scout_op *op, const scout_device *device, const char *name, scout_why *why);

/* The shape and the pointers as the kernels take them. */
attention_shape own_attention_shape(const scout_op *op);
attention_tensors own_attention_tensors(const scout_op *op, void *const *tensors);

#endif
