/* How a run of a model leaves memory for each operation: on runs of a few operations of known sizes. */
#include "scout/plan/distances.h"
#include "tests/unit/scout/fusion_fixture.h"

#include <math.h>

enum { WORKSPACE = 1 << 20, READS = 2, HUGE_CACHE = 1 << 30 };

/* Each tensor has 4,000 bytes. */
static const char operations[] =
    "{\"r0\": {\"op\": \"elementwise\", \"what\": \"relu\", \"shape\": [1000], \"inputs\": [\"x\"]},"
    " \"r1\": {\"op\": \"elementwise\", \"what\": \"silu\", \"shape\": [1000], \"inputs\": [\"r0\"]},"
    " \"r2\": {\"op\": \"elementwise\", \"what\": \"gelu\", \"shape\": [1000], \"inputs\": [\"r1\"]},"
    " \"add\": {\"op\": \"elementwise\", \"what\": \"add\", \"shape\": [1000], \"inputs\": [\"r2\", \"r0\"]}}";

typedef struct site {
    const char *operation;
    int reads[READS], count; /* occurrences; -1: the model's input */
} site;

static void make_flow(const site *sites, int count) {
    operation_flow *f = list.flow = arena_array(&a, operation_flow, 1);
    *f = (operation_flow){.tensors = arena_array(&a, operation_tensor, count + 1),
                          .occurrences = arena_array(&a, operation_occurrence, count + 1),
                          .edges = arena_array(&a, int, count *(READS + 1) + 1),
                          .tensor_count = count + 1,
                          .occurrence_count = count};
    for (int k = 0; k <= count; k++)
        f->tensors[k] = (operation_tensor){
            .bytes = 4000, .source = -1, .producer = k - 1, .to = k - 1, .kept = k > 0, .type = DTYPE_FP32};
    for (int k = 0; k < count; k++) {
        operation_occurrence *at = &f->occurrences[k];
        *at = (operation_occurrence){
            .operation = (int)(named(sites[k].operation) - list.items), .times = 1, .read = f->edge_count};
        for (int n = 0; n < sites[k].count; n++) {
            operation_tensor *t = &f->tensors[sites[k].reads[n] + 1];
            f->edges[f->edge_count++] = sites[k].reads[n] + 1;
            t->kept = false, t->to = k;
        }
        at->made = f->edge_count;
        f->edges[f->edge_count++] = k + 1;
        at->after = f->edge_count;
        set_operands(f, at);
    }
}

static void find(uint64_t cache_bytes) {
    static const layouts none;
    fusion_list without = {.count = 0};
    distances_find(&list, &none, &without, cache_bytes, WORKSPACE, &a);
}

static const site residual[] = {{"r0", {-1}, 1}, {"r1", {0}, 1}, {"r2", {1}, 1}, {"add", {2, 0}, 2}};

static void in_a_large_cache_what_is_written_is_so_until_it_is_read(void) {
    UNIT_CHECK(read_text(operations, "fp32"));
    make_flow(residual, 4);
    find(HUGE_CACHE);
    UNIT_CHECK(named("r0")->written == 0 && named("r0")->distant == 0 && named("r0")->handed == 0); /* read before */
    UNIT_CHECK(named("r1")->written == 1 && named("r1")->distant == 0 && named("r1")->handed == 1);
    UNIT_CHECK(named("add")->written == 1 && named("add")->distant == 0); /* r1 has read its second operand */
    UNIT_CHECK(operation_left(named("add"), 0) == SCOUT_LEFT_WRITTEN && operation_left(named("add"), 1) == 0);
    end();
}

/* Two operations move 16,000 bytes, one 8,000. */
static void half_of_the_cache_in_between_makes_distant(void) {
    UNIT_CHECK(read_text(operations, "fp32"));
    make_flow(residual, 4);
    find(15000);
    UNIT_CHECK(named("add")->written == 1 && (named("add")->distant & 3) == 2);
    UNIT_CHECK(named("r0")->distant & 1); /* the model's input, a whole run ago */
    UNIT_CHECK(named("r1")->written == 1);
    UNIT_CHECK(operation_left(named("add"), 1) == SCOUT_LEFT_DISTANT);
    UNIT_CHECK(named("add")->crowd_written == 1 && named("r2")->crowd_written == (named("r2")->distant != 0));
    end();
}

/* In memory that became free just now an output is as near as what it takes the place of. */
static void outputs_take_what_became_free_last(void) {
    UNIT_CHECK(read_text(operations, "fp32"));
    make_flow(residual, 4);
    list.flow->tensors[0].constant = true; /* of five tensors that are read or written first, one is read */
    find(17000);
    UNIT_CHECK(fabs(named("r2")->crowd_written - 0.8) < 1e-9);
    UNIT_CHECK(named("r1")->distant == 0);
    UNIT_CHECK(named("r2")->distant == 2); /* all that two operations have left alone, as r0 is needed to the end */
    find(15000);
    UNIT_CHECK(named("r1")->distant == 2 && named("r1")->written == 1);
    end();
}

static void shares_are_of_occurrences(void) {
    static const site thrice[] = {{"r0", {-1}, 1}, {"r1", {0}, 1}, {"r1", {0}, 1}, {"add", {1, 2}, 2}};
    UNIT_CHECK(read_text(operations, "fp32"));
    make_flow(thrice, 4);
    find(HUGE_CACHE);
    UNIT_CHECK(named("r1")->written == 1 && named("r1")->handed == 0.5);
    UNIT_CHECK(named("add")->written == 3 && named("add")->handed == 1);
    end();
}

/* A sum whose one operand or the other is new, each at one of two places. */
static void what_no_tensor_has_most_often_is_still_told(void) {
    static const site sums[] = {
        {"r0", {-1}, 1}, {"r1", {0}, 1}, {"add", {1, 0}, 2}, {"r2", {2}, 1}, {"add", {2, 3}, 2}};
    UNIT_CHECK(read_text(operations, "fp32"));
    make_flow(sums, 5);
    find(HUGE_CACHE);
    UNIT_CHECK(named("add")->written == 3 && named("add")->handed == 1);
    end();
}

/* Sizes in a file may be anything. */
static void nothing_that_moves_is_no_division_by_nothing(void) {
    UNIT_CHECK(read_text(operations, "fp32"));
    make_flow(residual, 4);
    for (int k = 0; k < list.count; k++) list.items[k].rec.bytes_written = 0;
    find(15000);
    for (int k = 0; k < list.count; k++) UNIT_CHECK(isfinite(list.items[k].crowd_written));
    end();
}

static void what_moves_nothing_is_passed_over(void) {
    UNIT_CHECK(read_text(operations, "fp32"));
    make_flow(residual, 4);
    ((operation *)named("r2"))->skip_code = "no_work";
    find(HUGE_CACHE);
    UNIT_CHECK(named("r2")->handed == 0 && named("r1")->written == 1);
    UNIT_CHECK(named("add")->written == 0); /* what nothing has written */
    end();
}

static void nothing_is_known_without_a_dataflow_or_a_cache(void) {
    UNIT_CHECK(read_text(operations, "fp32"));
    list.flow = NULL;
    find(HUGE_CACHE);
    make_flow(residual, 4);
    find(0);
    for (int k = 0; k < list.count; k++) UNIT_CHECK(list.items[k].handed == 0);
    end();
}

/* A fused operation finds its tensors as its parts do. */
static void fusions_have_it_of_their_parts(void) {
    static const layouts none;
    static operation_flow empty;
    UNIT_CHECK(fusion_make_of("fp32", 4, "{\"pattern\":\"gemm+residual\",\"ops\":[\"g\",\"res\"],\"count\":1}"));
    UNIT_INT(fusions.count, 1);
    UNIT_INT(fusions.items[0].how, FUSION_SEQUENCE);
    operation *const gemm = (operation *)named("g"), *const add = (operation *)named("res");
    gemm->written = 1, gemm->handed = 0.25;
    add->written = 1, add->distant = 2, add->handed = 0.75;
    list.flow = &empty;
    distances_find(&list, &none, &fusions, HUGE_CACHE, WORKSPACE, &a);
    const operation *const fused = &fusions.items[0].fused;
    UNIT_INT((int)fused->written, 1); /* and not what the product makes for the sum */
    UNIT_CHECK(fused->distant > 1 && (fused->distant & (fused->distant - 1)) == 0 && fused->handed == 0.75);
    end();
}

static void it_goes_to_a_worker_and_back(void) {
    operation back;
    json_builder b = {NULL};
    UNIT_CHECK(read_text(operations, "fp32"));
    operation *const r0 = (operation *)named("r0");
    r0->written = 5, r0->distant = UINT64_C(1) << 63, r0->handed = 0.5, r0->crowd_written = 0.25;
    json_t *sent = operation_to_json(r0, &b);
    operation_from_json(sent, &a, &back);
    UNIT_CHECK(back.written == 5 && back.distant == UINT64_C(1) << 63 && back.handed == 0.5 &&
               back.crowd_written == 0.25);
    json_decref(sent);
    end();
}

int main(void) {
    UNIT_RUN(in_a_large_cache_what_is_written_is_so_until_it_is_read);
    UNIT_RUN(half_of_the_cache_in_between_makes_distant);
    UNIT_RUN(outputs_take_what_became_free_last);
    UNIT_RUN(shares_are_of_occurrences);
    UNIT_RUN(what_no_tensor_has_most_often_is_still_told);
    UNIT_RUN(nothing_that_moves_is_no_division_by_nothing);
    UNIT_RUN(what_moves_nothing_is_passed_over);
    UNIT_RUN(nothing_is_known_without_a_dataflow_or_a_cache);
    UNIT_RUN(fusions_have_it_of_their_parts);
    UNIT_RUN(it_goes_to_a_worker_and_back);
    return unit_end();
}
