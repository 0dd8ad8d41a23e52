/* Elementwise work by its tensors: how each operand is broadcast is told as extract_ops tells it. */
#include "runtime/runtime_front.h"

#include "scout/op/elementwise.h"

#include <stdio.h>

enum { INPUTS = ELEMENTWISE_MAX_INPUTS };

/* Of operators whose operands may change places, the largest is told first. */
static bool is_commutative(const char *what) {
    static const char *const names[] = {"add",  "and", "bitwiseand", "bitwiseor", "bitwisexor", "equal", "max",
                                        "mean", "min", "mul",        "or",        "sum",        "xor"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k], what) == 0) return true;
    return false;
}

typedef struct operand {
    const char *form;
    int place; /* in the call */
    int size;  /* 0: as the output, …: the order in which they are told */
} operand;

/* A tensor as large as the output, its last dimension, one element, or its dimensions from the first on that is not 1.
 */
static bool read_operand(const scout_run_tensor *t, const scout_run_tensor *y, arena *a, operand *o) {
    const int64_t count = runtime_elements(t), last = y->dims[y->rank - 1];
    const int before = y->rank - t->rank;
    bool same = before == 0, fits = before >= 0 && runtime_dense(t);
    for (int d = 0; fits && d < t->rank; d++) {
        fits = t->dims[d] == 1 || t->dims[d] == y->dims[before + d];
        same = same && t->dims[d] == y->dims[d];
    }
    if (!fits) return false;
    const bool vector = t->rank > 0 && count == last && t->dims[t->rank - 1] == last;
    if (same) {
        o->form = "tensor", o->size = 0;
    } else if (count == 1) {
        o->form = "scalar", o->size = 3;
    } else if (vector) {
        o->form = y->rank == 1 ? "tensor" : "vector", o->size = 2;
    } else {
        o->form = "", o->size = 1;
        for (int d = 0; d < t->rank; d++)
            if (*o->form || t->dims[d] != 1)
                o->form = arena_printf(a, "%s%s%lld", o->form, *o->form ? "x" : "", (long long)t->dims[d]);
    }
    return true;
}

/* Stable: those of one size keep their order. */
static void sort(operand *list, int count) {
    for (int k = 1; k < count; k++)
        for (int i = k; i > 0 && list[i].size < list[i - 1].size; i--) {
            const operand swap = list[i];
            list[i] = list[i - 1];
            list[i - 1] = swap;
        }
}

/* The first input before k that is the very same tensor; k: none is. */
static int same_as(const scout_run_tensor *const *inputs, int k) {
    for (int n = 0; n < k; n++)
        if (memcmp(inputs[n], inputs[k], sizeof *inputs[n]) == 0) return n;
    return k;
}

static bool read_operands(runtime_call *call, arena *a, oprec *rec, scout_run_error *error) {
    const int count = call->tensor_count - 1;
    const scout_run_tensor *y = call->tensors[count];
    const runtime_setting *repeated = runtime_call_setting(call, "repeated");
    const char *text = "";
    operand list[INPUTS];
    int bound = 0;
    for (int k = 0; k < count; k++) {
        list[k] = (operand){.place = k, .form = "same", .size = 4};
        if (repeated && ((unsigned)repeated->numbers[0] >> k & 1)) continue;
        if (!read_operand(call->tensors[k], y, a, &list[k]))
            return runtime_refuse(error, "input %d: expected sizes that broadcast to the output, without gaps", k);
    }
    if (is_commutative(call->what)) sort(list, count);
    for (int k = 0; k < count; k++) {
        text = arena_printf(a, "%s%s%s", text, k ? "," : "", list[k].form);
        if (list[k].size != 4) call->order[bound++] = (int8_t)list[k].place;
    }
    call->order[bound] = (int8_t)count;
    if (count > 1 || strcmp(text, "tensor") != 0) oprec_set_text(rec, "inputs", text);
    return true;
}

static bool describe(runtime_call *call, arena *a, operation *out, scout_run_error *error) {
    const int count = call->tensor_count - 1;
    const scout_run_tensor *y = call->tensors[count];
    oprec *rec = &out->rec;
    const int typed = strcmp(call->what, "where") == 0 && count > 1;
    if (y->rank < 1 || !runtime_dense(y)) return runtime_refuse(error, "y: expected 1 dimension or more, without gaps");
    rec->what = arena_strndup(a, call->what, strlen(call->what));
    rec->type = (dtype)call->tensors[typed]->type;
    runtime_front_types(rec, y);
    oprec_set_shape(rec, a, y->rank, y->dims);
    return read_operands(call, a, rec, error);
}

static const runtime_front front = {"elementwise", INPUTS + 1, {NULL}, describe};

int32_t scout_run_elementwise(scout_run *run, const char *what, const scout_run_tensor *const *inputs, int32_t count,
                              const scout_run_tensor *y, void *stream, scout_run_error *error) {
    unsigned repeated = 0;
    runtime_call call;
    if (!what || count < 1 || count > INPUTS)
        return runtime_say(error, SCOUT_RUN_INVALID, "expected an operator and 1 to %d inputs, got %d", (int)INPUTS,
                           (int)count);
    runtime_call_begin(&call, &front, what, count + 1, NULL);
    for (int k = 0; k < count; k++) {
        if (!inputs[k]) return runtime_say(error, SCOUT_RUN_INVALID, "input %d is missing", k);
        call.tensors[k] = inputs[k];
        if (same_as(inputs, k) != k) repeated |= 1u << k;
    }
    call.tensors[count] = y;
    const double number = repeated;
    if (repeated) runtime_call_set(&call, "repeated", NULL, 1, &number);
    return runtime_call_launch(run, &call, stream, error);
}
