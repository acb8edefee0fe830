// Command performance writes docs/performance.md from the files in bench/results.
//
//	go run ./bench/performance [-o FILE]
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/opmeter/opmeter/bench/results"
)

func main() {
	out := flag.String("o", "docs/performance.md", "page to write")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

func write(name string) error {
	tables, err := results.Load()
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(results.Render(tables)), 0o644)
}
