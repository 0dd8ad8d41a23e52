/* Operations of any kind for the tests of the CPU device: written as people write them, built by their kind, tensors
 * filled as the harness fills them, and every candidate held against the reference. */
#ifndef TESTS_CPU_BUILT_H
#define TESTS_CPU_BUILT_H

#include "scout/kinds/kinds.h"

#include <stdbool.h>

typedef struct cpu_built {
    guard g;
    arena a;
    operation_list list;
    scout_op op;
    scout_why why; /* where it was not built */
    bool built;
    void *data[SCOUT_MAX_TENSORS]; /* of the device, with canaries around */
} cpu_built;

bool cpu_built_open(void);
void cpu_built_close(void);

/* `text` is one operation of the short form. A text that cannot be read at all aborts; what its kind refuses is not
 * `built`. cpu_built_end either way. */
void cpu_built_make(cpu_built *b, const char *text, uint64_t workspace_limit);
void cpu_built_end(cpu_built *b);
void cpu_built_fill(cpu_built *b, uint64_t seed); /* makes the tensors on the first call */

/* Every candidate that supports it, in every variant, on poisoned outputs, twice: outputs right, guards whole, inputs
 * as they were. Then outputs with one wrong element each: they must be found. Returns how many variants ran. */
int cpu_built_run(cpu_built *b, const char *text);
/* All of it for one text, which at least `least` variants must run. */
void cpu_built_check(const char *text, int least);
/* Its kind must refuse it with that code. */
void cpu_built_refused(const char *text, const char *code);

double cpu_built_at(const cpu_built *b, const char *tensor, int64_t position);
void cpu_built_put(cpu_built *b, const char *tensor, int64_t position, double value);
/* One launch of that candidate's first variant, without a look at what it gives; false: it did not run. */
bool cpu_built_launch(cpu_built *b, const char *candidate);
/* What the reference holds for the output: a launch of nothing, with `values` put in place, must be right. */
bool cpu_built_accepts(cpu_built *b);

extern int cpu_built_failures; /* counted here, because the test frame counts per file */

#endif
