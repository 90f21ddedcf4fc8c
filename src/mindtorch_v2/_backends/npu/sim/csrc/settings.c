/* Settings from the environment, the latency and throughput model, and faults to inject. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Settings settings;

/* Figures of the order of one 910B card; they are estimates, not measurements. */
static const Model MODEL_910B = {
    .start_us = 4.0, .kernel_us = 1.8, .copy_us = 6.0, .event_us = 0.2,
    .hbm_gbs = 1200, .pcie_gbs = 24, .pageable_gbs = 9, .peer_gbs = 28,
    .cube_half_tflops = 250, .cube_float_tflops = 60, .vector_tflops = 8,
    .drift_ppm = 18.5, .boot_s = 86400,
};
static const Model MODEL_ZERO = {.drift_ppm = 18.5, .boot_s = 86400}; /* no latency, endless throughput; the clock still drifts */

#define KEY(field) {#field, offsetof(Model, field)}
static const struct { const char *name; size_t offset; } MODEL_KEYS[] = {
    KEY(start_us), KEY(kernel_us), KEY(copy_us), KEY(event_us), KEY(hbm_gbs), KEY(pcie_gbs), KEY(pageable_gbs), KEY(peer_gbs),
    KEY(cube_half_tflops), KEY(cube_float_tflops), KEY(vector_tflops), KEY(drift_ppm), KEY(boot_s),
};

static char complaint[256]; /* about a setting; told by aclInit */
static struct { uint64_t at; bool onwards; uint64_t count; } faults[FAULT_KINDS];
static bool any_faults;
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *const FAULT_NAMES[FAULT_KINDS] = {"malloc", "kernel", "memcpy", "event", "launch", "lost"};

static void complain(const char *what, const char *value)
{
    snprintf(complaint, sizeof complaint, "NPU simulator: %s \"%.120s\" is not understood", what, value);
}

static void set_model(const char *text);

static bool model_key(char *item)
{
    char *equal = strpbrk(item, "=:");
    if (!equal) return false;
    *equal = 0;
    for (size_t k = 0; k < sizeof MODEL_KEYS / sizeof *MODEL_KEYS; k++)
        if (!strcmp(item, MODEL_KEYS[k].name)) {
            char *end;
            double value = strtod(equal + 1, &end);
            if (end == equal + 1 || *end) return false;
            *(double *)((char *)&settings.model + MODEL_KEYS[k].offset) = value;
            return true;
        }
    return false;
}

static void model_items(char *text)
{
    char *state = NULL;
    for (char *item = strtok_r(text, ", \t\r\n", &state); item; item = strtok_r(NULL, ", \t\r\n", &state)) {
        char copy[128];
        snprintf(copy, sizeof copy, "%s", item);
        if (!strcmp(item, "910b")) settings.model = MODEL_910B;
        else if (!strcmp(item, "zero")) settings.model = MODEL_ZERO;
        else if (!model_key(item)) complain("in MINDTORCH_NPU_SIM_MODEL, the item", copy);
    }
}

static void set_model(const char *text)
{
    settings.model = MODEL_910B;
    if (strchr(text, '/')) { /* a file of such items */
        FILE *file = fopen(text, "r");
        if (!file) { complain("MINDTORCH_NPU_SIM_MODEL names a file that cannot be read:", text); return; }
        char line[256];
        while (fgets(line, sizeof line, file)) {
            char *comment = strchr(line, '#');
            if (comment) *comment = 0;
            model_items(line);
        }
        fclose(file);
        return;
    }
    char *copy = strdup(text);
    model_items(copy);
    free(copy);
}

static void set_faults(const char *text)
{
    pthread_mutex_lock(&fault_lock);
    memset(faults, 0, sizeof faults);
    __atomic_store_n(&any_faults, *text != 0, __ATOMIC_RELEASE);
    char *copy = strdup(text), *state = NULL;
    for (char *item = strtok_r(copy, ", ", &state); item; item = strtok_r(NULL, ", ", &state)) {
        char *colon = strpbrk(item, ":="), *end = NULL;
        bool known = false;
        if (colon) {
            uint64_t at = strtoull(colon + 1, &end, 10);
            bool onwards = *end == '+';
            if (end != colon + 1 && at > 0 && !end[onwards])
                for (int kind = 0; kind < FAULT_KINDS; kind++)
                    if (strlen(FAULT_NAMES[kind]) == (size_t)(colon - item) && !strncmp(item, FAULT_NAMES[kind], (size_t)(colon - item))) {
                        faults[kind].at = at;
                        faults[kind].onwards = onwards;
                        known = true;
                    }
        }
        if (!known) complain("in MINDTORCH_NPU_SIM_FAULTS, the item", item);
    }
    free(copy);
    pthread_mutex_unlock(&fault_lock);
}

bool fault_hits(FaultKind kind)
{
    if (!__atomic_load_n(&any_faults, __ATOMIC_ACQUIRE)) return false;
    pthread_mutex_lock(&fault_lock);
    uint64_t now = ++faults[kind].count;
    bool hit = faults[kind].at && (now == faults[kind].at || (faults[kind].onwards && now > faults[kind].at));
    pthread_mutex_unlock(&fault_lock);
    return hit;
}

static bool byte_count(const char *text, uint64_t *value)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || number <= 0) return false;
    switch (*end) {
    case 'K': case 'k': number *= 1024.0; end++; break;
    case 'M': case 'm': number *= 1048576.0; end++; break;
    case 'G': case 'g': number *= 1073741824.0; end++; break;
    default: break;
    }
    if (*end == 'i') end++;
    if (*end == 'B' || *end == 'b') end++;
    *value = (uint64_t)number;
    return *end == 0;
}

/* One setting by its name without the prefix MINDTORCH_NPU_SIM_, lower case. */
static bool apply(const char *key, const char *value)
{
    if (!strcmp(key, "model")) set_model(value);
    else if (!strcmp(key, "faults")) set_faults(value);
    else if (!strcmp(key, "devices")) {
        char *end;
        long count = strtol(value, &end, 10);
        if (end == value || *end || count < 0 || count > MAX_DEVICES) { complain("MINDTORCH_NPU_SIM_DEVICES", value); return true; }
        settings.devices = (int)count;
    } else if (!strcmp(key, "memory")) {
        if (!byte_count(value, &settings.memory_bytes)) complain("MINDTORCH_NPU_SIM_MEMORY", value);
    } else if (!strcmp(key, "tail")) settings.tail_writes = strcmp(value, "0") != 0;
    else if (!strcmp(key, "poison")) settings.poison = strcmp(value, "0") != 0;
    else if (!strcmp(key, "preload")) settings.preloaded = strcmp(value, "0") != 0;
    else if (!strcmp(key, "soc")) snprintf(settings.soc, sizeof settings.soc, "%s-simulator", value);
    else return false;
    return true;
}

static void load_once(void)
{
    uint64_t host = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
    settings.devices = 1;
    settings.model = MODEL_910B;
    settings.memory_bytes = (uint64_t)64 << 30;
    if (host / 2 < settings.memory_bytes) settings.memory_bytes = host / 2; /* this machine has to hold it */
    snprintf(settings.soc, sizeof settings.soc, "Ascend910B2-simulator");
    static const char *const KEYS[] = {"model", "faults", "devices", "memory", "tail", "poison", "preload", "soc"};
    for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++) {
        char name[64] = "MINDTORCH_NPU_SIM_";
        size_t at = strlen(name);
        for (const char *c = KEYS[k]; *c; c++) name[at++] = (char)(*c - 'a' + 'A');
        name[at] = 0;
        const char *value = getenv(name);
        if (value) apply(KEYS[k], value);
    }
    const char *preload = getenv("LD_PRELOAD");
    if (preload && strstr(preload, "libmspti")) settings.preloaded = true;
}

void settings_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
}

const char *settings_complaint(void)
{
    return complaint[0] ? complaint : NULL;
}

/* The same settings by call, for tests that try several in one process. Devices and memory: before aclInit. */
EXPORT int mtsimConfigure(const char *key, const char *value)
{
    settings_load();
    complaint[0] = 0;
    if (!key || !value) return fail(E_PARAM, "mtsimConfigure needs a key and a value");
    bool of_memory = !strcmp(key, "devices") || !strcmp(key, "memory");
    if (of_memory && runtime_ready()) return fail(E_PARAM, "mtsimConfigure(\"%s\") must come before aclInit", key);
    if (!apply(key, value)) return fail(E_PARAM, "NPU simulator: no setting is called \"%s\"", key);
    if (complaint[0]) return fail(E_PARAM, "%s", complaint);
    if (of_memory) memory_reset_after_configuration();
    return OK;
}
