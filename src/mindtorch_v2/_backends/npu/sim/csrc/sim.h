/* What the parts of the simulator share: error codes, devices, streams, tensors, operator calls.
 *
 * The simulator exports the C ABI of the Ascend runtime (libascendcl, libnnopbase, libopapi, libmspti). Names that begin
 * with mtsim exist only here; everything else has the name and the calling convention that CANN documents. */
#ifndef MINDTORCH_NPU_SIM_H
#define MINDTORCH_NPU_SIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- error codes of ACL and aclnn ---- */
enum {
    OK = 0,
    E_PARAM = 100000, E_NOT_INITIALISED = 100001, E_REPEATED_INIT = 100002, E_REPEATED_FINALIZE = 100037,
    E_RT_PARAM = 107000, E_DEVICE_ID = 107001, E_NO_CONTEXT = 107002, E_STREAM_CONTEXT = 107003,
    E_NO_TIMESTAMP = 107006, E_UNALIGNED = 107008, E_WAIT_TIMEOUT = 107019,
    E_BAD_ALLOC = 200000, E_UNSUPPORTED = 207000, E_MEMORY = 207001, E_NO_DEVICE = 207004,
    E_INTERNAL = 507000, E_AICORE = 507015, E_STREAM_TIMEOUT = 507046, E_EVENT_TIMEOUT = 507047, E_DEVICE_LOST = 507899,
    E_NN_NULL = 161001, E_NN_PARAM = 161002, E_NN_RUNTIME = 361001, E_NN_INNER_NULL = 561103,
};

/* ---- data types, formats ---- */
typedef enum {
    DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 6, DT_INT64 = 9, DT_DOUBLE = 11,
    DT_BOOL = 12, DT_BF16 = 27, DT_UNDEFINED = -1,
} DataType;
enum { FORMAT_NCHW = 0, FORMAT_NHWC = 1, FORMAT_ND = 2, FORMAT_NDHWC = 27, FORMAT_NCDHW = 30, FORMAT_NC = 35, FORMAT_NCL = 47 };

#define MAX_DIMS 8
#define TICK_NS 20 /* the device counter runs at 50 MHz */
#define MAX_DEVICES 16

/* ---- settings (settings.c) ---- */
typedef struct {
    double start_us, kernel_us, copy_us, event_us;             /* launch to start; fixed parts of kernels, copies, events */
    double hbm_gbs, pcie_gbs, pageable_gbs, peer_gbs;          /* bytes per ns */
    double cube_half_tflops, cube_float_tflops, vector_tflops; /* 1e3 operations per ns */
    double drift_ppm, boot_s;                                  /* of the device clock against the host's */
} Model;

typedef struct {
    int devices;
    uint64_t memory_bytes; /* of one device */
    Model model;
    bool tail_writes;      /* kernels write the padding after an output, as real ones may */
    bool poison;           /* new memory is filled with 0xCB */
    bool preloaded;        /* libmspti.so counts as preloaded */
    char soc[64];
} Settings;
extern Settings settings;
void settings_load(void);

/* Every operation of a kind is counted; true when this one is to fail. */
typedef enum { FAULT_MALLOC, FAULT_KERNEL, FAULT_MEMCPY, FAULT_EVENT, FAULT_LAUNCH, FAULT_LOST, FAULT_KINDS } FaultKind;
bool fault_hits(FaultKind kind);

/* ---- errors (errors.c): the text belongs to the thread ---- */
void set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define fail(code, ...) (set_error(__VA_ARGS__), (code))
const char *error_text(void); /* of this thread, not cleared */
void error_clear(void);
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- live handles (handles.c) ---- */
typedef enum {
    H_NONE, H_CONTEXT, H_STREAM, H_EVENT, H_TENSOR, H_SCALAR, H_INTS, H_FLOATS, H_BOOLS, H_TENSORS, H_SCALARS, H_EXECUTOR,
    H_KINDS
} HandleKind;
void handle_add(const void *pointer, HandleKind kind);
bool handle_remove(const void *pointer, HandleKind kind); /* false if it was not there */
bool handle_live(const void *pointer, HandleKind kind);
uint64_t handle_removals(void); /* grows with each handle that dies, but for executors */
bool handle_retire(const void *pointer, HandleKind kind); /* both: removes and quarantines, if it was there */
void quarantine(void *pointer); /* frees it later, so that a stale handle is not taken for a new one */

/* ---- clocks (clock.c) ---- */
uint64_t host_ns(void);     /* CLOCK_MONOTONIC */
uint64_t realtime_ns(void); /* CLOCK_REALTIME */
uint64_t ticks_at(int device, uint64_t host);
uint64_t ticks_now(int device);
uint64_t ticks_on(int device, int other, uint64_t ticks); /* a moment of another device's clock on this one's */
uint64_t ticks_of_us(double us);
void wait_for_ticks(int device, uint64_t ticks);
bool wait_for_ticks_until(int device, uint64_t ticks, uint64_t deadline_host_ns); /* false: the deadline came first */

/* ---- memory (memory.c) ---- */
typedef struct { uint64_t serial; uint64_t size; int device; char *bytes; } BlockInfo; /* bytes: where the simulator keeps the range */
bool is_device_address(const void *pointer, int *device);
bool device_range(const void *pointer, uint64_t size, BlockInfo *info); /* wholly inside one live block; device is -1 for a host address */
uint64_t memory_changes(void); /* grows with each block that comes or goes */
char *device_bytes(const void *pointer);                               /* where the simulator keeps these bytes */
bool is_pinned(const void *pointer, uint64_t size);
void memory_release_device(int device);
int memory_check_guards(int device);
void memory_reset_after_configuration(void);

/* ---- devices, contexts, streams, events ---- */
typedef struct Stream Stream;
typedef struct Context {
    int device;
    bool is_default;
    Stream *default_stream;
} Context;
Context *context_current(void); /* NULL without one; sets no error text */
int need_context(Context **context);
bool device_lost(int device);
uint32_t device_generation(int device); /* grows when a device is reset */
void device_lose(int device);
bool forked_child(void);
bool runtime_ready(void);
int runtime_peer_enabled(int from, int to);
int for_each_stream(Context *context, int (*visit)(Stream *, void *), void *argument);

typedef enum { TASK_KERNEL, TASK_COPY, TASK_SET, TASK_RECORD, TASK_WAIT, TASK_RESET, TASK_MARK } TaskKind;
typedef struct EventRecord EventRecord;
typedef struct aclOpExecutor aclOpExecutor;
typedef struct Task {
    struct Task *next;
    TaskKind kind;
    uint64_t submit_ticks, correlation;
    union {
        struct { aclOpExecutor *executor; bool keep; } kernel;
        struct { void *to; const void *from; uint64_t size; int kind; uint64_t to_serial, from_serial; bool pageable; } copy;
        struct { void *to; int value; uint64_t size; uint64_t to_serial; } set;
        struct { EventRecord *record; } event;
        struct { uint64_t id; const char *name, *domain; int flag; } mark;
    };
} Task;

struct Stream {
    Context *context;
    int device, id;
    uint32_t flags;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    Task *first, *last;
    uint64_t submitted, completed;
    uint64_t end_ticks; /* when the last task ends on the device's clock */
    bool stopping, abandoned, sleeping; /* sleeping: the worker waits for work and has to be woken */
    int waiters;                        /* threads in stream_synchronize */
    int error;          /* of the first failed task since the last synchronisation */
    char error_text[512];
    struct Stream *next;
};
int stream_of(void *handle, Stream **stream); /* NULL means the default stream of the current context */
Stream *stream_create(Context *context, uint32_t flags);
void stream_destroy(Stream *stream, bool drain);
Task *task_new(TaskKind kind);
int stream_submit(Stream *stream, Task *task);      /* takes the task over */
int stream_synchronize(Stream *stream, int timeout_ms);
void *stream_worker(void *stream);

struct EventRecord { /* one call of aclrtRecordEvent */
    int references;
    bool done, failed;
    int device;
    uint64_t ticks;
};
void record_finish(EventRecord *record, uint64_t ticks, bool failed);
bool record_await(EventRecord *record, uint64_t *ticks, const bool *give_up); /* false if it failed or was given up */
void record_release(EventRecord *record);
void records_wake(void);

/* ---- tensors and the other parameters of operators (objects.c) ---- */
typedef struct aclTensor {
    int nd, dtype, format, storage_nd;
    int64_t dims[MAX_DIMS], strides[MAX_DIMS], storage_dims[MAX_DIMS];
    int64_t offset, storage_size; /* in elements */
    void *address;                /* of the storage; a device address */
    char *data;                   /* of element 0, where the simulator keeps it; set while a kernel runs */
    uint64_t serial;              /* of the memory block, taken at launch */
    int block_device;
} aclTensor;
typedef aclTensor Tensor;
typedef struct aclScalar { int dtype; bool is_float; int64_t i; double d; } aclScalar;
typedef aclScalar Scalar;
typedef struct aclIntArray { uint64_t size; int64_t *values; } aclIntArray;
typedef struct aclFloatArray { uint64_t size; float *values; } aclFloatArray;
typedef struct aclBoolArray { uint64_t size; bool *values; } aclBoolArray;
typedef struct aclTensorList { uint64_t size; aclTensor **values; } aclTensorList;
typedef struct aclScalarList { uint64_t size; aclScalar **values; } aclScalarList;

static inline int item_size(int dtype) /* 0 for a type the simulator does not know */
{
    static const signed char SIZES[] = {[DT_FLOAT] = 4, [DT_FLOAT16] = 2, [DT_INT8] = 1, [DT_INT32] = 4, [DT_UINT8] = 1, [DT_INT16] = 2,
                                        [DT_INT64] = 8, [DT_DOUBLE] = 8, [DT_BOOL] = 1, [DT_BF16] = 2};
    return dtype >= 0 && dtype < (int)sizeof SIZES ? SIZES[dtype] : 0;
}
const char *dtype_name(int dtype);
static inline int64_t numel(const Tensor *tensor)
{
    int64_t count = 1;
    for (int k = 0; k < tensor->nd; k++) count *= tensor->dims[k];
    return count;
}
bool is_contiguous(const Tensor *tensor);
int check_addresses(Tensor *tensor, bool launching, const char *op, const char *argument);

/* ---- calls of operators (executor.c) ---- */
typedef enum {
    A_TENSOR, A_OUT, A_OPTIONAL, A_OPTIONAL_OUT, A_LIST, A_OUT_LIST, A_SCALAR, A_INTS, A_OPTIONAL_INTS, A_BOOLS, A_INT,
    A_DOUBLE, A_STRING
} ArgKind;
typedef struct {
    ArgKind kind;
    const char *name;
    const void *handle;                    /* what the caller passed, to see that it still lives at launch */
    union {
        Tensor tensor;
        struct { uint64_t size; Tensor *values; } list;
        Scalar scalar;
        struct { uint64_t size; int64_t values[32]; } ints;
        struct { uint64_t size; bool values[8]; } bools;
        int64_t i;
        double d;
        char string[32];
    };
} Arg;

typedef struct Call Call;
typedef int (*Kernel)(Call *call);
typedef struct {
    const char *name, *kernel_name, *kernel_type;
    Kernel kernel;
    int variant;
} OpEntry;

/* A kernel is one function called twice. While call->planning is set it checks the arguments and says what the work
 * costs; otherwise it computes. Outputs are tensors of the call, already resolved to bytes. */
struct Call {
    const OpEntry *op;
    bool planning;
    bool synchronous;           /* phase 2 returns only after the kernel ran (its output's shape depends on the data) */
    uint64_t operations, bytes; /* the cost; bytes default to the sum over tensors */
    bool cube;
    uint64_t workspace;
    int count;
    Arg *args;
};
struct aclOpExecutor {
    Call call;
    bool repeatable;
    int device, room;           /* room: for how many arguments */
    int from;                   /* the device of its tensors, if all are on one; else -1 */
    uint64_t changes, removals; /* of memory and of handles, when it was planned */
    void *workspace;
    Task task;                  /* of its launch */
    aclOpExecutor *next_unused;
};
int executor_run(aclOpExecutor *executor);    /* by the stream's worker */
void executor_free(aclOpExecutor *executor);
uint64_t executor_ticks(const aclOpExecutor *executor);

#define TENSOR(k) (&call->args[k].tensor)
#define PRESENT(k) (call->args[k].handle != NULL)
#define SCALAR(k) (&call->args[k].scalar)
#define INT(k) (call->args[k].i)
#define DOUBLE(k) (call->args[k].d)
#define LIST(k) (&call->args[k].list)
#define INTS(k) (&call->args[k].ints)
#define REFUSE(...) return fail(E_NN_PARAM, __VA_ARGS__)
#define REQUIRE(condition, ...) do { if (!(condition)) return fail(E_NN_PARAM, __VA_ARGS__); } while (0)
#define CHECK(expression) do { int code_ = (expression); if (code_ != OK) return code_; } while (0)

/* ---- activities (activity.c, mspti.c) ---- */
typedef enum { ACTIVITY_KERNEL = 1, ACTIVITY_COPY = 2, ACTIVITY_SET = 3, ACTIVITY_EVENT = 4, ACTIVITY_WAIT = 5, ACTIVITY_FAILED = 6 } ActivityKind;
typedef struct {
    uint32_t kind, device;
    int32_t stream, copy_kind;
    uint64_t correlation, submit_ticks, start_ticks, end_ticks, bytes, operations;
    const char *name, *type; /* live as long as the library */
} mtsimActivity;
void activity_record(const mtsimActivity *activity);
void activity_flush_file(void);
uint64_t activity_next_correlation(void);
const char *intern(const char *text);

bool mspti_times_calls(void); /* whether somebody wants to know when operators were called */
void mspti_launch(uint64_t correlation);
void mspti_kernel(const mtsimActivity *activity);
void mspti_api(const char *op, uint64_t start_realtime_ns);
void mspti_copy(int copy_kind, uint64_t bytes, uint64_t start, int device, int stream, bool is_async);
void mspti_set(int value, uint64_t bytes, uint64_t start, int device, int stream, bool is_async);
void mspti_memory(bool is_free, uint64_t start, const void *address, uint64_t bytes, int device);
void mspti_mark_done(const Task *task, const Stream *stream, uint64_t ticks);

#endif
