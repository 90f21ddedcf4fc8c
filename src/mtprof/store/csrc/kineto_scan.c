/* Reads the events of a Chrome trace into columns of integers, without a Python object per event.

   `scan` is the twin of the function of that name in `kineto_scan.py`, which says what it takes and returns. Files come
   from anywhere: every byte is checked to be there before it is looked at, nesting has a limit, and what is not JSON is
   refused with its place. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define MOST_DEPTH 256
#define MOST_KEYS 64
#define MOST_KEY_BYTES 64
#define MOST_US 4611686018427387LL /* 2**62 nanoseconds: sums of two such times do not overflow */
#define ABSENT (-6148914691236517205LL) /* no file says this number: it is refused */
#define FIXED 6 /* columns before those of integer arguments: phase, pair, lane, start, duration, rest */

enum { OK = 0, WRONG = -1, MORE = -2 };

typedef struct {
    const char *text;
    Py_ssize_t size;
} Token;

typedef struct {
    const char *data;
    const char *at;
    const char *end;
    const char *fault; /* what is wrong, for an error in words */
    Token subject;     /* with what; empty if the fault says it */
} Input;

typedef struct {
    char *text;
    size_t size, room;
} Scratch;

typedef struct {
    Token ints[MOST_KEYS], texts[MOST_KEYS];
    Py_ssize_t int_count, text_count;
    const int64_t *defaults;
} Keys;

static int
wrong(Input *in, const char *fault)
{
    in->fault = fault;
    return WRONG;
}

static void
skip_blanks(Input *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t'))
        in->at++;
}

static int
is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A string, with both quotes. `token` gets what is between them. */
static int
string(Input *in, Token *token, int *escaped)
{
    const char *p = in->at + 1, *end = in->end;
    int any = 0;
    for (;; p++) {
        if (p >= end)
            return MORE;
        unsigned char c = (unsigned char)*p;
        if (c == '"')
            break;
        if (c < 0x20)
            return wrong(in, "a control character in a string");
        if (c != '\\')
            continue;
        any = 1;
        if (++p >= end)
            return MORE;
        if (*p == 'u') {
            if (end - p < 5)
                return MORE;
            if (!is_hex(p[1]) || !is_hex(p[2]) || !is_hex(p[3]) || !is_hex(p[4]))
                return wrong(in, "a wrong escape in a string");
            p += 4;
        }
        else if (*p == '\0' || !strchr("\"\\/bfnrt", *p))
            return wrong(in, "a wrong escape in a string");
    }
    if (token != NULL) {
        token->text = in->at + 1;
        token->size = p - token->text;
    }
    if (escaped != NULL)
        *escaped = any;
    in->at = p + 1;
    return OK;
}

#define DIGIT(p) (*(p) >= '0' && *(p) <= '9')

static int
number(Input *in)
{
    const char *p = in->at, *end = in->end;
    if (*p == '-')
        p++;
    if (p >= end)
        return MORE;
    if (!DIGIT(p))
        return wrong(in, "a value that is none of JSON");
    if (*p == '0')
        p++;
    else
        while (p < end && DIGIT(p))
            p++;
    if (p < end && *p == '.') {
        if (++p >= end)
            return MORE;
        if (!DIGIT(p))
            return wrong(in, "a number without digits behind its point");
        while (p < end && DIGIT(p))
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        if (p >= end)
            return MORE;
        if (!DIGIT(p))
            return wrong(in, "a number without digits in its exponent");
        while (p < end && DIGIT(p))
            p++;
    }
    if (p >= end)
        return MORE; /* it may go on */
    in->at = p;
    return OK;
}

static int
word(Input *in, const char *text, Py_ssize_t size)
{
    Py_ssize_t there = in->end - in->at;
    if (memcmp(in->at, text, (size_t)(there < size ? there : size)) != 0)
        return wrong(in, "a value that is none of JSON");
    if (there < size)
        return MORE;
    in->at += size;
    return OK;
}

/* Go to what follows a comma, or to the closing bracket: 1 for another item, 0 for the end. */
static int
another(Input *in, char close, int first)
{
    skip_blanks(in);
    if (in->at >= in->end)
        return MORE;
    if (*in->at == close) {
        in->at++;
        return 0;
    }
    if (first)
        return 1;
    if (*in->at != ',')
        return wrong(in, "something other than a comma between two items");
    in->at++;
    skip_blanks(in);
    if (in->at >= in->end)
        return MORE;
    if (*in->at == close)
        return wrong(in, "a comma behind the last item");
    return 1;
}

static int
key(Input *in, Token *token, int *escaped)
{
    if (*in->at != '"')
        return wrong(in, "an object whose key is no string");
    int found = string(in, token, escaped);
    if (found != OK)
        return found;
    skip_blanks(in);
    if (in->at >= in->end)
        return MORE;
    if (*in->at != ':')
        return wrong(in, "a key without a colon");
    in->at++;
    skip_blanks(in);
    return in->at < in->end ? OK : MORE;
}

/* Pass over any value. There is at least one byte. */
static int
value(Input *in, int depth)
{
    int found;
    switch (*in->at) {
    case '"':
        return string(in, NULL, NULL);
    case 't':
        return word(in, "true", 4);
    case 'f':
        return word(in, "false", 5);
    case 'n':
        return word(in, "null", 4);
    case '{':
    case '[': {
        int object = *in->at == '{', first = 1;
        if (depth >= MOST_DEPTH)
            return wrong(in, "values that are nested too deeply");
        in->at++;
        while ((found = another(in, object ? '}' : ']', first)) > 0) {
            if (object && (found = key(in, NULL, NULL)) != OK)
                return found;
            if ((found = value(in, depth + 1)) != OK)
                return found;
            first = 0;
        }
        return found;
    }
    default:
        return number(in);
    }
}

/* Microseconds as text, to nanoseconds, exactly. */
static int
nanoseconds(Input *in, Token token, int64_t *result)
{
    const char *p = token.text, *end = p + token.size;
    int minus = 0, digits = 0;
    int64_t us = 0, ns = 0;
    if (p < end && *p == '-') {
        minus = 1;
        p++;
    }
    for (; p < end && DIGIT(p); p++, digits++)
        if ((us = us * 10 + (*p - '0')) > MOST_US)
            break; /* there may be an exponent; otherwise this is the error */
    if (p == end || *p == '.') {
        int64_t unit = 100;
        if (p < end)
            for (p++; p < end && DIGIT(p); p++, unit /= 10, digits++) {
                if (unit >= 1)
                    ns += unit * (*p - '0');
                else if (unit == 0) {
                    ns += *p >= '5';
                    while (p + 1 < end && DIGIT(p + 1))
                        p++;
                    unit = 1;
                }
            }
        if (p == end && digits > 0) {
            ns += us * 1000;
            *result = minus ? -ns : ns;
            return OK;
        }
    }
    /* An exponent, a number beyond the limit, or no number at all. */
    char copy[64];
    if (token.size >= (Py_ssize_t)sizeof copy || token.size == 0)
        return wrong(in, "should be a number of microseconds");
    memcpy(copy, token.text, (size_t)token.size);
    copy[token.size] = '\0';
    char *stop;
    double found = PyOS_string_to_double(copy, &stop, NULL);
    if (found == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return wrong(in, "should be a number of microseconds");
    }
    if (*stop != '\0' || !(found == found))
        return wrong(in, "should be a number of microseconds");
    if (found >= (double)MOST_US || found <= -(double)MOST_US)
        return wrong(in, "is too large for a time in microseconds");
    *result = (int64_t)(found * 1000.0 + (found < 0 ? -0.5 : 0.5));
    return OK;
}

static int
time_value(Input *in, int64_t *result)
{
    Token token;
    int found;
    if (*in->at == '"') {
        if ((found = string(in, &token, NULL)) != OK)
            return found;
    }
    else if (*in->at == 'n')
        return word(in, "null", 4); /* as if it were not there */
    else if (*in->at != '-' && !DIGIT(in->at)) {
        found = value(in, 1);
        return found == MORE ? MORE : wrong(in, "should be a number of microseconds");
    }
    else {
        token.text = in->at;
        if ((found = number(in)) != OK)
            return found;
        token.size = in->at - token.text;
    }
    return nanoseconds(in, token, result);
}

static int
integer(Input *in, int64_t *result)
{
    if (*in->at == 't' || *in->at == 'f') {
        *result = *in->at == 't';
        return value(in, 0);
    }
    if (*in->at == 'n')
        return value(in, 0);
    const char *p = in->at;
    if (*p != '-' && !DIGIT(p)) {
        int found = value(in, 0);
        return found == MORE ? MORE : wrong(in, "should be an integer in every event");
    }
    int found = number(in);
    if (found != OK)
        return found;
    int minus = *p == '-';
    uint64_t sum = 0, most = (uint64_t)INT64_MAX + (uint64_t)minus;
    for (p += minus; p < in->at; p++) {
        if (!DIGIT(p))
            return wrong(in, "should be an integer in every event");
        if (sum > (most - (uint64_t)(*p - '0')) / 10)
            return wrong(in, "is too large for an integer of 64 bits");
        sum = sum * 10 + (uint64_t)(*p - '0');
    }
    *result = (int64_t)(minus ? 0 - sum : sum);
    if (*result == ABSENT)
        return wrong(in, "is a number that is not allowed");
    return OK;
}

static int
append(Scratch *scratch, const char *text, size_t size)
{
    if (scratch->size + size > scratch->room) {
        size_t room = (scratch->size + size) * 2 + 256;
        char *grown = PyMem_Realloc(scratch->text, room);
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        scratch->text = grown;
        scratch->room = room;
    }
    memcpy(scratch->text + scratch->size, text, size);
    scratch->size += size;
    return 0;
}

/* The key as it reads without escapes, if it is short and plain; it is compared with plain words only. */
static Token
unescaped(Token token, char *room)
{
    Token result = {room, 0};
    for (Py_ssize_t i = 0; i < token.size; i++) {
        unsigned c = (unsigned char)token.text[i];
        if (c == '\\') {
            c = (unsigned char)token.text[++i];
            if (c == 'u') {
                c = 0;
                for (int digit = 1; digit <= 4; digit++) {
                    unsigned h = (unsigned char)token.text[i + digit];
                    c = c * 16 + (h <= '9' ? h - '0' : (h | 0x20) - 'a' + 10);
                }
                i += 4;
            }
            else if (c != '"' && c != '\\' && c != '/')
                c = 1;
        }
        if (c > 0x7f || result.size >= MOST_KEY_BYTES)
            return (Token){room, 0};
        room[result.size++] = (char)c;
    }
    return result;
}

static int
is_key(Token token, const char *text, Py_ssize_t size)
{
    return token.size == size && memcmp(token.text, text, (size_t)size) == 0;
}
#define IS(token, literal) is_key(token, literal, (Py_ssize_t)sizeof(literal) - 1)

static Py_ssize_t
find(const Token *keys, Py_ssize_t count, Token token)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (keys[i].size == token.size && keys[i].text[0] == token.text[0] &&
            memcmp(keys[i].text, token.text, (size_t)token.size) == 0)
            return i;
    return -1;
}

/* The `args` of an event: integers to `ints`, what else is wanted to the scratch as JSON. */
static int
arguments(Input *in, const Keys *keys, int64_t *ints, Scratch *rest)
{
    int found, first = 1;
    char room[MOST_KEY_BYTES];
    in->at++;
    while ((found = another(in, '}', first)) > 0) {
        Token token;
        int escaped;
        first = 0;
        if ((found = key(in, &token, &escaped)) != OK)
            return found;
        if (escaped)
            token = unescaped(token, room);
        const char *begin = in->at;
        Py_ssize_t place = token.size ? find(keys->ints, keys->int_count, token) : -1;
        if (place >= 0) {
            ints[place] = keys->defaults[place];
            in->subject = keys->ints[place];
            if ((found = integer(in, &ints[place])) != OK)
                return found;
            in->subject.size = 0;
            continue;
        }
        if ((found = value(in, 2)) != OK)
            return found;
        place = token.size ? find(keys->texts, keys->text_count, token) : -1;
        if (place >= 0) {
            const Token *wanted = &keys->texts[place];
            if (append(rest, "\"", 1) < 0 || append(rest, wanted->text, (size_t)wanted->size) < 0 ||
                append(rest, "\":", 2) < 0 || append(rest, begin, (size_t)(in->at - begin)) < 0 ||
                append(rest, ",", 1) < 0)
                return WRONG;
        }
    }
    return found;
}

/* The number of a text in a dictionary, to which new ones are added; -1 with an error set. */
static Py_ssize_t
interned(PyObject *known, const char *text, size_t size)
{
    PyObject *key = PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
    if (key == NULL)
        return -1;
    PyObject *found = PyDict_GetItemWithError(known, key);
    Py_ssize_t result = -1;
    if (found != NULL)
        result = PyLong_AsSsize_t(found);
    else if (!PyErr_Occurred()) {
        PyObject *next = PyLong_FromSsize_t(PyDict_GET_SIZE(known));
        if (next != NULL && PyDict_SetItem(known, key, next) == 0)
            result = PyDict_GET_SIZE(known) - 1;
        Py_XDECREF(next);
    }
    Py_DECREF(key);
    return result;
}

typedef struct {
    PyObject *pairs, *lanes, *rests, *others;
    Scratch rest, joined;
} Found;

/* `first`, a comma and `second` as one text, in a dictionary. An absent token reads as JSON's null. */
static Py_ssize_t
interned_pair(Found *found, PyObject *known, Token first, Token second)
{
    found->joined.size = 0;
    if (append(&found->joined, first.size ? first.text : "null", first.size ? (size_t)first.size : 4) < 0 ||
        append(&found->joined, ",", 1) < 0 ||
        append(&found->joined, second.size ? second.text : "null", second.size ? (size_t)second.size : 4) < 0)
        return -1;
    return interned(known, found->joined.text, found->joined.size);
}

static int
raw(Input *in, Token *token)
{
    token->text = in->at;
    int found = value(in, 1);
    token->size = in->at - token->text;
    return found;
}

/* One event. 1 if it gave a row, 0 if it is none that rows are made of. */
static int
event(Input *in, const Keys *keys, int64_t *row, Py_ssize_t step, Found *result)
{
    const char *begin = in->at;
    Token category = {NULL, 0}, name = {NULL, 0}, pid = {NULL, 0}, tid = {NULL, 0}, phase = {NULL, 0};
    int64_t start = ABSENT, duration = ABSENT, ints[MOST_KEYS];
    char room[MOST_KEY_BYTES];
    int found, first = 1;
    if (*in->at != '{')
        return wrong(in, "an item of traceEvents should be an object");
    memcpy(ints, keys->defaults, (size_t)keys->int_count * sizeof *ints);
    result->rest.size = 0;
    in->at++;
    while ((found = another(in, '}', first)) > 0) {
        Token token;
        int escaped;
        first = 0;
        if ((found = key(in, &token, &escaped)) != OK)
            return found;
        if (escaped)
            token = unescaped(token, room);
        if (IS(token, "args")) {
            memcpy(ints, keys->defaults, (size_t)keys->int_count * sizeof *ints);
            result->rest.size = 0;
            if (*in->at == '{')
                found = arguments(in, keys, ints, &result->rest);
            else if (*in->at == 'n')
                found = word(in, "null", 4);
            else {
                found = value(in, 1);
                if (found == OK)
                    return wrong(in, "an event should have an object as args");
            }
        }
        else if (IS(token, "ts") || IS(token, "dur")) {
            in->subject = IS(token, "ts") ? (Token){"ts", 2} : (Token){"dur", 3};
            found = time_value(in, in->subject.size == 2 ? &start : &duration);
            if (found == OK)
                in->subject.size = 0;
        }
        else
            found = IS(token, "ph")     ? raw(in, &phase)
                    : IS(token, "cat")  ? raw(in, &category)
                    : IS(token, "name") ? raw(in, &name)
                    : IS(token, "pid")  ? raw(in, &pid)
                    : IS(token, "tid")  ? raw(in, &tid)
                                        : value(in, 1);
        if (found != OK)
            return found;
    }
    if (found != OK)
        return found;
    char kind = phase.size == 3 ? phase.text[1] : '\0';
    if (kind != 'X' && kind != 'i') {
        if (((kind == 's' || kind == 'f') && !IS(category, "\"async_npu\"")) || kind == 't' || kind == 'C')
            return 0; /* an arrow or a counter, which rows are not made of */
        PyObject *whole = PyBytes_FromStringAndSize(begin, in->at - begin);
        if (whole == NULL)
            return WRONG;
        found = PyList_Append(result->others, whole);
        Py_DECREF(whole);
        return found < 0 ? WRONG : 0;
    }
    if (start == ABSENT)
        return wrong(in, "an event without a time (ts)");
    if (!name.size)
        return wrong(in, "an event without a name");
    Py_ssize_t pair = interned_pair(result, result->pairs, category, name), rest = -1;
    Py_ssize_t lane = pair < 0 ? -1 : interned_pair(result, result->lanes, pid, tid);
    if (lane >= 0 && result->rest.size > 0 &&
        (rest = interned(result->rests, result->rest.text, result->rest.size)) < 0)
        return WRONG;
    if (lane < 0)
        return WRONG;
    row[0] = kind;
    row[step] = pair;
    row[2 * step] = lane;
    row[3 * step] = start;
    row[4 * step] = duration;
    row[5 * step] = rest;
    for (Py_ssize_t i = 0; i < keys->int_count; i++)
        row[(FIXED + i) * step] = ints[i];
    return 1;
}

static int
take_keys(PyObject *given, Token *keys, Py_ssize_t *count)
{
    *count = PyTuple_GET_SIZE(given);
    if (*count > MOST_KEYS) {
        PyErr_SetString(PyExc_ValueError, "too many keys");
        return -1;
    }
    for (Py_ssize_t i = 0; i < *count; i++)
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(given, i), (char **)&keys[i].text, &keys[i].size) < 0)
            return -1;
    return 0;
}

static PyObject *
scan(PyObject *self, PyObject *args)
{
    Py_buffer data = {0}, out = {0}, defaults = {0};
    Py_ssize_t begin;
    int first;
    PyObject *ints, *texts, *answer = NULL;
    Found result = {0};
    Keys keys;
    if (!PyArg_ParseTuple(args, "y*npO!O!y*O!O!O!w*", &data, &begin, &first, &PyTuple_Type, &ints, &PyTuple_Type,
                          &texts, &defaults, &PyDict_Type, &result.pairs, &PyDict_Type, &result.lanes, &PyDict_Type,
                          &result.rests, &out))
        return NULL;
    if (take_keys(ints, keys.ints, &keys.int_count) < 0 || take_keys(texts, keys.texts, &keys.text_count) < 0)
        goto done;
    keys.defaults = defaults.buf;
    Py_ssize_t columns = FIXED + keys.int_count;
    Py_ssize_t room = out.len / (Py_ssize_t)sizeof(int64_t) / columns;
    if (defaults.len < keys.int_count * (Py_ssize_t)sizeof(int64_t) || begin < 0 || begin > data.len || room < 1) {
        PyErr_SetString(PyExc_ValueError, "buffers that do not fit each other");
        goto done;
    }
    if ((result.others = PyList_New(0)) == NULL)
        goto done;
    Input in = {data.buf, (const char *)data.buf + begin, (const char *)data.buf + data.len, NULL, {NULL, 0}};
    const char *safe = in.at; /* after the last complete event */
    Py_ssize_t count = 0;
    int closed = 0;
    while (count < room) {
        int found = another(&in, ']', first);
        if (found > 0)
            found = event(&in, &keys, (int64_t *)out.buf + count, room, &result);
        else if (found == 0) {
            closed = 1;
            safe = in.at;
            break;
        }
        if (found == MORE)
            break;
        if (found == WRONG) {
            if (!PyErr_Occurred()) {
                char words[256];
                PyOS_snprintf(words, sizeof words, "%.*s%s%s", (int)in.subject.size,
                              in.subject.size ? in.subject.text : "", in.subject.size ? " " : "", in.fault);
                PyObject *told = Py_BuildValue("sn", words, (Py_ssize_t)(in.at - in.data));
                if (told != NULL)
                    PyErr_SetObject(PyExc_ValueError, told);
                Py_XDECREF(told);
            }
            goto done;
        }
        count += found;
        first = 0;
        safe = in.at;
    }
    answer = Py_BuildValue("nnOOO", count, (Py_ssize_t)(safe - in.data), closed ? Py_True : Py_False,
                           first ? Py_True : Py_False, result.others);
done:
    PyMem_Free(result.rest.text);
    PyMem_Free(result.joined.text);
    Py_XDECREF(result.others);
    PyBuffer_Release(&data);
    PyBuffer_Release(&defaults);
    PyBuffer_Release(&out);
    return answer;
}

static PyMethodDef METHODS[] = {
    {"scan", scan, METH_VARARGS, "Read events of a Chrome trace into columns; see kineto_scan.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kineto_scan", NULL, 0, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__kineto_scan(void)
{
    return PyModule_Create(&MODULE);
}
