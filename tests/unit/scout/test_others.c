/* What else runs, by a made-up /proc: a folder whose numbers change between two looks. */
#include "scout/device/others.h"
#include "tests/unit/unit.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[] = "/tmp/others_XXXXXX";

static void write_file(const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    UNIT_CHECK(file != NULL);
    if (!file) return;
    fputs(text, file);
    (void)fclose(file);
}

static void write_program(long pid, long parent, const char *name, int ticks) {
    char folder[64], path[300], text[300];
    snprintf(path, sizeof path, "%s/%ld", root, pid);
    (void)mkdir(path, 0700);
    snprintf(folder, sizeof folder, "%ld/stat", pid);
    snprintf(text, sizeof text, "%ld (%s) R %ld 1 1 0 -1 4194304 1 0 0 0 %d %d 0 0 20 0\n", pid, name, parent, ticks,
             1);
    write_file(folder, text);
}

/* The first processor that this process may use, and one that no process may. */
static void write_processors(int user, int steal, int rest) {
    char text[300];
    cpu_set_t set;
    int cpu = 0;
    UNIT_CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    while (!CPU_ISSET(cpu, &set)) cpu++;
    snprintf(text, sizeof text,
             "cpu  9 9 9 9 9 9 9 9 0 0\ncpu%d %d 0 10 %d 5 0 0 %d 0 0\ncpu99999 700 0 0 0 0 0 0 0 0 0\nintr 3\n", cpu,
             user, rest, steal);
    write_file("stat", text);
}

static void write_before(void) {
    write_processors(100, 0, 1000);
    write_program(7, 1, "a (b) c", 50);
    write_program(8, 1, "small", 50);
    write_program(9, 1, "idle", 50);
    write_program(getpid(), 1, "myself", 50);
    write_program(11, getpid(), "worker", 50);
}

static bool busy; /* what runs between two looks */

/* In the place of the system's: what lies between two looks, however late a busy machine is. Of 100 ticks: 70 of
 * programs, 10 of them own, 5 of another machine. */
int nanosleep(const struct timespec *wanted, struct timespec *left) {
    UNIT_CHECK(wanted->tv_sec == 0 && wanted->tv_nsec > 0 && !left);
    if (!busy) return 0;
    write_program(7, 1, "a (b) c", 90);
    write_program(8, 1, "small", 59);
    write_program(10, 1, "ne\x1bw", 11);
    write_program(11, getpid(), "worker", 60);
    write_processors(170, 5, 1025);
    return 0;
}

static void others_are_counted_and_named(void) {
    others seen;
    char text[128];
    write_before();
    busy = true;
    UNIT_CHECK(others_look(root, 0.5, &seen));
    busy = false;
    UNIT_CHECK(seen.cores == 1 && seen.use > 0.64 && seen.use < 0.66);
    UNIT_CHECK(seen.count == 2 && strcmp(seen.programs[0], "a (b) c") == 0);
    UNIT_CHECK(strcmp(others_words(&seen, text, sizeof text), "0.7 of 1 core is busy: a (b) c, ne?w") == 0);
}

static void an_idle_machine_says_nothing(void) {
    others seen;
    char text[128];
    write_before();
    UNIT_CHECK(others_look(root, 0.01, &seen) && seen.use == 0 && seen.count == 0);
    UNIT_CHECK(strcmp(others_words(&seen, text, sizeof text), "") == 0);
    UNIT_CHECK(!others_look("/tmp/not/there", 0.01, &seen));
}

static void names_that_do_not_fit_are_cut(void) {
    others seen = {.cores = 2, .use = 1.26, .count = 2, .programs = {"cc1", "python3"}};
    char text[128], little[30];
    UNIT_CHECK(strcmp(others_words(&seen, text, sizeof text), "1.3 of 2 cores are busy: cc1, python3") == 0);
    UNIT_CHECK(strncmp(others_words(&seen, little, sizeof little), text, sizeof little - 1) == 0);
    UNIT_CHECK(strlen(little) == sizeof little - 1);
}

static int clean(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

int main(void) {
    UNIT_CHECK(mkdtemp(root) != NULL);
    UNIT_RUN(others_are_counted_and_named);
    UNIT_RUN(an_idle_machine_says_nothing);
    UNIT_RUN(names_that_do_not_fit_are_cut);
    UNIT_CHECK(clean() == 0);
    return unit_end();
}
