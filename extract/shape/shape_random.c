/* Random numbers: a stated shape, or that of the input. Values are of course never known. */
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

static dtype stated_type(infer *c, dtype otherwise) {
    int64_t type = infer_attr_int(c, "dtype", otherwise);
    if (type != (int64_t)otherwise && !dtype_known(type)) infer_fail(c, "dtype %lld is not known", (long long)type);
    return (dtype)type;
}

void shape_random(infer *c) {
    const int64_t *dims;
    int64_t n;
    if (!infer_attr_ints(c, "shape", &dims, &n)) infer_fail(c, "has no shape");
    if (n > INFO_MAX_RANK) infer_fail(c, "asks for %lld dimensions", (long long)n);
    infer_set(c, 0, stated_type(c, DTYPE_FP32), (int)n, dims);
}

void shape_random_like(infer *c) {
    if (!value_index_need(c, 0)) return;
    infer_set(c, 0, stated_type(c, infer_type(c, 0)), infer_rank(c, 0), infer_in(c, 0)->dims);
}

void shape_random_multinomial(infer *c) {
    if (!value_index_need(c, 0)) return;
    if (infer_rank(c, 0) != 2) infer_fail(c, "needs [batch, classes], not %s", info_text(c->arena, infer_in(c, 0)));
    const int64_t dims[2] = {infer_dim(c, 0, 0), infer_attr_int(c, "sample_size", 1)};
    infer_set(c, 0, stated_type(c, DTYPE_INT32), 2, dims);
}
