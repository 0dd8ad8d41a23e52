/* Rows of a table of few bits, looked up and widened by all threads, with a scale for each block of columns. No library
 * here has such a call, so this is the baseline. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/embedding.h"

enum { PIECE = 512 }; /* columns; even, so that a piece of nibbles begins with a byte */

/* What a thread widens a piece in: its columns, and the scales and zero points of its blocks. */
typedef struct piece {
    float row[PIECE], scales[PIECE], zeros[PIECE];
} piece;

/* `count` columns of a row, from column `at` on. */
typedef void piece_kernel(const embedding_problem *p, const uint8_t *table, int64_t at, int64_t count, piece *of,
                          char *out);

struct scout_plan {
    embedding_problem p;
    piece_kernel *kernel;
};

/* The lower nibble first. With a sign the highest bit counts backward. */
FAST_BODY void piece_codes(const embedding_problem *p, const uint8_t *table, int64_t at, int64_t count, float *to) {
    const int bits = p->type == SCOUT_INT4 || p->type == SCOUT_UINT4 ? 4 : 8;
    const int sign = p->type == SCOUT_INT4 || p->type == SCOUT_INT8 ? 1 << (bits - 1) : 0;
    if (bits == 8)
        for (int64_t k = 0; k < count; k++) to[k] = (float)((table[at + k] ^ sign) - sign);
    else
        for (int64_t k = 0; k < count; k += 2) {
            const int both = table[(at + k) / 2];
            to[k] = (float)(((both & 15) ^ sign) - sign);
            to[k + 1] = (float)((both >> 4 ^ sign) - sign);
        }
}

FAST_BODY void piece_body(const embedding_problem *p, const uint8_t *table, int64_t at, int64_t count, piece *of,
                          char *out) {
    piece_codes(p, table, at, count, of->row);
    for (int64_t k = 0; k < count;) {
        const int64_t block = (at + k) / p->block, end = (block + 1) * p->block - at, to = end < count ? end : count;
        const float scale = of->scales[block - at / p->block], zero = of->zeros[block - at / p->block];
        for (; k < to; k++) of->row[k] = (of->row[k] - zero) * scale;
    }
    cpu_convert_store(p->out_type, of->row, count, out);
}

FAST_WIDTHS(piece, (const embedding_problem *p, const uint8_t *table, int64_t at, int64_t count, piece *of, char *out),
            (p, table, at, count, of, out))

static void load_sides(const cpu_job *j, int64_t row, int64_t at, int64_t count, piece *to) {
    const embedding_problem *p = &j->plan->p;
    const int64_t first = at / p->block, sides = (at + count - 1) / p->block - first + 1;
    double x[PIECE];
    cpu_number_load(p->out_type, j->args->tensors[EMBEDDING_SCALES], row * p->blocks + first, 1, sides, x);
    for (int64_t k = 0; k < sides; k++) to->scales[k] = (float)x[k], to->zeros[k] = 0;
    if (p->zeros < 0) return;
    cpu_number_load(p->type, j->args->tensors[p->zeros], row * p->blocks + first, 1, sides, x);
    for (int64_t k = 0; k < sides; k++) to->zeros[k] = (float)x[k];
}

/* Long rows are shared as well as many: a unit is a piece of a row. */
static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const embedding_problem *p = &j->plan->p;
    const int64_t pieces = (p->cols + PIECE - 1) / PIECE, bytes = p->cols * cpu_number_bits(p->type) / 8;
    const int64_t size = cpu_convert_size(p->out_type);
    piece of = {{0}, {0}, {0}};
    int64_t from, to;
    cpu_team_share(p->rows * pieces, thread, threads, &from, &to);
    for (int64_t unit = from; unit < to; unit++) {
        const int64_t k = unit / pieces, at = unit % pieces * PIECE;
        const int64_t row = embedding_index(p->index_type, j->args->tensors[EMBEDDING_INDICES], k);
        const int64_t count = p->cols - at < PIECE ? p->cols - at : PIECE;
        load_sides(j, row, at, count, &of);
        j->plan->kernel(p, (const uint8_t *)j->args->tensors[EMBEDDING_TABLE] + row * bytes, at, count, &of,
                        (char *)j->args->tensors[EMBEDDING_OUT] + (k * p->cols + at) * size);
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op_number(op, "block_size", 0) > 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "rows that are copied are the work of embedding_rows");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->p = embedding_problem_of(op);
    plan->kernel = FAST_WIDEST(piece, cpu_info_get());
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"blocks\", \"block\": %lld, \"threads\": \"%s\"}",
                    (long long)plan->p.block, cpu_team_about());
}

const scout_candidate cpu_embedding_blocks = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_EMBEDDING,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "embedding_blocks",
    .about = "rows of a table of 4 or 8 bits with scales for blocks, widened by all threads",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
