/* The dataflow of the hand-written form: an entry's `inputs` name the entries whose outputs it reads, and what no entry
 * is called is an input of the model. Sizes follow from the records; an entry that runs several times stands once. */
#include "scout/input/operation_internal.h"

#include "common/checked.h"
#include "common/liveness.h"
#include "common/map.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_INPUTS = 64 }; /* of an entry */

/* An entry, or an input of the model. */
typedef struct flow_node {
    const char *name;
    operation *o; /* NULL: an input of the model */
    int *inputs;  /* nodes, each once for each time it is named */
    int input_count;
    int64_t elements; /* of its output; -1: not known */
    int64_t bytes;
    int at, last; /* when it is made, and last read; -1: not yet, by nothing */
    int next;     /* which of its inputs is looked at; -1: it does not wait */
} flow_node;

typedef struct flow {
    operation_reader *r;
    operation_list *list;
    map by_name; /* its node's index, plus 1 */
    flow_node *nodes;
    size_t count, cap;
    int *order, *stack;
    int ordered;
} flow;

static int64_t product(int n, const int64_t *x) {
    int64_t p = 1;
    for (int k = 0; k < n; k++) p = checked_mul(p, x[k]);
    return p;
}

/* ---- names ---- */

bool operation_names_inputs(const char *name, const json_t *x) {
    return strcmp(name, "inputs") == 0 && json_is_array(x);
}

static int node_of(flow *f, const char *name, operation *o) {
    void **place = map_put(&f->by_name, name);
    if (*place) return (int)(intptr_t)*place - 1;
    arena_grow(f->r->arena, (void **)&f->nodes, &f->cap, f->count, sizeof *f->nodes);
    f->nodes[f->count++] = (flow_node){.name = name, .o = o, .elements = -1, .at = -1, .last = -1, .next = -1};
    *place = (void *)(intptr_t)f->count;
    return (int)f->count - 1;
}

static void read_names(flow *f, int index) {
    operation *o = f->nodes[index].o;
    const json_t *names = json_object_get(o->source, "inputs");
    const size_t n = json_array_size(names);
    f->r->entry = o->name;
    if (!operation_names_inputs("inputs", names))
        operation_fail(f->r, "its inputs have no names, and those of other entries have: name them too, "
                             "as in \"inputs\": [\"x\"]");
    if (n > MOST_INPUTS) operation_fail(f->r, "it names %zu inputs, %d at most are possible", n, (int)MOST_INPUTS);
    int *inputs = arena_array(f->r->arena, int, n + 1);
    for (size_t k = 0; k < n; k++) {
        const json_t *one = json_array_get(names, k);
        const char *name = json_string_value(one);
        if (!name || !*name || strlen(name) != json_string_length(one))
            operation_fail(f->r, "inputs must be the names of entries, or of inputs of the model");
        inputs[k] = node_of(f, arena_strndup(f->r->arena, name, strlen(name)), NULL);
    }
    f->nodes[index].inputs = inputs;
    f->nodes[index].input_count = (int)n;
}

/* ---- order ---- */

static void push(flow *f, int *depth, int node) {
    if (!f->nodes[node].o || f->nodes[node].at >= 0) return;
    f->r->entry = f->nodes[node].name;
    if (f->nodes[node].next >= 0) operation_fail(f->r, "its inputs lead back to itself");
    f->nodes[node].next = 0;
    f->stack[(*depth)++] = node;
}

static void order_from(flow *f, int root) {
    int depth = 0;
    push(f, &depth, root);
    while (depth > 0) {
        flow_node *top = &f->nodes[f->stack[depth - 1]];
        if (top->next < top->input_count) {
            push(f, &depth, top->inputs[top->next++]);
            continue;
        }
        top->at = f->ordered;
        f->order[f->ordered++] = f->stack[--depth];
    }
}

/* ---- sizes ---- */

static dtype out_type(const oprec *rec) { return rec->out_type != DTYPE_NONE ? rec->out_type : rec->type; }

/* What it reads of its inputs, in elements of its type; what else it reads are weights. */
static int64_t elements_read(const oprec *rec) {
    const opfield *side = oprec_field(rec, "weight_side"), *input = oprec_field(rec, "input");
    const int64_t batch = oprec_int(rec, "batch", 1), *s = rec->shape;
    int64_t n = product(rec->rank, s);
    if (rec->kind == OP_GEMM) {
        const bool left = side && side->kind == OPFIELD_TEXT && strcmp(side->text, "a") == 0;
        const int64_t a = checked_mul(oprec_int(rec, "batch_stride_a", 1) ? batch : 1, checked_mul(s[0], s[2]));
        const int64_t b = checked_mul(oprec_int(rec, "batch_stride_b", 1) ? batch : 1, checked_mul(s[1], s[2]));
        n = !side ? checked_add(a, b) : left ? b : a;
        if (oprec_int(rec, "residual", 0)) n = checked_add(n, checked_mul(batch, checked_mul(s[0], s[1])));
    }
    if (rec->kind == OP_CONV && input && input->kind == OPFIELD_INTS) n = product(input->n, input->ints);
    if (rec->kind == OP_NORM && oprec_int(rec, "residual", 0)) n = checked_mul(2, n);
    if (rec->kind == OP_RECURRENT) n = product(3, s);
    return n;
}

/* Kinds of which the form tells how much of what is read are activations; of all others everything is. */
static bool has_weights(op_kind kind) {
    return kind == OP_GEMM || kind == OP_CONV || kind == OP_NORM || kind == OP_RECURRENT;
}

static int64_t bytes_read(const oprec *rec) {
    if (rec->kind == OP_EMBEDDING) return dtype_bytes(DTYPE_INT64, rec->shape[0]);
    return has_weights(rec->kind) ? dtype_bytes(rec->type, elements_read(rec)) : rec->bytes_read;
}

static int64_t weight_bytes(const oprec *rec) {
    if (rec->kind == OP_EMBEDDING)
        return dtype_bytes(rec->type, checked_mul(oprec_int(rec, "table", 0), rec->shape[rec->rank - 1]));
    const int64_t rest = has_weights(rec->kind) ? checked_sub(rec->bytes_read, bytes_read(rec)) : 0;
    return rest > 0 ? rest : 0;
}

static void set_output(flow_node *n) {
    const int bits = dtype_get(out_type(&n->o->rec))->bits;
    n->bytes = n->o->rec.bytes_written;
    n->elements = bits > 0 ? (int64_t)((double)n->bytes * 8 / bits) : -1;
}

/* How an operand compares with the output, in the words of the dimension `inputs` (docs/formats.md). */
static const char *operand(flow *f, const flow_node *reader, const flow_node *of) {
    const oprec *rec = &reader->o->rec;
    const int64_t whole = product(rec->rank, rec->shape), last = rec->rank > 0 ? rec->shape[rec->rank - 1] : 1;
    if (!of->o || of->elements == whole) return "tensor";
    if (of->elements == last) return "vector";
    if (of->elements == 1) return "scalar";
    operation_fail(f->r,
                   "its input %.100s has %" PRId64 " elements: neither %" PRId64 " as its shape, nor %" PRId64
                   " as the last dimension of that, nor 1",
                   of->name, of->elements, whole, last);
}

/* Operands by name say what `inputs` of ops.json does. */
static void set_operands(flow *f, flow_node *n) {
    oprec *rec = &n->o->rec;
    const char *text = "";
    if (rec->kind == OP_MOVE && rec->what && strcmp(rec->what, "concat") == 0)
        oprec_set_int(rec, "inputs", n->input_count);
    if (rec->kind != OP_ELEMENTWISE || n->input_count < 2) return;
    int64_t bytes = 0;
    for (int k = 0; k < n->input_count; k++) {
        const flow_node *of = &f->nodes[n->inputs[k]];
        const bool same = k > 0 && n->inputs[k] == n->inputs[k - 1];
        const char *is = operand(f, n, of);
        text = arena_printf(f->r->arena, "%s%s%s", text, k ? "," : "", same ? "same" : is);
        if (!same)
            bytes =
                checked_add(bytes, dtype_bytes(rec->type, *is == 't' ? product(rec->rank, rec->shape) : of->elements));
    }
    oprec_set_text(rec, "inputs", text);
    rec->bytes_read = bytes;
}

/* Of what it reads, the rest belongs to the one input of the model among its inputs. */
static void size_inputs(flow *f, const flow_node *n) {
    int64_t given = 0, elements = 0;
    int unknown = 0, at = 0;
    for (int k = 0; k < n->input_count; k++) {
        flow_node *of = &f->nodes[n->inputs[k]];
        bool seen = false;
        for (int j = 0; j < k && !seen; j++) seen = n->inputs[j] == n->inputs[k];
        if (of->last < n->at) of->last = n->at;
        if (seen) continue;
        given = checked_add(given, of->o ? of->bytes : 0);
        elements = checked_add(elements, of->o ? of->elements : 0);
        unknown += !of->o;
        if (!of->o) at = n->inputs[k];
    }
    const int64_t reads = bytes_read(&n->o->rec), needs = elements_read(&n->o->rec);
    if (n->input_count > 0 && unknown == 0 && has_weights(n->o->rec.kind) && elements < needs)
        operation_fail(f->r, "it reads %" PRId64 " elements of its inputs, which have %" PRId64, needs, elements);
    if (unknown == 1 && reads - given > f->nodes[at].bytes) f->nodes[at].bytes = reads - given;
}

/* ---- all of it ---- */

static void sum_up(flow *f) {
    operation_memory *m = &f->list->memory;
    liveness l;
    int at;
    liveness_begin(&l, f->r->arena, f->ordered);
    for (size_t k = 0; k < f->count; k++) {
        const flow_node *n = &f->nodes[k];
        if (n->o) m->weight_bytes = checked_add(m->weight_bytes, checked_mul(n->o->count, weight_bytes(&n->o->rec)));
        if (!n->o && n->bytes == 0) m->least = true;
        liveness_add(&l, n->bytes, n->o ? n->at : 0, n->o && n->last < 0 ? f->ordered - 1 : n->last);
    }
    m->activation_bytes = liveness_peak(&l, &at);
    m->at = f->nodes[f->order[at]].name;
    m->known = true;
}

void operation_read_inputs(operation_reader *r, operation_list *list) {
    flow f = {.r = r, .list = list};
    bool any = false;
    for (int k = 0; k < list->count; k++)
        any = any || operation_names_inputs("inputs", json_object_get(list->items[k].source, "inputs"));
    if (!any) return;
    map_init(&f.by_name, r->arena);
    for (int k = 0; k < list->count; k++) node_of(&f, list->items[k].name, &list->items[k]);
    for (int k = 0; k < list->count; k++) read_names(&f, k);
    f.order = arena_array(r->arena, int, list->count);
    f.stack = arena_array(r->arena, int, list->count);
    for (int k = 0; k < list->count; k++) order_from(&f, k);
    for (int k = 0; k < f.ordered; k++) {
        flow_node *n = &f.nodes[f.order[k]];
        r->entry = n->name;
        set_operands(&f, n);
        set_output(n);
        size_inputs(&f, n);
    }
    r->entry = "";
    sum_up(&f);
}
