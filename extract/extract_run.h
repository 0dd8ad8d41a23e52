/* One run of extract_ops: a model in, ops.json (and tensors.json, and a table) out. */
#pragma once

#include "common/status.h"
#include "extract/config/config.h"
#include "extract/read/read.h"

typedef struct extract_options {
    const char *model_path;   /* or the config.json's */
    const config_run *config; /* NULL: the path is a model's */
    const char *ops_path;     /* NULL: no file */
    const char *tensors_path; /* NULL: no file */
    const char *precision;    /* "model", "fp16", "bf16", "fp32" */
    read_options read;
    bool quiet;
} extract_options;

/* STATUS_OK, STATUS_INCOMPLETE (files written, something unresolved), or a failure with its text and no file. */
status_code extract_run(const extract_options *options, status *st);
