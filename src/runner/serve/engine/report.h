// What an engine tells of itself: settings and status as JSON, metrics in Prometheus' text format.
#pragma once

#include <string>

#include "engine.h"
#include "json.h"

// A memory limit; 0 for none.
inline size_t megabytes(double count) {
    if (!(count >= 0 && count < 1 << 30)) throw PoolError("memory_mb: expected a number of MiB, or 0 for no limit");
    return static_cast<size_t>(count * (1 << 20));
}

// A number of inferences ahead for which the load is forecast.
inline int inferences_ahead(double count) {
    if (!(count >= 1 && count <= 1000)) throw PoolError("horizon: expected a number of inferences from 1 to 1000");
    return static_cast<int>(count);
}

// exits.json writes "60 %", and pool.txt, whose words have no blanks, 60%.
inline std::string without_blanks(std::string name) {
    name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
    return name;
}

// Changes the settings that a JSON object names: numbers for deadline_ms, quantile, rate, battery and quota, a member's name for
// pin, a name for thresholds of exits. null takes battery, quota, pin and thresholds away. What holds for the life of an engine can be given when it opens only.
inline Settings changed(Settings settings, const std::string& json, bool opens = false) {
    for (const auto& each : JsonReader(json).object()) {
        const std::string& name = each.first;
        const JsonValue& value = each.second;
        auto number = [&]() {
            if (value.kind != JsonValue::number) throw PoolError("set: " + name + " is no number");
            return value.value;
        };
        auto number_or = [&](double without) { return value.kind == JsonValue::null ? without : number(); };
        if (name == "deadline_ms") settings.policy.deadline_ms = number();
        else if (name == "quantile") settings.policy.quantile = number();
        else if (name == "rate") settings.policy.rate = number();
        else if (name == "battery") settings.battery = number_or(NAN);
        else if (name == "quota") settings.policy.quota = number_or(std::numeric_limits<double>::infinity());
        else if (name == "margin" && opens) settings.policy.margin = number();
        else if (name == "dwell_s" && opens) settings.policy.dwell_s = number();
        else if (name == "horizon" && opens) settings.policy.horizon = inferences_ahead(number());
        else if (name == "keep_s" && opens) settings.keep_s = number();
        else if (name == "long_s" && opens) settings.long_s = number();
        else if (name == "memory_mb" && opens) settings.most_memory_bytes = megabytes(number());
        else if (name == "pin") {
            if (value.kind == JsonValue::number || (value.kind == JsonValue::string && value.text.empty()))
                throw PoolError("set: pin is the name of a member, or null");
            settings.pin = value.text;
        } else if (name == "thresholds") {
            if (value.kind == JsonValue::number) throw PoolError("set: thresholds is the name of some, such as guaranteed or 60%, or null");
            settings.thresholds = without_blanks(value.text);
        } else {
            throw PoolError("set: " + name + " is no setting; there are deadline_ms, quantile, rate, battery, quota, pin, thresholds");
        }
    }
    return settings;
}

inline std::string settings_json(const Settings& settings, bool has_exits = false) {
    const Policy& policy = settings.policy;
    JsonObject object;
    object.add("deadline_ms", policy.deadline_ms).add("quantile", policy.quantile).add("rate", policy.rate);
    object.add("battery", settings.battery).add("quota", policy.quota);
    object.raw("pin", settings.pin.empty() ? "null" : quoted(settings.pin));
    if (has_exits) object.raw("thresholds", settings.thresholds.empty() ? "null" : quoted(settings.thresholds));
    return object.text();
}

// What is known of the load.
inline Readings load_of(const PoolChooser& chooser) {
    const Monitor& monitor = chooser.monitor();
    const Policy& policy = chooser.settings().policy;
    return {{"slowdown_compute", monitor.load.slowdown[0]}, {"slowdown_memory", monitor.load.slowdown[1]},
            {"slowdown_fixed", monitor.load.slowdown[2]},   {"slowdown", monitor.load.ratio},
            {"waiting", monitor.waits.share()},              {"forecast", monitor.forecast.factor(policy.horizon)},
            {"quantile", monitor.quantile(policy.quantile)}};
}

inline std::string readings_json(const Readings& readings) {
    JsonObject object;
    for (const auto& [name, value] : readings) object.add(name, value);
    return object.text();
}

// How often each exit of a member answered.
inline std::string by_exit_json(const Member& member, const std::vector<uint64_t>& counts) {
    JsonObject object;
    for (size_t exit = 0; exit < counts.size(); ++exit) object.add(member.exit_name(exit), counts[exit]);
    return object.text();
}

inline std::string exits_json(const Member& member) {
    std::vector<std::string> exits;
    for (const Exit& each : member.exits)
        exits.push_back(JsonObject().add("name", each.name).add("accuracy", each.accuracy).add("latency_ms", each.latency_ms).text());
    return json_list(exits);
}

inline std::string counters_json(const Engine& engine) {
    const Counters& counters = engine.counters();
    const double total = static_cast<double>(counters.total());
    JsonObject object, by_member, by_exit;
    std::vector<std::string> events;
    for (size_t i = 0; i < counters.inferences.size(); ++i) {
        const Member& member = engine.pool().members[i];
        by_member.add(member.name, counters.inferences[i]);
        by_exit.raw(member.name, by_exit_json(member, counters.exits[i]));
    }
    for (const Happened& each : counters.events)
        events.push_back(JsonObject().add("seconds", each.seconds).add("event", each.event).add("from", each.from).add("to", each.to).text());
    object.add("inferences", counters.total()).raw("by_member", by_member.text()).add("missed", counters.missed);
    if (engine.pool().has_exits) object.raw("by_exit", by_exit.text());
    object.add("switches", counters.switches).add("errors", counters.errors).add("nothing_fits", counters.nothing_fits);
    object.add("preparations", counters.preparations);
    object.add("mean_preparation_ms", counters.prepared_sum_ms / static_cast<double>(counters.preparations));
    object.add("mean_accuracy", counters.accuracy_sum / total).add("mean_wall_ms", counters.wall_sum_ms / total);
    return object.add("mean_cpu_ms", counters.cpu_sum_ms / total).raw("events", json_list(events)).text();
}

inline std::string status_json(const Engine& engine, const Sensors& sensors) {
    const Pool& pool = engine.pool();
    std::vector<std::string> members, loaded;
    for (size_t i = 0; i < pool.members.size(); ++i) {
        const Member& member = pool.members[i];
        JsonObject object;
        object.add("name", member.name).add("accuracy", member.accuracy).add("latency_ms", member.latency_ms);
        members.push_back((member.exits.empty() ? object : object.raw("exits", exits_json(member))).text());
        if (engine.is_loaded(i)) loaded.push_back(quoted(member.name));
    }
    std::vector<std::string> cores;
    for (int core : usable_cores()) cores.push_back(std::to_string(core));
    JsonObject broken, status;
    for (const auto& [name, why] : engine.broken()) broken.add(name, why);
    status.add("model", pool.model).add("device", pool.device).raw("members", json_list(members));
    if (!pool.task.empty()) status.add("task", pool.task);
    status.add("active", pool.members[engine.running()].name).add("target", pool.members[engine.target()].name);
    status.raw("loaded", json_list(loaded)).raw("broken", broken.text()).add("seconds", engine.counters().seconds());
    status.raw("cores", json_list(cores)).raw("settings", settings_json(engine.settings(), pool.has_exits)).raw("load", readings_json(load_of(engine.chooser())));
    status.raw("machine", readings_json(sensors.read())).add("monitor_cpu_seconds", engine.chooser().spent_ms() / 1e3);
    status.raw("wants_search", engine.wants_search() ? "true" : "false").raw("counters", counters_json(engine));
    return status.text();
}

// Prometheus' text format: one family after the other.
class Metrics {
public:
    void family(const std::string& name, const char* type, const std::string& help) {
        text_ += "# HELP autotailor_" + name + " " + help + "\n# TYPE autotailor_" + name + " " + type + "\n";
    }
    void sample(const std::string& name, double value, const std::string& labels = "") {
        text_ += "autotailor_" + name + (labels.empty() ? "" : "{" + labels + "}") + " " + (std::isfinite(value) ? JsonObject::number(value) : "NaN") + "\n";
    }
    void single(const std::string& name, const char* type, const std::string& help, double value) {
        family(name, type, help);
        sample(name, value);
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;
};

inline std::string metrics_text(const Engine& engine, const Sensors& sensors) {
    const Pool& pool = engine.pool();
    const Counters& counters = engine.counters();
    Metrics metrics;
    auto count = [&](const std::string& name, const char* help, double value) { metrics.single(name + "_total", "counter", help, value); };
    metrics.family("inferences_total", "counter", "Inferences by member.");
    for (size_t i = 0; i < pool.members.size(); ++i)
        metrics.sample("inferences_total", static_cast<double>(counters.inferences[i]), "member=" + quoted(pool.members[i].name));
    if (pool.has_exits) {
        metrics.family("exits_total", "counter", "Answers by member and exit.");
        for (size_t i = 0; i < pool.members.size(); ++i)
            for (size_t exit = 0; exit < counters.exits[i].size(); ++exit)
                metrics.sample("exits_total", static_cast<double>(counters.exits[i][exit]), "member=" + quoted(pool.members[i].name) + ",exit=" + quoted(pool.members[i].exit_name(exit)));
    }
    count("missed", "Inferences that took longer than their deadline.", static_cast<double>(counters.missed));
    count("switches", "Switches to another member.", static_cast<double>(counters.switches));
    count("errors", "Requests that failed.", static_cast<double>(counters.errors));
    count("nothing_fits", "Decisions that no member meets its deadline.", static_cast<double>(counters.nothing_fits));
    count("preparations", "Members that were materialised while another one ran.", static_cast<double>(counters.preparations));
    count("wall_seconds", "Wall time of the inferences.", counters.wall_sum_ms / 1e3);
    count("cpu_seconds", "CPU time of the inferences.", counters.cpu_sum_ms / 1e3);
    count("preparation_seconds", "Time in which members were materialised.", counters.prepared_sum_ms / 1e3);
    count("accuracy_percent", "Accuracy of the members that ran, summed.", counters.accuracy_sum);
    const std::string histogram = "latency_over_deadline";
    metrics.family(histogram, "histogram", "Latency as a multiple of the deadline.");
    double sum = 0.0;
    for (size_t i = 0; i < counters.ratios.size(); ++i) {
        sum += static_cast<double>(counters.ratios[i]);
        metrics.sample(histogram + "_bucket", sum, "le=" + quoted(i < counters.ends.size() ? JsonObject::number(counters.ends[i]) : "+Inf"));
    }
    metrics.sample(histogram + "_sum", counters.ratio_sum);
    metrics.sample(histogram + "_count", sum);
    metrics.family("active", "gauge", "1 for the member that runs.");
    for (size_t i = 0; i < pool.members.size(); ++i) metrics.sample("active", i == engine.running(), "member=" + quoted(pool.members[i].name));
    double loaded = 0.0;
    for (size_t i = 0; i < pool.members.size(); ++i) loaded += engine.is_loaded(i);
    for (const auto& [name, value] : load_of(engine.chooser())) metrics.single("load_" + name, "gauge", "What is known of the load.", value);
    for (const auto& [name, value] : sensors.read()) metrics.single("machine_" + name, "gauge", "What the machine says.", value);
    metrics.single("deadline_ms", "gauge", "Deadline of an inference.", engine.settings().policy.deadline_ms);
    metrics.single("monitor_cpu_seconds", "gauge", "Time that monitor and choice have taken.", engine.chooser().spent_ms() / 1e3);
    metrics.single("members_loaded", "gauge", "Materialised members.", loaded);
    metrics.single("wants_search", "gauge", "1 where nothing has fitted for long.", engine.wants_search());
    return metrics.text();
}
