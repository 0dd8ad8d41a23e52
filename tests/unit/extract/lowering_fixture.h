/* A graph made by hand, all shapes given, so that lowering and collecting can be tried without reading or inferring. */
#ifndef TESTS_LOWERING_FIXTURE_H
#define TESTS_LOWERING_FIXTURE_H

#include "extract/ops/collect.h"
#include "extract/ops/cost.h"
#include "tests/unit/unit.h"

enum { BENCH_NODES = 16 };

typedef struct bench {
    guard guard;
    arena arena;
    model model;
    graph graph, body; /* the body is no graph of the model until a test says so */
    node *nodes[BENCH_NODES];
    graph *graphs[2];
    tensor *tensors[4 * BENCH_NODES];
    worklist list;
} bench;

extern bench b;

void bench_begin(void);
void bench_end(void);

/* Rank and dims of a shape, as two arguments. */
#define DIMS(...)                                                                                                      \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

tensor *bench_tensor(dtype type, int rank, const int64_t *dims);
tensor *bench_weight(dtype type, int rank, const int64_t *dims); /* an initializer */
void bench_attr(node *n, attr a);
void bench_int(node *n, const char *name, int64_t x);
void bench_ints(node *n, const char *name, int count, const int64_t *x);
node *bench_node(const char *domain, const char *op_type, tensor *out, int in_count, tensor *const *in);
#define NODE(domain, op_type, out, ...)                                                                                \
    bench_node(domain, op_type, out, (int)(sizeof((tensor *[]){__VA_ARGS__}) / sizeof(tensor *)),                      \
               (tensor *[]){__VA_ARGS__})

const work *bench_lower(const node *n, dtype precision); /* lowers all; the work of n */
void bench_costs(const work *w, int64_t macs, int64_t flops, int64_t bytes_read, int64_t bytes_written);
void bench_shape(const work *w, int rank, const int64_t *dims);
const char *bench_text(const work *w, const char *name); /* a named dimension that is text; NULL where there is none */

#endif
