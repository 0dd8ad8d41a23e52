/* The key of a measurement in the cache: everything that decides what is measured, and how. */
#pragma once

#include "common/arena.h"
#include "scout/terms/regime.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct measure_key {
    const char *operation;     /* its own key */
    bool left;                 /* it is one of a run whose dataflow is known: */
    uint64_t written, distant; /* how that leaves its tensors, as the operation has it */
    double handed, crowd_written;
    regime regime;
    uint64_t candidates; /* plugins_candidates_hash */
    bool exhaustive;
    const char *candidate; /* names that were asked for; NULL: all */
    double early_exit;
    uint64_t workspace_limit;
    bool cut;            /* it was given less time than usual, and serves only those that have no more */
    const char *compare; /* of a comparison what stands first, or ""; NULL: it is none */
    const char *card;    /* measure_key_card; NULL: any of its class */
} measure_key;

extern const double measure_key_early_exit; /* the usual one */

char *measure_key_text(const measure_key *k, arena *a);
/* A card by its device instance, as short as a key wants it. */
const char *measure_key_card(const char *instance, arena *a);
