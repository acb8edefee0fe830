package vela_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/vela"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func path(t *testing.T, name string) string {
	t.Helper()
	return material.Path(t, "raw", "traces", "vela", name)
}

func total(p *profile.Profile, key string) float64 { v, _ := p.Totals.Value(key); return v }

// TestLayers adds up the columns of the files once more.
func TestLayers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cnn_per-layer.csv", "two_npu_subgraphs_repeated_header_per-layer.csv"} {
		f, err := os.Open(path(t, name))
		if err != nil {
			t.Fatal(err)
		}
		r := csv.NewReader(f)
		r.FieldsPerRecord = -1
		all, err := r.ReadAll()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		var cycles, npu, macs float64
		n := 0
		for _, row := range all {
			if row[0] == "TFLite_operator" {
				continue
			}
			n++
			for i, to := range map[int]*float64{4: &cycles, 6: &npu, 11: &macs} {
				v, _ := strconv.ParseFloat(row[i], 64)
				*to += v
			}
		}
		p := records.Read(t, vela.Format(), records.Files(t, path(t, name)), record.Options{Clocks: map[string]float64{"": 5e8}})[0]
		if len(p.Layers) != n || total(p, "accelerator_cycles") != cycles || total(p, "npu_cycles") != npu || float64(*p.Totals.MACs) != macs {
			t.Errorf("%s: %d layers, %g cycles, %g, %d; want %d, %g, %g, %g", name, len(p.Layers), total(p, "accelerator_cycles"), total(p, "npu_cycles"), *p.Totals.MACs, n, cycles, npu, macs)
		}
		if got := total(p, "latency_s"); math.Abs(got-cycles/5e8) > 1e-15 {
			t.Errorf("%s: %g s", name, got)
		}
		l := &p.Layers[1]
		a, _ := l.Value("recorded_share")
		b, _ := l.Value("recorded_mac_share")
		if l.Option("bound") != "sram" || p.Layers[0].Option("bound") != "npu" || math.Abs(a-.0722147132651091) > 1e-12 || math.Abs(b-.00819252432155658) > 1e-12 {
			t.Errorf("%s: %+v: %g and %g", name, l.Options, a, b)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	p := records.Read(t, vela.Format(), records.Files(t, path(t, "person_detect_int8_summary_Ethos_U85_256.csv")), record.Options{})[0]
	for key, want := range map[string]float64{
		"latency_s": 0.000181758, "accelerator_cycles": 181758, "npu_cycles": 136025, "dram_access_cycles": 150119, "macs": 7077252,
		"sram_memory_used_bytes": 74480, "dram_memory_used_bytes": 243504, "arena_cache_bytes": 384 << 10, "inferences_per_s": 5501.821102785022,
		"dram_total_bytes": 323072, "total_npu_encoded_weights_bytes": 205472, "sram_bandwidth_bytes_per_s": 32e9, "dram_bandwidth_bytes_per_s": 12e9,
	} {
		// bandwidths are printed with as many digits
		if v := total(p, key); math.Abs(v-want) > 1e-6*want {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
	if *p.Target.ClockHz != 1e9 || p.Model.Name != "person_detect_int8" || p.Target.Description != "Ethos_U85_256" {
		t.Errorf("%+v", p.Target)
	}
}

func TestPrinted(t *testing.T) {
	t.Parallel()
	ps := records.Read(t, vela.Format(), records.Files(t, path(t, "vela_summary_console_readme.md")), record.Options{})
	if len(ps) != 1 {
		t.Fatalf("%d runs", len(ps))
	}
	p := ps[0]
	for key, want := range map[string]float64{"latency_s": 0.23e-3, "accelerator_cycles": 114098, "npu_cycles": 21298, "macs": 86952, "npu_operators": 44, "total_sram_used_bytes": .95 * 1024, "weight_off_chip_flash_bandwidth_bytes": 0.09e6, "inferences_per_s": 4382.18} {
		if v := total(p, key); math.Abs(v-want) > 1e-9*want {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
	if *p.Target.ClockHz != 5e8 {
		t.Errorf("%+v", p.Target)
	}
}

// TestProse: a document has other tables around a summary, which are not figures of it.
func TestProse(t *testing.T) {
	t.Parallel()
	text := "Network summary for net\nAccelerator clock       500 MHz\nTotal SRAM used      0.95 KiB\nAdd / add_1         5.89\nNPU operators = 44 (97.8%)\nBatch Inference time     0.23 ms, 4382.18 inferences/s (batch size 1)\n" +
		"\n## Per layer\n\nConv2D / conv_629616      86.18\nSplit time     3 ms\n"
	p := records.Read(t, vela.Format(), []*record.File{record.Bytes("PERFORMANCE.md", []byte(text))}, record.Options{})[0]
	for key := range p.Totals.Figures {
		if strings.Contains(key, "add") || strings.Contains(key, "conv") || strings.Contains(key, "split") {
			t.Errorf("%s is not a figure of the summary", key)
		}
	}
	if total(p, "npu_operators") != 44 || total(p, "total_sram_used_bytes") != .95*1024 {
		t.Errorf("%+v", p.Totals.Figures)
	}
}

// TestTwice: the table of another estimate of the network is not a further part of it.
func TestTwice(t *testing.T) {
	t.Parallel()
	head := "TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Network%,Util%,Name\n"
	row := func(name string, cycles, share int) string {
		return fmt.Sprintf("CONV_2D,Conv2D,10,50,%d,%d,900,1000,0,0,0,5,100,1,%s\n", cycles, share, name)
	}
	text := head + row("a", 100, 57) + row("b", 50, 29) + head + row("c", 25, 14) + head + row("a", 300, 80) + row("b", 50, 13) + head + row("c", 25, 7)
	ps := records.Read(t, vela.Format(), []*record.File{record.Bytes("n_per-layer.csv", []byte(text))}, record.Options{Clocks: map[string]float64{"": 1e6}})
	if len(ps) != 2 || len(ps[0].Layers) != 3 || len(ps[1].Layers) != 3 {
		t.Fatalf("%d runs", len(ps))
	}
	for i, want := range []float64{175e-6, 375e-6} {
		s := 0.0
		for _, l := range ps[i].Layers {
			v, _ := l.Latency.Best()
			s += v
		}
		if math.Abs(s-want) > 1e-12 {
			t.Errorf("estimate %d: %g s, want %g", i, s, want)
		}
	}
}

// TestNotFinite: figures that are not numbers are absent, and counted.
func TestNotFinite(t *testing.T) {
	t.Parallel()
	head := "TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Network%,Util%,Name\n"
	p := records.Read(t, vela.Format(), []*record.File{record.Bytes("n_per-layer.csv", []byte(head+"CONV_2D,Conv2D,10,50,1e400,inf,900,1000,0,0,0,5,100,nan,a\nADD,Add,10,50,10,1,9,10,0,0,0,0,0,nan,b\n"))}, record.Options{})[0]
	if len(p.Incomplete) != 1 || *p.Incomplete[0].Want != 3 {
		t.Errorf("%+v", p.Incomplete)
	}
	if _, ok := p.Layers[0].Value("accelerator_cycles"); ok {
		t.Error("1e400 is a figure")
	}
}

// TestTraps: both files of a network, nothing on the NPU, older columns, a name with a comma.
func TestTraps(t *testing.T) {
	t.Parallel()
	head := "TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Network%,Util%,Name\n"
	ps := records.Read(t, vela.Format(), []*record.File{
		record.Bytes("net_per-layer.csv", []byte(head+"CONV_2D,Conv2D,10,50,1000,100,900,1000,0,0,0,5,100,nan,a,b\n"+head)),
		record.Bytes("net_summary_x.csv", []byte("experiment,network,accelerator_configuration,core_clock,arena_cache_size,inference_time,nn_macs,cycles_npu,sram_bandwidth\ndefault,net,Ethos_U55_128,500000000.0,393216,nan,5,1000.0,4.0\n")),
	}, record.Options{})
	if len(ps) != 1 || len(ps[0].Layers) != 1 {
		t.Fatalf("%d runs", len(ps))
	}
	p := ps[0]
	if v, _ := p.Layers[0].Latency.Best(); v != 2e-6 || p.Layers[0].Name != "a,b" || total(p, "arena_cache_bytes") != 393216 || total(p, "sram_bandwidth_bytes_per_s") != 4e9 {
		t.Errorf("%+v %g", p.Layers[0], total(p, "sram_bandwidth_bytes_per_s"))
	}
	if p.Layers[0].Figure("mac_utilisation") != nil {
		t.Error("nan is not a figure")
	}
	if _, err := vela.Format().Read(t.Context(), &record.Input{Files: []*record.File{record.Bytes("x_per-layer.csv", []byte(head))}}); err == nil || !strings.Contains(err.Error(), "x_per-layer.csv") {
		t.Errorf("a table without rows: %v", err)
	}
}

func FuzzVela(f *testing.F) {
	f.Add([]byte("TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Network%,Util%,Name\nCONV_2D,Conv2D,10,50,1000,100,900,1000,0,0,0,5,100,nan,a\n"))
	f.Add([]byte("experiment,network,accelerator_configuration,core_clock,arena_cache_size,inference_time,x_bandwidth\nd,n,a,5e8,384.0,1,29.8\n"))
	f.Add([]byte("Network summary for n\nAccelerator clock       500 MHz\nTotal SRAM used      0.95 KiB\nCPU operators = 0 (0.0%)\nBatch Inference time     0.23 ms, 4382.18 inferences/s (batch size 1)\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, vela.Format(), "a_per-layer.csv", b) })
}
