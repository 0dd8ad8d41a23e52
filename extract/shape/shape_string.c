/* Text. The values of strings are never tracked, so what depends on them is bounded or unresolved. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

void shape_string_concat(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int a = shape_need_rank(c, 0, 0, -1), b = shape_need_rank(c, 1, 0, -1);
    int rank = infer_broadcast(c, a, infer_in(c, 0)->dims, b, infer_in(c, 1)->dims, dims);
    infer_set(c, 0, DTYPE_STRING, rank, dims);
}

/* Words that are left out shorten the last dimension; where none would remain there is one empty text. */
void shape_string_normalizer(infer *c) {
    int rank = shape_need_rank(c, 0, 1, 2);
    const attr *stop = infer_attr(c, "stopwords");
    if (!stop || stop->n == 0) {
        shape_need_like(c, 0, 0);
        return;
    }
    int64_t most[2] = {infer_dim(c, 0, 0), infer_dim(c, 0, -1)};
    if (most[rank - 1] == 0) most[rank - 1] = 1;
    infer_set_bound(c, 0, DTYPE_STRING, rank, NULL, most, "the number of words left depends on the text");
}

void shape_string_regex(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    infer_set_like(c, 0, DTYPE_BOOL, infer_in(c, 0));
}

void shape_string_split(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 0, INFO_MAX_RANK - 1);
    const attr *most = infer_attr(c, "maxsplit");
    infer_set_like(c, 1, DTYPE_INT64, infer_in(c, 0));
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    if (info_count(infer_in(c, 0)) == 0) {
        dims[rank] = 0;
        infer_set(c, 0, DTYPE_STRING, rank + 1, dims);
    } else if (most && most->kind == ATTR_INT && most->i >= 0) {
        dims[rank] = checked_add(most->i, 1);
        infer_set_bound(c, 0, DTYPE_STRING, rank + 1, NULL, dims, "the number of parts of a text depends on the text");
    } else {
        infer_unresolved(c, "the number of parts of a text depends on the text");
    }
}

/* The largest coordinate any n-gram is counted at says how wide the output is. */
void shape_string_tfidf(infer *c) {
    const int64_t *index;
    int64_t n, width = 0, dims[2];
    int rank = shape_need_rank(c, 0, 0, 2);
    if (!infer_attr_ints(c, "ngram_indexes", &index, &n)) infer_fail(c, "attribute 'ngram_indexes' is missing");
    for (int64_t k = 0; k < n; k++) {
        if (index[k] < 0)
            infer_fail(c, "attribute 'ngram_indexes' holds %" PRId64 ", it must not be negative", index[k]);
        if (checked_add(index[k], 1) > width) width = checked_add(index[k], 1);
    }
    dims[0] = rank == 2 ? infer_dim(c, 0, 0) : width;
    dims[1] = width;
    infer_set(c, 0, DTYPE_FP32, rank == 2 ? 2 : 1, dims);
}

void shape_string_tokenizer(infer *c) { infer_unresolved(c, "the number of tokens of a text depends on the text"); }
