/* The rule for external data. A location is a relative path without "..". What it leads to, all links followed, must
 * lie
 *   - under the folder in which the model lies as given, or
 *   - where the model itself is a link, in the very folder in which the file lies that it links to. That is how model
 * hubs lay out a model: a folder of links into one store of blobs. The owner of that link has chosen
 * that store. A hard link has no target to look at, only a count of names: a file with names that are not under the
 * model's folder is refused, unless the model has such names too: then the folder was made by linking, from a store on
 * the same file system. Only regular files are opened, and nothing here can block. */
#include "extract/read/external.h"

#include "common/plain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void external_init(external *e, arena *a, const char *model_path) {
    *e = (external){.arena = a, .model = model_path};
    map_init(&e->files, a);
}

__attribute__((format(printf, 3, 4))) static _Noreturn void refuse(external *e, const char *location,
                                                                   const char *format, ...) {
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    guard_fail(e->arena->guard, STATUS_INPUT, "external data '%.200s': %s", location, text);
}

/* The folder part of a path; in the arena. */
static char *folder_of(arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return arena_strndup(a, ".", 1);
    return arena_strndup(a, path, slash == path ? 1 : (size_t)(slash - path));
}

/* realpath without malloc; NULL with errno. */
static const char *resolved(arena *a, const char *path) {
    char buffer[PATH_MAX];
    if (!realpath(path, buffer)) return NULL;
    return arena_strndup(a, buffer, strlen(buffer));
}

static void prepare(external *e) {
    if (e->folder) return;
    const char *folder = resolved(e->arena, folder_of(e->arena, e->model));
    const char *model = resolved(e->arena, e->model);
    if (!folder || !model || stat(model, &e->about) != 0)
        guard_fail(e->arena->guard, STATUS_ENVIRONMENT, "%s: its folder cannot be read: %s", e->model, strerror(errno));
    e->folder = folder;
    struct stat link;
    if (lstat(e->model, &link) == 0 && S_ISLNK(link.st_mode)) e->store = folder_of(e->arena, model);
}

static bool is_under(const char *path, const char *folder) {
    const size_t n = strlen(folder);
    if (n == 1) return true; /* "/" */
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

static bool is_allowed(const external *e, const char *path) {
    if (is_under(path, e->folder)) return true;
    if (!e->store || !is_under(path, e->store)) return false;
    const char *rest = path + (strlen(e->store) == 1 ? 1 : strlen(e->store) + 1);
    return !strchr(rest, '/');
}

static void check_location(external *e, const char *location) {
    if (!*location) refuse(e, location, "the location is empty");
    if (*location == '/') refuse(e, location, "absolute paths are not followed; external data lies beside its model");
    for (const char *part = location; part;) {
        const char *slash = strchr(part, '/');
        const size_t n = slash ? (size_t)(slash - part) : strlen(part);
        if (n == 2 && part[0] == '.' && part[1] == '.')
            refuse(e, location, "paths with '..' are not followed; external data lies beside its model");
        part = slash ? slash + 1 : NULL;
    }
}

/* Whether a file has names that are not under a folder. The folder is looked through once for all files. */
static external_links_verdict names_of(external *e, const char *folder, const struct stat *file) {
    if (file->st_nlink < 2) return EXTERNAL_LINKS_INSIDE;
    external_links *links = folder == e->folder ? &e->folder_links : &e->store_links;
    if (!links->items) external_links_list(links, e->arena, folder);
    return external_links_find(links, file);
}

static void check_hard_links(external *e, const char *location, const char *path, const struct stat *s) {
    if (s->st_nlink < 2) return;
    const external_links_verdict data = names_of(e, is_under(path, e->folder) ? e->folder : e->store, s);
    if (data == EXTERNAL_LINKS_INSIDE) return;
    const external_links_verdict own = names_of(e, e->store ? e->store : e->folder, &e->about);
    if (own == EXTERNAL_LINKS_OUTSIDE && s->st_dev == e->about.st_dev) return;
    if (data == EXTERNAL_LINKS_UNSEEN || own == EXTERNAL_LINKS_UNSEEN)
        refuse(e, location,
               "has other names, and the model's folder is too large to search for all of them (more than %d entries, "
               "deeper than %d folders or not readable); move the model to a folder of its own",
               EXTERNAL_LINKS_MAX_ENTRIES, EXTERNAL_LINKS_MAX_FOLDERS);
    refuse(e, location, "is a hard link to a file outside the model's folder; copy the file instead");
}

/* Missing or unreadable is normal: shapes need no weights. */
static external_file *unreachable(external *e, external_file *f, int error) {
    if (error == ELOOP) refuse(e, f->location, "its links run in a circle");
    if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG) {
        f->why = arena_printf(e->arena, "external file %s is missing", plain_name(e->arena, f->location));
    } else {
        f->why = arena_printf(e->arena, "external file %s cannot be read: %s", plain_name(e->arena, f->location),
                              strerror(error));
    }
    return f;
}

/* Opens what a path is now, whatever that is, without waiting; -1 with errno. */
static int open_quietly(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
}

/* Where a location leads: the folder as given comes first; a link to a model elsewhere may have left its data there.
 * NULL with errno. */
static const char *locate(external *e, const char *location) {
    const char *path = resolved(e->arena, arena_printf(e->arena, "%s/%s", e->folder, location));
    if (path && !is_allowed(e, path))
        refuse(e, location, "leads out of the model's folder; put the file beside the model");
    if (path || !e->store || errno != ENOENT) return path;
    path = resolved(e->arena, arena_printf(e->arena, "%s/%s", e->store, location));
    if (path && !is_under(path, e->store))
        refuse(e, location, "leads out of the model's folder; put the file beside the model");
    return path;
}

static external_file *find_new(external *e, const char *location) {
    external_file *f = arena_zalloc(e->arena, sizeof *f);
    f->location = arena_strndup(e->arena, location, strlen(location));
    check_location(e, location);
    prepare(e);
    const char *path = locate(e, location);
    if (!path) return unreachable(e, f, errno);
    struct stat s;
    if (lstat(path, &s) != 0) return unreachable(e, f, errno);
    /* Looked at before it is opened: opening a device can do things. */
    if (!S_ISREG(s.st_mode)) refuse(e, location, "is not a regular file");
    check_hard_links(e, location, path, &s);
    const int fd = open_quietly(path);
    if (fd < 0) return unreachable(e, f, errno);
    struct stat opened;
    const int bad = fstat(fd, &opened);
    close(fd);
    if (bad || opened.st_ino != s.st_ino || opened.st_dev != s.st_dev)
        refuse(e, location, "was replaced while it was examined");
    f->path = path;
    f->size = (uint64_t)opened.st_size;
    f->device = opened.st_dev;
    f->inode = opened.st_ino;
    return f;
}

const external_file *external_find(external *e, const char *location) {
    external_file *f = map_get(&e->files, location);
    if (f) return f;
    f = find_new(e, location);
    *map_put(&e->files, f->location) = f;
    void *names = e->names;
    arena_grow(e->arena, &names, &e->cap, e->count, sizeof *e->names);
    e->names = names;
    e->names[e->count++] = f->location;
    return f;
}

/* Nothing is owned across a call that can fail: the descriptor is closed before anything is said. */
void external_read(guard *g, const external_file *f, uint64_t offset, void *bytes, size_t size) {
    size_t done = 0;
    const char *why = NULL;
    struct stat s;
    const int fd = open_quietly(f->path);
    if (fd < 0) {
        why = strerror(errno);
    } else if (fstat(fd, &s) != 0 || s.st_ino != f->inode || s.st_dev != f->device) {
        why = "it was replaced while it was read";
    }
    while (fd >= 0 && !why && done < size) {
        const ssize_t n = pread(fd, (char *)bytes + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) why = n < 0 ? strerror(errno) : "it was cut short while it was read";
        if (n > 0) done += (size_t)n;
    }
    if (fd >= 0) close(fd);
    if (why) guard_fail(g, STATUS_INPUT, "external data '%.200s': %s", f->location, why);
}

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
