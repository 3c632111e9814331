// Pictures at another size: bilinear with antialiasing, as the data are loaded and as torch's
// interpolate(mode="bilinear", antialias=True, align_corners=False) does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../files/size.h"

// For each place of the output: the first place of the input that it sees, and their weights.
struct Filter {
    struct Tap { size_t first, count, weights; };
    std::vector<Tap> taps;
    std::vector<float> weights;

    Filter(int from, int to) {
        const double scale = static_cast<double>(from) / to, widened_by = std::max(scale, 1.0);
        for (int i = 0; i < to; ++i) {
            const double center = scale * (i + 0.5);
            const int first = std::max(static_cast<int>(center - widened_by + 0.5), 0);
            const int last = std::min(static_cast<int>(center + widened_by + 0.5), from);
            std::vector<double> found;
            double sum = 0.0;
            for (int j = first; j < last; ++j) {
                found.push_back(std::max(0.0, 1.0 - std::abs((j - center + 0.5) / widened_by)));
                sum += found.back();
            }
            taps.push_back({static_cast<size_t>(first), found.size(), weights.size()});
            for (double weight : found) weights.push_back(static_cast<float>(weight / sum));
        }
    }
};

// How many of some numbers are NaN or infinite: those whose bits of the exponent are all set. The bits are read because a
// compiler may take std::isfinite for true under -ffast-math.
inline size_t not_finite(const float* numbers, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        std::memcpy(&bits, numbers + i, sizeof bits);
        found += (bits & 0x7f800000u) == 0x7f800000u;
    }
    return found;
}

// Resizes CHW pictures between two sizes with the same channels; keeps what is the same for each picture.
class Resizer {
public:
    Resizer(const Size& from, const Size& to)
        : from_(from), to_(to), across_(from.width, to.width), down_(from.height, to.height),
          rows_(static_cast<size_t>(from.height) * to.width) {}

    void resize(const float* picture, float* out) {
        for (int channel = 0; channel < from_.channels; ++channel) {
            const float* row = picture + static_cast<size_t>(channel) * from_.height * from_.width;
            float* narrowed = rows_.data();
            for (int y = 0; y < from_.height; ++y, row += from_.width)
                for (const Filter::Tap& tap : across_.taps) {
                    float sum = 0.0f;
                    for (size_t j = 0; j < tap.count; ++j) sum += across_.weights[tap.weights + j] * row[tap.first + j];
                    *narrowed++ = sum;
                }
            const auto width = static_cast<size_t>(to_.width);
            for (const Filter::Tap& tap : down_.taps) {
                std::fill(out, out + width, 0.0f);
                for (size_t j = 0; j < tap.count; ++j) {
                    const float weight = down_.weights[tap.weights + j], *line = rows_.data() + (tap.first + j) * width;
                    for (size_t x = 0; x < width; ++x) out[x] += weight * line[x];
                }
                out += width;
            }
        }
    }

private:
    const Size from_, to_;
    Filter across_, down_;
    std::vector<float> rows_;
};
