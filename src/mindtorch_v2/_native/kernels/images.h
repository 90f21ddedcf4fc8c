/* Pooling, resizing and sampling of images. */
#ifndef MINDTORCH_IMAGES_H
#define MINDTORCH_IMAGES_H

#include <Python.h>

#include "counter.h"

/* Put the functions into the module; -1 on error. */
int images_add(PyObject *module);

extern Counter images_calls[];

#endif
