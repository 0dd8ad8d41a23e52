/* The walk owns folders that are open, so nothing in it may fail: room for all it can find is taken before. */
#include "extract/read/external_links.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void walk(external_links *links, const char *folder, int depth) { // recursion: bounded by depth
    DIR *d = opendir(folder);
    if (!d) links->cut = true;
    const struct dirent *entry;
    char path[PATH_MAX];
    while (d && (entry = readdir(d))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        struct stat s;
        if (links->entries >= EXTERNAL_LINKS_MAX_ENTRIES) {
            links->cut = true;
            break;
        }
        links->entries++;
        if (fstatat(dirfd(d), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
            links->cut = true;
        } else if (!S_ISDIR(s.st_mode)) {
            if (s.st_nlink > 1) links->items[links->count++] = (external_link){s.st_dev, s.st_ino, 1};
        } else if (depth >= EXTERNAL_LINKS_MAX_FOLDERS ||
                   (size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= sizeof path) {
            links->cut = true;
        } else {
            walk(links, path, depth + 1);
        }
    }
    if (d) closedir(d);
}

static int compare(const void *left, const void *right) {
    const external_link *a = left, *b = right;
    if (a->inode != b->inode) return a->inode < b->inode ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

void external_links_list(external_links *links, arena *a, const char *folder) {
    *links = (external_links){.items = arena_alloc(a, EXTERNAL_LINKS_MAX_ENTRIES * sizeof *links->items)};
    walk(links, folder, 0);
    qsort(links->items, links->count, sizeof *links->items, compare);
    size_t kept = 0;
    for (size_t k = 0; k < links->count; k++) {
        if (kept > 0 && compare(&links->items[kept - 1], &links->items[k]) == 0) {
            links->items[kept - 1].names++;
        } else {
            links->items[kept++] = links->items[k];
        }
    }
    links->count = kept;
}

external_links_verdict external_links_find(const external_links *links, const struct stat *file) {
    const external_link wanted = {.device = file->st_dev, .inode = file->st_ino};
    const external_link *found =
        links->count ? bsearch(&wanted, links->items, links->count, sizeof wanted, compare) : NULL;
    if (found && found->names >= file->st_nlink) return EXTERNAL_LINKS_INSIDE;
    return links->cut ? EXTERNAL_LINKS_UNSEEN : EXTERNAL_LINKS_OUTSIDE;
}
