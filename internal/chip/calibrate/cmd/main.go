// Command cmd makes the shipped target files again from the measurements:
//
//	go run ./internal/chip/calibrate/cmd -data ../shared -out internal/chip/chips
//
// The same tables give the same files, byte for byte.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/calibrate"
)

func main() {
	data := flag.String("data", "../shared", "folder with data/mcu_measured.csv, data/mcu_measured_layers.csv and models/")
	out := flag.String("out", "internal/chip/chips", "folder for the target files")
	flag.Parse()
	if err := run(*data, *out); err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		os.Exit(1)
	}
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
	all, err := calibrate.LoadAll(data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	study := calibrate.NewStudy(all, calibrate.Default)
	for _, t := range study.Targets() {
		if err := os.WriteFile(filepath.Join(out, t.ID+".yaml"), calibrate.Encode(t, calibrate.Comment), 0o644); err != nil {
			return err
		}
		fmt.Println(t.ID)
	}
	if err := reference(study, out); err != nil {
		return err
	}
	return bands(data, out)
}

// reference puts the reference kernels into the file of the chip whose other figures
// were found by hand.
func reference(study *calibrate.Study, out string) error {
	file := filepath.Join(out, "efr32xg24.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(calibrate.WriteRuntime(string(text), study.Reference("cortex-m33"))), 0o644)
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
	tables, err := calibrate.LoadMVP(data, t)
	if err != nil {
		return err
	}
	fmt.Println(t.ID)
	return os.WriteFile(file, []byte(calibrate.WriteMVP(string(text), calibrate.MVPStudy(tables, t), t)), 0o644)
}
