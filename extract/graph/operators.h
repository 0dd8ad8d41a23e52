/* The table of operators: adding one is one line in operators.c (and, where nothing fits, one function). */
#pragma once

#include "extract/graph/graph.h"

struct infer;
struct work;

/* Sets the info of every wanted output (infer_set*), or says why it can't (infer_unresolved), or refuses the model
 * (infer_fail). Called when all inputs have their infos. */
typedef void operator_shape_fn(struct infer *c);
/* Fills a work's record for one node: kind, dimensions, macs, flops (ops/lower.h). */
typedef void operator_lower_fn(struct work *w);

typedef struct operator_def {
    const char *domain; /* "" is ai.onnx */
    const char *name;
    int min_inputs, max_inputs; /* max -1: any number */
    int min_outputs, max_outputs;
    operator_shape_fn *shape;
    operator_lower_fn *lower;
    const char *detail; /* what the functions need to tell siblings apart ("relu", "sum", "max"); NULL: op name in lower
                           case is used */
    double cost; /* lower: scalar operations per output element (elementwise) or per input element (reductions); 0 where
                    lower computes it */
} operator_def;

/* NULL where unknown. Domains "" and "ai.onnx" are the same. */
const operator_def *operators_find(const char *domain, const char *name);
const operator_def *operators_table(size_t *count);
