/* Elementwise operations on the CPU device: what candidates are told, both candidates on every operator, type and
 * broadcast against the reference, the reference against plain values, and that one wrong element is found. */
#include "scout/cpu/onednn/cpu_onednn.h"
#include "scout/op/elementwise_chain.h"
#include "tests/unit/cpu/cpu_element.h"
#include "tests/unit/unit.h"

#include <math.h>

static element_want want(const char *what, dtype type, int64_t rows, int64_t cols) {
    return (element_want){.kind = OP_ELEMENTWISE, .what = what, .type = type, .rank = 2, .shape = {rows, cols}};
}

static const dtype floats[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16};
static const dtype others[] = {DTYPE_INT64,  DTYPE_INT32, DTYPE_INT16,  DTYPE_INT8, DTYPE_UINT32,
                               DTYPE_UINT16, DTYPE_UINT8, DTYPE_UINT64, DTYPE_FP64, DTYPE_BOOL};
enum { OTHER_TYPES = sizeof others / sizeof others[0] };
static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {17, 1}, {63, 65}, {127, 129}, {1, 1000}, {9, 4097}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

#define NAME(name, least, most, types, truth, specials, grows, positive)                                               \
    {#name, least, most, types, truth, specials, grows, positive},
static const elementwise_operator operators[] = {ELEMENTWISE_OPERATORS(NAME)};

static const char *inputs_of(int count) {
    static const char *const texts[] = {NULL, NULL, "tensor,tensor", "tensor,tensor,tensor"};
    return texts[count];
}

/* Every operator, in every type that it has, on every shape. The library has fp32 on every processor, and bf16 where it
 * uses AVX-512. */
static void operators_in_every_type(void) {
    enum { FP32, BF16, FP16, OTHERS };
    int ran[OTHERS + 1][2] = {{0}}, asked = 0;
    for (size_t k = 0; k < ELEMENTWISE_COUNT; k++)
        for (size_t t = 0; t < 3 + OTHER_TYPES; t++) {
            const dtype type = t < 3 ? floats[t] : others[t - 3];
            const int class = elementwise_class_of(type);
            for (size_t s = 0; (operators[k].types & class) && s < SHAPES; s++) {
                element_want w = want(operators[k].what, type, shapes[s][0], shapes[s][1]);
                w.inputs = inputs_of(operators[k].least > 1 || operators[k].most == 1 ? operators[k].least : 2);
                element_run_all(&w, 100 * k + s, ran[t < OTHERS ? t : OTHERS]);
                asked++;
            }
        }
    printf("  %d operations, oneDNN has %d of fp32, %d of bf16, %d of fp16, %d of others\n", asked, ran[FP32][0],
           ran[BF16][0], ran[FP16][0], ran[OTHERS][0]);
    UNIT_INT(ran[FP32][1] + ran[BF16][1] + ran[FP16][1] + ran[OTHERS][1], asked);
    UNIT_CHECK(ran[FP32][0] > 200);
    if (cpu_onednn_uses(dnnl_cpu_isa_avx512_core)) UNIT_CHECK(ran[BF16][0] > 200);
    UNIT_INT(element_failures, 0);
}

/* Every way in which an operand can lie under an output. */
static void broadcasts(void) {
    static const char *const inputs[] = {
        "tensor,tensor",   "tensor,vector",    "tensor,scalar",    "scalar,tensor",    "tensor,2x1x5x1",
        "tensor,3x1x1",    "tensor,3x5x1",     "2x1x1x37,vector",  "2x3x1x1,1x1x5x37", "tensor,2x3x1x37",
        "tensor,same",     "vector,tensor",    "2x1x5x1,2x3x1x37", "tensor,1x3x1x37",  "scalar,scalar",
        "2x1x5x37,tensor", "1x1x5x1,2x1x1x37",
    };
    static const char *const whats[] = {"add", "sub", "mul", "lessorequal", "swiglu"};
    int ran[2] = {0, 0}, asked = 0;
    for (size_t k = 0; k < sizeof inputs / sizeof inputs[0]; k++)
        for (size_t o = 0; o < 5; o++)
            for (size_t t = 0; t < 5; t++) {
                const dtype type = t < 3 ? floats[t] : t == 3 ? DTYPE_INT64 : DTYPE_INT32;
                if (o == 4 && t >= 3) continue; /* swiglu is of floats */
                element_want w = {.kind = OP_ELEMENTWISE, .what = whats[o], .inputs = inputs[k], .type = type};
                w.rank = 4;
                memcpy(w.shape, (int64_t[]){2, 3, 5, 37}, 4 * sizeof(int64_t));
                element_run_all(&w, 10 * k + o, ran);
                asked++;
            }
    printf("  %d broadcasts, oneDNN has %d\n", asked, ran[0]);
    UNIT_INT(ran[1], asked);
    UNIT_CHECK(ran[0] >= (cpu_onednn_uses(dnnl_cpu_isa_avx512_core) ? 21 : 20)); /* bf16 needs the former */
    UNIT_INT(element_failures, 0);
}

static void choices_and_many_operands(void) {
    static const char *const inputs[] = {"tensor,scalar,scalar", "tensor,scalar,tensor", "2x1x37,tensor,vector",
                                         "vector,tensor,tensor", "scalar,tensor,3x1",    "tensor,tensor,same"};
    static const char *const sums[] = {"sum", "mean", "min", "max"};
    int ran[2] = {0, 0};
    for (size_t k = 0; k < 6; k++)
        for (size_t t = 0; t < 5; t++) {
            const dtype types[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16, DTYPE_INT64, DTYPE_BOOL};
            element_want w = {.kind = OP_ELEMENTWISE, .what = "where", .inputs = inputs[k], .type = types[t]};
            w.rank = 3;
            memcpy(w.shape, (int64_t[]){2, 3, 37}, 3 * sizeof(int64_t));
            element_run_all(&w, k, ran);
        }
    for (size_t k = 0; k < 4; k++) {
        element_want w = want(sums[k], DTYPE_FP32, 65, 129);
        w.inputs = "tensor,tensor,65x1,vector,scalar,tensor,tensor,same";
        element_run_all(&w, k, ran);
        w.inputs = NULL;
        element_run_all(&w, k, ran);
    }
    UNIT_INT(ran[1], 6 * 5 + 8);
    UNIT_INT(element_failures, 0);
}

/* Operators whose numbers are not the customary ones. */
static void numbers(void) {
    static const struct {
        const char *what;
        element_number numbers[2];
    } rows[] = {
        {"clip", {{"min", -0.5}, {"max", 0.25}}},
        {"clip", {{"max", 6}}},
        {"pow", {{"exponent", 2}}},
        {"pow", {{"exponent", 3}}},
        {"pow", {{"exponent", 0.5}}},
        {"pow", {{"exponent", -1}}},
        {"pow", {{"exponent", -0.5}}},
        {"pow", {{"exponent", 5}}},
        {"pow", {{"exponent", 4}}},
        {"pow", {{"exponent", 0}}},
        {"hardsigmoid", {{"alpha", 0.16666667}}},
        {"leakyrelu", {{"alpha", 0.3}}},
        {"elu", {{"alpha", 2}}},
        {"celu", {{"alpha", 0.5}}},
        {"swish", {{"alpha", 0.7}}},
        {"thresholdedrelu", {{"alpha", 0.1}}},
        {"isinf", {{"detect_negative", 0}}},
        {"selu", {{"gamma", 1.5}}},
        {"shrink", {{"lambda", 0.25}, {"offset", 0.125}}},
    };
    int ran[2] = {0, 0};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        for (size_t t = 0; t < 3; t++) {
            element_want w = want(rows[k].what, floats[t], 33, 1000);
            memcpy(w.numbers, rows[k].numbers, sizeof rows[k].numbers);
            if (strcmp(rows[k].what, "pow") == 0) w.inputs = "tensor,scalar";
            element_run_all(&w, k, ran);
        }
    element_want w = want("clip", DTYPE_INT64, 33, 1000);
    w.numbers[0] = (element_number){"min", -1000}, w.numbers[1] = (element_number){"max", 500000};
    element_run_all(&w, 1, ran);
    for (size_t t = 0; t < OTHER_TYPES - 1; t++) { /* but bool */
        w = want("mod", others[t], 33, 1000), w.inputs = "tensor,tensor", w.numbers[0] = (element_number){"fmod", 1};
        element_run_all(&w, t, ran);
        w = want("bitshift", others[t], 33, 1000), w.inputs = "tensor,vector";
        w.numbers[0] = (element_number){"direction", 1};
        if (others[t] != DTYPE_FP64) element_run_all(&w, t, ran);
    }
    w = want("pow", DTYPE_INT64, 33, 1000), w.inputs = "tensor,scalar", w.numbers[0] = (element_number){"exponent", 3};
    element_run_all(&w, 1, ran);
    UNIT_INT(ran[1], 3 * sizeof rows / sizeof rows[0] + 1 + 2 * (OTHER_TYPES - 1));
    UNIT_CHECK(ran[0] > 10);
    UNIT_INT(element_failures, 0);
}

/* Large enough for all threads, with rows that end within blocks and shares. */
static void larger_ones(void) {
    int ran[2] = {0, 0};
    for (size_t t = 0; t < 3; t++) {
        element_want w = want("gelu", floats[t], 300, 3072);
        element_run_all(&w, t, ran);
        w = want("add", floats[t], 1031, 769), w.inputs = "tensor,vector";
        element_run_all(&w, t, ran);
        w = want("mul", floats[t], 960, 49), w.inputs = "tensor,960x1";
        element_run_all(&w, t, ran);
    }
    UNIT_INT(ran[1], 9);
    UNIT_INT(element_failures, 0);
}

/* --- the reference against plain values --- */

static double plain(const char *what, double x, double y) {
    static const struct {
        const char *what;
        double x, y, is;
    } rows[] = {{"gelu", 1, 0, 0.8413447460685429},
                {"gelu", -3, 0, -0.0040496940948903},
                {"gelu_tanh", 1, 0, 0.8411919906082768},
                {"silu", 2, 0, 1.7615941559557649},
                {"tanh", 0.5, 0, 0.46211715726000976},
                {"erf", 0.5, 0, 0.5204998778130465},
                {"softplus", 1, 0, 1.3132616875182228},
                {"mish", 1, 0, 0.8650983882673103},
                {"hardswish", 1, 0, 0.6666666666666666},
                {"sub", 2, 5, -3},
                {"div", 1, -4, -0.25},
                {"lessorequal", 2, 2, 1},
                {"less", 2, 2, 0},
                {"swiglu", 2, 3, 5.2847824678672947},
                {"prelu", -2, 0.5, -1},
                {"round", 2.5, 0, 2},
                {"round", -1.5, 0, -2},
                {"selu", -1, 0, -1.1113307378125625},
                {"fastgelu", 0.25, 0.75, 0.8411919906082768},
                {"mod", -7, 3, 2},
                {"mod", 7, -3, -2},
                {"shrink", -2, 0, -2},
                {"shrink", 0.25, 0, 0},
                {"acos", 0.5, 0, 1.0471975511965979},
                {"asinh", 1, 0, 0.881373587019543},
                {"acosh", 2, 0, 1.3169578969248166},
                {"atanh", 0.5, 0, 0.5493061443340549},
                {"tan", 1, 0, 1.5574077246549023}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (strcmp(rows[k].what, what) == 0 && rows[k].x == x && rows[k].y == y) return rows[k].is;
    return NAN;
}

/* The value of one element by the reference: what it calls right is taken from the candidate's answer to one that is
 * wrong. */
static void reference_is(const char *what, double x, double y) {
    element_want w = want(what, DTYPE_FP32, 1, 1);
    element e;
    element_build(&e, &w);
    if (e.built == false) w.inputs = "tensor,tensor", element_drop(&e), element_build(&e, &w);
    element_fill(&e, 1);
    *(float *)e.data[0] = (float)x;
    if (e.op.tensor_count > 2) *(float *)e.data[1] = (float)y;
    element_again(&e);
    if (e.op.output == SCOUT_BOOL)
        *(uint8_t *)e.data[element_output(&e)] = 2;
    else
        *(float *)e.data[element_output(&e)] = 77;
    const scout_verdict v = element_judge(&e);
    UNIT_INT(v.wrong, 1);
    if (!UNIT_CHECK(fabs(v.want - plain(what, x, y)) <= 1e-7 * fabs(v.want)))
        printf("  %s(%g, %g) is %.17g\n", what, x, y, v.want);
    element_drop(&e);
}

static void the_reference_knows_plain_values(void) {
    static const char *const ones[] = {"gelu", "gelu_tanh", "mish", "softplus", "hardswish"};
    for (size_t k = 0; k < 5; k++) reference_is(ones[k], 1, 0);
    reference_is("gelu", -3, 0);
    reference_is("silu", 2, 0);
    reference_is("tanh", 0.5, 0);
    reference_is("erf", 0.5, 0);
    reference_is("selu", -1, 0);
    reference_is("round", 2.5, 0);
    reference_is("round", -1.5, 0);
    reference_is("sub", 2, 5);
    reference_is("div", 1, -4);
    reference_is("less", 2, 2);
    reference_is("lessorequal", 2, 2);
    reference_is("swiglu", 2, 3);
    reference_is("prelu", -2, 0.5);
    reference_is("fastgelu", 0.25, 0.75);
    reference_is("mod", -7, 3);
    reference_is("mod", 7, -3);
    reference_is("shrink", -2, 0);
    reference_is("shrink", 0.25, 0);
    reference_is("acos", 0.5, 0);
    reference_is("asinh", 1, 0);
    reference_is("acosh", 2, 0);
    reference_is("atanh", 0.5, 0);
    reference_is("tan", 1, 0);
}

/* --- beyond what tensors are filled with --- */

static const float edges[] = {0,     -0.0F, 1,      -1, 2.5F,  -2.5F, 0x1p-130F, INFINITY, -INFINITY,
                              NAN,   -12,   -20,    30, 2,     -2,    3,         -3,       0.5F,
                              -0.5F, 1e-5F, -1e-5F, 7,  -7.5F, 100,   -100,      8388609,  4194304.5F};
enum { EDGES = sizeof edges / sizeof edges[0] };

static double plain_softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }
static double plain_elu(double x) { return x > 0 ? x : expm1(x); }

/* To a few roundings of the number itself, however small it is; below what is a normal number 0 will do. */
static bool is_near(double is, double should) {
    if (isnan(should)) return isnan(is);
    if (isinf((double)(float)should)) return is == (double)(float)should;
    return is == (double)(float)should || fabs(is - should) <= 1e-5 * fabs(should) || fabs(is - should) < 0x1p-126;
}

/* What holds for the numbers that a tensor is filled with may not hold for a caller's. */
static void functions_of_any_number(void) {
    static const struct {
        const char *what;
        double (*is)(double x);
    } rows[] = {{"sqrt", sqrt},
                {"log", log},
                {"exp", exp},
                {"tanh", tanh},
                {"erf", erf},
                {"elu", plain_elu},
                {"softplus", plain_softplus}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        element_want w = want(rows[k].what, DTYPE_FP32, 1, EDGES);
        element e;
        if (rows[k].is == plain_elu) w.numbers[0] = (element_number){"alpha", 1};
        element_build(&e, &w);
        element_fill(&e, 1);
        memcpy(e.data[0], edges, sizeof edges);
        e.judged = false;
        UNIT_INT(element_run(&e, "cpu_elementwise"), 1);
        for (int i = 0; i < EDGES; i++) {
            const double is = element_at(&e, element_output(&e), i), should = rows[k].is((double)edges[i]);
            if (!UNIT_CHECK(is_near(is, should)))
                printf("  %s(%g) is %.9g and should be %.9g\n", rows[k].what, (double)edges[i], is, should);
        }
        element_drop(&e);
    }
}

static void powers_of_any_number(void) {
    element_want w = want("pow", DTYPE_FP32, EDGES, EDGES);
    element e;
    w.inputs = "tensor,tensor";
    element_build(&e, &w);
    element_fill(&e, 1);
    for (int k = 0; k < EDGES * EDGES; k++) {
        ((float *)e.data[0])[k] = edges[k / EDGES];
        ((float *)e.data[1])[k] = edges[k % EDGES];
    }
    e.judged = false;
    UNIT_INT(element_run(&e, "cpu_elementwise"), 1);
    for (int k = 0; k < EDGES * EDGES; k++) {
        const double x = (double)edges[k / EDGES], y = (double)edges[k % EDGES];
        const double is = element_at(&e, element_output(&e), k), should = pow(x, y);
        /* the logarithm's rounding grows with the power; a number that is hardly one loses its digits */
        const bool lost = fabs(x) < 0x1p-126 && x != 0;
        const bool near = isfinite((double)(float)should) && fabs(is - should) <= 1e-4 * fabs(should);
        if (!UNIT_CHECK(lost || is_near(is, should) || near))
            printf("  %g to the power of %g is %.9g and should be %.9g\n", x, y, is, should);
    }
    element_drop(&e);
}

static void one_wrong_element_is_found(void) {
    static const struct {
        const char *what;
        dtype type;
    } rows[] = {{"add", DTYPE_FP32},  {"add", DTYPE_BF16},  {"gelu", DTYPE_FP16},
                {"tanh", DTYPE_BF16}, {"mul", DTYPE_INT64}, {"less", DTYPE_FP16},
                {"and", DTYPE_BOOL},  {"max", DTYPE_INT8},  {"swiglu", DTYPE_BF16}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        element_want w = want(rows[k].what, rows[k].type, 63, 129);
        if (strcmp(rows[k].what, "gelu") != 0 && strcmp(rows[k].what, "tanh") != 0) w.inputs = "tensor,vector";
        element e;
        element_build(&e, &w);
        element_fill(&e, k);
        UNIT_INT(element_run(&e, "cpu_elementwise"), 1);
        element_finds_wrong(&e);
        element_drop(&e);
    }
    UNIT_INT(element_failures, 0);
}

/* --- what candidates are told --- */

static void check_tensor(const element *e, int k, const char *name, uint32_t role, uint32_t type, int64_t d0,
                         int64_t s0, int64_t d1, int64_t s1, uint64_t bytes) {
    const scout_tensor *t = &e->op.tensors[k];
    UNIT_TEXT(t->name, name);
    UNIT_INT(t->role, role);
    UNIT_INT(t->type, type);
    UNIT_INT(t->dims[0], d0);
    UNIT_INT(t->strides[0], s0);
    UNIT_INT(t->dims[1], d1);
    UNIT_INT(t->strides[1], s1);
    UNIT_INT(t->bytes, bytes);
}

static void tensors_as_broadcast(void) {
    element e;
    element_want w = want("where", DTYPE_FP16, 4, 6);
    w.inputs = "4x1,vector,scalar";
    element_build(&e, &w);
    if (!UNIT_CHECK(e.built)) return;
    UNIT_INT(e.op.tensor_count, 4);
    check_tensor(&e, 0, "a", SCOUT_INPUT, SCOUT_BOOL, 4, 1, 1, 0, 4);
    check_tensor(&e, 1, "b", SCOUT_SIDE, SCOUT_FP16, 1, 0, 6, 1, 12);
    check_tensor(&e, 2, "c", SCOUT_SIDE, SCOUT_FP16, 1, 0, 1, 0, 2);
    check_tensor(&e, 3, "y", SCOUT_OUTPUT, SCOUT_FP16, 4, 6, 6, 1, 48);
    UNIT_CHECK(e.op.bytes_read == 18 && e.op.bytes_written == 48);
    element_drop(&e);
    w = want("less", DTYPE_INT64, 4, 6), w.inputs = "tensor,same";
    element_build(&e, &w);
    UNIT_INT(e.op.tensor_count, 2);
    UNIT_INT(e.op.output, SCOUT_BOOL);
    int sources[ELEMENTWISE_MAX_OPERANDS] = {0};
    UNIT_INT(elementwise_sources(&e.op, sources), 2);
    UNIT_CHECK(sources[0] == 0 && sources[1] == 0);
    UNIT_CHECK(e.tolerance == 0);
    element_drop(&e);
}

/* Whatever the bytes say: what has more dimensions is told by them. */
static void a_vector_has_one_dimension(void) {
    static const struct {
        const char *inputs;
        int64_t dims[4];
    } rows[] = {{"tensor,vector", {1, 1, 1, 64}}, {"tensor,32x64", {1, 1, 32, 64}}, {"tensor,8x32x64", {1, 8, 32, 64}}};
    for (size_t k = 0; k < 3; k++) {
        element e;
        element_want w = {.kind = OP_ELEMENTWISE, .what = "mul", .inputs = rows[k].inputs, .type = DTYPE_FP16};
        w.rank = 4;
        memcpy(w.shape, (int64_t[]){2, 8, 32, 64}, 4 * sizeof(int64_t));
        w.bytes_read = 2 * (2 * 8 * 32 * 64 + 32 * 64);
        element_build(&e, &w);
        for (int d = 0; d < 4 && UNIT_CHECK(e.built); d++) UNIT_INT(e.op.tensors[1].dims[d], rows[k].dims[d]);
        element_drop(&e);
    }
}

static void what_needs_positive_numbers_gets_them(void) {
    static const struct {
        const char *what, *name;
        double exponent;
    } rows[] = {{"sqrt", "scales", 0}, {"log", "scales", 0}, {"pow", "scales", 0.5}, {"pow", "a", 2}, {"exp", "a", 0}};
    for (size_t k = 0; k < 5; k++) {
        element e;
        element_want w = want(rows[k].what, DTYPE_FP32, 4, 6);
        if (rows[k].exponent != 0) w.numbers[0] = (element_number){"exponent", rows[k].exponent};
        element_build(&e, &w);
        if (UNIT_CHECK(e.built)) UNIT_TEXT(e.op.tensors[0].name, rows[k].name);
        element_drop(&e);
    }
}

static void is_refused(const element_want *w, const char *code) {
    element e;
    element_build(&e, w);
    if (UNIT_CHECK(!e.built)) UNIT_TEXT(e.why.code, code);
    UNIT_CHECK(e.why.text[0]);
    element_drop(&e);
}

static void what_is_refused(void) {
    static const char *const bad[] = {"tensor,3x6",  "tensor,4x6x1x1", "tensor,x",
                                      "tensor,",     "tensor,4x",      "same,tensor",
                                      "tensor,-1x6", "tensor,tensors", "tensor,99999999999999999999x6"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        element_want w = want("add", DTYPE_FP32, 4, 6);
        w.inputs = bad[k];
        is_refused(&w, "shape");
    }
    element_want w = want(NULL, DTYPE_FP32, 4, 6);
    is_refused(&w, "feature");
    w.what = "bitshift";
    is_refused(&w, "type");
    w = want("pow", DTYPE_INT32, 4, 6), w.numbers[0] = (element_number){"exponent", 0.5};
    is_refused(&w, "feature");
    w = want("abs", DTYPE_UINT64, 4, 6);
    is_refused(&w, "type");
    w = want("add", DTYPE_FP32, 4, 6); /* one operand */
    is_refused(&w, "feature");
    w.inputs = "tensor,tensor,tensor";
    is_refused(&w, "feature");
    w = want("sum", DTYPE_FP32, 4, 6), w.inputs = "tensor,tensor,tensor,tensor,tensor,tensor,tensor,tensor,12 more";
    is_refused(&w, "feature");
    w = want("gelu", DTYPE_INT64, 4, 6);
    is_refused(&w, "type");
    w = want("relu", DTYPE_FP32, 4, 6), w.out = DTYPE_FP16;
    is_refused(&w, "type");
    w = want("relu", DTYPE_STRING, 4, 6);
    is_refused(&w, "type");
    w = want("relu", DTYPE_FP32, 0, 6);
    is_refused(&w, "shape");
    w = want("relu", DTYPE_FP32, INT64_MAX, INT64_MAX);
    is_refused(&w, "shape");
    w = want("add", DTYPE_FP32, INT64_MAX, 3), w.inputs = "tensor,vector";
    is_refused(&w, "shape");
    w = want("add", DTYPE_FP32, 4, 6), w.inputs = "tensor,tensor", w.numbers[0] = (element_number){"quant", 1};
    is_refused(&w, "feature");
}

static void special_functions_are_counted(void) {
    static const struct {
        const char *what;
        double exponent, each;
    } rows[] = {{"exp", 0, 1}, {"relu", 0, 0}, {"softplus", 0, 2}, {"pow", 2, 0}, {"pow", 2.5e6, 2}};
    for (size_t k = 0; k < 5; k++) {
        element e;
        element_want w = want(rows[k].what, DTYPE_FP32, 4, 6);
        if (rows[k].exponent != 0) w.numbers[0] = (element_number){"exponent", rows[k].exponent};
        element_build(&e, &w);
        if (UNIT_CHECK(e.built)) UNIT_CHECK(kinds_find(OP_ELEMENTWISE)->specials(&e.op) == rows[k].each * 24);
        element_drop(&e);
    }
}

int main(void) {
    if (!element_open()) return 1;
    UNIT_RUN(tensors_as_broadcast);
    UNIT_RUN(a_vector_has_one_dimension);
    UNIT_RUN(what_needs_positive_numbers_gets_them);
    UNIT_RUN(what_is_refused);
    UNIT_RUN(special_functions_are_counted);
    UNIT_RUN(the_reference_knows_plain_values);
    UNIT_RUN(functions_of_any_number);
    UNIT_RUN(powers_of_any_number);
    UNIT_RUN(operators_in_every_type);
    UNIT_RUN(broadcasts);
    UNIT_RUN(choices_and_many_operands);
    UNIT_RUN(numbers);
    UNIT_RUN(larger_ones);
    UNIT_RUN(one_wrong_element_is_found);
    element_close();
    return unit_end();
}
