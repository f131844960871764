__global__ void bodies(real4 *position, real3 *force, real softening, int nbodies)
{
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i >= nbodies) return;
    real4 me = position[i];
    force[i].x = me.x * me.w + softening;
}
