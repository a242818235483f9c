#!/usr/bin/env bash
# Builds dn-top for Windows, and runs it under Wine with real .NET 8 and 10 for Windows.
#
#   tests/windows.sh setup    creates the folder used by the rest: Debian sid with rustc and the standard library's source, mingw-w64 and Wine, and
#                             single-file .NET 8/10 programs for Windows. Needs root, 4 GB and some minutes; installs debootstrap and npm if missing.
#   tests/windows.sh check    compiles
#   tests/windows.sh macos    compiles for macOS, with its unit tests: that needs only the standard library's source. Nothing is linked or run
#   tests/windows.sh arm64    compiles for Linux on ARM64, the same way
#   tests/windows.sh units    compiles, runs the unit tests of net, session, sim and the console, and checks their number
#   tests/windows.sh live     compiles, and runs the program with the runtimes
#   tests/windows.sh          units and live
#
# The folder is $DN_TOP_WINDOWS, by default ~/.cache/dn-top-windows. Without it, or without root, everything is SKIPPED, with the reason. The startup
# hook is that of tests/setup.sh; without it, the tests of hooks are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
project=$PWD
folder=${DN_TOP_WINDOWS:-${XDG_CACHE_HOME:-$HOME/.cache}/dn-top-windows}
target=x86_64-pc-windows-gnu

# Runs a script with the folder as root directory and the project as /src, in a private mount namespace.
inside() {
  FOLDER=$folder PROJECT=$project SCRIPT=$1 unshare -m bash -euc '
    mount --make-rprivate /
    mount -t proc proc "$FOLDER/proc"
    mount --rbind /dev "$FOLDER/dev"
    mkdir -p "$FOLDER/src"
    mount --bind "$PROJECT" "$FOLDER/src"
    exec chroot "$FOLDER" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 TERM=xterm-256color DEBIAN_FRONTEND=noninteractive \
      WINEDEBUG=-all AZURE_MCP_COLLECT_TELEMETRY=false SSL_CERT_FILE=/ca.pem CARGO_HTTP_CAINFO=/ca.pem RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=/target \
      CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine \
      CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=0 bash -euc "$SCRIPT"'
}

skip() {
  echo "SKIPPED windows: $1"
  exit 0
}

setup() {
  local tool missing=()
  for tool in debootstrap npm; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  if ((${#missing[@]})); then
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
  fi
  for tool in debootstrap npm unshare; do command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 1; }; done
  mkdir -p "$folder"
  # The archive of security updates has no sid.
  archive=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Component: main' | grep -v security | head -n 1)
  [[ -x $folder/usr/bin/apt-get ]] || debootstrap --variant=minbase sid "$folder" "$archive" >/dev/null
  cp /etc/apt/apt.conf.d/* "$folder/etc/apt/apt.conf.d/" 2>/dev/null || true
  cp /etc/resolv.conf /etc/hosts "$folder/etc/"
  cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$folder/ca.pem"
  inside 'apt-get -qq update
    apt-get install -y -qq --no-install-recommends rustc cargo rust-src gcc-mingw-w64-x86-64-posix wine wine64 ca-certificates >/dev/null'
  if [[ ! -f $folder/mcp/azmcp.exe ]]; then
    (cd "$folder" && npm pack --silent --ignore-scripts @azure/mcp-win32-x64@2.0.5 >/dev/null && mkdir -p unpacked \
      && tar xzf azure-mcp-win32-x64-2.0.5.tgz -C unpacked && mv unpacked/package/dist mcp && rm -rf unpacked azure-mcp-*.tgz)
  fi
  if [[ ! -f $folder/net8/Sarif.Multitool.exe ]]; then
    (cd "$folder" && npm pack --silent --ignore-scripts @microsoft/sarif-multitool-win32@5.7.0 >/dev/null && mkdir -p unpacked net8 \
      && tar xzf microsoft-sarif-multitool-win32-5.7.0.tgz -C unpacked && mv unpacked/package/Sarif.Multitool.exe net8 && rm -rf unpacked microsoft-sarif-*.tgz)
  fi
}

ready() {
  ((EUID == 0)) || skip 'root is required'
  [[ -L $folder/usr/bin/wine && -x $folder/usr/bin/rustc ]] || skip "there is no Debian with rustc and Wine in $folder; run tests/windows.sh setup"
}

cargo_inside() { inside "cd /src; cargo $1 -Z build-std=std,panic_unwind --target $target ${*:2}"; }

# The C library of a test dependency is not compiled.
check_only() { # TARGET
  inside "cd /src; export CC_${1//-/_}=true AR_${1//-/_}=true RUSTFLAGS='-D warnings'
    cargo check -Z build-std=std,panic_unwind --target $1 --bin dn-top
    cargo check -Z build-std=std,panic_unwind --target $1 --lib --profile test"
}

# Unit tests of the rooms with platform-specific code, except Linux-only ones. Two tests are excluded that give 40 and 100 processes fractions of a
# second to respond, which is too short under Wine on a busy machine.
units() {
  local output
  output=$(cargo_inside test --lib -- net:: session:: sim:: tui::tty --skip silent_processes_do_not_delay_refresh --skip a_hundred_silent_processes) || { tail -n 60 <<<"$output"; echo 'FAILED windows: unit tests'; exit 1; }
  [[ $output =~ ([0-9]+)\ passed ]] && ((BASH_REMATCH[1] >= 100)) || { echo "FAILED windows: too few unit tests ran: $output"; exit 1; }
  echo "windows: ${BASH_REMATCH[1]} unit tests passed under Wine"
}

# The tests of the program with the runtimes, as a bash script to run inside. Wine has PIDs of its own, which are not those of Linux.
live='
program=/target/x86_64-pc-windows-gnu/debug/dn-top.exe
dn_top() { timeout 120 wine $program "$@"; }
fail() { echo "FAILED windows: $1"; exit 1; }
expect() { grep -q -- "$2" <<<"$3" || fail "$1: no $2 in: $3"; }
refused() { # CODE WORDS COMMAND..
  local output code=0
  output=$(dn_top "${@:3}" 2>&1 >/dev/null </dev/null) || code=$?
  [[ $code == "$1" ]] || fail "${*:3}: exit code $code instead of $1: $output"
  expect "${*:3}" "$2" "$output"
}
pids() { dn_top ps --json | sed -n "s/.*\"pid\": \([0-9]*\),*\r*$/\1/p" | sort -n; }
newest() { pids | tail -n 1; }
threads() { dn_top ps --json | grep -A 30 "\"pid\": $1," | sed -n "s/.*\"threads\": \([0-9]*\),*\r*$/\1/p" | head -n 1; }
cd "$(mktemp -d)"
# The first .NET process of a new Wine session may fail to create its pipe.
wine cmd /c ver >/dev/null
mkfifo input
wine /mcp/azmcp.exe server start <input >/dev/null 2>&1 & runtime=$!
exec 3>input
trap "exec 3>&-; kill $runtime 2>/dev/null || true; wine wineboot --kill || true" EXIT
for _ in $(seq 60); do list=$(dn_top ps); grep -q "azmcp  *10" <<<"$list" && break; sleep 1; done
expect ps "azmcp  *10\\." "$list"
expect "the number of threads" "\"threads\": [1-9]" "$(dn_top ps --json)"
expect "the user" "\"user\": \"root" "$(dn_top ps --json)"
target=$(newest)
expect info "Platform  *win-x64" "$(dn_top info azmcp)"
expect "the command line" "azmcp.exe\"* server start" "$(dn_top info azmcp)"
expect env "APPDATA=" "$(dn_top env azmcp)"
dn_top set-env azmcp DN_TOP_SET=value 2>/dev/null
expect set-env "^DN_TOP_SET=value" "$(dn_top env azmcp)"
expect counters "dotnet.gc.collections" "$(dn_top counters azmcp --duration 3s)"
expect stacks " threads, " "$(dn_top stacks azmcp)"
expect heap " objects, " "$(dn_top heap azmcp --yes)"
made=$(dn_top trace azmcp --duration 5s -o five.nettrace --json)
expect trace "\"complete\": true" "$made"
events=$(sed -n "s/.*\"events\": \\([0-9]*\\),/\\1/p" <<<"$made")
expect stats "^$events events, 0 dropped" "$(dn_top stats five.nettrace)"
cp five.nettrace /recording.nettrace
# Wine gives the group of a file the permissions of its owner.
[[ $(stat -c %a five.nettrace) == *0 ]] || fail "others can read a recording: $(stat -c %a five.nettrace)"
expect run "\"complete\": true" "$(dn_top run -o run.nettrace --json -- "Z:\\mcp\\azmcp.exe" --version 2>/dev/null)"
expect "an exit code" "^7$" "$(dn_top run -- cmd /c exit 7 >/dev/null 2>&1; echo $?)"

# Simulated runtimes.
expect "--demo" "OrderService  *9\." "$(dn_top --demo ps)"
expect "--demo trace" "\"complete\": true" "$(dn_top --demo trace OrderService --duration 2s -o demo.nettrace --json)"

# Two sessions of one process.
dn_top trace azmcp --duration 4s -o first.nettrace --json >first.json 2>/dev/null & first=$!
expect "the second session" "\"complete\": true" "$(dn_top trace azmcp --duration 4s -o second.nettrace --json)"
wait $first
expect "the first session" "\"complete\": true" "$(cat first.json)"

# Only new files on a drive are written.
refused 1 "exists already" trace azmcp --duration 1s -o five.nettrace
for name in NUL con.nettrace "\\\\.\\pipe\\dotnet-diagnostic-$target" "\\\\?\\Z:\\tmp\\x.nettrace" "\\\\server\\share\\x.nettrace" five.nettrace:x; do
  refused 1 "choose a file on a drive" trace azmcp --duration 1s -o "$name"
done
refused 2 "the dashboard needs a terminal"
refused 3 "there is no process" info 99999

# The runtime still responds after a client is killed.
wine $program trace azmcp -o killed.nettrace 2>/dev/null & sleep 5; kill -9 $!
expect "after a kill" "Runtime  *10\\." "$(dn_top info azmcp)"

# If the process is killed, the data received so far is kept. It is suspended at startup until it is resumed.
DOTNET_DefaultDiagnosticPortSuspend=1 wine /mcp/azmcp.exe server start <input >/dev/null 2>&1 &
for _ in $(seq 30); do [[ $(newest) != "$target" ]] && break; sleep 1; done
second=$(newest)
[[ $second != "$target" ]] || fail "a suspended process is not listed"
expect resume "was resumed, if it was suspended" "$(dn_top resume "$second" 2>&1)"
dn_top trace "$second" -o cut.nettrace 2>cut.txt & recorder=$!
sleep 5
wine taskkill /F /PID "$second" >/dev/null
wait $recorder || true
expect "a killed target" "every complete block is kept" "$(cat cut.txt)"
expect "a file that was cut off" "CUT OFF" "$(dn_top stats cut.nettrace.partial 2>/dev/null)"

# Diagnostics switched off. Only a file next to a single-file program shows that it is a .NET program.
mkdir off
ln -s /mcp/azmcp.exe off/shop.exe
touch off/shop.runtimeconfig.json
DOTNET_EnableDiagnostics=0 wine off/shop.exe server start <input >/dev/null 2>&1 & off=$!
for _ in $(seq 30); do grep -q shop <<<"$(dn_top ps)" && break; sleep 1; done
expect "diagnostics that are switched off" "Contact .*switched off by DOTNET_EnableDiagnostics=0" "$(dn_top info shop)"
kill $off

# A dump needs a program that a single file lacks; the runtime starts the one next to it.
refused 1 "published as a single file, copy createdump.exe" dump azmcp -o "Z:\\tmp\\a.dmp"
mkdir dumped
ln -s /mcp/azmcp.exe dumped/azmcp.exe
x86_64-w64-mingw32-gcc -O1 -o dumped/createdump.exe /src/tests/programs/createdump.c -ldbghelp
wine dumped/azmcp.exe server start <input >/dev/null 2>&1 & dumped=$!
for _ in $(seq 30); do [[ $(newest) != "$target" ]] && break; sleep 1; done
[[ $(newest) != "$target" ]] || fail "a process to dump is not listed"
for type in mini heap full; do
  expect "a dump" "\"type\": \"$type\"" "$(dn_top dump "$(newest)" --type $type -o $type.dmp --json 2>/dev/null)"
  expect "a dump of Windows" "^MDMP" "$(head -c 4 $type.dmp)"
done
(($(stat -c %s full.dmp) > $(stat -c %s mini.dmp) * 100)) || fail "a full dump is no larger than a small one"
refused 1 "exists already" dump "$(newest)" -o mini.dmp
expect "after dumps" "Runtime  *10\\." "$(dn_top info "$(newest)")"
kill $dumped

# A profiler.
x86_64-w64-mingw32-gcc -shared -O1 -o profiler.dll /src/tests/programs/profiler.c
class="{123e4567-e89b-12d3-a456-426614174000}"
printf "Z:\\\\tmp\\\\attached" >data
rm -f /tmp/attached
refused 1 ERROR_MOD_NOT_FOUND profiler attach azmcp --guid "$class" --path "Z:\\none.dll" --data data
expect "a profiler" "profiler loaded" "$(dn_top profiler attach azmcp --guid "$class" --path "Z:$(pwd | tr / "\\\\")\\profiler.dll" --data data 2>&1)"
for _ in $(seq 10); do [[ -s /tmp/attached ]] && break; sleep 1; done
expect "an attached profiler" "^attached" "$(cat /tmp/attached)"
refused 1 "a profiler is already loaded in this process" profiler attach azmcp --guid "$class" --path "Z:$(pwd | tr / "\\\\")\\profiler.dll" --data data

# The dashboard, in a pseudo-terminal. A separate program detects how the console handles escape sequences.
in_terminal() { script -qfec "stty rows 40 cols 120; exec wine $1" "$2"; }
x86_64-w64-mingw32-gcc -o console.exe /src/tests/tools/console.c
in_terminal "console.exe console.txt" /dev/null </dev/null >/dev/null
echo "windows: the console of $(wine --version): $(cat console.txt)"
case $(cat console.txt) in
"setting accepted, cursor moved 0 columns"*) colors=256 ;;
*) colors=16 ;;
esac
in_terminal "$program doctor" doctor.txt </dev/null >/dev/null || true
expect "the kind of the terminal" "terminal .*$colors colors" "$(cat doctor.txt)"
mkfifo interrupt
in_terminal "$program trace azmcp -o interrupted.nettrace" interrupted.txt <interrupt >/dev/null & recorder=$!
exec 5>interrupt
for _ in $(seq 30); do grep -q "Ctrl-C stops it" interrupted.txt 2>/dev/null && break; sleep 1; done
sleep 2
printf "\003" >&5
code=0
wait $recorder || code=$?
[[ $code == 130 ]] || fail "a recording ended by Ctrl-C: $code: $(cat interrupted.txt)"
exec 5>&-
expect "a recording ended by Ctrl-C" " 0 dropped" "$(dn_top stats interrupted.nettrace)"
x86_64-w64-mingw32-gcc -o ctrl_break.exe /src/tests/tools/ctrl_break.c
# Wine may terminate a program on Ctrl-Break, even if the program handles it.
code=0
in_terminal "ctrl_break.exe 3 ctrl_break.exe" /dev/null </dev/null >/dev/null || code=$?
if [[ $code == 7 ]]; then
  code=0
  in_terminal "ctrl_break.exe 15 \"Z:$program trace azmcp -o broken.nettrace\"" broken.txt </dev/null >/dev/null || code=$?
  [[ $code == 130 ]] || fail "a recording ended by Ctrl-Break: $code: $(cat broken.txt)"
  expect "a recording ended by Ctrl-Break" " 0 dropped" "$(dn_top stats broken.nettrace)"
else
  echo "SKIPPED windows: Ctrl-Break; $(wine --version) terminates the program instead of notifying it"
fi
mkfifo keys
in_terminal "$program" screen.txt <keys >/dev/null & dashboard=$!
exec 4>keys
shows() { # WORDS, in the output since the last match
  for _ in $(seq 60); do
    screen=$(tail -c "+$seen" "$screen_file" | tr -d "\0")
    grep -q -- "$1" <<<"$screen" && { seen=$(($(stat -c %s "$screen_file") + 1)); return; }
    sleep 1
  done
  fail "the dashboard does not show $1: $screen"
}
seen=1
screen_file=screen.txt
# Unchanged cells are not written again: only text that replaces different text is complete.
shows attachable
printf t >&4
shows recording
printf t >&4
shows done
printf "?" >&4
shows Keys
printf "\033" >&4
shows unwatch
printf q >&4
exec 4>&-
wait $dashboard || fail "the dashboard ended with $?"
expect "the recording of the dashboard" " 0 dropped" "$(dn_top stats azmcp_*.nettrace)"
expect "after the dashboard" "Runtime  *10\." "$(dn_top info azmcp)"

# A diagnostic port of the dashboard: the program is suspended on it, and is resumed by a key.
before=$(newest)
DOTNET_DiagnosticPorts=dn-top-port wine /mcp/azmcp.exe server start <input >/dev/null 2>&1 &
for _ in $(seq 30); do [[ $(newest) != "$before" ]] && break; sleep 1; done
waiting=$(newest)
in_terminal "$program --port dn-top-port --filter pid:$waiting" port.txt <keys >/dev/null & dashboard=$!
exec 4>keys
seen=1
screen_file=port.txt
# Replaces "connecting", which hides part of it.
shows "nded?"
[[ $(threads "$waiting") -le 3 ]] || fail "a suspended process has threads: $(dn_top ps --json)"
printf R >&4
shows instructions
printf "\033[C\r" >&4
for _ in $(seq 30); do (($(threads "$waiting") > 5)) && break; sleep 1; done
[[ $(threads "$waiting") -gt 5 ]] || fail "a resumed process has no threads: $(dn_top ps --json)"
printf q >&4
exec 4>&-
wait $dashboard || fail "the dashboard with a port ended with $?"
wine taskkill /F /PID "$waiting" >/dev/null

# Startup hooks, with .NET 8: the .NET 10 program was built without support for them.
if [[ -f /hook/hook.dll ]]; then
  DOTNET_STARTUP_HOOKS="Z:\\hook\\host.dll" DN_TOP_HOOK="Z:\\tmp\\hooked" wine /net8/Sarif.Multitool.exe "Z:\\hook\\work.dll" 200 200 <input >/dev/null 2>&1 &
  for _ in $(seq 30); do grep -q Sarif <<<"$(dn_top ps)" && break; sleep 1; done
  rm -f /tmp/hooked
  refused 1 "not sent, because" startup-hook Sarif.Multitool "Z:\\hook\\none.dll"
  refused 1 "not sent, because" startup-hook Sarif.Multitool "Z:\\hook\\work.dll"
  refused 1 "not sent, because" startup-hook Sarif.Multitool NUL
  dn_top set-env Sarif.Multitool DN_TOP_SET=x 2>/dev/null
  dn_top startup-hook Sarif.Multitool "Z:\\hook\\hook.dll" 2>/dev/null
  for _ in $(seq 10); do [[ -s /tmp/hooked ]] && break; sleep 1; done
  expect "a startup hook" "^DN_TOP_SET=x$" "$(cat /tmp/hooked)"
else
  echo "SKIPPED windows: startup hooks; run tests/setup.sh"
fi
echo "windows: the tests of the program with .NET under Wine passed"
'

live() {
  [[ -f $folder/mcp/azmcp.exe && -f $folder/net8/Sarif.Multitool.exe ]] || skip "there are no .NET programs in $folder; run tests/windows.sh setup"
  local programs=${DN_TOP_RUNTIMES:-${XDG_CACHE_HOME:-$HOME/.cache}/dn-top-test-runtimes}/programs
  rm -rf "$folder/hook"
  if [[ -f $programs/net9/hook.dll && -f $programs/net8/host.dll ]]; then
    mkdir "$folder/hook"
    cp "$programs/net9/hook.dll" "$programs/net8/host.dll" "$programs/net8/work.dll" "$folder/hook"
  fi
  cargo_inside build --bin dn-top
  inside "$live"
  DN_TOP_RECORDING=$folder/recording.nettrace cargo test --quiet --test live -- --ignored --exact readers::readers_agree_on_given_recording || {
    echo 'FAILED windows: another reader reads a recording differently'
    exit 1
  }
}

case ${1-} in
setup) setup ;;
check) ready; cargo_inside check --bin dn-top ;;
macos) ready; check_only aarch64-apple-darwin ;;
arm64) ready; check_only aarch64-unknown-linux-gnu ;;
units) ready; units ;;
live) ready; live ;;
'') ready; units; live ;;
*) sed -n '2,14s/^#\( \|$\)//p' "$0" >&2; exit 2 ;;
esac
