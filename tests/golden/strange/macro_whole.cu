#define DEFINE_OP(name, type, op)                                  \
    __global__ void name##_##type(type *a, const type *b, int n)   \
    {                                                              \
        int i = blockIdx.x * blockDim.x + threadIdx.x;             \
        if (i < n) a[i] = a[i] op b[i];                            \
    }
DEFINE_OP(add, float, +)
DEFINE_OP(sub, int, -)
