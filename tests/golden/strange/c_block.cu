extern "C" {
__global__ void twice(int *x, int n) { int i = blockIdx.x * BLOCK_SIZE + threadIdx.x; if (i < n) x[i] *= 2; }
__global__ void thrice(int *x, int n) { int i = blockIdx.x * BLOCK_SIZE + threadIdx.x; if (i < n) x[i] *= 3; }
}
