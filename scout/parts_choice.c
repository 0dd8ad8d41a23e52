/* Who computes a part of a fusion: the candidate and variant that its own measurement found best, else the library's
 * default. */
#include "scout/parts_internal.h"

#include <stdlib.h>
#include <string.h>

/* The values that a variant's text ("algo=6,weight=packed") stands for. */
static bool read_variant(const scout_domain *d, const char *text, int64_t *values) {
    const char *at = text;
    for (uint32_t k = 0; k < d->count; k++) {
        const scout_parameter *p = &d->parameters[k];
        const size_t length = strcspn(at, ",");
        uint32_t found = p->count;
        for (uint32_t n = 0; n < p->count && found == p->count; n++) {
            char one[160];
            const scout_domain single = {.count = 1, .parameters = {*p}};
            measure_variant_text(&single, &(int){(int)n}, one, sizeof one);
            if (strlen(one) == length && strncmp(one, at, length) == 0) found = n;
        }
        if (found == p->count) return false;
        values[k] = p->values[found];
        at += length + (at[length] == ',');
    }
    return *at == 0;
}

static bool first_variant(const scout_candidate *c, const parts_step *s, scout_device *device, const scout_domain *d,
                          int *indices, int64_t *values) {
    for (;;) {
        for (uint32_t k = 0; k < d->count; k++) values[k] = d->parameters[k].values[indices[k]];
        if (!c->allows || c->allows(&s->op, device, values)) return true;
        int k = (int)d->count - 1;
        while (k >= 0 && ++indices[k] == (int)d->parameters[k].count) indices[k--] = 0;
        if (k < 0) return false;
    }
}

/* variant NULL: the first one. */
static scout_answer find_values(const scout_candidate *c, const parts_step *s, scout_device *device,
                                const char *variant, scout_domain *d, int64_t *values, char *text, size_t room,
                                scout_why *why) {
    int indices[SCOUT_MAX_PARAMETERS] = {0};
    const bool exhaustive = variant && parts_current->exhaustive;
    const scout_answer answer = c->domain ? c->domain(&s->op, device, exhaustive, d, why) : SCOUT_OK;
    if (answer != SCOUT_OK) return answer;
    if (!measure_rows_good_domain(d)) return scout_say(why, SCOUT_FAILED, "error", "its domain of variants is broken");
    if (variant) {
        snprintf(text, room, "%s", variant);
        if (read_variant(d, variant, values) && (!c->allows || c->allows(&s->op, device, values))) return SCOUT_OK;
        return scout_say(why, SCOUT_NO, "feature", "%.40s has no variant %.80s here", c->name, variant);
    }
    if (!first_variant(c, s, device, d, indices, values))
        return scout_say(why, SCOUT_NO, "feature", "%.40s has no variant for this part", c->name);
    measure_variant_text(d, indices, text, room);
    return SCOUT_OK;
}

static scout_answer prepare(const scout_candidate *c, const parts_step *s, scout_device *device, const char *variant,
                            parts_choice *out, scout_why *why) {
    int64_t values[SCOUT_MAX_PARAMETERS] = {0};
    *out = (parts_choice){.candidate = c, .needs = {.size = sizeof out->needs}};
    scout_answer answer = c->supports(&s->op, device, why);
    scout_domain *d = calloc(1, sizeof *d);
    if (!d) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    if (answer == SCOUT_OK)
        answer = find_values(c, s, device, variant, d, values, out->variant, sizeof out->variant, why);
    if (answer == SCOUT_OK) answer = c->prepare(&s->op, device, values, &out->plan, &out->needs, why);
    free(d);
    if (answer == SCOUT_OK && !out->plan) answer = scout_say(why, SCOUT_FAILED, "error", "prepare made no plan");
    return answer;
}

scout_answer parts_choose_named(const parts_step *s, scout_device *device, parts_choice *out, scout_why *why) {
    plugins_candidate *list = malloc(PLUGINS_MAX_CANDIDATES * sizeof *list);
    scout_answer answer = scout_say(why, SCOUT_NO, "feature", "no candidate %.60s is here", s->candidate);
    if (!list) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    const int count = measure_rows_candidates(parts_current->api, s->op.kind, list);
    for (int k = 0; k < count; k++)
        if (strcmp(list[k].candidate->name, s->candidate) == 0) {
            answer = prepare(list[k].candidate, s, device, s->variant ? s->variant : "", out, why);
            break;
        }
    free(list);
    return answer;
}

scout_answer parts_choose_default(const parts_step *s, scout_device *device, parts_choice *out, scout_why *why) {
    plugins_candidate *list = malloc(PLUGINS_MAX_CANDIDATES * sizeof *list);
    scout_answer answer = scout_say(why, SCOUT_NO, "no_candidate", "nobody computes a part of it: %.80s", s->id);
    if (!list) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    const int count = measure_rows_candidates(parts_current->api, s->op.kind, list);
    for (int k = 0; k < count; k++) {
        if (!(list[k].candidate->flags & SCOUT_BASELINE)) continue;
        answer = prepare(list[k].candidate, s, device, NULL, out, why);
        if (answer == SCOUT_OK || answer == SCOUT_LOST) break;
    }
    free(list);
    return answer;
}
