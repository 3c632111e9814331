/* libautotailor.so: runs a pool of SubNets in a program, always the most accurate one that meets its deadline now.
 *
 *     autotailor_pool* pool = autotailor_open("pool", NULL);
 *     if (!pool) fprintf(stderr, "%s\n", autotailor_error());
 *     autotailor_infer(pool, picture, 3, 224, 224, 20.0f, outputs, 1000, &result);
 *     autotailor_close(pool);
 *
 * Functions may be called by several threads at once; inferences of one pool take turns in the order of the calls.
 * A function that fails returns NULL or a number that is not 0, and autotailor_error() says why.
 */
#ifndef AUTOTAILOR_H
#define AUTOTAILOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AUTOTAILOR_API_VERSION 1

typedef struct autotailor_pool autotailor_pool;

enum {
    AUTOTAILOR_SWITCHED = 1,     /* another member ran than before */
    AUTOTAILOR_NOTHING_FITS = 2, /* no member meets the deadline now; the fastest one ran */
    AUTOTAILOR_LATE = 4          /* this inference exceeded its deadline */
};

typedef struct {
    uint32_t member;  /* number of the member that ran, see autotailor_member */
    uint32_t flags;   /* AUTOTAILOR_SWITCHED and others, added up */
    float latency_ms; /* wall time of the inference */
    float cpu_ms;     /* CPU time of the inference, for each thread */
} autotailor_result;

/* What this library is compatible with: AUTOTAILOR_API_VERSION of its header. */
int autotailor_version(void);

/* Opens a pool and loads its fastest member and the one that is to run first.
 * folder: has pool.txt. settings: as in autotailor_set, and memory_mb (MiB that materialised members may take), margin, dwell_s and
 * keep_s (seconds for which the member that ran before a switch stays in memory); NULL for the defaults. */
autotailor_pool* autotailor_open(const char* folder, const char* settings);

/* Ends a pool, and waits for the thread that prepares members. No other call may use the pool any more. NULL is allowed. */
void autotailor_close(autotailor_pool* pool);

/* The number of members, and the name of one; NULL where there is no such member. The name is valid until the pool is closed. */
uint32_t autotailor_members(autotailor_pool* pool);
const char* autotailor_member(autotailor_pool* pool, uint32_t member);

/* The size of the largest input, and the number of outputs. */
int autotailor_sizes(autotailor_pool* pool, int* channels, int* height, int* width, size_t* outputs);

/* Runs the best member on a picture: float32, normalised, channel by channel and row by row, with the size of one member's input.
 * A picture with NaN or infinity is refused.
 * deadline_ms: 0 for that of the settings. outputs: gets the outputs; count: places in it, at least autotailor_sizes' outputs.
 * result: may be NULL. */
int autotailor_infer(autotailor_pool* pool, const float* picture, int channels, int height, int width, float deadline_ms,
                     float* outputs, size_t count, autotailor_result* result);

/* Changes settings: a JSON object with deadline_ms, quantile, rate, battery, quota (numbers) or pin (a member's name); null takes
 * battery, quota and pin away. None is changed where one is invalid. */
int autotailor_set(autotailor_pool* pool, const char* settings);

/* Status as JSON, and metrics in Prometheus' text format. Writes at most size bytes with a zero at the end into text, and returns the
 * number of bytes that all of the text needs with its zero; 0 where it fails. */
size_t autotailor_status(autotailor_pool* pool, char* text, size_t size);
size_t autotailor_metrics(autotailor_pool* pool, char* text, size_t size);

/* Why the last call of this thread failed; valid until the thread's next call. */
const char* autotailor_error(void);

#ifdef __cplusplus
}
#endif

#endif
