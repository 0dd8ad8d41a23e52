/* What other work takes from this process: each of its threads has a line in /proc whose second number is how long it
 * waited for a processor while it could have run. The files stay open, since they are read before and after each block
 * of a millisecond. A kernel without them says nothing, and nothing is then known to be stolen. */
#include "scout/cpu/cpu_telemetry.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All threads are there by now: the team started with the device. */
static void open_all(cpu_stolen *s) {
    DIR *tasks = opendir("/proc/self/task");
    s->opened = true;
    if (!tasks) return;
    for (const struct dirent *e = readdir(tasks); e && s->count < CPU_STOLEN_THREADS; e = readdir(tasks)) {
        char path[300];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) s->files[s->count++] = file;
    }
    closedir(tasks);
}

static double waited_ns(int file) {
    char text[96];
    const ssize_t n = pread(file, text, sizeof text - 1, 0);
    if (n <= 0) return 0;
    text[n] = 0;
    const char *second = strchr(text, ' ');
    return second ? strtod(second, NULL) : 0;
}

double cpu_stolen_seconds(cpu_stolen *s) {
    double ns = 0;
    if (!s->opened) open_all(s);
    for (int k = 0; k < s->count; k++) ns += waited_ns(s->files[k]);
    return 1e-9 * ns;
}

void cpu_stolen_end(cpu_stolen *s) {
    for (int k = 0; k < s->count; k++) close(s->files[k]);
    *s = (cpu_stolen){.opened = false};
}
