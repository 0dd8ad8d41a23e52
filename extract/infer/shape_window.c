/* Sliding windows: reading and checking a window's attributes, and how often it fits. */
#include "extract/infer/shape_window.h"

#include "common/checked.h"
#include "extract/infer/shape_need.h"

#include <inttypes.h>
#include <string.h>

void shape_window_ints(infer *c, const char *name, int n, int64_t least, int64_t otherwise, int64_t *x) {
    const int64_t *given;
    int64_t count;
    for (int k = 0; k < n; k++) x[k] = otherwise;
    if (!infer_attr_ints(c, name, &given, &count) || count == 0) return;
    if (count != n)
        infer_fail(c, "attribute '%s' has %" PRId64 " values, the input %s needs %d", name, count,
                   shape_need_text(c, 0), n);
    for (int k = 0; k < n; k++) {
        if (given[k] < least)
            infer_fail(c, "attribute '%s' holds %" PRId64 ", it must be at least %" PRId64, name, given[k], least);
        x[k] = given[k];
    }
}

static void read_pads(infer *c, shape_window *w) {
    int64_t pads[2 * INFO_MAX_RANK];
    const char *mode = infer_attr_string(c, "auto_pad", "NOTSET");
    memset(w->before, 0, sizeof w->before);
    memset(w->after, 0, sizeof w->after);
    if (!strcmp(mode, "SAME_UPPER"))
        w->pad = WINDOW_SAME_UPPER;
    else if (!strcmp(mode, "SAME_LOWER"))
        w->pad = WINDOW_SAME_LOWER;
    else if (!strcmp(mode, "VALID"))
        w->pad = WINDOW_VALID;
    else if (!strcmp(mode, "NOTSET") || !*mode) {
        w->pad = WINDOW_EXPLICIT;
        shape_window_ints(c, "pads", 2 * w->n, INT64_MIN, 0, pads);
        memcpy(w->before, pads, (size_t)w->n * sizeof *pads);
        memcpy(w->after, pads + w->n, (size_t)w->n * sizeof *pads);
    } else
        infer_fail(c, "attribute 'auto_pad' is '%s', it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
}

void shape_window_read(infer *c, shape_window *w, int n, const int64_t *kernel) {
    w->n = n;
    w->pool = !kernel;
    w->ceil = infer_attr_int(c, "ceil_mode", 0) != 0;
    if (!kernel && !infer_attr(c, "kernel_shape")) infer_fail(c, "attribute 'kernel_shape' is missing");
    shape_window_ints(c, "kernel_shape", n, 1, 0, w->kernel);
    for (int k = 0; k < n && kernel; k++) {
        if (w->kernel[k] == 0) w->kernel[k] = kernel[k];
        if (w->kernel[k] != kernel[k])
            infer_fail(c, "attribute 'kernel_shape' says %" PRId64 " where the weight says %" PRId64, w->kernel[k],
                       kernel[k]);
    }
    for (int k = 0; k < n; k++)
        if (w->kernel[k] <= 0)
            infer_fail(c, "the kernel has size %" PRId64 " along spatial dimension %d", w->kernel[k], k);
    shape_window_ints(c, "strides", n, 1, 1, w->stride);
    shape_window_ints(c, "dilations", n, 1, 1, w->dilation);
    read_pads(c, w);
}

int64_t shape_window_slide(infer *c, const shape_window *w, int k, int64_t size) {
    int64_t stride = w->stride[k];
    /* Padding is chosen so that every input position starts a stride. */
    if (w->pad == WINDOW_SAME_UPPER || w->pad == WINDOW_SAME_LOWER) return checked_ceil_div(size, stride);
    int64_t reach = checked_add(checked_mul(w->kernel[k] - 1, w->dilation[k]), 1);
    int64_t padded = checked_add(size, checked_add(w->before[k], w->after[k]));
    int64_t room = checked_sub(padded, reach);
    /* A pool's windows are counted by division towards 0: one that is less than a stride too large is there once. */
    if (room < 0 && (!w->pool || room / stride < -1))
        infer_fail(c,
                   "the kernel reaches over %" PRId64 " along spatial dimension %d, the padded input has %" PRId64
                   "; input 0 is %s",
                   reach, k, padded, shape_need_text(c, 0));
    if (!w->ceil) return checked_add(room / stride, 1);
    int64_t out = checked_add(checked_ceil_div(room, stride), 1);
    /* A last window that would start in the padding behind the input is left out. */
    if (checked_mul(out - 1, stride) >= checked_add(size, w->before[k])) out--;
    return out;
}

/* Do the channels stand where this form of the weight has them, and the kernel where the attribute says it is? */
static bool weight_fits(const node *n, const info *weight, int channel, int kernel_at, int64_t channels) {
    const attr *stated = graph_attr(n, "kernel_shape", ATTR_INTS);
    if (checked_mul(weight->dims[channel], graph_attr_int(n, "group", 1)) != channels) return false;
    if (!stated || stated->kind != ATTR_INTS || stated->n != weight->rank - 2) return true;
    return memcmp(stated->ints, weight->dims + kernel_at, (size_t)stated->n * sizeof *stated->ints) == 0;
}

int shape_window_kernel_at(const node *n, const info *in, const info *weight) {
    bool usual_last = graph_is_ms(n, "NhwcConv"); /* its exporter turns the weight as well */
    if (!usual_last && !graph_is_ms(n, "NhwcFusedConv")) return 2;
    if (!info_shaped(in) || !info_shaped(weight) || in->rank < 3 || weight->rank != in->rank) return 2;
    int64_t channels = in->dims[in->rank - 1];
    bool first = weight_fits(n, weight, 1, 2, channels), last = weight_fits(n, weight, weight->rank - 1, 1, channels);
    return last && (usual_last || !first) ? 1 : 2;
}
