/* References of whole outputs: every element of every output in fp64, with the size of its terms. A kind has the
 * arithmetic; storing, comparing and sharing among threads are here. */
#pragma once

#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/op/op.h"

typedef struct cpu_whole {
    /* What is read of the operation, once, into what free() gives back. SCOUT_NO: this cannot be computed. NULL: all
     * can, and nothing is kept. */
    scout_answer (*open)(const scout_op *op, void **state, scout_why *why);
    /* How many neighbouring elements of that output are computed together (a row); every call is of whole ones. */
    int64_t (*grain)(const void *state, const scout_op *op, uint32_t output);
    /* Elements [from, from + count) of tensor `output`, in the order of its storage. spread: the root of the sum of the
     * squares of the terms that make an element up (of what only rounds: |want|). `scratch`: `room` doubles of the
     * thread, as many as scratch() asked for. */
    scout_answer (*compute)(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch);
    size_t (*scratch)(const void *state, const scout_op *op); /* doubles a thread needs; NULL: none */
} cpu_whole;

scout_answer cpu_whole_begin(const cpu_whole *kind, const scout_op *op, void *const *tensors, scout_check **check,
                             scout_why *why);
scout_answer cpu_whole_compare(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                               scout_why *why);
scout_answer cpu_whole_compare_at(scout_check *check, uint32_t tensor, const void *output, double tolerance,
                                  scout_verdict *verdict, scout_why *why);
void cpu_whole_end(scout_check *check);

/* A reference of that name, of its kind, by such a way to compute it. */
#define CPU_WHOLE_REFERENCE(name_, kind_, whole_)                                                                      \
    static scout_answer name_##_begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,   \
                                      scout_check **check, scout_why *why) {                                           \
        (void)device, (void)seed;                                                                                      \
        return cpu_whole_begin(&(whole_), op, tensors, check, why);                                                    \
    }                                                                                                                  \
    const scout_reference name_ = {.size = sizeof(scout_reference),                                                    \
                                   .kind = kind_,                                                                      \
                                   .begin = name_##_begin,                                                             \
                                   .compare = cpu_whole_compare,                                                       \
                                   .end = cpu_whole_end,                                                               \
                                   .compare_at = cpu_whole_compare_at}
