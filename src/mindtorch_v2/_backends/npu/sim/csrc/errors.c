/* Error texts, one a thread, cleared when read. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread char text[512], read_copy[512];

void set_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
}

const char *error_text(void) { return text; }
void error_clear(void) { text[0] = 0; }

EXPORT const char *aclGetRecentErrMsg(void)
{
    if (!text[0]) return NULL;
    memcpy(read_copy, text, sizeof text);
    text[0] = 0;
    return read_copy;
}

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("NPU simulator: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(stderr);
    abort();
}
