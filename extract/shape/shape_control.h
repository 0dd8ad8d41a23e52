/* What the control-flow operators share. */
#ifndef EXTRACT_SHAPE_SHAPE_CONTROL_H
#define EXTRACT_SHAPE_SHAPE_CONTROL_H

#include "extract/infer/infer.h"

enum {
    CONTROL_MAX_ITERATIONS = 1024, /* of a loop that is followed value by value */
    CONTROL_MAX_REPEATS = 200000   /* nodes inferred again, in the whole run */
};

graph *shape_control_body(infer *c, const char *name); /* the body in that attribute; fails where there is none */
void shape_control_check_outputs(infer *c, const graph *g, int need);
/* How often a body runs per run of its owner; infer_model multiplies along the nesting in the end. */
void shape_control_times(graph *g, double times, bool known);
/* Whether bodies may be inferred once more: bounds the repetitions of a whole run. To infer one adds its nodes to
 * infer_state's repeats. */
bool shape_control_may_repeat(const infer *c);
const info *shape_control_without_values(infer *c, const info *x);
bool shape_control_same_values(const info *a, const info *b);
bool shape_control_same(const info *a, const info *b); /* form, type and shape; of sequences, the length */

/* Nodes of a body that is inferred several times and gives other shapes from one time to the next: they have no one
 * shape to be listed with, which shape_control_say writes down as their reason. */
typedef struct shape_control_changes {
    graph *body;
    const info **before; /* by output of the body's nodes; NULL before the first time */
    bool *changed;       /* by node */
} shape_control_changes;
shape_control_changes shape_control_watch(infer *c, graph *body);
void shape_control_note(shape_control_changes *w); /* after each time */
void shape_control_say(const shape_control_changes *w);

#endif
