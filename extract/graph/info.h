/* What is known of one tensor (or sequence, optional, map): its type, its concrete shape and, where shapes may depend
 * on it, its values. Infos are immutable once set and may share dims and values freely; everything lives in the run's
 * arena. */
#pragma once

#include "common/arena.h"
#include "common/dtype.h"

enum {
    INFO_MAX_RANK = 64,
    INFO_MAX_VALUES = 4096 /* longer tensors never have their values tracked */
};

typedef enum info_form {
    INFO_UNKNOWN, /* nothing known: the output of an operator that could not be resolved */
    INFO_TENSOR,
    INFO_SPARSE,   /* dims are the dense shape */
    INFO_SEQUENCE, /* elems */
    INFO_OPTIONAL, /* elems: 0 or 1 of them; count -1: not known whether it holds one, elem_like tells what it would be
                    */
    INFO_MAP,
    INFO_OPAQUE
} info_form;

/* Elements in row-major order. Booleans are 0 and 1; unsigned 64-bit values wrap. Exactly one of i and f is set. */
typedef struct value {
    int64_t n;
    const int64_t *i; /* integer and boolean dtypes */
    const double *f;  /* floating dtypes */
} value;

typedef struct info {
    info_form form;
    dtype type;   /* element type; DTYPE_NONE where unknown */
    int rank;     /* -1: shape unknown */
    bool inexact; /* the dims are an upper bound because they depend on data; a sequence: may have such elements */
    const int64_t *dims;             /* never NULL, so that dims + axis is a place even of a scalar */
    const value *val;                /* NULL where not known; only for exact tensors */
    const struct info *least, *most; /* NULL: what is known is exact. Else two exact infos of this rank and type: dims,
                                        and values where both have some, lie between theirs; dims are those of most */
    /* sequences and optionals */
    const struct info *const *elems;
    int64_t elem_count;           /* -1: unknown */
    const struct info *elem_like; /* what an element looks like when the count is unknown or 0; may be NULL */
} info;

extern const info info_unknown;       /* form INFO_UNKNOWN, rank -1 */
extern const int64_t info_no_dims[1]; /* of a scalar */

/* A tensor's info; dims are copied. */
info *info_tensor(arena *a, dtype type, int rank, const int64_t *dims);
info *info_tensor_like(arena *a, dtype type, const info *shape_of); /* same dims (or bounds), other type, no values */
/* What lies between two exact infos of one rank and type; owned by neither, exact where they are equal. */
info *info_between(arena *a, const info *least, const info *most);
/* A scalar or a vector of known integers. */
info *info_of_ints(arena *a, dtype type, int rank, const int64_t *dims, const int64_t *values,
                   int64_t n); /* n = product of dims */
info *info_of_floats(arena *a, dtype type, int rank, const int64_t *dims, const double *values, int64_t n);
info *info_sequence(arena *a, const info *const *elems, int64_t count,
                    const info *like); /* count -1: unknown; elems copied */

bool info_shaped(const info *i);   /* a tensor (or sparse tensor) with a known rank */
int64_t info_count(const info *i); /* elements; saturates; 0 for unknown shapes */
int64_t info_bytes(const info *i); /* packed bytes; sums over a sequence's elements; saturates */
bool info_same_shape(const info *a, const info *b);
/* "fp16[2,128,768]", "?" … for messages; in the arena. */
const char *info_text(arena *a, const info *i);
double value_at(const value *v, int64_t k); /* element k as a double */
