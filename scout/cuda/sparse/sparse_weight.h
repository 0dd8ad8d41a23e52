/* Shared by all candidates for products with a sparse weight: which operations they take, and what the operation's
 * fields say of the weight's blocks. */
#pragma once

#include "kernels/product/gemm_sparse_pack.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/gemm.h"

/* Sides of square blocks that an operation counts, the first to try first. */
enum { SPARSE_WEIGHT_SIDES = 4 };
extern const int64_t sparse_weight_sides[SPARSE_WEIGHT_SIDES];

/* Whether the weight is sparse, and the product one that sparse candidates know, but for its types: one matrix and one
 * weight, on either side, with a bias for each column or without. */
scout_answer sparse_weight_known(const scout_op *op, scout_why *why);
/* The same, and fp32, fp16 or bf16 with the weight on the right: of those that pack it themselves. */
scout_answer sparse_weight_supports(const scout_op *op, scout_why *why);

/* Blocks of so many numbers a side that are not all zeros; -1: not known. */
int64_t sparse_weight_blocks(const scout_op *op, int64_t side);
/* Whether there are blocks of nothing but zeros. */
int sparse_weight_has_empty(const scout_op *op, int64_t side);

/* The weight as packing takes it, but for where it lies. */
gemm_sparse_weight sparse_weight_of(const gemm_problem *p);
