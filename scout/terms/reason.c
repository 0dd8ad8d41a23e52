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
    const char *code, *about;
} codes[] = {
    /* SKIPPED */
    {"outraced", "behind the best by more than both intervals"},
    {"early_exit", "a candidate of higher priority is near enough to the ceiling"},
    {"budget", "the time budget was used up"},
    {"no_candidate", "no implementation of this kind is known here yet"},
    {"not_asked", "left out by --only or --candidate, or a part of another operation"},
    {"no_work", "moves nothing and computes nothing"},
    {"unresolved", "its shape is not known"},
    /* UNSUPPORTED */
    {"type", "not for these data types"},
    {"shape", "not for this shape"},
    {"layout", "not for this layout"},
    {"epilogue", "not with this bias or activation"},
    {"feature", "a property of the operation is not covered"},
    {"hardware", "the device lacks what this needs"},
    {"library", "the library is missing, or has the wrong version"},
    {"capture", "cannot be captured in a graph"},
    {"alignment", "needs another alignment"},
    {"precision", "its library accumulates less exactly than the operation requires"},
    {"weight", "the weight's values cannot be read"},
    {"pattern", "the weight has another pattern of zeros, or no zeros"},
    /* WRONG */
    {"samples", "sampled outputs differ from the reference"},
    {"projection", "the projection of the whole output differs from the reference"},
    {"canary", "wrote outside its output"},
    {"input_changed", "changed its inputs"},
    /* SKIPPED, of reports in which such rows had no time */
    {"interval", "the interval of the median stayed too wide"},
    {"drift", "the blocks disagree by more than their intervals"},
    {"clock", "the clock did not settle"},
    /* TIMEOUT, CRASHED, ERROR */
    {"deadline", "did not answer in time and was ended"},
    {"signal", "the process was ended by a signal"},
    {"exit", "the process ended by itself"},
    {"killed", "the process was ended from outside repeatedly"},
    {"poisoned", "left the device unusable"},
    {"device_lost", "the device went away"},
    {"memory", "not enough memory"},
    {"error", "a call failed"},
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
