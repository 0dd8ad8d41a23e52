/* The numbers of a weight, where its zeros matter: read from the model's file, or made up from the pattern that was
 * asked for. Everything in a model's file is untrusted: a place outside of its file, a file outside of its folder, or a
 * size that does not fit is a reason, and the weight counts as unreachable. */
#pragma once

#include "common/json.h"
#include "scout/input/operation.h"
#include "scout/input/sparsity.h"
#include "scout/plugin.h"

#include <stdbool.h>
#include <stdint.h>

/* Splits entries whose weights are not alike: one for the dense ones, one for each pattern, fraction of zeros and side
 * of blocks. Weights are looked at where they can be reached; what cannot be stays as it is. `model`: the path that
 * ops.json gives; NULL: none. With a threshold, whose question is asked of all weights, the dense ones get the first of
 * theirs as well. New entries lie in the arena. */
void weights_split(operation_list *list, const char *model, double threshold, arena *a);

/* Whether splitting them would read a weight: one lies in a file, as ops.json tells. */
bool weights_wanted(const operation_list *list);

/* Has the zeros of all weights counted with what is below a threshold as well; 0: without. What is no weight is not
 * asked. */
void weights_ask(operation_list *list, double threshold);

/* The counter of zeros: a device that can, where there is one. */
typedef struct weights_counter {
    const scout_device_api *api;
    scout_device *device;
} weights_counter;

/* Whether the values of the operation's weight are needed: else weights_make has nothing to do. */
bool weights_matter(const operation *o);

typedef struct weights_content {
    uint32_t tensor; /* its place in op->tensors */
    void *bytes;     /* owned: weights_free; NULL: the weight's values are not needed */
    sparsity_facts facts;
    sparsity_conversion conversion; /* to blocks, at the threshold that was asked for */
    bool on_device;                 /* its zeros were counted there */
} weights_content;

/* What an operation's weight holds, and the fields that tell candidates of it, in the arena (weight_nonzeros,
 * weight_block, weight_blocks_16, …). counter NULL: the host counts. False: why. */
bool weights_make(const operation *o, scout_op *op, uint64_t seed, const weights_counter *counter, arena *a,
                  weights_content *out, scout_why *why);
/* The same fields of a weight whose facts are known; and which tensor is the weight (-1: none). */
void weights_tell(scout_op *op, const sparsity_facts *f, arena *a);
int weights_place_of(const scout_op *op);
void weights_free(weights_content *w);
json_t *weights_json(const weights_content *w, const operation *o, json_builder *b);

typedef struct weights_place {
    const char *model; /* path of the model */
    const char *file;  /* the file that holds it: the model's own name, or one in the model's folder */
    const char *name;  /* what the model calls it */
    int64_t offset, length;
} weights_place;

/* Fills `to` with all of it. False: why (unreachable: the file is not there, is too short, lies outside of the model's
 * folder; or the length is not `bytes`). */
bool weights_file_read(const weights_place *at, void *to, uint64_t bytes, scout_why *why);
/* The same for a part of it, from `from` on. */
bool weights_file_part(const weights_place *at, uint64_t from, void *to, uint64_t bytes, scout_why *why);
