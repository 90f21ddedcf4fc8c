/* Parameters of operators: tensors, scalars, arrays and lists. Host-side descriptions only; they copy what they are given. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static const struct { int dtype; const char *name; } TYPES[] = {
    {DT_FLOAT, "FLOAT"}, {DT_FLOAT16, "FLOAT16"}, {DT_INT8, "INT8"}, {DT_INT32, "INT32"}, {DT_UINT8, "UINT8"},
    {DT_INT16, "INT16"}, {DT_INT64, "INT64"}, {DT_DOUBLE, "DOUBLE"}, {DT_BOOL, "BOOL"}, {DT_BF16, "BF16"},
};

const char *dtype_name(int dtype)
{
    for (size_t k = 0; k < sizeof TYPES / sizeof *TYPES; k++)
        if (TYPES[k].dtype == dtype) return TYPES[k].name;
    return "an unknown type";
}

bool is_contiguous(const Tensor *tensor)
{
    int64_t expected = 1;
    for (int k = tensor->nd - 1; k >= 0; k--) {
        if (tensor->dims[k] != 1 && tensor->strides[k] != expected) return false;
        expected *= tensor->dims[k];
    }
    return true;
}

static int64_t last_element(const Tensor *tensor) /* index of the farthest element in the storage, or -1 */
{
    int64_t last = tensor->offset;
    for (int k = 0; k < tensor->nd; k++) {
        if (tensor->dims[k] == 0) return -1;
        last += (tensor->dims[k] - 1) * tensor->strides[k];
    }
    return last;
}

static int describe(Tensor *tensor, const int64_t *dims, uint64_t nd, int dtype, const int64_t *strides, int64_t offset, int format,
                    const int64_t *storage_dims, uint64_t storage_nd, void *address)
{
    if (nd > MAX_DIMS || storage_nd > MAX_DIMS) return fail(E_NN_PARAM, "aclCreateTensor: more than %d dimensions", MAX_DIMS);
    if ((nd && !dims) || (storage_nd && !storage_dims)) return fail(E_NN_NULL, "aclCreateTensor: the dimensions are NULL");
    if (!item_size(dtype)) return fail(E_NN_PARAM, "aclCreateTensor: the simulator does not know data type %d", dtype);
    int rank = format == FORMAT_NCHW || format == FORMAT_NHWC ? 4 : format == FORMAT_NCDHW || format == FORMAT_NDHWC ? 5
        : format == FORMAT_NCL ? 3 : format == FORMAT_NC ? 2 : format == FORMAT_ND ? -1 : -2;
    if (rank == -2) return fail(E_NN_PARAM, "aclCreateTensor: format %d is unknown (are offset and format swapped?)", format);
    if (rank >= 0 && rank != (int)nd)
        return fail(E_NN_PARAM, "aclCreateTensor: format %d is for %d dimensions, the view has %d (are offset and format swapped?)", format, rank, (int)nd);
    if (offset < 0) return fail(E_NN_PARAM, "aclCreateTensor: the offset is negative");
    memset(tensor, 0, sizeof *tensor);
    tensor->nd = (int)nd;
    tensor->dtype = dtype;
    tensor->format = format;
    tensor->offset = offset;
    tensor->address = address;
    tensor->storage_nd = (int)storage_nd;
    int64_t running = 1;
    for (int k = (int)nd - 1; k >= 0; k--) {
        if (dims[k] < 0) return fail(E_NN_PARAM, "aclCreateTensor: dimension %d is negative", k);
        tensor->dims[k] = dims[k];
        tensor->strides[k] = strides ? strides[k] : running;
        if (tensor->strides[k] < 0) return fail(E_NN_PARAM, "aclCreateTensor: stride %d is negative", k);
        running *= dims[k];
    }
    tensor->storage_size = 1;
    for (int k = 0; k < (int)storage_nd; k++) {
        if (storage_dims[k] < 0) return fail(E_NN_PARAM, "aclCreateTensor: storage dimension %d is negative", k);
        tensor->storage_dims[k] = storage_dims[k];
        tensor->storage_size *= storage_dims[k];
    }
    if (last_element(tensor) >= tensor->storage_size)
        return fail(E_NN_PARAM, "aclCreateTensor: the view reaches element %lld of a storage of %lld (are offset and format swapped?)",
                    (long long)last_element(tensor), (long long)tensor->storage_size);
    return OK;
}

/* That the tensor's storage is live device memory; at launch also takes the block's serial number. */
int check_addresses(Tensor *tensor, bool launching, const char *op, const char *argument)
{
    if (numel(tensor) == 0) return OK;
    uint64_t size = (uint64_t)tensor->storage_size * (uint64_t)item_size(tensor->dtype);
    BlockInfo block;
    bool inside = device_range(tensor->address, size, &block);
    if (block.device < 0)
        return fail(E_NN_PARAM, "aclnn%s: %s is at host address %p, not in device memory", op, argument, tensor->address);
    if ((uintptr_t)tensor->address % 32) return fail(E_NN_PARAM, "aclnn%s: the storage of %s at %p is not aligned to 32 bytes", op, argument, tensor->address);
    if (!inside)
        return fail(E_NN_PARAM, "aclnn%s: the storage of %s (%llu bytes at %p) is not inside an allocated block", op, argument,
                    (unsigned long long)size, tensor->address);
    if (launching) tensor->serial = block.serial;
    tensor->block_device = block.device;
    return OK;
}

EXPORT aclTensor *aclCreateTensor(const int64_t *dims, uint64_t nd, int32_t dtype, const int64_t *strides, int64_t offset, int32_t format,
                                  const int64_t *storage_dims, uint64_t storage_nd, void *address)
{
    Tensor *tensor = malloc(sizeof *tensor);
    if (!tensor) return NULL;
    if (describe(tensor, dims, nd, dtype, strides, offset, format, storage_dims, storage_nd, address) != OK) {
        free(tensor);
        return NULL;
    }
    handle_add(tensor, H_TENSOR);
    return tensor;
}

EXPORT int32_t aclInitTensor(aclTensor *tensor, const int64_t *dims, uint64_t nd, int32_t dtype, const int64_t *strides, int64_t offset,
                             int32_t format, const int64_t *storage_dims, uint64_t storage_nd, void *address)
{
    if (!handle_live(tensor, H_TENSOR)) return fail(E_NN_NULL, "aclInitTensor: this is no live aclTensor");
    Tensor fresh;
    CHECK(describe(&fresh, dims, nd, dtype, strides, offset, format, storage_dims, storage_nd, address));
    *tensor = fresh;
    return OK;
}

static void expect_live(bool live, const void *object, const char *name)
{
    if (!live) die("%s: %p is not live (destroyed twice, or a member of a list that was destroyed)", name, object);
}

static int32_t destroy(const void *object, HandleKind kind, const char *name)
{
    if (object) expect_live(handle_retire(object, kind), object, name); /* NULL is allowed */
    return OK;
}

EXPORT int32_t aclDestroyTensor(const aclTensor *tensor) { return destroy(tensor, H_TENSOR, "aclDestroyTensor"); }

EXPORT aclScalar *aclCreateScalar(void *value, int32_t dtype)
{
    if (!value) { set_error("aclCreateScalar: the value is NULL"); return NULL; }
    Scalar made = {.dtype = dtype};
    switch (dtype) {
    case DT_DOUBLE: made.is_float = true; memcpy(&made.d, value, 8); break;
    case DT_FLOAT: { float f; memcpy(&f, value, 4); made.is_float = true; made.d = f; break; }
    case DT_INT64: memcpy(&made.i, value, 8); break;
    case DT_INT32: { int32_t i; memcpy(&i, value, 4); made.i = i; break; }
    case DT_INT16: { int16_t i; memcpy(&i, value, 2); made.i = i; break; }
    case DT_INT8: made.i = *(int8_t *)value; break;
    case DT_UINT8: made.i = *(uint8_t *)value; break;
    case DT_BOOL: made.i = *(uint8_t *)value != 0; break;
    default: set_error("aclCreateScalar: the simulator does not know scalars of type %d", dtype); return NULL;
    }
    if (made.is_float) made.i = made.d >= -9.2e18 && made.d <= 9.2e18 ? (int64_t)made.d : 0;
    else made.d = (double)made.i;
    Scalar *scalar = malloc(sizeof *scalar);
    if (!scalar) return NULL;
    *scalar = made;
    handle_add(scalar, H_SCALAR);
    return scalar;
}

EXPORT int32_t aclDestroyScalar(const aclScalar *scalar) { return destroy(scalar, H_SCALAR, "aclDestroyScalar"); }

#define ARRAY(Name, Item, KIND)                                                                                     \
    EXPORT acl##Name *aclCreate##Name(const Item *values, uint64_t size)                                            \
    {                                                                                                               \
        if (size && !values) { set_error("aclCreate" #Name ": the values are NULL"); return NULL; }           \
        acl##Name *array = malloc(sizeof *array + size * sizeof *values);                                           \
        if (!array) return NULL;                                                                                    \
        array->size = size;                                                                                         \
        array->values = (Item *)(array + 1);                                                                        \
        if (size) memcpy(array->values, values, size * sizeof *values);                                             \
        handle_add(array, KIND);                                                                                    \
        return array;                                                                                               \
    }                                                                                                               \
    EXPORT int32_t aclDestroy##Name(const acl##Name *array) { return destroy(array, KIND, "aclDestroy" #Name); }
ARRAY(IntArray, int64_t, H_INTS)
ARRAY(FloatArray, float, H_FLOATS)
ARRAY(BoolArray, bool, H_BOOLS)

/* A list owns its members: destroying it destroys them. */
#define OWNING_LIST(Name, Member, KIND, MEMBER_KIND)                                                                \
    EXPORT acl##Name *aclCreate##Name(const acl##Member *const *values, uint64_t size)                              \
    {                                                                                                               \
        if (size && !values) { set_error("aclCreate" #Name ": the values are NULL"); return NULL; }           \
        for (uint64_t k = 0; k < size; k++)                                                                         \
            if (!handle_live(values[k], MEMBER_KIND)) {                                                             \
                set_error("aclCreate" #Name ": member %llu is not live", (unsigned long long)k);              \
                return NULL;                                                                                        \
            }                                                                                                       \
        acl##Name *list = malloc(sizeof *list + size * sizeof *values);                                             \
        if (!list) return NULL;                                                                                     \
        list->size = size;                                                                                          \
        list->values = (acl##Member **)(list + 1);                                                                  \
        if (size) memcpy(list->values, values, size * sizeof *values);                                              \
        handle_add(list, KIND);                                                                                     \
        return list;                                                                                                \
    }                                                                                                               \
    EXPORT int32_t aclDestroy##Name(const acl##Name *list)                                                          \
    {                                                                                                               \
        if (!list) return OK;                                                                                       \
        expect_live(handle_remove(list, KIND), list, "aclDestroy" #Name);                                           \
        for (uint64_t k = 0; k < list->size; k++) aclDestroy##Member(list->values[k]);                              \
        quarantine((void *)list);                                                                                   \
        return OK;                                                                                                  \
    }
OWNING_LIST(TensorList, Tensor, H_TENSORS, H_TENSOR)
OWNING_LIST(ScalarList, Scalar, H_SCALARS, H_SCALAR)

#define LIVE(tensor, function) do { if (!handle_live(tensor, H_TENSOR)) return fail(E_NN_NULL, function ": this is no live aclTensor"); } while (0)

static int copy_out(const int64_t *from, int nd, int64_t **to, uint64_t *size)
{
    if (!to || !size) return fail(E_NN_NULL, "a result pointer is NULL");
    *to = malloc((size_t)(nd ? nd : 1) * sizeof **to);
    if (!*to) return fail(E_NN_PARAM, "the host is out of memory");
    memcpy(*to, from, (size_t)nd * sizeof **to);
    *size = (uint64_t)nd;
    return OK;
}

EXPORT int32_t aclGetViewShape(const aclTensor *tensor, int64_t **dims, uint64_t *size)
{
    LIVE(tensor, "aclGetViewShape");
    return copy_out(tensor->dims, tensor->nd, dims, size);
}

EXPORT int32_t aclGetViewStrides(const aclTensor *tensor, int64_t **strides, uint64_t *size)
{
    LIVE(tensor, "aclGetViewStrides");
    return copy_out(tensor->strides, tensor->nd, strides, size);
}

EXPORT int32_t aclGetStorageShape(const aclTensor *tensor, int64_t **dims, uint64_t *size)
{
    LIVE(tensor, "aclGetStorageShape");
    return copy_out(tensor->storage_dims, tensor->storage_nd, dims, size);
}

#define GETTER(function, Type, field)                                                    \
    EXPORT int32_t function(const aclTensor *tensor, Type *value)                        \
    {                                                                                    \
        LIVE(tensor, #function);                                                         \
        if (!value) return fail(E_NN_NULL, #function ": the result pointer is NULL");    \
        *value = (Type)tensor->field;                                                    \
        return OK;                                                                       \
    }
GETTER(aclGetViewOffset, int64_t, offset)
GETTER(aclGetFormat, int32_t, format)
GETTER(aclGetDataType, int32_t, dtype)

EXPORT int32_t aclGetTensorListSize(const aclTensorList *list, uint64_t *size)
{
    if (!handle_live(list, H_TENSORS) || !size) return fail(E_NN_NULL, "aclGetTensorListSize: NULL or dead argument");
    *size = list->size;
    return OK;
}

EXPORT int32_t aclSetRawTensorAddr(aclTensor *tensor, void *address)
{
    LIVE(tensor, "aclSetRawTensorAddr");
    tensor->address = address;
    return OK;
}

EXPORT int32_t aclGetRawTensorAddr(const aclTensor *tensor, void **address)
{
    LIVE(tensor, "aclGetRawTensorAddr");
    if (!address) return fail(E_NN_NULL, "aclGetRawTensorAddr: NULL argument");
    *address = tensor->address;
    return OK;
}
