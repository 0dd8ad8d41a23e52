/* The functions of the driver (libcuda.so.1) that describe devices without a context. */
#pragma once

#include "scout/plugin.h"

#include <cuda.h>

typedef struct cuda_driver {
    CUresult (*init)(unsigned int flags);
    CUresult (*version)(int *version);
    CUresult (*count)(int *count);
    CUresult (*get)(CUdevice *device, int ordinal);
    CUresult (*name)(char *name, int room, CUdevice device);
    CUresult (*uuid)(CUuuid *uuid, CUdevice device);
    CUresult (*memory)(size_t *bytes, CUdevice device);
    CUresult (*pci)(char *bus_id, int room, CUdevice device);
    CUresult (*attribute)(int *value, CUdevice_attribute attribute, CUdevice device);
    CUresult (*error)(CUresult result, const char **text);
} cuda_driver;

/* NULL where there is no driver, it is too old for the runtime that is linked in, or it finds no device it can use: why
 * says which. */
const cuda_driver *cuda_driver_open(scout_why *why);
