/* What kind of mask an attention has, found by evaluating the mask at sampled positions instead of comparing it with
 * templates: any way of spelling a causal mask gives the same numbers. */
#ifndef EXTRACT_MASK_MASK_H
#define EXTRACT_MASK_MASK_H

#include "extract/graph/graph.h"

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
    bool turned; /* its last two dimensions are [kv_len, q_len] */
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

#endif
