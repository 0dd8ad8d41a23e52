/* Rows of a table copied by all threads; a row some steps ahead is prefetched. No library here has such a call, so this
 * is the baseline. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/embedding.h"

enum { AHEAD = 4, LINE = 64 };

struct scout_plan {
    embedding_problem p;
    int64_t bytes; /* of a row */
};

/* Long rows are shared as well as many: a share is a range of the output's bytes, cut at lines of the cache. */
static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const embedding_problem *p = &j->plan->p;
    const int64_t bytes = j->plan->bytes, all = p->rows * bytes;
    const char *table = j->args->tensors[EMBEDDING_TABLE];
    const void *indices = j->args->tensors[EMBEDDING_INDICES];
    char *out = j->args->tensors[EMBEDDING_OUT];
    int64_t from, to;
    cpu_team_share((all + LINE - 1) / LINE, thread, threads, &from, &to);
    from *= LINE;
    to = to * LINE < all ? to * LINE : all;
    while (from < to) {
        const int64_t row = from / bytes, at = from % bytes, left = bytes - at,
                      here = to - from < left ? to - from : left;
        if (row + AHEAD < p->rows)
            __builtin_prefetch(table + embedding_index(p->index_type, indices, row + AHEAD) * bytes);
        memcpy(out + from, table + embedding_index(p->index_type, indices, row) * bytes + at, (size_t)here);
        from += here;
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op_number(op, "block_size", 0) > 0)
        return scout_say(why, SCOUT_NO, "feature", "blocks are the work of embedding_blocks");
    if (cpu_number_bits(op->tensors[EMBEDDING_TABLE].type) >= 8) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "copies types of whole bytes");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->p = embedding_problem_of(op);
    plan->bytes = plan->p.cols * cpu_number_bits(plan->p.type) / 8;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"rows\", \"row_bytes\": %lld, \"threads\": \"%s\"}",
                    (long long)plan->bytes, cpu_team_about());
}

const scout_candidate cpu_embedding_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_EMBEDDING,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "embedding_rows",
    .about = "rows of a table, copied by all threads",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
