/* Shared by all references of whole outputs: memory for the right values, comparing, the verdict. */
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/op/op.h"

#include <stdlib.h>
#include <string.h>

typedef struct right { /* of one output; all on the device */
    uint32_t tensor, type;
    uint64_t count;
    double *want;
    float *spread;
} right;

struct scout_check {
    scout_device *device;
    whole_found *found; /* on the device */
    right outputs[SCOUT_MAX_TENSORS];
    uint32_t output_count;
};

void cuda_whole_end(scout_check *check) {
    if (!check) return;
    for (uint32_t k = 0; k < check->output_count; k++) {
        cuda_device_release(check->device, check->outputs[k].want);
        cuda_device_release(check->device, check->outputs[k].spread);
    }
    cuda_device_release(check->device, check->found);
    free(check);
}

static scout_answer compute_output(cuda_whole_compute *compute, scout_check *c, const scout_op *op,
                                   void *const *tensors, uint32_t tensor, scout_why *why) {
    right *const to = &c->outputs[c->output_count++];
    *to = (right){
        .tensor = tensor, .type = op->tensors[tensor].type, .count = (uint64_t)op_elements(&op->tensors[tensor])};
    scout_answer answer = cuda_device_alloc(c->device, to->count * sizeof *to->want, (void **)&to->want, why);
    if (answer == SCOUT_OK)
        answer = cuda_device_alloc(c->device, to->count * sizeof *to->spread, (void **)&to->spread, why);
    if (answer == SCOUT_OK) answer = compute(c->device, op, tensors, tensor, to->want, to->spread, why);
    return answer == SCOUT_OK ? cuda_device_wait(c->device, "computing the reference", why) : answer;
}

scout_answer cuda_whole_begin(cuda_whole_compute *compute, scout_device *device, const scout_op *op,
                              void *const *tensors, scout_check **check, scout_why *why) {
    *check = NULL;
    scout_check *const c = calloc(1, sizeof *c);
    if (!c) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    c->device = device;
    scout_answer answer = cuda_device_alloc(device, sizeof *c->found, (void **)&c->found, why);
    for (uint32_t k = 0; k < op->tensor_count && answer == SCOUT_OK; k++)
        if (op->tensors[k].role == SCOUT_OUTPUT) answer = compute_output(compute, c, op, tensors, k, why);
    if (answer != SCOUT_OK) {
        cuda_whole_end(c);
        return answer;
    }
    *check = c;
    return SCOUT_OK;
}

static scout_answer compare(scout_check *c, const right *of, const void *output, double tolerance,
                            scout_verdict *verdict, scout_why *why) {
    scout_device *const d = c->device;
    const uint32_t size = verdict->size;
    scout_verdict all = {.size = size, .compared = of->count};
    whole_found found;
    scout_answer answer = cuda_device_answer(whole_compare(of->type, output, of->want, of->spread, of->count, tolerance,
                                                           c->found, d->multiprocessors, d->stream),
                                             "comparing", why);
    if (answer == SCOUT_OK) answer = cuda_device_download(d, &found, c->found, sizeof found, why);
    if (answer != SCOUT_OK) return answer;
    all.worst = found.worst, all.wrong = found.wrong, all.at = found.at, all.got = found.got, all.want = found.want;
    memcpy(verdict, &all, size < sizeof all ? size : sizeof all);
    return SCOUT_OK;
}

scout_answer cuda_whole_compare(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                                scout_why *why) {
    return compare(check, &check->outputs[0], output, tolerance, verdict, why);
}

scout_answer cuda_whole_compare_at(scout_check *check, uint32_t tensor, const void *output, double tolerance,
                                   scout_verdict *verdict, scout_why *why) {
    for (uint32_t k = 0; k < check->output_count; k++)
        if (check->outputs[k].tensor == tensor)
            return compare(check, &check->outputs[k], output, tolerance, verdict, why);
    return scout_say(why, SCOUT_FAILED, "error", "tensor %u is no output", tensor);
}
