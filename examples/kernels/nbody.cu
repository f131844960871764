// Gravity among n bodies, all pairs: the acceleration of every body. A body is a float4: position and mass.

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif
#ifndef BODIES_PER_THREAD
#define BODIES_PER_THREAD 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef USE_SHARED
#define USE_SHARED 1
#endif

__device__ void attract(float3 &sum, const float4 self, const float4 other, const float softening)
{
    const float dx = other.x - self.x, dy = other.y - self.y, dz = other.z - self.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
    const float strength = other.w * inverse * inverse * inverse;
    sum.x += dx * strength;
    sum.y += dy * strength;
    sum.z += dz * strength;
}

__global__ void __launch_bounds__(BLOCK_SIZE)
nbody(const float4 *__restrict__ bodies, float4 *__restrict__ accelerations, const int n, const float softening)
{
    const int first = blockIdx.x * BLOCK_SIZE * BODIES_PER_THREAD + threadIdx.x;
    float4 self[BODIES_PER_THREAD];
    float3 sum[BODIES_PER_THREAD];
    for (int k = 0; k < BODIES_PER_THREAD; k++) {
        self[k] = bodies[min(first + k * BLOCK_SIZE, n - 1)];
        sum[k] = make_float3(0.0f, 0.0f, 0.0f);
    }

#if USE_SHARED
    __shared__ float4 tile[BLOCK_SIZE];
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        const int mine = start + threadIdx.x;
        tile[threadIdx.x] = mine < n ? bodies[mine] : make_float4(0.0f, 0.0f, 0.0f, 0.0f); // no mass, no pull
        __syncthreads();
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK_SIZE; j++)
            for (int k = 0; k < BODIES_PER_THREAD; k++)
                attract(sum[k], self[k], tile[j], softening);
        __syncthreads();
    }
#else
#pragma unroll UNROLL
    for (int j = 0; j < n; j++)
        for (int k = 0; k < BODIES_PER_THREAD; k++)
            attract(sum[k], self[k], bodies[j], softening);
#endif

    for (int k = 0; k < BODIES_PER_THREAD; k++) {
        const int i = first + k * BLOCK_SIZE;
        if (i < n)
            accelerations[i] = make_float4(sum[k].x, sum[k].y, sum[k].z, 0.0f);
    }
}
