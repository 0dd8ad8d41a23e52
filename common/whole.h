/* A model that was measured as a whole: what model.json says of it (docs/formats.md), read as if a stranger had written
 * it, and the sentence in which people are told. */
#pragma once

#include "common/json.h"

#include <stdbool.h>

typedef struct whole_time {
    double us, ci;         /* ci: relative half width; infinite: not known */
    double sum_us, sum_ci; /* of its parts, each measured by itself; sum_us 0: not known */
} whole_time;

typedef struct whole_model {
    bool known;
    bool same; /* nothing is proven to be faster than the default: `best` is `first` */
    whole_time first, best;
    double ratio, ratio_ci; /* of best over first; 1 and 0 where they are the same */
    int left_out;           /* operations that take no part */
} whole_model;

/* False: it is no model.json, or says what cannot be; st tells. */
bool whole_read(const json_t *root, const char *path, whole_model *out, status *st);

/* "1.23 ms by the libraries' defaults, 1.10 ms by what is proven (both measured as a whole; the sums of their parts are
 * 1.19 ms and 1.05 ms)". */
void whole_say(const whole_model *w, char *text, size_t room);
