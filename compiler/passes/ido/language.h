// Lock-based C and C++ whose sections are durable (-fido).
#pragma once

#include "common/language.h"

namespace durumcc::ido {

extern const Language &language;

} // namespace durumcc::ido
