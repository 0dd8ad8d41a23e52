/* Parts of writing a chain's source: text that grows, what types are called in it, and the function that computes one
 * element. */
#pragma once

#include "scout/cuda/nvrtc/chain_source.h"

enum { CHAIN_STEPS_ROOM = 1 << 16 }; /* more than 16 steps and 11 operands can fill */

typedef struct chain_writer {
    const chain_source *s;
    char *text; /* CHAIN_STEPS_ROOM bytes */
    size_t used;
} chain_writer;

__attribute__((format(printf, 2, 3))) void chain_steps_put(chain_writer *w, const char *format, ...);

/* Of a type: its name in kernels/pass/elementwise_chain.cuh, what it is computed in, bytes of an element. */
typedef struct chain_type {
    uint32_t type;
    const char *tag, *value;
    int size;
} chain_type;

const chain_type *chain_steps_type(uint32_t type); /* NULL: it has none */

/* "compute", of the operands of one element: names of its operators come from the table, numbers are bits. */
void chain_steps_function(chain_writer *w);
