/* Which of the device's ceilings were used, where and how they were measured, and what they say of one operation. */
#include "analyze/explain/explain.h"

#include "common/amount.h"

#include <math.h>
#include <string.h>

/* What the device can do, from run.json: that of the device by this instance, else by this name. */
static const json_t *ceilings_of(const explain *e) {
    const json_t *devices = json_object_get(e->run, "devices"), *found = NULL;
    const char *instance = json_get_text(json_object_get(e->report, "device"), "instance");
    for (size_t k = 0; k < json_array_size(devices); k++) {
        const json_t *device = json_array_get(devices, k);
        if (!found || strcmp(json_get_text(device, "instance"), instance) == 0) found = device;
    }
    return json_object_get(found, "ceilings");
}

/* What one bound says: the time that it takes at least, and from what that follows. Not-a-number: nothing. */
typedef struct bound {
    double us;
    const char *from;
} bound;

static const char *within(const explain *e, const json_t *from) {
    const char *text = arena_printf(e->arena, "%s", amount_within(json_get_number(from, "rel_ci95")).s);
    return *text ? arena_printf(e->arena, " %s", text) : text;
}

static const char *at_clock(const explain *e, const json_t *from) {
    const double clock = json_get_number(from, "clock_mhz"), power = json_get_number(from, "power_w");
    const char *text = clock > 0 ? arena_printf(e->arena, ", at %.0f MHz", clock) : "";
    return power > 0 ? arena_printf(e->arena, "%s and %.0f W", text, power) : text;
}

static const json_t *peak_of(const explain *e, const json_t *ceilings) {
    const json_t *peaks = json_object_get(ceilings, "peaks");
    for (size_t k = 0; e->r->precision && k < json_array_size(peaks); k++)
        if (strcmp(json_get_text(json_array_get(peaks, k), "precision"), e->r->precision) == 0)
            return json_array_get(peaks, k);
    return NULL;
}

static bound compute(const explain *e, const json_t *ceilings) {
    const study_report *r = e->r;
    const json_t *peak = peak_of(e, ceilings), *shape = json_object_get(e->report, "peak_shape");
    if (!(r->peak_tflops > 0) || !(r->flops > 0)) return (bound){NAN, "no flops, or no peak of this precision"};
    const char *how = json_get_text(e->report, "peak_how");
    const char *where = json_integer_value(json_array_get(shape, 0)) > 0
                            ? arena_printf(e->arena, " at %s", explain_shape_of(e, shape))
                            : "";
    return (bound){r->flops / r->peak_tflops * 1e-6,
                   arena_printf(e->arena, "%s at the peak of %s%s, measured with %s%s%s",
                                explain_unit(e, r->flops, "FLOP"), explain_unit(e, 1e12 * r->peak_tflops, "FLOP/s"),
                                within(e, peak), *how ? how : "this operation's probe", where, at_clock(e, peak))};
}

/* The measured bandwidth of cold memory whose size and mix are nearest. */
static const json_t *bandwidth_of(const json_t *ceilings, double bytes, double read_fraction) {
    const json_t *rows = json_object_get(ceilings, "bandwidths"), *found = NULL;
    double least = INFINITY;
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        if (json_is_true(json_object_get(row, "resident"))) continue;
        const double size = fabs(log2(json_get_number(row, "bytes") / bytes));
        const double far = size + 2 * fabs(json_get_number(row, "read_fraction") - read_fraction);
        if (!(far < least)) continue;
        least = far;
        found = row;
    }
    return found;
}

/* Of the one that set the ceiling the report knows the time itself: bytes in the cache, and a probe, have had their
 * say. Not-a-number of another one. */
static double time_that_set_it(const explain *e, const char *name) {
    const study_report *r = e->r;
    const double launch_us = isfinite(r->launch_us) && strcmp(name, "launch") != 0 ? r->launch_us : 0;
    const bool sets = r->bound && strcmp(r->bound, name) == 0;
    return sets && r->ceiling_us > launch_us ? r->ceiling_us - launch_us : NAN;
}

static bound memory(const explain *e, const json_t *ceilings) {
    const study_report *r = e->r;
    const double bytes = r->bytes_read + r->bytes_written, resident = json_get_number(e->report, "resident_bytes");
    const json_t *row = bandwidth_of(ceilings, bytes, r->bytes_read / bytes);
    const double tbps = json_get_number(row, "tbps");
    if (!(bytes > 0)) return (bound){NAN, "it moves nothing"};
    if (!(tbps > 0)) return (bound){NAN, "no bandwidth is known"};
    const double us = time_that_set_it(e, "memory");
    const char *const all = explain_unit(e, bytes, "B"), *from = arena_printf(e->arena, "%s at ", all);
    if (resident > 0 && isfinite(us))
        from = arena_printf(e->arena, "%s at %s, for %s of it may be in the cache; from memory ", all,
                            explain_unit(e, bytes / us * 1e6, "B/s"), explain_unit(e, resident, "B"));
    else if (resident > 0)
        from = arena_printf(e->arena, "%s, of which %s may be in the cache; from memory ", all,
                            explain_unit(e, resident, "B"));
    return (bound){bytes / tbps * 1e-6, arena_printf(e->arena, "%s%s%s, measured with %s of which %.0f %% are read",
                                                     from, explain_unit(e, 1e12 * tbps, "B/s"), within(e, row),
                                                     explain_unit(e, json_get_number(row, "bytes"), "B"),
                                                     100 * json_get_number(row, "read_fraction"))};
}

static bound special(const explain *e, const json_t *ceilings) {
    const double specials = json_get_number(e->report, "specials"), rate = json_get_number(ceilings, "special_per_s");
    if (!(specials > 0)) return (bound){NAN, "it needs none"};
    if (!(rate > 0)) return (bound){NAN, "their rate is not known"};
    return (bound){specials / rate * 1e6, arena_printf(e->arena, "%s special functions at %s",
                                                       explain_unit(e, specials, ""), explain_unit(e, rate, "/s"))};
}

static bound launch(const explain *e, const json_t *ceilings) {
    const double us = isfinite(e->r->launch_us) ? e->r->launch_us : json_get_number(ceilings, "launch_us");
    return (bound){us, us > 0 ? "one empty launch; it is added to the largest" : "not known"};
}

static const struct {
    const char *name;
    bound (*of)(const explain *e, const json_t *ceilings);
} bounds[] = {{"compute", compute}, {"memory", memory}, {"special", special}, {"launch", launch}};

static void write_bound(const explain *e, const char *name, bound b) {
    const study_report *r = e->r;
    const bool sets = r->bound && strcmp(r->bound, name) == 0;
    const double us = time_that_set_it(e, name);
    if (isfinite(us)) b.us = us;
    const char *far = sets && strcmp(name, "launch") != 0 ? "sets it"
                      : isfinite(b.us) && r->ceiling_us > 0
                          ? arena_printf(e->arena, "%s", amount_percent(b.us / r->ceiling_us).s)
                          : "";
    explain_say(e,
                arena_printf(e->arena, "%-8s %11s  %s ", name, explain_time(e, amount_unit_of(r->ceiling_us), b.us),
                             plain_padded(e->arena, far, 8)),
                b.from);
}

static void write_probe(const explain *e) {
    const json_t *probe = json_object_get(e->report, "probe");
    if (!json_is_object(probe)) return;
    static const struct {
        const char *now, *stored, *unit;
        double scale;
    } rates[] = {{"tflops", "stored_tflops", "FLOP/s", 1e12},
                 {"tbps", "stored_tbps", "B/s", 1e12},
                 {"specials_per_s", "stored_specials_per_s", "/s", 1}};
    for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++) {
        const double now = json_get_number(probe, rates[k].now), stored = json_get_number(probe, rates[k].stored);
        if (!(now > 0) || !(stored > 0)) continue;
        explain_tell(e, "Measured again beside this operation: %s%s, stored %s: %+.1f %%.",
                     explain_unit(e, now * rates[k].scale, rates[k].unit), within(e, probe),
                     explain_unit(e, stored * rates[k].scale, rates[k].unit), 100 * (now / stored - 1));
    }
}

void explain_ceiling(const explain *e) {
    static const struct {
        const char *from, *text;
    } sources[] = {{"stored", "the device's ceilings as they were stored"},
                   {"clock", "the device's ceilings at the clock that this operation's load holds"},
                   {"measured", "this operation itself, which was faster than the device's table of bandwidths"},
                   {"probe", "a probe in neighbouring blocks, at this operation's clock"},
                   {"both", "the stored figure and a probe before this operation, together"}};
    const study_report *r = e->r;
    explain_title(e, "Ceiling");
    if (!(r->ceiling_us > 0)) {
        explain_tell(e, "None is known for this operation.");
        return;
    }
    const json_t *ceilings = ceilings_of(e);
    if (r->physical_us > 0)
        explain_tell(
            e, "Attainable at this size: %s. The physical bound, with its bytes at the best rate of any size: %s.",
            amount_time(r->ceiling_us).s, amount_time(r->physical_us).s);
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++)
        write_bound(e, bounds[k].name, bounds[k].of(e, ceilings));
    for (size_t k = 0; r->ceiling_from && k < sizeof sources / sizeof sources[0]; k++)
        if (strcmp(sources[k].from, r->ceiling_from) == 0)
            explain_tell(e, "It follows from %s%s%s.", sources[k].text,
                         *json_get_text(ceilings, "taken") ? ", taken " : "", json_get_text(ceilings, "taken"));
    write_probe(e);
    if (!isfinite(r->ceiling_ci)) explain_tell(e, "The report does not give its uncertainty.");
    if (!ceilings) explain_tell(e, "There is no run.json with the device's ceilings beside the reports.");
}
