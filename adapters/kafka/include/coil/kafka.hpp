#pragma once

// coil::kafka: a Kafka client based on librdkafka (target coil::kafka).

#include <coil/kafka/consumer.hpp>
#include <coil/kafka/error.hpp>
#include <coil/kafka/producer.hpp>
