#!/usr/bin/env bash
# Makes a Debian-like machine ready for dn-top. Does only what is missing, so it may be run as often as one likes, also twice at once.
#
#   tests/setup.sh build   what building takes: looks for cargo, installs a C linker
#   tests/setup.sh         that, and the real .NET runtimes and C# programs that the live tests run against
#
# Debian's packages apart, it writes to one folder, outside the tree: $DN_TOP_RUNTIMES, by default ~/.cache/dn-top-test-runtimes
#
#   3.1.23/dotnet   .NET Core 3.1
#   9.0.7/dotnet    .NET 9 with ASP.NET Core and createdump
#   10.0.9/azmcp    a single-file, self-contained .NET 10 program; runs as `azmcp server start` while its standard input is open
#   programs/       the programs of tests/programs, compiled: net31/NAME.dll, net9/NAME.dll; net9/hook.dll, a start-up hook; profiler.so
#
# There is no package of a bare runtime in a registry that a plain machine reaches, but there are packages that carry one.
# tests/support/runtimes.rs knows this layout too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${DN_TOP_RUNTIMES:-${XDG_CACHE_HOME:-$HOME/.cache}/dn-top-test-runtimes}
net31=3.1.23 net9=9.0.7 net10=10.0.9

say() { printf 'setup: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 1; }

# Debian's packages for the commands that are missing: PACKAGES[command]. A name with a slash is a file.
declare -A packages=(
  [cc]="gcc libc6-dev" [/etc/ssl/certs/ca-certificates.crt]=ca-certificates [flock]=util-linux [unshare]=util-linux
  [python3]=python3 [pip]=python3-pip [npm]=npm [mcs]=mono-mcs
)
is_there() {
  case $1 in
    pip) python3 -m pip --version >/dev/null 2>&1 ;;
    /*) [[ -e $1 ]] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}
install() { # COMMAND..
  local command missing=()
  for command in "$@"; do
    # shellcheck disable=SC2206 # a command may need several packages
    is_there "$command" || missing+=(${packages[$command]})
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || give_up "needed, and there is no apt-get to install them with: ${missing[*]}"
  local root=()
  if ((EUID)); then
    command -v sudo >/dev/null || give_up "needed: ${missing[*]}; run as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "installing ${missing[*]}"
  [[ -n ${updated-} ]] || "${root[@]}" apt-get -qq update
  updated=yes
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Downloads one package into $partial/download with the registry's own client, and checks it.
from_pypi() { # NAME VERSION SHA256
  say "downloading $1 $2"
  python3 -m pip download -q --no-cache-dir --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -d "$partial/download" \
    -r <(echo "$1==$2 --hash=sha256:$3")
}
from_npm() { # NAME VERSION SHA256
  say "downloading $1 $2"
  local file
  file=$(npm pack --loglevel error --cache "$partial/npm" --pack-destination "$partial/download" "$1@$2")
  echo "$3  $partial/download/$file" | sha256sum --check --quiet || give_up "$1 $2 is not the package that was pinned"
}

# A whole piece appears in the cache under its name at once, or not at all: `assemble NAME` runs assemble_NAME in a new folder and moves it.
assemble() { # NAME
  [[ -d $cache/$1 ]] && return
  rm -rf "$partial" && mkdir -p "$partial/download" "$partial/result"
  "assemble_$1"
  mv -T "$partial/result" "$cache/$1"
}

assemble_3.1.23() {
  from_pypi dotnetcore2 $net31 5f076ddc39da0c685e7de20ecb91ee81185928918ec86fbeb3bffc55dd867ab5
  python3 -m zipfile -e "$partial"/download/dotnetcore2-*.whl "$partial/wheel"
  mv "$partial"/wheel/dotnetcore2/bin/* "$partial/result"
  chmod +x "$partial/result/dotnet" "$partial/result/shared/Microsoft.NETCore.App/$net31/createdump"
}

# A self-contained program of 9.0.7, its own assemblies left out and the two frameworks laid out as an installation has them.
# The muxer that finds them is that of 3.1: it only loads the newest host/fxr.
assemble_9.0.7() {
  from_npm @azure/mcp-linux-x64 0.5.8 376db4e32b7b544bb100e9660b6769000343c68863b90e3ba9cadc95860edc97
  tar -xzf "$partial"/download/azure-mcp-linux-x64-0.5.8.tgz -C "$partial"
  python3 - "$partial/package/dist" "$partial/result" $net9 <<'PYTHON'
import json, pathlib, shutil, sys
program, root, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
target = json.loads((program / "azmcp.deps.json").read_text())["targets"][".NETCoreApp,Version=v9.0/linux-x64"]
for framework in ["Microsoft.NETCore.App", "Microsoft.AspNetCore.App"]:
    pack = f"{framework}.Runtime.linux-x64/{version}"
    files = target["runtimepack." + pack]
    folder = root / "shared" / framework / version
    folder.mkdir(parents=True)
    for name in [*files.get("runtime", {}), *files.get("native", {})]:
        shutil.copy(program / name, folder)
    moniker = ".NETCoreApp,Version=v9.0"
    deps = {
        "runtimeTarget": {"name": f"{moniker}/linux-x64"},
        "targets": {moniker: {}, f"{moniker}/linux-x64": {pack: files}},
        "libraries": {pack: {"type": "package", "serviceable": True, "sha512": ""}},
    }
    (folder / f"{framework}.deps.json").write_text(json.dumps(deps))
below = {"runtimeOptions": {"tfm": "net9.0", "framework": {"name": "Microsoft.NETCore.App", "version": version}}}
(folder / "Microsoft.AspNetCore.App.runtimeconfig.json").write_text(json.dumps(below))
(root / "host/fxr" / version).mkdir(parents=True)
shutil.copy(program / "libhostfxr.so", root / "host/fxr" / version)
PYTHON
  cp "$cache/$net31/dotnet" "$partial/result/dotnet"
  chmod +x "$partial/result/shared/Microsoft.NETCore.App/$net9/createdump"
}

assemble_10.0.9() {
  from_npm @azure/mcp-linux-x64 2.0.5 59e49713045a8c78c4915a6368bfc7688e7e9032a74d1fdf6caaa24d05a4dbdb
  tar -xzf "$partial"/download/azure-mcp-linux-x64-2.0.5.tgz -C "$partial"
  mv "$partial/package/dist/azmcp" "$partial/result"
}

# Debian's compiler compiles against the assemblies of 3.1, and .NET 9 runs the result too. What only .NET 9 has is named beside them.
compile() { # RUNTIME NAME REFERENCE..
  local sources=(tests/programs/{"$2",lifeline}.cs) kind=exe
  if [[ $2 == hook ]]; then sources=(tests/programs/hook.cs) kind=library; fi
  local core=$cache/$net31/shared/Microsoft.NETCore.App/$net31 file references=()
  for file in "$core"/mscorlib.dll "$core"/System.Private.CoreLib.dll "$core"/System*.dll "${@:3}"; do
    case $file in
      "$core"/*DiagnosticSource.dll | "$core"/System.Private.[!C]*) ;;
      *) references+=("-r:$file") ;;
    esac
  done
  mcs -noconfig -nostdlib -nowarn:1702 -langversion:latest -optimize+ "${references[@]}" -target:$kind -out:"$partial/result/$1/$2.dll" "${sources[@]}"
}
runtimeconfig() { # RUNTIME NAME TFM FRAMEWORK:VERSION..
  local framework frameworks=
  for framework in "${@:4}"; do
    frameworks+=${frameworks:+,}"{\"name\":\"${framework%:*}\",\"version\":\"${framework#*:}\"}"
  done
  # Globalisation would need ICU, another package.
  echo "{\"runtimeOptions\":{\"tfm\":\"$3\",\"frameworks\":[$frameworks],\"configProperties\":{\"System.Globalization.Invariant\":true}}}" \
    >"$partial/result/$1/$2.runtimeconfig.json"
}
assemble_programs() {
  say "compiling tests/programs"
  mkdir "$partial"/result/{net31,net9}
  local name
  for name in work known parent; do
    compile net31 $name
    runtimeconfig net31 $name netcoreapp3.1 Microsoft.NETCore.App:3.1.0
    cp "$partial/result/net31/$name.dll" "$partial/result/net9"
    runtimeconfig net9 $name net9.0 Microsoft.NETCore.App:9.0.0
  done
  for name in meters store; do
    compile net9 $name "$cache/$net9/shared/Microsoft.NETCore.App/$net9/System.Diagnostics.DiagnosticSource.dll"
    runtimeconfig net9 $name net9.0 Microsoft.NETCore.App:9.0.0
  done
  compile net9 web "$cache/$net9/shared/Microsoft.AspNetCore.App/$net9"/Microsoft.*.dll
  runtimeconfig net9 web net9.0 Microsoft.NETCore.App:9.0.0 Microsoft.AspNetCore.App:9.0.0
  compile net9 hook
  cc -shared -fPIC -O1 -o "$partial/result/profiler.so" tests/programs/profiler.c
  cp -r tests/programs "$partial/result/source"
}

command -v cargo >/dev/null || give_up "cargo is missing: install a Rust toolchain with rustup (https://rustup.rs), $(grep ^rust-version Cargo.toml) or newer"
install cc
if [[ ${1-} == build ]]; then exit; fi

[[ $(uname -sm) == "Linux x86_64" ]] || give_up "the real runtimes are had for x86_64 Linux only, and this is $(uname -sm)"
install flock unshare
mkdir -p "$cache"
exec {lock}>"$cache/lock"
flock "$lock"
partial=$cache/partial
trap 'rm -rf "$partial"' EXIT

[[ -d $cache/$net31 ]] || install /etc/ssl/certs/ca-certificates.crt python3 pip
[[ -d $cache/$net9 && -d $cache/$net10 ]] || install /etc/ssl/certs/ca-certificates.crt python3 npm
assemble $net31
assemble $net9
# Programs that were compiled from other sources than these go.
if ! diff -rq tests/programs "$cache/programs/source" >/dev/null 2>&1; then
  install mcs
  rm -rf "$cache/programs"
  assemble programs
fi
assemble $net10
say "runtimes and programs are ready in $cache"
