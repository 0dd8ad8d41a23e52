/* Owns handles, and how a table is replaced while others read it.
 *
 * A handle has a few places for tables, and says which of them is current. A reader counts itself into the place that
 * is current, and looks again: is it still the current one, the table in it cannot go away before the reader has
 * counted itself out; else it tries the new one, which happens once for a reload that comes in between and never waits
 * for another thread. A table is only given back from a place that is not current and counts no readers: a reader that
 * counts itself in after that looks again, and leaves without having touched it. Counters belong to the handle and
 * never move. They are spread over cache lines by the reader's stack, so that threads do not write to each other's. */
#include "dispatch/scout_dispatch.h"

#include "dispatch/dispatch_signature.h"
#include "dispatch/dispatch_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 32, STRIPES = 16, LINE = 64 };

typedef struct reader_count {
    _Alignas(LINE) atomic_size_t readers;
} reader_count;

typedef struct table_place {
    reader_count stripes[STRIPES];
    _Atomic(dispatch_table *) table; /* NULL: free */
} table_place;

struct scout_dispatch {
    table_place places[PLACES];
    atomic_uint current;
    pthread_mutex_t writing;      /* taken to reload; readers never take it */
    scout_dispatch_device device; /* the caller's, copied; name NULL: nothing is compared */
    dispatch_memory memory;       /* of the copy */
    dispatch_signers signers;     /* none: a table need not be signed */
};

/* ---- notes ---- */

__attribute__((format(printf, 3, 4))) static scout_dispatch_status say(scout_dispatch_note *note,
                                                                       scout_dispatch_status status, const char *format,
                                                                       ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
    for (char *s = note->text; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f) *s = '?';
    return status;
}

/* ---- files ---- */

/* All bytes of a regular file; the caller's. NULL: errno says why, or is 0 where it is no file or too large. */
static char *read_file(const char *path, size_t most, size_t *size) {
    char *bytes = NULL;
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return NULL;
    errno = 0;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= 0 && info.st_size <= (off_t)most) {
        const size_t room = (size_t)info.st_size + 1; /* one more tells whether it grows */
        bytes = malloc(room);
        for (*size = 0; bytes && *size < room;) {
            const ssize_t n = read(fd, bytes + *size, room - *size);
            if (n < 0 && errno == EINTR) continue;
            if (n == 0) break;
            if (n < 0) {
                free(bytes);
                bytes = NULL;
            } else {
                *size += (size_t)n;
            }
        }
    }
    const int error = errno;
    close(fd);
    errno = error;
    return bytes;
}

/* ---- tables ---- */

/* Reads and compares; NULL: `status` and the note say why. `name` is what the note calls it. */
static dispatch_table *load(const scout_dispatch *d, const char *name, const char *text, size_t size,
                            scout_dispatch_status *status, scout_dispatch_note *note) {
    char why[512];
    dispatch_table *t = dispatch_table_read(text, size, why, sizeof why);
    *status = SCOUT_DISPATCH_OK;
    if (!t) {
        *status = say(note, SCOUT_DISPATCH_BAD, "%.100s: %s", name, why);
        return NULL;
    }
    if (!d->device.name) return t;
    const scout_dispatch_match match = scout_dispatch_compare(&t->device, &d->device, why, sizeof why);
    if (match != SCOUT_DISPATCH_SAME)
        *status = say(note, match == SCOUT_DISPATCH_OTHER ? SCOUT_DISPATCH_REFUSED : SCOUT_DISPATCH_WARNED,
                      "%.100s: %s", name, why);
    if (match != SCOUT_DISPATCH_OTHER) return t;
    dispatch_table_free(t);
    return NULL;
}

static bool has_readers(table_place *p) {
    for (int k = 0; k < STRIPES; k++)
        if (atomic_load(&p->stripes[k].readers) != 0) return true;
    return false;
}

/* Frees tables that are no longer read; a free place, or -1. Only under `writing`. */
static int sweep(scout_dispatch *d) {
    const unsigned current = atomic_load(&d->current);
    int free_place = -1;
    for (unsigned k = 0; k < PLACES; k++) {
        table_place *p = &d->places[k];
        if (k == current || has_readers(p)) continue;
        dispatch_table_free(atomic_exchange(&p->table, NULL));
        free_place = (int)k;
    }
    return free_place;
}

static scout_dispatch_status publish(scout_dispatch *d, const char *name, const char *text, size_t size,
                                     scout_dispatch_note *note) {
    scout_dispatch_status status;
    dispatch_table *t = load(d, name, text, size, &status, note);
    if (!t) return status;
    pthread_mutex_lock(&d->writing);
    const int place = sweep(d);
    if (place >= 0) {
        atomic_store(&d->places[place].table, t);
        atomic_store(&d->current, (unsigned)place);
    }
    pthread_mutex_unlock(&d->writing);
    if (place >= 0) return status;
    dispatch_table_free(t);
    return say(note, SCOUT_DISPATCH_BUSY, "%.100s: %d older tables are still being read: end views, then reload", name,
               PLACES - 1);
}

/* ---- handles ---- */

static const char *keep_text(dispatch_memory *m, const char *text) {
    const size_t size = text ? strlen(text) + 1 : 1;
    char *copy = dispatch_memory_take(m, size);
    if (copy && text) memcpy(copy, text, size);
    return copy;
}

static bool keep_device(scout_dispatch *d, const scout_dispatch_device *device) {
    dispatch_memory *m = &d->memory;
    if (!device) return true;
    const size_t count = device->library_count > 0 ? (size_t)device->library_count : 0;
    scout_dispatch_library *libraries = dispatch_memory_take(m, (count + 1) * sizeof *libraries);
    if (!libraries) return false;
    d->device = *device;
    d->device.name = keep_text(m, device->name);
    d->device.capability = keep_text(m, device->capability);
    d->device.driver = keep_text(m, device->driver);
    d->device.libraries = libraries;
    d->device.library_count = (int)count;
    bool good = d->device.name && d->device.capability && d->device.driver;
    for (size_t k = 0; good && k < count; k++) {
        libraries[k].name = keep_text(m, device->libraries[k].name);
        libraries[k].version = keep_text(m, device->libraries[k].version);
        good = libraries[k].name && libraries[k].version;
    }
    return good;
}

void scout_dispatch_close(scout_dispatch *d) {
    if (!d) return;
    for (int k = 0; k < PLACES; k++) dispatch_table_free(atomic_load(&d->places[k].table));
    dispatch_memory_free(&d->memory);
    pthread_mutex_destroy(&d->writing);
    free(d);
}

static scout_dispatch_status open_named(scout_dispatch **out, const char *name, const char *text, size_t size,
                                        const scout_dispatch_device *device, scout_dispatch_note *note) {
    scout_dispatch *d = aligned_alloc(LINE, sizeof *d);
    scout_dispatch_status status;
    *out = NULL;
    if (!d) return say(note, SCOUT_DISPATCH_FAILED, "%.100s: no memory is left", name);
    memset(d, 0, sizeof *d);
    for (int k = 0; k < PLACES; k++) {
        for (int n = 0; n < STRIPES; n++) atomic_init(&d->places[k].stripes[n].readers, 0);
        atomic_init(&d->places[k].table, NULL);
    }
    atomic_init(&d->current, PLACES); /* none */
    d->memory.limit = 1 << 20;
    if (pthread_mutex_init(&d->writing, NULL) != 0) {
        free(d);
        return say(note, SCOUT_DISPATCH_FAILED, "%.100s: no lock can be made", name);
    }
    if (keep_device(d, device))
        status = publish(d, name, text, size, note);
    else
        status = say(note, SCOUT_DISPATCH_FAILED, "%.100s: no memory is left", name);
    if (status <= SCOUT_DISPATCH_WARNED)
        *out = d;
    else
        scout_dispatch_close(d);
    return status;
}

static scout_dispatch_note *note_or(scout_dispatch_note *note, scout_dispatch_note *own) {
    if (!note) note = own;
    note->text[0] = 0;
    return note;
}

/* The bytes of a file; the caller's. NULL: the note says why. */
static char *file_text(const char *path, size_t *size, scout_dispatch_note *note) {
    errno = 0;
    char *text = read_file(path, DISPATCH_TABLE_BYTES, size);
    if (!text && errno == 0)
        say(note, SCOUT_DISPATCH_FAILED, "%.200s: it is not a file, or has more than %d MiB", path,
            DISPATCH_TABLE_BYTES >> 20);
    else if (!text)
        say(note, SCOUT_DISPATCH_FAILED, "%.200s: %s", path, strerror(errno));
    return text;
}

/* Of the bytes that were read, so that what is verified is what is used. */
static scout_dispatch_status hold_signature(const dispatch_signers *signers, const char *path, const char *text,
                                            size_t size, scout_dispatch_note *note) {
    char why[160], *signature = NULL;
    size_t signature_size = 0;
    const size_t room = strlen(path) + sizeof ".sig";
    char *beside = malloc(room);
    if (!beside) return say(note, SCOUT_DISPATCH_FAILED, "%.200s: no memory is left", path);
    snprintf(beside, room, "%s.sig", path);
    errno = 0;
    signature = read_file(beside, DISPATCH_SIGNATURE_BYTES, &signature_size);
    scout_dispatch_status status = SCOUT_DISPATCH_OK;
    if (!signature)
        status = say(note, SCOUT_DISPATCH_UNSIGNED,
                     "%.200s: a signed table is demanded, and there is no signature in %.200s: %s", path, beside,
                     errno ? strerror(errno) : "it is not a file, or too large for one");
    else if (!dispatch_signature_holds(signers, signature, signature_size, text, size, why, sizeof why))
        status = say(note, SCOUT_DISPATCH_UNSIGNED, "%.200s: %s", path, why);
    free(signature);
    free(beside);
    return status;
}

/* signers NULL: it need not be signed. */
static scout_dispatch_status open_file(scout_dispatch **d, const char *path, const dispatch_signers *signers,
                                       const scout_dispatch_device *device, scout_dispatch_note *note) {
    size_t size = 0;
    char *text = file_text(path, &size, note);
    if (!text) return SCOUT_DISPATCH_FAILED;
    scout_dispatch_status status = signers ? hold_signature(signers, path, text, size, note) : SCOUT_DISPATCH_OK;
    if (status == SCOUT_DISPATCH_OK) status = open_named(d, path, text, size, device, note);
    if (*d && signers) (*d)->signers = *signers;
    free(text);
    return status;
}

scout_dispatch_status scout_dispatch_open(scout_dispatch **d, const char *path, const scout_dispatch_device *device,
                                          scout_dispatch_note *note) {
    scout_dispatch_note own;
    *d = NULL;
    return open_file(d, path, NULL, device, note_or(note, &own));
}

scout_dispatch_status scout_dispatch_open_signed(scout_dispatch **d, const char *path, const char *signers,
                                                 const scout_dispatch_device *device, scout_dispatch_note *note) {
    scout_dispatch_note own;
    dispatch_signers known;
    char why[160];
    *d = NULL;
    note = note_or(note, &own);
    if (!dispatch_signers_read(&known, signers ? signers : "", why, sizeof why))
        return say(note, SCOUT_DISPATCH_UNSIGNED, "%.200s: %s", path, why);
    return open_file(d, path, &known, device, note);
}

scout_dispatch_status scout_dispatch_reload(scout_dispatch *d, const char *path, scout_dispatch_note *note) {
    scout_dispatch_note own;
    size_t size = 0;
    note = note_or(note, &own);
    char *text = file_text(path, &size, note);
    if (!text) return SCOUT_DISPATCH_FAILED;
    scout_dispatch_status status = SCOUT_DISPATCH_OK;
    if (d->signers.count > 0) status = hold_signature(&d->signers, path, text, size, note);
    if (status == SCOUT_DISPATCH_OK) status = publish(d, path, text, size, note);
    free(text);
    return status;
}

scout_dispatch_status scout_dispatch_open_text(scout_dispatch **d, const char *text, size_t size,
                                               const scout_dispatch_device *device, scout_dispatch_note *note) {
    scout_dispatch_note own;
    return open_named(d, "dispatch table", text, size, device, note_or(note, &own));
}

scout_dispatch_status scout_dispatch_reload_text(scout_dispatch *d, const char *text, size_t size,
                                                 scout_dispatch_note *note) {
    scout_dispatch_note own;
    note = note_or(note, &own);
    if (d->signers.count > 0)
        return say(note, SCOUT_DISPATCH_UNSIGNED,
                   "dispatch table: a signed one is demanded, and bytes have no signature; load it from its file");
    return publish(d, "dispatch table", text, size, note);
}

/* ---- readers ---- */

scout_dispatch_view scout_dispatch_begin(scout_dispatch *d) {
    const char here = 0; /* threads have stacks of their own, some pages apart */
    const uintptr_t page = (uintptr_t)&here >> 12;
    const size_t stripe = (page ^ page >> 4 ^ page >> 8 ^ page >> 12) % STRIPES;
    for (unsigned current = atomic_load(&d->current);;) {
        table_place *p = &d->places[current];
        atomic_size_t *readers = &p->stripes[stripe].readers;
        atomic_fetch_add(readers, 1);
        const unsigned now = atomic_load(&d->current);
        if (now == current) {
            const dispatch_table *t = atomic_load(&p->table);
            return (scout_dispatch_view){&t->index, readers};
        }
        atomic_fetch_sub(readers, 1);
        current = now;
    }
}

void scout_dispatch_end(scout_dispatch_view *view) {
    if (view->holds) atomic_fetch_sub((atomic_size_t *)view->holds, 1);
    *view = (scout_dispatch_view){NULL, NULL};
}

const scout_dispatch_entry *scout_dispatch_find(const scout_dispatch_view *view, const scout_dispatch_key *key) {
    return scout_dispatch_index_find(view->index, key);
}

const scout_dispatch_entry *scout_dispatch_find_text(const scout_dispatch_view *view, const char *key) {
    scout_dispatch_key parsed;
    if (!scout_dispatch_key_parse(&parsed, key, strlen(key))) return NULL;
    return scout_dispatch_index_find(view->index, &parsed);
}

int scout_dispatch_near(const scout_dispatch_view *view, const scout_dispatch_key *key, scout_dispatch_ends *ends) {
    const scout_dispatch_range *range = scout_dispatch_index_near(view->index, key);
    if (!range) return 0;
    *ends = (scout_dispatch_ends){&view->index->entries[range->lower], &view->index->entries[range->upper]};
    return 1;
}

int scout_dispatch_near_text(const scout_dispatch_view *view, const char *key, scout_dispatch_ends *ends) {
    scout_dispatch_key parsed;
    return scout_dispatch_key_parse(&parsed, key, strlen(key)) && scout_dispatch_near(view, &parsed, ends);
}

size_t scout_dispatch_op_text(const scout_dispatch_op *op, char *text, size_t room) {
    return op->kind ? scout_dispatch_key_write(op, text, room) : 0;
}

size_t scout_dispatch_count(const scout_dispatch_view *view) { return view->index->entry_count; }

const scout_dispatch_entry *scout_dispatch_at(const scout_dispatch_view *view, size_t number) {
    return number < view->index->entry_count ? &view->index->entries[number] : NULL;
}

const char *scout_dispatch_class(const scout_dispatch_view *view) {
    const char *table = (const char *)view->index - offsetof(dispatch_table, index);
    return ((const dispatch_table *)(const void *)table)->device_class;
}
