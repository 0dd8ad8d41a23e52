/* The best box that overlaps none of those that are kept already, as often as there may be one. */
#include "scout/cpu/reference/cpu_reference_suppress.h"

#include <stdbool.h>

static bool stays(const suppress_problem *p, const float *boxes, int64_t k, const double *rows, int64_t kept) {
    const suppress_box its = suppress_box_of(boxes + 4 * k, p->centred);
    for (int64_t r = 0; r < kept; r++) {
        const suppress_box other = suppress_box_of(boxes + 4 * (int64_t)rows[3 * r + 2], p->centred);
        if ((int64_t)rows[3 * r + 2] == k || suppress_overlaps(&other, &its, p->overlap)) return false;
    }
    return true;
}

/* -1: none. */
static int64_t best_of(const suppress_problem *p, const float *boxes, const float *scores, const double *rows,
                       int64_t kept) {
    int64_t best = -1;
    for (int64_t k = 0; k < p->boxes; k++)
        if (scores[k] > p->threshold && (best < 0 || scores[k] > scores[best]) && stays(p, boxes, k, rows, kept))
            best = k;
    return best;
}

void cpu_reference_suppress(const scout_op *op, void *const *tensors, double *want, double *spread) {
    const suppress_problem p = suppress_problem_of(op);
    const int64_t lists = p.images * p.classes;
    double *rows = want;
    for (int64_t k = 0; k < 3 * lists * p.most; k++) want[k] = spread[k] = 0;
    for (int64_t list = 0; list < lists; list++) {
        const int64_t image = list / p.classes;
        const float *boxes = (const float *)tensors[SUPPRESS_BOXES] + image * p.boxes * 4;
        const float *scores = (const float *)tensors[SUPPRESS_SCORES] + list * p.boxes;
        int64_t kept = 0, best;
        while (kept < p.most && (best = best_of(&p, boxes, scores, rows, kept)) >= 0) {
            double *const row = rows + 3 * kept++;
            row[0] = (double)image, row[1] = (double)(list % p.classes), row[2] = (double)best;
        }
        rows += 3 * kept;
    }
}
