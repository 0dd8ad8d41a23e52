/* The reference of reductions on this device. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_device.h"

static int is_whole(uint32_t type) {
    return type == SCOUT_INT64 || type == SCOUT_INT32 || type == SCOUT_INT8 || type == SCOUT_UINT8;
}

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    whole_reduce_problem w = {.p = reduce_problem_of(op),
                              .x = tensors[REDUCE_X],
                              .type = op->input,
                              .output = op->tensors[output].type,
                              .wholes = is_whole(op->input)};
    const reduce_operator *const is = reduce_operator_of(op, &w.id);
    if (!is || (w.wholes && !is->wholes)) return scout_say(why, SCOUT_NO, "feature", "no reference for this reduction");
    return cuda_device_answer(whole_reduce(&w, want, spread, device->stream), "computing the reference of a reduction",
                              why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_reduce, SCOUT_REDUCE, compute);
