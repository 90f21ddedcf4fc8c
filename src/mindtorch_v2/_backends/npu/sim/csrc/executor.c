/* The two phases of every operator: GetWorkspaceSize checks the arguments and makes an executor, the second call queues it.
 *
 * ops.def has one line per operator, in the order of arguments that CANN documents. From it come the exported
 * prototypes, the packing of arguments and the table of kernels. */
#include "kernels.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- packing of arguments ---- */
static int pack_tensor(Arg *arg, const char *op, const char *name, const aclTensor *tensor, ArgKind kind)
{
    if (!tensor) {
        *arg = (Arg){.kind = kind, .name = name};
        if (kind == A_OPTIONAL || kind == A_OPTIONAL_OUT) return OK;
        return fail(E_NN_NULL, "aclnn%s: %s is NULL", op, name);
    }
    if (!handle_live(tensor, H_TENSOR)) return fail(E_NN_NULL, "aclnn%s: %s is no live aclTensor", op, name);
    arg->kind = kind;
    arg->name = name;
    arg->handle = tensor;
    arg->tensor = *tensor;
    return OK;
}

static int pack_list(Arg *arg, const char *op, const char *name, const aclTensorList *list, ArgKind kind)
{
    *arg = (Arg){.kind = kind, .name = name, .handle = list};
    if (!list) return fail(E_NN_NULL, "aclnn%s: %s is NULL", op, name);
    if (!handle_live(list, H_TENSORS)) return fail(E_NN_NULL, "aclnn%s: %s is no live aclTensorList", op, name);
    if (list->size == 0) return fail(E_NN_PARAM, "aclnn%s: %s is empty", op, name);
    arg->list.values = malloc(list->size * sizeof(Tensor));
    if (!arg->list.values) die("the host is out of memory");
    arg->list.size = list->size;
    for (uint64_t k = 0; k < list->size; k++) {
        if (!handle_live(list->values[k], H_TENSOR)) {
            free(arg->list.values);
            return fail(E_NN_NULL, "aclnn%s: a member of %s is no live aclTensor", op, name);
        }
        arg->list.values[k] = *list->values[k];
    }
    return OK;
}

static int pack_scalar(Arg *arg, const char *op, const char *name, const aclScalar *scalar)
{
    *arg = (Arg){.kind = A_SCALAR, .name = name, .handle = scalar};
    if (!scalar) return fail(E_NN_NULL, "aclnn%s: %s is NULL", op, name);
    if (!handle_live(scalar, H_SCALAR)) return fail(E_NN_NULL, "aclnn%s: %s is no live aclScalar", op, name);
    arg->scalar = *scalar;
    return OK;
}

static int pack_ints(Arg *arg, const char *op, const char *name, const aclIntArray *array, ArgKind kind)
{
    *arg = (Arg){.kind = kind, .name = name, .handle = array};
    if (!array) return kind == A_OPTIONAL_INTS ? OK : fail(E_NN_NULL, "aclnn%s: %s is NULL", op, name);
    if (!handle_live(array, H_INTS)) return fail(E_NN_NULL, "aclnn%s: %s is no live aclIntArray", op, name);
    if (array->size > 32) return fail(E_NN_PARAM, "aclnn%s: %s has more than 32 entries", op, name);
    arg->ints.size = array->size;
    memcpy(arg->ints.values, array->values, array->size * sizeof *array->values);
    return OK;
}

static int pack_bools(Arg *arg, const char *op, const char *name, const aclBoolArray *array)
{
    *arg = (Arg){.kind = A_BOOLS, .name = name, .handle = array};
    if (!array) return fail(E_NN_NULL, "aclnn%s: %s is NULL", op, name);
    if (!handle_live(array, H_BOOLS)) return fail(E_NN_NULL, "aclnn%s: %s is no live aclBoolArray", op, name);
    if (array->size > 8) return fail(E_NN_PARAM, "aclnn%s: %s has more than 8 entries", op, name);
    arg->bools.size = array->size;
    memcpy(arg->bools.values, array->values, array->size);
    return OK;
}

static int pack_int(Arg *arg, const char *op, const char *name, int64_t value)
{
    (void)op;
    *arg = (Arg){.kind = A_INT, .name = name, .handle = arg, .i = value};
    return OK;
}

static int pack_double(Arg *arg, const char *op, const char *name, double value)
{
    (void)op;
    *arg = (Arg){.kind = A_DOUBLE, .name = name, .handle = arg, .d = value};
    return OK;
}

static int pack_string(Arg *arg, const char *op, const char *name, const char *value)
{
    *arg = (Arg){.kind = A_STRING, .name = name, .handle = value};
    if (!value) return fail(E_NN_NULL, "aclnn%s: %s is NULL", op, name);
    if (strlen(value) >= sizeof arg->string) return fail(E_NN_PARAM, "aclnn%s: %s \"%.40s\" is unknown", op, name, value);
    strcpy(arg->string, value);
    return OK;
}

/* ---- a kernel's view of its tensors ---- */
enum { SEVERAL = -2 }; /* devices */
typedef int (*EachTensor)(Tensor *tensor, const Arg *arg, void *context);

static int each_tensor(Call *call, EachTensor visit, void *context)
{
    for (int k = 0; k < call->count; k++) {
        Arg *arg = &call->args[k];
        if (arg->kind <= A_OPTIONAL_OUT && arg->handle) CHECK(visit(&arg->tensor, arg, context));
        if (arg->kind == A_LIST || arg->kind == A_OUT_LIST)
            for (uint64_t m = 0; m < arg->list.size; m++) CHECK(visit(&arg->list.values[m], arg, context));
    }
    return OK;
}

static int check_one(Tensor *tensor, const Arg *arg, void *context)
{
    aclOpExecutor *executor = context;
    Call *call = &executor->call;
    tensor->block_device = -1;
    CHECK(check_addresses(tensor, true, call->op->name, arg->name));
    if (tensor->block_device >= 0) executor->from = executor->from == -1 || executor->from == tensor->block_device ? tensor->block_device : SEVERAL;
    bool is_out = arg->kind == A_OUT || arg->kind == A_OPTIONAL_OUT || arg->kind == A_OUT_LIST;
    if (is_out)
        for (int k = 0; k < tensor->nd; k++)
            if (tensor->dims[k] > 1 && tensor->strides[k] == 0)
                return fail(E_NN_PARAM, "aclnn%s: %s is written, but several of its elements share memory", call->op->name, arg->name);
    return OK;
}

static int add_bytes(Tensor *tensor, const Arg *arg, void *context)
{
    (void)arg;
    *(uint64_t *)context += (uint64_t)numel(tensor) * (uint64_t)item_size(tensor->dtype);
    return OK;
}

static int launch_one(Tensor *tensor, const Arg *arg, void *context)
{
    aclOpExecutor *executor = context;
    const char *op = executor->call.op->name;
    CHECK(check_addresses(tensor, true, op, arg->name));
    if (numel(tensor) && tensor->block_device != executor->device)
        return fail(E_NN_PARAM, "aclnn%s: %s is on device %d, the stream on device %d", op, arg->name, tensor->block_device, executor->device);
    return OK;
}

static int resolve_one(Tensor *tensor, const Arg *arg, void *context)
{
    Call *call = context;
    tensor->data = NULL;
    if (numel(tensor) == 0) return OK;
    BlockInfo block;
    uint64_t size = (uint64_t)tensor->storage_size * (uint64_t)item_size(tensor->dtype);
    if (!device_range(tensor->address, size, &block) || block.serial != tensor->serial)
        return fail(E_AICORE, "aclnn%s: AI core exception: the memory of %s at %p was freed before the kernel ran", call->op->name, arg->name, tensor->address);
    tensor->data = block.bytes + tensor->offset * item_size(tensor->dtype);
    return OK;
}

static int write_tail(Tensor *tensor, const Arg *arg, void *context)
{
    (void)context;
    if ((arg->kind != A_OUT && arg->kind != A_OUT_LIST) || numel(tensor) == 0) return OK;
    uint64_t size = (uint64_t)tensor->storage_size * (uint64_t)item_size(tensor->dtype);
    memset(device_bytes(tensor->address) + size, 0x5A, (size + 31) / 32 * 32 + 32 - size);
    return OK;
}

/* ---- phase 1 ---- */
static int check_only(const char *op, uint64_t *workspace, aclOpExecutor **executor)
{
    if (!workspace || !executor) return fail(E_NN_NULL, "aclnn%s: the workspace size or the executor pointer is NULL", op);
    if (forked_child()) return fail(E_NN_RUNTIME, "the NPU was initialised before fork; a child must be started with spawn");
    if (!runtime_ready()) return fail(E_NN_RUNTIME, "aclnn%s: aclInit was not called", op);
    return OK;
}

/* Executors are made by one thread and let go by another, which malloc is slow at. Those of a size are used again, the
 * longest unused first, so that a stale handle is not taken for a new one. The address sanitizer sees each one freed. */
enum { MOST_ARGUMENTS = 20, UNUSED_LEAST = 64, UNUSED_MOST = 1024 };
static struct { aclOpExecutor *first, *last; int count; } unused[MOST_ARGUMENTS + 1]; /* linked by their tasks; by room */
static bool unused_taken;

static void unused_lock(void)
{
    while (__atomic_test_and_set(&unused_taken, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unused_unlock(void) { __atomic_clear(&unused_taken, __ATOMIC_RELEASE); }

static aclOpExecutor *used_before(int room, int at_least) /* lock held; NULL if there are fewer */
{
    aclOpExecutor *executor = unused[room].first;
    if (!executor || unused[room].count <= at_least) return NULL;
    unused[room].first = executor->next_unused;
    unused[room].count--;
    return executor;
}

static aclOpExecutor *begin(const OpEntry *op, int room) /* without arguments; there is room for these */
{
    unused_lock();
    aclOpExecutor *executor = used_before(room, UNUSED_LEAST);
    unused_unlock();
    if (!executor) executor = malloc(sizeof *executor + (size_t)room * sizeof(Arg));
    if (!executor) die("the host is out of memory");
    *executor = (aclOpExecutor){.call = {.op = op, .args = (Arg *)(executor + 1)}, .device = -1, .room = room, .from = -1,
                                .changes = memory_changes(), .removals = handle_removals()};
    return executor;
}

static void release_executor(aclOpExecutor *executor)
{
    for (int k = 0; k < executor->call.count; k++)
        if (executor->call.args[k].kind == A_LIST || executor->call.args[k].kind == A_OUT_LIST) free(executor->call.args[k].list.values);
#ifdef __SANITIZE_ADDRESS__
    quarantine(executor);
#else
    int room = executor->room;
    executor->next_unused = NULL;
    unused_lock();
    if (unused[room].first) unused[room].last->next_unused = executor;
    else unused[room].first = executor;
    unused[room].last = executor;
    unused[room].count++;
    aclOpExecutor *beyond = used_before(room, UNUSED_MOST);
    unused_unlock();
    free(beyond);
#endif
}

static aclOpExecutor *duplicate(const aclOpExecutor *executor)
{
    aclOpExecutor *copy = begin(executor->call.op, executor->room);
    Arg *args = copy->call.args;
    memcpy(args, executor->call.args, (size_t)executor->call.count * sizeof *args);
    copy->call = executor->call;
    copy->call.args = args;
    copy->device = executor->device;
    copy->workspace = executor->workspace;
    for (int k = 0; k < copy->call.count; k++) {
        if (args[k].kind != A_LIST && args[k].kind != A_OUT_LIST) continue;
        args[k].list.values = malloc(args[k].list.size * sizeof(Tensor));
        if (!args[k].list.values) die("the host is out of memory");
        memcpy(args[k].list.values, executor->call.args[k].list.values, args[k].list.size * sizeof(Tensor));
    }
    return copy;
}

static int finish(aclOpExecutor *executor, int code, uint64_t *workspace, aclOpExecutor **result)
{
    Call *call = &executor->call;
    if (code == OK) code = each_tensor(call, check_one, executor);
    call->planning = true;
    if (code == OK) code = call->op->kernel(call);
    call->planning = false;
    if (code != OK) {
        release_executor(executor);
        return code;
    }
    if (!call->bytes) each_tensor(call, add_bytes, &call->bytes);
    if (!call->operations) call->operations = call->bytes / 4;
    handle_add(executor, H_EXECUTOR);
    *workspace = call->workspace;
    *result = executor;
    return OK;
}

/* ---- phase 2 ---- */
void executor_free(aclOpExecutor *executor) { release_executor(executor); } /* its handle died when it was queued */

int executor_run(aclOpExecutor *executor)
{
    Call *call = &executor->call;
    CHECK(each_tensor(call, resolve_one, call));
    CHECK(call->op->kernel(call));
    if (settings.tail_writes) each_tensor(call, write_tail, NULL);
    return OK;
}

uint64_t executor_ticks(const aclOpExecutor *executor)
{
    const Call *call = &executor->call;
    const Model *model = &settings.model;
    bool half = call->count && (call->args[0].tensor.dtype == DT_FLOAT16 || call->args[0].tensor.dtype == DT_BF16);
    double peak = call->cube ? (half ? model->cube_half_tflops : model->cube_float_tflops) : model->vector_tflops;
    double by_bytes = model->hbm_gbs > 0 ? (double)call->bytes / (model->hbm_gbs * 1e3) : 0;
    double by_operations = peak > 0 ? (double)call->operations / (peak * 1e6) : 0;
    return ticks_of_us(model->kernel_us + (by_bytes > by_operations ? by_bytes : by_operations));
}

static int check_alive(const Call *call)
{
    for (int k = 0; k < call->count; k++) {
        const Arg *arg = &call->args[k];
        bool is_tensor = arg->kind <= A_OPTIONAL_OUT, is_list = arg->kind == A_LIST || arg->kind == A_OUT_LIST;
        if (arg->handle && ((is_tensor && !handle_live(arg->handle, H_TENSOR)) || (is_list && !handle_live(arg->handle, H_TENSORS))))
            return fail(E_NN_PARAM, "aclnn%s: %s was destroyed between the two phases", call->op->name, arg->name);
    }
    return OK;
}

static int launch(const OpEntry *op, void *workspace, uint64_t workspace_size, aclOpExecutor *executor, void *stream_handle)
{
    uint64_t start = mspti_times_calls() ? realtime_ns() : 0;
    if (!executor) return fail(E_NN_INNER_NULL, "aclnn%s: the executor is NULL", op->name);
    if (!handle_live(executor, H_EXECUTOR)) die("aclnn%s: executor %p is not live; phase 2 deletes it, a second use is an error", op->name, (void *)executor);
    Call *call = &executor->call;
    Stream *stream = NULL;
    int code = call->op == op ? OK : fail(E_NN_PARAM, "aclnn%s: the executor was made by aclnn%sGetWorkspaceSize", op->name, call->op->name);
    if (code == OK && executor->removals != handle_removals()) code = check_alive(call);
    if (code == OK && stream_of(stream_handle, &stream) != OK) code = E_NN_RUNTIME;
    BlockInfo block;
    if (code == OK && call->workspace && (workspace_size < call->workspace || !workspace || !device_range(workspace, call->workspace, &block)))
        code = fail(E_NN_PARAM, "aclnn%s: the workspace must be %llu bytes of device memory", op->name, (unsigned long long)call->workspace);
    if (code == OK) {
        executor->device = stream->device;
        executor->workspace = workspace;
        bool as_planned = executor->from == stream->device && executor->changes == memory_changes();
        if (!as_planned) code = each_tensor(call, launch_one, executor);
    }
    if (!executor->repeatable) handle_remove(executor, H_EXECUTOR);
    if (code != OK) {
        if (!executor->repeatable) release_executor(executor);
        return code;
    }
    if (executor->repeatable) { /* each launch is queued with the addresses of this moment */
        executor = duplicate(executor);
        call = &executor->call;
    }
    Tensor *shaped = call->synchronous ? (Tensor *)call->args[call->count - 1].handle : NULL;
    Task *task = &executor->task;
    *task = (Task){.kind = TASK_KERNEL};
    task->correlation = activity_next_correlation();
    task->kernel.executor = executor;
    task->kernel.keep = shaped != NULL; /* its result is read below */
    mspti_launch(task->correlation);
    code = stream_submit(stream, task) == OK ? OK : E_NN_RUNTIME;
    if (shaped) {
        if (code == OK && stream_synchronize(stream, -1) != OK) code = E_NN_RUNTIME;
        const Tensor *told = &call->args[call->count - 1].tensor;
        if (code == OK) {
            shaped->nd = told->nd;
            memcpy(shaped->dims, told->dims, sizeof told->dims);
            memcpy(shaped->strides, told->strides, sizeof told->strides);
        }
        release_executor(executor);
    }
    if (start) mspti_api(op->name, start);
    return code;
}

EXPORT int32_t aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
{
    if (!executor) return fail(E_NN_INNER_NULL, "aclSetAclOpExecutorRepeatable: NULL argument");
    if (!handle_live(executor, H_EXECUTOR)) die("aclSetAclOpExecutorRepeatable: executor %p is not live", (void *)executor);
    executor->repeatable = true;
    return OK;
}

EXPORT int32_t aclDestroyAclOpExecutor(aclOpExecutor *executor)
{
    if (!executor) return fail(E_NN_INNER_NULL, "aclDestroyAclOpExecutor: NULL argument");
    if (!handle_remove(executor, H_EXECUTOR)) die("aclDestroyAclOpExecutor: executor %p is not live; phase 2 deletes it", (void *)executor);
    release_executor(executor);
    return OK;
}

static int set_address(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *address, bool inputs, bool outputs)
{
    if (!executor || !tensor) return fail(E_NN_INNER_NULL, "aclSetTensorAddr: NULL argument");
    if (!handle_live(executor, H_EXECUTOR)) die("aclSetTensorAddr: executor %p is not live", (void *)executor);
    if (!executor->repeatable) return fail(E_NN_PARAM, "aclSetTensorAddr: the executor is not repeatable");
    size_t at = 0;
    for (int k = 0; k < executor->call.count; k++) {
        Arg *arg = &executor->call.args[k];
        bool is_out = arg->kind == A_OUT || arg->kind == A_OPTIONAL_OUT;
        if (arg->kind > A_OPTIONAL_OUT || !(is_out ? outputs : inputs)) continue;
        if (at++ == index) {
            arg->tensor.address = address;
            executor->from = SEVERAL; /* to be looked at again */
            return OK;
        }
    }
    return fail(E_NN_PARAM, "aclSetTensorAddr: there is no tensor %zu", index);
}

EXPORT int32_t aclSetInputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *address) { return set_address(executor, index, tensor, address, true, false); }
EXPORT int32_t aclSetOutputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *address) { return set_address(executor, index, tensor, address, false, true); }
EXPORT int32_t aclSetTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *address) { return set_address(executor, index, tensor, address, true, true); }
EXPORT int32_t aclnnInit(const char *path) { (void)path; return OK; }
EXPORT int32_t aclnnFinalize(void) { return OK; }

/* ---- prototypes and table from ops.def ---- */
#define EACH_1(M, a) M(a)
#define EACH_2(M, a, ...) M(a) EACH_1(M, __VA_ARGS__)
#define EACH_3(M, a, ...) M(a) EACH_2(M, __VA_ARGS__)
#define EACH_4(M, a, ...) M(a) EACH_3(M, __VA_ARGS__)
#define EACH_5(M, a, ...) M(a) EACH_4(M, __VA_ARGS__)
#define EACH_6(M, a, ...) M(a) EACH_5(M, __VA_ARGS__)
#define EACH_7(M, a, ...) M(a) EACH_6(M, __VA_ARGS__)
#define EACH_8(M, a, ...) M(a) EACH_7(M, __VA_ARGS__)
#define EACH_9(M, a, ...) M(a) EACH_8(M, __VA_ARGS__)
#define EACH_10(M, a, ...) M(a) EACH_9(M, __VA_ARGS__)
#define EACH_11(M, a, ...) M(a) EACH_10(M, __VA_ARGS__)
#define EACH_12(M, a, ...) M(a) EACH_11(M, __VA_ARGS__)
#define EACH_13(M, a, ...) M(a) EACH_12(M, __VA_ARGS__)
#define EACH_14(M, a, ...) M(a) EACH_13(M, __VA_ARGS__)
#define EACH_15(M, a, ...) M(a) EACH_14(M, __VA_ARGS__)
#define EACH_16(M, a, ...) M(a) EACH_15(M, __VA_ARGS__)
#define EACH_17(M, a, ...) M(a) EACH_16(M, __VA_ARGS__)
#define EACH_18(M, a, ...) M(a) EACH_17(M, __VA_ARGS__)
#define EACH_19(M, a, ...) M(a) EACH_18(M, __VA_ARGS__)
#define EACH_20(M, a, ...) M(a) EACH_19(M, __VA_ARGS__)
#define COUNT(...) COUNT_(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
#define COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, N, ...) N
#define JOIN(a, b) JOIN_(a, b)
#define JOIN_(a, b) a##b
#define EACH(M, ...) JOIN(EACH_, COUNT(__VA_ARGS__))(M, __VA_ARGS__)

#define PARAMETER(x) PARAMETER_##x
#define PARAMETER_T(name) const aclTensor *name,
#define PARAMETER_O(name) const aclTensor *name,
#define PARAMETER_N(name) const aclTensor *name,
#define PARAMETER_NO(name) const aclTensor *name,
#define PARAMETER_TL(name) const aclTensorList *name,
#define PARAMETER_OL(name) const aclTensorList *name,
#define PARAMETER_S(name) const aclScalar *name,
#define PARAMETER_IA(name) const aclIntArray *name,
#define PARAMETER_NIA(name) const aclIntArray *name,
#define PARAMETER_BA(name) const aclBoolArray *name,
#define PARAMETER_DT(name) int32_t name,
#define PARAMETER_i8(name) int8_t name,
#define PARAMETER_i32(name) int32_t name,
#define PARAMETER_i64(name) int64_t name,
#define PARAMETER_u64(name) uint64_t name,
#define PARAMETER_b(name) bool name,
#define PARAMETER_f32(name) float name,
#define PARAMETER_f64(name) double name,
#define PARAMETER_cstr(name) const char *name,

#define PACK(x) PACK_##x
#define PACK_WITH(function, label, ...) if (code == OK && (code = function(args + *count, op->name, #label, __VA_ARGS__)) == OK) ++*count;
#define PACK_T(x) PACK_WITH(pack_tensor, x, x, A_TENSOR)
#define PACK_O(x) PACK_WITH(pack_tensor, x, x, A_OUT)
#define PACK_N(x) PACK_WITH(pack_tensor, x, x, A_OPTIONAL)
#define PACK_NO(x) PACK_WITH(pack_tensor, x, x, A_OPTIONAL_OUT)
#define PACK_TL(x) PACK_WITH(pack_list, x, x, A_LIST)
#define PACK_OL(x) PACK_WITH(pack_list, x, x, A_OUT_LIST)
#define PACK_S(x) PACK_WITH(pack_scalar, x, x)
#define PACK_IA(x) PACK_WITH(pack_ints, x, x, A_INTS)
#define PACK_NIA(x) PACK_WITH(pack_ints, x, x, A_OPTIONAL_INTS)
#define PACK_BA(x) PACK_WITH(pack_bools, x, x)
#define PACK_DT(x) PACK_WITH(pack_int, x, x)
#define PACK_i8(x) PACK_WITH(pack_int, x, x)
#define PACK_i32(x) PACK_WITH(pack_int, x, x)
#define PACK_i64(x) PACK_WITH(pack_int, x, x)
#define PACK_u64(x) PACK_WITH(pack_int, x, (int64_t)x)
#define PACK_b(x) PACK_WITH(pack_int, x, x)
#define PACK_f32(x) PACK_WITH(pack_double, x, x)
#define PACK_f64(x) PACK_WITH(pack_double, x, x)
#define PACK_cstr(x) PACK_WITH(pack_string, x, x)

#define OP(Name, function, variant_, core, ...)                                                                                      \
    static const OpEntry entry_##Name = {#Name, "aclnn" #Name "_" #Name "AiCore_" #Name, "KERNEL_" #core, function, variant_};       \
    EXPORT int32_t aclnn##Name##GetWorkspaceSize(EACH(PARAMETER, __VA_ARGS__) uint64_t *workspaceSize, aclOpExecutor **executorOut) \
    {                                                                                                                                \
        const OpEntry *op = &entry_##Name;                                                                                           \
        int code = check_only(op->name, workspaceSize, executorOut);                                                                 \
        if (code != OK) return code;                                                                                                 \
        aclOpExecutor *executor = begin(op, COUNT(__VA_ARGS__));                                                                     \
        Arg *args = executor->call.args;                                                                                             \
        int *count = &executor->call.count;                                                                                          \
        EACH(PACK, __VA_ARGS__)                                                                                                      \
        return finish(executor, code, workspaceSize, executorOut);                                                                   \
    }                                                                                                                                \
    EXPORT int32_t aclnn##Name(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, void *stream)                       \
    {                                                                                                                                \
        return launch(&entry_##Name, workspace, workspaceSize, executor, stream);                                                    \
    }
#include "ops.def"
#undef OP

#define OP(Name, ...) &entry_##Name,
static const OpEntry *const TABLE[] = {
#include "ops.def"
};
#undef OP

/* The names of the operators, for coverage tables; NULL after the last. */
EXPORT const char *mtsimOperator(uint64_t index) { return index < sizeof TABLE / sizeof *TABLE ? TABLE[index]->name : NULL; }
