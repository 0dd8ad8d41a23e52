/* What a set of ceilings says of an operation, and its JSON: a round trip, and files that lie. */
#include "scout/ceilings/ceilings.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool near(double got, double want, double tolerance) {
    if (fabs(got - want) <= tolerance * fabs(want)) return true;
    printf("    got %.9g, want %.9g\n", got, want);
    return false;
}

static void add_row(ceilings *c, uint64_t bytes, double fraction, bool resident, double tbps) {
    c->bandwidths[c->bandwidth_count++] =
        (ceilings_bandwidth){.bytes = bytes, .read_fraction = fraction, .resident = resident, .tbps = tbps};
}

static void add_peak(ceilings *c, const char *precision, double tflops) {
    ceilings_peak *p = &c->peaks[c->peak_count++];
    snprintf(p->precision, sizeof p->precision, "%s", precision);
    snprintf(p->how, sizeof p->how, "cublaslt algo=3");
    snprintf(p->layout, sizeof p->layout, "nt");
    p->tflops = tflops;
    p->shape[0] = 8192, p->shape[1] = 8448, p->shape[2] = 16384;
    p->rel_ci95 = 0.003, p->clock_mhz = 1470, p->power_w = NAN, p->tried = 700, p->seconds = 25.5;
}

/* A device of 500 TFLOP/s, 4 TB/s reading and 3 copying, 8 from its cache, 2 us per launch. */
static ceilings *device(void) {
    ceilings *c = calloc(1, sizeof *c);
    if (!c) abort();
    snprintf(c->instance, sizeof c->instance, "A device, GPU-1234");
    snprintf(c->taken, sizeof c->taken, "2026-11-21T15:07:52Z");
    c->launch_s = 2e-6, c->special_per_s = 1e13, c->plateau_bytes = 6e8;
    c->read_tbps = 4, c->copy_tbps = 3, c->write_tbps = 3.5, c->clock_mhz = 1500, c->power_w = NAN;
    add_peak(c, "fp16", 500);
    add_peak(c, "fp8", 1000);
    for (int resident = 0; resident < 2; resident++) {
        double factor = resident ? 2 : 1;
        add_row(c, 1000000000, 1, resident, 4 * factor);
        add_row(c, 1000000, 1, resident, 2 * factor);
        add_row(c, 1000000, 0.5, resident, 1.5 * factor);
        add_row(c, 1000000000, 0.5, resident, 3 * factor);
    }
    return c;
}

/* What a probe saw beside an operation takes the place of a part, and the largest sets the time as before. */
static void a_part_is_replaced(void) {
    ceilings *c = device();
    const ceilings_time t = ceilings_time_of(c, "fp16", 5e11, 1e9, 0, 0, 1e9); /* 1 ms, 0.25 ms, 0.1 ms */
    UNIT_TEXT(t.bound, "compute");
    UNIT_CHECK(near(t.seconds, 1e-3 + 2e-6, 1e-9) && near(t.rel_ci95, 0.003, 0.01));
    ceilings_time later = ceilings_time_beside(t, "compute", 1.25e-3, 0.01);
    UNIT_TEXT(later.bound, "compute");
    UNIT_CHECK(near(later.seconds, 1.25e-3 + 2e-6, 1e-9) && near(later.rel_ci95, 0.01, 0.01));
    later = ceilings_time_beside(t, "compute", 1e-4, 0.01); /* then it is the bytes */
    UNIT_TEXT(later.bound, "memory");
    UNIT_CHECK(near(later.seconds, 2.5e-4 + 2e-6, 1e-9));
    later = ceilings_time_beside(t, "memory", 2e-3, NAN);
    UNIT_TEXT(later.bound, "memory");
    UNIT_CHECK(later.rel_ci95 > 0.9); /* not known */
    UNIT_TEXT(ceilings_time_beside(t, "special", 1, 0.01).bound, "special");
    UNIT_CHECK(near(ceilings_time_beside(t, "launch", 1, 0.01).seconds, t.seconds, 1e-12));
    UNIT_CHECK(near(ceilings_time_beside(t, NULL, 1, 0.01).seconds, t.seconds, 1e-12));
    free(c);
}

/* Which bytes it is that the time is of: those that are cold, or all of them from the cache. */
static void the_bytes_that_count(void) {
    ceilings *c = device();
    ceilings_time t = ceilings_time_of(c, "fp16", 0, 6e8, 4e8, 0, 0);
    UNIT_CHECK(!t.moved_resident && near(t.moved_bytes, 1e9, 1e-12) && near(t.moved_read_fraction, 0.6, 1e-12));
    t = ceilings_time_of(c, "fp16", 0, 6e8, 4e8, 9e8, 0); /* 0.1e9 cold ones are sooner there than all from the cache */
    UNIT_CHECK(t.moved_resident && near(t.moved_bytes, 1e9, 1e-12) && near(t.moved_read_fraction, 0.6, 1e-12));
    t = ceilings_time_of(c, "fp16", 0, 6e8, 4e8, 2e8, 0);
    UNIT_CHECK(!t.moved_resident && near(t.moved_bytes, 8e8, 1e-12) && near(t.moved_read_fraction, 0.75, 1e-12));
    UNIT_INT(ceilings_type_of("bf16"), SCOUT_BF16);
    UNIT_INT(ceilings_type_of("int4"), SCOUT_FP16);
    UNIT_INT(ceilings_type_of("tf32"), SCOUT_NONE); /* no register holds it */
    UNIT_INT(ceilings_type_of("fp128"), SCOUT_NONE);
    free(c);
}

static void bandwidth_between_rows(void) {
    ceilings *c = device();
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e9, 1, false), 4, 1e-12));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e6, 1, false), 2, 1e-12));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, sqrt(1e15), 1, false), 3, 1e-9)); /* half way by the logarithm */
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e12, 1, false), 4, 1e-12));      /* beyond the ends: flat */
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 10, 1, false), 2, 1e-12));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e9, 0.75, false), 2 / (1 / 4.0 + 1 / 3.0), 1e-12)); /* in turns */
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e9, 0, false), 3, 1e-12)); /* nothing below a half was measured */
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e9, 2, false), 4, 1e-12));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e9, 1, true), 8, 1e-12));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, NAN, 1, false), 2, 1e-12));
    c->bandwidth_count = 4; /* cold rows only: the cache is no slower */
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e9, 1, true), 4, 1e-12));
    c->bandwidth_count = 0;
    UNIT_CHECK(ceilings_bandwidth_at(c, 1e9, 1, true) == 0);
    free(c);
}

static bool falls(const ceilings *c, double read_fraction, bool resident, double from, double to) {
    double before = 0;
    for (double bytes = from; bytes < to; bytes *= 1.1) {
        const double now = ceilings_bandwidth_at(c, bytes, read_fraction, resident);
        if (now < before * (1 - 1e-12)) return true;
        before = now;
    }
    return false;
}

/* As an H200's table was: a mix with a dent, sizes that fall for a while, a cache that ends. */
static ceilings *dented(void) {
    static const struct {
        uint64_t bytes;
        double cold[4], resident[4];
    } rows[] = {
        {1000000, {1.0, 0.8, 1.1, 1.4}, {1.2, 1.3, 1.7, 1.3}},   {8000000, {2.9, 2.0, 2.4, 2.7}, {3.7, 3.6, 4.2, 2.8}},
        {30000000, {2.8, 3.5, 3.5, 4.0}, {6.6, 3.0, 6.5, 4.1}},  {99000000, {4.2, 3.9, 3.8, 4.6}, {4.2, 4.1, 4.0, 4.3}},
        {900000000, {4.7, 4.3, 4.2, 4.5}, {4.7, 4.3, 4.2, 4.5}},
    };
    static const double fractions[] = {1, 0.67, 0.5, 0};
    ceilings *c = device();
    c->bandwidth_count = 0;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        for (int f = 0; f < 4; f++) {
            add_row(c, rows[k].bytes, fractions[f], false, rows[k].cold[f]);
            add_row(c, rows[k].bytes, fractions[f], true, rows[k].resident[f]);
        }
    return c;
}

/* No size is slower than a smaller one, no mix than its neighbours one after another, no cache than memory. */
static void tables_without_dents(void) {
    ceilings *c = dented();
    UNIT_CHECK(falls(c, 1, false, 1e6, 9e8) && falls(c, 0, false, 1e6, 9e8) && falls(c, 0.67, true, 1e6, 3e7));
    UNIT_CHECK(ceilings_bandwidth_at(c, 3e7, 0.67, true) < 4);
    ceilings_close(c);
    for (double mix = 0; mix <= 1; mix += 0.05) {
        if (!UNIT_CHECK(!falls(c, mix, false, 1e6, 9e8) && !falls(c, mix, true, 1e6, 3e7))) printf("    %.2f\n", mix);
        for (double bytes = 1e6; bytes < 1e9; bytes *= 1.7) {
            const double warm = ceilings_bandwidth_at(c, bytes, mix, true);
            const double cold = ceilings_bandwidth_at(c, bytes, mix, false);
            const double copied = ceilings_bandwidth_at(c, bytes, 0.5, false), share = fabs(mix - 0.5) / 0.5;
            const double pure = ceilings_bandwidth_at(c, bytes, mix > 0.5, false);
            UNIT_CHECK(warm >= cold * 0.97); /* between sizes neither is measured */
            UNIT_CHECK(cold >= 0.97 / (share / pure + (1 - share) / copied));
            UNIT_CHECK(cold <= ceilings_plateau(c, mix, false) && warm <= ceilings_plateau(c, mix, true));
        }
    }
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 3e7, 1, false), 2.9, 1e-12)); /* as the smaller one */
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 9e8, 0, false), 4.6, 1e-12));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 3e7, 0.67, true), 1 / (0.34 / 6.6 + 0.66 / 6.5), 1e-3));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 9.9e7, 1, true), 4.2, 1e-12)); /* the cache has ended: not raised */
    UNIT_CHECK(near(ceilings_plateau(c, 1, false), 4.7, 1e-12) && near(ceilings_plateau(c, 0.8, false), 4.7, 1e-12));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 9e8, 0.5, false), 4.2, 1e-12)); /* a copy is what it is */
    UNIT_CHECK(near(ceilings_plateau(c, 0.6, false), ceilings_bandwidth_at(c, 9e8, 0.67, false), 1e-12));
    free(c);
}

/* What is hardly more than the launch floor may be anything, and says nothing of larger sizes. */
static void sizes_that_are_all_floor(void) {
    ceilings *c = device();
    c->bandwidth_count = 0;
    add_row(c, 100000, 1, false, 9); /* 0.01 us of 2 */
    add_row(c, 100000000, 1, false, 4);
    ceilings_close(c);
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 1e8, 1, false), 4, 1e-12));
    free(c);
}

/* The physical bound takes the plateau's rate, whatever is attainable at the size, and is never the later one. */
static void physical_bounds(void) {
    ceilings *c = device();
    ceilings_time t = ceilings_time_of(c, "fp16", 0, 1e6, 0, 0, 0); /* 2 TB/s at this size, 4 at the largest */
    UNIT_CHECK(near(t.seconds, 0.5e-6 + 2e-6, 1e-9) && near(t.physical_s, 0.25e-6, 1e-9));
    t = ceilings_time_of(c, "fp16", 500e12 * 1e-6, 1e6, 0, 0, 0);
    UNIT_CHECK(near(t.physical_s, 1e-6, 1e-9)); /* flops over the peak */
    t = ceilings_time_of(c, "fp16", 0, 0.5e9, 0.5e9, 1e9, 0);
    UNIT_CHECK(near(t.physical_s, 1e9 / 6e12, 1e-9)); /* from the cache */
    t = ceilings_time_beside(ceilings_time_of(c, "fp16", 0, 1e6, 0, 0, 0), "memory", 0.2e-6, 0.01);
    UNIT_CHECK(near(t.seconds, 2.2e-6, 1e-9) && t.physical_s <= t.seconds);
    UNIT_CHECK(isnan(ceilings_time_of(c, "bf16", 1e12, 1e6, 0, 0, 0).physical_s));
    for (double bytes = 1e4; bytes < 1e10; bytes *= 3)
        for (double part = 0; part <= 1; part += 0.25)
            for (double warm = 0; warm <= 1; warm += 0.5) {
                t = ceilings_time_of(c, "fp16", 1e8, part * bytes, (1 - part) * bytes, warm * bytes, 0);
                UNIT_CHECK(t.physical_s <= t.seconds * (1 + 1e-12));
            }
    free(c);
}

static void times(void) {
    ceilings *c = device();
    ceilings_time t = ceilings_time_of(c, "fp16", 500e9, 1e6, 0, 0, 0);
    UNIT_CHECK(near(t.seconds, 1e-3 + 2e-6, 1e-12));
    UNIT_TEXT(t.bound, "compute");
    t = ceilings_time_of(c, "fp16", 1e9, 0.5e9, 0.5e9, 0, 0);
    UNIT_CHECK(near(t.memory_s, 1e9 / 3e12, 1e-9) && near(t.seconds, t.memory_s + 2e-6, 1e-12));
    UNIT_TEXT(t.bound, "memory");
    t = ceilings_time_of(c, "fp16", 1e9, 0.5e9, 0.5e9, 0.5e9, 0); /* the other half is read from memory */
    double cold = 0.5e9 / (ceilings_bandwidth_at(c, 0.5e9, 1, false) * 1e12);
    UNIT_CHECK(near(t.memory_s, fmax(cold, 1e9 / 6e12), 1e-9));
    t = ceilings_time_of(c, "fp16", 0, 0.5e9, 0.5e9, 2e9, 0); /* more than there is: all of it, from the cache */
    UNIT_CHECK(near(t.memory_s, 1e9 / 6e12, 1e-9));
    t = ceilings_time_of(c, "fp16", 1, 1e3, 0, 0, 1e9);
    UNIT_CHECK(near(t.seconds, 1e-4 + 2e-6, 1e-12));
    UNIT_TEXT(t.bound, "special");
    t = ceilings_time_of(c, "fp16", 500e12 * 2e-6, 0, 0, 0, 0); /* the floor is exactly half */
    UNIT_TEXT(t.bound, "launch");
    UNIT_CHECK(near(t.seconds, 4e-6, 1e-9));
    t = ceilings_time_of(c, "fp16", 500e12 * 2.1e-6, 0, 0, 0, 0);
    UNIT_TEXT(t.bound, "compute");
    UNIT_CHECK(isnan(ceilings_time_of(c, "bf16", 1e9, 1e6, 0, 0, 0).seconds));
    UNIT_CHECK(near(ceilings_time_of(c, "int4", 500e9, 0, 0, 0, 0).compute_s, 1e-3, 1e-12)); /* multiplied as fp16 */
    c->bandwidth_count = 0;
    UNIT_CHECK(isnan(ceilings_time_of(c, "fp16", 1e9, 1e6, 0, 0, 0).seconds));
    free(c);
}

/* No product works with truth or 64-bit integers, so no peak of them is ever measured: their bytes decide. */
static void times_without_a_peak(void) {
    ceilings *c = device();
    ceilings_time t = ceilings_time_of(c, "int64", 1e8, 0.5e9, 0.5e9, 0, 0);
    UNIT_CHECK(near(t.seconds, 1e9 / 3e12 + 2e-6, 1e-9) && t.compute_s == 0);
    UNIT_TEXT(t.bound, "memory");
    t = ceilings_time_of(c, "bool", 0, 0.5e9, 0.5e9, 0, 0);
    UNIT_CHECK(near(t.seconds, 1e9 / 3e12 + 2e-6, 1e-9));
    t = ceilings_time_of(c, "bf16", 8e9, 0.5e9, 0.5e9, 0, 1e10); /* special functions count all the same */
    UNIT_CHECK(near(t.seconds, 1e-3 + 2e-6, 1e-9));
    UNIT_TEXT(t.bound, "special");
    UNIT_CHECK(isnan(ceilings_time_of(c, "bf16", 8.1e9, 0.5e9, 0.5e9, 0, 0).seconds)); /* too much to say without */
    t = ceilings_time_of(c, "fp16", 8e9, 0.5e9, 0.5e9, 0, 0);                          /* a known peak counts */
    UNIT_CHECK(near(t.compute_s, 8e9 / 500e12, 1e-9));
    free(c);
}

/* What sets a ceiling has an interval; the floor, which is added to it, has none. */
static void times_have_intervals(void) {
    ceilings *c = device();
    ceilings_time t = ceilings_time_of(c, "fp16", 500e12 * 6e-6, 0, 0, 0, 0); /* the peak's 0.3 %, of 6 us in 8 */
    UNIT_CHECK(near(t.rel_ci95, 0.003 * 6 / 8, 1e-9));
    t = ceilings_time_of(c, "fp16", 500e12 * 2e-6, 0, 0, 0, 0);
    UNIT_TEXT(t.bound, "launch");
    UNIT_CHECK(near(t.rel_ci95, 0.003 / 2, 1e-9));
    for (int k = 0; k < c->bandwidth_count; k++)
        c->bandwidths[k].rel_ci95 = c->bandwidths[k].resident ? 0.02 : c->bandwidths[k].bytes > 1000000 ? 0.01 : 0.005;
    t = ceilings_time_of(c, "fp16", 1, 1e9, 0, 0, 0);
    UNIT_CHECK(near(t.rel_ci95, 0.01 * t.memory_s / t.seconds, 1e-9));
    t = ceilings_time_of(c, "fp16", 1, 0.5e6, 0.25e6, 0, 0); /* below the smallest rows: that of both fractions */
    UNIT_CHECK(near(t.rel_ci95, 0.005 * t.memory_s / t.seconds, 1e-9));
    t = ceilings_time_of(c, "fp16", 1, 1e8, 0, 0, 0); /* between two sizes: the wider one */
    UNIT_CHECK(near(t.rel_ci95, 0.01 * t.memory_s / t.seconds, 1e-9));
    t = ceilings_time_of(c, "fp16", 1, 1e9, 0, 1e9, 0); /* all of it from the cache */
    UNIT_CHECK(near(t.rel_ci95, 0.02 * t.memory_s / t.seconds, 1e-9));
    t = ceilings_time_of(c, "fp16", 1, 1e3, 0, 0, 1e9);
    UNIT_TEXT(t.bound, "special");
    UNIT_CHECK(t.rel_ci95 == 0);
    c->bandwidths[0].rel_ci95 = NAN; /* not known: it is not exact for that */
    t = ceilings_time_of(c, "fp16", 1, 1e9, 0, 0, 0);
    UNIT_CHECK(near(t.rel_ci95, t.memory_s / t.seconds, 1e-9));
    free(c);
}

static json_t *as_json(const ceilings *c) {
    json_builder b = {NULL};
    status st;
    json_t *root = json_finish(&b, ceilings_to_json(c, &b), &st);
    if (!root) printf("    %s\n", st.text);
    return root;
}

static void round_trip(void) {
    ceilings *c = device(), *back = calloc(1, sizeof *back);
    status st = {0};
    c->sweep_count = 2;
    snprintf(c->sweep_precision, sizeof c->sweep_precision, "fp16");
    c->sweep[0] = (ceilings_point){.shape = {8192, 8192, 65536}, .tflops = 650, .rel_ci95 = 0.001, .clock_mhz = NAN};
    c->sweep[1] = (ceilings_point){.shape = {8192, 8192, 81920}, .tflops = 655, .rel_ci95 = INFINITY};
    json_t *first = as_json(c);
    UNIT_CHECK(first && back && ceilings_from_json(first, back, &st));
    json_t *second = back ? as_json(back) : NULL;
    UNIT_CHECK(json_equal(first, second));
    if (back) {
        UNIT_INT(back->bandwidth_count, c->bandwidth_count);
        UNIT_INT(back->sweep_count, 2);
        UNIT_CHECK(near(back->launch_s, 2e-6, 1e-12) && near(back->sweep[1].rel_ci95, 1, 1e-12));
        UNIT_TEXT(back->peaks[1].precision, "fp8");
        UNIT_TEXT(back->instance, c->instance);
        UNIT_CHECK(back->power_w == 0); /* not known is left out */
    }
    json_decref(first);
    json_decref(second);
    free(c);
    free(back);
}

/* Every member of the tree replaced by everything it may not be: nothing is read beyond a field, nothing but numbers
 * within their range come out, and what is refused says where. */
static int refused, taken;

static bool sane(const ceilings *c) {
    bool good = c->peak_count >= 0 && c->peak_count <= CEILINGS_MAX_PEAKS && c->bandwidth_count >= 0 &&
                c->bandwidth_count <= CEILINGS_MAX_BANDWIDTHS && c->sweep_count <= CEILINGS_MAX_SWEEP;
    for (int k = 0; good && k < c->peak_count; k++)
        good = c->peaks[k].tflops > 0 && isfinite(c->peaks[k].tflops) && c->peaks[k].shape[0] >= 0;
    for (int k = 0; good && k < c->bandwidth_count; k++)
        good = c->bandwidths[k].tbps > 0 && c->bandwidths[k].bytes > 0 && c->bandwidths[k].read_fraction <= 1;
    return good && memchr(c->instance, 0, sizeof c->instance) && isfinite(c->launch_s) && c->launch_s >= 0;
}

static void try_tree(const json_t *root) {
    ceilings *c = calloc(1, sizeof *c);
    status st = {0};
    if (!c) return;
    if (ceilings_from_json(root, c, &st)) {
        taken++;
        UNIT_CHECK(sane(c));
    } else {
        refused++;
        UNIT_CHECK(st.code == STATUS_INPUT && st.text[0] && !strchr(st.text, '\n'));
    }
    free(c);
}

static json_t *lie(int which) {
    static char text[2000];
    memset(text, 'x', sizeof text - 1);
    switch (which) {
    case 0: return json_real(1e300);
    case 1: return json_real(-1);
    case 2: return json_integer(INT64_MAX);
    case 3: return json_integer(-7);
    case 4: return json_string(text);
    case 5: return json_null();
    case 6: return json_array();
    case 7: return json_object();
    case 8: return json_true();
    case 9: return json_stringn("a\0b", 3);
    default: return NULL;
    }
}

static void twist(json_t *root, json_t *at);

static void twist_object(json_t *root, json_t *at) {
    char names[32][64]; /* a member that is put back stands last: the names are taken down first */
    int count = 0;
    const char *key;
    json_t *value, *other;
    json_object_foreach(at, key, value) if (count < 32) snprintf(names[count++], sizeof names[0], "%s", key);
    for (int n = 0; n < count; n++) {
        json_t *kept = json_incref(json_object_get(at, names[n]));
        for (int k = 0; (other = lie(k)); k++) {
            json_object_set_new(at, names[n], other);
            try_tree(root);
        }
        json_object_del(at, names[n]);
        try_tree(root);
        json_object_set(at, names[n], kept);
        twist(root, kept);
        json_decref(kept);
    }
}

static void twist_array(json_t *root, json_t *at) {
    size_t was = json_array_size(at);
    json_t *other;
    for (size_t k = 0; k < was && k < 2; k++) {
        json_t *kept = json_incref(json_array_get(at, k));
        for (int which = 0; (other = lie(which)); which++) {
            json_array_set_new(at, k, other);
            try_tree(root);
        }
        json_array_set(at, k, kept);
        twist(root, kept);
        json_decref(kept);
    }
    for (size_t k = 0; was > 0 && k < 300; k++) json_array_append(at, json_array_get(at, k % was));
    try_tree(root); /* too many rows, and the same ones twice */
    while (json_array_size(at) > was) json_array_remove(at, was);
}

static void twist(json_t *root, json_t *at) {
    if (json_is_object(at)) twist_object(root, at);
    if (json_is_array(at)) twist_array(root, at);
}

static void hostile_files(void) {
    ceilings *c = device();
    c->bandwidth_count = 3;
    c->sweep_count = 1;
    c->sweep[0] = (ceilings_point){.shape = {1, 2, 3}, .tflops = 1};
    json_t *root = as_json(c);
    if (UNIT_CHECK(root != NULL)) twist(root, root);
    UNIT_CHECK(refused > 300 && taken > 10);
    json_decref(root);
    free(c);
}

static void refusals_name_the_place(void) {
    ceilings *c = device();
    status st = {0};
    json_t *root = as_json(c);
    json_object_set_new(json_array_get(json_object_get(root, "peaks"), 1), "tflops", json_string("many"));
    UNIT_CHECK(!ceilings_from_json(root, c, &st));
    UNIT_TEXT(st.text, "ceilings: peaks[1].tflops is not a number");
    UNIT_INT(c->peak_count, 0); /* nothing half-read is left */
    json_object_set_new(root, "schema", json_string("ceiling-scout/ceilings/2"));
    UNIT_CHECK(!ceilings_from_json(root, c, &st) && strstr(st.text, "ceilings/2"));
    json_decref(root);
    free(c);
}

/* A host was busy when its ceilings were taken: what a yardstick reaches later takes their place. */
static void what_a_yardstick_reached_takes_the_place_of_less(void) {
    ceilings *c = device();
    const ceilings_seen slower = {.bound = "compute", .precision = "fp16", .rate = 505, .product = true};
    UNIT_CHECK(!ceilings_raise(c, &slower) && ceilings_find_peak(c, "fp16")->tflops == 500);
    const ceilings_seen product = {.bound = "compute", .precision = "fp16", .rate = 600, .product = true};
    UNIT_CHECK(ceilings_raise(c, &product) && ceilings_find_peak(c, "fp16")->tflops == 600);
    UNIT_CHECK(ceilings_find_peak(c, "fp16")->shape[0] == 8192 && ceilings_find_peak(c, "fp8")->tflops == 1000);
    const ceilings_seen registers = {.bound = "compute", .precision = "fp16", .rate = 700};
    UNIT_CHECK(ceilings_raise(c, &registers) && ceilings_find_peak(c, "fp16")->tflops == 700);
    UNIT_CHECK(ceilings_find_peak(c, "fp16")->shape[0] == 0);
    UNIT_CHECK(strcmp(ceilings_find_peak(c, "fp16")->how, ceilings_in_registers) == 0);
    const ceilings_seen unknown = {.bound = "compute", .precision = "int8", .rate = 700};
    UNIT_CHECK(!ceilings_raise(c, &unknown));
    const ceilings_seen special = {.bound = "special", .precision = "fp32", .rate = 2e13};
    UNIT_CHECK(ceilings_raise(c, &special) && c->special_per_s == 2e13);
    free(c);
}

static void bytes_that_a_yardstick_moved_raise_the_table(void) {
    static const double fractions[] = {1, 0.75, 0.5, 0};
    ceilings *c = device();
    for (size_t k = 0; k < sizeof fractions / sizeof fractions[0]; k++) {
        const double bytes = (double)c->bandwidths[0].bytes,
                     before = ceilings_bandwidth_at(c, bytes, fractions[k], false);
        const double small = ceilings_bandwidth_at(c, bytes, fractions[k], true);
        ceilings_seen seen = {
            .bound = "memory", .precision = "fp32", .rate = 3 * before, .bytes = bytes, .read_fraction = fractions[k]};
        seen.over_bytes = 0.99 * c->plateau_bytes; /* a part of it may have been in the cache */
        UNIT_CHECK(!ceilings_raise(c, &seen) &&
                   near(ceilings_bandwidth_at(c, bytes, fractions[k], false), before, 1e-9));
        seen.over_bytes = c->plateau_bytes;
        UNIT_CHECK(ceilings_raise(c, &seen));
        UNIT_CHECK(near(ceilings_bandwidth_at(c, bytes, fractions[k], false), 3 * before, 1e-9));
        UNIT_CHECK(ceilings_bandwidth_at(c, bytes, fractions[k], true) >= small);
        UNIT_CHECK(!ceilings_raise(c, &seen));
    }
    free(c);
    c = device(); /* of a size between two rows, again and again: no row gets above what was seen */
    const double bytes = 1.1 * (double)c->bandwidths[1].bytes, rate = 1.2 * ceilings_plateau(c, 1, false);
    const ceilings_seen seen = {.bound = "memory",
                                .precision = "fp32",
                                .rate = rate,
                                .bytes = bytes,
                                .read_fraction = 1,
                                .over_bytes = c->plateau_bytes};
    for (int k = 0; k < 13; k++) UNIT_CHECK(ceilings_raise(c, &seen) == (k == 0));
    for (int k = 0; k < c->bandwidth_count; k++)
        UNIT_CHECK(c->bandwidths[k].resident || c->bandwidths[k].tbps <= rate * (1 + 1e-9));
    free(c);
}

int main(void) {
    UNIT_RUN(bandwidth_between_rows);
    UNIT_RUN(a_part_is_replaced);
    UNIT_RUN(the_bytes_that_count);
    UNIT_RUN(tables_without_dents);
    UNIT_RUN(sizes_that_are_all_floor);
    UNIT_RUN(physical_bounds);
    UNIT_RUN(times);
    UNIT_RUN(times_without_a_peak);
    UNIT_RUN(times_have_intervals);
    UNIT_RUN(round_trip);
    UNIT_RUN(hostile_files);
    UNIT_RUN(refusals_name_the_place);
    UNIT_RUN(what_a_yardstick_reached_takes_the_place_of_less);
    UNIT_RUN(bytes_that_a_yardstick_moved_raise_the_table);
    return unit_end();
}
