/* Elementwise operators: one kernel that reads operands and scalars off the call, and a table of formulas. */
#include "kernels.h"

#include <tgmath.h>

#define BLOCK 1024
enum { F = 1, B = 2, C = 4, K = 8 };

static int64_t integer_power(int64_t base, int64_t exponent)
{
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1, factor = (uint64_t)base;
    for (; exponent; exponent >>= 1, factor *= factor)
        if (exponent & 1) result *= factor;
    return (int64_t)result;
}

static int64_t divide_towards_zero(int64_t x, int64_t y) { return y == 0 ? 0 : y == -1 ? -x : x / y; }
static int64_t divide_downwards(int64_t x, int64_t y)
{
    if (y == 0) return 0;
    if (y == -1) return -x;
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/* As Python divides: the quotient belongs to the remainder that has the divisor's sign. */
#define FLOOR_DIVIDE_OF(Type, name)                                 \
    static Type name(Type x, Type y)                                \
    {                                                               \
        if (y == 0) return x / y;                                   \
        Type rest = fmod(x, y), whole = (x - rest) / y;             \
        if (rest != 0 && (y < 0) != (rest < 0)) whole -= 1;         \
        if (whole == 0) return copysign((Type)0, x / y);            \
        Type low = floor(whole);                                    \
        return whole - low > (Type)0.5 ? low + 1 : low;             \
    }
FLOOR_DIVIDE_OF(float, floor_divide_float)
FLOOR_DIVIDE_OF(double, floor_divide_double)
#define FLOOR_DIVIDE(x, y) _Generic((x), float: floor_divide_float, double: floor_divide_double)(x, y)

#define GELU_TANH_BACKWARD_OF(Type, name)                                                                       \
    static inline Type name(Type grad, Type x)                                                                  \
    {                                                                                                           \
        Type inner = (Type)0.7978845608028654 * (x + (Type)0.044715 * x * x * x), th = tanh(inner);             \
        Type slope = (Type)0.7978845608028654 * (1 + (Type)0.134145 * x * x);                                   \
        return grad * ((Type)0.5 * (1 + th) + (Type)0.5 * x * (1 - th * th) * slope);                           \
    }
GELU_TANH_BACKWARD_OF(float, gelu_tanh_backward_of_float)
GELU_TANH_BACKWARD_OF(double, gelu_tanh_backward_of_double)
#define GELU_TANH_BACKWARD(g, x) _Generic((x), float: gelu_tanh_backward_of_float, double: gelu_tanh_backward_of_double)(g, x)

#define SILU_BACKWARD_OF(Type, name)                        \
    static inline Type name(Type grad, Type x)              \
    {                                                       \
        Type sigmoid = 1 / (1 + exp(-x));                   \
        return grad * sigmoid * (1 + x * (1 - sigmoid));    \
    }
SILU_BACKWARD_OF(float, silu_backward_of_float)
SILU_BACKWARD_OF(double, silu_backward_of_double)
#define SILU_BACKWARD(g, x) _Generic((x), float: silu_backward_of_float, double: silu_backward_of_double)(g, x)

/* ---- formulas ---- */
typedef struct { double d[3]; int64_t i[3]; } Constants;
#define ROW(name, suffix, Type, member, R_, formula)                                                                              \
    static void name##_##suffix(const Constants *constants, int64_t count, const Type *a, const Type *b, const Type *c, Type *out) \
    {                                                                                                                             \
        Type s = (Type)constants->member[0], t = (Type)constants->member[1];                                                      \
        (void)s, (void)t;                                                                                                         \
        for (int64_t k = 0; k < count; k++) {                                                                                     \
            Type x = a[k], y = b[k], z = c[k];                                                                                    \
            (void)x, (void)y, (void)z;                                                                                            \
            out[k] = (Type)(formula);                                                                                             \
        }                                                                                                                         \
    }
#define R(literal) ((__typeof__(x))(literal))
#define FUNCTION(name, properties, floating, integer) \
    ROW(name, float, float, d, R, floating)           \
    ROW(name, double, double, d, R, floating)         \
    ROW(name, int, int64_t, i, R, integer)
#include "elementwise.def"
#undef FUNCTION

typedef struct {
    int properties;
    void (*in_float)(const Constants *, int64_t, const float *, const float *, const float *, float *);
    void (*in_double)(const Constants *, int64_t, const double *, const double *, const double *, double *);
    void (*in_int)(const Constants *, int64_t, const int64_t *, const int64_t *, const int64_t *, int64_t *);
} Function;
#define FUNCTION(name, properties, floating, integer) {properties, name##_float, name##_double, name##_int},
static const Function FUNCTIONS[] = {
#include "elementwise.def"
};
#undef FUNCTION

/* ---- the kernel ---- */
typedef struct { const Function *function; const Constants *constants; int inputs; int dtypes[4]; } Work;

#define VISIT(suffix, Type)                                                                                       \
    static void visit_##suffix(void *context, char **data, const int64_t *steps, int64_t count)                   \
    {                                                                                                             \
        const Work *work = context;                                                                               \
        Type in[3][BLOCK], out[BLOCK];                                                                            \
        for (int64_t at = 0; at < count; at += BLOCK) {                                                           \
            int64_t part = count - at < BLOCK ? count - at : BLOCK;                                               \
            for (int k = 0; k < work->inputs; k++)                                                                \
                load_##suffix(in[k], data[k + 1] + at * steps[k + 1], steps[k + 1], part, work->dtypes[k + 1]);   \
            if (work->inputs == 0) memset(in[0], 0, (size_t)part * sizeof(Type));                                 \
            work->function->in_##suffix(work->constants, part, in[0], in[work->inputs > 1 ? 1 : 0],               \
                                        in[work->inputs > 2 ? 2 : 0], out);                                       \
            store_##suffix(data[0] + at * steps[0], steps[0], out, part, work->dtypes[0]);                        \
        }                                                                                                         \
    }
VISIT(float, float)
VISIT(double, double)
VISIT(int, int64_t)

static bool overlaps_partly(const Tensor *a, const Tensor *b) /* the same storage seen through another view */
{
    return a->address == b->address && numel(a) && numel(b)
        && (a->offset != b->offset || !same_shape(a, b) || memcmp(a->strides, b->strides, (size_t)a->nd * sizeof *a->strides));
}

static int run(Call *call, int variant, const Tensor *out, const Tensor **inputs, int count, const Constants *constants, bool scalar_floats)
{
    REQUIRE(count <= 3, "aclnn%s: too many inputs", call->op->name);
    const Function *function = &FUNCTIONS[variant];
    Loop loop;
    loop_begin(&loop, out->nd, out->dims);
    loop_add(&loop, out);
    for (int k = 0; k < count; k++)
        if (!loop_add(&loop, inputs[k]))
            return fail(E_NN_PARAM, "aclnn%s: input %d cannot be broadcast to the output's shape", call->op->name, k);
    Compute compute = compute_for(inputs, count);
    if (count == 0) compute = compute_for(&out, 1);
    if (compute == IN_INT && (function->properties & F || (scalar_floats && !(function->properties & K))))
        compute = out->dtype == DT_DOUBLE ? IN_DOUBLE : IN_FLOAT;
    if (compute != IN_INT && is_integral(out->dtype) && !(function->properties & (B | C)))
        REFUSE("aclnn%s: the result is a floating number and cannot be stored as %s", call->op->name, dtype_name(out->dtype));
    if (call->planning) return OK;
    Tensor copies[3];
    char *made[3] = {NULL};
    for (int k = 0; k < count; k++) { /* an input that shares memory with the output in another layout is read first */
        if (!overlaps_partly(inputs[k], out)) continue;
        copies[k] = *inputs[k];
        int64_t running = 1, size = item_size(copies[k].dtype);
        made[k] = need_memory((size_t)(numel(inputs[k]) * size));
        for (int d = copies[k].nd - 1; d >= 0; d--) {
            copies[k].strides[d] = running;
            running *= copies[k].dims[d];
        }
        copies[k].data = made[k];
        if (is_integral(copies[k].dtype)) { int64_t *dense = dense_int(inputs[k]); put_int(&copies[k], dense); free(dense); }
        else { double *dense = dense_double(inputs[k]); put_double(&copies[k], dense); free(dense); }
        inputs[k] = &copies[k];
    }
    loop_begin(&loop, out->nd, out->dims);
    loop_add(&loop, out);
    Work work = {.function = function, .constants = constants, .inputs = count, .dtypes = {out->dtype}};
    for (int k = 0; k < count; k++) {
        loop_add(&loop, inputs[k]);
        work.dtypes[k + 1] = inputs[k]->dtype;
    }
    loop_run(&loop, compute == IN_FLOAT ? visit_float : compute == IN_DOUBLE ? visit_double : visit_int, &work);
    for (int k = 0; k < count; k++) free(made[k]);
    return OK;
}

int elementwise(Call *call)
{
    const Tensor *inputs[4], *out = NULL;
    Constants constants = {{0}, {0}};
    int count = 0, scalars = 0, variant = call->op->variant;
    bool scalar_floats = false;
    for (int k = 0; k < call->count; k++) {
        Arg *arg = &call->args[k];
        if (arg->kind == A_OUT) {
            out = &arg->tensor;
            if (k == 0 && !(variant == E_fill || variant == E_zero || variant == E_one)) inputs[count++] = out;
        } else if (arg->kind == A_TENSOR) inputs[count++] = &arg->tensor;
        else if (arg->kind == A_SCALAR) {
            constants.d[scalars] = arg->scalar.d;
            constants.i[scalars++] = arg->scalar.i;
            scalar_floats = scalar_floats || arg->scalar.is_float;
        }
    }
    return run(call, variant, out, inputs, count, &constants, scalar_floats);
}

int div_mod(Call *call)
{
    static const int VARIANTS[] = {E_div_, E_div_trunc, E_div_floor};
    int64_t mode = INT(2);
    REQUIRE(mode >= 0 && mode <= 2, "aclnnDivMod: mode %lld is not 0, 1 or 2", (long long)mode);
    const Tensor *inputs[] = {TENSOR(0), TENSOR(1)};
    return run(call, VARIANTS[mode], TENSOR(3), inputs, 2, &(Constants){{0}, {0}}, false);
}

int gelu_v2(Call *call)
{
    REQUIRE(INT(1) == 0 || INT(1) == 1, "aclnnGeluV2: approximate %lld is not 0 or 1", (long long)INT(1));
    const Tensor *inputs[] = {TENSOR(0)};
    return run(call, INT(1) ? E_gelu_tanh : E_gelu_erf, TENSOR(2), inputs, 1, &(Constants){{0}, {0}}, false);
}

int gelu_backward_v2(Call *call)
{
    const char *form = call->args[2].string;
    bool by_tanh = !strcmp(form, "tanh");
    REQUIRE(by_tanh || !strcmp(form, "none"), "aclnnGeluBackwardV2: approximate \"%s\" is not \"none\" or \"tanh\"", form);
    const Tensor *inputs[] = {TENSOR(0), TENSOR(1)};
    return run(call, by_tanh ? E_gelu_tanh_backward : E_gelu_erf_backward, TENSOR(3), inputs, 2, &(Constants){{0}, {0}}, false);
}

int cast(Call *call)
{
    REQUIRE(INT(1) == TENSOR(2)->dtype, "aclnnCast: out is %s, not the type asked for", dtype_name(TENSOR(2)->dtype));
    REQUIRE(same_shape(TENSOR(0), TENSOR(2)), "aclnnCast: self and out have different shapes");
    const Tensor *inputs[] = {TENSOR(0)};
    return run(call, E_copy, TENSOR(2), inputs, 1, &(Constants){{0}, {0}}, false);
}

/* For other kernels: a formula over tensors, with scalars. */
int apply_function(Call *call, int variant, const Tensor *out, const Tensor *const *inputs, int count, double s, double t)
{
    const Tensor *list[3];
    for (int k = 0; k < count; k++) list[k] = inputs[k];
    Constants constants = {{s, t}, {(int64_t)s, (int64_t)t}};
    return run(call, variant, out, list, count, &constants, s != (double)(int64_t)s || t != (double)(int64_t)t);
}

int copy_values(Call *call, const Tensor *out, const Tensor *in)
{
    return apply_function(call, E_copy, out, &in, 1, 0, 0);
}

int fill_values(Call *call, const Tensor *out, const Scalar *value)
{
    Constants constants = {{value->d}, {value->i}};
    return run(call, E_fill, out, NULL, 0, &constants, value->is_float);
}

/* ---- lists of tensors ---- */
int foreach_function(Call *call) /* lists and at most one scalar in, the last list out */
{
    const Arg *lists[4];
    int count = 0;
    double s = 0;
    for (int k = 0; k < call->count; k++) {
        if (call->args[k].kind == A_LIST || call->args[k].kind == A_OUT_LIST) lists[count++] = &call->args[k];
        if (call->args[k].kind == A_SCALAR) s = call->args[k].scalar.d;
    }
    const Arg *out = lists[count - 1];
    int inputs = count == 1 ? 0 : count - 1;
    for (int k = 0; k < inputs; k++)
        REQUIRE(lists[k]->list.size == out->list.size, "aclnn%s: the lists have different lengths", call->op->name);
    for (uint64_t m = 0; m < out->list.size; m++) {
        const Tensor *members[3];
        for (int k = 0; k < inputs; k++) {
            members[k] = &lists[k]->list.values[m];
            REQUIRE(same_shape(members[k], &out->list.values[m]), "aclnn%s: tensor %llu has different shapes in the lists", call->op->name, (unsigned long long)m);
        }
        CHECK(apply_function(call, call->op->variant, &out->list.values[m], members, inputs, s, 0));
    }
    return OK;
}
