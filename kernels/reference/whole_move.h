/* What a move of data should bring, in fp64: every element, into memory of the caller. Told by where an element comes
 * from, not by pieces that are copied. Enqueues only. */
#ifndef KERNELS_REFERENCE_WHOLE_MOVE_H
#define KERNELS_REFERENCE_WHOLE_MOVE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WHOLE_MOVE_RANK = 8, WHOLE_MOVE_INPUTS = 12 };

/* Where place i along a dimension of the output comes from: place i * step - before of an input's dimension of that
 * length, again and again where it goes beyond it. */
typedef struct whole_move_dim {
    int64_t count;                /* of the output */
    int64_t step, before, length; /* of the input */
    int64_t stride;               /* of the input, in elements */
} whole_move_dim;

enum {
    WHOLE_MOVE_PLACES, /* as `dims` say */
    WHOLE_MOVE_PADDED, /* the same, but beyond the input lie zeros */
    WHOLE_MOVE_JOINED, /* inputs one behind the other along `axis` */
    WHOLE_MOVE_GATHERED,
    WHOLE_MOVE_ELEMENTS, /* as `dims` say, but for `axis`: there as an index of the element's own says */
    WHOLE_MOVE_TRIANGLE  /* where it lies, or 0 */
};

typedef struct whole_move_problem {
    int how;
    uint32_t from, to; /* types, as in scout/plugin.h */
    int64_t count;     /* elements of the output */
    const void *inputs[WHOLE_MOVE_INPUTS];
    int rank;
    whole_move_dim dims[WHOLE_MOVE_RANK]; /* of what is joined only `count` */
    int axis;
    int64_t lengths[WHOLE_MOVE_INPUTS]; /* along it, of each input */
    /* Gathered: y[o][k][i] = x[o][place k][i], and the place is told by `parts` indices. */
    int64_t length, gathered, inner;
    int parts;
    int64_t part_lengths[WHOLE_MOVE_RANK];
    const void *indices;
    uint32_t index_type; /* int32 or int64 */
    /* A triangle: kept are columns from row + diagonal on (upper), or up to it. */
    int upper;
    int64_t diagonal;
} whole_move_problem;

cudaError_t whole_move(const whole_move_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
