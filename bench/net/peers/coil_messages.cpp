// Echoes messages of 64 bytes that end in '\n', as a client pipelines them; see bench/README.md.
//
//     coil_messages PORT MODE
//
// each               receives a message, sends it back, receives the next one
// linked             the same; the send and the next receive are one linked submission
// reader             buffered_reader; a send for each message
// buffered           buffered_reader and buffered_writer; flushes when no whole message is left
// tied               the same, but flush_before_read decides when to flush
// lines              as tied, with lines() in place of read_exact()
// mutex              a coroutine for each message, which locks a mutex and sends the answer
// shared             a coroutine for each message, which writes the answer to a shared_writer
// collected          a receive takes all messages that have arrived; one send, linked to the next
//                    receive, answers them
// multishot          a multishot receive into buffers of a pool; one send answers what has arrived
#include <coil/coil.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>

using namespace coil;

namespace {

constexpr std::size_t message_size = 64;
constexpr std::size_t buffer_size = 4096;

task<> each(net::socket peer) {
    std::array<char, message_size> message;
    int n = co_await peer.recv(message, MSG_WAITALL);
    while (n == static_cast<int>(message_size) && co_await peer.send(message) > 0) {
        n = co_await peer.recv(message, MSG_WAITALL);
    }
}

task<> linked(net::socket peer) {
    std::array<char, message_size> message;
    std::array<char, message_size> answer;
    int n = co_await peer.recv(message, MSG_WAITALL);
    while (n == static_cast<int>(message_size)) {
        answer = message;
        n = co_await (peer.send(answer) && peer.recv(message, MSG_WAITALL));
    }
}

task<> reader(net::socket peer) {
    buffered_reader in(peer, buffer_size);
    std::array<std::byte, message_size> message;
    while (co_await in.read_exact(message) > 0 && co_await peer.send_all(message) > 0) {
    }
}

task<> buffered(net::socket peer) {
    buffered_reader in(peer, buffer_size);
    buffered_writer out(peer, buffer_size);
    std::array<std::byte, message_size> message;
    while (co_await in.read_exact(message) > 0) {
        co_await out.write(message);
        if (in.buffered().size() < message_size && co_await out.flush() < 0) {
            co_return;
        }
    }
}

task<> tied(net::socket peer) {
    buffered_writer out(peer, buffer_size);
    buffered_reader in(flush_before_read(peer, out), buffer_size);
    std::array<std::byte, message_size> message;
    while (co_await in.read_exact(message) > 0) {
        co_await out.write(message);
    }
}

task<> by_lines(net::socket peer) {
    buffered_writer out(peer, buffer_size);
    buffered_reader in(flush_before_read(peer, out), buffer_size);
    auto lines = in.lines();
    while (const auto line = co_await lines.next()) {
        co_await out.write(*line);
        co_await out.write("\n");
    }
}

using message = std::array<std::byte, message_size>;

task<> answer_locked(mutex& sending, net::socket& peer, message answer) {
    const auto guard = co_await sending.lock_guard();
    co_await peer.send_all(answer);
}

task<> with_a_mutex(net::socket peer) {
    buffered_reader in(peer, buffer_size);
    mutex sending;
    message request;
    scope answers;
    while (co_await in.read_exact(request) > 0) {
        answers.spawn(answer_locked(sending, peer, request));
    }
    co_await answers.join();
}

task<> answer_shared(shared_writer<net::socket&>& out, message answer) {
    co_await out.write(answer);
}

task<> shared(net::socket peer) {
    buffered_reader in(peer, buffer_size);
    shared_writer out(peer, buffer_size);
    message request;
    scope answers;
    while (co_await in.read_exact(request) > 0) {
        answers.spawn(answer_shared(out, request));
    }
    co_await answers.join();
}

/// Copies the whole messages of `data` to `answers` and returns their size. Like every variant, it
/// handles one message at a time.
std::size_t answer(std::span<const std::byte> data, std::byte* answers) {
    std::size_t done = 0;
    while (data.size() - done >= message_size) {
        std::memcpy(answers + done, data.data() + done, message_size);
        done += message_size;
    }
    return done;
}

task<> collected(net::socket peer) {
    std::array<std::byte, buffer_size> in;
    std::array<std::byte, buffer_size> out;
    std::size_t held = 0; // the beginning of the next message
    int n = co_await peer.recv(in);
    while (n > 0) {
        held += static_cast<std::size_t>(n);
        const std::size_t done = answer(std::span(in).first(held), out.data());
        held -= done;
        std::memmove(in.data(), in.data() + done, held);
        const mutable_buffer rest = std::span(in).subspan(held);
        if (done == 0) {
            n = co_await peer.recv(rest);
        } else {
            n = co_await (peer.send(std::span(out).first(done)) && peer.recv(rest));
        }
    }
}

buffer_pool& pool() {
    static buffer_pool buffers(512, buffer_size);
    return buffers;
}

task<> multishot(net::socket peer) {
    std::array<std::byte, buffer_size + message_size> in;
    std::array<std::byte, buffer_size + message_size> out;
    std::size_t held = 0;
    auto incoming = io::recv_multishot(peer.native_handle(), pool());
    while (auto piece = co_await incoming.next()) {
        std::span<const std::byte> data = piece->bytes();
        if (held > 0) {
            std::memcpy(in.data() + held, data.data(), data.size());
            data = std::span(in).first(held + data.size());
        }
        const std::size_t done = answer(data, out.data());
        held = data.size() - done;
        std::memmove(in.data(), data.data() + done, held);
        piece->reset();
        if (done > 0 && co_await peer.send_all(std::span(out).first(done)) < 0) {
            break;
        }
    }
}

using session = task<> (*)(net::socket);

constexpr std::pair<std::string_view, session> modes[] = {
    {"each", each},           {"linked", linked},       {"reader", reader}, {"buffered", buffered},
    {"mutex", with_a_mutex},  {"shared", shared},       {"tied", tied},     {"lines", by_lines},
    {"collected", collected}, {"multishot", multishot},
};

task<> serve(net::acceptor acceptor, session mode) {
    while (net::socket peer = co_await acceptor.accept()) {
        peer.set_no_delay(true);
        co_spawn(mode(std::move(peer)));
    }
}

} // namespace

int main(int argc, char** argv) try {
    session chosen = nullptr;
    for (const auto& [name, mode] : modes) {
        if (argc == 3 && name == argv[2]) {
            chosen = mode;
        }
    }
    if (chosen == nullptr) {
        std::fprintf(stderr, "usage: coil_messages PORT each|linked|reader|buffered|tied|lines|"
                             "mutex|shared|collected|multishot\n");
        return 2;
    }
    io_context_options options;
    options.idle = idle_policy::park();
    io_context context(options);
    net::acceptor acceptor{net::inet_address(static_cast<std::uint16_t>(std::atoi(argv[1])))};
    context.co_spawn(serve(std::move(acceptor), chosen));
    context.run();
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "coil_messages: %s\n", e.what());
    return 1;
}
