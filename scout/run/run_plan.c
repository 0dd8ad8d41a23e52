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
    const operation_flow *flow; /* of the run that is planned */
    const int *at;              /* by occurrence of the file: its own in that run; NULL: itself */
    const scout_op **ops;       /* by item of the list; NULL: not asked for yet */
    const int *reads;
    choose_group *groups;
    int *fusions; /* by group */
    int count;
} planner;

/* ---- what each runs as ---- */

/* Of what is not proven by itself: so much less time that the model as a whole, which is measured, is to decide. */
static const double likely = 0.9;

void run_plan_by_default(run_planned *to) {
    to->name = NULL;
    to->each_us = to->default_us;
    to->ci = to->default_ci;
    to->fetch_us = to->default_fetch_us;
}

double run_plan_launch_us(double alone_us, double fetch_us) {
    return alone_us > 0 && fetch_us > 0 ? alone_us + fetch_us : alone_us;
}

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
    to->fetch_us = report_fetch_us(leader);
}

static void read_operation(const run *r, int item, run_planned *to) {
    const report_input in = run_input(r, &r->items[item], -1);
    report_figures f;
    report_read(&in, &f);
    to->fetch_us = to->default_fetch_us = NAN;
    if (!f.baseline_row) return;
    const bool proven = f.best_row && f.best_row != f.baseline_row && f.proven_us < f.baseline_us;
    to->default_us = f.baseline_us;
    to->default_ci = f.baseline_ci;
    to->default_fetch_us = f.baseline_fetch_us;
    to->each_us = proven ? f.proven_us : f.baseline_us;
    to->ci = proven ? f.best_ci : f.baseline_ci;
    to->fetch_us = proven ? f.best_fetch_us : f.baseline_fetch_us;
    if (!proven) take_leader(&r->items[item], to);
    if (isnan(to->fetch_us)) to->fetch_us = to->default_fetch_us;
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
    to->ratio_ci = strcmp(x->worth, "yes") == 0 ? x->ratio_ci : NAN; /* an interval is said of what is proven */
    to->each_us = x->fused_us;
    to->ci = hypot(x->ratio_ci, figures.baseline_ci);
    to->fetch_us = x->fetch_us;
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
        const int item = p->flow->occurrences[site[k]].operation; /* it has a figure */
        if (list->items[item].sparsity > 0) {
            (void)scout_say(why, SCOUT_NO, "layout", "what is known of its weight's zeros would be lost");
            return false;
        }
        if (!p->ops[item]) p->ops[item] = build(p, &list->items[item], why);
        if (!p->ops[item]) return false;
        ops[k] = p->ops[item];
    }
    return binding_fused(p->flow, site, &about, &found, why);
}

const operation_flow *run_plan_flow(const run *r, const run_plan *plan) {
    return plan->as ? plan->as->flow : r->list.flow;
}

static double each_us(const run_plan *plan, const operation_occurrence *at) {
    const run_planned *of = at->operation >= 0 ? &plan->operations[at->operation] : NULL;
    return of && of->each_us > 0 ? (double)at->times * run_plan_launch_us(of->each_us, of->fetch_us) : NAN;
}

double run_plan_us(const run *r, const run_plan *plan, int occurrence) {
    return each_us(plan, &run_plan_flow(r, plan)->occurrences[occurrence]);
}

/* The parts' own times alone, by the ratio that was measured beside them, if it is known, and what one launch
 * takes more in a model. Where that of a part is not known, all of it goes by the ratio. Not a number: a part has no
 * time. */
static double cost_of(const run *r, const run_plan *plan, int index, const int *site) {
    const run_planned *fused = &plan->fusions[index];
    const double ratio = fused->ratio > 0 ? fused->ratio : 1; /* of a given plan it need not be known */
    bool known = isfinite(fused->fetch_us);
    double alone = 0, sum = 0, times = 0;
    for (int k = 0; k < r->fusions.items[index].op_count; k++) {
        const operation_occurrence *at = &run_plan_flow(r, plan)->occurrences[site[k]];
        const run_planned *of = at->operation >= 0 ? &plan->operations[at->operation] : NULL;
        times = (double)at->times;
        sum += each_us(plan, at);
        alone += of ? times * of->each_us : 0;
        known = known && of && isfinite(of->fetch_us);
    }
    if (!known || isnan(sum)) return ratio * sum;
    return ratio * alone + times * fused->fetch_us;
}

/* One that was split by its weights stands there under several items of its entry. */
bool run_plan_is_part(const run *r, const operation_flow *f, int occurrence, const operation *part) {
    const int item = f->occurrences[occurrence].operation;
    const operation *is = item >= 0 ? &r->list.items[item] : NULL;
    return is == part || (is && is->source && is->source == part->source);
}

/* A place of a fusion in the run that is planned; false: its operations are others there, turned or not. */
static bool is_site(const planner *p, const fusion *f, int *site) {
    for (int k = 0; k < f->op_count; k++) {
        site[k] = p->at ? p->at[site[k]] : site[k];
        if (!run_plan_is_part(p->r, p->flow, site[k], f->ops[k])) return false;
    }
    return true;
}

static void add_sites(planner *p, int index) {
    const fusion *f = &p->r->fusions.items[index];
    run_planned *about = &p->to->fusions[index];
    scout_why why = {.code = ""};
    const scout_op *fused = build(p, &f->fused, &why);
    if (!fused) leave_out(about, &p->r->arena, why.code, why.text);
    for (int k = 0; fused && k < f->site_count; k++) {
        int *site = arena_array(&p->r->arena, int, f->op_count);
        memcpy(site, &f->sites[k * f->op_count], (size_t)f->op_count * sizeof *site);
        if (!is_site(p, f, site)) continue;
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
    const int count = p->flow->occurrence_count;
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

/* Of a run in which every operation has its figure, or has none in the file's order either. */
static void plan_run_of(run *r, run_plan *to) {
    const operation_flow *f = run_plan_flow(r, to);
    planner p = {.r = r, .to = to, .flow = f, .at = to->as ? to->as->at : NULL, .reads = binding_reads(f, &r->arena)};
    const plan_needs needs = plan_needs_of(f, &r->arena);
    double *costs = arena_array(&r->arena, double, f->occurrence_count);
    int64_t sites = 0;
    p.ops = arena_array(&r->arena, const scout_op *, r->list.count);
    for (int k = 0; k < r->fusions.count; k++) sites += r->fusions.items[k].site_count;
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

bool run_plan_known(const run *r, const run_plan *plan) {
    const layouts_run *as = plan->as;
    for (int k = 0; as && k < as->flow->occurrence_count; k++) {
        const int from = as->from[k];
        if (as->flow->occurrences[k].operation < 0) continue; /* a transposition that does nothing */
        const bool file = from < 0 || each_us(plan, &r->list.flow->occurrences[from]) > 0;
        if (file != (each_us(plan, &as->flow->occurrences[k]) > 0)) return false; /* both lanes do the same work */
    }
    return true;
}

/* The same with one more region turned, where that is known and takes less. */
static void try_region(run *r, run_plan *to, const run_plan *begun, int region) {
    const arena_mark mark = arena_save(&r->arena);
    run_plan other = *begun;
    const int regions = r->layouts->region_count;
    other.fusions = arena_array(&r->arena, run_planned, r->fusions.count);
    memcpy(other.fusions, begun->fusions, (size_t)r->fusions.count * sizeof *other.fusions);
    other.turned = arena_array(&r->arena, bool, regions);
    memcpy(other.turned, to->turned, (size_t)regions * sizeof *other.turned);
    other.turned[region] = true;
    other.as = layouts_rewrite(r->layouts, r->list.flow, other.turned, &r->arena);
    const bool known = run_plan_known(r, &other);
    if (known) plan_run_of(r, &other);
    const double bound = known ? fmin(to->bound_us, other.bound_us) : to->bound_us;
    if (known && other.cost_us < to->cost_us)
        *to = other;
    else
        arena_rewind(&r->arena, mark);
    to->bound_us = bound;
}

/* What a fusion can save of a region. */
static const double saved = 1.2;

typedef enum turning { TURNING_UNKNOWN, TURNING_YES, TURNING_NO } turning;

static turning may_turn(run *r, int region) {
    const layouts *l = r->layouts;
    const operation_flow *flow = r->list.flow;
    const arena_mark mark = arena_save(&r->arena);
    run_planned *of = arena_array(&r->arena, run_planned, r->list.count);
    bool *read = arena_array(&r->arena, bool, r->list.count), known = true, pending = false;
    double file_us = 0, turned_us = 0;
    for (int k = l->begins[region]; k < l->begins[region + 1]; k++) {
        const operation_occurrence *at = &flow->occurrences[l->regions[k]];
        const int items[] = {at->operation, l->turned[l->regions[k]]};
        for (int n = 0; n < 2; n++) {
            if (!read[items[n]]) read_operation(r, items[n], &of[items[n]]);
            read[items[n]] = true;
        }
        pending = pending || r->items[items[1]].source == RUN_PENDING;
        known = known && (of[items[1]].each_us > 0) == (of[items[0]].each_us > 0);
        file_us += (double)at->times * fmax(run_plan_launch_us(of[items[0]].each_us, of[items[0]].fetch_us), 0);
        turned_us += (double)at->times * fmax(run_plan_launch_us(of[items[1]].each_us, of[items[1]].fetch_us), 0);
    }
    arena_rewind(&r->arena, mark);
    if (pending) return TURNING_UNKNOWN;
    return known && turned_us < saved * file_us ? TURNING_YES : TURNING_NO;
}

bool run_plan_may_turn(run *r, const fusion *f) {
    const int region = f->site_count > 0 ? r->layouts->region[f->sites[0]] : -1;
    if (region < 0) return false;
    if (!r->may_turn) r->may_turn = arena_array(&r->arena, uint8_t, r->layouts->region_count);
    if (r->may_turn[region] == TURNING_UNKNOWN) r->may_turn[region] = may_turn(r, region);
    return r->may_turn[region] != TURNING_NO;
}

/* Operations and fusions as what each is best, and nothing chosen. */
static void begin(run *r, run_plan *to) {
    *to = (run_plan){.operations = arena_array(&r->arena, run_planned, r->list.count),
                     .fusions = arena_array(&r->arena, run_planned, r->fusions.count),
                     .turned = arena_array(&r->arena, bool, r->layouts->region_count)};
    for (int k = 0; k < r->list.count; k++) read_operation(r, k, &to->operations[k]);
    for (int k = 0; k < r->fusions.count; k++) read_fusion(r, k, &to->fusions[k]);
}

static int size_of(const layouts *l, int region) { return l->begins[region + 1] - l->begins[region]; }

/* The largest ones, one after another: what one costs hardly depends on the others. */
void run_plan_choose(run *r, run_plan *to) {
    enum { MOST_REGIONS = 16 };
    const layouts *l = r->layouts;
    run_plan begun;
    begin(r, &begun);
    *to = begun;
    to->fusions = arena_array(&r->arena, run_planned, r->fusions.count);
    memcpy(to->fusions, begun.fusions, (size_t)r->fusions.count * sizeof *to->fusions);
    plan_run_of(r, to);
    bool *tried = arena_array(&r->arena, bool, l->region_count);
    for (int n = 0; !r->no_layouts && n < l->region_count && n < MOST_REGIONS; n++) {
        int largest = -1;
        for (int k = 0; k < l->region_count; k++)
            if (!tried[k] && (largest < 0 || size_of(l, k) > size_of(l, largest))) largest = k;
        tried[largest] = true;
        try_region(r, to, &begun, largest);
    }
}

double run_plan_fused_us(const run *r, const run_plan *plan, const plan_group *g) {
    return cost_of(r, plan, g->fusion, &plan->whole.order[g->first]);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

void run_plan_count(const run *r, run_plan *plan) {
    const plan_run *p = &plan->whole;
    plan->fused = 0;
    plan->alone_us = plan->cost_us = 0;
    for (int k = 0; k < r->list.flow->occurrence_count; k++) {
        const double us = each_us(plan, &r->list.flow->occurrences[k]);
        if (us > 0) plan->alone_us += us;
    }
    for (int g = 0; g < p->group_count; g++) {
        const plan_group *of = &p->groups[g];
        double alone = 0;
        for (int k = 0; k < of->count; k++) {
            const double us = run_plan_us(r, plan, p->order[of->first + k]);
            if (us > 0) alone += us;
        }
        const double fused = of->fusion >= 0 ? run_plan_fused_us(r, plan, of) : NAN;
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
    const operation_flow *f = run_plan_flow(r, plan);
    for (int k = 0; k < f->occurrence_count; k++) {
        const double us = run_plan_us(r, plan, k);
        if (f->occurrences[k].operation == item && us > 0) plan->bound_us -= us;
    }
    plan->operations[item].each_us = 0;
}
