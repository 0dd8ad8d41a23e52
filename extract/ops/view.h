/* Views by strides: how what a move makes lies in the memory of another tensor, its source. A view is a list of
 * factors, the outermost first, which multiply to the number of its elements. So a reshape changes nothing, and
 * dimensions are cut out of the list only where something asks for them. */
#pragma once

#include "extract/ops/work.h"

enum { VIEW_FACTORS = INFO_MAX_RANK };

typedef struct view_factor {
    int64_t size, stride; /* in elements of the source */
} view_factor;

typedef struct view {
    int64_t offset;   /* of its first element, in elements of the source */
    int64_t elements; /* of the source */
    int count;
    view_factor factors[VIEW_FACTORS];
} view;

/* The tensor itself, which lies row-major; false: that is not known exactly. */
bool view_whole(view *v, const tensor *t);

/* What a move makes as its output k, where v is its first input: a transpose, a slice, a split, an expand, a tile or a
 * gather of one index. false: it does more, or no strides tell it; then v holds nothing. *before is 0 for the first
 * output and handed on to the next ones of a split, which are asked for in order. */
bool view_move(view *v, const work *w, int k, int64_t *before);

/* Regroups the factors to one for each of these dimensions; false, and v as it was: a dimension has no one stride. */
bool view_cut(view *v, int rank, const int64_t *dims);

/* Of a view that is another order of its whole source: how the source lies in a tensor that has this order. */
bool view_turn(view *v);
