/* The few functions of libnvidia-ml.so.1 that are needed, resolved by name: its header comes with no toolkit's core,
 * and a machine without the library still measures, only without telemetry. */
#include "scout/cuda/device/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

/* As in nvml.h; its layout is stable by the library's versioned symbols. */
typedef struct nvml_field {
    unsigned int id, scope;
    long long timestamp, latency_us;
    int value_type, answer;
    union {
        double real;
        unsigned int word;
        unsigned long dword;
        unsigned long long qword;
        long long sqword;
    } value;
} nvml_field;

enum {
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_SENSOR_GPU = 0,
    NVML_FIELD_POWER_INSTANT = 186,
    NVML_VALUE_DOUBLE = 0,
    NVML_VALUE_WORD = 1
};

typedef struct nvml_table {
    bool tried, usable;
    int (*init)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*by_pci)(const char *bus_id, void **device);
    int (*driver)(char *text, unsigned int room);
    int (*limit)(void *device, unsigned int *milliwatts);
    int (*clock)(void *device, int which, unsigned int *mhz);
    int (*most_clock)(void *device, int which, unsigned int *mhz);
    int (*power)(void *device, unsigned int *milliwatts);
    int (*fields)(void *device, int count, nvml_field *fields);
    int (*temperature)(void *device, int sensor, unsigned int *degrees);
    int (*reasons)(void *device, unsigned long long *bits);
} nvml_table;

/* A process has one driver: opened at the first question, never closed. */
static nvml_table nvml;

static const struct {
    const char *name, *older; /* older: what it was called before */
    size_t at;
    bool needed;
} names[] = {
    {"nvmlInit_v2", NULL, offsetof(nvml_table, init), true},
    {"nvmlDeviceGetHandleByUUID", NULL, offsetof(nvml_table, by_uuid), true},
    {"nvmlDeviceGetHandleByPciBusId_v2", NULL, offsetof(nvml_table, by_pci), true},
    {"nvmlSystemGetDriverVersion", NULL, offsetof(nvml_table, driver), true},
    {"nvmlDeviceGetEnforcedPowerLimit", NULL, offsetof(nvml_table, limit), false},
    {"nvmlDeviceGetClockInfo", NULL, offsetof(nvml_table, clock), false},
    {"nvmlDeviceGetMaxClockInfo", NULL, offsetof(nvml_table, most_clock), false},
    {"nvmlDeviceGetPowerUsage", NULL, offsetof(nvml_table, power), false},
    {"nvmlDeviceGetFieldValues", NULL, offsetof(nvml_table, fields), false},
    {"nvmlDeviceGetTemperature", NULL, offsetof(nvml_table, temperature), false},
    {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
     offsetof(nvml_table, reasons), false},
};

static bool nvml_open(void) {
    if (nvml.tried) return nvml.usable;
    nvml.tried = true;
    void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        void *symbol = dlsym(library, names[k].name);
        if (!symbol && names[k].older) symbol = dlsym(library, names[k].older);
        if (!symbol && names[k].needed) return false;
        /* a function's address travels as bytes: C has no cast from an object's pointer to a function's */
        memcpy((char *)&nvml + names[k].at, &symbol, sizeof symbol);
    }
    nvml.usable = nvml.init() == 0;
    return nvml.usable;
}

void *nvml_device(const char *uuid, const char *pci_bus_id) {
    void *device = NULL;
    if (!nvml_open()) return NULL;
    if (uuid && *uuid && nvml.by_uuid(uuid, &device) == 0) return device;
    if (pci_bus_id && *pci_bus_id && nvml.by_pci(pci_bus_id, &device) == 0) return device;
    return NULL;
}

bool nvml_driver_version(char *text, size_t room) { return nvml_open() && nvml.driver(text, (unsigned int)room) == 0; }

double nvml_power_limit_w(void *device) {
    unsigned int milliwatts = 0;
    return device && nvml.limit && nvml.limit(device, &milliwatts) == 0 ? milliwatts / 1000.0 : 0;
}

/* Instantaneous power where the driver has it: the older call returns a mean over about a second. */
static double nvml_power_w(void *device) {
    nvml_field field;
    unsigned int milliwatts = 0;
    memset(&field, 0, sizeof field);
    field.id = NVML_FIELD_POWER_INSTANT;
    if (nvml.fields && nvml.fields(device, 1, &field) == 0 && field.answer == 0) {
        if (field.value_type == NVML_VALUE_DOUBLE) return field.value.real / 1000.0;
        if (field.value_type == NVML_VALUE_WORD) return field.value.word / 1000.0;
        return (double)field.value.qword / 1000.0;
    }
    return nvml.power && nvml.power(device, &milliwatts) == 0 ? milliwatts / 1000.0 : NAN;
}

static double nvml_clock_mhz(void *device, int which) {
    unsigned int mhz = 0;
    return nvml.clock && nvml.clock(device, which, &mhz) == 0 ? mhz : NAN;
}

void nvml_throttle_text(uint64_t bits, char *text, size_t room) {
    static const struct {
        uint64_t bit;
        const char *text;
    } reasons[] = {
        {0x1, "idle"},
        {0x2, "clock setting"},
        {0x4, "power cap"},
        {0x8, "hardware slowdown"},
        {0x10, "sync boost"},
        {0x20, "thermal"},
        {0x40, "hardware thermal"},
        {0x80, "power brake"},
        {0x100, "display clock"},
    };
    size_t used = 0;
    if (room) text[0] = '\0';
    for (size_t k = 0; k < sizeof reasons / sizeof reasons[0]; k++) {
        if (!(bits & reasons[k].bit) || used >= room) continue;
        const int n = snprintf(text + used, room - used, "%s%s", used ? ", " : "", reasons[k].text);
        used += n > 0 ? (size_t)n : 0;
    }
}

void nvml_telemetry(void *device, scout_telemetry *out) {
    unsigned int degrees = 0, most_mhz = 0;
    unsigned long long bits = 0;
    out->clock_mhz = out->memory_clock_mhz = out->power_w = out->temperature_c = NAN;
    out->most_clock_mhz = NAN;
    out->throttle = 0;
    out->throttle_text[0] = '\0';
    if (!device || !nvml.usable) return;
    out->clock_mhz = nvml_clock_mhz(device, NVML_CLOCK_SM);
    out->memory_clock_mhz = nvml_clock_mhz(device, NVML_CLOCK_MEMORY);
    out->power_w = nvml_power_w(device);
    if (nvml.most_clock && nvml.most_clock(device, NVML_CLOCK_SM, &most_mhz) == 0) out->most_clock_mhz = most_mhz;
    if (nvml.temperature && nvml.temperature(device, NVML_SENSOR_GPU, &degrees) == 0) out->temperature_c = degrees;
    if (!nvml.reasons || nvml.reasons(device, &bits) != 0) return;
    out->throttle = bits;
    nvml_throttle_text(bits, out->throttle_text, sizeof out->throttle_text);
}
