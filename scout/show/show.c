/* Figures, cells and shapes as a person reads them: what the other files of show share. */
#include "scout/show/show.h"

#include "common/amount.h"
#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Four figures. */
static int digits_of(double x) { return x < 9.9995 ? 3 : x < 99.995 ? 2 : x < 999.95 ? 1 : 0; }

void show_time(double us, char *text, size_t room) { snprintf(text, room, "%s", amount_time(us).s); }

const char *show_within(arena *a, double rel_ci95) {
    return verdict_has_interval(rel_ci95) ? arena_printf(a, "± %.1f %%", 100 * rel_ci95) : "± ?";
}

const char *show_rate(arena *a, double per_s, const char *unit) {
    static const struct {
        double unit;
        const char *prefix;
    } steps[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}};
    size_t k = 0;
    if (!isfinite(per_s)) return "-";
    while (per_s < 0.1 * steps[0].unit && k + 1 < sizeof steps / sizeof steps[0] && per_s < 0.9999 * steps[k].unit) k++;
    const double x = per_s / steps[k].unit;
    return arena_printf(a, "%.*f %s%s", digits_of(x), x, steps[k].prefix, unit);
}

const char *show_bytes(arena *a, double bytes) { return arena_printf(a, "%s", amount_bytes(bytes).s); }

const char *show_cell(arena *a, const char *text, int columns, bool right) {
    const char *cut = plain_cell(a, text ? text : "", columns);
    const int missing = columns - plain_columns(cut);
    if (missing <= 0) return cut;
    return right ? arena_printf(a, "%*s%s", missing, "", cut) : arena_printf(a, "%s%*s", cut, missing, "");
}

int show_width(FILE *out) {
    struct winsize size;
    if (!isatty(fileno(out))) return 4096;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

const char *show_shape(arena *a, const operation *o, const char *between) {
    const char *text = "";
    for (int k = 0; k < o->rec.rank && k < 12; k++)
        text = arena_printf(a, "%s%s%" PRId64, text, k > 0 ? between : "", o->rec.shape[k]);
    return text;
}
