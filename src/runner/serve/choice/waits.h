// Waiting for the processor: how long an inference of so much CPU time is interrupted, found from those that ran.
//
// A scheduler lets a thread run for a slice, and then others run. An inference that is much shorter than a slice is seldom
// interrupted, but then for as long as a long one is; a long one is interrupted in proportion. So waiting is no share of CPU time.
// Here the last inferences are laid one behind the other on an axis of CPU time, each interruption at its place. What an inference of
// CPU time c waits lies within a window of length c, and windows at all places give its distribution. The axis is closed to a ring,
// so that windows longer than what is remembered exist as well; an inference's waiting is divided among its slices.
//
// What lies before a place is forgotten where interruptions have become rarer behind it, beyond chance: with n interruptions in the
// CPU time C before the place and m in D behind it, where the logarithm of the likelihood ratio of two Poisson processes to one,
//
//     n ln(n / C) + m ln(m / D) - (n + m) ln((n + m) / (C + D)),
//
// exceeds `calm`. Interruptions that become more frequent are not treated so: what was calm is worth remembering while a burst lasts.
// But a long inference has so many turns on the processor that its waiting measures the load. Where two of them, one behind the other
// but for short ones, both waited longer than any remembered window of their lengths, or both shorter, the load has made a step: what
// came before the first of the two is forgotten, where it was not all calm.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

// How much CPU time a thread may have (cgroup): when a period's budget is used up, it waits for the next period.
struct Quota {
    double cores = std::numeric_limits<double>::infinity();  // CPU time of a period over its length
    double period_ms = 100.0;

    // Waiting of a thread that never pauses, as a share of its CPU time.
    double forced() const { return std::max(0.0, 1 / cores - 1); }

    // What is left for each of some threads that compute together.
    Quota of_each(int threads) const { return {cores / threads, period_ms}; }

    bool operator==(const Quota& other) const { return cores == other.cores && period_ms == other.period_ms; }
};

class Waits {
public:
    static constexpr size_t most = 48, places = 48, lengths = 33;
    static constexpr double slice_ms = 3.0, least_share = 0.05, least_ms = 0.02, calm = 3.0;
    static constexpr double long_ms = 3 * slice_ms, least_forced = 0.5;
    static constexpr size_t least_side = 2, least_before = 8;

    void observe(double wall_ms, double cpu_ms) {
        double waited = wall_ms - cpu_ms;
        if (waited <= clocks_ms(cpu_ms)) waited = 0.0;
        if (cpu_.size() == most) {
            cpu_.erase(cpu_.begin());
            waited_.erase(waited_.begin());
        }
        cpu_.push_back(cpu_ms);
        waited_.push_back(waited);
        is_made_ = false;
        forget_rows();
    }

    // Forgets what came before the load changed, where it has beyond chance.
    void forget_before_change() {
        forget_before_calm();
        forget_before_step();
    }

    // The waits as they would have been under another quota, where they come from the quota before.
    void move_to_quota(const Quota& before, const Quota& after) {
        if (before.forced() == 0.0 || share() < least_forced * before.forced()) return;
        if (*std::max_element(cpu_.begin(), cpu_.end()) < long_ms && !is_made_) return;
        is_made_ = false;
        std::fill(waited_.begin(), waited_.end(), 0.0);
        if (after.forced() > 0.0) throttle(after);
        forget_rows();
    }

    // Waiting as a share of CPU time, over all that is remembered.
    double share() const { return cpu_.empty() ? 0.0 : sum(waited_) / sum(cpu_); }

    // How long an inference of so much CPU time waits at most with probability q.
    double quantile_ms(double cpu_ms, double q) const {
        know_stops();
        if (is_idle_) return 0.0;
        if (q != q_) {
            q_ = q;
            place_ = static_cast<size_t>(std::ceil(q * static_cast<double>(places))) - 1;
        }
        if (cpu_ms <= lengths_ms_[0]) return sums(0)[place_];
        if (cpu_ms >= lengths_ms_[lengths - 1]) return sums(lengths - 1)[place_] * (cpu_ms / lengths_ms_[lengths - 1]);
        const size_t below = length_below(cpu_ms * per_whole_);
        const double low = sums(below)[place_], high = sums(below + 1)[place_];
        return low + (high - low) / (lengths_ms_[below + 1] - lengths_ms_[below]) * (cpu_ms - lengths_ms_[below]);
    }

private:
    // What wall and CPU time of an inference differ by without any waiting, at most.
    static double clocks_ms(double cpu_ms) { return std::max(least_share * cpu_ms, least_ms); }

    // What is remembered of a thread that never pauses under a quota: each period's budget, then the rest of the period. Parts of
    // one slice have all waiting in one place.
    void throttle(const Quota& quota) {
        const double budget = quota.cores * quota.period_ms;
        const size_t count = std::min(static_cast<size_t>(std::max(1.0, std::ceil(budget / slice_ms))), most);
        cpu_.assign(count * (most / count), budget / static_cast<double>(count));
        waited_.assign(cpu_.size(), 0.0);
        is_made_ = true;
        for (size_t i = count; i <= waited_.size(); i += count) waited_[i - 1] = quota.period_ms - budget;
    }

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

    // Forgets what came before interruptions became rarer.
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
        if (first > 0) forget_before(first);
    }

    // Forgets what came before the first of two long inferences that both waited longer, or shorter, than all before.
    void forget_before_step() {
        size_t first = cpu_.size();
        for (size_t i = 0; i + 1 < cpu_.size(); ++i)
            if (cpu_[i] >= long_ms) first = i;
        if (first == cpu_.size() || first < least_before || cpu_.back() < long_ms) return;
        Waits before;
        before.cpu_.assign(cpu_.begin(), cpu_.begin() + static_cast<std::ptrdiff_t>(first));
        before.waited_.assign(waited_.begin(), waited_.begin() + static_cast<std::ptrdiff_t>(first));
        if (sum(before.waited_) == 0.0) return;  // a calm is worth remembering
        bool is_longer = true, is_shorter = true;
        for (size_t i : {first, cpu_.size() - 1}) {
            const double clocks = clocks_ms(cpu_[i]);
            is_longer = is_longer && waited_[i] > before.quantile_ms(cpu_[i], 1.0) + clocks;
            is_shorter = is_shorter && waited_[i] < before.quantile_ms(cpu_[i], 1.0 / static_cast<double>(places)) - clocks;
        }
        if (is_longer || is_shorter) forget_before(first);
    }

    void forget_before(size_t first) {
        cpu_.erase(cpu_.begin(), cpu_.begin() + static_cast<std::ptrdiff_t>(first));
        waited_.erase(waited_.begin(), waited_.begin() + static_cast<std::ptrdiff_t>(first));
        forget_rows();
    }

    void forget_rows() {
        are_stops_known_ = false;
        is_row_known_.fill(false);
    }

    // The places of the interruptions on the axis, and the waiting up to and with each of them.
    void know_stops() const {
        if (are_stops_known_) return;
        are_stops_known_ = true;
        is_idle_ = std::all_of(waited_.begin(), waited_.end(), [](double wait) { return wait == 0.0; });
        if (is_idle_) return;
        stops_.clear();
        total_.assign(1, 0.0);
        whole_ = 0.0;
        for (size_t i = 0; i < cpu_.size(); ++i) {
            const double slices = slices_of(i);
            for (double number = 1; number <= slices; ++number) {
                stops_.push_back(whole_ + cpu_[i] / slices * number);
                total_.push_back(total_.back() + waited_[i] / slices);
            }
            whole_ += cpu_[i];
        }
        per_whole_ = 1 / whole_;
        for (size_t i = 0; i < lengths; ++i) lengths_ms_[i] = share_of(i) * whole_;
    }

    // The sums of waiting within windows of one length, rising along the places; found when they are first asked for.
    const std::array<double, places>& sums(size_t i) const {
        if (is_row_known_[i]) return sums_[i];
        is_row_known_[i] = true;
        const auto until = [&](double place) {
            const double turns = std::floor(place / whole_), rest = place - turns * whole_;
            return turns * total_.back() + total_[static_cast<size_t>(std::upper_bound(stops_.begin(), stops_.end(), rest) - stops_.begin())];
        };
        for (size_t j = 0; j < places; ++j) {
            const double start = (static_cast<double>(j) + 0.5) / static_cast<double>(places) * whole_;
            sums_[i][j] = until(start + share_of(i) * whole_) - until(start);
        }
        std::sort(sums_[i].begin(), sums_[i].end());
        return sums_[i];
    }

    std::vector<double> cpu_, waited_;
    bool is_made_ = false;  // by a quota, and no inference has run since
    mutable bool are_stops_known_ = false, is_idle_ = true;
    mutable double q_ = -1.0, whole_ = 0.0, per_whole_ = 0.0;
    mutable size_t place_ = 0;
    mutable std::vector<double> stops_, total_;
    mutable std::array<bool, lengths> is_row_known_ = {};
    mutable std::array<double, lengths> lengths_ms_ = {};
    mutable std::array<std::array<double, places>, lengths> sums_ = {};
};
