// The algorithms of the Romulus paper on durum, and on durum::lr.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <cassert>

#include "place.hpp"

namespace with_lock {
namespace Romulus = durum;
#include "romulus_algorithms.hpp"
} // namespace with_lock

namespace without_waiting {
namespace Romulus = durum::lr;
#include "romulus_algorithms.hpp"
} // namespace without_waiting

DURUM_DESCRIBE(with_lock::LinkedListSet<int>::Node, key, next)
DURUM_DESCRIBE(with_lock::LinkedListSet<int>, head, tail)
DURUM_DESCRIBE(without_waiting::LinkedListSet<int>::Node, key, next)
DURUM_DESCRIBE(without_waiting::LinkedListSet<int>, head, tail)

TEST(Romulus, AlgorithmsOfThePaper) {
    place there;
    durum::pool pool(there.path());
    with_lock::algorithm_3();
}

TEST(LeftRight, AlgorithmsOfThePaper) {
    place there;
    durum::lr::pool pool(there.path());
    without_waiting::algorithm_3();
}
