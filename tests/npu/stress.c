/* Many threads, streams, events, copies and operators on the simulator, for the sanitizers: everything that is made is
 * destroyed, so that what is left at the end is a leak. Returns 0 if the values are right. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
int aclInit(const char *), aclFinalize(void), aclrtSetDevice(int32_t), aclrtResetDevice(int32_t), aclrtSynchronizeDevice(void);
int aclrtMalloc(Handle *, size_t, int32_t), aclrtFree(Handle), aclrtMallocHost(Handle *, size_t), aclrtFreeHost(Handle);
int aclrtMemcpyAsync(Handle, size_t, const void *, size_t, int32_t, Handle), aclrtMemsetAsync(Handle, size_t, int32_t, size_t, Handle);
int aclrtCreateStream(Handle *), aclrtDestroyStream(Handle), aclrtDestroyStreamForce(Handle), aclrtSynchronizeStream(Handle), aclrtStreamWaitEvent(Handle, Handle);
int aclrtCreateEventExWithFlag(Handle *, uint32_t), aclrtDestroyEvent(Handle), aclrtRecordEvent(Handle, Handle), aclrtSynchronizeEvent(Handle);
int aclrtQueryEventStatus(Handle, int32_t *), aclrtEventElapsedTime(float *, Handle, Handle);
Handle aclCreateTensor(const int64_t *, uint64_t, int32_t, const int64_t *, int64_t, int32_t, const int64_t *, uint64_t, void *);
Handle aclCreateScalar(void *, int32_t), aclCreateIntArray(const int64_t *, uint64_t), aclCreateTensorList(const Handle *, uint64_t);
int aclDestroyTensor(Handle), aclDestroyScalar(Handle), aclDestroyIntArray(Handle), aclDestroyTensorList(Handle);
const char *aclGetRecentErrMsg(void);
int aclnnAddGetWorkspaceSize(Handle, Handle, Handle, Handle, uint64_t *, Handle *), aclnnAdd(void *, uint64_t, Handle, Handle);
int aclnnMmGetWorkspaceSize(Handle, Handle, Handle, int8_t, uint64_t *, Handle *), aclnnMm(void *, uint64_t, Handle, Handle);
int aclnnReduceSumGetWorkspaceSize(Handle, Handle, bool, int32_t, Handle, uint64_t *, Handle *), aclnnReduceSum(void *, uint64_t, Handle, Handle);
int aclnnForeachZeroInplaceGetWorkspaceSize(Handle, uint64_t *, Handle *), aclnnForeachZeroInplace(void *, uint64_t, Handle, Handle);
int msptiSubscribe(Handle *, void *, void *), msptiUnsubscribe(Handle), msptiActivityEnable(int32_t), msptiActivityFlushAll(uint32_t);
int msptiActivityRegisterCallbacks(void (*)(uint8_t **, size_t *, size_t *), void (*)(uint8_t *, size_t, size_t));
int msptiActivityPushExternalCorrelationId(int32_t, uint64_t), msptiActivityPopExternalCorrelationId(int32_t, uint64_t *);
int mtsimActivityEnable(int), mtsimConfigure(const char *, const char *);
uint64_t mtsimActivityRead(void *, uint64_t), mtsimLiveHandles(int);

#define DO(call) do { int code_ = (call); if (code_) { const char *text_ = aclGetRecentErrMsg(); fprintf(stderr, "%s: %d %s\n", #call, code_, text_ ? text_ : ""); exit(1); } } while (0)
enum { THREADS = 4, ROUNDS = 60, SIDE = 24 };
static uint64_t records;

static void ask(uint8_t **buffer, size_t *size, size_t *most) { *buffer = malloc(*size = 4096); *most = 0; }
static void take(uint8_t *buffer, size_t size, size_t valid) { (void)size; __atomic_add_fetch(&records, valid, __ATOMIC_RELAXED); free(buffer); }

static void *work(void *argument)
{
    float *wrong = argument;
    int64_t dims[2] = {SIDE, SIDE}, one[1] = {1}, first[1] = {0};
    size_t bytes = SIDE * SIDE * sizeof(float);
    Handle a, b, out, host, streams[2], events[2], sum, scalar;
    DO(aclrtSetDevice(0));
    DO(aclrtMalloc(&a, bytes, 0)); DO(aclrtMalloc(&b, bytes, 0)); DO(aclrtMalloc(&out, bytes, 0)); DO(aclrtMalloc(&sum, SIDE * 4, 0));
    DO(aclrtMallocHost(&host, bytes));
    for (int k = 0; k < 2; k++) { DO(aclrtCreateStream(&streams[k])); DO(aclrtCreateEventExWithFlag(&events[k], 9)); }
    double alpha = 2;
    scalar = aclCreateScalar(&alpha, 11);
    Handle axis = aclCreateIntArray(first, 1);
    for (int round = 0; round < ROUNDS; round++) {
        Handle ta = aclCreateTensor(dims, 2, 0, NULL, 0, 2, dims, 2, a), tb = aclCreateTensor(dims, 2, 0, NULL, 0, 2, dims, 2, b);
        Handle to = aclCreateTensor(dims, 2, 0, NULL, 0, 2, dims, 2, out), ts = aclCreateTensor(&dims[0], 1, 0, NULL, 0, 2, &dims[0], 1, sum), executor;
        uint64_t workspace;
        (void)one;
        for (int k = 0; k < SIDE * SIDE; k++) ((float *)host)[k] = k % SIDE == k / SIDE;
        DO(msptiActivityPushExternalCorrelationId(3, (uint64_t)round));
        DO(aclrtMemcpyAsync(a, bytes, host, bytes, 1, streams[0]));
        DO(aclrtRecordEvent(events[0], streams[0]));
        DO(aclrtMemsetAsync(b, bytes, 0, bytes, streams[1]));
        DO(aclrtStreamWaitEvent(streams[1], events[0]));
        DO(aclnnAddGetWorkspaceSize(ta, tb, scalar, to, &workspace, &executor)); DO(aclnnAdd(NULL, 0, executor, streams[1]));
        DO(aclnnMmGetWorkspaceSize(to, ta, tb, 0, &workspace, &executor)); DO(aclnnMm(NULL, 0, executor, streams[1]));
        DO(aclnnReduceSumGetWorkspaceSize(tb, axis, false, 0, ts, &workspace, &executor)); DO(aclnnReduceSum(NULL, 0, executor, streams[1]));
        DO(aclrtRecordEvent(events[1], streams[1]));
        DO(aclrtMemcpyAsync(host, SIDE * 4, sum, SIDE * 4, 2, streams[1]));
        int32_t status;
        DO(aclrtQueryEventStatus(events[1], &status));
        DO(aclrtSynchronizeStream(streams[1]));
        float milliseconds;
        DO(aclrtEventElapsedTime(&milliseconds, events[0], events[1]));
        for (int k = 0; k < SIDE; k++) if (((float *)host)[k] != 1) *wrong += 1;
        Handle members[2] = {ta, tb}, list = aclCreateTensorList(members, 2);
        DO(aclnnForeachZeroInplaceGetWorkspaceSize(list, &workspace, &executor)); DO(aclnnForeachZeroInplace(NULL, 0, executor, streams[0]));
        uint64_t last;
        DO(msptiActivityPopExternalCorrelationId(3, &last));
        DO(aclDestroyTensorList(list)); DO(aclDestroyTensor(to)); DO(aclDestroyTensor(ts));
        DO(aclrtSynchronizeStream(streams[0]));
    }
    DO(aclDestroyScalar(scalar)); DO(aclDestroyIntArray(axis));
    DO(aclrtDestroyStream(streams[0])); DO(aclrtDestroyStreamForce(streams[1]));
    for (int k = 0; k < 2; k++) DO(aclrtDestroyEvent(events[k]));
    DO(aclrtFree(a)); DO(aclrtFree(b)); DO(aclrtFree(out)); DO(aclrtFree(sum)); DO(aclrtFreeHost(host));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    float wrong[THREADS] = {0};
    Handle subscriber;
    for (int again = 0; again < 2; again++) {
        DO(aclInit(NULL));
        DO(aclrtSetDevice(0));
        DO(msptiSubscribe(&subscriber, NULL, NULL));
        DO(msptiActivityRegisterCallbacks(ask, take));
        for (int kind = 2; kind <= 10; kind += 4) DO(msptiActivityEnable(kind == 6 ? 8 : kind));
        mtsimActivityEnable(1);
        for (int k = 0; k < THREADS; k++) pthread_create(&threads[k], NULL, work, &wrong[k]);
        for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
        DO(aclrtSynchronizeDevice());
        char *log = malloc(mtsimActivityRead(NULL, 0) * 128 + 1);
        if (mtsimActivityRead(log, 1 << 20) < THREADS * ROUNDS * 4) wrong[0] += 1;
        free(log);
        mtsimActivityEnable(0);
        DO(msptiUnsubscribe(subscriber));
        DO(msptiActivityFlushAll(1));
        DO(aclFinalize());
    }
    for (int kind = 1; kind <= 11; kind++) if (mtsimLiveHandles(kind)) { fprintf(stderr, "handles of kind %d are left\n", kind); return 1; }
    for (int k = 0; k < THREADS; k++) if (wrong[k] != 0) { fprintf(stderr, "thread %d: %g wrong values\n", k, wrong[k]); return 1; }
    printf("%llu bytes of records\n", (unsigned long long)records);
    return records ? 0 : 1;
}
