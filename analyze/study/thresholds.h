/* The options that say from where on something is worth doing: one line for each threshold of common/verdict.h, named
 * as it is, for every command that judges.
 *
 *     static const cli_option options[] = {…, THRESHOLDS_OPTIONS(settings, thresholds)};
 *     settings s = {.thresholds = verdict_defaults};
 *     … cli_parse …; if (!thresholds_check(&s.thresholds, &st)) …
 */
#ifndef ANALYZE_STUDY_THRESHOLDS_H
#define ANALYZE_STUDY_THRESHOLDS_H

#include "common/cli.h"
#include "common/verdict.h"

#define THRESHOLDS_OPTION(type, member, field, text, about)                                                            \
    {                                                                                                                  \
        .name = (text), .argument = "X", .kind = CLI_REAL, .offset = offsetof(type, member.field), .min = 0, .max = 1, \
        .help = (about)                                                                                                \
    }
#define THRESHOLDS_OPTIONS(type, member)                                                                               \
    THRESHOLDS_OPTION(                                                                                                 \
        type, member, ceiling, "ceiling",                                                                              \
        "efficiency from which on an operation is optimal (0.9); all thresholds are fractions from 0 to 1"),           \
        THRESHOLDS_OPTION(type, member, ceiling_ci, "ceiling-ci",                                                      \
                          "widest interval of a ceiling that may decide a verdict (0.05)"),                            \
        THRESHOLDS_OPTION(type, member, high_proven, "high-proven",                                                    \
                          "HIGH from this share of the model's time on as proven gain (0.05)"),                        \
        THRESHOLDS_OPTION(type, member, high_potential, "high-potential",                                              \
                          "HIGH from this share on as potential gain (0.1)"),                                          \
        THRESHOLDS_OPTION(type, member, medium_proven, "medium-proven",                                                \
                          "MEDIUM from this share on as proven gain (0.01)"),                                          \
        THRESHOLDS_OPTION(                                                                                             \
            type, member, medium_potential, "medium-potential",                                                        \
            "MEDIUM from this share on as potential gain, the least that pays for a custom kernel (0.03)"),            \
        THRESHOLDS_OPTION(type, member, margin, "margin", "least fraction of time that a winner must save (0.02)")

bool thresholds_check(const verdict_thresholds *t, status *st); /* false: they contradict each other */

#endif
