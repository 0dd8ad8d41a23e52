/* Owns the tensors of an operation: their copies in the device's memory, canaries around each, random inputs from
 * seeds, and the reference made from them. */
#include "common/mix.h"
#include "scout/measure/bench_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char canary_byte = 0xA5, poison_byte = 0xFF;

/* Of the free memory: the rest is for workspaces, packed weights, the reference and the libraries' own. */
static const double memory_share = 0.6, places_share = 0.1;

/* Parts of the plateau, which is several times the cache: a rotation of less never leaves it, and what stays in it has
 * so many places that they fill no more than a little of it. */
static const double in_cache = 1.0 / 8, places_part = 1.0 / 32;

scout_answer bench_note(bench_set *s, scout_answer answer) {
    if (answer == SCOUT_LOST) s->lost = true;
    return answer;
}

/* ---- buffers ---- */

void *bench_data(const bench_buffer *b) { return b->base ? b->base + BENCH_FRONT : NULL; }

/* Another place in every set: how fast memory is depends on where it lies. */
static uint64_t gap(bench_set *s, uint64_t most) {
    if (s->tight) return 0;
    return mix_bits(s->seed + ++s->gaps) % (most / BENCH_LINE + 1) * BENCH_LINE;
}

static uint64_t stride_of(uint64_t bytes) {
    return (bytes + BENCH_FRONT + BENCH_CANARY + BENCH_LINE - 1) / BENCH_LINE * BENCH_LINE;
}

scout_answer bench_slab_new(bench_set *s, bench_slab *slab, uint64_t bytes, uint32_t count, scout_why *why) {
    void *memory = NULL;
    *slab = (bench_slab){.stride = stride_of(bytes), .bytes = bytes};
    if (bytes > UINT64_MAX / 4 / (count + 1))
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "more bytes than any memory has");
    const uint64_t all = slab->stride * count;
    const uint64_t front = gap(s, all < BENCH_GAP ? all : BENCH_GAP);
    const scout_answer answer = bench_note(s, s->api->alloc(s->device, front + all, &memory, why));
    if (answer != SCOUT_OK) return answer;
    slab->memory = memory;
    slab->first = slab->memory + front;
    slab->count = count;
    return SCOUT_OK;
}

bench_buffer bench_slab_at(const bench_slab *slab, uint32_t launch) {
    if (slab->count == 0) return (bench_buffer){.bytes = slab->bytes};
    return (bench_buffer){.base = slab->first + slab->stride * (launch % slab->count), .bytes = slab->bytes};
}

void bench_slab_free(bench_set *s, bench_slab *slab) {
    if (slab->memory && !s->lost) s->api->release(s->device, slab->memory);
    *slab = (bench_slab){.memory = NULL};
}

/* Which copies have canaries: the ends, and some between. What writes beside one copy writes beside all. */
bool bench_watched(const bench_set *s, uint32_t copy, uint32_t count) {
    const uint32_t each = count / BENCH_WATCHED + 1;
    return copy == 0 || copy + 1 == count || copy % each == mix_bits(s->seed) % each;
}

void bench_copy_tensors(const bench_set *s, uint32_t copy, void **tensors) {
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        const bench_buffer at = bench_slab_at(&s->tensors[k].copies, copy);
        tensors[k] = bench_data(&at);
    }
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

/* Another one for every tensor, copy and round, the same in every run. */
static uint64_t seed_of(const bench_set *s, uint32_t tensor, uint32_t copy) {
    return mix_bits(mix_bits(mix_bits(s->seed) + s->round) + ((uint64_t)tensor << 32) + copy);
}

uint32_t bench_fill(const scout_tensor *t, uint64_t *seed) {
    const int64_t told = t->below < 0 ? -t->below : t->below;
    if (told) *seed = SCOUT_FILL_SEED(told, *seed);
    if (t->below < 0) return SCOUT_FILL_SMALL;
    if (t->below > 0) return strcmp(t->name, "lengths") == 0 ? SCOUT_FILL_NEAR : SCOUT_FILL_BELOW;
    const bool positive = strcmp(t->name, "scales") == 0 || strcmp(t->name, "variance") == 0;
    return positive ? SCOUT_FILL_SCALE : SCOUT_FILL_NORMAL;
}

/* From one copy on, all that lie behind it at once: the canaries between them are written afterwards. */
static scout_answer fill_from(bench_set *s, uint32_t k, uint32_t first, uint32_t count, scout_why *why) {
    const scout_tensor *t = &s->op->tensors[k];
    const bench_slab *slab = &s->tensors[k].copies;
    const bool given = s->given.bytes && s->given.tensor == k;
    uint64_t seed = seed_of(s, k, first);
    const uint32_t how = bench_fill(t, &seed);
    scout_answer answer = SCOUT_OK;
    for (uint32_t c = first; given && c < first + count && answer == SCOUT_OK; c++) {
        const bench_buffer at = bench_slab_at(slab, c);
        answer = s->api->upload(s->device, bench_data(&at), s->given.bytes, t->bytes, why);
    }
    if (given || count == 0) return answer;
    const bench_buffer at = bench_slab_at(slab, first);
    return s->api->fill(s->device, bench_data(&at), slab->stride * (count - 1) + t->bytes, t->type, how, seed, why);
}

static scout_answer arm_slab(bench_set *s, const bench_slab *slab, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (uint32_t c = 0; c < slab->count && answer == SCOUT_OK; c++) {
        if (!bench_watched(s, c, slab->count)) continue;
        const bench_buffer at = bench_slab_at(slab, c);
        answer = bench_arm(s, &at, slab->bytes, why);
    }
    return answer;
}

/* The first copies of each, or all of them. */
static scout_answer fill_inputs(bench_set *s, bool first_only, scout_why *why) {
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        s->tensors[k].summed = false;
        if (!s->tensors[k].input) continue;
        scout_answer answer = fill_from(s, k, 0, first_only ? 1 : s->tensors[k].copies.count, why);
        if (answer == SCOUT_OK && !first_only) answer = arm_slab(s, &s->tensors[k].copies, why);
        if (answer != SCOUT_OK) return bench_note(s, answer);
    }
    return SCOUT_OK;
}

scout_answer bench_arm_all(bench_set *s, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++)
        answer = arm_slab(s, &s->tensors[k].copies, why);
    for (bench_pack *pack = s->packs; pack && answer == SCOUT_OK; pack = pack->next)
        answer = arm_slab(s, &pack->copies, why);
    return answer;
}

scout_answer bench_pack_arm(bench_set *s, const bench_pack *pack, scout_why *why) {
    return arm_slab(s, &pack->copies, why);
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
    if (answer == SCOUT_OK) answer = fill_inputs(s, false, why);
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
    scout_answer answer = fill_inputs(s, first_only, why);
    return answer == SCOUT_OK ? pack_all(s, copies, why) : answer;
}

static scout_answer need_check_of(bench_set *s, uint32_t copy, scout_check **check, scout_why *why) {
    void *tensors[SCOUT_MAX_TENSORS];
    if (*check) return SCOUT_OK;
    if (!s->reference)
        return scout_say(why, SCOUT_NO, "feature", "the device has no reference for this kind of operation");
    bench_copy_tensors(s, copy, tensors);
    return bench_note(s, s->reference->begin(s->device, s->op, tensors, mix_bits(s->seed ^ s->round), check, why));
}

scout_answer bench_need_check(bench_set *s, scout_why *why) { return need_check_of(s, 0, &s->check, why); }

scout_answer bench_need_last_check(bench_set *s, scout_why *why) {
    return need_check_of(s, s->copies - 1, &s->last_check, why);
}

static bool is_usual(const bench_set *s, uint64_t bytes) {
    return bytes <= REGIME_WORKSPACE_BYTES || s->op->workspace_limit <= REGIME_WORKSPACE_BYTES;
}

scout_answer bench_need_workspace(bench_set *s, uint64_t bytes, scout_why *why) {
    const bool usual = is_usual(s, bytes);
    const uint64_t limit = s->op->workspace_limit;
    bench_slab *const slab = usual ? &s->workspace : &s->large_workspace;
    if (slab->memory) return SCOUT_OK;
    const uint64_t most = usual && limit > REGIME_WORKSPACE_BYTES ? REGIME_WORKSPACE_BYTES : limit;
    const scout_answer answer = bench_slab_new(s, slab, most, 1, why);
    return answer == SCOUT_OK ? arm_slab(s, slab, why) : answer;
}

bench_buffer bench_workspace(const bench_set *s, uint64_t bytes) {
    return bench_slab_at(is_usual(s, bytes) ? &s->workspace : &s->large_workspace, 0);
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

/* A launch on tensors in the cache is up to a tenth faster where they lie well, and a model has them in many places. So
 * each launch of a recorded sequence takes the next of several: one pass then tells the mean. A power of two, so that
 * the last copy of what rotates comes with the last place. */
static uint32_t count_places(double resident, double plateau, double memory) {
    const double most = resident > 0 ? fmin(places_part * plateau, places_share * memory) / resident : 1;
    uint32_t places = 1;
    while (2 * places <= most && 2 * places <= BENCH_PLACES) places *= 2;
    return places;
}

/* What rotates between two uses of a place would drive it out of the cache: there each has one. */
static void plan_places(bench_set *s, double resident, double rotating, double plateau, double memory) {
    s->cold = rotating * s->copies > in_cache * plateau || !s->api->has_graphs;
    s->places = s->cold ? 1 : count_places(resident, plateau, memory);
    if (!s->cold && s->copies > BENCH_PLACES) s->copies = BENCH_PLACES;
    if (s->copies < s->places) s->copies = s->places;
    s->copies -= s->copies % s->places;
}

static scout_answer plan_copies(bench_set *s, regime_cache cache, double plateau, scout_why *why) {
    uint64_t free_bytes = 0, total_bytes = 0;
    double rotating = 0, stored = 0, all = 0, resident = 0;
    scout_answer answer = bench_note(s, s->api->memory(s->device, &free_bytes, &total_bytes, why));
    if (answer != SCOUT_OK) return answer;
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        const double bytes = (double)s->op->tensors[k].bytes, with_canaries = bytes + BENCH_FRONT + BENCH_CANARY;
        s->tensors[k].rotates = rotates(&s->op->tensors[k], cache);
        s->tensors[k].input = s->op->tensors[k].role != SCOUT_OUTPUT;
        rotating += s->tensors[k].rotates ? bytes : 0;
        stored += s->tensors[k].rotates ? with_canaries : 0;
        resident += s->tensors[k].rotates ? 0 : with_canaries;
        all += with_canaries;
    }
    if (all > (double)free_bytes)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "its tensors take %.2f GB, and %.2f GB are free", all / 1e9,
                         (double)free_bytes / 1e9);
    s->copies = count_copies(rotating, stored, all, plateau, (double)free_bytes, (double)s->op->workspace_limit);
    plan_places(s, resident, rotating, plateau, (double)free_bytes);
    return SCOUT_OK;
}

/* Where memory is not there although it was said to be free, half as many copies do, and at last those without gaps. */
static scout_answer allocate_tensors(bench_set *s, scout_why *why) {
    scout_answer answer = SCOUT_NO_MEMORY;
    for (;;) {
        answer = SCOUT_OK;
        for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++)
            answer = bench_slab_new(s, &s->tensors[k].copies, s->op->tensors[k].bytes,
                                    s->tensors[k].rotates ? s->copies : s->places, why);
        if (answer != SCOUT_NO_MEMORY || s->tight) break;
        for (uint32_t k = 0; k < s->op->tensor_count; k++) bench_slab_free(s, &s->tensors[k].copies);
        s->tight = s->copies == 1;
        s->copies = s->copies > s->places ? s->copies / 2 : 1;
        s->places = 1;
    }
    for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++)
        if (!s->tensors[k].input) answer = arm_slab(s, &s->tensors[k].copies, why);
    return answer;
}

static const scout_reference *find_reference(const scout_device_api *api, uint32_t kind) {
    for (uint32_t k = 0; k < api->reference_count; k++)
        if (api->references[k]->kind == kind) return api->references[k];
    return NULL;
}

bench_set *bench_set_new(const scout_device_api *api, scout_device *device, const scout_op *op, const regime *r,
                         double plateau_bytes, uint64_t seed, bench_tolerance tolerance, const bench_given *given,
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
    if (*answer == SCOUT_OK) *answer = fill_inputs(s, false, why);
    if (*answer == SCOUT_OK) return s;
    bench_set_free(s);
    return NULL;
}

void bench_set_free(bench_set *s) {
    if (!s) return;
    end_check(s);
    for (uint32_t k = 0; k < s->op->tensor_count; k++) bench_slab_free(s, &s->tensors[k].copies);
    bench_slab_free(s, &s->workspace);
    bench_slab_free(s, &s->large_workspace);
    free(s);
}

uint32_t bench_set_copies(const bench_set *s) { return s->copies; }

uint64_t bench_set_rotation_bytes(const bench_set *s) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < s->op->tensor_count; k++)
        if (s->tensors[k].rotates) bytes += s->op->tensors[k].bytes * s->copies;
    return bytes;
}

bool bench_set_is_cold(const bench_set *s) { return s->cold; }

double bench_set_resident_bytes(const bench_set *s) {
    double bytes = 0;
    for (uint32_t k = 0; k < s->op->tensor_count; k++)
        if (!s->tensors[k].rotates) bytes += (double)s->op->tensors[k].bytes;
    return bytes;
}
