/* Which row of what is added before a softmax belongs to which of its rows: what the kernels share that take one. */
#pragma once

#include "kernels/rows/row_kernels.h"

#include <cuda_runtime.h>

namespace softmax_bias {

/* Rows of a bias come in turn for so many rows, then the next ones do. */
struct turns {
    int64_t rows, bias_rows, turn, serves;
};

inline bool possible(const softmax_rows_shape *s) {
    if (s->bias_rows == 0) return true;
    return s->bias_rows > 0 && s->rows % s->bias_rows == 0 && s->bias_turn >= 1 && s->bias_rows % s->bias_turn == 0;
}

inline turns turns_of(const softmax_rows_shape *s) {
    const int64_t serves = s->bias_rows > 0 ? s->rows / (s->bias_rows / s->bias_turn) : 0;
    return {s->rows, s->bias_rows, s->bias_turn, serves};
}

/* Dividing 64 bits takes long. */
__device__ inline int64_t row_of(const turns &t, int64_t row) {
    if (t.bias_rows == t.rows) return row;
    if (t.bias_rows == 1) return 0;
    if (t.rows <= 0xffffffffll) {
        const unsigned at = (unsigned)row, serves = (unsigned)t.serves, turn = (unsigned)t.turn;
        if (t.serves == t.rows) return at % turn;
        return turn == 1 ? at / serves : at / serves * turn + at % serves % turn;
    }
    return row / t.serves * t.turn + row % t.serves % t.turn;
}

} // namespace softmax_bias
