// autotailor-serve POOL: runs a pool of SubNets behind a socket, always the most accurate one that meets its deadline.
// autotailor-serve --check POOL: says whether the pool is whole and each member can be loaded.
// autotailor-serve --gather MEMBER POOL: writes a member's weights to standard output, as ncnn reads them.
#include <csignal>
#include <iostream>
#include <limits>
#include <memory>

#include "engine/report.h"
#include "options.h"
#include "wire/server.h"

#ifndef SERVE_VERSION
#define SERVE_VERSION "0"
#endif

static volatile std::sig_atomic_t is_over = 0;

static const char usage[] =
    "usage: autotailor-serve POOL [--socket PATH | --tcp PORT] [--deadline-ms D] [--quantile Q] [--rate R] [--quota CORES]\n"
    "                        [--margin SHARE] [--dwell-s S] [--horizon N] [--battery LEVEL] [--pin MEMBER] [--memory-mb M]\n"
    "                        [--keep-s S] [--long-s S] [--lease-s S] [--idle-s S] [--cores N,N,...|any] [--sensors FOLDER]\n"
    "                        [--thresholds NAME]\n"
    "       autotailor-serve --check POOL | --gather MEMBER POOL | --version | --help\n"
    "The socket is POOL/serve.sock if neither --socket nor --tcp is given, the deadline 1.25 times the latency of the largest\n"
    "member, the quota that of the control group, and inferences run on the cores on which the pool was measured.\n";

static Settings settings_of(const CommandLine& line, const Pool& pool) {
    Settings settings;
    Policy& policy = settings.policy;
    policy.deadline_ms = line.number("--deadline-ms", default_deadline_ms(pool));
    policy.quantile = line.number("--quantile", policy.quantile);
    policy.rate = line.number("--rate", policy.rate);
    policy.quota = line.number("--quota", policy.quota);
    policy.margin = line.number("--margin", policy.margin);
    policy.dwell_s = line.number("--dwell-s", policy.dwell_s);
    policy.horizon = inferences_ahead(line.number("--horizon", policy.horizon));
    settings.battery = line.number("--battery", NAN);
    settings.keep_s = line.number("--keep-s", settings.keep_s);
    settings.long_s = line.number("--long-s", settings.long_s);
    settings.pin = line.text("--pin");
    settings.thresholds = without_blanks(line.text("--thresholds", default_thresholds(pool)));
    settings.most_memory_bytes = megabytes(line.number("--memory-mb", 0.0));
    return settings;
}

static Listener listener_of(const CommandLine& line) {
    if (line.has("--socket") && line.has("--tcp")) throw PoolError("expected --socket or --tcp, not both");
    if (!line.has("--tcp")) return Listener::at_path(line.text("--socket", line.pool + "/serve.sock"));
    const double port = line.number("--tcp", 0);
    if (!(port >= 0 && port < 65536) || port != static_cast<int>(port)) throw PoolError("--tcp: expected a port below 65536, or 0 for a free one");
    return Listener::at_port(static_cast<int>(port));
}

static double seconds_of(const CommandLine& line, const std::string& name, double otherwise) {
    const double seconds = line.number(name, otherwise);
    if (!(seconds > 0)) throw PoolError(name + ": expected a positive number of seconds");
    return seconds;
}

// The cores that --cores names; empty for any.
static std::vector<int> asked_cores(const std::string& text) {
    std::vector<int> wanted;
    if (text == "any") return wanted;
    const std::vector<int> usable = usable_cores();
    for (const std::string& word : split(text, ',')) {
        if (word.empty() || word.size() > 4 || word.find_first_not_of("0123456789") != std::string::npos)
            throw PoolError("--cores " + text + ": expected numbers of cores with commas between them, such as 0,1, or any");
        wanted.push_back(std::stoi(word));
        if (std::find(usable.begin(), usable.end(), wanted.back()) == usable.end())
            throw PoolError("--cores " + text + ": core " + word + " does not exist here or may not be used; " + std::to_string(usable.size()) +
                            " cores may be used: " + text_of(usable) + "; name some of these, or any");
    }
    return wanted;
}

// Pins this thread, and with it those that run inferences, to the cores that are asked for or to those of the measurements.
static void choose_cores(const CommandLine& line, const Pool& pool) {
    first_cores();
    const std::vector<int> wanted = line.has("--cores") ? asked_cores(line.text("--cores")) : pool.cores;
    if (pin(wanted)) return;
    std::cerr << "cores " << text_of(wanted) << " do not exist here or may not be used, so that inferences run on any core and may take other times than "
                 "measured: name others with --cores"
              << std::endl;
}

static void serve(const CommandLine& line) {
    const double lease_s = seconds_of(line, "--lease-s", std::numeric_limits<double>::infinity());
    const double idle_s = seconds_of(line, "--idle-s", 30.0);
    const Sensors sensors(line.text("--sensors"));
    pool_text::lines(line.pool + "/pool.txt");  // without which the socket's folder would be blamed
    Listener listener = listener_of(line);  // before the pool is loaded: an address that is taken is said at once
    Pool pool = open_pool(line.pool);
    const Settings settings = settings_of(line, pool);
    choose_cores(line, pool);
    Server server(std::make_unique<Engine>(std::move(pool), settings, sensors), sensors, std::move(listener), lease_s, idle_s);
    struct sigaction action = {};
    action.sa_handler = [](int) { is_over = 1; };
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);  // who reads standard output may have gone: the socket is removed all the same
    if (!server.key().empty()) std::cout << "key " << server.key() << std::endl;
    std::cout << "serving " << server.engine().pool().model << " with " << server.engine().pool().members.size() << " members at " << server.listener().text() << std::endl;
    server.run(is_over);
    if (server.is_abandoned()) std::cerr << "no request has come for " << lease_s << " s (--lease-s), so that the server has ended" << std::endl;
    std::cout << status_json(server.engine(), sensors) << std::endl;
}

static void check(const std::string& folder) {
    const Pool pool = open_pool(folder);
    for (size_t i = 0; i < pool.members.size(); ++i) {
        Loaded loaded(pool, i);
        std::cout << pool.members[i].name << " is whole" << std::endl;
    }
}

static void gather(const std::string& folder, const std::string& name) {
    const Pool pool = open_pool(folder);
    const Sources sources = pool.sources();
    const std::vector<Piece> pieces = parse_slices(pool.members[pool.row(name)].slices, sources, name + ".slices");
    const SliceReader reader(pieces, sources);
    std::vector<char> part(1 << 20);
    while (const size_t count = reader.read(part.data(), part.size())) std::cout.write(part.data(), static_cast<std::streamsize>(count));
    std::cout.flush();
    if (!std::cout) throw PoolError("standard output cannot be written");
}

int main(int count, char** words) {
    const std::string first = count > 1 ? words[1] : "";
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // weights that are freed go back to the system; the threshold would rise otherwise
    mallopt(M_ARENA_MAX, 2);
#endif
    try {
        if (first == "--help" || first == "-h") {
            std::cout << usage;
        } else if (first == "--version") {
            std::cout << "{\"serve\": " << quoted(SERVE_VERSION) << ", \"pool\": 1, \"protocol\": " << frame_version
                      << ", \"ncnn\": " << quoted(NCNN_VERSION_STRING) << ", \"compiler\": " << quoted(__VERSION__) << "}" << std::endl;
        } else if (first == "--check" && count == 3) {
            check(words[2]);
        } else if (first == "--gather" && count == 4) {
            gather(words[3], words[2]);
        } else {
            const CommandLine line(count, words, {"--socket", "--tcp", "--deadline-ms", "--quantile", "--rate", "--quota", "--margin", "--dwell-s",
                                                  "--horizon", "--battery", "--pin", "--memory-mb", "--keep-s", "--long-s", "--lease-s", "--idle-s", "--cores", "--sensors", "--thresholds"});
            if (line.pool.empty()) {
                std::cerr << usage;
                return 64;
            }
            serve(line);
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "autotailor-serve: " << error.what() << std::endl;
        return 1;
    }
}
