/* Expressions of symbols and whole numbers, as exporters and sympy print them: + - * / // % **, parentheses, floor(),
 * Max() and their like. In between, numbers are fractions, so that floor(s/2 - 1/2) is exact. Names may hold a '-'
 * ("batch-size"): it is a subtraction only where the name as a whole is not known and all of its parts are. */
#include "extract/read/bind.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Owns exact fractions: always in lowest terms, so that they fit as long as possible. */

typedef struct fraction {
    int64_t n, d; /* n/d in lowest terms, d positive */
} fraction;

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

/* Of numbers of which one is a denominator: fits, and is not 0. */
static int64_t common(int64_t a, int64_t denominator) {
    uint64_t x = magnitude(a), y = (uint64_t)denominator;
    while (x) {
        const uint64_t rest = y % x;
        y = x;
        x = rest;
    }
    return (int64_t)y;
}

static fraction lowest(fraction x) {
    const int64_t g = common(x.n, x.d);
    return (fraction){x.n / g, x.d / g};
}

static bool fraction_add(fraction a, fraction b, fraction *x) {
    const int64_t g = common(a.d, b.d);
    int64_t p, q;
    if (__builtin_mul_overflow(a.n, b.d / g, &p) || __builtin_mul_overflow(b.n, a.d / g, &q)) return false;
    if (__builtin_add_overflow(p, q, &p) || __builtin_mul_overflow(a.d, b.d / g, &q)) return false;
    *x = lowest((fraction){p, q});
    return true;
}

static bool fraction_subtract(fraction a, fraction b, fraction *x) {
    if (b.n == INT64_MIN) return false;
    return fraction_add(a, (fraction){-b.n, b.d}, x);
}

static bool fraction_multiply(fraction a, fraction b, fraction *x) {
    const int64_t g = common(a.n, b.d), h = common(b.n, a.d);
    fraction y;
    if (__builtin_mul_overflow(a.n / g, b.n / h, &y.n) || __builtin_mul_overflow(a.d / h, b.d / g, &y.d)) return false;
    *x = y;
    return true;
}

static bool fraction_divide(fraction a, fraction b, fraction *x) {
    if (b.n == 0 || b.n == INT64_MIN) return false;
    return fraction_multiply(a, b.n < 0 ? (fraction){-b.d, -b.n} : (fraction){b.d, b.n}, x);
}

static bool fraction_floor(fraction a, fraction *x) {
    *x = (fraction){a.n / a.d - (a.n % a.d < 0), 1};
    return true;
}

static bool fraction_ceil(fraction a, fraction *x) {
    *x = (fraction){a.n / a.d + (a.n % a.d > 0), 1};
    return true;
}

static bool fraction_floor_divide(fraction a, fraction b, fraction *x) {
    fraction y;
    return fraction_divide(a, b, &y) && fraction_floor(y, x);
}

/* has the sign of b */
static bool fraction_mod(fraction a, fraction b, fraction *x) {
    fraction y;
    return fraction_floor_divide(a, b, &y) && fraction_multiply(y, b, &y) && fraction_subtract(a, y, x);
}

/* b: a whole number, not negative */
static bool fraction_power(fraction a, fraction b, fraction *x) {
    fraction y = {1, 1};
    if (b.d != 1 || b.n < 0) return false;
    for (int64_t left = b.n; left > 0; left >>= 1) {
        if ((left & 1) && !fraction_multiply(y, a, &y)) return false;
        if (left > 1 && !fraction_multiply(a, a, &a)) return false;
    }
    *x = y;
    return true;
}

static bool is_less(fraction a, fraction b, bool *possible) {
    fraction y = {0, 1};
    *possible = fraction_subtract(a, b, &y);
    return y.n < 0;
}

static bool fraction_max(fraction a, fraction b, fraction *x) {
    bool possible;
    *x = is_less(a, b, &possible) ? b : a;
    return possible;
}

static bool fraction_min(fraction a, fraction b, fraction *x) {
    bool possible;
    *x = is_less(a, b, &possible) ? a : b;
    return possible;
}

enum { BIND_EXPR_DEPTH = 32, BIND_EXPR_PARTS = 16, BIND_EXPR_ARGUMENTS = 16 };

typedef struct expr {
    const char *text, *at;
    const bind_expr_names *names;
    bind_expr_result result;
    int depth;
    bool strict; /* the numbers count, not only the form */
} expr;

static const fraction one = {1, 1};

static fraction give_up(expr *e, bind_expr_result why) {
    if (e->result == BIND_EXPR_OK) e->result = why;
    return one;
}

/* What arithmetic says no to: where only the form counts, the symbols' numbers are not the real ones. */
static fraction checked(expr *e, bool possible, fraction x) {
    if (possible) return x;
    return e->strict ? give_up(e, BIND_EXPR_IMPOSSIBLE) : one;
}

static void blanks(expr *e) {
    while (*e->at == ' ') e->at++;
}

static bool take(expr *e, const char *what) {
    blanks(e);
    const size_t n = strlen(what);
    if (e->result != BIND_EXPR_OK || strncmp(e->at, what, n) != 0) return false;
    e->at += n;
    return true;
}

static bool starts_name(char c) { return isalpha((unsigned char)c) || c == '_' || (c & 0x80); }

static bool in_name(char c) { return starts_name(c) || isdigit((unsigned char)c) || c == '.' || c == ':' || c == '-'; }

static fraction sum(expr *e);
static fraction factor(expr *e);

/* ---- names ---- */

static bool all_digits(const char *s, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (!isdigit((unsigned char)s[k])) return false;
    return n > 0;
}

/* How long the first operand is where a name is subtractions; 0: they leave something that is no operand. A name is one
 * where it is known; `loosely`, also where a number is taken from it. */
static size_t first_operand(const expr *e, const char *s, const size_t *end, int parts, bool loosely) {
    size_t length[BIND_EXPR_PARTS] = {0}; /* of the longest operand that begins with a part and leaves only operands */
    for (int k = parts - 1; k >= 0; k--) {
        const size_t start = k > 0 ? end[k - 1] + 1 : 0;
        for (int last = parts - 1; last >= k && length[k] == 0; last--) {
            const size_t size = end[last] - start;
            if (size == 0 || (last + 1 < parts && length[last + 1] == 0)) continue;
            const bool count = k > 0 && all_digits(s + start, size);
            const bool less = loosely && last + 1 < parts && isdigit((unsigned char)s[end[last] + 1]);
            if (count || less || e->names->known(e->names->context, s + start, size)) length[k] = size;
        }
    }
    return length[0];
}

/* How much of a name with '-' in it is the first operand: all of it, or what stands before a subtraction. */
static size_t first_part(const expr *e, const char *s, size_t n) {
    size_t end[BIND_EXPR_PARTS]; /* of each part */
    int parts = 0;
    if (!e->names || !e->names->known || n > 256 || e->names->known(e->names->context, s, n)) return n;
    for (size_t k = 0; k <= n; k++) {
        if (k < n && s[k] != '-') continue;
        if (parts == BIND_EXPR_PARTS) return n;
        end[parts++] = k;
    }
    size_t first = first_operand(e, s, end, parts, false);
    if (!first && (s != e->text || s[n])) first = first_operand(e, s, end, parts, true); /* in an expression */
    return first ? first : n;
}

typedef struct function {
    const char *name;
    int least, most; /* arguments */
    bool (*two)(fraction a, fraction b, fraction *x);
    bool (*one)(fraction a, fraction *x);
} function;

static const function functions[] = {
    {"floor", 1, 1, NULL, fraction_floor},
    {"FloorToInt", 1, 1, NULL, fraction_floor},
    {"ceil", 1, 1, NULL, fraction_ceil},
    {"ceiling", 1, 1, NULL, fraction_ceil},
    {"CeilToInt", 1, 1, NULL, fraction_ceil},
    {"Max", 1, BIND_EXPR_ARGUMENTS, fraction_max, NULL},
    {"max", 1, BIND_EXPR_ARGUMENTS, fraction_max, NULL},
    {"Min", 1, BIND_EXPR_ARGUMENTS, fraction_min, NULL},
    {"min", 1, BIND_EXPR_ARGUMENTS, fraction_min, NULL},
    {"Mod", 2, 2, fraction_mod, NULL},
    {"PythonMod", 2, 2, fraction_mod, NULL},
    {"FloorDiv", 2, 2, fraction_floor_divide, NULL},
    {"CleanDiv", 2, 2, fraction_divide, NULL},
    {"IntTrueDiv", 2, 2, fraction_divide, NULL},
};

static fraction call(expr *e, const char *name, size_t n) { // recursion: bounded by depth
    const function *f = NULL;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (strlen(functions[k].name) == n && strncmp(functions[k].name, name, n) == 0) f = &functions[k];
    if (!f || !take(e, "(") || ++e->depth > BIND_EXPR_DEPTH) return give_up(e, BIND_EXPR_NO_EXPRESSION);
    fraction x = sum(e);
    if (f->one) x = checked(e, f->one(x, &x), x);
    int count = 1;
    for (; count < f->most && take(e, ","); count++) {
        const fraction y = sum(e);
        x = checked(e, f->two(x, y, &x), x);
    }
    if (count < f->least || !take(e, ")")) return give_up(e, BIND_EXPR_NO_EXPRESSION);
    e->depth--;
    return x;
}

static fraction name_or_call(expr *e) { // recursion: bounded by depth
    const char *start = e->at, *end = start;
    while (in_name(*end)) end++;
    size_t n = (size_t)(end - start);
    e->at = end;
    if (*end == '(') return call(e, start, n);
    if (memchr(start, '-', n)) n = first_part(e, start, n);
    e->at = start + n;
    fraction x = one;
    if (e->names && e->names->size && !e->names->size(e->names->context, start, n, &x.n))
        return give_up(e, BIND_EXPR_UNBOUND);
    return x;
}

/* ---- arithmetic, the tightest first ---- */

static fraction number(expr *e) {
    fraction x = {0, 1};
    while (isdigit((unsigned char)*e->at)) {
        if (__builtin_mul_overflow(x.n, 10, &x.n) || __builtin_add_overflow(x.n, *e->at - '0', &x.n))
            return give_up(e, BIND_EXPR_IMPOSSIBLE);
        e->at++;
    }
    return in_name(*e->at) && *e->at != '-' ? give_up(e, BIND_EXPR_NO_EXPRESSION) : x;
}

static fraction atom(expr *e) { // recursion: bounded by depth
    blanks(e);
    if (isdigit((unsigned char)*e->at)) return number(e);
    if (starts_name(*e->at)) return name_or_call(e);
    if (!take(e, "(") || ++e->depth > BIND_EXPR_DEPTH) return give_up(e, BIND_EXPR_NO_EXPRESSION);
    const fraction x = sum(e);
    if (!take(e, ")")) return give_up(e, BIND_EXPR_NO_EXPRESSION);
    e->depth--;
    return x;
}

/* -a**b is -(a**b), and b may have a sign of its own. */
static fraction factor(expr *e) { // recursion: bounded by depth
    if (++e->depth > BIND_EXPR_DEPTH) return give_up(e, BIND_EXPR_NO_EXPRESSION);
    fraction x;
    if (take(e, "-")) {
        x = factor(e);
        x = checked(e, fraction_subtract((fraction){0, 1}, x, &x), x);
    } else {
        x = atom(e);
        if (take(e, "**")) {
            const fraction y = factor(e);
            x = checked(e, fraction_power(x, y, &x), x);
        }
    }
    e->depth--;
    return x;
}

static fraction product(expr *e) { // recursion: bounded by depth
    static const struct {
        const char *text;
        bool (*apply)(fraction a, fraction b, fraction *x);
    } operations[] = {
        {"//", fraction_floor_divide}, {"/", fraction_divide}, {"*", fraction_multiply}, {"%", fraction_mod}};
    enum { COUNT = sizeof operations / sizeof *operations };
    fraction x = factor(e);
    for (size_t k = 0; k < COUNT; k++) {
        if (!take(e, operations[k].text)) continue;
        const fraction y = factor(e);
        x = checked(e, operations[k].apply(x, y, &x), x);
        k = (size_t)-1; /* once more from the first */
    }
    return x;
}

static fraction sum(expr *e) { // recursion: bounded by depth
    fraction x = product(e);
    for (;;) {
        const bool plus = take(e, "+");
        if (!plus && !take(e, "-")) return x;
        const fraction y = product(e);
        x = checked(e, plus ? fraction_add(x, y, &x) : fraction_subtract(x, y, &x), x);
    }
}

bind_expr_result bind_expr(const char *text, const bind_expr_names *names, bool strict, int64_t *size) {
    expr e = {text, text, names, BIND_EXPR_OK, 0, strict};
    fraction x = sum(&e);
    blanks(&e);
    if (e.result == BIND_EXPR_OK && *e.at) e.result = BIND_EXPR_NO_EXPRESSION;
    if (e.result == BIND_EXPR_OK) {
        (void)fraction_floor(x, &x); /* of what is no whole number after all */
        *size = x.n;
    }
    return e.result;
}
