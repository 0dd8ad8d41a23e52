/* Inverses in long double, by elimination beside the unit matrix, with the largest number of all that is left as pivot;
 * the determinant is the product of the pivots. */
#include "scout/cpu/reference/cpu_reference_reduce.h"

#include "scout/cpu/device/cpu_number.h"

#include <math.h>
#include <stdbool.h>

typedef struct work {
    int n;
    long double a[MATRIX_MOST][2 * MATRIX_MOST]; /* the matrix, and what becomes its inverse */
    int column[MATRIX_MOST];                     /* that row k's pivot stands in */
    long double determinant;
} work;

/* The largest number of rows from k on, in columns without a pivot: its row comes to place k. */
static void choose(work *w, int k) {
    int row = k, column = -1;
    bool odd = false;
    for (int c = 0; c < w->n; c++) {
        bool taken = false;
        for (int i = 0; i < k; i++) taken = taken || w->column[i] == c;
        for (int r = k; r < w->n && !taken; r++)
            if (column < 0 || fabsl(w->a[r][c]) > fabsl(w->a[row][column])) row = r, column = c;
    }
    for (int c = 0; c < 2 * w->n; c++) {
        const long double x = w->a[k][c];
        w->a[k][c] = w->a[row][c], w->a[row][c] = x;
    }
    w->column[k] = column;
    for (int i = 0; i < k; i++) odd ^= w->column[i] > column; /* of the columns' order */
    w->determinant *= (odd != (row != k) ? -1 : 1) * w->a[k][column];
}

static void eliminate(work *w) {
    w->determinant = 1;
    for (int k = 0; k < w->n; k++) {
        choose(w, k);
        const long double pivot = w->a[k][w->column[k]];
        for (int c = 0; c < 2 * w->n; c++) w->a[k][c] /= pivot;
        for (int r = 0; r < w->n; r++) {
            const long double factor = w->a[r][w->column[k]];
            for (int c = 0; r != k && c < 2 * w->n; c++) w->a[r][c] -= factor * w->a[k][c];
        }
    }
}

/* Number (row, column) of the inverse: row k solves for the unknown of its pivot's column. */
static double inverse_at(const work *w, int row, int column) {
    int k = 0;
    while (k + 1 < w->n && w->column[k] != row) k++;
    return (double)w->a[k][w->n + column];
}

static void load(work *w, const double *x) {
    for (int r = 0; r < w->n; r++)
        for (int c = 0; c < w->n; c++)
            w->a[r][c] = (long double)x[r * w->n + c], w->a[r][w->n + c] = (long double)(r == c);
}

/* The largest magnitude of y x y: elimination with pivots is exact by the size of a matrix, not number by number. */
static void spread_inverse(int n, const double *x, const double *y, double *spread) {
    double row[MATRIX_MOST], most = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            row[k] = 0;
            for (int m = 0; m < n; m++) row[k] += fabs(y[i * n + m] * x[m * n + k]);
        }
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += row[k] * fabs(y[k * n + j]);
            most = fmax(most, sum);
        }
    }
    for (int i = 0; i < n * n; i++) spread[i] = most;
}

void cpu_reference_matrix(const scout_op *op, void *const *tensors, int64_t from, int64_t count, double *want,
                          double *spread) {
    const matrix_problem p = matrix_problem_of(op);
    const int n = (int)p.n;
    double x[MATRIX_MOST * MATRIX_MOST], y[MATRIX_MOST * MATRIX_MOST];
    work w;
    w.n = n;
    for (int64_t k = 0; k < count; k++) {
        double terms = 0;
        cpu_number_load(p.type, tensors[MATRIX_X], (from + k) * n * n, 1, (int64_t)n * n, x);
        load(&w, x);
        eliminate(&w);
        for (int i = 0; i < n * n; i++) y[i] = inverse_at(&w, i / n, i % n);
        for (int i = 0; i < n * n; i++) terms += fabs(x[i] * y[i % n * n + i / n]);
        if (p.inverts) {
            for (int i = 0; i < n * n; i++) want[k * n * n + i] = y[i];
            spread_inverse(n, x, y, spread + k * n * n);
        } else {
            want[k] = (double)w.determinant, spread[k] = terms * fabs(want[k]);
        }
    }
}
