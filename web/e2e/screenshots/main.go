// Command screenshots shows the page of several kinds of profile as a person would see it: every
// view in both themes on a wide and on a narrow screen, one PNG each.
//
//	cd web/e2e
//	go run ./screenshots -o DIR [-only deep] [-views graph,memory] [-themes dark] [-widths 390]
//
// The profiles are made on the way and kept in DIR beside their pages, so that a second course
// shows the same figures. Models that are not part of this repository are left out where the
// reference material is absent.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/web/e2e/browser"
)

// deep is a network of 700 blocks.
const deep = `name: deep
type: int8
input: {name: image, shape: [1, 8, 8, 8]}
layers:
  - {op: conv, filters: 8, kernel: 3, activation: relu}
  - repeat: 700
    layers:
      - {op: depthwise, kernel: 3, activation: relu}
      - {op: conv, filters: 8, kernel: 1}
      - {op: add, from: [block, prev], activation: relu}
  - {op: dense, units: 4}
`

// subject is a profile to look at.
type subject struct {
	name string
	// model is a file of the repository or, with material before it, of the reference material.
	model string
	args  []string
	// inputs are those that a random number would not do for.
	inputs map[string]int64
	// record is a file or folder to import instead, and model goes with it.
	record string
	// make makes the profile in a way of its own, in a file beside others of the folder.
	make func(dir, kept string) error
	// beside are the options of a second profile, which the page compares with the first one.
	beside []string
	// busy keeps all processors occupied meanwhile.
	busy bool
}

var subjects = []subject{
	// The screenshot of the README, which is kept in docs/images/summary.png:
	//	go run ./screenshots -o DIR -only readme -views summary -themes light -widths 1080 -height 727
	{name: "readme", model: "examples/mobilenet_v1.yaml", args: []string{"--time", "3s"}},
	{name: "small", model: "examples/ds_cnn.yaml", args: []string{"--time", "3s"}},
	{name: "layers", model: "material/models/real/litert_torchaudio_conformer.tflite", args: []string{"--runs", "40"}},
	{name: "deep", model: "deep", args: []string{"--runs", "20"}},
	{name: "flow", model: "material/models/real/silero_vad.onnx", args: []string{"--runs", "50", "--shape", "input=1x512"}, inputs: map[string]int64{"sr": 16000}},
	{name: "estimate", model: "examples/ds_cnn.yaml", args: []string{"--on", "stm32l4r5"}},
	{name: "accelerator", model: "examples/ds_cnn.yaml", args: []string{"--on", "efr32xg24-mvp"}},
	{name: "record", record: "material/raw/traces/ort/silero_vad_subgraphs_t1_50runs.json.gz", model: "material/models/real/silero_vad.onnx"},
	{name: "trace", record: "material/raw/traces/ort/ssd_mobilenet_v1_025_t2_parallel_60runs.json.gz"},
	{name: "tpu", record: "material/raw/bmprofile/bmprofile_data-1_bm1688_2core"},
	{name: "steps", record: "material/raw/traces/pytorch/resnet50_workers0_a.pt.trace.json.gz"},
	{name: "functions", record: "material/raw/traces/pprof/gobench.cpu.pb"},
	{name: "streams", model: "examples/ds_cnn.yaml", args: []string{"--streams", "2", "--cold=start", "--time", "1s"}},
	{name: "rate", model: "examples/ds_cnn.yaml", args: []string{"--streams", "2", "--rate", "200/s", "--cold", "--time", "1s"}},
	{name: "instances", make: instances},
	{name: "stages", make: stages},
	{name: "compared", model: "examples/ds_cnn.yaml", args: []string{"--time", "1s"}, beside: []string{"--threads", "2", "--time", "1s"}},
	{name: "disturbed", model: "examples/ds_cnn.yaml", args: []string{"--runs", "6"}, busy: true},
}

// tall is the height of screenshots, 0 for that of a screen.
var tall int

func main() {
	dir := flag.String("o", "", "folder for pages and screenshots")
	only := flag.String("only", "", "names of the profiles to show, separated by commas; empty for all")
	views := flag.String("views", "summary,layers,timeline,memory,roofline,distribution,graph,estimate", "views to show, each with parameters of the address where there are some")
	themes := flag.String("themes", "light,dark", "themes")
	widths := flag.String("widths", "1280,390", "widths in pixels")
	flag.IntVar(&tall, "height", 0, "height in pixels, to see more of a page at once (default that of a screen)")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "-o names no folder")
		os.Exit(2)
	}
	if err := run(*dir, *only, split(*views), split(*themes), split(*widths)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func split(s string) []string { return strings.Split(s, ",") }

func run(dir, only string, views, themes, widths []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := browser.Start()
	if err != nil {
		return err
	}
	defer b.Close()
	for _, s := range subjects {
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		page, err := write(dir, s)
		if err != nil {
			return err
		}
		if page == "" {
			fmt.Println(s.name, "is left out: its model is absent")
			continue
		}
		for _, w := range widths {
			for _, theme := range themes {
				shown := views
				if s.beside != nil {
					shown = []string{"summary", "summary?tab=layers&row=1", "summary?tab=graph"}
				}
				if err := look(b, dir, page, s.name, shown, theme, w); err != nil {
					return fmt.Errorf("%s, %s, %s pixels: %w", s.name, theme, w, err)
				}
			}
		}
	}
	return nil
}

// write makes the page of a profile, "" where the model is absent.
func write(dir string, s subject) (string, error) {
	kept, page := filepath.Join(dir, s.name+".opmeter"), filepath.Join(dir, s.name+".html")
	if s.make != nil {
		if !exists(kept) {
			if err := s.make(dir, kept); err != nil {
				return "", err
			}
		}
		return page, command("report", kept, "-o", page, "--open=false")
	}
	if _, err := os.Stat(kept); err != nil {
		if s.record != "" {
			return imported(s, kept, page)
		}
		model := place(s.model)
		if model == "" {
			return "", nil
		}
		if s.model == "deep" {
			model = filepath.Join(dir, "deep.yaml")
			if err := os.WriteFile(model, []byte(deep), 0o644); err != nil {
				return "", err
			}
		}
		ctx, stop := context.WithCancel(context.Background())
		if s.busy {
			for range 8 {
				go occupy(ctx)
			}
		}
		args := append([]string{"profile", model, "-o", kept}, s.args...)
		for name, v := range s.inputs {
			file := filepath.Join(dir, s.name+"-"+name+".npy")
			if err := npy.WriteFile(file, tensor.From(tensor.Int64, nil, []int64{v})); err != nil {
				stop()
				return "", err
			}
			args = append(args, "--input", name+"="+file)
		}
		err := command(args...)
		stop()
		if err != nil {
			return "", err
		}
	}
	if s.beside != nil {
		other := filepath.Join(dir, s.name+"-beside.opmeter")
		if !exists(other) {
			if err := command(append([]string{"profile", place(s.model), "-o", other}, s.beside...)...); err != nil {
				return "", err
			}
		}
		return page, command("compare", kept, other, "-o", page)
	}
	return page, command("report", kept, "-o", page, "--open=false")
}

// instances makes a profile of four instances that run at the same time. The files of the Neural
// Engine's profiler come with it, into the folder where the command runs.
func instances(dir, kept string) error {
	model := place("examples/ds_cnn.yaml")
	back, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	defer func() { _ = os.Chdir(back) }()
	return command("run", model, "--runs", "10", "--instances", "4", "--output", filepath.Join(dir, "out"), "--profile", kept)
}

// stages makes a profile of an application that marks its stages.
func stages(dir, kept string) error {
	program := filepath.Join(dir, "pipeline")
	c := exec.Command("go", "build", "-o", program, "./examples/marks")
	c.Dir, c.Stderr = material.Root(), os.Stderr
	if err := c.Run(); err != nil {
		return err
	}
	return command("trace", "-o", kept, "--", program, "-frames", "20", "-model", place("examples/resnet8.yaml"))
}

// place is where a file of the repository or the material is, "" where it is absent.
func place(name string) string {
	if rest, ok := strings.CutPrefix(name, "material/"); ok {
		file := filepath.Join(material.Dir(), filepath.FromSlash(rest))
		if !exists(file) {
			return ""
		}
		return file
	}
	return filepath.Join(material.Root(), filepath.FromSlash(name))
}

// imported makes the page of another tool's record.
func imported(s subject, kept, page string) (string, error) {
	args := []string{"import", place(s.record), "-o", kept}
	if args[1] == "" {
		return "", nil
	}
	if s.model != "" {
		args = append(args, "--model", place(s.model))
	}
	if err := command(args...); err != nil {
		return "", err
	}
	return page, command("report", kept, "-o", page, "--open=false")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// occupy takes processor time until it is told to stop, on and off, as other programs do.
func occupy(ctx context.Context) {
	for x := 1; ctx.Err() == nil; {
		for end := time.Now().Add(30 * time.Millisecond); time.Now().Before(end); {
			x = x*31 + 7
		}
		time.Sleep(time.Duration(5+x&15) * time.Millisecond)
	}
}

func command(args ...string) error {
	var out strings.Builder
	if code := cli.Main(args, strings.NewReader(""), &out, &out); code != 0 {
		return fmt.Errorf("opmeter %s: exit status %d: %s", strings.Join(args, " "), code, out.String())
	}
	return nil
}

func look(b *browser.Browser, dir, page, name string, views []string, theme, width string) error {
	w, err := strconv.Atoi(width)
	if err != nil {
		return err
	}
	height := 900
	if w < 600 {
		height = 844
	}
	if tall > 0 {
		height = tall
	}
	tab, err := b.Open(w, height)
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := tab.Media("screen", theme); err != nil {
		return err
	}
	address, err := browser.FileURL(page)
	if err != nil {
		return err
	}
	for _, view := range views {
		if err := tab.Goto("about:blank"); err != nil {
			return err
		}
		const there = `document.querySelector("main h2")`
		if err := tab.Goto(address + "#/" + view); err != nil {
			return err
		}
		if err := tab.Wait(there); err != nil {
			return err
		}
		// Charts of many bars come after their frame.
		if _, err := browser.Eval[bool](tab, `new Promise((done) => setTimeout(() => done(true), 700))`); err != nil {
			return err
		}
		screenshot, err := tab.Screenshot()
		if err != nil {
			return err
		}
		file := strings.NewReplacer("?", "-", "&", "-", "=", "_", "/", "_").Replace(fmt.Sprintf("%s-%s-%s-%s.png", name, view, theme, width))
		if err := os.WriteFile(filepath.Join(dir, file), screenshot, 0o644); err != nil {
			return err
		}
		for _, p := range tab.Problems() {
			fmt.Printf("%s: the browser complains: %s\n", file, p)
		}
	}
	return nil
}
