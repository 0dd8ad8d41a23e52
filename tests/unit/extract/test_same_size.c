/* Sizes that are one number, told from the graph: rows of a result, and of what it was made from. */
#include "extract/shape/same_size.h"

#include "tests/unit/extract/lowering_fixture.h"

#define INTS(...) ints_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

/* [rows, cols], of which rows are left open to the data. */
static tensor *open_rows(int64_t most, int64_t cols) {
    const int64_t least_dims[] = {0, cols}, most_dims[] = {most, cols};
    tensor *t = bench_tensor(DTYPE_FP32, 2, most_dims);
    t->info = info_between(&b.arena, info_tensor(&b.arena, DTYPE_FP32, 2, least_dims),
                           info_tensor(&b.arena, DTYPE_FP32, 2, most_dims));
    return t;
}

static tensor *ints_of(int n, const int64_t *x) {
    const int64_t dims[] = {n};
    tensor *t = bench_weight(DTYPE_INT64, 1, dims);
    t->info = info_of_ints(&b.arena, DTYPE_INT64, 1, dims, x, n);
    return t;
}

/* [rows of x, last]: as torch writes a size. */
static tensor *rows_and(tensor *x, int64_t last) {
    tensor *shape = bench_tensor(DTYPE_INT64, DIMS(2)), *rows = bench_tensor(DTYPE_INT64, DIMS(1)),
           *both = bench_tensor(DTYPE_INT64, DIMS(2));
    NODE("", "Shape", shape, x);
    NODE("", "Gather", rows, shape, INTS(0));
    NODE("", "Concat", both, rows, INTS(last));
    const int64_t two = 2, least[] = {0, last}, most[] = {x->info->dims[0], last};
    both->info = info_between(&b.arena, info_of_ints(&b.arena, DTYPE_INT64, 1, &two, least, 2),
                              info_of_ints(&b.arena, DTYPE_INT64, 1, &two, most, 2));
    return both;
}

static tensor *made(const char *op_type, tensor *x, tensor *second) {
    tensor *y = open_rows(x->info->dims[0], x->info->dims[1]);
    if (second)
        NODE("", op_type, y, x, second);
    else
        NODE("", op_type, y, x);
    return y;
}

static void rows_go_through_products(void) {
    bench_begin();
    tensor *x = open_rows(100, 8), *other = open_rows(100, 8), *asked = rows_and(x, -1);
    tensor *y = open_rows(100, 4);
    NODE("", "Gemm", y, made("Relu", x, NULL), bench_weight(DTYPE_FP32, DIMS(8, 4)));
    UNIT_CHECK(same_size(asked, 0, y, 0));
    UNIT_CHECK(!same_size(asked, 1, y, 0) && !same_size(asked, 0, y, 1) && !same_size(asked, 0, other, 0));
    tensor *turned = open_rows(100, 4);
    bench_int(NODE("", "Gemm", turned, bench_tensor(DTYPE_FP32, DIMS(8, 4)), y), "transB", 1);
    UNIT_CHECK(same_size(asked, 0, turned, 1) && !same_size(asked, 0, turned, 0));
    tensor *product = open_rows(100, 3);
    NODE("", "MatMul", product, y, bench_weight(DTYPE_FP32, DIMS(4, 3)));
    UNIT_CHECK(same_size(asked, 0, product, 0) && !same_size(asked, 0, product, 1));
    bench_end();
}

static void broadcasting_needs_one_origin(void) {
    bench_begin();
    tensor *x = open_rows(100, 8), *other = open_rows(100, 8), *asked = rows_and(x, -1);
    tensor *row = bench_tensor(DTYPE_FP32, DIMS(1, 8)), *one = bench_tensor(DTYPE_FP32, DIMS(8));
    UNIT_CHECK(same_size(asked, 0, made("Add", made("Exp", x, NULL), x), 0));
    UNIT_CHECK(same_size(asked, 0, made("Add", made("Mul", x, row), one), 0));
    UNIT_CHECK(!same_size(asked, 0, made("Add", x, other), 0)); /* one of them may have one row */
    bench_end();
}

/* Each doubles the ways to where it came from. */
static void what_is_shared_is_followed_once(void) {
    bench_begin();
    tensor *x = open_rows(100, 8), *asked = rows_and(x, -1), *y = x;
    for (int k = 0; k < 12; k++) y = made("Mul", y, y);
    UNIT_CHECK(same_size(asked, 0, y, 0));
    bench_end();
}

static void rows_are_not_cut(void) {
    bench_begin();
    tensor *x = open_rows(100, 8), *asked = rows_and(x, -1), *y = open_rows(100, 2), *z = open_rows(100, 8);
    NODE("", "Slice", y, x, INTS(0), INTS(2), INTS(1));
    UNIT_CHECK(same_size(asked, 0, y, 0));
    NODE("", "Slice", z, x, INTS(1), INTS(50), INTS(0));
    UNIT_CHECK(!same_size(asked, 0, z, 0));
    tensor *joined = open_rows(100, 16), *stacked = open_rows(200, 8);
    bench_int(NODE("", "Concat", joined, x, x), "axis", 1);
    bench_int(NODE("", "Concat", stacked, x, x), "axis", 0);
    UNIT_CHECK(same_size(asked, 0, joined, 0) && !same_size(asked, 0, stacked, 0));
    bench_end();
}

static void dimensions_are_added_and_turned(void) {
    bench_begin();
    tensor *x = open_rows(100, 8), *asked = rows_and(x, -1);
    tensor *wide = bench_tensor(DTYPE_FP32, DIMS(1, 100, 1, 8)), *narrow = bench_tensor(DTYPE_FP32, DIMS(100, 1, 8)),
           *turned = bench_tensor(DTYPE_FP32, DIMS(8, 1, 100));
    NODE("", "Unsqueeze", wide, x, INTS(0, -2));
    NODE("", "Squeeze", narrow, wide, INTS(0));
    NODE("", "Transpose", turned, narrow);
    UNIT_CHECK(same_size(asked, 0, wide, 1) && !same_size(asked, 0, wide, 0) && !same_size(asked, 0, wide, 3));
    UNIT_CHECK(same_size(asked, 0, narrow, 0) && same_size(asked, 0, turned, 2) && !same_size(asked, 0, turned, 0));
    tensor *picked = bench_tensor(DTYPE_FP32, DIMS(8, 1, 5));
    bench_int(NODE("", "Gather", picked, turned, bench_tensor(DTYPE_INT64, DIMS(5))), "axis", 2);
    UNIT_CHECK(!same_size(asked, 0, picked, 2));
    bench_end();
}

/* An element that may be 0 leaves a dimension as it is, which need not be the number that was meant. */
static void asked_sizes_are_followed(void) {
    bench_begin();
    tensor *x = open_rows(100, 8), *other = open_rows(100, 8), *asked = rows_and(x, 8);
    tensor *filled = open_rows(100, 8), *same = open_rows(100, 8), *unlike = open_rows(100, 8);
    NODE("", "ConstantOfShape", filled, asked);
    NODE("", "Reshape", same, x, asked);
    UNIT_CHECK(same_size(asked, 0, filled, 0) && same_size(asked, 0, same, 0));
    node *reshape = NODE("", "Reshape", unlike, other, asked);
    UNIT_CHECK(!same_size(asked, 0, unlike, 0));
    bench_int(reshape, "allowzero", 1);
    UNIT_CHECK(same_size(asked, 0, unlike, 0));
    tensor *chosen = bench_tensor(DTYPE_INT64, DIMS(2)), *is = bench_tensor(DTYPE_BOOL, DIMS(2));
    is->info = info_of_ints(&b.arena, DTYPE_BOOL, 1, &(int64_t){2}, (int64_t[]){0, 1}, 2);
    NODE("", "Where", chosen, is, INTS(1, 1), asked);
    UNIT_CHECK(same_size(chosen, 0, x, 0) && !same_size(chosen, 1, x, 1));
    bench_end();
}

int main(void) {
    UNIT_RUN(rows_go_through_products);
    UNIT_RUN(broadcasting_needs_one_origin);
    UNIT_RUN(what_is_shared_is_followed_once);
    UNIT_RUN(rows_are_not_cut);
    UNIT_RUN(dimensions_are_added_and_turned);
    UNIT_RUN(asked_sizes_are_followed);
    return unit_end();
}
