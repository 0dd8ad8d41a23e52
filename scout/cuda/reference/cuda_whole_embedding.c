/* The reference of embeddings: an operation as kernels/reference/whole.h describes it. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/embedding.h"

/* What kernels/harness/values.cuh reads. */
static const uint32_t types[] = {SCOUT_FP32,  SCOUT_FP64, SCOUT_FP16,  SCOUT_BF16,  SCOUT_FP8E4M3, SCOUT_FP8E5M2,
                                 SCOUT_UINT8, SCOUT_INT8, SCOUT_INT32, SCOUT_INT64, SCOUT_BOOL};

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const embedding_problem p = embedding_problem_of(op);
    size_t row = 0;
    (void)output;
    while (row < sizeof types / sizeof *types && types[row] != p.type) row++;
    if (row == sizeof types / sizeof *types) return scout_say(why, SCOUT_NO, "type", "no reference for this type");
    const whole_embedding_problem w = {.table = tensors[EMBEDDING_TABLE],
                                       .indices = tensors[EMBEDDING_INDICES],
                                       .type = p.type,
                                       .index_type = p.index_type,
                                       .rows = p.rows,
                                       .cols = p.cols};
    return cuda_device_answer(whole_embedding(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_embedding, SCOUT_EMBEDDING, compute);
