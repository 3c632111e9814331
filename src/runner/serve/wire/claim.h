// One server at a time begins or ends at the path of a Unix socket. Otherwise two
// servers could both find that a socket is a killed server's, and the second one would remove the first one's.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "../error.h"
#include "descriptor.h"

// Keeps other servers from beginning or ending at a path, while it lives.
class Claim {
public:
    static constexpr int patience_s = 5;

    explicit Claim(const std::string& path) : lock_(path + ".lock") {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience_s);
        while (!take(path)) {
            if (std::chrono::steady_clock::now() >= end)
                throw PoolError(path + ": another server has begun or ended there for " + std::to_string(patience_s) + " s, and holds " + lock_ +
                                ": end it, or choose another path");
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { unlink(lock_.c_str()); }  // before the descriptor is closed, so that nobody else has the file yet

private:
    // Whether the file is locked now; false while another server has it.
    bool take(const std::string& path) {
        Descriptor made(open(lock_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        const bool is_locked = made.get() >= 0 && flock(made.get(), LOCK_EX | LOCK_NB) == 0;
        if (!is_locked) {
            if (made.get() >= 0 && errno == EWOULDBLOCK) return false;
            throw PoolError(path + ": cannot listen (" + std::strerror(errno) + "): choose another address");
        }
        struct stat held, found;
        if (fstat(made.get(), &held) != 0 || lstat(lock_.c_str(), &found) != 0) return false;
        if (held.st_dev != found.st_dev || held.st_ino != found.st_ino) return false;  // the last holder has just removed it
        descriptor_ = std::move(made);
        return true;
    }

    std::string lock_;
    Descriptor descriptor_;
};
