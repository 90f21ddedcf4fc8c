/* Threads that share the work of one kernel. The caller takes part; the others wait, first awake and then asleep. */
#ifndef MINDTORCH_POOL_H
#define MINDTORCH_POOL_H

#include <stddef.h>

/* Share number `share` of the work, items `begin` to `end`. */
typedef void (*Share)(void *work, ptrdiff_t begin, ptrdiff_t end, int share);

/* How many threads a kernel may use. */
int pool_threads(void);
void pool_set_threads(int count);

/* Cut `count` items into equal contiguous shares, as many as there are threads but none smaller than `least` items. The
   cut depends on these counts alone, so results do not change from run to run, whoever does which share. A kernel that
   is called while another one has the threads, or from one of them, does all of its shares itself, one by one. */
void pool_run(Share share, void *work, ptrdiff_t count, ptrdiff_t least);

/* How many shares `pool_run` makes. */
int pool_shares(ptrdiff_t count, ptrdiff_t least);

#endif
