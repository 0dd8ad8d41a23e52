/* The CPU device: what it says of itself, its memory, its random data, its launches and the probes behind ceilings. */
#include "scout/cpu/device/cpu_fill.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_telemetry.h"
#include "scout/cpu/onednn/cpu_onednn_plan.h"
#include "scout/device/cpu.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const scout_device_api *api;
static scout_device *device;
static scout_why why;

static void *take(uint64_t bytes) {
    void *memory = NULL;
    if (api->alloc(device, bytes, &memory, &why) != SCOUT_OK) abort();
    return memory;
}

static void says_what_it_is(void) {
    scout_identity id = {.size = sizeof id}, again = {.size = sizeof again};
    UNIT_TEXT(api->name, "cpu");
    UNIT_INT(api->size, sizeof(scout_device_api));
    UNIT_INT(api->count(&why), 1);
    UNIT_CHECK(api->identify(0, &id, &why) == SCOUT_OK);
    UNIT_CHECK(api->identify(0, &again, &why) == SCOUT_OK);
    UNIT_TEXT(id.uuid, again.uuid);
    UNIT_TEXT(id.capability, again.capability);
    UNIT_INT(id.units, again.units);
    UNIT_CHECK(id.name[0] && id.capability[0] && id.driver[0]);
    UNIT_CHECK(strncmp(id.uuid, "cpu-", 4) == 0 && strlen(id.uuid) == 20);
    UNIT_CHECK(id.units >= 1 && id.units <= sysconf(_SC_NPROCESSORS_CONF));
    UNIT_CHECK(id.memory_bytes > 1 << 20 && id.cache_bytes >= 1 << 15);
    UNIT_INT(api->identify(1, &id, &why), SCOUT_NO);
    scout_device *none = NULL;
    UNIT_INT(api->open(7, &none, &why), SCOUT_NO);
    UNIT_CHECK(!none);
}

static void machine_id_is_not_told(void) {
    scout_identity id = {.size = sizeof id};
    char raw[64];
    UNIT_CHECK(api->identify(0, &id, &why) == SCOUT_OK);
    if (!cpu_info_line("/etc/machine-id", raw, sizeof raw) || strlen(raw) < 16) return;
    raw[12] = 0;
    UNIT_CHECK(!strstr(id.uuid, raw));
}

/* An older reader's struct is shorter: nothing beyond its size is written. */
static void writes_no_more_than_the_reader_knows(void) {
    scout_identity id;
    scout_telemetry t;
    memset(&id, 0x5a, sizeof id);
    memset(&t, 0x5a, sizeof t);
    id.size = offsetof(scout_identity, driver);
    t.size = offsetof(scout_telemetry, throttle);
    UNIT_CHECK(api->identify(0, &id, &why) == SCOUT_OK);
    api->telemetry(device, &t);
    UNIT_INT(id.driver[0], 0x5a);
    UNIT_INT(id.library_count, 0x5a5a5a5a);
    UNIT_INT(t.throttle_text[0], 0x5a);
    UNIT_INT(id.size, offsetof(scout_identity, driver));
}

typedef struct seen {
    int count[CPU_INFO_MAX_CORES];
    int threads;
} seen;

static void mark(void *context, int thread, int threads) {
    seen *s = context;
    s->count[thread]++;
    if (thread == 0) s->threads = threads;
}

static void team_runs_everybody_once(void) {
    static seen s;
    for (int k = 0; k < 100; k++) cpu_team_run(mark, &s);
    UNIT_INT(s.threads, cpu_team_size());
    for (int k = 0; k < s.threads; k++) UNIT_INT(s.count[k], 100);
    int64_t end = 0;
    for (int k = 0; k < 7; k++) { /* shares meet and cover */
        int64_t from, to;
        cpu_team_share(25, k, 7, &from, &to);
        UNIT_INT(from, end);
        UNIT_CHECK(to - from == 3 || to - from == 4);
        end = to;
    }
    UNIT_INT(end, 25);
    UNIT_CHECK(strstr(cpu_team_about(), cpu_team_pinned() ? "pinned to" : "not pinned") != NULL);
    if (cpu_team_library()[0]) UNIT_CHECK(cpu_team_pinned());
}

static void memory_is_aligned_touched_and_refused_in_time(void) {
    static const uint64_t sizes[] = {0, 1, 511, 4096, 3 << 20, (5 << 20) + 13};
    void *blocks[6];
    uint64_t left = 0, total = 0;
    for (size_t k = 0; k < 6; k++) {
        blocks[k] = take(sizes[k]);
        UNIT_CHECK((uintptr_t)blocks[k] % 512 == 0);
        memset(blocks[k], 0x77, sizes[k]);
    }
    for (size_t k = 0; k < 6; k++) api->release(device, blocks[k]);
    api->release(device, NULL);
    UNIT_CHECK(api->memory(device, &left, &total, &why) == SCOUT_OK);
    UNIT_CHECK(left > 0 && left <= total);
    void *none = &total;
    UNIT_INT(api->alloc(device, left + (1 << 20), &none, &why), SCOUT_NO_MEMORY);
    UNIT_CHECK(none == NULL);
    UNIT_TEXT(why.code, "memory");
    UNIT_INT(api->alloc(device, UINT64_MAX - 5, &none, &why), SCOUT_NO_MEMORY);
}

/* Mean, deviation, tails and independence of neighbours, of what N(0, 1) is in that type. */
static void check_normal(uint32_t type, uint32_t how, uint64_t seed, double scale, double coarse) {
    enum { COUNT = 400000 };
    const uint64_t bytes = (uint64_t)COUNT * (uint64_t)cpu_number_bits(type) / 8;
    void *data = take(bytes);
    double *x = malloc(COUNT * sizeof *x), mean = 0, square = 0, fourth = 0, next = 0, pair = 0;
    int beyond = 0;
    UNIT_CHECK(api->fill(device, data, bytes, type, how, seed, &why) == SCOUT_OK);
    cpu_number_load(type, data, 0, 1, COUNT, x);
    for (int k = 0; k < COUNT; k++) {
        const double v = x[k] / scale;
        mean += v / COUNT, square += v * v / COUNT, fourth += v * v * v * v / COUNT;
        if (k > 0) next += v * x[k - 1] / scale / COUNT;
        if (k >= 256) pair += v * v * (x[k - 256] / scale) * (x[k - 256] / scale) / COUNT;
        beyond += fabs(v) > 3;
    }
    UNIT_CHECK(fabs(mean) < 0.01);
    UNIT_CHECK(fabs(sqrt(square) - 1) < 0.01 + coarse);
    UNIT_CHECK(fabs(fourth / square / square - 3) < 0.06 + coarse);
    UNIT_CHECK(fabs(next) < 0.01);
    UNIT_CHECK(fabs(pair - square * square) < 0.03 + coarse);
    UNIT_CHECK(beyond > COUNT * 0.0027 * (0.8 - coarse * 4) && beyond < COUNT * 0.0027 * (1.2 + coarse * 4));
    free(x);
    api->release(device, data);
}

static void normal_data_is_normal_in_every_type(void) {
    check_normal(SCOUT_FP32, SCOUT_FILL_NORMAL, 11, 1, 0);
    check_normal(SCOUT_FP16, SCOUT_FILL_NORMAL, 11, 1, 0);
    check_normal(SCOUT_BF16, SCOUT_FILL_NORMAL, 11, 1, 0.01);
    check_normal(SCOUT_FP64, SCOUT_FILL_NORMAL, 11, 1, 0);
    check_normal(SCOUT_FP8E4M3, SCOUT_FILL_NORMAL, 11, 1, 0.1);
    check_normal(SCOUT_INT8, SCOUT_FILL_NORMAL, 11, 32, 0.02);
    check_normal(SCOUT_INT32, SCOUT_FILL_NORMAL, 11, 0x1p20, 0);
    check_normal(SCOUT_FP16, SCOUT_FILL_SMALL, SCOUT_FILL_SEED(6, 11), 0x1p-6, 0);
    check_normal(SCOUT_FP32, SCOUT_FILL_SMALL, SCOUT_FILL_SEED(9, 11), 0x1p-9, 0);
}

static void fills_repeat_and_differ_by_seed(void) {
    static const uint32_t types[] = {SCOUT_FP32,        SCOUT_FP16,    SCOUT_BF16,  SCOUT_INT8,  SCOUT_INT4,
                                     SCOUT_FP8E4M3,     SCOUT_FP8E5M2, SCOUT_INT32, SCOUT_UINT4, SCOUT_FP8E4M3FNUZ,
                                     SCOUT_FP8E5M2FNUZ, SCOUT_FP4E2M1, SCOUT_INT2};
    enum { BYTES = 100004 };
    unsigned char *a = take(BYTES + 8), *b = take(BYTES + 8);
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        memset(a, 0xEE, BYTES + 8);
        UNIT_CHECK(api->fill(device, a, BYTES, types[k], SCOUT_FILL_NORMAL, 5, &why) == SCOUT_OK);
        UNIT_CHECK(api->fill(device, b, BYTES, types[k], SCOUT_FILL_NORMAL, 5, &why) == SCOUT_OK);
        UNIT_CHECK(memcmp(a, b, BYTES) == 0 && a[BYTES] == 0xEE);
        UNIT_CHECK(api->fill(device, b, BYTES, types[k], SCOUT_FILL_NORMAL, 6, &why) == SCOUT_OK);
        int same = 0;
        for (int i = 0; i < BYTES; i++) same += a[i] == b[i];
        UNIT_CHECK(same < BYTES / 2);
    }
    UNIT_CHECK(api->fill(device, a, BYTES, SCOUT_FP32, SCOUT_FILL_BYTE, 0x1FF, &why) == SCOUT_OK);
    for (int i = 0; i < BYTES; i++) UNIT_CHECK(a[i] == 0xFF);
    UNIT_CHECK(api->fill(device, a, BYTES, SCOUT_FP16, SCOUT_FILL_SCALE, 1, &why) == SCOUT_OK);
    for (int i = 0; i < BYTES / 2; i++) {
        double scale;
        cpu_number_load(SCOUT_FP16, a, i, 1, 1, &scale);
        if (!UNIT_CHECK(scale >= 1.0 / 64 && scale < 0.2)) break;
    }
    UNIT_INT(api->fill(device, a, BYTES, 999, SCOUT_FILL_NORMAL, 1, &why), SCOUT_NO);
    UNIT_INT(api->fill(device, a, BYTES, SCOUT_INT8, SCOUT_FILL_SMALL, SCOUT_FILL_SEED(3, 1), &why), SCOUT_NO);
    UNIT_INT(api->fill(device, a, BYTES, SCOUT_FP32, SCOUT_FILL_SMALL, SCOUT_FILL_SEED(65, 1), &why), SCOUT_NO);
    api->release(device, a);
    api->release(device, b);
}

static void nibbles_are_uniform(void) {
    enum { COUNT = 320000 };
    int counts[16] = {0};
    unsigned char *data = take(COUNT / 2);
    UNIT_CHECK(api->fill(device, data, COUNT / 2, SCOUT_INT4, SCOUT_FILL_NORMAL, 3, &why) == SCOUT_OK);
    for (int k = 0; k < COUNT; k++) {
        double x;
        cpu_number_load(SCOUT_INT4, data, k, 1, 1, &x);
        if (!UNIT_CHECK(x >= -8 && x <= 7)) break;
        counts[(int)x + 8]++;
    }
    for (int k = 0; k < 16; k++) UNIT_CHECK(abs(counts[k] - COUNT / 16) < 800);
    api->release(device, data);
}

static void checksums_see_every_bit(void) {
    enum { BYTES = (3 << 20) + 5 };
    unsigned char *data = take(BYTES);
    uint64_t before = 0, after = 0;
    UNIT_CHECK(api->fill(device, data, BYTES, SCOUT_INT4, SCOUT_FILL_NORMAL, 3, &why) == SCOUT_OK);
    UNIT_CHECK(api->checksum(device, data, BYTES, &before, &why) == SCOUT_OK);
    for (int k = 0; k < 40; k++) {
        const int at = k == 0 ? 0 : k == 1 ? BYTES - 1 : k * 78643 % BYTES;
        data[at] ^= (unsigned char)(1 << k % 8);
        UNIT_CHECK(api->checksum(device, data, BYTES, &after, &why) == SCOUT_OK);
        UNIT_CHECK(after != before);
        data[at] ^= (unsigned char)(1 << k % 8);
    }
    UNIT_CHECK(api->checksum(device, data, BYTES, &after, &why) == SCOUT_OK);
    UNIT_CHECK(after == before);
    UNIT_CHECK(api->checksum(device, data, BYTES - 1, &after, &why) == SCOUT_OK);
    UNIT_CHECK(after != before);
    UNIT_CHECK(api->checksum(device, data, 0, &after, &why) == SCOUT_OK);
    api->release(device, data);
}

static void short_floats_are_exact(void) {
    for (uint32_t code = 0; code < 65536; code++) { /* there and back is the same code; not-a-number stays one */
        const float half = cpu_number_from_fp16((uint16_t)code), brain = cpu_number_from_bf16((uint16_t)code);
        UNIT_CHECK(isnan(half) ? isnan(cpu_number_from_fp16(cpu_number_to_fp16(half)))
                               : cpu_number_to_fp16(half) == code);
        UNIT_CHECK(isnan(brain) ? isnan(cpu_number_from_bf16(cpu_number_to_bf16(brain)))
                                : cpu_number_to_bf16(brain) == code);
    }
    for (uint32_t code = 0; code < 256; code++) {
        const float e4 = cpu_number_from_fp8e4m3((uint8_t)code), e5 = cpu_number_from_fp8e5m2((uint8_t)code);
        UNIT_CHECK(isnan(e4) ? (code & 0x7f) == 0x7f : cpu_number_to_fp8e4m3(e4) == code);
        UNIT_CHECK(isnan(e5) ? (code & 0x7f) > 0x7c : cpu_number_to_fp8e5m2(e5) == code);
    }
    /* by hand: 1.0, the largest, the smallest, ties to even, what is too large */
    UNIT_INT(cpu_number_to_fp16(1.0F), 0x3c00);
    UNIT_INT(cpu_number_to_fp16(65504.0F), 0x7bff);
    UNIT_INT(cpu_number_to_fp16(65519.0F), 0x7bff);
    UNIT_INT(cpu_number_to_fp16(65520.0F), 0x7c00);
    UNIT_INT(cpu_number_to_fp16(0x1p-24F), 1);
    UNIT_INT(cpu_number_to_fp16(0x1p-25F), 0);
    UNIT_INT(cpu_number_to_fp16(0x1.8p-24F), 2);
    UNIT_INT(cpu_number_to_fp16(0x1.002p0F), 0x3c00);
    UNIT_INT(cpu_number_to_fp16(0x1.006p0F), 0x3c02);
    UNIT_INT(cpu_number_to_bf16(0x1.01p0F), 0x3f80);
    UNIT_INT(cpu_number_to_bf16(0x1.03p0F), 0x3f82);
    UNIT_INT(cpu_number_to_fp8e4m3(448.0F), 0x7e);
    UNIT_INT(cpu_number_to_fp8e4m3(1e6F), 0x7e);
    UNIT_INT(cpu_number_to_fp8e4m3(-0x1p-9F), 0x81);
    UNIT_CHECK(cpu_number_from_fp8e4m3(0x38) == 1.0F && cpu_number_from_fp8e5m2(0x3c) == 1.0F);
    UNIT_CHECK(isinf(cpu_number_from_fp8e5m2(0x7c)) && isnan(cpu_number_from_fp8e4m3(0xff)));
}

/* What ONNX says of the formats: bits of the fraction, bias, and whether -0 is the NaN. */
static const struct {
    uint32_t type;
    int fraction, bias, codes;
    bool one_zero;
} few_bits[] = {
    {SCOUT_FP4E2M1, 1, 1, 16, false}, {SCOUT_FP8E4M3FNUZ, 3, 8, 256, true}, {SCOUT_FP8E5M2FNUZ, 2, 16, 256, true}};

static double few_bits_value(size_t k, int code) {
    const int fraction = few_bits[k].fraction, half = few_bits[k].codes / 2;
    const int power = code % half >> fraction, rest = code & ((1 << fraction) - 1);
    const double part = ldexp(rest, -fraction) + (power > 0);
    if (few_bits[k].one_zero && code == half) return (double)NAN;
    return (code >= half ? -1 : 1) * ldexp(part, (power > 0 ? power : 1) - few_bits[k].bias);
}

/* The nearest of all codes, of two the even one; the largest beyond them. */
static int few_bits_nearest(size_t k, double x) {
    const int half = few_bits[k].codes / 2;
    const double size = fmin(fabs(x), few_bits_value(k, half - 1));
    int best = 0;
    for (int code = 1; code < half; code++) {
        const double now = fabs(size - few_bits_value(k, code)), so_far = fabs(size - few_bits_value(k, best));
        if (now < so_far || (now == so_far && code % 2 == 0)) best = code;
    }
    return signbit(x) && !(few_bits[k].one_zero && best == 0) ? best + half : best;
}

static void few_bits_are_exact(void) {
    for (size_t k = 0; k < sizeof few_bits / sizeof *few_bits; k++) {
        const int bits = few_bits[k].codes == 16 ? 4 : 8;
        UNIT_INT(cpu_number_bits(few_bits[k].type), bits);
        for (int code = 0; code < few_bits[k].codes; code++) {
            const unsigned char byte = (unsigned char)(bits == 4 ? code << 4 : code);
            const double want = few_bits_value(k, code);
            double got;
            cpu_number_load(few_bits[k].type, &byte, bits == 4, 1, 1, &got);
            UNIT_CHECK(isnan(want) ? isnan(got) : got == want);
        }
        for (uint32_t code = 0; code < 65536; code++) {
            const double x = (double)cpu_number_from_fp16((uint16_t)code);
            unsigned char byte = 0;
            if (isnan(x)) continue;
            cpu_number_store(few_bits[k].type, &byte, 0, x);
            if (!UNIT_CHECK(byte == few_bits_nearest(k, x))) break;
        }
    }
    UNIT_INT(cpu_number_to_fp8e8m0(1.0F, CPU_NUMBER_UP), 127);
    UNIT_INT(cpu_number_to_fp8e8m0(-0x1.000002p0F, CPU_NUMBER_UP), 128);
    UNIT_INT(cpu_number_to_fp8e8m0(0x1.7ffffep3F, 0x400000), 130);
    UNIT_INT(cpu_number_to_fp8e8m0(0x1.8p3F, 0x400000), 131);
    UNIT_INT(cpu_number_to_fp8e8m0(0x1.fffffep-5F, 0), 122);
    UNIT_INT(cpu_number_to_fp8e8m0(INFINITY, CPU_NUMBER_UP), 254);
    UNIT_INT(cpu_number_to_fp8e8m0(NAN, CPU_NUMBER_UP), 255);
    for (int code = 0; code < 256; code++) {
        const unsigned char byte = (unsigned char)code;
        double got;
        cpu_number_load(SCOUT_FP8E8M0, &byte, 0, 1, 1, &got);
        UNIT_CHECK(code == 255 ? isnan(got) : got == ldexp(1, code - 127));
    }
}

static void nibbles_share_a_byte(void) {
    unsigned char bytes[2] = {0, 0};
    cpu_number_store(SCOUT_INT4, bytes, 0, -8);
    cpu_number_store(SCOUT_INT4, bytes, 1, 7);
    cpu_number_store(SCOUT_INT4, bytes, 2, 100);
    UNIT_INT(bytes[0], 0x78);
    UNIT_INT(bytes[1], 0x07);
    cpu_number_store(SCOUT_INT4, bytes, 1, -1);
    UNIT_INT(bytes[0], 0xf8);
    cpu_number_store(SCOUT_INT2, bytes, 2, -2); /* its own two bits alone */
    UNIT_INT(bytes[0], 0xe8);
    cpu_number_store(SCOUT_UINT2, bytes, 5, 9);
    UNIT_INT(bytes[1], 0x0f);
    double values[4];
    cpu_number_load(SCOUT_INT2, bytes, 0, 1, 4, values);
    UNIT_CHECK(values[0] == 0 && values[1] == -2 && values[2] == -2 && values[3] == -1);
}

/* --- launches --- */

typedef struct counting {
    uint32_t calls, last;
    uint32_t fail_at;
} counting;

static scout_answer count_call(void *context, uint32_t launch, void *stream, scout_why *reason) {
    counting *c = context;
    (void)stream;
    c->last = launch;
    if (++c->calls == c->fail_at) return scout_say(reason, SCOUT_FAILED, "error", "as asked");
    return SCOUT_OK;
}

static void sequences_run_as_often_as_asked(void) {
    counting c = {0, 0, 0};
    scout_sequence *s = NULL;
    double seconds[5] = {-1, -1, -1, -1, -1};
    UNIT_CHECK(api->record(device, 1, 7, count_call, &c, &s, &why) == SCOUT_OK);
    const double before = api->now(device);
    UNIT_CHECK(api->run(device, s, 4, seconds, &why) == SCOUT_OK);
    const double passed = api->now(device) - before;
    UNIT_INT(c.calls, 28);
    UNIT_INT(c.last, 6);
    UNIT_CHECK(seconds[0] >= 0 && seconds[3] >= 0 && seconds[4] == -1);
    UNIT_CHECK(seconds[0] + seconds[1] + seconds[2] + seconds[3] <= passed);
    c.calls = 0, c.fail_at = 9;
    UNIT_INT(api->run(device, s, 4, seconds, &why), SCOUT_FAILED);
    UNIT_INT(c.calls, 9);
    UNIT_TEXT(why.text, "as asked");
    api->drop(device, s);
    UNIT_INT(api->has_graphs, 0);
    UNIT_CHECK(api->resolution_s > 0 && api->resolution_s < 1e-4);
    const double start = api->now(device);
    api->pause(device, 0.02);
    UNIT_CHECK(api->now(device) - start >= 0.019);
}

static void a_trace_has_each_launch(void) {
    enum { LAUNCHES = 5 };
    counting c = {0, 0, 0};
    scout_trace_event events[LAUNCHES];
    uint32_t count = 0;
    UNIT_CHECK(api->trace(device, LAUNCHES, count_call, &c, LAUNCHES, events, &count, &why) == SCOUT_OK);
    UNIT_INT(count, LAUNCHES);
    UNIT_INT(c.calls, 5 * LAUNCHES);
    for (uint32_t k = 0; k < LAUNCHES; k++) {
        UNIT_CHECK(events[k].launch == k && events[k].end_s >= events[k].start_s && !events[k].name[0]);
        UNIT_CHECK(k == 0 || events[k].start_s >= events[k - 1].end_s);
    }
    c.calls = 0, c.fail_at = 3;
    UNIT_INT(api->trace(device, LAUNCHES, count_call, &c, LAUNCHES, events, &count, &why), SCOUT_FAILED);
    UNIT_INT(count, 0);
    UNIT_INT(api->trace(device, LAUNCHES, count_call, &c, LAUNCHES - 1, events, &count, &why), SCOUT_NO);
}

/* Threads that take long to hear of each other: by what that took at its best, which may come later. */
static void threads_that_are_far_apart_are_seen(void) {
    cpu_stolen s = {.opened = false};
    UNIT_CHECK(!cpu_stolen_far(&s, 1.2e-6)); /* nothing is known that it could be held against */
    UNIT_CHECK(!cpu_stolen_far(&s, 0.5e-6) && !cpu_stolen_far(&s, 0.9e-6));
    UNIT_CHECK(cpu_stolen_far(&s, 1.2e-6) && !cpu_stolen_far(&s, 0.5e-6));
    const double before = api->stolen(device), after = api->stolen(device);
    UNIT_CHECK(before >= 0 && after >= before && after < before + 10);
}

static void telemetry_is_sane_or_says_nothing(void) {
    for (int k = 0; k < 3; k++) {
        scout_telemetry t = {.size = sizeof t};
        api->telemetry(device, &t);
        UNIT_CHECK(isnan(t.clock_mhz) || (t.clock_mhz > 100 && t.clock_mhz < 10000));
        UNIT_CHECK(isnan(t.power_w) || (t.power_w >= 0 && t.power_w < 10000));
        UNIT_CHECK(isnan(t.temperature_c) || (t.temperature_c > -50 && t.temperature_c < 150));
        UNIT_INT(t.size, sizeof t);
    }
}

/* Every byte of what is written is written, and nothing beside it; whatever the ratio and the odd ends. */
static void streams_write_all_of_it_and_no_more(void) {
    static const uint64_t sizes[][2] = {{0, 1},        {0, 4096},    {4096, 4096}, {100, 70001},   {1000000, 333333},
                                        {3 << 20, 64}, {0, 5 << 20}, {5 << 20, 0}, {65536, 131072}};
    unsigned char *from = take(6 << 20), *to = take((6 << 20) + 128);
    uint64_t before = 0, after = 0;
    UNIT_CHECK(api->fill(device, from, 6 << 20, SCOUT_INT4, SCOUT_FILL_NORMAL, 1, &why) == SCOUT_OK);
    (void)api->checksum(device, from, 6 << 20, &before, &why);
    for (int round = 0; round < 30; round++) { /* all ways get their turn */
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            const uint64_t bytes = sizes[k][1], offset = round % 3 == 2 ? 8 : 0;
            memset(to, 0xFE, bytes + 128);
            UNIT_CHECK(api->stream(device, from, sizes[k][0], to + offset, bytes, NULL, &why) == SCOUT_OK);
            uint64_t untouched = 0, spoilt = 0;
            for (uint64_t i = 0; i < bytes; i++) untouched += to[offset + i] == 0xFE;
            for (uint64_t i = 0; i < 120 - offset; i++) spoilt += to[offset + bytes + i] != 0xFE;
            for (uint64_t i = 0; i < offset; i++) spoilt += to[i] != 0xFE;
            UNIT_INT(untouched, 0);
            UNIT_INT(spoilt, 0);
        }
    }
    (void)api->checksum(device, from, 6 << 20, &after, &why);
    UNIT_CHECK(before == after);
    api->release(device, from);
    api->release(device, to);
}

static double seconds_of_arithmetic(uint32_t type, uint64_t flops, uint64_t *done) {
    double best = INFINITY;
    for (int k = 0; k < 7; k++) {
        const double start = api->now(device);
        if (api->arithmetic(device, type, flops, done, NULL, &why) != SCOUT_OK) return NAN;
        const double seconds = api->now(device) - start;
        if (seconds < best) best = seconds;
    }
    return best;
}

/* Twice the work takes about twice the time (nothing is left out), and the count is at least what was asked. */
/* Bytes that fill no line, and none at all, too. */
static void handing_over_leaves_the_numbers_as_they_are(void) {
    static const uint64_t sizes[] = {0, 1, 63, 64, 1000, 70001};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const scout_tensor list[] = {{.role = SCOUT_INPUT, .bytes = sizes[k]},
                                     {.role = SCOUT_OUTPUT, .bytes = sizes[k]},
                                     {.role = SCOUT_INPUT, .bytes = 640}}; /* one that is left out */
        const scout_op op = {.tensor_count = 3, .tensors = list};
        void *tensors[SCOUT_MAX_TENSORS] = {take(sizes[k] + 64), take(sizes[k] + 64), NULL};
        uint64_t before[2], after;
        for (int t = 0; t < 2; t++) {
            (void)api->fill(device, tensors[t], sizes[k] + 64, SCOUT_NONE, SCOUT_FILL_BYTE, 7, &why);
            (void)api->checksum(device, tensors[t], sizes[k] + 64, &before[t], &why);
        }
        UNIT_CHECK(api->forget(device, SCOUT_FORGET_TENSORS, &op, tensors, NULL, &why) == SCOUT_OK);
        for (int t = 0; t < 2; t++) {
            (void)api->checksum(device, tensors[t], sizes[k] + 64, &after, &why);
            UNIT_CHECK(after == before[t]);
            api->release(device, tensors[t]);
        }
    }
}

static void probes_do_the_work_they_report(void) {
    static const uint32_t types[] = {SCOUT_FP32, SCOUT_BF16, SCOUT_INT8};
    const cpu_info *c = cpu_info_get();
    const bool there[] = {true, c->avx512_bf16 || c->amx_bf16, c->avx512_vnni || c->amx_int8};
    for (size_t k = 0; k < 3; k++) {
        uint64_t done = 0, twice = 0;
        const uint64_t flops = k == 0 ? 200000000 : 2000000000;
        const double one = seconds_of_arithmetic(types[k], flops, &done);
        const double two = seconds_of_arithmetic(types[k], 8 * flops, &twice);
        UNIT_CHECK(isnan(one) == !there[k]);
        if (isnan(one)) continue;
        UNIT_CHECK(done >= flops && twice >= 8 * flops && twice < 8 * flops + flops / 8);
        UNIT_CHECK(two > 2 * one);
        /* no processor does more than this many a cycle and core */
        UNIT_CHECK((double)twice / two < 6e9 * cpu_team_size() * (k == 0 ? 256 : k == 1 ? 4096 : 8192));
    }
    uint64_t done = 0;
    UNIT_INT(api->arithmetic(device, SCOUT_FP8E4M3, 1000, &done, NULL, &why), SCOUT_NO);
    UNIT_TEXT(why.code, "hardware");
    UNIT_CHECK(api->special(device, 1000001, &done, NULL, &why) == SCOUT_OK && done >= 1000001);
    UNIT_CHECK(api->empty(device, NULL, &why) == SCOUT_OK);
}

/* The second pass of the tests (tests/run.sh) counts on this: the library does as it is told, and is asked. */
static void the_library_can_be_held_to_less(void) {
    const char *held = getenv("ONEDNN_MAX_CPU_ISA");
    const bool multiplies = cpu_onednn_plan_multiplies(SCOUT_INT8, &why);
    UNIT_CHECK(cpu_onednn_uses(dnnl_cpu_isa_sse41) && cpu_onednn_plan_multiplies(SCOUT_FP32, &why));
    if (held && strcmp(held, "AVX2") == 0) UNIT_CHECK(!cpu_onednn_uses(dnnl_cpu_isa_avx512_core) && !multiplies);
    if (!held) UNIT_CHECK(multiplies || !cpu_info_get()->avx512_vnni);
    if (!multiplies) UNIT_TEXT(why.code, "hardware");
}

int main(void) {
    api = cpu_device_api();
    if (api->open(0, &device, &why) != SCOUT_OK) return 1;
    UNIT_RUN(says_what_it_is);
    UNIT_RUN(the_library_can_be_held_to_less);
    UNIT_RUN(machine_id_is_not_told);
    UNIT_RUN(writes_no_more_than_the_reader_knows);
    UNIT_RUN(team_runs_everybody_once);
    UNIT_RUN(memory_is_aligned_touched_and_refused_in_time);
    UNIT_RUN(normal_data_is_normal_in_every_type);
    UNIT_RUN(fills_repeat_and_differ_by_seed);
    UNIT_RUN(nibbles_are_uniform);
    UNIT_RUN(checksums_see_every_bit);
    UNIT_RUN(short_floats_are_exact);
    UNIT_RUN(few_bits_are_exact);
    UNIT_RUN(nibbles_share_a_byte);
    UNIT_RUN(sequences_run_as_often_as_asked);
    UNIT_RUN(a_trace_has_each_launch);
    UNIT_RUN(threads_that_are_far_apart_are_seen);
    UNIT_RUN(telemetry_is_sane_or_says_nothing);
    UNIT_RUN(streams_write_all_of_it_and_no_more);
    UNIT_RUN(handing_over_leaves_the_numbers_as_they_are);
    UNIT_RUN(probes_do_the_work_they_report);
    api->close(device);
    return unit_end();
}
