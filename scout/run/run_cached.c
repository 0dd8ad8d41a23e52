/* Owns what a run takes from the cache of measurements and leaves there: under which keys, and for which cards. */
#include "scout/run/run_internal.h"

#include "scout/measure/figures.h"
#include "scout/measure/measure_key.h"

#include <string.h>

const char *run_cached_card(run *r, int device) {
    return measure_key_card(r->devices[device].about->device_instance, &r->arena);
}

/* Of one card; NULL: of any of its class. left: of a run whose dataflow is known. */
static char *key_of(run *r, const run_item *i, bool cut, bool left, const char *card) {
    const measure_key key = {.operation = i->key,
                             .left = left,
                             .written = i->operation->written,
                             .distant = i->operation->distant,
                             .handed = i->operation->handed,
                             .crowd_written = i->operation->crowd_written,
                             .regime = r->options->regime,
                             .candidates = r->devices[0].about->candidates_hash,
                             .exhaustive = r->search.exhaustive,
                             .candidate = r->search.candidate,
                             .early_exit = r->search.early_exit,
                             .workspace_limit = r->search.workspace_limit,
                             .cut = cut,
                             .compare = !r->search.compare ? NULL
                                        : r->search.before ? r->search.before
                                                           : "",
                             .card = card};
    return measure_key_text(&key, &r->arena);
}

static json_t *look_up(run *r, const run_item *i, bool cut, const char *card) {
    char note[256];
    json_t *entry = cache_get(&r->cache, key_of(r, i, cut, r->left_known, card), note, sizeof note);
    if (note[0]) run_warn_once(r, note);
    if (entry && report_may_serve(entry, true)) return entry;
    json_decref(entry);
    return NULL;
}

/* It ends sooner than usual: its figures are for those alone that want no better ones. */
static bool is_cut(const run *r) {
    return r->budget.whole_s > 0 || r->options->target_ci > figures_usual_target(run_on_host(r));
}

/* This card's own figures before those of another one of its class. */
void run_cached_find(run *r, run_item *i) {
    const bool cuts = is_cut(r);
    if (r->options->no_cache || r->options->samples) return; /* a cache has no blocks */
    for (int cut = 0; cut <= cuts && !i->measurement; cut++)
        for (int k = 0; k <= r->device_count && !i->measurement; k++)
            i->measurement = look_up(r, i, cut, k < r->device_count ? run_cached_card(r, k) : NULL);
    if (!i->measurement) return;
    i->source = RUN_CACHED;
    figures_aim(i->measurement, r->options->target_ci);
    const char *card = json_string_value(json_object_get(i->measurement, "card"));
    bool own = !card;
    for (int k = 0; k < r->device_count; k++) own = own || strcmp(card, run_cached_card(r, k)) == 0;
    r->of_other_cards += !own;
}

/* At the end, with all of its passes: a pass takes less time than a file. Of a run whose dataflow is known also for
 * those that know none: what a launch takes more in this model is nothing to them. */
void run_cached_store(run *r) {
    const bool cut = is_cut(r) || *r->stop || r->failure.code != STATUS_OK;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        status st = {0};
        if (!i->changed || !report_may_serve(i->measurement, true)) continue;
        const char *const card = json_string_value(json_object_get(i->measurement, "card"));
        const char *const own[] = {key_of(r, i, cut, r->left_known, card), key_of(r, i, cut, r->left_known, NULL)};
        const char *const plain[] = {key_of(r, i, cut, false, card), key_of(r, i, cut, false, NULL)};
        json_t *without = r->left_known ? figures_without_fetch(i->measurement) : NULL;
        if (!cache_put(&r->cache, own, 2, i->measurement, &st) ||
            (without && !cache_put(&r->cache, plain, 2, without, &st)))
            run_warn(r, "%s", st.text);
        json_decref(without);
        i->changed = false;
    }
}
