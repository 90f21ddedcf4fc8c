/* Vectors of 512 bits with fused multiplication and addition. */
#include "kernels.h"

#ifdef WITH_LEVELS
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,f16c")
#endif
#define LEVEL kernels_avx512
#define LEVEL_NAME "avx512"
#define LANES 16
#define TALL 12
#include "level.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
