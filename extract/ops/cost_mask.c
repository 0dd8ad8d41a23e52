/* Owns what a recognised attention does not read: a mask that its kind tells (none, causal) is computed, not read, and
 * padding is a vector over the keys, however large the tensor that the model makes of it. */
#include "extract/ops/cost_mask.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

typedef enum mask_place {
    PLACE_OTHER,
    PLACE_SCORES, /* comes from the product of queries and keys */
    PLACE_MASK    /* goes into the scores from the side */
} mask_place;

static bool is_product(const node *n) {
    return strstr(n->op_type, "MatMul") || strcmp(n->op_type, "Einsum") == 0 || strcmp(n->op_type, "Gemm") == 0;
}

/* The place of n among the work's nodes, which stand in the order of their ids; -1: not one of them. */
static int place_of(const work *w, const node *n) {
    int low = 0, high = w->node_count;
    while (n && low < high) {
        const int middle = (low + high) / 2;
        if (w->nodes[middle]->id < n->id)
            low = middle + 1;
        else
            high = middle;
    }
    return n && low < w->node_count && w->nodes[low] == n ? low : -1;
}

static bool follows_scores(const work *w, const mask_place *places, const node *n) {
    for (int i = 0; i < n->in_count; i++) {
        const int from = n->in[i] ? place_of(w, n->in[i]->producer) : -1;
        if (from >= 0 && (places[from] == PLACE_SCORES || is_product(w->nodes[from]))) return true;
    }
    return false;
}

/* Users are looked for among the few nodes of the work: a tensor may have thousands elsewhere. */
static bool goes_aside(const work *w, const mask_place *places, int from) {
    for (int k = from + 1; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        for (int i = 0; i < n->in_count; i++) {
            if (n->in[i] && n->in[i]->producer == w->nodes[from] && places[k] != PLACE_OTHER) return true;
        }
    }
    return false;
}

/* Scores are what lies behind a product and is none itself; masks are what joins them from the side. */
static mask_place *find_places(const work *w) {
    mask_place *places = arena_array(w->arena, mask_place, w->node_count);
    for (int k = 0; k < w->node_count; k++) {
        if (!is_product(w->nodes[k]) && follows_scores(w, places, w->nodes[k])) places[k] = PLACE_SCORES;
    }
    for (int k = w->node_count - 1; k >= 0; k--) {
        const bool aside = places[k] == PLACE_OTHER && !is_product(w->nodes[k]);
        if (aside && goes_aside(w, places, k)) places[k] = PLACE_MASK;
    }
    return places;
}

static bool is_mask_of(const work *w, const mask_place *places, const tensor *t) {
    bool aside = false;
    if (info_count(t->info) <= 1) return false;
    for (int k = 0; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        for (int i = 0; i < n->in_count; i++) {
            if (n->in[i] != t) continue;
            if (places[k] == PLACE_OTHER) return false;
            aside = true;
        }
    }
    return aside;
}

/* Batch times keys of the type of the mask, where the kind needs them at all. */
static int64_t needed(const work *w, const tensor *mask) {
    const oprec *r = &w->rec;
    const bool computed = strcmp(r->mask, "none") == 0 || strcmp(r->mask, "causal") == 0;
    if (computed || r->rank < 4) return 0;
    const int64_t keys = oprec_int(r, "kv_len", 0);
    return dtype_bytes(cost_type(w, mask), checked_mul(r->shape[0], keys));
}

static bool is_told_by_kind(const oprec *r) {
    return r->kind == OP_ATTENTION && r->mask && strcmp(r->mask, "additive") != 0 && !oprec_field(r, "mask_shape");
}

int64_t cost_mask_bytes(const work *w, int count, tensor *const *inputs, int64_t (*bytes_of)(const work *, tensor *)) {
    if (!is_told_by_kind(&w->rec) || w->node_count < 2) return 0;
    const arena_mark scratch = arena_save(w->arena);
    const mask_place *places = find_places(w);
    int64_t all = 0, most = 0;
    for (int k = 0; k < count; k++) {
        if (k > 0 && inputs[k] == inputs[k - 1]) continue;
        if (!is_mask_of(w, places, inputs[k])) continue;
        all = checked_add(all, bytes_of(w, inputs[k]));
        const int64_t vector = needed(w, inputs[k]);
        if (vector > most) most = vector;
    }
    arena_rewind(w->arena, scratch);
    return all > most ? checked_sub(all, most) : 0;
}

void cost_mask_told(work *w, tensor *mask, int64_t bytes) {
    if (!is_told_by_kind(&w->rec) || !mask || bytes > w->rec.bytes_read) return;
    const int64_t most = needed(w, mask);
    if (bytes > most) w->rec.bytes_read = checked_sub(w->rec.bytes_read, checked_sub(bytes, most));
}
