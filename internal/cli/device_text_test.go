package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/mltkdevice"
	"github.com/opmeter/opmeter/internal/testing/tinydevice"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
)

// command runs the program.
func command(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	status = run(ctx, args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

func saved(t *testing.T, path string) *profile.Profile {
	t.Helper()
	p, err := profile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDeviceTiny(t *testing.T) {
	t.Parallel()
	model := material.Path(t, "models", "mcu", "mlperf_pretrainedResnet_quant.tflite")
	b := &tinydevice.Board{Model: "ic01", Latency: 2 * time.Millisecond, Results: "0,0,0,0,0,0,0,0,0,1"}
	address, _ := wire.TCP(t, b.Run)
	file := filepath.Join(t.TempDir(), "a.opmeter")
	status, out, errs := command(t, "device", "tiny", model, "--port", "tcp:"+address, "--window", "50ms", "-o", file)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	p := saved(t, file)
	if *p.Totals.Latency.Median != 0.002 || *p.Totals.Latency.N != 5 || len(b.Got) != 3072 || len(p.Layers) == 0 {
		t.Errorf("%+v, %d bytes of input, %d layers\n%s", p.Totals.Latency, len(b.Got), len(p.Layers), out)
	}
	compared := false
	for _, f := range p.Findings {
		compared = compared || f.ID == "tiny.top1"
	}
	if !compared {
		t.Errorf("%+v", p.Findings)
	}
	for _, bad := range [][]string{{"--port", "tcp:" + address, "--input", "none.bin"}, {}, {"--port", "tcp:127.0.0.1:1", "--timeout", "1s"}} {
		if status, _, errs := command(t, append([]string{"device", "tiny"}, bad...)...); status == 0 || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d %q", bad, status, errs)
		}
	}
}

func TestDeviceMLTK(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for the commander is a shell script")
	}
	model := material.Path(t, "models", "mltk", "keyword_spotting_on_off__34cf4f92.tflite")
	dir := t.TempDir()
	commander := filepath.Join(dir, "commander")
	script := "#!/bin/sh\necho \"$@\" >> " + dir + "/calls\nfor last; do :; done\ncase \"$*\" in\n*--address*) cp \"$last\" " + dir + "/model ;;\n*reset*) echo x >> " + dir + "/resets ;;\nesac\n"
	if err := os.WriteFile(commander, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b := &mltkdevice.Board{Name: "kws", Accelerator: "MVP", ClockHz: 78e6, RAM: 13400}
	for i, op := range []string{"CONV_2D", "CONV_2D", "CONV_2D", "MAX_POOL_2D", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX"} {
		b.Layers = append(b.Layers, mltkdevice.Layer{Op: op, Ops: 1000, MACs: 500, TimeUS: uint32(100 * (i + 1)), CPU: 2000, Accelerator: 900})
	}
	// The board prints its text after each reset.
	address, _ := wire.TCP(t, func(w io.Writer, _ io.Reader) {
		for n := 0; ; {
			r, _ := os.ReadFile(filepath.Join(dir, "resets"))
			for ; n < bytes.Count(r, []byte("x")); n++ {
				if _, err := w.Write(b.Text()); err != nil {
					return
				}
			}
			time.Sleep(10 * time.Millisecond)
			if _, err := w.Write(nil); err != nil {
				return
			}
			if _, err := os.Stat(dir); err != nil {
				return
			}
		}
	})
	file := filepath.Join(dir, "a.opmeter")
	status, out, errs := command(t, "device", "mltk", model, "--port", "tcp:"+address, "--platform", "brd2601b", "--accelerator", "mvp", "--commander", commander, "--runs", "2", "-o", file)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	p := saved(t, file)
	if len(p.Layers) != 7 || *p.Totals.Latency.N != 2 || p.Target.Accelerator != "mvp" || p.Layers[0].Provenance == nil {
		t.Errorf("%+v\n%s", p.Totals.Latency, out)
	}
	want, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "model"))
	if n := len(want); err != nil || len(got) != n+4 || !bytes.Equal(got[:n], want) || got[n] != byte(n) || got[n+1] != byte(n>>8) || got[n+2] != byte(n>>16) || got[n+3] != 0 {
		t.Errorf("%d bytes were flashed: %v", len(got), err)
	}
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	if s := string(calls); !strings.Contains(s, fmt.Sprintf("--address 0x%08X", 0x08000000+1536<<10-len(want)-4)) || strings.Count(s, "device reset") != 2 {
		t.Error(s)
	}
	// By hand.
	image := filepath.Join(dir, "kws.bin")
	status, out, errs = command(t, "device", "mltk", model, "--platform", "brd2601b", "-o", image)
	if b, err := os.ReadFile(image); status != 0 || err != nil || !bytes.Equal(b, got) || !strings.Contains(out, "0x0817") {
		t.Errorf("%d %s %s", status, out, errs)
	}
	for _, bad := range [][]string{{"--platform", "brd9999", "-o", image}, {}, {"--port", "tcp:" + address, "--commander", filepath.Join(dir, "none")}, {"--port", "x", "--part", "STM32", "--commander", commander}} {
		if status, _, errs := command(t, append([]string{"device", "mltk", model}, bad...)...); status == 0 || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d %q", bad, status, errs)
		}
	}
}
