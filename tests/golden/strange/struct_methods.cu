struct Vec {
    float x, y;
    __device__ Vec operator+(const Vec &other) const { return {x + other.x, y + other.y}; }
    __device__ float norm() const { return sqrtf(x * x + y * y); }
};

__global__ void lengths(const Vec *a, const Vec *b, float *out, dim3 size) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < size.x && y < size.y) out[y * size.x + x] = (a[y * size.x + x] + b[y * size.x + x]).norm();
}
