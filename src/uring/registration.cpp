#include <coil/uring/detail/registration.hpp>

#include <string>
#include <system_error>

namespace coil::uring::detail {
namespace {

std::string_view why_refused(int error) noexcept {
    switch (error) {
    case EBUSY:
        return "a ring can have only one such table at a time";
    case ENOMEM:
        return "out of memory";
    case EEXIST:
        return "the ring belongs to another thread";
    default:
        return "io_uring_register failed";
    }
}

} // namespace

void registration::refused(std::string_view type, unsigned slots, int error,
                           std::string_view cause) {
    std::string sentence = "coil::uring::";
    sentence.append(type);
    sentence.append(": a table of ").append(std::to_string(slots)).append(" slots was refused: ");
    sentence.append(cause.empty() ? why_refused(error) : cause);
    throw std::system_error(error, std::generic_category(), sentence);
}

} // namespace coil::uring::detail
