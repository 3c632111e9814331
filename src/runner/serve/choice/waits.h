// Waiting for the processor: how long an inference of so much CPU time is interrupted, found from those that ran. The twin
// of autotailor/runtime/waits.py, which says why; both are tested to find the same.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

class Waits {
public:
    static constexpr size_t most = 48, places = 48, lengths = 33;
    static constexpr double slice_ms = 3.0, least_share = 0.05, least_ms = 0.02, calm = 3.0;
    static constexpr size_t least_side = 2;

    void observe(double wall_ms, double cpu_ms) {
        double waited = wall_ms - cpu_ms;
        if (waited <= std::max(least_share * cpu_ms, least_ms)) waited = 0.0;
        if (cpu_.size() == most) {
            cpu_.erase(cpu_.begin());
            waited_.erase(waited_.begin());
        }
        cpu_.push_back(cpu_ms);
        waited_.push_back(waited);
        is_known_ = false;
    }

    // Forgets what came before interruptions became rarer, where they have beyond chance.
    void forget_before_calm() {
        double cpu = 0.0, count = 0.0;
        for (size_t i = 0; i < cpu_.size(); ++i) {
            cpu += cpu_[i];
            count += slices_of(i);
        }
        if (count == 0.0) return;
        double before = 0.0, n = 0.0, best = calm;
        size_t first = 0;
        for (size_t i = 0; i + least_side < cpu_.size(); ++i) {
            before += cpu_[i];
            n += slices_of(i);
            const double behind = cpu - before, m = count - n;
            if (i + 1 < least_side || m * before >= n * behind) continue;
            const double gain = score(n, before) + score(m, behind) - score(count, cpu);
            if (gain > best) {
                best = gain;
                first = i + 1;
            }
        }
        if (first == 0) return;
        cpu_.erase(cpu_.begin(), cpu_.begin() + static_cast<std::ptrdiff_t>(first));
        waited_.erase(waited_.begin(), waited_.begin() + static_cast<std::ptrdiff_t>(first));
        is_known_ = false;
    }

    // Waiting as a share of CPU time, over all that is remembered.
    double share() const { return cpu_.empty() ? 0.0 : sum(waited_) / sum(cpu_); }

    // How long an inference of so much CPU time waits at most with probability q.
    double quantile_ms(double cpu_ms, double q) const {
        know();
        if (is_idle_) return 0.0;
        if (q != q_) {
            q_ = q;
            place_ = static_cast<size_t>(std::ceil(q * static_cast<double>(places))) - 1;
        }
        if (cpu_ms <= lengths_ms_[0]) return sums_[0][place_];
        if (cpu_ms >= lengths_ms_[lengths - 1]) return sums_[lengths - 1][place_] * (cpu_ms / lengths_ms_[lengths - 1]);
        const size_t below = length_below(cpu_ms * per_whole_);
        const double low = sums_[below][place_], high = sums_[below + 1][place_];
        return low + (high - low) / (lengths_ms_[below + 1] - lengths_ms_[below]) * (cpu_ms - lengths_ms_[below]);
    }

private:
    // How often an inference was interrupted.
    double slices_of(size_t i) const { return waited_[i] > 0 ? std::max(1.0, std::nearbyint(cpu_[i] / slice_ms)) : 0.0; }

    // Logarithm of the likelihood of so many interruptions in so much CPU time, but for what all of them share.
    static double score(double count, double cpu_ms) { return count * std::log(std::max(count, 1.0) / cpu_ms); }

    static double sum(const std::vector<double>& values) {
        double total = 0.0;
        for (double value : values) total += value;
        return total;
    }

    // Lengths of windows, as shares of the whole axis: two in each octave from 2^-13, and 8.
    static double share_of(size_t i) {
        return i + 1 == lengths ? 8.0 : std::ldexp(i % 2 == 0 ? 1.0 : 1.5, static_cast<int>(i / 2) - 13);
    }

    // The last length that does not exceed a share of the whole axis. A decision asks for each member: the share's exponent
    // and the first bit of its fraction say which octave it is in, and which half of the octave.
    static size_t length_below(double share) {
        uint64_t bits;
        std::memcpy(&bits, &share, sizeof bits);
        const int octave = static_cast<int>(bits >> 52 & 0x7ff) - 1023 + 13;
        return static_cast<size_t>(std::clamp(2 * octave + static_cast<int>(bits >> 51 & 1), 0, static_cast<int>(lengths) - 2));
    }

    // The sums of waiting within windows of each length, rising along the places.
    void know() const {
        if (is_known_) return;
        is_known_ = true;
        is_idle_ = std::all_of(waited_.begin(), waited_.end(), [](double wait) { return wait == 0.0; });
        if (is_idle_) return;
        std::vector<double> stops, total = {0.0};
        double at = 0.0;
        for (size_t i = 0; i < cpu_.size(); ++i) {
            const double slices = slices_of(i);
            for (double number = 1; number <= slices; ++number) {
                stops.push_back(at + cpu_[i] / slices * number);
                total.push_back(total.back() + waited_[i] / slices);
            }
            at += cpu_[i];
        }
        const double whole = at;
        per_whole_ = 1 / whole;
        const auto until = [&](double place) {
            const double turns = std::floor(place / whole), rest = place - turns * whole;
            return turns * total.back() + total[static_cast<size_t>(std::upper_bound(stops.begin(), stops.end(), rest) - stops.begin())];
        };
        for (size_t i = 0; i < lengths; ++i) {
            lengths_ms_[i] = share_of(i) * whole;
            for (size_t j = 0; j < places; ++j) {
                const double start = (static_cast<double>(j) + 0.5) / static_cast<double>(places) * whole;
                sums_[i][j] = until(start + share_of(i) * whole) - until(start);
            }
            std::sort(sums_[i].begin(), sums_[i].end());
        }
    }

    std::vector<double> cpu_, waited_;
    mutable bool is_known_ = false, is_idle_ = true;
    mutable double q_ = -1.0, per_whole_ = 0.0;
    mutable size_t place_ = 0;
    mutable std::array<double, lengths> lengths_ms_ = {};
    mutable std::array<std::array<double, places>, lengths> sums_ = {};
};
