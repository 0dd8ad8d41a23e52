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
        .name = text, .argument = "X", .kind = CLI_REAL, .offset = offsetof(type, member.field), .min = 0, .max = 1,   \
        .help = about                                                                                                  \
    }
#define THRESHOLDS_OPTIONS(type, member)                                                                               \
    THRESHOLDS_OPTION(type, member, ceiling, "ceiling",                                                                \
                      "efficiency from which nothing is to be gained (0.9); all of these are fractions from 0 to 1"),  \
        THRESHOLDS_OPTION(type, member, ceiling_ci, "ceiling-ci",                                                      \
                          "a ceiling that is known no better than this decides nothing (0.05)"),                       \
        THRESHOLDS_OPTION(type, member, high_proven, "high-proven",                                                    \
                          "HIGH from this share of the model's time on that is proven to be saved (0.05)"),            \
        THRESHOLDS_OPTION(type, member, high_potential, "high-potential", "… or that lies above the ceiling (0.1)"),   \
        THRESHOLDS_OPTION(type, member, medium_proven, "medium-proven", "MEDIUM from this proven share on (0.01)"),    \
        THRESHOLDS_OPTION(type, member, medium_potential, "medium-potential",                                          \
                          "… or this potential one, which is also what pays for a kernel of its own (0.03)"),          \
        THRESHOLDS_OPTION(type, member, margin, "margin", "a winner wins by more than this (0.02)")

bool thresholds_check(const verdict_thresholds *t, status *st); /* false: they contradict each other */

#endif
