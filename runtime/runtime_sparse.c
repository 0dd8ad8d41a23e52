/* Weights with zeros. A table has another entry for a product whose weight has this pattern of zeros: its key tells
 * which ones they are. What candidates for it must know (how many numbers, which blocks) the weight itself tells. */
#include "runtime/runtime_internal.h"

#include "scout/input/weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct sparse {
    const scout_run_op *op;
    sparsity_facts facts;
} sparse;

/* The operation of the key, with this weight's zeros as extract and scout_batch find them in a model's file. */
static void describe(void *context, arena *a, operation *out) {
    const sparse *s = context;
    operation_from_key(s->op->op.key, a, out);
    if (out->sparsity > 0) return; /* its key has them: a weight that was made up, or this one */
    out->sparsity = s->facts.zeros;
    out->pattern = s->facts.pattern;
    out->zeros_hash = s->facts.hash;
    out->weight = arena_array(a, weights_place, 1);
}

static const char *finish(void *context, arena *a, scout_op *op) {
    const sparse *s = context;
    weights_tell(op, &s->facts, a);
    return arena_printf(a, "%s;told=%016" PRIx64, op->key, s->facts.hash);
}

/* One matrix of a type whose zeros are known. */
static bool can_be_sparse(const scout_op *op, int at) {
    if (op->kind != SCOUT_GEMM || at < 0) return false;
    const scout_tensor *t = &op->tensors[at];
    return t->rank >= 2 && sparsity_knows((dtype)t->type) && (t->rank == 2 || t->dims[0] == 1);
}

static bool analyse(const scout_run_op *op, const scout_tensor *t, const void *data, sparsity_facts *facts,
                    scout_run_error *error) {
    const scout_device_api *api = op->run->api;
    scout_why why = {.text = "the host has no memory left"};
    void *copy = malloc(t->bytes);
    bool good = copy != NULL;
    pthread_mutex_lock(&op->run->lock);
    good = good && api->download(op->run->device, copy, data, t->bytes, &why) == SCOUT_OK;
    pthread_mutex_unlock(&op->run->lock);
    good = good && sparsity_analyse(copy, (dtype)t->type, t->dims[t->rank - 2], t->dims[t->rank - 1], facts);
    free(copy);
    if (!good) (void)runtime_refuse(error, "looking at the weight: %s", why.text);
    return good;
}

/* A key that tells zeros is of a weight with these, and no others. */
static bool same_zeros(const scout_run_op *op, const sparsity_facts *facts) {
    const char *zeros = strstr(op->op.key, ";zeros=");
    return !zeros || strtoull(zeros + 7, NULL, 16) == facts->hash;
}

const scout_run_op *runtime_sparse_of(const scout_run_op *op, void *const *tensors, scout_run_error *error) {
    const int at = weights_place_of(&op->op);
    const scout_run_op *found;
    sparse s = {.op = op};
    const runtime_making making = {.describe = describe, .finish = finish, .context = &s};
    if (!op->run->table || !can_be_sparse(&op->op, at)) return op;
    if (!analyse(op, &op->op.tensors[at], tensors[at], &s.facts, error)) return NULL;
    if (!same_zeros(op, &s.facts)) {
        runtime_refuse(error, "%s: expected the weight with the zeros of the key", op->op.tensors[at].name);
        return NULL;
    }
    if (strcmp(s.facts.pattern, "DENSE") == 0) return op;
    if (runtime_op_find(op->run, &making, &found, error) != SCOUT_RUN_OK) return op;
    return found->why == RUNTIME_LISTED && found->chosen.needs.packs ? found : op;
}
