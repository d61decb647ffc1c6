// What the driver says about itself.
#pragma once

#include <string>

void print_help(const std::string &clang);

// The list of messages that the front end can give: id, message and cure, separated by tabs.
void print_diagnostics();

// Begins the answer to --version; Clang's own follows.
void print_version();
