/* What shape functions demand of a node before they compute with it: each demand that is not met ends the function with
 * a message that carries the shapes. They differ from the infer_* API in that they know what an operator may ask. */
#pragma once

#include "extract/infer/infer.h"

/* Text of an input's type and shape, for messages. */
const char *shape_need_text(const infer *c, int i);
/* Input i is a tensor with lo <= rank <= hi (hi -1: no upper limit); returns the rank. */
int shape_need_rank(infer *c, int i, int lo, int hi);
/* Dimension k of input i is `size`; `what` names it in the message ("channels"). */
void shape_need_dim(infer *c, int i, int k, int64_t size, const char *what);
/* Input i has exactly the shape of input j. */
void shape_need_same(infer *c, int i, int j);
/* Those of inputs [first, first + count) that are there have one element type. */
void shape_need_one_type(infer *c, int first, int count);
/* Attribute that must be there and be at least 1 (heads, groups, sizes). */
int64_t shape_need_positive(infer *c, const char *name);
/* x is a multiple of by (by >= 1); returns the quotient. */
int64_t shape_need_multiple(infer *c, int64_t x, int64_t by, const char *what, const char *of);
/* Known integers of input i; where they are not known the node becomes unresolved and false is returned. */
bool shape_need_ints(infer *c, int i, const int64_t **x, int64_t *n, const char *what);
bool shape_need_int(infer *c, int i, int64_t *x, const char *what);
/* Output k has the shape and type of input i. */
void shape_need_like(infer *c, int k, int i);
