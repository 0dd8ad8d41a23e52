/* The project's own kernels (kernels/product/gemm_kernels.h) as candidates of the CUDA device, and what their files
 * share. */
#ifndef SCOUT_CUDA_OWN_OWN_H
#define SCOUT_CUDA_OWN_OWN_H

#include "kernels/product/gemm_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/gemm.h"
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

#endif
