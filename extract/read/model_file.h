/* The mapped model and what reading it needs besides the run's arena. Not in the arena itself, because it must outlive
 * a run that failed: read_close gives everything back, whatever was reached. */
#pragma once

#include "extract/read/read.h"
#include "extract/read/wire_schema.h"

struct model_file {
    guard *guard;
    const uint8_t *base;
    uint64_t size;
    arena messages;   /* the one message that is unpacked at the moment */
    arena frames;     /* name tables and lists of the graphs that are being built; last in, first out */
    arena tables;     /* what is looked up from all graphs, but no longer than they are built */
    arena_mark floor; /* of messages */
    int passed;       /* large fields stepped over since pages were given back, and between which bytes */
    uint64_t passed_from, passed_to;
    uint64_t steps;   /* fields read so far, and other work by the byte */
    const char *name; /* of the model; NULL: it is the file's */
    char path[];      /* as given */
};

/* The whole file, to be read. */
wire model_file_wire(model_file *f);
void model_file_refuse_others(const model_file *f); /* a checkpoint, an archive, …: what it is, and what to do */
/* Notes that a large field was stepped over. The pages around it were read from the page cache with their neighbours;
 * now and then all are given back, so that a file of many gigabytes stays out of the process. A wire_schema_passed. */
void model_file_passed(void *file, wire_span field);
void model_file_rest(model_file *f); /* gives the pages back now: most of the reading is done */
