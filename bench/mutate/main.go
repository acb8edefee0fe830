// Command mutate damages real model files, to try readers and engine on bad
// input:
//
//	go run ./bench/mutate -n 1000 -out DIR [-models DIR] [-seed N]
//	opmeter summary DIR
//	opmeter profile DIR --runs 1 --warmup 0s
//
// The same seed makes the same files. Each is one model with one to three damages:
// flipped bits, a cut end, a piece of another model, a length or offset of an odd
// size. Damages prefer the parts that look like structure over weights.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/testing/material"
)

func main() {
	n := flag.Int("n", 1000, "number of files")
	out := flag.String("out", "", "folder for the files, made if absent")
	models := flag.String("models", "", "folder of the models to damage (default: the reference material's)")
	seed := flag.Uint64("seed", 1, "seed")
	flag.Parse()
	if err := run(*models, *out, *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(models, out string, n int, seed uint64) error {
	if out == "" {
		return errors.New("-out names the folder for the files")
	}
	if models == "" {
		if models = material.Dir(); models == "" {
			return errors.New("-models names a folder of models: the reference material is absent")
		}
		models = filepath.Join(models, "models")
	}
	sources, err := load(models)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for i := range n {
		name, data := mutant(sources, seed, i)
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d files of %d models in %s\n", n, len(sources), out)
	return nil
}

// source is a sound model.
type source struct {
	name string
	data []byte
}

// sizeLimit keeps a thousand files small.
const sizeLimit = 1 << 20

// load reads the models below a folder, in order of their paths.
func load(dir string) ([]source, error) {
	var out []source
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(p, ".tflite") && !strings.HasSuffix(p, ".onnx") {
			return err
		}
		if st, err := d.Info(); err != nil || st.Size() > sizeLimit || st.Size() < 64 {
			return err
		}
		b, err := os.ReadFile(p)
		out = append(out, source{filepath.Base(p), b})
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no .tflite or .onnx file of up to 1 MiB", dir)
	}
	return out, err
}

// mutant makes file number i.
func mutant(sources []source, seed uint64, i int) (name string, data []byte) {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	s := sources[r.IntN(len(sources))]
	data = append([]byte(nil), s.data...)
	var kinds []string
	for range 1 + r.IntN(3) {
		k := damages[r.IntN(len(damages))]
		data = k.apply(r, data, sources)
		kinds = append(kinds, k.name)
	}
	ext := filepath.Ext(s.name)
	return fmt.Sprintf("%04d_%s_%s%s", i, strings.TrimSuffix(s.name, ext), strings.Join(kinds, "-"), ext), data
}

type damage struct {
	name  string
	apply func(r *rand.Rand, b []byte, all []source) []byte
}

var damages = []damage{
	{"flip", flip}, {"flip", flip}, {"length", length}, {"length", length}, {"varint", varint}, {"cut", cut}, {"splice", splice},
}

// place picks an offset, best of eight by how much its surroundings look like
// structure: zeros of small integers, letters of names.
func place(r *rand.Rand, b []byte) int {
	best, score := 0, -1
	for range 8 {
		at, n := r.IntN(len(b)), 0
		for _, c := range b[max(0, at-8):min(len(b), at+8)] {
			if c == 0 || c >= '0' && c <= 'z' {
				n++
			}
		}
		if n > score {
			best, score = at, n
		}
	}
	return best
}

// flip changes one to eight bits.
func flip(r *rand.Rand, b []byte, _ []source) []byte {
	for range 1 + r.IntN(8) {
		b[place(r, b)] ^= 1 << r.IntN(8)
	}
	return b
}

// length writes an odd 32-bit figure over what may be a length or an offset.
func length(r *rand.Rand, b []byte, _ []source) []byte {
	at := place(r, b) &^ 3
	if at+4 > len(b) {
		return b
	}
	old := binary.LittleEndian.Uint32(b[at:])
	odd := []uint32{0, 1, old + 1, old - 1, old * 2, old << 16, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, uint32(len(b)), uint32(r.IntN(len(b)))}
	binary.LittleEndian.PutUint32(b[at:], odd[r.IntN(len(odd))])
	return b
}

// varint makes a variable-length integer long.
func varint(r *rand.Rand, b []byte, _ []source) []byte {
	for at, n := place(r, b), 1+r.IntN(9); n > 0 && at < len(b); at, n = at+1, n-1 {
		b[at] |= 0x80
	}
	return b
}

// cut takes the end off, leaving at least one byte.
func cut(r *rand.Rand, b []byte, _ []source) []byte { return b[:1+r.IntN(len(b))] }

// splice puts a piece of another model over a piece of this one.
func splice(r *rand.Rand, b []byte, all []source) []byte {
	o := all[r.IntN(len(all))].data
	n := 1 + r.IntN(min(256, len(o), len(b)))
	copy(b[place(r, b):], o[r.IntN(len(o)-n+1):][:n])
	return b
}
