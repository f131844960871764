typedef struct __align__(8) { int key; double value; } Pair;
__global__ void keys(const Pair *pairs, int *out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = pairs[i].key;
}
