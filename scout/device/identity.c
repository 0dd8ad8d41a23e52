/* Identities: canonical texts, and their way over the wire. */
#include "scout/device/identity.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_LIBRARIES = sizeof((scout_identity *)0)->libraries / sizeof(scout_library) };

/* Whatever a plugin wrote becomes printable ASCII: it goes into keys, file names and JSON. */
static void clean_text(char *text, size_t room) {
    text[room - 1] = 0;
    for (char *s = text; *s; s++)
        if (*s < 0x20 || *s > 0x7e) *s = '?';
}

void identity_clean(scout_identity *id) {
    clean_text(id->name, sizeof id->name);
    clean_text(id->uuid, sizeof id->uuid);
    clean_text(id->capability, sizeof id->capability);
    clean_text(id->driver, sizeof id->driver);
    if (!isfinite(id->power_limit_w) || id->power_limit_w < 0) id->power_limit_w = 0;
    if (id->library_count > MAX_LIBRARIES) id->library_count = MAX_LIBRARIES;
    for (uint32_t k = 0; k < id->library_count; k++) {
        clean_text(id->libraries[k].name, sizeof id->libraries[k].name);
        clean_text(id->libraries[k].version, sizeof id->libraries[k].version);
        char *path = id->libraries[k].path;
        path[sizeof id->libraries[k].path - 1] = 0;
        json_t *text = json_string(path); /* a path may hold any UTF-8, and nothing else */
        if (!text) clean_text(path, sizeof id->libraries[k].path);
        json_decref(text);
    }
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t room, const char *format, ...) {
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

void identity_class(const scout_identity *id, char *text, size_t room) {
    text[0] = 0;
    append(text, room, "name=%s;capability=%s;units=%d;memory_mib=%llu;power_limit_w=%.0f;driver=%.*s", id->name,
           id->capability, (int)id->units, (unsigned long long)(id->memory_bytes >> 20), id->power_limit_w,
           (int)strcspn(id->driver, "."), id->driver);
    for (uint32_t k = 0; k < id->library_count; k++)
        append(text, room, ";%s=%s", id->libraries[k].name, id->libraries[k].version);
}

void identity_instance(const scout_identity *id, char *text, size_t room) {
    identity_class(id, text, room);
    append(text, room, ";uuid=%s", id->uuid);
}

void identity_class_folder(const scout_identity *id, char *text, size_t room) {
    char class_text[2048]; /* more than any class needs: what a shorter buffer cuts must still tell two apart */
    char name[64];
    size_t n = 0;
    identity_class(id, class_text, sizeof class_text);
    for (const char *s = id->name; *s && n < sizeof name - 1; s++) {
        const char c = (char)tolower((unsigned char)*s);
        const bool plain = isalnum((unsigned char)c) || (n > 0 && (c == '-' || c == '.'));
        if (plain) {
            name[n++] = c;
        } else if (n > 0 && name[n - 1] != '_') {
            name[n++] = '_';
        }
    }
    while (n > 0 && name[n - 1] == '_') n--;
    name[n] = 0;
    const unsigned long long hash = XXH3_64bits(class_text, strlen(class_text)) & 0xffffffffffULL;
    snprintf(text, room, "%s-%010llx", n > 0 ? name : "device", hash);
}

json_t *identity_to_json(const scout_identity *id, json_builder *b) {
    json_t *o = json_new_object(b), *libraries = json_new_array(b);
    json_put_int(b, o, "ordinal", id->ordinal);
    json_put_text(b, o, "name", id->name);
    json_put_text(b, o, "uuid", id->uuid);
    json_put_text(b, o, "capability", id->capability);
    json_put_int(b, o, "units", id->units);
    json_put_int(b, o, "memory_bytes", (int64_t)(id->memory_bytes & INT64_MAX));
    json_put_int(b, o, "cache_bytes", (int64_t)(id->cache_bytes & INT64_MAX));
    json_put_real(b, o, "power_limit_w", id->power_limit_w);
    json_put_text(b, o, "driver", id->driver);
    for (uint32_t k = 0; k < id->library_count; k++) {
        json_t *library = json_new_object(b);
        json_put_text(b, library, "name", id->libraries[k].name);
        json_put_text(b, library, "version", id->libraries[k].version);
        json_put_text(b, library, "path", id->libraries[k].path);
        json_push(b, libraries, library);
    }
    json_put(b, o, "libraries", libraries);
    return o;
}

static void copy_text(const json_t *o, const char *key, char *text, size_t room) {
    const char *value = json_string_value(json_object_get(o, key));
    snprintf(text, room, "%s", value ? value : "");
}

bool identity_from_json(const json_t *o, scout_identity *id) {
    memset(id, 0, sizeof *id);
    id->size = sizeof *id;
    if (!json_is_object(o) || !json_is_string(json_object_get(o, "name"))) return false;
    id->ordinal = (int32_t)json_integer_value(json_object_get(o, "ordinal"));
    copy_text(o, "name", id->name, sizeof id->name);
    copy_text(o, "uuid", id->uuid, sizeof id->uuid);
    copy_text(o, "capability", id->capability, sizeof id->capability);
    id->units = (int32_t)json_integer_value(json_object_get(o, "units"));
    id->memory_bytes = (uint64_t)json_integer_value(json_object_get(o, "memory_bytes"));
    id->cache_bytes = (uint64_t)json_integer_value(json_object_get(o, "cache_bytes"));
    id->power_limit_w = json_number_value(json_object_get(o, "power_limit_w"));
    copy_text(o, "driver", id->driver, sizeof id->driver);
    const json_t *libraries = json_object_get(o, "libraries");
    for (size_t k = 0; k < json_array_size(libraries) && k < MAX_LIBRARIES; k++) {
        const json_t *library = json_array_get(libraries, k);
        scout_library *out = &id->libraries[id->library_count++];
        copy_text(library, "name", out->name, sizeof out->name);
        copy_text(library, "version", out->version, sizeof out->version);
        copy_text(library, "path", out->path, sizeof out->path);
    }
    identity_clean(id);
    return true;
}
