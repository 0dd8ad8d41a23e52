/* Owns which devices of one kind are not as fast as the others: their ceilings, which all of them measured in this run,
 * differ from the median of the others. A night on several GPUs or machines is as good as these are alike. */
#include "front/zoo.h"

#include "common/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RATES = 24, NAME = 40 };
static const double FAR = 0.03;

typedef struct rate {
    char name[NAME];
    double value;
} rate;

typedef struct card {
    const char *kind;           /* class and regime: only these are compared */
    const char *model, *unique; /* its name; what tells it from others of the kind */
    const char *gpu;            /* as --gpus named it; NULL: it did not */
    rate rates[RATES];
    int count;
} card;

static void put(card *c, const char *name, double value) {
    if (c->count == RATES || !(value > 0) || !isfinite(value)) return;
    rate *const r = &c->rates[c->count++];
    snprintf(r->name, sizeof r->name, "%s", name);
    r->value = value;
}

static void read_card(zoo *z, const zoo_item *item, const json_t *device, card *c) {
    const json_t *const ceilings = json_object_get(device, "ceilings"), *peak;
    size_t k;
    c->kind = arena_printf(z->a, "%s %s %s", json_get_text(device, "class"), json_get_text(ceilings, "load"),
                           json_get_text(ceilings, "launch"));
    c->model = zoo_digest_plain(z, json_get_text(device, "model"));
    c->unique = zoo_digest_plain(z, json_get_text(device, "instance"));
    c->gpu = item->gpu;
    put(c, "read", json_get_number(ceilings, "read_tbps"));
    put(c, "copy", json_get_number(ceilings, "copy_tbps"));
    put(c, "write", json_get_number(ceilings, "write_tbps"));
    json_array_foreach(json_object_get(ceilings, "peaks"), k, peak)
        put(c, json_get_text(peak, "precision"), json_get_number(peak, "tflops"));
}

/* Of each device once: all models of a run share its ceilings. */
static int read_cards(zoo *z, card *cards, int room) {
    int count = 0;
    for (int k = 0; k < z->item_count; k++) {
        const zoo_item *const item = &z->items[k];
        const char *const path = arena_printf(z->a, "%s/run.json", item->folder);
        const json_t *device;
        size_t at;
        if (!item->done || !item->measured) continue;
        json_t *const story = zoo_read_quietly(path);
        json_array_foreach(json_object_get(story, "devices"), at, device) {
            card c = {0};
            bool known = false;
            read_card(z, item, device, &c);
            for (int other = 0; other < count; other++)
                known = known || (strcmp(cards[other].kind, c.kind) == 0 && strcmp(cards[other].unique, c.unique) == 0);
            if (!known && c.count > 0 && count < room) cards[count++] = c;
        }
        json_decref(story);
    }
    return count;
}

static int by_value(const void *a, const void *b) {
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static const rate *rate_of(const card *c, const char *name) {
    for (int k = 0; k < c->count; k++)
        if (strcmp(c->rates[k].name, name) == 0) return &c->rates[k];
    return NULL;
}

/* Of the others of its kind. */
static double median_of_others(zoo *z, const card *cards, int count, const card *but, const char *name, int *found) {
    double *const values = arena_array(z->a, double, count);
    int n = 0;
    for (int k = 0; k < count; k++) {
        const rate *const r =
            &cards[k] == but || strcmp(cards[k].kind, but->kind) != 0 ? NULL : rate_of(&cards[k], name);
        if (r) values[n++] = r->value;
    }
    *found = n;
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n == 0 ? NAN : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* "uuid=" of what tells it apart, or all of that. */
static const char *short_name(zoo *z, const card *c) {
    const char *const uuid = strstr(c->unique, "uuid=");
    const char *const own = uuid ? arena_strndup(z->a, uuid + 5, strcspn(uuid + 5, ";")) : c->unique;
    return c->gpu ? arena_printf(z->a, "GPU %s (%s, %s)", c->gpu, c->model, own)
                  : arena_printf(z->a, "%s (%s)", c->model, own);
}

static const char *compare(zoo *z, const card *cards, int count, const card *c) {
    double worst = 0;
    int far = 0, others = 0;
    const char *name = "";
    for (int k = 0; k < c->count; k++) {
        int found = 0;
        const double off = c->rates[k].value / median_of_others(z, cards, count, c, c->rates[k].name, &found) - 1;
        if (!(fabs(off) > FAR) || (found == 1 && off > 0)) continue; /* of two, the slower one is named */
        far++;
        if (fabs(off) <= fabs(worst)) continue;
        worst = off;
        name = c->rates[k].name;
        others = found;
    }
    if (far == 0) return NULL;
    const char *const more = far > 1 ? arena_printf(z->a, ", and %d more of its ceilings", far - 1) : "";
    return arena_printf(z->a, "%s is %.1f %% %s its %s by its ceiling of %s%s", short_name(z, c), 100 * fabs(worst),
                        worst < 0 ? "below" : "above", others == 1 ? "sibling" : "siblings", name, more);
}

void zoo_cards_compare(zoo *z) {
    const int room = z->item_count * 2;
    card *const cards = arena_array(z->a, card, room);
    const int count = read_cards(z, cards, room);
    z->unlike = arena_array(z->a, const char *, count + 1);
    for (int k = 0; k < count; k++) {
        const char *const text = compare(z, cards, count, &cards[k]);
        if (text) z->unlike[z->unlike_count++] = text;
    }
}
