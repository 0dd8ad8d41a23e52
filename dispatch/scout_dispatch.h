/* libscout_dispatch: what was measured to be fastest, looked up where models run. Depends on the C library
 * alone; C11 and C++.
 *
 *     scout_dispatch *d;
 *     scout_dispatch_note note;
 *     if (scout_dispatch_open(&d, "dispatch.json", &device, &note) != SCOUT_DISPATCH_OK)
 *         fprintf(stderr, "%s\n", note.text);                 one line; where d is NULL, run the defaults
 *     …
 *     scout_dispatch_view view = scout_dispatch_begin(d);    once a step, say
 *     const scout_dispatch_entry *e = scout_dispatch_find(&view, &key);
 *     if (e) …                                                valid until the view ends
 *     scout_dispatch_end(&view);
 *
 * Finding allocates nothing, writes nothing and never waits. A table can be replaced at any time while others read: a
 * view goes on with the one that it began with, and the next view has the new one.
 * dispatch.json and the rules of its ranges: docs/formats.md. New members of an entry come at its end: do not count on
 * its size. */
#ifndef SCOUT_DISPATCH_H
#define SCOUT_DISPATCH_H

#include "dispatch/scout_dispatch_device.h"
#include "dispatch/scout_dispatch_index.h"
#include "dispatch/scout_dispatch_key.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define SCOUT_DISPATCH_API __attribute__((visibility("default")))
#else
#define SCOUT_DISPATCH_API
#endif

typedef enum scout_dispatch_status {
    SCOUT_DISPATCH_OK = 0,
    SCOUT_DISPATCH_WARNED,  /* usable; the note has a warning (another driver patch) */
    SCOUT_DISPATCH_REFUSED, /* of another device, driver branch or library version */
    SCOUT_DISPATCH_BAD,     /* no table, or one that contradicts itself */
    SCOUT_DISPATCH_FAILED,  /* it could not be read: no such file, no memory */
    SCOUT_DISPATCH_BUSY,    /* reload only: readers still hold all older tables; try again later */
    SCOUT_DISPATCH_UNSIGNED /* a signature is demanded, and there is none that is right by a key that was named */
} scout_dispatch_status;

/* Why: one line without its end; "" where there is nothing to say. */
typedef struct scout_dispatch_note {
    char text[640];
} scout_dispatch_note;

typedef struct scout_dispatch scout_dispatch;

/* Opens a table. `device` is what this process runs on; it is copied, and reloads are held against it too. NULL: it is
 * not compared, for tools that only show a table; nothing may be run by it then. `note` may be NULL. Only with OK and
 * WARNED there is a *d, else it is NULL. */
SCOUT_DISPATCH_API scout_dispatch_status scout_dispatch_open(scout_dispatch **d, const char *path,
                                                             const scout_dispatch_device *device,
                                                             scout_dispatch_note *note);
/* The same with the file's bytes, which are not needed any more afterwards. */
SCOUT_DISPATCH_API scout_dispatch_status scout_dispatch_open_text(scout_dispatch **d, const char *text, size_t size,
                                                                  const scout_dispatch_device *device,
                                                                  scout_dispatch_note *note);
/* Only a table that one of the signers has signed: `path`.sig, beside it, is made by `analyze dispatch --sign KEY`, or
 * by `ssh-keygen -Y sign -n ceiling-scout -f KEY path`. `signers`: public keys of the type ssh-ed25519 as in
 * id_ed25519.pub, one a line. Each reload is held against the same signers. */
SCOUT_DISPATCH_API scout_dispatch_status scout_dispatch_open_signed(scout_dispatch **d, const char *path,
                                                                    const char *signers,
                                                                    const scout_dispatch_device *device,
                                                                    scout_dispatch_note *note);
/* No view may be left. NULL is fine. */
SCOUT_DISPATCH_API void scout_dispatch_close(scout_dispatch *d);

/* Puts another table in the place of the one that is there, or leaves that one where it fails. From any thread,
 * whatever others read. An older table is given back when its last view has ended and another reload comes, or at
 * close. Bytes have no signature, so they never replace a table that had to be signed. */
SCOUT_DISPATCH_API scout_dispatch_status scout_dispatch_reload(scout_dispatch *d, const char *path,
                                                               scout_dispatch_note *note);
SCOUT_DISPATCH_API scout_dispatch_status scout_dispatch_reload_text(scout_dispatch *d, const char *text, size_t size,
                                                                    scout_dispatch_note *note);

/* One table, held. Every begin wants its end, in any thread; a view may be passed on, not copied and ended twice. */
typedef struct scout_dispatch_view {
    const scout_dispatch_index *index;
    void *holds; /* the library's */
} scout_dispatch_view;

SCOUT_DISPATCH_API scout_dispatch_view scout_dispatch_begin(scout_dispatch *d);
SCOUT_DISPATCH_API void scout_dispatch_end(scout_dispatch_view *view);

/* The entry of exactly this operation; NULL: it was not measured, run the default. */
SCOUT_DISPATCH_API const scout_dispatch_entry *scout_dispatch_find(const scout_dispatch_view *view,
                                                                   const scout_dispatch_key *key);
/* By canonical text (slower: it is taken apart first). */
SCOUT_DISPATCH_API const scout_dispatch_entry *scout_dispatch_find_text(const scout_dispatch_view *view,
                                                                        const char *key);
/* One that was not measured, but lies between two that were and agree: the two ends, and true; else false. What both
 * name is to be run; nothing says how long it takes, but between the ends' times is to be expected. */
typedef struct scout_dispatch_ends {
    const scout_dispatch_entry *lower, *upper;
} scout_dispatch_ends;
SCOUT_DISPATCH_API int scout_dispatch_near(const scout_dispatch_view *view, const scout_dispatch_key *key,
                                           scout_dispatch_ends *ends);
/* By canonical text, as above. */
SCOUT_DISPATCH_API int scout_dispatch_near_text(const scout_dispatch_view *view, const char *key,
                                                scout_dispatch_ends *ends);

/* For languages that cannot include a header: scout_dispatch_key_write, the canonical text of an operation. How many
 * bytes it has, without the 0 at its end; 0: it does not fit, or has no kind. */
SCOUT_DISPATCH_API size_t scout_dispatch_op_text(const scout_dispatch_op *op, char *text, size_t room);

/* All entries in the file's order. */
SCOUT_DISPATCH_API size_t scout_dispatch_count(const scout_dispatch_view *view);
SCOUT_DISPATCH_API const scout_dispatch_entry *scout_dispatch_at(const scout_dispatch_view *view, size_t number);
/* The device class that the table was measured on, as reports have it. */
SCOUT_DISPATCH_API const char *scout_dispatch_class(const scout_dispatch_view *view);

#ifdef __cplusplus
}
#endif

#endif
