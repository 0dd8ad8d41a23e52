/* Owns what is learned of the machine, and by which of its parts an operation is judged: a clock that power holds back
 * slows what computes and leaves what moves data alone. Operations that one thing bounds are a part of their own where
 * they moved together and not as the rest did. */
#include "analyze/compare/comparison.h"

#include <math.h>
#include <string.h>

enum { PART = 20 }; /* operations that it takes */

static const char *const bounds[] = {"compute", "memory", "special", "launch", "data"};
enum { BOUNDS = sizeof bounds / sizeof bounds[0] };

typedef struct learner {
    comparison *c;
    const drift_row *all; /* in the order of c->operations.rows */
    drift_row *some;
    size_t family;
} learner;

static bool is_bound(const comparison_row *r, const char *bound) {
    return r->after->bound && strcmp(r->after->bound, bound) == 0;
}

/* Of the rows of one bound, or (NULL) of those in no part. */
static drift learn(const learner *l, const char *bound) {
    const comparison *c = l->c;
    size_t n = 0;
    drift d;
    for (size_t k = 0; k < c->operations.row_count; k++)
        if (bound ? is_bound(&c->operations.rows[k], bound) : !c->operations.rows[k].part) l->some[n++] = l->all[k];
    if (!drift_learn(&d, &c->options.drift, l->some, n, l->family))
        guard_fail(&l->c->guard, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    return d;
}

static bool is_apart(const drift *part, const drift *rest) {
    const double apart = fabs(part->machine - rest->machine), sd = hypot(part->machine_sd, rest->machine_sd);
    return part->rows >= PART && part->machine_known && apart >= log1p(part->options.margin) &&
           apart > part->machine_limit * sd;
}

static void add_part(comparison *c, const char *bound, const drift *d) {
    comparison_part *part = &c->parts[c->part_count++];
    *part = (comparison_part){.bound = bound, .drift = *d, .machine = drift_judge_machine(d)};
    comparison_list *const lists[] = {&c->operations, &c->fusions};
    for (int n = 0; n < 2; n++)
        for (size_t k = 0; k < lists[n]->row_count; k++)
            if (is_bound(&lists[n]->rows[k], bound)) lists[n]->rows[k].part = part;
}

void comparison_learn(comparison *c, const drift_row *rows, size_t family) {
    learner l = {c, rows, arena_array(&c->arena, drift_row, c->operations.row_count + 1), family + BOUNDS};
    c->parts = arena_array(&c->arena, comparison_part, BOUNDS);
    const drift whole = learn(&l, NULL);
    for (size_t k = 0; k < BOUNDS; k++) {
        const drift d = learn(&l, bounds[k]);
        if (is_apart(&d, &whole)) add_part(c, bounds[k], &d);
    }
    c->drift = c->part_count > 0 ? learn(&l, NULL) : whole;
    c->machine = drift_judge_machine(&c->drift);
}

const drift *comparison_drift(const comparison *c, const comparison_row *row) {
    return row->part ? &row->part->drift : &c->drift;
}
