/* Which handles live: a set of addresses with their kinds, so that a stale or foreign pointer is told from a good one. */
#include "sim.h"

#include <sched.h>
#include <stdlib.h>

/* Every call of an operator looks up a dozen handles, for a few instructions each: a mutex would be most of its cost. */
static bool taken;

static void lock(void)
{
    while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_clear(&taken, __ATOMIC_RELEASE); }

static struct { const void *pointer; HandleKind kind; } *slots;
static size_t capacity, used;
static uint64_t counts[H_KINDS];

static size_t home(const void *pointer)
{
    uint64_t bits = (uint64_t)(uintptr_t)pointer * 0x9E3779B97F4A7C15u;
    return (size_t)(bits >> 20) & (capacity - 1);
}

static size_t find(const void *pointer) /* its slot, or the empty one where it would go */
{
    size_t at = home(pointer);
    while (slots[at].pointer && slots[at].pointer != pointer) at = (at + 1) & (capacity - 1);
    return at;
}

static void grow(void)
{
    size_t old_capacity = capacity;
    __typeof__(slots) old = slots;
    capacity = capacity ? capacity * 2 : 1024;
    slots = calloc(capacity, sizeof *slots);
    if (!slots) die("the host is out of memory");
    for (size_t k = 0; k < old_capacity; k++)
        if (old[k].pointer) slots[find(old[k].pointer)] = old[k];
    free(old);
}

void handle_add(const void *pointer, HandleKind kind)
{
    lock();
    if (used * 2 >= capacity) grow();
    size_t at = find(pointer);
    slots[at].pointer = pointer;
    slots[at].kind = kind;
    used++;
    counts[kind]++;
    unlock();
}

bool handle_live(const void *pointer, HandleKind kind)
{
    if (!pointer) return false;
    lock();
    bool live = false;
    if (capacity) {
        size_t at = find(pointer);
        live = slots[at].pointer && slots[at].kind == kind;
    }
    unlock();
    return live;
}

static bool take_out(const void *pointer, HandleKind kind) /* lock held */
{
    if (!capacity || !pointer) return false;
    size_t hole = find(pointer);
    if (!slots[hole].pointer || slots[hole].kind != kind) return false;
    used--;
    counts[kind]--;
    /* close the gap: move up every entry whose home lies at or before the hole */
    for (size_t next = (hole + 1) & (capacity - 1); slots[next].pointer; next = (next + 1) & (capacity - 1)) {
        size_t wanted = home(slots[next].pointer);
        if (((next - wanted) & (capacity - 1)) >= ((next - hole) & (capacity - 1))) {
            slots[hole] = slots[next];
            hole = next;
        }
    }
    slots[hole].pointer = NULL;
    return true;
}

bool handle_remove(const void *pointer, HandleKind kind)
{
    lock();
    bool found = take_out(pointer, kind);
    unlock();
    return found;
}

static void *instead_of(void *pointer) /* the object whose turn it is to be freed; lock held */
{
    static void *ring[256];
    static size_t at;
    void *oldest = ring[at];
    ring[at] = pointer;
    at = (at + 1) % (sizeof ring / sizeof *ring);
    return oldest;
}

/* The last freed objects stay allocated, so that malloc does not hand out their addresses at once. */
void quarantine(void *pointer)
{
    lock();
    void *oldest = instead_of(pointer);
    unlock();
    free(oldest);
}

bool handle_retire(const void *pointer, HandleKind kind)
{
    lock();
    bool found = take_out(pointer, kind);
    void *oldest = found ? instead_of((void *)pointer) : NULL;
    unlock();
    free(oldest);
    return found;
}

/* How many handles of a kind live: 1 contexts, 2 streams, 3 events, 4 tensors, 5 scalars, 6 to 10 lists, 11 executors. */
EXPORT uint64_t mtsimLiveHandles(int kind)
{
    if (kind <= H_NONE || kind >= H_KINDS) return 0;
    lock();
    uint64_t count = counts[kind];
    unlock();
    return count;
}
