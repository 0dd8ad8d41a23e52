/* From how many zeros on sparse is faster: told from measurements that were written by hand. */
#include "scout/report/crossover.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { MOST = 8 };

static guard g;
static arena a;
static const regime rules = {REGIME_SUSTAINED, REGIME_COLD, REGIME_GRAPH};
static const report_search search = {.early_exit = 0.97, .workspace_limit = 1 << 25};
static operation_list list;
static report_input inputs[MOST];
static int count;

static void begin(void) {
    count = 0;
    crossover_operations("512,1024,2048", "fp16", NULL, 32, &a, &list);
}

/* A row as measurements have it; sparse: four in five flops are left out. us 0: it was outraced. */
static json_t *row(const char *name, double us, bool sparse) {
    json_t *r =
        json_pack("{ss, ss, ss, sn}", "name", name, "variant", "", "status", us > 0 ? "OK" : "SKIPPED", "reason");
    if (us > 0)
        json_object_set_new(r, "time_us", json_pack("{sf, sf, si}", "median", us, "rel_ci95", 0.002, "batches", 20));
    if (us > 0) json_object_set_new(r, "tflops", json_real(sparse ? 20 : 100));
    if (us > 0) json_object_set_new(r, "dense_equivalent_tflops", json_real(100));
    return r;
}

static void add(double zeros, double dense_us, double sparse_us) {
    json_t *m = json_pack("{ss, ss, ss, ss, s{sf}, s[o, o, o]}", "baseline", "lib", "baseline_variant", "", "best",
                          "lib", "best_variant", "", "weight", "zeros", zeros, "candidates",
                          row("lib", dense_us + 1, false), row("other", dense_us, false), row("own", sparse_us, true));
    UNIT_CHECK(m != NULL && count < MOST);
    inputs[count] = (report_input){.operation = &list.items[count],
                                   .key = "k",
                                   .regime = &rules,
                                   .search = &search,
                                   .measurement = m,
                                   .model_us = -1};
    count++;
}

static crossover find(int wanted) {
    crossover *found;
    const int n = crossover_find(inputs, count, &a, &found);
    UNIT_INT(n, wanted);
    return n > 0 ? found[0] : (crossover){.from = NAN};
}

static void end(void) {
    while (count > 0) json_decref((json_t *)(uintptr_t)inputs[--count].measurement);
    operation_list_free(&list);
}

static void operations_differ_in_zeros_alone(void) {
    begin();
    UNIT_CHECK(list.count > 5);
    for (int k = 0; k < list.count; k++) {
        const operation *o = &list.items[k];
        UNIT_TEXT(o->pattern, "BLOCK_SPARSE");
        UNIT_CHECK(o->sparse_block == 32 && o->sparsity >= 0.5 && o->sparsity < 1);
        if (k == 0) continue;
        UNIT_CHECK(o->sparsity > list.items[k - 1].sparsity && strcmp(o->id, list.items[k - 1].id) != 0);
        UNIT_CHECK(strcmp(operation_key(o, &a), operation_key(&list.items[k - 1], &a)) != 0);
    }
    end();
}

static void between_two_that_are_known(void) {
    begin();
    add(0.9, 100, 60); /* in any order */
    add(0.6, 100, 140);
    add(0.8, 100, 90);
    add(0.7, 100, 130);
    const crossover c = find(1);
    UNIT_CHECK(c.count == 4 && c.block == 32 && c.points[0].zeros == 0.6);
    UNIT_CHECK(fabs(c.from - 0.775) < 1e-12 && c.behind == 0.7); /* 30 behind, then 10 ahead */
    UNIT_CHECK(c.points[3].dense_us == 100 && c.points[3].sparse_us == 60 && strcmp(c.points[3].name, "own") == 0);
    end();
}

static void who_was_outraced_is_behind(void) {
    begin();
    add(0.6, 100, 0);
    add(0.8, 100, 90);
    crossover c = find(1);
    UNIT_CHECK(c.from == 0.8 && c.behind == 0.6 && !c.points[0].name);
    add(0.9, 100, 0); /* and once more: only what stays ahead counts */
    c = find(1);
    UNIT_CHECK(isnan(c.from) && c.behind == 0.9);
    end();
}

/* What leaves zeros out elsewhere had no time here: that says nothing about which is faster. */
static void what_is_not_known_is_not_behind(void) {
    static const struct {
        const char *status, *code, *other; /* other: of a variant that had no time, or was dropped */
        bool open;
    } words[] = {{"SKIPPED", "budget", NULL, true},
                 {"SKIPPED", "outraced", NULL, false},
                 {"SKIPPED", "budget", "budget", true},
                 {"SKIPPED", "budget", "outraced", false}};
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        begin();
        add(0.6, 100, 110);
        add(0.7, 100, 90);
        add(0.75, 100, 0);
        add(0.8, 100, 60);
        json_t *const rows = json_object_get(inputs[2].measurement, "candidates"), *own = json_array_get(rows, 2);
        if (words[k].other)
            json_array_insert_new(rows, 2,
                                  json_pack("{ss, ss, ss, s{ss}}", "name", "own", "variant", "x", "status", "SKIPPED",
                                            "reason", "code", words[k].other));
        json_object_set_new(own, "status", json_string(words[k].status));
        json_object_set_new(own, "reason", json_pack("{ss}", "code", words[k].code));
        const crossover c = find(1);
        UNIT_CHECK(c.count == 4 && c.points[2].open == words[k].open);
        UNIT_CHECK(fabs(c.from - (words[k].open ? 0.65 : 0.8)) < 1e-12 && c.behind == (words[k].open ? 0.6 : 0.75));
        json_builder b = {0};
        json_t *told = crossover_json(&c, 1, &b);
        const json_t *point = json_array_get(json_object_get(json_array_get(told, 0), "points"), 2);
        UNIT_CHECK(json_is_true(json_object_get(point, "open")) == words[k].open);
        json_decref(told);
        end();
    }
}

static void always_and_alone(void) {
    begin();
    add(0.5, 100, 90);
    UNIT_CHECK(isnan(find(0).from)); /* one point crosses nothing */
    add(0.6, 100, 80);
    const crossover c = find(1);
    UNIT_CHECK(c.from == 0.5 && isnan(c.behind));
    list.items[1].sparse_block = 16; /* another kind of zeros */
    (void)find(0);
    end();
}

/* Thousands of products in a file, those that belong together far apart: the arena has no room for pairs of them. */
static void many_are_sorted_out_at_once(void) {
    enum { SHAPES = 100, EACH = 50, ALL = SHAPES * EACH };
    static operation ops[ALL];
    static report_input in[ALL];
    static int64_t shapes[SHAPES][3];
    crossover *found;
    begin();
    add(0.5, 100, 90);
    json_t *m = (json_t *)(uintptr_t)inputs[0].measurement;
    json_object_del(m, "weight"); /* the operation's own word holds */
    for (int k = 0; k < ALL; k++) {
        int64_t *shape = shapes[k % SHAPES];
        shape[0] = 512, shape[1] = 1024, shape[2] = 64 * (1 + k % SHAPES);
        ops[k] = list.items[0];
        ops[k].rec.shape = shape;
        ops[k].sparsity = 0.99 - 0.5 * (k / SHAPES) / EACH;
        in[k] = inputs[0];
        in[k].operation = &ops[k];
    }
    const clock_t from = clock();
    UNIT_INT(crossover_find(in, ALL, &a, &found), SHAPES);
    UNIT_CHECK((double)(clock() - from) / CLOCKS_PER_SEC < 2);
    for (int k = 0; k < SHAPES; k++) {
        UNIT_CHECK(found[k].operation == &ops[k] && found[k].count == EACH && found[k].points[0].zeros < 0.51);
        UNIT_CHECK(found[k].from == found[k].points[0].zeros && isnan(found[k].behind));
    }
    end();
}

int main(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    if (guard_enter(&g)) {
        UNIT_RUN(operations_differ_in_zeros_alone);
        UNIT_RUN(between_two_that_are_known);
        UNIT_RUN(who_was_outraced_is_behind);
        UNIT_RUN(what_is_not_known_is_not_behind);
        UNIT_RUN(always_and_alone);
        UNIT_RUN(many_are_sorted_out_at_once);
    } else {
        printf("    %s\n", g.st.text);
        UNIT_CHECK(false);
    }
    arena_free(&a);
    return unit_end();
}
