/* A model's folder to a plan: the steps of its dataflow, what a caller has to bind, and memory for all else. What a run
 * would have to guess is refused here. */
#include "runtime/runtime_plan.h"

#include "common/json.h"
#include "scout/device/identity.h"
#include "scout/plan/place.h"
#include "scout/plan/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLAN_MEMORY = 1 << 30 };

static int32_t refuse(scout_run_error *error, const char *name, const char *text) {
    return runtime_say(error, SCOUT_RUN_UNSUPPORTED, "tensor %.200s: %s", name, text);
}

/* ---- the files ---- */

static int32_t read_ops(scout_run_plan *plan, const char *folder, scout_run_error *error) {
    if (!guard_enter(&plan->guard)) return runtime_say(error, SCOUT_RUN_INVALID, "%s", plan->guard.st.text);
    operation_read_whole(arena_printf(&plan->arena, "%s/ops.json", folder), &plan->arena, &plan->list);
    plan->flow = plan->list.flow;
    if (!plan->flow || !plan->flow->told)
        return runtime_say(error, SCOUT_RUN_INVALID, "%.300s/ops.json tells no dataflow that could be run", folder);
    for (int t = 0; t < plan->flow->tensor_count; t++)
        if (plan->flow->told[t].use == OPERATION_ASSUMED)
            return refuse(error, plan->flow->told[t].name,
                          "only data decide what it holds, and ops.json just assumes it");
    if (plan->flow->unmade) return refuse(error, plan->flow->unmade, "it is an output that no operation makes");
    const json_t *coverage = json_object_get(plan->list.root, "coverage");
    const json_t *first = json_array_get(json_object_get(coverage, "unresolved"), 0);
    const char *node = json_string_value(json_object_get(first, "node"));
    if (plan->flow->cuts > 0 || first || json_object_size(json_object_get(coverage, "unknown")) > 0)
        return runtime_say(error, SCOUT_RUN_UNSUPPORTED, "%.300s/ops.json: sizes or operators are not all known%s%.80s",
                           folder, node ? ", as of node " : "", node ? node : "");
    return SCOUT_RUN_OK;
}

static const char *text_of(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static const char *kept(scout_run_plan *plan, const char *text) {
    return text ? arena_strndup(&plan->arena, text, strlen(text)) : NULL;
}

/* How a group runs, by its implementation; false: plan.json says nothing that could. */
static bool read_group(scout_run_plan *plan, const json_t *row, const json_t *implementations, plan_group_wish *to) {
    const int count = (int)json_array_size(row) - 1;
    const json_t *which = json_array_get(row, 0);
    *to = (plan_group_wish){.count = count};
    if (count < 1 || count > FUSION_PARTS) return false;
    for (int k = 0; k < count; k++) {
        const json_t *at = json_array_get(row, (size_t)k + 1);
        if (!json_is_integer(at) || json_integer_value(at) < 0 ||
            json_integer_value(at) >= plan->flow->occurrence_count)
            return false;
        to->occurrences[k] = (int)json_integer_value(at);
        for (int n = 0; n < k; n++)
            if (to->occurrences[n] == to->occurrences[k]) return false;
    }
    if (!json_is_integer(which) || json_integer_value(which) < 0) return false;
    const json_t *of = json_array_get(implementations, (size_t)json_integer_value(which));
    to->of = kept(plan, text_of(of, count > 1 ? "fusion" : "operation"));
    to->by = (plan_wish){kept(plan, text_of(of, "candidate")), kept(plan, text_of(of, "variant"))};
    return to->of && to->by.candidate;
}

static void take_groups(scout_run_plan *plan, const json_t *root) {
    const json_t *groups = json_object_get(root, "groups"), *rows = json_object_get(root, "implementations");
    plan->wishes = arena_array(&plan->arena, plan_group_wish, (int64_t)json_array_size(groups));
    for (size_t k = 0; k < json_array_size(groups); k++)
        plan->wish_count += read_group(plan, json_array_get(groups, k), rows, &plan->wishes[plan->wish_count]);
}

/* A plan of another device is said, and the defaults run. */
static int32_t read_plan(scout_run_plan *plan, const char *folder, scout_run_error *error) {
    status st = {.code = STATUS_OK};
    char own[IDENTITY_CLASS_ROOM];
    const char *path = arena_printf(&plan->arena, "%s/plan.json", folder);
    if (access(path, F_OK) != 0) return SCOUT_RUN_OK;
    json_t *root = json_read(path, NULL, &st);
    if (!root) return runtime_say(error, SCOUT_RUN_INVALID, "%s", st.text);
    const char *schema = text_of(root, "schema"), *device = text_of(json_object_get(root, "device"), "class");
    const bool plain = schema && strcmp(schema, "ceiling-scout/plan/1") == 0;
    identity_class(&plan->run->identity, own, sizeof own);
    if (plain && device && strcmp(device, own) == 0)
        take_groups(plan, root);
    else if (plain)
        runtime_tell(plan->run, "%s is of another device (%.200s): defaults run", path, device ? device : "none");
    json_decref(root);
    return plain ? SCOUT_RUN_OK : runtime_say(error, SCOUT_RUN_INVALID, "%.400s is no ceiling-scout/plan/1", path);
}

/* ---- steps ---- */

/* An output that is another view of what a step makes lies in its place, if nothing else does. */
static bool claim(scout_run_plan *plan, int output) {
    const operation_flow *f = plan->flow;
    const operation_tensor *t = &f->tensors[output];
    const int owner = binding_owner(f, output);
    if (owner == output) return t->producer >= 0;
    const bool whole = t->lie == 0 && t->offset == 0 && t->bytes == f->tensors[owner].bytes;
    if (!whole || f->told[owner].use != OPERATION_ACTIVATION || plan->claimed[owner] >= 0) return false;
    plan->claimed[owner] = output;
    return true;
}

static int32_t copy_output(scout_run_plan *plan, int output, scout_run_error *error) {
    const operation_tensor *t = &plan->flow->tensors[output];
    if (binding_owner(plan->flow, output) == output || t->lie != 0 || t->bytes <= 0)
        return refuse(error, plan->flow->told[output].name, "it is an output that no operation makes as it lies");
    const int32_t code = plan_step_copy(plan, output, &plan->steps[plan->step_count], error);
    plan->step_count += code == SCOUT_RUN_OK;
    return code;
}

/* What of plan.json can run here: single occurrences as it names them, and fusions whose tensors are the model's. Each
 * occurrence is in one group at most. A group runs where its last occurrence stands, so everything that it reads is
 * there; what stands between must not need what it makes. */
static void make_groups(scout_run_plan *plan) {
    const operation_flow *f = plan->flow;
    plan->group_of = arena_array(&plan->arena, plan_group_wish *, f->occurrence_count);
    for (int k = 0; k < plan->wish_count; k++) {
        plan_group_wish *g = &plan->wishes[k];
        bool free = true;
        for (int n = 0; n < g->count; n++) free = free && !plan->group_of[g->occurrences[n]];
        if (!free || (g->count > 1 && !plan_step_fuse(plan, g))) continue;
        for (int n = 0; n < g->count; n++) plan->group_of[g->occurrences[n]] = g;
    }
}

static bool ends_group(const plan_group_wish *g, int occurrence) {
    for (int n = 0; n < g->count; n++)
        if (g->occurrences[n] > occurrence) return false;
    return true;
}

/* An occurrence by itself, or the group that ends with it. */
static int32_t make_step(scout_run_plan *plan, int occurrence, scout_run_error *error) {
    const plan_group_wish *g = plan->group_of[occurrence];
    const bool named =
        g && g->count == 1 && strcmp(g->of, plan->list.items[plan->flow->occurrences[occurrence].operation].id) == 0;
    if (g && g->count > 1) {
        if (ends_group(g, occurrence)) plan->steps[plan->step_count++] = g->step;
        return SCOUT_RUN_OK;
    }
    return plan_step_make(plan, occurrence, named ? &g->by : &(plan_wish){NULL, NULL}, error);
}

static int32_t make_steps(scout_run_plan *plan, scout_run_error *error) {
    const operation_flow *f = plan->flow;
    int32_t code = SCOUT_RUN_OK;
    plan->steps = arena_array(&plan->arena, plan_step, 2 * (int64_t)f->occurrence_count + f->tensor_count);
    plan->claimed = arena_array(&plan->arena, int, f->tensor_count);
    for (int t = 0; t < f->tensor_count; t++) plan->claimed[t] = -1;
    make_groups(plan);
    for (int k = 0; k < f->occurrence_count && code == SCOUT_RUN_OK; k++) code = make_step(plan, k, error);
    for (int t = 0; t < f->tensor_count && code == SCOUT_RUN_OK; t++)
        if (f->told[t].use == OPERATION_OUTPUT && !claim(plan, t)) code = copy_output(plan, t, error);
    return code;
}

/* ---- what is made before it is read ---- */

/* A tensor that no step writes holds nothing: a second output that no operation here has, as the means of a norm. */
static int32_t check_made(const scout_run_plan *plan, const bool *made, int tensor, scout_run_error *error) {
    const int owner = binding_owner(plan->flow, tensor);
    const operation_use use = plan->flow->told[owner].use;
    const bool brought = use == OPERATION_INPUT || use == OPERATION_WEIGHT || use == OPERATION_CONSTANT;
    if (brought || made[owner]) return SCOUT_RUN_OK;
    return refuse(error, plan->flow->told[owner].name, "no operation here makes it");
}

static int32_t check_order(scout_run_plan *plan, scout_run_error *error) {
    bool *made = arena_array(&plan->arena, bool, plan->flow->tensor_count);
    int32_t code = SCOUT_RUN_OK;
    for (int k = 0; k < plan->step_count; k++) {
        const plan_step *step = &plan->steps[k];
        const scout_op *op = &step->op->op;
        for (uint32_t t = 0; t < op->tensor_count && code == SCOUT_RUN_OK; t++)
            if (op->tensors[t].role != SCOUT_OUTPUT && (int)t != step->formed)
                code = check_made(plan, made, step->tensors[t], error);
        for (uint32_t t = 0; t < op->tensor_count; t++)
            if (op->tensors[t].role == SCOUT_OUTPUT && step->tensors[t] >= 0 && step->occurrence >= 0)
                made[step->tensors[t]] = true;
    }
    for (int t = 0; t < plan->flow->tensor_count && code == SCOUT_RUN_OK; t++)
        if (plan->flow->told[t].use == OPERATION_OUTPUT) code = check_made(plan, made, t, error);
    return code;
}

/* ---- what is bound, and what lies in memory of the plan's own ---- */

/* Tensors with memory of their own that steps read or make. */
static bool *find_needed(scout_run_plan *plan) {
    bool *needed = arena_array(&plan->arena, bool, plan->flow->tensor_count);
    for (int k = 0; k < plan->step_count; k++)
        for (uint32_t t = 0; t < plan->steps[k].op->op.tensor_count; t++)
            if (plan->steps[k].tensors[t] >= 0) needed[binding_owner(plan->flow, plan->steps[k].tensors[t])] = true;
    return needed;
}

static bool is_slot(const operation_told *told, bool needed) {
    if (told->use == OPERATION_OUTPUT) return true;
    return needed && told->use != OPERATION_ACTIVATION && !told->value;
}

static int32_t find_slots(scout_run_plan *plan, const bool *needed, scout_run_error *error) {
    const operation_flow *f = plan->flow;
    plan->slots = arena_array(&plan->arena, int, f->tensor_count);
    for (int t = 0; t < f->tensor_count; t++) {
        const operation_told *told = &f->told[t];
        if (!is_slot(told, needed[t])) continue;
        if (told->use == OPERATION_STATE) return refuse(error, told->name, "a loop makes it");
        if (told->rank < 0 || told->rank > SCOUT_RUN_RANK || f->tensors[t].bytes <= 0)
            return refuse(error, told->name, "its sizes are not known, or it is empty");
        plan->slots[plan->slot_count++] = t;
    }
    return SCOUT_RUN_OK;
}

/* Behind all activations lies what a step makes and nothing reads but perhaps the next one. Returns the bytes of all.
 */
static uint64_t lay_unread(scout_run_plan *plan, uint64_t placed) {
    uint64_t most = placed;
    for (int k = 0; k < plan->step_count; k++) {
        plan_step *step = &plan->steps[k];
        uint64_t at = placed;
        if (step->formed >= 0) { /* the step before makes nothing else there */
            step->offsets[step->formed] = at;
            at += place_aligned(step->op->op.tensors[step->formed].bytes);
        }
        for (uint32_t t = 0; t < step->op->op.tensor_count; t++) {
            if (step->tensors[t] >= 0 || (int)t == step->formed) continue;
            step->offsets[t] = at;
            at += place_aligned(step->op->op.tensors[t].bytes);
        }
        most = at > most ? at : most;
    }
    return most;
}

static int32_t lay_activations(scout_run_plan *plan, const bool *needed, scout_run_error *error) {
    const operation_flow *f = plan->flow;
    place_item *lives = arena_array(&plan->arena, place_item, f->tensor_count),
               *items = arena_array(&plan->arena, place_item, f->tensor_count);
    int *turns = arena_array(&plan->arena, int, f->occurrence_count),
        *of = arena_array(&plan->arena, int, f->tensor_count);
    int count = 0;
    scout_why why = {.code = ""};
    for (int k = 0; k < f->occurrence_count; k++) {
        turns[k] = k;
        for (int n = 0; plan->group_of[k] && n < plan->group_of[k]->count; n++) /* all at once, at the end */
            if (plan->group_of[k]->occurrences[n] > turns[k]) turns[k] = plan->group_of[k]->occurrences[n];
    }
    plan_lives(f, turns, lives);
    for (int t = 0; t < f->tensor_count; t++) {
        if (!needed[t] || f->told[t].use != OPERATION_ACTIVATION || plan->claimed[t] >= 0) continue;
        if (f->tensors[t].bytes < 0 || lives[t].to < lives[t].from)
            return refuse(error, f->told[t].name, "its size is not known");
        items[count] = lives[t], items[count].bytes = (uint64_t)f->tensors[t].bytes, of[count++] = t;
    }
    const uint64_t bytes = lay_unread(plan, place_items(items, count, &plan->arena));
    if (bytes > (uint64_t)1 << 50)
        return runtime_say(error, SCOUT_RUN_NO_MEMORY, "the activations are larger than any memory");
    const scout_answer answer =
        plan->run->api->alloc(plan->run->device, bytes + PLACE_ALIGNMENT, (void **)&plan->activations, &why);
    if (answer != SCOUT_OK) return runtime_answer(plan->run, answer, &why, "the activations", error);
    for (int k = 0; k < count; k++) plan->data[of[k]] = plan->activations + items[k].offset;
    return SCOUT_RUN_OK;
}

static int32_t lay_constants(scout_run_plan *plan, const bool *needed, scout_run_error *error) {
    const operation_flow *f = plan->flow;
    uint64_t all = 0, at = 0;
    scout_why why = {.code = ""};
    for (int t = 0; t < f->tensor_count; t++)
        if (needed[t] && f->told[t].value) all += place_aligned((uint64_t)f->tensors[t].bytes);
    if (all == 0) return SCOUT_RUN_OK;
    scout_answer answer = plan->run->api->alloc(plan->run->device, all, (void **)&plan->constants, &why);
    for (int t = 0; t < f->tensor_count && answer == SCOUT_OK; t++) {
        if (!needed[t] || !f->told[t].value) continue;
        plan->data[t] = plan->constants + at;
        at += place_aligned((uint64_t)f->tensors[t].bytes);
        answer = plan->run->api->upload(plan->run->device, plan->data[t], f->told[t].value,
                                        (uint64_t)f->tensors[t].bytes, &why);
    }
    return answer == SCOUT_OK ? SCOUT_RUN_OK : runtime_answer(plan->run, answer, &why, "the constants", error);
}

static int32_t lay_out(scout_run_plan *plan, scout_run_error *error) {
    const bool *needed = find_needed(plan);
    plan->data = arena_array(&plan->arena, void *, plan->flow->tensor_count);
    int32_t code = find_slots(plan, needed, error);
    if (code == SCOUT_RUN_OK) code = lay_activations(plan, needed, error);
    return code == SCOUT_RUN_OK ? lay_constants(plan, needed, error) : code;
}

/* ---- opening and closing ---- */

static int32_t make(scout_run_plan *plan, const char *folder, scout_run_error *error) {
    if (!guard_enter(&plan->guard)) return runtime_say(error, SCOUT_RUN_INVALID, "%s", plan->guard.st.text);
    fusion_read(&plan->list, arena_printf(&plan->arena, "%s/ops.json", folder), &plan->arena, &plan->fusions);
    int32_t code = read_plan(plan, folder, error);
    if (code == SCOUT_RUN_OK) code = make_steps(plan, error);
    if (code == SCOUT_RUN_OK) code = check_order(plan, error);
    return code == SCOUT_RUN_OK ? lay_out(plan, error) : code;
}

int32_t scout_run_plan_open(scout_run *run, const char *folder, scout_run_plan **out, scout_run_error *error) {
    scout_run_error own;
    if (!error) error = &own;
    *out = NULL;
    scout_run_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return runtime_say(error, SCOUT_RUN_NO_MEMORY, "the host has no memory left");
    plan->run = run;
    guard_init(&plan->guard);
    arena_init(&plan->arena, &plan->guard, PLAN_MEMORY);
    int32_t code = read_ops(plan, folder, error);
    if (code == SCOUT_RUN_OK) code = make(plan, folder, error);
    if (code != SCOUT_RUN_OK) {
        scout_run_plan_close(plan);
        return code;
    }
    *out = plan;
    return runtime_say(error, SCOUT_RUN_OK, "%s", "");
}

void scout_run_plan_close(scout_run_plan *plan) {
    if (!plan) return;
    const bool lost = atomic_load(&plan->run->lost) != 0;
    for (int k = 0; k < plan->step_count; k++) scout_run_weight_free(plan->steps[k].packed);
    if (plan->activations && !lost) plan->run->api->release(plan->run->device, plan->activations);
    if (plan->constants && !lost) plan->run->api->release(plan->run->device, plan->constants);
    operation_list_free(&plan->list);
    arena_free(&plan->arena);
    free(plan);
}
