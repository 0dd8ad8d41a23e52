/* Expressions of symbols and whole numbers with + - * / // and parentheses. A '-' between name characters belongs to
 * the name
 * ("batch-size"); a subtraction has blanks around it, as every exporter writes it. */
#include "extract/read/bind.h"

#include <ctype.h>
#include <string.h>

enum { BIND_EXPR_DEPTH = 32 };

typedef struct expr {
    const char *at;
    bind_expr_symbol *symbol;
    void *context;
    bind_expr_result result;
    int depth;
    bool strict; /* the numbers count, not only the form */
} expr;

static int64_t give_up(expr *e, bind_expr_result why) {
    if (e->result == BIND_EXPR_OK) e->result = why;
    return 0;
}

static void blanks(expr *e) {
    while (*e->at == ' ') e->at++;
}

static bool starts_name(char c) { return isalpha((unsigned char)c) || c == '_' || (c & 0x80); }

static bool in_name(char c) { return starts_name(c) || isdigit((unsigned char)c) || c == '.' || c == ':' || c == '-'; }

static int64_t sum(expr *e);

static int64_t number(expr *e) {
    int64_t x = 0;
    while (isdigit((unsigned char)*e->at)) {
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *e->at - '0', &x))
            return give_up(e, BIND_EXPR_IMPOSSIBLE);
        e->at++;
    }
    return in_name(*e->at) ? give_up(e, BIND_EXPR_NO_EXPRESSION) : x;
}

static int64_t factor(expr *e) { // recursion: bounded by depth
    blanks(e);
    int64_t x = 0;
    if (isdigit((unsigned char)*e->at)) return number(e);
    if (starts_name(*e->at)) {
        const char *start = e->at;
        while (in_name(*e->at)) e->at++;
        if (e->symbol && !e->symbol(e->context, start, (size_t)(e->at - start), &x))
            return give_up(e, BIND_EXPR_UNBOUND);
        return x;
    }
    if ((*e->at != '(' && *e->at != '-') || ++e->depth > BIND_EXPR_DEPTH) return give_up(e, BIND_EXPR_NO_EXPRESSION);
    if (*e->at++ == '-') {
        x = factor(e);
        if (__builtin_sub_overflow(0, x, &x)) return give_up(e, BIND_EXPR_IMPOSSIBLE);
    } else {
        x = sum(e);
        blanks(e);
        if (*e->at != ')') return give_up(e, BIND_EXPR_NO_EXPRESSION);
        e->at++;
    }
    e->depth--;
    return x;
}

static int64_t divided(expr *e, int64_t a, int64_t b) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return give_up(e, e->strict ? BIND_EXPR_IMPOSSIBLE : BIND_EXPR_OK);
    const int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0)); /* rounds down */
}

static int64_t product(expr *e) { // recursion: bounded by depth
    int64_t x = factor(e);
    for (blanks(e); e->result == BIND_EXPR_OK && (*e->at == '*' || *e->at == '/'); blanks(e)) {
        const char op = *e->at++;
        if (op == '/' && *e->at == '/') e->at++;
        const int64_t y = factor(e);
        if (e->result != BIND_EXPR_OK) return 0;
        if (op == '/') {
            x = divided(e, x, y);
        } else if (__builtin_mul_overflow(x, y, &x)) {
            return give_up(e, BIND_EXPR_IMPOSSIBLE);
        }
    }
    return x;
}

static int64_t sum(expr *e) { // recursion: bounded by depth
    int64_t x = product(e);
    for (blanks(e); e->result == BIND_EXPR_OK && (*e->at == '+' || *e->at == '-'); blanks(e)) {
        const char op = *e->at++;
        const int64_t y = product(e);
        if (e->result != BIND_EXPR_OK) return 0;
        if (op == '+' ? __builtin_add_overflow(x, y, &x) : __builtin_sub_overflow(x, y, &x))
            return give_up(e, BIND_EXPR_IMPOSSIBLE);
    }
    return x;
}

bind_expr_result bind_expr(const char *text, bind_expr_symbol *symbol, void *context, bool strict, int64_t *size) {
    expr e = {text, symbol, context, BIND_EXPR_OK, 0, strict};
    const int64_t x = sum(&e);
    blanks(&e);
    if (e.result == BIND_EXPR_OK && *e.at) e.result = BIND_EXPR_NO_EXPRESSION;
    if (e.result == BIND_EXPR_OK) *size = x;
    return e.result;
}

bool bind_expr_is_symbol(const char *text) {
    if (!starts_name(*text)) return false;
    while (in_name(*text)) text++;
    return *text == 0;
}
