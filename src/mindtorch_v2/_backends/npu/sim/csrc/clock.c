/* The device's counter: 50 MHz, its own zero, and a drift against the host's clock. */
#include "sim.h"

#include <errno.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t host_ns(void) { return read_clock(CLOCK_MONOTONIC); }
uint64_t realtime_ns(void) { return read_clock(CLOCK_REALTIME); }

static uint64_t first_host_ns(void)
{
    static uint64_t first;
    uint64_t known = __atomic_load_n(&first, __ATOMIC_ACQUIRE);
    if (known) return known;
    uint64_t now = host_ns(), none = 0;
    return __atomic_compare_exchange_n(&first, &none, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? now : none;
}

static double rate(int device) { return 1.0 + (settings.model.drift_ppm + 7.0 * device) * 1e-6; } /* no two devices agree */

uint64_t ticks_at(int device, uint64_t host)
{
    double since = (double)(int64_t)(host - first_host_ns()); /* exact enough: 2^53 ns are 104 days */
    double boot_ns = (settings.model.boot_s + 1000.0 * device) * 1e9;
    return (uint64_t)(boot_ns / TICK_NS) + (uint64_t)(int64_t)(since * rate(device) / TICK_NS);
}

static uint64_t host_of(int device, uint64_t ticks)
{
    double boot_ns = (settings.model.boot_s + 1000.0 * device) * 1e9;
    double since = (double)(int64_t)(ticks - (uint64_t)(boot_ns / TICK_NS)) * TICK_NS / rate(device);
    return first_host_ns() + (uint64_t)(int64_t)since;
}

uint64_t ticks_now(int device) { return ticks_at(device, host_ns()); }

uint64_t ticks_on(int device, int other, uint64_t ticks)
{
    return device == other ? ticks : ticks_at(device, host_of(other, ticks)) + 1; /* not before that moment */
}

uint64_t ticks_of_us(double us) { return us <= 0 ? 0 : (uint64_t)(us * 1000.0 / TICK_NS + 0.999999); }

bool wait_for_ticks_until(int device, uint64_t ticks, uint64_t deadline)
{
    for (;;) {
        uint64_t now = host_ns();
        if (ticks_at(device, now) >= ticks) return true;
        if (now >= deadline) return false;
        uint64_t until = host_of(device, ticks) + TICK_NS;
        if (until > deadline) until = deadline;
        if (until <= now) until = now + TICK_NS;
        struct timespec at = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
    }
}

void wait_for_ticks(int device, uint64_t ticks) { wait_for_ticks_until(device, ticks, UINT64_MAX); }

/* The truth that a profiler's calibration only estimates; for tests. */
EXPORT uint64_t mtsimTicksToMonotonic(int device, uint64_t ticks)
{
    settings_load();
    return host_of(device, ticks);
}

EXPORT uint64_t mtsimDeviceTicks(int device)
{
    settings_load();
    return ticks_now(device);
}
