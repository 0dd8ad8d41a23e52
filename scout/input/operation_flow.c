/* The dataflow on its way to a worker: rows of numbers, read there as if a stranger had sent them. */
#include "scout/input/operation_internal.h"

#include "common/checked.h"

#include <stdlib.h>
#include <xxhash.h>

typedef struct lie_step {
    int64_t stride, size;
} lie_step;

static int longest_first(const void *a, const void *b) {
    const lie_step *x = a, *y = b;
    return x->stride != y->stride ? (x->stride < y->stride) - (x->stride > y->stride)
                                  : (x->size < y->size) - (x->size > y->size);
}

int64_t operation_lie(int rank, const int64_t *dims, const int64_t *strides) {
    lie_step steps[OPERATION_MAX_RANK];
    int count = 0, joined = 0;
    for (int d = 0; d < rank && d < OPERATION_MAX_RANK; d++)
        if (dims[d] > 1 && strides[d] != 0) steps[count++] = (lie_step){strides[d], dims[d]};
    qsort(steps, (size_t)count, sizeof *steps, longest_first);
    for (int k = 1; k < count; k++) { /* a step that goes on where the shorter one ends is one with it */
        lie_step *last = &steps[joined];
        if (last->stride == checked_mul(steps[k].stride, steps[k].size))
            *last = (lie_step){steps[k].stride, checked_mul(last->size, steps[k].size)};
        else
            steps[++joined] = steps[k];
    }
    if (count == 0 || (joined == 0 && steps[0].stride == 1)) return 0;
    return (int64_t)(XXH3_64bits(steps, (size_t)(joined + 1) * sizeof *steps) >> 1 | 1);
}

json_t *operation_flow_to_json(const operation_flow *f, json_builder *b) {
    json_t *to = json_new_object(b), *tensors = json_new_array(b), *occurrences = json_new_array(b),
           *edges = json_new_array(b), *operands = json_new_array(b);
    for (int k = 0; k < f->tensor_count; k++) {
        const operation_tensor *t = &f->tensors[k];
        const int64_t x[] = {t->bytes, t->source, t->offset,   t->lie,  t->producer,
                             t->from,  t->to,     t->constant, t->kept, (int64_t)t->type};
        json_push(b, tensors, json_new_ints(b, sizeof x / sizeof *x, x));
    }
    for (int k = 0; k < f->occurrence_count; k++) {
        const operation_occurrence *o = &f->occurrences[k];
        const int64_t x[] = {o->operation, o->place, o->times,    o->read,
                             o->made,      o->after, o->operands, o->operand_count};
        json_push(b, occurrences, json_new_ints(b, sizeof x / sizeof *x, x));
    }
    for (int k = 0; k < f->edge_count; k++) json_push_int(b, edges, f->edges[k]);
    for (int k = 0; k < f->operand_count; k++) json_push_int(b, operands, f->operands[k]);
    json_put(b, to, "tensors", tensors);
    json_put(b, to, "occurrences", occurrences);
    json_put(b, to, "edges", edges);
    json_put(b, to, "operands", operands);
    return to;
}

typedef struct flow_reader {
    arena *arena;
    const json_t *row;
} flow_reader;

static int64_t number(const flow_reader *r, size_t at, int64_t least, int64_t most) {
    const json_t *x = json_array_get(r->row, at);
    const int64_t value = json_integer_value(x);
    if (!json_is_integer(x) || value < least || value > most)
        guard_fail(r->arena->guard, STATUS_ENVIRONMENT, "a job with a dataflow that cannot be one");
    return value;
}

operation_flow *operation_flow_from_json(const json_t *o, int operations, arena *a) {
    const json_t *tensors = json_object_get(o, "tensors"), *occurrences = json_object_get(o, "occurrences"),
                 *edges = json_object_get(o, "edges"), *operands = json_object_get(o, "operands");
    operation_flow *f = arena_array(a, operation_flow, 1);
    flow_reader r = {.arena = a};
    f->tensor_count = (int)json_array_size(tensors);
    f->occurrence_count = (int)json_array_size(occurrences);
    f->edge_count = (int)json_array_size(edges);
    f->operand_count = (int)json_array_size(operands);
    f->tensors = arena_array(a, operation_tensor, f->tensor_count);
    f->occurrences = arena_array(a, operation_occurrence, f->occurrence_count);
    f->edges = arena_array(a, int, f->edge_count);
    f->operands = arena_array(a, int, f->operand_count);
    for (int k = 0; k < f->tensor_count; k++) {
        operation_tensor *t = &f->tensors[k];
        r.row = json_array_get(tensors, (size_t)k);
        t->bytes = number(&r, 0, -1, INT64_MAX);
        t->source = (int)number(&r, 1, -1, f->tensor_count - 1);
        t->offset = number(&r, 2, 0, INT64_MAX);
        t->lie = number(&r, 3, 0, INT64_MAX);
        t->producer = (int)number(&r, 4, -1, f->occurrence_count - 1);
        t->from = (int)number(&r, 5, 0, f->occurrence_count);
        t->to = (int)number(&r, 6, -1, f->occurrence_count);
        t->constant = number(&r, 7, 0, 1) == 1;
        t->kept = number(&r, 8, 0, 1) == 1;
        const int64_t type = number(&r, 9, 0, INT32_MAX);
        t->type = dtype_known(type) ? (dtype)type : DTYPE_NONE;
    }
    for (int k = 0; k < f->occurrence_count; k++) {
        operation_occurrence *at = &f->occurrences[k];
        r.row = json_array_get(occurrences, (size_t)k);
        at->operation = (int)number(&r, 0, -1, operations - 1);
        at->place = (int)number(&r, 1, 0, INT32_MAX);
        at->times = number(&r, 2, 1, INT64_MAX);
        at->read = (int)number(&r, 3, 0, f->edge_count);
        at->made = (int)number(&r, 4, at->read, f->edge_count);
        at->after = (int)number(&r, 5, at->made, f->edge_count);
        at->operands = (int)number(&r, 6, 0, f->operand_count);
        at->operand_count = (int)number(&r, 7, 0, f->operand_count - at->operands);
    }
    r.row = edges;
    for (int k = 0; k < f->edge_count; k++) f->edges[k] = (int)number(&r, (size_t)k, 0, f->tensor_count - 1);
    r.row = operands;
    for (int k = 0; k < f->operand_count; k++) f->operands[k] = (int)number(&r, (size_t)k, -1, f->tensor_count - 1);
    return f;
}
