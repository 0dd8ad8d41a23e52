/* Owns what can still be had of a damaged history: rows are read one by one, and what cannot be read is passed over.
 * The nights that are lost so are gaps, and no night is wrong: a row that names what is gone goes, too. */
#include "analyze/history/history.h"

#include <string.h>

/* In an order in which what is named comes before what names it. */
static const struct {
    const char *read, *write;
    bool by_series; /* read for each series by itself, so that a bad page costs only those on it */
} tables[] = {
    {"SELECT * FROM text", "INSERT OR IGNORE INTO text VALUES(?, ?)", false},
    {"SELECT * FROM place", "INSERT OR IGNORE INTO place VALUES(?, ?, ?, ?, ?)", false},
    {"SELECT * FROM setting", "INSERT OR IGNORE INTO setting VALUES(?, ?, ?, ?)", false},
    {"SELECT * FROM model", "INSERT OR IGNORE INTO model VALUES(?, ?, ?)", false},
    {"SELECT * FROM night", "INSERT OR IGNORE INTO night VALUES(?, ?)", false},
    {"SELECT * FROM series", "INSERT OR IGNORE INTO series VALUES(?, ?, ?, ?)", false},
    {"SELECT * FROM part WHERE series = ?1", "INSERT OR IGNORE INTO part VALUES(?, ?, ?, ?)", true},
    {"SELECT * FROM point WHERE series = ?1", "INSERT OR IGNORE INTO point VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
     true},
    {"SELECT * FROM run", "INSERT OR IGNORE INTO run VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", false},
    {"SELECT * FROM ceiling", "INSERT OR IGNORE INTO ceiling VALUES(?, ?, ?, ?)", false},
    {"SELECT * FROM change", "INSERT OR IGNORE INTO change VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", false},
};

static const char *const tidy[] = {
    "DELETE FROM series WHERE place NOT IN (SELECT id FROM place)",
    "DELETE FROM part WHERE series NOT IN (SELECT id FROM series) OR model NOT IN (SELECT id FROM model)",
    ("DELETE FROM point WHERE series NOT IN (SELECT id FROM series) OR night NOT IN (SELECT id FROM night) "
     "OR NOT us > 0 "
     "OR (setting > 0 AND (setting NOT IN (SELECT id FROM setting) OR best NOT IN (SELECT id FROM text)))"),
    ("DELETE FROM run WHERE night NOT IN (SELECT id FROM night) OR model NOT IN (SELECT id FROM model) "
     "OR place NOT IN (SELECT id FROM place)"),
    "DELETE FROM ceiling WHERE night NOT IN (SELECT id FROM night) OR place NOT IN (SELECT id FROM place)",
    "DELETE FROM change WHERE night NOT IN (SELECT id FROM night) OR series NOT IN (SELECT id FROM series)",
    "DELETE FROM night WHERE id NOT IN (SELECT night FROM point WHERE setting > 0)", /* 0: of the device as a whole */
    "DELETE FROM point WHERE night NOT IN (SELECT id FROM night)",
};

/* Until the first that cannot be read. */
static void copy_rows(sqlite3_stmt *from, sqlite3_stmt *to) {
    while (sqlite3_step(from) == SQLITE_ROW) {
        for (int k = 0; k < sqlite3_column_count(from); k++)
            sqlite3_bind_value(to, k + 1, sqlite3_column_value(from, k));
        sqlite3_step(to); /* what does not fit is none of it */
        sqlite3_reset(to);
    }
    sqlite3_reset(from);
}

static void copy_table(history *h, sqlite3 *old, size_t k) {
    sqlite3_stmt *from = NULL, *to = NULL, *all = NULL;
    if (sqlite3_prepare_v2(old, tables[k].read, -1, &from, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(h->db, tables[k].write, -1, &to, NULL) == SQLITE_OK &&
        sqlite3_column_count(from) == sqlite3_bind_parameter_count(to)) {
        if (!tables[k].by_series)
            copy_rows(from, to);
        else if (sqlite3_prepare_v2(h->db, "SELECT id FROM series", -1, &all, NULL) == SQLITE_OK)
            while (sqlite3_step(all) == SQLITE_ROW) {
                sqlite3_bind_int64(from, 1, sqlite3_column_int64(all, 0));
                copy_rows(from, to);
            }
    }
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    sqlite3_finalize(all);
}

void history_salvage(history *h, const char *damaged) {
    sqlite3 *old = NULL;
    history_begin(h);
    if (sqlite3_open_v2(damaged, &old, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK)
        for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++) copy_table(h, old, k);
    sqlite3_close(old);
    for (size_t k = 0; k < sizeof tidy / sizeof tidy[0]; k++) history_do(h, tidy[k], "");
    history_commit(h);
}
