/* The worker: a started program (this one with --worker) that loads devices and plugins, and does one job at a time. */
#pragma once

#include "common/status.h"

typedef struct worker_options {
    int in, out; /* file descriptors of its connection; may be the same one */
    const char *library_path;
    const char *const *plugins;
    int plugin_count;
} worker_options;

/* What the supervisor takes for the device's failure and not for a job's: the text of the step that opens it. */
#define WORKER_STEP_OPEN "opening the device"
/* What it takes for a plugin's failure: the step that loads the file which its variant names. */
#define WORKER_STEP_LOAD "loading a plugin"

/* Until FRAMES_QUIT, the end of the connection (both STATUS_OK), or the loss of the device. */
status_code worker_run(const worker_options *options, status *st);
