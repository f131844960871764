#if VERSION == 1
__global__ void versioned(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
#elif VERSION == 2
__global__ void versioned(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 2; }
#else
#error no such version
#endif
