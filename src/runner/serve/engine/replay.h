// Recorded latencies, replayed through monitor and choice: what a pool would have run, without its networks. The time, and
// what the machine says of a quota, are those of the recording.
#pragma once

#include <string>
#include <vector>

#include "report.h"

class Replay {
public:
    // step_ms: what one step of the monitor, and one choice, are taken to cost.
    Replay(const std::vector<Entry>& entries, int threads, double step_ms)
        : pool_(pool_of(entries, threads)), clock_(step_ms), chooser_(pool_, sensors_, clock_) {
        if (!(step_ms >= 0 && std::isfinite(step_ms))) throw PoolError("replay: a step is to cost milliseconds, not a negative time");
        settings_.policy.deadline_ms = default_deadline_ms(pool_);
        chooser_.apply(settings_);
    }
    Replay(const Replay&) = delete;

    const PoolChooser& chooser() const { return chooser_; }
    size_t size() const { return pool_.members.size(); }

    // Every setting can be changed, those included that hold for the life of a running pool.
    void set(const std::string& json) {
        const Settings wanted = changed(settings_, json, true);
        chooser_.apply(wanted);
        settings_ = wanted;
    }

    // The time goes on.
    void at(double now_ms, const Quota& quota) {
        if (!(now_ms >= clock_.now_ms && std::isfinite(now_ms))) throw PoolError("replay: the time went back");
        if (!(quota.cores > 0 && quota.period_ms > 0)) throw PoolError("replay: a quota has cores and a period, both positive");
        clock_.now_ms = now_ms;
        sensors_.told = quota;
    }

    bool ran(size_t member, double latency_ms, double cpu_ms) {
        if (!(latency_ms > 0 && cpu_ms > 0)) throw PoolError("replay: an inference takes positive times");
        return chooser_.learn(checked(member), latency_ms, cpu_ms);
    }

    PoolChooser::Choice choose(size_t target, double deadline_ms) {
        if (!(deadline_ms >= 0 && std::isfinite(deadline_ms))) throw PoolError("replay: the deadline is no time: expected milliseconds, or 0 for the settings'");
        return chooser_.choose(checked(target), deadline_ms > 0 ? deadline_ms : settings_.policy.deadline_ms);
    }

    size_t best_of(const std::vector<size_t>& members) const {
        if (members.empty()) throw PoolError("replay: expected members to choose from");
        for (size_t each : members) checked(each);
        return chooser_.best_of(members);
    }

    // Latency of a member that is not exceeded with a probability under the load of now.
    double bound_ms(size_t member, double quantile) const {
        if (!(quantile > 0 && quantile <= 1)) throw PoolError("replay: expected a probability above 0");
        const Monitor& monitor = chooser_.monitor();
        const double cpu = monitor.cpu_ms(pool_.members[checked(member)].split_ms, settings_.policy.horizon) * monitor.quantile(quantile);
        return cpu + monitor.waits.quantile_ms(cpu, quantile);
    }

    std::string json() const {
        return JsonObject().raw("settings", settings_json(settings_)).raw("load", readings_json(load_of(chooser_))).add("monitor_cpu_seconds", chooser_.spent_ms() / 1e3).text();
    }

private:
    struct Recorded : Clock {
        explicit Recorded(double step) : step_ms(step) {}
        double ms() const override { return now_ms; }
        double spent_ms(double) const override { return step_ms; }
        double now_ms = 0.0;
        const double step_ms;
    };

    struct Told : Sensors {
        double battery() const override { return NAN; }
        Quota quota() const override { return told; }
        Quota told;
    };

    static Pool pool_of(const std::vector<Entry>& entries, int threads) {
        if (threads < 1) throw PoolError("replay: expected at least one thread");
        Pool pool;
        pool.threads = threads;
        for (const Entry& entry : entries) {
            Member member;
            member.name = std::to_string(pool.members.size());
            member.accuracy = entry.accuracy;
            member.energy_mj = entry.energy_mj;
            member.latency_ms = entry.latency_ms();
            std::copy(entry.split_ms, entry.split_ms + 3, member.split_ms);
            const bool is_valid = std::isfinite(member.accuracy) && member.latency_ms > 0 && std::isfinite(member.latency_ms);
            if (!is_valid || *std::min_element(entry.split_ms, entry.split_ms + 3) < 0)
                throw PoolError("replay: member " + member.name + " needs a finite accuracy, and latencies that are not negative with a positive sum");
            pool.members.push_back(std::move(member));
        }
        return pool;
    }

    size_t checked(size_t member) const {
        if (member >= size()) throw PoolError("replay: there is no member " + std::to_string(member) + ": there are " + std::to_string(size()));
        return member;
    }

    const Pool pool_;
    Settings settings_;
    Told sensors_;
    Recorded clock_;
    PoolChooser chooser_;
};
