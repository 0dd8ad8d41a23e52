/* Small files of /sys: cpufreq's governors, the two places where a turbo is switched, vendors on the PCI bus. */
#include "scout/device/host.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool read_line(const char *sys, const char *place, const char *name, const char *file, char *text, int room) {
    char path[PATH_MAX];
    text[0] = 0;
    if (snprintf(path, sizeof path, "%s/%s/%s/%s", sys, place, name, file) >= (int)sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool good = fgets(text, room, f) != NULL;
    (void)fclose(f);
    text[strcspn(text, "\n")] = 0;
    return good && text[0];
}

typedef void visit(const char *sys, const char *name, host *h);

static void each(const char *sys, const char *place, visit *call, host *h) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", sys, place) >= (int)sizeof path) return;
    DIR *folder = opendir(path);
    for (const struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder))
        if (e->d_name[0] != '.') call(sys, e->d_name, h);
    if (folder) closedir(folder);
}

/* One processor that is steered otherwise is enough to be named. */
static void see_processor(const char *sys, const char *name, host *h) {
    char governor[sizeof h->governor];
    if (strncmp(name, "cpu", 3) != 0 ||
        !read_line(sys, "devices/system/cpu", name, "cpufreq/scaling_governor", governor, sizeof governor))
        return;
    if (!h->governor[0] || strcmp(governor, "performance") != 0) memcpy(h->governor, governor, sizeof governor);
}

/* Class 3 is display controllers, those without a display too. */
static void see_card(const char *sys, const char *name, host *h) {
    char vendor[16], class[16];
    h->nvidia = h->nvidia || (read_line(sys, "bus/pci/devices", name, "vendor", vendor, sizeof vendor) &&
                              read_line(sys, "bus/pci/devices", name, "class", class, sizeof class) &&
                              strcmp(vendor, "0x10de") == 0 && strncmp(class, "0x03", 4) == 0);
}

void host_look(const char *sys, host *out) {
    char text[16];
    *out = (host){.turbo = HOST_TURBO_UNKNOWN};
    each(sys, "devices/system/cpu", see_processor, out);
    each(sys, "bus/pci/devices", see_card, out);
    if (read_line(sys, "devices/system/cpu", "intel_pstate", "no_turbo", text, sizeof text))
        out->turbo = text[0] == '0' ? HOST_TURBO_ON : HOST_TURBO_OFF;
    else if (read_line(sys, "devices/system/cpu", "cpufreq", "boost", text, sizeof text))
        out->turbo = text[0] == '1' ? HOST_TURBO_ON : HOST_TURBO_OFF;
}
