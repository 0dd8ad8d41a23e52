/* Owns which ceilings a run needs of a device: those of its operations' precisions, from the cache where it has them,
 * else by a job before the first operation; and once more where an operation turned out faster than its ceiling. */
#include "scout/run/run_internal.h"

#include "common/json.h"
#include "scout/measure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const run_precisions[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "int8", NULL};

unsigned run_precision_bit(const char *name) {
    if (name && strcmp(name, "int4") == 0) name = "fp16"; /* what its products are computed in */
    for (int k = 0; name && run_precisions[k]; k++)
        if (strcmp(run_precisions[k], name) == 0) return 1U << k;
    return 0;
}

static bool is_host(const run_device *d) { return strncmp(d->about->name, "cpu", 3) == 0; }

bool run_on_host(const run *r) {
    bool host = false;
    for (int k = 0; k < r->device_count; k++) host = host || is_host(&r->devices[k]);
    return host;
}

/* ---- kept in the cache ---- */

/* Raised when a host's ceilings are found otherwise, and no time is measured otherwise. */
enum { HOST_CEILINGS = 2 };

static void key_of(const run *r, const run_device *d, char *key, size_t room) {
    const regime *g = &r->options->regime;
    const int n = snprintf(key, room, "ceilings|%s|%s-%s|method=%d", d->about->device_instance,
                           regime_load_names[g->load], regime_launch_names[g->launch], REGIME_METHOD);
    if (is_host(d) && n > 0 && (size_t)n < room) snprintf(key + n, room - (size_t)n, "|host=%d", HOST_CEILINGS);
}

static json_t *names_of(unsigned bits, json_builder *b) {
    json_t *names = json_new_array(b);
    for (int k = 0; run_precisions[k]; k++)
        if (bits & 1U << k) json_push_text(b, names, run_precisions[k]);
    if (bits & RUN_BANDWIDTH) json_push_text(b, names, "bandwidth");
    return names;
}

static unsigned bits_of(const json_t *names) {
    unsigned bits = 0;
    for (size_t k = 0; k < json_array_size(names); k++) {
        const char *name = json_string_value(json_array_get(names, k));
        bits |= name && strcmp(name, "bandwidth") == 0 ? (unsigned)RUN_BANDWIDTH : run_precision_bit(name);
    }
    return bits;
}

/* Takes a ceilings object; false: it is none. */
static bool take(run_device *d, const json_t *object, status *st) {
    ceilings *c = calloc(1, sizeof *c);
    if (!c) return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    if (!ceilings_from_json(object, c, st)) {
        free(c);
        return false;
    }
    free(d->ceilings);
    json_decref(d->json);
    d->ceilings = c;
    d->json = json_deep_copy(object);
    return true;
}

/* Peaks that were disturbed when they were measured: good for want of better, and not known. */
static unsigned disturbed_bits(const ceilings *c) {
    unsigned bits = 0;
    for (int k = 0; k < c->peak_count; k++)
        if (c->peaks[k].disturbed) bits |= run_precision_bit(c->peaks[k].precision);
    return bits;
}

void run_ceilings_load(run *r, run_device *d) {
    char key[1024], note[256];
    status st = {0};
    if (r->options->mode == OPTIONS_CEILINGS && r->options->no_cache) return;
    key_of(r, d, key, sizeof key);
    json_t *entry = cache_get(&r->cache, key, note, sizeof note);
    if (note[0]) run_warn_once(r, note);
    const double budget_s = json_number_value(json_object_get(entry, "budget_s"));
    if (entry && budget_ceilings_enough(&r->budget, budget_s) && take(d, json_object_get(entry, "ceilings"), &st)) {
        d->disturbed = disturbed_bits(d->ceilings);
        d->asked = bits_of(json_object_get(entry, "asked")) & ~d->disturbed;
        /* A host may have been busy both times. */
        d->again = is_host(d) ? 0 : bits_of(json_object_get(entry, "again"));
        d->budget_s = budget_s;
        d->from_cache = true;
    }
    if (st.code != STATUS_OK) run_warn(r, "%s; they are measured again", st.text);
    json_decref(entry);
}

static void store(run *r, run_device *d) {
    char key[1024];
    status st = {0};
    json_builder b = {0};
    json_t *entry = json_new_object(&b);
    json_put(&b, entry, "ceilings", json_deep_copy(d->json));
    json_put(&b, entry, "asked", names_of(d->asked, &b));
    json_put(&b, entry, "again", names_of(d->again, &b));
    json_put_real(&b, entry, "budget_s", d->budget_s);
    entry = json_finish(&b, entry, &st);
    key_of(r, d, key, sizeof key);
    if (entry) cache_put(&r->cache, (const char *[]){key}, 1, entry, &st);
    if (st.code != STATUS_OK) run_warn(r, "%s", st.text);
    d->kept = d->kept || st.code == STATUS_OK;
    json_decref(entry);
}

/* ---- jobs ---- */

static bool has_sweep(const run *r, const run_device *d) {
    const ceilings *c = d->ceilings;
    return c && c->sweep_count > 0 && strcmp(c->sweep_precision, r->sweep_precision) == 0 &&
           c->sweep[0].shape[0] == r->sweep_m && c->sweep[0].shape[1] == r->sweep_n;
}

unsigned run_ceilings_due(const run *r, const run_device *d, bool *again) {
    *again = false;
    if (r->search.compare) return 0; /* two times beside each other need none; those that are known are told */
    *again = (d->suspect & ~d->again) && budget_ceilings_again(&r->budget, d->used_s);
    if (*again) return d->suspect & ~d->again;
    if (d->tried) return 0; /* what failed once is not tried for every operation */
    return (r->wanted | (r->wanted ? (unsigned)RUN_BANDWIDTH : 0)) & ~d->asked;
}

static int parts_of(unsigned bits) {
    int count = 0;
    for (; bits; bits &= bits - 1) count++;
    return count;
}

static bool is_sweep_due(const run *r, const run_device *d) {
    return r->sweep_precision && !d->sweep_tried && !has_sweep(r, d);
}

int run_ceilings_parts_due(const run *r, const run_device *d) {
    bool again = false;
    return parts_of(run_ceilings_due(r, d, &again)) + is_sweep_due(r, d);
}

json_t *run_ceilings_job(run *r, run_device *d, int job) {
    const options *o = r->options;
    bool again = false;
    const unsigned due = run_ceilings_due(r, d, &again);
    const bool sweep = is_sweep_due(r, d);
    const bool audit = o->mode == OPTIONS_CEILINGS && o->exhaustive && !d->tried;
    json_builder b = {0};
    status st = {0};
    char key[64];
    if (!due && !sweep && !audit) return NULL;
    d->tried = true;
    d->began = run_now();
    d->sweep_tried = d->sweep_tried || sweep;
    d->flying = due;
    d->before = d->asked;
    if (again) d->again |= due;
    const int parts = parts_of(due) + sweep;
    const double part_s = budget_ceilings_part(&r->budget, d->used_s, parts, is_host(d));
    if (d->budget_s == 0 || part_s < d->budget_s) d->budget_s = part_s;
    d->parts = parts > 1 ? parts : 1; /* an audit alone is one */
    d->part = 0;
    d->part_s = part_s;
    d->part_began = d->began;
    regime_key(&o->regime, key, sizeof key);
    json_t *to = json_new_object(&b);
    json_put_text(&b, to, "what", "ceilings");
    json_put_int(&b, to, "job", job);
    json_put_text(&b, to, "regime", key);
    json_put(&b, to, "precisions", names_of((audit ? r->wanted : due) & ~(unsigned)RUN_BANDWIDTH, &b));
    json_put_bool(&b, to, "bandwidth", (due & RUN_BANDWIDTH) != 0);
    json_put_bool(&b, to, "again", again);
    json_put_bool(&b, to, "audit", audit);
    json_put_real(&b, to, "budget_s", part_s);
    const double within_s = budget_ceilings_left(&r->budget, d->used_s);
    if (isfinite(within_s)) json_put_real(&b, to, "within_s", within_s);
    if (sweep) {
        json_t *points = json_new_object(&b);
        json_put_text(&b, points, "precision", r->sweep_precision);
        json_put_int(&b, points, "m", r->sweep_m);
        json_put_int(&b, points, "n", r->sweep_n);
        json_put(&b, to, "sweep", points);
    }
    json_put(&b, to, "ceilings", d->json ? json_deep_copy(d->json) : json_null());
    to = json_finish(&b, to, &st);
    if (!to) run_warn(r, "%s", st.text);
    return to;
}

/* Bandwidth and launches come first, then precisions in the order of their bits, the K sweep last. What is not due, or
 * not there on this device, takes no time and is never heard of. */
static int part_of(const run_device *d, const char *text) {
    const size_t length = strcspn(text, ":");
    char name[16] = "";
    if (text[length] != ':' || length >= sizeof name) return 0;
    memcpy(name, text, length);
    const unsigned bit = run_precision_bit(name);
    if (!bit) return 0;
    if (strncmp(text + length, ": K ", 4) == 0) return d->parts - 1;
    return parts_of(d->flying & (RUN_BANDWIDTH | (bit - 1)));
}

/* Of a host, where a peak may have been taken while others used it: what a yardstick reached beside an operation takes
 * its place, for this run and for good. A device's yardstick runs at another clock in blocks than in its long run. */
static void learn(run *r, run_device *d, const run_item *i) {
    static const char *const figures[] = {"tflops", "tbps", "specials_per_s"};
    const json_t *probe = json_object_get(i->measurement, "probe");
    ceilings_seen seen = {.bound = json_get_text(probe, "bound"),
                          .precision = json_get_text(probe, "precision"),
                          .product = json_object_get(probe, "shape") != NULL,
                          .bytes = json_get_positive(probe, "bytes"),
                          .read_fraction = json_number_value(json_object_get(probe, "read_fraction")),
                          .resident = json_is_true(json_object_get(probe, "resident")),
                          .over_bytes = json_get_positive(probe, "over_bytes")};
    json_builder b = {0};
    status st = {0};
    for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++)
        if (json_object_get(probe, figures[k])) seen.rate = json_get_positive(probe, figures[k]);
    if (!d->ceilings || !is_host(d) || !ceilings_raise(d->ceilings, &seen)) return;
    json_t *object = json_finish(&b, ceilings_to_json(d->ceilings, &b), &st);
    if (object && take(d, object, &st)) store(r, d);
    if (st.code != STATUS_OK) run_warn(r, "%s", st.text);
    json_decref(object);
}

void run_ceilings_hold(run *r, run_device *d, const run_item *i) {
    report_figures f;
    learn(r, d, i);
    if (figures_passes(i->measurement) > 1) return;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    if (!f.above_ceiling || strcmp(f.ceiling_from, "probe") == 0) return;
    d->suspect |= f.bound && strcmp(f.bound, "compute") == 0 ? run_precision_bit(f.precision) : (unsigned)RUN_BANDWIDTH;
}

const char *run_ceilings_words(const run_device *d, bool doubted) {
    if (doubted) return "a ceiling was exceeded, and is measured once more";
    if (d->flying & d->disturbed) return "measuring its ceilings (the last ones were disturbed: once more)";
    return "measuring its ceilings (once, then cached)";
}

void run_ceilings_hear(run_device *d, const char *text) {
    const int part = part_of(d, text);
    if (part <= d->part || part >= d->parts) return;
    d->part = part;
    d->part_began = run_now();
}

double run_ceilings_left_s(const run_device *d) {
    if (d->parts == 0) return NAN;
    return (d->parts - d->part) * d->part_s - fmin(run_now() - d->part_began, d->part_s);
}

/* What was measured just now and cannot be relied on. */
static void warn_disturbed(run *r, const run_device *d, unsigned measured) {
    for (int k = 0; k < d->ceilings->peak_count; k++) {
        const ceilings_peak *p = &d->ceilings->peaks[k];
        char known[32] = "";
        if (!p->disturbed || !(measured & run_precision_bit(p->precision))) continue;
        if (p->rel_ci95 < 1) snprintf(known, sizeof known, " (+- %.1f %%)", 100 * p->rel_ci95);
        run_warn(r,
                 "%s: its %s peak was disturbed while it was measured%s, perhaps by another user of the device: the "
                 "next run measures it again",
                 d->about->name, p->precision, known);
    }
}

/* Kept at once: an interrupted run, or a lost device, keeps them. A job that is done again begins anew.
 */
void run_ceilings_part(run *r, run_device *d, const json_t *body) {
    status bad = {0};
    if (!take(d, json_object_get(body, "ceilings"), &bad)) {
        run_warn(r, "%s: %s", d->about->name, bad.text);
        return;
    }
    d->asked = d->before | bits_of(json_object_get(body, "parts"));
    d->from_cache = false;
    store(r, d);
}

void run_ceilings_done(run *r, run_device *d, const json_t *result, const status *st) {
    status bad = {0};
    const unsigned flying = d->flying;
    d->flying = 0;
    d->disturbed &= ~flying;
    d->parts_done += d->parts;
    d->parts = d->part = 0;
    d->used_s += run_now() - d->began;
    if (!result) {
        snprintf(d->why, sizeof d->why, "%.200s", st->text);
        run_warn(r, "%s: its ceilings could not be measured: %s", d->about->name, st->text);
        return;
    }
    if (!take(d, json_object_get(result, "ceilings"), &bad)) {
        snprintf(d->why, sizeof d->why, "%.200s", bad.text);
        run_warn(r, "%s: %s", d->about->name, bad.text);
        return;
    }
    const json_t *audit = json_object_get(result, "audit");
    if (json_is_object(audit)) {
        json_decref(d->audit);
        d->audit = json_deep_copy(audit);
    }
    d->asked |= flying;
    d->from_cache = false;
    warn_disturbed(r, d, flying);
    store(r, d);
}
