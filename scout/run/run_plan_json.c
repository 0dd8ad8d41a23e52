/* plan.json: what a dispatcher needs to run the plan, and a replay to run it again. It is read as if a stranger had
 * written it. */
#include "scout/run/run_internal.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { PLAN_BYTES = 64 << 20, MOST_TEXT = 255 };
static const double most_ratio = 1e6;

/* ---- writing ---- */

static void put_proof(json_t *to, const run_planned *of, json_builder *b) {
    if (!(of->ratio > 0)) return;
    json_t *proof = json_new_object(b);
    json_put_known(b, proof, "ratio", of->ratio);
    json_put_known(b, proof, "ratio_ci", of->ratio_ci);
    json_put(b, to, "proof", proof);
}

static json_t *operation_json(const run *r, int item, const run_planned *of, json_builder *b) {
    const report_input in = run_input(r, &r->items[item], -1);
    json_t *to = json_new_object(b);
    report_figures f;
    report_read(&in, &f);
    json_put_text(b, to, "operation", r->list.items[item].id);
    json_put_text(b, to, "candidate", of->name ? of->name : json_get_text(f.baseline_row, "name"));
    json_put_text(b, to, "variant", of->name ? of->variant : json_get_text(f.baseline_row, "variant"));
    if (of->name)
        put_proof(to, of, b);
    else
        json_put_bool(b, to, "default", true);
    return to;
}

static json_t *fusion_json(const run *r, int index, const run_planned *of, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_text(b, to, "fusion", r->fusions.items[index].id);
    json_put_text(b, to, "candidate", of->name);
    json_put_text(b, to, "variant", of->variant);
    put_proof(to, of, b);
    return to;
}

bool *run_plan_items(run *r, const run_plan *plan) {
    bool *runs = arena_array(&r->arena, bool, r->list.count);
    const operation_flow *f = run_plan_flow(r, plan);
    for (int k = 0; k < f->occurrence_count; k++)
        if (f->occurrences[k].operation >= 0) runs[f->occurrences[k].operation] = true;
    return runs;
}

/* What takes part, operations first; `at`: by item and then by fusion where it stands, -1: it does not. */
static json_t *implementations_json(run *r, const run_plan *plan, int *at, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < r->item_count; k++) at[k] = -1;
    const bool *runs = run_plan_items(r, plan);
    for (int k = 0; k < r->list.count; k++) {
        if (!(plan->operations[k].each_us > 0) || !runs[k]) continue;
        at[k] = (int)json_array_size(list);
        json_push(b, list, operation_json(r, k, &plan->operations[k], b));
    }
    for (int g = 0; g < plan->whole.group_count; g++) {
        const int index = plan->whole.groups[g].fusion;
        if (index < 0 || at[r->list.count + index] >= 0) continue;
        at[r->list.count + index] = (int)json_array_size(list);
        json_push(b, list, fusion_json(r, index, &plan->fusions[index], b));
    }
    return list;
}

static json_t *left_out_json(const run *r, const run_plan *plan, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < r->fusions.count; k++) {
        const run_planned *of = &plan->fusions[k];
        if (!of->code) continue;
        json_t *one = json_new_object(b);
        json_put_text(b, one, "fusion", r->fusions.items[k].id);
        json_put_text(b, one, "code", of->code);
        json_put_text(b, one, "text", of->text);
        json_push(b, list, one);
    }
    return list;
}

/* By occurrence of the plan its number in the file: those of ops.json have theirs, conversions are counted on. */
static int *numbers_of(run *r, const run_plan *plan) {
    const int count = run_plan_flow(r, plan)->occurrence_count;
    int *numbers = arena_array(&r->arena, int, count), next = r->list.flow->occurrence_count;
    for (int k = 0; k < count; k++) numbers[k] = !plan->as ? k : plan->as->from[k] >= 0 ? plan->as->from[k] : next++;
    return numbers;
}

static json_t *regions_json(const run *r, const run_plan *plan, json_builder *b) {
    const layouts *l = r->layouts;
    json_t *list = json_new_array(b);
    for (int n = 0; n < l->region_count; n++) {
        if (!plan->turned[n]) continue;
        json_t *one = json_new_array(b);
        for (int k = l->begins[n]; k < l->begins[n + 1]; k++) json_push_int(b, one, l->regions[k]);
        json_push(b, list, one);
    }
    return list;
}

/* Each stands between what makes its tensor and what reads it first, in the order that the occurrences have in the
 * groups. */
static json_t *conversions_json(const run_plan *plan, const int *numbers, json_builder *b) {
    const operation_flow *f = plan->as->flow;
    json_t *list = json_new_array(b);
    for (int k = 0; k < f->occurrence_count; k++) {
        const int tensor = plan->as->converts[k];
        if (tensor < 0) continue;
        json_t *one = json_new_object(b);
        json_put_int(b, one, "occurrence", numbers[k]);
        json_put_int(b, one, "tensor", tensor);
        json_put_text(b, one, "to", f->edges[f->occurrences[k].read] == tensor ? "nhwc" : "nchw");
        json_push(b, list, one);
    }
    return list;
}

void run_plan_to_json(run *r, const run_plan *plan, json_t *to, json_builder *b) {
    const int *numbers = numbers_of(r, plan);
    int *at = arena_array(&r->arena, int, r->item_count);
    json_t *groups = json_new_array(b);
    json_put_real(b, to, "alone_us", plan->alone_us);
    json_put_real(b, to, "cost_us", plan->cost_us);
    json_put_real(b, to, "bound_us", plan->bound_us);
    json_put_int(b, to, "fused", plan->fused);
    json_put(b, to, "implementations", implementations_json(r, plan, at, b));
    for (int g = 0; g < plan->whole.group_count; g++) {
        const plan_group *group = &plan->whole.groups[g];
        const int *members = &plan->whole.order[group->first];
        json_t *row = json_new_array(b);
        const int item = group->fusion >= 0 ? r->list.count + group->fusion
                                            : run_plan_flow(r, plan)->occurrences[*members].operation;
        json_push_int(b, row, item >= 0 ? at[item] : -1);
        for (int k = 0; k < group->count; k++) json_push_int(b, row, numbers[members[k]]);
        json_push(b, groups, row);
    }
    json_put(b, to, "groups", groups);
    if (plan->as) {
        json_put(b, to, "turned", regions_json(r, plan, b));
        json_put(b, to, "conversions", conversions_json(plan, numbers, b));
    }
    json_put(b, to, "left_out", left_out_json(r, plan, b));
}

/* ---- reading ---- */

typedef struct reader {
    run *r;
    const char *path;
    run_plan *to;
    const run_planned *proven; /* by item: what the reports prove */
    map items;                 /* by id: items of the run, of the list and then of the fusions */
    int *item_of;              /* by implementation: such an item */
    int *numbered;             /* by number in the file: an occurrence of the plan */
    bool *met;                 /* by item */
    int count;
    status *st;
} reader;

__attribute__((format(printf, 2, 3))) static bool refuse(reader *x, const char *format, ...) {
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return status_fail(x->st, STATUS_INPUT, "%s: %s", x->path, text);
}

static const char *short_text(reader *x, const json_t *from, const char *key) {
    const char *text = json_get_text_or_null(from, key);
    return text && strlen(text) <= MOST_TEXT ? arena_printf(&x->r->arena, "%s", text) : NULL;
}

static void list_items(reader *x) {
    run *r = x->r;
    map_init(&x->items, &r->arena);
    x->met = arena_array(&r->arena, bool, r->item_count);
    for (int k = r->item_count - 1; k >= 0; k--) *map_put(&x->items, r->items[k].operation->id) = &r->items[k];
}

/* -1: there is none of this id, or it is of the other sort. */
static int item_named(const reader *x, const char *of_operation, const char *of_fusion) {
    if ((of_operation != NULL) == (of_fusion != NULL)) return -1;
    const run_item *i = map_get(&x->items, of_operation ? of_operation : of_fusion);
    return i && (i->fusion != NULL) == (of_fusion != NULL) ? (int)(i - x->r->items) : -1;
}

/* What a launch takes is told by a row of its report. Without one an operation is taken to need what its default takes,
 * and a fusion what its parts do. */
static void find_time(const run *r, int item, run_planned *to) {
    const json_t *rows = json_object_get(r->items[item].measurement, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        const double us = json_get_positive(json_object_get(row, "time_us"), "median");
        if (us > 0 && strcmp(json_get_text(row, "name"), to->name) == 0 &&
            strcmp(json_get_text(row, "variant"), to->variant) == 0)
            to->each_us = us, to->fetch_us = report_fetch_us(row);
    }
}

static bool is_proven(const run_planned *by, const run_planned *of) {
    return by->name && strcmp(by->name, of->name) == 0 && strcmp(by->variant, of->variant) == 0;
}

static bool read_implementation(reader *x, int index, const json_t *from) {
    const char *of_operation = short_text(x, from, "operation"), *of_fusion = short_text(x, from, "fusion");
    const int item = item_named(x, of_operation, of_fusion);
    const json_t *proof = json_object_get(from, "proof");
    const double ratio = json_get_positive(proof, "ratio");
    if (item < 0)
        return refuse(x, "implementation %d is of no operation and no fusion of this model (\"%.80s\")", index,
                      of_operation ? of_operation
                      : of_fusion  ? of_fusion
                                   : "");
    if (x->met[item]) return refuse(x, "implementation %d is of what another one is of before", index);
    x->met[item] = true;
    x->item_of[index] = item;
    run_planned *to = item < x->r->list.count ? &x->to->operations[item] : &x->to->fusions[item - x->r->list.count];
    to->name = json_is_true(json_object_get(from, "default")) ? NULL : short_text(x, from, "candidate");
    to->variant = short_text(x, from, "variant");
    to->ratio = to->ratio_ci = NAN;
    if (item >= x->r->list.count) to->each_us = to->fetch_us = NAN;
    if (proof && !(ratio < most_ratio))
        return refuse(x, "implementation %d has a proof whose ratio is no number above 0 and below %g", index,
                      most_ratio);
    if (item < x->r->list.count && json_is_true(json_object_get(from, "default"))) return true;
    if (!to->name || !*to->name || !to->variant)
        return refuse(x, "implementation %d names no candidate and variant", index);
    const run_planned *proven = &x->proven[item];
    if (is_proven(proven, to)) {
        to->ratio = proven->ratio;
        to->ratio_ci = proven->ratio_ci;
        if (item >= x->r->list.count) to->ci = proven->ci;
    }
    find_time(x->r, item, to);
    return true;
}

/* By the file's numbers. In a region that is turned it has the turned operations. */
static bool is_site(const reader *x, const fusion *f, const int *members) {
    const operation_flow *flow = run_plan_flow(x->r, x->to);
    for (int k = 0; k < f->op_count; k++) {
        if (!run_plan_is_part(x->r, flow, x->numbered[members[k]], f->ops[k])) return false;
    }
    for (int k = 0; k < f->site_count; k++)
        if (memcmp(&f->sites[k * f->op_count], members, (size_t)f->op_count * sizeof *members) == 0) return true;
    return false;
}

static bool read_group(reader *x, int index, const json_t *row) {
    const operation_flow *f = run_plan_flow(x->r, x->to);
    const size_t size = json_array_size(row);
    plan_run *to = &x->to->whole;
    int *members = &to->order[to->occurrence_count];
    const json_t *first = json_array_get(row, 0);
    if (size < 2 || !json_is_integer(first) || json_integer_value(first) < -1 || json_integer_value(first) >= x->count)
        return refuse(x, "group %d names no implementation, or no occurrence", index);
    const int at = (int)json_integer_value(first), item = at >= 0 ? x->item_of[at] : -1;
    if (size - 1 > (size_t)(f->occurrence_count - to->occurrence_count))
        return refuse(x, "group %d: its groups have more occurrences than the model's %d", index, f->occurrence_count);
    for (size_t k = 1; k < size; k++) {
        const json_t *one = json_array_get(row, k);
        if (!json_is_integer(one) || json_integer_value(one) < 0 || json_integer_value(one) >= f->occurrence_count)
            return refuse(x, "group %d names what is no occurrence of the model", index);
        members[k - 1] = (int)json_integer_value(one);
    }
    const int of_fusion = item >= x->r->list.count ? item - x->r->list.count : -1;
    if (of_fusion >= 0 && x->r->fusions.items[of_fusion].how != FUSION_SEQUENCE)
        return refuse(x, "group %d: the parts of %.120s do not lie in what does all at once", index,
                      x->r->fusions.items[of_fusion].id);
    if (of_fusion >= 0 && (size - 1 != (size_t)x->r->fusions.items[of_fusion].op_count ||
                           !is_site(x, &x->r->fusions.items[of_fusion], members)))
        return refuse(x, "group %d: its occurrences are no site of %.120s", index, x->r->fusions.items[of_fusion].id);
    for (size_t k = 0; k + 1 < size; k++) members[k] = x->numbered[members[k]];
    if (of_fusion < 0 && at >= 0 && f->occurrences[members[0]].operation != item)
        return refuse(x, "group %d: the occurrence in it is not of %.120s", index, x->r->list.items[item].id);
    to->groups[to->group_count++] = (plan_group){of_fusion, to->occurrence_count, (int)size - 1};
    to->occurrence_count += (int)size - 1;
    return true;
}

/* Its occurrences are all of a region, in the file's order. */
static int region_told(const reader *x, const json_t *row) {
    const layouts *l = x->r->layouts;
    const json_int_t first = json_integer_value(json_array_get(row, 0));
    const int region = l->region_count > 0 && json_is_integer(json_array_get(row, 0)) && first >= 0 &&
                               first < x->r->list.flow->occurrence_count
                           ? l->region[first]
                           : -1;
    if (region < 0 || json_array_size(row) != (size_t)(l->begins[region + 1] - l->begins[region])) return -1;
    for (size_t k = 0; k < json_array_size(row); k++)
        if (json_integer_value(json_array_get(row, k)) != l->regions[(size_t)l->begins[region] + k]) return -1;
    return region;
}

static bool has_conversions(const reader *x, const json_t *root, const int *numbers) {
    const json_t *told = json_object_get(root, "conversions");
    json_builder b = {0};
    status st = {0};
    if (!x->to->as) return told == NULL;
    json_t *wanted = json_finish(&b, conversions_json(x->to, numbers, &b), &st);
    const bool same = wanted && told && json_equal(told, wanted);
    json_decref(wanted);
    return same;
}

static bool read_turned(reader *x, const json_t *root) {
    const json_t *list = json_object_get(root, "turned");
    run *r = x->r;
    run_plan *to = x->to;
    to->as = NULL;
    to->turned = arena_array(&r->arena, bool, r->layouts->region_count);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const int region = region_told(x, json_array_get(list, k));
        if (region < 0 || to->turned[region])
            return refuse(x, "the occurrences of turned region %zu are no region of this model", k);
        to->turned[region] = true;
    }
    if (json_array_size(list) > 0) to->as = layouts_rewrite(r->layouts, r->list.flow, to->turned, &r->arena);
    const int *numbers = numbers_of(r, to), count = run_plan_flow(r, to)->occurrence_count;
    if (!has_conversions(x, root, numbers))
        return refuse(x, "its conversions are not those that the regions which it turns need");
    x->numbered = arena_array(&r->arena, int, count);
    for (int k = 0; k < count; k++) x->numbered[numbers[k]] = k;
    return true;
}

static bool read_all(reader *x, const json_t *root) {
    const json_t *list = json_object_get(root, "implementations"), *groups = json_object_get(root, "groups");
    if (!read_turned(x, root)) return false;
    const size_t most = (size_t)run_plan_flow(x->r, x->to)->occurrence_count;
    x->count = (int)json_array_size(list);
    if (json_array_size(list) > (size_t)x->r->item_count)
        return refuse(x, "it names more implementations than the model has operations and fusions");
    if (!json_is_array(list) || !json_is_array(groups) || json_array_size(groups) > most)
        return refuse(
            x, "it has no lists of implementations and groups, or more groups than the model's %zu occurrences", most);
    x->item_of = arena_array(&x->r->arena, int, x->count);
    x->to->whole = (plan_run){.order = arena_array(&x->r->arena, int, (int64_t)most),
                              .groups = arena_array(&x->r->arena, plan_group, (int64_t)most)};
    for (int k = 0; k < x->r->list.count; k++) run_plan_by_default(&x->to->operations[k]);
    for (int k = 0; k < x->r->fusions.count; k++) x->to->fusions[k] = (run_planned){.fetch_us = NAN};
    for (int k = 0; k < x->count; k++)
        if (!read_implementation(x, k, json_array_get(list, (size_t)k))) return false;
    if (!run_plan_known(x->r, x->to))
        return refuse(x, "an operation of a region that it turns has no figure here; measure the model again");
    for (int k = 0; k < (int)json_array_size(groups); k++)
        if (!read_group(x, k, json_array_get(groups, (size_t)k))) return false;
    status wrong = {0};
    if (!plan_runs(run_plan_flow(x->r, x->to), &x->to->whole, &x->r->arena, &wrong)) return refuse(x, "%s", wrong.text);
    run_plan_count(x->r, x->to);
    return true;
}

/* What it was made of: another model's, device's or regime's says nothing here. */
static bool is_of_this_run(reader *x, const json_t *root) {
    const run *r = x->r;
    const char *model = json_get_text(root, "model"), *class = json_get_text(json_object_get(root, "device"), "class"),
               *under = json_get_text(root, "regime"), *here = r->list.model ? r->list.model : "";
    char key[64];
    bool is_here = false;
    regime_key(&r->options->regime, key, sizeof key);
    for (int k = 0; k < r->device_count; k++)
        is_here = is_here || strcmp(class, r->devices[k].about->device_class) == 0;
    if (strcmp(model, here) != 0)
        return refuse(x, "it is a plan of the model \"%.120s\", and this one is \"%.120s\"", model, here);
    if (!is_here)
        return refuse(x, "it is a plan for the device \"%.200s\", and this one is \"%.200s\"", class,
                      r->device_count > 0 ? r->devices[0].about->device_class : "");
    if (strcmp(under, key) != 0)
        return refuse(x, "it is a plan under the regime \"%.40s\", and this one is \"%s\"", under, key);
    return true;
}

static void keep_proven(reader *x) {
    const run *r = x->r;
    run_planned *proven = arena_array(&x->r->arena, run_planned, r->item_count);
    for (int k = 0; k < r->item_count; k++)
        proven[k] = k < r->list.count ? x->to->operations[k] : x->to->fusions[k - r->list.count];
    x->proven = proven;
}

bool run_plan_read(run *r, const char *path, run_plan *to, status *st) {
    const json_limits limits = {.bytes = PLAN_BYTES};
    reader x = {.r = r, .path = path, .to = to, .st = st};
    json_t *root = json_read(path, &limits, st);
    run_plan_choose(r, to); /* for what each takes */
    keep_proven(&x);
    list_items(&x);
    const bool good =
        root && json_check_schema(root, "plan", 1, path, st) && is_of_this_run(&x, root) && read_all(&x, root);
    json_decref(root);
    return good;
}
