// What this process holds. The measures are those of profiling/runtimes/runner/loop.py.
#pragma once

#include <malloc.h>

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>

// MiB that the C library has handed out to this process; NaN where it does not say.
inline double heap_mb() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const auto heap = mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd) / (1 << 20);
#elif defined(__BIONIC__)
    return static_cast<double>(mallinfo().uordblks) / (1 << 20);
#else
    return NAN;
#endif
}

// A field of /proc/self/status, MiB.
inline double status_mb(const std::string& field) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1)) / 1024;
    throw std::runtime_error("/proc/self/status has no " + field);
}

// Makes the present memory the peak (man 5 proc, clear_refs).
inline void reset_peak() {
    std::ofstream file("/proc/self/clear_refs");
    if (!(file << "5" << std::flush)) throw std::runtime_error("the system does not let a process reset its peak memory");
}

// The peak of this process without pages of files: those are code, read when it first runs.
inline double peak_mb() { return status_mb("VmHWM") - status_mb("RssFile"); }
