/* Activity collection as libmspti.so offers it, and the user ranges of libms_tools_ext.so.
 *
 * It behaves as the published source does, oddities included: buffers are asked for under a lock, handed over from a fresh
 * thread when they are 80 % full, the iterator's position belongs to the thread, the stacks of external ids to the process,
 * and kernel times come on the host's realtime clock from a pair of readings that is renewed every seven seconds. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 1, SECOND_SUBSCRIBER = 2, END_OF_BUFFER = 3, QUEUE_EMPTY = 5, NOT_PRELOADED = 6, INNER = 999 };
enum { MARKER = 1, KERNEL = 2, API = 3, HCCL = 4, MEMORY = 5, MEMSET = 6, MEMCPY = 7, EXTERNAL = 8, COMMUNICATION = 9, ACL_API = 10, NODE_API = 11, RUNTIME_API = 12, KINDS = 13 };
enum { MARK_INSTANT = 1, MARK_START = 2, MARK_END = 4, DEVICE_SHIFT = 3 };

#define RECORD __attribute__((packed, aligned(8)))
typedef struct RECORD { uint32_t kind; uint64_t start, end; uint32_t device, stream; uint64_t correlation; const char *type, *name; } KernelRecord;
typedef struct RECORD { uint32_t kind; uint64_t start, end; uint32_t process, thread; uint64_t correlation; const char *name; } ApiRecord;
typedef struct RECORD { uint32_t kind, flag, source; uint64_t timestamp, id; uint32_t object[2]; const char *name, *domain; } MarkerRecord;
typedef struct RECORD { uint32_t kind, what; uint64_t bytes, start, end; uint32_t device, stream; uint64_t correlation; uint8_t is_async; } TransferRecord;
typedef struct RECORD { uint32_t kind, operation, memory; uint64_t correlation, start, end, address, bytes; uint32_t process, device, stream; } MemoryRecord;
typedef struct RECORD { uint32_t kind, external_kind; uint64_t external_id, correlation; } ExternalRecord;
_Static_assert(sizeof(KernelRecord) == 56 && sizeof(ApiRecord) == 48 && sizeof(MarkerRecord) == 56 && sizeof(TransferRecord) == 56
                   && sizeof(MemoryRecord) == 64 && sizeof(ExternalRecord) == 24, "records have the sizes of msPTI's");
static const size_t SIZES[KINDS] = {0, 56, 56, 48, 56, 64, 56, 56, 24, 72, 48, 48, 48};

typedef void (*Request)(uint8_t **buffer, size_t *size, size_t *most);
typedef void (*Complete)(uint8_t *buffer, size_t size, size_t valid);
typedef struct { uint8_t *bytes; size_t size, used; Complete done; } Buffer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static bool subscribed, enabled[KINDS];
static Request request;
static Complete complete;
static Buffer current;
static int delivering; /* threads that are handing a buffer over */
static uint64_t dropped;
static struct { uint64_t *ids; size_t count, room; } stacks[5];
static struct { uint64_t realtime, ticks, taken; } pairs[MAX_DEVICES];
static __thread uint64_t latest_correlation;
static uint64_t next_marker;
static unsigned period_round;

static bool on(int kind) { return __atomic_load_n(&enabled[kind], __ATOMIC_RELAXED); }

/* ---- buffers ---- */
static void *deliver(void *argument)
{
    Buffer *buffer = argument;
    buffer->done(buffer->bytes, buffer->size, buffer->used);
    free(buffer);
    pthread_mutex_lock(&lock);
    delivering--;
    pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void hand_over(void) /* lock held; from a thread of its own */
{
    Buffer *full = malloc(sizeof *full);
    if (!full) die("the host is out of memory");
    *full = current;
    full->done = complete;
    current = (Buffer){0};
    pthread_t thread;
    delivering++;
    if (pthread_create(&thread, NULL, deliver, full)) die("no thread to hand an activity buffer over");
    pthread_detach(thread);
}

static void write_record(const void *record, size_t size)
{
    pthread_mutex_lock(&lock);
    if (request) {
        if (current.bytes && current.used + size > current.size) hand_over();
        if (!current.bytes) {
            size_t most = 0;
            current = (Buffer){0};
            request(&current.bytes, &current.size, &most);
        }
        if (current.bytes && current.used + size <= current.size) {
            memcpy(current.bytes + current.used, record, size);
            current.used += size;
            if (current.used * 5 >= current.size * 4) hand_over();
        } else {
            dropped++;
            if (current.bytes) hand_over(); /* too small for a single record: the client gets it back, empty */
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- clocks ---- */
static uint64_t realtime_of(int device, uint64_t ticks)
{
    pthread_mutex_lock(&lock);
    uint64_t now = realtime_ns();
    if (!pairs[device].taken || now - pairs[device].taken > 7000000000u) {
        uint64_t before = realtime_ns(), read = ticks_now(device), after = realtime_ns();
        pairs[device].realtime = before / 2 + after / 2;
        pairs[device].ticks = read;
        pairs[device].taken = now;
    }
    uint64_t realtime = pairs[device].realtime + (uint64_t)((int64_t)(ticks - pairs[device].ticks) * TICK_NS);
    pthread_mutex_unlock(&lock);
    return realtime;
}

static uint32_t thread_id(void)
{
    static __thread uint32_t id;
    if (!id) id = (uint32_t)syscall(SYS_gettid);
    return id;
}

/* ---- what the rest of the simulator reports ---- */
bool mspti_times_calls(void) { return on(API) || on(ACL_API); }

void mspti_launch(uint64_t correlation)
{
    latest_correlation = correlation;
    if (!on(EXTERNAL)) return;
    for (uint32_t kind = 1; kind < 5; kind++) {
        pthread_mutex_lock(&lock);
        bool any = stacks[kind].count > 0;
        uint64_t id = any ? stacks[kind].ids[stacks[kind].count - 1] : 0;
        pthread_mutex_unlock(&lock);
        if (any) write_record(&(ExternalRecord){EXTERNAL, kind, id, correlation}, sizeof(ExternalRecord));
    }
}

void mspti_kernel(const mtsimActivity *a)
{
    if (!on(KERNEL)) return;
    uint64_t start = realtime_of((int)a->device, a->start_ticks);
    KernelRecord record = {KERNEL, start, start + (a->end_ticks - a->start_ticks) * TICK_NS, a->device, (uint32_t)a->stream, a->correlation, a->type, a->name};
    write_record(&record, sizeof record);
}

void mspti_api(const char *op, uint64_t start)
{
    static const int CALLS[] = {API, ACL_API};
    for (int k = 0; k < 2; k++) {
        if (!on(CALLS[k])) continue;
        char name[96];
        snprintf(name, sizeof name, "aclnn%s", op);
        ApiRecord record = {(uint32_t)CALLS[k], start, realtime_ns(), (uint32_t)getpid(), thread_id(), latest_correlation, intern(name)};
        write_record(&record, sizeof record);
    }
}

void mspti_copy(int copy_kind, uint64_t bytes, uint64_t start, int device, int stream, bool is_async)
{
    if (!on(MEMCPY)) return;
    latest_correlation = activity_next_correlation();
    TransferRecord record = {MEMCPY, (uint32_t)copy_kind, bytes, start, realtime_ns(), (uint32_t)device, (uint32_t)stream, latest_correlation, is_async};
    write_record(&record, sizeof record);
}

void mspti_set(int value, uint64_t bytes, uint64_t start, int device, int stream, bool is_async)
{
    if (!on(MEMSET)) return;
    latest_correlation = activity_next_correlation();
    TransferRecord record = {MEMSET, (uint32_t)value, bytes, start, realtime_ns(), (uint32_t)device, (uint32_t)stream, latest_correlation, is_async};
    write_record(&record, sizeof record);
}

void mspti_memory(bool is_free, uint64_t start, const void *address, uint64_t bytes, int device)
{
    if (!on(MEMORY)) return;
    latest_correlation = activity_next_correlation();
    MemoryRecord record = {MEMORY, is_free, 1, latest_correlation, start, realtime_ns(), (uint64_t)(uintptr_t)address, bytes, (uint32_t)getpid(), (uint32_t)device, 0xFFFFFFFFu};
    write_record(&record, sizeof record);
}

void mspti_mark_done(const Task *task, const Stream *stream, uint64_t ticks)
{
    MarkerRecord record = {MARKER, (uint32_t)task->mark.flag << DEVICE_SHIFT, 1, realtime_of(stream->device, ticks), task->mark.id,
                           {(uint32_t)stream->device, (uint32_t)stream->id}, task->mark.name, task->mark.domain};
    write_record(&record, sizeof record);
}

/* ---- msPTI's functions ---- */
EXPORT int msptiSubscribe(void **subscriber, void *callback, void *userdata)
{
    (void)callback, (void)userdata; /* no domain of callbacks is simulated, see msptiEnableDomain */
    if (!subscriber) return INVALID;
    settings_load();
    pthread_mutex_lock(&lock);
    int code = subscribed ? SECOND_SUBSCRIBER : SUCCESS;
    if (code == SUCCESS) {
        subscribed = true;
        *subscriber = &subscribed;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int msptiUnsubscribe(void *subscriber)
{
    pthread_mutex_lock(&lock);
    int code = subscribed && subscriber == &subscribed ? SUCCESS : INVALID;
    if (code == SUCCESS) {
        subscribed = false;
        for (int kind = 0; kind < KINDS; kind++) __atomic_store_n(&enabled[kind], false, __ATOMIC_RELAXED);
        memset(pairs, 0, sizeof pairs);
        __atomic_add_fetch(&period_round, 1, __ATOMIC_ACQ_REL);
        while (delivering) pthread_cond_wait(&idle, &lock);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int msptiActivityRegisterCallbacks(Request ask, Complete done)
{
    if (!ask || !done) return INVALID;
    pthread_mutex_lock(&lock);
    request = ask;
    complete = done;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int set_enabled(int kind, bool value)
{
    if (kind <= 0 || kind >= KINDS) return INVALID;
    settings_load();
    if (value && (kind == MEMORY || kind == MEMSET || kind == MEMCPY) && !settings.preloaded) return NOT_PRELOADED;
    __atomic_store_n(&enabled[kind], value, __ATOMIC_RELAXED);
    return SUCCESS;
}

EXPORT int msptiActivityEnable(int32_t kind) { return set_enabled(kind, true); }
EXPORT int msptiActivityDisable(int32_t kind) { return set_enabled(kind, false); }
EXPORT bool msptiActivityIsEnabled(int32_t kind) { return kind > 0 && kind < KINDS && on(kind); }

EXPORT int msptiEnableDomain(uint32_t enable, void *subscriber, int32_t domain)
{
    settings_load();
    (void)enable;
    if (subscriber != &subscribed || (domain != 1 && domain != 2)) return INVALID;
    return settings.preloaded ? INNER : NOT_PRELOADED; /* callbacks at each runtime call are not simulated */
}

EXPORT int msptiEnableCallback(uint32_t enable, void *subscriber, int32_t domain, uint32_t id)
{
    (void)id;
    return msptiEnableDomain(enable, subscriber, domain);
}

static void flush(void)
{
    pthread_mutex_lock(&lock);
    Buffer ready = current;
    Complete done = complete;
    bool give = ready.bytes && (ready.used || !subscribed); /* after the end also an empty buffer goes back */
    if (give) current = (Buffer){0};
    pthread_mutex_unlock(&lock);
    if (give && done) done(ready.bytes, ready.size, ready.used); /* on the caller's thread */
}

EXPORT int msptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    flush();
    return SUCCESS;
}

typedef struct { unsigned round; uint32_t milliseconds; } Period;

static void *flush_again(void *argument)
{
    Period period = *(Period *)argument;
    free(argument);
    while (__atomic_load_n(&period_round, __ATOMIC_ACQUIRE) == period.round) {
        struct timespec pause = {period.milliseconds / 1000, (long)(period.milliseconds % 1000) * 1000000};
        nanosleep(&pause, NULL);
        if (__atomic_load_n(&period_round, __ATOMIC_ACQUIRE) == period.round) flush();
    }
    pthread_mutex_lock(&lock);
    delivering--;
    pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&lock);
    return NULL;
}

EXPORT int msptiActivityFlushPeriod(uint32_t milliseconds)
{
    unsigned round = __atomic_add_fetch(&period_round, 1, __ATOMIC_ACQ_REL);
    if (!milliseconds) return SUCCESS;
    Period *period = malloc(sizeof *period);
    pthread_t thread;
    if (!period) return INNER;
    *period = (Period){round, milliseconds};
    pthread_mutex_lock(&lock);
    delivering++;
    pthread_mutex_unlock(&lock);
    if (pthread_create(&thread, NULL, flush_again, period)) die("no thread to flush activities");
    pthread_detach(thread);
    return SUCCESS;
}

EXPORT int msptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    static __thread size_t position;
    if (!buffer || !record) return INVALID;
    if (position >= valid) {
        position = 0;
        return END_OF_BUFFER;
    }
    uint32_t kind;
    memcpy(&kind, buffer + position, sizeof kind);
    if (kind == 0 || kind >= KINDS) return INNER;
    *record = buffer + position;
    position += SIZES[kind];
    return SUCCESS;
}

EXPORT int msptiActivityPushExternalCorrelationId(int32_t kind, uint64_t id)
{
    if (kind < 1 || kind > 4) return INVALID;
    pthread_mutex_lock(&lock);
    if (stacks[kind].count == stacks[kind].room) {
        stacks[kind].room = stacks[kind].room ? stacks[kind].room * 2 : 64;
        stacks[kind].ids = realloc(stacks[kind].ids, stacks[kind].room * sizeof *stacks[kind].ids);
        if (!stacks[kind].ids) die("the host is out of memory");
    }
    stacks[kind].ids[stacks[kind].count++] = id;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

EXPORT int msptiActivityPopExternalCorrelationId(int32_t kind, uint64_t *last)
{
    if (kind < 1 || kind > 4 || !last) return INVALID;
    pthread_mutex_lock(&lock);
    int code = stacks[kind].count ? SUCCESS : QUEUE_EMPTY;
    if (code == SUCCESS) *last = stacks[kind].ids[--stacks[kind].count];
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int msptiActivityEnableMarkerDomain(const char *name) { return name ? SUCCESS : INVALID; }
EXPORT int msptiActivityDisableMarkerDomain(const char *name) { return name ? SUCCESS : INVALID; }
EXPORT uint64_t mtsimMsptiDropped(void) { return __atomic_load_n(&dropped, __ATOMIC_RELAXED); }

/* ---- user marks and ranges ---- */
static void mark(int flag, uint64_t id, const char *name, const char *domain, void *stream_handle)
{
    if (!on(MARKER)) return;
    MarkerRecord record = {MARKER, (uint32_t)flag, 0, realtime_ns(), id, {(uint32_t)getpid(), thread_id()}, intern(name), domain};
    write_record(&record, sizeof record);
    Stream *stream;
    if (!stream_handle || stream_of(stream_handle, &stream) != OK) return;
    Task *task = task_new(TASK_MARK);
    task->mark.id = id;
    task->mark.flag = flag;
    task->mark.name = intern(name);
    task->mark.domain = domain;
    stream_submit(stream, task);
}

typedef struct Range { struct Range *next; uint64_t id; const char *domain; void *stream; } Range;
static Range *ranges;

static uint64_t start_range(const char *domain, const char *name, void *stream)
{
    Range *range = malloc(sizeof *range);
    if (!range || !name) { free(range); return 0; }
    uint64_t id = __atomic_add_fetch(&next_marker, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    *range = (Range){ranges, id, domain, stream};
    ranges = range;
    pthread_mutex_unlock(&lock);
    mark(MARK_START, id, name, domain, stream);
    return id;
}

static void end_range(uint64_t id)
{
    pthread_mutex_lock(&lock);
    Range **link = &ranges;
    while (*link && (*link)->id != id) link = &(*link)->next;
    Range *range = *link;
    if (range) *link = range->next;
    pthread_mutex_unlock(&lock);
    if (range) mark(MARK_END, id, "", range->domain, range->stream); /* an end has no name; it is matched by its id */
    free(range);
}

EXPORT void mstxMarkA(const char *name, void *stream)
{
    if (name) mark(MARK_INSTANT, __atomic_add_fetch(&next_marker, 1, __ATOMIC_RELAXED), name, "default", stream);
}

EXPORT uint64_t mstxRangeStartA(const char *name, void *stream) { return start_range("default", name, stream); }
EXPORT void mstxRangeEnd(uint64_t id) { end_range(id); }
EXPORT const void *mstxDomainCreateA(const char *name) { return name ? intern(name) : NULL; }
EXPORT uint64_t mstxDomainRangeStartA(const void *domain, const char *name, void *stream) { return domain ? start_range(domain, name, stream) : 0; }
EXPORT void mstxDomainRangeEnd(const void *domain, uint64_t id) { if (domain) end_range(id); }
