/* What else runs on a host whose cores are the device: by the kernel's own account, over a moment in which this process
 * does nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { OTHERS_PROGRAMS = 4, OTHERS_NAME = 16 };

typedef struct others {
    int cores;  /* that this process may use */
    double use; /* of these, by others */
    int count;  /* of the programs that were seen at it, the busiest first */
    char programs[OTHERS_PROGRAMS][OTHERS_NAME];
} others;

/* Two looks at `proc` ("/proc"), so many seconds apart. This process and those that it started are left out. False:
 * nothing is told there. */
bool others_look(const char *proc, double seconds, others *out);

/* "1.3 of 2 cores are busy: cc1, python3"; empty where hardly anything runs. Names are cleaned for a terminal. */
const char *others_words(const others *b, char *text, size_t room);

/* Where the system allows it (to root), this process and what it starts come before other work, which waits then; so
 * does a session that began with this process.
 * One that was told to be nice stays so. */
void others_wait(void);
