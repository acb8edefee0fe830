package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/page"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
	"github.com/opmeter/opmeter/web/e2e/browser"
	"github.com/opmeter/opmeter/web/e2e/speed"
)

var views = []string{"summary", "layers", "timeline", "memory", "roofline", "distribution", "graph", "estimate"}

// folder holds the pages of the tests, which are written once.
var folder string

// chromium starts the one browser of all tests.
var chromium = sync.OnceValues(browser.Start)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "opmeter-e2e-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		if _, err := browser.Path(); err == nil {
			if b, err := chromium(); err == nil {
				defer b.Close()
			}
		}
		return m.Run()
	}())
}

// pages are those that most tests open: those that the program made by running and
// by estimating a model, one with everything that a page can show, and that with hostile names.
var pages = map[string]func() (string, error){
	"real": sync.OnceValues(func() (string, error) { return run("real", "--runs", "20") }),
	// Streams and cold inferences have figures of their own beside those of one after the other.
	"loaded": sync.OnceValues(func() (string, error) { return run("loaded", "--runs", "20", "--streams", "2", "--cold=start") }),
	// An estimate for a chip: most of what a run on a computer has is absent.
	"chip": sync.OnceValues(func() (string, error) { return run("chip", "--on", "efr32xg24-mvp") }),
	"sample": sync.OnceValues(func() (string, error) {
		return write("sample", sample.New(sample.Options{Samples: true}))
	}),
	"hostile": sync.OnceValues(func() (string, error) {
		return write("hostile", sample.New(sample.Options{Samples: true, Hostile: true}))
	}),
	// A language model with repeated layers: its phases have a view, its blocks a table.
	"language": sync.OnceValues(func() (string, error) {
		data, err := onnx.Encode(decoder.New(decoder.Small))
		if err != nil {
			return "", err
		}
		file := filepath.Join(folder, "decoder.onnx")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return "", err
		}
		return profiled("language", file, "--runs", "20", "--prompt", "4,16", "--context", "0,16,48")
	}),
	"study":            sync.OnceValues(func() (string, error) { return writeStudy("study", sample.Study(24, false)) }),
	"compared":         sync.OnceValues(func() (string, error) { return speed.Compared(folder, 200, 2, false) }),
	"several compared": sync.OnceValues(func() (string, error) { return speed.Compared(folder, 60, 4, false) }),
	"hostile compared": sync.OnceValues(func() (string, error) { return speed.Compared(folder, 120, 2, true) }),
	"hostile study":    sync.OnceValues(func() (string, error) { return writeStudy("hostile-study", sample.Study(12, true)) }),
}

// run lets the program profile a convnet and write the page.
func run(name string, options ...string) (string, error) {
	return profiled(name, filepath.Join(material.Root(), "examples", "resnet8.yaml"), options...)
}

// profiled lets the program profile a model and write the page.
func profiled(name, model string, options ...string) (string, error) {
	file := filepath.Join(folder, name+".html")
	var out strings.Builder
	args := append([]string{"profile", model, "-o", file}, options...)
	if code := cli.Main(args, strings.NewReader(""), &out, &out); code != 0 {
		return "", fmt.Errorf("exit status %d: %s", code, out.String())
	}
	return file, nil
}

func write(name string, p *profile.Profile) (string, error) {
	file := filepath.Join(folder, name+".html")
	return file, report.File(file, p, report.Options{})
}

// writeStudy writes the page of a study.
func writeStudy(name string, st *study.Study) (string, error) {
	file := filepath.Join(folder, name+".html")
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	return file, errors.Join(page.WriteStudy(f, st, "test"), f.Close())
}

// session is a tab whose steps fail the test.
type session struct {
	*browser.Tab
	t   *testing.T
	url string
}

// openFile opens a page without waiting for its content. When the test ends, the tab
// must have kept to the file, and nothing may have been wrong.
func openFile(t *testing.T, file, hash string, width, height int) *session {
	t.Helper()
	address, err := browser.FileURL(file)
	if err != nil {
		t.Fatal(err)
	}
	return openURL(t, address, hash, width, height, func(u *url.URL) bool { return u.Scheme == "file" }, "")
}

// openURL is [openFile] for an address, with the requests that it may make besides data: and blob:,
// and what expected complaints of the browser contain.
func openURL(t *testing.T, address, hash string, width, height int, may func(*url.URL) bool, expected string) *session {
	t.Helper()
	if _, err := browser.Path(); err != nil {
		material.Skip(t, "Chromium is absent: "+err.Error())
	}
	b, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	tab, err := b.Open(width, height)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Tab: tab, t: t, url: address}
	t.Cleanup(func() {
		for _, p := range tab.Problems() {
			if expected != "" && strings.Contains(p, expected) {
				continue
			}
			t.Errorf("the browser complains: %.500s", p)
		}
		for _, r := range tab.Requests() {
			if u, err := url.Parse(r); err != nil || !may(u) && u.Scheme != "data" && u.Scheme != "blob" {
				t.Errorf("the page asks for %.200s", r)
			}
		}
		for _, d := range tab.Dialogs() {
			t.Errorf("the page opens a dialog: %.200s", d)
		}
		tab.Close()
	})
	s.must(tab.Goto(s.url + hash))
	return s
}

// open opens one of [pages] and waits until it shows a view.
func open(t *testing.T, page, hash string, width, height int) *session {
	t.Helper()
	file, err := pages[page]()
	if err != nil {
		t.Fatal(err)
	}
	s := openFile(t, file, hash, width, height)
	s.wait(shown)
	return s
}

// shown is true when the page shows a view.
const shown = `document.querySelector("nav [aria-current=page]") && document.querySelector("main h2")`

func (s *session) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// eval computes an expression in the page.
func eval[T any](s *session, expression string) T {
	s.t.Helper()
	v, err := browser.Eval[T](s.Tab, expression)
	s.must(err)
	return v
}

// wait waits until an expression is true and the page is drawn.
func (s *session) wait(expression string) {
	s.t.Helper()
	if err := s.Wait(expression); err != nil {
		s.t.Fatalf("%v\nat %s\nproblems: %q", err, eval[string](s, "location.hash"), s.Problems())
	}
	s.must(s.Settle())
}

// show goes to a view by its address.
func (s *session) show(hash string) {
	s.t.Helper()
	eval[string](s, "location.hash = "+quote(hash))
	view, _, _ := strings.Cut(strings.TrimPrefix(hash, "#/"), "?")
	s.wait(`document.querySelector("nav [aria-current=page]")?.hash.startsWith("#/` + view + `") && document.querySelector("main h2")`)
}

// quote writes a string as JavaScript does.
func quote(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\u2028", `\u2028`)
	return `"` + r.Replace(s) + `"`
}
