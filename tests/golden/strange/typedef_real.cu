#ifdef USE_DOUBLE
typedef double real;
#else
typedef float real;
#endif
typedef real value_t;
__global__ void axpby(value_t *y, const value_t *x, real a, real b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + b * y[i];
}
