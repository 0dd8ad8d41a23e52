/* Goes through two runs, one after the other, and counts the bytes that operations move. A tensor is distant where more
 * than half of the cache lies between two uses of its memory, and what was written is so until it is read. Where
 * activations lie is not known yet: an output is taken to have the memory that became free last, as a placement by
 * liveness has it in general. */
#include "scout/plan/distances.h"

#include "scout/kinds/kinds.h"
#include "scout/op/op.h"
#include "scout/plan/binding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct freed { /* memory that no tensor has now */
    double bytes, at;  /* at: when it was used last, in bytes moved until then */
} freed;

typedef struct votes { /* times that an operation runs */
    double *left[3];   /* by tensor: that it is left so */
    double handed, all;
} votes;

typedef struct finder {
    const operation_flow *flow;
    operation_list *list;
    const layouts *layouts;
    uint64_t workspace_limit;
    arena *arena;
    bool *refused;  /* by item */
    scout_op **ops; /* by item; NULL: it moves nothing, or what it works on is not known */
    double *used;   /* by tensor that has memory of its own: as freed.at */
    bool *made;     /* likewise: it was written, and nothing has read it since */
    int *dies;      /* by occurrence: the first tensor that nothing needs after it; -1: there is none */
    int *next;      /* by tensor: the next one of the same occurrence */
    votes *votes;   /* by item */
    freed *free;    /* the last of them was used last, in general */
    int free_count;
    double now, most;                  /* bytes moved */
    double made_bytes, constant_bytes; /* of a run: that operations write, and read of constants */
} finder;

static const scout_op *op_at(finder *f, int item) {
    const operation *o = &f->list->items[item];
    scout_why why;
    if (f->ops[item] || f->refused[item] || o->skip_code) return f->ops[item];
    scout_op *op = arena_array(f->arena, scout_op, 1);
    f->refused[item] = !kinds_build(o, f->workspace_limit, f->arena, op, &why);
    if (!f->refused[item]) f->ops[item] = op;
    return f->ops[item];
}

static void vote(finder *f, int item, const uint32_t *left, uint32_t tensors, double times) {
    votes *of = &f->votes[item];
    bool handed = false;
    for (int k = 0; k < 3 && of->all == 0; k++) of->left[k] = arena_array(f->arena, double, tensors + 1);
    for (uint32_t t = 0; t < tensors; t++) {
        of->left[left[t]][t] += times;
        handed = handed || left[t] != SCOUT_LEFT_ALIKE;
    }
    of->handed += handed ? times : 0;
    of->all += times;
}

/* When the memory was used last that an output of this size gets. */
static double take(finder *f, double bytes) {
    double at = f->now;
    while (bytes > 0 && f->free_count > 0) {
        freed *last = &f->free[f->free_count - 1];
        if (last->at < at) at = last->at;
        if (last->bytes > bytes) {
            last->bytes -= bytes;
            return at;
        }
        bytes -= last->bytes;
        f->free_count--;
    }
    return bytes > 0 ? f->now - 2 * f->most : at; /* that no tensor of this run has had */
}

static void release(finder *f, int occurrence) {
    for (int t = f->dies[occurrence]; t >= 0; t = f->next[t])
        f->free[f->free_count++] = (freed){(double)f->flow->tensors[t].bytes, f->used[t]};
}

static uint32_t left_of(finder *f, const scout_tensor *of, int owner) {
    const bool output = of->role == SCOUT_OUTPUT;
    const double last = output ? take(f, (double)of->bytes) : f->used[owner];
    if (f->now - last > f->most) return SCOUT_LEFT_DISTANT;
    return !output && f->made[owner] ? SCOUT_LEFT_WRITTEN : SCOUT_LEFT_ALIKE;
}

static void visit(finder *f, int k, bool counts) {
    const operation_occurrence *at = &f->flow->occurrences[k];
    const int turned = f->layouts->region_count > 0 ? f->layouts->turned[k] : -1;
    const scout_op *op = op_at(f, at->operation), *other = turned >= 0 ? op_at(f, turned) : NULL;
    int bound[SCOUT_MAX_TENSORS];
    uint32_t left[SCOUT_MAX_TENSORS] = {SCOUT_LEFT_ALIKE};
    if (!op) return;
    binding_begin(bound);
    binding_tensors(f->flow, at, op, bound);
    for (uint32_t t = 0; t < op->tensor_count; t++) {
        const bool activation = op->tensors[t].role == SCOUT_INPUT || op->tensors[t].role == SCOUT_OUTPUT;
        if (activation && bound[t] >= 0) left[t] = left_of(f, &op->tensors[t], binding_owner(f->flow, bound[t]));
    }
    if (counts) vote(f, at->operation, left, op->tensor_count, (double)at->times);
    if (counts && other && other->tensor_count == op->tensor_count)
        vote(f, turned, left, op->tensor_count, (double)at->times);
    f->now += op->bytes_read + op->bytes_written;
    const double times = counts ? (double)at->times : 0;
    f->made_bytes += times * op->bytes_written;
    for (uint32_t t = 0; t < op->tensor_count; t++) {
        if (bound[t] < 0) continue;
        const bool constant = f->flow->tensors[binding_owner(f->flow, bound[t])].constant;
        f->constant_bytes += constant ? times * fmin((double)op->tensors[t].bytes, op->bytes_read) : 0;
        f->used[binding_owner(f->flow, bound[t])] = f->now;
        f->made[binding_owner(f->flow, bound[t])] = op->tensors[t].role == SCOUT_OUTPUT;
    }
}

/* Each tensor as it is left most often where anything is handed over, of the two ways that are not as alone. */
static void decide(const finder *f, int item) {
    const votes *of = &f->votes[item];
    operation *to = &f->list->items[item];
    if (of->all == 0) return;
    to->written = to->distant = 0;
    to->handed = of->handed / of->all;
    for (uint32_t t = 0; t < f->ops[item]->tensor_count && t < 64; t++) {
        const double alike = of->left[SCOUT_LEFT_ALIKE][t], written = of->left[SCOUT_LEFT_WRITTEN][t],
                     distant = of->left[SCOUT_LEFT_DISTANT][t];
        if (written + distant == 0 || written + distant < alike - (of->all - of->handed)) continue;
        *(distant > written ? &to->distant : &to->written) |= UINT64_C(1) << t;
    }
    const double all = f->made_bytes + f->constant_bytes;
    if (!(to->written | to->distant)) to->handed = 0;
    if (to->handed > 0) to->handed = fmax(round(100 * to->handed), 1) / 100; /* as the cache's key has it */
    to->crowd_written = to->distant && all > 0 ? round(10 * f->made_bytes / all) / 10 : 0;
}

static void find_deaths(finder *f) {
    const operation_flow *flow = f->flow;
    f->dies = arena_array(f->arena, int, flow->occurrence_count + 1);
    f->next = arena_array(f->arena, int, flow->tensor_count + 1);
    for (int k = 0; k < flow->occurrence_count; k++) f->dies[k] = -1;
    for (int t = 0; t < flow->tensor_count; t++) {
        const operation_tensor *of = &flow->tensors[t];
        f->next[t] = -1;
        if (of->source >= 0 || of->constant || of->producer < 0 || of->bytes < 0) continue;
        const int last = of->kept ? flow->occurrence_count - 1 : of->to;
        if (last < 0 || last >= flow->occurrence_count) continue;
        f->next[t] = f->dies[last];
        f->dies[last] = t;
    }
}

/* ---- fusions: what their parts say ---- */

static int tensor_named(const scout_op *op, const char *of) {
    const int at = of[0] == '#' ? atoi(of + 1) : op_tensor(op, of);
    return at >= 0 && (uint32_t)at < op->tensor_count && at < 64 ? at : -1;
}

static void note_fusion(finder *f, fusion *to) {
    scout_op fused;
    scout_why why;
    if (to->how != FUSION_SEQUENCE || !kinds_build(&to->fused, f->workspace_limit, f->arena, &fused, &why)) return;
    for (int p = 0; p < to->op_count; p++) {
        const scout_op *op = op_at(f, (int)(to->ops[p] - f->list->items));
        for (int k = 0; op && k < to->parts[p].place_count; k++) {
            const fusion_place *place = &to->parts[p].places[k];
            const int t = op_tensor(op, place->tensor),
                      at = strchr("@=", place->of[0]) ? -1 : tensor_named(&fused, place->of);
            if (t < 0 || at < 0 || op->tensors[t].role != fused.tensors[at].role) continue;
            const uint32_t left = operation_left(to->ops[p], (uint32_t)t);
            if (left == SCOUT_LEFT_ALIKE) continue;
            *(left == SCOUT_LEFT_DISTANT ? &to->fused.distant : &to->fused.written) |= UINT64_C(1) << at;
            to->fused.handed = fmax(to->fused.handed, to->ops[p]->handed);
            to->fused.crowd_written = fmax(to->fused.crowd_written, to->ops[p]->crowd_written);
        }
    }
}

void distances_find(operation_list *list, const layouts *l, fusion_list *fusions, uint64_t cache_bytes,
                    uint64_t workspace_limit, arena *a) {
    finder f = {.flow = list->flow, .list = list, .layouts = l, .workspace_limit = workspace_limit, .arena = a};
    const arena_mark mark = arena_save(a);
    if (!list->flow || cache_bytes == 0) return;
    f.most = (double)cache_bytes / 2;
    f.refused = arena_array(a, bool, list->count + 1);
    f.ops = arena_array(a, scout_op *, list->count + 1);
    f.votes = arena_array(a, votes, list->count + 1);
    f.used = arena_array(a, double, list->flow->tensor_count + 1);
    f.made = arena_array(a, bool, list->flow->tensor_count + 1);
    f.free = arena_array(a, freed, 2 * list->flow->tensor_count + 1);
    find_deaths(&f);
    for (int run = 0; run < 2; run++)
        for (int k = 0; k < list->flow->occurrence_count; k++) {
            visit(&f, k, run == 1);
            release(&f, k);
        }
    for (int k = 0; k < list->count; k++) decide(&f, k);
    for (int k = 0; k < fusions->count; k++) note_fusion(&f, &fusions->items[k]);
    arena_rewind(a, mark);
}
