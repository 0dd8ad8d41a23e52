/* The dataflow of a run in which some regions are turned: their operations are others, on tensors of their own, and
 * conversions stand where those and the file's both are needed. */
#include "scout/plan/layouts.h"

#include "common/checked.h"

#include <string.h>

typedef struct rewriter {
    const layouts *of;
    const operation_flow *file;
    const bool *turned; /* by region */
    int *own;           /* by tensor of the file: its turned one; -1: there is none yet */
    bool *made;         /* by tensor of the file: its turned one has its numbers */
    layouts_run *to;
    operation_flow *flow;
} rewriter;

static bool is_turned(const rewriter *r, int occurrence) {
    return r->of->region[occurrence] >= 0 && r->turned[r->of->region[occurrence]];
}

static int turned_tensor(rewriter *r, int tensor) {
    operation_flow *f = r->flow;
    if (r->own[tensor] >= 0) return r->own[tensor];
    if (r->of->images[tensor].same >= 0) {
        r->made[tensor] = true; /* by what makes that, in the file's order as well, or by what is about to */
        return r->own[tensor] = r->of->images[tensor].same;
    }
    f->tensors[f->tensor_count] = r->file->tensors[tensor];
    f->tensors[f->tensor_count].producer = -1;
    f->tensors[f->tensor_count].kept = false;
    r->made[tensor] = r->file->tensors[tensor].constant;
    return r->own[tensor] = f->tensor_count++;
}

static void add_edge(rewriter *r, int tensor, bool made) {
    operation_flow *f = r->flow;
    const int at = f->occurrence_count - 1;
    f->edges[f->edge_count++] = tensor;
    f->occurrences[at].after = f->edge_count;
    if (!made) f->occurrences[at].made = f->edge_count;
    if (made) f->tensors[tensor].producer = at;
}

static void add_occurrence(rewriter *r, const operation_occurrence *like, int item, int from) {
    operation_flow *f = r->flow;
    const int at = f->occurrence_count++, edge = f->edge_count;
    f->occurrences[at] = *like;
    f->occurrences[at].operation = item;
    f->occurrences[at].read = f->occurrences[at].made = f->occurrences[at].after = edge;
    f->occurrences[at].operands = f->operand_count;
    f->occurrences[at].operand_count = 0;
    r->to->from[at] = from;
    if (from >= 0) r->to->at[from] = at;
    r->to->converts[at] = -1;
}

static void add_operand(rewriter *r, int tensor) {
    r->flow->operands[r->flow->operand_count++] = tensor;
    r->flow->occurrences[r->flow->occurrence_count - 1].operand_count++;
}

static void convert(rewriter *r, const operation_occurrence *like, int item, int tensor, int from, int to) {
    add_occurrence(r, like, item, -1);
    r->to->converts[r->flow->occurrence_count - 1] = tensor;
    r->to->conversions++;
    add_edge(r, from, false);
    add_edge(r, to, true);
    add_operand(r, from);
    add_operand(r, to);
}

static void add_turned(rewriter *r, int k) {
    const operation_occurrence *at = &r->file->occurrences[k];
    const layouts_image *images = r->of->images;
    for (int e = at->read; e < at->made; e++) {
        const int tensor = layouts_whole(r->file, r->file->edges[e]);
        if (!images[tensor].turns) continue;
        const int own = turned_tensor(r, tensor);
        if (!r->made[tensor]) convert(r, at, images[tensor].there, tensor, tensor, own);
        r->made[tensor] = true;
    }
    add_occurrence(r, at, r->of->turned[k], k);
    for (int e = at->read; e < at->after; e++) {
        const int tensor = layouts_whole(r->file, r->file->edges[e]);
        add_edge(r, images[tensor].turns ? turned_tensor(r, tensor) : r->file->edges[e], e >= at->made);
    }
    for (int o = at->operands; o < at->operands + at->operand_count; o++) {
        const int whole = r->file->operands[o] < 0 ? -1 : layouts_whole(r->file, r->file->operands[o]);
        add_operand(r, whole >= 0 && images[whole].turns ? turned_tensor(r, whole) : r->file->operands[o]);
    }
    for (int e = at->made; e < at->after; e++) {
        const int tensor = layouts_whole(r->file, r->file->edges[e]);
        if (!images[tensor].turns) continue;
        r->made[tensor] = true;
        if (images[tensor].back >= 0) convert(r, at, images[tensor].back, tensor, turned_tensor(r, tensor), tensor);
    }
}

static void add_as_it_was(rewriter *r, int k) {
    const operation_occurrence *at = &r->file->occurrences[k];
    if (r->of->idle[k] >= 0 && r->turned[r->of->idle[k]]) {
        add_occurrence(r, at, -1, k);
        return;
    }
    add_occurrence(r, at, at->operation, k);
    for (int e = at->read; e < at->after; e++) add_edge(r, r->file->edges[e], e >= at->made);
    for (int o = 0; o < at->operand_count; o++) add_operand(r, r->file->operands[at->operands + o]);
}

layouts_run *layouts_rewrite(const layouts *l, const operation_flow *file, const bool *turned, arena *a) {
    layouts_run *to = arena_array(a, layouts_run, 1);
    operation_flow *f = to->flow = arena_array(a, operation_flow, 1);
    const int64_t tensors = checked_mul(2, file->tensor_count),
                  occurrences = checked_add(file->occurrence_count, tensors);
    rewriter r = {.of = l, .file = file, .turned = turned, .to = to, .flow = f};
    f->tensors = arena_array(a, operation_tensor, tensors);
    f->occurrences = arena_array(a, operation_occurrence, occurrences);
    f->edges = arena_array(a, int, checked_add(file->edge_count, checked_mul(2, tensors)));
    f->operands = arena_array(a, int, checked_add(file->operand_count, checked_mul(2, tensors)));
    f->cuts = file->cuts;
    f->tensor_count = file->tensor_count;
    memcpy(f->tensors, file->tensors, (size_t)file->tensor_count * sizeof *f->tensors);
    to->from = arena_array(a, int, occurrences);
    to->converts = arena_array(a, int, occurrences);
    to->at = arena_array(a, int, file->occurrence_count);
    r.own = arena_array(a, int, file->tensor_count);
    r.made = arena_array(a, bool, file->tensor_count);
    for (int k = 0; k < file->tensor_count; k++) {
        r.own[k] = -1;
        f->tensors[k].producer = -1;
    }
    for (int k = 0; k < file->occurrence_count; k++)
        if (is_turned(&r, k))
            add_turned(&r, k);
        else
            add_as_it_was(&r, k);
    return to;
}
