// A scratch directory for a store, on the engine that DURUM_TEST_ENGINE names. Where DURUMD names a
// durumd, one serves the store.
#pragma once

#include <durum.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

class place {
  public:
    place() {
        std::string name = "/dev/shm/durum-cpp.XXXXXX";
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no scratch directory");
        }
        directory_ = name;
        if (is_served()) {
            start_service();
        }
    }
    ~place() {
        if (service_ != 0) {
            EXPECT_EQ(end_service(SIGTERM), 0);
        }
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }
    place(const place &) = delete;
    place &operator=(const place &) = delete;

    static bool is_served() { return std::getenv("DURUMD") != nullptr; }

    /// What names the store to a program.
    std::string path() const {
        return is_served() ? "durum+unix:" + directory_ + "/sock" : directory();
    }
    /// Its files.
    std::string directory() const { return directory_ + "/store"; }

    void start_service() {
        const std::string log = directory_ + "/log", store = directory(),
                          socket = directory_ + "/sock";
        std::vector<const char *> words = {
            std::getenv("DURUMD"), "--store", store.c_str(), "--socket", socket.c_str(), nullptr};
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int failed = posix_spawn(&service_, words[0], &actions, nullptr,
                                       const_cast<char **>(words.data()), environ);
        posix_spawn_file_actions_destroy(&actions);
        if (failed != 0) {
            throw std::runtime_error("no service");
        }
        for (std::string said; said.find("serving") == std::string::npos; usleep(2000)) {
            std::ifstream file(log);
            said.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
            if (waitpid(service_, nullptr, WNOHANG) != 0) {
                service_ = 0;
                throw std::runtime_error("the service has ended: " + said);
            }
        }
    }

    /// Ends the service by a signal; its status.
    int end_service(int signal) {
        int status = -1;
        kill(service_, signal);
        waitpid(service_, &status, 0);
        service_ = 0;
        return status;
    }

  private:
    std::string directory_;
    pid_t service_ = 0;
};

inline durum::options engine_options(std::uint32_t flags = 0) {
    durum::options how;
    how.flags = flags;
    const char *name = std::getenv("DURUM_TEST_ENGINE");
    if (name != nullptr && std::string(name) == "hybrid") {
        how.engine = DURUM_ENGINE_HYBRID;
    }
    if (name != nullptr && std::string(name) == "twin") {
        how.engine = DURUM_ENGINE_TWIN;
    }
    if (name != nullptr && std::string(name) == "twin-basic") {
        how.engine = DURUM_ENGINE_TWIN;
        how.flags |= durum::basic_copies;
    }
    return how;
}
