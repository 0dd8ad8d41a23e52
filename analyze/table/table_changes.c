/* Owns what is told of a table beside the one that it takes the place of. A deployment that loads the new one runs
 * these operations otherwise; what runs as before is no change, whatever its times are. */
#include "analyze/table/table.h"

#include <string.h>

enum { NAMED = 20 }; /* changes that are told one by one */

typedef enum change { SAME, PROVEN, LOST, OTHER, NEW, GONE, CHANGES } change;
static const char *const words[CHANGES] = {[PROVEN] = "proven now",
                                           [LOST] = "no longer proven: the default again",
                                           [OTHER] = "runs as another",
                                           [NEW] = "new",
                                           [GONE] = "gone"};

static const char *text_of(const json_t *entry, const char *key) { return json_get_text(entry, key); }

static bool is_default(const json_t *entry) { return strcmp(text_of(entry, "choice"), "default") == 0; }

static change change_of(const json_t *before, const json_t *now) {
    if (!now) return GONE;
    if (!before) return NEW;
    if (table_merge_alike(before, now)) return SAME;
    if (is_default(before) && is_default(now)) return SAME; /* a library's default is whatever it takes by itself */
    return is_default(now) ? LOST : is_default(before) ? PROVEN : OTHER;
}

/* Entries by their keys; the caller's. NULL: out of memory. */
static json_t *index_of(const json_t *entries) {
    json_t *all = json_object();
    for (size_t k = 0; all && k < json_array_size(entries); k++) {
        json_t *const entry = json_array_get(entries, k);
        if (json_object_set(all, text_of(entry, "key"), entry) == 0) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

static void tell_entry(FILE *out, change c, const json_t *before, const json_t *now) {
    char what[64], line[1024];
    snprintf(what, sizeof what, "  %s", words[c]);
    int n = snprintf(line, sizeof line, "%.300s", text_of(now ? now : before, "key"));
    if (before && now && n > 0)
        snprintf(line + n, sizeof line - (size_t)n, ": %.100s %.100s, before %.100s %.100s",
                 text_of(now, "implementation"), text_of(now, "variant"), text_of(before, "implementation"),
                 text_of(before, "variant"));
    status_print(out, what, NULL, line);
}

static void tell_counts(FILE *out, const char *path, const size_t counts[CHANGES]) {
    char what[256], line[256];
    snprintf(what, sizeof what, "  since %.200s", path);
    snprintf(line, sizeof line, "%zu proven now, %zu no longer proven, %zu run as another, %zu new, %zu gone",
             counts[PROVEN], counts[LOST], counts[OTHER], counts[NEW], counts[GONE]);
    status_print(out, what, NULL, line);
}

bool table_changes_tell(const json_t *root, const json_t *before, const char *path, FILE *out, status *st) {
    const json_t *const now = json_object_get(root, "entries"), *const then = json_object_get(before, "entries");
    json_t *const new = index_of(now), *const old = index_of(then);
    const bool good = (new &&old) || status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    const size_t earlier = json_array_size(then), all = earlier + json_array_size(now);
    size_t counts[CHANGES] = {0}, told = 0;
    for (int turn = 0; good && turn < 2; turn++) { /* the counts come first */
        for (size_t k = 0; k < all; k++) {
            const json_t *one = k < earlier ? json_array_get(then, k) : json_array_get(now, k - earlier);
            const json_t *other = json_object_get(k < earlier ? new : old, text_of(one, "key"));
            const json_t *const was = k < earlier ? one : NULL, *const is = k < earlier ? other : one;
            if (!was && other) continue; /* told with its earlier entry */
            const change c = change_of(was, is);
            counts[c] += turn == 0;
            if (turn == 1 && c != SAME && told++ < NAMED) tell_entry(out, c, was, is);
        }
        if (turn == 0) tell_counts(out, path, counts);
    }
    json_decref(new);
    json_decref(old);
    if (told > NAMED) fprintf(out, "  and %zu more\n", told - NAMED);
    return good;
}
