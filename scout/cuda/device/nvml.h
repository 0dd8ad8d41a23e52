/* The driver's management library, opened at run time: the state of a GPU (clocks, power, temperature, throttling), and
 * facts that the driver's own interface lacks. Never changes a setting. */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>

/* The device of that PCI bus id (or, tried first, UUID); NULL where there is no such library or device. Borrowed. */
void *nvml_device(const char *uuid, const char *pci_bus_id);
bool nvml_driver_version(char *text, size_t room); /* "580.159.04" */
double nvml_power_limit_w(void *device);           /* the enforced one; 0: not known */
/* All of it; not-a-number for what the device does not tell. device may be NULL. */
void nvml_telemetry(void *device, scout_telemetry *out);
/* "power cap, thermal" from the driver's bits. */
void nvml_throttle_text(uint64_t bits, char *text, size_t room);
