/* Loading a shared object runs its code with all rights of the user. So no other user may have written it, and one that
 * is cut short, which would end the loader by a signal, is refused here. Only the file itself is checked: a user
 * with the right to write to its folder may replace it, as with any program. */
#include "scout/device/plugins.h"

#include "common/files.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { MOST_BYTES = 1 << 30 };

bool plugins_file_is_path(const char *file) { return strchr(file, '/') != NULL; }

uint64_t plugins_file_content(const char *path) {
    size_t size = 0;
    status ignored;
    char *bytes = files_read(path, MOST_BYTES, &size, &ignored);
    const uint64_t hash = bytes ? XXH3_64bits(bytes, size) : 0;
    free(bytes);
    return hash;
}

static bool is_safe(const char *file, const struct stat *about, status *st) {
    if (!S_ISREG(about->st_mode)) {
        status_set(st, STATUS_INPUT, "%s: is not a file", file);
    } else if (about->st_uid != geteuid() && about->st_uid != 0) {
        status_set(st, STATUS_INPUT,
                   "%s: belongs to another user (uid %u); its code is not run; copy it if you trust it", file,
                   (unsigned)about->st_uid);
    } else if (about->st_mode & (S_IWGRP | S_IWOTH)) {
        status_set(st, STATUS_INPUT, "%s: others may write to it (mode %04o); run chmod go-w if you trust it", file,
                   (unsigned)about->st_mode & 07777);
    } else {
        return true;
    }
    return false;
}

static bool within(uint64_t at, uint64_t bytes, size_t size) { return at <= size && bytes <= size - at; }

/* Whether all that its headers promise is there. Objects for other machines are left to the loader, which says so. */
static bool is_whole(const char *bytes, size_t size) {
    Elf64_Ehdr head;
    if (size < sizeof head) return false;
    memcpy(&head, bytes, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64) return true;
    if (head.e_phentsize != sizeof(Elf64_Phdr) ||
        !within(head.e_phoff, (uint64_t)head.e_phnum * sizeof(Elf64_Phdr), size))
        return false;
    for (unsigned k = 0; k < head.e_phnum; k++) {
        Elf64_Phdr part;
        memcpy(&part, bytes + head.e_phoff + k * sizeof part, sizeof part);
        if (part.p_type != PT_NULL && !within(part.p_offset, part.p_filesz, size)) return false;
    }
    return within(head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize, size);
}

bool plugins_file_look(const char *file, plugins_file *out, status *st) {
    struct stat about;
    size_t size = 0;
    if (!plugins_file_is_path(file))
        return status_fail(st, STATUS_USAGE, "%s: is no path; say ./%s if it is here", file, file);
    if (!realpath(file, out->path) || stat(out->path, &about) != 0)
        return status_fail(st, STATUS_INPUT, "%s: %s; build it first, or correct its path", file, strerror(errno));
    if (!is_safe(file, &about, st)) return false;
    char *bytes = files_read(out->path, MOST_BYTES, &size, st);
    if (!bytes) return false;
    const bool object = size >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0, whole = object && is_whole(bytes, size);
    out->content = XXH3_64bits(bytes, size);
    free(bytes);
    if (!object) status_set(st, STATUS_INPUT, "%s: is not a plugin: it is not a shared object", file);
    if (object && !whole) status_set(st, STATUS_INPUT, "%s: is cut short; build or copy it again", file);
    return whole;
}
