/* What a job asks to be measured: read when the job comes, or when it is announced. */
#ifndef SCOUT_WORKER_WORKER_REQUEST_H
#define SCOUT_WORKER_WORKER_REQUEST_H

#include "common/json.h"
#include "scout/measure/measure.h"

typedef struct worker_request { /* of one job, or of all passes of one operation, with what its parts borrow from */
    guard guard;
    arena arena;
    operation operation;
    ceilings ceilings;
    measure_exclusion *exclusions;
    fusion_part parts[FUSION_PARTS];
    measure_request measure;
} worker_request;

/* Owned: worker_request_free. NULL: st says what is wrong with it. Borrows from the body. */
worker_request *worker_request_new(const json_t *body, status *st);
void worker_request_free(worker_request *r);
/* The ceilings that the body has, for a request that was read without. False: st says why. */
bool worker_request_tell_ceilings(worker_request *r, const json_t *body, status *st);
/* A finite number of the body, or another one. */
double worker_request_number(const json_t *body, const char *key, double otherwise);

#endif
