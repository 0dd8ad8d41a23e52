/* Products on the CPU device: the reference against a triple loop in long double, what the reference must find, and
 * every candidate in every layout, type and batch against the reference. */
#include "scout/cpu/cpu.h"
#include "scout/cpu/cpu_number.h"
#include "scout/cpu/cpu_team.h"
#include "scout/gemm.h"
#include "scout/reason.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

enum { CANARY = 256, CANARY_BYTE = 0xA5 };

typedef struct want { /* what product a test asks for */
    int64_t m, n, k, batch;
    const char *layout;
    uint32_t type_a, type_b, type_c;
    bool shared_a, shared_b;
    const char *bias;
    int64_t block;
    uint64_t workspace; /* 0: as the program's default */
} want;

typedef struct problem {
    want w;
    scout_op op;
    scout_tensor tensors[5];
    scout_field fields[4];
    void *data[5]; /* of the device, with canaries around */
} problem;

static const scout_device_api *api;
static scout_device *device;

static uint64_t tensor_bytes(const scout_tensor *t) {
    return ((uint64_t)(t->dims[0] * t->dims[1] * t->dims[2]) * (uint64_t)cpu_number_bits(t->type) + 7) / 8;
}

static void *guarded(uint64_t bytes) {
    void *memory = NULL;
    scout_why why;
    if (api->alloc(device, bytes + 2 * CANARY, &memory, &why) != SCOUT_OK) abort();
    memset(memory, CANARY_BYTE, (size_t)bytes + 2 * CANARY);
    return (char *)memory + CANARY;
}

static bool guards_hold(const void *data, uint64_t bytes) {
    const unsigned char *d = data;
    for (int k = 0; k < CANARY; k++)
        if (d[-1 - k] != CANARY_BYTE || d[bytes + (uint64_t)k] != CANARY_BYTE) return false;
    return true;
}

static void give_back(void *data) {
    if (data) api->release(device, (char *)data - CANARY);
}

static void tensor(problem *p, const char *name, uint32_t role, uint32_t type, int64_t d0, int64_t d1, int64_t d2) {
    scout_tensor *t = &p->tensors[p->op.tensor_count++];
    *t = (scout_tensor){.size = sizeof *t, .role = role, .type = type, .rank = 3};
    t->dims[0] = d0, t->dims[1] = d1, t->dims[2] = d2;
    t->strides[0] = d0 == 1 && p->w.batch > 1 ? 0 : d1 * d2, t->strides[1] = d2, t->strides[2] = 1;
    t->bytes = tensor_bytes(t);
    snprintf(t->name, sizeof t->name, "%s", name);
}

static void fields(problem *p) {
    const want *w = &p->w;
    p->fields[p->op.field_count++] = (scout_field){"batch", w->batch, NULL};
    if (w->bias) p->fields[p->op.field_count++] = (scout_field){"bias", 0, w->bias};
    if (w->block) p->fields[p->op.field_count++] = (scout_field){"block_size", w->block, NULL};
}

static void make(problem *p, const want *w, uint64_t seed) {
    memset(p, 0, sizeof *p);
    p->w = *w;
    scout_op *op = &p->op;
    *op = (scout_op){.size = sizeof *op, .kind = SCOUT_GEMM, .key = "test", .layout = w->layout, .rank = 3};
    op->shape[0] = w->m, op->shape[1] = w->n, op->shape[2] = w->k;
    op->input = w->type_a, op->weight = w->type_b, op->output = w->type_c;
    op->workspace_limit = w->workspace ? w->workspace : 32 << 20;
    op->fields = p->fields, op->tensors = p->tensors;
    const bool ta = w->layout[0] == 't', tb = w->layout[1] == 't';
    tensor(p, "a", SCOUT_INPUT, w->type_a, w->shared_a ? 1 : w->batch, ta ? w->k : w->m, ta ? w->m : w->k);
    tensor(p, "b", SCOUT_WEIGHT, w->type_b, w->shared_b ? 1 : w->batch, tb ? w->n : w->k, tb ? w->k : w->n);
    tensor(p, "c", SCOUT_OUTPUT, w->type_c, w->batch, w->m, w->n);
    if (w->bias) {
        const bool rows = strcmp(w->bias, "m") == 0 || strcmp(w->bias, "full") == 0;
        const bool cols = strcmp(w->bias, "n") == 0 || strcmp(w->bias, "full") == 0;
        tensor(p, "bias", SCOUT_SIDE, w->type_c, 1, rows ? w->m : 1, cols ? w->n : 1);
    }
    if (w->block) tensor(p, "scales", SCOUT_SIDE, SCOUT_FP16, 1, w->n, (w->k + w->block - 1) / w->block);
    fields(p);
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        const bool scales = strcmp(p->tensors[k].name, "scales") == 0;
        scout_why why = {"", ""};
        p->data[k] = guarded(p->tensors[k].bytes);
        if (k != GEMM_C)
            UNIT_CHECK(api->fill(device, p->data[k], p->tensors[k].bytes, p->tensors[k].type,
                                 scales ? SCOUT_FILL_SCALE : SCOUT_FILL_NORMAL, seed + k, &why) == SCOUT_OK);
    }
}

static void drop(problem *p) {
    for (uint32_t k = 0; k < p->op.tensor_count; k++) give_back(p->data[k]);
}

static double at(const problem *p, int index, int64_t position) {
    double value;
    cpu_number_load(p->tensors[index].type, p->data[index], position, 1, 1, &value);
    return value;
}

static double bias_at(const problem *p, int64_t row, int64_t column) {
    const int index = gemm_tensor(&p->op, "bias");
    if (index < 0) return 0;
    const bool rows = strcmp(p->w.bias, "m") == 0 || strcmp(p->w.bias, "full") == 0;
    const bool cols = strcmp(p->w.bias, "n") == 0 || strcmp(p->w.bias, "full") == 0;
    return at(p, index, (rows ? row * (cols ? p->w.n : 1) : 0) + (cols ? column : 0));
}

/* The oracle: no blocks, no threads, nothing shared with the code under test but the loads. */
static void triple_loop(const problem *p) {
    const want *w = &p->w;
    const int scales = gemm_tensor(&p->op, "scales");
    const bool ta = w->layout[0] == 't', tb = w->layout[1] == 't';
    for (int64_t g = 0; g < w->batch; g++)
        for (int64_t i = 0; i < w->m; i++)
            for (int64_t j = 0; j < w->n; j++) {
                const int64_t a0 = w->shared_a ? 0 : g * w->m * w->k, b0 = w->shared_b ? 0 : g * w->k * w->n;
                long double sum = 0;
                for (int64_t k = 0; k < w->k; k++) {
                    long double b = at(p, GEMM_B, b0 + (tb ? j * w->k + k : k * w->n + j));
                    if (scales >= 0) b *= at(p, scales, j * ((w->k + w->block - 1) / w->block) + k / w->block);
                    sum += at(p, GEMM_A, a0 + (ta ? k * w->m + i : i * w->k + k)) * b;
                }
                sum += bias_at(p, i, j);
                cpu_number_store(w->type_c, p->data[GEMM_C], (g * w->m + i) * w->n + j, (double)sum);
            }
}

/* Of rounding an output, and of summing in fp32. */
static double tolerance_of(uint32_t type_c) {
    static const struct {
        uint32_t type;
        double tolerance;
    } rows[] = {{SCOUT_FP32, 3e-6}, {SCOUT_BF16, 0x1.1p-8}, {SCOUT_FP16, 0x1.1p-11}, {SCOUT_INT32, 0}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type_c) return rows[k].tolerance;
    return NAN;
}

static scout_check *begin(const problem *p) {
    scout_check *check = NULL;
    scout_why why = {"", ""};
    if (!UNIT_CHECK(api->references[0]->begin(device, &p->op, p->data, 7, &check, &why) == SCOUT_OK))
        printf("%s: %s\n", why.code, why.text);
    return check;
}

static scout_verdict judge(scout_check *check, const problem *p) {
    scout_verdict v = {.size = sizeof v};
    scout_why why;
    UNIT_CHECK(api->references[0]->compare(check, p->data[GEMM_C], tolerance_of(p->w.type_c), &v, &why) == SCOUT_OK);
    return v;
}

static void say(const problem *p, const char *who, const scout_verdict *v) {
    printf("  %s: %lldx%lldx%lld batch %lld %s types %u %u %u%s%s%s%s: worst %g projected %g of %g, wrong %llu\n", who,
           (long long)p->w.m, (long long)p->w.n, (long long)p->w.k, (long long)p->w.batch, p->w.layout,
           (unsigned)p->w.type_a, (unsigned)p->w.type_b, (unsigned)p->w.type_c, p->w.bias ? " bias " : "",
           p->w.bias ? p->w.bias : "", p->w.shared_a ? " shared a" : "", p->w.shared_b ? " shared b" : "", v->worst,
           v->worst_projected, tolerance_of(p->w.type_c), (unsigned long long)v->wrong);
}

static void check_reference(const want *w, uint64_t seed) {
    problem p;
    make(&p, w, seed);
    triple_loop(&p);
    scout_check *check = begin(&p);
    if (check) {
        scout_verdict v = judge(check, &p);
        const int64_t all = w->m * w->n * w->batch;
        if (!UNIT_CHECK(v.wrong == 0) || !UNIT_CHECK((int64_t)v.compared >= (all < 4096 ? all : 4096)))
            say(&p, "reference", &v);
        api->references[0]->end(check);
    }
    drop(&p);
}

static const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},    {17, 33, 65}, {128, 128, 128},
                                    {1, 300, 70}, {300, 1, 40}, {40, 600, 9}, {129, 257, 33}};
static const char *const layouts[] = {"nn", "nt", "tn", "tt"};
static const uint32_t types[][3] = {{SCOUT_FP32, SCOUT_FP32, SCOUT_FP32},       {SCOUT_BF16, SCOUT_BF16, SCOUT_BF16},
                                    {SCOUT_BF16, SCOUT_BF16, SCOUT_FP32},       {SCOUT_FP16, SCOUT_FP16, SCOUT_FP16},
                                    {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16}, {SCOUT_INT8, SCOUT_INT8, SCOUT_INT32}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], TYPES = sizeof types / sizeof types[0] };

static want want_of(size_t shape, size_t layout, size_t type, int64_t batch) {
    return (want){.m = shapes[shape][0],
                  .n = shapes[shape][1],
                  .k = shapes[shape][2],
                  .batch = batch,
                  .layout = layouts[layout],
                  .type_a = types[type][0],
                  .type_b = types[type][1],
                  .type_c = types[type][2]};
}

static void reference_agrees_with_a_triple_loop(void) {
    for (size_t t = 0; t < TYPES; t++)
        for (size_t l = 0; l < 4; l++)
            for (size_t s = 0; s < SHAPES; s++) {
                want w = want_of(s, l, t, 1 + (int64_t)(s % 2) * 2);
                w.shared_a = s == 3, w.shared_b = s == 5;
                check_reference(&w, 100 * t + 10 * l + s);
            }
}

static void reference_reads_biases_and_scaled_weights(void) {
    static const char *const kinds[] = {"n", "m", "scalar", "full"};
    for (size_t k = 0; k < 4; k++) {
        want w = want_of(7, k, 0, 1);
        w.bias = kinds[k];
        check_reference(&w, k);
        w.batch = 3;
        check_reference(&w, k + 50);
    }
    want w = {.m = 33,
              .n = 300,
              .k = 256,
              .batch = 1,
              .layout = "nt",
              .type_a = SCOUT_FP16,
              .type_b = SCOUT_INT4,
              .type_c = SCOUT_FP16,
              .block = 32};
    check_reference(&w, 9);
    w.block = 128, w.k = 320;
    check_reference(&w, 10);
}

/* 210,000 outputs, of which 8,192 are sampled: the others are the projections' to find. */
static void one_wrong_element_is_found_wherever_it_is(void) {
    static const size_t tried[] = {0, 1, 3, 5};
    for (size_t t = 0; t < 4; t++) {
        want w = want_of(0, 1, tried[t], 1);
        w.m = 300, w.n = 700, w.k = 24;
        problem p;
        make(&p, &w, t);
        triple_loop(&p);
        scout_check *check = begin(&p);
        if (check && UNIT_CHECK(judge(check, &p).wrong == 0)) {
            int missed = 0;
            for (int64_t k = 0; k < 200; k++) {
                const int64_t position = k == 0 ? 0 : k == 1 ? 209999 : k * 7919 * 131 % 210000;
                const double right = at(&p, GEMM_C, position);
                const double off = w.type_c == SCOUT_INT32 ? 1 : 4; /* sums of 24 terms: of the size of one spread */
                cpu_number_store(w.type_c, p.data[GEMM_C], position, right + (k % 2 ? off : -off));
                scout_verdict v = judge(check, &p);
                missed += v.wrong == 0;
                cpu_number_store(w.type_c, p.data[GEMM_C], position, right);
            }
            if (!UNIT_INT(missed, 0)) printf("  of type %u\n", (unsigned)w.type_c);
            UNIT_CHECK(judge(check, &p).wrong == 0);
            api->references[0]->end(check);
        }
        drop(&p);
    }
}

static void what_is_no_number_is_found_and_swapped_rows_too(void) {
    want w = want_of(0, 0, 0, 2);
    w.m = 200, w.n = 300, w.k = 16;
    problem p;
    make(&p, &w, 3);
    triple_loop(&p);
    scout_check *check = begin(&p);
    float *c = p.data[GEMM_C];
    if (check) {
        for (int64_t k = 0; k < 100; k++) {
            const int64_t position = k * 1201 % 120000;
            const float right = c[position];
            c[position] = k % 2 ? NAN : INFINITY;
            scout_verdict v = judge(check, &p);
            UNIT_CHECK(v.wrong > 0 && isinf(v.worst_projected));
            c[position] = right;
        }
        for (int64_t k = 0; k < 100; k++) { /* neighbours that changed places */
            const int64_t position = k * 1201 % 119998;
            const float one = c[position], other = c[position + 1];
            if (fabsf(one - other) < 0.1F) continue;
            c[position] = other, c[position + 1] = one;
            UNIT_CHECK(judge(check, &p).wrong > 0);
            c[position] = one, c[position + 1] = other;
        }
        memset(c, 0xFF, p.tensors[GEMM_C].bytes); /* never written */
        scout_verdict v = judge(check, &p);
        UNIT_CHECK(v.wrong > 4096 && isinf(v.worst));
        api->references[0]->end(check);
    }
    drop(&p);
}

static void references_refuse_what_they_do_not_know(void) {
    want w = want_of(1, 0, 0, 1);
    problem p;
    scout_check *check = NULL;
    scout_why why = {"", ""};
    make(&p, &w, 1);
    p.fields[p.op.field_count++] = (scout_field){"activation", 0, "relu"};
    UNIT_INT(api->references[0]->begin(device, &p.op, p.data, 1, &check, &why), SCOUT_NO);
    UNIT_TEXT(why.code, "epilogue");
    UNIT_CHECK(check == NULL);
    p.op.field_count = 1;
    p.tensors[GEMM_A].type = 9; /* bool */
    UNIT_INT(api->references[0]->begin(device, &p.op, p.data, 1, &check, &why), SCOUT_NO);
    UNIT_TEXT(why.code, "type");
    p.tensors[GEMM_A].type = SCOUT_FP32;
    drop(&p);
}

/* --- candidates --- */

typedef struct tally {
    int ran, unsupported, packed;
} tally;

static void run_variant(const problem *p, const scout_candidate *c, const int64_t *values, scout_check *check,
                        tally *t) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why = {"", ""};
    void *workspace = NULL, *packed = NULL, *tensors[5];
    char json[1024];
    const scout_answer answer = c->prepare(&p->op, device, values, &plan, &needs, &why);
    if (answer == SCOUT_NO && values && values[0] == 1) { /* the library likes the weight as it is */
        UNIT_CHECK(reason_known(why.code) && plan == NULL);
        return;
    }
    if (!UNIT_CHECK(answer == SCOUT_OK && plan)) {
        printf("  %s: %s\n", c->name, why.text);
        return;
    }
    memcpy(tensors, p->data, sizeof tensors);
    workspace = guarded(needs.workspace_bytes);
    UNIT_CHECK(needs.workspace_bytes <= p->op.workspace_limit);
    if (needs.packs) {
        packed = guarded(needs.pack_bytes);
        UNIT_CHECK(c->pack(plan, p->data[needs.packs - 1], packed, NULL, &why) == SCOUT_OK);
        tensors[needs.packs - 1] = packed;
        t->packed++;
    }
    const scout_args args = {sizeof args, tensors, workspace, NULL};
    for (int twice = 0; twice < 2; twice++) {
        memset(p->data[GEMM_C], 0xFF, p->tensors[GEMM_C].bytes);
        UNIT_CHECK(c->launch(plan, &args, &why) == SCOUT_OK);
        scout_verdict v = judge(check, p);
        if (!UNIT_CHECK(v.wrong == 0)) say(p, c->name, &v);
    }
    UNIT_CHECK(guards_hold(workspace, needs.workspace_bytes));
    UNIT_CHECK(!packed || guards_hold(packed, needs.pack_bytes));
    for (uint32_t k = 0; k < p->op.tensor_count; k++) UNIT_CHECK(guards_hold(p->data[k], p->tensors[k].bytes));
    const int length = c->describe(plan, json, sizeof json);
    UNIT_CHECK(length > 2 && length < (int)sizeof json && json[0] == '{' && json[length - 1] == '}');
    UNIT_CHECK(c->describe(plan, NULL, 0) == length);
    t->ran++;
    c->destroy(plan);
    give_back(workspace);
    give_back(packed);
}

static void run_candidate(const problem *p, const scout_candidate *c, scout_check *check, tally *t) {
    static scout_domain domain; /* 100 KB */
    scout_why why = {"", ""};
    const scout_answer answer = c->supports(&p->op, device, &why);
    if (answer != SCOUT_OK) {
        UNIT_INT(answer, SCOUT_NO);
        UNIT_CHECK(reason_known(why.code) && why.text[0]);
        t->unsupported++;
        return;
    }
    domain.count = 0;
    if (c->domain) UNIT_CHECK(c->domain(&p->op, device, 0, &domain, &why) == SCOUT_OK);
    const uint32_t variants = domain.count ? domain.parameters[0].count : 1;
    UNIT_CHECK(domain.count <= 1); /* one loop is enough here */
    for (uint32_t v = 0; v < variants; v++)
        run_variant(p, c, domain.count ? &domain.parameters[0].values[v] : NULL, check, t);
}

static void run_all(const want *w, uint64_t seed, tally *tallies) {
    problem p;
    make(&p, w, seed);
    uint64_t before[2], after[2];
    scout_why why;
    scout_check *check = begin(&p);
    for (int k = 0; k < 2; k++) (void)api->checksum(device, p.data[k], p.tensors[k].bytes, &before[k], &why);
    for (uint32_t k = 0; k < api->candidate_count && check; k++)
        if (api->candidates[k]->kind == SCOUT_GEMM) run_candidate(&p, api->candidates[k], check, &tallies[k]);
    for (int k = 0; k < 2; k++) (void)api->checksum(device, p.data[k], p.tensors[k].bytes, &after[k], &why);
    UNIT_CHECK(before[0] == after[0] && before[1] == after[1]);
    if (check) api->references[0]->end(check);
    drop(&p);
}

static void report(const char *what, const tally *tallies) {
    for (uint32_t k = 0; k < api->candidate_count; k++)
        printf("  %s, %s: %d ran (%d packed), %d unsupported\n", what, api->candidates[k]->name, tallies[k].ran,
               tallies[k].packed, tallies[k].unsupported);
}

static void candidates_are_right_in_every_layout_and_type(void) {
    tally tallies[16] = {{0, 0, 0}};
    for (size_t t = 0; t < TYPES; t++)
        for (size_t l = 0; l < 4; l++)
            for (size_t s = 0; s < SHAPES; s++) {
                want w = want_of(s, l, t, 1);
                run_all(&w, 1000 * t + 10 * l + s, tallies);
            }
    report("layouts and types", tallies);
    for (uint32_t k = 0; k < api->candidate_count; k++)
        if (strcmp(api->candidates[k]->name, "cpu_tiled") == 0) UNIT_INT(tallies[k].ran, 4 * SHAPES);
}

static void candidates_are_right_in_batches(void) {
    tally tallies[16] = {{0, 0, 0}};
    for (size_t t = 0; t < TYPES; t++)
        for (size_t l = 0; l < 4; l++)
            for (int shared = 0; shared < 3; shared++) {
                want w = want_of(2, l, t, 5);
                w.shared_a = shared == 1, w.shared_b = shared == 2;
                run_all(&w, 1000 * t + 10 * l + (uint64_t)shared, tallies);
            }
    report("batches", tallies);
    for (uint32_t k = 0; k < api->candidate_count; k++)
        if (strcmp(api->candidates[k]->name, "cpu_tiled") == 0) UNIT_INT(tallies[k].ran, 12);
}

static void candidates_are_right_with_a_bias(void) {
    static const char *const kinds[] = {"n", "m", "scalar", "full"};
    tally tallies[16] = {{0, 0, 0}};
    for (size_t k = 0; k < 4; k++)
        for (int64_t batch = 1; batch < 4; batch += 2) {
            want w = want_of(2, k, 0, batch);
            w.bias = kinds[k];
            run_all(&w, k, tallies);
        }
    report("biases", tallies);
}

static void candidates_are_right_on_larger_products(void) {
    tally tallies[16] = {{0, 0, 0}};
    static const int64_t large[][3] = {{1, 1024, 1024}, {16, 768, 1031}, {257, 513, 700}, {512, 512, 512}};
    for (size_t t = 0; t < TYPES; t++)
        for (size_t s = 0; s < 4; s++) {
            want w = want_of(0, s, t, 1);
            w.m = large[s][0], w.n = large[s][1], w.k = large[s][2];
            run_all(&w, t + s, tallies);
        }
    report("larger", tallies);
}

/* What needs workspace does with less, or says that it cannot: never more than it was given (run_variant looks). */
static void little_workspace_is_enough_or_refused(void) {
    tally tallies[16] = {{0, 0, 0}};
    for (size_t l = 0; l < 4; l++) {
        want w = want_of(3, l, l % 2, 1);
        w.workspace = 1;
        run_all(&w, l, tallies);
    }
    report("little workspace", tallies);
    UNIT_CHECK(tallies[0].ran + tallies[0].unsupported > 0);
}

static void a_weight_in_4_bits_is_multiplied_or_refused(void) {
    tally tallies[16] = {{0, 0, 0}};
    static const int64_t rows[] = {1, 3, 17};
    for (size_t k = 0; k < 3; k++) {
        want w = {.m = rows[k],
                  .n = 130,
                  .k = 256,
                  .batch = 1,
                  .layout = "nt",
                  .type_a = SCOUT_FP16,
                  .type_b = SCOUT_INT4,
                  .type_c = SCOUT_FP16,
                  .block = k == 2 ? 32 : 128};
        run_all(&w, k, tallies);
        w.layout = "tt", w.workspace = 256 * sizeof(float) * (uint64_t)(cpu_team_size() + 2); /* two rows at a time */
        run_all(&w, k, tallies);
    }
    report("int4", tallies);
    for (uint32_t k = 0; k < api->candidate_count; k++)
        UNIT_INT(tallies[k].ran, strcmp(api->candidates[k]->name, "cpu_int4") == 0 ? 6 : 0);
}

int main(void) {
    scout_why why;
    api = cpu_device_api();
    if (api->open(0, &device, &why) != SCOUT_OK) return 1;
    UNIT_RUN(reference_agrees_with_a_triple_loop);
    UNIT_RUN(reference_reads_biases_and_scaled_weights);
    UNIT_RUN(one_wrong_element_is_found_wherever_it_is);
    UNIT_RUN(what_is_no_number_is_found_and_swapped_rows_too);
    UNIT_RUN(references_refuse_what_they_do_not_know);
    UNIT_RUN(candidates_are_right_in_every_layout_and_type);
    UNIT_RUN(candidates_are_right_in_batches);
    UNIT_RUN(candidates_are_right_with_a_bias);
    UNIT_RUN(candidates_are_right_on_larger_products);
    UNIT_RUN(little_workspace_is_enough_or_refused);
    UNIT_RUN(a_weight_in_4_bits_is_multiplied_or_refused);
    api->close(device);
    return unit_end();
}
