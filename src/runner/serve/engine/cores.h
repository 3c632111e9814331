// The cores that threads run on. Inferences of the server run on those on which the pool was measured, because cores of one
// processor differ. Threads inherit the cores of the thread that starts them; only what prepares members takes all cores back,
// so that it disturbs no inference where another core is free. The library pins nothing: its threads are the program's.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

// Cores that this program had when it first asked: before any of its threads was pinned, where it asks for them in time.
inline const cpu_set_t& first_cores() {
    static const cpu_set_t found = [] {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        sched_getaffinity(0, sizeof mask, &mask);
        return mask;
    }();
    return found;
}

// Numbers of the cores that the calling thread may use.
inline std::vector<int> usable_cores() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    std::vector<int> found;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &mask)) found.push_back(core);
    return found;
}

// Numbers with commas between them.
inline std::string text_of(const std::vector<int>& cores) {
    std::string text;
    for (int core : cores) text += (text.empty() ? "" : ",") + std::to_string(core);
    return text;
}

// Makes the calling thread one that prepares: of low priority, on any core. With SCHED_IDLE, or with the lowest priority, a
// switch would wait for ever beside a busy core; with 10, the thread gets a tenth of a core that others want as a whole.
inline void step_back() {
    constexpr int nice = 10;
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), nice);  // of this thread alone, on Linux
    sched_setaffinity(0, sizeof(cpu_set_t), &first_cores());
}
