/* What analyze knows of what was measured: the reports of one or more folders, lean enough for 100,000 of them, and the
 * verdicts that follow from them with the thresholds that are asked for. Everything is owned by the study and lives as
 * long as it does; texts are interned, so equal texts are equal pointers. Reports are never edited.
 *
 *     study s;
 *     if (!study_open(&s, &options, &st)) …;      reads all folders; st: why it could not (exit code in it)
 *     … s.groups[0].reports[k] …
 *     study_close(&s);
 *
 * What a report says beside this (candidates, configurations, a weight's zeros) is read again from its file where it is
 * wanted: study_detail. */
#pragma once

#include "common/arena.h"
#include "common/cli.h"
#include "common/map.h"
#include "common/verdict.h"

#include <jansson.h>

enum { STUDY_RANK = 16 };

/* One report. Not-a-number, 0 of counts and NULL: not known. Times are microseconds per occurrence, gains per run. */
typedef struct study_report {
    const char *path;      /* of its file, as it can be opened */
    const char *operation; /* its id; unique in its group */
    const char *device;    /* "cuda:0" */
    const char *name, *op, *what, *layout, *mask, *dtype, *weight_dtype, *precision, *pattern, *key;
    const char *block_mask; /* of an attention; NULL: none */
    double block_density;   /* the share of its blocks that are seen */
    int rank;
    int64_t shape[STUDY_RANK];
    int64_t count, batch;
    double sparsity;
    const char *status, *reason_code, *reason_text; /* of the baseline; reasons are NULL where it is OK */
    bool baseline_own;                              /* no library's */
    const char *baseline, *baseline_variant, *best, *best_variant, *best_approach;
    double baseline_us, baseline_ci, best_us, best_ci; /* medians and half widths (unless known) of the rows named */
    double ratio, ratio_ci;
    const char *rival_approach, *rival, *rival_variant;
    double rival_ratio, rival_ratio_ci;
    double flops, bytes_read, bytes_written;
    double ceiling_us, physical_us, ceiling_ci, launch_us, peak_tflops;
    double least_us; /* what it takes at least, where it has no baseline */
    const char *ceiling_from, *bound;
    bool above_ceiling;
    double clock_mhz, power_w;          /* of the baseline's row */
    const char *taken;                  /* when: "2026-11-22T04:47:34.123Z" */
    double address_best, address_worst; /* ratios over where memory lies, as verdict_facts has them */
    int candidates, bad_rows;           /* rows; those that are WRONG, CRASHED, TIMEOUT or ERROR */
    bool fusion;                        /* of a folder fusions/: in no sum */
    bool sum;                           /* its parts' own times added up, which did not run beside it */
    const char *fusion_pattern, *worth;
    double parts_us, fused_us, speedup, speedup_ci, saved_us;
    int64_t kernels_parts, kernels_fused, selected;
    verdict verdict;           /* with this study's thresholds */
    const char *said;          /* the approach that the report itself says; NULL: it has no verdict */
    const char *const *layers; /* names of the model's nodes that it stands for, in their order; NULL: not known */
    size_t layer_count;
    bool layers_among; /* it stands for some of these, and which is not known */
} study_report;

/* A file that is no report, or one that cannot be true; the rest is read without it. */
typedef struct study_skipped {
    const char *path, *why;
} study_skipped;

/* How the runs went whose reports these are, by run.json beside them; zeros where there is none. */
typedef struct study_course {
    const char *state;     /* of one that has not come to its end: "interrupted", "running", "failed"; else NULL */
    size_t absent, left;   /* operations without a report: not reached, left out by --only */
    size_t unread;         /* operations with a report that cannot be read */
    size_t absent_fusions; /* not reached */
} study_course;

/* What the model takes in memory, by run.json. */
typedef struct study_memory {
    const char *at; /* the node at which the activations take most; NULL: nothing is known */
    int64_t weight_bytes, activation_bytes;
    bool least; /* the size of something is not known */
} study_memory;

typedef struct study_whole_time {
    double us, ci;         /* ci: relative half width; infinite: not known */
    double sum_us, sum_ci; /* of its parts, what fetching their programs takes included; sum_us 0: not known */
} study_whole_time;

/* The model as a whole, by model.json. */
typedef struct study_whole {
    bool known;
    bool same; /* nothing is proven to be faster than the default: `best` is `first` */
    study_whole_time first, best;
    bool given;                        /* `best` is a plan that was given, not the cheapest by the reports */
    bool proven;                       /* all of the ratio's interval is below 1, and it is not elsewhere */
    bool elsewhere;                    /* the plan's outputs are others than the defaults' */
    double ratio, ratio_ci;            /* of best over first; 1 and 0 where they are the same */
    int left_out;                      /* operations that take no part */
    int64_t operations, groups, fused; /* of the plan: occurrences, in so many groups, so many of them of several; 0:
                                          not known */
    int64_t turned;                    /* occurrences that run with their channels last */
} study_whole;

/* What has no figure of what the model's time consists of. */
typedef struct study_partial {
    const char *text;            /* "PARTIAL: 9 of 17 operations have a figure (…)"; NULL: all have one */
    size_t operations, measured; /* that take time in the model, and that have a figure of it */
    size_t late;                 /* that were skipped for want of time */
    double share; /* of the model's time by estimate that the measured ones take; not-a-number: not known */
} study_partial;

/* Reports that may be compared, and that are taken together: one device class, one regime, one version of the method.
 */
typedef struct study_group {
    const char *device;                                           /* what it is called: "NVIDIA H200" */
    const char *device_class, *device_instance, *driver, *regime; /* instance, driver: NULL where they differ */
    int64_t method, units;
    const char *model;  /* the folder's name; of several "a + b", of many "5 models" */
    const char **names; /* of all of them */
    int folder;         /* the first of them */
    size_t models; /* folders that it is of; an operation of several is one that occurs as often as in all of them */
    study_report *reports; /* operations, in the order of their files' names */
    size_t count;
    study_report *fusions;
    size_t fusion_count;
    double model_us, model_ci; /* of all with a baseline, and what those without take at least */
    double measured_us;        /* of those with a baseline */
    verdict_sum measured;      /* the same with its interval */
    size_t without_baseline;   /* that count and have work to do */
    study_course course;
    study_memory memory; /* of one model, as what follows */
    study_whole whole;
    study_partial partial;
} study_group;

typedef void study_told(const study_skipped *files, size_t count);

typedef struct study_options {
    const char *const *folders; /* a model's folder, or one of reports */
    int folder_count;
    verdict_thresholds thresholds;
    study_told *told; /* hears which files were left out where opening fails, when nothing else is left; may be NULL */
    bool layers;      /* read ops.json beside the reports, which names them */
    bool group;       /* devices and regimes that differ become groups, else they are refused (STATUS_INPUT) */
    bool each;        /* folders are not taken as one model: each becomes a group */
    const char *instead; /* what to do then; NULL: what can be done everywhere */
} study_options;

struct study_beside;

typedef struct study {
    guard guard;
    arena arena;
    map texts;
    study_options options;
    struct study_beside *beside; /* of each folder */
    study_group *groups;
    size_t group_count;
    study_skipped *skipped;
    size_t skipped_count;
} study;

bool study_open(study *s, const study_options *options, status *st);
void study_close(study *s);

bool study_has_baseline(const study_report *r);
double study_moment(const char *text); /* seconds since 1970; not-a-number where it tells no moment */
/* Above its ceiling by right: a ceiling is that of all the work, and the best one leaves zeros out. Not so where the
 * baseline, which does it all, is above as well. */
bool study_skips_zeros(const study_report *r);

/* The whole report, the caller's (json_decref); NULL: st says why. */
json_t *study_detail(const study_report *r, status *st);
/* run.json (kind "run") or model.json of the folder that a report's path is in; the caller's. NULL where there is none,
 * or none that can be read: st says why then, and study_open has left it out. */
json_t *study_beside_report(const char *path, const char *kind, status *st);

/* "1.23 ms by the libraries' defaults, 1.10 ms by the plan (47 operations in 29 groups, 12 fused; both measured as a
 * whole; the sums of their parts are 1.19 ms and 1.05 ms)"; and where that is so, how many operations are left out, and
 * that as a whole nothing is proven. */
enum { STUDY_WHOLE_TEXT = 384 };
void study_whole_say(const study_whole *w, char *text, size_t room);
/* What is proven operation by operation was run as a whole, and is not faster there. */
bool study_whole_refutes(const study_whole *w);

const study_report *study_find(const study_group *g,
                               const char *operation);        /* by id, or by a prefix that only one has; fusions too */
bool study_is_report(const study_group *g, const char *path); /* the file is one of the group's */
/* By a layer of the model that it stands for: the operation that has a layer of this name, else the one that has layers
 * with this text in their names; parts of others are never it. How many there are; *first: the first of them. */
size_t study_find_layer(const study_group *g, const char *layer, const study_report **first);
/* The first of its layers and how many more: "/layer.3/query/MatMul and 11 more"; "" where none is known. */
enum { STUDY_LAYERS = 320 }; /* room for every name that extract_ops writes */
const char *study_layers(const study_report *r, char text[STUDY_LAYERS]);
/* "2048x4096x4096", cut to the room; "" where there is none. */
const char *study_shape(const study_report *r, char *text, size_t room);

/* Files that are left out: the first few by name, one line each on stderr, then how many more. */
enum { LEFT_OUT_NAMED = 10 };

study_told left_out_tell;
void left_out_more(size_t more, const char *what); /* "analyze: left out: 12 more files"; nothing for 0 */

/* The options that say from where on something is worth doing: one for each threshold of common/verdict.h.
 *
 *     static const cli_option options[] = {…, THRESHOLDS_OPTIONS(settings, thresholds)};
 *     settings s = {.thresholds = verdict_defaults};
 *     … cli_parse …; if (!thresholds_check(&s.thresholds, &st)) … */
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
