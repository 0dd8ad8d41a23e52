/* Short runs of elements between the types of tensors and what own loops compute in: fp32 of floats, of truth and of
 * quantised bytes, int64 of integers, fp64. */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>

enum { CPU_BLOCKS_MOST = 512 }; /* elements at a time: all operands of a block stay in the first cache */

/* `count` neighbours from element `at`. */
typedef void cpu_blocks_load(const void *data, int64_t at, int64_t count, void *block);
typedef void cpu_blocks_store(const void *block, int64_t count, void *data, int64_t at);

typedef struct cpu_blocks {
    cpu_blocks_load *load;
    cpu_blocks_store *store;
    bool plain;            /* the type is what is computed in: no copy is needed */
    size_t size, in_block; /* bytes of an element in a tensor, and in a block */
} cpu_blocks;

typedef enum cpu_blocks_in { CPU_BLOCKS_FLOATS, CPU_BLOCKS_WHOLES, CPU_BLOCKS_DOUBLES } cpu_blocks_in;

/* In fp32, int64 or fp64. Bytes as fp32 are quantised numbers: the zero point of unsigned ones is 128, and a store
 * rounds and saturates. uint64 keeps its bits in int64. false: this type is not supported so. */
bool cpu_blocks_of(uint32_t type, cpu_blocks_in in, cpu_blocks *out);
