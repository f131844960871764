#define GPU_KERNEL extern "C" __global__ void
#define IDX (blockIdx.x * blockDim.x + threadIdx.x)
GPU_KERNEL relu(float *x, int n)
{
    if (IDX < n) x[IDX] = fmaxf(x[IDX], 0.0f);
}
