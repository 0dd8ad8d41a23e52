/* Finds the candidate and the variant among those of the device, and prepares the plan. */
#include "scout/device/choice.h"

#include "scout/device/plugins.h"

#include <stdlib.h>
#include <string.h>

/* wished NULL: the first one. */
static scout_answer find_variant(const scout_candidate *c, const choice_wish *w, scout_device *device,
                                 const char *wished, scout_domain *room, variants_one *out, scout_why *why) {
    const bool exhaustive = wished && w->exhaustive;
    variants all;
    const scout_answer answer = variants_open(&all, c, w->op, device, exhaustive, room, why);
    if (answer != SCOUT_OK) return answer;
    if (wished ? variants_find(&all, wished, out) : variants_next(&all, out)) return SCOUT_OK;
    if (wished) return scout_say(why, SCOUT_NO, "feature", "%.40s has no variant %.80s here", c->name, wished);
    return scout_say(why, SCOUT_NO, "feature", "%.40s has no variant for this operation", c->name);
}

static scout_answer prepare(const scout_candidate *c, const choice_wish *w, scout_device *device, const char *variant,
                            choice *out, scout_why *why) {
    variants_one one;
    *out = (choice){.candidate = c, .needs = {.size = sizeof out->needs}};
    scout_answer answer = c->supports(w->op, device, why);
    scout_domain *d = calloc(1, sizeof *d);
    if (!d) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    if (answer == SCOUT_OK) answer = find_variant(c, w, device, variant, d, &one, why);
    if (answer == SCOUT_OK) {
        memcpy(out->variant, one.text, sizeof out->variant);
        answer = scout_prepare(c, w->op, device, one.values, &out->plan, &out->needs, why);
    }
    free(d);
    if (answer == SCOUT_OK && !out->plan) answer = scout_say(why, SCOUT_FAILED, "error", "prepare made no plan");
    return answer;
}

scout_answer choice_named(const choice_wish *w, scout_device *device, choice *out, scout_why *why) {
    plugins_candidate *list = malloc(PLUGINS_MAX_CANDIDATES * sizeof *list);
    scout_answer answer = scout_say(why, SCOUT_NO, "feature", "no candidate %.60s is here", w->candidate);
    if (!list) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    const int count = plugins_candidates(w->api, w->op->kind, list, PLUGINS_MAX_CANDIDATES);
    for (int k = 0; k < count; k++)
        if (strcmp(list[k].candidate->name, w->candidate) == 0) {
            answer = prepare(list[k].candidate, w, device, w->variant ? w->variant : "", out, why);
            break;
        }
    free(list);
    return answer;
}

scout_answer choice_default(const choice_wish *w, scout_device *device, choice *out, scout_why *why) {
    plugins_candidate *list = malloc(PLUGINS_MAX_CANDIDATES * sizeof *list);
    scout_answer answer = scout_say(why, SCOUT_NO, "no_candidate", "no implementation of %.80s", w->id);
    if (!list) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    const int count = plugins_candidates(w->api, w->op->kind, list, PLUGINS_MAX_CANDIDATES);
    for (int k = 0; k < count; k++) {
        if (!(list[k].candidate->flags & SCOUT_BASELINE)) continue;
        answer = prepare(list[k].candidate, w, device, NULL, out, why);
        if (answer == SCOUT_OK || answer == SCOUT_LOST) break;
    }
    free(list);
    return answer;
}
