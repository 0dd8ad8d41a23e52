/* Processors in /proc/stat, programs in /proc/[pid]/stat: ticks at the end of a moment less those at its beginning. */
#include "scout/device/others.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SEEN = 4096, LINE = 512, FIRST = -20 };
static const double idle = 0.1;          /* of a core: less is no work */
static const double least_program = 0.1; /* of a core: less is not named */

typedef struct program {
    long pid;
    bool own;
    double ticks;
    char name[OTHERS_NAME];
} program;

typedef struct look {
    double busy, all; /* ticks of the processors that this process may use */
    int cores;
    int count;
    program seen[SEEN];
} look;

static bool may_use(const cpu_set_t *set, int cpu) { return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, set); }

/* What another virtual machine took counts as busy. */
static bool read_processors(const char *proc, look *l) {
    char path[LINE], line[LINE];
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return false;
    snprintf(path, sizeof path, "%s/stat", proc);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    while (fgets(line, sizeof line, file)) {
        double t[8] = {0}; /* user, nice, system, idle, iowait, irq, softirq, steal */
        int cpu = -1;
        if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6],
                   &t[7]) < 6 ||
            !may_use(&set, cpu))
            continue;
        double all = 0;
        for (int k = 0; k < 8; k++) all += t[k];
        l->all += all;
        l->busy += all - t[3] - t[4];
        l->cores++;
    }
    (void)fclose(file);
    return l->cores > 0;
}

/* "PID (NAME) STATE PARENT … UTIME STIME …": a name may hold blanks and brackets. */
static bool read_program(const char *proc, const char *pid, program *p) {
    char path[LINE], line[LINE];
    unsigned long user = 0, kernel = 0;
    long parent = 0;
    snprintf(path, sizeof path, "%s/%.20s/stat", proc, pid);
    FILE *file = fopen(path, "re");
    if (!file) return false; /* it has ended */
    const size_t n = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[n] = 0;
    const char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (!open || !close || close < open) return false;
    if (sscanf(close + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &parent, &user, &kernel) != 3)
        return false;
    p->pid = strtol(pid, NULL, 10);
    p->own = p->pid == (long)getpid() || parent == (long)getpid();
    p->ticks = (double)user + (double)kernel;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static bool look_at(const char *proc, look *l) {
    l->busy = l->all = 0;
    l->cores = l->count = 0;
    DIR *folder = opendir(proc);
    if (!folder) return false;
    for (const struct dirent *e = readdir(folder); e && l->count < SEEN; e = readdir(folder))
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9') l->count += read_program(proc, e->d_name, &l->seen[l->count]);
    closedir(folder);
    return read_processors(proc, l);
}

static int by_ticks(const void *a, const void *b) {
    const program *x = a, *y = b;
    return (x->ticks < y->ticks) - (x->ticks > y->ticks);
}

/* Ticks in between; what began meanwhile is taken whole. */
static void subtract(look *after, const look *before) {
    for (int k = 0; k < after->count; k++)
        for (int b = 0; b < before->count; b++)
            if (before->seen[b].pid == after->seen[k].pid) after->seen[k].ticks -= before->seen[b].ticks;
    after->busy -= before->busy;
    after->all -= before->all;
}

static bool is_named(const others *b, const char *name) {
    for (int k = 0; k < b->count; k++)
        if (strcmp(b->programs[k], name) == 0) return true;
    return false;
}

static void tell(look *l, others *out) {
    const double each = l->all / l->cores; /* ticks of one core */
    double own = 0;
    *out = (others){.cores = l->cores};
    for (int k = 0; k < l->count; k++)
        if (l->seen[k].own) own += l->seen[k].ticks;
    if (!(each > 0)) return;
    out->use = l->busy > own ? (l->busy - own) / each : 0;
    qsort(l->seen, (size_t)l->count, sizeof l->seen[0], by_ticks);
    for (int k = 0; k < l->count && out->count < OTHERS_PROGRAMS; k++) {
        const program *p = &l->seen[k];
        if (p->own || p->ticks < least_program * each || is_named(out, p->name)) continue;
        memcpy(out->programs[out->count++], p->name, sizeof p->name);
    }
}

bool others_look(const char *proc, double seconds, others *out) {
    const struct timespec moment = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    look *looks = calloc(2, sizeof *looks);
    bool good = looks && look_at(proc, &looks[0]);
    if (good) (void)nanosleep(&moment, NULL);
    good = good && look_at(proc, &looks[1]);
    if (good) {
        subtract(&looks[1], &looks[0]);
        tell(&looks[1], out);
    }
    free(looks);
    return good;
}

const char *others_words(const others *b, char *text, size_t room) {
    text[0] = 0;
    if (b->use < idle) return text;
    size_t n =
        (size_t)snprintf(text, room, "%.1f of %d %s busy", b->use, b->cores, b->cores == 1 ? "core is" : "cores are");
    for (int k = 0; k < b->count && n < room; k++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", k == 0 ? ": " : ", ", b->programs[k]);
    for (char *c = text; *c; c++)
        if (*c < 0x20 || *c > 0x7e) *c = '?';
    return text;
}

/* Cores are shared between sessions first, where the kernel does so, and then between the processes of one. */
static void lift_session(void) {
    FILE *file = getsid(0) == getpid() ? fopen("/proc/self/autogroup", "we") : NULL;
    if (!file) return;
    fprintf(file, "%d\n", FIRST);
    (void)fclose(file);
}

void others_wait(void) {
    if (getpriority(PRIO_PROCESS, 0) != 0 || setpriority(PRIO_PROCESS, 0, FIRST) != 0) return;
    lift_session();
}
