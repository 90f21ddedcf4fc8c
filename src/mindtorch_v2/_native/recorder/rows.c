/* Rows of integers in chunks that double in size up to a few megabytes. */
#include "native.h"

#include <sys/mman.h>

#define FIRST_ROWS 256
#define MOST_ROWS 65536
#define MAPPED_BYTES (1 << 18) /* from this size on, memory comes from the system and goes back to it at once */

void
rows_init(Rows *rows, int width)
{
    memset(rows, 0, sizeof *rows);
    rows->width = width;
}

/* How many rows the chunk of this number holds: 256, 512, ... 65536, 65536, ... */
static int64_t
chunk_rows(Py_ssize_t number)
{
    return number < 8 ? (int64_t)FIRST_ROWS << number : MOST_ROWS;
}

static size_t
chunk_bytes(const Rows *rows, Py_ssize_t number)
{
    return (size_t)chunk_rows(number) * rows->width * sizeof(int64_t);
}

void
rows_free(Rows *rows)
{
    for (Py_ssize_t i = 0; i < rows->chunk_count; i++) {
        size_t bytes = chunk_bytes(rows, i);
        if (bytes >= MAPPED_BYTES)
            munmap(rows->chunks[i], bytes);
        else
            PyMem_RawFree(rows->chunks[i]);
    }
    PyMem_RawFree(rows->chunks);
    rows_init(rows, rows->width);
}

int
rows_grow(Rows *rows)
{
    if (rows->chunk_count == rows->chunk_room) {
        Py_ssize_t room = rows->chunk_room ? rows->chunk_room * 2 : 8;
        int64_t **chunks = PyMem_RawRealloc(rows->chunks, room * sizeof *chunks);
        if (chunks == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        rows->chunks = chunks;
        rows->chunk_room = room;
    }
    size_t bytes = chunk_bytes(rows, rows->chunk_count);
    int64_t *chunk = bytes >= MAPPED_BYTES
        ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        : PyMem_RawMalloc(bytes);
    if (chunk == NULL || chunk == MAP_FAILED) {
        PyErr_NoMemory();
        return -1;
    }
    rows->chunks[rows->chunk_count++] = chunk;
    rows->next = chunk;
    rows->end = chunk + bytes / sizeof *chunk;
    return 0;
}

/* Append the rows of another table, from one on. */
int
rows_copy(Rows *target, const Rows *source, int64_t begin)
{
    int64_t first = 0;
    for (Py_ssize_t c = 0; c < source->chunk_count; c++) {
        int64_t size = chunk_rows(c);
        for (int64_t i = begin > first ? begin - first : 0; i < size && first + i < source->count; i++) {
            int64_t *row = rows_append(target);
            if (row == NULL)
                return -1;
            memcpy(row, source->chunks[c] + i * source->width, source->width * sizeof *row);
        }
        first += size;
    }
    return 0;
}

/* A tuple of one int64 array per column, of the rows from one on. */
PyObject *
rows_columns(const Rows *rows, int64_t begin)
{
    int width = rows->width;
    int64_t *data[8];
    /* Before the rows are counted: making a tuple may start the garbage collector, and a profiler that it finds ends its
     * recording, which frees rows. Arrays of numbers start nothing. */
    PyObject *columns = PyTuple_New(width);
    if (columns == NULL)
        return NULL;
    int64_t total = rows->count;
    npy_intp length = begin < total ? total - begin : 0;
    for (int w = 0; w < width; w++) {
        PyObject *array = PyArray_SimpleNew(1, &length, NPY_INT64);
        if (array == NULL) {
            Py_DECREF(columns);
            return NULL;
        }
        data[w] = PyArray_DATA((PyArrayObject *)array);
        PyTuple_SET_ITEM(columns, w, array);
    }
    int64_t first = 0, written = 0;
    for (Py_ssize_t c = 0; c < rows->chunk_count && first < total; c++) {
        int64_t size = chunk_rows(c);
        const int64_t *chunk = rows->chunks[c];
        for (int64_t i = begin > first ? begin - first : 0; i < size && first + i < total; i++, written++)
            for (int w = 0; w < width; w++)
                data[w][written] = chunk[i * width + w];
        first += size;
    }
    return columns;
}
