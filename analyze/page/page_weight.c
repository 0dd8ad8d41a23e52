/* What the zeros of a weight are good for, as pictures: of each size of blocks the part that holds any number, which is
 * the part of the work that is left when empty blocks are skipped. */
#include "analyze/page/page_internal.h"

#include <math.h>

enum { SIDE = 10 };

/* A square of 100 cells, as many of them dark as percents hold numbers. */
static void waffle(page *p, const char *what, double kept) {
    const int dark = (int)lround(100 * fmin(1, fmax(0, kept)));
    fprintf(p->out,
            "<figure class=\"waffle\"><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s: %s hold a "
            "number\"><path class=\"cell\" d=\"",
            SIDE, SIDE, what, page_percent(kept).s);
    for (int k = dark; k < SIDE * SIDE; k++) fprintf(p->out, "M%d.05 %d.05h.9v.9h-.9z", k % SIDE, k / SIDE);
    fputs("\"/><path class=\"kept\" d=\"", p->out);
    for (int k = 0; k < dark; k++) fprintf(p->out, "M%d.05 %d.05h.9v.9h-.9z", k % SIDE, k / SIDE);
    fprintf(p->out, "\"/></svg><figcaption>%s<br><strong>%s</strong></figcaption></figure>\n", what,
            page_percent(kept).s);
}

static void sizes(page *p, const json_t *fractions, const char *before) {
    static const char *const sides[] = {"16", "32", "64", "128"};
    for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++) {
        const double kept = page_real(fractions, sides[k]);
        char what[32];
        if (!isfinite(kept)) continue;
        snprintf(what, sizeof what, "%s × %s", before ? before : sides[k], sides[k]);
        waffle(p, what, kept);
    }
}

static void figures(page *p, const json_t *w) {
    const double rows = page_real(w, "rows"), cols = page_real(w, "cols"), block = page_real(w, "block");
    fputs("<p class=\"small\">", p->out);
    page_say_cut(p, page_string(w, "name"), PAGE_NAME);
    fprintf(p->out, " %s × %s, ", page_whole(rows).s, page_whole(cols).s);
    fputs("from: ", p->out);
    page_say_cut(p, page_string(w, "source"), 16);
    fprintf(p->out, ". %s of it is zero", page_percent(page_real(w, "zeros")).s);
    if (json_is_true(json_object_get(w, "two_of_four_by_row")))
        fputs(", at most two of each four along a row are not", p->out);
    if (json_is_true(json_object_get(w, "two_of_four_by_col")))
        fputs(", at most two of each four along a column are not", p->out);
    fputs(block > 0 ? "" : ". No size of blocks is worth it", p->out);
    if (block > 0) fprintf(p->out, ". Blocks of %s are the largest that are worth it", page_whole(block).s);
    fprintf(p->out, ". Rows hold %s to %s numbers.</p>\n", page_whole(page_real(w, "fewest_in_row")).s,
            page_whole(page_real(w, "most_in_row")).s);
}

void page_weight(page *p, const json_t *detail) {
    const json_t *w = json_object_get(detail, "weight");
    if (!json_is_object(w)) return;
    fputs("<h4>Zeros of its weight</h4>\n", p->out);
    figures(p, w);
    fputs("<p class=\"small soft\">Blocks of the weight that hold any number (dark): the part of the work that is left "
          "when the "
          "others are skipped.</p><div class=\"waffles\">",
          p->out);
    sizes(p, json_object_get(w, "blocks"), NULL);
    fputs("</div><p class=\"small soft\">The same for pieces of single rows:</p><div class=\"waffles\">", p->out);
    sizes(p, json_object_get(w, "pieces"), "1");
    fputs("</div>\n", p->out);
}
