#include "extract/graph/equation.h"

#include <string.h>

static int letter_of(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* `rank` tells how many dimensions an ellipsis stands for. */
static bool read_term(const char *text, const char *end, int rank, equation_term *term) {
    int named = 0;
    for (const char *c = text; c < end; c++) named += letter_of(*c) >= 0;
    term->rank = 0;
    for (const char *c = text; c < end; c++) {
        if (*c == '.') {
            if (c + 2 >= end || c[1] != '.' || c[2] != '.') return false;
            for (int k = rank - named; k > 0 && term->rank < INFO_MAX_RANK; k--)
                term->letters[term->rank++] = EQUATION_NAMED + k - 1;
            c += 2;
        } else if (letter_of(*c) >= 0) {
            if (term->rank == INFO_MAX_RANK) return false;
            term->letters[term->rank++] = letter_of(*c);
        } else if (*c != ' ') {
            return false;
        }
    }
    return term->rank == rank;
}

/* Without an arrow the output has the ellipsis, and then what stands once, in the order of the alphabet, capitals
 * first. */
static void imply_output(equation *e) {
    int met[EQUATION_LETTERS] = {0};
    e->out.rank = 0;
    for (int k = 0; k < e->count; k++)
        for (int i = 0; i < e->in[k].rank; i++) met[e->in[k].letters[i]]++;
    for (int k = EQUATION_LETTERS - 1; k >= EQUATION_NAMED; k--)
        if (met[k] && e->out.rank < INFO_MAX_RANK) e->out.letters[e->out.rank++] = k;
    for (int k = 0; k < EQUATION_NAMED; k++) {
        const int letter = (k + EQUATION_NAMED / 2) % EQUATION_NAMED;
        if (met[letter] == 1 && e->out.rank < INFO_MAX_RANK) e->out.letters[e->out.rank++] = letter;
    }
}

bool equation_read(const node *n, equation *e) {
    const char *text = graph_attr_string(n, "equation", ""),
               *arrow = strstr(text, "->"), *const stop = arrow ? arrow : text + strlen(text);
    const tensor *out = n->out_count > 0 ? n->out[0] : NULL;
    memset(e, 0, sizeof *e);
    if (n->in_count < 1 || n->in_count > EQUATION_OPERANDS || !out || !info_shaped(out->info)) return false;
    for (; e->count < n->in_count; e->count++) {
        const tensor *t = n->in[e->count];
        equation_term *term = &e->in[e->count];
        const char *end = text + strcspn(text, ",-");
        if (!t || !info_shaped(t->info) || end > stop || !read_term(text, end, t->info->rank, term)) return false;
        for (int i = 0; i < term->rank; i++) {
            int64_t *size = &e->size[term->letters[i]];
            if (*size < 2) *size = t->info->dims[i];
        }
        text = end + (*end == ',');
    }
    if (arrow) return read_term(arrow + 2, arrow + strlen(arrow), out->info->rank, &e->out);
    imply_output(e);
    return e->out.rank == out->info->rank;
}

bool equation_has(const equation_term *t, int letter) {
    for (int k = 0; k < t->rank; k++) {
        if (t->letters[k] == letter) return true;
    }
    return false;
}

equation_role equation_role_of(const equation *e, int letter) {
    const bool a = equation_has(&e->in[0], letter), b = equation_has(&e->in[1], letter);
    return a && b ? (equation_has(&e->out, letter) ? EQUATION_BATCH : EQUATION_K) : a ? EQUATION_M : EQUATION_N;
}

bool equation_in_order(const equation *e, const equation_term *t, const equation_role *order) {
    int at = 0;
    for (int k = 0; k < t->rank; k++) {
        while (at < 3 && order[at] != equation_role_of(e, t->letters[k])) at++;
        if (at == 3) return false;
    }
    return true;
}

const char *equation_layout(const equation *e) {
    static const equation_role out[] = {EQUATION_BATCH, EQUATION_M, EQUATION_N},
                               an[] = {EQUATION_BATCH, EQUATION_M, EQUATION_K},
                               at[] = {EQUATION_BATCH, EQUATION_K, EQUATION_M},
                               bn[] = {EQUATION_BATCH, EQUATION_K, EQUATION_N},
                               bt[] = {EQUATION_BATCH, EQUATION_N, EQUATION_K};
    if (e->count != 2 || !equation_in_order(e, &e->out, out)) return NULL;
    const bool a = equation_in_order(e, &e->in[0], an), b = equation_in_order(e, &e->in[1], bn);
    if (!a && !equation_in_order(e, &e->in[0], at)) return NULL;
    if (!b && !equation_in_order(e, &e->in[1], bt)) return NULL;
    return a ? (b ? "nn" : "nt") : (b ? "tn" : "tt");
}
