// Program decoder writes a small language model with random weights as an ONNX file, to try opmeter
// with: a decoder with caches of keys and values that grow, or with buffers of a fixed length.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/testing/decoder"
)

func main() {
	c := decoder.Config{HeadSize: 64, Seed: 1}
	out := flag.String("o", "decoder.onnx", "`FILE` to write")
	flag.BoolVar(&c.Shared, "shared", false, "caches are buffers of a fixed length, written by GroupQueryAttention")
	flag.IntVar(&c.Layers, "layers", 4, "decoder layers")
	flag.IntVar(&c.Heads, "heads", 4, "heads of queries, of 64 elements each")
	flag.IntVar(&c.KVHeads, "kv-heads", 2, "heads of keys and values with -shared")
	flag.IntVar(&c.Vocabulary, "vocabulary", 2000, "number of tokens")
	flag.IntVar(&c.Context, "context", 2048, "largest number of positions")
	flag.Parse()
	c.Width = c.Heads * c.HeadSize
	c.MLP = 4 * c.Width
	data, err := onnx.Encode(decoder.New(c))
	if err == nil {
		err = os.WriteFile(*out, data, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "decoder:", err)
		os.Exit(1)
	}
	fmt.Printf("wrote %s: %d layers, %.1f MiB\n", *out, c.Layers, float64(len(data))/(1<<20))
}
