/* A plan with groups on a device whose clock only launches move: two products with an activation behind each, which one
 * launch may do at once. The fake activation copies, and the fake fused product leaves it out: both are the same. */
#include "scout/measure/figures.h"
#include "scout/plan/replay.h"
#include "tests/fakes/fake_device.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

enum { PRODUCTS = 2, STEPS = 2 * PRODUCTS, X = 0, WEIGHTS = STEPS + 1, TENSORS = STEPS + 1 + PRODUCTS };

static guard g;
static arena a;
static operation_list list;
static replay_operation operations[2]; /* product, activation */
static replay_fusion fused;
static operation_tensor tensors[TENSORS];
static operation_occurrence occurrences[STEPS];
static int edges[3 * STEPS], order[STEPS];
static plan_group groups[STEPS];
static plan_run planned;
static operation_flow flow;
static replay_request request;
static scout_device *d;
static json_t *result, *last, *facts;
static scout_answer answer;
static scout_why why;

static void place(int part, int tensor, const char *name, const char *of) {
    fused.parts[part].places[tensor] = (fusion_place){.tensor = name, .of = of};
    if (fused.parts[part].place_count <= tensor) fused.parts[part].place_count = tensor + 1;
}

static void make_flow(void) {
    int edge = 0;
    for (int k = 0; k <= STEPS; k++)
        tensors[k] = (operation_tensor){.bytes = 1024,
                                        .source = -1,
                                        .producer = k - 1,
                                        .from = k > 0 ? k - 1 : 0,
                                        .to = k < STEPS ? k : STEPS - 1,
                                        .kept = k == STEPS,
                                        .type = DTYPE_FP32};
    for (int k = 0; k < PRODUCTS; k++)
        tensors[WEIGHTS + k] = (operation_tensor){
            .bytes = 1024, .source = -1, .producer = -1, .to = 2 * k, .constant = true, .type = DTYPE_FP32};
    for (int k = 0; k < STEPS; k++) {
        occurrences[k] = (operation_occurrence){.operation = k % 2, .place = k / 2, .times = 1, .read = edge};
        edges[edge++] = k;
        if (k % 2 == 0) edges[edge++] = WEIGHTS + k / 2;
        occurrences[k].made = edge;
        edges[edge++] = k + 1;
        occurrences[k].after = edge;
        occurrences[k].operands = occurrences[k].read;
        occurrences[k].operand_count = edge - occurrences[k].read;
    }
    flow = (operation_flow){.tensors = tensors,
                            .occurrences = occurrences,
                            .edges = edges,
                            .operands = edges,
                            .tensor_count = TENSORS,
                            .occurrence_count = STEPS,
                            .edge_count = edge,
                            .operand_count = edge};
}

static void begin(const char *fused_by) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    d = fake_open();
    operation_from_words("gemm", "16,16,16", "fp32", 0, NULL, &a, &list);
    const int64_t shape[] = {16, 16};
    operation activation = {.id = "activation", .name = "activation", .count = 1, .pattern = "DENSE"};
    activation.rec = (oprec){.kind = OP_ELEMENTWISE, .what = "relu", .type = DTYPE_FP32, .flops = 256};
    oprec_set_shape(&activation.rec, &a, 2, shape);
    operations[0] = (replay_operation){.operation = list.items[0], .rows = {{"right", ""}, {NULL, NULL}}};
    operations[1] = (replay_operation){.operation = activation, .rows = {{"copies", ""}, {NULL, NULL}}};
    operations[0].operation.id = "product";
    fused = (replay_fusion){.parts = arena_array(&a, fusion_part, 2), .part_count = 2};
    for (int k = 0; k < 2; k++) fused.parts[k].places = arena_array(&a, fusion_place, 3);
    fused.of = operations[0];
    fused.of.operation.id = "both";
    oprec_set_text(&fused.of.operation.rec, "activation", "relu");
    fused.of.rows[0] = (replay_row){fused_by, ""};
    fused.parts[0].operation = &operations[0].operation;
    fused.parts[1].operation = &operations[1].operation;
    place(0, 0, "a", "a");
    place(0, 1, "b", "b");
    place(0, 2, "c", "@0");
    place(1, 0, "a", "@0");
    place(1, 1, "y", "c");
    make_flow();
    for (int k = 0; k < STEPS; k++) order[k] = k;
    for (int k = 0; k < PRODUCTS; k++) groups[k] = (plan_group){.fusion = 0, .first = 2 * k, .count = 2};
    planned = (plan_run){.order = order, .groups = groups, .occurrence_count = STEPS, .group_count = PRODUCTS};
    request = (replay_request){.flow = &flow,
                               .plan = &planned,
                               .operations = operations,
                               .operation_count = 2,
                               .fusions = &fused,
                               .fusion_count = 1,
                               .regime = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_GRAPH},
                               .workspace_limit = 1 << 16,
                               .plateau_bytes = 16384};
}

static void run(int passes) {
    replay *r = replay_open(&fake_api, d, NULL, &request, NULL);
    if (!UNIT_CHECK(r != NULL)) return;
    for (int k = 1; k <= passes; k++) {
        const replay_pass pass = {.number = k, .seed = (uint64_t)k};
        json_t *seen = replay_run(r, &pass, &answer, &why);
        if (!seen) break;
        result = figures_add(result, seen);
        json_decref(last);
        last = seen;
    }
    facts = json_object_get(last, "replay");
    replay_close(r);
}

static void end(void) {
    json_decref(result);
    result = NULL;
    if (!d->lost) {
        UNIT_INT(d->live_allocations, 0);
        UNIT_INT(d->live_sequences, 0);
        UNIT_INT(d->live_plans, 0);
    }
    fake_close(d);
    operation_list_free(&list);
    arena_free(&a);
}

static double time_of(const char *name) {
    const json_t *rows = json_object_get(result, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *one = json_array_get(rows, k);
        if (strcmp(json_get_text(one, "name"), name) == 0)
            return json_get_number(json_object_get(one, "time_us"), "median");
    }
    return 0;
}

static bool about(double got, double want) {
    if (fabs(got / want - 1) < 0.02) return true;
    printf("got %g, want %g\n", got, want);
    return false;
}

static long long fact(const char *of, const char *key) { return json_get_int(json_object_get(facts, of), key, -1); }

static const char *apart(const char *key) {
    return json_get_text(json_array_get(json_object_get(facts, "apart"), 0), key);
}

#define USE(...)                                                                                                       \
    do {                                                                                                               \
        static const scout_candidate *const used[] = {__VA_ARGS__};                                                    \
        fake_use((int)(sizeof used / sizeof *used), used);                                                             \
    } while (0)

static void groups_run_in_the_second_lane(void) {
    begin("right");
    USE(&fake_right, &fake_copies);
    run(2);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_CHECK(about(time_of("default"), 600));
    UNIT_CHECK(about(time_of("best"), 400));
    UNIT_INT(fact("groups", "operations"), 4);
    UNIT_INT(fact("groups", "groups"), 2);
    UNIT_INT(fact("groups", "fused"), 2);
    UNIT_INT(fact("groups", "launches"), 2);
    UNIT_INT(json_array_size(json_object_get(facts, "apart")), 0);
    end();
    begin("right");
    groups[0] = (plan_group){.fusion = -1, .first = 0, .count = 1};
    groups[1] = (plan_group){.fusion = -1, .first = 1, .count = 1};
    groups[2] = (plan_group){.fusion = 0, .first = 2, .count = 2};
    planned.group_count = 3;
    operations[0].rows[1] = (replay_row){"fast", ""};
    USE(&fake_right, &fake_fast, &fake_copies);
    run(1);
    UNIT_CHECK(about(time_of("best"), 150 + 100 + 200)); /* the first product by its best, the second in its group */
    UNIT_INT(fact("groups", "groups"), 3);
    end();
}

static void groups_in_a_loop_run_as_often_as_it_does(void) {
    begin("right");
    USE(&fake_right, &fake_copies);
    occurrences[0].times = occurrences[1].times = 5;
    run(2);
    UNIT_INT(json_get_int(facts, "launches", -1), 12);
    UNIT_INT(fact("groups", "launches"), 6);
    UNIT_CHECK(about(time_of("default"), 5 * 300 + 300));
    UNIT_CHECK(about(time_of("best"), 5 * 200 + 200));
    end();
}

/* The second product needs nothing of the first one: its group may run before. */
static void groups_run_in_the_plans_order(void) {
    static const int other[] = {2, 3, 0, 1};
    begin("right");
    USE(&fake_right, &fake_copies);
    edges[occurrences[2].read] = X;
    tensors[X].to = 2;
    tensors[2].kept = true;
    memcpy(order, other, sizeof other);
    run(1);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(fact("groups", "fused"), 2);
    UNIT_CHECK(about(time_of("default"), 600) && about(time_of("best"), 400));
    end();
}

/* Of one product and its activation: what lies between them is needed by the defaults alone. */
static void what_lies_between_takes_no_memory(void) {
    begin("right");
    USE(&fake_right, &fake_copies);
    flow.occurrence_count = planned.occurrence_count = 2;
    planned.group_count = 1;
    tensors[2].kept = true;
    run(1);
    UNIT_INT(fact("memory", "activation_bytes"), 2 * 1024);
    UNIT_INT(fact("memory", "best_activation_bytes"), 1024);
    end();
}

static void a_wrong_group_is_replaced_by_its_parts(void) {
    begin("wrong");
    USE(&fake_right, &fake_fast, &fake_copies, &fake_wrong);
    run(2);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_TEXT(apart("operation"), "both");
    UNIT_TEXT(apart("code"), "samples");
    UNIT_CHECK(about(time_of("default"), 600));
    UNIT_CHECK(time_of("best") == 0); /* nothing else is proven */
    UNIT_INT(json_array_size(json_object_get(facts, "left_out")), 0);
    end();
    begin("wrong");
    operations[0].rows[1] = (replay_row){"fast", ""};
    run(2);
    UNIT_TEXT(apart("operation"), "both");
    UNIT_CHECK(about(time_of("best"), 2 * 250)); /* the parts by their best */
    UNIT_INT(fact("groups", "fused"), 0);
    UNIT_INT(fact("groups", "groups"), 4);
    end();
}

static void groups_that_cannot_run_are_replaced(void) {
    static const char *const bad[] = {"fails", "uncapturable"};
    for (int k = 0; k < 2; k++) {
        begin(bad[k]);
        USE(&fake_right, &fake_fast, &fake_copies, &fake_fails, &fake_uncapturable);
        operations[0].rows[1] = (replay_row){"fast", ""};
        run(2);
        UNIT_INT(answer, SCOUT_OK);
        UNIT_TEXT(apart("operation"), "both");
        UNIT_CHECK(about(time_of("default"), 600) && about(time_of("best"), 500));
        end();
    }
}

/* Each product's input is added to what it makes, so its group has it as input and as residual. (The fakes leave the
 * sum out, as they do the activation.) */
static void what_a_group_takes_twice_has_one_content(void) {
    begin("right");
    USE(&fake_right, &fake_copies);
    operations[1].operation.rec.what = "add";
    oprec_set_text(&operations[1].operation.rec, "inputs", "tensor,tensor");
    oprec_set_int(&fused.of.operation.rec, "residual", 1);
    place(1, 1, "b", "residual");
    place(1, 2, "y", "c");
    int edge = 0;
    for (int k = 0; k < STEPS; k++) {
        occurrences[k].read = edge;
        edges[edge++] = k;
        edges[edge++] = k % 2 ? k - 1 : WEIGHTS + k / 2;
        occurrences[k].made = edge;
        edges[edge++] = k + 1;
        occurrences[k].after = edge;
        occurrences[k].operands = occurrences[k].read;
        occurrences[k].operand_count = 3;
        if (k % 2) tensors[k - 1].to = k;
    }
    flow.edge_count = flow.operand_count = edge;
    run(1);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(fact("groups", "fused"), 2);
    UNIT_INT(json_array_size(json_object_get(facts, "apart")), 0);
    end();
}

/* A part that takes no part takes its groups with it: both lanes do the same work. */
static void a_part_that_is_left_out(void) {
    begin("right");
    USE(&fake_right, &fake_fails, &fake_copies);
    operations[1].rows[0] = (replay_row){"fails", ""};
    run(1);
    UNIT_CHECK(about(time_of("default"), 400));
    UNIT_CHECK(time_of("best") == 0);
    UNIT_INT(json_array_size(json_object_get(facts, "left_out")), 1);
    end();
}

static void packed_weights_are_packed_for_groups_too(void) {
    begin("packs");
    fused.of.rows[0].variant = "order=0";
    USE(&fake_right, &fake_packs, &fake_copies);
    run(2);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(json_array_size(json_object_get(facts, "apart")), 0);
    UNIT_INT(fact("memory", "packed_bytes"), 2 * 1024);
    UNIT_INT(fact("memory", "weight_bytes"), 2 * 1024); /* the defaults read them as they are */
    end();
}

/* ---- what cannot be told by the dataflow ---- */

static void refused(const char *what) {
    USE(&fake_right, &fake_copies);
    run(1);
    UNIT_TEXT(apart("operation"), "both");
    UNIT_TEXT(apart("code"), "layout");
    if (!UNIT_CHECK(strstr(apart("text"), what) != NULL)) printf("it says: %s\n", apart("text"));
    UNIT_CHECK(about(time_of("default"), 600));
    end();
}

static void what_the_dataflow_has_not(void) {
    begin("right");
    fused.parts[0].places[1].offset = 64;
    refused("has a slice of a tensor that is nowhere whole");
    begin("right");
    fused.parts[1].places[1].of = "d";
    refused("lies in a tensor that the fused operation has not");
    begin("right");
    tensors[1].kept = true; /* an output of the model */
    refused("makes what something else needs");
    begin("right");
    edges[occurrences[1].read] = X; /* the activation of something else */
    tensors[1].to = 0;
    refused("does not read what a part before it makes");
}

static void a_stranger_reads_what_lies_between(void) {
    begin("right");
    edges[occurrences[2].read] = 1; /* the second product reads what the first one makes */
    planned.groups[1] = (plan_group){.fusion = -1, .first = 2, .count = 1};
    planned.groups[2] = (plan_group){.fusion = -1, .first = 3, .count = 1};
    planned.group_count = 3;
    refused("makes what something else needs");
}

int main(void) {
    UNIT_RUN(groups_run_in_the_second_lane);
    UNIT_RUN(groups_in_a_loop_run_as_often_as_it_does);
    UNIT_RUN(groups_run_in_the_plans_order);
    UNIT_RUN(what_lies_between_takes_no_memory);
    UNIT_RUN(a_wrong_group_is_replaced_by_its_parts);
    UNIT_RUN(groups_that_cannot_run_are_replaced);
    UNIT_RUN(what_a_group_takes_twice_has_one_content);
    UNIT_RUN(a_part_that_is_left_out);
    UNIT_RUN(packed_weights_are_packed_for_groups_too);
    UNIT_RUN(what_the_dataflow_has_not);
    UNIT_RUN(a_stranger_reads_what_lies_between);
    json_decref(last);
    return unit_end();
}
