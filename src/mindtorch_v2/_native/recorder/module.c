/* mindtorch_v2._native._recorder: recording at the price of C.
 *
 * Everything here has a twin in Python with the same results (`_dispatch`, `profiler/recorder`), which is used where
 * this is not built; see `_native/_recorder.pyi` for what there is.
 */
#define NATIVE_MODULE
#include "native.h"

Py_ssize_t
slot_offset(PyObject *type, const char *name)
{
    PyObject *member = PyObject_GetAttrString(type, name);
    if (member == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(member, &PyMemberDescr_Type) && ((PyMemberDescrObject *)member)->d_member->type == T_OBJECT_EX)
        offset = ((PyMemberDescrObject *)member)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_DECREF(member);
    return offset;
}

static PyObject *
native_clock(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(now_ns());
}

static PyMethodDef functions[] = {
    {"clock", native_clock, METH_NOARGS, "What time.perf_counter_ns() says."},
    {"set_thread", native_set_thread, METH_VARARGS, "set_thread(local, state_type): where threads keep their state."},
    {"set_tensor", native_set_tensor, METH_VARARGS, "set_tensor(tensor_type, constant_types): what Describer may look into."},
    {"begin", (PyCFunction)(void (*)(void))native_begin, METH_FASTCALL,
     "An op starts: begin(number of a description, describer, False or None, in_graph, *arguments)."},
    {"open", (PyCFunction)(void (*)(void))native_open, METH_FASTCALL,
     "A stretch of work starts, in which calls are noted: open(number of a description or None, sequence number)."},
    {"lines", native_lines, METH_O, "Whether events know the lines of the program, and what knows whose code is whose: lines(book or None)."},
    {"forget", native_forget, METH_NOARGS, "Describers forget the numbers they know."},
    {"watch", native_watch, METH_VARARGS, "What `begin` does with arguments: watch(describe, log of uses or None)."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_v2._native._recorder",
    .m_doc = "Recording at the price of C.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__recorder(void)
{
    import_array();
    if (PyType_Ready(&MarkType) < 0 || PyType_Ready(&BlockType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    if (PyModule_AddType(module, &BudgetType) < 0 || PyModule_AddType(module, &EventBufferType) < 0 ||
        PyModule_AddType(module, &DescriberType) < 0 || PyModule_AddType(module, &MemoryLogType) < 0 ||
        PyModule_AddType(module, &UseLogType) < 0 || PyModule_AddType(module, &CallBookType) < 0 ||
        PyModule_AddType(module, &CallLaneType) < 0 || PyModule_AddType(module, &CallProbeType) < 0 ||
        PyModule_AddType(module, &CallMonitorType) < 0 ||
        PyModule_AddIntConstant(module, "VERSION", NATIVE_VERSION) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
