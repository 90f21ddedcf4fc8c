/* Which handles live: a set of addresses with their kinds, so that a stale or foreign pointer is told from a good one. */
#include "sim.h"

#include <sched.h>
#include <stdlib.h>

/* Every call of an operator looks up a dozen handles, for a few instructions each: a mutex would be most of its cost.
 * Those who only look take no lock at all. They look again if the table has changed meanwhile, which its version tells:
 * it is odd during a change. Tables that have become too small are kept, since somebody may be looking at them. */
static bool taken;
static uint64_t version;

static void lock(void)
{
    while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_clear(&taken, __ATOMIC_RELEASE); }

typedef struct { const void *pointer; HandleKind kind; } Slot;
typedef struct Table { struct Table *before; size_t capacity; Slot slots[]; } Table;
static Table *table;
static size_t used;
static uint64_t counts[H_KINDS], removals;

static void change_begins(void) { __atomic_store_n(&version, version + 1, __ATOMIC_SEQ_CST); } /* lock held */
static void change_ends(void) { __atomic_store_n(&version, version + 1, __ATOMIC_RELEASE); }

static const void *pointer_at(const Slot *slot) { return __atomic_load_n(&slot->pointer, __ATOMIC_RELAXED); }

static void put(Slot *slot, const void *pointer, HandleKind kind)
{
    __atomic_store_n(&slot->kind, kind, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->pointer, pointer, __ATOMIC_RELEASE);
}

static size_t home(const Table *in, const void *pointer)
{
    uint64_t bits = (uint64_t)(uintptr_t)pointer * 0x9E3779B97F4A7C15u;
    return (size_t)(bits >> 20) & (in->capacity - 1);
}

static size_t find(const Table *in, const void *pointer) /* its slot, or the empty one where it would go */
{
    size_t at = home(in, pointer);
    for (size_t tried = 0; tried < in->capacity; tried++) { /* a table that changes under the eyes may have no empty slot */
        const void *there = pointer_at(&in->slots[at]);
        if (!there || there == pointer) break;
        at = (at + 1) & (in->capacity - 1);
    }
    return at;
}

static void grow(void)
{
    size_t capacity = table ? table->capacity * 2 : 1024;
    Table *larger = calloc(1, sizeof *larger + capacity * sizeof(Slot));
    if (!larger) die("the host is out of memory");
    larger->before = table;
    larger->capacity = capacity;
    for (size_t k = 0; table && k < table->capacity; k++)
        if (table->slots[k].pointer) larger->slots[find(larger, table->slots[k].pointer)] = table->slots[k];
    __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
}

void handle_add(const void *pointer, HandleKind kind)
{
    lock();
    if (!table || used * 2 >= table->capacity) grow();
    put(&table->slots[find(table, pointer)], pointer, kind); /* who looks at this moment sees it or not */
    used++;
    counts[kind]++;
    unlock();
}

bool handle_live(const void *pointer, HandleKind kind)
{
    if (!pointer) return false;
    for (int tries = 0; tries < 100; tries++) {
        uint64_t before = __atomic_load_n(&version, __ATOMIC_ACQUIRE);
        const Table *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
        if (!now) return false;
        const Slot *slot = &now->slots[find(now, pointer)];
        bool live = __atomic_load_n(&slot->pointer, __ATOMIC_ACQUIRE) == pointer && __atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) == kind;
        if (!(before & 1) && __atomic_load_n(&version, __ATOMIC_RELAXED) == before) return live;
    }
    lock();
    const Slot *slot = table ? &table->slots[find(table, pointer)] : NULL;
    bool live = slot && slot->pointer == pointer && slot->kind == kind;
    unlock();
    return live;
}

uint64_t handle_removals(void) { return __atomic_load_n(&removals, __ATOMIC_ACQUIRE); }

static bool take_out(const void *pointer, HandleKind kind) /* lock held */
{
    if (!table || !pointer) return false;
    Slot *slots = table->slots;
    size_t hole = find(table, pointer), mask = table->capacity - 1;
    if (!slots[hole].pointer || slots[hole].kind != kind) return false;
    used--;
    counts[kind]--;
    if (kind != H_EXECUTOR) __atomic_store_n(&removals, removals + 1, __ATOMIC_RELEASE);
    change_begins();
    /* close the gap: move up every entry whose home lies at or before the hole */
    for (size_t next = (hole + 1) & mask; slots[next].pointer; next = (next + 1) & mask) {
        size_t wanted = home(table, slots[next].pointer);
        if (((next - wanted) & mask) >= ((next - hole) & mask)) {
            put(&slots[hole], slots[next].pointer, slots[next].kind);
            hole = next;
        }
    }
    put(&slots[hole], NULL, H_NONE);
    change_ends();
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
