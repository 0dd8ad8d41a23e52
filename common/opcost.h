/* What an operation costs, as far as its own record says: one count for what a model holds and for what is written by
 * hand. Numbers that do not fit saturate (checked.h). */
#pragma once

#include "common/oprec.h"

/* Floating-point operations per element of a norm, a softmax or a rotary embedding; 1 of all others. */
int64_t opcost_per_element(op_kind kind, const char *what);

/* These set macs and flops. */
void opcost_macs(oprec *r, int64_t macs); /* two operations each */
void opcost_gemm(oprec *r);               /* of shape and batch */
/* Of shape, kv_len, v_head; masked pairs (past, window) have macs, no flops. */
void opcost_attention(oprec *r);
void opcost_attention_pairs(oprec *r, int64_t pairs); /* where a mask leaves so many pairs of a head */
void opcost_recurrent(oprec *r);                      /* of shape and directions */
/* How much it computes depends on its data: its record does not tell what bounds it. */
bool opcost_by_data(const oprec *r);
int opcost_gates(const oprec *r); /* of a recurrent layer */
