/* Resize and its ancestor Upsample: sizes given, or scales given as an attribute or as an input, for all axes or some.
 */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct resize {
    int rank;
    int count; /* axes that are resized */
    int axes[INFO_MAX_RANK];
    int64_t dims[INFO_MAX_RANK]; /* of the output */
} resize;

static void read_axes(infer *c, resize *r) {
    const int64_t *axes;
    int64_t n;
    bool seen[INFO_MAX_RANK] = {false};
    r->rank = r->count = shape_need_rank(c, 0, 1, -1);
    for (int k = 0; k < r->rank; k++) {
        r->axes[k] = k;
        r->dims[k] = infer_dim(c, 0, k);
    }
    if (!infer_attr_ints(c, "axes", &axes, &n) || n == 0) return;
    if (n > r->rank)
        infer_fail(c, "attribute 'axes' has %" PRId64 " values for the input %s", n, shape_need_text(c, 0));
    r->count = (int)n;
    for (int k = 0; k < r->count; k++) {
        r->axes[k] = infer_axis(c, axes[k], r->rank);
        if (seen[r->axes[k]]) infer_fail(c, "attribute 'axes' names axis %d twice", r->axes[k]);
        seen[r->axes[k]] = true;
    }
}

/* Single precision throughout: scales are stored so, and a product that is rounded otherwise gives another size. */
static void apply_scales(infer *c, resize *r, const double *scales, int64_t n) {
    if (n != r->count)
        infer_fail(c, "%" PRId64 " scales are given for %d axes of %s", n, r->count, shape_need_text(c, 0));
    for (int k = 0; k < r->count; k++) {
        float scale = (float)scales[k];
        if (!(scale > 0)) infer_fail(c, "a scale is %g, it must be positive", scales[k]);
        r->dims[r->axes[k]] = checked_from_double(floorf((float)r->dims[r->axes[k]] * scale));
    }
}

static void apply_sizes(infer *c, resize *r, const int64_t *sizes, int64_t n) {
    const char *policy = infer_attr_string(c, "keep_aspect_ratio_policy", "stretch");
    bool larger = !strcmp(policy, "not_smaller"), keep = larger || !strcmp(policy, "not_larger");
    if (n != r->count)
        infer_fail(c, "%" PRId64 " sizes are given for %d axes of %s", n, r->count, shape_need_text(c, 0));
    float scale = 0;
    for (int k = 0; k < r->count; k++) {
        if (sizes[k] < 0) infer_fail(c, "a size is %" PRId64 ", it must not be negative", sizes[k]);
        if (!keep) continue;
        if (r->dims[r->axes[k]] <= 0)
            infer_fail(c, "an empty axis of %s has no aspect ratio to keep", shape_need_text(c, 0));
        float one = (float)sizes[k] / (float)r->dims[r->axes[k]];
        if (k == 0 || (larger ? one > scale : one < scale)) scale = one;
    }
    for (int k = 0; k < r->count; k++) {
        int64_t *dim = &r->dims[r->axes[k]];
        *dim = keep ? checked_from_double(roundf(scale * (float)*dim)) : sizes[k];
    }
}

/* Where the scales are: an attribute in the oldest form, input 1 in the next two, input 2 after that. */
static bool scales_of(infer *c, const double **scales, int64_t *n) {
    const attr *a = infer_attr(c, "scales");
    if (a && a->kind == ATTR_FLOATS) {
        *scales = a->floats;
        *n = a->n;
        return true;
    }
    int i = !strcmp(c->node->op_type, "Upsample") || infer_in_count(c) == 2 ? 1 : 2;
    if (!infer_has(c, i) || info_count(infer_in(c, i)) == 0) infer_fail(c, "neither scales nor sizes are given");
    const value *v = infer_value(c, i);
    if (!v || !v->f) return false;
    *scales = v->f;
    *n = v->n;
    return true;
}

void shape_image_resize(infer *c) {
    resize r;
    const int64_t *sizes;
    const double *scales;
    int64_t n;
    read_axes(c, &r);
    if (infer_has(c, 3) && info_count(infer_in(c, 3)) > 0) {
        if (!shape_need_ints(c, 3, &sizes, &n, "the target size")) return;
        apply_sizes(c, &r, sizes, n);
    } else if (scales_of(c, &scales, &n)) {
        apply_scales(c, &r, scales, n);
    } else {
        infer_unresolved(c, "the scales are computed from data");
        return;
    }
    infer_set(c, 0, infer_type(c, 0), r.rank, r.dims);
}
