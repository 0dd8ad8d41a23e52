/* Convolutions and pools for the tests of the CPU device: built through their kinds, tensors filled and guarded, every
 * candidate of the kind run against the device's reference. A test that cannot even get memory aborts. */
#ifndef TESTS_CPU_WINDOWS_H
#define TESTS_CPU_WINDOWS_H

#include "common/arena.h"
#include "scout/input/operation.h"
#include "scout/plugin.h"

#include <stdbool.h>

typedef struct windows_case { /* 0 is what is customary for stride, dilation, group and batch */
    int spatial;
    int64_t n, group, cin, cout; /* cout 0: a pool */
    int64_t in[3], kernel[3], stride[3], dilation[3], pads[6];
    bool last, transposed, ceil, residual, bias, padded;
    int64_t extra; /* output padding, of every dimension */
    const char *what, *activation, *params;
    double alpha, beta;      /* not 0: activation_alpha and _beta, of clip _min and _max */
    dtype type, weight, out; /* 0: fp32, as the input, as the input */
    uint64_t workspace;      /* 0: 32 MB */
} windows_case;

typedef struct windows_run {
    windows_case w;
    guard g;
    arena a;
    operation o;
    scout_op op;
    void *data[SCOUT_MAX_TENSORS];
    int output;
} windows_run;

typedef struct windows_tally {
    int ran[64], unsupported[64], packed; /* by candidate of the device */
} windows_tally;

/* Builds the operation; false: why says. Memory for its tensors, filled. */
void cpu_windows_operation(windows_run *r, const windows_case *w);
bool cpu_windows_build(windows_run *r, scout_why *why);
void cpu_windows_fill(windows_run *r, uint64_t seed);
void cpu_windows_drop(windows_run *r);

double cpu_windows_at(const windows_run *r, int tensor, int64_t image, int64_t channel, const int64_t *place);
int64_t cpu_windows_out(const windows_case *w, int axis); /* by the formula of ONNX */

double cpu_windows_tolerance(const windows_run *r);
scout_check *cpu_windows_begin(const windows_run *r);
void cpu_windows_end(const windows_run *r, scout_check *check);
scout_verdict cpu_windows_judge(const windows_run *r, scout_check *check, double tolerance);
void cpu_windows_say(const windows_run *r, const char *subject, const scout_verdict *v);

/* Every candidate and variant on this case, each held against the reference, twice; adds to the tally. */
void cpu_windows_all(const windows_case *w, uint64_t seed, windows_tally *t);
/* The first candidate that takes it writes the output; false: none. */
bool cpu_windows_compute(windows_run *r);
int cpu_windows_ran(const windows_tally *t, const char *candidate);
void cpu_windows_report(const char *what, const windows_tally *t);

#endif
