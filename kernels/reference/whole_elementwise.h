/* The reference of what is computed element by element (kernels/reference/whole_elementwise.cu). Pointers are of the
 * device; everything is enqueued on the stream. */
#ifndef KERNELS_REFERENCE_WHOLE_ELEMENTWISE_H
#define KERNELS_REFERENCE_WHOLE_ELEMENTWISE_H

#include "scout/op/elementwise_chain.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Quantised work (scout/op/requantize.h): what it is kept within before zero_out is added. `is` 0: there is none. */
typedef struct whole_elementwise_quant {
    int is;
    double zero_in, zero_out, factor, least, most;
} whole_elementwise_quant;

typedef struct whole_elementwise_problem {
    elementwise_id id;
    elementwise_walk walk;
    elementwise_numbers numbers;
    int64_t low, high;                        /* bounds of integers, where the operator has bounds */
    int wholes;                               /* computed in integers of 64 bits */
    const void *data[ELEMENTWISE_MAX_INPUTS]; /* of each operand */
    uint32_t types[ELEMENTWISE_MAX_INPUTS];
    uint32_t output;
    whole_elementwise_quant quant;
} whole_elementwise_problem;

typedef struct whole_chain_problem {
    elementwise_chain chain;
    elementwise_walk walk;
    const void *data[ELEMENTWISE_MAX_OPERANDS]; /* of each operand */
    double tolerance, step_tolerance[ELEMENTWISE_CHAIN_STEPS];
    uint32_t output;
} whole_chain_problem;

/* Every element, densely. */
cudaError_t whole_elementwise(const whole_elementwise_problem *problem, double *want, float *spread,
                              cudaStream_t stream);
cudaError_t whole_chain(const whole_chain_problem *problem, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
