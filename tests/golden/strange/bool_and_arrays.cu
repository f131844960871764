__global__ void pick(float out[], const float in[], const bool *keep, bool invert, int n = 16)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && keep[i] != invert) out[i] = in[i];
}
