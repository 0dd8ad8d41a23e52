/* Owns what gathers a window around each output position: pooling, regions of interest, interpolation. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <math.h>
#include <string.h>

static const char *pool_what(const char *op_type) {
    if (strstr(op_type, "Roi")) return strcmp(op_type, "RoiAlign") == 0 ? "roi_align" : "roi_max";
    if (strstr(op_type, "Average")) return "average";
    return strstr(op_type, "Lp") ? "lp" : "max";
}

static bool pool_is_last(const node *n) {
    return strcmp(n->op_type, "NhwcMaxPool") == 0 ||
           (strncmp(n->op_type, "QLinear", 7) == 0 && graph_attr_int(n, "channels_last", 0) != 0);
}

static int64_t int_of(const attr *a, int k, int64_t otherwise) {
    return a && a->ints && k < a->n ? a->ints[k] : otherwise;
}

static void pool_set_window(work *w, const tensor *in, const tensor *out, int n, int first) {
    const attr *kernel = graph_attr(w->node, "kernel_shape", ATTR_INTS),
               *strides = graph_attr(w->node, "strides", ATTR_INTS);
    const attr *dilations = graph_attr(w->node, "dilations", ATTR_INTS),
               *given = graph_attr(w->node, "pads", ATTR_INTS);
    const char *mode = graph_attr_string(w->node, "auto_pad", "NOTSET");
    const bool global = !kernel, same = strncmp(mode, "SAME", 4) == 0, upper = strcmp(mode, "SAME_UPPER") == 0;
    int64_t size[INFO_MAX_RANK], stride[INFO_MAX_RANK], dilation[INFO_MAX_RANK], pads[2 * INFO_MAX_RANK];
    bool strided = false, dilated = false, padded = false;
    for (int k = 0; k < n; k++) {
        size[k] = global ? cost_dim(in, first + k) : int_of(kernel, k, 1);
        stride[k] = int_of(strides, k, 1);
        dilation[k] = int_of(dilations, k, 1);
        const int64_t reach = checked_add(checked_mul(checked_sub(size[k], 1), dilation[k]), 1);
        int64_t total =
            checked_sub(checked_add(checked_mul(checked_sub(cost_dim(out, first + k), 1), stride[k]), reach),
                        cost_dim(in, first + k));
        if (total < 0) total = 0;
        pads[k] = same ? (upper ? total / 2 : total - total / 2) : strcmp(mode, "VALID") == 0 ? 0 : int_of(given, k, 0);
        pads[k + n] = same ? total - pads[k] : strcmp(mode, "VALID") == 0 ? 0 : int_of(given, k + n, 0);
        strided = strided || stride[k] != 1;
        dilated = dilated || dilation[k] != 1;
        padded = padded || pads[k] || pads[k + n];
    }
    oprec_set_ints(&w->rec, w->arena, "kernel", n, size);
    if (global) oprec_set_int(&w->rec, "global", 1);
    if (strided) oprec_set_ints(&w->rec, w->arena, "stride", n, stride);
    if (dilated) oprec_set_ints(&w->rec, w->arena, "dilation", n, dilation);
    if (padded) oprec_set_ints(&w->rec, w->arena, "pads", 2 * n, pads);
    w->rec.flops = checked_mul(info_count(out->info), cost_product(size, 0, n));
}

/* How places of the output lie in the input. Before opset `since` there was no attribute, and `older` was meant. */
static void pool_set_coordinates(work *w, const char *customary, int64_t since, const char *older) {
    const char *given =
        graph_attr_string(w->node, "coordinate_transformation_mode", w->node->opset < since ? older : customary);
    if (strcmp(given, customary) != 0) oprec_set_text(&w->rec, "coordinates", cost_text(w, given, true));
}

void lower_pool(work *w) {
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    const bool last = pool_is_last(w->node), regions = strstr(w->node->op_type, "Roi") != NULL;
    w->rec.kind = OP_POOL;
    w->rec.what = pool_what(w->node->op_type);
    w->rec.layout = last ? "nhwc" : "nchw";
    cost_set_types(w, in, out);
    cost_set_shape(w, out);
    cost_boundary(w);
    const int rank = cost_rank(in);
    if (rank < 2 || cost_rank(out) != rank) return;
    oprec_set_ints(&w->rec, w->arena, "input", rank, in->info->dims);
    if (strcmp(w->node->op_type, "MaxPool") == 0 && cost_wanted(w->node, 1)) oprec_set_int(&w->rec, "indices_out", 1);
    if (strcmp(w->node->op_type, "MaxpoolWithMask") == 0) oprec_set_int(&w->rec, "masked", 1);
    if (strcmp(w->node->op_type, "RoiAlign") == 0) pool_set_coordinates(w, "half_pixel", 16, "output_half_pixel");
    if (regions)
        w->rec.flops = checked_mul(info_count(out->info), 32);
    else if (rank <= INFO_MAX_RANK)
        pool_set_window(w, in, out, rank - 2, last ? 1 : 2);
}

/* The mode under one name: some operators count the dimensions in it. */
static const char *resize_mode(const node *n) {
    const bool samples = strcmp(n->op_type, "GridSample") == 0 || strcmp(n->op_type, "CropAndResize") == 0;
    const char *mode = graph_attr_string(n, "mode", samples ? "linear" : "nearest");
    if (strcmp(mode, "bilinear") == 0) return "linear";
    return strcmp(mode, "bicubic") == 0 ? "cubic" : mode;
}

/* One ratio for all axes that have sizes, as shape_resize.c takes it, in single precision. */
static double resize_kept(const tensor *in, const value *sizes, const int *axis, bool larger) {
    float scale = 0;
    for (int64_t k = 0; k < sizes->n; k++) {
        const float one = (float)value_at(sizes, k) / (float)in->info->dims[axis[k]];
        if (k == 0 || (larger ? one > scale : one < scale)) scale = one;
    }
    return (double)scale;
}

/* What each axis is multiplied by: scales that were given, or what keeps the aspect ratio. False: what its sizes say.
 */
static bool resize_scales(work *w, const tensor *in, double *scales) {
    const node *n = w->node;
    const int rank = in->info->rank;
    const attr *axes = graph_attr(n, "axes", ATTR_INTS), *old = graph_attr(n, "scales", ATTR_FLOATS);
    const value *sizes = n->in_count > 3 ? cost_values(w, cost_in(w, 3)) : NULL;
    const value *given = cost_values(w, cost_in(w, n->in_count > 2 ? 2 : 1));
    const char *policy = graph_attr_string(n, "keep_aspect_ratio_policy", "stretch");
    const bool some = axes && axes->n > 0;
    const int64_t count = some ? axes->n : rank;
    int axis[INFO_MAX_RANK];
    if (count > rank) return false;
    for (int k = 0; k < rank; k++) scales[k] = 1;
    for (int k = 0; k < (int)count; k++) {
        const int64_t at = some ? axes->ints[k] : k;
        axis[k] = (int)(at < 0 ? at + rank : at);
        if (axis[k] < 0 || axis[k] >= rank) return false;
    }
    if (sizes && sizes->n == count) {
        if (strcmp(policy, "not_larger") != 0 && strcmp(policy, "not_smaller") != 0) return false;
        const double kept = resize_kept(in, sizes, axis, strcmp(policy, "not_smaller") == 0);
        for (int k = 0; k < (int)count; k++) scales[axis[k]] = kept;
        return true;
    }
    if (!(old ? old->n == count : given && given->n == count)) return false;
    for (int k = 0; k < (int)count; k++) scales[axis[k]] = old ? old->floats[k] : value_at(given, k);
    return true;
}

/* Scales that are not the ratio of both sizes: they decide which elements are mixed. */
static void resize_set_scales(work *w, const tensor *in, const tensor *out) {
    const int rank = in->info->rank;
    double scales[INFO_MAX_RANK];
    bool told = false;
    if (rank > INFO_MAX_RANK || cost_rank(out) != rank || !resize_scales(w, in, scales)) return;
    for (int k = 0; k < rank; k++) {
        const int64_t from = in->info->dims[k], to = out->info->dims[k];
        told = told || (from > 0 && fabs(scales[k] - (double)to / (double)from) > 1e-6 * scales[k]);
    }
    if (told) oprec_set_text(&w->rec, "scales", cost_reals(w, rank, scales));
}

/* The element nearest to place x, were there no first and no last one. */
static double resize_round(const char *rounding, double x) {
    if (strcmp(rounding, "floor") == 0) return floor(x);
    if (strcmp(rounding, "ceil") == 0) return ceil(x);
    return strcmp(rounding, "round_prefer_ceil") == 0 ? floor(x + 0.5) : ceil(x - 0.5);
}

/* Whether each element of the input only stands `times` times in a row along every dimension. The first and the last
 * output of such a row tell, because places rise, and all rows lie alike. */
static bool resize_repeats(const work *w, const tensor *in, const tensor *out, const char *coordinates,
                           const char *rounding) {
    const bool half = strcmp(coordinates, "half_pixel") == 0 || strcmp(coordinates, "pytorch_half_pixel") == 0;
    if (!half && strcmp(coordinates, "asymmetric") != 0) return false;
    if (oprec_field(&w->rec, "scales") || graph_attr_int(w->node, "antialias", 0) != 0) return false;
    if (in->info->inexact || out->info->inexact || in->info->rank != out->info->rank) return false;
    for (int k = 0; k < in->info->rank; k++) {
        const int64_t from = in->info->dims[k], to = out->info->dims[k];
        if (from < 1 || to < from || to % from != 0) return false;
        const int64_t repeats = to / from;
        const double times = (double)repeats, shift = half ? 0.5 : 0;
        const double first = shift / times - shift, last = (times - 1 + shift) / times - shift;
        if (resize_round(rounding, first) != 0 || resize_round(rounding, last) != 0) return false;
    }
    return true;
}

/* Upsample, and Resize up to opset 10, had no attribute for either: as later called asymmetric and floor. True: nothing
 * but repeats. */
static bool resize_set_form(work *w, const tensor *in, const tensor *out, bool nearest) {
    const node *n = w->node;
    const bool up = strcmp(n->op_type, "Upsample") == 0, old = up || n->opset < 11;
    if (!up && strcmp(n->op_type, "Resize") != 0) return false;
    const char *rounding = graph_attr_string(n, "nearest_mode", old ? "floor" : "round_prefer_floor");
    const char *coordinates = graph_attr_string(n, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
    resize_set_scales(w, in, out);
    if (nearest && resize_repeats(w, in, out, coordinates, rounding)) return true;
    pool_set_coordinates(w, "half_pixel", up ? INT64_MAX : 11, "asymmetric");
    if (nearest && strcmp(rounding, "round_prefer_floor") != 0)
        oprec_set_text(&w->rec, "rounding", cost_text(w, rounding, true));
    return false;
}

/* Each output is mixed from 2 neighbours along every dimension of space (4 for cubic), or copied from the nearest. What
 * only repeats its input is a move, however the model tells its places. */
void lower_resize(work *w) {
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    const char *mode = resize_mode(w->node);
    const bool nearest = strcmp(mode, "nearest") == 0, shaped = cost_shaped(in) && cost_shaped(out);
    w->rec.kind = OP_POOL;
    w->rec.what = cost_what(w);
    cost_set_types(w, in, out);
    cost_set_shape(w, out);
    cost_boundary(w);
    if (shaped) oprec_set_ints(&w->rec, w->arena, "input", in->info->rank, in->info->dims);
    if (shaped && resize_set_form(w, in, out, nearest)) {
        if (info_same_shape(in->info, out->info)) { /* once each: nothing moves */
            lower_view(w);
            return;
        }
        w->rec.kind = OP_MOVE;
        w->rec.what = "repeat";
        return;
    }
    oprec_set_text(&w->rec, "mode", cost_text(w, mode, true));
    int64_t taps = 1;
    for (int k = 0; shaped && k < in->info->rank && k < out->info->rank && !nearest; k++) {
        if (in->info->dims[k] != out->info->dims[k]) taps = checked_mul(taps, strstr(mode, "cubic") ? 4 : 2);
    }
    if (shaped) w->rec.flops = nearest ? 0 : checked_mul(info_count(out->info), checked_mul(2, taps));
}
