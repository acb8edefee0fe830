package find

import (
	"errors"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
)

// Programs are where their command line says: nothing else is searched, whatever its name.
func TestProgram(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/w/bench": "#!", "/w/text": "text", "/bin/emulator": "#!", "/bin/data": "text", "/a b/bench": "#!"}
	for _, c := range []struct {
		line, path string
		code       external.Code
		text       string
	}{
		{line: "./bench", path: "/w/bench"},
		{line: "/w/bench {model} --csv", path: "/w/bench"},
		{line: "'/a b/bench'", path: "/a b/bench"},
		{line: "emulator -kernel bench", path: "/bin/emulator"},
		{line: "emulator 2>&1 | head", path: ""},
		{line: "1.20", code: external.NotFound, text: "1.20: no such program in PATH"},
		{line: "bench", code: external.NotFound, text: "bench is not in PATH: the one in this folder is ./bench"},
		{line: "./gone", code: external.NotFound, text: "./gone: no such program: check the path"},
		{line: "./text", code: external.NotLibrary, text: "/w/text may not be executed: chmod +x it"},
		{line: "data", code: external.NotLibrary, text: "/bin/data may not be executed"},
		{line: "/w", code: external.NotLibrary, text: "/w is a folder and no program"},
		{line: "a 'b", code: external.NotFound, text: "tflm=a 'b: a quote is not closed"},
	} {
		e := computer("linux", "amd64", "/w", "/root", map[string]string{"PATH": "/sbin:/bin"}, files)
		f, err := Spec{Engine: Micro, Library: c.line}.Pick(e)
		if c.code == "" {
			if err != nil || f.Path != c.path || f.Command != c.line || f.Where != Named || f.Engine != "tflm" {
				t.Errorf("%s: %+v, %v", c.line, f, err)
			}
			continue
		}
		ge, ok := errors.AsType[*external.Error](err)
		if !ok || ge.Code != c.code || !strings.HasPrefix(ge.Text, c.text) || strings.Contains(ge.Text, "\n") {
			t.Errorf("%s: %v, want %s %q", c.line, err, c.code, c.text)
		}
	}
	e := computer("linux", "amd64", "/w", "/root", map[string]string{"PATH": "/bin"}, files)
	_, err := Spec{Engine: Micro}.Pick(e)
	if err == nil || err.Error() != "TensorFlow Lite Micro is never searched for: name a program that has it with --engine tflm=PROGRAM" {
		t.Error(err)
	}
	if all := e.All(Micro); all != nil {
		t.Error(all)
	}
}
