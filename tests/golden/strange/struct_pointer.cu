struct Particle { float x, y, z; float mass; };
__global__ void drift(Particle *p, float dt, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i].x += dt * p[i].mass;
}
