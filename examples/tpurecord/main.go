// Command tpurecord makes a profile folder as the runtime of a Sophgo TPU (BM1684X) writes it, so
// that the tutorial about records needs no TPU. The layers are invented; their times are simulated.
//
//	go run ./examples/tpurecord bmprofile_data-1
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/testing/tpurecords"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tpurecord FOLDER, which does not exist yet")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "tpurecord:", err)
		os.Exit(1)
	}
}

// write makes the folder with the files of one run.
func write(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, b := range tpurecords.Make(tpurecords.Options{Copies: true}).Files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
