package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/opmeter/opmeter/internal/cli"
)

// containerFile makes an image of the program alone. It has no shell, no other user and nothing to
// write to.
const containerFile = `# docker build -t opmeter .
# docker run --rm --read-only -v "$PWD:/work" opmeter profile model.tflite
# Files written to /work need a folder that user 65532 may write, or --user "$(id -u):$(id -g)".
FROM scratch
COPY --chmod=755 opmeter /usr/bin/opmeter
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/usr/bin/opmeter"]
`

// entry is a file of a package.
type entry struct {
	name string
	data []byte
	run  bool // a program
}

// archives packs the programs of each system with the documents.
func archives(r *release) (out []entry, err error) {
	for _, system := range r.systems {
		files, err := r.programs(system, commands)
		if err != nil {
			return nil, err
		}
		name := r.archiveName(system)
		pack, ending := tarball, ".tar.gz"
		if strings.HasPrefix(system, "windows/") {
			pack, ending = zipped, ".zip"
		}
		all := append(slices.Clone(files), r.documents...)
		if strings.HasPrefix(system, "linux/") { // no other program runs in a container
			all = append(all, entry{name: "Containerfile", data: []byte(containerFile)})
		}
		data, err := pack(name, all, r.when)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: name + ending, data: data})
	}
	return out, nil
}

// archiveName is that of the archive of a system, without its ending.
func (r *release) archiveName(system string) string {
	return "opmeter-" + r.version + "-" + strings.ReplaceAll(system, "/", "-")
}

// documents are the files that every archive has; root is the repository.
func documents(root, version string) ([]entry, error) {
	var out []entry
	examples, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	if err != nil {
		return nil, err
	}
	names := []string{"LICENSE", "README.md", "CHANGELOG.md"}
	for _, e := range examples {
		names = append(names, "examples/"+filepath.Base(e))
	}
	for _, name := range names {
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
	return out, nil
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

// zipped is tarball for systems that have no tar. Without a folder, files are at the top.
func zipped(folder string, files []entry, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Join(folder, f.name), Method: zip.Deflate, Modified: when}
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
