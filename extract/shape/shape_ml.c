/* The operators of ai.onnx.ml: classical models on rows of features. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

static int64_t length(const infer *c, const char *name) {
    const attr *a = infer_attr(c, name);
    return a ? a->n : 0;
}

/* A vector is one row. */
static int64_t rows(infer *c) { return shape_need_rank(c, 0, 1, 2) == 2 ? infer_dim(c, 0, 0) : 1; }

void shape_ml_same(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    shape_need_like(c, 0, 0);
}

void shape_ml_same_float(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    infer_set_like(c, 0, DTYPE_FP32, infer_in(c, 0));
}

/* Picks from the last dimension; a vector is treated as one row. */
void shape_ml_array_feature_extractor(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 1, -1);
    shape_need_rank(c, 1, 0, -1);
    int out = rank == 1 ? 2 : rank;
    dims[0] = 1;
    for (int k = 0; k < rank - 1; k++) dims[k] = infer_dim(c, 0, k);
    dims[out - 1] = info_count(infer_in(c, 1));
    infer_set(c, 0, infer_type(c, 0), out, dims);
}

void shape_ml_cast_map(infer *c) {
    const char *to = infer_attr_string(c, "cast_to", "TO_FLOAT");
    dtype type = !strcmp(to, "TO_STRING") ? DTYPE_STRING : !strcmp(to, "TO_INT64") ? DTYPE_INT64 : DTYPE_FP32;
    if (strcmp(infer_attr_string(c, "map_form", "DENSE"), "SPARSE") != 0) {
        infer_unresolved(c, "the number of keys of the map depends on data");
        return;
    }
    infer_set(c, 0, type, 2, (int64_t[]){1, infer_attr_int(c, "max_map", 1)});
}

void shape_ml_category_mapper(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    infer_set_like(c, 0, infer_type(c, 0) == DTYPE_STRING ? DTYPE_INT64 : DTYPE_STRING, infer_in(c, 0));
}

/* How many classes there are: labels say it where they are listed; a linear classifier of two labels may keep one
 * intercept. */
static int64_t classes(infer *c, int64_t labels) {
    const char *op = c->node->op_type;
    if (!strcmp(op, "LinearClassifier")) {
        int64_t n = length(c, "intercepts");
        return n == 0 || (n == 1 && labels == 2) ? labels : n;
    }
    if (!strcmp(op, "SVMClassifier") && length(c, "vectors_per_class") > 0) {
        int64_t n = length(c, "vectors_per_class");
        if (length(c, "prob_a") > 0 || n <= 2) return n;
        return checked_mul(n, n - 1) / 2;
    }
    return labels;
}

void shape_ml_classifier(infer *c) {
    int64_t n = rows(c), text = length(c, "classlabels_strings");
    int64_t numbers = checked_add(length(c, "classlabels_ints"), length(c, "classlabels_int64s"));
    if (text + numbers == 0) infer_fail(c, "no class labels are given");
    infer_set(c, 0, text ? DTYPE_STRING : DTYPE_INT64, 1, &n);
    infer_set(c, 1, DTYPE_FP32, 2, (int64_t[]){n, classes(c, text ? text : numbers)});
}

void shape_ml_regressor(infer *c) {
    const char *op = c->node->op_type;
    int64_t n = rows(c), targets = 1;
    if (!strcmp(op, "LinearRegressor"))
        targets = infer_attr_int(c, "targets", 1);
    else if (strcmp(op, "SVMRegressor") != 0)
        targets = infer_attr_int(c, "n_targets", 1);
    if (targets <= 0) infer_fail(c, "the number of targets is %" PRId64 ", it must be at least 1", targets);
    infer_set(c, 0, !strcmp(op, "TreeEnsemble") ? infer_type(c, 0) : DTYPE_FP32, 2, (int64_t[]){n, targets});
}

void shape_ml_dict_vectorizer(infer *c) {
    int64_t n = checked_add(length(c, "int64_vocabulary"), length(c, "string_vocabulary"));
    if (n == 0) infer_fail(c, "no vocabulary is given");
    infer_set(c, 0, infer_type(c, 0), 2, (int64_t[]){1, n});
}

void shape_ml_feature_vectorizer(infer *c) {
    const int64_t *widths;
    int64_t n, sum = 0;
    if (infer_attr_ints(c, "inputdimensions", &widths, &n)) {
        for (int64_t k = 0; k < n; k++) sum = checked_add(sum, widths[k]);
    } else {
        for (int k = 0; k < infer_in_count(c); k++)
            sum = checked_add(sum, infer_dim(c, k, shape_need_rank(c, k, 1, 2) - 1));
    }
    infer_set(c, 0, DTYPE_FP32, 2, (int64_t[]){rows(c), sum});
}

/* The type of the values is that of the attribute that lists them; the first form maps between text and numbers. */
void shape_ml_label_encoder(infer *c) {
    const attr *t = infer_attr(c, "values_tensor");
    dtype type = infer_type(c, 0) == DTYPE_STRING ? DTYPE_INT64 : DTYPE_STRING;
    if (infer_attr(c, "values_strings"))
        type = DTYPE_STRING;
    else if (infer_attr(c, "values_int64s"))
        type = DTYPE_INT64;
    else if (infer_attr(c, "values_floats"))
        type = DTYPE_FP32;
    else if (t && t->kind == ATTR_TENSOR && t->t)
        type = t->t->info->type;
    shape_need_rank(c, 0, 0, -1);
    infer_set_like(c, 0, type, infer_in(c, 0));
}

void shape_ml_one_hot(infer *c) {
    int64_t dims[INFO_MAX_RANK], n = checked_add(length(c, "cats_int64s"), length(c, "cats_strings"));
    int rank = shape_need_rank(c, 0, 0, INFO_MAX_RANK - 1);
    if (n == 0) infer_fail(c, "no categories are given");
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    dims[rank] = n;
    infer_set(c, 0, DTYPE_FP32, rank + 1, dims);
}

/* One map per row. */
void shape_ml_zip_map(infer *c) {
    int64_t n = rows(c);
    info *one = arena_zalloc(c->arena, sizeof *one);
    one->form = INFO_MAP;
    one->type = DTYPE_FP32;
    one->rank = -1;
    if (n > INFO_MAX_VALUES) {
        infer_set_info(c, 0, info_sequence(c->arena, NULL, -1, one));
        return;
    }
    const info **elems = arena_array(c->arena, const info *, n);
    for (int64_t k = 0; k < n; k++) elems[k] = one;
    infer_set_info(c, 0, info_sequence(c->arena, elems, n, one));
}
