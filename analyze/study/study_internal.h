/* Shared by the files of study: a report as it was read, and the steps of opening a study. */
#pragma once

#include "analyze/study/study.h"

enum { STUDY_BYTES = 64 << 20, STUDY_DEPTH = 64, STUDY_WHY = 256 };

/* How a file came out. */
typedef enum study_is { STUDY_REPORT, STUDY_SKIPPED, STUDY_OTHER /* of this project, but no report */ } study_is;

/* A row that is OK, as far as it is needed to find the baseline's and the best one's interval. */
typedef struct study_row {
    const char *name, *variant, *status;
    double median_us, ci, clock_mhz, power_w, address_best, address_worst;
} study_row;

/* A report as it was read: texts lie in the bytes that were read until study_scan_texts has found them a place. */
typedef struct study_file {
    study_report report;
    const char *schema, *model, *device_class, *device_instance, *driver, *regime; /* model: the device's name */
    const char *fusion_how;                                                        /* "sum", "sequence" */
    const char *weight;                                                            /* its name, where it has one */
    int64_t method, units;
    bool shaped, rows; /* these members were there */
    study_is is;
    const char *why; /* of STUDY_SKIPPED */
    int folder;      /* which of the options' */
} study_file;

/* study_scan.c: reads the bytes (bytes[n] is a NUL; they change). Rows go to memory that is reused and
 * freed by study_scan_free. Without a study and without its guard, so that several threads can do it. */
typedef struct study_scanner {
    study_row *rows; /* those that are OK, of the last report */
    size_t row_count, row_cap;
    char why[STUDY_WHY];
    bool no_memory;
} study_scanner;
void study_scan(study_scanner *s, char *bytes, size_t n, study_file *to);
void study_scan_free(study_scanner *s);
/* Every text of the report goes to its place among the study's. */
void study_scan_texts(map *texts, study_file *to);

/* study_check.c: what no report can say. false: `why` says what. */
bool study_check(const study_scanner *s, study_file *to, char *why, size_t room);

/* What lies beside the reports of one folder. */
typedef struct study_asked {
    const char *id;
    bool left; /* --only left it out */
} study_asked;
typedef struct study_beside {
    const char *state; /* of run.json; NULL: there is none */
    study_memory memory;
    study_asked *operations, *fusions; /* that the run was to measure */
    size_t operation_count, fusion_count;
    size_t absent, left, absent_fusions; /* of them, without a report */
    size_t unread;                       /* of them, with a report that cannot be read */
    map unreadable;                      /* their ids, by the names of the files */
    const char *device_class, *regime;   /* of run.json; NULL: there is none */
    int64_t method;
    bool joined; /* it is a part of some group */
    map entries; /* of ops.json */
} study_beside;

/* study_beside.c: what a jump out of it must give back. */
typedef struct study_held {
    json_t *run;
    char *bytes;
} study_held;
void study_let_go(study_held *held);
void study_look_beside(study *s, const char *folder, const char *reports, study_held *held, study_beside *to);
/* weight: the name of the report's weight, or NULL. */
void study_name_layers(study *s, const study_beside *b, const char *weight, study_report *r);

/* study_partial.c: of each folder, of a group, and when its times are known. */
void study_count_absent(study *s, const study_file *files, size_t count);
void study_join_course(study_course *c, study_beside *b);
void study_make_partial(study *s, study_group *g);

/* study_load.c: all files of all folders, in the order of the folders and of the names in them; fails through the
 * study's guard. Owned by the caller (free). */
study_file *study_load(study *s, size_t *count);
const char *study_why(const char *text, const char *path); /* "path: why" without its path, which is known */
void study_skip(study *s, const char *path, const char *why);

/* study_group.c: what may be compared, or a failure through the study's guard. */
void study_make_groups(study *s, const study_file *files, size_t count);

/* study_judge.c: times of the model and verdicts of one group. */
void study_judge(study *s, study_group *g);
