// What CLBlast defines before it compiles a kernel, besides the parameters: see src/utilities/compile.cpp there.
#if DTYPE_FLOAT64
  #define PRECISION 64
#else
  #define PRECISION 32
#endif
#ifdef ON_NVIDIA_GPU
  #define USE_INLINE_KEYWORD 1
  #if PRECISION == 32
    #define USE_SUBGROUP_SHUFFLING 1
    #define SUBGROUP_SHUFFLING_NVIDIA_POST_VOLTA 1
  #endif
#endif
#ifdef ON_AMD_GPU
  #define USE_CL_MAD 1
  #define USE_STAGGERED_INDICES 1
#endif
#ifdef ON_INTEL_GPU
  #if PRECISION == 32
    #define USE_SUBGROUP_SHUFFLING 1
    #define SUBGROUP_SHUFFLING_INTEL 1
  #endif
#endif
#include "kernels/common.opencl"
