/* Quantised products in three kernels: parameters of the passes around the library's product, and how a product is
 * divided where its sums do not fit. Header-only, for tests without a GPU. */
#pragma once

#include "kernels/product/product_bytes.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/gemm.h"

#include <stdbool.h>

/* The epilogue of sums; the caller sets rows, columns and leading dimensions. Bounds are those of the activation,
 * within a byte's range. */
static inline product_bytes_finish own_gemm_quantised_finish(const gemm_problem *p) {
    const op_activation *const a = &p->activation;
    const requantize *const q = &p->quant;
    const bool clips = a->function == ACTIVATION_CLIP;
    const double least = q->rounds ? q->least - q->zero_out : -INFINITY,
                 most = q->rounds ? q->most - q->zero_out : INFINITY;
    const double low = clips ? a->alpha : -INFINITY, high = clips ? a->beta : INFINITY;
    product_bytes_finish f = {.type = (int)p->type_c, .zero = q->zero_out, .factor = (float)q->factor};
    f.slope = a->function == ACTIVATION_RELU ? (float)a->alpha : 1;
    f.low = (float)fmin(fmax(low, least), most);
    f.high = (float)fmin(fmax(high, least), most);
    return f;
}

/* Equal pieces of rows or columns: they begin at multiples of 16, so that everything in them is aligned, and the last
 * one ends where all end. Some are computed twice for that, which changes nothing. */
typedef struct own_gemm_pieces {
    int64_t all, size, step, count; /* count 0: they would be too small */
} own_gemm_pieces;

static inline own_gemm_pieces own_gemm_pieces_of(int64_t all, int64_t most) {
    enum { GRAIN = 16, FEWEST = 64 };
    own_gemm_pieces p = {all, all, all, 1};
    if (all <= most) return p;
    if (most < FEWEST) return (own_gemm_pieces){all, 0, 0, 0};
    for (int spare = 0; spare < GRAIN; spare += GRAIN - 1) { /* as few as can be, or with room for what is added */
        const int64_t room = most - spare, wanted = (all + room - 1) / room, even = (all + wanted - 1) / wanted;
        p.size = even + (all - even) % GRAIN; /* so the last one begins at a multiple too */
        if (p.size <= most) break;
    }
    p.step = p.size / GRAIN * GRAIN;
    p.count = 1 + (all - p.size + p.step - 1) / p.step;
    return p;
}

static inline int64_t own_gemm_pieces_begin(const own_gemm_pieces *p, int64_t k) {
    return k + 1 < p->count ? k * p->step : p->all - p->size;
}
