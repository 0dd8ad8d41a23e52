/* gather_rows and gather_blocks as candidates of embeddings: a table of any type of whole bytes, or of few bits with
 * scales for blocks. */
#include "scout/cuda/own/own.h"
#include "scout/op/embedding.h"

struct scout_plan {
    gather_rows rows;
    gather_blocks blocks;
    int zeros; /* tensor; -1: none */
};

static gather_rows rows_of(const scout_op *op) {
    const embedding_problem p = embedding_problem_of(op);
    return (gather_rows){.outer = 1,
                         .length = p.table,
                         .count = p.rows,
                         .row_bytes = p.cols * own_pass_size(&op->tensors[EMBEDDING_TABLE]),
                         .parts = 1,
                         .lengths = {p.table},
                         .index_type = (int)p.index_type};
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gather_rows rows = rows_of(op);
    (void)device;
    if (op_number(op, "block_size", 0) > 0)
        return scout_say(why, SCOUT_NO, "feature", "blocks are the work of embedding_blocks");
    if (gather_rows_fits(&rows)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "gather_rows copies rows of whole bytes, by indices of int32 or int64");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs, (void)why;
    scout_plan *const p = *out;
    p->rows = rows_of(op);
    p->rows.config = own_pass_config(values);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error =
        gather_rows_launch(&plan->rows, t[EMBEDDING_TABLE], t[EMBEDDING_INDICES], t[EMBEDDING_OUT], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gather_rows", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"gather_rows\",\"row_bytes\":%lld,\"piece\":%d,\"threads\":%d}",
                    (long long)plan->rows.row_bytes, gather_rows_width(&plan->rows), plan->rows.config.threads);
}

const scout_candidate own_embedding = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_EMBEDDING,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "embedding_rows",
    .about = "own kernel, rows of a table in wide pieces; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .domain = own_pass_domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};

/* ---- few bits ---- */

static gather_blocks blocks_of(const scout_op *op) {
    const embedding_problem p = embedding_problem_of(op);
    return (gather_blocks){.rows = p.rows,
                           .cols = p.cols,
                           .block = p.block,
                           .from = (int)p.type,
                           .to = (int)p.out_type,
                           .index_type = (int)p.index_type};
}

static scout_answer supports_blocks(const scout_op *op, scout_device *device, scout_why *why) {
    const gather_blocks blocks = blocks_of(op);
    (void)device;
    if (gather_blocks_fits(&blocks)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "gather_blocks takes tables of 4 or 8 bits with scales for blocks");
}

static scout_answer prepare_blocks(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                                   scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs, (void)why;
    scout_plan *const p = *out;
    p->blocks = blocks_of(op);
    p->blocks.config = own_pass_config(values);
    p->zeros = op_tensor(op, "zero_points");
    return SCOUT_OK;
}

static scout_answer launch_blocks(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = gather_blocks_launch(&plan->blocks, t[EMBEDDING_TABLE], t[EMBEDDING_INDICES], t[EMBEDDING_SCALES],
                                           plan->zeros < 0 ? NULL : t[plan->zeros], t[EMBEDDING_OUT], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gather_blocks", why) : SCOUT_OK;
}

static int describe_blocks(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"gather_blocks\",\"block\":%lld,\"threads\":%d}",
                    (long long)plan->blocks.block, plan->blocks.config.threads);
}

const scout_candidate own_embedding_blocks = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_EMBEDDING,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "embedding_blocks",
    .about = "own kernel, rows of few bits widened by their blocks' scales; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports_blocks,
    .domain = own_pass_domain,
    .prepare = prepare_blocks,
    .launch = launch_blocks,
    .describe = describe_blocks,
    .plan_bytes = sizeof(scout_plan),
};
