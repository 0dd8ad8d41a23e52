/* Files beside the model that hold weights: which ones may be read at all, and whether they are there. */
#pragma once

#include "common/arena.h"
#include "common/map.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { EXTERNAL_LINKS_MAX_ENTRIES = 100000, EXTERNAL_LINKS_MAX_FOLDERS = 8 }; /* that are looked at */

typedef struct external_link { /* a file that has several names */
    dev_t device;
    ino_t inode;
    uint64_t names; /* found */
} external_link;

typedef struct external_links {
    external_link *items; /* sorted; NULL: not listed yet */
    size_t count;
    int entries; /* looked at */
    bool cut;    /* not everything was */
} external_links;

typedef enum external_links_verdict {
    EXTERNAL_LINKS_INSIDE,  /* all names of the file are under the folder */
    EXTERNAL_LINKS_OUTSIDE, /* some are not */
    EXTERNAL_LINKS_UNSEEN   /* some were not seen, but not everything was looked at */
} external_links_verdict;

/* Walks a folder and the folders in it; links to folders are not followed. */
void external_links_list(external_links *links, arena *a, const char *folder);
external_links_verdict external_links_find(const external_links *links, const struct stat *file);

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
