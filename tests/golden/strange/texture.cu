__global__ void sample(cudaTextureObject_t image, float *out, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] = tex1Dfetch<float>(image, threadIdx.x);
}
