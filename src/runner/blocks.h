// What is said of many runs. The statistic is that of profiling/runtimes/runner_loop.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

// Means of some blocks of consecutive runs, without the slowest twentieth of all: those were interrupted.
inline std::vector<double> block_means(const std::vector<int64_t>& times, int blocks) {
    constexpr size_t interrupted = 20;
    std::vector<size_t> order(times.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
    std::vector<bool> kept(times.size(), true);
    for (size_t i = times.size() > 2 ? std::max<size_t>(1, times.size() / interrupted) : 0; i > 0; --i)
        kept[order[times.size() - i]] = false;
    std::vector<double> result;
    const size_t count = std::max<size_t>(1, std::min<size_t>(blocks, times.size() / 2));
    size_t begin = 0;
    for (size_t i = 0; i < count; ++i) {
        const size_t end = begin + times.size() / count + (i < times.size() % count);
        double sum = 0.0;
        int runs = 0;
        for (; begin < end; ++begin)
            if (kept[begin]) sum += static_cast<double>(times[begin]), ++runs;
        result.push_back(sum / runs);
    }
    return result;
}
