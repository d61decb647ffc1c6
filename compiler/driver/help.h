// What the driver says about itself.
#pragma once

#include <string>

void print_help(const std::string &clang);

// The lists of messages that the front end and the passes can give: id, message and cure, separated
// by tabs.
void print_nvl_diagnostics();
void print_ido_diagnostics();

// Begins the answer to --version; Clang's own follows.
void print_version();
