// Answers of members with exits: at the deadline the last exit that is done answers.
//
// A thread of its own computes, and the caller sleeps until the run has ended or the deadline is near. So an answer is in time even
// where layers take longer than forecast, or the computing thread is interrupted: the run is then given up before its next layer, and
// the next inference waits until that layer is done. The first exit is always waited for. The layers of a later exit begin where they
// would end in time at the pace of this run so far, or nearly, because forecasts err and giving up costs no answer.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clock.h"
#include "loaded.h"

// How long before a deadline a sleeping thread is woken: by what the last wakings came late at most, but for one in 256.
class Alarm {
public:
    static constexpr size_t most = 256;
    static constexpr double first_ms = 0.1, largest_share = 0.3;  // of the time that there is

    double before_ms(double left_ms) const { return std::min(late_ms_, largest_share * std::max(left_ms, 0.0)); }

    void rang(double late_ms) {
        if (last_.size() == most) last_.pop_front();
        last_.push_back(late_ms);
        std::vector<double> ordered(last_.begin(), last_.end());
        const auto place = ordered.end() - (last_.size() == most ? 2 : 1);
        std::nth_element(ordered.begin(), place, ordered.end());
        late_ms_ = std::max(*place, first_ms / 2);
    }

private:
    std::deque<double> last_;
    double late_ms_ = first_ms;
};

class Anytime {
public:
    static constexpr double begun = 0.8;  // of the forecast of an exit must fit, so that its layers begin

    // What a run has reached; times are those from its begin to the answer of the exit.
    struct Reached {
        bool is_any = false;
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

    // The last exit that is done at a time, or the first that is as sure as its threshold. The picture has the network's size.
    Reached answer(Loaded& network, const float* picture, const Thresholds* thresholds, double until_ms) {
        std::unique_lock<std::mutex> lock(guard_);
        ended_.wait(lock, [this] { return network_ == nullptr; });
        network.take(picture);
        thresholds_ = thresholds;
        reached_.is_any = false;
        error_.clear();
        const double now = wall_ms(), left_ms = std::min(until_ms - now, longest_ms);
        stop_ms_ = now + left_ms - alarm_.before_ms(left_ms);
        is_given_up_ = is_waited_for_ = false;
        network_ = &network;
        if (!thread_.joinable()) thread_ = std::thread([this] { work(); });  // with the cores and the priority of the first caller
        wake_.notify_one();
        if (!ended_.wait_until(lock, at(stop_ms_), [this] { return network_ == nullptr; })) {
            alarm_.rang(wall_ms() - stop_ms_);
            is_waited_for_ = true;
            ended_.wait(lock, [this] { return reached_.is_any || network_ == nullptr; });
        }
        is_given_up_ = true;
        if (!error_.empty()) throw PoolError(error_);
        return reached_;
    }

private:
    static constexpr double longest_ms = 86400e3;

    // What decides how far the run goes.
    struct Course {
        Anytime& of;
        const Member& member;
        const double begin_ms, cpu_ms;

        bool begins(size_t exit) const {
            if (exit == 0) return true;
            const double before = member.reach_ms(exit - 1), pace = spent_ms() / before;
            return wall_ms() + begun * pace * (member.reach_ms(exit) - before) <= of.stop_ms_;
        }
        bool goes_on(size_t exit) const { return exit == 0 ? !of.is_over_ : !of.is_given_up_ && wall_ms() < of.stop_ms_; }
        bool reached(size_t exit, const std::vector<float>& outputs) const {
            const double confidence = of.confidence_.of(outputs, exit == member.exits.size()), wall = wall_ms() - begin_ms;
            const std::lock_guard<std::mutex> lock(of.guard_);
            if (of.is_given_up_) return false;
            Reached& found = of.reached_;
            found.is_any = true;
            found.exit = exit;
            found.confidence = confidence;
            found.wall_ms = wall;
            found.cpu_ms = spent_ms();
            found.outputs = outputs;
            if (of.is_waited_for_) of.ended_.notify_one();
            const bool is_sure = of.thresholds_ && exit < of.thresholds_->size() && confidence >= (*of.thresholds_)[exit];
            return !is_sure && !of.is_waited_for_;
        }
        double spent_ms() const { return std::max(of.clock_.ms() - cpu_ms, 1e-6); }
    };

    static std::chrono::steady_clock::time_point at(double ms) {
        return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(static_cast<int64_t>(ms * 1e6)));
    }

    void work() {
        std::unique_lock<std::mutex> lock(guard_);
        for (;;) {
            wake_.wait(lock, [this] { return is_over_ || network_ != nullptr; });
            if (is_over_) return;
            lock.unlock();
            std::string error;
            try {
                network_->run(Course{*this, network_->member(), wall_ms(), clock_.ms()});
            } catch (const std::exception& found) {
                error = found.what();
            }
            lock.lock();
            if (!is_given_up_) error_ = error;
            network_ = nullptr;
            ended_.notify_one();
        }
    }

    const Confidence confidence_;
    const CpuClock& clock_;
    Alarm alarm_;
    std::mutex guard_;
    std::condition_variable wake_, ended_;
    Loaded* network_ = nullptr;  // that runs
    const Thresholds* thresholds_ = nullptr;
    double stop_ms_ = 0.0;       // when the caller answers; no later layer begins
    Reached reached_;
    std::string error_;
    std::atomic<bool> is_given_up_{false}, is_waited_for_{false}, is_over_{false};
    std::thread thread_;
};
