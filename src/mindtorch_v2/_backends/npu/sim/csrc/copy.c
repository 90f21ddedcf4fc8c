/* Copies and memsets. The blocking forms wait for no stream, as on the real device. */
#include "sim.h"

#include <string.h>

enum { H2H = 0, H2D = 1, D2H = 2, D2D = 3, AUTOMATIC = 4, BUFFERED_H2D = 5, INNER_D2D = 6, INTER_D2D = 7, PEER = 4 };

/* Fills the task's copy: what kind it really is, and that both ends are what the kind says. */
static int plan(Task *task, void *to, size_t room, const void *from, size_t size, int kind, Context *context)
{
    if (!to || !from) return fail(E_PARAM, "aclrtMemcpy: a pointer is NULL");
    if (kind < 0 || kind > 7) return fail(E_PARAM, "aclrtMemcpy: kind %d is unknown", kind);
    if (size > room) return fail(E_PARAM, "aclrtMemcpy: %zu bytes do not fit into %zu", size, room);
    int to_device = -1, from_device = -1;
    bool onto = is_device_address(to, &to_device), off = is_device_address(from, &from_device);
    int real = onto ? (off ? D2D : H2D) : (off ? D2H : H2H);
    int said = kind == AUTOMATIC ? real : kind == BUFFERED_H2D ? H2D : kind == INNER_D2D || kind == INTER_D2D ? D2D : kind;
    if (said != real)
        return fail(E_RT_PARAM, "aclrtMemcpy: kind %d, but the destination %p is %s memory and the source %p is %s memory", kind, to,
                    onto ? "device" : "host", from, off ? "device" : "host");
    BlockInfo block;
    if (onto) {
        if (!device_range(to, size, &block)) return fail(E_RT_PARAM, "aclrtMemcpy: %zu bytes at %p are not inside an allocated block", size, to);
        task->copy.to_serial = block.serial;
    }
    if (off) {
        if (!device_range(from, size, &block)) return fail(E_RT_PARAM, "aclrtMemcpy: %zu bytes at %p are not inside an allocated block", size, from);
        task->copy.from_serial = block.serial;
    }
    if (onto && off && to_device != from_device) {
        if (!runtime_peer_enabled(to_device, from_device))
            return fail(E_RT_PARAM, "aclrtMemcpy: peer access between devices %d and %d is not enabled", from_device, to_device);
        real = PEER;
    } else if ((onto && to_device != context->device) || (off && from_device != context->device)) {
        int owner = onto ? to_device : from_device;
        if (real != H2D && real != D2H && !runtime_peer_enabled(owner, context->device))
            return fail(E_RT_PARAM, "aclrtMemcpy: the memory is of device %d, the current device is %d", owner, context->device);
    }
    task->copy.to = to;
    task->copy.from = from;
    task->copy.size = size;
    task->copy.kind = real;
    const void *host = real == H2D ? from : to;
    task->copy.pageable = (real == H2D || real == D2H) && !is_pinned(host, size);
    return OK;
}

static int trace_kind(int kind) { return kind == PEER ? 4 : kind + 1; } /* msPTI numbers: HTOH 1 … DTOD 4 */

EXPORT int aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int32_t kind)
{
    Context *context;
    CHECK(need_context(&context));
    uint64_t start = realtime_ns();
    Task task = {.kind = TASK_COPY};
    CHECK(plan(&task, to, room, from, size, kind, context));
    if (fault_hits(FAULT_MEMCPY)) return fail(E_INTERNAL, "aclrtMemcpy: failed (injected fault)");
    /* Its own time on the device, outside all streams: the clock advances by the copy's length. */
    const Model *model = &settings.model;
    uint64_t submit = ticks_now(context->device);
    char *target = task.copy.to_serial ? device_bytes(to) : to;
    const char *source = task.copy.from_serial ? device_bytes(from) : from;
    memmove(target, source, size);
    double rate = task.copy.kind == D2D ? model->hbm_gbs / 2 : task.copy.kind == PEER ? model->peer_gbs
        : task.copy.pageable ? model->pageable_gbs : model->pcie_gbs;
    uint64_t length = ticks_of_us(model->copy_us + (rate > 0 ? (double)size / (rate * 1e3) : 0));
    mtsimActivity activity = {
        .kind = ACTIVITY_COPY, .device = (uint32_t)context->device, .stream = -1, .copy_kind = task.copy.kind == PEER ? D2D : task.copy.kind,
        .correlation = activity_next_correlation(), .submit_ticks = submit, .start_ticks = submit, .end_ticks = submit + (length ? length : 1),
        .bytes = size, .name = task.copy.kind == H2D ? "MemcpyHtoD" : task.copy.kind == D2H ? "MemcpyDtoH" : task.copy.kind == H2H ? "MemcpyHtoH" : "MemcpyDtoD",
        .type = "MEMCPY",
    };
    wait_for_ticks(context->device, activity.end_ticks);
    activity_record(&activity);
    mspti_copy(trace_kind(task.copy.kind), size, start, context->device, -1, false);
    return OK;
}

EXPORT int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int32_t kind, void *stream_handle)
{
    Context *context;
    CHECK(need_context(&context));
    Stream *stream;
    CHECK(stream_of(stream_handle, &stream));
    uint64_t start = realtime_ns();
    Task *task = task_new(TASK_COPY);
    int code = plan(task, to, room, from, size, kind, context);
    if (code != OK || fault_hits(FAULT_MEMCPY)) {
        if (code == OK) code = fail(E_INTERNAL, "aclrtMemcpyAsync: failed (injected fault)");
        __builtin_free(task);
        return code;
    }
    bool wait = task->copy.pageable;
    int copy_kind = task->copy.kind;
    CHECK(stream_submit(stream, task));
    if (wait) CHECK(stream_synchronize(stream, -1)); /* only pinned memory can be copied after the call returns */
    mspti_copy(trace_kind(copy_kind), size, start, context->device, stream->id, true);
    return OK;
}

static int plan_set(void *to, size_t room, size_t size, BlockInfo *block)
{
    if (!to) return fail(E_PARAM, "aclrtMemset: the pointer is NULL");
    if (size > room) return fail(E_PARAM, "aclrtMemset: %zu bytes do not fit into %zu", size, room);
    if (!is_device_address(to, NULL)) return fail(E_RT_PARAM, "aclrtMemset: %p is not a device address", to);
    if (!device_range(to, size, block)) return fail(E_RT_PARAM, "aclrtMemset: %zu bytes at %p are not inside an allocated block", size, to);
    return OK;
}

EXPORT int aclrtMemset(void *to, size_t room, int32_t value, size_t size)
{
    Context *context;
    CHECK(need_context(&context));
    uint64_t start = realtime_ns();
    BlockInfo block;
    CHECK(plan_set(to, room, size, &block));
    memset(device_bytes(to), value, size);
    uint64_t submit = ticks_now(context->device);
    const Model *model = &settings.model;
    uint64_t length = ticks_of_us(model->kernel_us + (model->hbm_gbs > 0 ? (double)size / (model->hbm_gbs * 1e3) : 0));
    mtsimActivity activity = {
        .kind = ACTIVITY_SET, .device = (uint32_t)context->device, .stream = -1, .copy_kind = -1, .correlation = activity_next_correlation(),
        .submit_ticks = submit, .start_ticks = submit, .end_ticks = submit + (length ? length : 1), .bytes = size, .name = "MemsetD", .type = "MEMSET",
    };
    wait_for_ticks(context->device, activity.end_ticks);
    activity_record(&activity);
    mspti_set(value, size, start, context->device, -1, false);
    return OK;
}

EXPORT int aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t size, void *stream_handle)
{
    Stream *stream;
    CHECK(stream_of(stream_handle, &stream));
    uint64_t start = realtime_ns();
    BlockInfo block;
    CHECK(plan_set(to, room, size, &block));
    Task *task = task_new(TASK_SET);
    task->set.to = to;
    task->set.value = value;
    task->set.size = size;
    task->set.to_serial = block.serial;
    CHECK(stream_submit(stream, task));
    mspti_set(value, size, start, stream->device, stream->id, true);
    return OK;
}
