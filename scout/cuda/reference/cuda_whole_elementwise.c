/* The reference of what is computed element by element, on this device. */
#include "scout/cuda/reference/cuda_whole.h"

#include "common/checked.h"
#include "kernels/reference/whole.h"
#include "kernels/reference/whole_random.h"
#include "scout/op/elementwise_chain.h"
#include "scout/op/random.h"
#include "scout/op/requantize.h"

static scout_answer compute_chain(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                                  double *want, float *spread, scout_why *why) {
    whole_chain_problem p = {.walk = elementwise_walk_of(op), .output = op->tensors[output].type};
    if (!elementwise_chain_of(op, &p.chain, why)) return SCOUT_NO;
    p.tolerance = elementwise_chain_tolerance(&p.chain);
    for (int k = 0; k < p.chain.count; k++) p.step_tolerance[k] = elementwise_step_tolerance(&p.chain.steps[k]);
    for (int k = 0; k < p.walk.inputs; k++) p.data[k] = tensors[p.walk.source[k]];
    return cuda_device_answer(whole_chain(&p, want, spread, device->stream), "computing the reference of a chain", why);
}

static scout_answer compute_random(scout_device *device, const scout_op *op, void *const *tensors, double *want,
                                   float *spread, scout_why *why) {
    const random_problem r = random_problem_of(op);
    const whole_random_problem p = {.normal = r.how == RANDOM_NORMAL,
                                    .flips = r.how == RANDOM_BERNOULLI,
                                    .p = tensors[0],
                                    .from = r.from,
                                    .to = r.to,
                                    .count = r.count,
                                    .alpha = r.alpha,
                                    .beta = r.beta,
                                    .key = RANDOM_KEY};
    return cuda_device_answer(whole_random(&p, want, spread, device->stream), "computing right random numbers", why);
}

static whole_elementwise_quant quant_of(const scout_op *op) {
    const requantize quant = requantize_elements(op);
    const op_activation activation = activation_of(op);
    whole_elementwise_quant q = {quant.is, quant.zero_in, quant.zero_out, quant.factor, 0, 0};
    if (quant.is) requantize_bounds(&quant, &activation, &q.least, &q.most);
    return q;
}

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const elementwise_operator *const is = elementwise_operator_of(op);
    if (random_how_of(op) != RANDOM_HOWS) return compute_random(device, op, tensors, want, spread, why);
    whole_elementwise_problem w = {.id = elementwise_id_of(op),
                                   .walk = elementwise_walk_of(op),
                                   .numbers = elementwise_numbers_of(op),
                                   .wholes = elementwise_in_wholes(op->input),
                                   .output = op->tensors[output].type,
                                   .quant = quant_of(op)};
    if (op_is(op, "chain")) return compute_chain(device, op, tensors, output, want, spread, why);
    if (!is) return scout_say(why, SCOUT_NO, "feature", "no reference for this operator");
    if (w.wholes && !(is->types & ELEMENTWISE_WHOLES))
        return scout_say(why, SCOUT_NO, "type", "no reference for this operator on integers");
    w.low = checked_from_double(w.numbers.alpha), w.high = checked_from_double(w.numbers.beta);
    for (int k = 0; k < w.walk.inputs; k++)
        w.data[k] = tensors[w.walk.source[k]], w.types[k] = op->tensors[w.walk.source[k]].type;
    return cuda_device_answer(whole_elementwise(&w, want, spread, device->stream),
                              "computing the reference of an elementwise operation", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_elementwise, SCOUT_ELEMENTWISE, compute);
