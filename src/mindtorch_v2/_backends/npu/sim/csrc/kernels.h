/* What kernels share: conversion between storage types and the three types they compute in, and loops over strided tensors. */
#ifndef MINDTORCH_NPU_SIM_KERNELS_H
#define MINDTORCH_NPU_SIM_KERNELS_H

#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* A kernel loads elements of any type as float, double or int64, computes, and stores the result in any type. */
typedef enum { IN_FLOAT, IN_DOUBLE, IN_INT } Compute;

void load_float(float *to, const char *from, int64_t step, int64_t count, int dtype); /* step: bytes between elements */
void load_double(double *to, const char *from, int64_t step, int64_t count, int dtype);
void load_int(int64_t *to, const char *from, int64_t step, int64_t count, int dtype);
void store_float(char *to, int64_t step, const float *from, int64_t count, int dtype);
void store_double(char *to, int64_t step, const double *from, int64_t count, int dtype);
void store_int(char *to, int64_t step, const int64_t *from, int64_t count, int dtype);

static inline bool is_floating(int dtype) { return dtype == DT_FLOAT || dtype == DT_FLOAT16 || dtype == DT_BF16 || dtype == DT_DOUBLE; }
static inline bool is_integral(int dtype) { return !is_floating(dtype); }
Compute compute_for(const Tensor *const *tensors, int count);

/* A loop over the elements of several tensors of one shape; smaller ones are broadcast. */
#define MAX_OPERANDS 6
typedef struct {
    int nd, operands;
    int64_t dims[MAX_DIMS];
    int64_t steps[MAX_OPERANDS][MAX_DIMS]; /* bytes */
    char *data[MAX_OPERANDS];
} Loop;
typedef void (*RowVisit)(void *context, char **data, const int64_t *steps, int64_t count);
void loop_begin(Loop *loop, int nd, const int64_t *dims);
bool loop_add(Loop *loop, const Tensor *tensor); /* false if the shape cannot be broadcast */
void loop_run(Loop *loop, RowVisit visit, void *context);

bool same_shape(const Tensor *a, const Tensor *b);
bool broadcasts_to(const Tensor *from, const Tensor *to);
int refuse_shape(const Call *call, int argument); /* an error that names the argument and its shape */
int wrap_dim(int64_t dim, int nd);                /* -1 if it is out of range */

/* Dense copies in one compute type, row-major: simple kernels work on these and store the result. Freed with free(). */
float *dense_float(const Tensor *tensor);
double *dense_double(const Tensor *tensor);
int64_t *dense_int(const Tensor *tensor);
void put_float(const Tensor *tensor, const float *values);
void put_double(const Tensor *tensor, const double *values);
void put_int(const Tensor *tensor, const int64_t *values);
void *need_memory(size_t size); /* zeroed; dies if the host has none */

/* C[m,n] = A[m,k] B[k,n] + (accumulate ? C : 0), row-major with leading dimensions */
void gemm_float(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc, bool accumulate);

/* Numbers of the elementwise functions */
enum {
#define FUNCTION(name, properties, floating, integer) E_##name,
#include "elementwise.def"
#undef FUNCTION
    ELEMENTWISE_FUNCTIONS
};

int apply_function(Call *call, int variant, const Tensor *out, const Tensor *const *inputs, int count, double s, double t);
int copy_values(Call *call, const Tensor *out, const Tensor *in); /* broadcasts and converts */
int fill_values(Call *call, const Tensor *out, const Scalar *value);

/* Views made inside kernels. */
Tensor view_narrow(const Tensor *tensor, int dim, int64_t start, int64_t size);
Tensor view_expand(const Tensor *tensor, int nd, const int64_t *dims);
Tensor view_dense(int dtype, int nd, const int64_t *dims, void *values); /* over memory of the kernel's own */

/* Values of 8 bytes, double for floating tensors and int64 for others: for kernels that move elements about. */
typedef struct { bool is_float; union { double *d; int64_t *i; }; } Cells;
Cells cells_of(const Tensor *tensor);
void cells_put(const Tensor *tensor, Cells cells);
void cells_free(Cells cells);

int64_t extent_before(const Tensor *tensor, int dim); /* product of the dimensions before, after this one */
int64_t extent_after(const Tensor *tensor, int dim);

/* The kernels; ops.def says which operator is which. */
int elementwise(Call *call);
int div_mod(Call *call);
int gelu_v2(Call *call);
int gelu_backward_v2(Call *call);
int cast(Call *call);
int foreach_function(Call *call);
int matmul(Call *call);
int mv(Call *call);
int addmm(Call *call);
int softmax(Call *call);
int softmax_backward(Call *call);
int reduce_sum(Call *call);
int reduce_extreme(Call *call);
int reduce_truth(Call *call);
int reduce_var(Call *call);
int reduce_norm(Call *call);
int extreme_dim(Call *call);
int arg_extreme(Call *call);
int cumsum(Call *call);
int foreach_norm(Call *call);
int cat(Call *call);
int stack(Call *call);
int split_tensor(Call *call);
int split_sizes(Call *call);
int permute(Call *call);
int expand(Call *call);
int repeat(Call *call);
int pad(Call *call);
int triangle(Call *call);
int arange(Call *call);
int one_hot(Call *call);
int layer_norm(Call *call);
int layer_norm_backward(Call *call);
int rms_norm(Call *call);
int rms_norm_backward(Call *call);
int group_norm(Call *call);
int batch_norm(Call *call);
int batch_norm_backward(Call *call);
int convolution(Call *call);
int convolution_backward(Call *call);
int max_pool(Call *call);
int max_pool_backward(Call *call);
int avg_pool(Call *call);
int avg_pool_backward(Call *call);
int adaptive_pool(Call *call);
int adaptive_pool_backward(Call *call);
int nll_loss(Call *call);
int nll_loss_backward(Call *call);
int cross_entropy(Call *call);
int cross_entropy_backward(Call *call);
int mse_loss(Call *call);
int mse_loss_backward(Call *call);
int bce_logits(Call *call);
int bce_logits_backward(Call *call);
int embedding(Call *call);
int embedding_backward(Call *call);
int gather(Call *call);
int index_select(Call *call);
int scatter(Call *call);
int index_add(Call *call);
int index_tensors(Call *call);
int index_put(Call *call);
int masked_select(Call *call);
int dropout(Call *call);
int dropout_mask(Call *call);
int dropout_apply(Call *call);
int random_normal(Call *call);
int random_uniform(Call *call);
int random_bernoulli(Call *call);
int random_integers(Call *call);
int random_permutation(Call *call);
int top_k(Call *call);
int sort(Call *call);
int adam_w(Call *call);
int flash_attention(Call *call);
#endif
