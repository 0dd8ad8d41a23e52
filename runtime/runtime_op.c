/* Operations: found by their key, each made once, with what runs it: the table's choice, or the library's default in
 * its place. Everything here is under the run's lock; what a launch looks at does not change afterwards. */
#include "runtime/runtime_internal.h"

#include "common/dtype.h"
#include "common/json.h"
#include "scout/device/choice.h"
#include "scout/kinds/kinds.h"

#include <stdlib.h>
#include <string.h>

enum { OP_MEMORY = 64 << 20 };

/* ---- ways ---- */

static choice_wish wish_for(const scout_run_op *op, const runtime_way *way, const char *candidate, const char *variant,
                            bool exhaustive) {
    return (choice_wish){.api = op->run->api,
                         .op = way->op,
                         .id = op->key,
                         .candidate = candidate,
                         .variant = variant,
                         .exhaustive = exhaustive};
}

static void take_choice(runtime_way *way, const choice *c, bool exhaustive) {
    way->there = true;
    way->candidate = c->candidate;
    memcpy(way->variant, c->variant, sizeof way->variant);
    way->exhaustive = exhaustive;
    way->needs = c->needs;
    way->spare = c->plan;
}

/* What the plan may ask for is a limit, not a promise. */
static scout_answer check_needs(const scout_run_op *op, choice *c, scout_why *why) {
    if (c->needs.workspace_bytes <= op->op.workspace_limit && c->needs.packs <= op->op.tensor_count) return SCOUT_OK;
    scout_destroy(c->candidate, c->plan);
    c->plan = NULL;
    return scout_say(why, SCOUT_NO, "memory", "%s asks for %.1f MB of workspace, and %.1f MB are allowed",
                     c->candidate->name, (double)c->needs.workspace_bytes / 1e6, (double)op->op.workspace_limit / 1e6);
}

scout_answer runtime_way_prepare(const scout_run_op *op, runtime_way *way, scout_plan **plan, scout_why *why) {
    const choice_wish wish = wish_for(op, way, way->candidate->name, way->variant, way->exhaustive);
    choice c;
    const scout_answer answer = choice_named(&wish, op->run->device, &c, why);
    if (answer != SCOUT_OK) return answer;
    *plan = c.plan;
    if (c.needs.workspace_bytes <= way->needs.workspace_bytes && c.needs.packs == way->needs.packs &&
        c.needs.pack_bytes == way->needs.pack_bytes)
        return SCOUT_OK;
    scout_destroy(c.candidate, c.plan);
    return scout_say(why, SCOUT_FAILED, "error", "%s made another plan than before", c.candidate->name);
}

/* ---- the table's choice ---- */

/* Whether the plan runs this algorithm, as the candidate describes it. */
static bool has_bytes(const choice *c, const unsigned char *bytes, uint32_t count) {
    char text[4096], hex[3];
    if (scout_describe(c->candidate, c->plan, text, sizeof text) >= (int)sizeof text) return false;
    json_t *config = json_loads(text, 0, NULL);
    const char *algo = json_string_value(json_object_get(config, "algo"));
    bool same = algo && strlen(algo) == (size_t)count * 2;
    for (uint32_t k = 0; same && k < count; k++) {
        snprintf(hex, sizeof hex, "%02x", bytes[k]);
        same = algo[2 * k] == hex[0] && algo[2 * k + 1] == hex[1];
    }
    json_decref(config);
    return same;
}

/* A variant that is called "algo" is a rank of the library's heuristic, which another process may find in another
 * order: the algorithm is the one with these bytes. */
static scout_answer by_bytes(const scout_run_op *op, const scout_candidate *candidate,
                             const scout_dispatch_entry *entry, choice *out, scout_why *why) {
    scout_domain *room = calloc(1, sizeof *room);
    variants all;
    variants_one one;
    if (!room) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    scout_answer answer = variants_open(&all, candidate, &op->op, op->run->device, true, room, why);
    bool found = false;
    while (answer == SCOUT_OK && !found && variants_next(&all, &one)) {
        *out = (choice){.candidate = candidate, .needs = {.size = sizeof out->needs}};
        memcpy(out->variant, one.text, sizeof out->variant);
        answer = scout_prepare(candidate, &op->op, op->run->device, one.values, &out->plan, &out->needs, why);
        found = answer == SCOUT_OK && has_bytes(out, entry->algo, entry->algo_bytes);
        if (answer == SCOUT_OK && !found) scout_destroy(candidate, out->plan), out->plan = NULL;
        if (answer == SCOUT_NO || answer == SCOUT_FAILED) answer = SCOUT_OK; /* the next one may be it */
    }
    free(room);
    if (found || answer != SCOUT_OK) return answer;
    return scout_say(why, SCOUT_NO, "feature", "%s does not offer the algorithm of the table", candidate->name);
}

static scout_answer choose_entry(scout_run_op *op, const scout_dispatch_entry *entry, scout_why *why) {
    choice_wish wish = wish_for(op, &op->chosen, entry->implementation, entry->variant, false);
    choice c;
    scout_answer answer = choice_named(&wish, op->run->device, &c, why);
    bool exhaustive = false;
    if (answer == SCOUT_NO && c.candidate) {
        wish.exhaustive = exhaustive = true;
        answer = choice_named(&wish, op->run->device, &c, why);
    }
    if (answer == SCOUT_OK && entry->algo && !has_bytes(&c, entry->algo, entry->algo_bytes)) {
        scout_destroy(c.candidate, c.plan);
        c.plan = NULL;
        exhaustive = true;
        answer = by_bytes(op, c.candidate, entry, &c, why);
    }
    if (answer == SCOUT_OK) answer = check_needs(op, &c, why);
    if (answer == SCOUT_OK) take_choice(&op->chosen, &c, exhaustive);
    return answer;
}

static scout_answer choose_default(scout_run_op *op, runtime_way *way, scout_why *why) {
    const choice_wish wish = wish_for(op, way, NULL, NULL, false);
    choice c;
    scout_answer answer = choice_default(&wish, op->run->device, &c, why);
    if (answer == SCOUT_OK) answer = check_needs(op, &c, why);
    if (answer == SCOUT_OK) take_choice(way, &c, false);
    return answer;
}

/* What the table says of it; NULL: nothing. */
static const scout_dispatch_entry *entry_of(const scout_run_op *op, const scout_dispatch_view *view) {
    scout_dispatch_key key;
    scout_dispatch_ends ends;
    if (!scout_dispatch_key_parse(&key, op->op.key, strlen(op->op.key))) return NULL;
    const scout_dispatch_entry *entry = scout_dispatch_find(view, &key);
    if (entry || !op->run->near_shapes || !scout_dispatch_near(view, &key, &ends)) return entry;
    return ends.lower;
}

static scout_answer choose_listed(scout_run_op *op, scout_why *why) {
    scout_dispatch_view view = scout_dispatch_begin(op->run->table);
    const scout_dispatch_entry *entry = entry_of(op, &view);
    scout_answer answer = SCOUT_OK;
    op->why = entry ? RUNTIME_LISTED : RUNTIME_UNLISTED;
    if (entry) {
        op->expected_us = entry->expected_us, op->default_us = entry->default_us;
        answer = choose_entry(op, entry, why);
        if (answer != SCOUT_OK) {
            op->why = RUNTIME_REFUSED;
            snprintf(op->note, sizeof op->note, "%.40s %.80s cannot run here: %.230s", entry->implementation,
                     entry->variant, why->text);
        }
    } else {
        snprintf(op->note, sizeof op->note, "the table does not have it");
    }
    scout_dispatch_end(&view);
    return answer;
}

/* What a race of the candidates has found, here or in another process. */
static scout_answer choose_tuned(scout_run_op *op, scout_why *why) {
    runtime_tuned found;
    if (!runtime_tune(op, &found, why)) return SCOUT_NO;
    if (!found.candidate[0]) {
        snprintf(op->note, sizeof op->note, "tuned here%s: nothing is faster", found.cached ? " before" : "");
        return SCOUT_NO;
    }
    const choice_wish wish = wish_for(op, &op->chosen, found.candidate, found.variant, false);
    choice c;
    scout_answer answer = choice_named(&wish, op->run->device, &c, why);
    if (answer == SCOUT_OK) answer = check_needs(op, &c, why);
    if (answer != SCOUT_OK) return answer;
    take_choice(&op->chosen, &c, false);
    snprintf(op->note, sizeof op->note, "tuned here%s: %.2f of the default's time", found.cached ? " before" : "",
             found.ratio);
    return SCOUT_OK;
}

/* What a plan names; else what would run without it. */
static scout_answer choose_wished(scout_run_op *op, const runtime_making *making, scout_why *why) {
    const choice_wish wish = wish_for(op, &op->chosen, making->candidate, making->variant, true);
    choice c;
    scout_answer answer = choice_named(&wish, op->run->device, &c, why);
    if (answer == SCOUT_OK) answer = check_needs(op, &c, why);
    if (answer == SCOUT_OK) take_choice(&op->chosen, &c, true), op->why = RUNTIME_LISTED;
    if (answer == SCOUT_NO || answer == SCOUT_FAILED)
        runtime_tell(op->run, "%s: %s %s of the plan cannot run here: %s", op->key, making->candidate,
                     making->variant ? making->variant : "", why->text);
    return answer;
}

static scout_answer choose(scout_run_op *op, const runtime_making *making, scout_why *why) {
    op->why = RUNTIME_UNLISTED;
    if (making->candidate && choose_wished(op, making, why) == SCOUT_LOST) return SCOUT_LOST;
    if (op->chosen.there) return SCOUT_OK;
    if (op->run->table && choose_listed(op, why) == SCOUT_LOST) return SCOUT_LOST;
    if (!op->run->table) snprintf(op->note, sizeof op->note, "there is no table");
    if (op->chosen.there) return SCOUT_OK;
    if (op->run->tune_s > 0 && op->why == RUNTIME_UNLISTED && choose_tuned(op, why) == SCOUT_LOST) return SCOUT_LOST;
    const bool tuned = op->chosen.there;
    const scout_answer answer = tuned ? SCOUT_OK : choose_default(op, &op->chosen, why);
    if (answer == SCOUT_OK && (op->run->table || tuned))
        runtime_tell(op->run, "%s: %s: %s, %s %s", op->key, op->note, tuned ? "that runs" : "the default runs",
                     op->chosen.candidate->name, op->chosen.variant);
    return answer;
}

/* ---- on plain weights ---- */

/* The same with a weight that is any tensor, which nothing packs: what the library does with it by default. */
static int find_plain(scout_run_op *op) {
    scout_why why = {.code = ""};
    scout_tensor *tensors = malloc(op->op.tensor_count * sizeof *tensors);
    if (!tensors) return 2;
    memcpy(tensors, op->op.tensors, op->op.tensor_count * sizeof *tensors);
    tensors[op->chosen.needs.packs - 1].role = SCOUT_INPUT;
    op->plain_op = op->op;
    op->plain_op.tensors = op->plain_tensors = tensors;
    op->plain.op = &op->plain_op;
    if (choose_default(op, &op->plain, &why) != SCOUT_OK || op->plain.needs.packs != 0) return 2;
    if (op->why == RUNTIME_LISTED)
        runtime_tell(op->run, "%s: %s %s wants its weight packed (scout_pack_weight): on a plain one runs %s %s",
                     op->key, op->chosen.candidate->name, op->chosen.variant, op->plain.candidate->name,
                     op->plain.variant);
    return 1;
}

runtime_way *runtime_op_plain(const scout_run_op *op, runtime_why *why) {
    scout_run_op *own = (scout_run_op *)(uintptr_t)op; /* the caller's is const, the list's is not */
    *why = op->why;
    if (op->chosen.needs.packs == 0) return &own->chosen;
    int state = atomic_load_explicit(&own->plain_state, memory_order_acquire);
    if (state == 0) {
        pthread_mutex_lock(&op->run->lock);
        state = atomic_load(&own->plain_state);
        if (state == 0) {
            state = find_plain(own);
            atomic_store_explicit(&own->plain_state, state, memory_order_release);
        }
        pthread_mutex_unlock(&op->run->lock);
    }
    if (op->why == RUNTIME_LISTED) *why = RUNTIME_UNPACKED;
    return state == 1 ? &own->plain : NULL;
}

/* ---- the list ---- */

static void free_way(const scout_run_op *op, runtime_way *way) {
    if (!way->there || atomic_load(&op->run->lost)) return;
    scout_destroy(way->candidate, way->spare);
    for (int k = 0; k < RUNTIME_LANES; k++) scout_destroy(way->candidate, atomic_load(&way->plans[k]));
}

static void free_op(scout_run_op *op) {
    free_way(op, &op->chosen);
    free_way(op, &op->plain);
    free(op->plain_tensors);
    arena_free(&op->arena);
    free(op);
}

void runtime_ops_free(scout_run *run) {
    for (scout_run_op *op = run->ops; op;) {
        scout_run_op *next = op->next;
        free_op(op);
        op = next;
    }
}

void runtime_op_tell(scout_op *op, arena *a, const scout_field *field) {
    scout_field *fields = arena_array(a, scout_field, op->field_count + 1);
    if (op->field_count) memcpy(fields, op->fields, op->field_count * sizeof *fields);
    fields[op->field_count++] = *field;
    op->fields = fields;
}

/* A frame of its own: nothing that is set between guard_enter and a failure is looked at afterwards. */
static bool build(scout_run_op *op, const runtime_making *making, guard *g, scout_why *why) {
    operation *o;
    if (!guard_enter(g)) {
        scout_say(why, SCOUT_NO, "error", "%.220s", g->st.text);
        return false;
    }
    o = arena_array(&op->arena, operation, 1);
    making->describe(making->context, &op->arena, o);
    op->operation = o;
    if (!kinds_build(o, op->run->workspace_limit, &op->arena, &op->op, why)) return false;
    op->key = making->finish ? making->finish(making->context, &op->arena, &op->op) : op->op.key;
    if (making->candidate)
        op->key =
            arena_printf(&op->arena, "%s;by=%s %s", op->key, making->candidate, making->variant ? making->variant : "");
    return true;
}

static scout_run_op *listed(const scout_run *run, const char *key) {
    scout_run_op *op = run->ops;
    while (op && strcmp(op->key, key) != 0) op = op->next;
    return op;
}

/* The one that the list has of that key, which may be another thread's that came first; NULL: why. */
static scout_run_op *enter(scout_run *run, scout_run_op *op, const runtime_making *making, scout_answer *answer,
                           scout_why *why) {
    scout_run_op *known = listed(run, op->key);
    *answer = known ? SCOUT_OK : choose(op, making, why);
    if (known || *answer != SCOUT_OK) {
        free_op(op);
        return known;
    }
    op->next = run->ops;
    run->ops = op;
    return op;
}

int32_t runtime_op_find(scout_run *run, const runtime_making *making, const scout_run_op **out,
                        scout_run_error *error) {
    scout_why why = {.code = ""};
    scout_answer answer = SCOUT_OK;
    guard g;
    *out = NULL;
    scout_run_op *op = calloc(1, sizeof *op);
    if (!op) return runtime_say(error, SCOUT_RUN_NO_MEMORY, "the host has no memory left");
    op->run = run;
    op->chosen.op = &op->op;
    guard_init(&g);
    arena_init(&op->arena, &g, OP_MEMORY);
    if (!build(op, making, &g, &why)) {
        free_op(op);
        return runtime_say(error, SCOUT_RUN_INVALID, "%s", why.text);
    }
    const runtime_cores cores = runtime_cores_of(run);
    pthread_mutex_lock(&run->lock);
    *out = enter(run, op, making, &answer, &why);
    pthread_mutex_unlock(&run->lock);
    runtime_cores_restore(&cores);
    return *out ? SCOUT_RUN_OK : runtime_answer(run, answer, &why, "this operation", error);
}

/* ---- by key, and what is told of it ---- */

static void describe_key(void *context, arena *a, operation *out) { operation_from_key(context, a, out); }

int32_t scout_run_find(scout_run *run, const char *key, const scout_run_op **op, scout_run_error *error) {
    pthread_mutex_lock(&run->lock);
    *op = listed(run, key);
    pthread_mutex_unlock(&run->lock);
    if (*op) return runtime_say(error, SCOUT_RUN_OK, "%s", "");
    const runtime_making making = {.describe = describe_key, .context = (void *)(uintptr_t)key};
    return runtime_op_find(run, &making, op, error);
}

/* Members beyond the size that the caller knows are not touched. */
#define TELL(info, member, value)                                                                                      \
    do                                                                                                                 \
        if (SCOUT_HAS(info, member)) (info)->member = (value);                                                         \
    while (0)

void scout_run_op_describe(const scout_run_op *op, scout_run_op_info *info) {
    const runtime_way *way = &op->chosen;
    TELL(info, listed, op->why == RUNTIME_LISTED);
    TELL(info, key, op->key);
    TELL(info, implementation, way->candidate->name);
    TELL(info, variant, way->variant);
    TELL(info, note, op->note);
    TELL(info, tensor_count, (int32_t)op->op.tensor_count);
    TELL(info, packs, (int32_t)way->needs.packs - 1);
    TELL(info, pack_bytes, way->needs.pack_bytes);
    TELL(info, workspace_bytes, way->needs.workspace_bytes);
    TELL(info, expected_us, op->expected_us);
    TELL(info, default_us, op->default_us);
}

int32_t scout_run_op_tensor(const scout_run_op *op, int32_t number, scout_run_tensor_info *info,
                            scout_run_error *error) {
    if (number < 0 || number >= (int32_t)op->op.tensor_count)
        return runtime_say(error, SCOUT_RUN_INVALID, "tensor %d: the operation has %u", (int)number,
                           (unsigned)op->op.tensor_count);
    const scout_tensor *t = &op->op.tensors[number];
    scout_run_tensor as = {.type = (int32_t)t->type, .rank = (int32_t)t->rank};
    memcpy(as.dims, t->dims, sizeof as.dims);
    memcpy(as.strides, t->strides, sizeof as.strides);
    TELL(info, output, t->role == SCOUT_OUTPUT);
    TELL(info, as, as);
    TELL(info, bytes, t->bytes);
    if (SCOUT_HAS(info, name)) memcpy(info->name, t->name, sizeof info->name);
    return runtime_say(error, SCOUT_RUN_OK, "%s", "");
}
