/* Finding the shape at which a device multiplies fastest, and holding what was found against random shapes. Knows no
 * device: a bench opens shapes as subjects that can be timed, so that the tests search on a model of one. */
#pragma once

#include "scout/ceilings/ceilings_lab.h"

typedef struct ceilings_search_point {
    int64_t m, n, k;
    int32_t layout, variant; /* 0: the bench's default */
} ceilings_search_point;

typedef struct ceilings_search_bench {
    void *context;
    /* SCOUT_LOST ends the search; anything else that is not SCOUT_OK ends this point. */
    scout_answer (*open)(void *context, const ceilings_search_point *p, timing_subject *out, scout_why *why);
    void (*close)(void *context, timing_subject *subject);
    int32_t layouts, variants; /* how many may be tried of each */
} ceilings_search_bench;

typedef struct ceilings_search_space {
    int64_t least, most;   /* of each dimension */
    int64_t deepest;       /* K of a few long products; 0: none */
    double input_elements; /* most of m*k and of n*k */
    double output_elements;
    int32_t units; /* that share the tiles of a product; 1: not known */
    uint64_t seed;
} ceilings_search_space;

typedef struct ceilings_search {
    ceilings_search_bench bench;
    ceilings_search_space space;
    const ceilings_lab *lab; /* its clock and regime; no device is needed */
    double budget_s;
    const char *name; /* of the precision */
} ceilings_search;

typedef struct ceilings_search_best {
    ceilings_search_point point;
    double tflops;
    ceilings_figure figure; /* of its long run */
    int32_t tried;          /* shapes and variants looked at */
    bool disturbed;         /* the long run disagrees with itself, or with the blocks beside its rivals */
} ceilings_search_best;
scout_answer ceilings_search_run(const ceilings_search *s, ceilings_search_best *out, scout_why *why);

/* Times `count` random shapes in the same way and the best of them beside `found`. ratio: the rate of `found` over that
 * of the best random one, from the same passes. */
typedef struct ceilings_search_verdict {
    int32_t random_shapes;
    ceilings_search_point best;
    double best_tflops, found_tflops, ratio, rel_ci95, seconds;
} ceilings_search_verdict;
scout_answer ceilings_search_audit(const ceilings_search *s, const ceilings_search_point *found, int32_t count,
                                   ceilings_search_verdict *out, scout_why *why);

static inline double ceilings_search_flops(const ceilings_search_point *p) {
    return 2.0 * (double)p->m * (double)p->n * (double)p->k;
}
