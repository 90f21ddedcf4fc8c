/* How often each function of a file has run, with names; ends with a name of NULL. */
#ifndef MINDTORCH_COUNTER_H
#define MINDTORCH_COUNTER_H

typedef struct {
    const char *name;
    long long calls;
} Counter;

#endif
