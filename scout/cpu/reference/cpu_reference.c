/* The reference of products. Two checks, and a wrong output must pass neither:
 *
 * - samples: at least 4,096 outputs (all, where there are few), each a sum in fp64;
 * - projections: every row of C is cut into segments of 256 columns (16 where results are coarse), and of every segment
 *   the sum of c[i][j] * x[j] is known beforehand as the row of A times B*x, which costs 1/256 of the product. x[j] is
 *   plus or minus an integer from 48 to 60 or from 68 to 80, so that one wrong element shows (no weight is near 0), two
 *   neighbours that are swapped show (weights differ), and integer products stay exact.
 *
 * An activation rules out projections, and so does rounding to bytes: every output of such a product is computed
 * (cpu_activated.c) and then projected.
 *
 * With a spread (the root of the sum of squares of the terms) kept beside every sum, an error is judged against what
 * rounding can do: cpu_cover.c argues how far a projection may be off, and how many columns may be projected together.
 */
#include "scout/cpu/device/cpu_candidates.h"

#include "common/mix.h"
#include "scout/cpu/device/cpu_cover.h"
#include "scout/cpu/device/cpu_fill.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/reference/cpu_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 8192, ALL_UP_TO = 16384, PANEL_BYTES = 64 << 20, LANES = 8 };

typedef struct sample {
    int64_t at; /* position in C's storage */
    cpu_activated_sum s;
} sample;

struct scout_check {
    cpu_lines lines;
    uint64_t seed;
    int threads;
    int64_t segment, segments;
    double *x;                      /* n */
    cpu_activated_sum *projections; /* [batch][m][segments] */
    double *bx, *bx2;               /* [segments][k]: B*x, and the squares of its terms */
    double *scratch;                /* a line for every thread, and one more each */
    int64_t line;                   /* doubles of a line: max(n, k) */
    double *panel;                  /* lines of the side that is sampled as a whole */
    int64_t panel_lines, other_lines, per_line;
    bool panel_is_a;
    sample *samples; /* [batch][other_lines][per_line] */
    int64_t product; /* the one of the batch that is at work */
};

/* Sums of a*b and of (a*b)^2, in lanes: order and error do not depend on the compiler. */
static void dot(const double *a, const double *b, int64_t count, double *total, double *squares) {
    double t[LANES] = {0}, q[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= count; k += LANES)
        for (int u = 0; u < LANES; u++) {
            const double term = a[k + u] * b[k + u];
            t[u] += term, q[u] += term * term;
        }
    for (; k < count; k++) t[0] += a[k] * b[k], q[0] += a[k] * b[k] * a[k] * b[k];
    for (int u = 1; u < LANES; u++) t[0] += t[u], q[0] += q[u];
    *total = t[0], *squares = q[0];
}

/* Sums of a*b and of a^2*b2. */
static void dot_squares(const double *a, const double *b, const double *b2, int64_t count, double *total,
                        double *squares) {
    double t[LANES] = {0}, q[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= count; k += LANES)
        for (int u = 0; u < LANES; u++) t[u] += a[k + u] * b[k + u], q[u] += a[k + u] * a[k + u] * b2[k + u];
    for (; k < count; k++) t[0] += a[k] * b[k], q[0] += a[k] * a[k] * b2[k];
    for (int u = 1; u < LANES; u++) t[0] += t[u], q[0] += q[u];
    *total = t[0], *squares = q[0];
}

static int64_t segment_width(const scout_check *c, int64_t s) {
    const int64_t left = c->lines.p.n - s * c->segment;
    return left < c->segment ? left : c->segment;
}

static double *line_of(const scout_check *c, int thread, int which) {
    return c->scratch + (2 * thread + which) * c->line;
}

/* --- projections --- */

/* B stored row by row: each thread has rows of B, that is columns of bx. */
static void project_b_rows(void *context, int thread, int threads) {
    scout_check *c = context;
    int64_t from, to;
    double *row = line_of(c, thread, 0);
    cpu_team_share(c->lines.p.k, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        cpu_lines_b_row(&c->lines, c->product, k, row);
        for (int64_t s = 0; s < c->segments; s++)
            dot(row + s * c->segment, c->x + s * c->segment, segment_width(c, s), &c->bx[s * c->lines.p.k + k],
                &c->bx2[s * c->lines.p.k + k]);
    }
}

/* B stored column by column: each thread has segments of its own. */
static void project_b_columns(void *context, int thread, int threads) {
    scout_check *c = context;
    const int64_t n = c->lines.p.n, k_all = c->lines.p.k;
    double *column = line_of(c, thread, 0);
    int64_t from, to;
    cpu_team_share(c->segments, thread, threads, &from, &to);
    for (int64_t s = from; s < to; s++) {
        double *restrict b = c->bx + s * k_all, *restrict b2 = c->bx2 + s * k_all;
        memset(b, 0, (size_t)k_all * sizeof *b);
        memset(b2, 0, (size_t)k_all * sizeof *b2);
        for (int64_t j = s * c->segment; j < n && j < (s + 1) * c->segment; j++) {
            const double x = c->x[j];
            cpu_lines_b_column(&c->lines, c->product, j, column);
            for (int64_t k = 0; k < k_all; k++) {
                const double term = column[k] * x;
                b[k] += term, b2[k] += term * term;
            }
        }
    }
}

static void add_rest(const scout_check *c, int64_t row, int64_t s, double *total, double *squares) {
    const gemm_problem *p = &c->lines.p;
    const bool any = c->lines.bias || c->lines.residual;
    for (int64_t j = s * c->segment; any && j < p->n && j < (s + 1) * c->segment; j++) {
        const double bias = p->beta * cpu_lines_bias(&c->lines, c->product, row, j) * c->x[j];
        const double residual = cpu_lines_residual(&c->lines, c->product, row, j) * c->x[j];
        *total += bias + residual, *squares += bias * bias + residual * residual;
    }
}

static void project_rows(void *context, int thread, int threads) {
    scout_check *c = context;
    const gemm_problem *p = &c->lines.p;
    double *row = line_of(c, thread, 0);
    int64_t from, to;
    cpu_team_share(p->m, thread, threads, &from, &to);
    for (int64_t i = from; i < to; i++) {
        cpu_lines_a_row(&c->lines, c->product, i, row);
        for (int64_t s = 0; s < c->segments; s++) {
            double total, squares;
            dot_squares(row, c->bx + s * p->k, c->bx2 + s * p->k, p->k, &total, &squares);
            total *= p->alpha, squares *= p->alpha * p->alpha;
            add_rest(c, i, s, &total, &squares);
            c->projections[(c->product * p->m + i) * c->segments + s] = (cpu_activated_sum){total, sqrt(squares)};
        }
    }
}

/* Whether the epilogue rules out projections. */
static bool is_bent(const gemm_problem *p) { return p->activation.function != ACTIVATION_PLAIN || p->quant.is; }

static bool project(scout_check *c) {
    const gemm_problem *p = &c->lines.p;
    if (is_bent(p))
        return cpu_activated(&c->lines, c->product, c->x, c->segment, c->segments,
                             c->projections + c->product * p->m * c->segments);
    if (c->product == 0 || p->stride_b != 0) cpu_team_run(p->trans_b ? project_b_columns : project_b_rows, c);
    cpu_team_run(project_rows, c);
    return true;
}

/* --- samples --- */

/* Line `index` of `lines` out of `size`: one from each of as many strips, the first and the last always. */
static int64_t pick(const scout_check *c, int64_t index, int64_t lines, int64_t size, uint64_t salt) {
    if (lines == size || index == 0) return index;
    if (index == lines - 1) return size - 1;
    const int64_t from = index * size / lines, to = (index + 1) * size / lines;
    const uint64_t random = mix_bits(c->seed ^ mix_bits((uint64_t)index ^ salt));
    return from + (int64_t)(random % (uint64_t)(to - from));
}

static void load_line(const scout_check *c, bool of_a, int64_t index, double *out) {
    if (of_a)
        cpu_lines_a_row(&c->lines, c->product, index, out);
    else
        cpu_lines_b_column(&c->lines, c->product, index, out);
}

static int64_t panel_line(const scout_check *c, int64_t index) {
    const gemm_problem *p = &c->lines.p;
    return pick(c, index, c->panel_lines, c->panel_is_a ? p->m : p->n, 0x70616e656cu + (uint64_t)c->product);
}

static int64_t other_line(const scout_check *c, int64_t index) {
    const gemm_problem *p = &c->lines.p;
    return pick(c, index, c->other_lines, c->panel_is_a ? p->n : p->m, 0x6f74686572u + (uint64_t)c->product);
}

static void load_panel(void *context, int thread, int threads) {
    scout_check *c = context;
    int64_t from, to;
    cpu_team_share(c->panel_lines, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) load_line(c, c->panel_is_a, panel_line(c, k), c->panel + k * c->lines.p.k);
}

static void sample_lines(void *context, int thread, int threads) {
    scout_check *c = context;
    const gemm_problem *p = &c->lines.p;
    double *line = line_of(c, thread, 0);
    int64_t from, to;
    cpu_team_share(c->other_lines, thread, threads, &from, &to);
    for (int64_t o = from; o < to; o++) {
        const int64_t other = other_line(c, o);
        const int64_t first = (int64_t)(mix_bits(c->seed + (uint64_t)o) % (uint64_t)c->panel_lines);
        load_line(c, !c->panel_is_a, other, line);
        for (int64_t q = 0; q < c->per_line; q++) {
            const int64_t index = (first + q) % c->panel_lines, mine = panel_line(c, index);
            const int64_t row = c->panel_is_a ? mine : other, column = c->panel_is_a ? other : mine;
            double total, squares;
            dot(line, c->panel + index * p->k, p->k, &total, &squares);
            sample *to_fill = &c->samples[(c->product * c->other_lines + o) * c->per_line + q];
            to_fill->at = c->product * p->stride_c + row * p->ldc + column;
            to_fill->s.want = cpu_lines_finish(&c->lines, c->product, row, column, total, &squares);
            to_fill->s.spread = sqrt(squares);
        }
    }
}

/* --- begin --- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void plan_samples(scout_check *c) {
    const gemm_problem *p = &c->lines.p;
    const double total = (double)p->m * (double)p->n * (double)p->batch;
    const int64_t fits = most(64, least(256, PANEL_BYTES / (8 * p->k)));
    const int64_t wanted = most(64, (SAMPLES + p->batch - 1) / p->batch);
    c->panel_is_a = p->m <= p->n;
    const int64_t panel = c->panel_is_a ? p->m : p->n, other = c->panel_is_a ? p->n : p->m;
    c->panel_lines = least(panel, fits);
    if (total <= ALL_UP_TO && c->panel_lines == panel) {
        c->other_lines = other, c->per_line = panel;
        return;
    }
    c->other_lines = least(other, most(fits, (wanted + c->panel_lines - 1) / c->panel_lines));
    c->per_line = least(c->panel_lines, (wanted + c->other_lines - 1) / c->other_lines);
}

static bool allocate(scout_check *c) {
    const gemm_problem *p = &c->lines.p;
    const size_t rows = (size_t)(p->m * p->batch), k = (size_t)p->k, segments = (size_t)c->segments;
    c->line = most(p->n, p->k);
    c->x = calloc((size_t)p->n, sizeof *c->x);
    c->projections = calloc(rows, segments * sizeof *c->projections);
    c->bx = calloc(segments, k * sizeof *c->bx);
    c->bx2 = calloc(segments, k * sizeof *c->bx2);
    c->scratch = calloc((size_t)c->threads * 2, (size_t)c->line * sizeof *c->scratch);
    c->panel = calloc((size_t)c->panel_lines, k * sizeof *c->panel);
    c->samples = calloc((size_t)p->batch, (size_t)(c->other_lines * c->per_line) * sizeof *c->samples);
    return c->x && c->projections && c->bx && c->bx2 && c->scratch && c->panel && c->samples;
}

static void end(scout_check *c) {
    if (!c) return;
    free(c->x);
    free(c->projections);
    free(c->bx);
    free(c->bx2);
    free(c->scratch);
    free(c->panel);
    free(c->samples);
    free(c);
}

static scout_answer begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why) {
    scout_check *c = calloc(1, sizeof *c);
    scout_answer answer = c ? cpu_lines_of(op, tensors, &c->lines, why) : SCOUT_NO_MEMORY;
    (void)device;
    *check = NULL;
    if (answer != SCOUT_OK) goto failed;
    if (is_bent(&c->lines.p) && cpu_activated_too_large(&c->lines.p)) {
        answer = scout_say(why, SCOUT_NO, "shape",
                           "this product is too large to be checked with its activation or its rounding to bytes");
        goto failed;
    }
    c->seed = mix_bits(seed ^ 0x7265666572u);
    c->threads = cpu_team_size();
    plan_samples(c);
    cpu_cover_segments(&c->lines.p, &c->segment, &c->segments);
    answer = allocate(c) ? SCOUT_OK : SCOUT_NO_MEMORY;
    if (answer != SCOUT_OK) goto failed;
    const gemm_problem *p = &c->lines.p;
    for (int64_t j = 0; j < p->n; j++) c->x[j] = cpu_cover_weight(c->seed, j);
    for (c->product = 0; c->product < p->batch; c->product++) {
        if (!project(c)) {
            answer = SCOUT_NO_MEMORY;
            goto failed;
        }
        cpu_team_run(load_panel, c);
        cpu_team_run(sample_lines, c);
    }
    /* what only begin needs goes: a check lives as long as its operation is measured */
    free(c->bx), free(c->bx2), free(c->panel);
    c->bx = c->bx2 = c->panel = NULL;
    c->lines.a = c->lines.b = c->lines.bias = c->lines.scales = c->lines.residual = NULL;
    *check = c;
    return SCOUT_OK;
failed:
    if (answer == SCOUT_NO_MEMORY) scout_say(why, answer, "memory", "no memory for the reference of this product");
    end(c);
    return answer;
}

/* --- compare --- */

typedef struct comparing {
    scout_check *check;
    const void *output;
    double tolerance;
    scout_verdict *parts; /* one a thread */
} comparing;

static void compare_samples(const comparing *w, int thread, int threads, scout_verdict *v) {
    const scout_check *c = w->check;
    int64_t from, to;
    cpu_team_share(c->lines.p.batch * c->other_lines * c->per_line, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const sample *s = &c->samples[k];
        double got;
        cpu_number_load(c->lines.p.type_c, w->output, s->at, 1, 1, &got);
        const double error = cpu_cover_sample_error(got, s->s.want, s->s.spread);
        v->compared++;
        if (error > w->tolerance) v->wrong++;
        if (v->compared > 1 && error <= v->worst) continue;
        v->worst = error, v->at = (uint64_t)s->at, v->got = got, v->want = s->s.want;
    }
}

static void compare_projections(const comparing *w, int thread, int threads, scout_verdict *v) {
    const scout_check *c = w->check;
    const gemm_problem *p = &c->lines.p;
    double *row = line_of(c, thread, 0);
    int64_t from, to;
    cpu_team_share(p->m * p->batch, thread, threads, &from, &to);
    for (int64_t i = from; i < to; i++) {
        const int64_t at = i / p->m * p->stride_c + i % p->m * p->ldc;
        cpu_number_load(p->type_c, w->output, at, 1, p->n, row);
        for (int64_t s = 0; s < c->segments; s++) {
            double got, squares;
            dot(row + s * c->segment, c->x + s * c->segment, segment_width(c, s), &got, &squares);
            const cpu_activated_sum *right = &c->projections[i * c->segments + s];
            const double error = cpu_cover_projection_error(got, squares, right->want, right->spread);
            if (error > w->tolerance) v->wrong++;
            if (error > v->worst_projected) v->worst_projected = error;
        }
    }
}

static void compare_share(void *context, int thread, int threads) {
    const comparing *w = context;
    compare_samples(w, thread, threads, &w->parts[thread]);
    compare_projections(w, thread, threads, &w->parts[thread]);
}

static scout_answer compare(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                            scout_why *why) {
    comparing w = {check, output, tolerance, calloc((size_t)check->threads, sizeof(scout_verdict))};
    if (!w.parts) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory to compare an output");
    cpu_team_run(compare_share, &w);
    cpu_cover_sum(w.parts, check->threads, verdict);
    free(w.parts);
    return SCOUT_OK;
}

const scout_reference cpu_reference_gemm = {
    .size = sizeof(scout_reference), .kind = SCOUT_GEMM, .begin = begin, .compare = compare, .end = end};
