/* Trimming: the entries that were not used for the longest time go first, until a tenth of the limit is free again, so
 * that a full cache is not trimmed at every run. Others may write and trim at the same time: what is gone is gone. */
#include "scout/cache/cache_trim.h"

#include "scout/cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char hex[] = "0123456789abcdef";

static bool is_entry(const char *name) { return strspn(name, hex) == 32 && strcmp(name + 32, ".json") == 0; }

static bool is_temp(const char *name) {
    return strncmp(name, CACHE_TEMP_PREFIX, sizeof CACHE_TEMP_PREFIX - 1) == 0 && strlen(name) < 64;
}

static bool add_item(cache_scan *s, int class, const char *name, const struct stat *about) {
    if (s->count == s->room) {
        const size_t room = s->room ? s->room * 2 : 256;
        cache_item *bigger = realloc(s->items, room * sizeof *bigger);
        if (!bigger) return false;
        s->items = bigger;
        s->room = room;
    }
    cache_item *item = &s->items[s->count++];
    *item = (cache_item){.class = class, .temp = is_temp(name), .bytes = (uint64_t)about->st_size};
    snprintf(item->name, sizeof item->name, "%.63s", name);
    item->used_ns = (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
    return true;
}

static bool scan_class(cache_scan *s, int top, int class) {
    const int fd = openat(top, s->classes[class], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    bool good = true;
    if (!folder) {
        if (fd >= 0) close(fd);
        return true; /* gone meanwhile, or not ours to look into */
    }
    for (struct dirent *e; good && (e = readdir(folder));) {
        struct stat about;
        if (!is_entry(e->d_name) && !is_temp(e->d_name)) continue;
        if (fstatat(fd, e->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) continue;
        good = add_item(s, class, e->d_name, &about);
    }
    closedir(folder);
    return good;
}

bool cache_scan_folder(const char *folder, cache_scan *out, status *st) {
    *out = (cache_scan){.count = 0};
    DIR *top = opendir(folder);
    bool good = true;
    if (!top && errno == ENOENT) return true;
    if (!top) {
        status_set(st, STATUS_ENVIRONMENT, "%s: cannot be read: %s", folder, strerror(errno));
        return false;
    }
    for (struct dirent *e; good && out->class_count < CACHE_MAX_CLASSES && (e = readdir(top));) {
        struct stat about;
        if (e->d_name[0] == '.') continue;
        if (fstatat(dirfd(top), e->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(about.st_mode)) continue;
        good = (out->classes[out->class_count] = strdup(e->d_name)) != NULL;
        if (good) out->class_count++;
        good = good && scan_class(out, dirfd(top), out->class_count - 1);
    }
    closedir(top);
    if (good) return true;
    cache_scan_free(out);
    status_set(st, STATUS_ENVIRONMENT, "out of memory");
    return false;
}

void cache_scan_free(cache_scan *s) {
    for (int k = 0; k < s->class_count; k++) free(s->classes[k]);
    free(s->items);
    *s = (cache_scan){.count = 0};
}

static int oldest_first(const void *a, const void *b) {
    const cache_item *x = a, *y = b;
    if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool remove_item(const char *folder, const cache_scan *s, const cache_item *item) {
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s/%s", folder, s->classes[item->class], item->name);
    return n > 0 && (size_t)n < sizeof path && (unlink(path) == 0 || errno == ENOENT);
}

void cache_trim(const cache *c) {
    cache_scan scan;
    status st;
    uint64_t total = 0;
    if (!c->folder || c->read_only || !cache_scan_folder(c->folder, &scan, &st)) return;
    const int64_t now_ns = (int64_t)time(NULL) * 1000000000;
    for (size_t k = 0; k < scan.count; k++) {
        cache_item *item = &scan.items[k];
        const bool abandoned = item->temp && now_ns - item->used_ns > (int64_t)CACHE_TEMP_SECONDS * 1000000000;
        if (abandoned && remove_item(c->folder, &scan, item)) item->bytes = 0;
        total += item->bytes;
    }
    if (total > c->limit) {
        qsort(scan.items, scan.count, sizeof *scan.items, oldest_first);
        for (size_t k = 0; k < scan.count && total > c->limit / 10 * 9; k++)
            if (!scan.items[k].temp && remove_item(c->folder, &scan, &scan.items[k])) total -= scan.items[k].bytes;
    }
    cache_scan_free(&scan);
}
