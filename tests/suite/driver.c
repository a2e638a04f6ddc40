// A driver for CUDA that finds one GPU, whose memory is that of the host and whose kernels do nothing.
// -DcuX=missing takes the function cuX out of it; -DWRONG: the first kernel has an access out of bounds, and with -DAGAIN=64
// each 64th; -DEVENTS=1: the first event cannot be placed; -DBUSY=600: streams have work under way; -DTELLS: each call that
// puts work into a stream is told; -DCAPTURED=1: streams are being captured; -DWAITS=999: no wait for a stream ends well;
// -DBLOCKS=0: no multiprocessor has room for a thread block; -DWORDS=5: the first words that kernels take are told.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 13000
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef STARTS
#define STARTS 0
#endif

#ifndef BUSY
#define BUSY 0
#endif
#ifndef EVENTS
#define EVENTS 0
#endif
#ifndef CAPTURED
#define CAPTURED 0
#endif
#ifndef WAITS
#define WAITS 0
#endif
#ifndef BLOCKS
#define BLOCKS 8
#endif
#ifdef TELLS
#define TELL dprintf(1, "call: %s\n", __func__);
#else
#define TELL
#endif
#ifndef WORDS
#define WORDS 0
#endif
#ifndef AGAIN
#define AGAIN (1 << 30)
#endif
#ifdef WRONG
#define FAILS 1
#else
#define FAILS 0
#endif

typedef int Code;
typedef uint64_t Address;

static char machine_code[] = "machine code";

// The records of the first stream: 64 of 8 words, one of which is the address of two more: that of the records of the host, and
// the turn.
enum { RECORDS = 64 * 64 + 16 };
static uint64_t *records;
static int launches, events;

// What a lane does that finds an error: the second word of a record is the turn, here and on the host.
static void fail(void) {
    uint64_t *turn = (uint64_t *)records[6], *host = (uint64_t *)(turn[0] + records[7]);
    records[1] = host[1] = turn[1];
}

Code cuInit(unsigned flags) { return STARTS; }
Code cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
Code cuGetErrorString(Code code, const char **text) { *text = "the stub says no"; return 0; }
Code cuDeviceGetCount(int *count) { *count = DEVICES; return 0; }
Code cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
Code cuDeviceGetName(char *name, int room, int device) { strncpy(name, "stub", room); return 0; }
Code cuDeviceGetAttribute(int *value, int attribute, int device) {
    // Compute capability 9.0; the number of multiprocessors.
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : 1024;
    return 0;
}
Code cuDevicePrimaryCtxRetain(void **context, int device) { *context = &machine_code; return 0; }
Code cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
static _Thread_local void *current;
Code cuCtxSetCurrent(void *context) { current = context; return 0; }
Code cuCtxGetCurrent(void **context) { *context = current; return 0; }
Code cuCtxSynchronize(void) { return 0; }

Code cuMemAlloc_v2(Address *address, size_t bytes) { *address = (Address)aligned_alloc(256, (bytes + 255) / 256 * 256); if (bytes == RECORDS && !records) records = (uint64_t *)*address; return 0; }
Code cuPointerGetAttribute(void *value, int attribute, Address address) { *(int *)value = 0; return 0; }
Code cuMemFree_v2(Address address) { free((void *)address); return 0; }
Code cuMemHostAlloc(void **address, size_t bytes, unsigned flags) { *address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); return 0; }
Code cuMemHostGetDevicePointer_v2(Address *device, void *address, unsigned flags) { *device = (Address)address; return 0; }
Code cuMemFreeHost(void *address) { free(address); return 0; }
Code cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) { memcpy((void *)to, from, bytes); return 0; }
Code cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) { TELL memcpy((void *)to, from, bytes); return 0; }
Code cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream) { TELL memcpy(to, (void *)from, bytes); return 0; }
Code cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *stream) { TELL memmove((void *)to, (void *)from, bytes); return 0; }
Code cuMemsetD8_v2(Address to, unsigned char byte, size_t count) { memset((void *)to, byte, count); return 0; }
Code cuMemsetD8Async(Address to, unsigned char byte, size_t count, void *stream) { TELL memset((void *)to, byte, count); return 0; }
Code cuMemsetD16Async(Address to, unsigned short number, size_t count, void *stream) { TELL while (count--) ((unsigned short *)to)[count] = number; return 0; }
Code cuMemsetD32Async(Address to, unsigned number, size_t count, void *stream) { TELL while (count--) ((unsigned *)to)[count] = number; return 0; }

Code cuMemPoolCreate(void **pool, const void *properties) { *pool = &machine_code; return 0; }
Code cuMemPoolDestroy(void *pool) { return 0; }
Code cuMemPoolSetAttribute(void *pool, int attribute, void *value) { return 0; }
Code cuMemPoolTrimTo(void *pool, size_t bytes) { return 0; }
Code cuMemAllocFromPoolAsync(Address *address, size_t bytes, void *pool, void *stream) { TELL *address = (Address)aligned_alloc(256, (bytes + 255) / 256 * 256); return 0; }
Code cuMemFreeAsync(Address address, void *stream) { TELL free((void *)address); return 0; }

Code cuStreamCreate(void **stream, unsigned flags) { *stream = &machine_code; return 0; }
Code cuStreamDestroy_v2(void *stream) { return 0; }
Code cuStreamSynchronize(void *stream) { return WAITS; }
Code cuStreamQuery(void *stream) { return BUSY; }
Code cuStreamIsCapturing(void *stream, int *status) { *status = CAPTURED; return 0; }
Code cuStreamGetCtx(void *stream, void **context) { *context = &machine_code; return 0; }
Code cuStreamWaitEvent(void *stream, void *event, unsigned flags) { TELL return 0; }
Code cuEventCreate(void **event, unsigned flags) { *event = &machine_code; return 0; }
Code cuEventDestroy_v2(void *event) { return 0; }
Code cuEventRecord(void *event, void *stream) { TELL return events++ < EVENTS ? 999 : 0; }
Code cuEventQuery(void *event) { return 0; }
Code cuEventSynchronize(void *event) { return 0; }
Code cuEventElapsedTime_v2(float *milliseconds, void *begin, void *end) { *milliseconds = 1; return 0; }

Code cuLinkCreate_v2(unsigned options, int *names, void **values, void **state) { *state = &machine_code; return 0; }
Code cuLinkAddData_v2(void *state, int type, void *data, size_t bytes, const char *name, unsigned options, int *names, void **values) { return 0; }
Code cuLinkComplete(void *state, void **code, size_t *bytes) { *code = machine_code; *bytes = sizeof machine_code; return 0; }
Code cuLinkDestroy(void *state) { return 0; }
Code cuModuleLoadDataEx(void **module, const void *image, unsigned options, int *names, void **values) { *module = &machine_code; return 0; }
Code cuModuleUnload(void *module) { return 0; }
Code cuModuleGetFunction(void **function, void *module, const char *name) { *function = &machine_code; return 0; }
Code cuFuncGetAttribute(int *value, int attribute, void *function) { *value = 32; return 0; }
Code cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
Code cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int threads, size_t shared) { *count = BLOCKS; return 0; }
Code cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *memory, const uint64_t *extents, const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill) { memset(map, 0, 128); return 0; }
static void tell(void **parameters) {
  for (int i = 0; i < WORDS; i++) dprintf(1, "%llx ", (unsigned long long)*(uint64_t *)parameters[i]);
  if (WORDS) dprintf(1, "\n");
}
Code cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned programs, unsigned one, unsigned shared, void *stream, void **parameters, void **extra) { TELL tell(parameters); if (FAILS && launches++ % AGAIN == 0) fail(); return 0; }
Code cuLaunchKernelEx(const void *launch, void *function, void **parameters, void **extra) { TELL return 0; }

Code cuGraphCreate(void **graph, unsigned flags) { *graph = &machine_code; return 0; }
Code cuGraphAddKernelNode_v2(void **node, void *graph, void **before, size_t count, const void *parameters) { *node = &machine_code; return 0; }
Code cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) { *executable = &machine_code; return 0; }
Code cuGraphExecUpdate_v2(void *executable, void *graph, void *why) { return 0; }
Code cuGraphLaunch(void *executable, void *stream) { TELL return 0; }
Code cuGraphDestroy(void *graph) { return 0; }
Code cuGraphExecDestroy(void *executable) { return 0; }
