/* What lower functions and patterns share to fill a record: types under --precision, compulsory bytes, weights traced
 * to their initializers, the record of an attention. */
#pragma once

#include "extract/ops/work.h"

dtype cost_type(const work *w, const tensor *t);    /* element type under the work's precision; DTYPE_NONE for NULL */
int64_t cost_bytes(const work *w, const tensor *t); /* packed bytes under the work's precision; 0 for NULL or unknown */

int64_t cost_part(int64_t bytes, int64_t part, int64_t whole); /* so much of them; where part is not below whole, all */

/* Bytes of the whole work: each distinct tensor that comes from outside is read once, each one that leaves is written
 * once. What a joined work keeps inside costs nothing; known integers (shapes, axes, sizes) are not data. Sets
 * rec.bytes_read and rec.bytes_written. */
void cost_boundary(work *w);

/* Shapes, axes and sizes that are known when the model is loaded are no data; a quantised layer's integer bias is. */
bool cost_is_parameter(const tensor *t);

/* A constant seen through what does not change its numbers' meaning (Identity, Cast, Reshape, Transpose,
 * DequantizeLinear…). */
typedef struct cost_weight {
    tensor *root;    /* the initializer or Constant output; where the trail ends elsewhere, the last constant on it */
    dtype type;      /* as stored: int8 behind a DequantizeLinear; else the type under precision */
    bool transposed; /* its last two dimensions are swapped between root and use */
    bool rearranged; /* some other permutation or reshape lies between */
    bool quantized;  /* stored in fewer bits and dequantised on the way */
    int64_t bytes;   /* as stored, with its scales and zero points */
    tensor *scales, *zero_points; /* of the DequantizeLinear on the way; NULL where there is none */
    int64_t block_size;           /* of the scales; 0: one per channel or for all */
    const node *dequantize;       /* that DequantizeLinear */
    bool swapped;                 /* as `transposed`, but between it and the use */
    int64_t part, whole;          /* the first ones of a stack of matrices: so many of so many; 1 of 1: all */
    tensor *first;                /* these, where they lie as the root begins; NULL: it is all, or they do not */
} cost_weight;
bool cost_trace(const work *w, tensor *t, cost_weight *found); /* false: t is not a constant */
/* The DequantizeLinear that w reads past, for it takes t as it was stored; NULL where it takes t itself. */
const node *cost_passed(const work *w, const tensor *t);
bool cost_keeps_order(
    const node *n); /* a Transpose that moves nothing in memory: only dimensions of size 1 change places */

/* An attention, however it was written. Zero values mean what is customary. */
typedef struct cost_attention {
    int64_t batch, heads, q_len, head;
    int64_t kv_heads; /* 0: as heads */
    int64_t kv_len;   /* 0: as q_len */
    int64_t v_head;   /* 0: as head */
    int64_t past;     /* keys before the first query, for the triangle of a causal mask; -1: kv_len - q_len */
    const char *mask; /* none, causal, additive, causal+padding, lengths */
    int mask_rank;    /* of an additive mask */
    const int64_t *mask_dims;
    double scale;   /* 0: 1/sqrt(head) */
    int64_t window; /* each query sees at most so many keys; 0: all */
    double softcap; /* 0: none */
} cost_attention;
/* Fills kind, shape, mask, the named dimensions, macs and flops; types are the caller's and come before, bytes behind.
 */
void cost_set_attention(work *w, const cost_attention *a);

/* Rows and columns: sets kind, what and shape [rows, cols], and flops as elements times `per_element`. */
void cost_set_rows(work *w, op_kind kind, const char *what, int64_t rows, int64_t cols, int64_t per_element);

int cost_rank(const tensor *t);              /* -1 where the shape is not known or t is NULL */
int64_t cost_dim(const tensor *t, int axis); /* axis may be negative; 0 where there is no such dimension */
bool cost_shaped(const tensor *t);
const tensor *cost_in(const work *w, int i); /* NULL where left out or not there */
const tensor *cost_out(const work *w, int i);
/* Whether output i has to be made: something reads it, or nothing reads any of the node's. That it has a name says
 * nothing: exporters name every output. */
bool cost_wanted(const node *n, int i);
/* Of t, should the work read or write it, only so much is: cost_boundary from now on counts part / whole of it. Nothing
 * where t is NULL or the part is all. */
void cost_share(work *w, const tensor *t, int64_t part, int64_t whole);
void cost_set_shape(work *w, const tensor *t); /* the record's shape is the tensor's; nothing where not known */
void cost_set_types(work *w, const tensor *in, const tensor *out); /* type, and out_type where it is another */
const char *cost_what(
    const work *w); /* the operator's detail from the table, or its name in lower case; in the arena */
/* Text out of an attribute, fit for a record: printable ASCII, cut at 200 characters, in lower case where asked for. */
const char *cost_text(const work *w, const char *text, bool lower_case);
double cost_real(double x); /* of single precision: the shortest decimal that means the same, as a double */
const char *cost_reals(const work *w, int64_t n, const double *x); /* the same of several, as text; in the arena */
bool cost_known(const tensor *t);                                  /* constant, or its values are known */
const value *cost_values(
    const work *w, const tensor *t); /* of a small tensor, propagated or read from the file; NULL where not known */
bool cost_has_zero(const work *w, const tensor *t);          /* zero points, and not known to be 0 all of them */
bool cost_is_each(const tensor *t);                          /* scales or zero points: one for each channel */
int64_t cost_product(const int64_t *dims, int from, int to); /* saturating; 1 where empty */
