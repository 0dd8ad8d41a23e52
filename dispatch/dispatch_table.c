/* Owns what dispatch.json means: its members, and which of them contradict each other. docs/formats.md describes it. */
#include "dispatch/dispatch_table.h"

#include "dispatch/dispatch_json.h"

#include <stdio.h>
#include <stdlib.h>

static const char schema_prefix[] = "ceiling-scout/dispatch/", schema_name[] = "ceiling-scout/dispatch/1";

enum { ENTRIES = 1 << 20 };

/* What an entry says, before it is checked. */
typedef struct read_entry {
    scout_dispatch_entry entry;
    const char *choice;
    dispatch_bytes algo;
} read_entry;

typedef struct read_range {
    int64_t from, to, step;
    const char *upper;
    uint32_t mask;
} read_range;

/* Everything while a file is read. */
typedef struct reading {
    dispatch_table *table;
    scout_dispatch_library *libraries; /* of the device class */
    scout_dispatch_library *needed;    /* of these, what entries name */
    scout_dispatch_entry *entries;
    dispatch_between *ranges;
    size_t library_count, library_room, needed_count, needed_room, entry_count, entry_room, range_count, range_room;
} reading;

#define MEMBER(type, member, how, must)                                                                                \
    { #member, DISPATCH_JSON_##how, must, offsetof(type, member), NULL }
#define COUNT_OF(a) ((int)(sizeof(a) / sizeof *(a)))

/* The calls of the reader know their target alone, so what is behind it is found from the reader itself. */
typedef struct table_reader {
    dispatch_json json; /* first */
    reading r;
} table_reader;

static reading *reading_of(dispatch_json *j) { return &((table_reader *)j)->r; }

static bool no_memory(dispatch_json *j) {
    return dispatch_json_fail(j, "it needs more memory than a table of its size may");
}

static bool text_is(const char *text, size_t least, const char *what, dispatch_json *j) {
    return (text && strlen(text) >= least) || dispatch_json_fail(j, "%s is empty", what);
}

/* ---- the device ---- */

static const scout_dispatch_library *find_library(const scout_dispatch_library *known, size_t count, const char *name) {
    for (size_t k = 0; k < count; k++)
        if (strcmp(known[k].name, name) == 0) return &known[k];
    return NULL;
}

static bool read_library(dispatch_json *j, void *target) {
    static const dispatch_json_member members[] = {
        MEMBER(scout_dispatch_library, name, TEXT, true),
        MEMBER(scout_dispatch_library, version, TEXT, true),
    };
    reading *r = reading_of(j);
    scout_dispatch_library library = {.name = NULL};
    (void)target;
    if (!dispatch_json_object(j, members, COUNT_OF(members), &library)) return false;
    if (!text_is(library.name, 1, "a library's name", j) || !text_is(library.version, 1, "a library's version", j))
        return false;
    if (find_library(r->libraries, r->library_count, library.name) || r->library_count == 64)
        return dispatch_json_fail(j, "a library is listed twice, or there are too many of them");
    if (!dispatch_memory_grow(j->memory, (void **)&r->libraries, &r->library_room, r->library_count, sizeof library))
        return no_memory(j);
    r->libraries[r->library_count++] = library;
    return true;
}

static bool read_libraries(dispatch_json *j, void *target) { return dispatch_json_array(j, read_library, target); }

static bool read_device(dispatch_json *j, void *target) {
    static const dispatch_json_member members[] = {
        {"class", DISPATCH_JSON_TEXT, true, offsetof(dispatch_table, device_class), NULL},
        {"name", DISPATCH_JSON_TEXT, true, offsetof(dispatch_table, device.name), NULL},
        {"capability", DISPATCH_JSON_TEXT, true, offsetof(dispatch_table, device.capability), NULL},
        {"driver", DISPATCH_JSON_TEXT, true, offsetof(dispatch_table, device.driver), NULL},
        {"units", DISPATCH_JSON_COUNT, false, offsetof(dispatch_table, device.units), NULL},
        {"memory_mib", DISPATCH_JSON_COUNT, false, offsetof(dispatch_table, device.memory_mib), NULL},
        {"power_limit_w", DISPATCH_JSON_COUNT, false, offsetof(dispatch_table, device.power_limit_w), NULL},
        {"libraries", DISPATCH_JSON_CALL, true, 0, read_libraries},
    };
    dispatch_table *t = reading_of(j)->table;
    (void)target;
    return dispatch_json_object(j, members, COUNT_OF(members), t) && text_is(t->device_class, 1, "the class", j) &&
           text_is(t->device.name, 1, "the device's name", j) && text_is(t->device.capability, 1, "capability", j) &&
           text_is(t->device.driver, 1, "the driver", j);
}

/* ---- entries ---- */

static bool read_entry_library(dispatch_json *j, void *target) {
    static const dispatch_json_member members[] = {
        {"name", DISPATCH_JSON_TEXT, true, offsetof(scout_dispatch_entry, library), NULL},
        {"version", DISPATCH_JSON_TEXT, true, offsetof(scout_dispatch_entry, version), NULL},
    };
    return dispatch_json_object(j, members, COUNT_OF(members), &((read_entry *)target)->entry);
}

static bool read_packing(dispatch_json *j, void *target) {
    static const dispatch_json_member members[] = {
        {"how", DISPATCH_JSON_TEXT, true, offsetof(scout_dispatch_entry, packing), NULL},
        {"us", DISPATCH_JSON_PART, false, offsetof(scout_dispatch_entry, pack_us), NULL},
        {"bytes", DISPATCH_JSON_COUNT, false, offsetof(scout_dispatch_entry, pack_bytes), NULL},
    };
    return dispatch_json_object(j, members, COUNT_OF(members), &((read_entry *)target)->entry);
}

static bool read_proof(dispatch_json *j, void *target) {
    static const dispatch_json_member members[] = {
        {"ratio", DISPATCH_JSON_TIME, true, offsetof(scout_dispatch_entry, ratio), NULL},
        {"ratio_ci", DISPATCH_JSON_PART, true, offsetof(scout_dispatch_entry, ratio_ci), NULL},
        {"expected_ci", DISPATCH_JSON_PART, true, offsetof(scout_dispatch_entry, expected_ci), NULL},
        {"default_ci", DISPATCH_JSON_PART, true, offsetof(scout_dispatch_entry, default_ci), NULL},
        {"batches", DISPATCH_JSON_COUNT, true, offsetof(scout_dispatch_entry, batches), NULL},
        {"launches", DISPATCH_JSON_COUNT, true, offsetof(scout_dispatch_entry, launches), NULL},
    };
    return dispatch_json_object(j, members, COUNT_OF(members), &((read_entry *)target)->entry);
}

static bool read_place(dispatch_json *j, void *target) {
    read_range *range = target;
    int64_t place;
    if (!dispatch_json_integer(j, &place)) return false;
    if (place < 0 || place >= SCOUT_DISPATCH_NUMBERS || range->mask >> place & 1)
        return dispatch_json_fail(j, "no key has this position, or it is listed twice");
    range->mask |= 1U << place;
    return true;
}

static bool read_places(dispatch_json *j, void *target) { return dispatch_json_array(j, read_place, target); }

/* Of the entry that comes next: it is not counted before all of it is read. */
static bool read_range_item(dispatch_json *j, void *target) {
    static const dispatch_json_member members[] = {
        {"places", DISPATCH_JSON_CALL, true, 0, read_places},
        MEMBER(read_range, from, COUNT, true),
        MEMBER(read_range, to, COUNT, true),
        MEMBER(read_range, step, COUNT, true),
        MEMBER(read_range, upper, TEXT, true),
    };
    reading *r = reading_of(j);
    read_range range = {.mask = 0};
    (void)target;
    if (!dispatch_json_object(j, members, COUNT_OF(members), &range)) return false;
    if (!text_is(range.upper, 1, "the upper end of a range", j)) return false;
    if (range.mask == 0 || range.from < 1 || range.to <= range.from || range.step < 1)
        return dispatch_json_fail(j, "a range has no size, or no position in the key");
    if (!dispatch_memory_grow(j->memory, (void **)&r->ranges, &r->range_room, r->range_count, sizeof *r->ranges))
        return no_memory(j);
    r->ranges[r->range_count++] = (dispatch_between){.lower = (uint32_t)r->entry_count,
                                                     .upper = range.upper,
                                                     .from = range.from,
                                                     .to = range.to,
                                                     .step = range.step,
                                                     .mask = range.mask};
    return true;
}

static bool read_ranges(dispatch_json *j, void *target) { return dispatch_json_array(j, read_range_item, target); }

/* A library that an entry needs is one of its device class, in that version. */
static bool need_library(dispatch_json *j, const scout_dispatch_entry *e) {
    reading *r = reading_of(j);
    if (!e->library) return true;
    const scout_dispatch_library *known = find_library(r->libraries, r->library_count, e->library);
    if (!known || !e->version || strcmp(known->version, e->version) != 0)
        return dispatch_json_fail(j, "an entry needs a library that is not one of the device's");
    if (find_library(r->needed, r->needed_count, e->library)) return true;
    if (!dispatch_memory_grow(j->memory, (void **)&r->needed, &r->needed_room, r->needed_count, sizeof *known))
        return no_memory(j);
    r->needed[r->needed_count++] = *known;
    return true;
}

static bool check_entry(dispatch_json *j, read_entry *read) {
    static const char *const choices[] = {"default", "tuned", "custom"};
    scout_dispatch_entry *e = &read->entry;
    int choice = 0;
    while (choice < COUNT_OF(choices) && (!read->choice || strcmp(choices[choice], read->choice) != 0)) choice++;
    if (choice == COUNT_OF(choices)) return dispatch_json_fail(j, "a choice is default, tuned or custom");
    e->choice = (scout_dispatch_choice)choice;
    if (!text_is(e->key, 1, "a key", j) || !text_is(e->operation, 0, "operation", j) ||
        !text_is(e->implementation, 1, "implementation", j) || !text_is(e->variant, 0, "variant", j))
        return false;
    if (read->algo.count > 0) e->algo = read->algo.bytes, e->algo_bytes = read->algo.count;
    return need_library(j, e);
}

static bool read_one(dispatch_json *j, void *target) {
    static const dispatch_json_member members[] = {
        {"key", DISPATCH_JSON_TEXT, true, offsetof(read_entry, entry.key), NULL},
        {"operation", DISPATCH_JSON_TEXT, true, offsetof(read_entry, entry.operation), NULL},
        {"choice", DISPATCH_JSON_TEXT, true, offsetof(read_entry, choice), NULL},
        {"implementation", DISPATCH_JSON_TEXT, true, offsetof(read_entry, entry.implementation), NULL},
        {"variant", DISPATCH_JSON_TEXT, true, offsetof(read_entry, entry.variant), NULL},
        {"library", DISPATCH_JSON_CALL, false, 0, read_entry_library},
        {"algo", DISPATCH_JSON_HEX, false, offsetof(read_entry, algo), NULL},
        {"config", DISPATCH_JSON_RAW, true, offsetof(read_entry, entry.config), NULL},
        {"packing", DISPATCH_JSON_CALL, false, 0, read_packing},
        {"workspace_bytes", DISPATCH_JSON_COUNT, false, offsetof(read_entry, entry.workspace_bytes), NULL},
        {"expected_us", DISPATCH_JSON_TIME, true, offsetof(read_entry, entry.expected_us), NULL},
        {"default_us", DISPATCH_JSON_TIME, true, offsetof(read_entry, entry.default_us), NULL},
        {"proof", DISPATCH_JSON_CALL, true, 0, read_proof},
        {"ranges", DISPATCH_JSON_CALL, false, 0, read_ranges},
    };
    reading *r = reading_of(j);
    read_entry read = {.choice = NULL};
    (void)target;
    if (!dispatch_json_object(j, members, COUNT_OF(members), &read) || !check_entry(j, &read)) return false;
    if (r->entry_count == ENTRIES) return dispatch_json_fail(j, "it has more than %d entries", (int)ENTRIES);
    if (!dispatch_memory_grow(j->memory, (void **)&r->entries, &r->entry_room, r->entry_count, sizeof *r->entries))
        return no_memory(j);
    r->entries[r->entry_count++] = read.entry;
    return true;
}

/* Entries are checked against the device, so that must come first: as `analyze dispatch` writes it. */
static bool read_entries(dispatch_json *j, void *target) {
    if (!reading_of(j)->table->device.name) return dispatch_json_fail(j, "\"device\" must come before \"entries\"");
    return dispatch_json_array(j, read_one, target);
}

/* ---- the whole ---- */

/* Written first, and so looked at before anything else. */
static bool read_schema(dispatch_json *j, void *target) {
    const char *schema = NULL;
    (void)target;
    if (!dispatch_json_text(j, &schema)) return false;
    if (schema && strcmp(schema, schema_name) == 0) return true;
    if (schema && strncmp(schema, schema_prefix, sizeof schema_prefix - 1) == 0)
        return dispatch_json_fail(j, "it is of version %.20s, only version 1 is known here",
                                  schema + sizeof schema_prefix - 1);
    return dispatch_json_fail(j, "it is not a dispatch table: \"schema\" is not %s", schema_name);
}

static bool read_all(dispatch_json *j) {
    static const dispatch_json_member members[] = {
        {"schema", DISPATCH_JSON_CALL, true, 0, read_schema},
        {"device", DISPATCH_JSON_CALL, true, 0, read_device},
        {"regime", DISPATCH_JSON_TEXT, true, offsetof(dispatch_table, regime), NULL},
        {"method", DISPATCH_JSON_COUNT, true, offsetof(dispatch_table, method), NULL},
        {"entries", DISPATCH_JSON_CALL, true, 0, read_entries},
    };
    dispatch_table *t = reading_of(j)->table;
    return dispatch_json_object(j, members, COUNT_OF(members), t) && dispatch_json_end(j) &&
           text_is(t->regime, 1, "the regime", j);
}

dispatch_table *dispatch_table_read(const char *text, size_t size, char *why, size_t room) {
    table_reader reader = {.json = {.text = text, .at = text, .end = text + size, .why = why, .room = room}};
    why[0] = 0;
    if (size > DISPATCH_TABLE_BYTES) {
        snprintf(why, room, "it has more than %d MiB", DISPATCH_TABLE_BYTES >> 20);
        return NULL;
    }
    dispatch_table *t = calloc(1, sizeof *t);
    if (!t) {
        snprintf(why, room, "no memory is left");
        return NULL;
    }
    t->memory.limit = ((size_t)16 << 20) + 8 * size;
    reader.json.memory = &t->memory;
    reader.r.table = t;
    reading *r = &reader.r;
    if (!read_all(&reader.json) ||
        !dispatch_build(t, r->entries, r->entry_count, r->ranges, r->range_count, why, room)) {
        dispatch_table_free(t);
        return NULL;
    }
    t->device.libraries = r->needed;
    t->device.library_count = (int)r->needed_count;
    return t;
}

void dispatch_table_free(dispatch_table *t) {
    if (!t) return;
    dispatch_memory_free(&t->memory);
    free(t);
}
