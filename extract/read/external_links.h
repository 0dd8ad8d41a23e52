/* Files with several names: which of their names lie under a folder. One walk answers for all files, because a model of
 * thousands of weight files may have been copied by linking each of them. */
#ifndef EXTRACT_READ_EXTERNAL_LINKS_H
#define EXTRACT_READ_EXTERNAL_LINKS_H

#include "common/arena.h"

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

#endif
