/* Rotary embeddings that make their angles by themselves. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

enum { INPUT, POSITIONS, COSINE, SINE, STREAMS = 3, STREAMS_RANK = 3 };

/* Which columns of the angles belong to which stream of positions: one stream's stand together in `order`. */
typedef struct sections {
    int64_t sizes[STREAMS], half, *order, *back;
    bool scattered;
} sections;

static int stream_of(const sections *s, int64_t column) {
    const int64_t turn = column % STREAMS;
    if (s->scattered) return turn != 0 && column < checked_mul(s->sizes[turn], STREAMS) ? (int)turn : 0;
    return column < s->sizes[0] ? 0 : column < checked_add(s->sizes[0], s->sizes[1]) ? 1 : 2;
}

static sections read_sections(expansion *x) {
    const attr *told = graph_attr(x->n, "mrope_section", ATTR_INTS);
    arena *const a = x->e->m->arena;
    sections s = {.half = tensor_dim(part_in(x, COSINE), 1), .scattered = graph_attr_int(x->n, "mrope_layout", 0) != 0};
    int64_t all = 0, count = 0;
    if (!told || told->n != STREAMS || !told->ints || s.half < 1 || s.half > INFO_MAX_VALUES) x->failed = true;
    for (int k = 0; k < STREAMS && !x->failed; k++) {
        if (told->ints[k] < 0) x->failed = true;
        s.sizes[k] = told->ints[k];
        all = checked_add(all, s.sizes[k]);
    }
    if (all != s.half) x->failed = true;
    if (x->failed) return s;
    s.order = arena_array(a, int64_t, s.half);
    s.back = arena_array(a, int64_t, s.half);
    for (int k = 0; k < STREAMS; k++) {
        const int64_t before = count;
        for (int64_t column = 0; column < s.half; column++)
            if (stream_of(&s, column) == k) {
                s.order[count] = column;
                s.back[column] = count++;
            }
        s.sizes[k] = count - before;
    }
    return s;
}

static tensor *columns(expansion *x, const sections *s, tensor *t, int axis, const int64_t *order) {
    if (!s->scattered) return t;
    return *part_make(x, &(step){.op_type = "Gather",
                                 .in = {t, part_numbers(x, "columns", s->half, order)},
                                 .attrs = {int_attr("axis", axis)}});
}

/* Angles of each token, by the positions of the stream that each column belongs to. */
static tensor *angles(expansion *x, const sections *s, tensor *table, tensor *const places[STREAMS]) {
    int64_t sizes[STREAMS];
    int used[STREAMS], count = 0;
    for (int k = 0; k < STREAMS; k++)
        if (s->sizes[k] > 0) {
            sizes[count] = s->sizes[k];
            used[count++] = k;
        }
    tensor *const all = columns(x, s, table, 1, s->order);
    tensor *const *parts = count > 1 ? part_split(x, all, 1, count, sizes) : &all;
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", 2)}};
    for (int k = 0; k < count && !x->failed; k++) joined.in[k] = part_do(x, "Gather", parts[k], places[used[k]]);
    return columns(x, s, count > 1 ? *part_make(x, &joined) : joined.in[0], 2, s->back);
}

void take_streams_rotary(expansion *x) {
    static const int64_t ones[STREAMS] = {1, 1, 1};
    tensor *const in = part_in(x, INPUT), *const positions = part_in(x, POSITIONS);
    const sections s = read_sections(x);
    const int64_t rotated = checked_mul(2, s.half), told = graph_attr_int(x->n, "num_heads", 0);
    const bool plain = graph_attr_float(x->n, "scale", 1) == 1 && graph_attr_int(x->n, "is_packed_batching", 0) == 0;
    if (!plain || tensor_rank(positions) != STREAMS_RANK || tensor_dim(positions, 0) != STREAMS) x->failed = true;
    if (x->failed) return;
    tensor *places[STREAMS], *const *each = part_split(x, positions, 0, STREAMS, ones);
    for (int k = 0; k < STREAMS; k++) places[k] = part_reshaped(x, each[k], 2, positions->info->dims + 1);
    tensor *const cosine = angles(x, &s, part_in(x, COSINE), places), *const sine =
                                                                          angles(x, &s, part_in(x, SINE), places);
    const int64_t heads = told > 0 ? told : tensor_dim(in, -1) / rotated;
    const int64_t size = tensor_rank(in) == 3 && heads > 0 ? tensor_dim(in, -1) / heads : tensor_dim(in, -1);
    part_end(x, &(step){.op_type = "RotaryEmbedding",
                        .in = {in, cosine, sine},
                        .attrs = {int_attr("num_heads", heads),
                                  int_attr("interleaved", graph_attr_int(x->n, "interleaved", 0)),
                                  int_attr("rotary_embedding_dim", rotated < size ? rotated : 0)}});
}

/* The angles come as numbers, and what stands across from each number comes with it. */
void take_gemma_rotary(expansion *x) {
    enum { ANGLES, OWN, ACROSS, RANK = 4 }; /* of keys the same, two inputs further on */
    tensor *const told = part_in(x, ANGLES), *const query = part_in(x, OWN);
    static const char *const functions[] = {"Cos", "Sin"};
    tensor *factors[2], *sums[2];
    if (tensor_rank(told) != 3 || !query) x->failed = true;
    if (x->failed) return;
    const int64_t dims[RANK] = {tensor_dim(told, 0), 1, tensor_dim(told, 1), tensor_dim(told, 2)};
    for (int k = 0; k < 2; k++) {
        factors[k] = part_reshaped(x, part_do(x, functions[k], told, NULL), RANK, dims);
        if (told->info->type != query->info->type) factors[k] = part_cast(x, factors[k], query->info->type);
    }
    for (int k = 1; k >= 0; k--) { /* the query's is the last part */
        tensor *const own = part_do(x, "Mul", part_in(x, OWN + 2 * k), factors[0]);
        tensor *const across = part_do(x, "Mul", part_in(x, ACROSS + 2 * k), factors[1]);
        sums[k] = part_do(x, "Add", own, across);
    }
    part_end_made(x);
    part_give(x, 1, sums[1]);
}
