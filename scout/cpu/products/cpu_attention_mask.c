/* One pass over scores, row by row: soft cap, mask, and minus infinity for keys that a query does not see. A block mask
 * is applied as a dense mask is: all scores were computed. */

#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/products/cpu_attention_kernel.h"

enum { LINE = 1024 };

FAST static void add_line(float *x, const float *m, int64_t count) {
    for (int64_t k = 0; k < count; k++) x[k] += m[k];
}

static void add_mask(const cpu_attention_scores *s, int64_t head, int64_t query, float *x) {
    const attention_problem *p = s->p;
    const scout_tensor *m = &p->tensors[p->mask];
    const int64_t size = cpu_convert_size(m->type);
    const char *from = (const char *)s->tensors[p->mask] + attention_at(m, s->batch, head, query) * size;
    float line[LINE];
    if (m->strides[3] == 0 && p->keys > 1) return; /* the same for all keys: it changes no probability */
    for (int64_t k = 0; k < p->keys; k += LINE) {
        const int64_t count = p->keys - k < LINE ? p->keys - k : LINE;
        if (m->type != SCOUT_FP32) cpu_attention_kernel_get()->load(m->type, from + k * size, count, line);
        add_line(x + k, m->type == SCOUT_FP32 ? (const float *)(const void *)from + k : line, count);
    }
}

/* A row of blocks, which is asked for each of its queries. */
typedef struct seen_blocks {
    int64_t row; /* -1: none is known yet */
    bool seen[BLOCK_MASK_SIDE];
} seen_blocks;

static void hide_blocks(const block_mask *blocks, seen_blocks *known, int64_t query, int64_t keys, float *x) {
    const int64_t row = query / blocks->block;
    for (int64_t col = 0; known->row != row && col < blocks->cols; col++)
        known->seen[col] = block_mask_sees(blocks, row, col) != 0;
    known->row = row;
    for (int64_t col = 0; col < blocks->cols; col++) {
        const int64_t key = col * blocks->block, end = key + blocks->block < keys ? key + blocks->block : keys;
        if (known->seen[col]) continue;
        for (int64_t k = key; k < end; k++) x[k] = -INFINITY;
    }
}

static void mask_share(void *context, int thread, int threads) {
    const cpu_attention_scores *s = context;
    const attention_problem *p = s->p;
    const float cap = (float)p->softcap;
    seen_blocks known = {.row = -1};
    int64_t from, to, first, end;
    cpu_team_share(s->heads * s->queries, thread, threads, &from, &to);
    for (int64_t row = from; row < to; row++) {
        float *x = s->scores + row * p->keys;
        const int64_t query = s->query + row % s->queries, head = s->head + row / s->queries;
        const int64_t last = p->lengths >= 0 ? ((const int32_t *)s->tensors[p->lengths])[s->batch] : p->keys - 1;
        for (int64_t k = 0; cap > 0 && k < p->keys; k++) x[k] = cap * tanhf(x[k] / cap);
        if (p->mask >= 0) add_mask(s, head, query, x);
        attention_visible(p, query, last, &first, &end);
        for (int64_t k = 0; k < first; k++) x[k] = -INFINITY;
        for (int64_t k = end; k < p->keys; k++) x[k] = -INFINITY;
        if (s->blocks->block) hide_blocks(s->blocks, &known, query, p->keys, x);
    }
}

static void convert_share(void *context, int thread, int threads) {
    const cpu_attention_rows *r = context;
    const cpu_attention_kernel *kernel = cpu_attention_kernel_get();
    float line[LINE];
    int64_t from, to;
    cpu_team_share(r->dims[0] * r->dims[1] * r->dims[2], thread, threads, &from, &to);
    for (int64_t row = from; row < to; row++) {
        const int64_t place[3] = {row / r->dims[2] / r->dims[1], row / r->dims[2] % r->dims[1], row % r->dims[2]};
        int64_t source = 0, target = 0;
        for (int d = 0; d < 3; d++) source += place[d] * r->from_strides[d], target += place[d] * r->to_strides[d];
        for (int64_t k = 0; k < r->cols; k += LINE) {
            const int64_t count = r->cols - k < LINE ? r->cols - k : LINE;
            kernel->load(r->from_type, (const char *)r->from + (source + k) * cpu_convert_size(r->from_type), count,
                         line);
            kernel->store(r->to_type, line, count, (char *)r->to + (target + k) * cpu_convert_size(r->to_type));
        }
    }
}

void cpu_attention_convert(const cpu_attention_rows *r) {
    cpu_attention_rows copy = *r;
    cpu_team_run(convert_share, &copy);
}

bool cpu_attention_masked(const attention_problem *p) {
    return p->causal || p->mask >= 0 || p->lengths >= 0 || p->softcap > 0 || p->block_mask;
}

void cpu_attention_mask(const cpu_attention_scores *s) {
    cpu_attention_scores copy = *s;
    cpu_team_run(mask_share, &copy);
}
