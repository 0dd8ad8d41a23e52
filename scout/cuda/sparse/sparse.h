/* cuSPARSE, opened at run time as cuBLASLt is (lt.h), and its candidates: a weight as lists of its numbers, as lists of
 * blocks, and as rows of blocks of one length. */
#pragma once

#include "scout/plugin.h"

#include <cusparse.h>

#define SPARSE_FUNCTIONS(F)                                                                                            \
    F(cusparseCreate)                                                                                                  \
    F(cusparseSetStream)                                                                                               \
    F(cusparseGetProperty)                                                                                             \
    F(cusparseGetErrorString)                                                                                          \
    F(cusparseCreateConstCsr)                                                                                          \
    F(cusparseCreateConstBsr)                                                                                          \
    F(cusparseCreateConstBlockedEll)                                                                                   \
    F(cusparseCreateConstDnMat)                                                                                        \
    F(cusparseCreateDnMat)                                                                                             \
    F(cusparseDestroySpMat)                                                                                            \
    F(cusparseDestroyDnMat)                                                                                            \
    F(cusparseSpMM_bufferSize)                                                                                         \
    F(cusparseSpMM)

typedef struct sparse_table {
#define SPARSE_MEMBER(name) __typeof__(&(name)) name;
    SPARSE_FUNCTIONS(SPARSE_MEMBER)
#undef SPARSE_MEMBER
    char path[256], version[48];
} sparse_table;

/* The library, opened at the first call; NULL: why says where it was looked for. No context is made. */
const sparse_table *sparse_open(scout_why *why);
/* This thread's handle, of the device that is current; made at the first call, which must not be within a capture, and
 * lives as long as the process. NULL: it cannot be made, and no function of the library takes that. Takes no lock. */
cusparseHandle_t sparse_handle(const sparse_table *table);
void sparse_beside(void); /* makes it, where the library is open */
/* What a status other than success means; `doing` is the function's name. */
scout_answer sparse_answer(const sparse_table *table, cusparseStatus_t status, const char *doing, scout_why *why);
