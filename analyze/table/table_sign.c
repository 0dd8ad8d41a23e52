/* Owns the signature beside a table: TABLE.json.sig, made by ssh-keygen, so that keys, passphrases and agents are its
 * affair, and held against the reader of deployment before it is written. */
#include "analyze/table/table.h"

#include "common/files.h"
#include "dispatch/dispatch_signature.h"
#include "dispatch/dispatch_table.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static size_t read_all(int from, char *out, size_t room) {
    size_t used = 0;
    while (used < room) {
        const ssize_t n = read(from, out + used, room - used);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        used += (size_t)n;
    }
    return used;
}

/* What ssh-keygen prints as it signs what comes from `table`. How many bytes, or -1: errno says why, or is 0 where
 * ssh-keygen has said it. */
static ptrdiff_t ask(int table, const char *key, char *out, size_t room) {
    const char *const command[] = {"ssh-keygen", "-Y", "sign", "-q", "-n", "ceiling-scout", "-f", key, NULL};
    int ends[2], state = 0;
    size_t used = 0;
    pid_t child = 0;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, table, STDIN_FILENO);
        if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        if (error == 0) error = posix_spawnp(&child, command[0], &actions, NULL, (char **)(uintptr_t)command, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (error == 0) used = read_all(ends[0], out, room);
    close(ends[0]);
    while (error == 0 && waitpid(child, &state, 0) < 0)
        if (errno != EINTR) error = errno;
    errno = error;
    return error == 0 && WIFEXITED(state) && WEXITSTATUS(state) == 0 ? (ptrdiff_t)used : -1;
}

bool table_sign(const char *path, const char *key, status *st) {
    char signature[DISPATCH_SIGNATURE_BYTES], why[160], beside[4096];
    size_t size = 0;
    if (snprintf(beside, sizeof beside, "%s.sig", path) >= (int)sizeof beside)
        return status_fail(st, STATUS_USAGE, "%s: the name of its signature is too long", path);
    char *text = files_read(path, DISPATCH_TABLE_BYTES, &size, st);
    if (!text) return false;
    const int table = open(path, O_RDONLY | O_CLOEXEC);
    const ptrdiff_t count = table < 0 ? -1 : ask(table, key, signature, sizeof signature);
    const int error = errno;
    bool good = false;
    if (table >= 0) close(table);
    if (count < 0)
        status_set(st, STATUS_ENVIRONMENT, "%s is written, and not signed: %s", path,
                   error == 0        ? "ssh-keygen says why above"
                   : error == ENOENT ? "there is no ssh-keygen in PATH; install OpenSSH's client"
                                     : strerror(error));
    else if (!dispatch_signature_holds(NULL, signature, (size_t)count, text, size, why, sizeof why))
        status_set(st, STATUS_USAGE, "%s is written, and not signed: %s; make a key with ssh-keygen -t ed25519", path,
                   why);
    else
        good = files_write(beside, signature, (size_t)count, st);
    free(text);
    return good;
}
