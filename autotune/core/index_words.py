"""How kernels read their place in the grid: patterns by axis, for the portable dialect, CUDA and OpenCL."""


def _patterns(cuda: str, portable: str, opencl: str) -> dict[str, str]:
    return {
        axis: rf"(?:{cuda}\.{axis}\b|{portable}\(\s*{axis}\s*\)|{opencl}\(\s*{number}\s*\))"
        for number, axis in enumerate("xyz")
    }


BLOCK_INDEX = _patterns("blockIdx", "BLOCK_INDEX", "get_group_id")
THREAD_INDEX = _patterns("threadIdx", "THREAD_INDEX", "get_local_id")
BLOCK_EXTENT = _patterns("blockDim", "BLOCK_EXTENT", "get_local_size")
GLOBAL_INDEX = {axis: rf"get_global_id\(\s*{number}\s*\)" for number, axis in enumerate("xyz")}
