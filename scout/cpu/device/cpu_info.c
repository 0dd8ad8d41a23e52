/* The processor's name, its vector extensions as they can be used (cpuid, and what the kernel saves of them), its
 * caches, and the cores that are ours: affinity mask, one hyperthread a core, quota of the control group. */
#include "scout/cpu/device/cpu_info.h"

#include "scout/cpu/device/cpu_limits.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool cpu_info_line(const char *path, char *text, size_t room) {
    FILE *f = fopen(path, "re");
    text[0] = 0;
    if (!f) return false;
    bool good = fgets(text, (int)room, f) != NULL;
    if (fclose(f) != 0) good = false;
    text[strcspn(text, "\n")] = 0;
    return good && text[0] != 0;
}

bool cpu_info_number(const char *path, double *number) {
    char text[64], *end = NULL;
    if (!cpu_info_line(path, text, sizeof text)) return false;
    *number = strtod(text, &end);
    return end != text;
}

/* --- vector extensions --- */

#if defined(__x86_64__)
static uint64_t saved_state(void) { /* XCR0: which registers the kernel saves */
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Tile registers need the kernel's permission, for the whole process and its future threads. */
static bool may_use_tiles(void) {
    enum { ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
}

static void read_extensions(cpu_info *c) {
    unsigned a = 0, b = 0, x = 0, d = 0, a1 = 0, b1 = 0, x1 = 0, d1 = 0;
    if (!__get_cpuid(0, &a, &b, &x, &d)) return;
    c->intel = b == signature_INTEL_ebx && d == signature_INTEL_edx && x == signature_INTEL_ecx;
    if (!__get_cpuid(1, &a, &b, &x, &d)) return;
    c->virtualised = x >> 31 & 1;
    if (!(x >> 27 & 1)) return; /* no xgetbv */
    bool fma = x >> 12 & 1, half = x >> 29 & 1;
    uint64_t saved = saved_state();
    if (!__get_cpuid_count(7, 0, &a, &b, &x, &d)) return;
    if (!__get_cpuid_count(7, 1, &a1, &b1, &x1, &d1)) a1 = 0;
    c->avx2 = (saved & 6) == 6 && fma && half && (b >> 5 & 1);
    c->avx_vnni = c->avx2 && (a1 >> 4 & 1);
    c->avx512 = c->avx2 && (saved & 0xe6) == 0xe6 && (b >> 16 & 1) && (b >> 17 & 1) && (b >> 30 & 1) && (b >> 31 & 1);
    c->avx512_vnni = c->avx512 && (x >> 11 & 1);
    c->avx512_bf16 = c->avx512 && (a1 >> 5 & 1);
    c->avx512_fp16 = c->avx512 && (d >> 23 & 1);
    bool tiles = c->avx512 && (d >> 24 & 1) && (saved >> 17 & 3) == 3 && may_use_tiles();
    c->amx_bf16 = tiles && (d >> 22 & 1);
    c->amx_int8 = tiles && (d >> 25 & 1);
}
#else
static void read_extensions(cpu_info *c) { c->avx2 = false; }
#endif

static void say_capability(cpu_info *c) {
    const char *base = c->avx512 ? "avx512" : c->avx2 ? "avx2" : "portable";
    snprintf(c->capability, sizeof c->capability, "%s%s%s%s%s%s", base, c->avx512_bf16 ? "+bf16" : "",
             c->avx512_vnni || c->avx_vnni ? "+vnni" : "", c->avx512_fp16 ? "+fp16" : "",
             c->amx_bf16 ? "+amx_bf16" : "", c->amx_int8 ? "+amx_int8" : "");
}

/* --- names and caches --- */

static void read_cpuinfo(cpu_info *c) {
    static const struct {
        const char *key;
        size_t at, room;
    } wanted[] = {
        {"model name", offsetof(cpu_info, model), sizeof c->model},
        {"microcode", offsetof(cpu_info, microcode), sizeof c->microcode},
        {"CPU implementer", offsetof(cpu_info, microcode), sizeof c->microcode},
    };
    char line[4096];
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f) return;
    while (fgets(line, sizeof line, f) && line[0] != '\n') { /* of the first processor, as of all */
        char *value = strchr(line, ':');
        if (!value) continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = 0;
        for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
            size_t length = strlen(wanted[k].key);
            if (strncmp(line, wanted[k].key, length) != 0 || !strchr(" \t:", line[length])) continue;
            snprintf((char *)c + wanted[k].at, wanted[k].room, "%s", value);
        }
    }
    (void)fclose(f);
}

static uint64_t cache_size(int cpu, int index, const char *type_wanted, int *level) {
    char path[128], type[32], size[32], *end = NULL;
    double number = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/type", cpu, index);
    if (!cpu_info_line(path, type, sizeof type)) return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/level", cpu, index);
    if (strcmp(type, type_wanted) != 0 || !cpu_info_number(path, &number)) return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu, index);
    if (!cpu_info_line(path, size, sizeof size)) return 0;
    *level = (int)number;
    uint64_t bytes = strtoull(size, &end, 10);
    return bytes << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static void read_caches(cpu_info *c) {
    for (int index = 0; index < 8; index++) {
        int level = 0;
        uint64_t bytes = cache_size(c->cores[0], index, "Data", &level);
        if (!bytes) bytes = cache_size(c->cores[0], index, "Unified", &level);
        if (level == 1) c->l1_bytes = bytes;
        if (level == 2) c->l2_bytes = bytes;
        if (bytes > c->cache_bytes) c->cache_bytes = bytes;
    }
    long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (!c->cache_bytes && told > 0) c->cache_bytes = (uint64_t)told;
    if (!c->l1_bytes) c->l1_bytes = 32 << 10;
    if (!c->l2_bytes) c->l2_bytes = 256 << 10;
}

/* --- cores --- */

/* Package and core of a logical processor as one number; unknown: a core of its own. */
static int64_t core_of(int cpu) {
    char path[128];
    double package = 0, core = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    bool good = cpu_info_number(path, &package);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
    if (!good || !cpu_info_number(path, &core)) return ((int64_t)1 << 40) + cpu;
    return (int64_t)package * ((int64_t)1 << 20) + (int64_t)core;
}

static void read_cores(cpu_info *c) {
    enum { CPUS = 8192 };
    int64_t *seen = calloc(CPU_INFO_MAX_CORES, sizeof *seen);
    cpu_set_t *set = CPU_ALLOC(CPUS);
    size_t size = CPU_ALLOC_SIZE(CPUS);
    if (seen && set && sched_getaffinity(0, size, set) == 0) {
        for (int cpu = 0; cpu < CPUS && c->core_count < CPU_INFO_MAX_CORES; cpu++) {
            if (!CPU_ISSET_S((size_t)cpu, size, set)) continue;
            int64_t core = core_of(cpu);
            int k = 0;
            while (k < c->core_count && seen[k] != core) k++;
            c->allowed_cpus++;
            if (k < c->core_count) continue;
            seen[c->core_count] = core;
            c->cores[c->core_count++] = cpu;
        }
    }
    if (set) CPU_FREE(set);
    free(seen);
    if (c->core_count == 0) c->core_count = c->allowed_cpus = 1;
    /* A quota of three and a half runs three cores all the time; a fourth would be throttled in the middle. */
    c->quota_cpus = cpu_limits_quota();
    if (c->quota_cpus > 0 && c->quota_cpus < c->core_count) c->core_count = c->quota_cpus < 1 ? 1 : (int)c->quota_cpus;
}

/* Read once and never changed: a second reading would see the mask that pinning left. */
static cpu_info the_info;
static pthread_once_t the_once = PTHREAD_ONCE_INIT;

static void read_all(void) {
    read_cores(&the_info);
    read_extensions(&the_info);
    say_capability(&the_info);
    read_cpuinfo(&the_info);
    read_caches(&the_info);
    if (!the_info.model[0]) snprintf(the_info.model, sizeof the_info.model, "processor of unknown name");
}

const cpu_info *cpu_info_get(void) {
    (void)pthread_once(&the_once, read_all);
    return &the_info;
}
