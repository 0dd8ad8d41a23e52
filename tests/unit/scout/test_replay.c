/* A model of three products in a row on a device whose clock only launches move: what is replayed, what is left out,
 * and what is found wrong. */
#include "scout/measure/figures.h"
#include "scout/plan/replay_internal.h"
#include "tests/fakes/fake_device.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { STEPS = 3, TENSORS = 2 * STEPS + 1 };

static guard g;
static arena a;
static operation_list lists[2];
static replay_operation operations[2];
static operation_tensor tensors[TENSORS + 1]; /* the last one is a test's own */
static operation_occurrence occurrences[STEPS];
static int edges[3 * STEPS + 1], operands[3 * STEPS + 1];
static operation_flow flow;
static replay_request request;
static scout_device *d;
static json_t *result;
static scout_answer answer;
static scout_why why;
static bool in_place;

/* t0 · w0 = t1, t1 · w1 = t2, t2 · w2 = t3; the last one is of another operation of the same shape. */
static void begin(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    d = fake_open();
    for (int k = 0; k < 2; k++) {
        operation_from_words("gemm", "16,16,16", "fp32", 0, NULL, &a, &lists[k]);
        operations[k] = (replay_operation){.operation = lists[k].items[0], .rows = {{"right", ""}, {NULL, NULL}}};
        operations[k].operation.id = k == 0 ? "first" : "second";
    }
    for (int k = 0; k <= STEPS; k++)
        tensors[k] = (operation_tensor){.bytes = 1024,
                                        .source = -1,
                                        .producer = k - 1,
                                        .from = k > 0 ? k - 1 : 0,
                                        .to = k < STEPS ? k : STEPS - 1,
                                        .type = DTYPE_FP32};
    for (int k = 0; k < STEPS; k++) {
        tensors[STEPS + 1 + k] = (operation_tensor){
            .bytes = 1024, .source = -1, .producer = -1, .from = 0, .to = k, .constant = true, .type = DTYPE_FP32};
        occurrences[k] = (operation_occurrence){.operation = k == STEPS - 1,
                                                .times = 1,
                                                .read = 3 * k,
                                                .made = 3 * k + 2,
                                                .after = 3 * k + 3,
                                                .operands = 3 * k,
                                                .operand_count = 3};
        edges[3 * k] = k, edges[3 * k + 1] = STEPS + 1 + k, edges[3 * k + 2] = k + 1;
    }
    flow = (operation_flow){.tensors = tensors,
                            .occurrences = occurrences,
                            .edges = edges,
                            .operands = edges,
                            .tensor_count = TENSORS,
                            .occurrence_count = STEPS,
                            .edge_count = 3 * STEPS,
                            .operand_count = 3 * STEPS};
    request = (replay_request){.flow = &flow,
                               .operations = operations,
                               .operation_count = 2,
                               .regime = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_GRAPH},
                               .workspace_limit = 1 << 16,
                               .plateau_bytes = 16384};
    in_place = false;
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
    for (int k = 0; k < 2; k++) operation_list_free(&lists[k]);
    arena_free(&a);
    fake_api.has_graphs = 1;
}

static void best_of(int which, const char *name) { operations[which].rows[1] = (replay_row){name, ""}; }

static json_t *facts; /* of the last pass; borrowed */
static json_t *last;

static void run(int passes) {
    replay *r = replay_open(&fake_api, d, NULL, &request, NULL);
    if (!UNIT_CHECK(r != NULL)) return;
    for (int k = 1; k <= passes; k++) {
        const replay_pass pass = {.number = k, .seed = (uint64_t)k, .in_place = in_place};
        json_t *seen = replay_run(r, &pass, &answer, &why);
        if (!seen) break;
        result = figures_add(result, seen);
        json_decref(last);
        last = seen;
    }
    facts = json_object_get(last, "replay");
    replay_close(r);
}

static double time_of(const char *name) {
    const json_t *rows = json_object_get(result, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *one = json_array_get(rows, k);
        if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
            return json_number_value(json_object_get(json_object_get(one, "time_us"), "median"));
    }
    return 0;
}

static bool about(double got, double want) {
    if (fabs(got / want - 1) < 0.02) return true;
    printf("got %g, want %g\n", got, want);
    return false;
}

static long long fact(const char *of, const char *key) {
    return json_integer_value(json_object_get(json_object_get(facts, of), key));
}

static const char *named(const char *list, const char *key) {
    const json_t *one = json_array_get(json_object_get(facts, list), 0);
    const char *said = json_string_value(json_object_get(one, key));
    return said ? said : "";
}

#define USE(...)                                                                                                       \
    do {                                                                                                               \
        static const scout_candidate *const used[] = {__VA_ARGS__};                                                    \
        fake_use((int)(sizeof used / sizeof *used), used);                                                             \
    } while (0)

/* Eighteen launches of 200 us: no run of them is left alone, and each millisecond is now and then. */
static void a_run_is_put_together_of_pieces(uint32_t steal_each, bool undisturbed) {
    begin();
    USE(&fake_right, &fake_fast);
    for (int k = 0; k < STEPS; k++) occurrences[k].times = 6;
    best_of(0, "fast");
    fake_api.has_graphs = 0;
    fake_api.stolen = fake_stolen;
    d->steal_each = steal_each;
    run(4);
    fake_api.stolen = NULL;
    UNIT_INT(answer, SCOUT_OK);
    UNIT_CHECK((fabs(time_of("default") / 3600 - 1) < 1e-6) == undisturbed);
    UNIT_CHECK((fabs(time_of("best") / 3000 - 1) < 1e-6) == undisturbed);
    end();
}

static void other_work_takes_from_every_run(void) {
    a_run_is_put_together_of_pieces(13, true);
    a_run_is_put_together_of_pieces(100000, true);
}

static void other_work_takes_from_every_piece(void) { a_run_is_put_together_of_pieces(1, false); }

static void both_lanes(void) {
    begin();
    USE(&fake_right, &fake_fast);
    best_of(0, "fast");
    run(4);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_CHECK(about(time_of("default"), 600));
    UNIT_CHECK(about(time_of("best"), 500));
    UNIT_INT(json_integer_value(json_object_get(facts, "launches")), 3);
    UNIT_INT(fact("bound", "found"), 9);
    UNIT_INT(fact("bound", "of"), 9);
    UNIT_INT(fact("memory", "weight_bytes"), 3 * 1024);
    UNIT_INT(fact("memory", "weight_copies"), 6); /* 16384 bytes go through before one comes again */
    UNIT_INT(fact("memory", "activation_bytes"), 2 * 1024);
    UNIT_INT(fact("memory", "activation_least_bytes"), 2 * 1024);
    UNIT_INT(fact("memory", "input_bytes"), 1024);
    UNIT_INT(json_array_size(json_object_get(facts, "left_out")), 0);
    UNIT_INT(json_array_size(json_object_get(facts, "as_default")), 0);
    end();
}

static void nothing_proven_is_one_lane(void) {
    begin();
    USE(&fake_right);
    best_of(1, "right");
    run(2);
    UNIT_CHECK(about(time_of("default"), 600));
    UNIT_CHECK(time_of("best") == 0);
    end();
}

static void packed_weights(void) {
    begin();
    USE(&fake_right, &fake_packs);
    operations[0].rows[0] = (replay_row){"packs", "order=0"};
    run(2);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(fact("memory", "weight_bytes"), 1024); /* of the second operation: others are only packed */
    UNIT_INT(fact("memory", "packed_bytes"), 2 * 1024);
    end();
}

/* A bias that is a part of t1. */
static void what_a_step_makes_is_no_weight(void) {
    begin();
    USE(&fake_right);
    oprec_set_text(&operations[1].operation.rec, "bias", "m");
    tensors[1].to = STEPS - 1;
    tensors[TENSORS] =
        (operation_tensor){.bytes = 64, .source = 1, .producer = 0, .from = 0, .to = STEPS - 1, .type = DTYPE_FP32};
    occurrences[STEPS - 1].made++;
    occurrences[STEPS - 1].after++;
    edges[3 * STEPS] = edges[3 * STEPS - 1];
    edges[3 * STEPS - 1] = TENSORS;
    const int own[] = {STEPS - 1, 2 * STEPS, STEPS, TENSORS};
    memcpy(operands, edges, sizeof edges);
    memcpy(operands + 3 * (STEPS - 1), own, sizeof own);
    occurrences[STEPS - 1].operand_count++;
    flow.operands = operands;
    flow.tensor_count++;
    flow.edge_count++;
    flow.operand_count = flow.edge_count;
    run(1);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(fact("bound", "found"), 10);
    UNIT_INT(fact("memory", "weight_bytes"), 3 * 1024);
    UNIT_INT(fact("memory", "activation_bytes"), 3 * 1024);
    end();
}

static void a_wrong_one_is_found(void) {
    begin();
    USE(&fake_right, &fake_wrong);
    best_of(1, "wrong");
    run(2);
    UNIT_TEXT(named("as_default", "operation"), "second");
    UNIT_TEXT(named("as_default", "code"), "samples");
    UNIT_TEXT(json_string_value(json_object_get(json_object_get(facts, "check"), "worst")), "second");
    UNIT_CHECK(about(time_of("default"), 600));
    UNIT_CHECK(time_of("best") == 0);
    end();
}

static scout_device_api usual; /* what a test puts back */
static int compared, downloads;
static scout_answer compare_there(scout_device *of, uint32_t want_type, const void *want, uint32_t got_type,
                                  const void *got, uint64_t count, scout_distance *out, scout_why *reason) {
    (void)of, (void)reason;
    compared++;
    replay_numbers_add(want_type, want, got_type, got, count, out);
    return SCOUT_OK;
}

static scout_answer count_download(scout_device *of, void *to, const void *from, uint64_t bytes, scout_why *reason) {
    downloads++;
    return usual.download(of, to, from, bytes, reason);
}

/* Once it ran something, it has no memory left. */
static bool ran;
static scout_answer note_run(scout_device *of, scout_sequence *sequence, uint32_t repeats, double *seconds,
                             scout_why *reason) {
    ran = true;
    return usual.run(of, sequence, repeats, seconds, reason);
}

static scout_answer refuse_then(scout_device *of, uint64_t bytes, void **out, scout_why *reason) {
    return ran ? scout_say(reason, SCOUT_NO_MEMORY, "memory", "none is left") : usual.alloc(of, bytes, out, reason);
}

static scout_answer lose_it(scout_device *of, uint32_t want_type, const void *want, uint32_t got_type, const void *got,
                            uint64_t count, scout_distance *out, scout_why *reason) {
    (void)want_type, (void)want, (void)got_type, (void)got, (void)count, (void)out;
    of->lost = true;
    return scout_say(reason, SCOUT_LOST, "poisoned", "it was lost");
}

static void release_alive(scout_device *of, void *memory) {
    UNIT_CHECK(!of->lost);
    usual.release(of, memory);
}

static void a_device_lost_in_a_comparison(void) {
    begin();
    USE(&fake_right, &fake_fast);
    usual = fake_api;
    fake_api.distance = lose_it;
    fake_api.release = release_alive;
    best_of(1, "fast");
    run(1);
    UNIT_INT(answer, SCOUT_LOST);
    UNIT_CHECK(result == NULL);
    fake_api = usual;
    end();
}

/* What is held stays on a device that compares, and comes here where it has no room. */
static void a_device_compares_what_it_made(void) {
    for (int room = 1; room >= 0; room--) {
        begin();
        USE(&fake_right, &fake_wrong);
        usual = fake_api;
        fake_api.distance = compare_there;
        fake_api.download = count_download;
        fake_api.run = note_run;
        if (!room) fake_api.alloc = refuse_then;
        best_of(1, "wrong");
        ran = false;
        compared = downloads = 0;
        run(1);
        UNIT_TEXT(named("as_default", "operation"), "second");
        UNIT_TEXT(named("as_default", "code"), "samples");
        UNIT_CHECK(about(time_of("default"), 600));
        UNIT_CHECK((compared > 1) == (room == 1));
        UNIT_CHECK((downloads > 0) == (room == 0));
        fake_api = usual;
        end();
    }
}

static void what_cannot_run_is_left_out(void) {
    begin();
    USE(&fake_right, &fake_fails, &fake_fast);
    operations[1].rows[0] = (replay_row){"fails", ""};
    best_of(0, "fast");
    run(2);
    UNIT_TEXT(named("left_out", "operation"), "second");
    UNIT_CHECK(about(time_of("default"), 400));
    UNIT_CHECK(about(time_of("best"), 300));
    end();
    begin();
    best_of(0, "fails");
    run(1);
    UNIT_TEXT(named("as_default", "operation"), "first");
    UNIT_CHECK(about(time_of("default"), 600));
    end();
}

static void a_best_that_cannot_be_recorded(void) {
    begin();
    USE(&fake_right, &fake_uncapturable, &fake_fast);
    best_of(0, "fast");
    best_of(1, "uncapturable");
    run(2);
    UNIT_TEXT(named("as_default", "operation"), "second");
    UNIT_INT(json_array_size(json_object_get(facts, "left_out")), 0);
    UNIT_CHECK(about(time_of("default"), 600));
    UNIT_CHECK(about(time_of("best"), 500));
    end();
    begin();
    best_of(1, "uncapturable");
    run(1);
    UNIT_CHECK(about(time_of("default"), 600));
    UNIT_CHECK(time_of("best") == 0);
    end();
}

static void exclusions_and_lost_devices(void) {
    const measure_exclusion lost = {"lost", "", ROW_CRASHED, {"poisoned", "it was lost before"}};
    begin();
    USE(&fake_right, &fake_lost);
    best_of(0, "lost");
    run(1);
    UNIT_INT(answer, SCOUT_LOST);
    UNIT_CHECK(result == NULL);
    end();
    begin();
    best_of(0, "lost");
    request.exclusions = &lost;
    request.exclusion_count = 1;
    run(1);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_TEXT(named("as_default", "code"), "poisoned");
    end();
}

static void loops_run_as_often_as_they_do(void) {
    begin();
    USE(&fake_right);
    occurrences[0].times = occurrences[1].times = 5;
    run(2);
    UNIT_INT(json_integer_value(json_object_get(facts, "launches")), 11);
    UNIT_CHECK(about(time_of("default"), 2200));
    end();
    begin();
    occurrences[0].times = occurrences[1].times = 200; /* of 401 launches not all 64 copies are recorded */
    request.plateau_bytes = 64 * 3072;
    run(1);
    UNIT_INT(fact("memory", "weight_copies"), 49);
    end();
    begin();
    occurrences[2].times = INT64_MAX;
    run(1);
    UNIT_TEXT(named("left_out", "operation"), "second");
    end();
}

static void memory_that_is_short(void) {
    begin();
    USE(&fake_right);
    d->limit_bytes = 7000; /* all of it takes 6 KB, and a tenth is left to others */
    run(1);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(fact("memory", "weight_copies"), 1);
    UNIT_INT(fact("memory", "weights_shared"), 0);
    end();
    begin();
    d->limit_bytes = 6200;
    run(1);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(fact("memory", "weights_shared"), 1);
    UNIT_INT(fact("memory", "weight_bytes"), 2 * 1024);
    end();
    begin();
    d->limit_bytes = 4000;
    run(1);
    UNIT_INT(answer, SCOUT_NO_MEMORY);
    end();
}

static void infinities_at_the_end_are_counted(void) {
    begin();
    USE(&fake_right);
    run(1);
    UNIT_CHECK(json_object_get(facts, "nonfinite") == NULL);
    end();
    begin();
    d->fill_factor = 1e30F;
    run(1);
    UNIT_INT(answer, SCOUT_OK);
    UNIT_INT(json_integer_value(json_object_get(facts, "nonfinite")), 256);
    end();
}

static uint32_t state = 7;
static uint32_t next(void) { return (state = state * 1664525u + 1013904223u) >> 8; }

static double half(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double x = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                                    : ldexp(exponent ? 1024 + fraction : fraction, (exponent ? exponent : 1) - 25);
    return h & 0x8000 ? -x : x;
}

static double naive(const double *x, const double *y, size_t count) {
    double off = 0, all = 0;
    for (size_t k = 0; k < count; k++) {
        if (isfinite(x[k]) != isfinite(y[k])) return INFINITY;
        if (!isfinite(x[k])) continue;
        off += (x[k] - y[k]) * (x[k] - y[k]);
        all += x[k] * x[k];
    }
    return off == 0 ? 0 : all > 0 ? sqrt(off / all) : (double)INFINITY;
}

static double relative(uint32_t type, const void *want, const void *got, size_t count, uint64_t *infinite) {
    scout_distance found = {.size = sizeof found};
    replay_numbers_add(type, want, type, got, count, &found);
    *infinite = found.infinite;
    return replay_numbers_relative(&found);
}

static bool same(double got, double want) { return got == want || fabs(got / want - 1) < 1e-12; }

/* Pieces of any length, with what is infinite or none in both, in one, or nowhere. */
static void halves_are_compared_as_they_are(void) {
    enum { MOST = 1500 };
    static uint16_t want[MOST], got[MOST];
    static double x[MOST], y[MOST];
    int infinite = 0, finite = 0;
    for (int turn = 0; turn < 400; turn++) {
        const size_t count = next() % MOST, odd = count ? next() % count : 0;
        const uint32_t kind = next() % 4;
        for (size_t k = 0; k < count; k++) {
            want[k] = (uint16_t)next();
            if ((want[k] & 0x7c00) == 0x7c00 && (kind > 0 || next() % 2)) want[k] &= 0xbfff;
            got[k] = (want[k] & 0x7c00) == 0x7c00 ? want[k] : want[k] ^ (uint16_t)(next() % 4);
            if (kind == 2 && k == odd) got[k] = 0x7c00 | (uint16_t)(next() % 2);
            x[k] = half(want[k]), y[k] = half(got[k]);
        }
        const double off = naive(x, y, count);
        uint64_t seen = 0, there = 0;
        for (size_t k = 0; k < count; k++) there += !isfinite(y[k]);
        UNIT_CHECK(same(relative(SCOUT_FP16, want, got, count, &seen), off));
        UNIT_INT(seen, there);
        infinite += isinf(off);
        finite += !isinf(off);
    }
    UNIT_CHECK(infinite > 50 && finite > 200);
    UNIT_INT(replay_held_bytes(2002), 2016); /* what is held behind it begins where a device can read it */
    UNIT_INT(replay_held_bytes(2016), 2016);
}

static void floats_are_compared_as_they_are(void) {
    enum { MOST = 700 };
    static float want[MOST], got[MOST];
    static double x[MOST], y[MOST];
    for (int turn = 0; turn < 200; turn++) {
        const size_t count = next() % MOST, odd = count ? next() % count : 0;
        for (size_t k = 0; k < count; k++) {
            want[k] = (float)((double)next() / 1e6 - 8);
            got[k] = want[k] + (next() % 3 == 0 ? 1e-4f : 0);
            if (k == odd && turn % 3 == 0) want[k] = NAN;
            if (k == odd && turn % 6 == 0) got[k] = INFINITY;
            x[k] = (double)want[k], y[k] = (double)got[k];
        }
        uint64_t seen = 0;
        UNIT_CHECK(same(relative(SCOUT_FP32, want, got, count, &seen), naive(x, y, count)));
        UNIT_INT(seen, count > 0 && turn % 6 == 0);
    }
}

static void in_place_on_a_host(void) {
    begin();
    USE(&fake_right, &fake_fast);
    fake_api.has_graphs = 0;
    best_of(0, "fast");
    in_place = true;
    run(1);
    const json_t *list = json_object_get(facts, "in_place"), *first = json_array_get(list, 0);
    UNIT_INT(json_array_size(list), 2);
    UNIT_TEXT(json_string_value(json_object_get(first, "operation")), "first");
    UNIT_CHECK(about(json_number_value(json_object_get(first, "default_us")), 400));
    UNIT_CHECK(about(json_number_value(json_object_get(first, "best_us")), 300));
    end();
}

static scout_answer trace_launches(scout_device *of, uint32_t launches, scout_enqueue enqueue, void *context,
                                   uint32_t most, scout_trace_event *events, uint32_t *count, scout_why *reason) {
    UNIT_CHECK(launches <= most);
    for (uint32_t k = 0; k < launches; k++) {
        events[k] = (scout_trace_event){.start_s = of->now_s, .launch = k};
        if (enqueue(context, k, NULL, reason) != SCOUT_OK) return SCOUT_FAILED;
        events[k].end_s = of->now_s;
    }
    *count = launches;
    return SCOUT_OK;
}

/* Launches by themselves, named by what ran; times in place are the medians of several runs, as without it. */
static void a_host_traces_its_launches(void) {
    begin();
    USE(&fake_right, &fake_fast);
    fake_api.has_graphs = 0;
    fake_api.trace = trace_launches;
    best_of(0, "fast");
    in_place = true;
    run(1);
    const json_t *trace = json_object_get(facts, "trace");
    static const char *const lanes[] = {"default", "best"}, *const runs[] = {"right", "fast"};
    for (int k = 0; k < 2; k++) {
        const json_t *rows = json_object_get(trace, lanes[k]), *row = json_array_get(rows, 0);
        UNIT_INT(json_array_size(rows), 3);
        UNIT_TEXT(json_string_value(json_array_get(row, 3)), runs[k]);
        UNIT_CHECK(about(json_number_value(json_array_get(row, 2)), k ? 150 : 200));
    }
    const json_t *first = json_array_get(json_object_get(facts, "in_place"), 0);
    UNIT_CHECK(about(json_number_value(json_object_get(first, "default_us")), 400));
    fake_api.trace = NULL;
    end();
}

int main(void) {
    UNIT_RUN(other_work_takes_from_every_run);
    UNIT_RUN(other_work_takes_from_every_piece);
    UNIT_RUN(both_lanes);
    UNIT_RUN(nothing_proven_is_one_lane);
    UNIT_RUN(packed_weights);
    UNIT_RUN(what_a_step_makes_is_no_weight);
    UNIT_RUN(a_wrong_one_is_found);
    UNIT_RUN(a_device_compares_what_it_made);
    UNIT_RUN(a_device_lost_in_a_comparison);
    UNIT_RUN(what_cannot_run_is_left_out);
    UNIT_RUN(a_best_that_cannot_be_recorded);
    UNIT_RUN(exclusions_and_lost_devices);
    UNIT_RUN(loops_run_as_often_as_they_do);
    UNIT_RUN(memory_that_is_short);
    UNIT_RUN(infinities_at_the_end_are_counted);
    UNIT_RUN(halves_are_compared_as_they_are);
    UNIT_RUN(floats_are_compared_as_they_are);
    UNIT_RUN(in_place_on_a_host);
    UNIT_RUN(a_host_traces_its_launches);
    json_decref(last);
    return unit_end();
}
