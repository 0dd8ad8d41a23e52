/* The project's own passes over memory (kernels/pass/pass_kernels.h) as candidates of the CUDA device, and what their
 * files share. No CUDA library is in use for these kinds, so their first variants are the baseline. */
#ifndef SCOUT_CUDA_OWN_OWN_PASS_H
#define SCOUT_CUDA_OWN_OWN_PASS_H

#include "kernels/pass/pass_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/plugin.h"

/* Two parameters: threads of a block, and blocks that stay on a multiprocessor (0: one block for every tile). */
scout_answer own_pass_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                             scout_why *why);
int own_pass_size(const scout_tensor *t);           /* bytes of an element; 0: several in a byte */
pass_config own_pass_config(const int64_t *values); /* NULL: the default */

#endif
