/* Names: text from a model is checked once, kept once, and where inlining or a careless exporter would make two nodes
 * or tensors share a name, told apart. */
#include "extract/read/build.h"

#include "common/plain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Checking and looking up a text takes as long as reading one field for every so many bytes of it. */
enum { BYTES_A_STEP = 2 };

void build_fail(build *b, const char *format, ...) {
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    guard_fail(b->file->guard, STATUS_INPUT, "%s", text);
}

/* Length of the UTF-8 sequence at s, 0 where it is none: overlong forms, surrogates and what is above U+10FFFF are
 * none. */
static size_t sequence(const uint8_t *s, size_t left) {
    const uint8_t c = s[0];
    if (c < 0x80) return 1;
    const size_t n = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
        (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

const char *build_text(build *b, ProtobufCBinaryData bytes, const char *what) {
    if (bytes.len == 0) return "";
    b->file->steps += bytes.len / BYTES_A_STEP;
    for (size_t k = 0; k < bytes.len;) {
        if (bytes.data[k] == 0)
            build_fail(b, "%s '%.*s': contains a NUL byte; names are text", what, (int)(k < 100 ? k : 100),
                       (const char *)bytes.data);
        const size_t n = sequence(bytes.data + k, bytes.len - k);
        if (n == 0)
            build_fail(b, "%s '%.*s': is not valid UTF-8 at its byte %zu; names are text", what,
                       (int)(k < 100 ? k : 100), (const char *)bytes.data, k);
        k += n;
    }
    bool added;
    return build_strings_put(&b->strings, (const char *)bytes.data, bytes.len, b->arena, &added)->text;
}

const char *build_domain(build *b, ProtobufCBinaryData bytes) {
    const char *domain = build_text(b, bytes, "domain");
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

const char *build_raw_text(build *b, const build_raw *raw) {
    if (*raw->name) return arena_printf(b->arena, "node '%.200s' (%.100s)", raw->name, raw->op_type);
    return arena_printf(b->arena, "node at byte %llu (%.100s)", (unsigned long long)raw->span.offset, raw->op_type);
}

build_name *build_name_find(const build_scope *s, const char *name) {
    for (; s; s = s->outer) {
        build_name *found = map_get(&s->names, name);
        if (found) return found;
    }
    return NULL;
}

build_name *build_name_declare(build *b, build_scope *s, const char *name, const char *owner) {
    void **place = map_put(&s->names, name);
    if (*place)
        build_fail(b, "%s: the name '%.200s' is given twice in one graph; every value needs its own name", owner, name);
    build_name *n = arena_zalloc(b->frames, sizeof *n);
    n->producer = -1;
    *place = n;
    return n;
}

/* The name itself, or with "#2", "#3", …; counts how often each was asked for, so that many equal ones stay cheap. */
static const char *unique(build *b, build_strings *used, const map *also, const char *name) {
    const char *candidate = name;
    for (;;) {
        bool added;
        build_strings_put(used, candidate, strlen(candidate), NULL, &added);
        if (added && !(also && map_get(also, candidate))) return candidate;
        build_string *first = build_strings_put(used, name, strlen(name), NULL, &added);
        if (first->count == 0) first->count = 1;
        candidate = arena_printf(b->arena, "%s#%u", name, (unsigned)++first->count);
    }
}

/* Both ends are short before they are joined: what many calls say again is not copied whole for each. */
const char *build_name_joined(build *b, const char *prefix, const char *name) {
    const char *own = plain_name(b->arena, name);
    return *prefix ? plain_name(b->arena, arena_printf(b->arena, "%s%s", prefix, own)) : own;
}

const char *build_name_of_node(build *b, const build_scope *s, const char *given, const char *op_type) {
    if (!*given) given = arena_printf(b->arena, "%s_%lld", op_type, (long long)b->model->node_count);
    return unique(b, &b->node_names, NULL, build_name_joined(b, s->node_prefix, given));
}

/* Names of the model itself stay as they are (they are unique in their scope); made ones give way to them. */
const char *build_name_of_tensor(build *b, const build_scope *s, const char *name) {
    if (!*s->tensor_prefix) return name;
    const build_scope *root = s;
    while (root->outer && root->outer->target == s->target) root = root->outer;
    const build_call *call = s->call;
    while (call && call->scope->target == s->target) {
        root = call->scope;
        call = call->scope->call;
    }
    return unique(b, &s->target->taken, *root->tensor_prefix ? NULL : &root->names,
                  build_name_joined(b, s->tensor_prefix, name));
}
