/* Names of devices. The words are checked before the list is looked at, so that a slip of the keyboard is told as one
 * on any machine. */
#include "scout/worker/supervisor_internal.h"

#include "common/json.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char digits[] = "0123456789";

static bool wrong(const char *text, status *st) {
    return status_fail(st, STATUS_USAGE,
                       "--device %s: give auto, all, cpu, cuda:0, cuda:0,1, or a part of its name such as h200", text);
}

/* "cuda", "cuda:0", or a further "1" behind a comma. */
static bool add_word(const char *word, size_t n, char *kind, size_t kind_room, supervisor_words *out) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const size_t number_only = strspn(word, digits), name = strspn(word, letters);
    char ordinal[12] = "0";
    if (n == 0 || out->count == SUPERVISOR_MAX_DEVICES) return false;
    if (number_only == n && kind[0]) {
        if (n > 6) return false;
        snprintf(ordinal, sizeof ordinal, "%.*s", (int)n, word);
    } else {
        char here[24];
        const size_t rest = name < n ? n - name - 1 : 0;
        if (name == 0 || number_only == n || name >= sizeof here || name > n) return false;
        if (name < n && (word[name] != ':' || rest == 0 || rest > 6 || strspn(word + name + 1, digits) < rest))
            return false;
        if (name < n) snprintf(ordinal, sizeof ordinal, "%.*s", (int)rest, word + name + 1);
        snprintf(here, sizeof here, "%.*s", (int)name, word);
        if (kind[0] && strcmp(kind, here) != 0) return false; /* they could not share a queue */
        snprintf(kind, kind_room, "%s", here);
    }
    char name_text[32];
    snprintf(name_text, sizeof name_text, strcmp(kind, "cpu") == 0 && strcmp(ordinal, "0") == 0 ? "%s" : "%s:%s", kind,
             ordinal);
    for (int k = 0; k < out->count; k++)
        if (strcmp(out->names[k], name_text) == 0) return false;
    snprintf(out->names[out->count++], sizeof out->names[0], "%s", name_text);
    return true;
}

static bool is_there(const json_t *entry) { return !json_object_get(entry, "why"); }

static bool of_kind(const json_t *entry, const char *kind) {
    const char *name = json_get_text(entry, "device");
    const size_t n = strlen(kind);
    return strncmp(name, kind, n) == 0 && (name[n] == 0 || name[n] == ':');
}

static bool pick(const char *text, const json_t *list, supervisor_words *out, status *st) {
    const bool all = strcmp(text, "all") == 0;
    const char *kind = "cpu";
    for (size_t k = 0; k < json_array_size(list); k++)
        if (of_kind(json_array_get(list, k), "cuda") && is_there(json_array_get(list, k))) kind = "cuda";
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *entry = json_array_get(list, k);
        if (!of_kind(entry, kind) || !is_there(entry) || (out->count > 0 && !all)) continue;
        if (out->count == SUPERVISOR_MAX_DEVICES) break;
        snprintf(out->names[out->count++], sizeof out->names[0], "%s", json_get_text(entry, "device"));
    }
    if (out->count > 0) return true;
    return status_fail(st, STATUS_ENVIRONMENT, "there is no device: %s",
                       json_get_text(json_array_get(list, 0), "why")[0] ? json_get_text(json_array_get(list, 0), "why")
                                                                        : "none was found");
}

/* Its own name in other letters. Folders are called after devices, so it is not taken as it is. */
static bool is_slip(const json_t *entry, const char *kind) {
    const char *const device = json_get_text(entry, "device");
    const size_t n = strcspn(device, ":");
    return strlen(kind) == n && strncasecmp(device, kind, n) == 0;
}

/* What people call a device: its sort, or what is printed on the card. */
static bool is_called(const json_t *entry, const char *kind) {
    static const char *const any_gpu[] = {"gpu", "nvidia"};
    for (size_t k = 0; k < sizeof any_gpu / sizeof any_gpu[0]; k++)
        if (strcasecmp(kind, any_gpu[k]) == 0) return of_kind(entry, "cuda");
    return strlen(kind) >= 3 && strcasestr(json_get_text(entry, "name"), kind) != NULL;
}

/* "h200:1": the second of those that are called so becomes its own name. A part of a name that says two sorts of
 * devices says none. */
static bool by_calling(char name[32], const char *kind, const json_t *list, status *st) {
    const char *const colon = strchr(name, ':'), *found = NULL, *of = NULL;
    long left = colon ? strtol(colon + 1, NULL, 10) : 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *entry = json_array_get(list, k);
        const char *const called = json_get_text(entry, "name");
        if (is_there(entry) && is_slip(entry, kind))
            return status_fail(st, STATUS_USAGE, "--device %s: no device has this name; say %s, which is %.100s", kind,
                               json_get_text(entry, "device"), called);
        if (!is_there(entry) || !is_called(entry, kind)) continue;
        if (of && strcmp(of, called) != 0)
            return status_fail(st, STATUS_USAGE,
                               "--device %s: may be %.80s or %.80s; scout_batch --list-devices lists them", kind, of,
                               called);
        of = called;
        if (left-- == 0) found = json_get_text(entry, "device");
    }
    if (!of)
        return status_fail(st, STATUS_USAGE,
                           "--device %s: no device has this name; scout_batch --list-devices lists them", kind);
    if (!found)
        return status_fail(st, STATUS_ENVIRONMENT, "there is no device %s; scout_batch --list-devices lists them",
                           name);
    snprintf(name, 32, "%s", found);
    return true;
}

/* A name that is not in the list: its kind may be, with fewer devices or with the reason why there is none. Else it is
 * what people call a device, and becomes that one's name. */
static bool look_up(char name[32], const char *kind, const json_t *list, status *st) {
    const char *last = NULL, *why = NULL;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *entry = json_array_get(list, k);
        if (!of_kind(entry, kind)) continue;
        const bool same = strcmp(json_get_text(entry, "device"), name) == 0;
        if (same && is_there(entry)) return true;
        if (!is_there(entry) && (same || !why)) why = json_get_text(entry, "why");
        if (is_there(entry)) last = json_get_text(entry, "device");
    }
    if (last && !why) {
        status_set(st, STATUS_ENVIRONMENT, "there is no device %s: the last one is %s", name, last);
    } else if (why) {
        status_set(st, STATUS_ENVIRONMENT, "there is no device %s: %s", name, why);
    } else {
        return by_calling(name, kind, list, st);
    }
    return false;
}

bool supervisor_words_resolve(const char *text, const json_t *list, supervisor_words *out, status *st) {
    char kind[24] = "";
    out->count = 0;
    if (!text) text = "auto";
    if (strcmp(text, "auto") == 0 || strcmp(text, "all") == 0) return pick(text, list, out, st);
    for (const char *at = text;;) {
        const size_t n = strcspn(at, ",");
        if (!add_word(at, n, kind, sizeof kind, out)) return wrong(text, st);
        if (at[n] == 0) break;
        at += n + 1;
    }
    for (int k = 0; k < out->count; k++)
        if (!look_up(out->names[k], kind, list, st)) return false;
    return true;
}
