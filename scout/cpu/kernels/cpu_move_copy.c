/* Moves by own loops, on all threads: pieces are copied row by row where rows are contiguous on both sides, in square
 * tiles for transposes, else element by element; gathers copy what an index names; triangles keep a part of each row;
 * casts convert rows. The baseline wherever oneDNN has no reorder for it. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/move.h"

#include <math.h>
#include <stdlib.h>

enum { TILE = 32, ROW_BYTES = 1 << 15, BLOCK = 512 };

struct scout_plan {
    const scout_op *op; /* borrowed, as long as the plan lives */
    move_piece pieces[SCOUT_MAX_TENSORS];
    int count; /* 0: none, `rest` does it */
    int64_t size;
    cpu_team_work *rest;
    int64_t *counts;    /* of nonzero: what each thread found */
    const char *kernel; /* its name */
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

#define PICK_LOOP(type)                                                                                                \
    for (int64_t k = 0; k < count; k++)                                                                                \
        ((type *)to)[k] =                                                                                              \
            ((const type *)                                                                                            \
                 from)[(wide ? ((const int64_t *)indices)[at + k] : ((const int32_t *)indices)[at + k]) * step +       \
                       k * each];                                                                                      \
    break

/* Element k of a row lies at its index * step + k * each. */
static void pick_row(int64_t size, const char *from, const void *indices, bool wide, int64_t at, int64_t step,
                     int64_t each, int64_t count, char *to) {
    switch (size) {
    case 1: PICK_LOOP(uint8_t);
    case 2: PICK_LOOP(uint16_t);
    case 4: PICK_LOOP(uint32_t);
    default: PICK_LOOP(uint64_t);
    }
}

static void elements_share(void *context, int thread, int threads) {
    const job *j = context;
    const move_elements e = move_elements_of(j->plan->op);
    const int64_t size = j->plan->size, count = e.dims[e.rank - 1];
    const bool along = e.axis == e.rank - 1;
    int64_t rows = 1, from, to;
    for (int d = 0; d < e.rank - 1; d++) rows *= e.dims[d];
    cpu_team_share(rows, thread, threads, &from, &to);
    for (int64_t row = from; row < to; row++) {
        int64_t rest = row, at = 0;
        for (int d = e.rank - 2; d >= 0; d--) {
            if (d != e.axis) at += rest % e.dims[d] * e.strides[d];
            rest /= e.dims[d];
        }
        pick_row(size, (const char *)j->args->tensors[0] + at * size, j->args->tensors[1], e.index_type == SCOUT_INT64,
                 row * count, e.strides[e.axis], along ? 0 : 1, count,
                 (char *)j->args->tensors[2] + row * count * size);
    }
}

static void triangle_share(void *context, int thread, int threads) {
    const job *j = context;
    const move_triangle t = move_triangle_of(j->plan->op);
    const int64_t size = j->plan->size, line = t.cols * size;
    const char *x = j->args->tensors[0];
    char *y = j->args->tensors[1];
    int64_t from, to, first, last;
    cpu_team_share(op_elements(&j->plan->op->tensors[1]) / t.cols, thread, threads, &from, &to);
    for (int64_t row = from; row < to; row++) {
        move_triangle_row(&t, row % t.rows, &first, &last);
        memset(y + row * line, 0, (size_t)(first * size));
        memcpy(y + row * line + first * size, x + row * line + first * size, (size_t)((last - first) * size));
        memset(y + row * line + last * size, 0, (size_t)((t.cols - last) * size));
    }
}

#define EDGE_LOOP(type)                                                                                                \
    for (int64_t j = from; j < to; j++)                                                                                \
        ((type *)row)[j] = ((const type *)source)[move_copied(how, j - before, length)];                               \
    break

/* Elements of a row that lie beyond the input. */
static void copy_edge(int64_t size, move_beyond how, const char *source, int64_t length, int64_t before, int64_t from,
                      int64_t to, char *row) {
    switch (size) {
    case 1: EDGE_LOOP(uint8_t);
    case 2: EDGE_LOOP(uint16_t);
    case 4: EDGE_LOOP(uint32_t);
    default: EDGE_LOOP(uint64_t);
    }
}

static void edges_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_op *op = j->plan->op;
    const scout_tensor *x = &op->tensors[0], *y = &op->tensors[1];
    const move_beyond how = move_beyond_of(op);
    const int last = (int)y->rank - 1;
    const int64_t size = j->plan->size, length = x->dims[last], cols = y->dims[last], before = move_before(op, last);
    int64_t from, to;
    cpu_team_share(op_elements(y) / cols, thread, threads, &from, &to);
    for (int64_t line = from; line < to; line++) {
        int64_t rest = line, at = 0;
        for (int d = last - 1; d >= 0; rest /= y->dims[d], d--)
            at += move_copied(how, rest % y->dims[d] - move_before(op, d), x->dims[d]) * x->strides[d];
        const char *source = (const char *)j->args->tensors[0] + at * size;
        char *row = (char *)j->args->tensors[1] + line * cols * size;
        copy_edge(size, how, source, length, before, 0, before, row);
        memcpy(row + before * size, source, (size_t)(length * size));
        copy_edge(size, how, source, length, before, before + length, cols, row);
    }
}

FAST static void cast_floats(uint32_t from_type, const char *from, uint32_t to_type, char *to, int64_t count) {
    float row[BLOCK];
    cpu_convert_load(from_type, from, count, row);
    cpu_convert_store(to_type, row, count, to);
}

/* Floats to bytes: the fraction is cut off, and what is beyond the range becomes its end. */
FAST static void cast_bytes(uint32_t from_type, const char *from, uint32_t to_type, char *to, int64_t count) {
    const float low = to_type == SCOUT_INT8 ? -128.0f : 0.0f, high = low + 255.0f;
    float row[BLOCK];
    cpu_convert_load(from_type, from, count, row);
    for (int64_t k = 0; k < count; k++) {
        const float x = row[k] < low ? low : row[k] > high ? high : row[k];
        to[k] = (char)(int32_t)x;
    }
}

#define CUT_LOOP(wide, narrow)                                                                                         \
    for (int64_t k = 0; k < count; k++) ((narrow *)to)[k] = (narrow)((const wide *)from)[k];                           \
    return

/* Whole numbers that lose their upper bits. */
FAST static void cut_off(bool wide, const char *from, int64_t to_size, char *to, int64_t count) {
    if (wide && to_size == 4) {
        CUT_LOOP(uint64_t, uint32_t);
    } else if (wide) {
        CUT_LOOP(uint64_t, uint8_t);
    } else {
        CUT_LOOP(uint32_t, uint8_t);
    }
}

static bool is_cut_off(uint32_t from, uint32_t to) {
    const bool byte = to == SCOUT_INT8 || to == SCOUT_UINT8;
    return (from == SCOUT_INT64 && (byte || to == SCOUT_INT32)) || (from == SCOUT_INT32 && byte);
}

/* To a byte of the other sign the bits stay. */
static bool is_same_bits(uint32_t from, uint32_t to) {
    return (from == SCOUT_INT8 && to == SCOUT_UINT8) || (from == SCOUT_UINT8 && to == SCOUT_INT8);
}

static void cast_any(uint32_t from_type, const char *from, uint32_t to_type, char *to, int64_t count) {
    const bool whole = cpu_number_whole(to_type) && to_type != SCOUT_BOOL;
    double row[BLOCK];
    cpu_number_load(from_type, from, 0, 1, count, row);
    for (int64_t k = 0; k < count; k++) cpu_number_store(to_type, to, k, whole ? trunc(row[k]) : row[k]);
}

static void cast_powers(uint32_t from_type, const char *from, uint32_t up, char *to, int64_t count) {
    double row[BLOCK];
    cpu_number_load(from_type, from, 0, 1, count, row);
    for (int64_t k = 0; k < count; k++) to[k] = (char)cpu_number_to_fp8e8m0((float)row[k], up);
}

/* Whole numbers of a byte or less to fewer bits: the lower ones stay. */
static void cut_bits(uint32_t from_type, const char *from, uint32_t to_type, char *to, int64_t count) {
    const int bits = cpu_number_bits(to_type);
    const bool is_signed = to_type == SCOUT_INT8 || to_type == SCOUT_INT4 || to_type == SCOUT_INT2;
    const int half = is_signed ? 1 << (bits - 1) : 0, mask = (1 << bits) - 1;
    double row[BLOCK];
    cpu_number_load(from_type, from, 0, 1, count, row);
    for (int64_t k = 0; k < count; k++) cpu_number_store(to_type, to, k, (((int)row[k] & mask) ^ half) - half);
}

static void cast_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_tensor *x = &j->plan->op->tensors[0], *y = &j->plan->op->tensors[1];
    const int64_t count = op_elements(x), from_bits = cpu_number_bits(x->type), to_bits = cpu_number_bits(y->type);
    const bool floats = cpu_convert_known(x->type) && cpu_convert_known(y->type);
    int64_t from, to;
    cpu_team_share((count + BLOCK - 1) / BLOCK, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t at = k * BLOCK, here = count - at < BLOCK ? count - at : BLOCK;
        const char *source = (const char *)j->args->tensors[0] + at / 8 * from_bits;
        char *target = (char *)j->args->tensors[1] + at / 8 * to_bits;
        if (floats)
            cast_floats(x->type, source, y->type, target, here);
        else if (cpu_convert_known(x->type) && (y->type == SCOUT_INT8 || y->type == SCOUT_UINT8))
            cast_bytes(x->type, source, y->type, target, here);
        else if (is_cut_off(x->type, y->type))
            cut_off(x->type == SCOUT_INT64, source, to_bits / 8, target, here);
        else if (is_same_bits(x->type, y->type))
            memcpy(target, source, (size_t)here);
        else if (y->type == SCOUT_FP8E8M0)
            cast_powers(x->type, source, (uint32_t)move_power_up(j->plan->op), target, here);
        else if (move_is_narrow(x->type) + move_is_narrow(y->type) > 0 && cpu_number_whole(x->type) &&
                 cpu_number_whole(y->type))
            cut_bits(x->type, source, y->type, target, here);
        else
            cast_any(x->type, source, y->type, target, here);
    }
}

/* --- places of marks, and marks at places --- */

/* Elements of the input from one on that are not zero, up to a block of them. */
static int64_t load_marks(const job *j, int64_t from, int64_t to, double *row) {
    const scout_tensor *x = &j->plan->op->tensors[0];
    const int64_t here = to - from < BLOCK ? to - from : BLOCK;
    cpu_number_load(x->type, j->args->tensors[0], from, 1, here, row);
    return here;
}

static void count_share(void *context, int thread, int threads) {
    const job *j = context;
    double row[BLOCK];
    int64_t from, to, found = 0;
    cpu_team_share(op_elements(&j->plan->op->tensors[0]), thread, threads, &from, &to);
    for (int64_t here; from < to; from += here) {
        here = load_marks(j, from, to, row);
        for (int64_t k = 0; k < here; k++) found += row[k] != 0;
    }
    j->plan->counts[thread] = found;
}

static void places_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_tensor *x = &j->plan->op->tensors[0];
    const int64_t all = op_elements(x);
    int64_t *y = j->args->tensors[1], from, to, at = 0;
    double row[BLOCK];
    for (int t = 0; t < thread; t++) at += j->plan->counts[t];
    cpu_team_share(all, thread, threads, &from, &to);
    for (int64_t here; from < to; from += here) {
        here = load_marks(j, from, to, row);
        for (int64_t k = 0; k < here; k++) {
            if (row[k] == 0) continue;
            int64_t rest = from + k;
            for (int d = (int)x->rank - 1; d >= 0; rest /= x->dims[d], d--) y[d * all + at] = rest % x->dims[d];
            at++;
        }
    }
    if (thread < threads - 1) return;
    for (uint32_t d = 0; d < x->rank; d++) memset(y + d * all + at, 0, (size_t)(all - at) * sizeof *y);
}

static void marks_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_tensor *x = &j->plan->op->tensors[0], *y = &j->plan->op->tensors[1];
    const int axis = (int)op_number(j->plan->op, "axis", 0);
    const int64_t depth = y->dims[axis], inner = y->strides[axis];
    int64_t from, to;
    cpu_team_share(op_elements(x) / inner, thread, threads, &from, &to);
    const int64_t size = cpu_number_bits(y->type) / 8;
    memset((char *)j->args->tensors[1] + from * depth * inner * size, 0, (size_t)((to - from) * depth * inner * size));
    for (int64_t k = from * inner; k < to * inner; k++) {
        double index;
        cpu_number_load(x->type, j->args->tensors[0], k, 1, 1, &index);
        if (index < 0) index += (double)depth;             /* from the end */
        if (index < 0 || index >= (double)depth) continue; /* no mark */
        cpu_number_store(y->type, j->args->tensors[1], (k / inner * depth + (int64_t)index) * inner + k % inner, 1);
    }
}

/* --- the candidate --- */

static const struct {
    const char *what;
    cpu_team_work *work;
    const char *kernel;
} rests[] = {{"gather", gather_share, "gather"},
             {"gathernd", gather_share, "gather"},
             {"gatherelements", elements_share, "elements"},
             {"trilu", triangle_share, "triangle"},
             {"pad", edges_share, "edges"},
             {"nonzero", places_share, "places"},
             {"onehot", marks_share, "marks"},
             {"cast", cast_share, "cast"}};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    for (uint32_t k = 0; k < op->tensor_count; k++)
        if (cpu_number_bits(op->tensors[k].type) < 8 && !op_is(op, "cast"))
            return scout_say(why, SCOUT_NO, "type", "moves types of whole bytes, but for casts");
    if (move_scatters(op)) return scout_say(why, SCOUT_NO, "feature", "scatters are not its work");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs;
    plan->op = op;
    if (op_is(op, "nonzero") && !(plan->counts = calloc((size_t)cpu_team_size(), sizeof *plan->counts)))
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    plan->size = cpu_number_bits(op->tensors[0].type) / 8;
    plan->count = move_pieces(op, plan->pieces);
    plan->kernel = "copy";
    for (size_t k = 0; plan->count == 0 && k < sizeof rests / sizeof rests[0]; k++)
        if (op_is(op, rests[k].what)) plan->rest = rests[k].work, plan->kernel = rests[k].kernel;
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
        if (plan->counts) cpu_team_run(count_share, &j);
        cpu_team_run(plan->rest, &j);
    }
    for (int k = 0; k < plan->count; k++) {
        job j = {plan, args, &plan->pieces[k]};
        if (op_is(plan->op, "pad")) cpu_team_run(zero_share, &j);
        cpu_team_run(piece_share, &j);
    }
    return SCOUT_OK;
}

static void destroy(scout_plan *plan) { free(plan->counts); }

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"%s\", \"pieces\": %d, \"threads\": \"%s\"}", plan->kernel, plan->count,
                    cpu_team_about());
}

const scout_candidate cpu_move_copy = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_MOVE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "move_copy",
    .about = "copies, transposes, gathers, triangles and casts by own loops",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
