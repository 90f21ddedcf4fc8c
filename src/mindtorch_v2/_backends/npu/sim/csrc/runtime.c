/* Initialisation, devices and contexts. A context belongs to a thread; a device has one default context for all. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *settings_complaint(void);

typedef struct { Context *context; int references; bool lost; uint32_t peers, generation; } Device;
static Device devices[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised, finalized, in_child, fork_hook;
static __thread Context *current;

static void after_fork(void)
{
    if (initialised) in_child = true;
}

bool forked_child(void) { return in_child; }
bool runtime_ready(void) { return initialised; }

static int visible(int *count) /* how many devices this process sees */
{
    settings_load();
    int real = settings.devices;
    const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
    *count = real;
    if (!list) return OK;
    int seen = 0, last = -1;
    while (*list >= '0' && *list <= '9') {
        char *end;
        long id = strtol(list, &end, 10);
        if (id <= last) { seen = 0; break; }
        if (id >= real) break;
        last = (int)id;
        seen++;
        if (*end != ',') break;
        list = end + 1;
    }
    *count = seen;
    return OK;
}

EXPORT int drvGetDevNum(uint32_t *count)
{
    if (!count) return 3;
    settings_load();
    *count = (uint32_t)settings.devices;
    return 0;
}

EXPORT int aclInit(const char *path)
{
    settings_load();
    if (path && *path) {
        FILE *file = fopen(path, "r");
        if (!file) return fail(E_PARAM, "aclInit: the configuration file %s cannot be read", path);
        fclose(file);
    }
    const char *complaint = settings_complaint();
    if (complaint) return fail(E_PARAM, "%s", complaint);
    pthread_mutex_lock(&lock);
    int code = OK;
    if (in_child) code = fail(E_DEVICE_LOST, "the NPU was initialised before fork; a child must be started with spawn");
    else if (initialised) code = fail(E_REPEATED_INIT, "aclInit was called before");
    else {
        initialised = true;
        finalized = false;
        if (!fork_hook) pthread_atfork(NULL, NULL, after_fork);
        fork_hook = true;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static void close_device(int id)
{
    Context *context = devices[id].context;
    if (context) {
        devices[id].context = NULL;
        for_each_stream(context, NULL, NULL);
        handle_remove(context, H_CONTEXT);
        quarantine(context);
    }
    devices[id].references = 0;
    devices[id].peers = 0;
    __atomic_add_fetch(&devices[id].generation, 1, __ATOMIC_RELEASE);
    memory_release_device(id);
}

EXPORT int aclFinalize(void)
{
    pthread_mutex_lock(&lock);
    int code = OK;
    if (!initialised) code = finalized ? fail(E_REPEATED_FINALIZE, "aclFinalize was called before") : fail(E_NOT_INITIALISED, "aclFinalize before aclInit");
    else if (!in_child) {
        for (int id = 0; id < MAX_DEVICES; id++) {
            close_device(id);
            devices[id].lost = false;
        }
        initialised = false;
        finalized = true;
    }
    pthread_mutex_unlock(&lock);
    activity_flush_file();
    return code;
}

EXPORT int aclFinalizeReference(uint64_t *references)
{
    int code = aclFinalize();
    if (references) *references = 0;
    return code;
}

EXPORT const char *aclrtGetSocName(void)
{
    settings_load();
    return settings.soc;
}

/* States that no hardware is behind this library. */
EXPORT const char *mtsimBanner(void)
{
    return "mindtorch_v2 NPU simulator: an Ascend 910B-like device modelled in software, times are simulated";
}

typedef struct { char version[128]; char major[64], minor[64], release[64], patch[64]; char reserved[128]; } PackageVersion;

EXPORT int aclsysGetCANNVersion(int32_t package, PackageVersion *version)
{
    if (!version || package < 0) return fail(E_PARAM, "aclsysGetCANNVersion: bad argument");
    memset(version, 0, sizeof *version);
    snprintf(version->version, sizeof version->version, "8.1.RC1-simulator");
    snprintf(version->major, sizeof version->major, "8");
    snprintf(version->minor, sizeof version->minor, "1");
    snprintf(version->release, sizeof version->release, "RC1");
    return OK;
}

EXPORT int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
    if (!major || !minor || !patch) return fail(E_PARAM, "aclrtGetVersion: NULL argument");
    *major = 1;
    *minor = 14;
    *patch = 0;
    return OK;
}

EXPORT int aclrtGetDeviceCount(uint32_t *count)
{
    if (!count) return fail(E_PARAM, "aclrtGetDeviceCount: NULL argument");
    int seen;
    CHECK(visible(&seen));
    *count = (uint32_t)seen;
    return seen ? OK : fail(E_NO_DEVICE, "the simulator shows no device");
}

static int check_device(int id)
{
    int count;
    CHECK(visible(&count));
    if (id < 0 || id >= count) return fail(E_DEVICE_ID, "device %d does not exist; there are %d", id, count);
    return OK;
}

static int check_process(void)
{
    if (in_child) return fail(E_DEVICE_LOST, "the NPU was initialised before fork; a child must be started with spawn");
    if (!initialised) return fail(E_NOT_INITIALISED, "aclInit was not called");
    return OK;
}

EXPORT int aclrtSetDevice(int32_t id)
{
    CHECK(check_process());
    CHECK(check_device(id));
    pthread_mutex_lock(&lock);
    Device *device = &devices[id];
    int code = OK;
    if (device->lost) code = fail(E_DEVICE_LOST, "device %d is lost", id);
    else {
        if (!device->context) {
            Context *context = calloc(1, sizeof *context);
            if (!context) die("the host is out of memory");
            context->device = id;
            context->is_default = true;
            handle_add(context, H_CONTEXT);
            context->default_stream = stream_create(context, 0);
            device->context = context;
        }
        device->references++;
        current = device->context;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int reset(int32_t id, bool force)
{
    CHECK(check_process());
    CHECK(check_device(id));
    pthread_mutex_lock(&lock);
    int code = OK;
    if (devices[id].references == 0) code = fail(E_DEVICE_ID, "device %d was not set", id);
    else if (--devices[id].references == 0 || force) {
        close_device(id);
        devices[id].lost = false;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int aclrtResetDevice(int32_t id) { return reset(id, false); }
EXPORT int aclrtResetDeviceForce(int32_t id) { return reset(id, true); }

Context *context_current(void)
{
    if (!current || in_child) return NULL;
    return handle_live(current, H_CONTEXT) ? current : NULL;
}

int need_context(Context **context)
{
    CHECK(check_process());
    *context = context_current();
    if (!*context) return fail(E_NO_CONTEXT, "this thread has no context; call aclrtSetDevice on it first");
    if (device_lost((*context)->device)) return fail(E_DEVICE_LOST, "device %d is lost", (*context)->device);
    return OK;
}

EXPORT int aclrtGetDevice(int32_t *id)
{
    if (!id) return fail(E_PARAM, "aclrtGetDevice: NULL argument");
    Context *context = context_current();
    if (!context) return fail(E_NO_CONTEXT, "this thread has no context; call aclrtSetDevice on it first");
    *id = context->device;
    return OK;
}

uint32_t device_generation(int id) { return __atomic_load_n(&devices[id].generation, __ATOMIC_ACQUIRE); }
bool device_lost(int id) { return __atomic_load_n(&devices[id].lost, __ATOMIC_ACQUIRE); }
void device_lose(int id) { __atomic_store_n(&devices[id].lost, true, __ATOMIC_RELEASE); }

static int synchronize_one(Stream *stream, void *timeout) { return stream_synchronize(stream, *(int *)timeout); }

EXPORT int aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds)
{
    Context *context;
    CHECK(need_context(&context));
    int code = for_each_stream(context, synchronize_one, &milliseconds);
    activity_flush_file();
    return code == OK ? memory_check_guards(context->device) : code;
}

EXPORT int aclrtSynchronizeDevice(void) { return aclrtSynchronizeDeviceWithTimeout(-1); }

EXPORT int aclrtCreateContext(Context **context, int32_t id)
{
    if (!context) return fail(E_PARAM, "aclrtCreateContext: NULL argument");
    CHECK(check_process());
    CHECK(check_device(id));
    Context *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return fail(E_BAD_ALLOC, "the host is out of memory");
    fresh->device = id;
    handle_add(fresh, H_CONTEXT);
    fresh->default_stream = stream_create(fresh, 0);
    *context = current = fresh;
    return OK;
}

EXPORT int aclrtDestroyContext(Context *context)
{
    CHECK(check_process());
    if (!handle_live(context, H_CONTEXT)) return fail(E_RT_PARAM, "aclrtDestroyContext: this is no live context");
    if (context->is_default) return fail(E_RT_PARAM, "the default context of a device is destroyed by aclrtResetDevice");
    for_each_stream(context, NULL, NULL);
    handle_remove(context, H_CONTEXT);
    if (current == context) current = NULL;
    quarantine(context);
    return OK;
}

EXPORT int aclrtSetCurrentContext(Context *context)
{
    CHECK(check_process());
    if (!handle_live(context, H_CONTEXT)) return fail(E_RT_PARAM, "aclrtSetCurrentContext: this is no live context");
    current = context;
    return OK;
}

EXPORT int aclrtGetCurrentContext(Context **context)
{
    if (!context) return fail(E_PARAM, "aclrtGetCurrentContext: NULL argument");
    *context = context_current();
    return *context ? OK : fail(E_NO_CONTEXT, "this thread has no context; call aclrtSetDevice on it first");
}

EXPORT int aclrtGetRunMode(int32_t *mode)
{
    if (!mode) return fail(E_PARAM, "aclrtGetRunMode: NULL argument");
    *mode = 1;
    return OK;
}

EXPORT int aclGetDeviceCapability(uint32_t device, int32_t what, int64_t *value)
{
    if (!value) return fail(E_PARAM, "aclGetDeviceCapability: NULL argument");
    CHECK(check_device((int)device));
    static const int64_t VALUES[] = {24, 48, (int64_t)192 << 20};
    if (what < 0 || what > 2) return fail(E_PARAM, "aclGetDeviceCapability: attribute %d is unknown", what);
    *value = VALUES[what];
    return OK;
}

EXPORT int aclrtGetDeviceInfo(uint32_t device, int32_t what, int64_t *value)
{
    if (!value) return fail(E_PARAM, "aclrtGetDeviceInfo: NULL argument");
    CHECK(check_device((int)device));
    switch (what) {
    case 101: case 102: *value = 24; return OK;
    case 201: *value = 48; return OK;
    case 301: *value = (int64_t)settings.memory_bytes; return OK;
    case 302: *value = (int64_t)192 << 20; return OK;
    default: return fail(E_PARAM, "aclrtGetDeviceInfo: attribute %d is unknown", what);
    }
}

EXPORT int aclrtSetSysParamOpt(int32_t option, int64_t value)
{
    if (option != 0 || value < 0 || value > 1) return fail(E_PARAM, "aclrtSetSysParamOpt: option %d is unknown", option);
    return OK; /* the simulator is deterministic anyway */
}

EXPORT int aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer)
{
    if (!can) return fail(E_PARAM, "aclrtDeviceCanAccessPeer: NULL argument");
    CHECK(check_device(device));
    CHECK(check_device(peer));
    *can = device != peer;
    return OK;
}

EXPORT int aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags)
{
    Context *context;
    CHECK(need_context(&context));
    CHECK(check_device(peer));
    if (flags != 0 || peer == context->device) return fail(E_RT_PARAM, "aclrtDeviceEnablePeerAccess: bad argument");
    pthread_mutex_lock(&lock);
    devices[context->device].peers |= 1u << peer;
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int aclrtDeviceDisablePeerAccess(int32_t peer)
{
    Context *context;
    CHECK(need_context(&context));
    CHECK(check_device(peer));
    pthread_mutex_lock(&lock);
    devices[context->device].peers &= ~(1u << peer);
    pthread_mutex_unlock(&lock);
    return OK;
}

int runtime_peer_enabled(int from, int to)
{
    pthread_mutex_lock(&lock);
    bool enabled = devices[from].peers >> to & 1 || devices[to].peers >> from & 1;
    pthread_mutex_unlock(&lock);
    return enabled;
}
