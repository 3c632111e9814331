// Frames of the wire protocol, which autotailor/serving/wire/frames.py has for clients. Little-endian:
//     u32 magic "POOL", u16 version, u16 kind, u64 id, u32 length, then the body
// A reply has its request's id and its kind plus 128; an error has the kind 255 and a text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../error.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames and pools are little-endian");

constexpr uint32_t frame_magic = 0x4C4F4F50;
constexpr uint16_t frame_version = 1;
constexpr size_t header_bytes = 20, spare_bytes = 64 * 1024, infer_bytes = 12;
enum Kind : uint16_t { kind_infer = 1, kind_status = 2, kind_metrics = 3, kind_set = 4, kind_stop = 5, kind_reload = 6, kind_open = 7, kind_infer_exits = 8, kind_reply = 128, kind_error = 255 };

// What came is no frame, so that nothing behind it can be read; the connection ends.
class FramingError : public PoolError {
    using PoolError::PoolError;
};

struct Frame {
    uint16_t kind = 0;
    uint64_t id = 0;
    const unsigned char* body = nullptr;  // in the connection's buffer
    size_t length = 0;
};

template <class T>
T number_at(const unsigned char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

template <class T>
void append(std::string& text, T value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The frame at the begin of a buffer; false where it has not come as a whole.
inline bool first_frame(const unsigned char* bytes, size_t size, size_t most, Frame& frame) {
    if (size >= 4 && number_at<uint32_t>(bytes) != frame_magic) throw FramingError("what came is no frame: this is another protocol");
    if (size >= 6 && number_at<uint16_t>(bytes + 4) != frame_version)
        throw FramingError("a frame has version " + std::to_string(number_at<uint16_t>(bytes + 4)) + ", expected 1: update the older of the two sides");
    if (size < header_bytes) return false;
    frame.kind = number_at<uint16_t>(bytes + 6);
    frame.id = number_at<uint64_t>(bytes + 8);
    frame.length = number_at<uint32_t>(bytes + 16);
    frame.body = bytes + header_bytes;
    if (frame.length > most)
        throw FramingError("a frame announces " + std::to_string(frame.length) + " bytes, and at most " + std::to_string(most) +
                           " are accepted: resize pictures to the largest member's input before they are sent, and connect again");
    return size - header_bytes >= frame.length;
}

inline std::string packed_frame(uint16_t kind, uint64_t id, const std::string& body) {
    std::string text;
    text.reserve(header_bytes + body.size());
    append(text, frame_magic);
    append(text, frame_version);
    append(text, kind);
    append(text, id);
    append(text, static_cast<uint32_t>(body.size()));
    return text + body;
}
