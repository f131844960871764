extern __shared__ float room[];
template <typename T>
__device__ T *shared_room() { extern __shared__ __align__(16) unsigned char bytes[]; return (T *)bytes; }
__global__ void reverse(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    room[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) x[i] = room[blockDim.x - 1 - threadIdx.x];
}
