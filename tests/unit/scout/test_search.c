/* Searching once more: what it may take, and what is left of the first search. */
#include "scout/run/run_internal.h"
#include "tests/unit/scout/fusion_fixture.h"

static options asked;
static supervisor_device device;
static run r;

/* Of whose variants one had no turn. */
static json_t *cut(const char *variant) {
    return json_pack("{s:s, s:s, s:f, s:i, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s, s:{s:s, s:s}}]}", "baseline", "blas",
                     "baseline_variant", variant, "baseline_time_us", 5.0, "passes", 1, "candidates", "name", "blas",
                     "variant", variant, "status", "OK", "name", "own", "variant", "", "status", "SKIPPED", "reason",
                     "code", "budget", "text", "no turn");
}

static void set_up(void) {
    memset(&r, 0, sizeof r);
    arena_init(&r.arena, &g, (size_t)1 << 20);
    r.options = &asked;
    r.budget = budget_of(&asked, 100);
    r.list = list;
    r.device_count = 1;
    r.devices[0].about = &device;
    r.item_count = list.count;
    r.items = arena_array(&r.arena, run_item, list.count);
    for (int k = 0; k < list.count; k++) r.items[k].operation = &list.items[k];
}

static void it_leaves_time_for_what_takes_as_long_again(void) {
    if (!UNIT_CHECK(read_words("gemm", "16,16,16", "fp32", 0, NULL))) return;
    set_up();
    run_item *i = &r.items[0];
    i->source = RUN_MEASURED;
    i->measurement = cut("algo=0");
    i->budget_s = i->first_s = 0.1;
    run_search_look(&r, 0, RUN_OPERATIONS, 5, 2);
    UNIT_CHECK(i->again && i->budget_s > 0.4);
    i->again = false;
    i->judged = 0;
    i->budget_s = 0.1;
    i->first_s = 1.6; /* for the right result: 0.5 s are left */
    run_search_look(&r, 0, RUN_OPERATIONS, 5, 2);
    UNIT_CHECK(!i->again);
    run_search_look(&r, 0, RUN_OPERATIONS, 5, 4); /* asked once */
    UNIT_CHECK(!i->again);
    i->judged = 0;
    run_search_look(&r, 0, RUN_OPERATIONS, 5, 4);
    UNIT_CHECK(i->again);
    json_decref(i->measurement);
    arena_free(&r.arena);
    end();
}

/* While it is prepared beside, what else is open has its turn. */
static void it_waits_until_it_is_prepared(void) {
    if (!UNIT_CHECK(read_words("gemm", "16,16,16", "fp32", 0, NULL))) return;
    set_up();
    run_item *i = &r.items[0];
    UNIT_CHECK(!run_search_next(&r, 0, true, 2));
    i->again = true;
    i->budget_s = 1;
    UNIT_CHECK(!run_search_next(&r, 0, false, 2));
    UNIT_CHECK(run_search_next(&r, 0, true, 2) == i);
    i->ready = true;
    UNIT_CHECK(run_search_next(&r, 0, false, 0.5) == i); /* most of it is done */
    i->busy = true;
    UNIT_CHECK(!run_search_next(&r, 0, true, 2) && i->again);
    i->busy = i->ready = false;
    UNIT_CHECK(!run_search_next(&r, 0, true, 0.5) && !i->again); /* there is no time for it any more */
    arena_free(&r.arena);
    end();
}

static void a_fusion_keeps_what_its_parts_run_as(void) {
    if (!UNIT_CHECK(fusion_make_of("fp32", 4,
                                   "{\"pattern\":\"gemm+gelu\",\"ops\":[\"g\",\"bias\",\"gelu\"],\"count\":1,"
                                   "\"selected\":1,\"saved_bytes\":7680}")))
        return;
    set_up();
    run_item joined = {.fusion = &fusions.items[0]}, *part = &r.items[fusions.items[0].ops[0] - list.items];
    const fusion_part *chosen = &fusions.items[0].parts[0];
    part->measurement = cut("algo=1");
    run_fusion_choose(&r, &joined);
    json_decref(part->measurement); /* searched again */
    part->measurement = cut("algo=2");
    UNIT_TEXT(chosen->candidate, "blas");
    UNIT_TEXT(chosen->variant, "algo=1");
    run_fusion_choose(&r, &joined);
    UNIT_TEXT(chosen->variant, "algo=2");
    r.item_count = list.count + 1;
    run_item *const all = arena_array(&r.arena, run_item, r.item_count), *f = &all[list.count];
    memcpy(all, r.items, (size_t)list.count * sizeof *all);
    *f = joined;
    r.items = all;
    f->operation = list.items;
    f->announced = f->ready = f->started = true;
    run_search_forget(&r, &all[fusions.items[0].ops[0] - list.items]);
    UNIT_CHECK(f->announced); /* it has begun */
    f->started = false;
    run_search_forget(&r, &all[fusions.items[0].ops[0] - list.items]);
    UNIT_CHECK(!f->announced && !f->ready); /* with what its part runs as now */
    json_decref(part->measurement);
    arena_free(&r.arena);
    end();
}

int main(void) {
    UNIT_RUN(it_leaves_time_for_what_takes_as_long_again);
    UNIT_RUN(it_waits_until_it_is_prepared);
    UNIT_RUN(a_fusion_keeps_what_its_parts_run_as);
    return unit_end();
}
