/* Building, filling and judging; see the header. */
#include "tests/unit/cpu/cpu_built.h"

#include "scout/cpu/device/cpu_number.h"
#include "scout/device/cpu.h"
#include "scout/op/op.h"
#include "scout/terms/reason.h"
#include "scout/terms/variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CANARY = 256, CANARY_BYTE = 0xA5 };

static const scout_device_api *api;
static scout_device *device;
int cpu_built_failures;

bool cpu_built_open(void) {
    scout_why why;
    api = cpu_device_api();
    return api->open(0, &device, &why) == SCOUT_OK;
}

void cpu_built_close(void) { api->close(device); }

static bool expect(bool good, const char *text, const char *subject, const char *what) {
    if (!good) {
        printf("%s: %s: %s\n", text, subject, what);
        cpu_built_failures++;
    }
    return good;
}

/* --- memory --- */

static void *guarded(uint64_t bytes) {
    void *memory = NULL;
    scout_why why;
    if (api->alloc(device, bytes + 2 * CANARY, &memory, &why) != SCOUT_OK) abort();
    memset(memory, CANARY_BYTE, (size_t)bytes + 2 * CANARY);
    return (char *)memory + CANARY;
}

static bool whole(const void *data, uint64_t bytes) {
    const unsigned char *d = data;
    for (int k = 0; k < CANARY; k++)
        if (d[-1 - k] != CANARY_BYTE || d[bytes + (uint64_t)k] != CANARY_BYTE) return false;
    return true;
}

static void give_back(void *data) {
    if (data) api->release(device, (char *)data - CANARY);
}

/* --- an operation --- */

static void read_text(cpu_built *b, const char *text) {
    char path[] = "/tmp/cpu_built_XXXXXX";
    const int file = mkstemp(path);
    if (file < 0 || dprintf(file, "{\"it\": %s}\n", text) < 0 || close(file) != 0) abort();
    guard_init(&b->g);
    arena_init(&b->a, &b->g, (size_t)16 << 20);
    if (!guard_enter(&b->g)) {
        printf("%s: cannot be read\n", text);
        abort();
    }
    operation_read(path, NULL, &b->a, &b->list);
    (void)unlink(path);
}

void cpu_built_make(cpu_built *b, const char *text, uint64_t workspace_limit) {
    memset(b, 0, sizeof *b);
    read_text(b, text);
    b->built = kinds_build(&b->list.items[0], workspace_limit, &b->a, &b->op, &b->why);
}

void cpu_built_end(cpu_built *b) {
    for (int k = 0; k < SCOUT_MAX_TENSORS; k++) give_back(b->data[k]);
    operation_list_free(&b->list);
    arena_free(&b->a);
}

void cpu_built_fill(cpu_built *b, uint64_t seed) {
    for (uint32_t k = 0; k < b->op.tensor_count; k++) {
        const scout_tensor *t = &b->op.tensors[k];
        uint32_t how = strcmp(t->name, "scales") == 0 ? SCOUT_FILL_SCALE : SCOUT_FILL_NORMAL;
        scout_why why = {"", ""};
        if (t->below > 0) how = strcmp(t->name, "lengths") == 0 ? SCOUT_FILL_NEAR : SCOUT_FILL_BELOW;
        if (t->below < 0) how = SCOUT_FILL_SMALL;
        if (!b->data[k]) b->data[k] = guarded(t->bytes);
        if (t->role == SCOUT_OUTPUT) continue;
        const int64_t told = t->below < 0 ? -t->below : t->below;
        const uint64_t own = told ? SCOUT_FILL_SEED(told, seed + k) : seed + k;
        if (api->fill(device, b->data[k], t->bytes, t->type, how, own, &why) != SCOUT_OK) {
            printf("%s: %s\n", why.code, why.text);
            abort();
        }
    }
}

double cpu_built_at(const cpu_built *b, const char *tensor, int64_t position) {
    const int k = op_tensor(&b->op, tensor);
    double value = NAN;
    if (k >= 0) cpu_number_load(b->op.tensors[k].type, b->data[k], position, 1, 1, &value);
    return value;
}

void cpu_built_put(cpu_built *b, const char *tensor, int64_t position, double value) {
    const int k = op_tensor(&b->op, tensor);
    if (k >= 0) cpu_number_store(b->op.tensors[k].type, b->data[k], position, value);
}

/* --- the reference --- */

static const scout_reference *reference_of(uint32_t which) {
    for (uint32_t k = 0; k < api->reference_count; k++)
        if (api->references[k]->kind == which) return api->references[k];
    return NULL;
}

static scout_check *begin(const cpu_built *b) {
    scout_check *check = NULL;
    scout_why why = {"", ""};
    if (reference_of(b->op.kind)->begin(device, &b->op, b->data, 7, &check, &why) == SCOUT_OK) return check;
    printf("the reference: %s: %s\n", why.code, why.text);
    return NULL;
}

static scout_verdict judge(const cpu_built *b, scout_check *check, uint32_t output) {
    scout_verdict v = {.size = sizeof v};
    scout_why why;
    const double tolerance = kinds_find((op_kind)b->op.kind)->tolerance(&b->op);
    const scout_reference *const r = reference_of(b->op.kind);
    const scout_answer answer = r->compare_at ? r->compare_at(check, output, b->data[output], tolerance, &v, &why)
                                              : r->compare(check, b->data[output], tolerance, &v, &why);
    if (answer != SCOUT_OK) abort();
    return v;
}

bool cpu_built_accepts(cpu_built *b) {
    scout_check *check = begin(b);
    bool good = check != NULL;
    for (uint32_t k = 0; check && k < b->op.tensor_count; k++)
        if (b->op.tensors[k].role == SCOUT_OUTPUT) good = good && judge(b, check, k).wrong == 0;
    if (check) reference_of(b->op.kind)->end(check);
    return good;
}

/* --- candidates --- */

static void poison(cpu_built *b) {
    for (uint32_t k = 0; k < b->op.tensor_count; k++)
        if (b->op.tensors[k].role == SCOUT_OUTPUT) memset(b->data[k], 0xFF, b->op.tensors[k].bytes);
}

static uint64_t sum_inputs(const cpu_built *b) {
    uint64_t all = 0, sum;
    scout_why why;
    for (uint32_t k = 0; k < b->op.tensor_count; k++) {
        if (b->op.tensors[k].role == SCOUT_OUTPUT) continue;
        (void)api->checksum(device, b->data[k], b->op.tensors[k].bytes, &sum, &why);
        all = all * 31 + sum;
    }
    return all;
}

static void judge_outputs(cpu_built *b, scout_check *check, const char *text, const char *subject) {
    for (uint32_t k = 0; k < b->op.tensor_count; k++) {
        if (b->op.tensors[k].role != SCOUT_OUTPUT) continue;
        const scout_verdict v = judge(b, check, k);
        expect(v.compared == (uint64_t)op_elements(&b->op.tensors[k]), text, subject, "not all was compared");
        if (v.wrong == 0) continue;
        printf("%llu of %llu, worst %.3g at %llu: %.9g instead of %.9g\n", (unsigned long long)v.wrong,
               (unsigned long long)v.compared, v.worst, (unsigned long long)v.at, v.got, v.want);
        expect(false, text, subject, "a wrong output");
    }
}

static void describe(const scout_candidate *c, const scout_plan *plan, const char *text) {
    char json[1024];
    const int length = scout_describe(c, plan, json, sizeof json);
    expect(length > 2 && length < (int)sizeof json && json[0] == '{' && json[length - 1] == '}', text, c->name,
           "describes itself badly");
}

/* What the harness does for a plan that packs a weight: the tensors of a launch have the packed one in its place. */
static void *pack(const cpu_built *b, const scout_candidate *c, scout_plan *plan, const scout_plan_needs *needs,
                  void **tensors, const char *text) {
    scout_why why = {"", ""};
    void *packed = NULL;
    memcpy(tensors, b->data, sizeof b->data);
    if (!needs->packs) return NULL;
    packed = guarded(needs->pack_bytes);
    memset(packed, 0xFF, needs->pack_bytes);
    void **at = &tensors[needs->packs - 1];
    const scout_answer answer = SCOUT_HAS(c, pack_tensors) && c->pack_tensors
                                    ? c->pack_tensors(plan, b->data, packed, NULL, &why)
                                    : c->pack(plan, *at, packed, NULL, &why);
    expect(answer == SCOUT_OK && whole(packed, needs->pack_bytes), text, c->name, "does not pack");
    *at = packed;
    return packed;
}

static bool run_variant(cpu_built *b, const scout_candidate *c, const int64_t *values, scout_check *check,
                        const char *text) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why = {"", ""};
    const scout_answer answer = scout_prepare(c, &b->op, device, values, &plan, &needs, &why);
    if (answer == SCOUT_NO) {
        expect(reason_known(why.code) && why.text[0] && !plan, text, c->name, "refuses without a reason");
        return false;
    }
    if (!expect(answer == SCOUT_OK && plan, text, c->name, why.text)) return false;
    expect(needs.workspace_bytes <= b->op.workspace_limit, text, c->name, "wants more workspace than there is");
    void *workspace = guarded(needs.workspace_bytes);
    const uint64_t before = sum_inputs(b);
    void *tensors[SCOUT_MAX_TENSORS];
    void *packed = pack(b, c, plan, &needs, tensors, text);
    const scout_args args = {sizeof args, tensors, workspace, NULL};
    for (int twice = 0; twice < 2; twice++) {
        poison(b);
        memset(workspace, 0xFF, needs.workspace_bytes);
        expect(c->launch(plan, &args, &why) == SCOUT_OK, text, c->name, "does not launch");
        judge_outputs(b, check, text, c->name);
    }
    expect(whole(workspace, needs.workspace_bytes), text, c->name, "wrote beside its workspace");
    for (uint32_t k = 0; k < b->op.tensor_count; k++)
        expect(whole(b->data[k], b->op.tensors[k].bytes), text, c->name, "wrote beside a tensor");
    expect(sum_inputs(b) == before, text, c->name, "changed an input");
    describe(c, plan, text);
    scout_destroy(c, plan);
    give_back(packed);
    give_back(workspace);
    return true;
}

static int run_candidate(cpu_built *b, const scout_candidate *c, scout_check *check, const char *text) {
    static scout_domain domain; /* 33 KB */
    variants v;
    variants_one one;
    scout_why why = {"", ""};
    int ran = 0;
    const scout_answer answer = c->supports(&b->op, device, &why);
    if (answer != SCOUT_OK) {
        expect(answer == SCOUT_NO && reason_known(why.code) && why.text[0], text, c->name, "refuses badly");
        return 0;
    }
    expect(variants_open(&v, c, &b->op, device, false, &domain, &why) == SCOUT_OK, text, c->name, "has no domain");
    while (variants_next(&v, &one)) ran += run_variant(b, c, one.values, check, text);
    return ran;
}

/* The output is right when this is called, and afterwards. */
static void break_one(cpu_built *b, scout_check *check, uint32_t output, int64_t at, const char *text) {
    const scout_tensor *t = &b->op.tensors[output];
    const bool flag = t->type == SCOUT_BOOL,
               byte = !flag &&
                      (cpu_number_bits(t->type) < 8 || (cpu_number_whole(t->type) && cpu_number_bits(t->type) <= 16));
    double right;
    cpu_number_load(t->type, b->data[output], at, 1, 1, &right);
    const double wrong = flag ? right == 0 : byte ? right + (right > 0 ? -2 : 2) : right + 1 + fabs(right) / 2;
    cpu_number_store(t->type, b->data[output], at, wrong);
    const scout_verdict v = judge(b, check, output);
    const uint64_t most = b->op.kind == SCOUT_GEMM ? 2 : 1; /* a projection sees it, too */
    expect(v.wrong > 0 && v.wrong <= most && v.at == (uint64_t)at, text, t->name, "one wrong element was not found");
    cpu_number_store(t->type, b->data[output], at, right);
}

static void break_outputs(cpu_built *b, scout_check *check, const char *text) {
    for (uint32_t k = 0; k < b->op.tensor_count; k++) {
        const scout_tensor *t = &b->op.tensors[k];
        if (t->role != SCOUT_OUTPUT) continue;
        const int64_t count = op_elements(t), places[] = {0, count / 3, count - 1};
        for (int i = 0; i < 3; i++) break_one(b, check, k, places[i], text);
    }
}

int cpu_built_run(cpu_built *b, const char *text) {
    scout_check *check = begin(b);
    int ran = 0;
    if (!expect(check != NULL, text, "the reference", "does not begin")) return 0;
    for (uint32_t k = 0; k < api->candidate_count; k++)
        if (api->candidates[k]->kind == b->op.kind) ran += run_candidate(b, api->candidates[k], check, text);
    if (ran > 0) break_outputs(b, check, text);
    reference_of(b->op.kind)->end(check);
    return ran;
}

void cpu_built_check(const char *text, int least) {
    static uint64_t seed = 1000;
    cpu_built b;
    cpu_built_make(&b, text, 32 << 20);
    if (expect(b.built, text, "its kind", b.why.text)) {
        cpu_built_fill(&b, seed += 100);
        const int ran = cpu_built_run(&b, text);
        expect(ran >= least, text, "candidates", "too few ran");
    }
    cpu_built_end(&b);
}

bool cpu_built_launch(cpu_built *b, const char *candidate) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why = {"", ""};
    const scout_candidate *c = NULL;
    for (uint32_t k = 0; k < api->candidate_count; k++)
        if (strcmp(api->candidates[k]->name, candidate) == 0) c = api->candidates[k];
    if (!c || c->supports(&b->op, device, &why) != SCOUT_OK ||
        scout_prepare(c, &b->op, device, NULL, &plan, &needs, &why) != SCOUT_OK || needs.packs)
        return false;
    void *workspace = guarded(needs.workspace_bytes);
    const scout_args args = {sizeof args, b->data, workspace, NULL};
    const bool ran = c->launch(plan, &args, &why) == SCOUT_OK;
    scout_destroy(c, plan);
    give_back(workspace);
    return ran;
}

void cpu_built_refused(const char *text, const char *code) {
    cpu_built b;
    cpu_built_make(&b, text, 32 << 20);
    expect(!b.built && strcmp(b.why.code, code) == 0 && b.why.text[0] && reason_known(b.why.code), text, b.why.code,
           "should have been refused otherwise");
    cpu_built_end(&b);
}
