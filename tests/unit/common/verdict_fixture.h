/* What the tests of verdicts share: a product to judge, and what is expected of its verdict. */
#ifndef TESTS_VERDICT_FIXTURE_H
#define TESTS_VERDICT_FIXTURE_H

#include "common/verdict.h"
#include "tests/unit/unit.h"

#include <math.h>

/* A product that takes 100 us once, and the whole model with it. */
static inline verdict_facts product(double ceiling_us) {
    return (verdict_facts){.op = "gemm",
                           .pattern = "DENSE",
                           .device = "cuda:0",
                           .bound = "compute",
                           .measured = true,
                           .ceiling_us = ceiling_us,
                           .baseline_us = 100,
                           .count = 1,
                           .model_us = 100,
                           .shape = {4096, 4096, 4096},
                           .units = 132,
                           .baseline_name = "lib"};
}

static inline verdict judge(const verdict_facts *f) { return verdict_of(f, NULL); }

static inline void wants(const verdict_facts *f, const char *approach, const char *priority, bool borderline) {
    const verdict v = judge(f);
    UNIT_TEXT(v.approach, approach);
    UNIT_TEXT(v.priority, priority);
    UNIT_INT(v.borderline, borderline);
    UNIT_CHECK(v.recommendation[0] != 0);
    UNIT_CHECK(v.proven_gain_us >= 0 && v.potential_gain_us >= 0);
}

#endif
