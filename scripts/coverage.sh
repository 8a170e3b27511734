#!/bin/sh
# Prints what the tests run: of the core by file, what the tests of the package run of it through the binding included; then
# of the Python package, with the lines left out. `PYTHON` is the interpreter of an environment with requirements/dev.txt.
#
# Only this package is built with counters (by a wrapper around its compiler), so that nothing else is built again. Tests that fail
# keep no numbers back; the script then ends with 1.
set -eu
cd "$(dirname "$0")/.."
bin=$(dirname "$PYTHON")
out="$PWD/target/coverage"

failed=0

# As new as the compiler: rustup's component `llvm-tools`, else the system's, which has LLVM's number in its name.
host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
tool() {
    command -v "$(rustc --print sysroot)/lib/rustlib/$host/bin/$1" || command -v "$1-$llvm" || {
        echo "error: coverage needs $1 of LLVM $llvm" >&2
        echo "hint: \`rustup component add llvm-tools\`, or the system's package \`llvm-$llvm\`" >&2
        exit 1
    }
}
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

rm -rf "$out"
mkdir -p "$out"
printf '#!/bin/sh\nexec "$@" -C instrument-coverage\n' >"$out/rustc"
chmod +x "$out/rustc"
export RUSTC_WORKSPACE_WRAPPER="$out/rustc"
# Processes add to four files by turns: one for each of the thousands that tests start would fill the disk.
export LLVM_PROFILE_FILE="$out/%4m.profraw"

cargo test --locked --quiet --no-fail-fast || failed=1
"$bin/maturin" build --profile dev --locked --features python,evaluation --out "$out" --interpreter "$PYTHON"
# The next `make build` puts the ordinary wheel back.
rm -f "$bin/../.wheel.stamp"
"$bin/uv" pip install --quiet --python "$PYTHON" --no-deps --reinstall "$out"/*.whl
"$bin/coverage" erase
"$bin/coverage" run -m pytest -q --numprocesses 3 --dist loadfile tests/python tests/conformance || failed=1

"$profdata" merge --sparse --output "$out/all.profdata" "$out"/*.profraw
objects=$(cargo test --locked --no-run --message-format json 2>/dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/--object \1/p')
library=$("$PYTHON" -c 'import nanobot_context._core as core; print(core.__file__)')
# shellcheck disable=SC2086 # paths of cargo's own, one word each
"$cov" report --instr-profile "$out/all.profdata" --ignore-filename-regex '(/tests/|/scripts/|/registry/|/rustc/)' "$library" $objects
"$bin/coverage" combine --quiet
"$bin/coverage" report
exit $failed
