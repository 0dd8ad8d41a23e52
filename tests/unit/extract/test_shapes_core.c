/* Shape functions of the core operators, each called on a graph of one node: rules that models of a zoo seldom touch
 * (ends beyond the axis, negative steps and pads, values through floating arithmetic) and the refusal of what does not
 * fit. */
#include "extract/infer/infer.h"
#include "tests/unit/unit.h"

enum { MAX_INPUTS = 6, MAX_ATTRS = 4, MAX_OUTPUTS = 4 };

static guard test_guard;
static arena test_arena;

typedef struct bench {
    model model;
    graph graph;
    node node;
    node *nodes[1];
    graph *graphs[1];
    tensor in[MAX_INPUTS], out[MAX_OUTPUTS];
    tensor *ins[MAX_INPUTS], *outs[MAX_OUTPUTS];
    attr attrs[MAX_ATTRS];
} bench;

/* A graph of one node without inputs and with one output; not inferred yet. */
static bench *bench_of(const char *op, int64_t opset) {
    bench *b = arena_zalloc(&test_arena, sizeof *b);
    b->model =
        (model){.arena = &test_arena, .guard = &test_guard, .main = &b->graph, .graphs = b->graphs, .graph_count = 1};
    b->graphs[0] = &b->graph;
    b->nodes[0] = &b->node;
    b->graph = (graph){.region = "", .times = 1, .times_known = true, .nodes = b->nodes, .node_count = 1};
    b->node = (node){.name = "n", .op_type = op, .domain = "", .opset = opset, .home = &b->graph, .attrs = b->attrs};
    b->node.def = operators_find("", op);
    b->node.in = b->ins;
    b->node.out = b->outs;
    b->model.nodes = b->nodes;
    b->model.node_count = 1;
    b->node.out_count = 1;
    for (int k = 0; k < MAX_OUTPUTS; k++) {
        b->out[k] = (tensor){
            .name = "out", .source = TENSOR_NODE, .info = &info_unknown, .producer = &b->node, .home = &b->graph};
        b->outs[k] = &b->out[k];
    }
    return b;
}

static void give(bench *b, const info *x) {
    int k = b->node.in_count++;
    b->in[k] = (tensor){.name = "in", .source = TENSOR_INPUT, .info = x, .home = &b->graph};
    b->ins[k] = &b->in[k];
}

#define COUNT(...)          ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define SHAPE(b, type, ...) give(b, info_tensor(&test_arena, type, COUNT(__VA_ARGS__), (int64_t[]){__VA_ARGS__}))
#define VECTOR(b, ...)      give_vector(b, DTYPE_INT64, COUNT(__VA_ARGS__), (int64_t[]){__VA_ARGS__})
#define INTS(b, name, ...)  give_ints(b, name, COUNT(__VA_ARGS__), (int64_t[]){__VA_ARGS__})
#define IS_SHAPE(b, k, ...)                                                                                            \
    is_list((b)->out[k].info->dims, (b)->out[k].info->rank, COUNT(__VA_ARGS__), (int64_t[]){__VA_ARGS__}, __LINE__)
#define IS_VALUE(b, k, ...) is_value((b)->out[k].info, COUNT(__VA_ARGS__), (int64_t[]){__VA_ARGS__}, __LINE__)

static void give_vector(bench *b, dtype type, int64_t n, const int64_t *x) {
    give(b, info_of_ints(&test_arena, type, 1, &n, x, n));
}

static void give_scalar(bench *b, dtype type, double x) {
    int64_t whole = (int64_t)x;
    give(b, dtype_get(type)->cls == DTYPE_CLASS_FLOAT ? info_of_floats(&test_arena, type, 0, NULL, &x, 1)
                                                      : info_of_ints(&test_arena, type, 0, NULL, &whole, 1));
}

static void give_int(bench *b, const char *name, int64_t x) {
    b->attrs[b->node.attr_count++] = (attr){.name = name, .kind = ATTR_INT, .i = x};
}

static void give_text(bench *b, const char *name, const char *x) {
    b->attrs[b->node.attr_count++] = (attr){.name = name, .kind = ATTR_STRING, .s = x, .n = (int64_t)strlen(x)};
}

static void give_ints(bench *b, const char *name, int64_t n, const int64_t *x) {
    int64_t *copy = arena_array(&test_arena, int64_t, n);
    memcpy(copy, x, sizeof *x * (size_t)n);
    b->attrs[b->node.attr_count++] = (attr){.name = name, .kind = ATTR_INTS, .n = n, .ints = copy};
}

static void is_list(const int64_t *got, int64_t n, int64_t want_n, const int64_t *want, int line) {
    if (!unit_same_int(n, want_n, "length", __FILE__, line)) return;
    for (int64_t k = 0; k < n; k++) unit_same_int(got[k], want[k], "element", __FILE__, line);
}

static void is_value(const info *x, int64_t n, const int64_t *want, int line) {
    if (unit_check(x->val && x->val->i, "integer values are known", __FILE__, line))
        is_list(x->val->i, x->val->n, n, want, line);
}

/* Runs the node; false where it was refused. */
static bool infer_bench(bench *b) {
    guard_init(&test_guard);
    if (!guard_enter(&test_guard)) return false;
    infer_model(&b->model);
    return true;
}

static bool refused(bench *b) { return !infer_bench(b) && test_guard.st.code == STATUS_INPUT; }

static void slice_clamps_and_goes_backwards(void) {
    bench *b = bench_of("Slice", 13);
    SHAPE(b, DTYPE_FP32, 10, 20, 5);
    VECTOR(b, -3, 100, INT64_MAX);
    VECTOR(b, INT64_MAX, 0, INT64_MIN);
    VECTOR(b, 0, 1, -1);
    VECTOR(b, 1, 7, -2);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 3, 0, 3);

    b = bench_of("Slice", 9); /* attributes */
    SHAPE(b, DTYPE_FP32, 4, 6);
    INTS(b, "starts", 1);
    INTS(b, "ends", -1);
    INTS(b, "axes", 1);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 4, 4);

    b = bench_of("Slice", 13); /* positions that are data: at most all of it */
    SHAPE(b, DTYPE_FP32, 4, 6);
    SHAPE(b, DTYPE_INT64, 1);
    SHAPE(b, DTYPE_INT64, 1);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 4, 6);
    UNIT_CHECK(b->out[0].info->inexact && b->node.unresolved);
}

static void reshape_fills_in(void) {
    bench *b = bench_of("Reshape", 14);
    SHAPE(b, DTYPE_FP16, 2, 3, 8);
    VECTOR(b, 0, -1, 4);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 2, 6, 4);
    UNIT_INT(b->out[0].info->type, DTYPE_FP16);

    b = bench_of("Reshape", 14);
    SHAPE(b, DTYPE_FP32, 0, 3);
    VECTOR(b, 3, 0);
    give_int(b, "allowzero", 1);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 3, 0);

    b = bench_of("Reshape", 14);
    SHAPE(b, DTYPE_FP32, 2, 3);
    VECTOR(b, 4, -1);
    UNIT_CHECK(refused(b));
    UNIT_CHECK(strstr(test_guard.st.text, "fp32[2,3]") && strstr(test_guard.st.text, "node 'n' (Reshape)"));
}

static void split_in_all_forms(void) {
    bench *b = bench_of("Split", 18);
    VECTOR(b, 1, 2, 3, 4, 5);
    b->node.out_count = 3;
    give_int(b, "num_outputs", 3);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 1, 2);
    IS_VALUE(b, 2, 5);

    b = bench_of("Split", 11);
    SHAPE(b, DTYPE_FP32, 4, 6);
    b->node.out_count = 2;
    give_int(b, "axis", 1);
    INTS(b, "split", 1, 5);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 1, 4, 5);

    b = bench_of("Split", 13); /* uneven, but this opset wants equal parts */
    SHAPE(b, DTYPE_FP32, 5);
    b->node.out_count = 2;
    UNIT_CHECK(refused(b));
}

static void pad_adds_and_takes(void) {
    bench *b = bench_of("Pad", 18);
    VECTOR(b, 1, 2, 3, 4);
    VECTOR(b, -1, 2);
    give_text(b, "mode", "reflect");
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 2, 3, 4, 3, 2);

    b = bench_of("Pad", 18);
    SHAPE(b, DTYPE_FP32, 2, 3, 4);
    VECTOR(b, 1, 2);
    give_scalar(b, DTYPE_FP32, 0);
    VECTOR(b, -2);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 2, 6, 4);
}

static void values_through_floating_point(void) {
    bench *b = bench_of("Mul", 13); /* what a runtime has after fp32: 0.1 is not a tenth */
    give_scalar(b, DTYPE_FP32, 3);
    give_scalar(b, DTYPE_FP32, (double)0.1F);
    UNIT_CHECK(infer_bench(b));
    UNIT_CHECK(b->out[0].info->val && b->out[0].info->val->f[0] == (double)(3.0F * 0.1F));

    b = bench_of("Cast", 13);
    give_scalar(b, DTYPE_FP32, -2.75);
    give_int(b, "to", DTYPE_INT64);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, -2);

    b = bench_of("Cast", 13); /* wraps to the width of the type */
    give_scalar(b, DTYPE_INT64, 300);
    give_int(b, "to", DTYPE_INT8);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 44);

    b = bench_of("Div", 13); /* truncates, and division by 0 has no value */
    VECTOR(b, -7, 7);
    give_scalar(b, DTYPE_INT64, 2);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, -3, 3);
    b = bench_of("Div", 13);
    VECTOR(b, 1, 2);
    give_scalar(b, DTYPE_INT64, 0);
    UNIT_CHECK(infer_bench(b));
    UNIT_CHECK(!b->out[0].info->val);
}

static void mod_by_either_sign(void) {
    bench *b = bench_of("Mod", 13);
    VECTOR(b, -7, 7);
    VECTOR(b, 3, -3);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 2, -2);
    b = bench_of("Mod", 13);
    VECTOR(b, -7, 7);
    VECTOR(b, 3, -3);
    give_int(b, "fmod", 1);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, -1, 1);
}

static void where_needs_only_what_it_uses(void) {
    bench *b = bench_of("Where", 16);
    give_vector(b, DTYPE_BOOL, 2, (int64_t[]){1, 1});
    VECTOR(b, 5, 6);
    SHAPE(b, DTYPE_INT64, 2);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 5, 6);
}

static void gather_checks_known_indices(void) {
    bench *b = bench_of("Gather", 13);
    VECTOR(b, 10, 20, 30);
    VECTOR(b, -1, 0);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 30, 10);
    b = bench_of("Gather", 13); /* position 512 of a table of 512 */
    SHAPE(b, DTYPE_FP32, 512, 768);
    VECTOR(b, 512);
    UNIT_CHECK(refused(b));
}

static void shape_of_a_part(void) {
    bench *b = bench_of("Shape", 15);
    SHAPE(b, DTYPE_FP32, 2, 3, 4, 5);
    give_int(b, "start", -3);
    give_int(b, "end", 3);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 3, 4);
}

static void range_counts(void) {
    bench *b = bench_of("Range", 11);
    give_scalar(b, DTYPE_INT64, 10);
    give_scalar(b, DTYPE_INT64, 3);
    give_scalar(b, DTYPE_INT64, -3);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 10, 7, 4);
    b = bench_of("Range", 11);
    give_scalar(b, DTYPE_INT64, 0);
    give_scalar(b, DTYPE_INT64, 1);
    give_scalar(b, DTYPE_INT64, 0);
    UNIT_CHECK(refused(b));
}

static void nonzero_exact_or_bounded(void) {
    bench *b = bench_of("NonZero", 13);
    VECTOR(b, 0, 5, 0, 6);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 1, 2);
    IS_VALUE(b, 0, 1, 3);
    b = bench_of("NonZero", 13);
    SHAPE(b, DTYPE_FP32, 3, 4);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 2, 12);
    UNIT_CHECK(b->out[0].info->inexact && b->node.unresolved);
}

/* [1]: a number somewhere from low to high. */
static void give_between(bench *b, int64_t low, int64_t high) {
    const int64_t one = 1;
    give(b, info_between(&test_arena, info_of_ints(&test_arena, DTYPE_INT64, 1, &one, &low, 1),
                         info_of_ints(&test_arena, DTYPE_INT64, 1, &one, &high, 1)));
}

static void values_between_two_ends(void) {
    bench *b = bench_of("Sub", 13); /* the most of a difference is at the least of what is taken away */
    VECTOR(b, 9);
    give_between(b, 0, 6);
    UNIT_CHECK(infer_bench(b));
    UNIT_CHECK(!b->out[0].info->inexact && !b->out[0].info->val && !b->node.unresolved);
    is_value(b->out[0].info->least, 1, (int64_t[]){3}, __LINE__);
    is_value(b->out[0].info->most, 1, (int64_t[]){9}, __LINE__);
    b = bench_of("Mod", 13); /* rises and falls */
    give_between(b, 0, 6);
    VECTOR(b, 4);
    UNIT_CHECK(infer_bench(b));
    UNIT_CHECK(!b->out[0].info->least && !b->out[0].info->val);
    b = bench_of("ConstantOfShape", 13);
    give_between(b, 2, 6);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 6);
    UNIT_CHECK(b->out[0].info->inexact && b->out[0].info->least->dims[0] == 2 && b->node.unresolved);
    b = bench_of("Clip", 13); /* the ends meet */
    give_between(b, 2, 6);
    give_scalar(b, DTYPE_INT64, 7);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 7);
}

static void equal_between_two_ends(void) {
    static const struct {
        int64_t low, high, with_low, with_high;
        int least, most; /* of the result; -1: not known */
    } cases[] = {
        {0, 100, -1, -1, 0, 0}, {3, 7, 9, 12, 0, 0},  {4, 8, -8, -4, 0, 0}, {-1, 100, -1, -1, 0, 1},
        {0, 6, 6, 6, 0, 1},     {2, 4, 4, 8, 0, 1},   {3, 9, 3, 9, 0, 1},   {-5, 100, -1, -1, -1, -1},
        {5, 5, 3, 9, -1, -1},   {3, 6, 5, 9, -1, -1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bench *b = bench_of("Equal", 13);
        give_between(b, cases[k].low, cases[k].high);
        give_between(b, cases[k].with_low, cases[k].with_high);
        UNIT_CHECK(infer_bench(b));
        const info *x = b->out[0].info;
        if (cases[k].most < 0) {
            UNIT_CHECK(!x->val && !x->least);
            continue;
        }
        const bool between = cases[k].least != cases[k].most;
        is_value(between && x->least ? x->least : x, 1, (int64_t[]){cases[k].least}, __LINE__);
        is_value(between && x->most ? x->most : x, 1, (int64_t[]){cases[k].most}, __LINE__);
    }
    const int64_t two = 2;
    bench *b = bench_of("Equal", 13); /* a size that is left open, beside one that is not */
    give(b, info_between(&test_arena, info_of_ints(&test_arena, DTYPE_INT64, 1, &two, (int64_t[]){0, -1}, 2),
                         info_of_ints(&test_arena, DTYPE_INT64, 1, &two, (int64_t[]){100, -1}, 2)));
    VECTOR(b, -1);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 0, 1);
}

static bench *block_bench(const char *op) {
    bench *b = bench_of(op, 1);
    b->node.domain = "com.microsoft.nchwc";
    b->node.def = operators_find(b->node.domain, op);
    return b;
}

static void blocks_refuse_what_does_not_fit(void) {
    bench *b = block_bench("ReorderInput");
    SHAPE(b, DTYPE_FP32, 2, 17, 5, 3);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 2, 32, 5, 3);
    b = block_bench("ReorderOutput"); /* how many channels there are is not told */
    SHAPE(b, DTYPE_FP32, 2, 32, 5, 3);
    UNIT_CHECK(refused(b));
    b = block_bench("ReorderOutput"); /* more than there are */
    SHAPE(b, DTYPE_FP32, 2, 32, 5, 3);
    give_int(b, "channels", 33);
    UNIT_CHECK(refused(b));
    b = block_bench("Upsample");
    SHAPE(b, DTYPE_FP32, 2, 32, 5, 3);
    INTS(b, "scales", 1, 1, 2);
    UNIT_CHECK(refused(b));
    b = block_bench("Upsample");
    SHAPE(b, DTYPE_FP32, 2, 32, 5, 3);
    INTS(b, "scales", 1, 1, 2, 0);
    UNIT_CHECK(refused(b));
    b = block_bench("Upsample");
    SHAPE(b, DTYPE_FP32, 2, 32, 5, 3);
    UNIT_CHECK(refused(b));
}

static void reduce_keeps_or_drops(void) {
    bench *b = bench_of("ReduceProd", 18);
    VECTOR(b, 2, 3, 4);
    VECTOR(b, 0);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 24);
    b = bench_of("ReduceSum", 13);
    SHAPE(b, DTYPE_FP32, 2, 3, 4);
    give_vector(b, DTYPE_INT64, 0, NULL);
    give_int(b, "noop_with_empty_axes", 1);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 2, 3, 4);
    b = bench_of("ReduceMax", 13);
    SHAPE(b, DTYPE_FP32, 2, 3, 4);
    INTS(b, "axes", -1, 0);
    give_int(b, "keepdims", 0);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 3);
}

static void products(void) {
    bench *b = bench_of("MatMul", 13);
    SHAPE(b, DTYPE_FP32, 5, 1, 3, 4);
    SHAPE(b, DTYPE_FP32, 7, 4, 2);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 5, 7, 3, 2);
    b = bench_of("Gemm", 13);
    SHAPE(b, DTYPE_FP32, 4, 3);
    SHAPE(b, DTYPE_FP32, 2, 4);
    give_int(b, "transA", 1);
    give_int(b, "transB", 1);
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 3, 2);
    b = bench_of("Einsum", 12);
    SHAPE(b, DTYPE_FP32, 5, 2, 3);
    SHAPE(b, DTYPE_FP32, 1, 3, 4);
    give_text(b, "equation", "... i j , ... j k -> k ... i");
    UNIT_CHECK(infer_bench(b));
    IS_SHAPE(b, 0, 4, 5, 2);
    b = bench_of("Einsum", 12);
    SHAPE(b, DTYPE_FP32, 2, 3);
    give_text(b, "equation", "ij->ii");
    UNIT_CHECK(refused(b));
}

static void scatter_patches_a_shape(void) {
    bench *b = bench_of("ScatterND", 18);
    VECTOR(b, 1, 2, 3);
    const int64_t dims[2] = {1, 1}, at = 1;
    give(b, info_of_ints(&test_arena, DTYPE_INT64, 2, dims, &at, 1));
    VECTOR(b, 9);
    UNIT_CHECK(infer_bench(b));
    IS_VALUE(b, 0, 1, 9, 3);
}

static void nonsense_is_refused(void) {
    bench *b = bench_of("Concat", 13);
    SHAPE(b, DTYPE_FP32, 2, 3);
    SHAPE(b, DTYPE_FP32, 2, 4);
    give_int(b, "axis", 0);
    UNIT_CHECK(refused(b));
    b = bench_of("Transpose", 13);
    SHAPE(b, DTYPE_FP32, 2, 3);
    INTS(b, "perm", 1, 1);
    UNIT_CHECK(refused(b));
    b = bench_of("Tile", 13);
    SHAPE(b, DTYPE_FP32, 1 << 20, 1 << 20);
    VECTOR(b, 1 << 20, 1 << 20);
    UNIT_CHECK(refused(b));
    b = bench_of("Squeeze", 13);
    SHAPE(b, DTYPE_FP32, 2, 1);
    VECTOR(b, 0);
    UNIT_CHECK(refused(b));
    b = bench_of("Expand", 13);
    SHAPE(b, DTYPE_FP32, 0, INT64_MAX); /* an empty tensor with a long axis */
    VECTOR(b, 0, INT64_MAX);
    UNIT_CHECK(refused(b) || b->out[0].info->rank == 2);
}

int main(void) {
    guard_init(&test_guard);
    arena_init(&test_arena, &test_guard, (size_t)64 << 20);
    UNIT_RUN(slice_clamps_and_goes_backwards);
    UNIT_RUN(reshape_fills_in);
    UNIT_RUN(split_in_all_forms);
    UNIT_RUN(pad_adds_and_takes);
    UNIT_RUN(values_through_floating_point);
    UNIT_RUN(mod_by_either_sign);
    UNIT_RUN(where_needs_only_what_it_uses);
    UNIT_RUN(gather_checks_known_indices);
    UNIT_RUN(shape_of_a_part);
    UNIT_RUN(range_counts);
    UNIT_RUN(nonzero_exact_or_bounded);
    UNIT_RUN(values_between_two_ends);
    UNIT_RUN(equal_between_two_ends);
    UNIT_RUN(blocks_refuse_what_does_not_fit);
    UNIT_RUN(reduce_keeps_or_drops);
    UNIT_RUN(products);
    UNIT_RUN(scatter_patches_a_shape);
    UNIT_RUN(nonsense_is_refused);
    arena_free(&test_arena);
    return unit_end();
}
