# Sourced by dev: the steps of ./dev lint and ./dev test, their results, and the engines that they need.

# The results, one line for each step: a file, because steps run in several processes.
steps=build/steps.txt
# What passed the checks before, in any checkout.
passed_checks=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/strakes
is_ours "$passed_checks" || passed_checks=$PWD/build/passed
export passed_checks

begin_steps() { mkdir -p build && : >"$steps"; }

note_step() { # NAME STATE SECONDS
    printf '%-28s %-6s %4d s\n' "$@" >>"$steps"
}

step() { # NAME COMMAND...
    local name=$1 began=$SECONDS state=ok
    shift
    printf '\n=== %s\n' "$name"
    "$@" </dev/null || state=FAILED
    note_step "$name" "$state" $((SECONDS - began))
    printf '=== %s: %s after %d s\n' "$name" "$state" $((SECONDS - began))
}

summary() { # [LAST-LINE]
    printf '\n'
    cat "$steps"
    [[ -z ${1:-} ]] || printf '%s\n' "$1"
    ! grep -q ' FAILED ' "$steps"
}

cpp_files() { find engine bench -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h'; }

shell_files() {
    printf '%s\n' strakes dev .ci/run bootstrap/install bootstrap/*.sh src/strakes/lab/scripts/*.sh src/strakes/lab/scripts/*.sh
}

clang_format() { cpp_files | xargs clang-format "$@"; }

check_shell() {
    local file
    for file in $(shell_files); do bash -n "$file" || return; done
}

check_layers() {
    mkdir -p build || return
    lint-imports --no-logo --cache-dir build/imports >build/layers.log 2>&1 && return
    cat build/layers.log
    return 1
}

build_site() { mkdocs build --strict --quiet; }

# mypy checks again only what changed, by checksum. A new checkout begins with the results of the last one, in a file
# that is only ever replaced as a whole.
check_types() {
    if [[ ! -e .mypy_cache && -e $passed_checks/mypy.tar ]]; then
        rm -rf build/mypy && mkdir -p build/mypy && tar -xf "$passed_checks/mypy.tar" -C build/mypy && mv build/mypy .mypy_cache
    fi
    mypy src tests bench bootstrap packaging/licences.py packaging/live.py packaging/screen.py packaging/site.py || return
    mkdir -p "$passed_checks" && tar -cf "$passed_checks/mypy.$$" -C .mypy_cache . &&
        mv "$passed_checks/mypy.$$" "$passed_checks/mypy.tar"
}

check_format() { ruff check --quiet && ruff format --check --quiet && clang_format --dry-run --Werror; }

lint() {
    step "format" check_format
    step "layers" check_layers
    step "types" check_types
    step "shell syntax" check_shell
    step "documents" build_site
}

build_engine() { # DIRECTORY TARGET OPTION...
    local directory=build/$1 log=build/$1.log target=$2
    shift 2
    mkdir -p build
    use_compiler_cache "$PWD"
    cmake -S . -B "$directory" -G Ninja -DSTRAKES_TESTS=ON "$@" >"$log" 2>&1 &&
        nice cmake --build "$directory" --parallel "$jobs" --target "$target" >>"$log" 2>&1 && return
    tail -n 60 "$log"
    return 1
}

build_sanitized() { # DIRECTORY SANITIZERS TARGET [OPTION...]
    # Debug keeps the assertions. Compiling takes longer than running, so the code is not optimised and its only symbols
    # are line numbers.
    build_engine "$1" "$3" -DSTRAKES_SANITIZE="$2" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g1" "${@:4}"
}

# GCC 12's thread sanitizer fails with the address randomisation of current kernels; setarch -R switches it off.
under_sanitizer() { # COMMAND...
    ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
        TSAN_OPTIONS=halt_on_error=1 nice setarch "$(uname -m)" -R "$@"
}

sanitized() { # DIRECTORY SANITIZERS
    build_sanitized "$@" strakes-engine-tests &&
        under_sanitizer ctest --test-dir "build/$1" --output-on-failure --no-tests=error
}

engine_tests() { # PATH below engine...
    # engine/ROOM is tested by engine/tests/ROOM*.cpp.
    local path room files=
    for path in "$@"; do
        room=${path#engine/}
        room=${room#tests/}
        room=${room%%/*}
        [[ $room == engine || $room == tests || -z $room ]] && room=
        files+=${files:+,}*/engine/tests/${room%.cpp}*
    done
    build_sanitized address address,undefined strakes-engine-tests || return
    under_sanitizer build/address/strakes-engine-tests --source-file="$files" | tee build/engine-tests.log
    # If no test has the name, that is a failure.
    [[ ${PIPESTATUS[0]} -eq 0 ]] && ! grep -q 'test cases: *0 ' build/engine-tests.log
}

mpi_sanitized() {
    # Each process writes its findings to a file of its own: a launcher may lose the last lines that a process prints.
    local found=$PWD/build/mpi-address/found status=0
    # The mpicxx on PATH is that of the environment, not that of the machine.
    build_sanitized mpi-address address,undefined all -DSTRAKES_MPI=both \
        -DPython3_EXECUTABLE="$environment/bin/python" || return
    rm -f "$found".*
    # Left out: tests with 256 processes, which need more memory than machines have, and the labs, whose hosts use the
    # installed engine. Tests that record every access load a library before those of the sanitizers.
    STRAKES_ENGINE=$PWD/build/mpi-address/strakes-engine \
        LSAN_OPTIONS=suppressions=$PWD/engine/mpi/leaks.txt:print_suppressions=0 \
        ASAN_OPTIONS=log_path=$found:verify_asan_link_order=0 UBSAN_OPTIONS=print_stacktrace=1:log_path=$found \
        python -I -m pytest --all -m 'not lab' -k 'not 256' tests/runs tests/integration/test_examples.py || status=1
    for report in "$found".*; do
        [[ -s $report ]] || continue
        cat "$report"
        status=1
    done
    return "$status"
}

# C++ files of the engine that differ from main, committed or not; all of them if there is no main to compare with.
changed_sources() {
    local base
    base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null) || {
        find engine -name '*.cpp'
        return
    }
    {
        git diff --name-only --diff-filter=d "$base" -- 'engine/*.cpp'
        git ls-files --others --exclude-standard 'engine/*.cpp'
    } | sort -u
}

# Checks one file, unless it passed before, in any checkout, with the same content, includes, checks and tool.
tidy_one() { # FILE
    local sum passed=$passed_checks/tidy
    sum=$({ clang-tidy --version && cat .clang-tidy CMakeLists.txt && c++ -std=c++20 -Iengine -MM -MG "$1" | tr -d '\\\n' |
        sed 's/^[^:]*://' | xargs -n 1 2>/dev/null | while read -r file; do [[ ! -f $file ]] || cksum "$file"; done; } | sha256sum)
    [[ ! -e $passed/${sum%% *} ]] || return 0
    clang-tidy -p build/address --quiet "$1" && mkdir -p "$passed" && : >"$passed/${sum%% *}"
}
export -f tidy_one

clang_tidy() { # LIST-COMMAND...
    "$@" | nice xargs -r -n 1 -P "$jobs" bash -c 'tidy_one "$1"' tidy
}

python_tests() { # ARGUMENT...
    # The engine under test is the one that ./strakes has installed. Each chain of tests has a process of its own
    # (tests/conftest.py), and all other tests share one more.
    python -I -m pytest "$@" 2>&1 | tee -i build/pytest.log
    return "${PIPESTATUS[0]}"
}

# A test that failed while others and builds were running may only have been too slow. So if few tests failed, they run
# once more, alone. A test that fails again is a real failure; one that passes now is named.
tests_once_more() { # ARGUMENT...
    local again=(python -I -m pytest --last-failed --last-failed-no-failures none "$@")
    "${again[@]}" --collect-only -q 2>&1 | grep :: | tee build/once-more.log
    (($(wc -l <build/once-more.log) <= 5)) || {
        echo "More than five tests failed, so none of them is run again."
        return 1
    }
    timeout --kill-after 30 240 "${again[@]}" 2>&1 | tee -ia build/pytest.log
    return "${PIPESTATUS[0]}"
}

engine_checks() { # quick | more | all
    step "engine, ASan and UBSan" sanitized address address,undefined
    if [[ $1 == quick ]]; then
        step "clang-tidy, changed files" clang_tidy changed_sources
        return
    fi
    step "engine, TSan" sanitized thread thread
    step "clang-tidy" clang_tidy find engine -name '*.cpp'
    [[ $1 != all ]] || step "engines for MPI, sanitized" mpi_sanitized
}

run_tests() { # quick | more | all
    local options=(--numprocesses 4)
    case $1 in quick) options+=(--quick) ;; all) options+=(--all) ;; esac
    # Tests of real servers mostly wait, and builds mostly compute: at the same time, they take two thirds as long.
    # Builds and checks of the engine run with nice, because servers that get no processor time are declared dead.
    # They have a process group of their own, so that Ctrl-C leaves nothing running: the shell ends at once, and tests
    # take down what they set up.
    set -m
    {
        lint
        engine_checks "$1"
    } >build/checks.log 2>&1 &
    checks=$!
    set +m
    trap 'kill "$checks" 2>/dev/null; kill -INT -- -"$checks" 2>/dev/null' EXIT
    step "pytest" python_tests "${options[@]}"
    wait "$checks"
    trap - EXIT
    cat build/checks.log
    if grep -q '^pytest  .* FAILED ' "$steps"; then
        tail -n 1 build/pytest.log
        sed -i '/^pytest  /s/ FAILED / once more /' "$steps"
        step "failed tests, alone" tests_once_more "${options[@]:2}"
    fi
    summary "$(tail -n 1 build/pytest.log 2>/dev/null)"
}

# The tests under paths, and only what they need.
run_paths() { # LEVEL PATH...
    local path options=() engine=() python=() status=0
    [[ $1 != all ]] || options=(--all)
    shift
    for path in "$@"; do
        path=${path#./}
        [[ -e ${path%%::*} ]] || {
            echo "$path: no such file or directory in $PWD" >&2
            return 2
        }
        case $path in engine | engine/*) engine+=("${path%/}") ;; *) python+=("$path") ;; esac
        # The tests of a room spend half of their time waiting.
        [[ ! -d $path || $path != tests/* ]] || options+=(--numprocesses 2)
    done
    if ((${#engine[@]} > 0)); then engine_tests "${engine[@]}" || status=1; fi
    if ((${#python[@]} > 0)); then python -I -m pytest "${options[@]}" "${python[@]}" || status=1; fi
    return "$status"
}
