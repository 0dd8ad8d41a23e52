/* Products on a pool: every shape reads from the start of the same two inputs, so that opening one costs a plan and no
 * memory. Results are not looked at here: measure.c verifies plans of the same candidate before it reports them. */
#include "scout/ceilings/ceilings_product.h"

#include "scout/kinds/kinds.h"
#include "scout/terms/variants.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_BYTES (UINT64_C(1) << 20)
enum { PRODUCT_ARENA_BYTES = 16 << 20, PROBE_SIDE = 512 };

typedef struct product {
    const ceilings_product_pool *pool;
    arena arena;
    guard guard;
    operation_list list;
    scout_op op;
    scout_plan *plan;
    void *tensors[SCOUT_MAX_TENSORS];
    void *packed;
    uint32_t packs; /* the tensor that `packed` replaces */
    ceilings_work work;
} product;

/* ---- one shape ---- */

/* The operation of a shape, as the command line would make it. */
static scout_answer product_describe(product *x, const ceilings_precision *precision, const int64_t shape[3],
                                     const char *layout, scout_why *why) {
    char text[96];
    snprintf(text, sizeof text, "%" PRId64 ",%" PRId64 ",%" PRId64, shape[0], shape[1], shape[2]);
    guard_init(&x->guard);
    arena_init(&x->arena, &x->guard, PRODUCT_ARENA_BYTES);
    if (!guard_enter(&x->guard)) return scout_say(why, SCOUT_FAILED, "error", "%s", x->guard.st.text);
    operation_from_words("gemm", text, precision->name, 0, NULL, &x->arena, &x->list);
    operation *o = &x->list.items[0];
    if (layout) o->rec.layout = layout;
    return kinds_build(o, REGIME_WORKSPACE_BYTES, &x->arena, &x->op, why) ? SCOUT_OK : SCOUT_NO;
}

/* Tensors by role: inputs and weights lie at the start of the pool's two, small constants in a corner of their own. */
static scout_answer product_place(product *x, scout_why *why) {
    const ceilings_product_pool *pool = x->pool;
    int inputs = 0;
    for (uint32_t k = 0; k < x->op.tensor_count; k++) {
        const scout_tensor *t = &x->op.tensors[k];
        uint64_t room = t->role == SCOUT_OUTPUT ? pool->output_bytes
                        : t->role == SCOUT_SIDE ? SIDE_BYTES
                                                : pool->input_bytes;
        if (t->bytes > room) return scout_say(why, SCOUT_NO, "memory", "the shape is larger than the pool");
        x->tensors[k] = t->role == SCOUT_OUTPUT ? pool->c : t->role == SCOUT_SIDE ? pool->side : pool->b;
        if (t->role != SCOUT_OUTPUT && t->role != SCOUT_SIDE && inputs++ == 0) x->tensors[k] = pool->a;
    }
    return SCOUT_OK;
}

static scout_answer enqueue_product(void *context, uint32_t launch, void *stream, scout_why *why) {
    product *x = context;
    scout_args args = {.size = sizeof args, .tensors = x->tensors, .workspace = x->pool->workspace, .stream = stream};
    (void)launch;
    return x->pool->candidate->launch(x->plan, &args, why);
}

static scout_answer enqueue_pack(void *context, uint32_t launch, void *stream, scout_why *why) {
    product *x = context;
    const scout_candidate *candidate = x->pool->candidate;
    (void)launch;
    if (SCOUT_HAS(candidate, pack_tensors) && candidate->pack_tensors)
        return candidate->pack_tensors(x->plan, x->tensors, x->packed, stream, why);
    if (candidate->pack) return candidate->pack(x->plan, x->tensors[x->packs], x->packed, stream, why);
    return scout_say(why, SCOUT_NO, "feature", "it needs a packed weight and has no function to pack one");
}

/* On the device's own stream, and until it is done: what is timed afterwards reads it. */
static scout_answer product_pack(product *x, uint32_t tensor, uint64_t bytes, scout_why *why) {
    const ceilings_lab *lab = x->pool->lab;
    scout_sequence *sequence = NULL;
    double seconds = 0;
    if (tensor >= x->op.tensor_count)
        return scout_say(why, SCOUT_FAILED, "error", "it packs a tensor that is not there");
    scout_answer answer = lab->api->alloc(lab->device, bytes, &x->packed, why);
    if (answer != SCOUT_OK) return answer == SCOUT_NO_MEMORY ? SCOUT_NO : answer;
    x->packs = tensor;
    answer = lab->api->record(lab->device, 0, 1, enqueue_pack, x, &sequence, why);
    if (answer == SCOUT_OK) answer = lab->api->run(lab->device, sequence, 1, &seconds, why);
    if (sequence && answer != SCOUT_LOST) lab->api->drop(lab->device, sequence);
    x->tensors[tensor] = x->packed;
    return answer;
}

static scout_answer product_prepare(product *x, int32_t variant, scout_why *why) {
    const ceilings_product_pool *pool = x->pool;
    const scout_candidate *candidate = pool->candidate;
    scout_device *device = pool->lab->device;
    int64_t values[SCOUT_MAX_PARAMETERS] = {0};
    scout_plan_needs needs = {.size = sizeof needs};
    scout_answer answer = candidate->supports(&x->op, device, why);
    if (answer != SCOUT_OK) return answer;
    scout_domain *domain = calloc(1, sizeof *domain);
    if (!domain) return scout_say(why, SCOUT_FAILED, "memory", "no memory on the host");
    variants all;
    answer = variants_open(&all, candidate, &x->op, device, false, domain, why);
    for (uint32_t k = 0; k < domain->count; k++) values[k] = domain->parameters[k].values[0];
    if (answer == SCOUT_OK && variant > 0) {
        bool there = pool->varied >= 0 && (uint32_t)pool->varied < domain->count &&
                     (uint32_t)variant < domain->parameters[pool->varied].count;
        if (there) values[pool->varied] = domain->parameters[pool->varied].values[variant];
        if (!there) answer = scout_say(why, SCOUT_NO, "variant", "this shape has no such variant");
    }
    free(domain);
    if (answer == SCOUT_OK && candidate->allows && !candidate->allows(&x->op, device, values))
        answer = scout_say(why, SCOUT_NO, "variant", "this shape does not allow the variant");
    if (answer != SCOUT_OK) return answer;
    answer = scout_prepare(candidate, &x->op, device, values, &x->plan, &needs, why);
    if (answer == SCOUT_OK && needs.workspace_bytes > REGIME_WORKSPACE_BYTES)
        answer = scout_say(why, SCOUT_NO, "memory", "it needs more workspace than is allowed");
    if (answer == SCOUT_OK && needs.packs > 0) answer = product_pack(x, needs.packs - 1, needs.pack_bytes, why);
    return answer;
}

static void product_free(product *x) {
    const ceilings_lab *lab = x->pool->lab;
    ceilings_work_drop(&x->work);
    if (x->plan) scout_destroy(x->pool->candidate, x->plan);
    if (x->packed) lab->api->release(lab->device, x->packed);
    operation_list_free(&x->list);
    arena_free(&x->arena);
    free(x);
}

scout_answer ceilings_product_open(void *context, const ceilings_search_point *point, timing_subject *out,
                                   scout_why *why) {
    const ceilings_product_pool *pool = context;
    const int64_t shape[3] = {point->m, point->n, point->k};
    if (point->layout >= pool->layout_count) return scout_say(why, SCOUT_NO, "layout", "there is no such layout");
    product *x = calloc(1, sizeof *x);
    if (!x) return scout_say(why, SCOUT_FAILED, "memory", "no memory on the host");
    x->pool = pool;
    x->work = (ceilings_work){.lab = pool->lab, .enqueue = enqueue_product, .context = x};
    scout_answer answer = product_describe(x, pool->precision, shape, pool->layouts[point->layout], why);
    if (answer == SCOUT_OK) answer = product_place(x, why);
    if (answer == SCOUT_OK) answer = product_prepare(x, point->variant, why);
    if (answer != SCOUT_OK) {
        product_free(x);
        /* memory that one shape could not have is that shape's matter */
        return answer == SCOUT_NO_MEMORY ? SCOUT_NO : answer;
    }
    *out = ceilings_work_subject(&x->work);
    return SCOUT_OK;
}

void ceilings_product_close(void *context, timing_subject *subject) {
    (void)context;
    ceilings_work *work = subject->context;
    product_free(work->context);
}

/* ---- the pool ---- */

/* Whether the candidate multiplies such a layout; its domain is looked at once, for the names of its variants. */
static bool takes_layout(ceilings_product_pool *p, const char *layout, scout_why *why) {
    const int64_t shape[3] = {PROBE_SIDE, PROBE_SIDE, PROBE_SIDE};
    product *x = calloc(1, sizeof *x);
    scout_domain *domain = calloc(1, sizeof *domain);
    bool good = false;
    if (x) x->pool = p, x->work.lab = p->lab;
    if (!x || !domain) goto done;
    good = product_describe(x, p->precision, shape, layout, why) == SCOUT_OK;
    if (good) good = p->candidate->supports(&x->op, p->lab->device, why) == SCOUT_OK;
    if (good && !p->layouts[0]) { /* the default's, by its name */
        const char *const names[] = {"nn", "nt", "tn", "tt"};
        for (int k = 0; k < 4; k++)
            if (x->op.layout && strcmp(names[k], x->op.layout) == 0) p->layouts[0] = names[k];
    }
    variants all;
    if (good && p->varied < 0 &&
        variants_open(&all, p->candidate, &x->op, p->lab->device, false, domain, why) == SCOUT_OK &&
        domain->count > 0) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < domain->count; k++)
            if (strcmp(domain->parameters[k].name, "algo") == 0) at = k;
        const scout_parameter *q = &domain->parameters[at];
        p->varied = (int32_t)at;
        p->variants = q->count < CEILINGS_PRODUCT_VARIANTS ? (int32_t)q->count : CEILINGS_PRODUCT_VARIANTS;
        for (int32_t k = 0; k < p->variants; k++) {
            char number[24];
            snprintf(number, sizeof number, "%" PRId64, q->values[k]);
            snprintf(p->variant_names[k], sizeof p->variant_names[k], "%.16s=%.14s", q->name,
                     q->labels ? q->labels[k] : number);
        }
    }
done:
    if (x) product_free(x);
    free(domain);
    return good;
}

static bool takes_any(ceilings_product_pool *p, scout_why *why) {
    static const char *const others[] = {"nt", "nn", "tn"};
    p->layout_count = 0;
    p->layouts[0] = NULL;
    p->varied = -1, p->variants = 1;
    if (takes_layout(p, NULL, why)) p->layout_count = 1;
    for (size_t k = 0; k < sizeof others / sizeof others[0] && p->layout_count < CEILINGS_PRODUCT_LAYOUTS; k++) {
        if (p->layout_count > 0 && p->layouts[0] && strcmp(p->layouts[0], others[k]) == 0) continue;
        scout_why ignored;
        if (takes_layout(p, others[k], &ignored)) p->layouts[p->layout_count++] = others[k];
    }
    return p->layout_count > 0;
}

scout_answer ceilings_product_begin(ceilings_product_pool *p, const ceilings_lab *lab, const char *precision,
                                    scout_why *why) {
    memset(p, 0, sizeof *p);
    p->lab = lab;
    p->precision = ceilings_precision_named(precision);
    if (!p->precision) return scout_say(why, SCOUT_NO, "type", "no peak is measured of precision %.40s", precision);
    scout_say(why, SCOUT_NO, "type", "no candidate multiplies %s here", p->precision->name);
    /* the library's default first, then any library; an own kernel is no measure of what a device can do */
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < lab->api->candidate_count; k++) {
            const scout_candidate *x = lab->api->candidates[k];
            bool baseline = x->flags & SCOUT_BASELINE;
            if (x->kind != SCOUT_GEMM || (pass == 0) != baseline || (x->flags & SCOUT_OWN && !baseline)) continue;
            p->candidate = x;
            if (takes_any(p, why)) return SCOUT_OK;
        }
    p->candidate = NULL;
    return SCOUT_NO;
}

static void pool_release(ceilings_product_pool *p) {
    void **all[] = {&p->a, &p->b, &p->c, &p->workspace, &p->side};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        if (*all[k]) p->lab->api->release(p->lab->device, *all[k]);
        *all[k] = NULL;
    }
}

void ceilings_product_end(ceilings_product_pool *p) {
    if (p->lab) pool_release(p);
}

scout_answer ceilings_product_room(ceilings_product_pool *p, double input_elements, double output_elements,
                                   scout_why *why) {
    const scout_device_api *api = p->lab->api;
    scout_device *device = p->lab->device;
    scout_answer answer = SCOUT_OK;
    pool_release(p);
    p->input_bytes = (uint64_t)(input_elements * p->precision->in_bytes) + 512;
    p->output_bytes = (uint64_t)(output_elements * p->precision->out_bytes) + 512;
    const struct {
        void **at;
        uint64_t bytes;
        uint32_t type; /* SCOUT_NONE: not filled */
    } parts[] = {{&p->a, p->input_bytes, p->precision->type},
                 {&p->b, p->input_bytes, p->precision->type},
                 {&p->c, p->output_bytes, SCOUT_NONE},
                 {&p->workspace, REGIME_WORKSPACE_BYTES, SCOUT_NONE},
                 {&p->side, SIDE_BYTES, p->precision->type}};
    for (size_t k = 0; k < sizeof parts / sizeof parts[0] && answer == SCOUT_OK; k++) {
        if (p->lab->clock->beat) p->lab->clock->beat(p->lab->clock->context, 60);
        answer = api->alloc(device, parts[k].bytes, parts[k].at, why);
        if (answer == SCOUT_OK && parts[k].type != SCOUT_NONE)
            answer = api->fill(device, *parts[k].at, parts[k].bytes, parts[k].type, SCOUT_FILL_NORMAL, 11 + k, why);
    }
    if (answer != SCOUT_OK) pool_release(p);
    return answer;
}

void ceilings_product_how(const ceilings_product_pool *p, const ceilings_search_point *point, char *text, size_t room) {
    const char *variant = point->variant > 0 ? p->variant_names[point->variant] : "";
    snprintf(text, room, "%.24s%s%s", p->candidate->name, variant[0] ? " " : "", variant);
}
