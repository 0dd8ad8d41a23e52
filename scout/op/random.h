/* Random numbers by counting (Philox4x32-10): four words of 32 bits for each counter, so that every element is known
 * from its own place. A seed changes no work, so all begin from one. Header-only, shared by candidates of all devices
 * and by plugins.
 *
 * What becomes fp32, fp16 or bf16, and what a Bernoulli compares, takes the upper 24 bits of word `place % 4` of
 * counter `place / 4`. A normal number takes two neighbouring words, the one at the even place and the one at the odd
 * place:
 *
 *     sqrt(-2 log(first + 2^-24)) * cos(2 pi * second), at the odd place sin
 *
 * Of fp64 the upper 53 bits of two words are one fraction. A uniform number has one, half a counter; a normal one has a
 * counter for itself, the two fractions as above, with 2^-53, and the cosine. The tensors are "p" of a Bernoulli alone,
 * and "y". */
#ifndef SCOUT_OP_RANDOM_H
#define SCOUT_OP_RANDOM_H

#include "scout/op/op.h"

typedef enum random_how { RANDOM_NORMAL, RANDOM_UNIFORM, RANDOM_BERNOULLI, RANDOM_HOWS } random_how;

/* RANDOM_HOWS: no random numbers. */
static inline random_how random_how_of(const scout_op *op) {
    static const struct {
        const char *what;
        random_how how;
    } rows[] = {{"randomnormal", RANDOM_NORMAL},
                {"randomnormallike", RANDOM_NORMAL},
                {"randomuniform", RANDOM_UNIFORM},
                {"randomuniformlike", RANDOM_UNIFORM},
                {"bernoulli", RANDOM_BERNOULLI}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (op_is(op, rows[k].what)) return rows[k].how;
    return RANDOM_HOWS;
}

enum { RANDOM_KEY = 0 };

typedef struct random_problem {
    random_how how;
    uint32_t from, to; /* types; from: of the probabilities of a Bernoulli */
    int64_t count;
    double alpha, beta; /* mean and scale, or least and greatest */
} random_problem;

static inline random_problem random_problem_of(const scout_op *op) {
    const scout_tensor *y = &op->tensors[op->tensor_count - 1];
    random_problem p = {random_how_of(op),     op->input, y->type, op_elements(y), op_real(op, "alpha", 0),
                        op_real(op, "beta", 1)};
    return p;
}

static inline void random_words(uint64_t counter, uint64_t key, uint32_t words[4]) {
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xd2511f53u * c[0], b = (uint64_t)0xcd9e8d57u * c[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1,
                                  (uint32_t)a};
        memcpy(c, next, sizeof c);
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    memcpy(words, c, sizeof c);
}

/* The fraction of two words. */
static inline double random_fraction(uint32_t high, uint32_t low) {
    return ((double)(high >> 5) * 0x1p26 + (double)(low >> 6)) * 0x1p-53;
}

#endif
