// Registers what the front end consists of. The attributes and the pragma register themselves.
#include "consumer.h"

#include "clang/Frontend/FrontendPluginRegistry.h"

static clang::FrontendPluginRegistry::Add<nvl::Action> action("nvl", "NVL-C");
