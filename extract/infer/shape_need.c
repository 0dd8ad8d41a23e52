/* The demands that shape functions share, and the messages for those that are not met. */
#include "extract/infer/shape_need.h"

#include "common/checked.h"

#include <inttypes.h>

const char *shape_need_text(const infer *c, int i) { return info_text(c->arena, infer_in(c, i)); }

int shape_need_rank(infer *c, int i, int lo, int hi) {
    int rank = infer_rank(c, i);
    if (rank < 0) infer_fail(c, "input %d must be a tensor of known rank, it is %s", i, shape_need_text(c, i));
    if (rank < lo || (hi >= 0 && rank > hi)) {
        if (lo == hi) infer_fail(c, "input %d is %s, it must have %d dimensions", i, shape_need_text(c, i), lo);
        if (hi < 0) infer_fail(c, "input %d is %s, it must have at least %d dimensions", i, shape_need_text(c, i), lo);
        infer_fail(c, "input %d is %s, it must have %d to %d dimensions", i, shape_need_text(c, i), lo, hi);
    }
    return rank;
}

void shape_need_dim(infer *c, int i, int k, int64_t size, const char *what) {
    if (infer_dim(c, i, k) != size)
        infer_fail(c, "input %d is %s, but its dimension %d (%s) must be %" PRId64, i, shape_need_text(c, i), k, what,
                   size);
}

void shape_need_same(infer *c, int i, int j) {
    if (!info_same_shape(infer_in(c, i), infer_in(c, j)))
        infer_fail(c, "inputs %d and %d must have the same shape, they are %s and %s", i, j, shape_need_text(c, i),
                   shape_need_text(c, j));
}

int64_t shape_need_positive(infer *c, const char *name) {
    if (!infer_attr(c, name)) infer_fail(c, "attribute '%s' is missing", name);
    int64_t x = infer_attr_int(c, name, 0);
    if (x <= 0) infer_fail(c, "attribute '%s' is %" PRId64 ", it must be at least 1", name, x);
    return x;
}

int64_t shape_need_multiple(infer *c, int64_t x, int64_t by, const char *what, const char *of) {
    if (by <= 0 || x % by != 0)
        infer_fail(c, "%s is %" PRId64 ", which is not a multiple of %s, %" PRId64 "; input 0 is %s", what, x, of, by,
                   shape_need_text(c, 0));
    return x / by;
}

bool shape_need_ints(infer *c, int i, const int64_t **x, int64_t *n, const char *what) {
    if (infer_ints(c, i, x, n)) return true;
    infer_unresolved(c, "%s (input %d) is computed from data", what, i);
    return false;
}

bool shape_need_int(infer *c, int i, int64_t *x, const char *what) {
    if (infer_int(c, i, x)) return true;
    infer_unresolved(c, "%s (input %d) is computed from data", what, i);
    return false;
}

void shape_need_like(infer *c, int k, int i) { infer_set_like(c, k, infer_type(c, i), infer_in(c, i)); }

void shape_need_one_type(infer *c, int first, int count) {
    int seen = -1;
    for (int i = first; i < first + count; i++) {
        if (!infer_has(c, i) || infer_type(c, i) == DTYPE_NONE) continue;
        if (seen >= 0 && infer_type(c, i) != infer_type(c, seen))
            infer_fail(c, "inputs %s and %s are of different types", shape_need_text(c, seen), shape_need_text(c, i));
        if (seen < 0) seen = i;
    }
}
