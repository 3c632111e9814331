// The size of a picture: channels, height, width.
#pragma once

#include <cstddef>
#include <string>

struct Size {
    int channels = 0, height = 0, width = 0;

    size_t count() const { return static_cast<size_t>(channels) * height * width; }
    bool operator==(const Size& other) const { return channels == other.channels && height == other.height && width == other.width; }
    std::string text() const { return std::to_string(channels) + "x" + std::to_string(height) + "x" + std::to_string(width); }
};
