/* Variants of a candidate for one operation: the combinations of its domain's values that it allows, in an order that
 * is the same in every run, and the texts that name them ("algo=6,weight=packed") in reports, caches and options. Such
 * a text gives its values back here, so that no variant is ever prepared that its candidate does not offer.
 */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>

enum { VARIANTS_TEXT = 160 };

typedef struct variants { /* all borrowed */
    const scout_candidate *candidate;
    const scout_op *op;
    scout_device *device;
    const scout_domain *domain;
    int next[SCOUT_MAX_PARAMETERS]; /* indices of the next combination */
    bool begun, ended;
} variants;

typedef struct variants_one {
    int64_t values[SCOUT_MAX_PARAMETERS];
    char text[VARIANTS_TEXT];
    bool first; /* of those that are allowed: the library's own choice, where it makes one */
} variants_one;

/* Asks the candidate for its domain, which is put into `room`. A domain that cannot be one is SCOUT_FAILED. */
scout_answer variants_open(variants *v, const scout_candidate *candidate, const scout_op *op, scout_device *device,
                           bool exhaustive, scout_domain *room, scout_why *why);
/* The next one that is allowed; the last parameter turns fastest. False: that was all. */
bool variants_next(variants *v, variants_one *out);
/* The allowed one of that name, wherever variants_next is. A parameter that the name leaves out has its first value:
 * the name of a ceiling says only what was varied. False: there is none today. */
bool variants_find(const variants *v, const char *text, variants_one *out);

/* "algo=6,weight=transposed" from a domain and the index of each parameter's value; "" where there are no parameters.
 */
void variants_text(const scout_domain *domain, const int *indices, char *text, size_t room);
