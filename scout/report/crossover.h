/* From how many zeros on leaving them out is faster than the dense product: told from products that differ in nothing
 * but the zeros of their weights, as --sparsity-sweep makes them, or a file that holds several. */
#pragma once

#include "scout/report/report.h"

typedef struct crossover_point {
    double zeros;               /* of the weight, as it was made */
    double dense_us, sparse_us; /* medians; not-a-number: not measured to the end, as it was far behind in the race */
    double real_tflops, dense_equivalent_tflops; /* of the sparse one */
    const char *name, *variant;                  /* of the fastest sparse candidate; NULL: none was measured */
    const json_t *rows;                          /* borrowed */
    bool open; /* those that leave zeros out elsewhere had no time here: it tells nothing */
} crossover_point;

typedef struct crossover {
    const operation *operation; /* the first of them */
    int block;                  /* side of the blocks; 0: the pattern has none */
    int count;
    crossover_point *points; /* fewest zeros first; in the arena */
    double from;             /* fraction of zeros; not-a-number: at none of them */
    double behind;           /* the most zeros at which it was not; not-a-number: it was faster wherever it is known */
} crossover;

/* One product as a list of many, with more and more zeros. `pattern` NULL: blocks; block 0: of the customary side. */
void crossover_operations(const char *shape, const char *precision, const char *pattern, int block, arena *a,
                          operation_list *list);

/* All there are; returns how many, in the arena. */
int crossover_find(const report_input *inputs, int count, arena *a, crossover **found);
json_t *crossover_json(const crossover *found, int count, json_builder *b);
