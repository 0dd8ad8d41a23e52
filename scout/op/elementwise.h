/* An elementwise operation as candidates read it: its operator, parameters, and the strides of operands under the
 * output. Header-only, shared by candidates of all devices and by plugins. Operands come first in op->tensors, in the
 * operator's order, the output is the last tensor. An operand has the output's rank; a dimension that it is broadcast
 * along is 1 with stride 0. Several operators in one pass (what `chain`) are read by scout/op/elementwise_chain.h. */
#ifndef SCOUT_OP_ELEMENTWISE_H
#define SCOUT_OP_ELEMENTWISE_H

#include "scout/op/op.h"

#include <math.h>

/* Types of operands: what is computed in fp32; integers that 64 bits with a sign hold, and uint64; bool; fp64. */
enum {
    ELEMENTWISE_FLOAT = 1,
    ELEMENTWISE_WHOLE = 2,
    ELEMENTWISE_BOOL = 4,
    ELEMENTWISE_NATURAL = 8,
    ELEMENTWISE_DOUBLE = 16,
    ELEMENTWISE_WHOLES = ELEMENTWISE_WHOLE | ELEMENTWISE_NATURAL,
    ELEMENTWISE_SIGNED = ELEMENTWISE_FLOAT | ELEMENTWISE_WHOLE | ELEMENTWISE_DOUBLE,
    ELEMENTWISE_NUMBERS = ELEMENTWISE_SIGNED | ELEMENTWISE_NATURAL,
    ELEMENTWISE_ALL = ELEMENTWISE_NUMBERS | ELEMENTWISE_BOOL
};
/* Of one operator; of a whole chain. */
enum { ELEMENTWISE_MAX_INPUTS = 8, ELEMENTWISE_MAX_OPERANDS = 11 };

/* The operators: name; least and most operands; types; whether the result is bool; special functions per element; how
 * much the rounding errors of fp32 grow inside, in units of 2^-24 of |want| + spread; whether operands must be positive
 * (they are filled so then; 2: and below 1). A library may evaluate a polynomial or a quotient where another one takes
 * an exponential and a logarithm: 16 to 32 roundings are what either needs. */
#define ELEMENTWISE_NUMBER_OPERATORS(X)                                                                                \
    X(abs, 1, 1, ELEMENTWISE_SIGNED, 0, 0, 1, 0)                                                                       \
    X(neg, 1, 1, ELEMENTWISE_SIGNED, 0, 0, 1, 0)                                                                       \
    X(relu, 1, 1, ELEMENTWISE_SIGNED, 0, 0, 1, 0)                                                                      \
    X(relu6, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 1, 0)                                                                      \
    X(squared_relu, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 2, 0)                                                               \
    X(sign, 1, 1, ELEMENTWISE_SIGNED, 0, 0, 1, 0)                                                                      \
    X(clip, 1, 1, ELEMENTWISE_SIGNED, 0, 0, 1, 0)                                                                      \
    X(ceil, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 1, 0)                                                                       \
    X(floor, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 1, 0)                                                                      \
    X(round, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 1, 0)                                                                      \
    X(sqrt, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 4, 1)                                                                       \
    X(reciprocal, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 4, 0)                                                                 \
    X(exp, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                       \
    X(log, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 1)                                                                       \
    X(sin, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                       \
    X(cos, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                       \
    X(tanh, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(erf, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                       \
    X(sigmoid, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                   \
    X(silu, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(quickgelu, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                 \
    X(swish, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                     \
    X(gelu, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(gelu_tanh, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                 \
    X(mish, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(softplus, 1, 1, ELEMENTWISE_FLOAT, 0, 2, 32, 0)                                                                  \
    X(softsign, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 4, 0)                                                                   \
    X(elu, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                       \
    X(celu, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(selu, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(leakyrelu, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 4, 0)                                                                  \
    X(thresholdedrelu, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 1, 0)                                                            \
    X(hardsigmoid, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 4, 0)                                                                \
    X(hardswish, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 4, 0)                                                                  \
    X(tan, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                       \
    X(acos, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 2)                                                                      \
    X(asin, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 2)                                                                      \
    X(atan, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(sinh, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(cosh, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                      \
    X(acosh, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                     \
    X(asinh, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 0)                                                                     \
    X(atanh, 1, 1, ELEMENTWISE_FLOAT, 0, 1, 32, 2)                                                                     \
    X(shrink, 1, 1, ELEMENTWISE_FLOAT, 0, 0, 2, 0)                                                                     \
    X(isnan, 1, 1, ELEMENTWISE_FLOAT, 1, 0, 0, 0)                                                                      \
    X(isinf, 1, 1, ELEMENTWISE_FLOAT, 1, 0, 0, 0)                                                                      \
    X(not, 1, 1, ELEMENTWISE_BOOL, 1, 0, 0, 0)                                                                         \
    X(add, 2, 2, ELEMENTWISE_NUMBERS, 0, 0, 2, 0)                                                                      \
    X(sub, 2, 2, ELEMENTWISE_NUMBERS, 0, 0, 2, 0)                                                                      \
    X(mul, 2, 2, ELEMENTWISE_NUMBERS, 0, 0, 2, 0)                                                                      \
    X(div, 2, 2, ELEMENTWISE_NUMBERS, 0, 0, 4, 0)                                                                      \
    X(pow, 1, 2, ELEMENTWISE_FLOAT | ELEMENTWISE_WHOLE, 0, 2, 64, 0)                                                   \
    X(mod, 2, 2, ELEMENTWISE_NUMBERS, 0, 0, 2, 0)                                                                      \
    X(prelu, 2, 2, ELEMENTWISE_FLOAT, 0, 0, 2, 0)                                                                      \
    X(min, 1, 8, ELEMENTWISE_NUMBERS, 0, 0, 1, 0)                                                                      \
    X(max, 1, 8, ELEMENTWISE_NUMBERS, 0, 0, 1, 0)                                                                      \
    X(sum, 1, 8, ELEMENTWISE_FLOAT, 0, 0, 8, 0)                                                                        \
    X(mean, 1, 8, ELEMENTWISE_FLOAT, 0, 0, 10, 0)                                                                      \
    X(equal, 2, 2, ELEMENTWISE_ALL, 1, 0, 0, 0)                                                                        \
    X(less, 2, 2, ELEMENTWISE_NUMBERS, 1, 0, 0, 0)                                                                     \
    X(lessorequal, 2, 2, ELEMENTWISE_NUMBERS, 1, 0, 0, 0)                                                              \
    X(greater, 2, 2, ELEMENTWISE_NUMBERS, 1, 0, 0, 0)                                                                  \
    X(greaterorequal, 2, 2, ELEMENTWISE_NUMBERS, 1, 0, 0, 0)                                                           \
    X(and, 2, 2, ELEMENTWISE_BOOL, 1, 0, 0, 0)                                                                         \
    X(or, 2, 2, ELEMENTWISE_BOOL, 1, 0, 0, 0)                                                                          \
    X(xor, 2, 2, ELEMENTWISE_BOOL, 1, 0, 0, 0)                                                                         \
    X(swiglu, 2, 2, ELEMENTWISE_FLOAT, 0, 1, 34, 0)                                                                    \
    X(geglu, 2, 2, ELEMENTWISE_FLOAT, 0, 1, 34, 0)                                                                     \
    X(geglu_tanh, 2, 2, ELEMENTWISE_FLOAT, 0, 1, 34, 0)                                                                \
    X(quick_geglu, 2, 2, ELEMENTWISE_FLOAT, 0, 1, 34, 0)                                                               \
    X(reglu, 2, 2, ELEMENTWISE_FLOAT, 0, 0, 2, 0)                                                                      \
    X(biasgelu, 2, 2, ELEMENTWISE_FLOAT, 0, 1, 34, 0)                                                                  \
    X(fastgelu, 2, 2, ELEMENTWISE_FLOAT, 0, 1, 34, 0)                                                                  \
    X(biasadd, 3, 3, ELEMENTWISE_FLOAT, 0, 0, 4, 0)                                                                    \
    X(where, 3, 3, ELEMENTWISE_ALL, 0, 0, 0, 0)

/* Those of integers alone. A shift goes by the second operand's lowest six bits, in 64 bits. */
#define ELEMENTWISE_BIT_OPERATORS(X)                                                                                   \
    X(bitwisenot, 1, 1, ELEMENTWISE_WHOLES, 0, 0, 0, 0)                                                                \
    X(bitwiseand, 2, 2, ELEMENTWISE_WHOLES, 0, 0, 0, 0)                                                                \
    X(bitwiseor, 2, 2, ELEMENTWISE_WHOLES, 0, 0, 0, 0)                                                                 \
    X(bitwisexor, 2, 2, ELEMENTWISE_WHOLES, 0, 0, 0, 0)                                                                \
    X(bitshift, 2, 2, ELEMENTWISE_WHOLES, 0, 0, 0, 0)

#define ELEMENTWISE_OPERATORS(X) ELEMENTWISE_NUMBER_OPERATORS(X) ELEMENTWISE_BIT_OPERATORS(X)

typedef enum elementwise_id {
#define ELEMENTWISE_ID(name, least, most, types, truth, specials, grows, positive) ELEMENTWISE_##name,
    ELEMENTWISE_OPERATORS(ELEMENTWISE_ID)
#undef ELEMENTWISE_ID
        ELEMENTWISE_COUNT
} elementwise_id;

typedef struct elementwise_operator {
    const char *what;
    int least, most, types, truth, specials, grows, positive;
} elementwise_operator;

/* NULL: not one of the table. */
static inline const elementwise_operator *elementwise_operator_at(elementwise_id id) {
#define ELEMENTWISE_ROW(name, least, most, types, truth, specials, grows, positive)                                    \
    {#name, least, most, types, truth, specials, grows, positive},
    static const elementwise_operator rows[ELEMENTWISE_COUNT] = {ELEMENTWISE_OPERATORS(ELEMENTWISE_ROW)};
#undef ELEMENTWISE_ROW
    return id < ELEMENTWISE_COUNT ? &rows[id] : NULL;
}

/* ELEMENTWISE_COUNT: not one of the table. */
static inline elementwise_id elementwise_id_named(const char *name, size_t length) {
    int k = 0;
    for (; k < ELEMENTWISE_COUNT; k++) {
        const char *const what = elementwise_operator_at((elementwise_id)k)->what;
        if (strncmp(what, name, length) == 0 && what[length] == 0) break;
    }
    return (elementwise_id)k;
}

static inline elementwise_id elementwise_id_of(const scout_op *op) {
    return op->what ? elementwise_id_named(op->what, strlen(op->what)) : ELEMENTWISE_COUNT;
}

static inline const elementwise_operator *elementwise_operator_of(const scout_op *op) {
    return elementwise_operator_at(elementwise_id_of(op));
}

/* The numbers of an operator: alpha and beta as ONNX names and defaults them; of clip its bounds (an unknown one is
 * none), of pow its exponent where it is known, of isinf whether it looks for negative and positive ones, of bitshift
 * whether it goes right. */
typedef struct elementwise_numbers {
    double alpha, beta;
} elementwise_numbers;

typedef struct elementwise_number_names {
    elementwise_id id;
    const char *first, *second; /* NULL: there is no second one */
    double alpha, beta;
} elementwise_number_names;

/* NULL: it has none. */
static inline const elementwise_number_names *elementwise_number_names_of(elementwise_id id) {
    static const elementwise_number_names rows[] = {
        {ELEMENTWISE_clip, "min", "max", -INFINITY, INFINITY},
        {ELEMENTWISE_pow, "exponent", NULL, 1, 0},
        {ELEMENTWISE_swish, "alpha", NULL, 1, 0},
        {ELEMENTWISE_quickgelu, "alpha", NULL, 1.702, 0},
        {ELEMENTWISE_quick_geglu, "alpha", NULL, 1.702, 0},
        {ELEMENTWISE_hardsigmoid, "alpha", "beta", 0.2, 0.5},
        {ELEMENTWISE_elu, "alpha", NULL, 1, 0},
        {ELEMENTWISE_celu, "alpha", NULL, 1, 0},
        {ELEMENTWISE_selu, "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875},
        {ELEMENTWISE_leakyrelu, "alpha", NULL, 0.01, 0},
        {ELEMENTWISE_thresholdedrelu, "alpha", NULL, 1, 0},
        {ELEMENTWISE_isinf, "detect_negative", "detect_positive", 1, 1},
        {ELEMENTWISE_shrink, "lambda", "offset", 0.5, 0},
        {ELEMENTWISE_mod, "fmod", NULL, 0, 0},
        {ELEMENTWISE_bitshift, "direction", NULL, 0, 0},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].id == id) return &rows[k];
    return NULL;
}

static inline elementwise_numbers elementwise_numbers_of(const scout_op *op) {
    const elementwise_number_names *const names = elementwise_number_names_of(elementwise_id_of(op));
    elementwise_numbers n = {1, 0};
    if (!names) return n;
    const char *const told = op_text(op, names->first);
    n.alpha = told && strcmp(told, "RIGHT") == 0 ? 1 : op_real(op, names->first, names->alpha);
    n.beta = names->second ? op_real(op, names->second, names->beta) : names->beta;
    return n;
}

/* The tensor of each operand; returns the number of operands. The field "same" marks a repeated operand (x * x), which
 * is the tensor before it. A chain has every tensor once; its steps name their operands. */
static inline int elementwise_sources(const scout_op *op, int *sources) {
    const char *at = op_text(op, "inputs");
    const int tensors = (int)op->tensor_count - 1;
    int count = 0, next = 0;
    if (op_is(op, "chain")) {
        for (; count < tensors && count < ELEMENTWISE_MAX_OPERANDS; count++) sources[count] = count;
        return count;
    }
    for (; at && *at && count < ELEMENTWISE_MAX_INPUTS; at += strcspn(at, ","), at += *at == ',') {
        const int same = strncmp(at, "same", 4) == 0;
        if (!same && next == tensors) break; /* a known exponent is no tensor */
        sources[count++] = same && next > 0 ? next - 1 : next++;
    }
    if (count == 0) sources[count++] = 0;
    return count;
}

/* Operands and output in as few dimensions as possible: dimensions that are contiguous in all of them are merged. */
typedef struct elementwise_walk {
    int inputs, rank; /* at least 1 */
    int64_t count;    /* of the output */
    int64_t dims[SCOUT_MAX_RANK];
    int source[ELEMENTWISE_MAX_OPERANDS];                      /* the tensor of each operand */
    int64_t strides[ELEMENTWISE_MAX_OPERANDS][SCOUT_MAX_RANK]; /* in elements; the output lies densely */
} elementwise_walk;

static inline int elementwise_joins(const scout_op *op, uint32_t d, const elementwise_walk *w) {
    for (int k = 0; k < w->inputs; k++) {
        const scout_tensor *t = &op->tensors[w->source[k]];
        if (t->strides[d] != w->strides[k][w->rank - 1] * w->dims[w->rank - 1]) return 0;
    }
    return 1;
}

/* Dimensions from the last one outwards, so that rank - 1 is the outermost here. */
static inline elementwise_walk elementwise_walk_of(const scout_op *op) {
    elementwise_walk w;
    memset(&w, 0, sizeof w);
    w.inputs = elementwise_sources(op, w.source);
    const scout_tensor *out = &op->tensors[op->tensor_count - 1];
    w.count = op_elements(out);
    for (uint32_t d = out->rank; d-- > 0;) {
        if (out->dims[d] == 1) continue;
        if (w.rank > 0 && elementwise_joins(op, d, &w)) {
            w.dims[w.rank - 1] *= out->dims[d];
            continue;
        }
        w.dims[w.rank] = out->dims[d];
        for (int k = 0; k < w.inputs; k++) w.strides[k][w.rank] = op->tensors[w.source[k]].strides[d];
        w.rank++;
    }
    if (w.rank == 0) w.rank = 1, w.dims[0] = 1;
    return w;
}

/* Where the operands of output element `at` lie; returns how many neighbours follow it along the innermost dimension,
 * itself included: operand k lies at offsets[k], then strides[k][0] further for each. */
static inline int64_t elementwise_walk_to(const elementwise_walk *w, int64_t at, int64_t *offsets) {
    const int64_t run = w->dims[0] - at % w->dims[0];
    for (int k = 0; k < w->inputs; k++) offsets[k] = 0;
    for (int d = 0; d < w->rank; d++) {
        const int64_t place = at % w->dims[d];
        at /= w->dims[d];
        for (int k = 0; k < w->inputs; k++) offsets[k] += place * w->strides[k][d];
    }
    return run;
}

#endif
