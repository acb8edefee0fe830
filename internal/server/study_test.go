package server

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/work"
)

// standInCompress answers as opmeter compress does. A study is the list of what was done with it.
func standInCompress(args []string, output string) int {
	study := ""
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "--study="); ok {
			study = v
		}
	}
	note := func(text string) {
		f, err := os.OpenFile(study, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.WriteString(text + "\n")
			_ = f.Close()
		}
	}
	switch args[0] {
	case "show":
		text, err := os.ReadFile(args[1])
		if err != nil {
			text, err = os.ReadFile(args[len(args)-1])
		}
		if err != nil {
			return 1
		}
		if bytes.HasSuffix(text, []byte("cut")) {
			fmt.Fprintf(os.Stderr, "opmeter: %s: the last 3 bytes are cut off\n", args[1])
		}
		if strings.HasSuffix(output, ".json") {
			text = fmt.Appendf(nil, `{"model":{"name":"net"},"speeds":[{"target":"host","threads":2}],"plans":[{"name":"p","predicted":{"weight_bytes":10},`+
				`"measured":{"speedup":{"kind":"measured","median":%d,"ci95":[1,9]}}}]}`, strings.Count(string(text), "\n"))
		}
		_ = os.WriteFile(output, text, 0o600)
	case "import":
		note("import " + filepath.Base(args[2]))
	case "apply":
		_ = os.WriteFile(output, []byte("smaller"), 0o600)
		note("apply")
	case "bench":
		note("bench " + strings.Join(args[3:], " "))
	default:
		note("compress " + strings.Join(args[2:], " "))
	}
	return 0
}

// What of a study could not be read is a note of its run.
func TestDamagedStudy(t *testing.T) {
	t.Parallel()
	c := start(t)
	study := func(text string) runView {
		return c.finished(text, func(b *jobBody) {
			b.Kind, b.Inputs[0].Name, b.Labels.Note = work.Saved, "net.study", "kept"
		})
	}
	if r := study("whole\n"); r.Note != "kept" {
		t.Errorf("note %q", r.Note)
	}
	if r := study("whole\ncut"); r.Note != "kept\nthe last 3 bytes are cut off" {
		t.Errorf("note %q", r.Note)
	}
}

func TestStudyJobs(t *testing.T) {
	t.Parallel()
	c := start(t)
	first := c.finished("model", func(b *jobBody) {
		b.Kind, b.Options = work.Compress, map[string]string{"speedup": "2", "shape": "a=1x2,b=3"}
		b.Inputs = append(b.Inputs, inputBody{Name: "x.npy", Hash: c.upload("samples"), As: "data"})
	})
	if a := first.About; a.Kind != work.KindStudy || a.Model != "net" || a.Target != "host" || a.Engine != "opmeter" || a.Settings != "threads=2" {
		t.Errorf("series %+v", a)
	}
	if len(first.Figures) != 2 || first.Figures[1].Name != "speedup" || first.Figures[1].Value != 1 || *first.Figures[1].High != 9 || first.ModelFile != "net.onnx" {
		t.Errorf("run %+v", first)
	}
	status, body, h := c.send("GET", "/runs/"+first.ID+"/profile", nil)
	if status != 200 || !strings.Contains(body, "--shape=a=1x2 --shape=b=3 --speedup=2 --data=") || !strings.Contains(h.Get("Content-Disposition"), ".study") {
		t.Errorf("study %d %q %v", status, body, h)
	}
	// The next jobs go on with the study, each in a run of its own.
	next := func(b *jobBody, kind string, more ...inputBody) {
		b.Kind = kind
		b.Inputs = append(b.Inputs, append([]inputBody{{Name: "s.study", Hash: first.Blob, As: "study"}}, more...)...)
	}
	second := c.finished("model", func(b *jobBody) {
		next(b, work.Apply, inputBody{Name: "plan.json", Hash: c.upload(`{"changes":[]}`), As: "plan"})
	})
	status, body, h = c.send("GET", "/runs/"+second.ID+"/model", nil)
	if status != 200 || body != "smaller" || !strings.Contains(h.Get("Content-Disposition"), `"net-compressed.onnx"`) || second.Series != first.Series {
		t.Errorf("model %d %q %v", status, body, h)
	}
	if status, _, _ := c.send("GET", "/runs/"+first.ID+"/model", nil); status != http.StatusNotFound {
		t.Errorf("a run without a model answers %d", status)
	}
	third := c.finished("model", func(b *jobBody) { next(b, work.Bench); b.Options = map[string]string{"threads": "2"} })
	if _, body, _ := c.send("GET", "/runs/"+third.ID+"/report?as=.txt", nil); !strings.HasSuffix(body, "\nbench --threads=2\n") {
		t.Errorf("report %q", body)
	}
	if status, body, _ := c.send("GET", "/compare/page?runs="+first.ID+","+second.ID, nil); status != http.StatusUnprocessableEntity {
		t.Errorf("comparison of studies %d %s", status, body)
	}
	if status, body, _ := c.send("GET", "/runs/"+first.ID+"/report?as=.pftrace", nil); status != http.StatusBadRequest || !strings.Contains(body, ".xlsx") {
		t.Errorf("a format that studies do not have: %d %s", status, body)
	}
	// A study that was saved elsewhere opens as one, too.
	saved := c.finished("one\ntwo\n", func(b *jobBody) { b.Kind, b.Inputs[0].Name = work.Saved, "Mine.STUDY" })
	if saved.About.Kind != work.KindStudy || saved.Figures[1].Value != 2 || saved.ModelFile != "" {
		t.Errorf("saved study %+v", saved)
	}
}

// Options fit the kind of a job and the place that its figures come from.
func TestOptionPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind    string
		options map[string]string
		err     string
		needs   queue.Needs
	}{
		{work.Profile, map[string]string{"threads": "2", "engine": "litert"}, "", queue.Needs{Target: "host", Engine: "litert"}},
		{work.Profile, map[string]string{"engine": "nope"}, `"nope": no such name: expected auto, opmeter, onnxruntime`, queue.Needs{}},
		{work.Profile, map[string]string{"engine": "opmeter,nope"}, `option engine "nope"`, queue.Needs{}},
		{work.Profile, map[string]string{"engine": "opmeter,onnxruntime"}, "", queue.Needs{Target: "host"}},
		{work.Profile, map[string]string{"on": "device:COM3", "clock": "64MHz"}, "", queue.Needs{Target: "board", Board: "COM3"}},
		{work.Profile, map[string]string{"on": "m4", "batch": "2"}, "", queue.Needs{Target: "file"}},
		{work.Profile, map[string]string{"accelerator": "mvp"}, "", queue.Needs{Target: "file"}},
		{work.Profile, map[string]string{"accelerator": "mvp", "on": "m4"}, "one of both", queue.Needs{}},
		{work.Profile, map[string]string{"accelerator": "gpu"}, "mvp, cmsis or none", queue.Needs{}},
		{work.Profile, map[string]string{"on": "m4", "threads": "2"}, "option threads: it is for computer, and the job is for chip", queue.Needs{}},
		{work.Profile, map[string]string{"clock": "64MHz"}, "it is for board chip", queue.Needs{}},
		{work.Profile, map[string]string{"shape": "a=1x2,../b=1"}, "NAME=DIMS", queue.Needs{}},
		{work.Profile, map[string]string{"speedup": "2"}, "knows on, accelerator", queue.Needs{}},
		{work.Import, map[string]string{"clock": "64MHz", "arch": "bm1684x"}, "", queue.Needs{Target: "file"}},
		{work.Compress, map[string]string{"on": "device:COM3"}, "measures on computers", queue.Needs{}},
		{work.Compress, map[string]string{"levels": "0.5,0.8", "precision": "int8", "max-drop": "1%"}, "", queue.Needs{Target: "host"}},
		{work.Compress, map[string]string{"structure": "filter,circles"}, `option structure "circles": no such name: expected unstructured`, queue.Needs{}},
		{work.Compress, map[string]string{"structure": "none", "precision": "int8,w4"}, "", queue.Needs{Target: "host"}},
		{work.Compress, map[string]string{"precision": "int3"}, "int8", queue.Needs{}},
		{work.Compress, map[string]string{"levels": "0.5,1.5"}, "expected shares", queue.Needs{}},
		{work.Bench, map[string]string{"plan": "../../etc"}, "name of a plan", queue.Needs{}},
		{work.Saved, map[string]string{"threads": "2"}, "knows no options", queue.Needs{}},
	} {
		j := queue.Job{Kind: tt.kind, Options: tt.options, Inputs: []queue.Input{{Name: "a.onnx"}, {Name: "b.study"}}}
		if tt.kind == work.Profile || tt.kind == work.Saved {
			j.Inputs = j.Inputs[:1]
		}
		err := work.Check(&j)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || err == nil && j.Needs != tt.needs {
			t.Errorf("%s %v: %v, needs %+v", tt.kind, tt.options, err, j.Needs)
		}
	}
	for _, in := range [][]queue.Input{{{Name: "a"}}, {{Name: "a"}, {Name: "b", As: "model"}}, {{Name: "a"}, {Name: "b", As: "labels"}}} {
		if err := work.Check(&queue.Job{Kind: work.Apply, Inputs: in}); err == nil {
			t.Errorf("inputs %+v are taken", in)
		}
	}
	for _, o := range work.Options() {
		for _, k := range o.Kinds {
			if !slices.Contains(work.Kinds(), k) {
				t.Errorf("option %s is for the unknown kind %s", o.Name, k)
			}
		}
	}
}

// Every format that the program writes can be downloaded, but for the one that needs the model where
// it was profiled.
func TestReports(t *testing.T) {
	t.Parallel()
	var profiles, studies []string
	for _, f := range reports {
		if f.Profile {
			profiles = append(profiles, f.Ending)
		}
		if f.Study {
			studies = append(studies, f.Ending)
			if _, err := report.StudyFormat("a" + f.Ending); err != nil {
				t.Error(err)
			}
		}
	}
	for _, f := range report.OutputFormats() {
		if f.Name != "profile" && f.Name != "onnx" && !slices.Contains(profiles, f.Endings[0]) {
			t.Errorf("%s is no format of the server", f.Endings[0])
		}
	}
	if len(studies) != len(report.StudyFormats) {
		t.Errorf("formats of studies %v, want %v", studies, report.StudyFormats)
	}
	c := start(t)
	r := c.finished("model")
	status, body, h := c.send("GET", "/runs/"+r.ID+"/report?as=.mltk.txt", nil)
	if status != 200 || !strings.HasPrefix(body, "profile of profile of model") || h.Get("Content-Disposition") != `attachment; filename="net.mltk.txt"` {
		t.Errorf("report %d %q %v", status, body, h)
	}
}

// Workers are listed with what they have and do, and a job says what none of them has.
func TestWorkers(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	j := c.job("a", func(b *jobBody) { b.Options = map[string]string{"on": "device:nrf5340dk"} })
	if !strings.Contains(j.Lacks, "no worker is online") {
		t.Errorf("job without workers %+v", j)
	}
	c.job("b")
	var l queue.Lease
	lease := leaseBody{Worker: "bench 1", Offers: queue.Offers{Targets: []string{"host", "board"}, CPUs: []string{"amd64"}, Engines: []string{"opmeter"}, Boards: []string{"COM3"}}}
	c.call(200, "POST", "/leases", lease, &l)
	var all listed[queue.Worker]
	c.call(200, "GET", "/workers", nil, &all)
	if len(all.Items) != 1 || all.Items[0].Name != "bench 1" || !all.Items[0].Online || all.Items[0].Job != l.Job.ID || all.Items[0].Offers.Boards[0] != "COM3" {
		t.Errorf("workers %+v", all)
	}
	c.call(200, "GET", "/jobs/"+j.ID, nil, &j)
	if j.Lacks != `no worker has the board "nrf5340dk"` {
		t.Errorf("lacks %q", j.Lacks)
	}
	if got := c.s.queue.Lacks(queue.Needs{Target: "host", Engine: "tvm"}); got != `no worker has the engine "tvm"` {
		t.Errorf("lacks %q", got)
	}
	if got := c.s.queue.Lacks(queue.Needs{Target: "board", Board: "COM3"}); got != "" {
		t.Errorf("lacks %q", got)
	}
}
