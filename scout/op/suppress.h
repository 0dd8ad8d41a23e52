/* Boxes of which those that overlap a better one are given up (nonmaxsuppression). Tensors: "x" [B, boxes, 4], two
 * corners, or with center_point_box the centre, width and height; "scores" [B, classes, boxes]; "y" [rows, 3]: image,
 * class and box of what is kept, by image and class and from the best score on, and zeros behind. Rows are as many as
 * there can be. Of equal scores the first one comes first.
 *
 * Everything is in fp32, one rounding after the other, so that all devices keep the same boxes. Header-only, shared by
 * candidates of all devices and by plugins. */
#ifndef SCOUT_OP_SUPPRESS_H
#define SCOUT_OP_SUPPRESS_H

#include "scout/op/op.h"

#include <math.h>

enum { SUPPRESS_BOXES = 0, SUPPRESS_SCORES = 1, SUPPRESS_Y = 2 };

typedef struct suppress_problem {
    int64_t images, classes, boxes, most; /* most: kept of a class */
    int centred;
    float overlap, threshold; /* of boxes that are given up; of scores that count, which are above it */
} suppress_problem;

static inline int suppress_is(const scout_op *op) { return op_is(op, "nonmaxsuppression"); }

static inline suppress_problem suppress_problem_of(const scout_op *op) {
    const scout_tensor *scores = &op->tensors[SUPPRESS_SCORES];
    suppress_problem p = {.images = scores->dims[0], .classes = scores->dims[1], .boxes = scores->dims[2]};
    p.most = op->shape[0] / (p.images * p.classes);
    p.centred = op_number(op, "center_point_box", 0) != 0;
    p.overlap = (float)op_real(op, "iou_threshold", 0);
    p.threshold = (float)op_real(op, "threshold", -INFINITY);
    return p;
}

typedef struct suppress_box {
    float x0, y0, x1, y1, area;
} suppress_box;

static inline suppress_box suppress_box_of(const float *at, int centred) {
    suppress_box b;
    if (centred) {
        const float w = at[2] / 2, h = at[3] / 2;
        b.x0 = at[0] - w, b.x1 = at[0] + w, b.y0 = at[1] - h, b.y1 = at[1] + h;
    } else {
        b.x0 = at[1] < at[3] ? at[1] : at[3], b.x1 = at[1] < at[3] ? at[3] : at[1];
        b.y0 = at[0] < at[2] ? at[0] : at[2], b.y1 = at[0] < at[2] ? at[2] : at[0];
    }
    const float w = b.x1 - b.x0, h = b.y1 - b.y0;
    b.area = w * h;
    return b;
}

static inline int suppress_overlaps(const suppress_box *a, const suppress_box *b, float overlap) {
    const float x0 = a->x0 > b->x0 ? a->x0 : b->x0, x1 = a->x1 < b->x1 ? a->x1 : b->x1;
    const float y0 = a->y0 > b->y0 ? a->y0 : b->y0, y1 = a->y1 < b->y1 ? a->y1 : b->y1;
    const float w = x1 - x0, h = y1 - y0;
    const float shared = w * h; /* statements of their own: no two roundings become one */
    const float both = a->area + b->area;
    const float covered = both - shared;
    return w > 0 && h > 0 && a->area > 0 && b->area > 0 && covered > 0 && shared / covered > overlap;
}

#endif
