// Checks the text with a parser of the exposition format 0.0.4.

#include <coil/context/prometheus.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct sample {
    std::string name;
    std::map<std::string, std::string> labels;
    double value;
};

struct family {
    std::string help;
    std::string type;
    std::vector<sample> samples;
};

/// Parses a page; throws with the offending line.
class page {
public:
    explicit page(std::string_view text) {
        if (text.empty() || text.back() != '\n') {
            throw std::runtime_error("the last line has no end");
        }
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            line_ = text.substr(0, end);
            text.remove_prefix(end + 1);
            read_line();
        }
    }

    [[nodiscard]] const family& of(const std::string& name) const { return families_.at(name); }
    [[nodiscard]] const std::map<std::string, family>& families() const { return families_; }
    /// The value of the only sample with that name and those labels.
    [[nodiscard]] double value(const std::string& in, const std::string& name,
                               const std::map<std::string, std::string>& labels = {}) const {
        const auto& samples = of(in).samples;
        const auto is_it = [&](const sample& s) { return s.name == name && s.labels == labels; };
        if (std::count_if(samples.begin(), samples.end(), is_it) != 1) {
            throw std::runtime_error("not one sample " + name);
        }
        return std::find_if(samples.begin(), samples.end(), is_it)->value;
    }

private:
    void require(bool condition, const char* what) const {
        if (!condition) {
            throw std::runtime_error(std::string(what) + ": " + std::string(line_));
        }
    }

    void read_line() {
        rest_ = line_;
        if (take("# HELP ")) {
            begin_family(take_name());
            require(take(" "), "no text");
            families_[current_].help = std::string(rest_);
            require(!rest_.empty(), "no text");
        } else if (take("# TYPE ")) {
            require(take_name() == current_, "TYPE without HELP");
            require(take(" "), "no type");
            require(families_[current_].type.empty(), "two types");
            const std::set<std::string_view> types{"counter", "gauge", "histogram"};
            require(types.contains(rest_), "unknown type");
            families_[current_].type = std::string(rest_);
        } else {
            read_sample();
        }
    }

    void begin_family(const std::string& name) {
        require(!families_.contains(name), "a family in two places");
        current_ = name;
        families_[name] = {};
    }

    void read_sample() {
        sample s;
        s.name = take_name();
        const family& f = families_[current_];
        require(!f.type.empty(), "a sample before its type");
        if (f.type == "histogram") {
            require(s.name == current_ + "_bucket" || s.name == current_ + "_sum" ||
                        s.name == current_ + "_count",
                    "a sample of another family");
        } else {
            require(s.name == current_, "a sample of another family");
        }
        if (take("{")) {
            do {
                const std::string label = take_name();
                require(take("=\""), "no value of the label");
                require(s.labels.emplace(label, take_string()).second, "a label twice");
            } while (take(","));
            require(take("}"), "no end of the labels");
        }
        require(take(" "), "no value");
        s.value = take_number();
        require(rest_.empty(), "something behind the value");
        for (const sample& other : f.samples) {
            require(other.name != s.name || other.labels != s.labels, "a sample twice");
        }
        families_[current_].samples.push_back(std::move(s));
    }

    bool take(std::string_view what) {
        if (!rest_.starts_with(what)) {
            return false;
        }
        rest_.remove_prefix(what.size());
        return true;
    }
    std::string take_name() {
        std::size_t n = 0;
        while (n < rest_.size() && (std::isalpha(static_cast<unsigned char>(rest_[n])) != 0 ||
                                    rest_[n] == '_' || (n > 0 && std::isdigit(rest_[n]) != 0))) {
            ++n;
        }
        require(n > 0, "no name");
        const std::string name(rest_.substr(0, n));
        rest_.remove_prefix(n);
        return name;
    }
    std::string take_string() {
        std::string value;
        while (!take("\"")) {
            require(!rest_.empty(), "no end of a string");
            if (take("\\n")) {
                value += '\n';
            } else if (take("\\\\")) {
                value += '\\';
            } else if (take("\\\"")) {
                value += '"';
            } else {
                require(rest_.front() != '\\', "unknown escape");
                value += rest_.front();
                rest_.remove_prefix(1);
            }
        }
        return value;
    }
    double take_number() {
        double value = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        require(error == std::errc{}, "no number");
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }

    std::string_view line_;
    std::string_view rest_;
    std::string current_;
    std::map<std::string, family> families_;
};

double bound_of(const sample& s) {
    const std::string& text = s.labels.at("le");
    return text == "+Inf" ? std::numeric_limits<double>::infinity() : std::stod(text);
}

context_metrics some_metrics() {
    context_metrics m;
    m.tasks = 1;
    m.ready = 2;
    m.in_flight = 3;
    m.timers = 4;
    m.tasks_started = 5;
    m.enters = 6;
    m.submissions = 7;
    m.completions = 8;
    m.parks = 9;
    m.spins = 10;
    m.wake_ups_sent = 11;
    m.wake_ups_elided = 12;
    m.back_pressure_waits = 13;
    m.refusals = 14;
    m.overflows = 15;
    m.cancels = 16;
    m.cancel_retries = 17;
    m.unhandled_exceptions = std::numeric_limits<std::uint64_t>::max();
    m.long_turns = 18;
    m.await_loops = 19;
    m.late_resumptions = 20;
    m.late_timers = 21;
    m.spin_experiments = 22;
    m.spins_suppressed = 1;
    m.sleeps_batched = 1;
    m.napi_busy_polling = 1;
    m.longest_turn = 1'500'000'001ns;
    m.turn_length.add(1);             // below the first bound
    m.turn_length.add(128, 2);        // on a bound
    m.turn_length.add(129);           // just above it
    m.turn_length.add(1'500'000'001); // a second
    m.turn_length.add(std::uint64_t{1} << 40);
    m.ready_delay.add(1000);
    return m;
}

std::string text_of(const context_metrics& m, std::vector<metric_label> labels = {}) {
    std::string out;
    write_prometheus(out, m, std::move(labels));
    return out;
}

TEST(Prometheus, APageContainsEveryFigure) {
    const page p(text_of(some_metrics()));
    int expected = 1;
    for (const char* name : {"coil_tasks", "coil_ready", "coil_in_flight", "coil_timers"}) {
        EXPECT_EQ(p.of(name).type, "gauge");
        EXPECT_EQ(p.value(name, name), expected++) << name;
    }
    for (const char* what : {"tasks_started", "enters", "submissions", "completions", "parks",
                             "spins", "wake_ups_sent", "wake_ups_elided", "back_pressure_waits",
                             "refusals", "overflows", "cancels", "cancel_retries", "long_turns",
                             "await_loops", "late_resumptions", "late_timers"}) {
        const std::string name = std::string("coil_") + what + "_total";
        EXPECT_EQ(p.of(name).type, "counter");
        EXPECT_EQ(p.value(name, name), expected++) << name;
    }
    EXPECT_EQ(p.value("coil_unhandled_exceptions_total", "coil_unhandled_exceptions_total"),
              static_cast<double>(std::numeric_limits<std::uint64_t>::max()));
    EXPECT_EQ(p.of("coil_longest_turn_seconds").type, "gauge");
    EXPECT_EQ(p.value("coil_longest_turn_seconds", "coil_longest_turn_seconds"), 1.500000001);
    EXPECT_EQ(p.of("coil_spins_suppressed").type, "gauge");
    EXPECT_EQ(p.value("coil_spins_suppressed", "coil_spins_suppressed"), 1);
    EXPECT_EQ(p.of("coil_sleeps_batched").type, "gauge");
    EXPECT_EQ(p.value("coil_sleeps_batched", "coil_sleeps_batched"), 1);
    EXPECT_EQ(p.of("coil_napi_busy_polling").type, "gauge");
    EXPECT_EQ(p.value("coil_napi_busy_polling", "coil_napi_busy_polling"), 1);
    EXPECT_EQ(p.of("coil_spin_experiments_total").type, "counter");
    EXPECT_EQ(p.value("coil_spin_experiments_total", "coil_spin_experiments_total"), 22);
    EXPECT_EQ(p.families().size(), 29U);
}

TEST(Prometheus, NamesFollowTheConventionsOfTheirTypes) {
    const page p(text_of(some_metrics()));
    for (const auto& [name, f] : p.families()) {
        EXPECT_EQ(f.type == "counter", name.ends_with("_total")) << name;
        EXPECT_TRUE(name.starts_with("coil_"));
        EXPECT_FALSE(f.samples.empty());
    }
}

TEST(Prometheus, HistogramsAreCumulative) {
    const context_metrics m = some_metrics();
    const page p(text_of(m));
    for (const auto& [name, times] : {std::pair{"coil_turn_seconds", m.turn_length},
                                      {"coil_ready_delay_seconds", m.ready_delay}}) {
        const family& f = p.of(name);
        EXPECT_EQ(f.type, "histogram");
        std::vector<sample> buckets;
        std::copy_if(f.samples.begin(), f.samples.end(), std::back_inserter(buckets),
                     [&](const sample& s) { return s.name == std::string(name) + "_bucket"; });
        ASSERT_EQ(buckets.size(), 30U);
        EXPECT_EQ(f.samples.size(), buckets.size() + 2);
        for (std::size_t i = 1; i < buckets.size(); ++i) {
            EXPECT_LT(bound_of(buckets[i - 1]), bound_of(buckets[i]));
            EXPECT_LE(buckets[i - 1].value, buckets[i].value);
        }
        EXPECT_TRUE(std::isinf(bound_of(buckets.back())));
        EXPECT_EQ(buckets.back().value, p.value(name, std::string(name) + "_count"));
        EXPECT_EQ(buckets.back().value, static_cast<double>(times.count()));
        EXPECT_DOUBLE_EQ(p.value(name, std::string(name) + "_sum"),
                         static_cast<double>(times.sum()) / 1e9);
    }
    const auto at_most = [&](const char* le) {
        return p.value("coil_turn_seconds", "coil_turn_seconds_bucket", {{"le", le}});
    };
    EXPECT_EQ(at_most("6.4e-08"), 1);
    EXPECT_EQ(at_most("1.28e-07"), 3); // a bound belongs to its bucket
    EXPECT_EQ(at_most("2.56e-07"), 4);
    EXPECT_EQ(at_most("1.073741824"), 4);
    EXPECT_EQ(at_most("2.147483648"), 5);
    EXPECT_EQ(at_most("17.179869184"), 5);
    EXPECT_EQ(at_most("+Inf"), 6);
}

TEST(Prometheus, BucketsDoNotDependOnTheirContents) {
    const auto bounds = [](const page& p) {
        std::vector<double> all;
        for (const sample& s : p.of("coil_turn_seconds").samples) {
            if (s.labels.contains("le")) {
                all.push_back(bound_of(s));
            }
        }
        return all;
    };
    EXPECT_EQ(bounds(page(text_of({}))), bounds(page(text_of(some_metrics()))));
}

TEST(Prometheus, SeveralContextsShareOneHeader) {
    std::vector<labelled_metrics> contexts(2);
    contexts[0] = {some_metrics(), {{"context", "0"}}};
    contexts[1] = {{}, {{"context", "1"}, {"name", "disk"}}};
    std::string out = "# HELP mine Something else on the same page.\n# TYPE mine gauge\nmine 1\n";
    write_prometheus(out, contexts);
    const page p(out);
    EXPECT_EQ(p.value("mine", "mine"), 1);
    EXPECT_EQ(p.value("coil_tasks", "coil_tasks", {{"context", "0"}}), 1);
    EXPECT_EQ(p.value("coil_tasks", "coil_tasks", {{"context", "1"}, {"name", "disk"}}), 0);
    EXPECT_EQ(p.value("coil_turn_seconds", "coil_turn_seconds_count", {{"context", "0"}}), 6);
    EXPECT_EQ(p.value("coil_turn_seconds", "coil_turn_seconds_bucket",
                      {{"context", "1"}, {"name", "disk"}, {"le", "+Inf"}}),
              0);
}

TEST(Prometheus, ValuesOfLabelsMayBeAnything) {
    const std::string odd = "a \"quoted\" \\ back\nslash, {br=\"aces\"} and µ";
    const page p(text_of(some_metrics(), {{"odd", odd}, {"_x1", ""}}));
    EXPECT_EQ(p.value("coil_tasks", "coil_tasks", {{"odd", odd}, {"_x1", ""}}), 1);
}

TEST(Prometheus, AnInvalidLabelNameIsRefused) {
    for (const char* name : {"", "le", "1st", "a-b", "a b", "ä", "a\""}) {
        std::string out = "before\n";
        EXPECT_THROW(write_prometheus(out, some_metrics(), {{"fine", "x"}, {name, "x"}}),
                     std::invalid_argument)
            << name;
        EXPECT_EQ(out, "before\n");
    }
}

TEST(Prometheus, TheParserOfThisTestRefusesInvalidPages) {
    for (const char* wrong :
         {"coil_x 1\n", "# HELP a b\n# TYPE a counter\na{x=\"1} 1\n",
          "# HELP a b\n# TYPE a gauge\na 1\na 2\n", "# HELP a b\n# TYPE a gauge\na 1",
          "# HELP a b\n# TYPE a gauge\nb 1\n", "# HELP a b\n# TYPE a gauge\na one\n"}) {
        EXPECT_THROW(page{wrong}, std::runtime_error) << wrong;
    }
}

} // namespace
