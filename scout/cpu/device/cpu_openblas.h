/* OpenBLAS, opened at run time: the build on OpenMP, which shares its threads with everything else here. */
#pragma once

#include "scout/plugin.h"

#include <cblas.h>

/* Not in every cblas.h: bf16 in, fp32 out. */
typedef void cpu_openblas_sbgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a, enum CBLAS_TRANSPOSE trans_b,
                                 int m, int n, int k, float alpha, const uint16_t *a, int lda, const uint16_t *b,
                                 int ldb, float beta, float *c, int ldc);

typedef struct cpu_openblas {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_dgemm) dgemm;
    cpu_openblas_sbgemm *sbgemm; /* NULL: this build has none */
    char version[48];
    char path[256];
} cpu_openblas;

const cpu_openblas *cpu_openblas_get(scout_why *why); /* borrowed, for the life of the process; NULL: why says */
