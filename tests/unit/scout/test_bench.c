/* Tensors, plans and the check, on a device in memory: every fault is found and named, and what is right passes. */
#include "scout/kinds/kinds.h"
#include "scout/measure/bench_internal.h"
#include "tests/fakes/fake_device.h"
#include "tests/unit/unit.h"

#include <math.h>

static guard g;
static arena a;
static scout_op op;
static scout_device *d;
static bench_set *set;
static regime_load load;
static uint64_t seed = 7;
static scout_answer answer;
static scout_why why;

static void open_set(const char *shape, regime_cache cache, double plateau) {
    operation_list list;
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    operation_from_words("gemm", shape, "fp32", 0, NULL, &a, &list);
    UNIT_CHECK(kinds_build(&list.items[0], 1 << 16, &a, &op, &why));
    operation_list_free(&list);
    if (!d) d = fake_open();
    const regime r = {.load = load, .cache = cache};
    const double tolerance = kind_gemm.tolerance(&op);
    set = bench_set_new(&fake_api, d, &op, &r, plateau, seed, (bench_tolerance){tolerance, tolerance}, NULL, &answer,
                        &why);
}

static void begin(regime_cache cache, double plateau) {
    open_set("16,24,8", cache, plateau);
    UNIT_CHECK(set != NULL && answer == SCOUT_OK);
}

/* Nothing is left behind. */
static void end(void) {
    bench_set_free(set);
    set = NULL;
    if (!d->lost) {
        UNIT_INT(d->live_allocations, 0);
        UNIT_INT(d->live_sequences, 0);
        UNIT_INT(d->live_plans, 0);
        UNIT_INT(d->live_checks, 0);
        UNIT_INT(d->used_bytes, 0);
    }
    fake_close(d);
    d = NULL;
    arena_free(&a);
    fake_api.has_graphs = 1;
}

static bench_plan *prepare(const scout_candidate *c, int64_t value) {
    const int64_t values[SCOUT_MAX_PARAMETERS] = {value};
    return bench_plan_new(set, c, values, true, NULL, &answer, &why);
}

/* ---- copies ---- */

static void copies_follow_the_regime(void) {
    begin(REGIME_MODEL, 10000); /* the weight alone: 768 bytes, and canaries */
    UNIT_CHECK(bench_set_copies(set) >= 5);
    UNIT_INT(bench_set_rotation_bytes(set), 768 * bench_set_copies(set));
    UNIT_CHECK(bench_set_resident_bytes(set) == 16 * 8 * 4 + 16 * 24 * 4);
    UNIT_INT(d->live_allocations, 3); /* all copies of a tensor lie in one */
    end();
    begin(REGIME_COLD, 10000);
    UNIT_CHECK(bench_set_copies(set) >= 2 && bench_set_resident_bytes(set) == 0);
    UNIT_INT(d->live_allocations, 3);
    end();
    begin(REGIME_HOT, 10000);
    UNIT_INT(bench_set_copies(set), 1);
    UNIT_INT(bench_set_rotation_bytes(set), 0);
    UNIT_INT(d->live_allocations, 3);
    end();
}

static void a_rotation_covers_the_plateau(void) {
    open_set("16,256,256", REGIME_MODEL, 3e6); /* 262,144 bytes of weight */
    UNIT_CHECK((double)bench_set_rotation_bytes(set) >= 3e6 * 0.99);
    end();
}

static void copies_stay_within_the_memory(void) {
    d = fake_open();
    d->limit_bytes = 4 << 20;
    open_set("16,256,256", REGIME_MODEL, 1e9);
    UNIT_CHECK(set && bench_set_copies(set) > 2);
    uint64_t bytes = 0; /* without the gaps in front of them */
    for (int k = 0; k < 3; k++) bytes += set->tensors[k].copies.stride * set->tensors[k].copies.count;
    UNIT_CHECK(bytes < d->limit_bytes * 6 / 10 && d->used_bytes < d->limit_bytes);
    end();
    d = fake_open();
    d->limit_bytes = 310000; /* 262,144 and 8,192 and 16,384 with their canaries, and hardly a gap */
    open_set("16,256,256", REGIME_HOT, 0);
    UNIT_CHECK(set != NULL && answer == SCOUT_OK);
    end();
    d = fake_open();
    d->limit_bytes = 100000;
    open_set("16,256,256", REGIME_MODEL, 1e9);
    UNIT_CHECK(set == NULL);
    UNIT_INT(answer, SCOUT_NO_MEMORY);
    UNIT_TEXT(why.code, "memory");
    end();
}

static void copies_are_bounded(void) {
    begin(REGIME_MODEL, 1e6);
    UNIT_INT(bench_set_copies(set), BENCH_COPIES);
    end();
}

/* What never leaves the cache is at a few places, which launches take in turn: any number of them makes a sequence. */
static void what_stays_in_the_cache_has_a_few_places(void) {
    for (int graphs = 0; graphs < 2; graphs++)
        for (int cache = 0; cache < 3; cache++) {
            fake_api.has_graphs = graphs;
            begin((regime_cache)cache, 1e9);
            const uint32_t least = graphs || cache == REGIME_HOT ? 1 : BENCH_COPIES;
            UNIT_INT(bench_set_copies(set), graphs ? BENCH_PLACES : least);
            for (int k = 0; k < 3; k++) {
                const bench_tensor *t = &set->tensors[k];
                UNIT_INT(t->copies.count, graphs ? BENCH_PLACES : t->rotates ? BENCH_COPIES : 1);
            }
            bench_plan *p = prepare(&fake_right, 0);
            UNIT_INT(bench_plan_whole(p), 1);
            UNIT_INT(bench_plan_verify(p).status, ROW_OK);
            bench_plan_free(p);
            end();
        }
    fake_api.has_graphs = true;
    begin(REGIME_MODEL, 256 * 1024); /* what rotates would drive the others out of the cache */
    UNIT_CHECK(bench_set_copies(set) > BENCH_PLACES && set->cold);
    UNIT_INT(set->tensors[0].copies.count, 1);
    end();
    for (int k = 0; k < 7; k++) { /* the last copy comes with the last place, which has its canaries */
        begin(REGIME_HOT, 32.0 * 4000 * (1 << k));
        const uint32_t places = set->tensors[0].copies.count;
        UNIT_INT(bench_set_copies(set) % places, 0);
        UNIT_CHECK(places <= BENCH_PLACES && (places & (places - 1)) == 0);
        UNIT_CHECK(bench_watched(set, places - 1, places));
        end();
    }
}

/* Every weight used is another one than those of the rotation before, across runs, graphs and plans. */
static void check_distance(uint32_t least) {
    const uint64_t n = d->launches < FAKE_LOG ? d->launches : FAKE_LOG;
    for (uint64_t k = 1; k < n; k++)
        for (uint64_t back = 1; back < least && back <= k; back++)
            if (!UNIT_CHECK(d->log[k] != d->log[k - back])) return;
}

static void launches_rotate(bool graphs) {
    double seconds[8];
    fake_api.has_graphs = graphs;
    begin(REGIME_MODEL, 10000);
    const uint32_t copies = bench_set_copies(set);
    bench_plan *p = prepare(&fake_right, 0), *q = prepare(&fake_fast, 0);
    UNIT_CHECK(p && q && copies > 3 && copies < 20);
    const timing_subject subjects[2] = {bench_plan_subject(p), bench_plan_subject(q)};
    /* the first looks are single launches, of a graph that needs no rotation */
    for (int k = 0; k < 4; k++) UNIT_INT(subjects[k % 2].run(subjects[k % 2].context, 1, 1, seconds, &why), SCOUT_OK);
    UNIT_INT(d->launches, 4);
    if (graphs) d->launches = 0;
    for (int k = 0; k < 2; k++) UNIT_INT(subjects[k].whole(subjects[k].context), graphs ? copies : 1);
    static const uint32_t launches[] = {21, 33, 20, 27, 21}; /* no fewer than a rotation has */
    for (int round = 0; round < 5; round++)
        for (int k = 0; k < 2; k++) {
            answer = subjects[k].run(subjects[k].context, launches[round], 3, seconds, &why);
            UNIT_INT(answer, SCOUT_OK);
            const double each = (k == 0 ? 2e-4 : 1.5e-4) * launches[round];
            for (int i = 0; i < 3; i++) UNIT_CHECK(fabs(seconds[i] / each - 1) < 0.01);
        }
    UNIT_CHECK(d->launches >= 2 * 3 * 32);
    check_distance(graphs ? copies - 1 : copies);
    bench_plan_free(p);
    bench_plan_free(q);
    end();
}

static void graphs_rotate_over_all_copies(void) { launches_rotate(true); }
static void direct_launches_rotate_over_all_copies(void) { launches_rotate(false); }

/* Where parts of two plans take turns, a copy comes again after half of a rotation at least, and each part is recorded
 * once. */
static void parts_of_a_rotation_take_turns(void) {
    enum { ROUNDS = 40, SHORT = 2, LONG = 8 };
    begin(REGIME_MODEL, 64 * 768);
    const uint32_t copies = bench_set_copies(set), live = d->live_sequences;
    bench_plan *plans[2] = {prepare(&fake_right, 0), prepare(&fake_fast, 0)};
    double seconds = 0;
    UNIT_CHECK(copies >= 64 && copies < 100);
    d->launches = 0;
    for (uint32_t k = 0; k < 2 * ROUNDS; k++) {
        const uint32_t launches = k % 2 ? SHORT : LONG;
        scout_sequence *part = NULL;
        UNIT_INT(bench_plan_recorded(plans[k % 2], launches, &part, &why), SCOUT_OK);
        UNIT_INT(fake_api.run(set->device, part, 1, &seconds, &why), SCOUT_OK);
    }
    UNIT_INT(d->launches, ROUNDS * (SHORT + LONG));
    check_distance(copies / 2);
    UNIT_CHECK(d->live_sequences - live <= copies / SHORT + copies / LONG);
    for (int k = 0; k < 2; k++) bench_plan_free(plans[k]);
    end();
}

static void a_rotation_may_take_too_long(void) {
    double seconds[1];
    begin(REGIME_MODEL, 1e6);
    bench_plan *p = prepare(&fake_slow, 0); /* 512 times 500 us */
    UNIT_INT(bench_plan_whole(p), BENCH_COPIES);
    UNIT_INT(bench_plan_run(p, 1, 1, seconds, &why), SCOUT_OK);
    UNIT_INT(bench_plan_whole(p), 1);
    d->launches = 0;
    UNIT_INT(bench_plan_run(p, 5, 1, seconds, &why), SCOUT_OK);
    UNIT_INT(d->launches, 5);
    check_distance(5);
    bench_plan_free(p);
    end();
}

/* Some sixty times 200 us are no burst of 10 ms any more. */
static void a_rotation_fits_into_a_burst(void) {
    double seconds[1];
    for (load = REGIME_SUSTAINED; load <= REGIME_BURST; load++) {
        begin(REGIME_MODEL, 60 * 768);
        bench_plan *p = prepare(&fake_right, 0);
        const uint32_t copies = bench_set_copies(set);
        UNIT_CHECK(copies >= 60 && copies < 90);
        UNIT_INT(bench_plan_run(p, 1, 1, seconds, &why), SCOUT_OK);
        UNIT_INT(bench_plan_whole(p), load == REGIME_BURST ? 1 : copies);
        bench_plan_free(p);
        end();
    }
    load = REGIME_SUSTAINED;
}

static void a_sequence_is_recorded_once(void) {
    double seconds[4];
    begin(REGIME_HOT, 0);
    bench_plan *p = prepare(&fake_right, 0);
    for (int k = 0; k < 5; k++) UNIT_INT(bench_plan_run(p, 10, 4, seconds, &why), SCOUT_OK);
    UNIT_INT(d->live_sequences, 1);
    for (uint32_t k = 1; k < BENCH_SEQUENCES + 5; k++) UNIT_INT(bench_plan_run(p, k, 4, seconds, &why), SCOUT_OK);
    UNIT_INT(d->live_sequences, BENCH_SEQUENCES);
    bench_plan_free(p);
    end();
}

/* ---- places ---- */

/* Every tensor's, by the seed: the same for the same one. */
static void another_seed_is_another_place(void) {
    enum { SETS = 4 };
    uint64_t at[SETS][3];
    for (int k = 0; k < SETS; k++) {
        seed = 7 + (uint64_t)k % 3;
        open_set("256,256,256", REGIME_MODEL, 1e6);
        for (int t = 0; t < 3; t++) {
            const bench_slab *slab = &set->tensors[t].copies;
            at[k][t] = (uint64_t)(slab->first - slab->memory);
            UNIT_INT((uintptr_t)slab->first % BENCH_LINE, 0);
            UNIT_CHECK(at[k][t] <= slab->stride * slab->count);
        }
        end();
    }
    seed = 7;
    for (int t = 0; t < 3; t++) UNIT_CHECK(at[0][t] != at[1][t] && at[1][t] != at[2][t] && at[0][t] == at[3][t]);
}

/* A plan outlives its tensors: on the next ones it is prepared no more, and packs anew. */
static void a_kept_plan_goes_on(void) {
    const int64_t values[SCOUT_MAX_PARAMETERS] = {0};
    const scout_candidate *const candidates[] = {&fake_right, &fake_packs, &fake_before};
    for (size_t k = 0; k < sizeof candidates / sizeof candidates[0]; k++) {
        double seconds[2];
        begin(REGIME_MODEL, 10000);
        bench_plan *p = prepare(candidates[k], 0);
        const row_status before = bench_plan_verify(p).status;
        bench_kept kept = bench_plan_keep(p);
        bench_set_free(set);
        UNIT_INT(d->live_plans, 1);
        UNIT_INT(d->live_allocations, 0);
        arena_free(&a);
        seed = 8;
        begin(REGIME_MODEL, 10000);
        p = bench_plan_new(set, candidates[k], values, true, &kept, &answer, &why);
        UNIT_CHECK(p && kept.plan == NULL);
        UNIT_INT(d->prepared, 1);
        UNIT_INT(bench_plan_verify(p).status, before);
        UNIT_INT(bench_plan_run(p, 3, 2, seconds, &why), SCOUT_OK);
        bench_plan_free(p);
        end();
        seed = 7;
    }
}

/* ---- inputs ---- */

static void *weight_at(uint32_t copy) {
    const bench_buffer at = bench_slab_at(&set->tensors[1].copies, copy);
    return bench_data(&at);
}

static void inputs_are_the_same_in_every_run(void) {
    uint64_t sums[2][2];
    for (int run = 0; run < 2; run++) {
        begin(REGIME_MODEL, 10000);
        fake_api.checksum(d, weight_at(2), 768, &sums[run][0], &why);
        UNIT_INT(bench_set_refresh(set, false, &why), SCOUT_OK);
        fake_api.checksum(d, weight_at(2), 768, &sums[run][1], &why);
        end();
    }
    UNIT_CHECK(sums[0][0] == sums[1][0] && sums[0][1] == sums[1][1]);
    UNIT_CHECK(sums[0][0] != sums[0][1]);
}

static void a_refresh_is_verified_anew(void) {
    begin(REGIME_MODEL, 10000);
    bench_plan *p = prepare(&fake_right, 0);
    double before = 0;
    for (int k = 0; k < 4; k++) {
        const bench_verdict v = bench_plan_verify(p);
        UNIT_INT(v.status, ROW_OK);
        UNIT_CHECK(v.worst > 0 && v.worst < v.tolerance && v.worst != before);
        before = v.worst;
        const uint64_t fills = d->fills;
        UNIT_INT(bench_set_refresh(set, k % 2 == 1, &why), SCOUT_OK);
        UNIT_INT(d->fills - fills, 2); /* all copies of a tensor at once */
    }
    bench_plan_free(p);
    end();
}

/* ---- faults ---- */

static void found(const scout_candidate *c, row_status want, const char *code) {
    begin(REGIME_MODEL, 10000);
    bench_plan *bad = prepare(c, 0), *good = prepare(&fake_right, 0);
    if (!UNIT_CHECK(bad && good)) return;
    bench_verdict v = bench_plan_verify(bad);
    UNIT_INT(v.status, want);
    UNIT_TEXT(v.why.code, code);
    UNIT_CHECK(v.why.text[0] && !v.lost);
    UNIT_INT(bench_plan_verify(good).status, ROW_OK); /* whatever the other one did */
    v = bench_plan_verify(bad);
    UNIT_TEXT(v.why.code, code);
    bench_plan_free(bad);
    bench_plan_free(good);
    end();
}

static void one_wrong_element(void) { found(&fake_wrong, ROW_WRONG, "samples"); }
static void writing_outside(void) { found(&fake_outside, ROW_WRONG, "canary"); }
static void writing_before_the_workspace(void) { found(&fake_before, ROW_WRONG, "canary"); }
static void changing_an_input(void) { found(&fake_changes, ROW_WRONG, "input_changed"); }
static void leaving_something_out(void) { found(&fake_partial, ROW_WRONG, "projection"); }
static void what_cannot_be_captured(void) { found(&fake_uncapturable, ROW_UNSUPPORTED, "capture"); }

static void a_first_launch_that_cannot_be_captured(void) {
    begin(REGIME_MODEL, 10000);
    bench_plan *p = prepare(&fake_lazy, 0);
    UNIT_INT(bench_plan_verify(p).status, ROW_OK);
    bench_plan_free(p);
    end();
}

static void without_graphs_nothing_is_captured(void) {
    fake_api.has_graphs = 0;
    begin(REGIME_MODEL, 10000);
    bench_plan *p = prepare(&fake_uncapturable, 0);
    UNIT_INT(bench_plan_verify(p).status, ROW_OK);
    bench_plan_free(p);
    end();
}

static void later_launches_are_checked_too(void) {
    double seconds[4];
    begin(REGIME_COLD, 20000);
    bench_plan *bad = prepare(&fake_late_outside, 0), *good = prepare(&fake_right, 0);
    UNIT_INT(bench_plan_verify(bad).status, ROW_OK); /* alone on copy 0 nothing is to be seen */
    UNIT_INT(bench_plan_run(good, 20, 4, seconds, &why), SCOUT_OK);
    UNIT_INT(bench_plan_run(bad, 20, 4, seconds, &why), SCOUT_OK);
    const bench_verdict v = bench_plan_verify(bad);
    UNIT_INT(v.status, ROW_WRONG);
    UNIT_TEXT(v.why.code, "canary");
    UNIT_INT(bench_plan_verify(good).status, ROW_OK);
    bench_plan_free(bad);
    bench_plan_free(good);
    end();
}

/* In the regime where the output is the same memory for all copies, and in that where it is not. */
static void addresses_of_an_earlier_launch(void) {
    static const regime_cache regimes[] = {REGIME_MODEL, REGIME_COLD};
    for (size_t k = 0; k < 2; k++) {
        double seconds[4];
        begin(regimes[k], 20000);
        bench_plan *bad = prepare(&fake_remembers, 0), *good = prepare(&fake_right, 0);
        UNIT_INT(bench_plan_verify(bad).status, ROW_OK); /* on copy 0 it is right, now and later */
        UNIT_INT(bench_plan_run(good, 20, 4, seconds, &why), SCOUT_OK);
        UNIT_INT(bench_plan_run(bad, 20, 4, seconds, &why), SCOUT_OK);
        const bench_verdict v = bench_plan_verify(bad);
        UNIT_INT(v.status, ROW_WRONG);
        UNIT_TEXT(v.why.code, "samples");
        UNIT_INT(bench_plan_verify(good).status, ROW_OK);
        bench_plan_free(bad);
        bench_plan_free(good);
        end();
    }
}

static void failing_to_prepare(void) {
    begin(REGIME_MODEL, 10000);
    UNIT_CHECK(prepare(&fake_fails, 0) == NULL);
    UNIT_INT(answer, SCOUT_FAILED);
    UNIT_INT(bench_status_of(answer, &why), ROW_ERROR);
    UNIT_TEXT(why.code, "error"); /* what it said is in no list */
    end();
}

static void taking_all_memory(void) {
    begin(REGIME_MODEL, 10000);
    UNIT_CHECK(prepare(&fake_hungry, 0) == NULL);
    UNIT_INT(answer, SCOUT_NO_MEMORY);
    bench_plan *p = prepare(&fake_before, 0); /* there is room for a workspace again */
    UNIT_CHECK(p != NULL);
    bench_plan_free(p);
    end();
}

static void losing_the_device(void) {
    begin(REGIME_MODEL, 10000);
    bench_plan *p = prepare(&fake_lost, 0);
    const bench_verdict v = bench_plan_verify(p);
    UNIT_CHECK(v.lost);
    UNIT_INT(v.status, ROW_CRASHED);
    UNIT_TEXT(v.why.code, "poisoned");
    double seconds[1];
    UNIT_INT(bench_plan_run(p, 1, 1, seconds, &why), SCOUT_LOST);
    bench_plan_free(p);
    end();
}

/* What few plans ask for costs the others nothing, and those that have a usual one keep theirs. */
static void a_large_workspace_is_made_when_it_is_needed(void) {
    begin(REGIME_MODEL, 10000);
    op.workspace_limit = (uint64_t)16 * REGIME_WORKSPACE_BYTES;
    d->limit_bytes += 2 * op.workspace_limit;
    const uint64_t before = d->used_bytes;
    bench_plan *const small = prepare(&fake_before, 0);
    if (!UNIT_CHECK(small != NULL)) return;
    UNIT_CHECK(d->used_bytes - before < 2 * (uint64_t)REGIME_WORKSPACE_BYTES);
    UNIT_TEXT(bench_plan_verify(small).why.code, "canary");
    bench_plan *const large = prepare(&fake_before_large, 0);
    if (!UNIT_CHECK(large != NULL)) return;
    UNIT_CHECK(d->used_bytes - before > op.workspace_limit);
    UNIT_TEXT(bench_plan_verify(large).why.code, "canary");
    UNIT_TEXT(bench_plan_verify(small).why.code, "canary");
    bench_plan_free(small);
    bench_plan_free(large);
    end();
}

static void too_much_workspace(void) {
    begin(REGIME_MODEL, 10000);
    op.workspace_limit = 999;
    UNIT_CHECK(prepare(&fake_before, 0) == NULL);
    UNIT_INT(answer, SCOUT_NO);
    UNIT_TEXT(why.code, "memory");
    end();
}

/* ---- packing ---- */

static void packed_weights_are_used_and_shared(void) {
    double seconds[2];
    begin(REGIME_MODEL, 10000);
    const int before = d->live_allocations;
    bench_plan *p = prepare(&fake_packs, 0);
    UNIT_INT(d->live_allocations, before + 1);
    bench_plan *q = prepare(&fake_packs, 1);
    UNIT_INT(d->live_allocations, before + 1); /* packed alike */
    bench_plan *r = prepare(&fake_packs, 2);
    UNIT_INT(d->live_allocations, before + 2);
    UNIT_CHECK(fabs(bench_plan_pack_s(p) / 5e-5 - 1) < 0.1);
    UNIT_INT(bench_plan_needs(r)->pack_bytes, 768 + 64);
    bench_plan *const plans[] = {p, q, r};
    for (int k = 0; k < 3; k++) UNIT_INT(bench_plan_verify(plans[k]).status, ROW_OK);
    UNIT_INT(bench_set_refresh(set, false, &why), SCOUT_OK);
    bench_plan_free(p); /* the others' packed weights stay */
    for (int k = 1; k < 3; k++) {
        UNIT_INT(bench_plan_run(plans[k], 3, 2, seconds, &why), SCOUT_OK);
        UNIT_INT(bench_plan_verify(plans[k]).status, ROW_OK);
    }
    bench_plan_free(q);
    UNIT_INT(bench_set_refresh(set, true, &why), SCOUT_OK);
    UNIT_INT(bench_plan_verify(r).status, ROW_OK);
    bench_plan_free(r);
    UNIT_INT(d->live_allocations, before);
    end();
}

static void answers_become_rows(void) {
    scout_why one = {.code = "shape", .text = "too small"};
    UNIT_INT(bench_status_of(SCOUT_NO, &one), ROW_UNSUPPORTED);
    UNIT_TEXT(one.code, "shape");
    one = (scout_why){.code = "?"};
    UNIT_INT(bench_status_of(SCOUT_NO_MEMORY, &one), ROW_ERROR);
    UNIT_TEXT(one.code, "memory");
    UNIT_CHECK(one.text[0]);
    memset(&one, 'x', sizeof one); /* a plugin that ends nothing */
    UNIT_INT(bench_status_of((scout_answer)77, &one), ROW_ERROR);
    UNIT_TEXT(one.code, "error");
    UNIT_CHECK(strlen(one.text) < sizeof one.text);
}

int main(void) {
    UNIT_RUN(copies_follow_the_regime);
    UNIT_RUN(a_rotation_covers_the_plateau);
    UNIT_RUN(copies_stay_within_the_memory);
    UNIT_RUN(copies_are_bounded);
    UNIT_RUN(what_stays_in_the_cache_has_a_few_places);
    UNIT_RUN(graphs_rotate_over_all_copies);
    UNIT_RUN(direct_launches_rotate_over_all_copies);
    UNIT_RUN(parts_of_a_rotation_take_turns);
    UNIT_RUN(a_rotation_may_take_too_long);
    UNIT_RUN(a_rotation_fits_into_a_burst);
    UNIT_RUN(a_sequence_is_recorded_once);
    UNIT_RUN(another_seed_is_another_place);
    UNIT_RUN(a_kept_plan_goes_on);
    UNIT_RUN(inputs_are_the_same_in_every_run);
    UNIT_RUN(a_refresh_is_verified_anew);
    UNIT_RUN(one_wrong_element);
    UNIT_RUN(writing_outside);
    UNIT_RUN(writing_before_the_workspace);
    UNIT_RUN(changing_an_input);
    UNIT_RUN(leaving_something_out);
    UNIT_RUN(what_cannot_be_captured);
    UNIT_RUN(a_first_launch_that_cannot_be_captured);
    UNIT_RUN(without_graphs_nothing_is_captured);
    UNIT_RUN(later_launches_are_checked_too);
    UNIT_RUN(addresses_of_an_earlier_launch);
    UNIT_RUN(failing_to_prepare);
    UNIT_RUN(taking_all_memory);
    UNIT_RUN(losing_the_device);
    UNIT_RUN(a_large_workspace_is_made_when_it_is_needed);
    UNIT_RUN(too_much_workspace);
    UNIT_RUN(packed_weights_are_used_and_shared);
    UNIT_RUN(answers_become_rows);
    return unit_end();
}
