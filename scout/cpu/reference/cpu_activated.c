/* Every output of a product in fp64: blocks of columns, which threads share; two rows and eight columns at a time. */
#include "scout/cpu/reference/cpu_lines.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = CPU_ACTIVATED_COLUMNS, LANES = 8, GROUPS = COLUMNS / LANES, ROWS = 2 };

static const double LONGEST_MACS = 5e11; /* a minute or two on few cores */

typedef struct tile { /* sums of products of two rows and eight columns, and of their squares */
    double sum[ROWS][LANES], squares[ROWS][LANES];
} tile;

/* rows: ROWS lines of k, one behind the other; panel: [k][LANES]. */
FAST_BODY void tile_body(const double *rows, const double *panel, int64_t k_all, tile *out) {
    double sum[ROWS][LANES] = {{0}}, squares[ROWS][LANES] = {{0}};
    for (int64_t k = 0; k < k_all; k++)
        for (int r = 0; r < ROWS; r++)
            for (int u = 0; u < LANES; u++) {
                const double term = rows[r * k_all + k] * panel[k * LANES + u];
                sum[r][u] += term, squares[r][u] += term * term;
            }
    memcpy(out->sum, sum, sizeof sum);
    memcpy(out->squares, squares, sizeof squares);
}

FAST static void tile_any(const double *rows, const double *panel, int64_t k, tile *out) {
    tile_body(rows, panel, k, out);
}
FAST WIDE_AVX2 static void tile_avx2(const double *rows, const double *panel, int64_t k, tile *out) {
    tile_body(rows, panel, k, out);
}
FAST WIDE_AVX512 static void tile_avx512(const double *rows, const double *panel, int64_t k, tile *out) {
    tile_body(rows, panel, k, out);
}

typedef struct activated {
    const cpu_lines *lines;
    int64_t product, width, segments;
    const double *x;
    cpu_activated_sum *sums;
    atomic_bool failed; /* a thread had no memory */
} activated;

/* Columns from `first` on as [group][k][lane]; what is beyond the last one is 0. */
static void load_panel(const activated *w, int64_t first, double *line, double *panel) {
    const gemm_problem *p = &w->lines->p;
    for (int64_t j = 0; j < COLUMNS; j++) {
        double *to = panel + j / LANES * p->k * LANES + j % LANES;
        if (first + j < p->n) cpu_lines_b_column(w->lines, w->product, first + j, line);
        for (int64_t k = 0; k < p->k; k++) to[k * LANES] = first + j < p->n ? line[k] : 0;
    }
}

/* Adds what eight columns of a row bring to the segments that they belong to. */
static void project(const activated *w, int64_t row, int64_t first, const double *sum, const double *squares) {
    const gemm_problem *p = &w->lines->p;
    for (int64_t u = 0; u < LANES && first + u < p->n; u++) {
        const int64_t j = first + u;
        double terms = squares[u];
        const double value = cpu_lines_finish(w->lines, w->product, row, j, sum[u], &terms);
        cpu_activated_sum *to = &w->sums[row * w->segments + j / w->width];
        to->want += w->x[j] * value;
        to->spread += w->x[j] * w->x[j] * terms; /* its root is taken at the end */
    }
}

static void block(const activated *w, int64_t first, double *rows, const double *panel) {
    const gemm_problem *p = &w->lines->p;
    const cpu_info *c = cpu_info_get();
    void (*const add)(const double *, const double *, int64_t, tile *) = c->avx512 ? tile_avx512
                                                                         : c->avx2 ? tile_avx2
                                                                                   : tile_any;
    for (int64_t i = 0; i < p->m; i += ROWS) {
        tile t;
        for (int64_t r = 0; r < ROWS; r++) /* of an odd number the last row is done twice */
            cpu_lines_a_row(w->lines, w->product, i + r < p->m ? i + r : i, rows + r * p->k);
        for (int64_t g = 0; g < GROUPS; g++) {
            add(rows, panel + g * p->k * LANES, p->k, &t);
            for (int64_t r = 0; r < ROWS && i + r < p->m; r++)
                project(w, i + r, first + g * LANES, t.sum[r], t.squares[r]);
        }
        for (int64_t r = 0; r < ROWS && i + r < p->m; r++)
            for (int64_t j = first; j < first + COLUMNS && j < p->n; j += w->width) {
                cpu_activated_sum *to = &w->sums[(i + r) * w->segments + j / w->width];
                to->spread = sqrt(to->spread);
            }
    }
}

static void share(void *context, int thread, int threads) {
    activated *w = context;
    const gemm_problem *p = &w->lines->p;
    const size_t k = (size_t)p->k;
    double *rows = calloc(k, (ROWS + COLUMNS) * sizeof *rows), *line = calloc(k, sizeof *line);
    int64_t from, to;
    cpu_team_share((p->n + COLUMNS - 1) / COLUMNS, thread, threads, &from, &to);
    if (!rows || !line) w->failed = true;
    for (int64_t b = from; b < to && rows && line; b++) {
        load_panel(w, b * COLUMNS, line, rows + ROWS * p->k);
        block(w, b * COLUMNS, rows, rows + ROWS * p->k);
    }
    free(rows), free(line);
}

bool cpu_activated_too_large(const gemm_problem *p) {
    return (double)p->m * (double)p->n * (double)p->k * (double)p->batch > LONGEST_MACS;
}

bool cpu_activated(const cpu_lines *lines, int64_t product, const double *x, int64_t width, int64_t segments,
                   cpu_activated_sum *sums) {
    activated w = {.lines = lines, .product = product, .width = width, .segments = segments, .x = x, .sums = sums};
    memset(sums, 0, (size_t)(lines->p.m * segments) * sizeof *sums);
    cpu_team_run(share, &w);
    return !w.failed;
}
