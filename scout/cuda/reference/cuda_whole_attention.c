/* The reference of attention: an operation as kernels/reference/whole.h describes it. */
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/own/own.h"
#include "scout/op/attention.h"

/* Some tens of seconds where fp64 is quick; beyond it a check would cost more than the measurement. */
static const double most_flops = 5e13;

static whole_attention_steps steps_of(const scout_tensor *t) {
    return (whole_attention_steps){t->strides[0], t->strides[1], t->strides[2], t->strides[3]};
}

static whole_attention_problem problem_of(const scout_op *op, void *const *tensors) {
    const attention_problem p = attention_problem_of(op);
    whole_attention_problem w = {.q = tensors[ATTENTION_Q],
                                 .k = tensors[ATTENTION_K],
                                 .v = tensors[ATTENTION_V],
                                 .type = p.type,
                                 .mask_type = p.mask_type,
                                 .batch = p.batch,
                                 .heads = p.heads,
                                 .queries = p.queries,
                                 .keys = p.keys,
                                 .dim = p.dim,
                                 .v_dim = p.v_dim,
                                 .group = p.group,
                                 .past = p.past,
                                 .window = p.window,
                                 .causal = p.causal,
                                 .scale = p.scale,
                                 .softcap = p.softcap,
                                 .q_at = steps_of(&p.tensors[ATTENTION_Q]),
                                 .k_at = steps_of(&p.tensors[ATTENTION_K]),
                                 .v_at = steps_of(&p.tensors[ATTENTION_V]),
                                 .out_at = steps_of(&p.tensors[ATTENTION_OUT])};
    if (p.mask >= 0) w.mask = tensors[p.mask], w.mask_at = steps_of(&p.tensors[p.mask]);
    if (p.lengths >= 0) w.lengths = tensors[p.lengths];
    return w;
}

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    (void)output;
    if (op->flops > most_flops)
        return scout_say(why, SCOUT_NO, "shape", "checking an attention of %.3g TFLOP in fp64 takes too long",
                         op->flops / 1e12);
    whole_attention_problem w = problem_of(op, tensors);
    uint32_t *blocks = NULL;
    scout_answer answer = own_attention_blocks(op, device, &blocks, why);
    if (answer != SCOUT_OK) return answer;
    const attention_shape shape = own_attention_shape(op);
    w.blocks = blocks, w.block = shape.block, w.block_words = shape.block_words;
    answer = cuda_device_answer(whole_attention(&w, want, spread, device->stream), "computing the reference", why);
    if (answer == SCOUT_OK && blocks) answer = cuda_device_wait(device, "computing the reference", why);
    if (answer != SCOUT_LOST) cuda_device_release(device, blocks);
    return answer;
}

CUDA_WHOLE_REFERENCE(cuda_whole_attention, SCOUT_ATTENTION, compute);
