struct Params { int n; float scale; };
__global__ void by_value(float *x, Params params) { if (threadIdx.x < params.n) x[threadIdx.x] *= params.scale; }
