/* Who computes a part of a fusion: the candidate and variant that its own measurement found best, else the library's
 * default. */
#include "scout/measure/parts_internal.h"

#include <stdlib.h>
#include <string.h>

/* wished NULL: the first one. */
static scout_answer find_variant(const scout_candidate *c, const parts_step *s, scout_device *device,
                                 const char *wished, scout_domain *room, variants_one *out, scout_why *why) {
    const bool exhaustive = wished && parts_current->exhaustive;
    variants all;
    const scout_answer answer = variants_open(&all, c, &s->op, device, exhaustive, room, why);
    if (answer != SCOUT_OK) return answer;
    if (wished ? variants_find(&all, wished, out) : variants_next(&all, out)) return SCOUT_OK;
    if (wished) return scout_say(why, SCOUT_NO, "feature", "%.40s has no variant %.80s here", c->name, wished);
    return scout_say(why, SCOUT_NO, "feature", "%.40s has no variant for this part", c->name);
}

static scout_answer prepare(const scout_candidate *c, const parts_step *s, scout_device *device, const char *variant,
                            parts_choice *out, scout_why *why) {
    variants_one one;
    *out = (parts_choice){.candidate = c, .needs = {.size = sizeof out->needs}};
    scout_answer answer = c->supports(&s->op, device, why);
    scout_domain *d = calloc(1, sizeof *d);
    if (!d) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    if (answer == SCOUT_OK) answer = find_variant(c, s, device, variant, d, &one, why);
    if (answer == SCOUT_OK) {
        memcpy(out->variant, one.text, sizeof out->variant);
        answer = scout_prepare(c, &s->op, device, one.values, &out->plan, &out->needs, why);
    }
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
    scout_answer answer = scout_say(why, SCOUT_NO, "no_candidate", "a part has no implementation: %.80s", s->id);
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
