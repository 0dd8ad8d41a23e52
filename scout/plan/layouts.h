/* Images with their channels last. An operation that works on images as the file lays them, channels second, has a
 * turned form; a region is connected operations that have one. Where a region runs turned, what enters or leaves it is
 * converted once per tensor, and a transposition that the file has there does nothing. A run of the model in which some
 * regions do is a dataflow of its own. */
#pragma once

#include "scout/fusion/fusion.h"
#include "scout/input/operation.h"

typedef struct layouts_image { /* of a tensor of the dataflow */
    bool turns;                /* its elements lie otherwise with channels last, and a region has it */
    int member;                /* an occurrence of that region */
    int same;                  /* a tensor of the file that holds it turned; -1: there is none */
    int there, back; /* items that convert it from the file's order, and back to it; -1: no region needs that */
} layouts_image;

typedef struct layouts {
    int own;               /* items of the list that are the file's; turned ones and conversions stand behind them */
    int *turned;           /* by occurrence: the item that it runs as in a region; -1: it is in none */
    int *region;           /* by occurrence; -1 */
    int *regions;          /* occurrences of each region, behind each other */
    int *begins;           /* by region, and one more: where its occurrences begin */
    int region_count;      /* 0: there is nothing to turn */
    int *idle;             /* by occurrence: the region that makes a transposition do nothing; -1 */
    layouts_image *images; /* by tensor */
} layouts;

/* Puts what its regions need behind the list's items, which move: their own addresses are not to be kept before. In the
 * arena. */
layouts *layouts_find(operation_list *list, uint64_t workspace_limit, arena *a);

/* Puts the fusions of turned operations behind the others, for the places that lie in regions. */
void layouts_fusions(const layouts *l, operation_list *list, fusion_list *fusions, arena *a);

typedef struct layouts_dims { /* of an image, in the file's order */
    int rank;                 /* 0: not known */
    int64_t of[SCOUT_MAX_RANK];
} layouts_dims;
/* The record with its channels last. `image`: what it reads first, for a reduction, a norm or a shuffle tells no
 * dimensions of it. False: it has no such form. layouts_turn.c */
bool layouts_turn(const oprec *from, const layouts_dims *image, arena *a, oprec *to);
/* Whether a record has one by itself, or with the dimensions of what it reads. */
bool layouts_may_turn(const oprec *rec);
/* A transposition that moves the channels of such an image behind its space, or back. */
bool layouts_is_turn(const oprec *rec, const layouts_dims *image, bool back);
/* That moves channels behind space, or back. */
void layouts_conversion(const layouts_dims *image, dtype type, int64_t bytes, bool back, arena *a, oprec *to);

/* The tensor that a view is all of, as it lies; any other one itself. */
int layouts_whole(const operation_flow *f, int tensor);

/* A run in which some regions are turned. Its tensors are those of the file's dataflow, and turned ones behind them. */
typedef struct layouts_run {
    operation_flow *flow;
    int *from;     /* by occurrence: the file's; -1: a conversion */
    int *at;       /* by occurrence of the file: its own */
    int *converts; /* by occurrence: the file's tensor that it converts, there or back; -1: none */
    int conversions;
} layouts_run;
layouts_run *layouts_rewrite(const layouts *l, const operation_flow *file, const bool *turned, arena *a);
