/* Owns the file: its tables and how an older one becomes newer, what a damaged one becomes, and its size.
 */
#include "analyze/history/history.h"

#include "common/files.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char history_machine[] = "machine";

/* migrations[k] makes version k + 1 of version k. Moments have fractions, which SQLite keeps in these columns, too. */
static const char *const migrations[HISTORY_VERSION] = {
    "CREATE TABLE text(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE place(id INTEGER PRIMARY KEY, device TEXT NOT NULL, name TEXT NOT NULL, regime TEXT NOT NULL,"
    " method INTEGER NOT NULL, UNIQUE(device, regime, method));"
    "CREATE TABLE setting(id INTEGER PRIMARY KEY, driver TEXT NOT NULL, libraries TEXT NOT NULL, program TEXT NOT NULL,"
    " UNIQUE(driver, libraries, program));"
    "CREATE TABLE model(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, folder TEXT NOT NULL);"
    "CREATE TABLE night(id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY, place INTEGER NOT NULL, key TEXT NOT NULL, op TEXT NOT NULL,"
    " UNIQUE(place, key));"
    "CREATE TABLE part(series INTEGER NOT NULL, model INTEGER NOT NULL, operation TEXT NOT NULL, count INTEGER NOT "
    "NULL,"
    " PRIMARY KEY(series, model)) WITHOUT ROWID;"
    "CREATE TABLE point(series INTEGER NOT NULL, night INTEGER NOT NULL, taken INTEGER NOT NULL, us REAL NOT NULL,"
    " ci REAL, default_us REAL, ceiling_us REAL, clock_mhz REAL, best INTEGER NOT NULL, setting INTEGER NOT NULL,"
    " again_us REAL, again_ceiling_us REAL, PRIMARY KEY(series, night)) WITHOUT ROWID;"
    "CREATE TABLE run(place INTEGER NOT NULL, model INTEGER NOT NULL, night INTEGER NOT NULL, setting INTEGER NOT NULL,"
    " operations TEXT NOT NULL, count INTEGER NOT NULL, us REAL, ci REAL, proven_us REAL, potential_us REAL,"
    " ceiling_us REAL, clock_mhz REAL, PRIMARY KEY(place, model, night)) WITHOUT ROWID;"
    "CREATE TABLE ceiling(place INTEGER NOT NULL, name INTEGER NOT NULL, night INTEGER NOT NULL, value REAL NOT NULL,"
    " PRIMARY KEY(place, name, night)) WITHOUT ROWID;"
    "CREATE TABLE change(night INTEGER NOT NULL, series INTEGER NOT NULL, state INTEGER NOT NULL,"
    " witness INTEGER NOT NULL, z REAL NOT NULL, middle REAL NOT NULL, spread REAL NOT NULL, nights INTEGER NOT NULL,"
    " machine REAL NOT NULL, before_us REAL NOT NULL, size REAL NOT NULL DEFAULT 0, again INTEGER NOT NULL DEFAULT 0,"
    " cause TEXT NOT NULL DEFAULT '', PRIMARY KEY(night, series)) WITHOUT ROWID;"
    "CREATE INDEX change_series ON change(series, state);",
};

/* ---- failing ---- */

static _Noreturn void fail(history *h, const char *what) {
    const int code = h->db ? sqlite3_errcode(h->db) : SQLITE_NOMEM;
    const char *why = h->db ? sqlite3_errmsg(h->db) : "out of memory";
    const int kind = code & 0xff;
    /* ERROR: its tables are not those of its version, for the statements are this program's own. */
    h->damaged = kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || kind == SQLITE_ERROR || kind == SQLITE_CONSTRAINT;
    if (h->damaged)
        guard_fail(h->a->guard, STATUS_INPUT,
                   "%s: is damaged (%s); add a night to it, which sets it aside and begins a new one", h->path, why);
    if (kind == SQLITE_BUSY)
        guard_fail(h->a->guard, STATUS_ENVIRONMENT, "%s: another program is writing to it; wait until it ends",
                   h->path);
    if (kind == SQLITE_FULL)
        guard_fail(h->a->guard, STATUS_ENVIRONMENT,
                   "%s: has no room left, on the disk or of its gigabyte; free some, or keep fewer nights (--keep 30)",
                   h->path);
    guard_fail(h->a->guard, STATUS_ENVIRONMENT, "%s: %s: %s", h->path, what, why);
}

/* ---- statements ---- */

static sqlite3_stmt *prepared(history *h, const char *sql) {
    for (int k = 0; k < HISTORY_STATEMENTS; k++) {
        if (h->statements[k].sql == sql) return h->statements[k].is;
        if (h->statements[k].sql) continue;
        if (sqlite3_prepare_v2(h->db, sql, -1, &h->statements[k].is, NULL) != SQLITE_OK) fail(h, "cannot be read");
        h->statements[k].sql = sql;
        return h->statements[k].is;
    }
    guard_fail(h->a->guard, STATUS_ENVIRONMENT, "%s: more than %d statements", h->path, HISTORY_STATEMENTS);
}

static sqlite3_stmt *bound(history *h, const char *sql, const char *types, va_list values) {
    sqlite3_stmt *s = prepared(h, sql);
    int good = SQLITE_OK;
    sqlite3_reset(s); /* what it says is of the step before, and was told then */
    for (int k = 0; types[k] && good == SQLITE_OK; k++) {
        if (types[k] == 'i') {
            good = sqlite3_bind_int64(s, k + 1, va_arg(values, int64_t));
        } else if (types[k] == 'd') {
            const double x = va_arg(values, double);
            good = isfinite(x) ? sqlite3_bind_double(s, k + 1, x) : sqlite3_bind_null(s, k + 1);
        } else {
            good = sqlite3_bind_text(s, k + 1, va_arg(values, const char *), -1, SQLITE_TRANSIENT);
        }
    }
    if (good != SQLITE_OK) fail(h, "cannot be asked");
    return s;
}

sqlite3_stmt *history_ask(history *h, const char *sql, const char *types, ...) {
    va_list values;
    va_start(values, types);
    sqlite3_stmt *s = bound(h, sql, types, values);
    va_end(values);
    return s;
}

bool history_next(history *h, sqlite3_stmt *s) {
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail(h, "cannot be read or written");
    sqlite3_reset(s);
    return false;
}

double history_real(sqlite3_stmt *s, int column) {
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NAN : sqlite3_column_double(s, column);
}

const char *history_text(history *h, sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? arena_strndup(h->a, text, strlen(text)) : "";
}

void history_do(history *h, const char *sql, const char *types, ...) {
    va_list values;
    va_start(values, types);
    sqlite3_stmt *s = bound(h, sql, types, values);
    va_end(values);
    while (history_next(h, s)) continue;
}

static void run(history *h, const char *sql) {
    if (sqlite3_exec(h->db, sql, NULL, NULL, NULL) != SQLITE_OK) fail(h, "cannot be read or written");
}

static int64_t number_of(history *h, const char *pragma) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(h->db, pragma, -1, &s, NULL) != SQLITE_OK) fail(h, "cannot be read");
    const int code = sqlite3_step(s);
    const int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    if (code != SQLITE_ROW) fail(h, "cannot be read");
    return value;
}

/* ---- opening ---- */

/* After a program that did not end as it should, the file is looked through; SQLite itself mends what was begun. */
static void check(history *h) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(h->db, "PRAGMA integrity_check(1)", -1, &s, NULL) != SQLITE_OK) fail(h, "cannot be read");
    const int code = sqlite3_step(s);
    const bool good = code == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(s, 0), "ok") == 0;
    sqlite3_finalize(s);
    if (good) return;
    h->damaged = true;
    guard_fail(h->a->guard, STATUS_INPUT,
               "%s: is damaged (integrity_check); add a night to it, which sets it aside and begins a new one",
               h->path);
}

static void migrate(history *h) {
    int64_t version = number_of(h, "PRAGMA user_version");
    if (version > HISTORY_VERSION)
        guard_fail(h->a->guard, STATUS_INPUT, "%s: is of a newer program (version %" PRId64 ", this one knows %d)",
                   h->path, version, HISTORY_VERSION);
    if (version == 0 && number_of(h, "SELECT count(*) FROM sqlite_schema") > 0)
        guard_fail(h->a->guard, STATUS_INPUT, "%s: is a database of another program; name another file", h->path);
    while (version < HISTORY_VERSION) {
        run(h, "BEGIN IMMEDIATE");
        version = number_of(h, "PRAGMA user_version"); /* another program may have been faster */
        if (version < HISTORY_VERSION) {
            run(h, migrations[version++]);
            run(h, arena_printf(h->a, "PRAGMA user_version = %" PRId64, version));
        }
        run(h, "COMMIT");
    }
}

/* Of a folder that is not ours to write, SQLite can make no room for readers. Without a log it is whole as it is. */
static const char *unchanging(history *h, const char *path) {
    char *const safe = arena_alloc(h->a, 3 * strlen(path) + 1), *to = safe;
    for (const char *c = path; *c; c++) to += snprintf(to, 4, strchr("%?#", *c) ? "%%%02x" : "%c", (unsigned char)*c);
    return arena_printf(h->a, "file:%s?immutable=1", safe);
}

void history_open(history *h, history_mode mode) {
    enum { PATIENCE_MS = 5000 };
    const bool write = mode != HISTORY_READ, doubt = access(arena_printf(h->a, "%s-wal", h->path), F_OK) == 0;
    struct stat is;
    if (mode != HISTORY_CREATE && stat(h->path, &is) != 0)
        guard_fail(h->a->guard, STATUS_INPUT, "%s: cannot be opened: %s", h->path, strerror(errno));
    if (files_is_link(h->path))
        guard_fail(h->a->guard, STATUS_ENVIRONMENT, "%s: is a link, and nothing is written through links; move it away",
                   h->path);
    const char *const folder = arena_strndup(h->a, h->path, (size_t)(files_base(h->path) - h->path));
    char *const real = realpath(*folder ? folder : ".", NULL); /* a link among the folders is no matter */
    if (!real) guard_fail(h->a->guard, STATUS_ENVIRONMENT, "%s: cannot be opened: %s", h->path, strerror(errno));
    const char *const path = arena_printf(h->a, "%s/%s", real, files_base(h->path));
    const bool still = !write && !doubt && access(real, W_OK) != 0;
    const int how = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                    (still ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE) |
                    (mode == HISTORY_CREATE ? SQLITE_OPEN_CREATE : 0);
    free(real);
    if (sqlite3_open_v2(still ? unchanging(h, path) : path, &h->db, how, NULL) != SQLITE_OK)
        fail(h, "cannot be opened");
    sqlite3_busy_timeout(h->db, PATIENCE_MS);
    if (write) {
        run(h, "PRAGMA auto_vacuum = INCREMENTAL"); /* of a new file */
        run(h, "PRAGMA journal_mode = WAL");
        run(h, arena_printf(h->a, "PRAGMA max_page_count = %d", HISTORY_PAGES));
    }
    run(h, "PRAGMA synchronous = NORMAL");
    run(h, "PRAGMA trusted_schema = OFF");
    if (doubt) check(h);
    if (write) migrate(h);
    const int64_t version = number_of(h, "PRAGMA user_version");
    if (version != HISTORY_VERSION)
        guard_fail(h->a->guard, STATUS_INPUT, "%s: is no history of this version (%" PRId64 ", this program has %d)",
                   h->path, version, HISTORY_VERSION);
}

void history_close(history *h) {
    for (int k = 0; k < HISTORY_STATEMENTS; k++) sqlite3_finalize(h->statements[k].is);
    memset(h->statements, 0, sizeof h->statements);
    sqlite3_close(h->db);
    h->db = NULL;
}

bool history_set_aside(const char *path, status *st) {
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (int k = 0; k < 3; k++) {
        char from[PATH_MAX], to[PATH_MAX];
        if (snprintf(from, sizeof from, "%s%s", path, ends[k]) >= PATH_MAX ||
            snprintf(to, sizeof to, "%s.damaged%s", path, ends[k]) >= PATH_MAX)
            return status_fail(st, STATUS_USAGE, "%s: is too long", path);
        if (rename(from, to) != 0 && (k == 0 || errno != ENOENT))
            return status_fail(st, STATUS_ENVIRONMENT, "%s: cannot be set aside: %s", path, strerror(errno));
    }
    return true;
}

/* ---- writing ---- */

void history_begin(history *h) {
    run(h, "BEGIN IMMEDIATE");
    h->night = 0;
    h->tonight = NULL;
    h->tonight_count = h->tonight_cap = 0;
    memset(&h->last, 0, sizeof h->last);
}

void history_commit(history *h) {
    run(h, "COMMIT");
    if (h->shrunk) run(h, "PRAGMA incremental_vacuum");
    h->shrunk = false;
}

void history_keep(history *h, int64_t nights) {
    static const char *const old[] = {"DELETE FROM point WHERE night <= ?1", "DELETE FROM run WHERE night <= ?1",
                                      "DELETE FROM ceiling WHERE night <= ?1", "DELETE FROM change WHERE night <= ?1",
                                      "DELETE FROM night WHERE id <= ?1"};
    sqlite3_stmt *s = history_ask(h, "SELECT id FROM night ORDER BY id DESC LIMIT 1 OFFSET ?1", "i", nights);
    const int64_t last = history_next(h, s) ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    if (last == 0) return;
    for (size_t k = 0; k < sizeof old / sizeof old[0]; k++) history_do(h, old[k], "i", last);
    history_do(h, "DELETE FROM series WHERE key <> ?1 AND NOT EXISTS (SELECT 1 FROM point WHERE series = series.id)",
               "t", history_machine);
    history_do(
        h, "DELETE FROM part WHERE series NOT IN (SELECT id FROM series) OR model NOT IN (SELECT model FROM run)", "");
    history_do(h, "DELETE FROM model WHERE id NOT IN (SELECT model FROM run)", "");
    h->shrunk = true;
}

int64_t history_bytes(history *h) { return number_of(h, "PRAGMA page_count") * number_of(h, "PRAGMA page_size"); }
