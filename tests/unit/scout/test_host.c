/* What a host says of its clock, by a made-up /sys. */
#include "scout/device/host.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/host_XXXXXX";

/* The file and the folders that lead to it. */
static void write_file(const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *s = strchr(path + strlen(root) + 1, '/'); s; s = strchr(s + 1, '/')) {
        *s = 0;
        (void)mkdir(path, 0700);
        *s = '/';
    }
    FILE *file = fopen(path, "w");
    if (!UNIT_CHECK(file != NULL)) return;
    fputs(text, file);
    (void)fclose(file);
}

static host seen(void) {
    host h;
    host_look(root, &h);
    return h;
}

static void nothing_is_told(void) {
    const host h = seen();
    UNIT_TEXT(h.governor, "");
    UNIT_INT(h.turbo, HOST_TURBO_UNKNOWN);
    UNIT_CHECK(!h.nvidia);
}

static void one_governor_that_differs_is_named(void) {
    write_file("devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    write_file("devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
    UNIT_TEXT(seen().governor, "performance");
    write_file("devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    write_file("devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n");
    UNIT_TEXT(seen().governor, "powersave");
}

static void a_turbo_is_known_by_either_switch(void) {
    write_file("devices/system/cpu/cpufreq/boost", "1\n");
    UNIT_INT(seen().turbo, HOST_TURBO_ON);
    write_file("devices/system/cpu/cpufreq/boost", "0\n");
    UNIT_INT(seen().turbo, HOST_TURBO_OFF);
    write_file("devices/system/cpu/intel_pstate/no_turbo", "0\n");
    UNIT_INT(seen().turbo, HOST_TURBO_ON);
    write_file("devices/system/cpu/intel_pstate/no_turbo", "1\n");
    UNIT_INT(seen().turbo, HOST_TURBO_OFF);
}

static void a_card_is_known_by_vendor_and_class(void) {
    write_file("bus/pci/devices/0000:00:01.0/vendor", "0x10de\n");
    write_file("bus/pci/devices/0000:00:01.0/class", "0x040300\n"); /* its sound */
    write_file("bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    write_file("bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    UNIT_CHECK(!seen().nvidia);
    write_file("bus/pci/devices/0000:00:03.0/vendor", "0x10de\n");
    write_file("bus/pci/devices/0000:00:03.0/class", "0x030200\n");
    UNIT_CHECK(seen().nvidia);
}

int main(void) {
    char command[64];
    if (!mkdtemp(root)) return 1;
    UNIT_RUN(nothing_is_told);
    UNIT_RUN(one_governor_that_differs_is_named);
    UNIT_RUN(a_turbo_is_known_by_either_switch);
    UNIT_RUN(a_card_is_known_by_vendor_and_class);
    snprintf(command, sizeof command, "rm -rf %s", root);
    UNIT_CHECK(system(command) == 0);
    return unit_end();
}
