/* What tests of reports share: a search and a regime, round ceilings, measurements written with single quotes. */
#ifndef TESTS_REPORT_MADE_H
#define TESTS_REPORT_MADE_H

#include "scout/report/report.h"
#include "tests/unit/unit.h"

#include <math.h>

static const int64_t shape[] = {1000, 1000, 1000};
static const regime rules = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_GRAPH};
static const report_search search = {.early_exit = 0.97, .workspace_limit = 1 << 25};
static ceilings best;

/* 100 TFLOP/s and 1 TB/s: a product of 1000 cubed takes at least 20 us, 1 us for its launch included here. */
static void set_up_ceilings(void) {
    best = (ceilings){.launch_s = 1e-6, .plateau_bytes = 1e8, .peak_count = 1, .bandwidth_count = 4};
    snprintf(best.peaks[0].precision, sizeof best.peaks[0].precision, "fp16");
    best.peaks[0].tflops = 100;
    for (int k = 0; k < 4; k++)
        best.bandwidths[k] =
            (ceilings_bandwidth){.bytes = k % 2 ? 1 << 30 : 1 << 16, .read_fraction = k < 2 ? 1 : 0.5, .tbps = 1};
}

static json_t *parsed(const char *text) {
    json_error_t error;
    char copy[8192];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    json_t *root = json_loads(copy, 0, &error);
    if (!root) printf("%s\n%s\n", error.text, copy);
    UNIT_CHECK(root != NULL);
    return root;
}

static void near(double got, double want) {
    if (!UNIT_CHECK(fabs(got - want) <= 1e-9 * fabs(want))) printf("got %.12g, want %.12g\n", got, want);
}

#endif
