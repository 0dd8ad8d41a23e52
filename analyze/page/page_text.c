/* Figures and foreign text in the page. Everything that is not this program's own words goes through page_say. */
#include "analyze/page/page_internal.h"

#include "analyze/write/escape.h"
#include "common/plain.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static page_word word_of(const char *text) {
    page_word w;
    snprintf(w.s, sizeof w.s, "%s", text);
    return w;
}

/* As everywhere, but for the sign of micro and a dash, which every screen has. */
page_word page_time(double us) {
    const amount text = amount_time(us);
    page_word w = word_of(isfinite(us) ? text.s : "–");
    const size_t n = strlen(w.s);
    if (n > 3 && strcmp(w.s + n - 3, " us") == 0) memcpy(w.s + n - 2, "µs", sizeof "µs");
    return w;
}

page_word page_time_in(amount_unit unit, double us) {
    const amount text = amount_in(unit, us);
    page_word w = word_of("–");
    const bool less = text.s[0] == '<';
    if (isfinite(us))
        snprintf(w.s, sizeof w.s, "%s%s %s", less ? "&lt;" : "", text.s + less,
                 strcmp(unit.name, "us") == 0 ? "µs" : unit.name);
    return w;
}

page_word page_percent(double share) {
    const amount text = amount_percent(share);
    page_word w;
    if (!isfinite(share)) return word_of("–");
    snprintf(w.s, sizeof w.s, "%s%s", text.s[0] == '<' ? "&lt;" : "", text.s + (text.s[0] == '<'));
    return w;
}

/* Four digits, never an exponent within what one meets. */
static int digits(double x) {
    const double size = fabs(x);
    return size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

page_word page_whole(double x) {
    page_word w = {{0}};
    char plain[40];
    if (!isfinite(x)) return word_of("–");
    if (fabs(x) >= 1e15) {
        snprintf(w.s, sizeof w.s, "%.3g", x);
        return w;
    }
    snprintf(plain, sizeof plain, "%.0f", x);
    const size_t n = strlen(plain), sign = plain[0] == '-';
    size_t to = 0;
    for (size_t k = 0; k < n && to + 2 < sizeof w.s; k++) {
        if (k > sign && (n - k) % 3 == 0) w.s[to++] = ',';
        w.s[to++] = plain[k];
    }
    return w;
}

page_word page_figure(double x) {
    page_word w;
    if (!isfinite(x)) return word_of("–");
    if (fabs(x) >= 1000) return page_whole(x);
    if (x != 0 && fabs(x) < 0.001)
        snprintf(w.s, sizeof w.s, "%.2g", x);
    else
        snprintf(w.s, sizeof w.s, "%.*f", digits(x), x);
    return w;
}

page_word page_bytes(double bytes) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    page_word w;
    size_t k = 0;
    if (!isfinite(bytes)) return word_of("–");
    while (bytes >= 1000 && k + 1 < sizeof units / sizeof units[0]) bytes /= 1000, k++;
    snprintf(w.s, sizeof w.s, "%.3g %s", bytes, units[k]);
    return w;
}

page_word page_place(double percent) {
    page_word w;
    snprintf(w.s, sizeof w.s, "%.2f%%", isfinite(percent) ? fmin(fmax(percent, -100), 200) : 0.0);
    return w;
}

void page_say(page *p, const char *text) { escape_print(p->out, ESCAPE_MARKUP, text); }

void page_say_cut(page *p, const char *text, int most) {
    if (text) page_say(p, plain_cell(&p->arena, text, most));
}

void page_say_wrapped(page *p, const char *text, int most) {
    const char *at = text ? plain_cell(&p->arena, text, most) : "";
    while (*at) {
        const size_t to = strcspn(at, ","), n = to + (at[to] == ',');
        page_say(p, arena_strndup(&p->arena, at, n));
        at += n;
        if (*at) fputs("<wbr>", p->out);
    }
}

/* A given name, or the kind where the name is only an id made of it. */
const char *page_title(page *p, const study_report *r) {
    const char *op = r->op ? r->op : "", *name = r->name ? r->name : r->operation;
    const size_t n = strlen(op);
    const bool made = n && strncmp(name, op, n) == 0 && name[n] == '_';
    if (!made) return plain_cell(&p->arena, name, PAGE_NAME);
    return plain_cell(&p->arena, r->what && *r->what ? arena_printf(&p->arena, "%s %s", op, r->what) : op, PAGE_NAME);
}

/* The numbers of one property in an operation's key (";kernel=3,3"), as far as they are any. */
static int key_numbers(const study_report *r, const char *property, int most, long long *out) {
    const char *at = r->key ? strstr(r->key, property) : NULL;
    int count = 0;
    if (!at) return 0;
    for (at += strlen(property); count < most && isdigit((unsigned char)*at); at++) {
        char *end = NULL;
        out[count++] = strtoll(at, &end, 10);
        at = end;
        if (*at != ',') break;
    }
    return count;
}

/* Of convolutions the output alone is no name: those of a network have few different ones. */
static void window(page *p, const study_report *r) {
    long long kernel[3], input[5], stride[3];
    const int n = key_numbers(r, ";kernel=", 3, kernel), inputs = key_numbers(r, ";input=", 5, input);
    const bool last = r->layout && strcmp(r->layout, "nhwc") == 0;
    for (int k = 0; k < n; k++) fprintf(p->out, k ? " × %lld" : " by %lld", kernel[k]);
    if (inputs > 2) fprintf(p->out, " from %lld", input[last ? inputs - 1 : 1]);
    if (key_numbers(r, ";stride=", 3, stride) > 0) fprintf(p->out, ", stride %lld", stride[0]);
}

void page_shape(page *p, const study_report *r) {
    for (int k = 0; k < r->rank; k++) fprintf(p->out, k ? " × %lld" : "%lld", (long long)r->shape[k]);
    if (r->batch > 1) fprintf(p->out, ", %lld at once", (long long)r->batch);
    if (r->op && strcmp(r->op, "conv") == 0) window(p, r);
}

const char *page_kind(const char *op) {
    static const char *const kinds[] = {"gemm", "conv",        "attention", "norm",   "softmax",
                                        "move", "elementwise", "embedding", "reduce", "other"};
    const size_t last = sizeof kinds / sizeof kinds[0] - 1;
    for (size_t k = 0; op && k < last; k++)
        if (strcmp(op, kinds[k]) == 0) return kinds[k];
    return kinds[last];
}

void page_key(page *p, const char *kind) {
    fprintf(p->out,
            "<svg class=\"key\" aria-hidden=\"true\"><rect class=\"k-%s\" width=\"100%%\" height=\"100%%\" "
            "rx=\"2\"/></svg>",
            kind);
}

void page_legend(page *p, const char *const *kinds, size_t count) {
    enum { MOST = 10 };
    const char *seen[MOST];
    size_t n = 0;
    fputs("<ul class=\"legend\" aria-label=\"Kinds of operations\">", p->out);
    for (size_t k = 0; k < count && n < MOST; k++) {
        size_t at = 0;
        while (at < n && seen[at] != kinds[k]) at++;
        if (at < n) continue;
        seen[n++] = kinds[k];
        fputs("<li>", p->out);
        page_key(p, kinds[k]);
        fprintf(p->out, "%s</li>", kinds[k]);
    }
    fputs("</ul>", p->out);
}

double page_real(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *page_string(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void page_section(page *p, const char *id, const char *title) {
    char of_group[32] = "";
    if (p->m && p->m->group_count > 1) snprintf(of_group, sizeof of_group, " group%zu", p->number);
    fprintf(p->out, "<section aria-labelledby=\"%s%zu%s\"><h2 id=\"%s%zu\">%s</h2>\n", id, p->number, of_group, id,
            p->number, title);
}

void page_table_open(page *p, const char *class, const char *name, const char *says, const char *const *heads,
                     size_t count) {
    if (says) fprintf(p->out, "<p class=\"small soft\">%s</p>\n", says);
    fprintf(p->out,
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table%s%s%s>"
            "<caption class=\"hidden\">%s</caption><thead><tr>",
            name, *class ? " class=\"" : "", class, *class ? "\"" : "", name);
    for (size_t k = 0; k < count; k++) {
        const bool number = heads[k][0] == '#';
        fprintf(p->out, "<th scope=\"col\"%s>%s</th>", number ? " class=\"n\"" : "", heads[k] + number);
    }
    fputs("</tr></thead><tbody>\n", p->out);
}

void page_table_close(page *p) { fputs("</tbody></table></div>\n", p->out); }
