/* The yardstick: what set the ceiling, in blocks beside the operation's own, so that an efficiency is a ratio of
 * neighbours and no matter of the clock. A product of the peak's shape where compute is the bound, or multiply-adds in
 * registers where those were faster. A host shares its memory with others, so that there the same bytes streamed, or
 * special functions, run beside the operation as well. */
#include "scout/measure/measure_internal.h"

#include "scout/kinds/kinds.h"

#include <math.h>
#include <string.h>

static const double longest_s = 0.25; /* a probe whose launch takes longer eats the budget of what it stands beside */
static const double memory_share = 0.3;
static const double counted_s = 0.002; /* a launch of what is counted takes about so long, as when it was measured */

static bool on_host(const measurement *m) { return !m->api->has_graphs; }

/* ---- a product of the peak's shape ---- */

/* The multiplying candidate: the baseline, or (of another kind of operation, and of a fusion's parts) the device's
 * baseline of products. */
static const scout_candidate *product_candidate(const measurement *m) {
    const scout_candidate *c = m->rows[m->baseline].candidate;
    scout_why why;
    /* one that computes only products with an epilogue is no measure of the peak */
    const bool itself = c->kind == SCOUT_GEMM && c->supports(&m->probe.op, m->device, &why) == SCOUT_OK;
    for (uint32_t k = 0; !itself && k < m->api->candidate_count; k++) {
        const scout_candidate *other = m->api->candidates[k];
        if (other->kind != SCOUT_GEMM || !(other->flags & SCOUT_BASELINE)) continue;
        if (other->supports(&m->probe.op, m->device, &why) == SCOUT_OK) return other;
    }
    return itself ? c : NULL;
}

/* "cublaslt algo=3": the candidate, and the variant that it names; the first one where it names none of today's. */
static const scout_candidate *peak_variant(measurement *m, const char *how, variants_one *out) {
    const scout_candidate *c = product_candidate(m);
    if (!c) return NULL;
    const size_t n = strlen(c->name);
    variants all;
    scout_why why;
    const scout_answer answer =
        variants_open(&all, c, &m->probe.op, m->device, false, arena_zalloc(&m->arena, sizeof(scout_domain)), &why);
    if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    if (answer != SCOUT_OK) return NULL;
    const bool named = strncmp(how, c->name, n) == 0 && how[n] == ' ' && variants_find(&all, how + n + 1, out);
    return named || variants_next(&all, out) ? c : NULL;
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
    variants_one variant;
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
    const regime hot = {.load = m->request->regime.load, .cache = REGIME_HOT};
    p->set =
        bench_set_new(m->api, m->device, &p->op, &hot, 0, m->pass.seed, (bench_tolerance){0, 0}, NULL, &answer, &why);
    if (!p->set) return false;
    const scout_candidate *c = peak_variant(m, peak->how, &variant);
    if (!c) return false;
    p->plan = bench_plan_new(p->set, c, variant.values, m->request->regime.launch == REGIME_GRAPH, NULL, &answer, &why);
    if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    snprintf(p->precision, sizeof p->precision, "%s", peak->precision);
    memcpy(p->shape, peak->shape, sizeof p->shape);
    p->flops = p->op.flops;
    p->stored = peak->tflops;
    p->kind = MEASURE_PROBE_PRODUCT;
    return p->plan != NULL;
}

/* ---- the same bytes ---- */

static uint64_t aligned(double bytes) { return ((uint64_t)bytes + 511) / 512 * 512; }

static scout_answer enqueue_stream(void *context, uint32_t number, void *stream, scout_why *why) {
    measure_probe *p = context;
    const uint64_t copy = p->turn++ % p->copies; /* it goes on where the last sequence ended */
    const char *read = p->read;
    char *written = p->written;
    (void)number;
    return p->owner->api->stream(p->owner->device, read ? read + copy * p->read_bytes : NULL, p->read_bytes,
                                 written ? written + copy * p->written_bytes : NULL, p->written_bytes, stream, why);
}

/* The bytes that set the operation's ceiling, in a size that the table of bandwidths has: below it there is nothing but
 * the waking of threads. */
static bool choose_bytes(measurement *m, bool *hot) {
    measure_probe *p = &m->probe;
    const ceilings *c = m->request->ceilings;
    const ceilings_time *t = &m->ceiling;
    double least = INFINITY, most = 0;
    for (int k = 0; k < c->bandwidth_count; k++) {
        least = fmin(least, (double)c->bandwidths[k].bytes);
        most = fmax(most, (double)c->bandwidths[k].bytes);
    }
    const double bytes = fmin(fmax(t->moved_bytes, least), most), read = bytes * t->moved_read_fraction;
    *hot = m->request->regime.cache == REGIME_HOT || t->moved_resident;
    p->read_bytes = aligned(read);
    p->written_bytes = aligned(bytes - read);
    p->bytes = (double)p->read_bytes + (double)p->written_bytes;
    return p->bytes > 0;
}

static bool open_stream(measurement *m) {
    measure_probe *p = &m->probe;
    const ceilings *c = m->request->ceilings;
    uint64_t free_bytes = 0, total = 0;
    bool hot = false;
    scout_why why;
    if (!m->api->stream || m->api->memory(m->device, &free_bytes, &total, &why) != SCOUT_OK) return false;
    if (!choose_bytes(m, &hot) || p->bytes > memory_share * (double)free_bytes) return false;
    /* Rotating over as much as the operation's own tensors do: colder than them would be no ceiling of theirs. */
    const double over = fmin(c->plateau_bytes, (double)bench_set_rotation_bytes(m->set));
    const double wanted = hot ? 1 : fmax(ceil(over / p->bytes), 2);
    const double copies = fmin(fmin(wanted, memory_share * (double)free_bytes / p->bytes), UINT32_MAX);
    p->copies = copies > 1 ? (uint32_t)copies : 1;
    if (!hot && p->copies * p->bytes < over) return false; /* warmer than what it would be held against */
    if (p->read_bytes && m->api->alloc(m->device, p->read_bytes * p->copies, &p->read, &why) != SCOUT_OK) return false;
    if (p->written_bytes && m->api->alloc(m->device, p->written_bytes * p->copies, &p->written, &why) != SCOUT_OK)
        return false;
    if (p->read && m->api->fill(m->device, p->read, p->read_bytes * p->copies, SCOUT_NONE, SCOUT_FILL_BYTE, 0x3c,
                                &why) != SCOUT_OK)
        return false;
    p->resident = hot;
    p->read_fraction = (double)p->read_bytes / p->bytes;
    p->stored = ceilings_bandwidth_at(c, p->bytes, p->read_fraction, hot);
    snprintf(p->precision, sizeof p->precision, "%s", operation_precision(m->request->operation));
    p->kind = MEASURE_PROBE_STREAM;
    return true;
}

/* ---- so many operations in registers ---- */

static scout_answer enqueue_counted(void *context, uint32_t number, void *stream, scout_why *why) {
    measure_probe *p = context;
    const scout_device_api *api = p->owner->api;
    const uint64_t wanted = (uint64_t)p->flops;
    (void)number;
    if (p->type == SCOUT_NONE) return api->special(p->owner->device, wanted, &p->done, stream, why);
    return api->arithmetic(p->owner->device, p->type, wanted, &p->done, stream, why);
}

/* `per_s`: the ceilings' figure, SCOUT_NONE stands for special functions. */
static bool open_counted(measurement *m, uint32_t type, const char *precision, double per_s) {
    measure_probe *p = &m->probe;
    if (!(per_s > 0)) return false;
    if (type == SCOUT_NONE ? !m->api->special : !m->api->arithmetic) return false;
    p->type = type;
    p->flops = ceil(per_s * counted_s);
    p->stored = type == SCOUT_NONE ? per_s : per_s / 1e12;
    p->kind = MEASURE_PROBE_COUNTED;
    snprintf(p->precision, sizeof p->precision, "%s", precision);
    return p->flops < 1e18;
}

/* ---- all of them ---- */

static scout_enqueue enqueue_of(const measure_probe *p) {
    return p->kind == MEASURE_PROBE_STREAM ? enqueue_stream : enqueue_counted;
}

/* So many launches; the sequence is the probe's. */
static scout_answer record_sequence(measure_probe *p, uint32_t launches, scout_why *why) {
    const scout_device_api *api = p->owner->api;
    if (p->sequence && p->sequence_launches == launches) return SCOUT_OK;
    if (p->sequence) api->drop(p->owner->device, p->sequence);
    p->sequence = NULL;
    p->sequence_launches = launches;
    return api->record(p->owner->device, p->owner->request->regime.launch == REGIME_GRAPH, launches, enqueue_of(p), p,
                       &p->sequence, why);
}

static scout_answer run_sequence(measure_probe *p, uint32_t launches, uint32_t batches, double *seconds,
                                 scout_why *why) {
    const scout_answer answer = record_sequence(p, launches, why);
    return answer == SCOUT_OK ? p->owner->api->run(p->owner->device, p->sequence, batches, seconds, why) : answer;
}

static scout_answer probe_record(void *context, uint32_t launches, scout_sequence **out, scout_why *why) {
    measure_probe *p = context;
    if (p->kind == MEASURE_PROBE_PRODUCT) return bench_plan_recorded(p->plan, launches, out, why);
    const scout_answer answer = record_sequence(p, launches, why);
    *out = p->sequence;
    return answer;
}

static scout_answer probe_run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    measure_probe *p = context;
    measurement *m = p->owner;
    const double each = p->launch_s > 0 ? p->launch_s : 0.1;
    measure_tell(m, p, NULL, NULL, "probe", fmin(60 + 20 * each * launches * batches, 3600));
    const scout_answer answer = p->kind == MEASURE_PROBE_PRODUCT
                                    ? bench_plan_run(p->plan, launches, batches, seconds, why)
                                    : run_sequence(p, launches, batches, seconds, why);
    if (answer == SCOUT_OK && launches > 0) p->launch_s = seconds[0] / launches;
    return answer;
}

timing_subject measure_probe_subject(measure_probe *p) {
    return (timing_subject){.context = p, .run = probe_run, .record = probe_record};
}

/* Flops per second of the best of a few launches; 0: it does not run. */
static double best_rate(measurement *m) {
    enum { TIMES = 5 };
    measure_probe *p = &m->probe;
    double seconds[TIMES], least = INFINITY;
    scout_why why;
    const scout_answer answer = probe_run(p, 1, TIMES, seconds, &why);
    if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    for (int k = 0; answer == SCOUT_OK && k < TIMES; k++) least = fmin(least, seconds[k]);
    return least > 0 ? (p->kind == MEASURE_PROBE_COUNTED ? (double)p->done : p->flops) / least : 0;
}

static bool open_registers(measurement *m, const ceilings_peak *peak) {
    const uint32_t type = ceilings_type_of(peak->precision);
    return type != SCOUT_NONE && open_counted(m, type, peak->precision, 1e12 * peak->tflops);
}

/* What set the peak. On a host, where that is a product, registers may only have had a bad moment when the ceilings
 * were taken: the faster one of now, so that two runs do not take two scales. */
static bool open_compute(measurement *m) {
    const ceilings_peak *peak = ceilings_find_peak(m->request->ceilings, operation_precision(m->request->operation));
    if (!peak || peak->tflops <= 0) return false;
    if (peak->shape[0] < 1) return open_registers(m, peak);
    const double registers = open_registers(m, peak) ? best_rate(m) : 0;
    measure_probe_close(&m->probe);
    const bool product = !measure_stopped(m) && open_product(m);
    if (!(registers > 0) || (product && best_rate(m) > registers)) return product;
    measure_probe_close(&m->probe);
    return !measure_stopped(m) && open_registers(m, peak);
}

static bool open_special(measurement *m) {
    return open_counted(m, SCOUT_NONE, operation_precision(m->request->operation), m->request->ceilings->special_per_s);
}

static const struct {
    const char *bound;
    bool (*open)(measurement *m);
    bool everywhere; /* else on a host alone: bytes and special functions of a device have no other load beside them */
} openers[] = {{"compute", open_compute, true}, {"memory", open_stream, false}, {"special", open_special, false}};

void measure_probe_open(measurement *m) {
    measure_probe *p = &m->probe;
    const char *bound = m->ceiling.bound;
    *p = (measure_probe){.owner = m};
    if (!m->request->ceilings || !bound || !isfinite(m->ceiling.seconds) || m->baseline < 0) return;
    if (m->request->regime.load == REGIME_BURST) return; /* its own load would be in the others' way */
    if (m->clock.clocks) return;                         /* what a clock tells needs no load beside it */
    measure_tell(m, p, NULL, NULL, "yardstick", 120);
    for (size_t k = 0; k < sizeof openers / sizeof openers[0]; k++)
        if (strcmp(openers[k].bound, bound) == 0 && (openers[k].everywhere || on_host(m)))
            p->ready = openers[k].open(m);
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

static double scale_of(const measurement *m) {
    const measure_probe *p = &m->probe;
    if (p->kind == MEASURE_PROBE_STREAM) return m->ceiling.moved_bytes / p->bytes;
    if (p->kind == MEASURE_PROBE_PRODUCT) return m->op.flops / p->flops;
    const double done = p->done > 0 ? (double)p->done : p->flops;
    return (p->type == SCOUT_NONE ? m->specials : m->op.flops) / done;
}

/* What the bound part of the operation takes over a launch of the baseline, by neighbouring blocks; not-a-number where
 * no yardstick ran. The launch floor, which the report adds, is in every launch of the yardstick. */
static double bound_of(const measurement *m) {
    const measure_probe *p = &m->probe;
    const measure_row *base = m->baseline >= 0 ? &m->rows[m->baseline] : NULL;
    if (!p->ready || p->lane.answer != SCOUT_OK || !(p->lane.time_s > 0) || !base || !base->timed) return NAN;
    const double floor_s = m->request->ceilings->launch_s, launch_s = p->lane.time_s;
    return scale_of(m) * fmax(launch_s - floor_s, 0.5 * launch_s) / base->lane.time_s;
}

json_t *measure_probe_json(const measurement *m, json_builder *b) {
    static const char *const stored[] = {"stored_tflops", "stored_tbps", "stored_tflops", "stored_specials_per_s"};
    const measure_probe *p = &m->probe;
    const double bound = bound_of(m);
    if (isnan(bound)) return json_null();
    json_t *to = json_new_object(b);
    const bool counted = p->kind == MEASURE_PROBE_COUNTED, special = counted && p->type == SCOUT_NONE;
    const double work = counted ? (double)p->done : p->kind == MEASURE_PROBE_STREAM ? p->bytes : p->flops;
    const double launch_s = p->lane.time_s;
    json_put_text(b, to, "precision", p->precision);
    json_put_text(b, to, "bound", m->ceiling.bound);
    if (p->kind == MEASURE_PROBE_PRODUCT) json_put(b, to, "shape", json_new_ints(b, 3, p->shape));
    if (p->kind == MEASURE_PROBE_STREAM) {
        json_put_real(b, to, "bytes", p->bytes);
        json_put_real(b, to, "read_fraction", p->read_fraction);
        json_put_bool(b, to, "resident", p->resident);
        json_put_real(b, to, "over_bytes", p->bytes * p->copies);
    }
    if (isfinite(p->stored)) json_put_real(b, to, stored[special ? 3 : (int)p->kind], p->stored);
    json_put_real(b, to, "work", work / (special ? 1 : 1e12));
    json_put_real(b, to, "launch_us", 1e6 * launch_s);
    json_put_real(b, to, "bound_ratio", bound);
    return to;
}
