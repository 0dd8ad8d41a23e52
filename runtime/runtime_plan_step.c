/* From an occurrence of ops.json to an operation that can be launched on the model's tensors. Nothing is taken to be as
 * usual: what ops.json does not tell, or tells otherwise than the operation takes it, is refused. */
#include "runtime/runtime_plan.h"

#include "common/checked.h"
#include "scout/kinds/kinds.h"
#include "scout/op/elementwise.h"
#include "scout/op/random.h"

#include <math.h>
#include <string.h>

const char *plan_node(const scout_run_plan *plan, int occurrence) {
    const operation *o = &plan->list.items[plan->flow->occurrences[occurrence].operation];
    const json_t *nodes = json_object_get(o->source, "nodes");
    const char *name = json_string_value(json_array_get(nodes, (size_t)plan->flow->occurrences[occurrence].node));
    return name ? name : o->id;
}

static int32_t refuse(const scout_run_plan *plan, int occurrence, scout_run_error *error, const char *text) {
    return runtime_say(error, SCOUT_RUN_UNSUPPORTED, "node %.120s: %.300s", plan_node(plan, occurrence), text);
}

/* ---- what the record must tell ---- */

/* Fields that change what an elementwise operation makes: its kind passes over those that it does not know. */
static bool elementwise_is_told(const oprec *rec) {
    scout_op op = {.size = sizeof op, .kind = SCOUT_ELEMENTWISE, .what = rec->what};
    const elementwise_number_names *names = elementwise_number_names_of(elementwise_id_of(&op));
    for (int k = 0; k < rec->field_count; k++) {
        const char *name = rec->fields[k].name;
        const bool number =
            names && (strcmp(name, names->first) == 0 || (names->second && strcmp(name, names->second) == 0));
        if (!number && strcmp(name, "inputs") != 0) return false;
    }
    return true;
}

/* The kernels here count from one place on, so each node and each launch would have the same numbers. */
static bool is_random(const oprec *rec) {
    const scout_op op = {.size = sizeof op, .kind = SCOUT_ELEMENTWISE, .what = rec->what};
    return rec->kind == OP_ELEMENTWISE && random_how_of(&op) != RANDOM_HOWS;
}

/* What the kernels here do otherwise than a model may mean it. */
static const struct {
    op_kind kind;
    const char *what, *text;
} others[] = {
    {OP_ELEMENTWISE, "acosh", "acosh of numbers below 1 is 0 here"},
    {OP_MOVE, "onehot", "indices beyond the depth are not known here"},
};

static int32_t check_record(const scout_run_plan *plan, int occurrence, scout_run_error *error) {
    const operation_occurrence *at = &plan->flow->occurrences[occurrence];
    const operation *o = &plan->list.items[at->operation];
    const opfield *quant = oprec_field(&o->rec, "quant");
    if (at->times != 1 || (o->rec.kind == OP_MOVE && o->rec.what && strcmp(o->rec.what, "control") == 0))
        return refuse(plan, occurrence, error, "loops and branches are not run here");
    if (is_random(&o->rec)) return refuse(plan, occurrence, error, "only chance decides what it makes");
    if (o->skip_code) return refuse(plan, occurrence, error, o->skip_text);
    if (quant && strcmp(quant->text, "qdq") == 0)
        return refuse(plan, occurrence, error, "ops.json does not tell the scales of quantised work");
    if (quant && o->rec.kind == OP_CONV)
        return refuse(plan, occurrence, error,
                      "a convolution has no scales and zero points that come at run time here");
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (others[k].kind == o->rec.kind && o->rec.what && strcmp(others[k].what, o->rec.what) == 0)
            return refuse(plan, occurrence, error, others[k].text);
    if (o->rec.kind == OP_ELEMENTWISE && !elementwise_is_told(&o->rec))
        return refuse(plan, occurrence, error, "it has a number that is not known here");
    if (at->operand_count == 0)
        return refuse(plan, occurrence, error,
                      "ops.json does not tell its operands; extract it with a newer extract_ops");
    return SCOUT_RUN_OK;
}

/* What the occurrence computes with beside its record; *extra has no name: nothing. */
static int32_t find_number(const scout_run_plan *plan, int occurrence, runtime_extra *extra, scout_run_error *error) {
    const operation_flow *f = plan->flow;
    for (int k = 0; k < f->number_count; k++) {
        const operation_number_told *n = &f->numbers[k];
        char text[128];
        if (n->occurrence != occurrence) continue;
        snprintf(text, sizeof text, "ops.json does not tell its %.60s", n->name);
        if (!n->known) return refuse(plan, occurrence, error, text);
        if (strcmp(n->name, "epsilon") != 0 || extra->name || !(n->x >= 0 && n->x < 1))
            return refuse(plan, occurrence, error, "it has a number that is not known here");
        *extra = (runtime_extra){"epsilon", n->x};
    }
    return SCOUT_RUN_OK;
}

/* ---- the operation ---- */

typedef struct making {
    const char *key;
    runtime_extra extra;
} making;

static void describe(void *context, arena *a, operation *out) {
    const making *m = context;
    operation_from_key(m->key, a, out);
}

static const char *finish(void *context, arena *a, scout_op *op) {
    const making *m = context;
    if (!m->extra.name) return op->key;
    const scout_field field = {.name = m->extra.name, .text = arena_printf(a, "%.17g", m->extra.value)};
    runtime_op_tell(op, a, &field);
    return arena_printf(a, "%s;%s=%s", op->key, field.name, field.text);
}

static int32_t find(scout_run_plan *plan, const making *m, const plan_wish *wish, const scout_run_op **op,
                    scout_run_error *error) {
    const runtime_making how = {.describe = describe,
                                .finish = finish,
                                .context = (void *)(uintptr_t)m,
                                .candidate = wish->candidate,
                                .variant = wish->variant};
    return runtime_op_find(plan->run, &how, op, error);
}

/* ---- its tensors ---- */

/* Rows stand in the order of occurrences. */
static const operation_formed *formed_of(const scout_run_plan *plan, int occurrence, int place) {
    const operation_formed *rows = plan->flow->formed;
    int low = 0, high = plan->flow->formed_count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (rows[middle].occurrence < occurrence)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < plan->flow->formed_count && rows[low].occurrence == occurrence; low++)
        if (rows[low].place == place) return &rows[low];
    return NULL;
}

/* The dimensions that its terms need of it. Returns how many; 0: there are more than `most`, or they do not fit. */
static int formed_dims(const operation_formed *formed, int most, int64_t *dims) {
    if (formed->rank > most) return 0;
    for (int d = 0; d < formed->rank; d++) dims[d] = 1;
    for (int k = 0; k < formed->count; k++) {
        const int before = formed->rank - formed->terms[k].rank;
        if (before < 0) return 0;
        for (int d = before; d < formed->rank; d++)
            if (formed->terms[k].dims[d - before] > 1) dims[d] = formed->terms[k].dims[d - before];
    }
    return formed->rank;
}

/* The dimensions of the tensor that the model adds to an attention's scores; 0: it is none, or not told. */
static int whole_mask(const scout_run_plan *plan, int occurrence, const scout_op *op, int64_t *dims) {
    enum { RANK = 4 };
    const operation_flow *f = plan->flow;
    const operation_occurrence *at = &f->occurrences[occurrence];
    const int last = (int)op->tensor_count - 1;
    if (op->kind != SCOUT_ATTENTION || last < 4 || at->operand_count != last + 1) return 0;
    const operation_formed *formed = formed_of(plan, occurrence, last);
    if (formed) return op->mask && strcmp(op->mask, "additive") == 0 ? 0 : formed_dims(formed, RANK, dims);
    const int mask = f->operands[at->operands + last];
    if (mask < 0 || (uint32_t)f->tensors[mask].type != op->input || f->told[mask].rank > RANK) return 0;
    for (int d = 0; d < f->told[mask].rank; d++) dims[d] = f->told[mask].dims[d];
    return f->told[mask].rank;
}

/* An attention whose mask hides keys in some regular way has a smaller mask than the tensor that the model adds to the
 * scores. With that it is an attention of any mask. */
static const char *with_whole_mask(scout_run_plan *plan, int occurrence, const scout_op *op) {
    int64_t dims[SCOUT_MAX_RANK];
    const int rank = whole_mask(plan, occurrence, op, dims);
    if (rank < 2) return NULL;
    const oprec *rec = &plan->list.items[plan->flow->occurrences[occurrence].operation].rec;
    oprec whole = *rec;
    whole.field_count = 0;
    whole.mask = "additive";
    for (int k = 0; k < rec->field_count; k++) {
        static const char *const hides[] = {"mask_shape", "window", "past"};
        bool drop = false;
        for (size_t n = 0; n < sizeof hides / sizeof *hides; n++)
            drop = drop || strcmp(rec->fields[k].name, hides[n]) == 0;
        if (!drop) whole.fields[whole.field_count++] = rec->fields[k];
    }
    oprec_set_ints(&whole, &plan->arena, "mask_shape", rank, dims);
    return oprec_key(&whole, &plan->arena);
}

/* Which operand is not where the operation takes it; NULL: all are. */
static const scout_tensor *bind(const scout_run_plan *plan, int occurrence, plan_step *step) {
    const operation_flow *f = plan->flow;
    const operation_occurrence *at = &f->occurrences[occurrence];
    const scout_op *op = &step->op->op;
    binding_begin(step->tensors);
    (void)binding_tensors(f, at, op, step->tensors);
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        const int to = step->tensors[k];
        const bool unread = (uint32_t)at->operand_count == op->tensor_count && op->tensors[k].role == SCOUT_OUTPUT &&
                            f->operands[at->operands + (int)k] < 0;
        if (to < 0 && !unread && (int)k != step->formed) return &op->tensors[k];
        step->offsets[k] = to >= 0 ? (uint64_t)f->tensors[to].offset : 0;
    }
    return NULL;
}

/* A slice takes from the beginning of what it is given: that begins where the model's slice does. Copies of the project
 * choose how much they move at once by where they begin; of others it is not known. */
static bool shift_slice(const scout_run_plan *plan, plan_step *step) {
    const operation_flow *f = plan->flow;
    const int x = step->tensors[0], y = step->tensors[1];
    if (!op_is(&step->op->op, "slice")) return true;
    if (x < 0 || y < 0 || f->told[y].source != binding_owner(f, x) || f->tensors[x].lie != 0) return false;
    const int64_t bytes = dtype_bytes(f->tensors[x].type, f->told[y].offset);
    const bool own = step->op->chosen.candidate->flags & SCOUT_OWN;
    if (bytes < f->tensors[x].offset || (!own && (uint64_t)bytes % plan->run->alignment != 0)) return false;
    step->offsets[0] = (uint64_t)bytes;
    return true;
}

/* Rows of a norm over channels do not tell how many images they are of. */
static bool has_images(const scout_run_plan *plan, const plan_step *step) {
    const scout_op *op = &step->op->op;
    const operation_told *x = &plan->flow->told[step->tensors[0] >= 0 ? step->tensors[0] : 0];
    const bool channels = op->kind == SCOUT_NORM && (op_field(op, "channels") || op_is(op, "lrn"));
    return !channels || (step->tensors[0] >= 0 && x->rank > 0 && x->dims[0] == op->tensors[0].dims[0]);
}

/* What is packed once with a weight: numbers that a run brings would be those of the first one. */
static bool sides_are_constant(const scout_run_plan *plan, const plan_step *step) {
    const scout_op *op = &step->op->op;
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        const bool side = strcmp(op->tensors[k].name, "scales") == 0 || strcmp(op->tensors[k].name, "b_zero") == 0;
        const int to = side ? step->tensors[k] : -1;
        if (to >= 0 && !plan->flow->tensors[binding_owner(plan->flow, to)].constant) return false;
    }
    return true;
}

/* ---- an operand that is formed of tensors ---- */

static bool is_read(const operation_flow *f, const operation_occurrence *at, int tensor) {
    for (int e = at->read; e < at->made; e++)
        if (f->edges[e] == tensor) return true;
    return false;
}

/* Of what is formed, as `to` lies: a dimension that it does not step in has one element. Returns how many; 0: `to` is
 * another one. */
static int formed_shape(const operation_formed *formed, const scout_tensor *to, int64_t *shape) {
    const int split = formed->rank - (int)to->rank; /* of the first one */
    int64_t first = 1;
    if (split < 0) return 0;
    for (int d = 0; d < formed->rank; d++) {
        const int at = d > split ? d - split : 0;
        if (at == 0) first = checked_mul(first, formed->dims[d]);
        if (at > 0 && formed->dims[d] != to->dims[at]) return 0;
        shape[d] = to->strides[at] == 0 ? 1 : formed->dims[d];
    }
    return first == to->dims[0] ? formed->rank : 0;
}

/* As an elementwise operation takes the k-th of its operands; NULL: it does not fit. */
static const char *term_text(scout_run_plan *plan, const operation_formed *formed, int k, int rank,
                             const int64_t *shape) {
    const int64_t *dims = formed->terms[k].dims;
    const int own = formed->terms[k].rank;
    const char *text = "";
    int first = 0;
    while (first < own && dims[first] == 1) first++;
    if (first == own) return "scalar";
    if (own - first > rank) return NULL;
    for (int d = first; d < own; d++) {
        if (dims[d] != 1 && dims[d] != shape[rank - own + d]) return NULL;
        text = arena_printf(&plan->arena, "%s%s%lld", text, d > first ? "x" : "", (long long)dims[d]);
    }
    return text;
}

/* Where its operands lie; false: one of them is not as it takes it. */
static bool bind_terms(const scout_run_plan *plan, int occurrence, const operation_formed *formed, plan_step *step) {
    const operation_flow *f = plan->flow;
    const scout_op *op = &step->op->op;
    if (op->tensor_count != (uint32_t)formed->count + 1) return false;
    for (int k = 0; k < formed->count; k++) {
        const int tensor = formed->terms[k].tensor;
        const operation_tensor *t = &f->tensors[tensor];
        const bool fits = (uint32_t)t->type == op->tensors[k].type && (uint64_t)t->bytes == op->tensors[k].bytes;
        if (!fits || t->lie != 0 || t->offset % FUSION_ALIGNMENT != 0) return false;
        if (!is_read(f, &f->occurrences[occurrence], tensor)) return false;
        step->tensors[k] = tensor;
        step->offsets[k] = (uint64_t)t->offset;
    }
    step->tensors[formed->count] = -1;
    return true;
}

/* The step that makes it for an operand that lies as `to`. */
static bool form(scout_run_plan *plan, int occurrence, const scout_tensor *to, const operation_formed *formed,
                 plan_step *step) {
    int64_t shape[OPERATION_TERM_RANK];
    const int rank = formed_shape(formed, to, shape);
    const char *inputs = NULL;
    scout_run_error own;
    if (rank == 0) return false;
    oprec rec = {.kind = OP_ELEMENTWISE, .what = formed->what, .type = (dtype)to->type};
    for (int k = 0; k < formed->count; k++) {
        const char *term = term_text(plan, formed, k, rank, shape);
        if (!term) return false;
        inputs = inputs ? arena_printf(&plan->arena, "%s,%s", inputs, term) : term;
    }
    oprec_set_shape(&rec, &plan->arena, rank, shape);
    oprec_set_text(&rec, "inputs", inputs);
    const making m = {.key = oprec_key(&rec, &plan->arena)};
    if (find(plan, &m, &(plan_wish){NULL, NULL}, &step->op, &own) != SCOUT_RUN_OK) return false;
    step->occurrence = PLAN_FORMED;
    step->formed = -1;
    return bind_terms(plan, occurrence, formed, step) && step->op->op.tensors[formed->count].bytes == to->bytes;
}

/* Puts it before the step that is there; NULL: all of that step's operands are bound. */
static const scout_tensor *form_operand(scout_run_plan *plan, int occurrence, const scout_tensor *apart,
                                        plan_step **step) {
    const int place = (int)(apart - (*step)->op->op.tensors);
    const operation_formed *formed = formed_of(plan, occurrence, place);
    plan_step made = {.op = NULL};
    if (!formed || !form(plan, occurrence, apart, formed, &made)) return apart;
    (*step)[1] = **step;
    **step = made;
    ++*step;
    (*step)->formed = place;
    return bind(plan, occurrence, *step);
}

/* ---- a step ---- */

int32_t plan_step_make(scout_run_plan *plan, int occurrence, const plan_wish *wish, scout_run_error *error) {
    const operation *o = &plan->list.items[plan->flow->occurrences[occurrence].operation];
    making m = {.key = operation_key(o, &plan->arena)};
    char text[200];
    plan_step *step = &plan->steps[plan->step_count];
    step->occurrence = occurrence;
    step->formed = -1;
    int32_t code = check_record(plan, occurrence, error);
    if (code == SCOUT_RUN_OK) code = find_number(plan, occurrence, &m.extra, error);
    if (code != SCOUT_RUN_OK) return code;
    scout_run_error own;
    code = find(plan, &m, wish, &step->op, &own);
    if (code != SCOUT_RUN_OK) return refuse(plan, occurrence, error, own.text);
    const scout_tensor *apart = bind(plan, occurrence, step);
    if (apart && (m.key = with_whole_mask(plan, occurrence, &step->op->op))) {
        code = find(plan, &m, &(plan_wish){NULL, NULL}, &step->op, &own);
        if (code != SCOUT_RUN_OK) return refuse(plan, occurrence, error, own.text);
        apart = bind(plan, occurrence, step);
    }
    if (apart) apart = form_operand(plan, occurrence, apart, &step);
    snprintf(text, sizeof text, "its %.16s is no tensor of the model, or one that lies otherwise or has another type",
             apart ? apart->name : "");
    if (apart) return refuse(plan, occurrence, error, text);
    if (step->op->chosen.needs.packs > 0 && !sides_are_constant(plan, step))
        return refuse(plan, occurrence, error, "its weight is packed, and scales or zero points are no constants");
    if (!has_images(plan, step))
        return refuse(plan, occurrence, error, "ops.json does not tell how many images it norms");
    if (!shift_slice(plan, step))
        return refuse(plan, occurrence, error, "ops.json does not tell where its slice begins");
    plan->step_count = (int)(step - plan->steps) + 1;
    return SCOUT_RUN_OK;
}

/* ---- groups ---- */

static const fusion *fusion_named(const scout_run_plan *plan, const char *id) {
    for (int k = 0; k < plan->fusions.count; k++)
        if (strcmp(plan->fusions.items[k].id, id) == 0) return &plan->fusions.items[k];
    return NULL;
}

/* Of the very operations that stand there, and of their numbers alone: no weights are folded here. */
static bool is_of(const scout_run_plan *plan, const plan_group_wish *g, const fusion *f) {
    if (f->how != FUSION_SEQUENCE || f->op_count != g->count) return false;
    for (int k = 0; k < g->count; k++) {
        if (&plan->list.items[plan->flow->occurrences[g->occurrences[k]].operation] != f->ops[k]) return false;
        for (int n = 0; n < f->parts[k].place_count; n++)
            if (f->parts[k].places[n].of[0] == '=') return false;
    }
    return true;
}

/* The epsilon of the one norm among them; false: no number of theirs can be told to the whole. */
static bool fused_number(const scout_run_plan *plan, const plan_group_wish *g, const fusion *f, runtime_extra *extra) {
    scout_run_error own;
    int norms = 0;
    for (int k = 0; k < g->count; k++) {
        norms += f->ops[k]->rec.kind == OP_NORM;
        if (check_record(plan, g->occurrences[k], &own) != SCOUT_RUN_OK) return false;
        if (find_number(plan, g->occurrences[k], extra, &own) != SCOUT_RUN_OK) return false;
    }
    return !extra->name || (norms == 1 && f->fused.rec.kind == OP_NORM);
}

/* Nothing between the first and the last of them reads what they make. */
static bool is_together(const scout_run_plan *plan, const plan_group_wish *g) {
    const operation_flow *f = plan->flow;
    int last = 0;
    for (int k = 0; k < g->count; k++) last = g->occurrences[k] > last ? g->occurrences[k] : last;
    for (int at = 0; at < last; at++) {
        bool inside = false;
        for (int k = 0; k < g->count; k++) inside = inside || g->occurrences[k] == at;
        for (int e = f->occurrences[at].read; !inside && e < f->occurrences[at].made; e++)
            for (int k = 0; k < g->count; k++)
                if (f->tensors[binding_owner(f, f->edges[e])].producer == g->occurrences[k]) return false;
    }
    return true;
}

/* As a replay binds a group, but for tensors that would have to be put together of several. */
static bool bind_group(scout_run_plan *plan, const plan_group_wish *g, const fusion *f, plan_step *step) {
    scout_op *parts = arena_array(&plan->arena, scout_op, g->count);
    const scout_op *ops[FUSION_PARTS];
    const binding_fusion about = {&step->op->op, f->parts, ops, g->count, binding_reads(plan->flow, &plan->arena)};
    binding_site *site = arena_array(&plan->arena, binding_site, 1);
    scout_why why;
    for (int k = 0; k < g->count; k++) {
        if (!kinds_build(f->parts[k].operation, plan->run->workspace_limit, &plan->arena, &parts[k], &why))
            return false;
        ops[k] = &parts[k];
    }
    if (!binding_fused(plan->flow, g->occurrences, &about, site, &why) || site->slice_count > 0) return false;
    for (uint32_t t = 0; t < step->op->op.tensor_count; t++) {
        if (site->fused[t] < 0) return false;
        step->tensors[t] = site->fused[t];
        step->offsets[t] = (uint64_t)plan->flow->tensors[site->fused[t]].offset;
    }
    return true;
}

bool plan_step_fuse(scout_run_plan *plan, plan_group_wish *g) {
    const fusion *f = fusion_named(plan, g->of);
    making m = {.key = NULL};
    scout_run_error own;
    if (!f || !is_of(plan, g, f) || !is_together(plan, g) || !fused_number(plan, g, f, &m.extra)) return false;
    m.key = operation_key(&f->fused, &plan->arena);
    g->step.occurrence = g->occurrences[g->count - 1];
    g->step.formed = -1;
    return find(plan, &m, &g->by, &g->step.op, &own) == SCOUT_RUN_OK && bind_group(plan, g, f, &g->step);
}

int32_t plan_step_copy(scout_run_plan *plan, int output, plan_step *step, scout_run_error *error) {
    const operation_tensor *t = &plan->flow->tensors[output];
    const int64_t elements = t->bytes / dtype_bytes(t->type, 1);
    oprec rec = {.kind = OP_MOVE, .what = "expand", .type = t->type};
    oprec_set_shape(&rec, &plan->arena, 1, &elements);
    oprec_set_ints(&rec, &plan->arena, "input", 1, &elements);
    const making m = {.key = oprec_key(&rec, &plan->arena)};
    step->occurrence = PLAN_COPY;
    step->formed = -1;
    step->tensors[0] = step->tensors[1] = output;
    step->offsets[0] = (uint64_t)t->offset;
    return find(plan, &m, &(plan_wish){NULL, NULL}, &step->op, error);
}
