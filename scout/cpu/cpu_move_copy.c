/* Moves by loops of the project, on all threads: pieces are copied row by row where rows lie together on both sides,
 * in square tiles where they are turned, else element by element; gathers copy what an index names; casts convert rows.
 * The baseline wherever oneDNN has no reorder for it. */
#include "scout/cpu/cpu_candidates.h"
#include "scout/cpu/cpu_convert.h"
#include "scout/cpu/cpu_number.h"
#include "scout/cpu/cpu_team.h"
#include "scout/move.h"

#include <math.h>
#include <stdlib.h>

enum { TILE = 32, ROW_BYTES = 1 << 15, BLOCK = 512 };

struct scout_plan {
    const scout_op *op; /* borrowed, as long as the plan lives */
    move_piece pieces[SCOUT_MAX_TENSORS];
    int count; /* 0: a gather or a cast */
    int64_t size;
    bool gathers;
};

typedef struct job {
    const scout_plan *plan;
    const scout_args *args;
    const move_piece *piece;
} job;

/* --- pieces --- */

#define COPY_LOOP(type)                                                                                                \
    for (int64_t j = 0; j < rows; j++)                                                                                 \
        for (int64_t i = 0; i < cols; i++)                                                                             \
            ((type *)to)[j * to_row + i * to_col] = ((const type *)from)[j * from_row + i * from_col];                 \
    break

/* Rows and columns with any steps; where all columns are next to each other the compiler makes vectors of it. */
FAST static void copy_block(int64_t size, const char *from, int64_t from_row, int64_t from_col, char *to,
                            int64_t to_row, int64_t to_col, int64_t rows, int64_t cols) {
    switch (size) {
    case 1: COPY_LOOP(uint8_t);
    case 2: COPY_LOOP(uint16_t);
    case 4: COPY_LOOP(uint32_t);
    default: COPY_LOOP(uint64_t);
    }
}

/* How a piece is cut into units of work: along its last dimension, and along `across`, where reading goes on. */
typedef struct cutting {
    int64_t last, last_part, across_count, across_part, units;
    int across; /* -1: reading and writing go on along the same dimension */
} cutting;

static cutting cut(const move_piece *p, int64_t size) {
    cutting c = {.last = p->dims[p->rank - 1], .across = -1, .across_count = 1, .across_part = 1};
    const bool straight = p->from_strides[p->rank - 1] <= 1 && p->to_strides[p->rank - 1] == 1;
    for (int d = 0; d < p->rank - 1 && !straight; d++)
        if (p->from_strides[d] == 1) c.across = d;
    c.last_part = c.across >= 0 ? TILE : ROW_BYTES / size;
    if (c.across >= 0) c.across_count = p->dims[c.across], c.across_part = TILE;
    c.units = (c.last + c.last_part - 1) / c.last_part * ((c.across_count + c.across_part - 1) / c.across_part);
    for (int d = 0; d < p->rank - 1; d++)
        if (d != c.across) c.units *= p->dims[d];
    return c;
}

static void copy_unit(const job *j, const cutting *c, int64_t unit) {
    const move_piece *p = j->piece;
    const int last = p->rank - 1;
    const int64_t size = j->plan->size, cols = (c->last + c->last_part - 1) / c->last_part;
    const int64_t rows = (c->across_count + c->across_part - 1) / c->across_part;
    const int64_t col = unit % cols * c->last_part, row = unit / cols % rows * c->across_part;
    int64_t rest = unit / cols / rows, from = p->from_at + col * p->from_strides[last],
            to = p->to_at + col * p->to_strides[last];
    if (c->across >= 0) from += row * p->from_strides[c->across], to += row * p->to_strides[c->across];
    for (int d = last - 1; d >= 0; d--) {
        if (d == c->across) continue;
        from += rest % p->dims[d] * p->from_strides[d], to += rest % p->dims[d] * p->to_strides[d];
        rest /= p->dims[d];
    }
    const char *source = (const char *)j->args->tensors[p->from] + from * size;
    char *target = (char *)j->args->tensors[p->to] + to * size;
    const int64_t wide = c->last - col < c->last_part ? c->last - col : c->last_part;
    const int64_t high = c->across_count - row < c->across_part ? c->across_count - row : c->across_part;
    if (c->across < 0 && p->from_strides[last] == 1 && p->to_strides[last] == 1)
        memcpy(target, source, (size_t)(wide * size));
    else
        copy_block(size, source, c->across >= 0 ? 1 : 0, p->from_strides[last], target,
                   c->across >= 0 ? p->to_strides[c->across] : 0, p->to_strides[last], high, wide);
}

static void piece_share(void *context, int thread, int threads) {
    const job *j = context;
    const cutting c = cut(j->piece, j->plan->size);
    int64_t from, to;
    cpu_team_share(c.units, thread, threads, &from, &to);
    for (int64_t unit = from; unit < to; unit++) copy_unit(j, &c, unit);
}

/* Of a pad: everything is zero first. */
static void zero_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_tensor *y = &j->plan->op->tensors[j->piece->to];
    int64_t from, to;
    cpu_team_share((int64_t)y->bytes, thread, threads, &from, &to);
    memset((char *)j->args->tensors[j->piece->to] + from, 0, (size_t)(to - from));
}

/* --- gathers and casts --- */

static void gather_share(void *context, int thread, int threads) {
    const job *j = context;
    const move_gather g = move_gather_of(j->plan->op);
    const int64_t bytes = g.inner * j->plan->size;
    const char *x = j->args->tensors[0];
    char *y = j->args->tensors[2];
    int64_t from, to;
    cpu_team_share(g.outer * g.count, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const char *source = x + (k / g.count * g.length + move_index(&g, j->args->tensors[1], k % g.count)) * bytes;
        memcpy(y + k * bytes, source, (size_t)bytes);
    }
}

FAST static void cast_floats(uint32_t from_type, const char *from, uint32_t to_type, char *to, int64_t count) {
    float row[BLOCK];
    cpu_convert_load(from_type, from, count, row);
    cpu_convert_store(to_type, row, count, to);
}

static void cast_any(uint32_t from_type, const char *from, uint32_t to_type, char *to, int64_t count) {
    const bool whole = to_type == SCOUT_INT32 || to_type == SCOUT_INT64;
    double row[BLOCK];
    cpu_number_load(from_type, from, 0, 1, count, row);
    for (int64_t k = 0; k < count; k++) cpu_number_store(to_type, to, k, whole ? trunc(row[k]) : row[k]);
}

static void cast_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_tensor *x = &j->plan->op->tensors[0], *y = &j->plan->op->tensors[1];
    const int64_t count = op_elements(x), from_size = cpu_number_bits(x->type) / 8,
                  to_size = cpu_number_bits(y->type) / 8;
    const bool floats = cpu_convert_known(x->type) && cpu_convert_known(y->type);
    int64_t from, to;
    cpu_team_share((count + BLOCK - 1) / BLOCK, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t at = k * BLOCK, here = count - at < BLOCK ? count - at : BLOCK;
        const char *source = (const char *)j->args->tensors[0] + at * from_size;
        char *target = (char *)j->args->tensors[1] + at * to_size;
        if (floats)
            cast_floats(x->type, source, y->type, target, here);
        else
            cast_any(x->type, source, y->type, target, here);
    }
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    for (uint32_t k = 0; k < op->tensor_count; k++)
        if (cpu_number_bits(op->tensors[k].type) < 8)
            return scout_say(why, SCOUT_NO, "type", "moves whole bytes of types that are known here");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *plan = calloc(1, sizeof *plan);
    (void)device, (void)values, (void)needs;
    *out = plan;
    if (!plan) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    plan->op = op;
    plan->size = cpu_number_bits(op->tensors[0].type) / 8;
    plan->gathers = op_is(op, "gather") || op_is(op, "gathernd");
    plan->count = move_pieces(op, plan->pieces);
    for (int k = 0; k < plan->count; k++) { /* a single element has no dimension left */
        move_piece *p = &plan->pieces[k];
        if (p->rank == 0) p->rank = 1, p->dims[0] = p->from_strides[0] = p->to_strides[0] = 1;
    }
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    if (plan->count == 0) {
        job j = {plan, args, NULL};
        cpu_team_run(plan->gathers ? gather_share : cast_share, &j);
    }
    for (int k = 0; k < plan->count; k++) {
        job j = {plan, args, &plan->pieces[k]};
        if (op_is(plan->op, "pad")) cpu_team_run(zero_share, &j);
        cpu_team_run(piece_share, &j);
    }
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"%s\", \"pieces\": %d, \"threads\": \"%s\"}",
                    plan->gathers ? "gather"
                    : plan->count ? "copy"
                                  : "cast",
                    plan->count, cpu_team_about());
}

static void destroy(scout_plan *plan) { free(plan); }

static const char *const precisions[] = {"fp32", "bf16", "fp16", "int8", NULL};

const scout_candidate cpu_move_copy = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_MOVE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "move_copy",
    .about = "copies, transposes, gathers and casts by own loops",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
