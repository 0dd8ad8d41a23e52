/* Owns the signature of a table: made by ssh-keygen, so that keys, passphrases and agents are its affair, and held
 * against the reader of deployment. What is signed is what the program holds: nothing is read back that others could
 * change. */
#include "analyze/table/table.h"

#include "dispatch/dispatch_signature.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
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
    const char *const command[] = {"ssh-keygen", "-Y", "sign", "-q", "-n", DISPATCH_SIGNATURE_PURPOSE, "-f", key, NULL};
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

/* A file without a name, at its beginning; -1: errno says why. */
static int nameless(const char *text, size_t size) {
    const int fd = memfd_create("table", MFD_CLOEXEC);
    for (size_t done = 0; fd >= 0 && done < size;) {
        const ssize_t n = write(fd, text + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            const int error = errno;
            close(fd);
            errno = error;
            return -1;
        }
        done += (size_t)n;
    }
    if (fd >= 0) lseek(fd, 0, SEEK_SET);
    return fd;
}

bool table_sign(const char *text, size_t size, const char *key, table_signature *made, status *st) {
    char why[160];
    fflush(NULL); /* what was said so far comes before what ssh-keygen says */
    const int table = nameless(text, size);
    const ptrdiff_t count = table < 0 ? -1 : ask(table, key, made->text, sizeof made->text);
    const int error = errno;
    if (table >= 0) close(table);
    if (count < 0)
        return status_fail(st, STATUS_ENVIRONMENT, "no table is written, for it is not signed: %s",
                           error == 0        ? "ssh-keygen says why above; a passphrase wants a terminal or an agent"
                           : error == ENOENT ? "there is no ssh-keygen in PATH; install OpenSSH's client"
                                             : strerror(error));
    made->size = (size_t)count;
    if (dispatch_signature_holds(NULL, made->text, made->size, text, size, why, sizeof why)) return true;
    return status_fail(st, STATUS_USAGE, "no table is written: %s; name a plain key of ssh-keygen -t ed25519", why);
}
