#pragma once

// Kafka by librdkafka: needs the target coil::kafka.

#include <coil/kafka/consumer.hpp>
#include <coil/kafka/error.hpp>
#include <coil/kafka/producer.hpp>
