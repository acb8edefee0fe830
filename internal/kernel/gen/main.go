// Command gen writes the assembly of internal/kernel/simd. It is a module of
// its own, so that opmeter does not depend on the assembler's library.
//
//	go run . -out ../simd
//
// Each family of loops is a file here and gives one file there. The declarations in Go
// are written by hand; go vet compares the two.
package main

import (
	stdbytes "bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// families are the files to write, by name, with what fills them.
var families = map[string]func(*asm){
	"amx":         amx,
	"avxvnni":     avxVNNI,
	"bytes":       bytes,
	"bytegroups":  byteGroups,
	"casts":       casts,
	"codetiles":   codeTiles,
	"curves":      curves,
	"sifted":      sifted,
	"singles":     singles,
	"doubles":     doubles,
	"elements":    elements,
	"floats":      floats,
	"expand":      expand,
	"extremes":    extremes,
	"fewbits":     fewBits,
	"fourbits":    fourBits,
	"lanetiles":   laneTiles,
	"minimal":     minimal,
	"pairs":       pairs,
	"parts":       parts,
	"peaks":       peaks,
	"picks":       picks,
	"places":      places,
	"pools":       pools,
	"quotients":   quotients,
	"relations":   relations,
	"repeats":     repeats,
	"resizes":     resizes,
	"rows":        rows,
	"rowsoftmax":  rowSoftmax,
	"softmaxes":   softmaxes,
	"sparse":      sparse,
	"sparsebytes": sparseBytes,
	"bytestrips":  byteStrips,
	"spreads":     spreads,
	"strips":      strips,
	"sums":        sums,
	"tables16":    tables16,
	"windows":     windows,
}

// asm is one file of assembly in the making.
type asm struct{ *build.Context }

// function begins a function of the package; sig is its signature in Go, in which a
// pointer to a type of the package is one to bytes.
func (a *asm) function(name, sig string) {
	a.Function(name)
	a.Attributes(attrs)
	a.SignatureExpr(sig)
}

func main() {
	// The assembler's library has put flags of its own into the common set.
	flags := flag.NewFlagSet("gen", flag.ExitOnError)
	out := flags.String("out", "", "folder to write to")
	_ = flags.Parse(os.Args[1:])
	for name, text := range map[string]func() string{"bytes": neonBytes, "elements": neonElements, "floats": neonFloats, "windows": neonWindows} {
		if err := os.WriteFile(filepath.Join(*out, name+"_arm64.s"), []byte(text()), 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
	for name, fill := range families {
		if err := write(filepath.Join(*out, name+"_amd64.s"), fill); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func write(path string, fill func(*asm)) error {
	ctx := build.NewContext()
	fill(&asm{ctx})
	file, err := ctx.Result()
	if err != nil {
		return err
	}
	if err := pass.Concat(pass.InstructionPass(withoutSSE), pass.Compile).Execute(file); err != nil {
		return err
	}
	p := printer.NewGoAsm(printer.Config{Name: "internal/kernel/gen", Pkg: "simd"})
	text, err := p.Print(file)
	if err != nil {
		return err
	}
	return os.WriteFile(path, stdbytes.TrimLeft(text, "\n"), 0o644)
}
