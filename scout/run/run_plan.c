/* The plan of a model: what every operation and every fusion runs as by the reports, and which occurrences go together.
 * It is chosen here, or read from a plan.json. */
#include "scout/run/run_internal.h"

#include "scout/kinds/kinds.h"
#include "scout/measure/figures.h"
#include "scout/plan/binding.h"
#include "scout/plan/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct planner {
    run *r;
    run_plan *to;
    const scout_op **ops; /* by item of the list; NULL: not asked for yet */
    const int *reads;
    choose_group *groups;
    int *fusions; /* by group */
    int count;
} planner;

/* ---- what each runs as ---- */

/* Of what is not proven by itself: so much less time that the model as a whole, which is measured, is to decide. */
static const double likely = 0.9;

static void take_leader(const run_item *i, run_planned *to) {
    const json_t *const leader = figures_leader(i->measurement);
    const double ratio = json_get_positive(leader, "ratio");
    if (!(ratio > 0 && ratio < likely)) return;
    to->name = json_get_text(leader, "name");
    to->variant = json_get_text(leader, "variant");
    to->ratio = ratio;
    to->ratio_ci = NAN;
    to->each_us = ratio * to->default_us;
    to->ci = NAN;
}

static void read_operation(const run *r, int item, run_planned *to) {
    const report_input in = run_input(r, &r->items[item], -1);
    report_figures f;
    report_read(&in, &f);
    if (!f.baseline_row) return;
    const bool proven = f.best_row && f.best_row != f.baseline_row && f.proven_us < f.baseline_us;
    to->default_us = f.baseline_us;
    to->default_ci = f.baseline_ci;
    to->each_us = proven ? f.proven_us : f.baseline_us;
    to->ci = proven ? f.best_ci : f.baseline_ci;
    if (!proven) take_leader(&r->items[item], to);
    if (!proven) return;
    to->name = json_get_text(f.best_row, "name");
    to->variant = json_get_text(f.best_row, "variant");
    to->ratio = f.ratio;
    to->ratio_ci = f.ratio_ci;
}

static void leave_out(run_planned *to, arena *a, const char *code, const char *text) {
    if (to->code) return;
    to->code = arena_printf(a, "%s", code);
    to->text = arena_printf(a, "%s", text);
}

/* Proven, or far ahead. */
static bool is_worth(const report_fused *x) {
    if (!x->worth || strcmp(x->worth, "no") == 0) return false;
    return strcmp(x->worth, "yes") == 0 || (x->ratio > 0 && x->ratio < likely);
}

/* Of those that are worth it, and have a place in the model. */
static void read_fusion(run *r, int index, run_planned *to) {
    const fusion *f = &r->fusions.items[index];
    const report_input in = run_input(r, &r->items[r->list.count + index], -1);
    report_figures figures;
    report_read(&in, &figures);
    const report_fused *x = &figures.fused;
    if (!is_worth(x) || f->site_count == 0) return;
    if (f->how != FUSION_SEQUENCE) {
        leave_out(to, &r->arena, "layout", "its parts' tensors do not lie in those of what does all at once");
        return;
    }
    to->name = x->name;
    to->variant = x->variant ? x->variant : "";
    to->ratio = x->ratio;
    to->ratio_ci = x->ratio_ci;
    to->ci = x->ratio_ci;
}

/* ---- what could go together ---- */

static const scout_op *build(planner *p, const operation *o, scout_why *why) {
    scout_op *op = arena_array(&p->r->arena, scout_op, 1);
    return kinds_build(o, p->r->search.workspace_limit, &p->r->arena, op, why) ? op : NULL;
}

/* Whether the dataflow has all tensors of the fused operation there. */
static bool is_bound(planner *p, const fusion *f, const scout_op *fused, const int *site, scout_why *why) {
    const operation_list *list = &p->r->list;
    const scout_op *ops[FUSION_PARTS];
    const binding_fusion about = {fused, f->parts, ops, f->op_count, p->reads};
    binding_site found;
    for (int k = 0; k < f->op_count; k++) {
        const int item = list->flow->occurrences[site[k]].operation; /* it has a figure */
        if (list->items[item].sparsity > 0) {
            (void)scout_say(why, SCOUT_NO, "layout", "what is known of its weight's zeros would be lost");
            return false;
        }
        if (!p->ops[item]) p->ops[item] = build(p, &list->items[item], why);
        if (!p->ops[item]) return false;
        ops[k] = p->ops[item];
    }
    return binding_fused(list->flow, site, &about, &found, why);
}

double run_plan_us(const run *r, const run_plan *plan, int occurrence) {
    const operation_occurrence *at = &r->list.flow->occurrences[occurrence];
    const double us = at->operation >= 0 ? plan->operations[at->operation].each_us : 0;
    return us > 0 ? us * (double)at->times : NAN;
}

/* The parts' own times, by the ratio that was measured beside them, if it is known. Not a number: one of them is not.
 */
static double cost_of(const run *r, const run_plan *plan, int index, const int *site) {
    double sum = 0;
    for (int k = 0; k < r->fusions.items[index].op_count; k++) {
        sum += run_plan_us(r, plan, site[k]);
    }
    const double ratio = plan->fusions[index].ratio; /* of a given plan it need not be known */
    return ratio > 0 ? sum * ratio : sum;
}

static void add_sites(planner *p, int index) {
    const fusion *f = &p->r->fusions.items[index];
    run_planned *about = &p->to->fusions[index];
    scout_why why = {.code = ""};
    const scout_op *fused = build(p, &f->fused, &why);
    if (!fused) leave_out(about, &p->r->arena, why.code, why.text);
    for (int k = 0; fused && k < f->site_count; k++) {
        const int *site = &f->sites[k * f->op_count];
        const double cost = cost_of(p->r, p->to, index, site);
        if (!isfinite(cost)) {
            leave_out(about, &p->r->arena, "not_asked", "a part of it has no figure");
        } else if (!is_bound(p, f, fused, site, &why)) {
            leave_out(about, &p->r->arena, why.code, why.text);
        } else {
            p->groups[p->count] = (choose_group){site, f->op_count, cost};
            p->fusions[p->count++] = index;
        }
    }
}

/* ---- the choice ---- */

static void say_fates(planner *p, const choose_choice *c) {
    static const char *const texts[] = {
        [CHOOSE_CIRCLE] = "something between its operations needs one of them and is needed by another",
        [CHOOSE_LONG] = "whether it has a place in the order was not found out within bounds"};
    for (int k = 0; k < p->count; k++)
        if (c->fates[k] == CHOOSE_CIRCLE || c->fates[k] == CHOOSE_LONG)
            leave_out(&p->to->fusions[p->fusions[k]], &p->r->arena, "layout", texts[c->fates[k]]);
}

/* Members of a group stand as its fusion's operations do. */
static void add_groups(planner *p, const choose_choice *c) {
    plan_run *to = &p->to->whole;
    const int count = p->r->list.flow->occurrence_count;
    int *group_of = arena_array(&p->r->arena, int, count);
    for (int k = 0; k < count; k++) group_of[k] = -1;
    for (int g = 0; g < p->count; g++)
        for (int k = 0; c->fates[g] == CHOOSE_TAKEN && k < p->groups[g].count; k++)
            group_of[p->groups[g].members[k]] = g;
    to->order = c->order;
    to->occurrence_count = count;
    to->groups = arena_array(&p->r->arena, plan_group, count);
    for (int k = 0; k < count; k += to->groups[to->group_count++].count) {
        const int g = group_of[to->order[k]];
        to->groups[to->group_count] = (plan_group){.fusion = -1, .first = k, .count = 1};
        if (g < 0) continue;
        memcpy(&to->order[k], p->groups[g].members, (size_t)p->groups[g].count * sizeof *to->order);
        to->groups[to->group_count] = (plan_group){p->fusions[g], k, p->groups[g].count};
    }
}

void run_plan_choose(run *r, run_plan *to) {
    const operation_flow *f = r->list.flow;
    planner p = {.r = r, .to = to, .reads = binding_reads(f, &r->arena)};
    const plan_needs needs = plan_needs_of(f, &r->arena);
    double *costs = arena_array(&r->arena, double, f->occurrence_count);
    int64_t sites = 0;
    *to = (run_plan){.operations = arena_array(&r->arena, run_planned, r->list.count),
                     .fusions = arena_array(&r->arena, run_planned, r->fusions.count)};
    p.ops = arena_array(&r->arena, const scout_op *, r->list.count);
    for (int k = 0; k < r->list.count; k++) read_operation(r, k, &to->operations[k]);
    for (int k = 0; k < r->fusions.count; k++) {
        read_fusion(r, k, &to->fusions[k]);
        sites += r->fusions.items[k].site_count;
    }
    p.groups = arena_array(&r->arena, choose_group, sites);
    p.fusions = arena_array(&r->arena, int, sites);
    for (int k = 0; k < r->fusions.count; k++)
        if (to->fusions[k].name) add_sites(&p, k);
    for (int k = 0; k < f->occurrence_count; k++) {
        const double us = run_plan_us(r, to, k);
        costs[k] = us > 0 ? us : 0;
    }
    const choose_problem problem = {f->occurrence_count, costs,    needs.segments, needs.needs,
                                    needs.begins,        p.groups, p.count};
    const choose_choice *c = choose_groups(&problem, &r->arena);
    to->bound_us = c->bound;
    say_fates(&p, c);
    add_groups(&p, c);
    run_plan_count(r, to);
}

double run_plan_fused_us(const run *r, const run_plan *plan, const plan_group *g) {
    return cost_of(r, plan, g->fusion, &plan->whole.order[g->first]);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

void run_plan_count(const run *r, run_plan *plan) {
    const plan_run *p = &plan->whole;
    plan->fused = 0;
    plan->alone_us = plan->cost_us = 0;
    for (int g = 0; g < p->group_count; g++) {
        const plan_group *of = &p->groups[g];
        double alone = 0;
        for (int k = 0; k < of->count; k++) {
            const double us = run_plan_us(r, plan, p->order[of->first + k]);
            if (us > 0) alone += us;
        }
        const double fused = of->fusion >= 0 ? run_plan_fused_us(r, plan, of) : NAN;
        plan->alone_us += alone;
        plan->cost_us += fused > 0 ? fused : alone;
        plan->fused += of->fusion >= 0;
    }
    plan->bound_us = fmax(fmin(plan->bound_us, plan->cost_us), 0);
}

void run_plan_split(run *r, run_plan *plan, const bool *apart) {
    plan_run *p = &plan->whole;
    plan_group *groups = arena_array(&r->arena, plan_group, p->occurrence_count);
    int count = 0;
    for (int g = 0; g < p->group_count; g++) {
        const plan_group *of = &p->groups[g];
        if (!apart[g]) {
            groups[count++] = *of;
            continue;
        }
        qsort(&p->order[of->first], (size_t)of->count, sizeof *p->order, by_number);
        for (int k = 0; k < of->count; k++) groups[count++] = (plan_group){-1, of->first + k, 1};
    }
    p->groups = groups;
    p->group_count = count;
}

void run_plan_drop(run *r, run_plan *plan, int index, const char *code, const char *text) {
    leave_out(&plan->fusions[index], &r->arena, code, text);
}

void run_plan_leave_out(const run *r, run_plan *plan, int item) {
    for (int k = 0; k < r->list.flow->occurrence_count; k++) {
        const double us = run_plan_us(r, plan, k);
        if (r->list.flow->occurrences[k].operation == item && us > 0) plan->bound_us -= us;
    }
    plan->operations[item].each_us = 0;
}
