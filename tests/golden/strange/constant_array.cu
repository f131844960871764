#define RADIUS 4
__constant__ float weights[2 * RADIUS + 1];
__global__ void stencil(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; ++k)
        if (i + k >= 0 && i + k < n) sum += weights[k + RADIUS] * in[i + k];
    if (i < n) out[i] = sum;
}
