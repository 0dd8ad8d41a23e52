/* Owns the reading of one report: which members are kept, and what cannot be true. */
#include "analyze/study_internal.h"

#include "common/json.h"

#include <math.h>
#include <string.h>

typedef enum field_kind { TEXT, NUMBER, WHOLE, BOOL } field_kind;

typedef struct field {
    const char *object; /* the member that holds it; NULL: the root */
    const char *key;
    field_kind kind;
    size_t offset; /* in study_file */
} field;

#define AT(member) offsetof(study_file, member)

static const field fields[] = {
    {NULL, "operation", TEXT, AT(report.operation)},
    {NULL, "name", TEXT, AT(report.name)},
    {NULL, "op", TEXT, AT(report.op)},
    {NULL, "what", TEXT, AT(report.what)},
    {NULL, "layout", TEXT, AT(report.layout)},
    {NULL, "mask", TEXT, AT(report.mask)},
    {NULL, "dtype", TEXT, AT(report.dtype)},
    {NULL, "weight_dtype", TEXT, AT(report.weight_dtype)},
    {NULL, "precision", TEXT, AT(report.precision)},
    {NULL, "pattern", TEXT, AT(report.pattern)},
    {NULL, "key", TEXT, AT(report.key)},
    {NULL, "count", WHOLE, AT(report.count)},
    {NULL, "batch", WHOLE, AT(report.batch)},
    {NULL, "sparsity", NUMBER, AT(report.sparsity)},
    {NULL, "status", TEXT, AT(report.status)},
    {"reason", "code", TEXT, AT(report.reason_code)},
    {"reason", "text", TEXT, AT(report.reason_text)},
    {NULL, "baseline", TEXT, AT(report.baseline)},
    {NULL, "baseline_variant", TEXT, AT(report.baseline_variant)},
    {NULL, "best", TEXT, AT(report.best)},
    {NULL, "best_variant", TEXT, AT(report.best_variant)},
    {NULL, "best_approach", TEXT, AT(report.best_approach)},
    {NULL, "baseline_time_us", NUMBER, AT(report.baseline_us)},
    {NULL, "best_time_us", NUMBER, AT(report.best_us)},
    {NULL, "ratio", NUMBER, AT(report.ratio)},
    {NULL, "ratio_ci", NUMBER, AT(report.ratio_ci)},
    {"rival", "approach", TEXT, AT(report.rival_approach)},
    {"rival", "ratio", NUMBER, AT(report.rival_ratio)},
    {"rival", "ratio_ci", NUMBER, AT(report.rival_ratio_ci)},
    {NULL, "flops", NUMBER, AT(report.flops)},
    {NULL, "bytes_read", NUMBER, AT(report.bytes_read)},
    {NULL, "bytes_written", NUMBER, AT(report.bytes_written)},
    {NULL, "ceiling_time_us", NUMBER, AT(report.ceiling_us)},
    {NULL, "ceiling_ci", NUMBER, AT(report.ceiling_ci)},
    {NULL, "launch_us", NUMBER, AT(report.launch_us)},
    {NULL, "peak_tflops", NUMBER, AT(report.peak_tflops)},
    {NULL, "ceiling_from", TEXT, AT(report.ceiling_from)},
    {NULL, "bound", TEXT, AT(report.bound)},
    {NULL, "above_ceiling", BOOL, AT(report.above_ceiling)},
    {NULL, "approach", TEXT, AT(report.said)},
    {NULL, "regime", TEXT, AT(regime)},
    {NULL, "method", WHOLE, AT(method)},
    {"device", "name", TEXT, AT(report.device)},
    {"device", "model", TEXT, AT(model)},
    {"device", "class", TEXT, AT(device_class)},
    {"device", "instance", TEXT, AT(device_instance)},
    {"device", "driver", TEXT, AT(driver)},
    {"device", "units", WHOLE, AT(units)},
    {"fusion", "pattern", TEXT, AT(report.fusion_pattern)},
    {"fusion", "worth", TEXT, AT(report.worth)},
    {"fusion", "how", TEXT, AT(fusion_how)},
    {"fusion", "parts_time_us", NUMBER, AT(report.parts_us)},
    {"fusion", "fused_time_us", NUMBER, AT(report.fused_us)},
    {"fusion", "speedup", NUMBER, AT(report.speedup)},
    {"fusion", "speedup_ci", NUMBER, AT(report.speedup_ci)},
    {"fusion", "saved_us", NUMBER, AT(report.saved_us)},
    {"fusion", "kernels_parts", WHOLE, AT(report.kernels_parts)},
    {"fusion", "kernels_fused", WHOLE, AT(report.kernels_fused)},
    {"fusion", "selected", WHOLE, AT(report.selected)},
};

static const char *text_of(study *s, const json_t *value) {
    return json_is_string(value) ? map_intern(&s->texts, json_string_value(value), json_string_length(value)) : NULL;
}

static void take(study *s, const json_t *root, const field *f, study_file *to) {
    const json_t *holder = f->object ? json_object_get(root, f->object) : root;
    const json_t *value = json_object_get(holder, f->key);
    char *at = (char *)to + f->offset;
    switch (f->kind) {
    case TEXT: *(const char **)(void *)at = text_of(s, value); break;
    case NUMBER: *(double *)(void *)at = json_is_number(value) ? json_number_value(value) : NAN; break;
    case WHOLE: *(int64_t *)(void *)at = json_integer_value(value); break;
    case BOOL: *(bool *)at = json_is_true(value); break;
    }
}

static bool is_text(const json_t *row, const char *key, const char *text) {
    const char *is = json_string_value(json_object_get(row, key));
    return is && text && strcmp(is, text) == 0;
}

static void take_row(const json_t *row, study_report *r) {
    static const char *const bad[] = {"WRONG", "CRASHED", "TIMEOUT", "ERROR", "UNSTABLE"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) r->bad_rows += is_text(row, "status", bad[k]);
    r->candidates++;
    if (!is_text(row, "status", "OK")) return;
    const double ci = json_number_value(json_object_get(json_object_get(row, "time_us"), "rel_ci95"));
    if (is_text(row, "name", r->baseline) && is_text(row, "variant", r->baseline_variant)) {
        r->baseline_ci = ci;
        r->clock_mhz = json_number_value(json_object_get(row, "clock_mhz"));
        r->power_w = json_number_value(json_object_get(row, "power_w"));
    }
    if (is_text(row, "name", r->best) && is_text(row, "variant", r->best_variant)) r->best_ci = ci;
}

const char *study_read(study *s, const char *path, study_file *to) {
    const json_limits limits = {.bytes = (size_t)64 << 20};
    status st = {0};
    json_t *root = json_read(path, &limits, &st);
    if (root && !json_check_schema(root, "report", 1, path, &st)) {
        json_decref(root);
        root = NULL;
    }
    if (!root) return map_intern(&s->texts, st.text, strlen(st.text));
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) take(s, root, &fields[k], to);
    const json_t *shape = json_object_get(root, "shape"), *rows = json_object_get(root, "candidates");
    study_report *r = &to->report;
    r->path = path;
    r->rank = json_array_size(shape) < STUDY_RANK ? (int)json_array_size(shape) : STUDY_RANK;
    for (int k = 0; k < r->rank; k++) r->shape[k] = json_integer_value(json_array_get(shape, (size_t)k));
    for (size_t k = 0; k < json_array_size(rows); k++) take_row(json_array_get(rows, k), r);
    r->fusion = json_is_object(json_object_get(root, "fusion"));
    json_decref(root);
    if (!r->operation || !r->op || !r->status || !to->regime || !to->device_class) return "a member is missing";
    return NULL;
}
