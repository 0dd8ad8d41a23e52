/* Products on the CPU device: every candidate in every layout, type and batch against the reference. */
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/gemm.h"
#include "scout/terms/reason.h"
#include "scout/terms/variants.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

typedef struct tally {
    int ran, unsupported, packed;
} tally;

static void run_variant(const problem *p, const scout_candidate *c, const variants_one *one, scout_check *check,
                        tally *t) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why = {"", ""};
    void *workspace = NULL, *packed = NULL, *tensors[6];
    char json[1024];
    const scout_answer answer = scout_prepare(c, &p->op, cpu_products_device, one->values, &plan, &needs, &why);
    if (answer == SCOUT_NO && !one->first) { /* the library likes the weight as it is */
        UNIT_CHECK(reason_known(why.code) && plan == NULL);
        return;
    }
    if (!UNIT_CHECK(answer == SCOUT_OK && plan)) {
        printf("  %s: %s\n", c->name, why.text);
        return;
    }
    memcpy(tensors, p->data, sizeof tensors);
    workspace = cpu_products_guarded(needs.workspace_bytes);
    UNIT_CHECK(needs.workspace_bytes <= p->op.workspace_limit);
    if (needs.packs) {
        packed = cpu_products_guarded(needs.pack_bytes);
        UNIT_CHECK(c->pack(plan, p->data[needs.packs - 1], packed, NULL, &why) == SCOUT_OK);
        tensors[needs.packs - 1] = packed;
        t->packed++;
    }
    const scout_args args = {sizeof args, tensors, workspace, NULL};
    for (int twice = 0; twice < 2; twice++) {
        memset(p->data[GEMM_C], 0xFF, p->tensors[GEMM_C].bytes);
        UNIT_CHECK(c->launch(plan, &args, &why) == SCOUT_OK);
        scout_verdict v = cpu_products_judge(check, p);
        if (!UNIT_CHECK(v.wrong == 0)) cpu_products_say(p, c->name, &v);
    }
    UNIT_CHECK(cpu_products_guards_hold(workspace, needs.workspace_bytes));
    UNIT_CHECK(!packed || cpu_products_guards_hold(packed, needs.pack_bytes));
    for (uint32_t k = 0; k < p->op.tensor_count; k++)
        UNIT_CHECK(cpu_products_guards_hold(p->data[k], p->tensors[k].bytes));
    const int length = scout_describe(c, plan, json, sizeof json);
    UNIT_CHECK(length > 2 && length < (int)sizeof json && json[0] == '{' && json[length - 1] == '}');
    UNIT_CHECK(scout_describe(c, plan, NULL, 0) == length);
    t->ran++;
    scout_destroy(c, plan);
    cpu_products_give_back(workspace);
    cpu_products_give_back(packed);
}

static void run_candidate(const problem *p, const scout_candidate *c, scout_check *check, tally *t) {
    static scout_domain domain; /* 33 KB */
    variants v;
    variants_one one;
    scout_why why = {"", ""};
    const scout_answer answer = c->supports(&p->op, cpu_products_device, &why);
    if (answer != SCOUT_OK) {
        UNIT_INT(answer, SCOUT_NO);
        UNIT_CHECK(reason_known(why.code) && why.text[0]);
        t->unsupported++;
        return;
    }
    UNIT_CHECK(variants_open(&v, c, &p->op, cpu_products_device, false, &domain, &why) == SCOUT_OK);
    tally again = {0, 0, 0};
    while (variants_next(&v, &one)) run_variant(p, c, &one, check, cpu_products_again(one.text) ? &again : t);
}

static void run_all(const product *w, uint64_t seed, tally *tallies) {
    problem p;
    cpu_products_make(&p, w, seed);
    uint64_t before[2], after[2];
    scout_why why;
    scout_check *check = cpu_products_begin(&p);
    for (int k = 0; k < 2; k++)
        (void)cpu_products_api->checksum(cpu_products_device, p.data[k], p.tensors[k].bytes, &before[k], &why);
    for (uint32_t k = 0; k < cpu_products_api->candidate_count && check; k++)
        if (cpu_products_api->candidates[k]->kind == SCOUT_GEMM)
            run_candidate(&p, cpu_products_api->candidates[k], check, &tallies[k]);
    for (int k = 0; k < 2; k++)
        (void)cpu_products_api->checksum(cpu_products_device, p.data[k], p.tensors[k].bytes, &after[k], &why);
    UNIT_CHECK(before[0] == after[0] && before[1] == after[1]);
    if (check) cpu_products_api->references[0]->end(check);
    cpu_products_drop(&p);
}

static void report(const char *what, const tally *tallies) {
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        printf("  %s, %s: %d ran (%d packed), %d unsupported\n", what, cpu_products_api->candidates[k]->name,
               tallies[k].ran, tallies[k].packed, tallies[k].unsupported);
}

static void candidates_are_right_in_every_layout_and_type(void) {
    tally tallies[64] = {{0, 0, 0}};
    for (size_t t = 0; t < CPU_PRODUCTS_TYPES; t++)
        for (size_t l = 0; l < 4; l++)
            for (size_t s = 0; s < CPU_PRODUCTS_SHAPES; s++) {
                product w = cpu_products_want(s, l, t, 1);
                run_all(&w, 1000 * t + 10 * l + s, tallies);
            }
    report("layouts and types", tallies);
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        if (strcmp(cpu_products_api->candidates[k]->name, "cpu_tiled") == 0)
            UNIT_INT(tallies[k].ran, 4 * CPU_PRODUCTS_SHAPES);
}

static void candidates_are_right_in_batches(void) {
    tally tallies[64] = {{0, 0, 0}};
    for (size_t t = 0; t < CPU_PRODUCTS_TYPES; t++)
        for (size_t l = 0; l < 4; l++)
            for (int shared = 0; shared < 3; shared++) {
                product w = cpu_products_want(2, l, t, 5);
                w.shared_a = shared == 1, w.shared_b = shared == 2;
                run_all(&w, 1000 * t + 10 * l + (uint64_t)shared, tallies);
            }
    report("batches", tallies);
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        if (strcmp(cpu_products_api->candidates[k]->name, "cpu_tiled") == 0) UNIT_INT(tallies[k].ran, 12);
}

static void candidates_are_right_with_a_bias(void) {
    static const char *const kinds[] = {"n", "m", "scalar", "full", "each"};
    tally tallies[64] = {{0, 0, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int64_t batch = 1; batch < 4; batch += 2) {
            product w = cpu_products_want(2, k % 4, 0, batch);
            w.bias = kinds[k];
            run_all(&w, k, tallies);
        }
    report("biases", tallies);
}

static void candidates_are_right_with_an_epilogue(void) {
    static const char *const names[] = {"relu", "gelu",      "gelu_tanh", "fastgelu",  "silu", "quickgelu",
                                        "tanh", "hardswish", "sigmoid",   "leakyrelu", NULL};
    tally tallies[64] = {{0, 0, 0}};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        for (size_t t = 0; t < 4; t++)
            for (int more = 0; more < 4; more++) {
                product w = cpu_products_want(2 + (k + t) % 6, k % 4, t, k % 3 ? 1 : 3);
                w.activation = names[k], w.bias = more & 1 ? "n" : NULL, w.residual = (more & 2) != 0 || !names[k];
                w.alpha = names[k] && strcmp(names[k], "leakyrelu") == 0 ? 0.25 : 0;
                run_all(&w, 100 * k + 10 * t + (uint64_t)more, tallies);
            }
    report("epilogues", tallies);
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        if (strcmp(cpu_products_api->candidates[k]->name, "onednn") == 0)
            UNIT_CHECK(tallies[k].ran > 0 || tallies[k].unsupported == 176);
}

static void candidates_are_right_with_factors(void) {
    static const char *const kinds[] = {NULL, "n", "m", "scalar", "full", "each"};
    tally tallies[64] = {{0, 0, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t t = 0; t < 4; t++)
            for (int more = 0; more < 4; more++) {
                product w = cpu_products_want(1 + (k + t) % 7, k % 4, t, more & 1 ? 3 : 1);
                w.bias = kinds[k], w.factor = 0.125, w.bias_factor = kinds[k] ? -1.5 : 0;
                w.residual = k == 1, w.activation = more & 2 ? "relu" : NULL;
                run_all(&w, 100 * k + 10 * t + (uint64_t)more, tallies);
            }
    product doubles = cpu_products_want(3, 1, 0, 2);
    doubles.type_a = doubles.type_b = doubles.type_c = SCOUT_FP64, doubles.factor = 0.125;
    run_all(&doubles, 1, tallies);
    report("factors", tallies);
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++) {
        if (strcmp(cpu_products_api->candidates[k]->name, "cpu_tiled") == 0) UNIT_INT(tallies[k].ran, 24);
        if (strcmp(cpu_products_api->candidates[k]->name, "cpu_widened") == 0) UNIT_INT(tallies[k].ran, 72);
        if (strcmp(cpu_products_api->candidates[k]->name, "cpu_csr") == 0) UNIT_INT(tallies[k].ran, 0);
    }
}

static void candidates_are_right_on_larger_products(void) {
    tally tallies[64] = {{0, 0, 0}};
    static const int64_t large[][3] = {{1, 1024, 1024}, {16, 768, 1031}, {257, 513, 700}, {512, 512, 512}};
    for (size_t t = 0; t < CPU_PRODUCTS_TYPES; t++)
        for (size_t s = 0; s < 4; s++) {
            product w = cpu_products_want(0, s, t, 1);
            w.m = large[s][0], w.n = large[s][1], w.k = large[s][2];
            run_all(&w, t + s, tallies);
        }
    report("larger", tallies);
}

/* What needs workspace does with less, or says that it cannot: never more than it was given (run_variant looks). */
static void little_workspace_is_enough_or_refused(void) {
    tally tallies[64] = {{0, 0, 0}};
    for (size_t l = 0; l < 4; l++) {
        product w = cpu_products_want(3, l, l % 2, 1);
        w.workspace = 1;
        run_all(&w, l, tallies);
    }
    report("little workspace", tallies);
    UNIT_CHECK(tallies[0].ran + tallies[0].unsupported > 0);
}

static void a_weight_of_few_bits_is_multiplied_or_refused(void) {
    tally tallies[64] = {{0, 0, 0}};
    static const int64_t rows[] = {1, 3, 17, 5, 6};
    static const uint32_t types[] = {SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, SCOUT_FP32, SCOUT_BF16};
    for (size_t k = 0; k < 5; k++) {
        product w = {.m = rows[k],
                     .n = 130,
                     .k = 256,
                     .batch = 1,
                     .layout = "nt",
                     .type_a = types[k],
                     .type_b = SCOUT_INT4,
                     .type_c = types[k],
                     .block = k == 2 ? 32 : 128};
        run_all(&w, k, tallies);
        w.bias = "n", w.residual = true, w.activation = "silu";
        run_all(&w, k, tallies);
        w.factor = 0.25, w.bias_factor = 2;
        run_all(&w, k, tallies);
        w.bias = NULL, w.residual = false, w.activation = NULL, w.factor = w.bias_factor = 0;
        w.layout = "tt", w.workspace = 256 * sizeof(float) * (uint64_t)(cpu_team_size() + 2); /* two rows at a time */
        run_all(&w, k, tallies);
        w.workspace = 0, w.layout = k % 2 ? "nn" : "nt"; /* by rows: it is packed */
        static const uint32_t weights[] = {SCOUT_INT4, SCOUT_UINT4, SCOUT_INT8, SCOUT_UINT8};
        for (int more = 0; more < 8; more++) {
            w.type_b = weights[more / 2], w.zeros = more % 2;
            w.n = more % 2 ? 129 : 130; /* a row may begin within a byte */
            if (more == 5) w.k = 255, w.block = 51;
            if (more == 6) w.k = 240, w.block = 48;
            w.batch = more < 3 ? 3 : 1;
            run_all(&w, k + (size_t)more, tallies);
        }
    }
    for (int64_t fit = 2; fit < 8; fit++) { /* some rows of a product, one product, two, and not the last of three */
        product some = {.m = 3, .n = 10, .k = 64, .batch = 4, .layout = "tt", .type_a = SCOUT_FP32, .block = 16};
        some.type_b = SCOUT_UINT4, some.type_c = SCOUT_FP32, some.zeros = true;
        some.workspace = (uint64_t)(64 * fit + 8 * cpu_team_size()) * sizeof(float);
        run_all(&some, (uint64_t)fit, tallies);
    }
    product shared = {.m = 2, .n = 6, .k = 64, .batch = 2, .layout = "nt", .type_a = SCOUT_FP32, .block = 32};
    shared.type_b = SCOUT_INT4, shared.type_c = SCOUT_FP32, shared.shared_b = true;
    run_all(&shared, 1, tallies);
    report("blocks", tallies);
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        UNIT_INT(tallies[k].ran, strcmp(cpu_products_api->candidates[k]->name, "cpu_blocks") == 0 ? 66 : 0);
}

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(candidates_are_right_in_every_layout_and_type);
    UNIT_RUN(candidates_are_right_in_batches);
    UNIT_RUN(candidates_are_right_with_a_bias);
    UNIT_RUN(candidates_are_right_with_an_epilogue);
    UNIT_RUN(candidates_are_right_with_factors);
    UNIT_RUN(candidates_are_right_on_larger_products);
    UNIT_RUN(little_workspace_is_enough_or_refused);
    UNIT_RUN(a_weight_of_few_bits_is_multiplied_or_refused);
    cpu_products_close();
    return unit_end();
}
