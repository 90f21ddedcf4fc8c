#define _GNU_SOURCE
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ __volatile__("yield")
#else
#define RELAX() ((void)0)
#endif

enum { MOST = 256 };

/* How long a thread looks for the next task before it sleeps: kernels of one model follow each other closely. */
static const int64_t AWAKE_NS = 60000;

/* What is to be done is one number: the task's number and, in the lowest bits, how many shares it has. A
   thread begins a share by writing the task's number into `begun`, where an older one stands; whoever succeeds knows
   that `share`, `work` and `count` are of this task and stay until it has finished. Each thread tries the share of its
   own number first: what a share reads and writes is then mostly in its processor's cache from the kernel before.
   Shares that nobody else begins in time the caller does itself: it never waits for a thread that the system does not
   run. */
enum { TASK_AT = 16, SHARES = 0xffff };

static struct {
    pthread_mutex_t owner;  /* held by the kernel that has the threads */
    pthread_mutex_t lock;   /* of the condition */
    pthread_cond_t wake;
    atomic_int sleeping;
    int started;            /* threads that exist besides the callers */
    atomic_int wanted;      /* threads that a kernel may use */
    _Atomic uint64_t state;
    atomic_int unfinished;  /* shares */
    Share share;
    void *work;
    ptrdiff_t count;
    _Atomic uint64_t begun[MOST];
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static __thread int inside;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void do_share(Share share, void *work, ptrdiff_t count, int shares, int which) {
    ptrdiff_t each = count / shares, more = count % shares;
    ptrdiff_t begin = each * which + (which < more ? which : more);
    share(work, begin, begin + each + (which < more), which);
}

/* Do a share that nobody has begun, the one of this number if possible; 0 if there is none. */
static int take_part(int number) {
    uint64_t state = atomic_load_explicit(&pool.state, memory_order_acquire);
    uint64_t task = state >> TASK_AT;
    int shares = (int)(state & SHARES);
    for (int i = 0; i < shares; i++) {
        int which = (number + i) % shares;
        uint64_t before = atomic_load_explicit(&pool.begun[which], memory_order_relaxed);
        if (before >= task ||
            !atomic_compare_exchange_strong_explicit(&pool.begun[which], &before, task, memory_order_acq_rel,
                                                     memory_order_relaxed))
            continue;
        do_share(pool.share, pool.work, pool.count, shares, which);
        atomic_fetch_sub_explicit(&pool.unfinished, 1, memory_order_acq_rel);
        return 1;
    }
    return 0;
}

/* Wait for a task other than this one: awake for a while, then asleep. */
static void wait_for_task(uint64_t seen) {
    int64_t until = now_ns() + AWAKE_NS;
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&pool.state, memory_order_acquire) != seen) return;
            RELAX();
        }
    } while (now_ns() < until);
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.sleeping, 1);
    while (atomic_load(&pool.state) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
    atomic_fetch_sub(&pool.sleeping, 1);
    pthread_mutex_unlock(&pool.lock);
}

static void *live(void *number) {
    inside = 1;
    for (;;) {
        uint64_t state = atomic_load_explicit(&pool.state, memory_order_acquire);
        if (!take_part((int)(intptr_t)number)) wait_for_task(state);
    }
    return NULL;
}

/* A child process has none of its parent's threads, whatever they held. */
static void forget(void) {
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pool.started = 0;
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.unfinished, 0);
    inside = 0;
}

static void at_fork(void) { pthread_atfork(NULL, NULL, forget); }

/* Have `count` threads besides the caller, if the system gives them. Signals are for the program's own threads. */
static void have_threads(int count) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, at_fork);
    if (pool.started >= count) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    while (pool.started < count && !pthread_create(&thread, &detached, live, (void *)(intptr_t)(pool.started + 1)))
        pool.started++;
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int pool_threads(void) {
    int wanted = atomic_load_explicit(&pool.wanted, memory_order_relaxed);
    if (!wanted) {
#ifdef __linux__
        cpu_set_t set;
        wanted = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
#else
        wanted = (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
        pool_set_threads(wanted);
        wanted = atomic_load(&pool.wanted);
    }
    return wanted;
}

void pool_set_threads(int count) { atomic_store(&pool.wanted, count < 1 ? 1 : count > MOST ? MOST : count); }

int pool_shares(ptrdiff_t count, ptrdiff_t least) {
    ptrdiff_t shares = pool_threads();
    if (least > 1 && count / least < shares) shares = count / least;
    if (shares > count) shares = count;
    return shares < 1 ? 1 : (int)shares;
}

void pool_run(Share share, void *work, ptrdiff_t count, ptrdiff_t least) {
    int shares = pool_shares(count, least);
    if (shares == 1) {
        share(work, 0, count, 0);
        return;
    }
    if (inside || pthread_mutex_trylock(&pool.owner)) {
        for (int i = 0; i < shares; i++) do_share(share, work, count, shares, i);
        return;
    }
    inside = 1;
    have_threads(shares - 1);
    pool.share = share, pool.work = work, pool.count = count;
    atomic_store_explicit(&pool.unfinished, shares, memory_order_relaxed);
    uint64_t task = (atomic_load_explicit(&pool.state, memory_order_relaxed) >> TASK_AT) + 1;
    /* A thread that goes to sleep counts itself and looks once more; this is written first and asks them then. */
    atomic_store(&pool.state, task << TASK_AT | (uint64_t)shares);
    if (atomic_load(&pool.sleeping)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.wake);
        pthread_mutex_unlock(&pool.lock);
    }
    while (take_part(0)) continue;
    for (int spins = 0; atomic_load_explicit(&pool.unfinished, memory_order_acquire); spins++) {
        if (spins < 4096) RELAX();
        else sched_yield(); /* somebody else has the processor that one of the threads needs */
    }
    inside = 0;
    pthread_mutex_unlock(&pool.owner);
}
