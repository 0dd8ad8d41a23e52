/* One operation, as all three programs speak of it: its kind, its dimensions by name, its types and what it costs. Two
 * operations are the same when their canonical keys are the same text. */
#pragma once

#include "common/arena.h"
#include "common/dtype.h"

typedef enum op_kind {
    OP_UNKNOWN, /* an operator that is not known; listed, never guessed */
    OP_GEMM,
    OP_CONV,
    OP_ATTENTION,
    OP_NORM,
    OP_SOFTMAX,
    OP_ELEMENTWISE,
    OP_REDUCE,
    OP_POOL,
    OP_EMBEDDING,
    OP_RECURRENT,
    OP_ROTARY,
    OP_MOVE,
    OP_QUANTIZE,
    OP_KIND_COUNT
} op_kind;

const char *oprec_kind_name(op_kind kind);
bool oprec_kind_from_name(const char *name, op_kind *kind); /* knows the aliases: layernorm, rmsnorm, conv2d, … */

typedef enum opfield_kind { OPFIELD_INT, OPFIELD_INTS, OPFIELD_TEXT, OPFIELD_REAL } opfield_kind;

typedef struct opfield {
    const char *name; /* borrowed: a literal or arena text */
    opfield_kind kind;
    int n; /* of ints */
    union {
        int64_t i;
        double real;
        const int64_t *ints;
        const char *text;
    };
} opfield;

enum { OPREC_MAX_FIELDS = 20 };      /* a large graph holds one record per node: small matters */
enum { OPREC_MOST_OPERANDS = 4096 }; /* of an occurrence: more than any operation that is measured */

typedef struct oprec {
    op_kind kind;
    const char *what; /* which of its kind: "layer", "relu", "max", "lstm", "transpose"; NULL where the kind says all */
    int rank;
    const int64_t *shape; /* gemm [M,N,K], attention [B,H,Sq,D], norm and softmax [rows,cols], conv and pool: output; …
                             docs/formats.md */
    const char *layout;   /* gemm: nn nt tn tt; conv: nchw, nhwc; NULL where it has none */
    const char *mask;     /* attention: none causal additive causal+padding lengths blocks causal+blocks */
    dtype type, weight_type, out_type; /* weight_type DTYPE_NONE: no weight */
    opfield fields[OPREC_MAX_FIELDS];  /* kept sorted by name */
    int field_count;
    int64_t macs, flops, bytes_read, bytes_written; /* per occurrence */
} oprec;

/* Set or replace a named dimension. Values that say the default (see docs/formats.md) are simply not set. */
void oprec_set_int(oprec *r, const char *name, int64_t value);
void oprec_set_real(oprec *r, const char *name, double value);
void oprec_set_text(oprec *r, const char *name, const char *text);                       /* borrowed */
void oprec_set_ints(oprec *r, arena *a, const char *name, int n, const int64_t *values); /* copied */
void oprec_set_shape(oprec *r, arena *a, int rank, const int64_t *shape);                /* copied */
const opfield *oprec_field(const oprec *r, const char *name);                            /* NULL where not set */
int64_t oprec_int(const oprec *r, const char *name, int64_t otherwise);

/* Canonical text over everything but the costs: "gemm;shape=128,768,768;type=fp16;…". In the arena. */
char *oprec_key(const oprec *r, arena *a);
/* Readable and unique for practical purposes; safe as a file name: "gemm_128x768x768_fp16_1f0c63ab21". In the arena. */
char *oprec_id(const oprec *r, arena *a);
