/* Tensors that lie one behind the other along an axis of another one, joined or parted in one launch. As
 * pass_kernels.h, whose rules hold. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { JOINED_MOST = 72 };

/* `outer` rows of the whole; of each, `bytes[k]` are those of piece k, in their order. Each piece lies densely. */
typedef struct joined_pass {
    int count;  /* of pieces: 1 to JOINED_MOST */
    int parted; /* 1: from the whole to the pieces; 0: the other way */
    int64_t outer;
    int64_t bytes[JOINED_MOST]; /* 0: an empty one */
    pass_config config;
} joined_pass;

int joined_fits(const joined_pass *p); /* all of it stays below 2^31 bytes */
int joined_launch(const joined_pass *p, const void *const *pieces, const void *whole, void *stream);

#ifdef __cplusplus
}
#endif
