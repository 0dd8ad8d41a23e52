/* Which members an entry of the hand-written form can have. Who types a file misspells a name now and then, and what is
 * silently left out would be measured as another operation: so a name that is not known is refused, with the nearest
 * one that is. */
#include "scout/operation_internal.h"

#include <string.h>

enum { LONGEST = 32 }; /* no name is longer; what is has nothing near it */

/* Beside the named dimensions of operation_fields.c. What comes after `comment` says nothing here: a remark, and what
 * an entry that was copied from ops.json brings along. */
static const char *const members[] = {
    "op",    "shape",  "dtype",        "precision", "count",   "sparsity",   "pattern",      "causal",      "layout",
    "mask",  "what",   "weight_dtype", "out_dtype", "comment", "id",         "nodes",        "occurrences", "weights",
    "parts", "region", "times",        "macs",      "flops",   "bytes_read", "bytes_written"};

enum { MEMBERS = sizeof members / sizeof *members };

/* The k-th name that is known; NULL: there are no more. */
static const char *known_name(size_t k) { return k < MEMBERS ? members[k] : operation_field_name(k - MEMBERS); }

static bool is_known(const char *name) {
    for (size_t k = 0; k < MEMBERS; k++)
        if (strcmp(members[k], name) == 0) return true;
    return operation_is_field(name);
}

static int least(int a, int b) { return a < b ? a : b; }

/* How many letters must be put in, left out, replaced, or swapped with their neighbour. Both have LONGEST at most. */
static int distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (swapped) d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

/* NULL: nothing is so near that it could have been meant. */
static const char *nearest(const char *name) {
    const size_t length = strlen(name);
    const char *best = NULL, *one;
    if (length > LONGEST) return NULL;
    int far = length < 2 ? 0 : length < 4 ? 1 : length < 8 ? 2 : 3;
    for (size_t k = 0; (one = known_name(k)); k++) {
        if (strlen(one) > LONGEST) continue;
        const int d = distance(name, one);
        if (d < far || (d == far && !best)) best = one, far = d;
    }
    return best;
}

void operation_check_names(const operation_reader *r, const json_t *entry) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)entry, name, value) {
        if (is_known(name)) continue;
        const char *meant = nearest(name);
        if (meant) operation_fail(r, "\"%.60s\" is not known; did you mean \"%s\"?", name, meant);
        operation_fail(r,
                       "\"%.60s\" is not known; known are op, shape, dtype, count, sparsity, pattern, causal, comment "
                       "and the members of an operation in docs/formats.md",
                       name);
    }
}
