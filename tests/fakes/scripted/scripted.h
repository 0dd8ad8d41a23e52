/* The scripted device of the tests: host memory, a virtual clock, and work whose time is told instead of taken. Its
 * candidates and those of tests/fakes/scripted/faults.c share this file; `scout_args.stream` is a scripted_stream. */
#ifndef TESTS_FAKES_SCRIPTED_SCRIPTED_H
#define TESTS_FAKES_SCRIPTED_SCRIPTED_H

#include "scout/op/gemm.h"

#include <stdlib.h>

typedef struct scripted_work {
    /* Really computes; only where a sequence of one launch is run once, as a check does. */
    void (*compute)(void *plan, void *const *tensors, void *workspace);
    void (*timed)(void *plan); /* instead of it in every other run; may be NULL */
    void *plan;
    void *workspace;
    void *tensors[SCOUT_MAX_TENSORS];
    uint64_t bytes[SCOUT_MAX_TENSORS]; /* that it moves, by tensor */
    double compute_s;                  /* on the virtual clock: the larger one of this and of moving the bytes */
    double factor;                     /* times this */
    double noise;                      /* relative, uniform, to both sides */
    uint64_t *random;                  /* the plan's own, so that its noise is the same in every process */
} scripted_work;

typedef struct scripted_stream scripted_stream;
struct scripted_stream {
    scout_answer (*push)(scripted_stream *s, const scripted_work *work, scout_why *why);
    void (*poison)(scripted_stream *s); /* every later call says SCOUT_LOST */
};

/* A slow device: few launches fill a measurement's intervals. What is larger is timed and never really computed, nor is
 * there a reference for it: searching for a peak must not cost real time. */
#define SCRIPTED_FLOPS_PER_S 1e10
enum { SCRIPTED_MOST_TERMS = 1 << 22 };

static inline int scripted_too_large(const gemm_problem *p) {
    return (double)p->batch * (double)p->m * (double)p->n * (double)p->k > SCRIPTED_MOST_TERMS;
}

/* Right, row-major, in any layout, fp32. */
static inline void scripted_multiply(const gemm_problem *p, const float *a, const float *b, float *c) {
    if (scripted_too_large(p)) return;
    for (int64_t i = 0; i < p->batch; i++)
        for (int64_t m = 0; m < p->m; m++)
            for (int64_t n = 0; n < p->n; n++) {
                const float *x = a + i * p->stride_a + (p->trans_a ? m : m * p->lda);
                const float *y = b + i * p->stride_b + (p->trans_b ? n * p->ldb : n);
                const int64_t dx = p->trans_a ? p->lda : 1, dy = p->trans_b ? 1 : p->ldb;
                float sum = 0;
                for (int64_t k = 0; k < p->k; k++) sum += x[k * dx] * y[k * dy];
                c[i * p->stride_c + m * p->ldc + n] = sum;
            }
}

static inline scout_answer scripted_supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    const gemm_problem p = gemm_problem_of(op);
    if (p.type_a != SCOUT_FP32 || p.type_b != SCOUT_FP32 || p.type_c != SCOUT_FP32)
        return scout_say(why, SCOUT_NO, "type", "the scripted device computes in fp32 only");
    if (gemm_has_epilogue(&p)) return scout_say(why, SCOUT_NO, "epilogue", "neither bias nor activation");
    return SCOUT_OK;
}

static inline scripted_work scripted_work_of(const scout_op *op, const scout_args *args) {
    scripted_work w;
    memset(&w, 0, sizeof w);
    w.workspace = args->workspace;
    w.compute_s = op->flops / SCRIPTED_FLOPS_PER_S;
    w.factor = 1;
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        w.tensors[k] = args->tensors[k];
        w.bytes[k] = op->tensors[k].bytes;
    }
    return w;
}

#endif
