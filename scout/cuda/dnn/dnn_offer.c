/* cuDNN's engines for an operation in the order of its heuristics, and the plans built from them. A candidate's
 * variants are prepared one after another from the same list, and building takes part of a second: so the device keeps
 * the last few offers with their plans. */
#include "scout/cuda/dnn/dnn.h"

#include <stdlib.h>
#include <string.h>

enum { OFFERS_KEPT = 6, MAX_KNOBS = 64, MAX_NOTES = 32 };

struct dnn_offers {
    dnn_offer *kept[OFFERS_KEPT];
    unsigned next; /* place of the next one */
};

/* --- offers and their users --- */

static void offer_drop(dnn_offer *offer) {
    if (!offer || atomic_fetch_sub(&offer->users, 1) > 1) return;
    for (int k = 0; k < offer->count; k++) {
        if (offer->engines[k].plan) offer->graph.dnn->cudnnBackendDestroyDescriptor(offer->engines[k].plan);
        offer->graph.dnn->cudnnBackendDestroyDescriptor(offer->engines[k].config);
    }
    dnn_graph_free(&offer->graph);
    free(offer->key);
    free(offer);
}

void dnn_offers_free(dnn_offers *offers) {
    for (int k = 0; offers && k < OFFERS_KEPT; k++) offer_drop(offers->kept[k]);
    free(offers);
}

/* A new offer in the place of the oldest one; borrowed. */
static dnn_offer *offer_new(scout_device *device, const scout_op *op, dnn_build *build, int64_t way) {
    if (!device->offers && !(device->offers = calloc(1, sizeof *device->offers))) return NULL;
    dnn_offer *const offer = calloc(1, sizeof *offer);
    if (!offer || !(offer->key = strdup(op->key))) {
        free(offer);
        return NULL;
    }
    offer->build = build;
    offer->way = way;
    atomic_init(&offer->users, 1);
    offer->workspace_limit = op->workspace_limit;
    dnn_offer **const place = &device->offers->kept[device->offers->next++ % OFFERS_KEPT];
    offer_drop(*place);
    return *place = offer;
}

/* --- what an engine is --- */

static dnn_desc create(const dnn_graph *g, cudnnBackendDescriptorType_t type) {
    dnn_desc made = NULL;
    return g->dnn->cudnnBackendCreateDescriptor(type, &made) == CUDNN_STATUS_SUCCESS ? made : NULL;
}

/* The knobs that the heuristic chose, as [type, value], as far as they fit. */
static void tell_knobs(const dnn_graph *g, dnn_desc config, char *text, size_t room) {
    dnn_desc knobs[MAX_KNOBS];
    int64_t count = 0;
    int made = 0;
    size_t used = 0;
    text[0] = '\0';
    while (made < MAX_KNOBS && (knobs[made] = create(g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR))) made++;
    if (g->dnn->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, made,
                                         &count, knobs) != CUDNN_STATUS_SUCCESS)
        count = 0;
    for (int k = 0; k < count && k < made && used + 32 < room; k++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t value = 0, got = 0;
        if (g->dnn->cudnnBackendGetAttribute(knobs[k], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &got,
                                             &type) == CUDNN_STATUS_SUCCESS &&
            g->dnn->cudnnBackendGetAttribute(knobs[k], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &got,
                                             &value) == CUDNN_STATUS_SUCCESS)
            used += (size_t)snprintf(text + used, room - used, "%s[%d,%lld]", used > 0 ? "," : "", (int)type,
                                     (long long)value);
    }
    for (int k = 0; k < made; k++) g->dnn->cudnnBackendDestroyDescriptor(knobs[k]);
}

/* Whether it needs the weight or the bias reordered, which is not supported here. */
static bool wants_reorder(const dnn_graph *g, dnn_desc engine) {
    cudnnBackendBehaviorNote_t list[MAX_NOTES];
    int64_t count = 0;
    if (g->dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, MAX_NOTES,
                                         &count, list) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int k = 0; k < count && k < MAX_NOTES; k++)
        if (list[k] == CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER ||
            list[k] == CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER)
            return true;
    return false;
}

/* Its global number and its numerical notes, as bits; false: it needs something not supported here. */
static bool tell_engine(const dnn_graph *g, dnn_desc config, int64_t *index, uint32_t *notes) {
    dnn_desc engine = create(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t list[MAX_NOTES];
    int64_t got = 0, count = 0;
    bool usable = true;
    *index = -1, *notes = 0;
    if (!engine) return true;
    if (g->dnn->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got,
                                         &engine) == CUDNN_STATUS_SUCCESS) {
        if (g->dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &got,
                                             index) != CUDNN_STATUS_SUCCESS)
            *index = -1;
        if (g->dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                             MAX_NOTES, &count, list) == CUDNN_STATUS_SUCCESS)
            for (int k = 0; k < count && k < MAX_NOTES; k++) *notes |= 1U << (unsigned)list[k];
        usable = !wants_reorder(g, engine);
    }
    g->dnn->cudnnBackendDestroyDescriptor(engine);
    return usable;
}

static bool any_usable(const dnn_offer *offer) {
    for (int k = 0; k < offer->count; k++)
        if (!offer->engines[k].coarse) return true;
    return false;
}

/* Takes the configuration, unless the graph refuses it or it is there already. One that frameworks would take, as the
 * heuristic ranks it above all that the graph prefers, is taken as coarse. */
static bool engine_add(dnn_offer *offer, dnn_desc config) {
    char knobs[300];
    int64_t index = -1;
    uint32_t notes = 0;
    if (offer->count == DNN_MAX_ENGINES) return false;
    dnn_engine *const e = &offer->engines[offer->count];
    if (!tell_engine(&offer->graph, config, &index, &notes)) return false;
    const uint32_t refused = notes & offer->graph.refused;
    const bool coarse = refused && !(refused & ~offer->graph.coarse) && !any_usable(offer);
    if (refused && !coarse) return false;
    tell_knobs(&offer->graph, config, knobs, sizeof knobs);
    snprintf(e->name, sizeof e->name, "\"engine\":%lld,\"knobs\":[%s],\"notes\":%u", (long long)index, knobs, notes);
    for (int k = 0; k < offer->count; k++)
        if (strcmp(offer->engines[k].name, e->name) == 0) return false;
    e->config = config;
    e->coarse = coarse;
    offer->count++;
    return true;
}

/* --- asking --- */

static cudnnStatus_t results(dnn_offer *offer, dnn_desc heuristic) {
    const dnn_table *const dnn = offer->graph.dnn;
    dnn_desc configs[DNN_MAX_ENGINES];
    int64_t count = 0;
    int made = 0;
    while (made < DNN_MAX_ENGINES && (configs[made] = create(&offer->graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)))
        made++;
    const cudnnStatus_t status = dnn->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &count, configs);
    if (status != CUDNN_STATUS_SUCCESS) count = 0;
    for (int k = 0; k < made; k++)
        if (k >= count || !engine_add(offer, configs[k])) dnn->cudnnBackendDestroyDescriptor(configs[k]);
    return status;
}

static cudnnStatus_t ask(dnn_offer *offer, cudnnBackendHeurMode_t mode) {
    const dnn_table *const dnn = offer->graph.dnn;
    dnn_desc heuristic = NULL;
    cudnnStatus_t status = dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    status = dnn->cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &offer->graph.graph);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (status == CUDNN_STATUS_SUCCESS) status = dnn->cudnnBackendFinalize(heuristic);
    if (status == CUDNN_STATUS_SUCCESS) status = results(offer, heuristic);
    dnn->cudnnBackendDestroyDescriptor(heuristic);
    return status;
}

/* A refusal of the graph or of the heuristics is kept, for the next request of the same. */
static void offer_fill(dnn_offer *offer, const scout_op *op) {
    dnn_graph *const g = &offer->graph;
    scout_why why = {"", ""};
    scout_answer answer = dnn_graph_begin(g, &why);
    if (answer == SCOUT_OK) answer = offer->build(g, op, offer->way, &why);
    if (answer == SCOUT_OK) answer = dnn_graph_end(g, &why);
    if (answer != SCOUT_OK) {
        g->answer = answer;
        g->why = why;
        return;
    }
    ask(offer, CUDNN_HEUR_MODE_INSTANT); /* the mode of frameworks; where it has no answer, A has */
    const cudnnStatus_t best = ask(offer, CUDNN_HEUR_MODE_A);
    if (best != CUDNN_STATUS_SUCCESS) answer = dnn_answer(best, "cuDNN's heuristic", &why);
    ask(offer, CUDNN_HEUR_MODE_FALLBACK);
    if (offer->count > 0) return;
    if (answer == SCOUT_OK || answer == SCOUT_FAILED)
        answer = scout_say(&why, SCOUT_NO, "feature", "cuDNN has no engine for this operation");
    g->answer = answer;
    g->why = why;
}

dnn_offer *dnn_offer_get(scout_device *device, const scout_op *op, dnn_build *build, int64_t way, scout_why *why) {
    dnn_offer *found = NULL;
    for (int k = 0; device->offers && k < OFFERS_KEPT && !found; k++) {
        dnn_offer *const o = device->offers->kept[k];
        if (o && o->build == build && o->way == way && o->workspace_limit == op->workspace_limit &&
            strcmp(o->key, op->key) == 0)
            found = o;
    }
    if (!found) {
        found = offer_new(device, op, build, way);
        if (!found) {
            scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
            return NULL;
        }
        offer_fill(found, op);
    }
    if (found->count > 0) return found;
    if (why) *why = found->graph.why;
    return NULL;
}

/* --- building --- */

static cudnnStatus_t build_plan(const dnn_graph *g, dnn_engine *e) {
    int64_t got = 0;
    cudnnStatus_t status = g->dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &e->plan);
    if (status == CUDNN_STATUS_SUCCESS)
        status = g->dnn->cudnnBackendSetAttribute(e->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                                  &g->handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = g->dnn->cudnnBackendSetAttribute(e->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &e->config);
    if (status == CUDNN_STATUS_SUCCESS) status = g->dnn->cudnnBackendFinalize(e->plan);
    if (status == CUDNN_STATUS_SUCCESS)
        status = g->dnn->cudnnBackendGetAttribute(e->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                                  1, &got, &e->workspace);
    return status;
}

/* An offered engine that does not build counts as missing; the next one may build. */
static scout_answer engine_build(dnn_offer *offer, int rank) {
    dnn_engine *const e = &offer->engines[rank];
    if (e->tried) return e->answer;
    e->tried = true;
    e->answer = dnn_answer(build_plan(&offer->graph, e), "cuDNN's plan", &e->why);
    if (e->answer == SCOUT_FAILED) {
        e->answer = SCOUT_NO;
        snprintf(e->why.code, sizeof e->why.code, "feature");
    }
    if (e->answer == SCOUT_OK && (uint64_t)e->workspace > offer->workspace_limit)
        e->answer = scout_say(&e->why, SCOUT_NO, "memory", "this engine needs %.1f MB of workspace",
                              (double)e->workspace / 1e6);
    if (e->answer != SCOUT_OK && e->plan) {
        offer->graph.dnn->cudnnBackendDestroyDescriptor(e->plan);
        e->plan = NULL;
    }
    return e->answer;
}

int dnn_offer_first(dnn_offer *offer, scout_why *why) {
    for (int k = 0; k < offer->count; k++) {
        const scout_answer answer = engine_build(offer, k);
        if (answer == SCOUT_OK) return k;
        if (answer == SCOUT_LOST) break;
    }
    if (why && offer->count > 0) *why = offer->engines[0].why;
    return -1;
}

scout_answer dnn_offer_domain(dnn_offer *offer, int exhaustive, scout_domain *out, scout_why *why) {
    const int first = dnn_offer_first(offer, why);
    if (first < 0) return offer->engines[0].answer;
    const int end = exhaustive || offer->count < first + DNN_RANKED_ENGINES ? offer->count : first + DNN_RANKED_ENGINES;
    scout_parameter *const p = &out->parameters[out->count++];
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "engine");
    for (int k = first; k < end; k++) p->values[p->count++] = k;
    return SCOUT_OK;
}

bool dnn_offer_allows(const dnn_offer *offer, int64_t rank) { return rank >= 0 && rank < offer->count; }

scout_answer dnn_plan_make(dnn_offer *offer, int64_t rank, dnn_plan *out, scout_why *why) {
    memset(out, 0, sizeof *out);
    if (!dnn_offer_allows(offer, rank))
        return scout_say(why, SCOUT_NO, "feature", "cuDNN offers %d engines here, not %lld", offer->count,
                         (long long)rank + 1);
    const scout_answer answer = engine_build(offer, (int)rank);
    if (answer != SCOUT_OK) {
        if (why) *why = offer->engines[rank].why;
        return answer;
    }
    atomic_fetch_add(&offer->users, 1);
    *out = (dnn_plan){.dnn = offer->graph.dnn,
                      .offer = offer,
                      .rank = (int)rank,
                      .coarse = offer->engines[rank].coarse,
                      .workspace = (uint64_t)offer->engines[rank].workspace};
    return SCOUT_OK;
}

scout_answer dnn_plan_launch(const dnn_plan *plan, int count, const int64_t *uids, void *const *pointers,
                             void *workspace, void *stream, scout_why *why) {
    const dnn_table *const dnn = plan->dnn;
    const struct {
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
        int64_t count;
        const void *value;
    } told[] = {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids},
                {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers},
                {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace}};
    dnn_desc pack = NULL;
    cudnnHandle_t handle = NULL;
    cudnnStatus_t status = dnn_on(stream, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    for (size_t k = 0; k < sizeof told / sizeof told[0] && status == CUDNN_STATUS_SUCCESS; k++)
        status = dnn->cudnnBackendSetAttribute(pack, told[k].name, told[k].type, told[k].count, told[k].value);
    if (status == CUDNN_STATUS_SUCCESS) status = dnn->cudnnBackendFinalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendExecute(handle, plan->offer->engines[plan->rank].plan, pack);
    if (pack) dnn->cudnnBackendDestroyDescriptor(pack);
    return dnn_answer(status, "cuDNN's launch", why);
}

int dnn_plan_describe(const dnn_plan *plan, char *text, size_t room) {
    return snprintf(text, room, "\"library\":\"cudnn\",\"version\":\"%s\",%s,\"rank\":%d,\"workspace_bytes\":%llu",
                    plan->dnn->version, plan->offer->engines[plan->rank].name, plan->rank,
                    (unsigned long long)plan->workspace);
}

void dnn_plan_free(dnn_plan *plan) {
    offer_drop(plan->offer);
    memset(plan, 0, sizeof *plan);
}
