/* Reductions by an own loop. Where the innermost dimension is reduced, rows are added up one by one; where it is kept,
 * runs of up to 512 outputs at a time, so that memory is read in order either way. Few long rows are divided among the
 * threads, and the partial results are merged at the end. */
#include "scout/cpu/device/cpu_blocks.h"
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/kernels/cpu_reduce_kernels.h"

#include <stdlib.h>

/* Outputs of a cache line; the shortest row worth dividing. */
enum { LINE = 16, LONG = 16384 };

typedef struct found { /* of one row, or of a part of it */
    cpu_reduce_value sum;
    int64_t place;
} found;

struct scout_plan {
    reduce_problem p;
    reduce_id id;
    cpu_reduce_kernels kernels;
    cpu_blocks in, out; /* out: of the output's own type */
    bool wholes, rows, cut;
    int threads;
    found *parts; /* [output][thread], where rows are cut */
    const char *what;
};

typedef struct launching {
    const scout_plan *plan;
    const char *x;
    char *y;
} launching;

/* --- along rows --- */

static bool is_better(const scout_plan *p, cpu_reduce_value a, cpu_reduce_value b) {
    if (p->wholes) return p->kernels.order > 0 ? a.i > b.i : a.i < b.i;
    return p->kernels.order > 0 ? a.f > b.f : a.f < b.f;
}

static int64_t first_of(const scout_plan *p, const void *block, int64_t count, cpu_reduce_value value) {
    int64_t k = 0;
    if (p->wholes)
        while (k < count - 1 && ((const int64_t *)block)[k] != value.i) k++;
    else
        while (k < count - 1 && ((const float *)block)[k] != value.f) k++;
    return k;
}

static void take(const scout_plan *p, const void *block, int64_t at, int64_t count, found *f) {
    if (p->kernels.order == 0) {
        p->kernels.row(block, count, &f->sum);
        return;
    }
    cpu_reduce_value best = p->kernels.start;
    p->kernels.row(block, count, &best);
    if (!is_better(p, best, f->sum)) return;
    f->sum = best;
    f->place = at + first_of(p, block, count, best);
}

/* Elements [from, to) of the row of output `row`. */
static found add_row(const launching *l, int64_t row, int64_t from, int64_t to) {
    const scout_plan *p = l->plan;
    _Alignas(64) int64_t block[CPU_BLOCKS_MOST];
    found f = {p->kernels.start, from};
    int64_t base, offset;
    (void)reduce_to(&p->p.kept, row, &base);
    const bool whole = p->in.plain && p->kernels.order == 0; /* no need to cut runs into blocks */
    while (from < to) {
        int64_t run = reduce_to(&p->p.reduced, from, &offset);
        if (run > to - from) run = to - from;
        if (!whole && run > CPU_BLOCKS_MOST) run = CPU_BLOCKS_MOST;
        const void *data = l->x + (size_t)(base + offset) * p->in.size;
        if (!p->in.plain) {
            p->in.load(l->x, base + offset, run, block);
            data = block;
        }
        take(p, data, from, run, &f);
        from += run;
    }
    return f;
}

static void put(const launching *l, int64_t at, const found *f) {
    const scout_plan *p = l->plan;
    const cpu_reduce_value y = cpu_reduce_finish(p->id, p->wholes, f->sum, p->p.reduced.count);
    if (p->kernels.order != 0)
        ((int64_t *)(void *)l->y)[at] = f->place;
    else
        p->out.store(&y, 1, l->y, at);
}

static void add_rows(const launching *l, int64_t from, int64_t to) {
    for (int64_t k = from; k < to; k++) {
        const found f = add_row(l, k, 0, l->plan->p.reduced.count);
        put(l, k, &f);
    }
}

/* --- across rows --- */

typedef struct run_of_sums {
    _Alignas(64) int64_t sums[CPU_BLOCKS_MOST], places[CPU_BLOCKS_MOST], block[CPU_BLOCKS_MOST];
} run_of_sums;

static void start(const scout_plan *p, run_of_sums *r, int64_t count) {
    float *const floats = (float *)(void *)r->sums;
    for (int64_t k = 0; k < count; k++) {
        if (p->wholes)
            r->sums[k] = p->kernels.start.i;
        else
            floats[k] = p->kernels.start.f;
        r->places[k] = 0;
    }
}

static void add_columns(const launching *l, int64_t from, int64_t to) {
    const scout_plan *p = l->plan;
    run_of_sums r;
    while (from < to) {
        int64_t base, offset, run = reduce_to(&p->p.kept, from, &base);
        if (run > to - from) run = to - from;
        if (run > CPU_BLOCKS_MOST) run = CPU_BLOCKS_MOST;
        start(p, &r, run);
        for (int64_t k = 0; k < p->p.reduced.count; k++) {
            (void)reduce_to(&p->p.reduced, k, &offset);
            const void *data = l->x + (size_t)(base + offset) * p->in.size;
            if (!p->in.plain) {
                p->in.load(l->x, base + offset, run, r.block);
                data = r.block;
            }
            p->kernels.column(data, run, r.sums, r.places, k);
        }
        for (int64_t k = 0; k < run; k++) {
            found f = {.place = r.places[k]};
            if (p->wholes)
                f.sum.i = r.sums[k];
            else
                f.sum.f = ((const float *)(const void *)r.sums)[k];
            put(l, from + k, &f);
        }
        from += run;
    }
}

/* --- sharing --- */

static void compute_share(void *context, int thread, int threads) {
    const launching *l = context;
    const int64_t count = l->plan->p.kept.count, step = l->plan->rows ? 1 : LINE;
    int64_t from, to;
    cpu_team_share((count + step - 1) / step, thread, threads, &from, &to);
    from *= step, to = to * step < count ? to * step : count;
    if (l->plan->rows)
        add_rows(l, from, to);
    else
        add_columns(l, from, to);
}

static void compute_parts(void *context, int thread, int threads) {
    const launching *l = context;
    int64_t from, to;
    cpu_team_share(l->plan->p.reduced.count, thread, threads, &from, &to);
    for (int64_t k = 0; k < l->plan->p.kept.count; k++)
        l->plan->parts[k * l->plan->threads + thread] = add_row(l, k, from, to);
}

static void join_parts(const launching *l) {
    const scout_plan *p = l->plan;
    for (int64_t k = 0; k < p->p.kept.count; k++) {
        found all = p->parts[k * p->threads];
        for (int t = 1; t < p->threads; t++) { /* in order: the first of equal ones stays */
            const found *part = &p->parts[k * p->threads + t];
            if (p->kernels.order == 0)
                p->kernels.join(&part->sum, 1, &all.sum);
            else if (is_better(p, part->sum, all.sum))
                all = *part;
        }
        put(l, k, &all);
    }
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    launching l = {plan, args->tensors[REDUCE_X], args->tensors[REDUCE_Y]};
    (void)why;
    if (plan->cut) {
        cpu_team_run(compute_parts, &l);
        join_parts(&l);
    } else {
        cpu_team_run(compute_share, &l);
    }
    return SCOUT_OK;
}

/* --- the candidate --- */

static bool plan_of(const scout_op *op, scout_plan *p) {
    memset(p, 0, sizeof *p);
    const reduce_operator *is = reduce_operator_of(op, &p->id);
    if (!is) return false;
    p->what = is->what;
    p->p = reduce_problem_of(op);
    if (p->p.last) return false;
    p->wholes = cpu_number_whole(op->input);
    p->threads = cpu_team_size();
    p->rows = p->p.reduced.strides[0] == 1 && p->p.reduced.count > 1;
    p->cut = p->rows && p->p.kept.count < p->threads && p->p.reduced.count >= LONG;
    const cpu_blocks_in in = p->wholes ? CPU_BLOCKS_WHOLES : CPU_BLOCKS_FLOATS;
    return cpu_reduce_kernels_of(p->id, p->wholes, &p->kernels) && cpu_blocks_of(op->input, in, &p->in) &&
           (is->place || cpu_blocks_of(op->output, in, &p->out));
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (reduce_goes_along(op)) return scout_say(why, SCOUT_NO, "feature", "running sums and searches are not its work");
    if (plan_of(op, &p)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "there is no loop for %.30s of this type", op->what ? op->what : "this");
}

static void destroy(scout_plan *plan) { free(plan->parts); }

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)needs;
    scout_plan *const plan = *out;
    if (!plan_of(op, plan)) return scout_say(why, SCOUT_NO, "type", "there is no loop for this reduction");
    if (plan->cut) plan->parts = calloc((size_t)plan->p.kept.count * (size_t)plan->threads, sizeof *plan->parts);
    if (plan->cut && !plan->parts) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"kernel\": \"reduce_loop\", \"what\": \"%s\", \"along\": \"%s\", \"threads\": \"%s\"}",
                    plan->what, plan->rows ? plan->cut ? "cut rows" : "rows" : "columns", cpu_team_about());
}

const scout_candidate cpu_reduce_loop = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE, /* the baseline where no library has one */
    .priority = 50,
    .name = "cpu_reduce",
    .about = "own vector loop along rows or across them, every reduction and type",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int64", "int32", "int8", "uint8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
