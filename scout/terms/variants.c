/* Turns domains into combinations, combinations into texts, and texts back. */
#include "scout/terms/variants.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = sizeof((scout_parameter *)NULL)->values / sizeof((scout_parameter *)NULL)->values[0] };

static int value_text(const scout_parameter *p, int index, char *text, size_t room) {
    const int n = p->labels ? snprintf(text, room, "%.23s=%s", p->name, p->labels[index])
                            : snprintf(text, room, "%.23s=%lld", p->name, (long long)p->values[index]);
    for (char *c = text; room > 0 && *c; c++) /* it goes into JSON and onto terminals */
        if (*c < 0x20 || *c > 0x7e) *c = '?';
    return n;
}

void variants_text(const scout_domain *domain, const int *indices, char *text, size_t room) {
    size_t used = 0;
    if (room > 0) text[0] = 0;
    for (uint32_t k = 0; k < domain->count && k < SCOUT_MAX_PARAMETERS && used + 1 < room; k++) {
        if (k > 0) text[used++] = ',', text[used] = 0;
        const int n = value_text(&domain->parameters[k], indices[k], text + used, room - used);
        if (n > 0) used += (size_t)n;
    }
}

/* Names that do not fit would be cut to the same one. */
static bool is_good(const scout_domain *d) {
    size_t most = 0;
    if (d->count > SCOUT_MAX_PARAMETERS) return false;
    for (uint32_t k = 0; k < d->count; k++) {
        const scout_parameter *p = &d->parameters[k];
        int longest = 0;
        if (p->count < 1 || p->count > MOST_VALUES) return false;
        for (uint32_t i = 0; i < p->count; i++) {
            char one[VARIANTS_TEXT];
            if (p->labels && !p->labels[i]) return false;
            const int n = value_text(p, (int)i, one, sizeof one);
            if (n > longest) longest = n;
        }
        most += (size_t)longest + 1;
    }
    return most <= VARIANTS_TEXT;
}

scout_answer variants_open(variants *v, const scout_candidate *candidate, const scout_op *op, scout_device *device,
                           bool exhaustive, scout_domain *room, scout_why *why) {
    *v = (variants){.candidate = candidate, .op = op, .device = device, .domain = room};
    memset(room, 0, sizeof *room);
    scout_answer answer = candidate->domain ? candidate->domain(op, device, exhaustive, room, why) : SCOUT_OK;
    if (answer == SCOUT_OK && !is_good(room))
        answer = scout_say(why, SCOUT_FAILED, "error", "its domain of variants is invalid");
    v->ended = answer != SCOUT_OK;
    if (v->ended) room->count = 0;
    return answer;
}

/* Whether the combination exists, and its values. */
static bool allowed(const variants *v, const int *indices, int64_t *values) {
    memset(values, 0, SCOUT_MAX_PARAMETERS * sizeof *values);
    for (uint32_t k = 0; k < v->domain->count; k++) values[k] = v->domain->parameters[k].values[indices[k]];
    return !v->candidate->allows || v->candidate->allows(v->op, v->device, values);
}

/* The next allowed combination from `indices` on, which then are behind it. */
static bool step(const variants *v, int *indices, bool *ended, variants_one *out) {
    while (!*ended) {
        const bool found = allowed(v, indices, out->values);
        if (found) variants_text(v->domain, indices, out->text, sizeof out->text);
        int k = (int)v->domain->count - 1;
        while (k >= 0 && ++indices[k] == (int)v->domain->parameters[k].count) indices[k--] = 0;
        *ended = k < 0;
        if (found) return true;
    }
    return false;
}

bool variants_next(variants *v, variants_one *out) {
    if (!step(v, v->next, &v->ended, out)) return false;
    out->first = !v->begun;
    v->begun = true;
    return true;
}

static bool is_first(const variants *v, const variants_one *one) {
    int indices[SCOUT_MAX_PARAMETERS] = {0};
    bool ended = false;
    variants_one first;
    return step(v, indices, &ended, &first) && memcmp(first.values, one->values, sizeof first.values) == 0;
}

/* Parameters from k on against the rest of a name. A value's text may be the beginning of another one's, or have a
 * comma in it: all that fit are tried. */
static bool match(const variants *v, uint32_t k, const char *rest, bool named, int *indices, variants_one *out) {
    if (k == v->domain->count) return *rest == 0 && allowed(v, indices, out->values);
    const char *at = named && *rest == ',' ? rest + 1 : rest;
    for (uint32_t i = 0; (!named || at > rest) && i < v->domain->parameters[k].count; i++) {
        char one[VARIANTS_TEXT];
        const size_t n = (size_t)value_text(&v->domain->parameters[k], indices[k] = (int)i, one, sizeof one);
        if (strncmp(at, one, n) == 0 && match(v, k + 1, at + n, true, indices, out)) return true;
    }
    indices[k] = 0;
    return match(v, k + 1, rest, named, indices, out);
}

bool variants_find(const variants *v, const char *text, variants_one *out) {
    int indices[SCOUT_MAX_PARAMETERS] = {0};
    if (!match(v, 0, text, false, indices, out)) return false;
    variants_text(v->domain, indices, out->text, sizeof out->text);
    out->first = is_first(v, out);
    return true;
}

/* What people say, and what the library is called in a candidate; NULL: any of them. */
static const struct { const char *said, *library; } aliases[] = {{"cublas", "cublaslt"}, {"library", NULL}};

bool filter_takes(const char *list, const char *name) {
    const size_t length = strlen(name);
    if (!list) return true;
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        if (n == length && strncmp(at, name, n) == 0) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

bool filter_is_before(const char *before, const char *name, const char *library, bool is_default) {
    if (!before) return is_default;
    if (strcmp(before, name) == 0) return true;
    if (!is_default) return false;
    for (size_t k = 0; k < sizeof aliases / sizeof aliases[0]; k++) {
        if (strcmp(aliases[k].said, before) != 0) continue;
        return !aliases[k].library || (library && strcmp(aliases[k].library, library) == 0);
    }
    return library && strcmp(before, library) == 0;
}
