/* Chains of elementwise steps on the CPU device: the text they are told by, the tensors they have, and the loop against
 * the reference. */
#include "scout/op/elementwise_chain.h"
#include "tests/unit/cpu/cpu_element.h"
#include "tests/unit/unit.h"

#include <math.h>

/* --- the text --- */

static void read_and_refuse(void) {
    static const struct {
        const char *text, *code;
        int step;
    } bad[] = {
        {"", "feature", 1},
        {";", "feature", 1},
        {"add", "feature", 1},
        {"add(tensor)", "feature", 1},
        {"add(tensor,v)", "feature", 1},
        {"add(same,tensor)", "feature", 1},
        {"add(tensor,tensor", "feature", 1},
        {"add(tensor,)", "shape", 1},
        {"add(tensor,0x4)", "shape", 1},
        {"add(tensor,4x)", "shape", 1},
        {"add(tensor,1x1x1x1x1x1x1x1x1)", "shape", 1},
        {"add(tensor,9999999999999999)", "shape", 1},
        {"add(tensor,tensor:fp64)", "type", 1},
        {"add(tensor,tensor:fp16)", "type", 1},
        {"add(tensor,tensor) ;gelu", "feature", 2},
        {"gelu;gelu(tensor)", "feature", 2},
        {"gelu;", "feature", 2},
        {"gelu;v", "feature", 2},
        {"gelu;system(v)", "feature", 2},
        {"gelu;chain", "feature", 2},
        {"gelu[alpha=1](tensor)", "feature", 1},
        {"elu[alpha=](tensor)", "feature", 1},
        {"elu[alpha=nan](tensor)", "feature", 1},
        {"elu[alpha=1e999](tensor)", "feature", 1},
        {"elu[alpha=0x1p3](tensor)", "feature", 1},
        {"elu[alpha=1(tensor)", "feature", 1},
        {"elu[alpha](tensor)", "feature", 1},
        {"cast", "feature", 1},
        {"cast[to=fp64]", "type", 1},
        {"cast[to=int8]", "type", 1},
        {"cast[to=fp16](tensor,tensor)", "feature", 1},
        {"not", "type", 1},
        {"where(tensor,tensor,tensor)", "type", 1},
        {"less(tensor,tensor);exp", "type", 2},
        {"sum(tensor,tensor,tensor,tensor,tensor,tensor,tensor,tensor,tensor)", "feature", 1},
        {"sum(tensor,tensor,tensor,tensor,tensor,tensor);sum(v,tensor,tensor,tensor,tensor,tensor,tensor)", "feature",
         2},
        {"neg;neg;neg;neg;neg;neg;neg;neg;neg;neg;neg;neg;neg;neg;neg;neg;neg", "feature", 17},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        elementwise_chain c;
        scout_why why = {"", ""};
        char place[32];
        snprintf(place, sizeof place, "step %d ", bad[k].step);
        if (!UNIT_CHECK(!elementwise_chain_read(bad[k].text, SCOUT_FP32, &c, &why))) printf("  %s\n", bad[k].text);
        if (!UNIT_CHECK(strcmp(why.code, bad[k].code) == 0 && strstr(why.text, place)))
            printf("  %s: %s %s\n", bad[k].text, why.code, why.text);
    }
}

static void endless_and_none(void) {
    char lengthy[ELEMENTWISE_CHAIN_LONGEST + 2];
    elementwise_chain c;
    scout_why why;
    memset(lengthy, '1', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = 0;
    UNIT_CHECK(!elementwise_chain_read(lengthy, SCOUT_FP32, &c, &why));
    UNIT_CHECK(!elementwise_chain_read(NULL, SCOUT_FP32, &c, &why));
    UNIT_CHECK(!elementwise_chain_read("neg", SCOUT_FP64, &c, &why));
}

static void what_is_read(void) {
    elementwise_chain c;
    scout_why why;
    const char *text = "where(scalar:bool,tensor,same);clip[max=6](v);add(v,2x1x3);less(v,vector);cast[to=int64]";
    if (!UNIT_CHECK(elementwise_chain_read(text, SCOUT_FP16, &c, &why))) return;
    UNIT_INT(c.count, 5);
    UNIT_INT(c.operands, 4);
    UNIT_INT(c.operand[0].type, SCOUT_BOOL);
    UNIT_INT(c.operand[2].form, ELEMENTWISE_FORM_DIMS);
    UNIT_INT(c.operand[2].rank, 3);
    UNIT_INT(c.operand[2].dims[0], 2);
    UNIT_CHECK(c.steps[0].from[1] == 1 && c.steps[0].from[2] == 1 && c.steps[0].type == SCOUT_FP16);
    UNIT_CHECK(c.steps[1].from[0] == ELEMENTWISE_CHAIN_VALUE && c.steps[1].numbers.beta == 6);
    UNIT_CHECK(c.steps[1].numbers.alpha == -INFINITY);
    UNIT_CHECK(c.steps[3].type == SCOUT_FP16 && c.steps[3].result == SCOUT_BOOL);
    UNIT_CHECK(c.steps[4].id == ELEMENTWISE_COUNT && c.steps[4].result == SCOUT_INT64);
}

/* --- chains against the reference --- */

static element_want want(const char *chain, dtype type, int rank, const int64_t *shape) {
    element_want w = {.kind = OP_ELEMENTWISE, .what = "chain", .chain = chain, .type = type, .rank = rank};
    memcpy(w.shape, shape, (size_t)rank * sizeof *shape);
    return w;
}

typedef struct test_case {
    const char *chain;
    dtype type;
    int rank;
    int64_t shape[4];
    bool large; /* its values are: what makes one wrong elsewhere is a rounding of theirs */
} test_case;

static const test_case cases[] = {
    {"add(tensor,vector);gelu(v)", DTYPE_FP16, 2, {127, 1000}, false},
    {"add(tensor,vector);add(v,tensor)", DTYPE_BF16, 3, {1, 197, 768}, false},
    {"sigmoid(tensor);mul(v,tensor);mul(v,tensor)", DTYPE_FP16, 2, {129, 1101}, false},
    {"hardsigmoid[alpha=0.16666667](2x65x1x1);mul(tensor,v)", DTYPE_FP32, 4, {2, 65, 7, 17}, false},
    {"cast[to=fp32](2x1x1x129);sub(scalar:fp32,v);mul(v,scalar:fp32);add(tensor:fp32,v)",
     DTYPE_INT64,
     4,
     {2, 1, 63, 129},
     true},
    {"and(tensor,1x1x128x1);where(v,tensor:fp16,scalar:fp16)", DTYPE_BOOL, 4, {1, 1, 128, 1000}, false},
    {"pow[exponent=2];add(v,scalar);sqrt(v);div(tensor,v);cast[to=fp32](v);mul(v,vector:fp32)",
     DTYPE_FP16,
     2,
     {17, 4097},
     false},
    {"mul(tensor,same);sub(v,5x1);greater(v,tensor)", DTYPE_BF16, 3, {3, 5, 1001}, false},
    {"mul(tensor,vector);add(v,tensor);clip[min=-50,max=50](v);cast[to=int32](v);max(v,scalar:int32,tensor:int32)",
     DTYPE_INT8,
     2,
     {7, 1025},
     false},
    {"neg;exp;reciprocal", DTYPE_FP32, 1, {1}, false},
    {"mul(tensor,scalar);round;cast[to=int32];add(v,vector:int32);cast[to=fp32];leakyrelu[alpha=0.1]",
     DTYPE_FP32,
     2,
     {65, 63},
     true},
    {"add(tensor,vector);mul(v,99x1);abs;add(v,scalar);log(v);mul(v,tensor);tanh;sum(v,tensor,vector);elu[alpha=0.5];"
     "max(v,scalar);swiglu(v,tensor)",
     DTYPE_FP16,
     2,
     {99, 100},
     false},
    {"add(2x1x5x1,2x3x1x37)", DTYPE_FP32, 4, {2, 3, 5, 37}, false},
    {"sub(tensor,tensor);mul(v,vector);less(v,tensor);not;and(v,tensor:bool)", DTYPE_INT64, 2, {33, 64}, false},
    {"cast[to=uint8](tensor);add(v,vector:uint8);cast[to=bf16];mul(v,tensor:bf16)", DTYPE_BOOL, 2, {9, 4096}, true},
    {"neg;abs;min(v,scalar,tensor);div(v,tensor);sign;relu;cast[to=int64]", DTYPE_INT32, 2, {9, 999}, false},
    {"cast[to=int64]", DTYPE_INT32, 2, {9, 999}, false},
    {"cast[to=fp32]", DTYPE_BF16, 2, {9, 999}, false},
    {"cast[to=bool];where(v,tensor:int8,vector:int8)", DTYPE_FP32, 2, {9, 999}, false},
    {"equal(tensor,vector);cast[to=fp16];mul(v,tensor:fp16)", DTYPE_INT8, 2, {9, 999}, false},
    {"selu;celu[alpha=0.7];softplus;softsign;mish;hardswish;thresholdedrelu[alpha=0.1];geglu(v,tensor);"
     "geglu_tanh(v,tensor);quick_geglu(v,tensor);reglu(v,tensor)",
     DTYPE_FP32,
     2,
     {40, 1000},
     false},
    {"silu;quickgelu;swish[alpha=2];gelu_tanh;biasgelu(v,vector);fastgelu(v,vector);biasadd(v,vector,tensor);relu6;"
     "squared_relu;prelu(tensor,v)",
     DTYPE_BF16,
     2,
     {40, 1000},
     false},
    {"pow(tensor,tensor);pow[exponent=0.5];pow[exponent=-1.5];isnan;xor(v,tensor:bool);cast[to=int64]",
     DTYPE_FP32,
     2,
     {40, 1000},
     false},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void loops_are_right(void) {
    for (size_t k = 0; k < CASES; k++) {
        const element_want w = want(cases[k].chain, cases[k].type, cases[k].rank, cases[k].shape);
        element e;
        element_build(&e, &w);
        if (!UNIT_CHECK(e.built)) printf("  %s: %s\n", cases[k].chain, e.why.text);
        if (e.built) {
            element_fill(&e, 100 + k);
            UNIT_INT(element_run(&e, "onednn_elementwise"), 0);
            UNIT_INT(element_run(&e, "cpu_elementwise"), 1);
            if (!cases[k].large) element_finds_wrong(&e);
        }
        element_drop(&e);
    }
    UNIT_INT(element_failures, 0);
}

/* The reference's answer is not its own way of computing only: plain values by hand. */
static void the_reference_knows_plain_values(void) {
    const int64_t shape[] = {1};
    const element_want w = want("mul(tensor,same);sub(v,scalar);floor(v);max(v,scalar)", DTYPE_FP32, 1, shape);
    element e;
    element_build(&e, &w);
    if (!UNIT_CHECK(e.built)) return;
    element_fill(&e, 1);
    *(float *)e.data[0] = 3, *(float *)e.data[1] = 0.5F, *(float *)e.data[2] = 8.25F, *(float *)e.data[3] = 77;
    element_again(&e);
    scout_verdict v = element_judge(&e);
    UNIT_INT(v.wrong, 1);
    UNIT_CHECK(v.want == 8.25);
    *(float *)e.data[2] = 7;
    element_again(&e);
    v = element_judge(&e);
    UNIT_CHECK(v.want == 8);
    element_drop(&e);
}

/* Where the values before a jump cannot tell on which side they are, either side is right, and nowhere else. */
static void jumps(void) {
    static const struct {
        float x, y;
        uint8_t got;
        int wrong;
    } rows[] = {{1, 1, 1, 0}, {1, 1, 0, 0}, {1, 1.01F, 1, 1}, {1, 1.01F, 0, 0}, {1, 0.99F, 0, 1}};
    const int64_t shape[] = {1};
    const element_want w = want("exp(tensor);less(tensor,v)", DTYPE_FP32, 1, shape);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        element e;
        element_build(&e, &w);
        if (!UNIT_CHECK(e.built)) return;
        element_fill(&e, 1);
        *(float *)e.data[0] = logf(rows[k].x), *(float *)e.data[1] = rows[k].y, *(uint8_t *)e.data[2] = rows[k].got;
        element_again(&e);
        UNIT_INT(element_judge(&e).wrong, rows[k].wrong);
        element_drop(&e);
    }
}

/* --- tensors --- */

static void tensors_of_a_chain(void) {
    const int64_t shape[] = {4, 6};
    element_want w = want("where(4x1:bool,tensor,scalar);add(v,vector);cast[to=fp32]", DTYPE_FP16, 2, shape);
    element e;
    element_build(&e, &w);
    if (!UNIT_CHECK(e.built)) return;
    UNIT_INT(e.op.tensor_count, 5);
    UNIT_INT(e.op.input, SCOUT_FP16);
    UNIT_INT(e.op.output, SCOUT_FP32);
    UNIT_INT(e.op.tensors[0].type, SCOUT_BOOL);
    UNIT_INT(e.op.tensors[0].role, SCOUT_INPUT);
    UNIT_INT(e.op.tensors[0].strides[1], 0);
    UNIT_INT(e.op.tensors[2].role, SCOUT_SIDE);
    UNIT_INT(e.op.tensors[3].dims[1], 6);
    UNIT_CHECK(e.op.bytes_read == 4 + 48 + 2 + 12 && e.op.bytes_written == 96);
    UNIT_CHECK(e.op.flops == 48);
    element_drop(&e);
    w.out = DTYPE_FP16;
    element_build(&e, &w);
    UNIT_CHECK(!e.built);
    UNIT_TEXT(e.why.code, "type");
    element_drop(&e);
}

/* What is broadcast later is computed once, as far as costs go. */
static void costs(void) {
    const int64_t shape[] = {2, 3, 8, 8};
    const element_want w = want("sigmoid(2x3x1x1);mul(tensor,v)", DTYPE_FP32, 4, shape);
    element e;
    element_build(&e, &w);
    if (!UNIT_CHECK(e.built)) return;
    UNIT_CHECK(kinds_find(OP_ELEMENTWISE)->specials(&e.op) == 6);
    UNIT_CHECK(e.op.flops == 6 + 384);
    element_drop(&e);
}

static void signs(void) {
    static const struct {
        const char *chain, *name; /* NULL: refused */
    } rows[] = {{"add(tensor,scalar);sqrt", "scales"},
                {"abs;sqrt", "a"},
                {"sub(tensor,scalar);sqrt", NULL},
                {"sub(tensor,scalar);pow[exponent=2];log", "a"},
                {"mul(tensor,same);sqrt", "a"},
                {"log;log", NULL},
                {"add(tensor,scalar);reciprocal", "a"},
                {"pow(tensor,tensor)", "scales"},
                {"sub(tensor,tensor);pow[exponent=3]", "a"}};
    const int64_t shape[] = {4, 6};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const element_want w = want(rows[k].chain, DTYPE_FP32, 2, shape);
        element e;
        element_build(&e, &w);
        UNIT_INT(e.built, rows[k].name != NULL);
        if (e.built && rows[k].name) UNIT_TEXT(e.op.tensors[0].name, rows[k].name);
        element_drop(&e);
    }
}

int main(void) {
    UNIT_RUN(read_and_refuse);
    UNIT_RUN(endless_and_none);
    UNIT_RUN(what_is_read);
    if (!UNIT_CHECK(element_open())) return 1;
    UNIT_RUN(loops_are_right);
    UNIT_RUN(the_reference_knows_plain_values);
    UNIT_RUN(jumps);
    UNIT_RUN(tensors_of_a_chain);
    UNIT_RUN(costs);
    UNIT_RUN(signs);
    element_close();
    return unit_end();
}
