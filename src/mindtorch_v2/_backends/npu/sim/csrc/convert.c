/* Conversion between storage types and compute types, and loops over strided tensors. */
#include "kernels.h"

static inline float half_to_float(uint16_t bits)
{
#ifdef __FLT16_MAX__
    _Float16 half;
    memcpy(&half, &bits, 2);
    return (float)half;
#else
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023, word;
    float value;
    if (exponent == 31) word = sign | 0x7F800000u | fraction << 13;
    else if (exponent) word = sign | (exponent + 112) << 23 | fraction << 13;
    else {
        value = (float)fraction * 0x1p-24f;
        memcpy(&word, &value, 4);
        word |= sign;
    }
    memcpy(&value, &word, 4);
    return value;
#endif
}

static inline uint16_t half_of_float(float value)
{
#ifdef __FLT16_MAX__
    _Float16 half = (_Float16)value;
    uint16_t bits;
    memcpy(&bits, &half, 2);
    return bits;
#else
    uint32_t word;
    memcpy(&word, &value, 4);
    uint32_t sign = word >> 16 & 0x8000;
    float magnitude = value < 0 ? -value : value;
    if (value != value) return (uint16_t)(sign | 0x7E00);
    if (magnitude >= 65520.0f) return (uint16_t)(sign | 0x7C00);
    float rounded = magnitude < 0x1p-14f ? magnitude + 0.5f : magnitude; /* 0.5f has the ulp of half's subnormals */
    if (magnitude < 0x1p-14f) {
        memcpy(&word, &rounded, 4);
        return (uint16_t)(sign | (word & 0x7FFFFF));
    }
    memcpy(&word, &magnitude, 4);
    word += 0xFFF + (word >> 13 & 1);
    return (uint16_t)(sign | ((word >> 13) - (112 << 10)));
#endif
}

static inline float bf16_to_float(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, 4);
    return value;
}

static inline uint16_t bf16_of_float(float value)
{
    uint32_t word;
    memcpy(&word, &value, 4);
    if ((word & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(word >> 16 | 0x40);
    return (uint16_t)((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

static inline int64_t int_of_double(double value)
{
    if (value != value) return INT64_MIN;
    if (value >= 9223372036854775808.0) return INT64_MIN;
    if (value < -9223372036854775808.0) return INT64_MIN;
    return (int64_t)value;
}

#define PLAIN(x) (x)
#define NONZERO(x) ((x) != 0)
#define TO_INT(T) (T) int_of_double
#define LOAD_LOOP(Storage, expression)                                                              \
    if (step == (int64_t)sizeof(Storage))                                                           \
        for (int64_t k = 0; k < count; k++) { Storage v; memcpy(&v, from + k * (int64_t)sizeof v, sizeof v); to[k] = (expression); } \
    else                                                                                            \
        for (int64_t k = 0; k < count; k++) { Storage v; memcpy(&v, from + k * step, sizeof v); to[k] = (expression); } \
    break;
#define STORE_LOOP(Storage, expression)                                                             \
    if (step == (int64_t)sizeof(Storage))                                                           \
        for (int64_t k = 0; k < count; k++) { Storage v = (Storage)(expression); memcpy(to + k * (int64_t)sizeof v, &v, sizeof v); } \
    else                                                                                            \
        for (int64_t k = 0; k < count; k++) { Storage v = (Storage)(expression); memcpy(to + k * step, &v, sizeof v); } \
    break;

#define LOADER(name, Type, of_float)                                                                \
    void name(Type *to, const char *from, int64_t step, int64_t count, int dtype)                   \
    {                                                                                               \
        switch (dtype) {                                                                            \
        case DT_FLOAT: LOAD_LOOP(float, of_float(v))                                                \
        case DT_DOUBLE: LOAD_LOOP(double, of_float(v))                                              \
        case DT_FLOAT16: LOAD_LOOP(uint16_t, of_float(half_to_float(v)))                            \
        case DT_BF16: LOAD_LOOP(uint16_t, of_float(bf16_to_float(v)))                               \
        case DT_INT8: LOAD_LOOP(int8_t, v)                                                          \
        case DT_UINT8: LOAD_LOOP(uint8_t, v)                                                        \
        case DT_INT16: LOAD_LOOP(int16_t, v)                                                        \
        case DT_INT32: LOAD_LOOP(int32_t, (Type)v)                                                  \
        case DT_INT64: LOAD_LOOP(int64_t, (Type)v)                                                  \
        case DT_BOOL: LOAD_LOOP(uint8_t, v != 0)                                                    \
        default: die("a kernel met data type %d", dtype);                                           \
        }                                                                                           \
    }
LOADER(load_float, float, (float))
LOADER(load_double, double, (double))
LOADER(load_int, int64_t, int_of_double)

#define STORER(name, Type, integer)                                                                 \
    void name(char *to, int64_t step, const Type *from, int64_t count, int dtype)                   \
    {                                                                                               \
        switch (dtype) {                                                                            \
        case DT_FLOAT: STORE_LOOP(float, from[k])                                                   \
        case DT_DOUBLE: STORE_LOOP(double, from[k])                                                 \
        case DT_FLOAT16: STORE_LOOP(uint16_t, half_of_float((float)from[k]))                        \
        case DT_BF16: STORE_LOOP(uint16_t, bf16_of_float((float)from[k]))                           \
        case DT_INT8: STORE_LOOP(int8_t, integer(from[k]))                                          \
        case DT_UINT8: STORE_LOOP(uint8_t, integer(from[k]))                                        \
        case DT_INT16: STORE_LOOP(int16_t, integer(from[k]))                                        \
        case DT_INT32: STORE_LOOP(int32_t, integer(from[k]))                                        \
        case DT_INT64: STORE_LOOP(int64_t, integer(from[k]))                                        \
        case DT_BOOL: STORE_LOOP(uint8_t, from[k] != 0)                                             \
        default: die("a kernel met data type %d", dtype);                                           \
        }                                                                                           \
    }
STORER(store_float, float, int_of_double)
STORER(store_double, double, int_of_double)
STORER(store_int, int64_t, PLAIN)

Compute compute_for(const Tensor *const *tensors, int count)
{
    Compute found = IN_INT;
    for (int k = 0; k < count; k++) {
        if (tensors[k]->dtype == DT_DOUBLE) return IN_DOUBLE;
        if (is_floating(tensors[k]->dtype)) found = IN_FLOAT;
    }
    return found;
}

/* ---- loops ---- */
void loop_begin(Loop *loop, int nd, const int64_t *dims)
{
    memset(loop, 0, sizeof *loop);
    loop->nd = nd;
    memcpy(loop->dims, dims, (size_t)nd * sizeof *dims);
}

bool loop_add(Loop *loop, const Tensor *tensor)
{
    if (tensor->nd > loop->nd) return false;
    int64_t *steps = loop->steps[loop->operands];
    int lead = loop->nd - tensor->nd, size = item_size(tensor->dtype);
    for (int k = 0; k < loop->nd; k++) {
        int64_t extent = k < lead ? 1 : tensor->dims[k - lead];
        if (extent != loop->dims[k] && extent != 1) return false;
        steps[k] = extent == 1 ? 0 : tensor->strides[k - lead] * size;
    }
    loop->data[loop->operands++] = tensor->data;
    return true;
}

static void merge_dims(Loop *loop) /* neighbours that can be walked as one become one */
{
    int kept = 0;
    for (int k = 0; k < loop->nd; k++) {
        if (loop->dims[k] == 1) continue;
        bool joins = kept > 0;
        for (int m = 0; m < loop->operands && joins; m++) joins = loop->steps[m][kept - 1] == loop->steps[m][k] * loop->dims[k];
        if (joins) {
            loop->dims[kept - 1] *= loop->dims[k];
            for (int m = 0; m < loop->operands; m++) loop->steps[m][kept - 1] = loop->steps[m][k];
        } else {
            loop->dims[kept] = loop->dims[k];
            for (int m = 0; m < loop->operands; m++) loop->steps[m][kept] = loop->steps[m][k];
            kept++;
        }
    }
    if (kept == 0) {
        loop->dims[0] = 1;
        for (int m = 0; m < loop->operands; m++) loop->steps[m][0] = 0;
        kept = 1;
    }
    loop->nd = kept;
}

void loop_run(Loop *loop, RowVisit visit, void *context)
{
    for (int k = 0; k < loop->nd; k++)
        if (loop->dims[k] == 0) return;
    merge_dims(loop);
    int inner = loop->nd - 1;
    int64_t at[MAX_DIMS] = {0}, steps[MAX_OPERANDS];
    char *data[MAX_OPERANDS], *row[MAX_OPERANDS];
    for (int m = 0; m < loop->operands; m++) {
        data[m] = loop->data[m];
        steps[m] = loop->steps[m][inner];
    }
    for (;;) {
        memcpy(row, data, sizeof row);
        visit(context, row, steps, loop->dims[inner]);
        int k = inner - 1;
        for (; k >= 0; k--) {
            for (int m = 0; m < loop->operands; m++) data[m] += loop->steps[m][k];
            if (++at[k] < loop->dims[k]) break;
            for (int m = 0; m < loop->operands; m++) data[m] -= loop->steps[m][k] * loop->dims[k];
            at[k] = 0;
        }
        if (k < 0) return;
    }
}

/* ---- shapes ---- */
bool same_shape(const Tensor *a, const Tensor *b)
{
    return a->nd == b->nd && !memcmp(a->dims, b->dims, (size_t)a->nd * sizeof *a->dims);
}

bool broadcasts_to(const Tensor *from, const Tensor *to)
{
    if (from->nd > to->nd) return false;
    for (int k = 0; k < from->nd; k++) {
        int64_t extent = from->dims[k];
        if (extent != 1 && extent != to->dims[to->nd - from->nd + k]) return false;
    }
    return true;
}

int refuse_shape(const Call *call, int argument)
{
    const Tensor *tensor = &call->args[argument].tensor;
    char shape[128] = "";
    size_t at = 0;
    for (int k = 0; k < tensor->nd && at < sizeof shape - 24; k++) {
        long long value = tensor->dims[k];
        at += (size_t)__builtin_snprintf(shape + at, sizeof shape - at, k ? ", %lld" : "%lld", value);
    }
    return fail(E_NN_PARAM, "aclnn%s: the shape [%s] of %s does not fit the other arguments", call->op->name, shape, call->args[argument].name);
}

int wrap_dim(int64_t dim, int nd)
{
    int64_t rank = nd ? nd : 1;
    if (dim < -rank || dim >= rank) return -1;
    return (int)(dim < 0 ? dim + rank : dim);
}

/* ---- dense copies ---- */
void *need_memory(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory) die("the host has no %zu bytes for a kernel", size);
    return memory;
}

typedef struct { int dtype; char *dense; } Dense;
#define DENSE(Type, suffix)                                                                                   \
    static void load_row_##suffix(void *context, char **data, const int64_t *steps, int64_t count)            \
    {                                                                                                         \
        Dense *dense = context;                                                                               \
        load_##suffix((Type *)(void *)dense->dense, data[0], steps[0], count, dense->dtype);                  \
        dense->dense += count * (int64_t)sizeof(Type);                                                        \
    }                                                                                                         \
    static void store_row_##suffix(void *context, char **data, const int64_t *steps, int64_t count)           \
    {                                                                                                         \
        Dense *dense = context;                                                                               \
        store_##suffix(data[0], steps[0], (const Type *)(void *)dense->dense, count, dense->dtype);           \
        dense->dense += count * (int64_t)sizeof(Type);                                                        \
    }                                                                                                         \
    Type *dense_##suffix(const Tensor *tensor)                                                                \
    {                                                                                                         \
        Type *values = malloc(((size_t)numel(tensor) + 1) * sizeof *values);                                  \
        if (!values) die("the host has no memory for a kernel");                                              \
        Dense dense = {tensor->dtype, (char *)values};                                                        \
        Loop loop;                                                                                            \
        loop_begin(&loop, tensor->nd, tensor->dims);                                                          \
        loop_add(&loop, tensor);                                                                              \
        loop_run(&loop, load_row_##suffix, &dense);                                                           \
        return values;                                                                                        \
    }                                                                                                         \
    void put_##suffix(const Tensor *tensor, const Type *values)                                               \
    {                                                                                                         \
        Dense dense = {tensor->dtype, (char *)(uintptr_t)values};                                             \
        Loop loop;                                                                                            \
        loop_begin(&loop, tensor->nd, tensor->dims);                                                          \
        loop_add(&loop, tensor);                                                                              \
        loop_run(&loop, store_row_##suffix, &dense);                                                          \
    }
DENSE(float, float)
DENSE(double, double)
DENSE(int64_t, int)

/* ---- cells and views ---- */
Cells cells_of(const Tensor *tensor)
{
    Cells cells = {.is_float = is_floating(tensor->dtype)};
    if (cells.is_float) cells.d = dense_double(tensor);
    else cells.i = dense_int(tensor);
    return cells;
}

void cells_put(const Tensor *tensor, Cells cells)
{
    if (cells.is_float) put_double(tensor, cells.d);
    else put_int(tensor, cells.i);
}

void cells_free(Cells cells) { free(cells.d); }

Tensor view_narrow(const Tensor *tensor, int dim, int64_t start, int64_t size)
{
    Tensor view = *tensor;
    view.dims[dim] = size;
    view.offset += start * tensor->strides[dim];
    if (view.data) view.data += start * tensor->strides[dim] * item_size(tensor->dtype);
    return view;
}

Tensor view_expand(const Tensor *tensor, int nd, const int64_t *dims)
{
    Tensor view = *tensor;
    int lead = nd - tensor->nd;
    view.nd = nd;
    for (int k = 0; k < nd; k++) {
        int64_t extent = k < lead ? 1 : tensor->dims[k - lead];
        view.strides[k] = extent == 1 ? 0 : tensor->strides[k - lead];
        view.dims[k] = dims[k];
    }
    return view;
}

Tensor view_dense(int dtype, int nd, const int64_t *dims, void *values)
{
    Tensor view = {.nd = nd, .dtype = dtype, .data = values, .address = values};
    int64_t running = 1;
    for (int k = nd - 1; k >= 0; k--) {
        view.dims[k] = dims[k];
        view.strides[k] = running;
        running *= dims[k];
    }
    view.storage_size = running;
    return view;
}

int64_t extent_before(const Tensor *tensor, int dim)
{
    int64_t product = 1;
    for (int k = 0; k < dim && k < tensor->nd; k++) product *= tensor->dims[k];
    return product;
}

int64_t extent_after(const Tensor *tensor, int dim)
{
    int64_t product = 1;
    for (int k = dim + 1; k < tensor->nd; k++) product *= tensor->dims[k];
    return product;
}
