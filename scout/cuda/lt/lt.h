/* cuBLASLt, opened at run time (so that the search order of scout/device/libraries.h decides which file it is), and its
 * candidate. Its functions are a table with the types of cublasLt.h: a call that does not fit does not compile. */
#pragma once

#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/gemm.h"
#include "scout/plugin.h"

#include <cublasLt.h>
#include <stdbool.h>

#define LT_FUNCTIONS(F)                                                                                                \
    F(cublasLtCreate)                                                                                                  \
    F(cublasLtGetVersion)                                                                                              \
    F(cublasLtMatmul)                                                                                                  \
    F(cublasLtMatmulDescCreate)                                                                                        \
    F(cublasLtMatmulDescDestroy)                                                                                       \
    F(cublasLtMatmulDescSetAttribute)                                                                                  \
    F(cublasLtMatrixLayoutCreate)                                                                                      \
    F(cublasLtMatrixLayoutDestroy)                                                                                     \
    F(cublasLtMatrixLayoutSetAttribute)                                                                                \
    F(cublasLtMatmulPreferenceCreate)                                                                                  \
    F(cublasLtMatmulPreferenceDestroy)                                                                                 \
    F(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    F(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    F(cublasLtMatmulAlgoConfigSetAttribute)                                                                            \
    F(cublasLtMatmulAlgoCapGetAttribute)                                                                               \
    F(cublasLtMatmulAlgoGetIds)                                                                                        \
    F(cublasLtMatmulAlgoInit)                                                                                          \
    F(cublasLtMatmulAlgoCheck)                                                                                         \
    F(cublasLtMatmulAlgoConfigGetAttribute)                                                                            \
    F(cublasLtGetStatusString)

typedef struct lt_table {
#define LT_MEMBER(name) __typeof__(&(name)) name;
    LT_FUNCTIONS(LT_MEMBER)
#undef LT_MEMBER
    char path[256], version[48];
} lt_table;

/* The library, opened at the first call; NULL: why says where it was looked for. No context is made. */
const lt_table *lt_open(scout_why *why);
/* The handle of the device that is current; made at the first call, lives as long as the process. */
const lt_table *lt_ready(cublasLtHandle_t *handle, scout_why *why);

/* --- a product as cuBLASLt describes it: lt_setup.c --- */

/* Of an ordinary search: the first of the heuristic's; or, for a product that does not fill the device once (fewer
 * tiles than multiprocessors), as many as it has, and the best of them with K divided. */
enum { LT_FIRST_ALGOS = 64, LT_HEURISTIC_ALGOS = 128, LT_RANKED_ALGOS = 192, LT_MAX_ALGOS = 512 };

/* The weight's layout: a parameter of the candidate. */
typedef struct lt_way {
    bool transposed; /* by pack() */
} lt_way;

/* cuBLASLt stores by columns: C = A B by rows is C' = B' A' by columns, so its A is our B. */
typedef struct lt_setup {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c; /* its A, B and C, which are our b, a and c */
    cublasComputeType_t compute;
    cudaDataType type_a, type_b, type_c; /* of its A, B and C */
    int bias, full;     /* places in op->tensors of a bias vector, of a bias matrix or a residual; -1: none */
    cudaDataType scale; /* of the factors: which of these three pairs it reads */
    float alpha, beta;
    int32_t alpha_whole, beta_whole;
    double alpha_double, beta_double;
} lt_setup;

/* Types, epilogue, sizes: everything that needs no device. */
scout_answer lt_setup_covers(const scout_op *op, scout_why *why);
bool lt_setup_fp8(const scout_op *op);
/* Whether pack() can make `transposed`, and its shape: element size, stored rows and columns before, leading dimension
 * after, and how many matrices. */
typedef struct lt_packing {
    int element;
    int64_t rows, cols, ld_from, ld_to, stride_from, stride_to, matrices;
    uint64_t bytes;
} lt_packing;
bool lt_setup_packing(const scout_op *op, lt_packing *out);
scout_answer lt_setup_make(const lt_table *lt, const scout_op *op, lt_way way, lt_setup *out, scout_why *why);
const void *lt_setup_alpha(const lt_setup *setup);
const void *lt_setup_beta(const lt_setup *setup);
/* The reduction schemes (CUBLASLT_REDUCTION_SCHEME_…, as bits) allowed for parts of K. Two of the library's three add
 * up in the output's type: with 16 bits they do not compute an operation with fp32 sums. */
uint32_t lt_setup_schemes(const lt_setup *setup);
void lt_setup_free(const lt_table *lt, lt_setup *setup);

/* --- the library's algorithms, cached for recent operations: lt_lists.c --- */

typedef struct lt_list {
    char key[320];
    int most;                                 /* that were asked for */
    int count;                                /* 0: it has none */
    cublasStatus_t status;                    /* why it has none */
    cublasLtMatmulHeuristicResult_t *results; /* owned */
} lt_list;

typedef struct lt_lists lt_lists;

/* The ranked algorithms of one way, and behind them, where more than LT_RANKED_ALGOS are asked for, all others;
 * borrowed until the device closes or eight other ways were asked for. `most` is at
 * most LT_MAX_ALGOS. NULL: why. */
const lt_list *lt_lists_get(scout_device *device, const scout_op *op, lt_way way, int most, scout_why *why);
void lt_lists_free(lt_lists *lists);

/* Adds to `count` results of the heuristic all others that the library can run, up to `room`; returns how many there
 * are then. Takes seconds. lt_enumerate.c */
int lt_enumerate(const lt_table *lt, cublasLtHandle_t handle, const lt_setup *setup, uint64_t workspace,
                 cublasLtMatmulHeuristicResult_t *results, int count, int room);

/* How often an algorithm's tiles fill the device, K undivided; 0: the library does not say. */
double lt_enumerate_fill(const lt_table *lt, const cublasLtMatmulHeuristicResult_t *result);
/* The same of the first of them alone, with K divided into as many parts as fill the device up to twice. */
int lt_enumerate_splits(const lt_table *lt, cublasLtHandle_t handle, const lt_setup *setup, uint64_t workspace,
                        cublasLtMatmulHeuristicResult_t *results, int count, int room);

/* The algorithm as JSON members, for dispatch tables and for people: bytes and readable fields. As snprintf. */
int lt_describe_algo(const lt_table *lt, const cublasLtMatmulAlgo_t *algo, char *text, size_t room);
