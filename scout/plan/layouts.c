/* Finds the regions of a model that could run with channels last, and what they would need. */
#include "scout/plan/layouts.h"

#include "common/checked.h"
#include "common/map.h"
#include "scout/kinds/kinds.h"
#include "scout/op/op.h"
#include "scout/plan/binding.h"

#include <string.h>

typedef struct finder {
    operation_list *list;
    const operation_flow *flow;
    uint64_t workspace_limit;
    arena *arena;
    layouts *to;
    const scout_op **ops;            /* by item; NULL: not asked for yet */
    bool *refused;                   /* by item */
    int (*bound)[SCOUT_MAX_TENSORS]; /* by occurrence */
    layouts_dims *dims;              /* by tensor, in the file's order */
    bool *used;                      /* by tensor: as one of an operation's, or by what may not turn */
    bool *disputed;                  /* by tensor: two operations take it for images of different size */
    int *parent;                     /* by occurrence: of its region so far */
    map items;                       /* by key: where it stands in the list */
    bool *taken;                     /* by tensor: it holds an image turned */
    size_t room;                     /* of the list */
} finder;

static const operation *operation_at(const finder *f, int occurrence) {
    return &f->list->items[f->flow->occurrences[occurrence].operation];
}

int layouts_whole(const operation_flow *f, int tensor) {
    const int owner = binding_owner(f, tensor);
    const operation_tensor *t = &f->tensors[tensor];
    return t->lie == 0 && t->offset == 0 && t->bytes == f->tensors[owner].bytes ? owner : tensor;
}

/* ---- what each occurrence works on ---- */

static const scout_op *op_at(finder *f, int occurrence) {
    const int item = f->flow->occurrences[occurrence].operation;
    scout_why why;
    if (f->ops[item] || f->refused[item]) return f->ops[item];
    scout_op *op = arena_array(f->arena, scout_op, 1);
    f->refused[item] = !kinds_build(&f->list->items[item], f->workspace_limit, f->arena, op, &why);
    if (!f->refused[item]) f->ops[item] = op;
    return f->ops[item];
}

static bool is_constant(const finder *f, int tensor) {
    return f->flow->tensors[binding_owner(f->flow, tensor)].constant;
}

static bool turns(const layouts_dims *d) {
    int64_t space = 1;
    for (int k = 2; k < d->rank; k++) space = checked_mul(space, d->of[k]);
    return d->rank > 2 && d->of[1] > 1 && space > 1;
}

static int64_t elements_of(const layouts_dims *d) {
    int64_t all = 1;
    for (int k = 0; k < d->rank; k++) all = checked_mul(all, d->of[k]);
    return all;
}

static bool is_same(const layouts_dims *a, const layouts_dims *b) {
    return a->rank == b->rank && memcmp(a->of, b->of, (size_t)a->rank * sizeof *a->of) == 0;
}

/* What an operation with three dimensions or more says of its tensor. */
static layouts_dims told_of(const scout_op *op, uint32_t t) {
    const scout_tensor *from = &op->tensors[t];
    const bool tells = from->rank == op->rank && op->rank > 2 && !op_is(op, "transpose");
    layouts_dims told = {.rank = tells ? (int)from->rank : 0};
    for (int d = 0; d < told.rank; d++) told.of[d] = from->dims[d];
    return told;
}

/* Every activation that it reads or makes is one of its tensors. One that turns, and what fewer dimensions than an
 * image's tell of, has memory of its own. */
static bool is_bound(const finder *f, int k, const scout_op *op) {
    const operation_occurrence *at = &f->flow->occurrences[k];
    for (uint32_t t = 0; t < op->tensor_count; t++)
        if (f->bound[k][t] < 0 && (op->tensors[t].role == SCOUT_INPUT || op->tensors[t].role == SCOUT_OUTPUT))
            return false;
    for (int e = at->read; e < at->after; e++) {
        const int tensor = layouts_whole(f->flow, f->flow->edges[e]);
        const operation_tensor *of = &f->flow->tensors[tensor];
        bool found = false;
        if (is_constant(f, tensor)) continue;
        for (uint32_t t = 0; t < op->tensor_count; t++) {
            if (f->bound[k][t] != tensor) continue;
            const layouts_dims told = told_of(op, t);
            if ((of->source >= 0 && (told.rank == 0 || turns(&told))) || of->lie != 0) return false;
            found = true;
        }
        if (!found && f->used[tensor]) return false;
    }
    return true;
}

static bool is_filter(const scout_op *op, uint32_t t) {
    return op->tensors[t].role == SCOUT_WEIGHT ||
           (op->kind == SCOUT_CONV && strcmp(op->tensors[t].name, "weight") == 0);
}

/* What operations with three dimensions or more say of the tensors that they read and make. */
static void note_dims(finder *f, int k, const scout_op *op) {
    for (uint32_t t = 0; t < op->tensor_count; t++) {
        const int tensor = f->bound[k][t];
        const layouts_dims told = told_of(op, t);
        if (tensor < 0) continue;
        if (is_filter(op, t)) f->disputed[tensor] = true; /* a filter lies the same in both orders */
        if (is_filter(op, t) || told.rank == 0) continue;
        layouts_dims *known = &f->dims[tensor];
        if (known->rank == 0)
            *known = told;
        else if (!is_same(known, &told) && (turns(known) || turns(&told)))
            f->disputed[tensor] = true;
    }
}

/* ---- what could run turned ---- */

/* Where an operation with this record stands in the list; -1: nowhere yet. */
static int find_item(finder *f, const operation *o) {
    const int *const at = map_get(&f->items, operation_key(o, f->arena));
    return at ? *at : -1;
}

/* The first one of a key is meant by it. */
static void know_item(finder *f, int item) {
    void **place = map_put(&f->items, operation_key(&f->list->items[item], f->arena));
    if (!*place) {
        int *const at = arena_array(f->arena, int, 1);
        *at = -1;
        *place = at;
    }
    if (*(int *)*place < 0) *(int *)*place = item;
}

static int add_item(finder *f, const operation *o) {
    arena_grow(f->arena, (void **)&f->list->items, &f->room, (size_t)f->list->count, sizeof *f->list->items);
    operation *to = &f->list->items[f->list->count];
    *to = *o;
    to->count = 0;
    to->source = NULL;
    to->id = to->name = oprec_id(&o->rec, f->arena);
    know_item(f, f->list->count);
    return f->list->count++;
}

static const layouts_dims *read_by(const finder *f, int k, const scout_op *op) {
    for (uint32_t t = 0; t < op->tensor_count; t++)
        if (op->tensors[t].role == SCOUT_INPUT) return &f->dims[f->bound[k][t]];
    return NULL;
}

static bool touches_turning(const finder *f, int k, const scout_op *op) {
    bool any = false;
    for (uint32_t t = 0; t < op->tensor_count; t++) {
        const int tensor = f->bound[k][t];
        if (tensor < 0 || op->tensors[t].role == SCOUT_WEIGHT) continue;
        if (f->disputed[tensor]) return false;
        any = any || turns(&f->dims[tensor]);
    }
    return any;
}

/* What makes as many numbers as the image that it reads, and tells no dimensions, makes such an image. As large a
 * tensor that it reads beside must be known to be one. */
static bool note_others(finder *f, int k, const scout_op *op) {
    const layouts_dims *image = read_by(f, k, op);
    for (uint32_t t = 0; t < op->tensor_count; t++) {
        const layouts_dims told = told_of(op, t);
        const scout_tensor *other = &op->tensors[t];
        const bool made = other->role == SCOUT_OUTPUT;
        if (told.rank > 0 || (!made && other->role != SCOUT_INPUT) || !image || image->rank == 0) continue;
        if (op_elements(other) != elements_of(image)) continue;
        layouts_dims *known = &f->dims[f->bound[k][t]];
        if (made && known->rank == 0) *known = *image;
        if (!is_same(known, image)) return false;
    }
    return true;
}

static void turn_occurrence(finder *f, int k) {
    const scout_op *op = op_at(f, k);
    const operation *of = operation_at(f, k);
    scout_why why;
    operation turned = *of;
    scout_op built;
    if (!touches_turning(f, k, op) || !layouts_turn(&of->rec, read_by(f, k, op), f->arena, &turned.rec)) return;
    if (!note_others(f, k, op)) return;
    const int known = find_item(f, &turned);
    if (known >= 0 || kinds_build(&turned, f->workspace_limit, f->arena, &built, &why))
        f->to->turned[k] = known >= 0 ? known : add_item(f, &turned);
}

/* ---- regions ---- */

static int root_of(finder *f, int k) {
    while (f->parent[k] != k) k = f->parent[k] = f->parent[f->parent[k]];
    return k;
}

static bool is_image(const finder *f, int tensor) { return turns(&f->dims[tensor]) && !f->disputed[tensor]; }

/* What works on the same turning tensor is of one region. */
static void join(finder *f) {
    int *met = arena_array(f->arena, int, f->flow->tensor_count); /* by tensor: an occurrence, from 1 */
    for (int k = 0; k < f->flow->occurrence_count; k++) f->parent[k] = k;
    for (int k = 0; k < f->flow->occurrence_count; k++) {
        const operation_occurrence *at = &f->flow->occurrences[k];
        for (int e = at->read; f->to->turned[k] >= 0 && e < at->after; e++) {
            const int tensor = layouts_whole(f->flow, f->flow->edges[e]);
            if (!is_image(f, tensor)) continue;
            if (met[tensor] > 0) f->parent[root_of(f, k)] = root_of(f, met[tensor] - 1);
            met[tensor] = k + 1;
        }
    }
}

/* A region has a convolution, or nothing is gained by it. One of which not all runs equally often stays as it is. */
static void number_regions(finder *f) {
    const int count = f->flow->occurrence_count;
    bool *has_conv = arena_array(f->arena, bool, count), *uneven = arena_array(f->arena, bool, count);
    int *number = arena_array(f->arena, int, count), members = 0; /* by root, from 1 */
    layouts *to = f->to;
    for (int k = 0; k < count; k++) {
        if (to->turned[k] < 0) continue;
        const int root = root_of(f, k);
        has_conv[root] = has_conv[root] || operation_at(f, k)->rec.kind == OP_CONV;
        uneven[root] = uneven[root] || f->flow->occurrences[k].times != f->flow->occurrences[root].times;
    }
    for (int k = 0; k < count; k++) {
        const int root = root_of(f, k);
        to->region[k] = -1;
        if (to->turned[k] >= 0 && (!has_conv[root] || uneven[root])) to->turned[k] = -1;
        if (to->turned[k] < 0) continue;
        if (number[root] == 0) number[root] = ++to->region_count;
        to->region[k] = number[root] - 1;
        members++;
    }
    to->regions = arena_array(f->arena, int, members);
    to->begins = arena_array(f->arena, int, to->region_count + 1);
    int *next = arena_array(f->arena, int, to->region_count + 1);
    for (int k = 0; k < count; k++)
        if (to->region[k] >= 0) to->begins[to->region[k] + 1]++;
    for (int n = 0; n < to->region_count; n++) next[n + 1] = to->begins[n + 1] += to->begins[n];
    for (int k = 0; k < count; k++)
        if (to->region[k] >= 0) to->regions[next[to->region[k]]++] = k;
}

/* Only what a region has stays in the list. */
static void drop_others(finder *f) {
    operation_list *list = f->list;
    const int count = list->count, own = f->to->own;
    int *at = arena_array(f->arena, int, count);
    for (int k = 0; k < f->flow->occurrence_count; k++)
        if (f->to->turned[k] >= own) at[f->to->turned[k]] = 1;
    for (int k = own; k < count; k++) *(int *)map_get(&f->items, operation_key(&list->items[k], f->arena)) = -1;
    list->count = own;
    for (int k = own; k < count; k++) {
        if (at[k] == 0) continue;
        at[k] = list->count;
        list->items[list->count] = list->items[k];
        know_item(f, list->count++);
    }
    for (int k = 0; k < f->flow->occurrence_count; k++)
        if (f->to->turned[k] >= own) f->to->turned[k] = at[f->to->turned[k]];
}

/* ---- where regions end ---- */

static int conversion(finder *f, int tensor, bool back) {
    const operation_tensor *t = &f->flow->tensors[tensor];
    operation to = {.pattern = "DENSE"};
    layouts_conversion(&f->dims[tensor], t->type, t->bytes, back, f->arena, &to.rec);
    const int known = find_item(f, &to);
    return known >= 0 ? known : add_item(f, &to);
}

/* To hold an image turned. */
static bool is_free(const finder *f, int tensor) {
    const operation_tensor *t = &f->flow->tensors[tensor];
    return t->source < 0 && t->lie == 0 && !t->constant && !f->to->images[tensor].turns;
}

static bool is_made_inside(const finder *f, int tensor) {
    const int producer = f->flow->tensors[tensor].producer;
    return producer >= 0 && f->to->region[producer] >= 0;
}

/* What a transposition makes of an image, or makes an image of, is that one turned. */
static void look_at_transposition(finder *f, int k) {
    const operation_occurrence *at = &f->flow->occurrences[k];
    const operation *of = at->operation >= 0 ? operation_at(f, k) : NULL;
    if (!of || of->rec.kind != OP_MOVE || at->made - at->read != 1 || at->after - at->made != 1) return;
    const int read = f->flow->edges[at->read], made = f->flow->edges[at->made], from = binding_owner(f->flow, read);
    if (layouts_whole(f->flow, read) != from) return;
    for (int back = 0; back < 2; back++) {
        const int tensor = back ? made : from, other = back ? from : made;
        layouts_image *image = &f->to->images[tensor];
        if (!image->turns || image->same >= 0 || f->taken[other] || !is_free(f, other)) continue;
        if (f->flow->occurrences[image->member].times != at->times || (!back && !is_made_inside(f, tensor))) continue;
        if (!layouts_is_turn(&of->rec, &f->dims[tensor], back)) continue;
        image->same = other;
        f->taken[other] = true;
        f->to->idle[k] = f->to->region[image->member];
        return;
    }
}

static void find_images(finder *f) {
    layouts *to = f->to;
    for (int k = 0; k < f->flow->tensor_count; k++)
        to->images[k] = (layouts_image){.same = -1, .there = -1, .back = -1};
    for (int k = 0; k < f->flow->occurrence_count; k++) {
        const operation_occurrence *at = &f->flow->occurrences[k];
        to->idle[k] = -1;
        for (int e = at->read; to->region[k] >= 0 && e < at->after; e++) {
            const int tensor = layouts_whole(f->flow, f->flow->edges[e]);
            layouts_image *image = &to->images[tensor];
            if (!is_image(f, tensor)) continue;
            image->turns = true;
            image->member = k;
        }
    }
    f->taken = arena_array(f->arena, bool, f->flow->tensor_count);
    for (int k = 0; k < f->flow->occurrence_count; k++)
        if (to->region[k] < 0) look_at_transposition(f, k);
}

static void find_conversions(finder *f) {
    layouts *to = f->to;
    bool *wanted =
        arena_array(f->arena, bool, f->flow->tensor_count); /* in the file's order, by what is in no region */
    for (int k = 0; k < f->flow->occurrence_count; k++) {
        const operation_occurrence *at = &f->flow->occurrences[k];
        for (int e = at->read; e < at->made; e++) {
            const int owner = binding_owner(f->flow, f->flow->edges[e]);
            /* a region reads a part of an image where the file has it */
            if (to->region[k] >= 0 && layouts_whole(f->flow, f->flow->edges[e]) == owner) continue;
            wanted[owner] = wanted[owner] || to->idle[k] < 0 || to->images[owner].same != f->flow->edges[at->made];
        }
    }
    for (int k = 0; k < f->flow->tensor_count; k++) {
        const operation_tensor *t = &f->flow->tensors[k];
        layouts_image *image = &to->images[k];
        if (!image->turns) continue;
        const bool inside = is_made_inside(f, k);
        const bool other = !inside && t->producer >= 0 && to->idle[t->producer] >= 0; /* its turned one is there */
        if (other && (wanted[k] || t->kept)) to->idle[t->producer] = -1;              /* the file's is needed as well */
        if (!inside && !other && !t->constant)
            image->there = conversion(f, k, false); /* a constant is turned when it is loaded */
        if (inside && (wanted[k] || t->kept)) image->back = conversion(f, k, true);
    }
}

/* ---- all of it ---- */

static bool has_convolution(const operation_list *list) {
    for (int k = 0; k < list->count; k++)
        if (list->items[k].rec.kind == OP_CONV && layouts_may_turn(&list->items[k].rec)) return true;
    return false;
}

/* What each candidate works on; what no operation uses is no reason against one. */
static void bind_all(finder *f) {
    const operation_flow *flow = f->flow;
    for (int k = 0; k < flow->occurrence_count; k++) {
        const operation_occurrence *at = &flow->occurrences[k];
        const operation *of = at->operation >= 0 ? operation_at(f, k) : NULL;
        const bool may = of && of->sparsity == 0 && !of->skip_code && layouts_may_turn(&of->rec);
        const scout_op *op = may ? op_at(f, k) : NULL;
        f->to->turned[k] = op ? 0 : -1; /* 0: perhaps */
        for (int e = at->read; !op && e < at->after; e++) f->used[layouts_whole(flow, flow->edges[e])] = true;
        if (!op) continue;
        binding_begin(f->bound[k]);
        (void)binding_tensors(flow, at, op, f->bound[k]);
        for (uint32_t t = 0; t < op->tensor_count; t++) {
            if (f->bound[k][t] < 0) continue;
            f->bound[k][t] = layouts_whole(flow, f->bound[k][t]);
            f->used[f->bound[k][t]] = true;
        }
    }
    for (int k = 0; k < flow->occurrence_count; k++) {
        if (f->to->turned[k] >= 0 && !is_bound(f, k, op_at(f, k))) f->to->turned[k] = -1;
        if (f->to->turned[k] >= 0) note_dims(f, k, op_at(f, k));
    }
}

static void turn_all(finder *f) {
    for (int k = 0; k < f->flow->occurrence_count; k++) {
        if (f->to->turned[k] < 0) continue;
        f->to->turned[k] = -1;
        turn_occurrence(f, k);
    }
}

static void begin(finder *f) {
    const operation_flow *flow = f->flow;
    layouts *to = f->to;
    map_init(&f->items, f->arena);
    f->room = (size_t)f->list->count; /* what is there is copied when the list grows */
    for (int k = 0; k < f->list->count; k++)
        if (!f->list->items[k].skip_code) know_item(f, k);
    to->turned = arena_array(f->arena, int, flow->occurrence_count);
    to->region = arena_array(f->arena, int, flow->occurrence_count);
    to->idle = arena_array(f->arena, int, flow->occurrence_count);
    to->images = arena_array(f->arena, layouts_image, flow->tensor_count);
    f->ops = arena_array(f->arena, const scout_op *, f->list->count);
    f->refused = arena_array(f->arena, bool, f->list->count);
    f->bound = arena_calloc(f->arena, (size_t)flow->occurrence_count + 1, sizeof *f->bound);
    f->dims = arena_array(f->arena, layouts_dims, flow->tensor_count);
    f->used = arena_array(f->arena, bool, flow->tensor_count);
    f->disputed = arena_array(f->arena, bool, flow->tensor_count);
    f->parent = arena_array(f->arena, int, flow->occurrence_count);
}

layouts *layouts_find(operation_list *list, uint64_t workspace_limit, arena *a) {
    layouts *to = arena_array(a, layouts, 1);
    *to = (layouts){.own = list->count};
    if (!list->flow || !has_convolution(list)) return to;
    finder f = {.list = list, .flow = list->flow, .workspace_limit = workspace_limit, .arena = a, .to = to};
    begin(&f);
    bind_all(&f);
    turn_all(&f);
    join(&f);
    number_regions(&f);
    drop_others(&f);
    find_images(&f);
    find_conversions(&f);
    return to;
}

/* ---- fusions ---- */

typedef struct site_reader {
    const layouts *l;
    operation_list *list;
    fusion_list *fusions;
    arena *arena;
    map by_ops; /* the fusion of such turned operations: its number */
    map none;
    size_t room;
} site_reader;

/* The items that its parts run as in a region. False: it lies in none as a whole, or is the same there. */
static bool turn_site(const site_reader *r, const fusion *f, const int *site, int *items) {
    bool other = false;
    for (int k = 0; k < f->op_count; k++) {
        items[k] = r->l->turned[site[k]];
        if (items[k] < 0 || r->l->region[site[k]] != r->l->region[site[0]]) return false;
        other = other || items[k] >= r->l->own;
    }
    return other;
}

typedef struct turned_fusion {
    int at;      /* in the list */
    size_t room; /* numbers of its sites */
} turned_fusion;

/* Fusions that are others in the file's order may be one turned. */
static turned_fusion *turn_fusion(site_reader *r, int from, const int *items) {
    char *key = arena_printf(r->arena, "%s", r->fusions->items[from].pattern);
    for (int k = 0; k < r->fusions->items[from].op_count; k++) key = arena_printf(r->arena, "%s;%d", key, items[k]);
    void **place = map_put(&r->by_ops, key);
    if (*place) return *place;
    arena_grow(r->arena, (void **)&r->fusions->items, &r->room, (size_t)r->fusions->count, sizeof(fusion));
    const fusion *like = &r->fusions->items[from];
    fusion *to = &r->fusions->items[r->fusions->count];
    turned_fusion *const turned = arena_array(r->arena, turned_fusion, 1);
    *to = (fusion){
        .pattern = like->pattern, .saved_bytes = like->saved_bytes, .op_count = like->op_count, .turned = true};
    for (int k = 0; k < to->op_count; k++) to->ops[k] = &r->list->items[items[k]];
    to->parts = arena_array(r->arena, fusion_part, to->op_count);
    fusion_finish(to, &r->none, r->arena);
    turned->at = r->fusions->count++;
    return *place = turned;
}

static void add_site(site_reader *r, turned_fusion *turned, const int *site) {
    fusion *to = &r->fusions->items[turned->at];
    for (int k = 0; k < to->op_count; k++) {
        const size_t at = (size_t)to->site_count * (size_t)to->op_count + (size_t)k;
        arena_grow(r->arena, (void **)&to->sites, &turned->room, at, sizeof *to->sites);
        to->sites[at] = site[k];
    }
    to->site_count++;
    to->fused.count = to->count += r->list->flow->occurrences[site[0]].times;
}

void layouts_fusions(const layouts *l, operation_list *list, fusion_list *fusions, arena *a) {
    site_reader r = {.l = l, .list = list, .fusions = fusions, .arena = a, .room = (size_t)fusions->count};
    const int own = fusions->count;
    map_init(&r.by_ops, a);
    map_init(&r.none, a);
    for (int n = 0; l->region_count > 0 && n < own; n++)
        for (int k = 0; k < fusions->items[n].site_count; k++) {
            int items[FUSION_PARTS] = {0};
            const int *site = &fusions->items[n].sites[k * fusions->items[n].op_count];
            if (turn_site(&r, &fusions->items[n], site, items)) add_site(&r, turn_fusion(&r, n, items), site);
        }
}
