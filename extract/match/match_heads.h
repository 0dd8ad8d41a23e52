/* How the tensors of an attention lie. A transpose or a slice that only the attention reads is how it reads its operand
 * (strides), and a transpose that alone reads what it makes is how it writes it: none of them is a copy that has to be
 * made. */
#pragma once

#include "extract/match/match_flow.h"

enum { HEADS_MAX_STEPS = 24, HEADS_Q = 0, HEADS_K, HEADS_V, HEADS_OUT, HEADS_SIDES };

/* Between an operand and what the attention reads for it: its own nodes, the one next to the product first. */
typedef struct heads_path {
    tensor *end;
    node *nodes[HEADS_MAX_STEPS];
    int count, own; /* how many of them belong to the attention; what is above is made by others */
} heads_path;

/* One of the four. Its dimensions in the order in which `path.end` has them, and which of them is which. */
typedef struct heads_lie {
    heads_path path;
    int64_t dims[5];
    int rank, sequence, head, row, size; /* places among dims */
    bool told;                           /* the rest is known */
    int64_t strides[3];                  /* from sequence to sequence, head to head and row to row */
} heads_lie;

/* Dimensions of one that lies [sequences, heads, rows, size], or with size before rows. repeat: each head stands there
 * so often, one behind the other. */
void heads_lie_set(heads_lie *l, const int64_t *dims, int64_t repeat, bool turned);

/* Where a transpose alone reads what the attention makes, adds the nodes down to it to the set. Returns the last node
 * of the attention: the transpose, or the one that makes out->path.end. Sets out->strides; what they are not known of
 * is told no more. */
node *heads_follow(match *m, heads_lie *out, flow_set *set);

/* Of a joined attention (or one that is a node): finds how its operands lie, makes the moves above them free, and tells
 * it in the record. */
void heads_tell(match *m, work *w, heads_lie *sides);

/* The operand that the kind of its mask has. added: all that is added to the scores, whatever its kind; NULL: more than
 * that is done to them. */
void heads_tell_mask(work *w, tensor *added);
