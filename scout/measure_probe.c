/* The ceiling probe: among the finalists runs what once set the ceiling, so that a report shows whether the device was
 * then as fast as it is now. A product of the peak's shape where compute is the bound, else the same bytes streamed. */
#include "scout/measure_internal.h"

#include "scout/kinds/kinds.h"

#include <math.h>
#include <string.h>

static const double longest_s = 0.25; /* a probe whose launch takes longer eats the budget of what it stands beside */
static const double memory_share = 0.3;

/* ---- a product of the peak's shape ---- */

/* Who multiplies: the baseline, or (of another kind of operation) the device's baseline of products. */
static const scout_candidate *product_candidate(const measurement *m) {
    const scout_candidate *c = m->rows[m->baseline].candidate;
    scout_why why;
    /* one that is for products with something behind them alone is no measure of the peak */
    const bool itself = c->kind == SCOUT_GEMM && c->supports(&m->probe.op, m->device, &why) == SCOUT_OK;
    for (uint32_t k = 0; !itself && k < m->api->candidate_count; k++) {
        const scout_candidate *other = m->api->candidates[k];
        if (other->kind != SCOUT_GEMM || !(other->flags & SCOUT_BASELINE)) continue;
        if (other->supports(&m->probe.op, m->device, &why) == SCOUT_OK) return other;
    }
    return itself ? c : NULL;
}

/* "cublaslt algo=3": the candidate, and the variant that it names; the first one where it names none of today's. */
static const scout_candidate *peak_values(measurement *m, const char *how, int64_t *values) {
    const scout_candidate *c = product_candidate(m);
    scout_domain *domain = arena_zalloc(&m->arena, sizeof *domain);
    scout_why why;
    memset(values, 0, SCOUT_MAX_PARAMETERS * sizeof *values);
    if (!c) return NULL;
    const size_t n = strlen(c->name);
    if (!c->domain || c->domain(&m->probe.op, m->device, 0, domain, &why) != SCOUT_OK) return c;
    for (uint32_t k = 0; k < domain->count && k < SCOUT_MAX_PARAMETERS; k++)
        values[k] = domain->parameters[k].values[0];
    if (strncmp(how, c->name, n) != 0 || how[n] != ' ' || domain->count == 0) return c;
    int indices[SCOUT_MAX_PARAMETERS] = {0};
    for (int k = 0; k >= 0;) {
        char text[160];
        measure_variant_text(domain, indices, text, sizeof text);
        if (strcmp(text, how + n + 1) == 0) {
            for (uint32_t i = 0; i < domain->count; i++) values[i] = domain->parameters[i].values[indices[i]];
            break;
        }
        k = (int)domain->count - 1;
        while (k >= 0 && ++indices[k] >= (int)domain->parameters[k].count) indices[k--] = 0;
    }
    return c;
}

static double product_bytes(const scout_op *op) {
    double bytes = 0;
    for (uint32_t k = 0; k < op->tensor_count; k++) bytes += (double)op->tensors[k].bytes;
    return bytes;
}

static bool open_product(measurement *m) {
    measure_probe *p = &m->probe;
    const char *precision = operation_precision(m->request->operation);
    const ceilings_peak *peak = ceilings_find_peak(m->request->ceilings, precision);
    operation_list list = {.items = NULL};
    int64_t values[SCOUT_MAX_PARAMETERS];
    uint64_t free_bytes = 0, total = 0;
    scout_answer answer = SCOUT_NO;
    scout_why why;
    if (!peak || peak->shape[0] < 1 || peak->tflops <= 0 || m->baseline < 0) return false;
    const char *shape = arena_printf(&m->arena, "%lld,%lld,%lld", (long long)peak->shape[0], (long long)peak->shape[1],
                                     (long long)peak->shape[2]);
    operation_from_words("gemm", shape, peak->precision, 0, NULL, &m->arena, &list);
    if (peak->layout[0]) list.items[0].rec.layout = peak->layout;
    const bool built = kinds_build(&list.items[0], m->request->workspace_limit, &m->arena, &p->op, &why);
    operation_list_free(&list);
    if (!built || m->api->memory(m->device, &free_bytes, &total, &why) != SCOUT_OK) return false;
    if (product_bytes(&p->op) > memory_share * (double)free_bytes) return false;
    if (p->op.flops / (1e12 * peak->tflops) > longest_s) return false;
    p->set = bench_set_new(m->api, m->device, &p->op, REGIME_HOT, 0, m->request->seed, 0, NULL, &answer, &why);
    if (!p->set) return false;
    const scout_candidate *c = peak_values(m, peak->how, values);
    if (!c) return false;
    p->plan = bench_plan_new(p->set, c, values, m->request->regime.launch == REGIME_GRAPH, &answer, &why);
    if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    snprintf(p->precision, sizeof p->precision, "%s", peak->precision);
    memcpy(p->shape, peak->shape, sizeof p->shape);
    p->flops = p->op.flops;
    p->stored = peak->tflops;
    p->product = true;
    return p->plan != NULL;
}

/* ---- the same bytes ---- */

static uint64_t aligned(double bytes) { return ((uint64_t)bytes + 511) / 512 * 512; }

static scout_answer enqueue_stream(void *context, uint32_t number, void *stream, scout_why *why) {
    const measure_probe *p = context;
    const uint64_t copy = number % p->copies;
    const char *read = p->read;
    char *written = p->written;
    return p->owner->api->stream(p->owner->device, read ? read + copy * p->read_bytes : NULL, p->read_bytes,
                                 written ? written + copy * p->written_bytes : NULL, p->written_bytes, stream, why);
}

static bool open_stream(measurement *m) {
    measure_probe *p = &m->probe;
    const ceilings *c = m->request->ceilings;
    uint64_t free_bytes = 0, total = 0;
    scout_why why;
    if (!m->api->stream || m->api->memory(m->device, &free_bytes, &total, &why) != SCOUT_OK) return false;
    p->read_bytes = aligned(m->op.bytes_read);
    p->written_bytes = aligned(m->op.bytes_written);
    p->bytes = (double)p->read_bytes + (double)p->written_bytes;
    if (!(p->bytes > 0) || p->bytes > memory_share * (double)free_bytes) return false;
    const bool hot = m->request->regime.cache == REGIME_HOT;
    const double wanted = hot ? 1 : fmax(ceil(c->plateau_bytes / p->bytes), 2); /* as many as of the tensors */
    const double fit = memory_share * (double)free_bytes / p->bytes;
    const double copies = fmin(fmin(wanted, fit), BENCH_COPIES);
    p->copies = copies > 1 ? (uint32_t)copies : 1;
    if (!hot && p->copies * p->bytes < c->plateau_bytes) return false; /* warmer than what it would be held against */
    if (p->read_bytes && m->api->alloc(m->device, p->read_bytes * p->copies, &p->read, &why) != SCOUT_OK) return false;
    if (p->written_bytes && m->api->alloc(m->device, p->written_bytes * p->copies, &p->written, &why) != SCOUT_OK)
        return false;
    if (p->read && m->api->fill(m->device, p->read, p->read_bytes * p->copies, SCOUT_NONE, SCOUT_FILL_BYTE, 0x3c,
                                &why) != SCOUT_OK)
        return false;
    p->read_fraction = (double)p->read_bytes / p->bytes;
    p->stored = ceilings_bandwidth_at(c, p->bytes, p->read_fraction, hot);
    snprintf(p->precision, sizeof p->precision, "%s", operation_precision(m->request->operation));
    return true;
}

static scout_answer run_stream(measure_probe *p, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    const scout_device_api *api = p->owner->api;
    const uint32_t over = launches % p->copies, real = over ? launches + p->copies - over : launches;
    scout_answer answer = SCOUT_OK;
    if (p->sequence && p->sequence_launches != real) {
        api->drop(p->owner->device, p->sequence);
        p->sequence = NULL;
    }
    if (!p->sequence)
        answer = api->record(p->owner->device, p->owner->request->regime.launch == REGIME_GRAPH, real, enqueue_stream,
                             p, &p->sequence, why);
    if (answer != SCOUT_OK) return answer;
    p->sequence_launches = real;
    answer = api->run(p->owner->device, p->sequence, batches, seconds, why);
    for (uint32_t k = 0; answer == SCOUT_OK && k < batches; k++) seconds[k] *= (double)launches / real;
    return answer;
}

/* ---- both ---- */

static scout_answer probe_run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    measure_probe *p = context;
    measurement *m = p->owner;
    const double each = p->launch_s > 0 ? p->launch_s : 0.1;
    measure_tell(m, p, NULL, NULL, "probe", fmin(60 + 20 * each * launches * batches, 3600));
    const scout_answer answer = p->product ? bench_plan_run(p->plan, launches, batches, seconds, why)
                                           : run_stream(p, launches, batches, seconds, why);
    if (answer == SCOUT_OK && launches > 0) p->launch_s = seconds[0] / launches;
    return answer;
}

timing_subject measure_probe_subject(measure_probe *p) { return (timing_subject){.context = p, .run = probe_run}; }

void measure_probe_open(measurement *m) {
    measure_probe *p = &m->probe;
    const char *bound = m->ceiling.bound;
    p->owner = m;
    if (!m->request->ceilings || !bound || !isfinite(m->ceiling.seconds)) return;
    if (m->request->regime.load == REGIME_BURST) return; /* its own load would be in the others' way */
    measure_tell(m, p, NULL, NULL, "probe", 120);
    p->ready = strcmp(bound, "compute") == 0 ? open_product(m) : strcmp(bound, "memory") == 0 && open_stream(m);
    if (!p->ready && !measure_stopped(m)) measure_probe_close(p);
}

void measure_probe_close(measure_probe *p) {
    if (!p->owner) return;
    const scout_device_api *api = p->owner->api;
    scout_device *device = p->owner->device;
    bench_plan_free(p->plan);
    bench_set_free(p->set);
    const bool lost = p->owner->answer == SCOUT_LOST;
    if (p->sequence && !lost) api->drop(device, p->sequence);
    if (p->read && !lost) api->release(device, p->read);
    if (p->written && !lost) api->release(device, p->written);
    p->plan = NULL;
    p->set = NULL;
    p->sequence = NULL;
    p->read = p->written = NULL;
}

json_t *measure_probe_json(const measure_probe *p, json_builder *b) {
    const timing_result *r = &p->result;
    if (!p->ready || r->answer != SCOUT_OK || !(r->median_s > 0)) return json_null();
    json_t *to = json_new_object(b);
    const char *unit = p->product ? "tflops" : "tbps", *stored = p->product ? "stored_tflops" : "stored_tbps";
    json_put_text(b, to, "precision", p->precision);
    if (p->product) {
        json_put(b, to, "shape", json_new_ints(b, 3, p->shape));
    } else {
        json_put_real(b, to, "bytes", p->bytes);
        json_put_real(b, to, "read_fraction", p->read_fraction);
    }
    if (isfinite(p->stored)) json_put_real(b, to, stored, p->stored);
    json_put_real(b, to, unit, (p->product ? p->flops : p->bytes) / r->median_s / 1e12);
    if (isfinite(r->rel_ci95)) json_put_real(b, to, "rel_ci95", r->rel_ci95);
    json_put_bool(b, to, "settled", r->settled);
    return to;
}
