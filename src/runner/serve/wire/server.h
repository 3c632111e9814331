// The server: it reads frames of up to eight clients, asks the engine, and answers. One thread does all of it, so that
// requests take turns in the order of their coming, and a slow client keeps nobody waiting.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdio>
#include <deque>
#include <future>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "../engine/report.h"
#include "frames.h"
#include "key.h"
#include "socket.h"

class Connection {
public:
    explicit Connection(int descriptor) : socket_(descriptor), seen_ms_(wall_ms()), asked_ms_(seen_ms_) {}

    static constexpr double patience_ms = 30000.0;  // for which a client may pause within a frame, or leave an answer untaken
    static constexpr size_t most_unread = 1 << 20;  // bytes of answers; a client with more of them waits for its turn

    int descriptor() const { return socket_.get(); }
    bool is_over() const { return (is_over_ || (has_ended_ && !is_queued && !is_owed)) && !wants_write(); }
    bool wants_write() const { return out_.size() > sent_; }
    bool may_ask() const { return !is_over_ && out_.size() - sent_ < most_unread; }
    bool may_read() const { return may_ask() && !has_ended_ && !is_queued; }
    // A client that waits for its turn has done its part, however long the inferences of others take.
    bool is_stuck() const { return !is_queued && (used_ < in_.size() || wants_write()) && wall_ms() - seen_ms_ > patience_ms; }
    bool is_queued = false;  // waits for its turn with a whole frame
    bool is_owed = false;    // waits until the pool is opened anew
    bool may_change = false; // the server's settings and pool, and not only ask

    // For how long no whole request has come; none of the answers that this client may expect counts as silence.
    double silent_ms() const { return is_queued || is_owed || is_over_ ? 0.0 : wall_ms() - asked_ms_; }

    // Takes what has come, up to what one frame may have; the rest stays with the system.
    void read(size_t most) {
        if (used_ > 0) {
            in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(used_));
            used_ = 0;
        }
        unsigned char part[1 << 16];
        while (in_.size() < header_bytes + most) {
            const ssize_t count = recv(socket_.get(), part, std::min(sizeof part, header_bytes + most - in_.size()), 0);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (count < 0) return give_up();
            if (count == 0) {
                has_ended_ = true;
                return;
            }
            in_.insert(in_.end(), part, part + count);
            seen_ms_ = wall_ms();
        }
    }

    // The next whole frame, which stays valid until the next read.
    bool next(size_t most, Frame& frame) {
        return first_frame(in_.data() + used_, in_.size() - used_, most, frame);
    }
    void drop(const Frame& frame) {
        used_ += header_bytes + frame.length;
        seen_ms_ = asked_ms_ = wall_ms();
    }

    void answer(uint16_t kind, uint64_t id, const std::string& body) {
        out_ += packed_frame(kind, id, body);
        seen_ms_ = wall_ms();
        write();
    }

    void write() {
        while (wants_write()) {
            const ssize_t count = send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (count <= 0) return give_up();
            sent_ += static_cast<size_t>(count);
            seen_ms_ = wall_ms();
        }
        out_.clear();
        sent_ = 0;
    }

    // Nothing more is read; what is still to be sent is sent.
    void end() { is_over_ = true; }

    // The client has gone.
    void give_up() {
        is_over_ = true;
        out_.clear();
        sent_ = 0;
    }

private:
    Descriptor socket_;
    std::vector<unsigned char> in_;
    size_t used_ = 0, sent_ = 0;
    std::string out_;
    double seen_ms_;   // when bytes came or went
    double asked_ms_;  // when the last whole request had its turn
    bool is_over_ = false;    // nothing is read or answered any more
    bool has_ended_ = false;  // the client sends nothing more
};

class Server {
public:
    static constexpr size_t most_clients = 8, most_error_bytes = 4096;

    // lease_s: seconds without a request after which the server ends by itself; infinite for never.
    // idle_s: seconds without a request after which a client gives its place to another one that needs it.
    Server(std::unique_ptr<Engine> engine, const Sensors& sensors, Listener listener, double lease_s, double idle_s)
        : engine_(std::move(engine)), sensors_(sensors), listener_(std::move(listener)), most_(most_bytes()), lease_ms_(1e3 * lease_s), idle_ms_(1e3 * idle_s),
          key_(listener_.is_unix() ? "" : fresh_key()), asked_ms_(wall_ms()) {}

    const Engine& engine() const { return *engine_; }
    const Listener& listener() const { return listener_; }
    // What a client of TCP shows to change something; "" for a Unix socket, which only its owner can open.
    const std::string& key() const { return key_; }

    // Whether no request has come for so long that the server ends; the pool is not being opened anew.
    bool is_abandoned() const { return !successor_.valid() && wall_ms() - asked_ms_ > lease_ms_; }

    // Serves until a client says stop, the lease is over, or the flag is set.
    void run(const volatile std::sig_atomic_t& is_over) {
        asked_ms_ = wall_ms();
        while (!is_over && !is_stopped_ && !is_abandoned()) {
            const bool has_visitor = wait();
            sweep();
            if (has_visitor) welcome();
            serve_first();
            succeed();
            sweep();
        }
        for (Connection& each : clients_) each.write();
    }

private:
    // Gives clients with a whole frame their turns, and ends the connections of those that are gone.
    void sweep() {
        for (auto each = clients_.begin(); each != clients_.end();) {
            if (each->is_stuck()) each->give_up();
            enqueue(*each);
            if (each->is_over()) {
                if (each->is_queued) queue_.erase(std::find(queue_.begin(), queue_.end(), &*each));
                if (reloader_ == &*each) reloader_ = nullptr;
                each = clients_.erase(each);
            } else {
                ++each;
            }
        }
    }

    // Waits for something to do, for a second at most, and takes what has come; returns whether somebody wants to connect.
    bool wait() {
        const bool is_short = std::exchange(is_short_, false);
        std::vector<pollfd> polled = {{listener_.descriptor(), static_cast<short>(is_short ? 0 : POLLIN), 0}};
        for (const Connection& each : clients_) {
            short events = static_cast<short>(each.wants_write() ? POLLOUT : 0);
            if (each.may_read()) events = static_cast<short>(events | POLLIN);
            polled.push_back({each.descriptor(), events, 0});
        }
        const int patience_ms = !queue_.empty() ? 0 : successor_.valid() ? reload_look_ms : is_short ? short_ms : 1000;
        const int found = poll(polled.data(), polled.size(), patience_ms);
        engine_->tidy();
        if (found <= 0) return false;
        size_t place = 1;
        for (Connection& each : clients_) {
            const short events = polled[place++].revents;
            if (events & POLLOUT) each.write();
            if (events & POLLIN) each.read(most_);
            else if (events & (POLLERR | POLLNVAL | POLLHUP)) each.give_up();
        }
        return polled[0].revents & POLLIN;
    }

    void welcome() {
        const int made = listener_.accept_one();
        is_short_ = made < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
        if (made < 0) return;
        clients_.emplace_back(made);
        clients_.back().may_change = listener_.is_unix();
        if (clients_.size() <= most_clients || make_room()) return;
        clients_.back().answer(kind_error, 0, "the server has " + std::to_string(most_clients) + " clients, and takes no more: end another connection");
        clients_.pop_back();
    }

    // Ends the connection of the client that has been silent for longest, where that is long enough.
    bool make_room() {
        const auto longest = std::max_element(clients_.begin(), clients_.end(), [](const Connection& one, const Connection& other) { return one.silent_ms() < other.silent_ms(); });
        if (!(longest->silent_ms() > idle_ms_)) return false;
        longest->answer(kind_error, 0, "another client needed the place of this one, which has asked nothing for long: connect again");
        longest->give_up();
        return true;
    }

    // Gives a connection a place in the queue when a whole frame of it has come.
    void enqueue(Connection& client) {
        Frame frame;
        if (client.is_queued || !client.may_ask()) return;
        try {
            client.is_queued = client.next(most_, frame);
        } catch (const FramingError& error) {
            engine_->failed();
            client.answer(kind_error, 0, error.what());
            client.end();
            return;
        }
        if (client.is_queued) queue_.push_back(&client);
    }

    void serve_first() {
        if (queue_.empty()) return;
        Connection& client = *queue_.front();
        queue_.pop_front();
        client.is_queued = false;
        asked_ms_ = wall_ms();
        Frame frame;
        client.next(most_, frame);
        client.drop(frame);
        try {
            if (frame.kind == kind_reload) return reload(client, frame);
            client.answer(static_cast<uint16_t>(frame.kind + kind_reply), frame.id, body_of(client, frame));
        } catch (const std::exception& error) {
            engine_->failed();
            client.answer(kind_error, frame.id, std::string(error.what()).substr(0, most_error_bytes));
        }
    }

    // Begins to open the pool's folder anew, in another thread; succeed() answers the client.
    void reload(Connection& client, const Frame& frame) {
        if (frame.length > 0) throw PoolError("a request of kind 6 has no body, and " + std::to_string(frame.length) + " bytes came");
        check_may_change(client, "reload");
        if (successor_.valid()) throw PoolError("reload: the pool is being opened already: wait until that is done");
        reloader_ = &client;
        reload_id_ = frame.id;
        successor_ = std::async(std::launch::async, [this, settings = engine_->settings(), before = engine_.get()] {
            step_back();
            Pool pool = open_pool(before->pool().folder);
            check_successor(before->pool(), pool);
            const Settings wanted = for_successor(settings, pool);
            return std::make_unique<Engine>(std::move(pool), wanted, sensors_);
        });
        client.is_owed = true;
    }

    // Lets an engine of the new pool take the old one's place, between two requests, once it is there.
    void succeed() {
        if (!successor_.valid() || successor_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
        Connection* const client = std::exchange(reloader_, nullptr);
        if (client) client->is_owed = false;
        asked_ms_ = wall_ms();
        try {
            std::unique_ptr<Engine> after = successor_.get();
            after->inherit(*engine_);
            engine_ = std::move(after);
            most_ = most_bytes();
            if (client) client->answer(kind_reload + kind_reply, reload_id_, status_json(*engine_, sensors_));
        } catch (const std::exception& error) {
            engine_->failed();
            if (client) client->answer(kind_error, reload_id_, std::string(error.what()).substr(0, most_error_bytes));
        }
    }

    size_t most_bytes() const { return engine_->pool().largest_input().count() * sizeof(float) + spare_bytes; }

    // What answers a frame; refuses what is no request.
    std::string body_of(Connection& client, const Frame& frame) {
        if (frame.kind == kind_infer || frame.kind == kind_infer_exits) return inferred(frame);
        if (frame.kind == kind_open) {
            if (!is_same(key_, frame.body, frame.length)) throw PoolError("open: this is not the server's key, which it has printed when it started");
            client.may_change = true;
            return "";
        }
        if (frame.kind == kind_set) {
            check_may_change(client, "set");
            engine_->apply(changed(engine_->settings(), std::string(reinterpret_cast<const char*>(frame.body), frame.length)));
            return settings_json(engine_->settings(), engine_->pool().has_exits);
        }
        if (frame.length > 0 && frame.kind >= kind_status && frame.kind <= kind_stop)
            throw PoolError("a request of kind " + std::to_string(frame.kind) + " has no body, and " + std::to_string(frame.length) + " bytes came");
        if (frame.kind == kind_status) return status_json(*engine_, sensors_);
        if (frame.kind == kind_metrics) return metrics_text(*engine_, sensors_);
        if (frame.kind != kind_stop) throw PoolError("a request of kind " + std::to_string(frame.kind) + " is unknown: kinds go from 1 to 8");
        if (!listener_.is_unix()) throw PoolError("stop: only a client of a Unix socket can stop the server: end its process instead");
        is_stopped_ = true;
        return "";
    }

    static void check_may_change(const Connection& client, const std::string& what) {
        if (!client.may_change)
            throw PoolError(what + ": over TCP any user of this computer can connect, and may only ask: change the server through a Unix socket, or show its key first");
    }

    std::string inferred(const Frame& frame) {
        if (frame.length < infer_bytes) throw PoolError("infer: the body has " + std::to_string(frame.length) + " bytes, expected at least 12");
        const float deadline_ms = number_at<float>(frame.body);
        const Size size = {number_at<uint16_t>(frame.body + 4), number_at<uint16_t>(frame.body + 6), number_at<uint16_t>(frame.body + 8)};
        if (number_at<uint16_t>(frame.body + 10) != 0 || frame.length - infer_bytes != size.count() * sizeof(float))
            throw PoolError("infer: a picture of " + size.text() + " takes " + std::to_string(size.count() * sizeof(float)) + " bytes behind a zero, and " +
                            std::to_string(frame.length - infer_bytes) + " came");
        picture_.resize(size.count());
        std::memcpy(picture_.data(), frame.body + infer_bytes, frame.length - infer_bytes);
        const Answer answer = engine_->infer(picture_.data(), size, deadline_ms);
        std::string body;
        append(body, static_cast<uint16_t>(answer.member));
        append(body, static_cast<uint16_t>(answer.flags));
        append(body, static_cast<float>(answer.latency_ms));
        append(body, static_cast<float>(answer.cpu_ms));
        if (frame.kind == kind_infer_exits) {
            append(body, static_cast<uint16_t>(answer.exit));
            append(body, static_cast<uint16_t>(engine_->pool().members[answer.member].exits.size()));
            append(body, static_cast<float>(answer.confidence));
        }
        append(body, static_cast<uint32_t>(answer.outputs->size()));
        return body.append(reinterpret_cast<const char*>(answer.outputs->data()), answer.outputs->size() * sizeof(float));
    }

    static constexpr int reload_look_ms = 20;  // between two looks whether a new pool is open
    static constexpr int short_ms = 200;       // for which nobody is accepted where the process has no descriptor to spare

    std::unique_ptr<Engine> engine_;
    const Sensors& sensors_;
    Listener listener_;
    size_t most_;
    const double lease_ms_, idle_ms_;
    const std::string key_;
    double asked_ms_;  // when the last request had its turn
    std::list<Connection> clients_;
    std::deque<Connection*> queue_;  // those with a whole frame, in the order of its coming
    std::vector<float> picture_;
    bool is_stopped_ = false;
    bool is_short_ = false;  // the last visitor could not be accepted, and still waits: to look at once again would take a whole core
    std::future<std::unique_ptr<Engine>> successor_;  // that is being made; the last: its thread ends before what it reads
    Connection* reloader_ = nullptr;  // who has asked for it; none where that client is gone
    uint64_t reload_id_ = 0;
};
