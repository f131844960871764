// CLBlast's y += alpha x, from the source tree that CLBLAST_ROOT names: nothing of it is copied here.
#define ROUTINE_XaxpyFastest
#define GEMMK 0
#include "prefix.h"
#include "kernels/level1/level1.opencl"
#include "kernels/level1/xaxpy.opencl"
