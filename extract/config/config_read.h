/* A config.json as its family reads it. */
#pragma once

#include "common/dtype.h"
#include "common/status.h"
#include "extract/config/config_family.h"

typedef struct config_read {
    const config_family *family;
    const config_head *head;
    const config_activation *activation;
    config_values values; /* complete: what follows from others is filled in */
    unsigned bias;
    dtype type;
    bool quantised; /* the file tells of a quantisation, which is not followed */
} config_read;

/* false: st says why. */
bool config_read_file(config_read *to, const char *path, status *st);
