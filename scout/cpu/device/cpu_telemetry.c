/* Telemetry. The clock comes from cpufreq. A virtual machine has none, and the figure in /proc/cpuinfo is then nominal:
 * there the clock is measured, by a chain of additions that takes one cycle each, some microseconds long. */
#include "scout/cpu/device/cpu_telemetry.h"

#include "scout/cpu/device/cpu_info.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double cpu_telemetry_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cpu_telemetry_resolution(void) {
    double least = 1;
    for (int k = 0; k < 1000; k++) {
        const double before = cpu_telemetry_now();
        double after = before;
        while (after <= before) after = cpu_telemetry_now();
        if (after - before < least) least = after - before;
    }
    return least;
}

/* --- clock --- */

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double clock_of_cpufreq(const cpu_info *c) {
    enum { MOST = 64 }; /* cores that are asked: a median needs no more */
    double khz[MOST];
    int count = 0;
    for (int k = 0; k < c->core_count && count < MOST; k += 1 + c->core_count / MOST) {
        char path[128];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", c->cores[k]);
        if (cpu_info_number(path, &khz[count])) count++;
    }
    if (count == 0) return NAN;
    qsort(khz, (size_t)count, sizeof khz[0], compare_doubles);
    return khz[count / 2] / 1000;
}

#if defined(__x86_64__)
static double clock_of_chain(void) {
    enum { ROUNDS = 400, ADDITIONS = 16 };
    double best = 0;
    for (int try = 0; try < 8; try++) { /* the fastest: interruptions only make a chain longer */
        uint64_t rounds = ROUNDS, value = 0, step = 1;
        const double start = cpu_telemetry_now();
        __asm__ volatile("1:\n\t"
                         "add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t"
                         "add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t"
                         "add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t"
                         "add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t add %2, %1\n\t"
                         "dec %0\n\t"
                         "jnz 1b"
                         : "+r"(rounds), "+r"(value)
                         : "r"(step)
                         : "cc");
        const double rate = ROUNDS * ADDITIONS / (cpu_telemetry_now() - start);
        if (rate > best) best = rate;
    }
    return best / 1e6;
}
#else
static double clock_of_chain(void) { return NAN; }
#endif

/* --- power --- */

static double energy_j(void) { /* of all packages */
    double total = 0;
    for (int package = 0; package < 8; package++) {
        char path[128];
        double uj;
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/energy_uj", package);
        if (!cpu_info_number(path, &uj)) return package == 0 ? NAN : total;
        total += uj * 1e-6;
    }
    return total;
}

double cpu_telemetry_power_limit(void) {
    double total = 0, uw;
    for (int package = 0; package < 8; package++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/constraint_0_power_limit_uw", package);
        if (!cpu_info_number(path, &uw)) break;
        total += uw * 1e-6;
    }
    return total;
}

static double power_w(cpu_telemetry *t) {
    const double now = cpu_telemetry_now(), energy = energy_j();
    if (isnan(energy)) return NAN;
    const double passed = now - t->when_s, used = energy - t->energy_j;
    if (t->when_s > 0 && passed < 0.005) return t->power_w;        /* the counter itself moves once a millisecond */
    t->power_w = t->when_s > 0 && used >= 0 ? used / passed : NAN; /* it wraps around now and then */
    t->when_s = now, t->energy_j = energy;
    return t->power_w;
}

static double temperature_c(void) {
    for (int zone = 0; zone < 32; zone++) {
        char path[128], type[64];
        double milli;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/type", zone);
        if (!cpu_info_line(path, type, sizeof type)) break;
        if (strcmp(type, "x86_pkg_temp") != 0 && strncmp(type, "cpu", 3) != 0) continue;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/temp", zone);
        if (cpu_info_number(path, &milli)) return milli / 1000;
    }
    return NAN;
}

void cpu_telemetry_read(cpu_telemetry *t, scout_telemetry *out) {
    const cpu_info *c = cpu_info_get();
    scout_telemetry all = {.size = out->size, .memory_clock_mhz = NAN};
    all.clock_mhz = clock_of_cpufreq(c);
    if (isnan(all.clock_mhz)) all.clock_mhz = clock_of_chain();
    all.power_w = power_w(t);
    all.temperature_c = temperature_c();
    all.most_clock_mhz = NAN;
    memcpy(out, &all, out->size < sizeof all ? out->size : sizeof all);
}
