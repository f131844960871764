namespace filter {
__constant__ unsigned int mask[32];
__constant__ float scale;
__device__ unsigned int bit(int k) { return mask[k & 31]; }
}
__global__ void masked(unsigned int *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = (x[i] & filter::bit(i)) * filter::scale;
}
