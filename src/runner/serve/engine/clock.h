// Wall and CPU time of inferences.
#pragma once

#include <time.h>

#include <cstdint>

inline double milliseconds_of(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

inline double wall_ms() { return milliseconds_of(CLOCK_MONOTONIC); }

// The time as monitor and choice see it: the machine's, unless a recorded load is replayed.
class Clock {
public:
    virtual ~Clock() = default;
    virtual double ms() const { return wall_ms(); }
    virtual double spent_ms(double since_ms) const { return wall_ms() - since_ms; }  // by a step that began then

    static const Clock& machine() {
        static const Clock only;
        return only;
    }
};

// CPU time of the calling thread, or of all threads but those of another clock.
class CpuClock {
public:
    // A network with one thread runs in the calling one. Others share their work with threads of OpenMP.
    CpuClock(int threads, clockid_t left_out) : threads_(threads), left_out_(left_out) {}

    double ms() const {
        if (threads_ == 1) return milliseconds_of(CLOCK_THREAD_CPUTIME_ID);
        return (milliseconds_of(CLOCK_PROCESS_CPUTIME_ID) - milliseconds_of(left_out_)) / threads_;
    }

private:
    int threads_;
    clockid_t left_out_;
};
