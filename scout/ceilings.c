/* What a known set of ceilings says about one operation: its peak, the bandwidth at its size and mix, its ceiling time.
 * Pure; measuring is in ceilings_measure.c and beside it. */
#include "scout/ceilings.h"

#include <math.h>
#include <string.h>

/* Precisions that compute at another one's rate: weights in int4 are multiplied as fp16. */
static const struct { const char *name, *as; } aliases[] = {{"int4", "fp16"}};

const ceilings_peak *ceilings_find_peak(const ceilings *c, const char *precision) {
    for (size_t k = 0; k < sizeof aliases / sizeof aliases[0]; k++)
        if (strcmp(aliases[k].name, precision) == 0) precision = aliases[k].as;
    for (int k = 0; k < c->peak_count; k++)
        if (strcmp(c->peaks[k].precision, precision) == 0) return &c->peaks[k];
    return NULL;
}

/* Between measured rows: TB/s, and the wider one of their intervals. */
typedef struct rate {
    double tbps, ci;
} rate;

/* One that is not known counts as any, never as exact. */
static double width(double ci) { return ci >= 0 && ci < 1 ? ci : 1; }

static rate between(rate a, rate b, double place) {
    return (rate){a.tbps + place * (b.tbps - a.tbps), fmax(a.ci, b.ci)};
}

static rate rate_of(const ceilings_bandwidth *row) { return (rate){row->tbps, width(row->rel_ci95)}; }

/* Along one read fraction: between the two sizes around `bytes`, by the logarithm of the size; flat beyond the ends. 0:
 * there is no such row. */
static rate along_size(const ceilings *c, double bytes, double read_fraction, bool resident) {
    const ceilings_bandwidth *below = NULL, *above = NULL;
    for (int k = 0; k < c->bandwidth_count; k++) {
        const ceilings_bandwidth *row = &c->bandwidths[k];
        if (row->resident != resident || row->read_fraction != read_fraction) continue;
        if ((double)row->bytes <= bytes && (!below || row->bytes > below->bytes)) below = row;
        if ((double)row->bytes >= bytes && (!above || row->bytes < above->bytes)) above = row;
    }
    if (!below && !above) return (rate){0, 0};
    if (!below) return rate_of(above);
    if (!above || above->bytes == below->bytes) return rate_of(below);
    const double place = log(bytes / (double)below->bytes) / log((double)above->bytes / (double)below->bytes);
    return between(rate_of(below), rate_of(above), place);
}

static rate bandwidth_at(const ceilings *c, double bytes, double read_fraction, bool resident) {
    double low = -1, high = 2; /* measured fractions around the wanted one */
    if (!(bytes > 1)) bytes = 1;
    read_fraction = read_fraction > 0 ? fmin(read_fraction, 1) : 0;
    for (int k = 0; k < c->bandwidth_count; k++) {
        double f = c->bandwidths[k].read_fraction;
        if (c->bandwidths[k].resident != resident) continue;
        if (f <= read_fraction && f > low) low = f;
        if (f >= read_fraction && f < high) high = f;
    }
    if (low < 0 && high > 1) return resident ? bandwidth_at(c, bytes, read_fraction, false) : (rate){0, 0};
    if (low < 0) return along_size(c, bytes, high, resident);
    if (high > 1 || high <= low) return along_size(c, bytes, low, resident);
    return between(along_size(c, bytes, low, resident), along_size(c, bytes, high, resident),
                   (read_fraction - low) / (high - low));
}

double ceilings_bandwidth_at(const ceilings *c, double bytes, double read_fraction, bool resident) {
    return bandwidth_at(c, bytes, read_fraction, resident).tbps;
}

/* The time that the bytes take, and which of them it is the time of. */
static void find_memory(const ceilings *c, double bytes_read, double bytes_written, double resident_bytes,
                        ceilings_time *t) {
    const double total = bytes_read + bytes_written;
    if (!(total > 0)) return;
    const double resident = resident_bytes > 0 ? fmin(resident_bytes, total) : 0;
    /* What is not in the cache comes from memory, reads before writes: weights are cold, what is warm are activations.
     * Both ways can be busy at once, and the cache carries all of it, so the longer one counts. */
    const double cold = total - resident;
    if (cold > 0) {
        t->moved_bytes = cold;
        t->moved_read_fraction = fmin(bytes_read, cold) / cold;
        const rate r = bandwidth_at(c, cold, t->moved_read_fraction, false);
        t->memory_s = r.tbps > 0 ? cold / (r.tbps * 1e12) : (double)NAN;
        t->memory_ci = r.ci;
    }
    if (resident > 0) {
        const rate r = bandwidth_at(c, total, bytes_read / total, true);
        const double cached = r.tbps > 0 ? total / (r.tbps * 1e12) : (double)NAN;
        if (isnan(t->memory_s) || isnan(cached)) {
            t->memory_s = (double)NAN;
        } else if (cached > t->memory_s) {
            t->memory_s = cached;
            t->memory_ci = r.ci;
            t->moved_bytes = total;
            t->moved_read_fraction = bytes_read / total;
            t->moved_resident = true;
        }
    }
}

/* Flops for each byte that is read or written, up to which no peak is asked for where none is known: what works with
 * truth, integers or a type that has no products here (an addition, a comparison, a mean) is bound by its bytes. */
static const double FEW_FLOPS = 8;

static double compute_seconds(const ceilings_peak *peak, double flops, double bytes) {
    if (!(flops > 0)) return 0;
    if (peak && peak->tflops > 0) return flops / (peak->tflops * 1e12);
    return flops <= FEW_FLOPS * bytes ? 0 : (double)NAN;
}

/* The largest part sets it. */
static void add_up(ceilings_time *t) {
    double largest = t->compute_s, ci = t->compute_ci;
    t->bound = "compute";
    t->seconds = t->rel_ci95 = 0;
    if (isnan(t->compute_s) || isnan(t->memory_s)) {
        t->seconds = (double)NAN;
        return;
    }
    if (t->memory_s > largest) largest = t->memory_s, t->bound = "memory", ci = t->memory_ci;
    if (t->special_s > largest) largest = t->special_s, t->bound = "special", ci = t->special_ci;
    if (t->launch_s >= largest) t->bound = "launch"; /* half or more of the sum */
    t->seconds = largest + t->launch_s;
    if (t->seconds > 0) t->rel_ci95 = ci * largest / t->seconds;
}

ceilings_time ceilings_time_of(const ceilings *c, const char *precision, double flops, double bytes_read,
                               double bytes_written, double resident_bytes, double specials) {
    const ceilings_peak *peak = ceilings_find_peak(c, precision);
    ceilings_time t = {.launch_s = c->launch_s};
    t.compute_s = compute_seconds(peak, flops, bytes_read + bytes_written);
    t.compute_ci = peak ? width(peak->rel_ci95) : 0;
    find_memory(c, bytes_read, bytes_written, resident_bytes, &t);
    if (specials > 0 && c->special_per_s > 0) t.special_s = specials / c->special_per_s;
    add_up(&t);
    return t;
}

ceilings_time ceilings_time_beside(ceilings_time t, const char *bound, double seconds, double rel_ci95) {
    const struct {
        const char *name;
        double *seconds, *ci;
    } parts[] = {{"compute", &t.compute_s, &t.compute_ci},
                 {"memory", &t.memory_s, &t.memory_ci},
                 {"special", &t.special_s, &t.special_ci}};
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        if (!bound || strcmp(parts[k].name, bound) != 0) continue;
        *parts[k].seconds = seconds;
        *parts[k].ci = width(rel_ci95);
    }
    add_up(&t);
    return t;
}
