/* Shared by the files of study: what a report says beside what is kept of it, and the steps of opening a study. */
#ifndef ANALYZE_STUDY_INTERNAL_H
#define ANALYZE_STUDY_INTERNAL_H

#include "analyze/study.h"

/* A report as it was read. Texts are the study's. */
typedef struct study_file {
    study_report report;
    const char *model, *device_class, *device_instance, *driver, *regime; /* of the device: model is its name */
    int64_t method, units;
    const char *fusion_how; /* "sum", "sequence" */
    size_t folder;          /* which of the options' */
} study_file;

/* study_read.c: one file. NULL: it is a report and in `to`; else why it is none. Fails through the study's guard. */
const char *study_read(study *s, const char *path, study_file *to);

/* study_judge.c: times of the model and verdicts of one group. */
void study_judge(study *s, study_group *g);

#endif
