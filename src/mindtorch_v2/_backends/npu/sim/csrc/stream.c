/* Streams and events. Each stream has a worker thread that runs its tasks in order.
 *
 * Time on the device is computed, not measured: a task starts when the one before it ended and its launch has arrived,
 * and lasts as long as the model says. The worker may be done earlier; then the end is hidden from queries and
 * synchronisation until the device's clock reaches it. It may be done later (the host is slower than the part it
 * plays); then the timeline still says when the device would have been done. */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENT_SYNC 0x1u
#define EVENT_TIME_LINE 0x8u

typedef struct Event {
    uint32_t flags;
    bool extended, synchronises;
    int device;
    uint32_t generation; /* of the device: a reset takes its events with it */
    EventRecord *record; /* the latest; NULL before the first */
} Event;

static Stream *streams;
static int next_stream_id = 2; /* CANN keeps the first ids for itself */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t record_done = PTHREAD_COND_INITIALIZER;

/* ---- records of events ---- */
void record_finish(EventRecord *record, uint64_t ticks, bool failed)
{
    pthread_mutex_lock(&record_lock);
    record->ticks = ticks;
    record->failed = failed;
    record->done = true;
    pthread_cond_broadcast(&record_done);
    pthread_mutex_unlock(&record_lock);
}

bool record_await(EventRecord *record, uint64_t *ticks, const bool *give_up)
{
    pthread_mutex_lock(&record_lock);
    while (!record->done && !__atomic_load_n(give_up, __ATOMIC_ACQUIRE)) pthread_cond_wait(&record_done, &record_lock);
    bool good = record->done && !record->failed;
    *ticks = record->ticks;
    pthread_mutex_unlock(&record_lock);
    return good;
}

void records_wake(void)
{
    pthread_mutex_lock(&record_lock);
    pthread_cond_broadcast(&record_done);
    pthread_mutex_unlock(&record_lock);
}

void record_release(EventRecord *record)
{
    if (record && __atomic_sub_fetch(&record->references, 1, __ATOMIC_ACQ_REL) == 0) free(record);
}

static EventRecord *record_share(EventRecord *record)
{
    __atomic_add_fetch(&record->references, 1, __ATOMIC_RELAXED);
    return record;
}

/* ---- the worker ---- */
static int run_copy(const Task *task)
{
    BlockInfo block;
    const char *from = task->copy.from;
    char *to = task->copy.to;
    if (task->copy.from_serial) {
        if (!device_range(from, task->copy.size, &block) || block.serial != task->copy.from_serial)
            return fail(E_AICORE, "a queued copy reads device memory at %p that was freed meanwhile", task->copy.from);
        from = block.bytes;
    }
    if (task->copy.to_serial) {
        if (!device_range(to, task->copy.size, &block) || block.serial != task->copy.to_serial)
            return fail(E_AICORE, "a queued copy writes device memory at %p that was freed meanwhile", task->copy.to);
        to = block.bytes;
    }
    memmove(to, from, task->copy.size);
    return OK;
}

static const char *const COPY_NAMES[] = {"MemcpyHtoH", "MemcpyHtoD", "MemcpyDtoH", "MemcpyDtoD", "MemcpyPtoP"};

static double copy_us(const Task *task)
{
    const Model *model = &settings.model;
    double rate = task->copy.kind == 3 ? model->hbm_gbs / 2 : task->copy.kind == 4 ? model->peer_gbs
        : task->copy.pageable ? model->pageable_gbs : model->pcie_gbs;
    return model->copy_us * (task->copy.kind == 3 ? 0.25 : 1.0) + (rate > 0 ? (double)task->copy.size / (rate * 1e3) : 0);
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static int run_task(Stream *stream, Task *task, uint64_t *ended) /* ended: when the task before it did, then this one */
{
    const Model *model = &settings.model;
    uint64_t start = later(*ended, task->submit_ticks + ticks_of_us(model->start_us)), length = 0;
    mtsimActivity activity = {.device = (uint32_t)stream->device, .stream = stream->id, .copy_kind = -1,
                              .correlation = task->correlation, .submit_ticks = task->submit_ticks};
    int code = OK;
    if (!device_lost(stream->device) && task->kind != TASK_WAIT && fault_hits(FAULT_LOST)) device_lose(stream->device);
    bool lost = device_lost(stream->device);
    if (lost) code = fail(E_DEVICE_LOST, "device %d is lost", stream->device);
    switch (task->kind) {
    case TASK_KERNEL: {
        aclOpExecutor *executor = task->kernel.executor;
        if (!lost && fault_hits(FAULT_KERNEL))
            code = fail(E_AICORE, "aclnn%s: AI core exception (injected fault)", executor->call.op->name);
        else if (!lost) code = executor_run(executor);
        length = executor_ticks(executor);
        activity.kind = ACTIVITY_KERNEL;
        activity.name = executor->call.op->kernel_name;
        activity.type = executor->call.op->kernel_type;
        activity.bytes = executor->call.bytes;
        activity.operations = executor->call.operations;
        break;
    }
    case TASK_COPY:
        if (!lost) code = run_copy(task);
        length = ticks_of_us(copy_us(task));
        activity.kind = ACTIVITY_COPY;
        activity.copy_kind = task->copy.kind == 4 ? 3 : task->copy.kind;
        activity.name = COPY_NAMES[task->copy.kind];
        activity.type = "MEMCPY_ASYNC";
        activity.bytes = task->copy.size;
        break;
    case TASK_SET: {
        BlockInfo block;
        if (!lost && (!device_range(task->set.to, task->set.size, &block) || block.serial != task->set.to_serial))
            code = fail(E_AICORE, "a queued memset writes device memory at %p that was freed meanwhile", task->set.to);
        else if (!lost) memset(block.bytes, task->set.value, task->set.size);
        length = ticks_of_us(model->kernel_us + (model->hbm_gbs > 0 ? (double)task->set.size / (model->hbm_gbs * 1e3) : 0));
        activity.kind = ACTIVITY_SET;
        activity.name = "MemsetD";
        activity.type = "MEMSET_ASYNC";
        activity.bytes = task->set.size;
        break;
    }
    case TASK_RECORD:
    case TASK_MARK:
        length = ticks_of_us(model->event_us);
        activity.kind = ACTIVITY_EVENT;
        activity.name = "EventRecord";
        activity.type = "EVENT_RECORD";
        break;
    case TASK_RESET:
        break;
    case TASK_WAIT: {
        uint64_t ticks = 0;
        if (record_await(task->event.record, &ticks, &stream->abandoned))
            start = later(start, ticks_on(stream->device, task->event.record->device, ticks));
        activity.kind = ACTIVITY_WAIT;
        activity.name = "EventWait";
        activity.type = "EVENT_WAIT";
        break;
    }
    }
    bool is_work = task->kind == TASK_KERNEL || task->kind == TASK_COPY || task->kind == TASK_SET;
    if (is_work && length == 0) length = 1; /* nothing takes no time at all */
    uint64_t end = start + length;
    activity.start_ticks = start;
    activity.end_ticks = end;
    *ended = end;
    if (task->kind == TASK_RECORD) record_finish(task->event.record, end, lost);
    if (task->kind == TASK_MARK) mspti_mark_done(task, stream, end);
    if (activity.kind && task->kind != TASK_MARK) {
        if (code != OK) activity.kind = ACTIVITY_FAILED;
        activity_record(&activity);
    }
    return code;
}

static void task_free(Task *task)
{
    if (task->kind == TASK_KERNEL) { /* a part of its executor */
        if (!task->kernel.keep) executor_free(task->kernel.executor);
        return;
    }
    if (task->kind == TASK_RECORD || task->kind == TASK_WAIT) record_release(task->event.record);
    free(task);
}

/* Between tasks the worker naps: it looks again by itself soon, so that a launch need not wake it, which would cost the
 * launching thread more than the launch. Whoever waits for results wakes it. After a while without work it sleeps. */
static void await_work(Stream *stream) /* lock held */
{
    enum { NAP_NS = 100000, NAPS = 20 };
    for (int nap = 0; !stream->first && !stream->stopping; nap++) {
        if (nap < NAPS && !stream->waiters) {
            uint64_t until = host_ns() + NAP_NS;
            struct timespec at = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
            pthread_cond_timedwait(&stream->work, &stream->lock, &at);
        } else {
            stream->sleeping = true;
            pthread_cond_wait(&stream->work, &stream->lock);
            stream->sleeping = false;
        }
    }
}

static void wake_workers(void) /* somebody waits for an event */
{
    pthread_mutex_lock(&list_lock);
    for (Stream *stream = streams; stream; stream = stream->next) pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&list_lock);
}

static void note_error(Stream *stream, int code)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->error == OK) {
        stream->error = code;
        snprintf(stream->error_text, sizeof stream->error_text, "%s", error_text());
    }
    pthread_mutex_unlock(&stream->lock);
}

void *stream_worker(void *argument)
{
    Stream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        await_work(stream);
        Task *task = stream->first; /* everything: nothing asks about a part of the queued work */
        if (!task) break;
        stream->first = stream->last = NULL;
        uint64_t ended = stream->end_ticks, done = 0;
        pthread_mutex_unlock(&stream->lock);
        for (Task *next; task; task = next, done++) {
            next = task->next;
            error_clear();
            int code = OK;
            if (!__atomic_load_n(&stream->abandoned, __ATOMIC_ACQUIRE)) code = run_task(stream, task, &ended);
            else if (task->kind == TASK_RECORD) record_finish(task->event.record, 0, true);
            task_free(task);
            if (code != OK) note_error(stream, code);
        }
        pthread_mutex_lock(&stream->lock);
        stream->end_ticks = ended;
        stream->completed += done;
        if (stream->waiters) pthread_cond_broadcast(&stream->done);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* ---- streams ---- */
Stream *stream_create(Context *context, uint32_t flags)
{
    Stream *stream = calloc(1, sizeof *stream);
    if (!stream) die("the host is out of memory");
    stream->context = context;
    stream->device = context->device;
    stream->flags = flags;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&stream->work, &monotonic);
    pthread_cond_init(&stream->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&stream->thread, NULL, stream_worker, stream)) die("no thread for a stream");
    pthread_mutex_lock(&list_lock);
    stream->id = next_stream_id++;
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&list_lock);
    handle_add(stream, H_STREAM);
    return stream;
}

void stream_destroy(Stream *stream, bool drain)
{
    if (!handle_remove(stream, H_STREAM)) return;
    pthread_mutex_lock(&list_lock);
    Stream **link = &streams;
    while (*link && *link != stream) link = &(*link)->next;
    if (*link) *link = stream->next;
    pthread_mutex_unlock(&list_lock);
    pthread_mutex_lock(&stream->lock);
    stream->stopping = true;
    if (!drain) __atomic_store_n(&stream->abandoned, true, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    if (!drain) records_wake();
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->work);
    pthread_cond_destroy(&stream->done);
    quarantine(stream);
}

/* Visits the streams of a context; without a visitor destroys them. Returns the first error. */
int for_each_stream(Context *context, int (*visit)(Stream *, void *), void *argument)
{
    Stream *found[1024];
    size_t count = 0;
    pthread_mutex_lock(&list_lock);
    for (Stream *stream = streams; stream && count < 1024; stream = stream->next)
        if (visit ? stream->device == context->device : stream->context == context || (context->is_default && stream->device == context->device))
            found[count++] = stream;
    pthread_mutex_unlock(&list_lock);
    int code = OK;
    for (size_t k = 0; k < count; k++) {
        if (!visit) stream_destroy(found[k], false);
        else {
            int one = visit(found[k], argument);
            if (code == OK) code = one;
        }
    }
    return code;
}

int stream_of(void *handle, Stream **stream)
{
    Context *context;
    CHECK(need_context(&context));
    *stream = handle ? handle : context->default_stream;
    if (!handle_live(*stream, H_STREAM)) return fail(E_STREAM_CONTEXT, "%p is no live stream (destroyed, or its device was reset)", handle);
    if ((*stream)->context != context)
        return fail(E_STREAM_CONTEXT, "stream %d belongs to another context (device %d, current device %d)", (*stream)->id,
                    (*stream)->device, context->device);
    return OK;
}

Task *task_new(TaskKind kind)
{
    Task *task = malloc(sizeof *task);
    if (!task) die("the host is out of memory");
    *task = (Task){.kind = kind};
    return task;
}

int stream_submit(Stream *stream, Task *task)
{
    if (fault_hits(FAULT_LAUNCH)) {
        task_free(task);
        return fail(E_INTERNAL, "the task could not be queued (injected fault)");
    }
    task->submit_ticks = ticks_now(stream->device);
    if (!task->correlation) task->correlation = activity_next_correlation();
    pthread_mutex_lock(&stream->lock);
    if (stream->last) stream->last->next = task;
    else stream->first = task;
    stream->last = task;
    stream->submitted++;
    bool wake = stream->sleeping;
    pthread_mutex_unlock(&stream->lock);
    if (wake) pthread_cond_signal(&stream->work);
    return OK;
}

int stream_synchronize(Stream *stream, int timeout_ms)
{
    uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : host_ns() + (uint64_t)timeout_ms * 1000000u;
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};
    pthread_mutex_lock(&stream->lock);
    uint64_t target = stream->submitted;
    int waited = 0;
    stream->waiters++;
    if (stream->first) pthread_cond_signal(&stream->work);
    while (stream->completed < target && waited != ETIMEDOUT) {
        if (timeout_ms < 0) pthread_cond_wait(&stream->done, &stream->lock);
        else waited = pthread_cond_timedwait(&stream->done, &stream->lock, &until);
    }
    stream->waiters--;
    bool all = stream->completed >= target;
    uint64_t end = stream->end_ticks;
    int code = OK;
    if (all && stream->error != OK) {
        code = fail(stream->error, "%s", stream->error_text);
        stream->error = OK;
    }
    pthread_mutex_unlock(&stream->lock);
    if (code != OK) return code;
    if (!all || !wait_for_ticks_until(stream->device, end, deadline))
        return fail(E_STREAM_TIMEOUT, "stream %d did not finish within %d ms", stream->id, timeout_ms);
    return OK;
}

EXPORT int aclrtCreateStreamWithConfig(void **stream, uint32_t priority, uint32_t flags)
{
    if (!stream) return fail(E_PARAM, "aclrtCreateStream: NULL argument");
    if (priority > 7) return fail(E_PARAM, "aclrtCreateStreamWithConfig: priority %u is not in 0..7", priority);
    if (flags & ~0x1Fu) return fail(E_PARAM, "aclrtCreateStreamWithConfig: flag 0x%x is unknown", flags);
    Context *context;
    CHECK(need_context(&context));
    *stream = stream_create(context, flags);
    return OK;
}

EXPORT int aclrtCreateStream(void **stream) { return aclrtCreateStreamWithConfig(stream, 0, 0); }

static int destroy_stream(void *handle, bool drain)
{
    if (!handle) return fail(E_PARAM, "aclrtDestroyStream: the stream is NULL");
    if (forked_child()) return fail(E_DEVICE_LOST, "the NPU was initialised before fork; a child must be started with spawn");
    if (!handle_live(handle, H_STREAM)) return fail(E_STREAM_CONTEXT, "aclrtDestroyStream: %p is no live stream", handle);
    Stream *stream = handle;
    if (stream->context->default_stream == stream) return fail(E_RT_PARAM, "the default stream cannot be destroyed");
    stream_destroy(stream, drain);
    return OK;
}

EXPORT int aclrtDestroyStream(void *stream) { return destroy_stream(stream, true); }
EXPORT int aclrtDestroyStreamForce(void *stream) { return destroy_stream(stream, false); }

EXPORT int aclrtSynchronizeStreamWithTimeout(void *handle, int32_t milliseconds)
{
    Stream *stream;
    CHECK(stream_of(handle, &stream));
    if (milliseconds < -1) return fail(E_PARAM, "a timeout is -1 or at least 0, not %d", milliseconds);
    return stream_synchronize(stream, milliseconds);
}

EXPORT int aclrtSynchronizeStream(void *handle) { return aclrtSynchronizeStreamWithTimeout(handle, -1); }

EXPORT int aclrtStreamQuery(void *handle, int32_t *status)
{
    if (!status) return fail(E_PARAM, "aclrtStreamQuery: NULL argument");
    Stream *stream;
    CHECK(stream_of(handle, &stream));
    pthread_mutex_lock(&stream->lock);
    bool complete = stream->completed == stream->submitted && ticks_now(stream->device) >= stream->end_ticks;
    pthread_mutex_unlock(&stream->lock);
    *status = complete ? 0 : 1;
    return OK;
}

EXPORT int aclrtStreamGetId(void *handle, int32_t *id)
{
    if (!id) return fail(E_PARAM, "aclrtStreamGetId: NULL argument");
    Stream *stream;
    CHECK(stream_of(handle, &stream));
    *id = stream->id;
    return OK;
}

/* ---- events ---- */
static int create_event(void **event, uint32_t flags, bool extended)
{
    if (!event) return fail(E_PARAM, "aclrtCreateEvent: NULL argument");
    Context *context;
    CHECK(need_context(&context));
    if (flags == 0 || flags & ~0x6Bu) return fail(E_PARAM, "aclrtCreateEvent: flag 0x%x is unknown", flags);
    if (fault_hits(FAULT_EVENT)) return fail(E_INTERNAL, "aclrtCreateEvent: no event left (injected fault)");
    Event *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return fail(E_BAD_ALLOC, "the host is out of memory");
    fresh->flags = flags;
    fresh->extended = extended;
    fresh->device = context->device;
    fresh->generation = device_generation(context->device);
    handle_add(fresh, H_EVENT);
    *event = fresh;
    return OK;
}

/* A plain event does everything, as the older interface had no flags. */
EXPORT int aclrtCreateEvent(void **event) { return create_event(event, EVENT_SYNC | EVENT_TIME_LINE, false); }
EXPORT int aclrtCreateEventWithFlag(void **event, uint32_t flags) { return create_event(event, flags, false); }
EXPORT int aclrtCreateEventExWithFlag(void **event, uint32_t flags) { return create_event(event, flags, true); }

static int event_known(void *handle, Event **event, const char *function)
{
    if (forked_child()) return fail(E_DEVICE_LOST, "the NPU was initialised before fork; a child must be started with spawn");
    if (!handle) return fail(E_PARAM, "%s: the event is NULL", function);
    if (!handle_live(handle, H_EVENT)) return fail(E_RT_PARAM, "%s: %p is no live event", function, handle);
    *event = handle;
    return OK;
}

static int event_of(void *handle, Event **event, const char *function)
{
    CHECK(event_known(handle, event, function));
    if ((*event)->generation == device_generation((*event)->device)) return OK;
    return fail(E_RT_PARAM, "%s: %p is no live event (its device was reset)", function, handle);
}

static EventRecord *latest(Event *event) /* shared; NULL before the first record */
{
    pthread_mutex_lock(&record_lock);
    EventRecord *record = event->record ? record_share(event->record) : NULL;
    pthread_mutex_unlock(&record_lock);
    return record;
}

EXPORT int aclrtDestroyEvent(void *handle)
{
    Event *event;
    CHECK(event_known(handle, &event, "aclrtDestroyEvent"));
    if (!handle_remove(event, H_EVENT)) return fail(E_RT_PARAM, "aclrtDestroyEvent: %p is no live event", handle);
    record_release(event->record); /* queued tasks hold records of their own */
    quarantine(event);
    return OK;
}

EXPORT int aclrtRecordEvent(void *handle, void *stream_handle)
{
    Event *event;
    Stream *stream;
    CHECK(event_of(handle, &event, "aclrtRecordEvent"));
    CHECK(stream_of(stream_handle, &stream));
    if (event->device != stream->device)
        return fail(E_RT_PARAM, "aclrtRecordEvent: the event is of device %d, the stream of device %d", event->device, stream->device);
    if (fault_hits(FAULT_EVENT)) return fail(E_INTERNAL, "aclrtRecordEvent: failed (injected fault)");
    EventRecord *record = calloc(1, sizeof *record);
    if (!record) return fail(E_BAD_ALLOC, "the host is out of memory");
    record->references = 2;
    record->device = stream->device;
    Task *task = task_new(TASK_RECORD);
    task->event.record = record;
    pthread_mutex_lock(&record_lock);
    EventRecord *before = event->record;
    event->record = record;
    pthread_mutex_unlock(&record_lock);
    record_release(before);
    return stream_submit(stream, task);
}

EXPORT int aclrtResetEvent(void *handle, void *stream_handle)
{
    Event *event;
    Stream *stream;
    CHECK(event_of(handle, &event, "aclrtResetEvent"));
    CHECK(stream_of(stream_handle, &stream));
    if (event->extended || !(event->flags & EVENT_SYNC))
        return fail(E_RT_PARAM, "aclrtResetEvent: only an event made by aclrtCreateEventWithFlag with SYNC can be reset");
    int code = stream_submit(stream, task_new(TASK_RESET)); /* a later record has a result of its own; nothing to clear */
    return code;
}

EXPORT int aclrtStreamWaitEvent(void *stream_handle, void *handle)
{
    Event *event;
    Stream *stream;
    CHECK(event_of(handle, &event, "aclrtStreamWaitEvent"));
    CHECK(stream_of(stream_handle, &stream));
    if (!(event->flags & EVENT_SYNC)) return fail(E_RT_PARAM, "aclrtStreamWaitEvent: the event was made without the SYNC flag (0x1)");
    EventRecord *record = latest(event);
    if (!record) return OK; /* never recorded: nothing to wait for */
    Task *task = task_new(TASK_WAIT);
    task->event.record = record;
    return stream_submit(stream, task);
}

static bool complete(Event *event)
{
    EventRecord *record = latest(event);
    if (!record) return true;
    pthread_mutex_lock(&record_lock);
    bool done = record->done && (record->failed || ticks_now(record->device) >= record->ticks);
    pthread_mutex_unlock(&record_lock);
    record_release(record);
    return done;
}

EXPORT int aclrtQueryEventStatus(void *handle, int32_t *status)
{
    Event *event;
    CHECK(event_of(handle, &event, "aclrtQueryEventStatus"));
    if (!status) return fail(E_PARAM, "aclrtQueryEventStatus: NULL argument");
    if (device_lost(event->device)) return fail(E_DEVICE_LOST, "device %d is lost", event->device);
    *status = complete(event) ? 1 : 0;
    return OK;
}

static int query_old(void *handle, int32_t *status, const char *function)
{
    Event *event;
    CHECK(event_of(handle, &event, function));
    if (!status) return fail(E_PARAM, "%s: NULL argument", function);
    if (event->extended) return fail(E_RT_PARAM, "%s: not for events made by aclrtCreateEventExWithFlag; use aclrtQueryEventStatus", function);
    *status = complete(event) ? 0 : 1;
    return OK;
}

EXPORT int aclrtQueryEvent(void *event, int32_t *status) { return query_old(event, status, "aclrtQueryEvent"); }
EXPORT int aclrtQueryEventWaitStatus(void *event, int32_t *status) { return query_old(event, status, "aclrtQueryEventWaitStatus"); }

EXPORT int aclrtSynchronizeEventWithTimeout(void *handle, int32_t milliseconds)
{
    Event *event;
    CHECK(event_of(handle, &event, "aclrtSynchronizeEvent"));
    EventRecord *record = latest(event);
    if (!record) return OK;
    uint64_t deadline = milliseconds < 0 ? UINT64_MAX : host_ns() + (uint64_t)milliseconds * 1000000u;
    wake_workers();
    pthread_mutex_lock(&record_lock);
    int waited = 0;
    while (!record->done && waited != ETIMEDOUT) {
        if (milliseconds < 0) pthread_cond_wait(&record_done, &record_lock);
        else {
            uint64_t left = deadline > host_ns() ? deadline - host_ns() : 0, at = realtime_ns() + left;
            struct timespec until = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)};
            waited = pthread_cond_timedwait(&record_done, &record_lock, &until);
        }
    }
    bool done = record->done, failed = record->failed;
    uint64_t ticks = record->ticks;
    pthread_mutex_unlock(&record_lock);
    bool reached = done && (failed || wait_for_ticks_until(record->device, ticks, deadline));
    record_release(record);
    if (failed) return fail(E_DEVICE_LOST, "device %d is lost", event->device);
    return reached ? OK : fail(E_EVENT_TIMEOUT, "the event did not complete within %d ms", milliseconds);
}

EXPORT int aclrtSynchronizeEvent(void *handle) { return aclrtSynchronizeEventWithTimeout(handle, -1); }

static int timestamp(void *handle, uint64_t *ticks, int *device, const char *function)
{
    Event *event;
    CHECK(event_of(handle, &event, function));
    if (!(event->flags & EVENT_TIME_LINE)) return fail(E_NO_TIMESTAMP, "%s: the event was made without the TIME_LINE flag (0x8)", function);
    EventRecord *record = latest(event);
    if (!record) return fail(E_INTERNAL, "%s: the event was never recorded", function);
    pthread_mutex_lock(&record_lock);
    bool done = record->done && !record->failed && ticks_now(record->device) >= record->ticks;
    *ticks = record->ticks;
    *device = record->device;
    pthread_mutex_unlock(&record_lock);
    record_release(record);
    return done ? OK : fail(E_NO_TIMESTAMP, "%s: the event is not complete", function);
}

EXPORT int aclrtEventElapsedTime(float *milliseconds, void *start, void *end)
{
    if (!milliseconds) return fail(E_PARAM, "aclrtEventElapsedTime: NULL argument");
    uint64_t from, to;
    int from_device, to_device;
    CHECK(timestamp(start, &from, &from_device, "aclrtEventElapsedTime"));
    CHECK(timestamp(end, &to, &to_device, "aclrtEventElapsedTime"));
    if (from_device != to_device) return fail(E_RT_PARAM, "aclrtEventElapsedTime: the events are of devices %d and %d", from_device, to_device);
    *milliseconds = (float)((double)(int64_t)(to - from) * TICK_NS * 1e-6);
    return OK;
}

EXPORT int aclrtEventGetTimestamp(void *handle, uint64_t *microseconds)
{
    if (!microseconds) return fail(E_PARAM, "aclrtEventGetTimestamp: NULL argument");
    uint64_t ticks;
    int device;
    CHECK(timestamp(handle, &ticks, &device, "aclrtEventGetTimestamp"));
    *microseconds = ticks * TICK_NS / 1000;
    return OK;
}
