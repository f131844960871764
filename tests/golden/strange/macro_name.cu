#define PASTE(a, b) a##b
#define FULL(a, b) PASTE(a, b)
#define KERNEL_NAME(op) op##_kernel
__global__ void KERNEL_NAME(add)(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
