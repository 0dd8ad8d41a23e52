/* Operations for the tests of elementwise and reduce: built as the harness builds them, tensors filled as it fills them
 * and between guards, every candidate of the device held against the reference. What cannot get memory aborts. */
#ifndef TESTS_CPU_ELEMENT_H
#define TESTS_CPU_ELEMENT_H

#include "scout/kinds/kinds.h"

typedef struct element_number {
    const char *name;
    double value;
} element_number;

typedef struct element_want { /* which operation a test asks for */
    op_kind kind;
    const char *what, *inputs, *chain;
    int rank;
    int64_t shape[SCOUT_MAX_RANK];
    dtype type, out; /* DTYPE_NONE: as type */
    int64_t bytes_read;
    element_number numbers[3];
    int input_rank, axis_count; /* of a reduction whose axes are not the last ones */
    int64_t input[SCOUT_MAX_RANK], axes[SCOUT_MAX_RANK];
} element_want;

typedef struct element {
    guard guard;
    arena arena;
    operation o;
    scout_op op;
    scout_why why;
    bool built;
    void *data[SCOUT_MAX_TENSORS];
    scout_check *check;
    bool judged; /* its outputs are held against the reference, which takes no infinite number for right */
    double tolerance;
} element;

extern int element_failures; /* checks in here that did not hold, each of them said */

bool element_open(void);
void element_close(void);
void element_build(element *e, const element_want *w); /* no tensors yet; e->built, e->why */
void element_fill(element *e, uint64_t seed);          /* tensors and the reference's check */
void element_again(element *e);                        /* the check anew, after inputs were changed */
void element_drop(element *e);

double element_at(const element *e, int tensor, int64_t position);
int element_output(const element *e);
scout_verdict element_judge(const element *e);

/* Runs that candidate twice: 1 it was right, 0 it said that it cannot. */
int element_run(element *e, const char *candidate);
/* Build, fill, run both candidates of the kind, drop; adds to ran[0] (the library's) and ran[1] (the own loop's). */
void element_run_all(const element_want *w, uint64_t seed, int *ran);
/* Whether each of these wrong elements alone is found: some places of a right output, each changed by `by` times what
 * is there and its type's unit. */
void element_finds_wrong(element *e);

#endif
