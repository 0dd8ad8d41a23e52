/* Products for the tests of the CPU device: their operation, tensors filled and guarded, and the device's reference
 * held against what a test or a candidate has computed. A test that cannot even get memory aborts. */
#ifndef TESTS_CPU_PRODUCTS_H
#define TESTS_CPU_PRODUCTS_H

#include "scout/plugin.h"

#include <stdbool.h>

typedef struct product { /* what product a test asks for */
    int64_t m, n, k, batch;
    const char *layout;
    uint32_t type_a, type_b, type_c;
    bool shared_a, shared_b;
    const char *bias;
    bool residual;
    const char *activation;
    double alpha;               /* of the activation; 0: its own */
    double factor, bias_factor; /* of the product and of its bias; 0: 1 */
    int64_t block;
    bool zeros;         /* for each block */
    uint64_t workspace; /* 0: as the program's default */
} product;

typedef struct problem {
    product w;
    scout_op op;
    scout_tensor tensors[7];
    scout_field fields[8];
    void *data[7]; /* of the device, with canaries around */
    char alpha[32], factors[2][32];
} problem;

extern const scout_device_api *cpu_products_api;
extern scout_device *cpu_products_device;

enum { CPU_PRODUCTS_SHAPES = 8, CPU_PRODUCTS_TYPES = 7 };

/* Whether a variant of that name is one on all threads that was counted on one. */
bool cpu_products_again(const char *variant);

bool cpu_products_open(void);
void cpu_products_close(void);
product cpu_products_want(size_t shape, size_t layout, size_t type, int64_t batch);
void cpu_products_make(problem *p, const product *w, uint64_t seed);
void cpu_products_drop(problem *p);
double cpu_products_at(const problem *p, int index, int64_t position); /* a tensor's value */

void *cpu_products_guarded(uint64_t bytes);
bool cpu_products_guards_hold(const void *data, uint64_t bytes);
void cpu_products_give_back(void *data);

scout_check *cpu_products_begin(const problem *p); /* NULL: it said why */
/* With the tolerance of rounding an output and of summing in fp32 (the kind's, where something stands behind the
 * product), or with one's own. */
scout_verdict cpu_products_judge(scout_check *check, const problem *p);
scout_verdict cpu_products_judge_within(scout_check *check, const problem *p, double tolerance);
/* Writes what is right: no blocks, no threads, nothing shared with the code under test but the loads. */
void cpu_products_triple_loop(const problem *p);
/* That the device's reference says the same, and looks at enough of it. */
void cpu_products_check_reference(const product *w, uint64_t seed);
void cpu_products_say(const problem *p, const char *subject, const scout_verdict *v);

#endif
