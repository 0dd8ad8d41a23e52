/* The history for spreadsheets and other programs: a line for each figure. With one operation asked for it is a series
 * with a column of times and one of values, as programs that look for change points read it. */
#include "analyze/history/index.h"

#include "analyze/write/escape.h"

#include <inttypes.h>
#include <math.h>

static void real(FILE *out, double x) {
    if (isfinite(x)) fprintf(out, "%.9g", x);
    fputc(',', out);
}

bool history_write_csv(const history_shown *shown, FILE *out, status *st) {
    history *h = shown->h;
    bool any = false;
    (void)st;
    sqlite3_stmt *s = history_ask(
        h,
        "SELECT taken, night, coalesce(model.name, ''), part.operation, series.op, place.name, place.regime, "
        "place.method, us, ci, default_us, ceiling_us, clock_mhz, again_us, again_ceiling_us, text.text, driver, "
        "libraries, program FROM point JOIN series ON series.id = point.series JOIN place ON place.id = series.place "
        "JOIN part ON part.series = series.id AND part.model = (SELECT min(other.model) FROM part AS other WHERE "
        "other.series = series.id) JOIN model ON model.id = part.model JOIN text ON text.id = best JOIN setting ON "
        "setting.id = setting WHERE ?1 IS NULL OR "
        "instr(part.operation, ?1) OR instr(model.name, ?1) OR instr(series.key, ?1) OR instr(place.name, ?1) "
        "ORDER BY series.id, night",
        "t", shown->only);
    fputs("time,night,model,operation,op,device,regime,method,us,ci,default_us,ceiling_us,over_ceiling,clock_mhz,"
          "again_us,best,driver,libraries,program\n",
          out);
    while (history_next(h, s)) {
        const arena_mark mark = arena_save(h->a);
        any = true;
        const double us = history_real(s, 8), again = history_real(s, 13), ceiling = history_real(s, 11);
        const bool repeated = isfinite(again);
        fprintf(out, "%.16s,%" PRId64 ",", index_date_of(sqlite3_column_int64(s, 0)).s,
                (int64_t)sqlite3_column_int64(s, 1));
        for (int k = 2; k <= 6; k++) {
            escape_print(out, ESCAPE_CSV, history_text(h, s, k));
            fputc(',', out);
        }
        fprintf(out, "%" PRId64 ",", (int64_t)sqlite3_column_int64(s, 7));
        real(out, us);
        real(out, history_real(s, 9));
        real(out, history_real(s, 10));
        real(out, ceiling);
        real(out, repeated ? again / history_real(s, 14) : us / ceiling);
        real(out, history_real(s, 12));
        real(out, again);
        for (int k = 15; k <= 18; k++) {
            escape_print(out, ESCAPE_CSV, history_text(h, s, k));
            fputc(k < 18 ? ',' : '\n', out);
        }
        arena_rewind(h->a, mark);
    }
    if (!any && shown->only)
        status_print(stderr, "analyze",
                     "warning: --only: ", "nothing has that in its id, model or key; the table is empty");
    return true;
}
