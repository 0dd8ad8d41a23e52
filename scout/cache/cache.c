/* The cache's entries. A file's name is the hash of its key; the file says the key again, so that two keys of one hash
 * are no hit for each other. It is one line of JSON whose last member is the value, and the checksum is that of the
 * value's bytes as they stand there: a hit reads the file once and parses nothing but the value. */
#include "scout/cache/cache.h"

#include "common/files.h"
#include "common/status.h"
#include "scout/cache/cache_parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

/* Trimming: the entries that were not used for the longest time go first, until a tenth of the limit is free again, so
 * that a full cache is not trimmed at every run. Others may write and trim at the same time: what is gone is gone. */

/* A file that is being written; what is older than CACHE_TEMP_SECONDS has lost its writer. */
#define CACHE_TEMP_PREFIX ".new."
enum { CACHE_TEMP_SECONDS = 3600, CACHE_MAX_CLASSES = 1024 };

typedef struct cache_item {
    char name[64];
    int class; /* index of its folder */
    bool temp;
    uint64_t bytes;
    int64_t used_ns; /* when last, since 1970 */
} cache_item;

typedef struct cache_scan {
    char *classes[CACHE_MAX_CLASSES]; /* names of folders, owned */
    int class_count;
    cache_item *items; /* owned: cache_scan_free */
    size_t count, room;
} cache_scan;

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

static void cache_scan_free(cache_scan *s) {
    for (int k = 0; k < s->class_count; k++) free(s->classes[k]);
    free(s->items);
    *s = (cache_scan){.count = 0};
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

/* Only files whose names the cache makes; others are none of ours. A folder that is not there has nothing. */
static bool cache_scan_folder(const char *folder, cache_scan *out, status *st) {
    *out = (cache_scan){.count = 0};
    DIR *top = opendir(folder);
    bool good = true;
    if (!top && errno == ENOENT) return true;
    if (!top) return status_fail(st, STATUS_ENVIRONMENT, "%s: cannot be read: %s", folder, strerror(errno));
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
    return status_fail(st, STATUS_ENVIRONMENT, "out of memory");
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

#define SCHEMA "ceiling-scout/cache/1"

enum { MAX_ENTRY_BYTES = 32 << 20, TOUCH_SECONDS = 3600 };

bool cache_default_folder(char *path, size_t room) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (xdg && xdg[0] == '/') {
        n = snprintf(path, room, "%s/ceiling-scout", xdg);
    } else if (home && home[0] == '/') {
        n = snprintf(path, room, "%s/.cache/ceiling-scout", home);
    }
    return n > 0 && (size_t)n < room;
}

bool cache_open(cache *c, const char *folder, const char *device_class_folder, uint64_t limit, status *st) {
    char path[PATH_MAX];
    *c = (cache){.limit = limit > 0 ? limit : CACHE_DEFAULT_LIMIT, .read_only = true};
    snprintf(c->device, sizeof c->device, "%s", device_class_folder);
    if (!folder && !cache_default_folder(path, sizeof path))
        return status_fail(st, STATUS_ENVIRONMENT,
                           "no cache: neither XDG_CACHE_HOME nor HOME names a folder; use --cache-dir");
    if (c->device[0] == 0 || c->device[0] == '.' || strchr(c->device, '/'))
        return status_fail(st, STATUS_ENVIRONMENT, "no cache: \"%s\" cannot be a folder's name", c->device);
    c->folder = strdup(folder ? folder : path);
    if (!c->folder || snprintf(path, sizeof path, "%s/%s", c->folder, c->device) >= (int)sizeof path)
        return status_fail(st, STATUS_ENVIRONMENT, "no cache: its folder's name is too long");
    status inner = {0};
    if (!files_make_folders(path, &inner))
        return status_fail(st, STATUS_ENVIRONMENT, "results are not cached: %s", inner.text);
    if (access(path, W_OK | X_OK) != 0)
        return status_fail(st, STATUS_ENVIRONMENT, "results are not cached: %s: %s", path, strerror(errno));
    c->read_only = false;
    return true;
}

void cache_close(cache *c) {
    free(c->folder);
    *c = (cache){.read_only = true};
}

static bool entry_path(const cache *c, const char *key, char *path, size_t room) {
    const XXH128_hash_t h = XXH3_128bits(key, strlen(key));
    const int n = snprintf(path, room, "%s/%s/%016llx%016llx.json", c->folder, c->device, (unsigned long long)h.high64,
                           (unsigned long long)h.low64);
    return n > 0 && (size_t)n < room;
}

/* Everything before the value, as it must stand in the file; malloc'ed. */
static char *opening(const char *key, uint64_t checksum) {
    json_t *text = json_string(key);
    char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char *line = NULL;
    if (quoted && asprintf(&line, "{\"schema\":\"" SCHEMA "\",\"key\":%s,\"checksum\":\"%016llx\",\"value\":", quoted,
                           (unsigned long long)checksum) < 0)
        line = NULL;
    free(quoted);
    json_decref(text);
    return line;
}

/* ---- reading ---- */

/* The bytes with a NUL behind them, or NULL; *error 0 and NULL: no regular file, or too large. */
static char *read_entry(int fd, size_t *size, int *error, bool *stale) {
    struct stat about;
    *error = 0;
    if (fstat(fd, &about) != 0) {
        *error = errno;
        return NULL;
    }
    if (!S_ISREG(about.st_mode) || about.st_size < 0 || about.st_size > MAX_ENTRY_BYTES) return NULL;
    *stale = time(NULL) - about.st_mtime > TOUCH_SECONDS;
    char *bytes = malloc((size_t)about.st_size + 1);
    *size = 0;
    while (bytes && *size < (size_t)about.st_size) {
        ssize_t k = read(fd, bytes + *size, (size_t)about.st_size - *size);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) *error = errno;
        if (k <= 0) break;
        *size += (size_t)k;
    }
    if (!bytes) *error = ENOMEM;
    if (*error == 0) {
        bytes[*size] = 0;
        return bytes;
    }
    free(bytes);
    return NULL;
}

/* Says where an entry is not what this program writes. The checksum's own text is compared with that of the bytes. */
static const char *find_value(const char *bytes, size_t size, const char *key, const char **value, size_t *value_size) {
    static const char schema[] = "{\"schema\":\"" SCHEMA "\",", tail[] = "}\n";
    if (size == 0) return "it is empty";
    if (strncmp(bytes, schema, sizeof schema - 1) != 0) return "it is not an entry of this version";
    char *want = opening(key, 0);
    const char *why = NULL;
    const size_t n = want ? strlen(want) : 0, after_sum = strlen("\",\"value\":"), sum_at = n - after_sum - 16;
    if (!want) {
        why = "out of memory";
    } else if (size < n + sizeof tail - 1) {
        why = "it is cut short, or belongs to another key";
    } else if (memcmp(bytes, want, sum_at) != 0) {
        why = "it belongs to another key";
    } else if (memcmp(bytes + n - after_sum, want + n - after_sum, after_sum) != 0 ||
               memcmp(bytes + size - (sizeof tail - 1), tail, sizeof tail - 1) != 0) {
        why = "it is cut short or damaged";
    } else {
        char sum[17];
        *value = bytes + n;
        *value_size = size - n - (sizeof tail - 1);
        snprintf(sum, sizeof sum, "%016llx", (unsigned long long)XXH3_64bits(*value, *value_size));
        if (memcmp(bytes + sum_at, sum, 16) != 0) why = "its checksum differs";
    }
    free(want);
    return why;
}

/* The value in an entry's bytes (which it may change), or NULL and why. */
static json_t *decode(char *bytes, size_t size, const char *key, const char **why) {
    const char *value = NULL;
    size_t n = 0;
    *why = find_value(bytes, size, key, &value, &n);
    if (*why) return NULL;
    bytes[value - bytes + (ptrdiff_t)n] = 0;
    json_t *found = cache_parse(value, n);
    if (!found) found = json_loadb(value, n, JSON_DECODE_ANY, NULL);
    if (!found) *why = "its value is not JSON";
    return found;
}

json_t *cache_get(const cache *c, const char *key, char *note, size_t room) {
    char path[PATH_MAX];
    bool stale = false;
    size_t size = 0;
    int error = 0;
    const char *why = NULL;
    json_t *found = NULL;
    if (room > 0) note[0] = 0;
    if (!c->folder || c->off || !entry_path(c, key, path, sizeof path)) return NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return NULL;
    if (fd < 0) error = errno;
    char *bytes = fd >= 0 ? read_entry(fd, &size, &error, &stale) : NULL;
    if (bytes) {
        found = decode(bytes, size, key, &why);
    } else {
        why = error ? strerror(error) : "it is not a regular file, or too large";
    }
    if (why) snprintf(note, room, "the cache entry %s is not used: %s", path, why);
    /* used entries stay when the cache is trimmed; once per hour is enough to know */
    if (found && stale) futimens(fd, NULL);
    free(bytes);
    if (fd >= 0) close(fd);
    return found;
}

/* ---- writing ---- */

/* Unlike common/files this neither flushes to the disk (a lost entry is measured again, and a torn one is known by its
 * checksum) nor follows links, and its temporary name is unique between machines that share the folder. */
static int open_temp(const cache *c, char *path, size_t room) {
    for (int attempt = 0; attempt < 16; attempt++) {
        unsigned long long random[2] = {0, 0};
        if (getrandom(random, sizeof random, 0) < 0) random[0] = (unsigned long long)time(NULL), random[1] = attempt;
        const int n = snprintf(path, room, "%s/%s/" CACHE_TEMP_PREFIX "%d.%016llx%016llx", c->folder, c->device,
                               (int)getpid(), random[0], random[1]);
        if (n < 0 || (size_t)n >= room) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static bool write_all(int fd, const char *data, size_t n) {
    while (n > 0) {
        ssize_t k = write(fd, data, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return false;
        data += k;
        n -= (size_t)k;
    }
    return true;
}

/* The whole file's text; malloc'ed. NULL: no memory, or a value that cannot be written. */
/* `dump`: its value, which the checksum is of. */
static char *entry_text(const char *key, const char *dump, uint64_t checksum, size_t *size) {
    char *front = opening(key, checksum);
    char *text = NULL;
    const int n = front ? asprintf(&text, "%s%s}\n", front, dump) : -1;
    free(front);
    if (n < 0) return NULL;
    *size = (size_t)n;
    return text;
}

/* What is said of a file that could not be written: 0, or an error. */
static int put_file(const cache *c, const char *path, const char *text, size_t size) {
    char temp[PATH_MAX];
    int error = 0;
    /* a second attempt, as the folder may just have been cleared */
    for (int attempt = 0; attempt < 2; attempt++) {
        error = 0;
        const int fd = open_temp(c, temp, sizeof temp);
        if (fd < 0) {
            error = errno;
        } else {
            if (!write_all(fd, text, size)) error = errno;
            if (close(fd) != 0 && errno != EINTR && !error) error = errno;
            if (!error && rename(temp, path) != 0) error = errno;
            if (error) unlink(temp);
        }
        if (error != ENOENT) break;
        status ignored;
        temp[strlen(c->folder) + 1 + strlen(c->device)] = 0;
        files_make_folders(temp, &ignored);
    }
    return error;
}

static bool put_entry(const cache *c, const char *key, const char *dump, uint64_t checksum, status *st) {
    char path[PATH_MAX];
    size_t size = 0;
    char *text = entry_text(key, dump, checksum, &size);
    if (!text || size > MAX_ENTRY_BYTES || !entry_path(c, key, path, sizeof path)) {
        status_set(st, STATUS_ENVIRONMENT, "a result is not cached: %s", text ? "too large" : "it cannot be written");
        free(text);
        return false;
    }
    const int error = put_file(c, path, text, size);
    free(text);
    if (error) status_set(st, STATUS_ENVIRONMENT, "a result is not cached: %s: %s", path, strerror(error));
    return error == 0;
}

bool cache_put(const cache *c, const char *const *keys, int count, const json_t *value, status *st) {
    if (!c->folder || c->read_only) return true; /* cache_open has told */
    char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!dump) return status_fail(st, STATUS_ENVIRONMENT, "a result is not cached: it cannot be written");
    const uint64_t checksum = XXH3_64bits(dump, strlen(dump));
    bool good = true;
    for (int k = 0; k < count && good; k++) good = put_entry(c, keys[k], dump, checksum, st);
    free(dump);
    return good;
}

/* ---- what there is ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const cache_info *)a)->device, ((const cache_info *)b)->device);
}

bool cache_list(const char *folder, char *folder_used, size_t room, cache_info **rows, int *count, status *st) {
    char path[PATH_MAX];
    *rows = NULL;
    *count = 0;
    if (folder) snprintf(path, sizeof path, "%s", folder);
    if (!folder && !cache_default_folder(path, sizeof path))
        return status_fail(st, STATUS_ENVIRONMENT,
                           "no cache: neither XDG_CACHE_HOME nor HOME names a folder; use --cache-dir");
    snprintf(folder_used, room, "%s", path);
    cache_scan scan;
    const bool good = cache_scan_folder(path, &scan, st);
    cache_info *found = good ? calloc((size_t)scan.class_count + 1, sizeof *found) : NULL;
    for (int k = 0; found && k < scan.class_count; k++) {
        snprintf(found[k].device, sizeof found[k].device, "%s", scan.classes[k]);
        for (size_t i = 0; i < scan.count; i++) {
            if (scan.items[i].class != k || scan.items[i].temp) continue;
            found[k].entries++;
            found[k].bytes += scan.items[i].bytes;
        }
    }
    if (found) {
        *count = scan.class_count;
        qsort(found, (size_t)*count, sizeof *found, by_name);
        *rows = found;
    } else if (good) {
        status_set(st, STATUS_ENVIRONMENT, "out of memory");
    }
    cache_scan_free(&scan);
    return found != NULL;
}
