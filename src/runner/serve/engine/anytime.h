// Answers of members with exits: at the deadline the last exit that is done answers.
//
// The caller's thread computes the first exit, which is always waited for. Where the next one would end in time, a second thread goes on,
// and the caller sleeps until that thread has ended or the deadline is near. So an answer is in time even where layers take longer than
// forecast, or the computing thread is interrupted: the run is then given up before its next layer, and the next inference waits until
// that layer is done. An exit's layers begin where they would end in time at the pace of this run so far, or nearly, because forecasts
// err and giving up costs no answer. Where there is ample time by what whole runs have taken, the caller's thread goes on itself:
// handing over to another thread and processor costs a tenth of a run of two milliseconds, or more.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clock.h"
#include "loaded.h"

// How long before a deadline a sleeping thread is woken, so that its answer is in time in 995 of 1000 cases: a late one raises the margin
// by a fifth, and 199 others lower it as far. One answer that is late by much says no more than one that is late by little.
class Alarm {
public:
    static constexpr double least_ms = 0.05, raised = 1.2, lowered = 0.999084;  // the latter to the power of 199 is 1 / raised
    static constexpr double largest_share = 0.3;                                // of the time that there is

    double before_ms(double left_ms) const { return std::min(late_ms_, largest_share * std::max(left_ms, 0.0)); }
    void rang(double late_ms) { late_ms_ = std::max(late_ms_ * (late_ms > late_ms_ ? raised : lowered), least_ms); }

private:
    double late_ms_ = 2 * least_ms;
};

class Anytime {
public:
    static constexpr double begun = 0.8;   // of the forecast of an exit must fit, so that its layers begin
    static constexpr double ample = 10.0;  // times the slowest whole run of late

    // What a run has reached; times are those from its begin to the answer of the exit.
    struct Reached {
        size_t exit = 0;
        double confidence = NAN, wall_ms = 0.0, cpu_ms = 0.0;
        std::vector<float> outputs;
    };

    Anytime(const Confidence& confidence, const CpuClock& clock) : confidence_(confidence), clock_(clock) {}

    ~Anytime() {
        if (!thread_.joinable()) return;
        {
            const std::lock_guard<std::mutex> lock(guard_);
            is_over_ = is_given_up_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

    // Whether a run that was given up has not ended yet, so that its network must stay.
    bool holds(const Loaded* network) {
        const std::lock_guard<std::mutex> lock(guard_);
        return network_ == network;
    }

    // To be called when the answer is handed on, so that the next one is woken early enough for all that comes behind waking.
    void handed_on() {
        if (std::exchange(has_rung_, false)) alarm_.rang(wall_ms() - stop_ms_);
    }

    // The last exit that is done at a time, or the first that is as sure as its threshold. The picture has the network's size.
    Reached answer(Loaded& network, const float* picture, const Thresholds* thresholds, double until_ms) {
        std::unique_lock<std::mutex> lock(guard_);
        ended_.wait(lock, [this] { return network_ == nullptr; });
        network.take(picture);
        thresholds_ = thresholds;
        reached_.cpu_ms = 0.0;
        error_.clear();
        begin_ms_ = wall_ms();
        const double left_ms = std::min(until_ms - begin_ms_, longest_ms), cpu = clock_.ms();
        stop_ms_ = begin_ms_ + left_ms - alarm_.before_ms(left_ms);
        std::unique_ptr<ncnn::Extractor> extractor = network.begin();
        network.reach(*extractor, 0, [] { return true; });
        if (!note(network, 0, clock_.ms() - cpu) || !begins(network.member(), 1)) return reached_;
        if (ample * network.slowest_ms() <= stop_ms_ - wall_ms()) {
            for (size_t exit = 1, last = network.member().exits.size(); exit <= last; ++exit) {
                const double before = clock_.ms();
                network.reach(*extractor, exit, [] { return true; });
                if (!note(network, exit, clock_.ms() - before)) break;
            }
            return reached_;
        }
        if (!thread_.joinable()) thread_ = std::thread([this] { work(); });  // with the cores and the priority of the first caller
        extractor_ = std::move(extractor);
        is_given_up_ = false;
        network_ = &network;
        wake_.notify_one();
        has_rung_ = !ended_.wait_until(lock, at(stop_ms_), [this] { return network_ == nullptr; });
        is_given_up_ = true;
        if (!error_.empty()) throw PoolError(error_);
        return reached_;
    }

private:
    static constexpr double longest_ms = 86400e3;

    static std::chrono::steady_clock::time_point at(double ms) {
        return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(static_cast<int64_t>(ms * 1e6)));
    }

    // Takes what an exit says; returns whether the run may go on behind it.
    bool note(Loaded& network, size_t exit, double cpu_ms) {
        const size_t last = network.member().exits.size();
        reached_.exit = exit;
        reached_.outputs = network.outputs();
        reached_.confidence = confidence_.of(reached_.outputs, exit == last);
        reached_.wall_ms = wall_ms() - begin_ms_;
        reached_.cpu_ms = std::max(reached_.cpu_ms + cpu_ms, 1e-6);
        if (exit == last) network.took(reached_.wall_ms);
        return exit < last && !(thresholds_ && reached_.confidence >= (*thresholds_)[exit]);
    }

    // Whether an exit would be reached in time, or nearly.
    bool begins(const Member& member, size_t exit) const {
        const double before = member.reach_ms(exit - 1), pace = reached_.cpu_ms / before;
        return wall_ms() + begun * pace * (member.reach_ms(exit) - before) <= stop_ms_;
    }

    void work() {
        std::unique_lock<std::mutex> lock(guard_);
        for (;;) {
            wake_.wait(lock, [this] { return is_over_ || network_ != nullptr; });
            if (network_ == nullptr) return;
            lock.unlock();
            std::string error;
            try {
                go_on(*network_);
            } catch (const std::exception& found) {
                error = found.what();
            }
            extractor_.reset();
            lock.lock();
            if (!is_given_up_) error_ = error;
            network_ = nullptr;
            ended_.notify_one();
        }
    }

    // Reaches one exit after the other behind the first.
    void go_on(Loaded& network) {
        const Member& member = network.member();
        for (size_t exit = 1; exit == 1 || begins(member, exit); ++exit) {
            const double cpu = clock_.ms();
            if (!network.reach(*extractor_, exit, [this] { return !is_given_up_ && wall_ms() < stop_ms_; })) return;
            const std::lock_guard<std::mutex> lock(guard_);
            if (is_given_up_ || !note(network, exit, clock_.ms() - cpu)) return;
        }
    }

    const Confidence confidence_;
    const CpuClock& clock_;
    Alarm alarm_;
    std::mutex guard_;
    std::condition_variable wake_, ended_;
    Loaded* network_ = nullptr;  // that the second thread runs
    std::unique_ptr<ncnn::Extractor> extractor_;
    const Thresholds* thresholds_ = nullptr;
    double begin_ms_ = 0.0, stop_ms_ = 0.0;  // the latter: when the caller answers
    Reached reached_;
    std::string error_;
    std::atomic<bool> is_given_up_{false};
    bool is_over_ = false, has_rung_ = false;
    std::thread thread_;
};
