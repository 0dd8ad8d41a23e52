/* Owns what a list of models may say, and how it becomes what is to be done: an item for each model and size.
 * Everything is looked at before anything runs, so that a slip costs no night. */
#include "front/zoo.h"

#include "common/files.h"
#include "common/json.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST_BYTES = 4 << 20, MOST_MODELS = 1000, MOST_SIZES = 64, MOST_ITEMS = 1000, MOST_DIMS = 32, NAME = 100 };

typedef struct reading {
    zoo *z;
    char place[32];          /* "models[3]" */
    const json_t *own, *all; /* a model, and the defaults */
} reading;

__attribute__((format(printf, 2, 3))) static _Noreturn void bad(const reading *r, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    guard_fail(r->z->a->guard, STATUS_INPUT, "%s: %s: %s", r->z->path, r->place, text);
}

/* ---- members ---- */

static const char *const of_top[] = {"schema", "defaults", "models", NULL};
static const char *const of_all[] = {"precision", "device", "regime", "budget_s", "dims", NULL};
static const char *const of_model[] = {"model",  "name",     "sha256", "precision", "device",
                                       "regime", "budget_s", "dims",   NULL};

/* What is unknown is ignored, as everywhere; but for what looks like a slip, which would be missed in the morning. */
static void check_members(const reading *r, const json_t *object, const char *const *known) {
    const char *key;
    json_t *value;
    if (!json_is_object(object)) bad(r, "is no object; it has members such as \"%s\"", known[0]);
    json_object_foreach((json_t *)object, key, value) {
        const char *near = NULL;
        for (int k = 0; known[k]; k++) {
            if (strcmp(key, known[k]) == 0) {
                near = NULL;
                break;
            }
            if (cli_near(key, known[k])) near = known[k];
        }
        if (near) bad(r, "there is no member \"%s\"; did you mean \"%s\"?", key, near);
    }
}

static const json_t *member(const reading *r, const char *key) {
    const json_t *own = json_object_get(r->own, key);
    return own ? own : json_object_get(r->all, key);
}

/* One of the choices, if any; NULL: not given. */
static const char *text_of(const reading *r, const char *key, const char *const *choices) {
    const json_t *value = member(r, key);
    if (!value) return NULL;
    const char *text = json_string_value(value);
    if (!text || !*text) bad(r, "\"%s\" is no text", key);
    for (int k = 0; choices && strcmp(text, choices[k]) != 0; k++)
        if (!choices[k + 1])
            bad(r, "\"%s\" cannot be \"%s\"; say \"%s\", or \"%s\"", key, text, choices[0], choices[1]);
    return text;
}

static double budget_of(const reading *r) {
    const json_t *value = member(r, "budget_s");
    if (r->z->budget > 0 || !value) return r->z->budget;
    const double seconds = json_is_number(value) ? json_number_value(value) : 0;
    if (!(seconds >= 1 && seconds <= 1e7)) bad(r, "\"budget_s\" is no number of seconds from 1 to 10000000");
    return seconds;
}

/* ---- which model ---- */

/* What a folder, a log and a line are called after: nothing that any of them takes for its own. */
static bool is_name(const char *name) {
    size_t n = 0;
    while (name[n] && (isalnum((unsigned char)name[n]) || strchr("._+-", name[n]))) n++;
    return n > 0 && n <= NAME && !name[n] && isalnum((unsigned char)name[0]) && strcmp(name, "zoo") != 0 &&
           strcmp(name, "all") != 0;
}

/* The last part of a path or URL without what follows its last dot. */
static const char *stem_of(const reading *r, const char *text, bool url) {
    const size_t length = url ? strcspn(text, "?#") : strlen(text);
    size_t from = length, to = length;
    while (from > 0 && text[from - 1] != '/') from--;
    for (size_t k = from; k < length; k++)
        if (text[k] == '.') to = k;
    return arena_strndup(r->z->a, text + from, to - from);
}

static int hex(char c) {
    const char *const digits = "0123456789abcdef", *const at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* file:///a%20b → /a b */
static const char *path_of_url(const reading *r, const char *url) {
    const char *from = url + strlen("file://");
    if (strncmp(from, "localhost/", 10) == 0) from += 9;
    if (*from != '/') bad(r, "%s names no file; say file:///the/path", url);
    char *const path = arena_strndup(r->z->a, from, strlen(from)), *to = path;
    for (; *from; from++) {
        int code = (unsigned char)*from;
        if (code == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0) {
            code = hex(from[1]) * 16 + hex(from[2]);
            from += 2;
        }
        if (code == 0) bad(r, "%s names no file", url);
        *to++ = (char)code;
    }
    *to = 0;
    return path;
}

static void read_sha256(const reading *r, zoo_model *m) {
    const json_t *value = json_object_get(r->own, "sha256");
    if (!value) return;
    const char *text = json_string_value(value);
    if (!text || strlen(text) != 64 || strspn(text, "0123456789abcdefABCDEF") != 64)
        bad(r, "\"sha256\" is no sum of 64 digits from 0 to f; sha256sum FILE prints it");
    char *lower = arena_strndup(r->z->a, text, 64);
    for (char *c = lower; *c; c++) *c = (char)tolower((unsigned char)*c);
    m->sha256 = lower;
}

static void read_model(const reading *r, zoo_model *m) {
    arena *a = r->z->a;
    const json_t *named = json_object_get(r->own, "name");
    const char *text = json_string_value(json_object_get(r->own, "model"));
    if (!text || !*text) bad(r, "\"model\" is missing: a path, or a URL that begins with https:// or file://");
    const char *scheme = strstr(text, "://");
    const bool https = strncmp(text, "https://", 8) == 0, file = strncmp(text, "file://", 7) == 0;
    if (scheme && !https && !file) bad(r, "%s: is loaded by no way; say https:// or file://, or a path", text);
    read_sha256(r, m);
    if (https && !m->sha256)
        bad(r, "%s: needs a \"sha256\"; what comes from elsewhere is checked before it is used", text);
    m->name = named ? json_string_value(named) : stem_of(r, text, https);
    if (!m->name || !is_name(m->name))
        bad(r, "%s: cannot name a folder; give a \"name\" of letters, digits and ._+- but for \"zoo\" and \"all\"",
            named ? "\"name\"" : text);
    const char *base = files_base(r->z->path);
    if (https) {
        m->url = text;
        m->file = arena_printf(a, "%s/zoo/models/%s.onnx", r->z->output, m->name);
    } else if (file) {
        m->file = path_of_url(r, text);
    } else {
        m->file = text[0] == '/' ? text : arena_printf(a, "%.*s%s", (int)(base - r->z->path), r->z->path, text);
    }
}

/* ---- at which sizes ---- */

static void read_size(const reading *r, const json_t *size, settings *s) {
    const char *key;
    json_t *value;
    if (!json_is_object(size)) bad(r, "\"dims\" is no list of sizes such as {\"batch\": 1, \"seq\": 128}");
    if (json_object_size(size) > MOST_DIMS) bad(r, "a size of \"dims\" binds more than %d dimensions", MOST_DIMS);
    s->dims.items = arena_array(r->z->a, cli_binding, json_object_size(size) + 1);
    json_object_foreach((json_t *)size, key, value) {
        const int64_t number = json_integer_value(value); /* 0 where it is none */
        if (!*key || number < 1) bad(r, "\"dims\": \"%s\" is no whole number from 1 on", key);
        if (strcmp(key, "batch") == 0)
            s->batch = number;
        else if (strcmp(key, "seq") == 0)
            s->seq = number;
        else
            s->dims.items[s->dims.count++] = (cli_binding){key, number};
    }
}

static void read_items(const reading *r, int at, zoo_model *m) {
    zoo *z = r->z;
    const json_t *dims = member(r, "dims");
    const size_t sizes = dims ? json_array_size(dims) : 1;
    if (sizes < 1 || sizes > MOST_SIZES) bad(r, "\"dims\" is no list of 1 to %d sizes", MOST_SIZES);
    settings s = {.model = m->file, .name = m->name, .out = z->output};
    s.precision = text_of(r, "precision", start_precisions);
    s.device = text_of(r, "device", NULL);
    s.regime = text_of(r, "regime", start_regimes);
    s.budget = budget_of(r);
    for (size_t k = 0; k < sizes; k++) {
        if (z->item_count == MOST_ITEMS) bad(r, "more than %d models and sizes; divide the list", MOST_ITEMS);
        zoo_item *item = &z->items[z->item_count++];
        *item = (zoo_item){.model = m, .at = at, .with = s};
        if (dims) read_size(r, json_array_get(dims, k), &item->with);
    }
}

/* They would take turns in one folder. One model may stand there twice, with other settings. */
static void refuse_same_name(const reading *r, int at) {
    const zoo_model *m = &r->z->models[at];
    for (int k = 0; k < at; k++) {
        const zoo_model *other = &r->z->models[k];
        if (strcmp(other->name, m->name) != 0) continue;
        if (!other->url != !m->url || strcmp(other->file, m->file) != 0)
            bad(r, "is called %s, and so is models[%d]; give one of them a \"name\" of its own", m->name, k);
        if (m->url && strcmp(other->sha256, m->sha256) != 0)
            bad(r, "is called %s, as models[%d] is, and has another sha256; give it a \"name\" of its own", m->name, k);
    }
}

void zoo_read(zoo *z) {
    status st = {0};
    reading r = {.z = z, .place = "top"};
    z->root = json_read(z->path, &(json_limits){.bytes = MOST_BYTES, .depth = 8}, &st);
    if (!z->root || !json_check_schema(z->root, "zoo", 1, z->path, &st))
        guard_fail(z->a->guard, st.code, "%s", st.text);
    const json_t *models = json_object_get(z->root, "models");
    check_members(&r, z->root, of_top);
    if (json_array_size(models) < 1 || json_array_size(models) > MOST_MODELS)
        bad(&r, "\"models\" is no list of 1 to %d models", MOST_MODELS);
    r.all = json_object_get(z->root, "defaults");
    if (r.all) {
        snprintf(r.place, sizeof r.place, "defaults");
        check_members(&r, r.all, of_all);
    }
    z->model_count = (int)json_array_size(models);
    z->models = arena_array(z->a, zoo_model, z->model_count);
    z->items = arena_array(z->a, zoo_item, MOST_ITEMS);
    for (int k = 0; k < z->model_count; k++) {
        snprintf(r.place, sizeof r.place, "models[%d]", k);
        r.own = json_array_get(models, (size_t)k);
        check_members(&r, r.own, of_model);
        read_model(&r, &z->models[k]);
        refuse_same_name(&r, k);
        read_items(&r, k, &z->models[k]);
    }
}
