// Program decoder writes a small language model with random weights as ONNX files, to try opmeter
// with: a decoder with caches of keys and values that grow, one with buffers of a fixed length, or
// an encoder and a decoder.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/testing/decoder"
)

// forms of pairs by the names of the flag.
var forms = map[string]decoder.Form{"merged": decoder.Merged, "separate": decoder.Separate, "crossed": decoder.Crossed}

func main() {
	c := decoder.Config{HeadSize: 64, Seed: 1}
	out := flag.String("o", "decoder.onnx", "`FILE` to write, or the folder of -pair")
	pair := flag.String("pair", "", "an encoder and a decoder: merged or separate as Optimum writes them, or crossed as ONNX Runtime GenAI does")
	flag.BoolVar(&c.Shared, "shared", false, "caches are buffers of a fixed length, written by GroupQueryAttention")
	flag.IntVar(&c.Layers, "layers", 4, "decoder layers")
	flag.IntVar(&c.Heads, "heads", 4, "heads of queries, of 64 elements each")
	flag.IntVar(&c.KVHeads, "kv-heads", 2, "heads of keys and values with -shared")
	flag.IntVar(&c.Vocabulary, "vocabulary", 2000, "number of tokens")
	flag.IntVar(&c.Context, "context", 2048, "largest number of positions")
	flag.Parse()
	c.Width = c.Heads * c.HeadSize
	c.MLP = 4 * c.Width
	if err := write(c, *out, *pair); err != nil {
		fmt.Fprintln(os.Stderr, "decoder:", err)
		os.Exit(1)
	}
}

func write(c decoder.Config, out, pair string) error {
	if pair == "" {
		return save(decoder.New(c), out, c.Layers)
	}
	form, ok := forms[pair]
	if !ok {
		return fmt.Errorf("-pair %s: use merged, separate or crossed", pair)
	}
	if err := os.MkdirAll(out, 0o700); err != nil {
		return err
	}
	p := decoder.NewPair(c, form)
	for _, m := range []*graph.Model{p.Encoder, p.Decoder, p.Start} {
		if m == nil {
			continue
		}
		if err := save(m, filepath.Join(out, m.Path), c.Layers); err != nil {
			return err
		}
	}
	name, text := decoder.Settings(c, form)
	return os.WriteFile(filepath.Join(out, name), []byte(text), 0o600)
}

func save(m *graph.Model, path string, layers int) error {
	data, err := onnx.Encode(m)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err == nil {
		fmt.Printf("wrote %s: %d layers, %.1f MiB\n", path, layers, float64(len(data))/(1<<20))
	}
	return err
}
