// Command release makes the files of a release: an archive for each system with the
// programs, their manual and its completions, a container file, and checksums of all. The
// same commit gives the same bytes on every machine with the same Go. docs/howto/release.md
// explains it.
//
//	go run ./tools/release -o dist
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/cli"
)

// systems are those with an archive.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64", "freebsd/amd64"}

// programs are those of an archive: the second one opens external engines for the first.
var programs = []string{"opmeter", "opmeter-engine"}

// containerFile makes an image of the program alone.
const containerFile = `# The program needs nothing beside it. Models come in as a volume:
#   podman run --rm -v "$PWD:/work:ro" opmeter profile model.tflite
FROM scratch
COPY opmeter /opmeter
WORKDIR /work
ENTRYPOINT ["/opmeter"]
`

// entry is a file of an archive.
type entry struct {
	name string
	data []byte
	run  bool // a program
}

func main() {
	out := flag.String("o", "dist", "folder for the files, made if absent")
	version := flag.String("version", "", "version in the names (default: what git describe says)")
	only := flag.String("systems", strings.Join(systems, ","), "systems to build for")
	flag.Parse()
	if err := release(*out, *version, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(out, version string, list []string) error {
	when, err := commitTime()
	if err != nil {
		return err
	}
	if version == "" {
		if version, err = git("describe", "--tags", "--always", "--dirty"); err != nil {
			return err
		}
	}
	common, err := documents(".", version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums []string
	write := func(name string, data []byte) error {
		sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name))
		fmt.Printf("%s, %d bytes\n", name, len(data))
		return os.WriteFile(filepath.Join(out, name), data, 0o644)
	}
	for _, system := range list {
		var files []entry
		for _, p := range programs {
			data, err := build(p, system)
			if err != nil {
				return err
			}
			files = append(files, entry{programName(p, system), data, true})
		}
		name := "opmeter-" + version + "-" + strings.ReplaceAll(system, "/", "-")
		files = append(files, common...)
		pack, ending := tarball, ".tar.gz"
		if strings.HasPrefix(system, "windows/") {
			pack, ending = zipped, ".zip"
		}
		data, err := pack(name, files, when)
		if err != nil {
			return err
		}
		if err := write(name+ending, data); err != nil {
			return err
		}
	}
	slices.Sort(sums)
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644)
}

func programName(program, system string) string {
	if strings.HasPrefix(system, "windows/") {
		return program + ".exe"
	}
	return program
}

// build compiles a program without anything of the machine that does it.
func build(program, system string) ([]byte, error) {
	goos, arch, ok := strings.Cut(system, "/")
	if !ok {
		return nil, fmt.Errorf("system %q: write it as linux/amd64", system)
	}
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, programName(program, system))
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", bin, "./cmd/"+program)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0")
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("build for %s: %w", system, err)
	}
	return os.ReadFile(bin)
}

// documents are the files that every archive has; root is the repository.
func documents(root, version string) ([]entry, error) {
	var out []entry
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: name, data: data})
	}
	for _, p := range cli.Manual(version) {
		out = append(out, entry{name: "man/man1/" + p.Name, data: p.Text})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var b bytes.Buffer
		if err := cli.Completion(&b, shell); err != nil {
			return nil, err
		}
		out = append(out, entry{name: "completions/opmeter." + shell, data: b.Bytes()})
	}
	return append(out, entry{name: "Containerfile", data: []byte(containerFile)}), nil
}

// tarball packs files below a folder, all of them as old as the commit.
func tarball(folder string, files []entry, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: folder + "/" + f.name, Mode: mode(f), Size: int64(len(f.data)), ModTime: when, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	err = errors.Join(t.Close(), z.Close())
	return b.Bytes(), err
}

// zipped is tarball for systems that have no tar.
func zipped(folder string, files []entry, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: when}
		h.SetMode(os.FileMode(mode(f)))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, bytes.NewReader(f.data)); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

func mode(f entry) int64 {
	if f.run {
		return 0o755
	}
	return 0o644
}

// commitTime is the time of the commit that is built, or SOURCE_DATE_EPOCH.
func commitTime() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		var err error
		if s, err = git("log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the commit: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
