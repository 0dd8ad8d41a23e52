/* The best box that overlaps none of those that are kept already, as often as there may be one. */
#include "scout/cpu/reference/cpu_reference_reduce.h"

/* -1: none. */
static int64_t best_of(const suppress_problem *p, const float *scores, const bool *gone) {
    int64_t best = -1;
    for (int64_t k = 0; k < p->boxes; k++)
        if (!gone[k] && scores[k] > p->threshold && (best < 0 || scores[k] > scores[best])) best = k;
    return best;
}

static void give_up(const suppress_problem *p, const float *boxes, int64_t best, bool *gone) {
    const suppress_box its = suppress_box_of(boxes + 4 * best, p->centred);
    for (int64_t k = 0; k < p->boxes; k++) {
        const suppress_box other = suppress_box_of(boxes + 4 * k, p->centred);
        if (k == best || suppress_overlaps(&its, &other, p->overlap)) gone[k] = true;
    }
}

void cpu_reference_suppress(const scout_op *op, void *const *tensors, double *want, double *spread, bool *gone) {
    const suppress_problem p = suppress_problem_of(op);
    const int64_t lists = p.images * p.classes;
    double *rows = want;
    for (int64_t k = 0; k < 3 * lists * p.most; k++) want[k] = spread[k] = 0;
    for (int64_t list = 0; list < lists; list++) {
        const int64_t image = list / p.classes;
        const float *boxes = (const float *)tensors[SUPPRESS_BOXES] + image * p.boxes * 4;
        const float *scores = (const float *)tensors[SUPPRESS_SCORES] + list * p.boxes;
        int64_t kept = 0, best;
        memset(gone, 0, (size_t)p.boxes * sizeof *gone);
        while (kept < p.most && (best = best_of(&p, scores, gone)) >= 0) {
            double *const row = rows + 3 * kept++;
            row[0] = (double)image, row[1] = (double)(list % p.classes), row[2] = (double)best;
            give_up(&p, boxes, best, gone);
        }
        rows += 3 * kept;
    }
}
