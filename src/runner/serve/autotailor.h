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

#define AUTOTAILOR_API_VERSION 2

typedef struct autotailor_pool autotailor_pool;

enum {
    AUTOTAILOR_SWITCHED = 1,     /* another member ran than before */
    AUTOTAILOR_NOTHING_FITS = 2, /* no member meets the deadline now; the fastest one ran */
    AUTOTAILOR_LATE = 4,         /* this inference exceeded its deadline */
    AUTOTAILOR_EARLY = 8         /* an exit before the member's own answer answered */
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
 * folder: has pool.txt. settings: as in autotailor_set, and memory_mb (MiB that materialised members may take), margin, dwell_s,
 * horizon (inferences ahead for which the load is forecast), keep_s (seconds for which the member that ran before a switch stays
 * in memory) and long_s (seconds without a member that fits, after which the status says wants_search); NULL for the defaults. */
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

/* Members with exits answer before their end: at the deadline with the last exit that is done, and before it with the first whose
 * confidence reaches its threshold. Behind the first exit a thread of the pool computes, with the cores and the priority of the
 * thread that has asked first. */
typedef struct {
    uint32_t exit;    /* number of the exit that answered, 0 for the first; a member without exits answers with 0 */
    float confidence; /* of the exit: its largest probability, or the margin to the second; NaN in a pool without exits */
} autotailor_reached;

/* autotailor_infer, which also says which exit answered; reached: may be NULL. */
int autotailor_infer_exits(autotailor_pool* pool, const float* picture, int channels, int height, int width, float deadline_ms,
                           float* outputs, size_t count, autotailor_result* result, autotailor_reached* reached);

/* The name of a member's exit, "last" for its own answer; NULL where there is no such exit. */
const char* autotailor_exit(autotailor_pool* pool, uint32_t member, uint32_t exit);

/* Changes settings: a JSON object with deadline_ms, quantile, rate, battery, quota (numbers), pin (a member's name) or thresholds (a
 * name of those of exits: "guaranteed", "60%"); null takes battery, quota, pin and thresholds away, and without thresholds pictures
 * leave at the deadline only. None is changed where one is invalid. */
int autotailor_set(autotailor_pool* pool, const char* settings);

/* What is known of the load: how much slower operators run than without load, and waiting for the processor as a share of CPU time.
 * Either place may be NULL. */
int autotailor_load(autotailor_pool* pool, double* slowdown, double* waiting);

/* Status as JSON, and metrics in Prometheus' text format. Writes at most size bytes with a zero at the end into text, and returns the
 * number of bytes that all of the text needs with its zero; 0 where it fails. */
size_t autotailor_status(autotailor_pool* pool, char* text, size_t size);
size_t autotailor_metrics(autotailor_pool* pool, char* text, size_t size);

/* A replay: what a pool would run under recorded latencies, without its networks. The choice is that of a pool; the time and the quota
 * are those of the recording. One thread at a time may use a replay. */
typedef struct autotailor_replay autotailor_replay;

typedef struct {
    double accuracy, compute_ms, memory_ms, fixed_ms; /* percent; latency without load, by class of operators */
    double energy_mj;                                 /* of an inference; NaN where unknown */
} autotailor_cost;

typedef struct {
    uint32_t member;
    const char* event; /* "stay", "down" (the target no longer fits), "up", "nothing fits" or "pinned" */
    double latency_ms; /* which the member does not exceed with the probability of the settings; NaN where it is pinned */
} autotailor_choice;

/* members: of the pool, count of them, whose names are "0", "1" and so on. threads: that compute an inference, and share a quota.
 * step_ms: what a step of the monitor is taken to cost. settings: as in autotailor_open; NULL for the defaults. */
autotailor_replay* autotailor_replay_open(const autotailor_cost* members, uint32_t count, int threads, double step_ms,
                                          const char* settings);
void autotailor_replay_close(autotailor_replay* replay);

/* Changes settings, all that autotailor_open knows; none where one is invalid. */
int autotailor_replay_set(autotailor_replay* replay, const char* settings);

/* The time now, which does not go back, and the quota that the machine's files say: cores (infinite without a quota) and period. */
int autotailor_replay_at(autotailor_replay* replay, double now_ms, double cores, double period_ms);

/* An inference has taken so long. */
int autotailor_replay_ran(autotailor_replay* replay, uint32_t member, double latency_ms, double cpu_ms);

/* The member that is to run next where another one, the target, runs or is being prepared. deadline_ms: 0 for that of the settings. */
int autotailor_replay_choose(autotailor_replay* replay, uint32_t target, double deadline_ms, autotailor_choice* choice);

/* Of some members the best that fits as of the last choice; the fastest where none fits. */
int autotailor_replay_best(autotailor_replay* replay, const uint32_t* members, uint32_t count, uint32_t* best);

/* Latencies that the first count members do not exceed with a probability now. */
int autotailor_replay_bounds(autotailor_replay* replay, double quantile, double* bounds_ms, uint32_t count);

/* Settings, what is known of the load, and the monitor's own time, as JSON; see autotailor_status. */
size_t autotailor_replay_status(autotailor_replay* replay, char* text, size_t size);

/* Why the last call of this thread failed; valid until the thread's next call. */
const char* autotailor_error(void);

#ifdef __cplusplus
}
#endif

#endif
