// What has happened since the pool was opened.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "clock.h"

struct Happened {
    double seconds;  // since the pool was opened
    std::string event, from, to;
};

struct Counters {
    static constexpr size_t most_events = 64;
    static constexpr std::array<double, 10> ends = {0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0};  // latency over deadline

    const double opened_ms = wall_ms();
    std::vector<uint64_t> inferences;                    // by member
    std::vector<std::vector<uint64_t>> exits;            // by member and exit that answered, the member's own answer last
    std::array<uint64_t, ends.size() + 1> ratios = {};  // inferences up to each end and above the one before
    uint64_t missed = 0, switches = 0, errors = 0, nothing_fits = 0, preparations = 0;
    double accuracy_sum = 0.0, wall_sum_ms = 0.0, cpu_sum_ms = 0.0, ratio_sum = 0.0, prepared_sum_ms = 0.0;
    std::deque<Happened> events;  // the last ones

    double seconds() const { return (wall_ms() - opened_ms) / 1e3; }

    void happened(const std::string& event, const std::string& from, const std::string& to) {
        if (events.size() == most_events) events.pop_front();
        events.push_back({seconds(), event, from, to});
    }

    // Counts an inference; returns whether it has missed its deadline.
    bool ran(size_t member, double accuracy, double wall, double cpu, double deadline_ms) {
        const double ratio = wall / deadline_ms;
        size_t place = 0;
        while (place < ends.size() && ratio > ends[place]) ++place;
        ++ratios[place];
        ++inferences[member];
        accuracy_sum += accuracy;
        wall_sum_ms += wall;
        cpu_sum_ms += cpu;
        ratio_sum += ratio;
        missed += ratio > 1;
        return ratio > 1;
    }

    uint64_t total() const {
        uint64_t sum = 0;
        for (uint64_t each : inferences) sum += each;
        return sum;
    }
};
