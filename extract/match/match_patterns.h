/* Patterns: finds what several nodes spell out together (attention, norms, activations, rotary embedding, quantised
 * products) and joins their works into one. Recognition follows the flow of data, never names or fixed templates. */
#pragma once

#include "extract/match/match_flow.h"

/* Looks at the graph around a node of the pattern's anchor operator; true where it joined something. */
typedef bool match_fn(match *m, node *anchor);

match_fn match_softmax;                             /* Div, Mul: the last node of one written out */
match_fn match_attention;                           /* Softmax, and the last node of one written out */
match_fn match_attention_mask;                      /* Attention: the kind of a mask that is an input */
match_fn match_attention_operands;                  /* Attention and its like: how its operands lie */
match_fn match_norm_root, match_norm_group;         /* Sqrt, Pow, ReduceL2; InstanceNormalization */
match_fn match_gate_activation, match_gate_product; /* Erf, Tanh, Sigmoid, …; Mul */
match_fn match_rotary_add, match_rotary_concat;     /* Add; Concat */
match_fn match_qdq_compute, match_qdq_integer; /* what computes on dequantised numbers; MatMulInteger, ConvInteger */
match_fn match_gemm_transposes;                /* MatMul, Gemm */

/* Runs every pattern of the table in match.c over the list, in the table's order. */
void match_all(worklist *list);
