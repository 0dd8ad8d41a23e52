/* The processor, and the part of it that this process may use. Read once, before anything is pinned: the first call of
 * cpu_info_get sees the affinity that the process was started with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPU_INFO_MAX_CORES = 1024 };

typedef struct cpu_info {
    char model[96];
    char microcode[24];
    char capability[48]; /* "avx512+bf16+vnni+fp16+amx_bf16+amx_int8": what is there and may be used */
    bool avx2, avx_vnni, avx512, avx512_bf16, avx512_vnni, avx512_fp16, amx_bf16, amx_int8;
    bool intel;
    bool virtualised;                         /* the clock that the system reports is then nominal */
    int cores[CPU_INFO_MAX_CORES];            /* one logical processor of each core that is used, ascending */
    int core_count;                           /* cores that are used: affinity, hyperthreads, quota */
    int allowed_cpus;                         /* logical processors in the affinity mask */
    double quota_cpus;                        /* of the control group; 0: none */
    uint64_t cache_bytes, l2_bytes, l1_bytes; /* last level; of one core */
} cpu_info;

const cpu_info *cpu_info_get(void); /* borrowed */

/* First line of a small file of /proc or /sys, without its newline; false where it cannot be read. */
bool cpu_info_line(const char *path, char *text, size_t room);
bool cpu_info_number(const char *path, double *number);
