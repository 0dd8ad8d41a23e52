/* Matrix products of any shape on one pool of a device's memory, run by the candidate that is its baseline: what the
 * shape search and the K sweep time. */
#ifndef SCOUT_CEILINGS_CEILINGS_PRODUCT_H
#define SCOUT_CEILINGS_CEILINGS_PRODUCT_H

#include "scout/ceilings/ceilings_lab.h"
#include "scout/ceilings/ceilings_search.h"

enum { CEILINGS_PRODUCT_LAYOUTS = 2, CEILINGS_PRODUCT_VARIANTS = 8 };

typedef struct ceilings_product_pool {
    const ceilings_lab *lab;
    const ceilings_precision *precision;
    const scout_candidate *candidate; /* NULL: none yet */
    const char *layouts[CEILINGS_PRODUCT_LAYOUTS];
    int32_t layout_count;
    int32_t varied;   /* the parameter of the candidate's domain whose values are its variants; -1: none */
    int32_t variants; /* at most CEILINGS_PRODUCT_VARIANTS */
    char variant_names[CEILINGS_PRODUCT_VARIANTS][32]; /* "algo=3" */
    void *a, *b, *c, *workspace, *side;                /* of the device */
    uint64_t input_bytes, output_bytes;
} ceilings_product_pool;

/* Finds the candidate and its layouts; no memory yet. SCOUT_NO: nothing here multiplies at that precision. */
scout_answer ceilings_product_begin(ceilings_product_pool *p, const ceilings_lab *lab, const char *precision,
                                    scout_why *why);
/* Memory for inputs of so many elements each and outputs of so many, inputs filled with normal data. Gives back what
 * was there. */
scout_answer ceilings_product_room(ceilings_product_pool *p, double input_elements, double output_elements,
                                   scout_why *why);
void ceilings_product_end(ceilings_product_pool *p);

/* For ceilings_search_bench; context is the pool. */
scout_answer ceilings_product_open(void *context, const ceilings_search_point *point, timing_subject *out,
                                   scout_why *why);
void ceilings_product_close(void *context, timing_subject *subject);

/* "cublaslt algo=3" */
void ceilings_product_how(const ceilings_product_pool *p, const ceilings_search_point *point, char *text, size_t room);

#endif
