/* Device memory.
 *
 * A device address lies in a range of its own that nobody may read or write: a host access faults as it would on a real
 * machine. The bytes themselves are kept in a second mapping at a fixed distance. Blocks are handed out at rising
 * addresses, so that a freed address is not valid again soon, and each is followed by a guard zone. */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#define GUARD 96
#define GUARD_BYTE 0xA5
#define GRANULE 512
#define ALIGN_UP(n, to) (((n) + (to) - 1) / (to) * (to))

typedef struct { uint64_t start, size, span, serial; } Block; /* start: offset in the arena */
typedef struct {
    char *addresses, *bytes;
    uint64_t arena, next, used, peak;
    Block *blocks; /* sorted by start */
    size_t count, room;
} Memory;

typedef struct Pinned { struct Pinned *next; char *start; uint64_t size; bool registered; } Pinned;

static Memory memories[MAX_DEVICES];
static Pinned *pinned;
static uint64_t next_serial = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t changes = 1; /* of the blocks: grows with each */

uint64_t memory_changes(void) { return __atomic_load_n(&changes, __ATOMIC_ACQUIRE); }

static void changed(void) { __atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE); } /* lock held */

static bool open_arena(int device)
{
    Memory *memory = &memories[device];
    if (memory->addresses) return true;
    uint64_t size = (uint64_t)1 << 38; /* 256 GiB of addresses cost nothing until they are used */
    while (size < 2 * settings.memory_bytes) size *= 2;
    for (; size >= settings.memory_bytes + GRANULE; size /= 2) {
        void *wanted = (void *)(uintptr_t)(0x120000000000u + (uint64_t)device * 0x8000000000u);
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#if defined(__SANITIZE_THREAD__) || !defined(MAP_FIXED_NOREPLACE)
        wanted = NULL;
        void *addresses = mmap(wanted, size, PROT_NONE, flags, -1, 0);
#else
        void *addresses = size <= 0x8000000000u ? mmap(wanted, size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0) : MAP_FAILED;
        if (addresses == MAP_FAILED) addresses = mmap(NULL, size, PROT_NONE, flags, -1, 0);
#endif
        if (addresses == MAP_FAILED) continue;
        void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (bytes == MAP_FAILED) { munmap(addresses, size); continue; }
        memory->addresses = addresses;
        memory->bytes = bytes;
        memory->arena = size;
        return true;
    }
    return false;
}

static size_t first_after(const Memory *memory, uint64_t start) /* index of the first block that begins after start */
{
    size_t low = 0, high = memory->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memory->blocks[middle].start <= start) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool find_gap(Memory *memory, uint64_t span, uint64_t *start)
{
    if (memory->next + span <= memory->arena) { *start = memory->next; return true; }
    uint64_t at = 0;
    for (size_t k = 0; k <= memory->count; k++) {
        uint64_t end = k < memory->count ? memory->blocks[k].start : memory->arena;
        if (end - at >= span) { *start = at; return true; }
        if (k < memory->count) at = memory->blocks[k].start + memory->blocks[k].span;
    }
    return false;
}

static uint64_t guarded_from(const Block *block) { return ALIGN_UP(block->size, 32) + 32; }

static bool guard_whole(const Memory *memory, const Block *block)
{
    const unsigned char *bytes = (const unsigned char *)memory->bytes + block->start;
    for (uint64_t k = guarded_from(block); k < guarded_from(block) + GUARD; k++)
        if (bytes[k] != GUARD_BYTE) return false;
    return true;
}

static void allow_guard(const Memory *memory, const Block *block, bool allow)
{
    char *guard = memory->bytes + block->start + guarded_from(block);
    if (allow) ASAN_UNPOISON_MEMORY_REGION(guard, GUARD);
    else ASAN_POISON_MEMORY_REGION(guard, GUARD);
}

static int allocate(void **pointer, size_t size, int policy)
{
    if (!pointer || size == 0) return fail(E_PARAM, "aclrtMalloc: the pointer must not be NULL and the size must not be 0");
    if (policy < 0 || policy > 7) return fail(E_PARAM, "aclrtMalloc: policy %d is unknown", policy);
    Context *context;
    CHECK(need_context(&context));
    uint64_t start_time = realtime_ns();
    if (fault_hits(FAULT_MALLOC)) return fail(E_MEMORY, "aclrtMalloc: out of memory (injected fault), %zu bytes asked", size);
    int device = context->device;
    Memory *memory = &memories[device];
    pthread_mutex_lock(&lock);
    int code = OK;
    uint64_t span = ALIGN_UP(ALIGN_UP((uint64_t)size, 32) + 32 + GUARD, GRANULE), start = 0, account = ALIGN_UP((uint64_t)size, 32) + 32;
    if (size > settings.memory_bytes || memory->used + account > settings.memory_bytes)
        code = fail(E_MEMORY, "aclrtMalloc: out of memory on device %d: %zu bytes asked, %llu of %llu in use", device, size,
                    (unsigned long long)memory->used, (unsigned long long)settings.memory_bytes);
    else if (!open_arena(device) || !find_gap(memory, span, &start))
        code = fail(E_MEMORY, "aclrtMalloc: the simulator found no address range of %zu bytes for device %d", size, device);
    if (code == OK) {
        if (memory->count == memory->room) {
            memory->room = memory->room ? memory->room * 2 : 64;
            memory->blocks = realloc(memory->blocks, memory->room * sizeof *memory->blocks);
            if (!memory->blocks) die("the host is out of memory");
        }
        size_t at = first_after(memory, start);
        memmove(memory->blocks + at + 1, memory->blocks + at, (memory->count - at) * sizeof *memory->blocks);
        Block *block = &memory->blocks[at];
        *block = (Block){.start = start, .size = size, .span = span, .serial = next_serial++};
        memory->count++;
        changed();
        if (start + span > memory->next) memory->next = start + span;
        memory->used += account;
        if (memory->used > memory->peak) memory->peak = memory->used;
        ASAN_UNPOISON_MEMORY_REGION(memory->bytes + start, span);
        if (settings.poison) memset(memory->bytes + start, 0xCB, guarded_from(block));
        memset(memory->bytes + start + guarded_from(block), GUARD_BYTE, GUARD);
        allow_guard(memory, block, false);
        *pointer = memory->addresses + start;
    }
    pthread_mutex_unlock(&lock);
    if (code == OK) mspti_memory(false, start_time, *pointer, size, device);
    return code;
}

EXPORT int aclrtMalloc(void **pointer, size_t size, int32_t policy) { return allocate(pointer, size, policy); }
EXPORT int aclrtMallocAlign32(void **pointer, size_t size, int32_t policy) { return allocate(pointer, size, policy); }

static Block *block_of(const void *pointer, Memory **owner) /* the live block that holds this address; lock held */
{
    for (int device = 0; device < MAX_DEVICES; device++) {
        Memory *memory = &memories[device];
        const char *address = pointer;
        if (!memory->addresses || address < memory->addresses || address >= memory->addresses + memory->arena) continue;
        uint64_t offset = (uint64_t)(address - memory->addresses);
        size_t at = first_after(memory, offset);
        if (owner) *owner = memory;
        if (at == 0 || offset >= memory->blocks[at - 1].start + memory->blocks[at - 1].span) return NULL;
        return &memory->blocks[at - 1];
    }
    if (owner) *owner = NULL;
    return NULL;
}

static void give_back(Memory *memory, Block *block) /* lock held */
{
    char *bytes = memory->bytes + block->start;
    ASAN_UNPOISON_MEMORY_REGION(bytes, block->span);
    uintptr_t first = ALIGN_UP((uintptr_t)bytes, 4096), last = ((uintptr_t)bytes + block->span) / 4096 * 4096;
    if (first < last) madvise((void *)first, last - first, MADV_DONTNEED);
    ASAN_POISON_MEMORY_REGION(bytes, block->span);
    memory->used -= guarded_from(block);
}

EXPORT int aclrtFree(void *pointer)
{
    if (!pointer) return fail(E_PARAM, "aclrtFree: the pointer is NULL");
    if (forked_child()) return fail(E_DEVICE_LOST, "the NPU was initialised before fork; a child must be started with spawn");
    uint64_t start_time = realtime_ns();
    pthread_mutex_lock(&lock);
    Memory *memory;
    Block *block = block_of(pointer, &memory);
    int code = OK;
    uint64_t size = 0;
    if (!memory) code = fail(E_RT_PARAM, "aclrtFree: %p is not a device address", pointer);
    else if (!block) code = fail(E_RT_PARAM, "aclrtFree: device address %p is not allocated (freed before?)", pointer);
    else if (memory->addresses + block->start != (char *)pointer)
        code = fail(E_RT_PARAM, "aclrtFree: %p is inside a block, not its start", pointer);
    else {
        size = block->size;
        allow_guard(memory, block, true);
        if (!guard_whole(memory, block))
            code = fail(E_DEVICE_LOST, "aclrtFree: something wrote behind the end of the block at %p (%llu bytes)", pointer,
                        (unsigned long long)block->size);
        give_back(memory, block);
        size_t at = (size_t)(block - memory->blocks);
        memmove(block, block + 1, (memory->count - at - 1) * sizeof *block);
        memory->count--;
        changed();
    }
    pthread_mutex_unlock(&lock);
    if (code == OK) mspti_memory(true, start_time, pointer, size, (int)(memory - memories));
    return code;
}

void memory_release_device(int device)
{
    pthread_mutex_lock(&lock);
    Memory *memory = &memories[device];
    for (size_t k = 0; k < memory->count; k++) give_back(memory, &memory->blocks[k]);
    free(memory->blocks);
    memory->blocks = NULL;
    memory->count = memory->room = 0;
    changed();
    pthread_mutex_unlock(&lock);
}

void memory_reset_after_configuration(void) /* the arena may have to be larger now */
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < MAX_DEVICES; device++) {
        Memory *memory = &memories[device];
        if (!memory->addresses || memory->count) continue;
        ASAN_UNPOISON_MEMORY_REGION(memory->bytes, memory->next);
        munmap(memory->addresses, memory->arena);
        munmap(memory->bytes, memory->arena);
        free(memory->blocks);
        *memory = (Memory){0};
    }
    changed();
    pthread_mutex_unlock(&lock);
}

int memory_check_guards(int device)
{
    pthread_mutex_lock(&lock);
    Memory *memory = &memories[device];
    int code = OK;
    for (size_t k = 0; k < memory->count && code == OK; k++) {
        allow_guard(memory, &memory->blocks[k], true);
        if (!guard_whole(memory, &memory->blocks[k]))
            code = fail(E_DEVICE_LOST, "something wrote behind the end of the block at %p (%llu bytes)",
                        (void *)(memory->addresses + memory->blocks[k].start), (unsigned long long)memory->blocks[k].size);
        allow_guard(memory, &memory->blocks[k], false);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

bool is_device_address(const void *pointer, int *device)
{
    pthread_mutex_lock(&lock);
    Memory *memory;
    block_of(pointer, &memory);
    pthread_mutex_unlock(&lock);
    if (memory && device) *device = (int)(memory - memories);
    return memory != NULL;
}

bool device_range(const void *pointer, uint64_t size, BlockInfo *info)
{
    /* The block that this thread asked for last, as long as no block has come or gone: most tensors lie in one or two. */
    static __thread struct { uint64_t changes; const char *start; BlockInfo block; } last;
    uint64_t now = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
    const char *address = pointer;
    if (last.changes != now || address < last.start || address >= last.start + last.block.size) {
        pthread_mutex_lock(&lock);
        Memory *memory;
        Block *block = block_of(pointer, &memory);
        last.changes = 0;
        *info = (BlockInfo){.device = memory ? (int)(memory - memories) : -1};
        if (block) {
            last.changes = __atomic_load_n(&changes, __ATOMIC_RELAXED);
            last.start = memory->addresses + block->start;
            last.block = (BlockInfo){block->serial, block->size, info->device, memory->bytes + block->start};
        }
        pthread_mutex_unlock(&lock);
        if (!block) return false;
    }
    uint64_t offset = (uint64_t)(address - last.start);
    *info = last.block;
    info->bytes += offset;
    return offset <= info->size && size <= info->size - offset;
}

char *device_bytes(const void *pointer)
{
    pthread_mutex_lock(&lock);
    Memory *memory;
    block_of(pointer, &memory);
    char *bytes = memory ? memory->bytes + ((const char *)pointer - memory->addresses) : NULL;
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* ---- pinned host memory ---- */
EXPORT int aclrtMallocHost(void **pointer, size_t size)
{
    if (!pointer || size == 0) return fail(E_PARAM, "aclrtMallocHost: the pointer must not be NULL and the size must not be 0");
    Context *context;
    CHECK(need_context(&context));
    if (fault_hits(FAULT_MALLOC)) return fail(E_MEMORY, "aclrtMallocHost: out of memory (injected fault), %zu bytes asked", size);
    if (posix_memalign(pointer, 64, ALIGN_UP(size, 64))) return fail(E_BAD_ALLOC, "aclrtMallocHost: no %zu bytes on the host", size);
    Pinned *entry = malloc(sizeof *entry);
    if (!entry) { free(*pointer); return fail(E_BAD_ALLOC, "aclrtMallocHost: the host is out of memory"); }
    pthread_mutex_lock(&lock);
    *entry = (Pinned){.next = pinned, .start = *pointer, .size = size};
    pinned = entry;
    pthread_mutex_unlock(&lock);
    return OK;
}

static bool unpin(void *pointer, bool registered)
{
    pthread_mutex_lock(&lock);
    Pinned **link = &pinned;
    while (*link && ((*link)->start != pointer || (*link)->registered != registered)) link = &(*link)->next;
    Pinned *entry = *link;
    if (entry) *link = entry->next;
    pthread_mutex_unlock(&lock);
    free(entry);
    return entry != NULL;
}

EXPORT int aclrtFreeHost(void *pointer)
{
    if (!pointer) return fail(E_PARAM, "aclrtFreeHost: the pointer is NULL");
    if (!unpin(pointer, false)) return fail(E_RT_PARAM, "aclrtFreeHost: %p did not come from aclrtMallocHost", pointer);
    free(pointer);
    return OK;
}

EXPORT int aclrtHostRegister(void *pointer, uint64_t size, int32_t type, void **device_pointer)
{
    Context *context;
    CHECK(need_context(&context));
    if (!pointer || size == 0 || type != 0 || !device_pointer) return fail(E_PARAM, "aclrtHostRegister: bad argument");
    if (is_device_address(pointer, NULL)) return fail(E_RT_PARAM, "aclrtHostRegister: %p is a device address", pointer);
    Pinned *entry = malloc(sizeof *entry);
    if (!entry) return fail(E_BAD_ALLOC, "aclrtHostRegister: the host is out of memory");
    pthread_mutex_lock(&lock);
    *entry = (Pinned){.next = pinned, .start = pointer, .size = size, .registered = true};
    pinned = entry;
    pthread_mutex_unlock(&lock);
    *device_pointer = NULL; /* kernels of the simulator do not read host memory */
    return OK;
}

EXPORT int aclrtHostUnregister(void *pointer)
{
    if (!pointer) return fail(E_PARAM, "aclrtHostUnregister: the pointer is NULL");
    return unpin(pointer, true) ? OK : fail(E_RT_PARAM, "aclrtHostUnregister: %p is not registered", pointer);
}

bool is_pinned(const void *pointer, uint64_t size)
{
    const char *address = pointer;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (Pinned *entry = pinned; entry && !found; entry = entry->next)
        found = address >= entry->start && address + size <= entry->start + entry->size;
    pthread_mutex_unlock(&lock);
    return found;
}

EXPORT int aclrtGetMemInfo(int32_t attribute, size_t *free_bytes, size_t *total_bytes)
{
    if (!free_bytes || !total_bytes || attribute < 0 || attribute > 11) return fail(E_PARAM, "aclrtGetMemInfo: bad argument");
    Context *context;
    CHECK(need_context(&context));
    if (attribute == 0 || attribute == 2 || attribute == 3 || attribute == 6 || attribute == 7) { /* DDR: a training card has none */
        *free_bytes = *total_bytes = 0;
        return OK;
    }
    pthread_mutex_lock(&lock);
    *total_bytes = settings.memory_bytes;
    *free_bytes = settings.memory_bytes - memories[context->device].used;
    pthread_mutex_unlock(&lock);
    return OK;
}

/* Blocks that live on a device, and their bytes with padding; for leak tests. */
EXPORT uint64_t mtsimLiveBlocks(int device, uint64_t *bytes)
{
    if (device < 0 || device >= MAX_DEVICES) return 0;
    pthread_mutex_lock(&lock);
    uint64_t count = memories[device].count;
    if (bytes) *bytes = memories[device].used;
    pthread_mutex_unlock(&lock);
    return count;
}

EXPORT int mtsimCheckGuards(int device)
{
    if (device < 0 || device >= MAX_DEVICES) return fail(E_DEVICE_ID, "mtsimCheckGuards: no device %d", device);
    return memory_check_guards(device);
}

/* Writes a byte where nothing checks it, as a faulty kernel would; for tests of the guard zones. */
EXPORT __attribute__((no_sanitize_address)) int mtsimPoke(void *address, uint8_t value)
{
    char *bytes = device_bytes(address);
    if (!bytes) return fail(E_RT_PARAM, "mtsimPoke: %p is not a device address", address);
    *(volatile uint8_t *)bytes = value;
    return OK;
}
