/* Which handles live: a set of addresses with their kinds, so that a stale or foreign pointer is told from a good one. */
#include "sim.h"

#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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
    pthread_mutex_lock(&lock);
    if (used * 2 >= capacity) grow();
    size_t at = find(pointer);
    slots[at].pointer = pointer;
    slots[at].kind = kind;
    used++;
    counts[kind]++;
    pthread_mutex_unlock(&lock);
}

bool handle_live(const void *pointer, HandleKind kind)
{
    if (!pointer) return false;
    pthread_mutex_lock(&lock);
    bool live = false;
    if (capacity) {
        size_t at = find(pointer);
        live = slots[at].pointer && slots[at].kind == kind;
    }
    pthread_mutex_unlock(&lock);
    return live;
}

bool handle_remove(const void *pointer, HandleKind kind)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    size_t at = capacity && pointer ? find(pointer) : 0;
    if (capacity && pointer && slots[at].pointer && slots[at].kind == kind) {
        found = true;
        used--;
        counts[kind]--;
        size_t hole = at; /* close the gap: move up every entry whose home lies at or before the hole */
        for (size_t next = (hole + 1) & (capacity - 1); slots[next].pointer; next = (next + 1) & (capacity - 1)) {
            size_t wanted = home(slots[next].pointer);
            if (((next - wanted) & (capacity - 1)) >= ((next - hole) & (capacity - 1))) {
                slots[hole] = slots[next];
                hole = next;
            }
        }
        slots[hole].pointer = NULL;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* The last freed objects stay allocated, so that malloc does not hand out their addresses at once. */
void quarantine(void *pointer)
{
    static void *ring[256];
    static size_t at;
    pthread_mutex_lock(&lock);
    void *oldest = ring[at];
    ring[at] = pointer;
    at = (at + 1) % (sizeof ring / sizeof *ring);
    pthread_mutex_unlock(&lock);
    free(oldest);
}

/* How many handles of a kind live: 1 contexts, 2 streams, 3 events, 4 tensors, 5 scalars, 6 to 10 lists, 11 executors. */
EXPORT uint64_t mtsimLiveHandles(int kind)
{
    if (kind <= H_NONE || kind >= H_KINDS) return 0;
    pthread_mutex_lock(&lock);
    uint64_t count = counts[kind];
    pthread_mutex_unlock(&lock);
    return count;
}
