/* Binding a plan's tensors, and launching it: every step by the path of a single launch. */
#include "runtime/runtime_plan.h"

#include "common/dtype.h"
#include "scout/op/op.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a caller binds ---- */

static const char *name_of(const scout_run_plan *plan, int tensor) { return plan->flow->told[tensor].name; }

static scout_run_tensor as_told(const scout_run_plan *plan, int tensor) {
    const operation_told *told = &plan->flow->told[tensor];
    return scout_run_dense(NULL, (int32_t)plan->flow->tensors[tensor].type, told->rank, told->dims);
}

/* Where a slot's pointer lies: of an output in the place of another view, with that. */
static void **place_of(const scout_run_plan *plan, int tensor) {
    const int owner = binding_owner(plan->flow, tensor);
    return owner != tensor && plan->claimed[owner] == tensor ? &plan->data[owner] : &plan->data[tensor];
}

int32_t scout_run_plan_count(const scout_run_plan *plan) { return plan->slot_count; }

int32_t scout_run_plan_tensor(const scout_run_plan *plan, int32_t number, scout_run_plan_info *info,
                              scout_run_error *error) {
    if (number < 0 || number >= plan->slot_count)
        return runtime_say(error, SCOUT_RUN_INVALID, "tensor %d: the plan has %d", (int)number, plan->slot_count);
    static const int32_t uses[] = {[OPERATION_INPUT] = SCOUT_RUN_PLAN_INPUT,
                                   [OPERATION_OUTPUT] = SCOUT_RUN_PLAN_OUTPUT,
                                   [OPERATION_WEIGHT] = SCOUT_RUN_PLAN_WEIGHT,
                                   [OPERATION_CONSTANT] = SCOUT_RUN_PLAN_CONSTANT};
    const int tensor = plan->slots[number];
    const operation_use use = plan->flow->told[tensor].use;
    scout_run_tensor as = as_told(plan, tensor);
    as.data = *place_of(plan, tensor);
    if (SCOUT_HAS(info, use)) info->use = uses[use];
    if (SCOUT_HAS(info, name)) info->name = name_of(plan, tensor);
    if (SCOUT_HAS(info, as)) info->as = as;
    return runtime_say(error, SCOUT_RUN_OK, "%s", "");
}

/* As in "[2,3]". */
static const char *sizes(const scout_run_tensor *t, char *text, size_t room) {
    size_t at = (size_t)snprintf(text, room, "[");
    for (int32_t d = 0; d < t->rank && d < SCOUT_RUN_RANK && at + 24 < room; d++)
        at += (size_t)snprintf(text + at, room - at, "%s%lld", d ? "," : "", (long long)t->dims[d]);
    snprintf(text + at, room - at, "]");
    return text;
}

static int32_t check_form(const scout_run_tensor *want, const scout_run_tensor *t, const char *name,
                          scout_run_error *error) {
    char wanted[256], got[256];
    if (t->type != want->type)
        return runtime_say(error, SCOUT_RUN_INVALID, "%.100s: expected %s, got %s", name,
                           dtype_get((dtype)want->type)->name,
                           dtype_known(t->type) ? dtype_get((dtype)t->type)->name : "no type");
    if (t->rank != want->rank || memcmp(t->dims, want->dims, (size_t)want->rank * sizeof *want->dims) != 0)
        return runtime_say(error, SCOUT_RUN_INVALID, "%.100s: expected the sizes %s, got %s", name,
                           sizes(want, wanted, sizeof wanted), sizes(t, got, sizeof got));
    for (int32_t d = 0; d < t->rank; d++)
        if (t->dims[d] != 1 && t->strides[d] != want->strides[d])
            return runtime_say(error, SCOUT_RUN_INVALID, "%.100s: expected dense memory, rows last", name);
    return SCOUT_RUN_OK;
}

static int32_t check(const scout_run_plan *plan, int tensor, const scout_run_tensor *t, scout_run_error *error) {
    const scout_run_tensor want = as_told(plan, tensor);
    const uint64_t alignment = runtime_alignment_of(plan->run, (uint32_t)want.type);
    const int32_t code = check_form(&want, t, name_of(plan, tensor), error);
    if (code != SCOUT_RUN_OK) return code;
    if (!t->data) return runtime_say(error, SCOUT_RUN_INVALID, "%.100s: its data is NULL", name_of(plan, tensor));
    if ((uintptr_t)t->data & (alignment - 1))
        return runtime_say(error, SCOUT_RUN_INVALID, "%.100s: expected data that begins at a multiple of %llu bytes",
                           name_of(plan, tensor), (unsigned long long)alignment);
    return SCOUT_RUN_OK;
}

int32_t scout_run_plan_bind(scout_run_plan *plan, const char *name, const scout_run_tensor *tensor,
                            scout_run_error *error) {
    for (int k = 0; k < plan->slot_count; k++) {
        const int slot = plan->slots[k];
        if (strcmp(name_of(plan, slot), name) != 0) continue;
        const int32_t code = check(plan, slot, tensor, error);
        if (code != SCOUT_RUN_OK) return code;
        *place_of(plan, slot) = tensor->data;
        plan->resolved = false;
        plan->packed = plan->packed && !plan->flow->tensors[slot].constant;
        return runtime_say(error, SCOUT_RUN_OK, "%s", "");
    }
    return runtime_say(error, SCOUT_RUN_INVALID, "%.200s: the plan has no input, output or weight of that name", name);
}

/* ---- what a launch needs ---- */

static bool overlap(const scout_run_plan *plan, int x, int y) {
    const uintptr_t a = (uintptr_t)*place_of(plan, x), b = (uintptr_t)*place_of(plan, y);
    return a < b + (uint64_t)plan->flow->tensors[y].bytes && b < a + (uint64_t)plan->flow->tensors[x].bytes;
}

static int32_t check_bound(const scout_run_plan *plan, scout_run_error *error) {
    const int *slots = plan->slots;
    for (int k = 0; k < plan->slot_count; k++)
        if (!*place_of(plan, slots[k]))
            return runtime_say(error, SCOUT_RUN_INVALID, "%.200s: it is not bound yet%s", name_of(plan, slots[k]),
                               plan->flow->told[slots[k]].use == OPERATION_CONSTANT
                                   ? ", and ops.json does not tell the value of this constant"
                                   : "");
    for (int k = 0; k < plan->slot_count; k++)
        for (int n = 0; plan->flow->told[slots[k]].use == OPERATION_OUTPUT && n < plan->slot_count; n++)
            if (n != k && overlap(plan, slots[k], slots[n]))
                return runtime_say(error, SCOUT_RUN_INVALID,
                                   "%.100s: expected memory of its own, it shares some with %.100s",
                                   name_of(plan, slots[k]), name_of(plan, slots[n]));
    return SCOUT_RUN_OK;
}

static void resolve(const scout_run_plan *plan, plan_step *step) {
    for (uint32_t t = 0; t < step->op->op.tensor_count; t++) {
        const int tensor = step->tensors[t];
        char *base = tensor < 0 ? plan->activations : plan->data[binding_owner(plan->flow, tensor)];
        step->data[t] = base + step->offsets[t];
    }
    if (step->occurrence == PLAN_COPY) step->data[1] = plan->data[step->tensors[1]];
}

static int32_t pack(plan_step *step, scout_run_error *error) {
    scout_run_weight_free(step->packed);
    step->packed = NULL;
    return step->op->chosen.needs.packs == 0 ? SCOUT_RUN_OK : runtime_pack(step->op, step->data, &step->packed, error);
}

/* Places in a table that a model counts from its end, or that are none: kernels know neither. */
static bool index_fits(const unsigned char *at, uint32_t type, int64_t below) {
    int64_t wide = 0;
    int32_t narrow = 0;
    if (type == SCOUT_INT64) memcpy(&wide, at, sizeof wide);
    if (type == SCOUT_INT32) memcpy(&narrow, at, sizeof narrow), wide = narrow;
    return wide >= 0 && wide < below;
}

/* Places of several numbers have a limit for each. */
static int64_t limit_of(const scout_op *op, uint32_t t, uint64_t k) {
    const scout_tensor *of = &op->tensors[t];
    const bool several = op->kind == SCOUT_MOVE && (op_is(op, "gathernd") || op_is(op, "scatternd"));
    return several ? op->tensors[0].dims[k % (uint64_t)of->dims[of->rank - 1]] : of->below;
}

static int32_t check_indices(const scout_run_plan *plan, const plan_step *step, uint32_t t, scout_run_error *error) {
    const scout_op *op = &step->op->op;
    const scout_tensor *of = &op->tensors[t];
    const uint64_t size = of->type == SCOUT_INT64 ? 8 : 4;
    scout_why why = {.code = ""};
    unsigned char *values = malloc(of->bytes);
    int64_t beyond = 0; /* the limit of one that does not fit */
    if (!values) return runtime_say(error, SCOUT_RUN_NO_MEMORY, "the host has no memory left");
    const scout_answer answer = plan->run->api->download(plan->run->device, values, step->data[t], of->bytes, &why);
    for (uint64_t k = 0; answer == SCOUT_OK && beyond == 0 && (k + 1) * size <= of->bytes; k++)
        if (!index_fits(values + k * size, of->type, limit_of(op, t, k))) beyond = limit_of(op, t, k);
    free(values);
    if (answer != SCOUT_OK) return runtime_answer(plan->run, answer, &why, "looking at indices", error);
    return beyond == 0 ? SCOUT_RUN_OK
                       : runtime_say(error, SCOUT_RUN_UNSUPPORTED, "node %.120s: expected %.16s from 0 to %lld",
                                     plan_node(plan, step->occurrence), of->name, (long long)beyond - 1);
}

/* Those that are constants; what a run brings is the caller's to know. */
static int32_t check_constants(const scout_run_plan *plan, const plan_step *step, scout_run_error *error) {
    int32_t code = SCOUT_RUN_OK;
    for (uint32_t t = 0; t < step->op->op.tensor_count && code == SCOUT_RUN_OK; t++) {
        const scout_tensor *of = &step->op->op.tensors[t];
        const bool index =
            of->role == SCOUT_INPUT && of->below > 0 && (of->type == SCOUT_INT64 || of->type == SCOUT_INT32);
        if (index && step->occurrence >= 0 && step->tensors[t] >= 0 &&
            plan->flow->tensors[binding_owner(plan->flow, step->tensors[t])].constant)
            code = check_indices(plan, step, t, error);
    }
    return code;
}

static int32_t make_ready(scout_run_plan *plan, scout_run_error *error) {
    int32_t code = check_bound(plan, error);
    for (int k = 0; k < plan->step_count && code == SCOUT_RUN_OK; k++) resolve(plan, &plan->steps[k]);
    for (int k = 0; k < plan->step_count && code == SCOUT_RUN_OK && !plan->packed; k++) {
        code = check_constants(plan, &plan->steps[k], error);
        if (code == SCOUT_RUN_OK) code = pack(&plan->steps[k], error);
    }
    plan->resolved = code == SCOUT_RUN_OK;
    plan->packed = plan->packed || plan->resolved;
    return code;
}

static int32_t launch_all(const scout_run_plan *plan, void *stream, scout_run_error *error) {
    int32_t code = SCOUT_RUN_OK;
    for (int k = 0; k < plan->step_count && code == SCOUT_RUN_OK; k++)
        code = runtime_launch_checked(plan->steps[k].op, plan->steps[k].data, plan->steps[k].packed, stream, error);
    return code;
}

int32_t scout_run_plan_launch(scout_run_plan *plan, void *stream, scout_run_error *error) {
    const runtime_cores cores = runtime_cores_of(plan->run);
    int32_t code = plan->resolved ? SCOUT_RUN_OK : make_ready(plan, error);
    if (code == SCOUT_RUN_OK) code = launch_all(plan, stream, error);
    runtime_cores_restore(&cores);
    return code;
}
