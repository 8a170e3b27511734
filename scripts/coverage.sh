#!/bin/sh
# Prints what the tests run: of the core, line by line of each file, then of the Python package, with the lines left out.
#
# The binding is run by the tests of the package, so both write one set of counters. In a folder of its own: everything else
# would be built again with other flags, too. `PYTHON` is the interpreter of an environment with requirements/dev.txt.
set -eu
cd "$(dirname "$0")/.."
bin=$(dirname "$PYTHON")
export CARGO_TARGET_DIR="$PWD/target/coverage"

# As new as the compiler: rustup's component `llvm-tools`, else the system's, which has LLVM's number in its name.
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
if command -v "llvm-cov-$llvm" >/dev/null && command -v "llvm-profdata-$llvm" >/dev/null; then
    export LLVM_COV="llvm-cov-$llvm" LLVM_PROFDATA="llvm-profdata-$llvm"
fi
cargo llvm-cov --version >/dev/null 2>&1 || cargo install --locked cargo-llvm-cov --version 0.9.1

flags=$(cargo llvm-cov show-env --sh)
eval "$flags"
cargo llvm-cov clean --workspace --profraw-only
cargo test --locked --quiet
rm -rf "$CARGO_TARGET_DIR/wheels"
"$bin/maturin" build --profile dev --locked --out "$CARGO_TARGET_DIR/wheels" --interpreter "$PYTHON"
"$bin/uv" pip install --quiet --python "$PYTHON" --no-deps --reinstall "$CARGO_TARGET_DIR"/wheels/*.whl
"$bin/coverage" erase
"$bin/coverage" run -m pytest -q tests/python tests/conformance

cargo llvm-cov report --ignore-filename-regex '(tests|registry|rustlib)/'
"$bin/coverage" combine --quiet
"$bin/coverage" report
