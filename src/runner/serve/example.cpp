// Runs pictures through a pool, by the C interface:  example POOL DEADLINE_MS [COUNT] < picture.f32
// The picture is float32, normalised, channel by channel and row by row, at the size of the largest input.
// Compile:  c++ -std=c++17 example.cpp -I FOLDER -L FOLDER -lautotailor -Wl,-rpath,FOLDER -o example
#include <autotailor.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

int main(int count, char** words) {
    if (count < 3) {
        std::fprintf(stderr, "usage: example POOL DEADLINE_MS [COUNT] < picture.f32\n");
        return 64;
    }
    const std::unique_ptr<autotailor_pool, void (*)(autotailor_pool*)> pool(autotailor_open(words[1], nullptr), autotailor_close);
    if (!pool) {
        std::fprintf(stderr, "example: %s\n", autotailor_error());
        return 1;
    }
    int channels = 0, height = 0, width = 0;
    size_t classes = 0;
    autotailor_sizes(pool.get(), &channels, &height, &width, &classes);
    std::vector<float> picture(static_cast<size_t>(channels) * height * width), outputs(classes);
    if (std::fread(picture.data(), sizeof(float), picture.size(), stdin) != picture.size()) {
        std::fprintf(stderr, "example: expected a picture of %d x %d x %d float32 at standard input\n", channels, height, width);
        return 1;
    }
    for (int i = 0; i < (count > 3 ? std::atoi(words[3]) : 1); ++i) {
        autotailor_result result;
        autotailor_reached reached;
        const int failed = autotailor_infer_exits(pool.get(), picture.data(), channels, height, width, std::strtof(words[2], nullptr),
                                                  outputs.data(), outputs.size(), &result, &reached);
        if (failed) {
            std::fprintf(stderr, "example: %s\n", autotailor_error());
            return 1;
        }
        const auto best = std::max_element(outputs.begin(), outputs.end());
        std::printf("class %d of %zu, %.9g, by %s in %.3f ms%s", static_cast<int>(best - outputs.begin()), classes, *best,
                    autotailor_member(pool.get(), result.member), result.latency_ms, result.flags & AUTOTAILOR_LATE ? ", too late" : "");
        if (std::isnan(reached.confidence)) std::printf("\n");  // a pool without exits
        else std::printf(", exit %s, confidence %.3f\n", autotailor_exit(pool.get(), result.member, reached.exit), reached.confidence);
    }
    return 0;
}
