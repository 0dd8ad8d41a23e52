/* Every own kernel, on the operations of lists as scout_batch reads them: each variant of each candidate that is the
 * project's own is prepared; then each is packed, launched alone, twice, and held against the reference, so that what
 * one plan leaves to another shows. Nothing is timed, so that it can run under compute-sanitizer, where a measurement
 * would take hours.
 *
 *     check_kernels scout_cuda.so [--all | --candidate NAME] [--variants N] [--most WORK] [--no-compare]
 *                   [--unwritten] [FILE…]
 *
 * --all: those of libraries too, which is how every candidate of a kind is looked at in seconds. --candidate: this one
 * alone, a library's too, for the own kernels that some of those lean on. --variants: the first N
 * of each candidate. --most: operations of more work (flops + 10 bytes moved) are left out. --no-compare: launches
 * alone, without the reference's kernels. --unwritten: outputs and workspaces stay as the driver gives them, for
 * initcheck; else they are poisoned. Buffers are exactly as large as their tensors, so that memcheck sees the first
 * byte beyond. Without files: tests/gpu/own_awkward.json. */
#include "tests/gpu/gpu_check.h"

#include "common/arena.h"
#include "scout/input/weights.h"
#include "scout/kinds/kinds.h"

#include <inttypes.h>

typedef struct run_choices {
    const char *candidate;
    double most;
    int variants; /* 0: all */
    bool all, compare, unwritten;
} run_choices;

typedef struct subject { /* an operation with its tensors on the device */
    const operation *about;
    const run_choices *choices;
    scout_op op;
    weights_content weights;
    double tolerance;
    void *tensors[SCOUT_MAX_TENSORS];
    scout_check *check; /* NULL: nothing is compared */
    int variants;       /* that were launched */
} subject;

typedef struct launching {
    const scout_candidate *candidate;
    char text[320]; /* operation, candidate and variant */
    scout_plan *plan;
    scout_plan_needs needs;
    void *packed, *workspace;
    void *tensors[SCOUT_MAX_TENSORS];
} launching;

/* --- tensors --- */

static const scout_reference *reference_of(uint32_t number) {
    for (uint32_t k = 0; k < gpu_api->reference_count; k++)
        if (gpu_api->references[k]->kind == number) return gpu_api->references[k];
    return NULL;
}

static scout_answer fill_input(const subject *s, uint32_t k) {
    const scout_tensor *const t = &s->op.tensors[k];
    const bool lengths = strcmp(t->name, "lengths") == 0;
    const bool positive = strcmp(t->name, "scales") == 0 || strcmp(t->name, "variance") == 0;
    const uint32_t how = t->below < 0   ? SCOUT_FILL_SMALL
                         : t->below > 0 ? lengths ? SCOUT_FILL_NEAR : SCOUT_FILL_BELOW
                         : positive     ? SCOUT_FILL_SCALE
                                        : SCOUT_FILL_NORMAL;
    if (s->weights.bytes && s->weights.tensor == k)
        return gpu_api->upload(gpu, s->tensors[k], s->weights.bytes, t->bytes, &gpu_why);
    const int64_t told = t->below < 0 ? -t->below : t->below;
    const uint64_t seed = told ? SCOUT_FILL_SEED(told, 7 + k) : 7 + k;
    return gpu_api->fill(gpu, s->tensors[k], t->bytes, t->type, how, seed, &gpu_why);
}

/* Memory that was not written, or poison. */
static bool fresh(const subject *s, uint64_t bytes, void **out) {
    bool good = gpu_api->alloc(gpu, bytes, out, &gpu_why) == SCOUT_OK;
    if (good && !s->choices->unwritten && bytes > 0)
        good = gpu_api->fill(gpu, *out, bytes, SCOUT_NONE, SCOUT_FILL_BYTE, 0xff, &gpu_why) == SCOUT_OK;
    return gpu_expect(good, "%s: a buffer of %" PRIu64 " bytes: %s", s->about->id, bytes, gpu_why.text);
}

static bool make_inputs(subject *s) {
    for (uint32_t k = 0; k < s->op.tensor_count; k++) {
        const scout_tensor *const t = &s->op.tensors[k];
        if (t->role == SCOUT_OUTPUT) continue;
        const bool good =
            gpu_api->alloc(gpu, t->bytes, &s->tensors[k], &gpu_why) == SCOUT_OK && fill_input(s, k) == SCOUT_OK;
        if (!gpu_expect(good, "%s: its tensor %s: %s", s->about->id, t->name, gpu_why.text)) return false;
    }
    return true;
}

static bool begin_check(subject *s) {
    const scout_reference *const r = reference_of(s->op.kind);
    void *tensors[SCOUT_MAX_TENSORS];
    if (!s->choices->compare) return true;
    if (!r) return gpu_expect(false, "%s: its kind has no reference", s->about->id);
    memcpy(tensors, s->tensors, sizeof tensors);
    return gpu_expect(r->begin(gpu, &s->op, tensors, 1, &s->check, &gpu_why) == SCOUT_OK, "%s: its reference: %s",
                      s->about->id, gpu_why.text);
}

/* --- one variant --- */

static scout_answer enqueue_pack(void *context, uint32_t number, void *stream, scout_why *why) {
    const launching *const l = context;
    const scout_candidate *const c = l->candidate;
    (void)number;
    if (SCOUT_HAS(c, pack_tensors) && c->pack_tensors)
        return c->pack_tensors(l->plan, l->tensors, l->packed, stream, why);
    return c->pack(l->plan, l->tensors[l->needs.packs - 1], l->packed, stream, why);
}

static scout_answer enqueue_launch(void *context, uint32_t number, void *stream, scout_why *why) {
    const launching *const l = context;
    void *tensors[SCOUT_MAX_TENSORS];
    (void)number;
    memcpy(tensors, l->tensors, sizeof tensors);
    if (l->packed) tensors[l->needs.packs - 1] = l->packed;
    const scout_args args = {.size = sizeof args, .tensors = tensors, .workspace = l->workspace, .stream = stream};
    return l->candidate->launch(l->plan, &args, why);
}

/* What a launch was that went wrong: which engine or algorithm is not in a variant's name. */
static void say_plan(const launching *l) {
    char text[2048] = "";
    scout_describe(l->candidate, l->plan, text, sizeof text);
    printf("    %s\n", text);
}

/* Twice, as what a plan keeps from launch to launch is only used by the second. */
static scout_answer run_twice(scout_enqueue enqueue, launching *l) {
    scout_sequence *sequence = NULL;
    double seconds[2];
    scout_answer answer = gpu_api->record(gpu, 0, 1, enqueue, l, &sequence, &gpu_why);
    if (answer == SCOUT_OK) answer = gpu_api->run(gpu, sequence, 2, seconds, &gpu_why);
    if (answer == SCOUT_LOST) { /* nothing can be tried, or freed, any more */
        gpu_expect(false, "%s: the device was lost: %s", l->text, gpu_why.text);
        say_plan(l);
        exit(gpu_end());
    }
    gpu_api->drop(gpu, sequence);
    return answer;
}

/* False: an output is wrong, or could not be looked at. */
static bool compare_outputs(const subject *s, const launching *l, const char *text) {
    const scout_reference *const r = reference_of(s->op.kind);
    uint32_t outputs = 0;
    bool good = true;
    for (uint32_t k = 0; k < s->op.tensor_count; k++) outputs += s->op.tensors[k].role == SCOUT_OUTPUT;
    for (uint32_t k = 0; k < s->op.tensor_count; k++) {
        scout_verdict v = {.size = sizeof v};
        if (s->op.tensors[k].role != SCOUT_OUTPUT) continue;
        const scout_answer answer = outputs == 1
                                        ? r->compare(s->check, l->tensors[k], s->tolerance, &v, &gpu_why)
                                        : r->compare_at(s->check, k, l->tensors[k], s->tolerance, &v, &gpu_why);
        good = gpu_expect(answer == SCOUT_OK, "%s: comparing: %s", text, gpu_why.text) && good;
        if (answer != SCOUT_OK) continue;
        const bool right = v.wrong == 0 && v.worst <= s->tolerance && v.worst_projected <= s->tolerance;
        if (!right && l->needs.coarse) {
            printf("refused %s: precision: off by %.3g\n", text, v.worst);
            continue;
        }
        good = gpu_expect(right,
                          "%s: %s is wrong at %" PRIu64 ": %.6g instead of %.6g (%" PRIu64 " of %" PRIu64
                          ", projected %.3g, tolerance %.3g)",
                          text, s->op.tensors[k].name, v.at, v.got, v.want, v.wrong, v.compared, v.worst_projected,
                          s->tolerance) &&
               good;
    }
    return good;
}

static bool launch_variant(subject *s, launching *l, const char *text) {
    const bool packs = l->needs.packs > 0;
    if (packs && !fresh(s, l->needs.pack_bytes, &l->packed)) return false;
    if (packs && !gpu_expect(run_twice(enqueue_pack, l) == SCOUT_OK, "%s: packing: %s", text, gpu_why.text))
        return false;
    if (l->needs.workspace_bytes > 0 && !fresh(s, l->needs.workspace_bytes, &l->workspace)) return false;
    if (!gpu_expect(run_twice(enqueue_launch, l) == SCOUT_OK, "%s: launching: %s", text, gpu_why.text)) return false;
    s->variants++;
    return !s->check || compare_outputs(s, l, text);
}

/* False: there is no plan of it. */
static bool prepare_variant(subject *s, const scout_candidate *c, const int64_t *values, const char *variant,
                            launching *l) {
    *l = (launching){.candidate = c, .needs = {.size = sizeof l->needs}};
    snprintf(l->text, sizeof l->text, "%s %s %s", s->about->id, c->name, variant);
    memcpy(l->tensors, s->tensors, sizeof l->tensors);
    const scout_answer answer = scout_prepare(c, &s->op, gpu, values, &l->plan, &l->needs, &gpu_why);
    if (answer != SCOUT_NO)
        return gpu_expect(answer == SCOUT_OK && l->plan, "%s: preparing: %s", l->text, gpu_why.text);
    printf("refused %s: %s %s\n", l->text, gpu_why.code, gpu_why.text);
    return false;
}

static void try_variant(subject *s, launching *l) {
    bool good = true;
    for (uint32_t k = 0; good && k < s->op.tensor_count; k++)
        if (s->op.tensors[k].role == SCOUT_OUTPUT) good = fresh(s, s->op.tensors[k].bytes, &l->tensors[k]);
    if (good && launch_variant(s, l, l->text))
        printf("launched %s\n", l->text);
    else
        say_plan(l);
    for (uint32_t k = 0; k < s->op.tensor_count; k++)
        if (s->op.tensors[k].role == SCOUT_OUTPUT) gpu_api->release(gpu, l->tensors[k]);
    fflush(stdout); /* a run that a sanitizer or a limit ends has printed its place */
    gpu_api->release(gpu, l->packed);
    gpu_api->release(gpu, l->workspace);
    scout_destroy(l->candidate, l->plan);
}

/* --- all variants of all --- */

/* "tile=64,stages=3" of the values in `indices`. */
static void say_variant(const scout_domain *domain, const uint32_t *indices, char *text, size_t room) {
    size_t used = 0;
    text[0] = 0;
    for (uint32_t k = 0; k < domain->count && used < room; k++) {
        const scout_parameter *const p = &domain->parameters[k];
        const char *const label = p->labels ? p->labels[indices[k]] : "";
        const int n = p->labels ? snprintf(text + used, room - used, "%s%s=%s", k ? "," : "", p->name, label)
                                : snprintf(text + used, room - used, "%s%s=%" PRId64, k ? "," : "", p->name,
                                           p->values[indices[k]]);
        if (n > 0) used += (size_t)n;
    }
}

static void try_candidate(subject *s, const scout_candidate *c) {
    enum { MOST = 1024 };
    static scout_domain domain;
    static launching all[MOST];
    int tried = 0, count = 0;
    uint32_t indices[SCOUT_MAX_PARAMETERS] = {0};
    memset(&domain, 0, sizeof domain);
    if (c->supports(&s->op, gpu, &gpu_why) != SCOUT_OK) return;
    const scout_answer answer = c->domain ? c->domain(&s->op, gpu, 0, &domain, &gpu_why) : SCOUT_OK;
    if (answer == SCOUT_NO) printf("refused %s %s: %s %s\n", s->about->id, c->name, gpu_why.code, gpu_why.text);
    if (answer == SCOUT_NO ||
        !gpu_expect(answer == SCOUT_OK, "%s %s: its variants: %s", s->about->id, c->name, gpu_why.text))
        return;
    for (bool more = true; more && gpu_expect(count < MOST, "%s %s: too many variants", s->about->id, c->name);) {
        int64_t values[SCOUT_MAX_PARAMETERS] = {0};
        char variant[160];
        for (uint32_t k = 0; k < domain.count; k++) values[k] = domain.parameters[k].values[indices[k]];
        say_variant(&domain, indices, variant, sizeof variant);
        if (!c->allows || c->allows(&s->op, gpu, values))
            count += prepare_variant(s, c, values, variant, &all[count]), tried++;
        uint32_t k = domain.count;
        while (k > 0 && ++indices[k - 1] == domain.parameters[k - 1].count) indices[--k] = 0;
        more = k > 0 && (tried == 0 || tried != s->choices->variants);
    }
    for (int k = 0; k < count; k++) try_variant(s, &all[k]);
}

static bool is_asked(const subject *s, const scout_candidate *c) {
    const char *const only = s->choices->candidate;
    if (c->kind != s->op.kind) return false;
    return only ? strcmp(only, c->name) == 0 : s->choices->all || (c->flags & SCOUT_OWN) != 0;
}

static void try_operation(const operation *o, const run_choices *choices, arena *a) {
    subject s = {.about = o, .choices = choices};
    scout_why why = {"", ""};
    if (o->skip_code) return;
    if (!gpu_expect(kinds_build(o, 32u << 20, a, &s.op, &why) && weights_make(o, &s.op, 1, NULL, a, &s.weights, &why),
                    "%s: %s", o->id, why.text))
        return;
    const double work = s.op.flops + 10 * (s.op.bytes_read + s.op.bytes_written);
    s.tolerance = kinds_find(o->rec.kind)->tolerance(&s.op);
    if (choices->most > 0 && work > choices->most)
        printf("left out %s: %.2g of work\n", o->id, work);
    else if (make_inputs(&s) && begin_check(&s))
        for (uint32_t k = 0; k < gpu_api->candidate_count; k++)
            if (is_asked(&s, gpu_api->candidates[k])) try_candidate(&s, gpu_api->candidates[k]);
    if (s.variants == 0) printf("nothing of %s was launched\n", o->id);
    if (s.check) reference_of(s.op.kind)->end(s.check);
    for (uint32_t k = 0; k < s.op.tensor_count; k++) gpu_api->release(gpu, s.tensors[k]);
    weights_free(&s.weights);
}

static void try_file(const char *path, const run_choices *choices) {
    operation_list list = {.count = 0};
    guard g;
    arena a;
    guard_init(&g);
    arena_init(&a, &g, (size_t)256 << 20);
    if (guard_enter(&g)) {
        operation_read(path, "fp16", &a, &list);
        for (int k = 0; k < list.count; k++) try_operation(&list.items[k], choices, &a);
    } else {
        gpu_expect(false, "%s: %s", path, g.st.text);
    }
    operation_list_free(&list);
    arena_free(&a);
}

int main(int argc, char **argv) {
    run_choices choices = {.compare = true};
    int files = 0;
    gpu_begin(argc, argv, true);
    for (int k = 2; k < argc; k++) {
        const bool more = k + 1 < argc;
        if (strcmp(argv[k], "--candidate") == 0 && more)
            choices.candidate = argv[++k];
        else if (strcmp(argv[k], "--most") == 0 && more)
            choices.most = strtod(argv[++k], NULL);
        else if (strcmp(argv[k], "--variants") == 0 && more)
            choices.variants = (int)strtol(argv[++k], NULL, 10);
        else if (strcmp(argv[k], "--all") == 0)
            choices.all = true;
        else if (strcmp(argv[k], "--no-compare") == 0)
            choices.compare = false;
        else if (strcmp(argv[k], "--unwritten") == 0)
            choices.unwritten = true;
        else
            try_file(argv[k], &choices), files++;
    }
    if (files == 0) try_file("tests/gpu/own_awkward.json", &choices);
    gpu_api->close(gpu);
    return gpu_end();
}
