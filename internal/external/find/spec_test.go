package find

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list string
		want []Spec
		err  string
	}{
		{list: "opmeter", want: []Spec{{Engine: "opmeter"}}},
		{list: "opmeter,onnxruntime, litert", want: []Spec{{Engine: "opmeter"}, {Engine: "onnxruntime"}, {Engine: "litert"}}},
		{list: "onnxruntime@1.20,onnxruntime@1.32.0", want: []Spec{{Engine: "onnxruntime", Version: "1.20"}, {Engine: "onnxruntime", Version: "1.32.0"}}},
		{list: "onnxruntime=/a/b=c@d.so", want: []Spec{{Engine: "onnxruntime", Library: "/a/b=c@d.so"}}},
		{list: "onnxruntime@1.20=lib/x.so,opmeter", want: []Spec{{Engine: "onnxruntime", Version: "1.20", Library: "lib/x.so"}, {Engine: "opmeter"}}},
		{list: `openvino=C:\a,b\openvino_c.dll,litert`, want: []Spec{{Engine: "openvino", Library: `C:\a,b\openvino_c.dll`}, {Engine: "litert"}}},
		{list: "litert=/a,tflite=/b", want: []Spec{{Engine: "litert", Library: "/a"}, {Engine: "tflite", Library: "/b"}}},
		{list: "tflm", want: []Spec{{Engine: "tflm"}}},
		{list: "opmeter,tflm=./a", want: []Spec{{Engine: "opmeter"}, {Engine: "tflm", Library: "./a"}}},
		{list: "tflm=qemu -M a,b=c -kernel k,opmeter", want: []Spec{{Engine: "tflm", Library: "qemu -M a,b=c -kernel k"}, {Engine: "opmeter"}}},
		{list: "tflm=./a,tflm=./b 3", want: []Spec{{Engine: "tflm", Library: "./a"}, {Engine: "tflm", Library: "./b 3"}}},
		{list: "tflm=./a,litrt", err: `"litrt" is not an engine`},
		{list: "tflm@1", err: `"tflm@1": tflm has no version to choose, name the program: tflm=PROGRAM`},
		{list: "tflm=", err: `"tflm=": a program is missing behind the =`},
		{list: "TFLite-Micro", err: `"TFLite-Micro" is not an engine: did you mean tflm?`},
		{list: "", err: "a name of an engine is missing: use opmeter, onnxruntime, litert, tflite, openvino or tflm"},
		{list: "opmeter,", err: "a name of an engine is missing"},
		{list: "steam", err: `"steam" is not an engine: use opmeter, onnxruntime, litert, tflite, openvino or tflm`},
		{list: "ORT", err: `"ORT" is not an engine: did you mean onnxruntime?`},
		{list: "OpenVINO", err: `"OpenVINO" is not an engine: did you mean openvino?`},
		{list: "onnxruntime=/a,litrt", err: `"litrt" is not an engine`},
		{list: "opmeter@1", err: `"opmeter@1": opmeter's own engine has no other version or library`},
		{list: "litert@", err: `"litert@": "" is not a version, write it as litert@1.20`},
		{list: "litert@new", err: `"litert@new": "new" is not a version`},
		{list: "litert@../x", err: `"litert@../x": "../x" is not a version`},
		{list: "litert=", err: `"litert=": a path of a library is missing behind the =`},
		{list: "litert@2=", err: `"litert@2=": a path of a library is missing behind the =`},
		{list: "litert,opmeter,litert", err: "litert is there twice"},
		{list: strings.Repeat("litert,", 100), err: "101 engines, 16 are the most"},
	} {
		got, err := Parse(c.list)
		if c.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.40q: %v, want %q", c.list, err, c.err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.list, got, err, c.want)
		}
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, version string
		ok            bool
	}{{"", "", true}, {"", "1.2", true}, {"1.20", "1.20.1", true}, {"1.20", "1.20", true}, {"1.20", "1.20-rc1", true}, {"1.20", "1.200.1", false}, {"1.20", "", false}} {
		err := Spec{Engine: "onnxruntime", Version: c.want}.Accept(c.version)
		if ge, is := errors.AsType[*external.Error](err); (err == nil) != c.ok || !c.ok && (!is || ge.Code != external.NotFound) {
			t.Errorf("%q of %q: %v", c.want, c.version, err)
		}
	}
}

// Versions in the order of their age, by PEP 440.
func TestCompare(t *testing.T) {
	t.Parallel()
	order := []string{"", "0.9", "1.9.0", "1.16.3", "1.20.0.dev20250101", "1.20.0rc1", "1.20.0rc2", "1.20", "1.20.0.post1", "1.20.1", "1.20.1.dev1x", "1.200", "2024.6.0", "2026.4.1"}
	// 1.20.1.dev1x stands before 1.20.1.
	order[9], order[10] = order[10], order[9]
	for i, a := range order {
		for j, b := range order {
			if got := compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("compare(%q, %q) = %d", a, b, got)
			}
		}
	}
	if compare("1.20.0", "1.20") != 0 || compare("1.20.0+cu12", "1.20.0") != 0 {
		t.Error("versions that are the same differ")
	}
}

func TestHelper(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/home/u/go/bin/opmeter":        "#!",
		"/usr/bin/opmeter":              "-> /opt/opmeter/opmeter",
		"/opt/opmeter/opmeter":          "#!",
		"/opt/opmeter/opmeter-engine":   "#!",
		"/srv/opmeter-engine":           "#!",
		"/srv/no-program":               "text",
		"/elsewhere/bin/opmeter-engine": "text",
	}
	for _, c := range []struct{ program, variable, path, want, err string }{
		{program: "/usr/bin/opmeter", want: "/opt/opmeter/opmeter-engine"},
		{program: "/opt/opmeter/opmeter", path: "/srv", want: "/opt/opmeter/opmeter-engine"},
		{program: "/home/u/go/bin/opmeter", path: ".:/elsewhere/bin:/srv", want: "/srv/opmeter-engine"},
		{program: "/opt/opmeter/opmeter", variable: "/srv", want: "/srv/opmeter-engine"},
		{variable: "srv/opmeter-engine", want: "/srv/opmeter-engine"},
		{program: "/home/u/go/bin/opmeter", path: "/elsewhere/bin", err: "opmeter-engine is absent, the program that opens other engines: put it beside opmeter ("},
		{program: "/opt/opmeter/opmeter", variable: "/gone", err: "OPMETER_ENGINE=/gone: no such program"},
		{variable: "/srv/no-program", err: "OPMETER_ENGINE=/srv/no-program is not an executable program"},
	} {
		e := computer("linux", "amd64", "/", "/home/u", map[string]string{"PATH": c.path, "OPMETER_ENGINE": c.variable}, files)
		e.Program = c.program
		got, err := e.Helper()
		ge, ok := errors.AsType[*external.Error](err)
		if got != c.want || (c.err != "") != (err != nil) || err != nil && (!ok || ge.Code != external.NoHelper || !strings.HasPrefix(ge.Text, c.err)) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
