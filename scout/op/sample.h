/* Values between the places of an image, read from the tensors and fields of a scout_op: at points that a grid tells
 * (gridsample), and over regions that are cut into bins (roi_align). Header-only, shared by candidates and by plugins.
 * Tensors of a gridsample: "input" [N, C, H, W], "grid" [N, rows, columns, 2] (x and y from -1 to 1), "output". Of a
 * roi_align: "input", "rois" [R, 4] (x, y, x, y), "batches" [R] (int64, which image), "output" [R, C, rows, columns].
 * Of a cropandresize the same, with rois (y, x, y, x) as parts of the image, and batches of int32: the corners of a
 * region are corners of its output, and what lies beyond the image has a value of its own.
 */
#ifndef SCOUT_OP_SAMPLE_H
#define SCOUT_OP_SAMPLE_H

#include "scout/op/op.h"

#include <math.h>

/* SAMPLE_SAMPLING, SAMPLE_SIDE: the most points of a bin along an axis that an operation may ask for, and the widest
 * square that its regions may lie in; what a bin of any other region has is cut off at SAMPLE_POINTS. */
enum { SAMPLE_SAMPLING = 64, SAMPLE_SIDE = 1 << 15, SAMPLE_POINTS = 1 << 15 };
enum { SAMPLE_TAPS = 16, SAMPLE_INPUT = 0, SAMPLE_GRID = 1, SAMPLE_ROIS = 1, SAMPLE_BATCHES = 2 };

typedef enum sample_mode { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC, SAMPLE_MAX, SAMPLE_MODES } sample_mode;
typedef enum sample_beyond { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION, SAMPLE_BEYONDS } sample_beyond;

typedef struct sample_problem {
    int regions;          /* roi_align, else gridsample */
    sample_mode mode;     /* linear is the average of a region; what is not known has the number behind the last one */
    sample_beyond beyond; /* of a gridsample */
    int corners;          /* align_corners */
    int half;             /* regions are moved by half a place */
    int crops;            /* cropandresize */
    double outside;       /* of that: what stands for points beyond the image */
    int64_t sampling;     /* points of a bin along each axis; 0: as many as it has places */
    double scale;         /* of regions */
    int64_t count, channels, in[2], out[2]; /* count: images, or regions; rows and columns */
} sample_problem;

static inline int sample_crops(const scout_op *op) { return op_is(op, "cropandresize"); }
static inline int sample_is(const scout_op *op) {
    return op_is(op, "gridsample") || op_is(op, "roi_align") || sample_crops(op);
}

static inline sample_problem sample_problem_of(const scout_op *op, const int64_t *input) {
    static const char *const modes[SAMPLE_MODES] = {"linear", "nearest", "cubic", "max"};
    static const char *const beyonds[SAMPLE_BEYONDS] = {"zeros", "border", "reflection"};
    const char *const mode = op_text(op, "mode"), *const beyond = op_text(op, "padding_mode");
    const char *const way = op_text(op, "coordinates");
    sample_problem p;
    int k = 0;
    memset(&p, 0, sizeof p);
    p.regions = op_is(op, "roi_align");
    p.crops = sample_crops(op), p.outside = op_real(op, "extrapolation_value", 0);
    while (mode && k < SAMPLE_MODES && strcmp(mode, modes[k]) != 0) k++;
    if (mode && p.regions && strcmp(mode, "avg") == 0) k = SAMPLE_LINEAR;
    p.mode = (sample_mode)k;
    k = 0;
    while (beyond && k < SAMPLE_BEYONDS && strcmp(beyond, beyonds[k]) != 0) k++;
    p.beyond = (sample_beyond)k;
    p.corners = op_real(op, "align_corners", 0) != 0;
    p.half = !way || strcmp(way, "half_pixel") == 0;
    p.sampling = op_number(op, "sampling_ratio", 0);
    p.scale = op_real(op, "spatial_scale", 1);
    p.count = op->shape[0], p.channels = op->shape[1];
    for (int d = 0; d < 2; d++) p.in[d] = input[2 + d], p.out[d] = op->shape[2 + d];
    return p;
}

/* ---- points of a grid ---- */

/* To and fro between two ends. */
static inline double sample_reflect(double x, double least, double most) {
    const double range = most - least;
    if (range <= 0) return least;
    const double beyond = x < least ? least - x : x > most ? x - most : 0, times = floor(beyond / range);
    const double rest = beyond - times * range;
    if (beyond == 0) return x;
    return (fmod(times, 2) == 0) == (x < least) ? least + rest : most - rest;
}

/* Where a place of an axis lies that may be beyond it; -1: nowhere. */
static inline int64_t sample_inside(const sample_problem *p, int axis, double at) {
    const double last = (double)(p->in[axis] - 1), edge = p->corners ? 0 : 0.5;
    if (p->beyond == SAMPLE_ZEROS) return at >= 0 && at <= last ? (int64_t)at : -1;
    if (p->beyond == SAMPLE_REFLECTION) at = sample_reflect(at, -edge, last + edge);
    return (int64_t)(at > last ? last : at > 0 ? at : 0); /* what is no number is at the beginning */
}

/* Along one axis: the first place and the weights of those that a point is mixed from; returns how many. */
static inline int sample_weights(const sample_problem *p, int axis, double told, double *first, double *weights) {
    const double length = (double)p->in[axis], edge = p->corners ? 0 : 0.5, least = -edge, most = length - 1 + edge;
    double x = p->corners ? (told + 1) / 2 * (length - 1) : ((told + 1) * length - 1) / 2;
    if (p->mode == SAMPLE_NEAREST) x = rint(x);
    if (p->beyond == SAMPLE_BORDER && (x < least || x > most)) x = x < 0 ? 0 : length - 1;
    if (p->beyond == SAMPLE_REFLECTION && (x < least || x > most)) x = sample_reflect(x, least, most);
    const double below = floor(x), t = x - below, a = -0.75;
    *first = below;
    if (p->mode == SAMPLE_NEAREST) {
        *first = rint(x), weights[0] = 1;
        return 1;
    }
    if (p->mode == SAMPLE_LINEAR) {
        weights[0] = 1 - t, weights[1] = t;
        return 2;
    }
    *first = below - 1;
    weights[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    weights[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weights[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
    weights[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
    return 4;
}

/* Places in the plane (row * width + column) and weights of a point; returns how many. */
static inline int sample_taps(const sample_problem *p, double x, double y, int64_t *places, double *weights) {
    double first[2], along[2][4];
    const int rows = sample_weights(p, 0, y, &first[0], along[0]), cols = sample_weights(p, 1, x, &first[1], along[1]);
    int count = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) {
            const int64_t row = sample_inside(p, 0, first[0] + r), col = sample_inside(p, 1, first[1] + c);
            if (row < 0 || col < 0) continue;
            places[count] = row * p->in[1] + col, weights[count] = along[0][r] * along[1][c];
            count++;
        }
    return count;
}

/* ---- crops ---- */

/* Point (row, col) of a crop: places in the plane and weights; returns how many, 0 where it lies beyond the image. */
static inline int sample_crop_taps(const sample_problem *p, const double *roi, const int64_t *bin, int64_t *places,
                                   double *weights) {
    int64_t low[2], high[2];
    double above[2];
    for (int d = 0; d < 2; d++) {
        const double last = (double)(p->in[d] - 1), from = roi[d] * last, size = (roi[2 + d] - roi[d]) * last;
        const double at = p->out[d] > 1 ? from + (double)bin[d] * (size / (double)(p->out[d] - 1)) : from + size / 2;
        if (!(at >= 0 && at <= last)) return 0;
        low[d] = (int64_t)(p->mode == SAMPLE_NEAREST ? round(at) : at);
        high[d] = low[d] < p->in[d] - 1 ? low[d] + 1 : low[d];
        above[d] = at - (double)low[d];
    }
    if (p->mode == SAMPLE_NEAREST) {
        places[0] = low[0] * p->in[1] + low[1], weights[0] = 1;
        return 1;
    }
    for (int k = 0; k < 4; k++) {
        places[k] = (k & 2 ? high[0] : low[0]) * p->in[1] + (k & 1 ? high[1] : low[1]);
        weights[k] = (k & 2 ? above[0] : 1 - above[0]) * (k & 1 ? above[1] : 1 - above[1]);
    }
    return 4;
}

/* ---- regions ---- */

typedef struct sample_region {
    double from[2], bin[2]; /* rows, columns */
    int64_t points[2];
} sample_region;

/* Regions as the harness fills them lie in a square from 0 on that has this side, and are up to half as wide and high:
 * so the whole square is in the image. 0: the scale leaves none, or too large a one. */
static inline int64_t sample_side(const sample_problem *p) {
    const double side = (double)(p->in[0] < p->in[1] ? p->in[0] : p->in[1]) / p->scale;
    return side >= 1 && side < SAMPLE_SIDE + 1 ? (int64_t)side : 0;
}

/* Most points of a bin of such a region. */
static inline double sample_most_points(const sample_problem *p) {
    double points = 1;
    for (int d = 0; d < 2; d++) {
        const double bin = fmax((double)sample_side(p) / 2 * p->scale, 1) / (double)p->out[d];
        points *= p->sampling > 0 ? (double)p->sampling : ceil(bin);
    }
    return points;
}

/* roi: x, y, x, y. */
static inline sample_region sample_region_of(const sample_problem *p, const double *roi) {
    sample_region r;
    for (int d = 0; d < 2; d++) { /* rows are y */
        const double offset = p->half ? 0.5 : 0, begin = roi[1 - d] * p->scale - offset;
        double size = roi[3 - d] * p->scale - offset - begin;
        if (!p->half && size < 1) size = 1;
        r.from[d] = begin, r.bin[d] = size / (double)p->out[d];
        r.points[d] = p->sampling > 0 ? p->sampling : (int64_t)fmin(fmax(ceil(r.bin[d]), 0), SAMPLE_POINTS);
    }
    return r;
}

/* How many points of a bin are averaged: at least one. */
static inline double sample_points(const sample_region *r) {
    return r->points[0] > 0 && r->points[1] > 0 ? (double)r->points[0] * (double)r->points[1] : 1;
}

/* Along one axis: the point's lower neighbour, and the weight of the one above it; -1: it lies outside. */
static inline int64_t sample_between(double x, int64_t length, double *above) {
    if (!(x >= -1 && x <= (double)length)) return -1;
    const double inside = x < 0 ? 0 : x;
    const int64_t low = (int64_t)inside < length - 1 ? (int64_t)inside : length - 1;
    *above = low == length - 1 ? 0 : inside - (double)low;
    return low;
}

/* Point (i, j) of bin (row, col): four places and weights, or none. */
static inline int sample_point(const sample_problem *p, const sample_region *r, const int64_t *bin,
                               const int64_t *point, int64_t *places, double *weights) {
    int64_t low[2], high[2];
    double above[2];
    for (int d = 0; d < 2; d++) {
        const double x =
            r->from[d] + (double)bin[d] * r->bin[d] + ((double)point[d] + 0.5) * r->bin[d] / (double)r->points[d];
        low[d] = sample_between(x, p->in[d], &above[d]);
        if (low[d] < 0) return 0;
        high[d] = low[d] < p->in[d] - 1 ? low[d] + 1 : low[d];
    }
    for (int k = 0; k < 4; k++) {
        places[k] = (k & 2 ? high[0] : low[0]) * p->in[1] + (k & 1 ? high[1] : low[1]);
        weights[k] = (k & 2 ? above[0] : 1 - above[0]) * (k & 1 ? above[1] : 1 - above[1]);
    }
    return 4;
}

#endif
