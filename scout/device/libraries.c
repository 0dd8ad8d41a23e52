/* Shared libraries: where they are looked for, and which file was opened. Compiled into the program and once more into
 * the CUDA device's object, each with a list of its own. What changes here is a list that only grows: an opened library
 * stays for the life of the process, as its code may be in use by anything that was loaded after it. Any thread may
 * ask. */
#include "scout/device/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_OPENED = 64, MAX_NOTES = 16 };

typedef struct opened {
    char name[128];
    void *handle;
} opened;

static char *search_path; /* of --library-path, owned */
static opened list[MAX_OPENED];
static int list_count;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* guards the list and the notes */

/* Customary places of the toolkit; patterns, the highest version first. */
static const char *const toolkit_folders[] = {
    "/usr/local/cuda/lib64",        "/usr/local/cuda/targets/x86_64-linux/lib",
    "/usr/local/cuda-[0-9]*/lib64", "/opt/cuda/lib64",
    "/usr/lib/cuda/lib64",
};

void libraries_set_path(const char *folders) {
    free(search_path);
    search_path = folders && *folders ? strdup(folders) : NULL;
}

bool libraries_pass_path(const char *folders) {
    static const char name[] = "CEILING_SCOUT_LIBRARY_PATH";
    const char *before = getenv(name);
    char *both = NULL;
    if (!folders) return true;
    if (asprintf(&both, "%s%s%s", folders, before && *before ? ":" : "", before ? before : "") < 0) return false;
    const bool good = setenv(name, both, 1) == 0;
    free(both);
    return good;
}

static char notes[MAX_NOTES][400];
static uint32_t note_count;

/* The loader's words mostly begin with the path. */
static void add_note(const char *path, const char *why) {
    char text[sizeof notes[0]];
    const bool named = strncmp(why, path, strlen(path)) == 0;
    snprintf(text, sizeof text, "%s%s%s; it was skipped", named ? "" : path, named ? "" : ": ", why);
    for (char *c = text; *c; c++) /* it goes into JSON and onto terminals */
        if (*c < 0x20 || *c > 0x7e) *c = '?';
    for (uint32_t k = 0; k < note_count; k++)
        if (strcmp(notes[k], text) == 0) return;
    if (note_count < MAX_NOTES) memcpy(notes[note_count++], text, sizeof text);
}

const char *libraries_note(uint32_t index) {
    pthread_mutex_lock(&opening);
    const char *note = index < note_count ? notes[index] : NULL; /* what stands there stays */
    pthread_mutex_unlock(&opening);
    return note;
}

/* One search: what is wanted, and the first sentence of a file that was there and would not open. */
typedef struct search {
    const char *const *names;
    int flags;
    const char *found; /* name that opened */
    char looked[160];  /* folders, for a person */
    char broken[200];
} search;

static void *found_at(search *s, const char *name, const char *path) {
    void *handle = dlopen(path, s->flags);
    if (handle) {
        s->found = name;
    } else {
        const char *why = dlerror();
        if (!why) why = "it is not a library";
        if (!s->broken[0]) snprintf(s->broken, sizeof s->broken, "%s", why);
        add_note(path, why);
    }
    return handle;
}

static void note_folder(search *s, const char *folder) {
    const size_t used = strlen(s->looked);
    snprintf(s->looked + used, sizeof s->looked - used, "%s%s", used > 0 ? ", " : "", folder);
}

static void *in_folder(search *s, const char *folder) {
    char path[PATH_MAX];
    note_folder(s, folder);
    for (int k = 0; s->names[k]; k++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, s->names[k]) >= (int)sizeof path) continue;
        if (access(path, F_OK) != 0) continue;
        void *handle = found_at(s, s->names[k], path);
        if (handle) return handle;
    }
    return NULL;
}

static void *in_list(search *s, const char *folders) {
    char folder[PATH_MAX];
    for (const char *at = folders; at && *at;) {
        const size_t n = strcspn(at, ":");
        if (n > 0 && n < sizeof folder) {
            memcpy(folder, at, n);
            folder[n] = 0;
            if (access(folder, F_OK) != 0) add_note(folder, strerror(errno)); /* misspelt, most likely */
            void *handle = in_folder(s, folder);
            if (handle) return handle;
        }
        at += n + (at[n] == ':');
    }
    return NULL;
}

static void *beside_program(search *s) {
    char folder[PATH_MAX], lib[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n <= 0) return NULL;
    folder[n] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    void *handle = in_folder(s, folder);
    if (handle || snprintf(lib, sizeof lib, "%s/../lib/ceiling-scout", folder) >= (int)sizeof lib) return handle;
    return in_folder(s, lib);
}

/* Of a library in which this code is, and which a program may have anywhere: the folder of ours beside it. */
static void *beside_object(search *s) {
    char folder[PATH_MAX];
    Dl_info here;
    if (dladdr(notes, &here) == 0 || !here.dli_fname) return NULL;
    const char *slash = strrchr(here.dli_fname, '/');
    const int n = slash ? (int)(slash - here.dli_fname) : 0;
    if (n == 0 || snprintf(folder, sizeof folder, "%.*s/ceiling-scout", n, here.dli_fname) >= (int)sizeof folder)
        return NULL;
    struct stat is;
    return stat(folder, &is) == 0 && S_ISDIR(is.st_mode) ? in_folder(s, folder) : NULL;
}

static void *by_loader(search *s) {
    note_folder(s, "the system's loader");
    for (int k = 0; s->names[k]; k++) {
        void *handle = dlopen(s->names[k], s->flags);
        if (handle) {
            s->found = s->names[k];
            return handle;
        }
        /* "not there" is no news; a library that is there and lacks another one is */
        const char *why = dlerror();
        if (why && !s->broken[0] && strncmp(why, s->names[k], strlen(s->names[k])) != 0)
            snprintf(s->broken, sizeof s->broken, "%s", why);
    }
    return NULL;
}

static void *in_toolkit(search *s) {
    for (size_t k = 0; k < sizeof toolkit_folders / sizeof toolkit_folders[0]; k++) {
        glob_t hits;
        void *handle = NULL;
        if (glob(toolkit_folders[k], 0, NULL, &hits) == 0)
            for (size_t i = hits.gl_pathc; i > 0 && !handle; i--) handle = in_folder(s, hits.gl_pathv[i - 1]);
        globfree(&hits);
        if (handle) return handle;
    }
    return NULL;
}

static void *look_everywhere(search *s) {
    void *handle = NULL;
    for (int k = 0; s->names[k]; k++)
        if (strchr(s->names[k], '/')) { /* a path says all */
            note_folder(s, s->names[k]);
            handle = found_at(s, s->names[k], s->names[k]);
            if (handle) return handle;
        }
    const char *cuda = getenv("CUDA_HOME");
    char folder[PATH_MAX];
    handle = in_list(s, search_path);
    if (!handle) handle = in_list(s, getenv("CEILING_SCOUT_LIBRARY_PATH"));
    if (!handle) handle = beside_program(s);
    if (!handle) handle = beside_object(s);
    if (!handle) handle = by_loader(s);
    if (!handle && cuda && *cuda && snprintf(folder, sizeof folder, "%s/lib64", cuda) < (int)sizeof folder)
        handle = in_folder(s, folder);
    if (!handle) handle = in_toolkit(s);
    return handle;
}

/* The file behind a handle: the loader's own word, with links resolved. */
static void tell_path(void *handle, char *path, size_t room) {
    struct link_map *map = NULL;
    char real[PATH_MAX];
    if (!path || room == 0) return;
    path[0] = 0;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name) return;
    snprintf(path, room, "%s", realpath(map->l_name, real) ? real : map->l_name);
}

static opened *known(const char *const *names) {
    for (int k = 0; names[k]; k++)
        for (int i = 0; i < list_count; i++)
            if (strcmp(list[i].name, names[k]) == 0) return &list[i];
    return NULL;
}

static void *open_first(const char *const *names, bool global, char *path, size_t room, scout_why *why) {
    search s = {.names = names, .flags = RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL)};
    if (path && room > 0) path[0] = 0;
    opened *before = known(names);
    void *handle = before ? before->handle : look_everywhere(&s);
    if (!handle) {
        if (s.broken[0]) {
            scout_say(why, SCOUT_NO, "library", "%s cannot be loaded: %s", names[0], s.broken);
        } else {
            scout_say(why, SCOUT_NO, "library", "%s was not found in %s", names[0], s.looked);
        }
        return NULL;
    }
    tell_path(handle, path, room);
    if (before && global) {
        struct link_map *map = NULL; /* opened for itself alone before: now its symbols serve others as well */
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map)
            dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    }
    if (!before && list_count < MAX_OPENED) {
        opened *entry = &list[list_count++];
        snprintf(entry->name, sizeof entry->name, "%s", s.found);
        entry->handle = handle;
    }
    return handle;
}

void *libraries_open(const char *const *names, bool global, char *path, size_t room, scout_why *why) {
    pthread_mutex_lock(&opening);
    void *handle = open_first(names, global, path, room, why);
    pthread_mutex_unlock(&opening);
    return handle;
}

void *libraries_symbol(void *handle, const char *name, scout_why *why) {
    dlerror();
    void *symbol = dlsym(handle, name);
    if (symbol) return symbol;
    char path[PATH_MAX];
    tell_path(handle, path, sizeof path);
    scout_say(why, SCOUT_NO, "library", "%.150s has no %.60s: another version is needed", path, name);
    return NULL;
}

bool libraries_bind(void *handle, const libraries_place *places, size_t count, void *table, scout_why *why) {
    for (size_t k = 0; k < count; k++) {
        void *const symbol = libraries_symbol(handle, places[k].name, why);
        if (!symbol) return false;
        /* a function's address travels as bytes: C has no cast from an object's pointer to a function's */
        memcpy((char *)table + places[k].at, &symbol, sizeof symbol);
    }
    return true;
}
