/* Convolutions of all ranks and kinds: plain, fused, integer, quantised, transposed, deformable, causal. Most differ
 * only in where their operands stand and whether channels come last, which a small table says. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/infer/shape_window.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

typedef struct conv_form {
    int x, w; /* input numbers */
    bool channels_last;
    dtype type;
} conv_form;

/* Weights are [M, C/group, k...] in every layout of the input, but for some operators whose inputs have channels last.
 */
static void slide_conv(infer *c, conv_form f) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, f.x, 3, -1);
    shape_need_rank(c, f.w, rank, rank);
    int n = rank - 2, first = f.channels_last ? 1 : 2, channel = f.channels_last ? rank - 1 : 1;
    int kernel_at = shape_window_kernel_at(c->node, infer_in(c, f.x), infer_in(c, f.w));
    int64_t group = infer_attr_int(c, "group", 1);
    if (group <= 0) infer_fail(c, "attribute 'group' is %" PRId64 ", it must be at least 1", group);
    int64_t m = infer_dim(c, f.w, 0), depth = infer_dim(c, f.w, kernel_at == 1 ? rank - 1 : 1);
    if (infer_dim(c, f.x, channel) != checked_mul(depth, group))
        infer_fail(c, "the weight %s and %" PRId64 " group(s) do not fit the channels of the input %s",
                   shape_need_text(c, f.w), group, shape_need_text(c, f.x));
    shape_need_multiple(c, m, group, "the number of output channels", "the number of groups");

    shape_window w;
    shape_window_read(c, &w, n, infer_in(c, f.w)->dims + kernel_at);
    dims[0] = infer_dim(c, f.x, 0);
    dims[channel] = m;
    for (int k = 0; k < n; k++) dims[first + k] = shape_window_slide(c, &w, k, infer_dim(c, f.x, first + k));
    infer_set(c, 0, f.type, rank, dims);
}

void shape_conv(infer *c) {
    shape_need_one_type(c, 0, 3);
    slide_conv(c, (conv_form){0, 1, false, infer_type(c, 0)});
}

void shape_conv_nhwc(infer *c) { slide_conv(c, (conv_form){0, 1, true, infer_type(c, 0)}); }

void shape_conv_integer(infer *c) { slide_conv(c, (conv_form){0, 1, false, DTYPE_INT32}); }

/* The output has the type of its zero point. */
void shape_conv_qlinear(infer *c) {
    bool last = infer_attr_int(c, "channels_last", 0) != 0;
    slide_conv(c, (conv_form){0, 3, last, infer_type(c, 7)});
}

/* An explicit size may be given for the spatial dimensions alone or for all. */
static bool stated_size(infer *c, int n, int64_t *size) {
    const int64_t *x;
    int64_t count;
    if (!infer_attr_ints(c, "output_shape", &x, &count) || count == 0) return false;
    if (count != n && count != n + 2)
        infer_fail(c, "attribute 'output_shape' has %" PRId64 " values for the input %s", count, shape_need_text(c, 0));
    for (int k = 0; k < n; k++) {
        size[k] = x[count - n + k];
        if (size[k] <= 0) infer_fail(c, "attribute 'output_shape' holds %" PRId64 ", it must be at least 1", size[k]);
    }
    return true;
}

/* A variant takes the padding as an input. False where it is not known. */
static bool pads_from_input(infer *c, shape_window *w) {
    const int64_t *pads;
    int64_t count;
    if (strcmp(c->node->op_type, "ConvTransposeWithDynamicPads") != 0 || !infer_has(c, 2)) return true;
    if (!shape_need_ints(c, 2, &pads, &count, "the padding")) return false;
    if (count != 2 * w->n)
        infer_fail(c, "input 2 (pads) has %" PRId64 " values, the input %s needs %d", count, shape_need_text(c, 0),
                   2 * w->n);
    memcpy(w->before, pads, (size_t)w->n * sizeof *pads);
    memcpy(w->after, pads + w->n, (size_t)w->n * sizeof *pads);
    return true;
}

static int64_t transpose_size(infer *c, const shape_window *w, int k, int64_t size, int64_t extra) {
    bool same = w->pad == WINDOW_SAME_UPPER || w->pad == WINDOW_SAME_LOWER;
    int64_t out = checked_mul(w->stride[k], checked_sub(size, 1));
    out = checked_add(out, checked_add(extra, 1));
    out = checked_add(out, checked_mul(w->kernel[k] - 1, w->dilation[k]));
    out = checked_sub(out, checked_add(w->before[k], w->after[k]));
    /* Automatic padding cuts the output to the strided size, but never adds to it. */
    if (same && out > checked_mul(size, w->stride[k])) out = checked_mul(size, w->stride[k]);
    if (out <= 0)
        infer_fail(c, "nothing is left of spatial dimension %d after padding (%" PRId64 "); input 0 is %s", k, out,
                   shape_need_text(c, 0));
    return out;
}

/* Weights are [C, M/group, k...]. */
void shape_conv_transpose(infer *c) {
    int64_t dims[INFO_MAX_RANK], extra[INFO_MAX_RANK], size[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 3, -1), n = rank - 2;
    shape_need_rank(c, 1, rank, rank);
    int64_t group = infer_attr_int(c, "group", 1);
    if (group <= 0) infer_fail(c, "attribute 'group' is %" PRId64 ", it must be at least 1", group);
    shape_need_dim(c, 1, 0, infer_dim(c, 0, 1), "channels");
    shape_need_multiple(c, infer_dim(c, 0, 1), group, "the number of channels", "the number of groups");

    shape_window w;
    shape_window_read(c, &w, n, infer_in(c, 1)->dims + 2);
    if (!pads_from_input(c, &w)) return;
    shape_window_ints(c, "output_padding", n, 0, 0, extra);
    bool stated = stated_size(c, n, size);
    dims[0] = infer_dim(c, 0, 0);
    dims[1] = checked_mul(infer_dim(c, 1, 1), group);
    for (int k = 0; k < n; k++)
        dims[2 + k] = stated ? size[k] : transpose_size(c, &w, k, infer_dim(c, 0, 2 + k), extra[k]);
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

/* Depthwise, looking back only. What it carries over is as long as the kernel reaches back along the last spatial
 * dimension. */
void shape_conv_causal_state(infer *c) {
    bool last = infer_attr_int(c, "channels_last", 0) != 0;
    int64_t n = infer_attr_int(c, "ndim", 1), dilation = infer_attr_int(c, "dilation", 1),
            window = infer_attr_int(c, "state_window", 0);
    if (n < 1 || n > 3) infer_fail(c, "attribute 'ndim' is %" PRId64 ", it must be 1, 2 or 3", n);
    if (dilation < 1) infer_fail(c, "attribute 'dilation' is %" PRId64 ", it must be at least 1", dilation);
    if (window < 0) infer_fail(c, "attribute 'state_window' is %" PRId64 ", it must not be negative", window);
    int rank = last ? shape_need_rank(c, 0, 3, INFO_MAX_RANK - 1) : shape_need_rank(c, 0, (int)n + 2, (int)n + 2);
    int weight_rank = shape_need_rank(c, 1, 3, -1);
    if (!last) shape_need_dim(c, 1, 0, infer_dim(c, 0, 1), "channels");
    int causal = last ? 1 : rank - 1;
    int64_t kept = checked_mul(infer_dim(c, 1, weight_rank - 1) - 1, dilation);
    if (kept < 0) infer_fail(c, "the kernel is empty: %s", shape_need_text(c, 1));

    int64_t state[INFO_MAX_RANK];
    int at = 0;
    if (window > 0) state[at++] = window;
    for (int k = 0; k < rank; k++) state[at++] = k == causal ? kept : infer_dim(c, 0, k);
    shape_need_like(c, 0, 0);
    infer_set(c, 1, infer_type(c, 0), at, state);
}
