/* The limits of control groups, version 1 and 2: those of our own group and of every group above it. A file that is not
 * there (a container that hides them) limits nothing. */
#include "scout/cpu/device/cpu_limits.h"

#include "scout/cpu/device/cpu_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A controller's folder of our group: "/sys/fs/cgroup" + path (version 2) or "/sys/fs/cgroup/memory" + path. */
static bool group_folder(const char *controller, char *folder, size_t room, size_t *root) {
    char line[1024];
    FILE *f = fopen("/proc/self/cgroup", "re");
    bool found = false;
    if (!f) return false;
    while (!found && fgets(line, sizeof line, f)) { /* number:controllers:path */
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if (strstr(path, "..")) path = line + strlen(line); /* outside our namespace: its root is all we see */
        names++;
        bool unified = *names == 0;
        if (unified != (controller == NULL)) continue;
        char *save = NULL;
        for (char *name = unified ? NULL : strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save))
            if (strcmp(name, controller) == 0) found = true;
        if (!unified && !found) continue;
        *root = (size_t)snprintf(folder, room, "/sys/fs/cgroup%s%s", unified ? "" : "/", unified ? "" : controller);
        found = *root + strlen(path) + 1 < room;
        if (found) memcpy(folder + *root, path, strlen(path) + 1);
    }
    (void)fclose(f);
    return found;
}

/* Cuts the last part of the path; false at the controller's root. */
static bool group_above(char *folder, size_t root) {
    char *slash = strrchr(folder, '/');
    if (strlen(folder) <= root || !slash || (size_t)(slash - folder) < root) return false;
    *slash = 0;
    return true;
}

static void smaller(double *least, double value) {
    if (value > 0 && (*least <= 0 || value < *least)) *least = value;
}

static double quota_here(const char *folder, bool unified) {
    char path[1400], text[64], *end = NULL;
    double quota = 0, period = 0;
    if (unified) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (!cpu_info_line(path, text, sizeof text) || strncmp(text, "max", 3) == 0) return 0;
        quota = strtod(text, &end);
        period = strtod(end, NULL);
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (!cpu_info_number(path, &quota)) return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (!cpu_info_number(path, &period)) return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

double cpu_limits_quota(void) {
    double least = 0;
    for (int version = 1; version <= 2; version++) {
        char folder[1200];
        size_t root = 0;
        if (!group_folder(version == 1 ? "cpu" : NULL, folder, sizeof folder, &root)) continue;
        do smaller(&least, quota_here(folder, version == 2));
        while (group_above(folder, root));
    }
    return least;
}

/* --- memory --- */

typedef struct memory_files {
    const char *limit, *used, *reclaimable; /* the last: a key of memory.stat, cached files that give way */
} memory_files;

static double stat_value(const char *folder, const char *key) {
    char path[1400], line[256];
    double value = 0;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    size_t length = strlen(key);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, length) == 0 && line[length] == ' ') value = strtod(line + length, NULL);
    (void)fclose(f);
    return value;
}

static void memory_here(const char *folder, const memory_files *files, double *total, double *left) {
    char path[1400], text[64];
    double limit = 0, used = 0;
    snprintf(path, sizeof path, "%s/%s", folder, files->limit);
    if (!cpu_info_line(path, text, sizeof text) || strncmp(text, "max", 3) == 0) return;
    limit = strtod(text, NULL);
    snprintf(path, sizeof path, "%s/%s", folder, files->used);
    if (limit <= 0 || limit >= *total || !cpu_info_number(path, &used)) return;
    used -= stat_value(folder, files->reclaimable);
    *total = limit;
    double here = limit > used ? limit - used : 0;
    if (here < *left) *left = here;
}

static bool machine_memory(double *total, double *left) {
    char line[256];
    FILE *f = fopen("/proc/meminfo", "re");
    *total = *left = 0;
    if (!f) return false;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "MemTotal:", 9) == 0) *total = strtod(line + 9, NULL) * 1024;
        if (strncmp(line, "MemAvailable:", 13) == 0) *left = strtod(line + 13, NULL) * 1024;
    }
    (void)fclose(f);
    return *total > 0;
}

bool cpu_limits_memory(uint64_t *free_bytes, uint64_t *total_bytes) {
    static const memory_files files[] = {
        {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
        {"memory.max", "memory.current", "inactive_file"},
    };
    double total, left;
    if (!machine_memory(&total, &left)) return false;
    for (int version = 0; version < 2; version++) {
        char folder[1200];
        size_t root = 0;
        if (!group_folder(version == 0 ? "memory" : NULL, folder, sizeof folder, &root)) continue;
        do memory_here(folder, &files[version], &total, &left);
        while (group_above(folder, root));
    }
    *free_bytes = (uint64_t)left;
    *total_bytes = (uint64_t)total;
    return true;
}
