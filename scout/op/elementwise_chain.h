/* Several elementwise operators as one operation: kind elementwise, what `chain`. Its text field `chain` holds the
 * steps in order, separated by ";":
 *
 *     add(tensor,vector);gelu(v);cast[to=fp16];mul[…](v,1x8x1x64:fp32)
 *
 * A step is an operator of scout/op/elementwise.h or `cast`, its numbers in brackets under the names that the operation
 * alone has them by, its operands in parentheses: `v` is what the step before computed, everything else a tensor of its
 * own by how it compares with the output: tensor (as large), vector (its last dimension), scalar, dimensions, or `same`
 * (the tensor before it once more). Tensors come in op->tensors in order of appearance, the output is the last one. A
 * tensor has the operation's type unless a colon and another type follow. Without parentheses a step takes `v`; the
 * first step has no `v`, all others must read it.
 *
 * Types: operands of a step are of one type, which the result has as well, but comparisons tell bool, and the first of
 * `where` is bool. Integers wrap to their type at every step; a cast from a float to integers cuts the fraction off.
 * Between steps on floats an implementation may round to their type or keep fp32 (docs/tolerances.md). Header-only,
 * shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_ELEMENTWISE_CHAIN_H
#define SCOUT_OP_ELEMENTWISE_CHAIN_H

#include "scout/op/elementwise.h"

enum { ELEMENTWISE_CHAIN_STEPS = 16, ELEMENTWISE_CHAIN_LONGEST = 2048 }; /* characters */
enum { ELEMENTWISE_CHAIN_VALUE = -1 };                                   /* of elementwise_step.from: `v` */

typedef enum elementwise_form {
    ELEMENTWISE_FORM_TENSOR,
    ELEMENTWISE_FORM_VECTOR,
    ELEMENTWISE_FORM_SCALAR,
    ELEMENTWISE_FORM_DIMS
} elementwise_form;

/* A tensor as the text describes it. */
typedef struct elementwise_chain_operand {
    elementwise_form form;
    uint32_t type;
    int rank;                     /* of FORM_DIMS: as many as were told, aligned with the output's last ones */
    int64_t dims[SCOUT_MAX_RANK]; /* each at least 1 */
} elementwise_chain_operand;

typedef struct elementwise_step {
    elementwise_id id; /* ELEMENTWISE_COUNT: a cast */
    int inputs;
    int from[ELEMENTWISE_MAX_INPUTS]; /* which operand of the chain, or ELEMENTWISE_CHAIN_VALUE */
    uint32_t type, result;            /* of its operands (but the first of where), and of what comes out */
    elementwise_numbers numbers;
} elementwise_step;

typedef struct elementwise_chain {
    int count, operands;
    elementwise_step steps[ELEMENTWISE_CHAIN_STEPS];
    elementwise_chain_operand operand[ELEMENTWISE_MAX_OPERANDS];
} elementwise_chain;

/* What a type is computed in: ELEMENTWISE_FLOAT fp32, _WHOLE integers of 64 bits, _NATURAL those without a sign, _BOOL
 * truth, _DOUBLE fp64; 0: not covered. */
static inline int elementwise_class_of(uint32_t type) {
    switch (type) {
    case SCOUT_FP32:
    case SCOUT_FP16:
    case SCOUT_BF16: return ELEMENTWISE_FLOAT;
    case SCOUT_INT64:
    case SCOUT_INT32:
    case SCOUT_INT16:
    case SCOUT_INT8:
    case SCOUT_UINT32:
    case SCOUT_UINT16:
    case SCOUT_UINT8: return ELEMENTWISE_WHOLE;
    case SCOUT_UINT64: return ELEMENTWISE_NATURAL;
    case SCOUT_FP64: return ELEMENTWISE_DOUBLE;
    case SCOUT_BOOL: return ELEMENTWISE_BOOL;
    default: return 0;
    }
}

/* In integers of 64 bits, of either sort. */
static inline int elementwise_in_wholes(uint32_t type) {
    return (elementwise_class_of(type) & ELEMENTWISE_WHOLES) != 0;
}

typedef struct elementwise_type_name {
    const char *name;
    uint32_t type;
} elementwise_type_name;

/* The k-th type that a chain may hold; name NULL: there are no more. */
static inline elementwise_type_name elementwise_type_name_at(size_t k) {
    static const elementwise_type_name rows[] = {
        {"fp32", SCOUT_FP32},   {"fp16", SCOUT_FP16},   {"bf16", SCOUT_BF16},
        {"int64", SCOUT_INT64}, {"int32", SCOUT_INT32}, {"int8", SCOUT_INT8},
        {"uint8", SCOUT_UINT8}, {"bool", SCOUT_BOOL},   {NULL, SCOUT_NONE},
    };
    return rows[k < sizeof rows / sizeof rows[0] ? k : sizeof rows / sizeof rows[0] - 1];
}

static inline int elementwise_chain_holds(uint32_t type) {
    size_t k = 0;
    while (elementwise_type_name_at(k).name && elementwise_type_name_at(k).type != type) k++;
    return elementwise_type_name_at(k).name != NULL;
}

/* --- reading --- */

typedef struct elementwise_chain_reader {
    const char *at;
    elementwise_chain *to;
    uint32_t type; /* of tensors that tell none */
    scout_why *why;
} elementwise_chain_reader;

/* 0, with the number of the step that is read and the text from where it went wrong. */
static inline int elementwise_chain_refuse(const elementwise_chain_reader *r, const char *code, const char *what) {
    (void)scout_say(r->why, SCOUT_NO, code, "step %d of the chain %s at \"%.40s\"", r->to->count + 1, what, r->at);
    return 0;
}

static inline int elementwise_chain_take(elementwise_chain_reader *r, char c) {
    if (*r->at != c) return 0;
    r->at++;
    return 1;
}

static inline size_t elementwise_chain_word(const char *at) {
    return strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

static inline int elementwise_chain_is(const char *at, size_t length, const char *word) {
    return strlen(word) == length && strncmp(at, word, length) == 0;
}

static inline uint32_t elementwise_chain_type(elementwise_chain_reader *r) {
    const size_t length = elementwise_chain_word(r->at);
    for (size_t k = 0; elementwise_type_name_at(k).name; k++)
        if (elementwise_chain_is(r->at, length, elementwise_type_name_at(k).name)) {
            r->at += length;
            return elementwise_type_name_at(k).type;
        }
    (void)elementwise_chain_refuse(r, "type", "has a type that chains do not cover,");
    return SCOUT_NONE;
}

/* A plain decimal number; strtod alone would take "nan", "inf" and blanks too. */
static inline int elementwise_chain_number(elementwise_chain_reader *r, double *out) {
    const size_t length = strspn(r->at, "+-.0123456789e");
    char *end = NULL;
    *out = length > 0 && length < 40 ? strtod(r->at, &end) : 0;
    if (!end || end != r->at + length || !isfinite(*out))
        return elementwise_chain_refuse(r, "feature", "has a number that is none,");
    r->at = end;
    return 1;
}

static inline int elementwise_chain_dims(elementwise_chain_reader *r, size_t length, elementwise_chain_operand *to) {
    const char *const end = r->at + length;
    for (const char *at = r->at; at < end; at++) {
        int64_t dim = 0;
        int digits = 0;
        for (; at < end && *at >= '0' && *at <= '9' && digits < 15; at++, digits++) dim = dim * 10 + (*at - '0');
        if (dim < 1 || to->rank == SCOUT_MAX_RANK || (at < end && (*at != 'x' || at + 1 == end)))
            return elementwise_chain_refuse(r, "shape", "has an operand that is none,");
        to->dims[to->rank++] = dim;
    }
    return 1;
}

/* One tensor, which the chain has not seen. */
static inline int elementwise_chain_tensor(elementwise_chain_reader *r) {
    static const char *const forms[] = {"tensor", "vector", "scalar"};
    const size_t length = elementwise_chain_word(r->at);
    if (r->to->operands == ELEMENTWISE_MAX_OPERANDS)
        return elementwise_chain_refuse(r, "feature", "reads more tensors than an operation has,");
    elementwise_chain_operand *const to = &r->to->operand[r->to->operands];
    memset(to, 0, sizeof *to);
    to->form = ELEMENTWISE_FORM_DIMS;
    to->type = r->type;
    for (int k = 0; k < 3; k++)
        if (elementwise_chain_is(r->at, length, forms[k])) to->form = (elementwise_form)k;
    if (length == 0) return elementwise_chain_refuse(r, "shape", "has an operand that is none,");
    if (to->form == ELEMENTWISE_FORM_DIMS && !elementwise_chain_dims(r, length, to)) return 0;
    r->at += length;
    if (elementwise_chain_take(r, ':')) to->type = elementwise_chain_type(r);
    r->to->operands++;
    return to->type != SCOUT_NONE;
}

static inline int elementwise_chain_read_operand(elementwise_chain_reader *r, elementwise_step *s) {
    const size_t length = elementwise_chain_word(r->at);
    const int value = elementwise_chain_is(r->at, length, "v"), same = elementwise_chain_is(r->at, length, "same");
    if (s->inputs == ELEMENTWISE_MAX_INPUTS) return elementwise_chain_refuse(r, "feature", "has more than 8 operands,");
    if (value && r->to->count == 0) return elementwise_chain_refuse(r, "feature", "has no step before it,");
    if (same && (s->inputs == 0 || s->from[s->inputs - 1] < 0))
        return elementwise_chain_refuse(r, "feature", "has no tensor before \"same\",");
    if (value || same) {
        s->from[s->inputs] = value ? ELEMENTWISE_CHAIN_VALUE : s->from[s->inputs - 1];
        r->at += length;
    } else {
        s->from[s->inputs] = r->to->operands;
        if (!elementwise_chain_tensor(r)) return 0;
    }
    s->inputs++;
    return 1;
}

static inline int elementwise_chain_operands(elementwise_chain_reader *r, elementwise_step *s) {
    if (!elementwise_chain_take(r, '(')) {
        const char *const behind = r->at;
        elementwise_chain_reader without = *r;
        without.at = r->to->count == 0 ? "tensor" : "v";
        if (!elementwise_chain_read_operand(&without, s)) return 0;
        r->at = behind;
        return 1;
    }
    do
        if (!elementwise_chain_read_operand(r, s)) return 0;
    while (elementwise_chain_take(r, ','));
    if (!elementwise_chain_take(r, ')'))
        return elementwise_chain_refuse(r, "feature", "has operands that are not closed,");
    return 1;
}

/* "[alpha=0.5,beta=2]" of an operator, "[to=fp16]" of a cast. */
static inline int elementwise_chain_numbers(elementwise_chain_reader *r, elementwise_step *s) {
    const elementwise_number_names *const names = elementwise_number_names_of(s->id);
    s->numbers.alpha = names ? names->alpha : 1, s->numbers.beta = names ? names->beta : 0;
    if (!elementwise_chain_take(r, '[')) {
        if (s->id != ELEMENTWISE_COUNT) return 1;
        return elementwise_chain_refuse(r, "feature", "is a cast that does not say to what,");
    }
    do {
        const size_t length = elementwise_chain_word(r->at);
        const char *const name = r->at;
        const int first = names && elementwise_chain_is(name, length, names->first),
                  second = names && names->second && elementwise_chain_is(name, length, names->second),
                  to = s->id == ELEMENTWISE_COUNT && elementwise_chain_is(name, length, "to");
        if (!first && !second && !to)
            return elementwise_chain_refuse(r, "feature", "has a number that its operator has not,");
        r->at += length;
        if (!elementwise_chain_take(r, '=')) return elementwise_chain_refuse(r, "feature", "has a name without value,");
        if (to && (s->result = elementwise_chain_type(r)) == SCOUT_NONE) return 0;
        if (!to && !elementwise_chain_number(r, first ? &s->numbers.alpha : &s->numbers.beta)) return 0;
    } while (elementwise_chain_take(r, ','));
    return elementwise_chain_take(r, ']') ? 1 : elementwise_chain_refuse(r, "feature", "has an open bracket,");
}

/* --- types --- */

static inline uint32_t elementwise_chain_type_of(const elementwise_chain *c, const elementwise_step *s, int input) {
    if (s->from[input] >= 0) return c->operand[s->from[input]].type;
    return c->steps[c->count - 1].result;
}

/* Casts that stay within the range of what they go to, as those that stand alone. */
static inline int elementwise_chain_cast_fits(uint32_t from, uint32_t to) {
    const int is = elementwise_class_of(from);
    if (is == ELEMENTWISE_BOOL || from == to || to == SCOUT_BOOL) return 1;
    if (to == SCOUT_INT8 || to == SCOUT_UINT8) return 0;
    return to != SCOUT_FP16 || is == ELEMENTWISE_FLOAT || from == SCOUT_INT8 || from == SCOUT_UINT8;
}

/* Before the step is counted: what it computes on and in. */
static inline int elementwise_chain_set_types(const elementwise_chain_reader *r, elementwise_step *s) {
    const elementwise_operator *const is = elementwise_operator_at(s->id);
    const int chooses = s->id == ELEMENTWISE_where;
    s->type = elementwise_chain_type_of(r->to, s, chooses && s->inputs > 1 ? 1 : 0);
    for (int k = 0; k < s->inputs; k++) {
        const uint32_t want = chooses && k == 0 ? (uint32_t)SCOUT_BOOL : s->type;
        if (elementwise_chain_type_of(r->to, s, k) != want)
            return elementwise_chain_refuse(r, "type", "has operands of types that do not go together,");
    }
    if (!is)
        return elementwise_chain_cast_fits(s->type, s->result)
                   ? 1
                   : elementwise_chain_refuse(r, "type", "is a cast that may leave the type's range,");
    if (!(elementwise_class_of(s->type) & is->types))
        return elementwise_chain_refuse(r, "type", "has an operator that is not for this type,");
    s->result = is->truth ? (uint32_t)SCOUT_BOOL : s->type;
    return 1;
}

static inline int elementwise_chain_check(const elementwise_chain_reader *r, const elementwise_step *s) {
    const elementwise_operator *const is = elementwise_operator_at(s->id);
    int reads = 0;
    for (int k = 0; k < s->inputs; k++) reads += s->from[k] == ELEMENTWISE_CHAIN_VALUE;
    if (r->to->count > 0 && reads == 0)
        return elementwise_chain_refuse(r, "feature", "does not read the step before it,");
    if (s->inputs < (is ? is->least : 1) || s->inputs > (is ? is->most : 1))
        return elementwise_chain_refuse(r, "feature", "has too few or too many operands,");
    return 1;
}

static inline int elementwise_chain_step(elementwise_chain_reader *r) {
    if (r->to->count == ELEMENTWISE_CHAIN_STEPS) return elementwise_chain_refuse(r, "feature", "is one more than 16,");
    elementwise_step *const s = &r->to->steps[r->to->count];
    const size_t length = elementwise_chain_word(r->at);
    memset(s, 0, sizeof *s);
    s->id = elementwise_id_named(r->at, length);
    if (s->id == ELEMENTWISE_COUNT && !elementwise_chain_is(r->at, length, "cast"))
        return elementwise_chain_refuse(r, "feature", "has an operator that chains do not cover,");
    r->at += length;
    if (!elementwise_chain_numbers(r, s) || !elementwise_chain_operands(r, s)) return 0;
    if (!elementwise_chain_check(r, s) || !elementwise_chain_set_types(r, s)) return 0;
    r->to->count++;
    return 1;
}

/* 1: `out` holds the chain. 0: it is none; why says which step and where. `type`: of tensors that tell none. */
static inline int elementwise_chain_read(const char *text, uint32_t type, elementwise_chain *out, scout_why *why) {
    elementwise_chain_reader r = {text, out, type, why};
    memset(out, 0, sizeof *out);
    if (!text || strlen(text) > ELEMENTWISE_CHAIN_LONGEST) {
        (void)scout_say(why, SCOUT_NO, "feature", "its \"chain\" is missing, or longer than %d characters",
                        (int)ELEMENTWISE_CHAIN_LONGEST);
        return 0;
    }
    if (!elementwise_chain_holds(type)) {
        (void)scout_say(why, SCOUT_NO, "type", "chains do not support this type");
        return 0;
    }
    do
        if (!elementwise_chain_step(&r)) return 0;
    while (elementwise_chain_take(&r, ';'));
    return *r.at == 0 ? 1 : elementwise_chain_refuse(&r, "feature", "ends before the text does,");
}

/* The steps of any elementwise operation: those of a chain, or the one operator. Operand k is operand k of
 * elementwise_walk_of. */
static inline int elementwise_chain_of(const scout_op *op, elementwise_chain *out, scout_why *why) {
    elementwise_step *const s = &out->steps[0];
    int sources[ELEMENTWISE_MAX_OPERANDS];
    if (op_is(op, "chain")) return elementwise_chain_read(op_text(op, "chain"), op->input, out, why);
    memset(out, 0, sizeof *out);
    s->id = elementwise_id_of(op);
    if (s->id == ELEMENTWISE_COUNT) {
        (void)scout_say(why, SCOUT_NO, "feature", "the operator %.60s is not supported", op->what ? op->what : "");
        return 0;
    }
    out->count = 1;
    out->operands = s->inputs = elementwise_sources(op, sources);
    for (int k = 0; k < s->inputs; k++) s->from[k] = k, out->operand[k].type = op->tensors[sources[k]].type;
    s->type = op->input, s->result = op->output;
    s->numbers = elementwise_numbers_of(op);
    return 1;
}

/* --- exactness --- */

/* Half a step of a type of floats where it is widest against the number; 0: it is exact. */
static inline double elementwise_chain_rounding(uint32_t type) {
    return type == SCOUT_FP32 ? 0x1p-24 : type == SCOUT_FP16 ? 0x1p-11 : type == SCOUT_BF16 ? 0x1p-8 : 0;
}

/* What a step alone may be off by, as a part of its result and of the terms that it is made of: its result may be
 * rounded to its type, and fp32 loses as much inside as when the operator stands alone. */
static inline double elementwise_step_tolerance(const elementwise_step *s) {
    const elementwise_operator *const is = elementwise_operator_at(s->id);
    const double rounding = elementwise_chain_rounding(s->result);
    return rounding > 0 ? rounding + 0x1p-24 * (is ? is->grows : 0) : 0;
}

/* The sum over all steps; 0: all of it is exact. */
static inline double elementwise_chain_tolerance(const elementwise_chain *c) {
    double sum = 0;
    for (int k = 0; k < c->count; k++) sum += elementwise_step_tolerance(&c->steps[k]);
    return sum;
}

#endif
