/* The simulator's own log of what the device did: kept in memory for mtsimActivityRead, and written as JSON lines to the
 * file that MINDTORCH_NPU_SIM_LOG names ("{pid}" stands for the process id). Times are ticks of 20 ns. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mtsimActivity *kept;
static size_t count, room;
static bool keeping;
static FILE *file;
static bool file_tried;
static uint64_t correlation;

uint64_t activity_next_correlation(void) { return __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED); }

const char *intern(const char *text)
{
    static struct Word { struct Word *next; char text[]; } *words[256];
    static pthread_mutex_t word_lock = PTHREAD_MUTEX_INITIALIZER;
    unsigned hash = 5381;
    for (const char *c = text; *c; c++) hash = hash * 33 + (unsigned char)*c;
    pthread_mutex_lock(&word_lock);
    struct Word **slot = &words[hash % 256], *word = *slot;
    while (word && strcmp(word->text, text)) word = word->next;
    if (!word) {
        word = malloc(sizeof *word + strlen(text) + 1);
        if (!word) die("the host is out of memory");
        strcpy(word->text, text);
        word->next = *slot;
        *slot = word;
    }
    pthread_mutex_unlock(&word_lock);
    return word->text;
}

static void open_file(void) /* lock held */
{
    file_tried = true;
    const char *pattern = getenv("MINDTORCH_NPU_SIM_LOG");
    if (!pattern || !*pattern) return;
    char path[4096];
    const char *mark = strstr(pattern, "{pid}");
    if (mark) snprintf(path, sizeof path, "%.*s%ld%s", (int)(mark - pattern), pattern, (long)getpid(), mark + 5);
    else snprintf(path, sizeof path, "%s", pattern);
    file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "NPU simulator: MINDTORCH_NPU_SIM_LOG: %s cannot be written\n", path);
        return;
    }
    fprintf(file, "{\"simulator\": \"%s\", \"tick_ns\": %d}\n", settings.soc, TICK_NS);
}

static void write_line(const mtsimActivity *a)
{
    static const char *const KINDS[] = {"", "kernel", "memcpy", "memset", "event", "wait", "failed"};
    fprintf(file,
            "{\"kind\": \"%s\", \"name\": \"%s\", \"type\": \"%s\", \"device\": %u, \"stream\": %d, \"correlation\": %llu, \"submit\": %llu, "
            "\"start\": %llu, \"end\": %llu, \"bytes\": %llu, \"operations\": %llu}\n",
            KINDS[a->kind], a->name, a->type, a->device, a->stream, (unsigned long long)a->correlation, (unsigned long long)a->submit_ticks,
            (unsigned long long)a->start_ticks, (unsigned long long)a->end_ticks, (unsigned long long)a->bytes, (unsigned long long)a->operations);
}

void activity_record(const mtsimActivity *activity)
{
    pthread_mutex_lock(&lock);
    if (keeping) {
        if (count == room) {
            room = room ? room * 2 : 1024;
            kept = realloc(kept, room * sizeof *kept);
            if (!kept) die("the host is out of memory");
        }
        kept[count++] = *activity;
    }
    if (!file_tried) open_file();
    if (file) write_line(activity);
    pthread_mutex_unlock(&lock);
    if (activity->kind == ACTIVITY_KERNEL) mspti_kernel(activity);
}

void activity_flush_file(void)
{
    pthread_mutex_lock(&lock);
    if (file) fflush(file);
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void close_file(void) { activity_flush_file(); }

/* Switches the log in memory on (1) or off (0). */
EXPORT int mtsimActivityEnable(int on)
{
    pthread_mutex_lock(&lock);
    keeping = on != 0;
    pthread_mutex_unlock(&lock);
    return OK;
}

/* Moves the oldest entries out of the log; returns how many. With NULL tells how many there are. */
EXPORT uint64_t mtsimActivityRead(mtsimActivity *into, uint64_t most)
{
    pthread_mutex_lock(&lock);
    uint64_t moved = count;
    if (into) {
        if (moved > most) moved = most;
        if (moved) memcpy(into, kept, moved * sizeof *kept);
        if (count > moved) memmove(kept, kept + moved, (count - moved) * sizeof *kept);
        count -= moved;
        if (count == 0) {
            free(kept);
            kept = NULL;
            room = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return moved;
}
