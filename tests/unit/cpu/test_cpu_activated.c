/* The reference of products with something behind them: a residual, an activation. */
#include "scout/cpu/device/cpu_number.h"
#include "scout/kinds/kinds.h"
#include "scout/op/gemm.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

static void reference_knows_residuals_and_activations(void) {
    static const struct {
        const char *name;
        double alpha;
    } rows[] = {{NULL, 0},   {"relu", 0}, {"leakyrelu", 0.125}, {"gelu", 0},      {"gelu_tanh", 0}, {"sigmoid", 0},
                {"tanh", 0}, {"silu", 0}, {"quickgelu", 0},     {"swish", 0.625}, {"hardswish", 0}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        for (size_t type = 0; type < 4; type++) {
            product w = cpu_products_want(2 + k % 6, k % 4, type, 1 + (int64_t)(k % 2) * 2);
            w.activation = rows[k].name, w.alpha = rows[k].alpha;
            w.residual = k % 3 != 1, w.bias = k % 2 ? "n" : NULL;
            cpu_products_check_reference(&w, 10 * k + type);
        }
}

/* Every output counts where an activation stands behind it: none may be left out of what projections see. */
static void one_wrong_element_behind_an_activation_is_found(void) {
    static const char *const names[] = {"gelu", "relu", "silu"};
    for (size_t t = 0; t < 3; t++) {
        product w = cpu_products_want(0, t, t, 1);
        w.m = 150, w.n = 300, w.k = 24, w.activation = names[t], w.bias = "n", w.residual = t == 1;
        problem p;
        cpu_products_make(&p, &w, t);
        cpu_products_triple_loop(&p);
        scout_check *check = cpu_products_begin(&p);
        if (check && UNIT_CHECK(cpu_products_judge(check, &p).wrong == 0)) {
            int missed = 0;
            for (int64_t k = 0; k < 200; k++) {
                const int64_t position = k == 0 ? 0 : k == 1 ? 44999 : k * 7919 * 131 % 45000;
                const double right = cpu_products_at(&p, GEMM_C, position);
                cpu_number_store(w.type_c, p.data[GEMM_C], position, right + (k % 2 ? 5 : -5));
                missed += cpu_products_judge(check, &p).wrong == 0;
                cpu_number_store(w.type_c, p.data[GEMM_C], position, right);
            }
            UNIT_INT(missed, 0);
            UNIT_CHECK(cpu_products_judge(check, &p).wrong == 0);
            cpu_products_api->references[0]->end(check);
        }
        cpu_products_drop(&p);
    }
}

/* What was meant to be one function and is another, or left out what is added, is no rounding. */
static void another_function_is_found(void) {
    static const struct {
        const char *meant, *done;
        bool residual;
    } rows[] = {{"gelu", "relu", true}, {"silu", "gelu", true}, {"relu", "leakyrelu", true}, {"gelu", "gelu", false}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        product w = cpu_products_want(7, 0, 0, 1);
        w.activation = rows[k].done, w.residual = true, w.alpha = 0.01;
        problem p;
        cpu_products_make(&p, &w, k);
        cpu_products_triple_loop(&p);
        for (uint32_t f = 0; f < p.op.field_count; f++)
            if (strcmp(p.fields[f].name, "activation") == 0) p.fields[f].text = rows[k].meant;
        const int residual = op_tensor(&p.op, "residual");
        scout_why why;
        if (!rows[k].residual)
            (void)cpu_products_api->fill(cpu_products_device, p.data[residual], p.tensors[residual].bytes, SCOUT_FP32,
                                         SCOUT_FILL_BYTE, 0, &why);
        scout_check *check = cpu_products_begin(&p);
        if (UNIT_CHECK(check)) {
            const scout_verdict v = cpu_products_judge(check, &p);
            UNIT_CHECK(v.wrong > 100 && v.worst_projected > kind_gemm.tolerance(&p.op));
            cpu_products_api->references[0]->end(check);
        }
        cpu_products_drop(&p);
    }
}

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(reference_knows_residuals_and_activations);
    UNIT_RUN(one_wrong_element_behind_an_activation_is_found);
    UNIT_RUN(another_function_is_found);
    cpu_products_close();
    return unit_end();
}
