/* Owns the memory of a replay. Activations share one piece by liveness; weights are packed where a plan wants that, one
 * for every occurrence, and in so many copies that each run finds them as cold as the regime says. */
#include "scout/plan/replay_internal.h"

#include "common/liveness.h"
#include "common/mix.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/measure/parts.h"
#include "scout/plan/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_COPIES = 64,
    MOST_NODES = 20000, /* of a recorded sequence that rotates */
    GAP = 16 << 20      /* a region begins up to so far behind where its memory does */
};
static const double copies_share = 0.6, model_share = 0.9; /* of the free memory */

/* ---- which tensor is where ---- */

/* Where a tensor lies: in one that has memory of its own, or in a piece that slices of a group's tensor share, which
 * their first one stands for. */
typedef struct home {
    int tensor;
    uint64_t offset, bytes; /* in it, and of all of it */
} home;

/* Everything that is found once for each tensor of the dataflow. */
typedef struct layout {
    replay *replay;
    int (*bound)[SCOUT_MAX_TENSORS]; /* by step: of the dataflow; -1: not found */
    home *homes;                     /* by tensor: that of itself */
    int *item;                       /* by home: its item; -1: no step makes it */
    int *slot;                       /* by home: its slot; -1: none yet */
    int *input_slot;                 /* by unit and tensor: of what was not found */
    int item_count;
} layout;

static const scout_op *op_of(const replay *r, const replay_step *s) { return &r->units[s->unit].op; }

static bool is_constant(const scout_tensor *t) { return t->role == SCOUT_WEIGHT || t->role == SCOUT_SIDE; }

/* Places in a table must be such, whatever reads them too; then what must be positive, then what must be small. */
static int strictness(const scout_tensor *t) {
    uint64_t seed = 0;
    const uint32_t how = bench_fill(t, &seed);
    return how == SCOUT_FILL_BELOW || how == SCOUT_FILL_NEAR ? 3
           : how == SCOUT_FILL_SCALE                         ? 2
           : how == SCOUT_FILL_SMALL                         ? 1
                                                             : 0;
}

static bool divides_by_variance(const scout_op *op) {
    for (uint32_t t = 0; op->kind == SCOUT_NORM && t < op->tensor_count; t++)
        if (strcmp(op->tensors[t].name, "variance") == 0) return true;
    return false;
}

/* Sums of products stay about as large as what they are made of, so that a deep model does not end in infinities. So do
 * batch norms: variances are near 1/64, and their root multiplies by about 8. */
static scout_tensor as_filled(const scout_op *op, const scout_tensor *t) {
    scout_tensor like = *t;
    if (t->below != 0 || t->rank == 0) return like;
    if (strcmp(t->name, "scale") == 0 && divides_by_variance(op)) like.below = kind_small(64, t->type);
    if (t->role != SCOUT_WEIGHT) return like;
    if (op->kind == SCOUT_GEMM) like.below = kind_small(op->shape[2], t->type);
    if (op->kind == SCOUT_CONV) like.below = kind_small(op_elements(t) / t->dims[0], t->type);
    return like;
}

static int add_slot(replay *r, replay_region region, uint64_t bytes, const scout_op *op, const scout_tensor *t,
                    const void *given) {
    arena_grow(&r->arena, (void **)&r->slots, &r->slot_cap, r->slot_count, sizeof *r->slots);
    r->slots[r->slot_count] =
        (replay_slot){.region = region, .bytes = bytes, .like = as_filled(op, t), .given = given, .read = true};
    return (int)r->slot_count++;
}

static void share_slot(replay *r, int slot, const scout_op *op, const scout_tensor *t) {
    replay_slot *s = &r->slots[slot];
    const scout_tensor like = as_filled(op, t);
    const int was = strictness(&s->like), is = strictness(&like);
    if (is > was || (is == was && is == 3 && like.below < s->like.below)) {
        s->like = like;
        s->given = NULL;
    }
}

static const int *bind_step(layout *l, int k) {
    replay *r = l->replay;
    const replay_step *s = &r->steps[k];
    const operation_flow *f = replay_flow(r, s->flow);
    const replay_group *g = replay_group_of(r, s);
    if (g) return g->site.fused;
    binding_begin(l->bound[k]);
    r->places_found += binding_tensors(f, &f->occurrences[s->occurrence], op_of(r, s), l->bound[k]);
    r->places += (int)op_of(r, s)->tensor_count;
    return l->bound[k];
}

static void find_homes(layout *l) {
    replay *r = l->replay;
    const operation_flow *f = replay_flow(r, 1);
    l->homes = arena_array(&r->arena, home, f->tensor_count);
    for (int k = 0; k < f->tensor_count; k++) l->homes[k] = (home){.tensor = k, .bytes = (uint64_t)f->tensors[k].bytes};
    for (int k = r->single_count; k < r->step_count; k++) {
        const binding_site *site = &r->groups[k - r->single_count].site;
        if (!replay_takes_part(r, &r->steps[k])) continue;
        for (int n = 0; n < site->slice_count; n++) {
            const binding_slice *s = &site->slices[n];
            if (s->copied) continue;
            l->homes[site->parts[s->part][s->tensor]] =
                (home){site->fused[s->of], s->offset, op_of(r, &r->steps[k])->tensors[s->of].bytes};
        }
    }
}

/* Of a view as well. */
static home home_of(const layout *l, int tensor) {
    const operation_flow *f = replay_flow(l->replay, 1);
    if (tensor < 0) return (home){.tensor = -1};
    home of = l->homes[binding_owner(f, tensor)];
    of.offset += (uint64_t)f->tensors[tensor].offset;
    return of;
}

static void bind_all(layout *l) {
    replay *r = l->replay;
    for (int k = 0; k < r->step_count; k++) {
        const scout_op *op = op_of(r, &r->steps[k]);
        if (!replay_takes_part(r, &r->steps[k])) continue;
        const int *bound = bind_step(l, k);
        memcpy(l->bound[k], bound, sizeof l->bound[k]);
        for (uint32_t t = 0; t < op->tensor_count; t++) {
            const int tensor = op->tensors[t].role == SCOUT_OUTPUT ? home_of(l, bound[t]).tensor : -1;
            if (tensor >= 0 && l->item[tensor] < 0) l->item[tensor] = l->item_count++;
        }
    }
}

/* ---- where activations lie in a lane ---- */

/* By item; what no step of this order makes takes nothing. */
static place_item *items_of(layout *l, int order) {
    replay *r = l->replay;
    const operation_flow *f = replay_flow(r, order);
    place_item *lives = arena_array(&r->arena, place_item, f->tensor_count),
               *items = arena_array(&r->arena, place_item, l->item_count);
    plan_lives(f, r->turns[order], lives);
    for (int k = 0; k < r->courses[order].count; k++) {
        const int step = r->courses[order].steps[k];
        const scout_op *op = op_of(r, &r->steps[step]);
        for (uint32_t t = 0; t < op->tensor_count; t++) {
            const int tensor = op->tensors[t].role == SCOUT_OUTPUT ? l->bound[step][t] : -1;
            if (tensor < 0) continue;
            place_item *item = &items[l->item[l->homes[tensor].tensor]];
            *item = lives[l->homes[tensor].tensor];
            item->bytes = l->homes[tensor].bytes;
        }
    }
    for (int k = 0; k < f->tensor_count; k++) { /* a piece is needed as long as any slice in it */
        const int at = l->item[l->homes[k].tensor];
        if (at < 0 || items[at].bytes == 0 || l->homes[k].tensor == k) continue;
        if (lives[k].from < items[at].from) items[at].from = lives[k].from;
        if (lives[k].to > items[at].to) items[at].to = lives[k].to;
    }
    return items;
}

/* By the defaults, wherever slices of a group are to lie. */
static uint64_t least_bytes(layout *l) {
    replay *r = l->replay;
    const operation_flow *f = replay_flow(r, 0);
    const arena_mark mark = arena_save(&r->arena);
    place_item *lives = arena_array(&r->arena, place_item, f->tensor_count);
    liveness live;
    int at;
    plan_lives(f, r->turns[0], lives);
    liveness_begin(&live, &r->arena, f->occurrence_count + 1);
    for (int k = 0; k < r->courses[0].count; k++) {
        const int step = r->courses[0].steps[k];
        const scout_op *op = op_of(r, &r->steps[step]);
        for (uint32_t t = 0; t < op->tensor_count; t++) {
            const int tensor = op->tensors[t].role == SCOUT_OUTPUT ? l->bound[step][t] : -1;
            if (tensor >= 0) liveness_add(&live, f->tensors[tensor].bytes, lives[tensor].from, lives[tensor].to);
        }
    }
    const uint64_t least = (uint64_t)liveness_peak(&live, &at);
    arena_rewind(&r->arena, mark);
    return least;
}

/* Where the items lie; returns how many bytes they take. */
static uint64_t place_order(layout *l, int order) {
    replay *r = l->replay;
    place_item *items = items_of(l, order), *made = arena_array(&r->arena, place_item, l->item_count);
    int count = 0;
    r->memory.items[order] = arena_array(&r->arena, uint64_t, l->item_count);
    for (int k = 0; k < l->item_count; k++)
        if (items[k].bytes > 0) made[count++] = items[k];
    const uint64_t all = place_items(made, count, &r->arena);
    for (int k = 0, n = 0; k < l->item_count; k++)
        if (items[k].bytes > 0) r->memory.items[order][k] = made[n++].offset;
    return all;
}

/* What steps make and others read lies among the activations. Numbers that are places in a table cannot come from a
 * step that makes any numbers. */
static replay_place place_activation(layout *l, const replay_step *s, uint32_t t, int tensor) {
    replay *r = l->replay;
    const scout_op *op = op_of(r, s);
    const scout_tensor *want = &op->tensors[t];
    const home in = home_of(l, tensor);
    const bool made = tensor >= 0 && l->item[in.tensor] >= 0, bounded = want->role != SCOUT_OUTPUT && want->below > 0;
    if (made && !bounded) return (replay_place){REPLAY_ACTIVATIONS, l->item[in.tensor], in.offset};
    if (made) r->places_found--;
    const bool own = tensor < 0 || made;
    r->own_numbers = r->own_numbers || (own && s->flow > 0);
    int *slot = own ? &l->input_slot[s->unit * SCOUT_MAX_TENSORS + (int)t] : &l->slot[in.tensor];
    const uint64_t bytes = own ? want->bytes : in.bytes;
    if (*slot < 0)
        *slot = add_slot(r, REPLAY_INPUTS, bytes, op, want, NULL);
    else
        share_slot(r, *slot, op, want);
    return (replay_place){REPLAY_INPUTS, *slot, own ? 0 : in.offset};
}

/* The same constant of the same occurrence by default, whose step was placed before; NULL: it has none, or lies
 * otherwise there. */
static const replay_place *place_before(const replay *r, const replay_step *s, uint32_t t) {
    const int from = s->flow > 0 ? r->request->from[s->occurrence] : -1;
    const replay_step *was = from >= 0 && r->step_of[0][from] >= 0 ? &r->steps[r->step_of[0][from]] : NULL;
    if (!was || !replay_takes_part(r, was) || t >= op_of(r, was)->tensor_count) return NULL;
    const scout_tensor *a = &op_of(r, s)->tensors[t], *b = &op_of(r, was)->tensors[t];
    const bool same = a->type == b->type && a->bytes == b->bytes && a->rank == 1 && b->rank == 1 &&
                      strcmp(a->name, b->name) == 0 && was->places[t].region == REPLAY_WEIGHTS;
    return same ? &was->places[t] : NULL;
}

static replay_place place_constant(layout *l, const replay_step *s, uint32_t t, int tensor) {
    replay *r = l->replay;
    const operation_flow *f = replay_flow(r, 1);
    const replay_unit *u = &r->units[s->unit];
    const scout_tensor *want = &u->op.tensors[t];
    const void *given = u->weights.bytes && u->weights.tensor == t ? u->weights.bytes : NULL;
    const int owner = tensor >= 0 ? binding_owner(f, tensor) : -1;
    const home in = home_of(l, tensor);
    const replay_place *before = owner < 0 ? place_before(r, s, t) : NULL;
    if (before) return *before;
    /* A weight whose zeros matter is all of its tensor, and no other operation's. */
    const bool shares = owner >= 0 && (!given || (in.bytes == want->bytes && l->slot[in.tensor] < 0));
    r->own_numbers = r->own_numbers || (s->flow > 0 && (owner < 0 || owner >= replay_flow(r, 0)->tensor_count));
    int *slot = shares ? &l->slot[in.tensor] : NULL;
    if (slot && *slot >= 0 && r->slots[*slot].region == REPLAY_WEIGHTS) {
        share_slot(r, *slot, &u->op, want);
        return (replay_place){REPLAY_WEIGHTS, *slot, in.offset};
    }
    if (slot && *slot >= 0) slot = NULL; /* it lies among the inputs */
    const int added = add_slot(r, REPLAY_WEIGHTS, slot ? in.bytes : want->bytes, &u->op, want, given);
    if (slot) *slot = added;
    return (replay_place){REPLAY_WEIGHTS, added, slot ? in.offset : 0};
}

/* The dataflow decides, and the role where it does not know. What a plan packs is there before a step makes anything.
 */
static bool stays(const replay *r, const replay_step *s, uint32_t t, int tensor) {
    const operation_flow *f = replay_flow(r, 1);
    const replay_unit *u = &r->units[s->unit];
    for (int c = 0; c < REPLAY_LANES; c++)
        if (u->choices[c].plan && u->choices[c].needs.packs == t + 1) return is_constant(&u->op.tensors[t]);
    return tensor >= 0 ? f->tensors[binding_owner(f, tensor)].constant : is_constant(&u->op.tensors[t]);
}

static void place_tensors(layout *l, const replay_step *s, const int *bound, replay_place *to) {
    const uint32_t count = op_of(l->replay, s)->tensor_count;
    for (uint32_t t = 0; t < count; t++)
        to[t] =
            stays(l->replay, s, t, bound[t]) ? place_constant(l, s, t, bound[t]) : place_activation(l, s, t, bound[t]);
}

static const replay_place *group_place(const replay *r, const replay_group *g, int tensor) {
    return &r->steps[r->single_count + (g - r->groups)].places[tensor];
}

/* A group's parts, as they are bound in it: for its check. What the group takes to be a number is that for its parts
 * as well, so that both lanes compute the same. */
static void place_group(layout *l, const replay_group *g) {
    replay *r = l->replay;
    for (int k = 0; k < g->of->count; k++) {
        const replay_step *s = replay_part(r, g, k);
        const fusion_place *places = replay_fusion_of(r, g)->parts[k].places;
        place_tensors(l, s, g->site.parts[k], g->parts[k]);
        for (uint32_t t = 0; t < op_of(r, s)->tensor_count; t++) {
            const replay_place *own = &s->places[t];
            if (places[t].of[0] == '=' && own->region != REPLAY_ACTIVATIONS) r->slots[own->at].equal = places[t].of;
        }
    }
    for (int n = 0; n < g->site.slice_count; n++) {
        const binding_slice *s = &g->site.slices[n];
        if (!s->copied) continue;
        r->slots[group_place(r, g, s->of)->at].copied = true;
        r->slots[g->parts[s->part][s->tensor].at].source = true;
    }
}

static int *minus_ones(arena *a, int64_t count) {
    int *x = arena_array(a, int, count);
    for (int64_t k = 0; k < count; k++) x[k] = -1;
    return x;
}

void replay_memory_plan(replay *r) {
    const operation_flow *f = replay_flow(r, 1); /* it has all tensors */
    layout l = {.replay = r};
    r->slot_count = 0;
    r->places_found = r->places = 0;
    r->own_numbers = false;
    l.bound = arena_calloc(&r->arena, (size_t)r->step_count + 1, sizeof *l.bound);
    l.item = minus_ones(&r->arena, f->tensor_count);
    l.slot = minus_ones(&r->arena, f->tensor_count);
    l.input_slot = minus_ones(&r->arena, (int64_t)r->unit_count * SCOUT_MAX_TENSORS);
    find_homes(&l);
    bind_all(&l);
    r->memory.made = arena_array(&r->arena, replay_place, f->tensor_count);
    for (int k = 0; k < f->tensor_count; k++)
        r->memory.made[k] = (replay_place){REPLAY_ACTIVATIONS, l.item[l.homes[k].tensor], l.homes[k].offset};
    uint64_t *each = r->memory.activation_bytes, most = 0;
    for (int k = 0; k < (replay_turns(r) ? REPLAY_ORDERS : REPLAY_LANES); k++) {
        each[k] = place_order(&l, k);
        if (each[k] > most) most = each[k];
    }
    r->memory.bytes[REPLAY_ACTIVATIONS] = most;
    r->memory.least_bytes = least_bytes(&l);
    for (int k = 0; k < r->step_count; k++) {
        if (!replay_takes_part(r, &r->steps[k])) continue;
        const replay_group *g = replay_group_of(r, &r->steps[k]);
        place_tensors(&l, &r->steps[k], l.bound[k], r->steps[k].places);
        if (g) place_group(&l, g);
    }
}

/* ---- how much ---- */

static const choice *choice_at(const replay_unit *u, int which) {
    const bool runs = which == 0 || (u->planned && u->choice_of[1] == 1);
    return runs && u->choices[which].plan ? &u->choices[which] : NULL;
}

static replay_slot *slot_of(const replay *r, const replay_place *p) {
    return p->region != REPLAY_ACTIVATIONS ? &r->slots[p->at] : NULL;
}

/* What a weight that all plans pack is packed from is made and forgotten. */
static void mark_read(replay *r) {
    for (size_t k = 0; k < r->slot_count; k++)
        r->slots[k].read = r->slots[k].region != REPLAY_WEIGHTS || r->slots[k].copied || r->slots[k].source;
    for (int k = 0; k < r->step_count; k++) {
        const replay_step *s = &r->steps[k];
        const replay_unit *u = &r->units[s->unit];
        for (uint32_t t = 0; replay_takes_part(r, s) && t < u->op.tensor_count; t++) {
            replay_slot *slot = slot_of(r, &s->places[t]);
            bool packed = true;
            for (int c = 0; c < REPLAY_LANES; c++)
                packed = packed && (!choice_at(u, c) || u->choices[c].needs.packs == t + 1);
            if (slot && !packed) slot->read = true;
        }
    }
}

/* What no memory has saturates, so that it is refused and does not wrap around. */
static void take(uint64_t *at, uint64_t bytes) {
    static const uint64_t most = (uint64_t)1 << 62;
    *at = bytes < most && *at < most ? *at + place_aligned(bytes) : most;
}

/* Offsets of slots, and of packed weights behind them. limit: so many of an operation's occurrences have weights of
 * their own; 0: all. */
static void lay_out(replay *r, int limit) {
    replay_memory *m = &r->memory;
    int *first = minus_ones(&r->arena, (int64_t)r->unit_count * (limit + 1)), *met = first;
    uint64_t at[REPLAY_REGIONS] = {0};
    for (size_t k = 0; k < r->slot_count; k++) {
        replay_slot *s = &r->slots[k];
        s->placed = s->region != REPLAY_WEIGHTS || (s->read && (limit == 0 || s->copied));
        s->offset = 0; /* or placed below, by step */
        if (!s->placed) continue;
        s->offset = at[s->region];
        take(&at[s->region], s->bytes);
    }
    for (int k = 0; limit > 0 && k < r->step_count; k++) { /* the place of an occurrence that has its own, for others */
        replay_step *s = &r->steps[k];
        if (!replay_takes_part(r, s)) continue;
        const int64_t row = (int64_t)s->unit * (limit + 1);
        const int ordinal = ++met[row]; /* from 0 */
        int *model = &first[row + 1 + ordinal % limit];
        for (uint32_t t = 0; t < op_of(r, s)->tensor_count; t++) {
            replay_slot *slot = slot_of(r, &s->places[t]);
            if (!slot || slot->placed || !slot->read) continue;
            slot->placed = true;
            const replay_slot *like = *model >= 0 ? slot_of(r, &r->steps[*model].places[t]) : NULL;
            if (like && like->region == REPLAY_WEIGHTS && like->read && like->bytes >= slot->bytes) {
                slot->offset = like->offset;
                continue;
            }
            slot->offset = at[REPLAY_WEIGHTS];
            take(&at[REPLAY_WEIGHTS], slot->bytes);
        }
        if (*model < 0) *model = k;
    }
    m->weight_bytes = at[REPLAY_WEIGHTS];
    memset(m->packed_bytes, 0, sizeof m->packed_bytes);
    uint64_t scratch = 0, workspace = 0;
    int *pack_met = minus_ones(&r->arena, (int64_t)r->unit_count * (limit + 1)), *pack_first = pack_met;
    for (int k = 0; k < r->step_count; k++) {
        replay_step *s = &r->steps[k];
        const replay_unit *u = &r->units[s->unit];
        if (!replay_takes_part(r, s)) continue;
        const int64_t row = (int64_t)s->unit * (limit + 1);
        int *model = limit > 0 ? &pack_first[row + 1 + ++pack_met[row] % limit] : NULL;
        for (int c = 0; c < REPLAY_LANES; c++) {
            const choice *of = choice_at(u, c);
            if (!of) continue;
            if (of->needs.workspace_bytes > workspace) workspace = of->needs.workspace_bytes;
            if (of->needs.packs == 0) continue;
            const replay_slot *slot = slot_of(r, &s->places[of->needs.packs - 1]);
            if (!slot->read && slot->bytes > scratch) scratch = slot->bytes;
            if (model && *model >= 0) {
                s->packed[c] = r->steps[*model].packed[c];
                continue;
            }
            s->packed[c] = at[REPLAY_WEIGHTS];
            take(&at[REPLAY_WEIGHTS], of->needs.pack_bytes);
            m->packed_bytes[c] += of->needs.pack_bytes;
        }
        if (model && *model < 0) *model = k;
    }
    m->bytes[REPLAY_INPUTS] = at[REPLAY_INPUTS];
    m->bytes[REPLAY_WEIGHTS] = at[REPLAY_WEIGHTS];
    m->bytes[REPLAY_SCRATCH] = scratch;
    m->bytes[REPLAY_WORKSPACE] = workspace;
    m->shared = limit;
}

static int most_occurrences(replay *r) {
    const arena_mark mark = arena_save(&r->arena);
    int *count = arena_array(&r->arena, int, r->unit_count), most = 0;
    for (int k = 0; k < r->step_count; k++)
        if (++count[r->steps[k].unit] > most) most = count[r->steps[k].unit];
    arena_rewind(&r->arena, mark);
    return most;
}

static double all_bytes(const replay_memory *m) {
    double all = 0;
    for (int k = 0; k < REPLAY_REGIONS; k++) all += (double)m->bytes[k];
    return all;
}

/* Weights that stay in the cache from one run to the next would be warm. */
static uint32_t copies_of(const replay *r, double free_bytes) {
    const replay_memory *m = &r->memory;
    const double one = (double)m->bytes[REPLAY_WEIGHTS], cache = r->identity ? (double)r->identity->cache_bytes : 0;
    const double plateau = r->request->plateau_bytes > 0 ? r->request->plateau_bytes : 4 * cache;
    if (r->request->regime.cache == REGIME_HOT || !(one > 0)) return 1;
    double copies = ceil(plateau / one);
    copies = fmin(copies, 1 + floor(fmax(copies_share * free_bytes - all_bytes(m), 0) / one));
    double launches = 0;
    for (int k = 0; k < r->courses[0].count; k++) launches += (double)r->steps[r->courses[0].steps[k]].times;
    if (r->captured) copies = fmin(copies, floor(MOST_NODES / (launches + 1)));
    return (uint32_t)fmax(1, fmin(copies, MOST_COPIES));
}

static scout_answer size_up(replay *r, scout_why *why) {
    replay_memory *m = &r->memory;
    uint64_t free_bytes = 0, total_bytes = 0;
    const scout_answer answer = r->api->memory(r->device, &free_bytes, &total_bytes, why);
    if (answer != SCOUT_OK) return answer;
    mark_read(r);
    const arena_mark mark = arena_save(&r->arena);
    for (int limit = 0, most = most_occurrences(r); limit >= 0; limit = limit == 0 ? most / 2 : limit / 2) {
        lay_out(r, limit);
        arena_rewind(&r->arena, mark);
        if (all_bytes(m) <= model_share * (double)free_bytes || limit == 1 || most < 2) break;
    }
    m->copies = copies_of(r, (double)free_bytes);
    const double left = model_share * (double)free_bytes - all_bytes(m), rotating = (double)m->bytes[REPLAY_WEIGHTS];
    m->gap = (uint64_t)fmin(fmax(left - (m->copies - 1) * rotating, 0) / REPLAY_REGIONS, GAP);
    if (left >= 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO_MEMORY, "memory",
                     "the model takes %.2f GB even where weights are shared, and %.2f GB are free", all_bytes(m) / 1e9,
                     (double)free_bytes / 1e9);
}

/* ---- making it ---- */

static scout_answer allocate(replay *r, replay_region region, scout_why *why) {
    replay_memory *m = &r->memory;
    const uint64_t all = m->bytes[region] * (region == REPLAY_WEIGHTS ? m->copies : 1),
                   most = all < m->gap ? all : m->gap;
    const uint64_t gap = mix_bits(r->pass.seed + region) % (most / PLACE_ALIGNMENT + 1) * PLACE_ALIGNMENT;
    if (all == 0) return SCOUT_OK;
    const scout_answer answer = r->api->alloc(r->device, all + gap, &m->allocated[region], why);
    m->base[region] = answer == SCOUT_OK ? (char *)m->allocated[region] + gap : NULL;
    return answer;
}

static uint64_t seed_of(const replay *r, size_t slot, uint32_t copy) {
    return mix_bits(mix_bits(r->pass.seed) + ((uint64_t)slot << 8) + copy);
}

scout_answer replay_memory_fill(replay *r, size_t slot, uint32_t copy, void *to, scout_why *why) {
    const replay_slot *s = &r->slots[slot];
    uint64_t seed = seed_of(r, slot, copy);
    const uint32_t how = bench_fill(&s->like, &seed);
    if (s->equal) return parts_fill_constant(r->api, r->device, &s->like, s->equal, to, why);
    if (s->given) return r->api->upload(r->device, to, s->given, s->bytes, why);
    return r->api->fill(r->device, to, s->bytes, s->like.type, how, seed, why);
}

static char *slot_at(const replay *r, const replay_slot *s, uint32_t copy) {
    if (s->region == REPLAY_WEIGHTS && !s->read) return r->memory.base[REPLAY_SCRATCH];
    const uint64_t behind = s->region == REPLAY_WEIGHTS ? copy * r->memory.bytes[REPLAY_WEIGHTS] : 0;
    return r->memory.base[s->region] + s->offset + behind;
}

static scout_answer fill_slots(replay *r, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    replay_tell(r, NULL, "fill", 600);
    for (size_t k = 0; k < r->slot_count && answer == SCOUT_OK; k++) {
        const replay_slot *s = &r->slots[k];
        for (uint32_t c = 0; c < (s->region == REPLAY_WEIGHTS ? r->memory.copies : 1) && answer == SCOUT_OK; c++)
            if (s->read && s->bytes > 0 && !s->copied) answer = replay_memory_fill(r, k, c, slot_at(r, s, c), why);
    }
    return answer;
}

/* One slice of a group's constant, from where its part reads it. */
static scout_answer copy_slice(replay *r, const replay_group *g, const binding_slice *s, uint32_t copy,
                               scout_why *why) {
    const uint64_t bytes = r->units[replay_part(r, g, s->part)->unit].op.tensors[s->tensor].bytes;
    void *const held = malloc(bytes + 1);
    char *const to = replay_memory_at(r, group_place(r, g, s->of), 0, copy);
    if (!held) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory for a constant of a group");
    scout_answer answer =
        r->api->download(r->device, held, replay_memory_at(r, &g->parts[s->part][s->tensor], 0, copy), bytes, why);
    if (answer == SCOUT_OK) answer = r->api->upload(r->device, to + s->offset, held, bytes, why);
    free(held);
    return answer;
}

static scout_answer copy_slices(replay *r, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (int k = r->single_count; k < r->step_count; k++) {
        const replay_group *g = &r->groups[k - r->single_count];
        if (!replay_takes_part(r, &r->steps[k])) continue;
        for (int n = 0; n < g->site.slice_count; n++)
            for (uint32_t c = 0; g->site.slices[n].copied && c < r->memory.copies && answer == SCOUT_OK; c++)
                answer = copy_slice(r, g, &g->site.slices[n], c, why);
    }
    return answer;
}

void *replay_memory_at(const replay *r, const replay_place *p, int order, uint32_t copy) {
    const replay_slot *slot = slot_of(r, p);
    char *at = slot ? slot_at(r, slot, copy) : r->memory.base[REPLAY_ACTIVATIONS] + r->memory.items[order][p->at];
    return at + p->offset;
}

void replay_memory_tensors(const replay *r, const replay_step *s, int order, const choice *c, uint32_t copy,
                           void **tensors) {
    const replay_unit *u = &r->units[s->unit];
    for (uint32_t t = 0; t < u->op.tensor_count; t++) tensors[t] = replay_memory_at(r, &s->places[t], order, copy);
    if (c && c->needs.packs > 0)
        tensors[c->needs.packs - 1] =
            r->memory.base[REPLAY_WEIGHTS] + copy * r->memory.bytes[REPLAY_WEIGHTS] + s->packed[c - u->choices];
}

typedef struct packing {
    replay *replay;
    const replay_step *step;
    const choice *choice;
    uint32_t copy;
} packing;

static scout_answer enqueue_pack(void *context, uint32_t number, void *stream, scout_why *why) {
    const packing *p = context;
    const scout_candidate *c = p->choice->candidate;
    const uint32_t tensor = p->choice->needs.packs - 1;
    void *from[SCOUT_MAX_TENSORS], *to[SCOUT_MAX_TENSORS];
    (void)number;
    replay_memory_tensors(p->replay, p->step, 0, NULL, p->copy, from);
    replay_memory_tensors(p->replay, p->step, 0, p->choice, p->copy, to);
    if (SCOUT_HAS(c, pack_tensors) && c->pack_tensors)
        return c->pack_tensors(p->choice->plan, from, to[tensor], stream, why);
    return c->pack(p->choice->plan, from[tensor], to[tensor], stream, why);
}

static scout_answer pack(replay *r, const replay_step *s, const choice *c, uint32_t copy, scout_why *why) {
    packing p = {r, s, c, copy};
    scout_sequence *sequence = NULL;
    double seconds = 0;
    const int slot = s->places[c->needs.packs - 1].at;
    scout_answer answer = SCOUT_OK;
    if (!r->slots[slot].read) answer = replay_memory_fill(r, (size_t)slot, copy, r->memory.base[REPLAY_SCRATCH], why);
    if (answer == SCOUT_OK) answer = r->api->record(r->device, 0, 1, enqueue_pack, &p, &sequence, why);
    if (answer == SCOUT_OK) answer = r->api->run(r->device, sequence, 1, &seconds, why);
    if (sequence && answer != SCOUT_LOST) r->api->drop(r->device, sequence);
    return answer;
}

/* A plan that packs something that is no constant of this operation, or cannot, takes no part. */
static bool can_pack(const replay_unit *u, const choice *c, scout_why *why) {
    const uint32_t tensor = c->needs.packs - 1;
    const bool able = c->candidate->pack || (SCOUT_HAS(c->candidate, pack_tensors) && c->candidate->pack_tensors);
    if (tensor < u->op.tensor_count && is_constant(&u->op.tensors[tensor]) && able) return true;
    scout_say(why, SCOUT_NO, "feature", "it packs what is no weight");
    return false;
}

static scout_answer pack_step(replay *r, const replay_step *s, scout_why *why) {
    replay_unit *u = &r->units[s->unit];
    for (int k = 0; k < REPLAY_LANES; k++) {
        const choice *c = choice_at(u, k);
        if (!c || c->needs.packs == 0) continue;
        replay_tell(r, c, "pack", 600);
        for (uint32_t copy = 0; copy < r->memory.copies; copy++) {
            const scout_answer answer = pack(r, s, c, copy, why);
            if (answer == SCOUT_LOST || answer == SCOUT_NO_MEMORY) return answer;
            if (answer == SCOUT_OK) continue;
            (void)bench_status_of(answer, why);
            if (k == 0)
                replay_leave_out(u, why);
            else
                u->choice_of[1] = 0, u->wanes = *why;
            break;
        }
    }
    return SCOUT_OK;
}

static void drop_unpackable(replay *r) {
    for (int k = 0; k < r->unit_count; k++) {
        replay_unit *u = &r->units[k];
        for (int c = REPLAY_LANES - 1; c >= 0 && !u->out; c--) {
            scout_why why;
            const choice *of = choice_at(u, c);
            if (!of || of->needs.packs == 0 || can_pack(u, of, &why)) continue;
            if (c == 0)
                replay_leave_out(u, &why);
            else
                u->choice_of[1] = 0, u->wanes = why;
        }
    }
}

scout_answer replay_memory_open(replay *r, scout_why *why) {
    drop_unpackable(r);
    scout_answer answer = size_up(r, why);
    for (int k = 0; k < REPLAY_REGIONS && answer == SCOUT_OK; k++) answer = allocate(r, (replay_region)k, why);
    if (answer == SCOUT_OK) answer = fill_slots(r, why);
    if (answer == SCOUT_OK) answer = copy_slices(r, why);
    if (answer == SCOUT_OK && r->memory.bytes[REPLAY_ACTIVATIONS] > 0)
        answer = r->api->fill(r->device, r->memory.base[REPLAY_ACTIVATIONS], r->memory.bytes[REPLAY_ACTIVATIONS],
                              SCOUT_FP32, SCOUT_FILL_NORMAL, mix_bits(r->pass.seed ^ 1), why);
    for (int k = 0; k < r->step_count && answer == SCOUT_OK; k++)
        if (replay_takes_part(r, &r->steps[k])) answer = pack_step(r, &r->steps[k], why);
    if (answer == SCOUT_OK && r->memory.allocated[REPLAY_SCRATCH]) { /* it is needed no more */
        r->api->release(r->device, r->memory.allocated[REPLAY_SCRATCH]);
        r->memory.allocated[REPLAY_SCRATCH] = NULL;
    }
    return answer;
}

void replay_memory_close(replay *r) {
    for (int k = 0; k < REPLAY_REGIONS; k++) {
        if (r->memory.allocated[k] && r->answer != SCOUT_LOST) r->api->release(r->device, r->memory.allocated[k]);
        r->memory.allocated[k] = NULL;
        r->memory.base[k] = NULL;
    }
}
