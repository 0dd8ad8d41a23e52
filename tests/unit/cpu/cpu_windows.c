/* Operations with windows in the device's memory, each tensor between canaries. */
#include "tests/unit/cpu/cpu_windows.h"

#include "scout/cpu/device/cpu_number.h"
#include "scout/kinds/kinds.h"
#include "scout/terms/reason.h"
#include "scout/terms/variants.h"
#include "tests/unit/cpu/cpu_products.h"

#include <stdlib.h>
#include <string.h>

/* What goes wrong here is a failed check of the test that called. */
static void expect(bool good, const windows_run *r, const char *subject, const char *what) {
    if (good) return;
    printf("  %s: %s\n", subject, what);
    cpu_windows_say(r, subject, &(scout_verdict){.size = sizeof(scout_verdict)});
    fflush(stdout);
    abort();
}

static int64_t or_one(int64_t x) { return x ? x : 1; }

int64_t cpu_windows_out(const windows_case *w, int axis) {
    const int64_t reach = (w->kernel[axis] - 1) * or_one(w->dilation[axis]) + 1, stride = or_one(w->stride[axis]);
    const int64_t pads = w->pads[axis] + w->pads[axis + w->spatial];
    if (w->transposed) return (w->in[axis] - 1) * stride + reach - pads + w->extra;
    const int64_t room = w->in[axis] + pads - reach;
    return room / stride + 1 + (w->ceil && room % stride != 0);
}

static void set_dims(windows_run *r, int64_t channels, const int64_t *places, int64_t *dims) {
    const int n = r->w.spatial;
    dims[0] = or_one(r->w.n);
    dims[r->w.last ? n + 1 : 1] = channels;
    for (int k = 0; k < n; k++) dims[(r->w.last ? 1 : 2) + k] = places[k];
}

static void set_ints(windows_run *r, const char *name, int n, const int64_t *x) {
    bool told = false;
    for (int k = 0; k < n; k++) told = told || x[k] != 0;
    int64_t filled[6];
    for (int k = 0; k < n; k++) filled[k] = strcmp(name, "pads") == 0 ? x[k] : or_one(x[k]);
    if (told) oprec_set_ints(&r->o.rec, &r->a, name, n, filled);
}

static void set_epilogue(windows_run *r) {
    const windows_case *w = &r->w;
    oprec *rec = &r->o.rec;
    if (w->bias) oprec_set_text(rec, "bias", "channel");
    if (w->residual) oprec_set_int(rec, "residual", 1);
    if (!w->activation) return;
    const bool clip = strcmp(w->activation, "clip") == 0;
    oprec_set_text(rec, "activation", w->activation);
    if (w->params) oprec_set_text(rec, "activation_params", w->params);
    if (w->alpha != 0) oprec_set_real(rec, clip ? "activation_min" : "activation_alpha", w->alpha);
    if (w->beta != 0) oprec_set_real(rec, clip ? "activation_max" : "activation_beta", w->beta);
}

void cpu_windows_operation(windows_run *r, const windows_case *w) {
    const bool pool = w->cout == 0;
    int64_t dims[5], out[3];
    memset(r, 0, sizeof *r);
    r->w = *w;
    guard_init(&r->g);
    arena_init(&r->a, &r->g, (size_t)1 << 20);
    oprec *rec = &r->o.rec;
    r->o.id = r->o.name = "test";
    rec->kind = pool ? OP_POOL : OP_CONV;
    rec->what = w->what, rec->layout = w->last ? "nhwc" : "nchw";
    rec->type = w->type ? w->type : DTYPE_FP32;
    rec->weight_type = pool ? DTYPE_NONE : w->weight ? w->weight : rec->type;
    rec->out_type = w->out;
    for (int k = 0; k < w->spatial; k++) out[k] = cpu_windows_out(w, k);
    set_dims(r, pool ? w->cin : w->cout, out, dims);
    oprec_set_shape(rec, &r->a, w->spatial + 2, dims);
    set_dims(r, w->cin, w->in, dims);
    oprec_set_ints(rec, &r->a, "input", w->spatial + 2, dims);
    oprec_set_ints(rec, &r->a, "kernel", w->spatial, w->kernel);
    set_ints(r, "stride", w->spatial, w->stride);
    set_ints(r, "dilation", w->spatial, w->dilation);
    set_ints(r, "pads", 2 * w->spatial, w->pads);
    if (w->group > 1) oprec_set_int(rec, "group", w->group);
    if (w->transposed) oprec_set_int(rec, "transposed", 1);
    if (w->padded) oprec_set_int(rec, "count_include_pad", 1);
    if (w->ceil) oprec_set_int(rec, "ceil_mode", 1);
    set_epilogue(r);
}

bool cpu_windows_build(windows_run *r, scout_why *why) {
    *why = (scout_why){.code = ""};
    return kinds_build(&r->o, r->w.workspace ? r->w.workspace : 32 << 20, &r->a, &r->op, why);
}

void cpu_windows_fill(windows_run *r, uint64_t seed) {
    for (uint32_t k = 0; k < r->op.tensor_count; k++) {
        const scout_tensor *t = &r->op.tensors[k];
        scout_why why;
        r->data[k] = cpu_products_guarded(t->bytes);
        if (t->role == SCOUT_OUTPUT)
            r->output = (int)k;
        else if (cpu_products_api->fill(cpu_products_device, r->data[k], t->bytes, t->type, SCOUT_FILL_NORMAL,
                                        seed * 16 + k, &why) != SCOUT_OK)
            abort();
    }
}

void cpu_windows_drop(windows_run *r) {
    for (uint32_t k = 0; k < r->op.tensor_count; k++) cpu_products_give_back(r->data[k]);
    arena_free(&r->a);
}

double cpu_windows_at(const windows_run *r, int tensor, int64_t image, int64_t channel, const int64_t *place) {
    const scout_tensor *t = &r->op.tensors[tensor];
    const int n = r->w.spatial;
    int64_t at = image * t->strides[0] + channel * t->strides[r->w.last ? n + 1 : 1];
    for (int k = 0; k < n; k++) at += place[k] * t->strides[(r->w.last ? 1 : 2) + k];
    double value;
    cpu_number_load(t->type, r->data[tensor], at, 1, 1, &value);
    return value;
}

/* --- the reference --- */

static const scout_reference *reference(const windows_run *r) {
    for (uint32_t k = 0; k < cpu_products_api->reference_count; k++)
        if (cpu_products_api->references[k]->kind == r->op.kind) return cpu_products_api->references[k];
    abort();
}

double cpu_windows_tolerance(const windows_run *r) { return kinds_find(r->o.rec.kind)->tolerance(&r->op); }

scout_check *cpu_windows_begin(const windows_run *r) {
    scout_check *check = NULL;
    scout_why why = {"", ""};
    if (reference(r)->begin(cpu_products_device, &r->op, r->data, 7, &check, &why) != SCOUT_OK)
        printf("  reference: %s: %s\n", why.code, why.text);
    return check;
}

void cpu_windows_end(const windows_run *r, scout_check *check) { reference(r)->end(check); }

scout_verdict cpu_windows_judge(const windows_run *r, scout_check *check, double tolerance) {
    scout_verdict v = {.size = sizeof v};
    scout_why why;
    if (reference(r)->compare(check, r->data[r->output], tolerance, &v, &why) != SCOUT_OK) abort();
    return v;
}

void cpu_windows_say(const windows_run *r, const char *subject, const scout_verdict *v) {
    printf("  %s: %s: worst %g projected %g of %g, %llu wrong, %g instead of %g\n", subject, r->op.key, v->worst,
           v->worst_projected, cpu_windows_tolerance(r), (unsigned long long)v->wrong, v->got, v->want);
}

/* --- candidates --- */

static void run_variant(windows_run *r, const scout_candidate *c, const variants_one *one, scout_check *check,
                        windows_tally *t, int index) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why = {"", ""};
    void *packed = NULL, *tensors[SCOUT_MAX_TENSORS];
    char json[1024];
    const scout_answer answer = scout_prepare(c, &r->op, cpu_products_device, one->values, &plan, &needs, &why);
    if (answer == SCOUT_NO && (one->values[0] > 0 || one->values[1] > 0)) return; /* too little workspace */
    expect(answer == SCOUT_OK && plan, r, c->name, why.text);
    expect(needs.workspace_bytes <= r->op.workspace_limit, r, c->name, "more workspace than allowed");
    memcpy(tensors, r->data, sizeof tensors);
    void *workspace = cpu_products_guarded(needs.workspace_bytes);
    if (needs.packs) {
        packed = cpu_products_guarded(needs.pack_bytes);
        expect(c->pack(plan, r->data[needs.packs - 1], packed, NULL, &why) == SCOUT_OK, r, c->name, why.text);
        tensors[needs.packs - 1] = packed;
        t->packed++;
    }
    const scout_args args = {sizeof args, tensors, workspace, NULL};
    for (int twice = 0; twice < 2; twice++) {
        memset(r->data[r->output], 0xFF, r->op.tensors[r->output].bytes);
        expect(c->launch(plan, &args, &why) == SCOUT_OK, r, c->name, why.text);
        const scout_verdict v = cpu_windows_judge(r, check, cpu_windows_tolerance(r));
        if (v.wrong > 0) cpu_windows_say(r, c->name, &v);
        expect(v.wrong == 0 && v.compared > 0, r, c->name, one->first ? "wrong" : "wrong, in a variant");
    }
    expect(cpu_products_guards_hold(workspace, needs.workspace_bytes), r, c->name, "wrote beside its workspace");
    expect(!packed || cpu_products_guards_hold(packed, needs.pack_bytes), r, c->name, "wrote beside its weight");
    for (uint32_t k = 0; k < r->op.tensor_count; k++)
        expect(cpu_products_guards_hold(r->data[k], r->op.tensors[k].bytes), r, c->name, "wrote beside a tensor");
    const int length = scout_describe(c, plan, json, sizeof json);
    expect(length > 2 && length < (int)sizeof json && json[length - 1] == '}', r, c->name, "describes nothing");
    t->ran[index] += !cpu_products_again(one->text);
    scout_destroy(c, plan);
    cpu_products_give_back(workspace);
    cpu_products_give_back(packed);
}

static void run_candidate(windows_run *r, const scout_candidate *c, scout_check *check, windows_tally *t, int index) {
    static scout_domain domain; /* 33 KB */
    variants v;
    variants_one one;
    scout_why why = {"", ""};
    expect(index < (int)(sizeof t->ran / sizeof t->ran[0]), r, c->name, "more candidates than a tally has room for");
    const scout_answer answer = c->supports(&r->op, cpu_products_device, &why);
    if (answer != SCOUT_OK) {
        expect(answer == SCOUT_NO && reason_known(why.code) && why.text[0], r, c->name, why.text);
        t->unsupported[index]++;
        return;
    }
    expect(variants_open(&v, c, &r->op, cpu_products_device, false, &domain, &why) == SCOUT_OK, r, c->name, why.text);
    while (variants_next(&v, &one)) run_variant(r, c, &one, check, t, index);
}

void cpu_windows_all(const windows_case *w, uint64_t seed, windows_tally *t) {
    windows_run r;
    scout_why why;
    uint64_t before[SCOUT_MAX_TENSORS] = {0}, after = 0;
    cpu_windows_operation(&r, w);
    if (!cpu_windows_build(&r, &why)) {
        printf("  refused: %s: %s: %s\n", why.code, why.text, r.op.key);
        fflush(stdout);
        abort();
    }
    cpu_windows_fill(&r, seed);
    scout_check *check = cpu_windows_begin(&r);
    expect(check != NULL, &r, "reference", "has nothing to say");
    for (uint32_t k = 0; k < r.op.tensor_count; k++)
        (void)cpu_products_api->checksum(cpu_products_device, r.data[k], r.op.tensors[k].bytes, &before[k], &why);
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        if (cpu_products_api->candidates[k]->kind == r.op.kind)
            run_candidate(&r, cpu_products_api->candidates[k], check, t, (int)k);
    for (uint32_t k = 0; k < r.op.tensor_count; k++) {
        (void)cpu_products_api->checksum(cpu_products_device, r.data[k], r.op.tensors[k].bytes, &after, &why);
        expect((int)k == r.output || after == before[k], &r, "a candidate", "changed an input");
    }
    cpu_windows_end(&r, check);
    cpu_windows_drop(&r);
}

bool cpu_windows_compute(windows_run *r) {
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++) {
        const scout_candidate *c = cpu_products_api->candidates[k];
        scout_plan *plan = NULL;
        scout_plan_needs needs = {.size = sizeof needs};
        scout_why why;
        if (c->kind != r->op.kind || !(c->flags & SCOUT_OWN)) continue; /* needs no packing */
        if (c->supports(&r->op, cpu_products_device, &why) != SCOUT_OK) continue;
        if (scout_prepare(c, &r->op, cpu_products_device, NULL, &plan, &needs, &why) != SCOUT_OK) return false;
        void *workspace = cpu_products_guarded(needs.workspace_bytes);
        const scout_args args = {sizeof args, r->data, workspace, NULL};
        const bool good = c->launch(plan, &args, &why) == SCOUT_OK;
        scout_destroy(c, plan);
        cpu_products_give_back(workspace);
        return good;
    }
    return false;
}

int cpu_windows_ran(const windows_tally *t, const char *candidate) {
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        if (strcmp(cpu_products_api->candidates[k]->name, candidate) == 0) return t->ran[k];
    abort();
}

void cpu_windows_report(const char *what, const windows_tally *t) {
    for (uint32_t k = 0; k < cpu_products_api->candidate_count; k++)
        if (t->ran[k] + t->unsupported[k] > 0)
            printf("  %s, %s: %d ran, %d unsupported\n", what, cpu_products_api->candidates[k]->name, t->ran[k],
                   t->unsupported[k]);
}
