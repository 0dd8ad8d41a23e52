/* A fused operation's tensors at one of its places: the inverse of where the parts' tensors lie in them. What parts
 * write for each other must be needed by nothing else. */
#include "scout/plan/binding.h"

#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/op.h"

#include <stdlib.h>
#include <string.h>

typedef struct binder {
    const operation_flow *flow;
    const int *occurrences;
    const binding_fusion *of;
    binding_site *to;
    scout_why *why;
} binder;

int *binding_reads(const operation_flow *f, arena *a) {
    int *reads = arena_array(a, int, f->tensor_count);
    for (int k = 0; k < f->occurrence_count; k++)
        for (int e = f->occurrences[k].read; e < f->occurrences[k].made; e++) reads[binding_owner(f, f->edges[e])]++;
    return reads;
}

static bool refuse(const binder *b, int part, const char *text) {
    return kind_tensors_refuse(b->why, "layout", "%.120s %s", b->of->parts[part].operation->id, text);
}

/* Tensor of the fused operation that a place names; -1: it names none. */
static int named(const binder *b, const fusion_place *p) {
    if (p->of[0] == '@' || p->of[0] == '=') return -1;
    const int at = p->of[0] == '#' ? atoi(p->of + 1) : op_tensor(b->of->fused, p->of);
    return at >= 0 && (uint32_t)at < b->of->fused->tensor_count ? at : -1;
}

static int output_of(const scout_op *op) {
    for (uint32_t t = 0; t < op->tensor_count; t++)
        if (op->tensors[t].role == SCOUT_OUTPUT) return (int)t;
    return -1;
}

static bool is_all_of(const binder *b, int part, uint32_t t, int at) {
    const fusion_place *p = &b->of->parts[part].places[t];
    const scout_tensor *own = &b->of->ops[part]->tensors[t], *whole = &b->of->fused->tensors[at];
    return p->offset == 0 && p->stride == 0 && whole->bytes == own->bytes && whole->type == own->type;
}

/* What an earlier part has bound, and this part's tensor must be too; -1: nothing has. */
static int bound_before(const binder *b, int part, uint32_t t) {
    const fusion_place *p = &b->of->parts[part].places[t];
    const int at = named(b, p);
    if (p->of[0] != '@') return at >= 0 && is_all_of(b, part, t, at) ? b->to->fused[at] : -1;
    const int from = atoi(p->of + 1), output = from >= 0 && from < part ? output_of(b->of->ops[from]) : -1;
    return output >= 0 ? b->to->parts[from][output] : -1;
}

static bool is_same(const binder *b, int x, int y) {
    const operation_tensor *s = &b->flow->tensors[x], *t = &b->flow->tensors[y];
    return binding_owner(b->flow, x) == binding_owner(b->flow, y) && s->offset == t->offset && s->lie == t->lie;
}

/* What a fusion takes for one of two operands may be the other one, where these may change places. */
static bool may_swap(const scout_op *op, uint32_t s, uint32_t t) {
    static const char *const either[] = {"add", "and", "equal", "max", "mean", "min", "mul", "or", "sum", "xor"};
    const scout_tensor *x = &op->tensors[s], *y = &op->tensors[t];
    bool swaps = false;
    for (size_t k = 0; k < sizeof either / sizeof *either; k++) swaps = swaps || op_is(op, either[k]);
    return op->kind == SCOUT_ELEMENTWISE && swaps && x->role == y->role && x->type == y->type && x->bytes == y->bytes &&
           memcmp(x->strides, y->strides, sizeof x->strides) == 0;
}

/* Whether tensor t is what a part before it has bound, if need be with another one in its place. */
static bool reads_before(const binder *b, int part, uint32_t t, int before) {
    const scout_op *op = b->of->ops[part];
    int *to = b->to->parts[part];
    if (to[t] >= 0 && is_same(b, to[t], before)) return true;
    for (uint32_t s = 0; s < op->tensor_count; s++) {
        if (to[s] < 0 || !is_same(b, to[s], before) || !may_swap(op, s, t)) continue;
        const int swapped = to[t];
        to[t] = to[s], to[s] = swapped;
        return true;
    }
    return false;
}

static bool bind_part(const binder *b, int part) {
    const fusion_part *from = &b->of->parts[part];
    const scout_op *op = b->of->ops[part];
    int *to = b->to->parts[part];
    if ((uint32_t)from->place_count != op->tensor_count) return refuse(b, part, "has tensors without a place");
    binding_begin(to);
    (void)binding_tensors(b->flow, &b->flow->occurrences[b->occurrences[part]], op, to);
    for (uint32_t t = 0; t < op->tensor_count; t++) {
        const int before = op->tensors[t].role != SCOUT_OUTPUT ? bound_before(b, part, t) : -1;
        if (before >= 0 && !reads_before(b, part, t, before))
            return refuse(b, part, "does not read what a part before it makes or reads");
    }
    for (uint32_t t = 0; t < op->tensor_count; t++)
        if (to[t] < 0 && from->places[t].of[0] != '=') return refuse(b, part, "has a tensor that the dataflow has not");
    return true;
}

/* Dense, and with memory of its own. A result has one place: this part's alone can lie behind others. */
static bool is_slice(const binder *b, int part, uint32_t t) {
    const scout_tensor *own = &b->of->ops[part]->tensors[t];
    const operation_tensor *at = &b->flow->tensors[b->to->parts[part][t]];
    const bool fits = own->role == SCOUT_OUTPUT ? at->producer == b->occurrences[part] : at->constant;
    return fits && at->source < 0 && at->lie == 0 && at->bytes >= 0 && (uint64_t)at->bytes == own->bytes;
}

static bool overlaps(const binder *b, const scout_tensor *own, uint64_t offset, int at) {
    for (int k = 0; k < b->to->slice_count; k++) {
        const binding_slice *s = &b->to->slices[k];
        const uint64_t bytes = b->of->ops[s->part]->tensors[s->tensor].bytes;
        if (s->of == at && offset < s->offset + bytes && s->offset < offset + own->bytes) return true;
    }
    return false;
}

/* Slices have no tensor of the dataflow that is all of them. A bias that others read too is copied; of a weight that
 * would be as much again for each place. */
static bool bind_slice(const binder *b, int part, uint32_t t, int at) {
    const fusion_place *p = &b->of->parts[part].places[t];
    const scout_tensor *own = &b->of->ops[part]->tensors[t], *whole = &b->of->fused->tensors[at];
    const uint64_t offset = (uint64_t)dtype_bytes((dtype)own->type, p->offset);
    const bool fits = p->stride == 0 && p->offset >= 0 && whole->type == own->type && offset <= whole->bytes &&
                      own->bytes <= whole->bytes - offset && offset % FUSION_ALIGNMENT == 0 &&
                      !overlaps(b, own, offset, at) && b->to->slice_count < BINDING_SLICES;
    if (!fits || !is_slice(b, part, t))
        return refuse(b, part, "has a slice of a tensor that is nowhere whole in the dataflow");
    const bool copied = own->role != SCOUT_OUTPUT && b->of->reads[b->to->parts[part][t]] > 1;
    if (copied && whole->role == SCOUT_WEIGHT)
        return refuse(b, part, "has a weight that something else reads too, and would have to be copied");
    b->to->slices[b->to->slice_count++] =
        (binding_slice){.part = part, .tensor = (int)t, .of = at, .offset = offset, .copied = copied};
    if (offset == 0) b->to->fused[at] = b->to->parts[part][t];
    return true;
}

/* Where a tensor has slices, they are all of it. */
static bool are_whole(const binder *b) {
    uint64_t bytes[SCOUT_MAX_TENSORS] = {0};
    for (int k = 0; k < b->to->slice_count; k++) {
        const binding_slice *s = &b->to->slices[k];
        bytes[s->of] += b->of->ops[s->part]->tensors[s->tensor].bytes;
    }
    for (uint32_t t = 0; t < b->of->fused->tensor_count; t++)
        if (bytes[t] != 0 && bytes[t] != b->of->fused->tensors[t].bytes)
            return kind_tensors_refuse(b->why, "layout",
                                       "its parts have some of the fused operation's tensor %.16s alone",
                                       b->of->fused->tensors[t].name);
    return true;
}

/* All slices of a tensor, where one of them is. */
static void copy_slices(const binder *b) {
    bool copied[SCOUT_MAX_TENSORS] = {false};
    for (int k = 0; k < b->to->slice_count; k++)
        copied[b->to->slices[k].of] = copied[b->to->slices[k].of] || b->to->slices[k].copied;
    for (int k = 0; k < b->to->slice_count; k++) b->to->slices[k].copied = copied[b->to->slices[k].of];
    for (int t = 0; t < SCOUT_MAX_TENSORS; t++)
        if (copied[t]) b->to->fused[t] = -1;
}

static bool bind_whole(const binder *b, int part, uint32_t t) {
    const fusion_place *p = &b->of->parts[part].places[t];
    const scout_tensor *own = &b->of->ops[part]->tensors[t];
    const int at = named(b, p);
    if (p->of[0] == '@' || p->of[0] == '=') return true;
    if (at < 0) return refuse(b, part, "lies in a tensor that the fused operation has not");
    const scout_tensor *whole = &b->of->fused->tensors[at];
    if (!is_all_of(b, part, t, at)) return bind_slice(b, part, t, at);
    if (b->flow->tensors[b->to->parts[part][t]].lie != operation_lie((int)whole->rank, whole->dims, whole->strides))
        return refuse(b, part, "lies there by other strides than in the fused operation");
    if (whole->below > 0) return refuse(b, part, "reads numbers that are places in a table");
    if (b->to->fused[at] < 0 || own->role == SCOUT_OUTPUT) b->to->fused[at] = b->to->parts[part][t];
    return true;
}

static int part_of(const binder *b, int occurrence) {
    for (int k = 0; k < b->of->count; k++)
        if (b->occurrences[k] == occurrence) return k;
    return -1;
}

static bool is_written(const binder *b, int owner) {
    for (uint32_t t = 0; t < b->of->fused->tensor_count; t++)
        if (b->of->fused->tensors[t].role == SCOUT_OUTPUT && binding_owner(b->flow, b->to->fused[t]) == owner)
            return true;
    for (int k = 0; k < b->to->slice_count; k++)
        if (b->to->parts[b->to->slices[k].part][b->to->slices[k].tensor] == owner) return true;
    return false;
}

/* Everything that a part makes is written by the whole, or read within it alone. */
static bool is_closed(const binder *b, int part) {
    const operation_occurrence *at = &b->flow->occurrences[b->occurrences[part]];
    for (int e = at->made; e < at->after; e++) {
        const int owner = binding_owner(b->flow, b->flow->edges[e]);
        int within = 0;
        if (is_written(b, owner)) continue;
        for (int k = 0; k < b->of->count; k++) {
            const operation_occurrence *reader = &b->flow->occurrences[b->occurrences[k]];
            for (int r = reader->read; r < reader->made; r++)
                within += binding_owner(b->flow, b->flow->edges[r]) == owner;
        }
        if (b->flow->tensors[owner].kept || within != b->of->reads[owner])
            return refuse(b, part, "makes what something else needs, and the fused operation does not write");
    }
    return true;
}

/* What the whole reads is there before any of it. */
static bool is_fed(const binder *b) {
    for (uint32_t t = 0; t < b->of->fused->tensor_count; t++) {
        const int tensor = b->to->fused[t];
        if (tensor < 0)
            return kind_tensors_refuse(b->why, "layout", "no part has the fused operation's tensor %.16s",
                                       b->of->fused->tensors[t].name);
        const int producer = b->flow->tensors[binding_owner(b->flow, tensor)].producer;
        if (b->of->fused->tensors[t].role != SCOUT_OUTPUT && producer >= 0 && part_of(b, producer) >= 0)
            return kind_tensors_refuse(b->why, "layout", "it would read what it makes");
        if (b->of->fused->tensors[t].role == SCOUT_OUTPUT && part_of(b, producer) < 0)
            return kind_tensors_refuse(b->why, "layout", "it would write what none of its parts makes");
    }
    return true;
}

bool binding_fused(const operation_flow *f, const int *occurrences, const binding_fusion *of, binding_site *out,
                   scout_why *why) {
    const binder b = {f, occurrences, of, out, why};
    binding_begin(out->fused);
    out->slice_count = 0;
    for (int k = 0; k < of->count; k++) {
        if (!bind_part(&b, k)) return false;
        for (uint32_t t = 0; t < of->ops[k]->tensor_count; t++)
            if (!bind_whole(&b, k, t)) return false;
    }
    if (!is_fed(&b) || !are_whole(&b)) return false;
    copy_slices(&b);
    for (int k = 0; k < of->count; k++)
        if (!is_closed(&b, k)) return false;
    return true;
}
