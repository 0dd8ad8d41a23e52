/* Building, filling, running and judging operations of the kinds elementwise and reduce. */
#include "tests/unit/cpu/cpu_element.h"

#include "scout/cpu/device/cpu_number.h"
#include "scout/device/cpu.h"
#include "scout/op/op.h"
#include "scout/terms/reason.h"
#include "scout/terms/variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 256, CANARY_BYTE = 0xA5 };

int element_failures;

static bool check(bool good, const char *what, int line) {
    if (good) return true;
    printf("%s:%d: not so: %s\n", __FILE__, line, what);
    element_failures++;
    return false;
}
#define UNIT_COUNT(x) check((x), #x, __LINE__)

static const scout_device_api *api;
static scout_device *device;

bool element_open(void) {
    scout_why why;
    api = cpu_device_api();
    return api->open(0, &device, &why) == SCOUT_OK;
}

void element_close(void) { api->close(device); }

void element_build(element *e, const element_want *w) {
    memset(e, 0, sizeof *e);
    guard_init(&e->guard);
    arena_init(&e->arena, &e->guard, (size_t)16 << 20);
    oprec *rec = &e->o.rec;
    rec->kind = w->kind, rec->what = w->what, rec->type = w->type, rec->out_type = w->out;
    rec->bytes_read = w->bytes_read, rec->flops = 1;
    oprec_set_shape(rec, &e->arena, w->rank, w->shape);
    if (w->inputs) oprec_set_text(rec, "inputs", w->inputs);
    if (w->chain) oprec_set_text(rec, "chain", w->chain);
    for (int k = 0; k < 3; k++)
        if (w->numbers[k].name) oprec_set_real(rec, w->numbers[k].name, w->numbers[k].value);
    if (w->input_rank) oprec_set_ints(rec, &e->arena, "input", w->input_rank, w->input);
    if (w->axis_count) oprec_set_ints(rec, &e->arena, "axes", w->axis_count, w->axes);
    e->built = kinds_build(&e->o, 32 << 20, &e->arena, &e->op, &e->why);
    if (e->built) e->tolerance = kinds_find(w->kind)->tolerance(&e->op);
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

static const scout_reference *reference(const element *e) {
    for (uint32_t k = 0; k < api->reference_count; k++)
        if (api->references[k]->kind == e->op.kind) return api->references[k];
    abort();
}

int element_output(const element *e) { return (int)e->op.tensor_count - 1; }

void element_fill(element *e, uint64_t seed) {
    scout_why why = {"", ""};
    if (!e->built) {
        printf("%s of %s: %s\n", e->o.rec.what, dtype_get(e->o.rec.type)->name, e->why.text);
        abort();
    }
    e->judged = true;
    for (uint32_t k = 0; k < e->op.tensor_count; k++) {
        const scout_tensor *t = &e->op.tensors[k];
        const uint32_t how = strcmp(t->name, "scales") == 0 ? SCOUT_FILL_SCALE : SCOUT_FILL_NORMAL;
        e->data[k] = guarded(t->bytes);
        if (t->role == SCOUT_OUTPUT) continue;
        if (api->fill(device, e->data[k], t->bytes, t->type, how, seed + k, &why) != SCOUT_OK) abort();
    }
    element_again(e);
}

void element_again(element *e) {
    scout_why why = {"", ""};
    if (e->check) reference(e)->end(e->check);
    if (reference(e)->begin(device, &e->op, e->data, 7, &e->check, &why) == SCOUT_OK) return;
    printf("reference: %s\n", why.text);
    abort();
}

void element_drop(element *e) {
    if (e->check) reference(e)->end(e->check);
    for (uint32_t k = 0; k < SCOUT_MAX_TENSORS; k++)
        if (e->data[k]) api->release(device, (char *)e->data[k] - CANARY);
    arena_free(&e->arena);
}

double element_at(const element *e, int tensor, int64_t position) {
    double value;
    cpu_number_load(e->op.tensors[tensor].type, e->data[tensor], position, 1, 1, &value);
    return value;
}

scout_verdict element_judge(const element *e) {
    scout_verdict v = {.size = sizeof v};
    scout_why why;
    if (reference(e)->compare(e->check, e->data[element_output(e)], e->tolerance, &v, &why) != SCOUT_OK) abort();
    return v;
}

static const scout_candidate *candidate_named(const char *name) {
    for (uint32_t k = 0; k < api->candidate_count; k++)
        if (strcmp(api->candidates[k]->name, name) == 0) return api->candidates[k];
    abort();
}

static uint64_t sum_inputs(const element *e) {
    uint64_t all = 0;
    scout_why why;
    for (uint32_t k = 0; k + 1 < e->op.tensor_count; k++) {
        uint64_t sum = 0;
        (void)api->checksum(device, e->data[k], e->op.tensors[k].bytes, &sum, &why);
        all = all * 31 + sum;
    }
    return all;
}

static void launch_and_judge(element *e, const scout_candidate *c, scout_plan *plan, const scout_args *args) {
    const int out = element_output(e);
    scout_why why = {"", ""};
    for (int twice = 0; twice < 2; twice++) {
        memset(e->data[out], 0xFF, e->op.tensors[out].bytes);
        UNIT_COUNT(c->launch(plan, args, &why) == SCOUT_OK);
        if (!e->judged) continue;
        const scout_verdict v = element_judge(e);
        if (!UNIT_COUNT(v.wrong == 0))
            printf(
                "  %s, %s of %s: %llu of %llu are off by up to %.3g (%.3g is allowed): at %llu it is %.9g instead of "
                "%.9g\n",
                c->name, e->o.rec.what, dtype_get(e->o.rec.type)->name, (unsigned long long)v.wrong,
                (unsigned long long)v.compared, v.worst, e->tolerance, (unsigned long long)v.at, v.got, v.want);
    }
}

static void run_plan(element *e, const scout_candidate *c, scout_plan *plan, const scout_plan_needs *needs) {
    char json[1024];
    const uint64_t before = sum_inputs(e);
    void *const workspace = guarded(needs->workspace_bytes);
    const scout_args args = {sizeof args, e->data, workspace, NULL};
    UNIT_COUNT(needs->workspace_bytes <= e->op.workspace_limit && needs->packs == 0);
    launch_and_judge(e, c, plan, &args);
    UNIT_COUNT(sum_inputs(e) == before);
    UNIT_COUNT(guards_hold(workspace, needs->workspace_bytes));
    for (uint32_t k = 0; k < e->op.tensor_count; k++) UNIT_COUNT(guards_hold(e->data[k], e->op.tensors[k].bytes));
    const int length = scout_describe(c, plan, json, sizeof json);
    UNIT_COUNT(length > 2 && length < (int)sizeof json && json[0] == '{' && json[length - 1] == '}');
    UNIT_COUNT(scout_describe(c, plan, NULL, 0) == length);
    UNIT_COUNT(!strstr(json, "\"ref:")); /* a library's plain reference is no candidate: no model is run so */
    api->release(device, (char *)workspace - CANARY);
}

int element_run(element *e, const char *name) {
    static scout_domain domain; /* 33 KB */
    const scout_candidate *c = candidate_named(name);
    variants v;
    variants_one one;
    scout_why why = {"", ""};
    const scout_answer answer = c->supports(&e->op, device, &why);
    if (answer != SCOUT_OK) {
        if (!UNIT_COUNT(answer == SCOUT_NO && reason_known(why.code) && why.text[0]))
            printf("  %s: %s %s\n", name, why.code, why.text);
        return 0;
    }
    UNIT_COUNT(variants_open(&v, c, &e->op, device, false, &domain, &why) == SCOUT_OK);
    while (variants_next(&v, &one)) {
        scout_plan *plan = NULL;
        scout_plan_needs needs = {.size = sizeof needs};
        if (!UNIT_COUNT(scout_prepare(c, &e->op, device, one.values, &plan, &needs, &why) == SCOUT_OK && plan)) {
            printf("  %s %s: %s\n", name, one.text, why.text);
            return 0;
        }
        run_plan(e, c, plan, &needs);
        scout_destroy(c, plan);
    }
    return 1;
}

void element_run_all(const element_want *w, uint64_t seed, int *ran) {
    const bool reduces = w->kind == OP_REDUCE;
    element e;
    element_build(&e, w);
    element_fill(&e, seed);
    ran[0] += element_run(&e, reduces ? "onednn_reduce" : "onednn_elementwise");
    int own = element_run(&e, reduces ? "cpu_reduce" : "cpu_elementwise");
    if (reduces && !own) own = element_run(&e, "cpu_reduce_any");
    UNIT_COUNT(own == 1); /* it is the baseline of what no library has */
    ran[1] += own;
    element_drop(&e);
}

/* Which places: the first, the last, and some between. */
void element_finds_wrong(element *e) {
    const int out = element_output(e);
    const scout_tensor *t = &e->op.tensors[out];
    const int64_t count = op_elements(t), step = count > 64 ? count / 61 : 1;
    for (int64_t at = 0; at < count; at += step) {
        const int64_t place = at + step < count ? at : count - 1;
        const double value = element_at(e, out, place);
        const double other = t->type == SCOUT_BOOL ? 1 - value : cpu_number_whole(t->type) ? value - 1 : value + 0.25;
        cpu_number_store(t->type, e->data[out], place, value == other ? value + 1 : other);
        const scout_verdict v = element_judge(e);
        UNIT_COUNT(v.wrong == 1 && v.at == (uint64_t)place);
        cpu_number_store(t->type, e->data[out], place, value);
    }
    UNIT_COUNT(element_judge(e).wrong == 0);
}
