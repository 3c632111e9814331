// What the machine says of itself, where it can be read: pressure, waiting, throttling, temperature, clock, battery, quota.
// The choice needs battery and quota at most; the rest tells people why.
#pragma once

#include <dirent.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <locale>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../../machine.h"
#include "../choice/waits.h"

using Readings = std::vector<std::pair<std::string, double>>;

class Sensors {
public:
    // root: a folder in whose proc and sys the files are; empty for the machine's own.
    explicit Sensors(const std::string& root = "") : proc_(root + "/proc"), sys_(root + "/sys") {}
    virtual ~Sensors() = default;

    // What can be read.
    Readings read() const {
        Readings found;
        auto add = [&](const char* name, double value) {
            if (!std::isnan(value)) found.emplace_back(name, value);
        };
        add("cpu_pressure", pressure("cpu"));
        add("memory_pressure", pressure("memory"));
        add("io_pressure", pressure("io"));
        double ran = NAN, waited = NAN;
        if (std::ifstream file(proc_ + "/self/schedstat"); file >> ran >> waited) {
            add("run_s", ran * 1e-9);
            add("waited_s", waited * 1e-9);
        }
        add("throttled", throttled());
        add("temperature_c", extreme("/class/thermal", "thermal_zone", "/temp", true) * 1e-3);
        add("clock_mhz", extreme(processors, "cpu", "/cpufreq/scaling_cur_freq", false) * 1e-3);
        add("clock_limit", clock_limit());
        add("battery", battery());
        const double cores = quota().cores;
        add("quota", std::isfinite(cores) ? cores : NAN);
        return found;
    }

    // Level from 0 to 1 while no charger is attached; NaN otherwise.
    virtual double battery() const {
        const std::string folder = sys_ + "/class/power_supply";
        for (const std::string& name : names(folder, "")) {
            std::string type, status;
            double percent = NAN;
            std::ifstream(folder + "/" + name + "/type") >> type;
            std::ifstream(folder + "/" + name + "/status") >> status;
            if (type == "Battery" && status == "Discharging" && read_number(folder + "/" + name + "/capacity", percent))
                return std::clamp(percent / 100, 0.0, 1.0);
        }
        return NAN;
    }

    // That of the tightest control group from this process' up to the root; infinite without a quota.
    virtual Quota quota() const {
        Quota tightest;
        for (const auto& [name, folder] : groups())
            for (std::string at = folder; at.size() > sys_.size(); at = at.substr(0, at.rfind('/'))) {
                const Quota found = name.empty() ? quotient(at + "/cpu.max") : quotient(at + "/cpu.cfs_quota_us", at + "/cpu.cfs_period_us");
                if (found.cores < tightest.cores) tightest = found;
            }
        return tightest;
    }

private:
    static constexpr const char* processors = "/devices/system/cpu";

    // some avg10=1.23 avg60=... : percent of the last ten seconds in which some task waited.
    double pressure(const std::string& kind) const {
        std::ifstream file(proc_ + "/pressure/" + kind);
        std::string some, average;
        if (!(file >> some >> average) || some != "some" || average.rfind("avg10=", 0) != 0) return NAN;
        return number(average.substr(6));
    }

    static double number(const std::string& text) {
        std::istringstream stream(text);
        stream.imbue(std::locale::classic());
        double value = NAN;
        return stream >> value ? value : NAN;
    }

    // Quota over period, in one file or in two.
    static Quota quotient(const std::string& path, const std::string& second = "") {
        double quota = NAN, period = NAN;
        if (second.empty()) {
            std::ifstream file(path);
            if (!(file >> quota >> period)) return {};
        } else if (!read_number(path, quota) || !read_number(second, period)) {
            return {};
        }
        return quota > 0 && period > 0 ? Quota{quota / period, period / 1000} : Quota{};
    }

    // Folders of this process' control groups: "" is that of version 2, "cpu" that of version 1.
    std::vector<std::pair<std::string, std::string>> groups() const {
        std::vector<std::pair<std::string, std::string>> found;
        std::ifstream file(proc_ + "/self/cgroup");
        for (std::string line; std::getline(file, line);) {
            const size_t first = line.find(':'), second = line.find(':', first + 1);
            if (first == std::string::npos || second == std::string::npos) continue;
            const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
            const bool is_first = ("," + controllers + ",").find(",cpu,") != std::string::npos;
            if (!is_first && !controllers.empty()) continue;
            const std::string root = sys_ + "/fs/cgroup" + (is_first ? "/" + controllers : "");
            found.emplace_back(is_first ? "cpu" : "", path != "/" && is_folder(root + path) ? root + path : root);  // a container may not see its path
        }
        return found;
    }

    // Times that a quota has been used up.
    double throttled() const {
        for (const auto& [controller, folder] : groups()) {
            std::ifstream file(folder + "/cpu.stat");
            std::string name;
            for (double value = 0.0; file >> name >> value;)
                if (name == "nr_throttled") return value;
        }
        return NAN;
    }

    // The largest or the smallest number that one kind of folder has in a file; NaN where none has.
    double extreme(const std::string& folder, const std::string& prefix, const std::string& file, bool is_most) const {
        double found = NAN, value = NAN;
        for (const std::string& name : names(sys_ + folder, prefix))
            if (read_number(sys_ + folder + "/" + name + file, value) && (std::isnan(found) || (is_most ? value > found : value < found))) found = value;
        return found;
    }

    // What the clock may reach now, as a share of what the processor can; of the core that is held back most.
    double clock_limit() const {
        double least = NAN, now = NAN, most = NAN;
        for (const std::string& name : names(sys_ + processors, "cpu")) {
            const std::string folder = sys_ + processors + "/" + name + "/cpufreq/";
            if (read_number(folder + "scaling_max_freq", now) && read_number(folder + "cpuinfo_max_freq", most) && most > 0 && !(now / most >= least))
                least = now / most;
        }
        return least;
    }

    static bool is_folder(const std::string& path) {
        DIR* open = opendir(path.c_str());
        if (open) closedir(open);
        return open != nullptr;
    }

    static std::vector<std::string> names(const std::string& folder, const std::string& prefix) {
        std::vector<std::string> found;
        if (DIR* open = opendir(folder.c_str())) {
            while (const dirent* entry = readdir(open))
                if (entry->d_name[0] != '.' && std::string(entry->d_name).rfind(prefix, 0) == 0) found.emplace_back(entry->d_name);
            closedir(open);
        }
        std::sort(found.begin(), found.end());
        return found;
    }

    std::string proc_, sys_;
};
