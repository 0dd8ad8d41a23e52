/* Rotates pairs row by row on all threads, in fp32 for every type. No library here has such a call, so this is the
 * baseline. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/rotary.h"

typedef void turn_kernel(const rotary_problem *p, const char *x, const char *cosine, const char *sine, char *y,
                         float *room);

struct scout_plan {
    rotary_problem p;
    turn_kernel *turn;
};

/* `room`: three rows. What is not rotated is copied. */
FAST_BODY void turn_body(const rotary_problem *p, const char *x, const char *cosine, const char *sine, char *y,
                         float *room) {
    const int64_t half = p->rotated / 2, dim = p->dim;
    float *const from = room, *const c = room + dim, *const s = room + 2 * dim;
    cpu_convert_load(p->type, x, dim, from);
    cpu_convert_load(p->type, cosine, p->angles, c);
    cpu_convert_load(p->type, sine, p->angles, s);
    const bool each = p->angles > half; /* of neighbours' angles the second lies beside the first too */
    const float *const c2 = each && !p->interleaved ? c + half : c, *const s2 = each && !p->interleaved ? s + half : s;
    for (int64_t i = 0; !p->interleaved && i < half; i++) {
        const float first = from[i], second = from[i + half];
        from[i] = first * c[i] - second * s[i];
        from[i + half] = second * c2[i] + first * s2[i];
    }
    for (int64_t i = 0; p->interleaved && i < half; i++) {
        const int64_t a = each ? 2 * i : i, b = a + each;
        const float first = from[2 * i], second = from[2 * i + 1];
        from[2 * i] = first * c[a] - second * s[a];
        from[2 * i + 1] = second * c[b] + first * s[b];
    }
    cpu_convert_store(p->type, from, dim, y);
}

FAST_WIDTHS(turn, (const rotary_problem *p, const char *x, const char *c, const char *s, char *y, float *room),
            (p, x, c, s, y, room))

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const rotary_problem *p = &j->plan->p;
    const int64_t size = cpu_convert_size(p->type), angles = p->angles * size, bytes = p->dim * size;
    const char *x = j->args->tensors[ROTARY_X];
    const char *cosine = j->args->tensors[ROTARY_COS], *sine = j->args->tensors[ROTARY_SIN];
    char *y = j->args->tensors[ROTARY_Y];
    float *room = (float *)j->args->workspace + thread * 3 * p->dim;
    int64_t from, to;
    cpu_team_share(p->batch * p->heads * p->steps, thread, threads, &from, &to);
    for (int64_t row = from; row < to; row++) {
        const int64_t step = rotary_step(p, row);
        j->plan->turn(p, x + row * bytes, cosine + step * angles, sine + step * angles, y + row * bytes, room);
    }
}

static double workspace_bytes(const scout_op *op) { return (double)cpu_team_size() * 12 * (double)op->shape[3]; }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!cpu_convert_known(op->input)) return scout_say(why, SCOUT_NO, "type", "takes fp32, fp16 and bf16");
    if (workspace_bytes(op) <= (double)op->workspace_limit) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "three rows a thread do not fit into the workspace");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const cpu_info *c = cpu_info_get();
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)why;
    plan->p = rotary_problem_of(op);
    plan->turn = FAST_WIDEST(turn, c);
    needs->workspace_bytes = (uint64_t)workspace_bytes(op);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"rows\", \"pairs\": \"%s\", \"threads\": \"%s\"}",
                    plan->p.interleaved ? "neighbours" : "halves", cpu_team_about());
}

const scout_candidate cpu_rotary_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ROTARY,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "rotary_rows",
    .about = "rotates pairs row by row, by all threads",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
