/* Files that appear whole or not at all, reading with a limit, folders, names. */
#pragma once

#include "common/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A file being written beside its final place. Small enough for the stack.
 *
 *     files_out f;
 *     if (!files_begin(&f, path, &st)) return;
 *     files_append(&f, text, n);            remembers the first failure
 *     good = files_commit(&f, &st);         or files_abort(&f)
 *
 * A target that is a device, a pipe, or this program's own standard output (/dev/null, /dev/stdout) is written
 * directly; a link is followed, to where it leads even if nothing is there yet. A new file is written by its owner
 * alone, whatever the umask; one that is replaced keeps its mode.
 *
 * What is said of an input must not grow without bound: a file has at most FILES_PER_BYTE bytes for each byte of all
 * that was read until it was begun, and FILES_ROOM more. What would be longer fails with STATUS_INPUT. */
enum { FILES_PER_BYTE = 50, FILES_ROOM = 64 << 20 };

typedef struct files_out {
    int fd;    /* -1: closed */
    int error; /* FILES_TOO_LONG: the bound */
    bool direct;
    uint64_t most, written; /* bytes */
    int ticket;             /* place in the list of files that a signal removes; -1: none */
    char *target;           /* owned */
    char *temp;             /* owned; NULL when direct */
    size_t used;
    char buffer[8192];
} files_out;

bool files_begin(files_out *f, const char *path, status *st);
void files_append(files_out *f, const void *data, size_t n);
FILE *files_stream(files_out *f); /* appends to f; the caller's (fclose), before the commit. NULL: no memory */
bool files_commit(files_out *f, status *st); /* on failure the target is untouched and nothing is left beside it */
/* Several of one folder, for little more than what one costs. One that fails is as after files_commit, the others are
 * in place, and the first failure is told. */
bool files_commit_all(files_out *const *files, int count, status *st);
void files_abort(files_out *f); /* as if never begun; fine after begin failed, commit, or abort */

bool files_write(const char *path, const void *data, size_t n, status *st); /* all of the above at once */

enum { FILES_TOO_LONG = -1 }; /* no errno is negative */

/* Whether an error of opening or reading says something of the machine rather than of the file. */
bool files_machines_fault(int error);
/* Counts bytes that were read by another way than files_read. */
void files_have_read(uint64_t bytes);

/* Whether both paths lead to one place, by whatever way and whether a file is there yet. Devices and pipes are one
 * place only where the paths are the same text. */
bool files_same(const char *a, const char *b);

/* Whether the folder of this file is not there: st says so, and what to do. */
bool files_lacks_folder(const char *path, status *st);

/* Takes a file that was written away again; a device, a pipe or a link to one stays. */
void files_remove(const char *path);

/* From now on SIGINT, SIGTERM and SIGHUP call `handler`, and a limit on the size of files (SIGXFSZ) is a failed write
 * like any other: the write fails, and says so. */
void files_on_signals(void (*handler)(int number));
/* The same with a handler that removes half-written files before it ends the program. */
void files_clean_on_signals(void);

/* Started with one of them closed, the next file that is opened would take its place, and be printed into. */
void files_hold_standard(void);
/* What could not be printed whole is a failure too, but not a worse one than what happened before. */
void files_finish_output(status *st, const char *advice);

/* Whether the path's last name is a link. What lies in a folder of results is refused then, for it would be written
 * elsewhere: the folder may come from others. */
bool files_is_link(const char *path);

/* The bytes of a regular file and a NUL after them; owned by the caller (free). NULL: st says why. */
char *files_read(const char *path, size_t limit, size_t *size, status *st);

bool files_make_folders(const char *path, status *st); /* as mkdir -p, written by their owner alone */
const char *files_base(const char *path);              /* what follows the last slash; borrowed from path */
