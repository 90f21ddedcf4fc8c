/* The compiler's default instructions: on x86-64 those of every such processor, on ARM NEON. */
#define LEVEL kernels_plain
#define LEVEL_NAME "plain"
#define LANES 4
#if defined(__aarch64__)
#define TALL 8
#else
#define TALL 4
#endif
#include "level.h"
