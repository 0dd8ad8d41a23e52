/* Owns the list of candidates that hung or crashed in this run, so that what is found out twice is not found out again
 * for every operation of a model. The baseline is spared as far as can be: of it only the very variant is left out. */
#include "scout/run/run_internal.h"

#include "common/json.h"

#include <stdlib.h>
#include <string.h>

static run_fault *find(run *r, const char *name, const char *variant) {
    for (int k = 0; k < r->fault_count; k++)
        if (strcmp(r->faults[k].name, name) == 0 && strcmp(r->faults[k].variant, variant) == 0) return &r->faults[k];
    run_fault *more = realloc(r->faults, ((size_t)r->fault_count + 1) * sizeof *more);
    if (!more) return NULL; /* then it is found out again */
    r->faults = more;
    run_fault *f = &r->faults[r->fault_count++];
    memset(f, 0, sizeof *f);
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->variant, sizeof f->variant, "%s", variant);
    return f;
}

void run_faults_note(run *r, const run_item *i) {
    const json_t *rows = json_object_get(i->measurement, "candidates");
    const char *baseline = json_get_text(i->measurement, "baseline");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k), *reason = json_object_get(row, "reason");
        const char *name = json_get_text(row, "name");
        const char *variant = strcmp(name, baseline) == 0 ? json_get_text(row, "variant") : "";
        row_status how = ROW_OK;
        if (!reason_status_from_name(json_get_text(row, "status"), &how)) continue;
        if (how != ROW_TIMEOUT && how != ROW_CRASHED) continue;
        const char *code = json_get_text(reason, "code");
        if (strcmp(code, "device_lost") == 0 || strcmp(code, "killed") == 0) continue; /* not the candidate's doing */
        if (strlen(name) >= sizeof r->faults->name || strlen(variant) >= sizeof r->faults->variant) continue;
        run_fault *f = find(r, name, variant);
        if (!f || f->where[1] || f->where[0] == i->operation) continue;
        f->where[f->where[0] != NULL] = i->operation;
        f->status = how;
        snprintf(f->code, sizeof f->code, "%s", code);
        if (f->where[1])
            run_warn(r, "%s%s%s: left out from now on, it %s in %s and %s", f->name, *f->variant ? " " : "", f->variant,
                     how == ROW_TIMEOUT ? "hung" : "crashed", f->where[0]->name, f->where[1]->name);
    }
}

json_t *run_faults_exclusions(const run *r, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < r->fault_count; k++) {
        const run_fault *f = &r->faults[k];
        char text[160];
        if (!f->where[1]) continue;
        snprintf(text, sizeof text, "left out: it %s in %.50s and %.50s", f->status == ROW_TIMEOUT ? "hung" : "crashed",
                 f->where[0]->name, f->where[1]->name);
        json_t *one = json_new_object(b);
        json_put_text(b, one, "name", f->name);
        json_put_text(b, one, "variant", f->variant);
        json_put_text(b, one, "status", reason_status_name(f->status));
        json_put_text(b, one, "code", f->code);
        json_put_text(b, one, "text", text);
        json_push(b, list, one);
    }
    return list;
}
