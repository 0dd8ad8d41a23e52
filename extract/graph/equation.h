/* What the equation of an Einsum says: the letters of each operand and of the output, and what becomes of each. */
#pragma once

#include "extract/graph/graph.h"

enum {
    EQUATION_NAMED = 52, /* a-z, A-Z; then the dimensions of an ellipsis, from the right */
    EQUATION_LETTERS = EQUATION_NAMED + INFO_MAX_RANK,
    EQUATION_OPERANDS = 8
};

typedef struct equation_term {
    int letters[INFO_MAX_RANK];
    int rank;
} equation_term;

typedef struct equation {
    equation_term in[EQUATION_OPERANDS], out;
    int count;
    int64_t size[EQUATION_LETTERS];
} equation;

/* Of two operands: what both have is the batch, or summed; what one of them has is M or N. */
typedef enum equation_role { EQUATION_BATCH, EQUATION_M, EQUATION_N, EQUATION_K } equation_role;

/* False where it is not understood, or a shape is not known. */
bool equation_read(const node *n, equation *e);
bool equation_has(const equation_term *t, int letter);
/* Of a letter that is not summed in one operand alone. */
equation_role equation_role_of(const equation *e, int letter);
/* Do the roles of a term come in this order, and the letters of each role in the same order as in the output? */
bool equation_in_order(const equation *e, const equation_term *t, const equation_role *order);
/* The layout of a plain product ("nn", "nt", …); NULL where it is none. */
const char *equation_layout(const equation *e);
