/* A candidate prepared for an operation outside of its measurement: the one and the variant that it was found to run
 * best as, or the library's default. Fusions' parts and the replay of a model are made of these. */
#pragma once

#include "scout/plugin.h"
#include "scout/terms/variants.h"

typedef struct choice_wish { /* all borrowed */
    const scout_device_api *api;
    const scout_op *op;
    const char *id;                  /* of the operation, for complaints */
    const char *candidate, *variant; /* wished for; variant NULL: the candidate has none */
    bool exhaustive;                 /* its variants were found so */
} choice_wish;

typedef struct choice {
    const scout_candidate *candidate;
    char variant[VARIANTS_TEXT];
    scout_plan *plan; /* owned: scout_destroy */
    scout_plan_needs needs;
} choice;

/* By the name and variant that are wished for. */
scout_answer choice_named(const choice_wish *w, scout_device *device, choice *out, scout_why *why);
/* The library's own default: the first baseline candidate that can. */
scout_answer choice_default(const choice_wish *w, scout_device *device, choice *out, scout_why *why);
