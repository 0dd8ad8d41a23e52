/* The reference of embeddings. */
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/embedding.h"
#include "scout/op/move.h"

static scout_answer open_whole(const scout_op *op, void **state, scout_why *why) {
    *state = NULL;
    if (cpu_number_bits(op->tensors[EMBEDDING_TABLE].type) > 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "no reference for this type");
}

static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    (void)state, (void)output;
    return op->shape[1];
}

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch) {
    const embedding_problem p = embedding_problem_of(op);
    (void)state, (void)output, (void)scratch;
    for (int64_t k = 0; k < count; k += p.cols) {
        const int64_t row = embedding_index(p.index_type, tensors[EMBEDDING_INDICES], (from + k) / p.cols);
        cpu_number_load(p.type, tensors[EMBEDDING_TABLE], row * p.cols, 1, p.cols, want + k);
        for (int64_t c = 0; p.block > 0 && c < p.cols; c++) {
            const int64_t side = row * p.blocks + c / p.block;
            double scale, zero = 0;
            cpu_number_load(p.out_type, tensors[EMBEDDING_SCALES], side, 1, 1, &scale);
            if (p.zeros >= 0) cpu_number_load(p.type, tensors[p.zeros], side, 1, 1, &zero);
            want[k + c] = (want[k + c] - zero) * scale;
        }
    }
    for (int64_t k = 0; k < count; k++) spread[k] = move_least(p.out_type);
    return SCOUT_OK;
}

static const cpu_whole whole = {open_whole, grain, compute, NULL};
CPU_WHOLE_REFERENCE(cpu_reference_embedding, SCOUT_EMBEDDING, whole);
