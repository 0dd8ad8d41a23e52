/* The value of one element of a tensor, pulled from upstream on demand: nothing is computed but what one position
 * needs. */
#pragma once

#include "extract/graph/graph.h"

typedef struct mask_number {
    double x;     /* booleans are 0 and 1 */
    bool depends; /* some input of the model had a say */
} mask_number;

enum {
    MASK_EVAL_MAX_RANK = 8,
    MASK_EVAL_MAX_DEPTH = 64,
    MASK_EVAL_MAX_CONSTANT =
        1 << 22,            /* elements of all constants read for one mask: a causal buffer of 2048 by 2048 fits */
    MASK_EVAL_CONSTANTS = 8 /* read constants that are kept at hand */
};

typedef struct mask_eval {
    model *m;
    int64_t steps;       /* left; evaluation fails at 0 */
    double int_input;    /* what integer and boolean inputs of the model are taken to hold */
    double float_input;  /* and floating ones */
    const tensor *asked; /* the first input of the model that had a say; NULL: none so far */
    bool asked_several;  /* and others had */
    const tensor *read[MASK_EVAL_CONSTANTS];
    const value *values[MASK_EVAL_CONSTANTS];
    int read_count;
    int64_t read_elements;
} mask_eval;

/* Element `index` (row-major) of t. False where it cannot be known: an operator that is not followed, a constant out of
 * reach, too many steps. `depth` is 0 for a caller from outside. */
bool mask_eval_at(mask_eval *e, const tensor *t, int64_t index, int depth, mask_number *out);

/* One operator: element `index` of its output t. */
typedef bool mask_eval_fn(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out);
/* By operator name; NULL where not followed. */
typedef struct mask_eval_row { /* of a table that is sorted by name */
    const char *name;
    mask_eval_fn *fn;
} mask_eval_row;
mask_eval_fn *mask_move_find(const char *op_type);   /* mask_move.c: what only moves elements */
mask_eval_fn *mask_number_find(const char *op_type); /* mask_number.c: arithmetic, comparison, logic */

int mask_eval_rank(const tensor *t); /* -1 where unknown or beyond MASK_EVAL_MAX_RANK */
/* Position of element `index`, and back. */
void mask_eval_split(const tensor *t, int64_t index, int64_t *pos);
int64_t mask_eval_index(const tensor *t, const int64_t *pos);
/* The element of `from` that numpy broadcasting puts at element `index` of `to`. */
int64_t mask_eval_broadcast(const tensor *from, const tensor *to, int64_t index);
/* All integers of a small known tensor that says where elements lie (starts, axes, repeats); NULL where not known. */
const int64_t *mask_eval_ints(mask_eval *e, const tensor *t, int64_t *n);

typedef enum mask_form {
    MASK_ADD,  /* added to the scores: 0 keeps, a large negative number hides */
    MASK_SUB,  /* subtracted from them */
    MASK_KEEP, /* boolean: true keeps */
    MASK_HIDE, /* boolean: true hides */
    MASK_MUL   /* the scores are multiplied by it: 1 keeps, 0 is left to another term to hide */
} mask_form;

typedef struct mask_term {
    tensor *t; /* broadcasts to [..., q_len, kv_len] */
    mask_form form;
    bool turned;          /* its last two dimensions are [kv_len, q_len] */
    const tensor *scores; /* with it: the view of them that it is added in; NULL: of an attention that is one node */
} mask_term;

enum { MASK_MAX_TERMS = 4, MASK_CACHE_SIZE = 16 };

typedef struct mask_verdict {
    const char *kind;      /* none, causal, additive, causal+padding, lengths */
    int64_t window;        /* a causal mask that shows each query at most so many keys; 0: all before it */
    const tensor *lengths; /* the model's input that says how many keys of each sequence count; else NULL */
} mask_verdict;

typedef struct mask_entry {
    mask_term terms[MASK_MAX_TERMS];
    int count;
    int64_t q_len, kv_len;
    mask_verdict verdict;
} mask_entry;

/* The last verdicts, and how many steps of evaluation the run has left: what is asked after they are used up is
 * additive. */
typedef struct mask_cache {
    mask_entry entries[MASK_CACHE_SIZE];
    int used, next;
    int64_t steps_left;
} mask_cache;

void mask_cache_init(mask_cache *cache);

/* Inputs of the model are taken to hide nothing; a mask that depends on one is told apart from one that does not.
 * Queries stand at the end of the keys. No terms: none. */
mask_verdict mask_classify(mask_cache *cache, model *m, const mask_term *terms, int count, int64_t q_len,
                           int64_t kv_len);
