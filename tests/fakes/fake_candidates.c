/* The fake device's candidates: right ones of different speed, and one for each thing that can go wrong. */
#include "tests/fakes/fake_device.h"

#include "scout/op/gemm.h"

#include <math.h>
#include <stdlib.h>

/* ---- plans ---- */

typedef enum behaviour {
    RIGHT,
    WRONG,
    ROUNDED, /* about twice as far off as it may be */
    OUTSIDE,
    BEFORE,
    CHANGES,
    PARTIAL,
    FAILS,
    HUNGRY,
    LOSES,
    PACKS,
    UNCAPTURABLE,
    LATE,
    LATE_OUTSIDE,
    REMEMBERS,
    LAZY,
    COPIES
} behaviour;

struct scout_plan {
    const scout_op *op;
    scout_device *device;
    behaviour does;
    double cost_s;
    int64_t order;
    uint32_t launches;
    void *hoard;
    const void *first_output;
    void *first_tensors[SCOUT_MAX_TENSORS];
};

static void misbehave(scout_plan *p, void *const *tensors, void *workspace) {
    const uint64_t n = p->op->tensors[GEMM_C].bytes / sizeof(float);
    float *c = tensors[GEMM_C];
    switch (p->does) {
    case WRONG: c[n / 3] += 1; break;
    case ROUNDED: c[n / 3] += 4e-6F * (fabsf(c[n / 3]) + 2.8F); break;
    case OUTSIDE: c[n] = 1; break;
    case BEFORE: ((char *)workspace)[-1] = 1; break;
    case CHANGES: ((float *)tensors[GEMM_A])[3] += 1; break;
    case LATE:
        if (p->launches > 180) c[1] += 1;
        break;
    case LATE_OUTSIDE:
        if (c != p->first_output) c[n] = 1;
        break;
    default: break;
    }
}

void fake_execute(fake_call *one) {
    scout_plan *p = one->plan;
    scout_device *d = p->device;
    if (d->steal_each > 0 && ++d->executed % d->steal_each == 0) d->stolen_s += 3e-3, d->now_s += 3e-3;
    if (p->does == COPIES) {
        memcpy(one->tensors[p->op->tensor_count - 1], one->tensors[0], p->op->tensors[0].bytes);
        d->now_s += p->cost_s;
        return;
    }
    float *c = one->tensors[GEMM_C], last = 0;
    const uint64_t n = p->op->tensors[GEMM_C].bytes / sizeof(float);
    if (p->does == LOSES) d->lost = true;
    if (d->lost) return;
    if (!p->first_output) {
        p->first_output = c;
        memcpy(p->first_tensors, one->tensors, sizeof p->first_tensors);
    }
    if (p->does == REMEMBERS) memcpy(one->tensors, p->first_tensors, sizeof p->first_tensors);
    memcpy(&last, &c[n - 1], sizeof last);
    fake_compute(p->op, one->tensors, p->does == PACKS, NULL, NULL);
    if (p->does == PARTIAL) memcpy(&c[n - 1], &last, sizeof last);
    p->launches++;
    misbehave(p, one->tensors, one->workspace);
    d->log[d->launches++ % FAKE_LOG] = one->tensors[GEMM_B];
    d->now_s += p->cost_s;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    scout_device *d = p->device;
    fake_call one = {.plan = p, .workspace = args->workspace};
    memcpy(one.tensors, args->tensors, p->op->tensor_count * sizeof one.tensors[0]);
    if (!d->capturing) {
        d->now_s += d->owed_s;
        d->owed_s = 0;
        fake_execute(&one);
        return d->lost ? scout_say(why, SCOUT_LOST, "poisoned", "the launch lost the device") : SCOUT_OK;
    }
    if (p->does == LAZY && p->launches == 0) return scout_say(why, SCOUT_NO, "error", "it has to load its kernel");
    if (p->does == UNCAPTURABLE) return scout_say(why, SCOUT_NO, "error", "it allocates when it launches");
    fake_take(d, &one);
    return SCOUT_OK;
}

static scout_answer make_plan(const scout_op *op, scout_device *d, behaviour does, double cost_s, scout_plan **plan,
                              scout_why *why) {
    if (does == FAILS) return scout_say(why, SCOUT_FAILED, "nonsense", "prepare failed");
    scout_plan *p = fake_own(d, calloc(1, sizeof *p));
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory");
    *p = (scout_plan){.op = op, .device = d, .does = does, .cost_s = cost_s};
    if (does == HUNGRY && fake_api.alloc(d, d->limit_bytes - d->used_bytes, &p->hoard, why) != SCOUT_OK) {
        fake_disown(d, p);
        return SCOUT_NO_MEMORY;
    }
    d->live_plans++;
    d->prepared++;
    *plan = p;
    return SCOUT_OK;
}

static void destroy(scout_plan *p) {
    if (p->hoard) fake_api.release(p->device, p->hoard);
    p->device->live_plans--;
    fake_disown(p->device, p);
}

static int describe(const scout_plan *p, char *json, size_t room) {
    return snprintf(json, room, "{\"order\": %lld}", (long long)p->order);
}

static scout_answer supports(const scout_op *op, scout_device *d, scout_why *why) {
    (void)d;
    return op->input == SCOUT_FP32 ? SCOUT_OK : scout_say(why, SCOUT_NO, "type", "only fp32");
}

static scout_answer refuse(const scout_op *op, scout_device *d, scout_why *why) {
    (void)op, (void)d;
    return scout_say(why, SCOUT_NO, "shape", "not for this shape");
}

/* ---- packing ---- */

static scout_answer pack_domain(const scout_op *op, scout_device *d, int exhaustive, scout_domain *out,
                                scout_why *why) {
    (void)op, (void)d, (void)exhaustive, (void)why;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "order", .count = 3, .values = {0, 1, 2}};
    return SCOUT_OK;
}

static scout_answer prepare_packs(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,
                                  scout_plan_needs *needs, scout_why *why) {
    const scout_answer answer = make_plan(op, d, PACKS, 2e-4 + 1e-6 * (double)values[0], plan, why);
    if (answer != SCOUT_OK) return answer;
    (*plan)->order = values[0];
    needs->packs = GEMM_B + 1;
    needs->pack_bytes = op->tensors[GEMM_B].bytes + (values[0] == 2 ? 64 : 0);
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *p, const void *weight, void *packed, void *stream, scout_why *why) {
    const gemm_problem g = gemm_problem_of(p->op);
    const float *from = weight;
    float *to = packed;
    (void)stream, (void)why;
    for (int64_t k = 0; k < g.k; k++)
        for (int64_t n = 0; n < g.n; n++) {
            if (g.trans_b)
                to[k * g.n + n] = from[n * g.ldb + k];
            else
                to[n * g.k + k] = from[k * g.ldb + n];
        }
    p->device->now_s += 5e-5;
    return SCOUT_OK;
}

/* ---- the variants of one ---- */

static scout_answer tuned_domain(const scout_op *op, scout_device *d, int exhaustive, scout_domain *out,
                                 scout_why *why) {
    static const char *const splits[] = {"1", "2"};
    (void)op, (void)d, (void)exhaustive, (void)why;
    out->count = 2;
    out->parameters[0] = (scout_parameter){.name = "algo", .count = 6, .values = {0, 1, 2, 3, 4, 5}};
    out->parameters[1] = (scout_parameter){.name = "split", .count = 2, .values = {1, 2}, .labels = splits};
    return SCOUT_OK;
}

static int tuned_allows(const scout_op *op, scout_device *d, const int64_t *values) {
    (void)op, (void)d;
    return !(values[0] == 5 && values[1] == 2);
}

static scout_answer prepare_tuned(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,
                                  scout_plan_needs *needs, scout_why *why) {
    (void)needs;
    const double cost = values[0] == 3 && values[1] == 1 ? 1.8e-4 : 2.1e-4 + 1e-5 * (double)(values[0] + values[1]);
    return make_plan(op, d, RIGHT, cost, plan, why);
}

static scout_answer coarse_domain(const scout_op *op, scout_device *d, int exhaustive, scout_domain *out,
                                  scout_why *why) {
    (void)op, (void)d, (void)exhaustive, (void)why;
    out->count = 2;
    out->parameters[0] = (scout_parameter){.name = "engine", .count = 3, .values = {0, 1, 2}};
    out->parameters[1] = (scout_parameter){.name = "form", .count = 2, .values = {0, 1}};
    return SCOUT_OK;
}

static scout_answer prepare_coarse(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,
                                   scout_plan_needs *needs, scout_why *why) {
    needs->coarse = values[0] == 0;
    return make_plan(op, d, values[0] < 2 && values[1] == 0 ? WRONG : RIGHT, values[1] == 0 ? 1.5e-4 : 4e-4, plan, why);
}

static scout_answer many_domain(const scout_op *op, scout_device *d, int exhaustive, scout_domain *out,
                                scout_why *why) {
    (void)op, (void)d, (void)exhaustive, (void)why;
    out->count = 2;
    out->parameters[0] = (scout_parameter){.name = "a", .count = 512};
    out->parameters[1] = (scout_parameter){.name = "b", .count = 2, .values = {0, 1}};
    for (int k = 0; k < 512; k++) out->parameters[0].values[k] = k;
    return SCOUT_OK;
}

/* ---- candidates ---- */

#define PREPARE(name, does, cost, workspace)                                                                           \
    static scout_answer prepare_##name(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,  \
                                       scout_plan_needs *needs, scout_why *why) {                                      \
        (void)values;                                                                                                  \
        needs->workspace_bytes = workspace;                                                                            \
        return make_plan(op, d, does, cost, plan, why);                                                                \
    }
#define CANDIDATE(its_name, its_flags, ...)                                                                            \
    const scout_candidate fake_##its_name = {.size = sizeof(scout_candidate),                                          \
                                             .kind = SCOUT_GEMM,                                                       \
                                             .flags = its_flags,                                                       \
                                             .name = #its_name,                                                        \
                                             .approach = "CUSTOM_KERNEL",                                              \
                                             .prepare = prepare_##its_name,                                            \
                                             .launch = launch,                                                         \
                                             .describe = describe,                                                     \
                                             .destroy = destroy,                                                       \
                                             __VA_ARGS__}

PREPARE(right, RIGHT, 2e-4, 0)
PREPARE(fast, RIGHT, 1.5e-4, 0)
PREPARE(brief, RIGHT, 2e-5, 0)
PREPARE(brisk, RIGHT, 1.5e-5, 0)
PREPARE(slow, RIGHT, 5e-4, 0)
PREPARE(crawls, RIGHT, 0.1, 0)
PREPARE(near, RIGHT, 1.98e-4, 0)
PREPARE(wrong, WRONG, 1e-4, 0)
PREPARE(rounded, ROUNDED, 1e-4, 0)
PREPARE(rounded_own, ROUNDED, 1e-4, 0)
PREPARE(outside, OUTSIDE, 1e-4, 0)
PREPARE(before, BEFORE, 1e-4, 1000)
PREPARE(before_large, BEFORE, 1e-4, 40 << 20)
PREPARE(changes, CHANGES, 1e-4, 0)
PREPARE(partial, PARTIAL, 1e-4, 0)
PREPARE(fails, FAILS, 1e-4, 0)
PREPARE(refuses, RIGHT, 1e-4, 0)
PREPARE(hungry, HUNGRY, 1e-4, 0)
PREPARE(lost, LOSES, 1e-4, 0)
PREPARE(uncapturable, UNCAPTURABLE, 2e-4, 0)
static scout_answer prepare_late_default(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,
                                         scout_plan_needs *needs, scout_why *why) {
    (void)needs;
    return make_plan(op, d, values[0] == 0 ? LATE : RIGHT, values[0] == 1 ? 3e-4 : 2e-4, plan, why);
}

PREPARE(late, LATE, 1e-4, 0)
PREPARE(late_outside, LATE_OUTSIDE, 1e-4, 0)
PREPARE(lazy, LAZY, 1e-4, 0)
PREPARE(remembers, REMEMBERS, 1e-4, 0)
PREPARE(many, RIGHT, 1e-3, 0)
PREPARE(last, RIGHT, 1.2e-4, 0)
PREPARE(plain, RIGHT, 5e-4, 0)
PREPARE(plain_last, RIGHT, 3e-4, 0)

PREPARE(copies, COPIES, 1e-4, 0)

const scout_candidate fake_copies = {.size = sizeof(scout_candidate),
                                     .kind = SCOUT_ELEMENTWISE,
                                     .flags = SCOUT_BASELINE,
                                     .priority = 100,
                                     .name = "copies",
                                     .approach = "CUSTOM_KERNEL",
                                     .supports = supports,
                                     .prepare = prepare_copies,
                                     .launch = launch,
                                     .describe = describe,
                                     .destroy = destroy};
CANDIDATE(right, SCOUT_BASELINE, .priority = 100, .supports = supports);
CANDIDATE(fast, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(brief, SCOUT_BASELINE, .priority = 100, .supports = supports);
CANDIDATE(brisk, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(slow, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(crawls, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(near, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(tuned, 0, .priority = 60, .supports = supports, .domain = tuned_domain, .allows = tuned_allows);
CANDIDATE(coarse, SCOUT_BASELINE, .priority = 110, .supports = supports, .domain = coarse_domain);
CANDIDATE(wrong, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(rounded, 0, .priority = 50, .supports = supports, .library = "fakelib");
CANDIDATE(rounded_own, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(outside, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(before, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(before_large, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(changes, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(partial, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(fails, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(refuses, SCOUT_OWN, .priority = 50, .supports = refuse);
CANDIDATE(hungry, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(lost, SCOUT_OWN, .priority = 40, .supports = supports);
CANDIDATE(packs, SCOUT_OWN, .priority = 50, .supports = supports, .domain = pack_domain, .pack = pack);
CANDIDATE(uncapturable, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(late_default, SCOUT_BASELINE, .priority = 110, .supports = supports, .domain = coarse_domain);
CANDIDATE(late, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(late_outside, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(lazy, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(remembers, SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(many, 0, .priority = 1, .supports = supports, .domain = many_domain);
CANDIDATE(last, SCOUT_LAST, .priority = 0, .supports = supports);
CANDIDATE(plain, SCOUT_BASELINE | SCOUT_OWN, .priority = 50, .supports = supports);
CANDIDATE(plain_last, SCOUT_BASELINE | SCOUT_OWN | SCOUT_LAST, .priority = 0, .supports = supports);
