#!/usr/bin/env bash
# Builds dn-top for Windows, and runs it under Wine beside a real .NET 10 for Windows.
#
#   tests/windows.sh setup    makes the folder that the rest takes: Debian sid with rustc and its library's source, mingw-w64 and Wine, and a
#                             single-file .NET 10 program for Windows. It takes root, debootstrap, npm, 4 GB and some minutes, and changes nothing outside.
#   tests/windows.sh check    compiles
#   tests/windows.sh          compiles, and runs the program beside the runtime
#
# The folder is $DN_TOP_WINDOWS, by default ~/.cache/dn-top-windows. Without it, or without root, everything is SKIPPED, with the reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
project=$PWD
folder=${DN_TOP_WINDOWS:-${XDG_CACHE_HOME:-$HOME/.cache}/dn-top-windows}
target=x86_64-pc-windows-gnu

# Runs a script in the folder as root directory, with the project as /src, in mounts that go with it.
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
      CARGO_PROFILE_DEV_DEBUG=0 bash -euc "$SCRIPT"'
}

skip() {
  echo "SKIPPED windows: $1; run tests/windows.sh setup"
  exit 0
}

setup() {
  command -v debootstrap npm unshare >/dev/null
  mkdir -p "$folder"
  archive=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Component: main' | head -n 1)
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
}

ready() {
  ((EUID == 0)) || skip 'it takes root'
  [[ -L $folder/usr/bin/wine && -x $folder/usr/bin/rustc ]] || skip "there is no Debian with rustc and Wine in $folder"
}

cargo_inside() { inside "cd /src; cargo $1 -Z build-std=std,panic_unwind --target $target ${*:2}"; }

# The program beside the runtime, as a script for bash inside. Wine's own pids are not those of Linux.
live='
dn_top() { timeout 120 wine /target/x86_64-pc-windows-gnu/debug/dn-top.exe "$@"; }
fail() { echo "FAILED windows: $1"; exit 1; }
expect() { grep -q -- "$2" <<<"$3" || fail "$1: no $2 in: $3"; }
cd "$(mktemp -d)"
# The first .NET process of a new session of Wine may miss its pipe.
wine cmd /c ver >/dev/null
mkfifo input
wine /mcp/azmcp.exe server start <input >/dev/null 2>&1 & runtime=$!
exec 3>input
trap "exec 3>&-; kill $runtime 2>/dev/null || true" EXIT
for _ in $(seq 60); do list=$(dn_top ps); grep -q azmcp <<<"$list" && break; sleep 1; done
expect ps "azmcp  *10\\." "$list"
expect info "Platform  *win-x64" "$(dn_top info azmcp)"
expect env "APPDATA=" "$(dn_top env azmcp)"
expect counters "dotnet.gc.collections" "$(dn_top counters azmcp --duration 3s)"
made=$(dn_top trace azmcp --duration 5s -o five.nettrace --json)
expect trace "\"complete\": true" "$made"
events=$(sed -n "s/.*\"events\": \\([0-9]*\\),/\\1/p" <<<"$made")
expect stats "^$events events, 0 dropped" "$(dn_top stats five.nettrace)"
dn_top trace azmcp --duration 1s -o five.nettrace 2>/dev/null && fail "a file was written over"
dn_top trace azmcp --duration 1s -o NUL 2>/dev/null && fail "a recording went into a device"
expect run "\"complete\": true" "$(dn_top run -o run.nettrace --json -- "Z:\\mcp\\azmcp.exe" --version 2>/dev/null)"
expect "an exit code" "^7$" "$(dn_top run -- cmd /c exit 7 >/dev/null 2>&1; echo $?)"
# A client that is killed leaves the runtime answering.
wine /target/x86_64-pc-windows-gnu/debug/dn-top.exe trace azmcp -o killed.nettrace 2>/dev/null & sleep 5; kill -9 $!
expect "after a kill" "Runtime  *10\\." "$(dn_top info azmcp)"
echo "windows: the program passed beside .NET under Wine"
'

case ${1-} in
setup) setup ;;
check) ready; cargo_inside check --bin dn-top ;;
'')
  ready
  [[ -f $folder/mcp/azmcp.exe ]] || skip "there is no .NET program in $folder/mcp"
  cargo_inside build --bin dn-top
  inside "$live"
  ;;
*) sed -n '2,9p' "$0"; exit 2 ;;
esac
