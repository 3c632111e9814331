// Where the server listens: a Unix socket of its owner's, or a port of the loopback interface. Nothing else is offered.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "../error.h"
#include "claim.h"
#include "descriptor.h"

class Listener {
public:
    // Listens on a Unix socket. A socket that a killed server has left is replaced; any other file stays.
    static Listener at_path(const std::string& path) {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        if (path.empty() || path.size() >= sizeof address.sun_path)
            throw PoolError(path + ": a Unix socket needs a path of 1 to " + std::to_string(sizeof address.sun_path - 1) + " bytes: take a shorter path");
        std::memcpy(address.sun_path, path.c_str(), path.size());
        const Claim claim(path);
        struct stat found;
        if (lstat(path.c_str(), &found) == 0) {
            if (!S_ISSOCK(found.st_mode)) throw PoolError(path + ": exists and is no socket: choose another path");
            const Descriptor tried(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            // Where nobody listens, the connection is refused; a busy server gives another error.
            if (connect(tried.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 || errno != ECONNREFUSED)
                throw PoolError(path + ": another server listens there: stop it, or choose another path");
            unlink(path.c_str());
        }
        Listener made(AF_UNIX, path);
        const mode_t mask = umask(0177);  // the file is its owner's from the first moment on
        const int bound = bind(made.socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
        umask(mask);
        made.listen_if(bound == 0, path);
        if (lstat(path.c_str(), &found) == 0) made.inode_ = found.st_ino;
        return made;
    }

    // Listens on a port of the loopback interface; 0 takes a free one.
    static Listener at_port(int port) {
        Listener made(AF_INET, "");
        const int on = 1;
        setsockopt(made.socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int bound = bind(made.socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
        made.listen_if(bound == 0, "port " + std::to_string(port));
        socklen_t size = sizeof address;
        getsockname(made.socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        made.port_ = ntohs(address.sin_port);
        return made;
    }

    Listener(Listener&& other) noexcept : socket_(std::move(other.socket_)), path_(std::exchange(other.path_, "")), inode_(other.inode_), port_(other.port_) {}
    // Removes the socket's file, unless another server has taken its place. The file's number is its own while the socket is open.
    ~Listener() {
        if (path_.empty() || inode_ == 0) return;
        try {
            const Claim claim(path_);
            struct stat found;
            if (lstat(path_.c_str(), &found) == 0 && found.st_ino == inode_) unlink(path_.c_str());
        } catch (const PoolError&) {  // a socket that stays is replaced by the next server
        }
    }

    bool is_unix() const { return port_ < 0; }
    int descriptor() const { return socket_.get(); }
    std::string text() const { return is_unix() ? "unix:" + path_ : "tcp:" + std::to_string(port_); }

    // A connection that is waiting; -1 where there is none.
    int accept_one() const {
        const int made = accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        const int on = 1;
        if (made >= 0 && !is_unix()) setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return made;
    }

private:
    Listener(int family, std::string path) : socket_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), path_(std::move(path)) {
        if (socket_.get() < 0) throw PoolError(std::string("the system gives no socket (") + std::strerror(errno) + ")");
    }

    void listen_if(bool is_bound, const std::string& what) {
        if (!is_bound || listen(socket_.get(), 8) != 0) throw PoolError(what + ": cannot listen (" + std::strerror(errno) + "): choose another address");
    }

    Descriptor socket_;
    std::string path_;
    ino_t inode_ = 0;  // of the socket's file, once it is there
    int port_ = -1;
};
