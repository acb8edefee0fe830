#!/usr/bin/env bash
# Install opmeter for the steps that follow: a release archive whose checksum is right, or a build
# of this commit.
#
#   VERSION   release, such as v1.2.3, or "source"
#   RELEASES  address of the folder with one folder for each release
set -euo pipefail

fail() {
	echo "install.sh: $*" >&2
	exit 2
}

work="$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/opmeter.XXXXXX")"
bin="$work/bin"
mkdir "$bin"

# build compiles the commit that has this script.
build() {
	(cd "$(dirname "$0")/.." && CGO_ENABLED=0 go build -o "$bin/" ./cmd/opmeter)
}

# release downloads an archive, checks it and unpacks the programs.
release() {
	case "$VERSION" in
	"" | -* | *..* | *[!0-9A-Za-z.+_-]*) fail "version \"$VERSION\": expected a release such as v1.2.3, or source" ;;
	esac
	case "$(uname -s)" in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	MINGW* | MSYS* | CYGWIN*) system=windows ;;
	FreeBSD) system=freebsd ;;
	*) fail "no archive for $(uname -s): use the version source" ;;
	esac
	case "$(uname -m)" in
	x86_64 | amd64) system="$system-amd64" ;;
	arm64 | aarch64) system="$system-arm64" ;;
	*) fail "no archive for $(uname -m): use the version source" ;;
	esac
	name="opmeter-$VERSION-$system"
	archive="$name.tar.gz"
	case "$system" in windows-*) archive="$name.zip" ;; esac
	for file in "$archive" SHA256SUMS; do
		curl --fail --silent --show-error --location --retry 3 --output "$work/$file" "$RELEASES/$VERSION/$file" ||
			fail "$RELEASES/$VERSION/$file: not available: check the version"
	done
	(
		cd "$work"
		awk -v name="$archive" '$2 == name' SHA256SUMS >sum
		[ -s sum ] || fail "SHA256SUMS has no line for $archive"
		if command -v sha256sum >/dev/null; then sha256sum -c sum; else shasum -a 256 -c sum; fi
	) >&2 || fail "$archive: the checksum is wrong: the file is damaged or was exchanged"
	case "$archive" in
	*.zip) unzip -q "$work/$archive" -d "$work" ;;
	*) tar -xzf "$work/$archive" -C "$work" ;;
	esac
	find "$work/$name" -maxdepth 1 -type f -name 'opmeter*' -exec mv {} "$bin/" \;
}

if [ "$VERSION" = source ]; then build; else release; fi
"$bin/opmeter" version
echo "$bin" >>"${GITHUB_PATH:-/dev/null}"
