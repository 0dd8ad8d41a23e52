/* Norms and softmax by their tensors: rows that are each brought to one scale. */
#include "runtime/runtime_front.h"

#include "scout/op/norm.h"

enum { X, Y, SCALE, BIAS, RESIDUAL, SUM };

static bool same_sizes(const scout_run_tensor *a, const scout_run_tensor *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* All that have the sizes of x. */
static bool check_like_x(const runtime_call *call, const int *places, int count, scout_run_error *error) {
    const scout_run_tensor *x = call->tensors[X];
    if (x->rank < 1) return runtime_refuse(error, "x: expected 1 dimension or more");
    for (int k = 0; k < count; k++) {
        const scout_run_tensor *t = call->tensors[places[k]];
        if (t && (!same_sizes(t, x) || !runtime_dense(t)))
            return runtime_refuse(error, "%s: expected the sizes of x, rows last, without gaps",
                                  call->front->names[places[k]]);
    }
    return true;
}

/* ---- norms ---- */

static bool check_sides(const runtime_call *call, int64_t cols, scout_run_error *error) {
    for (int k = SCALE; k <= BIAS; k++) {
        const scout_run_tensor *t = call->tensors[k];
        if (t && (t->rank != 1 || t->dims[0] != cols || !runtime_dense(t)))
            return runtime_refuse(error, "%s: expected %lld numbers", call->front->names[k], (long long)cols);
    }
    return true;
}

static bool describe_norm(runtime_call *call, arena *a, operation *out, scout_run_error *error) {
    static const char *const known[] = {"layer", "rms", "l2"};
    static const int like[] = {X, Y, RESIDUAL, SUM};
    const scout_run_tensor *const *t = call->tensors;
    const runtime_setting *epsilon = runtime_call_setting(call, "epsilon");
    oprec *rec = &out->rec;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (call->what && strcmp(known[k], call->what) == 0) rec->what = known[k];
    if (!rec->what)
        return runtime_refuse(error, "what: expected layer, rms or l2; other norms are launched by their key");
    if (!check_like_x(call, like, 4, error)) return false;
    const int64_t cols = t[X]->dims[t[X]->rank - 1], shape[2] = {runtime_elements(t[X]) / cols, cols};
    if (!check_sides(call, cols, error)) return false;
    if (t[SUM] && !t[RESIDUAL]) return runtime_refuse(error, "sum: expected a residual beside it");
    rec->type = (dtype)t[X]->type;
    if (t[SCALE]) rec->weight_type = (dtype)t[SCALE]->type;
    runtime_front_types(rec, t[Y]);
    oprec_set_shape(rec, a, 2, shape);
    if (t[BIAS]) oprec_set_int(rec, "bias", 1);
    if (t[RESIDUAL]) oprec_set_int(rec, "residual", 1);
    if (t[SUM]) oprec_set_int(rec, "residual_out", 1);
    if (!epsilon || epsilon->numbers[0] == norm_epsilon(rec->what)) return true;
    if (!(epsilon->numbers[0] > 0 && epsilon->numbers[0] < 1))
        return runtime_refuse(error, "epsilon: expected a number from 0 to 1");
    call->extra = (runtime_extra){"epsilon", epsilon->numbers[0]};
    return true;
}

static const runtime_front norm = {"norm", 2, {"x", "y", "scale", "bias", "residual", "sum"}, describe_norm};

int32_t scout_run_norm(scout_run *run, const char *what, const scout_run_tensor *x, const scout_run_tensor *y,
                       const scout_run_norm_more *given, void *stream, scout_run_error *error) {
    scout_run_norm_more more;
    runtime_call call;
    if (!RUNTIME_FRONT_MORE(&more, given, error)) return SCOUT_RUN_INVALID;
    runtime_call_begin(&call, &norm, what, SUM + 1, NULL);
    call.tensors[X] = x, call.tensors[Y] = y, call.tensors[SCALE] = more.scale, call.tensors[BIAS] = more.bias;
    call.tensors[RESIDUAL] = more.residual, call.tensors[SUM] = more.sum;
    if (more.epsilon != 0) runtime_call_set(&call, "epsilon", NULL, 1, &more.epsilon);
    return runtime_call_launch(run, &call, stream, error);
}

/* ---- softmax ---- */

static bool describe_softmax(runtime_call *call, arena *a, operation *out, scout_run_error *error) {
    static const int like[] = {X, Y};
    const scout_run_tensor *x = call->tensors[X];
    const int told = (int)runtime_call_setting(call, "axis")->numbers[0], axis = told < 0 ? told + x->rank : told;
    int64_t inner = 1;
    oprec *rec = &out->rec;
    if (!check_like_x(call, like, 2, error)) return false;
    if (axis < 0 || axis >= x->rank)
        return runtime_refuse(error, "axis: expected one of %d dimensions, got %d", (int)x->rank, told);
    for (int d = axis + 1; d < x->rank; d++) inner *= x->dims[d];
    const int64_t shape[2] = {runtime_elements(x) / x->dims[axis], x->dims[axis]};
    rec->type = (dtype)x->type;
    rec->what = call->what;
    runtime_front_types(rec, call->tensors[Y]);
    oprec_set_shape(rec, a, 2, shape);
    if (inner != 1) oprec_set_int(rec, "inner", inner);
    return true;
}

static const runtime_front softmax = {"softmax", 2, {"x", "y"}, describe_softmax};

int32_t scout_run_softmax(scout_run *run, const scout_run_tensor *x, const scout_run_tensor *y, int32_t axis,
                          int32_t logarithm, void *stream, scout_run_error *error) {
    const double at = axis;
    runtime_call call;
    runtime_call_begin(&call, &softmax, logarithm ? "log" : NULL, Y + 1, NULL);
    call.tensors[X] = x, call.tensors[Y] = y;
    runtime_call_set(&call, "axis", NULL, 1, &at);
    return runtime_call_launch(run, &call, stream, error);
}
