/* A convolution as a primitive of oneDNN, before it is compiled. */
#ifndef SCOUT_CPU_ONEDNN_CPU_ONEDNN_CONV_H
#define SCOUT_CPU_ONEDNN_CPU_ONEDNN_CONV_H

#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/op/conv.h"

typedef enum cpu_onednn_conv_form {
    CPU_ONEDNN_CONV_PACKED,  /* the weight in the library's format, activations as they are */
    CPU_ONEDNN_CONV_AS_IS,   /* the weight as it lies too */
    CPU_ONEDNN_CONV_BLOCKED, /* all in the library's format */
    CPU_ONEDNN_CONV_FORMS
} cpu_onednn_conv_form;

enum { CPU_ONEDNN_CONV_SRC, CPU_ONEDNN_CONV_WEIGHT, CPU_ONEDNN_CONV_DST }; /* the first parts of the plan */

typedef struct cpu_onednn_conv_moves { /* which activations the primitive has in another format than the tensors */
    bool in, out;
} cpu_onednn_conv_moves;

/* c->packed is set where the weight comes in another format than it lies. cpu_onednn_plan_free also where it is not
 * SCOUT_OK. */
scout_answer cpu_onednn_conv_describe(cpu_onednn_plan *c, const scout_op *op, cpu_onednn_conv_form form,
                                      cpu_onednn_conv_moves *moves, scout_why *why);

/* The md of an input or output as it lies, in dnnl's order of dimensions. */
bool cpu_onednn_conv_activations(cpu_onednn_md *md, const scout_op *op, int tensor);

#endif
