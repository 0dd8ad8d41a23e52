/* The reference of recurrent layers: an operation as kernels/reference/whole.h describes it. */
#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/own/own_recurrent.h"
#include "scout/cuda/reference/cuda_whole.h"

static const double most_products = 2e12; /* in fp64, some at a time from the second cache: about a minute */

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    const recurrent_layer layer = own_recurrent_layer(&p);
    const recurrent_layer_tensors t = own_recurrent_tensors(&p, tensors);
    const whole_recurrent_output which = (int)output == p.y     ? WHOLE_RECURRENT_Y
                                         : (int)output == p.y_h ? WHOLE_RECURRENT_Y_H
                                                                : WHOLE_RECURRENT_Y_C;
    const double products =
        (double)(p.steps * p.batch) * (double)(p.directions * p.gates * p.hidden) * (double)(p.input + p.hidden);
    void *room = NULL;
    int unbounded = 0;
    if (products > most_products)
        return scout_say(why, SCOUT_NO, "shape", "its reference would take minutes: %.3g products in fp64", products);
    scout_answer answer = cuda_device_alloc(device, whole_recurrent_bytes(&layer), &room, why);
    if (answer == SCOUT_OK)
        answer = cuda_device_answer(
            whole_recurrent(&layer, &t, which, recurrent_most_spread, room, want, spread, device->stream),
            "computing the reference", why);
    if (answer == SCOUT_OK) answer = cuda_device_download(device, &unbounded, room, sizeof unbounded, why);
    if (answer == SCOUT_OK && unbounded) answer = recurrent_say_unbounded(why);
    if (answer != SCOUT_LOST) cuda_device_release(device, room);
    return answer;
}

CUDA_WHOLE_REFERENCE(cuda_whole_recurrent, SCOUT_RECURRENT, compute);
