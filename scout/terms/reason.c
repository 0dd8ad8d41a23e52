/* The closed lists: row statuses and reason codes. */
#include "scout/terms/reason.h"

#include <stddef.h>
#include <string.h>

static const char *const status_names[ROW_STATUS_COUNT] = {
    [ROW_OK] = "OK",       [ROW_SKIPPED] = "SKIPPED", [ROW_UNSUPPORTED] = "UNSUPPORTED",
    [ROW_WRONG] = "WRONG", [ROW_TIMEOUT] = "TIMEOUT", [ROW_CRASHED] = "CRASHED",
    [ROW_ERROR] = "ERROR",
};

static const struct {
    row_status status; /* one that it goes with */
    const char *code, *about;
} codes[] = {
    /* SKIPPED */
    {ROW_SKIPPED, "outraced", "behind the best by more than both intervals"},
    {ROW_SKIPPED, "early_exit", "a candidate of higher priority is near enough to the ceiling"},
    {ROW_SKIPPED, "budget", "the time budget was used up"},
    {ROW_SKIPPED, "no_candidate", "no implementation of this kind is known here yet"},
    {ROW_SKIPPED, "not_asked", "left out by --only or --candidate, or a part of another operation"},
    {ROW_SKIPPED, "no_work", "moves nothing and computes nothing"},
    {ROW_SKIPPED, "unresolved", "its shape is not known"},
    /* UNSUPPORTED */
    {ROW_UNSUPPORTED, "type", "not for these data types"},
    {ROW_UNSUPPORTED, "shape", "not for this shape"},
    {ROW_UNSUPPORTED, "layout", "not for this layout"},
    {ROW_UNSUPPORTED, "epilogue", "not with this bias or activation"},
    {ROW_UNSUPPORTED, "feature", "a property of the operation is not covered"},
    {ROW_UNSUPPORTED, "hardware", "the device lacks what this needs"},
    {ROW_UNSUPPORTED, "library", "the library is missing, or has the wrong version"},
    {ROW_UNSUPPORTED, "capture", "cannot be captured in a graph"},
    {ROW_UNSUPPORTED, "alignment", "needs another alignment"},
    {ROW_UNSUPPORTED, "precision", "its library sums less exactly than the operation requires"},
    {ROW_UNSUPPORTED, "weight", "the weight's values cannot be read"},
    {ROW_UNSUPPORTED, "pattern", "the weight has another pattern of zeros, or no zeros"},
    /* WRONG */
    {ROW_WRONG, "samples", "sampled outputs differ from the reference"},
    {ROW_WRONG, "projection", "the projection of the whole output differs from the reference"},
    {ROW_WRONG, "canary", "wrote outside its output"},
    {ROW_WRONG, "input_changed", "changed its inputs"},
    /* SKIPPED, of reports in which such rows had no time */
    {ROW_SKIPPED, "interval", "the interval of the median stayed too wide"},
    {ROW_SKIPPED, "drift", "the blocks disagree by more than their intervals"},
    {ROW_SKIPPED, "clock", "the clock did not settle"},
    /* TIMEOUT, CRASHED, ERROR */
    {ROW_ERROR, "deadline", "did not answer in time and was ended"},
    {ROW_ERROR, "signal", "the process was ended by a signal"},
    {ROW_ERROR, "exit", "the process ended by itself"},
    {ROW_ERROR, "killed", "the process was ended from outside repeatedly"},
    {ROW_ERROR, "poisoned", "left the device unusable"},
    {ROW_ERROR, "device_lost", "the device went away"},
    {ROW_ERROR, "memory", "not enough memory"},
    {ROW_ERROR, "error", "a call failed"},
};

const char *reason_status_name(row_status status) {
    return (unsigned)status < ROW_STATUS_COUNT ? status_names[status] : status_names[ROW_ERROR];
}

bool reason_status_from_name(const char *name, row_status *status) {
    for (int k = 0; k < ROW_STATUS_COUNT; k++) {
        if (strcmp(status_names[k], name) != 0) continue;
        *status = (row_status)k;
        return true;
    }
    if (strcmp(name, "UNSTABLE") != 0) return false;
    *status = ROW_SKIPPED;
    return true;
}

bool reason_status_bad(row_status status) { return status >= ROW_WRONG && status < ROW_STATUS_COUNT; }

const char *reason_about(const char *code) {
    for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++)
        if (strcmp(codes[k].code, code) == 0) return codes[k].about;
    return NULL;
}

bool reason_known(const char *code) { return reason_about(code) != NULL; }

bool reason_bad(const char *code) {
    for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++)
        if (strcmp(codes[k].code, code) == 0) return reason_status_bad(codes[k].status);
    return false;
}
