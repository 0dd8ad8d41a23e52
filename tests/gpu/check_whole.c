/* References of whole outputs on the CUDA device (scout/cuda/reference/cuda_whole_*.c): against plain loops on the
 * host, in other words than the kernels', and that one wrong element is found where it is. */
#include "tests/gpu/gpu_check.h"
#include "tests/gpu/gpu_values.h"

#include "scout/op/elementwise_chain.h"

typedef struct whole_case {
    scout_op op;
    scout_tensor tensors[5];
    scout_field fields[4];
    unsigned char *host[5]; /* what tensors hold; of the output what is right */
    void *device[5];
    uint32_t out;
} whole_case;

static uint64_t size_of(uint32_t type) { return type == SCOUT_INT64 ? 8 : gpu_bytes(type, 1); }

static double get(const whole_case *c, uint32_t tensor, int64_t at) {
    long long whole = 0;
    if (c->tensors[tensor].type != SCOUT_INT64) return value_at(c->host[tensor], c->tensors[tensor].type, at);
    memcpy(&whole, c->host[tensor] + 8 * at, 8);
    return (double)whole;
}

static void put(const whole_case *c, int64_t at, double x) {
    const long long whole = (long long)x;
    if (c->tensors[c->out].type != SCOUT_INT64)
        put_value(c->host[c->out], c->tensors[c->out].type, at, x);
    else
        memcpy(c->host[c->out] + 8 * at, &whole, 8);
}

static whole_case begin(uint32_t kind, const char *what, uint32_t type) {
    whole_case c;
    memset(&c, 0, sizeof c);
    c.op = (scout_op){.size = sizeof c.op, .kind = kind, .key = "check", .what = what, .input = type, .output = type};
    return c;
}

/* Dense; of an elementwise operation a dimension of 1 is one that an operand is the same along. */
static void add(whole_case *c, const char *name, uint32_t role, uint32_t type, int rank, const int64_t *dims) {
    scout_tensor *const t = &c->tensors[c->op.tensor_count];
    int64_t stride = 1;
    *t = (scout_tensor){.size = sizeof *t, .role = role, .type = type, .rank = (uint32_t)rank};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (int d = rank; d-- > 0;) {
        t->dims[d] = dims[d];
        t->strides[d] = dims[d] == 1 && c->op.kind == SCOUT_ELEMENTWISE ? 0 : stride;
        stride *= dims[d];
    }
    t->bytes = (uint64_t)stride * size_of(type);
    if (role == SCOUT_OUTPUT) c->out = c->op.tensor_count, c->op.output = type;
    c->op.tensor_count++;
}

static void field(whole_case *c, const char *name, int64_t number, const char *text) {
    c->fields[c->op.field_count++] = (scout_field){name, number, text};
}

/* Behind the last add and field: until here the operation was moved. */
static void fill(whole_case *c) {
    c->op.tensors = c->tensors, c->op.fields = c->fields;
    for (uint32_t k = 0; k < c->op.tensor_count; k++) {
        const scout_tensor *t = &c->tensors[k];
        const bool out = k == c->out;
        c->host[k] = malloc(t->bytes);
        GPU_OK(gpu_api->alloc(gpu, t->bytes, &c->device[k], &gpu_why));
        GPU_OK(gpu_api->fill(gpu, c->device[k], t->bytes, t->type, out ? SCOUT_FILL_BYTE : SCOUT_FILL_NORMAL,
                             out ? 0xff : 77 + k, &gpu_why));
        GPU_OK(gpu_api->download(gpu, c->host[k], c->device[k], t->bytes, &gpu_why));
    }
}

/* --- judging --- */

static const scout_reference *reference_of(uint32_t kind) {
    for (uint32_t k = 0; k < gpu_api->reference_count; k++)
        if (gpu_api->references[k]->kind == kind) return gpu_api->references[k];
    return NULL;
}

static scout_verdict judge(const whole_case *c, scout_check *check, double tolerance) {
    scout_verdict v = {.size = sizeof v};
    const uint64_t bytes = c->tensors[c->out].bytes;
    GPU_OK(gpu_api->upload(gpu, c->device[c->out], c->host[c->out], bytes, &gpu_why));
    GPU_OK(reference_of(c->op.kind)->compare_at(check, c->out, c->device[c->out], tolerance, &v, &gpu_why));
    return v;
}

/* host[out] is what plain loops made of the inputs. */
static void hold(whole_case *c, double tolerance, const char *text) {
    const scout_reference *r = reference_of(c->op.kind);
    const int64_t count = op_elements(&c->tensors[c->out]);
    scout_check *check = NULL;
    gpu_expect(r != NULL, "%s: no reference", text);
    if (!r) return;
    GPU_OK(r->begin(gpu, &c->op, c->device, 1, &check, &gpu_why));
    if (check) {
        scout_verdict v = judge(c, check, tolerance);
        gpu_expect(v.wrong == 0 && v.compared == (uint64_t)count && v.worst <= tolerance,
                   "%s: the host's result is called wrong: %llu, %.3g at %llu, got %.9g want %.9g", text,
                   (unsigned long long)v.wrong, v.worst, (unsigned long long)v.at, v.got, v.want);
        const int64_t places[] = {0, count / 2, count - 1};
        for (size_t k = 0; k < 3; k++) {
            const double was = get(c, c->out, places[k]);
            put(c, places[k], was + (c->op.accumulate == SCOUT_INT32 ? 3 : 1 + fabs(was))); /* as large as its parts */
            v = judge(c, check, tolerance);
            gpu_expect(v.wrong == 1 && v.at == (uint64_t)places[k], "%s: one wrong at %lld: %llu wrong, worst at %llu",
                       text, (long long)places[k], (unsigned long long)v.wrong, (unsigned long long)v.at);
            put(c, places[k], was);
        }
        memset(c->host[c->out], 0xff, c->tensors[c->out].bytes);
        v = judge(c, check, tolerance);
        gpu_expect(v.wrong > (uint64_t)count * 9 / 10, "%s: poison went unseen", text);
        r->end(check);
    }
    for (uint32_t k = 0; k < c->op.tensor_count; k++) gpu_api->release(gpu, c->device[k]), free(c->host[k]);
}

/* --- the kinds --- */

static void check_softmax(int64_t outer, int64_t cols, int64_t inner, bool logarithm, uint32_t type, double tolerance) {
    whole_case c = begin(SCOUT_SOFTMAX, logarithm ? "log" : NULL, type);
    const int64_t dims[] = {outer, cols, inner};
    c.op.rank = 2, c.op.shape[0] = outer * inner, c.op.shape[1] = cols;
    add(&c, "x", SCOUT_INPUT, type, 3, dims), add(&c, "y", SCOUT_OUTPUT, type, 3, dims);
    field(&c, "inner", inner, NULL);
    fill(&c);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0;
            for (int64_t k = 0; k < cols; k++) sum += exp(get(&c, 0, (o * cols + k) * inner + i));
            for (int64_t k = 0; k < cols; k++) {
                const double x = get(&c, 0, (o * cols + k) * inner + i);
                put(&c, (o * cols + k) * inner + i, logarithm ? x - log(sum) : exp(x) / sum);
            }
        }
    hold(&c, tolerance, "softmax");
}

static void check_norm(const char *what, int64_t rows, int64_t cols, uint32_t type, double tolerance) {
    whole_case c = begin(SCOUT_NORM, what, type);
    const int64_t dims[] = {rows, cols};
    c.op.rank = 2, c.op.shape[0] = rows, c.op.shape[1] = cols;
    add(&c, "x", SCOUT_INPUT, type, 2, dims), add(&c, "y", SCOUT_OUTPUT, type, 2, dims);
    add(&c, "scale", SCOUT_SIDE, SCOUT_FP32, 1, &cols), add(&c, "bias", SCOUT_SIDE, SCOUT_FP32, 1, &cols);
    fill(&c);
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < cols; k++) mean += get(&c, 0, r * cols + k) / (double)cols;
        if (strcmp(what, "rms") == 0) mean = 0;
        for (int64_t k = 0; k < cols; k++) squares += pow(get(&c, 0, r * cols + k) - mean, 2) / (double)cols;
        for (int64_t k = 0; k < cols; k++)
            put(&c, r * cols + k,
                (get(&c, 0, r * cols + k) - mean) / sqrt(squares + 1e-5) * get(&c, 2, k) + get(&c, 3, k));
    }
    hold(&c, tolerance, what);
}

/* [a, b, c], its middle dimension reduced. */
static void check_reduce(const char *what, const int64_t *dims, uint32_t type, uint32_t out, double tolerance) {
    whole_case c = begin(SCOUT_REDUCE, what, type);
    const int64_t kept[] = {dims[0], 1, dims[2]};
    c.op.rank = 2, c.op.shape[0] = dims[0] * dims[2], c.op.shape[1] = dims[1];
    add(&c, "x", SCOUT_INPUT, type, 3, dims), add(&c, "y", SCOUT_OUTPUT, out, 3, kept);
    fill(&c);
    for (int64_t a = 0; a < dims[0]; a++)
        for (int64_t e = 0; e < dims[2]; e++) {
            double sum = 0, most = -INFINITY;
            int64_t at = 0;
            for (int64_t k = 0; k < dims[1]; k++) {
                const double x = get(&c, 0, (a * dims[1] + k) * dims[2] + e);
                sum += x;
                if (x > most) most = x, at = k;
            }
            put(&c, a * dims[2] + e, strcmp(what, "sum") == 0 ? sum : strcmp(what, "max") == 0 ? most : (double)at);
        }
    hold(&c, tolerance, what);
}

/* a [3, 65, 17] and b [3, 1, 17]. */
static void check_elementwise(const char *what, uint32_t type, double tolerance) {
    whole_case c = begin(SCOUT_ELEMENTWISE, what, type);
    const int64_t dims[] = {3, 65, 17}, part[] = {3, 1, 17};
    c.op.rank = 3;
    memcpy(c.op.shape, dims, sizeof dims);
    add(&c, "a", SCOUT_INPUT, type, 3, dims), add(&c, "b", SCOUT_INPUT, type, 3, part);
    add(&c, "y", SCOUT_OUTPUT, type, 3, dims);
    field(&c, "inputs", 0, "tensor,3x1x17");
    fill(&c);
    for (int64_t at = 0; at < 3 * 65 * 17; at++) {
        const double a = get(&c, 0, at), b = get(&c, 1, at / (65 * 17) * 17 + at % 17);
        put(&c, at, strcmp(what, "sub") == 0 ? a - b : strcmp(what, "mul") == 0 ? a * b : a / (1 + exp(-a)) * b);
    }
    hold(&c, tolerance, what);
}

/* Three steps on a [3, 65, 17], b [3, 1, 17] and c [17], none of them rounded: less than the reference admits. */
static void check_chain(uint32_t type) {
    whole_case c = begin(SCOUT_ELEMENTWISE, "chain", type);
    const int64_t dims[] = {3, 65, 17}, part[] = {3, 1, 17}, vector[] = {1, 1, 17};
    elementwise_chain chain;
    c.op.rank = 3;
    memcpy(c.op.shape, dims, sizeof dims);
    add(&c, "a", SCOUT_INPUT, type, 3, dims), add(&c, "b", SCOUT_INPUT, type, 3, part);
    add(&c, "c", SCOUT_SIDE, type, 3, vector), add(&c, "y", SCOUT_OUTPUT, type, 3, dims);
    field(&c, "chain", 0, "sub(tensor,3x1x17);sigmoid;mul(v,vector)");
    fill(&c);
    GPU_OK(elementwise_chain_of(&c.op, &chain, &gpu_why) ? SCOUT_OK : SCOUT_NO);
    for (int64_t at = 0; at < 3 * 65 * 17; at++) {
        const double a = get(&c, 0, at), b = get(&c, 1, at / (65 * 17) * 17 + at % 17), by = get(&c, 2, at % 17);
        put(&c, at, by / (1 + exp(b - a)));
    }
    hold(&c, elementwise_chain_tolerance(&chain), "chain");
}

/* Bytes between DequantizeLinear and QuantizeLinear: a [3, 65, 17] and b [3, 1, 17], the half of their sum, and
 * averages of 2 x 2 in [2, 5, 8, 8] times 2. Halves may be rounded either way. */
static void check_quantised(uint32_t type, double tolerance) {
    whole_case c = begin(SCOUT_ELEMENTWISE, "add", type);
    const int64_t dims[] = {3, 65, 17}, part[] = {3, 1, 17};
    const double zero = type == SCOUT_UINT8 ? 128 : 0;
    c.op.rank = 3, c.op.accumulate = SCOUT_INT32;
    memcpy(c.op.shape, dims, sizeof dims);
    add(&c, "a", SCOUT_INPUT, type, 3, dims), add(&c, "b", SCOUT_INPUT, type, 3, part);
    add(&c, "y", SCOUT_OUTPUT, type, 3, dims);
    field(&c, "inputs", 0, "tensor,3x1x17"), field(&c, "quant", 0, "qdq");
    fill(&c);
    for (int64_t at = 0; at < 3 * 65 * 17; at++)
        put(&c, at, rint((get(&c, 0, at) + get(&c, 1, at / (65 * 17) * 17 + at % 17)) / 2 - zero) + zero);
    hold(&c, tolerance, "quantised add");
}

static void check_average(uint32_t type, double tolerance) {
    whole_case c = begin(SCOUT_POOL, "average", type);
    const int64_t in[] = {2, 5, 8, 8}, out[] = {2, 5, 4, 4};
    const double zero = type == SCOUT_UINT8 ? 128 : 0;
    c.op.rank = 4, c.op.accumulate = SCOUT_INT32, c.op.layout = "nchw";
    memcpy(c.op.shape, out, sizeof out);
    add(&c, "input", SCOUT_INPUT, type, 4, in), add(&c, "output", SCOUT_OUTPUT, type, 4, out);
    field(&c, "input", 0, "2,5,8,8"), field(&c, "kernel", 0, "2,2"), field(&c, "stride", 0, "2,2");
    field(&c, "quant", 0, "qdq");
    fill(&c);
    for (int64_t at = 0; at < 2 * 5 * 4 * 4; at++) {
        const int64_t from = at / 16 * 64 + at / 4 % 4 * 16 + at % 4 * 2;
        const double sum = get(&c, 0, from) + get(&c, 0, from + 1) + get(&c, 0, from + 8) + get(&c, 0, from + 9);
        put(&c, at, fmin(127, fmax(-128, rint((sum - 4 * zero) / 2))) + zero);
    }
    hold(&c, tolerance, "quantised average");
}

static void check_rotary(int64_t rotated, bool interleaved, uint32_t type, double tolerance) {
    whole_case c = begin(SCOUT_ROTARY, NULL, type);
    const int64_t dims[] = {2, 3, 17, 66}, half = rotated / 2, angles[] = {17, half};
    c.op.rank = 4;
    memcpy(c.op.shape, dims, sizeof dims);
    add(&c, "x", SCOUT_INPUT, type, 4, dims), add(&c, "cos", SCOUT_SIDE, type, 2, angles);
    add(&c, "sin", SCOUT_SIDE, type, 2, angles), add(&c, "y", SCOUT_OUTPUT, type, 4, dims);
    field(&c, "rotary_dim", rotated, NULL), field(&c, "interleaved", interleaved, NULL);
    fill(&c);
    for (int64_t row = 0; row < 2 * 3 * 17; row++) {
        for (int64_t d = rotated; d < 66; d++) put(&c, row * 66 + d, get(&c, 0, row * 66 + d));
        for (int64_t i = 0; i < half; i++) {
            const int64_t first = row * 66 + (interleaved ? 2 * i : i), second = first + (interleaved ? 1 : half);
            const double x = get(&c, 0, first), y = get(&c, 0, second);
            const double cosine = get(&c, 1, row % 17 * half + i), sine = get(&c, 2, row % 17 * half + i);
            put(&c, first, x * cosine - y * sine), put(&c, second, y * cosine + x * sine);
        }
    }
    hold(&c, tolerance, "rotary");
}

int main(int argc, char **argv) {
    static const int64_t shapes[][3] = {{1, 1, 1}, {17, 7, 1}, {3, 1000, 65}, {2, 4097, 1}, {129, 63, 3}};
    static const struct {
        uint32_t type;
        double tolerance;
    } types[] = {{SCOUT_FP32, 0x1p-23}, {SCOUT_BF16, 0x1p-8}};
    gpu_begin(argc, argv, true);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (size_t t = 0; t < 2; t++) {
            const uint32_t type = types[t].type;
            const double tolerance = types[t].tolerance;
            for (int k = 0; k < 2; k++) check_softmax(shapes[s][0], shapes[s][1], shapes[s][2], k, type, tolerance);
            if (shapes[s][1] > 1) /* one number less its mean is made of more than it is */
                check_norm("layer", shapes[s][0] * shapes[s][2], shapes[s][1], type, tolerance);
            check_norm("rms", shapes[s][0] * shapes[s][2], shapes[s][1], type, tolerance);
            check_reduce("sum", shapes[s], type, type, tolerance);
            check_reduce("max", shapes[s], type, type, 0);
            check_reduce("argmax", shapes[s], type, SCOUT_INT64, 0);
        }
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        check_reduce("sum", shapes[s], SCOUT_INT64, SCOUT_INT64, 0);
    for (size_t t = 0; t < 2; t++) {
        check_elementwise("sub", types[t].type, types[t].tolerance);
        check_elementwise("swiglu", types[t].type, types[t].tolerance);
        check_chain(types[t].type);
        for (int k = 0; k < 4; k++) check_rotary(k / 2 ? 34 : 66, k % 2, types[t].type, types[t].tolerance);
    }
    check_elementwise("mul", SCOUT_INT64, 0);
    for (int k = 0; k < 2; k++) check_quantised(k ? SCOUT_INT8 : SCOUT_UINT8, 0x1p-10);
    for (int k = 0; k < 2; k++) check_average(k ? SCOUT_INT8 : SCOUT_UINT8, 0x1p-10);
    gpu_api->close(gpu);
    return gpu_end();
}
