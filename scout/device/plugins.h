/* Devices and candidates that a process has: the built-in CPU, the CUDA device's shared object where it is there, and
 * plugins named on the command line (--custom-kernel). Only workers call this: loading a plugin runs its code. */
#pragma once

#include "common/status.h"
#include "scout/plugin.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { PLUGINS_MAX_DEVICES = 8, PLUGINS_MAX_CANDIDATES = 256 };

typedef struct plugins_candidate {
    const scout_candidate *candidate;
    const char *plugin;   /* file it came from; NULL: built in, or the device's own object */
    uint64_t plugin_hash; /* of that file's bytes */
} plugins_candidate;

/* Called before the code of a file runs for the first time, with its name as it was given, and with NULL when that is
 * over: a worker that is lost between was lost by that file. */
typedef void plugins_watch(void *context, const char *file);

/* Opens the built-in devices' objects (scout_cuda.so: its absence is no error, plugins_device_why says it) and each of
 * `files`. A file that is no plugin, or of another ABI: false, st says so. */
bool plugins_load(const char *const *files, int count, plugins_watch *watch, void *context, status *st);

int plugins_device_count(void);
const scout_device_api *plugins_device(int index);              /* borrowed */
const scout_device_api *plugins_device_named(const char *name); /* NULL: none; "cpu", "cuda", … */
/* Why a built-in device is not there ("cuda": no driver library libcuda.so.1; …); NULL where it is. */
const char *plugins_device_why(const char *name);

/* By a word of --device: "cuda:1" is a device's name and which one of them. NULL: why. */
const scout_device_api *plugins_device_of(const char *word, int32_t *ordinal, scout_why *why);

/* Candidates of a kind on a device (kind 0: all kinds), by priority, high first; ties by name. Borrowed. Of a device
 * that this process's list does not have, only its own. */
int plugins_candidates(const scout_device_api *device, uint32_t kind, plugins_candidate *out, int room);
/* Hash of names, versions and library versions of all candidates of the device: part of cache keys. */
uint32_t plugins_kinds(const scout_device_api *device); /* a bit for each kind with an implementation */
uint64_t plugins_candidates_hash(const scout_device_api *device, const scout_identity *identity);

/* ---- whether what a shared object brings can be used: sizes, versions, names, functions that must be there ---- */

/* false: why says what is amiss. */
bool plugins_check_plugin(const scout_plugin *p, scout_why *why);       /* with its candidates, not its device */
bool plugins_check_device(const scout_device_api *api, scout_why *why); /* with its references and candidates */
bool plugins_check_candidate(const scout_candidate *c, scout_why *why);

/* What is looked at of a plugin's file before any code of it runs. */
typedef struct plugins_file {
    char path[PATH_MAX]; /* the real one */
    uint64_t content;    /* XXH3 of its bytes, as `xxhsum -H3` prints it: a kernel that was built anew is another one */
} plugins_file;

/* Whether a name tells a place by itself: one without a slash might be meant as a library that a loader looks for. */
bool plugins_file_is_path(const char *file);
/* false: st says what is amiss, and how to mend it. */
bool plugins_file_look(const char *file, plugins_file *out, status *st);

uint64_t plugins_file_content(const char *path); /* 0: it cannot be read */
