// What is said of many runs. The statistic is that of profiling/runtimes/runner/loop.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

// Means of some blocks of consecutive runs, without the slowest twentieth of all: those were interrupted.
inline std::vector<double> block_means(const std::vector<int64_t>& times, int blocks) {
    constexpr double interrupted = 0.05, hardly = 1e-9;
    std::vector<size_t> order(times.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] > times[b]; });
    std::vector<double> weights(times.size());
    for (size_t i = 0; i < times.size(); ++i)
        weights[order[i]] = std::clamp(i + 1 - interrupted * times.size(), hardly, 1.0);
    std::vector<double> result;
    const size_t count = std::min<size_t>(blocks, times.size());
    size_t begin = 0;
    for (size_t i = 0; i < count; ++i) {
        const size_t end = begin + times.size() / count + (i < times.size() % count);
        double sum = 0.0, weight = 0.0;
        for (; begin < end; ++begin) {
            sum += weights[begin] * times[begin];
            weight += weights[begin];
        }
        result.push_back(sum / weight);
    }
    return result;
}
