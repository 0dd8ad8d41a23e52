/* Reading an operation's fields and tensors by name: header-only, shared by candidates of all devices and by plugins.
 */
#ifndef SCOUT_OP_OP_H
#define SCOUT_OP_OP_H

#include "scout/plugin.h"

#include <stdlib.h>
#include <string.h>

static inline const scout_field *op_field(const scout_op *op, const char *name) {
    for (uint32_t k = 0; k < op->field_count; k++)
        if (strcmp(op->fields[k].name, name) == 0) return &op->fields[k];
    return NULL;
}

static inline int64_t op_number(const scout_op *op, const char *name, int64_t otherwise) {
    const scout_field *f = op_field(op, name);
    return f && !f->text ? f->number : otherwise;
}

/* Fractions come as text. */
static inline double op_real(const scout_op *op, const char *name, double otherwise) {
    const scout_field *f = op_field(op, name);
    return !f ? otherwise : f->text ? strtod(f->text, NULL) : (double)f->number;
}

static inline const char *op_text(const scout_op *op, const char *name) {
    const scout_field *f = op_field(op, name);
    return f ? f->text : NULL;
}

static inline int op_is(const scout_op *op, const char *what) { return op->what && strcmp(op->what, what) == 0; }

/* A list of whole numbers ("2,2", or a single number): at most `room` into out; how many there are, 0 where absent. */
static inline int op_ints(const scout_op *op, const char *name, int64_t *out, int room) {
    const scout_field *f = op_field(op, name);
    int count = 0;
    if (!f) return 0;
    if (!f->text) {
        if (room > 0) out[0] = f->number;
        return 1;
    }
    for (const char *at = f->text; *at;) {
        char *end;
        const long long x = strtoll(at, &end, 10);
        if (end == at) break;
        if (count < room) out[count] = x;
        count++;
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

/* Index of the tensor of that name, or -1. */
static inline int op_tensor(const scout_op *op, const char *name) {
    for (uint32_t k = 0; k < op->tensor_count; k++)
        if (strcmp(op->tensors[k].name, name) == 0) return (int)k;
    return -1;
}

static inline int64_t op_elements(const scout_tensor *t) {
    int64_t count = 1;
    for (uint32_t d = 0; d < t->rank; d++) count *= t->dims[d];
    return count;
}

#endif
