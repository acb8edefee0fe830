// Command gen writes docs/reference/counting.md from the rules of package count.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/model/count"
)

func main() {
	// go generate runs in the folder of the package.
	if err := os.WriteFile(filepath.Join("..", "..", "..", "docs", "reference", "counting.md"), count.Markdown(), 0o644); err != nil {
		log.Fatal(err)
	}
}
