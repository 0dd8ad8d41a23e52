#include "extract/expand/expand_parts.h"

#include "common/plain.h"
#include "extract/infer/infer.h"

#include <string.h>

enum { OPSET = 18 /* of ai.onnx, which the parts are written in: sizes and axes are inputs */ };

static const char *name_in(expander *e, const char *name) {
    const model *m = e->m;
    if (!e->names.count) {
        for (int64_t k = 0; k < m->node_count; k++) map_unique(&e->names, m->nodes[k]->name);
        for (int64_t k = 0; k < m->tensor_count; k++) map_unique(&e->names, m->tensors[k]->name);
    }
    return map_unique(&e->names, plain_name(m->arena, name));
}

tensor *part_tensor(expansion *x, const char *name, tensor_source source, const info *is) {
    tensor *t = arena_zalloc(x->e->m->arena, sizeof *t);
    t->name = name_in(x->e, name);
    t->source = source;
    t->info = is;
    t->home = x->n->home;
    if (x->tensor_count == MAX_TENSORS) {
        x->failed = true;
        return t;
    }
    void *items = x->tensors;
    arena_grow(x->e->m->arena, &items, &x->tensor_cap, (size_t)x->tensor_count, sizeof *x->tensors);
    x->tensors = items;
    x->tensors[x->tensor_count++] = t;
    return t;
}

tensor *part_constant(expansion *x, const char *what, const info *is) {
    tensor *t = part_tensor(x, arena_printf(x->e->m->arena, "%s/%s", x->n->name, what), TENSOR_NODE, is);
    t->is_constant = true;
    return t;
}

tensor *part_numbers(expansion *x, const char *what, int64_t n, const int64_t *values) {
    return part_constant(x, what, info_of_ints(x->e->m->arena, DTYPE_INT64, 1, &n, values, n));
}

tensor *part_number(expansion *x, const char *what, int64_t n) { return part_numbers(x, what, 1, &n); }

tensor *part_scalar(expansion *x, const char *what, dtype type, int64_t n) {
    return part_constant(x, what, info_of_ints(x->e->m->arena, type, 0, info_no_dims, &n, 1));
}

tensor *part_table(expansion *x, const char *what, dtype type, int rank, const int64_t *dims) {
    return part_constant(x, what, info_tensor(x->e->m->arena, type, rank, dims));
}

attr int_attr(const char *name, int64_t i) { return (attr){.name = name, .kind = ATTR_INT, .i = i}; }
attr real_attr(const char *name, double f) { return (attr){.name = name, .kind = ATTR_FLOAT, .f = f}; }

attr ints_attr(const char *name, int n, const int64_t *ints) {
    return (attr){.name = name, .kind = ATTR_INTS, .n = n, .ints = ints};
}

attr text_attr(const char *name, const char *s) {
    return (attr){.name = name, .kind = ATTR_STRING, .s = s, .n = (int64_t)strlen(s)};
}

static void set_attrs(arena *a, node *n, const attr *attrs, int most) {
    for (n->attr_count = 0; n->attr_count < most && attrs[n->attr_count].name;) n->attr_count++;
    n->attrs = arena_array(a, attr, n->attr_count);
    for (int k = 0; k < n->attr_count; k++) n->attrs[k] = attrs[k];
}

static void become(node *n, const char *domain, const char *op_type) {
    n->domain = domain;
    n->op_type = op_type;
    n->opset = *domain ? 1 : OPSET;
    n->def = operators_find(domain, op_type);
}

tensor *const *part_make(expansion *x, const step *s) {
    static tensor *const none[STEP_OUTPUTS];
    arena *a = x->e->m->arena;
    if (x->failed || x->made_count == MAX_STEPS) {
        x->failed = true;
        return none;
    }
    node *n = arena_zalloc(a, sizeof *n);
    become(n, s->domain ? s->domain : "", s->op_type);
    n->name = name_in(x->e, arena_printf(a, "%s/%s", x->n->name, s->op_type));
    n->home = x->n->home;
    n->made = true;
    for (n->in_count = STEP_INPUTS; n->in_count > 0 && !s->in[n->in_count - 1];) n->in_count--;
    n->out_count = s->outputs ? s->outputs : 1;
    n->in = arena_array(a, tensor *, n->in_count + n->out_count);
    n->out = n->in + n->in_count;
    memcpy(n->in, s->in, (size_t)n->in_count * sizeof *n->in);
    set_attrs(a, n, s->attrs, (int)(sizeof s->attrs / sizeof *s->attrs));
    for (int k = 0; k < n->out_count; k++) {
        if (s->left_out >> k & 1U) continue;
        n->out[k] = part_tensor(x, arena_printf(a, "%s_output_%d", n->name, k), TENSOR_NODE, &info_unknown);
        n->out[k]->producer = n;
        n->out[k]->producer_slot = k;
    }
    void *items = x->made;
    arena_grow(a, &items, &x->made_cap, (size_t)x->made_count, sizeof *x->made);
    x->made = items;
    x->made[x->made_count++] = n;
    if (!x->failed) x->failed = !infer_made(x->e->m, n);
    return x->failed ? none : n->out;
}

void part_end(expansion *x, const step *s) {
    part_make(x, s);
    part_end_made(x);
}

void part_end_made(expansion *x) {
    const tensor *const given = part_out(x, 0);
    node *const n = &x->last;
    if (x->made_count == 0) x->failed = true;
    if (x->failed) return;
    const node *const made = x->made[--x->made_count];
    const info *const is = made->out[0]->info;
    for (int k = 0; k < made->out_count; k++) x->tensor_count -= made->out[k] != NULL; /* the last ones */
    x->failed = !given || !info_same_shape(given->info, is) || given->info->type != is->type;
    n->domain = made->domain, n->op_type = made->op_type, n->opset = made->opset, n->def = made->def;
    n->in = made->in, n->in_count = made->in_count;
    n->attrs = made->attrs, n->attr_count = made->attr_count;
    n->out_count = made->out_count;
}

void part_like_node(expansion *x, step *s) {
    const int most = (int)(sizeof s->attrs / sizeof *s->attrs), count = x->n->attr_count;
    if (count > most) x->failed = true;
    for (int k = 0; k < count && k < most; k++) s->attrs[k] = x->n->attrs[k];
}

tensor *part_in(const expansion *x, int i) { return i >= 0 && i < x->n->in_count ? x->n->in[i] : NULL; }
tensor *part_out(const expansion *x, int i) { return i < x->n->out_count ? x->n->out[i] : NULL; }
int tensor_rank(const tensor *t) { return t && info_shaped(t->info) ? t->info->rank : -1; }

int64_t tensor_dim(const tensor *t, int axis) {
    const int rank = tensor_rank(t), at = axis < 0 ? axis + rank : axis;
    return rank >= 0 && at >= 0 && at < rank ? t->info->dims[at] : 0;
}

int64_t tensor_count(const tensor *t) { return tensor_rank(t) >= 0 ? info_count(t->info) : 0; }

static bool is_of_softmax(const node *n) {
    static const char *const names[] = {"Softmax", "Exp", "ReduceMax"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (graph_is(n, names[k])) return true;
    return false;
}

/* Through what keeps the shape, against the flow of data or with it; the budget is that of all ways together. */
static bool softmax_above(const tensor *t, int *budget) {
    const node *const n = t->producer;
    if (!n || --*budget < 0) return false;
    if (is_of_softmax(n)) return true;
    for (int k = 0; k<n->in_count && * budget> 0; k++) {
        const tensor *const in = n->in[k];
        if (in && info_same_shape(t->info, in->info) && softmax_above(in, budget)) return true;
    }
    return false;
}

static bool softmax_below(const tensor *t, int *budget) {
    for (int k = 0; k < t->user_count && --*budget >= 0; k++) {
        const node *const n = t->users[k];
        const tensor *const out = n->out_count > 0 ? n->out[0] : NULL;
        if (is_of_softmax(n)) return true;
        if (out && info_same_shape(t->info, out->info) && softmax_below(out, budget)) return true;
    }
    return false;
}

bool part_beside_softmax(const expansion *x) {
    enum { NEAR = 24 };
    int budget = NEAR;
    const tensor *const out = part_out(x, 0);
    if (out && softmax_below(out, &budget)) return true;
    for (int k = 0; k < x->n->in_count; k++) {
        budget = NEAR;
        if (part_in(x, k) && softmax_above(part_in(x, k), &budget)) return true;
    }
    return false;
}

tensor *part_do(expansion *x, const char *op_type, tensor *a, tensor *b) {
    return *part_make(x, &(step){.op_type = op_type, .in = {a, b}});
}

tensor *part_cast(expansion *x, tensor *t, dtype to) {
    return *part_make(x, &(step){.op_type = "Cast", .in = {t}, .attrs = {int_attr("to", to)}});
}

tensor *part_zeros(expansion *x, dtype type, int rank, const int64_t *dims) {
    tensor *made = *part_make(x, &(step){.op_type = "ConstantOfShape", .in = {part_numbers(x, "shape", rank, dims)}});
    return type == DTYPE_FP32 ? made : part_cast(x, made, type);
}

tensor *part_add(expansion *x, tensor *a, tensor *b) {
    tensor *sum = part_do(x, "Add", a, b);
    if (sum && !info_same_shape(sum->info, a->info)) x->failed = true;
    return sum;
}

tensor *part_slice(expansion *x, tensor *t, int axis, int64_t start, int64_t end) {
    return *part_make(x, &(step){.op_type = "Slice",
                                 .in = {t, part_number(x, "starts", start), part_number(x, "ends", end),
                                        part_number(x, "axes", axis)}});
}

void part_leave_out(expansion *x, int i) {
    if (i < x->last.in_count) x->last.in[i] = NULL;
}

tensor *const *part_split(expansion *x, tensor *t, int axis, int parts, const int64_t *sizes) {
    for (int k = 0; k < parts; k++) x->failed = x->failed || sizes[k] <= 0;
    return part_make(x, &(step){.op_type = "Split",
                                .in = {t, part_numbers(x, "sizes", parts, sizes)},
                                .attrs = {int_attr("axis", axis)},
                                .outputs = parts});
}

tensor *part_reshaped(expansion *x, tensor *t, int rank, const int64_t *dims) {
    if (tensor_rank(t) == rank && memcmp(t->info->dims, dims, (size_t)rank * sizeof *dims) == 0) return t;
    return *part_make(x, &(step){.op_type = "Reshape", .in = {t, part_numbers(x, "shape", rank, dims)}});
}

void part_end_reshaped(expansion *x, tensor *t) {
    const info *is = part_out(x, 0)->info;
    if (tensor_count(t) != info_count(is)) x->failed = true;
    if (x->failed) return;
    if (x->made_count > 0 && x->made[x->made_count - 1]->out[0] == t && info_same_shape(is, t->info)) {
        part_end_made(x);
        return;
    }
    part_end(x, &(step){.op_type = "Reshape", .in = {t, part_numbers(x, "shape", is->rank, is->dims)}});
}

tensor *part_real(expansion *x, const tensor *like, const char *what, double f) {
    const dtype type = like ? like->info->type : DTYPE_NONE;
    return part_constant(x, what, info_of_floats(x->e->m->arena, type, 0, info_no_dims, &f, 1));
}

void part_give(expansion *x, int slot, tensor *made) {
    tensor *given = part_out(x, slot);
    if (x->failed || !given || !made) return;
    x->failed = !info_same_shape(given->info, made->info) || given->info->type != made->info->type;
    const node *n = NULL;
    for (int k = x->made_count - 1; k >= 0 && n != made->producer; k--) { /* none before it reads what it makes */
        n = x->made[k];
        for (int j = 0; j < n->in_count; j++)
            if (n->in[j] == made) n->in[j] = given;
        for (int j = 0; j < n->out_count; j++)
            if (n->out[j] == made) n->out[j] = given;
    }
    for (int k = 0; k < x->last.in_count; k++)
        if (x->last.in[k] == made) x->last.in[k] = given;
    int at = x->tensor_count;
    while (at > 0 && x->tensors[at - 1] != made) at--;
    if (at == 0) return;
    for (int k = at; k < x->tensor_count; k++) x->tensors[k - 1] = x->tensors[k];
    x->tensor_count--;
}
