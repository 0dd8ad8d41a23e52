/* Products that other candidates compute through cuBLASLt's (lt_candidate), as operations of their own. Both sides are
 * inputs there, as the other candidate does the packing. */
#pragma once

#include "scout/op/gemm.h"
#include "scout/plugin.h"

enum { LT_PRODUCT_FIELDS = 8 };

typedef struct lt_product { /* holds pointers into itself: made where it stays */
    scout_op op;
    scout_tensor tensors[SCOUT_MAX_TENSORS];
    scout_field fields[LT_PRODUCT_FIELDS];
} lt_product;

/* A matrix as stored, once per product of the batch; stride 0: one for all. */
typedef struct lt_product_matrix {
    uint32_t type;
    int64_t rows, cols, ld, stride;
} lt_product_matrix;

/* Of the types of `from`, with so much workspace; layout "nn" and so on. Its matrices are added in the order of gemm.h.
 */
void lt_product_begin(lt_product *p, const scout_op *from, const char *layout, const int64_t shape[3], int64_t batch,
                      uint64_t workspace);
void lt_product_add(lt_product *p, const char *name, const lt_product_matrix *m);
/* Its epilogue: the activation of `from`, and a vector of that many along "n" or "m"; along NULL: none. */
void lt_product_behind(lt_product *p, const scout_op *from, const char *along, int64_t count);

/* --- shared by these candidates --- */

enum { LT_PRODUCT_ALGOS = 8 }; /* that are raced, of the library's first */

/* The parameter "algo", of as many as the longest list of the library's has. */
void lt_product_algos(scout_parameter *p, uint32_t most, int exhaustive);
/* A parameter of numbered choices with labels, of which `found` are there (bits); others between them allows() has to
 * refuse. */
void lt_product_choices(scout_parameter *p, const char *name, const char *const *labels, uint32_t found);
/* The JSON object of lt_candidate's plan, with members before its own; as snprintf. */
int lt_product_describe(const scout_plan *multiply, const char *members, char *json, size_t room);
