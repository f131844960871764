__global__ void negate(float *__restrict__ x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= -1; }
__global__ void negate(const int *x, long long *y, unsigned int n) { if (threadIdx.x < n) y[threadIdx.x] = -x[threadIdx.x]; }
