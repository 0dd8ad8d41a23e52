/* The candidates as the device offers them: small work runs on one thread. To wake the others and to wait for them
 * takes a microsecond where cores share a cache and three where the host has put them apart, so frameworks leave work
 * of some microseconds where it is. All threads are another variant of such an operation. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/attention.h"
#include "scout/op/conv.h"
#include "scout/op/gemm.h"
#include "scout/op/random.h"
#include "scout/op/recurrent.h"
#include "scout/op/reduce.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* What one core does in a microsecond, about: the same everywhere, so that an operation runs alike on all machines. */
#define MACS_PER_US     50e3
#define BYTES_PER_US    50e3
#define ELEMENTS_PER_US 2.5e3 /* with a special function for each */
#define SMALL_US        10

#define COUNT_ONE(name) +1
enum { COUNT = 0 CPU_CANDIDATES(COUNT_ONE) };

/* Behind a candidate's own plan. */
typedef struct crew {
    bool alone;
} crew;

static size_t crew_at(const scout_candidate *own) { return (own->plan_bytes + 15) / 16 * 16; }
static crew *crew_of(const scout_candidate *own, const scout_plan *plan) {
    return (crew *)(void *)((char *)(void *)(uintptr_t)plan + crew_at(own));
}

static double us_of_bytes(const scout_op *op) {
    double bytes = 0;
    for (uint32_t k = 0; k < op->tensor_count; k++) bytes += (double)op->tensors[k].bytes;
    return bytes / BYTES_PER_US;
}

static double us_of_gemm(const scout_op *op) {
    const gemm_problem p = gemm_problem_of(op);
    return us_of_bytes(op) + (double)p.m * (double)p.n * (double)p.k * (double)p.batch / MACS_PER_US;
}

static double us_of_conv(const scout_op *op) {
    const conv_problem p = conv_problem_of(op);
    const int64_t places = op_elements(&op->tensors[p.transposed ? CONV_INPUT : CONV_OUTPUT]),
                  channels = (p.transposed ? p.cout : p.cin) / p.group;
    return us_of_bytes(op) + (double)places * (double)channels * (double)window_kernel(&p.w) / MACS_PER_US;
}

static double us_of_attention(const scout_op *op) {
    const attention_problem p = attention_problem_of(op);
    const double pairs = (double)(p.batch * p.heads) * (double)p.queries * (double)p.keys;
    return us_of_bytes(op) + pairs * (double)(p.dim + p.v_dim) / MACS_PER_US;
}

static double us_of_recurrent(const scout_op *op) {
    const recurrent_problem p = recurrent_problem_of(op);
    const double steps = (double)p.steps * (double)p.batch * (double)p.directions;
    return us_of_bytes(op) + steps * (double)(p.gates * p.hidden) * (double)(p.input + p.hidden) / MACS_PER_US;
}

/* Of the largest tensor; or of the output, where much more may be there than is read. */
static double us_of_elements(const scout_op *op) {
    const bool picks = op->kind == SCOUT_MOVE || op->kind == SCOUT_EMBEDDING;
    double most = 0;
    for (uint32_t k = 0; k < op->tensor_count; k++)
        if (!picks || op->tensors[k].role == SCOUT_OUTPUT) most = fmax(most, (double)op_elements(&op->tensors[k]));
    return most / ELEMENTS_PER_US;
}

/* How many times an element's usual work one takes: steps of a chain, which ";" separates, windows, powers, searches.
 */
static int times_of(const scout_op *op) {
    const char *chain = op->kind == SCOUT_ELEMENTWISE ? op_text(op, "chain") : NULL;
    int steps = 1;
    for (; chain && *chain; chain++) steps += *chain == ';';
    if (op->kind == SCOUT_POOL || random_how_of(op) != RANDOM_HOWS) return 10;
    if (op->kind == SCOUT_REDUCE ? !reduce_operator_of(op, NULL) : op_is(op, "lrn")) return 40;
    return steps;
}

/* What the key of an operation tells, and nothing else: a deployed table finds the variants that were measured. */
bool cpu_small_is(const scout_op *op) {
    static const struct {
        uint32_t kind;
        double (*us)(const scout_op *op);
    } products[] = {{SCOUT_GEMM, us_of_gemm},
                    {SCOUT_CONV, us_of_conv},
                    {SCOUT_ATTENTION, us_of_attention},
                    {SCOUT_RECURRENT, us_of_recurrent}};
    for (size_t k = 0; k < sizeof products / sizeof products[0]; k++)
        if (op->kind == products[k].kind) return products[k].us(op) < SMALL_US;
    return times_of(op) * us_of_elements(op) < SMALL_US;
}

/* Whether the first value of a variant says how many threads it has. */
static bool has_choice(const scout_op *op) { return cpu_team_size() > 1 && cpu_small_is(op); }

/* What is supported, and which variants there are, is said of the first: on all threads the library may refuse one. */
static scout_answer supports(const scout_candidate *own, const scout_op *op, scout_device *device, scout_why *why) {
    const cpu_team_state before = cpu_team_begin(cpu_small_is(op), own->library);
    const scout_answer answer = own->supports(op, device, why);
    cpu_team_end(before);
    return answer;
}

static scout_answer domain(const scout_candidate *own, const scout_op *op, scout_device *device, int exhaustive,
                           scout_domain *out, scout_why *why) {
    static const char *const labels[] = {"one", "all"};
    const cpu_team_state before = cpu_team_begin(cpu_small_is(op), own->library);
    out->count = 0;
    const scout_answer answer = own->domain ? own->domain(op, device, exhaustive, out, why) : SCOUT_OK;
    cpu_team_end(before);
    if (answer != SCOUT_OK || !has_choice(op)) return answer;
    if (out->count == SCOUT_MAX_PARAMETERS) return scout_say(why, SCOUT_FAILED, "error", "no room for its threads");
    memmove(&out->parameters[1], &out->parameters[0], out->count++ * sizeof out->parameters[0]);
    out->parameters[0] = (scout_parameter){.name = "threads", .count = 2, .values = {0, 1}, .labels = labels};
    return SCOUT_OK;
}

static int allows(const scout_candidate *own, const scout_op *op, scout_device *device, const int64_t *values) {
    return !own->allows || own->allows(op, device, values + has_choice(op));
}

static scout_answer prepare(const scout_candidate *own, const scout_op *op, scout_device *device, const int64_t *values,
                            scout_plan **plan, scout_plan_needs *needs, scout_why *why) {
    const bool choice = has_choice(op) && values, alone = choice ? values[0] == 0 : cpu_small_is(op);
    crew_of(own, *plan)->alone = alone;
    const cpu_team_state before = cpu_team_begin(alone, own->library);
    const scout_answer answer = own->prepare(op, device, choice ? values + 1 : values, plan, needs, why);
    cpu_team_end(before);
    return answer;
}

static cpu_team_state begin(const scout_candidate *own, const scout_plan *plan) {
    return cpu_team_begin(crew_of(own, plan)->alone, own->library);
}

static scout_answer pack(const scout_candidate *own, scout_plan *plan, const void *weight, void *packed, void *stream,
                         scout_why *why) {
    const cpu_team_state before = begin(own, plan);
    const scout_answer answer = own->pack(plan, weight, packed, stream, why);
    cpu_team_end(before);
    return answer;
}

static scout_answer pack_tensors(const scout_candidate *own, scout_plan *plan, void *const *tensors, void *packed,
                                 void *stream, scout_why *why) {
    const cpu_team_state before = begin(own, plan);
    const scout_answer answer = own->pack_tensors(plan, tensors, packed, stream, why);
    cpu_team_end(before);
    return answer;
}

static scout_answer launch(const scout_candidate *own, scout_plan *plan, const scout_args *args, scout_why *why) {
    const cpu_team_state before = begin(own, plan);
    const scout_answer answer = own->launch(plan, args, why);
    cpu_team_end(before);
    return answer;
}

static int describe(const scout_candidate *own, const scout_plan *plan, char *json, size_t room) {
    const cpu_team_state before = begin(own, plan);
    const int length = own->describe(plan, json, room);
    cpu_team_end(before);
    return length;
}

/* --- the table --- */

#define ON_ITS_THREADS(name)                                                                                           \
    static scout_answer supports_##name(const scout_op *op, scout_device *device, scout_why *why) {                    \
        return supports(&name, op, device, why);                                                                       \
    }                                                                                                                  \
    static scout_answer domain_##name(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,     \
                                      scout_why *why) {                                                                \
        return domain(&name, op, device, exhaustive, out, why);                                                        \
    }                                                                                                                  \
    static int allows_##name(const scout_op *op, scout_device *device, const int64_t *values) {                        \
        return allows(&name, op, device, values);                                                                      \
    }                                                                                                                  \
    static scout_answer prepare_##name(const scout_op *op, scout_device *device, const int64_t *values,                \
                                       scout_plan **plan, scout_plan_needs *needs, scout_why *why) {                   \
        return prepare(&name, op, device, values, plan, needs, why);                                                   \
    }                                                                                                                  \
    static scout_answer pack_##name(scout_plan *plan, const void *weight, void *packed, void *stream,                  \
                                    scout_why *why) {                                                                  \
        return pack(&name, plan, weight, packed, stream, why);                                                         \
    }                                                                                                                  \
    static scout_answer pack_tensors_##name(scout_plan *plan, void *const *tensors, void *packed, void *stream,        \
                                            scout_why *why) {                                                          \
        return pack_tensors(&name, plan, tensors, packed, stream, why);                                                \
    }                                                                                                                  \
    static scout_answer launch_##name(scout_plan *plan, const scout_args *args, scout_why *why) {                      \
        return launch(&name, plan, args, why);                                                                         \
    }                                                                                                                  \
    static int describe_##name(const scout_plan *plan, char *json, size_t room) {                                      \
        return describe(&name, plan, json, room);                                                                      \
    }
CPU_CANDIDATES(ON_ITS_THREADS)

static scout_candidate offered[COUNT];
static const scout_candidate *table[COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define OFFER(of)                                                                                                      \
    offered[count] = of;                                                                                               \
    offered[count].plan_bytes = crew_at(&of) + sizeof(crew);                                                           \
    offered[count].supports = supports_##of;                                                                           \
    offered[count].domain = domain_##of;                                                                               \
    offered[count].allows = allows_##of;                                                                               \
    offered[count].prepare = prepare_##of;                                                                             \
    offered[count].launch = launch_##of;                                                                               \
    if (of.pack) offered[count].pack = pack_##of;                                                                      \
    if (of.pack_tensors) offered[count].pack_tensors = pack_tensors_##of;                                              \
    if (of.describe) offered[count].describe = describe_##of;                                                          \
    table[count] = &offered[count];                                                                                    \
    count++;

static void offer_all(void) {
    int count = 0;
    CPU_CANDIDATES(OFFER)
}

const scout_candidate *const *cpu_small_candidates(uint32_t *count) {
    (void)pthread_once(&once, offer_all);
    *count = COUNT;
    return table;
}
