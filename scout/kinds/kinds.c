/* The kinds of operations that can be measured, one line each, and what all of them have in common as candidates see
 * it. */
#include "scout/kinds/kinds.h"
#include "scout/kinds/kind_tensors.h"

#include <stdio.h>
#include <string.h>

static const kind *const kinds[] = {
    &kind_gemm,      &kind_conv,      &kind_pool,   &kind_norm, &kind_softmax,  &kind_elementwise, &kind_reduce,
    &kind_attention, &kind_embedding, &kind_rotary, &kind_move, &kind_quantize, &kind_recurrent,
};

const kind *kinds_find(op_kind op) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k]->op == op) return kinds[k];
    return NULL;
}

bool kinds_light(op_kind op) {
    const kind *k = kinds_find(op);
    return k && k->light;
}

bool kinds_dear(const oprec *rec) {
    return rec->kind == OP_ATTENTION || (rec->kind == OP_GEMM && oprec_field(rec, "activation"));
}

static const char *ints_text(arena *a, int n, const int64_t *x) {
    const char *text = "";
    for (int k = 0; k < n; k++) text = arena_printf(a, "%s%s%lld", text, k ? "," : "", (long long)x[k]);
    return text;
}

/* Whole numbers stay numbers; lists and fractions become text. */
static const scout_field *common_fields(const oprec *rec, arena *a) {
    scout_field *fields = arena_array(a, scout_field, rec->field_count + 1);
    for (int k = 0; k < rec->field_count; k++) {
        const opfield *f = &rec->fields[k];
        fields[k].name = f->name;
        switch (f->kind) {
        case OPFIELD_INT: fields[k].number = f->i; break;
        case OPFIELD_TEXT: fields[k].text = f->text ? f->text : ""; break;
        case OPFIELD_REAL: fields[k].text = arena_printf(a, "%.17g", f->real); break;
        case OPFIELD_INTS: fields[k].text = ints_text(a, f->n, f->ints); break;
        }
    }
    return fields;
}

static void tell_left(const operation *o, arena *a, scout_op *out) {
    scout_tensor *const tensors = arena_array(a, scout_tensor, out->tensor_count + 1);
    for (uint32_t t = 0; t < out->tensor_count; t++) {
        tensors[t] = out->tensors[t];
        tensors[t].left = operation_left(o, t);
    }
    out->tensors = tensors;
    out->crowd_written = o->crowd_written;
}

bool kinds_build(const operation *o, uint64_t workspace_limit, arena *a, scout_op *out, scout_why *why) {
    const oprec *rec = &o->rec;
    const kind *k = kinds_find(rec->kind);
    if (!k)
        return kind_tensors_refuse(why, "no_candidate", "no implementation of %s is known here yet",
                                   oprec_kind_name(rec->kind));
    if (rec->type == DTYPE_STRING || rec->out_type == DTYPE_STRING)
        return kind_tensors_refuse(why, "type", "strings stay on the host: no device computes with them");
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->kind = (uint32_t)rec->kind;
    out->key = operation_key(o, a);
    out->what = rec->what;
    out->layout = rec->layout;
    out->mask = rec->mask;
    if (!rec->shape || rec->rank > SCOUT_MAX_RANK)
        return kind_tensors_refuse(why, "shape", "its shape is not known, or has more than %d dimensions",
                                   (int)SCOUT_MAX_RANK);
    out->rank = (uint32_t)rec->rank;
    for (int d = 0; d < rec->rank; d++) out->shape[d] = rec->shape[d];
    out->workspace_limit = workspace_limit * (k->workspaces > 0 ? k->workspaces : 1);
    out->field_count = (uint32_t)rec->field_count;
    out->fields = common_fields(rec, a);
    out->flops = (double)rec->flops;
    out->bytes_read = (double)rec->bytes_read;
    out->bytes_written = (double)rec->bytes_written;
    if (!k->build(o, a, out, why)) return false;
    if (o->handed > 0) tell_left(o, a, out); /* else all is left as alone */
    return true;
}

/* A frame of its own: nothing that is set between guard_enter and a failure is looked at afterwards. */
static bool ask(const scout_candidate *c, const char *precision, guard *g, arena *a) {
    operation_list list;
    scout_op op;
    scout_why why;
    if (!guard_enter(g)) return false;
    operation_from_words("gemm", "16,256,256", precision, 0, NULL, a, &list);
    const bool built = kinds_build(&list.items[0], 32 << 20, a, &op, &why);
    operation_list_free(&list);
    return built && c->supports(&op, NULL, &why) == SCOUT_OK;
}

bool kinds_offers(const scout_candidate *c, const char *precision) {
    guard g;
    arena a;
    if (c->kind != SCOUT_GEMM) return true;
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    const bool offers = ask(c, precision, &g, &a);
    arena_free(&a);
    return offers;
}
