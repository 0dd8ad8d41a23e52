/* Parts that become one chain: the text and tensors that come of them, and that the parts in sequence, each rounding
 * what it writes, are as right as the whole. */
#include "scout/device/cpu.h"
#include "scout/fusion/elementwise_join.h"
#include "scout/op/op.h"
#include "tests/unit/cpu/cpu_element.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

typedef struct part {
    const char *what, *inputs; /* cast: `out` */
    dtype type, out;
    int rank;
    int64_t shape[4];
    element_number number;
} part;

typedef struct join_case {
    part parts[5];
    const char *chain; /* NULL: refused, with `code` */
    const char *code;
} join_case;

#define PART(what, inputs, type, out, name, value, rank, ...)                                                          \
    {                                                                                                                  \
        what, inputs, DTYPE_##type, DTYPE_##out, rank, {__VA_ARGS__}, { name, value }                                  \
    }
static const join_case joins[] = {
    {{PART("add", "tensor,vector", FP16, NONE, NULL, 0, 3, 1, 128, 3072),
      PART("gelu", NULL, FP16, NONE, NULL, 0, 3, 1, 128, 3072)},
     "add(tensor,vector);gelu(v)",
     NULL},
    {{PART("hardsigmoid", NULL, FP32, NONE, "alpha", 0.16666667, 4, 1, 72, 1, 1),
      PART("mul", "tensor,1x72x1x1", FP32, NONE, NULL, 0, 4, 1, 72, 28, 28)},
     "hardsigmoid[alpha=0.16666667](72x1x1);mul(tensor,v)",
     NULL},
    {{PART("cast", NULL, INT64, FP32, NULL, 0, 4, 1, 1, 1, 128),
      PART("sub", "scalar,tensor", FP32, NONE, NULL, 0, 4, 1, 1, 1, 128),
      PART("mul", "tensor,scalar", FP32, NONE, NULL, 0, 4, 1, 1, 1, 128),
      PART("add", "vector,vector", FP32, NONE, NULL, 0, 4, 1, 1, 128, 128)},
     "cast[to=fp32](128);sub(scalar:fp32,v);mul(v,scalar:fp32);add(v,vector:fp32)",
     NULL},
    {{PART("cast", NULL, INT64, FP32, NULL, 0, 4, 1, 1, 1, 128),
      PART("sub", "scalar,tensor", FP32, NONE, NULL, 0, 4, 1, 1, 1, 128),
      PART("mul", "tensor,scalar", FP32, NONE, NULL, 0, 4, 1, 1, 1, 128),
      PART("add", "tensor,1x1x1x128", FP32, NONE, NULL, 0, 4, 2, 1, 64, 128)},
     "cast[to=fp32](128);sub(scalar:fp32,v);mul(v,scalar:fp32);add(tensor:fp32,v)",
     NULL},
    {{PART("and", "tensor,vector", BOOL, NONE, NULL, 0, 4, 1, 1, 64, 128),
      PART("where", "tensor,scalar,scalar", FP16, NONE, NULL, 0, 4, 1, 1, 64, 128)},
     "and(tensor,vector);where(v,scalar:fp16,scalar:fp16)",
     NULL},
    {{PART("mul", "tensor,same", BF16, NONE, NULL, 0, 2, 33, 65), PART("clip", NULL, BF16, NONE, "max", 6, 2, 33, 65),
      PART("mul", "tensor,same", BF16, NONE, NULL, 0, 2, 33, 65),
      PART("sum", "tensor,vector,tensor", BF16, NONE, NULL, 0, 2, 33, 65)},
     "mul(tensor,same);clip[max=6](v);mul(v,v);sum(v,vector,tensor)",
     NULL},
    {{PART("silu", NULL, FP16, NONE, NULL, 0, 3, 4, 16, 96), /* a view lies between */
      PART("mul", "tensor,tensor", FP16, NONE, NULL, 0, 2, 64, 96),
      PART("swiglu", "tensor,tensor", FP16, NONE, NULL, 0, 2, 64, 96)},
     "silu(tensor);mul(v,tensor);swiglu(v,tensor)",
     NULL},
    {{PART("add", "tensor,vector", FP16, NONE, NULL, 0, 2, 64, 96),
      PART("add", "tensor,tensor", FP16, NONE, NULL, 0, 3, 4, 16, 96),
      PART("cast", NULL, FP16, FP32, NULL, 0, 3, 4, 16, 96)},
     "add(tensor,vector);add(v,tensor);cast[to=fp32](v)",
     NULL},
    {{PART("add", "tensor,64x1", FP16, NONE, NULL, 0, 2, 64, 96),
      PART("gelu", NULL, FP16, NONE, NULL, 0, 3, 4, 16, 96)},
     NULL,
     "shape"},
    {{PART("add", "tensor,tensor", FP16, NONE, NULL, 0, 2, 64, 96), PART("gelu", NULL, FP16, NONE, NULL, 0, 2, 64, 97)},
     NULL,
     "shape"},
    {{PART("add", "tensor,tensor", FP16, NONE, NULL, 0, 2, 64, 96),
      PART("cumsum", NULL, FP16, NONE, NULL, 0, 2, 64, 96)},
     NULL,
     "feature"},
    {{PART("sub", "tensor,tensor", FP32, NONE, NULL, 0, 2, 64, 96), PART("sqrt", NULL, FP32, NONE, NULL, 0, 2, 64, 96)},
     NULL,
     "feature"},
};

static void build_part(element *e, const part *p) {
    element_want w = {.kind = OP_ELEMENTWISE, .what = p->what, .inputs = p->inputs, .type = p->type, .out = p->out};
    if (strcmp(p->what, "cast") == 0) w.kind = OP_MOVE;
    w.rank = p->rank;
    w.numbers[0] = p->number;
    memcpy(w.shape, p->shape, sizeof p->shape);
    element_build(e, &w);
}

static const scout_candidate *candidate_of(const scout_op *op) {
    const scout_device_api *api = cpu_device_api();
    scout_why why;
    for (uint32_t k = 0; k < api->candidate_count; k++) {
        const scout_candidate *c = api->candidates[k];
        if (c->kind == op->kind && (c->flags & SCOUT_OWN) && c->supports(op, NULL, &why) == SCOUT_OK) return c;
    }
    abort();
}

static void run_part(const scout_op *op, void **tensors) {
    const scout_candidate *c = candidate_of(op);
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why;
    if (!UNIT_CHECK(scout_prepare(c, op, NULL, NULL, &plan, &needs, &why) == SCOUT_OK)) return;
    const scout_args args = {sizeof args, tensors, NULL, NULL};
    UNIT_CHECK(c->launch(plan, &args, &why) == SCOUT_OK);
    scout_destroy(c, plan);
}

/* The parts on the joined operation's own tensors, each rounding what it writes: within what the reference allows. */
static void run_parts(element *joined, const element *parts, int count, const elementwise_join_part *where) {
    void *before = NULL;
    memset(joined->data[element_output(joined)], 0xFF, joined->op.tensors[element_output(joined)].bytes);
    for (int p = 0; p < count; p++) {
        void *tensors[SCOUT_MAX_TENSORS];
        const scout_op *op = &parts[p].op;
        const bool last = p + 1 == count;
        for (int t = 0; t < where[p].tensor_count; t++)
            tensors[t] = where[p].tensors[t] < 0 ? before : joined->data[where[p].tensors[t]];
        void *written = last ? joined->data[element_output(joined)] : malloc(op->tensors[where[p].tensor_count].bytes);
        tensors[where[p].tensor_count] = written;
        run_part(op, tensors);
        free(before);
        before = last ? NULL : written;
    }
    const scout_verdict v = element_judge(joined);
    UNIT_INT(v.wrong, 0);
}

static void join_one(const join_case *c) {
    element parts[5], joined;
    const operation *operations[5];
    elementwise_join_part where[5];
    scout_why why = {"", ""};
    int count = 0;
    for (; count < 5 && c->parts[count].what; count++) {
        build_part(&parts[count], &c->parts[count]);
        operations[count] = &parts[count].o;
    }
    memset(&joined, 0, sizeof joined);
    guard_init(&joined.guard);
    arena_init(&joined.arena, &joined.guard, (size_t)16 << 20);
    joined.built = elementwise_join(operations, count, &joined.arena, &joined.o, where, &why);
    if (!UNIT_INT(joined.built, c->chain != NULL)) printf("  %s\n", why.text);
    if (!joined.built && c->code) UNIT_TEXT(why.code, c->code);
    if (joined.built && c->chain) {
        UNIT_TEXT(oprec_field(&joined.o.rec, "chain")->text, c->chain);
        UNIT_CHECK(kinds_build(&joined.o, 0, &joined.arena, &joined.op, &why));
        UNIT_INT(joined.o.rec.bytes_read, joined.op.bytes_read);
        joined.tolerance = kinds_find(OP_ELEMENTWISE)->tolerance(&joined.op);
        element_fill(&joined, 5);
        UNIT_INT(element_run(&joined, "cpu_elementwise"), 1);
        run_parts(&joined, parts, count, where);
    }
    element_drop(&joined);
    for (int k = 0; k < count; k++) element_drop(&parts[k]);
}

static void joining(void) {
    for (size_t k = 0; k < sizeof joins / sizeof joins[0]; k++) join_one(&joins[k]);
    UNIT_INT(element_failures, 0);
}

/* Bytes that are added and clipped wrap around in a chain; quantised ones are scaled and kept within their range. */
static void quantised_parts_are_refused(void) {
    static const part two[] = {PART("add", "tensor,tensor", INT8, NONE, NULL, 0, 2, 64, 96),
                               PART("relu", NULL, INT8, NONE, NULL, 0, 2, 64, 96)};
    element parts[2];
    for (int k = 0; k < 2; k++) build_part(&parts[k], &two[k]);
    const operation *operations[] = {&parts[0].o, &parts[1].o};
    elementwise_join_part where[2];
    operation joined;
    scout_why why = {"", ""};
    UNIT_CHECK(elementwise_join(operations, 2, &parts[0].arena, &joined, where, &why));
    oprec_set_text(&parts[0].o.rec, "quant", "qdq");
    UNIT_CHECK(!elementwise_join(operations, 2, &parts[0].arena, &joined, where, &why));
    UNIT_TEXT(why.code, "feature");
    UNIT_CHECK(strstr(why.text, "quantised work, which no chain has") != NULL);
    for (int k = 0; k < 2; k++) element_drop(&parts[k]);
}

static void types_that_no_chain_holds_are_named(void) {
    static const part two[] = {PART("add", "tensor,tensor", FP16, NONE, NULL, 0, 2, 64, 96),
                               PART("cast", NULL, FP16, FP64, NULL, 0, 2, 64, 96)};
    element parts[2];
    for (int k = 0; k < 2; k++) build_part(&parts[k], &two[k]);
    const operation *operations[] = {&parts[0].o, &parts[1].o};
    elementwise_join_part where[2];
    operation joined;
    scout_why why = {"", ""};
    UNIT_CHECK(!elementwise_join(operations, 2, &parts[0].arena, &joined, where, &why));
    UNIT_TEXT(why.code, "type");
    if (!UNIT_CHECK(strstr(why.text, "\"fp64](v)\"") != NULL)) printf("  %s\n", why.text);
    for (int k = 0; k < 2; k++) element_drop(&parts[k]);
}

int main(void) {
    if (!UNIT_CHECK(element_open())) return 1;
    UNIT_RUN(joining);
    UNIT_RUN(quantised_parts_are_refused);
    UNIT_RUN(types_that_no_chain_holds_are_named);
    element_close();
    return unit_end();
}
