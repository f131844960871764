/* The calls of the CUDA driver that launches need: it notes the first argument of every kernel that runs. */
#include <stdlib.h>

enum { MOST = 10000, PER_THREAD = 2, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, UNSUPPORTED = 801 };

typedef struct {
    unsigned long long values[16];
    int count;
} Graph;

unsigned long long ran[MOST];
int runs, graph_launches, graphs_made, graphs_alive, unloads, unloads_beside_graphs;
int is_refused, is_captured, launch_status, load_status, wait_status, allowed;
size_t context, own_context = 7;
static Graph *recording;
static size_t outer_context;

static void run(unsigned long long value) { ran[runs++ % MOST] = value; }

int cuGetErrorName(int status, const char **name) { *name = NULL; return 0; }
int cuDeviceGet(int *device, int number) { return INVALID_HANDLE; }
int cuDevicePrimaryCtxRetain(size_t *found, int device) { *found = own_context; return 0; }
int cuCtxSetCurrent(size_t entered) { context = entered; return 0; }
int cuEventCreate(void **event, unsigned flags) { *event = malloc(1); return 0; }
int cuEventDestroy_v2(void *event) { free(event); return 0; }
int cuEventRecord(void *event, void *stream) { return 0; }
int cuEventSynchronize(void *event) { return wait_status; }
int cuEventElapsedTime(float *time_ms, void *start, void *end) { *time_ms = 1; return 0; }
int cuStreamCreate(void **stream, unsigned flags) { *stream = malloc(1); return 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cuMemcpyDtoDAsync_v2(size_t to, size_t from, size_t size_bytes, void *stream) { return 0; }
int cuCtxGetCurrent(size_t *found) { *found = context; return 0; }
int cuCtxPushCurrent_v2(size_t pushed) { outer_context = context; context = pushed; return 0; }
int cuCtxPopCurrent_v2(size_t *popped) { *popped = context; context = outer_context; return 0; }
int cuMemAlloc_v2(size_t *address, size_t size_bytes) { *address = (size_t)malloc(size_bytes); return 0; }
int cuMemFree_v2(size_t address) { free((void *)address); return 0; }
int cuGraphUpload(void *graph, void *stream) { return 0; }
int cuFuncSetAttribute(void *function, int attribute, int value) { allowed = value; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = module;
    return *name == '?' ? NOT_FOUND : 0;
}

int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return 0;
}

int cuModuleLoadData(void **module, const void *code)
{
    if (load_status) return load_status;
    *module = malloc(1);
    return 0;
}

int cuModuleUnload(void *module)
{
    ++unloads;
    if (graphs_alive) ++unloads_beside_graphs;
    free(module);
    return 0;
}

int cuStreamIsCapturing(size_t stream, int *found)
{
    if (stream == PER_THREAD && !context) return INVALID_CONTEXT;
    *found = is_captured;
    return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    if (is_refused) return UNSUPPORTED;
    recording = calloc(1, sizeof *recording);
    return 0;
}

int cuStreamEndCapture(void *stream, Graph **graph)
{
    *graph = recording;
    recording = NULL;
    return 0;
}

int cuGraphInstantiateWithFlags(Graph **ready, const Graph *graph, unsigned long long flags)
{
    *ready = malloc(sizeof **ready);
    **ready = *graph;
    ++graphs_made;
    ++graphs_alive;
    return 0;
}

int cuGraphDestroy(Graph *graph) { free(graph); return 0; }
int cuGraphExecDestroy(Graph *ready) { free(ready); --graphs_alive; return 0; }

int cuGraphLaunch(const Graph *ready, void *stream)
{
    if (launch_status) return launch_status;
    ++graph_launches;
    for (int i = 0; i < ready->count; ++i) run(ready->values[i]);
    return 0;
}

struct config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
};

int cuLaunchKernelEx(const struct config *config, void *function, unsigned long long **arguments, void **extra)
{
    if (context != own_context) return INVALID_HANDLE;
    if (recording) recording->values[recording->count++] = *arguments[0];
    else run(*arguments[0]);
    return 0;
}
