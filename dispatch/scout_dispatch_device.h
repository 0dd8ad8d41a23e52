/* Which device, driver and libraries a table was measured with, and whether this process has the same. A table from
 * another one is refused with one line that names both: what was fast there may be slow here, or not run at all. Part
 * of libscout_dispatch and of every dispatch.h. */
#ifndef SCOUT_DISPATCH_DEVICE_H
#define SCOUT_DISPATCH_DEVICE_H

#include "dispatch/scout_dispatch_key.h"

typedef struct scout_dispatch_library {
    const char *name, *version; /* "cublaslt", "13.1.0": exactly as `scout_batch --list-devices` writes them */
} scout_dispatch_library;

/* Name, capability and driver must be told; so must every library that the table's entries need. What is 0 is not
 * compared. */
typedef struct scout_dispatch_device {
    const char *name;       /* cudaDeviceProp.name: "NVIDIA H200" */
    const char *capability; /* "9.0" */
    const char *driver;     /* "580.159.04"; what comes before the first dot is its branch */
    int64_t units, memory_mib, power_limit_w;
    const scout_dispatch_library *libraries;
    int library_count;
} scout_dispatch_device;

typedef enum scout_dispatch_match {
    SCOUT_DISPATCH_SAME = 0,
    SCOUT_DISPATCH_PATCHED, /* another patch level of the driver's branch: `text` names both, the table may be used */
    SCOUT_DISPATCH_OTHER    /* `text` says what differs and names both: the table must not be used */
} scout_dispatch_match;

/* Texts may come from a file: what could break a line becomes '?', what is longer than any name is cut. */
static inline void scout_dispatch_put_plain(scout_dispatch_writer *w, const char *text) {
    for (int k = 0; text && text[k] && k < 96; k++) {
        const char c = text[k];
        scout_dispatch_put(w, c >= ' ' && c != 0x7f ? &text[k] : "?", 1);
    }
}

static inline void scout_dispatch_put_both(scout_dispatch_writer *w, const char *what, const char *there,
                                           const char *here) {
    scout_dispatch_put_text(w, "the table was measured with ");
    scout_dispatch_put_plain(w, what);
    scout_dispatch_put_text(w, " ");
    scout_dispatch_put_plain(w, there && there[0] ? there : "(not given)");
    scout_dispatch_put_text(w, ", here it is ");
    scout_dispatch_put_plain(w, here && here[0] ? here : "(not given)");
}

static inline scout_dispatch_match scout_dispatch_differs(scout_dispatch_writer *w, const char *what, const char *there,
                                                          const char *here) {
    if (there && here && there[0] && strcmp(there, here) == 0) return SCOUT_DISPATCH_SAME;
    scout_dispatch_put_both(w, what, there, here);
    scout_dispatch_put_text(w, ": it is not used; measure here (scout_batch) and make one (analyze dispatch)");
    return SCOUT_DISPATCH_OTHER;
}

static inline scout_dispatch_match scout_dispatch_number_differs(scout_dispatch_writer *w, const char *what,
                                                                 int64_t there, int64_t here) {
    char texts[2][24];
    const int64_t numbers[2] = {there, here};
    if (there == here || there == 0 || here == 0) return SCOUT_DISPATCH_SAME;
    for (int k = 0; k < 2; k++) {
        scout_dispatch_writer number;
        number.text = texts[k], number.room = sizeof texts[k], number.used = 0;
        scout_dispatch_put_number(&number, numbers[k]);
    }
    return scout_dispatch_differs(w, what, texts[0], texts[1]);
}

static inline scout_dispatch_match scout_dispatch_driver_differs(scout_dispatch_writer *w, const char *there,
                                                                 const char *here) {
    const size_t a = there ? strcspn(there, ".") : 0, b = here ? strcspn(here, ".") : 0;
    if (a == 0 || a != b || memcmp(there, here, a) != 0) return scout_dispatch_differs(w, "driver", there, here);
    if (strcmp(there, here) == 0) return SCOUT_DISPATCH_SAME;
    scout_dispatch_put_both(w, "driver", there, here);
    scout_dispatch_put_text(w, ": the same branch, it is used");
    return SCOUT_DISPATCH_PATCHED;
}

/* `there` as the table says, its libraries those that its entries need; `here` as the caller found it. The line goes to
 * `text`, which is "" where both are the same. */
static inline scout_dispatch_match scout_dispatch_compare(const scout_dispatch_device *there,
                                                          const scout_dispatch_device *here, char *text, size_t room) {
    scout_dispatch_writer w;
    w.text = text, w.room = room, w.used = 0;
    if (room > 0) text[0] = 0;
    if (scout_dispatch_differs(&w, "device", there->name, here->name) ||
        scout_dispatch_differs(&w, "capability", there->capability, here->capability) ||
        scout_dispatch_number_differs(&w, "multiprocessors", there->units, here->units) ||
        scout_dispatch_number_differs(&w, "MiB of memory", there->memory_mib, here->memory_mib) ||
        scout_dispatch_number_differs(&w, "a power limit in watts of", there->power_limit_w, here->power_limit_w))
        return SCOUT_DISPATCH_OTHER;
    for (int k = 0; k < there->library_count; k++) {
        const scout_dispatch_library *library = &there->libraries[k];
        const char *version = SCOUT_DISPATCH_NULL;
        for (int n = 0; n < here->library_count && !version; n++)
            if (strcmp(here->libraries[n].name, library->name) == 0) version = here->libraries[n].version;
        if (scout_dispatch_differs(&w, library->name, library->version, version)) return SCOUT_DISPATCH_OTHER;
    }
    return scout_dispatch_driver_differs(&w, there->driver, here->driver);
}

#endif
