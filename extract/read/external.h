/* Files beside the model that hold weights: which ones may be read at all, and whether they are there. */
#ifndef EXTRACT_READ_EXTERNAL_H
#define EXTRACT_READ_EXTERNAL_H

#include "common/map.h"
#include "extract/read/external_links.h"

#include <stdbool.h>
#include <sys/stat.h>

typedef struct external_file {
    const char *location; /* as the model says */
    const char *path;     /* resolved: no links in it; NULL where it can't be read */
    const char *why;      /* why not; NULL where it can */
    uint64_t size;
    dev_t device;
    ino_t inode;
} external_file;

typedef struct external {
    arena *arena;
    map files;          /* location -> external_file */
    const char **names; /* the locations, in order of appearance */
    size_t count, cap;
    const char *model;                        /* the path as given */
    const char *folder;                       /* where the model lies as given, resolved; NULL: not asked yet */
    const char *store;                        /* where the file lies that the model is a link to; NULL: it is no link */
    struct stat about;                        /* the model */
    external_links folder_links, store_links; /* listed when the first hard link is met */
} external;

void external_init(external *e, arena *a, const char *model_path);
/* Looked at once per location. Fails (exit 3) where the location is forbidden; a missing file is normal and has a
 * `why`. */
const external_file *external_find(external *e, const char *location);
/* Reads from a file that was found; fails where it is no longer the same. */
void external_read(guard *g, const external_file *f, uint64_t offset, void *bytes, size_t size);

#endif
