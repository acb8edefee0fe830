package opmeter_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

// TestBlocks measures networks: the outermost rows of a table by block add up to the times, shares,
// operations and parameters of all layers, in each phase of a language model.
func TestBlocks(t *testing.T) {
	phases := few(&opmeter.Phases{Prompts: []int{4}, Contexts: []int{0, 8}})
	for name, c := range map[string]struct {
		m    *opmeter.Model
		o    opmeter.Options
		rows string // the first column of the outermost rows, without repetition
	}{
		"decoder":       {language(t, false), phases, "2 × block of 26 layers, embedding, head, norm, other"},
		"buffers":       {language(t, true), phases, "2 × block of 11 layers, embedding, head, norm"},
		"autoencoder":   {open(t, "autoencoder.yaml"), quick, "3 × FULLY_CONNECTED, FULLY_CONNECTED"},
		"convolutions":  {open(t, "ds_cnn.yaml"), quick, "4 × block of 2 layers, AVERAGE_POOL_2D, CONV_2D, FULLY_CONNECTED, RESHAPE, SOFTMAX"},
		"no repetition": {open(t, "resnet8.yaml"), quick, "ADD, AVERAGE_POOL_2D, CONV_2D, FULLY_CONNECTED, RESHAPE, SOFTMAX"},
	} {
		p, err := opmeter.Profile(t.Context(), c.m, c.o)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := report.Write(&out, p, "csv", report.Options{By: "block"}); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		keys := []string{"latency_s", "share", "macs", "params"}
		if p.Language != nil {
			keys = append(keys, "prefill_4_s", "decode_0_s")
		}
		sums, labels := map[string]float64{}, []string{}
		for _, line := range lines[1:] {
			if line[slices.Index(lines[0], "level")] != "0" {
				continue
			}
			labels = append(labels, line[slices.Index(lines[0], "op")])
			for _, key := range keys {
				if cell := line[slices.Index(lines[0], key)]; cell != "" {
					v, err := strconv.ParseFloat(cell, 64)
					if err != nil {
						t.Fatal(err)
					}
					sums[key] += v
				}
			}
		}
		slices.Sort(labels)
		if got := strings.Join(slices.Compact(labels), ", "); got != c.rows {
			t.Errorf("%s: rows are %s, want %s", name, got, c.rows)
		}
		for _, key := range keys {
			at := slices.IndexFunc(p.AllQuantities(), func(q profile.Quantity) bool { return q.Key == key })
			want, _ := p.Select(func(*profile.Layer) bool { return true }).SumOf(&p.AllQuantities()[at])
			if !(math.Abs(sums[key]-want) <= 1e-9*want) || !(want > 0) {
				t.Errorf("%s: %s of the rows is %v, of the layers %v", name, key, sums[key], want)
			}
		}
	}
}
