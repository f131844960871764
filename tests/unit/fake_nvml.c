/* Stands in for NVIDIA's library with one GPU: notes what is set in the file NVML_LOG, or refuses it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7 };
static unsigned power_mw = 700000, clock_mhz = 1980;
static const unsigned memory_clocks[] = {3201, 2619}, clocks[] = {1980, 1500, 1200};

static int set(unsigned *target, unsigned value, const char *what)
{
    if (getenv("NVML_REFUSES")) return NO_PERMISSION;
    FILE *log = fopen(getenv("NVML_LOG"), "a");
    fprintf(log, "%s %u\n", what, value);
    fclose(log);
    *target = value;
    return SUCCESS;
}

static int listed(unsigned *count, unsigned *found, const unsigned *values, unsigned size)
{
    unsigned room = *count;
    *count = size;
    if (room < size) return INSUFFICIENT_SIZE;
    memcpy(found, values, size * sizeof *values);
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { return SUCCESS; }
const char *nvmlErrorString(int error) { return error == NO_PERMISSION ? "Insufficient Permissions" : "error"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **gpu) { return *gpu = &power_mw, SUCCESS; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu) { return *gpu = &power_mw, strcmp(uuid, "GPU-1"); }
int nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned size) { return strcpy(uuid, "GPU-1"), SUCCESS; }
int nvmlDeviceGetPowerManagementLimit(void *gpu, unsigned *mw) { return *mw = power_mw, SUCCESS; }
int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *mw) { return *mw = power_mw, SUCCESS; }
int nvmlDeviceGetPowerManagementLimitConstraints(void *gpu, unsigned *low, unsigned *high)
{
    return *low = 199500, *high = 700000, SUCCESS;
}
int nvmlDeviceSetPowerManagementLimit(void *gpu, unsigned mw) { return set(&power_mw, mw, "power"); }
int nvmlDeviceGetClockInfo(void *gpu, int kind, unsigned *mhz) { return *mhz = clock_mhz, SUCCESS; }
int nvmlDeviceSetGpuLockedClocks(void *gpu, unsigned low, unsigned high) { return set(&clock_mhz, low, "clock"); }
int nvmlDeviceResetGpuLockedClocks(void *gpu) { return set(&clock_mhz, 1980, "reset"); }
int nvmlDeviceGetSupportedMemoryClocks(void *gpu, unsigned *count, unsigned *found)
{
    return listed(count, found, memory_clocks, 2);
}
int nvmlDeviceGetSupportedGraphicsClocks(void *gpu, unsigned memory, unsigned *count, unsigned *found)
{
    return memory == 3201 ? listed(count, found, clocks, 3) : INSUFFICIENT_SIZE;
}
