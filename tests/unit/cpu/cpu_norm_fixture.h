/* Norms and softmax for the tests of the CPU device: an operation from a line of text, its tensors filled and guarded,
 * and every candidate of its kind held against the device's reference. A test that cannot even get memory aborts. */
#ifndef TESTS_CPU_NORM_FIXTURE_H
#define TESTS_CPU_NORM_FIXTURE_H

#include "common/arena.h"
#include "scout/kinds/kinds.h"
#include "scout/plugin.h"

#include <stdbool.h>

typedef struct cpu_norm_want {
    const char *kind, *what, *shape; /* "norm", "layer", "7,65" */
    const char *precision, *weight;  /* NULL: fp32; no weight */
    const char *fields;              /* NULL, or as in "bias=1 axes=0,2 alpha=0.5 activation=silu" */
    uint64_t workspace;              /* 0: 32 MB */
} cpu_norm_want;

typedef struct cpu_norm_lab {
    guard g;
    arena a;
    scout_op op;
    scout_why why;
    double tolerance;
    bool built;
    void *data[SCOUT_MAX_TENSORS]; /* of the device, with canaries around; filled */
    scout_check *check;
} cpu_norm_lab;

/* How often anything below was not as it must be: a test program's last test. */
extern int cpu_norm_lab_wrong;

/* The operation alone; false: it is refused, lab->why says why. */
bool cpu_norm_lab_build(cpu_norm_lab *lab, const cpu_norm_want *want);
/* The operation with tensors. false: it is refused. Then cpu_norm_lab_end. */
bool cpu_norm_lab_begin(cpu_norm_lab *lab, const cpu_norm_want *want, uint64_t seed);
void cpu_norm_lab_end(cpu_norm_lab *lab);

double cpu_norm_lab_at(const cpu_norm_lab *lab, int tensor, int64_t at);
void cpu_norm_lab_set(const cpu_norm_lab *lab, int tensor, int64_t at, double value);
bool cpu_norm_lab_refer(cpu_norm_lab *lab); /* asks the reference, from the inputs as they are now */
scout_verdict cpu_norm_lab_judge(const cpu_norm_lab *lab, uint32_t tensor, double tolerance);
/* Runs that candidate twice on poisoned outputs, and looks at everything. false: it does not take the operation; then
 * it said so by a known reason. */
bool cpu_norm_lab_run(cpu_norm_lab *lab, const scout_candidate *c);

/* Begins, refers and runs them all; how many ran goes to ran[] by their place in the device's list. */
void cpu_norm_lab_all(const cpu_norm_want *want, uint64_t seed, int *ran);
int cpu_norm_lab_place(const char *candidate); /* in that list */

#endif
