// The key of a server that listens on a port: who has started the server reads it from the server's output.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "../error.h"

constexpr size_t key_bytes = 16;

// A new key, in hexadecimal digits.
inline std::string fresh_key() {
    unsigned char bytes[key_bytes];
    const std::unique_ptr<FILE, int (*)(FILE*)> source(std::fopen("/dev/urandom", "rb"), std::fclose);
    if (!source || std::fread(bytes, 1, key_bytes, source.get()) != key_bytes) throw PoolError("/dev/urandom gives no key for --tcp: take --socket");
    std::string text;
    for (const unsigned char byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

// Whether the bytes are the key, in a time that does not tell how many of them are; an empty key is nobody's.
inline bool is_same(const std::string& key, const unsigned char* bytes, size_t size) {
    if (key.empty() || size != key.size()) return false;
    unsigned differ = 0;
    for (size_t i = 0; i < size; ++i) differ |= static_cast<unsigned char>(key[i]) ^ bytes[i];
    return differ == 0;
}
