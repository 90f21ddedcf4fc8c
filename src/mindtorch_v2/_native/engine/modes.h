#ifndef MODES_H
#define MODES_H

PyDoc_STRVAR(exits_doc, "exits(thread)\n--\n\n`__exit__` of modes that change the thread's state: of those that do nothing\n"
                        "else, and of those whose `left` is to be called.");
PyObject *exits(PyObject *module, PyObject *thread);

#endif
