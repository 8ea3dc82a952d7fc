/* A libnvidia-ml.so.1 for machines without a GPU, called by the real pynvml.
 *
 * The file named by FAKE_NVML holds lines `key=value`. For a GPU, `N.key` goes before `key`; a value that is not there
 * makes its call return NOT_SUPPORTED, as a real driver does for what a card does not have. `fail.FUNCTION`,
 * `hang.FUNCTION` and `crash.FUNCTION`, each also with `.N` for one GPU, make a call return that code, never return, or
 * end the process by a signal (`crash.FUNCTION=segv` by another one). Functions that are not defined here are those an
 * older driver does not have; OLD_DRIVER leaves out more.
 *
 * Keys of GPUs beside those named at the functions: `procs` and `gprocs` (`pid:MiB:name,...`), `nvlinks` (how many),
 * `nvlink.L=0` (link L is down), `nvlink_to` (`switch`, or the number of another GPU), `nvlink_errors`; `topo` and
 * `topo.A.B`, `p2p` and `p2p.A.B` (numbers of nvml.h).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

static char text[1 << 16];
static int initialised;

static void load(void) {
  const char *name = getenv("FAKE_NVML");
  FILE *file = name ? fopen(name, "r") : NULL;
  if (text[0] || !file) return;
  text[0] = '\n';
  text[1 + fread(text + 1, 1, sizeof text - 2, file)] = 0;
  fclose(file);
}

/* The value of `key`, copied into a buffer of the caller; NULL where the file does not have it. */
static const char *value(const char *key, char *buffer, size_t size) {
  char wanted[160];
  load();
  snprintf(wanted, sizeof wanted, "\n%s=", key);
  const char *found = strstr(text, wanted);
  if (!found) return NULL;
  found += strlen(wanted);
  snprintf(buffer, size, "%.*s", (int)strcspn(found, "\n"), found);
  return buffer;
}

static const char *of_gpu(int gpu, const char *key, char *buffer, size_t size) {
  char numbered[160];
  snprintf(numbered, sizeof numbered, "%d.%s", gpu, key);
  const char *found = value(numbered, buffer, size);
  return found ? found : value(key, buffer, size);
}

static const char *fault(const char *kind, const char *function, int gpu, char *buffer, size_t size) {
  char key[160];
  snprintf(key, sizeof key, "%s.%s.%d", kind, function, gpu);
  const char *found = value(key, buffer, size);
  snprintf(key, sizeof key, "%s.%s", kind, function);
  return found ? found : value(key, buffer, size);
}

/* What goes before every call: injected faults, then whether the library was initialised. */
static int before(const char *function, int gpu, int needs_init) {
  char buffer[160];
  if (fault("hang", function, gpu, buffer, sizeof buffer)) for (;;) pause();
  const char *crash = fault("crash", function, gpu, buffer, sizeof buffer);
  if (crash && !strcmp(crash, "segv")) raise(SIGSEGV);
  if (crash) abort();
  const char *code = fault("fail", function, gpu, buffer, sizeof buffer);
  if (code) return atoi(code);
  return needs_init && !initialised ? UNINITIALIZED : SUCCESS;
}

static int count(void) {
  char buffer[160];
  const char *found = value("gpus", buffer, sizeof buffer);
  return found ? atoi(found) : 0;
}

/* A handle is the GPU's number plus one; a MIG device adds 1000 for each slot. */
static int index_of(void *handle) { return ((int)(size_t)handle - 1) % 1000; }
static int slot_of(void *handle) { return ((int)(size_t)handle - 1) / 1000 - 1; }

static int put_text(int gpu, const char *key, char *out, unsigned size) {
  char buffer[160];
  const char *found = gpu < 0 ? value(key, buffer, sizeof buffer) : of_gpu(gpu, key, buffer, sizeof buffer);
  if (!found) return NOT_SUPPORTED;
  if (strlen(found) + 1 > size) return INSUFFICIENT_SIZE;
  strcpy(out, found);
  return SUCCESS;
}

static int put_numbers(int gpu, const char *key, unsigned *first, unsigned *second) {
  char buffer[160];
  const char *found = of_gpu(gpu, key, buffer, sizeof buffer);
  if (!found) return NOT_SUPPORTED;
  char *rest;
  *first = (unsigned)strtoul(found, &rest, 0);
  if (second) *second = *rest ? (unsigned)strtoul(rest + 1, NULL, 0) : *first;
  return SUCCESS;
}

#define BEFORE(function, gpu, needs_init) { int code = before(function, gpu, needs_init); if (code) return code; }
#define TEXT(function, key) \
  int function(void *handle, char *out, unsigned size) { \
    BEFORE(#function, index_of(handle), 1) return put_text(index_of(handle), key, out, size); }
#define NUMBER(function, key) \
  int function(void *handle, unsigned *out) { \
    BEFORE(#function, index_of(handle), 1) return put_numbers(index_of(handle), key, out, NULL); }
#define NUMBER_OF(function, key) \
  int function(void *handle, int what, unsigned *out) { \
    (void)what; \
    BEFORE(#function, index_of(handle), 1) return put_numbers(index_of(handle), key, out, NULL); }
#define PAIR(function, key) \
  int function(void *handle, unsigned *first, unsigned *second) { \
    BEFORE(#function, index_of(handle), 1) return put_numbers(index_of(handle), key, first, second); }

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  BEFORE("nvmlInit", -1, 0)
  initialised = 1;
  return SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "an error"; }

int nvmlSystemGetNVMLVersion(char *out, unsigned size) { return put_text(-1, "library", out, size); }
int nvmlSystemGetDriverVersion(char *out, unsigned size) {
  BEFORE("nvmlSystemGetDriverVersion", -1, 1)
  return put_text(-1, "driver", out, size);
}
int nvmlSystemGetCudaDriverVersion_v2(int *out) {
  BEFORE("nvmlSystemGetCudaDriverVersion_v2", -1, 1)
  return put_numbers(-1, "cuda", (unsigned *)out, NULL);
}
int nvmlDeviceGetCount_v2(unsigned *out) {
  BEFORE("nvmlDeviceGetCount", -1, 1)
  *out = (unsigned)count();
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned gpu, void **out) {
  BEFORE("nvmlDeviceGetHandleByIndex", (int)gpu, 1)
  if ((int)gpu >= count()) return INVALID_ARGUMENT;
  *out = (void *)(size_t)(gpu + 1);
  return SUCCESS;
}

TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
NUMBER(nvmlDeviceGetPowerUsage, "power_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "limit_mw")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "gen")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "gen_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "width_max")
NUMBER(nvmlDeviceGetPcieReplayCounter, "replays")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "default_mw")
NUMBER(nvmlDeviceGetPerformanceState, "pstate")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retirement_pending")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetDisplayActive, "display")
PAIR(nvmlDeviceGetCudaComputeCapability, "sm")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "limits_mw")
PAIR(nvmlDeviceGetDriverModel_v2, "driver_model")
PAIR(nvmlDeviceGetMigMode, "mig")
PAIR(nvmlDeviceGetEccMode, "ecc")

int nvmlDeviceGetName(void *handle, char *out, unsigned size) {
  BEFORE("nvmlDeviceGetName", index_of(handle), 1)
  return put_text(index_of(handle), slot_of(handle) < 0 ? "name" : "mig_name", out, size);
}

/* Older and newer drivers differ in how they ask; pynvml takes the plain name. */
NUMBER_OF(nvmlDeviceGetTemperature, "temperature")
NUMBER_OF(nvmlDeviceGetTemperatureThreshold, "slowdown")
NUMBER_OF(nvmlDeviceGetClockInfo, "clock")
NUMBER_OF(nvmlDeviceGetMaxClockInfo, "clock_max")
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *rates) {
  BEFORE("nvmlDeviceGetUtilizationRates", index_of(handle), 1)
  return put_numbers(index_of(handle), "load", rates, rates + 1);
}
int nvmlDeviceGetTotalEccErrors(void *handle, int type, int counter, unsigned long long *out) {
  unsigned errors = 0;
  (void)counter;
  BEFORE("nvmlDeviceGetTotalEccErrors", index_of(handle), 1)
  int code = put_numbers(index_of(handle), type ? "ecc_errors" : "ecc_corrected", &errors, NULL);
  *out = errors;
  return code;
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *out) {
  BEFORE("nvmlDeviceGetPciInfo", index_of(handle), 1)
  memset(out, 0, sizeof *out);
  put_numbers(index_of(handle), "pci_id", &out->id, NULL);
  return put_text(index_of(handle), "bus_id", out->bus_id, sizeof out->bus_id);
}

struct memory { unsigned long long total, unused, used; };
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *out) {
  unsigned total, used;
  BEFORE("nvmlDeviceGetMemoryInfo", index_of(handle), 1)
  const char *key = slot_of(handle) < 0 ? "memory_mib" : "mig_memory_mib";
  int code = put_numbers(index_of(handle), key, &total, &used);
  if (code) return code;
  out->total = (unsigned long long)total << 20;
  out->used = (unsigned long long)used << 20;
  out->unused = out->total - out->used;
  return SUCCESS;
}
#ifndef OLD_DRIVER
struct memory_v2 { unsigned version; unsigned long long total, reserved, unused, used; };
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *out) {
  struct memory plain;
  int code = nvmlDeviceGetMemoryInfo(handle, &plain);
  if (code) return code;
  out->total = plain.total;
  out->used = plain.used;
  out->reserved = 0;
  out->unused = plain.unused;
  return SUCCESS;
}
#endif

struct bar1 { unsigned long long total, unused, used; };
int nvmlDeviceGetBAR1MemoryInfo(void *handle, struct bar1 *out) {
  unsigned total, used;
  BEFORE("nvmlDeviceGetBAR1MemoryInfo", index_of(handle), 1)
  int code = put_numbers(index_of(handle), "bar1_mib", &total, &used);
  if (code) return code;
  out->total = (unsigned long long)total << 20;
  out->used = (unsigned long long)used << 20;
  out->unused = out->total - out->used;
  return SUCCESS;
}

/* The mask of what holds the clocks back; the older name stays. */
static int reasons(const char *function, void *handle, unsigned long long *out) {
  unsigned mask = 0;
  BEFORE(function, index_of(handle), 1)
  int code = put_numbers(index_of(handle), "throttle", &mask, NULL);
  *out = mask;
  return code;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *out) {
  return reasons("nvmlDeviceGetCurrentClocksThrottleReasons", handle, out);
}
#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *out) {
  return reasons("nvmlDeviceGetCurrentClocksEventReasons", handle, out);
}
#endif

/* `remapped=corrected uncorrected pending failed`, one digit each. */
int nvmlDeviceGetRemappedRows(void *handle, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
  char buffer[160];
  BEFORE("nvmlDeviceGetRemappedRows", index_of(handle), 1)
  const char *found = of_gpu(index_of(handle), "remapped", buffer, sizeof buffer);
  if (!found || sscanf(found, "%u %u %u %u", corrected, uncorrected, pending, failed) != 4) return NOT_SUPPORTED;
  return SUCCESS;
}

struct fabric { unsigned char cluster[16]; int status; unsigned clique, state; };
int nvmlDeviceGetGpuFabricInfo(void *handle, struct fabric *out) {
  unsigned status = 0;
  BEFORE("nvmlDeviceGetGpuFabricInfo", index_of(handle), 1)
  memset(out, 0, sizeof *out);
  int code = put_numbers(index_of(handle), "fabric", &out->state, &status);
  out->status = out->state == status ? 0 : (int)status;
  return code;
}

/* --- processes --- */

struct process { unsigned pid; unsigned long long used; unsigned gi, ci; };
static int processes(const char *function, const char *key, void *handle, unsigned *size, struct process *out) {
  char buffer[512];
  unsigned found = 0;
  BEFORE(function, index_of(handle), 1)
  if (of_gpu(index_of(handle), key, buffer, sizeof buffer))
    for (char *item = strtok(buffer, ","); item; item = strtok(NULL, ","), found++)
      if (out && found < *size) {
        unsigned mib = 0;
        out[found].pid = 0;
        int fields = sscanf(item, "%u:%u", &out[found].pid, &mib);
        out[found].used = fields == 2 ? (unsigned long long)mib << 20 : ~0ULL;
        out[found].gi = out[found].ci = ~0u;
      }
  int fits = out ? found <= *size : !found;
  *size = found;
  return fits ? SUCCESS : INSUFFICIENT_SIZE;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *size, struct process *out) {
  return processes("nvmlDeviceGetComputeRunningProcesses", "procs", handle, size, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *size, struct process *out) {
  return processes("nvmlDeviceGetGraphicsRunningProcesses", "gprocs", handle, size, out);
}
#else
int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned *size, struct process *out) {
  return processes("nvmlDeviceGetComputeRunningProcesses", "procs", handle, size, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(void *handle, unsigned *size, struct process *out) {
  return processes("nvmlDeviceGetGraphicsRunningProcesses", "gprocs", handle, size, out);
}
#endif
/* `name.PID`, or nothing of that process. */
int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned size) {
  char key[32];
  BEFORE("nvmlSystemGetProcessName", -1, 1)
  snprintf(key, sizeof key, "name.%u", pid);
  int code = put_text(-1, key, out, size);
  return code == NOT_SUPPORTED ? NOT_FOUND : code;
}

/* --- between GPUs --- */

static int links(int gpu) {
  unsigned found = 0;
  put_numbers(gpu, "nvlinks", &found, NULL);
  return (int)found;
}
int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *out) {
  char key[32];
  BEFORE("nvmlDeviceGetNvLinkState", index_of(handle), 1)
  if (!links(index_of(handle))) return NOT_SUPPORTED;
  if ((int)link >= links(index_of(handle))) return INVALID_ARGUMENT;
  snprintf(key, sizeof key, "nvlink.%u", link);
  *out = 1;
  put_numbers(index_of(handle), key, out, NULL);
  return SUCCESS;
}
NUMBER_OF(nvmlDeviceGetNvLinkVersion, "nvlink_version")
int nvmlDeviceGetNvLinkErrorCounter(void *handle, unsigned link, int counter, unsigned long long *out) {
  unsigned errors = 0;
  BEFORE("nvmlDeviceGetNvLinkErrorCounter", index_of(handle), 1)
  if (!link && !counter) put_numbers(index_of(handle), "nvlink_errors", &errors, NULL);
  *out = errors;
  return SUCCESS;
}
static const char *far_end(void *handle, char *buffer, size_t size) {
  return of_gpu(index_of(handle), "nvlink_to", buffer, size);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void *handle, unsigned link, unsigned *out) {
  char buffer[32];
  (void)link;
  BEFORE("nvmlDeviceGetNvLinkRemoteDeviceType", index_of(handle), 1)
  const char *far = far_end(handle, buffer, sizeof buffer);
  if (!far) return NOT_SUPPORTED;
  *out = strcmp(far, "switch") ? 0 : 2;
  return SUCCESS;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned link, struct pci *out) {
  char buffer[32];
  (void)link;
  BEFORE("nvmlDeviceGetNvLinkRemotePciInfo", index_of(handle), 1)
  const char *far = far_end(handle, buffer, sizeof buffer);
  memset(out, 0, sizeof *out);
  return far ? put_text(atoi(far), "bus_id", out->bus_id, sizeof out->bus_id) : NOT_SUPPORTED;
}
static int between(const char *function, const char *key, void *one, void *other, unsigned *out) {
  char pair[64];
  BEFORE(function, index_of(one), 1)
  snprintf(pair, sizeof pair, "%s.%d.%d", key, index_of(one), index_of(other));
  return put_numbers(-1, pair, out, NULL) ? put_numbers(-1, key, out, NULL) : SUCCESS;
}
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, unsigned *out) {
  return between("nvmlDeviceGetTopologyCommonAncestor", "topo", one, other, out);
}
int nvmlDeviceGetP2PStatus(void *one, void *other, int capability, unsigned *out) {
  (void)capability;
  return between("nvmlDeviceGetP2PStatus", "p2p", one, other, out);
}

/* --- MIG --- */

NUMBER(nvmlDeviceGetMaxMigDeviceCount, "mig_slots")
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned slot, void **out) {
  unsigned devices = 0;
  BEFORE("nvmlDeviceGetMigDeviceHandleByIndex", index_of(handle), 1)
  put_numbers(index_of(handle), "mig_devices", &devices, NULL);
  if (slot >= devices) return NOT_FOUND;
  *out = (void *)((size_t)handle + 1000 * (slot + 1));
  return SUCCESS;
}
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *out) { *out = 7 + (unsigned)slot_of(device); return SUCCESS; }
int nvmlDeviceGetComputeInstanceId(void *device, unsigned *out) { (void)device; *out = 0; return SUCCESS; }
