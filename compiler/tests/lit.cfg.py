# Tests of durumcc, run by ci/test-compiler.sh or, with durumcc built or installed in DIR, by
#   lit -v --param prefix=DIR compiler/tests
import os
import shutil
import subprocess
import lit.formats

config.name = "durumcc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".c", ".cpp", ".test"]
config.excludes = ["inputs"]
config.test_source_root = os.path.dirname(__file__)

prefix = lit_config.params.get("prefix")
if not prefix:
    lit_config.fatal("say where durumcc is: --param prefix=DIR")
llvm = lit_config.params.get("llvm", "/usr/lib/llvm-19/bin")
config.test_exec_root = lit_config.params.get("scratch", os.path.join(prefix, "tests"))
config.environment["PATH"] = llvm + ":" + os.environ["PATH"]
# Caches of the user are not the tests' business.
config.environment["HOME"] = config.test_exec_root

# Programs that run need the runtime, which is installed beside durumcc.
config.environment["LD_LIBRARY_PATH"] = os.path.join(prefix, "lib")

# LLVM checks what each of its passes leaves, and each of ours: Clang's driver adds the option for it to all command lines.
config.environment["CCC_OVERRIDE_OPTIONS"] = \
    "# ^--end-no-unused-arguments ^-llvm-verify-each ^-Xclang ^--start-no-unused-arguments"

durumcc = os.path.join(prefix, "bin", "durumcc")
passes = os.path.join(prefix, "lib", "durumcc", "durumcc-passes.so")
inputs = os.path.join(config.test_source_root, "run", "inputs")
repository = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))

# Sections run over simulated memory: the runtime and the program that crashes them.
sections = os.path.join(config.test_source_root, "sections", "inputs")


def install(name, *left_out):
    """A durumcc of its own, beside the simulated runtime in the place of libdurum, and without some files."""
    place = os.path.join(config.test_exec_root, name)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(os.path.join(place, "bin"))
    shutil.copy(durumcc, os.path.join(place, "bin"))
    os.symlink("durumcc", os.path.join(place, "bin", "durumc++"))
    shutil.copytree(os.path.join(prefix, "lib", "durumcc"), os.path.join(place, "lib", "durumcc"),
                    ignore=shutil.ignore_patterns(*left_out))
    objects = []
    for source in ("runtime", "names", "blocks", "stores", "sweep"):
        objects.append(os.path.join(place, source + ".o"))
        subprocess.run([os.path.join(llvm, "clang"), "-O2", "-Wall", "-Wextra", "-Werror", "-c",
                        os.path.join(sections, source + ".c"), "-o", objects[-1]], check=True)
    subprocess.run([os.path.join(llvm, "llvm-ar"), "rcs", os.path.join(place, "lib", "libdurum.a"), *objects], check=True)
    return place


simulated = install("simulated")
# One without passes, as if the file were missing: its intermediate code is what the passes get.
front_end = os.path.join(install("front-end", "durumcc-passes.so"), "bin", "durumcc")
# A few random programs beside the other tests, or as many as `--param seeds=N` says, on all processors.
seeds = lit_config.params.get("seeds")
# Levels of optimization that programs are compiled at, or those of `--param levels=...`: `make test-long` has all.
levels = lit_config.params.get("levels", "-O2")
if seeds:
    config.available_features.add("long")
# Random programs whose regions are done two times.
regions = f"--seeds {int(seeds) // 10}" if seeds else "--seeds 1"
# Sections that are crashed at each event and at all levels, or at some.
crashes = "'--levels=-O0,-O1,-O2 -g,-O3 -mavx2,-Os' --stride 1 --seeds 2" if seeds else "--levels=-O2 --stride 17"
# Kills of each program of examples/locks.
kills = "1000 --all" if seeds else "25"
# The same of one program in a heap of its own, and in one that a service keeps.
times_killed = "2000" if seeds else "30"
# And of one whose code completes its sections without it.
times_completed = "500" if seeds else "4"
random_programs = f"--start 101 --seeds {seeds} --sanitize" if seeds else "--start 1 --seeds 2 --jobs 1"
# Lines of a plain program that is compiled with many options: most of the time that this takes is the optimizer's.
plain_lines = "3000" if "levels" in lit_config.params else "150"
all_options = "--all" if "levels" in lit_config.params else ""
config.substitutions += [
    # The messages that the comments of the file expect, and no others.
    ("%verify", durumcc + " -fsyntax-only -ferror-limit=0 -Xclang -verify %s"),
    # The intermediate code as the passes get it.
    ("%ir", front_end + " -Wall -Wextra -Werror -S -emit-llvm -o - %s"),
    # And as they leave it.
    ("%lowered", durumcc + " -Wall -Wextra -Werror -S -emit-llvm -o - %s"),
    # What is known of locks, and of regions, in intermediate code.
    ("%print-locks", f"opt -load-pass-plugin={passes} -passes=print-locks -disable-output"),
    ("%print-regions", f"opt -load-pass-plugin={passes} -passes=print-regions -disable-output"),
    ("%passes", passes),
    # Compiles the file, which follows with options, at each level, and runs it.
    ("%levels", f"bash {os.path.join(inputs, 'levels.sh')} '{levels}' {durumcc} -I{os.path.join(prefix, 'include')}"),
    # The same, with a service for each run; at one level, as the levels have no part in it.
    # Runs a command beside a service, which SERVICE names.
    ("%times-completed", times_completed),
    ("%durum-command", os.path.join(prefix, "bin", "durum")),
    ("%durumd", lit_config.params.get("durumd", "durumd")),
    ("%beside-service", f"bash {os.path.join(repository, 'ci', 'served.sh')} {lit_config.params.get('durumd', 'durumd')}"),
    ("%served", f"bash {os.path.join(repository, 'ci', 'served.sh')} {lit_config.params.get('durumd', 'durumd')} "
                f"bash {os.path.join(inputs, 'levels.sh')} -O2 {durumcc} -I{os.path.join(prefix, 'include')}"),
    ("%random", random_programs),
    ("%seeds-of-regions", regions),
    ("%crashes", crashes),
    ("%kills", kills),
    ("%times-killed", times_killed),
    ("%sweep", f"python3 {os.path.join(sections, 'sweep.py')} --durumcc {os.path.join(simulated, 'bin', 'durumcc')} "
               f"--front-end {front_end} --llvm {llvm} --passes {passes}"),
    # Where -fido compiles programs that run.
    ("%simulated", simulated),
    ("%plain-lines", plain_lines),
    ("%all-options", all_options),
    ("%front-end", front_end),
    ("%durumcc", durumcc),
    ("%clang", os.path.join(llvm, "clang")),
    ("%filecheck", os.path.join(llvm, "FileCheck") + " %s"),
    ("%prefix", prefix),
    ("%repository", repository),
]
