/* history.db: every operation on every device and in every regime over the nights, with the circumstances of each, and
 * what changed when. SQLite keeps it: one program writes at a time, others read meanwhile, and what a crash or a full
 * disk interrupts never was. All of it works inside of one arena, whose guard takes what fails.
 *
 *     history h = {.a = a, .path = path};
 *     history_open(&h, HISTORY_CREATE);
 *     history_begin(&h);
 *     … history_put(&h, &figure) …            a night, if any figure is new
 *     history_end(&h);                        screens it, and keeps it
 *     history_close(&h);                      always; what was begun and not ended is gone */
#pragma once

#include "analyze/history/screen.h"
#include "common/arena.h"

#include <sqlite3.h>

enum {
    HISTORY_VERSION = 1,     /* of the tables; an older file is brought to it */
    HISTORY_NIGHTS = 1100,   /* that are kept at most: three years */
    HISTORY_PAGES = 1 << 18, /* of 4 KiB: a gigabyte at most */
    HISTORY_SUSPECTS = 40, /* of a night that are measured again, or one in HISTORY_SHARE: more were no night's work */
    HISTORY_SHARE = 20,
    HISTORY_STATEMENTS = 48
};

/* Behind "FROM change JOIN series …": the model that tells of it, one that was there in that night if any was; of a
 * device none. The same in every statement, so that what is measured again is what is told. */
#define HISTORY_PART                                                                                                   \
    " LEFT JOIN part ON part.series = change.series AND part.model = (SELECT own.model FROM part AS own LEFT JOIN "    \
    "run ON run.place = series.place AND run.model = own.model AND run.night = change.night WHERE own.series = "       \
    "change.series ORDER BY run.night IS NULL, own.model LIMIT 1) LEFT JOIN model ON model.id = part.model "

typedef enum history_mode { HISTORY_READ, HISTORY_WRITE, HISTORY_CREATE } history_mode;

typedef struct history_place { /* what figures of different nights have in common */
    const char *device;        /* all that tells it but driver and libraries */
    const char *name;          /* "NVIDIA H200" */
    const char *regime;
    int64_t method;
} history_place;

typedef struct history_setting { /* and what may differ */
    const char *driver, *libraries, *program;
} history_setting;

typedef struct history_figure {
    const history_place *place;
    const history_setting *setting;
    const char *model, *folder; /* what the folder is called, and where it lies */
    const char *key, *op, *operation, *best;
    int64_t count;
    double taken;                                 /* seconds since 1970, as all moments here */
    double us, ci, default_us, ceiling_us, clock; /* not-a-number: not known */
} history_figure;

/* A model's night. */
typedef struct history_run {
    const history_place *place;
    const history_setting *setting;
    const char *model, *folder, *operations; /* a hash of ops.json */
    int64_t count;
    double us, ci, proven_us, potential_us, ceiling_us, clock;
} history_run;

typedef struct history_tonight history_tonight; /* history_alarm.c */

typedef struct history {
    arena *a;
    const char *path;
    sqlite3 *db;
    bool damaged; /* what failed did so because the file is no database any more */
    bool shrunk;  /* nights were taken away */
    struct {      /* the last one that was asked for: of a model's figures all but the operation are the same */
        history_place place;
        history_setting setting;
        const char *model;
        int64_t place_id, setting_id, model_id, machine; /* 0: none yet */
    } last;
    int64_t night;   /* that is being written; 0: it has no figure yet */
    double night_at; /* its newest figure */
    history_tonight *tonight;
    size_t tonight_count, tonight_cap;
    struct {
        const char *sql;
        sqlite3_stmt *is;
    } statements[HISTORY_STATEMENTS];
} history;

/* ---- history_store.c: the file ---- */
void history_open(history *h, history_mode mode);
void history_close(history *h);
/* Moves it to PATH.damaged, in the place of an earlier one. false: st says why. */
bool history_set_aside(const char *path, status *st);
/* history_salvage.c: into a history that is empty, what can still be read of that file. */
void history_salvage(history *h, const char *damaged);
void history_begin(history *h);
void history_commit(history *h);
void history_keep(history *h, int64_t nights); /* the last so many, and gives the room back */
int64_t history_bytes(history *h);
/* What the alarms call the device as a whole. */
extern const char history_machine[];

/* A statement with its values: i int64_t, d double (not-a-number: NULL), t text (NULL: NULL). It is prepared once; sql
 * is a literal. history_next: its next row; false: it is done, and may be asked anew. */
sqlite3_stmt *history_ask(history *h, const char *sql, const char *types, ...);
bool history_next(history *h, sqlite3_stmt *s);
void history_do(history *h, const char *sql, const char *types, ...); /* all of it, without rows */
double history_real(sqlite3_stmt *s, int column);                     /* not-a-number: NULL */
const char *history_text(history *h, sqlite3_stmt *s, int column);    /* a copy in the arena; "": NULL */

/* ---- history_put.c: a night's figures ---- */
/* false: this figure is no newer than its series, or another model has it in this night, too. */
bool history_put(history *h, const history_figure *f);
void history_put_run(history *h, const history_run *r); /* of a night that has a figure */
/* What the device can do at best that night: "fp16 TFLOP/s", … */
void history_put_ceiling(history *h, const history_place *place, const char *name, double value);

/* Nights of one series, the oldest first, the newest of them. Logarithms: of the time over its ceiling, and of the time
 * alone, which tells what the machine does. */
typedef struct history_window {
    size_t count;
    int level[SCREEN_NIGHTS]; /* it rises with each change that is sure, its own or the machine's */
    double taken[SCREEN_NIGHTS], x[SCREEN_NIGHTS], alone[SCREEN_NIGHTS];
} history_window;
void history_look(history *h, int64_t series, int64_t machine, int64_t before, history_window *w);
int64_t history_series(history *h, int64_t place, const char *key, const char *op); /* that it is, or becomes */
double history_value(double us, double ceiling_us);

/* ---- history_alarm.c: what is suspect, and what becomes of it ---- */
typedef enum history_state {
    HISTORY_SUSPECT, /* to be measured again */
    HISTORY_SLOWER,
    HISTORY_FASTER,
    HISTORY_CHANCE, /* measured again, and not so */
    HISTORY_OPEN,   /* it could not be measured again */
    HISTORY_STATES
} history_state;
extern const char *const history_states[];

/* A series of the night that is written, as the alarms need it. */
struct history_tonight {
    int64_t series, place;
    double x, alone;              /* tonight */
    screen_base base, alone_base; /* of the nights before */
};
void history_end(history *h); /* screens the night, and commits */

typedef struct history_suspect {
    int64_t series, place, night;
    const char *folder, *model, *operation; /* NULL: of the device as a whole, whose witnesses are suspects, too */
} history_suspect;
size_t history_suspects(history *h, history_suspect **to);

/* What the repetitions of a suspect gave, by the programs of this night and by those of the night before. */
typedef struct history_repeated {
    struct {
        double us, ceiling_us;
    } now[SCREEN_REPEATS], before[SCREEN_REPEATS];
    size_t now_count, before_count;
} history_repeated;
typedef void history_repeat(void *context, const history_suspect *suspect, history_repeated *to);
/* All suspects become something else; in what history_begin began. */
void history_settle(history *h, history_repeat *repeat, void *context);
