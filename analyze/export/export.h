/* What was measured, as the tuning files of other programs. A format says of an entry of a dispatch table what its
 * consumer looks it up by and what the consumer is to do; what that program cannot run, or cannot tell apart from
 * something else, is left out and counted. A format is a file here and a line in analyze/formats.c. */
#pragma once

#include "analyze/study/study.h"
#include "common/arena.h"

#include <jansson.h>
#include <stdio.h>

/* A product of two matrices, C[M,N] = A[M,K] B[K,N] (+ bias), with nothing else in it: all that other programs' tables
 * know. Made of a key, whose every field is either understood or a reason to leave the entry out. */
typedef struct export_product {
    int64_t m, n, k, batch; /* batch: 1 where there is one product */
    bool trans_a, trans_b;  /* stored as [K,M], as [N,K] */
    char weight;            /* which side is constant: 'a' or 'b'; 0: none */
    const char *type;       /* of both matrices and of the result: "fp16" */
    bool tf32, bias;        /* bias: a vector along N */
} export_product;

/* false: `why` says what else it is. Texts are in the arena. */
bool export_product_read(const char *key, export_product *p, arena *a, const char **why);

/* An operation with a measured default. Borrowed. */
typedef struct export_entry {
    export_product product;
    const study_report *report;
    const json_t *entry; /* as a dispatch table has it: table_entry_make */
    int64_t units;       /* multiprocessors of the device */
    bool by_default;     /* nothing was proven to be faster than the library's default */
} export_entry;

/* What a consumer looks up by, and what it finds. Two operations that are one to the consumer have the same key; where
 * they were decided differently, or one of them has no row, neither is written. */
typedef struct export_row {
    const char *key, *value, *note; /* note: said beside the value, decides nothing; NULL: nothing */
} export_row;

typedef struct export_reason {
    const char *why; /* "no product of two matrices" */
    size_t count;
} export_reason;

enum { EXPORT_REASONS = 24 };

typedef struct export_all {
    arena *a;
    const char *device, *capability; /* "NVIDIA H200", "9.0" */
    const char *cublaslt;            /* its version; NULL: the device was measured without */
    const char *consumer;            /* --consumer; NULL where the format needs none */
    const char *models, *device_class, *regime;
    export_row *rows; /* by key */
    size_t count;
    size_t operations; /* that were measured */
    size_t left_out;
    export_reason reasons[EXPORT_REASONS];
} export_all;

typedef struct export_format {
    const char *name;
    const char *consumer; /* the program whose version --consumer must say; NULL: no version is in such files */
    /* NULL: the row is made; else what stands in the way of it, for the line that counts what was left out; the
     * key is there where only the decision does. */
    const char *(*row)(const export_all *x, const export_entry *e, export_row *row);
    /* All of it; the caller, which opened `out`, checks it for failures. false: st says what else went wrong. */
    bool (*write)(const export_all *x, FILE *out, status *st);
} export_format;

extern const export_format export_formats[]; /* analyze/formats.c; ends with one that has no name */

/* The rows of a group's operations. The arena's guard takes what fails; x->device and what follows stay borrowed from
 * the group and the arena. */
void export_make(const export_format *f, const study_group *g, const char *consumer, export_all *x, arena *a);
/* "2 of 20 operations: mixed types (2)": what was left out, in a line; "" where nothing was. */
const char *export_left_out(const export_all *x);

/* The same types under the names of PyTorch: "torch.float16", and "Half". NULL: it has none that is known here. */
const char *export_torch_type(const char *type);
const char *export_aten_type(const char *type);

/* To a file that appears whole or not at all; path NULL: to standard output. analyze/formats.c */
bool export_formats_put(const export_format *f, const export_all *x, const char *path, status *st);

/* ---- the formats ---- */

const char *tunableop_row(const export_all *x, const export_entry *e, export_row *row);
bool tunableop_write(const export_all *x, FILE *out, status *st);
const char *inductor_row(const export_all *x, const export_entry *e, export_row *row);
bool inductor_write(const export_all *x, FILE *out, status *st);
const char *triton_row(const export_all *x, const export_entry *e, export_row *row);
bool triton_write(const export_all *x, FILE *out, status *st);
