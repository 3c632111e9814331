// The machine: cores, frequencies, temperatures, and JSON strings about them.
#pragma once

#include <dirent.h>
#include <sched.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

inline std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (unsigned char c : text) {
        if (c == '"' || c == '\\') { out += '\\'; out += static_cast<char>(c); }
        else if (c < 0x20) { char code[8]; std::snprintf(code, sizeof code, "\\u%04x", c); out += code; }
        else out += static_cast<char>(c);
    }
    return out + "\"";
}

// Pins this process; false: the system refuses these cores.
inline bool pin(const std::vector<int>& cores) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int core : cores) CPU_SET(core, &mask);
    return cores.empty() || sched_setaffinity(0, sizeof mask, &mask) == 0;
}

inline bool read_number(const std::string& path, double& value) {
    std::ifstream file(path);
    return static_cast<bool>(file >> value);
}

// {"khz": {"0": 1800000}, "celsius": {"cpu-thermal": 45.0}}; null where the system does not tell.
inline std::string machine_state(const std::vector<int>& cores) {
    std::string khz, celsius;
    char text[64];
    double value = 0.0;
    std::vector<int> asked = cores;
    if (asked.empty()) for (int i = 0; i < 64; ++i) asked.push_back(i);
    for (int core : asked) {
        if (!read_number("/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq/scaling_cur_freq", value)) continue;
        std::snprintf(text, sizeof text, "%s\"%d\": %.0f", khz.empty() ? "" : ", ", core, value);
        khz += text;
    }
    const std::string root = "/sys/class/thermal";
    if (DIR* folder = opendir(root.c_str())) {
        while (dirent* entry = readdir(folder)) {
            const std::string zone = entry->d_name;
            if (zone.rfind("thermal_zone", 0) != 0 || !read_number(root + "/" + zone + "/temp", value)) continue;
            std::string type;
            std::ifstream(root + "/" + zone + "/type") >> type;
            std::snprintf(text, sizeof text, ": %.1f", value / 1000);
            celsius += (celsius.empty() ? "" : ", ") + quoted(zone + " " + type) + text;
        }
        closedir(folder);
    }
    return "{\"khz\": " + (khz.empty() ? "null" : "{" + khz + "}") + ", \"celsius\": " + (celsius.empty() ? "null" : "{" + celsius + "}") + "}";
}
