/* Vectors of 256 bits with fused multiplication and addition. */
#include "kernels.h"

#ifdef WITH_LEVELS
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi2,f16c")
#endif
#define LEVEL kernels_avx2
#define LEVEL_NAME "avx2"
#define LANES 8
#define TALL 6
#include "level.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
