/* What a replay says of fp32: three products in a row in half precision, whose plan is as exact as the default, or a
 * bit less than what the check of each of them allows. */
#include "scout/plan/replay.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

enum { STEPS = 3, TENSORS = 2 * STEPS + 1, SIDE = 64, MOST = 256 };

static const scout_candidate *candidates[MOST];
static scout_device_api api;
static scout_candidate coarse;
static const scout_candidate *plain; /* what it does, but for the last bits */
static int more;                     /* in units of the last place, than it makes */

static uint16_t nudged(uint16_t half) {
    const bool plain_number = (half & 0x7fff) >= 0x400 && (half & 0x7fff) < 0x7000;
    return plain_number ? (uint16_t)(half + more) : half;
}

static scout_answer launch_coarse(scout_plan *plan, const scout_args *args, scout_why *why) {
    const scout_answer answer = plain->launch(plan, args, why);
    uint16_t *const made = args->tensors[2];
    for (int k = 0; answer == SCOUT_OK && k < SIDE * SIDE; k++) made[k] = nudged(made[k]);
    return answer;
}

enum { LANES_TAKE = 4, LOOK_TAKES = 3, ALL = 1 << 20 }; /* allocations */
static int granted = ALL;

static scout_answer alloc_some(scout_device *device, uint64_t bytes, void **out, scout_why *why) {
    if (granted-- <= 0) return scout_say(why, SCOUT_NO_MEMORY, "memory", "that is too much");
    return cpu_products_api->alloc(device, bytes, out, why);
}

static bool set_up(void) {
    if (!cpu_products_open()) return false;
    api = *cpu_products_api;
    if (api.candidate_count + 1 > MOST) return false;
    memcpy(candidates, api.candidates, api.candidate_count * sizeof *candidates);
    for (uint32_t k = 0; k < api.candidate_count; k++)
        if (strcmp(candidates[k]->name, "cpu_widened") == 0) plain = candidates[k];
    if (!plain) return false;
    coarse = *plain;
    coarse.name = "coarse";
    coarse.flags &= ~(uint32_t)SCOUT_BASELINE;
    coarse.launch = launch_coarse;
    candidates[api.candidate_count++] = &coarse;
    api.candidates = candidates;
    api.alloc = alloc_some;
    return true;
}

/* What is said of fp32 behind a pass, or without one; the caller's. */
static json_t *replayed(const char *type, bool timed) {
    guard g;
    arena a;
    operation_list list;
    operation_tensor tensors[TENSORS];
    operation_occurrence occurrences[STEPS];
    int edges[3 * STEPS];
    scout_answer answer;
    scout_why why;
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    operation_from_words("gemm", "64,64,64", type, 0, NULL, &a, &list);
    const dtype of = dtype_from_name(type);
    const replay_operation product_of = {.operation = list.items[0],
                                         .rows = {{of == DTYPE_FP32 ? "cpu_tiled" : "cpu_widened", NULL},
                                                  {of == DTYPE_FP32 ? "onednn" : "coarse", NULL}}};
    for (int k = 0; k < TENSORS; k++)
        tensors[k] = (operation_tensor){.bytes = dtype_bytes(of, SIDE * SIDE),
                                        .source = -1,
                                        .producer = k > 0 && k <= STEPS ? k - 1 : -1,
                                        .from = k > 0 && k <= STEPS ? k - 1 : 0,
                                        .to = k < STEPS ? k : STEPS - 1,
                                        .constant = k > STEPS,
                                        .kept = k == STEPS,
                                        .type = of};
    for (int k = 0; k < STEPS; k++) {
        occurrences[k] = (operation_occurrence){
            .times = 1, .read = 3 * k, .made = 3 * k + 2, .after = 3 * k + 3, .operands = 3 * k, .operand_count = 3};
        edges[3 * k] = k, edges[3 * k + 1] = STEPS + 1 + k, edges[3 * k + 2] = k + 1;
    }
    const operation_flow flow = {.tensors = tensors,
                                 .occurrences = occurrences,
                                 .edges = edges,
                                 .operands = edges,
                                 .tensor_count = TENSORS,
                                 .occurrence_count = STEPS,
                                 .edge_count = 3 * STEPS,
                                 .operand_count = 3 * STEPS};
    const replay_request request = {.flow = &flow,
                                    .operations = &product_of,
                                    .operation_count = 1,
                                    .regime = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_DIRECT},
                                    .workspace_limit = 1 << 20,
                                    .plateau_bytes = 1 << 16};
    const replay_pass pass = {.number = 1, .seed = 7}, look = {.number = 1, .seed = 7, .exact = true};
    replay *r = replay_open(&api, cpu_products_device, NULL, &request, NULL);
    json_t *said = r && timed ? replay_run(r, &pass, &answer, &why) : NULL;
    json_decref(said);
    said = r ? replay_run(r, &look, &answer, &why) : NULL;
    json_t *exact = json_incref(json_object_get(json_object_get(said, "replay"), "exact"));
    if (!UNIT_CHECK(!said == !timed)) printf("%s\n", why.text);
    json_decref(said);
    replay_close(r);
    operation_list_free(&list);
    arena_free(&a);
    return exact;
}

static double error_of(const json_t *exact, const char *lane) {
    return json_number_value(json_object_get(exact, lane));
}

/* A half-precision number is off by 0.3 of 2^-11 at the root of the mean square, and three in a row by more. */
static void rounding_is_told(void) {
    static const char *const types[] = {"fp16", "bf16"};
    static const double units[] = {0x1p-11, 0x1p-8};
    more = 0;
    for (int k = 0; k < 2; k++) {
        json_t *exact = replayed(types[k], true);
        const double by_default = error_of(exact, "default"), planned = error_of(exact, "best");
        if (!UNIT_CHECK(by_default > 0.3 * units[k] && by_default < 2 * units[k]))
            printf("%s: %g\n", types[k], by_default);
        UNIT_CHECK(planned == by_default);
        UNIT_CHECK(json_is_false(json_object_get(exact, "worse")));
        json_decref(exact);
    }
}

/* Each product within its tolerance, and the model is not. */
static void what_rounds_worse_is_told(void) {
    more = 1;
    json_t *exact = replayed("fp16", true);
    const double by_default = error_of(exact, "default"), planned = error_of(exact, "best");
    if (!UNIT_CHECK(planned > 2 * by_default && planned < 20 * by_default))
        printf("%g by default, %g by the plan\n", by_default, planned);
    UNIT_CHECK(json_is_true(json_object_get(exact, "worse")));
    json_decref(exact);
}

static void what_is_not_timed_or_is_exact(void) {
    more = 0;
    UNIT_CHECK(replayed("fp16", false) == NULL);
    json_t *exact = replayed("fp32", true);
    UNIT_TEXT(json_string_value(json_object_get(exact, "not")), "it computes in fp32 itself");
    json_decref(exact);
}

/* Wherever memory ends, the look says so, and the pass before it stands. */
static void what_fails_in_fp32_is_no_fault_of_the_lanes(void) {
    int ended = 0;
    for (int k = 0; k < LOOK_TAKES; k++) {
        granted = 2 * LANES_TAKE + k;
        json_t *exact = replayed("fp16", true);
        const char *not = json_string_value(json_object_get(exact, "not"));
        ended += not &&strstr(not, "that is too much") != NULL;
        json_decref(exact);
    }
    granted = ALL;
    UNIT_INT(ended, LOOK_TAKES);
}

int main(void) {
    if (!set_up()) return 1;
    UNIT_RUN(rounding_is_told);
    UNIT_RUN(what_rounds_worse_is_told);
    UNIT_RUN(what_is_not_timed_or_is_exact);
    UNIT_RUN(what_fails_in_fp32_is_no_fault_of_the_lanes);
    cpu_products_close();
    return unit_end();
}
