/* Time that other work takes from this process: each of its threads has a line in /proc. Its second number is how long
 * the thread was runnable and waited for a processor. The files stay open, since they are read before and after each
 * block of a millisecond. On a kernel without them no time counts as stolen.
 *
 * The host may move a virtual machine's processors. For seconds they may be on distant chips, and communication between
 * threads takes several times as long. So an empty call of the team is timed: where it takes much longer than at its
 * best, all time since the last check counts as stolen. */
#include "scout/cpu/device/cpu_telemetry.h"

#include "scout/cpu/device/cpu_team.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double far = 2; /* times as long as at its best */

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

static void nothing(void *context, int thread, int threads) { (void)context, (void)thread, (void)threads; }

/* The first call wakes sleeping threads and does not count. */
static double meeting_s(void) {
    enum { CALLS = 4 };
    double least = INFINITY, start = cpu_telemetry_now();
    for (int k = 0; k < CALLS; k++) {
        cpu_team_run(nothing, NULL);
        const double end = cpu_telemetry_now();
        if (k > 0) least = fmin(least, end - start);
        start = end;
    }
    return least;
}

bool cpu_stolen_far(cpu_stolen *s, double meeting) {
    if (s->meeting_s == 0 || meeting < s->meeting_s) s->meeting_s = meeting;
    return meeting > far * s->meeting_s;
}

double cpu_stolen_seconds(cpu_stolen *s) {
    double ns = 0;
    if (!s->opened) open_all(s);
    if (cpu_team_size() > 1 && cpu_team_library()[0]) {
        const bool apart = cpu_stolen_far(s, meeting_s());
        const double now_s = cpu_telemetry_now();
        if (apart || s->apart) s->apart_s += now_s - s->looked_s;
        s->apart = apart;
        s->looked_s = now_s;
    }
    for (int k = 0; k < s->count; k++) ns += waited_ns(s->files[k]);
    return s->apart_s + 1e-9 * ns;
}

void cpu_stolen_end(cpu_stolen *s) {
    for (int k = 0; k < s->count; k++) close(s->files[k]);
    *s = (cpu_stolen){.opened = false};
}
