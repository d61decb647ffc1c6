# Tests of durumcc, run by ci/test-compiler.sh or, with durumcc built or installed in DIR, by
#   lit -v --param prefix=DIR compiler/tests
import os
import lit.formats

config.name = "durumcc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".c", ".test"]
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

durumcc = os.path.join(prefix, "bin", "durumcc")
config.substitutions += [
    # The messages that the comments of the file expect, and no others.
    ("%verify", durumcc + " -fsyntax-only -ferror-limit=0 -Xclang -verify %s"),
    # The intermediate code as the passes get it.
    ("%ir", durumcc + " -Wall -Wextra -Werror -S -emit-llvm -o - %s"),
    ("%durumcc", durumcc),
    ("%clang", os.path.join(llvm, "clang")),
    ("%filecheck", os.path.join(llvm, "FileCheck") + " %s"),
    ("%prefix", prefix),
    ("%repository", os.path.dirname(os.path.dirname(os.path.dirname(__file__)))),
]
