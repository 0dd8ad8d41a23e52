/* One operation after the other: built as from a file, filled, run by all, compared. */
#include "tests/unit/cpu/cpu_norm_fixture.h"

#include "common/dtype.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/op/op.h"
#include "scout/terms/reason.h"
#include "scout/terms/variants.h"
#include "tests/unit/cpu/cpu_products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cpu_norm_lab_wrong;

/* unit.h counts by file: what is seen here is counted for all, and a test looks at the sum. */
static bool hold(bool good, const char *what, int line) {
    if (good) return true;
    printf("cpu_norm_fixture.c:%d: not so: %s\n", line, what);
    cpu_norm_lab_wrong++;
    return false;
}
#define HOLD(x) hold((x), #x, __LINE__)

/* --- building --- */

static void set_field(cpu_norm_lab *lab, oprec *rec, const char *name, const char *value) {
    int64_t list[SCOUT_MAX_RANK + 2];
    int count = 0;
    if (value[0] != '-' && (value[0] < '0' || value[0] > '9')) {
        oprec_set_text(rec, name, value);
    } else if (strchr(value, '.')) {
        oprec_set_real(rec, name, strtod(value, NULL));
    } else if (strcmp(name, "axes") == 0 || strcmp(name, "input") == 0) {
        for (char *end; *value && count < SCOUT_MAX_RANK + 2; value = *end == ',' ? end + 1 : end)
            list[count++] = strtoll(value, &end, 10);
        oprec_set_ints(rec, &lab->a, name, count, list);
    } else {
        oprec_set_int(rec, name, strtoll(value, NULL, 10));
    }
}

bool cpu_norm_lab_build(cpu_norm_lab *lab, const cpu_norm_want *want) {
    operation_list list;
    guard_init(&lab->g);
    arena_init(&lab->a, &lab->g, (size_t)16 << 20);
    lab->why = (scout_why){.code = ""};
    operation_from_words(want->kind, want->shape, want->precision ? want->precision : "fp32", 0, NULL, &lab->a, &list);
    operation *o = arena_zalloc(&lab->a, sizeof *o);
    *o = list.items[0];
    o->source = NULL;
    o->rec.what = want->what;
    o->rec.weight_type = want->weight ? dtype_from_name(want->weight) : DTYPE_NONE;
    char *text = arena_printf(&lab->a, "%s", want->fields ? want->fields : ""), *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = 0;
        if (strcmp(word, "layout") == 0)
            o->rec.layout = equals + 1;
        else if (strcmp(word, "bytes_read") == 0)
            o->rec.bytes_read = strtoll(equals + 1, NULL, 10);
        else if (strcmp(word, "out_dtype") == 0)
            o->rec.out_type = dtype_from_name(equals + 1);
        else
            set_field(lab, &o->rec, word, equals + 1);
    }
    operation_list_free(&list);
    const uint64_t workspace = want->workspace ? want->workspace : 32 << 20;
    lab->built = kinds_build(o, workspace, &lab->a, &lab->op, &lab->why);
    if (lab->built) lab->tolerance = kinds_find(o->rec.kind)->tolerance(&lab->op);
    return lab->built;
}

bool cpu_norm_lab_begin(cpu_norm_lab *lab, const cpu_norm_want *want, uint64_t seed) {
    scout_why why;
    memset(lab, 0, sizeof *lab);
    if (!cpu_norm_lab_build(lab, want)) return false;
    for (uint32_t k = 0; k < lab->op.tensor_count; k++) {
        const scout_tensor *t = &lab->op.tensors[k];
        const uint32_t how = strcmp(t->name, "variance") == 0 ? SCOUT_FILL_SCALE : SCOUT_FILL_NORMAL;
        lab->data[k] = cpu_products_guarded(t->bytes);
        if (t->role != SCOUT_OUTPUT)
            HOLD(cpu_products_api->fill(cpu_products_device, lab->data[k], t->bytes, t->type, how, seed * 100 + k,
                                        &why) == SCOUT_OK);
    }
    return true;
}

static const scout_reference *reference(uint32_t of) {
    for (uint32_t k = 0; k < cpu_products_api->reference_count; k++)
        if (cpu_products_api->references[k]->kind == of) return cpu_products_api->references[k];
    abort();
}

void cpu_norm_lab_end(cpu_norm_lab *lab) {
    if (lab->check) reference(lab->op.kind)->end(lab->check);
    for (uint32_t k = 0; lab->built && k < lab->op.tensor_count; k++) cpu_products_give_back(lab->data[k]);
    arena_free(&lab->a);
}

/* --- comparing --- */

double cpu_norm_lab_at(const cpu_norm_lab *lab, int tensor, int64_t at) {
    double x = 0;
    cpu_number_load(lab->op.tensors[tensor].type, lab->data[tensor], at, 1, 1, &x);
    return x;
}

void cpu_norm_lab_set(const cpu_norm_lab *lab, int tensor, int64_t at, double value) {
    cpu_number_store(lab->op.tensors[tensor].type, lab->data[tensor], at, value);
}

bool cpu_norm_lab_refer(cpu_norm_lab *lab) {
    const scout_reference *r = reference(lab->op.kind);
    if (lab->check) r->end(lab->check);
    lab->check = NULL;
    if (r->begin(cpu_products_device, &lab->op, lab->data, 1, &lab->check, &lab->why) == SCOUT_OK) return true;
    printf("  the reference: %s\n", lab->why.text);
    return false;
}

scout_verdict cpu_norm_lab_judge(const cpu_norm_lab *lab, uint32_t tensor, double tolerance) {
    scout_verdict v = {.size = sizeof v};
    scout_why why;
    HOLD(reference(lab->op.kind)->compare_at(lab->check, tensor, lab->data[tensor], tolerance, &v, &why) == SCOUT_OK);
    return v;
}

/* --- running --- */

static uint64_t sum_of(const cpu_norm_lab *lab, uint32_t tensor) {
    uint64_t sum = 0;
    scout_why why;
    (void)cpu_products_api->checksum(cpu_products_device, lab->data[tensor], lab->op.tensors[tensor].bytes, &sum, &why);
    return sum;
}

static void launch_and_look(cpu_norm_lab *lab, const scout_candidate *c, scout_plan *plan, void *workspace,
                            uint64_t workspace_bytes) {
    const scout_args args = {sizeof args, lab->data, workspace, NULL};
    uint64_t before[SCOUT_MAX_TENSORS] = {0};
    for (uint32_t k = 0; k < lab->op.tensor_count; k++) {
        if (lab->op.tensors[k].role == SCOUT_OUTPUT) memset(lab->data[k], 0xFF, lab->op.tensors[k].bytes);
        before[k] = sum_of(lab, k);
    }
    memset(workspace, 0xFF, workspace_bytes);
    HOLD(c->launch(plan, &args, &lab->why) == SCOUT_OK);
    for (uint32_t k = 0; k < lab->op.tensor_count; k++) {
        const scout_tensor *t = &lab->op.tensors[k];
        HOLD(cpu_products_guards_hold(lab->data[k], t->bytes));
        if (t->role != SCOUT_OUTPUT) {
            HOLD(sum_of(lab, k) == before[k]);
            continue;
        }
        const scout_verdict v = cpu_norm_lab_judge(lab, k, lab->tolerance);
        if (!HOLD(v.wrong == 0))
            printf("  %s: %s of %s, %s: %llu wrong, at %llu it is %g instead of %g (%g, %g allowed)\n", c->name,
                   t->name, lab->op.key, lab->op.what ? lab->op.what : "", (unsigned long long)v.wrong,
                   (unsigned long long)v.at, v.got, v.want, v.worst, lab->tolerance);
    }
    HOLD(cpu_products_guards_hold(workspace, workspace_bytes));
}

static bool run_variant(cpu_norm_lab *lab, const scout_candidate *c, const variants_one *one) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    char json[1024];
    if (!HOLD(scout_prepare(c, &lab->op, cpu_products_device, one->values, &plan, &needs, &lab->why) == SCOUT_OK &&
              plan)) {
        printf("  %s %s: %s\n", c->name, one->text, lab->why.text);
        return false;
    }
    HOLD(needs.workspace_bytes <= lab->op.workspace_limit && needs.packs == 0);
    void *workspace = cpu_products_guarded(needs.workspace_bytes);
    for (int twice = 0; twice < 2; twice++) launch_and_look(lab, c, plan, workspace, needs.workspace_bytes);
    const int length = scout_describe(c, plan, json, sizeof json);
    HOLD(length > 2 && length < (int)sizeof json && json[0] == '{' && json[length - 1] == '}');
    HOLD(scout_describe(c, plan, NULL, 0) == length);
    scout_destroy(c, plan);
    cpu_products_give_back(workspace);
    return true;
}

bool cpu_norm_lab_run(cpu_norm_lab *lab, const scout_candidate *c) {
    static scout_domain domain; /* 33 KB */
    variants v;
    variants_one one;
    const scout_answer answer = c->supports(&lab->op, cpu_products_device, &lab->why);
    if (answer != SCOUT_OK) {
        HOLD(answer == SCOUT_NO);
        HOLD(reason_known(lab->why.code) && lab->why.text[0]);
        return false;
    }
    bool ran = HOLD(variants_open(&v, c, &lab->op, cpu_products_device, false, &domain, &lab->why) == SCOUT_OK);
    while (ran && variants_next(&v, &one)) ran = run_variant(lab, c, &one);
    return ran;
}

void cpu_norm_lab_all(const cpu_norm_want *want, uint64_t seed, int *ran) {
    cpu_norm_lab lab;
    if (!HOLD(cpu_norm_lab_begin(&lab, want, seed))) {
        printf("  %s %s %s: %s\n", want->kind, want->what ? want->what : "", want->shape, lab.why.text);
    } else if (HOLD(cpu_norm_lab_refer(&lab))) {
        for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
            if (cpu_products_api->candidates[k]->kind == lab.op.kind)
                ran[k] += cpu_norm_lab_run(&lab, cpu_products_api->candidates[k]);
    }
    cpu_norm_lab_end(&lab);
}

int cpu_norm_lab_place(const char *candidate) {
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        if (strcmp(cpu_products_api->candidates[k]->name, candidate) == 0) return (int)k;
    abort();
}
