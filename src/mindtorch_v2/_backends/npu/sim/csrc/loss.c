/* Losses, forwards and backwards. Reductions: 0 none, 1 mean, 2 sum. */
#include "kernels.h"

#include <math.h>

/* ---- negative log likelihood: classes in dimension 1 (or 0 without a batch) ---- */
typedef struct { int64_t batch, classes, inner; } Classes;

static int classes_of(Call *call, const Tensor *self, const Tensor *target, const Tensor *weight, Classes *c)
{
    int dim = self->nd > 1 ? 1 : 0;
    REQUIRE(self->nd >= 1, "aclnn%s: self needs a dimension of classes", call->op->name);
    *c = (Classes){.batch = dim ? self->dims[0] : 1, .classes = self->dims[dim], .inner = extent_after(self, dim)};
    REQUIRE(numel(target) == c->batch * c->inner && is_integral(target->dtype), "aclnn%s: target does not fit self", call->op->name);
    REQUIRE(!weight || numel(weight) == c->classes, "aclnn%s: weight does not have one element per class", call->op->name);
    call->operations = (uint64_t)numel(target) * 4;
    return OK;
}

static int bad_target(Call *call, int64_t class, int64_t classes)
{
    return fail(E_AICORE, "aclnn%s: AI core exception: target %lld is not one of %lld classes", call->op->name, (long long)class, (long long)classes);
}

int nll_loss(Call *call)
{
    const Tensor *self = TENSOR(0), *target = TENSOR(1), *out = TENSOR(5), *total = TENSOR(6);
    Classes c;
    CHECK(classes_of(call, self, target, TENSOR(2), &c));
    int64_t reduction = INT(3), ignored = INT(4), count = c.batch * c.inner;
    REQUIRE(reduction >= 0 && reduction <= 2, "aclnn%s: reduction %lld is not 0, 1 or 2", call->op->name, (long long)reduction);
    REQUIRE(numel(out) == (reduction ? 1 : count), "aclnn%s: out has the wrong shape", call->op->name);
    if (call->planning) return OK;
    double *x = dense_double(self), *w = dense_double(TENSOR(2)), *each = need_memory((size_t)count * 8), sum = 0, weights = 0;
    int64_t *labels = dense_int(target);
    int code = OK;
    for (int64_t k = 0; k < count; k++) {
        int64_t class = labels[k];
        if (class == ignored) continue;
        if (class < 0 || class >= c.classes) { code = bad_target(call, class, c.classes); break; }
        each[k] = -x[(k / c.inner * c.classes + class) * c.inner + k % c.inner] * w[class];
        sum += each[k];
        weights += w[class];
    }
    if (reduction == 1) sum /= weights;
    if (code == OK) put_double(out, reduction ? &sum : each);
    if (code == OK && reduction && numel(total) == 1) put_double(total, &weights);
    free(x), free(w), free(each), free(labels);
    return code;
}

int nll_loss_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *self = TENSOR(1), *target = TENSOR(2), *out = TENSOR(7);
    Classes c;
    CHECK(classes_of(call, self, target, TENSOR(3), &c));
    int64_t reduction = INT(4), ignored = INT(5), count = c.batch * c.inner;
    REQUIRE(same_shape(self, out) && numel(grad) == (reduction ? 1 : count), "aclnn%s: the shapes do not fit", call->op->name);
    if (call->planning) return OK;
    double *g = dense_double(grad), *w = dense_double(TENSOR(3)), *dx = need_memory((size_t)numel(out) * 8);
    double total = 1;
    if (reduction == 1) {
        double *known = dense_double(TENSOR(6));
        total = known[0];
        free(known);
    }
    int64_t *labels = dense_int(target);
    int code = OK;
    for (int64_t k = 0; k < count; k++) {
        int64_t class = labels[k];
        if (class == ignored) continue;
        if (class < 0 || class >= c.classes) { code = bad_target(call, class, c.classes); break; }
        dx[(k / c.inner * c.classes + class) * c.inner + k % c.inner] = -w[class] * g[reduction ? 0 : k] / total;
    }
    if (code == OK) put_double(out, dx);
    free(g), free(w), free(dx), free(labels);
    return code;
}

/* ---- cross entropy with label smoothing ---- */
static int reduction_named(Call *call, int at, int *reduction)
{
    const char *name = call->args[at].string;
    *reduction = !strcmp(name, "none") ? 0 : !strcmp(name, "mean") ? 1 : !strcmp(name, "sum") ? 2 : -1;
    REQUIRE(*reduction >= 0, "aclnn%s: reduction \"%s\" is not none, mean or sum", call->op->name, name);
    return OK;
}

int cross_entropy(Call *call)
{
    const Tensor *input = TENSOR(0), *target = TENSOR(1), *out = TENSOR(8), *log_prob = TENSOR(9);
    int reduction;
    CHECK(reduction_named(call, 3, &reduction));
    REQUIRE(input->nd == 2 && target->nd == 1 && target->dims[0] == input->dims[0] && is_integral(target->dtype), "aclnnCrossEntropyLoss: needs input [N, C] and target [N]");
    int64_t rows = input->dims[0], classes = input->dims[1], ignored = INT(4);
    double smoothing = DOUBLE(5);
    REQUIRE(!PRESENT(2) || numel(TENSOR(2)) == classes, "aclnnCrossEntropyLoss: weight does not have one element per class");
    REQUIRE(!INT(7), "aclnnCrossEntropyLoss: the simulator does not compute the z loss");
    REQUIRE(same_shape(input, log_prob) && numel(out) == (reduction ? 1 : rows), "aclnnCrossEntropyLoss: an output has the wrong shape");
    call->operations = (uint64_t)numel(input) * 8;
    if (call->planning) return OK;
    double *x = dense_double(input), *w = PRESENT(2) ? dense_double(TENSOR(2)) : NULL, *each = need_memory((size_t)rows * 8), sum = 0, weights = 0;
    int64_t *labels = dense_int(target);
    int code = OK;
    for (int64_t r = 0; r < rows; r++) {
        double *row = x + r * classes, top = -INFINITY, all = 0, spread = 0;
        for (int64_t k = 0; k < classes; k++) if (row[k] > top) top = row[k];
        for (int64_t k = 0; k < classes; k++) all += exp(row[k] - top);
        for (int64_t k = 0; k < classes; k++) {
            row[k] -= top + log(all);
            spread -= row[k] * (w ? w[k] : 1);
        }
        int64_t class = labels[r];
        if (class == ignored) continue;
        if (class < 0 || class >= classes) { code = bad_target(call, class, classes); break; }
        double weight = w ? w[class] : 1;
        each[r] = -(1 - smoothing) * row[class] * weight + smoothing / (double)classes * spread;
        sum += each[r];
        weights += weight;
    }
    if (reduction == 1) sum /= weights;
    if (code == OK) {
        put_double(log_prob, x);
        put_double(out, reduction ? &sum : each);
    }
    free(x), free(w), free(each), free(labels);
    return code;
}

int cross_entropy_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *log_prob = TENSOR(1), *target = TENSOR(2), *out = TENSOR(10);
    int reduction;
    CHECK(reduction_named(call, 6, &reduction));
    REQUIRE(log_prob->nd == 2 && target->nd == 1 && target->dims[0] == log_prob->dims[0] && same_shape(log_prob, out), "aclnnCrossEntropyLossGrad: needs logProb [N, C] and target [N]");
    REQUIRE(!PRESENT(4) && !PRESENT(5), "aclnnCrossEntropyLossGrad: the simulator does not compute the z loss");
    int64_t rows = log_prob->dims[0], classes = log_prob->dims[1], ignored = INT(7);
    REQUIRE(numel(grad) == (reduction ? 1 : rows), "aclnnCrossEntropyLossGrad: gradLoss has the wrong shape");
    double smoothing = DOUBLE(8);
    call->operations = (uint64_t)numel(out) * 8;
    if (call->planning) return OK;
    double *g = dense_double(grad), *y = dense_double(log_prob), *w = PRESENT(3) ? dense_double(TENSOR(3)) : NULL, weights = 0, all = 0;
    int64_t *labels = dense_int(target);
    int code = OK;
    for (int64_t r = 0; r < rows && code == OK; r++) {
        if (labels[r] == ignored) continue;
        if (labels[r] < 0 || labels[r] >= classes) code = bad_target(call, labels[r], classes);
        else weights += w ? w[labels[r]] : 1;
    }
    for (int64_t k = 0; k < classes; k++) all += w ? w[k] : 1;
    for (int64_t r = 0; r < rows && code == OK; r++) {
        double scale = labels[r] == ignored ? 0 : g[reduction ? 0 : r] / (reduction == 1 ? weights : 1);
        double weight = labels[r] == ignored ? 0 : (w ? w[labels[r]] : 1);
        for (int64_t k = 0; k < classes; k++) {
            double towards = (k == labels[r] ? (1 - smoothing) * weight : 0) + smoothing / (double)classes * (w ? w[k] : 1);
            double whole = (1 - smoothing) * weight + smoothing / (double)classes * all;
            y[r * classes + k] = scale * (exp(y[r * classes + k]) * whole - towards);
        }
    }
    if (code == OK) put_double(out, y);
    free(g), free(y), free(w), free(labels);
    return code;
}

/* ---- losses of pairs of elements ---- */
static double *spread(const Tensor *tensor, const Tensor *like)
{
    Tensor view = view_expand(tensor, like->nd, like->dims);
    return dense_double(&view);
}

int mse_loss(Call *call)
{
    const Tensor *self = TENSOR(0), *target = TENSOR(1), *out = TENSOR(3);
    int64_t reduction = INT(2), count = numel(self);
    REQUIRE(reduction >= 0 && reduction <= 2, "aclnnMseLoss: reduction %lld is not 0, 1 or 2", (long long)reduction);
    REQUIRE(same_shape(self, target) && numel(out) == (reduction ? 1 : count), "aclnnMseLoss: the shapes do not fit");
    if (call->planning) return OK;
    double *x = dense_double(self), *y = dense_double(target), sum = 0;
    for (int64_t k = 0; k < count; k++) {
        x[k] = (x[k] - y[k]) * (x[k] - y[k]);
        sum += x[k];
    }
    if (reduction == 1) sum /= (double)count;
    put_double(out, reduction ? &sum : x);
    free(x), free(y);
    return OK;
}

int mse_loss_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *self = TENSOR(1), *target = TENSOR(2), *out = TENSOR(4);
    int64_t reduction = INT(3), count = numel(self);
    REQUIRE(same_shape(self, target) && same_shape(self, out) && broadcasts_to(grad, self), "aclnnMseLossBackward: the shapes do not fit");
    if (call->planning) return OK;
    double *g = spread(grad, self), *x = dense_double(self), *y = dense_double(target);
    for (int64_t k = 0; k < count; k++) x[k] = 2 * (x[k] - y[k]) * g[k] / (reduction == 1 ? (double)count : 1);
    put_double(out, x);
    free(g), free(x), free(y);
    return OK;
}

static double log_sigmoid(double x) { return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x)); }

int bce_logits(Call *call)
{
    const Tensor *self = TENSOR(0), *target = TENSOR(1), *out = TENSOR(5);
    int64_t reduction = INT(4), count = numel(self);
    REQUIRE(reduction >= 0 && reduction <= 2, "aclnn%s: reduction %lld is not 0, 1 or 2", call->op->name, (long long)reduction);
    REQUIRE(same_shape(self, target) && numel(out) == (reduction ? 1 : count), "aclnn%s: the shapes do not fit", call->op->name);
    for (int k = 2; k < 4; k++) REQUIRE(!PRESENT(k) || broadcasts_to(TENSOR(k), self), "aclnn%s: %s cannot be broadcast to self", call->op->name, call->args[k].name);
    if (call->planning) return OK;
    double *x = dense_double(self), *y = dense_double(target), *w = PRESENT(2) ? spread(TENSOR(2), self) : NULL, *p = PRESENT(3) ? spread(TENSOR(3), self) : NULL, sum = 0;
    for (int64_t k = 0; k < count; k++) {
        x[k] = -(w ? w[k] : 1) * ((p ? p[k] : 1) * y[k] * log_sigmoid(x[k]) + (1 - y[k]) * log_sigmoid(-x[k]));
        sum += x[k];
    }
    if (reduction == 1) sum /= (double)count;
    put_double(out, reduction ? &sum : x);
    free(x), free(y), free(w), free(p);
    return OK;
}

int bce_logits_backward(Call *call)
{
    const Tensor *grad = TENSOR(0), *self = TENSOR(1), *target = TENSOR(2), *out = TENSOR(6);
    int64_t reduction = INT(5), count = numel(self);
    REQUIRE(same_shape(self, target) && same_shape(self, out) && broadcasts_to(grad, self), "aclnn%s: the shapes do not fit", call->op->name);
    for (int k = 3; k < 5; k++) REQUIRE(!PRESENT(k) || broadcasts_to(TENSOR(k), self), "aclnn%s: %s cannot be broadcast to self", call->op->name, call->args[k].name);
    if (call->planning) return OK;
    double *g = spread(grad, self), *x = dense_double(self), *y = dense_double(target), *w = PRESENT(3) ? spread(TENSOR(3), self) : NULL, *p = PRESENT(4) ? spread(TENSOR(4), self) : NULL;
    for (int64_t k = 0; k < count; k++) {
        double sigmoid = 1 / (1 + exp(-x[k])), positive = (p ? p[k] : 1) * y[k];
        x[k] = g[k] * (w ? w[k] : 1) * ((positive + 1 - y[k]) * sigmoid - positive) / (reduction == 1 ? (double)count : 1);
    }
    put_double(out, x);
    free(g), free(x), free(y), free(w), free(p);
    return OK;
}
