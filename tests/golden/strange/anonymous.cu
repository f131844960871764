namespace {
__global__ void hidden(double *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = sqrt(fabs(x[i])); }
}
