/* Owns the tensors of an operation: their copies in the device's memory, canaries around each, random inputs from
 * seeds, and the reference made from them. */
#include "scout/bench_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char canary_byte = 0xA5, poison_byte = 0xFF;

/* Of the free memory: the rest is for workspaces, packed weights, the reference and the libraries' own. */
static const double memory_share = 0.6;

scout_answer bench_note(bench_set *s, scout_answer answer) {
    if (answer == SCOUT_LOST) s->lost = true;
    return answer;
}

/* ---- buffers ---- */

void *bench_data(const bench_buffer *b) { return b->base ? b->base + BENCH_FRONT : NULL; }

scout_answer bench_allocate(bench_set *s, bench_buffer *b, uint64_t bytes, scout_why *why) {
    void *memory = NULL;
    *b = (bench_buffer){.base = NULL};
    if (bytes > UINT64_MAX / 2) return scout_say(why, SCOUT_NO_MEMORY, "memory", "more bytes than any memory has");
    scout_answer answer = bench_note(s, s->api->alloc(s->device, bytes + BENCH_FRONT + BENCH_CANARY, &memory, why));
    if (answer != SCOUT_OK) return answer;
    b->base = memory;
    b->bytes = bytes;
    return bench_arm(s, b, bytes, why);
}

void bench_release(bench_set *s, bench_buffer *b) {
    if (b->base && !s->lost) s->api->release(s->device, b->base);
    b->base = NULL;
}

scout_answer bench_arm(bench_set *s, const bench_buffer *b, uint64_t bytes, scout_why *why) {
    unsigned char canary[BENCH_CANARY];
    memset(canary, canary_byte, sizeof canary);
    char *data = bench_data(b);
    scout_answer answer = s->api->upload(s->device, data - BENCH_CANARY, canary, sizeof canary, why);
    if (answer == SCOUT_OK) answer = s->api->upload(s->device, data + bytes, canary, sizeof canary, why);
    return bench_note(s, answer);
}

scout_answer bench_inspect(bench_set *s, const bench_buffer *b, uint64_t bytes, bool *whole, scout_why *why) {
    unsigned char found[2 * BENCH_CANARY];
    char *data = bench_data(b);
    scout_answer answer = s->api->download(s->device, found, data - BENCH_CANARY, BENCH_CANARY, why);
    if (answer == SCOUT_OK) answer = s->api->download(s->device, found + BENCH_CANARY, data + bytes, BENCH_CANARY, why);
    if (answer != SCOUT_OK) return bench_note(s, answer);
    for (size_t k = 0; k < sizeof found; k++)
        if (found[k] != canary_byte) *whole = false;
    return SCOUT_OK;
}

scout_answer bench_poison(bench_set *s, const bench_buffer *b, uint64_t bytes, scout_why *why) {
    if (bytes == 0) return SCOUT_OK;
    return bench_note(s, s->api->fill(s->device, bench_data(b), bytes, SCOUT_NONE, SCOUT_FILL_BYTE, poison_byte, why));
}

/* ---- inputs ---- */

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Another one for every tensor, copy and round, the same in every run. */
static uint64_t seed_of(const bench_set *s, uint32_t tensor, uint32_t copy) {
    return mix(mix(mix(s->seed) + s->round) + ((uint64_t)tensor << 32) + copy);
}

/* What a tensor must hold to mean something: scales are positive, places lie inside of what they point into, a weight
 * with an activation behind it is small. */
static uint32_t fill_of(const scout_tensor *t) {
    if (t->below < 0) return SCOUT_FILL_SMALL;
    if (t->below > 0) return strcmp(t->name, "lengths") == 0 ? SCOUT_FILL_NEAR : SCOUT_FILL_BELOW;
    const bool positive = strcmp(t->name, "scales") == 0 || strcmp(t->name, "variance") == 0;
    return positive ? SCOUT_FILL_SCALE : SCOUT_FILL_NORMAL;
}

static scout_answer fill_one(bench_set *s, uint32_t k, uint32_t c, scout_why *why) {
    const scout_tensor *t = &s->op->tensors[k];
    void *to = bench_data(&s->tensors[k].copies[c]);
    if (s->given.bytes && s->given.tensor == k) return s->api->upload(s->device, to, s->given.bytes, t->bytes, why);
    const int64_t told = t->below < 0 ? -t->below : t->below;
    const uint64_t seed = told ? SCOUT_FILL_SEED(told, seed_of(s, k, c)) : seed_of(s, k, c);
    return s->api->fill(s->device, to, t->bytes, t->type, fill_of(t), seed, why);
}

/* The first `copies` of each. */
static scout_answer fill_inputs(bench_set *s, uint32_t copies, scout_why *why) {
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        s->tensors[k].summed = false;
        for (uint32_t c = 0; s->tensors[k].input && c < s->tensors[k].count && c < copies; c++) {
            const scout_answer answer = fill_one(s, k, c, why);
            if (answer != SCOUT_OK) return bench_note(s, answer);
        }
    }
    return SCOUT_OK;
}

scout_answer bench_arm_all(bench_set *s, scout_why *why) {
    for (uint32_t k = 0; k < s->op->tensor_count; k++)
        for (uint32_t c = 0; c < s->tensors[k].count; c++) {
            const scout_answer answer = bench_arm(s, &s->tensors[k].copies[c], s->op->tensors[k].bytes, why);
            if (answer != SCOUT_OK) return answer;
        }
    for (bench_pack *pack = s->packs; pack; pack = pack->next)
        for (uint32_t c = 0; c < pack->count; c++) {
            const scout_answer answer = bench_arm(s, &pack->copies[c], pack->bytes, why);
            if (answer != SCOUT_OK) return answer;
        }
    return SCOUT_OK;
}

/* Each store of packed weights once, by the first of its plans. */
static scout_answer pack_all(bench_set *s, uint32_t copies, scout_why *why) {
    for (bench_pack *pack = s->packs; pack; pack = pack->next)
        for (bench_plan *p = s->plans; p; p = p->next) {
            if (p->pack != pack) continue;
            const scout_answer answer = bench_pack_again(p, copies, why);
            if (answer != SCOUT_OK) return answer;
            break;
        }
    return SCOUT_OK;
}

scout_answer bench_restore(bench_set *s, scout_why *why) {
    scout_answer answer = bench_arm_all(s, why);
    if (answer == SCOUT_OK) answer = fill_inputs(s, s->copies, why);
    return answer == SCOUT_OK ? pack_all(s, s->copies, why) : answer;
}

static void end_check(bench_set *s) {
    if (s->check && !s->lost) s->reference->end(s->check);
    if (s->last_check && !s->lost) s->reference->end(s->last_check);
    s->check = s->last_check = NULL;
}

scout_answer bench_set_refresh(bench_set *s, bool first_only, scout_why *why) {
    const uint32_t copies = first_only ? 1 : s->copies;
    end_check(s);
    s->round++;
    scout_answer answer = fill_inputs(s, copies, why);
    return answer == SCOUT_OK ? pack_all(s, copies, why) : answer;
}

static scout_answer need_check_of(bench_set *s, uint32_t copy, scout_check **check, scout_why *why) {
    void *tensors[SCOUT_MAX_TENSORS];
    if (*check) return SCOUT_OK;
    if (!s->reference)
        return scout_say(why, SCOUT_NO, "feature", "the device has no reference for this kind of operation");
    for (uint32_t k = 0; k < s->op->tensor_count; k++)
        tensors[k] = bench_data(&s->tensors[k].copies[s->tensors[k].rotates ? copy : 0]);
    return bench_note(s, s->reference->begin(s->device, s->op, tensors, mix(s->seed ^ s->round), check, why));
}

scout_answer bench_need_check(bench_set *s, scout_why *why) { return need_check_of(s, 0, &s->check, why); }

scout_answer bench_need_last_check(bench_set *s, scout_why *why) {
    return need_check_of(s, s->copies - 1, &s->last_check, why);
}

scout_answer bench_need_workspace(bench_set *s, scout_why *why) {
    if (s->workspace.base) return SCOUT_OK;
    return bench_allocate(s, &s->workspace, s->op->workspace_limit, why);
}

/* ---- the set ---- */

static bool rotates(const scout_tensor *t, regime_cache cache) {
    if (cache == REGIME_HOT) return false;
    return cache == REGIME_COLD || t->role == SCOUT_WEIGHT || t->role == SCOUT_SIDE;
}

/* Enough copies that a copy comes again only after plateau_bytes of others. stored: `rotating` with its canaries. */
static uint32_t count_copies(double rotating, double stored, double all, double plateau, double memory,
                             double workspace) {
    if (!(rotating > 0) || !(plateau > 0)) return 1;
    double copies = ceil(plateau / rotating);
    if (copies < 2 && rotating < 4 * plateau) copies = 2; /* the end of one pass is not the beginning of the next */
    const double room = memory_share * memory - workspace - all, fit = room > 0 ? 1 + floor(room / stored) : 1;
    if (copies > fit) copies = fit;
    if (copies > BENCH_COPIES) copies = BENCH_COPIES;
    return copies > 1 ? (uint32_t)copies : 1;
}

static scout_answer plan_copies(bench_set *s, regime_cache cache, double plateau, scout_why *why) {
    uint64_t free_bytes = 0, total_bytes = 0;
    double rotating = 0, stored = 0, all = 0;
    scout_answer answer = bench_note(s, s->api->memory(s->device, &free_bytes, &total_bytes, why));
    if (answer != SCOUT_OK) return answer;
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        const double bytes = (double)s->op->tensors[k].bytes, with_canaries = bytes + BENCH_FRONT + BENCH_CANARY;
        s->tensors[k].rotates = rotates(&s->op->tensors[k], cache);
        s->tensors[k].input = s->op->tensors[k].role != SCOUT_OUTPUT;
        rotating += s->tensors[k].rotates ? bytes : 0;
        stored += s->tensors[k].rotates ? with_canaries : 0;
        all += with_canaries;
    }
    if (all > (double)free_bytes)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "its tensors take %.2f GB, and %.2f GB are free", all / 1e9,
                         (double)free_bytes / 1e9);
    s->copies = count_copies(rotating, stored, all, plateau, (double)free_bytes, (double)s->op->workspace_limit);
    return SCOUT_OK;
}

static scout_answer allocate_tensors(bench_set *s, scout_why *why) {
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        bench_tensor *t = &s->tensors[k];
        const uint32_t count = t->rotates ? s->copies : 1;
        t->copies = calloc((size_t)count + 1, sizeof *t->copies);
        if (!t->copies) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
        for (; t->count < count; t->count++) {
            const scout_answer answer = bench_allocate(s, &t->copies[t->count], s->op->tensors[k].bytes, why);
            if (answer == SCOUT_OK) continue;
            bench_release(s, &t->copies[t->count]);
            if (answer != SCOUT_NO_MEMORY || t->count == 0 || !t->rotates) return answer;
            s->copies = t->count; /* fewer than hoped for: the others go on with as many */
            break;
        }
    }
    for (uint32_t k = 0; k < s->op->tensor_count; k++) /* those that came before the memory ended */
        while (s->tensors[k].rotates && s->tensors[k].count > s->copies)
            bench_release(s, &s->tensors[k].copies[--s->tensors[k].count]);
    return SCOUT_OK;
}

static const scout_reference *find_reference(const scout_device_api *api, uint32_t kind) {
    for (uint32_t k = 0; k < api->reference_count; k++)
        if (api->references[k]->kind == kind) return api->references[k];
    return NULL;
}

bench_set *bench_set_new(const scout_device_api *api, scout_device *device, const scout_op *op, const regime *r,
                         double plateau_bytes, uint64_t seed, double tolerance, const bench_given *given,
                         scout_answer *answer, scout_why *why) {
    bench_set *s = calloc(1, sizeof *s);
    if (!s) {
        *answer = scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
        return NULL;
    }
    s->api = api;
    s->device = device;
    s->op = op;
    s->burst = r->load == REGIME_BURST;
    s->seed = seed;
    s->tolerance = tolerance;
    if (given) s->given = *given;
    s->reference = find_reference(api, op->kind);
    *answer = plan_copies(s, r->cache, plateau_bytes, why);
    if (*answer == SCOUT_OK) *answer = allocate_tensors(s, why);
    if (*answer == SCOUT_OK) *answer = fill_inputs(s, s->copies, why);
    if (*answer == SCOUT_OK) return s;
    bench_set_free(s);
    return NULL;
}

void bench_set_free(bench_set *s) {
    if (!s) return;
    end_check(s);
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        for (uint32_t c = 0; c < s->tensors[k].count; c++) bench_release(s, &s->tensors[k].copies[c]);
        free(s->tensors[k].copies);
    }
    bench_release(s, &s->workspace);
    free(s);
}

uint32_t bench_set_copies(const bench_set *s) { return s->copies; }

uint64_t bench_set_rotation_bytes(const bench_set *s) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < s->op->tensor_count; k++)
        if (s->tensors[k].rotates) bytes += s->op->tensors[k].bytes * s->copies;
    return bytes;
}

double bench_set_resident_bytes(const bench_set *s) {
    double bytes = 0;
    for (uint32_t k = 0; k < s->op->tensor_count; k++)
        if (!s->tensors[k].rotates) bytes += (double)s->op->tensors[k].bytes;
    return bytes;
}
