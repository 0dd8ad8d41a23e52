/* What a known set of ceilings says about one operation: its peak, the bandwidth at its size and mix, its ceiling time.
 * Pure; measuring is in ceilings_measure.c and beside it. */
#include "scout/ceilings/ceilings.h"

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

static const double rounded = 0.01; /* a yardstick's bytes are: a size so much smaller is the same */
static const double doubt = 0.02;   /* a yardstick that is faster by less bears a ceiling out */
const char *const ceilings_in_registers = "registers";

/* One that is not known counts as any, never as exact. */
static double width(double ci) { return ci >= 0 && ci < 1 ? ci : 1; }

static rate between(rate a, rate b, double place) {
    return (rate){a.tbps + place * (b.tbps - a.tbps), fmax(a.ci, b.ci)};
}

/* A part of the bytes at one rate and then the rest at the other. */
static rate in_turns(rate a, rate b, double place) {
    if (!(a.tbps > 0) || !(b.tbps > 0)) return (rate){0, 0};
    return (rate){1 / ((1 - place) / a.tbps + place / b.tbps), fmax(a.ci, b.ci)};
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

/* The measured fractions around the wanted one; the same twice where it is one of them or beyond the ends. `self`:
 * whether its own rows count. false: there are no such rows. */
static bool around(const ceilings *c, double read_fraction, bool resident, bool self, double *low, double *high) {
    *low = -1, *high = 2;
    for (int k = 0; k < c->bandwidth_count; k++) {
        const double f = c->bandwidths[k].read_fraction;
        if (c->bandwidths[k].resident != resident || (!self && f == read_fraction)) continue;
        if (f <= read_fraction && f > *low) *low = f;
        if (f >= read_fraction && f < *high) *high = f;
    }
    const bool any = *low >= 0 || *high <= 1;
    if (*low < 0) *low = *high;
    if (*high > 1) *high = *low;
    return any;
}

static rate bandwidth_at(const ceilings *c, double bytes, double read_fraction, bool resident) {
    double low, high;
    if (!(bytes > 1)) bytes = 1;
    read_fraction = read_fraction > 0 ? fmin(read_fraction, 1) : 0;
    if (!around(c, read_fraction, resident, true, &low, &high))
        return resident ? bandwidth_at(c, bytes, read_fraction, false) : (rate){0, 0};
    const rate below = along_size(c, bytes, low, resident);
    if (high <= low) return below;
    return in_turns(below, along_size(c, bytes, high, resident), (read_fraction - low) / (high - low));
}

static double fastest_of(const ceilings *c, double read_fraction, bool resident) {
    double tbps = 0;
    for (int k = 0; k < c->bandwidth_count; k++)
        if (c->bandwidths[k].resident == resident && c->bandwidths[k].read_fraction == read_fraction)
            tbps = fmax(tbps, c->bandwidths[k].tbps);
    return tbps;
}

double ceilings_plateau(const ceilings *c, double read_fraction, bool resident) {
    double low, high;
    if (!around(c, read_fraction > 0 ? fmin(read_fraction, 1) : 0, resident, true, &low, &high))
        return resident ? ceilings_plateau(c, read_fraction, false) : 0;
    return fmax(fastest_of(c, low, resident), fastest_of(c, high, resident));
}

/* ---- rows that bear each other out ---- */

static void raise_to(ceilings_bandwidth *row, rate r) {
    if (!(row->tbps < r.tbps)) return;
    row->tbps = r.tbps;
    row->rel_ci95 = r.ci;
}

/* The fastest of the sizes up to this one; what is hardly more than the launch floor says nothing of larger ones. */
static rate up_to(const ceilings *c, const ceilings_bandwidth *row) {
    rate most = {0, 0};
    for (int k = 0; k < c->bandwidth_count; k++) {
        const ceilings_bandwidth *other = &c->bandwidths[k];
        if (other->resident != row->resident || other->read_fraction != row->read_fraction) continue;
        if (other->bytes >= row->bytes || (double)other->bytes / (other->tbps * 1e12) < 0.5 * c->launch_s) continue;
        if (other->tbps > most.tbps) most = rate_of(other);
    }
    return most;
}

static bool is_beyond_the_fastest(const ceilings *c, const ceilings_bandwidth *row) {
    const double fastest = fastest_of(c, row->read_fraction, true);
    for (int k = 0; k < c->bandwidth_count; k++) {
        const ceilings_bandwidth *other = &c->bandwidths[k];
        if (other->resident && other->read_fraction == row->read_fraction && other->tbps == fastest)
            return row->bytes > other->bytes;
    }
    return false;
}

static void raise_by_size(ceilings *c, ceilings_bandwidth *row) {
    if (row->resident) raise_to(row, along_size(c, (double)row->bytes, row->read_fraction, false));
    if (!row->resident || !is_beyond_the_fastest(c, row)) raise_to(row, up_to(c, row));
}

/* Reading, writing and copying are what they are: no copy can read all before it writes. */
static void raise_by_mix(ceilings *c, ceilings_bandwidth *row) {
    const double bytes = (double)row->bytes;
    double low, high;
    if (row->read_fraction == 0.5 || !around(c, row->read_fraction, row->resident, false, &low, &high)) return;
    if (!(low < row->read_fraction && row->read_fraction < high)) return;
    raise_to(row, in_turns(along_size(c, bytes, low, row->resident), along_size(c, bytes, high, row->resident),
                           (row->read_fraction - low) / (high - low)));
}

/* Cold rows first, which resident ones are held against; sizes first, for of mixes that do not fall what runs in turns
 * does not fall either. */
void ceilings_close(ceilings *c) {
    for (int resident = 0; resident < 2; resident++) {
        for (int k = 0; k < c->bandwidth_count; k++)
            if (c->bandwidths[k].resident == (resident == 1)) raise_by_size(c, &c->bandwidths[k]);
        for (int k = 0; k < c->bandwidth_count; k++)
            if (c->bandwidths[k].resident == (resident == 1)) raise_by_mix(c, &c->bandwidths[k]);
    }
}

/* What there is of it; 0: nothing. */
static double known_of(const ceilings *c, const ceilings_seen *seen) {
    const ceilings_peak *peak = ceilings_find_peak(c, seen->precision);
    if (strcmp(seen->bound, "compute") == 0) return peak ? peak->tflops : 0;
    if (strcmp(seen->bound, "special") == 0) return c->special_per_s;
    return bandwidth_at(c, seen->bytes, seen->read_fraction, seen->resident).tbps;
}

static void raise_peak(ceilings *c, const ceilings_seen *seen) {
    const ceilings_peak *found = ceilings_find_peak(c, seen->precision);
    for (int k = 0; k < c->peak_count; k++) {
        ceilings_peak *peak = &c->peaks[k];
        if (peak != found) continue;
        peak->tflops = seen->rate;
        if (seen->product || peak->shape[0] < 1) continue;
        memset(peak->shape, 0, sizeof peak->shape);
        peak->layout[0] = 0;
        snprintf(peak->how, sizeof peak->how, "%s", ceilings_in_registers);
    }
}

/* The next size of the mixes around: what a smaller size moved, a larger one does as well. */
static bool raise_bandwidth(ceilings *c, const ceilings_seen *seen) {
    double mixes[2];
    bool raised = false;
    if (!around(c, seen->read_fraction, seen->resident, true, &mixes[0], &mixes[1])) return false;
    for (int m = 0; m < (mixes[0] < mixes[1] ? 2 : 1); m++) {
        ceilings_bandwidth *next = NULL;
        for (int k = 0; k < c->bandwidth_count; k++) {
            ceilings_bandwidth *row = &c->bandwidths[k];
            if (row->resident != seen->resident || row->read_fraction != mixes[m]) continue;
            if ((double)row->bytes < (1 - rounded) * seen->bytes || (next && row->bytes > next->bytes)) continue;
            next = row;
        }
        if (!next || !(seen->rate > next->tbps)) continue;
        next->tbps = seen->rate;
        raised = true;
    }
    ceilings_close(c);
    return raised;
}

static bool is_warm(const ceilings *c, const ceilings_seen *seen) {
    return strcmp(seen->bound, "memory") == 0 && !seen->resident && !(seen->over_bytes >= c->plateau_bytes);
}

bool ceilings_raise(ceilings *c, const ceilings_seen *seen) {
    const double known = known_of(c, seen), share = seen->rate / known;
    if (!(known > 0) || !(share > 1 + doubt) || !isfinite(share) || is_warm(c, seen)) return false;
    if (strcmp(seen->bound, "compute") == 0) raise_peak(c, seen);
    if (strcmp(seen->bound, "special") == 0) c->special_per_s = seen->rate;
    return strcmp(seen->bound, "memory") != 0 || raise_bandwidth(c, seen);
}

double ceilings_bandwidth_at(const ceilings *c, double bytes, double read_fraction, bool resident) {
    return bandwidth_at(c, bytes, read_fraction, resident).tbps;
}

static double seconds_of(double bytes, double tbps) { return tbps > 0 ? bytes / (tbps * 1e12) : (double)NAN; }

/* The time that the bytes take, and which of them it is the time of. */
static void find_memory(const ceilings *c, double bytes_read, double bytes_written, double resident_bytes,
                        ceilings_time *t) {
    const double total = bytes_read + bytes_written;
    if (!(total > 0)) return;
    const double resident = resident_bytes > 0 ? fmin(resident_bytes, total) : 0;
    /* What is not in the cache comes from memory, reads before writes: weights are cold, what is warm are activations.
     * Both ways can be busy at once, and the cache carries all of it, so the longer one counts. */
    const struct {
        double bytes, read_fraction;
        bool resident;
    } parts[] = {{total - resident, fmin(bytes_read, total - resident) / fmax(total - resident, 1), false},
                 {resident > 0 ? total : 0, bytes_read / total, true}};
    for (int k = 0; k < 2; k++) {
        const double bytes = parts[k].bytes, mix = parts[k].read_fraction;
        if (!(bytes > 0)) continue;
        const rate r = bandwidth_at(c, bytes, mix, parts[k].resident);
        const double seconds = seconds_of(bytes, r.tbps);
        t->plateau_s = fmax(t->plateau_s, seconds_of(bytes, ceilings_plateau(c, mix, parts[k].resident)));
        if (seconds <= t->memory_s || isnan(t->memory_s)) continue;
        t->memory_s = seconds;
        t->memory_ci = r.ci;
        t->moved_bytes = bytes, t->moved_read_fraction = mix, t->moved_resident = parts[k].resident;
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
    t->physical_s = fmax(fmax(largest, t->special_s), fmin(t->plateau_s, t->memory_s)); /* launches may overlap */
    if (isnan(t->compute_s) || isnan(t->memory_s)) {
        t->seconds = t->physical_s = (double)NAN;
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

ceilings_time ceilings_time_at(ceilings_time t, const ceilings *c, const char *precision, double clock_mhz) {
    const ceilings_peak *peak = c ? ceilings_find_peak(c, precision) : NULL;
    if (!(clock_mhz > 0)) return t;
    if (peak && peak->clock_mhz > 0) t.compute_s *= peak->clock_mhz / clock_mhz;
    if (c && c->special_clock_mhz > 0) t.special_s *= c->special_clock_mhz / clock_mhz;
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
