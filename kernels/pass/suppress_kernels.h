/* Boxes that overlap better ones are given up, as a plain C function; what kernels/pass/pass_kernels.h says of passes
 * holds here, too. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* boxes [images, boxes, 4] and scores [images, classes, boxes] in fp32, y [images * classes * most, 3] in int64: what
 * is kept by image and class and from the best score on, and zeros behind (scout/op/suppress.h). */
typedef struct suppress_pass {
    int64_t images, classes, boxes, most; /* most: kept of a class; boxes: below 2^31 */
    int centred;
    float overlap, threshold;
} suppress_pass;

int suppress_pass_fits(const suppress_pass *pass);
size_t suppress_pass_workspace(const suppress_pass *pass); /* bytes, at a multiple of 16 */
int suppress_pass_launch(const suppress_pass *pass, const void *boxes, const void *scores, void *y, void *workspace,
                         void *stream);

#ifdef __cplusplus
}
#endif
