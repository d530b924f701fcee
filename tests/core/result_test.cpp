// detail::result: a value, a reference, nothing, or an exception.

#include "core/support.hpp"

#include <memory>
#include <stdexcept>
#include <string>

using coil::detail::result;

namespace {

std::exception_ptr error() { return std::make_exception_ptr(std::runtime_error("e")); }

TEST(Result, EmptyHasNoError) {
    const result<std::string> r;
    EXPECT_EQ(r.error(), nullptr);
}

TEST(Result, TakeMovesTheValueOut) {
    result<std::unique_ptr<int>> r;
    r.set_value(std::make_unique<int>(3));
    EXPECT_EQ(*r.take(), 3);
}

TEST(Result, TakeThrowsTheError) {
    result<int> r;
    r.set_error(error());
    EXPECT_NE(r.error(), nullptr);
    EXPECT_THROW(r.take(), std::runtime_error);
}

TEST(Result, DestroysWhatItHolds) {
    int destroyed = 0;
    {
        result<coil_test::on_destruction> r;
        r.set_value(coil_test::on_destruction(destroyed));
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, 1);
}

TEST(Result, AnErrorAfterAValueDestroysTheValue) {
    int destroyed = 0;
    result<coil_test::on_destruction> r;
    r.set_value(coil_test::on_destruction(destroyed));
    r.set_error(error());
    EXPECT_EQ(destroyed, 1);
    EXPECT_THROW(r.take(), std::runtime_error);
}

TEST(Result, MoveFromTakesValueOrError) {
    result<std::string> value;
    result<std::string> to_value;
    value.set_value("v");
    to_value.move_from(value);
    EXPECT_EQ(to_value.take(), "v");

    result<std::string> bad;
    result<std::string> to_bad;
    bad.set_error(error());
    to_bad.move_from(bad);
    EXPECT_THROW(to_bad.take(), std::runtime_error);
}

TEST(Result, OfAReferenceKeepsTheAddress) {
    int n = 1;
    result<int&> r;
    result<int&> to;
    r.set_value(n);
    to.move_from(r);
    EXPECT_EQ(&to.take(), &n);
}

TEST(Result, OfVoidCarriesOnlyErrors) {
    result<void> fine;
    fine.set_value();
    fine.take();
    result<void> bad;
    bad.set_error(error());
    EXPECT_THROW(bad.take(), std::runtime_error);
}

} // namespace
