// CLBlast's product of two matrices, from the source tree that CLBLAST_ROOT names: nothing of it is copied here.
#define ROUTINE_Xgemm
#include "prefix.h"
#include "kernels/level3/xgemm_part1.opencl"
#include "kernels/level3/xgemm_part2.opencl"
#include "kernels/level3/xgemm_part3.opencl"
#include "kernels/level3/xgemm_part4.opencl"
