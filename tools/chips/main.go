// Command chips makes the shipped target files again from the measurements, and the
// table of the program from the files:
//
//	go run ./tools/chips -data ../shared -out internal/estimate/chip/chips
//
// The same measurements give the same files, byte for byte. With an empty -data only
// the table is made, from the files as they are.
package main

//go:generate go run . -out ../../internal/estimate/chip/chips

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/tools/chips/study"
)

func main() {
	data := flag.String("data", shared(), "folder with data/ and models/ of the reference material; empty: only the table is made")
	out := flag.String("out", "internal/estimate/chip/chips", "folder for the target files")
	flag.Parse()
	if err := run(*data, *out); err != nil {
		fmt.Fprintln(os.Stderr, "chips:", err)
		os.Exit(1)
	}
}

// shared is where the reference material lies: OPMETER_SHARED, or beside the project.
func shared() string {
	if dir := os.Getenv("OPMETER_SHARED"); dir != "" {
		return dir
	}
	for dir := "."; len(dir) < 64; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			// go generate runs in the folder of the package
			return filepath.Join(dir, "..", "shared")
		}
	}
	return filepath.Join("..", "shared")
}

func run(data, out string) error {
	if data != "" {
		if err := files(data, out); err != nil {
			return err
		}
	}
	return table(out)
}

// table makes the table of the binary from the files.
func table(out string) error {
	names, err := filepath.Glob(filepath.Join(out, "*.yaml"))
	if err != nil {
		return err
	}
	var list []*chip.Target
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		t, err := chip.Parse(text, filepath.Base(name))
		if err != nil {
			return err
		}
		list = append(list, t)
	}
	return os.WriteFile(filepath.Clean(out)+".bin", chip.Table(list), 0o644)
}

func files(data, out string) error {
	all, err := study.LoadAll(data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	s := study.NewStudy(all, fit.Default)
	for _, t := range s.Targets() {
		if err := os.WriteFile(filepath.Join(out, t.ID+".yaml"), fit.Encode(t, study.Comment), 0o644); err != nil {
			return err
		}
		fmt.Println(t.ID)
	}
	if err := reference(s, out); err != nil {
		return err
	}
	return bands(data, out)
}

// reference puts the reference kernels into the file of the chip whose other figures
// were found by hand.
func reference(s *study.Study, out string) error {
	file := filepath.Join(out, "efr32xg24.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(study.WriteRuntime(string(text), s.Reference("cortex-m33"))), 0o644)
}

// bands puts the errors of left-out models into the file of the chip with MVP.
func bands(data, out string) error {
	file := filepath.Join(out, "efr32xg24-mvp.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	t, err := chip.Parse(text, file)
	if err != nil {
		return err
	}
	tables, err := study.LoadMVP(data, t)
	if err != nil {
		return err
	}
	fmt.Println(t.ID)
	return os.WriteFile(file, []byte(study.WriteMVP(string(text), study.MVPStudy(tables, t), t)), 0o644)
}
