/* The CUDA source of one pass over memory that computes a whole chain of elementwise steps
 * (scout/op/elementwise_chain.h), for one shape: dimensions, strides and numbers are constants in it. No text of a
 * model or a file is in it: operators and types are named by the tables, numbers are written as their bits. Needs no
 * CUDA to be written. */
#pragma once

#include "scout/op/elementwise_chain.h"

/* How the kernel reads an operand's elements. */
typedef enum chain_source_way {
    CHAIN_SOURCE_FULL,  /* lies as the output does: whole pieces */
    CHAIN_SOURCE_ALONE, /* one element for all */
    CHAIN_SOURCE_PIECE, /* whole pieces, from another place for each row */
    CHAIN_SOURCE_SPLAT, /* one element for a piece */
    CHAIN_SOURCE_EACH   /* element by element */
} chain_source_way;

/* Threads of a block divide this: registers are shared out so that these can run. */
enum { CHAIN_SOURCE_MOST_THREADS = 512 };

typedef struct chain_source_config {
    int bytes;  /* of the narrowest tensor's piece: 16 or 8 */
    int pieces; /* of each operand that a thread has in flight: one of chain_source_pieces */
    int stream; /* 1: hints that nothing is read again */
} chain_source_config;

typedef struct chain_source {
    elementwise_chain chain;
    elementwise_walk walk;
    uint32_t output;
    int elements; /* of a piece */
    chain_source_way ways[ELEMENTWISE_MAX_OPERANDS];
    chain_source_config config;
} chain_source;

/* What a kernel of it would be. 0: it cannot be (why says so). */
int chain_source_of(const scout_op *op, chain_source_config config, chain_source *out, scout_why *why);

enum { CHAIN_SOURCE_PIECES = 3 };
extern const int chain_source_pieces[CHAIN_SOURCE_PIECES]; /* the usual one first */

/* The source of a program with two kernels of it: the one that chain_source_kernel names, for tensors at multiples of
 * 16 bytes, and chain_single for any, both with the operands' pointers and then the output's as parameters. All that
 * differs from the usual pieces and no hints is one program. Owned by the caller (free); NULL: no memory. It includes
 * kernels/pass/elementwise_chain.cuh, one of chain_source_includes. */
char *chain_source_text(const chain_source *s);
enum { CHAIN_SOURCE_NAME = 48 };
void chain_source_kernel(const chain_source *s, char name[CHAIN_SOURCE_NAME]);
enum { CHAIN_SOURCE_INCLUDES = 2 };
extern const char *const chain_source_include_names[CHAIN_SOURCE_INCLUDES];
/* Their texts, one after the other in one string; owned by the caller, NULL: no memory. */
char *chain_source_include(int include);

/* Elements that a block of that many threads computes at a time. */
int64_t chain_source_tile(const chain_source *s, int threads);
