/* Convolutions by their tensors. */
#include "runtime/runtime_front.h"

#include <string.h>

enum { INPUT, WEIGHT, OUTPUT, BIAS, RESIDUAL };

/* ---- how a tensor lies ---- */

/* Dimensions in the order of memory, [N, space, C]. */
static scout_run_tensor channels_last(const scout_run_tensor *t) {
    scout_run_tensor last = *t;
    for (int32_t d = 2; d < t->rank; d++) last.dims[d - 1] = t->dims[d], last.strides[d - 1] = t->strides[d];
    last.dims[t->rank - 1] = t->dims[1], last.strides[t->rank - 1] = t->strides[1];
    return last;
}

static bool lies(const scout_run_tensor *t, bool last) {
    const scout_run_tensor turned = channels_last(t);
    return runtime_dense(last ? &turned : t);
}

static const int64_t *dims_of(const scout_run_tensor *t, bool last, scout_run_tensor *room) {
    *room = last ? channels_last(t) : *t;
    return room->dims;
}

/* Whether channels come last in memory: of all that have them alike. */
static bool read_layout(const runtime_call *call, bool *last, scout_run_error *error) {
    static const int places[] = {INPUT, OUTPUT, RESIDUAL};
    bool both[2] = {true, true};
    for (int k = 0; k < 3; k++)
        for (int n = 0; n < 2; n++)
            if (call->tensors[places[k]]) both[n] = both[n] && lies(call->tensors[places[k]], n == 1);
    *last = !both[0];
    return both[0] || both[1] ||
           runtime_refuse(error, "input, output: expected both as [N, C, space] or with channels last, without gaps");
}

/* ---- sizes ---- */

typedef struct window {
    int space;
    int64_t kernel[3], stride[3], dilation[3], pads[6], extra[3];
} window;

static void read_list(const runtime_call *call, const char *name, int count, int64_t otherwise, int64_t *out) {
    const runtime_setting *s = runtime_call_setting(call, name);
    for (int k = 0; k < count; k++) {
        const int64_t x = s ? (int64_t)fmax(-0x1p62, fmin(s->numbers[k], 0x1p62)) : 0;
        out[k] = x == 0 ? otherwise : x;
    }
}

/* What a transposed one writes beyond what its windows reach. */
static void read_extra(const runtime_call *call, window *w) {
    for (int k = 0; k < w->space; k++) {
        const int64_t in = call->tensors[INPUT]->dims[2 + k], out = call->tensors[OUTPUT]->dims[2 + k];
        const int64_t reach = (w->kernel[k] - 1) * w->dilation[k] + 1;
        w->extra[k] = out - ((in - 1) * w->stride[k] + reach - w->pads[k] - w->pads[w->space + k]);
    }
}

static bool check_shapes(const runtime_call *call, bool transposed, int64_t group, scout_run_error *error) {
    const scout_run_tensor *const *t = call->tensors;
    const int rank = t[INPUT]->rank;
    if (rank < 3 || rank > 5 || t[OUTPUT]->rank != rank || t[WEIGHT]->rank != rank)
        return runtime_refuse(error, "input, weight, output: expected 3 to 5 dimensions, all alike");
    if (!runtime_dense(t[WEIGHT])) return runtime_refuse(error, "weight: expected it without gaps, kernel last");
    const int64_t in = t[INPUT]->dims[1], out = t[OUTPUT]->dims[1];
    const int64_t first = transposed ? in : out, second = (transposed ? out : in) / group;
    if (t[INPUT]->dims[0] != t[OUTPUT]->dims[0])
        return runtime_refuse(error, "output: expected %lld images", (long long)t[INPUT]->dims[0]);
    if (in % group != 0 || out % group != 0 || t[WEIGHT]->dims[0] != first || t[WEIGHT]->dims[1] != second)
        return runtime_refuse(error, "weight: expected %lld x %lld and the kernel, of %lld groups", (long long)first,
                              (long long)second, (long long)group);
    const scout_run_tensor *bias = t[BIAS], *residual = t[RESIDUAL];
    if (bias && (bias->rank != 1 || bias->dims[0] != out || !runtime_dense(bias)))
        return runtime_refuse(error, "bias: expected %lld numbers", (long long)out);
    if (residual && (residual->rank != rank || memcmp(residual->dims, t[OUTPUT]->dims, sizeof(int64_t) * (size_t)rank)))
        return runtime_refuse(error, "residual: expected the sizes of the output");
    return true;
}

/* ---- the front ---- */

static void set_unless(oprec *rec, arena *a, const char *name, int n, const int64_t *x, int64_t customary) {
    for (int k = 0; k < n; k++)
        if (x[k] != customary) {
            oprec_set_ints(rec, a, name, n, x);
            return;
        }
}

static void set_window(const runtime_call *call, arena *a, oprec *rec, bool transposed) {
    window w = {.space = call->tensors[INPUT]->rank - 2};
    const int n = w.space;
    for (int k = 0; k < n; k++) w.kernel[k] = call->tensors[WEIGHT]->dims[2 + k];
    read_list(call, "stride", n, 1, w.stride);
    read_list(call, "dilation", n, 1, w.dilation);
    read_list(call, "pads", 2 * n, 0, w.pads);
    oprec_set_ints(rec, a, "kernel", n, w.kernel);
    set_unless(rec, a, "stride", n, w.stride, 1);
    set_unless(rec, a, "dilation", n, w.dilation, 1);
    set_unless(rec, a, "pads", 2 * n, w.pads, 0);
    if (!transposed) return;
    read_extra(call, &w);
    oprec_set_int(rec, "transposed", 1);
    set_unless(rec, a, "output_padding", n, w.extra, 0);
}

static bool describe(runtime_call *call, arena *a, operation *out, scout_run_error *error) {
    const scout_run_tensor *const *t = call->tensors;
    const runtime_setting *group = runtime_call_setting(call, "group"),
                          *activation = runtime_call_setting(call, "activation");
    const bool transposed = runtime_call_setting(call, "transposed") != NULL;
    const int64_t groups = group ? (int64_t)fmin(group->numbers[0], 0x1p62) : 1;
    oprec *rec = &out->rec;
    scout_run_tensor room;
    bool last = false;
    if (groups < 1) return runtime_refuse(error, "group: expected 1 or more");
    if (!check_shapes(call, transposed, groups, error) || !read_layout(call, &last, error)) return false;
    rec->type = (dtype)t[INPUT]->type;
    if (runtime_call_setting(call, "constant")) rec->weight_type = (dtype)t[WEIGHT]->type;
    runtime_front_types(rec, t[OUTPUT]);
    rec->layout = last ? "nhwc" : "nchw";
    oprec_set_shape(rec, a, t[OUTPUT]->rank, dims_of(t[OUTPUT], last, &room));
    oprec_set_ints(rec, a, "input", t[INPUT]->rank, dims_of(t[INPUT], last, &room));
    set_window(call, a, rec, transposed);
    if (groups != 1) oprec_set_int(rec, "group", groups);
    if (t[BIAS]) oprec_set_text(rec, "bias", "channel");
    if (t[RESIDUAL]) oprec_set_int(rec, "residual", 1);
    if (activation) oprec_set_text(rec, "activation", arena_strndup(a, activation->text, strlen(activation->text)));
    if (runtime_call_setting(call, "math")) oprec_set_text(rec, "math", "tf32");
    return true;
}

static const runtime_front front = {"conv", 3, {"input", "weight", "output", "bias", "residual"}, describe};

static void set_list(runtime_call *call, const char *name, int count, const int64_t *list) {
    double numbers[6];
    bool any = false;
    for (int k = 0; k < count; k++) any = any || list[k] != 0, numbers[k] = (double)list[k];
    if (any) runtime_call_set(call, name, NULL, count, numbers);
}

static int32_t begin(runtime_call *call, const scout_run_tensor *input, const scout_run_tensor *weight,
                     const scout_run_tensor *output, const scout_run_conv_more *given, scout_run_error *error) {
    scout_run_conv_more more;
    if (!RUNTIME_FRONT_MORE(&more, given, error)) return SCOUT_RUN_INVALID;
    runtime_call_begin(call, &front, NULL, RESIDUAL + 1, more.packed);
    call->tensors[INPUT] = input, call->tensors[WEIGHT] = weight, call->tensors[OUTPUT] = output;
    call->tensors[BIAS] = more.bias, call->tensors[RESIDUAL] = more.residual;
    const double group = (double)more.group;
    if (more.transposed) runtime_call_set(call, "transposed", "1", 0, NULL);
    if (more.constant || more.packed) runtime_call_set(call, "constant", "1", 0, NULL);
    if (more.group != 0) runtime_call_set(call, "group", NULL, 1, &group);
    set_list(call, "stride", 3, more.stride);
    set_list(call, "dilation", 3, more.dilation);
    set_list(call, "pads", 6, more.pads);
    if (more.activation) runtime_call_set(call, "activation", more.activation, 0, NULL);
    if (more.tf32) runtime_call_set(call, "math", "tf32", 0, NULL);
    return SCOUT_RUN_OK;
}

int32_t scout_run_conv(scout_run *run, const scout_run_tensor *input, const scout_run_tensor *weight,
                       const scout_run_tensor *output, const scout_run_conv_more *more, void *stream,
                       scout_run_error *error) {
    runtime_call call;
    const int32_t code = begin(&call, input, weight, output, more, error);
    return code == SCOUT_RUN_OK ? runtime_call_launch(run, &call, stream, error) : code;
}

int32_t scout_pack_weight_conv(scout_run *run, const scout_run_tensor *input, const scout_run_tensor *weight,
                               const scout_run_tensor *output, const scout_run_conv_more *more,
                               scout_run_weight **packed, scout_run_error *error) {
    scout_run_conv_more constant = {.size = sizeof constant};
    runtime_call call;
    *packed = NULL;
    if (!RUNTIME_FRONT_MORE(&constant, more, error)) return SCOUT_RUN_INVALID;
    constant.size = sizeof constant, constant.constant = 1;
    const int32_t code = begin(&call, input, weight, output, &constant, error);
    return code == SCOUT_RUN_OK ? runtime_call_pack(run, &call, packed, error) : code;
}
